"""``riskset predict``: a ``fit.json`` and new rows give predictions."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import riskset as rs
from cli.runs import Run
from riskset.datasets import rhc_path
from riskset.estimators.saving import read_fit, to_dict


def test_predictions_survive_the_file(run: Run) -> None:
    raw = rhc_path(categories=True)
    run(
        "fit", raw, "--id", "id", "--strata", "fac_sex", "--penalty", "elasticnet", "--strength",
        30, "--l1-ratio", 0.7, "--out", "fit.json", "--quiet",
    )  # fmt: skip
    columns = pq.read_table(raw).drop_columns(["time", "event"]).slice(17, 40)
    # The columns may stand in any order, and further ones do not matter.
    shuffled = columns.select(columns.column_names[::-1]).append_column("more", columns["num_age"])
    pq.write_table(shuffled, "new.parquet")
    ended = run("predict", "fit.json", "new.parquet", "--times", "30, 365", "--out", "p.csv")
    assert (ended.code, ended.err) == (0, "")
    table = pd.read_csv("p.csv")
    data = rs.read_dataset(raw, id="id", strata="fac_sex")
    model = rs.Cox(rs.ElasticNet(l1=21.0, l2=9.0)).fit(data)
    rows = slice(17, 57)
    hazard = model.predict_cumulative_hazard_function(data, [30, 365])[rows]
    assert table["id"].tolist() == np.repeat(np.arange(17, 57), 2).tolist()
    np.testing.assert_allclose(table["linear_predictor"][::2], model.predict(data)[rows], rtol=1e-9)
    np.testing.assert_allclose(table["cumulative_hazard"], hazard.ravel(), rtol=1e-9)
    np.testing.assert_allclose(table["survival"], np.exp(-hazard).ravel(), rtol=1e-9)


def test_a_saved_model_predicts_as_its_document(run: Run, lung: Path) -> None:
    model = rs.FineGray(n_threads=1).fit(rs.read_dataset(lung, id="id"))
    model.save("model.riskset")
    run(
        "fit",
        lung,
        "--id",
        "id",
        "--model",
        "finegray",
        "--cause",
        1,
        "--out",
        "fit.json",
        "--quiet",
    )
    for fit, out in (("model.riskset", "a.csv"), ("fit.json", "b.csv"), (".", "c.csv")):
        ended = run("predict", fit, lung, "--times", "100", "--out", out, "--quiet")
        assert (ended.code, ended.err) == (0, "")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() == Path("c.csv").read_bytes()


def test_rows_without_a_key_are_counted(run: Run, lung: Path) -> None:
    pd.read_csv(lung).drop(columns="id").to_csv("plain.csv", index=False)
    run("fit", "plain.csv", "--out", "fit.json", "--quiet")
    run("predict", "fit.json", "plain.csv", "--times", "100", "--out", "p.csv", "--quiet")
    assert pd.read_csv("p.csv")["row"].tolist() == list(range(1, 214))


def test_a_stratum_that_was_not_in_the_fit(run: Run, lung: Path) -> None:
    run("fit", lung, "--id", "id", "--strata", "sex", "--out", "fit.json", "--quiet")
    pd.read_csv(lung).head(3).assign(sex=[1, 3, 2]).to_csv("new.csv", index=False)
    ended = run("predict", "fit.json", "new.csv", "--times", "30", "--out", "p.csv")
    assert ended.code == 2
    assert "column 'sex' of new.csv has 3 (data row 2, id 101), a stratum that was" in ended.err
    assert "without --times there is the linear predictor, which needs no stratum" in ended.err
    assert not Path("p.csv").exists()
    ended = run("predict", "fit.json", "new.csv", "--out", "p.csv")
    assert (ended.code, ended.err) == (0, "")
    assert "predicted 3 rows\n" in ended.out
    model = read_fit(Path("fit.json"))[0]
    table, new = pd.read_csv("p.csv"), pd.read_csv("new.csv")
    assert list(table) == ["id", "linear_predictor"]
    expected = new[list(model.covariates_)].to_numpy() @ model.coef_
    np.testing.assert_allclose(table["linear_predictor"], expected, rtol=1e-12)
    new.drop(columns="sex").to_csv("without.csv", index=False)
    assert run("predict", "fit.json", "without.csv", "--out", "q.csv", "--quiet").code == 0
    assert Path("q.csv").read_bytes() == Path("p.csv").read_bytes()
    ended = run("predict", "fit.json", "without.csv", "--times", "30", "--out", "q.csv")
    assert (ended.code, "column 'sex' of without.csv is missing" in ended.err) == (2, True)


def test_one_time_is_one(run: Run, lung: Path) -> None:
    run("fit", lung, "--id", "id", "--out", "fit.json", "--quiet")
    assert "213 rows at 1 time\n" in run(
        "predict", "fit.json", lung, "--times", "30", "--out", "p.csv"
    ).out  # fmt: skip


def test_a_level_that_was_not_in_the_fit(run: Run) -> None:
    raw = rhc_path(categories=True)
    run("fit", raw, "--id", "id", "--penalty", "l2", "--strength", 9, "--out", "f.json", "--quiet")
    frame = pd.read_parquet(raw).head(3)
    frame.loc[1, "fac_cat1"] = "Flu"
    frame.to_csv("new.csv", index=False)
    ended = run("predict", "f.json", "new.csv", "--times", "30", "--out", "p.csv")
    assert ended.code == 2
    for words in ("fac_cat1", "new.csv", "Flu"):
        assert words in ended.err
    assert not Path("p.csv").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no file"),
        ("{", "it is not valid JSON"),
        ('{"a": 1}', "does not have the key 'riskset'"),
        ('{"riskset": "0.1.0", "coef": {}}', "is damaged: `model`: this key is missing"),
        ('{"riskset": "9.0.0", "format": 99}', "upgrade riskset"),
    ],
)
def test_files_that_are_no_fit(run: Run, lung: Path, content: str | None, message: str) -> None:
    if content is not None:
        Path("fit.json").write_text(content)
    ended = run("predict", "fit.json", lung, "--times", "3", "--out", "p.csv")
    assert ended.code == 2
    assert message in ended.err
    assert not Path("p.csv").exists()


def test_fit_file_keeps_every_digit(tmp_path: Path) -> None:
    model = rs.Cox().fit(rs.load_rhc())
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(to_dict(model), allow_nan=False))
    again, _ = read_fit(path)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    data = rs.load_rhc()
    times = [1, 30, 5000]
    np.testing.assert_array_equal(
        again.predict_survival_function(data, times), model.predict_survival_function(data, times)
    )


def test_a_fit_without_a_table_has_no_file() -> None:
    model = rs.Cox(rs.L2(1.0)).fit(np.arange(4.0)[:, None], rs.Surv([1, 2, 3, 4], [1, 1, 0, 1]))
    with pytest.raises(rs.InputError, match="not fitted on a Dataset"):
        to_dict(model)


@pytest.mark.parametrize("times", ["", "a", "1,,2", "-1", "nan", "inf"])
def test_bad_times(run: Run, lung: Path, times: str) -> None:
    ended = run("predict", "fit.json", lung, f"--times={times}", "--out", "p.csv")
    assert ended.code == 2
    assert "--times must be numbers" in ended.err


def test_predictions_need_a_known_ending(run: Run, lung: Path) -> None:
    ended = run("predict", "fit.json", lung, "--times", "1", "--out", "p.xlsx")
    assert ended.code == 2
    assert "must end in .csv or .parquet" in ended.err


def test_a_format_that_is_no_number(run: Run, lung: Path) -> None:
    Path("bad.json").write_text('{"riskset": "1", "format": "x"}')
    ended = run("predict", "bad.json", lung, "--times", "1", "--out", "p.csv")
    assert ended.code == 2
    assert "is damaged: `format`: input should be a valid integer" in ended.err


@pytest.mark.parametrize("model", ["cox", "finegray"])
def test_limits_from_a_document_are_those_of_the_model(run: Run, lung: Path, model: str) -> None:
    run(
        "fit", lung, "--id", "id", "--model", model, "--interval-times", "100,365",
        "--out", "fit.json", "--quiet",
    )  # fmt: skip
    ended = run(
        "predict", "fit.json", lung, "--times", "365,100", "--interval", "--level", 0.9,
        "--out", "p.csv", "--quiet",
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    table = pd.read_csv("p.csv")
    data = rs.read_dataset(lung, id="id")
    fitted = (rs.Cox() if model == "cox" else rs.FineGray()).fit(data)
    found = fitted.predict_interval(data, [365, 100], level=0.9).columns()
    for name in ("standard_error", "lower", "upper"):
        np.testing.assert_allclose(table[name], found[name], rtol=1e-6)
    ended = run("predict", "fit.json", lung, "--times", 200, "--interval", "--out", "p.csv")
    assert ended.code != 0
    assert "100, 365, which does not include time 200" in " ".join(ended.err.split())


def test_options_of_limits_that_need_others(run: Run, lung: Path) -> None:
    run("fit", lung, "--id", "id", "--out", "fit.json", "--quiet")
    for options, message in (
        (("--interval",), "--interval needs --times"),
        (("--times", 100, "--level", 0.9), "--level is that of --interval"),
        (("--times", 100, "--interval"), "riskset fit --interval-times"),
    ):
        ended = run("predict", "fit.json", lung, *options, "--out", "p.csv")
        assert ended.code != 0
        assert message in " ".join(ended.err.split())
    ended = run(
        "fit", lung, "--penalty", "l2", "--strength", 1, "--interval-times", "100",
        "--out", "fit.json",
    )  # fmt: skip
    assert ended.code != 0
    assert "--interval-times" in ended.err
