"""Saved fits: everything comes back, and a file that is not one is refused with a reason."""

import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import riskset as rs
from riskset.data.documents import content_checksum
from riskset.estimators.fit_form import FitForm
from riskset.estimators.saving import read_fit, write_fit


@pytest.fixture
def data(rng):
    n = 80
    x = pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "smoker": rng.random(n) < 0.4,
            "site": pd.Categorical(rng.choice(["b", "a", "c"], n)),
        }
    )
    return (
        x,
        rs.Surv(np.ceil(rng.exponential(9, n)), rng.random(n) < 0.7),
        rng.choice(["u", "v"], n),
    )


MODELS = [
    rs.Cox(),
    rs.Cox(ties="efron", tol=1e-10, max_iter=50, n_threads=1),
    rs.Cox(rs.L1(2.0, unpenalized=["age", 1])),
    rs.Cox(rs.L2(2.0, factor={"age": 0.5, 2: 3.0})),
    rs.Cox(rs.ElasticNet.from_glmnet(0.05, 0.5, 80, [1, 2, 1, 0])),
]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_everything_comes_back(model, data, tmp_path):
    x, y, strata = data
    cluster = np.arange(80) // 2
    model.fit(x, y, strata=strata, cluster=cluster)
    model.save(tmp_path / "fit.riskset")
    again = rs.load(tmp_path / "fit.riskset")
    assert type(again) is rs.Cox
    assert again.get_params() == model.get_params()
    fitted = {k for k in vars(model) if k.endswith("_") and not k.startswith("_")}
    assert fitted == {k for k in vars(again) if k.endswith("_") and not k.startswith("_")}
    for name in fitted:
        assert_array_equal(getattr(again, name), getattr(model, name), name)
    assert_array_equal(again.predict(x), model.predict(x))
    times = [0.0, 4.0, 1e9]
    assert_array_equal(
        again.predict_survival_function(x, times, strata=strata),
        model.predict_survival_function(x, times, strata=strata),
    )
    pd.testing.assert_frame_equal(again.summary(), model.summary())
    assert_array_equal(again.residuals(x, y), model.residuals(x, y))
    assert again.score(x, y) == model.score(x, y)
    if model.penalty is None:
        assert again.tests_ == model.tests_
        assert_array_equal(again.confidence_interval(method="robust").lower,
                           model.confidence_interval(method="robust").lower)  # fmt: skip
    again.save(tmp_path / "again.riskset")
    assert_array_equal(rs.load(tmp_path / "again.riskset").coef_, model.coef_)


@pytest.mark.parametrize("model", [rs.Cox(), rs.FineGray()], ids=repr)
def test_every_variance_comes_back_asked_for_or_not(model, data, tmp_path):
    x, y, _ = data
    model.fit(x, y)
    model.save(tmp_path / "fit.riskset")
    for again in (rs.load(tmp_path / "fit.riskset"), pickle.loads(pickle.dumps(model))):
        for name in ("variance_", "robust_variance_", "standard_error_", "robust_standard_error_"):
            assert_array_equal(getattr(again, name), getattr(model, name), name)
        for method in ("wald", "robust"):
            found, want = (m.confidence_interval(method=method) for m in (again, model))
            assert_array_equal(found.lower, want.lower)
        assert again.tests_ == model.tests_


def test_what_is_not_kept_says_so(data, monkeypatch):
    x, y, _ = data
    monkeypatch.setattr("riskset.estimators._fitted.KEEP_VARIANCE", 2)
    again = pickle.loads(pickle.dumps(rs.Cox().fit(x, y)))
    for name in ("standard_error_", "robust_variance_", "tests_"):
        with pytest.raises(rs.InputError, match=r"not kept .* more than 2 covariates"):
            getattr(again, name)


def test_infinite_coefficients_and_notes_come_back(tmp_path):
    x = np.array([[0.0], [0], [1], [0], [1], [0]])
    with pytest.warns(ConvergenceWarning):
        model = rs.Cox().fit(x, rs.Surv([1, 2, 3, 4, 5, 6], [1, 1, 0, 1, 0, 1]))
    model.save(tmp_path / "fit")
    again = rs.load(tmp_path / "fit")
    assert again.coef_[0] == -np.inf
    assert again.status_ == "infinite_estimate"
    assert again.notes_ == model.notes_
    assert_array_equal(again.predict_survival_function(x, [2.0]),
                       model.predict_survival_function(x, [2.0]))  # fmt: skip


def test_a_data_set_is_read_alike_after_loading(data, tmp_path):
    x, y, strata = data
    table = x.assign(days=y["time"], died=y["event"], ward=strata)
    read = rs.Dataset.from_frame(table, time="days", event="died", strata="ward")
    model = rs.Cox().fit(read)
    model.save(tmp_path / "fit")
    again = rs.load(tmp_path / "fit")
    new = table.drop(columns=["days", "died"]).iloc[:7]
    expected = model.predict_survival_function(read, [3.0])[:7]
    assert_array_equal(again.predict_survival_function(new, [3.0]), expected)


