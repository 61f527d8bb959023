"""What an outcome model may be asked for, and what goes with which adjustment."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from riskset._errors import CohortError, InputError
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.estimate import Model, Reading
from riskset.curves.followup import check_level
from riskset.model.penalty import Penalty

__all__ = ["CensoringGroup", "Options", "OutcomeInterval", "check_options", "readings"]

OutcomeInterval = Literal["auto", "profile", "robust", "wald", "bootstrap"]
CensoringGroup = Literal["arm", "stratum"]


@dataclass(frozen=True)
class Options:
    """What `fit_outcome` was asked for, which explains the words; the same for every reading."""

    model: Model
    interval: OutcomeInterval
    level: float
    ties: str
    penalty: Penalty | None
    censoring_weights: str
    censoring_group: CensoringGroup | None
    replicates: int
    seed: int
    tol: float


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
    """Refuse values that an option does not have, and weights that are none."""
    weight = adjustment.weight
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise CohortError(
            "BadAdjustment",
            "weights must be finite and not negative, but those of the adjustment are not.",
            hint="make it with trim, match, stratify or weight.",
        )
    choices = {
        "model": (options.model, get_args(Model)),
        "interval": (options.interval, get_args(OutcomeInterval)),
        "censoring_group": (options.censoring_group, (*get_args(CensoringGroup), None)),
    }
    for name, (value, known) in choices.items():
        if value not in known:
            raise InputError.wrong_option(name, value, [str(k) for k in known])
    check_level(options.level)
    if options.censoring_group == "stratum" and adjustment.set_id is None:
        raise CohortError(
            "BadSetting",
            f"censoring by stratum needs strata, but the adjustment is by {adjustment.kind}.",
            hint="use censoring_group='arm', or leave it out.",
        )
