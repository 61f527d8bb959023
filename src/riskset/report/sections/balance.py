"""Covariate balance: every covariate before and after, the worst by name, and generalisability."""

import math
from typing import Any

from riskset.disclosure.rows import ARMS
from riskset.report.figures.scatter import MOST_POINTS, balance_figure, ends_of, hexagons
from riskset.report.markup import Markup, join
from riskset.report.number_format import differs, short, significant, whole
from riskset.report.page import Facts, Page, ReportRow
from riskset.report.sections.subgroup_balance import collect_subgroups, render_subgroups
from riskset.report.source import ReportPart, first, masks, record
from riskset.results.rows import AdjustmentRow, BalanceRow

__all__ = ["collect", "render"]

WORST, LABELS, LEAST_GENERAL = 20, 5, 10
ALWAYS_AFTER, ALWAYS_BEFORE = 0.05, 0.2
"""Covariates with a larger difference are drawn one by one, if there is room."""
SHOWN = (
    "covariate_id", "name", "is_binary", "before_mean_target", "before_mean_comparator",
    "before_smd", "after_mean_target", "after_mean_comparator", "after_smd",
    "after_smd_current_sd", "before_variance_ratio", "before_ks", "after_variance_ratio",
    "after_ks", "after_p",
)  # fmt: skip
GENERAL = ("generalisability_target", "generalisability_comparator", "generalisability_both")
SUMMARY = (
    "n_covariates", "before_max", "before_worst", "before_above", "after_max", "after_worst",
    "after_above", "after_min_p", "generalisability_of", "generalisability_max", "threshold", "sd",
    "target_rows", "comparator_rows", "target_effective", "comparator_effective", "estimand",
    "pairwise_max", "pairwise_worst", "pairwise_between",
)  # fmt: skip
OF_SHARED = ("n_covariates", "after_max", "after_worst", "after_above", "threshold")


def collect(part: ReportPart) -> dict[str, Any]:
    """Summary, points of the figure, and the tables of the worst."""
    if part.main.adjustment is None:
        return {
            "summary": None, "hidden": _hidden([]), "shared": None, "points": [], "rest": [],
            "tables": {},
        }  # fmt: skip
    adjustment = part.adjustment
    rows = part.adjusted(BalanceRow)
    known = [row for row in rows if None not in (row.before.smd, row.after.smd)]
    points, rest = _points(known, (adjustment and adjustment.threshold) or 0.1)
    subgroups = collect_subgroups(part, (adjustment and adjustment.threshold) or 0.1)
    wanted = {str(one) for one in part.source.options.get("covariates") or ()}
    group = (adjustment and adjustment.generalisability_of) or "both"
    tables = {
        "worst_after": _worst(known, "after_smd", WORST),
        "worst_before": _worst(known, "before_smd", WORST),
        "asked_for": [row for row in rows if row.covariate_id in wanted or row.name in wanted],
    }
    return {
        "summary": adjustment and record(adjustment, SUMMARY),
        "hidden": _hidden(rows),
        "shared": _shared(part),
        "points": points,
        "rest": rest,
        "tables": {
            **subgroups,
            **{name: [record(row, SHOWN) for row in chosen] for name, chosen in tables.items()},
            "generalisability": [
                {key: row[key] for key in ("covariate_id", "name", *GENERAL)}
                for row in _worst(rows, f"generalisability_{group}", LEAST_GENERAL)
            ],
        },
    }


def _shared(part: ReportPart) -> ReportRow | None:
    """The balance of the people whom all outcomes share, unless they are those of this outcome."""
    number = part.main.shared_adjustment
    if number in (None, part.main.adjustment):
        return None
    shared = first(part.adjusted(AdjustmentRow, number))
    return None if shared is None else record(shared, OF_SHARED)


def _hidden(rows: list[BalanceRow]) -> ReportRow:
    """Covariates without a difference because few people have them, or all but few."""
    hidden = [row for row in rows if "after_smd" in masks(row)]
    return {"n": len(hidden), "above": sum(row.after.balanced is False for row in hidden)}


def _worst(rows: list[BalanceRow], key: str, most: int) -> list[BalanceRow]:
    """The largest in size; names break ties."""
    known = [row for row in rows if row[key] is not None]
    return sorted(known, key=lambda row: (-abs(row[key]), row.covariate_id))[:most]


def _points(rows: list[BalanceRow], threshold: float) -> tuple[list[ReportRow], list[ReportRow]]:
    """Covariates to draw one by one, and the others as counts in hexagons."""
    sized: list[ReportRow] = [
        {"name": r.name, "before": abs(r.before.smd or 0.0), "after": abs(r.after.smd or 0.0)}
        for r in _worst(rows, "after_smd", len(rows))
    ]
    finite = [p for p in sized if math.isfinite(p["before"]) and math.isfinite(p["after"])]
    if len(finite) <= MOST_POINTS:
        return finite, []
    apart = [p for p in finite if p["after"] > ALWAYS_AFTER or p["before"] > ALWAYS_BEFORE]
    apart = apart[:MOST_POINTS]
    drawn = {id(p) for p in apart}
    others = [p for p in finite if id(p) not in drawn]
    bins = hexagons(others, ends_of(finite, threshold))
    return apart, [{"before": a, "after": b, "count": n} for a, b, n in bins]


