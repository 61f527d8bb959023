"""How alike the arms are: every covariate before and after, the worst by name, and who is left."""

import math
from collections.abc import Mapping
from typing import Any

from riskset.report.figures.scatter import MOST_POINTS, balance_figure, ends_of, hexagons
from riskset.report.markup import Markup, join
from riskset.report.number_format import short, significant, whole
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportPart, ReportSource, masks, record
from riskset.results.rows import AdjustmentRow, BalanceRow

__all__ = ["collect", "render"]

ARMS = ("target", "comparator")
WORST, LABELS, LEAST_GENERAL = 20, 5, 10
ALWAYS_AFTER, ALWAYS_BEFORE = 0.05, 0.2
"""Covariates with a larger difference are drawn one by one, if there is room."""
SHOWN = (
    "covariate_id", "name", "is_binary", "before_mean_target", "before_mean_comparator",
    "before_smd", "after_mean_target", "after_mean_comparator", "after_smd",
    "after_smd_current_sd", "after_p",
)  # fmt: skip
GENERAL = ("generalisability_target", "generalisability_comparator", "generalisability_both")
SUMMARY = (
    "n_covariates", "before_max", "before_worst", "before_above", "after_max", "after_worst",
    "after_above", "after_min_p", "generalisability_of", "generalisability_max", "threshold", "sd",
    "target_rows", "comparator_rows", "target_effective", "comparator_effective", "estimand",
)  # fmt: skip
OF_SHARED = ("n_covariates", "after_max", "after_worst", "after_above", "threshold")


def collect(source: ReportSource, part: ReportPart) -> dict[str, Any]:
    """Summary, points of the figure, and the tables of the worst."""
    number = part.main.adjustment
    if number is None:
        return {
            "summary": None, "hidden": _hidden([]), "shared": None, "points": [], "rest": [],
            "tables": {},
        }  # fmt: skip
    adjustment = next(iter(source.of_adjustment(AdjustmentRow, number)), None)
    rows = source.of_adjustment(BalanceRow, number)
    known = [row for row in rows if None not in (row.before.smd, row.after.smd)]
    threshold = (adjustment and adjustment.threshold) or 0.1
    points, rest = _points(known, threshold)
    return {
        "summary": adjustment and record(adjustment, SUMMARY),
        "hidden": _hidden(rows),
        "shared": _shared(source, part),
        "points": points,
        "rest": rest,
        "tables": {
            "worst_after": [record(r, SHOWN) for r in _worst(known, "after_smd", WORST)],
            "worst_before": [record(r, SHOWN) for r in _worst(known, "before_smd", WORST)],
            "asked_for": [record(r, SHOWN) for r in _asked_for(source, rows)],
            "generalisability": [
                {key: r[key] for key in ("covariate_id", "name", *GENERAL)}
                for r in _worst(rows, _of_interest(adjustment), LEAST_GENERAL)
            ],
        },
    }


def _shared(source: ReportSource, part: ReportPart) -> ReportRow | None:
    """The balance of the people whom all outcomes share, unless they are those of this outcome."""
    number = part.main.shared_adjustment
    if number == part.main.adjustment:
        return None
    shared = next(iter(source.of_adjustment(AdjustmentRow, number)), None)
    return None if shared is None else record(shared, OF_SHARED)


def _hidden(rows: list[BalanceRow]) -> ReportRow:
    """Covariates without a difference because few people have them, or all but few."""
    hidden = [row for row in rows if "after_smd" in masks(row)]
    return {"n": len(hidden), "above": sum(row.after.balanced is False for row in hidden)}


def _worst(rows: list[BalanceRow], key: str, most: int) -> list[BalanceRow]:
    """The largest in size; names break ties."""
    known = [row for row in rows if row[key] is not None]
    return sorted(known, key=lambda row: (-abs(row[key]), row.covariate_id))[:most]


def _of_interest(adjustment: AdjustmentRow | None) -> str:
    """The column of the differences of those whom the effect is about."""
    group = None if adjustment is None else adjustment.generalisability_of
    return f"generalisability_{group or 'both'}"


def _asked_for(source: ReportSource, rows: list[BalanceRow]) -> list[BalanceRow]:
    """Covariates that the specification lists for the report, by key or name."""
    wanted = {str(one) for one in source.options.get("covariates") or ()}
    return [row for row in rows if row.covariate_id in wanted or row.name in wanted]


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


