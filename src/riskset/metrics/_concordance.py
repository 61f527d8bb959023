"""Concordance: the proportion of comparable pairs in which the higher score fails first."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError, RisksetWarning
from riskset._runtime import Runtime
from riskset._types import AnyArray, Index, Pointer, Rows
from riskset.data.causes import labels_of
from riskset.data.checks import as_time_numbers
from riskset.data.labels import as_clusters, code_columns
from riskset.data.outcome import Outcome
from riskset.kernels.concordance_cpu import count_pairs, sums_by_rank
from riskset.kernels.sorting_cpu import stable_order
from riskset.metrics._censored import Chances
from riskset.metrics._sample import (
    PLACES,
    Sample,
    choose_cause,
    distinct,
    read_fields,
    read_score,
    read_weight,
)

__all__ = ["Concordance", "concordance", "concordance_of"]


@dataclass(frozen=True)
class Concordance:
    """Result of `concordance`.

    Attributes
    ----------
    concordance : float
        (concordant + tied_score / 2) / (concordant + discordant + tied_score); NaN without pairs.
    standard_error : float
        From the infinitesimal jackknife over rows or clusters. NaN without pairs.
    concordant, discordant, tied_score : float
        Weighted numbers of comparable pairs.
    tied_time, tied_both : float
        Weighted numbers of pairs of events at one time, with different and with equal scores. These
        pairs do not count.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.metrics.concordance(rs.Surv([1.0, 2.0, 3.0], [1, 1, 0]), [0.9, 0.2, 0.4])
    >>> found.concordant, found.discordant, found.tied_score
    (2.0, 1.0, 0.0)
    >>> round(float(found), 4)
    0.6667
    """

    concordance: float
    standard_error: float
    concordant: float
    discordant: float
    tied_score: float
    tied_time: float
    tied_both: float

    def __float__(self) -> float:
        return self.concordance


def concordance(
    y: AnyArray,
    risk_score: object,
    sample_weight: object = None,
    strata: object = None,
    *,
    cluster: object = None,
    cause: int | str | None = None,
    tau: float | None = None,
    ipcw: bool = False,
    y_train: AnyArray | Outcome | None = None,
) -> Concordance:
    r"""Compute the probability that the row with the higher score of a comparable pair fails first.

    Row i with an event at t is comparable with each row j of its stratum that is at risk at t and
    has no event up to t. A row censored at t is at risk at t. Pairs with tied scores count one
    half; two events at one time do not count. This is Harrell's C, as R's `survival` computes it
    for ``coxph``. Its variance is

    .. math:: var = \sum_i \left( w_i \, \partial C / \partial w_i \right)^2

    With clusters, the terms are summed within clusters before squaring.

    With `cause`, row i is also comparable with each row that has an event of another cause at any
    time, because that row never has the event of row i (Wolbers 2009). With `tau`, only events up
    to and including tau are compared. With `ipcw`, a pair has the weight

    .. math:: \frac{w_i w_j}{G(time_i-) \, G(\min(time_i, time_j)-)}

    where G is the Kaplan-Meier estimate of the censoring distribution (events before censorings at
    the same time). C then does not depend on the censoring distribution. This is Uno's C, or with
    `cause` the C of Wolbers et al. (2014). Its standard error accounts for the estimation of G.

    Parameters
    ----------
    y : (n,) structured array
        Made by `riskset.Surv`, or by scikit-survival: the event is the first field or is named so,
        then the time; the entry is optional.
    risk_score : (n,) numbers
        Higher means earlier events, for example a log relative hazard. Infinite scores are allowed,
        missing ones are not.
    sample_weight : (n,) numbers >= 0, optional
        Case weights. G uses them, too.
    strata : (n,) labels, optional
        Only rows of one stratum are compared. G uses all rows.
    cluster : (n,) labels, optional
        Clusters of rows, for the standard error.
    cause : int or str, optional
        The event, by code or label. Events of other causes are competing events. Optional if there
        is one cause.
    tau : float, optional
        Last time of the events that are compared. With `ipcw`, choose a time at which enough rows
        are still followed, because late events have large weights.
    ipcw : bool
        Weight pairs by the inverse probability of being uncensored. Not available with late entry.
    y_train : structured array or Outcome, optional
        Rows from which G is estimated instead of `y`. G then counts as known.

    Returns
    -------
    Concordance
        With `ipcw`, the numbers of pairs use both kinds of weights.

    Raises
    ------
    InputError
        If lengths differ or values are missing. With `ipcw`, if rows enter late, or if an event is
        after the end of follow-up of the rows from which G is estimated, where G is 0 or unknown.
        Pass `tau` to leave such events out.

    Warns
    -----
    RisksetWarning
        If no pair is comparable. The result is then NaN.

    Notes
    -----
    Time is O(n log n), memory 250 bytes per row.

    References
    ----------
    Harrell, Califf, Pryor, Lee and Rosati (1982), JAMA 247, 2543-2546,
    doi:10.1001/jama.1982.03320430047030.
    Therneau and Atkinson, "Concordance", vignette of the R package survival.
    Uno, Cai, Pencina, D'Agostino and Wei (2011), Statistics in Medicine 30, 1105-1117,
    doi:10.1002/sim.4154.
    Wolbers, Koller, Witteman and Steyerberg (2009), Epidemiology 20, 555-561,
    doi:10.1097/EDE.0b013e3181a39056.
    Wolbers, Blanche, Koller, Witteman and Gerds (2014), Biostatistics 15, 526-539,
    doi:10.1093/biostatistics/kxt059.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0], [True, True, False])
    >>> rs.metrics.concordance(y, [0.9, 0.2, 0.4]).concordance
    0.6666666666666666

    The row with an event of cause 2 at time 1 never has an event of cause 1, so it should have the
    lowest score:

    >>> y = rs.Surv([1.0, 2.0, 3.0], [2, 1, 0])
    >>> rs.metrics.concordance(y, [0.1, 0.9, 0.4], cause=1).concordance
    1.0
    """
    code, time, entry = read_fields(y)
    n_rows = time.size
    last = np.inf if tau is None else float(as_time_numbers([tau], "tau", 1, PLACES)[0])
    score = read_score(risk_score, n_rows)
    stratum = np.zeros(n_rows, dtype=np.int64)
    if strata is not None:
        stratum = code_columns(strata, "strata", n_rows, PLACES)[0]
    if ipcw:
        sample = Sample.read(y, cause, sample_weight, cluster)
        return _weighted(sample, score, stratum, last, Chances.estimate(sample, y_train))
    if y_train is not None:
        raise InputError(
            "`y_train` is where the distribution of censoring is estimated, but `ipcw` is False.",
            hint="pass `ipcw=True`, or leave `y_train` out.",
        )
    weight = read_weight(sample_weight, n_rows)
    codes = None if cluster is None else as_clusters(cluster, n_rows, PLACES, weight)[0]
    chosen = choose_cause(cause, code.astype(np.int64), labels=labels_of(y))
    time = _after_all(time, (code > 0) & (code != chosen))
    event = (code == chosen) & (time <= last)
    counts, influence, order = _counts(score, time, event, entry, weight, stratum)
    codes = None if codes is None else codes[order]
    return _result(counts, influence, codes, n_rows, int(event.sum()))


def concordance_of(
    outcome: Outcome, risk_score: Rows, *, competing_stay: bool = False
) -> Concordance:
    """Compute the `concordance` of an `Outcome` with its cause, weights, strata and clusters.

    Rows with a competing event stay comparable after it (as with `cause`), or count as censored.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> outcome = rs.Outcome.build([1.0, 2.0, 3.0], [1, 1, 0])
    >>> round(rs.metrics.concordance_of(outcome, np.array([0.9, 0.2, 0.4])).concordance, 4)
    0.6667
    """
    time = outcome.time
    if competing_stay:
        time = _after_all(time, (outcome.event > 0) & ~outcome.is_event)
    counts, influence, order = _counts(
        risk_score + 0.0,
        time,
        outcome.is_event,
        outcome.entry,
        outcome.weight,
        outcome.stratum,
    )
    cluster = None if outcome.cluster is None else outcome.cluster[order]
    return _result(counts, influence, cluster, outcome.n_rows, outcome.n_events)


def _after_all(time: Rows, is_competing: NDArray[np.bool_]) -> Rows:
    # Who can no longer have the event outlives every event.
    return np.where(is_competing, np.inf, time)


def _counts(
    score: Rows,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows | None,
    weight: Rows,
    stratum: Index,
) -> tuple[NDArray[np.float64], NDArray[np.float64], Index]:
    """Numbers of pairs, and each row's part in them; the rows that they are of, in that order."""
    # By stratum, decreasing time, and censored rows first.
    order = np.concatenate([np.flatnonzero(~event), np.flatnonzero(event)])
    order = _sorted(-time, order, stratum)
    weight = weight[order]
    counts, influence = count_pairs(
        score[order],
        time[order],
        event[order],
        np.zeros(0) if entry is None else entry[order],
        weight,
        _ends_of(stratum),
        Runtime.select(),
    )
    influence *= weight[:, None]
    return counts, influence, order


