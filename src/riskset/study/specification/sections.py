"""The sections of a specification; every field is a key, with the words of its documentation.

Sections that are settings of `riskset.cohort` or `riskset.omop` are those very classes, or classes
that add what only a file can say, such as names in place of arrays.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from riskset._errors import InputError
from riskset._settings import INVALID, Settings, as_dict, bad_setting, same_as, setting, settings
from riskset._time_units import DAYS_A_YEAR, DAYS_IN, TimeUnit
from riskset.cohort.adjustments.adjustment_settings import (
    Coarsen,
    Match,
    SeveralTreatments,
    Stratify,
    Trim,
    Weight,
)
from riskset.cohort.arms.augmentation_settings import DoublyRobustOptions
from riskset.cohort.effects.effect_scale import Model
from riskset.cohort.effects.time_effect import TimeDependence
from riskset.cohort.settings import (
    BalanceOptions,
    DiagnosticLimits,
    OutcomeModel,
    PropensityModel,
    Tidy,
)
from riskset.model.penalty import L1, L2, Penalty
from riskset.omop.analyses import DEFAULT
from riskset.omop.concepts import ConceptSet
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.eligibility import Eligibility
from riskset.omop.risk import TimeAtRisk
from riskset.study.specification.codes import ControlList
from riskset.study.specification.data_sections import CdmData, CohortMethodFiles, TableData
from riskset.study.specification.exposure_sections import (
    OHDSI_ID,
    CdmExposure,
    NewUsers,
    TableExposure,
    TableStrategy,
)
from riskset.study.specification.outcome_sections import CdmOutcome, TableOutcome
from riskset.study.specification.per_protocol_section import ContrastName, PerProtocol
from riskset.study.specification.report_sections import (
    ReportOptions,
    Sharing,
    Table1Section,
    TargetTrial,
    UnmeasuredConfounding,
)

__all__ = [
    "ADJUSTMENTS",
    "NUMBERS",
    "YEAR",
    "Analysis",
    "CoarsenSection",
    "Comparison",
    "CovariateSection",
    "MatchSection",
    "OutcomeModelSection",
    "PropensitySection",
    "Specification",
    "StratifySection",
    "TreatmentWeightSection",
    "TrimSection",
    "Variable",
]


ADJUSTMENTS = ("trim", "match", "coarsen", "stratify", "weight", "weight_treatments")
"""Keys of an analysis, each for one way to adjust."""
YEAR = "year"
"""The year of the index date: a column that a table of people has by its dates."""

NUMBERS = ("age", YEAR)
"""Columns of a CDM that borders can part."""


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
class TreatmentWeightSection(PropensitySection, SeveralTreatments):
    """Weights of several treatments at once; see `riskset.cohort.weight_treatments`.

    The keys from `penalty` on are those of the multinomial regression of the treatment.
    """

    arms: tuple[str, ...] = setting(
        "exposures that are weighted to one population; each comparison has two of them",
        kw_only=True,
    )
    target: str | None = setting("the exposure whose people att is about", None)

    REGRESSION: ClassVar[type[PropensityModel]] = PropensitySection

    def weighting(self, seed: int) -> SeveralTreatments:
        """The settings of the weights."""
        own = self.values(SeveralTreatments) | {"seed": seed}
        if self.method == "score":
            own["penalty"] = self.kind
        return SeveralTreatments(**own)

    def contradictions(self) -> Iterator[InputError]:
        """Three or more arms are more than a comparison has."""
        yield from super().contradictions()
        yield from self.of_weights()
        if len(set(self.arms)) < 3 or len(set(self.arms)) < len(self.arms):
            yield bad_setting(
                "arms",
                "`arms` needs three or more different exposures.",
                "use `weight` for two.",
            )
        if self.target is not None and self.target not in self.arms:
            yield bad_setting(
                "target", f"`target` is {self.target!r}, which is not one of the `arms`."
            )


@settings
class OutcomeModelSection(OutcomeModel):
    """The outcome model; see `riskset.cohort.fit_outcome`."""

    also: tuple[Model, ...] = setting("further models, each with its estimate", (), after="model")
    cluster: str | None = setting(
        "the variable or column of the clusters of people who share a frailty, such as hospitals; "
        "the column of a table is no covariate then",
        None,
        after="frailty_variance",
    )
    time_effect: TimeDependence | None = setting(
        "also estimate the hazard ratio of the Cox model as a function of time: log-linear in the "
        "logarithm of time (log) or in time itself (identity), or with steps at these times, in "
        "the `time_unit` of the report",
        None,
        above=0,
    )
    effect_times: tuple[float, ...] = setting(
        "times, in the same unit, at which a hazard ratio that is log or identity in time is "
        "reported; left out: round times from the first to the last outcome",
        (),
        above=0,
    )
    rmst: tuple[float, ...] = setting(
        "times up to which restricted mean survival times are reported, in the `time_unit` of the "
        "report, as `risk_times` are",
        (),
        above=0,
        after="replicates",
    )
    standardize: tuple[float, ...] = setting(
        "times by which standardised risks and restricted means are reported, in the unit of "
        "`rmst`: averaged predictions of outcome models with the tidy covariates",
        (),
        above=0,
        after="rmst",
    )
    doubly_robust: tuple[float, ...] = setting(
        "times by which doubly robust risks and restricted means are reported: averaged "
        "predictions of these models, corrected by weighted residuals, with the weights of the "
        "adjustment or of the score, and a model of censoring",
        (),
        above=0,
        after="standardize",
    )
    risk_censoring: Literal["cox", "kaplan-meier"] = same_as(DoublyRobustOptions, "censoring")
    risk_penalty: Literal["none", "l1", "l2"] = setting(
        "the penalty of the models of doubly robust estimates, whose strength cross-validation "
        "chooses",
        "none",
        after="risk_censoring",
    )
    risk_folds: int | None = setting(
        "the number of folds for cross-fitting of doubly robust estimates: all models, also that "
        "of the score, predict people of folds that they were not fitted to",
        None,
        least=2,
        after="risk_penalty",
    )
    curve_tests: tuple[Literal["logrank", "gray", "max-combo"], ...] = setting(
        "tests between the curves of the groups: logrank; gray, where there are competing events "
        "and people count as one each; max-combo, if hazards may not be proportional",
        ("logrank", "gray"),
        after="risk_folds",
    )
    covariates: Literal["none", "all"] = setting(
        "whether the model adjusts for the tidy covariates", "none", after="curve_tests"
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
        if (self.frailty is None) != (self.cluster is None):
            key, other = ("frailty", "cluster")[:: 1 if self.frailty else -1]
            hint = "frailty: gamma" if other == "frailty" else "the column of the clusters"
            yield bad_setting(
                key, f"`{key}` needs `{other}`, which is missing.", f"add {hint}, or leave it out."
            )
        if len(set(self.curve_tests)) < len(self.curve_tests):
            yield bad_setting(
                "curve_tests", "`curve_tests` names a test twice.", "name each test once."
            )
        for name in ("risk_penalty", "risk_folds"):
            if getattr(self, name) not in ("none", None) and not self.doubly_robust:
                yield bad_setting(
                    name,
                    f"`{name}` belongs to doubly robust estimates, but there are none.",
                    "name their times in `doubly_robust`.",
                )
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
        for name in ("standardize", "doubly_robust"):
            if self.held and getattr(self, name):
                yield bad_setting(
                    "fixed",
                    f"the models of `{name}` estimate all coefficients, so `fixed` holds none.",
                    "leave one of them out, or make another analysis.",
                )
        if self.covariates == "all" and self.time_effect is not None:
            yield bad_setting(
                "time_effect",
                "`covariates: all` adds a penalty, with which `time_effect` is not available.",
                "leave one of them out.",
            )
        whole = self.whole_key
        if self.covariates == "all" and whole and (whole != "ties" or self.strength is None):
            lacks = self.lacking_penalty or "cross-validation"
            yield bad_setting(
                whole,
                f"`covariates: all` adds a {lacks}, which {self.whole_likelihood} excludes.",
                "leave `covariates: all` out, or give the `strength` of its penalty."
                if whole == "ties"
                else "leave `covariates: all` out.",
            )


@settings
class Analysis:
    """An analysis, with at most one of match, coarsen, stratify, weight and weight_treatments."""

    label: str | None = setting("the name for readers; left out: the key", None)
    estimand: ContrastName | None = setting(
        "per-protocol: the effect if everybody had kept to the treatment, estimated from the "
        "follow-up until people deviate; intention-to-treat: the effect of starting the treatment, "
        "whatever people did later; left out: the effect in the time at risk as it is defined",
        None,
    )
    per_protocol: PerProtocol | None = setting(
        "how people are followed until they deviate, if the estimand is per-protocol", None
    )
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
    weight_treatments: TreatmentWeightSection | None = setting(
        "weight people of three or more treatments, so that all comparisons are about the same "
        "people",
        None,
    )
    balance: BalanceOptions = setting("measurement and limits of covariate balance", BalanceOptions)
    model: OutcomeModelSection = setting("the outcome model", OutcomeModelSection)
    ohdsi_id: int | None = setting(OHDSI_ID.format("the analysis", ""), None, least=1)

    @property
    def protocol(self) -> PerProtocol | None:
        """How people are followed until they deviate, if that is the estimand."""
        return (self.per_protocol or PerProtocol()) if self.estimand == "per-protocol" else None

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
        if self.weight_treatments is not None:
            found["weight_treatments"] = False
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
        "a column of the table of people; of a CDM sex, age, race, ethnicity, year (of the start, "
        "which a table has by its `index_date`), care_site or provider",
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
    exposures: dict[str, TableExposure | TableStrategy | CdmExposure] = setting(
        "targets and comparators"
    )
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
    unmeasured: UnmeasuredConfounding = setting(
        "unmeasured confounders whose bias is removed from the main estimates",
        UnmeasuredConfounding,
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
        return self.days_of(analysis.model.rmst)

    def days_of(self, times: tuple[float, ...]) -> tuple[float, ...]:
        """Different times in the unit of the report as days."""
        return tuple(time * DAYS_IN[self.time_unit] for time in dict.fromkeys(times))

    def column_uses(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Names of columns or variables, and the keys of the specification that have them."""
        for name, analysis in self.analyses.items():
            for word in ("match", "coarsen", "stratify"):
                section = getattr(analysis, word, None)  # a faulty analysis has none
                for column in () if section is None else section.within:
                    yield column, ("analyses", name, word, "within")
            model = getattr(analysis, "model", None)
            if isinstance(model, OutcomeModelSection) and model.cluster is not None:
                yield model.cluster, ("analyses", name, "model", "cluster")
        for name, subgroup in self.subgroups.items():
            if subgroup is not INVALID:
                yield subgroup.column, ("subgroups", name, "column")

    def definitions(self, names: Iterable[str]) -> dict[str, object]:
        """What labels of these names depend on, in addition to the data."""
        return {n: as_dict(self.variables[n]) for n in names if n in self.variables}
