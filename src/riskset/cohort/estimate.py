"""One hazard ratio of the target against the comparator, with what it rests on."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from riskset._errors import counted
from riskset._messages import Note
from riskset._types import AnyArray, Features, Rows
from riskset.cohort.adjustment import Estimand
from riskset.cohort.covariates import coefficient_frame
from riskset.cohort.outcomes import ArmCounts, mdrr
from riskset.data.output import data_frame
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.over_time import EffectOverTime
from riskset.model.penalty import Penalty

__all__ = ["Estimate", "EstimateStatus", "LikelihoodProfile", "Model", "Reading", "Subgroup"]

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
    "too_few_strata_for_cv",
]
REASONS: dict[str, str] = {
    "no_people": "nobody is left.",
    "one_arm_empty": "one arm has nobody left.",
    "no_events": "nobody who is left has the outcome.",
    "events_in_one_arm": "only one arm has the outcome while the other is at risk, so that the "
    "hazard ratio is 0 or infinite.",
    "no_informative_strata": "no stratum or set has both arms at risk at an outcome.",
    "not_estimable": "the effect cannot be told from the baseline or from the covariates (see the "
    "notes for their names): leave those out.",
    "not_converged": "the fit did not converge (see the notes): leave covariates out, or add a "
    "penalty.",
    "too_few_strata_for_cv": "there are fewer strata or people that tell anything than folds: ask "
    "for fewer folds, or give a penalty of your own.",
}
"""Why there is no number."""


@dataclass(frozen=True, eq=False)
class Subgroup:
    """How the effect differs with a covariate.

    Attributes
    ----------
    name : str
        The covariate; the people of the subgroup are those in whom it is not 0.
    log_ratio, lower, upper, se, p : float
        Of the interaction: the log hazard ratio of the treatment grows by `log_ratio` for each unit
        of the covariate. NaN where it was left out.
    log_hr, se_log_hr : float
        Of the treatment where the covariate is 1 and all others of the interactions are 0; NaN with
        a penalty.
    target, comparator : ArmCounts
    is_separable : bool
        It was left out, because the subgroup, or an arm of it, has no outcome, or it is constant.
    """

    name: str
    target: ArmCounts
    comparator: ArmCounts
    log_ratio: float = float("nan")
    lower: float = float("nan")
    upper: float = float("nan")
    se: float = float("nan")
    p: float = float("nan")
    log_hr: float = float("nan")
    se_log_hr: float = float("nan")
    is_separable: bool = False


@dataclass(frozen=True, eq=False)
class LikelihoodProfile:
    """The profile log likelihood of the log hazard ratio, for evidence synthesis.

    Attributes
    ----------
    log_hr, log_likelihood, derivative : (k,) float64
        The derivative is that of the profile.
    """

    log_hr: Rows
    log_likelihood: Rows
    derivative: Rows


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
        Of the test that the log hazard ratio does not change with the logarithm of time, with a
        robust variance where the interval has one or is a bootstrap's; NaN with a penalty.
    target, comparator : ArmCounts
    informative_strata, informative_people : int or None
        Strata with both arms and an event, and the people in them, if stratified.
    notes : tuple of Note
    sensitivity : Estimate or None
        The same with the other reading.
    subgroups : tuple of Subgroup
        With interactions, in which case `log_hr` is the effect where all their covariates are 0.
    penalty : Penalty or None
        Of the covariates, as given or as chosen.
    cross_validation : CrossValidation or None
        That chose it.
    kkt : float
        Certificate of the fit, the largest relative violation of the optimality conditions.
    names, keys : tuple
        Covariates of the model beside the treatment and interactions, those that `tidy` left.
    coef : (p,) float64
        Of these, log hazard ratios per unit of the covariates as they were given.
    profile : LikelihoodProfile or None
    over_time : EffectOverTime or None
        The log hazard ratio in intervals of time, if they were asked for and there are enough
        outcomes: `riskset.infer.over_time` has the formula.
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
    subgroups: tuple[Subgroup, ...] = ()
    penalty: Penalty | None = None
    cross_validation: CrossValidation | None = None
    kkt: float = float("nan")
    names: tuple[str, ...] = ()
    keys: tuple[int | str, ...] = ()
    coef: Features = field(default_factory=lambda: np.zeros(0))
    profile: LikelihoodProfile | None = None
    over_time: EffectOverTime | None = None

    @property
    def reason(self) -> str | None:
        """Why the status is not "ok", and what to do."""
        return REASONS.get(self.status)

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

    def subgroup_columns(self) -> dict[str, AnyArray]:
        """A row for each interaction; missing numbers are None."""
        names = [f.name for f in fields(Subgroup) if f.name not in ("target", "comparator")]
        columns: dict[str, AnyArray] = {
            name: np.array([_known(getattr(s, name)) for s in self.subgroups], dtype=object)
            for name in names
        }
        for arm in ("target", "comparator"):
            for name in ("persons", "outcomes"):
                counts = [getattr(getattr(s, arm), name) for s in self.subgroups]
                columns[f"{arm}_{name}"] = np.array(counts, dtype=object)
        return columns

    def subgroup_frame(self, library: str | None = None) -> Any:
        """`subgroup_columns` as a data frame."""
        return data_frame(self.subgroup_columns(), library)

    def coefficients(self, library: str | None = None) -> Any:
        """A data frame of the covariates' coefficients other than 0, the largest in size first."""
        return coefficient_frame(self.keys, self.names, self.coef, library)

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with a row for this reading, and one for the other."""
        rows = [e.columns() for e in (self, self.sensitivity) if e is not None]
        columns: dict[str, AnyArray] = {}
        for name in rows[0]:
            columns[name] = np.array([row[name] for row in rows], dtype=object)
        return data_frame(columns, library)

    def __repr__(self) -> str:
        if self.status != "ok":
            found = f"status {self.status!r}: {self.reason}"
        else:
            found = (
                f"hazard ratio {self.hr:.3f} ({self.level:.0%} {self.interval} interval "
                f"{self.hr_lower:.3f} to {self.hr_upper:.3f})"
            )
        more = f"; {counted(len(self.subgroups), 'interaction')}" if self.subgroups else ""
        other = "" if self.sensitivity is None else f"\n  other reading: {self.sensitivity!r}"
        return f"Estimate({self.model}, {self.reading}: {found}{more}){other}"


def _known(value: object) -> object:
    return None if isinstance(value, float) and np.isnan(value) else value
