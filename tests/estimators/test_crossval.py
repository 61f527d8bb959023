"""CoxCV, FineGrayCV and cross_validate as estimators: refit, bits, checkpoints, files, checks."""

import json
import pickle
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import riskset as rs
from riskset.infer.crossval.checkpoint import Checkpoint
from riskset.solve import replicates
from storages import each_storage

QUICK = {"folds": 4, "repeats": 2}
BY_ROW = "folds are drawn by row: a weight of 2 is in one fold, two rows may be in two"
EXCUSED = {
    "check_estimators_empty_data_messages": "a model without covariates is legal",
    "check_sample_weight_equivalence_on_dense_data": BY_ROW,
    "check_sample_weight_equivalence_on_sparse_data": BY_ROW,
}


# Their data are random and small: some estimates are infinite, and the warning is right.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::riskset.RisksetWarning")
@parametrize_with_checks(
    [
        rs.CoxCV(rs.L2(), folds=2, repeats=1, penalties=[1.0, 10.0]),
        rs.FineGrayCV(rs.L2(), folds=2, repeats=1, penalties=[1.0, 10.0], score="difference"),
    ],
    expected_failed_checks=lambda _: EXCUSED,
)
def test_sklearn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    n, p = 240, 6
    x = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.6)
    time = np.ceil(20 * rng.exponential(np.exp(-0.7 * x[:, 0] + 0.5 * x[:, 1])))
    more = {
        "sample_weight": rng.choice([0.0, 0.5, 1.0, 3.0], n),
        "strata": rng.integers(0, 3, n),
        "offset": rng.normal(size=n) / 4,
    }
    return x, rs.Surv(time, rng.choice([0, 1, 2], n), np.floor(time / 4)), more


# -------------------------------------------------------------------------------- final fit


def test_it_ends_as_the_model_with_the_best_penalty(data):
    x, y, more = data
    kind = rs.L1(unpenalized=[2], factor={1: 2.0})
    model = rs.CoxCV(kind, cause=1, ties="efron", **QUICK).fit(x, y, **more)
    alone = rs.Cox(model.best_penalty_, cause=1, ties="efron").fit(x, y, **more)
    assert model.best_penalty_.unpenalized == (2,)
    assert model.best_penalty_.factor == {1: 2.0}
    assert model.penalty == kind
    assert_allclose(model.coef_, alone.coef_, rtol=1e-5, atol=1e-8)
    assert_allclose(model.log_likelihood_, alone.log_likelihood_, rtol=1e-12)
    assert model.kkt_ <= 1e-8
    assert_allclose(model.predict(x), alone.predict(x), atol=1e-6)
    assert_allclose(
        model.predict_survival_function(x[:4], [5, 9], strata=more["strata"][:4]),
        alone.predict_survival_function(x[:4], [5, 9], strata=more["strata"][:4]),
        atol=1e-6,
    )
    assert_allclose(model.score(x, y), alone.score(x, y), atol=1e-3)
    # Cyclops refits without the case weights.
    bare = rs.Cox(model.best_penalty_, cause=1, ties="efron").fit(
        x, y, strata=more["strata"], offset=more["offset"]
    )
    assert np.abs(model.coef_ - bare.coef_).max() > 0.01


def test_fine_gray_ends_as_fine_gray(data):
    x, y, _ = data
    y = rs.Surv(y["time"], y["event"])
    model = rs.FineGrayCV(cause=2, **QUICK).fit(x, y)
    alone = rs.FineGray(model.best_penalty_, cause=2).fit(x, y)
    assert_allclose(model.coef_, alone.coef_, rtol=1e-5, atol=1e-8)
    curves = model.predict_cumulative_incidence(x[:3], [4, 8, 30])
    assert_allclose(curves, alone.predict_cumulative_incidence(x[:3], [4, 8, 30]), atol=1e-6)
    full = rs.FineGrayCV(cause=2, censoring="full", penalties=[model.best_penalty_], **QUICK)
    assert full.fit(x, y).best_score_ != model.best_score_


def test_results_are_frames_of_the_callers_library(data):
    x, y, _ = data
    names = list("abcdef")
    for frame, kind in ((pd.DataFrame, pd.DataFrame), (pl.DataFrame, pl.DataFrame)):
        table = frame(x, names) if frame is pl.DataFrame else frame(x, columns=names)
        model = rs.CoxCV(penalties=[3.0, 30.0], cause=1, **QUICK).fit(table, y)
        assert isinstance(model.cv_results_, kind)
        assert len(model.cv_results_) == 2 * 8
        assert len(model.cv_curve_) == 2
        rows = model.cv_results_[["l1", "score"]] if kind is pd.DataFrame else model.cv_results_
        means = [np.mean(np.array(rows["score"])[np.array(rows["l1"]) == s]) for s in (30.0, 3.0)]
        assert_allclose(np.array(model.cv_curve_["mean"]), means, rtol=1e-14)
        assert model.best_index_ == int(np.argmax(means))


