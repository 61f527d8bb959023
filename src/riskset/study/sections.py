"""The sections of a specification; every field is a key, with the words of its documentation.

Sections that are settings of `riskset.cohort` or `riskset.omop` are those very classes, or classes
that add what only a file can say, such as names in place of arrays.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from riskset._errors import InputError
from riskset._settings import INVALID, Settings, as_dict, bad_setting, same_as, setting, settings
from riskset._time_units import DAYS_A_YEAR, DAYS_IN, TimeUnit
from riskset.cohort.effect_scale import Model
from riskset.cohort.settings import (
    BalanceOptions,
    Coarsen,
    DiagnosticLimits,
    Match,
    OutcomeModel,
    PropensityModel,
    Stratify,
    Tidy,
    Trim,
    Weight,
)
from riskset.model.penalty import L1, L2, Penalty
from riskset.ohdsi.negative_controls import CONTROL_TABLES
from riskset.omop.analyses import DEFAULT
from riskset.omop.concepts import ConceptSet
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.eligibility import Eligibility
from riskset.omop.events import CONDITIONS
from riskset.omop.exposures import NewUserCohort
from riskset.omop.risk import TimeAtRisk
from riskset.study.codes import Codes, ControlList
from riskset.study.data_sections import CdmData, CohortMethodFiles, TableData
from riskset.study.report_sections import ReportOptions, Sharing, Table1Section, TargetTrial

__all__ = [
    "NUMBERS",
    "YEAR",
    "Analysis",
    "CdmExposure",
    "CdmOutcome",
    "CoarsenSection",
    "Comparison",
    "CovariateSection",
    "Exposure",
    "MatchSection",
    "NewUsers",
    "OutcomeDefinition",
    "OutcomeModelSection",
    "PropensitySection",
    "Specification",
    "StratifySection",
    "TableExposure",
    "TableOutcome",
    "TrimSection",
    "Variable",
]


YEAR = "year"
"""The year of the index date: a column that a table of people has by its dates."""

NUMBERS = ("age", YEAR)
"""Columns of a CDM that borders can part."""

OHDSI_ID = "the number of {} in OHDSI's files; left out: {}a number made from its name"


@settings
class Exposure:
    """Keys that targets and comparators of both kinds of data have."""

    label: str | None = setting("the name for readers; left out: the key", None)
    description: str = setting("a description of the exposure", "")
    ohdsi_id: int | None = setting(
        OHDSI_ID.format("the exposure", "its cohort, or "), None, least=1
    )


@settings
class TableExposure(Exposure):
    """A target or comparator in a plain table."""

    value: str = setting("the value in the column of the treatment", kw_only=True)


@settings
class CdmExposure(Exposure, Codes):
    """A target or comparator in a CDM: people who start one of some drugs."""


@settings
class OutcomeDefinition(Settings):
    """Keys that outcomes and controls of both kinds of data have."""

    label: str | None = setting("the name for readers; left out: the key", None)
    description: str = setting("a description of the outcome", "")
    kind: Literal["outcome", "negative control", "positive control"] = setting(
        "whether it is a control", "outcome"
    )
    true_hr: float | None = setting("the hazard ratio of a positive control", None, above=0)
    ohdsi_id: int | None = setting(OHDSI_ID.format("the outcome", "its cohort, or "), None, least=1)

    def contradictions(self) -> Iterator[InputError]:
        """A positive control, and no other outcome, has a known hazard ratio."""
        if (self.true_hr is not None) != (self.kind == "positive control"):
            yield InputError(
                "`true_hr` is required for a positive control, and for no other outcome.",
                hint="a negative control always has 1.",
            )


@settings
class TableOutcome(OutcomeDefinition):
    """An outcome or a control in a plain table."""

    time: str = setting(
        "the column of the time at risk, in the `time_unit` of the data; of days, the first and "
        "the last one are counted",
        kw_only=True,
    )
    event: str = setting(
        "the column of what ended them: 0 = censored, 1 = outcome, 2 = competing event; or text or "
        "other codes, see `cause` and `censored`",
        kw_only=True,
    )
    cause: int | str | None = setting(
        "the code or label of the outcome in this column; all others but that of censoring compete "
        "with it",
        None,
    )
    censored: str | None = setting("the label of censoring, if the column holds text", None)
    prior: str | None = setting(
        "the column that is 1 for people who had it before; they are left out", None
    )
    end_reason: str | None = setting("the column that says why follow-up ended", None)


@settings
class CdmOutcome(OutcomeDefinition, Codes):
    """An outcome or a control in a CDM: the first diagnosis of some conditions."""

    inpatient: bool = setting("whether records must start within an inpatient visit", False)
    tables: tuple[str, ...] | None = setting(
        "tables to search for the concepts; left out: condition_occurrence, and for negative "
        "controls observation, too",
        None,
    )
    first: bool = setting(
        "whether only the first record of a person counts, observed or not", False
    )
    death: bool = setting("death from any cause, instead of concepts", False)
    time_at_risk: TimeAtRisk | None = setting(
        "the time at risk of this outcome, instead of that of the analyses", None
    )
    prior_outcome_lookback: int | None = setting(
        "the prior_outcome_lookback of this outcome, instead of that of the time at risk",
        None,
        least=0,
    )

    @property
    def event_tables(self) -> tuple[str, ...]:
        """The tables in which the concepts are looked for."""
        if self.tables is not None:
            return self.tables
        # As OHDSI's CohortGenerator makes the cohorts of negative controls.
        return CONTROL_TABLES if self.kind == "negative control" else CONDITIONS


@settings
class NewUsers(Settings):
    """How drug records are joined to episodes; see `riskset.omop.NewUserCohort`."""

    gap_days: int = same_as(NewUserCohort, "gap_days")
    end_extension_days: int = same_as(NewUserCohort, "end_extension_days")
    source: Literal["drug_exposure", "drug_era"] = same_as(NewUserCohort, "source")


@settings
class CovariateSection(CovariateSettings):
    """Covariates from the records before the index date; see `riskset.omop.CovariateSettings`."""

    analyses: tuple[int | str, ...] = setting(
        "names or numbers of FeatureExtraction's analyses; `default` is its default set", (DEFAULT,)
    )
    exclude: tuple[int, ...] = setting(  # type: ignore[assignment]
        "concepts to leave out, with their descendants", ()
    )

    def __post_init__(self) -> None:
        Settings.__post_init__(self)  # keeps the names of analyses

    @property
    def extraction(self) -> CovariateSettings:
        """The settings of the extraction."""
        given = self.values(CovariateSettings)
        return CovariateSettings(
            **given | {"exclude": ConceptSet(self.exclude) if self.exclude else None}
        )


@settings
class PropensitySection(PropensityModel):
    """The logistic regression of the treatment on the covariates."""

    penalty: Literal["l1", "l2", "none"] = setting(  # type: ignore[assignment]
        "the penalty of the coefficients", "l1"
    )
    strength: float | None = setting(
        "the strength of the penalty on the total log likelihood",
        None,
        above=0,
        after="cross_validate",
    )
    variance: float | None = setting(
        "the variance of the prior, instead of a strength", None, above=0, after="strength"
    )
    exclude: tuple[str, ...] = setting("names or keys of covariates to leave out", ())

    def contradictions(self) -> Iterator[InputError]:
        """A penalty is chosen by cross-validation, or given in one way."""
        given = [name for name in ("strength", "variance") if getattr(self, name) is not None]
        if len(given) > 1:
            yield bad_setting(
                given[1], "`strength` and `variance` were both given.", "keep one of them."
            )
        elif self.penalty == "none" and (given or self.cross_validate):
            yield bad_setting(
                given[0] if given else "cross_validate",
                "a model without a penalty has no strength to choose or to give.",
                "leave cross_validate, strength and variance out.",
            )
        elif self.penalty != "none" and bool(given) == self.cross_validate:
            yield bad_setting(
                given[0] if given else "cross_validate",
                "a penalty is either chosen by cross-validation or has a strength or variance.",
                "leave cross_validate out: a penalty with a strength or a variance is fixed, and "
                "the strength of any other is chosen.",
            )

    @property
    def kind(self) -> Penalty | None:
        """The penalty, or the kind of the one that is to be chosen."""
        if self.penalty == "none":
            return None
        kind = L1 if self.penalty == "l1" else L2
        return kind(self.strength) if self.variance is None else kind.from_variance(self.variance)

    def model(self, seed: int) -> PropensityModel:
        """The settings of the fit."""
        own = self.values(PropensityModel)
        return PropensityModel(**own | {"penalty": self.kind, "seed": seed})


@settings
class TrimSection(Trim):
    """Trimming of people by the propensity score; see `riskset.cohort.trim`."""

    refit: bool = setting("fit the scores again to the remaining people", False)

    def contradictions(self) -> Iterator[InputError]:
        """At least one rule is needed."""
        yield from super().contradictions()
        if all(value in (None, False) for value in self.values(Trim).values()):
            yield InputError(
                "no trimming rule is given.",
                hint="for example symmetric: 0.05; `trim: none` switches off a default.",
            )


@settings
class MatchSection(Match):
    """Sets of targets and comparators who are alike; see `riskset.cohort.match`."""

    within: tuple[str, ...] = setting(
        "variables or columns that matched people share", (), after="scale"
    )


@settings
class CoarsenSection(Coarsen):
    """Strata of people who share coarsened covariates; see `riskset.cohort.coarsen`."""

    within: tuple[str, ...] = setting(
        "variables or columns that people of a stratum share", (), after="covariates"
    )

    def contradictions(self) -> Iterator[InputError]:
        """People are matched on something."""
        yield from super().contradictions()
        if not self.covariates and not self.within:
            yield InputError(
                "there is nothing to match on.", hint="name `covariates`, or variables in `within`."
            )


@settings
class StratifySection(Stratify):
    """Strata of the propensity score; see `riskset.cohort.stratify`."""

    within: tuple[str, ...] = setting("variables or columns that people of a stratum share", ())


@settings
class OutcomeModelSection(OutcomeModel):
    """The outcome model; see `riskset.cohort.fit_outcome`."""

    also: tuple[Model, ...] = setting("further models, each with its estimate", (), after="model")
    rmst: tuple[float, ...] = setting(
        "times up to which restricted mean survival times are reported, in the `time_unit` of the "
        "report, as `risk_times` are",
        (),
        above=0,
        after="replicates",
    )
    covariates: Literal["none", "all"] = setting(
        "whether the model adjusts for the tidy covariates", "none", after="rmst"
    )
    strength: float | None = setting(
        "the strength of the L1 penalty on these covariates; left out: by cross-validation",
        None,
        above=0,
        after="covariates",
    )

    @property
    def models(self) -> tuple[str, ...]:
        """All models that are fitted."""
        return (self.model, *self.also)

    def contradictions(self) -> Iterator[InputError]:
        """A penalty needs covariates, and leaves only some intervals."""
        yield from super().contradictions()
        if self.strength is not None and self.covariates == "none":
            yield bad_setting(
                "strength",
                "`strength` belongs to a penalty on covariates, but the model has none.",
                "add covariates: all.",
            )
        if self.covariates == "all" and self.interval in ("wald", "robust", "stacked"):
            yield bad_setting(
                "interval",
                f"`covariates: all` adds a penalty, which excludes a {self.interval} interval.",
                "use profile, as auto does, or bootstrap.",
            )


@settings
class Analysis:
    """An analysis, with at most one of match, coarsen, stratify and weight."""

    label: str | None = setting("the name for readers; left out: the key", None)
    new_users: NewUsers | None = setting("how drug records of a CDM are joined to episodes", None)
    eligibility: Eligibility | None = setting("eligibility criteria in a CDM", None)
    time_at_risk: TimeAtRisk | None = setting("the time at risk in a CDM", None)
    covariates: CovariateSection | None = setting("covariates from the records of a CDM", None)
    tidy: Tidy = setting("which covariates a model may use", Tidy)
    propensity: PropensitySection | None = setting(
        "the propensity score; none: no score", PropensitySection
    )
    trim: TrimSection | None = setting("trim people by their propensity scores", None)
    match: MatchSection | None = setting("match people", None)
    coarsen: CoarsenSection | None = setting("match people exactly on coarsened covariates", None)
    stratify: StratifySection | None = setting("stratify people by their propensity scores", None)
    weight: Weight | None = setting("weight people by their propensity scores", None)
    balance: BalanceOptions = setting("measurement and limits of covariate balance", BalanceOptions)
    model: OutcomeModelSection = setting("the outcome model", OutcomeModelSection)
    ohdsi_id: int | None = setting(OHDSI_ID.format("the analysis", ""), None, least=1)

    @property
    def has_sets(self) -> bool:
        """Whether everybody is in one set or stratum."""
        is_matched = self.match is not None and not self.match.replacement
        return is_matched or self.coarsen is not None or self.stratify is not None

    @property
    def ways(self) -> dict[str, bool]:
        """How arms are made alike, each with whether it needs a propensity score."""
        found = {}
        if self.match is not None:
            found["match"] = self.match.uses_score
        if self.coarsen is not None:
            found["coarsen"] = False
        if self.stratify is not None:
            found["stratify"] = True
        if self.weight is not None:
            found["weight"] = self.weight.uses_score
        return found

    @property
    def entry(self) -> Eligibility:
        """Who may enter."""
        return self.eligibility or Eligibility()

    def window(self, outcome: CdmOutcome | None = None) -> TimeAtRisk:
        """The time at risk, or the one that an outcome has instead."""
        instead = None if outcome is None else outcome.time_at_risk
        window = instead or self.time_at_risk or TimeAtRisk()
        if outcome is None or outcome.prior_outcome_lookback is None:
            return window
        given = window.values(TimeAtRisk)
        return TimeAtRisk(**given | {"prior_outcome_lookback": outcome.prior_outcome_lookback})


@settings
class Comparison:
    """A comparison of two exposures, by name."""

    target: str = setting("an exposure")
    comparator: str = setting("an exposure")

    @property
    def names(self) -> str:
        """Both names, for the record of times."""
        return f"{self.target}, {self.comparator}"


@settings
class Variable(Settings):
    """A variable of people: a column, optionally in intervals, or the presence of a covariate."""

    column: str | None = setting(
        "a column of the table of people; of a CDM sex, age, race, ethnicity or year (of the "
        "start), which a table has by its `index_date`",
        None,
    )
    borders: tuple[float, ...] = setting(
        "limits between the levels of a numeric variable; each is the start of a level", ()
    )
    covariate: str | None = setting("name or key of a covariate, instead of a column", None)

    def contradictions(self) -> Iterator[InputError]:
        """It has one source, and borders that part it."""
        if (self.column is None) == (self.covariate is None):
            given = "neither" if self.column is None else "both"
            yield InputError(f"it needs one of column and covariate, but has {given}.")
        if self.borders and self.covariate is not None:
            yield bad_setting(
                "borders",
                "`borders` split a column, but a covariate has only the levels yes and no.",
                "leave them out.",
            )
        if list(self.borders) != sorted(set(self.borders)):
            listed = ", ".join(f"{border:.15g}" for border in self.borders)
            yield bad_setting("borders", f"borders must increase, but they are {listed}.")


@settings
class SubgroupSection:
    """A variable for subgroup analyses: the effect is also estimated in each of its levels."""

    column: str = setting("a variable, or a column without changes")
    label: str | None = setting("the name for readers; left out: the key", None)


@settings
class Specification:
    """The whole file."""

    title: str = setting("the title of the study")
    data: TableData | CdmData | CohortMethodFiles = setting(
        "where the data are: a table of people, a CDM, or files of CohortMethod"
    )
    exposures: dict[str, TableExposure | CdmExposure] = setting("targets and comparators")
    comparisons: tuple[Comparison, ...] = setting("pairs of exposures")
    outcomes: dict[str, TableOutcome | CdmOutcome] = setting("outcomes and controls")
    analyses: dict[str, Analysis] = setting("analyses, each with its own design choices")
    negative_controls: ControlList | None = setting(
        "a list of negative controls of a CDM, in addition to those among the outcomes", None
    )
    description: str = setting("a description of the study", "")
    defaults: Analysis = setting(
        "sections that apply to every analysis without its own section", Analysis
    )
    target_trial: TargetTrial = setting(
        "the target trial that the study emulates; the report has it beside what was done",
        TargetTrial,
    )
    competing: str | None = setting("description of the competing events for readers", None)
    competing_events: dict[str, CdmOutcome] = setting("competing events of a CDM", dict)
    variables: dict[str, Variable] = setting(
        "variables for subgroups and `within`, in addition to the columns", dict
    )
    subgroups: dict[str, SubgroupSection] = setting("variables for subgroup analyses", dict)
    table1: tuple[Table1Section, ...] = setting(
        "characteristics to show; left out: all covariates, or the 100 most common", ()
    )
    risk_times: tuple[float, ...] | None = setting(
        "times at which risks are reported, in the `time_unit` of the report; left out: a year",
        None,
        above=0,
    )
    diagnostics: DiagnosticLimits = setting("limits of the diagnostics", DiagnosticLimits)
    calibration: Literal["posterior", "likelihood"] = setting(
        "how estimates are calibrated with controls", "posterior"
    )
    sharing: Sharing = setting("disclosure control of the results", Sharing)
    report: ReportOptions = setting("what the report shows", ReportOptions)
    seed: int = setting("the seed of all random numbers", 1, least=0)

    @property
    def time_unit(self) -> TimeUnit:
        """The unit of `risk_times` and of times in the report."""
        of_data = self.data.time_unit if isinstance(self.data, TableData) else "days"
        return self.report.time_unit or of_data

    @property
    def risk_days(self) -> tuple[float, ...]:
        """Days at which risks are reported."""
        unit = self.time_unit
        if self.risk_times is None:
            return (365.0 if unit == "days" else DAYS_A_YEAR,)
        return tuple(time * DAYS_IN[unit] for time in self.risk_times)

    def horizon_days(self, analysis: Analysis) -> tuple[float, ...]:
        """Days up to which restricted means of an analysis are reported."""
        return tuple(time * DAYS_IN[self.time_unit] for time in analysis.model.rmst)

    def column_uses(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Names of columns or variables, and the keys of the specification that have them."""
        for name, analysis in self.analyses.items():
            for word in ("match", "coarsen", "stratify"):
                section = getattr(analysis, word, None)  # a faulty analysis has none
                for column in () if section is None else section.within:
                    yield column, ("analyses", name, word, "within")
        for name, subgroup in self.subgroups.items():
            if subgroup is not INVALID:
                yield subgroup.column, ("subgroups", name, "column")

    def definitions(self, names: Iterable[str]) -> dict[str, object]:
        """What labels of these names depend on, in addition to the data."""
        return {n: as_dict(self.variables[n]) for n in names if n in self.variables}
