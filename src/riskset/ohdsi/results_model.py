"""The results data model of OHDSI's CohortMethod 6: every table and column, declared once.

The writer takes names, types and rules of each column from here. ``Results_<database>.zip`` has a
CSV file for each table of `RESULTS`; the files of `BESIDE` lie next to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "BESIDE",
    "DATABASE_FACTS",
    "QUANTILES",
    "RESULTS",
    "ModelColumn",
    "ModelTable",
    "specification_rows",
]

ModelType = Literal["int", "bigint", "float", "varchar", "varchar(20)", "text", "Date", "date"]
Hiding = Literal["", "count", "mean"]


@dataclass(frozen=True)
class ModelColumn:
    """A column of a table of the data model.

    `is_key` says whether it is part of the primary key. `hiding` says how a small number is
    written: a hidden "count" as minus the smallest count that is shown, and a hidden "mean" as
    minus that number over the people of the arm. `decimals` are those of a number that is rounded.
    """

    name: str
    type: ModelType
    about: str
    is_required: bool = False
    is_key: bool = False
    hiding: Hiding = ""
    decimals: int | None = None


@dataclass(frozen=True)
class ModelTable:
    """A table of the data model, which is the file ``<name>.csv``."""

    name: str
    about: str
    columns: tuple[ModelColumn, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns of the primary key."""
        return tuple(column.name for column in self.columns if column.is_key)


def _key(name: str, kind: ModelType, about: str) -> ModelColumn:
    return ModelColumn(name, kind, about, is_required=True, is_key=True)


def _required(name: str, kind: ModelType, about: str) -> ModelColumn:
    return ModelColumn(name, kind, about, is_required=True)


def _count(name: str, about: str, *, is_required: bool = True) -> ModelColumn:
    return ModelColumn(name, "int", about, is_required=is_required, hiding="count")


def _floats(*columns: tuple[str, str]) -> tuple[ModelColumn, ...]:
    return tuple(ModelColumn(name, "float", about) for name, about in columns)


ANALYSIS = _key("analysis_id", "int", "number of the analysis")
COMPARISON = _key("target_comparator_id", "bigint", "number of the comparison")
OUTCOME = _key("outcome_id", "bigint", "number of the outcome")
DATABASE = _key("database_id", "varchar", "name of the database")
COVARIATE = _key("covariate_id", "bigint", "number of the covariate")
RUN = (ANALYSIS, COMPARISON, OUTCOME, DATABASE)
ARMS = ("target", "comparator")

PEOPLE = (
    *(_count(f"{arm}_subjects", f"people of the {arm} group") for arm in ARMS),
    *(_required(f"{arm}_days", "int", f"days at risk of the {arm} group") for arm in ARMS),
    *(_count(f"{arm}_outcomes", f"outcomes of the {arm} group") for arm in ARMS),
)
ESTIMATOR = _required(
    "target_estimator", "varchar", "population of the effect: ate, att, atu, ato or matching"
)
CALIBRATED = {
    "calibrated_rr": "calibrated ratio",
    "calibrated_ci_95_lb": "lower limit of its 95 % interval",
    "calibrated_ci_95_ub": "upper limit",
    "calibrated_p": "its two-sided p",
    "calibrated_one_sided_p": "its p for a ratio above 1",
    "calibrated_log_rr": "logarithm of the calibrated ratio",
    "calibrated_se_log_rr": "standard error of this logarithm",
}

ATTRITION = ModelTable(
    "cm_attrition",
    "people left after each step of the selection and the adjustment",
    (
        _key("sequence_number", "int", "number of the step, from 1"),
        _required("description", "varchar", "what the step does"),
        _count("subjects", "people left in the group"),
        _key("exposure_id", "bigint", "number of the exposure of the group"),
        COMPARISON,
        ANALYSIS,
        OUTCOME,
        DATABASE,
    ),
)

