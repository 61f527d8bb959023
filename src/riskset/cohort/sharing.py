"""What of a study's results may leave the house: without small counts, and blind if need be."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from riskset._types import AnyArray
from riskset.cohort.balancing import Balance
from riskset.cohort.curves import ArmCurves
from riskset.cohort.estimate import Estimate
from riskset.cohort.outcomes import ArmCounts
from riskset.cohort.risks import RiskDifference
from riskset.cohort.small_cells import hide_small, is_small

__all__ = [
    "share_balance",
    "share_curves",
    "share_estimate",
    "share_risks",
    "share_row",
    "share_subgroups",
]

ARMS = ("target", "comparator")
EFFECT = ("hr", "hr_lower", "hr_upper", "p", "one_sided_p", "log_hr", "se", "llr")
EFFECT_IN_SUBGROUP = ("log_ratio", "lower", "upper", "se", "p", "log_hr", "se_log_hr")
RATES = tuple(f.name for f in fields(ArmCounts) if "rate" in f.name)


def share_estimate(
    estimate: Estimate, *, min_cell_count: int = 5, blind: bool = False
) -> dict[str, object]:
    """The row of an estimate as it may be shown; ask for that of its `sensitivity` alike.

    Parameters
    ----------
    min_cell_count : int
        Counts above 0 and below it are hidden, with the rates and the detectable ratio that tell
        them; with fewer outcomes than that in both arms together, the effect, too.
    blind : bool
        Withhold the effect, because diagnostics failed.

    Returns
    -------
    dict
        As `Estimate.columns`; what is hidden is None, ``suppressed`` lists its names, and
        ``blinded`` says whether the effect is withheld.
    """
    shown = share_row(estimate.columns(), min_cell_count=min_cell_count)
    withheld = dict.fromkeys(EFFECT) if blind else {}
    return shown | withheld | {"blinded": blind}


def share_row(row: Mapping[str, Any], *, min_cell_count: int = 5) -> dict[str, Any]:
    """A row with the counts of both arms, and perhaps an effect, as it may be shown.

    Parameters
    ----------
    row : mapping
        As `Estimate.columns`; of columns that it lacks nothing can be hidden.
    """
    hidden: set[str] = set()
    for arm in ARMS:
        names = ("persons", "exposures", "outcomes", "competing")
        small = {n for n in names if is_small(row[f"{arm}_{n}"], min_cell_count)}
        if small & {"persons", "exposures"} and row[f"{arm}_persons"] == row[f"{arm}_exposures"]:
            small |= {"persons", "exposures"}
        if small:
            hidden |= {f"{arm}_{name}" for name in small}
        if "outcomes" in small:
            # Days times a rate are the outcomes, and so is the detectable ratio less the other arm.
            hidden |= {f"{arm}_{name}" for name in RATES} | {"mdrr", "expected_se"}
    if is_small(sum(row[f"{arm}_outcomes"] for arm in ARMS), min_cell_count):
        hidden |= set(EFFECT)
    strata = row.get("informative_strata")
    if strata is not None and is_small(strata, min_cell_count):
        hidden.add("informative_strata")
    hidden &= set(row)
    shown = {name: None if name in hidden else value for name, value in row.items()}
    return shown | {"suppressed": ", ".join(sorted(hidden))}


def share_balance(balance: Balance, *, min_cell_count: int = 5) -> dict[str, AnyArray]:
    """The table of a balance without small counts, and without the shares that tell them.

    Standardised differences stay.
    """
    columns = balance.columns()
    for side in ("before", "after"):
        for arm in ARMS:
            small = is_small(columns[f"{side}_count_{arm}"], min_cell_count)
            for name in ("count", "mean", "sd"):
                key = f"{side}_{name}_{arm}"
                columns[key] = np.where(small, np.nan, columns[key])
            columns[f"{side}_count_{arm}_suppressed"] = small
    return columns


def share_curves(
    curves: ArmCurves, times: object, *, min_cell_count: int = 5
) -> dict[str, AnyArray]:
    """Curves at times, up to the last one at which each arm has enough people at risk."""
    columns = curves.columns(times)
    enough = columns["people_at_risk"] >= min_cell_count
    short = columns["time"][~enough]
    end = short.min() if short.size else np.inf
    return {name: values[columns["time"] < end] for name, values in columns.items()}


def share_subgroups(
    estimate: Estimate, *, min_cell_count: int = 5, blind: bool = False
) -> dict[str, AnyArray]:
    """The subgroups of an estimate as they may be shown, a row for each.

    A count is hidden if it is small, or if that of all the others is, which the total of the arm
    would tell; with fewer outcomes than that in a subgroup, or outside it, its effect, too.

    Parameters
    ----------
    min_cell_count, blind
        As of `share_estimate`.

    Returns
    -------
    dict
        As `Estimate.subgroup_columns`; what is hidden is None, and True in the column of the same
        name with ``_suppressed``.
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
    for name in EFFECT_IN_SUBGROUP:
        columns[name][few | blind] = None
    return columns


def share_risks(
    risks: RiskDifference, *, min_cell_count: int = 5, blind: bool = False
) -> dict[str, AnyArray]:
    """Risks by some times without those of few people.

    Where an arm has fewer people at risk, or with the outcome, its risk and the difference are
    hidden. Risks that are not known, because nobody is followed so long, stay NaN.

    Parameters
    ----------
    min_cell_count, blind
        As of `share_estimate`; only the difference is then withheld.

    Returns
    -------
    dict
        As `RiskDifference.columns`; what is hidden is None.
    """
    columns = {name: values.astype(object) for name, values in risks.columns().items()}
    either = np.zeros(risks.times.size, dtype=bool)
    for arm in ARMS:
        outcomes, at_risk = (getattr(risks, f"{arm}_{name}") for name in ("outcomes", "at_risk"))
        small = is_small(outcomes, min_cell_count)
        thin = at_risk < min_cell_count
        columns[arm][(small | thin) & ~np.isnan(getattr(risks, arm))] = None
        columns[f"{arm}_outcomes"][small] = None
        columns[f"{arm}_at_risk"][is_small(at_risk, min_cell_count)] = None
        either |= small | thin
    for name in ("difference", "se", "lower", "upper"):
        columns[name][(either & ~np.isnan(risks.difference)) | blind] = None
    return columns
