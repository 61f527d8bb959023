"""Imports point down the layers and in no circle; names are unique; functions and files stay short.

Modules that may do what others may not are listed by name, and the lists have no other entries.
"""

import ast
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import source_tree
from source_tree import FILES, body_lines, dotted, imports, place

# Lowest first. A module may import its own layer and the layers before it.
LAYERS = (
    ("_errors", "_keywords", "_messages", "_settings", "_types", "_version"),
    ("_runtime", "_progress", "_ticks", "_time_units"),
    ("kernels",),
    ("data",),
    ("tables",),
    ("results",),
    ("disclosure",),
    ("engine",),
    ("actors",),
    ("model",),
    ("solve",),
    ("infer",),
    ("curves", "estimators", "metrics", "simulate", "datasets"),
    ("cohort",),
    ("imputation",),
    ("warehouse",),
    ("omop",),
    ("ohdsi",),
    ("study",),
    ("plot",),
    ("report",),
    ("network",),
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
    **dict.fromkeys(
        ("sqlglot", "keyring", "adbc_driver_postgresql", "adbc_driver_manager"), ("warehouse/",)
    ),
    "sklearn": (
        "estimators",
        "imputation/",
        "cohort/adjustments/several_treatments.py",
        "ohdsi/results_ids.py",
    ),
    "threadpoolctl": ("_runtime.py",),
    "joblib": ("engine.py",),
    "cloudpickle": ("engine.py",),
    "dask": ("engine.py",),
    "distributed": ("engine.py",),
    "ray": ("engine.py",),
    "matplotlib": ("plot/",),
    "yaml": ("study/",),
    "markupsafe": ("report/",),
    "docx": ("tables/word.py",),
    "pydantic": (
        *("data/documents.py", "data/schema_form.py"),
        "estimators/fit_form.py",
    ),
    "typer": ("cli/",),
    "rich": ("cli/", "_progress.py"),
    "pandas": ("bench/peer_scripts/", "data/formula.py"),
    "formulaic": ("data/formula.py", "data/model_formula.py", "data/natural_spline.py"),
    "duckcdm": ("ohdsi/circe.py",),
    "rdata": ("ohdsi/r_object.py",),
    "polars": (),
    **dict.fromkeys(
        ("adelie", "lifelines", "skglm", "sksurv", "statsmodels"), ("bench/peer_scripts/",)
    ),
}

MAX_LINES = 700
MAX_BODY = 60
BANNED = {"utils", "util", "common", "helpers", "misc"}

# Modules that look into the texts of errors of other packages, and in how many lines: Ray, DuckDB,
# Arrow and CUDA give no more than a text.
READ_MESSAGES = {
    "actors.py": 1,
    "data/database.py": 3,
    "data/files.py": 4,
    "data/formula.py": 1,
    "data/model_formula.py": 1,
    "kernels/cuda/device.py": 1,
}

# What `import riskset` must not wait for, and what a fit must not.
HEAVY = (
    *("numba", "sklearn", "scipy", "pyarrow", "narwhals"),
    *(
        "duckdb",
        "matplotlib",
        "pandas",
        "polars",
        "pydantic",
        "yaml",
        "typer",
        "rich",
        "markupsafe",
        "docx",
    ),
    *("dask", "distributed", "ray"),
    *("duckcdm", "rdata"),
    *("sqlglot", "keyring", "adbc_driver_manager"),
)
UNUSED_BY_FITS = (
    *("matplotlib", "polars", "typer", "markupsafe", "dask", "distributed", "ray"),
    *(
        "riskset.bench",
        "riskset.cli",
        "riskset.study",
        "riskset.report",
        "riskset.omop",
        "riskset.ohdsi",
    ),
    *("riskset.cohort", "riskset.plot", "riskset.simulate.toy_database"),
)


def layer(module: str) -> int:
    """Rank of `riskset.<module>...`, and of the package itself, which is its ``__init__``."""
    return RANK[module or "__init__"]


def top(path: Path) -> str:
    return Path(place(path)).parts[0].removesuffix(".py")


def test_the_rules_name_modules_that_exist() -> None:
    """A rule about a module that was renamed would always hold."""
    places = {place for homes in HOMES.values() for place in homes} | set(READ_MESSAGES)
    absent = {place for place in places if not (source_tree.SOURCE / place).exists()}
    absent |= {name for names in LAYERS for name in names} - {top(path) for path in FILES}
    modules = {dotted(path) for path in FILES}
    absent |= {n for n in UNUSED_BY_FITS if n.startswith("riskset.") and n not in modules}
    assert not absent


