"""Formulas: coefficients of R, new data, files, and what is refused."""

import json
import pickle
import shutil
import subprocess

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from riskset.data.model_formula import ModelFormula

pytest.importorskip("formulaic")

FORMULAS = {
    "Surv(time, event) ~ bs(age, df=4) + sex*trt + strata(site)": (
        "Surv(time,event) ~ bs(age,df=4) + sex*trt + strata(site)"
    ),
    "Surv(time, event) ~ ns(age, df=3) + C(trt, contr.treatment('b')) + sex + cluster(site)": (
        "Surv(time,event) ~ ns(age,df=3) + C(trt,contr.treatment(3,2)) + sex + cluster(site)"
    ),
    "Surv(start, time, event) ~ poly(age, 2) + log(age):sex + sex + offset(z)": (
        "Surv(start,time,event) ~ poly(age,2) + log(age):sex + sex + offset(z)"
    ),
    "Surv(time, event) ~ C(site, contr.sum) + I(age**2 / 1000) + sex + sex:scale(z)": (
        "Surv(time,event) ~ C(factor(site),contr.sum) + I(age^2/1000) + sex + sex:scale(z)"
    ),
}


def patients(seed: int = 3, n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n).round(1),
            "sex": rng.choice(["f", "m"], n),
            "trt": rng.choice(list("abc"), n),
            "site": rng.integers(1, 4, n),
            "z": rng.normal(size=n).round(2),
        }
    )
    risk = np.exp(0.03 * frame.age - 0.5 * (frame.trt == "b") + 0.4 * (frame.sex == "m"))
    frame["time"] = np.ceil(2000 * rng.exponential(size=n) / risk) + 5
    frame["start"] = np.floor(frame.time * rng.uniform(0, 0.5, n))
    frame["event"] = (rng.random(n) < 0.7).astype(int)
    return frame


FRAME = patients()


def by_r(formula: str, path: str) -> list[float]:
    script = f"""
        library(survival); library(splines); d <- read.csv("{path}")
        d$sex <- factor(d$sex); d$trt <- factor(d$trt)
        f <- coxph({formula}, d, control=coxph.control(eps=1e-11, toler.chol=1e-13, iter.max=60))
        b <- coef(f); cat(sprintf("%.16e", b[!is.na(b)]))
    """
    found = subprocess.run(
        ["Rscript", "-e", script], capture_output=True, text=True, check=True
    ).stdout
    return [float(number) for number in found.split()]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R")
@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("formula", FORMULAS)
def test_coefficients_of_r(formula, seed, tmp_path):
    frame = patients(seed)
    frame.to_csv(tmp_path / "patients.csv", index=False)
    expected = by_r(FORMULAS[formula], str(tmp_path / "patients.csv"))
    model = rs.Cox.from_formula(formula, frame, ties="efron", tol=1e-12)
    assert_allclose(model.coef_, expected, rtol=1e-8, atol=1e-9)


def test_coefficients_that_r_has_printed():
    """The first formula on these data, in R 4.2.2."""
    model = rs.Cox.from_formula(next(iter(FORMULAS)), FRAME, ties="efron", tol=1e-12)
    assert model.covariates_ == (
        *(f"bs(age, df=4)[{j}]" for j in (1, 2, 3, 4)),
        *("sex[T.m]", "trt[T.b]", "trt[T.c]", "sex[T.m]:trt[T.b]", "sex[T.m]:trt[T.c]"),
    )
    assert model.n_strata_ == 3
    assert_allclose(model.coef_, PRINTED, rtol=1e-8)


