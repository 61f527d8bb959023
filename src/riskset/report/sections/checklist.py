"""Where the report answers the items of STROBE and of RECORD-PE, and what the authors must add.

The numbers are those of the published checklists: STROBE for cohort studies has 22 items, some in
parts (a), (b), ..., which are 34 rows (von Elm et al. 2007, doi:10.1016/S0140-6736(07)61602-X);
RECORD adds 13 items (Benchimol et al. 2015, doi:10.1371/journal.pmed.1001885), and RECORD-PE 15
(Langan et al. 2018, doi:10.1136/bmj.k3532).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from riskset.report.markup import Markup, join, tag
from riskset.report.page import Facts, Page, TableColumn
from riskset.report.source import ReportSource

__all__ = ["ITEMS", "collect", "render"]

GLOBAL = ("definitions", "provenance", "reproduction")
"""Places of the report that belong to no part."""
ITEMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "STROBE": {
        "1a": (), "1b": (), "2": (), "3": ("question",),
        "4": ("question", "target_trial"), "5": ("dates",),
        "6a": ("target_trial", "people"), "6b": ("matching",), "7": ("definitions", "question"),
        "8": ("definitions", "provenance"), "9": ("overlap", "balance", "controls", "unmeasured"),
        "10": ("result",), "11": (), "12a": ("methods", "models"), "12b": ("subgroups",),
        "12c": ("methods",), "12d": ("follow_up", "per_protocol"), "12e": ("sensitivity",),
        "13a": ("people",), "13b": ("people",), "13c": ("people",), "14a": ("characteristics",),
        "14b": ("characteristics",), "14c": ("follow_up",), "15": ("result",), "16a": ("result",),
        "16b": (), "16c": ("result", "curves"), "17": ("subgroups", "sensitivity"), "18": (),
        "19": (), "20": (), "21": ("generalisability",), "22": (),
    },
    "RECORD": {
        "1.1": (), "1.2": (), "1.3": (), "6.1": ("definitions",), "6.2": (), "6.3": (),
        "7.1": ("definitions",), "12.1": (), "12.2": (), "12.3": (), "13.1": ("people",),
        "19.1": (), "22.1": ("reproduction",),
    },
    "RECORD-PE": {
        "4.a": ("question", "target_trial"), "4.b": ("question",), "6.1.a": ("people",),
        "7.1.a": (), "7.1.b": ("provenance",),
        "7.1.c": ("question", "target_trial", "per_protocol"), "7.1.d": (), "7.1.e": (),
        "7.1.f": (), "7.1.g": (), "8.a": (),
        "12.1.a": ("overlap", "balance", "controls", "unmeasured", "models"), "12.1.b": (),
        "19.1.a": (), "20.a": (),
    },
}  # fmt: skip
"""Guideline -> item -> sections that answer it, or conditions of `_conditions`."""


def collect(source: ReportSource, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A row for each item, with the sections that the report has and that answer it."""
    conditions = _conditions(source)
    known = {*parts[0], *GLOBAL}
    if "balance" in parts[0]:
        known.add("generalisability")
    rows = []
    for guideline, items in ITEMS.items():
        for item, answers in items.items():
            names = [name for one in answers for name in conditions.get(one, (one,))]
            shown = [name for name in dict.fromkeys(names) if name in known]
            rows.append({"guideline": guideline, "item": item, "sections": shown})
    return {"tables": {"checklist": rows}}


def _conditions(source: ReportSource) -> dict[str, tuple[str, ...]]:
    """Sections that answer an item only in studies that have what it is about."""
    study = source.study
    data, settings = study["data"], study["settings"]
    analyses = settings.get("analyses") or {}
    is_matched = any(
        (one or {}).get("match") or (one or {}).get("coarsen") for one in analyses.values()
    )
    return {
        "dates": ("methods",) if data["start"] and data["end"] else (),
        "matching": ("methods", "target_trial") if is_matched else (),
        "subgroups": ("result",) if study["subgroups"] else (),
        "sensitivity": ("result", "methods") if len(study["analyses"]) > 1 else (),
    }


def render(page: Page, content: Facts, first: Page, file: str = "") -> Markup:
    """The table, with links to the sections of the first part, which may have its own file."""
    say, rows = page.say, content["tables"]["checklist"]

    def links(names: Sequence[str]) -> Markup | str:
        if not names:
            return say("checklist.authors")
        parts: list[object] = []
        for name in names:
            is_here = name in GLOBAL or not file
            place = (page if name in GLOBAL or file else first).key(name.replace("_", "-"))
            href = f"{'' if is_here else file}#{place}"
            parts += ["; ", tag("a", say(f"section.{name}"), href=href)]
        return join(*parts[1:])

    columns = [
        TableColumn.text(say("checklist.item"), "item"),
        TableColumn(
            say("checklist.topic"),
            ("guideline", "item"),
            lambda guideline, item: say(f"checklist_{_key(guideline)}.{item.replace('.', '_')}"),
            is_number=False,
        ),
        TableColumn(say("checklist.where"), ("sections",), links, is_number=False),
    ]
    table = page.table("checklist", say("checklist.caption"), columns, rows, sections="guideline")
    return page.section("checklist", page.paragraph("checklist.words"), table)


def _key(guideline: str) -> str:
    return guideline.lower().replace("-", "_")
