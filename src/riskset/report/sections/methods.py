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
from riskset.results.rows import (
    CurveTestRow,
    ModelledRiskRow,
    RemarkRow,
    RestrictedMeanRow,
    TimeEffectRow,
)

__all__ = ["collect", "render"]

SENTENCES = (
    "population", "washout", "time_at_risk", "contrast", "estimand", "propensity_score",
    "adjustment", "deviations", "model", "covariates",
)  # fmt: skip


def collect(part: ReportPart) -> dict[str, Any]:
    """The words of the main analysis, and the names of the others."""
    source, words = part.source, part.analysis["words"]
    return {
        "sentences": {key: words[key] for key in SENTENCES if words.get(key)},
        "sensitivity": [source.label("analyses", run.analysis) for run in part.runs[1:]],
        "data": {key: source.study["data"].get(key) for key in ("name", "start", "end")},
        "curve_tests": _curve_tests(part),
        "time_effect": next((row.function for row in part.read(TimeEffectRow)), None),
        "restricted_means": _restricted_means(part),
        "modelled_risks": _modelled_risks(part),
        "missing": _missing(source),
        "imputation": _imputation(source.study),
        "is_blind": source.study["blind"],
        "balance": _balance(part),
        "version": source.study["versions"].get("riskset"),
    }


def _curve_tests(part: ReportPart) -> dict[str, list[str]]:
    """The tests between adjusted curves by how they are adjusted."""
    found: dict[str, list[str]] = {}
    for row in part.read(CurveTestRow, adjusted=True):
        found.setdefault(f"{row.reading}_{row.variance}", []).append(row.test)
    return found


def _restricted_means(part: ReportPart) -> dict[str, Any] | None:
    """The horizons and the kind of the intervals of restricted means, if there are any."""
    rows = part.read(RestrictedMeanRow, adjusted=True, reading="marginal")
    if not rows:
        return None
    times = list(dict.fromkeys(row.time for row in rows))
    return {"times": times, "interval": rows[0].interval}


def _modelled_risks(part: ReportPart) -> list[dict[str, Any]]:
    """Of each kind of estimates by outcome models: times, models, population and intervals."""
    found: dict[str, dict[str, Any]] = {}
    for row in part.read(ModelledRiskRow):
        own = {name: row[name] for name in ("reading", "model", "estimand", "interval")}
        found.setdefault(row.reading, own | {"times": []})["times"].append(row.time)
    settings = part.analysis["settings"].get("model") or {}
    own = {name: settings.get(f"risk_{name}") for name in ("censoring", "penalty", "folds")}
    return [one | own for one in found.values()]


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


def _of_modelled_risks(page: Page, content: list[Facts]) -> list[str]:
    say, parts = page.say, []
    for one in content:
        parts.append(
            say(
                f"methods.modelled_{one['reading']}",
                times=say.listed([page.duration(time) for time in one["times"]]),
                model=say.label("model", one["model"]),
                population=say(f"methods.population_{one['estimand']}"),
                interval=say(f"methods.modelled_{one['interval']}_{one['reading']}"),
                censoring=say(f"methods.modelled_censoring_{one['censoring']}"),
            )
        )
        if one["reading"] == "doubly_robust" and one["penalty"] not in (None, "none"):
            parts.append(say("methods.modelled_penalty", penalty=one["penalty"].upper()))
        if one["reading"] == "doubly_robust" and one["folds"] is not None:
            parts.append(say("methods.modelled_folds", folds=one["folds"]))
    return parts


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
    for kind, tests in content["curve_tests"].items():
        names = say.listed([say(f"methods.curve_tests_{name}") for name in tests])
        how = say(f"methods.curve_tests_{kind}")
        parts.append(say("methods.curve_tests", tests=names, how=how))
    if content["time_effect"] is not None:
        function = say(f"time_effect.function_{content['time_effect']}")
        parts.append(say("methods.time_effect", function=function))
    means = content["restricted_means"]
    if means is not None:
        times = say.listed([page.duration(time) for time in means["times"]])
        kind = say(f"methods.restricted_means_{means['interval']}")
        parts.append(say("methods.restricted_means", times=times, interval=kind))
    parts += _of_modelled_risks(page, content["modelled_risks"])
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
