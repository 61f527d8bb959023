"""What a study asks and does, in sentences for readers of its results."""

import importlib.metadata
import platform
from collections.abc import Mapping
from typing import Any

from riskset._errors import counted
from riskset._settings import as_dict
from riskset._time_units import DAYS_IN
from riskset._version import __version__
from riskset.cohort.adjustments.adjustment_settings import Trim, Weight
from riskset.cohort.effects.effect_scale import COX_MODELS
from riskset.cohort.effects.readings import readings_of
from riskset.study.specification.data_sections import CdmData, Data, TableData
from riskset.study.specification.exposure_sections import Exposure, TableStrategy
from riskset.study.specification.outcome_sections import CdmOutcome, TableOutcome
from riskset.study.specification.sections import (
    Analysis,
    MatchSection,
    OutcomeModelSection,
    PropensitySection,
    TreatmentWeightSection,
)
from riskset.study.specification.study_definition import Study
from riskset.study.steps.deviation_weights import interval_days

__all__ = ["analysis_words", "study_document", "versions"]

ESTIMANDS = {
    "ate": "the average effect in the whole population (ATE)",
    "att": "the average effect in people like those who received the target (ATT)",
    "atu": "the average effect in people like those who received the comparator (ATU)",
    "ato": "the average effect in people who could have received either treatment (ATO)",
    "matching": "the average effect in people who could be matched (matching weights)",
}
CONTRASTS = {
    "per-protocol": "the effect if all people had kept to the treatment of their group "
    "(per-protocol effect)",
    "intention-to-treat": "the effect of starting the treatment, whatever people did later "
    "(intention-to-treat effect)",
}
WEIGHTS = {
    "ate": "ATE weights",
    "att": "ATT weights",
    "atu": "ATU weights",
    "ato": "overlap weights",
    "matching": "matching weights",
}
MODELS = {
    "cox": "Cox proportional hazards regression",
    "cause-specific": "Cox regression of the cause-specific hazard (competing events are censored)",
    "finegray": "Fine–Gray regression of the subdistribution hazard",
    "logistic": "logistic regression of the outcome within the time at risk",
    "poisson": "Poisson regression of the outcome with the time at risk as an offset",
}
BASES = {
    "all": "all people",
    "target": "the target group",
    "comparator": "the comparator group",
}
PACKAGES = ("numpy", "scipy", "numba", "pyarrow", "duckdb")


def versions() -> dict[str, str]:
    """Versions of the programs that computed the results."""
    ours = {"riskset": __version__, "python": platform.python_version()}
    return ours | {name: importlib.metadata.version(name) for name in PACKAGES}


