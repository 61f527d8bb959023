"""Single columns of a file as labels, for what is no part of a data set, such as given folds."""

from collections.abc import Sequence
from pathlib import Path

from riskset._errors import InputError
from riskset._types import AnyArray
from riskset.data.database import Database
from riskset.data.files import open_file
from riskset.data.table import labels

__all__ = ["read_labels"]


def read_labels(
    path: Path,
    named: Sequence[tuple[str, str]],
    *,
    table: str | None = None,
    query: str | None = None,
) -> tuple[list[AnyArray], tuple[str, ...]]:
    """Labels of every row, in the order of the file.

    Parameters
    ----------
    named : sequence of (what names it, column)

    Returns
    -------
    labels : list of (n,) arrays
    columns : tuple of str
        All that the file has.

    Raises
    ------
    InputError
        If a column is absent or has missing values.
    """
    names = [name for _, name in named]
    with Database() as database:
        stored = open_file(database, path, table=table, query=query, identifiers=lambda _: names)
        for what, name in named:
            if name not in stored.columns:
                raise InputError.unknown_name(
                    f"{what} column", name, stored.columns, place=path.name
                )
        whole = stored.table()
        return [labels(whole, name, whole.array(name)) for name in names], tuple(stored.columns)
