"""Likelihood profiles of a study: those that a meta-analysis of several databases needs."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from parameters import rest_is_slow
from riskset.study.steps import estimate_step
from study.small import content, people

CONTROL = {"time": "days", "event": "c", "kind": "negative control"}
OUTCOMES = {"death": {"time": "days", "event": "died"}, "control": CONTROL}
BOTH = ("results", "private")


def both(folder, columns, **changes):
    """What may be shared, and what is private."""
    pq.write_table(pa.table(columns), folder / "people.parquet")
    made = content(**({"outcomes": OUTCOMES, "analyses": {"crude": {}}} | changes))
    rs.study.run(rs.study.Study(made, folder), folder / "out")
    return [rs.study.StudyResults.open(folder / "out" / name) for name in BOTH]


def with_control(n=300, seed=4, **changes):
    columns = people(n, seed)
    return columns | {"c": np.random.default_rng(seed).integers(0, 2, n)} | changes


def with_few(n=300):
    """Two outcomes in each arm, for either."""
    columns = with_control(n)
    for name in ("died", "c"):
        columns[name] = np.zeros(n, dtype=int)
        for drug in (0, 1):
            columns[name][np.flatnonzero(columns["drug"] == drug)[:2]] = 1
    return columns


def profile(results, outcome, **names):
    rows = results.rows("likelihood_profiles", outcome=outcome, **names)
    columns = ("log_hr", "log_likelihood", "derivative")
    return [np.array([row[name] for row in rows]) for name in columns]


def breslow(log_hr, time, event, x):
    """Log partial likelihood of one covariate, by its definition."""
    at_risk = time[:, None] >= time[event]
    sums = [np.log(np.exp(b * x) @ at_risk).sum() for b in log_hr]
    return log_hr * x[event].sum() - np.array(sums)


def check(log_hr, value, slope):
    """From one end to the other, relative to its maximum, with derivatives that are those of it."""
    assert log_hr[0] == -np.log(10)
    assert log_hr[-1] == np.log(10)
    assert np.all(np.diff(log_hr) > 0)
    assert value.max() == 0
    chord = np.diff(value) / np.diff(log_hr)
    slack = 1e-6 * (1 + np.abs(slope).max())
    assert np.all(slope[:-1] >= chord - slack)  # concave
    assert np.all(chord >= slope[1:] - slack)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcomes_and_controls_have_profiles(tmp_path, outcome):
    columns = with_control()
    for found in both(tmp_path, columns, sharing={"blind": False}):
        log_hr, value, slope = profile(found, outcome)
        check(log_hr, value, slope)
        time, event = columns["days"], columns[OUTCOMES[outcome]["event"]] == 1
        expected = breslow(log_hr, time, event, columns["drug"])
        assert value == pytest.approx(expected - expected.max(), abs=1e-9)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_few_outcomes_have_profiles(tmp_path, outcome):
    """With 4 outcomes, whatever the detectable ratio, in what is shared, too."""
    limits = {"max_smd": 10.0, "min_equipoise": 0.0}
    shared, private = both(tmp_path, with_few(), diagnostics=limits)
    (mdrr,) = private.rows("diagnostics", outcome="death", name="mdrr")
    assert mdrr["verdict"] == "fail"
    for found in (shared, private):
        check(*profile(found, outcome))
    (hidden,) = shared.rows("estimates", outcome="death", role="main")
    assert hidden["hr"] is None


def test_outcomes_in_one_arm_have_profiles(tmp_path):
    """The estimate is infinite, and the maximum of the profile at its end."""
    columns = with_control()
    columns["c"][columns["drug"] == 0] = 0
    _, private = both(tmp_path, columns)
    (row,) = private.rows("estimates", outcome="control", role="main")
    assert row["status"] == "events_in_one_arm"
    log_hr, value, slope = profile(private, "control")
    check(log_hr, value, slope)
    assert np.argmax(value) == log_hr.size - 1


@pytest.mark.parametrize(
    ("kind", "outcome"), rest_is_slow(itertools.product(["cox", "finegray"], OUTCOMES), 1)
)
def test_models_with_covariates_have_profiles(tmp_path, outcome, kind):
    columns = with_control()
    model = {"kind": kind, "covariates": "all", "strength": 2.0}
    found, _ = both(tmp_path, columns, analyses={"all": {"model": model}}, sharing={"blind": False})
    log_hr, value, slope = profile(found, outcome)
    check(log_hr, value, slope)
    # The same model without the study: the penalty is per tidy unit, age over its largest value.
    names = ["drug", "x", "age"]
    x = np.column_stack([columns["drug"], columns["x"], columns["age"] / columns["age"].max()])
    y = rs.Surv(columns["days"].astype(float), columns[OUTCOMES[outcome]["event"]])
    penalty = rs.L1(2.0, unpenalized=["drug"])
    direct = rs.Cox(penalty) if kind == "cox" else rs.FineGray(penalty)
    frame = pa.table(dict(zip(names, x.T, strict=True)))
    own = rs.profile(direct, frame, y, "drug", grid=log_hr)
    expected = own.log_likelihood - own.log_likelihood_maximum
    assert value == pytest.approx(expected, abs=1e-6)


def test_a_study_too_imprecise_to_be_read_may_be_pooled(tmp_path):
    """Only the detectable ratio fails: the effect is withheld, and its profile shared."""
    limits = {"max_smd": 10.0, "min_equipoise": 0.0, "max_mdrr": 1.001}
    shared, private = both(tmp_path, with_control(), diagnostics=limits)
    (run,) = shared.rows("runs", outcome="death")
    assert (run["unblind"], run["unblind_for_evidence_synthesis"], run["blinded"]) == (
        False, True, True,
    )  # fmt: skip
    (row,) = shared.rows("estimates", outcome="death", role="main")
    assert row["hr"] is None
    assert shared.rows("likelihood_profiles") == private.rows("likelihood_profiles")
    made = rs.report.write(tmp_path / "out", tmp_path / "page.html")
    page = made.read_text()
    assert "Only the minimum detectable hazard ratio failed" in page
    value = private.rows("likelihood_profiles", outcome="death")[5]["log_likelihood"]
    assert repr(value) not in made.with_suffix(".json").read_text()


@pytest.mark.parametrize("limits", [{"max_smd": 1e-9}, {"max_shared_smd": 1e-9}])
def test_profiles_of_studies_out_of_balance_are_withheld(tmp_path, limits):
    """Profiles of controls are shared: their effects are known."""
    usual = {"max_smd": 10.0, "min_equipoise": 0.0, "max_mdrr": 1e6}
    shared, private = both(tmp_path, with_control(), diagnostics=usual | limits)
    for found in (shared, private):
        (run,) = found.rows("runs", outcome="death")
        assert (run["unblind"], run["unblind_for_evidence_synthesis"]) == (False, False)
    assert {row["outcome"] for row in shared.rows("likelihood_profiles")} == {"control"}
    assert {row["outcome"] for row in private.rows("likelihood_profiles")} == {"death", "control"}


def test_points_that_were_not_found_are_left_out_with_a_note(tmp_path, monkeypatch):
    """As where the fit of the other coefficients does not converge."""

    def with_lost_points(*arguments, **options):
        found = fit(*arguments, **options)
        if found.profile is None:
            return found
        value = found.profile.log_likelihood.copy()
        value[1:4] = np.nan
        return replace(found, profile=replace(found.profile, log_likelihood=value))

    fit = estimate_step._fit
    monkeypatch.setattr(estimate_step, "_fit", with_lost_points)
    _, private = both(tmp_path, with_control())
    check(*profile(private, "death"))
    notes = private.rows("warnings", code="profile_left_out")
    assert sum(note["count"] for note in notes) == len(OUTCOMES)
    assert all(note["message"].startswith("3 of ") for note in notes)
