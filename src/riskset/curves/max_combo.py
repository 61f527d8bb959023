"""The largest of several weighted log-rank tests of two groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError
from riskset.curves.comparison import ComparedRows, TestVariance, checked_time_weight
from riskset.curves.largest_normal import probability_of_largest
from riskset.curves.logrank import ComparedTimes

__all__ = ["MaxComboTest", "max_combo_test"]

WEIGHTS = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))
"""Powers (rho, gamma): for proportional hazards, and for early, late and middle differences."""

MAX_WEIGHTS = 20


@dataclass(frozen=True, eq=False)
class MaxComboTest:
    """Result of `max_combo_test`.

    Attributes
    ----------
    statistic : float
        Largest absolute value of `z`.
    p_value : float
        Probability that it is so large if hazards are equal, for two-sided differences.
    weights : tuple of (float, float)
        Powers (rho, gamma) of each test.
    z : (n_weights,) float64
        Standardised scores of the first group: positive if it has more events than expected.
    correlation : (n_weights, n_weights) float64
    groups : tuple
        The two labels.
    method : str

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0], [True, True, True, True])
    >>> found = rs.max_combo_test(y, ["a", "a", "b", "b"], weights=[(0, 0), (1, 0)])
    >>> found.z.round(4), round(float(found.correlation[0, 1]), 4)
    (array([1.6977, 1.633 ]), 0.9901)
    """

    statistic: float
    p_value: float
    weights: tuple[tuple[float, float], ...]
    z: NDArray[np.float64]
    correlation: NDArray[np.float64]
    groups: tuple[object, ...]
    method: str


def max_combo_test(
    y: object,
    group: object,
    cause: int | str | None = None,
    *,
    weights: Sequence[tuple[float, float]] = WEIGHTS,
    weight: object = None,
    strata: object = None,
    variance: TestVariance = "auto",
    cluster: object = None,
) -> MaxComboTest:
    r"""Perform the max-combo test: the largest of several Fleming-Harrington tests of two groups.

    .. math:: \max_k |Z_k|, \qquad Z_k = U_k / \sqrt{V_{kk}}, \qquad
        U_k = \sum_t K_k(t) \left(d_1(t) - d(t) \frac{Y_1(t)}{Y(t)}\right)

    with :math:`K_k(t) = S(t-)^{\rho_k} (1 - S(t-))^{\gamma_k}`. The p value is that of the largest
    of normal variables with the correlations of the scores. The test has power whether hazards
    differ early, late or all the time; it costs little where they are proportional.

    Parameters
    ----------
    y, group, cause, weight, strata, variance, cluster
        As for `logrank_test`. There must be two groups.
    weights : sequence of (rho, gamma)
        Powers of the tests. Choose them before seeing the data.

    Returns
    -------
    MaxComboTest

    Raises
    ------
    InputError
        As `logrank_test`; if there are not two groups, or the groups were never at risk together
        at a time that counts in one of the tests.

    Notes
    -----
    The p value has a relative error of at most 1e-8 if no more than three of the tests are linearly
    independent, as with the default (the first is the sum of the next two), and of about 1e-4
    otherwise. It comes from integrals without random numbers, so it is always the same.

    References
    ----------
    Karrison (2016), Stata Journal 16, 678-690, doi:10.1177/1536867X1601600308.
    Lee (2007), Statistics in Medicine 26, 4519-4534, doi:10.1002/sim.2885.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 1, 1, 1, 0, 1])
    >>> found = rs.max_combo_test(y, ["a", "a", "a", "b", "b", "b"])
    >>> found.z.round(3), round(found.statistic, 3), round(found.p_value, 3)
    (array([2.248, 2.121, 2.111, 2.121]), 2.248, 0.047)
    """
    powers = _checked(weights)
    compared = ComparedRows.read(y, group, cause, (weight, strata, cluster), variance)
    labels = compared.rows.labels
    if len(labels) != 2:
        raise InputError(
            f"the max-combo test compares two groups, but `group` has {len(labels):,}.",
            hint="pass the rows of two groups, or use `riskset.pairwise_logrank_test`.",
        )
    times = ComparedTimes.build(compared.rows, compared.stratum, compared.cause)
    of_time = np.array(
        [checked_time_weight(r, g, "fleming-harrington").of(times) for r, g in powers]
    )
    score = np.array([times.score(k, 2)[0] for k in of_time])
    own = times.group == 0
    if compared.is_robust:
        influence = np.array([times.influence(own, k) for k in of_time])
        covariance = influence @ influence.T
    else:
        share = times.at_risk_in(own) / times.at_risk
        covariance = (of_time * (times.factor() * share * (1.0 - share))) @ of_time.T
    size = np.sqrt(covariance.diagonal())
    if not (size > 0).all():
        rho, gamma = powers[int(np.argmin(size))]
        raise InputError(
            f"the test with rho = {rho:g} and gamma = {gamma:g} is not defined: the groups were "
            "never at risk together at a time of an event that counts in it.",
            hint="leave it out of `weights`, or check `group`.",
        )
    z, correlation = score / size, covariance / size / size[:, None]
    largest = float(np.abs(z).max())
    p_value = probability_of_largest(largest, correlation)
    return MaxComboTest(largest, p_value, powers, z, correlation, labels, "max-combo test")


def _checked(weights: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Powers, if there are some and each is a pair of numbers."""
    try:
        powers = tuple((float(rho), float(gamma)) for rho, gamma in weights)
    except (TypeError, ValueError):
        powers = ()
    if not 1 <= len(powers) <= MAX_WEIGHTS or len(set(powers)) < len(powers):
        raise InputError(
            f"`weights` must be 1 to {MAX_WEIGHTS} different pairs (rho, gamma), but it is "
            f"{weights!r}.",
            hint="leave it out for (0, 0), (1, 0), (0, 1) and (1, 1).",
        )
    return powers
