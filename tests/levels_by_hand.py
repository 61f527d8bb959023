"""Columns of zeros and ones for levels of categories, made without riskset."""

import numpy as np


def by_hand(frame, names):
    """Columns (n, p) float64 of names such as "age", as it is, and "site=a", 1 where it holds."""
    columns = []
    for name in names:
        column, _, level = name.partition("=")
        columns.append(frame[column] == level if level else frame[column])
    return np.column_stack(columns).astype(float)
