"""Checks of a specification as a whole: names that do not exist, and contradictions."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

from riskset._errors import InputError, MissingDependencyError
from riskset._settings import INVALID, Fault, KeyPath, valid_members
from riskset.ohdsi.cohort_definitions import CohortDefinition
from riskset.omop.analyses import ANALYSES
from riskset.omop.characteristics import CHARACTERISTICS
from riskset.omop.events import Diagnosis
from riskset.study.sources.cohort_records import defined_cohorts, nesting_cohorts
from riskset.study.specification.codes import Codes
from riskset.study.specification.column_roles import faults_of_column_roles
from riskset.study.specification.covariate_lists import covariate_names
from riskset.study.specification.data_sections import (
    CdmConnection,
    CdmData,
    CohortMethodFiles,
    TableData,
)
from riskset.study.specification.exposure_sections import CdmExposure, TableExposure, TableStrategy
from riskset.study.specification.frailty_checks import faults_of_frailties
from riskset.study.specification.outcome_sections import CdmOutcome, TableOutcome
from riskset.study.specification.protocol_checks import faults_of_estimands
from riskset.study.specification.sections import (
    NUMBERS,
    YEAR,
    Analysis,
    CovariateSection,
    OutcomeModelSection,
    Specification,
)
from riskset.study.specification.strategy_checks import faults_of_strategies

__all__ = ["contradictions", "file_fault", "name_fault"]

GROUPS = ("exposures", "outcomes", "competing_events")


def contradictions(specification: Specification, folder: Path) -> Iterator[Fault]:
    """Faults of a specification with files in `folder`; parts that are `INVALID` are skipped."""
    for name in ("exposures", "comparisons", "outcomes", "analyses"):
        if not getattr(specification, name):
            yield Fault((name,), f"there are no {name}.", "name at least one.")
    yield from _of_comparisons(specification)
    yield from _of_definitions(specification, folder)
    yield from _of_variables(specification)
    yield from faults_of_column_roles(specification)
    yield from _of_covariate_ids(specification)
    yield from _of_imputation(specification)
    yield from _of_stacked_intervals(specification)
    yield from faults_of_estimands(specification)
    yield from faults_of_frailties(specification)
    yield from faults_of_strategies(specification)
    for name, analysis in valid_members(specification.analyses):
        yield from _of_analysis(specification, ("analyses", name), analysis)


def name_fault(path: KeyPath, what: str, name: str, known: Iterable[str], place: str = "") -> Fault:
    """A name that does not exist, with the closest ones that do."""
    error = InputError.unknown_name(what, name, known, place=place)
    return Fault(path, error.message, error.hint)


def file_fault(path: KeyPath, file: Path) -> Fault:
    """A file or folder that does not exist."""
    hint = "paths are relative to the folder of the specification."
    return Fault(path, f"there is no file or folder {str(file)!r}.", hint)


def _of_comparisons(specification: Specification) -> Iterator[Fault]:
    if INVALID in (specification.comparisons, specification.exposures):
        return
    exposures, seen = dict(valid_members(specification.exposures)), set()
    for k, comparison in enumerate(specification.comparisons):
        if comparison is INVALID:
            continue
        place = ("comparisons", str(k))
        pair = (comparison.target, comparison.comparator)
        for role, name in zip(("target", "comparator"), pair, strict=True):
            if name not in specification.exposures:
                yield name_fault((*place, role), "exposure", name, specification.exposures)
        if pair[0] == pair[1] or pair in seen:
            is_same = pair[0] == pair[1]
            why = "an exposure is compared with itself" if is_same else "this pair is listed twice"
            yield Fault(place, f"{' and '.join(pair)}: {why}.")
        seen.add(pair)
        arms = [exposures[name] for name in pair if name in exposures]
        ways = {_way(arm, specification.data) for arm in arms}
        if len(ways) > 1:
            one, other = sorted(ways, key=WAYS.index)
            message = f"one arm is defined by {one}, but the other one by {other}."
            yield Fault(place, message, "define both in the same way.")


WAYS = ("concepts", "a cohort", "a cohort definition")


def _way(arm: object, data: object) -> str:
    """How the people of an arm are found."""
    if not isinstance(arm, Codes) or not arm.is_cohort:
        return WAYS[0]
    has_folder = isinstance(data, CdmData) and data.cohort_definitions is not None
    return WAYS[1 if arm.definition is None and not has_folder else 2]


def _of_definitions(specification: Specification, folder: Path) -> Iterator[Fault]:
    """Exposures and outcomes are columns of tables, or concepts of a CDM, and never both."""
    if specification.data is INVALID:
        return
    if isinstance(specification.data, CohortMethodFiles):
        yield from _of_cohort_method(specification)
        return
    is_cdm = isinstance(specification.data, CdmData)
    here, there = ("a CDM", "a table of people")[:: 1 if is_cdm else -1]
    keys = "`concepts`, `cohort` or `definition`" if is_cdm else "`value`, or `time` and `event`,"
    values: dict[str, str] = {}
    for group in GROUPS:
        for name, member in valid_members(getattr(specification, group)):
            if isinstance(member, TableStrategy):
                continue
            if isinstance(member, Codes) != is_cdm:
                message = f"it is defined for {there}, but the data are {here}."
                yield Fault((group, name), message, f"give {keys} instead.")
            elif isinstance(member, TableExposure):
                if member.value in values:
                    message = f"{values[member.value]!r} has the value {member.value!r}, too."
                    yield Fault((group, name, "value"), message)
                values[member.value] = name
            elif isinstance(member, CdmExposure | CdmOutcome):
                yield from _of_codes((group, name), member, folder)
    if isinstance(specification.data, CdmData):
        yield from _of_cohorts(specification, specification.data, folder)
    for name, analysis in valid_members(specification.analyses):
        for section in ("new_users", "eligibility", "time_at_risk", "covariates"):
            if not is_cdm and getattr(analysis, section) is not None:
                message = f"`{section}` applies to a CDM, but the data are {here}."
                hint = "leave it out: a table of people has the people and their days at risk."
                yield Fault(("analyses", name, section), message, hint)


def _of_cohort_method(specification: Specification) -> Iterator[Fault]:
    """Exposures and outcomes are cohorts of the files, whose people R has selected."""
    default = {field.name: field for field in dataclasses.fields(CdmOutcome)}
    for group in GROUPS:
        for name, member in valid_members(getattr(specification, group)):
            if isinstance(member, TableStrategy):
                continue
            if not isinstance(member, Codes) or member.cohort is None:
                message = "files of CohortMethod have cohorts, but it is defined in another way."
                yield Fault((group, name), message, "give `cohort`, the number that it has in R.")
                continue
            for key in ("concepts", "concept_set", "definition", "inpatient", "tables", "first"):
                given = getattr(member, key, default[key].default)
                if given != default[key].default:
                    message = f"`{key}` applies to a CDM, but the data are files of CohortMethod."
                    yield Fault((group, name, key), message, "leave it out, and give `cohort`.")
    for name, analysis in valid_members(specification.analyses):
        for section in ("new_users", "eligibility", "covariates"):
            if getattr(analysis, section) is not None:
                message = f"`{section}` applies to a CDM, but the data are files of CohortMethod."
                hint = "leave it out: R has selected the people and their covariates."
                yield Fault(("analyses", name, section), message, hint)


def _of_definitions_in_a_database(specification: Specification, data: CdmData) -> Iterator[Fault]:
    """A definition may look at the records of everybody, who are not pulled."""
    places: list[KeyPath] = []
    if data.cohort_definitions is not None:
        places.append(("data", "cohort_definitions"))
    for group in GROUPS:
        for name, member in valid_members(getattr(specification, group)):
            if isinstance(member, Codes) and member.definition is not None:
                places.append((group, name, "definition"))
    for place in places:
        message = "cohorts of a database are made there, and not from definitions."
        hint = "let ATLAS make them, and name their table as `cohort_table` and their `cohort`."
        yield Fault(place, message, hint)


def _of_imputation(specification: Specification) -> Iterator[Fault]:
    """What Rubin's rules cannot pool: they need a standard error in every completed data set."""
    data = specification.data
    if not isinstance(data, TableData) or data.covariates in (None, INVALID):
        return
    if not data.covariates.is_imputed:
        return
    if data.score is not None:
        message = "scores that are given with the data do not use the imputed covariates."
        hint = "leave `score` out, so that a score is fitted to each completed data set."
        yield Fault(("data", "score"), message, hint)
    for name, analysis in valid_members(specification.analyses):
        model = analysis.model
        if model in (None, INVALID):
            continue
        if model.interval in ("profile", "bootstrap"):
            message = (
                f"a {model.interval} interval cannot be pooled over completed data sets, but "
                "data.covariates has `missing: impute`."
            )
            hint = "use robust or wald; auto takes robust where it is needed, and else wald."
            yield Fault(("analyses", name, "model", "interval"), message, hint)
        if model.covariates == "all":
            message = (
                "coefficients with a penalty have no standard errors to pool, but data.covariates "
                "has `missing: impute`."
            )
            hint = "leave `covariates: all` out, or use missing: indicator."
            yield Fault(("analyses", name, "model", "covariates"), message, hint)


