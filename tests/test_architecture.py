"""Imports point down the layers, each heavy package has one home, and files stay readable."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "riskset"
FILES = sorted(SOURCE.rglob("*.py"))

# Lowest first. A module may import its own layer and the layers before it.
LAYERS = (
    ("_errors", "_keywords", "_messages", "_types", "_version"),
    ("_runtime", "_progress"),
    ("kernels",),
    ("data",),
    ("results",),
    ("disclosure",),
    ("engine",),
    ("actors",),
    ("model",),
    ("solve",),
    ("infer",),
    ("curves", "estimators", "metrics", "simulate", "datasets"),
    ("cohort",),
    ("omop",),
    ("study",),
    ("report",),
    ("plot",),
    ("bench",),
    ("__init__",),
    ("cli",),  # stands on the public names
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# Package -> the modules that may import it.
HOMES = {
    "numba": ("kernels/",),
    "llvmlite": ("kernels/",),
    "cuda": ("kernels/cuda/",),
    "narwhals": ("data/",),
    "pyarrow": ("data/", "results/folder.py"),
    "duckdb": ("data/",),
    "sklearn": ("estimators",),
    "threadpoolctl": ("_runtime.py",),
    "joblib": ("engine.py",),
    "cloudpickle": ("engine.py",),
    "dask": ("engine.py",),
    "distributed": ("engine.py",),
    "ray": ("engine.py",),
    "matplotlib": ("plot/",),
    "yaml": ("study/",),
    "markupsafe": ("report/",),
    "pydantic": (
        *("data/documents.py", "data/schema_form.py"),
        "estimators/fit_form.py",
    ),
    "typer": ("cli/",),
    "rich": ("cli/", "_progress.py"),
    "pandas": ("data/frame.py", "estimators", "bench/peer_scripts/"),
    "polars": (),
    **dict.fromkeys(
        ("adelie", "lifelines", "skglm", "sksurv", "statsmodels"), ("bench/peer_scripts/",)
    ),
}

MAX_LINES = 700
BANNED = {"utils", "util", "common", "helpers", "misc"}

each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def layer(module: str) -> int:
    """Rank of `riskset.<module>...`, and of the package itself, which is its ``__init__``."""
    return RANK[module or "__init__"]


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, wherever it stands, those for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{place(path)}:{node.lineno}: write the import in full"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


@each_file
def test_imports_follow_the_layers(path: Path) -> None:
    own = layer(Path(place(path)).parts[0].removesuffix(".py"))
    for line, name in imports(path):
        package, *rest = name.split(".")
        if package == "riskset":
            assert layer(rest[0] if rest else "") <= own, f"{place(path)}:{line} imports {name}"


@each_file
def test_heavy_packages_have_one_home(path: Path) -> None:
    for line, name in imports(path):
        homes = HOMES.get(name.split(".")[0])
        allowed = homes is None or place(path).startswith(homes)
        assert allowed, f"{place(path)}:{line} may not import {name}"


@each_file
def test_modules_are_short_and_say_what_they_are_for(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert ast.get_docstring(ast.parse(text))
    assert path.stem not in BANNED


def test_every_layer_is_named() -> None:
    found = {Path(place(path)).parts[0].removesuffix(".py") for path in FILES}
    assert found <= set(RANK), f"give {found - set(RANK)} a layer"
