"""Tests of curves in studies: as the functions compute them, shared, pooled, in the report."""

import csv
import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.results.rows import CurveTestRow
from riskset.study.steps.curve_test_step import CurveTestStep, pooled_curve_tests
from study.small import hide, people, run
from study.test_imputation import COVARIATES, DATA, completed, incomplete

ALL = {"curve_tests": ["logrank", "gray", "max-combo"]}
ANALYSES = {
    "crude": {"propensity": "none"},
    "pairs": {"match": {}},
    "marginal pairs": {"match": {}, "model": {"reading": "marginal", **ALL}},
    "sets": {"match": {"ratio": 3}, "model": {"reading": "marginal", **ALL}},
    "strata": {"stratify": {"k": 3}},
    "coarse": {"coarsen": {"covariates": ["x", "age"]}},
    "weighted": {"weight": {"estimand": "ate"}},
}
NUMBERS = ("statistic", "p", "rho", "gamma")


def competing(n=400):
    columns = people(n)
    return columns | {"died": np.random.default_rng(5).integers(0, 3, n)}


def small_study(folder, columns=None, **changes):
    defaults = {"propensity": {"penalty": "none", "cross_validate": False}, "model": ALL}
    return run(
        folder,
        competing() if columns is None else columns,
        **{"defaults": defaults, "analyses": ANALYSES, "sharing": {"blind": False}} | changes,
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return small_study(tmp_path_factory.mktemp("tests"))


@pytest.fixture(scope="module")
def adjusted():
    """The analyses in Python: the adjustment, and whether sets or strata are compared within."""
    columns = competing()
    x = rs.Design.from_columns({"x": columns["x"] * 1.0, "age": columns["age"] * 1.0})
    crude = rs.cohort.Population(columns["drug"], row_id=columns["id"])
    score = rs.cohort.propensity_score(crude, rs.cohort.tidy(x, crude).design, penalty=None).people
    return {
        "crude": (rs.cohort.restrict(crude, np.ones(400, bool), "all"), False),
        "pairs": (rs.cohort.match(score), True),
        "marginal pairs": (rs.cohort.match(score), False),
        "sets": (rs.cohort.match(score, ratio=3), False),
        "strata": (rs.cohort.stratify(score, 3), True),
        "weighted": (rs.cohort.weight(score, "ate"), False),
    }


def close(row, statistic, p):
    assert_allclose([row["statistic"], row["p"]], [statistic, p], rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", [name for name in ANALYSES if name != "coarse"])
def test_they_are_those_of_the_functions(found, adjusted, name):
    columns, (people_of, is_stratified) = competing(), adjusted[name]
    kept = people_of.kept
    y, arm = rs.Surv(columns["days"], columns["died"])[kept], columns["drug"][kept]
    strata = people_of.set_id[kept] if is_stratified else None
    given = {"strata": strata, "variance": "counts"}
    if name in ("weighted", "sets", "marginal pairs"):
        own = people_of.set_id if "weighted" not in name else columns["id"]
        given = {"weight": people_of.weight[kept], "cluster": own[kept], "variance": "robust"}
    rows = {row["test"]: row for row in found.rows("curve_tests", analysis=name, adjusted=True)}
    logrank = rs.logrank_test(y, arm, 1, **given)
    close(rows["logrank"], logrank.statistic, logrank.p_value)
    if name == "pairs":  # within a pair, nobody has died when both are at risk
        given = {"cluster": people_of.set_id[kept]}
    combo = rs.max_combo_test(y, arm, 1, **given)
    close(rows["max-combo"], combo.statistic, combo.p_value)
    largest = combo.weights[np.abs(combo.z).argmax()]
    assert (rows["max-combo"]["rho"], rows["max-combo"]["gamma"]) == largest
    assert ("gray" in rows) == (name in ("crude", "strata"))
    if "gray" in rows:
        gray = rs.gray_test(y, arm, 1, strata=strata)
        close(rows["gray"], gray.statistic, gray.p_value)
    assert rows["logrank"]["variance"] == ("robust" if logrank.is_robust else "counts")
    (main,) = found.rows("estimates", analysis=name, role="main")
    assert rows["logrank"]["reading"] == main["reading"]
    same = rows["max-combo"]["reading"] == main["reading"]
    assert same == (name != "pairs")


def test_before_the_adjustment_everybody_is_compared(found):
    columns = competing()
    y, arm = rs.Surv(columns["days"], columns["died"]), columns["drug"]
    own = {"logrank": rs.logrank_test(y, arm, 1), "gray": rs.gray_test(y, arm, 1)}
    for name in ANALYSES:
        rows = found.rows("curve_tests", analysis=name, adjusted=False)
        assert [row["test"] for row in rows] == ["logrank", "gray", "max-combo"]
        for row in rows[:2]:
            close(row, own[row["test"]].statistic, own[row["test"]].p_value)
            assert (row["reading"], row["variance"]) == ("marginal", "counts")


def test_small_strata_have_no_gray_test(found):
    rows = found.rows("curve_tests", analysis="coarse", adjusted=True)
    assert [(row["test"], row["reading"], row["variance"]) for row in rows] == [
        ("logrank", "stratified", "counts"),
        ("max-combo", "marginal", "robust"),
    ]


def test_rows_of_one_person_and_late_entry_are_counted_right(tmp_path):
    columns = competing() | {"person": np.arange(400) // 2, "seen": np.zeros(400)}
    columns["days"] += 20
    columns["seen"][::3] = 15
    found = small_study(
        tmp_path,
        columns,
        analyses={"crude": {"propensity": "none"}},
        data={"people": "people.parquet", "treatment": "drug", "id": "id", "person": "person"},
        outcomes={"death": {"time": "days", "event": "died", "entry": "seen"}},
    )
    y = rs.Surv(columns["days"], columns["died"], columns["seen"])
    own = rs.logrank_test(y, columns["drug"], 1, cluster=columns["person"])
    rows = found.rows("curve_tests", adjusted=True)
    assert [row["test"] for row in rows] == ["logrank", "max-combo"]
    close(rows[0], own.statistic, own.p_value)
    assert own.is_robust
    assert rows[0]["variance"] == "robust"


def test_without_competing_events_or_outcomes(tmp_path):
    (tmp_path / "none").mkdir()
    found = small_study(tmp_path, people(400), analyses={"crude": {"propensity": "none"}})
    tests = [row["test"] for row in found.rows("curve_tests", adjusted=True)]
    assert tests == ["logrank", "max-combo"]
    nobody = people(400) | {"died": np.zeros(400, int)}
    found = small_study(tmp_path / "none", nobody, analyses={"crude": {"propensity": "none"}})
    assert found.rows("curve_tests") == []
    assert not [row for row in found.rows("warnings") if row["step"] == "tests of curves"]


def test_other_tests_fit_no_model_again(tmp_path):
    defaults = {"propensity": {"penalty": "none", "cross_validate": False}}
    analyses = {"crude": {"propensity": "none"}}
    first = small_study(tmp_path, analyses=analyses, defaults=defaults)
    assert [row["test"] for row in first.rows("curve_tests")] == ["logrank", "gray"] * 2
    other = {"crude": {"propensity": "none", "model": {"curve_tests": ["max-combo"]}}}
    found = small_study(tmp_path, analyses=other, defaults=defaults)
    steps = rs.study.StudyResults.open(tmp_path / "out" / "private").run["steps"]
    assert {step["step"] for step in steps if not step["reused"]} == {"tests of curves"}
    assert {row["test"] for row in found.rows("curve_tests")} == {"max-combo"}
    none = {"crude": {"propensity": "none", "model": {"curve_tests": []}}}
    assert small_study(tmp_path, analyses=none, defaults=defaults).rows("curve_tests") == []


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        (["logrank", "logrank"], "`curve_tests` names a test twice"),
        (["log-rank"], "curve_tests.*'log-rank'"),
        (7, "curve_tests"),
    ],
)
def test_mistakes_are_found_by_a_check(tmp_path, tests, words):
    with pytest.raises(rs.InputError, match=words):
        small_study(tmp_path, analyses={"crude": {"model": {"curve_tests": tests}}})


# ------------------------------------------------------------------------------------ sharing

NAMES = {"target": "new", "comparator": "old", "outcome": "death", "analysis": "a"}


def row(**changes):
    values = {"adjusted": True, "test": "logrank", "reading": "marginal", "variance": "counts"}
    return CurveTestRow.of(NAMES | values | {"statistic": 2.0, "p": 0.15} | changes)


def arms(side, outcomes=(20, 30), others=(20, 30)):
    counts = {}
    for arm, events, rest in zip(("target", "comparator"), outcomes, others, strict=True):
        counts |= {f"{arm}_persons": 200, f"{arm}_exposures": 200}
        counts |= {f"{arm}_outcomes": events, f"{arm}_competing": rest}
    return NAMES | {"side": side, "suppressed": ""} | counts


@pytest.mark.parametrize(
    ("outcomes", "others", "hidden"),
    [
        ((20, 30), (20, 30), []),
        ((2, 30), (20, 30), [(False, "logrank"), (False, "gray")]),
        ((2, 1), (20, 30), [(s, t) for s in (True, False) for t in ("logrank", "gray")]),
        # Those without an event would be known, so the outcomes are hidden as well.
        ((20, 30), (3, 30), [(False, "logrank"), (False, "gray")]),
    ],
)
def test_few_outcomes_hide_a_test(outcomes, others, hidden):
    rows = [row(adjusted=s, test=t) for s in (True, False) for t in ("logrank", "gray")]
    counts = [arms(side, outcomes, others) for side in ("before", "after")]
    found = hide("curve_tests", rows, 5, arms=counts)
    gone = [(one.adjusted, one.test) for one in found if one.p is None]
    assert gone == hidden
    for one in found:
        assert (one.statistic is None) == (one.p is None) == ("p" in one.suppressed)
    again = hide("curve_tests", found, 5, arms=counts)
    assert [dict(one) for one in again] == [dict(one) for one in found]
    assert all(one.p == 0.15 for one in hide("curve_tests", rows, 0, arms=counts))


def test_blinded_tests_are_withheld(tmp_path):
    small_study(
        tmp_path,
        analyses={"crude": {"propensity": "none"}},
        diagnostics={"max_mdrr": 1.0001},
        sharing={"blind": True},
    )
    found = rs.study.StudyResults.open(tmp_path / "out" / "results")
    rows = found.rows("curve_tests")
    assert len(rows) == 6
    for one in rows:
        assert one["blinded"]
        assert [one[name] for name in NUMBERS] == [None] * 4
    page = rs.report.write(found.path, tmp_path / "report.html")
    text = page.read_text("utf-8")
    assert "Difference between the groups" not in text
    assert "Tests between the curves" not in text


# ------------------------------------------------------------------------------------ pooling


def test_data_sets_have_the_median_p():
    p = (0.02, 0.5, 0.03)
    steps = [
        CurveTestStep(
            rows=[
                row(adjusted=False),
                row(statistic=1.0 + k, p=p[k]),
                row(test="max-combo", rho=float(k > 1), gamma=1.0),
            ]
        )
        for k in range(3)
    ]
    before, after, combo = pooled_curve_tests(steps).rows
    assert (before.statistic, before.p) == (2.0, 0.15)  # no covariate, so all are the same
    assert (after.statistic, after.p) == (None, 0.03)
    assert (combo.rho, combo.gamma) == (None, 1.0)
    lost = [*steps[:2], CurveTestStep(rows=[row(p=None)])]
    (only,) = pooled_curve_tests(lost).rows
    assert only.p is None


def test_imputed_covariates_have_the_median_of_their_data_sets(tmp_path):
    columns = incomplete()
    found = run(
        tmp_path, columns, data=DATA, analyses={"weighted": {"weight": {"estimand": "ate"}}}
    )
    frames, y = completed()
    tests = []
    for one in frames:
        crude = rs.cohort.Population(one["drug"].to_numpy())
        score = rs.cohort.propensity_score(crude, one.select(COVARIATES), penalty=None).people
        weight = rs.cohort.weight(score, "ate").weight
        tests.append(rs.logrank_test(y, columns["drug"], 1, weight=weight, variance="robust"))
    (before,), (after,) = (found.rows("curve_tests", adjusted=side) for side in (False, True))
    p = [test.p_value for test in tests]
    assert len(set(p)) > 1
    assert_allclose(after["p"], np.median(p), rtol=1e-6)
    assert after["statistic"] is None
    crude = rs.logrank_test(y, columns["drug"], 1)
    close(before, crude.statistic, crude.p_value)


# ------------------------------------------------------------------------------------ the report


def test_the_report_and_its_files_have_them(found, tmp_path):
    page = rs.report.write(found.path, tmp_path / "report.html")
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    shown = content["parts"][0]["curves"]["tables"]["tests"]
    rows = [
        one
        for side in (False, True)
        for one in found.rows("curve_tests", analysis="crude", adjusted=side)
    ]
    assert [(one["adjusted"], one["test"], one["p"]) for one in shown] == [
        (one["adjusted"], one["test"], one["p"]) for one in rows
    ]
    p = {one["test"]: f"{one['p']:.2g}" for one in rows if one["adjusted"]}
    text = page.read_text("utf-8").replace("\u00a0", " ").replace("&#39;", "'")
    assert (
        f"Difference between the groups after adjustment: log-rank test p = {p['logrank']}, "
        f"Gray's test p = {p['gray']} and max-combo test p = {p['max-combo']}."
    ) in text
    assert "The curves of the groups were compared by the log-rank test, Gray's test" in text
    rs.report.export(found.path, tmp_path / "files", "csv")
    (file,) = (tmp_path / "files").rglob("*curves-tests.csv")
    cells = [cell for line in csv.reader(file.read_text("utf-8").splitlines()) for cell in line]
    assert p["gray"] in cells
    assert "max-combo test" in cells
