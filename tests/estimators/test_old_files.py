"""Files that earlier versions wrote open, with the numbers that those versions had from them.

`saved/` holds what `model.save` (``.riskset``, version 2) and `riskset fit` (``.json``, format 1)
wrote, and `expected.json` what riskset then said of these files.
"""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from riskset.estimators.saving import read_fit

SAVED = Path(__file__).with_name("saved")
EXPECTED = json.loads((SAVED / "expected.json").read_text())
TIMES = [0.0, 4.0, 30.0]


@pytest.fixture(scope="module")
def people():
    table = pd.read_csv(SAVED / "people.csv")
    return table.assign(late=(table["days"] > table["days"].max() / 2).astype(float)).iloc[:5]


def assert_close(actual, expected):
    """What is computed from a file may differ in its last digits; what it holds may not."""
    assert_allclose(actual, expected, rtol=1e-13)


def new_rows(name, people):
    """Rows in the form of X at the fit."""
    if name == "array":
        return people[["age"]].to_numpy()
    if name in ("frame", "penalized"):
        return people[["age", "site"]]
    columns = {"infinite": ["age", "ward", "site", "late"]}.get(name, ["age", "site", "ward"])
    return people[columns]


@pytest.mark.parametrize("file", [name for name in EXPECTED if name.endswith(".riskset")])
def test_a_saved_model_opens(file, people, tmp_path):
    expected, name = EXPECTED[file], file.removesuffix(".riskset")
    model = rs.load(SAVED / file)
    model.save(tmp_path / "again.riskset")  # in the format of now
    for again in (model, rs.load(tmp_path / "again.riskset")):
        assert type(again).__name__ == expected["class"]
        strata = {"strata": people["ward"]} if name == "frame" else {}
        new = new_rows(name, people)
        assert_array_equal(again.coef_, np.array(expected["coef"], dtype=float))
        assert_close(again.predict(new), np.array(expected["predict"], dtype=float))
        survival = again.predict_survival_function(new, TIMES, **strata)
        assert_close(survival, expected["survival"])
        since = type(again)().get_params(deep=False)  # those that the file is too old to have
        for parameter, value in again.get_params(deep=False).items():
            known = expected["parameters"].get(parameter, since[parameter])
            if name == "cv" and parameter == "penalty":
                known = "L1(unpenalized=('age',))"  # its strength was never used
            assert known in (value, repr(value)), parameter
        for key in ("status", "log_likelihood", "kkt", "n_events"):
            assert getattr(again, f"{key}_") == expected[key]
        assert [note.code for note in again.notes_] == expected["notes"]
        if name == "frame":
            assert_array_equal(again.robust_standard_error_, expected["robust_standard_error"])
            assert_array_equal(again.variance_, expected["variance"])
            assert again.tests_.wald.statistic == expected["wald"]
        if name == "cv":
            assert_array_equal(again.cross_validation_.mean, expected["mean"])
            assert_array_equal(
                again.cross_validation_.scores[again.best_index_], expected["scores"]
            )
            assert repr(again.best_penalty_) == expected["best"]


@pytest.mark.parametrize("file", [name for name in EXPECTED if name.endswith(".json")])
def test_a_fit_json_opens(file, people, tmp_path):
    expected, name = EXPECTED[file], file.removesuffix(".json")
    model, schema = read_fit(SAVED / file)
    document = json.loads((SAVED / file).read_text())
    if name == "long":
        long = pd.DataFrame(
            {"rowId": [0, 1, 5, 9, 17], "covariateId": [7, 7, 9, 9, 7], "covariateValue": 1.0}
        )
        data = rs.Dataset.from_schema(
            schema,
            people[["age"]].assign(rowId=np.arange(5)),
            outcome=False,
            covariates=long,
            unknown_rows="drop",
        )
    else:
        data = rs.Dataset.from_schema(schema, new_rows(name, people), outcome=False)
    loaded = rs.load(SAVED / file)
    loaded.save(tmp_path / "again.riskset")
    for again in (model, loaded, rs.load(tmp_path / "again.riskset")):
        assert type(again).__name__ == expected["class"]
        assert_array_equal(again.coef_, np.array(expected["coef"], dtype=float))
        assert_close(again.predict(data), np.array(expected["predict"], dtype=float))
        assert_close(again.predict_survival_function(data, TIMES), expected["survival"])
        assert again.log_likelihood_ == document["log_likelihood"]
        summary = again.summary()
        assert summary["coef"].tolist() == again.coef_.tolist()
        is_penalized = document["penalty"]["l1"] + document["penalty"]["l2"] > 0
        assert np.isnan(summary["standard_error"]).all() == is_penalized
    if name == "cv":
        assert loaded.penalty == rs.L1(document["penalty"]["l1"], unpenalized=["age"])


def test_version_1_had_no_checksums(tmp_path):
    with zipfile.ZipFile(SAVED / "frame.riskset") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(content["fit.json"]) | {"format_version": 1}
    del document["arrays"], document["sha256"]
    with zipfile.ZipFile(tmp_path / "old", "w") as archive:
        for name, packed in content.items():
            archive.writestr(name, json.dumps(document) if name == "fit.json" else packed)
    assert_array_equal(rs.load(tmp_path / "old").coef_, EXPECTED["frame.riskset"]["coef"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 3}, "in format 3, but"),
        ({"covariates": ["age"]}, "names 1 covariates, but holds 3 coefficients"),
        ({"model": "Weibull"}, "but it is 'Weibull'"),
        ({"notes": None}, "`notes`: input should be a valid list"),
        ({"attributes": {}}, "something in it is missing or changed"),
    ],
)
def test_a_changed_old_file_is_refused(tmp_path, change, message):
    with zipfile.ZipFile(SAVED / "frame.riskset") as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(content["fit.json"]) | {"format_version": 1} | change
    del document["arrays"], document["sha256"]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, packed in content.items():
            archive.writestr(name, json.dumps(document) if name == "fit.json" else packed)
    (tmp_path / "old").write_bytes(buffer.getvalue())
    with pytest.raises(rs.InputError, match=message):
        rs.load(tmp_path / "old")
