"""Settings: each is declared once, with its name, type, default, limits and meaning.

A class of settings is a frozen dataclass whose fields are made by `setting`::

    @settings
    class Stratify(Settings):
        k: int = setting("the number of strata", 10, least=2)

Functions of Python (see `riskset._keywords`), the sections of a specification, their documentation
and every check are made from these declarations. `Reader` is the only validator: it reads values of
Python and the text of a file alike, and notes every fault that it meets.
"""

import dataclasses
import datetime
import functools
import inspect
import os
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, Union, dataclass_transform

import numpy as np

from riskset._errors import CohortError, InputError, counted, similar

__all__ = [
    "INVALID",
    "Fault",
    "KeyPath",
    "Reader",
    "Setting",
    "Settings",
    "Scalar",
    "as_dict",
    "bad_setting",
    "declared",
    "default_words",
    "is_section",
    "parameters_section",
    "same_as",
    "setting",
    "settings",
    "type_words",
    "valid_members",
]

T = TypeVar("T")
R = TypeVar("R")

INVALID: Any = type("Invalid", (), {"__repr__": lambda _: "INVALID"})()
"""Stands for a value with a fault."""

KeyPath: TypeAlias = tuple[str, ...]
"""Names that lead to a value of a file."""

UNKNOWN = (dataclasses.MISSING, INVALID)
"""Defaults that are not values."""

TRUE, FALSE, NOTHING = ("true", "yes"), ("false", "no"), ("", "null", "~", "none")


class Scalar(str):
    """A scalar of a file: the type of the setting decides how it is read."""

    is_quoted: bool = False


@dataclass(frozen=True)
class Setting:
    """The declaration of one setting: a field of a class, its type, and its meaning.

    `about` is a sentence without a full stop. `default` is ``dataclasses.MISSING`` if the setting
    must be given. `limits` are ``above``, ``least``, ``most`` and ``below`` of a number. `key` is
    its name in a file; None: only functions of Python have it.
    """

    name: str
    kind: Any
    about: str
    default: object
    limits: Mapping[str, float]
    key: str | None

    @property
    def words(self) -> str:
        """The values that it may have."""
        return type_words(self.kind, self.limits)


def setting(
    about: str,
    default: object = dataclasses.MISSING,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
    key: str | None = None,
    only_python: bool = False,
    after: str | None = None,
    kw_only: bool = False,
) -> Any:
    """A field of a class of settings; without a default it must be given.

    A class as the default stands for a new object of it. `above` and `below` exclude the limit
    itself. `key` is the name in a file, where it is not that of the field; a file does not have
    what is `only_python`. Fields of a base class come first in documentation, unless this one comes
    `after` one of them. `kw_only` allows a field without a default after fields that have one.
    """
    limits = {"above": above, "least": least, "most": most, "below": below}
    metadata = {
        "about": about,
        "limits": {name: limit for name, limit in limits.items() if limit is not None},
        "key": key,
        "only_python": only_python,
        "after": after,
    }
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata, kw_only=kw_only)
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def declared(cls: Any) -> dict[str, Setting]:
    """The settings of a class, by the names of their fields."""
    return _declared(cls)


@functools.cache
def _declared(cls: Any) -> dict[str, Setting]:
    kinds = typing.get_type_hints(cls)
    known: list[Setting] = []
    for field in dataclasses.fields(cls):
        metadata = field.metadata
        declaration = Setting(
            field.name,
            kinds[field.name],
            metadata["about"],
            field.default if field.default_factory is dataclasses.MISSING else INVALID,
            metadata["limits"],
            None if metadata["only_python"] else metadata["key"] or field.name,
        )
        names = [one.name for one in known]
        after = metadata["after"]
        known.insert(names.index(after) + 1 if after in names else len(known), declaration)
    return {one.name: one for one in known}


def same_as(cls: Any, name: str) -> Any:
    """A field with the declaration of a field of another class."""
    (other,) = (field for field in dataclasses.fields(cls) if field.name == name)
    return dataclasses.field(default=other.default, metadata=other.metadata)


