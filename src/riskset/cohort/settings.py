"""The settings of a comparative cohort study: what each step may be asked for, declared once.

The functions of `riskset.cohort` take these objects, or their fields as keywords; the sections of
a study's specification are the same classes.
"""

from collections.abc import Iterator
from typing import Any, Literal, cast

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, setting, settings
from riskset._types import is_number
from riskset.cohort.adjustment import Estimand
from riskset.cohort.effect_scale import OWNERS, Model
from riskset.cohort.estimate import Reading
from riskset.estimators.bootstrap import check_interval
from riskset.infer.crossval.search_plan import ChoiceRule, SearchMethod
from riskset.model.penalty import Penalty, as_kind

__all__ = [
    "BalanceOptions",
    "Coarsen",
    "DiagnosticLimits",
    "Match",
    "OutcomeModel",
    "PropensityModel",
    "SeveralTreatments",
    "Stratify",
    "Table1Options",
    "Tidy",
    "Trim",
    "Weight",
]


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
class Trim(Settings):
    """Trimming of people by the propensity score.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.97, 0.6, 0.5, 0.2])
    >>> rs.cohort.trim(people, rs.cohort.Trim(equipoise=(0.3, 0.7))).kept
    array([False,  True,  True, False])
    """

    symmetric: float | None = setting(
        "f: keep scores above f and below 1 - f", None, above=0, below=0.5
    )
    asymmetric: float | None = setting(
        "f: of the overlap keep the target from its quantile f on and the comparators up to their "
        "quantile 1 - f",
        None,
        above=0,
        below=0.5,
    )
    reverse_asymmetric: float | None = setting(
        "f: of the overlap keep the target up to its quantile 1 - f and the comparators from their "
        "quantile f on",
        None,
        above=0,
        below=0.5,
    )
    overlap: bool = setting("keep scores in the common range of both arms", False)
    equipoise: tuple[float, float] | None = setting(
        "keep preference scores from the first number to the second, both included",
        None,
        least=0,
        most=1,
    )
    crump: bool = setting("keep scores within the limits of the rule of Crump et al.", False)
    max_weight: float | None = setting(
        "keep people whose weight in `weights` is at most this", None, above=0, only_python=True
    )

    def contradictions(self) -> Iterator[InputError]:
        """The limits of the preference score must rise."""
        if self.equipoise is not None and not self.equipoise[0] < self.equipoise[1]:
            yield wrong_range("equipoise", self.equipoise)


def wrong_range(name: str, bounds: object) -> InputError:
    """The error of limits of the preference score that are not a range."""
    return bad_setting(
        name,
        f"`{name}` must be two numbers between 0 and 1, the lower first, but it is {bounds!r}.",
        hint="for example (0.3, 0.7).",
    )


@settings
class Match(Settings):
    """Sets of targets and comparators who are alike.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0], [0.50, 0.50, 0.51])
    >>> rs.cohort.match(people, rs.cohort.Match(ratio=2, caliper=None)).set_id
    array([0, 0, 0])
    """

    ratio: int = setting(
        "the largest number of comparators for one target; 0: no limit", 1, least=0
    )
    caliper: float | None = setting(
        "the largest distance within a set; none or 0: no limit", 0.2, least=0
    )
    scale: Literal["standardized logit", "standardized", "propensity score"] = setting(
        "the scale on which the distance is measured, with a caliper or without",
        "standardized logit",
    )
    allow_reverse: bool = setting(
        "match targets to comparators if the target is the larger arm", False
    )
    exact_covariates: tuple[int | str, ...] = setting(
        "keys of covariates of `X` that matched people share, too", (), only_python=True
    )
    caliper_sd: Literal["all", "within"] = setting(
        "the standard deviation of the scale: that of everybody, or the pooled one of the two arms",
        "all",
        only_python=True,
    )
    method: Literal["closest", "optimal", "full"] = setting(
        "closest: the closest pairs first; optimal: as many pairs as possible with the smallest "
        "total distance; full: everybody who has a pair, in sets of one target and its comparators "
        "or one comparator and its targets, with the smallest total distance",
        "closest",
    )
    replacement: bool = setting(
        "comparators may be matched to several targets; each target has the closest ones", False
    )
    mahalanobis: tuple[int | str, ...] = setting(
        "names or keys of covariates whose Mahalanobis distance decides within the caliper, "
        "instead of the score",
        (),
    )
    estimand: Literal["ate", "att", "atu"] | None = setting(
        "of a full matching the population of the effect; none: att", None
    )

    @property
    def uses_score(self) -> bool:
        """Whether people need propensity scores."""
        return not self.mahalanobis or bool(self.caliper)

    def contradictions(self) -> Iterator[InputError]:
        """What belongs to one method alone."""
        if self.replacement and self.method != "closest":
            yield bad_setting(
                "replacement",
                f"`replacement` is True, but {self.method} matching uses everybody once.",
                "leave it out, or use the method closest.",
            )
        if self.method == "full" and (self.ratio != 1 or self.allow_reverse):
            name = "ratio" if self.ratio != 1 else "allow_reverse"
            yield bad_setting(
                name,
                f"`{name}` does not belong to full matching, whose sets have any sizes.",
                "leave it out.",
            )
        if self.method == "optimal" and not self.ratio:
            yield bad_setting(
                "ratio",
                "`ratio` is 0, but optimal matching needs a number of comparators.",
                "use full matching for sets of any size.",
            )
        if self.estimand is not None and self.method != "full":
            yield bad_setting(
                "estimand",
                "`estimand` belongs to full matching; other matching is about the target.",
                "leave it out, or use the method full.",
            )


