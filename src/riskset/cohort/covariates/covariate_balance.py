"""Balance of every covariate before and after adjustment.

All sums are of the people whose value is known: a covariate with an indicator of missing values is
summed again without the rows of these. The indicator itself is one of everybody.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from riskset._errors import CohortError, counted
from riskset._keywords import takes
from riskset._runtime import Runtime
from riskset._types import AnyArray, Factors, Features, Index, Matrix, Rows
from riskset.cohort.adjustments.adjustment import (
    Adjustment,
    AdjustmentStatus,
    Estimand,
    People,
    start,
)
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.covariates.covariate_moments import (
    Moments,
    arm_moments,
    counts_of_ones,
    gap_of_means,
    stratum_variances,
)
from riskset.cohort.covariates.covariate_terms import with_terms
from riskset.cohort.covariates.ecdf_gaps import ecdf_gaps
from riskset.cohort.settings import BalanceOptions
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.data.missing_values import indicator_places

__all__ = [
    "Balance",
    "Group",
    "Side",
    "balance",
    "difference_p_value",
    "known_parts",
    "standardised_gap",
]

Group = Literal["target", "comparator", "both"]

MOST_STRATA = 100
"""Strata whose variances are added; of more, that of weights is used."""


@dataclass(frozen=True, eq=False, repr=False)
class Side:
    """Statistics of every covariate before or after adjustment; all (p,).

    Attributes
    ----------
    mean_target, mean_comparator, sd_target, sd_comparator : float64
        Weighted means and standard deviations.
    count_target, count_comparator : float64
        Number of people of positive weight with a binary covariate. NaN for other covariates.
        Means are of the people whose value is known.
    smd, smd_current_sd : float64
        Standardised mean differences, with the chosen standard deviation and with that of the same
        side. Infinite if the standard deviation is 0 and the means differ.
    variance_ratio : float64
        Variance of the target, divided by that of the comparator. NaN for binary covariates, whose
        variance follows from the mean, and if the comparator's variance is 0.
    ks : float64
        Kolmogorov-Smirnov statistic: the largest difference of the distribution functions.
    smd_variance, p : float64
        Variance of `smd`, and the p value of the null hypothesis that the difference is at the
        threshold.
    balanced : bool
    """

    mean_target: Features
    mean_comparator: Features
    count_target: Features
    count_comparator: Features
    sd_target: Features
    sd_comparator: Features
    smd: Features
    smd_current_sd: Features
    variance_ratio: Features
    ks: Features
    smd_variance: Features
    p: Features
    balanced: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Balance:
    r"""Result of `balance`.

    Attributes
    ----------
    names : tuple of str
    keys : tuple
        Keys of the covariates, as given.
    is_binary : (p,) bool
    before, after : Side
    generalisability_target, generalisability_comparator, generalisability_both : (p,) float64
        Standardised differences between before and after adjustment, of one arm or both. They are
        divided by :math:`\sqrt{(s_{before}^2 + s_{after}^2) / 2}` for one arm, and by the standard
        deviation before adjustment for both, as in CohortMethod.
    sd, variance : str
        The chosen methods; for "auto", the method used.
    threshold : float
    alpha : float or None
    status : str
        Status of the adjustment. Unless "ok", `after` is NaN.
    estimand : str or None
        Estimand of the adjustment.
    factors : tuple of tuple of str
        Names of the levels of each category. Every row has exactly one of them.
    rows : mapping
        Numbers of rows by ("before" or "after", "target" or "comparator").
    effective_sizes : mapping
        Kish's effective sample sizes, by the same keys.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.5, 0.4, 0.4])
    >>> found = rs.cohort.balance([[1.0], [3.0], [0.0], [2.0]], rs.cohort.weight(people))
    >>> found.after.smd.round(3), found.after.balanced
    (array([0.707]), array([False]))
    """

    names: tuple[str, ...]
    keys: tuple[int | str, ...]
    is_binary: NDArray[np.bool_]
    before: Side
    after: Side
    generalisability_target: Features
    generalisability_comparator: Features
    generalisability_both: Features
    sd: str
    variance: str
    threshold: float
    alpha: float | None
    status: AdjustmentStatus
    estimand: Estimand | None = None
    factors: Factors = ()
    rows: Mapping[tuple[str, str], int] = field(default_factory=dict)
    effective_sizes: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def generalises_to(self) -> Group:
        """Group whose differences measure generalisability, by the estimand.

        The target for the estimand "att" (also for matching), the comparator for "atu", otherwise
        both.
        """
        groups: dict[Estimand | None, Group] = {"att": "target", "atu": "comparator"}
        return groups.get(self.estimand, "both")

    @property
    def max_generalisability(self) -> float | None:
        """Largest difference between before and after in the group `generalises_to`, or None."""
        size = np.abs(getattr(self, f"generalisability_{self.generalises_to}"))
        known = size[~np.isnan(size)]
        return float(known.max()) if known.size else None

    def summary(self, side: Literal["before", "after"] = "after") -> dict[str, object]:
        """Summarise the largest difference, the number above the threshold and the smallest p.

        Returns
        -------
        dict
            ``max``, ``worst``, ``n_above``, ``share_above``, ``min_p`` (family-wise: multiplied by
            the number of covariates, at most 1). None if unknown.
        """
        own = self.before if side == "before" else self.after
        size = np.abs(own.smd)
        if not size.size or np.isnan(size).all():
            keys = ("max", "worst", "n_above", "share_above", "min_p")
            return dict.fromkeys(keys)
        worst = int(np.nanargmax(size))
        above = int(np.count_nonzero(size > self.threshold))
        p = own.p[~np.isnan(own.p)]
        return {
            "max": float(size[worst]),
            "worst": self.names[worst],
            "n_above": above,
            "share_above": above / size.size,
            "min_p": float(min(1.0, p.min() * size.size)) if p.size else None,
        }

    def columns(self) -> dict[str, AnyArray]:
        """Return everything as columns of a table."""
        out: dict[str, AnyArray] = {
            "covariate_id": np.array(self.keys, dtype=object),
            "name": np.array(self.names, dtype=object),
            "is_binary": self.is_binary,
        }
        for word, side in (("before", self.before), ("after", self.after)):
            out |= {f"{word}_{name}": getattr(side, name) for name in Side.__annotations__}
        for name in ("target", "comparator", "both"):
            out[f"generalisability_{name}"] = getattr(self, f"generalisability_{name}")
        return out

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per covariate; "pandas", "polars" or "pyarrow"."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        lines = [f"Balance of {counted(len(self.names), 'covariate')}"]
        sides: tuple[Literal["before", "after"], ...] = ("before", "after")
        for side in sides:
            found = self.summary(side)
            if found["max"] is None:
                lines.append(f"  {side}: not known (status {self.status!r})")
            else:
                lines.append(
                    f"  {side}: largest difference {found['max']:.3f} ({found['worst']}), "
                    f"{found['n_above']} above {self.threshold:g}"
                )
        return "\n".join(lines)


@takes(BalanceOptions)
def balance(
    X: object, adjustment: People, *, settings: BalanceOptions, n_threads: int | None = None
) -> Balance:
    r"""Compute standardised mean differences of every covariate, before and after an adjustment.

    For weights u that add up to 1 in each arm, :math:`m = \sum u x`, :math:`s^2 = \sum u (x - m)^2
    / (1 - \sum u^2)` and

    .. math:: smd = (m_1 - m_0) / \sqrt{(s_1^2 + s_0^2) / 2}

    With :math:`F_a(x) = \sum_{x_i \le x} u_i` of each arm, the Kolmogorov-Smirnov statistic is
    :math:`\max_x |F_1(x) - F_0(x)|`, and the variance ratio :math:`s_1^2 / s_0^2`. `squares` and
    `interactions` add covariates, such as ``age^2`` and ``age * sex``, which count as any other.

    The weights are those of the adjustment. Sums are of the people whose value is known: where a
    covariate ``c``, or the levels of a column ``c``, have an indicator ``c=(missing)``, people with
    the indicator are left out, as in `table1`. The indicator itself is one of everybody.

    By default, the denominator after adjustment is the standard deviation before adjustment, so
    that a difference does not change because the standard deviation does. CohortMethod uses the
    current one. Both are reported.

    The variance of a difference with denominator d is, for "counts", :math:`(n_1 + n_0) / (n_1 n_0)
    + smd^2 / (2 (n_1 + n_0 - 2))`; for "weights", :math:`\sum_{arms} \sum u^2 (x - m)^2 / d^2`; for
    "strata", :math:`\sum_s \sum_{arms} (s_{sa}^2 / n_{sa}) (n_s / N)^2 / d^2`. Before adjustment it
    is "counts", or "weights" with sampling weights. After adjustment, "auto" is "counts" if all
    rows of an arm have equal weights (also for pairs, ignoring the pairing), "strata" for up to 100
    strata, and otherwise "weights".

    Parameters
    ----------
    X : Design, Dataset, data frame, sparse matrix or array (n, p)
        Covariates of the whole population, without the treatment. Categories of a data frame have
        all levels.
    adjustment : Adjustment or Population
        Its whole population is the population before adjustment.
    settings : BalanceOptions
    n_threads : int, optional

    Returns
    -------
    Balance

    Raises
    ------
    CohortError
        "BadCovariates" if X has other rows; "BadSetting"; "NoStrata" if there are no strata for
        their variance.

    Notes
    -----
    O(non-zeros), for the variance of S strata times 1 + S / 4. Kolmogorov-Smirnov statistics sort
    the values of each covariate that is not binary.

    References
    ----------
    Austin (2009), Statistics in Medicine 28, 3083-3107, doi:10.1002/sim.3697.
    Austin and Stuart (2015), Statistics in Medicine 34, 3661-3679, doi:10.1002/sim.6607, for
    variance ratios and distribution functions.
    Hedges and Olkin (1985), Statistical Methods for Meta-Analysis, for the variance by counts; the
    others, and the test against a threshold, as OHDSI's CohortMethod 6.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.5, 0.4, 0.4])
    >>> found = rs.cohort.balance([[1.0], [3.0], [0.0], [2.0]], rs.cohort.weight(people))
    >>> found.before.smd.round(3)
    array([0.707])
    """
    adjustment = start(adjustment, allow_weights=True)
    people = adjustment.population
    plain = as_design(X, people.n_rows)
    powers = 2 if settings.squares else 1
    design, sources = with_terms(plain, None, powers, settings.interactions)
    runtime = Runtime.select("auto", n_threads)
    kind = _variance_kind(settings.variance, adjustment)
    everyone = np.ones(people.n_rows, dtype=bool)
    found = _measured(design, adjustment, everyone, kind, settings, runtime)
    for columns, known in _known_terms(plain, sources):
        of_known = replace(adjustment, weight=np.where(known, adjustment.weight, 0.0))
        part = select_columns(design, columns)
        own = _measured(part, of_known, known, kind, settings, runtime)
        for name, values in own.items():
            found[name][columns] = values
    return Balance(
        names=design.names,
        keys=design.keys,
        is_binary=design.is_binary,
        before=_side(found, "before_", settings),
        after=_side(found, "after_", settings),
        generalisability_target=found["target"],
        generalisability_comparator=found["comparator"],
        generalisability_both=found["both"],
        sd=settings.sd,
        variance=kind,
        threshold=settings.threshold,
        alpha=settings.alpha,
        status=adjustment.status,
        estimand=adjustment.estimand,
        factors=design.factors,
        rows=_rows(adjustment),
        effective_sizes=_effective_sizes(adjustment),
    )


def _known_terms(
    plain: Design, sources: Mapping[int, Sequence[int]]
) -> Iterator[tuple[Index, NDArray[np.bool_]]]:
    """`known_parts`, and powers and products of their columns, of which all must be known."""
    known: dict[int, NDArray[np.bool_]] = {}
    for columns, rows in known_parts(plain):
        known |= dict.fromkeys(columns.tolist(), rows)
        yield columns, rows
    for column, factors in sources.items():
        masks = [known[j] for j in factors if j in known]
        if masks:
            yield np.array([column]), np.logical_and.reduce(masks)


def known_parts(design: Design) -> Iterator[tuple[Index, NDArray[np.bool_]]]:
    """Columns (k,) that share an indicator of missing values, and the rows (n,) without it."""
    names = [
        key if isinstance(key, str) else name
        for key, name in zip(design.keys, design.names, strict=True)
    ]
    columns_of: dict[int, list[int]] = {}
    for column, indicator in indicator_places(names).items():
        columns_of.setdefault(indicator, []).append(column)
    for indicator, columns in columns_of.items():
        missing = design.to_dense(np.array([indicator]))[:, 0]
        yield np.array(columns, dtype=np.int64), missing == 0


def _measured(
    design: Design,
    adjustment: Adjustment,
    known: NDArray[np.bool_],
    kind: str,
    settings: BalanceOptions,
    runtime: Runtime,
) -> dict[str, Features]:
    """Statistics (p,) of known rows by the names of `Side`, and differences before to after."""
    target = adjustment.population.is_target
    base = adjustment.population.sampling_weight
    everyone = np.where(known, base, 0.0)
    weights = np.column_stack(
        [np.where(arm, w, 0.0) for w in (everyone, adjustment.weight) for arm in (target, ~target)]
    )
    t0, c0, t1, c1 = arm_moments(design, weights, runtime)
    ks0, ks1 = _distances(design, (t0, c0, t1, c1), weights, runtime)
    n_target, n_comparator = (int(np.count_nonzero(known & arm)) for arm in (target, ~target))
    if adjustment.population.has_sampling_weight:
        counts = counts_of_ones(design, (known & target, known & ~target), runtime)
    else:
        counts = [_ones(t0, n_target, design), _ones(c0, n_comparator, design)]
    if adjustment.is_weighted:
        counts += counts_of_ones(design, adjustment.arms, runtime)
    else:
        counts.append(_ones(t1, adjustment.n_target, design))
        counts.append(_ones(c1, adjustment.n_comparator, design))
    unit0, unit1 = _denominator(t0, c0), _denominator(t1, c1)
    unit = unit0 if settings.sd == "before" else unit1
    variance0 = _counts_variance(_ratio(t0, c0, unit0), n_target, n_comparator)
    if adjustment.population.has_sampling_weight:
        variance0 = _over(t0.squared + c0.squared, unit0)
    if kind == "counts":
        smd = _ratio(t1, c1, unit)
        variance1 = _counts_variance(smd, adjustment.n_target, adjustment.n_comparator)
    elif kind == "weights":
        variance1 = _over(t1.squared + c1.squared, unit)
    else:
        variance1 = _over(_strata_spread(design, adjustment, runtime), unit)
    all0 = t0.pooled(c0, _portion(everyone, target))
    all1 = t1.pooled(c1, _portion(adjustment.weight, target))
    old = _Arms(t0, c0, counts[0], counts[1], ks0, design.is_binary)
    new = _Arms(t1, c1, counts[2], counts[3], ks1, design.is_binary)
    return {
        **{f"before_{n}": v for n, v in _statistics(old, unit0, variance0).items()},
        **{f"after_{n}": v for n, v in _statistics(new, unit, variance1).items()},
        "target": _ratio(t0, t1, _denominator(t0, t1)),
        "comparator": _ratio(c0, c1, _denominator(c0, c1)),
        "both": _ratio(all0, all1, np.sqrt(all0.variance)),
    }


def _distances(
    design: Design, moments: Sequence[Moments], weights: Matrix, runtime: Runtime
) -> list[Features]:
    """Kolmogorov-Smirnov statistics before and after; of zeros and ones, differences of means."""
    others = np.flatnonzero(~design.is_binary)
    found = []
    for k, own in enumerate(ecdf_gaps(design, others, weights, runtime)):
        gap = np.abs(gap_of_means(moments[2 * k].mean, moments[2 * k + 1].mean))
        gap[others] = own
        found.append(gap)
    return found


def _effective_sizes(adjustment: Adjustment) -> dict[tuple[str, str], float]:
    """Kish's sizes of both arms before and after."""
    sizes = (*start(adjustment.population).effective_sizes(), *adjustment.effective_sizes())
    return dict(zip(_rows(adjustment), sizes, strict=True))


