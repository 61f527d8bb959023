"""Risks and restricted means of the arms, standardised by outcome models (the g-formula)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, InputError
from riskset._keywords import takes
from riskset._messages import Note
from riskset._settings import Settings, bad_setting, same_as, setting, settings
from riskset._types import Index, Matrix, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People, are_of_one, start
from riskset.cohort.arms.arm_contrasts import (
    ArmEstimates,
    Cells,
    normal_estimates,
    resampled_estimates,
)
from riskset.cohort.arms.arm_models import (
    ModelsOfOutcome,
    RiskModel,
    checked_covariates,
    notes_of_constants,
    with_treatment,
)
from riskset.cohort.arms.arm_rows import counts_by
from riskset.cohort.arms.curves import ARMS, followed_arms
from riskset.cohort.arms.risks import end_notes
from riskset.cohort.arms.time_cells import are_many, cell_edges, per_cell
from riskset.cohort.effects.outcome_data import TREATMENT, sparing
from riskset.cohort.outcomes import Outcomes
from riskset.cohort.resampling import counts_of_resamples
from riskset.cohort.settings import OutcomeModel, too_few_replicates
from riskset.curves.restricted_mean import as_horizons
from riskset.data.design import Design
from riskset.infer.averaged_hazards import AVERAGED, Averages, averages
from riskset.infer.residuals import pieces_at
from riskset.infer.variance import cluster_sums
from riskset.model.incidence import hazard_increments
from riskset.model.penalty import Penalty, as_kind
from riskset.model.references import without_references

__all__ = ["ModelledEstimates", "StandardizedEstimates", "StandardizeOptions", "standardize"]


@settings
class StandardizeOptions(Settings):
    """The outcome models that are standardised, and their intervals."""

    model: Literal["cox", "cause-specific", "finegray"] = setting(
        "the model: of the hazard, of the cause-specific hazards of the outcome and of competing "
        "events, or of the subdistribution hazard",
        "cox",
    )
    estimand: Literal["ate", "att", "atu"] = setting(
        "the population over whose covariates predictions are averaged: everybody, the target, or "
        "the comparator",
        "ate",
    )
    by_arm: bool = setting(
        "fit a model to each arm; False: one model with the treatment as a covariate", True
    )
    interval: Literal["auto", "robust", "bootstrap"] = setting(
        "how standard errors and intervals are computed; auto: robust, with a penalty bootstrap",
        "auto",
    )
    level: float = same_as(OutcomeModel, "level")
    ties: Literal["breslow", "efron"] = same_as(OutcomeModel, "ties")
    penalty: Penalty | None = setting(
        "the penalty of the covariates, with its strength; the treatment has none", None
    )
    replicates: int = same_as(OutcomeModel, "replicates")
    seed: int = same_as(OutcomeModel, "seed")
    tol: float = same_as(OutcomeModel, "tol")

    @property
    def kind(self) -> Literal["robust", "bootstrap"]:
        """How intervals are computed."""
        if self.interval == "auto":
            return "robust" if self.penalty is None else "bootstrap"
        return self.interval

    def contradictions(self) -> Iterator[InputError]:
        """A penalty has a strength, and no robust interval."""
        penalty = cast("Penalty | None", as_kind(self.penalty))
        if penalty is not None and not penalty.has_strength:
            yield bad_setting(
                "penalty",
                f"`penalty` must have a strength, but it is {penalty!r}.",
                hint="choose it with `riskset.CoxCV` or `riskset.FineGrayCV`, and pass "
                "`best_penalty_`.",
            )
        if penalty is not None and self.interval == "robust":
            yield bad_setting(
                "interval",
                "a robust interval is not defined for a model with a penalty.",
                hint="use `interval='bootstrap'`, or leave the penalty out.",
            )
        elif self.kind == "bootstrap":
            yield from too_few_replicates(self.replicates, self.level)


@dataclass(frozen=True, eq=False, repr=False)
class ModelledEstimates(ArmEstimates):
    """Estimates of the arms by outcome models, with numbers of people (k,)."""

    target_outcomes: Index
    comparator_outcomes: Index
    target_competing: Index
    comparator_competing: Index
    target_at_risk: Index
    comparator_at_risk: Index
    model: str
    estimand: str
    interval: str
    level: float
    n_left_out: int = 0
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class StandardizedEstimates(ModelledEstimates):
    """Risks and restricted means of the arms in one population, the result of `standardize`.

    Attributes
    ----------
    measures : tuple of str, (q,)
        "risk": probability of the outcome by each time. "restricted_mean": mean time without any
        event up to it; not for "finegray". "time_lost": mean time from the outcome to it.
    times : (k,) float64
    target, comparator : (q, k) float64
        If everybody had the target, or the comparator. NaN for times after the end of follow-up of
        the model. Each has a standard error, such as ``target_se``, and limits of its interval,
        such as ``target_lower`` and ``target_upper``.
    difference : (q, k) float64
        Target minus comparator, with ``difference_se``, ``_lower``, ``_upper`` and the p value
        ``difference_p``.
    ratio : (q, k) float64
        Target divided by comparator, with ``ratio_lower``, ``ratio_upper``, ``ratio_p`` and
        ``log_ratio_se``, the standard error of its logarithm.
    target_outcomes, comparator_outcomes, target_competing, comparator_competing : (k,) int64
        People with the outcome, or with a competing event, by each time.
    target_at_risk, comparator_at_risk : (k,) int64
        People at risk just before each time.
    model, estimand, interval : str
    level : float
    n_left_out : int
        Number of resamples without an estimate.
    notes : tuple of Note
        "follow_up_ends": times after the end of follow-up. "constant_in_arm": covariates that do
        not vary in an arm, whose model counts 0 for them.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 1, 1, 0, 0, 0, 0])
    >>> y = rs.Surv([1.0, 2, 3, 4, 2, 3, 4, 5], [1, 1, 1, 0, 1, 1, 1, 0])
    >>> x = [[0], [1], [0], [1], [1], [0], [1], [0]]
    >>> found = rs.cohort.standardize(y, people, x, 3)
    >>> found.measures, found.difference[0].round(3)
    (('risk', 'restricted_mean', 'time_lost'), array([0.188]))
    """

    def __repr__(self) -> str:
        head = (
            f"StandardizedEstimates ({self.model}, {self.estimand}, {self.level:.0%} "
            f"{self.interval} intervals)"
        )
        return self._described(head, self.n_left_out, self.notes)


@takes(StandardizeOptions)
def standardize(
    y: object,
    people: People,
    X: object,
    times: object,
    *,
    settings: StandardizeOptions,
    cause: int | str | None = None,
) -> StandardizedEstimates:
    r"""Estimate risks and restricted means of both arms in one population by outcome models.

    The g-formula: an outcome model predicts the risk of each person under either treatment, and the
    predictions are averaged over the covariates of the population.

    .. math:: F_a(t) = \frac{1}{N} \sum_{i} r_i \, \hat F_a(t \mid x_i), \qquad N = \sum_i r_i

    with :math:`r_i = 1` for everybody ("ate"), the target ("att") or the comparator ("atu").
    Restricted means are areas under such curves. The model is fitted to each arm, or with the
    treatment as a covariate (``by_arm=False``). The difference is that of the risks if all had one
    treatment or the other, if the covariates are all that the treatment and the outcome have in
    common, and if the outcome model is right.

    The robust variance adds up the square of what each person changes: through the coefficients,
    through the hazards, in the Fine-Gray model through the distribution of censoring, and through
    the covariates of the population. With `interval="bootstrap"`, persons are resampled, the models
    are fitted again with the same penalty, and limits are percentiles.

    Parameters
    ----------
    y : (n,) structured array
        `riskset.Surv(time, status)` of the whole population.
    people : Population or Adjustment
        After trimming, the remaining people are the population.
    X : Design, data frame, matrix or array (n, p)
        Covariates of the outcome models.
    times : number or (k,) numbers > 0
    settings : StandardizeOptions
    cause : int or str, optional
        Code or label of the outcome in `y`; see `survival`.

    Returns
    -------
    StandardizedEstimates

    Raises
    ------
    CohortError
        "BadOutcome", "BadCovariates", "BadSetting", "EmptyArm"; "AlreadyAdjusted" for weights and
        sets; "CompetingEvents" if the model is "cox" and there are competing events; "NoEvents" if
        an arm has no outcome to fit a model to; "NotConverged" or "InfiniteEstimate" if a model has
        no finite estimate.

    Notes
    -----
    O(n T) time for restricted means and T event times up to the last horizon, in addition to the
    fits. Of more than 2000 event times, hazards are spread evenly within 250 cells of time, each
    with the same number of times, which changes estimates by a small part of their standard error.

    References
    ----------
    Makuch (1982), Journal of Chronic Diseases 35, 437-443, doi:10.1016/0021-9681(82)90058-3.
    Chen and Tsiatis (2001), Biometrics 57, 1030-1038, doi:10.1111/j.0006-341X.2001.01030.x, on
    restricted means.
    Ozenne et al. (2020), Biometrical Journal 62, 751-763, doi:10.1002/bimj.201800298, on competing
    events and the variance.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> x = data.design
    >>> people = rs.cohort.Population(x.to_dense()[:, x.index_of("swang1")])
    >>> y = rs.Surv(data.outcome().time, data.outcome().event)
    >>> rs.cohort.standardize(y, people, x.to_dense()[:, :5], [30])
    StandardizedEstimates (cox, ate, 95% robust intervals)
      risk by 30: 0.3603 - 0.3220 = 0.0383 (0.0147 to 0.0619)
      restricted mean by 30: 23.1243 - 23.9037 = -0.7794 (-1.2757 to -0.2830)
      time lost by 30: 6.8757 - 6.0963 = 0.7794 (0.2830 to 1.2757)
    """
    at = as_horizons(times)
    adjustment, outcomes = followed_arms(y, start(people), cause)
    rows = np.flatnonzero(adjustment.kept)
    task = _Task.of(adjustment, outcomes.take(rows), rows, X, at, settings)
    cells, ends, n_left_out = _robust(task) if settings.kind == "robust" else _resampled(task)
    used = [q for q, name in enumerate(AVERAGED) if name in task.measures]
    numbers: dict[str, Any] = {name: cell[used] for name, cell in cells.items()}
    unknown = at > ends[:, None]
    for name, cell in numbers.items():
        of_arm = {"target": unknown[0], "comparator": unknown[1]}.get(name.split("_")[0])
        cell[:, unknown.any(axis=0) if of_arm is None else of_arm] = np.nan
    return StandardizedEstimates(
        measures=task.measures,
        times=at,
        **numbers | counts_by(adjustment, outcomes, at),
        model=settings.model,
        estimand=settings.estimand,
        interval=settings.kind,
        level=settings.level,
        n_left_out=n_left_out,
        notes=(*task.notes(), *end_notes(at, dict(zip(ARMS, ends.tolist(), strict=True)))),
    )


def _robust(task: "_Task") -> tuple[dict[str, Cells], Rows, int]:
    """Estimates with normal intervals, the ends of the arms, and no resample left out."""
    target, comparator = (task.arm(arm, with_influence=True) for arm in (0, 1))
    variance = np.array([(one.sums**2).sum(axis=0) for one in (target, comparator)])
    covariance = (target.sums * comparator.sums).sum(axis=0)
    largest = np.stack([np.ones(task.at.size), task.at, task.at])
    value, level = np.array([target.value, comparator.value]), task.settings.level
    cells = normal_estimates(value, variance, covariance, level, largest)
    return cells, np.array([target.end, comparator.end]), 0


def _resampled(task: "_Task") -> tuple[dict[str, Cells], Rows, int]:
    """Estimates with percentiles, the ends of the arms, and resamples without an estimate."""
    target, comparator = (task.arm(arm) for arm in (0, 1))
    value = np.array([target.value, comparator.value])
    draws = np.array(list(task.draws(task.settings.replicates, task.settings.seed)))
    draws = draws.reshape(-1, *value.shape)
    is_good = np.isfinite(draws).all(axis=(1, 2, 3))
    cells = resampled_estimates(value, draws[is_good], task.settings.level)
    ends = np.array([target.end, comparator.end])
    return cells, ends, int(np.count_nonzero(~is_good))


class _Arm(NamedTuple):
    """Means of an arm (3, k), what each person adds to them (c, 3, k), and its last time."""

    value: Cells
    sums: NDArray[np.float64]
    end: float


@dataclass(frozen=True, eq=False)
class _Task:
    """The n people kept, their covariates, and the weights of the population's mean."""

    design: Design
    is_target: NDArray[np.bool_]
    outcomes: Outcomes
    sampled: Rows
    unit: Rows
    cluster: Index
    at: Rows
    settings: StandardizeOptions

    @classmethod
    def of(
        cls,
        adjustment: Adjustment,
        outcomes: Outcomes,
        rows: Index,
        X: object,
        at: Rows,
        settings: StandardizeOptions,
    ) -> "_Task":
        people = adjustment.population
        design = checked_covariates(X, people.n_rows, outcomes, settings.model)
        design = without_references(design.take_rows(rows), settings.penalty)
        target = people.is_target[rows]
        sampled: Rows = people.sampling_weight[rows]
        counts = {"ate": np.ones(rows.size, dtype=bool), "att": target, "atu": ~target}
        unit: Rows = np.where(counts[settings.estimand], sampled, 0.0)
        cluster = np.unique(people.person_id[rows], return_inverse=True)[1]
        return cls(design, target, outcomes, sampled, unit, cluster, at, settings)

    @property
    def measures(self) -> tuple[str, ...]:
        """What the model has; a subdistribution says nothing of the time without any event."""
        is_finegray = self.settings.model == "finegray"
        return tuple(m for m in AVERAGED if not (is_finegray and m == "restricted_mean"))

    def arm(self, arm: int, counts: Index | None = None, *, with_influence: bool = False) -> _Arm:
        """Means if everybody were in an arm: 0 the target, 1 the comparator."""
        by_arm = self.settings.by_arm
        own = self.is_target == (arm == 0)
        rows = np.flatnonzero(own) if by_arm else np.arange(own.size)
        fits = self._fits(rows, counts, ARMS[arm])
        new = self.design if by_arm else with_treatment(self.design, np.full(own.size, 1.0 - arm))
        weight = self.unit if counts is None else self.unit * counts
        mean = _standardized(fits, new, weight / weight.sum(), self.at)
        sums = np.zeros((0, len(AVERAGED), self.at.size))
        if with_influence:
            moved = (self.unit / self.unit.sum())[:, None, None] * (mean.rows - mean.value)
            moved[rows] += mean.influence()
            flat = cluster_sums(moved.reshape(own.size, -1), self.cluster)
            sums = flat.reshape(-1, *moved.shape[1:])
            if are_of_one(self.cluster):
                sums = np.full_like(sums, np.nan)
        time = self.outcomes.time[rows]
        return _Arm(mean.value, sums, float(time.max()))

    def notes(self) -> tuple[Note, ...]:
        """What readers should know of the models of the arms."""
        arms = (self.is_target, ~self.is_target)
        return notes_of_constants(self.design, arms) if self.settings.by_arm else ()

    def draws(self, replicates: int, seed: int) -> Iterator[NDArray[np.float64]]:
        """Means of both arms of each resample (2, 3, k); NaN where a model has no estimate."""
        for counts in counts_of_resamples(self.cluster, replicates, seed):
            try:
                yield np.array([self.arm(arm, counts).value for arm in (0, 1)])
            except CohortError:
                yield np.full((2, len(AVERAGED), self.at.size), np.nan)

    def _fits(self, rows: Index, counts: Index | None, arm: str) -> list[RiskModel]:
        """The model of each cause, that of the outcome first."""
        own, by_arm = self.settings, self.settings.by_arm
        if counts is not None:
            rows = rows[counts[rows] > 0]
        weight = self.sampled[rows] if counts is None else self.sampled[rows] * counts[rows]
        whole = self.design if by_arm else with_treatment(self.design, self.is_target.astype(float))
        design = whole.take_rows(rows) if rows.size < whole.n_rows else whole
        how = ModelsOfOutcome(
            own.model, own.ties, own.penalty if by_arm else sparing(own.penalty, [TREATMENT]),
            own.tol, arm if by_arm else None,
        )  # fmt: skip
        return how.fitted(design, self.outcomes.take(rows), weight)


