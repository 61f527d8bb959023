"""The report of a study as a function of `riskset.cohort`."""

import importlib
from pathlib import Path
from typing import Any

__all__ = ["report"]


def report(study: object, path: str | Path, **options: Any) -> Path:
    """Write the HTML report of a study and its numbers as JSON.

    Parameters
    ----------
    study : path or StudyResults
        Results of a study.
    path, **options
        As for `riskset.report.write`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> study = rs.study.Study.parse(rs.study.example())
    >>> with tempfile.TemporaryDirectory() as place:
    ...     results = rs.study.run(study, Path(place, "study"))
    ...     rs.cohort.report(results, Path(place, "report.html"), theme="dark").name
    'report.html'
    """
    # Reports are built on all steps of a study, so the import has to wait for the first call.
    made: Path = importlib.import_module("riskset.report").write(study, path, **options)
    return made