def _rows(adjustment: Adjustment) -> dict[tuple[str, str], int]:
    """Numbers of rows of both arms before and after."""
    is_target = adjustment.population.is_target
    return {
        ("before", "target"): int(np.count_nonzero(is_target)),
        ("before", "comparator"): int(np.count_nonzero(~is_target)),
        ("after", "target"): adjustment.n_target,
        ("after", "comparator"): adjustment.n_comparator,
    }


class _Arms(NamedTuple):
    target: Moments
    comparator: Moments
    count_target: Features
    count_comparator: Features
    ks: Features
    is_binary: NDArray[np.bool_]


def _statistics(arms: _Arms, unit: Features, variance: Features) -> dict[str, Features]:
    """All of a `Side` but what depends on the threshold."""
    target, comparator = arms.target, arms.comparator
    return {
        "mean_target": target.mean,
        "mean_comparator": comparator.mean,
        "count_target": arms.count_target,
        "count_comparator": arms.count_comparator,
        "sd_target": np.sqrt(target.variance),
        "sd_comparator": np.sqrt(comparator.variance),
        "smd": _ratio(target, comparator, unit),
        "smd_current_sd": _ratio(target, comparator, _denominator(target, comparator)),
        "variance_ratio": _variance_ratio(target, comparator, arms.is_binary),
        "ks": arms.ks,
        "smd_variance": variance,
    }


