"""Power, sample size and the plan of a study."""
