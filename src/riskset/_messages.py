"""Messages: how they refer to arguments and functions, and notes as data.

A message marks what it refers to by code spans in backticks, as documentation does:

* an argument: `` `folds` must be at least 2``;
* an argument with a value, a literal of Python: ``pass `duplicates='sum'` to add them up``;
* a public function: ``use `riskset.aalen_johansen` ``.

As it stands a message is in the words of the Python interface. `spoken` has those of another
`Surface`: --folds and --duplicates sum on the command line, and `duplicates: sum` in the
specification of a study. So every part of the package can raise an error without knowing who
called, and no text is ever translated by its words. Whoever must decide something asks an error for
its class, `code` or `argument`, and a note for its `code`.

A `Sentence` is a template with values, each of which has a kind. Disclosure control hides or rounds
the values by their kinds, and the sentence is made again.
"""

import ast
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

__all__ = [
    "VALUE_KINDS",
    "Note",
    "Sentence",
    "Surface",
    "Value",
    "counted",
    "first_argument",
    "spoken",
    "with_hint",
]

# Spans touch no quotation mark and no letter, so that they are not part of a name in the data.
SPAN = re.compile(
    r"(?<![\w'\"`])`(?:(?P<function>riskset(?:\.\w+)+)|(?P<name>[A-Za-z_]\w*)(?:=(?P<value>[^`]+))?)`"
    r"(?![\w'\"`])"
)


class Surface:
    """How one interface names what messages refer to; None leaves a code span as it is."""

    def argument(self, name: str) -> str | None:
        """An argument of the Python interface."""

    def setting(self, name: str, value: object) -> str | None:
        """An argument with a value."""

    def function(self, name: str) -> str | None:
        """A public function of the Python interface, such as "riskset.path"."""


def spoken(message: object, surface: Surface) -> str:
    """A message, an error or a warning in the words of a surface."""

    def one(span: re.Match[str]) -> str:
        name, value = span["name"], span["value"]
        if span["function"]:
            words = surface.function(span["function"])
        elif value is None:
            words = surface.argument(name)
        else:
            try:
                words = surface.setting(name, ast.literal_eval(value))
            except (ValueError, SyntaxError):  # no literal
                words = None
        return span[0] if words is None else words

    return SPAN.sub(one, str(message))


def first_argument(message: str) -> str | None:
    """The argument with which a message begins, if it does."""
    span = SPAN.match(message)
    return None if span is None else span["name"]


def with_hint(problem: str, hint: str | None, separator: str = "\n") -> str:
    """What is wrong, and what to do, on a line of its own."""
    return problem if hint is None else f"{problem}{separator}Hint: {hint}"


def counted(n: float, one: str, several: str | None = None) -> str:
    """A number of things: 1 row, 2,000 rows, 1 penalty, 2 penalties.

    >>> counted(1, "row"), counted(2000, "row"), counted(0, "penalty", "penalties")
    ('1 row', '2,000 rows', '0 penalties')
    """
    number = f"{int(n):,}" if float(n).is_integer() else f"{n:,g}"
    return f"{number} {one if n == 1 else several or one + 's'}"


VALUE_KINDS: dict[str, str] = {
    "count": "a number of people, rows, records or events: shared rounded, as it may reveal people",
    "tabulated": "a count that a table of the results shows or hides: not shared in a sentence",
    "measure": "another number computed from the data, such as a proportion: not shared",
    "things": "a number of things that reveal nobody, such as covariates, strata, folds: shared",
    "setting": "a setting: shared",
    "name": "a name or words: shared",
    "sentence": "a sentence, whose values have their kinds",
    "about": "a count that was rounded",
    "fewer": "the number below which a count is",
    "hidden": "words for a number that is not shared",
}
"""Every kind of value in a sentence -> what it is, and how it is shared."""

QUALIFIERS = {"about": "about ", "fewer": "fewer than "}


@dataclass(frozen=True)
class Value:
    """A number, a text or a `Sentence` within a sentence; its kind decides how it is shared."""

    kind: str
    value: Any

    def __post_init__(self) -> None:
        if self.kind not in VALUE_KINDS:
            raise ValueError(f"{self.value!r} needs a kind, one of {', '.join(VALUE_KINDS)}")
        if hasattr(self.value, "item"):  # numbers of NumPy
            object.__setattr__(self, "value", self.value.item())

    def __format__(self, spec: str) -> str:
        """As Python does; ``row|rows`` adds a noun to a count, and ``?is|are`` is a word alone."""
        one, is_counted, several = spec.removeprefix("?").partition("|")
        if spec.startswith("?"):
            return one if self.value == 1 and self.kind not in QUALIFIERS else several
        if self.kind == "hidden":
            return f"{self.value} {several}" if is_counted else str(self.value)
        number = counted(self.value, one, several) if is_counted else format(self.value, spec)
        return QUALIFIERS.get(self.kind, "") + number


