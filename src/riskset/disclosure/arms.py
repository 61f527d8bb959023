"""People, outcomes and competing events of both arms, and rates and effects that reveal them."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from riskset.disclosure.rows import (
    ARMS,
    RUN,
    Named,
    Results,
    RowT,
    grouped,
    names_hidden,
    number,
    run_of,
)
from riskset.disclosure.same_people import ShownBefore, side_of
from riskset.disclosure.small_cells import hide_small, is_near_shown, is_small
from riskset.results.rows import ControlRow, EstimateRow, OutcomeCoefficientRow, RunRow

__all__ = [
    "CALIBRATED",
    "EFFECT",
    "E_VALUES",
    "FRAILTIES",
    "OF_CONTROL",
    "OF_EFFECT",
    "RATES",
    "WITHOUT_EVENT",
    "few_outcomes",
    "hidden_in_arms",
    "is_plain_ratio",
    "rates_of",
    "reveals_an_arm",
    "share_arms",
    "share_controls",
    "suppressed_in",
]

EFFECT = ("hr", "hr_lower", "hr_upper", "log_hr", "se", "p", "one_sided_p", "llr")
CALIBRATED = tuple(f"calibrated_{name}" for name in EFFECT[:-1])
E_VALUES = ("e_value", "e_value_limit", "e_value_common")
FRAILTIES = ("n_clusters", "frailty_variance", "frailty_p")
OF_EFFECT = (*EFFECT, *CALIBRATED, *E_VALUES, "proportionality_p", "interaction_p")
"""Numbers that reveal an effect or how precise it is."""

OF_CONTROL = (
    *EFFECT[:6],
    *(f"calibrated_{name}" for name in ("p", "hr", "hr_lower", "hr_upper")),
    # With those of all controls, they lead to the estimate of the control.
    "null_mean_without",
    "null_sd_without",
)

PEOPLE = ("persons", "exposures")
COUNTS = (*PEOPLE, "outcomes", "competing")
HIDDEN = "hidden"
EVENTS = tuple(itertools.product(ARMS, COUNTS[2:]))
WITHOUT_EVENT = "without_event"
"""People of an arm without any event: no column, but ``suppressed`` names it where they are few, as
the outcomes or competing events are then hidden although they may be many."""
ADJUSTED = ("main", "sensitivity", "model")
"""Roles of estimates that are shared although one arm alone has few outcomes: they are what the
results are for, and what is pooled over databases, as likelihood profiles are."""

OF_COUNTS = ("logistic", "poisson")
"""Models whose ratio without weights and covariates is a function of counts and days."""


def rates_of(arm: str) -> tuple[str, ...]:
    """Columns of the rates of an arm."""
    ends = ("", "_lower", "_upper")
    return tuple(f"{arm}_{weighted}rate{end}" for weighted in ("", "weighted_") for end in ends)


RATES = tuple(name for arm in ARMS for name in rates_of(arm))


def few_outcomes(row: Named, least: int) -> bool:
    """Whether both arms together have few outcomes, as far as they are known."""
    known = [n for n in (row.get(f"{arm}_outcomes") for arm in ARMS) if n is not None]
    return bool(is_small(sum(known), least)) if known else False


def share_arms(rows: Sequence[RowT], results: Results) -> Iterator[RowT]:
    """Rows of the tables `arms` and `estimates`."""
    shared: dict[int, RowT] = {}
    elsewhere, answers = ShownBefore(results), _answers(rows)
    for places in grouped(rows, RUN):
        own = [rows[k] for k in places]
        also = [_near_others(row, elsewhere, answers, results.least) for row in own]
        plain = [_is_plain(row, results) for row in own]
        hidden = hidden_in_arms(own, results.least, also, plain)
        for k, names in zip(places, hidden, strict=True):
            gone = dict.fromkeys(names & set(rows[k]))
            shared[k] = rows[k].changed(gone | {"suppressed": suppressed_in(rows[k], names)})
            for arm, name in EVENTS:
                found = shared[k][f"{arm}_{name}"]
                elsewhere.add(rows[k], arm, found, name, *_level(rows[k]))
                if found is None and rows[k].get("level") is not None:
                    number_hidden = rows[k][f"{arm}_{name}"]
                    elsewhere.add(rows[k], arm, number_hidden, name, *_level(rows[k]), HIDDEN)
    return (shared[k] for k in range(len(rows)))


def _level(row: Named) -> tuple[object, object]:
    return row.get("subgroup"), row.get("level")


def _answers(rows: Sequence[Named]) -> dict[tuple[Any, ...], list[float]]:
    """Numbers of people after an adjustment, by their exposure and outcome, in all analyses.

    All of them were among the people before, whom the analyses may share.
    """
    found: dict[tuple[Any, ...], set[float]] = defaultdict(set)
    for row in rows:
        if _side(row) == "after":
            for arm, name in itertools.product(ARMS, PEOPLE):
                if row[f"{arm}_{name}"] is not None:
                    found[(row[arm], row["outcome"], name)].add(row[f"{arm}_{name}"])
    return {key: sorted(numbers) for key, numbers in found.items()}


def _near_others(
    row: Named, elsewhere: ShownBefore, answers: dict[tuple[Any, ...], list[float]], least: int
) -> set[str]:
    """Numbers of a row that differ by few from those of the same people in other runs."""
    numbers = {
        f"{arm}_{name}": elsewhere.numbers(row, arm, name, *_level(row)) for arm, name in EVENTS
    }
    if side_of(row) == "before":
        for arm, name in itertools.product(ARMS, PEOPLE):
            numbers[f"{arm}_{name}"] = answers.get((row[arm], row["outcome"], name), [])
    near = {
        name
        for name, others in numbers.items()
        if row.get(name) is not None and is_near_shown(row[name], sorted(others), least)
    }
    for arm, name in EVENTS if row.get("level") is not None else ():
        count = row[f"{arm}_{name}"]
        gone = np.array(elsewhere.numbers(row, arm, name, *_level(row), HIDDEN))
        if count is not None and (np.abs(gone - count) < least).any():
            near.add(f"{arm}_{name}")  # hidden there so that another level does not follow
    return near


def is_plain_ratio(
    model: object, reading: object, *, is_adjusted: bool, has_covariates: bool
) -> bool:
    """Whether a ratio of odds or rates is of people without weights, sets or covariates.

    It is then a function of the people or days and the outcomes of both arms: those of one arm
    follow exactly from the others. `is_adjusted`: the people have weights or sets, which a pooled
    reading ignores.
    """
    has_sets = is_adjusted and reading != "pooled"
    return model in OF_COUNTS and not has_sets and not has_covariates


def _is_plain(row: Named, results: Results) -> bool:
    if row.get("role") not in ADJUSTED or row["model"] not in OF_COUNTS:
        return False
    run = next(iter(results.raw(RunRow, **run_of(row))), RunRow())
    return is_plain_ratio(
        row["model"],
        row["reading"],
        is_adjusted=run.adjustment_kind not in ("none", "trimming"),
        has_covariates=bool(
            results.raw(OutcomeCoefficientRow, number=row["number"], **run_of(row))
        ),
    )


def suppressed_in(row: Named, hidden: Iterable[str]) -> str:
    """The column ``suppressed`` of a row without what `hidden_in_arms` names."""
    few = {f"{arm}_{WITHOUT_EVENT}" for arm in ARMS} & set(hidden)
    gone = {name for name in hidden if row.get(name) is not None}
    return ", ".join(sorted(names_hidden(row) | gone | few))


def hidden_in_arms(
    rows: Sequence[Named],
    least: int,
    also: Sequence[set[str]] = (),
    plain: Sequence[bool] = (),
) -> list[set[str]]:
    """Names to hide in each of the rows of one run.

    A row has counts of both arms, perhaps rates and an effect, and the column ``role`` or ``side``
    that says whose they are; a row without both stands for itself. `also` are names to hide in each
    row for another reason, and `plain` says which effects are as those of crude estimates.
    """
    hidden = [_by_themselves(row, least) for row in rows]
    for names, more in zip(hidden, also, strict=False):
        names |= more
    left = [{**row, **dict.fromkeys(names)} for row, names in zip(rows, hidden, strict=True)]
    for names, others in zip(hidden, _by_others(left, least), strict=True):
        names |= others
    for row, names, is_crude in zip(rows, hidden, plain or [False] * len(rows), strict=True):
        names |= _with_what_reveals(row, names, least, is_crude)
    return hidden


def _by_themselves(row: Named, least: int) -> set[str]:
    """Counts of a row that are small, or reveal a small one of the same arm."""
    hidden: set[str] = set()
    for arm in ARMS:
        persons, exposures, outcomes, competing = (
            number(row.get(f"{arm}_{name}")) for name in COUNTS
        )
        if is_small([persons, exposures], least).any():
            hidden |= {f"{arm}_persons", f"{arm}_exposures", f"{arm}_days"}
        if is_small(exposures - persons, least):
            hidden.add(f"{arm}_persons")
        # Those without an event follow from the others, so that these must not reveal few of them.
        others = 0.0 if np.isnan(competing) else competing
        counts = [exposures, outcomes, competing, exposures - outcomes - others]
        if is_small(counts[3], least):
            hidden.add(f"{arm}_{WITHOUT_EVENT}")
        mask = hide_small(counts, [(0, (1, 2, 3))], least, known=(0,))
        if np.isnan(counts).any():
            mask = is_small(counts, least)
        hidden |= {
            f"{arm}_{n}" for n, is_hidden in zip(COUNTS[2:], mask[1:3], strict=True) if is_hidden
        }
    strata = ("informative_strata", "informative_people")
    people = sum(number(row.get(f"{arm}_exposures")) for arm in ARMS)
    counts_of_strata = [number(row.get(name)) for name in strata]
    if is_small([*counts_of_strata, people - counts_of_strata[1]], least).any():
        hidden |= set(strata)
    return hidden


def _with_what_reveals(row: Named, hidden: set[str], least: int, is_crude: bool) -> set[str]:
    """Numbers from which the hidden counts follow."""
    found: set[str] = set()
    few = False
    for arm in ARMS:
        if f"{arm}_outcomes" in hidden | names_hidden(row):
            # Days times a rate are the outcomes, and so is the detectable ratio less the other arm.
            # Whether the outcome is common bounds their number.
            found |= {"mdrr", "expected_se", *E_VALUES, *rates_of(arm)}
            few = True
        if f"{arm}_exposures" in hidden and is_small(number(row.get(f"{arm}_exposures")), least):
            found |= {"mdrr", "expected_se", *E_VALUES, *rates_of(arm)}
    # The variance of an unadjusted log ratio is close to 1 / a + 1 / b with a and b outcomes.
    is_crude = is_crude or row.get("role", "main") not in ADJUSTED
    if few_outcomes(row, least) or (few and is_crude):
        found |= {*OF_EFFECT, *FRAILTIES}
    if _has_small_clusters(row, hidden, least):
        found |= set(FRAILTIES)
    return found


def _has_small_clusters(row: Named, hidden: set[str], least: int) -> bool:
    """Whether clusters have few people on average, or the number of people is hidden."""
    n_clusters = row.get("n_clusters")
    if n_clusters is None:
        return False
    names = [f"{arm}_exposures" for arm in ARMS]
    people = sum(number(row.get(name)) for name in names)
    return bool(hidden & set(names)) or not people >= least * n_clusters


def _by_others(rows: Sequence[Named], least: int) -> list[set[str]]:
    """Counts that reveal those of other rows.

    Levels of a subgroup variable add up to the people of the main estimate; and people before the
    adjustment, whom the crude estimate is of, less those after it are those whom it left out. The
    people of the answer stay, so that it is those before whose number is hidden.
    """
    hidden: list[set[str]] = [set() for _ in rows]
    sides = [_side(row) for row in rows]
    after = next((row for row, side in zip(rows, sides, strict=True) if side == "after"), None)
    if after is None:
        return hidden
    for k, side in enumerate(sides):
        if side == "before":
            hidden[k] |= _close(rows[k], after, least)
    for variable in dict.fromkeys(row.get("subgroup") for row in rows):
        if variable is not None:
            places = [k for k, row in enumerate(rows) if row.get("subgroup") == variable]
            levels = _levels([rows[k] for k in places], after, least)
            for k, names in zip(places, levels, strict=True):
                hidden[k] |= names
    return hidden


def _side(row: Named) -> str | None:
    """Whether a row is of the people before or after the adjustment."""
    if "side" in row:
        return str(row["side"])
    return {"crude": "before", "main": "after"}.get(str(row.get("role")))


def _close(before: Named, after: Named, least: int) -> set[str]:
    names = [f"{arm}_{name}" for arm in ARMS for name in PEOPLE]
    known = [n for n in names if None not in (before.get(n), after.get(n))]
    return {name for name in known if is_small(before[name] - after[name], least)}


def _levels(rows: Sequence[Named], main: Named, least: int) -> list[set[str]]:
    """Names to hide in the levels of a variable."""
    hidden: list[set[str]] = [set() for _ in rows]
    for name in (f"{arm}_{count}" for arm in ARMS for count in COUNTS):
        counts = [number(main[name]), *(number(row[name]) for row in rows)]
        mask = hide_small(counts, [(0, range(1, len(counts)))], least)
        for own, is_hidden in zip(hidden, mask[1:], strict=True):
            own |= {name} if is_hidden else set()
    outcomes = [[row[f"{arm}_outcomes"] for arm in ARMS] for row in rows]
    if any(None in own or is_small(sum(own), least) for own in outcomes):
        for own in hidden:
            own.add("interaction_p")
    return hidden


def share_controls(rows: Sequence[ControlRow], results: Results) -> Iterator[ControlRow]:
    """Effects of controls, unless the estimate is hidden: as with few outcomes in both arms."""
    hidden = dict.fromkeys(OF_CONTROL)
    for row in rows:
        keys = {**run_of(row), "model": row.model, "reading": row.reading}
        estimates = [e for e in results.raw(EstimateRow, **keys) if e.role in ADJUSTED]
        few = any(few_outcomes(e, results.least) for e in estimates) or not estimates
        few = few or any(reveals_an_arm(e, results) for e in estimates)
        yield row.changed(hidden) if few else row


def reveals_an_arm(row: EstimateRow, results: Results) -> bool:
    """Whether the outcomes of an arm are hidden, and follow from this estimate without weights."""
    shown = results.shown(EstimateRow, number=row.number, **run_of(row))
    outcomes = {f"{arm}_outcomes" for arm in ARMS}
    return _is_plain(row, results) and any(outcomes & names_hidden(one) for one in shown)
