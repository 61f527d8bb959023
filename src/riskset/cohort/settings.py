"""The settings of a comparative cohort study: what each step may be asked for, declared once.

The functions of `riskset.cohort` take these objects, or their fields as keywords; the sections of
a study's specification are the same classes.
"""

from collections.abc import Iterator
from typing import Any, Literal, cast

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, setting, settings
from riskset.cohort.effects.effect_scale import COX_MODELS, OWNERS, Model
from riskset.cohort.effects.estimate import Reading
from riskset.cohort.effects.time_effect import TimeDependence
from riskset.estimators.bootstrap import check_interval
from riskset.estimators.frailty import CoxFrailty
from riskset.infer.crossval.search_plan import ChoiceRule, SearchMethod
from riskset.model.cox import Ties
from riskset.model.frailty import FrailtyName
from riskset.model.penalty import Penalty, as_kind
from riskset.solve.frailty import MAX_VARIANCE, VarianceMethod

__all__ = [
    "FRAILTY_SETTINGS",
    "BalanceOptions",
    "DiagnosticLimits",
    "OutcomeModel",
    "PropensityModel",
    "Table1Options",
    "Tidy",
]

FRAILTY_METHOD: VarianceMethod = CoxFrailty().frailty_method
FRAILTY_SETTINGS = ("frailty", "frailty_method", "frailty_variance")


@settings
class Tidy(Settings):
    """Selection of covariates for models; balance is computed for all covariates.

    Examples
    --------
    >>> import riskset as rs
    >>> settings = rs.cohort.Tidy(normalise=False)
    >>> rs.cohort.tidy([[1.0], [0.0], [3.0]], settings).design.to_dense().ravel()
    array([1., 0., 3.])
    """

    min_fraction: float = setting(
        "covariates are left out if a smaller share of people has them", 0.001, least=0, below=1
    )
    min_count: int = setting("covariates are left out if fewer people have them", 0, least=0)
    remove_redundant: bool = setting("leave out covariates that follow from others", True)
    remove_duplicates: bool = setting("leave out copies of other covariates", False)
    normalise: bool = setting(
        "divide the values of each covariate by the largest of them", True, only_python=True
    )


@settings
class PropensityModel(Settings):
    """The logistic regression of the treatment on the covariates.

    Examples
    --------
    >>> import riskset as rs
    >>> settings = rs.cohort.PropensityModel(penalty=None)
    >>> treatment = [1, 1, 0, 0, 0, 0] + [1, 1, 1, 0, 0, 0]
    >>> found = rs.cohort.propensity_score(treatment, [[0]] * 6 + [[1]] * 6, settings)
    >>> found.status
    'ok'
    """

    penalty: Penalty | Literal["l1", "l2"] | None = setting(
        "the penalty of the coefficients: `L1(2.0)`, for example, has a fixed strength; `L1()` or "
        "'l1' has none, so that cross-validation chooses it; None: no penalty (maximum likelihood)",
        "l1",
    )
    cross_validate: bool | None = setting(
        "choose the strength of the penalty by cross-validation; none: if it has no strength", None
    )
    folds: int | Any = setting("the number of folds of the cross-validation", 10, least=2)
    repeats: int = setting("the number of repeats of the cross-validation", 10, least=1)
    rule: ChoiceRule = setting("the rule that chooses the penalty from the cross-validation", "min")
    on_high_correlation: Literal["error", "exclude", "warn"] = setting(
        "what to do with covariates that nearly determine the treatment", "error"
    )
    max_correlation: float = setting(
        "the smallest absolute correlation of a covariate that nearly determines the treatment",
        0.5,
        above=0,
        most=1,
    )
    search: SearchMethod = setting(
        "how the cross-validation looks for the strength, as in `riskset.CoxCV`",
        "auto",
        only_python=True,
    )
    stratify: bool = setting("spread the arms evenly over the folds", True, only_python=True)
    seed: int = setting("the seed of the random folds", 1, only_python=True)
    max_rows: int | None = setting(
        "fit the model to at most this number of rows of each arm, evenly spaced by `row_id`",
        None,
        least=2,
    )
    tol: float = setting("the tolerance of the fit, as in `riskset.Cox`", 1e-8, only_python=True)
    max_iter: int = setting(
        "the largest number of iterations, as in `riskset.Cox`", 200, only_python=True
    )

    @property
    def kind(self) -> Penalty | None:
        """The penalty, or the kind of the one that is to be chosen."""
        return cast("Penalty | None", as_kind(self.penalty))

    @property
    def chooses_penalty(self) -> bool:
        """Whether cross-validation chooses the strength of the penalty."""
        return self.kind is not None and not self.kind.has_strength

    def contradictions(self) -> Iterator[InputError]:
        """A strength is given or chosen."""
        yield from wrong_strength(self.kind, self.cross_validate)


