"""What the user has, validated once and immutable after: outcomes, covariates, and their tables."""
