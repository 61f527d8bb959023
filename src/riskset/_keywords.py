"""Functions that take the fields of a settings class as keywords.

A setting is declared once, as a field of a frozen dataclass that `riskset._settings.setting` makes.
`keywords` gives a function these fields as keyword-only parameters: in its signature, for type
checkers and editors, and in its docstring.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from riskset._settings import declared

__all__ = ["keywords"]

P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
R = TypeVar("R")
S = TypeVar("S")

PLACEHOLDER = "**keywords"
"""Begins the line of a docstring that the descriptions of the keywords replace."""


class keywords(Generic[P, S]):  # noqa: N801
    """Decorator: the last parameter, an object of `settings`, becomes keywords.

    The decorated function is called with the fields of the class as keywords. Its `__wrapped__`
    takes the object itself.

    Parameters
    ----------
    settings : type
        A frozen dataclass with keyword-only fields.

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
        own = inspect.signature(function)
        *first, last = own.parameters.values()
        added = inspect.signature(self._settings).parameters.values()
        signature = own.replace(parameters=[*first, *added])
        names = [parameter.name for parameter in added]

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> R:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__qualname__}() {error}") from None
            given = {name: kwargs.pop(name) for name in names if name in kwargs}
            settings: Any = self._settings
            return function(*args, **kwargs, **{last.name: settings(**given)})

        called.__signature__ = signature  # type: ignore[attr-defined]
        if function.__doc__:
            called.__doc__ = _described(function.__doc__, self._settings)
        return called


def _described(text: str, settings: Any) -> str:
    """A docstring with an entry for each keyword."""
    lines: list[str] = []
    for line in inspect.cleandoc(text).split("\n"):
        if not line.startswith(PLACEHOLDER):
            lines.append(line)
            continue
        for one in dataclasses.fields(settings):
            about = declared(settings)[one.name].about
            kind = one.type if isinstance(one.type, str) else inspect.formatannotation(one.type)
            kind = kind.replace("collections.abc.", "")
            lines += [f"{one.name} : {kind}", f"    {about[0].upper()}{about[1:]}."]
    return "\n".join(lines)
