"""The analyses of OHDSI's FeatureExtraction: types of covariates with their numbers and names.

The id of a covariate ends in the number of its analysis; most are ``concept_id * 1000 +
analysis_id``. Covariate lists from other studies therefore keep their meaning.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from riskset._errors import CohortError, similar

__all__ = [
    "ANALYSES",
    "CUSTOM",
    "DEFAULT",
    "DEFAULT_ANALYSES",
    "CovariateAnalysis",
    "AnalysisKind",
    "Window",
    "analyses_in_markdown",
    "analysis_numbers",
]

AnalysisKind = Literal[
    "person",
    "presence",
    "group",
    "value",
    "range",
    "value as concept",
    "distinct count",
    "count",
    "count by concept",
    "score",
]
Window = Literal["index", "ever", "long", "medium", "short", "overlap"]

CUSTOM = range(950, 1000)
"""Analyses that users define themselves; FeatureExtraction's own end at 926."""

DEFAULT = "default"
"""In a list of analyses this word stands for the default set."""


@dataclass(frozen=True)
class CovariateAnalysis:
    """A kind of covariate, with FeatureExtraction's number and name.

    `domain` is what the covariates are about, such as "condition", and `table` the table of the
    records ("" for characteristics of people). `kind` is "person" (a characteristic at the index
    date), "presence" (a concept was recorded), "group" (a concept or a descendant of it was
    recorded), "value" (the last value), "range" (a value below, within or above its normal range),
    "value as concept" (a concept was recorded with this concept as its value), "distinct count"
    (number of different concepts), "count" (number of records), "count by concept", or "score".
    `window` are the days in which records count. With `starts`, a record must start within the
    window; otherwise it must overlap it. With `inpatient`, it must lie within an inpatient visit.
    """

    id: int
    name: str
    domain: str
    table: str
    kind: AnalysisKind
    window: Window
    is_default: bool = False
    starts: bool = False
    inpatient: bool = False

    @property
    def is_binary(self) -> bool:
        """Whether values are 0 and 1."""
        if self.kind == "person":
            return self.domain not in PERSON_NUMBERS
        return self.kind in ("presence", "group", "range", "value as concept")

    @property
    def missing_means_zero(self) -> bool:
        """Whether somebody without an entry is known to have the value 0."""
        return self.kind != "value"


PERSON_NUMBERS = ("age", "prior observation", "post observation", "time in cohort")
"""Characteristics of people that are numbers rather than groups."""

TERMS: dict[Window, str] = {
    "ever": "AnyTimePrior",
    "long": "LongTerm",
    "medium": "MediumTerm",
    "short": "ShortTerm",
    "overlap": "Overlapping",
}
THREE: tuple[Window, ...] = ("long", "medium", "short")
FOUR: tuple[Window, ...] = ("ever", *THREE)
FIVE: tuple[Window, ...] = (*FOUR, "overlap")
LONG_AND_SHORT: tuple[Window, ...] = ("long", "short")


DOMAINS = {
    "condition_occurrence": "condition",
    "condition_era": "condition",
    "drug_exposure": "drug",
    "drug_era": "drug",
    "procedure_occurrence": "procedure",
    "device_exposure": "device",
    "measurement": "measurement",
    "observation": "observation",
    "visit_occurrence": "visit",
}
"""Table -> what its records are about."""


def _person(number: int, name: str, domain: str, default: bool = False) -> CovariateAnalysis:
    return CovariateAnalysis(number, name, domain, "", "person", "index", default)


def _score(number: int, name: str, default: bool = True) -> CovariateAnalysis:
    return CovariateAnalysis(number, name, "condition", "condition_era", "score", "ever", default)


def _family(
    first: int,
    name: str,
    table: str,
    kind: AnalysisKind,
    windows: Sequence[Window] = FOUR,
    default: Sequence[Window] = (),
    *,
    starts: bool = False,
    inpatient: bool = False,
) -> Iterator[CovariateAnalysis]:
    """An analysis for each window, with consecutive numbers."""
    for number, window in enumerate(windows, start=first):
        yield CovariateAnalysis(
            number,
            name + TERMS[window],
            DOMAINS[table],
            table,
            kind,
            window,
            window in default,
            starts,
            inpatient,
        )


