"""The people of a study from a plain table with one row for each exposure."""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from riskset._errors import InputError, counted
from riskset._messages import Note, Sentence, Value
from riskset._settings import Fault, as_dict
from riskset._time_units import DAYS_A_YEAR, DAYS_IN, TimeUnit
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, restrict, start
from riskset.cohort.population import Population
from riskset.data.causes import CauseLabels, cause_code, code_labels, holds_text
from riskset.data.checks import EmptyColumnError, Places
from riskset.data.cohort_table import (
    covariates_of,
    incomplete_covariates,
    missing_by_column,
    read_columns,
    read_orders,
)
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.design import Design
from riskset.data.documents import checksum
from riskset.data.incomplete import Donors, IncompleteColumn
from riskset.data.missing_values import MISSING_LEVEL, MissingRule
from riskset.imputation.chain import Chain
from riskset.results.rows import ConceptRow
from riskset.study.cache import StepCache, StepResult, digest
from riskset.study.sources.covariate_names import unknown_covariates, without_indicators
from riskset.study.sources.people_of_arms import PeopleOfArms
from riskset.study.sources.source import (
    ComparisonCohort,
    Deviations,
    Followed,
    Measurements,
)
from riskset.study.sources.table_columns import TableColumns
from riskset.study.sources.table_histories import HistoryTable
from riskset.study.specification.data_sections import TableData
from riskset.study.specification.exposure_sections import TableExposure, strategies_of
from riskset.study.specification.outcome_sections import TableOutcome
from riskset.study.specification.sections import YEAR, Analysis, Comparison
from riskset.study.specification.study_definition import Study
from riskset.study.specification.subgroup_variables import Labels, label_people
from riskset.study.specification.validation import name_fault
from riskset.study.steps.imputation_step import ImputationStep, imputation_models, impute_covariates
from riskset.study.steps.strategy_plan import StrategyPlan

__all__ = ["TableSource"]

