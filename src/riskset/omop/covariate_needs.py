"""Which records covariates need: the tables of their analyses, and the days of their windows."""

from collections.abc import Iterator

from riskset.omop.analyses import CovariateAnalysis
from riskset.omop.cdm_tables import ALL_DAYS, DayRange, Needs
from riskset.omop.covariate_settings import CovariateSettings

__all__ = ["covariate_needs", "joint"]

VISITS = ("visit_detail", "visit_occurrence")


def covariate_needs(settings: CovariateSettings) -> dict[str, DayRange]:
    """Table -> the days of its records that some analysis of these settings needs."""
    return joint(*({table: days} for table, days in _needed(settings)))


def joint(*needs: Needs) -> dict[str, DayRange]:
    """The tables of several needs, each with all days of any of them."""
    together: dict[str, DayRange] = {}
    for one in needs:
        for table, days in one.items():
            together[table] = together[table] | days if table in together else days
    return together


def _needed(settings: CovariateSettings) -> Iterator[tuple[str, DayRange]]:
    for analysis in settings.chosen:
        yield from _of_analysis(analysis, settings)


def _of_analysis(
    analysis: CovariateAnalysis, settings: CovariateSettings
) -> Iterator[tuple[str, DayRange]]:
    if analysis.kind == "person":
        yield "person", ALL_DAYS
        if analysis.domain == "care site":
            yield from ((table, DayRange(0, 0)) for table in VISITS)
        return
    days = DayRange(*settings.window(analysis.window))
    yield analysis.table, days
    if analysis.inpatient:
        yield "visit_occurrence", days
