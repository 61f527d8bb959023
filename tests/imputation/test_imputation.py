"""Chained equations: the answers of R's mice, draws that spread as they must, and frames."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import riskset as rs
from riskset.imputation.conditional import level_draws, matched_donors
from riskset.imputation.outcome import cumulative_hazard

FOLDER = Path(__file__).parents[1] / "golden" / "imputation"
GOLDEN = json.loads((FOLDER / "mice_lung.json").read_text())
REFERENCE = {"sex": "female", "ph.ecog": "zero"}


@pytest.fixture(scope="module")
def lung():
    return pd.read_csv(FOLDER / "lung.csv")


def _fit(frame):
    data = rs.Dataset.from_frame(frame, time="time", event="status", reference=REFERENCE)
    return rs.Cox(ties="efron").fit(data)


def test_hazard_of_survfit(lung):
    """The cumulative hazard of R's `survfit`."""
    time, status = (lung[name].to_numpy(float) for name in ("time", "status"))
    hazard = cumulative_hazard(time, status.astype(int), None, 1)
    assert hazard == pytest.approx(GOLDEN["hazard"], rel=1e-12)


def test_hazard_with_late_entry_by_hand():
    """At 2 two rows are at risk, at 3 both of the others; the third entered at 2."""
    time, entry = np.array([2.0, 3.0, 4.0]), np.array([0.0, 1.0, 2.0])
    hazard = cumulative_hazard(time, np.array([1, 1, 0]), entry, 1)
    assert hazard.tolist() == [1 / 2, 1 / 2 + 1 / 2, 1 / 2]


def test_pooled_answer_of_mice(lung):
    """The same missing values, imputed by mice 200 times."""
    imputed = rs.impute(lung, time="time", event="status", datasets=60, seed=3)
    pooled = rs.pool([_fit(frame) for frame in imputed])
    names = {"age": "age", "sex=male": "sexmale", "ph.ecog=one": "ph.ecogone"}
    names |= {"ph.ecog=two": "ph.ecogtwo", "wt.loss": "wt.loss", "meal.cal": "meal.cal"}
    found = GOLDEN["many"]
    for own, theirs in names.items():
        k, j = pooled.covariates_.index(own), found["names"].index(theirs)
        assert abs(pooled.coef_[k] - found["estimate"][j]) < 0.25 * found["se"][j], own
        assert pooled.standard_error_[k] == pytest.approx(found["se"][j], rel=0.12), own
        assert pooled.fraction_missing_[k] == pytest.approx(found["fmi"][j], abs=0.15), own


