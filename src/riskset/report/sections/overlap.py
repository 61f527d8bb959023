"""How much the arms overlap: preference scores, equipoise, discrimination."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from riskset.report.figures.overlap import overlap_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import interval, percent, significant
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, ReportSource, masks, record
from riskset.results.rows import AdjustmentRow, FlaggedCovariateRow, PreferenceRow, ScoreRow

__all__ = ["collect", "render"]


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Facts of the score, the histogram, and the covariates in which the arms differ most."""
    number = part.main.adjustment
    score = next(iter(source.of_score(ScoreRow, part.main.ps)), None)
    adjustments = source.of_adjustment(AdjustmentRow, number)
    adjustment = adjustments[0] if adjustments else AdjustmentRow()
    flagged = source.of_score(FlaggedCovariateRow, part.main.ps)
    keys = ("status", "reason", "auc", "auc_lower", "auc_upper", "equipoise", "source")
    return {
        "score": None if score is None else {key: score[key] for key in keys},
        "borders": list(adjustment.stratum_borders or []),
        "caliper": adjustment.caliper,
        "kind": adjustment.kind,
        "details": json.loads(adjustment.details or "{}"),
        "tables": {
            "preference": _shares(source.of_adjustment(PreferenceRow, number)),
            "flagged": [record(row) for row in flagged],
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


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """The histogram and its words."""
    say, score = page.say, found["score"]
    parts: list[Markup | None] = []
    if about["status"] == "no_matches":
        parts.append(page.paragraph("overlap.no_matches", "warning"))
    if score is None:
        parts.append(page.paragraph("overlap.no_score"))
    elif score["auc"] is None and score["equipoise"] is None:
        reason = score["reason"] or say.label("status", score["status"])
        parts.append(page.paragraph("overlap.no_numbers", reason=reason))
    else:
        parts.append(_words(page, score))
    if found["tables"]["preference"]:
        parts.append(_figure(page, found, about))
    elif score is not None:
        parts.append(page.paragraph("overlap.no_bars", "note"))
    parts.append(render_flagged(page, found["tables"]["flagged"], about))
    return page.section("overlap", say("section.overlap"), *parts)


def _words(page: Page, score: Mapping[str, Any]) -> Markup:
    auc = interval(*(significant(score[key]) for key in ("auc", "auc_lower", "auc_upper")))
    return page.paragraph("overlap.words", equipoise=percent(score["equipoise"]), auc=auc)


def _figure(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    say, bars = page.say, found["tables"]["preference"]
    names = {arm: about[arm] for arm in ("target", "comparator")}
    score = found["score"] or {}
    kept = {arm: sum(b["kept_share"] or 0.0 for b in bars if b["arm"] == arm) for arm in names}
    desc = say(
        "overlap.desc",
        equipoise=percent(score.get("equipoise")),
        target=names["target"],
        comparator=names["comparator"],
        t=percent(min(kept["target"], 1.0)),
        c=percent(min(kept["comparator"], 1.0)),
    )
    drawn = overlap_figure(
        bars, found["borders"], names, page.key("hatching"), say, say("overlap.title"), desc
    )
    columns = [
        TableColumn.text(say("result.arm"), "arm", lambda arm: names[arm]),
        TableColumn(say("overlap.from"), ("lower",), lambda v: significant(v, 2)),
        TableColumn(say("overlap.to"), ("upper",), lambda v: significant(v, 2)),
        TableColumn.count(say("overlap.before"), "count"),
        TableColumn.count(say("overlap.after"), "kept"),
    ]
    data = page.table("preference", say("overlap.table"), columns, bars)
    return page.figure("overlap", drawn, say("overlap.caption"), data)


def render_flagged(
    page: Page, rows: Sequence[ReportRow], about: Mapping[str, Any]
) -> Markup | None:
    """Covariates that are the treatment by another name, or that one arm alone has."""
    say = page.say
    if not rows:
        return None
    columns = [
        TableColumn.text(say("flagged.name"), "name"),
        TableColumn.text(say("flagged.kind"), "kind", lambda k: say.label("flagged", k)),
        TableColumn.number(say("flagged.correlation"), "correlation"),
        TableColumn.number(about["target"], "mean_target"),
        TableColumn.number(about["comparator"], "mean_comparator"),
        TableColumn.text(
            say("flagged.done"),
            "excluded",
            lambda v: say("flagged.excluded" if v else "flagged.kept"),
        ),
    ]
    table = page.table("flagged", say("flagged.table"), columns, rows)
    return join(
        page.heading(say("flagged.heading"), "flagged"), page.paragraph("flagged.words"), table
    )
