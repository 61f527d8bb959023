"""Outcome models of weighted start-stop rows: the effect if everybody followed the protocol."""

import warnings
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._messages import Note, Value
from riskset._types import Index, Rows, is_count
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.effects.estimate import Estimate, EstimateStatus
from riskset.cohort.effects.outcome_data import TREATMENT, FitData
from riskset.cohort.effects.outcome_fit import answer, with_interval
from riskset.cohort.effects.time_effect import TimeDependence
from riskset.cohort.outcomes import ArmCounts, Outcomes, count_rows
from riskset.cohort.protocol.artificial_censoring import DeviationWeights
from riskset.cohort.protocol.censoring_model import is_of_time
from riskset.cohort.resampling import counts_of_resamples
from riskset.cohort.settings import OutcomeModel
from riskset.data.checks import Places, as_numbers, complain_rows
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.estimators.bootstrap import check_interval
from riskset.estimators.cox import Cox
from riskset.infer.bootstrap_intervals import interval_ends
from riskset.model.references import without_references

__all__ = ["fit_per_protocol"]

IntervalKind = Literal["robust", "bootstrap"]


def fit_per_protocol(
    weights: DeviationWeights,
    *,
    covariates: object = None,
    sample_weight: object = None,
    interval: IntervalKind = "robust",
    level: float = 0.95,
    ties: Literal["breslow", "efron"] = "breslow",
    time_effect: TimeDependence | None = None,
    effect_times: tuple[float, ...] = (),
    replicates: int = 200,
    seed: int = 1,
) -> Estimate:
    r"""Estimate the hazard ratio of two treatment strategies from weighted start-stop rows.

    A Cox model of the arm is fitted to the rows with the weights of `censoring_weights`: a marginal
    structural model. Competing events censor.

    The robust variance has people, with all their rows and clones, as clusters. It takes the
    weights as known, which for weights that were estimated is usually conservative. The bootstrap
    draws people, fits the models of the weights again in each resample (with the same knots of
    time), truncates at the percentiles of the resample, and has the percentile interval.

    Parameters
    ----------
    weights : DeviationWeights
    covariates : Design, data frame, matrix or array (n, q), optional
        Covariates of the outcome model, of all rows: those at baseline. Covariates that change, and
        are affected by treatment, do not belong here: the weights adjust for them.
    sample_weight : (n,) numbers, optional
        Weights of people at baseline, such as those of an adjustment, by which the weights are
        multiplied. The bootstrap keeps them.
    interval : {"robust", "bootstrap"}
    level : float
    ties : {"breslow", "efron"}
    time_effect, effect_times
        As for `fit_outcome`: the hazard ratio as a function of time, with robust standard errors.
    replicates, seed : int
        Number of resamples, and seed of the bootstrap.

    Returns
    -------
    Estimate
        The reading is "marginal". Counts are of people and histories that have a weight above 0;
        ``exposures`` are histories, and times those until they deviate. If the adjustment of
        `sample_weight` has an estimand, that is the population of the effect; `estimand` is None.

    Raises
    ------
    CohortError
        "BadCovariates" or "BadSetting".

    References
    ----------
    Hernan, Brumback and Robins (2000), Epidemiology 11, 561-570,
    doi:10.1097/00001648-200009000-00012.
    Lin and Wei (1989), Journal of the American Statistical Association 84, 1074-1078,
    doi:10.1080/01621459.1989.10478874.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> rng = np.random.default_rng(1)
    >>> person = np.repeat(np.arange(200), 2)          # two intervals each
    >>> sick = rng.random(400) < 0.4
    >>> leaves = (rng.random(400) < 0.1 + 0.3 * sick) & (np.arange(400) % 2 == 0)
    >>> dies = (rng.random(400) < 0.2 + 0.2 * sick) & ~leaves
    >>> kept = np.ones(400, dtype=bool)                # no row follows death or deviation
    >>> kept[1::2] = ~(leaves | dies)[::2]
    >>> y = rs.Surv(np.tile([1, 2], 200)[kept], dies[kept], entry=np.tile([0, 1], 200)[kept])
    >>> weights = rs.cohort.censoring_weights(
    ...     y, (person % 2)[kept], sick[kept, None], person=person[kept], deviates=leaves[kept]
    ... )
    >>> rs.cohort.fit_per_protocol(weights).status
    'ok'
    """
    if not isinstance(weights, DeviationWeights):
        raise InputError(
            f"`weights` must be DeviationWeights, but its type is {type(weights).__name__}.",
            hint="pass the result of `riskset.cohort.censoring_weights`.",
        )
    settings = _settings(
        interval,
        level=level,
        ties=ties,
        time_effect=time_effect,
        effect_times=effect_times,
        replicates=replicates,
        seed=seed,
    )
    rows = weights.rows
    n = rows.n_rows
    own = np.ones(n)
    if sample_weight is not None:
        own = as_numbers(sample_weight, "sample_weight", n, Places())
        complain_rows(
            own < 0,
            own,
            "`sample_weight`",
            "must not be negative",
            Places(),
            hint="a weight of 0 removes a row; check how the weights were made.",
        )
    extra = None if covariates is None else as_design(covariates, n)
    if extra is not None and TREATMENT in extra.names:
        raise CohortError(
            "BadCovariates",
            f"a covariate is called {TREATMENT!r}, which is the name of the treatment in the "
            "model.",
            hint="rename it; leave it out if it is the treatment itself.",
        )
    model = _Model(weights, own, extra, settings)
    empty = model.counted()
    if empty.status != "ok":
        return empty
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status and the notes say it
        found = model.fit(empty)
        if interval == "bootstrap" and found.status == "ok":
            found = model.resampled(found)
    return found


