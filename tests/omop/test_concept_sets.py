"""Concept sets with flags of their own, worked out by hand from a small vocabulary."""

import json

import pyarrow as pa
import pytest

import riskset as rs
from riskset.omop import ConceptItem, ConceptSet

# 1 -> 2, 3; 2 -> 4 (deleted), 5. 91, 92 and 95 are codes mapped to 1, 2 and 5; 93 no longer is.
TABLES = {
    "person": pa.table({"person_id": [1]}),
    "concept": pa.table(
        {
            "concept_id": [1, 2, 3, 4, 5, 91, 92, 93, 95],
            "invalid_reason": [None, "", None, "D", None, "U", None, None, None],
        }
    ),
    "concept_ancestor": pa.table(
        {
            "ancestor_concept_id": [1, 1, 1, 1, 1, 2, 2, 2, 3],
            "descendant_concept_id": [1, 2, 3, 4, 5, 2, 4, 5, 3],
        }
    ),
    "concept_relationship": pa.table(
        {
            "concept_id_1": [91, 92, 93, 95, 91, 1],
            "concept_id_2": [1, 2, 1, 5, 2, 91],
            "relationship_id": ["Maps to"] * 4 + ["Is a", "Mapped from"],
            "invalid_reason": [None, None, "D", "", None, None],
        }
    ),
}

SETS = {
    "ids": (ConceptSet([1]), (1, 2, 3, 5)),
    "ids without descendants": (ConceptSet([1, 4], descendants=False), (1, 4)),
    "an invalid concept that is listed": (ConceptSet([4]), (4,)),
    "ids to exclude": (ConceptSet([1], exclude=[2]), (1, 3)),
    "flags of each": (ConceptSet([ConceptItem(1, descendants=False), 2]), (1, 2, 5)),
    "exclude one only": (ConceptSet([1, ConceptItem(2, False, exclude=True)]), (1, 3, 5)),
    "mapped": (ConceptSet([ConceptItem(2, mapped=True)]), (2, 5, 92, 95)),
    "mapped, no descendants": (ConceptSet([ConceptItem(1, False, mapped=True)]), (1, 91)),
    "mapped codes excluded": (
        ConceptSet([ConceptItem(1, mapped=True), ConceptItem(2, exclude=True, mapped=True)]),
        (1, 3, 91),
    ),
    "everything excluded": (ConceptSet([2], exclude=[1]), ()),
}


@pytest.fixture(scope="module")
def cdm():
    with rs.omop.Cdm(TABLES) as found:
        yield found


@pytest.mark.parametrize("name", SETS)
def test_by_hand(cdm, name):
    concepts, expected = SETS[name]
    assert concepts.ids(cdm) == expected


def _item(concept, **flags):
    return {"concept": {"CONCEPT_ID": concept, "CONCEPT_NAME": "x"}, **flags}


def test_a_set_of_atlas(cdm, tmp_path):
    expression = {
        "items": [
            _item(1, includeDescendants=True, isExcluded=False, includeMapped=True),
            _item(2, isExcluded=True),
        ]
    }
    path = tmp_path / "set.json"
    for content, name in ((expression, ""), ({"name": "Ones", "expression": expression}, "Ones")):
        path.write_text(json.dumps(content))
        found = ConceptSet.from_json(path)
        assert found.name == name
        assert found == ConceptSet.from_json(content)
        assert found.items == (
            ConceptItem(1, descendants=True, mapped=True),
            ConceptItem(2, descendants=False, exclude=True),
        )
        assert found.ids(cdm) == (1, 3, 5, 91, 92, 95)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"items": [{"isExcluded": False}]}, "item 1: it has no `concept`"),
        ({"items": [_item(1), {"concept": {"ID": 1}}]}, "item 2: its concept has no CONCEPT_ID"),
        ({"items": [_item(1, isExcluded="yes")]}, "isExcluded must be true or false, but it is"),
        ({"items": [_item("x")]}, "whole numbers above 0, but one is 'x'"),
        ({"items": 3}, "not a concept set: it has no `items`"),
        ([1, 2], "not a concept set"),
    ],
)
def test_what_is_not_a_concept_set(tmp_path, content, message):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(content))
    with pytest.raises(rs.CohortError, match=message) as caught:
        ConceptSet.from_json(path)
    assert "set.json" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(rs.CohortError, match=r"none\.json' cannot be read"):
        ConceptSet.from_json(tmp_path / "none.json")
    (tmp_path / "set.json").write_text("[" * 100_000)
    with pytest.raises(rs.CohortError, match=r"set\.json is not valid JSON"):
        ConceptSet.from_json(tmp_path / "set.json")