@dataclass(frozen=True, eq=False)
class _Standardized:
    """Predictions of rows (n, 3, k), their mean (3, k), and how each fit moves the mean.

    For each fit, the derivatives of the mean in the log of each increment of its hazard (3, k, M),
    and in its coefficients (3, k, p).
    """

    fits: list[RiskModel]
    rows: NDArray[np.float64]
    value: Cells
    by_step: list[NDArray[np.float64]]
    by_coef: list[NDArray[np.float64]]

    def influence(self) -> NDArray[np.float64]:
        """What each row of the fits adds to the mean through them (m, 3, k)."""
        total: Matrix | None = None
        for model, steps, slopes in zip(self.fits, self.by_step, self.by_coef, strict=True):
            fit = model._fitted.hazard
            steps = steps.reshape(-1, steps.shape[-1])
            slopes = slopes.reshape(len(steps), slopes.shape[-1]) - steps @ fit.steps.mean
            scale = fit.design.scale
            values = np.empty((fit.design.n_rows, len(steps)))
            for c, slope in enumerate(slopes):
                combination = fit.inverse.basis @ (fit.inverse.basis.T @ (slope / scale))
                values[:, c] = fit.design.product(combination, runtime=fit.loss.runtime)
            moved = fit.of_hazards({0: steps}) + pieces_at(fit.loss, fit.eta).contributions(values)
            total = moved if total is None else total + moved
        assert total is not None
        return total.reshape(-1, *self.value.shape)


