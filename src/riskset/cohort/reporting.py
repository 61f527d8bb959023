"""The report of a study as a function of `riskset.cohort`."""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime

__all__ = ["report"]


def report(
    study: object,
    path: str | Path,
    *,
    language: str = "en",
    blind: bool = True,
    min_cell_count: int = 5,
    theme: str = "light",
    curves: str | None = None,
    date: "str | datetime.date | None" = None,
) -> Path:
    """Write the HTML report of a study and its numbers as JSON; see `riskset.report.write`.

    Parameters
    ----------
    study : path or StudyResults
        Results of a study.
    path, language, blind, min_cell_count, theme, curves, date
        As for `riskset.report.write`.
    """
    # The report stands above all steps of a study, so it is found only when it is asked for.
    write = importlib.import_module("riskset.report").write
    made: Path = write(
        study,
        path,
        language=language,
        blind=blind,
        min_cell_count=min_cell_count,
        theme=theme,
        curves=curves,
        date=date,
    )
    return made
