"""The toy CDM, the study on it, and the golden numbers of both."""

import functools
import hashlib

import riskset as rs
from reference import GOLDEN, read_json

EXPECTED = read_json(GOLDEN / "cohort" / "omop" / "expected.json")
SETTINGS = EXPECTED["settings"]
TARGET = rs.omop.ConceptSet(SETTINGS["target"])
COMPARATOR = rs.omop.ConceptSet(SETTINGS["comparator"])
OUTCOME = rs.omop.ConceptSet(SETTINGS["outcome"])
COMPETING = [rs.omop.ConceptSet([4329847]), "death"]
ELIGIBILITY = rs.omop.Eligibility(restrict_to_common_period=False)
REAL = GOLDEN / "omop" / "Synthea27NjParquet_5.4.zip"


@functools.cache
def toy_tables():
    return rs.simulate.toy_tables(EXPECTED["n_persons"])


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
    return rs.omop.TimeAtRisk().follow(toy(), cohort(), OUTCOME, COMPETING)


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
