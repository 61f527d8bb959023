"""The empirical null distribution: systematic error as negative and positive controls show it."""