def is_section(kind: Any) -> bool:
    """Whether a type is a class of settings."""
    return dataclasses.is_dataclass(kind) and all(
        "about" in field.metadata for field in dataclasses.fields(kind)
    )


class Settings:
    """Base of settings that check themselves when they are made."""

    def __post_init__(self) -> None:
        reader = Reader()
        for field in declared(type(self)).values():
            value = reader.read(field.kind, getattr(self, field.name), (field.name,), field)
            object.__setattr__(self, field.name, value)
        for fault in reader.faults:
            raise fault.of_argument(declared(type(self)).get(fault.path[0]))
        for error in self.contradictions():
            raise error

    def contradictions(self) -> Iterator[InputError]:
        """Faults of several settings together, each of which is valid by itself."""
        yield from ()

    def values(self, cls: type["Settings"]) -> dict[str, Any]:
        """The values of the settings that a class, such as a base of this one, declares."""
        return {name: getattr(self, name) for name in declared(cls)}


def as_dict(section: Any) -> dict[str, Any]:
    """Keys and values of a section, and of the sections within it, as a specification has them."""
    return {
        field.key: _plain(getattr(section, field.name))
        for field in declared(type(section)).values()
        if field.key is not None
    }


def _plain(value: Any) -> Any:
    if is_section(type(value)):
        return as_dict(value)
    if isinstance(value, tuple):
        return tuple(_plain(one) for one in value)
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


@dataclass_transform(frozen_default=True)
def settings(cls: type[T]) -> type[T]:
    """Make a frozen dataclass whose documentation lists its settings."""
    made = dataclass(frozen=True)(cls)
    if made.__doc__:  # absent with python -OO
        listed = "\n".join(parameters_section(made))
        text = inspect.cleandoc(made.__doc__)
        first = re.search(r"\n\n\w+\n-{3,}\n|$", text)
        place = len(text) if first is None else first.start()
        made.__doc__ = f"{text[:place]}\n\nParameters\n----------\n{listed}{text[place:]}"
    return made


def bad_setting(
    name: str, problem: str, hint: str | None = None, *, value: object = None
) -> CohortError:
    """A fault of one setting, which `problem` describes in a sentence."""
    details = {"setting": name, "value": value}
    error = CohortError("BadSetting", problem, hint=hint, details=details)
    error.argument, error.value = name, value
    return error


@dataclass(frozen=True)
class Fault:
    """What is wrong with the value to which the names of `path` lead.

    `problem` is a sentence, or "" where the value is `shown` and not as `expected`. The line of the
    fault is that of `path`, unless other names (`line_of`) or a `mark` in the file lead to it.
    """

    path: KeyPath
    problem: str = ""
    hint: str | None = None
    expected: str = ""
    shown: str = ""
    line_of: KeyPath | None = None
    mark: Any = None

    @property
    def message(self) -> str:
        """The fault as it is described in a file."""
        return self.problem or f"expected {self.expected}, but it is {self.shown}."

    def of_argument(self, field: Setting | None) -> InputError:
        """The fault as an error of a call."""
        first, *rest = self.path
        name = first + "".join(f"[{step}]" for step in rest)
        must_be = f"`{name}` must be {self.expected}, but it is {self.shown}."
        hint = self.hint
        if hint is None and field is not None and default_words(field, in_python=True):
            hint = f"{field.about}; the default is {default_words(field, in_python=True)}."
        return bad_setting(first, self.problem or must_be, hint, value=self.shown)


class _UnfitError(Exception):
    """A value does not have the type."""


