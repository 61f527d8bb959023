"""Propensity scores, adjustment and outcome models."""

import math
from typing import Any

from riskset.study.importing.given import Given

__all__ = ["adjustment", "limits", "model", "propensity"]

SOLVER = (
    *("maxIterations", "tolerance", "convergenceType", "autoSearch", "lowerLimit", "upperLimit"),
    *("gridSteps", "minCVData", "noiseLevel", "threads", "resetCoefficients", "startingVariance"),
    *("useKKTSwindle", "tuneSwindle", "selectorType", "initialBound", "maxBoundCount"),
    *("algorithm", "doItAll", "syncCV", "cvType"),
)
"""How Cyclops looks for the optimum, which riskset proves."""

SAMPLED = "riskset uses all people; CohortMethod draws a sample of this size."
NO_LIMIT = 1e9
"""For an infinite limit, which documents of results cannot hold."""

PROFILE = 2.4
"""riskset profiles hazard ratios from 0.1 to 10, log(10) = 2.303."""


def propensity(settings: Given | None) -> tuple[dict[str, Any] | None, int | None]:
    """The propensity score and the seed of its cross-validation."""
    if settings is None:
        return None, None
    found, seed = _penalty(settings)
    rule = settings.flag("errorOnHighCorrelation", True)
    found["on_high_correlation"] = "error" if rule else "warn"
    most = settings.whole("maxCohortSizeForFitting", 250_000)
    if most:
        found["max_rows"] = most
    if settings.has("excludeCovariateIds"):
        found["exclude"] = [str(one) for one in settings.wholes("excludeCovariateIds")]
    reason = "riskset fits the score to all covariates that are not excluded."
    settings.lose("includeCovariateIds", reason)
    settings.ignore("estimator", "stopOnError", "prior", "control")
    settings.rest()
    return found, seed


def _penalty(settings: Given) -> tuple[dict[str, Any], int | None]:
    """The penalty of a prior, and the seed of its cross-validation."""
    prior, control = settings.section("prior"), settings.section("control")
    kind = "laplace" if prior is None else prior.word("priorType", "laplace")
    is_chosen = prior is None or prior.flag("useCrossValidation", True)
    seed = None if control is None else control.whole("seed")
    if kind == "none":
        return {"penalty": "none"}, seed
    found: dict[str, Any] = {"penalty": {"laplace": "l1", "normal": "l2"}.get(kind)}
    if found["penalty"] is None:
        settings.note("prior", kind, "riskset uses an L1 penalty.")
        found["penalty"] = "l1"
    if is_chosen:
        found["folds"] = 10 if control is None else control.whole("fold", 10)
        found["repeats"] = 10 if control is None else control.whole("cvRepetitions", 10)
    elif prior is not None:
        found["variance"] = prior.number("variance", 1)
    if control is not None:
        control.ignore(*SOLVER)
        control.rest()
    if prior is not None:
        prior.ignore("variance", "exclude", "graph", "neighborhood", "forceIntercept")
        prior.rest()
    return found, seed


def adjustment(analysis: Given, outcome: Given) -> tuple[dict[str, Any], list[str]]:
    """Trimming, matching, strata and weights; and the covariates that people share within sets."""
    found: dict[str, Any] = {}
    trimming = _trim(analysis)
    if trimming:
        found["trim"] = trimming
    within: list[str] = []
    match, stratify = analysis.section("matchOnPsArgs"), analysis.section("stratifyByPsArgs")
    if match is not None:
        found["match"] = {
            "ratio": match.whole("maxRatio", 1),
            "caliper": match.number("caliper", 0.2),
            "scale": match.take("caliperScale", "standardized logit"),
            "allow_reverse": match.flag("allowReverseMatch", False),
        }
        within = _within(match, "matchCovariateIds", "matchColumns", found["match"])
        reason = "riskset has one kind of sets; it keeps `match`."
        analysis.lose("stratifyByPsArgs", reason)
    elif stratify is not None:
        found["stratify"] = {
            "k": stratify.whole("numberOfStrata", 10),
            "base": stratify.take("baseSelection", "all"),
        }
        keys = ("stratificationCovariateIds", "stratificationColumns")
        within = _within(stratify, *keys, found["stratify"])
    cut = analysis.section("truncateIptwArgs")
    if outcome.flag("inversePtWeighting", False):
        scores = analysis.content.get("createPsArgs") or {}
        estimand = scores.get("estimator") or "att"
        found["weight"] = {"estimand": estimand}
        if estimand in ("ate", "att"):
            found["weight"]["stabilise"] = "cohortmethod"
        if cut is not None:
            found["weight"]["truncate"] = cut.number("maxWeight", 10)
        for name in ("match", "stratify"):
            if name in found:
                reason = f"riskset has either weights or sets; it keeps `{name}`."
                outcome.note("inversePtWeighting", True, reason)
                found.pop("weight", None)
    elif cut is not None:
        reason = "the outcome model has no weights, so there is nothing to cut."
        analysis.note("truncateIptwArgs", dict(cut.content), reason)
    return found, within


