"""The data of LaLonde, and the numbers that pages of MatchIt and WeightIt print for them."""

import csv
import functools

import numpy as np

import riskset as rs
from reference import GOLDEN, read_json

PUBLISHED = read_json(GOLDEN / "cohort" / "lalonde.json")
NAMES = PUBLISHED["names"]


@functools.cache
def columns():
    """Name -> column, with levels of race as zeros and ones."""
    with (GOLDEN / "cohort" / "lalonde.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    own = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    race = own.pop("race")
    found = {name: column.astype(float) for name, column in own.items()}
    levels = {level: (race == level).astype(float) for level in ("black", "hispan", "white")}
    return found | levels | {"race": race}


def covariates(*names):
    return rs.Design.from_columns({name: columns()[name] for name in names or NAMES})


@functools.cache
def scored():
    """People with the scores of an unpenalised logistic regression on all covariates."""
    found = rs.cohort.propensity_score(
        columns()["treat"], covariates(), penalty=None, on_high_correlation="warn", tol=1e-10
    )
    return found.population