def test_dense_sparse_and_dataset_are_one(data):
    x, y, _ = data
    dense = rs.CoxCV(cause=1, **QUICK).fit(x, y)
    thin = rs.CoxCV(cause=1, **QUICK).fit(sparse.csr_array(x), y)
    columns = {f"x{j}": x[:, j] for j in range(6)}
    columns |= {name: y[name] for name in ("time", "event", "entry")}
    table = rs.Dataset.from_frame(pd.DataFrame(columns), entry="entry", cause=1)
    wide = rs.CoxCV(cause=1, **QUICK).fit(table)
    for other in (thin, wide):
        assert_allclose(other.best_penalty_.l1, dense.best_penalty_.l1, rtol=1e-6)
        assert_allclose(other.cross_validation_.mean, dense.cross_validation_.mean, rtol=1e-7)


def test_groups_by_name_and_by_label(data):
    x, y, more = data
    site = more["strata"] * 10 + np.arange(len(x)) % 7
    frame = pd.DataFrame({"time": y["time"], "event": y["event"], "site": site, "a": x[:, 0]})
    table = rs.Dataset.from_frame(frame, cluster="site", cause=1)
    settings = {"penalties": [1.0, 2.0], "folds": 3, "repeats": 1}
    plain = rs.Surv(y["time"], y["event"])
    labels = rs.CoxCV(groups=site, cause=1, **settings).fit(x[:, :1], plain)
    for name in ("site", "cluster"):
        named = rs.CoxCV(groups=name, cause=1, **settings).fit(table)
        assert_allclose(named.cross_validation_.scores, labels.cross_validation_.scores, rtol=1e-9)
    strata = rs.CoxCV(groups="strata", cause=1, **settings)
    strata.fit(x, plain, strata=more["strata"])
    direct = rs.CoxCV(groups=more["strata"], cause=1, **settings)
    direct.fit(x, plain, strata=more["strata"])
    assert_array_equal(strata.cross_validation_.scores, direct.cross_validation_.scores)
    for name, words in (("strata", "no strata, or a single one"), ("cluster", "no clusters")):
        with pytest.raises(rs.InputError, match=f"`groups` is '{name}', but the rows have {words}"):
            rs.CoxCV(groups=name, cause=1, **settings).fit(x, plain)


# ------------------------------------------------------------------- bits, seeds, checkpoints


def same(a, b):
    assert a.penalties == b.penalties
    for name, array in a.to_arrays().items():
        assert_array_equal(array, getattr(b, name), name)


@each_storage
@pytest.mark.parametrize("kind", [rs.CoxCV, rs.FineGrayCV])
def test_any_number_of_threads_gives_the_same_bits(store, data, kind):
    x, y, more = data
    y = rs.Surv(y["time"], y["event"])
    fits = [kind(cause=1, n_threads=t, **QUICK).fit(store(x), y, **more) for t in (1, 2, 3)]
    for other in fits[1:]:
        same(fits[0].cross_validation_, other.cross_validation_)
        assert_array_equal(fits[0].coef_, other.coef_)


def test_the_seed_fixes_the_folds(data):
    x, y, _ = data
    fits = [rs.CoxCV(penalties=[3.0], cause=1, seed=s, **QUICK).fit(x, y) for s in (5, 5, 6)]
    same(fits[0].cross_validation_, fits[1].cross_validation_)
    assert fits[0].best_score_ != fits[2].best_score_


class Stopped(KeyboardInterrupt):
    pass


