"""Causes of failure named by labels: the numbers of the codes, and labels wherever causes show."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import riskset as rs
from riskset._errors import InputError
from riskset.data.readers import read_new_data

# Sorted, the labels stand in another order than the codes they replace.
LABELS = np.array(["none", "progression", "death"])
COVARIATES = ["age", "male", "hgb"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    path = Path(__file__).parents[1] / "golden" / "mgus2.csv"
    table = pd.read_csv(path).drop(columns="mspike").dropna().reset_index(drop=True)
    return table.assign(status=LABELS[table["event"]], group=np.where(table["age"] > 70, "o", "y"))


@pytest.fixture(scope="module")
def y(frame: pd.DataFrame) -> np.ndarray:
    return rs.Surv(frame["time"], frame["status"], censored="none")


@pytest.fixture(scope="module")
def coded(frame: pd.DataFrame) -> np.ndarray:
    return rs.Surv(frame["time"], frame["event"])


CONTAINERS = {
    "list": list,
    "text": np.array,
    "objects": lambda v: np.array(v, dtype=object),
    "pandas": pd.Series,
    "pandas text": lambda v: pd.Series(v, dtype="string"),
    "categories": lambda v: pd.Categorical(v, categories=["z", "b", "c", "a"], ordered=True),
    "polars": pl.Series,
    "arrow": pa.array,
}


@pytest.mark.parametrize("make", CONTAINERS.values(), ids=CONTAINERS)
def test_labels_become_codes_in_sorted_order(make) -> None:
    y = rs.Surv([1, 2, 3, 4], make(["b", "c", "a", "b"]), censored="b")
    assert_array_equal(y["event"], [0, 2, 1, 0])
    assert_array_equal(y["cause"], ["", "c", "a", ""])


COMPLAINTS = {
    "nothing said": (
        ["a", "b"],
        None,
        [r"labels 'a', 'b'", "it is not known which of them means censored", "`censored`"],
    ),
    "misspelt": (["a", "b"], "A", ["never holds the label of censoring, 'A'", "'a', 'b'"]),
    "missing": (["a", None], "a", ["must not have missing values", "row 1"]),
    "not a number": (["a", float("nan")], "a", ["must not have missing values", "row 1"]),
    "mixed": (["a", 1], "a", ["mixes text with other types", "row 1, value 1"]),
    "numbers": ([0, 1], "0", ["`censored` is '0'", "holds no text"]),
}


@pytest.mark.parametrize(("event", "censored", "words"), COMPLAINTS.values(), ids=COMPLAINTS)
def test_complaints(event: list[object], censored: str | None, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        rs.Surv([1, 2], np.array(event, dtype=object), censored=censored)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("estimator", [rs.FineGray, rs.Cox])
def test_models_of_a_label_are_those_of_its_code(estimator, frame, y, coded) -> None:
    X = frame[COVARIATES]
    for code in (1, 2):
        model = estimator(cause=str(LABELS[code])).fit(X, y)
        same = estimator(cause=code).fit(X, coded)
        assert_array_equal(model.coef_, same.coef_)
        assert_array_equal(model.robust_variance_, same.robust_variance_)
        assert model.score(X, y) == same.score(X, coded)
        # In some rows the labels keep their meaning, whichever of them are there.
        some = np.flatnonzero(y["cause"] != LABELS[3 - code])
        assert model.score(X.iloc[some], y[some]) == same.score(X.iloc[some], coded[some])


def test_cause_specific_models_go_by_label(frame, y, coded) -> None:
    X = frame[COVARIATES]
    model = rs.CauseSpecificCox().fit(X, y)
    same = rs.CauseSpecificCox().fit(X, coded)
    assert model.causes_.tolist() == ["death", "progression"]
    assert set(model.status_) == {"death", "progression"}
    at = [50.0, 200.0]
    for code in (1, 2):
        assert_array_equal(
            model.predict_cumulative_incidence(X, at, cause=str(LABELS[code])),
            same.predict_cumulative_incidence(X, at, cause=code),
        )
    assert set(model.summary().reset_index()["cause"]) == {"death", "progression"}
    one = rs.CauseSpecificCox(causes=["progression"]).fit(X, y)
    assert_array_equal(one.models_["progression"].coef_, same.models_[1].coef_)
    with pytest.raises(InputError, match=r"\(death, progression\), but relapse does not occur"):
        rs.CauseSpecificCox(causes=["relapse"]).fit(X, y)


def test_curves_and_tests_go_by_label(frame, y, coded) -> None:
    named, plain = rs.aalen_johansen(y), rs.aalen_johansen(coded)
    assert named.causes.tolist() == ["death", "progression"]
    assert_array_equal(named["all"].incidence, plain["all"].incidence[::-1])
    assert "cause progression" in repr(named)
    assert named["all"].position("progression") == 1
    assert set(named.to_frame([1.0])["cause"]) == {"death", "progression"}
    kept = rs.kaplan_meier(y, cause="progression")["all"].survival
    assert_array_equal(kept, rs.kaplan_meier(coded, cause=1)["all"].survival)
    group = frame["group"]
    for test in (rs.gray_test, rs.logrank_test):
        assert test(y, group, "death").statistic == test(coded, group, 2).statistic


def test_metrics_go_by_label(frame, y, coded) -> None:
    risk, metrics = frame["age"].to_numpy(), rs.metrics
    incidence = np.clip(risk[:, None] / 100, 0, 0.99)
    for code in (1, 2):
        label = str(LABELS[code])
        assert (
            metrics.concordance(y, risk, cause=label).concordance
            == metrics.concordance(coded, risk, cause=code).concordance
        )
        assert_array_equal(
            metrics.brier_score(y, incidence, [100.0], cause=label).score,
            metrics.brier_score(coded, incidence, [100.0], cause=code).score,
        )
    with pytest.raises(InputError, match="'death', 'progression', but `cause` does not name"):
        metrics.concordance(y, risk)


def test_unknown_causes_are_told_the_labels(frame, y, coded) -> None:
    X, group = frame[COVARIATES], frame["group"]
    calls = [
        lambda cause: rs.FineGray(cause=cause).fit(X, y),
        lambda cause: rs.Cox(cause=cause).fit(X, y),
        lambda cause: rs.kaplan_meier(y, cause=cause),
        lambda cause: rs.gray_test(y, group, cause),
        lambda cause: rs.metrics.concordance(y, frame["age"], cause=cause),
    ]
    for call in calls:
        for cause in ("relapse", 2):
            with pytest.raises(InputError, match=rf"\('death', 'progression'\).*{cause!r}"):
                call(cause)
        # 1 is a default: whoever meets it here need not have written it.
        with pytest.raises(InputError, match="causes 'death', 'progression', but `cause` does not"):
            call(1)
    with pytest.raises(InputError, match="are whole numbers without labels"):
        rs.FineGray(cause="death").fit(X, coded)


def test_one_label_needs_no_cause() -> None:
    y = rs.Surv([1, 2, 3, 4], ["alive", "dead", "dead", "alive"], censored="alive")
    x = np.array([[0.0], [1.0], [0.0], [1.0]])
    plain = rs.Surv([1, 2, 3, 4], [0, 1, 1, 0])
    assert_array_equal(rs.Cox().fit(x, y).coef_, rs.Cox().fit(x, plain).coef_)
    assert_array_equal(rs.FineGray().fit(x, y).coef_, rs.FineGray().fit(x, plain).coef_)
    assert_array_equal(rs.kaplan_meier(y)["all"].survival, rs.kaplan_meier(plain)["all"].survival)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_data_sets_and_saved_models(tmp_path: Path, frame, coded, ending: str) -> None:
    table = frame.drop(columns=["event", "group"])
    path = tmp_path / f"t.{ending}"
    write = table.to_csv if ending == "csv" else table.to_parquet
    write(path, index=False)
    data = rs.read_dataset(path, event="status", censored="none", cause="progression")
    assert data.outcome().labels == {1: "death", 2: "progression"}
    plain = rs.Cox(cause=1).fit(frame[COVARIATES], coded)
    model = rs.Cox(cause="progression").fit(data)
    assert_array_equal(model.coef_, plain.coef_)
    model.save(tmp_path / "fit.riskset")
    again = pickle.loads(pickle.dumps(rs.load(tmp_path / "fit.riskset")))
    assert again.cause == "progression"
    assert again.score(table) == model.score(data)
    few = table[table["status"] != "none"].reset_index(drop=True)
    few.to_csv(tmp_path / "few.csv", index=False)
    new = read_new_data(data.schema, tmp_path / "few.csv", outcome=True)
    assert new.outcome("death").n_events == (few["status"] == "death").sum()


@pytest.mark.parametrize("kind", ["text", "categories"])
def test_a_frame_with_labels(frame, kind: str) -> None:
    table = frame.drop(columns=["event", "group"])
    if kind == "categories":
        table = table.astype({"status": "category"})
    with pytest.raises(InputError, match="column 'status' holds the labels 'death', 'none'"):
        rs.Dataset.from_frame(table, event="status")
    data = rs.Dataset.from_frame(table, event="status", censored="none")
    curves = rs.aalen_johansen(data)
    assert curves.causes.tolist() == ["death", "progression"]
    assert_array_equal(
        curves["all"].incidence[1], rs.aalen_johansen(data.outcome("death"))["all"].incidence[1]
    )


def test_curves_take_outcomes_with_their_weights() -> None:
    weight = [2.0, 1.0, 0.0, 1.0]
    table = pd.DataFrame(
        {"time": [1.0, 2.0, 2.5, 3.0], "event": [1, 0, 1, 1], "w": weight, "x": [1.0, 2, 3, 4]}
    )
    data = rs.Dataset.from_frame(table, weight="w")
    for source in (data, data.outcome()):
        # Of weight 4, 2 die at 1 and 1 is censored at 2: S = 1/2, then 0.
        assert_array_equal(rs.kaplan_meier(source)["all"].at([1.0, 2.0, 3.0]), [0.5, 0.5, 0.0])
    own = rs.kaplan_meier(data, weight=np.ones(4))["all"].at([1.0])
    assert_array_equal(own, [0.75])


@pytest.mark.parametrize(("event", "cause"), [([1, 1], ["a", "b"]), ([0, 1], ["a", "b"])])
def test_labels_that_contradict_events(event: list[int], cause: list[str]) -> None:
    y = np.array(
        list(zip(event, [1.0, 2.0], cause, strict=True)),
        dtype=[("event", int), ("time", float), ("cause", "U1")],
    )
    with pytest.raises(InputError, match="'event' and 'cause' of `y` contradict each other"):
        rs.aalen_johansen(y)


def test_rows_without_events_have_no_labels(frame, y) -> None:
    X, censored = frame[COVARIATES], np.flatnonzero(y["event"] == 0)
    with pytest.raises(InputError, match="no events"):
        rs.FineGray(cause="death").fit(X.iloc[censored], y[censored])
    few = rs.Surv([1, 2, 3], ["a", "b", "c"], censored="c")
    with pytest.raises(InputError, match="none of the 2 rows .* has 'a'"):
        rs.Cox(cause="a").fit(np.ones((3, 1)), few, [0.0, 1.0, 1.0])
    model = rs.FineGray(cause="death").fit(X, y)
    with pytest.warns(rs.RisksetWarning, match="not defined"):
        assert np.isnan(model.score(X.iloc[censored], y[censored]))