def test_mapped_codes_need_their_table():
    tables = {name: table for name, table in TABLES.items() if name != "concept_relationship"}
    with (
        rs.omop.Cdm(tables) as cdm,
        pytest.raises(rs.CohortError, match="concept_relationship"),
    ):
        ConceptSet([ConceptItem(1, mapped=True)]).ids(cdm)


def test_a_text_is_not_a_list():
    with pytest.raises(rs.InputError, match="list of concept ids, but this is '974166'"):
        ConceptSet("974166")


def test_a_set_comes_back_from_a_folder(tmp_path):
    concepts = ConceptSet([1, ConceptItem(2, exclude=True)], name="a")
    rs.omop.save(concepts, tmp_path / "set")
    assert rs.omop.load(tmp_path / "set") == concepts


def _set(number, name, *items):
    return {"id": number, "name": name, "expression": {"items": list(items)}}


@pytest.mark.parametrize(
    "content",
    [
        {"items": [_item(1, includeMapped=True)]},
        [_item(1, includeMapped=True)],
        _set(3, "one", _item(1, includeMapped=True)),
        [_set(3, "one", _item(1, includeMapped=True))],
        {"ConceptSets": [_set(0, "one", _item(1, includeMapped=True))], "PrimaryCriteria": {}},
        {"conceptSets": [_set(0, "one", _item(1, includeMapped=True))]},
        {
            "name": "a cohort",
            "expression": {"ConceptSets": [_set(0, "", _item(1, includeMapped=1 == 1))]},
        },
        {"id": 7, "name": "x", "expression": json.dumps({"items": [_item(1, includeMapped=True)]})},
        {"items": [{"concept": {"conceptId": " 1 "}, "includeMapped": True}]},
    ],
    ids=["bare", "items", "named", "list", "cohort", "webapi", "wrapped", "text", "camel case"],
)
def test_wrappers(tmp_path, content):
    path = tmp_path / "set.json"
    path.write_text(json.dumps(content))
    assert ConceptSet.from_json(path).items == (ConceptItem(1, descendants=False, mapped=True),)


def test_one_of_several_sets(tmp_path):
    path = tmp_path / "sets.json"
    path.write_text(json.dumps([_set(0, "a", _item(1)), _set(7, "bleeding", _item(2))]))
    for member in (7, "7", "bleeding"):
        assert ConceptSet.from_json(path, member=member).concepts == (2,)
    assert ConceptSet.from_json(path, member=7, name="mine").name == "mine"
    with pytest.raises(rs.CohortError, match="sets.json has 2 concept sets: 'a', 'bleeding'"):
        ConceptSet.from_json(path)
    with pytest.raises(
        rs.CohortError, match="no concept set 'bleedin'.*\n.*did you mean 'bleeding'"
    ):
        ConceptSet.from_json(path, member="bleedin")


def test_the_place_of_a_faulty_item(tmp_path):
    path = tmp_path / "cohort.json"
    path.write_text(json.dumps({"ConceptSets": [_set(0, "a", _item(1), {"isExcluded": True})]}))
    message = "cohort.json, ConceptSets, set 1, item 2: it has no `concept`"
    with pytest.raises(rs.CohortError, match=message):
        ConceptSet.from_json(path)
    path.write_text(json.dumps({"ConceptSets": [{"id": 0}]}))
    with pytest.raises(rs.CohortError, match="cohort.json, ConceptSets, set 1: it has no `items`"):
        ConceptSet.from_json(path)
    path.write_text(json.dumps({"name": "a", "expression": "{"}))
    with pytest.raises(rs.CohortError, match="a text that is not valid JSON"):
        ConceptSet.from_json(path)
