"""Save and load results of a study."""

import os
from pathlib import Path
from typing import Any

from riskset._messages import Note
from riskset.cohort.adjustment import Adjustment, Step
from riskset.cohort.attrition_table import Attrition
from riskset.cohort.balancing import Balance, Side
from riskset.cohort.calibration import Calibration, Controls
from riskset.cohort.curves import ArmCurves
from riskset.cohort.diagnostics import Diagnostic, Diagnostics
from riskset.cohort.error_model import ErrorModel
from riskset.cohort.error_posterior import ErrorPosterior
from riskset.cohort.estimate import Estimate, LikelihoodProfile, Subgroup
from riskset.cohort.null import Null
from riskset.cohort.null_posterior import NullPosterior
from riskset.cohort.outcomes import ArmCounts, FollowUpTime
from riskset.cohort.population import Population
from riskset.cohort.propensity import Discrimination
from riskset.cohort.propensity_checks import TreatmentCovariates
from riskset.cohort.propensity_result import PropensityScore
from riskset.cohort.risks import RiskDifference
from riskset.cohort.tidying import TidyInfo
from riskset.curves.aalen_johansen import AalenJohansen, IncidenceCurve
from riskset.curves.comparison import GroupTest
from riskset.curves.followup import Followup
from riskset.curves.kaplan_meier import KaplanMeier, SurvivalCurve
from riskset.curves.life_table import LifeTable
from riskset.data.result_folder import read_object, write_object
from riskset.infer.crossval.result import CrossValidation
from riskset.infer.over_time import EffectOverTime
from riskset.model.penalty import L1, L2, ElasticNet

__all__ = ["CLASSES", "load", "save"]

CLASSES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        AalenJohansen,
        Adjustment,
        ArmCounts,
        ArmCurves,
        Attrition,
        Balance,
        Calibration,
        Controls,
        CrossValidation,
        Diagnostic,
        Diagnostics,
        Discrimination,
        EffectOverTime,
        ElasticNet,
        ErrorModel,
        ErrorPosterior,
        Estimate,
        FollowUpTime,
        Followup,
        GroupTest,
        IncidenceCurve,
        KaplanMeier,
        L1,
        L2,
        LifeTable,
        LikelihoodProfile,
        Note,
        Null,
        NullPosterior,
        Population,
        PropensityScore,
        RiskDifference,
        Side,
        Step,
        Subgroup,
        SurvivalCurve,
        TidyInfo,
        TreatmentCovariates,
    )
}
"""What a folder may hold."""


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
    """
    return read_object(Path(folder), CLASSES)
