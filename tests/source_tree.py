"""The modules of `src/riskset` as syntax trees: their imports, classes, functions and handlers."""

import ast
import functools
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[1] / "src" / "riskset"
FILES = sorted(SOURCE.rglob("*.py"))

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Import(NamedTuple):
    """What a module imports: a module, or a name in one."""

    line: int
    name: str


def place(path: Path) -> str:
    """The path of a module below `src/riskset`."""
    return path.relative_to(SOURCE).as_posix()


def dotted(path: Path) -> str:
    """The name by which a module is imported."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def imports(path: Path) -> Sequence[Import]:
    """Every import, wherever it stands, those for type checkers too."""
    out = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            out += [Import(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place(path)}:{node.lineno}: write the import in full"
            out += [Import(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return out


@functools.cache
def graph() -> Mapping[str, frozenset[str]]:
    """Modules -> the modules of riskset that they import."""
    modules = {dotted(path) for path in FILES}
    return {
        dotted(path): frozenset(
            found
            for _, name in imports(path)
            if (found := name if name in modules else name.rpartition(".")[0]) in modules
        )
        - {dotted(path)}
        for path in FILES
    }


def circles(edges: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Groups of nodes each of which leads to all others of its group (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    out: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[-len(group) :]
            if len(group) > 1:
                out.append(sorted(group))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return out


def class_names(path: Path) -> set[str]:
    """Classes of a module, and its names for types: ``Side = Literal["left", "right"]``."""
    out = set()
    for node in tree(path).body:
        match node:
            case ast.ClassDef(name=name):
                out.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name.strip("_")[:1].isupper() and not name.isupper():
                    out.add(name)
    return out


def body_lines(function: Function) -> int:
    """Lines of the body of a function without its docstring."""
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    if not statements:
        return 0
    return (function.end_lineno or 0) - statements[0].lineno + 1


def functions(path: Path) -> Iterator[tuple[str, Function]]:
    """Functions and methods with their names below the module."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if isinstance(child, Function):
                    yield name, child
                yield from visit(child, f"{name}.")
            else:
                yield from visit(child, prefix)

    yield from visit(tree(path), "")


MESSAGES = ("message", "problem", "hint")
"""Attributes of errors and notes that hold a text for people."""

SEARCHES = {
    *("startswith", "endswith", "find", "index", "count", "partition", "rpartition", "split"),
    *("removeprefix", "removesuffix", "replace", "splitlines", "match", "search"),
}


def reads_of_messages(path: Path) -> Iterator[int]:
    """Lines that look into the text of an error or of a note.

    Recognised are ``in`` and ``==`` with such a text, its searching and splitting methods, its
    slices, and functions of `re` that get it.
    """
    errors = {node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ExceptHandler)} - {
        None
    }

    def is_text(node: ast.AST) -> bool:
        match node:
            case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
                return name in errors
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
                return name in errors
            case ast.Call(func=ast.Attribute(value=inner, attr="lower" | "strip" | "casefold")):
                return is_text(inner)
            case ast.Attribute(attr=attribute):
                return attribute in MESSAGES
        return False

    for node in ast.walk(tree(path)):
        match node:
            case ast.Compare(left=left, ops=operators, comparators=others):
                asks = (ast.In, ast.NotIn, ast.Eq, ast.NotEq)
                if isinstance(operators[0], asks) and any(
                    is_text(side) for side in (left, *others)
                ):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(value=value, attr=method), args=arguments):
                if method in SEARCHES and is_text(value):
                    yield node.lineno
                is_regex = isinstance(value, ast.Name) and value.id == "re"
                if is_regex and any(map(is_text, arguments)):
                    yield node.lineno
            case ast.Subscript(value=value):
                if is_text(value):
                    yield node.lineno


TEMPLATES = {"Note": 2, "Sentence": 0, "note": 1}
"""Calls with a template -> its place among the arguments."""


def numbers_in_templates(path: Path) -> Iterator[str]:
    """Templates of notes, and of errors with values, with a number that is no value.

    A template is text, or is put together from texts; what f-strings put in must be a word: neither
    formatted nor the result of a call, unless that joins texts. The digit 0 is allowed.
    """
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree(path)):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                assigned.setdefault(name, []).append(value)

    def texts(node: ast.expr) -> Iterator[str]:
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
                yield from (*texts(one), *texts(other))
            case ast.Name(id=name):
                for value in assigned.get(name, []):
                    yield from texts(value)
            case ast.JoinedStr(values=parts):
                yield "".join(map(part, parts))

    def part(node: ast.expr) -> str:
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                is_join = isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".join")
                if is_join or not isinstance(value, ast.Call):
                    return "x"
        return "9"

    for node in ast.walk(tree(path)):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments):
                has_values = any(word.arg == "values" for word in node.keywords)
                at = 1 if name == "CohortError" and has_values else TEMPLATES.get(name, 99)
                for text in texts(arguments[at]) if at < len(arguments) else ():
                    fixed = "".join(words for words, *_ in string.Formatter().parse(text))
                    if set(fixed) & set("123456789"):
                        yield f"line {node.lineno}: {text}"