@dataclass(frozen=True)
class Sentence:
    """A sentence as a template and its values.

    The template has fields such as ``{n_rows:,}``, or ``{n_rows:row|rows}`` for a count with its
    noun. Without values it is the sentence as it is.
    """

    template: str
    values: Mapping[str, Value] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        unknown = [name for name, value in self.values.items() if not isinstance(value, Value)]
        if unknown:
            raise TypeError(f"{', '.join(unknown)} of {self.template!r} must be a Value, with kind")

    def __str__(self) -> str:
        return self.template.format_map(self.values) if self.values else self.template

    def __format__(self, spec: str) -> str:
        return str(self)

    @property
    def fixed_text(self) -> str:
        """What is written in the template between the values."""
        if not self.values:
            return self.template
        return "".join(text for text, *_ in string.Formatter().parse(self.template))

    def spoken(self, surface: Surface) -> "Sentence":
        """The sentence in the words of a surface."""
        values = {
            name: Value("sentence", one.value.spoken(surface)) if one.kind == "sentence" else one
            for name, one in self.values.items()
        }
        return Sentence(spoken(self.template, surface), values)

    def to_list(self) -> list[Any]:
        """What files keep: [template, {name: [kind, value]}]."""
        return [
            self.template,
            {
                name: [one.kind, one.value.to_list() if one.kind == "sentence" else one.value]
                for name, one in self.values.items()
            },
        ]

    @classmethod
    def from_list(cls, kept: Sequence[Any]) -> Self:
        """Read what `to_list` made."""
        template, values = kept
        return cls(
            template,
            {
                name: Value(kind, cls.from_list(value) if kind == "sentence" else value)
                for name, (kind, value) in values.items()
            },
        )


@dataclass(frozen=True, eq=False)
class Note:
    """Something about the data or the answer that a user should know.

    Notes are equal if they have the same code, columns and message: some files keep no values.

    Attributes
    ----------
    code : str
        The kind of note, for programs: "infinite", "collinear", "constant", "near_ties", ...
    columns : tuple of str
        The covariates concerned.
    template : str
        The message, in which fields such as ``{n_rows:,}``, or ``{n_rows:row|rows}`` for a count
        with its noun, stand for `values`. Without values it is the message as it is.
    values : mapping of str to Value
        Numbers and names of the message with their kinds.

    Examples
    --------
    >>> note = Note("few_events", (), "there are only {n:event|events}.", {"n": Value("count", 3)})
    >>> note.message
    'there are only 3 events.'
    >>> Note("few_events", (), "there are only {n:event|events}.", {"n": 3})
    Traceback (most recent call last):
    ...
    TypeError: n of 'there are only {n:event|events}.' must be a Value, with kind
    """

    code: str
    columns: tuple[str, ...]
    template: str
    values: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        Sentence(self.template, self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Note) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, tuple[str, ...], str]:
        return self.code, self.columns, self.message

    @property
    def sentence(self) -> Sentence:
        """The message with the kinds of its values."""
        return Sentence(self.template, self.values)

    @property
    def message(self) -> str:
        """The message in the words of Python; see `spoken` for those of other surfaces."""
        return str(self.sentence)

    def with_values(self, **values: object) -> "Note":
        """The same note with other values for some fields of the message, if it has them."""
        changed = {
            name: replace(one, value=values.get(name, one.value))
            for name, one in self.values.items()
        }
        return replace(self, values=changed)

    def to_fields(self) -> dict[str, object]:
        """What files keep of a note: its message, and what it is made of."""
        kept: dict[str, object] = {"code": self.code, "columns": self.columns}
        kept["message"] = self.message
        if self.values:
            kept["sentence"] = self.sentence.to_list()
        return kept

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Read what a file has kept; those of earlier versions keep the message alone."""
        kept = fields.get("sentence")
        made = Sentence(fields["message"]) if kept is None else Sentence.from_list(kept)
        return cls(fields["code"], tuple(fields["columns"]), made.template, made.values)
