"""What no single value of a specification tells: names that lead nowhere, and contradictions."""

from typing import TYPE_CHECKING

from riskset.study.analysis_sections import Analysis
from riskset.study.data_sections import (
    CdmData,
    CdmExposure,
    CdmOutcome,
    Codes,
    TableExposure,
)
from riskset.study.settings_checks import check_settings
from riskset.study.variables import check_variables

if TYPE_CHECKING:
    from riskset.study.specification import Study

__all__ = ["check"]


def check(study: "Study") -> None:
    """Refuse a specification that contradicts itself.

    Raises
    ------
    InputError
        Names the line.
    """
    own = study.specification
    for name in ("exposures", "comparisons", "outcomes", "analyses"):
        if not getattr(own, name):
            raise study.fault(name, message=f"there are no {name}.", hint="name at least one.")
    seen = set()
    for k, comparison in enumerate(own.comparisons):
        for role in ("target", "comparator"):
            name = getattr(comparison, role)
            if name not in own.exposures:
                place = ("comparisons", str(k), role)
                raise study.unknown(*place, what="exposure", name=name, known=own.exposures)
        pair = (comparison.target, comparison.comparator)
        if pair[0] == pair[1] or pair in seen:
            why = "is compared with itself" if pair[0] == pair[1] else "is there twice"
            raise study.fault("comparisons", str(k), message=f"{' and '.join(pair)}: it {why}.")
        seen.add(pair)
        arms = [own.exposures[name] for name in pair]
        if len({getattr(arm, "cohort", None) is None for arm in arms}) > 1:
            message = "one arm has concepts and the other one a cohort; both need the same."
            raise study.fault("comparisons", str(k), message=message)
    start, end = own.data.start, own.data.end
    if start is not None and end is not None and start > end:
        message = f"the data end on {end}, before they start on {start}."
        raise study.fault("data", "end", message=message)
    _check_definitions(study)
    check_variables(study)
    for name, outcome in own.outcomes.items():
        if (outcome.true_hr is not None) != (outcome.kind == "positive control"):
            raise study.fault(
                "outcomes",
                name,
                message="`true_hr` goes with a positive control, and with nothing else.",
                hint="a negative control has 1 by itself.",
            )
    for name, analysis in own.analyses.items():
        _check_analysis(study, name, analysis)
    check_settings(study)


def _check_analysis(study: "Study", name: str, analysis: Analysis) -> None:
    ways = [way for way in ("match", "stratify", "weight") if getattr(analysis, way) is not None]
    place = ("analyses", name)
    if len(ways) > 1:
        raise study.fault(
            *place,
            ways[1],
            message=f"{' and '.join(ways)} exclude each other.",
            hint="make an analysis of each; `match: none` puts off a default.",
        )
    given = getattr(study.specification.data, "score", None)
    score = analysis.propensity is not None or given is not None
    needs = ways or (["trim"] if analysis.trim is not None else [])
    if needs and not score:
        raise study.fault(*place, needs[0], message=f"`{needs[0]}` needs a propensity score.")
    if analysis.trim is not None and analysis.trim.refit and given is not None:
        message = "scores that are given with the data cannot be fitted again."
        raise study.fault(*place, "trim", "refit", message=message)
    model = analysis.model
    has_sets = analysis.match is not None or analysis.stratify is not None
    if not has_sets and model.reading == "stratified":
        message = "a stratified reading needs `match` or `stratify`."
        raise study.fault(*place, "model", "reading", message=message)
    if model.censoring_group == "stratum" and not has_sets:
        message = "censoring by stratum needs `match` or `stratify`."
        raise study.fault(*place, "model", "censoring_group", message=message)
    if "finegray" not in (model.kind, *model.also):
        for key, unset in (("censoring_group", None), ("censoring_weights", "none")):
            if getattr(model, key) != unset:
                message = f"`{key}` is of Fine and Gray's model, which is not asked for."
                hint = "add finegray to `kind` or `also`, or leave it out."
                raise study.fault(*place, "model", key, message=message, hint=hint)
    if model.strength is not None and model.covariates == "none":
        message = "`strength` is of a penalty on covariates, but there are none in the model."
        raise study.fault(*place, "model", "strength", message=message, hint="add covariates: all.")
    fitted = analysis.propensity
    if fitted is None:
        return
    given = [k for k in ("strength", "variance") if getattr(fitted, k) is not None]
    if len(given) > 1:
        message = "`strength` and `variance` say the same in two ways."
        raise study.fault(*place, "propensity", given[1], message=message, hint="keep one of them.")
    if fitted.penalty == "none" and (given or fitted.cross_validate):
        raise study.fault(
            *place,
            "propensity",
            given[0] if given else "penalty",
            message="without a penalty there is nothing to choose or to give.",
            hint="set cross_validate: false, and leave strength and variance out.",
        )
    if fitted.penalty != "none" and bool(given) == fitted.cross_validate:
        raise study.fault(
            *place,
            "propensity",
            given[0] if given else "cross_validate",
            message="a penalty is either chosen by cross-validation or has a strength or variance.",
            hint="give one of them and cross_validate: false, or neither.",
        )


def _check_definitions(study: "Study") -> None:
    """Exposures and outcomes are columns of tables, or concepts of a CDM, and never both."""
    own = study.specification
    is_cdm = isinstance(own.data, CdmData)
    here, there = ("a CDM", "a table of people")[:: 1 if is_cdm else -1]
    keys = "`concepts` or `cohort`" if is_cdm else "`value`, or `time` and `event`,"
    values: dict[str, str] = {}
    groups = {
        "exposures": own.exposures,
        "outcomes": own.outcomes,
        "competing_events": own.competing_events,
    }
    for group, members in groups.items():
        for name, member in members.items():  # type: ignore[attr-defined]
            if isinstance(member, Codes) != is_cdm:
                message = f"it is defined for {there}, but the data are {here}."
                raise study.fault(group, name, message=message, hint=f"give {keys} instead.")
            if isinstance(member, TableExposure):
                if member.value in values:
                    message = f"it has the value {member.value!r} of {values[member.value]!r}."
                    raise study.fault(group, name, "value", message=message)
                values[member.value] = name
            if isinstance(member, CdmExposure | CdmOutcome):
                _check_codes(study, group, name, member)
    for name, analysis in own.analyses.items():
        for section in ("new_users", "eligibility", "time_at_risk", "covariates"):
            if not is_cdm and getattr(analysis, section) is not None:
                message = f"`{section}` goes with a CDM, but the data are {here}."
                hint = "a table of people has its people and their days at risk already."
                raise study.fault("analyses", name, section, message=message, hint=hint)


def _check_codes(study: "Study", group: str, name: str, member: CdmExposure | CdmOutcome) -> None:
    ways: tuple[str, ...] = ("concepts", "concept_set", "cohort")
    given = [word for word in ways if getattr(member, word) not in ((), None)]
    given += ["death"] if isinstance(member, CdmOutcome) and member.death else []
    ways += ("death",) * isinstance(member, CdmOutcome)
    known = f"{', '.join(ways[:-1])} or {ways[-1]}"
    if len(given) != 1:
        message = f"it needs one of {known}, but has {' and '.join(given) or 'none'}."
        raise study.fault(group, name, message=message)
