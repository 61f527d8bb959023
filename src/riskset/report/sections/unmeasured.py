"""Unmeasured confounding: tipping points, measured covariates, and bounds from the controls."""

import math
from typing import Any

from riskset.cohort.bias.risk_ratios import converted
from riskset.disclosure.rows import ARMS
from riskset.report.figures.tipping import tipping_figure
from riskset.report.markup import Markup, join
from riskset.report.number_format import (
    THIN,
    percent,
    short,
    short_percent,
    significant,
    span,
    whole,
)
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, record
from riskset.results.rows import (
    BalanceRow,
    BiasBoundRow,
    ConfounderRow,
    EstimateRow,
    OutcomeCoefficientRow,
)

__all__ = ["collect", "control_biases", "reach_of", "render"]

CONFOUNDER = (
    "kind", "target_prevalence", "comparator_prevalence", "difference", "effect", "ratio",
    "ratio_lower", "ratio_upper", "tips", "n_needed",
)  # fmt: skip
TIPPING = (*CONFOUNDER[:4], "tipping_effect", "tipping_effect_of_estimate")
TINY = 0.001
PREVALENCES = tuple(f"{arm}_prevalence" for arm in ARMS)


def collect(part: ReportPart) -> dict[str, Any]:
    """Confounders that make the estimate too far from 1, and the bounds from the controls."""
    rows = sorted(part.read(ConfounderRow), key=lambda row: row.number)
    observed = _observed(rows)
    shown = [row for row in rows if _is_alike(row, observed)]
    places: dict[tuple[Any, ...], ConfounderRow] = {}
    for row in shown:
        places.setdefault(tuple(row[name] for name in TIPPING[:4]), row)
    main = part.estimate
    return {
        "observed": observed,
        "e_value_limit": main and main.e_value_limit,
        "strengths": _strengths(part) if observed else [],
        "tables": {
            "tipping": [record(row, TIPPING) for row in places.values()],
            "confounders": [record(row, CONFOUNDER) for row in shown],
            "bounds": [
                record(row, [name for name in BiasBoundRow.columns() if name not in part.main])
                for row in part.read(BiasBoundRow)
            ],
        },
    }


def _observed(rows: list[ConfounderRow]) -> dict[str, Any] | None:
    """The estimate as a risk ratio, which each row has without the bias of its confounder."""
    known = [row for row in rows if row.ratio is not None and 0 < row.ratio < math.inf]
    if not known:
        return None
    row = known[0]
    ratio, lower, upper = (
        math.nan if value is None else value * row.bias
        for value in (row.ratio, row.ratio_lower, row.ratio_upper)
    )
    limit = max(lower, 1.0) if ratio >= 1 else min(upper, 1.0)
    is_known = not math.isnan(lower if ratio >= 1 else upper)
    return {"ratio": ratio, "limit": limit if is_known else None, "common": bool(row.common)}


def _is_alike(row: ConfounderRow, observed: Facts | None) -> bool:
    """Whether a confounder makes the estimate too far from 1."""
    return observed is not None and (row.bias > 1) == (observed["ratio"] >= 1)


def _strengths(part: ReportPart) -> list[ReportRow]:
    """Measured covariates of the outcome model, those that cause most bias first.

    Within matched sets they hardly vary, so another reading than the stratified one is preferred.
    """
    readings = [row for row in part.read(EstimateRow) if row.role in ("main", "sensitivity")]
    main = min(readings, key=lambda row: row.reading == "stratified", default=None)
    if main is None or part.source.is_withheld(part.main):
        return []
    coefs = {
        row.covariate_id: row.coef
        for row in part.read(OutcomeCoefficientRow, number=main.number)
        if row.coef
    }
    found = []
    for row in part.adjusted(BalanceRow) if coefs else []:
        coef, side = coefs.get(row.covariate_id), row.before
        if coef is None or side.smd is None or side.sd_target is None:
            continue
        if side.sd_comparator is None or not math.isfinite(side.smd) or not math.isfinite(coef):
            continue
        spread = math.sqrt((side.sd_target**2 + side.sd_comparator**2) / 2)
        strength = {"difference": side.smd, "effect": math.exp(coef * spread)}
        found.append({"name": row.name, **strength})
    return sorted(found, key=lambda s: -abs(s["difference"] * math.log(s["effect"])))


