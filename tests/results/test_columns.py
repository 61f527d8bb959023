"""Every column of the results has a type, a kind and a meaning, or its table is refused."""

import pytest

from riskset.results import rows
from riskset.results.columns import KINDS, ResultRow, column, row_class
from riskset.results.rows import TABLES


@row_class
class WithoutKindRow(ResultRow, table="new"):
    """A row with a field that says nothing of what may be shared."""

    people: int = 0


def test_a_field_without_a_kind_is_refused() -> None:
    with pytest.raises(TypeError, match=r"WithoutKindRow\.people .*`column`"):
        WithoutKindRow.columns()


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="a column needs a kind, one of id, .*'number'"):
        column("number", "how many there are")  # type: ignore[arg-type]


def test_every_row_class_is_a_table_whose_columns_have_a_kind_and_a_meaning() -> None:
    classes = [c for c in vars(rows).values() if isinstance(c, type) and issubclass(c, ResultRow)]
    # Classes that others extend, such as OfRun, are no tables.
    declared = {c for c in classes if c is not ResultRow and c.__name__.endswith("Row")}
    assert declared == set(TABLES.values())
    for table in TABLES.values():
        for one in table.columns().values():
            assert one.kind in KINDS, (table.table, one.name)
            assert one.about, (table.table, one.name)
