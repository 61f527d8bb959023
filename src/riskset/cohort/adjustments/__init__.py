"""Trimming, matching, strata and weights."""
