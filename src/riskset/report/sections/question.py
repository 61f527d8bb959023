"""The research question: population, target, comparator, outcome, time at risk, estimand, model."""

from typing import Any

from riskset.report.figures.timeline import timeline_figure
from riskset.report.markup import Markup, without_spans
from riskset.report.page import Facts, Page
from riskset.report.source import ReportPart

__all__ = ["collect", "render"]

WORDS = (
    "population", "time_at_risk", "washout", "contrast", "estimand", "propensity_score",
    "adjustment", "deviations",
)  # fmt: skip
AFTER = ("model", "covariates")


def collect(part: ReportPart) -> dict[str, Any]:
    """Names, descriptions and the words of the main analysis."""
    source, main = part.source, part.main
    words = {key: part.analysis["words"].get(key) for key in (*WORDS, *AFTER)}
    named = {
        key: {
            "label": part.label(key),
            "description": source.study[f"{key}s"].get(main[key], {}).get("description"),
        }
        for key in ("target", "comparator", "outcome")
    }
    if words["estimand"] is None and main.estimand:
        words["estimand"] = source.say.label("estimand", main.estimand)
    return {
        "analysis": source.label("analyses", main.analysis),
        **named,
        "competing": source.study["competing"],
        "words": words,
        "data": source.study["data"]["name"],
        "kind": source.study["data"]["kind"],
        "has_strategies": main.cloned,
    }


def render(page: Page, content: Facts) -> Markup:
    """The card, and the design on a line."""
    say, words = page.say, content["words"]
    entries = [("population", words["population"] or say("question.from", data=content["data"]))]
    for key in ("target", "comparator", "outcome"):
        description = content[key]["description"]
        more = f" – {description}" if description else ""
        entries.append((key, f"{content[key]['label']}{more}"))
    unnamed = "coded_competing" if page.about["has_competing"] else "no_competing"
    entries.append(("competing", content["competing"] or say(f"question.{unnamed}")))
    entries += [(key, words[key]) for key in (*WORDS[1:], *AFTER) if words[key]]
    card = page.card((say(f"question.{key}"), value) for key, value in entries)
    return page.section("question", card, _timeline(page, content))


def _timeline(page: Page, content: Facts) -> Markup | None:
    say, words, is_cloned = page.say, content["words"], content["has_strategies"]
    is_table = content["kind"] != "omop"
    if not words["time_at_risk"]:
        return None
    unknown = "washout_of_data" if is_table else "no_washout"
    washout = without_spans(words["washout"] or say(f"question.{unknown}"))
    risk = without_spans(words["time_at_risk"])
    drawn = timeline_figure(
        None if is_cloned else (say("question.washout"), washout),
        say("question.index_of_strategies" if is_cloned else "question.index"),
        (say("question.time_at_risk"), risk),
    )
    group = "timeline_tables" if is_table else "timeline"
    group = "timeline_strategies" if is_cloned else group
    return page.figure(group, drawn, name="timeline", washout=washout, risk=risk)
