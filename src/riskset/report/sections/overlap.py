"""How much the arms overlap: preference scores, equipoise, discrimination."""

import json
from collections.abc import Sequence
from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.figures.histograms import overlap_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import percent, whole, with_limits
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, masks, record
from riskset.results.rows import AdjustmentRow, FlaggedCovariateRow, PreferenceRow

__all__ = ["collect", "render", "render_flagged"]

OF_SCORE = ("status", "reason", "auc", "auc_lower", "auc_upper", "equipoise", "source")


def collect(part: ReportPart) -> dict[str, Any]:
    """Facts of the score, the histogram, and the covariates in which the arms differ most."""
    score, adjustment = part.score, part.adjustment or AdjustmentRow()
    return {
        "score": score and {key: score[key] for key in OF_SCORE},
        "borders": list(adjustment.stratum_borders or []),
        "caliper": adjustment.caliper,
        "kind": adjustment.kind,
        "details": json.loads(adjustment.details or "{}"),
        "tables": {
            "preference": _shares(part.adjusted(PreferenceRow)),
            "flagged": [record(row) for row in part.scored(FlaggedCovariateRow)],
        },
    }


def _shares(bars: list[PreferenceRow]) -> list[ReportRow]:
    """Bars as shares of those of their arm that are shown."""
    totals: dict[str, int] = {}
    for bar in bars:
        totals[bar.arm] = totals.get(bar.arm, 0) + (bar.count or 0)
    out = []
    for bar in bars:
        total, hidden = totals[bar.arm] or 1, masks(bar)
        shown = record(bar, ("arm", "lower", "upper", "count", "kept"))
        for name, key in (("count", "share"), ("kept", "kept_share")):
            shown[key] = None if bar[name] is None else bar[name] / total
            if name in hidden:
                shown["suppressed"][key] = "hidden"
        out.append(shown)
    return out


def render(page: Page, content: Facts) -> Markup:
    """The histogram and its words."""
    score, bars = content["score"], content["tables"]["preference"]
    parts: list[Markup | None] = []
    if page.about["status"] == "no_matches":
        parts.append(page.paragraph("overlap.no_matches", "warning"))
    if score is None:
        parts.append(page.paragraph("overlap.no_score"))
    elif score["auc"] is None and score["equipoise"] is None:
        reason = score["reason"] or page.say.label("status", score["status"])
        parts.append(page.paragraph("overlap.no_numbers", reason=reason))
    else:
        equipoise = percent(score["equipoise"])
        parts.append(
            page.paragraph("overlap.words", equipoise=equipoise, auc=with_limits(score, "auc"))
        )
    if bars:
        parts.append(_figure(page, content, bars))
    elif score is not None:
        parts.append(page.paragraph("overlap.no_bars", "note"))
    return page.section("overlap", *parts, render_flagged(page, content["tables"]["flagged"]))


def _figure(page: Page, content: Facts, rows: list[ReportRow]) -> Markup:
    say = page.say
    bars = {
        arm: [
            (row["lower"], row["upper"], row["share"] or 0.0, row["kept_share"] or 0.0)
            for row in rows
            if row["arm"] == arm
        ]
        for arm in ARMS
    }
    kept = {arm[0]: percent(min(sum(bar[3] for bar in bars[arm]), 1.0)) for arm in ARMS}
    drawn = overlap_figure(bars, content["borders"], page.arms, page.key("hatching"), say)
    columns = [
        page.arm_column(),
        TableColumn.number(say("overlap.from"), "lower", 2),
        TableColumn.number(say("overlap.to"), "upper", 2),
        TableColumn(say("overlap.before"), ("count",), whole),
        TableColumn(say("overlap.after"), ("kept",), whole),
    ]
    data = page.table("preference", say("overlap.table"), columns, rows)
    equipoise = percent((content["score"] or {}).get("equipoise"))
    return page.figure("overlap", drawn, data, equipoise=equipoise, **kept)


def render_flagged(page: Page, rows: Sequence[ReportRow]) -> Markup | None:
    """Covariates that nearly determine the treatment, or that one arm alone has."""
    say = page.say
    if not rows:
        return None
    columns = [
        *page.columns(FlaggedCovariateRow, "name"),
        TableColumn.text(say("flagged.kind"), "kind", lambda k: say.label("flagged", k)),
        *page.columns(FlaggedCovariateRow, "correlation", "mean_target", "mean_comparator"),
        TableColumn.text(
            say("flagged.done"),
            "excluded",
            lambda v: say("flagged.excluded" if v else "flagged.kept"),
        ),
    ]
    return join(
        page.heading(say("flagged.heading"), "flagged"),
        page.paragraph("flagged.words"),
        page.table("flagged", say("flagged.table"), columns, rows),
    )
