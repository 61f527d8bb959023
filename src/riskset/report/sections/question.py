"""What was asked: population, target, comparator, outcome, time at risk, estimand, model."""

from collections.abc import Mapping
from typing import Any

from riskset.report.figures.timeline import timeline_figure
from riskset.report.markup import Markup, without_spans
from riskset.report.page import Page
from riskset.report.source import ReportPart, ReportSource

__all__ = ["collect", "render"]

WORDS = ("population", "time_at_risk", "washout", "estimand", "propensity_score", "adjustment")
AFTER = ("model", "covariates")


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Names, descriptions and the words of the main analysis."""
    analysis = source.study["analyses"][part.main.analysis]
    words = {key: analysis["words"].get(key) for key in (*WORDS, *AFTER)}
    arms = {
        one: {
            "label": source.label(group, getattr(part, one)),
            "description": source.study[group].get(getattr(part, one), {}).get("description"),
        }
        for one, group in (
            ("target", "targets"),
            ("comparator", "comparators"),
            ("outcome", "outcomes"),
        )
    }
    if words["estimand"] is None and part.main.estimand:
        words["estimand"] = source.say.label("estimand", part.main.estimand)
    return {
        "analysis": source.label("analyses", part.main.analysis),
        **arms,
        "competing": source.study["competing"],
        "words": words,
        "data": source.study["data"]["name"],
    }


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """The card, and the design on a line."""
    say, words = page.say, found["words"]
    entries = [("population", words["population"] or say("question.from", data=found["data"]))]
    for key in ("target", "comparator", "outcome"):
        own = found[key]
        more = f" – {own['description']}" if own["description"] else ""
        entries.append((key, f"{own['label']}{more}"))
    unnamed = say("question.coded_competing" if about["has_competing"] else "question.no_competing")
    entries.append(("competing", found["competing"] or unnamed))
    entries += [(key, words[key]) for key in (*WORDS[1:], *AFTER) if words[key]]
    card = page.card((say(f"question.{key}"), value) for key, value in entries)
    return page.section("question", say("section.question"), card, _timeline(page, words))


def _timeline(page: Page, words: Mapping[str, Any]) -> Markup | None:
    say = page.say
    if not words["time_at_risk"]:
        return None
    washout = without_spans(words["washout"] or say("question.no_washout"))
    risk = without_spans(words["time_at_risk"])
    drawn = timeline_figure(
        (say("question.washout"), washout),
        say("question.index"),
        (say("question.time_at_risk"), risk),
        say("question.timeline"),
        say("question.timeline_desc", washout=washout, risk=risk),
    )
    return page.figure("timeline", drawn, say("question.timeline_caption"))
