"""The keys of exposures: the targets and comparators of a study."""

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, same_as, setting, settings
from riskset._time_units import DAYS_IN, TimeUnit
from riskset.cohort.protocol.strategies import GraceStrategy
from riskset.omop.exposures import NewUserCohort
from riskset.study.specification.codes import Codes

__all__ = [
    "OHDSI_ID",
    "CdmExposure",
    "Exposure",
    "NewUsers",
    "TableExposure",
    "TableStrategy",
    "strategies_of",
]

OHDSI_ID = "the number of {} in OHDSI's files; left out: {}a number made from its name"


@settings
class Exposure:
    """Keys that targets and comparators of both kinds of data have."""

    label: str | None = setting("the name for readers; left out: the key", None)
    description: str = setting("a description of the exposure", "")
    ohdsi_id: int | None = setting(
        OHDSI_ID.format("the exposure", "its cohort, or "), None, least=1
    )


@settings
class TableExposure(Exposure):
    """A target or comparator in a plain table."""

    value: str = setting("the value in the column of the treatment", kw_only=True)


@settings
class TableStrategy(Exposure, Settings):
    """A treatment strategy with a grace period, in a plain table of people who can follow it.

    Everybody is in both arms of a comparison, as a clone in each, until they deviate from one of
    the strategies; see `riskset.cohort.clone`. Analyses need `estimand: per-protocol`.
    """

    treated_at: str = setting(
        "the column of the time at which people start the treatment, or do what the strategies are "
        "about, in the `time_unit` of the data, counted as the times of outcomes; empty: never",
        kw_only=True,
    )
    strategy: Literal["start", "do not start"] = setting(
        "start: people start within the grace period, and deviate at its end if they have not; do "
        "not start: people deviate if they start within it",
        kw_only=True,
    )
    grace: float | None = setting(
        "the end of the grace period, in the `time_unit` of the data; left out of `do not start`: "
        "people must never start",
        None,
        above=0,
    )
    window: float | None = setting(
        "the length of the last part of the grace period, in which those who start represent those "
        "who do not; left out: the whole period. Those who start earlier represent themselves",
        None,
        above=0,
    )

    @property
    def starts(self) -> bool:
        """Whether the strategy is to start."""
        return self.strategy == "start"

    def in_days(self, unit: TimeUnit) -> GraceStrategy:
        """The strategy on a clock of days."""
        grace = np.inf if self.grace is None else self.grace
        opens = 0.0 if self.window is None else GraceStrategy.opening(grace, self.window)
        return GraceStrategy(self.starts, grace * DAYS_IN[unit], opens * DAYS_IN[unit])

    def contradictions(self) -> Iterator[InputError]:
        """To start needs a grace period, and a window within it."""
        if self.starts and self.grace is None:
            hint = "for example grace: 90."
            yield bad_setting(
                "grace", "the strategy to start needs the end of the grace period.", hint
            )
        if self.window is None:
            return
        if not self.starts:
            message = "`window` belongs to the strategy to start."
            yield bad_setting("window", message, "leave it out.")
        elif self.grace is not None and self.window > self.grace:
            message = f"`window` is {self.window:g}, but the grace period ends at {self.grace:g}."
            yield bad_setting("window", message, "it is the last part of the grace period.")


@settings
class CdmExposure(Exposure, Codes):
    """A target or comparator in a CDM: people who start one of some drugs."""


def strategies_of(
    exposures: Mapping[str, Exposure], target: str, comparator: str
) -> tuple[TableStrategy, TableStrategy] | None:
    """The strategies of two exposures, if these are strategies."""
    one, other = exposures[target], exposures[comparator]
    if isinstance(one, TableStrategy) and isinstance(other, TableStrategy):
        return one, other
    return None


@settings
class NewUsers(Settings):
    """How drug records are joined to episodes; see `riskset.omop.NewUserCohort`."""

    gap_days: int = same_as(NewUserCohort, "gap_days")
    end_extension_days: int = same_as(NewUserCohort, "end_extension_days")
    source: Literal["drug_exposure", "drug_era"] = same_as(NewUserCohort, "source")
