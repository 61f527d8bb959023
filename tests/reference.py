"""Tables and numbers from other programs, as arrays: `golden/` and `cases/`."""

import csv
import functools
import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
CASES = HERE / "cases"


@functools.cache
def read_table(path):
    """Columns of a CSV file: floats where all values are numbers, text otherwise."""
    with path.open(encoding="utf-8", newline="") as stream:
        names, *rows = csv.reader(stream)
    columns = {}
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        try:
            columns[name] = np.array([float(v or "nan") for v in values])
        except ValueError:
            columns[name] = np.array(values, dtype=object)
    return columns


@functools.cache
def read_json(path):
    """A JSON file."""
    return json.loads(path.read_text("utf-8"))


def matrix(table, names):
    """Columns side by side (n, p)."""
    return np.column_stack([table[name] for name in names])
