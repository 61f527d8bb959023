"""What a model says of its covariates: their penalty, how it was chosen, the strongest of them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from riskset.report.figures.lines import cross_validation_figure
from riskset.report.markup import Markup
from riskset.report.number_format import significant, whole
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import record
from riskset.results.rows import (
    OutcomeCoefficientRow,
    OutcomePenaltyRow,
    ScoreCoefficientRow,
    ScorePenaltyRow,
)

__all__ = ["covariate_facts", "covariate_tables", "render_coefficients", "render_tried"]

STRONGEST = 20
COEFFICIENT = ("rank", "covariate_id", "name", "coef", "mean_target", "mean_comparator")
TRIED = ("l1", "l2", "variance", "mean", "se", "chosen")


def covariate_tables(
    coefficients: Iterable[ScoreCoefficientRow | OutcomeCoefficientRow],
    tried: Iterable[ScorePenaltyRow | OutcomePenaltyRow],
) -> dict[str, list[ReportRow]]:
    """The strongest coefficients of either sign, and the penalties from weak to strong."""
    # A coefficient is hidden if its covariate is one of few people.
    known = [row for row in sorted(coefficients, key=lambda row: row.rank) if row.coef is not None]
    positive, negative = (
        [record(row, COEFFICIENT) for row in known if sign * (row.coef or 0.0) > 0][:STRONGEST]
        for sign in (1, -1)
    )
    weakest_first = sorted(tried, key=lambda row: (row.l1, row.l2))
    return {
        "positive": positive,
        "negative": negative,
        "tried": [record(row, TRIED) for row in weakest_first],
    }


def covariate_facts(page: Page, row: Mapping[str, Any], penalty: str | None) -> dict[str, str]:
    """Lines of a card: how many covariates are used, under which penalty, and how it was chosen."""
    say, facts = page.say, {}
    if row["n_used"] is not None:
        used, n = whole(row["n_used"]), whole(row["n_covariates"])
        facts["covariates"] = say("models.of", used=used, all=n)
    if penalty is not None:
        facts["penalty"] = _penalty(page, row, penalty)
    if row["folds"] is not None:
        facts["cross_validation"] = say(
            "models.folds",
            folds=row["folds"],
            repeats=say.count("repetition", row["repeats"]),
            seed=row["seed"],
        )
    return facts


def _penalty(page: Page, row: Mapping[str, Any], penalty: str) -> str:
    say = page.say
    kind = say.label("penalty", penalty)
    strengths = [
        say(f"models.{key}", value=significant(row[key])) for key in ("l1", "l2") if row[key]
    ]
    if row["variance"] is not None:
        strengths.append(say("models.variance", value=significant(row["variance"])))
    return f"{kind} ({', '.join(strengths)})" if strengths else kind


def render_tried(page: Page, name: str, rows: Sequence[ReportRow]) -> Markup:
    """The curve of a cross-validation."""
    say = page.say
    has_variance = all(row["variance"] for row in rows)
    key = "variance" if has_variance else "l1" if any(row["l1"] for row in rows) else "l2"
    points = [{"at": row[key], **{k: row[k] for k in ("mean", "se", "chosen")}} for row in rows]
    desc = say(
        "cv.desc",
        n=len(rows),
        chosen=significant(next((r[key] for r in rows if r["chosen"]), None)),
    )
    drawn = cross_validation_figure(points, say(f"cv.{key}"), say, say("cv.title"), desc)
    columns = [
        TableColumn.number(say(f"cv.{name}"), name)
        for name in ("l1", "l2", "variance")
        if any(row[name] for row in rows)
    ]
    columns += [
        TableColumn.number(say("cv.mean"), "mean", 6),
        TableColumn.number(say("cv.se"), "se"),
        TableColumn.text(say("cv.chosen"), "chosen", lambda v: say("word.yes") if v else ""),
    ]
    data = page.table("tried", say("cv.table"), columns, rows)
    return page.figure(name, drawn, say("cv.caption"), data)


def render_coefficients(
    page: Page, name: str, caption: str, rows: Sequence[ReportRow], about: Mapping[str, Any]
) -> Markup:
    """Coefficients of one sign, with the means of both arms."""
    say = page.say
    columns = [
        TableColumn.text(say("balance.covariate"), "name"),
        TableColumn.number(say("models.coef"), "coef"),
        TableColumn.number(about["target"], "mean_target"),
        TableColumn.number(about["comparator"], "mean_comparator"),
    ]
    return page.table(name, caption, columns, rows, can_sort=True)
