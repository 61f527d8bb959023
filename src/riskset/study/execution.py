"""Run a study and write its results."""

import datetime
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from riskset._progress import ProgressBar
from riskset.data.writers import check_folder, check_replaceable
from riskset.disclosure.engine import Disclosure
from riskset.disclosure.people import share_data
from riskset.results.folder import STUDY, StudyResults, write_results
from riskset.results.rows import TABLES
from riskset.study.cache import StepCache
from riskset.study.narrative import study_document
from riskset.study.result_rows import ResultRows
from riskset.study.runner import StudyRunner
from riskset.study.sources.cdm_opening import open_cdm
from riskset.study.sources.cdm_source import CdmSource
from riskset.study.sources.cohort_method_source import CohortMethodSource, open_files
from riskset.study.sources.source import StudySource
from riskset.study.sources.table_source import TableSource
from riskset.study.specification.data_sections import CdmData, CohortMethodFiles, TableData
from riskset.study.specification.study_definition import Study
from riskset.warehouse.pull import PullProgress

__all__ = ["check_data", "run"]


def run(
    study: Study | Mapping[str, Any] | str | Path,
    out: str | Path,
    *,
    progress: bool | Literal["steps"] | None = None,
    date: datetime.date | None = None,
) -> StudyResults:
    """Run a study, or resume one that was interrupted.

    The command ``riskset study run`` also writes the report, which in Python
    `riskset.report.write` does.

    Parameters
    ----------
    study : Study, mapping or path
        A study, or the content or file of its specification.
    out : str or Path
        Output folder, created if necessary: ``results`` (`StudyResults`; may be shared),
        ``private`` (the same with nothing hidden or withheld) and ``steps`` (individual-level data
        to resume from; may be deleted).
    progress : bool or "steps", optional
        Show a progress bar. Default: only in a terminal. "steps" writes a line to standard error
        whenever a step has ended.
    date : date, optional
        Date of the run. Default: today.

    Returns
    -------
    StudyResults

    Raises
    ------
    InputError
        If the specification or the data are not valid, another run uses the folder, or its
        ``results`` or ``private`` have other contents, which are never replaced. An estimate that
        is not possible is not an error: its status in the table `runs` gives the reason.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> from riskset.datasets import rhc_path
    >>> covariates = {"columns": ["num_age", "num_aps1"]}
    >>> people = {"people": str(rhc_path()), "id": "id", "treatment": "swang1"}
    >>> study = {
    ...     "title": "Catheters",
    ...     "data": people | {"covariates": covariates},
    ...     "exposures": {"catheter": {"value": 1}, "none": {"value": 0}},
    ...     "comparisons": [{"target": "catheter", "comparator": "none"}],
    ...     "outcomes": {"death": {"time": "time", "event": "event"}},
    ...     "analyses": {
    ...         "weighted": {
    ...             "propensity": {"penalty": "none"},
    ...             "weight": {"estimand": "ato"},
    ...         }
    ...     },
    ... }
    >>> with tempfile.TemporaryDirectory() as place:
    ...     results = rs.study.run(study, place)
    ...     (row,) = results.rows("estimates", role="main")
    >>> row["status"], round(row["hr"], 2)
    ('ok', 1.02)
    """
    if isinstance(study, str | Path):
        study = Study.read(study)
    elif not isinstance(study, Study):
        study = Study(study)
    folder = Path(out)
    for part in (folder, folder / "steps"):
        check_folder(part)
    for name in ("results", "private"):
        check_replaceable(folder / name, "a run", STUDY)
    started = time.perf_counter()
    with (
        ProgressBar("study", progress) as bar,
        closing(StepCache(folder / "steps", bar.end_step)) as cache,
        _source(study, cache, bar) as source,
    ):
        analyses = list(StudyRunner(study, source, cache, bar).run())
        sharing = study.specification.sharing
        document = study_document(study, source.sources, source.provenance)
        last = {
            "date": (date or datetime.date.today()).isoformat(),
            "seconds": round(time.perf_counter() - started, 3),
            "steps": cache.times,
        }
        for name, least, blind in (
            ("private", 0, False),
            ("results", sharing.min_cell_count, sharing.blind),
        ):
            rows = ResultRows(study, source, cache, analyses, blind=blind)
            disclosure = Disclosure(rows.rows, TABLES, least)
            shown = {table: disclosure.shown(kind) for table, kind in TABLES.items()}
            data = {"data": share_data(document["data"], disclosure)}
            write_results(folder / name, document | data, last, shown)
    return StudyResults.open(folder / "results")


def check_data(study: Study) -> None:
    """Check the data of a study without running it.

    A table of people is read, with its covariates, exposures and outcomes, and so are files of
    CohortMethod. Of a CDM, only the files and tables are looked for.

    Raises
    ------
    InputError
        If a file, table or column does not exist, an exposure has no row, or the data are not
        valid. The message gives the line of the specification, or the column and row.

    Examples
    --------
    >>> import riskset as rs
    >>> study = rs.study.Study.parse(rs.study.example())
    >>> rs.study.check_data(study)  # no error: the data are valid
    """
    if isinstance(study.specification.data, CdmData):
        open_cdm(study).close()
        return
    if isinstance(study.specification.data, CohortMethodFiles):
        with ExitStack() as stack:
            open_files(study, stack)
        return
    with (
        tempfile.TemporaryDirectory(prefix="riskset-", ignore_cleanup_errors=True) as folder,
        closing(StepCache(Path(folder))) as cache,
    ):
        TableSource(study, cache).check()


@contextmanager
def _source(study: Study, cache: StepCache, bar: ProgressBar) -> Iterator[StudySource]:
    data = study.specification.data
    if isinstance(data, TableData):
        yield TableSource(study, cache)
        return

    def tell(pull: PullProgress) -> None:
        bar.update(0.0, f"pull {pull.words}")
        if pull.made is not None:
            cache.end(
                "pull",
                pull.table,
                pull.seconds,
                reused=pull.is_reused,
                words=pull.words,
                pulled=pull.made.date().isoformat(),
            )

    if isinstance(data, CdmData):
        opened: CdmSource = CdmSource(study, cache, tell)
    else:
        opened = CohortMethodSource(study, cache)
    with closing(opened) as source:
        yield source
