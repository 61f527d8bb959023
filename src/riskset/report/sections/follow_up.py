"""How long people were followed, and why it ended."""

from collections.abc import Mapping
from typing import Any

from riskset.report.figures.bars import ends_figure
from riskset.report.figures.follow_up import histogram_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import short, significant, whole
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, ReportSource, masks, record
from riskset.results.rows import FollowUpBinRow, FollowUpEndRow, FollowUpRow

__all__ = ["collect", "render"]

ARMS = ("target", "comparator")


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Quantiles, bins and reasons."""
    quantiles: dict[str, ReportRow] = {}
    for row in source.of_run(FollowUpRow, part.main):
        of_arm = quantiles.setdefault(row.arm, {"arm": row.arm})
        of_arm[f"q{round(100 * row.share)}"] = row.days
    return {
        "tables": {
            "quantiles": [quantiles[arm] for arm in ARMS if arm in quantiles],
            "ends": _ends(source.of_run(FollowUpEndRow, part.main)),
            "histogram": _shares(source.of_run(FollowUpBinRow, part.main)),
        }
    }


def _ends(rows: list[FollowUpEndRow]) -> list[ReportRow]:
    reasons: dict[str, ReportRow] = {}
    for row in rows:
        shown = reasons.setdefault(row.reason, {"reason": row.reason, "suppressed": {}})
        shown[row.arm] = row.count
        for mask in masks(row).values():
            shown["suppressed"][row.arm] = mask
    return list(reasons.values())


def _shares(bins: list[FollowUpBinRow]) -> list[ReportRow]:
    """Bins as shares of those of their arm that are shown."""
    out = []
    for arm in ARMS:
        of_arm = [row for row in bins if row.arm == arm]
        total = sum(row.people or 0 for row in of_arm) or 1
        for row in of_arm:
            share = None if row.people is None else row.people / total
            out.append(record(row, ("arm", "start", "end", "people")) | {"share": share})
    return out


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """Figure, quantiles, ends."""
    say, tables = page.say, found["tables"]
    parts: list[Markup | None] = []
    if about["time_at_risk"]:
        parts.append(page.paragraph("follow_up.words", words=about["time_at_risk"]))
    if any(row["people"] for row in tables["histogram"]):
        parts.append(_histogram(page, tables, about))
    if tables["quantiles"]:
        parts.append(_quantiles(page, tables["quantiles"], about))
    if tables["ends"]:
        parts.append(_ends_figure(page, tables["ends"], about))
    if not any(tables.values()):
        parts.append(page.paragraph("follow_up.none"))
    return page.section("follow-up", say("section.follow_up"), *parts)


def _histogram(
    page: Page, tables: Mapping[str, list[ReportRow]], about: Mapping[str, Any]
) -> Markup:
    say, rows = page.say, tables["histogram"]
    names = {arm: about[arm] for arm in ARMS}
    bars = {
        arm: [(r["start"], r["end"], r["share"] or 0.0) for r in rows if r["arm"] == arm]
        for arm in ARMS
    }
    medians = {row["arm"]: row.get("q50") for row in tables["quantiles"]}
    desc = say(
        "follow_up.desc",
        target=names["target"],
        comparator=names["comparator"],
        t=significant(medians.get("target"), 4),
        c=significant(medians.get("comparator"), 4),
        days=whole(max(end for own in bars.values() for _, end, _ in own)),
    )
    title = say("follow_up.title")
    drawn = histogram_figure(bars, names, say, title, desc)
    columns = [
        TableColumn.text(say("result.arm"), "arm", lambda arm: names[arm]),
        TableColumn.number(say("proportional.after"), "start", 4),
        TableColumn.number(say("proportional.until"), "end", 4),
        TableColumn.count(say("result.people"), "people"),
        TableColumn.percent(say("follow_up.share"), "share"),
    ]
    data = page.table("histogram", title, columns, rows)
    return page.figure("follow-up", drawn, say("follow_up.caption"), data)


def _quantiles(page: Page, rows: list[ReportRow], about: Mapping[str, Any]) -> Markup:
    say = page.say
    # The minimum and the maximum are never shared.
    known = {key for row in rows for key, days in row.items() if days is not None}
    keys = [key for key in rows[0] if key != "arm" and key in known]
    columns = [TableColumn.text(say("result.arm"), "arm", lambda arm: about[arm])]
    for key in keys:
        title = say.label("quantile", key)
        columns.append(TableColumn(title, (key,), lambda v: short(v, 4)))
    return page.table("quantiles", say("follow_up.quantiles"), columns, rows)


def _ends_figure(page: Page, rows: list[ReportRow], about: Mapping[str, Any]) -> Markup:
    say = page.say
    names = {arm: about[arm] for arm in ARMS}
    reasons = [say.label("end", row["reason"]) for row in rows]
    counts = {arm: [row.get(arm) for row in rows] for arm in ARMS}
    most = {
        arm: max(zip(own, reasons, strict=True), key=lambda p: p[0] or 0)[1]
        for arm, own in counts.items()
    }
    desc = say(
        "follow_up.ends_desc",
        target=names["target"],
        t=most["target"],
        comparator=names["comparator"],
        c=most["comparator"],
    )
    key = page.key("ends")
    drawn = ends_figure(counts, reasons, names, key, say, say("follow_up.ends_title"), desc)
    columns = [
        TableColumn.text(say("follow_up.reason"), "reason", lambda r: say.label("end", r)),
        *(TableColumn.count(names[arm], arm) for arm in ARMS),
    ]
    table = page.table("ends", say("follow_up.ends_table"), columns, rows)
    return join(page.figure("ends", drawn, say("follow_up.ends_caption")), table)
