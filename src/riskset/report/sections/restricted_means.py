"""Restricted mean times within some horizons, and what to read without proportional hazards."""

from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.markup import Markup, join
from riskset.report.number_format import p_with_sign
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, masks, record
from riskset.results.rows import RestrictedMeanRow

__all__ = ["collect", "render"]

KEYS = (
    "adjusted", "reading", "measure", "time",
    *(f"{arm}_{end}" for arm in ARMS for end in ("mean", "lower", "upper")),
    *("difference", "difference_lower", "difference_upper", "difference_p"),
    *("ratio", "ratio_lower", "ratio_upper", "ratio_p"),
)  # fmt: skip
READINGS = ("marginal", "standardized", "outcome_models", "doubly_robust")
"""In the order of the table."""
OF_BOTH = tuple(key for key in KEYS if key.startswith(("difference", "ratio")))
REJECTED = 0.05
"""Level of the test of proportional hazards."""


def collect(part: ReportPart) -> dict[str, Any]:
    """Means of both arms, and the test of proportional hazards."""
    main = part.estimate
    rows = sorted(
        part.read(RestrictedMeanRow),
        key=lambda row: (row.adjusted, READINGS.index(row.reading), row.time),
    )
    is_known = main is not None and main.status == "ok" and main.effect.hr is not None
    return {
        "tables": {"means": [_row(row) for row in rows]},
        "proportionality_p": main.proportionality_p if main and is_known else None,
        "model": main.model if main and is_known else None,
    }


def _row(row: RestrictedMeanRow) -> ReportRow:
    out = record(row, KEYS)
    for arm in ARMS:
        name = f"{arm}_mean"
        if row[name] is None and name not in masks(row) and not row.blinded:
            keys = (name, f"{arm}_lower", f"{arm}_upper", *OF_BOTH)
            out["suppressed"] |= dict.fromkeys(keys, "unfollowed")
    return out


def render(page: Page, content: Facts) -> Markup | None:
    """The table, and which measure to read."""
    say, rows = page.say, content["tables"]["means"]
    if not rows:
        return None
    columns = [
        TableColumn(say("restricted_means.horizon"), ("time",), page.duration, False),
        TableColumn.text(say("restricted_means.measure"), "measure", lambda v: _measure(page, v)),
        *(
            TableColumn.interval(label, (f"{arm}_mean", f"{arm}_lower", f"{arm}_upper"))
            for arm, label in page.arms.items()
        ),
        *page.columns(
            RestrictedMeanRow,
            *("difference", "difference_p", "ratio", "ratio_p"),
            difference="restricted_means.difference",
            difference_p="column.p",
            ratio="restricted_means.ratio",
            ratio_p="column.p",
        ),
    ]
    shown = [row | {"side": _side(page, row)} for row in rows]
    return join(
        page.heading(say("restricted_means.heading"), "restricted-means"),
        page.table("means", say("restricted_means.table"), columns, shown, sections="side"),
        page.paragraph(_advice(page, content), "note", **_facts(page, content)),
    )


def _measure(page: Page, measure: str) -> str:
    if measure == "restricted_mean" and page.about["has_competing"]:
        return page.say("restricted_means.event_free")
    return page.say.label("restricted_means", measure)


def _side(page: Page, row: ReportRow) -> str:
    side = page.say("side.after" if row["adjusted"] else "side.before")
    if row["reading"] == "marginal":
        return side
    return page.say(f"restricted_means.{row['reading']}", side=side)


def _advice(page: Page, content: Facts) -> str:
    p, scale = content["proportionality_p"], page.about["scale"]
    if scale in ("odds", "rate"):
        return f"restricted_means.advice_{scale}"
    if p is None:
        return "restricted_means.advice"
    return f"restricted_means.{'rejected' if p < REJECTED else 'not_rejected'}"


def _facts(page: Page, content: Facts) -> dict[str, str]:
    word = "subdistribution" if content["model"] == "finegray" else "hazard"
    return {"p": p_with_sign(content["proportionality_p"]), "hazard": page.say(f"word.{word}")}
