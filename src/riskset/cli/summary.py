"""Fitted models and paths on the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.markup import escape
from rich.table import Table

import riskset as rs
from riskset._errors import counted
from riskset._messages import Note, spoken
from riskset._types import Features, Index
from riskset.cli.terminal import facts, output, plain_number, plain_table, ratio, short
from riskset.cli.wording import COMMAND_LINE

if TYPE_CHECKING:
    from riskset.estimators._interval import ConfidenceInterval

__all__ = ["print_fit", "print_path", "print_written"]

MAX_ROWS = 20
MIN_NAME, MAX_NAME = 9, 26
UNDEFINED = "-"
NOT_ESTIMATED = "not estimated"
FIXED = "fixed"
MAX_BASES = 6
# Codes of notes that the fit has given as warnings, and of those that are counts.
WARNED = ("infinite", "max_iter", "not_estimable", "undecided", "collinear", "near_ties")
COUNTED = ("dropped",)
LEFT_OUT = {
    "rows_of_weight_0": "rows of weight 0: {:,}",
    "unknown_rows": "entries of the long table of unknown rows: {:,}",
    "repeated_entries": "entries merged with another of their row and covariate: {:,}",
    "zero_entries": "entries of value 0: {:,}",
}


def print_fit(
    source: str,
    data: "rs.Dataset",
    model: "rs.Cox | rs.FineGray | rs.CoxFrailty",
    interval: "ConfidenceInterval | None",
    seconds: Mapping[str, float],
) -> None:
    """What was read, the certificate, and the largest coefficients."""
    n_features, n_kept = len(model.covariates_), int(np.count_nonzero(model.coef_))
    table = facts()
    strata = f", {model.n_strata_:,} strata" if model.n_strata_ > 1 else ""
    size = f"{counted(model.n_rows_, 'row')}, {counted(model.n_events_, 'event')}{strata}"
    table.add_row("read", f"{source}: {size}")
    table.add_row("model", _model(model))
    if isinstance(model, (rs.CoxCV, rs.FineGrayCV)):
        best, tried = model.best_penalty_, model.cross_validation_
        how = "chosen" if len(tried) > 1 else "given, and scored"
        table.add_row("penalty", f"l1 = {best.l1:g}, l2 = {best.l2:g}, {how} by cross-validation")
        table.add_row(
            "score",
            f"{tried.score_name}: mean {model.best_score_:,.4f}, se {tried.se[tried.chosen]:,.4f}; "
            f"{_penalties(len(tried))} in {'' if tried.is_complete.all() else 'up to '}"
            f"{counted(tried.repeats.size, 'replicate')}, relative KKT residual "
            f"at most {tried.largest_kkt:.1e} (tolerance {model.tol_replicates:.0e})",
        )
    elif isinstance(model, rs.CoxFrailty):
        _add_frailties(table, model)
    elif model.penalty is not None:
        table.add_row("penalty", f"l1 = {model.penalty.l1:g}, l2 = {model.penalty.l2:g}")
    kept = f", {n_kept:,} with a coefficient other than 0" if n_kept < n_features else ""
    n_fixed = int(np.count_nonzero(model._is_fixed))
    fixed = f", {n_fixed:,} fixed" if n_fixed else ""
    table.add_row("covariates", f"{n_features:,}{kept}{fixed}")
    add_left_out(table, data, model.covariates_, model.n_dropped_)
    table.add_row(
        "log likelihood",
        f"{model.log_likelihood_:,.4f}, without covariates {model.null_log_likelihood_:,.4f}",
    )
    colour = "green" if model.status_ == "converged" else "yellow"
    table.add_row(
        "status",
        f"[{colour}]{model.status_}[/], relative KKT residual {model.kkt_:.1e} after "
        f"{counted(model.n_iter_, 'step')}",
    )
    _add_notes(table, model.notes_, (*WARNED, *COUNTED))
    spent = [f"{what.replace('_', '-')} {value:.2f}" for what, value in seconds.items()]
    table.add_row("seconds", ", ".join(spent))
    console = output()
    console.print(table)
    console.print()
    coefficients = _coefficients(model, interval)
    # The width of a console limits what it measures, so a wide one measures.
    least = output(1000).measure(coefficients).minimum
    output(least).print(coefficients)
    if n_kept > MAX_ROWS:
        console.print(f"[dim]The {MAX_ROWS} largest of {n_kept:,} are shown; the file has all.[/]")


def add_left_out(
    table: Table, data: "rs.Dataset", covariates: Sequence[str], n_dropped: Mapping[str, int]
) -> None:
    """What of the data does not count, and against which levels categories stand."""
    fitted = set(covariates)
    bases = [
        (name, levels[0])
        for name, levels in data.schema.encoder.levels.items()
        if data.schema.encoder.factors  # a formula says it in the names of its columns
        if f"{name}={levels[0]}" not in fitted
    ]
    if bases:
        shown = [f"{short(name, 20)} {short(level, 20)}" for name, level in bases][:MAX_BASES]
        more = f", and {len(bases) - MAX_BASES} more" if len(bases) > MAX_BASES else ""
        table.add_row("reference levels", ", ".join(shown) + more)
    # A count without words here is reported, too.
    counts = [LEFT_OUT.get(what, what + ": {:,}").format(n) for what, n in n_dropped.items() if n]
    if counts:
        table.add_row("left out", "; ".join(counts))


def _add_notes(table: Table, notes: Sequence[Note], said: Sequence[str]) -> None:
    """Notes of the fit, except those that are printed elsewhere."""
    for note in notes:
        if note.code not in said:
            table.add_row("note", escape(spoken(note.message, COMMAND_LINE)))


def _add_frailties(table: Table, model: "rs.CoxFrailty") -> None:
    """The variance of the frailties, and the test that it is 0."""
    test = model.frailty_test_
    tested = "" if np.isnan(test.statistic) else f", p = {test.p_value:.2g} against 0"
    table.add_row(
        "frailties",
        f"{model.frailty} of {counted(model.n_clusters_, 'cluster')}: variance "
        f"{plain_number(model.frailty_variance_)}{tested}; {model.df_:,.1f} degrees of freedom",
    )
    table.add_row("integrated", f"log likelihood {model.integrated_log_likelihood_:,.4f}")


def _model(model: "rs.Cox | rs.FineGray | rs.CoxFrailty") -> str:
    if isinstance(model, rs.FineGray):
        ties = f"Breslow ties, censoring ties as {model.censoring_ties}"
        return escape(f"Fine-Gray, cause {model.cause!r}, {ties}")
    cause = "" if model.cause is None else f", cause {model.cause!r}, other causes censored"
    is_firth = isinstance(model, rs.Cox) and model.firth
    firth = ", Firth's penalised likelihood" if is_firth else ""
    return escape(f"Cox, {model.ties.title()} ties{firth}{cause}")


def _coefficients(
    model: "rs.Cox | rs.FineGray | rs.CoxFrailty", interval: "ConfidenceInterval | None"
) -> Table:
    """The coefficients that are not 0; if there are many, those that stand out most, by size."""
    error, is_robust = None, False
    if isinstance(model, rs.CoxFrailty):
        error = model.standard_error_
    elif not model._is_penalized:
        is_robust = model.is_robust_
        # Beside an interval stands the error that it is made of.
        is_robust = is_robust if interval is None else interval.method == "robust"
        error = model.robust_standard_error_ if is_robust else model.standard_error_
    table = plain_table()
    table.add_column("covariate", no_wrap=True, min_width=MIN_NAME)
    titles = ["coef", "hazard ratio"]
    if error is not None:
        titles.append("robust se" if is_robust else "se")
    if interval is not None:
        titles.append(f"{100 * interval.level:g}% interval")
    rows: list[tuple[str, list[str]]] = []
    lost, held = model._not_estimated, model._is_fixed
    labels = model._columns.labels.texts(model.covariates_)
    for j in _shown(model, error, () if interval is None else interval.names):
        name = model.covariates_[j]
        row = [plain_number(model.coef_[j]), ratio(model.coef_[j])]
        if lost[j]:
            row = ["", NOT_ESTIMATED]
        if error is not None:
            row.append(FIXED if held[j] else plain_number(error[j]))
        if interval is not None and name in interval.bounds:
            lower, upper = interval.bounds[name]
            is_defined = lower <= upper
            row.append(f"{ratio(lower)} to {ratio(upper)}" if is_defined else UNDEFINED)
        row += [""] * (len(titles) - len(row))
        rows.append((labels[j], row))
    widths = [
        max(map(len, column)) for column in zip(titles, *(row for _, row in rows), strict=True)
    ]
    for title, width in zip(titles, widths, strict=True):
        table.add_column(title, justify="right", no_wrap=True, min_width=width)
    # The name gets what the numbers leave; a number that is cut is another number.
    room = max(MIN_NAME, min(MAX_NAME, output().width - sum(widths) - 3 * len(widths)))
    for name, row in rows:
        table.add_row(short(name, room), *row)
    return table


def _shown(
    model: "rs.Cox | rs.FineGray | rs.CoxFrailty", error: Features | None, asked: Sequence[str]
) -> Index:
    """Columns to print: all in their order, or the unpenalised ones, then the largest."""
    coef = model.coef_
    # A penalty may hold one at 0 whose interval was asked for.
    shown = np.flatnonzero((coef != 0) | model._not_estimated | np.isin(model.covariates_, asked))
    if shown.size <= MAX_ROWS:
        return shown
    size = np.abs(coef[shown]) if error is None else np.abs(coef[shown] / error[shown])
    size = np.nan_to_num(size, nan=np.inf)
    if model._kind is not None and error is None:
        size[model._kind.factors(model.covariates_)[shown] == 0] = np.inf
    return shown[np.argsort(-size, kind="stable")[:MAX_ROWS]]


def print_path(
    source: str,
    data: "rs.Dataset",
    model: "rs.Cox | rs.FineGray",
    result: "rs.PathResult",
    read: float,
) -> None:
    """Some twenty points of a path."""
    known = result._source.data
    table = facts()
    outcome = known.outcome
    rows = f"{counted(outcome.n_rows, 'row')}, {counted(outcome.n_events, 'event')}"
    columns = counted(len(result.names), "covariate")
    table.add_row("read", f"{source}: {rows}, {columns} in {read:.2f} s")
    table.add_row("model", _model(model))
    add_left_out(table, data, result.names, known.n_dropped)
    certified = sum(status == "converged" for status in result.statuses)
    table.add_row(
        "path",
        f"{_penalties(len(result))} in {result.seconds:.2f} s, {certified:,} converged, "
        f"relative KKT residual at most {np.max(result.kkt):.1e}",
    )
    _add_notes(table, result.notes, COUNTED)
    console = output()
    console.print(table)
    console.print()
    points = plain_table()
    for title in ("strength", "not 0", "log likelihood", "KKT residual", "status"):
        points.add_column(title, justify="left" if title == "status" else "right", no_wrap=True)
    picked = np.unique(np.linspace(0, len(result) - 1, min(MAX_ROWS, len(result))).round())
    for k in picked.astype(int):
        points.add_row(
            plain_number(result.strengths[k]),
            f"{result.n_nonzero[k]:,}",
            f"{result.log_likelihoods[k]:,.4f}",
            f"{result.kkt[k]:.1e}",
            result.statuses[k],
        )
    console.print(points)


def print_written(*paths: Path | None) -> None:
    """Where the results are."""
    names = " and ".join(str(path) for path in paths if path is not None)
    if names:
        output().print(f"\nwritten to {names}", soft_wrap=True)


def _penalties(count: int) -> str:
    return counted(count, "penalty", "penalties")
