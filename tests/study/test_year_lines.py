"""Calendar years of Table 1 of a CDM: ranges by one rule, with the sums of their years."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from riskset.cohort.covariates.characteristics import Characteristic
from riskset.study.steps.characteristic_lines import with_year_ranges

TEXT = """
title: Toy
data: {cdm: toy-cdm}
exposures:
  thiazides: {concepts: [974166, 1395058]}
  ACE inhibitors: {concepts: [1308216, 1341927]}
comparisons:
  - {target: thiazides, comparator: ACE inhibitors}
outcomes:
  heart failure: {concepts: [316139]}
defaults:
  eligibility: {restrict_to_common_period: false}
  covariates: {analyses: [1, 3, 6, 11]}
  propensity: {penalty: l1, cross_validate: false, variance: 0.01}
analyses:
  overlap: {weight: {}}
"""


def years(*levels):
    """A characteristic with these levels, in reverse order of their columns."""
    columns = tuple(range(len(levels)))[::-1]
    return Characteristic("Year", "category", columns, tuple(map(str, levels)))


@pytest.mark.parametrize(
    ("levels", "most", "wanted"),
    [
        (range(2010, 2020), 10, [str(y) for y in range(2010, 2020)]),
        (range(2010, 2021), 10, [f"{y}–{y + 1}" for y in range(2010, 2020, 2)] + ["2020"]),
        (range(2009, 2021), 5, ["2009", "2010–2014", "2015–2019", "2020"]),
        ([2001, 2019, 2003], 2, ["2001–2009", "2010–2019"]),
        ([1999, 2001], 1, ["1999–2001"]),
        ([201001, 201002, 201112, 201201], 3, ["2010", "2011", "2012"]),
        ([201001, 201002, 201112, 201201], 2, ["2010–2011", "2012"]),
    ],
)  # fmt: skip
def test_the_rule(levels, most, wanted):
    made = with_year_ranges(years(*levels), most)
    assert list(made.levels) == wanted
    assert sorted(made.columns) == list(range(len(levels)))
    assert len(made.levels) <= most
    of = dict(zip(years(*levels).columns, levels, strict=True))
    for level, columns in zip(made.levels, made.of_levels, strict=True):
        ends = [int(y) for y in level.split("–")]
        for column in columns:
            year = of[column] if of[column] < 100000 else of[column] // 100
            assert ends[0] <= year <= ends[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("years")
    rs.simulate.toy_cdm(place / "toy-cdm", 3000, file_format="parquet")
    return place


def study(folder, lines):
    text = f"{TEXT}report: {{year_lines: {lines}}}\n"
    rs.study.run(rs.study.Study.parse(text, folder), folder / "out")
    return rs.study.StudyResults.open(folder / "out" / "private")


def test_lines_are_the_sums_of_years(folder):
    single = study(folder, 100)
    apart = {}
    title = None
    for row in single.rows("table1"):
        title = row["label"] if row["kind"] == "category" else title
        if title == "Index year" and row["kind"] == "level":
            assert row["joined"] is None
            apart[row["label"]] = row
    assert len(apart) > 3
    joined = study(folder, 3)
    lines = [row for row in joined.rows("table1") if row["joined"]]
    of_years = [row for row in lines if row["joined"].split(";")[0].endswith("006")]
    assert of_years
    for row in of_years:
        assert row["covariate_id"] is None
        first, last = map(int, row["label"].split("–"))
        inside = [one for year, one in apart.items() if first <= int(year) <= last]
        for name in ("before_target", "before_comparator_count", "after_comparator"):
            total = sum(one[name] or 0 for one in inside)
            assert_allclose(row[name] or 0, total, rtol=1e-12)
    heads = [row for row in joined.rows("table1") if row["label"] == "Index year"]
    assert np.isfinite(heads[0]["before_smd"])
    # The balance keeps every year.
    names = {row["name"] for row in joined.rows("balance")}
    assert sum(name.startswith("index year: ") for name in names) == len(apart)


def test_a_range_hides_what_a_year_hides(folder):
    private = study(folder, 3)
    shared = rs.study.StudyResults.open(folder / "out" / "results")
    shown = {(r["adjustment"], r["covariate_id"]): r for r in shared.rows("balance")}
    lines = [row for row in shared.rows("table1") if row["joined"]]
    hidden = 0
    for row in lines:
        for arm in ("target", "comparator"):
            own = [shown[row["adjustment"], key] for key in row["joined"].split(";")]
            if any(one[f"before_mean_{arm}"] is None for one in own):
                hidden += 1
                assert row[f"before_{arm}"] is None
                assert row[f"before_{arm}_count"] is None
            else:
                assert row[f"before_{arm}"] is not None
    assert hidden
    assert len(private.rows("table1")) == len(shared.rows("table1"))


def test_wrong_numbers_of_lines(folder):
    with pytest.raises(rs.InputError, match="year_lines"):
        study(folder, 0)
