"""Whether a study may look at its estimate: decided before anybody does."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._types import AnyArray, is_number
from riskset.cohort.balancing import Balance
from riskset.data.output import data_frame

__all__ = ["Diagnostic", "Diagnostics", "check", "diagnose"]

Verdict = Literal["pass", "fail", "not_evaluated"]


@dataclass(frozen=True)
class Diagnostic:
    """One check.

    Attributes
    ----------
    name : str
    value : float or None
    limit : float or None
        None: reported only.
    verdict : {"pass", "fail", "not_evaluated"}
    """

    name: str
    value: float | None
    limit: float | None
    verdict: Verdict


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """All checks of one estimate; `diagnose` makes it.

    Attributes
    ----------
    checks : tuple of Diagnostic
    """

    checks: tuple[Diagnostic, ...]

    @property
    def unblind(self) -> bool:
        """Whether no check failed."""
        return all(check.verdict != "fail" for check in self.checks)

    def __getitem__(self, name: str) -> Diagnostic:
        for check in self.checks:
            if check.name == name:
                return check
        raise InputError.unknown_name("diagnostic", name, (check.name for check in self.checks))

    def columns(self) -> dict[str, AnyArray]:
        """A row for each check."""
        names = ("name", "value", "limit", "verdict")
        return {
            name: np.array([getattr(c, name) for c in self.checks], dtype=object) for name in names
        }

    def to_frame(self, library: str | None = None) -> Any:
        """`columns` as a data frame."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        listed = ", ".join(f"{c.name} {c.verdict}" for c in self.checks)
        return f"Diagnostics({'unblind' if self.unblind else 'blind'}: {listed})"


def diagnose(
    *,
    balance: Balance | None = None,
    equipoise: float | None = None,
    mdrr: float | None = None,
    ease: float | None = None,
    proportionality_p: float | None = None,
    max_smd: float = 0.1,
    min_equipoise: float = 0.2,
    max_mdrr: float = 10.0,
    max_ease: float = 0.25,
    max_generalisability: float | None = None,
) -> Diagnostics:
    r"""Compare a study's diagnostics with limits that were set before.

    Parameters
    ----------
    balance : Balance, optional
        Passes if the largest difference after adjustment is below `max_smd`; with an ``alpha``, if
        no difference is significantly above the threshold. Generalisability is
        `Balance.max_generalisability`, the largest difference before and after of those whom the
        effect is about.
    equipoise : float, optional
        Passes from `min_equipoise` on.
    mdrr : float, optional
        Smallest detectable hazard ratio; passes below `max_mdrr`.
    ease : float, optional
        Expected absolute systematic error; passes below `max_ease`.
    proportionality_p : float, optional
        Reported only.
    max_smd, min_equipoise, max_mdrr, max_ease : float
    max_generalisability : float, optional
        None: reported only.

    Returns
    -------
    Diagnostics
        A check without a value, or with NaN, is "not_evaluated".

    Examples
    --------
    >>> diagnose(equipoise=0.4, mdrr=12.0, ease=0.1).unblind
    False
    """
    limits = {
        "max_smd": max_smd,
        "min_equipoise": min_equipoise,
        "max_mdrr": max_mdrr,
        "max_ease": max_ease,
        "max_generalisability": max_generalisability,
    }
    for name, value in limits.items():
        if not (is_number(value) or (value is None and name == "max_generalisability")):
            raise CohortError(
                "BadSetting",
                f"`{name}` must be a number, but it is {value!r}.",
                hint="leave it out for the usual limit.",
            )
    checks = [
        _balance(balance, max_smd),
        check("equipoise", equipoise, min_equipoise, at_least=True),
        check("mdrr", mdrr, max_mdrr),
        check("ease", ease, max_ease),
        check(
            "generalisability",
            None if balance is None else balance.max_generalisability,
            max_generalisability,
        ),
        check("proportional_hazards", proportionality_p, None),
    ]
    return Diagnostics(tuple(checks))


def check(
    name: str, value: float | None, limit: float | None, *, at_least: bool = False
) -> Diagnostic:
    """Whether a value is below its limit, or at least the limit."""
    if value is None or np.isnan(value):
        return Diagnostic(name, None, limit, "not_evaluated")
    if limit is None:
        return Diagnostic(name, float(value), None, "not_evaluated")
    fine = value >= limit if at_least else value < limit
    return Diagnostic(name, float(value), float(limit), "pass" if fine else "fail")


def _balance(balance: Balance | None, max_smd: float) -> Diagnostic:
    if balance is None or balance.summary()["max"] is None:
        return Diagnostic("balance", None, max_smd, "not_evaluated")
    found = check("balance", float(np.nanmax(np.abs(balance.after.smd))), max_smd)
    if balance.alpha is None:
        return found
    known = ~np.isnan(balance.after.p)
    fine = bool(balance.after.balanced[known].all())
    return Diagnostic("balance", found.value, found.limit, "pass" if fine else "fail")