class Reader:
    """Reads values as they are declared; `faults` are those so far, which are read as `INVALID`."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def read(self, kind: Any, value: Any, path: KeyPath, field: Setting | None = None) -> Any:
        """A value of Python, or the text of a file, as a value of a type."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if kind in (Any, object) or value is INVALID:
            return value
        if origin in (Union, types.UnionType):
            return self._choice(kind, value, path, field)
        if is_section(kind):
            return self._section(kind, value, path)
        if origin is dict:
            return self._mapping(arguments[1], value, path, field)
        if origin is tuple:
            return self._list(arguments, value, path, field)
        return self._scalar((kind,), kind, value, path, field)

    def parts(self, cls: Any, value: Any, path: KeyPath = ()) -> dict[str, Any]:
        """The values of a section by the names of its fields, those at fault as `INVALID`."""
        known = {field.key: field for field in declared(cls).values() if field.key is not None}
        if isinstance(value, Scalar) and not value and not value.is_quoted:
            value = {}
        if not isinstance(value, Mapping):
            self._wrong(path, f"the keys {_listed(known)}", value)
            return dict.fromkeys(declared(cls), INVALID)
        for key in value:
            if key not in known:
                close = similar(key, known)
                hint = f"did you mean {close[0]!r}?" if close else f"it has {_listed(known)}."
                problem = f"unknown key {str(key)!r}."
                self.faults.append(Fault(path, problem, hint, line_of=(*path, key)))
        made = {}
        for key, field in known.items():
            if key in value:
                made[field.name] = self.read(field.kind, value[key], (*path, key), field)
            elif field.default is dataclasses.MISSING:
                problem = f"the key {key!r} is missing: {field.about}."
                self.faults.append(Fault(path, problem))
                made[field.name] = INVALID
        return made

    def _section(self, cls: Any, value: Any, path: KeyPath) -> Any:
        if isinstance(value, cls):
            return value
        before = len(self.faults)
        made = self.parts(cls, value, path)
        if len(self.faults) > before:
            return INVALID
        try:
            if issubclass(cls, Settings):
                self._note(_contradictions(cls, made), path)
            if len(self.faults) == before:
                return cls(**made)
        except InputError as error:
            self._note([error], path)
        return INVALID

    def _note(self, errors: Iterable[InputError], path: KeyPath) -> None:
        for error in errors:
            place = path if error.argument is None else (*path, error.argument)
            self.faults.append(Fault(place, error.message, error.hint))

    def _mapping(
        self, kind: Any, value: Any, path: KeyPath, field: Setting | None
    ) -> dict[str, Any]:
        if isinstance(value, Scalar) and not value and not value.is_quoted:
            value = {}
        if not isinstance(value, Mapping):
            return self._wrong(path, f"names, and for each {type_words(kind)}", value)  # type: ignore[no-any-return]
        return {name: self.read(kind, child, (*path, name), field) for name, child in value.items()}

    def _list(
        self, kinds: tuple[Any, ...], value: Any, path: KeyPath, field: Setting | None
    ) -> Any:
        is_open = len(kinds) == 2 and kinds[1] is Ellipsis
        if not isinstance(value, list | tuple | np.ndarray):
            expected = type_words(tuple[kinds[0], ...])  # type: ignore[valid-type]
            is_single = isinstance(value, Scalar) and value != ""
            hint = f"put brackets around it: [{value}]." if is_single else None
            return self._wrong(path, expected, value, hint)
        if not is_open and len(value) != len(kinds):
            expected, shown = (f"a list of {counted(len(x), 'value')}" for x in (kinds, value))
            self.faults.append(Fault(path, expected=expected, shown=shown))
            return INVALID
        return tuple(
            self.read(kinds[0], child, (*path, str(k)), field) for k, child in enumerate(value)
        )

    def _choice(self, kind: Any, value: Any, path: KeyPath, field: Setting | None) -> Any:
        """The first type of several that a value has."""
        kinds = typing.get_args(kind)
        is_plain = isinstance(value, Scalar) and not value.is_quoted
        if type(None) in kinds and (value is None or (is_plain and value.lower() in NOTHING)):
            return None
        others = [one for one in kinds if one is not type(None) and not _is_foreign(one, value)]
        if datetime.date in others:  # the text of a date must be one
            others = [one for one in others if one is not str]
        sections = [one for one in others if is_section(one)]
        if sections and isinstance(value, Mapping):
            return self._section(_closest(value, sections), value, path)
        lists = [one for one in others if typing.get_origin(one) is tuple]
        if lists and isinstance(value, list | tuple | np.ndarray):
            return self._list(typing.get_args(lists[0]), value, path, field)
        objects = tuple(one for one in others if is_section(one) or _is_object(one))
        if isinstance(value, objects):
            return value
        if len(others) == 1 and others[0] not in SCALARS:
            return self.read(others[0], value, path, field)
        if Any in others and not isinstance(value, int | float | np.number):
            return value
        scalars = tuple(
            one for one in others if not (is_section(one) or one is Any or one in lists)
        )
        return self._scalar(scalars, kind, value, path, field)

    def _scalar(
        self,
        kinds: tuple[Any, ...],
        kind: Any,
        value: Any,
        path: KeyPath,
        field: Setting | None,
    ) -> Any:
        limits = {} if field is None else field.limits
        value = value.item() if isinstance(value, np.generic) else value
        for one in kinds:
            try:
                return _converted(one, value, limits)
            except _UnfitError:
                continue
        names = typing.get_args(kind) if typing.get_origin(kind) is Literal else ()
        close = similar(value, names) if isinstance(value, str) else []
        hint = (
            f"did you mean {close[0]!r}?" if close else self._without_quotes(kinds, value, limits)
        )
        is_python = not isinstance(value, Scalar | list | Mapping)
        return self._wrong(path, type_words(kind, limits, in_python=is_python), value, hint)

    @staticmethod
    def _without_quotes(
        kinds: tuple[Any, ...], value: Any, limits: Mapping[str, float]
    ) -> str | None:
        """A hint if only quotes keep a scalar from being a number, or true or false."""
        if isinstance(value, Scalar) and value.is_quoted:
            plain = Scalar(value)
            for kind in kinds:
                try:
                    _converted(kind, plain, limits)
                except _UnfitError:
                    continue
                return f"quotes make a text of it; write {value} without quotes."
        return None

    def _wrong(self, path: KeyPath, expected: str, value: Any, hint: str | None = None) -> Any:
        self.faults.append(Fault(path, "", hint, expected, _shown(value)))
        return INVALID


