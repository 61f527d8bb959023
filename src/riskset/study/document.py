"""A YAML or JSON document as objects of a specification, with the line of every fault.

Values are read by the type that is expected, not by how they look: ``no`` is a text where a text is
expected, and ``1e-8`` a number where a number is. JSON is read as the YAML that it is.
"""

import dataclasses
import datetime
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

import yaml

from riskset._errors import InputError, similar

__all__ = ["Document", "key", "words_of"]

T = TypeVar("T")

MAX_DEPTH = 50
"""Levels of sections within sections; a specification needs about ten."""

DEPTH_HINT = "look for an anchor (&name) that contains an alias (*name) of itself."

TRUE, FALSE, NOTHING = ("true", "yes"), ("false", "no"), ("", "null", "~", "none")


def key(
    about: str,
    default: object = dataclasses.MISSING,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Any:
    """A field of a section of the specification; without a default it must be given.

    Parameters
    ----------
    about : str
        What it means, for the documentation.
    default : object, optional
        A class stands for what it makes.
    above, least, most, below : float, optional
        Limits of a number, the first and last ones excluded.
    """
    limits = {"above": above, "least": least, "most": most, "below": below}
    metadata = {"about": about, "limits": {k: v for k, v in limits.items() if v is not None}}
    if default is dataclasses.MISSING:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Document:
    """A parsed document.

    Attributes
    ----------
    name : str
        What messages call it: a name of a file, or "" for a mapping of Python.
    root : yaml.Node
    """

    name: str
    root: yaml.Node

    @classmethod
    def parse(cls, text: str, name: str) -> "Document":
        """Parse YAML or JSON.

        Raises
        ------
        InputError
            If it is neither, or empty; names the line.
        """
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
            raise InputError(
                f"{name}{where}: this is not valid YAML: {error.problem or error.context}.",
                hint="look for a missing colon, quote or bracket, a tab, or a wrong indentation "
                "there or in the line before.",
            ) from error
        except yaml.reader.ReaderError as error:
            raise InputError(
                f"{name} is not text: character {error.position + 1:,} of it is "
                f"{chr(error.character)!r}.",
                hint="name the specification, in YAML or JSON; data are named inside it.",
            ) from error
        except RecursionError:
            raise InputError(f"{name} is nested too deeply.", hint=DEPTH_HINT) from None
        if root is None:
            raise InputError(
                f"{name} is empty.", hint="`riskset study example` prints one to start from."
            )
        document = cls(name, root)
        document._check_depth()
        return document

    @classmethod
    def read(cls, path: Path) -> "Document":
        """Read a file; raises as `parse`, and if the file is absent or not text in UTF-8."""
        if not path.is_file():
            what = "is a folder, and no file" if path.is_dir() else "was not found"
            raise InputError(
                f"the specification {str(path)!r} {what}.",
                hint="`riskset study example > study.yaml` writes one to start from.",
            )
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{str(path)!r} is not text in UTF-8.", hint="save it as UTF-8."
            ) from error
        return cls.parse(text, path.name)

    @classmethod
    def of_mapping(cls, content: Mapping[str, Any]) -> "Document":
        """From a mapping of Python, whose faults have keys instead of lines."""
        text = yaml.safe_dump(_plain(content), sort_keys=False, allow_unicode=True)
        return cls("", yaml.compose(text, Loader=yaml.SafeLoader))

    def _check_depth(self) -> None:
        """Refuse sections that contain themselves, through an alias of their own anchor."""
        left = [(self.root, 0)]
        deepest: dict[int, int] = {}
        while left:
            node, depth = left.pop()
            if depth > MAX_DEPTH:
                raise self._fault(
                    node, (), f"sections are nested more than {MAX_DEPTH} levels deep.", DEPTH_HINT
                )
            if deepest.get(id(node), -1) >= depth or isinstance(node, yaml.ScalarNode):
                continue
            deepest[id(node)] = depth
            below = node.value if isinstance(node, yaml.SequenceNode) else sum(node.value, ())
            left += [(child, depth + 1) for child in below]

    def build(self, cls: type[T]) -> T:
        """An object of a dataclass, whose fields are made by `key`.

        Raises
        ------
        InputError
            If a key is unknown, missing or given twice, or a value is of another type; names the
            line and the keys that lead there.
        """
        found: T = self._value(self.root, cls, ())
        return found

    def fault(self, path: tuple[str, ...], message: str, hint: str | None = None) -> InputError:
        """An error at the keys `path`, as far as the document has them."""
        node, known = self.root, []
        for name in path:
            below = self._pairs(node, ()) if isinstance(node, yaml.MappingNode) else {}
            if isinstance(node, yaml.SequenceNode) and name.isdigit():
                below = {str(k): (child, child) for k, child in enumerate(node.value)}
            if name not in below:
                break
            marked, node = below[name]
            known.append((name, marked))
        at = known[-1][1] if known else self.root
        return self._fault(at, tuple(name for name, _ in known), message, hint)

    def _fault(
        self, node: yaml.Node, path: tuple[str, ...], message: str, hint: str | None = None
    ) -> InputError:
        places = [f"{self.name}, line {node.start_mark.line + 1}"] if self.name else []
        places += [".".join(path)] if path else []
        return InputError(f"{', '.join(places)}: {message}" if places else message, hint=hint)

    def _value(
        self, node: yaml.Node, kind: Any, path: tuple[str, ...], limits: Mapping[str, float] = {}
    ) -> Any:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (Union, types.UnionType):
            return self._choice(node, arguments, path, limits)
        if dataclasses.is_dataclass(kind):
            return self._section(node, kind, path)
        if origin is dict:
            pairs = self._mapping(node, path, f"names, and for each {words_of(arguments[1])}")
            return {
                name: self._value(child, arguments[1], (*path, name), limits)
                for name, (_, child) in pairs.items()
            }
        if origin is tuple:
            return self._list(node, arguments, path, limits)
        return self._scalar(node, kind, path, limits)

    def _choice(
        self,
        node: yaml.Node,
        kinds: tuple[Any, ...],
        path: tuple[str, ...],
        limits: Mapping[str, float],
    ) -> Any:
        is_plain = isinstance(node, yaml.ScalarNode) and not node.style
        if type(None) in kinds and is_plain and node.value.lower() in NOTHING:
            return None
        others = [kind for kind in kinds if kind is not type(None)]
        sections = [kind for kind in others if dataclasses.is_dataclass(kind)]
        if len(sections) > 1 and isinstance(node, yaml.MappingNode):
            return self._section(node, self._closest(node, sections, path), path)
        fitting = [kind for kind in others if _fits(node, kind)]
        faults = []
        for kind in fitting:
            try:
                return self._value(node, kind, path, limits)
            except InputError as fault:
                faults.append(fault)
        if faults and (len(faults) == 1 or not isinstance(node, yaml.ScalarNode)):
            raise faults[-1]
        expected = " or ".join(map(words_of, others))
        raise self._fault(node, path, f"expected {expected}, but it is {_shown(node)}.")

    def _closest(self, node: yaml.MappingNode, sections: list[Any], path: tuple[str, ...]) -> Any:
        """Of several kinds of a section the one that knows most of the keys."""
        given = set(self._pairs(node, path))
        return max(
            sections, key=lambda kind: len(given & {f.name for f in dataclasses.fields(kind)})
        )

    def _section(self, node: yaml.Node, cls: Any, path: tuple[str, ...]) -> Any:
        known = {f.name: f for f in dataclasses.fields(cls)}
        hints = typing.get_type_hints(cls)
        pairs = self._mapping(node, path, f"the keys {_listed(known)}")
        for name, (marked, _) in pairs.items():
            if name not in known:
                close = similar(name, known)
                hint = f"did you mean {close[0]!r}?" if close else f"it has {_listed(known)}."
                raise self._fault(marked, path, f"unknown key {name!r}.", hint)
        made = {}
        for name, own in known.items():
            if name in pairs:
                limits = own.metadata.get("limits", {})
                made[name] = self._value(pairs[name][1], hints[name], (*path, name), limits)
            elif own.default is own.default_factory is dataclasses.MISSING:
                about = own.metadata["about"]
                raise self._fault(node, path, f"the key {name!r} is missing: {about}.")
        return cls(**made)

    def _mapping(
        self, node: yaml.Node, path: tuple[str, ...], expected: str
    ) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        is_empty = isinstance(node, yaml.ScalarNode) and not node.value and not node.style
        if not isinstance(node, yaml.MappingNode) and not is_empty:
            raise self._fault(node, path, f"expected {expected}, but it is {_shown(node)}.")
        return self._pairs(node, path) if isinstance(node, yaml.MappingNode) else {}

    def _pairs(
        self, node: yaml.MappingNode, path: tuple[str, ...]
    ) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Key -> (its node, that of the value); what ``<<`` refers to stands behind own keys."""
        own: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise self._fault(name, path, "a key must be a text.")
            if name.value == "<<" and not name.style:
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in parts:
                    merged = self._mapping(part, path, "a section to copy") | merged
                continue
            if name.value in own:
                before = own[name.value][0].start_mark.line + 1
                where = f" (first in line {before})" if self.name else ""
                raise self._fault(name, path, f"the key {name.value!r} is given twice{where}.")
            own[name.value] = (name, value)
        return merged | own

    def _list(
        self,
        node: yaml.Node,
        kinds: tuple[Any, ...],
        path: tuple[str, ...],
        limits: Mapping[str, float],
    ) -> tuple[Any, ...]:
        is_open = len(kinds) == 2 and kinds[1] is Ellipsis
        if not isinstance(node, yaml.SequenceNode):
            what = words_of(tuple[kinds[0], ...])  # type: ignore[valid-type]
            raise self._fault(node, path, f"expected {what}, but it is {_shown(node)}.")
        n = len(node.value)
        if not is_open and n != len(kinds):
            there = f"there {'is' if n == 1 else 'are'} {n}"
            raise self._fault(node, path, f"expected {len(kinds)} values, but {there}.")
        return tuple(
            self._value(child, kinds[0], (*path, str(k)), limits)
            for k, child in enumerate(node.value)
        )

    def _scalar(
        self, node: yaml.Node, kind: Any, path: tuple[str, ...], limits: Mapping[str, float]
    ) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node, path, f"expected {words_of(kind)}, but it is {_shown(node)}.")
        text = node.value
        if typing.get_origin(kind) is Literal:
            known = typing.get_args(kind)
            if text in known:
                return text
            close = similar(text, known)
            hint = f"did you mean {close[0]!r}?" if close else None
            raise self._fault(node, path, f"expected {words_of(kind)}, but it is {text!r}.", hint)
        try:
            value = text if kind is str and node.style else READERS[kind](text)
        except ValueError:
            message = f"expected {words_of(kind)}, but it is {_shown(node)}."
            raise self._fault(node, path, message) from None
        for name, limit in limits.items():
            if not LIMITS[name][1](value, limit):
                message = (
                    f"expected {words_of(kind)} {LIMITS[name][0]} {limit:g}, but it is {text}."
                )
                raise self._fault(node, path, message)
        return value


def _yes_or_no(text: str) -> bool:
    if text.lower() in TRUE or text.lower() in FALSE:
        return text.lower() in TRUE
    raise ValueError(text)


def _present(text: str) -> str:
    if not text:
        raise ValueError(text)
    return text


def _number(text: str) -> float:
    value = float(text.replace("_", "x"))
    if value != value:
        raise ValueError(text)
    return value


READERS: dict[Any, Callable[[str], Any]] = {
    str: _present,
    int: lambda text: int(text.replace("_", "x")),
    float: _number,
    bool: _yes_or_no,
    datetime.date: datetime.date.fromisoformat,
}

LIMITS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "above": ("above", lambda value, limit: value > limit),
    "least": ("of at least", lambda value, limit: value >= limit),
    "most": ("of at most", lambda value, limit: value <= limit),
    "below": ("below", lambda value, limit: value < limit),
}


def _fits(node: yaml.Node, kind: Any) -> bool:
    if dataclasses.is_dataclass(kind) or typing.get_origin(kind) is dict:
        return isinstance(node, yaml.MappingNode) or not node.value
    if typing.get_origin(kind) is tuple:
        return isinstance(node, yaml.SequenceNode)
    return isinstance(node, yaml.ScalarNode)


def words_of(kind: Any) -> str:
    """What a type is called in a message."""
    names = {
        str: "a text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        datetime.date: "a date (YYYY-MM-DD)",
    }
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in names:
        return names[kind]
    if origin is Literal:
        *others, last = map(repr, arguments)
        return f"{', '.join(others)} or {last}" if others else last
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(words_of(a) for a in arguments if a is not type(None)))
    if origin is tuple:
        kinds = words_of(arguments[0]).split(" or ")
        if all(kind.startswith("a ") and len(kind.split()) < 4 for kind in kinds):
            return f"a list of {' or '.join(f'{kind[2:]}s' for kind in kinds)}"
        return f"a list, of {' or '.join(kinds)} each"
    if origin is dict:
        return f"names, and for each {words_of(arguments[1])}"
    return "a section with keys"


def _shown(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a section with keys"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return repr(node.value) if node.value or node.style else "empty"


def _listed(names: Mapping[str, object]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _plain(content: object) -> object:
    """What YAML can write: tuples become lists, paths text."""
    if isinstance(content, Mapping):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return str(content) if isinstance(content, Path) else content