@pytest.mark.parametrize("after", [0, 1, 7, 8, 21])
def test_an_interrupted_fit_goes_on(data, tmp_path, monkeypatch, after):
    x, y, _ = data
    path = tmp_path / "work.jsonl"
    model = rs.CoxCV(cause=1, checkpoint=path, **QUICK)
    whole = rs.CoxCV(cause=1, **QUICK).fit(x, y)
    add, count = Checkpoint.add, [0]

    def stopping(self, *arguments):
        if count[0] == after:
            raise Stopped
        count[0] += 1
        add(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", stopping)
        with pytest.raises(Stopped):
            model.fit(x, y)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + after
    path.write_text("\n".join(lines) + '\n{"key": "cut o')  # as if power had failed
    count[0] = 0

    def counting(self, *arguments):
        count[0] += 1
        add(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", counting)
        model.fit(x, y)
    same(model.cross_validation_, whole.cross_validation_)
    assert_array_equal(model.coef_, whole.coef_)
    total = whole.cross_validation_.n_replicates.sum()
    assert count[0] == total - after
    kept = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(kept) == 1 + total
    model.fit(x, y)  # nothing is left to do
    assert path.read_text().splitlines()[-1] == json.dumps(kept[-1])


def test_a_checkpoint_of_something_else_is_refused(data, tmp_path):
    x, y, _ = data
    path = tmp_path / "work.jsonl"
    settings = {"penalties": [3.0], "cause": 1, "checkpoint": path, **QUICK}
    rs.CoxCV(**settings).fit(x, y)
    before = path.read_bytes()
    for change, words in (
        ({"seed": 2}, "other folds"),
        ({"score": "difference"}, "other settings"),
        ({"ties": "efron"}, "other settings"),
    ):
        with pytest.raises(rs.InputError, match=f"'work.jsonl' belongs to {words}"):
            rs.CoxCV(**(settings | change)).fit(x, y)
    other = x.copy()
    other[17, 3] += 1e-9
    with pytest.raises(rs.InputError, match="belongs to other data"):
        rs.CoxCV(**settings).fit(other, y)
    later = y.copy()
    later["time"][3] += 1
    with pytest.raises(rs.InputError, match="belongs to other data"):
        rs.CoxCV(**settings).fit(x, later)
    assert path.read_bytes() == before
    damaged = before.splitlines()
    damaged[2] = damaged[2][:-5]
    path.write_bytes(b"\n".join(damaged) + b"\n")
    with pytest.raises(rs.InputError, match="line 3 is not a replicate"):
        rs.CoxCV(**settings).fit(x, y)
    record = json.loads(before.splitlines()[1])
    for change in ({"skore": 1.0}, {"score": None}, {"score": "1"}, {"n_iter": -1}, {"status": ""}):
        spoilt = before.splitlines()
        spoilt[1] = json.dumps(record | change).encode()
        path.write_bytes(b"\n".join(spoilt) + b"\n")
        with pytest.raises(rs.InputError, match="line 2 is not a replicate"):
            rs.CoxCV(**settings).fit(x, y)
    for text in ("time,event\n1,1\n", '{"format": "riskset-fit"}'):
        Path(path).write_text(text)
        with pytest.raises(rs.InputError, match="is not a checkpoint"):
            rs.CoxCV(**settings).fit(x, y)
        assert path.read_text() == text


def test_a_checkpoint_serves_one_run_at_a_time(data, tmp_path):
    x, y, _ = data
    path = tmp_path / "work.jsonl"
    path.touch()  # as tempfile leaves it
    model = rs.CoxCV(penalties=[3.0], cause=1, checkpoint=path, **QUICK)
    script = (
        "import sys; from riskset.infer.crossval.checkpoint import Checkpoint\n"
        "with Checkpoint(sys.argv[1], dict(data='', folds='', settings='')): print(); input()"
    )
    other = Popen([sys.executable, "-c", script, path], stdin=PIPE, stdout=PIPE)
    with other:
        assert other.stdout is not None
        other.stdout.readline()
        before = path.read_bytes()
        with pytest.raises(rs.InputError, match="'work.jsonl' is in use by another run") as caught:
            model.fit(x, y)
        assert "name another file" in str(caught.value)
        assert path.read_bytes() == before
        other.kill()  # its lock goes with it
    path.unlink()
    model.fit(x, y)
    model.fit(x, y)


@pytest.mark.parametrize("missing", [1, 2])
def test_few_missing_replicates_are_resumed_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    monkeypatch.setattr(replicates, "MIN_SHARED_ROWS", 1)  # in lanes, as large data are
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 6))
    y = rs.Surv(rng.exponential(np.exp(-x[:, 0] / 2)), rng.random(600) < 0.5)
    path = tmp_path / "work.jsonl"
    model = rs.CoxCV(rs.L1(), folds=5, repeats=1, checkpoint=path, search="grid")
    whole = model.fit(x, y).cross_validation_.scores
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-missing]))
    assert_array_equal(model.fit(x, y).cross_validation_.scores, whole)


# ------------------------------------------------------------------------- files, copies, words


