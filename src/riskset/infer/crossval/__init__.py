"""Cross-validation: which rows are left out, what a penalty scores on them, which one is best.

`folds` says who is left out when, `scores` what the rows left out say of a model, `engine` fits and
scores every replicate of a penalty, `explore` and `search` look for the best penalty, `result`
holds what was found, and `checkpoint` keeps what is done. Nothing here knows what an estimator is.
"""
