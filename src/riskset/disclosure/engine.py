"""All tables of results as they may be shared: one rule for each of them, and no table without.

Shared results and reports are made here alike; `riskset.cohort.share_estimate` and its kin use the
same rules for results that are still in memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from riskset.disclosure import (
    arms,
    biases,
    censoring,
    covariates,
    intervals,
    multiplicity,
    over_time,
    people,
    sentences,
)
from riskset.disclosure.rows import ARMS, RUN, Named, RowT, SharingRule, keys_of, known, without
from riskset.disclosure.small_cells import is_small
from riskset.results.columns import GUARDED, ResultRow
from riskset.results.rows import EstimateRow, RunRow

__all__ = ["RULES", "WITHHELD", "Disclosure", "DisclosureError"]


class DisclosureError(ValueError):
    """A table or a column that nothing says how to share."""


def _both(*names: str) -> tuple[str, ...]:
    return tuple(f"{arm}_{name}" for arm in ARMS for name in names)


COUNTS = _both("persons", "exposures", "days", "outcomes", "competing")
MEANS = ("mean_target", "mean_comparator")
SIDES = ("before", "after")
GROUPS = (*ARMS, "overall")
OF_SIDES = tuple(
    f"{side}_{name}"
    for side in SIDES
    for name in (*(f"{word}_{arm}" for word in ("mean", "sd", "count") for arm in ARMS), "balanced")
)


def _rule(apply: Callable[[Sequence[Any], Any], Iterable[ResultRow]], *columns: str) -> SharingRule:
    return SharingRule(apply, frozenset(columns))


RULES: dict[str, SharingRule] = {
    "runs": _rule(sentences.share_reasons, "reason", "reason_values"),
    "attrition": _rule(
        people.share_attrition,
        *_both("persons", "exposures"),
        *(f"removed_{arm}" for arm in ARMS),
    ),
    "arms": _rule(arms.share_arms, *COUNTS, *arms.RATES),
    "estimates": _rule(
        arms.share_arms, *COUNTS, *arms.RATES, *arms.OF_EFFECT, *multiplicity.ADJUSTED_P, "mdrr",
        "expected_se", "informative_strata", "informative_people", *arms.FRAILTIES,
    ),
    "ps": _rule(
        people.share_scores, "n_target", "n_comparator", "equipoise", "intercept",
        "log_likelihood", "reason", "reason_values",
    ),
    "ps_coefficients": _rule(covariates.share_score_coefficients, "coef", *MEANS),
    "ps_flagged": _rule(covariates.share_flagged, "correlation", *MEANS),
    "adjustments": _rule(
        people.share_adjustments, *_both("rows", "effective"), "before_max", "after_max",
        "pairwise_max", "after_min_p", "generalisability_max", "details",
    ),
    "preference": _rule(people.share_preference, "count", "kept", "weight"),
    "balance": _rule(covariates.share_balance, *OF_SIDES, *covariates.DIFFERENCES),
    "subgroup_balance": _rule(
        covariates.share_subgroup_balance, "before_smd", "after_smd", "fewest"
    ),
    "table1": _rule(
        covariates.share_table1,
        *(f"{side}_{one}{end}" for side in SIDES for one in GROUPS for end in covariates.OF_ARM),
        *(f"{side}_smd" for side in SIDES),
    ),
    "outcome_coefficients": _rule(covariates.share_outcome_coefficients, "coef", *MEANS),
    "outcome_cross_validation": _rule(over_time.share_with_effect, "mean", "se"),
    "absolute_risks": _rule(
        over_time.share_risks, *over_time.OF_RISK, *_both("at_risk", "outcomes")
    ),
    "modelled_risks": _rule(
        over_time.share_modelled_risks, *over_time.OF_MODELLED_RISK,
        *_both("at_risk", "outcomes"),
    ),
    "restricted_means": _rule(
        over_time.share_restricted_means, *over_time.OF_RESTRICTED_MEAN,
        *_both("at_risk", "outcomes", "competing"),
    ),
    "curves": _rule(
        over_time.share_curves, "value", "standard_error", "lower", "upper", "people", "events"
    ),
    "curve_tests": _rule(over_time.share_curve_tests, *over_time.OF_CURVE_TEST),
    "numbers_at_risk": _rule(over_time.share_at_risk, "people", "weighted", "effective"),
    "censoring_weights": _rule(censoring.share_censoring_weights, *censoring.OF_WEIGHTS),
    "deviations": _rule(censoring.share_deviations, *censoring.COUNTS),
    "controls": _rule(arms.share_controls, *arms.OF_CONTROL),
    "unmeasured_confounding": _rule(biases.share_confounders, *biases.OF_CONFOUNDER),
    "bias_bounds": _rule(biases.share_bias_bounds, *biases.OF_BOUND),
    "diagnostics": _rule(people.share_diagnostics, "value"),
    "follow_up": _rule(
        over_time.share_quantiles, "days", "entry_days", "potential_days", "potential_people"
    ),
    "follow_up_histogram": _rule(over_time.share_histogram, "people"),
    "follow_up_ends": _rule(over_time.share_ends, "count"),
    "likelihood_profiles": _rule(
        over_time.share_profiles, "log_hr", "log_likelihood", "derivative"
    ),
    "effect_over_time": _rule(
        intervals.share_effect_over_time, *_both("outcomes"), "hr", "hr_lower", "hr_upper",
        "log_hr", "se",
    ),
    "time_effects": _rule(over_time.share_with_effect, "statistic", "p"),
    "effect_at_times": _rule(
        intervals.share_effect_at_times, *_both("outcomes"), "hr", "hr_lower", "hr_upper",
        "log_hr", "se",
    ),
    "event_weeks": _rule(intervals.share_weeks, "events", "people"),
    "calendar": _rule(people.share_calendar, "starts"),
    "warnings": _rule(sentences.share_remarks, "message", "message_values"),
}  # fmt: skip
"""How each table is shared. Tables without guarded columns need no rule: every number in them is a
setting, or a result from which no count of people follows."""


WITHHELD: Mapping[str, tuple[str, ...]] = {
    "arms": arms.RATES,
    "estimates": (
        *arms.EFFECT, *arms.CALIBRATED, *arms.E_VALUES, *multiplicity.ADJUSTED_P, *arms.RATES,
        "interaction_p",
    ),
    "absolute_risks": over_time.OF_RISK,
    "curve_tests": over_time.OF_CURVE_TEST,
    "modelled_risks": over_time.OF_MODELLED_RISK,
    "restricted_means": over_time.OF_RESTRICTED_MEAN,
}  # fmt: skip
"""Columns that reveal the effect of a run, and are withheld where it is blinded."""


class Disclosure:
    """Tables of results as they may be shared; `source` returns the rows of a table by its name.

    Counts above 0 and below `least` are hidden, and what reveals them; 0 hides nothing. A table
    with a guarded column that has no rule raises a `DisclosureError`.
    """

    def __init__(
        self,
        source: Callable[[str], Iterable[Named]],
        tables: Mapping[str, type[ResultRow]],
        least: int,
    ) -> None:
        self._source, self._tables, self._least = source, tables, least
        self._raw: dict[str, Lookup] = {}
        self._shown: dict[str, Lookup] = {}
        is_small(0, least)
        for table in tables.values():
            _check(table)

    @property
    def least(self) -> int:
        """Counts above 0 and below it are small."""
        return self._least

    def raw(self, kind: type[RowT], /, **where: object) -> Sequence[RowT]:
        """Rows of a table before anything is hidden here."""
        name = kind.table
        if self._tables.get(name) is not kind:
            raise DisclosureError(f"there is no table {name!r}, so nothing of it is shared.")
        if name not in self._raw:
            self._raw[name] = Lookup([_typed(kind, row) for row in self._source(name)])
        return self._raw[name].rows(where)

    def shown(self, kind: type[RowT], /, **where: object) -> Sequence[RowT]:
        """Rows of a table as they may be shared."""
        name = kind.table
        if name not in self._shown:
            rows: Sequence[ResultRow] = self.raw(kind)
            if self._least and name in RULES:
                rows = [self._guarded(row) for row in RULES[name].apply(rows, self)]
            rows = self._blinded(name, rows)
            if kind is EstimateRow:
                rows = multiplicity.with_adjusted_p(rows, self.raw(RunRow))  # type: ignore[arg-type]
            self._shown[name] = Lookup(rows)
        return self._shown[name].rows(where)

    def _blinded(self, name: str, rows: Sequence[ResultRow]) -> Sequence[ResultRow]:
        """Rows without the effects of runs that are blinded, whatever the minimum."""
        blinded = {keys_of(run, RUN) for run in self.raw(RunRow, blinded=True)}
        if name not in WITHHELD or not blinded:
            return rows
        nothing = dict.fromkeys(WITHHELD[name])
        return [row.changed(nothing) if keys_of(row, RUN) in blinded else row for row in rows]

    def _guarded(self, row: ResultRow) -> ResultRow:
        """A row as a rule leaves it, without small counts that the rule may have overlooked."""
        columns = row.columns()
        small = {
            name
            for name, column in columns.items()
            if column.kind == "count" and 0 < (row[name] or 0) < self._least
        }
        private = [name for name, column in columns.items() if column.kind == "private"]
        shown = without(row, small)
        return shown.changed(dict.fromkeys(private)) if private else shown


def _typed(kind: type[RowT], row: Named) -> RowT:
    """A row as an object, None in place of NaN."""
    known_columns = [name for name in kind.columns() if name in row]
    typed = row if isinstance(row, kind) else kind.of({name: row[name] for name in known_columns})
    missing = [name for name, value in typed.items() if value is not None and known(value) is None]
    return typed.changed(dict.fromkeys(missing)) if missing else typed


def _check(table: type[ResultRow]) -> None:
    """Refuse a table with a column that no rule decides about."""
    guarded = {name for name, column in table.columns().items() if column.kind in GUARDED}
    decided = RULES[table.table].columns if table.table in RULES else frozenset()
    if guarded - decided:
        raise DisclosureError(
            f"the table {table.table!r} has columns that may reveal counts of people and no rule "
            f"for them: {', '.join(sorted(guarded - decided))}. Add them to its rule in RULES, or "
            "give them another kind."
        )


class Lookup:
    """Rows of a table, found by the values of columns."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows
        self._places: dict[tuple[str, ...], dict[tuple[object, ...], list[Any]]] = {}

    def rows(self, where: Mapping[str, object]) -> Sequence[Any]:
        """Rows with these values."""
        if not where:
            return self._rows
        names = tuple(sorted(where))
        if names not in self._places:
            places: dict[tuple[object, ...], list[Any]] = {}
            for row in self._rows:
                places.setdefault(tuple(row.get(name) for name in names), []).append(row)
            self._places[names] = places
        return self._places[names].get(tuple(where[name] for name in names), [])