PRINTED = [
    -0.32652681349228896, 0.8323045893791762, 1.0939094938911034, 1.1744791077933894,
    0.4163730795276319, -0.6852444509011765, -0.44161193275706584, 0.2718035437484886,
    -0.009721084909100506,
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
def test_new_data_get_the_columns_of_the_fit(formula, tmp_path):
    model = rs.Cox.from_formula(formula, FRAME)
    model.save(tmp_path / "fit.riskset")
    whole = model.predict(FRAME)
    few = FRAME.iloc[[7, 40, 41]]  # their own quantiles, means and levels are others
    for one in (model, rs.load(tmp_path / "fit.riskset"), pickle.loads(pickle.dumps(model))):
        assert_allclose(one.predict(few), whole[[7, 40, 41]], rtol=1e-10, atol=1e-12)
        table = pa.Table.from_pandas(few, preserve_index=False)
        assert_allclose(one.predict(table), whole[[7, 40, 41]], rtol=1e-10, atol=1e-12)


def test_levels_have_their_declared_order_and_a_reference():
    text = "Surv(time, event) ~ trt"
    ordered = FRAME.assign(trt=pd.Categorical(FRAME.trt, categories=list("cab")))
    assert rs.Cox.from_formula(text, ordered).covariates_ == ("trt[T.a]", "trt[T.b]")
    chosen = rs.Cox.from_formula(text, FRAME, reference={"trt": "b"})
    by_hand = rs.Cox().fit(
        np.c_[FRAME.trt == "a", FRAME.trt == "c"].astype(float), rs.Surv(FRAME.time, FRAME.event)
    )
    assert chosen.covariates_ == ("trt[T.a]", "trt[T.c]")
    assert_allclose(chosen.coef_, by_hand.coef_, rtol=1e-7)


def test_roles_beside_the_formula_and_causes():
    whole = rs.Cox.from_formula("Surv(start, time, event) ~ age + strata(site, sex)", FRAME)
    data = rs.Dataset.from_frame(
        FRAME, formula="age", time="time", event="event", entry="start", strata=["site", "sex"]
    )
    assert_array_equal(rs.Cox().fit(data).coef_, whole.coef_)
    one_sided = rs.Dataset.from_frame(
        FRAME, formula=" ~ age + strata(site, sex)", time="time", event="event", entry="start"
    )
    assert_array_equal(rs.Cox().fit(one_sided).coef_, whole.coef_)
    with pytest.raises(rs.InputError, match="time"):
        rs.Cox.from_formula("~ age", FRAME[["age"]])
    several = FRAME.assign(event=FRAME.event + (FRAME.event == 1) * (FRAME.site == 2))
    model = rs.Cox.from_formula("Surv(time, event == 2) ~ age", several)
    own = rs.Cox().fit(FRAME[["age"]], rs.Surv(FRAME.time, several.event == 2))
    assert_allclose(model.coef_, own.coef_, rtol=1e-7)
    found = rs.FineGray.from_formula("Surv(time, event) ~ ns(age, df=2)", several, cause=2)
    assert found.status_ == "converged"
    tuned = rs.CoxCV.from_formula(
        "Surv(time, event) ~ bs(age, df=4) + sex", FRAME, penalty="l2", folds=3, repeats=1
    )
    assert tuned.best_penalty_.l2 > 0


def test_categories_stay_sparse():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"t": rng.exponential(size=5000), "e": 1})
    frame["code"] = rng.choice([f"c{k}" for k in range(400)], 5000)
    data = rs.Dataset.from_frame(frame, formula="Surv(t, e) ~ code")
    assert data.design.n_features == 399
    assert data.design.nbytes < 5000 * 399 / 10


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sex": "x"}, "'sex' has a level that was not there at the fit"),
        ({"age": np.nan}, "'age' must not have missing values"),
        ({"age": 500.0}, "beyond the range that a spline had at the fit"),
    ],
)
def test_new_data_that_cannot_be_read(change, words):
    model = rs.Cox.from_formula("Surv(time, event) ~ bs(age, df=4) + sex", FRAME)
    with pytest.raises(rs.InputError, match=words):
        model.predict(FRAME.head(4).assign(**change))


