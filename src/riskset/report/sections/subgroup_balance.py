"""Covariate balance within the levels of subgroups."""

from riskset.report.markup import Markup, join
from riskset.report.number_format import short, whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart
from riskset.results.rows import SubgroupBalanceRow

__all__ = ["collect_subgroups", "render_subgroups"]

WORST = 20


def collect_subgroups(part: ReportPart, threshold: float) -> dict[str, list[ReportRow]]:
    """A row for each level, and the covariates with the largest differences in any of them."""
    levels: dict[tuple[str, str], list[SubgroupBalanceRow]] = {}
    for row in part.adjusted(SubgroupBalanceRow):
        levels.setdefault((row.subgroup, row.level), []).append(row)
    worst = [
        _names(part, row) | {"name": row.name, "before": row.before_smd, "after": row.after_smd}
        for rows in levels.values()
        for row in rows
        if row.after_smd is not None
    ]
    worst.sort(key=lambda row: (-abs(row["after"]), row["name"], row["subgroup"], row["level"]))
    return {
        "subgroups": [_summary(part, rows, threshold) for rows in levels.values()],
        "worst_in_subgroups": worst[:WORST],
    }


def _names(part: ReportPart, row: SubgroupBalanceRow) -> ReportRow:
    return {"subgroup": part.source.label("subgroups", row.subgroup), "level": row.level}


def _summary(part: ReportPart, rows: list[SubgroupBalanceRow], threshold: float) -> ReportRow:
    """The largest differences of a level, of the covariates that are shown."""
    after = [row for row in rows if row.after_smd is not None]
    before = [abs(row.before_smd) for row in rows if row.before_smd is not None]
    largest = max(after, key=lambda row: abs(row.after_smd or 0.0), default=None)
    return _names(part, rows[0]) | {
        "n": len(after),
        "hidden": sum("after_smd" in row.suppressed for row in rows),
        "before": max(before, default=None),
        "after": None if largest is None else abs(largest.after_smd or 0.0),
        "name": None if largest is None else largest.name,
        "above": sum(abs(row.after_smd or 0.0) > threshold for row in after),
    }


def render_subgroups(page: Page, tables: Facts, threshold: float) -> Markup | None:
    """Both tables."""
    say, rows, worst = page.say, tables["subgroups"], tables["worst_in_subgroups"]
    if not rows:
        return None
    limit = short(threshold)
    names = [
        TableColumn.text(say("subgroup_balance.level"), "level"),
        TableColumn(say("subgroup_balance.n"), ("n",), whole),
        TableColumn(say("subgroup_balance.hidden"), ("hidden",), whole),
        TableColumn.number(say("subgroup_balance.before"), "before"),
        TableColumn.number(say("subgroup_balance.after"), "after"),
        TableColumn.text(say("subgroup_balance.largest"), "name"),
        TableColumn(say("subgroup_balance.above", threshold=limit), ("above",), whole),
    ]
    single = [
        TableColumn.text(say("column.name"), "name"),
        TableColumn.text(say("subgroup_balance.subgroup"), "subgroup"),
        TableColumn.text(say("subgroup_balance.level"), "level"),
        TableColumn.number(say("side.before"), "before"),
        TableColumn.number(say("side.after"), "after"),
    ]
    title = say("subgroup_balance.worst", n=len(worst))
    return join(
        page.heading(say("subgroup_balance.heading"), "subgroup-balance"),
        page.paragraph("subgroup_balance.words", "note"),
        page.table("subgroups", say("subgroup_balance.caption"), names, rows, sections="subgroup"),
        page.details(title, page.table("worst_in_subgroups", title, single, worst))
        if worst
        else None,
    )
