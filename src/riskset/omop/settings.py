"""Settings as plain values, for JSON, hashes and reports."""

import datetime
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

__all__ = ["plain"]


def plain(value: object) -> object:
    """Settings of this package as JSON can hold them; a data frame only as the word for it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value):
        kept = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: plain(item) for name, item in kept.items()}
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return "a data frame"
