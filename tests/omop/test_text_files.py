"""Tables of a CDM in CSV files: the rules of the columns decide, never a guess of the reader."""

import pytest

import riskset as rs
from omop.by_hand import code_of, day
from omop.four_people import folder_of, follow, tables, told

DATES = {
    "cohort": ["cohort_start_date", "cohort_end_date"],
    "observation_period": ["observation_period_start_date", "observation_period_end_date"],
    "condition_occurrence": ["condition_start_date"],
}


def with_dates(how):
    own = tables()
    for name, columns in DATES.items():
        for column in columns:
            own[name][column] = [value.strftime(how) for value in own[name][column]]
    return own


@pytest.mark.parametrize("how", ["%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%y/%m/%d"])
def test_other_ways_to_write_dates_are_refused(how, tmp_path):
    for source in (with_dates(how), folder_of(with_dates(how), tmp_path)):
        with pytest.raises(rs.CohortError, match="must hold a date, as 2020-01-31") as raised:
            follow(source)
        assert code_of(raised) == "BadDate"


def test_days_below_13_give_nothing_away(tmp_path):
    """The first of a month, written as in the United States: each file by itself looks clean."""
    own = with_dates("%m/%d/%Y")
    own["cohort"]["cohort_start_date"] = "06/01/2015"
    own["cohort"]["cohort_end_date"] = "12/01/2015"
    own["observation_period"]["observation_period_start_date"] = "01/01/2010"
    own["observation_period"]["observation_period_end_date"] = "12/01/2020"
    for outcome in ("07/01/2015", "07/20/2015"):
        own["condition_occurrence"]["condition_start_date"] = outcome
        with pytest.raises(rs.CohortError, match=r"'06/01/2015'") as raised:
            follow(folder_of(own, tmp_path))
        assert raised.value.details["column"] == "cohort_start_date"
        assert raised.value.details["file"] == "cohort.csv"


@pytest.mark.parametrize(
    "how", ["%Y-%m-%d", "%Y%m%d", "%Y%m%d.0", " %Y-%m-%d", "%Y-%m-%dT23:30:00-05:00"]
)
def test_dates_as_they_are_written(how, tmp_path):
    found = follow(folder_of(with_dates(how), tmp_path))
    assert told(found)[0] == (1, day("2015-06-15"), 209, 1)
    assert told(found)[1] == (2, day("2015-06-15"), 2026, 0)


def test_a_date_far_down_the_file_is_no_guess(tmp_path):
    """Two thousand clean dates come first."""
    lines = ["person_id,death_date", *(f"{k},2015-06-{k % 9 + 10}" for k in range(2000))]
    (tmp_path / "death.csv").write_text("\n".join([*lines, "2000,06/07/2015"]))
    with rs.omop.Cdm(tmp_path) as cdm, pytest.raises(rs.CohortError, match="1 value is not one"):
        cdm.view("death", ("person_id", "death_date"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [("1", 1), ("01", 1), ("+1", 1), ("1.0", 1), (" 1", 1), ("1e+05", 100_000)],
)
def test_ids_in_a_file(written, expected, tmp_path):
    (tmp_path / "death.csv").write_text(f"person_id,death_date\n{written},2015-06-10\n")
    with rs.omop.Cdm(tmp_path) as cdm, cdm.scratch() as work:
        view = cdm.view("death", ("person_id", "death_date"))
        assert work.rows(f"SELECT * FROM {view}") == [(expected, day("2015-06-10"))]


@pytest.mark.parametrize("written", ["1.5", "1e20", "1_000", "0x1F", "a1"])
def test_what_is_no_id_in_a_file(written, tmp_path):
    (tmp_path / "death.csv").write_text(f"person_id,death_date\n{written},2015-06-10\n")
    with rs.omop.Cdm(tmp_path) as cdm, pytest.raises(rs.CohortError, match=written) as raised:
        cdm.view("death", ("person_id", "death_date"))
    assert code_of(raised) == "BadId"


def test_codes_are_no_dates_and_no_numbers(tmp_path):
    codes = ["01-02-03", "2015-01-01", "007", "1e3"]
    lines = [f"{k},{code}" for k, code in enumerate(codes)]
    (tmp_path / "concept.csv").write_text("\n".join(["concept_id,concept_code", *lines]))
    with rs.omop.Cdm(tmp_path) as cdm:
        assert cdm.arrow("concept").column("concept_code").to_pylist() == codes


# -------------------------------------------------------------------- Athena

ATHENA = {
    "starts with a quote": ["Heart failure", '"Fluid" retention', "Other", "Last"],
    "a pair far apart": ['"Heart failure', "Other", 'end of quote"', "Last"],
    "inside": ["Heart failure", 'Duodenal "switch" procedure', '5" needle', "Last"],
}


def concepts_of(folder, header, names, *, file="CONCEPT.csv"):
    body = "".join(f"{k}\t{name}\tCondition\n" for k, name in enumerate(names, start=1))
    (folder / file).write_text(header + "\n" + body)
    with rs.omop.Cdm(folder) as cdm:
        return cdm.arrow("concept").column("concept_name").to_pylist()


@pytest.mark.parametrize("names", ATHENA.values(), ids=ATHENA)
@pytest.mark.parametrize("file", ["CONCEPT.csv", "concept.tsv"])
def test_quotes_in_files_of_athena(names, file, tmp_path):
    header = "concept_id\tconcept_name\tdomain_id"
    assert concepts_of(tmp_path, header, names, file=file) == names


def test_quotes_around_every_name_of_the_header_are_quotes(tmp_path):
    header = '"concept_id"\t"concept_name"\t"domain_id"'
    names = ['"Heart\tfailure"', '"say ""x"""']
    assert concepts_of(tmp_path, header, names) == ["Heart\tfailure", 'say "x"']


def test_a_line_of_athena_with_too_many_fields_is_named(tmp_path):
    header = "concept_id\tconcept_name\tdomain_id"
    with pytest.raises(rs.CohortError, match=r"line 3 of CONCEPT\.csv has 4 fields") as raised:
        concepts_of(tmp_path, header, ["Heart failure", '"Fluid\tretention"'])
    assert code_of(raised) == "BadFile"


def test_other_tables_in_tabs_keep_their_quotes(tmp_path):
    (tmp_path / "death.tsv").write_text('person_id\tdeath_date\n"1"\t"2015-06-10"\n')
    with rs.omop.Cdm(tmp_path) as cdm:
        assert cdm.arrow("death").column("person_id").to_pylist() == [1]