def _side(found: Mapping[str, Features], word: str, settings: BalanceOptions) -> Side:
    own = {n.removeprefix(word): values for n, values in found.items() if n.startswith(word)}
    threshold, alpha = settings.threshold, settings.alpha
    p = difference_p_value(own["smd"], own["smd_variance"], threshold)
    with np.errstate(invalid="ignore"):
        fine = np.abs(own["smd"]) < threshold if alpha is None else p * p.size > alpha
    return Side(**own, p=p, balanced=fine)


def _variance_ratio(target: Moments, comparator: Moments, is_binary: NDArray[np.bool_]) -> Features:
    out = np.full(is_binary.size, np.nan)
    is_known = ~is_binary & (comparator.variance > 0)
    np.divide(target.variance, comparator.variance, out=out, where=is_known)
    return out


def _ones(moments: Moments, n: int, design: Design) -> Features:
    """Number of ones of the binary columns among n rows of equal weight."""
    count = np.rint(moments.mean * n) if n else np.zeros(design.n_features)
    return np.where(design.is_binary, count, np.nan)


def _portion(weight: Rows, arm: NDArray[np.bool_]) -> float:
    total = float(weight.sum())
    return float(weight[arm].sum()) / total if total > 0 else float("nan")


def standardised_gap(
    target: Moments, comparator: Moments, unit_target: Moments, unit_comparator: Moments
) -> Features:
    """Differences of means in units of the standard deviations of two arms, as in `balance`."""
    return _ratio(target, comparator, _denominator(unit_target, unit_comparator))


