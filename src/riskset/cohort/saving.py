"""Save and load results of a study."""

import os
from pathlib import Path
from typing import Any

from riskset.cohort.adjustments.attrition_table import Attrition
from riskset.cohort.adjustments.several_treatments import TreatmentWeights
from riskset.cohort.arms.augmented_estimates import DoublyRobustEstimates
from riskset.cohort.arms.curves import ArmCurves
from riskset.cohort.arms.restricted_means import ArmRestrictedMeans
from riskset.cohort.arms.risks import RiskDifference
from riskset.cohort.arms.standardization import StandardizedEstimates
from riskset.cohort.bias.calibration import CalibratedEstimates
from riskset.cohort.bias.control_bounds import BiasBounds
from riskset.cohort.bias.e_values import EValue
from riskset.cohort.bias.unmeasured_confounder import ConfounderAdjusted, TippingPoints
from riskset.cohort.covariates.covariate_balance import Balance
from riskset.cohort.covariates.covariate_filter import TidyInfo
from riskset.cohort.diagnostics import Diagnostics
from riskset.cohort.effects.estimate import Estimate
from riskset.cohort.outcomes import FollowUpTime
from riskset.cohort.planning.study_plan import StudyPlan
from riskset.cohort.propensity.overlap import Discrimination
from riskset.cohort.propensity.propensity_result import PropensityScore
from riskset.cohort.protocol.artificial_censoring import DeviationWeights
from riskset.curves.aalen_johansen import IncidenceCurve
from riskset.curves.comparison import GroupTest
from riskset.curves.kaplan_meier import SurvivalCurve
from riskset.data.result_folder import classes_of, read_object, write_object
from riskset.model.penalty import L1, L2, ElasticNet

__all__ = ["CLASSES", "load", "save"]

CLASSES = classes_of(
    ArmCurves,
    ArmRestrictedMeans,
    Attrition,
    Balance,
    BiasBounds,
    CalibratedEstimates,
    ConfounderAdjusted,
    DeviationWeights,
    Diagnostics,
    Discrimination,
    DoublyRobustEstimates,
    ElasticNet,
    Estimate,
    EValue,
    FollowUpTime,
    GroupTest,
    IncidenceCurve,
    L1,
    L2,
    PropensityScore,
    RiskDifference,
    StandardizedEstimates,
    StudyPlan,
    SurvivalCurve,
    TidyInfo,
    TippingPoints,
    TreatmentWeights,
)
"""What a folder may hold: these results, and the results and settings in their fields."""


def save(result: object, folder: str | os.PathLike[str]) -> None:
    """Write any result of `riskset.cohort`, or a list or mapping of results, to a folder.

    ``object.json`` contains fields and settings. Arrays are columns of Parquet files, one file per
    length, which other programs can read. The folder is written atomically.

    Parameters
    ----------
    result : Population, Adjustment, PropensityScore, TidyInfo, Balance, Estimate, ...
    folder : path
        A new or empty folder, or a folder that was saved before, which is replaced.

    Raises
    ------
    InputError
        If the folder has other contents, or `result` has another type.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.50, 0.40, 0.49, 0.10])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     rs.cohort.save(rs.cohort.match(people), place)
    ...     rs.cohort.load(place)
    Adjustment(matching, att: 1 target, 1 comparator)
    """
    write_object(Path(folder), result, CLASSES)


def load(folder: str | os.PathLike[str]) -> Any:
    """Load what `save` has written, bit for bit.

    Covariates of a `TidyInfo` stay in their file and are read when they are used. Loading runs no
    code.

    Raises
    ------
    InputError
        If the folder does not exist, is damaged, or was written by another version.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 0], [0.8, 0.5, 0.2])
    >>> with tempfile.TemporaryDirectory() as place:
    ...     rs.cohort.save({"ate": rs.cohort.weight(people, "ate")}, place)
    ...     rs.cohort.load(place)["ate"].weight
    array([1.25, 2.  , 1.25])
    """
    former = {"Calibration": CalibratedEstimates}  # its name in earlier versions
    return read_object(Path(folder), {**CLASSES, **former})
