"""How long people were followed, and why it ended."""

from collections.abc import Mapping
from typing import Any

from riskset.report.figures.bars import ends_figure
from riskset.report.figures.curves import time_ticks
from riskset.report.figures.lines import followed_figure
from riskset.report.markup import Markup, join
from riskset.report.numerals import percent, significant, whole
from riskset.report.page import Column, Page
from riskset.report.source import Part, Source

__all__ = ["collect", "render"]

Row = dict[str, Any]
ARMS = ("target", "comparator")


def collect(source: Source, part: Part) -> dict[str, Any]:
    """Quantiles, reasons, and the shares still followed."""
    quantiles: dict[str, Row] = {}
    shares = source.of_run("follow_up", part.main)
    for row in shares:
        own = quantiles.setdefault(row["arm"], {"arm": row["arm"]})
        own[_key(row["share"])] = row["days"]
    at_risk = source.of_run("numbers_at_risk", part.main, adjusted=True)
    return {
        "tables": {
            "quantiles": [quantiles[arm] for arm in ARMS if arm in quantiles],
            "ends": _ends(source.of_run("follow_up_ends", part.main)),
            "followed": _followed(at_risk, shares),
        }
    }


def _key(share: float) -> str:
    return f"q{round(100 * share)}"


def _ends(rows: list[Row]) -> list[Row]:
    reasons: dict[str, Row] = {}
    for row in rows:
        own = reasons.setdefault(row["reason"], {"reason": row["reason"], "suppressed": {}})
        own[row["arm"]] = row["count"]
        if "count" in row["suppressed"]:
            own["suppressed"][row["arm"]] = row["suppressed"]["count"]
    return list(reasons.values())


def _followed(at_risk: list[Row], quantiles: list[Row]) -> list[Row]:
    """Share of each arm still under observation: as counted at some times, and by the quantiles."""
    out = []
    for arm in ARMS:
        own = sorted((r for r in at_risk if r["arm"] == arm), key=lambda r: r["time"])
        start = own[0]["people"] if own else None
        points = [
            {"arm": arm, "time": r["time"], "people": r["people"], "share": r["people"] / start}
            for r in own
            if start and r["people"] is not None
        ]
        points += [
            {"arm": arm, "time": r["days"], "people": None, "share": 1 - r["share"]}
            for r in quantiles
            if r["arm"] == arm and r["days"] is not None
        ]
        out += sorted(points, key=lambda r: (r["time"], -r["share"]))
    return out


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """Figure, quantiles, ends."""
    say, tables = page.say, found["tables"]
    parts: list[Markup | None] = []
    if about["time_at_risk"]:
        parts.append(page.paragraph("follow_up.words", words=about["time_at_risk"]))
    if tables["followed"]:
        parts.append(_followed_figure(page, tables["followed"], about))
    if tables["quantiles"]:
        parts.append(_quantiles(page, tables["quantiles"], about))
    if tables["ends"]:
        parts.append(_ends_figure(page, tables["ends"], about))
    if not any(tables.values()):
        parts.append(page.paragraph("follow_up.none"))
    return page.section("follow-up", say("section.follow_up"), *parts)


def _followed_figure(page: Page, rows: list[Row], about: Mapping[str, Any]) -> Markup:
    say = page.say
    names = {arm: about[arm] for arm in ARMS}
    shares = {arm: [(r["time"], r["share"]) for r in rows if r["arm"] == arm] for arm in ARMS}
    last = max(r["time"] for r in rows)
    ticks, unit, unit_name = time_ticks(last)
    ends = {
        arm: say("follow_up.end", arm=names[arm], share=percent(own[-1][1]), days=whole(own[-1][0]))
        for arm, own in shares.items()
        if own
    }
    desc = say("follow_up.desc", ends=say.listed(list(ends.values())))
    drawn = followed_figure(
        shares, ticks, (unit, unit_name), names, say, say("follow_up.title"), desc
    )
    columns = [
        Column.text(say("result.arm"), "arm", lambda arm: names[arm]),
        Column.number(say("axis.days"), "time", 4),
        Column.count(say("result.people"), "people"),
        Column.percent(say("follow_up.share"), "share"),
    ]
    data = page.table("followed", say("follow_up.followed_table"), columns, rows)
    return page.figure("follow-up", drawn, say("follow_up.caption"), data)


def _quantiles(page: Page, rows: list[Row], about: Mapping[str, Any]) -> Markup:
    say = page.say
    keys = [key for key in rows[0] if key != "arm"]
    columns = [Column.text(say("result.arm"), "arm", lambda arm: about[arm])]
    for key in keys:
        title = say.label("quantile", key)
        columns.append(Column(title, (key,), lambda v: significant(v, 4)))
    return page.table("quantiles", say("follow_up.quantiles"), columns, rows)


def _ends_figure(page: Page, rows: list[Row], about: Mapping[str, Any]) -> Markup:
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
        Column.text(say("follow_up.reason"), "reason", lambda r: say.label("end", r)),
        *(Column.count(names[arm], arm) for arm in ARMS),
    ]
    table = page.table("ends", say("follow_up.ends_table"), columns, rows)
    return join(page.figure("ends", drawn, say("follow_up.ends_caption")), table)
