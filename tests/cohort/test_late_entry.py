"""People who come under observation late: counts, curves, means and models of the arms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.cohort.outcomes import first_gap


def draw(n=300, seed=1, kinds=3):
    """Half of the people enter late; nobody's time ends before."""
    rng = np.random.default_rng(seed)
    arms, score = rng.integers(0, 2, n), rng.uniform(0.2, 0.8, n)
    time = rng.integers(2, 60, n).astype(float)
    entry = np.floor(np.where(rng.random(n) < 0.5, 0.0, rng.uniform(0, 0.9, n) * (time - 1)))
    return arms, score, time, rng.integers(0, kinds, n), entry


def curve(time, status, entry, weight, at):
    """Survival and incidence of the outcome by the definitions, with loops."""
    free, lost, out = 1.0, 0.0, []
    for t in np.unique(time):
        if t > at:
            break
        inside = (entry < t) & (time >= t)
        total = weight[inside].sum()
        here = inside & (time == t)
        lost += free * weight[here & (status == 1)].sum() / total
        free *= 1 - weight[here & (status > 0)].sum() / total
        out.append((t, free, lost))
    return free, lost, out


def area(steps, at, which):
    """Area up to a horizon under a curve of steps."""
    value, before, total = (1.0 if which == 1 else 0.0), 0.0, 0.0
    for step in steps:
        total += value * (step[0] - before)
        before, value = step[0], step[which]
    return total + value * (at - before)


