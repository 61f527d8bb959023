"""The main result: rates, hazard ratios, absolute risks, and what the study could detect."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from riskset._time_units import DAYS_A_YEAR
from riskset.cohort.effects.effect_scale import scale_of
from riskset.disclosure.arms import E_VALUES
from riskset.disclosure.rows import ARMS
from riskset.report.figures.forest import ForestRow, forest
from riskset.report.markup import Markup, join
from riskset.report.number_format import MISSING, capital, interval, percent, significant, whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.sections import modelled_risks, restricted_means
from riskset.report.source import ReportPart, masks, record
from riskset.results.column_groups import ArmColumns
from riskset.results.rows import ArmRow, EstimateRow, RiskRow

__all__ = ["collect", "forest_rows", "render"]

NUMBERS = (
    "role", "contrast", "model", "reading", "subgroup", "level", "interaction_p", "status", "note",
    "hr", "hr_lower", "hr_upper", "se", "p", "interval", "calibrated_hr", "calibrated_hr_lower",
    "calibrated_hr_upper", "calibrated_se", "calibrated_p", "mdrr", "expected_se", "blinded",
    "target_outcomes", "comparator_outcomes", "target_exposures", "comparator_exposures",
    "informative_strata", "proportionality_p",
    "n_imputations", "fraction_missing",
)  # fmt: skip
ORDER = {"crude": 0, "subgroup": 2}
"""Of roles; all others are between."""
OPTIONAL = ("calibrated_hr", "calibrated_p", "mdrr", "interaction_p", "fraction_missing")
"""Columns of the estimates that are left out if all rows are empty."""
GROUPS = {
    "outcomes": ("target_outcomes", "comparator_outcomes"),
    "calibrated": ("calibrated_hr", "calibrated_p"),
}
"""Headings of columns of the estimates -> the columns that share them."""
DIFFERENCE = ("difference", "difference_lower", "difference_upper")
NEEDED = ("nnt", "nnt_lower", "nnt_upper")
"""Numbers needed to treat (positive) or to harm (negative), of the difference and its limits."""
THREE = 3.0
"""The rule of three: without events in n people, the risk is below 3 / n (95 %)."""


def collect(part: ReportPart) -> dict[str, Any]:
    """Tables of rates, estimates and risks."""
    rates = [_rates(part, row, arm) for row in part.read(ArmRow) for arm in ARMS]
    main = part.estimate
    return {
        "tables": {
            "rates": rates,
            "estimates": _estimates(part),
            "risks": [_risk(row) for row in part.read(RiskRow)],
        },
        "mdrr": main and main.mdrr,
        "modelled_risks": modelled_risks.collect(part),
        "restricted_means": restricted_means.collect(part),
        "e_value": main and {name: main[name] for name in E_VALUES},
        "three": [
            {key: row[key] for key in ("arm", "label", "persons")}
            | {"risk_bound": THREE / row["persons"], "rate_bound": row["rate_upper"]}
            for row in rates
            if row["side"] == "after" and row["outcomes"] == 0 and row["persons"]
        ],
    }


def _rates(part: ReportPart, row: ArmRow, arm: str) -> ReportRow:
    counts = dict(vars(row.target_arm if arm == "target" else row.comparator_arm))
    days, hidden = counts.pop("days"), masks(row)
    return {
        "side": row.side,
        "side_label": part.source.say.label("side", row.side),
        "arm": arm,
        "label": part.label(arm),
        "person_years": None if days is None else days / DAYS_A_YEAR,
        **counts,
        "suppressed": {
            name: hidden[f"{arm}_{name}"] for name in counts if f"{arm}_{name}" in hidden
        },
    }


def _estimates(part: ReportPart) -> list[ReportRow]:
    """All of the main analysis, then the answers of the others."""
    source, out = part.source, []
    for run in part.runs:
        is_main_run = run is part.main
        analysis = source.label("analyses", run.analysis)
        other = f"{source.say('result.other_analysis')}: {analysis}"
        contrast = source.study["analyses"][run.analysis]["settings"].get("estimand")
        if contrast is not None:
            other = f"{other} ({source.say.label('contrast', contrast)})"
        estimates = sorted(part.read(EstimateRow, run), key=lambda row: row.number)
        levels: dict[str | None, set[str]] = {}
        for row in estimates:
            levels.setdefault(row.subgroup, set()).add(str(row.level))
        if not estimates and not is_main_run:  # the status says why
            estimates = [EstimateRow(role="main", status=run.status)]
        for row in estimates:
            if is_main_run or row.role == "main":
                about = {
                    "label": capital(_label(part, row, levels)) if is_main_run else other,
                    "analysis": analysis,
                    "is_main": is_main_run and row.role == "main",
                }
                out.append(about | record(row, NUMBERS))
    return sorted(out, key=lambda r: ORDER.get(r["role"], 1))


def _label(part: ReportPart, row: EstimateRow, levels: Mapping[str | None, set[str]]) -> str:
    """The name of an estimate; levels 0 and 1, if the subgroup has no others, are no and yes."""
    name, level = row.subgroup, row.level
    if name is None:
        return row.label
    if levels[name] == {"0", "1"}:
        level = part.source.say(f"word.{'yes' if str(level) == '1' else 'no'}")
    return f"{part.source.label('subgroups', name)}: {level}"


def _risk(row: RiskRow) -> ReportRow:
    """Risks at a time, with the number needed to treat or to harm.

    Where the interval of the difference has 0 inside, that of the number goes through infinity,
    from one sign to the other (Altman 1998).
    """
    keys = [f"{a}_{b}" for a in ARMS for b in ("risk", "lower", "upper")]
    keys += [*DIFFERENCE, "time", "adjusted"]
    out = record(row, keys) | dict.fromkeys(NEEDED)
    low, value, high = row.difference_lower, row.difference, row.difference_upper
    if low is not None and high is not None and value is not None:
        out |= zip(NEEDED, map(_number_needed, (value, low, high)), strict=True)
    for arm in ARMS:
        if _lacks_follow_up(row, arm):
            names = (f"{arm}_risk", f"{arm}_lower", f"{arm}_upper", *DIFFERENCE)
            out["suppressed"] |= dict.fromkeys(names, "unfollowed")
    return out


def _number_needed(difference: float) -> float:
    """People treated for one outcome fewer, or with a minus sign for one more; rounded up."""
    size = math.ceil(1 / abs(difference)) if difference else math.inf
    return -size if difference > 0 else size


def _lacks_follow_up(row: RiskRow, arm: str) -> bool:
    """Whether the risk of an arm is unknown because follow-up of all people ended before."""
    is_empty = row[f"{arm}_risk"] is None and f"{arm}_risk" not in masks(row)
    return bool(is_empty and row[f"{arm}_at_risk"] == 0 and not row.blinded)


def render(page: Page, content: Facts) -> Markup:
    """Rates, forest plot, risks."""
    tables = content["tables"]
    three = [
        page.paragraph(
            "result.three",
            arm=row["label"],
            n=whole(row["persons"]),
            risk=percent(row["risk_bound"], 2),
            rate=significant(row["rate_bound"]),
        )
        for row in content["three"]
    ]
    return page.section(
        "result",
        _rates_table(page, tables["rates"]),
        *three,
        *_render_estimates(page, tables["estimates"]),
        *_e_value(page, content["e_value"]),
        _detectable(page, content["mdrr"]),
        _risks_table(page, tables["risks"]),
        modelled_risks.render(page.under("modelled_risks"), content["modelled_risks"]),
        restricted_means.render(page.under("restricted_means"), content["restricted_means"]),
    )


def _rates_table(page: Page, rows: list[ReportRow]) -> Markup:
    say = page.say
    if not rows:
        return page.paragraph("result.no_rates")
    competing = ["competing"] if page.about["has_competing"] else []
    names = ["persons", "outcomes", *competing, "rate"]
    if any(row["weighted_rate"] != row["rate"] for row in rows):
        names.append("weighted_rate")
    columns = [
        TableColumn.text(say("column.arm"), "label"),
        *page.columns(ArmColumns, *names),
    ]
    columns.insert(2, TableColumn.number(say("result.person_years"), "person_years", 4))
    table = page.table("rates", say("result.rates"), columns, rows, sections="side_label")
    return join(page.heading(say("result.rates_heading"), "rates"), table)


def _render_estimates(page: Page, rows: list[ReportRow]) -> list[Markup]:
    """The estimates below a heading that names what they are ratios of."""
    is_ok = page.about["status"] == "ok"
    if rows and is_ok:
        scale = scale_of(row["model"] for row in rows if row["model"])
        page = replace(page, say=page.say.about({**page.say.names, **page.say.ratio(scale)}))
    heading = page.heading(page.say("result.estimates_heading"), "estimates")
    if not is_ok:
        return [heading, page.paragraph("result.instead", "warning", reason=page.reason)]
    return [heading, _estimates_figure(page, rows)]


def _estimates_figure(page: Page, rows: list[ReportRow]) -> Markup:
    """The forest plot, and its numbers as a table."""
    say = page.say
    if not rows:
        return page.paragraph("result.no_estimates")
    empty = {key for key in OPTIONAL if all(row[key] is None for row in rows)}
    names = (
        "hr", "p", "calibrated_hr", "calibrated_p", "target_outcomes", "comparator_outcomes",
        "mdrr", "interaction_p", "fraction_missing",
    )  # fmt: skip
    groups = {name: group for group, own in GROUPS.items() for name in own}
    columns = [
        column
        for name in names
        if name not in empty
        for column in page.columns(
            EstimateRow,
            name,
            group=say(f"column.{groups[name]}") if name in groups else None,
            **{name: f"column.of_{name}" for name in groups},
        )
    ]
    if len({row["model"] for row in rows} - {None}) > 1:  # else other sections show it
        columns.insert(
            0, TableColumn.text(say("column.model"), "model", lambda v: say.label("model", v))
        )
    columns = [*page.columns(EstimateRow, "label"), *columns]
    if any(row["status"] != "ok" for row in rows):
        columns.append(
            TableColumn.text(
                say("result.status"),
                "status",
                lambda v: "" if v == "ok" else say.label("instead", v),
            )
        )
    shown = [r for row in rows for r in forest_rows(page, row)]
    main = next((r.words for r in shown if r.kind == "main"), MISSING)
    n_imputations = max((row["n_imputations"] or 0 for row in rows), default=0)
    return join(
        page.figure("forest", forest(shown, say), n=sum(r.is_known for r in shown), main=main),
        page.table("estimates", say("result.estimates"), columns, rows, highlight="is_main"),
        page.paragraph("result.pooled", "note", n=n_imputations) if n_imputations else None,
    )


def _e_value(page: Page, found: Facts | None) -> list[Markup]:
    """How strong an unmeasured confounder has to be, and what the number does not say."""
    if found is None or found["e_value"] is None:
        return []
    limit = found["e_value_limit"]
    key = {True: "_inside", False: ""}[limit == 1] if limit is not None else "_alone"
    words = {"value": significant(found["e_value"]), "limit": significant(limit or 1)}
    common = ["result.e_value_common"] if found["e_value_common"] else []
    return [
        page.paragraph(f"result.e_value{key}", **words),
        *(page.paragraph(key, "note") for key in (*common, "result.e_value_not")),
    ]


def _detectable(page: Page, mdrr: float | None) -> Markup | None:
    if mdrr is None:
        return None
    if math.isinf(mdrr):
        return page.paragraph("result.mdrr_none")
    return page.paragraph("result.mdrr_words", mdrr=significant(mdrr), below=significant(1 / mdrr))


def forest_rows(page: Page, row: ReportRow) -> list[ForestRow]:
    """The lines of an estimate in a forest plot: itself, and its calibrated form."""
    say = page.say
    label = row["label"]
    if row["interaction_p"] is not None:
        p = significant(row["interaction_p"], 2)
        label = f"{label} ({say('result.interaction', p=p)})"
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


def _risks_table(page: Page, rows: list[ReportRow]) -> Markup | None:
    say = page.say
    if not rows:
        return None
    sides = {True: say("side.after"), False: say("side.before")}
    shown = [row | {"side": sides[row["adjusted"]]} for row in rows]
    columns = [
        TableColumn(say("result.time"), ("time",), page.duration, False),
        *(
            TableColumn.interval(label, (f"{arm}_risk", f"{arm}_lower", f"{arm}_upper"), percent)
            for arm, label in page.arms.items()
        ),
        *page.columns(RiskRow, "difference"),
        TableColumn(
            say("result.nnt"), NEEDED, lambda *numbers: _needed_words(page, *numbers)
        ),
    ]  # fmt: skip
    return join(
        page.heading(say("result.risks_heading"), "risks"),
        page.table("risks", say("result.risks"), columns, shown, sections="side"),
        page.paragraph("result.nnt_words", "note") if any(r["nnt"] for r in rows) else None,
    )


def _needed_words(page: Page, value: float | None, lower: float | None, upper: float | None) -> str:
    """The number with its name; so are the limits, where they have different ones."""
    if value is None or lower is None or upper is None:
        return ""

    def named(n: float) -> str:
        size = "∞" if math.isinf(n) else whole(abs(n))
        return page.say("result.needed_harm" if n < 0 else "result.needed_treat", n=size)

    if (lower < 0) == (upper < 0) or math.isinf(upper):
        ends = sorted((abs(lower), abs(upper)))
        sizes = ("∞" if math.isinf(n) else whole(n) for n in ends)
        return interval(named(value), *sizes)
    # A lower difference is a benefit.
    first, last = (upper, lower) if value < 0 else (lower, upper)
    return f"{named(value)} ({named(first)} {page.say('result.through', first='∞')} {named(last)})"
