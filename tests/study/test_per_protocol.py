"""Per-protocol analyses of studies: as the functions compute them, resumed, simulated, shown."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import riskset as rs
from study.protocol_study import run, simulated, specification, write

PEOPLE, LONG = simulated(1200, 3)
AGE = PEOPLE["age"][:, None]


def score(people=PEOPLE):
    """The propensity score of the study."""
    population = rs.cohort.Population(people["drug"], row_id=people["id"], person_id=people["id"])
    design = rs.Design.from_dense(people["age"][:, None], ["age"])
    tidy = rs.cohort.tidy(design, population)
    return rs.cohort.propensity_score(population, tidy.design, penalty=None).population


def start_stop(people=PEOPLE, every=30, keep=slice(None)):
    """Rows in intervals, with the severity that was known at their start."""
    frame = pd.DataFrame({name: people[name] for name in ("id", "drug", "age", "days", "died")})
    frame["stopped"] = people["stopped"]
    cuts = np.arange(every, 400, every)
    rows = rs.split(frame[keep], cuts, time="days", event="died", id=None, episode=None)
    rows = rs.cohort.censor_deviations(rows, "stopped", time="days", event="died", entry="entry")
    labs = pd.DataFrame(LONG).astype({"time": float}).sort_values("time", kind="stable")
    rows = pd.merge_asof(
        rows.reset_index().sort_values("entry", kind="stable"),
        labs[["id", "time", "value"]],
        left_on="entry",
        right_on="time",
        by="id",
    )
    return rows.sort_values("index").reset_index(drop=True)


def weights_of(rows, **options):
    """The weights of rows, from age and the severity at their start."""
    y = rs.Surv(rows["days"], rows["died"], entry=rows["entry"])
    return rs.cohort.censoring_weights(
        y,
        rows["drug"],
        rows[["age", "value"]],
        person=rows["id"],
        deviates=rows["deviates"],
        **options,
    )


def same(row, estimate):
    """Whether an estimate of a study is that of a call."""
    names = ("log_hr", "se", "hr_lower", "hr_upper", "p")
    expected = (
        *(estimate.log_hr, estimate.se, np.exp(estimate.lower), np.exp(estimate.upper)),
        estimate.p,
    )
    for name, value in zip(names, expected, strict=True):
        assert_allclose(row[name], value, rtol=1e-10, atol=1e-13, err_msg=name)
    for arm, counts in (("target", estimate.target), ("comparator", estimate.comparator)):
        for name in ("persons", "exposures", "days", "outcomes", "weighted_rate"):
            assert_allclose(row[f"{arm}_{name}"], getattr(counts, name), rtol=1e-10)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Results with intention to treat beside per-protocol analyses."""
    cut = {"truncate": [1, 99], "time_df": 1, "every": 45}
    analyses = {
        "itt": {"estimand": "intention-to-treat"},
        "pp": {
            "estimand": "per-protocol",
            "per_protocol": {"deviation": "stopped"},
            "model": {"time_effect": "log", "effect_times": [20, 200]},
        },
        "matched": {
            "estimand": "per-protocol",
            "per_protocol": {"deviation": "stopped", "baseline": ["age"], **cut},
            "weight": None,
            "match": {},
        },
        "strata": {
            "estimand": "per-protocol",
            "per_protocol": {"deviation": "stopped", "over_time": False, "covariates": ["age"]},
            "weight": None,
            "stratify": {"k": 3},
        },
        "cox": {
            "estimand": "per-protocol",
            "per_protocol": {"deviation": "stopped", "kind": "cox", "stabilise": False},
            "weight": None,
            "propensity": None,
        },
    }
    return run(tmp_path_factory.mktemp("protocol"), (PEOPLE, LONG), analyses=analyses)