def _ends_of(stratum: Index) -> Pointer:
    """Where strata end when rows stand by them."""
    return np.append(0, np.cumsum(np.bincount(stratum))).astype(np.int64)


def _ranks(score: Rows, stratum: Index) -> tuple[Index, Index, Pointer]:
    """Ranks within strata, from 0 and equal for ties; rows by stratum and score; the strata."""
    by_score = _sorted(score, np.arange(score.size), stratum)
    stratum_ptr = _ends_of(stratum)
    ranked = score[by_score]
    in_order = np.cumsum(np.append(False, ranked[1:] != ranked[:-1]))
    in_order -= np.repeat(in_order[stratum_ptr[:-1]], np.diff(stratum_ptr))
    rank = np.empty_like(in_order)
    rank[by_score] = in_order
    return rank, by_score, stratum_ptr


def _sorted(key: Rows, order: Index, stratum: Index) -> Index:
    """Rows by stratum, then by key; rows equal in both stay in the order given."""
    runtime = Runtime.select()
    order = order[stable_order(key[order], runtime)]
    if stratum.any():
        order = order[stable_order(stratum[order].astype(np.float64), runtime)]
    return order


def _result(
    counts: NDArray[np.float64],
    influence: NDArray[np.float64],
    cluster: Index | None,
    n_rows: int,
    n_events: int,
    *,
    depth: int = 3,
) -> Concordance:
    pairs = float(counts[:3].sum())
    shown = tuple(counts.tolist())
    if not pairs > 0:
        warnings.warn(
            f"no pair of the {n_rows:,} rows is comparable ({n_events:,} of them have an event), "
            "so the concordance is not defined (NaN).",
            RisksetWarning,
            stacklevel=depth,
        )
        return Concordance(float("nan"), float("nan"), *shown)
    value = (counts[0] + counts[2] / 2) / pairs
    # A pair agrees by 1, 0 or 1/2.
    agree, differ, tie = influence.T
    change = (agree * (1.0 - value) - differ * value + tie * (0.5 - value)) / pairs
    if cluster is not None:
        change = np.bincount(cluster, change)
    return Concordance(float(value), float(np.sqrt(np.sum(change**2))), *shown)