class _Model:
    """The outcome model of one set of rows."""

    def __init__(
        self, weights: DeviationWeights, own: Rows, extra: Design | None, settings: OutcomeModel
    ) -> None:
        self.weights, self.own, self.settings = weights, own, settings
        rows = weights.rows
        treatment = Design.from_columns({TREATMENT: rows.treatment.astype(np.float64)})
        parts = [treatment] if extra is None else [treatment, extra]
        self.at = np.flatnonzero(rows.followed)
        whole = without_references(Design.stack(parts), None)
        self.design = whole if self.at.size == rows.n_rows else whole.take_rows(self.at)
        self.y = Surv(rows.time[self.at], rows.status[self.at] == 1, entry=rows.entry[self.at])

    def data(self, weight: Rows) -> FitData:
        """The data with weights (n,) of all rows."""
        return FitData(
            design=self.design,
            interactions={},
            y=self.y,
            arguments={
                "sample_weight": weight[self.at],
                "strata": None,
                "cluster": self.weights.rows.person[self.at],
            },
            kind=self.settings.interval,
            estimator=Cox(ties=self.settings.ties, tol=self.settings.tol),
            n_covariates=self.design.n_features - 1,
        )

    def counted(self) -> Estimate:
        """Counts of both arms, and a status if there is nothing to fit."""
        target, comparator = (self._count(arm) for arm in (1, 0))
        status: EstimateStatus = "ok"
        if not target.persons or not comparator.persons:
            status = "one_arm_empty" if target.persons or comparator.persons else "no_people"
        elif not target.outcomes and not comparator.outcomes:
            status = "no_events"
        return Estimate(
            "cox",
            "marginal",
            None,
            status,
            target,
            comparator,
            level=self.settings.level,
            notes=self.weights.notes + self._notes(),
        )

    def fit(self, empty: Estimate) -> Estimate:
        """The estimate, with the robust interval if that is wanted."""
        data = self.data(self.weights.weight * self.own)
        model = data.estimator.fit(data.design, data.y, **data.arguments)
        found = replace(
            empty,
            notes=(*empty.notes, *model.notes_),
            kkt=float(model.kkt_),
            names=self.design.names[1:],
            keys=self.design.keys[1:],
            coef=model.coef_[1:],
        )
        return answer(model, data, self.settings, found, self.settings.interval == "bootstrap")[0]

    def resampled(self, found: Estimate) -> Estimate:
        """The percentile interval of resamples of people, with models of weights of their own."""
        person = self.weights.rows.person
        draws = [
            self._replicate(count)
            for count in counts_of_resamples(person, self.settings.replicates, self.settings.seed)
        ]
        known: Rows = np.array([b for b in draws if not np.isnan(b)])
        if known.size < len(draws):
            values = {
                "lost": Value("things", len(draws) - known.size),
                "n": Value("things", len(draws)),
            }
            text = "{lost:,} of {n:resample has|resamples have} no estimate."
            note = Note("replicates_left_out", (), text, values)
            found = replace(found, notes=(*found.notes, note))
        ends = interval_ends("percentile", found.log_hr, known, found.level)
        return with_interval(found, ends.lower, ends.upper, float("nan"))

    def _replicate(self, count: Index) -> float:
        """The log hazard ratio of a resample; NaN if there is none."""
        try:
            weight = self.weights.parts.fit(count).weight * self.own * count
            data = self.data(weight)
            model = data.estimator.fit(data.design, data.y, **data.arguments)
        except InputError:  # such as no outcome
            return float("nan")
        fine = model.status_ in ("converged", "infinite_estimate")
        return float(model.coef_[0]) if fine else float("nan")

    def _count(self, arm: int) -> ArmCounts:
        rows = self.weights.rows
        weight = self.weights.weight * self.own
        own = rows.followed & (rows.treatment == arm) & (weight > 0)
        days = rows.time - rows.entry
        counts = count_rows(Outcomes(days, rows.status), rows.person, weight, own)
        return replace(counts, exposures=int(np.unique(rows.history[own]).size))

    def _notes(self) -> tuple[Note, ...]:
        is_baseline = any(
            model.part == "numerator" and any(not is_of_time(n) for n in model.names)
            for model in self.weights.models
        )
        if not is_baseline or self.design.n_features > 1:
            return ()
        text = (
            "the weights are stabilised by baseline covariates, so `covariates` of the outcome "
            "model should have these."
        )
        return (Note("baseline_not_in_model", (), text),)


def _settings(interval: IntervalKind, **given: Any) -> OutcomeModel:
    if interval not in get_args(IntervalKind):
        raise InputError.wrong_option("interval", interval, get_args(IntervalKind))
    if interval == "bootstrap":
        replicates = given["replicates"]
        if not is_count(replicates):
            raise CohortError(
                "BadSetting", f"`replicates` must be a whole number, but it is {replicates!r}."
            )
        check_interval(replicates, given["level"], "percentile")
    return OutcomeModel(reading="marginal", interval=interval, **given)
