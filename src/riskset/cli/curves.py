"""``riskset curves``: survival or cumulative incidence by group, as a table and a picture."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.table import Table

import riskset as rs
from riskset._errors import InputError, counted
from riskset._types import AnyArray
from riskset.cli.group_tests import (
    ComparisonOptions,
    FoundTests,
    group_tests,
    pairs_table,
    refuse_for_incidence,
)
from riskset.cli.input_options import FollowUpOptions, PatientsFile, check_readable, place
from riskset.cli.model_options import as_cause
from riskset.cli.options import DATA, RESULT, given, grouped, option, option_of
from riskset.cli.predict import parsed_times
from riskset.cli.restricted_means import differences_table, means_table, parsed_horizons
from riskset.cli.summary import print_written
from riskset.cli.terminal import facts, output, plain_number, plain_table, short
from riskset.data.column_roles import ColumnRoles
from riskset.data.writers import TABLE_SUFFIXES, check_target, write_table

__all__ = ["curves"]

MOST_SHOWN = 50
"""Groups in the summary; the table that is written has all of them."""

PICTURES = (".png", ".pdf", ".svg")


@dataclass(frozen=True, kw_only=True)
class CurveRows(FollowUpOptions):
    """The columns of the table, of which no others are read."""

    group: str | None = option(
        "Estimate a curve for each group in this column.", metavar="COL", panel=DATA
    )
    cluster: str | None = option_of(ColumnRoles, "cluster", metavar="COL", panel=DATA)
    table: str | None = place("table", metavar="NAME")
    query: str | None = place("query", metavar="SQL")

    def read(self, path: Path, cause: Any) -> "tuple[rs.Outcome, AnyArray | None]":
        """Times and events, and the label of each row's group."""
        # Here, because they bring DuckDB and pyarrow.
        from riskset.data.database import Database
        from riskset.data.files import open_file
        from riskset.data.outcome_columns import OutcomeColumns, identified

        check_readable(path)
        with Database() as database:
            labels = [name for name in (self.group, self.cluster) if name is not None]
            stored = open_file(
                database, path, table=self.table, query=self.query, identifiers=lambda _: labels
            )
            if self.group is not None and self.group not in stored.columns:
                raise InputError.unknown_name(
                    "--group column", self.group, stored.columns, place=path.name
                )
            # Only a column that was named divides the rows, whatever else it is called.
            named = {one.name: getattr(self, one.name) for one in fields(FollowUpOptions)}
            named_roles = ColumnRoles(**named, strata=self.group, cluster=self.cluster)
            roles = named_roles.find(stored.columns, path.name)
            table = identified(stored.table(), None, must_be_unique=False)
            columns = OutcomeColumns.read(table, roles)
        if cause is None:
            codes = np.unique(columns.event) if columns.event is not None else np.array([])
            first = next((int(code) for code in codes if code > 0), 1)
            cause = columns.event_labels.get(first, first)
        outcome = columns.outcome(roles, table.words, cause=cause)
        return outcome, columns.strata[0] if self.group is not None else None


@dataclass(frozen=True, kw_only=True)
class CurveOptions:
    """Which curves are estimated, and where they go."""

    cause: str | None = option(
        "Estimate the incidence of this event code (default: of all codes).",
        metavar="CODE",
        panel=RESULT,
    )
    times: str | None = option(
        "Write rows for these times only, not for every step.", metavar="T,T,...", panel=RESULT
    )
    rmst: str | None = option(
        "Also estimate restricted mean survival times up to these times, and the time lost to each "
        "cause.",
        metavar="T,T,...",
        panel=RESULT,
    )
    rmst_out: Path | None = option(
        "Write the restricted means to this .csv or .parquet file.", metavar="FILE", panel=RESULT
    )
    level: float = option("Compute intervals at this confidence level.", 0.95, panel=RESULT)
    interval: Literal["log-log", "log", "plain", "logit", "arcsine"] = option(
        "Compute intervals that are symmetric on this scale.", "log-log", panel=RESULT
    )
    band: Literal["equal-precision", "hall-wellner"] | None = option(
        "Add band_lower and band_upper to a table of survival: a simultaneous confidence band, "
        "which --plot then draws in place of the intervals.",
        panel=RESULT,
    )
    out: Path = option(
        "Write the curves to this .csv or .parquet file.", ..., metavar="FILE", panel=RESULT
    )
    plot: Path | None = option(
        "Draw the curves with intervals, numbers at risk and the p value of the test in this .png, "
        ".pdf or .svg file, up to the time at which 10 % are still at risk.",
        metavar="FILE",
        panel=RESULT,
    )
    quiet: bool = option("Print no summary; warnings are still printed.", False, panel=RESULT)


