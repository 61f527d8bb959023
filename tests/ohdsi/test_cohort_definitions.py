"""Cohort definitions of ATLAS: the records of people, worked out by hand and by plain SQL."""

import builtins
import json

import duckdb
import pytest

import riskset as rs
from gibleed import CELECOXIB, GIBLEED, needs_gibleed
from ohdsi.definitions import (
    CLASS,
    DISEASE,
    DRUG,
    concept_set,
    day,
    definition,
    item,
    occurs,
    rule,
    small_tables,
)
from riskset.ohdsi import CohortDefinition, generate_cohorts, read_cohort_definitions

pytest.importorskip("duckcdm")

EXPOSURE = {"DrugExposure": {"CodesetId": 0}}
ILL = {"ConditionOccurrence": {"CodesetId": 1}}
SETS = (
    concept_set(0, item(CLASS, includeDescendants=True), name="drugs"),
    concept_set(1, item(DISEASE), name="disease"),
)
END = day("2019-12-31")
EVER = [
    (1, day("2012-03-01"), END),
    (2, day("2010-06-01"), END),
    (3, day("2013-01-01"), END),
    (4, day("2015-05-05"), END),
]
ERA = {"CustomEra": {"DrugCodesetId": 0, "GapDays": 30, "Offset": 0}}

CASES = {
    "first exposure to a class": (definition(EXPOSURE, *SETS), EVER),
    "with the drug itself": (definition(EXPOSURE, concept_set(0, item(DRUG))), EVER),
    "with the class alone": (definition(EXPOSURE, concept_set(0, item(CLASS))), []),
    "a year of observation": (definition(EXPOSURE, *SETS, prior_days=365), [EVER[0], *EVER[2:]]),
    "above 40": (
        definition(
            EXPOSURE,
            *SETS,
            InclusionRules=[rule("age", demographic=[{"Age": {"Value": 40, "Op": "gt"}}])],
        ),
        EVER[:3],
    ),
    "never ill before": (
        definition(EXPOSURE, *SETS, InclusionRules=[rule("well", occurs(ILL, 0, 0, None, -1))]),
        [EVER[0], EVER[1], EVER[3]],
    ),
    "ill within a year after": (
        definition(EXPOSURE, *SETS, InclusionRules=[rule("ill", occurs(ILL, 2, 1, 1, 365))]),
        [EVER[1]],
    ),
    "a large quantity": (
        definition(
            {"DrugExposure": {"CodesetId": 0, "Quantity": {"Value": 5, "Op": "gte"}}}, *SETS
        ),
        EVER[2:],
    ),
    "continuous exposure": (
        definition(EXPOSURE, *SETS, limit="All", EndStrategy=ERA),
        [
            (1, day("2012-03-01"), day("2012-04-23")),
            (1, day("2014-01-01"), day("2014-01-30")),
            (2, day("2010-06-01"), day("2010-06-30")),
            (3, day("2013-01-01"), day("2013-01-30")),
            (4, day("2015-05-05"), day("2015-06-03")),
        ],
    ),
    "for ten days": (
        definition(
            EXPOSURE, *SETS, EndStrategy={"DateOffset": {"DateField": "StartDate", "Offset": 10}}
        ),
        [
            (1, day("2012-03-01"), day("2012-03-11")),
            (2, day("2010-06-01"), day("2010-06-11")),
            (3, day("2013-01-01"), day("2013-01-11")),
            (4, day("2015-05-05"), day("2015-05-15")),
        ],
    ),
    "death, of which there is no table": (definition({"Death": {}}), []),
}


@pytest.fixture(scope="module")
def cdm():
    with rs.omop.Cdm(small_tables()) as found:
        yield found


def _rows(table):
    names = ("subject_id", "cohort_start_date", "cohort_end_date")
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


@pytest.mark.parametrize("name", CASES)
def test_by_hand(cdm, name):
    content, expected = CASES[name]
    assert _rows(CohortDefinition.from_json(content).generate(cdm)) == expected


