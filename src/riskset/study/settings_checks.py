"""What the steps of a run would refuse of their settings, refused before anything is computed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from riskset._errors import InputError
from riskset.cohort.propensity import check_range
from riskset.cohort.weighting import check_truncation
from riskset.data.database import checked_amount
from riskset.estimators.bootstrap import check_interval
from riskset.omop.events import Diagnosis
from riskset.study.analysis_sections import Analysis, OutcomeModel, Trim
from riskset.study.cdm_sections import CdmCovariates
from riskset.study.cdm_settings import (
    concept_set,
    covariate_settings,
    entry_rules,
    event_tables,
    risk_window,
)
from riskset.study.data_sections import CdmData, CdmOutcome, Codes

if TYPE_CHECKING:
    from riskset.study.specification import Study

__all__ = ["check_settings"]


def check_settings(study: "Study") -> None:
    """Refuse settings that their step would refuse, or by which it could only leave nobody.

    Raises
    ------
    InputError
        Names the line.
    """
    own = study.specification
    for name, analysis in own.analyses.items():
        place = ("analyses", name)
        _check_model(study, (*place, "model"), analysis.model)
        if analysis.trim is not None:
            _check_trim(study, (*place, "trim"), analysis.trim)
        if analysis.weight is not None:
            with _line(study, *place, "weight"):
                check_truncation(analysis.weight.truncate)
        if isinstance(own.data, CdmData):
            _check_cdm(study, place, analysis)
    if isinstance(own.data, CdmData) and own.data.memory_limit is not None:
        with _line(study, "data", "memory_limit"):
            checked_amount(own.data.memory_limit)
    groups = {
        "exposures": own.exposures,
        "outcomes": own.outcomes,
        "competing_events": own.competing_events,
    }
    for group, members in groups.items():
        for name, member in members.items():  # type: ignore[attr-defined]
            if isinstance(member, Codes):
                _check_codes(study, (group, name), member)


def _check_codes(study: "Study", place: tuple[str, ...], member: Codes) -> None:
    file = ("concept_set",) * (member.concept_set is not None)
    with _line(study, *place, *file):
        found = concept_set(member, study.folder)
    if not isinstance(member, CdmOutcome):
        return
    with _line(study, *place):
        Diagnosis(found, tables=event_tables(member))
    if member.time_at_risk is not None:
        _check_window(study, place, next(iter(study.specification.analyses.values())), member)


@contextmanager
def _line(study: "Study", *place: str) -> Iterator[None]:
    """Errors of a section get the line of the key that they name."""
    try:
        yield
    except InputError as error:
        message, _, hint = str(error).partition("\nHint: ")
        named = re.match(r"`(\w+)`", message)
        keys = (*place, named[1]) if named else place
        raise study.fault(*keys, message=message, hint=hint or None) from None


def _check_model(study: "Study", place: tuple[str, ...], own: OutcomeModel) -> None:
    if own.interval == "bootstrap":
        with _line(study, *place, "replicates"):
            check_interval(own.replicates, own.level, "percentile")
    if own.covariates == "all" and own.interval in ("wald", "robust"):
        message = f"with `covariates: all` there is a penalty, and so no {own.interval} interval."
        hint = "take profile, which auto does, or bootstrap."
        raise study.fault(*place, "interval", message=message, hint=hint)


def _check_trim(study: "Study", place: tuple[str, ...], own: Trim) -> None:
    if own.equipoise is not None:
        with _line(study, *place):
            check_range("equipoise", own.equipoise)
    rules = (own.symmetric, own.asymmetric, own.reverse_asymmetric, own.equipoise)
    if not (own.overlap or own.crump or any(rule is not None for rule in rules)):
        message = "it says no rule by which to trim."
        hint = "for example symmetric: 0.05; `trim: none` puts off a default."
        raise study.fault(*place, message=message, hint=hint)


def _check_cdm(study: "Study", place: tuple[str, ...], analysis: Analysis) -> None:
    with _line(study, *place, "eligibility"):
        entry_rules(analysis)
    _check_window(study, place, analysis, None)
    with _line(study, *place, "covariates"):
        covariate_settings(analysis.covariates or CdmCovariates())


def _check_window(
    study: "Study", place: tuple[str, ...], analysis: Analysis, outcome: CdmOutcome | None
) -> None:
    with _line(study, *place, "time_at_risk"):
        window = risk_window(analysis, outcome)
    same = window.start_anchor == window.end_anchor
    if same and window.risk_end is not None and window.risk_end < window.risk_start:
        message = (
            f"nobody can be at risk: the last day is {window.risk_end} after the "
            f"{window.end_anchor}, and the first one {window.risk_start}."
        )
        raise study.fault(*place, "time_at_risk", "risk_end", message=message)
    if window.max_days is not None and window.max_days < window.min_days_at_risk:
        message = (
            f"nobody can be at risk: of at most {window.max_days} days there must be at least "
            f"{window.min_days_at_risk}."
        )
        raise study.fault(*place, "time_at_risk", "min_days_at_risk", message=message)
