"""Messages are data: errors, warnings and notes in the words of each surface."""

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

import riskset as rs
from riskset._errors import (
    CohortError,
    DeviceError,
    InputError,
    MissingDependencyError,
    NotDefinedError,
    ReportTooLarge,
    RisksetError,
)
from riskset._messages import Note, Surface, Value, spoken


class Shell(Surface):
    """A surface with words of its own for what it has."""

    def argument(self, name: str) -> str | None:
        return None if name == "other" else f"--{name}"

    def setting(self, name: str, value: object) -> str:
        return f"--{name} {value}"

    def function(self, name: str) -> str:
        return f"shell {name.removeprefix('riskset.')}"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("`folds` must be 2, not `other`.", "--folds must be 2, not `other`."),
        ("pass `ties='efron'`.", "pass --ties efron."),
        ("pass `columns=('a', 'b')`.", "pass --columns ('a', 'b')."),
        ("use `riskset.path`, or `penalty=None`.", "use shell path, or --penalty None."),
        ("`cause=rs.X` is not a literal.", "`cause=rs.X` is not a literal."),
        # Commands, codes and names in the data are no references.
        ("`riskset fit --out`, cohort `7`", "`riskset fit --out`, cohort `7`"),
        ("column '`folds`' and folds='x'", "column '`folds`' and folds='x'"),
    ],
)
def test_code_spans_are_in_the_words_of_a_surface(message: str, words: str) -> None:
    assert spoken(message, Shell()) == words
    assert spoken(InputError(message), Shell()) == words
    assert spoken(message, Surface()) == message


ERRORS = [
    InputError("`folds` is 1.", hint="take 2.", value=1),
    NotDefinedError("`folds` is 1.", hint="take 2."),
    CohortError("BadId", "`folds` is 1.", hint="take 2.", details={"id": 3}),
    ReportTooLarge("`folds` is 1.", hint="take 2."),
    DeviceError("`folds` is 1.", hint="take 2."),
    MissingDependencyError("`folds` is 1.", hint="take 2."),
]


@pytest.mark.parametrize("copy_of", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_copies_of_errors_are_complete(
    error: RisksetError, copy_of: Callable[[RisksetError], RisksetError]
) -> None:
    again = copy_of(error)
    assert type(again) is type(error)
    assert str(again) == "`folds` is 1.\nHint: take 2."
    assert again.on_one_line() == "`folds` is 1. Hint: take 2."
    assert vars(again) == vars(error)


def test_an_error_knows_the_argument_at_fault() -> None:
    assert InputError("`folds` is 1.").argument == "folds"
    assert InputError("`folds` is 1.", argument="ties").argument == "ties"
    assert InputError("a table needs `folds`.").argument is None
    error = InputError.wrong_option("ties", "effron", ["breslow", "efron"])
    assert (error.argument, error.value) == ("ties", "effron")


def test_a_note_makes_its_message_from_values() -> None:
    values = {"n": Value("count", 1), "of": Value("count", 2000), "name": Value("name", "'{x}'")}
    note = Note("few", ("x",), "{n:row|rows} of {of:,} {name}", values)
    assert note.message == "1 row of 2,000 '{x}'"
    assert note.with_values(n=3, other=3).message.startswith("3 rows of")
    values = {"n": Value("fewer", 5), "of": Value("about", 2000), "name": Value("hidden", "...")}
    hidden = dataclasses.replace(note, values=values)
    assert hidden.message == "fewer than 5 rows of about 2,000 ..."
    again = Note.from_fields(json.loads(json.dumps(note.to_fields())))
    assert (again, again.template, again.values) == (note, note.template, note.values)


def test_a_note_without_values_is_as_it_is_written() -> None:
    note = Note("constant", (), "column '{x}' is constant.")
    assert note.message == "column '{x}' is constant."
    assert note.with_values(where="") == note
    assert Note.from_fields({"code": "a", "columns": ["x"], "message": "{"}).message == "{"


def test_saved_notes_keep_their_values(tmp_path: Path) -> None:
    note = Note("near_ties", (), "{n:time|times}: round {n:?it|them}.", {"n": Value("count", 2)})
    rs.cohort.save([note], tmp_path / "notes")
    assert '"2 times: round them."' in (tmp_path / "notes/object.json").read_text("utf-8")
    (again,) = rs.cohort.load(tmp_path / "notes")
    assert (again, again.template, again.values) == (note, note.template, note.values)
