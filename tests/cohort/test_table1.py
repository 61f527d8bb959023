"""Table 1: its numbers are those of R (`tests/golden/make_table1.R`) or worked out by hand."""

import csv
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import riskset as rs
from riskset import CohortError, InputError
from riskset.cohort.covariates.characteristic_values import quantiles
from riskset.datasets import rhc_path

GOLDEN = Path(__file__).parents[1] / "golden" / "table1.csv"
LABELS = pa.table(
    {
        "name": ["fac_sex", "num_age", "fac_race", "fac_cat1", "num_alb1", "fac_amihx"],
        "label": ["Sex", "Age", "Race", "Primary disease", "Albumin", "Infarction"],
        "group": ["Demographics", "Demographics", "Demographics", "Disease", "Tests", "History"],
        "unit": [None, "years", None, None, "g/dL", None],
        "reference": ["Female", None, "white", "COPD", None, "no infarction"],
    }
)
COLUMNS = ["num_age", "num_crea1", "fac_cat1", "num_alb1", "fac_race", "fac_sex", "fac_amihx"]


@pytest.fixture(scope="module")
def golden() -> dict[str, float]:
    with GOLDEN.open() as file:
        return {row["name"]: float(row["value"]) for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def frame() -> pa.Table:
    table = pq.read_table(rhc_path(categories=True))
    place = np.arange(table.num_rows)
    albumin = pa.array(table.column("num_alb1").to_numpy(), mask=place % 10 == 3)
    chosen = table.select(COLUMNS)
    return chosen.set_column(COLUMNS.index("num_alb1"), "num_alb1", albumin)


@pytest.fixture(scope="module")
def people() -> rs.cohort.Population:
    table = pq.read_table(rhc_path(categories=True), columns=["fac_swang1"])
    target = np.array(table.column(0).to_pylist()) == "RHC"
    return rs.cohort.Population(target.astype(int), 0.2 + 0.1 * (np.arange(target.size) % 7))


@pytest.fixture(scope="module")
def weighted(frame, people) -> rs.cohort.Table1:
    adjusted = rs.cohort.weight(people, estimand="ate")
    return rs.cohort.table1(
        frame,
        adjusted,
        covariate_labels=LABELS,
        median=["num_crea1"],
        target="RHC",
        comparator="No RHC",
    )


def line(table, **wanted):
    (row,) = [r for r in table.rows if all(r[name] == value for name, value in wanted.items())]
    return row


def test_means_and_standard_deviations_are_those_of_r(weighted, golden) -> None:
    for name in ("num_age", "num_alb1"):
        row = line(weighted, kind="mean", covariate_id=name)
        for side in ("before", "after"):
            for arm in ("target", "comparator"):
                for end, word in (("", "mean"), ("_sd", "sd")):
                    truth = golden[f"{side} {arm} {name} {word}"]
                    assert row[f"{side}_{arm}{end}"] == pytest.approx(truth, rel=1e-11)


def test_quartiles_are_those_of_r(frame, people, weighted, golden) -> None:
    adjusted = rs.cohort.weight(people, estimand="ate")
    every = rs.cohort.table1(frame, adjusted, statistic="median")
    for name in ("num_age", "num_alb1", "num_crea1"):
        row = line(every, kind="median", covariate_id=name)
        for side in ("before", "after"):
            for arm in ("target", "comparator"):
                for end, q in (("_lower", 1), ("", 2), ("_upper", 3)):
                    truth = golden[f"{side} {arm} {name} q{q}"]
                    assert row[f"{side}_{arm}{end}"] == pytest.approx(truth, rel=1e-14)
    assert line(weighted, kind="median").covariate_id == "num_crea1"


def test_counts_and_shares_of_all_levels_are_those_of_r(weighted, golden) -> None:
    n = 0
    for row in weighted.rows:
        if row.kind != "level":
            continue
        name, _, level = row.covariate_id.partition("=")
        for arm in ("target", "comparator"):
            count = golden[f"before {arm} {name} {level} count"]
            assert row[f"before_{arm}_count"] == count
            assert row[f"after_{arm}_count"] is None
            for side in ("before", "after"):
                truth = golden[f"{side} {arm} {name} {level} share"]
                assert row[f"{side}_{arm}"] == pytest.approx(truth, rel=1e-11)
        n += 1
    assert n == 9 + 3 + 2


def test_zeros_and_ones_have_both_lines_if_the_zeros_have_a_name(weighted, golden) -> None:
    ones, zeros = [row for row in weighted.rows if row.covariate_id == "fac_amihx"]
    assert (ones.label, zeros.label) == ("Infarction", "no infarction")
    for side in ("before", "after"):
        for arm in ("target", "comparator"):
            for row, level in ((ones, 1), (zeros, 0)):
                truth = golden[f"{side} {arm} fac_amihx {level} share"]
                assert row[f"{side}_{arm}"] == pytest.approx(truth, rel=1e-10)
    assert zeros.before.target_count == golden["before target fac_amihx 0 count"]
    assert zeros.before.smd is None


def test_differences_are_those_of_r(weighted, golden) -> None:
    titles = {"Primary disease": "fac_cat1", "Race": "fac_race", "Sex": "fac_sex"}
    rows = {titles[row.label]: row for row in weighted.rows if row.kind == "category"}
    for row in weighted.rows:
        if row.kind in ("mean", "median") or row.label == "Infarction":
            rows[row.covariate_id] = row
    assert len(rows) == 7
    for name, row in rows.items():
        for side in ("before", "after"):
            truth = golden[f"{side} {name} smd"]
            assert row[f"{side}_smd"] == pytest.approx(truth, rel=1e-9), (side, name)


def test_people_effective_sizes_and_missing_values_are_those_of_r(weighted, golden) -> None:
    n, effective = line(weighted, kind="people"), line(weighted, kind="effective")
    missing = line(weighted, kind="missing")
    for arm in ("target", "comparator"):
        assert n[f"before_{arm}_count"] == golden[f"before {arm} n"]
        truth = golden[f"after {arm} effective"]
        assert effective[f"after_{arm}"] == pytest.approx(truth, rel=1e-12)
        for side in ("before", "after"):
            truth = golden[f"{side} {arm} num_alb1 missing"]
            assert missing[f"{side}_{arm}"] == pytest.approx(truth, rel=1e-11)


def test_lines_follow_the_labels_in_groups_with_the_reference_first(weighted) -> None:
    shown = [(row.section, row.kind, row.label) for row in weighted.rows]
    assert shown[:8] == [
        (None, "people", ""),
        (None, "effective", ""),
        ("Demographics", "category", "Sex"),
        ("Demographics", "level", "Female"),
        ("Demographics", "level", "Male"),
        ("Demographics", "mean", "Age, years"),
        ("Demographics", "category", "Race"),
        ("Demographics", "level", "white"),
    ]
    assert shown[shown.index(("Disease", "category", "Primary disease")) + 1][2] == "COPD"
    assert shown[-1] == ("Other characteristics", "median", "num_crea1")


def test_the_printed_table(weighted) -> None:
    narrow = "\N{NARROW NO-BREAK SPACE}"
    table = weighted.formatted("Table 1")
    assert [c.title for c in table.columns] == ["Characteristic", *["RHC", "No RHC", "SMD"] * 2]
    cells = {row.cells[0]: row.cells[1:] for row in table.rows}
    assert cells["People, n"][:2] == (f"2{narrow}184", f"3{narrow}551")
    assert cells["Age, years, mean (SD)"][:3] == ("60.7 (15.6)", "61.8 (17.3)", "−0.06")
    assert cells["Female"][:2] == (f"906 (41.5{narrow}%)", f"1{narrow}637 (46.1{narrow}%)")
    assert cells["num_crea1, median [IQR]"][0] == "1.80 [1.20, 3.00]"
    assert cells["Sex, n (%)"][:2] == ("", "")
    assert cells["Missing, n (%)"][3].endswith("%")
    assert "(" not in cells["Missing, n (%)"][3]  # weighted
    assert table.footnotes[-2:] == (
        "Numbers after adjustment are weighted.",
        "IQR: first and third quartile.",
    )


def test_matched_pairs_have_counts_on_both_sides(frame, people) -> None:
    pairs = rs.cohort.match(people)
    table = rs.cohort.table1(frame, pairs)
    assert "effective" not in {row.kind for row in table.rows}
    after = line(table, kind="level", label="Male").after
    kept, target = pairs.kept, people.is_target
    male = np.array(frame.column("fac_sex").to_pylist()) == "Male"
    assert after.target_count == np.count_nonzero(male & kept & target)
    assert after.comparator_count == np.count_nonzero(male & kept & ~target)


def test_sharing_hides_few_people_and_what_tells_them(frame, people, golden) -> None:
    table = rs.cohort.table1(frame, people, covariate_labels=LABELS)
    shared = rs.cohort.share_table1(table, min_cell_count=10)
    assert golden["before target fac_cat1 Colon Cancer count"] == 1
    assert golden["before comparator fac_cat1 Colon Cancer count"] == 6
    row = line(shared, label="Colon Cancer")
    assert row.before.target_count is row.before.target is None
    assert row.before.comparator_count is None
    hidden = [r for r in shared.rows if r.kind == "level" and r.before.target_count is None]
    # One alone would follow from the others and the people of the arm.
    assert len(hidden) >= 2
    assert line(shared, kind="category", label="Primary disease").before.smd is None
    assert line(shared, kind="category", label="Sex").before.smd is not None
    assert (
        "–: not shown, because few people have the characteristic." in shared.formatted().footnotes
    )
    assert dict(line(shared, label="Age, years")) == dict(line(table, label="Age, years")) | {
        "adjustment": 1
    }


def test_a_population_has_one_side(frame, people) -> None:
    table = rs.cohort.table1(frame, people)
    assert len(table.formatted().columns) == 4
    assert all(row.after.target is None for row in table.rows)
    assert "after_target" in table.columns()


def test_a_dataset_and_a_frame_make_the_same_table(frame, people) -> None:
    whole = frame.append_column("time", pa.array(np.ones(frame.num_rows)))
    whole = whole.append_column("event", pa.array(np.ones(frame.num_rows, dtype=int)))
    data = rs.Dataset.from_frame(whole, covariate_labels=LABELS, missing="indicator")
    one = rs.cohort.table1(data, people)
    other = rs.cohort.table1(frame, people, covariate_labels=LABELS)
    assert [dict(row) for row in one.rows] == [dict(row) for row in other.rows]


def test_levels_that_one_arm_lacks_have_an_infinite_difference_only_if_neither_varies() -> None:
    people = rs.cohort.Population([1, 1, 0, 0])
    apart = rs.cohort.table1(pa.table({"g": ["a", "a", "b", "b"]}), people)
    assert math.isinf(line(apart, kind="category").before.smd)
    same = rs.cohort.table1(pa.table({"g": ["a", "b", "a", "b"]}), people)
    assert line(same, kind="category").before.smd == 0.0


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
def test_a_weight_of_two_is_a_value_twice(p) -> None:
    rng = np.random.default_rng(4)
    x, w = rng.integers(0, 30, 50).astype(float), rng.integers(0, 4, 50)
    twice = np.repeat(x, w)
    assert quantiles(x, w.astype(float), [p]) == quantiles(twice, np.ones(twice.size), [p])


def test_files_of_every_kind(weighted, tmp_path) -> None:
    for suffix in (".csv", ".docx", ".html", ".tex"):
        path = weighted.save(tmp_path / f"table1{suffix}")
        assert path.stat().st_size > 500
    assert "Primary disease" in weighted.to_latex()
    assert weighted._repr_html_().count("<tbody>") == 6


def test_mistakes(frame, people) -> None:
    with pytest.raises(InputError, match="`median` names 'num_agee'"):
        rs.cohort.table1(frame, people, median=["num_agee"])
    with pytest.raises(CohortError, match="5,735"):
        rs.cohort.table1(frame.slice(0, 10), people)
    with pytest.raises(InputError, match="'x', which is not a covariate of the data"):
        rs.cohort.table1(frame, people, covariate_labels={"x": "X", "num_age": "Age"})


def test_a_column_has_both_arms_together() -> None:
    """Ages 61, 70, 55 | 66, 58, 47: mean 59.5, sample SD sqrt(333.5 / 5), median (58 + 61) / 2."""
    people = rs.cohort.Population([1, 1, 1, 0, 0, 0])
    frame = pa.table(
        {
            "age": [61.0, 70.0, 55.0, 66.0, 58.0, 47.0],
            "bmi": [20.0, None, 30.0, 25.0, None, None],
            "sex": ["m", "f", "m", "f", "f", "m"],
            "smokes": [1, 0, 0, 1, 1, 0],
        }
    )
    found = rs.cohort.table1(frame, people, overall=True)
    age, bmi = (line(found, label=name, kind="mean") for name in ("age", "bmi"))
    assert (age["before_overall"], age["before_overall_sd"]) == pytest.approx((59.5, 66.7**0.5))
    assert (bmi["before_overall"], bmi["before_overall_sd"]) == pytest.approx((25.0, 5.0))
    places = ({"label": "f"}, {"kind": "people"})
    counts = [line(found, **place)["before_overall_count"] for place in places]
    assert counts == [3, 6]
    (missing,) = [row for row in found.rows if row["kind"] == "missing"]
    assert (missing["before_overall_count"], missing["before_overall"]) == (3, 0.5)
    median = rs.cohort.table1(frame, people, overall=True, statistic="median")
    row = line(median, label="age")
    assert [row[f"before_overall{end}"] for end in ("", "_lower", "_upper")] == [59.5, 55, 66]
    printed = list(csv.reader(found.to_csv().splitlines()))
    assert printed[0] == ["Characteristic", "Overall", "Target", "Comparator", "SMD"]
    assert printed[1][:4] == ["People, n", "6", "3", "3"]
    assert "Overall" in found.to_latex()
    assert "before_overall_sd" in found.columns()
    plain = rs.cohort.table1(frame, people)
    assert not any("overall" in name for name in plain.columns())
    assert "Overall" not in plain.to_csv()


def test_both_arms_together_are_weighted_after_an_adjustment() -> None:
    people = rs.cohort.Population([1, 1, 1, 0, 0, 0], [0.5, 0.6, 0.7, 0.3, 0.4, 0.5])
    adjusted = rs.cohort.weight(people, estimand="ate")
    frame = pa.table({"age": [61.0, 70.0, 55.0, 66.0, 58.0, 47.0], "ill": [1, 0, 0, 1, 1, 0]})
    found = rs.cohort.table1(frame, adjusted, overall=True)
    w = adjusted.weight / adjusted.weight.sum()
    age = frame["age"].to_numpy()
    mean = float(w @ age)
    sd = math.sqrt(float(w @ (age - mean) ** 2) / (1 - float(w @ w)))
    row = line(found, label="age")
    assert (row["after_overall"], row["after_overall_sd"]) == pytest.approx((mean, sd))
    assert line(found, label="ill")["after_overall"] == pytest.approx(w[0] + w[3] + w[4])
    size = line(found, kind="effective")["after_overall"]
    assert size == pytest.approx(1 / float(w @ w))
    assert found.formatted().columns[1].spanner == "Before adjustment"


def test_both_arms_together_are_hidden_with_one_of_them() -> None:
    n = 40
    people = rs.cohort.Population([1] * n + [0] * n)
    ill = [1] * 2 + [0] * (n - 2) + [1] * 20 + [0] * 20
    found = rs.cohort.table1(pa.table({"ill": ill, "old": [0, 1] * n}), people, overall=True)
    shared = rs.cohort.share_table1(found)
    hidden, shown = line(shared, label="ill"), line(shared, label="old")
    assert hidden["before_target_count"] is hidden["before_overall_count"] is None
    assert hidden["before_overall"] is None
    assert shown["before_overall_count"] == 40


@pytest.mark.parametrize(
    "answers",
    [
        [1.0, 1.0, 0.0, None, 1.0, 0.0, 0.0, 0.0],
        [True, True, False, None, True, False, False, False],
        ["yes", "yes", "no", None, "yes", "no", "no", "no"],
    ],
)
def test_shares_and_differences_are_of_the_known_values(answers) -> None:
    """2/3 and 1/4 say yes, with sample variances 1/3 and 1/4, so the difference is 5/12 of a unit
    of sqrt(7/24)."""
    people = rs.cohort.Population([1] * 4 + [0] * 4)
    found = rs.cohort.table1(pa.table({"ill": pa.array(answers)}), people, overall=True)
    is_text = isinstance(answers[0], str)
    yes = line(found, label="yes") if is_text else line(found, label="ill")
    smd = line(found, kind="category" if is_text else "share")["before_smd"]
    assert abs(smd) == pytest.approx((5 / 12) / math.sqrt(7 / 24), rel=1e-12)
    shares = [yes[f"before_{group}"] for group in ("target", "comparator", "overall")]
    assert shares == pytest.approx([2 / 3, 1 / 4, 3 / 7])
    assert [yes["before_target_count"], yes["before_comparator_count"]] == [2, 1]
    missing = line(found, kind="missing")
    assert (missing["before_target"], missing["before_target_count"]) == (0.25, 1)
    assert (missing["before_comparator"], missing["before_comparator_count"]) == (0.0, 0)
    assert [row["kind"] for row in found.rows].count("level") == (2 if is_text else 0)
    assert found.formatted().footnotes[1] == (
        "Percentages, means, medians and SMDs are of the known values; percentages of missing "
        "values are of everybody."
    )


def test_a_constant_with_missing_values_does_not_differ() -> None:
    people = rs.cohort.Population([1] * 7 + [0] * 7, [0.3 + 0.03 * k for k in range(14)])
    adjusted = rs.cohort.weight(people, estimand="ate")
    x = [None if k in (2, 9) else 0.1 for k in range(14)]
    found = rs.cohort.table1(pa.table({"x": x, "ill": [v and 1.0 for v in x]}), adjusted)
    for name in ("x", "ill"):
        row = line(found, label=name)
        assert (row["before_smd"], row["after_smd"]) == (0.0, 0.0)


def test_a_reference_level_counts_known_zeros() -> None:
    people = rs.cohort.Population([1] * 4 + [0] * 4)
    labels = pa.table({"name": ["ill"], "reference": ["healthy"]})
    x = [1.0, 1.0, 0.0, None, 1.0, 0.0, 0.0, 0.0]
    found = rs.cohort.table1(pa.table({"ill": x}), people, covariate_labels=labels)
    healthy = line(found, label="healthy")
    assert (healthy["before_target_count"], healthy["before_comparator_count"]) == (1, 3)
    assert healthy["before_target"] == pytest.approx(1 / 3)


def test_an_arm_without_anybody_has_dashes() -> None:
    frame = pa.table(
        {
            "age": [50.0, 60.0, 70.0, 55.0, 65.0, None],
            "sex": ["m", "f", "m", "f", "f", "m"],
            "ill": [1, 0, 1, 0, None, 1],
        }
    )
    alone = rs.cohort.table1(frame, rs.cohort.Population([1] * 6), overall=True)
    assert line(alone, kind="people")["before_comparator_count"] == 0
    six = rs.cohort.Population([1, 1, 1, 0, 0, 0], [0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    trimmed = rs.cohort.table1(frame, rs.cohort.trim(six, symmetric=0.4999), overall=True)
    assert line(trimmed, kind="people")["after_target_count"] == 0
    for found, empty in ((alone, "before_comparator"), (trimmed, "after_target")):
        for row in found.rows[1:]:
            assert row[empty] is None
            assert row[f"{empty.split('_')[0]}_smd"] is None
    cells = {row.cells[0]: row.cells for row in alone.formatted().rows}
    dash = "\N{EN DASH}"
    assert cells["age, mean (SD)"][3:] == (dash, dash)
    assert cells["f"][3] == "0"
    assert rs.cohort.balance(frame.select(["sex"]), six).before.count_target.tolist() == [1, 2]
    nobody = rs.cohort.balance(frame.select(["sex"]), rs.cohort.Population([1] * 6)).before
    assert nobody.count_comparator.tolist() == [0, 0]


def test_few_known_zeros_and_missing_values_are_hidden_with_all_that_tells_them() -> None:
    n = 40
    people = rs.cohort.Population([1] * n + [0] * n)
    # 20 ones, 18 missing and 2 zeros | 20 ones, 10 missing and 10 zeros
    rare_zeros = [1] * 20 + [None] * 18 + [0] * 2 + [1] * 20 + [None] * 10 + [0] * 10
    # 3 missing | none
    texts = [None] * 3 + ["a"] * 17 + ["b"] * 20 + ["a", "b"] * 20
    plain = ["a", "b"] * n
    plain[5] = plain[8] = plain[11] = plain[14] = plain[17] = plain[20] = None
    enough = ([1] * 20 + [None] * 10 + [0] * 10) * 2
    frame = pa.table({"zeros": rare_zeros, "enough": enough, "texts": texts, "plain": plain})
    shared = rs.cohort.share_table1(rs.cohort.table1(frame, people))
    missing = [r for r in shared.rows if r["kind"] == "missing"]
    zeros, enough_missing, texts_missing, plain_missing = missing
    assert line(shared, label="enough")["before_target_count"] == 20
    assert enough_missing["before_target_count"] == 10
    assert line(shared, label="zeros")["before_target_count"] is None
    assert line(shared, label="zeros")["before_target"] is None
    assert zeros["before_target_count"] is None
    assert texts_missing["before_target_count"] is None
    levels = [r for r in shared.rows if r["kind"] == "level"]
    assert [r["before_target"] for r in levels[:2]] == [None, None]
    assert plain_missing["before_target_count"] == 6
    assert [r["before_target_count"] for r in levels[2:]] == [17, 17]