def _contradictions(cls: type[Settings], values: Mapping[str, Any]) -> list[InputError]:
    """The contradictions of an object that is not made yet."""
    made = object.__new__(cls)
    defaults = {name: field.default for name, field in declared(cls).items()}
    known = {name: value for name, value in defaults.items() if value is not INVALID}
    vars(made).update(known | dict(values))
    return list(made.contradictions())


def _is_foreign(kind: Any, value: Any) -> bool:
    """Whether a type is one of Python's that a file cannot have."""
    is_file = isinstance(value, Scalar | Mapping)
    return is_file and (kind is Any or _is_object(kind))


def _is_object(kind: Any) -> bool:
    known = kind is Any or kind in SCALARS or is_section(kind)
    return isinstance(kind, type) and not known


def _closest(value: Mapping[str, Any], sections: list[Any]) -> Any:
    """Of several kinds of a section the one that has most of the keys."""
    given = set(value)
    return max(
        sections, key=lambda kind: len(given & {field.key for field in declared(kind).values()})
    )


def _converted(kind: Any, value: Any, limits: Mapping[str, float]) -> Any:
    """A scalar as a type has it."""
    if typing.get_origin(kind) is Literal:
        if isinstance(value, str) and value in typing.get_args(kind):
            return str(value)
        raise _UnfitError
    if kind not in SCALARS:
        if isinstance(value, kind):
            return value
        raise _UnfitError
    converted = SCALARS[kind][1](value)
    if kind in (int, float) and not all(LIMITS[k][1](converted, v) for k, v in limits.items()):
        raise _UnfitError
    return converted


