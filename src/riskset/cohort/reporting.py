"""The report of a study, under the name by which the other steps of a study are known."""

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
    """One HTML file of the results of a study, and its numbers as JSON: `riskset.report.write`.

    Parameters
    ----------
    study : path or StudyResults
        Results only: a report cannot reach data of single people.
    path, language, blind, min_cell_count, theme, curves, date
        As there.
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
