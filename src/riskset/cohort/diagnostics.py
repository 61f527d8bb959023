"""Diagnostics that decide whether the estimate may be looked at."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from riskset._errors import InputError
from riskset._keywords import takes
from riskset._types import AnyArray
from riskset.cohort.covariates.covariate_balance import Balance
from riskset.cohort.settings import DiagnosticLimits
from riskset.data.frame import data_frame

__all__ = ["BalanceFacts", "Diagnostic", "Diagnostics", "check", "diagnose", "gate"]

Verdict = Literal["pass", "fail", "not_evaluated"]

ONLY_ALONE = ("mdrr",)
"""Checks that a meta-analysis does not need: it may include imprecise estimates."""


@dataclass(frozen=True)
class Diagnostic:
    """One diagnostic.

    Attributes
    ----------
    name : str
    value : float or None
    limit : float or None
        None: reported only.
    verdict : {"pass", "fail", "not_evaluated"}

    Examples
    --------
    >>> import riskset as rs
    >>> checks = rs.cohort.diagnose(equipoise=0.1).checks
    >>> [check for check in checks if check.value is not None]
    [Diagnostic(name='equipoise', value=0.1, limit=0.2, verdict='fail')]
    """

    name: str
    value: float | None
    limit: float | None
    verdict: Verdict


@dataclass(frozen=True, repr=False)
class Diagnostics:
    """All diagnostics of one estimate, the result of `diagnose`.

    Attributes
    ----------
    checks : tuple of Diagnostic

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.diagnose(equipoise=0.4, mdrr=2.0, ease=0.3)
    >>> found.unblind
    False
    >>> {check.name: check.verdict for check in found.checks if check.value is not None}
    {'equipoise': 'pass', 'mdrr': 'pass', 'ease': 'fail'}
    """

    checks: tuple[Diagnostic, ...]

    @property
    def unblind(self) -> bool:
        """Whether no diagnostic failed."""
        return all(check.verdict != "fail" for check in self.checks)

    @property
    def unblind_for_evidence_synthesis(self) -> bool:
        """Whether no diagnostic failed, except perhaps the minimum detectable ratio.

        A meta-analysis may use an estimate that is too imprecise to be read alone.
        """
        return not self.fails_any(c.name for c in self.checks if c.name not in ONLY_ALONE)

    def fails_any(self, names: Iterable[str]) -> bool:
        """Whether one of the named diagnostics failed."""
        named = set(names)
        return any(check.verdict == "fail" for check in self.checks if check.name in named)

    def __getitem__(self, name: str) -> Diagnostic:
        for check in self.checks:
            if check.name == name:
                return check
        raise InputError.unknown_name("diagnostic", name, (check.name for check in self.checks))

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per diagnostic."""
        names = ("name", "value", "limit", "verdict")
        return {
            name: np.array([getattr(c, name) for c in self.checks], dtype=object) for name in names
        }

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        listed = ", ".join(f"{c.name} {c.verdict}" for c in self.checks)
        return f"Diagnostics({'unblind' if self.unblind else 'blind'}: {listed})"


@dataclass(frozen=True)
class BalanceFacts:
    """What the checks need of a balance, None if it is not known.

    `largest` is the largest size of a standardised difference after adjustment, and `is_balanced`
    says whether no difference is significantly above the threshold; if it is None, the limit
    decides.
    """

    largest: float | None = None
    is_balanced: bool | None = None
    generalisability: float | None = None

    @classmethod
    def of(cls, balance: Balance) -> "BalanceFacts":
        """The facts of a balance."""
        if balance.summary()["max"] is None:
            return cls()
        is_balanced = None
        if balance.alpha is not None:
            known = ~np.isnan(balance.after.p)
            is_balanced = bool(balance.after.balanced[known].all())
        largest = float(np.nanmax(np.abs(balance.after.smd)))
        return cls(largest, is_balanced, balance.max_generalisability)


@takes(DiagnosticLimits)
def diagnose(
    *,
    balance: Balance | None = None,
    shared_balance: Balance | None = None,
    equipoise: float | None = None,
    mdrr: float | None = None,
    ease: float | None = None,
    proportionality_p: float | None = None,
    settings: DiagnosticLimits,
) -> Diagnostics:
    r"""Compare diagnostics with limits that were set before.

    Parameters
    ----------
    balance : Balance, optional
        Balance of the people of the estimate. It passes if the largest difference after adjustment
        is below `max_smd`; with ``alpha``, if no difference is significantly above the threshold.
        Omit it for control outcomes: among many controls, some fail by chance.
    shared_balance : Balance, optional
        Balance of the adjustment applied to everybody, before people with an earlier outcome are
        left out. It is the same for all outcomes of an analysis, including controls, and passes
        like `balance`. Generalisability is its `Balance.max_generalisability`, or without a shared
        balance that of `balance`.
    equipoise : float, optional
        Proportion in equipoise. It passes if at least `min_equipoise`.
    mdrr : float, optional
        Minimum detectable ratio. It passes below `max_mdrr`.
    ease : float, optional
        Expected absolute systematic error. It passes below `max_ease`.
    proportionality_p : float, optional
        Reported only.
    settings : DiagnosticLimits

    Returns
    -------
    Diagnostics
        A diagnostic without a value, or with NaN, is "not_evaluated".

    References
    ----------
    Schuemie, Reps, Black, et al. (2024), Studies in Health Technology and Informatics 310, 966-970,
    doi:10.3233/SHTI231108, for CohortMethod, whose version 6 has these diagnostics.

    Examples
    --------
    >>> found = diagnose(equipoise=0.4, mdrr=12.0, ease=0.1)
    >>> found.unblind, found.unblind_for_evidence_synthesis
    (False, True)
    """
    return gate(
        None if balance is None else BalanceFacts.of(balance),
        None if shared_balance is None else BalanceFacts.of(shared_balance),
        equipoise=equipoise,
        mdrr=mdrr,
        ease=ease,
        proportionality_p=proportionality_p,
        limits=settings,
    )


def gate(
    balance: BalanceFacts | None,
    shared_balance: BalanceFacts | None,
    *,
    equipoise: float | None,
    mdrr: float | None,
    ease: float | None,
    proportionality_p: float | None,
    limits: DiagnosticLimits,
) -> Diagnostics:
    """The checks of `diagnose`, of facts."""
    shared = limits.max_shared_smd
    largest_shared = limits.max_smd if shared is None else shared
    general = balance if shared_balance is None else shared_balance
    checks = (
        _balance("balance", balance, limits.max_smd),
        _balance("shared_balance", shared_balance, largest_shared),
        check("equipoise", equipoise, limits.min_equipoise, at_least=True),
        check("mdrr", mdrr, limits.max_mdrr),
        check("ease", ease, limits.max_ease),
        check(
            "generalisability",
            None if general is None else general.generalisability,
            limits.max_generalisability,
        ),
        check("proportional_hazards", proportionality_p, None),
    )
    return Diagnostics(checks)


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


def _balance(name: str, facts: BalanceFacts | None, limit: float) -> Diagnostic:
    found = check(name, None if facts is None else facts.largest, limit)
    if facts is None or facts.is_balanced is None:
        return found
    verdict: Verdict = "pass" if facts.is_balanced else "fail"
    return Diagnostic(name, found.value, found.limit, verdict)
