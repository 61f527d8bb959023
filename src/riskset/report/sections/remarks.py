"""Warnings and notes of the analysis: each stands once, with the outcomes that it is about."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from riskset._messages import Sentence, Value
from riskset.report.markup import Markup
from riskset.report.number_format import whole
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.source import ReportSource
from riskset.results.columns import stored_sentence
from riskset.results.rows import RemarkRow

__all__ = ["collect_remarks", "render_remarks"]

NUMBERS = ("count", "tabulated", "measure", "things", "about", "fewer", "hidden")
"""Kinds of values that may differ between the outcomes of a note; other values make another one."""
MOST_LABELS = 12
"""Outcomes of a note that are named."""


def collect_remarks(source: ReportSource) -> list[ReportRow]:
    """A row for each note, whatever the numbers in it; these stand with their outcomes.

    Notes with other words in them, such as the name of a column, are other notes.
    """
    found: dict[tuple[object, ...], list[RemarkRow]] = {}
    for row in source.read(RemarkRow):
        sentence = stored_sentence(row, "message")
        words = [
            (name, _shown(value))
            for name, value in sentence.values.items()
            if value.kind not in NUMBERS
        ]
        key = (row.step, row.code, sentence.template, *sorted(words))
        found.setdefault(key, []).append(row)
    return [_remark(source, rows) for rows in found.values()]


def _remark(source: ReportSource, rows: Sequence[RemarkRow]) -> ReportRow:
    first = rows[0]
    sentences = [stored_sentence(row, "message") for row in rows]
    differing = [
        name
        for name in sentences[0].values
        if len({_shown(sentence.values[name]) for sentence in sentences}) > 1
    ]
    return {
        "step": first.step,
        "code": first.code,
        "message": str(_general(sentences[0], differing)),
        "count": sum(row.count for row in rows),
        "where": first.where,
        "applies_to": [
            {"outcomes": _outcomes(source, row), "values": _values(sentence, differing)}
            for row, sentence in zip(rows, sentences, strict=True)
        ],
    }


def _general(sentence: Sentence, differing: Sequence[str]) -> Sentence:
    """The sentence with "some" in the place of numbers that differ between outcomes."""
    some = dict.fromkeys(differing, Value("hidden", "some"))
    return replace(sentence, values={**sentence.values, **some})


def _values(sentence: Sentence, differing: Sequence[str]) -> str:
    return ", ".join(_shown(sentence.values[name]) for name in differing)


def _shown(value: Value) -> str:
    is_number = isinstance(value.value, int | float)
    return format(value, ",") if is_number else str(value.value)


def _outcomes(source: ReportSource, row: RemarkRow) -> list[str]:
    """Labels of the outcomes of a note; earlier results name one only, within `where`."""
    if row.outcomes is None:
        return []
    return [source.label("outcomes", name) for name in json.loads(row.outcomes)]


def render_remarks(page: Page, rows: list[ReportRow], n_outcomes: int) -> Markup:
    """The table, or that there are none."""
    say = page.say
    if not rows:
        return page.paragraph("methods.no_warnings")
    columns = [
        TableColumn.text(say("methods.step"), "step"),
        TableColumn.message(say("methods.message"), "message"),
        TableColumn.text(
            say("methods.applies_to"), "applies_to", lambda v: _applies_to(page, v, n_outcomes)
        ),
        TableColumn(say("methods.count"), ("count",), whole),
    ]
    return page.table("warnings", say("methods.warnings"), columns, rows)


def _applies_to(page: Page, members: list[dict[str, Any]], n_outcomes: int) -> str:
    """Labels with their numbers; not each of them where there are many or all."""
    say = page.say
    named = [
        f"{label} ({member['values']})" if member["values"] else label
        for member in members
        for label in member["outcomes"]
    ]
    named = list(dict.fromkeys(named))
    if len(named) == n_outcomes > 1 and not any(member["values"] for member in members):
        return say("methods.all_outcomes")
    more = len(named) - MOST_LABELS
    if more > 1:
        named = [*named[:MOST_LABELS], say("methods.more_outcomes", n=whole(more))]
    return "; ".join(named)
