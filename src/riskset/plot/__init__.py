"""Plots: curves by group, coefficient paths, cross-validation, hazard ratios and others.

Every function returns a `matplotlib.figure.Figure` without a window. Save it with
``figure.savefig("path.png", dpi=200)``. Only this package uses matplotlib.
"""

from matplotlib.figure import Figure

from riskset.plot._bootstrap import bootstrap_distribution
from riskset.plot._crossval import cross_validation
from riskset.plot._curves import incidence_by_group, survival_by_group
from riskset.plot._models import coefficient_path, hazard_ratios, survival_curves
from riskset.plot._profile import profile_likelihood
from riskset.plot._timings import Panel, time_bars, time_curves, time_dots

__all__ = [
    "Figure",
    "Panel",
    "bootstrap_distribution",
    "coefficient_path",
    "cross_validation",
    "hazard_ratios",
    "incidence_by_group",
    "profile_likelihood",
    "survival_by_group",
    "survival_curves",
    "time_bars",
    "time_curves",
    "time_dots",
]
