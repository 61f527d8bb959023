"""Multiple imputation of missing covariates, and the pooling of what completed data sets say.

Values are drawn by chained equations from models that contain all other covariates and the outcome.
Results of the completed data sets are pooled by Rubin's rules.
"""
