"""Plots of results: curves, coefficients, hazard ratios, balance, overlap, controls and others.

Every function takes a result, draws it into the Axes given as ``ax`` or into new ones, and returns
the Axes, on which you can go on drawing. A notebook shows new Axes once, as a picture. They belong
to a figure that pyplot does not know, so nothing needs to be closed. Save a plot with
``ax.figure.savefig("plot.pdf")``, as PNG, PDF or SVG. Only this package uses matplotlib.
"""

from riskset.plot._arm_estimates import arm_estimates
from riskset.plot._balance import balance_scatter, love_plot
from riskset.plot._bootstrap import bootstrap_distribution
from riskset.plot._calibration import calibration
from riskset.plot._controls import negative_controls
from riskset.plot._crossval import cross_validation
from riskset.plot._curves import incidence_by_group, survival_by_group
from riskset.plot._forest import forest
from riskset.plot._overlap import propensity_overlap
from riskset.plot._path import coefficient_path
from riskset.plot._predicted import predicted_curves
from riskset.plot._profile import profile_likelihood
from riskset.plot._roc import roc
from riskset.plot._schoenfeld import schoenfeld
from riskset.plot._tipping import tipping_points

__all__ = [
    "arm_estimates",
    "balance_scatter",
    "bootstrap_distribution",
    "calibration",
    "coefficient_path",
    "cross_validation",
    "forest",
    "incidence_by_group",
    "love_plot",
    "negative_controls",
    "predicted_curves",
    "profile_likelihood",
    "propensity_overlap",
    "roc",
    "schoenfeld",
    "survival_by_group",
    "tipping_points",
]