def test_every_layer_is_named() -> None:
    unknown = {top(path) for path in FILES} - set(RANK)
    assert not unknown, f"give {unknown} a layer"


def test_imports_follow_the_layers() -> None:
    wrong = []
    for path in FILES:
        for line, name in imports(path):
            package, *rest = name.split(".")
            if package == "riskset" and layer(rest[0] if rest else "") > layer(top(path)):
                wrong.append(f"{place(path)}:{line} imports {name}")
    assert not wrong


def test_no_modules_import_each_other() -> None:
    """Neither at the top, nor in functions, nor for type checkers."""
    assert source_tree.circles(source_tree.graph()) == []


def test_public_names_differ_from_the_names_of_submodules() -> None:
    """Importing a submodule replaces what its package has under that name."""
    wrong = []
    for path in FILES:
        if path.name == "__init__.py":
            submodules = {
                *(file.stem for file in path.parent.glob("*.py")),
                *(file.parent.name for file in path.parent.glob("*/__init__.py")),
            }
            public = getattr(importlib.import_module(dotted(path)), "__all__", ())
            wrong += [f"{dotted(path)}.{name}" for name in public if name in submodules]
    assert not wrong


def test_heavy_packages_have_one_home() -> None:
    wrong = []
    for path in FILES:
        for line, name in imports(path):
            homes = HOMES.get(name.split(".")[0])
            if homes is not None and not place(path).startswith(homes):
                wrong.append(f"{place(path)}:{line} may not import {name}")
    assert not wrong


def test_classes_that_others_see_have_names_of_their_own() -> None:
    """A class that is public or imported elsewhere shares its name with no class of a module."""
    homes = defaultdict(list)
    for path in FILES:
        for name in source_tree.class_names(path):
            homes[name].append(path)
    imported = {name for path in FILES for _, name in imports(path)}
    wrong = {
        name: [place(path) for path in paths]
        for name, paths in homes.items()
        if len(paths) > 1 and any(f"{dotted(path)}.{name}" in imported for path in paths)
    }
    assert wrong == {}


def test_modules_are_short_and_say_what_they_are_for() -> None:
    for path in FILES:
        n_lines = len(path.read_text("utf-8").splitlines())
        assert n_lines <= MAX_LINES, f"{place(path)}: {n_lines} lines"
        assert ast.get_docstring(source_tree.tree(path)), f"{place(path)} needs a docstring"
        assert path.stem not in BANNED, f"{place(path)} needs a name that says what it is about"


def test_functions_are_short() -> None:
    long = {
        f"{place(path)} {name}": lines
        for path in FILES
        for name, function in source_tree.functions(path)
        if (lines := body_lines(function)) > MAX_BODY
    }
    assert long == {}


def test_no_code_reads_messages() -> None:
    """Errors and notes carry data; their texts are for people."""
    found = {
        place(path): len(lines)
        for path in FILES
        if (lines := set(source_tree.reads_of_messages(path)))
    }
    assert found == READ_MESSAGES


def test_the_guide_for_contributors_knows_the_layout() -> None:
    """The table has every part of the package, and the files that the text points at exist."""
    root = source_tree.SOURCE.parents[1]
    text = (root / "CONTRIBUTING.md").read_text("utf-8")
    listed = {
        name.rstrip("/")
        for line in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", line)
    }
    assert listed - {"src/riskset"} == {top(path) for path in FILES} - {
        *("__init__", "__main__", "_version")
    }
    for name in re.findall(r"`([\w/]+\.(?:py|toml))`", text):
        assert (source_tree.SOURCE / name).exists() or (root / name).exists(), name


def loaded(code: str, names: tuple[str, ...]) -> list[str]:
    """Which of these modules Python has imported after some code."""
    code += f"\nimport sys\nprint(*[name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_import_is_light() -> None:
    """Nothing heavy is loaded before it is used: the command line answers at once."""
    assert loaded("import riskset", (*HEAVY, *UNUSED_BY_FITS)) == []


def test_a_fit_imports_no_more_than_it_needs() -> None:
    code = """
import riskset as rs
data = rs.simulate_cox(50, 2, seed=1)
rs.Cox(rs.L2(1.0)).fit(data.X, data.y)
"""
    assert loaded(code, UNUSED_BY_FITS) == []