def test_weighted_rows_are_those_of_the_functions(found):
    rows = start_stop()
    weights = weights_of(rows)
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    expected = rs.cohort.fit_per_protocol(weights, sample_weight=own)
    (main,) = found.rows("estimates", analysis="pp", role="main")
    same(main, expected)
    assert main["contrast"] == "per-protocol"
    assert (main["label"], main["interval"], main["reading"]) == (
        "per protocol",
        "robust",
        "marginal",
    )
    assert main["estimand"] == "ate"
    (plain,) = found.rows("estimates", analysis="pp", role="weights")
    nothing = np.zeros(len(rows))
    unweighted = rs.cohort.censoring_weights(
        rs.Surv(rows["days"], rows["died"], entry=rows["entry"]),
        rows["drug"],
        person=rows["id"],
        deviates=nothing,
    )
    same(plain, rs.cohort.fit_per_protocol(unweighted, sample_weight=own))
    table = weights.summary(library="pyarrow").to_pylist()
    for row, line in zip(found.rows("censoring_weights", analysis="pp"), table, strict=True):
        for name in ("mean", "sd", "p0", "p1", "p50", "p99", "p100"):
            assert_allclose(row[name], line[name], rtol=1e-10)
        assert (row["arm"], row["weights"], row["rows"]) == (
            line["arm"],
            "untruncated",
            line["rows"],
        )
    (after,) = found.rows("arms", analysis="pp", side="after")
    for name in ("persons", "days", "outcomes", "weighted_rate", "weighted_rate_upper"):
        for arm in ("target", "comparator"):
            assert_allclose(after[f"{arm}_{name}"], main[f"{arm}_{name}"], rtol=1e-10)
    (itt,) = found.rows("estimates", analysis="itt", role="main")
    assert itt["contrast"] == "intention-to-treat"
    assert not found.rows("censoring_weights", analysis="itt")


def test_risks_and_numbers_at_risk_have_the_weights(found):
    rows = start_stop()
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    weight = weights_of(rows).weight * own
    for arm, code in (("target", 1), ("comparator", 0)):
        here = (rows["drug"] == code).to_numpy()
        # The weighted Kaplan-Meier estimate, by hand.
        part, w = rows[here], weight[here]
        survival = 1.0
        for time in np.unique(part["days"][part["died"] == 1]):
            if time <= 180:
                at_risk = w[(part["entry"] < time) & (part["days"] >= time)].sum()
                dead = w[(part["days"] == time) & (part["died"] == 1)].sum()
                survival *= 1 - dead / at_risk
        (risk,) = found.rows("absolute_risks", analysis="pp", adjusted=True)
        assert_allclose(risk[f"{arm}_risk"], 1 - survival, rtol=1e-9)
        for row in found.rows("numbers_at_risk", analysis="pp", adjusted=True, arm=arm):
            if row["time"] > 0:
                held = (part["entry"] < row["time"]) & (part["days"] >= row["time"])
                assert row["people"] == held.sum()
                assert_allclose(row["weighted"], w[held].sum(), rtol=1e-10)
                assert_allclose(row["effective"], w[held].sum() ** 2 / (w[held] ** 2).sum())
    assert risk["interval"] == "normal"


def test_deviations_by_time_add_up(found):
    stopped, days = PEOPLE["stopped"], PEOPLE["days"]
    leaves = (stopped < days) | ((stopped == days) & (PEOPLE["died"] == 0))
    end = np.where(leaves, stopped, days)
    for arm, code in (("target", 1), ("comparator", 0)):
        own = PEOPLE["drug"] == code
        rows = found.rows("deviations", analysis="pp", arm=arm)
        assert sum(row["deviations"] for row in rows) == (leaves & own).sum()
        for row in rows:
            last = np.inf if row["end"] is None else row["end"]
            inside = own & (row["start"] <= end) & (end < last)
            assert row["deviations"] == (inside & leaves).sum()
            assert row["others"] == (inside & ~leaves).sum()
        ends = {
            row["reason"]: row["count"]
            for row in found.rows("follow_up_ends", analysis="pp", arm=arm)
        }
        assert ends["deviation"] == (leaves & own).sum()