def render(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    """Summary, figure, tables; the last of them about whom the result speaks for."""
    say, summary, tables = page.say, found["summary"], found["tables"]
    if summary is None or summary["n_covariates"] is None:
        return page.section("balance", say("section.balance"), page.paragraph("balance.none"))
    parts = [_words(page, summary), _shared_words(page, found["shared"])]
    if found["hidden"]["n"]:
        n, above = found["hidden"]["n"], whole(found["hidden"]["above"])
        values = {"n": say.count("covariate", n), "above": above}
        threshold = short(summary["threshold"])
        parts.append(page.paragraph("balance.hidden", "note", threshold=threshold, **values))
    if found["points"]:
        parts.append(_figure(page, found))
    else:
        parts.append(page.paragraph("balance.no_rows", "note"))
    for name in ("worst_after", "worst_before", "asked_for"):
        if tables[name]:
            parts.append(_table(page, name, tables[name], about))
    return join(
        page.section("balance", say("section.balance"), *parts),
        _generalisability(page, found, about),
    )


def _words(page: Page, summary: Mapping[str, Any]) -> Markup:
    say = page.say
    if summary["after_max"] is None and "after_max" not in summary["suppressed"]:
        return page.paragraph("balance.unknown_after")
    values = {
        "covariates": say.count("covariate", summary["n_covariates"]),
        "threshold": short(summary["threshold"]),
        "before": whole(summary["before_above"]), "before_max": _size(page, summary, "before_max"),
        "before_worst": summary["before_worst"],
        "after": whole(summary["after_above"]), "after_max": _size(page, summary, "after_max"),
        "after_worst": summary["after_worst"],
    }  # fmt: skip
    sizes = page.paragraph(
        "balance.sizes" if all(_same(summary, arm) for arm in ARMS) else "balance.effective",
        target=say.count("person", summary["target_rows"]),
        comparator=say.count("person", summary["comparator_rows"]),
        target_effective=significant(summary["target_effective"], 4),
        comparator_effective=significant(summary["comparator_effective"], 4),
    )
    main, other = ("before", "current") if summary["sd"] == "before" else ("current", "before")
    definition = page.paragraph(
        "balance.definition",
        "note",
        main=say(f"balance.sd_{main}"),
        other=say(f"balance.sd_{other}"),
    )
    return join(page.paragraph("balance.words", **values), sizes, definition)


def _shared_words(page: Page, shared: Mapping[str, Any] | None) -> Markup | None:
    if shared is None or (shared["after_max"] is None and not shared["suppressed"]):
        return None
    return page.paragraph(
        "balance.shared",
        threshold=short(shared["threshold"]),
        above=whole(shared["after_above"]),
        covariates=page.say.count("covariate", shared["n_covariates"]),
        size=_size(page, shared, "after_max"),
        worst=shared["after_worst"],
    )


def _size(page: Page, summary: Mapping[str, Any], key: str) -> str:
    """The largest difference, unless it is that of a covariate whose difference is hidden."""
    mask = summary["suppressed"].get(key)
    return page.hidden(mask) if mask else significant(summary[key])


def _same(summary: Mapping[str, Any], arm: str) -> bool:
    """Whether the effective number says no more than the number of people."""
    people, effective = summary[f"{arm}_rows"], summary[f"{arm}_effective"]
    return effective is None or (people is not None and abs(people - effective) < 0.5)


def _figure(page: Page, found: Mapping[str, Any]) -> Markup:
    say, summary = page.say, found["summary"]
    threshold = float(summary["threshold"] or 0.1)
    worst = found["points"][:LABELS]
    desc = say(
        "balance.desc",
        n=whole(summary["after_above"]),
        all=whole(summary["n_covariates"]),
        threshold=short(threshold),
        worst=worst[0]["name"],
        size=significant(worst[0]["after"]),
    )
    drawn = balance_figure(
        found["points"], found["rest"], worst, threshold, say, say("balance.title"), desc
    )
    caption = say("balance.caption", threshold=short(threshold))
    if found["rest"]:
        others = whole(sum(r["count"] for r in found["rest"]))
        caption = f"{caption} {say('balance.caption_hexagons', n=others)}"
    return page.figure("balance", drawn, caption)


def _table(page: Page, name: str, rows: list[ReportRow], about: Mapping[str, Any]) -> Markup:
    say = page.say
    columns = [TableColumn.text(say("balance.covariate"), "name")]
    for side in ("before", "after"):
        group = say(f"side.{side}")
        for arm in ARMS:
            columns.append(
                TableColumn(about[arm], (f"{side}_mean_{arm}",), significant, group=group)
            )
        columns.append(TableColumn.number(say("balance.smd"), f"{side}_smd", group=group))
    columns.append(
        TableColumn.number(
            say("balance.smd_current"), "after_smd_current_sd", group=say("side.after")
        )
    )
    return join(
        page.heading(say(f"balance.{name}"), name.replace("_", "-")),
        page.table(name, say(f"balance.{name}_caption", n=len(rows)), columns, rows),
    )


def _generalisability(page: Page, found: Mapping[str, Any], about: Mapping[str, Any]) -> Markup:
    say, rows, summary = page.say, found["tables"]["generalisability"], found["summary"]
    title = say("section.generalisability")
    if not rows:
        return page.section(
            "generalisability", title, page.paragraph("balance.no_generalisability")
        )
    columns = [
        TableColumn.text(say("balance.covariate"), "name"),
        TableColumn.number(about["target"], "generalisability_target"),
        TableColumn.number(about["comparator"], "generalisability_comparator"),
        TableColumn.number(say("balance.both"), "generalisability_both"),
    ]
    group = summary["generalisability_of"]
    words = page.paragraph(
        "balance.generalisability",
        size=_size(page, summary, "generalisability_max"),
        group=about[group] if group in ARMS else say("balance.both_inside"),
    )
    table = page.table(
        "generalisability", say("balance.generalisability_caption", n=len(rows)), columns, rows
    )
    # The diagnostic is of other people where some were left out for the outcome.
    note = page.paragraph("balance.generalisability_shared", "note") if found["shared"] else None
    return page.section("generalisability", title, words, note, table)
