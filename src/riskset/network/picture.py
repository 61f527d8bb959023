"""The forest plot of a network, as matplotlib draws it."""

from pathlib import Path
from typing import Any

import numpy as np

from riskset.cohort.effects.effect_scale import effect_name
from riskset.network.effect_words import models_of
from riskset.network.evidence import EstimateKey
from riskset.network.lines import NetworkLine, network_lines
from riskset.plot._canvas import save_plot
from riskset.plot._forest import ForestLine, draw_forest

__all__ = ["network_forest", "save_forests"]

INDENT = "    "


def network_forest(
    network: Any, key: EstimateKey, *, ax: Any = None, title: str | None = None
) -> Any:
    """The axes of the plot of one estimate of a `NetworkResults`."""
    lines = [_as_line(one) for one in network_lines(network, key)]
    name = effect_name(models_of(network, [key]))
    return draw_forest(lines, level=network.level, ax=ax, title=title, xlabel=name)


def save_forests(network: Any, folder: Path) -> None:
    """A picture for each estimate, numbered as in the report."""
    folder.mkdir()
    for number, key in enumerate(network.keys(), start=1):
        save_plot(network_forest(network, key), folder / f"forest-{number}.png")


def _as_line(line: NetworkLine) -> ForestLine:
    is_corrected = line.kind == "calibrated"
    return ForestLine(
        f"{INDENT}{line.label}" if is_corrected else line.label,
        _number(line.hr),
        _number(line.lower),
        _number(line.upper),
        weight=1 / line.se**2 if line.se and np.isfinite(line.se) else float("nan"),
        is_emphasised=line.kind == "main",
        instead=line.instead or "not estimated",
    )


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