ROLES = ("target", "comparator")
COVARIATES = "the covariates"
SUSPICIOUS_RATE = 200.0
"""Outcomes per 1,000 person-years, which months that are taken for days exceed easily."""
LONGEST_LIFE = 120.0
"""Years of follow-up that nobody has."""
MAX_VALUES = 8
"""A column of treatments with more values is described by their number."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CovariateStep(StepResult, step="covariates"):
    """The notes on the covariates of a table, whose values are in a file."""


class TableSource:
    """A table of people, with covariates in it or in another file, as a `StudySource`.

    The cache keeps the covariates, which are mapped from their file.
    """

    def __init__(self, study: Study, cache: StepCache) -> None:
        self._study, data = study, study.specification.data
        assert isinstance(data, TableData)
        self._data = data
        used = self._used = TableColumns.find(study)
        files = [used.file.path, *([] if used.long is None else [used.long])]
        files += [] if used.labels is None else [used.labels]
        files += [] if used.histories is None else [used.histories]
        prints = [checksum(path) for path in files]
        self.covariate_labels = CovariateLabels.read(used.labels)
        self._columns = read_columns(used.file, used.wanted)
        self._check_people()
        # Those that an earlier version of the package kept have levels in another order.
        self._key = digest("read levels in their order", prints, study.settings["data"])
        self._cache = cache
        key = digest(self._key, used.covariates)
        self._gaps: Mapping[str, int] = {}
        if data.covariates.is_imputed:
            self._gaps = missing_by_column(used.file, used.covariates)
            study.refuse(self._missing_references())
        self.design, notes = self._read_covariates(used.file.path.name, key)
        if data.covariates.is_imputed:
            notes = tuple(note for note in notes if note.code != "missing_values")
        self._notes = [*notes, *_notes_on_imputed(self._gaps), *self._others()]
        self.provenance: dict[str, str] = {}
        self.sources: list[dict[str, object]] = [
            {"name": path.name, "fingerprint": fingerprint, "rows": None}
            for path, fingerprint in zip(files, prints, strict=True)
        ]
        self.sources[0]["rows"] = self.design.n_rows
        parted = read_columns(used.file, dict.fromkeys(used.numbers, "number"))

        def column(name: str, as_number: bool) -> AnyArray:
            if name == YEAR and name not in self._columns and name not in parted:
                return self._columns[str(data.index_date)]
            return parted[name] if as_number else self._columns[name]

        orders = read_orders(used.file, [n for n, kind in used.wanted.items() if kind == "label"])
        names = [name for name, _ in study.specification.column_uses()]
        self._label: Callable[[Design], dict[str, Labels]] = lambda design: label_people(
            study, names, column, design, COVARIATES, orders
        )
        left = without_indicators(self.design, self._gaps)
        self._labels = self._label(left)
        if used.long is None:  # its covariates are those that somebody has
            names_of = (left, self.design, self.covariate_labels, COVARIATES)
            study.refuse(unknown_covariates(study.specification, *names_of))
        self._cohort: tuple[Comparison, ComparisonCohort] | None = None
        self._data_sets: dict[int, tuple[Design, dict[str, Labels]]] = {}

    def _read_covariates(
        self, what: str, key: str, donors: Donors | None = None
    ) -> tuple[Design, tuple[Note, ...]]:
        """The covariates as they are, or completed by donors."""
        section, used = self._data.covariates, self._used
        rule: MissingRule = "indicator" if section.missing == "impute" else section.missing
        path = self._cache.path("covariates", f"{key}.rsd")

        def write() -> CovariateStep:
            _, notes = covariates_of(
                used.file,
                used.covariates,
                used.long,
                path,
                duplicates=section.duplicates,
                unknown_rows=section.unknown_rows,
                covariate_columns=section.covariate_columns,
                reference=section.reference,
                missing="error" if donors else rule,
                labels=self.covariate_labels,
                imputed=self._gaps,
                donors=donors,
            )
            return CovariateStep(notes=notes)

        try:
            notes = self._cache.get_or_compute(CovariateStep, what, key, write).notes
        except EmptyColumnError as error:
            raise self._study.error("data", "covariates", "missing", error=error) from None
        if not path.exists():  # deleted by somebody
            write()
        return self.covariate_labels.labelled(Design.open(path, verify=False)), notes

    def _missing_references(self) -> Iterator[Fault]:
        """Reference levels that no row has once missing values are imputed."""
        for column, level in self._data.covariates.reference.items():
            if column in self._gaps and level == MISSING_LEVEL:
                yield Fault(
                    ("data", "covariates", "reference", column),
                    f"the missing values of {column!r} are imputed, so no one has the level "
                    f"{level!r}.",
                    "name another level, or set `missing: indicator`.",
                )

    def _imputation_models(self) -> Chain:
        """The models that missing values are drawn from."""
        everybody = np.arange(self.design.n_rows)
        followed = []
        for name, outcome in self._study.specification.outcomes.items():
            assert isinstance(outcome, TableOutcome)
            time, entry = self._times(outcome.time, everybody), self._entries(outcome, everybody)
            followed.append((time, self._status(name, outcome, everybody), entry))
        name = str(self._data.treatment)
        levels, code = np.unique(self._columns[name], return_inverse=True)
        missing = np.zeros(code.size, dtype=bool)
        treatment = IncompleteColumn(name, code.reshape(-1), missing, levels.size)
        try:
            columns = incomplete_covariates(self._used.file, self._used.covariates)
            models = (treatment, *columns)
            return imputation_models(models, followed, self._data.covariates.imputation)
        except InputError as error:
            raise self._study.error("data", "covariates", "missing", error=error) from None

    def _imputation(self) -> ImputationStep:
        specification = self._study.specification
        read = ("time", "event", "cause", "censored", "entry")
        outcomes = [[getattr(o, key) for key in read] for o in specification.outcomes.values()]
        return self._cache.get_or_compute(
            ImputationStep,
            "covariates",
            [self._key, outcomes, specification.seed],
            lambda: impute_covariates(self._imputation_models(), specification.seed),
        )

    def _completed(self, cohort: ComparisonCohort, rows: Index, data_set: int) -> ComparisonCohort:
        """A cohort in a completed data set."""
        step = self._imputation()
        if data_set not in self._data_sets:
            key = digest(step.key, self._used.covariates, data_set)
            design, _ = self._read_covariates(f"data set {data_set + 1}", key, step.of(data_set))
            self._data_sets[data_set] = (design, self._label(design))
        design, labels = self._data_sets[data_set]
        return dataclasses.replace(
            cohort,
            key=digest(cohort.key, step.key, data_set),
            design=design if rows.size == design.n_rows else design.take_rows(rows),
            labels={name: own.take(rows) for name, own in labels.items()},
            n_datasets=0,
            completed=None,
            data_set=data_set,
            base=cohort.key,
            observed=cohort.design,
            arms=functools.partial(
                self._people_of_arms, rows, digest(self._key, step.key, data_set), design
            ),
        )

    def cohort(self, comparison: Comparison, analysis: Analysis) -> ComparisonCohort:
        """The people of a comparison, the same for all analyses; the last one is remembered."""
        if self._cohort is None or self._cohort[0] != comparison:
            self._cohort = (comparison, self._select(comparison, analysis))
        return self._cohort[1]

    def shared(self, comparison: Comparison, analysis: Analysis) -> Adjustment:
        """All people of a comparison."""
        return self.cohort(comparison, analysis).people

    def follow(self, comparison: Comparison, analysis: Analysis, outcome: str) -> Followed:
        """What became of them, as the columns of the outcome say."""
        names = self._study.specification.outcomes[outcome]
        assert isinstance(names, TableOutcome)
        cohort, rows = self.cohort(comparison, analysis), self._rows(comparison)
        time, unit = self._times(names.time, rows), self._data.time_unit
        status, entry = self._status(outcome, names, rows), self._entries(names, rows)
        people = cohort.people
        if names.prior is not None:
            had = np.asarray(self._columns[names.prior][rows], dtype=np.float64) != 0
            people = restrict(people, ~had, "no prior outcome")
        reasons = None
        if names.end_reason is not None:
            reasons = self._columns[names.end_reason][rows].astype(np.str_)
        columns = (
            *(names.time, names.event, names.cause, names.censored),
            *(names.prior, names.end_reason),
        )
        key = digest(cohort.key, columns, unit, *([] if names.entry is None else [names.entry]))
        notes = _notes_on_times(time, status, unit)
        return Followed(key, people, time, status, reasons, notes, entry=entry)

    def deviations(self, comparison: Comparison, analysis: Analysis, outcome: str) -> Deviations:
        """When people deviate: the column of the analysis, or as their strategy says."""
        protocol, unit = analysis.protocol, self._data.time_unit
        assert protocol is not None
        cohort, rows = self.cohort(comparison, analysis), self._rows(comparison)
        measured: Mapping[str, Measurements] = {}
        if protocol.over_time and self._histories is not None:
            measured = self._histories.of_rows(rows, cohort.design)
        exposures = self._study.specification.exposures
        both = strategies_of(exposures, comparison.target, comparison.comparator)
        if both is not None:
            hint = "leave it empty for people who never start, and count the first day as 1."
            began = self._optional_times(both[0].treated_at, rows, hint)
            arms = (one.in_days(unit) for one in both)
            plan = StrategyPlan(began, cohort.people.population.is_target, *arms)
            return Deviations(
                digest(cohort.key, [as_dict(one) for one in both], unit),
                plan.deviation(),
                measured,
                plan=plan,
            )
        name = protocol.deviation
        assert name is not None
        hint = "leave it empty for people who never deviate, and leave out those who do at once."
        at = self._optional_times(name, rows, hint)
        return Deviations(digest(cohort.key, name, unit), at, measured)

    def _optional_times(self, name: str, rows: Index, hint: str) -> Rows:
        """Days at which something happens to some rows; infinite: never."""
        time, unit = self._columns[name][rows], self._data.time_unit
        self._check(name, rows, ~(time <= 0), f"must hold {unit} above 0", hint)
        return np.where(np.isnan(time), np.inf, time * DAYS_IN[unit])

    @functools.cached_property
    def _histories(self) -> HistoryTable | None:
        """The measurements of covariates over time, if the study has them."""
        section = self._data.covariates_over_time
        if section is None:
            return None
        ids = self._columns[str(self._data.id)]
        return HistoryTable.read(self._study, section, ids, self._data.time_unit)

    def _times(self, name: str, rows: Index) -> Rows:
        """Days at risk of some rows."""
        time, unit = np.asarray(self._columns[name][rows], dtype=np.float64), self._data.time_unit
        hint = "let follow-up include its first day, or leave these people out."
        self._check(name, rows, time > 0, f"must hold {unit} above 0", hint)
        return np.asarray(time * DAYS_IN[unit])

    def _entries(self, names: TableOutcome, rows: Index) -> Rows | None:
        """Days after which some rows come under observation; None if all do at the start."""
        if names.entry is None:
            return None
        entry = np.asarray(self._columns[names.entry][rows], dtype=np.float64)
        self._check(names.entry, rows, entry >= 0, "must be at least 0", "0 is the start.")
        time = np.asarray(self._columns[names.time][rows], dtype=np.float64)
        must = f"must be before {names.time!r}, the end of follow-up"
        hint = "leave out people who come under observation after their follow-up has ended."
        self._check(names.entry, rows, entry < time, must, hint)
        return entry * DAYS_IN[self._data.time_unit] if entry.any() else None

    def _status(self, outcome: str, names: TableOutcome, rows: Index) -> Index:
        """0 = censored, 1 = outcome, 2 = competing event, of some rows."""
        event = self._columns[names.event]
        known: CauseLabels = {}
        if not holds_text(event):
            if names.censored is not None:
                error = InputError(
                    f"`censored` is {names.censored!r}, but column {names.event!r} holds numbers.",
                    hint="leave it out: 0 is censored.",
                )
                raise self._study.error("outcomes", outcome, "censored", error=error)
            code = event[rows].astype(np.float64)
            if names.cause is None:
                fine = np.isin(code, (0, 1, 2))
                hint = (
                    "recode it: 0 = censored, 1 = outcome, 2 = any competing event; or set `cause`."
                )
                self._check(names.event, rows, fine, "must hold 0, 1 or 2", hint)
                return np.asarray(code, dtype=np.int64)
            fine = (code >= 0) & (code % 1 == 0)
            hint = "0 = censored; every other code is a cause."
            self._check(names.event, rows, fine, "must hold whole numbers of at least 0", hint)
            codes = code.astype(np.int64)
        else:
            place = f"column {names.event!r} of {self._used.file.path.name}"
            try:
                whole, known = code_labels(event, names.censored, place, Places())
            except InputError as error:
                raise self._study.error("outcomes", outcome, "event", error=error) from None
            codes = whole[rows]
        try:
            cause = cause_code(names.cause, known)
        except InputError as error:
            raise self._study.error("outcomes", outcome, "cause", error=error) from None
        return np.where(codes == 0, 0, np.where(codes == cause, 1, 2))

    def _check_people(self) -> None:
        """Ids must differ, and scores must be probabilities."""
        data, everybody = self._data, np.arange(next(iter(self._columns.values())).size)
        if data.id is not None:
            first = np.unique(self._columns[data.id], return_index=True)[1]
            hint = "give people who enter twice two ids, and one name in the column of `person`."
            fine = np.isin(everybody, first)
            self._check(data.id, everybody, fine, "must hold a different id in each row", hint)
        if data.sampling_weight is not None:
            weight = np.asarray(self._columns[data.sampling_weight], dtype=np.float64)
            hint = "leave rows without a weight out."
            self._check(data.sampling_weight, everybody, weight > 0, "must be above 0", hint)
        if data.score is not None:
            score = np.asarray(self._columns[data.score], dtype=np.float64)
            hint = "leave rows without a score out, and check the model that made it."
            fine = (score >= 0) & (score <= 1)
            self._check(data.score, everybody, fine, "must hold probabilities", hint)

    def _check(self, name: str, rows: Index, fine: AnyArray, must: str, hint: str) -> None:
        """Raise an error if some values of a column are not valid."""
        bad = np.unique(rows[~fine])  # clones have the row of their person
        if bad.size:
            value, what = self._columns[name][bad[0]], f"data row {bad[0] + 1:,}"
            if isinstance(value, np.floating) and value.is_integer():
                value = int(value)  # as it stands in most files
            if self._data.id is not None:
                what += f", {self._data.id} {self._columns[self._data.id][bad[0]]}"
            raise InputError(
                f"column {name!r} of {self._used.file.path.name} {must}, but "
                f"{counted(bad.size, 'row')} {'does' if bad.size == 1 else 'do'} not (first: "
                f"{what}, value {value}).",
                hint=hint,
            )

    def check(self) -> None:
        """Raise an error if an exposure has no row, or an outcome is not valid."""
        asked, column = self._study.specification, self._data.treatment
        if column is not None:
            known = np.unique(self._columns[column]).astype(np.str_).tolist()
            self._study.refuse(
                name_fault(
                    ("exposures", name, "value"), "value", self._value(name), known, repr(column)
                )
                for name in asked.exposures
                if not self._is(name).any()
            )
        analysis = next(iter(asked.analyses.values()))
        for comparison in asked.comparisons:
            for outcome in asked.outcomes:
                self.follow(comparison, analysis, outcome)
                for one in asked.analyses.values():
                    if one.protocol is not None:
                        self.deviations(comparison, one, outcome)
        if self._gaps:
            self._imputation_models()

    def codes(self) -> list[ConceptRow]:
        """Tables have none."""
        return []

    def _rows(self, comparison: Comparison) -> Index:
        if self._data.treatment is None:  # everybody is in both arms
            return np.repeat(np.arange(self.design.n_rows), 2)
        target, comparator = (self._is(name) for name in (comparison.target, comparison.comparator))
        return np.flatnonzero(target | comparator)

    def _value(self, exposure: str) -> str:
        definition = self._study.specification.exposures[exposure]
        assert isinstance(definition, TableExposure)
        return definition.value

    def _is(self, exposure: str) -> AnyArray:
        values, wanted = self._columns[str(self._data.treatment)], self._value(exposure)
        if values.dtype.kind == "b":
            values = values.astype(np.int64)
            wanted = {"true": "1", "false": "0"}.get(wanted.lower(), wanted)
        codes, place = np.unique(values, return_inverse=True)
        return np.isin(place, np.flatnonzero(codes.astype(np.str_) == wanted))

    def _others(self) -> list[Note]:
        """A note of the rows that no comparison can have."""
        if self._data.treatment is None:
            return []
        named = [self._is(name) for name in self._study.specification.exposures]
        n = int((~np.logical_or.reduce(named)).sum())
        text = (
            "{n:row|rows} of {all:,} {n:?has|have} a treatment that no exposure names, and "
            "{n:?is|are} left out."
        )
        values = {"n": Value("count", n), "all": Value("count", named[0].size)}
        return [Note("other_treatments", (), text, values)] if n else []

    def _select(self, comparison: Comparison, analysis: Analysis) -> ComparisonCohort:
        data, columns = self._data, self._columns
        rows = self._rows(comparison)
        is_cloned = data.treatment is None
        row_id = person = score = years = weight = None
        if is_cloned:
            treatment, person = np.tile([1, 0], self.design.n_rows), rows
            values = ["strategies"]
        else:
            treatment = self._is(comparison.target)[rows].astype(np.int64)
            values = [self._value(name) for name in (comparison.target, comparison.comparator)]
            if data.id is not None and columns[data.id].dtype.kind in "iu":
                row_id = columns[data.id][rows]
        if data.person is not None:
            person = np.unique(columns[data.person], return_inverse=True)[1][rows]
        if data.score is not None:
            score = columns[data.score][rows]
        if data.index_date is not None:
            years = columns[data.index_date][rows]
        if data.sampling_weight is not None:
            weight = columns[data.sampling_weight][rows]
        population = Population(
            treatment, score, row_id=row_id, person_id=person, sampling_weight=weight
        )
        cohort = ComparisonCohort(
            digest(self._key, values),
            start(population),
            self._design_of(rows),
            {name: labels.take(rows) for name, labels in self._labels.items()},
            years,
            covariate_labels=self.covariate_labels,
            problem=self._problem(comparison, treatment),
            notes=self._notes,
            arms=functools.partial(self._people_of_arms, rows, self._key, self.design),
        )
        if not self._gaps:
            return cohort
        return dataclasses.replace(
            cohort,
            n_datasets=data.covariates.imputation.datasets,
            completed=functools.lru_cache(maxsize=None)(
                functools.partial(self._completed, cohort, rows)
            ),
        )

    def _design_of(self, rows: Index) -> Design:
        """The covariates of the people of a comparison."""
        if self._data.treatment is None:
            return self.design.repeat_rows(np.bincount(rows, minlength=self.design.n_rows))
        return self.design if rows.size == self.design.n_rows else self.design.take_rows(rows)

    def _people_of_arms(
        self, rows: Index, key: str, design: Design, names: Sequence[str]
    ) -> PeopleOfArms:
        """Everybody who has one of some exposures; `rows` are those of two of them."""
        return PeopleOfArms.of_rows(
            digest(key, [self._value(name) for name in names]),
            {name: self._is(name) for name in names},
            rows,
            design,
            person_id=self._columns.get(self._data.person or ""),
            sampling_weight=self._columns.get(self._data.sampling_weight or ""),
        )

    def _problem(self, comparison: Comparison, treatment: Index) -> tuple[str, Sentence] | None:
        there = {"target": treatment.any(), "comparator": (treatment == 0).any()}
        names = [getattr(comparison, role) for role in ROLES if not there[role]]
        if not names:
            return None
        column = str(self._data.treatment)
        absent = " or ".join(f"`{self._value(name)}` ({name})" for name in names)
        known = np.unique(self._columns[column]).astype(np.str_)
        is_long = known.size > MAX_VALUES
        listed = "which has {n:,} values" if is_long else "whose values are {listed}"
        values = {
            "absent": Value("setting", absent),
            "column": Value("name", repr(column)),
            "n": Value("things", known.size),
            "listed": Value("name", ", ".join(f"`{value}`" for value in known[:MAX_VALUES])),
        }
        return (
            "one_arm_empty" if len(names) == 1 else "empty",
            Sentence(f"no one has {{absent}} in the column {{column}}, {listed}.", values),
        )


def _notes_on_imputed(gaps: Mapping[str, int]) -> list[Note]:
    """A remark on each column whose missing values are imputed."""
    text = "column {column} has no value in {n:row|rows}, for which values were imputed."
    return [
        Note(
            "imputed", (name,), text, {"column": Value("name", repr(name)), "n": Value("count", n)}
        )
        for name, n in gaps.items()
    ]


def _notes_on_times(time: Rows, status: Index, unit: TimeUnit) -> list[Note]:
    """A remark on times that look as if they had another unit."""
    longest, years = float(time.max(initial=0.0)), float(time.sum()) / DAYS_A_YEAR
    rate = 1000 * np.count_nonzero(status == 1) / years if years else 0.0
    values = {
        "unit": Value("setting", repr(unit)),
        "rate": Value("measure", rate),
        "per": Value("setting", 1000),
    }
    if unit == "days" and longest <= DAYS_A_YEAR and rate >= SUSPICIOUS_RATE:
        text = (
            "there are {rate:,.0f} outcomes per {per:,} person-years, and nobody was followed for "
            "more than a year: if the times are not in days, set `time_unit` of `data`."
        )
    elif longest > LONGEST_LIFE * DAYS_A_YEAR:
        values["longest"] = Value("measure", longest / DAYS_A_YEAR)
        text = (
            "the longest follow-up is {longest:,.0f} years with `time_unit` {unit}: set "
            "`time_unit` of `data` to the unit of the times."
        )
    else:
        return []
    return [Note("implausible_times", (), text, values)]
