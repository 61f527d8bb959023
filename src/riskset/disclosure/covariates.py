"""Covariates of zeros and ones: shares, differences and coefficients that reveal who has them."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from riskset.data.missing_values import indicator_places
from riskset.disclosure.arms import few_outcomes
from riskset.disclosure.rows import (
    ARMS,
    Named,
    Results,
    grouped,
    names_hidden,
    number,
    run_of,
    without,
)
from riskset.disclosure.small_cells import hide_small, is_near, is_small
from riskset.results.balance_rows import JOINED
from riskset.results.rows import (
    AdjustmentRow,
    AttritionRow,
    BalanceRow,
    CharacteristicRow,
    EstimateRow,
    FlaggedCovariateRow,
    OutcomeCoefficientRow,
    ScoreCoefficientRow,
    ScoreRow,
    SubgroupBalanceRow,
)

CoefficientT = TypeVar("CoefficientT", ScoreCoefficientRow, FlaggedCovariateRow)

__all__ = [
    "DIFFERENCES",
    "OF_ARM",
    "hidden_in_balance",
    "share_balance",
    "share_flagged",
    "share_outcome_coefficients",
    "share_score_coefficients",
    "share_subgroup_balance",
    "share_table1",
]

SIDES = ("before", "after")
CELLS = tuple(itertools.product(SIDES, ARMS))
Cell = tuple[str, str]
OF_BOTH = ("smd", "smd_current_sd", "variance_ratio", "ks", "smd_variance", "p")
DIFFERENCES = (
    *(f"{s}_{n}" for s in SIDES for n in OF_BOTH),
    *(f"generalisability_{arm}" for arm in (*ARMS, "both")),
)
"""Numbers of a row of a balance that follow from several of its counts."""

OF_ARM = ("", "_count", "_sd", "_lower", "_upper")
"""Ends of the names of the numbers of an arm in a table of characteristics."""

MAX_TRIED = 2_000
"""Small counts of a place that are tried together with those of another one, in 32 MB; where there
are more, everything is hidden if no count alone may be another one."""

Sizes = Mapping[Cell, float]
"""Rows of both arms before and after; NaN if they are not known."""


def share_balance(rows: Sequence[BalanceRow], results: Results) -> Iterator[BalanceRow]:
    """Rows of the table `balance`."""
    shared: dict[int, BalanceRow] = {}
    for places in grouped(rows, ("adjustment",)):
        of_it = [rows[k] for k in places]
        sizes, adjustment = _sizes(of_it[0].adjustment, results)
        if not adjustment.sampled:  # else shares are not those of the counts
            sizes = {**sizes, **_sizes_before(of_it)}
        limit, sd = adjustment.threshold, adjustment.sd or "before"
        hidden = hidden_in_balance(of_it, sizes, results.least, limit, sd)
        for k, names in zip(places, hidden, strict=True):
            shared[k] = without(rows[k], names)
    return (shared[k] for k in range(len(rows)))


def _sizes(number_of_it: int, results: Results) -> tuple[Sizes, AdjustmentRow]:
    """Rows of both arms before and after an adjustment, and the adjustment itself."""
    steps = results.raw(AttritionRow, adjustment=number_of_it)
    first = min(steps, key=lambda row: row.number, default=AttritionRow())
    adjustment = next(iter(results.raw(AdjustmentRow, adjustment=number_of_it)), AdjustmentRow())
    sizes = {("before", arm): number(first[f"{arm}_exposures"]) for arm in ARMS}
    sizes |= {("after", arm): number(adjustment[f"{arm}_rows"]) for arm in ARMS}
    return sizes, adjustment


def _sizes_before(rows: Sequence[BalanceRow]) -> Sizes:
    """Rows of both arms before an adjustment, as counts and shares tell them.

    The attrition of a CDM begins with people who are not eligible, and who have no covariates.
    """
    found: dict[Cell, float] = {}
    # A share is of the people whose value is known; that of missing values is of everybody.
    of_some = indicator_places([str(row["covariate_id"]) for row in rows])
    for arm in ARMS:
        known = [
            (row[f"before_count_{arm}"], row[f"before_mean_{arm}"], k not in of_some)
            for k, row in enumerate(rows)
        ]
        # The largest count, because those over imputed data sets are rounded.
        largest = max(((everybody, n, p) for n, p, everybody in known if n and p), default=None)
        if largest is not None:
            found["before", arm] = float(round(largest[1] / largest[2]))
    return found


def hidden_in_balance(
    rows: Sequence[Named], sizes: Sizes, least: int, limit: float | None = None, sd: str = "before"
) -> list[set[str]]:
    """Names to hide in each of the rows of one balance.

    A covariate of zeros and ones is hidden in an arm if few have it, or if all but few do. Every
    covariate is hidden in an arm of few people, whose number follows from the variance of a
    difference, or from the means of the arms and of everybody. All its differences are then hidden,
    because with the other counts they reveal how many have it. A covariate hides what the indicator
    of its missing values hides: its count and share say how many values are known. The side of
    the limit on which they are stays; where that alone would reveal a count, the other counts are
    hidden, too. `limit` is that of the column `balanced`, if the rows have it, and `sd` says whose
    standard deviation divides the differences.
    """
    indicators = indicator_places([str(row["covariate_id"]) for row in rows])
    cells = _few_cells(rows, sizes, least)
    _few_zeros(rows, indicators, cells, sizes, least)
    for places in _parts(rows):
        _complete([rows[k] for k in places], [cells[k] for k in places], sizes, least)
    for k, missing in indicators.items():
        cells[k] |= cells[missing]
    hidden = []
    for k, (row, own) in enumerate(zip(rows, cells, strict=True)):
        names = {f"{s}_{word}_{a}" for s, a in own for word in ("count", "mean", "sd")}
        if least > 1 and not row.get("is_binary", True):
            # It is a difference of shares of people on one side of a value, who may be few.
            names |= {f"{side}_ks" for side in SIDES}
        if own:
            names |= set(DIFFERENCES)
            if (
                limit is not None
                and row.get("is_binary", True)
                and (k in indicators or _side_reveals(row, own, sizes, least, limit, sd))
            ):
                every = itertools.product(CELLS, ("count", "mean", "sd"))
                names |= {f"{s}_{word}_{a}" for (s, a), word in every}
        hidden.append(names)
    return hidden


def _few_cells(rows: Sequence[Named], sizes: Sizes, least: int) -> list[set[Cell]]:
    """Sides and arms of each row with a small count of ones, of zeros, or of people."""
    found: list[set[Cell]] = [set() for _ in rows]
    for cell in CELLS:
        counts = np.array([number(row[f"{cell[0]}_count_{cell[1]}"]) for row in rows])
        total = np.array([_size(row, cell, sizes) for row in rows])
        few = is_small(total, least) | is_near(counts, total, least)
        for k in np.flatnonzero(few):
            found[k].add(cell)
    return found


def _few_zeros(
    rows: Sequence[Named],
    indicators: Mapping[int, int],
    cells: list[set[Cell]],
    sizes: Sizes,
    least: int,
) -> None:
    """Hide ones and missing values that leave few known zeros."""
    for k, missing in indicators.items():
        row = rows[k]
        if not row.get("is_binary"):
            continue
        for cell in CELLS:
            ones, lost = (number(rows[j][f"{cell[0]}_count_{cell[1]}"]) for j in (k, missing))
            if is_small(_size(rows[missing], cell, sizes) - ones - lost, least):
                cells[k].add(cell)
                cells[missing].add(cell)


def _size(row: Named, cell: Cell, sizes: Sizes) -> float:
    """Rows of an arm; before an adjustment, which has no weights, its share reveals them, too."""
    known = sizes.get(cell, float("nan"))
    if math.isnan(known) and cell[0] == "before":
        mean, count = row[f"before_mean_{cell[1]}"], row[f"before_count_{cell[1]}"]
        return float(round(count / mean)) if mean and count else known
    return known


def _parts(rows: Sequence[Named]) -> Iterator[list[int]]:
    """Places of covariates that may be the levels of one: of one analysis, or one column."""
    binary = [k for k, row in enumerate(rows) if row.get("is_binary")]
    keys = [{"of": _of(rows[k])} for k in binary]
    for places in grouped(keys, ("of",)):
        if len(places) > 1 and keys[places[0]]["of"] is not None:
            yield [binary[j] for j in places]


def _of(row: Named) -> object:
    """What a covariate may be a level of."""
    if row.get("category") is not None:
        return ("category", row["category"])
    if row.get("analysis_id") is not None:
        return row["analysis_id"]
    name = str(row["name"])
    for mark in ("=", ":"):
        if mark in name:
            return name.split(mark)[0]
    return None


def _complete(rows: Sequence[Named], cells: Sequence[set[Cell]], sizes: Sizes, least: int) -> None:
    """Hide further levels where those shown, less from the people of an arm, reveal one."""
    for cell in CELLS:
        counts = np.array([number(row[f"{cell[0]}_count_{cell[1]}"]) for row in rows])
        total = next((n for row in rows if not np.isnan(n := _size(row, cell, sizes))), np.nan)
        rest = total - np.nansum(counts)
        # Levels leave few without one; what leaves many, or none at all, is no set of levels.
        if np.isnan(total) or not 0 <= rest < max(least, 1):
            continue
        own = np.array([cell in hidden for hidden in cells])
        counts[own & ~is_small(counts, least)] = np.nan
        values = [total, *counts, rest]
        equation = [(0, range(1, len(values)))]
        mask = hide_small(values, equation, least, known=(0, len(values) - 1))
        for hidden, is_hidden in zip(cells, mask[1:-1], strict=True):
            if is_hidden:
                hidden.add(cell)


def _side_reveals(
    row: Named, hidden: set[Cell], sizes: Sizes, least: int, limit: float, sd: str
) -> bool:
    """Whether the sides of the limit leave a hidden count no choice.

    Small counts, of ones or of zeros, are tried in the places of those hidden.
    """
    n = {cell: _size(row, cell, sizes) for cell in CELLS}
    counts = {cell: number(row[f"{cell[0]}_count_{cell[1]}"]) for cell in CELLS}
    if any(np.isnan(n[c]) or np.isnan(counts[c]) for c in CELLS if c[0] == "before" or c in hidden):
        return True
    flags: dict[str, bool] = {}
    for side in SIDES:
        flag = row.get(f"{side}_balanced")
        if flag is None:
            continue
        if side == "after" and any(np.isnan(n[c]) or np.isnan(counts[c]) for c in CELLS):
            return True
        own = _sizes_of_difference({c: np.array([counts[c]]) for c in CELLS}, n, side, sd)
        if _agrees(own, limit, bool(flag)).all():
            flags[side] = bool(flag)
        elif side == "before":
            return True  # else weights, which readers do not know
    few = np.arange(1, max(least, 2), dtype=np.float64)
    choices = {c: few if counts[c] < least else n[c] - few for c in hidden}
    # Most often, another count goes with the true ones in all other places.
    if all(
        counts[c] in choices[c] and _has_another(c, choices[c], counts, n, flags, limit, sd)
        for c in hidden
    ):
        return False
    if few.size > MAX_TRIED:
        return True
    tried = {c: choices.get(c, np.array([counts[c]])) for c in CELLS}
    return any(
        found < 2 for c, found in _choices(tried, n, flags, limit, sd).items() if c in hidden
    )


def _has_another(
    cell: Cell,
    choices: NDArray[np.float64],
    counts: Mapping[Cell, float],
    n: Sizes,
    flags: Mapping[str, bool],
    limit: float,
    sd: str,
) -> bool:
    """Whether a count may be another one while all others are as they are."""
    tried = {c: np.full(choices.size, counts[c]) for c in CELLS} | {cell: choices}
    fits = choices != counts[cell]
    for side, flag in flags.items():
        fits &= _agrees(_sizes_of_difference(tried, n, side, sd), limit, flag)
    return bool(fits.any())


def _choices(
    tried: Mapping[Cell, NDArray[np.float64]],
    n: Sizes,
    flags: Mapping[str, bool],
    limit: float,
    sd: str,
) -> dict[Cell, int]:
    """How many of the counts tried in each place agree with the flags, with some in the others.

    The counts of one time meet those of the other only in the difference after the adjustment, if
    it is divided by the standard deviation before it. That difference grows with the gap after and
    falls with the variance before, so that the best gap and the best variance decide. So pairs of
    counts are tried, of both arms at one time, and never all four together.
    """
    best = min if flags.get("after") else max
    found: dict[Cell, int] = {}
    pairs = {side: _Pairs(side, tried, n) for side in SIDES}
    fits = {side: np.ones(pairs[side].gap.shape, dtype=bool) for side in SIDES}
    for side, flag in flags.items():
        own = pairs[side]
        if side == "before" or sd != "before":
            fits[side] = _agrees(_size_of(own.gap, own.variance), limit, flag)
            continue
        before, gap = pairs["before"].variance, own.gap
        if not fits["before"].any():
            break
        # The variance counts as its negative: a larger one makes the difference smaller.
        variance = -best(-before[fits["before"]].max(), -before[fits["before"]].min())
        fits["before"] &= _agrees(_size_of(best(gap.min(), gap.max()), before), limit, flag)
        fits["after"] = _agrees(_size_of(gap, variance), limit, flag)
    is_possible = all(of_side.any() for of_side in fits.values())
    for side in SIDES:
        for axis, arm in enumerate(ARMS):
            found[side, arm] = int(fits[side].any(axis=1 - axis).sum()) if is_possible else 0
    return found


class _Pairs:
    """Gaps between shares, and variances, of all pairs of counts of both arms at one time."""

    def __init__(self, side: str, tried: Mapping[Cell, NDArray[np.float64]], n: Sizes) -> None:
        target, comparator = (tried[side, arm] / n[side, arm] for arm in ARMS)
        self.gap = np.abs(target[:, None] - comparator)
        of_arms = (
            share * (1 - share) * n[side, arm] / (n[side, arm] - 1)
            for share, arm in zip((target, comparator), ARMS, strict=True)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            first, second = of_arms
        self.variance = first[:, None] + second


def _size_of(gap: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sizes of standardised differences."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(gap > 0, gap / np.sqrt(np.asarray(variance) / 2), 0.0)


def _sizes_of_difference(
    counts: Mapping[Cell, NDArray[np.float64]], n: Sizes, side: str, sd: str
) -> NDArray[np.float64]:
    """Sizes of standardised differences of people who all weigh the same."""
    of = "before" if sd == "before" else side
    share = {c: counts[c] / n[c] for c in CELLS if c[0] in (side, of)}
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = sum(
            share[of, arm] * (1 - share[of, arm]) * n[of, arm] / (n[of, arm] - 1) for arm in ARMS
        )
        gap = np.abs(share[side, ARMS[0]] - share[side, ARMS[1]])
    return _size_of(gap, np.asarray(variance))


def _agrees(sizes: NDArray[np.float64], limit: float, is_below: bool) -> NDArray[np.bool_]:
    """Whether sizes are on a side of the limit; those at it may be on either."""
    at = np.isclose(sizes, limit, rtol=1e-9, atol=0.0)
    return np.asarray(((sizes < limit) == is_below) | at)


def share_subgroup_balance(
    rows: Sequence[SubgroupBalanceRow], results: Results
) -> Iterator[SubgroupBalanceRow]:
    """Differences of a covariate within the levels of a subgroup: all of them, or none.

    Levels add up to all people, so that each would reveal a small count of another one.
    """
    hidden: set[int] = set()
    for places in grouped(rows, ("adjustment", "subgroup", "covariate_id")):
        if any(is_small(number(rows[k].fewest), results.least) for k in places):
            hidden |= set(places)
    for k, row in enumerate(rows):
        yield without(row, ("before_smd", "after_smd") if k in hidden else ())


def share_table1(
    rows: Sequence[CharacteristicRow], results: Results
) -> Iterator[CharacteristicRow]:
    """Lines of the table of characteristics; they hide what the balance of a covariate hides.

    All lines of a characteristic hide what they have of an arm in which it is hidden how many of
    its values are missing, because counts and shares of the known values tell how many are known.
    Quartiles of few people are hidden. The difference of a category is hidden if that of a level
    is. Numbers of both arms together are hidden if one of an arm is. The balance of imputed values
    counts others than the table, whose own counts then decide.
    """
    adjustments = {row.adjustment for row in rows}
    shown = {
        (row.adjustment, row.covariate_id): row
        for adjustment in adjustments
        for row in results.shown(BalanceRow, adjustment=adjustment)
    }
    sizes = {number_of: _shown_sizes(number_of, results) for number_of in adjustments}
    hidden = [_hidden_in_line(row, shown, sizes[row.adjustment], results.least) for row in rows]
    for places in grouped(rows, ("adjustment", "item")):
        lines = [rows[k] for k in places]
        number_of = lines[0].adjustment
        if any(_is_observed(row, shown) for row in lines):
            raw, _ = _sizes(number_of, results)
            for k, names in zip(places, _few_observed(lines, raw, results.least), strict=True):
                hidden[k] |= names
        of_levels, of_missing = (
            {name for k in places if rows[k].kind in kinds for name in hidden[k]}
            for kinds in (("level", "missing"), ("missing",))
        )
        for k in places:
            if rows[k].kind == "level":
                hidden[k] |= _follows(of_missing)
            elif rows[k].kind != "missing":
                hidden[k] |= _follows(of_levels)
    for row, names in zip(rows, hidden, strict=True):
        yield without(row, names | _overall(names | names_hidden(row)))


def _is_observed(row: CharacteristicRow, shown: Mapping[tuple[int, str], BalanceRow]) -> bool:
    """Whether a line counts missing values, which the balance has imputed."""
    of = (row.adjustment, row.covariate_id)
    return row.kind == "missing" and row.covariate_id is not None and of not in shown


def _few_observed(rows: Sequence[CharacteristicRow], sizes: Sizes, least: int) -> list[set[str]]:
    """Names to hide in the lines of a characteristic by their own counts.

    Those who are known and those whose value is missing add up to the people of an arm. Where
    people have weights there are no counts. What the same people have before is then known, and
    other people's numbers are hidden.
    """
    hidden: list[set[str]] = [set() for _ in rows]
    parts = [k for k, row in enumerate(rows) if row.kind in ("share", "level", "missing")]
    for side, arm in CELLS:
        n, first = sizes[side, arm], sizes["before", arm]
        counts = [number(rows[k][f"{side}_{arm}_count"]) for k in parts]
        if math.isnan(n + sum(counts)):
            small = [n != first or f"before_{arm}" in hidden[k] for k in parts]
        else:
            values = [n, *counts, n - sum(counts)]
            equation = [(0, range(1, len(values)))]
            small = hide_small(values, equation, least, known=(0,))[1:-1].tolist()
        for k, is_hidden in zip(parts, small, strict=True):
            hidden[k] |= {*_of_arm(side, arm), f"{side}_smd"} if is_hidden else set()
    return hidden


def _overall(hidden: set[str]) -> set[str]:
    """Numbers of both arms together, from which that of a hidden arm would follow."""
    return {
        f"{side}_overall{end}"
        for side, arm, end in itertools.product(SIDES, ARMS, OF_ARM)
        if f"{side}_{arm}{end}" in hidden
        for end in OF_ARM
    }


def _shown_sizes(number_of_it: int, results: Results) -> dict[Cell, tuple[object, object]]:
    """Rows of both arms before and after, and their effective numbers, as they are shared."""
    steps = results.shown(AttritionRow, adjustment=number_of_it)
    first = min(steps, key=lambda row: row.number, default=AttritionRow())
    made = next(iter(results.shown(AdjustmentRow, adjustment=number_of_it)), AdjustmentRow())
    sizes: dict[Cell, tuple[object, object]] = {}
    for arm in ARMS:
        n = first[f"{arm}_exposures"]
        sizes["before", arm] = (n, n)
        sizes["after", arm] = (made[f"{arm}_rows"], made[f"{arm}_effective"])
    return sizes


def _hidden_in_line(
    row: CharacteristicRow,
    shown: Mapping[tuple[int, str], BalanceRow],
    sizes: Mapping[Cell, tuple[object, object]],
    least: int,
) -> set[str]:
    """Names to hide in a line by itself."""
    hidden: set[str] = set()
    if row.kind in ("people", "effective"):
        for (side, arm), (n, effective) in sizes.items():
            hidden |= {f"{side}_{arm}_count"} if n is None else set()
            hidden |= {f"{side}_{arm}"} if effective is None else set()
        return hidden
    keys = [row.covariate_id] if row.joined is None else row.joined.split(JOINED)
    if keys == [None]:
        return hidden
    # A sum of covariates would reveal one that is hidden beside others that are shown.
    joined = [shown.get((row.adjustment, str(key))) for key in keys]
    if joined == [None] and row.kind == "missing":
        return hidden
    for side in SIDES:
        if any(of is None or of[f"{side}_smd"] is None for of in joined):
            hidden.add(f"{side}_smd")
        for arm in ARMS:
            if any(of is None or of[f"{side}_mean_{arm}"] is None for of in joined):
                hidden |= _of_arm(side, arm)
            n = sizes[side, arm][0]
            if row.kind == "median" and (n is None or float(str(n)) < least):
                hidden |= _of_arm(side, arm)
    return hidden


def _of_arm(side: str, arm: str) -> set[str]:
    return {f"{side}_{arm}{end}" for end in OF_ARM}


def _follows(hidden: set[str]) -> set[str]:
    """What follows from hidden numbers of other lines: of levels, or of missing values."""
    names: set[str] = set()
    for side in SIDES:
        arms = [arm for arm in ARMS if f"{side}_{arm}" in hidden]
        if f"{side}_smd" in hidden or arms:
            names.add(f"{side}_smd")
        for arm in arms:
            names |= _of_arm(side, arm)
    return names


def share_score_coefficients(
    rows: Sequence[ScoreCoefficientRow], results: Results
) -> Iterator[ScoreCoefficientRow]:
    """Coefficients of a propensity score, with the means of their covariates."""
    yield from _of_score(rows, results, "coef")


def share_flagged(
    rows: Sequence[FlaggedCovariateRow], results: Results
) -> Iterator[FlaggedCovariateRow]:
    """Covariates that nearly determine the treatment, with their correlation."""
    yield from _of_score(rows, results, "correlation")


def _of_score(
    rows: Sequence[CoefficientT], results: Results, reveals: str
) -> Iterator[CoefficientT]:
    hidden_before = _hidden_before({row.ps for row in rows}, results)
    for row in rows:
        score = next(iter(results.raw(ScoreRow, ps=row.ps)), ScoreRow())
        sizes = {arm: score[f"n_{arm}"] for arm in ARMS}
        means: set[str] = _few(row, sizes, results.least)
        means |= {f"mean_{arm}" for arm in hidden_before.get((row.ps, row.covariate_id), ())}
        yield without(row, {*means, reveals} if means else ())


def _hidden_before(scores: set[int], results: Results) -> dict[tuple[int, str], set[str]]:
    """Arms in which the balance hides a covariate before an adjustment by a score."""
    hidden: dict[tuple[int, str], set[str]] = {}
    for ps in scores:
        for adjustment in results.raw(AdjustmentRow, ps=ps):
            for row in results.shown(BalanceRow, adjustment=adjustment.adjustment):
                arms = hidden.setdefault((ps, row.covariate_id), set())
                arms |= {arm for arm in ARMS if row[f"before_mean_{arm}"] is None}
    return hidden


def _few(row: Named, sizes: Mapping[str, float | None], least: int) -> set[str]:
    """Means of zeros and ones that few have, or all but few; or of which that is not known."""
    names: set[str] = set()
    for arm in ARMS:
        mean, n = row[f"mean_{arm}"], sizes[arm]
        if mean is None or row.get("is_binary") is False:
            continue
        if n is None or is_near(round(mean * n), n, least):
            names.add(f"mean_{arm}")
    return names


def share_outcome_coefficients(
    rows: Sequence[OutcomeCoefficientRow], results: Results
) -> Iterator[OutcomeCoefficientRow]:
    """Coefficients of an outcome model, unless both arms together have few outcomes."""
    for row in rows:
        of = next(iter(results.raw(EstimateRow, number=row.number, **run_of(row))), None)
        if of is None or few_outcomes(of, results.least):
            continue
        means = _few(row, {arm: of[f"{arm}_exposures"] for arm in ARMS}, results.least)
        yield without(row, {*means, "coef"} if means else ())
