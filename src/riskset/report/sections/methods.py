"""Methods in words that a paper can take over."""

from collections.abc import Mapping
from typing import Any

from riskset._settings import as_dict
from riskset._time_units import DAYS_IN
from riskset.imputation.settings import Imputation
from riskset.report.markup import Markup, spans_as_code, tag
from riskset.report.number_format import capital, short
from riskset.report.page import Facts, Page
from riskset.report.source import ReportPart, ReportSource
from riskset.results.rows import RemarkRow, RestrictedMeanRow

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
        "restricted_means": _restricted_means(part),
        "missing": _missing(source),
        "imputation": _imputation(source.study),
        "is_blind": source.study["blind"],
        "balance": _balance(part),
        "version": source.study["versions"].get("riskset"),
    }


def _restricted_means(part: ReportPart) -> dict[str, Any] | None:
    """The horizons and the kind of the intervals of restricted means, if there are any."""
    rows = part.read(RestrictedMeanRow, adjusted=True)
    if not rows:
        return None
    times = list(dict.fromkeys(row.time for row in rows))
    return {"times": times, "interval": rows[0].interval}


def _imputation(study: Mapping[str, Any]) -> dict[str, Any]:
    """How missing values are imputed, if that is asked for."""
    settings = study["settings"]
    own = settings.get("data", {}).get("covariates", {}).get("impute") or {}
    return {**as_dict(Imputation()), **own, "seed": settings.get("seed")}


def _missing(source: ReportSource) -> list[str]:
    """What was done with missing values: of columns of a table, and of records."""
    study = source.study
    settings = study["settings"].get("data", {}).get("covariates", {})
    has_records = study["data"]["kind"] == "omop" or settings.get("table") is not None
    has_columns = study["data"]["kind"] != "omop" and (
        not has_records or settings.get("columns") is not None
    )
    rule = settings.get("missing", "error")
    if rule == "impute" and not any(row.code == "imputed" for row in source.read(RemarkRow)):
        rule = "error"  # there was nothing to impute
    return ["absent"] * has_records + [rule] * has_columns


def _balance(part: ReportPart) -> dict[str, Any] | None:
    """The limit of balance and how it was applied, if balance was measured."""
    adjustment = part.adjustment
    if adjustment is None or adjustment.n_covariates is None or adjustment.threshold is None:
        return None
    alpha = (part.analysis["settings"].get("balance") or {}).get("alpha")
    return {"threshold": adjustment.threshold, "alpha": alpha}


def render(page: Page, content: Facts) -> Markup:
    """One paragraph."""
    say, data = page.say, content["data"]
    key = "methods.data_dates" if data["start"] and data["end"] else "methods.data"
    parts = [say("methods.design"), say(key, **data)]
    parts += [say(f"methods.{key}", words=words) for key, words in content["sentences"].items()]
    if page.time_unit != "days":
        parts.append(say("methods.time_unit", days=short(DAYS_IN[page.time_unit], 6)))
    if page.about["has_competing"]:
        what = page.about["competing"] or say("question.coded_competing")
        parts.append(say("methods.competing", what=what))
    means = content["restricted_means"]
    if means is not None:
        times = say.listed([page.duration(time) for time in means["times"]])
        kind = say(f"methods.restricted_means_{means['interval']}")
        parts.append(say("methods.restricted_means", times=times, interval=kind))
    how = content["imputation"]
    parts += [say(f"methods.missing_{rule}", **how) for rule in content["missing"]]
    if content["sensitivity"]:
        parts.append(say("methods.sensitivity", names="; ".join(content["sensitivity"])))
    if content["balance"] is not None:
        limit, alpha = content["balance"]["threshold"], content["balance"]["alpha"]
        key = "methods.balance" if alpha is None else "methods.balance_by_significance"
        parts.append(say(key, threshold=short(limit), alpha=short(alpha)))
    if content["is_blind"]:
        parts.append(say("methods.blind"))
    if page.min_cell_count > 1:
        parts.append(say("methods.small", n=page.min_cell_count))
    parts.append(say("methods.software", version=content["version"] or ""))
    text = " ".join(_sentence(one) for one in parts)
    return page.section("methods", tag("p", spans_as_code(text)))


def _sentence(words: str) -> str:
    """With a capital and a full stop."""
    words = capital(words.strip())
    return words if words.endswith((".", "!", "?")) else f"{words}."
