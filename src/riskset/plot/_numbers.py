"""Numbers as plots write them."""

import numpy as np

__all__ = ["interval_words", "p_words", "ratio_words"]


def p_words(p: float) -> str:
    """A p value as journals print it.

    >>> p_words(0.0000123), p_words(0.0312), p_words(0.274)
    ('p < 0.001', 'p = 0.031', 'p = 0.27')
    """
    if np.isnan(p):
        return "p not defined"
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def ratio_words(value: float, decimals: int = 2) -> str:
    """A ratio with two decimals, or with two digits where it is small.

    >>> ratio_words(1.1349), ratio_words(0.00423), ratio_words(1234.5)
    ('1.13', '0.0042', '1,234')
    """
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "∞"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{decimals}f}" if value == 0 or value >= 0.0095 else f"{value:.2g}"


def interval_words(ratio: float, lower: float, upper: float) -> str:
    """A ratio and its limits, with as many decimals, up to four, as tell the three apart.

    >>> interval_words(1.134, 1.05, 1.22), interval_words(1.004, 1.002, 1.006)
    ('1.13 (1.05 to 1.22)', '1.004 (1.002 to 1.006)')
    """
    for decimals in (2, 3, 4):
        words = [ratio_words(value, decimals) for value in (ratio, lower, upper)]
        if len(set(words)) == len({ratio, lower, upper}):
            break
    return f"{words[0]} ({words[1]} to {words[2]})"