def test_many_at_once_and_again(cdm):
    """Nothing is left behind that a later question would see."""
    contents = [content for content, _ in CASES.values()]
    definitions = [CohortDefinition.from_json(c, id=k) for k, c in enumerate(contents, 1)]
    for _ in range(2):
        table = generate_cohorts(cdm, definitions)
        for k, (_, expected) in enumerate(CASES.values(), 1):
            rows = [row for row in table.to_pylist() if row["cohort_definition_id"] == k]
            names = ("subject_id", "cohort_start_date", "cohort_end_date")
            assert [tuple(row[name] for name in names) for row in rows] == expected


@needs_gibleed
def test_first_celecoxib_eras_of_gibleed():
    """Four cohorts as OHDSI tests its own programs with: 1800, 569, 266 and 1750 people."""
    era, sets = {"DrugEra": {"CodesetId": 0}}, concept_set(0, item(CELECOXIB))
    age = rule("age", demographic=[{"Age": {"Value": 40, "Op": "gt"}}])
    men = rule("men", demographic=[{"Gender": [{"CONCEPT_ID": 8507, "CONCEPT_NAME": "MALE"}]}])
    contents = [
        definition(era, sets),
        definition(era, sets, InclusionRules=[age]),
        definition(era, sets, InclusionRules=[age, men]),
        definition(era, sets, CensorWindow={"StartDate": "2000-01-01"}),
    ]
    definitions = [CohortDefinition.from_json(c, id=k) for k, c in enumerate(contents, 1)]
    with rs.omop.Cdm(GIBLEED) as cdm:
        found = generate_cohorts(cdm, definitions).column("cohort_definition_id").to_pylist()
    with duckdb.connect(str(GIBLEED), read_only=True) as connection:
        expected = connection.sql(
            "SELECT count(*), count(*) FILTER (age > 40), "
            "count(*) FILTER (age > 40 AND gender_concept_id = 8507), "
            "count(*) FILTER (last >= '2000-01-01') FROM (SELECT gender_concept_id, "
            "min(year(drug_era_start_date) - year_of_birth) AS age, "
            "max(observation_period_end_date) AS last FROM drug_era JOIN observation_period o "
            "USING (person_id) JOIN person USING (person_id) "
            f"WHERE drug_concept_id = {CELECOXIB} AND drug_era_start_date BETWEEN "
            "o.observation_period_start_date AND o.observation_period_end_date "
            "GROUP BY person_id, gender_concept_id)"
        ).fetchall()
    assert [tuple(found.count(k) for k in (1, 2, 3, 4))] == expected == [(1800, 569, 266, 1750)]


def test_forms_of_a_file(tmp_path):
    content, _ = CASES["never ill before"]
    forms = {
        "bare": content,
        "named": {"id": 5, "name": "new users", "expression": content},
        "as text": {"id": 5, "name": "new users", "expression": json.dumps(content)},
    }
    for name, form in forms.items():
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(form))
        found = CohortDefinition.from_json(path, id=3)
        assert json.loads(found.expression) == content
        assert found == CohortDefinition(3, found.name, found.expression)
        assert found.name == ("bare" if name == "bare" else "new users")
        assert {n: s.concepts for n, s in found.concept_sets.items()} == {
            "drugs": (CLASS,),
            "disease": (DISEASE,),
        }


def _folder(place, rows, names):
    (place / "cohorts").mkdir(parents=True)
    (place / "Cohorts.csv").write_text(rows)
    for name in names:
        content, _ = CASES["first exposure to a class"]
        (place / "cohorts" / f"{name}.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("cohort_id,cohort_name\n3,new users\n7,others\n", ["3", "7"]),
        ("cohortId,cohortName\n3,new users\n7,others\n", ["new users", "others"]),
        ("atlas_id,cohort_id,cohort_name\n1003,3,new users\n1007,7,others\n", ["1003", "1007"]),
        ('"cohort_id","cohort_name"\n3.0,"new users"\n7e0,others\n', ["3", "7"]),
    ],
    ids=["by id", "by name", "by the id of ATLAS", "as R writes numbers"],
)
def test_folders_of_cohort_generator(tmp_path, rows, names):
    _folder(tmp_path / "set", rows, names)
    found = read_cohort_definitions(tmp_path / "set")
    assert [(one.id, one.name) for one in found] == [(3, "new users"), (7, "others")]


