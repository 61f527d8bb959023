"""Per-protocol analyses: who deviates from the treatment and when, and the weights that follow."""

from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.figures.staying import staying_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import capital, whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, record
from riskset.results.rows import (
    AtRiskRow,
    CensoringWeightRow,
    DeviationRow,
    EstimateRow,
    RunRow,
)

__all__ = ["collect", "render"]

PER_PROTOCOL = "per-protocol"
WEIGHTS = ("mean", "sd", "p0", "p1", "p50", "p99", "p100")
ESTIMATES = ("role", "label", "status", "hr", "hr_lower", "hr_upper", "p")
ENDS = ("p0", "p100")
"""Weights of single people, which results that are shared never have."""


def collect(part: ReportPart) -> dict[str, Any] | None:
    """The analyses of this outcome whose estimand is per-protocol; None if there are none."""
    analyses = part.source.study["analyses"]
    runs = [
        run
        for run in part.runs
        if analyses[run.analysis]["settings"].get("estimand") == PER_PROTOCOL
    ]
    if not runs:
        return None
    has_strategies = part.main.cloned
    return {"has_strategies": has_strategies, "analyses": [_of_run(part, run) for run in runs]}


def _of_run(part: ReportPart, run: RunRow) -> dict[str, Any]:
    described = part.source.study["analyses"][run.analysis]
    protocol = described["settings"].get("per_protocol") or {}
    return {
        "label": part.source.label("analyses", run.analysis),
        "status": run.status,
        "reason": run.reason,
        "is_stabilised": protocol.get("stabilise", True),
        "words": described["words"].get("deviations"),
        "tables": {
            "estimates": _estimates(part, run),
            "deviations": _deviations(part, run),
            "weights": [
                record(row, ("arm", "weights", *WEIGHTS))
                for row in part.read(CensoringWeightRow, run)
            ],
        },
    }


def _estimates(part: ReportPart, run: RunRow) -> list[ReportRow]:
    """The estimate, and what it would be with other weights for deviation."""
    if part.source.is_withheld(run):
        return []
    rows = part.read(EstimateRow, run)
    return [record(row, ESTIMATES) for row in rows if row.role in ("main", "weights")]


def _deviations(part: ReportPart, run: RunRow) -> list[ReportRow]:
    """Intervals of the follow-up, with the people at risk at their start."""
    at_risk = {(row.arm, row.time): row for row in part.read(AtRiskRow, run, adjusted=True)}
    found: list[ReportRow] = []
    for row in part.read(DeviationRow, run):
        out = record(row, ("arm", "start", "end", "deviations", "others"))
        start = at_risk.get((row.arm, row.start))
        if start is not None:
            known = record(start, ("people", "effective"))
            out |= known | {"suppressed": out["suppressed"] | known["suppressed"]}
        before = found[-1] if found and found[-1]["arm"] == row.arm else None
        found.append(out | {"staying": _staying(out, 1.0 if before is None else before["staying"])})
    return found


def _staying(row: ReportRow, before: float | None) -> float | None:
    """The share who keep to the treatment until the end of an interval (actuarial estimate).

    Within an interval, those who leave for other reasons count as at risk for half of it.
    """
    people, left, others = row.get("people"), row["deviations"], row["others"]
    if before is None or people is None or left is None or others is None:
        return None
    exposed = people - others / 2
    return before * (1 - left / exposed) if exposed > 0 else None


def render(page: Page, content: Facts) -> Markup:
    """For each analysis: who deviates, and the weights."""
    parts: list[object] = [page.paragraph("per_protocol.words")]
    if content["has_strategies"]:
        parts.append(page.paragraph("per_protocol.clones"))
    for k, one in enumerate(content["analyses"]):
        parts.append(_analysis(page.under(f"analyses/{k}"), one, k))
    return page.section("per_protocol", *parts)


def _analysis(page: Page, content: Facts, k: int) -> Markup:
    say, tables = page.say, content["tables"]
    parts: list[Markup | None] = [page.heading(content["label"], f"per-protocol-{k + 1}")]
    if content["words"]:
        parts.append(page.paragraph("per_protocol.method", words=content["words"]))
    if not tables["weights"]:
        reason = content["reason"] or say.label("status", content["status"])
        parts.append(page.paragraph("per_protocol.none", "warning", reason=reason.rstrip(".")))
        return join(*parts)
    parts += [
        _figure(page, tables["deviations"], k),
        _intervals(page, tables["deviations"]),
        _weights(page, tables["weights"], is_stabilised=content["is_stabilised"]),
        _other_weights(page, tables["estimates"]),
    ]
    return join(*parts)


def _figure(page: Page, rows: list[ReportRow], k: int) -> Markup | None:
    points: dict[str, list[tuple[float, float]]] = {}
    for arm in ARMS:
        points[arm] = [(0.0, 1.0)]
        for row in rows:
            if row["arm"] == arm and row["staying"] is not None and row["end"] is not None:
                points[arm].append((row["end"], row["staying"]))
    if min(len(curve) for curve in points.values()) < 2:
        return None
    ends = {arm: curve[-1] for arm, curve in points.items()}
    return page.figure(
        "staying",
        staying_figure(points, page.arms, page.say, page.time_unit),
        name=f"staying-{k + 1}",
        t=_percent(ends["target"][1]),
        c=_percent(ends["comparator"][1]),
        t_time=page.duration(ends["target"][0]),
        c_time=page.duration(ends["comparator"][0]),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _intervals(page: Page, rows: list[ReportRow]) -> Markup | None:
    say = page.say
    if not rows:
        return None
    columns = [
        page.arm_column(),
        TableColumn(say("per_protocol.start"), ("start",), page.time),
        TableColumn(
            say("per_protocol.end"),
            ("end",),
            lambda t: say("per_protocol.open") if t is None else page.time(t),
        ),
        TableColumn(say("per_protocol.at_risk"), ("people",), whole),
        TableColumn(say("per_protocol.effective"), ("effective",), whole),
        TableColumn(say("per_protocol.deviations"), ("deviations",), whole),
        TableColumn(say("per_protocol.others"), ("others",), whole),
    ]
    return join(
        page.table("deviations", say("per_protocol.table"), columns, rows),
        page.paragraph("per_protocol.effective_words", "note"),
    )


def _weights(page: Page, rows: list[ReportRow], *, is_stabilised: bool) -> Markup:
    say = page.say
    known = [
        name for name in WEIGHTS if name not in ENDS or any(row[name] is not None for row in rows)
    ]
    columns = [
        page.arm_column(),
        TableColumn.text(
            say("per_protocol.weights"), "weights", lambda v: say.label("truncation", v)
        ),
        *(TableColumn.number(say(f"per_protocol.{name}"), name) for name in known),
    ]
    return join(
        page.table("weights", say("per_protocol.weights_table"), columns, rows),
        page.paragraph(f"per_protocol.{'stabilised' if is_stabilised else 'plain'}", "note"),
    )


def _other_weights(page: Page, rows: list[ReportRow]) -> Markup | None:
    """What the weights change."""
    if len(rows) < 2:
        return None
    shown = [row | {"label": capital(row["label"])} for row in rows]
    columns = page.columns(EstimateRow, "label", "hr", "p")
    return page.table("estimates", page.say("per_protocol.estimates"), columns, shown)
