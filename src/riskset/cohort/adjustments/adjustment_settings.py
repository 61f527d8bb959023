"""The settings of adjustment: trimming, matching, strata and weights, declared once."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, declared, setting, settings
from riskset._types import is_number
from riskset.cohort.adjustments.adjustment import Estimand
from riskset.cohort.settings import PropensityModel

__all__ = [
    "Coarsen",
    "Match",
    "SeveralTreatments",
    "Stratify",
    "Trim",
    "Weight",
]


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
        "closest: the closest pairs first; optimal: as many pairs, of as many targets, as "
        "possible with the smallest total distance; full: everybody who has a pair, in sets of "
        "one target and its comparators or one comparator and its targets, with the smallest "
        "total distance",
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
        most=100_000,
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
class SeveralTreatments(PropensityModel):
    """Weights for several treatments, and the multinomial regression of their scores.

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

    REGRESSION: ClassVar[type[PropensityModel]] = PropensityModel
    """The settings of the regression."""

    def contradictions(self) -> Iterator[InputError]:
        """A target is of one estimand, and entropy balancing has no overlap population."""
        yield from super().contradictions()
        yield from self.of_weights()

    def of_weights(self) -> Iterator[InputError]:
        """Contradictions of what the regression does not need."""
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
        for name in self.of_regression() if self.method == "entropy" else ():
            yield bad_setting(
                name,
                f"`{name}` belongs to the regression of the scores, which entropy balancing does "
                "not need.",
                "leave it out, or use the method score.",
                value=getattr(self, name),
            )

    def of_regression(self) -> list[str]:
        """Names of the settings of the regression that do not have their default."""
        return [
            one.name
            for one in declared(self.REGRESSION).values()
            if one.name not in ("seed", "exclude") and not _is(getattr(self, one.name), one.default)
        ]


def _is(value: object, default: object) -> bool:
    """Whether a setting, which may be an array, has its default."""
    return type(value) is type(default) and bool(value == default)
