"""Small counts of results that were made without hiding them, or with a smaller minimum.

A hidden count is null, and so is every number that tells it; ``suppressed`` maps their names to
"small" (the count is below the minimum) or "hidden" (it would give a small one away).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from riskset.cohort.attrition_table import hide_attrition
from riskset.cohort.small_cells import hide_small, is_small
from riskset.study.hidden_totals import told_by_others
from riskset.study.hiding import hide as hide_first

__all__ = ["hide", "lacks_follow_up"]

Row = dict[str, Any]
ARMS = ("target", "comparator")
EFFECT = (
    "hr", "hr_lower", "hr_upper", "log_hr", "se", "p", "one_sided_p", "llr", "calibrated_hr",
    "calibrated_hr_lower", "calibrated_hr_upper", "calibrated_log_hr", "calibrated_se",
    "calibrated_p", "calibrated_one_sided_p",
)  # fmt: skip
RATES = tuple(
    f"{weighted}rate{end}" for weighted in ("", "weighted_") for end in ("", "_lower", "_upper")
)


def hide(name: str, rows: list[Row], least: int, results: Any) -> list[Row]:
    """Rows of the table `name` without counts above 0 and below `least`."""
    if name not in RULES:
        raise ValueError(f"the table {name!r} has no rule that says what of it may be shown")
    return RULES[name](rows, least, results)


def _as_they_are(rows: list[Row], least: int, results: Any) -> list[Row]:
    """Names, settings and summaries of many people."""
    return rows


def _without(row: Row, small: Iterable[str], hidden: Iterable[str] = ()) -> Row:
    """A row without some of its numbers, those that were null already left as they are."""
    masks = dict.fromkeys((k for k in hidden if k in row), "hidden")
    masks |= dict.fromkeys((k for k in small if k in row), "small")
    return row | dict.fromkeys(masks) | {"suppressed": masks | row.get("suppressed", {})}


def _small(row: Row, names: Iterable[str], least: int) -> set[str]:
    return {n for n in names if row.get(n) is not None and bool(is_small(row[n], least))}


def _hide_arms(rows: list[Row], least: int, results: Any) -> list[Row]:
    """Counts of the arms; few outcomes hide what tells them, and in all the effect."""
    out = []
    for row, also in zip(rows, _told(rows, least), strict=True):
        small: set[str] = set()
        hidden = set(also)
        for arm in ARMS:
            names = [f"{arm}_{n}" for n in ("persons", "exposures", "outcomes", "competing")]
            own = _small(row, names, least)
            if {f"{arm}_persons", f"{arm}_exposures"} & own:
                hidden |= {f"{arm}_persons", f"{arm}_exposures"}
            if f"{arm}_outcomes" in own:
                hidden |= {f"{arm}_{n}" for n in RATES} | {"mdrr", "expected_se"}
            small |= own
        outcomes = [row.get(f"{arm}_outcomes") for arm in ARMS]
        known = [n for n in outcomes if n is not None]
        if len(known) < len(outcomes) or is_small(sum(known), least):
            hidden |= set(EFFECT) if not known or is_small(sum(known), least) else set()
        if _small(row, ["informative_strata", "informative_people"], least):
            hidden |= {"informative_strata", "informative_people"}
        out.append(_without(row, small, hidden))
    return out


def _told(rows: list[Row], least: int) -> list[set[str]]:
    """What rows of a run tell of each other, wherever they stand."""
    hidden: list[set[str]] = [set() for _ in rows]
    for key in dict.fromkeys(tuple(row.get(name) for name in RUN[:-1]) for row in rows):
        places = [k for k, row in enumerate(rows) if tuple(row.get(n) for n in RUN[:-1]) == key]
        for k, own in zip(places, told_by_others([rows[k] for k in places], least), strict=True):
            hidden[k] = own
    return hidden


def _hide_attrition(rows: list[Row], least: int, results: Any) -> list[Row]:
    """What a step left and what it removed add up to what the one before it left."""
    hidden: list[set[str]] = [set() for _ in rows]
    sizes = _sizes(rows[0]["adjustment"], results) if rows else {}
    for arm in ARMS:
        names = (f"{arm}_exposures", f"{arm}_persons", f"removed_{arm}")
        known = [n for (side, of), n in sizes.items() if (side, of) == ("before", arm)]
        masks = hide_attrition([[row[name] for row in rows] for name in names], least, known)
        for name, mask in zip(names, masks, strict=True):
            for own, is_hidden in zip(hidden, mask, strict=True):
                own |= {name} if is_hidden else set()
    return [
        _without(row, _small(row, own, least), own) for row, own in zip(rows, hidden, strict=True)
    ]


def _parts_of(
    group: Sequence[str], count: str, tells: Sequence[str] = (), has_total: bool = True
) -> Callable[[list[Row], int, Any], list[Row]]:
    """Counts that add up, within a group of rows, to a total that readers know."""

    def rule(rows: list[Row], least: int, results: Any) -> list[Row]:
        out = list(rows)
        groups: dict[tuple[Any, ...], list[int]] = {}
        for k, row in enumerate(rows):
            groups.setdefault(tuple(row.get(g) for g in group), []).append(k)
        for places in groups.values():
            counts = [rows[k][count] or 0 for k in places]
            equations = [(len(counts), range(len(counts)))] if has_total else []
            total = sum(counts)
            mask = hide_small([*counts, total], [(t, tuple(p)) for t, p in equations], least)
            for j, k in enumerate(places):
                if mask[j]:
                    small = _small(rows[k], [count], least)
                    out[k] = _without(rows[k], small, [count, *tells])
        return out

    return rule


RUN = ("target", "comparator", "outcome", "analysis", "arm")


def _hide_sides(rows: list[Row], least: int, results: Any) -> list[Row]:
    """People who have a covariate, and the means and deviations that tell how many they are."""
    out = []
    for row in rows:
        small = _small(row, [f"{s}_count_{a}" for s in ("before", "after") for a in ARMS], least)
        told = {name.replace("count", word) for name in small for word in ("mean", "sd")}
        out.append(_without(row, small, told))
    return out


def _hide_at_risk(rows: list[Row], least: int, results: Any) -> list[Row]:
    out = []
    for row in rows:
        small = _small(row, ["people"], least)
        out.append(_without(row, small, ("weighted", "effective") if small else ()))
    return out


def _hide_shares(rows: list[Row], least: int, results: Any) -> list[Row]:
    """Shares of Table 1: of how many people they are, other tables tell."""
    out: list[Row] = []
    sizes = _sizes(rows[0]["adjustment"], results) if rows else {}
    for row in rows:
        hidden = set()
        for (side, arm), n in sizes.items():
            share = row[f"{side}_{arm}"]
            if row["kind"] == "share" and share is not None and is_small(round(share * n), least):
                hidden.add(f"{side}_{arm}")
        out.append(_without(row, (), hidden))
    return out


def _sizes(adjustment: int, results: Any) -> dict[tuple[str, str], int]:
    """Rows of both arms before and after an adjustment, as far as they are known."""
    runs = results.rows("runs", adjustment=adjustment)
    keys = {k: runs[0][k] for k in ("target", "comparator", "outcome", "analysis")} if runs else {}
    found = {
        (row["side"], arm): row[f"{arm}_exposures"]
        for row in (results.rows("arms", **keys) if runs else ())
        for arm in ARMS
    }
    return {key: n for key, n in found.items() if n is not None}


def _hide_means(rows: list[Row], least: int, results: Any) -> list[Row]:
    """Prevalences of the covariates of a score."""
    out = []
    for row in rows:
        scores = results.rows("ps", ps=row["ps"])
        hidden = set()
        for arm in ARMS:
            mean, n = row[f"mean_{arm}"], scores[0][f"n_{arm}"] if scores else None
            if mean is not None and n is not None and is_small(mean * n, least):
                hidden.add(f"mean_{arm}")
        out.append(_without(row, (), hidden))
    return out


def _hide_outcome_means(rows: list[Row], least: int, results: Any) -> list[Row]:
    """Prevalences of the covariates of an outcome model."""
    out = []
    for row, of in _with_estimates(_unless_few(rows, least, results), results):
        hidden = set()
        for arm in ARMS:
            mean, n = row[f"mean_{arm}"], of.get(f"{arm}_exposures")
            if row["is_binary"] and mean is not None and n is not None:
                hidden |= {f"mean_{arm}"} if is_small(round(mean * n), least) else set()
        out.append(_without(row, (), hidden))
    return out


def _unless_few(rows: list[Row], least: int, results: Any) -> list[Row]:
    """What tells an effect that is hidden because both arms together have few outcomes."""
    out = []
    for row, of in _with_estimates(rows, results):
        outcomes = [of.get(f"{arm}_outcomes") for arm in ARMS]
        if not is_small(sum(n for n in outcomes if n is not None), least):
            out.append(row)
    return out


def _with_estimates(rows: list[Row], results: Any) -> Iterator[tuple[Row, Row]]:
    """Rows and the estimate that each belongs to; without a number the main one."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        keys = {name: row[name] for name in RUN[:-1]}
        keys |= {"number": row["number"]} if "number" in row else {"role": "main"}
        key = tuple(keys.values())
        if key not in found:
            own = results.rows("estimates", **keys)
            found[key] = own[0] if own else {}
        yield row, found[key]


