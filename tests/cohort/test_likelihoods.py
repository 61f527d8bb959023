"""Outcome models whose likelihood is not a sum over rows: exact ties and Firth's penalty."""

import csv
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtri

import riskset as rs
from riskset.cohort import fit_outcome
from riskset.cohort.adjustments.adjustment import start
from solve.test_firth import penalized

GOLDEN = Path(__file__).parents[1] / "golden"
EXACT = json.loads((GOLDEN / "exact_ties.json").read_text())


def lung():
    """Complete rows of R's lung data: quarters, event, and the covariates."""
    with (GOLDEN / "lung.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = ("time", "event", "age", "sex", "ph.ecog")
    table = np.array([[float(row[n]) for n in names] for row in rows if row["ph.ecog"] != "NA"])
    return np.ceil(table[:, 0] / 90), table[:, 1].astype(int), table[:, 2:]


def test_exact_ties_are_those_of_r():
    golden = EXACT["lung_quarters"]
    quarter, event, x = lung()
    people = rs.cohort.Population((x[:, 1] == 2).astype(int))
    found = fit_outcome(
        rs.Surv(quarter, event), people, covariates=x[:, [0, 2]], ties="exact", tol=1e-12,
        interval="wald",
    )  # fmt: skip
    place = golden["columns"].index("sex")
    assert_allclose(found.log_hr, golden["coef"][place], rtol=1e-7)
    assert_allclose(found.se, np.sqrt(np.array(golden["vcov"])[place, place]), rtol=1e-6)
    assert_allclose(found.log_likelihood, golden["loglik"][1], rtol=1e-10)
    assert np.isnan(found.proportionality_p)


def test_exact_ties_within_strata_are_those_of_cox():
    quarter, event, x = lung()
    y, strata = rs.Surv(quarter, event), x[:, 2].astype(int)
    people = start(rs.cohort.Population((x[:, 1] == 2).astype(int)))
    sets = replace(people, kind="stratification", estimand="ate", set_id=strata)
    found = fit_outcome(y, sets, ties="exact", tol=1e-12)
    plain = rs.Cox(ties="exact", tol=1e-12).fit(x[:, 1:2] == 2, y, strata=strata)
    assert (found.reading, found.sensitivity) == ("stratified", None)
    assert_allclose(found.log_hr, plain.coef_[0], rtol=1e-9)
    ends = plain.confidence_interval(method="profile")
    assert_allclose((found.lower, found.upper), (ends.lower[0], ends.upper[0]), rtol=1e-9)


@pytest.mark.parametrize("is_target", [True, False])
def test_firth_of_one_outcome_in_closed_form(is_target):
    # With p the share of the target in the risk set, l* is 1.5 log p + 0.5 log(1 - p) + constant.
    n_target, n_comparator = 3, 5
    arms = np.repeat([1, 0], [n_target, n_comparator])
    event = np.zeros(8, dtype=int)
    event[0 if is_target else 7] = 1
    time = np.where(event == 1, 1.0, 2.0)
    found = fit_outcome(rs.Surv(time, event), rs.cohort.Population(arms), firth=True, tol=1e-12)

    def value(b):
        p = n_target * np.exp(b) / (n_target * np.exp(b) + n_comparator)
        p, q = (p, 1 - p) if is_target else (1 - p, p)
        return 1.5 * np.log(p) + 0.5 * np.log(q)

    best = np.log(3 * n_comparator / n_target) if is_target else np.log(n_comparator / n_target / 3)
    assert found.status == "ok"
    assert [note.code for note in found.notes] == ["few_events", "finite_by_penalty"]
    assert_allclose(found.log_hr, best, rtol=1e-9)
    assert_allclose(found.llr, value(best) - value(0.0), rtol=1e-8)
    fall = chdtri(1, 0.05) / 2
    ends = [brentq(lambda b: value(best) - value(b) - fall, best, best + s * 30) for s in (-1, 1)]
    assert_allclose((found.lower, found.upper), ends, rtol=1e-7)
    assert found.interval == "profile"
    plain = fit_outcome(rs.Surv(time, event), rs.cohort.Population(arms))
    assert plain.status == "events_in_one_arm"


def test_firth_with_a_covariate_against_50_digits():
    rng = np.random.default_rng(5)
    n = 30
    arms, z = rng.integers(0, 2, n), rng.normal(size=n)
    time, event = rng.integers(1, 9, n).astype(float), (rng.random(n) < 0.5) & (arms == 1)
    event[np.flatnonzero(arms)[:2]] = True
    found = fit_outcome(
        rs.Surv(time, event.astype(int)), rs.cohort.Population(arms), covariates=z[:, None],
        firth=True, ties="efron", tol=1e-12,
    )  # fmt: skip
    data = {"time": time, "event": event, "weight": np.ones(n), "stratum": np.zeros(n)}
    data["entry"] = np.zeros(n)
    x = np.column_stack([arms, z]).astype(float)

    def at(b, c):
        return float(penalized([Decimal(float(b)), Decimal(float(c))], x, data, efron=True))

    top = at(found.log_hr, found.coef[0])
    without = minimize_scalar(lambda c: -at(0.0, c), bounds=(-4, 4), options={"xatol": 1e-9})
    assert_allclose(found.llr, top + without.fun, rtol=1e-7)
    for end in (found.lower, found.upper):
        other = minimize_scalar(lambda c, b=end: -at(b, c), bounds=(-4, 4), options={"xatol": 1e-9})
        assert_allclose(top + other.fun, chdtri(1, 0.05) / 2, rtol=1e-6)


def test_only_one_reading_has_no_weights():
    rng = np.random.default_rng(2)
    n = 120
    people = rs.cohort.Population(rng.integers(0, 2, n), rng.uniform(0.2, 0.8, n))
    y = rs.Surv(rng.integers(1, 9, n), rng.integers(0, 2, n))
    pairs = rs.cohort.match(people)
    found = fit_outcome(y, pairs, firth=True)
    assert (found.reading, found.sensitivity) == ("stratified", None)
    apart = fit_outcome(y, pairs, firth=True, reading="marginal")
    assert "rows_as_independent" in [note.code for note in apart.notes]
    for adjusted in (rs.cohort.weight(people, "ate"), rs.cohort.stratify(people, 3)):
        with pytest.raises(rs.InputError, match="takes no weights"):
            fit_outcome(y, adjusted, firth=True, reading="marginal")
    sampled = rs.cohort.Population(people.treatment, sampling_weight=rng.uniform(1, 2, n))
    with pytest.raises(rs.InputError, match="sampling weights"):
        fit_outcome(y, sampled, ties="exact")


def test_subgroups_that_separate_have_finite_interactions():
    rng = np.random.default_rng(3)
    n = 80
    arms, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    event = (rng.random(n) < 0.6) & ~((arms == 1) & (group == 1))
    y = rs.Surv(rng.integers(1, 300, n), event.astype(int))
    inside = group[:, None].astype(float)
    plain = fit_outcome(y, rs.cohort.Population(arms), interactions=inside)
    assert plain.subgroups[0].is_separable
    found = fit_outcome(y, rs.cohort.Population(arms), interactions=inside, firth=True)
    (own,) = found.subgroups
    model = rs.Cox(firth=True).fit(np.column_stack([arms, arms * group, group]), y)
    assert_allclose(own.log_ratio, model.coef_[1], rtol=1e-8)
    assert np.isfinite([own.lower, own.upper]).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"firth": True, "ties": "exact"}, "does not fit"),
        ({"firth": True, "interval": "robust"}, "no robust interval for `firth=True`"),
        ({"ties": "exact", "interval": "bootstrap"}, "no bootstrap interval for `ties='exact'`"),
        ({"firth": True, "penalty": rs.L2(1.0)}, "no second penalty"),
        ({"ties": "exact", "penalty": "l1"}, "no cross-validation"),
        ({"firth": True, "profile": "grid"}, "`profile` is not available"),
        ({"ties": "exact", "time_intervals": 3}, "`time_intervals` is not available"),
        ({"firth": True, "model": "finegray"}, "`firth` belongs to the Cox model"),
        ({"ties": "exact", "model": "logistic"}, "`ties` belongs to the Cox model"),
    ],
)
def test_refused(options, words):
    with pytest.raises(rs.InputError, match=words):
        rs.cohort.OutcomeModel(**options)
