"""Doubly robust risks and restricted means: plain sums over people and times, R, resamples."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.golden import table
from reference import GOLDEN, read_json
from riskset.cohort.arms import time_cells
from storages import each_storage

GOLD = read_json(GOLDEN / "doubly_robust.json")

N = 60
MEASURES = ("risk", "restricted_mean", "time_lost")


def example(seed=3, n=N, *, days=None):
    """Covariates, treatment, times and statuses; with `days`, in whole days with many ties."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 2, n), rng.normal(size=n)])
    treat = (rng.random(n) < 1 / (1 + np.exp(0.5 * x[:, 1]))).astype(int)
    time = rng.exponential(np.exp(-0.5 * x[:, 0] - 0.4 * x[:, 1] - 0.3 * treat))
    ends = rng.exponential(1.5 * np.exp(0.3 * x[:, 1]))
    status = np.where(time < ends, np.where(rng.random(n) < 0.7, 1, 2), 0)
    time = np.minimum(time, ends)
    return x, treat, time if days is None else np.ceil(time * days), status


def score_of(x, treat):
    people = rs.cohort.Population(treat)
    return rs.cohort.propensity_score(people, x, penalty=None, tol=1e-12).people


class Plain:
    """The formula, one person, horizon and time at a time, from predictions of public models."""

    def __init__(self, x, treat, time, status, arm, model, censoring, case=None):
        self.own = treat == arm
        self.x, self.time, self.status, self.arm = x, time, status, arm
        case = np.ones(treat.size) if case is None else case
        rows = self.own & (case > 0)
        y = rs.Surv(time[rows], status[rows])
        given = {"sample_weight": case[rows]}
        self.any = [rs.Cox(cause=1, tol=1e-12).fit(x[rows], y, **given)]
        self.kind = model
        if model == "cause-specific":
            self.any.append(rs.Cox(cause=2, tol=1e-12).fit(x[rows], y, **given))
        if model == "finegray":
            self.any = [
                rs.Cox(tol=1e-12).fit(x[rows], rs.Surv(time[rows], status[rows] > 0), **given)
            ]
            self.sub = rs.FineGray(cause=1, tol=1e-12).fit(x[rows], y, **given)
        self.grid = np.unique(time)
        self.hazards = [m.predict_cumulative_hazard_function(x, self.grid) for m in self.any]
        # Deaths of a day come before those who are censored on it: they are a moment earlier.
        moved = np.where(status > 0, time - 1e-6, time)
        if censoring == "cox":
            y = rs.Surv(moved[rows], status[rows] == 0)
            made = rs.Cox(tol=1e-12).fit(x[rows], y, **given)
            self.free = made.predict_survival_function(x, self.grid)
        else:
            left = [case[rows & (moved >= u)].sum() for u in self.grid]
            out = [case[rows & (time == u) & (status == 0)].sum() for u in self.grid]
            share = np.divide(out, left, out=np.zeros(self.grid.size), where=np.array(left) > 0)
            share[share == 1] = 0
            self.free = np.tile(np.cumprod(1 - share), (treat.size, 1))

    def curves(self, i):
        """S and F of a person at all times."""
        steps = [np.diff(h[i], prepend=0.0) for h in self.hazards]
        total = np.sum(steps, axis=0)
        free = np.exp(-np.cumsum(total))
        if self.kind == "finegray":
            return free, self.sub.predict_cumulative_incidence(self.x[[i]], self.grid)[0]
        before = np.append(1.0, free[:-1])
        rate = np.divide(steps[0], total, out=np.zeros(total.size), where=total > 0)
        return free, np.cumsum(before * (1 - np.exp(-total)) * rate)

    def expected(self, i, u, t):
        """Of somebody without an event by u: risk, time without an event, time lost."""
        free, risk = self.curves(i)

        def at(curve, v, start):
            return np.append(start, curve)[np.searchsorted(self.grid, v, side="right")]

        inner = self.grid[(self.grid > u) & (self.grid < t)]
        ends = np.concatenate([[u], inner, [t]])
        width = np.diff(ends)
        area_s = width @ np.array([at(free, v, 1.0) for v in ends[:-1]])
        area_f = width @ np.array([at(risk, v, 0.0) - at(risk, u, 0.0) for v in ends[:-1]])
        s = at(free, u, 1.0)
        found = np.array([(at(risk, t, 0.0) - at(risk, u, 0.0)) / s, u + area_s / s, area_f / s])
        if self.kind == "finegray":
            found[[0, 2]] = np.clip(found[[0, 2]], 0, [1, t - u])
        return found

    def completed(self, i, t):
        free = np.append(1.0, self.free[i])

        def inverse(v, side):
            return 1 / free[np.searchsorted(self.grid, v, side=side)]

        end, status = self.time[i], self.status[i]
        is_followed = end > t or (end == t and status == 0)
        end = min(end, t)
        is_censored = not is_followed and status == 0
        total = np.zeros(3)
        for u in self.grid[(self.grid < end) | ((self.grid == end) & is_censored)]:
            total += self.expected(i, u, t) * (inverse(u, "right") - inverse(u, "left"))
        if is_censored:
            return self.expected(i, end, t) * inverse(end, "right") - total
        hit = 0.0 if is_followed else float(status == 1)
        return np.array([hit, end, hit * (t - end)]) * inverse(end, "left") - total


