"""Simulations whose truth is known: estimates are biased without weights, and not with them.

The first is that of Havercroft and Didelez (2012, doi:10.1002/sim.5472): the time of the event
under a strategy is drawn from its hazard by inversion of a uniform number U, and the covariate that
decides about deviations depends on U and on earlier treatment. The hazard ratio of the strategies
is thus exactly that of the hazards, although the covariate is a confounder that treatment affects.
"""

import numpy as np
import pandas as pd
import pytest

import riskset as rs

LOG_HR = np.log(0.6)
VISITS = 8


def confounded_by_a_covariate_that_treatment_affects(n, seed):
    """Rows by visit: people decide at the start of a row whether they go on, by their severity."""
    rng = np.random.default_rng(seed)
    arm, u = rng.integers(0, 2, n), rng.random(n)
    time = -np.log(u) / (0.08 * np.exp(LOG_HR * arm))  # a small U means a late event
    severity, followed, parts = np.zeros(n), np.ones(n, dtype=bool), []
    for visit in range(VISITS):
        severity = 0.5 * severity + 2.5 * (u - 0.5) - 0.5 * arm + 0.7 * rng.normal(size=n)
        # In one arm the sick leave, in the other the healthy.
        logit = np.where(arm == 1, -2.2 + 0.9 * severity, -2.2 - 0.7 * severity)
        leaves = rng.random(n) < 1 / (1 + np.exp(-logit))
        part = {
            "person": np.arange(n),
            "arm": arm,
            "start": float(visit),
            "stop": np.minimum(time, visit + 1.0),
            "died": time <= visit + 1,
            "leaves": leaves,
            "severity": severity,
        }
        parts.append(pd.DataFrame(part)[followed])
        followed &= ~leaves & (time > visit + 1)
    return pd.concat(parts, ignore_index=True)


@pytest.mark.slow
def test_weights_undo_the_bias_of_deviations_that_depend_on_a_covariate_over_time():
    rows = confounded_by_a_covariate_that_treatment_affects(40_000, 1)
    y = rs.Surv(rows["stop"], rows["died"], entry=rows["start"])
    options = {"person": rows["person"], "deviates": rows["leaves"], "deviation_at": "start"}
    weighted = rs.cohort.fit_per_protocol(
        rs.cohort.censoring_weights(y, rows["arm"], rows[["severity"]], **options)
    )
    naive = rs.cohort.fit_per_protocol(rs.cohort.censoring_weights(y, rows["arm"], **options))
    # To adjust the outcome model for the covariate is wrong, too: treatment affects it.
    adjusted = rs.cohort.fit_per_protocol(
        rs.cohort.censoring_weights(y, rows["arm"], **options), covariates=rows[["severity"]]
    )
    assert abs(weighted.log_hr - LOG_HR) < 3.5 * weighted.se < 0.15
    assert abs(naive.log_hr - LOG_HR) > 6 * naive.se
    assert abs(adjusted.log_hr - LOG_HR) > 6 * adjusted.se


@pytest.mark.slow
def test_intervals_contain_the_truth_about_as_often_as_they_say():
    runs, covered = 40, 0
    for seed in range(runs):
        rows = confounded_by_a_covariate_that_treatment_affects(1500, 100 + seed)
        weights = rs.cohort.censoring_weights(
            rs.Surv(rows["stop"], rows["died"], entry=rows["start"]),
            rows["arm"],
            rows[["severity"]],
            person=rows["person"],
            deviates=rows["leaves"],
            deviation_at="start",
            time_df=1,
        )
        found = rs.cohort.fit_per_protocol(weights)
        covered += found.lower <= LOG_HR <= found.upper
    assert covered >= 33  # of 38 that are expected; fewer have a probability of 0.3 %


@pytest.mark.slow
def test_clones_have_no_immortal_time_and_weights_undo_their_confounding():
    """A treatment without effect that healthier people start within ten days."""
    rng = np.random.default_rng(2)
    n, grace = 20_000, 10
    severity = rng.normal(size=n)
    time = rng.exponential(1 / (0.03 * np.exp(0.8 * severity)))
    chance = 1 / (1 + np.exp(2.6 + 0.9 * severity))
    days = rng.geometric(chance).astype(float)
    people = pd.DataFrame({"person": np.arange(n), "severity": severity})
    people["time"], people["died"] = np.minimum(time, 30.0), time <= 30
    people["surgery"] = np.where(days < time, days, np.nan)
    rows = rs.split(people, range(1, 30), time="time", event="died", id=None)
    rows = rs.cohort.clone(rows, "surgery", grace=grace, time="time", event="died", entry="entry")
    rows["square"] = rows["severity"] ** 2
    y = rs.Surv(rows["time"], rows["died"], entry=rows["entry"])
    options = {key: rows[key] for key in ("person", "deviates", "at_risk")}
    weighted = rs.cohort.fit_per_protocol(
        rs.cohort.censoring_weights(y, rows["arm"], rows[["severity", "square"]], **options)
    )
    unweighted = rs.cohort.fit_per_protocol(rs.cohort.censoring_weights(y, rows["arm"], **options))
    by_treatment = rs.Cox().fit(
        np.array(people["surgery"] <= grace, dtype=float)[:, None],
        rs.Surv(people["time"], people["died"]),
    )
    assert abs(weighted.log_hr) < 3.5 * weighted.se < 0.2
    assert unweighted.log_hr < -6 * unweighted.se
    assert by_treatment.coef_[0] < -10 * by_treatment.standard_error_[0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [5, 6])
def test_those_who_start_before_the_window_represent_themselves(seed):
    """The sick start on day 5 or 10 of ten days, where late starters represent others.

    The treatment has no effect. Starts follow the model of deviation, at the ends of intervals.
    """
    rng = np.random.default_rng(seed)
    n, grace = 20_000, 10
    severity = rng.normal(size=n)
    chance = 1 / (1 + np.exp(1.0 - severity))
    late = np.where(rng.random(n) < chance, 10, np.inf)
    start = np.where(rng.random(n) < chance, 5, late)
    time = np.ceil(rng.exponential(1 / (0.02 * np.exp(0.8 * severity))))
    people = pd.DataFrame({"person": np.arange(n), "severity": severity})
    people["time"], people["died"] = np.minimum(time, 40.0), time <= 40
    people["surgery"] = np.where(start < people["time"], start, np.nan)
    names = {"time": "time", "event": "died"}
    rows = rs.split(people, range(5, 40, 5), **names, id=None)
    rows = rs.cohort.clone(rows, "surgery", grace=grace, window=5, entry="entry", **names)
    y = rs.Surv(rows["time"], rows["died"], entry=rows["entry"])
    truth = rs.kaplan_meier(rs.Surv(people["time"], people["died"]))["all"].at([20, 40])
    unweighted = rs.kaplan_meier(y, rows["arm"].to_numpy())
    for stabilise in (True, False):
        weights = rs.cohort.censoring_weights(
            y,
            rows["arm"],
            rows[["severity"]],
            person=rows["person"],
            deviates=rows["deviates"],
            at_risk=rows["at_risk"],
            stabilise=stabilise,
        )
        curves = rs.kaplan_meier(y, rows["arm"].to_numpy(), weights.weight)
        for arm in (1, 0):
            assert np.abs(unweighted[arm].at([20, 40]) - truth).min() > 0.03
            assert np.abs(curves[arm].at([20, 40]) - truth).max() < 0.015
        found = rs.cohort.fit_per_protocol(weights)
        assert abs(found.log_hr) < 3.5 * found.se
