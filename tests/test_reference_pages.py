"""The reference: every public name stands on one page, with an example that pytest runs."""

import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

import riskset as rs

PAGES = sorted((Path(__file__).parents[1] / "docs/api").glob("*.md"))
LIST = re.compile(
    r"^\.\. currentmodule:: (\S+)\n\n\.\. autosummary::\n   :toctree: generated\n\n((?:   \w+\n)+)",
    re.MULTILINE,
)


def is_own(value: object) -> bool:
    """Classes of others, such as matplotlib's `Figure`, are documented elsewhere."""
    return getattr(value, "__module__", "riskset").startswith("riskset")


def public_names() -> dict[str, object]:
    """Each public object by its shortest name."""
    out: dict[str, object] = {}
    for module in ("riskset", *(f"riskset.{name}" for name in (*rs._MODULES, "datasets"))):
        home = importlib.import_module(module)
        for name in home.__all__:
            value = getattr(home, name)
            is_new = all(value is not known for known in out.values())
            if name != "__version__" and is_own(value) and is_new:
                out[f"{module}.{name}"] = value
    return out


NAMES = public_names()
CONSTANT = re.compile(r"^\.\. data:: (\w+)\n\n((?:^   .*\n|^\n)+)", re.MULTILINE)


def described() -> dict[str, str]:
    """Constants, which have no docstring, with their text on the page of their module."""
    return {
        f"riskset.{page.stem}.{name}": text
        for page in PAGES
        for name, text in CONSTANT.findall(page.read_text("utf-8"))
    }


def listed() -> Counter[str]:
    """The names on the pages of the reference."""
    found = Counter(dict.fromkeys(described(), 1))
    for page in PAGES:
        for module, names in LIST.findall(page.read_text("utf-8")):
            for name in names.split():
                # Listed by any of its names, such as riskset.datasets.load_rhc.
                value = getattr(importlib.import_module(module), name)
                found[next((n for n, v in NAMES.items() if v is value), name)] += 1
    return found


def test_every_public_name_is_on_one_page() -> None:
    found = listed()
    assert sorted(set(NAMES) - set(found)) == []
    assert sorted(set(found) - set(NAMES)) == []
    assert [name for name, times in found.items() if times > 1] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    value = NAMES[name]
    if inspect.isclass(value) or inspect.isfunction(value):
        text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    else:
        text = described().get(name)
    assert ">>> " in (text or ""), f"{name} has no example in its docstring"
