"""Sentences from values whose kinds decide how each is shared; no text is searched for numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from riskset._messages import Sentence, Value
from riskset.disclosure.rows import Results
from riskset.disclosure.small_cells import is_small
from riskset.results.columns import sentence_columns, stored_sentence
from riskset.results.rows import RemarkRow, RunRow, ScoreRow

__all__ = ["share_reasons", "share_remarks", "shared_reason", "shared_sentence"]

QUOTES_DATA = frozenset({"bad_input"})
"""Statuses whose sentences quote single rows of the data."""

WITHHELD = Sentence("The sentence has numbers of the data and is in the private results.")


def shared_sentence(sentence: Sentence, least: int) -> Sentence:
    """A sentence whose counts are rounded, and whose small ones are called small.

    Counts are rounded to two digits, and to a power of ten that is at least twice the minimum, so
    that no difference of two of them, or to a number shown elsewhere, reveals a small count. A
    sentence with numbers in its text has no kinds for them, and is withheld; 0 is never small.

    Examples
    --------
    >>> values = {"n": Value("count", 3), "of": Value("count", 1512), "limit": Value("setting", 1)}
    >>> str(shared_sentence(Sentence("{n:,} of {of:row has|rows have} {limit}", values), 5))
    'fewer than 5 of about 1,500 rows have 1'
    """
    if not least:
        return sentence
    if any(letter.isdigit() and letter != "0" for letter in sentence.fixed_text):
        return WITHHELD
    values = {name: _shared(value, least) for name, value in sentence.values.items()}
    rounded = [name for name, value in values.items() if value.kind == "about"]
    for name in rounded:
        size = sentence.values[name].value
        if any(
            values[name] == values[other] and sentence.values[other].value > size
            for other in rounded
        ):
            values[name] = Value("hidden", "some")  # and not "about 10 of about 10"
    return replace(sentence, values=values)


def _shared(given: Value, least: int) -> Value:
    match given.kind:
        case "count" | "about":
            return _rounded(round(given.value), least)
        case "fewer":
            return Value("fewer", max(given.value, least))
        case "tabulated":
            return Value("hidden", "some")
        case "measure":
            return Value("hidden", "...")
        case "sentence":
            return Value("sentence", shared_sentence(given.value, least))
    return given


def _rounded(count: int, least: int) -> Value:
    if count == 0:
        return Value("count", 0)
    if is_small(count, least):
        return Value("fewer", least)
    step = 1
    while step < 2 * least or count // step >= 100:
        step *= 10
    return Value("about", max(step, (count + step // 2) // step * step))


def share_remarks(rows: Sequence[RemarkRow], results: Results) -> Iterator[RemarkRow]:
    """Rows of the table `warnings`."""
    for row in rows:
        sentence = shared_sentence(stored_sentence(row, "message"), results.least)
        yield row.changed(sentence_columns("message", sentence))


def share_reasons(rows: Sequence[RunRow], results: Results) -> Iterator[RunRow]:
    """Rows of the table `runs`."""
    for row in rows:
        yield row.changed(shared_reason(row, results.least))


def shared_reason(row: RunRow | ScoreRow, least: int) -> dict[str, Any]:
    """The columns of the reason of a status as they may be shared."""
    if row.reason is None:
        return {}
    sentence = shared_sentence(stored_sentence(row, "reason"), least)
    return sentence_columns("reason", WITHHELD if row.status in QUOTES_DATA else sentence)
