"""Curves without a model: Kaplan-Meier, Aalen-Johansen, and tests that groups share them."""
