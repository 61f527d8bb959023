"""Every result of a study on disk and back, bit for bit; folders that are none; damage."""

import dataclasses
import inspect
import json
import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset._settings import Settings
from riskset.cohort.saving import CLASSES
from riskset.data.documents import sealed


def small_study():
    """A result of every kind."""
    rng = np.random.default_rng(5)
    n = 120
    x = np.c_[rng.random((n, 3)) < 0.4, rng.normal(size=(n, 1))].astype(float)
    t = (rng.random(n) < 0.35 + 0.3 * x[:, 0]).astype(int)
    y = rs.Surv(rng.integers(1, 60, n).astype(float), rng.integers(0, 3, n))
    alone = rs.Surv(y["time"], np.minimum(y["event"], 1))
    tidy = rs.cohort.tidy(x, analysis=["a", "a", "b", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rs.RisksetWarning)
        score = rs.cohort.propensity_score(
            t, tidy.design, folds=3, repeats=1, on_high_correlation="warn"
        )
    people = score.population
    trimmed = rs.cohort.trim(people, symmetric=0.05)
    matched = rs.cohort.match(trimmed, ratio=2)
    balance = rs.cohort.balance(x, matched)
    log_rr, se = rng.normal(0.1, 0.3, 30), rng.uniform(0.05, 0.4, 30)
    known = rs.cohort.Controls(np.r_[log_rr, np.nan], np.r_[se, 1.0])
    return {
        "Population": rs.cohort.Population(t, row_id=np.arange(n) + 7),
        "TidyInfo": tidy,
        "PropensityScore": score,
        "Adjustment": matched,
        "Attrition": rs.cohort.attrition(matched),
        "Balance": balance,
        "Estimate": rs.cohort.fit_outcome(
            y, matched, interactions=x[:, :1], profile="grid", time_effect="log"
        ),
        "RiskDifference": rs.cohort.risk_difference(y, matched, [20.0], replicates=40),
        "ArmRestrictedMeans": rs.cohort.restricted_mean(y, matched, [20.0]),
        "StandardizedEstimates": rs.cohort.standardize(alone, people, x[:, :1], [20.0]),
        "DoublyRobustEstimates": rs.cohort.doubly_robust(
            alone, matched, x[:, :1], [20.0], censoring="kaplan-meier"
        ),
        "ArmCurves": rs.cohort.survival(alone, matched),
        "incidence": rs.cohort.incidence(y, matched),
        "gray": rs.cohort.gray(y, people),
        "FollowUpTime": rs.cohort.followup(y, matched),
        "Discrimination": rs.cohort.auc(people),
        "Diagnostics": rs.cohort.diagnose(balance=balance, mdrr=np.inf, equipoise=0.4),
        "Controls": known,
        "EValue": rs.cohort.e_value(1.5, 1.2, 1.9, scale="hazard", common=False),
        "StudyPlan": rs.cohort.plan_study(1.5, rate=0.01, followup=2.0),
        "TippingPoints": rs.cohort.tipping_points(1.5, 1.2, 1.9, scale="risk", effect=[2, 3]),
        "ConfounderAdjusted": rs.cohort.adjust_for_confounder(
            1.5, 1.2, 1.9, scale="risk", difference=0.2, effect=2
        ),
        "BiasBounds": rs.cohort.bias_bounds(known, 1.5, 1.2, 1.9, scale="risk"),
        "CalibratedEstimates": rs.cohort.calibrate(known, [0.3, np.nan], [0.1, 0.2]),
        "TreatmentWeights": rs.cohort.weight_treatments(
            np.arange(len(x)) % 3, x[:, :1], penalty=None
        ),
        "full": rs.cohort.match(people, method="full"),
        "balanced": rs.cohort.weight(people, "att", method="entropy", X=x[:, :1]),
        "weights": rs.cohort.weight(people, "ate", truncate="p99"),
        "DeviationWeights": rs.cohort.censoring_weights(
            rs.Surv(y["time"], alone["event"], entry=np.zeros(n)),
            t,
            x,
            person=np.arange(n),
            deviates=(x[:, 1] == 1) & (alone["event"] == 0) & (np.arange(n) % 2 == 0),
        ),
        "strata": rs.cohort.stratify(people, 4),
    }


@pytest.fixture(scope="module")
def study():
    return small_study()


def same(a, b, at="result"):
    """Equal classes, types, bits; numbers that are not are equal to each other."""
    assert type(a) is type(b), at
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), at
        if a.dtype == object:
            same(a.ravel().tolist(), b.ravel().tolist(), at)
        else:
            assert a.tobytes() == b.tobytes(), at
    elif isinstance(a, rs.Design):
        assert (a.names, a.keys, a.n_rows) == (b.names, b.keys, b.n_rows), at
        same(a.to_dense(), b.to_dense(), at)
    elif dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            same(getattr(a, field.name), getattr(b, field.name), f"{at}.{field.name}")
    elif isinstance(a, dict):
        assert list(a) == list(b), at
        same(list(a.values()), list(b.values()), at)
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b), at
        for k, (one, other) in enumerate(zip(a, b, strict=True)):
            same(one, other, f"{at}[{k}]")
    else:
        assert a == b or (a != a and b != b), at


def test_every_result_comes_back(study, tmp_path):
    for name, result in study.items():
        rs.cohort.save(result, tmp_path / name)
        loaded = rs.cohort.load(tmp_path / name)
        same(result, loaded, name)
        assert repr(loaded) == repr(result)
    # All at once, as a mapping; and they go on working.
    rs.cohort.save(study, tmp_path / "all")
    loaded = rs.cohort.load(tmp_path / "all")
    same(study, loaded)
    times = [5.0, 30.0]
    same(study["incidence"].columns(times), loaded["incidence"].columns(times))
    assert loaded["Population"].person_id is loaded["Population"].row_id
    assert loaded["Estimate"].sensitivity.reading == "marginal"
    again = rs.cohort.match(loaded["PropensityScore"].people)
    same(rs.cohort.match(study["PropensityScore"].people), again)


