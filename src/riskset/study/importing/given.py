"""Settings of another program as they are written, and what of them has no counterpart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from riskset._errors import InputError

__all__ = ["Given", "LostSetting"]

MARKS = ("attr_", "rClass")
"""R's notes on the classes of its objects."""


@dataclass(frozen=True)
class LostSetting:
    """A setting that a study does not have, or has in another way.

    Attributes
    ----------
    place : str
        Keys that lead to the setting, separated by dots.
    value : object
    reason : str
        What riskset does instead.
    """

    place: str
    value: object
    reason: str


@dataclass
class Given:
    """A section of settings; every key is taken, lost with a reason, or found by `rest`."""

    content: Mapping[str, Any]
    place: str
    lost: list[LostSetting]
    _seen: set[str] = field(default_factory=set)

    def has(self, key: str) -> bool:
        """Whether a key has a value; R writes null, {}, [] and blanks for none."""
        value = self.content.get(key)
        return bool(value.strip()) if isinstance(value, str) else value not in (None, {}, [])

    def take(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        self._seen.add(key)
        return self.content[key] if self.has(key) else default

    def number(self, key: str, default: float | None = None) -> float | None:
        """A number, which R may have written as a text with blanks; whole ones as int."""
        value = self.take(key, default)
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
            value = value[0]
        try:
            found = float(value) if value is not None and not isinstance(value, bool) else None
        except (TypeError, ValueError):
            raise self.fault(key, "a number") from None
        if found is None or math.isinf(found) or not found.is_integer():
            return found
        return int(found)

    def whole(self, key: str, default: int | None = None) -> int | None:
        """A whole number."""
        value = self.number(key, default)
        if value is not None and not isinstance(value, int):
            raise self.fault(key, "a whole number")
        return value

    def wholes(self, key: str) -> list[int]:
        """Whole numbers; R writes a vector of one as a number."""
        value = self.take(key, [])
        listed = value if isinstance(value, list) else [value]
        try:
            numbers = [float(one) for one in listed]
        except (TypeError, ValueError):
            raise self.fault(key, "whole numbers") from None
        if not all(number.is_integer() for number in numbers):
            raise self.fault(key, "whole numbers")
        return [int(number) for number in numbers]

    def numbers(self, key: str, default: Sequence[float] = ()) -> list[float]:
        """Numbers; R writes a vector of one as a number."""
        value = self.take(key, list(default))
        try:
            return [float(one) for one in (value if isinstance(value, list) else [value])]
        except (TypeError, ValueError):
            raise self.fault(key, "numbers") from None

    def word(self, key: str, default: str) -> str:
        """A text, which R may have written as a vector of one."""
        value = self.take(key, default)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, str):
            raise self.fault(key, "a text")
        return value

    def sections(self, key: str) -> list["Given"]:
        """The sections of a list."""
        value = self.take(key, [])
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            raise self.fault(key, "a list of sections of settings")
        return [Given(one, f"{self.place}.{key}.{k}", self.lost) for k, one in enumerate(value)]

    def flag(self, key: str, default: bool) -> bool:
        """True or false, which R may have written as a vector of one."""
        value = self.take(key, default)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if not isinstance(value, bool):
            raise self.fault(key, "true or false")
        return value

    def section(self, key: str) -> "Given | None":
        """The settings below a key."""
        value = self.take(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.fault(key, "a section of settings")
        return Given(value, f"{self.place}.{key}", self.lost)

    def lose(self, key: str, reason: str) -> None:
        """Note that a setting, if it has a value, has no counterpart."""
        if self.has(key):
            self.note(key, self.content[key], reason)
        self._seen.add(key)

    def note(self, key: str, value: object, reason: str) -> None:
        """Note that a setting has no counterpart."""
        self.lost.append(LostSetting(f"{self.place}.{key}", value, reason))

    def ignore(self, *keys: str) -> None:
        """Pass over keys that have no meaning here."""
        self._seen |= {*keys}

    def rest(self) -> None:
        """Note all keys with a value that were not looked at."""
        for key in self.content:
            if (
                key not in self._seen
                and not key.startswith(MARKS)
                and self.content[key] is not False
            ):
                self.lose(key, "riskset does not know this setting.")

    def fault(self, key: str, expected: str) -> InputError:
        """The error of a value that is not what it must be."""
        return InputError(
            f"{self.place}.{key} must be {expected}, but it is {self.content.get(key)!r}.",
            hint="write the specification again in R.",
        )
