"""The search finds what a fine grid finds, on functions that are known and on cohorts."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import PchipInterpolator

import riskset as rs
from parameters import rest_is_slow
from riskset.infer.crossval.line_search import SearchGrid, maximise, strongest_within

STEP, TOL = math.log(10) / 2, math.log(1.1)


def search(function, start, lower=-6.0, upper=6.0):
    points = []

    def counted(x):
        points.append(x)
        return function(x)

    peak = maximise(counted, start, lower, upper, step=STEP, grid=SearchGrid(TOL))
    assert len(set(points)) == len(points)
    assert peak.best in points
    assert function(peak.best) == max(map(function, points))
    for neighbour in (peak.low, peak.high):
        assert neighbour in points
        assert abs(neighbour - peak.best) <= TOL * (1 + 1e-9)
    return peak, len(points)


@pytest.mark.parametrize("start", [-5.0, -1.0, 0.3, 2.0, 5.5])
@pytest.mark.parametrize("top", [-2.0, 0.0, 1.234])
@pytest.mark.parametrize(
    "shape",
    [
        lambda d: -(d**2),
        lambda d: -abs(d),
        lambda d: -(d**2) * (3 if d > 0 else 1),
        lambda d: -(math.exp(d) - d),
        lambda d: -math.log(1 + d**2),
    ],
)
def test_peaks_are_found_with_few_evaluations(start, top, shape):
    peak, n = search(lambda x: shape(x - top), start)
    assert peak.low <= top <= peak.high or abs(peak.best - top) <= TOL
    assert n <= 16


def test_a_parabola_needs_six_points():
    _, n = search(lambda x: -((x - 0.4) ** 2), 0.0)
    assert n <= 7


def test_dear_points_beyond_the_top_are_not_visited():
    """Scores of 8,242 events and 7,809 covariates, a fit each of which takes 0.1 s at the top and
    20 s half a decade below the last point of the first steps down."""
    log_strength = [1.58, 2.73, 2.95, 3.04, 3.14, 3.88, 5.03, 6.18, 7.33]
    score = [-8076.20, -7952.72, -7946.78, -7945.91, -7946.15, -7989.36, -8126.03, -8221.51, -8222]
    curve = PchipInterpolator(log_strength, score)
    visited = []

    def function(x):
        visited.append(x)
        return float(curve(x))

    for start in (5.03, 6.18, 5.5, 4.7):
        visited.clear()
        peak = maximise(function, start, 1.58, 7.33, step=STEP, grid=SearchGrid(TOL))
        assert abs(peak.best - 3.04) <= TOL
        assert min(visited) > 2.1
        assert len(visited) <= 10


def test_noise_does_not_lead_astray():
    rng = np.random.default_rng(3)
    for _ in range(30):
        phase, top = rng.uniform(0, 6), rng.uniform(-2, 2)
        peak, n = search(lambda x: -((x - top) ** 2) + 1e-3 * math.sin(40 * x + phase), 0.0)  # noqa: B023
        assert abs(peak.best - top) < 0.2
        assert n <= 20


def test_a_flat_start_is_left():
    """Above some strength every model is the null model."""
    peak, _ = search(lambda x: -((min(x, 2.0) + 1) ** 2), 5.0)
    assert abs(peak.best + 1) <= TOL


def test_equal_values_are_no_end():
    """The null model is as good a little weaker, and better than what a step of a search sees."""
    # The second step up ends on the plateau, the third at the edge.
    peak = maximise(
        lambda x: 0.0 if x > 3.8 else 0.3 - 3 * (x - 3.4) ** 2,
        4.0 - 2 * STEP,
        -6.0,
        4.0 + 1e-4,
        step=STEP,
        grid=SearchGrid(TOL),
    )
    assert abs(peak.best - 3.4) <= TOL


@pytest.mark.parametrize(("slope", "edge"), [(1.0, 6.0), (-1.0, -6.0)])
def test_edges(slope, edge):
    peak = maximise(lambda x: slope * x, 0.5, -6.0, 6.0, step=STEP, grid=SearchGrid(TOL))
    assert peak.best == edge


def test_scores_of_minus_infinity_are_walked_around():
    peak = maximise(
        lambda x: -(x**2) if x > -1 else -math.inf, 1.0, -6.0, 6.0, step=STEP, grid=SearchGrid(TOL)
    )
    assert abs(peak.best) <= TOL


def test_last_digits_of_scores_do_not_move_the_answer():
    """Scores differ by 1e-9 between processors, so the top of a parabola moves by up to 1e-5."""
    rng = np.random.default_rng(3)
    for top in rng.uniform(2, 6, size=200):
        start, grid = 4.1, SearchGrid(TOL)

        def score(x, top=top):
            return -200 * (x - top) ** 2 / (1 + abs(x - top))

        def rounded(x, score=score):
            return score(x) + 1e-9 * rng.uniform(-1, 1)

        exact = maximise(score, start, 1.58, 7.33, step=STEP, grid=grid)
        assert maximise(rounded, start, 1.58, 7.33, step=STEP, grid=grid) == exact
        assert abs(exact.best - top) <= TOL


def test_a_start_is_evaluated_as_it_was_given():
    seen = []
    start = math.log(7.3)
    maximise(
        lambda x: seen.append(x) or -x, start, 0.0, 6.0, step=STEP, grid=SearchGrid(TOL, start)
    )
    assert start in seen
    distances = (np.array(seen) - start) / TOL * 10
    assert (np.isclose(distances, np.round(distances), atol=1e-9) | (np.array(seen) == 0)).all()


def test_strongest_within_a_distance():
    found = strongest_within(lambda x: -(x**2), 0.0, -2.0, 6.0, step=STEP, grid=SearchGrid(TOL))
    assert math.sqrt(2) - TOL <= found <= math.sqrt(2)
    assert strongest_within(lambda _: 0.0, 0.0, -2.0, 6.0, step=STEP, grid=SearchGrid(TOL)) == 6.0


# ------------------------------------------------------------------------------------ cohorts


def cohort(seed, n=200, p=8):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    effects = np.where(np.arange(p) < 3, 0.5, 0.0)
    time = rng.exponential(np.exp(-x @ effects))
    return x, rs.Surv(time, rng.random(n) < 0.6)


@pytest.mark.parametrize("kind", rest_is_slow([rs.L1(), rs.L2(), rs.ElasticNet(l1_ratio=0.5)], 1))
@pytest.mark.parametrize("seed", rest_is_slow([1, 2], 1))
def test_the_search_finds_the_best_of_a_fine_grid(kind, seed):
    x, y = cohort(seed)
    settings = {"folds": 5, "repeats": 2, "tol_replicates": 1e-9}
    found = rs.CoxCV(kind, **settings).fit(x, y)
    best = found.best_penalty_.strength
    fine = best * np.geomspace(1 / 30, 30, 80)
    grid = rs.CoxCV(kind, penalties=list(fine), **settings).fit(x, y)
    # Not worse than the best of the grid but for what a bracket of 10 % can hide.
    spread = np.ptp(grid.cross_validation_.mean)
    assert found.best_score_ >= grid.best_score_ - 0.01 * spread
    assert abs(math.log(best / grid.best_penalty_.strength)) <= 2 * TOL + math.log(
        fine[1] / fine[0]
    )
    assert len(found.cv_curve_) <= 14
    result = found.cross_validation_
    near = result.strengths / best
    assert ((near > 1) & (near < 1.1001)).any()
    assert ((near < 1) & (near > 1 / 1.1001)).any()


@pytest.mark.parametrize("seed", rest_is_slow([1, 3, 5, 8], 1))
def test_the_first_of_many_repetitions_looks_around(seed):
    """What is chosen is best in all repetitions, of all that was tried."""
    x, y = cohort(seed, n=150, p=20)
    searched = rs.CoxCV(folds=3, repeats=6, seed=seed).fit(x, y)
    found = searched.cross_validation_
    assert set(found.n_replicates) == {3, 18}
    given = [float(s) for s in found.strengths]
    every = rs.CoxCV(folds=3, repeats=6, seed=seed, penalties=given).fit(x, y).cross_validation_
    first = rs.CoxCV(folds=3, repeats=1, seed=seed, penalties=given).fit(x, y).cross_validation_
    assert every.strengths[every.chosen] == found.strengths[found.chosen]
    assert found.mean.max() == found.mean[found.best]
    assert_allclose(found.scores[:, :3], first.scores, atol=1e-3)
    of_first = found.se[found.best] * first.se / first.se[found.best]
    assert_allclose(found.se[~found.is_complete], of_first[~found.is_complete], atol=1e-3)
    assert_allclose(found.mean[found.is_complete], every.mean[found.is_complete], atol=1e-3)
    assert np.isnan(found.scores[~found.is_complete, 3:]).all()
    of_first = found.mean[found.best] + first.mean - first.mean[found.best]
    assert_allclose(found.mean[~found.is_complete], of_first[~found.is_complete], atol=1e-3)
    frame = searched.cv_results_
    assert len(frame) == found.n_replicates.sum()
    assert np.isfinite(frame["score"]).all()
    assert f"up to {18} replicates" in repr(found)


def test_one_standard_error_is_the_strongest_within_it():
    x, y = cohort(3, n=900)
    # Halves of one size, so that scores vary little between folds.
    best = rs.CoxCV(folds=2, repeats=3, stratify=True).fit(x, y)
    model = rs.CoxCV(folds=2, repeats=3, stratify=True, rule="1se").fit(x, y)
    found = model.cross_validation_
    assert found.mean[found.best] == best.best_score_
    least = found.mean[found.best] - found.se[found.best]
    assert model.best_score_ >= least
    stronger = found.strengths > model.best_penalty_.strength
    assert (found.mean[stronger] < least).all()
    assert found.strengths[stronger].min() <= 1.1001 * model.best_penalty_.strength


def test_shares_of_l1_are_searched_for():
    x, y = cohort(4)
    settings = {"folds": 5, "repeats": 1, "tol_replicates": 1e-9}
    searched = rs.CoxCV(l1_ratio="auto", **settings).fit(x, y)
    grid = rs.CoxCV(l1_ratio=list(np.linspace(0, 1, 11)), **settings).fit(x, y)
    spread = np.ptp(grid.cross_validation_.mean)
    assert searched.best_score_ >= grid.best_score_ - 0.01 * spread
    assert len(searched.cv_curve_) < len(grid.cv_curve_)


def test_the_edge_of_a_search_is_noted():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(150, 5)), rs.Surv(rng.exponential(size=150), rng.random(150) < 0.7)
    model = rs.CoxCV(folds=5, repeats=4).fit(x, y)  # nothing has an effect
    (note,) = [n for n in model.notes_ if n.code == "edge_of_search"]
    assert "strongest" in note.message
    assert (model.coef_ == 0).all()
    assert model.status_ == "converged"
    z = rng.normal(size=(300, 2))
    y = rs.Surv(rng.exponential(np.exp(-z.sum(1))), np.ones(300, int))
    model = rs.CoxCV(penalties=[100.0, 50.0, 10.00012], folds=5, repeats=1).fit(z, y)
    (note,) = [n for n in model.notes_ if n.code == "edge_of_search"]
    assert "weakest penalty that was tried (L1(10.0))" in note.message
    assert model.best_penalty_.l1 == 10.00012
    one = rs.CoxCV(penalties=[10.0], folds=5, repeats=1).fit(z, y)
    assert not [n for n in one.notes_ if n.code == "edge_of_search"]


@pytest.mark.parametrize("start", [1e300, 1e3, 1e-300])
def test_a_start_outside_the_range_is_told_and_not_used(start):
    x, y = cohort(1, n=100, p=20)
    settings = {"folds": 5, "repeats": 1}
    usual = rs.CoxCV(**settings).fit(x, y)
    model = rs.CoxCV(start=start, **settings).fit(x, y)
    assert model.best_penalty_ == usual.best_penalty_
    (note,) = [n for n in model.notes_ if n.code == "start_of_search"]
    assert f"did not start at the strength {start:.4g}" in note.message
    inside = rs.CoxCV(start=usual.best_penalty_.strength, **settings).fit(x, y)
    assert "start_of_search" not in {n.code for n in inside.notes_}


@pytest.mark.parametrize(("seed", "share"), rest_is_slow([(11, 0.99), (17, 0.9), (23, 0.7)], 1))
def test_a_start_beside_the_null_model_does_not_end_there(seed, share):
    x, y = cohort(seed, n=60, p=20)
    strongest = rs.path(rs.Cox(rs.L1(1.0)), x, y, n_penalties=2).strengths[0]
    settings = {"folds": 5, "repeats": 1}
    model = rs.CoxCV(start=share * strongest, **settings).fit(x, y)
    grid = rs.CoxCV(penalties=list(strongest * np.geomspace(1, 1e-2, 40)), **settings).fit(x, y)
    assert grid.best_penalty_.strength < 0.9 * strongest
    assert model.best_score_ >= grid.best_score_ - 0.01


@pytest.mark.parametrize(
    "given", rest_is_slow([{"search": "grid"}, {"rule": "1se"}, {"start": 5.0}], 1)
)
def test_the_strongest_penalty_leaves_the_unpenalised_covariates_alone(given):
    kind = rs.L1(unpenalized=[3, 5])
    for seed in range(8):
        x, y = cohort(seed, n=300, p=12)
        found = rs.CoxCV(kind, folds=3, repeats=1, **given).fit(x, y).cross_validation_
        strongest = rs.path(rs.Cox(kind), x, y, n_penalties=2).strengths[0]
        at_top = found.strengths >= strongest * (1 - 1e-9)
        assert (found.n_nonzero[at_top] == 2).all()
        assert given != {"search": "grid"} or at_top.any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"search": "automatic"}, "`search` must be 'auto' or 'grid'"),
        ({"rule": "max"}, "`rule` must be 'min' or '1se'"),
        ({"n_penalties": 1}, "`n_penalties` must be a whole number of at least 2"),
        ({"min_ratio": 1.0}, "`min_ratio` must be between 0 and 1"),
        ({"start": 0}, "`start` must be a positive number"),
        ({"l1_ratio": 1.5}, "`l1_ratio` must be 'auto' or numbers between 0 and 1"),
        ({"l1_ratio": "some"}, "`l1_ratio` must be 'auto' or numbers"),
        ({"penalties": []}, "`penalties` is empty"),
        ({"penalties": 3.0}, "must be a sequence of penalties or strengths, not 3.0"),
        ({"penalties": [1.0], "l1_ratio": 0.5}, "`l1_ratio` was given together with `penalties`"),
        ({"penalties": [1.0], "start": 2.0}, "`start` was given together with `penalties`"),
        (
            {"penalties": [1.0], "n_penalties": 20},
            "`n_penalties` was given together with `penalties`",
        ),
        ({"penalties": [1.0], "min_ratio": 0.1}, "`min_ratio` was given together with `penalties`"),
        ({"penalties": [1.0], "search": "grid"}, "`search` was given together with `penalties`"),
        ({"search": "grid", "start": 2.0}, "`start` is 2.0, but .* `search='auto'` alone"),
        ({"n_penalties": 20}, "`n_penalties` is 20, but .* `search='grid'` alone"),
        ({"censoring": "full"}, "`censoring` is 'full', but a Cox model estimates no"),
        ({"penalty": rs.L1(unpenalized=range(8))}, "no penalised covariate carries"),
    ],
)
def test_what_cannot_be_searched(given, message):
    x, y = cohort(1)
    with pytest.raises(rs.InputError, match=message):
        rs.CoxCV(folds=3, repeats=1, **given).fit(x, y)


# ------------------------------------------------------------------ scores that choose nothing


@pytest.mark.parametrize("noise", [0.0, 1e-16])
@pytest.mark.parametrize("chooser", [rs.CoxCV, rs.FineGrayCV])
@pytest.mark.parametrize("search", ["auto", "grid"])
def test_where_the_gradient_is_0_the_null_model_is_the_answer(chooser, search, noise):
    """x and z are balanced exactly, or but for the last bit; the treatment, if any, is not."""
    x = np.tile([1.0, -1.0], 60)
    z = np.repeat([0.1, -0.1], 2)[np.arange(120) % 4] * (1 + noise * np.arange(120))
    time, event = np.repeat(np.arange(1.0, 31.0), 4), np.repeat(np.arange(30) % 2, 4)
    y = rs.Surv(time, event)
    columns = np.column_stack([x, z])
    found = chooser(rs.L1(), folds=5, repeats=2, search=search).fit(columns, y)
    np.testing.assert_allclose(found.coef_, 0, atol=1e-12)
    assert found.status_ == "converged"
    assert found.notes_[0].code == "no_signal"
    # The strengths are those that training rows have, not those of rounding.
    assert 1e-4 < found.best_penalty_.l1 < 20
    assert np.isfinite(found.best_score_)
    treatment = np.repeat(np.arange(30) % 3 == 0, 4) * 1.0
    kept = chooser(rs.L1(unpenalized=[2]), folds=5, repeats=1, search=search)
    kept.fit(np.column_stack([columns, treatment]), y)
    np.testing.assert_allclose(kept.coef_[:2], 0, atol=1e-12)
    assert abs(kept.coef_[2]) > 1e-3
    assert kept.notes_[0].code == "no_signal"


@pytest.mark.parametrize("strata", [None, np.arange(40) % 2])
def test_a_row_by_itself_has_no_held_out_score(strata):
    x, y = cohort(1)
    x, y = x[:40], y[:40]
    folds = np.arange(40) if strata is None else np.arange(40) // 2  # one row of each stratum
    message = "a single row" if strata is None else "at most one row of each stratum"
    for model in (rs.CoxCV(folds=folds), rs.CoxCV(folds=folds, penalties=[1.0])):
        with pytest.raises(rs.InputError, match=f"every fold has {message}") as error:
            model.fit(x, y, strata=strata)
        assert "score='difference'" in str(error.value)
    with pytest.raises(rs.InputError, match=f"every fold has {message}"):
        rs.cross_validate(rs.Cox(), x, y, folds=folds, strata=strata)
    other = rs.CoxCV(folds=folds, score="difference", penalties=[1.0, 30.0])
    other.fit(x, y, strata=strata)
    assert np.ptp(other.cross_validation_.mean) > 1e-6
    # A single fold with two rows of a stratum says something.
    folds[folds == folds[-1]] = folds[0]
    assert np.ptp(rs.CoxCV(folds=folds).fit(x, y, strata=strata).cross_validation_.mean) > 0


def test_too_many_folds_are_not_sent_to_one_row_a_fold():
    x, y = cohort(1)
    n = len(x)
    with pytest.raises(rs.InputError, match=f"too few for {n + 1} folds") as error:
        rs.CoxCV(folds=n + 1, repeats=1).fit(x, y)
    assert f"at most {n}" not in str(error.value)
    assert "unless `score='difference'`" in str(error.value)


def test_equal_scores_are_told():
    """Two rows a fold, of which the second is censored before the first has its event."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(60, 2))
    time = np.where(np.arange(60) % 2, 1.0, 2.0 + rng.random(60))
    y = rs.Surv(time, np.arange(60) % 2 == 0)
    folds = np.arange(60) // 2
    model = rs.CoxCV(folds=folds, penalties=[1.0, 8.0]).fit(x, y)
    assert_allclose(model.cross_validation_.scores, 0, atol=1e-12)
    assert model.best_penalty_.l1 == 8.0
    (note,) = [note for note in model.notes_ if note.code == "equal_scores"]
    assert "all 2 penalties have the same mean score (0)" in note.message
    assert "score='difference'" in note.message
    assert "edge_of_search" not in {note.code for note in model.notes_}
    other = rs.CoxCV(folds=folds, penalties=[1.0, 8.0], score="difference").fit(x, y)
    assert "equal_scores" not in {note.code for note in other.notes_}


