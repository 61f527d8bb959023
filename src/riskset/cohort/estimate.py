"""One hazard ratio of the target against the comparator, with what it rests on."""

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from riskset._types import AnyArray
from riskset.cohort.adjustment import Estimand
from riskset.cohort.outcomes import ArmCounts, mdrr
from riskset.data.output import data_frame
from riskset.solve.result import Note

__all__ = ["Estimate", "EstimateStatus", "Model", "Reading"]

Model = Literal["cox", "cause-specific", "finegray"]
Reading = Literal["stratified", "marginal", "pooled"]
EstimateStatus = Literal[
    "ok",
    "no_people",
    "one_arm_empty",
    "no_events",
    "events_in_one_arm",
    "no_informative_strata",
    "not_estimable",
    "not_converged",
]


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """A hazard ratio, or a subdistribution hazard ratio for "finegray".

    Attributes
    ----------
    model : {"cox", "cause-specific", "finegray"}
    reading : {"stratified", "marginal", "pooled"}
    estimand : str or None
        Of the adjustment.
    status : str
        "ok", or why there is no number: a normal result. With "events_in_one_arm" (of the whole, or
        within every stratum that tells anything) the log hazard ratio is infinite, and one end of
        the interval may be finite.
    log_hr, lower, upper : float
        On the log scale; `hr`, `hr_lower` and `hr_upper` are their exponentials.
    se : float
        Of `log_hr`: robust, or from the width of a profile interval.
    se_model, se_robust : float
        By the inverse information, and by the sandwich over clusters; NaN where not defined.
    p, one_sided_p : float
        By `log_hr` / `se`; one-sided for a hazard ratio above 1.
    interval : str
        How `lower` and `upper` were found.
    level : float
    log_likelihood, null_log_likelihood : float
    llr : float
        Log likelihood less that with a hazard ratio of 1.
    proportionality_p : float
        Of the test that the log hazard ratio does not change with the logarithm of time; NaN with a
        penalty.
    target, comparator : ArmCounts
    informative_strata, informative_people : int or None
        Strata with both arms and an event, and the people in them, if stratified.
    notes : tuple of Note
    sensitivity : Estimate or None
        The same with the other reading.
    """

    model: Model
    reading: Reading
    estimand: Estimand | None
    status: EstimateStatus
    target: ArmCounts
    comparator: ArmCounts
    log_hr: float = float("nan")
    lower: float = float("nan")
    upper: float = float("nan")
    se: float = float("nan")
    se_model: float = float("nan")
    se_robust: float = float("nan")
    p: float = float("nan")
    one_sided_p: float = float("nan")
    interval: str | None = None
    level: float = 0.95
    log_likelihood: float = float("nan")
    null_log_likelihood: float = float("nan")
    llr: float = float("nan")
    proportionality_p: float = float("nan")
    informative_strata: int | None = None
    informative_people: int | None = None
    notes: tuple[Note, ...] = ()
    sensitivity: "Estimate | None" = None

    @property
    def hr(self) -> float:
        """Hazard ratio."""
        return float(np.exp(self.log_hr))

    @property
    def hr_lower(self) -> float:
        """Lower end of the interval of the hazard ratio."""
        return float(np.exp(self.lower))

    @property
    def hr_upper(self) -> float:
        """Upper end of the interval of the hazard ratio."""
        return float(np.exp(self.upper))

    @property
    def mdrr(self) -> float:
        """Smallest detectable hazard ratio, by people and outcomes without weights."""
        n1, n0 = self.target.exposures, self.comparator.exposures
        events = self.target.outcomes + self.comparator.outcomes
        return mdrr(events, n1 / (n1 + n0)) if n1 + n0 else float("inf")

    def columns(self) -> dict[str, object]:
        """Everything as a row of a table; missing numbers are None."""
        names = ("model", "reading", "estimand", "status", "interval", "level")
        row: dict[str, object] = {name: getattr(self, name) for name in names}
        numbers = ("hr", "hr_lower", "hr_upper", "p", "one_sided_p", "log_hr", "se", "llr", "mdrr")
        row |= {name: _known(getattr(self, name)) for name in numbers}
        row["proportionality_p"] = _known(self.proportionality_p)
        for name, arm in (("target", self.target), ("comparator", self.comparator)):
            row |= {f"{name}_{f.name}": _known(getattr(arm, f.name)) for f in fields(arm)}
        row["informative_strata"] = self.informative_strata
        row["note"] = "; ".join(note.code for note in self.notes)
        return row

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with a row for this reading, and one for the other."""
        rows = [e.columns() for e in (self, self.sensitivity) if e is not None]
        columns: dict[str, AnyArray] = {}
        for name in rows[0]:
            columns[name] = np.array([row[name] for row in rows], dtype=object)
        return data_frame(columns, library)

    def __repr__(self) -> str:
        if self.status != "ok":
            found = f"status {self.status!r}"
        else:
            found = (
                f"hazard ratio {self.hr:.3f} ({self.level:.0%} {self.interval} interval "
                f"{self.hr_lower:.3f} to {self.hr_upper:.3f})"
            )
        other = "" if self.sensitivity is None else f"\n  other reading: {self.sensitivity!r}"
        return f"Estimate({self.model}, {self.reading}: {found}){other}"


def _known(value: object) -> object:
    return None if isinstance(value, float) and np.isnan(value) else value
