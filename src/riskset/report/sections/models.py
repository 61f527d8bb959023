"""The models: penalties, coefficients, certificates, and the profile of the likelihood."""

from collections.abc import Mapping
from typing import Any

from riskset.report.figures.lines import profile_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import p_value, significant, whole
from riskset.report.page import Page, ReportRow
from riskset.report.sections import proportionality
from riskset.report.sections.covariates import (
    covariate_facts,
    covariate_tables,
    render_coefficients,
    render_tried,
)
from riskset.report.sections.main_result import main_estimate
from riskset.report.source import ReportPart, ReportSource, masks, record
from riskset.results.rows import (
    EstimateRow,
    OutcomeCoefficientRow,
    OutcomePenaltyRow,
    ProfilePointRow,
    ScoreCoefficientRow,
    ScorePenaltyRow,
    ScoreRow,
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
    "informative_strata", "informative_people", "log_hr", "se",
)  # fmt: skip
MOST_POINTS = 200


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Facts and coefficients of the propensity score, facts and profile of the outcome model."""
    number = part.main.ps
    score = next(iter(source.of_score(ScoreRow, number)), None)
    coefficients = source.of_score(ScoreCoefficientRow, number)
    tried = source.of_score(ScorePenaltyRow, number)
    main = main_estimate(source, part)
    has_effect = main is not None and main.effect.hr is not None
    profile = [
        {"log_hr": row.log_hr, "log_likelihood": row.log_likelihood}
        for row in (source.of_run(ProfilePointRow, part.main) if has_effect else ())
    ]
    every = -(-len(profile) // MOST_POINTS) if profile else 1
    return {
        "score": None if score is None else {key: score[key] for key in SCORE},
        "outcome": main and _facts(main),
        "fits": _fits(source, part),
        "proportionality": proportionality.collect(source, part, main),
        "profile": sorted(profile, key=lambda r: r["log_hr"])[::every],
        "tables": covariate_tables(coefficients, tried),
    }


def _fits(source: ReportSource, part: ReportPart) -> list[ReportRow]:
    """The main outcome model, if it has covariates, and further ones that have."""
    out = []
    for row in sorted(source.of_run(EstimateRow, part.main), key=lambda row: row.number):
        if row.role not in ("main", "model") or not row.n_covariates:
            continue
        tables = covariate_tables(
            source.of_run(OutcomeCoefficientRow, part.main, number=row.number),
            source.of_run(OutcomePenaltyRow, part.main, number=row.number),
        )
        out.append(_facts(row) | {"tables": tables})
    return out


def _facts(estimate: EstimateRow) -> ReportRow:
    return record(estimate, OUTCOME) | {"suppressed": masks(estimate)}


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """All models."""
    say, tables = page.say, found["tables"]
    parts: list[Markup | None] = [page.heading(say("models.score_heading"), "propensity-model")]
    if found["score"] is None:
        parts.append(page.paragraph("models.no_score"))
    else:
        parts.append(_card(page, _score_facts(page, found["score"])))
        parts.append(_covariates(page, "score", tables, about))
    if found["outcome"] is not None:
        parts.append(page.heading(say("models.outcome_heading"), "outcome-model"))
        parts.append(_card(page, _outcome_facts(page, found["outcome"])))
        parts.append(_profile(page, found) if len(found["profile"]) > 2 else None)
        own = page.under("proportionality")
        parts.append(proportionality.render(own, found["proportionality"], about))
    for k, fit in enumerate(found["fits"]):
        parts += _fit(page.under(f"fits/{k}"), fit, about)
    return page.section("models", say("section.models"), *parts)


def _fit(page: Page, fit: ReportRow, about: Mapping[str, Any]) -> list[Markup | None]:
    """What an outcome model says of its covariates; the card of the main one is there already."""
    say, parts = page.say, []
    if fit["role"] != "main":
        title = f"{say('models.outcome_heading')}: {fit['label']}"
        parts += [page.heading(title, f"outcome-model-{fit['number']}")]
        parts += [_card(page, _outcome_facts(page, fit))]
    if about["is_withheld"]:
        return [*parts, page.paragraph("models.withheld", "note")]
    return [*parts, _covariates(page, f"outcome-{fit['number']}", fit["tables"], about)]


def _covariates(page: Page, name: str, tables: ReportRow, about: Mapping[str, Any]) -> Markup:
    """The curve of the cross-validation, and the strongest coefficients."""
    parts = []
    if len(tables["tried"]) > 1:
        parts.append(render_tried(page, f"cross-validation-{name}", tables["tried"]))
    what = "score" if name == "score" else "outcome"
    for sign in ("positive", "negative"):
        if tables[sign]:
            names = {key: about[key] for key in ("target", "outcome")}
            caption = page.say(f"models.{what}_{sign}", **names)
            parts.append(render_coefficients(page, sign, caption, tables[sign], about))
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
    removed = {
        key: score[f"removed_{key}"]
        for key in ("empty", "redundant", "rare", "duplicate")
        if score[f"removed_{key}"]
    }
    if removed:
        facts["removed"] = say.listed(
            [f"{whole(n)} {say.label('removed', key)}" for key, n in removed.items()]
        )
    if score["n_excluded"]:
        facts["excluded"] = say("models.excluded_words", n=whole(score["n_excluded"]))
    if score["kkt"] is not None:
        facts["kkt"] = say("models.kkt_words", kkt=significant(score["kkt"], 2))
    return facts


def _outcome_facts(page: Page, row: ReportRow) -> dict[str, str]:
    say = page.say
    facts = {
        "model": f"{say.label('model', row['model'])}, {say.label('reading', row['reading'])}",
        "status": say.label("status", row["status"]),
    }
    if row["interval"]:
        facts["interval"] = say.label("interval", row["interval"])
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
        facts["proportionality"] = f"p = {p_value(row['proportionality_p'])}"
    if row["kkt"] is not None:
        facts["kkt"] = say("models.kkt_words", kkt=significant(row["kkt"], 2))
    return facts


def _profile(page: Page, found: Mapping[str, Any]) -> Markup:
    say, outcome = page.say, found["outcome"]
    points = [(r["log_hr"], r["log_likelihood"]) for r in found["profile"]]
    wald = (
        (outcome["log_hr"], outcome["se"])
        if outcome["log_hr"] is not None and outcome["se"]
        else None
    )
    best = max(points, key=lambda p: p[1])
    desc = say("profile.desc", hr=significant(2.718281828459045 ** best[0]))
    drawn = profile_figure(points, wald, say, say("profile.title"), desc)
    return page.figure("profile", drawn, say("profile.caption"))
