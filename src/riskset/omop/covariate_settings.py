"""Settings of the covariates of a CDM."""

from collections.abc import Iterator
from dataclasses import dataclass

from riskset._errors import CohortError, InputError
from riskset._settings import Settings, bad_setting, setting, settings
from riskset.omop.analyses import (
    ANALYSES,
    CUSTOM,
    DEFAULT_ANALYSES,
    CovariateAnalysis,
    Window,
    analysis_numbers,
)
from riskset.omop.concepts import ConceptSet
from riskset.omop.groups import ConditionGroups, DrugGroups
from riskset.omop.people import AgeMethod

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


@settings
class CovariateSettings(Settings):
    """Covariates from the records before the index date.

    A record counts if it overlaps the window of its analysis, in days relative to the index date.
    Concept 0 is never a covariate. The attribute `analyses` contains the numbers of the analyses.
    If the CDM has no ``concept_ancestor``, roll-ups (209 to 216, 409 to 416) and scores are left
    out, with a note. `exclude_arms` also excludes the descendants of the drugs and the ingredients
    of the listed drugs. `age_method` applies to ages, age groups and scores.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.omop.CovariateSettings(["DemographicsAge", "ConditionEraLongTerm"]).analyses
    (2, 202)
    """

    analyses: tuple[int | str, ...] = setting(
        "numbers or names of `ANALYSES`; `default` stands for the default set", DEFAULT_ANALYSES
    )
    exclude_analyses: tuple[int | str, ...] = setting(
        "names or numbers of analyses to leave out", ()
    )
    long_days: int = setting("the first day of the long window", -365)
    medium_days: int = setting("the first day of the medium window", -180)
    short_days: int = setting("the first day of the short window", -30)
    end_day: int = setting(
        "the last day of the windows: 0 = the index date, -1 = the day before", 0
    )
    exclude: ConceptSet | None = setting("concepts that are not covariates", None, only_python=True)
    exclude_arms: bool = setting("leave out the drugs of the arms, too", True)
    within_observation: bool = setting("only records that reach into the observation period", False)
    age_method: AgeMethod = setting(
        "age as year of the index date minus year of birth, or in completed years",
        "year_difference",
    )
    condition_groups: ConditionGroups = setting(
        "ancestors of conditions that are covariates", ConditionGroups, only_python=True
    )
    drug_groups: DrugGroups = setting(
        "ancestors of drugs that are covariates", DrugGroups, only_python=True
    )
    custom: tuple[CustomCovariates, ...] = setting(
        "covariates by queries of your own", (), only_python=True
    )

    def __post_init__(self) -> None:
        for name in ("analyses", "exclude_analyses"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, int | str) else value)
        super().__post_init__()
        out = analysis_numbers("exclude_analyses", self.exclude_analyses)
        chosen = analysis_numbers("analyses", self.analyses)
        object.__setattr__(self, "exclude_analyses", out)
        object.__setattr__(self, "analyses", tuple(n for n in chosen if n not in out))

    def contradictions(self) -> Iterator[InputError]:
        """Windows are before the index date, and start before they end."""
        for name in ("long_days", "medium_days", "short_days", "end_day"):
            limits = [("index", 0)] + [("`end_day`", self.end_day)] * (name != "end_day")
            value = getattr(self, name)
            late = [what for what, day in limits if value > day]
            if late:
                yield bad_setting(
                    name,
                    f"`{name}` must not be after {late[0]}, but it is {value!r}.",
                    hint="covariates describe people before the treatment; days before index are "
                    "negative.",
                    value=value,
                )
        for setting_name in ("exclude_analyses", "analyses"):
            try:
                analysis_numbers(setting_name, getattr(self, setting_name))
            except InputError as error:
                yield error
        numbers = [custom.analysis_id for custom in self.custom]
        twice = [number for number in numbers if numbers.count(number) > 1]
        if twice:
            yield CohortError(
                "CovariateIdCollision",
                f"two custom covariates have the analysis {twice[0]}, so their ids would be the "
                "same.",
                hint=f"number them {CUSTOM.start} to {CUSTOM.stop - 1}, each once.",
                details={"analysis_id": twice[0]},
            )

    @property
    def chosen(self) -> tuple[CovariateAnalysis, ...]:
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
