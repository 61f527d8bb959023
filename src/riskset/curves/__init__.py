"""Nonparametric curves (Kaplan-Meier, Aalen-Johansen) and tests between groups."""
