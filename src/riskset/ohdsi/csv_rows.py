"""Rows of the small CSV files in which OHDSI's programs list cohorts."""

import csv
from pathlib import Path

from riskset._errors import CohortError

__all__ = ["csv_rows", "whole_number"]


def csv_rows(path: Path) -> list[tuple[str, dict[str, str]]]:
    """Rows of a file, each with its place for messages; the names of columns as ``cohortid``.

    R's programs write cohort_id, cohortId and COHORT_ID, and ``NA`` for a missing value.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            return [
                (
                    f"{path.name}, line {reader.line_num}",
                    {_plain(k): _value(v) for k, v in row.items()},
                )
                for row in reader
            ]
    except OSError as error:
        raise CohortError("BadFile", f"{str(path)!r} cannot be read: {error.strerror}.") from None
    except (ValueError, csv.Error) as error:
        raise CohortError(
            "BadFile", f"{path.name} is not a CSV file: {error}.", hint="write it as UTF-8."
        ) from None


def whole_number(written: str, column: str, place: str) -> int:
    """The number of a cell, which R may write as 1e+05 or 7.0."""
    try:
        number = int(written) if written.isdecimal() else int(float(written))
        if number > 0 and float(written) == number:
            return number
    except (OverflowError, ValueError):
        pass
    shown = repr(written) if written else "empty or missing"
    raise CohortError(
        "BadFile",
        f"{place}: `{column}` must be a whole number above 0, but it is {shown}.",
        hint=f"the file needs a column {column} with a number in each row.",
    )


def _plain(column: object) -> str:
    return str(column).replace("_", "").strip().lower()


def _value(cell: object) -> str:
    text = cell.strip() if isinstance(cell, str) else ""
    return "" if text == "NA" else text
