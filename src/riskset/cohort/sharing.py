"""Disclosure control for results of a study.

The rules are those of `riskset.disclosure`, as for shared results and reports of studies.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from riskset._types import AnyArray
from riskset.cohort.arms.augmented_estimates import DoublyRobustEstimates
from riskset.cohort.arms.curves import ArmCurves
from riskset.cohort.arms.restricted_means import ArmRestrictedMeans
from riskset.cohort.arms.risks import RiskDifference
from riskset.cohort.arms.standardization import ModelledEstimates, StandardizedEstimates
from riskset.cohort.covariates.baseline_table import Table1
from riskset.cohort.covariates.covariate_balance import Balance
from riskset.cohort.effects.estimate import Estimate
from riskset.disclosure.arms import EFFECT, hidden_in_arms, is_plain_ratio, suppressed_in
from riskset.disclosure.covariates import hidden_in_balance
from riskset.disclosure.engine import Disclosure
from riskset.disclosure.known_counts import KnownOfArm, events_apart
from riskset.disclosure.over_time import (
    OF_RESTRICTED_MEAN,
    hidden_in_restricted_means,
    hidden_in_risks,
)
from riskset.disclosure.rows import ARMS, known
from riskset.disclosure.small_cells import hide_small, is_small
from riskset.results.rows import TABLES, AdjustmentRow, AttritionRow, BalanceRow, CharacteristicRow

__all__ = [
    "share_balance",
    "share_curves",
    "share_estimate",
    "share_restricted_means",
    "share_risks",
    "share_standardized",
    "share_subgroups",
    "share_table1",
]

EFFECT_IN_SUBGROUP = ("log_ratio", "lower", "upper", "se", "p", "log_hr", "se_log_hr")


def share_estimate(
    estimate: Estimate, *, min_cell_count: int = 5, blind: bool = False
) -> dict[str, object]:
    """Return the row of an estimate without small counts.

    Parameters
    ----------
    min_cell_count : int
        Hide counts above 0 and below this number, with the rates and the minimum detectable hazard
        ratio from which they follow. With fewer outcomes in both arms together, hide the effect,
        too. An odds or rate ratio without weights, sets and covariates is hidden if the outcomes of
        either arm are.
    blind : bool
        Withhold the effect, for example because diagnostics failed.

    Returns
    -------
    dict
        As `Estimate.columns`. Hidden values are None, ``suppressed`` lists their names, and
        ``blinded`` says whether the effect is withheld.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0, 1, 0])
    >>> estimate = rs.cohort.fit_outcome(rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0]), people)
    >>> shared = rs.cohort.share_estimate(estimate)
    >>> shared["target_outcomes"], shared["hr"]
    (None, None)
    """
    row = estimate.columns()
    plain = is_plain_ratio(
        estimate.model,
        estimate.reading,
        is_adjusted=estimate.estimand is not None,
        has_covariates=bool(estimate.coef.any()),
    )
    (hidden,) = hidden_in_arms([row], min_cell_count, plain=[plain])
    withheld = dict.fromkeys(EFFECT) if blind else {}
    shown = row | dict.fromkeys(hidden & set(row)) | {"suppressed": suppressed_in(row, hidden)}
    return shown | withheld | {"blinded": blind}


def share_balance(balance: Balance, *, min_cell_count: int = 5) -> dict[str, AnyArray]:
    """Return the table of a balance without small counts.

    A binary covariate is hidden in an arm if few people have it, or few do not, and every covariate
    in an arm of few people, or in which few values of it are missing. All its differences
    are then hidden before and after the adjustment, because together with the other counts they
    reveal the hidden count. ``before_balanced`` and ``after_balanced`` still say on which side of
    the threshold they are.

    Returns
    -------
    dict
        As `Balance.columns`. Hidden values are NaN, and True in the column with the suffix
        ``_suppressed``.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1] * 20 + [0] * 20)
    >>> x = np.zeros((40, 2))
    >>> x[:8, 0] = x[20:32, 0] = x[:2, 1] = 1
    >>> shared = rs.cohort.share_balance(rs.cohort.balance(x, people))
    >>> shared["before_count_target"], shared["before_count_target_suppressed"]
    (array([ 8., nan]), array([False,  True]))
    """
    columns = balance.columns()
    names = list(columns)
    rows = [
        {name: known(value) for name, value in zip(names, values, strict=True)}
        for values in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    hidden = hidden_in_balance(rows, balance.rows, min_cell_count, balance.threshold, balance.sd)
    for name in dict.fromkeys(name for own in hidden for name in sorted(own)):
        mask = np.array([name in own for own in hidden], dtype=bool)
        columns[name] = np.where(mask, np.nan, columns[name])
    for side in ("before", "after"):
        for arm in ARMS:
            key = f"{side}_count_{arm}"
            columns[f"{key}_suppressed"] = np.array([key in own for own in hidden], dtype=bool)
        key = f"{side}_smd"
        columns[f"{key}_suppressed"] = np.array([key in own for own in hidden], dtype=bool)
    return columns


def share_table1(table: Table1, *, min_cell_count: int = 5) -> Table1:
    """Return Table 1 without small counts.

    A line hides what `share_balance` hides of its covariate. If the count of missing values is
    hidden, so are the numbers above it, and the SMD of a category is hidden if that of a level is.
    Medians and quartiles of fewer people are hidden.

    Parameters
    ----------
    table : Table1
    min_cell_count : int
        Counts above 0 and below this number are small.

    Returns
    -------
    Table1
        Hidden numbers are None, and a dash where the table is printed. Its `balance` has all
        numbers.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1] * 50 + [0] * 50)
    >>> gout = [[1.0]] * 3 + [[0.0]] * 47 + [[1.0]] * 20 + [[0.0]] * 30
    >>> table = rs.cohort.table1(gout, people)
    >>> table.rows[1].before.target_count
    3
    >>> rs.cohort.share_table1(table).rows[1].before.target_count is None
    True
    """
    tables: dict[str, list[Any]] = {
        "table1": [replace(row, adjustment=1) for row in table.rows],
        "balance": _balance_rows(table.balance),
        "attrition": [
            AttritionRow(adjustment=1, number=k, **asdict(step))
            for k, step in enumerate(table.adjustment.attrition, start=1)
        ],
        "adjustments": [_adjustment_row(table)],
    }
    results = Disclosure(lambda name: tables.get(name, []), TABLES, min_cell_count)
    return replace(table, rows=tuple(results.shown(CharacteristicRow)))


def _balance_rows(balance: Balance) -> list[BalanceRow]:
    columns = {name: values.tolist() for name, values in balance.columns().items()}
    category = {name: k for k, factor in enumerate(balance.factors, start=1) for name in factor}
    rows = []
    for values in zip(*columns.values(), strict=True):
        row = {name: known(value) for name, value in zip(columns, values, strict=True)}
        of = {"adjustment": 1, "category": category.get(str(row["name"]))}
        rows.append(BalanceRow.of(row | of | {"covariate_id": str(row["covariate_id"])}))
    return rows


def _adjustment_row(table: Table1) -> AdjustmentRow:
    made, balance = table.adjustment, table.balance
    target, comparator = made.effective_sizes()
    return AdjustmentRow(
        adjustment=1,
        target_rows=made.n_target,
        comparator_rows=made.n_comparator,
        target_effective=target,
        comparator_effective=comparator,
        threshold=balance.threshold,
        sd=balance.sd,
    )


def share_curves(
    curves: ArmCurves, times: object, *, min_cell_count: int = 5
) -> dict[str, AnyArray]:
    """Return curves at given times without small counts.

    Curves end at the last time at which each arm has enough people at risk. If an arm has few
    events between two times, one of them is left out, because the curve would reveal the number.
    The same holds before the first time and after the last.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0] * 20)
    >>> y = rs.Surv(range(1, 41), [1] * 40)
    >>> curves = rs.cohort.survival(y, people)
    >>> rs.cohort.share_curves(curves, [2, 20, 38])["time"]
    array([20., 20.])
    """
    columns = curves.columns(times)
    enough = columns["people_at_risk"] >= min_cell_count
    short = columns["time"][~enough]
    end = short.min() if short.size else np.inf
    keep = columns["time"] < end
    causes = columns.get("cause", np.ones(keep.size, dtype=np.int64))
    for arm in ARMS:
        for cause in np.unique(causes):
            own = np.flatnonzero(keep & (columns["arm"] == arm) & (causes == cause))
            own = own[np.argsort(columns["time"][own], kind="stable")]
            events = curves.events(arm, int(cause), columns["time"][own])
            total = curves.events(arm, int(cause), np.array([np.inf]))
            keep[own] = False
            keep[own[events_apart(events, total, min_cell_count)]] = True
    return {name: values[keep] for name, values in columns.items()}


def share_subgroups(
    estimate: Estimate, *, min_cell_count: int = 5, blind: bool = False
) -> dict[str, AnyArray]:
    """Return the subgroups of an estimate without small counts, one row per subgroup.

    A count is hidden if it is small, or if the count of all other people of the arm is, which
    follows from the total. Its effect is then hidden as well, because the precision reveals the
    count. An effect is also hidden with fewer outcomes in a subgroup, or outside of it.

    Parameters
    ----------
    min_cell_count, blind
        As of `share_estimate`.

    Returns
    -------
    dict
        As `Estimate.subgroup_columns`. Hidden values are None, and True in the column with the
        suffix ``_suppressed``.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0] * 20)
    >>> young = rs.Design.from_columns({"young": [1.0] * 4 + [0.0] * 36})
    >>> y = rs.Surv(range(1, 41), [1] * 40)
    >>> estimate = rs.cohort.fit_outcome(y, people, interactions=young)
    >>> shared = rs.cohort.share_subgroups(estimate)
    >>> shared["target_persons"], shared["log_ratio"]
    (array([None], dtype=object), array([None], dtype=object))
    """
    columns = estimate.subgroup_columns()
    few = np.zeros(len(estimate.subgroups), dtype=bool)
    for name in ("persons", "outcomes"):
        inside = outside = np.zeros(few.size)
        for arm in ARMS:
            key = f"{arm}_{name}"
            own = columns[key].astype(np.float64)
            total = float(getattr(getattr(estimate, arm), name))
            hidden = [
                hide_small([total, n, total - n], [(0, (1, 2))], min_cell_count)[1] for n in own
            ]
            columns[f"{key}_suppressed"] = np.array(hidden, dtype=bool)
            columns[key][hidden] = None
            inside, outside = inside + own, outside + total - own
        if name == "outcomes":
            few = is_small(inside, min_cell_count) | is_small(outside, min_cell_count)
            for arm in ARMS:
                few |= columns[f"{arm}_outcomes_suppressed"]
    for name in EFFECT_IN_SUBGROUP:
        columns[name][few | blind] = None
    return columns


def share_risks(
    risks: RiskDifference, *, min_cell_count: int = 5, blind: bool = False
) -> dict[str, AnyArray]:
    """Return risks at given times without small counts.

    If an arm has few people at risk, or few with the outcome, its risk, its number of outcomes and
    the difference are hidden. If the numbers of two times differ by few, those of the later time
    are hidden. Risks after the end of follow-up are NaN.

    Parameters
    ----------
    min_cell_count, blind
        As for `share_estimate`. `blind` withholds only the difference.

    Returns
    -------
    dict
        As `RiskDifference.columns`. Hidden values are None.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0] * 20)
    >>> y = rs.Surv(range(1, 41), [1] * 40)
    >>> risks = rs.cohort.risk_difference(y, people, [2, 20, 22], replicates=50)
    >>> rs.cohort.share_risks(risks)["target_outcomes"]
    array([None, 10, None], dtype=object)
    """
    columns = {name: values.astype(object) for name, values in risks.columns().items()}
    columns |= {f"{arm}_risk": columns[arm] for arm in ARMS}
    columns |= {f"difference_{end}": columns[end] for end in ("se", "lower", "upper")}
    of_difference = {name for name in columns if name.startswith("difference")}
    for k, names in enumerate(_hidden(columns, hidden_in_risks, min_cell_count)):
        _hide(columns, k, names | (of_difference if "difference" in names else set()))
        for name in of_difference if blind else ():
            columns[name][k] = None
    return {name: columns[name] for name in risks.columns()}


def _hidden(
    columns: Mapping[str, AnyArray], rule: Callable[..., list[set[str]]], least: int
) -> Iterator[set[str]]:
    """Names to hide in each row, for both arms."""
    rows = [
        {name: known(value) for name, value in zip(columns, values, strict=True)}
        for values in zip(*columns.values(), strict=True)
    ]
    for of_arms in zip(*(rule(rows, arm, least, KnownOfArm()) for arm in ARMS), strict=True):
        yield set().union(*of_arms)


def _hide(columns: Mapping[str, AnyArray], k: int, names: Iterable[str]) -> None:
    for name in names:
        if name in columns and known(columns[name][k]) is not None:
            columns[name][k] = None


def share_restricted_means(
    means: ArmRestrictedMeans, *, min_cell_count: int = 5, blind: bool = False
) -> dict[str, AnyArray]:
    """Return restricted means of the arms without small counts.

    If an arm has few people at risk at a horizon, or few with an event of the measure by then, its
    mean, the difference and the ratio are hidden. If few have an event between two horizons, the
    mean up to the later one is hidden. Numbers of people are left out, because they would differ by
    few from those of other tables. Means after the end of follow-up are NaN.

    Parameters
    ----------
    min_cell_count, blind
        As for `share_estimate`. `blind` withholds the means of both arms, too.

    Returns
    -------
    dict
        As `ArmRestrictedMeans.columns`, without numbers of people. Hidden values are None.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0] * 20)
    >>> y = rs.Surv(range(1, 41), [1] * 40)
    >>> means = rs.cohort.restricted_mean(y, people, [2, 20, 22])
    >>> rs.cohort.share_restricted_means(means)["target"][:3]
    array([None, 15.0, None], dtype=object)
    """
    return _shared_estimates(means, min_cell_count, blind)


def share_standardized(
    estimates: StandardizedEstimates | DoublyRobustEstimates,
    *,
    min_cell_count: int = 5,
    blind: bool = False,
) -> dict[str, AnyArray]:
    """Return standardised or doubly robust estimates without small counts.

    They are hidden by the rule of `share_restricted_means`: if an arm has few people at risk at a
    time, few with an event of the measure by then, or few more than by an earlier time.

    Parameters
    ----------
    estimates : StandardizedEstimates or DoublyRobustEstimates
    min_cell_count, blind
        As for `share_restricted_means`.

    Returns
    -------
    dict
        As `StandardizedEstimates.columns`, without numbers of people. Hidden values are None.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0] * 20)
    >>> y = rs.Surv(range(1, 41), [1] * 40)
    >>> x = [[k % 3] for k in range(40)]
    >>> found = rs.cohort.standardize(y, people, x, [2, 20, 22])
    >>> shared = rs.cohort.share_standardized(found)
    >>> [number is None for number in shared["target"][:3]]
    [True, False, True]
    """
    return _shared_estimates(estimates, min_cell_count, blind)


def _shared_estimates(
    found: ArmRestrictedMeans | ModelledEstimates, least: int, blind: bool
) -> dict[str, AnyArray]:
    columns = {name: values.astype(object) for name, values in found.columns().items()}
    columns |= {f"{arm}_mean": columns[arm] for arm in ARMS}  # the same arrays
    for k, names in enumerate(_hidden(columns, hidden_in_restricted_means, least)):
        _hide(columns, k, names)
        for name in OF_RESTRICTED_MEAN if blind else ():
            columns[name][k] = None
    gone = [
        f"{arm}_{what}" for arm in ARMS for what in ("outcomes", "competing", "at_risk", "mean")
    ]
    return {name: values for name, values in columns.items() if name not in gone}
