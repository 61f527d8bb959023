"""The sections of an analysis: how people are made comparable, and what is then estimated.

Every field is a key of the specification; its words are those of the documentation.
"""

from dataclasses import dataclass
from typing import Literal

from riskset.study.cdm_sections import CdmCovariates, Entry, NewUsers, RiskWindow
from riskset.study.document import key

__all__ = [
    "Analysis",
    "BalanceOptions",
    "Match",
    "OutcomeModel",
    "PropensityModel",
    "Stratify",
    "Tidy",
    "Trim",
    "Weight",
]

ModelName = Literal["cox", "cause-specific", "finegray"]


@dataclass(frozen=True)
class Tidy:
    """Which covariates a model may use; balance looks at all."""

    min_fraction: float = key(
        "leave out covariates that a smaller share of people has", 0.001, least=0, below=1
    )
    min_count: int = key("leave out covariates that fewer people have", 0, least=0)
    remove_redundant: bool = key("leave out covariates that follow from others", True)
    remove_duplicates: bool = key("leave out copies of other covariates", False)


@dataclass(frozen=True)
class PropensityModel:
    """The logistic regression of the treatment on the covariates."""

    penalty: Literal["l1", "l2", "none"] = key("of the coefficients", "l1")
    cross_validate: bool = key("choose the strength of the penalty by cross-validation", True)
    strength: float | None = key("of the penalty on the total log likelihood", None, above=0)
    variance: float | None = key("of the prior, instead of a strength", None, above=0)
    folds: int = key("of the cross-validation", 10, least=2)
    repeats: int = key("of the cross-validation", 10, least=1)
    rule: Literal["min", "1se"] = key("which penalty of the cross-validation", "min")
    on_high_correlation: Literal["error", "exclude", "warn"] = key(
        "what to do with covariates that nearly determine the treatment", "error"
    )
    max_correlation: float = key("from which correlation on they do", 0.5, above=0, most=1)
    exclude: tuple[str, ...] = key("names or keys of covariates to leave out", ())


@dataclass(frozen=True)
class Trim:
    """Leave people out by their propensity scores; see `riskset.cohort.trim`."""

    symmetric: float | None = key("keep scores above f and below 1 - f", None, above=0, below=0.5)
    asymmetric: float | None = key("f of asymmetric trimming", None, above=0, below=0.5)
    reverse_asymmetric: float | None = key("f of its reverse", None, above=0, below=0.5)
    overlap: bool = key("keep scores that both arms have", False)
    equipoise: tuple[float, float] | None = key(
        "keep preference scores from the first to the second", None, least=0, most=1
    )
    crump: bool = key("Crump's rule", False)
    refit: bool = key("fit the scores again for those who are left", False)


@dataclass(frozen=True)
class Match:
    """Match comparators to targets; see `riskset.cohort.match`."""

    ratio: int = key("most comparators for a target; 0: no limit", 1, least=0)
    caliper: float | None = key("largest distance; none: no limit", 0.2, least=0)
    scale: Literal["standardized logit", "standardized", "propensity score"] = key(
        "scale on which the distance is measured, with a caliper or without",
        "standardized logit",
    )
    within: tuple[str, ...] = key("variables or columns that matched people share", ())
    allow_reverse: bool = key("match targets to comparators where they are fewer", False)


@dataclass(frozen=True)
class Stratify:
    """Strata of the propensity score; see `riskset.cohort.stratify`."""

    k: int = key("number of strata", 10, least=2)
    base: Literal["all", "target", "comparator"] = key("whose quantiles part them", "all")
    within: tuple[str, ...] = key("variables or columns that people of a stratum share", ())


@dataclass(frozen=True)
class Weight:
    """Weights by the propensity score; see `riskset.cohort.weight`."""

    estimand: Literal["ate", "att", "atu", "ato", "matching"] = key(
        "whom the effect is about", "ato"
    )
    stabilise: bool | Literal["cohortmethod"] = key(
        "multiply weights for ate by the share of the arm; cohortmethod: weights for att, too",
        False,
    )
    truncate: float | str | None = key("cut weights at a number or a percentile (p99)", None)


@dataclass(frozen=True)
class BalanceOptions:
    """How alike the arms must be; see `riskset.cohort.balance`."""

    sd: Literal["before", "current"] = key("whose standard deviation divides", "before")
    threshold: float = key("largest difference that counts as balanced", 0.1, above=0)
    alpha: float | None = key(
        "call covariates unbalanced only if significantly so", None, above=0, below=1
    )


@dataclass(frozen=True)
class OutcomeModel:
    """The model of the outcome; see `riskset.cohort.fit_outcome`."""

    kind: ModelName = key("of the main estimate", "cox")
    also: tuple[ModelName, ...] = key("further models, each with its estimate", ())
    reading: Literal["auto", "stratified", "marginal", "pooled"] = key(
        "auto: stratified where there are sets, with the marginal one beside it", "auto"
    )
    interval: Literal["auto", "profile", "robust", "wald", "bootstrap"] = key(
        "how intervals are found", "auto"
    )
    level: float = key("of intervals", 0.95, above=0, below=1)
    ties: Literal["breslow", "efron"] = key("of Cox's model", "breslow")
    replicates: int = key("of the bootstrap", 200, least=2)
    covariates: Literal["none", "all"] = key("adjust for the tidy covariates, too", "none")
    strength: float | None = key(
        "of the L1 penalty on these covariates; left out: by cross-validation", None, above=0
    )
    folds: int = key("of that cross-validation", 10, least=2)
    repeats: int = key("of that cross-validation", 10, least=1)
    censoring_weights: Literal["none", "case"] = key("weights of Fine and Gray's censoring", "none")
    censoring_group: Literal["arm", "stratum"] | None = key("its groups", None)


@dataclass(frozen=True)
class Analysis:
    """One way to answer the question; at most one of match, stratify and weight."""

    label: str | None = key("what readers call it; its name, if left out", None)
    new_users: NewUsers | None = key("how drug records of a CDM make episodes", None)
    eligibility: Entry | None = key("who may enter from a CDM", None)
    time_at_risk: RiskWindow | None = key("how long people of a CDM are followed", None)
    covariates: CdmCovariates | None = key("covariates from the records of a CDM", None)
    tidy: Tidy = key("which covariates a model may use", Tidy)
    propensity: PropensityModel | None = key(
        "the propensity score; none: no score", PropensityModel
    )
    trim: Trim | None = key("leave people out by their scores", None)
    match: Match | None = key("match people", None)
    stratify: Stratify | None = key("strata of the score", None)
    weight: Weight | None = key("weights by the score", None)
    balance: BalanceOptions = key("how alike the arms must be", BalanceOptions)
    model: OutcomeModel = key("the model of the outcome", OutcomeModel)
