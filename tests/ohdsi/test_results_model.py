"""The results data model, and how OHDSI's files number what is in them."""

import csv
import io

import numpy as np
import pytest
from scipy.stats import beta

import riskset as rs
from ohdsi.results_files import FACTS
from reference import GOLDEN
from riskset.ohdsi.preference_density import DensityBars, density_of_bars
from riskset.ohdsi.results_ids import (
    ResultNumbers,
    covariate_number,
    number_of_name,
    target_comparator_id,
)
from riskset.ohdsi.results_model import specification_rows


def test_the_model_is_that_of_ohdsi():
    yes = {"Yes": "yes", "No": "no"}
    own = [
        {
            "table": row["table_name"],
            "column": row["column_name"],
            "type": row["data_type"],
            "required": yes[row["is_required"]],
            "key": yes[row["primary_key"]],
            "small_cell": yes[row["min_cell_count"]],
        }
        for row in specification_rows()
    ]
    theirs = [fact for facts in FACTS.values() for fact in facts]
    assert len(theirs) == 212

    def order(row):
        return tuple(row.values())

    assert sorted(own, key=order) == sorted(theirs, key=order)


def test_every_column_has_a_meaning():
    assert all(row["description"] for row in specification_rows())


def test_numbers_of_comparisons():
    """Those that CohortMethod makes, by R's digest."""
    assert target_comparator_id(1, 2) == 894409308
    assert target_comparator_id(998, 999) == 518658498


def settings(exposures, outcomes=(), analyses=()):
    groups = {"exposures": exposures, "outcomes": outcomes, "analyses": analyses}
    return {"settings": {name: dict(group) for name, group in groups.items()}}


def test_numbers_that_a_specification_has():
    analyses = {
        "1": {},
        "matched": {"eligibility": {"nesting_cohort": 40}},
        "main": {"ohdsi_id": 7},
    }
    exposures = {"new": {"cohort": 11}, "old": {"cohort": 12, "ohdsi_id": 999}}
    numbers = ResultNumbers(settings(exposures, {"bleeding": {"cohort": 3}}, analyses))
    assert numbers.exposures == {"old": 999, "new": 11}
    assert numbers.outcomes == {"bleeding": 3}
    assert numbers.analyses["1"] == 1
    assert numbers.analyses["main"] == 7
    assert numbers.nesting_cohort("matched") == 40
    assert numbers.comparison("new", "old", "1") == target_comparator_id(11, 999)
    assert numbers.comparison("new", "old", "matched") == target_comparator_id(11, 999, 40)


def test_numbers_of_names_do_not_depend_on_other_entries():
    few = ResultNumbers(settings({"new": {}, "old": {}}))
    more = ResultNumbers(settings({"another": {"cohort": 5}, "old": {}, "new": {}, "last": {}}))
    for name in ("new", "old"):
        assert few.exposures[name] == more.exposures[name] == number_of_name("exposure", name)
        assert 0 < few.exposures[name] < 2**31
    assert number_of_name("exposure", "new") != number_of_name("outcome", "new")


def test_two_outcomes_of_one_cohort_have_two_numbers():
    """Such as the same cohort with two times at risk: the first has the number of the cohort."""
    outcomes = {"month": {"cohort": 3}, "year": {"cohort": 3}}
    numbers = ResultNumbers(settings({}, outcomes)).outcomes
    assert numbers == {"month": 3, "year": number_of_name("outcome", "year")}


def test_a_number_that_is_given_twice_is_refused():
    outcomes = {"month": {"ohdsi_id": 3}, "year": {"ohdsi_id": 3}}
    with pytest.raises(rs.InputError, match=r"'year' has the number 3.*'month'"):
        ResultNumbers(settings({}, outcomes))


def test_a_number_that_is_given_and_that_of_a_name_are_refused():
    taken = number_of_name("outcome", "stroke")
    with pytest.raises(rs.InputError, match="'stroke'"):
        ResultNumbers(settings({}, {"bleeding": {"ohdsi_id": taken}, "stroke": {}}))


def test_numbers_of_covariates():
    assert covariate_number("4266809210") == 4266809210
    assert covariate_number("age") == number_of_name("covariate", "age", 53)
    assert 0 < covariate_number("age") < 2**53
    assert covariate_number(str(2**60)) < 2**53
    assert covariate_number("7") == 7
    assert covariate_number("007") == number_of_name("covariate", "007", 53)
    assert covariate_number("9" * 5000) < 2**53


def test_a_name_with_zeros_before_it_is_no_number():
    outcomes = ResultNumbers(settings({}, {"007": {}, "7": {}, "0": {}})).outcomes
    assert outcomes == {
        "007": number_of_name("outcome", "007"),
        "7": 7,
        "0": number_of_name("outcome", "0"),
    }


def bars_of(scores, width=0.01):
    edges = np.linspace(0.0, 1.0, round(1 / width) + 1)
    counts, _ = np.histogram(scores, edges)
    return DensityBars(edges[:-1], edges[1:], counts.astype(float))


@pytest.mark.parametrize(("arm", "a", "b"), [("target", 3, 2), ("comparator", 2, 4)])
def test_densities_are_those_of_r_from_single_scores(arm, a, b):
    """Bars of a hundredth tell the density to one per cent of its largest value."""
    text = (GOLDEN / "ohdsi" / "density.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    score, expected = (np.array([float(row[n]) for row in rows]) for n in ("score", arm))
    n = 400
    bars = bars_of(beta.ppf((np.arange(n) + 0.5) / n, a, b))
    assert np.abs(density_of_bars(bars, score) - expected).max() < 0.01 * expected.max()


def test_quantiles_of_bars_by_hand():
    """People: 2 in [0, 0.2], none in [0.2, 0.5], 6 in [0.5, 1]."""
    bars = DensityBars(
        np.array([0, 0.2, 0.5]), np.array([0.2, 0.5, 1.0]), np.array([2.0, 0.0, 6.0])
    )
    assert [bars.quantile(share) for share in (0.125, 0.25, 0.625, 1.0)] == pytest.approx(
        [0.1, 0.2, 0.75, 1.0]
    )
    # Mean (2 x 0.1 + 6 x 0.75) / 8 = 0.5875; spread within the bars 0.04 / 12 and 0.25 / 12.
    spread = 2 * (0.4875**2 + 0.04 / 12) + 6 * (0.1625**2 + 0.25 / 12)
    assert bars.sd == pytest.approx((spread / 7) ** 0.5)
