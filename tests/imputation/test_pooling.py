"""Rubin's rules: pooled Cox models and tests are those of R's mice and mitml."""

import dataclasses
import json
import math
from pathlib import Path

import matplotlib.text
import numpy as np
import pandas as pd
import pytest

import riskset as rs

FOLDER = Path(__file__).parents[1] / "golden" / "imputation"
GOLDEN = json.loads((FOLDER / "mice_lung.json").read_text())
NAMES = {
    "age": "age",
    "sex=male": "sexmale",
    "ph.ecog=one": "ph.ecogone",
    "ph.ecog=two": "ph.ecogtwo",
    "wt.loss": "wt.loss",
    "meal.cal": "meal.cal",
}
REFERENCE = {"sex": "female", "ph.ecog": "zero"}


@pytest.fixture(scope="module")
def fits():
    data = pd.read_csv(FOLDER / "completed.csv")
    return [
        rs.Cox(ties="efron").fit(
            rs.Dataset.from_frame(
                part.drop(columns=".imp"), time="time", event="status", reference=REFERENCE
            )
        )
        for _, part in data.groupby(".imp")
    ]


def _golden(which, column):
    found = GOLDEN[which]
    return dict(zip(found["names"], found[column], strict=True))


@pytest.mark.parametrize(("which", "df"), [("pooled", None), ("pooled_large", math.inf)])
def test_numbers_of_mice(fits, which, df):
    pooled = rs.pool(fits, df_complete=df)
    kept = [pooled.covariates_.index(name) for name in NAMES]
    assert len(kept) == len(pooled.covariates_)

    def wanted(column):
        return [_golden(which, column)[name] for name in NAMES.values()]

    interval = pooled.confidence_interval(list(NAMES))
    table = pooled.summary().loc[list(NAMES)]
    for own, column in (
        (pooled.coef_[kept], "estimate"),
        (np.diag(pooled.within_variance_)[kept], "ubar"),
        (np.diag(pooled.between_variance_)[kept], "b"),
        (np.diag(pooled.variance_)[kept], "t"),
        (pooled.standard_error_[kept], "se"),
        (pooled.df_[kept], "df"),
        (pooled.relative_increase_[kept], "riv"),
        (pooled.fraction_missing_[kept], "fmi"),
        (interval.lower, "lower"),
        (interval.upper, "upper"),
        (table["p"], "p"),
        (np.log(table["hazard_ratio_lower"]), "lower"),
    ):
        assert np.asarray(own) == pytest.approx(wanted(column), rel=2e-5, abs=1e-9), column
    if df is None:
        assert pooled.df_complete == GOLDEN[which]["dfcom"]


@pytest.mark.parametrize(("which", "df"), [("small", None), ("large", math.inf)])
def test_joint_test_of_mitml(fits, which, df):
    test = rs.pool(fits, df_complete=df).test(["ph.ecog=one", "ph.ecog=two"])
    wanted = GOLDEN["d1"][which]
    assert test.statistic == pytest.approx(wanted["F"], rel=1e-5)
    assert test.df == wanted["df1"]
    assert test.df_residual == pytest.approx(wanted["df2"], rel=1e-4)
    assert test.p_value == pytest.approx(wanted["p"], rel=1e-4)


def test_by_hand():
    """Two data sets with the log ratios 1 and 3 and variances 2 and 4: B = 2, T = 3 + 1.5 x 2."""

    people = rs.cohort.Population([1, 0] * 6)
    y = rs.Surv(np.arange(1, 13), [1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0])
    found = rs.cohort.fit_outcome(y, people)
    assert found.status == "ok"
    first, second = (
        dataclasses.replace(found, log_hr=log_hr, se=variance**0.5)
        for log_hr, variance in ((1.0, 2.0), (3.0, 4.0))
    )
    pooled = rs.pool([first, second])
    assert pooled.covariates_ == ("treatment",)
    assert pooled.coef_ == 2
    assert pooled.variance_ == pytest.approx(6.0)
    assert pooled.relative_increase_ == pytest.approx(1.0)
    # lambda = 1/2: old = 1 / (1/4) = 4; of 9 events 8 are left, and (9/11) 8 / 2 = 36/11 remain.
    assert pooled.df_complete == 8
    assert pooled.df_ == pytest.approx(1 / (1 / 4 + 11 / 36))
    assert pooled.test().statistic == pytest.approx(4 / 6)
    assert pooled.test().df_residual == pytest.approx(1 * 2 * 4 / 2)


def test_no_missing_information():
    """The same data twice: nothing is added."""
    x = np.array([[1.0], [2], [4], [3], [2], [5]])
    fit = rs.Cox().fit(x, rs.Surv([4, 3, 1, 2, 6, 5], [1, 1, 1, 0, 1, 1]))
    pooled = rs.pool([fit, fit])
    assert pooled.variance_ == pytest.approx(fit.variance_)
    assert pooled.relative_increase_ == 0
    assert pooled.test().statistic == pytest.approx(fit.tests_.wald.statistic)


