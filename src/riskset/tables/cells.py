"""Cells of tables of people: counts with shares, means with standard deviations, quartiles."""

import math

__all__ = [
    "count",
    "count_with_share",
    "decimals_of",
    "fixed",
    "mean_with_sd",
    "median_with_quartiles",
]

NARROW = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
UNKNOWN = "\N{EN DASH}"
DIGITS = 3
"""Significant digits of the larger of a mean and its standard deviation."""
MOST_DECIMALS = 6


def count(n: float | None) -> str:
    r"""A number of people, its thousands apart.

    >>> count(12345) == "12\u202f345", count(None) == "–"
    (True, True)
    """
    return UNKNOWN if n is None else f"{round(n):,}".replace(",", NARROW)


def fixed(value: float | None, decimals: int) -> str:
    """A number with so many decimals.

    >>> fixed(-0.456, 2), fixed(1234.5, 0) == "1\u202f234", fixed(float("inf"), 1)
    ('−0.46', True, '∞')
    """
    if value is None or math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:,.{decimals}f}"
    if not text.strip("-0.,"):  # no minus sign before a zero
        text = text.lstrip("-")
    return text.replace(",", NARROW).replace("-", MINUS)


def count_with_share(n: float | None, share: float | None) -> str:
    r"""A count with its percentage, or the percentage alone.

    >>> count_with_share(906, 0.4148) == "906 (41.5\u202f%)"
    True
    >>> count_with_share(None, 0.4148) == "41.5\u202f%"
    True
    """
    if share is None:
        return count(n)
    percent = f"{fixed(100 * share, 1)}{NARROW}%"
    return percent if n is None else f"{count(n)} ({percent})"


def mean_with_sd(mean: float | None, sd: float | None, decimals: int | None = None) -> str:
    """A mean and its standard deviation.

    >>> mean_with_sd(61.3812, 16.6781)
    '61.4 (16.7)'
    """
    if mean is None:
        return UNKNOWN
    places = decimals_of(mean, sd) if decimals is None else decimals
    return fixed(mean, places) if sd is None else f"{fixed(mean, places)} ({fixed(sd, places)})"


def median_with_quartiles(
    median: float | None, lower: float | None, upper: float | None, decimals: int | None = None
) -> str:
    """A median with the first and third quartile.

    >>> median_with_quartiles(64.05, 50.15, 73.9)
    '64.0 [50.1, 73.9]'
    """
    if median is None or lower is None or upper is None:
        return UNKNOWN
    places = decimals_of(median, lower, upper) if decimals is None else decimals
    return f"{fixed(median, places)} [{fixed(lower, places)}, {fixed(upper, places)}]"


def decimals_of(*values: float | None) -> int:
    """Decimals that give the largest of some numbers three significant digits.

    >>> decimals_of(61.38, 16.68), decimals_of(2.98, 0.95), decimals_of(1234.5, 420.0)
    (1, 2, 0)
    >>> decimals_of(0.0, None)
    0
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    size = max(sizes, default=0.0)
    if not size:
        return 0
    # The exponent after rounding, so that 9.996 is 10.0.
    exponent = int(f"{size:.{DIGITS - 1}e}".split("e")[1])
    return min(max(DIGITS - 1 - exponent, 0), MOST_DECIMALS)
