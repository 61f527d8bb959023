"""Methods in words that a paper can take over."""

from collections.abc import Mapping
from typing import Any

from riskset.report.markup import Markup, spans_as_code, tag
from riskset.report.number_format import short
from riskset.report.page import Page
from riskset.report.source import ReportPart, ReportSource

__all__ = ["collect", "render"]

SENTENCES = (
    "population", "washout", "time_at_risk", "estimand", "propensity_score", "adjustment", "model",
    "covariates",
)  # fmt: skip


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """The words of the main analysis, and the names of the others."""
    study = source.study
    words = study["analyses"][part.main.analysis]["words"]
    return {
        "sentences": {key: words[key] for key in SENTENCES if words.get(key)},
        "sensitivity": [source.label("analyses", run.analysis) for run in part.runs[1:]],
        "data": {key: study["data"].get(key) for key in ("name", "start", "end")},
        "version": study["versions"].get("riskset"),
    }


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """One paragraph."""
    text = tag("p", spans_as_code(_paragraph(page, found, about)))
    return page.section("methods", page.say("section.methods"), text)


def _paragraph(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    say, data = page.say, found["data"]
    names = {key: about[key] for key in ("target", "comparator", "outcome")}
    parts = [say("methods.design", **names)]
    dates = {"start": data["start"], "end": data["end"]}
    key = "methods.data_dates" if all(dates.values()) else "methods.data"
    parts.append(say(key, name=data["name"], **{k: v or "" for k, v in dates.items()}))
    parts += [say(f"methods.{key}", words=words) for key, words in found["sentences"].items()]
    if about["has_competing"]:
        what = about["competing"] or say("question.coded_competing")
        parts.append(say("methods.competing", what=what))
    parts.append(say("methods.missing"))
    if found["sensitivity"]:
        parts.append(say("methods.sensitivity", names="; ".join(found["sensitivity"])))
    parts.append(say("methods.balance", threshold=short(about["threshold"])))
    if page.min_cell_count > 1:
        parts.append(say("methods.small", n=page.min_cell_count))
    parts.append(say("methods.software", version=found["version"] or ""))
    return " ".join(_sentence(one) for one in parts)


def _sentence(words: str) -> str:
    """With a capital and a full stop."""
    words = words.strip()
    ended = words if words.endswith((".", "!", "?")) else f"{words}."
    return ended[:1].upper() + ended[1:]
