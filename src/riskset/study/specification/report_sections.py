"""The sections of a specification about what readers see, and what is shared with them."""

from collections.abc import Iterator
from typing import Literal

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, setting, settings
from riskset._time_units import TimeUnit
from riskset.cohort.covariates.characteristics import Statistic

__all__ = [
    "ReportOptions",
    "Sharing",
    "Table1Section",
    "TargetTrial",
    "UnmeasuredConfounding",
]


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
    year_lines: int = setting(
        "the largest number of lines for the calendar years of a CDM in the table of baseline "
        "characteristics; more years are joined to ranges of 2, 5, 10, ... years",
        10,
        least=1,
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


@settings
class UnmeasuredConfounding(Settings):
    """Unmeasured confounders whose bias is removed from the main estimates.

    Every combination is reported, in both directions.
    """

    prevalences: tuple[float, ...] = setting(
        "prevalences of a binary confounder; every pair of them is used for the two groups",
        (0.1, 0.25, 0.5),
        least=0,
        most=1,
    )
    differences: tuple[float, ...] = setting(
        "differences of the means of a normal confounder, in standard deviations",
        (0.1, 0.25, 0.5),
        above=0,
    )
    effects: tuple[float, ...] = setting(
        "risk ratios of the outcome with a binary confounder, or per standard deviation of a "
        "normal one",
        (1.5, 2.0, 4.0),
        above=1,
    )
    bias_level: float = setting(
        "probability of the range of systematic error, for the bounds from negative controls",
        0.95,
        above=0,
        below=1,
    )

    def contradictions(self) -> Iterator[InputError]:
        """A binary confounder has two prevalences, and each value is reported once."""
        for name in ("prevalences", "differences", "effects"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                yield bad_setting(
                    name, f"`{name}` has the same number twice.", "leave one of them out."
                )
        if len(self.prevalences) == 1:
            yield bad_setting(
                "prevalences",
                "`prevalences` has one number, but a binary confounder needs two.",
                "add the prevalence in the other group, or write [] for no binary confounder.",
            )
