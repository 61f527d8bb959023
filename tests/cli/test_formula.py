"""``riskset fit --formula`` and predictions with its model."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from cli.runs import Run, fit_json
from data.test_formula import FRAME, PRINTED

pytest.importorskip("formulaic")

TEXT = "Surv(time, event) ~ bs(age, df=4) + sex*trt + strata(site)"


def test_fit_and_predict(run: Run) -> None:
    FRAME.to_csv("patients.csv", index=False)
    FRAME.head(5).to_csv("new.csv", index=False)
    ended = run(
        "fit", "patients.csv", "--formula", TEXT, "--ties", "efron", "--tol", "1e-11",
        "--out", "fit.json",
    )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    assert_allclose(list(fit_json()["coef"].values()), PRINTED, rtol=1e-7)
    ended = run("predict", "fit.json", "new.csv", "--times", "20", "--out", "new-survival.csv")
    assert (ended.code, ended.err) == (0, "")
    model = rs.Cox.from_formula(TEXT, FRAME, ties="efron", tol=1e-11)
    expected = model.predict_survival_function(FRAME.head(5), [20.0])[:, 0]
    found = pd.read_csv("new-survival.csv")
    assert (
        np.isclose(found.to_numpy()[:, -1], expected, rtol=1e-6).all()
        or np.isclose(found["survival"], expected, rtol=1e-6).all()
    )


def test_a_formula_that_is_refused(run: Run) -> None:
    FRAME.to_csv("patients.csv", index=False)
    text = "Surv(time, event) ~ frailty(site)"
    ended = run("fit", "patients.csv", "--formula", text, "--out", "fit.json")
    assert ended.code == 2
    assert "frailty" in ended.err
    assert "CoxFrailty" in ended.err
