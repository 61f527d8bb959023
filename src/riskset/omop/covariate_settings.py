"""Which covariates to extract from a CDM."""

from dataclasses import dataclass, field

from riskset._errors import CohortError, InputError
from riskset.omop.analyses import (
    ANALYSES,
    CUSTOM,
    DEFAULT_ANALYSES,
    Analysis,
    Window,
    analysis_numbers,
)
from riskset.omop.concepts import ConceptSet
from riskset.omop.exposures import check_days
from riskset.omop.groups import ConditionGroups, DrugGroups
from riskset.omop.people import AGE_METHODS, AgeMethod

__all__ = ["CovariateSettings", "CustomCovariates"]


@dataclass(frozen=True)
class CustomCovariates:
    """Covariates from a user-defined query.

    Parameters
    ----------
    analysis_id : int
        Number from 950 to 999. The id of a covariate is ``concept_id * 1000 + analysis_id``.
    query : str
        A SELECT of ``row_id, concept_id, value`` with at most one row per person and concept.
        ``{cohort}`` is a table ``row_id, person_id, index_date``, and ``{name}`` any table of the
        CDM.
    name : str
        Name of the covariates, followed by the name of the concept if there is one.
    is_binary : bool

    Examples
    --------
    >>> import riskset as rs
    >>> visits = rs.omop.CustomCovariates(
    ...     950,
    ...     '''SELECT c.row_id, v.visit_concept_id AS concept_id, count(*) AS value FROM {cohort} c
    ...     JOIN {visit_occurrence} v ON v.person_id = c.person_id
    ...     AND v.visit_start_date < c.index_date GROUP BY ALL''',
    ...     name="number of visits",
    ...     is_binary=False,
    ... )
    """

    analysis_id: int
    query: str
    name: str = "custom"
    is_binary: bool = True

    def __post_init__(self) -> None:
        if self.analysis_id not in CUSTOM:
            raise CohortError(
                "BadSetting",
                f"`analysis_id` of custom covariates must be {CUSTOM.start} to {CUSTOM.stop - 1}, "
                f"but it is {self.analysis_id!r}.",
                hint="the other numbers are those of FeatureExtraction.",
            )


@dataclass(frozen=True)
class CovariateSettings:
    """Which covariates `Covariates.extract` makes.

    A record counts when its days overlap a window of days relative to the index date. Concept 0 is
    never a covariate.

    Parameters
    ----------
    analyses : sequence of int or str
        Numbers or names of `ANALYSES`; "default" stands for the default set. The attribute holds
        the numbers of the analyses that are made. Where the CDM has no ``concept_ancestor``,
        roll-ups (209 to 216, 409 to 416) and scores are left out, with a note.
    exclude_analyses : sequence of int or str
        Numbers or names of analyses that are left out of `analyses`.
    long_days, medium_days, short_days : int
        First days of the windows.
    end_day : int
        The last day of all windows: 0 is the index date, -1 the day before.
    exclude : ConceptSet, optional
        These concepts are no covariates.
    exclude_arms : bool
        Nor are the drugs of the arms, their descendants, and the ingredients of those listed.
    within_observation : bool
        Only records that reach into the observation period.
    age_method : {"year_difference", "completed_years"}
        Year of the index date minus year of birth, as in FeatureExtraction, or completed years. It
        holds for ages, age groups and scores.
    condition_groups : ConditionGroups
    drug_groups : DrugGroups
    custom : sequence of CustomCovariates
    """

    analyses: tuple[int | str, ...] = DEFAULT_ANALYSES
    exclude_analyses: tuple[int | str, ...] = ()
    long_days: int = -365
    medium_days: int = -180
    short_days: int = -30
    end_day: int = 0
    exclude: ConceptSet | None = None
    exclude_arms: bool = True
    within_observation: bool = False
    age_method: AgeMethod = "year_difference"
    condition_groups: ConditionGroups = field(default_factory=ConditionGroups)
    drug_groups: DrugGroups = field(default_factory=DrugGroups)
    custom: tuple[CustomCovariates, ...] = ()

    def __post_init__(self) -> None:
        out = analysis_numbers("exclude_analyses", self.exclude_analyses)
        chosen = analysis_numbers("analyses", self.analyses)
        object.__setattr__(self, "exclude_analyses", out)
        object.__setattr__(self, "analyses", tuple(n for n in chosen if n not in out))
        object.__setattr__(self, "custom", tuple(self.custom))
        if self.age_method not in AGE_METHODS:
            raise InputError.wrong_option("age_method", self.age_method, AGE_METHODS)
        for name in ("long_days", "medium_days", "short_days", "end_day"):
            check_days(name, getattr(self, name))
            self._check_before(name, "index", 0)
        for name in ("long_days", "medium_days", "short_days"):
            self._check_before(name, "`end_day`", self.end_day)
        numbers = [custom.analysis_id for custom in self.custom]
        twice = [number for number in numbers if numbers.count(number) > 1]
        if twice:
            raise CohortError(
                "CovariateIdCollision",
                f"two custom covariates have the analysis {twice[0]}, so their ids would be the "
                "same.",
                hint=f"number them {CUSTOM.start} to {CUSTOM.stop - 1}, each once.",
                details={"analysis_id": twice[0]},
            )

    def _check_before(self, name: str, what: str, day: int) -> None:
        value = getattr(self, name)
        if value > day:
            raise CohortError(
                "BadSetting",
                f"`{name}` must not be after {what}, but it is {value!r}.",
                hint="covariates describe people before the treatment; days before index are "
                "negative.",
                details={"setting": name, "value": value},
            )

    @property
    def chosen(self) -> tuple[Analysis, ...]:
        """The analyses that are made."""
        return tuple(ANALYSES[number] for number in self.analyses if isinstance(number, int))

    def window(self, name: Window) -> tuple[int | None, int | None]:
        """First and last day of a window; None where there is no limit."""
        first = {
            "ever": None,
            "long": self.long_days,
            "medium": self.medium_days,
            "short": self.short_days,
            "overlap": self.end_day,
        }
        return (None, None) if name == "index" else (first[name], self.end_day)
