"""Cox and Fine-Gray regression for massive observational data."""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from riskset._errors import (
        CohortError,
        DeviceError,
        InputError,
        MissingDependencyError,
        RisksetError,
        RisksetWarning,
    )
    from riskset._version import __version__
    from riskset.curves.aalen_johansen import AalenJohansen, IncidenceCurve, aalen_johansen
    from riskset.curves.bands import ConfidenceBand
    from riskset.curves.comparison import GroupTest, gray_test, logrank_test
    from riskset.curves.kaplan_meier import KaplanMeier, SurvivalCurve, kaplan_meier
    from riskset.curves.max_combo import MaxComboTest, max_combo_test
    from riskset.curves.pairwise import PairwiseTests, pairwise_logrank_test
    from riskset.curves.restricted_contrast import RestrictedMeanContrast
    from riskset.curves.restricted_mean import RestrictedMean, RestrictedMeans, restricted_mean
    from riskset.curves.reverse_kaplan_meier import reverse_kaplan_meier
    from riskset.data.dataset import Dataset
    from riskset.data.design import Design
    from riskset.data.outcome import Outcome, Surv
    from riskset.data.readers import read_dataset
    from riskset.data.start_stop.histories import (
        EventTimes,
        ExposurePeriods,
        LastValue,
        RunningTotal,
    )
    from riskset.data.start_stop.history_merge import StartStopRows, merge_histories
    from riskset.data.start_stop.landmark import landmark
    from riskset.data.start_stop.splitting import split
    from riskset.data.start_stop.time_interactions import time_interactions
    from riskset.datasets import load_rhc
    from riskset.estimators.batch import fit_each
    from riskset.estimators.blocks import Blocks
    from riskset.estimators.bootstrap import Bootstrap
    from riskset.estimators.cause_specific import CauseSpecificCox
    from riskset.estimators.convergence import ConvergenceWarning
    from riskset.estimators.cox import Cox
    from riskset.estimators.crossval import CoxCV, FineGrayCV, cross_validate
    from riskset.estimators.finegray import FineGray
    from riskset.estimators.frailty import CoxFrailty
    from riskset.estimators.path import PathResult, path
    from riskset.estimators.predictions import Predictions
    from riskset.estimators.profiling import Profile, profile
    from riskset.estimators.saving import load
    from riskset.estimators.time_effects import TimeEffectCox
    from riskset.imputation.completed import Imputations, impute
    from riskset.imputation.pooling import PooledEstimates, pool
    from riskset.infer.crossval.result import CrossValidation
    from riskset.model.incidence import check_total_incidence
    from riskset.model.penalty import L1, L2, ElasticNet
    from riskset.model.step_function import StepFunction
    from riskset.simulate import simulate_cohort, simulate_cox, simulate_finegray

