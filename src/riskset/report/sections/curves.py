"""Risks over time by arm, and outcomes by week before and after the index date."""

from bisect import bisect_right
from typing import Any

from riskset._time_units import TimeUnit
from riskset.disclosure.rows import ARMS
from riskset.report.figures.curves import ends_of, risk_curves, time_axis
from riskset.report.figures.lines import weeks_figure
from riskset.report.markup import Markup
from riskset.report.number_format import differs, p_with_sign, percent, significant, whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, masks, record
from riskset.report.svg import thin
from riskset.results.rows import AtRiskRow, CurveRow, CurveTestRow, WeekRow

__all__ = ["collect", "render"]

MOST_TICKS = 8
OF_TEST = ("adjusted", "test", "reading", "statistic", "p")
MOST_HIDDEN = 0.25
"""Of the weeks with outcomes of an arm, if they are to be drawn."""


def collect(part: ReportPart) -> dict[str, Any]:
    """Points of the curves, as risks or survival; people at risk at the ticks; outcomes by week."""
    rows, asked_for = part.read(CurveRow), part.source.curves
    kind = rows[0].kind if rows else None
    # With competing events, 1 less the incidence is not a survival probability.
    shown = "survival" if asked_for == kind == "survival" else "risk"
    content = [_thinned(curve, shown) for curve in _curves(rows, shown)]
    last = max((c["time"][-1] for c in content), default=0.0)
    at_risk = part.read(AtRiskRow, adjusted=True)
    times = _tick_times(at_risk, last, part.source.time_unit)
    weeks = _weeks(part.read(WeekRow))
    return {
        "kind": kind,
        "shown": shown,
        "asked_for": asked_for,
        "curves": content,
        "last": last,
        "tables": {
            "at_risk": _at_ticks(at_risk, times),
            "risks": _values_at(content, times, shown),
            "tests": _shown_tests(part.read(CurveTestRow)),
            "weeks": _until_last_outcome(weeks),
        },
        "weeks_hidden": any(_is_mostly_hidden(weeks, arm) for arm in ARMS),
    }


def _shown_tests(tests: list[CurveTestRow]) -> list[ReportRow]:
    """Tests that are not withheld; those before adjustment come first, as in other tables."""
    order = sorted(tests, key=lambda row: row.adjusted)
    return [record(row, OF_TEST) for row in order if not row.blinded]


def _curves(rows: list[CurveRow], shown: str) -> list[ReportRow]:
    """Every curve as lists; the adjusted first, then by cause, the target first."""
    curves: dict[tuple[Any, ...], ReportRow] = {}
    for row in rows:
        key = {"adjusted": row.adjusted, "cause": row.cause, "arm": row.arm}
        lists: dict[str, list[float | None]] = {
            name: [] for name in ("time", shown, "lower", "upper")
        }
        curve = curves.setdefault(tuple(key.values()), {**key, **lists})
        values = [row.value, row.lower, row.upper]
        if row.kind == "survival" and shown == "risk":
            values = [None if v is None else 1 - v for v in (row.value, row.upper, row.lower)]
        for name, value in zip(lists, [row.time, *values], strict=True):
            curve[name].append(value)
    order = sorted(curves, key=lambda key: (not key[0], key[1], key[2] != "target"))
    return [curves[key] for key in order]


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