def _cut_curves(rows: list[Row], least: int, results: Any) -> list[Row]:
    """Up to the first time at which an arm has few people at risk."""
    if not rows:
        return rows
    keys = {k: rows[0][k] for k in ("target", "comparator", "outcome", "analysis")}
    at_risk = results.rows("numbers_at_risk", **keys)
    short = [r["time"] for r in at_risk if r["people"] is None or r["people"] < least]
    end = min(short, default=float("inf"))
    return [row for row in rows if row["time"] < end]


def _hide_risks(rows: list[Row], least: int, results: Any) -> list[Row]:
    """A risk with few people left is not shown, as its curve is not.

    Where nobody of an arm is followed so long, there is no risk to hide.
    """
    out = []
    for row in rows:
        followed = [arm for arm in ARMS if not lacks_follow_up(row, arm)]
        names = [f"{arm}_at_risk" for arm in followed]
        short = any(row[name] is None or row[name] < least for name in names)
        keys = [f"{arm}_{word}" for arm in followed for word in ("risk", "lower", "upper")]
        if len(followed) == len(ARMS):
            keys += ["difference", "difference_lower", "difference_upper"]
        out.append(_without(row, _small(row, names, least), keys if short else ()))
    return out


def lacks_follow_up(row: Row, arm: str) -> bool:
    """Whether the risk of an arm is not known because nobody is followed up to its time."""
    is_empty = row[f"{arm}_risk"] is None and f"{arm}_risk" not in row.get("suppressed", {})
    return is_empty and row[f"{arm}_at_risk"] == 0 and not row["blinded"]


