"""References, settings, code lists, remarks, times and a glossary, once for all outcomes."""

import json
from collections.abc import Mapping
from typing import Any

from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import significant
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportSource, record
from riskset.results.rows import ConceptRow, RemarkRow

__all__ = ["collect", "render"]

REFERENCES = {
    "fine": "10.1080/01621459.1999.10474144",
    "schoenfeld": "10.2307/2531021",
    "grambsch": "10.1093/biomet/81.3.515",
    "xie": "10.1002/sim.2174",
    "walker": "10.2147/CER.S40357",
    "austin": "10.1080/00273171.2011.568786",
    "schuemie2014": "10.1002/sim.5925",
    "schuemie2018": "10.1073/pnas.1708282114",
    "hripcsak": "10.1002/sim.70212",
    "strobe": "10.1016/S0140-6736(07)61602-X",
    "record": "10.1136/bmj.k3532",
}
GLOSSARY = ("hazard_ratio", "equipoise", "smd", "ease", "calibration", "competing")


def collect(source: ReportSource) -> dict[str, Any]:
    """What a reader needs to repeat the study."""
    study, run = source.study, source.run
    return {
        "settings": study["settings"],
        "settings_hash": study["settings_hash"],
        "versions": study["versions"],
        "seconds": run["seconds"],
        "tables": {
            "sources": [
                {key: one.get(key) for key in ("name", "rows", "fingerprint")}
                for one in study["data"].get("sources") or []
            ],
            "codes": [record(row) for row in source.read(ConceptRow)],
            "warnings": [record(row) for row in source.read(RemarkRow)],
            "steps": [
                {key: one.get(key) for key in ("step", "what", "seconds", "reused")}
                for one in run["steps"]
            ],
        },
    }


def render(page: Page, found: Mapping[str, Any]) -> Markup:
    """Everything that repeats the study."""
    say = page.say
    return page.section(
        "reproduction",
        say("section.reproduction"),
        _reproduction(page, found),
        page.heading(say("methods.references"), "references"),
        _references(page),
        page.heading(say("methods.glossary"), "glossary"),
        page.card((say(f"glossary.{key}"), say(f"glossary.{key}_words")) for key in GLOSSARY),
    )


def _references(page: Page) -> Markup:
    items = []
    for key, doi in REFERENCES.items():
        link = tag("a", f"doi:{doi}", href=f"https://doi.org/{doi}", rel="noreferrer")
        items.append(tag("li", page.say(f"reference.{key}"), " ", link))
    return tag("ul", *items, class_="refs")


def _reproduction(page: Page, found: Mapping[str, Any]) -> Markup:
    say, tables = page.say, found["tables"]
    text = json.dumps(found["settings"], indent=1, ensure_ascii=False)
    parts = [page.paragraph("methods.hash", hash=found["settings_hash"])]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    parts.append(page.paragraph("methods.versions", versions=versions))
    parts.append(_behind(say("methods.settings"), tag("pre", text)))
    columns = [
        TableColumn.text(say("methods.source"), "name"),
        TableColumn.count(say("methods.rows"), "rows"),
        TableColumn.text(say("methods.fingerprint"), "fingerprint"),
    ]
    if tables["sources"]:
        parts.append(
            _behind(
                say("methods.sources"),
                page.table("sources", say("methods.sources"), columns, tables["sources"]),
            )
        )
    if tables["codes"]:
        parts.append(_behind(say("methods.codes"), _codes(page, tables["codes"])))
    if tables["warnings"]:
        columns = [
            TableColumn.text(say("methods.step"), "step"),
            TableColumn.message(say("methods.message"), "message"),
            TableColumn.count(say("methods.count"), "count"),
        ]
        parts.append(page.table("warnings", say("methods.warnings"), columns, tables["warnings"]))
    else:
        parts.append(page.paragraph("methods.no_warnings"))
    if tables["steps"]:
        columns = [
            TableColumn.text(say("methods.step"), "step"),
            TableColumn.text(say("methods.what"), "what"),
            TableColumn.number(say("methods.seconds"), "seconds"),
        ]
        steps = page.table("steps", say("methods.steps"), columns, tables["steps"])
        total = say("methods.total", seconds=significant(found["seconds"]))
        parts.append(_behind(f"{say('methods.steps')} ({total})", steps))
    return join(*parts)


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
    return page.table("codes", say("methods.codes"), columns, rows)


def _behind(summary: str, content: Markup) -> Markup:
    return tag("details", tag("summary", summary), content)
