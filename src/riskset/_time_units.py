"""Units of time, and how many days each has."""

from typing import Literal

__all__ = ["DAYS_A_YEAR", "DAYS_IN", "TimeUnit"]

TimeUnit = Literal["days", "weeks", "months", "years"]

DAYS_A_YEAR = 365.25

DAYS_IN: dict[TimeUnit, float] = {
    "days": 1.0,
    "weeks": 7.0,
    "months": DAYS_A_YEAR / 12,
    "years": DAYS_A_YEAR,
}