@settings
class Coarsen(Settings):
    """Strata of people who share coarsened covariates (coarsened exact matching).

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0])
    >>> settings = rs.cohort.Coarsen(covariates=["x0"], cuts={"x0": [50]})
    >>> rs.cohort.coarsen(people, [[41.0], [45.0], [62.0]], settings).set_id
    array([ 1,  1, -1])
    """

    covariates: tuple[int | str, ...] = setting(
        "names or keys of covariates whose intervals the people of a stratum share", ()
    )
    cuts: dict[str, tuple[float, ...]] | None = setting(
        "limits between the intervals of these covariates; each is the start of an interval", None
    )
    bins: int | None = setting(
        "the number of intervals of equal width of a covariate without cuts; none: by Sturges's "
        "rule",
        None,
        least=1,
    )
    estimand: Literal["ate", "att", "atu"] = setting("the population of the effect", "att")

    def contradictions(self) -> Iterator[InputError]:
        """Cuts are of chosen covariates, and rise."""
        for name, limits in (self.cuts or {}).items():
            if str(name) not in map(str, self.covariates):
                yield bad_setting(
                    "cuts",
                    f"`cuts` has limits of {name!r}, which is not one of `covariates`.",
                    "add it to `covariates`.",
                )
            elif list(limits) != sorted(set(limits)):
                listed = ", ".join(f"{limit:.15g}" for limit in limits)
                yield bad_setting(
                    "cuts", f"`cuts` must increase, but those of {name!r} are {listed}."
                )


@settings
class Stratify(Settings):
    """Strata of the propensity score.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0], [0.2, 0.3, 0.6, 0.7])
    >>> rs.cohort.stratify(people, rs.cohort.Stratify(k=2)).set_id
    array([1, 1, 2, 2])
    """

    k: int = setting("the number of strata in each block", 10, least=2)
    base: Literal["all", "target", "comparator"] = setting(
        "the people whose quantiles are the limits of the strata", "all"
    )
    weighting: Literal["ate", "att", "atu", "equal"] | None = setting(
        "the weights of the strata for balance, curves and the marginal model; None: by the base",
        None,
        only_python=True,
    )


