"""What a table of results is: its columns, their types, and what each means.

Four names say which estimate a row belongs to: target, comparator, outcome and analysis, as the
specification calls them. What several estimates share has a number: `ps` a propensity score,
`adjustment` a set of weights. Counts that were too small to be shared are null, and `suppressed`
names their columns; effects that failed diagnostics are null, and `blinded` is true.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from riskset.data.typed_file import TYPES

__all__ = ["COMPARISON", "RUN", "SUPPRESSED", "Column", "Table", "counts", "effect", "table"]

RUN = """
target                 text    name of the target
comparator             text    name of the comparator
outcome                text    name of the outcome
analysis               text    name of the analysis
"""

COMPARISON = """
target                 text    name of the target
comparator             text    name of the comparator
analysis               text    name of the analysis
"""

SUPPRESSED = """
suppressed             text    columns of this row hidden because of small counts, by commas
"""


def counts(arm: str) -> str:
    """Columns of the counts of one arm."""
    return f"""
{arm}_persons             int?    people of the {arm}
{arm}_exposures           int?    rows of the {arm}: more than people if they may enter twice
{arm}_days                number? days at risk, first and last day counted
{arm}_outcomes            int?    outcomes
{arm}_competing           int?    competing events
{arm}_rate                number? outcomes per 1000 person-years
{arm}_rate_lower          number? lower end of its exact Poisson interval of 95 %
{arm}_rate_upper          number? upper end
{arm}_weighted_rate       number? with the weights of the adjustment
{arm}_weighted_rate_lower number? lower end of its interval of 95 %
{arm}_weighted_rate_upper number? upper end
"""


def effect(prefix: str = "", about: str = "") -> str:
    """Columns of a hazard ratio."""
    return f"""
{prefix}hr                number? {about}hazard ratio of target against comparator
{prefix}hr_lower          number? lower end of its interval; may be 0
{prefix}hr_upper          number? upper end; may be infinite
{prefix}log_hr            number? its logarithm; infinite with events in one arm
{prefix}se                number? standard error of the logarithm
{prefix}p                 number? two-sided p
{prefix}one_sided_p       number? p for a ratio above 1
"""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    type : {"text", "int", "number", "bool", "numbers"}
    is_optional : bool
        Whether values may be missing.
    about : str
    """

    name: str
    type: str
    is_optional: bool
    about: str


@dataclass(frozen=True)
class Table:
    """A table of results: ``<name>.parquet``.

    Attributes
    ----------
    name : str
    about : str
        What a row is.
    columns : tuple of Column
    """

    name: str
    about: str
    columns: tuple[Column, ...]

    @property
    def types(self) -> Mapping[str, str]:
        """Type of each column."""
        return {column.name: column.type for column in self.columns}


def table(name: str, about: str, text: str) -> Table:
    """A table from a description: in each line a name, a type, and what it means.

    ``?`` behind a type says that values may be missing.
    """
    columns = []
    for line in text.split("\n"):
        if not line:
            continue
        word, kind, meaning = line.split(maxsplit=2)
        assert kind.removesuffix("?") in TYPES, line
        columns.append(Column(word, kind.removesuffix("?"), kind.endswith("?"), meaning))
    return Table(name, about, tuple(columns))
