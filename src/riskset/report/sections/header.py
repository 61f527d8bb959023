"""The head of the report: the main finding in a sentence that follows the numbers; diagnostics."""

import math
from typing import Any

from riskset.cohort.effects.effect_scale import scale_of
from riskset.disclosure.rows import ARMS
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
)
from riskset.report.page import Facts, Page, TableColumn
from riskset.report.source import ReportPart, first, masks, record
from riskset.results.rows import ArmRow, CalibrationRow, DiagnosticRow, RunRow

__all__ = ["collect", "collect_about", "render"]

UNADJUSTED = (None, "none", "trimming")
"""Kinds that leave the people as different as they were, or nearly so."""
SYMBOLS = {"pass": "✓", "fail": "✕", "not_evaluated": MISSING}
OF_SIMILARITY = ("balance", "shared_balance", "equipoise", "generalisability")
"""Diagnostics of how similar groups are, which do not apply if everybody is in both."""
SHARES = ("equipoise",)
"""Diagnostics that are shares, and pass from the limit on; all others pass below it."""
BY_SIGNIFICANCE = ("balance", "shared_balance")
"""Diagnostics that may ask whether a difference is significantly above the limit."""


def collect_about(part: ReportPart) -> dict[str, Any]:
    """What every section must know: names, status, whether the effect is withheld."""
    main, estimate, source = part.main, part.estimate, part.source
    competing = source.study["competing"]
    arms = [arm for row in part.read(ArmRow) for arm in (row.target_arm, row.comparator_arm)]
    return {
        **{name: part.label(name) for name in ("target", "comparator", "outcome")},
        "competing": competing,
        "has_competing": bool(competing or any(arm.competing for arm in arms)),
        "analysis": source.label("analyses", main.analysis),
        "time_unit": source.time_unit,
        "scale": scale_of([] if estimate is None else [estimate.model]),
        "time_at_risk": part.analysis["words"].get("time_at_risk"),
        "threshold": (part.adjustment and part.adjustment.threshold) or 0.1,
        "status": estimate.status if main.status == "ok" and estimate is not None else main.status,
        "step": main.step,
        "reason": main.reason,
        "is_withheld": source.is_withheld(main),
        "unblind_for_evidence_synthesis": main.unblind_for_evidence_synthesis,
    }


def collect(part: ReportPart) -> dict[str, Any]:
    """The main estimate and its diagnostics."""
    estimate, main = part.estimate, part.main
    keys = (
        "status", "hr", "hr_lower", "hr_upper", "interval_level", "calibrated_hr",
        "calibrated_hr_lower", "calibrated_hr_upper", "p", "target_persons", "comparator_persons",
        "target_outcomes", "comparator_outcomes", "note", "model", "n_covariates", "contrast",
    )  # fmt: skip
    where = {name: main[name] for name in ("target", "comparator", "analysis")}
    calibration = first(part.source.read(CalibrationRow, **where))
    is_hazard = scale_of([] if estimate is None else [estimate.model]) == "hazard"
    return {
        "balance_alpha": (part.analysis["settings"].get("balance") or {}).get("alpha"),
        "is_blind": part.source.blind or part.source.study["blind"],
        "adjustment": main.adjustment_kind,
        "has_strategies": main.cloned,
        "estimate": estimate and record(estimate, keys) | {"suppressed": masks(estimate)},
        "controls": calibration.n_negative if calibration else 0,
        "has_controls": any(
            run.outcome_kind == "negative control" for run in part.source.read(RunRow, **where)
        ),
        "calibration": calibration.status if calibration else "none",
        "tables": {
            "diagnostics": [
                record(check, ("name", "value", "limit", "verdict")) | {"suppressed": _masks(check)}
                for check in part.read(DiagnosticRow)
                if is_hazard or check.name != "proportional_hazards"
            ]
        },
    }


def _masks(check: DiagnosticRow) -> dict[str, str]:
    """A diagnostic with a verdict has a value, so that one without is hidden."""
    is_hidden = check.value is None and check.verdict != "not_evaluated"
    return {"value": "hidden"} if is_hidden else {}


def render(page: Page, content: Facts) -> Markup:
    """The paragraph and the table of diagnostics."""
    is_withheld = page.about["is_withheld"]
    class_ = "lead" if page.about["status"] == "ok" or is_withheld else "lead warning"
    has_profile = is_withheld and page.about["unblind_for_evidence_synthesis"]
    return join(
        tag("p", spans_as_code(_finding(page, content)), class_=class_),
        page.paragraph("header.withheld", "warning") if is_withheld else None,
        page.paragraph("header.for_evidence_synthesis") if has_profile else None,
        _diagnostics(page, content),
    )


