"""The models: penalties, coefficients, convergence, and the profile of the likelihood."""

import math
from collections.abc import Mapping
from typing import Any

from riskset.report.figures.lines import profile_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import p_with_sign, significant, whole
from riskset.report.page import Facts, Page, ReportRow
from riskset.report.sections import proportionality
from riskset.report.sections.covariates import (
    covariate_facts,
    covariate_tables,
    render_coefficients,
    render_tried,
)
from riskset.report.source import ReportPart, masks, record
from riskset.results.rows import (
    EstimateRow,
    OutcomeCoefficientRow,
    OutcomePenaltyRow,
    ProfilePointRow,
    ScoreCoefficientRow,
    ScorePenaltyRow,
)

__all__ = ["collect", "render"]

SCORE = (
    "status", "reason", "source", "n_target", "n_comparator", "n_covariates", "n_used",
    "n_excluded", "penalty", "l1", "l2", "variance", "chosen_by", "folds", "repeats", "seed", "kkt",
    "removed_empty", "removed_redundant", "removed_rare", "removed_duplicate",
)  # fmt: skip
OUTCOME = (
    "number", "role", "label", "model", "reading", "interval", "status", "n_covariates", "n_used",
    "l1", "l2", "variance", "chosen_by", "folds", "repeats", "seed", "kkt", "proportionality_p",
    "informative_strata", "informative_people", "log_hr", "se", "ties", "firth",
    "frailty", "cluster", "n_clusters", "frailty_variance", "frailty_p",
)  # fmt: skip
MOST_POINTS = 200


