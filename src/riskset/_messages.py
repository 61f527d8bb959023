"""Messages as data: errors, warnings and notes that each surface spells in its own way.

A message is an ordinary string in which references to arguments and functions are marked::

    f"{argument('folds')} must be at least 2"
    f"pass {argument('duplicates', 'sum')} to add them up"

`Text` reads such markup. As a string it is what a user of Python sees: "`folds` must be at least
2", "pass duplicates='sum' ...". So it can be printed, stored and pickled like any other string.
`spoken` has the words of another `Surface`: --folds and --duplicates sum on the command line,
`duplicates: sum` in a study's specification. Errors (`riskset._errors`) make a `Text` of what they
are given, and warnings are given one: ``warnings.warn(Text(...), RisksetWarning)``.

No code reads the words of a message. It asks an error for its class, `code` and `argument`, and a
note for its `code`.
"""

import ast
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

__all__ = [
    "PYTHON",
    "Note",
    "Surface",
    "Text",
    "argument",
    "counted",
    "function",
    "in_python",
    "spoken",
    "with_hint",
]

START, SEPARATOR, END = "\x02", "\x1f", "\x03"
INNERMOST = re.compile(f"{START}([^{START}{END}]*){END}")
UNSET: Any = object()


def argument(name: str, value: object = UNSET) -> str:
    """Markup for an argument, or for an argument with a value.

    Parameters
    ----------
    name : str
        The name of the parameter in the Python interface.
    value : object, optional
        Something that ``repr`` writes as a literal.
    """
    parts = ("argument", name) if value is UNSET else ("argument", name, repr(value))
    return f"{START}{SEPARATOR.join(parts)}{END}"


def function(name: str) -> str:
    """Markup for a public function of riskset, such as "aalen_johansen"."""
    return f"{START}function{SEPARATOR}{name}{END}"


def in_python(text: str, otherwise: str = "") -> str:
    """Markup for words that only users of Python can follow, and for those of other surfaces.

    Both texts may have markup.
    """
    return f"{START}python{SEPARATOR}{text}{SEPARATOR}{otherwise}{END}"


class Surface:
    """How users of one interface see the parts of a message; this one is Python."""

    def argument(self, name: str) -> str:
        """An argument."""
        return f"`{name}`"

    def argument_with_value(self, name: str, value: object) -> str:
        """An argument with a value."""
        return f"{name}={value!r}"

    def function(self, name: str) -> str:
        """A public function."""
        return f"riskset.{name}"

    def either(self, python: str, otherwise: str) -> str:
        """The words for Python, or those for every other surface."""
        del otherwise
        return python


PYTHON = Surface()


def _rendered(markup: str, surface: Surface) -> str:
    def one(match: re.Match[str]) -> str:
        kind, *parts = match[1].split(SEPARATOR)
        if kind == "argument" and len(parts) == 1:
            return surface.argument(parts[0])
        if kind == "argument" and len(parts) == 2:
            return surface.argument_with_value(parts[0], ast.literal_eval(parts[1]))
        if kind == "function" and len(parts) == 1:
            return surface.function(parts[0])
        if kind == "python" and len(parts) == 2:
            return surface.either(parts[0], parts[1])
        return match[1]  # no markup: a name in the data has these control characters

    n_replaced = 1
    while n_replaced:
        markup, n_replaced = INNERMOST.subn(one, markup)
    return markup


class Text(str):
    """A message with its markup; as a string it is in the words of Python.

    Examples
    --------
    >>> text = Text(f"{argument('folds')} must be at least 2.")
    >>> print(text)
    `folds` must be at least 2.
    """

    __slots__ = ("markup",)

    markup: str

    def __new__(cls, markup: str) -> Self:
        """Read markup; a `Text` keeps its own."""
        markup = markup.markup if isinstance(markup, Text) else markup
        text = super().__new__(cls, _rendered(markup, PYTHON))
        text.markup = markup
        return text

    def __reduce__(self) -> tuple[type["Text"], tuple[str]]:
        """Pickled with the markup."""
        return Text, (self.markup,)

    @property
    def first_argument(self) -> str | None:
        """The argument with which the message begins, if it does."""
        start = INNERMOST.match(self.markup)
        kind, name, *_ = start[1].split(SEPARATOR) if start else ("", "")
        return name if kind == "argument" else None


def spoken(message: object, surface: Surface) -> str:
    """A message, an error or a warning in the words of a surface."""
    if isinstance(message, Text):
        return _rendered(message.markup, surface)
    if isinstance(message, Exception) and len(message.args) == 1:
        return spoken(message.args[0], surface)
    return str(message)


def with_hint(problem: str, hint: str | None, separator: str = "\n") -> Text:
    """What is wrong, and what to do, on a line of its own."""
    said = Text(problem)
    return said if hint is None else Text(f"{said.markup}{separator}Hint: {Text(hint).markup}")


def counted(n: float, one: str, several: str | None = None) -> str:
    """A number of things: 1 row, 2,000 rows, 1 penalty, 2 penalties.

    >>> counted(1, "row"), counted(2000, "row"), counted(0, "penalty", "penalties")
    ('1 row', '2,000 rows', '0 penalties')
    """
    number = f"{int(n):,}" if float(n).is_integer() else f"{n:,g}"
    return f"{number} {one if n == 1 else several or one + 's'}"


class _Formatter(string.Formatter):
    """``{n:row|rows}`` is a count of things; a text stands for a number that is hidden."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, is_counted, several = format_spec.partition("|")
        if isinstance(value, str):
            return f"{value} {several}" if is_counted else value
        return counted(value, one, several) if is_counted else format(value, format_spec)


@dataclass(frozen=True)
class Note:
    """Something about the data or the answer that a user should know.

    Attributes
    ----------
    code : str
        The kind of note, for programs: "infinite", "collinear", "constant", "near_ties", ...
    columns : tuple of str
        The covariates concerned.
    template : str
        The message, with markup; fields such as ``{n_rows:,}``, or ``{n_rows:row|rows}`` for a
        count with its noun, stand for `values`. Without values it is the message as it is.
    values : mapping of str to object
        Numbers and names of the message; a number that must not be shown is replaced by a text.

    Examples
    --------
    >>> note = Note("few_events", (), "there are only {n:event|events}.", {"n": 3})
    >>> note.message
    'there are only 3 events.'
    >>> note.with_values(n="fewer than 5").message
    'there are only fewer than 5 events.'
    """

    code: str
    columns: tuple[str, ...]
    template: str
    values: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def message(self) -> Text:
        """The message in the words of Python; see `spoken` for those of other surfaces."""
        if not self.values:
            return Text(self.template)
        return Text(_Formatter().vformat(self.template, (), self.values))

    def with_values(self, **values: object) -> "Note":
        """The same note with other values for some fields of the message, if it has them."""
        return replace(self, values={k: values.get(k, v) for k, v in self.values.items()})

    def to_fields(self) -> dict[str, object]:
        """What files keep of a note: its text in the words of Python, and what it is made of."""
        kept: dict[str, object] = {
            "code": self.code,
            "columns": self.columns,
            "message": str(self.message),
        }
        if not self.values:
            return kept
        return {**kept, "template": str(Text(self.template)), "values": dict(self.values)}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Read what a file has kept; those of earlier versions have no values."""
        template = fields.get("template", fields["message"])
        return cls(fields["code"], tuple(fields["columns"]), template, fields.get("values", {}))
