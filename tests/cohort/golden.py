"""The golden cohorts, and the tolerances that their README states."""

import functools

import numpy as np

import riskset as rs
from reference import GOLDEN, read_json, read_table

FOLDER = GOLDEN / "cohort"
RHC = read_json(FOLDER / "rhc_cohort.json")
TINY = read_json(FOLDER / "tiny.json")
COMPETING = read_json(FOLDER / "cr_cohort.json")
CONTROLS = read_json(FOLDER / "negative_controls.json")
INTERACTIONS = read_json(FOLDER / "interactions.json")
EFFECTS = read_json(FOLDER / "effects.json")

WEIGHT = {"rtol": 1e-10}
HAZARD = {"rtol": 1e-7}
ERROR = {"rtol": 0, "atol": 1e-6}
CURVE = {"rtol": 0, "atol": 1e-12}
SMD = {"rtol": 0, "atol": 1e-10}


def table(name):
    return read_table(FOLDER / f"{name}.csv")


def sets(name, column):
    """Sets of a file, -1 for none."""
    own = table(name)[column]
    if own.dtype == object:
        own = np.array([-1.0 if v == "NA" else float(v) for v in own])
    return own.astype(np.int64)


@functools.cache
def rhc_people():
    own = table("rhc_ps")
    return rs.cohort.Population(own["treat"], own["ps"], row_id=own["id"])


@functools.cache
def rhc_covariates():
    """The 70 covariates of the bundled cohort, by R's names."""
    names = read_json(GOLDEN / "rhc.json")["columns"]
    own = rs.load_rhc().design
    x = own.to_dense()[:, [j for j, name in enumerate(own.names) if name != "swang1"]]
    return rs.Design.from_dense(x, names)


def rhc_outcome():
    own = table("rhc_ps")
    return rs.Surv(own["time"], own["event"].astype(bool))


def sex_age_blocks():
    own = table("rhc_ps")
    return [own["sex_male"], own["age65"]]


@functools.cache
def rhc_matched(name):
    """The matchings of the golden file, by the name of their column."""
    options = {
        "r1": {},
        "r2": {"ratio": 2},
        "r4": {"ratio": 4},
        "unlimited": {"ratio": 0},
        "r1_sex_age65": {"within": sex_age_blocks()},
        "r4_sex_age65": {"ratio": 4, "within": sex_age_blocks()},
        "r1_ps": {"scale": "standardized"},
        "r1_nocal": {"caliper": None},
    }
    return rs.cohort.match(rhc_people(), **options[name])


MATCHINGS = {
    "r1": "ratio1",
    "r2": "ratio2",
    "r4": "ratio4",
    "unlimited": "unlimited",
    "r1_sex_age65": "ratio1_within_sex_age65",
    "r4_sex_age65": "ratio4_within_sex_age65",
    "r1_ps": "ratio1_ps_scale_0.2sd",
    "r1_nocal": "ratio1_no_caliper",
}
"""Column of the sets -> block of the golden file."""

STRATA = {
    "s5_all": ("all5", 5, "all"),
    "s10_all": ("all10", 10, "all"),
    "s5_target": ("target5", 5, "target"),
    "s10_target": ("target10", 10, "target"),
    "s10_comparator": ("comparator10", 10, "comparator"),
}


@functools.cache
def rhc_strata(name, weighting=None):
    _, k, base = STRATA[name]
    if base == "comparator" and weighting is None:
        weighting = "att"  # as the golden file has it
    return rs.cohort.stratify(rhc_people(), k, base, weighting=weighting)


WEIGHTS = {
    "ate": {"estimand": "ate"},
    "ate_stab": {"estimand": "ate", "stabilise": True},
    "att": {"estimand": "att"},
    "att_stab_cohortmethod": {"estimand": "att", "stabilise": "cohortmethod"},
    "atu": {"estimand": "atu"},
    "ato": {"estimand": "ato"},
    "matching": {"estimand": "matching"},
    "ate_stab_truncated_p99": {"estimand": "ate", "stabilise": True, "truncate": "p99"},
    "ate_stab_truncated_3": {"estimand": "ate", "stabilise": True, "truncate": 3},
}


@functools.cache
def rhc_weighted(name):
    return rs.cohort.weight(rhc_people(), **WEIGHTS[name])


TRIMS = {
    "symmetric_0.05": ("symmetric_0.05", {"symmetric": 0.05}),
    "symmetric_0.1": ("symmetric_0.1", {"symmetric": 0.1}),
    "asymmetric_0.05": ("asymmetric_0.05", {"asymmetric": 0.05}),
    "reverse_asymmetric_0.05": ("reverse_asymmetric_0.05", {"reverse_asymmetric": 0.05}),
    "common_range": ("common_range", {"overlap": True}),
    "equipoise_0.3_0.7": ("equipoise", {"equipoise": (0.3, 0.7)}),
    "max_weight_3_ate_stab": ("max_weight_3", {"max_weight": 3}),
    "crump_optimal": ("crump", {"crump": True}),
}
"""Block of the golden file -> column of the kept rows, options."""


@functools.cache
def rhc_trimmed(name):
    options = TRIMS[name][1]
    if "max_weight" in options:
        options = {**options, "weights": rhc_weighted("ate_stab")}
    return rs.cohort.trim(rhc_people(), **options)
