"""Restricted means of studies: as the functions compute them, shared, pooled, in the report."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.disclosure.engine import Disclosure
from riskset.results.rows import TABLES, RestrictedMeanRow
from riskset.study.steps.restricted_mean_step import RestrictedMeanStep, pooled_restricted_means
from study.small import people, run

DATA = {"people": "people.parquet", "treatment": "drug", "id": "id"}
HORIZONS = [100, 300]
RESAMPLES = {"interval": "bootstrap", "replicates": 39}
ANALYSES = {
    "crude": {"propensity": "none"},
    "strata": {"stratify": {"k": 3}},
    "weighted": {"weight": {"estimand": "ate"}, "model": {"rmst": HORIZONS, **RESAMPLES}},
}
NAMES = ("mean", "se", "lower", "upper")


def competing(n=400):
    columns = people(n)
    return columns | {"died": np.random.default_rng(5).integers(0, 3, n)}


def small_study(folder, columns=None, **changes):
    defaults = {"propensity": {"penalty": "none", "cross_validate": False}}
    defaults["model"] = {"rmst": HORIZONS}
    return run(
        folder,
        competing() if columns is None else columns,
        **{"defaults": defaults, "analyses": ANALYSES, "sharing": {"blind": False}} | changes,
    )


def test_they_are_those_of_the_functions(tmp_path):
    found = small_study(tmp_path)
    columns = competing()
    y = rs.Surv(columns["days"], columns["died"])
    frame = np.column_stack([columns["x"], columns["age"]])
    names = rs.Design.from_dense(frame, ["x", "age"])
    crude = rs.cohort.Population(columns["drug"], row_id=columns["id"])
    tidy = rs.cohort.tidy(names, crude)
    score = rs.cohort.propensity_score(crude, tidy.design, penalty=None).population
    strata, weighted = rs.cohort.stratify(score, 3), rs.cohort.weight(score, "ate")
    expected = {
        ("crude", False, "marginal"): rs.cohort.restricted_mean(y, crude, HORIZONS),
        ("crude", True, "marginal"): rs.cohort.restricted_mean(y, crude, HORIZONS),
        ("strata", True, "marginal"): rs.cohort.restricted_mean(y, strata, HORIZONS),
        ("strata", True, "standardized"): rs.cohort.restricted_mean(
            y, strata, HORIZONS, reading="standardized"
        ),
        ("weighted", False, "marginal"): rs.cohort.restricted_mean(y, crude, HORIZONS, **RESAMPLES),
        ("weighted", True, "marginal"): rs.cohort.restricted_mean(
            y, weighted, HORIZONS, **RESAMPLES
        ),
    }
    for (analysis, adjusted, reading), one in expected.items():
        rows = found.rows("restricted_means", analysis=analysis, adjusted=adjusted, reading=reading)
        wanted = one.columns()
        assert [row["measure"] for row in rows] == wanted["measure"].tolist()
        for name in ("time", "difference", "difference_se", "difference_p", "ratio_lower"):
            assert_allclose([row[name] for row in rows], wanted[name], rtol=1e-6, err_msg=name)
        for name in ("target_se", "comparator_upper", "target_outcomes", "target_competing"):
            assert_allclose([row[name] for row in rows], wanted[name], rtol=1e-6, err_msg=name)
        assert_allclose([row["target_mean"] for row in rows], wanted["target"], rtol=1e-6)
        assert {row["interval"] for row in rows} == {one.interval}
    assert len(found.rows("restricted_means")) == (2 + 3 + 2) * 3 * len(HORIZONS)


def test_horizons_have_the_unit_of_the_report(tmp_path):
    for unit, days, horizons in (("days", 1.0, [300, 150]), ("months", 365.25 / 12, [10, 4.5])):
        folder = tmp_path / unit
        folder.mkdir()
        found = small_study(
            folder,
            analyses={"crude": {"propensity": "none", "model": {"rmst": horizons}}},
            report={"time_unit": unit},
        )
        times = [row["time"] for row in found.rows("restricted_means", adjusted=True)]
        assert_allclose(times, np.tile(np.array(horizons) * days, 3))
        page = rs.report.write(found.path, folder / "report.html")
        content = json.loads(page.with_suffix(".json").read_text("utf-8"))
        rows = content["parts"][0]["result"]["restricted_means"]["tables"]["means"]
        assert {row["time"] for row in rows} == set(horizons)
        # The mean has that unit, too: at most the horizon.
        assert all(0 < row["target_mean"] <= row["time"] for row in rows)
        assert f"{horizons[0]} {unit}" in page.read_text("utf-8")


def test_other_horizons_fit_no_model_again(tmp_path):
    small_study(tmp_path, analyses={"crude": {"propensity": "none"}})
    other = {"crude": {"propensity": "none", "model": {"rmst": [50]}}}
    found = small_study(tmp_path, analyses=other)
    steps = rs.study.StudyResults.open(tmp_path / "out" / "private").run["steps"]
    assert {step["step"] for step in steps if not step["reused"]} == {"restricted means"}
    assert {row["time"] for row in found.rows("restricted_means")} == {50}
    none = small_study(tmp_path, analyses={"crude": {"propensity": "none", "model": {"rmst": []}}})
    assert none.rows("restricted_means") == []


def test_a_horizon_after_the_follow_up(tmp_path):
    columns = competing()
    columns["died"][columns["days"] > 200] = 0
    columns["days"] = np.minimum(columns["days"], 200)
    analyses = {"crude": {"propensity": "none", "model": {"rmst": [100, 365]}}}
    found = small_study(tmp_path, columns, analyses=analyses)
    for place in (found, rs.study.StudyResults.open(tmp_path / "out" / "results")):
        for row in place.rows("restricted_means"):
            for name in ("target_mean", "comparator_lower", "difference", "ratio_p"):
                assert (row[name] is None) == (row["time"] == 365)
    (message, _) = [
        row["message"] for row in found.rows("warnings") if row["step"] == "restricted means"
    ]
    assert message == (
        "the follow-up of the target ends after 200 days, so its restricted means up to day 365 "
        "are not known; the largest possible horizon is 200 days. Choose earlier horizons in "
        "`rmst`."
    )
    page = rs.report.write(tmp_path / "out" / "results", tmp_path / "report.html")
    assert page.read_text("utf-8").count("beyond follow-up") >= 3


@pytest.mark.parametrize("times", [[0], [-5], "soon"])
def test_horizons_must_be_positive(tmp_path, times):
    with pytest.raises(rs.InputError, match="rmst"):
        small_study(tmp_path, analyses={"crude": {"model": {"rmst": times}}})


# ------------------------------------------------------------------------------------ sharing


def row(**changes):
    values = {f"{arm}_{end}": 9.0 for arm in ("target", "comparator") for end in NAMES}
    values |= {f"difference{end}": 1.0 for end in ("", "_se", "_lower", "_upper", "_p")}
    values |= dict.fromkeys(("ratio", "log_ratio_se", "ratio_lower", "ratio_p"), 1.0)
    counts = {"outcomes": 20, "competing": 30, "at_risk": 50}
    values |= {f"{arm}_{n}": k for arm in ("target", "comparator") for n, k in counts.items()}
    about = {"target": "new", "comparator": "old", "outcome": "death", "analysis": "a"}
    about |= {"adjusted": True, "reading": "marginal", "measure": "time_lost", "time": 100.0}
    about |= {"interval": "robust", "interval_level": 0.95}
    return RestrictedMeanRow.of(values | about | changes)


def shared(*rows, least=5, **tables):
    everything = {"restricted_means": rows} | tables
    disclosure = Disclosure(lambda name: everything.get(name, []), TABLES, least)
    return disclosure.shown(RestrictedMeanRow)


def hidden(found, name):
    return [one[name] is None for one in found]


def test_few_people_or_events_hide_a_mean():
    rows = [
        row(),
        row(target_at_risk=3),
        row(comparator_outcomes=4),
        row(measure="competing_time_lost", comparator_outcomes=4),
        row(measure="restricted_mean", comparator_outcomes=4),
        row(measure="time_lost", target_competing=2),
        row(measure="restricted_mean", target_competing=2),
    ]
    found = shared(*rows)
    assert hidden(found, "target_mean") == [False, True, False, False, False, False, True]
    assert hidden(found, "comparator_se") == [False, False, True, False, True, False, False]
    assert hidden(found, "difference_p") == [False, True, True, False, True, False, True]
    assert "ratio" in found[1].suppressed
    for one in found:  # numbers at the horizon would differ by few from those of other tables
        assert one.target_outcomes is one.comparator_at_risk is None
    assert not any(hidden(shared(*rows, least=0), "difference"))


def test_what_was_shared_before_stays_as_it_is():
    first = shared(row(), row(target_at_risk=3), row(comparator_outcomes=4))
    again = shared(*first)
    assert [dict(one) for one in again] == [dict(one) for one in first]
    # With a larger minimum the numbers at risk that are shown decide.
    at_risk = {"target": "new", "comparator": "old", "outcome": "death", "analysis": "a"}
    at_risk |= {"adjusted": True, "arm": "target", "time": 90.0, "people": 15, "suppressed": ""}
    assert hidden(shared(*first, least=20, numbers_at_risk=[at_risk]), "target_mean")[0]


def test_blinded_effects_are_withheld(tmp_path):
    small_study(
        tmp_path,
        analyses={"crude": {"propensity": "none"}},
        diagnostics={"max_mdrr": 1.0001},
        sharing={"blind": True},
    )
    found = rs.study.StudyResults.open(tmp_path / "out" / "results")
    rows = found.rows("restricted_means")
    assert rows
    for one in rows:
        assert one["blinded"]
        assert one["target_mean"] is one["difference"] is one["ratio"] is None
    text = rs.report.write(found.path, tmp_path / "report.html").read_text("utf-8")
    assert "Restricted mean times</h" not in text


# ------------------------------------------------------------------------------------ pooling


def test_data_sets_are_pooled_by_rubins_rules():
    differences, errors = np.array([4.0, 6.0, 5.0]), np.array([2.0, 1.0, 3.0])
    ratios, log_errors = np.array([1.1, 1.3, 1.2]), np.array([0.1, 0.2, 0.3])
    steps = [
        RestrictedMeanStep(
            rows=[row(difference=d, difference_se=e, ratio=r, log_ratio_se=q, target_se=e)]
        )
        for d, e, r, q in zip(differences, errors, ratios, log_errors, strict=True)
    ]
    (found,) = pooled_restricted_means(steps).rows
    total = np.mean(errors**2) + (4 / 3) * np.var(differences, ddof=1)
    assert_allclose(found.difference, 5)
    assert_allclose(found.difference_se, np.sqrt(total))
    assert_allclose(found.difference_lower, 5 - 1.959963985 * np.sqrt(total))
    logs = np.log(ratios)
    spread = np.sqrt(np.mean(log_errors**2) + (4 / 3) * np.var(logs, ddof=1))
    assert_allclose(found.ratio, np.exp(logs.mean()))
    assert_allclose(found.ratio_upper, np.exp(logs.mean() + 1.959963985 * spread))
    assert_allclose(found.target_se, np.sqrt(np.mean(errors**2)))
    unknown = [RestrictedMeanStep(rows=[row(difference=None, difference_se=None)]), steps[0]]
    (found,) = pooled_restricted_means(unknown).rows
    assert found.difference is found.difference_se is found.difference_p is None
    assert found.ratio is not None
    assert pooled_restricted_means([RestrictedMeanStep(rows=[]), steps[0]]).rows == []


# ------------------------------------------------------------------------------------ the report


@pytest.mark.parametrize("effect", [0.0, 3.0])
def test_the_report_says_what_to_read(tmp_path, effect):
    # An effect that changes its sign half-way, or none.
    rng = np.random.default_rng(4)
    n = 1500
    drug = np.arange(n) % 2
    first = rng.exponential(100 * np.exp(effect * drug))
    later = 50 + rng.exponential(100 * np.exp(-effect * drug))
    days = np.where(first < 50, first, later)
    columns = people(n, drug=drug, days=np.ceil(np.minimum(days, 400)))
    columns["died"] = (days < 400).astype(int)
    found = small_study(
        tmp_path, columns, analyses={"crude": {"propensity": "none", "model": {"rmst": [365]}}}
    )
    page = rs.report.write(found.path, tmp_path / "report.html")
    text = page.read_text("utf-8")
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    p = content["parts"][0]["result"]["restricted_means"]["proportionality_p"]
    assert (p < 0.05) == (effect > 0)
    assert ("proportional hazards rejects" in text) == (effect > 0)
    assert ("does not reject" in text) == (effect == 0)
    assert "Restricted mean times are areas under the curves of the groups up to 365 days" in text
    assert "lost to competing events</" not in text