def _declared() -> Iterator[CovariateAnalysis]:
    """Every analysis of FeatureExtraction."""
    yield _person(1, "DemographicsGender", "sex", default=True)
    yield _person(2, "DemographicsAge", "age")
    yield _person(3, "DemographicsAgeGroup", "age group", default=True)
    yield _person(4, "DemographicsRace", "race", default=True)
    yield _person(5, "DemographicsEthnicity", "ethnicity", default=True)
    yield _person(6, "DemographicsIndexYear", "index year", default=True)
    yield _person(7, "DemographicsIndexMonth", "index month", default=True)
    yield _person(8, "DemographicsPriorObservationTime", "prior observation")
    yield _person(9, "DemographicsPostObservationTime", "post observation")
    yield _person(10, "DemographicsTimeInCohort", "time in cohort")
    yield _person(11, "DemographicsIndexYearMonth", "index year and month")
    yield _person(12, "CareSiteId", "care site")

    table, usual = "condition_occurrence", LONG_AND_SHORT
    yield from _family(101, "ConditionOccurrence", table, "presence")
    name = "ConditionOccurrencePrimaryInpatient"
    yield from _family(105, name, table, "presence", inpatient=True)
    table = "condition_era"
    yield from _family(201, "ConditionEra", table, "presence", FIVE)
    yield from _family(206, "ConditionEraStart", table, "presence", THREE, starts=True)
    yield from _family(209, "ConditionGroupEra", table, "group", FIVE, usual)
    yield from _family(214, "ConditionGroupEraStart", table, "group", THREE, starts=True)

    yield from _family(301, "DrugExposure", "drug_exposure", "presence")
    table = "drug_era"
    yield from _family(401, "DrugEra", table, "presence", FIVE)
    yield from _family(406, "DrugEraStart", table, "presence", THREE, starts=True)
    yield from _family(409, "DrugGroupEra", table, "group", FIVE, (*usual, "overlap"))
    yield from _family(414, "DrugGroupEraStart", table, "group", THREE, starts=True)

    table = "procedure_occurrence"
    yield from _family(501, "ProcedureOccurrence", table, "presence", FOUR, usual)
    yield from _family(601, "DeviceExposure", "device_exposure", "presence", FOUR, usual)
    table = "measurement"
    yield from _family(701, "Measurement", table, "presence", FOUR, usual)
    yield from _family(705, "MeasurementValue", table, "value")
    yield from _family(709, "MeasurementRangeGroup", table, "range", FOUR, usual)
    yield from _family(713, "MeasurementValueAsConcept", table, "value as concept", FOUR, usual)
    table = "observation"
    yield from _family(801, "Observation", table, "presence", FOUR, usual)
    yield from _family(805, "ObservationValueAsConcept", table, "value as concept", FOUR, usual)
    yield from _family(809, "ObservationValue", table, "value")

    yield _score(901, "CharlsonIndex")
    yield _score(902, "Dcsi")
    yield _score(903, "Chads2")
    yield _score(904, "Chads2Vasc")
    for first, name, table in (
        (905, "DistinctConditionCount", "condition_era"),
        (908, "DistinctIngredientCount", "drug_era"),
        (911, "DistinctProcedureCount", "procedure_occurrence"),
        (914, "DistinctMeasurementCount", "measurement"),
        (917, "DistinctObservationCount", "observation"),
    ):
        yield from _family(first, name, table, "distinct count", THREE)
    yield from _family(920, "VisitCount", "visit_occurrence", "count", THREE)
    yield from _family(923, "VisitConceptCount", "visit_occurrence", "count by concept", THREE)
    yield _score(926, "Hfrs", default=False)


ANALYSES = {analysis.id: analysis for analysis in sorted(_declared(), key=lambda a: a.id)}
"""Number -> analysis."""

BY_NAME = {analysis.name: analysis.id for analysis in ANALYSES.values()}

DEFAULT_ANALYSES = tuple(a.id for a in ANALYSES.values() if a.is_default)
"""The numbers of FeatureExtraction's default set."""


def analysis_numbers(setting: str, wanted: int | str | Sequence[int | str]) -> tuple[int, ...]:
    """The numbers of analyses that are given by number or by name; "default" is the default set.

    Raises CohortError "BadSetting", with `setting` as the name of the list, if one is unknown or
    occurs twice.

    >>> analysis_numbers("analyses", ["DemographicsGender", 210])
    (1, 210)
    """
    numbers: list[int] = []
    for one in [wanted] if isinstance(wanted, int | str) else wanted:
        numbers += DEFAULT_ANALYSES if one == DEFAULT else [_number(setting, one)]
    for number in numbers:
        if numbers.count(number) > 1:
            called = ANALYSES[number].name
            raise _refused(setting, number, f"{number} ({called}) is named more than once")
    return tuple(numbers)


def _number(setting: str, one: int | str) -> int:
    if isinstance(one, str) and one in BY_NAME:
        return BY_NAME[one]
    if not isinstance(one, str | bool) and one in ANALYSES:
        return int(one)
    known = [*BY_NAME, DEFAULT] if isinstance(one, str) else list(map(str, ANALYSES))
    close = similar(one, known, 3)
    hint = f"did you mean {' or '.join(close)}?" if close else None
    raise _refused(setting, one, f"{one!r} is unknown", hint)


def _refused(setting: str, value: object, wrong: str, hint: str | None = None) -> CohortError:
    return CohortError(
        "BadSetting",
        f"`{setting}` must list names or numbers of riskset.omop.ANALYSES, each once, but {wrong}.",
        hint=hint or "docs/omop.md lists them all.",
        details={"setting": setting, "value": value},
    )


def analyses_in_markdown() -> str:
    """The table of all analyses, for the documentation."""
    words = {
        "index": "at index",
        "ever": "any time before",
        "overlap": "at the last day",
    }
    lines = [
        "| number | name | records | covariate | days | default |",
        "|---|---|---|---|---|---|",
    ]
    for a in ANALYSES.values():
        what = a.domain if a.kind == "person" else a.kind
        what += ", inpatient" if a.inpatient else ""
        days = words.get(a.window, a.window)
        lines.append(
            f"| {a.id} | {a.name} | {a.table} | {what} | {days} | {'yes' if a.is_default else ''} |"
        )
    return "\n".join(lines) + "\n"