def _of_stacked_intervals(specification: Specification) -> Iterator[Fault]:
    """Weights that are smooth functions of an unpenalised score of known covariates."""
    data = specification.data
    has_score = isinstance(data, TableData) and data.score is not None
    for name, analysis in valid_members(specification.analyses):
        parts = (analysis.model, analysis.propensity, analysis.weight, analysis.trim)
        if INVALID in parts or analysis.model is None or analysis.model.interval != "stacked":
            continue
        weight, score = analysis.weight, analysis.propensity
        if weight is None or not weight.uses_score:
            lacks, hint = "weights by a propensity score", "add `weight`, or use robust."
        elif isinstance(weight.truncate, str):
            lacks, hint = "weights that are not cut at a percentile", "give `truncate` a number."
        elif has_score or score is None or score.penalty != "none":
            lacks = "a propensity score without a penalty, fitted in the study"
            hint = "use `propensity: {penalty: none}`, or another interval."
        elif analysis.trim is not None:
            lacks, hint = "everybody's weights", "leave `trim` out, or use another interval."
        else:
            continue
        message = f"a stacked interval needs {lacks}."
        yield Fault(("analyses", name, "model", "interval"), message, hint)


def _of_cohorts(specification: Specification, data: CdmData, folder: Path) -> Iterator[Fault]:
    """Cohorts that are made from definitions, which must be there and be understood."""
    place = ("data", "cohort_definitions")
    if isinstance(data.cdm, CdmConnection):
        yield from _of_definitions_in_a_database(specification, data)
    try:
        known = defined_cohorts(data, folder)
    except InputError as error:
        yield Fault(place, error.message, error.hint)
        return
    if data.cohort_definitions is None:
        return
    wanted: dict[int, KeyPath] = {}
    for group in GROUPS:
        for name, member in valid_members(getattr(specification, group)):
            if isinstance(member, Codes) and member.cohort is not None:
                wanted.setdefault(member.cohort, (group, name, "cohort"))
    for name, number in nesting_cohorts(specification.analyses).items():
        wanted.setdefault(number, ("analyses", name, "eligibility", "nesting_cohort"))
    for number, path in wanted.items():
        if number not in known:
            listed = data.cohort_definitions
            yield name_fault(path, "cohort", str(number), map(str, known), listed)
        else:
            yield from _of_definition(place, known[number])


