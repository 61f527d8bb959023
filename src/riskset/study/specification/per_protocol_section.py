"""The section `per_protocol` of an analysis: the follow-up while people keep to a treatment.

Its settings of the models of deviation are those of `riskset.cohort.CensoringModel`.
"""

from collections.abc import Iterator
from typing import Literal

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, same_as, setting, settings
from riskset.cohort.protocol.censoring_settings import CensoringModel, faults_of_percentiles

__all__ = ["INTERVAL_DAYS", "ContrastName", "PerProtocol"]

ContrastName = Literal["intention-to-treat", "per-protocol"]

INTERVAL_DAYS = 30.0
"""Length of the intervals of the follow-up, unless the study has another one."""


@settings
class PerProtocol(Settings):
    """The follow-up until people deviate from their treatment, and the weights that it needs.

    People are censored when they deviate. Those who stay stand for those who left and had the same
    history, by the inverse probability of staying; see `riskset.cohort.censoring_weights`.
    """

    deviation: str | None = setting(
        "the column of the time at which a person deviates from the treatment, in the `time_unit` "
        "of the data, counted from the start as the times of outcomes; empty: never. Leave it out "
        "for a CDM: people deviate when their exposure ends or when they start the treatment "
        "of another arm",
        None,
    )
    every: float | None = setting(
        "the length of the intervals of the follow-up, in the `time_unit` of the data; left out: "
        f"{INTERVAL_DAYS:g} days",
        None,
        above=0,
    )
    covariates: tuple[str, ...] | None = setting(
        "names or keys of the covariates in the models of deviation; left out: all of a table, and "
        "those with a coefficient other than 0 in the propensity score of a CDM or of files of "
        "CohortMethod. The models of a table also have all covariates of `covariates_over_time`, "
        "which are not listed here",
        None,
    )
    over_time: bool = setting(
        "whether models of deviation use the values of covariates at the start of each interval, "
        "instead of those at baseline: those of `covariates_over_time` of a table, and the "
        "covariates of a CDM, which are extracted for each interval",
        True,
    )
    baseline: tuple[str, ...] = setting(
        "names or keys of covariates at baseline in the numerator of stabilised weights; the "
        "outcome model has them as well",
        (),
    )
    kind: Literal["logistic", "cox"] = same_as(CensoringModel, "kind")
    time_df: int = same_as(CensoringModel, "time_df")
    stabilise: bool = same_as(CensoringModel, "stabilise")
    truncate: tuple[float, float] | None = same_as(CensoringModel, "truncate")

    @property
    def model(self) -> CensoringModel:
        """The settings of the models of deviation."""
        names = ("kind", "time_df", "stabilise", "truncate")
        return CensoringModel(**{name: getattr(self, name) for name in names})

    def contradictions(self) -> Iterator[InputError]:
        """Percentiles rise; only stabilised weights have a numerator."""
        yield from faults_of_percentiles(self.truncate)
        if self.baseline and not self.stabilise:
            yield bad_setting(
                "baseline",
                "`baseline` has covariates of the numerator, but weights with `stabilise: false` "
                "have none.",
                "leave it out.",
            )