def render(page: Page, content: Facts) -> Markup:
    """Summary, figure, tables, and generalisability."""
    summary, tables, hidden = content["summary"], content["tables"], content["hidden"]
    if summary is None or summary["n_covariates"] is None:
        return page.section("balance", page.paragraph("balance.none"))
    parts = [_words(page, summary), _shared_words(page, content["shared"])]
    if summary["pairwise_worst"] is not None:
        parts.append(
            page.paragraph(
                "balance.pairwise",
                size=page.shown(summary, "pairwise_max", significant),
                worst=summary["pairwise_worst"],
                between=summary["pairwise_between"],
            )
        )
    if hidden["n"]:
        parts.append(
            page.paragraph(
                "balance.hidden",
                "note",
                n=page.say.count("covariate", hidden["n"]),
                above=whole(hidden["above"]),
                threshold=short(summary["threshold"]),
            )
        )
    if content["points"]:
        parts.append(_figure(page, content))
    else:
        parts.append(page.paragraph("balance.no_rows", "note"))
    for name in ("worst_after", "worst_before", "asked_for"):
        if tables[name]:
            parts.append(_table(page, name, tables[name]))
    parts.append(render_subgroups(page, tables, summary["threshold"] or 0.1))
    return join(page.section("balance", *parts), _generalisability(page, content))


def _words(page: Page, summary: Facts) -> Markup:
    say = page.say
    if summary["after_max"] is None and "after_max" not in summary["suppressed"]:
        return page.paragraph("balance.unknown_after")
    words = page.paragraph(
        "balance.words",
        covariates=say.count("covariate", summary["n_covariates"]),
        threshold=short(summary["threshold"]),
        before=whole(summary["before_above"]),
        before_max=page.shown(summary, "before_max", significant),
        before_worst=summary["before_worst"],
        after=whole(summary["after_above"]),
        after_max=page.shown(summary, "after_max", significant),
        after_worst=summary["after_worst"],
    )
    is_weighted = any(differs(summary[f"{arm}_effective"], summary[f"{arm}_rows"]) for arm in ARMS)
    sizes = page.paragraph(
        "balance.effective" if is_weighted else "balance.sizes",
        target=say.count("person", summary["target_rows"]),
        comparator=say.count("person", summary["comparator_rows"]),
        target_effective=whole(summary["target_effective"]),
        comparator_effective=whole(summary["comparator_effective"]),
    )
    main, other = ("before", "current") if summary["sd"] == "before" else ("current", "before")
    definition = page.paragraph(
        "balance.definition",
        "note",
        main=say(f"balance.sd_{main}"),
        other=say(f"balance.sd_{other}"),
    )
    return join(words, sizes, definition)


def _shared_words(page: Page, shared: Facts | None) -> Markup | None:
    if shared is None or (shared["after_max"] is None and not shared["suppressed"]):
        return None
    return page.paragraph(
        "balance.shared",
        threshold=short(shared["threshold"]),
        above=whole(shared["after_above"]),
        covariates=page.say.count("covariate", shared["n_covariates"]),
        size=page.shown(shared, "after_max", significant),
        worst=shared["after_worst"],
    )


def _figure(page: Page, content: Facts) -> Markup:
    say, summary, rest = page.say, content["summary"], content["rest"]
    threshold = float(summary["threshold"] or 0.1)
    worst = content["points"][:LABELS]
    return page.figure(
        "balance",
        balance_figure(content["points"], rest, worst, threshold, say),
        more=say("balance.hexagons", n=whole(sum(r["count"] for r in rest))) if rest else "",
        n=whole(summary["after_above"]),
        all=whole(summary["n_covariates"]),
        threshold=short(threshold),
        worst=worst[0]["name"],
        size=significant(worst[0]["after"]),
    )


def _table(page: Page, name: str, rows: list[ReportRow]) -> Markup:
    columns, hides_ks = page.columns(BalanceRow, "name"), False
    for side in ("before", "after"):
        names = [f"{side}_mean_target", f"{side}_mean_comparator", f"{side}_smd"]
        if side == "after":
            names.append("after_smd_current_sd")
        beyond = [f"{side}_variance_ratio", f"{side}_ks"]
        said = [key for key in beyond if any(row[key] is not None for row in rows)]
        names += said
        hides_ks |= any(f"{side}_ks" in said and f"{side}_ks" in row["suppressed"] for row in rows)
        columns += page.columns(BalanceRow, *names, group=page.say(f"side.{side}"))
    return join(
        page.heading(page.say(f"balance.{name}"), name.replace("_", "-")),
        page.table(name, page.say(f"balance.{name}_caption", n=len(rows)), columns, rows),
        page.paragraph("balance.hidden_ks", "note") if hides_ks else None,
    )


def _generalisability(page: Page, content: Facts) -> Markup:
    say, rows, summary = page.say, content["tables"]["generalisability"], content["summary"]
    if not rows:
        return page.section("generalisability", page.paragraph("balance.no_generalisability"))
    group = summary["generalisability_of"]
    caption = say("balance.generalisability_caption", n=len(rows))
    return page.section(
        "generalisability",
        page.paragraph(
            "balance.generalisability",
            size=page.shown(summary, "generalisability_max", significant),
            group=page.arms.get(group, say("balance.both_inside")),
        ),
        # The diagnostic is of other people where some were excluded for the outcome.
        page.paragraph("balance.generalisability_shared", "note") if content["shared"] else None,
        page.table("generalisability", caption, page.columns(BalanceRow, "name", *GENERAL), rows),
    )
