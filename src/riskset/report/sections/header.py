"""The head of the report: what was found in a sentence that follows the numbers, and the checks."""

import math
from collections.abc import Mapping
from typing import Any

from riskset.report.markup import Markup, join, spans_as_code, tag
from riskset.report.number_format import (
    MISSING,
    capital,
    p_value,
    percent,
    short,
    short_percent,
    significant,
    span,
    whole,
)
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.sections.main_result import main_estimate
from riskset.report.source import ReportPart, ReportSource, masks, record
from riskset.results.rows import AdjustmentRow, ArmRow, CalibrationRow, DiagnosticRow

__all__ = ["collect", "collect_about", "render"]

UNADJUSTED = (None, "none", "trimming")
"""Kinds that leave the people as different as they were, or nearly so."""
SYMBOLS = {"pass": "✓", "fail": "✕", "not_evaluated": "–"}
AT_LEAST = ("equipoise",)
"""Checks that pass from the limit on; all others pass below it."""
SHARES = ("equipoise",)
BY_SIGNIFICANCE = ("balance", "shared_balance")
"""Checks that may ask whether a difference is significantly above the limit."""


def collect_about(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """What every section has to know: names, status, whether the effect is withheld."""
    main, words = part.main, source.study["analyses"][part.main.analysis]["words"]
    adjustment = next(iter(source.of_adjustment(AdjustmentRow, main.adjustment)), None)
    estimate = main_estimate(source, part)
    status = estimate.status if main.status == "ok" and estimate is not None else main.status
    return {
        "target": source.label("targets", part.target),
        "comparator": source.label("comparators", part.comparator),
        "outcome": source.label("outcomes", part.outcome),
        "competing": source.study["competing"],
        "has_competing": _has_competing(source, part),
        "analysis": source.label("analyses", main.analysis),
        "time_at_risk": words.get("time_at_risk"),
        "threshold": (adjustment and adjustment.threshold) or 0.1,
        "status": status,
        "step": main.step,
        "reason": main.reason,
        "is_withheld": source.is_withheld(main),
        "unblind_for_evidence_synthesis": main.unblind_for_evidence_synthesis,
    }


def _has_competing(source: ReportSource, part: ReportPart) -> bool:
    if source.study["competing"]:
        return True
    rows = source.of_run(ArmRow, part.main)
    return any(row.target_arm.competing or row.comparator_arm.competing for row in rows)


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """The main estimate and its diagnostics."""
    estimate = main_estimate(source, part)
    keys = (
        "status", "hr", "hr_lower", "hr_upper", "interval_level", "calibrated_hr",
        "calibrated_hr_lower", "calibrated_hr_upper", "p", "target_persons", "comparator_persons",
        "target_outcomes", "comparator_outcomes", "note", "model", "n_covariates",
    )  # fmt: skip
    checks = source.of_run(DiagnosticRow, part.main)
    calibration = source.read(
        CalibrationRow, target=part.target, comparator=part.comparator, analysis=part.main.analysis
    )
    options = source.study["analyses"][part.main.analysis]["settings"].get("balance") or {}
    return {
        "balance_alpha": options.get("alpha"),
        "adjustment": part.main.adjustment_kind,
        "estimate": estimate and record(estimate, keys) | {"suppressed": masks(estimate)},
        "controls": calibration[0].n_negative if calibration else 0,
        "calibration": calibration[0].status if calibration else "none",
        "tables": {
            "diagnostics": [
                record(check, ("name", "value", "limit", "verdict")) | {"suppressed": _masks(check)}
                for check in checks
            ]
        },
    }


def _masks(check: DiagnosticRow) -> dict[str, str]:
    """A check with a verdict has a value, which is hidden if it is not there."""
    is_hidden = check.value is None and check.verdict != "not_evaluated"
    return {"value": "hidden"} if is_hidden else {}


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """The paragraph and the table of checks."""
    is_withheld = about["is_withheld"]
    is_clear = about["status"] == "ok" or is_withheld
    has_profile = is_withheld and about["unblind_for_evidence_synthesis"]
    return join(
        tag(
            "p",
            spans_as_code(_finding(page, found, about)),
            class_="lead" if is_clear else "lead warning",
        ),
        page.paragraph("header.withheld", "warning") if is_withheld else None,
        page.paragraph("header.for_evidence_synthesis") if has_profile else None,
        _checks(page, found["tables"]["diagnostics"], found["balance_alpha"]),
    )


def _finding(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    say, row = page.say, found["estimate"]
    names = {key: about[key] for key in ("target", "comparator", "outcome")}
    if row is None or row["target_persons"] is None and "target_persons" not in row["suppressed"]:
        return capital(say("finding.nothing", **names, reason=_reason(page, about)))
    people = [
        say.count("person", row[key])
        if key not in row["suppressed"]
        else page.hidden(row["suppressed"][key])
        for key in ("target_persons", "comparator_persons")
    ]
    hidden = row["suppressed"]
    outcomes = [
        page.hidden(hidden[key]) if key in hidden else whole(row[key])
        for key in ("target_outcomes", "comparator_outcomes")
    ]
    parts = []
    if about["is_withheld"]:
        parts.append(say("finding.people", **names, t=people[0], c=people[1]))
        parts.append(say("finding.withheld"))
        return " ".join(parts)
    parts.append(
        say("finding.counts", **names, t=people[0], c=people[1], et=outcomes[0], ec=outcomes[1])
    )
    if row["hr"] is None or row["status"] != "ok":
        parts.append(
            say("finding.no_estimate", reason=_reason(page, about))
            if "hr" not in hidden
            else say("finding.hidden")
        )
        return " ".join(parts)
    is_adjusted = found["adjustment"] not in UNADJUSTED or row["n_covariates"]
    hazard = say("word.subdistribution" if row["model"] == "finegray" else "word.hazard")
    start = say("finding.adjusted" if is_adjusted else "finding.unadjusted")
    parts.append(_ratio(page, row, start=start, hazard=hazard))
    if row["hr_lower"] is not None and row["hr_upper"] is not None:
        parts.append(_compatible(page, row, hazard))
    if found["calibration"] != "ok":
        n = found["controls"]
        key = "finding.uncalibrated" if n else "finding.uncontrolled"
        parts.append(say(key, n=say.count("control", n)))
    return " ".join(parts)


def _reason(page: Page, about: Mapping[str, Any]) -> str:
    reason = about["reason"] or page.say.label("status", about["status"])
    return str(reason).rstrip(".")


def _ratio(page: Page, row: Mapping[str, Any], **words: str) -> str:
    say = page.say
    level = short_percent(row["interval_level"])
    shown = span(significant(row["hr_lower"]), significant(row["hr_upper"]))
    if row["calibrated_hr"] is None:
        return say("finding.ratio", hr=significant(row["hr"]), level=level, interval=shown, **words)
    ends = span(significant(row["calibrated_hr_lower"]), significant(row["calibrated_hr_upper"]))
    return say(
        "finding.calibrated_ratio",
        hr=significant(row["hr"]),
        level=level,
        interval=shown,
        calibrated=significant(row["calibrated_hr"]),
        ends=ends,
        **words,
    )


def _compatible(page: Page, row: Mapping[str, Any], hazard: str) -> str:
    """What the interval leaves open, in per cent of the hazard; never "no effect"."""
    say = page.say
    calibrated = row["calibrated_hr"] is not None
    start = "calibrated_hr" if calibrated else "hr"
    low, high = row[f"{start}_lower"], row[f"{start}_upper"]
    a, b = _change(low), _change(high)
    if high <= 1:
        key = "finding.reductions"
    elif low >= 1:
        key = "finding.increases"
    else:
        key = "finding.both"
    if math.isinf(high):
        below = say("word.reduction" if low < 1 else "word.increase")
        return say("finding.open", a=a, below=below, hazard=hazard)
    if low <= 0:
        above = say("word.reduction" if high < 1 else "word.increase")
        return say("finding.open_below", b=b, above=above, hazard=hazard)
    return say(key, a=b if high <= 1 else a, b=a if high <= 1 else b, hazard=hazard)


def _change(ratio: float) -> str:
    """A ratio as a change in per cent; from a doubling on, as a factor times 100."""
    return percent(abs(ratio - 1), 2)


def _checks(page: Page, rows: list[ReportRow], alpha: float | None) -> Markup:
    say = page.say
    if not rows:
        return page.paragraph("header.no_checks")
    shown = [
        row | {"rule": _rule(page, row, alpha), "verdict": _verdict(page, row)} for row in rows
    ]
    columns = [
        TableColumn.text(say("header.check"), "name", lambda v: say.label("diagnostic", v)),
        TableColumn(say("header.value"), ("name", "value"), _value),
        TableColumn(say("header.rule"), ("rule",), str, False),
        TableColumn(say("header.verdict"), ("verdict",), str, False),
    ]
    return join(
        page.heading(say("header.checks"), "checks"),
        page.table("diagnostics", say("header.table"), columns, shown),
    )


def _value(name: str, value: float | None) -> str:
    if name in SHARES:
        return percent(value)
    return p_value(value) if name == "proportional_hazards" else significant(value)


def _verdict(page: Page, row: Mapping[str, Any]) -> str:
    """A dash for a diagnostic without a limit, which is reported only."""
    verdict = row["verdict"]
    return (
        MISSING
        if row["limit"] is None
        else f"{SYMBOLS[verdict]} {page.say.label('verdict', verdict)}"
    )


def _rule(page: Page, row: Mapping[str, Any], alpha: float | None) -> str:
    if row["limit"] is None:
        return page.say("header.reported")
    show = short_percent if row["name"] in SHARES else short
    key = "at_least" if row["name"] in AT_LEAST else "below"
    if row["name"] in BY_SIGNIFICANCE and alpha is not None:
        key = "significantly"
    return page.say(f"header.{key}", limit=show(row["limit"]))
