"""The code of docs/plots.md runs, and each of its pictures exists."""

import importlib.util
from pathlib import Path

from matplotlib.axes import Axes

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_plots() -> None:
    spec = importlib.util.spec_from_file_location("plots_page", DOCS / "plots.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    names = []
    for name, ax in page.drawn():
        assert isinstance(ax, Axes)
        assert ax.has_data()
        assert (DOCS / name).exists()
        names.append(name)
    assert sorted(names) == sorted(f"plots/{p.name}" for p in (DOCS / "plots").glob("*.png"))
