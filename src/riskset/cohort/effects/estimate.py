"""Effect of the target versus the comparator, with counts and details of the fit."""

from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from riskset._errors import counted
from riskset._messages import Note
from riskset._types import AnyArray, Features, Rows
from riskset.cohort.adjustments.adjustment import Estimand
from riskset.cohort.covariates.covariate_design import coefficient_frame
from riskset.cohort.effects.effect_scale import SCALES, EffectScale, Model, effect_name
from riskset.cohort.effects.time_effect import TimeEffect
from riskset.cohort.outcomes import ArmCounts
from riskset.cohort.planning.sample_size import expected_se, mdrr
from riskset.data.frame import data_frame
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.over_time import EffectOverTime
from riskset.infer.wald import exponentials
from riskset.model.penalty import Penalty

__all__ = ["Estimate", "EstimateStatus", "LikelihoodProfile", "Reading", "Subgroup"]

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
    "one_cluster",
]
REASONS: dict[str, str] = {
    "no_people": "no people are left.",
    "one_arm_empty": "one arm has no people left.",
    "no_events": "none of the people who are left has the outcome.",
    "events_in_one_arm": "only one arm has the outcome while the other is at risk (or, for an odds "
    "ratio, everybody in one arm has it), so the ratio is 0 or infinite.",
    "no_informative_strata": "no stratum or set has both arms at risk when an outcome occurs; for "
    "an odds ratio, it also needs people without the outcome.",
    "not_estimable": "the effect cannot be separated from the baseline or from covariates, which "
    "the notes name; remove these covariates.",
    "not_converged": "the fit did not converge; the notes say why.",
    "too_few_strata_for_cv": "there are fewer informative strata or people than folds; use fewer "
    "folds, or give a penalty.",
    "one_cluster": "all people are of one matched set, or all rows of one person, so the robust "
    "interval does not exist; interval 'wald' does.",
}
"""Reasons why there is no finite ratio, by status."""


