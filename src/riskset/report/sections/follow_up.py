"""How long people were followed, and why follow-up ended."""

from collections.abc import Iterable
from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.figures.bars import ends_figure
from riskset.report.figures.histograms import follow_up_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import percent, whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, masks, record
from riskset.results.rows import FollowUpBinRow, FollowUpEndRow, FollowUpRow

__all__ = ["collect", "render"]

MEDIAN = 0.5


def collect(part: ReportPart) -> dict[str, Any]:
    """Quantiles, bins and reasons."""
    quantiles: dict[str, ReportRow] = {}
    entries: dict[str, ReportRow] = {}
    for row in part.read(FollowUpRow):
        of_arm = quantiles.setdefault(row.arm, {"arm": row.arm})
        of_arm[f"q{round(100 * row.share)}"] = row.days
        if row.entry_days is not None:
            entries.setdefault(row.arm, {"arm": row.arm})[f"q{round(100 * row.share)}"] = (
                row.entry_days
            )
        if row.share == MEDIAN:
            of_arm["potential"] = row.potential_days
    return {
        "tables": {
            "quantiles": [quantiles[arm] for arm in ARMS if arm in quantiles],
            "entries": [entries[arm] for arm in ARMS if arm in entries],
            "ends": _ends(part.read(FollowUpEndRow)),
            "histogram": _shares(part.read(FollowUpBinRow)),
        }
    }


def _ends(rows: Iterable[FollowUpEndRow]) -> list[ReportRow]:
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


def render(page: Page, content: Facts) -> Markup:
    """Figure, quantiles, reasons."""
    tables, words = content["tables"], page.about["time_at_risk"]
    has_bins = any(row["people"] for row in tables["histogram"])
    return page.section(
        "follow_up",
        page.paragraph("follow_up.words", words=words) if words else None,
        _histogram(page, tables["histogram"], tables["quantiles"]) if has_bins else None,
        _quantiles(page, tables["quantiles"]) if tables["quantiles"] else None,
        _quantiles(page, tables["entries"], "entries") if tables["entries"] else None,
        _potential(page, tables["quantiles"]),
        _reasons(page, tables["ends"]) if tables["ends"] else None,
        None if any(tables.values()) else page.paragraph("follow_up.none"),
    )


def _histogram(page: Page, rows: list[ReportRow], quantiles: list[ReportRow]) -> Markup:
    say = page.say
    bars = {
        arm: [(r["start"], r["end"], *2 * [r["share"] or 0.0]) for r in rows if r["arm"] == arm]
        for arm in ARMS
    }
    medians = {row["arm"]: row.get("q50") for row in quantiles}
    columns = [
        page.arm_column(),
        page.time_column("column.start", "start"),
        page.time_column("column.end", "end"),
        *page.columns(FollowUpBinRow, "people"),
        TableColumn(say("follow_up.share"), ("share",), percent),
    ]
    return page.figure(
        "follow_up",
        follow_up_figure(bars, page.arms, say, page.time_unit),
        page.table("histogram", say("follow_up.title"), columns, rows),
        t=page.duration(medians.get("target")),
        c=page.duration(medians.get("comparator")),
        end=page.duration(max(row["end"] for row in rows)),
    )


def _potential(page: Page, rows: list[ReportRow]) -> Markup | None:
    """The median follow-up that does not depend on who had the outcome, if both arms have it."""
    medians = {row["arm"]: row.get("potential") for row in rows}
    if any(medians.get(arm) is None for arm in ARMS):
        return None
    return page.paragraph(
        "follow_up.potential",
        t=page.duration(medians["target"]),
        c=page.duration(medians["comparator"]),
    )


def _quantiles(page: Page, rows: list[ReportRow], name: str = "quantiles") -> Markup:
    """Quantiles of days at risk, or of the days after which people come under observation."""
    # The minimum and the maximum are never shared.
    known = {key for row in rows for key, time in row.items() if time is not None}
    columns = [page.arm_column()]
    for key in rows[0]:
        if key not in ("arm", "potential") and key in known:
            title = page.say.label("quantile", key)
            columns.append(TableColumn(title, (key,), page.time))
    return page.table(name, page.say(f"follow_up.{name}"), columns, rows)


def _reasons(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    reasons = [say.label("end", row["reason"]) for row in rows]
    counts = {arm: [row.get(arm) for row in rows] for arm in ARMS}
    most = {
        arm: max(zip(counts[arm], reasons, strict=True), key=lambda pair: pair[0] or 0)[1]
        for arm in ARMS
    }
    columns = [
        TableColumn.text(say("ends.reason"), "reason", lambda r: say.label("end", r)),
        *(TableColumn(label, (arm,), whole) for arm, label in page.arms.items()),
    ]
    drawn = ends_figure(counts, reasons, page.arms, page.key("ends"))
    table = page.table("ends", say("ends.title"), columns, rows)
    return join(page.figure("ends", drawn, t=most["target"], c=most["comparator"]), table)
