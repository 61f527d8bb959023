"""Write the figures and tables of a study to files for articles."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from riskset._errors import InputError
from riskset.data.writers import check_replaceable, replacing_folder
from riskset.report.content import collect
from riskset.report.html_page import draw, page_of
from riskset.report.kept_tables import KeptTable, TableKeeper
from riskset.report.source import ReportPart, ReportSource
from riskset.report.translations import Translations
from riskset.results.folder import StudyResults
from riskset.tables import write_tables

__all__ = ["FORMATS", "export"]

FIGURES = ("png", "pdf", "svg")
TABLES = {"csv": ".csv", "docx": ".docx", "latex": ".tex"}
"""Formats of tables -> endings of their files."""
FORMATS = (*FIGURES, *TABLES)
DPI = 300
DATE = "1970-01-01"
"""Of a page that nobody sees."""
MAX_NAME = 60


def export(
    results: str | Path | StudyResults,
    folder: str | Path,
    formats: str | Sequence[str] = ("png", "csv"),
    *,
    language: str = "en",
    blind: bool | None = None,
    min_cell_count: int | None = None,
) -> list[Path]:
    r"""Write the figures and tables of a study to a folder, for articles and slides.

    The files have what the report shows, and no more: small counts and effects of estimates whose
    diagnostics failed are withheld as in `riskset.report.write`.

    Figures are forest plots of all estimates and of subgroups, curves, the hazard ratio over time
    (scaled Schoenfeld residuals), the overlap of preference scores and the ROC curve of the score,
    a love plot, balance before and after, negative controls (a funnel), and the coverage of
    calibrated intervals. Each is a file in ``figures``. Tables are those of the
    report, with all their rows: CSV files in ``tables``, LaTeX tables for ``\input`` in
    ``latex``, and the Word document ``tables.docx``. With several outcomes or comparisons, each has
    a folder or a document.

    Parameters
    ----------
    results : path or StudyResults
        The folder of results, or the opened results.
    folder : path
        A folder that does not exist, or is empty.
    formats : str or sequence of str
        Any of "png" (300 dots per inch), "pdf" and "svg" for figures, "csv", "docx" and "latex" for
        tables.
    language, blind, min_cell_count
        As for `riskset.report.write`.

    Returns
    -------
    list of Path
        The written files.

    Raises
    ------
    InputError
        If a format is unknown, the folder has files, or the results are not those of a study.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.report.export("out", "article", ["pdf", "docx"])  # doctest: +SKIP
    """
    chosen = [formats] if isinstance(formats, str) else list(formats)
    for name in chosen:
        if name not in FORMATS:
            raise InputError(
                f"{name!r} is not a format in which figures or tables can be written.",
                hint=f"choose among {', '.join(FORMATS)}.",
            )
    if not chosen:
        raise InputError("`formats` is empty.", hint=f"name some of {', '.join(FORMATS)}.")
    target = Path(folder)
    check_replaceable(target, "an export")
    say = Translations(language)
    opened = StudyResults.open(results) if isinstance(results, str | Path) else results
    source = ReportSource(opened, say, blind=blind, min_cell_count=min_cell_count)
    parts = source.parts()
    if not parts:
        raise InputError(
            "the results have no outcome of interest, so there is nothing to export.",
            hint="list one in the specification that is not a control.",
        )
    with replacing_folder(target) as temporary:
        written = _write(source, parts, chosen, temporary)
        names = [path.relative_to(temporary) for path in written]
    return [target / name for name in names]


def _write(
    source: ReportSource, parts: Sequence[ReportPart], formats: Sequence[str], folder: Path
) -> list[Path]:
    content, say = collect(source), source.say
    folders = _folders(parts)
    keeper = TableKeeper(say, min_cell_count=content["min_cell_count"])
    draw(content, say, "light", DATE, page=keeper)
    written: list[Path] = []
    for name in formats:
        if name in TABLES:
            written += _tables(keeper.kept, folders, folder, name)
    of_figures = [name for name in formats if name in FIGURES]
    if not of_figures:
        return written
    # Here, because they bring matplotlib.
    from riskset.plot._canvas import save_plot
    from riskset.report.pictures import pictures

    for k, (part, facts) in enumerate(zip(parts, content["parts"], strict=True)):
        page = page_of(replace(keeper, kept=[]), k, facts["about"], len(parts) > 1)
        estimate = part.estimate
        level = 0.95 if estimate is None else estimate.interval_level
        for name, axes in pictures(page, facts, level):
            for suffix in of_figures:
                path = folder / "figures" / folders[k] / f"{name}.{suffix}"
                path.parent.mkdir(parents=True, exist_ok=True)
                save_plot(axes, path, dpi=DPI)
                written.append(path)
    return written


def _tables(
    kept: Sequence[KeptTable], folders: Sequence[str], folder: Path, name: str
) -> list[Path]:
    """Every table in a file of its own, or all of a part in a document."""
    if name == "docx":
        return list(_documents(kept, folders, folder))
    written: list[Path] = []
    place = folder / ("tables" if name == "csv" else name)
    for table in kept:
        inside = place if table.part is None else place / folders[table.part]
        path = inside / f"{table.name}{TABLES[name]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path not in written:  # an index stands on every page
            written.append(write_tables([table.table], path))
    return written


def _documents(kept: Sequence[KeptTable], folders: Sequence[str], folder: Path) -> Iterable[Path]:
    for k, name in enumerate(folders):
        own = [one.table for one in kept if one.part == k]
        if k == 0:
            own = [one.table for one in kept if one.part is None] + own
        if own:
            yield write_tables(own, folder / (f"tables-{name}.docx" if name else "tables.docx"))


def _folders(parts: Sequence[ReportPart]) -> list[str]:
    """A name for the files of each part; none if there is only one."""
    if len(parts) == 1:
        return [""]
    names = []
    for k, part in enumerate(parts, start=1):
        words = "-".join(part.label(group) for group in ("target", "comparator", "outcome"))
        short = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")[:MAX_NAME].strip("-")
        names.append(f"{k}-{short}" if short else str(k))
    return names
