"""The sections of an analysis that say who enters from a CDM, and how long they are followed."""

import datetime
from dataclasses import dataclass
from typing import Literal

from riskset.omop.analyses import DEFAULT
from riskset.study.document import key

__all__ = ["CdmCovariates", "Entry", "NewUsers", "RiskWindow"]


@dataclass(frozen=True)
class NewUsers:
    """How drug records make episodes; see `riskset.omop.NewUserCohort`."""

    gap_days: int = key("records of one episode are at most so far apart", 30, least=0)
    end_extension_days: int = key("added to the end of an episode", 0, least=0)
    source: Literal["drug_exposure", "drug_era"] = key("table of the records", "drug_exposure")


@dataclass(frozen=True)
class Entry:
    """Who may enter; see `riskset.omop.Eligibility`."""

    remove_duplicates: Literal[
        "keep first, truncate to second", "keep first", "remove all", "keep all"
    ] = key("what to do with people in both arms", "keep first, truncate to second")
    first_exposure_only: bool = key("only the first episode of an arm", True)
    washout_days: int = key("days observed before the index date", 365, least=0)
    restrict_to_common_period: bool = key("only while both arms were in use", True)
    min_age: int | None = key("completed years at the index date", None, least=0)
    max_age: int | None = key("completed years at the index date", None, least=0)
    gender_concept_ids: tuple[int, ...] | None = key("8507 = male, 8532 = female", None)
    nesting_cohort: int | None = key("cohort within whose records people start", None)
    study_start: datetime.date | None = key("first index date", None)
    study_end: datetime.date | None = key("last index date, and the end of follow-up", None)
    max_cohort_size: int | None = key("of each arm; a larger one is thinned evenly", None, least=1)
    join_observation_periods: bool = key(
        "join observation periods that follow each other without a gap", False
    )


@dataclass(frozen=True)
class RiskWindow:
    """The time at risk, in days after the index date; see `riskset.omop.TimeAtRisk`."""

    risk_start: int = key("first day at risk, counted from its anchor", 1)
    start_anchor: Literal["cohort start", "cohort end"] = key(
        "what the first day is counted from", "cohort start"
    )
    risk_end: int | None = key(
        "last day at risk, counted from its anchor; none: end of observation", 0
    )
    end_anchor: Literal["cohort end", "cohort start", "observation end"] = key(
        "what the last day is counted from; cohort end follows people while on treatment",
        "cohort end",
    )
    max_days: int | None = key("most days at risk", None, least=1)
    min_days_at_risk: int = key(
        "fewest planned days at risk; a death does not shorten the plan", 1, least=1
    )
    remove_prior_outcome: bool = key("leave out people who had the outcome before", True)
    prior_outcome_lookback: int | None = key(
        "leave out only people who had the outcome less than this number of days before the index "
        "date; none: at any time before",
        None,
        least=0,
    )
    censor_at_new_risk_window: bool = key(
        "end where the next time at risk of the person begins", False
    )


@dataclass(frozen=True)
class CdmCovariates:
    """Covariates from the records before; see `riskset.omop.CovariateSettings`."""

    analyses: tuple[int | str, ...] = key(
        "names or numbers of FeatureExtraction's analyses; `default` is its default set", (DEFAULT,)
    )
    exclude_analyses: tuple[int | str, ...] = key("names or numbers of analyses to leave out", ())
    long_days: int = key("first day of the long window", -365)
    medium_days: int = key("first day of the medium window", -180)
    short_days: int = key("first day of the short window", -30)
    end_day: int = key("last day of the windows: 0 = the index date, -1 = the day before", 0)
    exclude: tuple[int, ...] = key("concepts to leave out, with their descendants", ())
    exclude_arms: bool = key("leave out the drugs of the arms, too", True)
    within_observation: bool = key("only records within the observation period", False)
    age_method: Literal["year_difference", "completed_years"] = key(
        "age as year of the index date minus year of birth, or in completed years",
        "year_difference",
    )
