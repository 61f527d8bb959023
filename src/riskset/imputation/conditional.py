r"""Draws of the missing values of one column, given all others.

The parameters of each model are drawn, too, once for all rows of a column: without that the
completed data sets would be too much alike, and pooled intervals too narrow.

Numbers: predictive mean matching. A linear model has the coefficients :math:`\hat\beta`, and
:math:`\beta^* \sim N(\hat\beta, \sigma^{*2} (X'X)^{-1})` is drawn with :math:`\sigma^{*2} = RSS /
\chi^2_{n - p}`. A row without a value, with the prediction :math:`x'\beta^*`, takes the value of
one of the rows whose predictions :math:`x'\hat\beta` are the closest.

Levels: a (multinomial) logistic model with a weak L2 penalty, so that it is finite, fitted with
random weights of the rows that have a Dirichlet distribution (the Bayesian bootstrap). The level is
drawn by the probabilities that it predicts.

References
----------
van Buuren and Groothuis-Oudshoorn (2011), mice: Multivariate imputation by chained equations in R,
Journal of Statistical Software 45(3), doi:10.18637/jss.v045.i03.
Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9, 130-134, doi:10.1214/aos/1176345338.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from riskset._types import AnyArray, Index, Matrix, Rows

__all__ = ["level_draws", "matched_donors"]

RIDGE = 1e-5
"""For each row, of columns with a variance of 1, so that collinear columns have coefficients."""

PRIOR_VARIANCE = 10.0
"""Of logistic coefficients of columns with a variance of 1."""


def matched_donors(
    x: Matrix, y: Rows, x_new: Matrix, n_donors: int, rng: np.random.Generator
) -> Index:
    """For each row of `x_new` (k, p), the number of the row of `x` (n, p) that lends its `y`."""
    n = y.size
    design, new = (np.column_stack([np.ones(len(part)), part]) for part in (x, x_new))
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += RIDGE * n
    factor = cho_factor(gram, lower=True)
    coef = cho_solve(factor, design.T @ y)
    fitted = design @ coef
    spread = float(np.sum((y - fitted) ** 2)) / rng.chisquare(max(1, n - design.shape[1]))
    lower = np.tril(factor[0])
    apart = solve_triangular(lower, rng.standard_normal(coef.size), lower=True, trans="T")
    wanted = new @ (coef + np.sqrt(spread) * apart)
    return _close(fitted, wanted, min(n_donors, n), rng)


def _close(fitted: Rows, wanted: Rows, k: int, rng: np.random.Generator) -> Index:
    """One of the `k` numbers of `fitted` that are closest to each of `wanted`, by its place."""
    shuffled = rng.permutation(fitted.size)  # or the first of many equal numbers would lend all
    order = shuffled[np.argsort(fitted[shuffled], kind="stable")]
    in_order = fitted[order]
    first = np.searchsorted(in_order, wanted) - k
    # The closest are among the k before the place and the k after it.
    window = np.clip(first[:, None] + np.arange(2 * k), 0, fitted.size - 1)
    distance = np.abs(in_order[window] - wanted[:, None])
    outside = (first[:, None] + np.arange(2 * k)) != window
    distance[outside] = np.inf
    closest = np.argsort(distance, axis=1, kind="stable")[:, :k]
    chosen = closest[np.arange(wanted.size), rng.integers(0, k, wanted.size)]
    return np.asarray(order[window[np.arange(wanted.size), chosen]], dtype=np.int64)


def level_draws(
    x: Matrix, level: AnyArray, n_levels: int, x_new: Matrix, rng: np.random.Generator
) -> Index:
    """Levels 0, 1, ... of the rows of `x_new` (k, p), from those of the rows of `x` (n, p)."""
    from sklearn.linear_model import LogisticRegression

    weight = rng.exponential(size=level.size)
    weight *= level.size / weight.sum()
    uniform = rng.random(len(x_new))
    if n_levels == 1 or not x.shape[1]:
        share = np.bincount(level, weight, n_levels) / level.size
        probability = np.broadcast_to(share, (len(x_new), n_levels))
    else:
        model = LogisticRegression(C=PRIOR_VARIANCE, solver="newton-cholesky", max_iter=100)
        probability = model.fit(x, level, weight).predict_proba(x_new)
    edges = np.cumsum(probability, axis=1)
    drawn = np.minimum((edges < uniform[:, None]).sum(axis=1), n_levels - 1)
    return np.asarray(drawn, dtype=np.int64)