def wrong_strength(penalty: Penalty | None, cross_validate: bool | None) -> Iterator[InputError]:
    """The error of a strength that is to be chosen and given, or neither."""
    if cross_validate and penalty is None:
        yield bad_setting(
            "cross_validate",
            "`cross_validate` is True, but without a penalty there is no strength to choose.",
            hint="leave it out, or give a penalty without a strength, such as `penalty='l1'`.",
        )
    elif cross_validate and penalty is not None and penalty.has_strength:
        yield bad_setting(
            "cross_validate",
            f"`cross_validate` is True, but `penalty` is {penalty!r}, whose strength would not be "
            "used.",
            hint=f"leave `cross_validate` out to use this strength, or pass "
            f"{penalty.without_strength()!r} to have one chosen.",
        )
    elif cross_validate is False and penalty is not None and not penalty.has_strength:
        yield bad_setting(
            "cross_validate",
            f"`cross_validate` is False, but the penalty {penalty!r} has no strength.",
            hint="give a strength, such as `penalty=L1(2.0)`; use `penalty=None` for no penalty; "
            "or leave `cross_validate` out to have a strength chosen.",
        )


@settings
class BalanceOptions(Settings):
    """Measurement and limits of covariate balance.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.5, 0.5, 0.4, 0.4])
    >>> options = rs.cohort.BalanceOptions(threshold=0.8)
    >>> rs.cohort.balance([[1.0], [3.0], [0.0], [2.0]], people, options).before.balanced
    array([ True])
    """

    sd: Literal["before", "current"] = setting(
        "the standard deviation that divides differences after adjustment: of the people before "
        "adjustment, or of the current ones",
        "before",
    )
    threshold: float = setting(
        "covariates with a smaller difference count as balanced", 0.1, above=0
    )
    alpha: float | None = setting(
        "call covariates unbalanced only if the difference exceeds the threshold significantly, at "
        "this level over all covariates",
        None,
        above=0,
        below=1,
    )
    variance: Literal["auto", "counts", "weights", "strata"] = setting(
        "how the variance of a difference is estimated", "auto", only_python=True
    )
    squares: bool = setting(
        "measure the squares of covariates with more than two values as further covariates", False
    )
    interactions: tuple[tuple[int | str, ...], ...] = setting(
        "pairs of covariates whose products are measured as further covariates", ()
    )


@settings
class Table1Options(Settings):
    """The statistics of Table 1.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 1, 0, 0, 0])
    >>> frame = pa.table({"age": [61, 70, 55, 66, 58, 47]})
    >>> found = rs.cohort.table1(frame, people, rs.cohort.Table1Options(statistic="median"))
    >>> [row["kind"] for row in found.rows]
    ['people', 'median']
    """

    statistic: Literal["mean", "median"] = setting(
        "how numbers are shown: mean (SD), or median [IQR]", "mean"
    )
    mean: tuple[str, ...] = setting(
        "names, keys or labels of covariates shown by mean (SD); * stands for any characters", ()
    )
    median: tuple[str, ...] = setting("names, keys or labels of covariates shown by median", ())
    sd: Literal["before", "current"] = setting(
        "the standard deviation that divides differences after adjustment: of the people before "
        "adjustment, or of the current ones",
        "before",
    )
    overall: bool = setting("show a column of both arms together", False)


