"""How commands declare options: once each, as fields of dataclasses.

A command takes one dataclass for each group of options::

    @dataclass(frozen=True, kw_only=True)
    class Running:
        threads: int | None = option("Number of threads.", metavar="N", panel=RUN, of="n_threads")

    @grouped
    def fit(patients: PatientsFile, *, run: Running) -> None: ...

A group checks itself when it is made, before anything is read.
"""

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, field, fields, is_dataclass
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from riskset._errors import InputError
from riskset._messages import spoken
from riskset._settings import declared
from riskset.cli.wording import COMMAND_LINE, CommandLine

__all__ = [
    "DATA",
    "MODEL",
    "PENALTY",
    "RESULT",
    "RUN",
    "chosen",
    "for_typer",
    "given",
    "grouped",
    "option",
    "option_of",
    "plain",
    "require",
]

DATA = "Data"
MODEL = "Model"
PENALTY = "Penalty"
RESULT = "Result"
RUN = "Run"


def option(
    about: str,
    default: Any = None,
    *,
    flag: str | None = None,
    metavar: str | None = None,
    panel: str | None = None,
    of: str | None = None,
    also: tuple[str, ...] = (),
) -> Any:
    """A field of a group that is an option of the command line, which must be given if ``...``.

    Without a `flag` it is called like the field. `of` is the parameter of the Python interface for
    which it stands, if that has another name, and `also` has further such names, for messages.
    """
    as_typer = functools.partial(
        typer.Option, help=about, metavar=metavar, rich_help_panel=panel, show_default=default != []
    )
    metadata = {"option": as_typer, "flag": flag, "of": of, "also": also}
    return field(default=MISSING if default is ... else default, metadata=metadata)


def option_of(
    settings: type, name: str, *, more: str = "", also: tuple[str, ...] = (), **details: Any
) -> Any:
    """An option that stands for a field of a settings class, from which it has its help."""
    known = declared(settings)
    names = CommandLine({other: _flag_of(other) for other in known})
    about = spoken(known[name].about, names).replace("``", "`")
    about = f"{about[0].upper()}{about[1:].rstrip('.')}."
    return option(f"{about} {more}".rstrip(), also=also, **details)


def given(group: Any, *names: str) -> list[str]:
    """The options of a group, or those of `names`, that were given."""
    return [
        _flag(one)
        for one in fields(group)
        if one.metadata and (not names or one.name in names)
        if getattr(group, one.name) not in (None, False, [], one.default)
    ]


def chosen(group: Any) -> dict[str, Any]:
    """Arguments of the Python interface: the options of a group that are not left to it."""
    values = {one.metadata["of"] or one.name: getattr(group, one.name) for one in fields(group)}
    return {name: value for name, value in values.items() if value not in (None, [])}


def require(options: list[str], needed: str, hint: str = "add it, or leave this out.") -> None:
    """Raise an error if options were given without what they need."""
    for one in options[:1]:
        raise InputError(f"{one} needs {needed}.", hint=hint)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let each parameter whose type is a dataclass stand for an option a field.

    ``def fit(patients: Path, *, columns: ColumnOptions)`` becomes, to typer and to callers,
    ``fit(patients, *, time=None, event=None, ...)`` with the types and defaults of the fields. What
    is one of a few words has the type ``Literal["a", "b"]``.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        p.name: p.annotation for p in parameters.values() if is_dataclass(p.annotation)
    }
    options = [one for group in groups.values() for one in fields(group) if one.metadata]
    alone = dict(filter(None, map(_named, parameters.values())))

    @functools.wraps(command)
    def call(**given: Any) -> None:
        COMMAND_LINE.options = alone | {
            name: _flag(one)
            for one in options
            for name in (one.name, one.metadata["of"], *one.metadata["also"])
        }
        values = {name: plain(value) for name, value in given.items()}
        made = {
            name: group(**{one.name: values.pop(one.name) for one in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **made)

    flat = [p for parameter in parameters.values() for p in _flat(parameter, groups)]
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    return call


def _named(parameter: inspect.Parameter) -> tuple[str, str] | None:
    """The name and the flag of a parameter that is an option by itself."""
    if get_origin(parameter.annotation) is not Annotated:
        return None
    for one in parameter.annotation.__metadata__:
        if isinstance(one, typer.models.OptionInfo):
            flags = one.param_decls or [_flag_of(parameter.name)]
            return parameter.name, next(flag for flag in flags if flag.startswith("--"))
    return None


def _flat(parameter: inspect.Parameter, groups: dict[str, Any]) -> Iterator[inspect.Parameter]:
    if parameter.name not in groups:
        kind = parameter.annotation
        if get_origin(kind) is Annotated:
            kind = Annotated[for_typer(get_args(kind)[0]), *kind.__metadata__]
        yield parameter.replace(annotation=kind)
        return
    for one in fields(groups[parameter.name]):
        kind = Annotated[for_typer(one.type), one.metadata["option"](_flag(one))]
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        yield inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind
        )


def _flag(one: "Field[Any]") -> str:
    return str(one.metadata["flag"] or _flag_of(one.name))


def _flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def for_typer(kind: Any) -> Any:
    """A type with enumerations in place of literals, which not all versions of typer read."""
    inner = get_args(kind)
    if get_origin(kind) is Literal:
        return StrEnum("Choice", {word: word for word in inner})
    if isinstance(kind, types.UnionType):
        return functools.reduce(operator.or_, map(for_typer, inner))
    return list[for_typer(inner[0])] if get_origin(kind) is list else kind  # type: ignore[misc]


def plain(value: Any) -> Any:
    """A value with words in place of the members of those enumerations."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value.value if isinstance(value, Enum) else value