def _of_definition(place: KeyPath, definition: CohortDefinition) -> Iterator[Fault]:
    try:
        definition.check()
    except (InputError, MissingDependencyError) as error:
        yield Fault(place, error.message, error.hint)


def _of_codes(place: KeyPath, member: CdmExposure | CdmOutcome, folder: Path) -> Iterator[Fault]:
    ways: tuple[str, ...] = ("concepts", "concept_set", "cohort", "definition")
    given = [word for word in ways if getattr(member, word) not in ((), None)]
    given += ["death"] if isinstance(member, CdmOutcome) and member.death else []
    ways += ("death",) * isinstance(member, CdmOutcome)
    known = f"{', '.join(ways[:-1])} or {ways[-1]}"
    if len(given) != 1:
        yield Fault(place, f"it needs one of {known}, but has {' and '.join(given) or 'none'}.")
    if member.concept_set_member is not None and member.concept_set is None:
        message = "`concept_set_member` names a set of a file, but `concept_set` names none."
        yield Fault((*place, "concept_set_member"), message, "add `concept_set`, or leave it out.")
    try:
        definition = member.cohort_definition(folder, 1)
        if definition is not None:
            yield from _of_definition((*place, "definition"), definition)
    except InputError as error:
        yield Fault((*place, "definition"), error.message, error.hint)
    try:
        concepts = member.as_set(folder)
        if isinstance(member, CdmOutcome):
            Diagnosis(concepts, tables=member.event_tables)
    except InputError as error:
        key = "concept_set" if member.concept_set is not None else error.argument
        yield Fault(place if key is None else (*place, key), error.message, error.hint)


