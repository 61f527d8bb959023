"""The default covariates of Eunomia's GiBleed data against CohortMethod's published results.

``golden/omop/gibleed_covariates.csv`` has the covariates of celecoxib and diclofenac that
CohortMethod 6.0.2 and FeatureExtraction found: their ids, checksums of their names, the share or
mean in each arm (empty where it stands for fewer than five people), and the standardised difference
before adjustment, all at three decimals.
"""

import csv
import hashlib

import numpy as np
import pytest

import riskset as rs
from gibleed import CELECOXIB, DICLOFENAC, GIBLEED, needs_gibleed
from reference import GOLDEN

pytestmark = needs_gibleed

HALF = 0.0005 + 1e-9
"""Of the last decimal."""


@pytest.fixture(scope="module")
def found():
    """The covariates, the arm of each row, and their values by id."""
    arms = (rs.omop.ConceptSet([concept], descendants=False) for concept in (CELECOXIB, DICLOFENAC))
    rules = rs.omop.Eligibility(remove_duplicates="remove all", washout_days=183)
    with rs.omop.Cdm(GIBLEED) as cdm:
        episodes = rs.omop.NewUserCohort(*arms, source="drug_era").read(cdm)
        cohort = rules.select(cdm, episodes)
        covariates = rs.omop.Covariates.extract(cdm, cohort)
        dense = covariates.design().to_dense()
    return covariates, cohort.table.column("treatment").to_numpy(), dense


@pytest.fixture(scope="module")
def expected():
    with (GOLDEN / "omop" / "gibleed_covariates.csv").open(encoding="utf-8") as file:
        return {int(row["covariate_id"]): row for row in csv.DictReader(file)}


def test_ids_and_names(found, expected):
    covariates, treatment, _ = found
    assert ((treatment == 1).sum(), (treatment == 0).sum()) == (1797, 830)
    assert len(expected) == 388
    assert set(covariates.ids) == set(expected)
    for number, name in zip(covariates.ids, covariates.names, strict=True):
        # Of blanks in a row, with which FeatureExtraction pads age groups, one counts.
        checksum = hashlib.sha256(name.encode()).hexdigest()[:12]
        assert checksum == expected[number]["name_sha256"], (number, name)


def test_means_and_differences(found, expected):
    covariates, treatment, dense = found
    for number, values in zip(covariates.ids, dense.T, strict=True):
        row = expected[number]
        arms = [values[treatment == arm] for arm in (1, 0)]
        for arm, name in zip(arms, ("target", "comparator"), strict=True):
            share = row[f"{name}_mean"]
            if share:
                assert abs(arm.mean() - float(share)) <= HALF, (number, name)
            else:
                assert 0 < np.count_nonzero(arm) < 5, (number, name)
        spread = np.sqrt((arms[0].var() + arms[1].var()) / 2)
        difference = (arms[0].mean() - arms[1].mean()) / spread if spread else 0.0
        assert abs(difference - float(row["std_diff"])) <= HALF, number


def test_the_largest_imbalance_is_the_charlson_index(expected):
    largest = max(expected.values(), key=lambda row: abs(float(row["std_diff"])))
    assert (largest["covariate_id"], largest["std_diff"]) == ("1901", "0.343")
