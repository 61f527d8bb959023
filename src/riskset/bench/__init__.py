"""The experiments of the paper, and what other programs need for the same: ``riskset bench``.

An experiment draws its data, lets competitors solve the same problem, and yields a `Record` for
each: its time, the objective and the KKT residual that it reached, both computed by riskset
from its coefficients. A time without an equally good objective is not a result.

===============  ==============================================================================
`fixed`          one fit with a fixed L1 penalty, over numbers of rows (section 3.2)
`crossval`       10 x 10 cross-validation, over rows and threads (section 3.3)
`bootstrap`      resamples of one fit, compared with it
`solvers`        coordinate descent, accelerated proximal gradient and Newton (section 2.9)
`fusion`         scans, transformation and reductions, apart and fused (section 3.1)
`cohort`         a cohort of the size of the real study, from selection to interval (section 3.4)
`ceilings`       what the machine can do, and what the kernels reach of it
`scaling`        cost against threads, rows, columns, density and events
===============  ==============================================================================

Nothing here is needed to fit a model.
"""
