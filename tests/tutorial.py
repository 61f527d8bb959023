"""Does docs/tutorial.md as its reader would: files that grow piece by piece, commands, code."""

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from riskset.cli.main import main

TUTORIAL = (Path(__file__).parents[1] / "docs/tutorial.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^(?=\w)", re.MULTILINE)


@dataclass
class Reader:
    """Somebody in an empty folder, which must be the current one.

    `steps` yields (language, text of the box, what was printed) after each box; a box of text
    belongs to what was printed by the box before it.
    """

    files: dict[str, dict[str, str]] = field(default_factory=dict)
    names: dict[str, object] = field(default_factory=dict)

    def steps(self) -> Iterator[tuple[str, str, str]]:
        printed = ""
        for language, text in BLOCK.findall(TUTORIAL):
            if language == "yaml":
                self._write(text)
            elif language == "sh":
                printed = "".join(_command(line) for line in text.splitlines())
            elif language == "python":
                printed = self._python(text)
            yield language, text, printed

    def _write(self, text: str) -> None:
        """A piece of a file; a section that is there already is replaced."""
        heading, _, piece = text.partition("\n")
        name = heading.removeprefix("# ")
        sections = self.files.setdefault(name, {})
        for section in SECTION.split(piece):
            if section.strip():
                key = section.partition(":")[0]
                sections.pop(key, None)
                sections[key] = section
        Path(name).write_text("".join(sections.values()), "utf-8")

    def _python(self, text: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(text, "docs/tutorial.md", "exec"), self.names)
        return out.getvalue()


def _command(line: str) -> str:
    """What a command prints; those of other programs are left out."""
    words = shlex.split(line)
    if words[0] != "riskset":
        return ""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        mock.patch.object(sys, "argv", words),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert not ended.value.code, line
    return out.getvalue()