def _of_variables(specification: Specification) -> Iterator[Fault]:
    """Of a CDM names that it cannot have, and covariates that no analysis makes."""
    named = (specification.variables, specification.subgroups, specification.analyses)
    is_cdm = isinstance(specification.data, CdmData)
    if isinstance(specification.data, TableData) or INVALID in (specification.data, *named):
        return
    columns: tuple[str, ...] = CHARACTERISTICS if is_cdm else (YEAR,)
    place_name = "a CDM" if is_cdm else "files of CohortMethod"
    for name, variable in valid_members(specification.variables):
        if variable.column is not None:
            place: KeyPath = ("variables", name, "column")
            if variable.column not in columns:
                yield name_fault(place, "column", variable.column, columns, place_name)
            elif variable.borders and variable.column not in NUMBERS:
                message = (
                    f"`borders` split a numeric variable, but {variable.column!r} is not numeric."
                )
                hint = f"numbers are {' and '.join(NUMBERS)}; leave `borders` out."
                yield Fault(("variables", name, "borders"), message, hint)
        if is_cdm and variable.covariate is not None and variable.covariate.isdigit():
            yield from _of_covariate_id(
                specification, ("variables", name, "covariate"), variable.covariate
            )
    known = [*specification.variables, *columns]
    for name, place in specification.column_uses():
        if place[-1] == "cluster" and not is_cdm:
            continue  # refused with its reason
        if name not in known:
            yield name_fault(place, "variable", name, known, place_name)
        elif place[0] == "subgroups" and name == "age" and name not in specification.variables:
            message = "every year of age would be a subgroup."
            hint = "split it: `variables: {age: {column: age, borders: [50, 65]}}`."
            yield Fault(place, message, hint)


def _of_covariate_id(
    specification: Specification, place: KeyPath, covariate: str
) -> Iterator[Fault]:
    """An id ends in the number of its kind, which every analysis must make."""
    for name, analysis in valid_members(specification.analyses):
        fault = _fault_of_id(name, analysis, place, covariate)
        if fault is not None:
            yield fault
            return


def _fault_of_id(name: str, analysis: Analysis, place: KeyPath, covariate: str) -> Fault | None:
    """The fault of an id of a covariate that an analysis does not extract."""
    number = int(covariate) % 1000
    known = (analysis.covariates or CovariateSection()).extraction.analyses
    if number in known:
        return None
    who = f"{name!r} does not extract these" if number in ANALYSES else "there are none"
    message = f"the id ends in {number}, so it is a covariate of analysis {number}, but {who}."
    return Fault(place, message, f"{name!r} extracts {', '.join(map(str, known))}.")


def _of_covariate_ids(specification: Specification) -> Iterator[Fault]:
    """Ids of covariates of a CDM that their analysis does not extract; names only the run knows."""
    if not isinstance(specification.data, CdmData):
        return
    for name, analysis in valid_members(specification.analyses):
        if INVALID in vars(analysis).values():
            continue
        for place, covariates in covariate_names(analysis):
            for k, covariate in enumerate(covariates):
                path = ("analyses", name, *place, str(k))
                fault = None
                if str(covariate).isdigit():
                    fault = _fault_of_id(name, analysis, path, str(covariate))
                if fault is not None:
                    yield fault


def _of_analysis(
    specification: Specification, place: KeyPath, analysis: Analysis
) -> Iterator[Fault]:
    ways = list(analysis.ways)
    if len(ways) > 1:
        yield Fault(
            (*place, ways[1]),
            f"{' and '.join(ways)} exclude each other.",
            "make an analysis of each; `match: none` switches off a default.",
        )
    model, has_sets = analysis.model, analysis.has_sets
    if not has_sets and model.reading == "stratified":
        message = (
            "a stratified reading needs sets: `match` without replacement, `coarsen` or `stratify`."
        )
        yield Fault((*place, "model", "reading"), message)
    if model.censoring_group == "stratum" and not has_sets:
        message = "censoring by stratum needs `match` without replacement, `coarsen` or `stratify`."
        yield Fault((*place, "model", "censoring_group"), message)
    yield from _of_likelihood(place, analysis)
    if specification.data is INVALID:
        return
    yield from _of_sampling_weights(specification.data, place, model)
    yield from _of_several_treatments(specification, place, analysis)
    yield from _of_risks_by_models(specification, place, analysis)
    given = getattr(specification.data, "score", None)
    needs = [way for way, uses_score in analysis.ways.items() if uses_score]
    needs = needs or (["trim"] if analysis.trim is not None else [])
    if needs and analysis.propensity is None and given is None:
        yield Fault((*place, needs[0]), f"`{needs[0]}` needs a propensity score.")
    if analysis.trim is not None and analysis.trim.refit and given is not None:
        message = "scores that are given with the data cannot be fitted again."
        yield Fault((*place, "trim", "refit"), message)