@settings
class OutcomeModel(Settings):
    """The outcome model.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0, 1, 0])
    >>> y = rs.Surv([3, 5, 8, 2, 9, 7], [1, 1, 0, 1, 1, 0])
    >>> rs.cohort.fit_outcome(y, people, rs.cohort.OutcomeModel(interval="wald", ties="efron"))
    Estimate(cox, marginal: hazard ratio 0.434 (95% wald interval 0.039 to 4.838))
    """

    model: Model = setting(
        "the model: of the hazard, of the cause-specific hazard (competing events censor it), of "
        "the subdistribution hazard, of the odds of the outcome, or of its rate",
        "cox",
        key="kind",
    )
    reading: Literal["auto"] | Reading = setting(
        "stratified: each matched set or stratum has its own baseline; marginal: one baseline and "
        "the weights of the adjustment; pooled: one baseline and no weights; auto: stratified "
        "where there are sets, with the marginal estimate as a sensitivity analysis",
        "auto",
    )
    interval: Literal["auto", "profile", "robust", "wald", "bootstrap", "stacked"] = setting(
        "how confidence intervals are computed; stacked: robust, with the estimation of the "
        "propensity scores, which must be unpenalised",
        "auto",
    )
    level: float = setting("the level of confidence intervals", 0.95, above=0, below=1)
    ties: Ties = setting(
        "how the Cox model handles tied events; exact: by the conditional likelihood of who has "
        "the events of a time",
        "breslow",
    )
    firth: bool = setting(
        "maximise Firth's penalised likelihood in the Cox model, whose estimate is finite even if "
        "only one arm has the outcome",
        False,
    )
    frailty: FrailtyName | None = setting(
        "the distribution of frailties in the Cox model: random effects on the hazard that people "
        "of a cluster share; none: there are none",
        None,
    )
    frailty_method: VarianceMethod = setting(
        "how the variance of the frailties is estimated, as in `riskset.CoxFrailty`",
        FRAILTY_METHOD,
    )
    frailty_variance: float | None = setting(
        "the variance of the frailties; none: it is estimated", None, least=0, most=MAX_VARIANCE
    )
    time_effect: TimeDependence | None = setting(
        "also estimate the hazard ratio of the Cox model as a function of time: log-linear in the "
        "logarithm of time (log) or in time itself (identity), or with steps at these times",
        None,
        above=0,
    )
    effect_times: tuple[float, ...] = setting(
        "times at which a hazard ratio that is log or identity in time is reported; left out: "
        "round times from the first to the last outcome",
        (),
        above=0,
    )
    replicates: int = setting("the number of resamples of the bootstrap", 200, least=2)
    folds: int = setting("the number of folds of the cross-validation", 10, least=2)
    repeats: int = setting("the number of repeats of the cross-validation", 10, least=1)
    censoring_weights: Literal["none", "case"] = setting(
        "whether weights count in the censoring distribution of the Fine-Gray model", "none"
    )
    censoring_group: Literal["arm", "stratum"] | None = setting(
        "estimate the censoring distribution of the Fine-Gray model in each of these groups",
        None,
    )
    penalty: Penalty | Literal["l1", "l2"] | None = setting(
        "the penalty of the covariates; the treatment and the interactions have none. `L1()` or "
        "'l1', which has no strength: cross-validation chooses it, and matched sets and people "
        "stay in one fold",
        None,
        only_python=True,
    )
    cross_validate: bool | None = setting(
        "choose the strength of the penalty by cross-validation; None: if it has no strength",
        None,
        only_python=True,
    )
    tidy: bool = setting(
        "leave out uninformative covariates, as `riskset.cohort.tidy` does, before a "
        "cross-validation",
        True,
        only_python=True,
    )
    fixed: dict[str, float] | None = setting(
        "log ratios at which the coefficients of covariates are held, by names or keys of the "
        "covariates",
        None,
    )
    profile: Literal["adaptive", "grid"] | None = setting(
        "keep the profile likelihood of log ratios from log(0.1) to log(10): at up to 1000 "
        "values that suffice for linear interpolation, or at 8 with their derivatives",
        None,
        only_python=True,
    )
    time_intervals: int = setting(
        "the largest number of intervals of time in which the log hazard ratio is estimated; 0: "
        "none",
        0,
        least=0,
        only_python=True,
    )
    seed: int = setting("the seed of the bootstrap and of the folds", 1, least=0, only_python=True)
    tol: float = setting("the tolerance of the fit", 1e-8, only_python=True)

    @property
    def held(self) -> dict[str, float]:
        """Coefficients of covariates that are not estimated, by their names."""
        return self.fixed or {}

    @property
    def kind(self) -> Penalty | None:
        """The penalty, or the kind of the one that is to be chosen."""
        return cast("Penalty | None", as_kind(self.penalty))

    @property
    def chooses_penalty(self) -> bool:
        """Whether cross-validation chooses the strength of the penalty."""
        return self.kind is not None and not self.kind.has_strength

    @property
    def is_penalized(self) -> bool:
        """Whether covariates have a penalty."""
        return self.penalty is not None

    def contradictions(self) -> Iterator[InputError]:
        """An interval by the bootstrap needs replicates; censoring is of one model."""
        yield from wrong_strength(self.kind, self.cross_validate)
        if self.interval == "stacked" and self.is_penalized:
            message = "a stacked interval is not defined for a model with a penalty."
            hint = "use `interval='bootstrap'`, or leave the penalty out."
            yield bad_setting("interval", message, hint)
        if self.interval == "bootstrap":
            yield from too_few_replicates(self.replicates, self.level)
        yield from self._wrong_likelihood()
        yield from self._wrong_frailty()
        yield from self._wrong_time_effect()
        for name, value in self.held.items():
            if value in (float("inf"), float("-inf")):
                message = f"the fixed coefficient of {name!r} must be finite."
                hint = "it is a log ratio per unit of the covariate, such as 0.03."
                yield bad_setting("fixed", message, hint, value=self.fixed)
        for name, (unset, models, words) in OWNERS.items():
            value = getattr(self, name)
            if value != unset and not set(self.models) & set(models):
                problem = f"`{name}` belongs to {words}, which was not requested."
                hint = f"leave it out, or use `model={models[0]!r}`."
                yield bad_setting(name, problem, hint, value=value)

    def _wrong_likelihood(self) -> Iterator[InputError]:
        """What a likelihood that is not a sum over rows does not have."""
        likelihood = self.whole_likelihood
        if likelihood is None:
            return
        if self.firth and self.ties == "exact":
            message = "`firth=True` does not fit `ties='exact'`."
            yield bad_setting("firth", message, "use `ties='efron'`.", value=True)
        if self.interval not in self.whole_intervals:
            message = f"there is no {self.interval} interval for {likelihood}."
            hint = (
                "use `interval='wald'`, as auto does."
                if self.frailty
                else "use `interval='profile'`, as auto does, or wald."
            )
            yield bad_setting("interval", message, hint, value=self.interval)
        if self.is_penalized and self.lacking_penalty:
            message = f"there is no {self.lacking_penalty} for {likelihood}."
            yield bad_setting("penalty", message, "leave one of them out.", value=self.penalty)
        for name, unset in (("profile", None), ("time_intervals", 0), ("time_effect", None)):
            is_lacking = self.firth or self.frailty or name != "profile"
            if getattr(self, name) != unset and is_lacking:
                message = f"`{name}` is not available for {likelihood}."
                yield bad_setting(name, message, "leave it out.", value=getattr(self, name))

    def _wrong_frailty(self) -> Iterator[InputError]:
        """Settings of frailties need a distribution, and a likelihood of rows."""
        if self.frailty is None:
            for name, unset in zip(FRAILTY_SETTINGS[1:], (FRAILTY_METHOD, None), strict=True):
                if getattr(self, name) != unset:
                    message = f"`{name}` belongs to frailties, but there are none."
                    hint = "add `frailty='gamma'`, or leave it out."
                    yield bad_setting(name, message, hint, value=getattr(self, name))
            return
        if self.frailty == "gamma" and self.frailty_method == "reml":
            message = "`frailty_method='reml'` is not defined for `frailty='gamma'`."
            hint = "leave it out, or use `frailty='lognormal'`."
            yield bad_setting("frailty_method", message, hint, value=self.frailty_method)
        for name, is_unfit in (("firth", self.firth), ("ties", self.ties == "exact")):
            if is_unfit:
                given = getattr(self, name)
                message = f"`{name}={given!r}` does not fit `frailty={self.frailty!r}`."
                yield bad_setting(name, message, "leave one of them out.", value=given)

    def _wrong_time_effect(self) -> Iterator[InputError]:
        """Functions of time that are not defined, or of a model that does not have them."""
        steps = self.time_effect if isinstance(self.time_effect, tuple) else None
        if self.effect_times and (self.time_effect is None or steps is not None):
            yield bad_setting(
                "effect_times",
                "`effect_times` belongs to an effect that is a smooth function of time.",
                hint="use `time_effect='log'` or 'identity'; steps have their intervals.",
                value=self.effect_times,
            )
        for name in ("time_effect", "effect_times"):
            times = getattr(self, name)
            if not isinstance(times, tuple) or (not times and name == "effect_times"):
                continue
            if not times or list(times) != sorted(set(times)) or times[-1] == float("inf"):
                yield bad_setting(
                    name,
                    f"`{name}` must have finite times that increase, but it is {list(times)}.",
                    hint="name each time once, the earliest first; for example [30, 180].",
                    value=times,
                )
        if self.time_effect is None:
            return
        if self.model not in COX_MODELS:
            yield bad_setting(
                "time_effect",
                "`time_effect` belongs to the Cox model.",
                hint=f"leave it out, or use `model={COX_MODELS[0]!r}`.",
                value=self.time_effect,
            )
        if self.is_penalized:
            yield bad_setting(
                "time_effect",
                "`time_effect` is not available for covariates with a penalty.",
                hint="leave one of them out.",
                value=self.time_effect,
            )

    @property
    def whole_likelihood(self) -> str | None:
        """The setting, as written, of a likelihood that is not a sum over rows; None without one.

        Such a likelihood has no weights and no robust variance.
        """
        key = self.whole_key
        return None if key is None else f"`{key}={getattr(self, key)!r}`"

    @property
    def whole_key(self) -> str | None:
        """The name of that setting."""
        if not set(self.models) & set(COX_MODELS):
            return None
        if self.frailty is not None:
            return "frailty"
        if self.firth:
            return "firth"
        return "ties" if self.ties == "exact" else None

    @property
    def whole_intervals(self) -> tuple[str, ...]:
        """The intervals of such a likelihood; "auto" is the one after it."""
        return ("auto", "wald") if self.frailty else ("auto", "profile", "wald")

    @property
    def lacking_penalty(self) -> str | None:
        """What of a penalty such a likelihood does not have."""
        if self.whole_key == "frailty":
            return "penalty"
        if self.whole_key == "firth":
            return "second penalty"
        return "cross-validation" if self.whole_key and self.chooses_penalty else None

    @property
    def models(self) -> tuple[str, ...]:
        """All models that are fitted."""
        return (self.model,)


