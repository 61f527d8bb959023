"""Log-rank tests between all pairs of groups, with adjusted p values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import false_discovery_control

from riskset._errors import InputError, counted
from riskset._types import AnyArray
from riskset.curves.comparison import (
    ComparedRows,
    GroupTest,
    TestVariance,
    checked_time_weight,
    group_counts,
)
from riskset.curves.followup import split
from riskset.curves.logrank import ComparedTimes, Weighting, logrank_sums
from riskset.data.frame import data_frame

__all__ = ["PairwiseTests", "adjusted_p_values", "pairwise_logrank_test"]

PValueAdjustment = Literal["holm", "bonferroni", "benjamini-hochberg", "none"]


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseTests:
    """Tests between all pairs of groups, the result of `pairwise_logrank_test`.

    Iteration gives a `GroupTest` for each pair, and ``result["a", "b"]`` that of a pair.

    Attributes
    ----------
    tests : tuple of GroupTest
        One for each pair, in the order of the groups. Without events in a pair, its statistic is 0
        and it has no degree of freedom.
    adjusted_p_value : (n_pairs,) float64
        P values that allow for the number of pairs. NaN for a pair that cannot be compared, which
        does not count as a pair.
    adjust : str
        How they allow for it.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 1, 1, 1, 1, 1])
    >>> found = rs.pairwise_logrank_test(y, ["a", "a", "b", "b", "c", "c"])
    >>> len(found), round(found["a", "c"].p_value, 4), found.adjusted_p_value.round(4).tolist()
    (3, 0.0896, [0.2688, 0.2688, 0.2688])
    """

    tests: tuple[GroupTest, ...]
    adjusted_p_value: NDArray[np.float64]
    adjust: str

    def __repr__(self) -> str:
        pairs = counted(len(self), "pair")
        return f"PairwiseTests({pairs}, {self.tests[0].method}, adjusted by {self.adjust!r})"

    def __iter__(self) -> Iterator[GroupTest]:
        return iter(self.tests)

    def __len__(self) -> int:
        return len(self.tests)

    def __getitem__(self, pair: tuple[object, object]) -> GroupTest:
        wanted = tuple(pair) if isinstance(pair, tuple | list) else (pair,)
        for test in self.tests:
            if wanted in (test.groups, test.groups[::-1]):
                return test
        raise InputError.unknown_name("pair", wanted, [test.groups for test in self.tests])

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per pair: groups, statistic, df, p value and adjusted p value."""
        labels = np.empty((len(self), 2), dtype=object)
        for k, test in enumerate(self.tests):
            labels[k] = test.groups
        return {
            "group": labels[:, 0],
            "other_group": labels[:, 1],
            "statistic": np.array([test.statistic for test in self.tests]),
            "df": np.array([test.df for test in self.tests]),
            "p_value": np.array([test.p_value for test in self.tests]),
            "adjusted_p_value": self.adjusted_p_value,
        }

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)


def pairwise_logrank_test(
    y: object,
    group: object,
    cause: int | str | None = None,
    *,
    adjust: PValueAdjustment = "holm",
    weight: object = None,
    strata: object = None,
    rho: float = 0.0,
    gamma: float = 0.0,
    weighting: Weighting = "fleming-harrington",
    variance: TestVariance = "auto",
    cluster: object = None,
) -> PairwiseTests:
    """Perform a log-rank test, or one of its family, between all pairs of groups.

    Each test is that of `logrank_test` for the rows of two groups alone.

    Parameters
    ----------
    y, group, cause, weight, strata, rho, gamma, weighting, variance, cluster
        As for `logrank_test`. With variance="auto" all pairs have the same variance.
    adjust : {"holm", "bonferroni", "benjamini-hochberg", "none"}
        How p values allow for the number of pairs. "holm" and "bonferroni" bound the probability of
        any false rejection ("holm" is never larger), "benjamini-hochberg" the expected share of
        false rejections.

    Returns
    -------
    PairwiseTests

    Raises
    ------
    InputError
        As `logrank_test`, or if `adjust` is unknown.

    Notes
    -----
    Rows are sorted once. Each pair takes time proportional to its rows and to the times of events.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70.
    Benjamini & Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300,
    doi:10.1111/j.2517-6161.1995.tb02031.x.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1, 1, 1, 1, 1, 1])
    >>> found = rs.pairwise_logrank_test(y, ["a", "a", "b", "b", "c", "c"], adjust="bonferroni")
    >>> found.columns()["adjusted_p_value"].round(4)
    array([0.2688, 0.2688, 0.2688])
    """
    if adjust not in get_args(PValueAdjustment):
        raise InputError.wrong_option("adjust", adjust, get_args(PValueAdjustment))
    time_weight = checked_time_weight(rho, gamma, weighting)
    compared = ComparedRows.read(y, group, cause, (weight, strata, cluster), variance)
    rows, labels = compared.rows, compared.rows.labels
    times = ComparedTimes.build(rows, compared.stratum, compared.cause)
    n_rows, n_events = group_counts(compared)
    members = split(rows.group, len(labels))
    tests = []
    for j in range(len(labels)):
        for k in range(j + 1, len(labels)):
            own = np.concatenate([members[j], members[k]])
            code = np.repeat([0, 1], [members[j].size, members[k].size])
            sums = logrank_sums(times.only(own, code), 2, time_weight, robust=compared.is_robust)
            test = GroupTest(
                *sums.statistic(),
                (labels[j], labels[k]),
                sums.score,
                sums.variance,
                n_rows[[j, k]],
                n_events[[j, k]],
                time_weight.name,
                compared.is_robust,
            )
            tests.append(test)
    p_values = np.array([test.p_value for test in tests])
    return PairwiseTests(tuple(tests), adjusted_p_values(p_values, adjust), adjust)


def adjusted_p_values(p_value: NDArray[np.float64], adjust: str) -> NDArray[np.float64]:
    """P values (n,) that allow for their number; those that are NaN stay so and do not count."""
    out, known = p_value.copy(), np.flatnonzero(np.isfinite(p_value))
    n, own = known.size, p_value[known]
    if adjust == "bonferroni":
        out[known] = np.minimum(n * own, 1.0)
    elif adjust == "holm":
        order = np.argsort(own, kind="stable")
        factor = n - np.arange(n)
        out[known[order]] = np.minimum(np.maximum.accumulate(factor * own[order]), 1.0)
    elif adjust == "benjamini-hochberg" and n:
        out[known] = false_discovery_control(own)
    return out