def plain(
    x, treat, time, status, times, weight, unit, *, model, censoring, scaled=False, case=None
):
    """Values (2, 3, k) and standard errors of the arms and of the difference."""
    case = np.ones(treat.size) if case is None else case
    unit, weight = unit * case, weight * case
    values, moved = [], []
    for arm in (1, 0):
        one = Plain(x, treat, time, status, arm, model, censoring, case)
        m = np.array([[one.expected(i, 0.0, t) for t in times] for i in range(treat.size)])
        done = np.array([[one.completed(i, t) if one.own[i] else np.zeros(3) for t in times]
                      for i in range(treat.size)])  # fmt: skip
        own = (weight * one.own)[:, None, None]
        scale = own.sum() if scaled else unit.sum()
        rest = (own * (done - m)).sum(axis=0) / scale
        mean = np.average(m, axis=0, weights=unit)
        values.append((mean + rest).T)
        center = (mean, rest) if scaled else (mean + rest, 0.0)
        each = unit[:, None, None] / unit.sum() * (m - center[0]) + own / scale * (
            done - m - center[1]
        )
        moved.append(each.swapaxes(1, 2))
    error = [np.sqrt((one**2).sum(axis=0)) for one in (*moved, moved[0] - moved[1])]
    return np.array(values), error


@each_storage
@pytest.mark.parametrize("days", [None, 6])
@pytest.mark.parametrize("model", ["cox", "cause-specific", "finegray"])
@pytest.mark.parametrize("censoring", ["cox", "kaplan-meier"])
def test_sums_over_people_and_times(store, model, censoring, days):
    x, treat, time, status = example(days=days)
    status = np.minimum(status, 1) if model == "cox" else status
    times = np.array([0.3, 0.8]) * (days or 1)
    people = score_of(x, treat)
    found = rs.cohort.doubly_robust(
        rs.Surv(time, status), people, store(x), times, model=model, censoring=censoring, tol=1e-12
    )
    e = people.score
    weight = np.where(treat == 1, 1 / e, 1 / (1 - e))
    wanted, error = plain(
        x, treat, time, status, times, weight, np.ones(N), model=model, censoring=censoring
    )
    assert found.measures == MEASURES
    assert_allclose([found.target, found.comparator], wanted, rtol=1e-6)
    for name, one in zip(("target", "comparator", "difference"), error, strict=True):
        assert_allclose(getattr(found, f"{name}_se"), one, rtol=1e-6)


