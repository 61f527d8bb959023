"""Methods in words that a paper can take over."""

from typing import Any

from riskset.report.markup import Markup, spans_as_code, tag
from riskset.report.number_format import capital, short
from riskset.report.page import Facts, Page
from riskset.report.source import ReportPart

__all__ = ["collect", "render"]

SENTENCES = (
    "population", "washout", "time_at_risk", "estimand", "propensity_score", "adjustment", "model",
    "covariates",
)  # fmt: skip


def collect(part: ReportPart) -> dict[str, Any]:
    """The words of the main analysis, and the names of the others."""
    source, words = part.source, part.analysis["words"]
    return {
        "sentences": {key: words[key] for key in SENTENCES if words.get(key)},
        "sensitivity": [source.label("analyses", run.analysis) for run in part.runs[1:]],
        "data": {key: source.study["data"].get(key) for key in ("name", "start", "end")},
        "version": source.study["versions"].get("riskset"),
    }


def render(page: Page, content: Facts) -> Markup:
    """One paragraph."""
    say, data = page.say, content["data"]
    key = "methods.data_dates" if data["start"] and data["end"] else "methods.data"
    parts = [say("methods.design"), say(key, **data)]
    parts += [say(f"methods.{key}", words=words) for key, words in content["sentences"].items()]
    if page.about["has_competing"]:
        what = page.about["competing"] or say("question.coded_competing")
        parts.append(say("methods.competing", what=what))
    parts.append(say("methods.missing"))
    if content["sensitivity"]:
        parts.append(say("methods.sensitivity", names="; ".join(content["sensitivity"])))
    parts.append(say("methods.balance", threshold=short(page.about["threshold"])))
    if page.min_cell_count > 1:
        parts.append(say("methods.small", n=page.min_cell_count))
    parts.append(say("methods.software", version=content["version"] or ""))
    text = " ".join(_sentence(one) for one in parts)
    return page.section("methods", tag("p", spans_as_code(text)))


def _sentence(words: str) -> str:
    """With a capital and a full stop."""
    words = capital(words.strip())
    return words if words.endswith((".", "!", "?")) else f"{words}."
