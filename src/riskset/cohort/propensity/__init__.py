"""Propensity scores: models, checks of covariates that determine the treatment, overlap."""