@pytest.mark.parametrize(
    ("estimand", "adjust"),
    [
        ("att", lambda people: people),
        ("atu", lambda people: people),
        ("att", lambda people: rs.cohort.match(people, ratio=2)),
        ("ate", lambda people: rs.cohort.stratify(people, 3)),
        ("ato", lambda people: rs.cohort.weight(people, "ato")),
    ],
)
def test_populations_and_weights(estimand, adjust):
    x, treat, time, status = example()
    status = np.minimum(status, 1)
    people = score_of(x, treat)
    made, e = adjust(people), people.score
    given = {"estimand": estimand} if made is people else {}
    found = rs.cohort.doubly_robust(rs.Surv(time, status), made, x, 0.8, tol=1e-12, **given)
    kept = np.ones(N, dtype=bool) if made is people else made.kept
    unit = {"att": treat == 1, "atu": treat == 0, "ate": kept, "ato": e * (1 - e)}[estimand]
    odds = {"att": np.where(treat == 1, 1, e / (1 - e)), "atu": np.where(treat, (1 - e) / e, 1)}
    weight = odds[estimand] if made is people else made.weight
    x, treat, time, status, unit, weight = (
        one[kept] for one in (x, treat, time, status, unit.astype(float), weight)
    )
    wanted, _ = plain(
        x, treat, time, status, [0.8], weight, unit, model="cox", censoring="cox",
        scaled=made is not people,
    )  # fmt: skip
    assert_allclose([found.target, found.comparator], wanted, rtol=1e-6)
    assert found.estimand == estimand


def test_matched_sets_are_corrected_by_predictions():
    """Without censoring: the difference of the outcomes less that of the predictions."""
    x, treat, time, _ = example()
    y, t = rs.Surv(time, np.ones(N, dtype=int)), 0.6
    matched = rs.cohort.match(score_of(x, treat), ratio=1)
    found = rs.cohort.doubly_robust(y, matched, x, t, tol=1e-12)
    target, comparator = matched.arms
    outcome = (time <= t).astype(float)
    model = rs.Cox(tol=1e-12).fit(x[comparator], y[comparator])
    risk = 1 - model.predict_survival_function(x, [t])[:, 0]
    by_hand = outcome[target].mean() - (
        outcome[comparator].mean() + risk[target].mean() - risk[comparator].mean()
    )
    assert_allclose(found.difference[0, 0], by_hand, rtol=1e-9)
    sets = matched.set_id
    moved = np.zeros(N)
    moved[target] = outcome[target] - outcome[target].mean() - risk[target] + risk[target].mean()
    rest = outcome[comparator] - risk[comparator]
    moved[comparator] = -(rest - rest.mean())
    sums = np.array([moved[sets == one].sum() for one in np.unique(sets[matched.kept])])
    assert_allclose(found.difference_se[0, 0], np.sqrt((sums**2).sum()) / target.sum(), rtol=1e-9)