QUANTILES = {
    "min": 0.0,
    "p_10": 0.1,
    "p_25": 0.25,
    "median": 0.5,
    "p_75": 0.75,
    "p_90": 0.9,
    "max": 1.0,
}
"""Names of quantiles of the days at risk -> their probabilities."""

FOLLOW_UP = ModelTable(
    "cm_follow_up_dist",
    "quantiles of the days at risk, after the adjustment",
    (
        *RUN,
        *_floats(
            *(
                (f"{arm}_{name}_days", f"{share:.0%} quantile of the days at risk, {arm} group")
                for arm in ARMS
                for name, share in QUANTILES.items()
            )
        ),
        *(
            ModelColumn(f"{arm}_{end}_date", "Date", f"{word} index date of the {arm} group")
            for arm in ARMS
            for end, word in (("min", "first"), ("max", "last"))
        ),
    ),
)

ANALYSES = ModelTable(
    "cm_analysis",
    "analyses",
    (
        ANALYSIS,
        _required("description", "varchar", "label of the analysis"),
        _required("definition", "varchar", "settings of the analysis, as JSON"),
    ),
)

RESULT = ModelTable(
    "cm_result",
    "effects of outcomes and controls",
    (
        *RUN,
        *_floats(
            ("rr", "hazard, odds or rate ratio, target versus comparator"),
            ("ci_95_lb", "lower limit of its 95 % interval"),
            ("ci_95_ub", "upper limit"),
            ("p", "two-sided p"),
            ("one_sided_p", "p for a ratio above 1"),
        ),
        *PEOPLE,
        *_floats(
            ("log_rr", "logarithm of the ratio"),
            ("se_log_rr", "standard error of the logarithm"),
            ("llr", "log likelihood minus the log likelihood with a ratio of 1"),
            *CALIBRATED.items(),
        ),
        ESTIMATOR,
    ),
)

INTERACTIONS = ModelTable(
    "cm_interaction_result",
    "interactions of the treatment with covariates",
    (
        *RUN,
        _key("interaction_covariate_id", "bigint", "number of the covariate"),
        _required("rr", "float", "ratio of the effects per unit of the covariate"),
        _required("ci_95_lb", "float", "lower limit of its 95 % interval"),
        _required("ci_95_ub", "float", "upper limit"),
        _required("p", "float", "two-sided p"),
        *PEOPLE,
        *_floats(
            ("log_rr", "logarithm of the ratio"),
            ("se_log_rr", "standard error of the logarithm"),
            *((n, about) for n, about in CALIBRATED.items() if n != "calibrated_one_sided_p"),
        ),
        ESTIMATOR,
    ),
)

COVARIATES = ModelTable(
    "cm_covariate",
    "covariates of the propensity scores and of the balance",
    (
        COVARIATE,
        _required("covariate_name", "varchar", "name of the covariate"),
        ANALYSIS,
        _required("covariate_analysis_id", "int", "number of the kind of covariate"),
        DATABASE,
    ),
)

COVARIATE_ANALYSES = ModelTable(
    "cm_covariate_analysis",
    "kinds of covariates",
    (
        _key("covariate_analysis_id", "int", "number of the kind, as in FeatureExtraction"),
        _required("covariate_analysis_name", "varchar", "name of the kind"),
        ANALYSIS,
    ),
)


def _balance() -> Iterator[ModelColumn]:
    """Columns of a covariate in a balance."""
    for side in ("before", "after"):
        for arm, of in (*((f"{arm}_", f"the {arm} group") for arm in ARMS), ("", "both groups")):
            about = f"mean in {of} {side} adjustment"
            name = f"{arm}mean_{side}"
            yield ModelColumn(name, "float", about, hiding="mean", decimals=3)
        about = f"standardised difference {side} adjustment"
        yield ModelColumn(f"std_diff_{side}", "float", about, decimals=3)
        yield ModelColumn(f"std_diff_var_{side}", "float", "variance of this difference")
        yield ModelColumn(f"balanced_{side}", "int", "1 if it is within the limit, or else 0")
    for group, of in (*((arm, f"the {arm} group") for arm in ARMS), ("target_comparator", "both")):
        about = f"standardised difference between before and after adjustment, of {of}"
        yield ModelColumn(f"{group}_std_diff", "float", about, decimals=3)


