"""The main result: rates, hazard ratios, absolute risks, and what the study could detect."""

import math
from collections.abc import Mapping
from typing import Any

from riskset.report.figures.forest import ForestRow, forest
from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import capital, interval, percent, significant, whole
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, ReportSource, masks, record
from riskset.results.rows import ArmRow, EstimateRow, RiskRow, RunRow

__all__ = ["collect", "main_estimate", "render"]

YEAR = 365.25
ARMS = ("target", "comparator")
NUMBERS = (
    "role", "model", "reading", "subgroup", "level", "interaction_p", "status", "note",
    "hr", "hr_lower", "hr_upper", "se", "p", "interval", "calibrated_hr", "calibrated_hr_lower",
    "calibrated_hr_upper", "calibrated_se", "calibrated_p", "mdrr", "expected_se", "blinded",
    "target_outcomes", "comparator_outcomes", "informative_strata", "proportionality_p",
)  # fmt: skip
ORDER = {"crude": 0, "subgroup": 2}
"""Of roles; all others are between."""
OPTIONAL = ("calibrated_hr", "calibrated_p", "mdrr", "interaction_p")
"""Columns of the estimates that are left out if no row has anything to say in them."""
DIFFERENCE = ("difference", "difference_lower", "difference_upper")
THREE = 3.0
"""The rule of three: without events in n people, the risk is below 3 / n (95 %)."""