def study_document(
    study: Study, sources: list[dict[str, object]], provenance: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Content of ``study.json``: all of `STUDY_KEYS` that the results do not add."""
    asked = study.specification
    described: dict[str, dict[str, dict[str, str]]] = {}
    for role in ("target", "comparator"):
        names = dict.fromkeys(getattr(comparison, role) for comparison in asked.comparisons)
        described[f"{role}s"] = {
            name: {
                "label": asked.exposures[name].label or name,
                "description": _exposure_words(asked.exposures[name], asked.data),
            }
            for name in names
        }
    return {
        "title": asked.title,
        "description": asked.description,
        **described,
        "comparisons": [as_dict(comparison) for comparison in asked.comparisons],
        "outcomes": {
            name: {
                "label": outcome.label or name,
                "description": _outcome_words(outcome),
                "kind": outcome.kind,
                "true_hr": 1.0 if outcome.kind == "negative control" else outcome.true_hr,
            }
            for name, outcome in asked.outcomes.items()
        },
        "competing": asked.competing or _listed(asked.competing_events),
        "analyses": {
            name: {
                "label": analysis.label or name,
                "words": analysis_words(study, analysis),
                "settings": study.settings["analyses"][name],
            }
            for name, analysis in asked.analyses.items()
        },
        "subgroups": {
            name: {"label": subgroup.label or name} for name, subgroup in asked.subgroups.items()
        },
        "data": {**_data(study, sources), "cdm_source": dict(provenance or {})},
        "min_cell_count": asked.sharing.min_cell_count,
        "blind": asked.sharing.blind,
        "settings": study.settings,
        "settings_hash": study.settings_hash,
        "versions": versions(),
    }


def _exposure_words(exposure: Exposure, data: Data) -> str:
    """The description of an exposure, and what a strategy says."""
    if not isinstance(exposure, TableStrategy) or not isinstance(data, TableData):
        return exposure.description
    what = f"start, as the column `{exposure.treated_at}` says"
    until = "at any time"
    if exposure.grace is not None:
        until = f"within {exposure.grace:g} {data.time_unit} from the start of follow-up"
    words = f"Strategy: {'' if exposure.starts else 'do not '}{what}, {until}."
    if exposure.window is not None and exposure.grace is not None:
        words += (
            f" Those who started in the last {exposure.window:g} {data.time_unit} of this period "
            "represent those who did not start."
        )
    return f"{_sentence(exposure.description)} {words}".strip()


def _sentence(description: str) -> str:
    """A description with a full stop."""
    text = description.strip()
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _outcome_words(outcome: TableOutcome | CdmOutcome) -> str:
    """The description of an outcome, and how it differs from the analyses."""
    text = _sentence(outcome.description)
    parts = [text] if text else []
    if isinstance(outcome, CdmOutcome):
        if outcome.time_at_risk is not None:
            window = outcome.time_at_risk.words
            parts.append(f"This outcome has its own time at risk: {window}.")
        if outcome.prior_outcome_lookback is not None:
            days = counted(outcome.prior_outcome_lookback, "day")
            parts.append(
                "An earlier outcome counts only if it occurred "
                f"less than {days} before the index date."
            )
    return " ".join(parts)


def _listed(events: Mapping[str, CdmOutcome]) -> str | None:
    labels = [event.label or name for name, event in events.items()]
    if len(labels) < 2:
        return labels[0] if labels else None
    return f"{', '.join(labels[:-1])} or {labels[-1]}"


def _data(study: Study, sources: list[dict[str, object]]) -> dict[str, object]:
    data = study.specification.data
    return {
        "name": data.name or study.settings["data"].get("cdm") or sources[0]["name"],
        "description": data.description,
        "kind": "tables" if isinstance(data, TableData) else "omop",
        "start": None if data.start is None else data.start.isoformat(),
        "end": None if data.end is None else data.end.isoformat(),
        "sources": sources,
    }


def analysis_words(study: Study, analysis: Analysis) -> dict[str, str | None]:
    """Each part of an analysis in a sentence; None where it has no such part."""
    estimand = None
    if analysis.match is not None:
        plain = "atu" if analysis.match.allow_reverse else "att"
        estimand = ESTIMANDS[analysis.match.estimand or plain]
    elif analysis.coarsen is not None:
        estimand = ESTIMANDS[analysis.coarsen.estimand]
    elif analysis.stratify is not None:
        bases = {"all": "ate", "target": "att", "comparator": "atu"}
        estimand = ESTIMANDS[bases[analysis.stratify.base]]
    elif analysis.weight is not None:
        estimand = ESTIMANDS[analysis.weight.estimand]
    elif analysis.weight_treatments is not None:
        estimand = _common_estimand(study, analysis.weight_treatments)
    return {
        "population": _population(study),
        **_follow_up(study, analysis),
        "contrast": CONTRASTS.get(analysis.estimand or ""),
        "estimand": estimand,
        "propensity_score": _score(study, analysis),
        "adjustment": _adjustment(study, analysis),
        "deviations": _deviations(study, analysis),
        "model": _model(study, analysis),
        "covariates": _covariates(analysis),
    }


def _population(study: Study) -> str:
    asked = study.specification
    if not isinstance(asked.data, TableData):
        return "people who started the target or the comparator"
    text = "all people in the data who received the target or the comparator"
    if asked.data.treatment is None:
        text = "all people in the data, each of whom is in both groups, as a clone in each"
    if any(getattr(outcome, "prior", None) is not None for outcome in asked.outcomes.values()):
        text += ", except people who had the outcome before"
    if asked.data.sampling_weight is not None:
        text += "; each person stands for as many people of the population as its sampling weight"
    return text


def _follow_up(study: Study, analysis: Analysis) -> dict[str, str | None]:
    data = study.specification.data
    if isinstance(data, TableData):
        words = "days at risk as recorded in the data, including the first and the last day"
        if data.time_unit != "days":
            one, days = data.time_unit.removesuffix("s"), DAYS_IN[data.time_unit]
            words = f"{data.time_unit} at risk as recorded in the data, a {one} being {days:g} days"
        if any(getattr(one, "entry", None) for one in study.specification.outcomes.values()):
            words += (
                "; people who came under observation after the start of follow-up were at risk "
                "only from then on (left truncation)"
            )
        return {"time_at_risk": words, "washout": None}
    if not isinstance(data, CdmData):  # R has selected the people
        return {"time_at_risk": analysis.window().words, "washout": None}
    entry = analysis.entry
    washout = f"at least {entry.washout_days:,} days of observation before the start of treatment"
    return {
        "time_at_risk": analysis.window().words,
        "washout": washout if entry.washout_days else None,
    }


def _score(study: Study, analysis: Analysis) -> str | None:
    settings = analysis.propensity
    if getattr(study.specification.data, "score", None) is not None:
        return "supplied with the data"
    if settings is None:
        return None
    return _regression(study, settings, "logistic regression of the treatment on the covariates")


def _regression(study: Study, settings: PropensitySection, model: str) -> str:
    """A model of the treatment, with its penalty."""
    if getattr(study.specification.data, "sampling_weight", None) is not None:
        model = f"{model}, with the sampling weights"
    if settings.penalty == "none":
        return f"{model}, by maximum likelihood"
    how = f"{model} with an {settings.penalty.upper()} penalty"
    if settings.chooses_penalty:
        repeated = f", repeated {settings.repeats} times" if settings.repeats > 1 else ""
        return f"{how} chosen by {settings.folds}-fold cross-validation{repeated}"
    if settings.variance is not None:
        return f"{how} (prior variance {settings.variance:g})"
    return f"{how} (strength {settings.strength:g})"


def _adjustment(study: Study, analysis: Analysis) -> str:
    parts = []
    if analysis.trim is not None:
        rules, refit = analysis.trim.values(Trim), analysis.trim.refit
        named = [
            name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {_plain(value)}"
            for name, value in rules.items()
            if value not in (None, False)
        ]
        parts.append(f"trimmed ({', '.join(named)}){', then the score estimated again' * refit}")
    if analysis.match is not None:
        parts.append(_matching(analysis.match))
    if analysis.coarsen is not None:
        coarse = analysis.coarsen
        names = ", ".join(map(str, (*coarse.within, *coarse.covariates)))
        parts.append(f"matched exactly on coarsened covariates ({names})")
    if analysis.stratify is not None:
        strata = analysis.stratify
        within = f" within {', '.join(strata.within)}" if strata.within else ""
        people = BASES[strata.base]
        parts.append(f"{strata.k} strata by quantiles of the propensity score of {people}{within}")
    if analysis.weight is not None:
        parts.append(_weighting(analysis.weight))
    if analysis.weight_treatments is not None:
        parts.append(_common_weighting(study, analysis.weight_treatments))
    return "; ".join(parts) if parts else "none"


def _matching(match: MatchSection) -> str:
    ratio = f"1 to {match.ratio}" if match.ratio else "1 to any number of comparators"
    how = {"optimal": f"optimally {ratio}", "full": "in sets of any size (full matching)"}
    own = how.get(match.method, ratio)
    replaced = ", with replacement" if match.replacement else ""
    scale = f"the {match.scale}"
    caliper = f", caliper {match.caliper:g}" if match.caliper else ", without a caliper"
    if match.mahalanobis:
        if match.caliper:
            caliper = f", within a caliper of {match.caliper:g} of {scale}"
        scale = f"Mahalanobis's distance of {', '.join(map(str, match.mahalanobis))}"
    within = f", within {', '.join(match.within)}" if match.within else ""
    return f"matched {own} on {scale}{replaced}{caliper}{within}"


def _common_estimand(study: Study, given: TreatmentWeightSection) -> str:
    if given.estimand != "att":
        received = "any of the treatments" if given.estimand == "ato" else ""
        words = ESTIMANDS[given.estimand]
        return words.replace("either treatment", received) if received else words
    name = study.specification.exposures[str(given.target)].label or str(given.target)
    return f"the average effect in people like those who received {name}, in every comparison"


def _common_weighting(study: Study, given: TreatmentWeightSection) -> str:
    exposures = study.specification.exposures
    names = [exposures[name].label or name for name in given.arms]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    how = "entropy balancing"
    if given.method == "score":
        model = _regression(study, given, "multinomial logistic regression")
        how = f"generalised propensity scores ({model})"
    return f"weighted by {how} of {listed} ({WEIGHTS[given.estimand]}), the same in all comparisons"


def _weighting(given: Weight) -> str:
    if given.uses_score:
        cut = "" if given.truncate is None else f", truncated at {given.truncate}"
        return f"weighted by the propensity score ({WEIGHTS[given.estimand]}){cut}"
    how = {"entropy": "entropy balancing", "cbps": "a covariate-balancing propensity score"}
    names = ", ".join(map(str, given.covariates)) or "all covariates"
    powers = f", with powers up to {given.moments}" if given.moments > 1 else ""
    products = f", and {counted(len(given.interactions), 'product')}" if given.interactions else ""
    return (
        f"weighted by {how[given.method]} ({WEIGHTS[given.estimand]}) of {names}{powers}{products}"
    )


def _deviations(study: Study, analysis: Analysis) -> str | None:
    """How people are followed until they deviate, and weighted."""
    protocol, data = analysis.protocol, study.specification.data
    if protocol is None:
        return None
    other = "the other" if analysis.weight_treatments is None else "another"
    where = f"when their exposure ended or they started {other} treatment"
    who = "people were censored when they deviated from their treatment"
    if isinstance(data, TableData):
        where = f"at the time in the column `{protocol.deviation}`"
    if isinstance(data, TableData) and data.treatment is None:
        who = (
            "all people were in both groups, as a clone in each, and a clone was censored when it "
            "deviated from the strategy of its group"
        )
        where = (
            "strategies to start: at the end of the grace period without a start; strategies not "
            "to start: at a start within the grace period, or at any start if there is none"
        )
    elif not isinstance(data, CdmData | TableData):
        where = "when their exposure ended"
    days = interval_days(protocol, data)
    shape = "linear in time" if protocol.time_df == 1 else "without time"
    if protocol.time_df > 1:
        shape = f"with a natural cubic spline of time of {protocol.time_df} degrees of freedom"
    models = f"logistic regressions of deviation in intervals of {days:g} days, {shape},"
    if protocol.kind == "cox":
        models = f"Cox regressions of the time of deviation in rows of at most {days:g} days"
    named = ", ".join(protocol.baseline)
    numerator = f" with {named} in the numerator" if named else ""
    kind = f"stabilised weights{numerator}" if protocol.stabilise else "weights"
    cut = ""
    if protocol.truncate is not None:
        low, high = protocol.truncate
        cut = f", truncated at their percentiles {low:g} and {high:g}"
    also = ". These weights are multiplied by those of the adjustment"
    return (
        f"{who} ({where}); those who "
        f"stayed had {kind} by the inverse probability of staying, from {models} in each "
        f"group{cut}{also if analysis.ways else ''}"
    )


def _plain(value: object) -> str:
    return " to ".join(f"{v:g}" for v in value) if isinstance(value, tuple) else f"{value:g}"


def _model(study: Study, analysis: Analysis) -> str:
    model = analysis.model
    others = (
        f"; additional models: {', '.join(MODELS[kind] for kind in model.also)}"
        if model.also
        else ""
    )
    is_sampled = getattr(study.specification.data, "sampling_weight", None) is not None
    kind = "matching" if analysis.match is not None else "stratification"
    main, *_ = readings_of(model, kind if analysis.has_sets else None, is_sampled=is_sampled)
    sets = "matched set" if analysis.match is not None else "stratum"
    how = f", stratified by {sets}" if main == "stratified" else ""
    return f"{MODELS[model.model]}{how}{_likelihood(model)}{others}"


def _likelihood(model: OutcomeModelSection) -> str:
    """What is special about the likelihood of Cox models."""
    of = "" if model.model in COX_MODELS else " of the Cox models"
    ties = {"breslow": "", "efron": f", with the ties{of} by Efron's method"}
    ties["exact"] = f", with the exact conditional likelihood{of} of tied events"
    firth = f", with Firth's penalised likelihood{of}, whose estimate is finite under separation"
    return ties[model.ties] + firth * model.firth + _frailty(model, of)


def _frailty(model: OutcomeModelSection, of: str) -> str:
    """The random effects of clusters."""
    if model.frailty is None:
        return ""
    kind = {"gamma": "gamma", "lognormal": "log-normal"}[model.frailty]
    how = {"ml": "maximum likelihood", "reml": "restricted maximum likelihood"}
    variance = f"estimated by {how[model.frailty_method]}"
    if model.frailty_variance is not None:
        variance = f"{model.frailty_variance:g}"
    return (
        f", with a {kind} frailty{of} that people with the same `{model.cluster}` share, whose "
        f"variance is {variance}"
    )


def _covariates(analysis: Analysis) -> str | None:
    held = ", ".join(f"{name} ({value:g})" for name, value in analysis.model.held.items())
    text = f"the coefficients of these covariates were held at given log ratios: {held}"
    words = text if held else None
    if analysis.model.covariates == "none":
        return words
    chosen = (
        "chosen by cross-validation" if analysis.model.strength is None else "of fixed strength"
    )
    free = f"all covariates, with an L1 penalty {chosen}; the treatment is not penalised"
    return f"{free}; {words}" if words else free