def test_every_public_result_is_known(study):
    public = {
        name
        for name in rs.cohort.__all__
        if inspect.isclass(getattr(rs.cohort, name))
        and dataclasses.is_dataclass(getattr(rs.cohort, name))
        and not issubclass(getattr(rs.cohort, name), Settings)
    } - {"Table1"}  # a table to print, with writers of its own
    assert public <= set(CLASSES)
    assert {name for name, kind in CLASSES.items() if name != kind.__name__} == set()
    assert {type(result).__name__ for result in study.values()} >= public - {
        "DeviationModel",
        "Diagnostic",
        "ErrorModel",
        "ErrorPosterior",
        "LikelihoodProfile",
        "Null",
        "NullPosterior",
        "RiskRatio",
        "Step",
        "Subgroup",
        "TimeEffect",
    }


def test_other_programs_can_read_it(study, tmp_path):
    matched = study["Adjustment"]
    rs.cohort.save(matched, tmp_path / "m")
    rows = pq.read_table(tmp_path / "m" / "rows_120.parquet").to_pydict()
    assert rows["population.row_id"] == matched.population.row_id.tolist()
    assert rows["weight"] == matched.weight.tolist()
    content = json.loads((tmp_path / "m" / "object.json").read_text())["content"]
    assert content["class"] == "Adjustment"
    settings = dict(content["fields"]["settings"]["mapping"])
    assert settings["ratio"] == 2


def test_a_folder_is_replaced_if_it_is_ours(study, tmp_path):
    place = tmp_path / "deep" / "place"
    rs.cohort.save(study["Balance"], place)
    rs.cohort.save(study["Discrimination"], place)
    same(rs.cohort.load(place), study["Discrimination"])
    assert [p.name for p in place.iterdir()] == ["object.json"]
    assert [p.name for p in place.parent.iterdir()] == ["place"]
    other = tmp_path / "other"
    other.mkdir()
    rs.cohort.save(study["Discrimination"], other)  # an empty one may be filled
    (other / "object.json").rename(other / "notes.txt")
    with pytest.raises(rs.InputError, match="has files, which these results would replace"):
        rs.cohort.save(study["Discrimination"], other)
    with pytest.raises(rs.InputError, match="is a file"):
        rs.cohort.save(study["Discrimination"], other / "notes.txt")


def test_what_cannot_be_saved_leaves_what_was_there(study, tmp_path):
    rs.cohort.save(study["Discrimination"], tmp_path / "a")
    odd = dataclasses.replace(study["weights"], details={"model": rs.Cox()})
    with pytest.raises(rs.InputError, match=r"details.model is a Cox, which cannot be saved"):
        rs.cohort.save(odd, tmp_path / "a")
    same(rs.cohort.load(tmp_path / "a"), study["Discrimination"])
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def change(place, edit):
    path = place / "object.json"
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(sealed(document)))


def test_damage_is_told(study, tmp_path):
    with pytest.raises(rs.InputError, match="holds nothing that riskset has saved"):
        rs.cohort.load(tmp_path)
    place = tmp_path / "b"

    def damaged(words, edit):
        rs.cohort.save(study["weights"], place)
        if isinstance(edit, tuple):
            name, content = edit
            (place / name).write_bytes(content)
        else:
            change(place, edit)
        with pytest.raises(rs.InputError, match=words):
            rs.cohort.load(place)

    def fields(document):
        return document["content"]["fields"]

    damaged("class 'Popen' was not found", lambda d: d["content"].update({"class": "Popen"}))
    damaged("in format 3, but riskset", lambda d: d.update(format_version=3))
    damaged("does not say", lambda d: d.update(format="other"))
    damaged("lacks 'weight'", lambda d: fields(d).pop("weight"))
    damaged("has no 'colour'", lambda d: fields(d).update(colour=1))
    damaged("is damaged", lambda d: fields(d)["weight"].update(rows=7))
    damaged("is damaged", lambda d: fields(d)["weight"].update(column="x"))
    damaged("is damaged", ("object.json", b"{"))
    damaged(
        "object.json is not valid JSON .it is nested too deeply", ("object.json", b"[" * 100_000)
    )
    rs.cohort.save(study["weights"], place)
    text = (place / "object.json").read_text()
    assert '"rows": 120' in text
    edited = text.replace('"rows": 120', '"rows": 121', 1).encode()
    damaged("object.json does not agree with its checksum", ("object.json", edited))
    rs.cohort.save(study["weights"], place)
    whole = (place / "rows_120.parquet").read_bytes()
    damaged("is damaged", ("rows_120.parquet", whole[: len(whole) // 2]))
    changed = bytearray(whole)
    changed[60] ^= 0xFF
    damaged("is damaged", ("rows_120.parquet", bytes(changed)))
    (place / "rows_120.parquet").unlink()
    with pytest.raises(rs.InputError, match="is damaged"):
        rs.cohort.load(place)


def test_a_field_that_came_later_has_its_default(study, tmp_path):
    rs.cohort.save(study["Estimate"], tmp_path / "e")
    change(tmp_path / "e", lambda d: d["content"]["fields"].pop("proportionality_p"))
    assert np.isnan(rs.cohort.load(tmp_path / "e").proportionality_p)