def test_a_number_that_is_a_category_has_no_new_levels():
    model = rs.Cox.from_formula("Surv(time, event) ~ C(site) + age", FRAME)
    assert model.covariates_ == ("C(site)[T.2]", "C(site)[T.3]", "age")
    with pytest.raises(rs.InputError, match="[Ll]evel|categor"):
        model.predict(FRAME.head(3).assign(site=[1, 2, 9]))


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("Surv(time, event) ~ agee", "column 'agee' was not found"),
        ("Surv(time) ~ age", "takes two columns"),
        ("lm(time) ~ age", "its left side is not Surv"),
        ("Surv(time, event) ~ age +", "cannot be used"),
        ("Surv(time, event) ~ strata(site)", "no covariate"),
        ("Surv(time, event) ~ age + strata(site):sex", "within an interaction"),
        ("Surv(time, event) ~ age + offset(log(z))", "does not name a column"),
        ("Surv(time, event) ~ age + offset(z) + offset(z) + offset(age)", "two offset"),
        ("Surv(time, event) ~ log(z)", "is not finite in row"),
        ("Surv(time, event) ~ age + frailty(site)", "fit `riskset.CoxFrailty`"),
        ("Surv(time, event) ~ age + tt(age)", "fit `riskset.TimeEffectCox`"),
        ("Surv(time, event) ~ np.load('x')", "'np.load' is not a known function"),
        ("Surv(time, event) ~ I(age.__class__)", "not a known function"),
        ("Surv(time, event) ~ I((lambda: 1)())", "cannot be used"),
        ("Surv(time, event) ~ I([n for n in 'ab'])", "cannot be used"),
        ("", "must be text"),
    ],
)
def test_formulas_that_are_refused(formula, words):
    with pytest.raises(rs.InputError, match=words):
        rs.Cox.from_formula(formula, FRAME)


def test_a_role_is_named_once():
    with pytest.raises(rs.InputError, match="`time` is 'start', but the formula says 'time'"):
        rs.Dataset.from_frame(FRAME, formula="Surv(time, event) ~ age", time="start")
    with pytest.raises(rs.InputError, match="`drop` was given together with `formula`"):
        rs.Dataset.from_frame(FRAME, formula="Surv(time, event) ~ age", drop="z")
    with pytest.raises(rs.InputError, match="does not go with a formula"):
        rs.Dataset.from_frame(FRAME, formula="Surv(time, event) ~ age", missing="indicator")


def test_a_file_runs_no_code(tmp_path):
    """The formula of a saved model is checked as any other."""
    model = rs.Cox.from_formula("Surv(time, event) ~ age", FRAME)
    schema = model._columns.schema
    state = json.loads(json.dumps(schema.to_dict()))
    state["encoder"]["formula"]["covariates"] = f"I(open('{tmp_path}/made', 'w'))"
    changed = type(schema).from_dict(state)
    with pytest.raises(rs.InputError, match="'open' is not a known function"):
        rs.Dataset.from_schema(changed, FRAME)
    assert not (tmp_path / "made").exists()


def test_parts_of_a_formula():
    found = ModelFormula.parse("Surv(a, b, c == 'x') ~ z + strata(s) + strata(t) + cluster(i)")
    assert found.roles == {
        "entry": "a", "time": "b", "event": "c", "cause": "x", "strata": ("s", "t"), "cluster": "i",
    }  # fmt: skip


def test_a_summary_has_the_reference_of_each_level() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "t": rng.exponential(1, 90),
            "e": 1,
            "sex": list("fmm") * 30,
            "g": [*rng.permutation(list("abc") * 30)],
            "x": rng.normal(size=90),
        }
    )
    formula = "Surv(t, e) ~ x + sex + C(g, contr.treatment('b')) + x:sex"
    found = rs.Cox.from_formula(formula, frame).summary()["reference"]
    assert [None if pd.isna(x) else x for x in found] == [None, "sex=f", "g=b", "g=b", None]
    assert "reference" not in rs.Cox.from_formula("Surv(t, e) ~ x", frame).summary()
