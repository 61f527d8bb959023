"""Per-protocol analyses of studies: faults of specifications and data."""

import numpy as np
import pytest

import riskset as rs
from study.protocol_study import simulated, specification, write

PEOPLE, LONG = simulated(1200, 3)


def parsed(**changes):
    """The message of a specification with faults."""
    with pytest.raises(rs.InputError) as caught:
        rs.study.Study(specification(**changes))
    return str(caught.value)


def of_analysis(**changes):
    pp = specification()["analyses"]["pp"] | changes
    return parsed(analyses={"pp": pp})


def test_all_faults_of_a_specification_are_listed():
    message = of_analysis(
        model={"kind": "finegray", "reading": "pooled", "interval": "wald", "standardize": [100]}
    )
    for words in (
        "a per-protocol analysis needs a Cox model, but `kind` is finegray",
        "which a pooled reading does not use",
        "wald intervals are not available with weights for deviation",
        "risks by outcome models are not available with weights for deviation",
    ):
        assert words in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"per_protocol": None}, "needs the times at which people deviate"),
        ({"estimand": None}, "`per_protocol` has settings, but the estimand is not per-protocol"),
        ({"estimand": "per protocol"}, "did you mean 'per-protocol'?"),
        ({"per_protocol": {"deviation": "x", "truncate": [99, 1]}}, "the lower first"),
        ({"per_protocol": {"deviation": "x", "every": 0}}, "every"),
        (
            {"per_protocol": {"deviation": "x", "baseline": ["age"], "stabilise": False}},
            "`baseline` has covariates of the numerator",
        ),
        ({"model": {"covariates": "all"}}, "cannot have a penalty"),
        ({"model": {"also": ["poisson"]}}, "only one outcome model"),
        ({"model": {"also": ["cause-specific"]}}, "only one outcome model"),
        ({"per_protocol": {"deviation": "x", "truncate": [0.01, 0.99]}}, "from 0 to 100"),
        ({"model": {"firth": True}}, "`firth: true` takes no weights"),
        ({"model": {"ties": "exact"}}, "`ties: exact` takes no weights"),
    ],
)
def test_contradictions(changes, words):
    assert words in of_analysis(**changes)


def test_people_are_followed_from_the_start():
    outcomes = {"death": {"time": "days", "event": "died", "entry": "late"}}
    message = parsed(outcomes=outcomes)
    assert "needs people who are followed from the start, but the outcome 'death'" in message
    assert "People who deviate before they enter are not in the data" in message
    assert "leave out `entry` and all people who enter after time 0, or" in message


def test_a_default_may_be_switched_off(tmp_path):
    defaults = {"per_protocol": {"deviation": "stopped"}, "estimand": "per-protocol"}
    analyses = {"pp": {}, "all": {"estimand": None, "per_protocol": None}}
    study = rs.study.Study(specification(defaults=defaults, analyses=analyses))
    assert study.specification.analyses["pp"].protocol.deviation == "stopped"
    assert study.specification.analyses["all"].protocol is None


def test_other_data_need_other_keys():
    data = {"people": "people.parquet", "treatment": "drug"}
    long = {"covariates_over_time": {"table": "labs.parquet"}}
    assert "covariates over time need the key `id`" in parsed(data=data | long)
    imputed = data | {"covariates": {"missing": "impute"}}
    assert "cannot be pooled over completed data sets" in parsed(data=imputed)


def checked(folder, people=PEOPLE, long=LONG, **changes):
    """The message of `study check`."""
    write(folder, people, long)
    with pytest.raises(rs.InputError) as caught:
        rs.study.check_data(rs.study.Study(specification(**changes), folder))
    return str(caught.value)


def protocol(**changes):
    pp = specification()["analyses"]["pp"]
    return {"analyses": {"pp": pp | {"per_protocol": {"deviation": "stopped"} | changes}}}


def test_study_check_accepts_the_study(tmp_path):
    write(tmp_path, PEOPLE, LONG)
    rs.study.check_data(rs.study.Study(specification(), tmp_path))


def test_study_check_finds_columns_and_files_that_do_not_exist(tmp_path):
    assert "'stoped'" in checked(tmp_path, **protocol(deviation="stoped"))
    assert "'agee'" in checked(tmp_path, **protocol(covariates=["agee"]))
    assert "'agee'" in checked(tmp_path, **protocol(baseline=["agee"]))
    levels = PEOPLE | {"sex": np.where(PEOPLE["drug"] == 1, "f", "m")}
    message = checked(tmp_path, levels, **protocol(baseline=["sex"]))
    assert "Hint: did you mean 'sex=f', 'sex=m'?" in message
    message = checked(tmp_path, **protocol(deviation="days"))
    assert "column 'days' is already used as outcomes.death.time" in message
    data = specification()["data"]
    other = data | {"covariates_over_time": {"table": "no.parquet"}}
    assert "there is no file or folder" in checked(tmp_path, data=other)
    columns = ["id", "day", "covariate", "value"]
    other = data | {"covariates_over_time": {"table": "labs.parquet", "columns": columns}}
    assert "'day'" in checked(tmp_path, data=other)


@pytest.mark.parametrize("value", [-3.0, 0.0])
def test_study_check_finds_times_before_the_start(tmp_path, value):
    stopped = PEOPLE["stopped"].copy()
    stopped[7] = value
    message = checked(tmp_path, PEOPLE | {"stopped": stopped})
    assert "column 'stopped' of people.parquet must hold days above 0" in message
    assert "data row 8, id 107" in message


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["never", None], "must be numeric, but 600 of 1,200 rows hold text"),
        ([True, None], "must be numeric, but its type is bool"),
        ([np.inf, 5.0], "leave the cell empty"),
    ],
)
def test_study_check_finds_times_that_are_no_numbers(tmp_path, values, words):
    assert words in checked(tmp_path, PEOPLE | {"stopped": np.array(values * 600, dtype=object)})


def test_study_check_finds_measurements_that_are_not_valid(tmp_path):
    strange = LONG | {"id": np.append(LONG["id"][:-1], 5)}
    assert "whose id is not in the table of people" in checked(tmp_path, long=strange)
    late = LONG | {"time": LONG["time"] + 1}
    words = "1,200 people have no value of 'severity' at the start"
    assert words in checked(tmp_path, long=late)
    with pytest.raises(rs.InputError, match=words):  # a run says the same
        rs.study.run(rs.study.Study(specification(), tmp_path), tmp_path / "out")
    twice = {name: np.append(column, column[:1]) for name, column in LONG.items()}
    twice["value"][-1] += 1
    assert "different values of one covariate at the same time" in checked(tmp_path, long=twice)
