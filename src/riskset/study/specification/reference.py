"""Every key of a specification and every column of results, as the documentation lists them."""

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any, Union

from riskset._settings import Setting, declared, default_words, is_section
from riskset.results.folder import RUN_KEYS, STUDY_KEYS
from riskset.results.rows import TABLES
from riskset.study.specification.sections import Specification

__all__ = ["keys_in_markdown", "tables_in_markdown"]


def keys_in_markdown() -> str:
    """A table for each section of a specification, from the outside in."""
    parts, waiting, seen = [], [("the file", Specification)], set()
    while waiting:
        title, section = waiting.pop(0)
        if section in seen:
            continue
        seen.add(section)
        waiting += list(_sections(section))
        parts.append(f"### {title}\n\n{_about(section)}\n\n| key | value | default | meaning |")
        parts[-1] += "\n|---|---|---|---|\n" + "\n".join(_rows(section))
    return "\n\n".join(parts) + "\n"


def tables_in_markdown() -> str:
    """A table for each document and each table of the results."""
    parts = [
        _table(f"`{name}`", about, [(f"`{key}`", "", text) for key, text in keys.items()])
        for name, about, keys in (
            ("study.json", "The specification of the study.", STUDY_KEYS),
            ("run.json", "Date and times of the run.", RUN_KEYS),
        )
    ]
    for table in TABLES.values():
        rows = [
            (
                f"`{c.name}`",
                f"{c.type}{', may be missing' if c.is_optional else ''}; {c.kind}",
                c.about,
            )
            for c in table.columns().values()
        ]
        parts.append(_table(f"`{table.table}.parquet`", table.about(), rows))
    return "\n\n".join(parts) + "\n"


def _table(title: str, about: str, rows: list[tuple[str, str, str]]) -> str:
    lines = [f"| {name} | {kind} | {_escaped(text)} |" for name, kind, text in rows]
    return f"## {title}\n\n{about}\n\n| column | type | meaning |\n|---|---|---|\n" + "\n".join(
        lines
    )


def _about(section: Any) -> str:
    return str(section.__doc__).split("\n\n")[0].replace("\n", " ")


def _rows(section: Any) -> Iterator[str]:
    for one in declared(section).values():
        if one.key is not None:
            cells = (one.words, _default(one), one.about)
            yield f"| `{one.key}` | {' | '.join(map(_escaped, cells))} |"


def _default(one: Setting) -> str:
    return "*required*" if one.default is dataclasses.MISSING else default_words(one)


def _sections(section: Any) -> Iterator[tuple[str, Any]]:
    """The sections within a section, with the keys that lead to them."""
    for one in declared(section).values():
        for inner in _classes(one.kind) if one.key is not None else ():
            many = typing.get_origin(one.kind) in (dict, tuple)
            yield f"`{one.key}`{': each' if many else ''}", inner


def _classes(kind: Any) -> Iterator[Any]:
    if is_section(kind):
        yield kind
    elif typing.get_origin(kind) in (Union, types.UnionType, dict, tuple):
        for inner in typing.get_args(kind):
            yield from _classes(inner)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