def test_equal_models_are_told_apart_from_equal_scores():
    x, y = cohort(1)
    model = rs.CoxCV(folds=3, repeats=1, penalties=[1e5, 1e6]).fit(x, y)
    (note,) = [note for note in model.notes_ if note.code == "equal_scores"]
    assert "they lead to the same model" in note.message
    assert "difference" not in note.message


def test_a_preset_start_is_for_a_search():
    assert rs.CoxCV.ohdsi(search="grid").start is None
    assert rs.CoxCV.ohdsi(penalties=[1.0]).start is None


def test_equal_scores_choose_the_strongest_however_often_the_rows_are_divided():
    rng = np.random.default_rng(9)
    x, event = rng.normal(size=(40, 3)), np.arange(40) == 0
    y = rs.Surv(rng.exponential(1, 40), event)
    strengths = set()
    for repeats in (3, 5):
        model = rs.CoxCV(folds=4, repeats=repeats).fit(x, y)
        found = model.cross_validation_
        assert "equal_scores" in {note.code for note in model.notes_}
        assert found.chosen == 0
        assert found.strengths[0] == found.strengths.max()
        strengths.add(float(found.strengths[0]))
    assert len(strengths) == 1


def test_an_edge_of_the_first_repetition_is_no_end():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(150, 10))
    time = rng.exponential(np.exp(-x[:, :3] @ [0.5, 0.3, 0.2]))
    y = rs.Surv(time, rng.random(150) < 0.6)
    model = rs.CoxCV(folds=5, repeats=10).fit(x, y)
    every = rs.CoxCV(folds=5, repeats=10, penalties=[20.0, 12.0, 8.0, 6.2, 4.0]).fit(x, y)
    assert model.best_score_ >= every.best_score_ - 0.01
