"""A specification in YAML or JSON: its content, and the line of every fault.

Scalars stay text until `riskset._settings.Reader` reads them by the type that is expected: ``no``
is a text where a text is expected, and ``1e-8`` a number where a number is. JSON is read as the
YAML that it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from riskset._errors import InputError
from riskset._messages import spoken
from riskset._settings import Fault, Scalar
from riskset.study.specification.keys import KEYS

__all__ = ["YamlDocument"]

MAX_DEPTH = 50
"""Levels of sections within sections; a specification needs about ten."""

DEPTH_HINT = "look for an anchor (&name) that contains an alias (*name) of itself."

NodePairs = dict[str, tuple[yaml.Node, yaml.Node]]


@dataclass(frozen=True)
class YamlDocument:
    """A parsed document; messages call it by its `name`, which is "" for a mapping of Python."""

    name: str
    root: yaml.Node

    @classmethod
    def parse(cls, text: str, name: str) -> "YamlDocument":
        """Parse YAML or JSON; `InputError` names the line of what is neither."""
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
    def read(cls, path: Path) -> "YamlDocument":
        """Read a file; raises as `parse`, and if the file is absent or not text in UTF-8."""
        if not path.is_file():
            what = "is a folder, not a file" if path.is_dir() else "was not found"
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
    def of_mapping(cls, content: Mapping[str, Any]) -> "YamlDocument":
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
                problem = f"sections are nested more than {MAX_DEPTH} levels deep."
                raise self._error(node, Fault((), problem, DEPTH_HINT))
            if deepest.get(id(node), -1) >= depth or isinstance(node, yaml.ScalarNode):
                continue
            deepest[id(node)] = depth
            below = node.value if isinstance(node, yaml.SequenceNode) else sum(node.value, ())
            left += [(child, depth + 1) for child in below]

    def content(self, faults: list[Fault]) -> Any:
        """Mappings, lists and `Scalar`; a key that is not text, or given twice, is a fault."""
        return self._content(self.root, (), {}, faults)

    def _content(
        self,
        node: yaml.Node,
        path: tuple[str, ...],
        known: dict[int, Any],
        faults: list[Fault],
    ) -> Any:
        if id(node) in known:  # an alias, which may stand for very much
            return known[id(node)]
        content: Any
        if isinstance(node, yaml.MappingNode):
            content = {
                name: self._content(value, (*path, name), known, faults)
                for name, (_, value) in self._pairs(node, path, faults).items()
            }
        elif isinstance(node, yaml.SequenceNode):
            content = [
                self._content(child, (*path, str(k)), known, faults)
                for k, child in enumerate(node.value)
            ]
        else:
            content = Scalar(node.value)
            content.is_quoted = bool(node.style)
        known[id(node)] = content
        return content

    def _pairs(
        self, node: yaml.MappingNode, path: tuple[str, ...], faults: list[Fault]
    ) -> NodePairs:
        """Key -> (its node, that of the value); what ``<<`` refers to stands behind other keys."""
        pairs: NodePairs = {}
        merged: NodePairs = {}
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                faults.append(Fault(path, "a key must be a text."))
            elif name.value == "<<" and not name.style:
                parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for part in parts:
                    if isinstance(part, yaml.MappingNode):
                        merged = self._pairs(part, path, faults) | merged
                    elif part.value or part.style:
                        faults.append(Fault(path, "`<<` copies a section, but this is not one."))
            elif name.value in pairs:
                before = pairs[name.value][0].start_mark.line + 1
                where = f" (first in line {before})" if self.name else ""
                problem = f"the key {name.value!r} is given twice{where}."
                faults.append(Fault(path, problem, mark=name))
            else:
                pairs[name.value] = (name, value)
        return merged | pairs

    def place(self, path: Iterable[str]) -> tuple[yaml.Node, tuple[str, ...]]:
        """The node that the last key of a path marks, as far as the document has the path."""
        marked = node = self.root
        known: list[str] = []
        for name in path:
            below: NodePairs = {}
            if isinstance(node, yaml.MappingNode):
                below = self._pairs(node, (), [])
            elif isinstance(node, yaml.SequenceNode) and name.isdigit():
                below = {str(k): (child, child) for k, child in enumerate(node.value)}
            if name not in below:
                break
            marked, node = below[name]
            known.append(name)
        return marked, tuple(known)

    def error(self, fault: Fault) -> InputError:
        """A fault with its line and its keys."""
        marked, known = self.place(fault.path)
        if fault.line_of is not None:
            marked, _ = self.place(fault.line_of)
        return self._error(fault.mark or marked, fault, known)

    def _error(self, node: yaml.Node, fault: Fault, known: tuple[str, ...] = ()) -> InputError:
        places = [f"{self.name}, line {node.start_mark.line + 1}"] if self.name else []
        places += [".".join(known)] if known else []
        problem = spoken(fault.message, KEYS)
        message = f"{', '.join(places)}: {problem}" if places else problem
        return InputError(message, hint=fault.hint and spoken(fault.hint, KEYS))

    def refuse(self, faults: Iterable[Fault]) -> None:
        """Raise one error of all faults, in the order of their lines, if there are any.

        A fault of the section `defaults`, which every analysis has, is reported once.
        """
        by_place: dict[tuple[int, int, str], Fault] = {}
        for fault in faults:
            marked, _ = self.place(fault.path if fault.line_of is None else fault.line_of)
            mark = (fault.mark or marked).start_mark
            where = (mark.line, mark.column, fault.message)
            if where not in by_place or fault.path[:1] == ("defaults",):
                by_place[where] = fault
        errors = [self.error(by_place[where]) for where in sorted(by_place)]
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise InputError("\n".join(map(str, errors)))


def _plain(content: object) -> object:
    """What YAML can write: tuples become lists, paths text."""
    if isinstance(content, Mapping):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return str(content) if isinstance(content, Path) else content