def render(page: Page, content: Facts) -> Markup:
    """Words, figure and tables."""
    observed, tables = content["observed"], content["tables"]
    if observed is None:
        return page.section("unmeasured", page.paragraph("unmeasured.none"))
    return page.section(
        "unmeasured",
        page.paragraph("unmeasured.words"),
        page.paragraph("unmeasured.inside") if observed["limit"] == 1 else None,
        page.paragraph("unmeasured.common", "note") if observed["common"] else None,
        _figure(page, content),
        _tipping(page, tables["tipping"]),
        _bounds(page, content, tables["bounds"]),
    )


def _figure(page: Page, content: Facts) -> Markup:
    """The contours of a normal confounder, with the adjusted estimates behind a click."""
    observed, say = content["observed"], page.say
    limit = observed["limit"]
    normal = [r for r in content["tables"]["tipping"] if r["kind"] == "normal"]
    biases = control_biases(page, content)
    drawn = tipping_figure(
        observed | {"limit": 1.0 if limit is None else limit},
        content["strengths"],
        biases,
        reach_of(content),
        say,
    )
    one = normal[len(normal) // 2] if normal else None
    known = one is not None and one["tipping_effect_of_estimate"] is not None
    tells_limit = one is not None and limit not in (None, 1) and one["tipping_effect"] is not None
    further = [("controls", biases), ("covariates", content["strengths"])]
    more = " ".join(say(f"tipping.{what}") for what, is_drawn in further if is_drawn)
    desc = "limit_desc" if tells_limit else "estimate_desc" if known else "plain_desc"
    effect = None if one is None else one[f"tipping_effect{'' if tells_limit else '_of_estimate'}"]
    words = say(
        f"tipping.{desc}",
        difference=short(abs(one["difference"]) if one else 0.0),
        effect=significant(None if effect is None else max(effect, 1 / effect)),
    )
    return page.figure(
        "tipping", drawn, _adjusted(page, content["tables"]["confounders"]), more=more, words=words
    )


def reach_of(content: Facts) -> float:
    """The largest difference of means that was asked for."""
    rows = content["tables"]["tipping"]
    return max((abs(r["difference"]) for r in rows if r["kind"] == "normal"), default=0.5)


def control_biases(page: Page, content: Facts) -> dict[str, float]:
    """The larger errors of the controls that move the estimate to 1, as risk ratios."""
    observed = content["observed"]
    is_above = observed["ratio"] >= 1
    found = {}
    for row in content["tables"]["bounds"]:
        bias = row["bias_upper" if is_above else "bias_lower"]
        if row["direction"] == "seen" and bias is not None and (bias > 1) == is_above:
            ends = (bias, math.nan, math.nan)
            words = {"level": short_percent(row["range_level"])}
            name = page.say(f"tipping.bias_{row['basis']}", **words)
            found[name] = converted(ends, page.about["scale"], observed["common"]).ratio
    return found


def _tipping(page: Page, rows: list[ReportRow]) -> Markup | None:
    if not rows:
        return None
    say = page.say
    columns = [
        *_about(page),
        TableColumn(say("unmeasured.tipping_effect"), ("tipping_effect",), _effect(page)),
        TableColumn(say("unmeasured.of_estimate"), ("tipping_effect_of_estimate",), _effect(page)),
    ]
    shown = [row | {"kind_label": say.label("unmeasured", row["kind"])} for row in rows]
    return join(
        page.table("tipping", say("unmeasured.table"), columns, shown, sections="kind_label"),
        page.paragraph("unmeasured.table_words", "note"),
    )


def _about(page: Page) -> list[TableColumn]:
    """What describes a confounder of either kind."""
    say = page.say

    def words(kind: str, target: float, comparator: float, difference: float) -> str:
        if kind == "normal":
            return say("unmeasured.of_normal", difference=short(difference))
        shares = {"t": short_percent(target), "c": short_percent(comparator)}
        return say("unmeasured.of_binary", **shares)

    keys = ("kind", *PREVALENCES, "difference")
    return [TableColumn(say("unmeasured.confounder"), keys, words, is_number=False)]


def _effect(page: Page) -> Any:
    def words(effect: float | None) -> str:
        return page.say("unmeasured.no_effect") if effect is None else significant(effect)

    return words


def _adjusted(page: Page, rows: list[ReportRow]) -> Markup | None:
    """The estimate without the bias of each confounder."""
    if not rows:
        return None
    say = page.say
    columns = [
        *_about(page),
        TableColumn.number(say("unmeasured.effect"), "effect"),
        TableColumn.interval(say("unmeasured.ratio"), ("ratio", "ratio_lower", "ratio_upper")),
        TableColumn.text(
            say("unmeasured.tips"), "tips", lambda v: say("word.yes" if v else "word.no")
        ),
        TableColumn(say("unmeasured.n_needed"), ("n_needed",), lambda v: significant(v, 2)),
    ]
    shown = [row | {"kind_label": say.label("unmeasured", row["kind"])} for row in rows]
    return page.table(
        "confounders", say("unmeasured.adjusted"), columns, shown, sections="kind_label"
    )


def _bounds(page: Page, content: Facts, rows: list[ReportRow]) -> Markup | None:
    """What errors as large as those of the controls would do."""
    if not rows:
        return None
    say = page.say

    def basis(name: str, direction: str, level: float) -> str:
        words = say(f"unmeasured.basis_{name}", level=short_percent(level))
        return say(f"unmeasured.direction_{direction}", basis=words)

    ends = {"bias": "bias", "range": "ratio", "limits": "limit"}
    columns = [
        TableColumn(
            say("unmeasured.basis"), ("basis", "direction", "range_level"), basis, is_number=False
        ),
        *(
            TableColumn(say(f"unmeasured.{title}"), (f"{name}_lower", f"{name}_upper"), _range)
            for title, name in ends.items()
        ),
        TableColumn(say("unmeasured.beyond"), ("beyond",), _share),
        TableColumn.number(say("unmeasured.e_value"), "e_value"),
    ]
    first = rows[0]
    words = {
        "n": whole(first["n_controls"]),
        "level": short_percent(first["range_level"]),
        "bias": _range(first["bias_lower"], first["bias_upper"]),
        "range": _range(first["ratio_lower"], first["ratio_upper"]),
        "limits": _range(first["limit_lower"], first["limit_upper"]),
    }
    key = "unmeasured.bounds_inside" if first["includes_1"] else "unmeasured.bounds_outside"
    return join(
        page.heading(say("unmeasured.bounds_heading"), "bias-bounds"),
        page.paragraph("unmeasured.bounds", **words),
        page.paragraph(key),
        page.table("bounds", say("unmeasured.bounds_table"), columns, rows),
        page.paragraph("unmeasured.bounds_words", "note"),
        _compared(page, content, first),
    )


def _compared(page: Page, content: Facts, row: ReportRow) -> Markup | None:
    """The E-value of the error beside that of the interval."""
    limit = content["e_value_limit"]
    if limit is None or row["e_value"] is None or limit == 1:
        return None
    values = {"of_bias": significant(row["e_value"]), "limit": significant(limit)}
    return page.paragraph("unmeasured.e_values", **values)


def _share(share: float | None) -> str:
    """A share in per cent; one that is nearly 0 is below a tenth of one."""
    if share is None or share == 0 or share >= TINY:
        return percent(share, 2)
    return f"<{THIN}{short_percent(TINY)}"


def _range(lower: float | None, upper: float | None) -> str:
    """From one number to another, or one number if both are shown alike."""
    ends = significant(lower), significant(upper)
    return ends[0] if ends[0] == ends[1] else span(*ends)
