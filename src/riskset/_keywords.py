"""Functions that take the fields of a settings class as keywords.

A setting is declared once, as a field of a frozen dataclass: its name, type, default and one
sentence of meaning. `keywords` gives a function these fields as keyword-only parameters: in its
signature, for type checkers and editors, and in its docstring.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, field, fields
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

__all__ = ["keywords", "meaning", "setting"]

P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
R = TypeVar("R")
S = TypeVar("S")

PLACEHOLDER = "**keywords"
"""Line of a docstring that the descriptions of the keywords replace."""


def setting(default: Any, about: str, **more: object) -> Any:
    """A field of a settings class: its default, and a sentence that says what it means."""
    return field(default=default, metadata={"about": about, **more})


def meaning(one: "Field[Any]") -> str:
    """The sentence that says what a field means."""
    return str(one.metadata["about"])


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
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Rounding:
    ...     digits: int = setting(2, "Number of decimals.")
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
    lines = text.split("\n")
    at = next((k for k, line in enumerate(lines) if line.strip().startswith(PLACEHOLDER)), None)
    if at is None:
        return text
    margin = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    entries = []
    for one in fields(settings):
        kind = one.type if isinstance(one.type, str) else inspect.formatannotation(one.type)
        entries += [f"{margin}{one.name} : {kind}", f"{margin}    {meaning(one)}"]
    return "\n".join([*lines[:at], *entries, *lines[at + 1 :]])