def test_keys_of_64_bits_come_back(tmp_path, rng):
    x = rs.Design.from_dense(rng.normal(size=(30, 2)), keys=[2**53, 2**53 + 1])
    model = rs.Cox().fit(x, rng.exponential(size=30))
    model.save(tmp_path / "fit")
    assert rs.load(tmp_path / "fit").covariates_ == ("9007199254740992", "9007199254740993")


def test_the_file_holds_plain_json_and_arrays(data, tmp_path):
    x, y, _ = data
    model = rs.Cox().fit(x, y)
    model.save(tmp_path / "fit")
    with zipfile.ZipFile(tmp_path / "fit") as archive:
        document = json.loads(archive.read("fit.json"))
        variance = np.load(io.BytesIO(archive.read("variance.npy")), allow_pickle=False)
        others = set(archive.namelist()) - {"fit.json"}
    assert (document["format"], document["model"]) == (2, "cox")
    assert document["estimator"]["class"] == "Cox"
    assert document["coef"] == dict(zip(model.covariates_, model.coef_, strict=True))
    assert_array_equal(variance, model.variance_)
    assert all(name.endswith(".npy") for name in others)


def test_the_document_is_that_of_the_command_line(data, tmp_path):
    x, y, _ = data
    read = rs.Dataset.from_frame(x.assign(t=y["time"], e=y["event"]), time="t", event="e")
    model = rs.Cox().fit(read)
    model.save(tmp_path / "fit.riskset")
    write_fit(tmp_path / "fit.json", model)
    with zipfile.ZipFile(tmp_path / "fit.riskset") as archive:
        saved = json.loads(archive.read("fit.json"))
    alone = json.loads((tmp_path / "fit.json").read_text())
    assert {**saved, "sha256": 0} == {
        **alone,
        "sha256": 0,
        "robust_standard_error": saved["robust_standard_error"],
        "arrays": saved["arrays"],
    }
    for again in (
        rs.load(tmp_path),
        rs.load(tmp_path / "fit.json"),
        rs.load(tmp_path / "fit.riskset"),
    ):
        pd.testing.assert_frame_equal(again.summary(), model.summary())
        assert again.get_params() == model.get_params()
        assert_array_equal(again.predict(x), model.predict(x))
    with pytest.raises(rs.InputError, match="was not kept"):
        _ = rs.load(tmp_path / "fit.json").variance_


# -------------------------------------------------------------------------------- bad files


@pytest.fixture
def saved(data, tmp_path):
    x, y, _ = data
    path = tmp_path / "fit.riskset"
    rs.Cox().fit(x, y).save(path)
    return path


