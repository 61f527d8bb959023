"""Messages are data: errors, warnings and notes in the words of each surface."""

import copy
import json
import pickle
import warnings

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
    RisksetWarning,
)
from riskset._messages import (
    END,
    SEPARATOR,
    START,
    Note,
    Surface,
    Text,
    argument,
    function,
    in_python,
    spoken,
    with_hint,
)


class Shell(Surface):
    """A surface with words of its own."""

    def argument(self, name: str) -> str:
        return f"--{name}"

    def argument_with_value(self, name: str, value: object) -> str:
        return f"--{name} {value}"

    def function(self, name: str) -> str:
        return f"shell {name}"

    def either(self, python: str, otherwise: str) -> str:
        return otherwise


FOR_PYTHON = in_python(", or frames with " + argument("x"))
MARKED = (
    f"{argument('folds')} must be 2; pass {argument('ties', 'efron')}, use {function('path')}"
    f"{FOR_PYTHON}."
)
PYTHON = "`folds` must be 2; pass ties='efron', use riskset.path, or frames with `x`."
SHELL = "--folds must be 2; pass --ties efron, use shell path."


def is_plain(text: str) -> bool:
    return not set(text) & {START, SEPARATOR, END}


def test_a_text_is_python_unless_a_surface_speaks() -> None:
    text = Text(MARKED)
    assert text == PYTHON
    assert f"{text}" == str(text) == PYTHON
    assert spoken(text, Shell()) == SHELL
    assert json.loads(json.dumps(text)) == PYTHON
    assert Text(text).markup == MARKED


@pytest.mark.parametrize(
    "copied", [pickle.loads(pickle.dumps(Text(MARKED))), copy.deepcopy(Text(MARKED))]
)
def test_copies_of_a_text_keep_the_markup(copied: Text) -> None:
    assert copied == PYTHON
    assert spoken(copied, Shell()) == SHELL


ERRORS = [
    InputError(MARKED, hint=MARKED, value=1),
    NotDefinedError(MARKED, hint=MARKED),
    CohortError("BadId", MARKED, hint=MARKED, details={"id": 3}),
    ReportTooLarge(MARKED, hint=MARKED),
    DeviceError(MARKED, hint=MARKED),
    MissingDependencyError(MARKED, hint=MARKED),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_show_no_markup_and_survive_pickling(error: RisksetError) -> None:
    for same in (error, pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(same) is type(error)
        assert str(same) == f"{PYTHON}\nHint: {PYTHON}"
        assert is_plain(repr(same))
        assert (same.message, same.hint) == (PYTHON, PYTHON)
        assert spoken(same, Shell()) == f"{SHELL}\nHint: {SHELL}"
        assert same.on_one_line(Shell()) == f"{SHELL} Hint: {SHELL}"
        assert vars(same) == vars(error)


def test_an_error_knows_the_argument_at_fault() -> None:
    assert InputError(MARKED).argument == "folds"
    assert InputError(MARKED, argument="ties").argument == "ties"
    assert InputError(f"a table needs {argument('folds')}.").argument is None
    error = InputError.wrong_option("ties", "effron", ["breslow", "efron"])
    assert (error.argument, error.value) == ("ties", "effron")


def test_markup_survives_another_error() -> None:
    error = InputError(MARKED, hint=MARKED)
    again = CohortError("BadId", error.message, hint=error.hint)
    assert spoken(again, Shell()) == f"{SHELL}\nHint: {SHELL}"
    assert again.argument == "folds"


def test_warnings_show_no_markup() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.warn(with_hint(MARKED, MARKED), RisksetWarning, stacklevel=1)
    (warning,) = heard
    assert str(warning.message) == f"{PYTHON}\nHint: {PYTHON}"
    assert spoken(warning.message, Shell()) == f"{SHELL}\nHint: {SHELL}"


def test_names_with_control_characters_are_no_markup() -> None:
    assert Text("column '\x02a\x1fb\x03'") == "column 'a\x1fb'"


def test_a_note_makes_its_message_from_values() -> None:
    note = Note(
        "few",
        ("x",),
        "{n:row|rows} of {of:,} {name}: " + MARKED,
        {"n": 1, "of": 2000, "name": "'{x}'"},
    )
    assert note.message == f"1 row of 2,000 '{{x}}': {PYTHON}"
    assert spoken(note.message, Shell()) == f"1 row of 2,000 '{{x}}': {SHELL}"
    assert note.with_values(n="fewer than 5", other=3).message.startswith("fewer than 5 rows of")
    assert is_plain(json.dumps(note.to_fields()))
    read = Note.from_fields(json.loads(json.dumps(note.to_fields())))
    assert (read.code, read.columns, read.values) == (note.code, note.columns, note.values)
    assert read.message == note.message


def test_a_note_without_values_is_as_it_is_written() -> None:
    note = Note("constant", (), "column '{x}' is constant.")
    assert note.message == "column '{x}' is constant."
    assert note.with_values(where="") == note
    assert Note.from_fields({"code": "a", "columns": ["x"], "message": "{"}).message == "{"


def test_saved_fits_and_saved_results_have_plain_notes(tmp_path) -> None:
    note = Note(
        "near_ties", (), "{n:time|times}: round them with " + argument("time_digits"), {"n": 2}
    )
    rs.cohort.save([note], tmp_path / "notes")
    assert is_plain(
        (tmp_path / "notes/object.json").read_text("utf-8").encode().decode("unicode_escape")
    )
    (read,) = rs.cohort.load(tmp_path / "notes")
    assert read.message == "2 times: round them with `time_digits`"
    assert read.with_values(n="some").message.startswith("some times")
