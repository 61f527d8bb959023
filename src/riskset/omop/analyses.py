"""The kinds of covariates, with the numbers that OHDSI's FeatureExtraction gives them.

A covariate has the id ``concept * 1000 + analysis``, so that lists of covariates of other studies
keep their meaning.
"""

from dataclasses import dataclass
from typing import Literal

from riskset._errors import CohortError

__all__ = ["ANALYSES", "CUSTOM", "DEFAULT_ANALYSES", "Analysis", "Kind", "Window", "check_analyses"]

Kind = Literal["person", "presence", "group", "range", "value"]
Window = Literal["index", "long", "medium", "short", "overlap"]

CUSTOM = range(950, 1000)
"""Analyses of the user's own."""


@dataclass(frozen=True)
class Analysis:
    """A kind of covariate.

    Attributes
    ----------
    id : int
    domain : str
    kind : str
        What the covariate says: something about the person, that a concept was recorded, or one
        that descends from it, that a measurement was outside its range, or its value.
    window : str
        The days in which records count.
    """

    id: int
    domain: str
    kind: Kind
    window: Window

    @property
    def is_binary(self) -> bool:
        """Whether values are 0 and 1."""
        return self.kind != "value" and self.id != 2

    @property
    def missing_means_zero(self) -> bool:
        """Whether somebody without an entry is known to have the value 0."""
        return self.kind != "value"


_PERSON = ("sex", "age", "age group", "race", "ethnicity", "index year", "index month")
_WINDOWS: tuple[Window, ...] = ("long", "medium", "short")


def _windows(first: int, domain: str, kind: Kind, *, overlap: bool = False) -> list[Analysis]:
    own = [Analysis(first + k, domain, kind, window) for k, window in enumerate(_WINDOWS)]
    return [*own, Analysis(first + 3, domain, kind, "overlap")] if overlap else own


ANALYSES = {
    analysis.id: analysis
    for analysis in (
        *(Analysis(k, domain, "person", "index") for k, domain in enumerate(_PERSON, start=1)),
        *_windows(202, "condition", "presence"),
        *_windows(210, "condition", "group"),
        *_windows(402, "drug", "presence", overlap=True),
        *_windows(410, "drug", "group", overlap=True),
        *_windows(502, "procedure", "presence"),
        *_windows(702, "measurement", "presence"),
        *_windows(706, "measurement", "value"),
        *_windows(710, "measurement", "range"),
        *_windows(802, "observation", "presence"),
    )
}
"""Number -> analysis."""

DEFAULT_ANALYSES = tuple(
    a.id for a in ANALYSES.values() if a.window != "medium" and a.kind != "value" and a.id != 2
)
"""Everything but the age in years beside its groups, the medium window, and measured values."""


def check_analyses(numbers: tuple[int, ...]) -> None:
    """Refuse unknown numbers, and those given twice."""
    for number in numbers:
        if number not in ANALYSES or numbers.count(number) > 1:
            wrong = "is unknown" if number not in ANALYSES else "is named more than once"
            raise CohortError(
                "BadSetting",
                f"`analyses` must be numbers of riskset.omop.ANALYSES, each once, but {number!r} "
                f"{wrong}.",
                hint=f"there are {', '.join(map(str, ANALYSES))}.",
                details={"setting": "analyses", "value": number},
            )
