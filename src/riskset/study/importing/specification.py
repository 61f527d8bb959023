"""A specification of Strategus or CohortMethod as specifications of studies.

A study is the product of its comparisons, outcomes and analyses. Comparisons of a specification
that differ in anything else become studies of their own.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from riskset._errors import InputError
from riskset.data.documents import parse_json
from riskset.data.writers import check_replaceable
from riskset.study.importing.cohorts import KnownCohorts
from riskset.study.importing.given import Given, LostSetting
from riskset.study.importing.models import adjustment, limits, model, propensity
from riskset.study.importing.people import EVER, covariates, eligibility, time_at_risk, window_of
from riskset.study.specification.study_definition import Study

__all__ = ["ImportedStudies", "import_specification"]

MODULE = "CohortMethodModule"
COHORT_MODULES = ("CohortGeneratorModule",)
"""Modules without settings that a study needs."""

HINT = (
    "pass the JSON of an analysis specification of Strategus, or the settings of CohortMethod with "
    "cmAnalysisList and targetComparatorOutcomesList."
)
LOST_FILE = "not-imported.json"


@dataclass(frozen=True, eq=False)
class ImportedStudies:
    """What `import_specification` wrote.

    Attributes
    ----------
    studies : tuple of Path
        Specifications of studies.
    lost : tuple
        Settings without a counterpart: each has a `place`, a `value` and a `reason`, which says
        what riskset does instead. They are also in the file ``not-imported.json``.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.study.ImportedStudies((), ()).lost
    ()
    """

    studies: tuple[Path, ...]
    lost: tuple[LostSetting, ...]


def import_specification(
    path: str | Path, out: str | Path, *, cdm: str | Path = "cdm", title: str | None = None
) -> ImportedStudies:
    """Write the studies of an analysis specification of Strategus or CohortMethod.

    Parameters
    ----------
    path : path
        JSON of Strategus, or of the settings of CohortMethod's ``runCmAnalyses``, of version 5 or
        later.
    out : path
        New or empty folder for ``study.yaml``, or ``study-1.yaml``, ``study-2.yaml`` and so on, if
        comparisons differ in their outcomes or settings. Cohort definitions are written beside it.
    cdm : path
        The CDM on which the studies will run.
    title : str, optional
        Title of the studies. Default: the name of the file.

    Returns
    -------
    ImportedStudies

    Raises
    ------
    InputError
        If the file is not such a specification, or a value cannot be read. The message gives its
        place. If the folder has files: the studies in it may have been edited.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> analysis = {
    ...     "analysisId": 1,
    ...     "description": "Crude",
    ...     "getDbCohortMethodDataArgs": {"washoutPeriod": 183},
    ...     "createStudyPopulationArgs": {"riskWindowEnd": 30},
    ...     "fitOutcomeModelArgs": {"modelType": "cox"},
    ... }
    >>> comparison = {"targetId": 1, "comparatorId": 2, "outcomes": [{"outcomeId": 3}]}
    >>> settings = {"cmAnalysisList": [analysis], "targetComparatorOutcomesList": [comparison]}
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "settings.json").write_text(json.dumps(settings))
    >>> imported = rs.study.import_specification(folder / "settings.json", folder / "study")
    >>> rs.study.Study.read(imported.studies[0])
    Study('settings': 1 comparison x 1 outcome x 1 analysis)
    """
    path, folder = Path(path), Path(out)
    content = _read(path)
    lost: list[LostSetting] = []
    known = KnownCohorts.of(content.get("sharedResources") or [], lost)
    groups: list[dict[str, Any]] = []
    for settings in _settings(content, path.name, lost):
        groups += list(_Module(settings, known).studies())
    if not groups:
        raise InputError(f"{path.name} has no analysis that riskset can run.", hint=HINT)
    check_replaceable(folder, "an import")
    folder.mkdir(parents=True, exist_ok=True)
    data = _write_cohorts(folder, groups, known, lost)
    data["cdm"] = os.path.relpath(cdm, folder) if Path(cdm).exists() else str(cdm)
    written = []
    for k, group in enumerate(groups, 1):
        number = f"-{k}" if len(groups) > 1 else ""
        file = folder / f"study{number}.yaml"
        document = {"title": (title or path.stem) + (f" {k}" if number else ""), "data": data}
        text = yaml.safe_dump(document | group, sort_keys=False, allow_unicode=True, width=100)
        file.write_text(f"# Imported from {path.name} by riskset study import.\n{text}", "utf-8")
        Study.read(file)
        written.append(file)
    once = {(one.place, one.reason): one for one in lost}  # comparisons share their analyses
    lost = list(once.values())
    rows = [vars(one) for one in lost]
    (folder / LOST_FILE).write_text(json.dumps(rows, indent=1, default=str) + "\n", "utf-8")
    return ImportedStudies(tuple(written), tuple(lost))


def _read(path: Path) -> Mapping[str, Any]:
    try:
        content = parse_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise InputError(f"{path.name} is not valid JSON: {error}.", hint=HINT) from None
    if not isinstance(content, Mapping):
        raise InputError(
            f"{path.name} is not a complete specification: it lists no comparisons.", hint=HINT
        )
    return content


def _settings(content: Mapping[str, Any], name: str, lost: list[LostSetting]) -> Iterator[Given]:
    """The settings of CohortMethod in a specification."""
    if "cmAnalysisList" in content:
        yield Given(content, name, lost)
        return
    for module in Given(content, name, lost).sections("moduleSpecifications"):
        kind, place = module.take("module"), module.place.removeprefix(f"{name}.")
        if kind == MODULE:
            module.place = place
            settings = module.section("settings") or Given({}, f"{place}.settings", lost)
            # Version 6 has its settings in one section more.
            inner = settings.section("cmAnalysesSpecifications")
            yield settings if inner is None else Given(inner.content, settings.place, lost)
        elif kind not in COHORT_MODULES:
            reason = "riskset runs comparative cohort studies alone."
            lost.append(LostSetting(place, kind, reason))


class _Module:
    """The settings of CohortMethod; `studies` are the sections of each study."""

    def __init__(self, settings: Given, known: KnownCohorts) -> None:
        self._settings, self._known = settings, known
        self._analyses = [one.content for one in settings.sections("cmAnalysisList")]
        self._comparisons = settings.sections("targetComparatorOutcomesList")
        if not self._analyses or not self._comparisons:
            raise InputError(
                f"{settings.place} has no cmAnalysisList or no targetComparatorOutcomesList.",
                hint=HINT,
            )
        self._limits, self._alpha = limits(settings.section("cmDiagnosticThresholds"))
        reason = "riskset fits one score for all people of a comparison, and outcomes share it."
        for key in ("refitPsForEveryOutcome", "refitPsForEveryStudyPopulation"):
            if settings.flag(key, False):
                settings.note(key, True, reason)
        _refuse_repeats([Given(one, settings.place, []) for one in self._analyses], "analysisId")
        self._excluded = settings.sections("analysesToExclude")
        settings.rest()

    def studies(self) -> Iterator[dict[str, Any]]:
        """A study for all comparisons that agree in everything but their arms."""
        parts: dict[str, tuple[dict[str, Any], list[tuple[int, int]]]] = {}
        for given in self._comparisons:
            pair = (given.whole("targetId"), given.whole("comparatorId"))
            if None in pair:
                raise given.fault("targetId", "a number")
            for part in self._of_comparison(given):
                key = json.dumps(part, sort_keys=True)
                parts.setdefault(key, (part, []))[1].append(pair)  # type: ignore[arg-type]
        for part, pairs in parts.values():
            arms = dict.fromkeys(number for pair in pairs for number in pair)
            names = {number: self._known.name(number) for number in arms}
            yield {
                "exposures": {names[number]: {"cohort": number} for number in arms},
                "comparisons": [{"target": names[t], "comparator": names[c]} for t, c in pairs],
                **part,
            }

    def _of_comparison(self, given: Given) -> Iterator[dict[str, Any]]:
        """The other sections; several if analyses differ in what outcomes override."""
        excluded, nesting = (
            given.wholes("excludedCovariateConceptIds"),
            given.whole("nestingCohortId"),
        )
        given.lose("includedCovariateConceptIds", "riskset makes all covariates that are chosen.")
        outcomes = given.sections("outcomes")
        _refuse_repeats(outcomes, "outcomeId")
        own = {k: window_of(outcome) for k, outcome in enumerate(outcomes)}
        analyses = [one for one in map(self._analysis, self._chosen(given)) if one is not None]
        groups: dict[str, list[_Analysis]] = {}
        for one in analyses:
            # What an outcome overrides must be the same in all analyses of a study.
            own_days = any(map(_has_own_days, own.values()))
            key = json.dumps([one.window, one.follow], sort_keys=True) if own_days else ""
            groups.setdefault(key, []).append(one)
        given.rest()
        for members in groups.values():
            sections: dict[str, Any] = {
                "outcomes": dict(
                    self._outcome(outcome, own[k], members[0]) for k, outcome in enumerate(outcomes)
                ),
                "analyses": {one.name: one.section(excluded, nesting) for one in members},
            }
            shared = sorted({covariate for one in members for covariate in one.within})
            if shared:
                sections["variables"] = {f"covariate {c}": {"covariate": c} for c in shared}
            if self._limits:
                sections["diagnostics"] = self._limits
            seeds = {one.seed for one in members if one.seed is not None}
            if seeds:
                sections["seed"] = min(seeds)
            yield sections

    def _chosen(self, comparison: Given) -> list[int]:
        """Places of the analyses of a comparison."""
        out: set[int | None] = set()
        for one in self._excluded:
            arms = [one.whole(key) for key in ("targetId", "comparatorId")]
            here = [comparison.whole(key) for key in ("targetId", "comparatorId")]
            if any(a is not None and a != b for a, b in zip(arms, here, strict=True)):
                continue
            if one.has("outcomeId") or not one.has("analysisId"):
                reason = "a study has every outcome in every analysis; remove what is not wanted."
                comparison.note("analysesToExclude", dict(one.content), reason)
            else:
                out.add(one.whole("analysisId"))
        numbers = [Given(one, "", []).whole("analysisId") for one in self._analyses]
        return [k for k, number in enumerate(numbers) if number is None or number not in out]

    def _analysis(self, k: int) -> "_Analysis | None":
        place = f"{self._settings.place}.cmAnalysisList.{k}"
        given = Given(self._analyses[k], place, self._settings.lost)
        outcome = given.section("fitOutcomeModelArgs")
        if outcome is None:
            reason = "the analysis has no outcome model; it is left out."
            self._once(given, "fitOutcomeModelArgs", reason)
            return None
        names = [one.get("description") for one in self._analyses]
        return _Analysis.of(given, outcome, names, self._alpha)

    def _once(self, given: Given, key: str, reason: str) -> None:
        if all(one.place != f"{given.place}.{key}" for one in given.lost):
            given.note(key, given.content.get("description"), reason)

    def _outcome(
        self, given: Given, own: dict[str, Any], analysis: "_Analysis"
    ) -> tuple[str, dict[str, Any]]:
        number = given.whole("outcomeId")
        if number is None:
            raise given.fault("outcomeId", "a number")
        effect, is_asked = given.number("trueEffectSize"), given.flag("outcomeOfInterest", True)
        control = self._known.control(number)
        found: dict[str, Any] = {"cohort": number}
        if control is not None:
            found = control | {"ohdsi_id": number}
        if not is_asked or (effect is not None and number in self._known.concepts):
            is_negative = effect in (None, 1)
            found["kind"] = "negative control" if is_negative else "positive control"
            found |= {} if is_negative else {"true_hr": effect}
        if _has_own_days(own):
            window = time_at_risk({**analysis.window, **own}, None)
            found["time_at_risk"] = window | analysis.follow
        elif own:
            found["prior_outcome_lookback"] = own["priorOutcomeLookback"]
        given.rest()
        return self._known.name(number), found


def _refuse_repeats(listed: Sequence[Given], key: str) -> None:
    """Refuse two sections of a number, of which only one would be in the study."""
    seen = set()
    for one in listed:
        number = one.whole(key)
        if number is not None and number in seen:
            raise one.fault(key, "a number that no other one has")
        seen.add(number)


def _has_own_days(own: Mapping[str, Any]) -> bool:
    """Whether an outcome has a time at risk of its own, which replaces a whole section."""
    lookback = own.get("priorOutcomeLookback", 0)
    return any(key != "priorOutcomeLookback" for key in own) or lookback >= EVER


@dataclass(frozen=True, eq=False)
class _Analysis:
    """An analysis: its own sections, and what a comparison or an outcome may change."""

    name: str
    sections: dict[str, Any]
    window: dict[str, Any]
    follow: dict[str, Any]
    within: list[str]
    seed: int | None
    data: Given
    population: Given | None

    @classmethod
    def of(
        cls, given: Given, outcome: Given, names: Sequence[object], alpha: float | None
    ) -> "_Analysis":
        number, label = given.whole("analysisId"), str(given.take("description", ""))
        name = label if label and names.count(label) == 1 else f"{label} ({number})".strip()
        data = given.section("getDbCohortMethodDataArgs") or Given({}, given.place, given.lost)
        population = given.section("createStudyPopulationArgs")
        population = population or given.section("createStudyPopArgs")
        window = {} if population is None else window_of(population)
        whole = time_at_risk(window, population)
        score, seed = propensity(given.section("createPsArgs"))
        found, within = adjustment(given, outcome)
        sections: dict[str, Any] = {"time_at_risk": whole, "propensity": score, **found}
        sections["balance"] = _balance(given, alpha)
        sections["model"] = model(outcome, found)
        sections |= {} if number is None else {"ohdsi_id": number}
        lasting = ("remove_prior_outcome", "censor_at_new_risk_window", "max_days")
        follow = {key: whole[key] for key in (*lasting, "min_days_at_risk") if key in whole}
        for key in ("truncateIptwArgs", "trimByPsToEquipoiseArgs", "createStudyPopArgs"):
            given.ignore(key)
        given.rest()
        return cls(name, sections, window, follow, within, seed, data, population)

    def section(self, excluded: list[int], nesting: int | None) -> dict[str, Any]:
        """The section of the analysis, for comparisons with these concepts and this cohort."""
        entry = eligibility(self.data, self.population, nesting)
        chosen = covariates(self._covariate_settings(), excluded)
        for given in (self.data, self.population):
            if given is not None:
                given.rest()
        first = {"eligibility": entry, **({"covariates": chosen} if chosen else {})}
        return first | self.sections

    def _covariate_settings(self) -> Given | None:
        value = self.data.take("covariateSettings")
        place = f"{self.data.place}.covariateSettings"
        if isinstance(value, list):  # several functions that make covariates
            for k, other in enumerate(value[1:], 1):
                name = other.get("attr_fun") if isinstance(other, Mapping) else other
                reason = "riskset makes FeatureExtraction's covariates alone."
                self.data.note(f"covariateSettings.{k}", name, reason)
            value = value[0] if value else None
        return Given(value, place, self.data.lost) if isinstance(value, Mapping) else None


def _balance(given: Given, alpha: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {"sd": "current"}
    for key in ("computeSharedCovariateBalanceArgs", "computeCovariateBalanceArgs"):
        section = given.section(key)
        if section is None:
            continue
        threshold = section.number("threshold")
        if threshold:
            found["threshold"] = threshold
        section.ignore("alpha", "maxCohortSize")  # tests of single covariates; all people are used
        section.lose("covariateFilter", "write `table1` to choose the lines of Table 1.")
        section.lose("subgroupCovariateId", "write `subgroups`, which have balance as well.")
        section.rest()
    return found | ({"alpha": alpha} if alpha else {})


def _write_cohorts(
    folder: Path, groups: Sequence[Mapping[str, Any]], known: KnownCohorts, lost: list[LostSetting]
) -> dict[str, Any]:
    """Write the definitions that there are; the section `data` for the cohorts of the studies."""
    used = set(_cohorts_of(groups))
    if not known.definitions:
        return {"cohort_table": "cohort"}
    (folder / "cohorts" / "cohorts").mkdir(parents=True, exist_ok=True)
    lines = ["cohort_id,cohort_name"]
    for number, text in known.definitions.items():
        name = known.names[number].replace('"', '""')
        lines.append(f'{number},"{name}"')
        (folder / "cohorts" / "cohorts" / f"{number}.json").write_text(text, "utf-8")
    (folder / "cohorts" / "Cohorts.csv").write_text("\n".join(lines) + "\n", "utf-8")
    missing = sorted(used - set(known.definitions))
    if not missing:
        return {"cohort_definitions": "cohorts"}
    reason = (
        "these cohorts have no definition, so the studies take all cohorts from the table `cohort` "
        "of the CDM; name another one as `cohort_table`."
    )
    lost.append(LostSetting("sharedResources.cohortDefinitions", missing, reason))
    return {"cohort_table": "cohort"}


def _cohorts_of(content: Any) -> Iterator[int]:
    """The numbers of all cohorts that sections name."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key in ("cohort", "nesting_cohort") and isinstance(value, int):
                yield value
            else:
                yield from _cohorts_of(value)
    elif isinstance(content, Sequence) and not isinstance(content, str):
        for value in content:
            yield from _cohorts_of(value)
