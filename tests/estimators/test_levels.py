"""Levels of categories in models: one is left out without a penalty, none by a ridge penalty."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import riskset as rs
from levels_by_hand import by_hand
from riskset.estimators.saving import read_fit, write_fit

SAVED = Path(__file__).parent / "saved_before"
"""Fits that an earlier riskset saved, which kept no column for the first level of a category."""

rng = np.random.default_rng(20)
N = 150
FRAME = pd.DataFrame(
    {
        "age": rng.integers(40, 80, N),
        "site": rng.choice(list("abcd"), N),
        "sex": rng.choice(["f", "m"], N),
        "dose": rng.random(N),
    }
)
TIME, EVENT = rng.integers(1, 60, N), rng.random(N) < 0.7
Y = rs.Surv(TIME, EVENT)
DROPPED = ("age", "site=b", "site=c", "site=d", "sex=m", "dose")
ALL = ("age", "site=a", "site=b", "site=c", "site=d", "sex=f", "sex=m", "dose")


def as_dataset(**more):
    return rs.Dataset.from_frame(FRAME.assign(time=TIME, event=EVENT, **more))


@pytest.mark.parametrize("model", [rs.Cox, lambda p=None: rs.FineGray(p, cause=1)])
@pytest.mark.parametrize(
    ("penalty", "names"),
    [
        (None, DROPPED),
        (rs.L1(3.0), DROPPED),
        (rs.L2(3.0), ALL),
        (rs.ElasticNet(l1=1.0, l2=1.0), ALL),
        (rs.L1(3.0, drop_first=False), ALL),
        (rs.L2(3.0, drop_first=True), DROPPED),
        (rs.L2(3.0, unpenalized=["site=b"]), tuple(n for n in ALL if n != "site=a")),
        (rs.L2(3.0, unpenalized=["site=a"]), tuple(n for n in ALL if n != "site=b")),
        (rs.L1(3.0, unpenalized=["sex=f"]), (*DROPPED[:4], "sex=f", "dose")),
        (rs.L2(3.0, factor={"sex=f": 0.5}), ALL),
        (rs.L2(3.0, factor={"sex=m": 0.0}), tuple(n for n in ALL if n != "sex=f")),
        # Positions count the columns without first levels.
        (rs.L2(3.0, unpenalized=[1]), DROPPED),
        (rs.L2(3.0, factor=[1.0] * 6), DROPPED),
    ],
    ids=repr,
)
def test_which_levels_have_coefficients(model, penalty, names):
    fitted = model(penalty).fit(FRAME, Y)
    assert fitted.covariates_ == names
    assert fitted.status_ == "converged"
    # The bits of a fit of the same columns made by hand.
    plain = None if penalty is None else rs.L2(3.0)
    if penalty in (None, rs.L2(3.0), rs.L2(3.0, drop_first=True)):
        assert_array_equal(fitted.coef_, model(plain).fit(by_hand(FRAME, names), Y).coef_)
    again = model(penalty).fit(as_dataset())
    assert again.covariates_ == names
    assert_array_equal(again.coef_, fitted.coef_)


def test_the_ridge_of_all_levels_is_the_minimum_and_knows_no_first_level():
    fitted = rs.Cox(rs.L2(3.0)).fit(FRAME, Y)
    coef = dict(zip(fitted.covariates_, fitted.coef_, strict=True))
    # Coefficients of a category add up to 0: a shift of all would change the penalty alone.
    assert_allclose(sum(coef[f"site={s}"] for s in "abcd"), 0.0, atol=1e-7)
    assert_allclose(coef["sex=f"], -coef["sex=m"], atol=1e-7)
    renamed = FRAME.assign(site=FRAME["site"].map({"a": "z", "b": "b", "c": "c", "d": "d"}))
    other = rs.Cox(rs.L2(3.0)).fit(renamed, Y)
    again = dict(zip(other.covariates_, other.coef_, strict=True))
    for name, value in coef.items():
        assert_allclose(again[name.replace("=a", "=z")], value, atol=1e-6)


def test_standard_errors_of_a_model_without_a_penalty_are_those_of_before():
    fitted, plain = rs.Cox().fit(FRAME, Y), rs.Cox().fit(by_hand(FRAME, DROPPED), Y)
    assert_array_equal(fitted.standard_error_, plain.standard_error_)
    assert fitted.notes_ == plain.notes_ == []


@pytest.mark.parametrize("penalty", [None, rs.L2(3.0)], ids=repr)
def test_predictions_of_frames_datasets_and_saved_models(tmp_path, penalty):
    fitted, data = rs.Cox(penalty).fit(FRAME, Y), as_dataset()
    new = FRAME.iloc[:7]
    expected = fitted.predict(new)
    columns = DROPPED if penalty is None else ALL
    assert_allclose(expected, by_hand(FRAME, columns)[:7] @ fitted.coef_, rtol=1e-12)
    of_data = rs.Cox(penalty).fit(data)
    assert_array_equal(of_data.predict(new), expected)
    for k, model in enumerate((fitted, of_data)):
        model.save(tmp_path / f"{k}.riskset")
        assert_array_equal(rs.load(tmp_path / f"{k}.riskset").predict(new), expected)
    of_design = rs.Cox(penalty).fit(data.design, Y)
    assert of_design.covariates_ == columns
    assert_allclose(of_design.predict(data.design)[:7], expected, rtol=1e-12)


@pytest.mark.parametrize("penalty", [None, rs.L1(3.0), rs.L2(3.0)], ids=repr)
def test_fits_in_json_predict_as_the_models_do(tmp_path, penalty):
    """With a category of one level, too, which has no coefficient without a penalty."""
    fitted = rs.Cox(penalty).fit(as_dataset(country="x"))
    path = tmp_path / "fit.json"
    write_fit(path, fitted)
    model, schema = read_fit(path)
    new = FRAME.iloc[:7].assign(country="x")
    read = rs.Dataset.from_schema(schema, new, outcome=False)
    assert_array_equal(model.predict(read), fitted.predict(new))
    document = json.loads(path.read_text())
    for name in ("site=c", "site=d"):
        del document["coef"][name]
    path.write_text(json.dumps(document))
    with pytest.raises(rs.InputError, match="'site=c' and 'site=d' have no"):
        read_fit(path)


@pytest.mark.parametrize("name", ["frame", "ridge", "dataset"])
def test_fits_that_were_saved_before_predict_as_they_did(name):
    expected = json.loads((SAVED / "expected.json").read_text())[name]
    model = rs.load(SAVED / f"{name}.riskset")
    assert list(model.covariates_) == expected["covariates"]
    assert_array_equal(model.coef_, expected["coef"])
    new = pd.read_csv(SAVED / "new.csv")
    assert_allclose(model.predict(new), expected["predict"], rtol=1e-12)
    if name == "ridge":
        assert model.penalty == rs.L2(2.0, drop_first=True)


def test_another_first_level_is_not_taken_for_that_of_the_fit():
    fitted = rs.Cox().fit(as_dataset().design, Y)
    other = FRAME.assign(site=FRAME["site"].replace({"a": "A"}), time=TIME, event=EVENT)
    with pytest.raises(rs.InputError, match="levels of a category differ .*'site=A', 'site=b'"):
        fitted.predict(rs.Dataset.from_frame(other).design)


def test_a_column_of_one_level_is_in_no_model():
    frame = FRAME.assign(country="no")
    for penalty in (None, rs.L2(1.0)):
        assert "country=no" not in rs.Cox(penalty).fit(frame, Y).covariates_


def test_a_design_in_a_file_knows_its_categories(tmp_path):
    design = as_dataset().design
    design.save(tmp_path / "x.rsd")
    opened = rs.Design.open(tmp_path / "x.rsd")
    assert opened.factors == design.factors == (ALL[1:5], ALL[5:7])
    fitted = rs.Cox().fit(opened, Y)
    assert fitted.covariates_ == DROPPED
    assert_array_equal(fitted.coef_, rs.Cox().fit(FRAME, Y).coef_)


def test_blocks_have_no_first_levels():
    blocks = rs.Blocks.split(as_dataset(), n_blocks=3, engine=None)
    fitted = rs.Cox().fit(blocks)
    assert fitted.covariates_ == DROPPED
    assert_allclose(fitted.coef_, rs.Cox().fit(FRAME, Y).coef_, atol=1e-9)
    assert_allclose(fitted.predict(FRAME), rs.Cox().fit(FRAME, Y).predict(FRAME), atol=1e-7)
    with pytest.raises(rs.InputError, match="every level.*\n.*drop_first=True"):
        rs.Cox(rs.L2(1.0)).fit(blocks)
    ridge = rs.L2(1.0, drop_first=True)
    assert_allclose(rs.Cox(ridge).fit(blocks).coef_, rs.Cox(ridge).fit(FRAME, Y).coef_, atol=1e-9)


def test_blocks_with_other_levels_are_refused_where_absent_columns_are_zero():
    y = rs.Surv([3, 4, 5, 6], [1, 1, 0, 1])
    parts = [pd.DataFrame({"g": list(levels)}) for levels in ("abab", "bcbc")]
    items = [(parts[0], y), (parts[1], rs.Surv([13, 14, 15, 16], [1, 1, 0, 1]))]
    blocks = rs.Blocks(lambda item: item, items, engine=None, absent="zero")
    with pytest.raises(rs.InputError, match="block 1 has other levels of categories than block 0"):
        rs.Cox().fit(blocks)


def test_a_cross_validated_ridge_has_all_levels():
    cv = rs.CoxCV(rs.L2(), folds=3, repeats=1).fit(FRAME, Y)
    assert cv.covariates_ == ALL
    assert rs.CoxCV(folds=3, repeats=1).fit(FRAME, Y).covariates_ == DROPPED
    assert rs.CauseSpecificCox().fit(FRAME, Y).models_[1].covariates_ == DROPPED


def test_drop_first_is_a_choice():
    with pytest.raises(rs.InputError, match="`drop_first` must be True, False or None"):
        rs.L2(1.0, drop_first="yes")
    assert repr(rs.L1(1.0, drop_first=False)) == "L1(1.0, drop_first=False)"
    assert rs.L1.from_variance(2.0, drop_first=False).drop_first is False
    assert rs.L2(1.0, drop_first=True).with_strength(5.0).drop_first is True


# --------------------------------------------------------------------------------- references

AGES = pd.Series(pd.Categorical(rng.choice(["young", "old"], N), ["young", "old"]))
AGED = FRAME.assign(group=AGES)


def test_a_declared_order_gives_the_ratio_of_its_first_level():
    """As in R, where a factor with the levels young, old is compared with young."""
    sorted_by_text = rs.Cox().fit(AGED.assign(group=AGES.astype(str)), Y)
    declared = rs.Cox().fit(AGED, Y)
    assert "group=young" in sorted_by_text.covariates_
    assert declared.covariates_ == (*DROPPED, "group=old")
    assert_allclose(declared.coef_[-1], -sorted_by_text.coef_[-1], rtol=1e-9)
    assert_allclose(
        declared.predict(AGED) - declared.predict(AGED)[0],
        sorted_by_text.predict(AGED.assign(group=AGES.astype(str)))
        - sorted_by_text.predict(AGED.assign(group=AGES.astype(str)))[0],
        atol=1e-8,
    )


REFERENCE = {"site": "c", "sex": "m"}
CHOSEN = ("age", "site=a", "site=b", "site=d", "sex=f", "dose")
MODELS = {
    "cox": lambda **k: rs.Cox(**k).fit(FRAME, Y),
    "dataset": lambda reference: rs.Cox().fit(
        rs.Dataset.from_frame(FRAME.assign(time=TIME, event=EVENT), reference=reference)
    ),
    "fine-gray": lambda **k: rs.FineGray(**k).fit(FRAME, Y),
    "cross-validation": lambda **k: rs.CoxCV(penalties=[1.0], folds=2, repeats=1, **k).fit(
        FRAME, Y
    ),
    "fine-gray cross-validation": lambda **k: rs.FineGrayCV(
        penalties=[1.0], folds=2, repeats=1, score="difference", **k
    ).fit(FRAME, Y),
    "causes": lambda **k: rs.CauseSpecificCox(**k).fit(FRAME, Y).models_[1],
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_chosen_references(make, tmp_path):
    model = make(reference=REFERENCE)
    assert model.covariates_ == CHOSEN
    by_name = model.summary()["reference"].to_dict()
    assert by_name["site=a"] == by_name["site=d"] == "site=c"
    assert by_name["sex=f"] == "sex=m"
    assert pd.isna(by_name["age"])
    model.save(tmp_path / "fit.rsf")
    again = rs.load(tmp_path / "fit.rsf")
    assert again.summary()["reference"].to_dict() == by_name
    assert_array_equal(again.predict(FRAME), model.predict(FRAME))


def test_ratios_of_a_chosen_reference_follow_from_those_of_the_first_level():
    first, chosen = rs.Cox().fit(FRAME, Y), rs.Cox(reference=REFERENCE).fit(FRAME, Y)
    coef = dict(zip(first.covariates_, first.coef_, strict=True)) | {"site=a": 0.0, "sex=f": 0.0}
    for name, found in zip(chosen.covariates_, chosen.coef_, strict=True):
        reference = {"s": "site=c"}.get(name[0]) if name.startswith("site") else None
        reference = "sex=m" if name.startswith("sex") else reference
        assert_allclose(found, coef[name] - coef.get(reference, 0.0), atol=1e-8)


def test_no_reference_where_every_level_has_a_coefficient():
    assert "reference" not in rs.Cox(rs.L2(1.0)).fit(FRAME, Y).summary().columns
    assert "reference" not in rs.Cox().fit(FRAME[["age", "dose"]], Y).summary().columns


@pytest.mark.parametrize("X", [FRAME[["age"]].to_numpy(), as_dataset()], ids=["array", "dataset"])
def test_references_need_a_data_frame(X):
    y = Y if isinstance(X, np.ndarray) else None
    with pytest.raises(rs.InputError, match="`reference` chooses levels of the columns of a data"):
        rs.Cox(reference=REFERENCE).fit(X, y)
