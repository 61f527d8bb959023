"""Arrays in, arrays out: the same functions written as formulas (`*_ref`) and fast (`*_cpu`).

A reference is the specification: the same names, arguments and numbers as its fast twin, in plain
NumPy and as slow as it likes. Nothing here validates, and no input is ever written to.

=====================  ===============================================================
`sorting`, `grouping`  the order of the rows by time, and groups of them
`risk_sets`            the Cox likelihood and its residuals
`late_entry`           sums over risk sets that rows enter late
`wide_range`           the likelihoods again, where one exponent cannot hold every row
`subdistribution`      Fine and Gray's likelihood
`censoring`            the distributions of censoring and of entry that weight it
`term_means`, `means`  averages of covariates over risk sets and over follow-up
`matrix`, `columns`    products of the blocked covariate matrix, and its making
`gram`                 sampled risk sets and their sums of squares
`descent`              the penalised quadratic of a Newton step
`separation`           maxima over risk sets
`ccd`                  one coordinate at a time, and sweeps over them: the paper's solver
`replicates`           eight likelihoods at once, for the folds and resamples of a fit
`matching`             pairs of people by their propensity score
`concordance`          pairs of rows in and out of order
`long_table`           entries of a long table gathered into columns
=====================  ===============================================================
"""
