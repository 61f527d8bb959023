"""What a specification with a per-protocol or intention-to-treat analysis must and cannot have."""

from collections.abc import Iterator, Mapping
from typing import Any

from riskset._settings import INVALID, Fault, KeyPath
from riskset.cohort.effects.effect_scale import COX_MODELS
from riskset.omop.risk import TimeAtRisk
from riskset.study.specification.data_sections import CdmData, TableData
from riskset.study.specification.exposure_sections import TableStrategy
from riskset.study.specification.outcome_sections import CdmOutcome, TableOutcome
from riskset.study.specification.per_protocol_section import PerProtocol
from riskset.study.specification.sections import Analysis, OutcomeModelSection, Specification

__all__ = ["faults_of_estimands"]

INTERVALS = ("auto", "robust", "bootstrap")
OF_MODELS = "risks by outcome models are not available with weights for deviation."
NOT_ESTIMATED = {
    "fixed": (
        "the outcome model of a per-protocol analysis cannot have `fixed` coefficients.",
        "name a few covariates in `baseline` of `per_protocol`.",
    ),
    "standardize": (OF_MODELS, "leave `standardize` out; `risk_times` and `rmst` are available."),
    "doubly_robust": (
        OF_MODELS,
        "leave `doubly_robust` out; `risk_times` and `rmst` are available.",
    ),
}
"""Keys of a model that a per-protocol analysis does not have: the message and the remedy."""


def faults_of_estimands(specification: Specification) -> Iterator[Fault]:
    """Faults of the estimands of analyses; parts that are `INVALID` are skipped."""
    data, analyses = specification.data, specification.analyses
    if INVALID in (data, analyses):
        return
    for name, analysis in analyses.items():
        if analysis is INVALID or INVALID in vars(analysis).values():
            continue
        place = ("analyses", name)
        if analysis.estimand != "per-protocol":
            if analysis.per_protocol is not None:
                message = "`per_protocol` has settings, but the estimand is not per-protocol."
                hint = "add estimand: per-protocol; `per_protocol: none` switches off a default."
                yield Fault((*place, "per_protocol"), message, hint)
            if analysis.estimand == "intention-to-treat":
                yield from _while_on_treatment(specification, place, analysis)
            continue
        yield from _of_data(specification, place, analysis.protocol or PerProtocol())
        yield from _of_model(place, analysis.model)
        yield from _of_late_entry(specification, place)
        yield from _of_windows(specification, place, analysis)
    if isinstance(data, TableData) and data.covariates_over_time is not None and data.id is None:
        message = "covariates over time need the key `id`, the column that identifies rows."
        yield Fault(("data", "covariates_over_time"), message)


def _of_data(
    specification: Specification, place: KeyPath, protocol: PerProtocol
) -> Iterator[Fault]:
    data, where = specification.data, (*place, "per_protocol")
    if not isinstance(data, TableData):
        if protocol.deviation is not None:
            message = "`deviation` names a column of a table of people, but the data are not one."
            hint = (
                "leave it out: people deviate when their exposure ends or they start the "
                "treatment of another arm."
            )
            yield Fault((*where, "deviation"), message, hint)
        return
    exposures = specification.exposures
    is_known = exposures is not INVALID and INVALID not in exposures.values()
    is_cloned = is_known and any(isinstance(one, TableStrategy) for one in exposures.values())
    if protocol.deviation is None and is_known and not is_cloned:
        message = "a per-protocol analysis of a table needs the times at which people deviate."
        yield Fault(where, message, "name their column: `per_protocol: {deviation: ...}`.")
    if data.covariates not in (None, INVALID) and data.covariates.is_imputed:
        message = (
            "weights for deviation cannot be pooled over completed data sets, but data.covariates "
            "has `missing: impute`."
        )
        hint = "use missing: indicator, or another estimand."
        yield Fault((*place, "estimand"), message, hint)