def _finding(page: Page, content: Facts) -> str:
    say, row = page.say, content["estimate"]
    if row is None or row["target_persons"] is None and "target_persons" not in row["suppressed"]:
        return capital(say("finding.nothing", reason=page.reason))
    people = {
        arm[0]: page.shown(row, f"{arm}_persons", lambda n: say.count("person", n)) for arm in ARMS
    }
    if page.about["is_withheld"]:
        return f"{say('finding.people', **people)} {say('finding.withheld')}"
    outcomes = {f"e{arm[0]}": page.shown(row, f"{arm}_outcomes") for arm in ARMS}
    parts = [say("finding.counts", **people, **outcomes)]
    if "hr" in row["suppressed"]:
        parts.append(say("finding.hidden"))
    elif row["hr"] is None or row["status"] != "ok":
        parts.append(say("finding.no_estimate", reason=page.reason))
    else:
        parts += _estimate(page, content, row)
    return " ".join(parts)


def _estimate(page: Page, content: Facts, row: Facts) -> list[str]:
    """The hazard ratio, what its interval is compatible with, and whether it is calibrated."""
    say = page.say
    is_adjusted = content["adjustment"] not in UNADJUSTED or row["n_covariates"]
    hazard = say.ratio(page.about["scale"])["hazard"]
    if row["model"] == "finegray":
        hazard = say("word.subdistribution")
    is_calibrated = row["calibrated_hr"] is not None
    adjusted = "adjusted" if is_adjusted else "unadjusted"
    if row["contrast"] == "per-protocol":
        adjusted = "strategies" if content["has_strategies"] else f"per_protocol_{adjusted}"
    parts = [
        say(
            "finding.calibrated_ratio" if is_calibrated else "finding.ratio",
            start=say(f"finding.{adjusted}"),
            hazard=hazard,
            level=short_percent(row["interval_level"]),
            hr=significant(row["hr"]),
            interval=span(significant(row["hr_lower"]), significant(row["hr_upper"])),
            calibrated=significant(row["calibrated_hr"]),
            ends=span(
                significant(row["calibrated_hr_lower"]), significant(row["calibrated_hr_upper"])
            ),
        )
    ]
    if row["hr_lower"] is not None and row["hr_upper"] is not None:
        start = "calibrated_hr" if is_calibrated else "hr"
        parts.append(_compatible(page, row[f"{start}_lower"], row[f"{start}_upper"], hazard))
    if content["calibration"] != "ok":
        n = content["controls"]
        without = "unusable" if content["has_controls"] else "uncontrolled"
        key = "uncalibrated" if n else without
        parts.append(say(f"finding.{key}", n=say.count("control", n)))
    return parts


def _compatible(page: Page, low: float, high: float, hazard: str) -> str:
    """What an interval leaves open, in per cent of the hazard; never "no effect"."""
    say, a, b = page.say, _change(low), _change(high)
    if math.isinf(high):
        below = say("word.reduction" if low < 1 else "word.increase")
        return say("finding.open", a=a, below=below, hazard=hazard)
    if low <= 0:
        above = say("word.reduction" if high < 1 else "word.increase")
        return say("finding.open_below", b=b, above=above, hazard=hazard)
    if high <= 1:
        return say("finding.reductions", a=b, b=a, hazard=hazard)
    return say("finding.increases" if low >= 1 else "finding.both", a=a, b=b, hazard=hazard)


def _change(ratio: float) -> str:
    """The distance of a ratio from 1 in per cent."""
    return percent(abs(ratio - 1), 2)


def _diagnostics(page: Page, content: Facts) -> Markup:
    say, rows, alpha = page.say, content["tables"]["diagnostics"], content["balance_alpha"]
    if not rows:
        return page.paragraph("header.no_checks")
    shown = [
        row
        | {
            "rule": _rule(page, row, alpha),
            "verdict": _verdict(page, row, has_strategies=content["has_strategies"]),
        }
        for row in rows
    ]
    columns = [
        TableColumn.text(say("header.check"), "name", lambda v: say.label("diagnostic", v)),
        TableColumn(say("header.value"), ("name", "value"), _value),
        TableColumn.text(say("header.rule"), "rule"),
        TableColumn.text(say("header.verdict"), "verdict"),
    ]
    return join(
        page.heading(say("header.checks"), "checks"),
        page.table(
            "diagnostics",
            say(f"header.table{'' if content['is_blind'] else '_shown'}"),
            columns,
            shown,
        ),
    )


def _value(name: str, value: float | None) -> str:
    if name in SHARES:
        return percent(value)
    return p_value(value) if name == "proportional_hazards" else significant(value)


def _verdict(page: Page, row: Facts, *, has_strategies: bool) -> str:
    """A dash for a diagnostic without a limit, which is reported only."""
    verdict = row["verdict"]
    if has_strategies and row["name"] in OF_SIMILARITY:
        return f"{MISSING} {page.say.label('verdict', 'not_applicable')}"
    if row["limit"] is None:
        return MISSING
    return f"{SYMBOLS[verdict]} {page.say.label('verdict', verdict)}"


def _rule(page: Page, row: Facts, alpha: float | None) -> str:
    if row["limit"] is None:
        return page.say("header.reported")
    if row["name"] in SHARES:
        return page.say("header.at_least", limit=short_percent(row["limit"]))
    by_significance = row["name"] in BY_SIGNIFICANCE and alpha is not None
    key = "header.significantly" if by_significance else "header.below"
    return page.say(key, limit=short(row["limit"]))