def collect(part: ReportPart) -> dict[str, Any]:
    """Facts and coefficients of the propensity score, facts and profile of the outcome model."""
    score, main = part.score, part.estimate
    has_effect = main is not None and main.effect.hr is not None
    points = sorted(part.read(ProfilePointRow), key=lambda row: row.log_hr) if has_effect else []
    every = -(-len(points) // MOST_POINTS) or 1
    return {
        "score": score and {key: score[key] for key in SCORE},
        "outcome": main and _facts(main),
        "fits": _fits(part),
        "proportionality": proportionality.collect(part),
        "profile": [
            {"log_hr": row.log_hr, "log_likelihood": row.log_likelihood} for row in points[::every]
        ],
        "tables": covariate_tables(part.scored(ScoreCoefficientRow), part.scored(ScorePenaltyRow)),
    }


def _fits(part: ReportPart) -> list[ReportRow]:
    """The main outcome model, if it has covariates, and further ones that have."""
    out = []
    for row in sorted(part.read(EstimateRow), key=lambda row: row.number):
        if row.role in ("main", "model") and row.n_covariates:
            coefficients = part.read(OutcomeCoefficientRow, number=row.number)
            tried = part.read(OutcomePenaltyRow, number=row.number)
            out.append(_facts(row) | {"tables": covariate_tables(coefficients, tried)})
    return out


def _facts(estimate: EstimateRow) -> ReportRow:
    return record(estimate, OUTCOME) | {"suppressed": masks(estimate)}


def render(page: Page, content: Facts) -> Markup:
    """All models."""
    say = page.say
    parts: list[Markup | None] = [page.heading(say("models.score_heading"), "propensity-model")]
    if content["score"] is None:
        parts.append(page.paragraph("models.no_score"))
    else:
        parts.append(_card(page, _score_facts(page, content["score"])))
        parts.append(_covariates(page, "score", content["tables"]))
    if content["outcome"] is not None:
        parts.append(page.heading(say("models.outcome_heading"), "outcome-model"))
        parts.append(_card(page, _outcome_facts(page, content["outcome"])))
        parts.append(_profile(page, content) if len(content["profile"]) > 2 else None)
        if page.about["scale"] != "odds":  # which do not depend on when outcomes occur
            over_time = page.under("proportionality")
            parts.append(proportionality.render(over_time, content["proportionality"]))
    for k, fit in enumerate(content["fits"]):
        parts += _fit(page.under(f"fits/{k}"), fit)
    return page.section("models", *parts)


def _fit(page: Page, fit: ReportRow) -> list[Markup | None]:
    """What an outcome model says of its covariates; the card of the main one is there already."""
    parts: list[Markup | None] = []
    if fit["role"] != "main":
        title = f"{page.say('models.outcome_heading')}: {fit['label']}"
        parts += [page.heading(title, f"outcome-model-{fit['number']}")]
        parts += [_card(page, _outcome_facts(page, fit))]
    if page.about["is_withheld"]:
        return [*parts, page.paragraph("models.withheld", "note")]
    return [*parts, _covariates(page, f"outcome-{fit['number']}", fit["tables"])]


def _covariates(page: Page, name: str, tables: ReportRow) -> Markup:
    """The curve of the cross-validation, and the strongest coefficients."""
    parts = []
    if len(tables["tried"]) > 1:
        parts.append(render_tried(page, f"cross-validation-{name}", tables["tried"]))
    what = "score" if name == "score" else "outcome"
    for sign in ("positive", "negative"):
        if tables[sign]:
            caption = page.say(f"models.{what}_{sign}")
            parts.append(render_coefficients(page, sign, caption, tables[sign]))
    return join(*parts)


def _card(page: Page, facts: Mapping[str, str]) -> Markup:
    return page.card((page.say(f"models.{key}"), value) for key, value in facts.items())


def _score_facts(page: Page, score: ReportRow) -> dict[str, str]:
    say = page.say
    facts = {"status": say.label("status", score["status"])}
    if score["reason"] and score["status"] != "ok":
        facts["reason"] = score["reason"]
    facts["source"] = say.label("source", score["source"])
    facts |= covariate_facts(page, score, score["penalty"])
    removed = [
        f"{whole(score[f'removed_{key}'])} {say.label('removed', key)}"
        for key in ("empty", "redundant", "rare", "duplicate")
        if score[f"removed_{key}"]
    ]
    if removed:
        facts["removed"] = say.listed(removed)
    if score["n_excluded"]:
        facts["excluded"] = say("models.excluded_words", n=whole(score["n_excluded"]))
    return facts | _convergence(page, score)


def _convergence(page: Page, row: ReportRow) -> dict[str, str]:
    if row["kkt"] is None:
        return {}
    return {"kkt": page.say("models.kkt_words", kkt=significant(row["kkt"], 2))}


def _outcome_facts(page: Page, row: ReportRow) -> dict[str, str]:
    say = page.say
    facts = {
        "model": f"{say.label('model', row['model'])}, {say.label('reading', row['reading'])}",
        "status": say.label("status", row["status"]),
    }
    if row["interval"]:
        is_penalized = row["firth"] and row["interval"] == "profile"
        facts["interval"] = say.label("interval", "firth" if is_penalized else row["interval"])
    special = [row["ties"]] * (row["ties"] in ("efron", "exact")) + ["firth"] * bool(row["firth"])
    if special:
        facts["likelihood"] = say.listed([say.label("likelihood", one) for one in special])
    if row["frailty"]:
        facts["frailty"] = _frailty(page, row)
    if not row["n_covariates"]:
        facts["covariates"] = say("models.treatment_only")
    elif row["n_used"] is None:
        facts["covariates"] = say.count("covariate", row["n_covariates"])
    penalty = "l1" if row["l1"] else "l2" if row["l2"] else None
    facts |= covariate_facts(page, row, penalty)
    if row["informative_strata"] is not None:
        facts["informative"] = say(
            "models.informative_words",
            strata=whole(row["informative_strata"]),
            people=whole(row["informative_people"]),
        )
    if row["proportionality_p"] is not None:
        facts["proportionality"] = f"p {p_with_sign(row['proportionality_p'])}"
    return facts | _convergence(page, row)


def _frailty(page: Page, row: ReportRow) -> str:
    """The distribution of the frailties, and what was found about them."""
    say = page.say
    kind = say.label("frailty", row["frailty"])
    parts = [say("models.frailty_words", kind=kind, cluster=row["cluster"])]
    if row["n_clusters"] is not None:
        parts.append(say.count("cluster", row["n_clusters"]))
    if row["frailty_variance"] is not None:
        parts.append(
            say("models.frailty_variance", variance=significant(row["frailty_variance"], 3))
        )
    if row["frailty_p"] is not None:
        parts.append(f"p {p_with_sign(row['frailty_p'])}")
    return "; ".join(parts)


def _profile(page: Page, content: Facts) -> Markup:
    outcome = content["outcome"]
    points = [(row["log_hr"], row["log_likelihood"]) for row in content["profile"]]
    has_wald = outcome["log_hr"] is not None and outcome["se"]
    wald = (outcome["log_hr"], outcome["se"]) if has_wald else None
    best, _ = max(points, key=lambda point: point[1])
    hr = significant(math.exp(best))
    interval, say = outcome["interval"], page.say
    where = say("profile.range")
    if interval not in ("profile", None):
        where = say("profile.other_range", interval=say.label("interval", interval))
    drawn = profile_figure(points, wald, say)
    normal = "" if wald is None else say("profile.normal")
    return page.figure("profile", drawn, more=normal, hr=hr, range=where)