def too_few_replicates(replicates: int, level: float) -> Iterator[InputError]:
    """The fault of a number of replicates that has no percentiles of a level."""
    try:
        check_interval(replicates, level, "percentile")
    except InputError as error:
        yield bad_setting("replicates", error.message, error.hint, value=replicates)


@settings
class DiagnosticLimits(Settings):
    """Limits of the diagnostics required before unblinding.

    Examples
    --------
    >>> import riskset as rs
    >>> limits = rs.cohort.DiagnosticLimits(min_equipoise=0.5)
    >>> rs.cohort.diagnose(equipoise=0.4, settings=limits).unblind
    False
    """

    max_smd: float = setting("largest standardised difference after adjustment", 0.1, above=0)
    max_shared_smd: float | None = setting(
        "the same limit for the shared balance, which decides about controls; none: max_smd",
        None,
        above=0,
    )
    min_equipoise: float = setting(
        "smallest proportion of people in equipoise", 0.2, least=0, most=1
    )
    max_mdrr: float = setting("largest minimum detectable ratio", 10.0, above=1)
    max_ease: float = setting("largest expected absolute systematic error", 0.25, above=0)
    max_generalisability: float | None = setting(
        "largest standardised difference before and after adjustment, in the group that the effect "
        "is about; none: no limit",
        None,
        above=0,
    )
