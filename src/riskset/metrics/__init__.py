"""Metrics of predictions, for survival and for competing risks."""

from riskset.metrics._auc import AUC, auc
from riskset.metrics._brier import BrierScore, brier_score
from riskset.metrics._calibration import Calibration, calibration
from riskset.metrics._concordance import Concordance, concordance, concordance_of
from riskset.metrics._roc import ROC, roc

__all__ = [
    "AUC",
    "ROC",
    "BrierScore",
    "Calibration",
    "Concordance",
    "auc",
    "brier_score",
    "calibration",
    "concordance",
    "concordance_of",
    "roc",
]