def _of_likelihood(place: KeyPath, analysis: Analysis) -> Iterator[Fault]:
    """Weights of the adjustment do not go with a likelihood that is not a sum over rows."""
    model = analysis.model
    words = model.whole_likelihood
    if words is None or model.reading in ("stratified", "pooled"):
        return
    if model.reading == "auto" and analysis.has_sets:
        return
    match = analysis.match
    has_pairs = match is not None and match.ratio == 1 and match.method != "full"
    has_pairs = has_pairs and match is not None and not match.replacement
    weighted = [way for way in analysis.ways if way != "match" or not has_pairs]
    if weighted:
        yield Fault(
            (*place, "model", str(model.whole_key)),
            f"{words} takes no weights, but `{weighted[0]}` has them.",
            "leave it out."
            if not analysis.has_sets
            else "use `reading: stratified` or `reading: pooled`.",
        )


def _of_sampling_weights(
    data: object, place: KeyPath, model: OutcomeModelSection
) -> Iterator[Fault]:
    """Readings and likelihoods without weights do not go with those of a survey."""
    if not isinstance(data, TableData) or data.sampling_weight is None:
        return
    weighted = "but the data have a `sampling_weight`."
    if model.reading in ("stratified", "pooled"):
        message = f"a {model.reading} reading has no weights, {weighted}"
        yield Fault((*place, "model", "reading"), message, "use marginal, as auto does.")
    words = model.whole_likelihood
    if words is not None:
        key = str(model.whole_key)
        yield Fault(
            (*place, "model", key), f"{words} takes no weights, {weighted}", "leave it out."
        )


def _of_several_treatments(
    specification: Specification, place: KeyPath, analysis: Analysis
) -> Iterator[Fault]:
    """All comparisons are of the treatments that are weighted together."""
    section, data = analysis.weight_treatments, specification.data
    if section is None:
        return
    place = (*place, "weight_treatments")
    if isinstance(data, CohortMethodFiles):
        message = (
            "`weight_treatments` needs the people of all arms at once, but each file of "
            "CohortMethod has those of two exposures, selected for these."
        )
        hint = "use `weight`, which compares two treatments, or run the study on the CDM."
        yield Fault(place, message, hint)
        return
    if analysis.trim is not None:
        message = "`trim` leaves people out by the score of two treatments."
        yield Fault((*place[:-1], "trim"), message, "leave it out, or use `weight`.")
    if INVALID in (specification.exposures, specification.comparisons):
        return
    for name in section.arms:
        if name not in specification.exposures:
            yield name_fault((*place, "arms"), "exposure", name, specification.exposures)
    known = [specification.exposures[n] for n in section.arms if n in specification.exposures]
    ways = sorted({_way(arm, data) for arm in known if arm is not INVALID}, key=WAYS.index)
    if len(ways) > 1:
        message = f"one of the `arms` is defined by {ways[0]}, but another one by {ways[1]}."
        yield Fault((*place, "arms"), message, "define all in the same way.")
    for comparison in specification.comparisons:
        for name in () if comparison is INVALID else (comparison.target, comparison.comparator):
            if name in specification.exposures and name not in section.arms:
                message = f"a comparison has {name!r}, which is not one of the `arms`."
                hint = "name it, too, or put the comparison into another study."
                yield Fault((*place, "arms"), message, hint)


def _of_risks_by_models(
    specification: Specification, place: KeyPath, analysis: Analysis
) -> Iterator[Fault]:
    """Predictions of outcome models begin at the start, and are of the two arms alone."""
    late = [
        name
        for name, outcome in valid_members(specification.outcomes)
        if isinstance(outcome, TableOutcome) and outcome.entry is not None
    ]
    for key in ("standardize", "doubly_robust"):
        if not getattr(analysis.model, key):
            continue
        if late:
            message = (
                f"`{key}` needs people who are followed from the start, but the outcome "
                f"{late[0]!r} has `entry`."
            )
            hint = "leave it out; `rmst` and `risk_times` take late entry."
            yield Fault((*place, "model", key), message, hint)
        if analysis.weight_treatments is not None:
            message = f"`{key}` does not use the weights of several treatments."
            yield Fault((*place, "model", key), message, "leave it out, or use `weight`.")