def _join_bars(name: str, *counts: str) -> Callable[[list[Row], int, Any], list[Row]]:
    """Bars of a histogram are joined; those of which nothing is known stay away."""

    def rule(rows: list[Row], least: int, results: Any) -> list[Row]:
        known = [row for row in rows if all(row[count] is not None for count in counts)]
        return [_marked(row) for row in hide_first(name, known, least)]

    return rule


def _marked(row: Row) -> Row:
    names = [name.strip() for name in row["suppressed"].split(",") if name.strip()]
    return row | {"suppressed": dict.fromkeys(names, "hidden")}


def _hide_as_first(name: str) -> Callable[[list[Row], int, Any], list[Row]]:
    """The rule of the shared results, for a table that needs nothing beside its own rows."""

    def rule(rows: list[Row], least: int, results: Any) -> list[Row]:
        hidden = hide_first(name, [_unmarked(row) for row in rows], least)
        return [_with_marks(row, own) for row, own in zip(hidden, rows, strict=True)]

    return rule


def _hide_sizes(name: str, number: str, of_runs: str) -> Callable[[list[Row], int, Any], list[Row]]:
    """People of a score or of an adjustment, unless those followed tell how many were left out.

    `number` is a column of the table, and `of_runs` that of `runs` which leads to it.
    """

    def rule(rows: list[Row], least: int, results: Any) -> list[Row]:
        out = []
        for row in rows:
            runs = [_names(run) for run in results.rows("runs", **{of_runs: row[number]})]
            followed = [e for run in runs for e in results.rows("estimates", **run)]
            followed = [e for e in followed if e["role"] in ("crude", "main")]
            left = {arm: [e[f"{arm}_exposures"] for e in followed] for arm in ARMS}
            left = {arm: [n for n in own if n is not None] for arm, own in left.items()}
            (hidden,) = hide_first(name, [_unmarked(row) | {"left": left}], least)
            out.append(_with_marks(hidden, row))
        return out

    return rule


