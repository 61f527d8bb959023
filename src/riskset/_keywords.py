"""Functions that take settings, as one object or as keywords.

A setting is declared once, as a field that `riskset._settings.setting` makes. The decorators here
give the fields of a class of settings to a function as parameters: in its signature, and in the
docstring that `help` shows.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from riskset._errors import InputError
from riskset._settings import UNKNOWN, Settings, declared, parameters_section

__all__ = ["keywords", "takes"]

P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")

BY_POSITION = inspect.Parameter.POSITIONAL_OR_KEYWORD
BY_NAME = inspect.Parameter.KEYWORD_ONLY


class keywords(Generic[P, S]):  # noqa: N801
    """Decorator: the last parameter, an object of `settings`, becomes keywords.

    Callers give the fields of the class as keywords, and type checkers know them. `__wrapped__`
    takes the object itself.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from riskset._settings import setting
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Rounding:
    ...     digits: int = setting("the number of decimals", 2)
    >>> @keywords(Rounding)
    ... def rounded(number: float, rounding: Rounding) -> float:
    ...     return round(number, rounding.digits)
    >>> rounded(0.1234), rounded(0.1234, digits=1)
    (0.12, 0.1)
    >>> inspect.signature(rounded)
    <Signature (number: float, *, digits: int = 2) -> float>
    """

    def __init__(self, settings: Callable[P, S]) -> None:
        self._settings = settings

    @overload
    def __call__(self, function: Callable[[A, S], R]) -> Callable[Concatenate[A, P], R]: ...

    @overload
    def __call__(self, function: Callable[[A, B, S], R]) -> Callable[Concatenate[A, B, P], R]: ...

    @overload
    def __call__(
        self, function: Callable[[A, B, C, S], R]
    ) -> Callable[Concatenate[A, B, C, P], R]: ...

    def __call__(self, function: Callable[..., R]) -> Callable[..., R]:
        *first, last = inspect.signature(function).parameters.values()
        fields = inspect.signature(self._settings).parameters.values()
        return _with_fields(function, self._settings, last.name, [*first, *fields])


class TakesSettings(Protocol[P, R_co]):
    """A function whose settings are one object, in which case checkers know all, or keywords."""

    @overload
    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R_co: ...

    @overload
    def __call__(self, *arguments: Any, **named: Any) -> R_co: ...


def takes(
    cls: type[Settings], *, positional: int = 0
) -> Callable[[Callable[P, R]], TakesSettings[P, R]]:
    """Decorator: the parameter ``settings`` may be given as one object of `cls` or as its fields.

    The object may be given by position, too, anywhere; of the fields the first `positional` may.
    """

    def decorate(function: Callable[P, R]) -> TakesSettings[P, R]:
        first: list[inspect.Parameter] = []
        last: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(function).parameters.items():
            if name != "settings":
                (last if parameter.kind is BY_NAME else first).append(parameter)
                continue
            last.append(parameter.replace(kind=BY_NAME, default=None, annotation=cls | None))
            for k, one in enumerate(declared(cls).values()):
                kind = BY_POSITION if k < positional else BY_NAME
                default = inspect.Parameter.empty if one.default in UNKNOWN else one.default
                made = inspect.Parameter(one.name, kind, default=default, annotation=one.kind)
                (first if k < positional else last).append(made)
        return _with_fields(function, cls, "settings", [*first, *last])

    return decorate


def _with_fields(
    function: Callable[..., R], cls: Any, parameter: str, shown: list[inspect.Parameter]
) -> Callable[..., R]:
    """A function with the parameters `shown`, whose settings become the object `parameter`."""
    signature = inspect.signature(function).replace(parameters=shown)
    names = declared(cls)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> R:
        # By the class and never by ==, which compares arrays element by element.
        objects = [value for value in arguments if isinstance(value, Settings)]
        if "settings" in signature.parameters and named.get("settings") is not None:
            objects.append(named.pop("settings"))
        arguments = tuple(value for value in arguments if not isinstance(value, Settings))
        try:
            bound = signature.bind(*arguments, **named).arguments
        except TypeError as error:
            raise TypeError(f"{function.__qualname__}(): {error}") from None
        fields = {name: bound.pop(name) for name in names if name in bound}
        if objects:
            _check_objects(objects, cls, fields)
        bound[parameter] = objects[0] if objects else cls(**fields)
        return function(**bound)

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = function.__doc__ and _documented(function.__doc__, cls)
    return call


def _check_objects(objects: list[Any], cls: type[Any], fields: dict[str, object]) -> None:
    """Accept one object of the class, without further values of its fields."""
    for one in objects:
        if not isinstance(one, cls):
            raise InputError(
                f"`settings` must be an object of {cls.__name__}, but it is {one!r}.",
                hint=f"pass {cls.__name__}(...), or its fields as keywords.",
                value=one,
            )
    if len(objects) > 1:
        raise InputError(
            f"`settings` was given {len(objects)} times.",
            hint=f"pass one object of {cls.__name__}.",
            value=objects,
        )
    for name, value in fields.items():
        raise InputError(
            f"`{name}` was given together with an object of {cls.__name__}, which also sets it.",
            hint=f"set `{name}` in the object, or pass all settings as keywords without it.",
            value=value,
        )


def _documented(text: str, cls: Any) -> str:
    """A docstring with an entry for each setting.

    They follow the entry of ``settings``, or replace a line that begins with ``**keywords``.
    """
    lines: list[str] = []
    for line in inspect.cleandoc(text).split("\n"):
        if not line.startswith("**keywords"):
            lines.append(line)
        if line.startswith("settings : "):
            lines.append("    All settings as one object, or as the keywords that follow.")
        if line.startswith(("settings : ", "**keywords")):
            lines += parameters_section(cls)
    return "\n".join(lines)