def _tick_times(at_risk: list[AtRiskRow], last: float, unit: TimeUnit) -> list[float]:
    """Times of which the numbers at risk are known, a handful, as round as they come."""
    known = sorted({row.time for row in at_risk if row.time <= last})
    wanted = time_axis(last, unit)[0] if last > 0 else []
    exact = [t for t in wanted if t in known]
    if len(exact) >= 3 or not known:
        return exact or wanted
    if len(known) <= MOST_TICKS:
        return known
    step = -(-len(known) // MOST_TICKS)
    return known[::step]


def _at_ticks(rows: list[AtRiskRow], times: list[float]) -> list[ReportRow]:
    """A row for each time, with people and effective numbers of both arms."""
    out = []
    for time in times:
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
                k = bisect_right(curve["time"], time) - 1
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


def _until_last_outcome(rows: list[ReportRow]) -> list[ReportRow]:
    """Without the last weeks, if there are no outcomes or hidden ones in them."""
    known = [k for k, row in enumerate(rows) if any(row.get(f"{arm}_rate") for arm in ARMS)]
    return rows[: known[-1] + 1] if known else []


def render(page: Page, content: Facts) -> Markup:
    """The figure of risks, and that of weeks."""
    return page.section(
        "curves",
        _risks(page, content) if content["curves"] else page.paragraph("curves.none"),
        _tests(page, content["tables"]["tests"]) if content["curves"] else None,
        page.paragraph("weeks.hidden", "note", n=page.min_cell_count)
        if content["weeks_hidden"]
        else _weeks_figure(page, content["tables"]["weeks"]),
    )


def _panel_title(page: Page, cause: int) -> str:
    if cause == 1:
        return str(page.about["outcome"])
    what = page.about["competing"]
    return page.say("curves.competing", what=what) if what else page.say("column.competing")


def _risks(page: Page, content: Facts) -> Markup:
    say, tables, shown = page.say, content["tables"], content["shown"]
    panels = []
    for cause in sorted({c["cause"] for c in content["curves"]}):
        curves = [c for c in reversed(content["curves"]) if c["cause"] == cause]
        panels.append((_panel_title(page, cause), curves))
    rows = tables["at_risk"]
    ticks = [row["time"] for row in rows] or time_axis(content["last"], page.time_unit)[0]
    numbers = _numbers(page, rows)
    drawn = risk_curves(
        panels, numbers, ticks, content["last"], page.arms, say, shown, page.time_unit
    )
    more = []
    if content["asked_for"] != shown:
        more.append(say("curves.caption_no_survival"))
    if ends_of(panels[0][1], shown)[0] > 0:
        more.append(say("curves.caption_axis"))
    if any(not c["adjusted"] for c in content["curves"]):
        more.append(say("curves.caption_crude"))
    more += _p_values(page, tables["tests"])
    more.append(say("curves.caption_end", n=page.min_cell_count))
    columns = [TableColumn(say("axis.time"), ("time",), page.time, False)]
    for arm, label in page.arms.items():
        keys = (f"{arm}_{shown}", f"{arm}_lower", f"{arm}_upper")
        columns.append(TableColumn.interval(label, keys, percent))
    group = f"{shown}_curves"
    return page.figure(
        group,
        drawn,
        page.table("risks", say(f"{group}.table"), columns, tables["risks"]),
        name="curves",
        more=" ".join(more),
        text=say("curves.incidence" if len(panels) > 1 else f"{group}.method"),
        at_end=_at_end(page, tables["risks"], shown),
    )


def _p_values(page: Page, tests: list[ReportRow]) -> list[str]:
    """A sentence with the p values of the adjusted curves, as far as they are known."""
    known = []
    for row in tests:
        if row["adjusted"] and row["p"] is not None:
            test, p = page.say.label("curve_tests", row["test"]), p_with_sign(row["p"])
            known.append(page.say("curves.p", test=test, p=p))
    return [page.say("curves.caption_tests", tests=page.say.listed(known))] if known else []


def _tests(page: Page, tests: list[ReportRow]) -> Markup | None:
    """All tests, before and after adjustment."""
    if not tests:
        return None
    say = page.say
    columns = [
        TableColumn.text(say("curve_tests.test"), "test", lambda v: say.label("curve_tests", v)),
        TableColumn.text(say("curve_tests.reading"), "reading", lambda v: say.label("reading", v)),
        *page.columns(CurveTestRow, "statistic", "p", statistic="curve_tests.statistic"),
    ]
    sides = {True: say("side.after"), False: say("side.before")}
    shown = [row | {"side": sides[row["adjusted"]]} for row in tests]
    return page.table("tests", say("curve_tests.table"), columns, shown, sections="side")


def _numbers(page: Page, rows: list[ReportRow]) -> list[tuple[str, list[str]]]:
    """Lines under the axis: people of each arm, and effective numbers if they differ."""
    out = []
    for arm, label in page.arms.items():
        out.append((label, [page.shown(row, f"{arm}_people") for row in rows]))
        if any(differs(row.get(f"{arm}_effective"), row.get(f"{arm}_people")) for row in rows):
            effective = [page.shown(row, f"{arm}_effective") for row in rows]
            out.append((page.say("curves.effective", arm=label), effective))
    return out


def _at_end(page: Page, rows: list[ReportRow], shown: str) -> str:
    """Risks or survival at the last tick at which both are known."""
    keys = {arm[0]: f"{arm}_{shown}" for arm in ARMS}
    known = [row for row in rows if all(row.get(key) is not None for key in keys.values())]
    if not known:
        return page.say(f"{shown}_curves.title")
    values = {letter: percent(known[-1][key]) for letter, key in keys.items()}
    return page.say(f"{shown}_curves.at_end", time=page.duration(known[-1]["time"]), **values)


def _weeks_figure(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    if not rows:
        return page.paragraph("weeks.none", "note")
    weeks = {arm: [(row["week"], row.get(f"{arm}_rate")) for row in rows] for arm in ARMS}
    rates = [rate for of_arm in weeks.values() for _, rate in of_arm if rate is not None]
    columns = [TableColumn(say("weeks.week"), ("week",), whole)]
    for arm, label in page.arms.items():
        columns += [
            TableColumn(say("weeks.people"), (f"{arm}_people",), whole, group=label),
            TableColumn(say("weeks.events"), (f"{arm}_events",), whole, group=label),
            TableColumn.number(say("weeks.rate"), f"{arm}_rate", group=label),
        ]
    has_hidden = any(row["suppressed"] for row in rows)
    return page.figure(
        "weeks",
        weeks_figure(weeks, page.arms, say),
        page.table("weeks", say("weeks.table"), columns, rows),
        more=say("weeks.caption_hidden", n=page.min_cell_count) if has_hidden else "",
        rate=significant(max(rates, default=None)),
    )