def _denominator(a: Moments, b: Moments) -> Features:
    return np.sqrt((a.variance + b.variance) / 2)


def _ratio(a: Moments, b: Moments, unit: Features) -> Features:
    """Difference of means in units: where the unit is 0, 0 for equal means, else infinite."""
    gap = gap_of_means(a.mean, b.mean)
    out = np.full(gap.size, np.nan)
    np.divide(gap, unit, out=out, where=unit > 0)
    return np.where(unit == 0, np.where(gap != 0, np.copysign(np.inf, gap), 0.0), out)


def _over(spread: Features, unit: Features) -> Features:
    out = np.full(spread.size, np.nan)
    np.divide(spread, unit**2, out=out, where=unit > 0)
    return out


def _counts_variance(smd: Features, n1: int, n0: int) -> Features:
    if n1 < 1 or n0 < 1 or n1 + n0 < 3:
        return np.full(smd.size, np.nan)
    return np.asarray((n1 + n0) / (n1 * n0) + smd**2 / (2 * (n1 + n0 - 2)))


def _strata_spread(design: Design, adjustment: Adjustment, runtime: Runtime) -> Features:
    assert adjustment.set_id is not None
    kept, target = adjustment.kept, adjustment.population.is_target
    stratum = np.zeros(kept.size, dtype=np.int64)
    stratum[kept] = np.unique(adjustment.set_id[kept], return_inverse=True)[1] + 1
    numbers, sizes = np.unique(stratum[kept], return_counts=True)
    share = dict(zip(numbers.tolist(), (sizes / sizes.sum()).tolist(), strict=True))
    total = np.zeros(design.n_features)
    for arm in (target, ~target):
        for s, variance in stratum_variances(design, stratum, arm, runtime):
            total += variance * share[s] ** 2
    return total


def difference_p_value(smd: Features, variance: Features, threshold: float) -> Features:
    """The p values (p,) of the hypothesis that absolute differences are at the threshold."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(variance)
        size = np.abs(smd)
        return np.asarray(ndtr(-(size - threshold) / error) + ndtr((-size - threshold) / error))


def _variance_kind(variance: str, adjustment: Adjustment) -> str:
    if variance == "strata" and adjustment.kind != "stratification":
        raise CohortError(
            "NoStrata",
            f"the variance of strata needs strata, but the adjustment is by {adjustment.kind}.",
            hint="use `variance='weights'`.",
        )
    if variance != "auto":
        return variance
    if adjustment.kind == "stratification":
        assert adjustment.set_id is not None
        numbers = adjustment.set_id[adjustment.kept]
        return "strata" if np.unique(numbers).size <= MOST_STRATA else "weights"
    return "weights" if adjustment.is_weighted else "counts"
