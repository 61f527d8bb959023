"""What a study says of the covariates of its outcome models."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from parameters import rest_is_slow
from study.small import content, people

MODEL = {"covariates": "all", "strength": 2.0, "also": ["finegray"], "reading": "marginal"}


def columns(n=400, rare=3):
    """Age and x speak of the outcome; few have the third covariate."""
    found = people(n)
    rng = np.random.default_rng(4)
    risk = np.exp(0.9 * found["x"] + 0.03 * (found["age"] - 65))
    found["days"] = np.ceil(100 * rng.exponential(1 / risk)).astype(int)
    found["died"] = rng.choice([0, 1, 2], n, p=[0.2, 0.7, 0.1])
    found["rare"] = np.zeros(n, dtype=int)
    for drug in (0, 1):
        found["rare"][np.flatnonzero(found["drug"] == drug)[: rare + 20 * drug]] = 1
    found["days"][found["rare"] == 1] = 1 + np.arange(2 * rare + 20) % 5
    found["died"][found["rare"] == 1] = 1
    return found


def both(folder, found, **changes):
    pq.write_table(pa.table(found), folder / "people.parquet")
    made = content(analyses={"all": {"model": MODEL | changes.pop("model", {})}}, **changes)
    rs.study.run(rs.study.Study(made, folder), folder / "out")
    return [rs.study.StudyResults.open(folder / "out" / name) for name in ("results", "private")]


def test_coefficients_and_means_of_each_model(tmp_path):
    own = columns()
    _, private = both(tmp_path, own, sharing={"blind": False})
    main, other = private.rows("estimates", n_covariates=3)
    assert [(r["role"], r["model"]) for r in (main, other)] == [
        ("main", "cox"),
        ("model", "finegray"),
    ]
    for estimate in (main, other):
        rows = private.rows("outcome_coefficients", number=estimate["number"])
        assert [r["rank"] for r in rows] == list(range(1, 1 + len(rows)))
        assert len(rows) == estimate["n_used"] == 3
        sizes = [abs(r["coef"]) for r in rows]
        assert sizes == sorted(sizes, reverse=True)
        for row in rows:
            for arm, drug in (("target", 1), ("comparator", 0)):
                mean = own[row["name"]][own["drug"] == drug].mean()
                assert row[f"mean_{arm}"] == pytest.approx(mean, rel=1e-12)
            assert row["is_binary"] == (row["name"] != "age")
        assert (estimate["l1"], estimate["variance"]) == (2.0, 0.5)
        assert estimate["chosen_by"] == "given"
        assert 0 <= estimate["kkt"] <= 1e-8
    # Per year of age, not per the largest age.
    coef = {
        r["name"]: r["coef"] for r in private.rows("outcome_coefficients", number=main["number"])
    }
    x = np.column_stack([own["drug"], own["x"], own["age"] / own["age"].max(), own["rare"]])
    y = rs.Surv(own["days"].astype(float), (own["died"] == 1).astype(int))
    direct = rs.Cox(rs.L1(2.0, unpenalized=[0])).fit(x, y)
    assert coef["age"] == pytest.approx(direct.coef_[2] / own["age"].max(), rel=1e-5)
    assert coef["x"] == pytest.approx(direct.coef_[1], rel=1e-5)
    assert coef["age"] == pytest.approx(0.03, abs=0.015)


def test_the_curve_of_the_cross_validation(tmp_path):
    own = columns(200)
    _, private = both(
        tmp_path,
        own,
        model={"strength": None, "folds": 3, "repeats": 2},
        sharing={"blind": False},
    )
    for role in ("main", "model"):
        (row,) = private.rows("estimates", role=role)
        assert (row["chosen_by"], row["folds"], row["repeats"], row["seed"]) == (
            "cross-validation", 3, 2, 1,
        )  # fmt: skip
        tried = private.rows("outcome_cross_validation", number=row["number"])
        assert len(tried) > 3
        assert [t["l1"] for t in tried] == sorted((t["l1"] for t in tried), reverse=True)
        (chosen,) = [t for t in tried if t["chosen"]]
        assert chosen["l1"] == row["l1"]
        assert chosen["variance"] == pytest.approx(2 / row["l1"] ** 2)
        assert chosen["mean"] == max(t["mean"] for t in tried)
    assert private.rows("estimates", role="crude")[0]["chosen_by"] is None


def test_shares_of_few_people_are_hidden(tmp_path):
    """3 of the comparator have it, and 23 of the target."""
    shared, private = both(tmp_path, columns(), sharing={"blind": False})
    (row,) = shared.rows("outcome_coefficients", number=1, name="rare")
    (own,) = private.rows("outcome_coefficients", number=1, name="rare")
    assert own["mean_comparator"] > 0
    assert (row["mean_comparator"], row["coef"]) == (None, None)
    assert row["suppressed"] == "coef, mean_comparator"
    assert row["mean_target"] == own["mean_target"]
    # The page hides it alike where the results do not.
    made = rs.report.write(private.path, tmp_path / "page.html", blind=False)
    assert repr(own["mean_comparator"]) not in made.with_suffix(".json").read_text()
    assert repr(own["mean_target"]) in made.with_suffix(".json").read_text()


def test_nothing_leads_to_an_effect_that_is_withheld(tmp_path):
    """Crude ratio, coefficients and means together would be nearly the adjusted ratio."""
    model = {"strength": None, "folds": 3, "repeats": 1}
    shared, private = both(tmp_path, columns(200), model=model, diagnostics={"max_smd": 1e-9})
    for name in ("outcome_coefficients", "outcome_cross_validation"):
        assert private.rows(name)
        assert shared.rows(name) == []
    made = rs.report.write(private.path, tmp_path / "page.html", blind=True, min_cell_count=0)
    text = made.with_suffix(".json").read_text()
    row = private.rows("outcome_coefficients")[0]
    assert repr(row["coef"]) not in text
    assert repr(private.rows("outcome_cross_validation")[0]["mean"]) not in text


def test_few_outcomes_hide_the_model_with_the_effect(tmp_path):
    own = columns(200, rare=1)
    own["died"] = np.zeros(200, dtype=int)
    for drug in (0, 1):
        own["died"][np.flatnonzero(own["drug"] == drug)[30:32]] = 1
    shared, private = both(tmp_path, own, model={"strength": 0.01}, sharing={"blind": False})
    assert private.rows("outcome_coefficients")
    assert shared.rows("outcome_coefficients") == []


def test_controls_have_none(tmp_path):
    own = columns(200)
    outcomes = {
        "death": {"time": "days", "event": "died"},
        "control": {"time": "days", "event": "died", "kind": "negative control"},
    }
    _, private = both(tmp_path, own, outcomes=outcomes, sharing={"blind": False})
    assert {r["outcome"] for r in private.rows("outcome_coefficients")} == {"death"}
    assert private.rows("estimates", outcome="control", role="main")[0]["n_used"] == 3


@pytest.mark.parametrize(
    "model", rest_is_slow([{}, {"strength": None, "folds": 2, "repeats": 1}], 1)
)
def test_the_model_has_the_covariates_that_the_study_calls_tidy(tmp_path, model):
    """Whether its penalty is given or chosen."""
    own = columns()
    assert own["rare"].mean() < 0.1 < own["x"].mean()
    results, _ = both(tmp_path, own, defaults={"tidy": {"min_fraction": 0.1}}, model=model)
    assert {row["n_covariates"] for row in results.rows("estimates", role="main")} == {2}
    results, _ = both(tmp_path, own, model=model)
    assert {row["n_covariates"] for row in results.rows("estimates", role="main")} == {3}


def test_of_very_many_covariates_the_most_common_are_characteristics(tmp_path):
    found = people(300)
    rng = np.random.default_rng(2)
    found |= {f"c{k:03}": (rng.random(300) < 0.02 + 0.004 * k).astype(int) for k in range(120)}
    pq.write_table(pa.table(found), tmp_path / "people.parquet")
    rs.study.run(rs.study.Study(content(), tmp_path), tmp_path / "out")
    rows = rs.study.StudyResults.open(tmp_path / "out" / "private").rows("table1")
    rows = [row for row in rows if row["covariate_id"] is not None]
    assert len(rows) == 100
    assert {row["section"] for row in rows} == {"The 100 most common of 122 covariates"}
    labels = [row["label"] for row in rows]
    assert "age" in labels  # a mean
    assert "c119" in labels
    share = {name: found[name][found["drug"] == 1].mean() for name in labels if name != "age"}
    share = {k: v + found[k][found["drug"] == 0].mean() for k, v in share.items()}
    left_out = [c for c in found if c.startswith("c") and c not in labels]
    most = max(sum(found[c][found["drug"] == d].mean() for d in (0, 1)) for c in left_out)
    assert min(share.values()) >= most


@pytest.mark.parametrize("interval", rest_is_slow(["auto", "bootstrap"], 1))
def test_levels_of_a_subgroup_have_estimates_beside_covariates(tmp_path, interval):
    changes = {"subgroups": {"x": {"column": "x"}}, "model": {"interval": interval}}
    _, private = both(tmp_path, columns(), **changes, sharing={"blind": False})
    levels = [r for r in private.rows("estimates", role="subgroup") if r["subgroup"] == "x"]
    assert [r["level"] for r in levels] == ["0", "1"]
    assert all(r["status"] == "ok" and r["l1"] == 2.0 for r in levels)
    assert all(r["hr_lower"] < r["hr"] < r["hr_upper"] for r in levels)
    assert not private.rows("warnings", code="subgroups")
