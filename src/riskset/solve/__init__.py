"""Solvers: minimise a penalised negative log likelihood, and certify the answer."""
