"""The toy CDM, the study on it, and the golden numbers of both."""

import functools
import hashlib

import duckdb

import riskset as rs
from reference import GOLDEN, read_json

EXPECTED = read_json(GOLDEN / "cohort" / "omop" / "expected.json")
SETTINGS = EXPECTED["settings"]
TARGET = rs.omop.ConceptSet(SETTINGS["target"])
COMPARATOR = rs.omop.ConceptSet(SETTINGS["comparator"])
OUTCOME = rs.omop.ConceptSet(SETTINGS["outcome"])
COMPETING = [c if c == "death" else rs.omop.ConceptSet([c]) for c in SETTINGS["competing"]]
ELIGIBILITY = rs.omop.Eligibility(washout_days=SETTINGS["washout"], restrict_to_common_period=False)
AT_RISK = rs.omop.TimeAtRisk(
    risk_start=SETTINGS["risk_start"],
    risk_end=SETTINGS["risk_end"],
    min_days_at_risk=SETTINGS["min_days"],
)
ANALYSES = [
    *(1, 3, 4, 5, 6, 7, 202, 204, 210, 212, 402, 404, 405, 410, 412, 413),
    *(502, 504, 702, 704, 710, 712, 802, 804),
]
"""Those of studies on the toy CDM, whose vocabulary has no groups of conditions."""
REAL = GOLDEN / "omop" / "Synthea27NjParquet_5.4.zip"


@functools.cache
def toy_tables():
    return rs.simulate.toy_tables(EXPECTED["n_persons"])


def write_duckdb(path, n_persons):
    """A file with a toy CDM in the schema `cdm`, and its cohorts 7 and 8 in `results.my_cohorts`.

    They are of the first exposures to the two classes of drugs, for 90 days.
    """
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE SCHEMA cdm; CREATE SCHEMA results")
        for name, table in rs.simulate.toy_tables(n_persons).items():
            connection.register("given", table)
            connection.execute(f"CREATE TABLE cdm.{name} AS SELECT * FROM given")
            connection.unregister("given")
        connection.execute(
            "CREATE TABLE results.My_Cohorts AS SELECT 7 + (concept IN (1308216, 1341927))::INT AS "
            "cohort_definition_id, person_id AS subject_id, start AS cohort_start_date, "
            "start + 90 AS cohort_end_date FROM (SELECT person_id, ancestor_concept_id AS concept, "
            "min(drug_exposure_start_date) AS start FROM cdm.drug_exposure JOIN "
            "cdm.concept_ancestor ON descendant_concept_id = drug_concept_id GROUP BY ALL) "
            "WHERE concept IN (974166, 1395058, 1308216, 1341927)"
        )


@functools.cache
def toy():
    return rs.omop.Cdm(toy_tables())


@functools.cache
def episodes():
    return rs.omop.NewUserCohort(TARGET, COMPARATOR, gap_days=SETTINGS["gap"]).read(toy())


@functools.cache
def cohort():
    return ELIGIBILITY.select(toy(), episodes())


@functools.cache
def population():
    return AT_RISK.follow(toy(), cohort(), OUTCOME, COMPETING)


def rows(table, *columns):
    """Rows of some columns, or of all, as tuples."""
    names = columns or table.column_names
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def checksum(lines):
    """As ``hash_note`` says."""
    text = "\n".join(",".join("" if v is None else str(v) for v in line) for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()


def counts(attrition):
    """Steps of an attrition as the golden file has them."""
    names = ("target_persons", "comparator_persons", "target_exposures", "comparator_exposures")
    return [
        {"step": step.step} | {name: getattr(step, name) for name in names}
        for step in attrition.steps
    ]
