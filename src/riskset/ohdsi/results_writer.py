"""The results of a study as files of OHDSI's results data model."""

import csv
import io
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from riskset._errors import InputError
from riskset.data.writers import check_replaceable, replacing_folder
from riskset.ohdsi.results_model import (
    BESIDE,
    DATABASE_FACTS,
    RESULTS,
    ModelColumn,
    ModelTable,
    specification_rows,
)
from riskset.ohdsi.results_rows import ROWS
from riskset.ohdsi.shared_study import SharedStudy
from riskset.results.folder import StudyResults

__all__ = ["export_results"]

MISSING = "NA"
SPECIFICATION = "resultsDataModelSpecification.csv"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
TIME = (1980, 1, 1, 0, 0, 0)
"""Of all files in the archive, so that the same results give the same bytes."""


def export_results(
    results: str | Path | StudyResults,
    folder: str | Path,
    *,
    database_id: str | None = None,
    database: Mapping[str, str] | None = None,
    min_cell_count: int | None = None,
) -> list[Path]:
    """Write results for OHDSI's viewers, in the results data model of CohortMethod.

    The folder gets the archive ``Results_<database_id>.zip`` with a CSV file for each table, and
    beside it ``database_meta_data.csv``, ``cg_cohort_definition.csv`` with the names of exposures
    and outcomes, and ``resultsDataModelSpecification.csv``, from which OHDSI's ResultModelManager
    makes the tables. Missing values are ``NA``. A hidden count is minus `min_cell_count`, and a
    hidden mean of a covariate minus `min_cell_count` over the people of the arm.

    All numbers are made from results that may be shared: those of ``DIR/results``, or those of
    ``DIR/private`` after the same rules have hidden small counts. Private results also have the
    effects that failed diagnostics; viewers hide them by the column ``unblind``.

    Parameters
    ----------
    results : path or StudyResults
        The folder of a run, whose shared results are taken, or opened results.
    folder : path
        A folder that does not exist, or is empty.
    database_id : str, optional
        Name of the database in all tables: letters, digits, dots, hyphens and underscores. Default:
        the abbreviation in the table cdm_source, else the name of the data.
    database : mapping, optional
        Columns of ``database_meta_data.csv`` that the results do not have, such as
        ``{"cdm_holder": "A hospital", "cdm_release_date": "2025-01-31"}``.
    min_cell_count : int, optional
        Counts above 0 and below this number are hidden, and those below the number of the study,
        which is the default. 0 hides no more than the results do.

    Returns
    -------
    list of Path
        The written files.

    Raises
    ------
    InputError
        If the folder has files, a name or a column is not valid, or two exposures, outcomes or
        analyses have the same number.

    References
    ----------
    Schuemie et al., CohortMethod 6.0, vignette "Results data model",
    https://ohdsi.github.io/CohortMethod/.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> from riskset.datasets import rhc_path
    >>> people = {"people": str(rhc_path()), "id": "id", "treatment": "swang1"}
    >>> study = {
    ...     "title": "Catheters",
    ...     "data": people | {"name": "SUPPORT", "covariates": {"columns": ["num_age"]}},
    ...     "exposures": {"catheter": {"value": 1}, "none": {"value": 0}},
    ...     "comparisons": [{"target": "catheter", "comparator": "none"}],
    ...     "outcomes": {"death": {"time": "time", "event": "event"}},
    ...     "analyses": {"1": {"propensity": {"penalty": "none"}, "weight": {"estimand": "ato"}}},
    ... }
    >>> with tempfile.TemporaryDirectory() as place:
    ...     results = rs.study.run(study, f"{place}/out")
    ...     written = rs.ohdsi.export_results(results, f"{place}/ohdsi")
    >>> [path.name for path in written][:3]
    ['Results_SUPPORT.zip', 'database_meta_data.csv', 'cg_cohort_definition.csv']
    """
    target = Path(folder)
    check_replaceable(target, "an export")
    _check_names(database_id, database or {})
    opened = StudyResults.open(results) if isinstance(results, str | Path) else results
    shared = SharedStudy(opened, database_id, database, min_cell_count)
    with replacing_folder(target) as temporary:
        names = [f"Results_{shared.database}.zip", *(f"{table.name}.csv" for table in BESIDE)]
        _write_archive(temporary / names[0], shared)
        for table in BESIDE:
            with (temporary / f"{table.name}.csv").open("w", encoding="utf-8", newline="") as file:
                _write(file, table, shared)
        with (temporary / SPECIFICATION).open("w", encoding="utf-8", newline="") as file:
            rows = list(specification_rows())
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return [target / name for name in (*names, SPECIFICATION)]


def _check_names(database_id: str | None, database: Mapping[str, str]) -> None:
    if database_id is not None and not NAME.fullmatch(database_id):
        raise InputError(
            f"`database_id` is part of the name of a file, but it is {database_id!r}.",
            hint="use letters, digits, dots, hyphens and underscores.",
        )
    known = [column.name for column in DATABASE_FACTS.columns if not column.is_key]
    for name in database:
        if name not in known:
            raise InputError.unknown_name("column", name, known, place="database_meta_data")


def _write_archive(path: Path, shared: SharedStudy) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for table in RESULTS:
            about = zipfile.ZipInfo(f"{table.name}.csv", TIME)
            about.compress_type = zipfile.ZIP_DEFLATED
            with (
                archive.open(about, "w", force_zip64=True) as stream,
                io.TextIOWrapper(stream, encoding="utf-8", newline="") as file,
            ):
                _write(file, table, shared)


def _write(file: IO[str], table: ModelTable, shared: SharedStudy) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows(_cells(table, ROWS[table.name](shared)))


def _cells(table: ModelTable, rows: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    names = {column.name for column in table.columns}
    for row in rows:
        if not row.keys() <= names:
            raise ValueError(f"unknown column of {table.name}: {sorted(row.keys() - names)}")
        yield [_cell(table, column, row.get(column.name)) for column in table.columns]


def _cell(table: ModelTable, column: ModelColumn, value: Any) -> str:
    """A value as readr, the reader of OHDSI's programs, reads it."""
    if value is None:
        if column.is_required:
            raise ValueError(f"{table.name}: a value of {column.name} is missing")
        return MISSING
    if column.type in ("int", "bigint"):
        return str(int(value))
    if column.type != "float":
        return str(value)
    number = float(value)
    if math.isinf(number):
        return "Inf" if number > 0 else "-Inf"
    if column.decimals is not None:
        number = round(number, column.decimals) + 0.0  # never -0.0
    return repr(number)
