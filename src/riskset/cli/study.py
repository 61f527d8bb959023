"""``riskset study``: a whole comparative cohort study from one file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from riskset._errors import InputError, ReportTooLarge
from riskset._messages import Surface, spoken
from riskset.cli.options import grouped, require
from riskset.cli.terminal import (
    facts,
    fail,
    hush_compiling,
    output,
    plain_number,
    plain_table,
    progress_of,
    short,
    warn,
)
from riskset.cli.wording import COMMAND_LINE

if TYPE_CHECKING:
    import riskset as rs

__all__ = ["show_estimates", "study"]

MAX_LINES = 40
NOT_IMPORTED = "not-imported.json"
LABELLED = (("outcomes", "outcome"), ("analyses", "analysis"))
"""Parts of study.json whose labels a line has, and the columns that name them."""

DIAGNOSTICS = {
    "balance": "largest standardised difference after adjustment",
    "shared_balance": "largest standardised difference in the shared balance",
    "equipoise": "share of people in equipoise",
    "mdrr": "smallest detectable {ratio}",
    "ease": "expected absolute systematic error",
    "generalisability": "largest difference between all and those analysed",
}

study = typer.Typer(
    help="Run a comparative cohort study that is specified in one file.",
    no_args_is_help=True,
)

FILE = typer.Argument(metavar="STUDY", help="Specification of the study, in YAML or JSON.")


@contextmanager
def _spoken(surface: Surface | None = None) -> Iterator[None]:
    """Errors that name keys of the specification, or options."""
    # Here, because it brings NumPy, which `riskset --help` does not wait for.
    from riskset.study.specification.keys import KEYS

    try:
        yield
    except InputError as error:
        fail(spoken(error, surface or KEYS))
        raise typer.Exit(2) from None


@study.command()
def run(
    specification: Annotated[Path, FILE],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Write the results to this folder.")
    ],
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing and show no progress bar.")
    ] = False,
) -> None:
    """Run a study, or resume one that was interrupted.

    DIR gets `report.html`, `results` (tables and documents that may be shared), `private` (the
    same with small counts and withheld effects) and `steps` (data of individuals, from which an
    interrupted run is resumed and which new analyses reuse).
    """
    # Here, because it brings numba and DuckDB, which `riskset --help` does not wait for.
    from riskset.study import run as run_study

    with _spoken():
        hush_compiling(quiet)
        results = run_study(specification, out, progress=progress_of(quiet))
        written = _report(results, out / "report.html")
    if quiet:
        return
    console = output()
    console.print(f"[bold]{short(results.study['title'], 200)}[/]\n")
    show_estimates(results)
    table = facts()
    steps = results.run["steps"]
    reused = sum(step["reused"] for step in steps)
    table.add_row("steps", f"{len(steps) - reused:,} run, {reused:,} reused")
    if kept := [step["pulled"] for step in steps if step["reused"] and "pulled" in step]:
        table.add_row("database", f"tables of {min(kept)} (`cache_days: 0` reads them anew)")
    table.add_row("seconds", f"{results.run['seconds']:.1f}")
    table.add_row("results", short(str(results.path), 200))
    if written is not None:
        table.add_row("report", short(str(written), 200))
    console.print(table)


def _report(results: "rs.study.StudyResults", path: Path) -> Path | None:
    """Write the report, if there is anything to report; one that is too large is only a warning."""
    from riskset.report import write

    if all(run["outcome_kind"] != "outcome" for run in results.rows("runs")):
        return None
    try:
        return write(results, path)
    except ReportTooLarge as error:
        warn(str(error))
        return None


@study.command()
@grouped
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `riskset study run --out` wrote.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="HTML",
            help="Write the report to this file (default: DIR/report.html).",
        ),
    ] = None,
    private: Annotated[
        bool,
        typer.Option(
            "--private", help="Include small counts and withheld effects; do not share this report."
        ),
    ] = False,
    curves: Annotated[
        Literal["risk", "survival"] | None,
        typer.Option(help="Draw risks or survival; survival needs data without competing events."),
    ] = None,
) -> None:
    """Write the report of a study again, or a private one that must not be shared."""
    from riskset.report import write

    with _spoken(COMMAND_LINE):
        if not folder.is_dir():
            raise InputError(
                f"{str(folder)!r} is not a folder.",
                hint="give the folder that was passed to `riskset study run --out`.",
            )
        if private:
            target = out or folder / "private-report.html"
            place = folder / "private"
            written = write(place, target, blind=False, min_cell_count=0, curves=curves)
        else:
            written = write(folder, out or folder / "report.html", curves=curves)
    output().print(short(str(written), 500), soft_wrap=True)


@study.command()
@grouped
def export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder that `riskset study run --out` wrote.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FOLDER", help="Write figures and tables to this folder."),
    ] = None,
    evidence: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write estimates and likelihood profiles for EvidenceSynthesis and "
            "`riskset network meta` to this folder.",
        ),
    ] = None,
    ohdsi: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the results data model of CohortMethod, which OHDSI's viewers read, to "
            "this folder.",
        ),
    ] = None,
    database_id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name the database in the tables of --ohdsi (default: the abbreviation in the "
            "table cdm_source, else the name of the data).",
        ),
    ] = None,
    database: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Set a column of database_meta_data.csv of --ohdsi, such as "
            "database_name='My hospital'. May be repeated.",
        ),
    ] = None,
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="F,F,...",
            help="Write figures as png, pdf or svg, and tables as csv, docx or latex.",
        ),
    ] = "png,csv",
    private: Annotated[
        bool,
        typer.Option(
            "--private", help="Include small counts and withheld effects; do not share these files."
        ),
    ] = False,
) -> None:
    """Write the figures and tables of a study for articles and slides, or files for other programs.

    The files have what the report shows: without `--private`, small counts and withheld effects are
    in none of them.
    """
    with _spoken(COMMAND_LINE):
        if private and (evidence is not None or ohdsi is not None):
            raise InputError(
                "--evidence and --ohdsi write what is shared, so they have no private files.",
                hint="leave --private out, or write figures and tables alone with --out.",
            )
        if out is None and evidence is None and ohdsi is None:
            raise InputError(
                "there is nothing to write.",
                hint="name a folder with --out, --evidence or --ohdsi.",
            )
        named = [*(["--database-id"] if database_id else []), *(["--database"] if database else [])]
        require(named if ohdsi is None else [], "--ohdsi", "add --ohdsi FOLDER, or leave this out.")
        facts_of_it = dict(_fact(word) for word in database or ())
        written = [] if out is None else _export_files(folder, out, formats, private)
        if evidence is not None:
            written.append(_export_evidence(folder, evidence))
        if ohdsi is not None:
            written += _export_ohdsi(folder, ohdsi, database_id, facts_of_it)
    for path in written:
        output().print(short(str(path), 500), soft_wrap=True)


def _export_files(folder: Path, out: Path, formats: str, private: bool) -> list[Path]:
    """Figures and tables in some formats."""
    from riskset.report import export as export_study

    names = [name.strip() for name in formats.split(",") if name.strip()]
    if private:
        return export_study(folder / "private", out, names, blind=False, min_cell_count=0)
    return export_study(folder, out, names)


def _export_evidence(folder: Path, out: Path) -> Path:
    """Estimates and likelihood profiles."""
    from riskset.network import write_evidence
    from riskset.study import StudyResults

    return write_evidence(StudyResults.open(folder), out)


def _export_ohdsi(
    folder: Path, out: Path, database_id: str | None, database: dict[str, str]
) -> list[Path]:
    """The results data model of CohortMethod."""
    from riskset.ohdsi import export_results

    return export_results(folder, out, database_id=database_id, database=database)


def _fact(word: str) -> tuple[str, str]:
    """A column of the description of a database, and its value."""
    name, sign, value = word.partition("=")
    if not sign or not name:
        raise InputError(
            f"--database must be COLUMN=VALUE, but it is {word!r}.",
            hint="for example --database database_name='My hospital'.",
        )
    return name, value


@study.command()
def check(specification: Annotated[Path, FILE]) -> None:
    """Check a specification without running it.

    The keys and values are checked, and whether the files and columns that they name exist. A table
    of people is read, so that missing values, invalid outcomes and exposures without a row are
    reported; a CDM is not.
    """
    from riskset.study import Study, check_data

    with _spoken():
        study = Study.read(specification)
        check_data(study)
    output().print(f"{short(repr(study), 200)}: no errors found.", soft_wrap=True)


@study.command("import")
@grouped
def import_(
    specification: Annotated[
        Path,
        typer.Argument(
            metavar="ANALYSIS", help="Specification of Strategus or CohortMethod, in JSON."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Write the studies to this folder.")
    ],
    cdm: Annotated[
        str, typer.Option("--cdm", metavar="PATH", help="Run the studies on this OMOP CDM.")
    ] = "cdm",
    title: Annotated[
        str | None, typer.Option("--title", help="Give the studies this title.")
    ] = None,
) -> None:
    """Write the studies of a specification of OHDSI's Strategus or CohortMethod.

    DIR gets `study.yaml`, or a file for each group of comparisons that differ in their outcomes or
    settings, the cohort definitions, and `not-imported.json`: what has no counterpart in riskset.
    """
    from riskset.study import import_specification

    with _spoken(COMMAND_LINE):
        found = import_specification(specification, out, cdm=cdm, title=title)
    console = output()
    for path in found.studies:
        console.print(short(str(path), 500), soft_wrap=True)
    if not found.lost:
        return
    count = len(found.lost)
    console.print(f"\n{count:,} {'setting has' if count == 1 else 'settings have'} no counterpart:")
    for one in found.lost[:MAX_LINES]:
        console.print(f"[dim]{escape(one.place)}:[/] {escape(one.reason)}", soft_wrap=True)
    if count > MAX_LINES:
        console.print(f"[dim]and {count - MAX_LINES:,} more in {NOT_IMPORTED}[/]")


@study.command()
@grouped
def example(
    name: Annotated[
        Literal["rhc", "cdm", "paper"], typer.Argument(help="Print this example.")
    ] = "rhc",
) -> None:
    """Print an example specification to start from.

    The data are a table of people (rhc), an OMOP CDM (cdm), or many covariates in a long table
    (paper).
    """
    from riskset.study import example as text

    typer.echo(text(name), nl=False)


def show_estimates(results: "rs.study.StudyResults") -> None:
    """The main estimates of a study as a table."""
    # Here, because it brings NumPy, which `riskset --help` does not wait for.
    from riskset.cohort.effects.effect_scale import effect_name

    runs = [run for run in results.rows("runs") if run["outcome_kind"] == "outcome"]
    main = {_names(row): row for row in results.rows("estimates", role="main")}
    table = plain_table()
    several = len({(run["target"], run["comparator"]) for run in runs}) > 1
    for title in (["comparison"] if several else []) + ["outcome", "analysis"]:
        table.add_column(title)
    shown = {main[_names(run)]["model"] for run in runs[:MAX_LINES] if _names(run) in main}
    for title in ("outcomes", effect_name(shown), "95% interval", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    reasons = []
    for run in runs[:MAX_LINES]:
        pair = [f"{run['target']} / {run['comparator']}"] if several else []
        labels = [results.study[group][run[name]]["label"] for group, name in LABELLED]
        limits = ([24] if several else []) + [20, 28]
        words = [short(text, n) for text, n in zip([*pair, *labels], limits, strict=True)]
        _line(table, words, run, main.get(_names(run)))
        why = _why(results, run)
        if why is not None:
            place = short(", ".join([*pair, *labels]), 200)
            reasons.append(f"[dim]{place}:[/] {short(why, 500)}")
    console = output()
    console.print(table)
    if len(runs) > MAX_LINES:
        console.print(f"[dim]and {len(runs) - MAX_LINES:,} more in estimates.parquet[/]")
    console.print()
    for line in reasons:
        console.print(line)
    if reasons:
        console.print()


def _why(results: "rs.study.StudyResults", run: dict[str, Any]) -> str | None:
    """Why there is no estimate to show."""
    if run["status"] != "ok":
        return str(run["reason"] or run["status"].replace("_", " "))
    if not run["blinded"]:
        return None
    checks = results.rows("diagnostics", **_columns(run), verdict="fail")
    is_shared = run["shared_adjustment"] == run["adjustment"]
    if is_shared and any(row["name"] == "balance" for row in checks):  # both say the same
        checks = [row for row in checks if row["name"] != "shared_balance"]
    failures = [_failure(row, _ratio_of(results, run)) for row in checks]
    return f"withheld, because the {'; the '.join(failures)}."


def _ratio_of(results: "rs.study.StudyResults", run: dict[str, Any]) -> str:
    """The name of the effect of a run, such as "hazard ratio"."""
    # Here, as above.
    from riskset.cohort.effects.effect_scale import effect_name

    rows = results.rows("estimates", **_columns(run), role="main")
    return effect_name(row["model"] for row in rows)


def _failure(check: dict[str, Any], ratio: str) -> str:
    """What a failed diagnostic is, without its value if small counts hide that."""
    value = check["value"]
    shown = "beyond its limit" if value is None else plain_number(value, 3)
    what = DIAGNOSTICS[check["name"]].format(ratio=ratio)
    return f"{what} is {shown} (limit {plain_number(check['limit'], 3)})"


def _columns(run: dict[str, Any]) -> dict[str, str]:
    return {name: run[name] for name in ("target", "comparator", "outcome", "analysis")}


def _names(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_columns(row).values())


def _line(table: Table, words: list[str], run: dict[str, Any], row: dict[str, Any] | None) -> None:
    if row is None or run["status"] != "ok" or row["hr"] is None:
        why = run["status"].replace("_", " ")
        why = "diagnostics fail" if why == "ok" and run["blinded"] else why
        table.add_row(*words, "", f"[dim]{why if why != 'ok' else 'hidden'}[/]", "", "")
        return
    events = [row[f"{arm}_outcomes"] for arm in ("target", "comparator")]
    shown = "/".join("<" if n is None else f"{n:,}" for n in events)
    interval = f"{row['hr_lower']:.2f} to {row['hr_upper']:.2f}"
    table.add_row(*words, shown, f"[bold]{row['hr']:.2f}[/]", interval, plain_number(row["p"], 2))