def test_the_outcome_is_in_the_model():
    """Without it the effect of a covariate that is mostly missing would shrink towards 0."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=2000)
    time = rng.exponential(np.exp(-x))
    gone = rng.random(2000) < 0.5
    frame = pa.table({"x": pa.array(x, mask=gone), "z": rng.normal(size=2000)})
    imputed = rs.impute(frame, rs.Surv(time, np.ones(2000)), datasets=5)
    y = rs.Surv(time, np.ones(2000))
    pooled = rs.pool([rs.Cox().fit(one, y) for one in imputed])
    assert pooled.coef_[0] == pytest.approx(1.0, abs=0.12)


def test_matching_is_proper():
    """The mean of draws varies as a new sample of the known rows would vary."""
    rng = np.random.default_rng(5)
    n, k = 100, 4000
    x, new = rng.normal(size=(n, 1)), np.full((k, 1), 0.5)
    y = 2 * x[:, 0] + rng.normal(size=n)
    means = [y[matched_donors(x, y, new, 5, rng)].mean() for _ in range(400)]
    design = np.column_stack([np.ones(n), x])
    inverse = np.linalg.inv(design.T @ design)
    coef = inverse @ design.T @ y
    residual = y - design @ coef
    at = np.array([1.0, 0.5])
    error = np.sqrt(residual @ residual / (n - 2) * (at @ inverse @ at))
    assert np.mean(means) == pytest.approx(at @ coef, abs=0.25)
    assert np.std(means) > 0.8 * error


def test_donors_are_the_closest():
    x = np.arange(200.0)[:, None] / 60
    y = x[:, 0].copy()  # no residual: the prediction is the value
    donors = matched_donors(x, y, x[[0, 50, 199]], 3, np.random.default_rng(1))
    assert np.abs(donors - [0, 50, 199]).max() <= 2


def test_tied_predictions_share_their_donors():
    x, y = np.zeros((300, 1)), np.arange(300.0)
    donors = matched_donors(x, y, np.zeros((3000, 1)), 5, np.random.default_rng(1))
    more = matched_donors(x, y, np.zeros((3000, 1)), 5, np.random.default_rng(2))
    assert len(set(donors)) == len(set(more)) == 5
    assert set(donors) != set(more)


def test_levels_are_drawn_by_their_probabilities():
    """Logistic regression of statsmodels' kind: P(level 1 | x = 1) is 0.75 in the data."""
    x = np.repeat([0.0, 1.0], 400)[:, None]
    level = np.r_[np.repeat([0, 1, 2], [200, 100, 100]), np.repeat([0, 1, 2], [60, 300, 40])]
    rng = np.random.default_rng(3)
    new = np.repeat([0.0, 1.0], 500)[:, None]
    drawn = np.array([level_draws(x, level, 3, new, rng) for _ in range(60)])
    for half, wanted in ((drawn[:, :500], [0.5, 0.25, 0.25]), (drawn[:, 500:], [0.15, 0.75, 0.1])):
        shares = [(half == k).mean() for k in range(3)]
        assert shares == pytest.approx(wanted, abs=0.02)
    # The parameters are drawn, too: binomial variation alone would be 0.0194.
    spread = (drawn[:, 500:] == 1).mean(axis=1).std()
    assert spread == pytest.approx(np.sqrt(0.75 * 0.25 * (1 / 500 + 1 / 400)), rel=0.3)


def test_one_level_in_a_separated_column():
    """A level that a column determines has finite coefficients, thanks to the weak penalty."""
    x = np.r_[np.zeros(20), np.ones(20)][:, None]
    level = np.r_[np.zeros(20, int), np.ones(20, int)]
    drawn = level_draws(x, level, 2, x, np.random.default_rng(1))
    assert (drawn == level).mean() > 0.9


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_keep_library_types_and_known_values(library):
    rng = np.random.default_rng(2)
    n = 120
    columns = {
        "time": rng.exponential(size=n),
        "event": rng.integers(0, 2, n),
        "age": rng.integers(40, 80, n).astype(float),
        "count": rng.integers(0, 9, n),
        "smoker": rng.random(n) < 0.4,
        "stage": np.array(["low", "mid", "high"])[rng.integers(0, 3, n)],
    }
    frame = pd.DataFrame(columns)
    frame["count"] = frame["count"].astype("Int64")
    frame["smoker"] = frame["smoker"].astype("boolean")
    frame["stage"] = pd.Categorical(frame["stage"], ["low", "mid", "high", "none"], ordered=True)
    for k, name in enumerate(("age", "count", "smoker", "stage")):
        frame.loc[rng.random(n) < 0.1 + k / 20, name] = pd.NA
    frame.index = frame.index + 1000
    before = frame
    if library == "polars":
        before = pl.from_pandas(frame)
    elif library == "pyarrow":
        before = pa.Table.from_pandas(frame, preserve_index=False)
    imputed = rs.impute(before, datasets=2, cycles=3)
    for made in imputed:
        assert type(made) is type(before)
        if library == "pandas":
            assert (made.dtypes == frame.dtypes).all()
            assert made.index.equals(frame.index)
            table = made
        else:
            assert made.schema == before.schema
            table = made.to_pandas()
        for name in frame.columns:
            known = frame[name].notna().to_numpy()
            own, old = table[name].to_numpy(), frame[name].to_numpy()
            assert (own[known] == old[known]).all()
            assert not pd.isna(own).any()
            assert set(own[~known].tolist()) <= set(old[known].tolist())
    assert imputed.n_missing == {
        name: int(frame[name].isna().sum()) for name in ("age", "count", "smoker", "stage")
    }
    assert imputed.to_frame("pandas")["method"].tolist() == [
        "matching",
        "matching",
        "levels",
        "levels",
    ]
    first, second = (one["age"].to_numpy().tolist() for one in imputed)
    assert first != second