def contents(path):
    with zipfile.ZipFile(path) as archive:
        arrays = {
            name.removesuffix(".npy"): np.load(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name != "fit.json"
        }
        return json.loads(archive.read("fit.json")), arrays


def rewrite(path, change, *, is_sealed=True):
    """Edit a file; its checksums are made anew, or else left as they were."""
    document, arrays = contents(path)
    change(document, arrays)
    with zipfile.ZipFile(path, "w") as archive:
        checksums = {}
        for name, array in arrays.items():
            packed = io.BytesIO()
            np.save(packed, array)
            checksums[name] = hashlib.sha256(packed.getvalue()).hexdigest()
            archive.writestr(f"{name}.npy", packed.getvalue())
        if is_sealed:
            document["arrays"] = checksums
            keys = [key for key in FitForm.sealed_keys(2) if key in document]
            document["sha256"] = content_checksum({key: document[key] for key in keys})
        archive.writestr("fit.json", json.dumps(document))


def test_an_absent_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        rs.load(tmp_path / "nothing.riskset")


@pytest.mark.parametrize("content", [b"", b"coef\n0.1\n", b"PK\x03\x04 but no zip"])
def test_some_other_file(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(rs.InputError, match=r"table.csv is not a fit saved .*: it is .*\n.*save"):
        rs.load(path)


def test_predictions_of_tables_need_the_roles_of_their_columns(data, tmp_path):
    x, y, _ = data
    rs.Cox().fit(x, y).save(tmp_path / "fit.riskset")
    with pytest.raises(rs.InputError, match=r"not fitted on a Dataset.*\n.*riskset.load"):
        read_fit(tmp_path / "fit.riskset")


def test_some_other_zip(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(rs.InputError, match="a zip archive without fit.json"):
        rs.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("fit.json", '{"coef": {}}')
    with pytest.raises(rs.InputError, match="does not have the key 'riskset'"):
        rs.load(path)


def test_a_file_cut_short_at_any_place(saved):
    whole = saved.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        saved.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(rs.InputError, match="damaged or cut short"):
            rs.load(saved)


def test_a_changed_byte(saved):
    damaged = bytearray(saved.read_bytes())
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo("variance.npy")
    damaged[info.header_offset + 30 + len("variance.npy") + 2] ^= 0xFF
    saved.write_bytes(damaged)
    with pytest.raises(rs.InputError, match="damaged or cut short"):
        rs.load(saved)


def test_a_changed_byte_anywhere(saved):
    """Compressed data, names, flags and methods: damage is seen, or did no harm."""
    whole, damaged, n_refused = saved.read_bytes(), saved.with_name("damaged"), 0
    for position in range(0, len(whole), 17):
        changed = bytearray(whole)
        changed[position] ^= 0xFF
        damaged.write_bytes(changed)
        try:
            rs.load(damaged)
        except rs.InputError as error:
            assert "damaged" in str(error)  # noqa: PT017
            n_refused += 1
    assert n_refused > len(whole) / 17 / 2


def test_a_later_version(saved):
    rewrite(saved, lambda document, _: document.update(format=3, riskset="9.1"))
    with pytest.raises(rs.InputError, match=r"riskset 9.1 in format 3.*\n.*upgrade"):
        rs.load(saved)


def test_an_impossible_version(saved):
    rewrite(saved, lambda document, _: document.update(format="new"))
    with pytest.raises(rs.InputError, match="`format`: input should be a valid integer"):
        rs.load(saved)


def test_what_a_saved_model_says_must_fit(saved):
    rewrite(
        saved, lambda document, _: document["estimator"]["encoder"]["levels"].update(site="NaN")
    )
    message = (
        "fit.riskset is damaged: `estimator/encoder/levels/site`: input should be a valid list"
    )
    with pytest.raises(rs.InputError, match=message):
        rs.load(saved)


def test_an_unknown_model(saved):
    rewrite(saved, lambda document, _: document["estimator"].update({"class": "Weibull"}))
    with pytest.raises(rs.InputError, match="but it is 'Weibull'"):
        rs.load(saved)


def test_a_missing_part(saved):
    rewrite(saved, lambda document, arrays: document["estimator"].pop("parameters"))
    with pytest.raises(rs.InputError, match="`estimator/parameters`: this key is missing"):
        rs.load(saved)


@pytest.mark.parametrize("name", ["coef", "status", "prediction"])
def test_a_missing_key(saved, name):
    rewrite(saved, lambda document, _: document.pop(name))
    with pytest.raises(rs.InputError, match=f"`{name}`: this key is missing"):
        rs.load(saved)


@pytest.mark.parametrize(
    "change", [{"ties": "exakt"}, {"max_iter": 0}, {"tol": "small"}, {"unknown": 1}], ids=repr
)
def test_parameters_that_no_estimator_has(saved, change):
    rewrite(saved, lambda document, _: document["estimator"]["parameters"].update(change))
    with pytest.raises(rs.InputError, match=next(iter(change))):
        rs.load(saved)


def test_a_change_that_fits_is_found_by_a_checksum(saved):
    rewrite(saved, lambda document, _: document.update(n_rows=81), is_sealed=False)
    with pytest.raises(rs.InputError, match="content does not agree with its checksum"):
        rs.load(saved)


def test_an_array_that_fits_is_found_by_a_checksum(saved):
    rewrite(saved, lambda _, arrays: arrays.update(variance=np.zeros(4)), is_sealed=False)
    with pytest.raises(rs.InputError, match="array 'variance' does not agree with its checksum"):
        rs.load(saved)


def test_folders_are_no_files(saved, data, tmp_path):
    with pytest.raises(rs.InputError, match=r"is a folder.\nHint: name a file in it"):
        rs.load(tmp_path)
    model = rs.load(saved)
    with pytest.raises(rs.InputError, match=r"cannot write .* it is a folder"):
        model.save(tmp_path)
    with pytest.raises(rs.InputError, match=r"the folder .*absent' does not exist"):
        model.save(tmp_path / "absent" / "fit.riskset")


def test_errors_that_do_not_fit_the_coefficients(saved):
    rewrite(saved, lambda document, _: document["standard_error"].pop("age"))
    with pytest.raises(rs.InputError, match="standard_error: its names must be those of coef"):
        rs.load(saved)


def test_pickled_arrays_are_refused(saved):
    harmless = np.array([{"a": 1}], dtype=object)
    rewrite(saved, lambda _, arrays: arrays.update(extra=harmless))
    with pytest.raises(rs.InputError, match="damaged or cut short"):
        rs.load(saved)


# ------------------------------------------------------------------------------------ writing


def test_a_failed_write_leaves_what_was_there(saved, monkeypatch):
    before, model = saved.read_bytes(), rs.load(saved)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "save", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(saved)
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_a_saved_file_has_ordinary_permissions(saved):
    mask = os.umask(0)
    os.umask(mask)
    assert saved.stat().st_mode & 0o777 == 0o666 & ~mask
