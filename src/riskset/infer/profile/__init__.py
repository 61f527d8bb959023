"""Profile likelihoods: of one coefficient, the others re-optimised while it is held fixed."""

from riskset.infer.profile.curve import Curve, Point, Source
from riskset.infer.profile.ends import end, profile_intervals
from riskset.infer.profile.grid import Grid, adaptive_grid, fixed_grid

__all__ = [
    "Curve",
    "Grid",
    "Point",
    "Source",
    "adaptive_grid",
    "end",
    "fixed_grid",
    "profile_intervals",
]