@pytest.mark.parametrize(
    ("rows", "names", "message"),
    [
        ("cohort_id,cohort_name\n3,a\n", [], "Cohorts.csv, line 2: set has no file cohorts/3.json"),
        ("cohort_id,cohort_name\n3,a\n3,b\n", ["3"], "line 3: the cohort 3 is listed twice"),
        ("cohort_id,cohort_name\nx,a\n", ["3"], "line 2: `cohort_id` must be a whole number above"),
        ("id,cohort_name\n3,a\n", ["3"], "`cohort_id` must be .*, but it is empty or missing"),
        ("cohort_id,cohort_name\n", ["3"], "Cohorts.csv has no rows"),
    ],
)
def test_faulty_folders(tmp_path, rows, names, message):
    _folder(tmp_path / "set", rows, names)
    with pytest.raises(rs.CohortError, match=message):
        read_cohort_definitions(tmp_path / "set")


def test_a_folder_without_a_list(tmp_path):
    with pytest.raises(rs.CohortError, match="has no file Cohorts.csv") as caught:
        read_cohort_definitions(tmp_path)
    assert "cohorts/<id or name>.json" in caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"items": []}, "x.json is not a cohort definition: it has no `PrimaryCriteria`"),
        ([], "x.json is not a cohort definition"),
        ({"expression": "{"}, "a text that is not valid JSON"),
    ],
)
def test_what_is_not_a_definition(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    with pytest.raises(rs.CohortError, match=message) as caught:
        CohortDefinition.from_json(path)
    assert caught.value.code == "BadCohortDefinition"
    path.write_text("{")
    with pytest.raises(rs.CohortError, match="x.json is not valid JSON"):
        CohortDefinition.from_json(path)
    with pytest.raises(rs.CohortError, match="cannot be read: No such file"):
        CohortDefinition.from_json(tmp_path / "absent.json")


@pytest.mark.parametrize(
    "criterion",
    [{"Anything": {"CodesetId": 0}}, {"DrugExposure": 3}, {"DrugExposure": {"Age": "x"}}],
)
def test_what_is_not_understood(cdm, criterion):
    found = CohortDefinition.from_json(definition(criterion), name="odd")
    for ask in (found.check, lambda: found.generate(cdm)):
        with pytest.raises(rs.CohortError, match="definition of 'odd' cannot be read") as caught:
            ask()
        assert caught.value.code == "BadCohortDefinition"
        assert caught.value.details == {"cohort_definition_id": 1}


def test_a_value_that_is_no_number(cdm):
    """What the database says against a definition names the definition."""
    tables = small_tables()
    exposures = tables["drug_exposure"]
    place = exposures.column_names.index("quantity")
    tables["drug_exposure"] = exposures.set_column(place, "quantity", [["many"] * 7])
    content, _ = CASES["a large quantity"]
    found = CohortDefinition.from_json(content, name="large")
    with rs.omop.Cdm(tables) as other:
        for _ in range(2):
            with pytest.raises(
                rs.CohortError, match="definition of 'large' could not be used: .*many"
            ):
                found.generate(other)
        good, expected = CASES["above 40"]
        assert _rows(CohortDefinition.from_json(good).generate(other)) == expected


def test_an_id_twice(cdm):
    content, _ = CASES["above 40"]
    twice = [CohortDefinition.from_json(content, id=4, name=name) for name in "ab"]
    with pytest.raises(rs.CohortError, match="two cohort definitions have the id 4: 'a' and 'b'"):
        generate_cohorts(cdm, twice)


def test_a_cdm_in_a_database(cdm):
    """Of which only the people of an exposure are pulled: an outcome would have no records."""
    server = duckdb.connect()
    for name, table in small_tables().items():
        server.register("given", table)
        server.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        server.unregister("given")
    found = CohortDefinition.from_json(CASES["above 40"][0])
    with rs.omop.Cdm.connect(server, schema="main") as there:
        with pytest.raises(rs.CohortError, match="need the records of everybody") as caught:
            found.generate(there)
        assert caught.value.code == "PartialCdm"
        assert not there.pulled


def test_without_duckcdm(cdm, monkeypatch):
    known = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("duckcdm"):
            raise ImportError(name)
        return known(name, *rest)

    content, _ = CASES["above 40"]
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(rs.MissingDependencyError, match="need the package duckcdm") as caught:
        CohortDefinition.from_json(content).generate(cdm)
    assert "pip install 'riskset[ohdsi]'" in caught.value.hint
