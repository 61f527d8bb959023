"""Systematic error: calibration with controls, and unmeasured confounding."""