def test_matched_people_with_truncated_weights_and_a_numerator(found):
    matched = rs.cohort.match(score())
    rows = start_stop(every=45, keep=matched.kept)
    own = matched.weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    options = {"truncate": (1, 99), "time_df": 1, "baseline": rows[["age"]]}
    weights = weights_of(rows, **options)
    expected = rs.cohort.fit_per_protocol(weights, sample_weight=own, covariates=rows[["age"]])
    (main,) = found.rows("estimates", analysis="matched", role="main")
    same(main, expected)
    assert (main["n_covariates"], main["estimand"]) == (1, "att")
    labels = [row["label"] for row in found.rows("estimates", analysis="matched", role="weights")]
    assert labels == [
        "per protocol, weights not truncated",
        "per protocol, without weights for deviation",
    ]
    (first, _) = found.rows("estimates", analysis="matched", role="weights")
    plain = weights_of(rows, **options | {"truncate": None})
    same(first, rs.cohort.fit_per_protocol(plain, sample_weight=own, covariates=rows[["age"]]))
    kinds = [row["weights"] for row in found.rows("censoring_weights", analysis="matched")]
    assert kinds == ["untruncated", "truncated"] * 2


def test_strata_multiply_the_weights_of_baseline_covariates(found):
    strata = rs.cohort.stratify(score(), 3)
    rows = start_stop()
    y = rs.Surv(rows["days"], rows["died"], entry=rows["entry"])
    weights = rs.cohort.censoring_weights(
        y, rows["drug"], rows[["age"]], person=rows["id"], deviates=rows["deviates"]
    )
    own = strata.weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    expected = rs.cohort.fit_per_protocol(weights, sample_weight=own)
    (main,) = found.rows("estimates", analysis="strata", role="main")
    same(main, expected)
    codes = {row["code"] for row in found.rows("warnings", step="censoring weights")}
    assert "baseline_covariates_only" in codes


def test_cox_models_have_rows_that_end_when_covariates_change(found):
    frame = pd.DataFrame({n: PEOPLE[n] for n in ("id", "drug", "age", "days", "died", "stopped")})
    labs = pd.DataFrame(LONG)
    history = {"value": rs.LastValue(labs, "value")}
    rows = rs.merge_histories(frame, history, id="id", time="days", event="died").rows
    cuts = np.arange(30, 400, 30)
    names = {"time": "days", "event": "died", "entry": "entry"}
    rows = rs.split(rows, cuts, **names, id=None, episode=None)
    rows = rs.cohort.censor_deviations(rows, "stopped", **names)
    weights = weights_of(rows, kind="cox", stabilise=False)
    (main,) = found.rows("estimates", analysis="cox", role="main")
    same(main, rs.cohort.fit_per_protocol(weights))


def test_the_bootstrap_fits_the_weights_again(tmp_path):
    analyses = {
        "pp": {
            "estimand": "per-protocol",
            "per_protocol": {"deviation": "stopped"},
            "weight": None,
            "propensity": None,
            "model": {"interval": "bootstrap", "replicates": 39},
        }
    }
    found = run(tmp_path, (PEOPLE, LONG), analyses=analyses, seed=5)
    expected = rs.cohort.fit_per_protocol(
        weights_of(start_stop()), interval="bootstrap", replicates=39, seed=5
    )
    (main,) = found.rows("estimates", role="main")
    assert main["interval"] == "bootstrap"
    assert_allclose(main["hr_lower"], np.exp(expected.lower), rtol=1e-10)
    assert_allclose(main["hr_upper"], np.exp(expected.upper), rtol=1e-10)