def _of_model(place: KeyPath, model: OutcomeModelSection) -> Iterator[Fault]:
    """The outcome model is a Cox model of weighted rows, whose interval is robust."""
    where = (*place, "model")
    unfit: tuple[tuple[str, bool, str, str], ...] = (
        (
            "kind",
            model.model not in COX_MODELS,
            f"a per-protocol analysis needs a Cox model, but `kind` is {model.model}.",
            f"use {' or '.join(COX_MODELS)}: competing events censor in both.",
        ),
        (
            "also",
            bool(model.also),
            "a per-protocol analysis can have only one outcome model.",
            "leave `also` out, or make another analysis.",
        ),
        (
            "reading",
            model.reading not in ("auto", "marginal"),
            f"the rows of a per-protocol analysis have weights, which a {model.reading} reading "
            "does not use.",
            "use marginal, or leave it out; weights of matching or strata are multiplied.",
        ),
        (
            "interval",
            model.interval not in INTERVALS,
            f"{model.interval} intervals are not available with weights for deviation.",
            f"use {', '.join(INTERVALS[:-1])} or {INTERVALS[-1]}.",
        ),
        (
            str(model.whole_key),
            model.whole_key is not None,
            f"{model.whole_likelihood} takes no weights, but a per-protocol analysis needs them.",
            "leave it out.",
        ),
        (
            "covariates",
            model.covariates != "none",
            "the outcome model of a per-protocol analysis cannot have a penalty, which "
            "`covariates: all` needs.",
            "name a few covariates in `baseline` of `per_protocol`.",
        ),
        *((key, bool(getattr(model, key)), *words) for key, words in NOT_ESTIMATED.items()),
    )
    for key, is_unfit, message, hint in unfit:
        if is_unfit:
            yield Fault((*where, key), message, hint)


def _of_late_entry(specification: Specification, place: KeyPath) -> Iterator[Fault]:
    """Everybody is followed from the start: who deviated before an entry is not in the data."""
    outcomes: Mapping[str, Any] = specification.outcomes
    for name, outcome in () if outcomes is INVALID else outcomes.items():
        if isinstance(outcome, TableOutcome) and outcome.entry is not None:
            message = (
                "a per-protocol analysis needs people who are followed from the start, but the "
                f"outcome {name!r} has `entry`. People who deviate before they enter are not in "
                "the data, so the weights for deviation cannot represent them."
            )
            hint = (
                "leave out `entry` and all people who enter after time 0, or leave out the "
                "per-protocol analysis."
            )
            yield Fault((*place, "estimand"), message, hint)


def _of_windows(
    specification: Specification, place: KeyPath, analysis: Analysis
) -> Iterator[Fault]:
    """People must be on treatment when the time at risk starts."""
    if isinstance(specification.data, TableData):
        return
    for where, window in _windows(specification, place, analysis):
        if window.start_anchor == "cohort end":
            message = (
                "the time at risk starts when the treatment ends, so all people deviate first."
            )
            yield Fault((*where, "start_anchor"), message, "use cohort start.")


def _while_on_treatment(
    specification: Specification, place: KeyPath, analysis: Analysis
) -> Iterator[Fault]:
    """The time at risk must not end with the treatment."""
    if not isinstance(specification.data, CdmData):
        return
    for where, window in _windows(specification, place, analysis):
        if window.risk_end is not None and window.end_anchor == "cohort end":
            message = (
                "the estimand is intention-to-treat, but the time at risk ends when the treatment "
                "ends."
            )
            hint = "follow people as started: `time_at_risk: {risk_end: none}`."
            yield Fault(where, message, hint)


def _windows(
    specification: Specification, place: KeyPath, analysis: Analysis
) -> Iterator[tuple[KeyPath, TimeAtRisk]]:
    """The time at risk of the analysis, and of outcomes that have their own."""
    outcomes: Mapping[str, Any] = specification.outcomes
    if outcomes is INVALID:
        return
    own = {
        name: one.time_at_risk
        for name, one in outcomes.items()
        if isinstance(one, CdmOutcome) and one.time_at_risk is not None
    }
    if len(own) < len(outcomes):
        yield (*place, "time_at_risk"), analysis.window()
    for name, window in own.items():
        yield ("outcomes", name, "time_at_risk"), window
