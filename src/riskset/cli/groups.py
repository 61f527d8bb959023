"""Options in groups: a command takes one dataclass for all the options that belong together."""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

__all__ = ["grouped"]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let each parameter whose type is a dataclass stand for an option a field.

    ``def fit(patients: Path, *, columns: Columns)`` becomes, to typer and to callers,
    ``fit(patients, *, time=None, event=None, ...)`` with the types and defaults of the fields of
    `Columns`. So commands share options without listing them, and a group checks itself when it is
    made, before anything is read.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        p.name: p.annotation for p in parameters.values() if is_dataclass(p.annotation)
    }

    @functools.wraps(command)
    def call(**options: Any) -> None:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**options, **made)

    flat = [p for parameter in parameters.values() for p in _flat(parameter, groups)]
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return call


def _flat(parameter: inspect.Parameter, groups: dict[str, Any]) -> Iterator[inspect.Parameter]:
    if parameter.name not in groups:
        yield parameter
        return
    for field in fields(groups[parameter.name]):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=field.type
        )