def _text(value: Any) -> str:
    is_empty = isinstance(value, Scalar) and not value and not value.is_quoted
    if not isinstance(value, str) or is_empty:
        raise _UnfitError
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, Scalar):
        return int(_parsed(int, value))
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 != 0:
        raise _UnfitError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, Scalar):
        value = _parsed(float, value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise _UnfitError
    return float(value)


def _parsed(kind: Callable[[str], float], text: Scalar) -> float:
    if text.is_quoted:  # quotes make a text of it, in YAML as in JSON
        raise _UnfitError
    try:
        return kind(text.replace("_", "x"))  # 1_000 is not a number in YAML
    except ValueError:
        raise _UnfitError from None


def _yes_or_no(value: Any) -> bool:
    if isinstance(value, Scalar) and not value.is_quoted and value.lower() in (*TRUE, *FALSE):
        return value.lower() in TRUE
    if not isinstance(value, bool):
        raise _UnfitError
    return value


def _day(value: Any) -> datetime.date:
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise _UnfitError from None


SCALARS: dict[Any, tuple[str, Callable[[Any], Any]]] = {
    str: ("a text", _text),
    int: ("a whole number", _whole),
    float: ("a number", _number),
    bool: ("true or false", _yes_or_no),
    datetime.date: ("a date (YYYY-MM-DD)", _day),
}

LIMITS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "above": ("above", lambda value, limit: value > limit),
    "least": ("of at least", lambda value, limit: value >= limit),
    "most": ("of at most", lambda value, limit: value <= limit),
    "below": ("below", lambda value, limit: value < limit),
}


def type_words(kind: Any, limits: Mapping[str, float] = {}, *, in_python: bool = False) -> str:
    """What a type is called in messages and in the documentation."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is bool and in_python:
        return "True or False"
    if kind in SCALARS:
        bounds = " and ".join(f"{LIMITS[name][0]} {limit:g}" for name, limit in limits.items())
        bounds = bounds.replace(" and of ", " and ")  # a number above 0 and at most 1
        is_number = kind in (int, float) and bounds
        return f"{SCALARS[kind][0]} {bounds}" if is_number else SCALARS[kind][0]
    if origin is Literal:
        *others, last = map(repr, arguments)
        return f"{', '.join(others)} or {last}" if others else last
    if origin in (Union, types.UnionType):
        kinds = [a for a in arguments if a is not type(None) and a is not Any and not _is_object(a)]
        kinds = [a for a in kinds if not (a is str and datetime.date in kinds)] or [arguments[0]]
        words = list(dict.fromkeys(type_words(a, limits, in_python=in_python) for a in kinds))
        return " or ".join(words + ["None"] * (in_python and type(None) in arguments))
    if origin in (tuple, Sequence):
        words = type_words(arguments[0]).split(" or ")
        bounds = type_words(arguments[0], limits).removeprefix(type_words(arguments[0]))
        if all(word.startswith("a ") and len(word.split()) < 4 for word in words):
            return f"a list of {' or '.join(f'{word[2:]}s' for word in words)}{bounds}"
        return f"a list, of {' or '.join(words)} each"
    if origin is dict:
        return f"names, and for each {type_words(arguments[1])}"
    if origin is os.PathLike:
        return "a path"
    return "a section with keys" if is_section(kind) else getattr(kind, "__name__", str(kind))


def default_words(field: Setting, *, in_python: bool = False) -> str:
    """A default as a text; "" for one that says nothing."""
    value = field.default
    if value in UNKNOWN or (value in ((), "") and not in_python):
        return ""
    if in_python:
        return repr(value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        shown = [v if isinstance(v, str) else f"{v:g}" for v in value]
        return f"[{', '.join(shown)}]"
    return str(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "a section with keys"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, Scalar) and not value.is_quoted:
        is_number = re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", value, re.IGNORECASE)
        return str(value) if is_number else repr(str(value)) if value else "empty"
    return repr(str(value) if isinstance(value, Scalar) else value)


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def parameters_section(cls: Any) -> list[str]:
    """Lines of the section "Parameters" of a docstring: an entry for each setting."""
    lines = []
    for field in declared(cls).values():
        default = default_words(field, in_python=True)
        lines.append(f"{field.name} : {field.words}{f', default {default}' if default else ''}")
        is_symbol = field.about[1:2] == ":"  # the name of a number
        first = field.about[0] if is_symbol else field.about[0].upper()
        about = f"{first}{field.about[1:].removesuffix('.')}."
        lines += textwrap.wrap(about, 100, initial_indent="    ", subsequent_indent="    ")
    return lines


def valid_members(members: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """The members of a section that have no fault."""
    if members is not INVALID:
        yield from ((name, one) for name, one in members.items() if one is not INVALID)
