"""How exposures and outcomes are found in the data: concepts of a CDM, columns of a table."""

from collections.abc import Iterator, Mapping
from typing import Any

from riskset.report.markup import Markup, join
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportSource

__all__ = ["collect_definitions", "render_definitions"]

MOST_DEFINITIONS = 5000


def collect_definitions(source: ReportSource) -> list[ReportRow]:
    """A row for each exposure, outcome, control and kind of competing event."""
    settings, study = source.study["settings"], source.study
    data = settings.get("data", {})
    treatment = data.get("treatment")
    cohort = "cohort" if data.get("cohort_definitions") is None else "cohort_defined"
    rows: list[ReportRow] = []
    for name, one in (settings.get("exposures") or {}).items():
        roles = [role for role in ("target", "comparator") if name in study[f"{role}s"]]
        rows.append(
            {"name": name, "label": one.get("label") or name, "role": " ".join(roles)}
            | {"definition": list(_exposure(one, treatment, cohort))}
        )
    for group in ("outcomes", "competing_events"):
        for name, one in (settings.get(group) or {}).items():
            role = "competing" if group == "competing_events" else one.get("kind", "outcome")
            rows.append(
                {"name": name, "label": one.get("label") or name, "role": role.replace(" ", "_")}
                | {"definition": list(_outcome(one, cohort))}
            )
    return rows


def _exposure(one: Mapping[str, Any], treatment: str | None, cohort: str) -> Iterator[list[str]]:
    if "value" in one:
        yield ["value", str(treatment), str(one["value"])]
    else:
        yield from _codes(one, cohort)


def _outcome(one: Mapping[str, Any], cohort: str) -> Iterator[list[str]]:
    """Pairs of what is said and its values."""
    if "time" in one:
        yield ["time", str(one["time"])]
        yield ["event", str(one["event"])]
        if one.get("prior"):
            yield ["prior", str(one["prior"])]
        return
    if one.get("death"):
        yield ["death"]
        return
    yield from _codes(one, cohort)
    if one.get("tables"):
        yield ["tables", ", ".join(one["tables"])]
    if one.get("inpatient"):
        yield ["inpatient"]
    if one.get("first"):
        yield ["first"]


def _codes(one: Mapping[str, Any], cohort: str) -> Iterator[list[str]]:
    if one.get("cohort") is not None:
        yield [cohort, str(one["cohort"])]
    elif one.get("definition"):
        yield ["cohort_definition", str(one["definition"])]
    elif one.get("concept_set"):
        yield ["concept_set", str(one["concept_set"])]
    elif one.get("concepts"):
        key = "concepts" if one.get("descendants", True) else "concepts_alone"
        yield [key, str(len(one["concepts"]))]


def render_definitions(page: Page, rows: list[ReportRow], codes: Markup | None) -> Markup:
    """The table of definitions, and the list of concepts."""
    say = page.say

    def words(definition: list[list[str]]) -> str:
        said = [say(f"definitions.{key}", *values) for key, *values in definition]
        return "; ".join(said)

    columns = [
        TableColumn.text(say("definitions.name"), "label"),
        TableColumn.text(say("definitions.role"), "role", lambda v: _role(page, v)),
        TableColumn(say("definitions.definition"), ("definition",), words, is_number=False),
    ]
    title = say("section.definitions")
    table = page.table("definitions", title, columns, rows, most=MOST_DEFINITIONS)
    return join(page.heading(title, "definitions"), table if rows else None, codes)


def _role(page: Page, role: str) -> str:
    return ", ".join(page.say.label("role", one) for one in role.split(" ") if one)
