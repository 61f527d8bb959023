"""Outcome models and the effect of the treatment."""