def test_it_finds_the_effect_of_keeping_to_the_treatment(tmp_path):
    everybody, _ = simulated(100_000, 1, deviates=False)
    given = 1 / (1 + np.exp(-0.5 * everybody["age"]))
    weighted = rs.cohort.weight(rs.cohort.Population(everybody["drug"], given), "ate")
    y = rs.Surv(everybody["days"], everybody["died"])
    truth = rs.cohort.fit_outcome(y, weighted, interval="wald").log_hr
    found = run(tmp_path, simulated(4000, 2))
    rows = {(row["analysis"], row["role"]): row for row in found.rows("estimates")}
    main, naive, diluted = (
        rows[key] for key in (("pp", "main"), ("pp", "weights"), ("itt", "main"))
    )
    assert abs(main["log_hr"] - truth) < 2 * main["se"]
    assert diluted["log_hr"] > truth + 5 * diluted["se"]
    assert naive["log_hr"] < truth - 3 * naive["se"]


def test_it_goes_on_with_what_it_has(tmp_path):
    run(tmp_path, (PEOPLE, LONG))
    place = tmp_path / "out"
    again = rs.study.run(rs.study.Study(specification(), tmp_path), place)
    assert all(step["reused"] for step in again.run["steps"])
    other = specification()
    other["analyses"]["pp"]["per_protocol"] |= {"truncate": [1, 99]}
    changed = rs.study.run(rs.study.Study(other, tmp_path), place)
    anew = {step["step"] for step in changed.run["steps"] if not step["reused"]}
    assert anew == {"censoring weights", "follow-up", "tests of curves", "estimate"}
    # A step that is gone is computed again, from weights that no step keeps.
    before = found_rows(place)
    for path in (place / "steps").glob("estimate-*.npz"):
        path.unlink()
    rs.study.run(rs.study.Study(other, tmp_path), place)
    assert found_rows(place) == before


def found_rows(place, **where):
    return rs.study.StudyResults.open(place / "private").rows("estimates", **where)


def test_times_have_the_unit_of_the_data(tmp_path):
    months = {name: PEOPLE[name] / (365.25 / 12) for name in ("days", "stopped")}
    long = LONG | {"time": LONG["time"] / (365.25 / 12)}
    data = specification()["data"] | {"time_unit": "months"}
    analyses = {
        "pp": {
            "estimand": "per-protocol",
            "per_protocol": {"deviation": "stopped", "every": 30 / (365.25 / 12)},
        }
    }
    found = run(tmp_path, (PEOPLE | months, long), data=data, analyses=analyses, risk_times=[6])
    rows = start_stop()
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    expected = rs.cohort.fit_per_protocol(weights_of(rows), sample_weight=own)
    (main,) = found.rows("estimates", role="main")
    assert_allclose(main["log_hr"], expected.log_hr, rtol=1e-6)


def test_values_at_baseline_count_until_the_first_measurement(tmp_path):
    first = np.zeros(PEOPLE["id"].size)
    at_start = LONG["time"] == 0
    first[LONG["id"][at_start] - 100] = LONG["value"][at_start]
    later = {name: column[~at_start] for name, column in LONG.items()}
    people = PEOPLE | {"severity": first}
    protocol = {"deviation": "stopped", "covariates": ["age"]}
    analyses = {
        "pp": {
            "estimand": "per-protocol",
            "per_protocol": protocol,
            "weight": None,
            "propensity": None,
        }
    }
    found = run(tmp_path, (people, later), analyses=analyses)
    (main,) = found.rows("estimates", role="main")
    same(main, rs.cohort.fit_per_protocol(weights_of(start_stop())))


