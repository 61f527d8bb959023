import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import riskset as rs
from report.made import study, tables, write_made
from report.parsed import Element, parse

DATE = "2026-04-01"


@dataclass(frozen=True)
class Report:
    path: Path
    page: Element
    content: dict[str, Any]

    @property
    def html(self) -> str:
        return self.path.read_text("utf-8")

    @property
    def part(self) -> dict[str, Any]:
        return self.content["parts"][0]

    @property
    def sections(self) -> list[str]:
        return [e.attrs["aria-labelledby"] for e in self.page.all("section")]

    @property
    def text(self) -> str:
        """What a reader reads."""
        return self.page.one("body").text.replace("\u202f", " ")


def read(path: Path) -> Report:
    return Report(path, parse(path), json.loads(path.with_suffix(".json").read_text("utf-8")))


Write = Callable[..., Report]


@pytest.fixture
def report(tmp_path: Path) -> Write:
    """Write a report of made-up results: tables and keys of `study.json`, options of `write`."""

    def write(found: dict | None = None, about: dict | None = None, **options: Any) -> Report:
        folder = write_made(tmp_path / "results", found or tables(), about or study())
        return read(rs.report.write(folder, tmp_path / "report.html", date=DATE, **options))

    return write


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of a study that went well."""
    folder = tmp_path_factory.mktemp("whole")
    write_made(folder / "results")
    return read(rs.report.write(folder / "results", folder / "report.html", date=DATE))