# Where the public names live. A name is imported when it is first used, so that `import riskset`
# and the command line do not wait for numba, scikit-learn and DuckDB.
_NAMES = {
    "riskset._errors": (
        "CohortError",
        "DeviceError",
        "InputError",
        "MissingDependencyError",
        "RisksetError",
        "RisksetWarning",
    ),
    "riskset._version": ("__version__",),
    "riskset.curves.aalen_johansen": ("AalenJohansen", "IncidenceCurve", "aalen_johansen"),
    "riskset.curves.bands": ("ConfidenceBand",),
    "riskset.curves.comparison": ("GroupTest", "gray_test", "logrank_test"),
    "riskset.curves.reverse_kaplan_meier": ("reverse_kaplan_meier",),
    "riskset.curves.max_combo": ("MaxComboTest", "max_combo_test"),
    "riskset.curves.pairwise": ("PairwiseTests", "pairwise_logrank_test"),
    "riskset.curves.kaplan_meier": ("KaplanMeier", "SurvivalCurve", "kaplan_meier"),
    "riskset.curves.restricted_contrast": ("RestrictedMeanContrast",),
    "riskset.curves.restricted_mean": ("RestrictedMean", "RestrictedMeans", "restricted_mean"),
    "riskset.data.dataset": ("Dataset",),
    "riskset.data.design": ("Design",),
    "riskset.data.start_stop.histories": (
        "EventTimes",
        "ExposurePeriods",
        "LastValue",
        "RunningTotal",
    ),
    "riskset.data.start_stop.history_merge": ("StartStopRows", "merge_histories"),
    "riskset.data.start_stop.landmark": ("landmark",),
    "riskset.data.outcome": ("Outcome", "Surv"),
    "riskset.data.readers": ("read_dataset",),
    "riskset.data.start_stop.splitting": ("split",),
    "riskset.data.start_stop.time_interactions": ("time_interactions",),
    "riskset.datasets": ("load_rhc",),
    "riskset.estimators.batch": ("fit_each",),
    "riskset.estimators.blocks": ("Blocks",),
    "riskset.estimators.bootstrap": ("Bootstrap",),
    "riskset.estimators.cause_specific": ("CauseSpecificCox",),
    "riskset.estimators.convergence": ("ConvergenceWarning",),
    "riskset.estimators.cox": ("Cox",),
    "riskset.estimators.crossval": ("CoxCV", "FineGrayCV", "cross_validate"),
    "riskset.estimators.finegray": ("FineGray",),
    "riskset.estimators.frailty": ("CoxFrailty",),
    "riskset.estimators.path": ("PathResult", "path"),
    "riskset.estimators.predictions": ("Predictions",),
    "riskset.estimators.profiling": ("Profile", "profile"),
    "riskset.estimators.saving": ("load",),
    "riskset.estimators.time_effects": ("TimeEffectCox",),
    "riskset.imputation.completed": ("Imputations", "impute"),
    "riskset.imputation.pooling": ("PooledEstimates", "pool"),
    "riskset.infer.crossval.result": ("CrossValidation",),
    "riskset.model.incidence": ("check_total_incidence",),
    "riskset.model.step_function": ("StepFunction",),
    "riskset.model.penalty": ("ElasticNet", "L1", "L2"),
    "riskset.simulate": ("simulate_cohort", "simulate_cox", "simulate_finegray"),
}
_HOMES = dict(sorted((name, module) for module, names in _NAMES.items() for name in names))

# Modules that are used by name, as in ``riskset.metrics.concordance``.
_MODULES = (
    "cohort",
    "metrics",
    "network",
    "ohdsi",
    "omop",
    "plot",
    "report",
    "simulate",
    "study",
    "tables",
)

__all__ = [
    "AalenJohansen",
    "Blocks",
    "Bootstrap",
    "CauseSpecificCox",
    "CohortError",
    "ConfidenceBand",
    "ConvergenceWarning",
    "Cox",
    "CoxCV",
    "CoxFrailty",
    "CrossValidation",
    "Dataset",
    "Design",
    "DeviceError",
    "ElasticNet",
    "EventTimes",
    "ExposurePeriods",
    "FineGray",
    "FineGrayCV",
    "GroupTest",
    "Imputations",
    "IncidenceCurve",
    "InputError",
    "KaplanMeier",
    "L1",
    "L2",
    "LastValue",
    "MaxComboTest",
    "MissingDependencyError",
    "Outcome",
    "PairwiseTests",
    "PathResult",
    "PooledEstimates",
    "Predictions",
    "Profile",
    "RestrictedMean",
    "RestrictedMeanContrast",
    "RestrictedMeans",
    "RisksetError",
    "RisksetWarning",
    "RunningTotal",
    "StartStopRows",
    "StepFunction",
    "Surv",
    "SurvivalCurve",
    "TimeEffectCox",
    "__version__",
    "aalen_johansen",
    "check_total_incidence",
    "cross_validate",
    "fit_each",
    "gray_test",
    "impute",
    "kaplan_meier",
    "landmark",
    "load",
    "load_rhc",
    "logrank_test",
    "max_combo_test",
    "merge_histories",
    "pairwise_logrank_test",
    "path",
    "pool",
    "profile",
    "read_dataset",
    "restricted_mean",
    "reverse_kaplan_meier",
    "simulate_cohort",
    "simulate_cox",
    "simulate_finegray",
    "split",
    "time_interactions",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"riskset.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'riskset' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
