"""Columns that are pulled from a database at once, so that no question pulls a table again."""

from riskset.omop.characteristics import CONCEPTS, PLACES
from riskset.omop.pulled_columns import pulled_table


def test_characteristics_need_no_second_pull():
    pulled = pulled_table("person", ("person_id",)).columns
    needed = {*CONCEPTS.values(), *PLACES.values()}
    assert needed <= set(pulled)
