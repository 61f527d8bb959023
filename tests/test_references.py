"""Names, files and options that the documentation and docstrings mention exist."""

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import source_tree
from riskset.cli.main import app
from riskset.results.rows import TABLES

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(source_tree.SOURCE.rglob("*.md")),
]
PACKAGES = {source_tree.place(path).split("/")[0] for path in source_tree.FILES}

# Options of pip, pytest, ruff, mypy and others, of scripts in `bench`, and of Compute Sanitizer.
OTHER_OPTIONS = {
    *("--numprocesses", "--dist", "--check", "--fix", "--strict", "--editable", "--tool"),
    *("--disable-pip-version-check", "--yes", "--no-install-recommends", "--with-deps"),
    *("--cohorts", "--studies"),
    *("--builder", "--fail-on-warning", "--keep-going"),  # of Sphinx
    *("--rm", "--tag", "--volume"),  # of Docker
}

PUBLIC = re.compile(r"(?<![\w./\"'-])(?:rs|riskset)((?:\.[A-Za-z_]\w*)+)(?![\w*/])")


def texts() -> Iterator[tuple[Path, str]]:
    """Documents, and the docstrings of the package."""
    for path in DOCUMENTS:
        yield path, path.read_text("utf-8")
    for path in source_tree.FILES:
        for node in ast.walk(source_tree.tree(path)):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield path, text


def exists(name: str) -> bool:
    """Whether a dotted name is a module or leads to an attribute of one."""
    parts = name.split(".")
    for n_parts in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:n_parts]))
        except ImportError:
            continue
        for part in parts[n_parts:]:
            fields = getattr(value, "__dataclass_fields__", {})
            value = fields[part] if part in fields else getattr(value, part, None)
            if value is None:
                return False
        return True
    return False


def options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for sub in getattr(command, "commands", {}).values():
        yield from options(sub)


def test_dotted_names() -> None:
    """`rs.Cox`, `riskset.path`, and names in modules, such as `model.block.BlockSource`."""
    absent, n_names = [], 0
    for path, text in texts():
        for span in re.findall(r"`+([^`\n]+)`+", text):
            names = PUBLIC.findall(span)
            if span.split(".")[0] in PACKAGES and re.fullmatch(r"[a-z_]+\.[a-z_]+\.\w+", span):
                names.append(f".{span}")
            n_names += len(names)
            absent += [
                f"{path.relative_to(ROOT)}: {span}"
                for name in names
                if not exists(f"riskset{name}") and not (ROOT / span).exists()
            ]
    assert not absent
    assert n_names > 100


def test_the_walks_of_the_guide_for_contributors() -> None:
    """Classes, functions, attributes and columns are somewhere in the package."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    walks = text[text.index("### A setting") : text.index("## House rules")]
    known = {name for row in TABLES.values() for name in row.columns()}
    for path in source_tree.FILES:
        for node in ast.walk(source_tree.tree(path)):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                    known.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    known.add(name)
    spans = set(re.findall(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)`", walks))
    files = {span for span in spans if re.search(r"\.(py|json|parquet|toml)$", span)}
    words = {word for span in spans - files for word in span.split(".")}
    assert words <= known
    assert len(words) > 20


def test_files() -> None:
    """Modules and documents, from the root, from the package, or from the document itself."""
    absent, n_files = [], 0
    for path, text in texts():
        for name in re.findall(
            r"(?<![\w./*-])((?:\.\./)*(?:[\w.-]+/)+[\w-]+\.(?:py|md|toml))\b", text
        ):
            n_files += 1
            homes = (ROOT, source_tree.SOURCE, path.parent)
            if not any((home / name).exists() for home in homes):
                absent.append(f"{path.relative_to(ROOT)}: {name}")
    assert not absent
    assert n_files > 50


def test_options() -> None:
    known = {*options(typer.main.get_command(app)), "--help", *OTHER_OPTIONS}
    mentioned = {
        (path.relative_to(ROOT).as_posix(), option)
        for path, text in texts()
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", text)
    }
    assert {(path, option) for path, option in mentioned if option not in known} == set()
    assert len(mentioned) > 50
