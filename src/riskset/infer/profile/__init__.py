"""Profile likelihoods: of one coefficient, the others re-optimised while it is held fixed."""

from riskset.infer.profile.curve import (
    ProfileCurve,
    ProfiledFit,
    ProfilePoint,
    check_unpenalized,
)
from riskset.infer.profile.grid import ProfileGrid, adaptive_grid, fixed_grid
from riskset.infer.profile.interval import interval_end, profile_intervals

__all__ = [
    "ProfileCurve",
    "ProfileGrid",
    "ProfilePoint",
    "ProfiledFit",
    "adaptive_grid",
    "check_unpenalized",
    "fixed_grid",
    "interval_end",
    "profile_intervals",
]
