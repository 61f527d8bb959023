"""What a table of results is: its columns, their types, and what each means.

Four names say which estimate a row belongs to: target, comparator, outcome and analysis, as the
specification calls them. What several estimates share has a number: `ps` a propensity score,
`adjustment` a set of weights. Counts that were too small to be shared are null, and `suppressed`
names their columns; effects that failed diagnostics are null, and `blinded` is true.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from riskset.data.typed_file import TYPES
from riskset.disclosure.kinds import KINDS, Kind

__all__ = ["COMPARISON", "RUN", "SUPPRESSED", "Column", "Table", "counts", "effect", "table"]

RUN = """
target                 text    id      name of the target
comparator             text    id      name of the comparator
outcome                text    id      name of the outcome
analysis               text    id      name of the analysis
"""

COMPARISON = """
target                 text    id      name of the target
comparator             text    id      name of the comparator
analysis               text    id      name of the analysis
"""

SUPPRESSED = """
suppressed             text    summary columns hidden because of small counts, by commas
"""


def counts(arm: str) -> str:
    """Columns of the counts of one arm."""
    return f"""
{arm}_persons             int?    count   people of the {arm}
{arm}_exposures           int?    count   rows of the {arm}; people may enter twice
{arm}_days                number? derived days at risk, first and last day counted
{arm}_outcomes            int?    count   outcomes
{arm}_competing           int?    count   competing events
{arm}_rate                number? derived outcomes per 1000 person-years
{arm}_rate_lower          number? derived lower end of its exact Poisson interval of 95 %
{arm}_rate_upper          number? derived upper end
{arm}_weighted_rate       number? derived with the weights of the adjustment
{arm}_weighted_rate_lower number? derived lower end of its interval of 95 %
{arm}_weighted_rate_upper number? derived upper end
"""


def effect(prefix: str = "", about: str = "") -> str:
    """Columns of a hazard ratio."""
    return f"""
{prefix}hr                number? effect  {about}hazard ratio of target against comparator
{prefix}hr_lower          number? effect  lower end of its interval; may be 0
{prefix}hr_upper          number? effect  upper end; may be infinite
{prefix}log_hr            number? effect  its logarithm; infinite with events in one arm
{prefix}se                number? effect  standard error of the logarithm
{prefix}p                 number? effect  two-sided p
{prefix}one_sided_p       number? effect  p for a ratio above 1
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
    kind : str
        What its values tell of people: one of `riskset.disclosure.kinds.KINDS`.
    about : str
    """

    name: str
    type: str
    is_optional: bool
    kind: Kind
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

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Kind of each column."""
        return {column.name: column.kind for column in self.columns}


def table(name: str, about: str, text: str) -> Table:
    """A table from a description: in each line a name, a type, a kind, and what it means.

    ``?`` behind a type says that values may be missing.
    """
    columns = []
    for line in text.split("\n"):
        if not line:
            continue
        word, type_, kind_word, meaning = line.split(maxsplit=3)
        kind = next((known for known in KINDS if known == kind_word), None)
        if type_.removesuffix("?") not in TYPES or kind is None:
            raise ValueError(
                f"{name}: a column needs a name, a type and a kind, but it is {line!r}"
            )
        is_optional = type_.endswith("?")
        columns.append(Column(word, type_.removesuffix("?"), is_optional, kind, meaning))
    return Table(name, about, tuple(columns))