def test_of_finegray_is_robust():
    rng = np.random.default_rng(1)
    y = rs.Surv(rng.exponential(size=60), rng.integers(0, 3, 60))
    fits = [rs.FineGray(cause=1).fit(rng.normal(size=(60, 1)), y) for _ in range(3)]
    pooled = rs.pool(fits)
    within = np.mean([fit.robust_variance_ for fit in fits], axis=0)
    assert pooled.within_variance_ == pytest.approx(within)


def test_a_coefficient_that_one_fit_lacks_is_unknown():
    y = rs.Surv([4, 3, 1, 2, 6, 5], [1, 1, 1, 0, 1, 1])
    x = np.array([[1.0, 1], [2, 3], [4, 2], [3, 1], [2, 2], [5, 1]])
    same = np.column_stack([x[:, 0], np.ones(6)])
    fits = [rs.Cox().fit(x, y), rs.Cox().fit(same, y)]
    pooled = rs.pool(fits)
    assert np.isnan(pooled.coef_).tolist() == [False, True]
    assert pooled.test("x0").p_value > 0
    with pytest.raises(rs.InputError, match="'x1' is not estimated in every"):
        pooled.test()


def test_what_cannot_be_pooled():
    y = rs.Surv([4, 3, 1, 2, 6, 5], [1, 1, 1, 0, 1, 1])
    x = np.array([[1.0, 1], [2, 3], [4, 2], [3, 1], [2, 2], [5, 1]])
    plain = rs.Cox().fit(x, y)
    with pytest.raises(rs.InputError, match="there is 1 result, but"):
        rs.pool([plain])
    with pytest.raises(rs.InputError, match="penalised fit"):
        rs.pool([rs.Cox(rs.L1(0.1)).fit(x, y)] * 2)
    with pytest.raises(rs.InputError, match="result 1 is not of the same kind"):
        rs.pool([plain, rs.Cox().fit(x[:, :1], y)])
    with pytest.raises(rs.InputError, match="result 0 is a float"):
        rs.pool([1.0, 2.0])
    with pytest.raises(rs.InputError, match="`df_complete` must be a number above 0"):
        rs.pool([plain, plain], df_complete=0)
    with pytest.raises(rs.InputError, match="covariate 'x7'"):
        rs.pool([plain, plain]).confidence_interval("x7")


def test_a_status_is_not_pooled():
    people = rs.cohort.Population([1, 0, 1, 0])
    bad = rs.cohort.fit_outcome(rs.Surv([3, 5, 8, 2], [0, 0, 0, 0]), people)
    with pytest.raises(rs.InputError, match="result 0 has the status 'no_events'"):
        rs.pool([bad, bad])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["age", "age"], "`parameters` names 'age' twice"),
        ([], "`parameters` names no coefficient"),
        (["age", "agee"], "covariate 'agee' was not found"),
    ],
)
def test_names_that_cannot_be_tested(fits, names, words):
    with pytest.raises(rs.InputError, match=words):
        rs.pool(fits).test(names)


@pytest.mark.parametrize(
    ("within", "is_fine"),
    [
        ([[1.0, 0.5], [0.5, 1.0]], True),
        ([[1e-12, 0.0], [0.0, 1e12]], True),
        ([[1.0, 0.0], [0.0, 0.0]], False),
        ([[4.0, 2.0], [2.0, 1.0]], False),
        ([[1.0, math.nan], [math.nan, 1.0]], False),
    ],
)
def test_coefficients_without_a_variance_of_their_own_are_not_tested(fits, within, is_fine):
    pooled = rs.pool(fits)
    names, size = pooled.covariates_[:2], len(pooled.covariates_)
    covariance = np.eye(size)
    covariance[:2, :2] = within
    made = dataclasses.replace(
        pooled, _pooled=dataclasses.replace(pooled._pooled, within=covariance)
    )
    if is_fine:
        assert 0 <= made.test(names).p_value <= 1
        return
    with pytest.raises(rs.InputError, match="is singular"):
        made.test(names)


def test_one_result_is_not_pooled(fits):
    with pytest.raises(rs.InputError, match="there is 1 result, but pooling needs two or more"):
        rs.pool(fits[0])
    with pytest.raises(rs.InputError, match="`results` must be a list of results, but it is int"):
        rs.pool(3)


def test_a_forest_of_pooled_estimates(fits):
    """Limits are those of mice: coef plus and minus the t quantile times the error."""
    pooled = rs.pool(fits)
    ax = rs.plot.forest(pooled)
    texts = {text.get_text() for text in ax.figure.findobj(matplotlib.text.Text)}
    assert set(NAMES) <= texts
    age = _golden("pooled", "estimate")["age"]
    assert any(text.startswith(f"{math.exp(age):.2f} (") for text in texts)
    part = rs.plot.forest(pooled, interval=pooled.confidence_interval("age", level=0.9))
    assert "wt.loss" not in {text.get_text() for text in part.figure.findobj(matplotlib.text.Text)}
    with pytest.raises(rs.InputError, match="shows a fitted model, pooled estimates, or estimates"):
        rs.plot.forest(3)
