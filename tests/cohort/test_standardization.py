"""Standardised risks and restricted means: R's models, predictions, derivatives, resamples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cohort.golden import table
from reference import GOLDEN, read_json
from riskset.cohort.arms import time_cells
from storages import each_storage

R = read_json(GOLDEN / "standardized.json")
N = 60


def golden_people():
    own = {name: column[:200] for name, column in table("cr_cohort").items()}
    x = np.column_stack([own["x1"], own["x2"]])
    people = rs.cohort.Population(own["treat"], row_id=own["id"])
    return x, people, own["time"], own["status"].astype(int)


@each_storage
@pytest.mark.parametrize(
    ("block", "options"),
    [
        ("cox_ate", {}),
        ("cox_att", {"estimand": "att"}),
        ("causes_ate", {"model": "cause-specific"}),
    ],
)
def test_as_in_r(store, block, options):
    x, people, time, status = golden_people()
    if block.startswith("cox"):
        status = np.minimum(status, 1)
    found = rs.cohort.standardize(
        rs.Surv(time, status), people, store(x), R["times"], tol=1e-12, **options
    )
    wanted = R[block]
    assert found.measures == ("risk", "restricted_mean", "time_lost")
    for arm in ("target", "comparator"):
        assert_allclose(getattr(found, arm), wanted[arm], rtol=1e-8)
        assert_allclose(getattr(found, f"{arm}_se"), wanted[f"{arm}_se"], rtol=1e-5)
    assert_allclose(found.difference_se, wanted["difference_se"], rtol=1e-5)
    assert_allclose(
        found.difference, np.subtract(wanted["target"], wanted["comparator"]), rtol=1e-6
    )
    half = 1.959963984540054 * found.difference_se
    assert_allclose(found.difference_lower, found.difference - half)


def test_fine_and_gray_as_in_r():
    x, people, time, status = golden_people()
    found = rs.cohort.standardize(
        rs.Surv(time + people.row_id * 1e-4, status),
        people,
        x,
        R["times"],
        model="finegray",
        tol=1e-12,
    )
    wanted = R["finegray_ate"]
    assert found.measures == ("risk", "time_lost")
    assert_allclose(found.target, np.array(wanted["target"])[[0, 2]], rtol=1e-6)
    assert_allclose(found.comparator, np.array(wanted["comparator"])[[0, 2]], rtol=1e-6)


def example(seed=3):
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 2, N), rng.normal(size=N)])
    treat = (rng.random(N) < 1 / (1 + np.exp(0.5 * x[:, 1]))).astype(int)
    time = rng.exponential(np.exp(-0.5 * x[:, 0] - 0.4 * x[:, 1] - 0.3 * treat))
    ends = rng.exponential(2.0, N)
    status = np.where(time < ends, np.where(rng.random(N) < 0.7, 1, 2), 0)
    return x, treat, np.minimum(time, ends), status


def of_model(y, x, treat, at, case, model):
    """Risks and areas by one model with the treatment as a covariate, rows counting by `case`."""
    columns = np.column_stack([treat, x])
    made = rs.FineGray(tol=1e-13) if model == "finegray" else rs.Cox(tol=1e-13)
    made.fit(columns, y, sample_weight=case)
    grid = np.append(np.unique(y["time"][y["time"] < at]), at)
    means = []
    for value in (1.0, 0.0):
        free = made.predict_survival_function(np.column_stack([np.full(N, value), x]), grid)
        curve = np.average(free, axis=0, weights=case)
        area = np.diff(grid, prepend=0.0) @ np.append(1.0, curve[:-1])
        means.append([1 - curve[-1], area, at - area])
    return np.array(means)


@pytest.mark.parametrize(("model", "rtol"), [("cox", 1e-5), ("finegray", 2e-2)])
def test_one_model_and_rows_of_a_person(model, rtol):
    x, treat, time, status = example()
    status = np.minimum(status, 1) if model == "cox" else status
    y, at, person = rs.Surv(time, status), 0.8, np.arange(N) // 2
    people = rs.cohort.Population(treat, person_id=person)
    found = rs.cohort.standardize(y, people, x, at, by_arm=False, model=model, tol=1e-12)
    used = [0, 2] if model == "finegray" else [0, 1, 2]
    wanted = of_model(y, x, treat, at, np.ones(N), model)[:, used]
    assert_allclose([found.target[:, 0], found.comparator[:, 0]], wanted, rtol=1e-7)
    slopes = []
    for own in range(N // 2):
        change = 1e-3 * (person == own)
        up, down = (of_model(y, x, treat, at, 1 + s * change, model)[:, used] for s in (1, -1))
        slopes.append((up - down) / 2e-3)
    error = np.sqrt(np.square(slopes).sum(axis=0))
    # The part through G is that of cmprsk::crr, whose sums differ from derivatives by O(1 / n).
    assert_allclose([found.target_se[:, 0], found.comparator_se[:, 0]], error, rtol=rtol)
    both = np.array(slopes)[:, 0] - np.array(slopes)[:, 1]
    assert_allclose(found.difference_se[:, 0], np.sqrt((both**2).sum(axis=0)), rtol=rtol)


def test_order_and_repetition_of_rows():
    x, treat, time, status = example()
    y, options = rs.Surv(time, status), {"model": "cause-specific", "estimand": "atu"}
    found = rs.cohort.standardize(y, rs.cohort.Population(treat), x, [0.3, 0.8], **options)
    order = np.random.default_rng(1).permutation(N)
    other = rs.cohort.standardize(
        y[order], rs.cohort.Population(treat[order]), x[order], [0.3, 0.8], **options
    )
    assert_allclose(other.difference, found.difference, rtol=1e-7)
    assert_allclose(other.difference_se, found.difference_se, rtol=1e-6)
    rows = np.repeat(np.arange(N), 2)
    twice = rs.cohort.standardize(
        y[rows], rs.cohort.Population(treat[rows]), x[rows], [0.3, 0.8], **options
    )
    assert_allclose(twice.difference, found.difference, rtol=1e-7)
    assert_allclose(twice.difference_se, found.difference_se / np.sqrt(2), rtol=1e-6)
    weight = rs.cohort.Population(treat, sampling_weight=np.full(N, 2.0))
    weighted = rs.cohort.standardize(y, weight, x, [0.3, 0.8], **options)
    assert_allclose(weighted.difference, found.difference, rtol=1e-7)
    assert_allclose(weighted.difference_se, found.difference_se, rtol=1e-6)


def test_those_left_by_trimming_are_the_population():
    x, treat, time, status = example()
    y, keep = rs.Surv(time, np.minimum(status, 1)), np.arange(N) % 4 > 0
    some = rs.cohort.restrict(rs.cohort.Population(treat), keep, "some")
    found = rs.cohort.standardize(y, some, x, 0.8)
    alone = rs.cohort.standardize(y[keep], rs.cohort.Population(treat[keep]), x[keep], 0.8)
    assert_allclose(found.difference, alone.difference, rtol=1e-9)
    assert_allclose(found.difference_se, alone.difference_se, rtol=1e-9)


def test_resamples():
    x, treat, time, status = example()
    y, people = rs.Surv(time, np.minimum(status, 1)), rs.cohort.Population(treat)
    options = {"interval": "bootstrap", "replicates": 60, "seed": 4}
    found, again = (rs.cohort.standardize(y, people, x, 0.8, **options) for _ in range(2))
    robust = rs.cohort.standardize(y, people, x, 0.8)
    assert_allclose(found.difference, robust.difference)
    assert_allclose(found.difference_se, robust.difference_se, rtol=0.35)
    assert_allclose(found.difference_lower, again.difference_lower)
    assert found.interval == "bootstrap"
    penalised = rs.cohort.standardize(y, people, x, 0.8, penalty=rs.L2(5.0), replicates=40)
    assert penalised.interval == "bootstrap"
    assert abs(penalised.difference[0, 0] - found.difference[0, 0]) > 1e-4
    assert penalised.difference_lower[0, 0] < penalised.difference[0, 0]


def test_cells_of_time_change_little(monkeypatch):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(1200, 2))
    treat = rng.integers(0, 2, 1200)
    time, ends = rng.exponential(np.exp(-0.5 * x[:, 0] - 0.3 * treat)), rng.exponential(2.0, 1200)
    y = rs.Surv(np.minimum(time, ends), np.where(time < ends, rng.integers(1, 3, 1200), 0))
    people, at = rs.cohort.Population(treat), [0.1, 0.9]
    for model in ("cause-specific", "finegray"):
        exact = rs.cohort.standardize(y, people, x, at, model=model)
        monkeypatch.setattr(time_cells, "MOST_TIMES", 100)
        monkeypatch.setattr(time_cells, "N_CELLS", 150)
        coarse = rs.cohort.standardize(y, people, x, at, model=model)
        monkeypatch.undo()
        assert abs(coarse.target - exact.target).max() > 0
        assert_allclose(coarse.target, exact.target, rtol=5e-4, atol=2e-5)
        off = abs(coarse.difference - exact.difference) / exact.difference_se
        assert off.max() < 2e-2
        assert_allclose(coarse.difference_se, exact.difference_se, rtol=5e-3)


def test_times_after_the_follow_up():
    x, treat, time, status = example()
    y = rs.Surv(time, np.minimum(status, 1))
    late = time[treat == 1].max() + 0.1, time.max() + 1.0
    found = rs.cohort.standardize(y, rs.cohort.Population(treat), x, [0.5, *late])
    assert np.isnan(found.target).tolist() == [[False, True, True]] * 3
    assert np.isnan(found.difference_upper).tolist() == [[False, True, True]] * 3
    assert {note.code for note in found.notes} == {"follow_up_ends"}
    assert "nan" in repr(found)
    assert found.to_frame("pyarrow").num_rows == 9


def test_what_is_refused():
    x, treat, time, status = example()
    people, y = rs.cohort.Population(treat), rs.Surv(time, np.minimum(status, 1))

    def refused(code, y=y, people=people, x=x, **options):
        with pytest.raises(rs.InputError) as error:
            rs.cohort.standardize(y, people, x, 0.8, **options)
        assert getattr(error.value, "code", None) == code or code in error.value.message

    refused("CompetingEvents", rs.Surv(time, status))
    refused("AlreadyAdjusted", people=rs.cohort.weight(people.with_score(np.full(N, 0.5)), "ate"))
    refused("must have a strength", penalty=rs.L1())
    refused("not defined for a model with a penalty", penalty=rs.L1(1.0), interval="robust")
    refused("EmptyArm", people=rs.cohort.Population(np.ones(N, dtype=int)))
    refused("NoEvents", rs.Surv(time, np.where(treat == 1, 0, status > 0).astype(int)))
    refused("InfiniteEstimate", x=np.column_stack([x, (status > 0).astype(float)]))
    refused("BadCovariates", x=rs.Design.from_dense(x, ["treatment", "b"]))


@each_storage
@pytest.mark.parametrize("model", ["cox", "cause-specific", "finegray"])
def test_without_covariates_that_vary_it_is_the_hazard_of_each_arm(store, model):
    x, treat, time, status = example()
    if model == "cox":
        status = np.minimum(status, 1)
    people, y = rs.cohort.Population(treat), rs.Surv(time, status)
    none = rs.cohort.standardize(y, people, x[:, :0], 0.8, model=model)
    constant = rs.cohort.standardize(y, people, store(np.ones((N, 1))), 0.8, model=model)
    for name in ("target", "comparator", "difference_se", "ratio"):
        assert_allclose(getattr(constant, name), getattr(none, name), rtol=1e-12)
    if model != "cox":
        return
    for arm, value in ((treat == 1, none.target), (treat == 0, none.comparator)):
        at = np.unique(time[arm & (status == 1)])
        hazard = [
            (arm & (status == 1) & (time == t)).sum() / (arm & (time >= t)).sum()
            for t in at[at <= 0.8]
        ]
        assert_allclose(value[0], 1 - np.exp(-np.sum(hazard)), rtol=1e-12)


@each_storage
def test_a_covariate_that_is_constant_in_an_arm_is_noted_and_counts_0(store):
    """The model of the comparator is that without it; models of both arms know it."""
    x, treat, time, status = example()
    people, y = rs.cohort.Population(treat), rs.Surv(time, np.minimum(status, 1))
    only_target = np.where(treat == 1, np.arange(N) % 2, 0.1)
    both = store(np.column_stack([x[:, :1], only_target]))
    found = rs.cohort.standardize(y, people, both, 0.8)
    without = rs.cohort.standardize(y, people, x[:, :1], 0.8)
    assert_allclose(found.comparator, without.comparator, rtol=1e-9)
    assert not np.allclose(found.target, without.target, rtol=1e-6)
    (note,) = found.notes
    assert note.code == "constant_in_arm"
    assert len(note.columns) == 1
    assert (
        "is constant in the comparator, so the outcome model of this arm counts 0" in note.message
    )
    assert not rs.cohort.standardize(y, people, both, 0.8, by_arm=False).notes
    assert not without.notes
    more = rs.cohort.doubly_robust(y, people.with_score(np.full(N, 0.5)), both, 0.8)
    assert "constant_in_arm" in [one.code for one in more.notes]


def test_hints_say_what_helps():
    x, treat, time, status = example()
    people = rs.cohort.Population(treat)
    for event, options in ((status == 9, {"by_arm": False}), ((status > 0) & (treat == 1), {})):
        y = rs.Surv(time, event.astype(int))
        with pytest.raises(rs.CohortError, match="has no outcome|have no outcome") as error:
            rs.cohort.standardize(y, people, x, 0.8, **options)
        assert "by_arm" not in str(error.value)
    with pytest.raises(rs.CohortError, match="only one of them has the event"):
        rs.cohort.standardize(y, people, x, 0.8, by_arm=False)
    y, x = rs.Surv(time, np.minimum(status, 1)), np.column_stack([x, (status > 0).astype(float)])
    with pytest.raises(rs.CohortError, match="or use a `penalty`"):
        rs.cohort.standardize(y, people, x, 0.8)


@pytest.mark.parametrize("function", [rs.cohort.standardize, rs.cohort.doubly_robust])
def test_covariates_are_needed(function):
    people = rs.cohort.Population([1, 1, 0, 0])
    with pytest.raises(rs.CohortError, match="the covariates are None") as caught:
        function(rs.Surv([1.0, 2, 3, 4], [1, 0, 1, 0]), people, None, 2)
    assert caught.value.code == "BadCovariates"
