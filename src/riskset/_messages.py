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
"""

import ast
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

__all__ = ["Note", "Surface", "counted", "first_argument", "spoken", "with_hint"]

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
        The message, in which fields such as ``{n_rows:,}``, or ``{n_rows:row|rows}`` for a count
        with its noun, stand for `values`. Without values it is the message as it is.
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
    def message(self) -> str:
        """The message in the words of Python; see `spoken` for those of other surfaces."""
        if not self.values:
            return self.template
        return _Formatter().vformat(self.template, (), self.values)

    def with_values(self, **values: object) -> "Note":
        """The same note with other values for some fields of the message, if it has them."""
        return replace(self, values={k: values.get(k, v) for k, v in self.values.items()})

    def to_fields(self) -> dict[str, object]:
        """What files keep of a note: its message, and what it is made of."""
        kept: dict[str, object] = {"code": self.code, "columns": self.columns}
        kept["message"] = self.message
        if self.values:
            kept |= {"template": self.template, "values": dict(self.values)}
        return kept

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Read what a file has kept; those of earlier versions have no values."""
        template = fields.get("template", fields["message"])
        return cls(fields["code"], tuple(fields["columns"]), template, fields.get("values", {}))
