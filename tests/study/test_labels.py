"""A study with a table of labels: results and the report call covariates by their labels."""

import re

import numpy as np
import pytest

import riskset as rs
from riskset import InputError
from study.small import people, run

LABELS = """name,label,group,unit,reference
fac_cat1,Primary disease,Disease,,COPD
age,Age,Demographics,years,
fac_diab,Diabetes,History,,no diabetes
x,Severity,,,
"""


def columns(n=400):
    found = people(n)
    rng = np.random.default_rng(5)
    rare = np.where(np.arange(n) < 3, "MOSF", rng.choice(["ARF", "CHF", "COPD"], n))
    return found | {"fac_cat1": rare, "fac_diab": rng.integers(0, 2, n)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("labels")
    (place / "labels.csv").write_text(LABELS)
    data = {
        "people": "people.parquet",
        "treatment": "drug",
        "id": "id",
        "covariate_labels": "labels.csv",
    }
    run(place, columns(), data=data, analyses={"m": {"match": {}}})
    return place


@pytest.fixture(scope="module")
def private(folder):
    return rs.study.StudyResults.open(folder / "out" / "private")


def test_the_balance_has_labels_for_names_and_columns_for_keys(private):
    names = {row["covariate_id"]: row["name"] for row in private.rows("balance")}
    assert names == {
        "x": "Severity",
        "age": "Age, years",
        "fac_cat1=COPD": "Primary disease: COPD",
        "fac_cat1=ARF": "Primary disease: ARF",
        "fac_cat1=CHF": "Primary disease: CHF",
        "fac_cat1=MOSF": "Primary disease: MOSF",
        "fac_diab": "Diabetes",
    }


def test_table1_has_groups_levels_and_the_reference_first(private):
    rows = private.rows("table1")
    assert [(row["section"], row["kind"], row["label"]) for row in rows] == [
        (None, "people", ""),
        ("Disease", "category", "Primary disease"),
        *(("Disease", "level", level) for level in ("COPD", "ARF", "CHF", "MOSF")),
        ("Demographics", "mean", "Age, years"),
        ("History", "share", "Diabetes"),
        ("History", "share", "no diabetes"),
        ("Other characteristics", "share", "Severity"),
    ]
    levels = [row for row in rows if row["kind"] == "level"]
    assert sum(row["before_target_count"] for row in levels) == rows[0]["before_target_count"]


def test_what_is_shared_hides_few_people_and_what_follows_from_them(folder):
    rows = rs.study.StudyResults.open(folder / "out" / "results").rows("table1")
    by_label = {row["label"]: row for row in rows}
    rare = by_label["MOSF"]
    for arm in ("target", "comparator"):
        if rare[f"before_{arm}_count"] is None:
            assert rare[f"before_{arm}"] is None
            levels = [row for row in rows if row["kind"] == "level"]
            hidden = [row for row in levels if row[f"before_{arm}_count"] is None]
            assert len(hidden) >= 2  # or the rest would tell
    assert "before_target_count" in rare["suppressed"] or "before_comparator" in rare["suppressed"]
    assert by_label["Primary disease"]["before_smd"] is None
    assert by_label["Age, years"]["before_smd"] is not None


def test_the_report_shows_no_name_of_a_column_with_a_label(folder):
    page = rs.report.write(folder / "out" / "results", folder / "report.html", date="2026-01-01")
    text = re.sub(r"<(script|style).*?</\1>", "", page.read_text("utf-8"), flags=re.DOTALL)
    # The specification of the study is quoted in the section on reproduction.
    shown = re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL)
    assert "fac_" not in shown
    for words in ("Primary disease, n (%)", "Age, years, mean (SD)", "no diabetes, n (%)"):
        assert words in shown


def test_sections_choose_by_column_name_label_and_statistic(folder, tmp_path):
    (tmp_path / "labels.csv").write_text(LABELS)
    sections = [
        {"section": "A", "covariates": ["fac_cat1", "Severity"]},
        {"section": "B", "covariates": ["Age, *"], "statistic": "median"},
    ]
    data = {
        "people": "people.parquet",
        "treatment": "drug",
        "id": "id",
        "covariate_labels": "labels.csv",
    }
    found = run(tmp_path, columns(), data=data, analyses={"m": {"match": {}}}, table1=sections)
    rows = [row for row in found.rows("table1") if row["section"]]
    assert [(row["section"], row["kind"]) for row in rows] == [
        ("A", "category"),
        *[("A", "level")] * 4,
        ("A", "share"),
        ("B", "median"),
    ]
    median = rows[6]
    x = columns()["age"][columns()["drug"] == 1].astype(float)
    expected = [np.quantile(x, q, method="averaged_inverted_cdf") for q in (0.25, 0.5, 0.75)]
    got = [median[f"before_target{end}"] for end in ("_lower", "", "_upper")]
    assert got == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "there is no file or folder"),
        ("name,label\nagee,Age\n", "labels.csv, data row 1, has a label for 'agee'"),
    ],
)
def test_mistakes_are_found(tmp_path, text, words):
    if text is not None:
        (tmp_path / "labels.csv").write_text(text)
    data = {
        "people": "people.parquet",
        "treatment": "drug",
        "id": "id",
        "covariate_labels": "labels.csv",
    }
    with pytest.raises(InputError, match=words):
        run(tmp_path, columns(), data=data, analyses={"m": {"match": {}}})
