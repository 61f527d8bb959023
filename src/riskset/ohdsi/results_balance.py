"""Balance, covariates and propensity scores of a study as rows of OHDSI's results data model."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from riskset.disclosure.rows import ARMS, names_hidden
from riskset.ohdsi.results_ids import covariate_number
from riskset.ohdsi.shared_study import SharedStudy
from riskset.omop.analyses import ANALYSES
from riskset.results.rows import (
    AdjustmentRow,
    BalanceRow,
    RunRow,
    ScoreCoefficientRow,
    ScoreRow,
)

__all__ = [
    "balance_rows",
    "covariate_analysis_rows",
    "covariate_rows",
    "propensity_rows",
    "shared_balance_rows",
]

Row = dict[str, Any]
Sizes = dict[tuple[str, str], int]
"""People by ("before" or "after", arm)."""
SIDES = ("before", "after")
OF_DATA = 0
"""Number of the kind of covariates that belong to no analysis of FeatureExtraction."""
INTERCEPT = 0
"""Number of the intercept among the covariates of a propensity score."""


def balance_rows(shared: SharedStudy) -> Iterator[Row]:
    """Covariates of the people followed to each outcome of interest."""
    for run in shared.runs(of_interest=True):
        for row in _of_adjustment(shared, run.adjustment):
            yield shared.of_run(run) | row


def shared_balance_rows(shared: SharedStudy) -> Iterator[Row]:
    """Covariates of the people whom all outcomes of a comparison share."""
    for run in _first_runs(shared):
        for row in _of_adjustment(shared, run.shared_adjustment):
            yield shared.of_comparison(run) | row


def _first_runs(shared: SharedStudy) -> Iterator[RunRow]:
    """The first run of each analysis of a comparison."""
    done = set()
    for run in shared.runs():
        key = (run.target, run.comparator, run.analysis)
        if key not in done:
            done.add(key)
            yield run


def _of_adjustment(shared: SharedStudy, adjustment: int | None) -> Iterator[Row]:
    rows = shared.rows(BalanceRow, adjustment=adjustment)
    sizes = _sizes(shared, adjustment, rows)
    for row in rows:
        yield {"covariate_id": covariate_number(row.covariate_id)} | _balance_of(shared, row, sizes)


def _balance_of(shared: SharedStudy, row: BalanceRow, sizes: Sizes) -> Row:
    """Numbers of a covariate."""
    found: Row = {}
    for side in SIDES:
        is_hidden = False
        for arm in ARMS:
            name = f"{side}_mean_{arm}"
            mean = row[name]
            if mean is None and name in names_hidden(row):
                is_hidden = True
                mean = _mark(shared, [sizes.get((side, arm))])
            found[f"{arm}_mean_{side}"] = mean
        of_both = [sizes.get((side, arm)) for arm in ARMS]
        mean = _mean_before(row, sizes) if side == "before" else _mean_after(row, sizes)
        found[f"mean_{side}"] = _mark(shared, of_both) if is_hidden else mean
        found[f"std_diff_var_{side}"] = row[f"{side}_smd_variance"]
        balanced = row[f"{side}_balanced"]
        found[f"balanced_{side}"] = None if balanced is None else int(balanced)
    found["std_diff_before"] = row.before.smd
    found["std_diff_after"] = row.after.smd_current_sd
    for arm in ARMS:
        found[f"{arm}_std_diff"] = row[f"generalisability_{arm}"]
    found["target_comparator_std_diff"] = row.generalisability_both
    return found


def _mark(shared: SharedStudy, sizes: Sequence[int | None]) -> float | None:
    """A hidden mean: minus the smallest count that is shown over the people.

    With many people that would be rounded to 0, so it is rounded away from 0.
    """
    known = [n for n in sizes if n]
    if not shared.mark or len(known) < len(sizes):
        return None
    return -math.ceil(1000 * shared.mark / sum(known)) / 1000


def _sizes(shared: SharedStudy, adjustment: int | None, rows: Sequence[BalanceRow]) -> Sizes:
    """People of both arms before and after, as far as what is shown says how many they are.

    Before an adjustment, a count and the share of the same people reveal their number.
    """
    sizes: Sizes = {}
    for arm in ARMS:
        names = (f"before_count_{arm}", f"before_mean_{arm}")
        known = [(row[names[0]], row[names[1]]) for row in rows]
        largest = max(((n, mean) for n, mean in known if n and mean), default=None)
        if largest is not None:
            sizes["before", arm] = round(largest[0] / largest[1])
    for of in shared.rows(AdjustmentRow, adjustment=adjustment):
        for arm in ARMS:
            n = of[f"{arm}_rows"]
            if n is not None:
                sizes["after", arm] = n
    return sizes


def _mean_before(row: BalanceRow, sizes: Sizes) -> float | None:
    """Mean of both groups together."""
    n = [sizes.get(("before", arm)) for arm in ARMS]
    means = [row.before.mean_target, row.before.mean_comparator]
    if None in n or None in means:
        return None
    weighted = [int(k or 0) * float(mean or 0.0) for k, mean in zip(n, means, strict=True)]
    return sum(weighted) / sum(int(k or 0) for k in n)


def _mean_after(row: BalanceRow, sizes: Sizes) -> float | None:
    """Mean of both groups together, weighted: that before minus the standardised difference."""
    before, difference = _mean_before(row, sizes), row.generalisability_both
    spread = [row.before.sd_target, row.before.sd_comparator]
    if before is None or difference is None or math.isinf(difference) or None in spread:
        return None
    n = [sizes["before", arm] for arm in ARMS]
    gap = float(row.before.mean_target or 0.0) - float(row.before.mean_comparator or 0.0)
    within = sum((k - 1) * float(sd or 0.0) ** 2 for k, sd in zip(n, spread, strict=True))
    total = sum(n)
    variance = (within + n[0] * n[1] / total * gap**2) / (total - 1)
    return before - difference * math.sqrt(variance)


def covariate_rows(shared: SharedStudy) -> Iterator[Row]:
    """Names of all covariates that other tables have, for each analysis."""
    for analysis, covariates in _covariates(shared).items():
        for number, (name, kind) in covariates.items():
            yield {
                "covariate_id": number,
                "covariate_name": name,
                "analysis_id": shared.numbers.analyses[analysis],
                "covariate_analysis_id": kind,
                "database_id": shared.database,
            }


def covariate_analysis_rows(shared: SharedStudy) -> Iterator[Row]:
    """Kinds of these covariates, for each analysis."""
    for analysis, covariates in _covariates(shared).items():
        for kind in sorted({kind for _, kind in covariates.values()}):
            yield {
                "covariate_analysis_id": kind,
                "covariate_analysis_name": _kind_name(kind),
                "analysis_id": shared.numbers.analyses[analysis],
            }


def _kind_name(kind: int) -> str:
    if kind == OF_DATA:
        return "Covariates of the data"
    return ANALYSES[kind].name if kind in ANALYSES else f"Analysis {kind}"


def _covariates(shared: SharedStudy) -> dict[str, dict[int, tuple[str, int]]]:
    """Analysis -> number of a covariate -> its name and kind."""
    found: dict[str, dict[int, tuple[str, int]]] = {}
    done = set()
    for run in shared.runs():
        covariates = found.setdefault(run.analysis, {})
        for adjustment in (run.adjustment, run.shared_adjustment):
            if (run.analysis, adjustment) in done:
                continue
            done.add((run.analysis, adjustment))
            for row in shared.rows(BalanceRow, adjustment=adjustment):
                number, kind = covariate_number(row.covariate_id), row.analysis_id or OF_DATA
                covariates.setdefault(number, (row.name, kind))
        for of in shared.rows(ScoreCoefficientRow, ps=run.ps):
            number = covariate_number(of.covariate_id)
            kind = number % 1000 if _is_cdm(shared) else OF_DATA
            covariates.setdefault(number, (of.name, kind))
    return found


def _is_cdm(shared: SharedStudy) -> bool:
    return bool(shared.study["data"]["kind"] != "tables")


def propensity_rows(shared: SharedStudy) -> Iterator[Row]:
    """Coefficients of the propensity score of each analysis of a comparison, as far as shown."""
    for run in _first_runs(shared):
        names = shared.of_comparison(run)
        for score in shared.rows(ScoreRow, ps=run.ps) if run.ps is not None else ():
            if score.intercept is not None:
                yield names | {"covariate_id": INTERCEPT, "coefficient": score.intercept}
            for row in shared.rows(ScoreCoefficientRow, ps=run.ps):
                if row.coef is not None:
                    number = covariate_number(row.covariate_id)
                    yield names | {"covariate_id": number, "coefficient": row.coef}