def _weighted(
    sample: Sample, score: Rows, stratum: Index, last: float, chances: Chances
) -> Concordance:
    """Concordance of pairs that weigh the more, the likelier they are to be censored."""
    w, n_rows, runtime = sample.weight, sample.n_rows, Runtime.select()
    case = sample.is_case & (sample.time <= last)
    competing = sample.is_competing & (sample.time <= last)
    rank, _, ptr = _ranks(score, stratum)
    when = distinct(sample.time)[1]
    # Of rows at one time, those without the event come after the events: they outlive them.
    key = 2 * when + ~case
    needed = _in_pairs(case, competing, key, when, stratum, w > 0)
    # Events that enter no pair may be tied with each other, which is counted where G is known.
    needed |= (case | competing) & (chances.chance_before_end > 0)
    inverse = chances.inverse_before_end(needed, "tau")
    up = _sorted(key.astype(np.float64), np.arange(n_rows), stratum)
    down = _sorted(-key.astype(np.float64), np.arange(n_rows), stratum)

    def sums(order: Index, key: Index, weight: Rows, asks: NDArray[np.bool_]) -> Rows:
        found = np.empty((n_rows, 3))
        args = (rank[order], key[order], weight[order], asks[order], ptr)
        found[order] = sums_by_rank(*args, runtime)
        return found

    of_case = np.where(case, w * inverse, 0.0)
    everyone = np.ones(n_rows, dtype=np.bool_)
    # For a case, rows below it are in order; for the other row of a pair, cases above it.
    outliving = sums(down, -key, w, case)[:, [0, 2, 1]]
    outlived = sums(up, key, of_case * inverse, everyone)[:, [2, 0, 1]]
    gone = leaving = np.zeros((n_rows, 3))
    if competing.any():
        gone = sums(up, when, np.where(competing, w * inverse, 0.0), case)[:, [0, 2, 1]]
        leaving = sums(down, -when, of_case, competing)[:, [2, 0, 1]]
    v = inverse[:, None]
    counts = np.append((of_case[:, None] * (v * outliving + gone)).sum(axis=0), [0.0, 0.0])
    counts[3:] = _ties(of_case, stratum * (when.max() + 1) + when, rank)
    influence = v * (v * outliving + gone + leaving) + outlived
    pairs = counts[:3].sum()
    if pairs > 0:
        agreement = np.array([1.0, 0.0, 0.5]) - (counts[0] + counts[2] / 2) / pairs
        # A pair of rows alive divides by G(time_i-) twice, so it counts twice for log G.
        through = -w * ((v * (2 * v * outliving + gone + leaving)) @ agreement) / pairs
        direct = influence @ agreement / pairs
        direct += chances.through_curve(through, chances.steps_before_end)
        error = sample.standard_error(direct)
    else:
        error = float("nan")
    result = _result(counts, influence, None, n_rows, int(case.sum()), depth=4)
    return replace(result, standard_error=error)


