"""Covariates: preparation, balance, and tables of characteristics."""