BALANCE = ModelTable(
    "cm_covariate_balance",
    "covariates before and after the adjustment of the people followed to an outcome",
    (DATABASE, COMPARISON, OUTCOME, ANALYSIS, COVARIATE, *_balance()),
)

SHARED_BALANCE = ModelTable(
    "cm_shared_covariate_balance",
    "covariates before and after the adjustment of the people whom all outcomes share",
    (DATABASE, COMPARISON, ANALYSIS, COVARIATE, *_balance()),
)


def _verdict(name: str, about: str, *, is_required: bool = True) -> ModelColumn:
    words = f"PASS, FAIL or NOT EVALUATED: {about}"
    return ModelColumn(f"{name}_diagnostic", "varchar(20)", words, is_required=is_required)


DIAGNOSTICS = ModelTable(
    "cm_diagnostics_summary",
    "diagnostics of outcomes and controls, and whether the effect may be looked at",
    (
        *RUN,
        *_floats(
            ("max_sdm", "largest standardised difference after adjustment"),
            ("sdm_family_wise_min_p", "smallest p of a difference, times their number"),
            ("shared_max_sdm", "largest standardised difference in the shared balance"),
            ("shared_sdm_family_wise_min_p", "smallest p there, times their number"),
            ("equipoise", "share of people with a preference score of 0.3 to 0.7"),
            ("mdrr", "minimum detectable ratio"),
            ("attrition_fraction", "not in use"),
            ("generalizability_max_sdm", "largest difference between before and after"),
            ("ease", "expected absolute systematic error"),
        ),
        _verdict("balance", "balance of the people followed to the outcome"),
        _verdict("shared_balance", "balance of the people whom outcomes share"),
        _verdict("equipoise", "equipoise"),
        _verdict("mdrr", "minimum detectable ratio"),
        _verdict("attrition", "not in use", is_required=False),
        _verdict("generalizability", "generalisability"),
        _verdict("ease", "systematic error"),
        _required("unblind", "int", "1 if no diagnostic failed, or else 0"),
        _required(
            "unblind_for_evidence_synthesis", "int", "1 if none but perhaps mdrr failed, or else 0"
        ),
    ),
)

COMPARISON_OUTCOMES = ModelTable(
    "cm_target_comparator_outcome",
    "outcomes and controls of each comparison",
    (
        OUTCOME,
        _required("outcome_of_interest", "int", "1 for an outcome, 0 for a control"),
        ModelColumn("true_effect_size", "float", "true ratio of a control"),
        COMPARISON,
    ),
)

KAPLAN_MEIER = ModelTable(
    "cm_kaplan_meier_dist",
    "survival of both groups after the adjustment",
    (
        _key("time_day", "int", "day since the start of the time at risk"),
        *(
            _required(f"{arm}_survival{end}", "float", f"{word} of the {arm} group")
            for arm in ARMS
            for end, word in (
                ("", "survival"),
                ("_lb", "lower limit of the survival"),
                ("_ub", "upper limit of the survival"),
            )
        ),
        *(
            _count(f"{arm}_at_risk", f"people of the {arm} group at risk", is_required=False)
            for arm in ARMS
        ),
        COMPARISON,
        OUTCOME,
        ANALYSIS,
        DATABASE,
    ),
)

PROFILES = ModelTable(
    "cm_likelihood_profile",
    "profile log likelihoods of outcomes and controls",
    (
        _key("log_rr", "float", "log ratio"),
        _required("log_likelihood", "float", "log likelihood minus its largest value"),
        _required("gradient", "float", "derivative by the log ratio"),
        COMPARISON,
        OUTCOME,
        ANALYSIS,
        DATABASE,
    ),
)

