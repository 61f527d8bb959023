"""Doing a study, and writing what it found."""

import datetime
import functools
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from riskset._progress import ProgressBar
from riskset.data.writers import check_folder
from riskset.disclosure.engine import Disclosure
from riskset.disclosure.people import share_data
from riskset.results.folder import StudyResults, check_replaceable, write_results
from riskset.results.rows import TABLES
from riskset.study.assembling import Tables
from riskset.study.cdm_source import CdmSource
from riskset.study.cdm_tables import open_cdm
from riskset.study.cohorts import Source
from riskset.study.data_sections import CdmData
from riskset.study.doing import Doing
from riskset.study.specification import Study
from riskset.study.steps import Steps
from riskset.study.table_columns import TableColumns
from riskset.study.table_source import TableSource
from riskset.study.words import study_document

__all__ = ["check_data", "run"]


def run(
    study: Study | Mapping[str, Any] | str | Path,
    out: str | Path,
    *,
    progress: bool | None = None,
    date: datetime.date | None = None,
) -> StudyResults:
    """Do a study, or what of it is not done yet.

    Parameters
    ----------
    study : Study, mapping or path
        Or the content or the file of its specification.
    out : str or Path
        The folder to write to, made if it is absent: ``results`` (`StudyResults`; may be shared),
        ``private`` (the same without anything hidden or withheld) and ``steps`` (data of single
        people, for going on after a stop; may be deleted).
    progress : bool, optional
        Show a bar; default: on a terminal.
    date : date, optional
        Of the run; default: today.

    Returns
    -------
    StudyResults

    Raises
    ------
    InputError
        If the specification or the data cannot be used, another run has the folder, or its
        ``results`` or ``private`` hold something else, which is never replaced. An estimate that
        cannot be made is no error: its status in the table `runs` says why.
    """
    if isinstance(study, str | Path):
        study = Study.read(study)
    elif not isinstance(study, Study):
        study = Study(study)
    folder = Path(out)
    for part in (folder, *(folder / name for name in ("steps", "results", "private"))):
        check_folder(part)
    for name in ("results", "private"):
        check_replaceable(folder / name)
    started = time.perf_counter()
    with (
        closing(Steps(folder / "steps")) as steps,
        _source(study, steps) as source,
        ProgressBar("study", progress) as bar,
    ):
        analyses = list(Doing(study, source, steps, bar).all())
        tables = Tables(study, source, steps, analyses)
        own = study.specification.sharing
        document = study_document(study, source.sources)
        last = {
            "date": (date or datetime.date.today()).isoformat(),
            "seconds": round(time.perf_counter() - started, 3),
            "steps": steps.times,
        }
        for name, least, blind in (
            ("private", 0, False),
            ("results", own.min_cell_count, own.blind),
        ):
            found = Disclosure(functools.partial(tables.rows, blind=blind), TABLES, least)
            shown = {table: found.shown(kind) for table, kind in TABLES.items()}
            data = {"data": share_data(document["data"], found)}
            write_results(folder / name, document | data, last, shown)
    return StudyResults.open(folder / "results")


def check_data(study: Study) -> None:
    """Look whether the files, tables and columns exist that a study names, without reading them.

    Raises
    ------
    InputError
        Names the line of the specification.
    """
    if isinstance(study.specification.data, CdmData):
        open_cdm(study).close()
    else:
        TableColumns.find(study)


@contextmanager
def _source(study: Study, steps: Steps) -> Iterator[Source]:
    if not isinstance(study.specification.data, CdmData):
        yield TableSource(study, steps)
        return
    with closing(CdmSource(study, steps)) as source:
        yield source