def test_rates_count_the_time_under_observation():
    arms, _, time, status, entry = draw()
    found = rs.cohort.fit_outcome(rs.Surv(time, status, entry), rs.cohort.Population(arms))
    for code, own in ((1, found.target), (0, found.comparator)):
        days = (time - entry)[arms == code].sum()
        assert own.days == days
        events = np.count_nonzero((status == 1) & (arms == code))
        assert_allclose(own.rate, events / days * 365.25 * 1000, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_risks_means_and_curves_by_their_definitions(weighted):
    arms, score, time, status, entry = draw()
    people = rs.cohort.Population(arms, score)
    adjusted = rs.cohort.weight(people, "ate") if weighted else people
    weight = adjusted.weight if weighted else np.ones(arms.size)
    y = rs.Surv(time, status, entry)
    horizon = 40.0
    risks = rs.cohort.risk_difference(y, adjusted, [horizon], interval="robust")
    drawn = rs.cohort.risk_difference(y, adjusted, [horizon], replicates=40)
    means = rs.cohort.restricted_mean(y, adjusted, horizon)
    curves = rs.cohort.incidence(y, adjusted)
    for code, name in ((1, "target"), (0, "comparator")):
        own = arms == code
        free, lost, steps = curve(time[own], status[own], entry[own], weight[own], horizon)
        for found in (risks, drawn):
            assert_allclose(getattr(found, name)[0], lost, rtol=1e-12)
            inside = (entry < horizon) & (time >= horizon) & own
            assert getattr(found, f"{name}_at_risk")[0] == inside.sum()
        assert_allclose(getattr(means, name)[0, 0], area(steps, horizon, 1), rtol=1e-12)
        assert_allclose(getattr(means, name)[1, 0], area(steps, horizon, 2), rtol=1e-12)
        columns = curves.columns([0.0, horizon])
        here = (columns["arm"] == name) & (columns["cause"] == 1)
        assert_allclose(columns["incidence"][here], [0.0, lost], rtol=1e-12)
        assert columns["people_at_risk"][here].tolist() == [
            np.count_nonzero(own & (entry == 0)), np.count_nonzero(inside)
        ]  # fmt: skip
        assert free < 1


def test_standard_errors_are_those_of_the_jackknife():
    arms, score, time, status, entry = draw(120)
    adjusted = rs.cohort.weight(rs.cohort.Population(arms, score), "ate")
    y, horizon = rs.Surv(time, status, entry), 30.0
    h, moved, of_means = 1e-6, [], []
    for i in range(arms.size):
        ends, means = [], []
        for sign in (1, -1):
            weight = adjusted.weight.copy()
            weight[i] *= 1 + sign * h
            of_arms = [
                curve(time[a], status[a], entry[a], weight[a], horizon)
                for a in (arms == 1, arms == 0)
            ]
            ends.append(of_arms[0][1] - of_arms[1][1])
            areas = [area(steps, horizon, 1) for _, _, steps in of_arms]
            means.append(areas[0] - areas[1])
        moved.append((ends[0] - ends[1]) / (2 * h))
        of_means.append((means[0] - means[1]) / (2 * h))
    error = np.sqrt(np.sum(np.square(moved)))
    found = rs.cohort.risk_difference(y, adjusted, [horizon], interval="robust")
    assert_allclose(found.se[0], error, rtol=1e-6)
    error = np.sqrt(np.sum(np.square(of_means)))
    mean = rs.cohort.restricted_mean(y, adjusted, horizon)
    assert_allclose(mean.difference_se[0, 0], error, rtol=1e-6)


def test_resamples_by_hand():
    arms, _, time, status, entry = draw(80)
    people = rs.cohort.Population(arms)
    y, horizon = rs.Surv(time, status, entry), 30.0
    found = rs.cohort.risk_difference(y, people, [horizon], replicates=40, seed=3)
    rng, draws = np.random.default_rng(3), []
    for _ in range(40):
        count = np.bincount(rng.integers(0, 80, 80), minlength=80)
        values = []
        for code in (1, 0):
            own = (arms == code) & (count > 0)
            whole = first_gap(time[own], entry[own]) is None
            values.append(
                curve(time[own], status[own], entry[own], count[own], horizon)[1]
                if whole
                else np.nan
            )
        draws.append(values[0] - values[1])
    good = np.array(draws)[~np.isnan(draws)]
    assert found.n_left_out == 40 - good.size
    assert_allclose(found.lower[0], np.quantile(good, 0.025), rtol=1e-10)


@pytest.mark.parametrize(
    "options",
    [{}, {"model": "cause-specific"}, {"model": "finegray"}, {"firth": True}, {"ties": "exact"}],
    ids=str,
)
def test_models_of_hazards_are_those_of_rows_with_entry(options):
    arms, _, time, status, entry = draw()
    found = rs.cohort.fit_outcome(
        rs.Surv(time, status, entry), rs.cohort.Population(arms), interval="wald", **options
    )
    kind = rs.FineGray if options.get("model") == "finegray" else rs.Cox
    own = {name: value for name, value in options.items() if name != "model"}
    model = kind(cause=1, **own).fit(arms[:, None], rs.Surv(time, status, entry))
    assert found.status == "ok"
    assert_allclose(found.log_hr, model.coef_[0], rtol=1e-10)
    assert_allclose(found.se, model.standard_error_[0], rtol=1e-10)


def test_rates_of_a_poisson_model():
    arms, _, time, status, entry = draw()
    y = rs.Surv(time, status, entry)
    found = rs.cohort.fit_outcome(y, rs.cohort.Population(arms), model="poisson")
    assert_allclose(found.hr, found.target.rate / found.comparator.rate, rtol=1e-8)
    with pytest.raises(rs.InputError, match="logistic model needs people"):
        rs.cohort.fit_outcome(y, rs.cohort.Population(arms), model="logistic")


def test_entries_of_0_are_none():
    arms, score, time, status, _ = draw()
    adjusted = rs.cohort.match(rs.cohort.Population(arms, score))
    plain, late = rs.Surv(time, status), rs.Surv(time, status, np.zeros(time.size))
    a, b = (rs.cohort.fit_outcome(y, adjusted) for y in (plain, late))
    assert (a.log_hr, a.target.days) == (b.log_hr, b.target.days)
    a, b = (rs.cohort.risk_difference(y, adjusted, [20.0], replicates=40) for y in (plain, late))
    assert a.lower[0] == b.lower[0]


def test_follow_up():
    arms, _, time, status, entry = draw()
    found = rs.cohort.followup(rs.Surv(time, status, entry), rs.cohort.Population(arms))
    own = arms == 1
    assert found.days_target == (time - entry)[own].sum()
    assert_allclose(found.target, np.quantile((time - entry)[own], found.shares))
    assert_allclose(found.entry_target, np.quantile(entry[own], found.shares))
    reverse = rs.reverse_kaplan_meier(rs.Surv(time[own], status[own], entry[own]))["all"]
    assert_allclose(found.potential_target[3], reverse.quantile(0.5)[0])


def test_time_that_nobody_is_followed_across():
    arms = np.array([1, 1, 1, 0, 0, 0])
    time = np.array([2.0, 4.0, 9.0, 5.0, 6.0, 9.0])
    for entry, words in (
        ([0.0, 1.0, 4.0, 0.0, 0.0, 0.0], "at risk after 4 days until others enter"),
        ([0.0, 1.0, 2.0, 1.0, 2.0, 3.0], "nobody in the comparator is under observation from"),
    ):
        y, people = rs.Surv(time, [1, 1, 1, 1, 0, 1], entry), rs.cohort.Population(arms)
        for call in (
            lambda: rs.cohort.survival(y, people),  # noqa: B023
            lambda: rs.cohort.restricted_mean(y, people, 8),  # noqa: B023
            lambda: rs.cohort.risk_difference(y, people, 8),  # noqa: B023
        ):
            with pytest.raises(rs.CohortError, match=words) as caught:
                call()
            assert caught.value.code == "LateEntry"
        assert np.isfinite(rs.cohort.fit_outcome(y, people).log_hr)


@pytest.mark.parametrize(
    ("time", "entry", "gap"),
    [
        ([2, 5, 9], [0, 1, 4], None),
        ([2, 5, 9], [0, 1, 5], 5),
        ([9, 5, 2], [6, 1, 0], 5),
        ([2, 3], [0, 0], None),
        ([2, 3], [1, 1], 0),
        ([1, 9, 4], [0, 0, 3], None),
    ],
)
def test_the_first_gap(time, entry, gap):
    assert first_gap(np.array(time, float), np.array(entry, float)) == gap


def test_what_takes_no_late_entry():
    arms, _, time, status, entry = draw()
    y, people = rs.Surv(time, status, entry), rs.cohort.Population(arms)
    for call in (
        lambda: rs.cohort.gray(y, people),
        lambda: rs.cohort.standardize(y, people, arms[:, None] * 0.0 + entry[:, None], [20]),
    ):
        with pytest.raises(rs.CohortError, match="followed from the start"):
            call()
    with pytest.raises(rs.CohortError, match="must not be before the start"):
        rs.cohort.fit_outcome(rs.Surv(time, status, entry - 1), people)
