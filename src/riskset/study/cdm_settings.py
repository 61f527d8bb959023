"""Sections of a specification as the settings of `riskset.omop`, which check themselves."""

import dataclasses

from riskset.omop.concepts import ConceptSet
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.eligibility import Eligibility
from riskset.omop.risk import TimeAtRisk
from riskset.study.analysis_sections import Analysis
from riskset.study.cdm_sections import CdmCovariates, Entry, RiskWindow
from riskset.study.data_sections import Codes

__all__ = ["concept_set", "covariate_settings", "entry_rules", "risk_window"]


def entry_rules(analysis: Analysis) -> Eligibility:
    """Who may enter."""
    return Eligibility(**dataclasses.asdict(analysis.eligibility or Entry()))


def risk_window(analysis: Analysis) -> TimeAtRisk:
    """The time at risk of an analysis."""
    return TimeAtRisk(**dataclasses.asdict(analysis.time_at_risk or RiskWindow()))


def covariate_settings(own: CdmCovariates) -> CovariateSettings:
    """Which covariates there are."""
    given = dataclasses.asdict(own)
    exclude = given.pop("exclude")
    return CovariateSettings(**given, exclude=ConceptSet(exclude) if exclude else None)


def concept_set(own: Codes, name: str = "") -> ConceptSet:
    """The concepts of an exposure or an outcome."""
    return ConceptSet(own.concepts, descendants=own.descendants, exclude=own.exclude, name=name)