def _in_pairs(
    case: NDArray[np.bool_],
    competing: NDArray[np.bool_],
    key: Index,
    when: Index,
    stratum: Index,
    used: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Cases and competing events whose own chance of being uncensored enters a pair (n,).

    A case needs a row of its stratum that outlives it, or a competing event before it; a competing
    event needs a later case. `key` orders rows by time, cases first.
    """

    def extreme(rows: NDArray[np.bool_], values: Index, start: int, ufunc: np.ufunc) -> Index:
        found = np.full(int(stratum.max()) + 1, start, dtype=np.int64)
        ufunc.at(found, stratum[rows], values[rows])
        return found[stratum]

    last = extreme(used, key, -1, np.maximum)
    first_competing = extreme(used & competing, when, int(when.max()) + 1, np.minimum)
    last_case = extreme(used & case, when, -1, np.maximum)
    with_pair = case & ((key < last) | (first_competing < when))
    return np.asarray(used & (with_pair | (competing & (when < last_case))))


def _ties(of_case: Rows, moment: Index, rank: Index) -> tuple[float, float]:
    """Pairs of events at one time, with different and with equal scores."""
    cases = np.flatnonzero(of_case)
    _, by_time = np.unique(moment[cases], return_inverse=True)
    _, by_both = np.unique(
        by_time.reshape(-1) * (rank.max() + 1) + rank[cases], return_inverse=True
    )
    e = of_case[cases]

    def pairs(group: Index) -> float:
        total, squares = np.bincount(group, e), np.bincount(group, e**2)
        several = np.bincount(group) > 1
        return float((total**2 - squares)[several].sum() / 2)

    both = pairs(by_both.reshape(-1)) if cases.size else 0.0
    return (pairs(by_time.reshape(-1)) - both if cases.size else 0.0), both
