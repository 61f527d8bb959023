"""Sentences are made from values, each with a kind that says how much of it is shared."""

import json

import pytest

from riskset._messages import Note, Sentence, Value
from riskset.disclosure.sentences import WITHHELD, shared_sentence
from source_tree import FILES, numbers_in_templates, place

LEAST = 5
ONE_ROW = Sentence("{n:row|rows}", {"n": Value("count", 1)})


@pytest.mark.parametrize(
    ("text", "values", "shown"),
    [
        ("{0:person|people} of {1}", [("count", 3), ("count", 4)], "fewer than 5 people of f5"),
        ("{0} ({1})", [("name", "'x 3'"), ("measure", 0.98)], "'x 3' (...)"),
        ("{0} of {1}", [("count", 3.2), ("count", 97)], "f5 of about 100"),
        ("{0} of {1:.2f} %", [("count", 12), ("measure", 1e-3)], "about 10 of ... %"),
        ("{0} of {1}", [("fewer", 3), ("about", 250)], "f5 of about 250"),
        ("{0} of {1:row|rows}", [("count", 7), ("count", 10)], "some of about 10 rows"),
        ("{0} of {1}", [("count", 10), ("count", 10)], "about 10 of about 10"),
        ("{0} and {1} of {2}", [("count", 0), ("things", 3), ("setting", 4)], "0 and 3 of 4"),
        ("{0} since {1}", [("fewer", 10), ("setting", "2020-01-03")], "f10 since 2020-01-03"),
        ("{0:row|rows} are left out", [("tabulated", 3)], "some rows are left out"),
        ("why: {0}", [("sentence", ONE_ROW)], "why: f5 rows"),
        ("3 of {0}", [("count", 30)], str(WITHHELD)),
        ("coefficient 0", [], "coefficient 0"),
    ],
)  # fmt: skip
def test_numbers_of_sentences(text, values, shown):
    named = {f"v{k}": Value(*value) for k, value in enumerate(values)}
    sentence = Sentence(text.replace("{", "{v").replace("{vn", "{n"), named)
    once = shared_sentence(sentence, LEAST)
    assert str(once) == shown.replace("f5", "fewer than 5").replace("f10", "fewer than 10")
    assert shared_sentence(once, LEAST) == once
    assert Sentence.from_list(json.loads(json.dumps(once.to_list()))) == once


def test_a_higher_minimum_rounds_sentences_anew():
    sentence = Sentence("{n} of {of}", {"n": Value("count", 3), "of": Value("count", 254)})
    assert str(shared_sentence(shared_sentence(sentence, 5), 60)) == "fewer than 60 of about 1000"


@pytest.mark.parametrize("path", FILES, ids=place)
def test_notes_and_errors_with_values_have_no_number_in_their_text(path):
    """A number among the values has a kind; one in the text of a template would have none."""
    assert list(numbers_in_templates(path)) == []


def test_a_value_needs_a_kind():
    with pytest.raises(ValueError, match="needs a kind"):
        Value("people", 3)
    with pytest.raises(TypeError, match="must be a Value, with kind"):
        Note("few", (), "{n} rows", {"n": 3})
