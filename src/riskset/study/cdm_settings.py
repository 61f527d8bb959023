"""Sections of a specification as the settings of `riskset.omop`, which check themselves."""

import dataclasses
from pathlib import Path

from riskset.omop.concepts import ConceptItem, ConceptSet
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.eligibility import Eligibility
from riskset.omop.events import CONDITIONS
from riskset.omop.risk import TimeAtRisk
from riskset.study.analysis_sections import Analysis
from riskset.study.cdm_sections import CdmCovariates, Entry, RiskWindow
from riskset.study.data_sections import CdmOutcome, Codes

__all__ = ["concept_set", "covariate_settings", "entry_rules", "event_tables", "risk_window"]


def entry_rules(analysis: Analysis) -> Eligibility:
    """Who may enter."""
    return Eligibility(**dataclasses.asdict(analysis.eligibility or Entry()))


def risk_window(analysis: Analysis, outcome: CdmOutcome | None = None) -> TimeAtRisk:
    """The time at risk of an analysis, or the one that an outcome has instead."""
    own = None if outcome is None else outcome.time_at_risk
    window = TimeAtRisk(**dataclasses.asdict(own or analysis.time_at_risk or RiskWindow()))
    if outcome is None or outcome.prior_outcome_lookback is None:
        return window
    return dataclasses.replace(window, prior_outcome_lookback=outcome.prior_outcome_lookback)


def covariate_settings(own: CdmCovariates) -> CovariateSettings:
    """Which covariates there are."""
    given = dataclasses.asdict(own)
    exclude = given.pop("exclude")
    return CovariateSettings(**given, exclude=ConceptSet(exclude) if exclude else None)


def concept_set(own: Codes, folder: Path, name: str = "") -> ConceptSet:
    """The concepts of an exposure or an outcome; files are relative to `folder`."""
    if own.concept_set is not None:
        return ConceptSet.from_json(folder / own.concept_set, name=name)
    items = [
        one if isinstance(one, int) else ConceptItem(**dataclasses.asdict(one))
        for one in own.concepts
    ]
    return ConceptSet(items, descendants=own.descendants, exclude=own.exclude, name=name)


def event_tables(own: CdmOutcome) -> tuple[str, ...]:
    """The tables in which the concepts of an outcome are looked for."""
    if own.tables is not None:
        return own.tables
    # As OHDSI's CohortGenerator makes the cohorts of negative controls.
    return CONDITIONS + ("observation",) * (own.kind == "negative control")
