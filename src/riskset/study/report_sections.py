"""The sections of a specification about what readers see, and what is shared with them."""

from typing import Literal

from riskset._settings import setting, settings
from riskset._time_units import TimeUnit
from riskset.cohort.characteristics import Statistic

__all__ = ["ReportOptions", "Sharing", "Table1Section", "TargetTrial"]


@settings
class Table1Section:
    """Lines of the table of baseline characteristics."""

    section: str = setting("the title of the section")
    covariates: tuple[str, ...] = setting(
        "names, keys or labels of covariates, or columns of categories, which have a line for each "
        "level; * stands for any characters"
    )
    statistic: Statistic = setting("how numbers are shown: mean (SD), or median [IQR]", "mean")


@settings
class Sharing:
    """Disclosure control of the results."""

    min_cell_count: int = setting("counts above 0 and below this number are hidden", 5, least=0)
    blind: bool = setting("withhold effects that fail diagnostics", True)


@settings
class ReportOptions:
    """What the report shows."""

    curves: Literal["risk", "survival"] = setting(
        "what curves show; survival only without competing events", "risk"
    )
    covariates: tuple[str, ...] = setting("names or keys of covariates whose balance is listed", ())
    overall: bool = setting(
        "show a column of both groups together in the table of baseline characteristics", False
    )
    time_unit: TimeUnit | None = setting(
        "the unit of all times in the report and its exports, and of `risk_times`; left out: the "
        "unit of the data, which is days for a CDM",
        None,
    )


@settings
class TargetTrial:
    """The randomised trial that the study emulates, in words; the report shows it."""

    eligibility: str | None = setting("who would be eligible", None)
    strategies: str | None = setting("the treatment strategies that would be compared", None)
    assignment: str | None = setting("how people would be assigned to them", None)
    time_zero: str | None = setting("when follow-up would start", None)
    follow_up: str | None = setting("how long people would be followed", None)
    outcome: str | None = setting("the outcome, and how it would be found", None)
    estimand: str | None = setting("the effect of interest, such as intention to treat", None)
    analysis: str | None = setting("how the data would be analysed", None)