@grouped
def curves(
    patients: PatientsFile, *, rows: CurveRows, options: CurveOptions, tests: ComparisonOptions
) -> None:
    """Estimate survival (Kaplan-Meier) or cumulative incidence (Aalen-Johansen) by group.

    Incidence is estimated if --cause is given or if there are several kinds of event. The table has
    one row per group and time, with intervals and numbers at risk. Groups are compared by the
    log-rank test (--rho, --gamma and --weighting let early or late times count more), or by Gray's
    test of incidence; --trend, --pairwise and --max-combo add other tests. With --cluster, rows
    that belong together have robust standard errors and log-rank tests.
    """
    at = None if options.times is None else parsed_times("--times", options.times)
    horizons = _horizons(options, patients)
    check_target(options.out, suffixes=TABLE_SUFFIXES, inputs=[patients])
    if options.plot is not None:
        check_target(options.plot, suffixes=PICTURES, inputs=[patients, options.out])
    chosen = as_cause(options.cause)
    outcome, group = rows.read(patients, chosen)
    is_survival = chosen is None and np.unique(outcome.event[outcome.weight > 0]).max() <= 1
    estimate = rs.kaplan_meier if is_survival else rs.aalen_johansen
    tests.check(rows.group, is_survival=is_survival)
    if not is_survival:
        refuse_for_incidence(given(options, "band"))
    clusters: Any = {"cluster": outcome.cluster}
    result: Any = estimate(
        outcome, group, level=options.level, interval=options.interval, **clusters
    )
    columns, drawn = _columns(result, at, chosen), result
    if options.band is not None:
        drawn = result.confidence_band(options.band)
        limits = _columns(drawn, at, chosen)
        columns |= {f"band_{end}": limits[end] for end in ("lower", "upper")}
    compared = group_tests(outcome, group, _causes(result, chosen), tests)
    if options.plot is not None:
        _draw(options.plot, drawn, chosen, rows, compared.drawn)
    write_table(options.out, columns)
    means = None
    if horizons is not None:
        means = rs.restricted_mean(outcome, group, level=options.level, times=horizons, **clusters)
        if options.rmst_out is not None:
            write_table(options.rmst_out, _mean_columns(means))
    if not options.quiet:
        weighted = rows.weight is not None
        _print(patients.name, outcome, group, result, chosen, compared, weighted=weighted)
        _print_ends(result, at)
        if means is not None:
            _print_means(means)
        print_written(options.out, options.plot, options.rmst_out)


