"""Settings, code lists, warnings, times, references and a glossary, once for all outcomes."""

import json
from dataclasses import replace
from typing import Any

from riskset.cohort.effects.effect_scale import SCALES
from riskset.report.markup import Markup, tag
from riskset.report.number_format import significant, whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.sections.definitions import collect_definitions, render_definitions
from riskset.report.sections.remarks import collect_remarks, render_remarks
from riskset.report.source import ReportSource, record
from riskset.results.rows import ConceptRow, EstimateRow, RunRow

__all__ = ["collect", "render"]

REFERENCES = (
    "fine", "schoenfeld", "vanderweele", "lin", "lipsitch", "grambsch", "xie", "royston",
    "andersen", "makuch", "bai", "walker", "austin", "schuemie2014", "schuemie2018", "hripcsak",
    "strobe", "record", "record_pe",
)  # fmt: skip
GLOSSARY = (
    "restricted_mean", "equipoise", "smd", "ease", "calibration", "competing",
)  # fmt: skip


def collect(source: ReportSource) -> dict[str, Any]:
    """What a reader needs to repeat the study."""
    study, run = source.study, source.run
    return {
        "settings": study["settings"],
        "origin": _collect_origin(source),
        "seconds": run["seconds"],
        "is_cloned": any(row.cloned for row in source.read(RunRow)),
        "n_outcomes": len(study["outcomes"]),
        "scales": sorted({SCALES[row.model] for row in source.read(EstimateRow)}),
        "tables": {
            "sources": [
                {key: one.get(key) for key in ("name", "rows", "fingerprint")}
                for one in study["data"].get("sources") or []
            ],
            "definitions": collect_definitions(source),
            "codes": [record(row) for row in source.read(ConceptRow)],
            "warnings": collect_remarks(source),
            "steps": [
                {key: one.get(key) for key in ("step", "what", "seconds", "reused")}
                for one in run["steps"]
            ],
        },
    }


def _references(content: Facts) -> list[str]:
    """Those of every report, and those of the adjustments of this study."""
    found = list(REFERENCES)
    for analysis in (content["settings"].get("analyses") or {}).values():
        match, weight = analysis.get("match") or {}, analysis.get("weight") or {}
        uses = {
            "hansen": match.get("method") == "full",
            "cafri": match.get("replacement"),
            "rubin": match.get("mahalanobis"),
            "iacus": analysis.get("coarsen"),
            "hainmueller": weight.get("method") == "entropy",
            "imai": weight.get("method") == "cbps",
            "robins": analysis.get("estimand") == "per-protocol",
            "hernan": analysis.get("estimand") == "per-protocol",
            "maringe": content["is_cloned"],
        }
        found += [key for key, is_used in uses.items() if is_used and key not in found]
    return found


def _collect_origin(source: ReportSource) -> dict[str, str]:
    """Facts of the data, of the programs and of the settings, as far as they are known."""
    data = source.study["data"]
    facts = {"name": data["name"], "description": data["description"]}
    if data["start"] and data["end"]:
        facts["dates"] = source.say("page.dates", start=data["start"], end=data["end"])
    facts |= data.get("cdm_source") or {}
    versions = source.study["versions"].items()
    facts["versions"] = ", ".join(f"{name} {version}" for name, version in versions)
    facts["settings_hash"] = source.study["settings_hash"]
    return {key: str(value) for key, value in facts.items() if value}


def render(page: Page, content: Facts) -> Markup:
    """Everything that repeats the study."""
    scales = content["scales"]
    words = page.say.ratio(scales[0] if len(scales) == 1 else "mixed") if scales else {}
    page = replace(page, say=page.say.about({**page.say.names, **words}))
    say, tables = page.say, content["tables"]
    settings = tag("pre", json.dumps(content["settings"], indent=1, ensure_ascii=False))
    return page.section(
        "reproduction",
        page.details(say("methods.settings"), settings),
        render_definitions(
            page, tables["definitions"], _codes(page, tables["codes"]) if tables["codes"] else None
        ),
        page.heading(say("section.provenance"), "provenance"),
        _origin(page, content["origin"]),
        _sources(page, tables["sources"]) if tables["sources"] else None,
        page.heading(say("methods.warnings"), "warnings"),
        render_remarks(page, tables["warnings"], content["n_outcomes"]),
        _steps(page, tables["steps"], content["seconds"]) if tables["steps"] else None,
        page.heading(say("methods.references"), "references"),
        tag("ul", *(_reference(page, key) for key in _references(content)), class_="refs"),
        page.heading(say("methods.glossary"), "glossary"),
        page.card(
            (say(f"glossary.{key}"), say(f"glossary.{key}_words"))
            for key in (*(f"{scale}_ratio" for scale in content["scales"]), *GLOSSARY)
        ),
    )


def _origin(page: Page, origin: Facts) -> Markup:
    """Where the data and the numbers come from."""
    return page.card((page.say(f"provenance.{key}"), value) for key, value in origin.items())


def _reference(page: Page, key: str) -> Markup:
    text, doi = page.say(f"reference.{key}").split(" doi:")
    link = tag("a", f"doi:{doi}", href=f"https://doi.org/{doi}", rel="noreferrer")
    return tag("li", text, " ", link)


def _sources(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    columns = [
        TableColumn.text(say("methods.source"), "name"),
        TableColumn(say("methods.rows"), ("rows",), whole),
        TableColumn.text(say("methods.fingerprint"), "fingerprint"),
    ]
    title = say("methods.sources")
    return page.details(title, page.table("sources", title, columns, rows))


def _codes(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    columns = [
        TableColumn.text(say("methods.list"), "list"),
        TableColumn.text(say("methods.concept"), "concept_id"),
        TableColumn.text(say("methods.name"), "name"),
        TableColumn.text(say("methods.vocabulary"), "vocabulary"),
        TableColumn.text(
            say("methods.use"),
            "excluded",
            lambda v: say("methods.excluded" if v else "methods.included"),
        ),
    ]
    title = say("methods.codes")
    return page.details(title, page.table("codes", title, columns, rows))


def _steps(page: Page, rows: list[ReportRow], seconds: float) -> Markup:
    say = page.say
    columns = [
        TableColumn.text(say("methods.step"), "step"),
        TableColumn.text(say("methods.what"), "what"),
        TableColumn.number(say("methods.seconds"), "seconds"),
    ]
    total = say("methods.total", seconds=significant(seconds))
    table = page.table("steps", say("methods.steps"), columns, rows)
    return page.details(f"{say('methods.steps')} ({total})", table)
