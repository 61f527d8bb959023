"""Risks over time by arm, and outcomes by week before and after the index date."""

from collections.abc import Mapping
from typing import Any

from riskset.report.figures.curves import RiskCurve, risk_curves, survival_ends, time_ticks
from riskset.report.figures.lines import weeks_figure
from riskset.report.markup import Markup
from riskset.report.number_format import MISSING, percent, significant, whole
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, ReportSource, masks
from riskset.report.svg import thin
from riskset.results.rows import AtRiskRow, CurveRow, WeekRow

__all__ = ["collect", "render"]

ARMS = ("target", "comparator")
MOST_TICKS = 8
MOST_HIDDEN = 0.25
"""Of the weeks with outcomes of an arm, if they are to be drawn."""


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Points of the curves, as risks or survival; people at risk at the ticks; outcomes by week."""
    rows = source.of_run(CurveRow, part.main)
    kind = rows[0].kind if rows else None
    # With competing events, 1 less the incidence is not a survival probability.
    shown = "survival" if source.curves == kind == "survival" else "risk"
    curves: dict[tuple[Any, ...], ReportRow] = {}
    for row in rows:
        key = (row.adjusted, row.cause, row.arm)
        curve = curves.setdefault(
            key,
            dict(zip(("adjusted", "cause", "arm"), key, strict=True))
            | {name: [] for name in ("time", shown, "lower", "upper")},
        )
        flip = row.kind == "survival" and shown == "risk"
        values = (row.value, row.lower, row.upper)
        value, lower, upper = (None if v is None else 1 - v if flip else v for v in values)
        if flip:
            lower, upper = upper, lower
        point = {"time": row.time, shown: value, "lower": lower, "upper": upper}
        for name, coordinate in point.items():
            curve[name].append(coordinate)
    found = [
        _thinned(curves[key], shown)
        for key in sorted(curves, key=lambda k: (not k[0], k[1], k[2] != "target"))
    ]
    last = max((c["time"][-1] for c in found), default=0.0)
    at_risk = source.of_run(AtRiskRow, part.main, adjusted=True)
    weeks = _weeks(source.of_run(WeekRow, part.main))
    return {
        "kind": kind,
        "shown": shown,
        "asked_for": source.curves,
        "curves": found,
        "last": last,
        "tables": {
            "at_risk": _at_ticks(at_risk, last),
            "risks": _values_at(found, _tick_times(at_risk, last), shown),
            "weeks": _until_nothing_is_told(weeks),
        },
        "weeks_hidden": any(_is_mostly_hidden(weeks, arm) for arm in ARMS),
    }


def _thinned(curve: ReportRow, shown: str) -> ReportRow:
    """At most 1000 points, from time 0 on, when nobody has had the outcome."""
    names = ("time", shown, "lower", "upper")
    if curve["time"][0] > 0:
        for name in names:
            curve[name].insert(0, 1.0 if shown == "survival" and name != "time" else 0.0)
    columns = [curve[shown]]
    # Ends that are not known (where nothing has happened) are those of the value.
    for name in ("lower", "upper"):
        ends = zip(curve[name], curve[shown], strict=True)
        curve[name] = [value if end is None else end for end, value in ends]
        columns.append(curve[name])
    kept = thin(columns, max(map(max, columns)) - min(map(min, columns)))
    return curve | {name: [curve[name][k] for k in kept] for name in names}


def _tick_times(at_risk: list[AtRiskRow], last: float) -> list[float]:
    """Times of which the numbers at risk are known, a handful, as round as they come."""
    known = sorted({row.time for row in at_risk if row.time <= last})
    wanted = time_ticks(last)[0] if last > 0 else []
    exact = [t for t in wanted if t in known]
    if len(exact) >= 3 or not known:
        return exact or wanted
    if len(known) <= MOST_TICKS:
        return known
    step = -(-len(known) // MOST_TICKS)
    return known[::step]


def _at_ticks(rows: list[AtRiskRow], last: float) -> list[ReportRow]:
    """A row for each time, with people and effective numbers of both arms."""
    out = []
    for time in _tick_times(rows, last):
        tick: ReportRow = {"time": time, "suppressed": {}}
        for row in rows:
            if row.time == time:
                hidden = masks(row)
                for name in ("people", "effective"):
                    tick[f"{row.arm}_{name}"] = row[name]
                    if name in hidden:
                        tick["suppressed"][f"{row.arm}_{name}"] = hidden[name]
        out.append(tick)
    return out


def _values_at(curves: list[ReportRow], times: list[float], shown: str) -> list[ReportRow]:
    """The adjusted curves of the outcome at the ticks."""
    out = []
    for time in times:
        row: ReportRow = {"time": time}
        for curve in curves:
            if curve["adjusted"] and curve["cause"] == 1 and time <= curve["time"][-1]:
                k = max(j for j, t in enumerate(curve["time"]) if t <= time)
                for name in (shown, "lower", "upper"):
                    row[f"{curve['arm']}_{name}"] = curve[name][k]
        out.append(row)
    return out


def _weeks(rows: list[WeekRow]) -> list[ReportRow]:
    """A row for each week, with outcomes per 1000 people of both arms."""
    weeks: dict[int, ReportRow] = {}
    for row in rows:
        week = weeks.setdefault(row.week, {"week": row.week, "suppressed": {}})
        arm, hidden = row.arm, masks(row)
        week[f"{arm}_events"], week[f"{arm}_people"] = row.events, row.people
        is_known = row.events is not None and row.people
        week[f"{arm}_rate"] = 1000 * (row.events or 0) / (row.people or 1) if is_known else None
        for name in hidden:
            week["suppressed"][f"{arm}_{name}"] = hidden[name]
        if hidden:
            week["suppressed"][f"{arm}_rate"] = "hidden"
    return [weeks[number] for number in sorted(weeks)]


def _is_mostly_hidden(rows: list[ReportRow], arm: str) -> bool:
    """Whether so many weeks with outcomes have no line that the others would seem to jump."""
    hidden = sum(f"{arm}_events" in row["suppressed"] for row in rows)
    shown = sum(bool(row.get(f"{arm}_events")) for row in rows)
    return hidden > MOST_HIDDEN * (hidden + shown)


def _until_nothing_is_told(rows: list[ReportRow]) -> list[ReportRow]:
    """Without the last weeks, if there are no outcomes or hidden ones in them."""
    told = [k for k, row in enumerate(rows) if any(row.get(f"{arm}_rate") for arm in ARMS)]
    return rows[: told[-1] + 1] if told else []


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """The figure of risks, and that of weeks."""
    say = page.say
    curves = _risks(page, found, about) if found["curves"] else page.paragraph("curves.none")
    return page.section(
        "curves",
        say("section.curves"),
        curves,
        page.paragraph("weeks.hidden", "note", n=page.min_cell_count)
        if found["weeks_hidden"]
        else _render_weeks(page, found["tables"]["weeks"], about),
    )


def _panel_title(page: Page, cause: int, about: Mapping[str, Any]) -> str:
    if cause == 1:
        return str(about["outcome"])
    what = about["competing"]
    return page.say("curves.competing", what=what) if what else page.say("result.competing")


def _risks(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    say, tables, shown = page.say, found["tables"], found["shown"]
    names = {arm: about[arm] for arm in ARMS}
    panels = []
    for cause in sorted({c["cause"] for c in found["curves"]}):
        own = [
            RiskCurve(
                c["arm"],
                c["time"],
                c[shown],
                c["lower"] if c["adjusted"] else [],
                c["upper"] if c["adjusted"] else [],
                c["adjusted"],
            )
            for c in reversed(found["curves"])
            if c["cause"] == cause
        ]  # fmt: skip
        panels.append((_panel_title(page, cause, about), own))
    rows = tables["at_risk"]
    ticks = [row["time"] for row in rows] or time_ticks(found["last"])[0]
    drawn = risk_curves(
        panels,
        _numbers(page, rows, names),
        ticks,
        found["last"],
        names,
        say,
        say(f"curves.title_{shown}", outcome=about["outcome"]),
        _desc(page, tables["risks"], about, shown),
        shown == "survival",
    )
    kind = "competing" if len(panels) > 1 else shown
    caption = [say(f"curves.caption_{kind}")]
    if found["asked_for"] != shown:
        caption.append(say("curves.caption_no_survival"))
    if shown == "survival" and survival_ends(panels[0][1])[0] > 0:
        caption.append(say("curves.caption_axis"))
    if any(not c["adjusted"] for c in found["curves"]):
        caption.append(say("curves.caption_crude"))
    caption.append(say("curves.caption_end", n=page.min_cell_count))
    columns = [TableColumn(say("axis.days"), ("time",), lambda t: significant(t, 4), False)]
    for arm in ARMS:
        keys = (f"{arm}_{shown}", f"{arm}_lower", f"{arm}_upper")
        columns.append(TableColumn.interval(names[arm], keys, percent))
    data = page.table("risks", say(f"curves.table_{shown}"), columns, tables["risks"])
    return page.figure("curves", drawn, " ".join(caption), data)


def _numbers(
    page: Page, rows: list[ReportRow], names: Mapping[str, str]
) -> list[tuple[str, list[str]]]:
    """Lines under the axis: people of each arm, and effective numbers if they differ."""
    out = []
    for arm in ARMS:
        for name in ("people", "effective"):
            key = f"{arm}_{name}"
            if name == "effective" and all(_same(row, arm) for row in rows):
                continue
            shown = []
            for row in rows:
                mask = row["suppressed"].get(key)
                shown.append(page.hidden(mask) if mask else whole(row.get(key)))
            label = names[arm] if name == "people" else page.say("curves.effective", arm=names[arm])
            out.append((label, shown))
    return out


def _same(row: ReportRow, arm: str) -> bool:
    people, effective = row.get(f"{arm}_people"), row.get(f"{arm}_effective")
    return effective is None or people is None or abs(people - effective) < 0.5


def _desc(page: Page, rows: list[ReportRow], about: Mapping[str, Any], shown: str) -> str:
    """Risks or survival at the last tick at which both are known."""
    known = [r for r in rows if all(r.get(f"{arm}_{shown}") is not None for arm in ARMS)]
    if not known:
        return page.say(f"curves.title_{shown}", outcome=about["outcome"])
    row = known[-1]
    return page.say(
        f"curves.desc_{shown}",
        days=significant(row["time"], 4),
        target=about["target"],
        comparator=about["comparator"],
        t=percent(row[f"target_{shown}"]),
        c=percent(row[f"comparator_{shown}"]),
    )


def _render_weeks(page: Page, rows: list[ReportRow], about: Mapping[str, Any]) -> Markup | None:
    say = page.say
    if not rows:
        return page.paragraph("weeks.none", "note")
    names = {arm: about[arm] for arm in ARMS}
    weeks = {arm: [(row["week"], row.get(f"{arm}_rate")) for row in rows] for arm in ARMS}
    most = max((r for own in weeks.values() for _, r in own if r is not None), default=None)
    desc = say("weeks.desc", rate=MISSING if most is None else significant(most))
    drawn = weeks_figure(weeks, names, say, say("weeks.title", outcome=about["outcome"]), desc)
    columns = [TableColumn.count(say("weeks.week"), "week")]
    for arm in ARMS:
        columns += [
            TableColumn.count(say("weeks.people"), f"{arm}_people", names[arm]),
            TableColumn.count(say("weeks.events"), f"{arm}_events", names[arm]),
            TableColumn(say("weeks.rate"), (f"{arm}_rate",), significant, group=names[arm]),
        ]
    data = page.table("weeks", say("weeks.table"), columns, rows)
    caption = say("weeks.caption")
    if any(row["suppressed"] for row in rows):
        caption = f"{caption} {say('weeks.caption_hidden', n=page.min_cell_count)}"
    return page.figure("weeks", drawn, caption, data)
