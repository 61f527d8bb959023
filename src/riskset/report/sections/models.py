"""The models: penalties, coefficients, certificates, and the profile of the likelihood."""

from collections.abc import Mapping
from typing import Any

from riskset.report.figures.lines import cross_validation_figure, profile_figure
from riskset.report.markup import Markup, join, tag
from riskset.report.numerals import p_value, significant, whole
from riskset.report.page import Column, Page
from riskset.report.sections.main_result import main_estimate
from riskset.report.source import Part, Source

__all__ = ["collect", "render"]

Row = dict[str, Any]
STRONGEST = 20
SCORE = (
    "status", "reason", "source", "n_target", "n_comparator", "n_covariates", "n_used",
    "n_excluded", "penalty", "l1", "l2", "variance", "chosen_by", "folds", "repeats", "seed", "kkt",
    "removed_empty", "removed_redundant", "removed_rare", "removed_duplicate",
)  # fmt: skip
OUTCOME = (
    "model", "reading", "interval", "status", "n_covariates", "l1", "l2", "kkt",
    "proportionality_p", "informative_strata", "informative_people", "log_hr", "se",
)  # fmt: skip
MOST_POINTS = 200


def collect(source: Source, part: Part) -> dict[str, Any]:
    """Facts and coefficients of the propensity score, facts and profile of the outcome model."""
    number = part.main["ps"]
    scores = [] if number is None else source.rows("ps", ps=number)
    coefficients = [] if number is None else source.rows("ps_coefficients", ps=number)
    tried = [] if number is None else source.rows("ps_cross_validation", ps=number)
    main = main_estimate(source, part)
    profile = [
        {"log_hr": row["log_hr"], "log_likelihood": row["log_likelihood"]}
        for row in source.of_run("likelihood_profiles", part.main)
    ]
    every = -(-len(profile) // MOST_POINTS) if profile else 1
    return {
        "score": {key: scores[0][key] for key in SCORE} if scores else None,
        "outcome": main and {key: main[key] for key in OUTCOME},
        "profile": sorted(profile, key=lambda r: r["log_hr"])[::every],
        "tables": {
            "positive": _strongest([r for r in coefficients if r["coef"] > 0]),
            "negative": _strongest([r for r in coefficients if r["coef"] < 0]),
            "tried": sorted(
                ({k: v for k, v in row.items() if k != "ps"} for row in tried),
                key=lambda r: (r["l1"], r["l2"]),
            ),
        },
    }


def _strongest(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda r: r["rank"])[:STRONGEST]


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """Both models."""
    say, tables = page.say, found["tables"]
    parts: list[Markup | None] = [page.heading(say("models.score_heading"), "propensity-model")]
    if found["score"] is None:
        parts.append(page.paragraph("models.no_score"))
    else:
        parts.append(_card(page, "models", _score_facts(page, found["score"])))
        if len(tables["tried"]) > 1:
            parts.append(_tried(page, tables["tried"]))
        for name in ("positive", "negative"):
            if tables[name]:
                parts.append(_coefficients(page, name, tables[name], about))
    if found["outcome"] is not None:
        parts.append(page.heading(say("models.outcome_heading"), "outcome-model"))
        parts.append(_card(page, "models", _outcome_facts(page, found["outcome"])))
        parts.append(_profile(page, found) if len(found["profile"]) > 2 else None)
    return page.section("models", say("section.models"), *parts)


def _card(page: Page, group: str, facts: Mapping[str, str]) -> Markup:
    entries = [
        join(tag("dt", page.say(f"{group}.{key}")), tag("dd", value))
        for key, value in facts.items()
    ]
    return tag("dl", *entries, class_="card")


def _score_facts(page: Page, score: Row) -> dict[str, str]:
    say = page.say
    facts = {"status": say.label("status", score["status"])}
    if score["reason"] and score["status"] != "ok":
        facts["reason"] = score["reason"]
    facts["source"] = say.label("source", score["source"])
    if score["n_covariates"] is not None:
        facts["covariates"] = say(
            "models.of", used=whole(score["n_used"]), all=whole(score["n_covariates"])
        )
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
    if score["penalty"] is not None:
        facts["penalty"] = _penalty(page, score)
    if score["folds"] is not None:
        facts["cross_validation"] = say(
            "models.folds", folds=score["folds"], repeats=score["repeats"], seed=score["seed"]
        )
    if score["kkt"] is not None:
        facts["kkt"] = say("models.kkt_words", kkt=significant(score["kkt"], 2))
    return facts


def _penalty(page: Page, row: Row) -> str:
    say = page.say
    kind = say.label("penalty", row.get("penalty"))
    strengths = [
        say(f"models.{key}", value=significant(row[key])) for key in ("l1", "l2") if row[key]
    ]
    if row.get("variance") is not None:
        strengths.append(say("models.variance", value=significant(row["variance"])))
    return f"{kind} ({', '.join(strengths)})" if strengths else kind


def _outcome_facts(page: Page, row: Row) -> dict[str, str]:
    say = page.say
    facts = {
        "model": f"{say.label('model', row['model'])}, {say.label('reading', row['reading'])}",
        "status": say.label("status", row["status"]),
    }
    if row["interval"]:
        facts["interval"] = say.label("interval", row["interval"])
    facts["adjusted_for"] = (
        say.count("covariate", row["n_covariates"])
        if row["n_covariates"]
        else say("models.treatment_only")
    )
    if row["l1"] or row["l2"]:
        facts["penalty"] = _penalty(page, row | {"penalty": "l1" if row["l1"] else "l2"})
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


def _tried(page: Page, rows: list[Row]) -> Markup:
    say = page.say
    has_variance = all(row["variance"] for row in rows)
    key = "variance" if has_variance else "l1" if any(row["l1"] for row in rows) else "l2"
    points = [{"at": row[key], **{k: row[k] for k in ("mean", "se", "chosen")}} for row in rows]
    desc = say(
        "cv.desc",
        n=len(rows),
        chosen=significant(next((r[key] for r in rows if r["chosen"]), None)),
    )
    drawn = cross_validation_figure(points, say(f"cv.{key}"), say, say("cv.title"), desc)
    columns = [
        Column.number(say(f"cv.{name}"), name)
        for name in ("l1", "l2", "variance")
        if any(row[name] for row in rows)
    ]
    columns += [
        Column.number(say("cv.mean"), "mean", 6),
        Column.number(say("cv.se"), "se"),
        Column.text(say("cv.chosen"), "chosen", lambda v: say("word.yes") if v else ""),
    ]
    data = page.table("tried", say("cv.table"), columns, rows)
    return page.figure("cross-validation", drawn, say("cv.caption"), data)


def _coefficients(page: Page, name: str, rows: list[Row], about: Mapping[str, Any]) -> Markup:
    say = page.say
    columns = [
        Column.text(say("balance.covariate"), "name"),
        Column.number(say("models.coef"), "coef"),
        Column.number(about["target"], "mean_target"),
        Column.number(about["comparator"], "mean_comparator"),
    ]
    return page.table(
        name, say(f"models.{name}", target=about["target"]), columns, rows, can_sort=True
    )


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
