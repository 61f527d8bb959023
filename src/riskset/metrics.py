"""How well a risk score predicts: concordance."""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._errors import InputError, RisksetWarning
from riskset._types import AnyArray, Index, Rows
from riskset.data.checks import Places, as_codes, as_numbers, complain_rows
from riskset.data.outcome import Outcome
from riskset.kernels.concordance_cpu import count_pairs

__all__ = ["Concordance", "concordance", "concordance_of"]


@dataclass(frozen=True)
class Concordance:
    """Result of `concordance`.

    Attributes
    ----------
    concordance : float
        (concordant + tied_score / 2) / (concordant + discordant + tied_score); NaN without pairs.
    standard_error : float
        By the infinitesimal jackknife over rows or clusters; NaN without pairs.
    concordant, discordant, tied_score : float
        Weighted numbers of comparable pairs.
    tied_time, tied_both : float
        Weighted numbers of pairs of events at one time, with different and with equal scores;
        they do not count.
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
) -> Concordance:
    r"""Probability that of two comparable rows the one with the higher score fails first.

    Row i with an event at t is comparable with each row j of its stratum that is at risk at t and
    has no event up to t; a row censored at t is at risk at t. Pairs tied in the score count one
    half, two events at one time do not count. This is the concordance of R's `survival` for
    ``coxph``: Harrell's C, with the standard error of

    .. math:: var = \sum_i \left( w_i \, \partial C / \partial w_i \right)^2

    (sums over clusters before squaring, if given).

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv`, or scikit-survival's: event first or named so, then time; entry optional.
        Any cause counts as an event only if its code is 1 (or True).
    risk_score : (n,) numbers
        Higher means earlier events, such as a log relative hazard. May be infinite, not missing.
    sample_weight : (n,) numbers >= 0, optional
    strata : (n,) labels, optional
        Only rows of one stratum are compared.
    cluster : (n,) labels, optional
        Rows that belong together, for the standard error.

    Returns
    -------
    Concordance

    Raises
    ------
    InputError
        If lengths differ or values are missing.

    Warns
    -----
    RisksetWarning
        If no pair is comparable; the result is then NaN.

    Notes
    -----
    O(n log n) time, 100 bytes a row.

    References
    ----------
    Harrell, Califf, Pryor, Lee and Rosati (1982), JAMA 247, 2543-2546,
    doi:10.1001/jama.1982.03320430047030.
    Therneau and Atkinson, "Concordance", vignette of the R package survival.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0], [True, True, False])
    >>> rs.metrics.concordance(y, [0.9, 0.2, 0.4]).concordance
    0.6666666666666666
    """
    event, time, entry = _fields(y)
    n_rows = time.size
    score = np.asarray(risk_score, dtype=np.float64) + 0.0  # -0.0 and 0.0 are one score
    places = Places()
    if score.shape != (n_rows,):
        raise InputError(
            f"`risk_score` must have one number for each of the {n_rows:,} rows, but its shape is "
            f"{score.shape}.",
            hint="check that all arguments come from the same table.",
        )
    complain_rows(
        np.isnan(score),
        score,
        "`risk_score`",
        "must not be missing",
        places,
        hint="leave out the rows without a score.",
    )
    weight = np.ones(n_rows)
    if sample_weight is not None:
        weight = as_numbers(sample_weight, "sample_weight", n_rows, places)
        complain_rows(
            weight < 0,
            weight,
            "`sample_weight`",
            "must not be negative",
            places,
            hint="a weight of 0 removes a row.",
        )
    stratum = np.zeros(n_rows, dtype=np.int64)
    if strata is not None:
        stratum = as_codes(strata, "strata", n_rows, places)[0]
    codes = None if cluster is None else as_codes(cluster, "cluster", n_rows, places)[0]
    counts, influence = _counts(score, time, event, entry, weight, stratum)
    return _result(counts, influence * weight[:, None], codes, n_rows, int(event.sum()))


def concordance_of(outcome: Outcome, risk_score: Rows) -> Concordance:
    """`concordance` of an `Outcome`, with its cause, weights, strata and clusters."""
    counts, influence = _counts(
        risk_score + 0.0,
        outcome.time,
        outcome.is_event,
        outcome.entry,
        outcome.weight,
        outcome.stratum,
    )
    influence *= outcome.weight[:, None]
    return _result(counts, influence, outcome.cluster, outcome.n_rows, outcome.n_events)


def _fields(y: AnyArray) -> tuple[NDArray[np.bool_], Rows, Rows | None]:
    names = np.asarray(y).dtype.names
    if names is None or len(names) < 2:
        raise InputError(
            "`y` must be a structured array of events and times.",
            hint="make it with riskset.Surv(time, event).",
        )
    places = Places()
    if {"event", "time"} <= set(names):
        event_name, time_name = "event", "time"
    else:
        event_name, time_name = names[0], names[1]
    time = as_numbers(y[time_name], "time", None, places)
    if time.size == 0:
        raise InputError("`y` has no rows.", hint="check the filter before it.")
    event = as_numbers(y[event_name], "event", time.size, places) == 1
    entry = as_numbers(y["entry"], "entry", time.size, places) if "entry" in names else None
    return event, time, entry


def _counts(
    score: Rows,
    time: Rows,
    event: NDArray[np.bool_],
    entry: Rows | None,
    weight: Rows,
    stratum: Index,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    by_score = _sorted(score, np.arange(score.size), stratum)
    stratum_ptr = np.append(0, np.cumsum(np.bincount(stratum))).astype(np.int64)
    ranked = score[by_score]
    rank = np.cumsum(np.append(False, ranked[1:] != ranked[:-1]))
    rank -= np.repeat(rank[stratum_ptr[:-1]], np.diff(stratum_ptr))
    # By stratum, decreasing time, censored rows first, and increasing score.
    order = _sorted(-time, by_score[np.argsort(event[by_score], kind="stable")], stratum)
    rank_of = np.empty_like(rank)
    rank_of[by_score] = rank
    counts, by_risk = count_pairs(
        rank_of[order],
        time[order],
        event[order],
        np.zeros(0) if entry is None else entry[order],
        weight[order],
        stratum_ptr,
    )
    influence = np.empty_like(by_risk)
    influence[order] = by_risk
    return counts, influence


def _sorted(key: Rows, order: Index, stratum: Index) -> Index:
    """Rows by stratum, then by key; rows equal in both stay in the order given."""
    order = order[np.argsort(key[order], kind="stable")]
    if stratum.any():
        order = order[np.argsort(stratum[order], kind="stable")]
    return order


def _result(
    counts: NDArray[np.float64],
    influence: NDArray[np.float64],
    cluster: Index | None,
    n_rows: int,
    n_events: int,
) -> Concordance:
    pairs = float(counts[:3].sum())
    shown = tuple(counts.tolist())
    if not pairs > 0:
        warnings.warn(
            f"no pair of the {n_rows:,} rows is comparable ({n_events:,} of them have an event), "
            "so the concordance is not defined (NaN).",
            RisksetWarning,
            stacklevel=3,
        )
        return Concordance(float("nan"), float("nan"), *shown)
    value = (counts[0] + counts[2] / 2) / pairs
    change = (influence[:, 0] + influence[:, 2] / 2 - value * influence.sum(axis=1)) / pairs
    if cluster is not None:
        change = np.bincount(cluster, change)
    return Concordance(float(value), float(np.sqrt(np.sum(change**2))), *shown)
