"""The steps of a run, from covariates to estimates."""
