"""What an estimate means: variances, residuals, tests, intervals; functions of a loss and its fit.

Everything here takes the loss, the design and the linear predictor at the estimate, and knows no
solver. Variances and tests describe unpenalised estimates; for penalised ones they are not defined,
and it is the estimator that refuses.
"""