def main_estimate(source: ReportSource, part: ReportPart) -> EstimateRow | None:
    """The answer of the main analysis."""
    return next(iter(source.of_run(EstimateRow, part.main, role="main")), None)


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Tables of rates, estimates and risks."""
    rates = [_rates(source, row, arm) for row in source.of_run(ArmRow, part.main) for arm in ARMS]
    main = main_estimate(source, part)
    return {
        "tables": {
            "rates": rates,
            "estimates": _estimates(source, part),
            "risks": [_risk(row) for row in source.of_run(RiskRow, part.main)],
        },
        "mdrr": main and main.mdrr,
        "three": [
            _three(row)
            for row in rates
            if row["side"] == "after" and row["outcomes"] == 0 and row["persons"]
        ],
    }


def _rates(source: ReportSource, row: ArmRow, arm: str) -> ReportRow:
    counts = dict(vars(row.target_arm if arm == "target" else row.comparator_arm))
    days, hidden = counts.pop("days"), masks(row)
    return {
        "side": row.side,
        "side_label": source.say.label("side", row.side),
        "arm": arm,
        "label": source.label(f"{arm}s", row[arm]),
        "person_years": None if days is None else days / YEAR,
        **counts,
        "suppressed": {
            name: hidden[f"{arm}_{name}"] for name in counts if f"{arm}_{name}" in hidden
        },
    }


def _three(row: ReportRow) -> ReportRow:
    return {
        "arm": row["arm"],
        "label": row["label"],
        "persons": row["persons"],
        "risk_bound": THREE / row["persons"],
        "rate_bound": row["rate_upper"],
    }


def _estimates(source: ReportSource, part: ReportPart) -> list[ReportRow]:
    """All of the main analysis, then the answers of the others."""
    say, out = source.say, []
    for run in part.runs:
        name = source.label("analyses", run.analysis)
        estimates = source.of_run(EstimateRow, run)
        levels: dict[str | None, set[str]] = {}
        for row in estimates:
            levels.setdefault(row.subgroup, set()).add(str(row.level))
        for row in sorted(estimates, key=lambda row: row.number):
            is_main_run = run is part.main
            if not is_main_run and row.role != "main":
                continue
            label = capital(_label(source, row, levels))
            if not is_main_run:
                label = f"{say('result.other_analysis')}: {name}"
            out.append(
                {
                    "label": label,
                    "analysis": name,
                    "is_main": is_main_run and row.role == "main",
                    **record(row, NUMBERS),
                }
            )
        if not estimates and run is not part.main:
            out.append(_absent(name, run, say("result.other_analysis")))
    return sorted(out, key=lambda r: ORDER.get(r["role"], 1))


def _label(source: ReportSource, row: EstimateRow, levels: Mapping[str | None, set[str]]) -> str:
    """The name of an estimate; levels 0 and 1, if the subgroup has no others, are no and yes."""
    name, level = row.subgroup, row.level
    if name is None:
        return row.label
    if levels[name] == {"0", "1"}:
        level = source.say(f"word.{'yes' if str(level) == '1' else 'no'}")
    return f"{source.label('subgroups', name)}: {level}"


def _lacks_follow_up(row: RiskRow, arm: str) -> bool:
    """Whether the risk of an arm is unknown because follow-up of all people ended before."""
    is_empty = row[f"{arm}_risk"] is None and f"{arm}_risk" not in masks(row)
    return bool(is_empty and row[f"{arm}_at_risk"] == 0 and not row.blinded)


def _absent(name: str, run: RunRow, other: str) -> ReportRow:
    """An analysis that has no estimate, and the status that says why."""
    nothing = EstimateRow(role="main", status=run.status)
    about = {"label": f"{other}: {name}", "analysis": name, "is_main": False}
    return about | record(nothing, NUMBERS)


def _risk(row: RiskRow) -> ReportRow:
    """Risks at a time, with the number needed where the difference is not 0 for certain."""
    keys = [f"{a}_{b}" for a in ARMS for b in ("risk", "lower", "upper")]
    keys += [*DIFFERENCE, "time", "adjusted"]
    out = record(row, keys) | dict.fromkeys(("nnt", "nnt_lower", "nnt_upper"))
    low, value, high = row.difference_lower, row.difference, row.difference_upper
    if low is not None and high is not None and value and low * high > 0:
        out["nnt"] = math.ceil(1 / abs(value))
        ends = sorted(math.ceil(1 / abs(end)) for end in (low, high))
        out["nnt_lower"], out["nnt_upper"] = ends
    for arm in ARMS:
        if _lacks_follow_up(row, arm):
            names = (f"{arm}_risk", f"{arm}_lower", f"{arm}_upper", *DIFFERENCE)
            out["suppressed"] |= dict.fromkeys(names, "unfollowed")
    return out


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """Rates, forest plot, risks."""
    say, tables = page.say, found["tables"]
    return page.section(
        "result",
        say("section.result"),
        _render_rates(page, tables["rates"], about),
        *(
            page.paragraph(
                "result.three",
                arm=row["label"],
                n=whole(row["persons"]),
                risk=percent(row["risk_bound"], 2),
                rate=significant(row["rate_bound"]),
            )
            for row in found["three"]
        ),
        _render_estimates(page, tables["estimates"], found["mdrr"], about)
        if about["status"] == "ok"
        else _instead(page, found["mdrr"], about),
        _render_risks(page, tables["risks"], about),
    )


def _render_rates(page: Page, rows: list[ReportRow], about: Mapping[str, Any]) -> Markup:
    say = page.say
    if not rows:
        return page.paragraph("result.no_rates")
    rate = ("rate", "rate_lower", "rate_upper")
    columns = [
        TableColumn.text(say("result.arm"), "label"),
        TableColumn.count(say("result.people"), "persons"),
        TableColumn(say("result.person_years"), ("person_years",), lambda v: significant(v, 4)),
        TableColumn.count(say("result.outcomes"), "outcomes"),
        TableColumn.count(say("result.competing"), "competing"),
        TableColumn.interval(say("result.rate"), rate),
    ]
    if any(row["weighted_rate"] != row["rate"] for row in rows if row["side"] == "after"):
        weighted = ("weighted_rate", "weighted_rate_lower", "weighted_rate_upper")
        columns.append(TableColumn.interval(say("result.weighted_rate"), weighted))
    if not about["has_competing"]:
        columns = [c for c in columns if c.keys != ("competing",)]
    table = page.table("rates", say("result.rates"), columns, rows, sections="side_label")
    return join(page.heading(say("result.rates_heading"), "rates"), table)


def _render_estimates(
    page: Page, rows: list[ReportRow], mdrr: float | None, about: Mapping[str, Any]
) -> Markup:
    say = page.say
    heading = page.heading(say("result.estimates_heading"), "estimates")
    if not rows:
        return join(heading, page.paragraph("result.no_estimates"))
    drawn = forest(
        [r for row in rows for r in _forest_rows(page, row)],
        say,
        say("forest.title", **_names(about)),
    )
    columns = [
        TableColumn.text(say("forest.estimate"), "label"),
        TableColumn.text(say("result.model"), "model", lambda v: say.label("model", v)),
        TableColumn.interval(say("result.hr"), ("hr", "hr_lower", "hr_upper")),
        TableColumn.p(say("result.p"), "p"),
        TableColumn.interval(
            say("result.calibrated_hr"),
            ("calibrated_hr", "calibrated_hr_lower", "calibrated_hr_upper"),
        ),
        TableColumn.p(say("result.calibrated_p"), "calibrated_p"),
        TableColumn.count(say("result.target_outcomes"), "target_outcomes"),
        TableColumn.count(say("result.comparator_outcomes"), "comparator_outcomes"),
        TableColumn.number(say("result.mdrr"), "mdrr"),
        TableColumn.p(say("result.interaction_p"), "interaction_p"),
    ]
    empty = {key for key in OPTIONAL if all(row[key] is None for row in rows)}
    if len({row["model"] for row in rows} - {None}) < 2:  # other sections show it
        empty.add("model")
    columns = [c for c in columns if c.keys[0] not in empty]
    if any(row["status"] != "ok" for row in rows):
        columns.append(
            TableColumn.text(
                say("result.status"),
                "status",
                lambda v: "" if v == "ok" else say.label("instead", v),
            )
        )
    return join(
        heading,
        page.figure("forest", drawn, say("forest.caption")),
        page.table("estimates", say("result.estimates"), columns, rows, highlight="is_main"),
        _detectable(page, mdrr),
    )


def _instead(page: Page, mdrr: float | None, about: Mapping[str, Any]) -> Markup:
    """In the place of estimates, why there are none."""
    say = page.say
    reason = str(about["reason"] or say.label("status", about["status"])).rstrip(".")
    return join(
        page.heading(say("result.estimates_heading"), "estimates"),
        page.paragraph("result.instead", "warning", reason=reason),
        _detectable(page, mdrr),
    )


def _names(about: Mapping[str, Any]) -> dict[str, Any]:
    return {key: about[key] for key in ("target", "comparator", "outcome")}


def _detectable(page: Page, mdrr: float | None) -> Markup | None:
    if mdrr is None:
        return None
    if math.isinf(mdrr):
        return page.paragraph("result.mdrr_none")
    return page.paragraph("result.mdrr_words", mdrr=significant(mdrr), below=significant(1 / mdrr))


def _forest_rows(page: Page, row: ReportRow) -> list[ForestRow]:
    say = page.say
    label = row["label"]
    if row["interaction_p"] is not None:
        label = f"{label} ({say('result.interaction')} p = {significant(row['interaction_p'], 2)})"
    if row["blinded"]:
        instead = say("cell.withheld")
    elif "hr" in row["suppressed"]:
        instead = page.hidden("hidden")
    else:
        instead = say.label("instead", row["status"])
    kind = "main" if row["is_main"] else "other"
    rows = [ForestRow(label, row["hr"], row["hr_lower"], row["hr_upper"], row["se"], kind, instead)]
    if row["calibrated_hr"] is not None:
        ends = (row["calibrated_hr"], row["calibrated_hr_lower"], row["calibrated_hr_upper"])
        rows.append(ForestRow(say("result.calibrated"), *ends, row["calibrated_se"], "calibrated"))
    return rows


def _render_risks(page: Page, rows: list[ReportRow], about: Mapping[str, Any]) -> Markup | None:
    say = page.say
    if not rows:
        return None
    shown = [
        row
        | {
            "label": say("result.at", days=whole(row["time"])),
            "reading": say("side.after" if row["adjusted"] else "side.before"),
        }
        for row in rows
    ]
    columns = [
        TableColumn(
            say("result.time"), ("time",), lambda t: say("result.at", days=whole(t)), False
        ),
        *(
            TableColumn.interval(
                about[arm], (f"{arm}_risk", f"{arm}_lower", f"{arm}_upper"), percent
            )
            for arm in ARMS
        ),
        TableColumn.interval(
            say("result.difference"),
            ("difference", "difference_lower", "difference_upper"),
            percent,
        ),
        TableColumn(
            say("result.nnt"), ("nnt", "nnt_lower", "nnt_upper"),
            lambda *n: "" if n[0] is None else interval(*map(whole, n)),
        ),
    ]  # fmt: skip
    table = page.table("risks", say("result.risks"), columns, shown, sections="reading")
    note = [tag("p", say("result.nnt_words"), class_="note")] if any(r["nnt"] for r in rows) else []
    return join(page.heading(say("result.risks_heading"), "risks"), table, *note)
