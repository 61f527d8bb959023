"""A damaged fit.json is refused with the path of the value, or it predicts; nothing else."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from mutations import mutated
from parameters import rest_is_slow
from riskset.estimators.saving import read_fit, write_fit

N = 60


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "days": np.ceil(rng.exponential(9, N)),
            "died": rng.integers(0, 3, N),
            "age": rng.normal(size=N).round(2),
            "site": rng.choice(["b", "a", "c"], N),
            "ward": rng.choice(["u", "v"], N),
        }
    )


def _fits(table):
    read = rs.Dataset.from_frame
    strata = read(table, time="days", event="died", strata="ward")
    yield "strata", rs.Cox(cause=1).fit(strata)
    plain = read(table.drop(columns="ward"), time="days", event="died")
    yield "finegray", rs.FineGray(cause=1).fit(plain)
    early = table.assign(late=(table["days"] > table["days"].max() / 2).astype(float))
    early.loc[early["late"] == 1, "died"] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield (
            "infinite",
            rs.Cox(cause=1).fit(
                read(early.drop(columns=["ward", "site"]), time="days", event="died")
            ),
        )


def _long(table):
    long = pd.DataFrame(
        {"rowId": [0, 1, 5, 9, 17], "covariateId": [7, 7, 9, 9, 7], "covariateValue": 1.0}
    )
    people = table.drop(columns=["ward", "site"]).assign(rowId=np.arange(N))
    return rs.Dataset.from_long(people, long, time="days", event="died"), long


@pytest.fixture(scope="module")
def documents(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fits")
    fits = dict(_fits(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits["long"] = rs.Cox(rs.L2(1.0), cause=1).fit(_long(table)[0])
    found = {}
    for name, model in fits.items():
        write_fit(folder / f"{name}.json", model)
        found[name] = json.loads((folder / f"{name}.json").read_text())
    return found


READ = ("riskset", "format", "model", "ties", "cause", "censoring", "coef", "status", "prediction")
RESTORED = (*READ, "n_rows", "standard_error", "warnings", "penalty", "estimator")


@pytest.mark.parametrize("name", ["strata", "finegray", "infinite", "long"])
def test_a_sound_fit_is_read(documents, tmp_path, name):
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(documents[name]))
    model, _ = read_fit(path)
    kept = sorted(float(b) for b in documents[name]["coef"].values())
    assert sorted(model.coef_.tolist()) == kept


@pytest.mark.parametrize("name", rest_is_slow(["infinite", "long", "finegray", "strata"], 1))
def test_a_damaged_fit_is_refused_or_predicts(documents, table, tmp_path, name):
    path = tmp_path / "fit.json"
    keys = RESTORED if name == "strata" else READ
    document = {key: value for key, value in documents[name].items() if key in keys}
    new = table.drop(columns=["days", "died"]).assign(rowId=np.arange(N)).iloc[:5]
    more = {"covariates": _long(table)[1], "unknown_rows": "drop"} if name == "long" else {}
    n_refused = 0
    for what, damaged in mutated(document):
        path.write_text(json.dumps(damaged))
        try:
            model, schema = read_fit(path)
        except rs.InputError:
            n_refused += 1
            continue
        try:
            data = rs.Dataset.from_schema(schema, new, outcome=False, **more)
            if isinstance(model, rs.FineGray):
                model.predict_cumulative_incidence(data, [3.0])
            else:
                model.predict_survival_function(data, [3.0])
        except rs.InputError:
            pass
        except Exception as error:
            pytest.fail(f"{what}: {type(error).__name__}: {error}")
    assert n_refused > 100


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["coef"].update(age=None), "`coef/age`: input should be a valid number"),
        (lambda d: d["coef"].pop("age"), "3 covariates"),
        (
            lambda d: d["prediction"]["baseline"]["stratum_ptr"].__setitem__(1, 10**6),
            "`prediction/baseline`: stratum_ptr must rise",
        ),
        (
            lambda d: d["prediction"]["schema"]["roles"].update(strata="ward"),
            "`prediction/schema/roles/strata`: input should be a valid list",
        ),
        (lambda d: d.pop("prediction"), "`prediction`: this key is missing"),
        (lambda d: d.update(status="fine"), "`status`: input should be 'converged'"),
        (lambda d: d.update(format="1"), "`format`: input should be a valid integer"),
    ],
)
def test_the_message_names_the_path_inside_the_file(documents, tmp_path, change, message):
    document = json.loads(json.dumps(documents["strata"]))
    change(document)
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(document))
    with pytest.raises(rs.InputError) as caught:
        read_fit(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith("fit.json is damaged: ")


def test_a_change_that_fits_is_found_by_the_checksum(documents, tmp_path):
    document = json.loads(json.dumps(documents["strata"]))
    path = tmp_path / "fit.json"
    document["coef"]["age"] += 1e-9
    path.write_text(json.dumps(document))
    with pytest.raises(rs.InputError, match=r"fit.json .* has changed .*\n.*key 'sha256'"):
        read_fit(path)
    del document["sha256"]
    path.write_text(json.dumps(document))
    assert read_fit(path)[0].coef_[0] == document["coef"]["age"]
    # What predictions do not need may change.
    path.write_text(json.dumps(documents["strata"] | {"seconds": {}}))
    read_fit(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"riskset": NaN}', "\x00", '{"riskset": "1"'])
def test_what_is_not_json_is_refused(tmp_path, text):
    (tmp_path / "fit.json").write_text(text)
    with pytest.raises(rs.InputError, match="not valid JSON"):
        read_fit(tmp_path / "fit.json")