def test_the_same_for_any_number_of_threads_and_data_sets(lung):
    def donors(**settings):
        made = rs.impute(lung, time="time", event="status", cycles=2, **settings)
        return [frame.to_numpy().tolist() for frame in made]

    one = donors(datasets=4, n_threads=1)
    assert one == donors(datasets=4, n_threads=2)
    assert one[:2] == donors(datasets=2)
    assert one != donors(datasets=4, seed=2)


def test_trace(lung):
    imputed = rs.impute(lung, time="time", event="status", datasets=3, cycles=4)
    trace = imputed.trace("polars")
    assert trace.shape == (3 * 4 * 4, 5)
    last = trace.filter((pl.col("cycle") == 4) & (pl.col("covariate") == "wt.loss"))
    for k, frame in enumerate(imputed):
        drawn = frame["wt.loss"][lung["wt.loss"].isna()]
        assert last["mean"][k] == pytest.approx(drawn.mean())
        assert last["sd"][k] == pytest.approx(drawn.std(ddof=0))


def test_competing_events_and_late_entry_are_predictors(lung):
    data = lung.assign(entry=0.5, status=np.arange(len(lung)) % 3)
    imputed = rs.impute(data, time="time", event="status", entry="entry", datasets=2, cycles=1)
    assert len(imputed[:]) == 2
    assert "entry" not in imputed.n_missing


def test_messages(lung):
    roles = {"time": "time", "event": "status"}
    with pytest.raises(rs.InputError, match="no covariate has missing values"):
        rs.impute(lung[["time", "status", "age"]], **roles)
    with pytest.raises(rs.InputError, match="which column of the data frame holds the event"):
        rs.impute(lung)
    with pytest.raises(rs.InputError, match="`time` was given together with `y`"):
        rs.impute(lung, rs.Surv(lung["time"], lung["status"]), time="time")
    with pytest.raises(rs.InputError, match="`y` has 2 rows, but the data frame has 228"):
        rs.impute(lung, rs.Surv([1, 2], [1, 1]))
    with pytest.raises(rs.InputError, match="'empty' has no value in any row"):
        rs.impute(lung.assign(empty=np.nan), **roles)
    rare = np.where(np.arange(len(lung)) < 3, np.arange(len(lung)), np.nan)
    with pytest.raises(rs.InputError, match="'rare' has 3 known values, too few"):
        rs.impute(lung.assign(rare=rare), **roles)
    with pytest.raises(rs.InputError, match="`datasets` must be a whole number of at least 2"):
        rs.impute(lung, **roles, datasets=1)
    with pytest.raises(rs.InputError, match="expected a data frame"):
        rs.impute(np.zeros((3, 2)), **roles)
    with pytest.raises(rs.InputError, match="missing"):
        rs.impute(lung.assign(time=lung["time"].where(lung["age"] > 50)), **roles)


def test_a_data_set_that_does_not_exist(lung):
    imputed = rs.impute(lung, time="time", event="status", datasets=2, cycles=1)
    for index in (2, 5, -3):
        words = f"there are 2 data sets, numbered from 0 to 1, but data set {index} was asked for"
        with pytest.raises(IndexError, match=words):
            imputed[index]
    assert imputed[-1].equals(imputed[1])


def test_dropped_columns_stay_as_they_are(lung):
    imputed = rs.impute(lung, time="time", event="status", drop=["meal.cal"], datasets=2)
    assert imputed[0]["meal.cal"].isna().equals(lung["meal.cal"].isna())
    assert "meal.cal" not in imputed.n_missing
