"""The experiments of the paper and others, and what other programs need: ``riskset bench``.

An experiment draws its data, lets competitors solve the same problem, and yields a
`BenchmarkRecord` for each: its time, the objective and the KKT residual that it reached, both
computed by riskset from its coefficients. A time without an equally good objective is not a result.

===============  ==============================================================================
`fixed`          one fit with a fixed L1 penalty, over numbers of rows (section 3.2)
`crossval`       10 x 10 cross-validation, over rows and threads (section 3.3)
`bootstrap`      resamples of one fit, compared with it
`solvers`        coordinate descent, accelerated proximal gradient and Newton (section 2.9)
`fusion`         scans, transformation and reductions, apart and fused (section 3.1)
`cohort`         a cohort of the size of the real study, from selection to interval (section 3.4)
`study`          propensity score, matching and balance at the sizes of claims data
`ceilings`       what the machine can do, and what the kernels reach of it
`dense`          fits without a penalty, paths and cross-validation on dense tables
`estimands`      predictions, restricted means, tests, curves, rows with start and stop, adjustment
`scaling`        wide sparse tables, very many rows, and cost against the size of a fit
===============  ==============================================================================

Nothing here is needed to fit a model.
"""
