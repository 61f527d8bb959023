"""Numbers as people read them: two or three significant digits, thin spaces, a true minus sign."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = [
    "MISSING",
    "THIN",
    "capital",
    "differs",
    "interval",
    "p_value",
    "p_with_sign",
    "percent",
    "short",
    "short_percent",
    "significant",
    "span",
    "whole",
    "with_limits",
]

THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
PER_CENT = f"{THIN}%"
DASH = "\N{EN DASH}"
MISSING = DASH
"""In the place of a number that is not known."""

SMALLEST = 1e-4
LARGEST = 1e12
RAISED = str.maketrans(
    "-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
)


def whole(value: float | None) -> str:
    r"""A count, its thousands apart.

    >>> whole(1204118) == "1\u202f204\u202f118", whole(None) == MISSING
    (True, True)
    """
    return MISSING if value is None else _set(f"{round(value):,}")


def significant(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, and no fewer before the point than it has.

    >>> [significant(x) for x in (0.85249, 12.345, 0.0, float("inf"))]
    ['0.852', '12.3', '0', '∞']
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    if value == 0:
        return "0"
    size = abs(value)
    if not SMALLEST <= size < LARGEST:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        power = str(int(power)).translate(RAISED)
        return f"{_set(mantissa)}{THIN}×{THIN}10{power}"
    # The exponent after rounding, so that 9.996 is 10.0 and not 10.00.
    exponent = int(f"{size:.{digits - 1}e}".split("e")[1])
    return _set(f"{value:,.{max(digits - 1 - exponent, 0)}f}")


def percent(share: float | None, digits: int = 3) -> str:
    r"""A share of 1 in per cent.

    >>> percent(0.0312) == "3.12\u202f%"
    True
    """
    return MISSING if share is None else f"{significant(100 * share, digits)}{THIN}%"


def short_percent(share: float) -> str:
    """A round share in per cent."""
    return f"{short(100 * share)}{THIN}%"


def short(value: float | None, digits: int = 3) -> str:
    """A round number, such as a limit or a tick, without zeros at its end.

    >>> [short(x) for x in (0.1, 20.0, 2.5)]
    ['0.1', '20', '2.5']
    """
    shown = significant(value, digits)
    return shown.rstrip("0").rstrip(".") if "." in shown and "×" not in shown else shown


def p_value(p: float | None) -> str:
    r"""A p value with at most three decimals.

    >>> p_value(0.04321), p_value(0.00002) == "<\u202f0.001"
    ('0.043', True)
    """
    if p is None or math.isnan(p):
        return MISSING
    return f"<{THIN}0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def p_with_sign(p: float | None) -> str:
    r"""A p value with its sign.

    >>> p_with_sign(0.04321), p_with_sign(0.00002) == "<\u202f0.001"
    ('= 0.043', True)
    """
    shown = p_value(p)
    return shown if shown.startswith("<") else f"= {shown}"


def span(lower: str, upper: str) -> str:
    """From one shown number to another; with a dash unless one of them has a minus sign."""
    return f"{lower} to {upper}" if MINUS in lower + upper else f"{lower}{DASH}{upper}"


def interval(value: str, lower: str, upper: str) -> str:
    """A shown number with its interval in brackets; without ends there are none.

    >>> interval("4.05\u202f%", "3.95\u202f%", "4.15\u202f%") == "4.05\u202f% (3.95–4.15)"
    True
    """
    if lower == upper == MISSING:
        return value
    if value.endswith(PER_CENT):  # so are the ends, then
        lower, upper = lower.removesuffix(PER_CENT), upper.removesuffix(PER_CENT)
    return f"{value} ({span(lower, upper)})"


def with_limits(row: Mapping[str, Any], name: str) -> str:
    """A number of a row with its interval, ``{name}_lower`` to ``{name}_upper``."""
    return interval(*(significant(row[key]) for key in (name, f"{name}_lower", f"{name}_upper")))


def differs(effective: float | None, people: float | None) -> bool:
    """Whether an effective sample size says more than the number of people."""
    return effective is not None and people is not None and abs(people - effective) >= 0.5


def capital(words: str) -> str:
    """Words that begin a line."""
    return words[:1].upper() + words[1:]


def _set(text: str) -> str:
    return text.replace(",", THIN).replace("-", MINUS)
