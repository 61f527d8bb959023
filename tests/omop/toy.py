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
