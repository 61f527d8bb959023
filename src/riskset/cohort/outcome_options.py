"""What an outcome model may be asked for, and what goes with which adjustment."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Literal, get_args

import numpy as np

from riskset._errors import CohortError, InputError, counted
from riskset._types import Index, is_count
from riskset.cohort.adjustment import Adjustment, People
from riskset.cohort.estimate import Model, Reading
from riskset.curves.followup import check_level
from riskset.estimators.bootstrap import check_interval
from riskset.model.penalty import Penalty

__all__ = [
    "CensoringGroup",
    "Options",
    "OutcomeInterval",
    "ProfileGrid",
    "Readjust",
    "check_options",
    "check_resampling",
    "readings",
]

OutcomeInterval = Literal["auto", "profile", "robust", "wald", "bootstrap"]
CensoringGroup = Literal["arm", "stratum"]
ProfileGrid = Literal["adaptive", "grid"]
Readjust = Callable[[Index], People]
"""Rows of a resample of the population -> the adjustment of these rows."""


@dataclass(frozen=True)
class Options:
    """What `fit_outcome` was asked for, which explains the words; the same for every reading."""

    model: Model
    interval: OutcomeInterval
    level: float
    ties: str
    penalty: Penalty | None
    cross_validate: bool
    folds: int
    repeats: int
    censoring_weights: str
    censoring_group: CensoringGroup | None
    profile: ProfileGrid | None
    replicates: int
    readjust: Readjust | None
    seed: int
    tol: float
    time_intervals: int
    checkpoint: str | PathLike[str] | None
    tidy: bool

    @property
    def is_penalized(self) -> bool:
        """Whether covariates have a penalty."""
        return self.cross_validate or self.penalty is not None


def readings(adjustment: Adjustment, reading: str) -> list[Reading]:
    """The readings to fit: of "auto" with sets both."""
    known = ("auto", *get_args(Reading))
    if reading not in known:
        raise InputError.wrong_option("reading", reading, known)
    if reading == "stratified" and adjustment.set_id is None:
        raise CohortError(
            "BadSetting",
            f"a stratified reading needs sets, but the adjustment is by {adjustment.kind}.",
            hint="use reading='marginal', or match or stratify.",
        )
    if reading == "auto":
        return ["marginal"] if adjustment.set_id is None else ["stratified", "marginal"]
    return [reading]  # type: ignore[list-item]


def check_options(options: Options, adjustment: Adjustment) -> None:
    """Refuse values that an option does not have, and weights and sets that are none."""
    _check_adjustment(adjustment)
    choices = {
        "model": (options.model, get_args(Model)),
        "interval": (options.interval, get_args(OutcomeInterval)),
        "censoring_group": (options.censoring_group, (*get_args(CensoringGroup), None)),
        "profile": (options.profile, (*get_args(ProfileGrid), None)),
    }
    for name, (value, known) in choices.items():
        if value not in known:
            raise InputError.wrong_option(name, value, [str(k) for k in known])
    check_resampling(options.level, options.replicates)
    if options.seed != 0 and not is_count(options.seed):
        raise CohortError(
            "BadSetting",
            f"`seed` must be a whole number of at least 0, but it is {options.seed!r}.",
        )
    if options.interval == "bootstrap":
        check_interval(options.replicates, options.level, "percentile")
    for name, count, least in (("folds", options.folds, 2), ("repeats", options.repeats, 1)):
        if not (is_count(count) and count >= least):
            raise CohortError(
                "BadSetting",
                f"`{name}` must be a whole number of at least {least}, but it is {count!r}.",
                hint="10 is usual.",
            )
    if not (options.time_intervals == 0 or is_count(options.time_intervals)):
        raise CohortError(
            "BadSetting",
            "`time_intervals` must be a whole number of at least 0, but it is "
            f"{options.time_intervals!r}.",
            hint="6 are usual; 0 for none.",
        )
    _check_censoring(options, adjustment)
    if options.readjust is not None and options.interval != "bootstrap":
        raise CohortError(
            "BadSetting",
            "`readjust` is for resamples, but the interval is not to be found by them.",
            hint="add interval='bootstrap', or leave `readjust` out.",
        )


def _check_censoring(options: Options, adjustment: Adjustment) -> None:
    for name, is_given in (
        ("censoring_group", options.censoring_group is not None),
        ("censoring_weights", options.censoring_weights != "none"),
    ):
        if is_given and options.model != "finegray":
            raise CohortError(
                "BadSetting",
                f"`{name}` is of Fine and Gray's model, but the model is {options.model!r}.",
                hint="leave it out, or use model='finegray'.",
            )
    if options.censoring_group == "stratum" and adjustment.set_id is None:
        raise CohortError(
            "BadSetting",
            f"censoring by stratum needs strata, but the adjustment is by {adjustment.kind}.",
            hint="use censoring_group='arm', or leave it out.",
        )


def check_resampling(level: float, replicates: int) -> None:
    """Refuse a coverage that is none, and too few resamples for an interval."""
    check_level(level)
    if not (is_count(replicates) and replicates >= 2):
        raise CohortError(
            "BadSetting",
            f"`replicates` must be a whole number of at least 2, but it is {replicates!r}.",
            hint="200 are usual, 1,000 for publication.",
        )


def _check_adjustment(adjustment: Adjustment) -> None:
    weight = adjustment.weight
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise CohortError(
            "BadAdjustment",
            "weights must be finite and not negative, but those of the adjustment are not.",
            hint="make it with trim, match, stratify or weight.",
        )
    if adjustment.kind != "matching" or adjustment.set_id is None:
        return
    alone = 0 if adjustment.estimand == "atu" else 1
    own = adjustment.kept & (adjustment.population.treatment == alone)
    sets, times = np.unique(adjustment.set_id[own], return_counts=True)
    several = sets[times > 1]
    if several.size:
        word = "target" if alone else "comparator"
        have = "has" if several.size == 1 else "have"
        raise CohortError(
            "BadAdjustment",
            f"{counted(several.size, 'matched set')} {have} more than one {word} (first: set "
            f"{several[0]}).",
            hint="make sets with riskset.cohort.match, or call the adjustment a stratification.",
            details={"sets": several[:3].tolist(), "count": int(several.size)},
        )
