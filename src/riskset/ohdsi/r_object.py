"""Objects that R has saved, as values of Python."""

import warnings
from pathlib import Path

from riskset._errors import CohortError, MissingDependencyError

__all__ = ["read_r_object"]


def read_r_object(path: Path) -> object:
    """The object of a file of R's ``saveRDS``: vectors as lists, and as a value if they have one.

    Data frames become mappings of columns. What only R has, such as a call, becomes its text.
    """
    try:
        import rdata
    except ImportError:
        raise MissingDependencyError(
            "files of R need the package rdata, which is not installed.",
            hint="pip install 'riskset[ohdsi]'.",
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes that only R has
            return _plain(rdata.read_rds(path))
    except (ValueError, LookupError, EOFError, OSError, NotImplementedError, TypeError) as error:
        raise CohortError(
            "BadFile", f"{path.name} cannot be read as a file of R: {error}", hint="save it again."
        ) from None


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if hasattr(value, "to_dict"):  # a data frame of pandas
        return _plain(value.to_dict("list"))
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list):
        return _plain(value[0]) if len(value) == 1 else [_plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    return str(value)