def test_classic_augmented_weighting_of_a_saturated_model():
    """No censoring and one binary covariate: means within its levels, whatever the score says."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 2, N)
    treat = (rng.random(N) < 0.3 + 0.4 * x).astype(int)
    time = rng.exponential(1.0 + x)
    e = np.where(x == 1, 0.6, 0.35)
    y, people = rs.Surv(time, np.ones(N, dtype=int)), rs.cohort.Population(treat, e)
    found = rs.cohort.doubly_robust(y, people, x[:, None], 0.7, tol=1e-12)
    outcome = (time <= 0.7).astype(float)
    for arm, name in ((1, "target"), (0, "comparator")):
        own = treat == arm
        model = rs.Cox(tol=1e-12).fit(x[own, None], y[own])
        m = 1 - model.predict_survival_function(x[:, None], [0.7])[:, 0]
        w = 1 / np.where(arm, e, 1 - e)
        classic = m + own * w * (outcome - m)
        assert_allclose(getattr(found, name)[0, 0], classic.mean(), rtol=1e-9)
        error = classic.std() / np.sqrt(N)
        assert_allclose(getattr(found, f"{name}_se")[0, 0], error, rtol=1e-9)


@pytest.mark.parametrize(("block", "model"), [("cox", "cox"), ("causes", "cause-specific")])
def test_as_in_risk_regression(block, model):
    own = {name: column[:200] for name, column in table("cr_cohort").items()}
    x = np.column_stack([own["x1"], own["x2"]])
    status = own["status"].astype(int)
    y = rs.Surv(own["time"] + own["id"] * 1e-4, np.minimum(status, 1) if model == "cox" else status)
    people = score_of(x, own["treat"])
    found = rs.cohort.doubly_robust(
        y, people, x, GOLD["times"], model=model, by_arm=False, tol=1e-12
    )
    for name, values in GOLD[block].items():
        assert_allclose(getattr(found, name)[0], values, atol=6e-4, err_msg=name)
        if name.endswith("_se"):
            assert_allclose(getattr(found, name)[0], values, rtol=2e-3, err_msg=name)


def test_order_and_repetition_of_rows():
    x, treat, time, status = example(days=6)
    y, options = rs.Surv(time, status), {"model": "cause-specific", "estimand": "att"}
    ids = np.arange(N) + 5
    e = score_of(x, treat).score

    def people(rows, **more):
        return rs.cohort.Population(treat[rows], e[rows], **more)

    found = rs.cohort.doubly_robust(y, people(np.arange(N)), x, [2, 5], **options)
    order = np.random.default_rng(1).permutation(N)
    other = rs.cohort.doubly_robust(y[order], people(order), x[order], [2, 5], **options)
    assert_allclose(other.difference, found.difference, rtol=1e-7)
    assert_allclose(other.difference_se, found.difference_se, rtol=1e-6)
    rows = np.repeat(np.arange(N), 2)
    twice = rs.cohort.doubly_robust(y[rows], people(rows), x[rows], [2, 5], **options)
    assert_allclose(twice.difference, found.difference, rtol=1e-7)
    assert_allclose(twice.difference_se, found.difference_se / np.sqrt(2), rtol=1e-6)
    of_person = people(rows, person_id=rows)
    together = rs.cohort.doubly_robust(y[rows], of_person, x[rows], [2, 5], **options)
    assert_allclose(together.difference_se, found.difference_se, rtol=1e-6)
    sampled = people(np.arange(N), sampling_weight=np.full(N, 2.0))
    weighted = rs.cohort.doubly_robust(y, sampled, x, [2, 5], **options)
    assert_allclose(weighted.difference, found.difference, rtol=1e-7)
    assert_allclose(weighted.difference_se, found.difference_se, rtol=1e-6)
    crossed = [
        rs.cohort.doubly_robust(
            y[rows],
            rs.cohort.Population(treat[rows], row_id=ids[rows]),
            x[rows],
            [2, 5],
            folds=3,
            penalty=rs.L2(2.0),
            **options,
        )
        for rows in (np.arange(N), order)
    ]
    assert_allclose(crossed[1].difference, crossed[0].difference, rtol=1e-6)
    assert_allclose(crossed[1].difference_se, crossed[0].difference_se, rtol=1e-6)


def test_cross_fitting_predicts_by_other_folds():
    x, treat, time, status = example(n=120)
    status = np.minimum(status, 1)
    y, t, n_folds = rs.Surv(time, status), 0.7, 3
    found = rs.cohort.doubly_robust(
        y, rs.cohort.Population(treat), x, t, folds=n_folds, penalty=rs.L2(2.0),
        score_penalty=rs.L2(3.0), censoring="kaplan-meier", seed=9, tol=1e-12,
    )  # fmt: skip
    fold = np.random.default_rng(9).permutation(120) % n_folds
    values = {1: np.zeros(120), 0: np.zeros(120)}
    for code in range(n_folds):
        train, test = fold != code, fold == code
        made = rs.cohort.propensity_score(treat[train], x[train], penalty=rs.L2(3.0), tol=1e-12)
        e = 1 / (1 + np.exp(-made.intercept - x[test] @ made.coef))
        for arm, each in values.items():
            rows = train & (treat == arm)
            model = rs.Cox(rs.L2(2.0), tol=1e-12).fit(x[rows], y[rows])
            rest = rs.reverse_kaplan_meier(rs.Surv(time[rows], status[rows]))["all"]
            steps = np.unique(time)
            steps = steps[steps <= t]
            free = model.predict_survival_function(x[test], [*steps, t])
            open_at = rest.at([*steps - 1e-12, t - 1e-12])
            done = np.zeros(test.sum())
            before = np.concatenate([[1.0], rest.at(steps)])
            for i, k in enumerate(np.flatnonzero(test)):
                expected = (free[i, :-1] - free[i, -1]) / free[i, :-1]
                jump = np.diff(1 / before)
                is_followed = time[k] > t
                if is_followed or status[k]:
                    last = steps < min(time[k], t)
                    level = open_at[-1] if is_followed else open_at[:-1][steps == time[k]][0]
                    done[i] = (not is_followed) / level - (expected * jump)[last].sum()
                else:
                    last = steps <= time[k]
                    now = 1 - free[i, -1] / free[i, :-1][steps == time[k]][0]
                    level = rest.at([time[k]])[0]
                    done[i] = now / level - (expected * jump)[last].sum()
            own = treat[test] == arm
            w = own / np.where(arm, e, 1 - e)
            each[test] = 1 - free[:, -1] + w * (done - 1 + free[:, -1])
    difference = values[1] - values[0]
    assert_allclose(found.difference[0, 0], difference.mean(), rtol=1e-7)
    assert_allclose(found.difference_se[0, 0], difference.std() / np.sqrt(120), rtol=1e-6)
    assert "3 folds" in repr(found)


def test_chosen_penalties():
    x, treat, time, status = example(n=200)
    x = np.column_stack([x, np.random.default_rng(2).normal(size=(200, 6))])
    y = rs.Surv(time, np.minimum(status, 1))
    given = {"folds": 2, "censoring": "kaplan-meier"}
    found = rs.cohort.doubly_robust(
        y, rs.cohort.Population(treat), x, 0.7, penalty="l1", score_penalty="l1", **given
    )
    plain_fit = rs.cohort.doubly_robust(y, rs.cohort.Population(treat), x, 0.7, **given)
    gap = abs(found.difference - plain_fit.difference)
    assert ((gap > 1e-6) & (gap < 2 * plain_fit.difference_se)).all()


def test_cells_of_time_change_little(monkeypatch):
    x, treat, time, status = example(n=900)
    people, y = score_of(x, treat), rs.Surv(time, status)
    for model in ("cause-specific", "finegray"):
        exact, coarse = (
            (
                monkeypatch.setattr(time_cells, "MOST_TIMES", most),
                rs.cohort.doubly_robust(y, people, x, [0.2, 0.8], model=model),
            )[1]
            for most in (2000, 200)
        )
        assert abs(coarse.target - exact.target).max() > 0
        assert_allclose(coarse.target, exact.target, rtol=5e-4)
        off = abs(coarse.difference - exact.difference) / exact.difference_se
        assert off.max() < 5e-3
        assert_allclose(coarse.difference_se, exact.difference_se, rtol=1e-3)


def test_resamples():
    x, treat, time, status = example(n=150)
    y, people = rs.Surv(time, np.minimum(status, 1)), score_of(x, treat)
    options = {"interval": "bootstrap", "replicates": 60, "seed": 4}
    found, again = (rs.cohort.doubly_robust(y, people, x, 0.6, **options) for _ in range(2))
    robust = rs.cohort.doubly_robust(y, people, x, 0.6)
    assert_allclose(found.difference, robust.difference)
    assert_allclose(found.difference_se, robust.difference_se, rtol=0.35)
    assert_allclose(found.difference_lower, again.difference_lower)
    unknown = rs.cohort.doubly_robust(y, rs.cohort.Population(treat), x, 0.6, **options)
    readjusted = rs.cohort.doubly_robust(
        y, people, x, 0.6, readjust=lambda rows: score_of(x[rows], treat[rows]), **options
    )
    assert_allclose(unknown.difference, found.difference, rtol=1e-5)
    assert_allclose(readjusted.difference_se, unknown.difference_se, rtol=0.2)
    assert readjusted.interval == "bootstrap"


def test_counted_rows_are_repeated_rows():
    """A resample by counts has the estimates of its rows."""
    x, treat, time, status = example()
    status = np.minimum(status, 1)
    e = score_of(x, treat).score
    case = np.random.default_rng(6).integers(1, 3, N).astype(float)
    weight = np.where(treat == 1, 1 / e, 1 / (1 - e))
    wanted, _ = plain(
        x, treat, time, status, [0.8], weight, np.ones(N), model="cox",
        censoring="kaplan-meier", case=case,
    )  # fmt: skip
    rows = np.repeat(np.arange(N), case.astype(int))
    found = rs.cohort.doubly_robust(
        rs.Surv(time[rows], status[rows]), rs.cohort.Population(treat[rows], e[rows]), x[rows],
        0.8, censoring="kaplan-meier", tol=1e-12,
    )  # fmt: skip
    assert_allclose([found.target, found.comparator], wanted, rtol=1e-7)


def test_times_after_the_follow_up():
    x, treat, time, status = example()
    status = np.minimum(status, 1)
    for arm in (0, 1):
        status[np.argmax(np.where(treat == arm, time, 0))] = 0
    y, late = rs.Surv(time, status), time[treat == 1].max() + 0.01
    found = rs.cohort.doubly_robust(y, score_of(x, treat), x, [0.5, late, time.max() + 1.0])
    assert np.isnan(found.target).tolist() == [[False, True, True]] * 3
    assert np.isnan(found.difference_upper).tolist() == [[False, True, True]] * 3
    assert {note.code for note in found.notes} == {"follow_up_ends"}
    assert found.to_frame("pyarrow").num_rows == 9


def test_shared_estimates_hide_few_people():
    x, treat, time, status = example(days=6)
    found = rs.cohort.doubly_robust(
        rs.Surv(time, np.minimum(status, 1)), score_of(x, treat), x, [1, 4]
    )
    assert found.target_outcomes[0] >= 5 > found.target_outcomes[0] - 5
    least = int(found.target_outcomes[0]) + 1
    shared = rs.cohort.share_standardized(found, min_cell_count=least)
    assert shared["target"][0] is None
    assert shared["difference"][0] is None
    assert "target_outcomes" not in shared
    assert rs.cohort.share_standardized(found, min_cell_count=0)["target"][0] == found.target[0, 0]
    assert rs.cohort.share_standardized(found, blind=True)["comparator"][1] is None


def test_what_is_refused():
    x, treat, time, status = example()
    scored, y = score_of(x, treat), rs.Surv(time, np.minimum(status, 1))

    def refused(words, y=y, people=scored, x=x, **options):
        with pytest.raises(rs.InputError) as error:
            rs.cohort.doubly_robust(y, people, x, 0.8, **options)
        assert getattr(error.value, "code", None) == words or words in error.value.message

    refused("CompetingEvents", rs.Surv(time, status))
    weighted = rs.cohort.weight(scored, "att")
    refused("AlreadyAdjusted", people=weighted, folds=2)
    refused("are for 'att'", people=weighted, estimand="ate")
    refused("`score_covariates` is for", score_covariates=x)
    refused("`score_penalty` is for", score_penalty=rs.L2(1.0))
    refused("`censoring_covariates` are for", censoring_covariates=x, censoring="kaplan-meier")
    refused("`readjust` adjusts", readjust=lambda rows: scored)
    refused("at least", interval="bootstrap", replicates=5)
    refused("only 60 people", folds=100)
    refused("EmptyArm", people=rs.cohort.Population(np.ones(N, dtype=int)))
    refused("NoEvents", rs.Surv(time, np.where(treat == 1, 0, status > 0).astype(int)))
    refused("InfiniteEstimate", x=np.column_stack([x, (status > 0).astype(float)]))
    refused("Positivity", people=rs.cohort.Population(treat, np.where(treat == 1, 0.0, 0.5)))
    refused("BadCovariates", x=rs.Design.from_dense(x, ["treatment", "b"]))
    only_target = np.zeros(N)
    only_target[np.flatnonzero(treat == 1)[:3]] = 1
    named = rs.Design.from_dense(np.column_stack([x, only_target]), ["a", "b", "new drug"])
    refused(
        "(status 'separated'): 'new drug'.",
        people=rs.cohort.Population(treat), score_covariates=named,
    )  # fmt: skip


def test_covariates_that_nearly_determine_the_treatment():
    """The score that is estimated here does with them what `propensity_score` does."""
    x, treat, time, status = example()
    y, people = rs.Surv(time, np.minimum(status, 1)), rs.cohort.Population(treat)
    close = np.where(np.arange(N) % 10 == 0, 1 - treat, treat).astype(float)
    wide, given = np.column_stack([x, close]), {"censoring": "kaplan-meier"}
    with pytest.raises(rs.CohortError, match="correlation of at least 0.5") as error:
        rs.cohort.doubly_robust(y, people, x, 0.8, score_covariates=wide, **given)
    assert error.value.code == "HighCorrelation"
    for action in ("exclude", "warn"):
        found = rs.cohort.doubly_robust(
            y, people, x, 0.8, score_covariates=wide, on_high_correlation=action, **given
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rs.RisksetWarning)
            score = rs.cohort.propensity_score(
                people, wide, penalty=None, on_high_correlation=action
            ).people
        expected = rs.cohort.doubly_robust(y, score, x, 0.8, **given)
        assert_allclose(found.difference, expected.difference, rtol=1e-6, err_msg=action)
    loose = rs.cohort.doubly_robust(
        y, people, x, 0.8, score_covariates=wide, max_correlation=0.99, **given
    )
    assert_allclose(loose.difference, found.difference, rtol=1e-12)


def test_one_model_may_be_wrong():
    """Of many people, whose risks are known: the normal covariate is left out of each model."""
    rng = np.random.default_rng(12)
    n, t = 30_000, 12.0
    x = np.column_stack([rng.random(n) < 0.4, rng.normal(size=n)]).astype(float)
    treat = (rng.random(n) < 1 / (1 + np.exp(0.3 - 0.6 * x[:, 0] - 0.7 * x[:, 1]))).astype(int)
    risk = [1 - np.exp(-t * 0.03 * np.exp(0.4 * arm + x @ [0.7, 0.8])) for arm in (0, 1)]
    event = rng.exponential(1 / (0.03 * np.exp(0.4 * treat + x @ [0.7, 0.8])))
    ends = rng.exponential(1 / (0.02 * np.exp(0.3 * treat + 0.6 * x[:, 1])))
    y = rs.Surv(np.ceil(np.minimum(event, ends) * 8) / 8, (event <= ends).astype(int))
    truth, people = (risk[1] - risk[0]).mean(), rs.cohort.Population(treat)
    part = x[:, :1]
    right = {"score_covariates": x, "censoring_covariates": x}
    for outcome, others, is_right in (
        (x, right, True),
        (part, right, True),
        (x, right | {"score_covariates": part}, True),
        (x, right | {"censoring_covariates": part}, True),
        (x, {"score_covariates": part, "censoring_covariates": part}, True),
        (part, right | {"score_covariates": part}, False),
    ):
        found = rs.cohort.doubly_robust(y, people, outcome, t, **others)
        off = abs(found.difference[0, 0] - truth) / found.difference_se[0, 0]
        assert (off < 3) == is_right
        assert is_right or off > 10


@pytest.mark.parametrize("function", [rs.cohort.doubly_robust, rs.cohort.standardize])
def test_models_say_nothing_after_the_last_time_of_an_arm_also_if_all_have_an_event(function):
    x, treat, time, status = example()
    status = np.where(treat == 1, 1, np.minimum(status, 1))
    status[np.argmax(np.where(treat == 0, time, 0))] = 0
    late = time[treat == 1].max() + 0.01
    found = function(rs.Surv(time, status), score_of(x, treat), x, [0.5, late])
    assert np.isnan(found.target).tolist() == [[False, True]] * 3
    assert any(note.message.startswith("the follow-up of the target ends") for note in found.notes)