def test_people_may_enter_twice(tmp_path):
    people = PEOPLE | {"who": PEOPLE["id"] // 2}
    data = specification()["data"] | {"person": "who"}
    analyses = {
        "pp": {
            "estimand": "per-protocol",
            "per_protocol": {"deviation": "stopped"},
            "weight": None,
            "propensity": None,
        }
    }
    found = run(tmp_path, (people, LONG), data=data, analyses=analyses)
    (main,) = found.rows("estimates", role="main")
    rows = start_stop()
    twice = rs.cohort.censoring_weights(
        rs.Surv(rows["days"], rows["died"], entry=rows["entry"]),
        rows["drug"],
        rows[["age", "value"]],
        person=rows["id"] // 2,
        history=rows["id"],
        deviates=rows["deviates"],
    )
    expected = rs.cohort.fit_per_protocol(twice)
    same(main, expected)
    assert_allclose(expected.log_hr, rs.cohort.fit_per_protocol(weights_of(rows)).log_hr)
    assert main["target_persons"] < main["target_exposures"]


def test_competing_events_censor_and_have_incidences(tmp_path):
    people = dict(PEOPLE)
    people["died"] = people["died"] * (1 + (PEOPLE["id"] % 3 == 0))
    model = {"kind": "cause-specific"}
    analyses = specification()["analyses"]
    analyses["pp"]["model"] = model
    found = run(tmp_path, (people, LONG), analyses=analyses)
    (main,) = found.rows("estimates", analysis="pp", role="main")
    assert (main["model"], main["status"]) == ("cause-specific", "ok")
    assert {row["kind"] for row in found.rows("curves", analysis="pp")} == {"incidence"}
    rows = start_stop(people)
    y = rs.Surv(rows["days"], rows["died"], entry=rows["entry"])
    weights = rs.cohort.censoring_weights(
        y, rows["drug"], rows[["age", "value"]], person=rows["id"], deviates=rows["deviates"]
    )
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    same(main, rs.cohort.fit_per_protocol(weights, sample_weight=own))


def test_nobody_who_deviates_has_weights_of_1(tmp_path):
    people = PEOPLE | {"stopped": np.full(PEOPLE["id"].size, np.nan)}
    found = run(tmp_path, (people, LONG))
    (main,) = found.rows("estimates", analysis="pp", role="main")
    (itt,) = found.rows("estimates", analysis="itt", role="main")
    assert_allclose(main["log_hr"], itt["log_hr"], rtol=1e-8)
    assert {row["p100"] for row in found.rows("censoring_weights")} == {1.0}
    assert "no_deviations" in {row["code"] for row in found.rows("warnings")}


def test_one_interval_leaves_no_weights_and_says_so(tmp_path):
    protocol = {"deviation": "stopped", "every": 1000}
    analyses = {"pp": {"estimand": "per-protocol", "per_protocol": protocol}}
    found = run(tmp_path, (PEOPLE, LONG), analyses=analyses)
    assert {row["p100"] for row in found.rows("censoring_weights")} == {1.0}
    (note,) = [row for row in found.rows("warnings") if row["code"] == "one_interval"]
    assert "choose a smaller `every`" in note["message"]


def test_intervals_that_need_too_much_memory_are_refused(tmp_path):
    """They are counted before they are made."""
    protocol = {"deviation": "stopped", "every": 1e-9}
    analyses = {"pp": {"estimand": "per-protocol", "per_protocol": protocol}}
    found = run(tmp_path, (PEOPLE, LONG), analyses=analyses)
    (row,) = found.rows("runs", analysis="pp")
    assert row["status"] == "bad_input"
    assert "choose a larger `every`" in row["reason"]


def test_parts_of_a_day(tmp_path):
    """Follow-up of less than a day is in the first week, and no rounding takes it away."""
    short = np.arange(PEOPLE["id"].size) % 4 == 0
    days = np.where(short, 1e-9, PEOPLE["days"])
    found = run(tmp_path, (PEOPLE | {"days": days}, LONG))
    (main,) = found.rows("estimates", analysis="pp", role="main")
    assert main["target_persons"] + main["comparator_persons"] == PEOPLE["id"].size
    weeks = found.rows("event_weeks", analysis="itt", week=0)
    events = sum(row["events"] for row in weeks)
    assert events == ((days <= 7) & (PEOPLE["died"] == 1)).sum()
    rows = start_stop(PEOPLE | {"days": days})
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    same(main, rs.cohort.fit_per_protocol(weights_of(rows), sample_weight=own))


def test_everybody_who_deviates_leaves_no_weights(tmp_path):
    people = PEOPLE | {"stopped": np.full(PEOPLE["id"].size, 1.0)}
    keeps = (PEOPLE["days"] > 1) | (PEOPLE["died"] == 1)
    assert keeps.all()
    found = run(tmp_path, (people, LONG))
    (row,) = found.rows("runs", analysis="pp")
    assert (row["status"], row["step"]) == ("positivity", "censoring weights")
    assert found.rows("absolute_risks", analysis="pp", adjusted=True) == []
    page = rs.report.write(found.path, tmp_path / "report.html").read_text("utf-8")
    assert "There are no weights: everybody who could deviate" in page


def test_levels_of_subgroups_have_their_own_models(tmp_path):
    people = PEOPLE | {"sex": np.where(PEOPLE["id"] % 3 == 0, "m", "f")}
    changes = {
        "analyses": {"pp": specification()["analyses"]["pp"]},
        "data": specification()["data"] | {"covariates": {"columns": ["age"]}},
        "subgroups": {"sex": {"column": "sex"}},
    }
    found = run(tmp_path, (people, LONG), **changes)
    rows = start_stop()
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    weights = weights_of(rows)
    effects = []
    for row in found.rows("estimates", role="subgroup"):
        inside = (rows["id"] % 3 == 0) == (row["level"] == "m")
        expected = rs.cohort.fit_per_protocol(weights, sample_weight=own * inside)
        same(row, expected)
        effects.append((row["log_hr"], row["se"], row["interaction_p"]))
    (a, se_a, p), (b, se_b, again) = effects
    z = (a - b) / np.sqrt(se_a**2 + se_b**2)
    assert_allclose([p, again], 2 * norm.sf(abs(z)), rtol=1e-10)
    page = rs.report.write(found.path, tmp_path / "report.html").read_text("utf-8")
    assert "Sex: f" in page


def test_a_csv_file_has_empty_cells_for_people_who_never_deviate(tmp_path, found):
    write(tmp_path, PEOPLE, LONG)
    pd.DataFrame(PEOPLE).to_csv(tmp_path / "people.csv", index=False)
    pd.DataFrame(LONG).to_csv(tmp_path / "labs.csv", index=False)
    data = specification()["data"] | {"people": "people.csv"}
    data["covariates_over_time"] = {"table": "labs.csv"}
    analyses = {"pp": specification()["analyses"]["pp"]}
    study = rs.study.Study(specification(data=data, analyses=analyses), tmp_path)
    rs.study.run(study, tmp_path / "out")
    (main,) = found_rows(tmp_path / "out", role="main")
    (expected,) = found.rows("estimates", analysis="pp", role="main")
    assert_allclose(main["log_hr"], expected["log_hr"], rtol=1e-9)


# ------------------------------------------------------------------------------------ the report


def test_the_report_shows_deviations_and_weights(found, tmp_path):
    page = rs.report.write(found.path, tmp_path / "report.html")
    text = page.read_text("utf-8")
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    (part,) = content["parts"]
    names = [one["label"] for one in part["per_protocol"]["analyses"]]
    assert names == ["pp", "matched", "strata", "cox"]
    tables = part["per_protocol"]["analyses"][0]["tables"]
    rows = found.rows("censoring_weights", analysis="pp")
    assert_allclose([row["mean"] for row in tables["weights"]], [row["mean"] for row in rows])
    assert all(row["p100"] is None for row in tables["weights"])  # of single people
    assert min(row["deviations"] for row in tables["deviations"]) >= 5
    assert text.count("Distribution of the weights for deviation") >= 4
    assert "Sensitivity analysis: pp (per protocol)" in text
    words = "people were censored when they deviated from their treatment"
    assert words in text
    assert "Robins and Finkelstein (2000)" in text
    by_part = {row["part"]: row for row in part["target_trial"]["tables"]["target_trial"]}
    assert "intention-to-treat effect" in by_part["estimand"]["emulation"]
    # The share that keeps to the treatment, by hand from the first interval.
    first = tables["deviations"][0]
    share = 1 - first["deviations"] / (first["people"] - first["others"] / 2)
    assert_allclose(first["staying"], share)


def test_the_report_of_a_per_protocol_study(tmp_path):
    analyses = {"pp": specification()["analyses"]["pp"]}
    found = run(tmp_path, (PEOPLE, LONG), analyses=analyses)
    page = rs.report.write(found.path, tmp_path / "report.html")
    text = page.read_text("utf-8")
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert "If all people had kept to their treatment (per protocol) and after adjustment" in text
    trial = content["parts"][0]["target_trial"]["tables"]["target_trial"]
    done = {row["part"]: row["emulation"] for row in trial}
    assert "until they deviate from their treatment" in done["follow_up"]
    assert "per-protocol effect" in done["estimand"]
    assert "deviation from the treatment" in text
    words = found.study["analyses"]["pp"]["words"]["deviations"]
    assert words.startswith(
        "people were censored when they deviated from their treatment (at the time in the column "
        "`stopped`)"
    )
    assert "restricted" not in content["parts"][0]["per_protocol"]


def test_other_studies_have_no_such_section(tmp_path):
    people = {name: column for name, column in PEOPLE.items() if name != "stopped"}
    found = run(tmp_path, (people, LONG), analyses={"all": {}})
    page = rs.report.write(found.path, tmp_path / "report.html")
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert "per_protocol" not in content["parts"][0]
    assert "Deviations from the treatment and their weights" not in page.read_text("utf-8")
    (main,) = found.rows("estimates", role="main")
    assert main["contrast"] is None


def test_the_files_are_among_the_sources(found):
    names = [one["name"] for one in found.study["data"]["sources"]]
    assert names == ["people.parquet", "labs.parquet"]
    assert pq.read_table(found.path / "deviations.parquet").num_rows > 0


def test_tests_of_curves_have_the_weights_for_deviation(found):
    rows = start_stop()
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    y = rs.Surv(rows["days"], rows["died"], entry=rows["entry"])
    weight = weights_of(rows).weight * own
    expected = rs.logrank_test(y, rows["drug"], weight=weight, cluster=rows["id"])
    (after,) = found.rows("curve_tests", analysis="pp", adjusted=True)
    assert (after["test"], after["reading"], after["variance"]) == (
        "logrank",
        "marginal",
        "robust",
    )
    assert_allclose(after["statistic"], expected.statistic, rtol=1e-9)
    assert_allclose(after["p"], expected.p_value, rtol=1e-9)


def test_the_effect_as_a_function_of_time_has_the_weights_for_deviation(found):
    rows = start_stop()
    own = rs.cohort.weight(score(), "ate").weight[np.searchsorted(PEOPLE["id"], rows["id"])]
    y = rs.Surv(rows["days"], rows["died"], entry=rows["entry"])
    model = rs.TimeEffectCox({"drug": "log"}).fit(
        rows[["drug"]].astype(float), y, weights_of(rows).weight * own, cluster=rows["id"]
    )
    (test,) = found.rows("time_effects", analysis="pp")
    assert test["interval"] == "robust"
    assert_allclose(test["p"], model.test_constant_effects().p_value, rtol=1e-8)
    effect = model.effect("drug", [20, 200])
    at = found.rows("effect_at_times", analysis="pp")
    assert_allclose([r["log_hr"] for r in at], effect["coef"], rtol=1e-8)
    assert_allclose([r["se"] for r in at], effect["standard_error"], rtol=1e-8)
    assert not found.rows("time_effects", analysis="itt")