@dataclass(frozen=True, eq=False)
class Subgroup:
    """Interaction of the treatment with a covariate.

    Attributes
    ----------
    name : str
        The covariate. The subgroup consists of the people in whom it is not 0.
    log_ratio, lower, upper, se, p : float
        Interaction: the log ratio of the treatment increases by `log_ratio` per unit of the
        covariate. NaN if it was left out.
    log_hr, se_log_hr : float
        Effect of the treatment if the covariate is 1 and all other interacting covariates are 0.
        NaN with a penalty.
    target, comparator : ArmCounts
    is_separable : bool
        Whether it was left out, because the subgroup or an arm of it has no outcome, or the
        covariate is constant.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc(categories=True)
    >>> x = data.design
    >>> people = rs.cohort.Population(x.to_dense()[:, x.index_of("fac_swang1=RHC")])
    >>> y = rs.Surv(data.outcome().time, data.outcome().event)
    >>> male = rs.Design.from_columns({"male": x.to_dense()[:, x.index_of("fac_sex=Male")]})
    >>> (found,) = rs.cohort.fit_outcome(y, people, interactions=male).subgroups
    >>> found.name, found.target.persons, found.comparator.persons
    ('male', 1278, 1914)
    >>> round(found.log_ratio, 3), round(found.p, 3)
    (0.048, 0.475)
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
    """The profile log likelihood of the log ratio, for evidence synthesis.

    Attributes
    ----------
    log_hr, log_likelihood, derivative : (k,) float64
        Points, values and derivatives of the profile.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0, 1, 0])
    >>> y = rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0])
    >>> profile = rs.cohort.fit_outcome(y, people, profile="grid").profile
    >>> profile.log_hr.size
    8
    """

    log_hr: Rows
    log_likelihood: Rows
    derivative: Rows


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Result of `fit_outcome`: a hazard ratio, an odds ratio or a rate ratio.

    With "finegray", it is a subdistribution hazard ratio. The attributes of all scales have the
    same names: `hr` is the odds ratio of a logistic and the rate ratio of a Poisson model.

    Attributes
    ----------
    model : {"cox", "cause-specific", "finegray", "logistic", "poisson"}
    reading : {"stratified", "marginal", "pooled"}
    estimand : str or None
        Of the adjustment.
    status : str
        "ok", or the reason why the ratio cannot be estimated. With "events_in_one_arm"
        (overall, or within every informative stratum), the log ratio is infinite, and one
        limit of the interval may be finite.
    log_hr, lower, upper : float
        Estimate and interval on the log scale. `hr`, `hr_lower` and `hr_upper` are their
        exponentials.
    se : float
        Standard error of `log_hr`: robust, or from the width of a profile interval.
    se_model, se_robust : float
        Standard errors from the inverse information and from the sandwich over clusters. NaN if not
        defined.
    p, one_sided_p : float
        p values of `log_hr` / `se`, two-sided and one-sided for a ratio above 1.
    interval : str
        Method of `lower` and `upper`.
    level : float
    log_likelihood, null_log_likelihood : float
        With frailties, the log likelihood is integrated over them.
    llr : float
        Log likelihood minus the log likelihood with a ratio of 1.
    proportionality_p : float
        p value of the test that the log hazard ratio does not change with the logarithm of time. It
        uses a robust variance if the interval is robust or from a bootstrap. NaN with a penalty
        or frailties, and for odds and rate ratios.
    target, comparator : ArmCounts
    informative_strata, informative_people : int or None
        For the stratified reading: number of strata with both arms and an event, for an odds ratio
        not of everybody, and of people in them.
    notes : tuple of Note
    sensitivity : Estimate or None
        Estimate with the other reading.
    subgroups : tuple of Subgroup
        Interactions. `log_hr` is then the effect at 0 of all their covariates.
    penalty : Penalty or None
        Penalty of the covariates, given or chosen.
    cross_validation : CrossValidation or None
        Cross-validation that chose the penalty.
    kkt : float
        Largest relative violation of the optimality conditions.
    names, keys : tuple
        Covariates of the model after `tidy`, without the treatment and interactions.
    coef : (p,) float64
        Log ratios of these covariates, per unit as given.
    profile : LikelihoodProfile or None
    frailty_variance, frailty_p : float
        Variance of the frailties, and p value of the likelihood-ratio test that it is 0; NaN
        without frailties, and `frailty_p` if the variance was given.
    n_clusters : int or None
        Number of clusters that share a frailty.
    over_time : EffectOverTime or None
        Log hazard ratio by time interval, if requested and if there are enough outcomes;
        `riskset.infer.over_time` has the formula.
    time_effect : TimeEffect or None
        Hazard ratio as a function of time, if requested and estimable. `over_time` assumes no
        function, but is one step of an approximation; this is the maximum of the likelihood.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0, 1, 0])
    >>> y = rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0])
    >>> estimate = rs.cohort.fit_outcome(y, people)
    >>> estimate.status, round(estimate.hr, 3)
    ('ok', 0.434)
    >>> round(estimate.hr_lower, 3), round(estimate.hr_upper, 3)
    (0.02, 4.574)
    >>> estimate.target.outcomes, estimate.comparator.outcomes
    (2, 2)
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
    frailty_variance: float = float("nan")
    frailty_p: float = float("nan")
    n_clusters: int | None = None
    time_effect: TimeEffect | None = None

    @property
    def reason(self) -> str | None:
        """Reason for a status other than "ok", and the remedy."""
        return REASONS.get(self.status)

    @property
    def scale(self) -> EffectScale:
        """What it is a ratio of: "hazard", "odds" or "rate"."""
        return SCALES[self.model]

    @property
    def effect_name(self) -> str:
        """Name of the ratio for tables and plots: "hazard ratio", "odds ratio" or "rate ratio"."""
        return effect_name([self.model])

    @property
    def hr(self) -> float:
        """The ratio; `scale` says of what."""
        return float(exponentials(self.log_hr))

    @property
    def hr_lower(self) -> float:
        """Lower limit of the interval of the ratio."""
        return float(exponentials(self.lower))

    @property
    def hr_upper(self) -> float:
        """Upper limit of the interval of the ratio."""
        return float(exponentials(self.upper))

    @property
    def mdrr(self) -> float:
        """Minimum detectable ratio, from unweighted numbers of people and outcomes."""
        return mdrr(*self._information) if self._n_people else float("inf")

    @property
    def expected_se(self) -> float:
        """Expected standard error if the ratio is 1, from the same numbers."""
        return expected_se(*self._information) if self._n_people else float("nan")

    @property
    def _n_people(self) -> int:
        return self.target.exposures + self.comparator.exposures

    @property
    def _information(self) -> tuple[float, float]:
        """Events, for odds those of the variance N p (1 - p), and the share of the target."""
        events = float(self.target.outcomes + self.comparator.outcomes)
        if self.scale == "odds":
            events *= 1 - events / self._n_people
        return events, self.target.exposures / self._n_people

    def columns(self) -> dict[str, object]:
        """Return everything as a row of a table. Missing numbers are None."""
        names = ("model", "reading", "estimand", "status", "interval", "level")
        row: dict[str, object] = {name: getattr(self, name) for name in names}
        numbers = ("hr", "hr_lower", "hr_upper", "p", "one_sided_p", "log_hr", "se", "llr", "mdrr")
        row |= {name: _known(getattr(self, name)) for name in numbers}
        row["proportionality_p"] = _known(self.proportionality_p)
        for name, arm in (("target", self.target), ("comparator", self.comparator)):
            row |= {f"{name}_{f.name}": _known(getattr(arm, f.name)) for f in fields(arm)}
        row["informative_strata"] = self.informative_strata
        row |= {n: _known(getattr(self, n)) for n in ("frailty_variance", "frailty_p")}
        row["n_clusters"] = self.n_clusters
        row["note"] = "; ".join(note.code for note in self.notes)
        return row

    def subgroup_columns(self) -> dict[str, AnyArray]:
        """Return one row per interaction. Missing numbers are None."""
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
        """Return `subgroup_columns` as a data frame."""
        return data_frame(self.subgroup_columns(), library)

    def coefficients(self, library: str | None = None) -> Any:
        """Return a data frame of the non-zero coefficients of the covariates, largest first."""
        return coefficient_frame(self.keys, self.names, self.coef, library)

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row for each reading."""
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
                f"{self.effect_name} {self.hr:.3f} ({self.level:.0%} {self.interval} interval "
                f"{self.hr_lower:.3f} to {self.hr_upper:.3f})"
            )
        more = f"; {counted(len(self.subgroups), 'interaction')}" if self.subgroups else ""
        other = "" if self.sensitivity is None else f"\n  other reading: {self.sensitivity!r}"
        return f"Estimate({self.model}, {self.reading}: {found}{more}){other}"


def _known(value: object) -> object:
    return None if isinstance(value, float) and np.isnan(value) else value