def _standardized(fits: list[RiskModel], new: Design, weight: Rows, at: Rows) -> _Standardized:
    """Predictions for rows of a design, averaged with weights that add up to 1."""
    baselines = [model._fitted.baseline for model in fits]
    grid, log_step = hazard_increments(baselines, 0, float(at.max()))
    designs = [model._read_new(new, None, None)[0] for model in fits]
    eta = np.array([m._centred(d, np.zeros(d.n_rows)) for m, d in zip(fits, designs, strict=True)])
    found, by_grid = _averages(grid, log_step, eta, weight, at)
    value = np.tensordot(weight, found.value, 1)
    by_step, by_coef = [], []
    for j, (model, design) in enumerate(zip(fits, designs, strict=True)):
        time = baselines[j].time
        steps = np.zeros((*value.shape, time.size))
        own = np.isin(grid, time)
        steps[..., np.searchsorted(time, grid[own])] = by_grid[j][..., own]
        by_step.append(steps)
        by_coef.append(_by_coef(model, design, weight, found.by_eta[j]))
    return _Standardized(fits, found.value, value, by_step, by_coef)


def _averages(
    grid: Rows, log_step: Matrix, eta: Matrix, weight: Rows, at: Rows
) -> tuple[Averages, NDArray[np.float64]]:
    """Means, and their derivatives in the log of each increment (J, 3, k, T)."""
    if not are_many(grid):
        found = averages(grid, log_step, eta, weight, at)
        return found, found.by_step
    edges = cell_edges(grid, at)
    place = np.searchsorted(edges, grid)
    largest = log_step.max(axis=1, keepdims=True)
    size = np.exp(log_step - largest)
    total = np.array([per_cell(edges, grid, one) for one in size])
    with np.errstate(divide="ignore"):
        cells = np.log(total) + largest
    # Hazards rise on average after this share of their cell.
    all_causes = np.exp(log_step - log_step.max()).sum(axis=0)
    start, mass = np.append(0.0, edges)[:-1], per_cell(edges, grid, all_causes)
    passed = per_cell(edges, grid, all_causes * (grid - start[place])) / np.diff(edges, prepend=0.0)
    before = np.divide(passed, mass, out=np.ones_like(mass), where=mass > 0)
    found = averages(edges, cells, eta, weight, at, before=before)
    within = total[:, place]
    share = np.divide(size, within, out=np.zeros_like(size), where=within > 0)
    return found, found.by_step[..., place] * share[:, None, None, :]


def _by_coef(
    model: RiskModel, design: Design, weight: Rows, by_eta: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Derivatives of a mean in the coefficients (3, k, p), covariates relative to their center."""
    runtime, shift = model._fitted.training.loss.runtime, design.center - model._fitted.center
    flat = weight[:, None] * by_eta.reshape(weight.size, -1)
    out = np.empty((flat.shape[1], design.n_features))
    for c, pull in enumerate(flat.T):
        own = np.ascontiguousarray(pull)
        out[c] = design.cross(own, runtime=runtime) * design.scale + shift * own.sum()
    return out.reshape(*by_eta.shape[1:], design.n_features)