@settings
class Weight(Settings):
    """Weights from the propensity score, or weights that balance covariates.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0], [0.8, 0.5, 0.2])
    >>> rs.cohort.weight(people, rs.cohort.Weight("att")).weight.round(3)
    array([1.  , 1.  , 0.25])
    """

    estimand: Estimand = setting("the population of the effect", "ato")
    stabilise: bool | Literal["cohortmethod"] = setting(
        "multiply weights for ate by the share of the arm; cohortmethod: weights for att, too",
        False,
    )
    truncate: float | str | None = setting(
        "the largest weight, as a number or a percentile (p99); larger ones are cut", None
    )
    method: Literal["score", "entropy", "cbps"] = setting(
        "score: by the propensity score; entropy: entropy balancing, which needs no score; cbps: "
        "by a propensity score that is fitted so that its weights balance the covariates",
        "score",
    )
    covariates: tuple[int | str, ...] = setting(
        "names or keys of covariates that entropy and cbps balance; none listed: all", ()
    )
    moments: int = setting(
        "entropy and cbps balance the powers of covariates up to this one", 1, least=1, most=3
    )
    interactions: tuple[tuple[int | str, ...], ...] = setting(
        "pairs of covariates whose products entropy and cbps balance, too", ()
    )

    @property
    def uses_score(self) -> bool:
        """Whether people need propensity scores."""
        return self.method == "score"

    @property
    def percentile(self) -> float | None:
        """The percentile at which weights are cut, if it is one."""
        text = self.truncate
        if not isinstance(text, str):
            return None
        try:
            return float(text.removeprefix("p")) if text.startswith("p") else float("nan")
        except ValueError:
            return float("nan")

    def contradictions(self) -> Iterator[InputError]:
        """Weights are cut at a positive number or at a percentile, or balance covariates."""
        yield from self._of_method()
        percent = self.percentile
        is_valid = self.truncate is None or (is_number(self.truncate) and self.truncate > 0)
        if not (is_valid if percent is None else 0 < percent < 100):
            yield bad_setting(
                "truncate",
                f"`truncate` must be a positive number or a percentile, but it is "
                f"{self.truncate!r}.",
                hint="for example 10, or 'p99' for the 99th percentile.",
                value=self.truncate,
            )

    def _of_method(self) -> Iterator[InputError]:
        if self.method == "score":
            if self.covariates or self.moments > 1 or self.interactions:
                name = "covariates" if self.covariates else "moments"
                name = "interactions" if self.interactions else name
                yield bad_setting(
                    name,
                    f"`{name}` belongs to weights that balance covariates.",
                    "use the method entropy or cbps, or leave it out.",
                )
            return
        if self.estimand not in ("ate", "att", "atu"):
            yield bad_setting(
                "estimand",
                f"the method {self.method} has no estimand {self.estimand!r}.",
                "use ate, att or atu.",
                value=self.estimand,
            )
        for name in ("stabilise", "truncate"):
            if getattr(self, name) not in (None, False):
                yield bad_setting(
                    name,
                    f"`{name}` would change weights that balance covariates exactly.",
                    "leave it out.",
                )


@settings
class SeveralTreatments(Settings):
    """Weights for several treatments.

    Examples
    --------
    >>> import riskset as rs
    >>> settings = rs.cohort.SeveralTreatments(estimand="ate")
    >>> rs.cohort.weight_treatments(["a", "b"], settings, score=[[0.5, 0.5], [0.2, 0.8]]).weight
    array([2.  , 1.25])
    """

    estimand: Literal["ate", "att", "ato"] = setting("the population of the effect", "ato")
    target: int | str | None = setting("the treatment whose people att is about", None)
    method: Literal["score", "entropy"] = setting(
        "score: by generalised propensity scores; entropy: entropy balancing", "score"
    )

    def contradictions(self) -> Iterator[InputError]:
        """A target is of one estimand, and entropy balancing has no overlap population."""
        if (self.estimand == "att") != (self.target is not None):
            yield bad_setting(
                "target",
                "`target` is needed for the estimand att, and for no other.",
                "give both, or none of them.",
            )
        if self.method == "entropy" and self.estimand == "ato":
            yield bad_setting(
                "estimand",
                "entropy balancing has no estimand 'ato'.",
                "use ate or att.",
                value=self.estimand,
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
    ties: Literal["breslow", "efron"] = setting("how the Cox model handles tied events", "breslow")
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
    profile: Literal["adaptive", "grid"] | None = setting(
        "keep the profile likelihood of log hazard ratios from log(0.1) to log(10): at up to 1000 "
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
            try:
                check_interval(self.replicates, self.level, "percentile")
            except InputError as error:
                yield bad_setting("replicates", error.message, error.hint, value=self.replicates)
        for name, (unset, models, words) in OWNERS.items():
            value = getattr(self, name)
            if value != unset and not set(self.models) & set(models):
                problem = f"`{name}` belongs to {words}, which was not requested."
                hint = f"leave it out, or use `model={models[0]!r}`."
                yield bad_setting(name, problem, hint, value=value)

    @property
    def models(self) -> tuple[str, ...]:
        """All models that are fitted."""
        return (self.model,)


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
    max_mdrr: float = setting("largest minimum detectable hazard ratio", 10.0, above=1)
    max_ease: float = setting("largest expected absolute systematic error", 0.25, above=0)
    max_generalisability: float | None = setting(
        "largest standardised difference before and after adjustment, in the group that the effect "
        "is about; none: no limit",
        None,
        above=0,
    )
