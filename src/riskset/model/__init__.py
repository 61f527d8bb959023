"""The mathematics: losses of the linear predictor, penalties, and the baseline hazard."""
