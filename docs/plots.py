"""Draws the pictures of docs/plots.md: `make plots`.

Runs the code of the page from top to bottom. The picture after a block of code is its last `ax`.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
PART = re.compile(
    r"```python\n(?P<code>.*?)```|!\[[^\]]*\]\((?P<picture>plots/[\w-]+\.png)\)", re.DOTALL
)
DPI = 110


def drawn() -> Iterator[tuple[str, Any]]:
    """The name of each picture of the page, and the axes that its code has made."""
    text = (DOCS / "plots.md").read_text("utf-8")
    known: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for part in PART.finditer(text):
            if part["code"] is not None:
                exec(part["code"], known)
            else:
                yield part["picture"], known["ax"]


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    for name, ax in drawn():
        path = DOCS / name
        path.parent.mkdir(exist_ok=True)
        ax.figure.savefig(path, dpi=DPI)
        print(path.relative_to(DOCS.parent))
