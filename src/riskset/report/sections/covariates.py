"""What a model says of its covariates: their penalty, how it was chosen, the strongest of them."""

from collections.abc import Iterable, Sequence

from riskset.report.figures.lines import cross_validation_figure
from riskset.report.markup import Markup
from riskset.report.number_format import significant, whole
from riskset.report.page import Facts, Page, ReportRow, TableColumn
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


def covariate_facts(page: Page, row: Facts, penalty: str | None) -> dict[str, str]:
    """Lines of a card: how many covariates are used, under which penalty, and how it was chosen."""
    say, facts = page.say, {}
    if row["n_used"] is not None:
        used, n = whole(row["n_used"]), whole(row["n_covariates"])
        facts["covariates"] = say("models.of", used=used, all=n)
    if penalty is not None:
        kind = say.label("penalty", penalty)
        strengths = [
            say(f"models.{key}", value=significant(row[key]))
            for key in ("l1", "l2", "variance")
            if row[key]
        ]
        facts["penalty"] = f"{kind} ({', '.join(strengths)})" if strengths else kind
    if row["folds"] is not None:
        facts["cross_validation"] = say(
            "models.folds",
            folds=row["folds"],
            repeats=say.count("repetition", row["repeats"]),
            seed=row["seed"],
        )
    return facts


def render_tried(page: Page, name: str, rows: Sequence[ReportRow]) -> Markup:
    """The curve of a cross-validation."""
    say = page.say
    shown = [key for key in ("l1", "l2", "variance") if any(row[key] for row in rows)]
    axis = "variance" if all(row["variance"] for row in rows) else shown[0]
    points = [row | {"at": row[axis]} for row in rows]
    columns = [
        *page.columns(ScorePenaltyRow, *shown),
        TableColumn.number(say("cv.mean"), "mean", 6),
        *page.columns(ScorePenaltyRow, "se"),
        TableColumn.text(say("cv.chosen"), "chosen", lambda v: say("word.yes") if v else ""),
    ]
    return page.figure(
        "cv",
        cross_validation_figure(points, say(f"column.{axis}"), say),
        page.table("tried", say("cv.table"), columns, rows),
        name=name,
        n=len(rows),
        chosen=significant(next((row[axis] for row in rows if row["chosen"]), None)),
    )


def render_coefficients(page: Page, name: str, caption: str, rows: Sequence[ReportRow]) -> Markup:
    """Coefficients of one sign, with the means of both arms."""
    columns = page.columns(ScoreCoefficientRow, "name", "coef", "mean_target", "mean_comparator")
    return page.table(name, caption, columns, rows, can_sort=True)
