"""Labels of covariates that an estimator is given: summaries and plots show them."""

import pandas as pd
import pytest
from sklearn.base import clone

import riskset as rs

LABELS = {"age": "Age, years", "sex": "Sex"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    cohort = rs.simulate_cox(300, 2, 0.5, seed=1)
    return pd.DataFrame(
        {
            "age": cohort.X.toarray()[:, 0] if hasattr(cohort.X, "toarray") else cohort.X[:, 0],
            "sex": ["f", "m", "m"] * 100,
            "time": cohort.time,
            "event": cohort.event,
        }
    )


@pytest.fixture(scope="module")
def y(frame):
    return rs.Surv(frame["time"], frame["event"])


def fitted(frame, y, **options):
    return rs.Cox(covariate_labels=LABELS, **options).fit(frame[["age", "sex"]], y)


def test_a_summary_has_the_labels(frame, y) -> None:
    found = fitted(frame, y).summary()
    assert list(found.index) == ["age", "sex=m"]
    assert list(found["label"]) == ["Age, years", "Sex: m"]
    assert "label" not in rs.Cox().fit(frame[["age", "sex"]], y).summary()


def test_a_row_may_have_a_reference_level(frame, y) -> None:
    rows = [{"name": "sex", "label": "Sex", "reference": "m"}, {"name": "age", "unit": "years"}]
    model = rs.Cox(covariate_labels=rows).fit(frame[["age", "sex"]], y)
    assert list(model.summary()["label"]) == ["age, years", "Sex: f"]
    assert list(model.summary()["reference"].dropna()) == ["sex=m"]


def test_a_label_for_nothing_is_refused(frame, y) -> None:
    with pytest.raises(rs.InputError, match="'sx', which is not a covariate of X"):
        rs.Cox(covariate_labels={"sx": "Sex"}).fit(frame[["age", "sex"]], y)
    with pytest.raises(rs.InputError, match="a row of `covariate_labels` has 'text'"):
        rs.Cox(covariate_labels=[{"name": "sex", "text": "Sex"}]).fit(frame[["age", "sex"]], y)


@pytest.mark.parametrize(
    "model",
    [
        rs.FineGray(covariate_labels=LABELS),
        rs.CoxCV(rs.L2(), penalties=[1.0, 10.0], folds=3, repeats=1, covariate_labels=LABELS),
    ],
)
def test_other_models_have_them(frame, y, model) -> None:
    found = clone(model).fit(frame[["age", "sex"]], y).summary()
    assert {"Age, years", "Sex: m"} <= set(found["label"])


def test_each_cause_has_them(frame, y) -> None:
    found = rs.CauseSpecificCox(covariate_labels=LABELS).fit(frame[["age", "sex"]], y)
    assert list(found.models_[1].summary()["label"]) == ["Age, years", "Sex: m"]


def test_a_saved_model_keeps_them(frame, y, tmp_path) -> None:
    rows = pd.DataFrame({"name": ["age", "sex"], "label": ["Age, years", "Sex"]})
    model = rs.Cox(covariate_labels=rows).fit(frame[["age", "sex"]], y)
    model.save(tmp_path / "fit.riskset")
    again = rs.load(tmp_path / "fit.riskset")
    assert list(again.summary()["label"]) == ["Age, years", "Sex: m"]
    assert list(clone(again).fit(frame[["age", "sex"]], y).summary()["label"]) == [
        "Age, years",
        "Sex: m",
    ]


def test_plots_show_the_labels(frame, y) -> None:
    data = frame[["age", "sex"]]
    model = fitted(frame, y)
    ax = rs.plot.forest(model, emphasised=["sex=m"])
    words = [text.get_text() for text in ax.texts] + [t.get_text() for t in ax.get_yticklabels()]
    assert {"Age, years", "Sex: m"} <= set(words)
    (bold,) = {t.get_text() for t in ax.texts if t.get_fontweight() == "bold"} & {"Sex: m"}
    assert bold == "Sex: m"
    test = model.test_proportionality(data, y)
    assert rs.plot.schoenfeld(test, "age").get_ylabel() == "log hazard ratio of Age, years"
    found = model.bootstrap(60, parameters=["age"], seed=1)
    assert rs.plot.bootstrap_distribution(found).get_title(loc="left") == "Age, years"
    profile = rs.profile(model, data, y, parameter="age")
    assert rs.plot.profile_likelihood(profile).get_title(loc="left").startswith("Age, years")
    path = rs.path(rs.Cox(rs.L2(1.0), covariate_labels=LABELS), data, y, penalties=[10.0, 1.0])
    ax = rs.plot.coefficient_path(path)
    assert "Age, years" in {text.get_text() for text in ax.texts}


def test_balance_plots_show_the_labels_of_a_data_set(frame) -> None:
    data = rs.Dataset.from_frame(
        frame[["age", "sex", "time", "event"]], time="time", event="event", covariate_labels=LABELS
    )
    people = rs.cohort.Population([1, 0, 1, 0, 1, 0] * 50, [0.5, 0.4] * 150)
    balance = rs.cohort.balance(data, rs.cohort.weight(people))
    for ax in (rs.plot.love_plot(balance), rs.plot.balance_scatter(balance)):
        words = {t.get_text() for t in ax.texts} | {t.get_text() for t in ax.get_yticklabels()}
        assert "Age, years" in words