PREFERENCE = ModelTable(
    "cm_preference_score_dist",
    "densities of the preference score before the adjustment",
    (
        ANALYSIS,
        COMPARISON,
        DATABASE,
        _key("preference_score", "float", "preference score, in 100 steps from 0 to 1"),
        *(_required(f"{arm}_density", "float", f"density of the {arm} group") for arm in ARMS),
    ),
)

PROPENSITY = ModelTable(
    "cm_propensity_model",
    "coefficients of the propensity scores",
    (
        COMPARISON,
        ANALYSIS,
        DATABASE,
        _key("covariate_id", "bigint", "number of the covariate; 0 is the intercept"),
        _required("coefficient", "float", "log odds ratio per unit of the covariate"),
    ),
)

COMPARISONS = ModelTable(
    "cm_target_comparator",
    "comparisons",
    (
        COMPARISON,
        _required("target_id", "bigint", "number of the target"),
        _required("comparator_id", "bigint", "number of the comparator"),
        ModelColumn("nesting_cohort_id", "bigint", "cohort within which people start a treatment"),
    ),
)

DATABASE_FACTS = ModelTable(
    "database_meta_data",
    "the database, as its table cdm_source describes it",
    (
        _required("cdm_source_name", "varchar", "name of the database"),
        _required("cdm_source_abbreviation", "varchar", "its short name"),
        _required("cdm_holder", "varchar", "who holds it"),
        ModelColumn("source_description", "varchar", "description of the source"),
        ModelColumn("source_documentation_reference", "varchar", "where the source is described"),
        ModelColumn("cdm_etl_reference", "varchar", "where the conversion to a CDM is described"),
        _required("source_release_date", "date", "release of the source"),
        _required("cdm_release_date", "date", "release of the CDM"),
        ModelColumn("cdm_version", "varchar", "version of the CDM"),
        ModelColumn("cdm_version_concept_id", "int", "concept of this version"),
        _required("vocabulary_version", "varchar", "version of the vocabulary"),
        DATABASE,
        _required("max_obs_period_end_date", "date", "last day of observation"),
    ),
)

COHORTS = ModelTable(
    "cg_cohort_definition",
    "names of the numbers of exposures, outcomes and nesting cohorts",
    (
        _key("cohort_definition_id", "bigint", "number of the exposure, outcome or cohort"),
        _required("cohort_name", "varchar", "its label"),
        ModelColumn("description", "varchar", "its description"),
        ModelColumn("json", "text", "definition in the format of ATLAS"),
        ModelColumn("sql_command", "text", "SQL that makes the cohort"),
        ModelColumn("subset_parent", "bigint", "cohort of which it is a part"),
        ModelColumn("is_subset", "int", "1 if it is a part of another cohort, or else 0"),
        ModelColumn("subset_definition_id", "bigint", "number of the definition of the part"),
    ),
)

RESULTS: tuple[ModelTable, ...] = (
    ATTRITION,
    FOLLOW_UP,
    ANALYSES,
    RESULT,
    INTERACTIONS,
    COVARIATES,
    COVARIATE_ANALYSES,
    BALANCE,
    DIAGNOSTICS,
    COMPARISON_OUTCOMES,
    KAPLAN_MEIER,
    PROFILES,
    PREFERENCE,
    PROPENSITY,
    SHARED_BALANCE,
    COMPARISONS,
)
"""Tables of the archive."""

BESIDE: tuple[ModelTable, ...] = (DATABASE_FACTS, COHORTS)
"""Tables that viewers expect beside it."""


def specification_rows() -> Iterator[dict[str, str]]:
    """Every column as a row of the file from which OHDSI's ResultModelManager makes tables."""
    yes = {True: "Yes", False: "No"}
    for table in (*RESULTS, *BESIDE):
        for column in table.columns:
            yield {
                "table_name": table.name,
                "column_name": column.name,
                "data_type": column.type,
                "is_required": yes[column.is_required],
                "primary_key": yes[column.is_key],
                "min_cell_count": yes[column.hiding != ""],
                "description": column.about,
            }
