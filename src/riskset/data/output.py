"""Results as data frames of the library that the user works with."""

import importlib.util
from collections.abc import Mapping
from typing import Any

import narwhals as nw

from riskset._types import AnyArray

__all__ = ["data_frame"]


def data_frame(columns: Mapping[str, AnyArray], library: str | None) -> Any:
    """A data frame of named columns of equal length.

    Parameters
    ----------
    columns : mapping
        The first column labels the rows.
    library : str or None
        "pandas", "polars" or "pyarrow"; any other: pandas if it is installed, else Arrow, which
        always is.

    Returns
    -------
    pandas, polars or Arrow frame
        In pandas the first column is the index.
    """
    lists = {name: column.tolist() for name, column in columns.items()}
    if library == "polars":
        return nw.from_dict(lists, backend="polars").to_native()
    if library == "pyarrow" or not importlib.util.find_spec("pandas"):
        return nw.from_dict(lists, backend="pyarrow").to_native()
    return nw.from_dict(lists, backend="pandas").to_native().set_index(next(iter(columns)))