def _columns(result: Any, at: AnyArray | None, cause: object) -> dict[str, AnyArray]:
    """Every curve at its own times or at those asked for, one below the other."""
    parts = [curve.columns(at) for curve in result]
    sizes = [part["time"].size for part in parts]
    columns: dict[str, AnyArray] = {"group": np.repeat(np.array(result.groups), sizes)}
    columns |= {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if cause is None:
        return columns
    kept = columns["cause"] == cause
    return {name: values[kept] for name, values in columns.items()}


def _horizons(options: CurveOptions, patients: Path) -> AnyArray | None:
    """The horizons of restricted means, if any are asked for."""
    if options.rmst is None:
        if options.rmst_out is not None:
            raise InputError(
                "--rmst-out names a file for restricted means, but there are none.",
                hint="add the times up to which they are taken, for example --rmst 365.",
            )
        return None
    if options.rmst_out is not None:
        others = [one for one in (patients, options.out, options.plot) if one is not None]
        check_target(options.rmst_out, suffixes=TABLE_SUFFIXES, inputs=others)
    return parsed_horizons(options.rmst)


def _mean_columns(means: "rs.RestrictedMeans") -> dict[str, AnyArray]:
    """Restricted means of every group, one below the other."""
    parts = [mean.columns() for mean in means]
    columns: dict[str, AnyArray] = {
        "group": np.repeat(np.array(means.groups), [part["time"].size for part in parts])
    }
    return columns | {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _print_means(means: "rs.RestrictedMeans") -> None:
    """Restricted means, the differences from the first group, and horizons that are too late."""
    console = output()
    causes = means.means[0].causes.tolist()
    causes = causes if len(causes) > 1 else []
    console.print()
    console.print(means_table(means, causes, MOST_SHOWN))
    if len(means) > 1:
        console.print()
        console.print(differences_table(means, causes, MOST_SHOWN))
    for note in means.notes[:MOST_SHOWN]:
        console.print(note.message)


def _draw(
    path: Path,
    result: Any,
    cause: Any,
    rows: CurveRows,
    test: "rs.GroupTest | rs.MaxComboTest | None",
) -> None:
    # Here, because they bring matplotlib.
    from riskset.cli.pictures import save
    from riskset.plot import incidence_by_group, survival_by_group
    from riskset.plot._curve_axes import MAX_LINES

    if len(result) > MAX_LINES:
        raise InputError(
            f"{len(result):,} groups do not fit one picture, which has room for {MAX_LINES}.",
            hint="leave --plot out (the table has all groups), or keep the rows of fewer groups.",
        )
    words: dict[str, Any] = {"xlabel": rows.time or "time", "test": test}
    if rows.group is not None:
        words["title"] = f"By {rows.group}"
    if isinstance(result, rs.KaplanMeier):
        axes = survival_by_group(result, **words)
    elif cause is None and len(result.causes) > 1 and len(result) > 1:
        raise InputError(
            "a picture shows one cause by group, but there are several causes: "
            f"{', '.join(map(str, result.causes))}.",
            hint="name one with --cause, or leave --plot out: the table has all causes.",
        )
    else:
        axes = incidence_by_group(result, cause, **words)
    save(path, axes)


# -------------------------------------------------------------------- what is printed


def _print(
    source: str,
    outcome: "rs.Outcome",
    group: AnyArray | None,
    result: Any,
    cause: object,
    compared: FoundTests,
    *,
    weighted: bool,
) -> None:
    is_survival = isinstance(result, rs.KaplanMeier)
    causes = _causes(result, cause)
    about = facts()
    n_events = int(np.count_nonzero(outcome.event > 0))
    groups = "" if group is None else f", {counted(len(result), 'group')}"
    size = f"{counted(outcome.n_rows, 'row')}, {counted(n_events, 'event')}{groups}"
    about.add_row("read", f"{source}: {size}")
    about.add_row("estimate", "Kaplan-Meier" if is_survival else "Aalen-Johansen")
    absent = int(np.count_nonzero(outcome.weight == 0))
    if absent:
        about.add_row("left out", f"rows of weight 0: {absent:,}")
    for name, words in compared.lines:
        about.add_row(name, words)
    console = output()
    console.print(about)
    console.print()
    console.print(
        _medians(result, weighted=weighted) if is_survival else _incidences(result, causes)
    )
    if len(result) > MOST_SHOWN:
        console.print(f"and {counted(len(result) - MOST_SHOWN, 'more group')}")
    if compared.pairs is not None:
        console.print()
        console.print(pairs_table(compared.pairs, MOST_SHOWN))
        if len(compared.pairs) > MOST_SHOWN:
            console.print(f"and {counted(len(compared.pairs) - MOST_SHOWN, 'more pair')}")


def _print_ends(result: Any, at: AnyArray | None) -> None:
    """Say which of the times asked for lie after the follow-up of a group, so have no estimate."""
    ended = [] if at is None else [c for c in result if bool((at > c.end).any())]
    if not ended:
        return
    listed = [f"{short(str(c.label), 26)} at {c.end:g}" for c in ended[:MOST_SHOWN]]
    more = len(ended) - len(listed)
    words = ", ".join(listed) + (f" and {counted(more, 'more group')}" if more else "")
    output().print(f"Follow-up ends before the last of the times: {words}. Later rows are empty.")


def _causes(result: Any, cause: object) -> list[Any]:
    """Those of an incidence that are shown; of survival, None."""
    if isinstance(result, rs.KaplanMeier):
        return [None]
    return [cause] if cause is not None else list(result.causes.tolist())


def _medians(result: Any, *, weighted: bool) -> Table:
    """Events and median survival of each group."""
    table = plain_table()
    table.add_column("group", no_wrap=True)
    for title in (
        "weight" if weighted else "rows",
        "events",
        "median",
        f"{100 * result.level:g}% interval",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    for curve in result.curves[:MOST_SHOWN]:
        median, lower, upper = (plain_number(time) or "-" for time in curve.quantile(0.5))
        size = curve.n_events.sum() + curve.n_censored.sum()
        table.add_row(
            short(str(curve.label), 26),
            f"{size:,g}",
            f"{curve.n_events.sum():,g}",
            median,
            f"{lower} to {upper}",
        )
    return table


def _incidences(result: Any, causes: list[Any]) -> Table:
    """Events of each cause in each group, and the incidence in the end."""
    table = plain_table()
    table.add_column("group", no_wrap=True)
    table.add_column("cause", no_wrap=True)
    for title in ("events", "at time", "incidence", f"{100 * result.level:g}% interval"):
        table.add_column(title, justify="right", no_wrap=True)
    for curve in result.curves[:MOST_SHOWN]:
        for cause in causes:
            k = curve.position(cause)
            table.add_row(
                short(str(curve.label), 20),
                short(str(cause), 16),
                f"{curve.n_events[k].sum():,g}",
                plain_number(curve.time[-1]),
                f"{curve.incidence[k, -1]:.4f}",
                f"{curve.lower[k, -1]:.4f} to {curve.upper[k, -1]:.4f}",
            )
    return table
