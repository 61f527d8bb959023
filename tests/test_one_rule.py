"""Functions that take strata, weights or labels of causes take them alike."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose

import riskset as rs

N = 160
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 2))
TIME = RNG.integers(1, 12, N)
CODE = RNG.choice([0, 1, 2], N, p=[0.4, 0.3, 0.3])
ARM = RNG.integers(0, 2, N)
LABELS = np.array(["censored", "relapse", "death"])
PLAIN = rs.Surv(TIME, CODE == 1)
COMPETING = rs.Surv(TIME, CODE)
LABELLED = rs.Surv(TIME, LABELS[CODE], censored="censored")
AT = [3.0, 7.0]
PEOPLE = rs.cohort.Population(ARM, np.full(N, 0.5))
INCIDENCE = np.clip(np.abs(X[:, :1]) * [[0.2, 0.4]], 0, 1)


def numbers(found: Any) -> list[np.ndarray]:
    """What a result says, as arrays."""
    found = found if isinstance(found, (list, tuple)) else [found]
    return [np.asarray(part, dtype=float) for part in found]


def same(a: Any, b: Any) -> None:
    for one, other in zip(numbers(a), numbers(b), strict=True):
        assert one.size
        assert_allclose(one, other, rtol=1e-7, atol=1e-10)


# -------------------------------------------------------------------------------------- strata

A, B = RNG.integers(0, 2, N), RNG.choice(["x", "y"], N)
ONE = np.array([f"{i} {j}" for i, j in zip(A, B, strict=True)])
FORMS = {
    "list": [A, B],
    "tuple": (A.tolist(), pd.Series(B)),
    "pandas": pd.DataFrame({"a": A, "b": B}),
    "polars": pl.DataFrame({"a": A, "b": B}),
    "arrow": pa.table({"a": A, "b": B}),
}
COX, FINE_GRAY = rs.Cox(rs.L2(1.0)), rs.FineGray(rs.L2(1.0))


def survival_of(model: Any, strata: Any) -> Any:
    fitted = model.fit(X, COMPETING if "causes" in dir(model) else PLAIN, strata=strata)
    return fitted.predict_survival_function(X, AT, strata=strata)


STRATIFIED: dict[str, Callable[[Any], Any]] = {
    "Cox.fit": lambda s: rs.Cox().fit(X, PLAIN, strata=s).coef_,
    "FineGray.fit": lambda s: rs.FineGray().fit(X, COMPETING, strata=s).coef_,
    "Cox.score": lambda s: rs.Cox().fit(X, PLAIN).score(X, PLAIN, strata=s),
    "Cox.log_likelihood": lambda s: rs.Cox().log_likelihood({}, X, PLAIN, strata=s),
    "Cox.residuals": lambda s: rs.Cox().fit(X, PLAIN, strata=s).residuals(X, PLAIN, strata=s),
    "Cox.test_proportionality": lambda s: (
        rs.Cox().fit(X, PLAIN, strata=s).test_proportionality(X, PLAIN, strata=s).p_value
    ),
    "Cox.predict_survival_function": lambda s: survival_of(rs.Cox(), s),
    "Cox.predict_cumulative_hazard_function": lambda s: (
        rs.Cox().fit(X, PLAIN, strata=s).predict_cumulative_hazard_function(X, AT, strata=s)
    ),
    "FineGray.predict_cumulative_incidence": lambda s: (
        rs.FineGray().fit(X, COMPETING, strata=s).predict_cumulative_incidence(X, AT, strata=s)
    ),
    "CauseSpecificCox": lambda s: survival_of(rs.CauseSpecificCox(), s),
    "path": lambda s: rs.path(COX, X, PLAIN, penalties=[1.0, 3.0], strata=s).coefs,
    "profile": lambda s: (
        rs.profile(rs.Cox(), X, PLAIN, "x0", grid=[0.0, 0.5], strata=s).log_likelihood
    ),
    "fit_each": lambda s: rs.fit_each([COX], X, PLAIN, strata=s)[0].coef_,
    "cross_validate": lambda s: (
        rs.cross_validate(COX, X, PLAIN, folds=ARM, repeats=1, strata=s).mean
    ),
    "logrank_test": lambda s: rs.logrank_test(PLAIN, ARM, strata=s).statistic,
    "pairwise_logrank_test": lambda s: (
        rs.pairwise_logrank_test(PLAIN, ARM, strata=s).adjusted_p_value
    ),
    "max_combo_test": lambda s: rs.max_combo_test(PLAIN, ARM, strata=s).statistic,
    "gray_test": lambda s: rs.gray_test(COMPETING, ARM, 2, strata=s).statistic,
    "metrics.concordance": lambda s: rs.metrics.concordance(PLAIN, X[:, 0], strata=s).concordance,
    "cohort.match": lambda s: rs.cohort.match(PEOPLE, within=s).weight,
    "cohort.coarsen": lambda s: rs.cohort.coarsen(PEOPLE, within=s).weight,
    "cohort.stratify": lambda s: rs.cohort.stratify(PEOPLE, k=2, within=s).weight,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("function", STRATIFIED)
def test_strata_are_labels_or_several_columns(function, form):
    of = STRATIFIED[function]
    same(of(FORMS[form]), of(ONE))


@pytest.mark.parametrize("function", STRATIFIED)
def test_strata_with_a_missing_label(function):
    if function.startswith("cohort."):
        pytest.skip("a missing label is a block of its own there, as is documented")
    with pytest.raises(rs.InputError, match=r"`strata` must not be missing, but 1 of 160 rows is"):
        STRATIFIED[function](np.append(ONE[:-1].astype(object), None))


# -------------------------------------------------------------------------------------- causes


def per_protocol(y: Any, rows: Any = slice(None), weight: Any = None, cause: Any = None) -> Any:
    """The log hazard ratio of rows from time 0, of people who never deviate."""
    y = rs.split(y, [100.0], id=None, episode=None)
    rest = {"person": np.arange(y.size), "deviates": np.zeros(y.size), "cause": cause}
    weights = rs.cohort.censoring_weights(y, ARM[rows], X[rows], **rest)
    return rs.cohort.fit_per_protocol(weights, sample_weight=weight).log_hr


CAUSES: dict[str, Callable[[Any, Any], Any]] = {
    "Cox": lambda y, c: rs.Cox(cause=c).fit(X, y).coef_,
    "FineGray": lambda y, c: rs.FineGray(cause=c).fit(X, y).coef_,
    "Cox.score": lambda y, c: rs.Cox(cause=c).fit(X, y).score(X, y),
    "FineGray.score": lambda y, c: rs.FineGray(cause=c).fit(X, y).score(X, y),
    "path": lambda y, c: rs.path(rs.Cox(rs.L2(1.0), cause=c), X, y, penalties=[1.0]).coefs,
    "cross_validate": lambda y, c: (
        rs.cross_validate(rs.Cox(rs.L2(1.0), cause=c), X, y, folds=ARM, repeats=1).mean
    ),
    "fit_each": lambda y, c: rs.fit_each([rs.Cox(cause=c)], X, y)[0].coef_,
    "kaplan_meier": lambda y, c: rs.kaplan_meier(y, ARM, cause=c).at(AT),
    "logrank_test": lambda y, c: rs.logrank_test(y, ARM, c).statistic,
    "pairwise_logrank_test": lambda y, c: rs.pairwise_logrank_test(y, ARM, c).adjusted_p_value,
    "max_combo_test": lambda y, c: rs.max_combo_test(y, ARM, c).statistic,
    "gray_test": lambda y, c: rs.gray_test(y, ARM, c).statistic,
    "metrics.concordance": lambda y, c: rs.metrics.concordance(y, X[:, 0], cause=c).concordance,
    "metrics.concordance, ipcw": lambda y, c: (
        rs.metrics.concordance(y, X[:, 0], cause=c, ipcw=True, tau=8.0).concordance
    ),
    "metrics.auc": lambda y, c: rs.metrics.auc(y, X[:, 0], AT, cause=c).auc,
    "metrics.roc": lambda y, c: rs.metrics.roc(y, X[:, 0], AT[0], cause=c).true_positive_rate,
    "metrics.brier_score": lambda y, c: (
        rs.metrics.brier_score(y, INCIDENCE, AT, prediction_is="incidence", cause=c).score
    ),
    "metrics.calibration": lambda y, c: (
        rs.metrics.calibration(
            y, INCIDENCE[:, 1], 7.0, prediction_is="incidence", cause=c, groups=2
        ).observed
    ),
    "cohort.fit_outcome": lambda y, c: rs.cohort.fit_outcome(y, PEOPLE, cause=c).log_hr,
    "cohort.fit_outcome, finegray": lambda y, c: (
        rs.cohort.fit_outcome(y, PEOPLE, "finegray", cause=c).log_hr
    ),
    "cohort.risk_difference": lambda y, c: (
        rs.cohort.risk_difference(y, PEOPLE, AT, cause=c, replicates=39).difference
    ),
    "cohort.restricted_mean": lambda y, c: (
        rs.cohort.restricted_mean(y, PEOPLE, AT, cause=c).difference
    ),
    "cohort.doubly_robust": lambda y, c: (
        rs.cohort.doubly_robust(
            y, PEOPLE, X, AT, model="cause-specific", censoring="kaplan-meier", cause=c
        ).difference
    ),
    "cohort.standardize": lambda y, c: (
        rs.cohort.standardize(y, PEOPLE, X, AT, model="cause-specific", cause=c).difference
    ),
    "cohort.incidence": lambda y, c: rs.cohort.incidence(y, PEOPLE, cause=c).curves.at(AT),
    "cohort.censoring_weights": lambda y, c: per_protocol(y, cause=c),
    "cohort.gray": lambda y, c: rs.cohort.gray(y, PEOPLE, c).statistic,
}


@pytest.mark.parametrize("function", CAUSES)
def test_a_cause_is_called_by_its_label_or_its_code(function):
    of = CAUSES[function]
    for code in (1, 2):
        same(of(LABELLED, LABELS[code]), of(COMPETING, code))


@pytest.mark.parametrize("function", CAUSES)
def test_no_label_is_taken_for_the_outcome_by_its_place_in_the_alphabet(function):
    with pytest.raises(rs.InputError, match="'death', 'relapse', but `cause` does not name"):
        CAUSES[function](LABELLED, None)


@pytest.mark.parametrize("function", CAUSES)
def test_a_label_that_nobody_has(function):
    with pytest.raises(rs.InputError, match=r"must be a label of the events .*'stroke'"):
        CAUSES[function](LABELLED, "stroke")


@pytest.mark.parametrize("function", CAUSES)
def test_a_label_for_events_that_are_numbers(function):
    message = "`cause` is 'death', but the events are whole numbers"
    if function == "kaplan_meier":
        message = "`cause` must be a positive whole number or 'any', but it is 'death'"
    with pytest.raises(rs.InputError, match=message):
        CAUSES[function](COMPETING, "death")


def test_the_only_label_needs_no_name():
    y = rs.Surv(TIME, np.where(CODE == 1, "relapse", "censored"), censored="censored")
    for function, of in CAUSES.items():
        if not function.startswith("FineGray"):
            same(of(y, None), of(PLAIN, 1))


def test_follow_up_asks_for_no_cause():
    found, plain = (rs.cohort.followup(y, PEOPLE) for y in (LABELLED, COMPETING))
    same([found.target, found.comparator], [plain.target, plain.comparator])


def test_more_than_two_codes_are_one_outcome_and_what_competes():
    y = rs.Surv(TIME, np.where(CODE == 2, 1 + CODE + ARM, CODE))  # 1, 3 and 4
    with pytest.raises(rs.CohortError, match="status must be 0 .* but"):
        rs.cohort.fit_outcome(y, PEOPLE)
    assert rs.cohort.fit_outcome(y, PEOPLE, cause=1).log_hr == (
        rs.cohort.fit_outcome(COMPETING, PEOPLE).log_hr
    )
    for cause in (0, True, 1.5, -1):
        with pytest.raises(rs.CohortError, match="`cause` must be a positive whole number"):
            rs.cohort.risk_difference(y, PEOPLE, AT, cause=cause)


def test_tests_of_a_dataset_are_of_its_cause():
    frame = pd.DataFrame({"time": TIME, "event": LABELS[CODE], "x": X[:, 0]})
    data = rs.Dataset.from_frame(frame, censored="censored", cause="relapse")
    for of in (rs.logrank_test, rs.gray_test):
        expected = of(LABELLED, ARM, "relapse").statistic
        assert of(data, ARM).statistic == of(data.outcome(), ARM).statistic == expected
        assert of(data, ARM, "death").statistic == of(LABELLED, ARM, "death").statistic


# ------------------------------------------------------------------------------------- weights

COUNT = RNG.integers(0, 4, N)
ROWS = np.repeat(np.arange(N), COUNT)
WEIGHTED: dict[str, Callable[[Any, Any], Any]] = {
    "Cox": lambda r, w: rs.Cox().fit(X[r], PLAIN[r], sample_weight=w).coef_,
    "FineGray": lambda r, w: rs.FineGray().fit(X[r], COMPETING[r], sample_weight=w).coef_,
    "CauseSpecificCox": lambda r, w: [
        m.coef_
        for m in rs.CauseSpecificCox().fit(X[r], COMPETING[r], sample_weight=w).models_.values()
    ],
    "Cox.score": lambda r, w: rs.Cox().fit(X, PLAIN).score(X[r], PLAIN[r], sample_weight=w),
    "path": lambda r, w: rs.path(COX, X[r], PLAIN[r], penalties=[1.0], sample_weight=w).coefs,
    "fit_each": lambda r, w: rs.fit_each([COX], X[r], PLAIN[r], sample_weight=w)[0].coef_,
    "kaplan_meier": lambda r, w: [
        part
        for curve in rs.kaplan_meier(PLAIN[r], ARM[r], w)
        for part in (curve.at(AT), curve.columns(np.array(AT))["standard_error"])
    ],
    "reverse_kaplan_meier": lambda r, w: [
        part
        for curve in rs.reverse_kaplan_meier(COMPETING[r], ARM[r], w)
        for part in (curve.at(AT), curve.columns(np.array(AT))["standard_error"])
    ],
    "aalen_johansen": lambda r, w: rs.aalen_johansen(COMPETING[r], ARM[r], w).at(AT),
    "restricted_mean": lambda r, w: [
        part
        for mean in rs.restricted_mean(COMPETING[r], ARM[r], w, times=AT)
        for part in (mean.time_lost, mean.time_lost_standard_error)
    ],
    "logrank_test": lambda r, w: [
        getattr(rs.logrank_test(PLAIN[r], ARM[r], weight=w), name)
        for name in ("statistic", "n_rows", "n_events")
    ],
    "pairwise_logrank_test": lambda r, w: (
        rs.pairwise_logrank_test(PLAIN[r], ARM[r], weight=w).adjusted_p_value
    ),
    "max_combo_test": lambda r, w: rs.max_combo_test(PLAIN[r], ARM[r], weight=w).statistic,
    "gray_test": lambda r, w: [
        getattr(rs.gray_test(COMPETING[r], ARM[r], weight=w), name)
        for name in ("statistic", "n_rows", "n_events")
    ],
    "cohort.fit_per_protocol": lambda r, w: per_protocol(PLAIN[r], r, w),
    "metrics.concordance": lambda r, w: (
        rs.metrics.concordance(PLAIN[r], X[r, 0], sample_weight=w).concordance
    ),
    "metrics.auc": lambda r, w: rs.metrics.auc(PLAIN[r], X[r, 0], AT, sample_weight=w).auc,
    "metrics.roc": lambda r, w: (
        rs.metrics.roc(PLAIN[r], X[r, 0], AT[0], sample_weight=w).true_positive_rate
    ),
    "metrics.brier_score": lambda r, w: (
        rs.metrics.brier_score(
            PLAIN[r], INCIDENCE[r], AT, prediction_is="incidence", sample_weight=w
        ).score
    ),
}


@pytest.mark.parametrize("function", WEIGHTED)
def test_a_weight_of_two_is_the_row_twice(function):
    of = WEIGHTED[function]
    same(of(np.arange(N), COUNT), of(ROWS, None))


@pytest.mark.parametrize("function", WEIGHTED)
def test_weights_that_are_negative_or_missing(function):
    for bad, words in ((-1.0, "must not be negative"), (np.nan, "must be finite")):
        with pytest.raises(rs.InputError, match=f"weight` {words}, but 1 of 160 rows is"):
            WEIGHTED[function](np.arange(N), np.append(COUNT[:-1].astype(float), bad))


@pytest.mark.parametrize(
    "function", ["kaplan_meier", "aalen_johansen", "logrank_test", "gray_test"]
)
def test_a_dataset_and_an_outcome_bring_their_weights(function):
    of = getattr(rs, function)
    frame = pd.DataFrame({"time": TIME, "event": CODE == 1, "w": COUNT, "x": X[:, 0]})
    data = rs.Dataset.from_frame(frame, weight="w")
    expected = of(PLAIN, ARM, weight=COUNT)
    for found in (of(data, ARM), of(data.outcome(), ARM)):
        if function.endswith("test"):
            assert found.statistic == expected.statistic
        else:
            same(found.at(AT), expected.at(AT))


@pytest.mark.parametrize(
    "function", ["fit_outcome", "incidence", "survival", "gray", "followup", "risk_difference"]
)
def test_a_study_takes_no_case_weights(function):
    frame = pd.DataFrame({"time": TIME, "event": CODE == 1, "w": 1 + COUNT, "x": X[:, 0]})
    data = rs.Dataset.from_frame(frame, weight="w")
    more = (AT,) if function == "risk_difference" else ()
    with pytest.raises(rs.CohortError, match="the weights of a study are those of its adjustment"):
        getattr(rs.cohort, function)(data, PEOPLE, *more)


# ----------------------------------------------------------------------------- the tables above


def public_functions() -> dict[str, tuple[str, ...]]:
    """Parameters of every public function, and of methods of the estimators."""
    found = {name: getattr(rs, name) for name in rs.__all__}
    for module in ("cohort", "metrics"):
        of = getattr(rs, module)
        found |= {f"{module}.{name}": getattr(of, name) for name in of.__all__}
    return {
        name: tuple(inspect.signature(value).parameters)
        for name, value in found.items()
        if inspect.isfunction(value)
    }


def test_the_tables_name_every_function():
    """A new function with such an argument joins its table."""
    parameters = public_functions()
    unlike = {
        "read_dataset",  # strata and weights are names of columns there
        "time_interactions",  # so are strata there, and a cause is chosen by its code or label
        "cohort.required_events",  # strata are shares of people there
        "profile",  # the cause is that of its model, the weights are in the table of strata
        "cross_validate",
        "metrics.calibration",
        "cohort.survival",  # the same reader as cohort.incidence, which refuses competing events
    }
    for table, words in (
        (STRATIFIED, ("strata", "within")),
        (CAUSES, ("cause",)),
        (WEIGHTED, ("weight", "sample_weight")),
    ):
        named = {name.split(",")[0] for name in table}
        for name, own in parameters.items():
            assert name in named or name in unlike or not set(words) & set(own), name
