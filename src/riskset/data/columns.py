"""Single columns of a file as labels, for what is no part of a data set, such as given folds."""

from collections.abc import Sequence
from pathlib import Path

from riskset._types import AnyArray
from riskset.data.database import Database
from riskset.data.files import open_file
from riskset.data.table import labels

__all__ = ["read_labels"]


def read_labels(
    path: Path, names: Sequence[str], *, table: str | None = None, query: str | None = None
) -> list[AnyArray]:
    """Labels of every row, in the order of the file.

    Raises
    ------
    InputError
        If a column is absent or has missing values.
    """
    with Database() as database:
        stored = open_file(database, path, table=table, query=query, identifiers=lambda _: names)
        whole = stored.table()
        return [labels(whole, name, whole.array(name)) for name in names]
