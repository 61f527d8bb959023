"""Every statement in every dialect: as it is sent, and as the parser of the dialect reads it."""

import datetime
import json
from pathlib import Path

import pytest
import sqlglot
from sqlglot import expressions

from riskset.warehouse import statements
from riskset.warehouse.dialects import DIALECTS, translated
from riskset.warehouse.statements import KeyRows, RowLimits, ServerTable

SNAPSHOT = Path(__file__).with_name("statements.json")
NAMES = ("Person_ID", "visit start", "VISIT_END_DATE", "visit_concept_id")
VISITS = ServerTable(
    "",
    "CDM 5",
    "Visit_Occurrence",
    {
        "person_id": "Person_ID",
        "visit_start_date": "visit start",
        "visit_end_date": "VISIT_END_DATE",
        "visit_concept_id": "visit_concept_id",
    },
)
ROWS = KeyRows(
    VISITS,
    ("person_id", "visit_start_date"),
    "person_id",
    RowLimits("visit_start_date", "visit_end_date", -365, 0),
)


def written(dialect):
    """Name -> statement, as riskset writes it."""
    people = statements.people_with_records(
        VISITS, "visit_concept_id", range(1001), "person_id", "visit_start_date"
    )
    few = statements.people_with_records(
        VISITS, "visit_concept_id", [1, 2], "person_id", "visit_start_date"
    )
    day = datetime.date(2020, 2, 29)
    return {
        "catalogue": statements.catalogue(dialect, "", "CDM 5"),
        "first row": statements.first_row(VISITS),
        "number of rows": statements.count_rows(VISITS),
        "whole table": statements.whole_table(VISITS, ["person_id", "visit_concept_id"]),
        "people": few,
        "people of many concepts": people,
        "temporary table": statements.temporary_table("riskset_people", few),
        "rows by table": statements.keyed_by_table(
            ROWS, f"{dialect.temporary_prefix}riskset_people"
        ),
        "rows by list": statements.keyed_by_list(ROWS, [3, 4], day, day),
        "rows of nobody": statements.keyed_by_list(ROWS, []),
        "drop": statements.drop_temporary(dialect, "riskset_people"),
    }


def sent(kind):
    dialect = DIALECTS[kind]
    return {name: translated(sql, dialect) for name, sql in written(dialect).items()}


def shortened(statement):
    """Without the middle of a long list of numbers."""
    numbers = ", ".join(map(str, range(1000)))
    return statement.replace(numbers, "0, ..., 999")


@pytest.mark.parametrize("kind", DIALECTS)
def test_statements_are_as_they_were(kind):
    """After a change of statements, write the file again and look at what it shows."""
    known = json.loads(SNAPSHOT.read_text("utf-8"))
    assert {name: shortened(sql) for name, sql in sent(kind).items()} == known[kind]


@pytest.mark.parametrize("kind", DIALECTS)
def test_each_dialect_reads_them(kind):
    """Its parser finds no unknown command, and only words that the database has."""
    dialect = DIALECTS[kind]
    for name, statement in sent(kind).items():
        (tree,) = sqlglot.parse(statement, read=dialect.sqlglot)
        assert not tree.find(expressions.Command), name
        assert not tree.find(expressions.Anonymous), name  # a function that it does not know
        meant = sqlglot.parse_one(written(dialect)[name], read="snowflake")
        for part in (expressions.Column, expressions.Literal):
            found = {one.name for one in tree.find_all(part)}
            assert {one.name for one in meant.find_all(part)} - {"-1", "1"} <= found | {"366"}, name
        # Words that sqlglot passes on to databases that lack them.
        if kind == "sqlserver":
            assert not tree.find(expressions.Interval), name
            assert "INTERVAL" not in statement
            assert "LIMIT" not in statement


@pytest.mark.parametrize("kind", DIALECTS)
@pytest.mark.parametrize("schema", ["x\\' OR 1=1 --", "cdm\\", "x' OR 1=1 --", '"; DROP TABLE x'])
def test_a_name_of_a_schema_is_never_more_than_a_name(kind, schema):
    """Dialects differ in whether a backslash is an escape."""
    dialect = DIALECTS[kind]
    statement = translated(statements.catalogue(dialect, "", schema), dialect)
    (tree,) = sqlglot.parse(statement, read=dialect.sqlglot)
    assert schema.lower() in {one.this for one in tree.find_all(expressions.Literal)}
    assert not tree.find(expressions.Or)


def test_the_snapshot_knows_every_dialect():
    assert {*json.loads(SNAPSHOT.read_text("utf-8"))} == {*DIALECTS}


if __name__ == "__main__":
    content = {kind: {n: shortened(s) for n, s in sent(kind).items()} for kind in DIALECTS}
    SNAPSHOT.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