def test_saved_copied_and_cloned(data, tmp_path):
    x, y, _ = data
    model = rs.CoxCV(rs.L2(), cause=1, folds=[0, 1, 2] * 80, groups=None).fit(x, y)
    model.save(tmp_path / "cv.riskset")
    again = rs.load(tmp_path / "cv.riskset")
    assert isinstance(again, rs.CoxCV)
    same(again.cross_validation_, model.cross_validation_)
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert other.best_penalty_ == model.best_penalty_
        assert_array_equal(other.predict(x), model.predict(x))
        assert other.score(x, y) == model.score(x, y)
    fresh = clone(model)
    assert fresh.get_params()["score"] == "held_out"
    assert fresh.set_params(score="difference").get_params()["score"] == "difference"
    with pytest.raises(NotFittedError):
        _ = fresh.best_penalty_
    assert callable(fresh.score)
    assert "score='difference'" in repr(fresh)


def test_searched_by_scikit_learn(data):
    x, y, _ = data
    model = rs.CoxCV(penalties=[1.0, 5.0], folds=3, repeats=1)
    y = rs.Surv(y["time"], y["event"] > 0)
    search = GridSearchCV(model, {"score": ["held_out", "difference"]}, cv=2).fit(x, y)
    assert 0.5 < search.best_score_ < 1


def test_the_preset_of_ohdsi(data):
    x, y, _ = data
    model = rs.CoxCV.ohdsi(folds=4, repeats=1, cause=1).fit(x, y)
    defaults = rs.CoxCV.ohdsi().get_params()
    assert (defaults["folds"], defaults["repeats"], defaults["seed"]) == (10, 10, 1)
    strengths = model.cross_validation_.strengths
    assert np.isclose(strengths, np.sqrt(2 / 0.01)).any()  # the first point of the search
    assert rs.FineGrayCV.ohdsi(rs.L2()).start == 100.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_replicates_that_do_not_converge_are_counted_and_used(data):
    x, y, _ = data
    model = rs.CoxCV(penalties=[0.01], cause=1, max_iter=1, tol_replicates=1e-12, **QUICK)
    model.fit(x, y)
    assert model.n_failed_ > 0
    (note,) = [n for n in model.notes_ if n.code == "replicates"]
    assert f"{model.n_failed_} of 8 replicates are not 'converged'" in note.message
    assert np.isfinite(model.best_score_)
    assert model.best_score_ == model.cross_validation_.scores.mean()


def test_the_null_model_may_be_best(data):
    _, y, _ = data
    x = np.random.default_rng(1).normal(size=(240, 3))
    model = rs.CoxCV(rs.L1(unpenalized=[1]), cause=1, **QUICK).fit(x, y)
    assert np.isfinite(model.cross_validation_.scores).all()
    assert model.coef_[1] != 0  # the unpenalised covariate stays


def test_cross_validate_takes_models_of_one_penalty(data):
    x, y, _ = data
    found = rs.cross_validate(rs.Cox(cause=1), x, y, **QUICK)
    assert found.penalties == (None,)
    assert "1 model in 8 replicates" in repr(found)
    assert len(found.to_frame()) == 8
    same(rs.cross_validate(rs.Cox(cause=1, n_threads=1), x, y, **QUICK), found)
    with pytest.raises(rs.InputError, match="CoxCV cross-validates by itself"):
        rs.cross_validate(rs.CoxCV(), x, y)
    with pytest.raises(rs.InputError, match="it was given an object of CauseSpecificCox"):
        rs.cross_validate(rs.CauseSpecificCox(), x, y)


def test_the_picture_marks_the_choice(data):
    x, y, _ = data
    model = rs.CoxCV(cause=1, rule="1se", **QUICK).fit(x, y)
    axes = rs.plot.cross_validation(model, title="CV")
    axes.figure.canvas.draw()
    words = {t.get_text() for t in axes.texts}
    assert {"chosen", "best"} <= words
    assert f"{model.cross_validation_.n_nonzero[model.best_index_]}" in words
    mean = model.cross_validation_.mean
    assert any(np.array_equal(line.get_ydata(), mean) for line in axes.lines)
    left, right = axes.get_xlim()
    assert left > right
    shares = rs.CoxCV(cause=1, l1_ratio=[1.0, 0.5], **QUICK).fit(x, y)
    legend = rs.plot.cross_validation(shares).get_legend()
    assert [t.get_text() for t in legend.texts] == ["100% L1", "50% L1"]
    with pytest.raises(rs.InputError, match="not Cox"):
        rs.plot.cross_validation(rs.Cox())
    with pytest.raises(rs.InputError, match="at least two penalties"):
        rs.plot.cross_validation(rs.cross_validate(rs.Cox(cause=1), x, y, **QUICK))