def _trim(analysis: Given) -> dict[str, Any]:
    found: dict[str, Any] = {}
    old = analysis.section("trimByPsToEquipoiseArgs")
    if old is not None:
        found["equipoise"] = old.numbers("bounds", (0.3, 0.7))
    trim = analysis.section("trimByPsArgs")
    if trim is None:
        return found
    fraction = trim.number("trimFraction")
    # Before version 6, the tail of each arm was cut.
    method = str(trim.take("trimMethod", "asymmetric")).replace(" ", "_")
    if fraction:
        found[method] = fraction
    if trim.has("equipoiseBounds"):
        found["equipoise"] = trim.numbers("equipoiseBounds")
    trim.lose("maxWeight", "riskset trims by scores; `weight: {truncate: ...}` limits weights.")
    trim.rest()
    return found


def _within(settings: Given, ids: str, columns: str, section: dict[str, Any]) -> list[str]:
    listed = [str(one) for one in settings.wholes(ids)]
    if listed:
        section["within"] = [f"covariate {one}" for one in listed]
    settings.lose(columns, "name variables in `within` instead.")
    settings.rest()
    return listed


def model(outcome: Given, found: dict[str, Any]) -> dict[str, Any]:
    """The outcome model of an analysis, whose adjustment was `found`."""
    has_sets = "match" in found or "stratify" in found
    is_stratified = outcome.flag("stratified", False)
    reading = "stratified" if is_stratified else "marginal" if "weight" in found else "pooled"
    if is_stratified and not has_sets:
        outcome.note("stratified", True, "there are no sets, so there is one baseline.")
        reading = "pooled"
    kind = outcome.take("modelType", "cox")
    made: dict[str, Any] = {"kind": kind, "reading": reading, "interval": "profile"}
    if outcome.flag("bootstrapCi", False):
        made |= {"interval": "bootstrap", "replicates": outcome.whole("bootstrapReplicates", 200)}
    outcome.ignore("bootstrapReplicates")
    if outcome.flag("useCovariates", False):
        made["covariates"] = "all"
        penalty, _ = _penalty(outcome)
        if penalty["penalty"] != "l1":
            reason = "the penalty of covariates of an outcome model is L1."
            outcome.note("prior", penalty["penalty"], reason)
        elif "variance" in penalty:
            made["strength"] = math.sqrt(2 / penalty["variance"])
        made |= {name: penalty[name] for name in ("folds", "repeats") if name in penalty}
    outcome.ignore("prior", "control")
    outcome.lose(
        "interactionCovariateIds",
        "write `variables: {NAME: {covariate: ID}}` and `subgroups` for effects in groups.",
    )
    for key in ("includeCovariateIds", "excludeCovariateIds"):
        outcome.lose(key, "an outcome model has all tidy covariates or none.")
    outcome.lose("profileGrid", "riskset chooses the points of the likelihood profile.")
    bounds = outcome.numbers("profileBounds")
    if any(abs(one) > PROFILE for one in bounds):
        reason = "riskset profiles hazard ratios from 0.1 to 10."
        outcome.note("profileBounds", bounds, reason)
    outcome.rest()
    return made


def limits(thresholds: Given | None) -> tuple[dict[str, Any], float | None]:
    """The limits of the diagnostics, and the level of tests of balance."""
    if thresholds is None:
        return {}, None
    names = {
        "mdrrThreshold": "max_mdrr",
        "easeThreshold": "max_ease",
        "sdmThreshold": "max_smd",
        "equipoiseThreshold": "min_equipoise",
        "generalizabilitySdmThreshold": "max_generalisability",
    }
    found: dict[str, Any] = {}
    for key, name in names.items():
        value = thresholds.number(key)
        if value is not None:
            found[name] = NO_LIMIT if math.isinf(value) else value
    if found.get("max_generalisability") in (NO_LIMIT, 999):
        found["max_generalisability"] = None
    alpha = thresholds.number("sdmAlpha")
    thresholds.lose("attritionFractionThreshold", "riskset has no limit on attrition.")
    thresholds.rest()
    return found, alpha