def _hide_controls(rows: list[Row], least: int, results: Any) -> list[Row]:
    """Effects of controls with few outcomes in both arms together."""
    out = []
    for row in rows:
        keys = {name: row[name] for name in (*RUN[:-1], "model", "reading")}
        of = results.rows("estimates", **keys)
        counts = [of[0][f"{arm}_outcomes"] for arm in ARMS] if of else []
        outcomes = sum(n for n in counts if n is not None)
        out += [
            row | hidden for hidden in hide_first("controls", [row | {"outcomes": outcomes}], least)
        ]
    return out


def _names(run: Row) -> Row:
    return {name: run[name] for name in RUN[:-1]}


def _unmarked(row: Row) -> Row:
    return row | {"suppressed": ""} if "suppressed" in row else row


def _with_marks(hidden: Row, before: Row) -> Row:
    """What was hidden just now, and what had been hidden before."""
    if "suppressed" not in before:
        return hidden
    names = [name for name in hidden["suppressed"].split(", ") if name]
    return hidden | {"suppressed": dict.fromkeys(names, "hidden") | before["suppressed"]}


RULES: Mapping[str, Callable[[list[Row], int, Any], list[Row]]] = {
    "arms": _hide_arms,
    "estimates": _hide_arms,
    "attrition": _hide_attrition,
    "runs": _hide_as_first("runs"),
    "warnings": _hide_as_first("warnings"),
    "ps": _hide_sizes("ps", "ps", "ps"),
    "adjustments": _hide_sizes("adjustments", "adjustment", "shared_adjustment"),
    "controls": _hide_controls,
    "codes": _as_they_are,
    "ps_cross_validation": _as_they_are,
    "calibration": _as_they_are,
    "diagnostics": _as_they_are,
    "follow_up": _as_they_are,
    "balance": _hide_sides,
    "table1": _hide_shares,
    "ps_coefficients": _hide_means,
    "ps_flagged": _hide_means,
    "outcome_coefficients": _hide_outcome_means,
    "outcome_cross_validation": _unless_few,
    "likelihood_profiles": _unless_few,
    "effect_over_time": lambda rows, least, results: list(
        hide_first("effect_over_time", _unless_few(rows, least, results), least)
    ),
    "curves": _cut_curves,
    "preference": _join_bars("preference", "count", "kept"),
    "follow_up_histogram": _join_bars("follow_up_histogram", "people"),
    "numbers_at_risk": _hide_at_risk,
    "absolute_risks": _hide_risks,
    "follow_up_ends": _parts_of(RUN, "count"),
    "event_weeks": _parts_of(RUN, "events", has_total=False),
    "calendar": _parts_of(("target", "comparator", "arm"), "starts"),
}
