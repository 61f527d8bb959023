"""A toy OMOP CDM 5.4 for examples and tests, with the same rows in every program.

People with hypertension start an ACE inhibitor or a thiazide; heart failure, myocardial infarction
and death follow. The choice depends on sex, age and three diseases, and the true hazard ratio of
heart failure with a thiazide is exp(-0.35). The data have typical faults of real data: unmapped
codes, a diagnosis before observation, missing ends, custom concepts of at least 2 000 000 000, and
people with two observation periods.

Random numbers do not depend on a generator state; see `Draws`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.data.writers import arrow_table, check_folder, write_table
from riskset.simulate.drawing import as_count
from riskset.simulate.toy_rows import Draws, TableRows, ToyColumns, day, eras, missing, whole
from riskset.simulate.toy_vocabulary import (
    ACE_INHIBITORS,
    CLINICAL_DRUG,
    CONDITIONS,
    HEART_FAILURE,
    INFARCTION,
    MEASUREMENTS,
    NOISE,
    OTHER_DRUGS,
    PROCEDURES,
    THIAZIDES,
    ancestors,
    concepts,
)

__all__ = ["toy_cdm", "toy_tables"]

HYPERTENSION, DIABETES, HYPERLIPIDEMIA, CORONARY = 320128, 201826, 432867, 317576
METFORMIN, ATORVASTATIN = 1503297, 1545958
EHR, PRESCRIPTION = 32817, 32838
INPATIENT, OUTPATIENT = 9201, 9202
FIRST_DAY, LAST_DAY = day("2008-01-01"), day("2019-12-31")
RELEASED = np.array(["2020-01-01"], "datetime64[D]")


def toy_tables(n_persons: int = 2000) -> dict[str, Any]:
    """Return the tables of `toy_cdm` in memory: name -> Arrow table.

    Examples
    --------
    >>> import riskset as rs
    >>> tables = rs.simulate.toy_tables(50)
    >>> tables["person"].num_rows, tables["observation_period"].num_rows
    (50, 52)
    """
    tables = _Toy(as_count("n_persons", n_persons)).tables()
    return {name: arrow_table(columns) for name, columns in tables.items()}


def toy_cdm(
    folder: str | Path, n_persons: int = 2000, *, file_format: Literal["csv", "parquet"] = "csv"
) -> dict[str, int]:
    """Write a toy OMOP CDM 5.4 with known truth, one file per table.

    The rows of a person depend only on the number of the person, so a larger set contains the
    smaller ones.

    Parameters
    ----------
    folder : path
        Created if it does not exist. Files with the same names are replaced.
    n_persons : int
    file_format : {"csv", "parquet"}

    Returns
    -------
    dict
        Number of rows by table.

    Raises
    ------
    InputError
        If the folder is not writable, or the format is unknown.

    Examples
    --------
    >>> import tempfile
    >>> import riskset as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = rs.simulate.toy_cdm(folder, 50)
    ...     with rs.omop.Cdm(folder) as cdm:
    ...         print(cdm)
    Cdm(50 persons, version 5.4, 13 tables)
    >>> rows["person"]
    50
    """
    if file_format not in ("csv", "parquet"):
        raise InputError.wrong_option("file_format", file_format, ("csv", "parquet"))
    place = Path(folder)
    check_folder(place)
    tables = _Toy(as_count("n_persons", n_persons)).tables()
    place.mkdir(parents=True, exist_ok=True)
    for name, columns in tables.items():
        write_table(place / f"{name}.{file_format}", columns)
    return {name: next(iter(columns.values())).size for name, columns in tables.items()}


class _Toy:
    """The people, and the tables as they fill up; arrays have an element for each person."""

    def __init__(self, n_persons: int) -> None:
        self.person = np.arange(1, n_persons + 1)
        self.draw = Draws(self.person)
        self.periods = TableRows("observation_period", self.person)
        self.conditions = TableRows("condition_occurrence", self.person)
        self.drugs = TableRows("drug_exposure", self.person)
        self.procedures = TableRows("procedure_occurrence", self.person)
        self.measurements = TableRows("measurement", self.person)
        self.visits = TableRows("visit_occurrence", self.person)
        self.everybody = np.ones(n_persons, dtype=bool)

    def tables(self) -> dict[str, ToyColumns]:
        """All of them; the order of the steps is the order of a person's rows."""
        draw = self.draw
        self.male = draw("sex") < 0.48
        self.born = 1930 + whole(draw("by") * 60)
        self.start = FIRST_DAY + whole(draw("os") * 2000)
        self.end = np.minimum(LAST_DAY, self.start + 400 + whole(draw("ol") * 3000))
        year = self.start.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1970
        self.age = year - self.born
        self._conditions()
        self._visits()
        for drug, _ in OTHER_DRUGS:
            self._other_drug(drug)
        thiazide, index = self._arms()
        died, death = self._events(thiazide, index)
        self._periods(np.where(died, death, LAST_DAY * 2))
        occurrences, exposures = self.conditions.columns(), self.drugs.columns()
        return {
            "person": self._people(),
            "observation_period": self.periods.columns(),
            "condition_occurrence": occurrences,
            "condition_era": eras(
                "condition",
                occurrences["person_id"],
                occurrences["condition_concept_id"],
                occurrences["condition_start_date"],
                occurrences["condition_end_date"],
            ),
            "drug_exposure": exposures,
            "drug_era": _drug_eras(exposures),
            "procedure_occurrence": self.procedures.columns(),
            "measurement": self.measurements.columns(),
            "visit_occurrence": self.visits.columns(),
            "death": {
                "person_id": self.person[died],
                "death_date": death[died].astype("datetime64[D]"),
                "death_type_concept_id": np.full(int(died.sum()), EHR),
                "cause_concept_id": missing(int(died.sum()), np.int64),
            },
            "concept": concepts(),
            "concept_ancestor": ancestors(),
            "cdm_source": _source(),
        }

    def _people(self) -> ToyColumns:
        draw, person = self.draw, self.person
        race = np.array([8527, 8516, 8515, 0])
        sex = np.where(self.male, 8507, 8532)
        month, day_of_month = (1 + whole(draw(key) * n) for key, n in (("bm", 12), ("bd", 28)))
        return {
            "person_id": person,
            "gender_concept_id": np.where(person % 200 == 0, 0, sex),
            "year_of_birth": self.born,
            "month_of_birth": np.ma.masked_array(month, person % 40 == 0),
            "day_of_birth": np.ma.masked_array(day_of_month, person % 10 == 0),
            "birth_datetime": missing(person.size, "datetime64[s]"),
            "race_concept_id": race[np.minimum(3, whole(-np.log(1 - draw("race")) * 1.1))],
            "ethnicity_concept_id": np.where(draw("eth") < 0.88, 38003564, 38003563),
        }

    def _conditions(self) -> None:
        """Diseases that depend on age, rare ones that do not, and two kinds of faulty rows."""
        draw, start = self.draw, self.start
        self.has: dict[int, NDArray[np.bool_]] = {}
        for concept, _, level, by_age in CONDITIONS:
            more = np.where(self.male & (concept in (CORONARY, 433736)), 0.3, 0.0)
            chance = expit(level + by_age * (self.age - 60) + more)
            has = self.has[concept] = draw(f"c{concept}") < chance
            times = 1 + whole(draw(f"cn{concept}") * 4)
            for k in range(4):
                key = f"{concept}.{k}"
                began = start + whole(draw(f"cd{key}") * 500)
                ended = began + whole(draw(f"cl{key}") * 90)
                self._condition(has & (k < times), concept, began, ended, draw(f"ce{key}") < 0.3)
        for concept, _ in NOISE:
            began = start + whole(draw(f"nd{concept}") * 900)
            has = draw(f"n{concept}") < 0.02 + 0.0015 * (concept % 40)
            self._condition(has, concept, began, began + 7)
        self._condition(self.person % 50 == 0, 0, start + 10)
        self._condition(self.person % 77 == 0, HYPERLIPIDEMIA, start - 30)

    def _condition(
        self,
        who: NDArray[np.bool_],
        concept: int,
        began: Index,
        ended: Index | None = None,
        open_ended: NDArray[np.bool_] | bool = False,
    ) -> None:
        """Without an end it is missing."""
        self.conditions.add(
            who,
            condition_concept_id=concept,
            condition_start_date=began,
            condition_end_date=np.ma.masked_array(
                began if ended is None else ended,
                np.broadcast_to(ended is None or open_ended, began.shape),
            ),
            condition_type_concept_id=EHR,
        )

    def _visits(self) -> None:
        draw = self.draw
        number = whole(draw("nv") * 12)
        observed = np.maximum(1, self.end - self.start)
        for k in range(11):
            who, inpatient = k < number, draw(f"vi{k}") < 0.08
            on = self.start + whole(draw(f"v{k}") * observed)
            stay = np.where(inpatient, whole(draw(f"vl{k}") * 6), 0)
            self._visit(who, np.where(inpatient, INPATIENT, OUTPATIENT), on, on + stay)
            procedure = np.array([concept for concept, _ in PROCEDURES])
            self.procedures.add(
                who & (draw(f"pr{k}") < 0.5),
                procedure_concept_id=procedure[whole(draw(f"pc{k}") * 3)],
                procedure_date=on,
                procedure_type_concept_id=EHR,
            )
            for m, (concept, _, unit, low, high) in enumerate(MEASUREMENTS):
                key = f"{k}.{m}"
                self.measurements.add(
                    who & (draw(f"m{key}") < 0.4),
                    measurement_concept_id=concept,
                    measurement_date=on,
                    value_as_number=np.ma.masked_array(
                        np.round(self._value(m, key), 3), draw(f"mn{key}") < 0.05
                    ),
                    unit_concept_id=unit,
                    range_low=low,
                    range_high=high,
                    measurement_type_concept_id=EHR,
                )

    def _visit(self, who: NDArray[np.bool_], concept: Index | int, on: Index, until: Index) -> None:
        self.visits.add(
            who,
            visit_concept_id=concept,
            visit_start_date=on,
            visit_end_date=until,
            visit_type_concept_id=EHR,
        )

    def _value(self, m: int, key: str) -> Rows:
        """Systolic blood pressure, creatinine or hemoglobin A1c."""
        u = self.draw(f"mv{key}")
        if m == 0:
            return 125 + 18 * self.has[HYPERTENSION] + 30 * (u - 0.5)
        if m == 1:
            return 0.5 + u
        return 5 + 2.5 * self.has[DIABETES] * u + self.draw(f"mw{key}")

    # ---------------------------------------------------------------- drugs

    def _other_drug(self, drug: int) -> None:
        draw = self.draw
        chance: AnyArray | float = 0.2
        if drug == METFORMIN:
            chance = 0.05 + 0.6 * self.has[DIABETES]
        elif drug == ATORVASTATIN:
            chance = 0.1 + 0.45 * self.has[HYPERLIPIDEMIA]
        first = self.start + whole(draw(f"ds{drug}") * 700)
        fills = 1 + whole(draw(f"df{drug}") * 6)
        self._supply(draw(f"d{drug}") < chance, CLINICAL_DRUG[drug], first, fills)

    def _supply(
        self,
        who: NDArray[np.bool_],
        drug: Index | int,
        first: Index,
        fills: Index | int,
        gap: int = 0,
    ) -> Index:
        """Fills of 30 days one after the other; the last day of each person's supply."""
        filled = np.zeros(self.person.size, np.int64)
        fills = np.where(who, fills, 0)
        for k in range(int(fills.max(initial=0))):
            on = first + k * (30 + gap)
            now = (k < fills) & (on <= LAST_DAY)
            self.drugs.add(
                now,
                drug_concept_id=drug,
                drug_exposure_start_date=on,
                drug_exposure_end_date=np.ma.masked_array(on + 29, (self.person + k) % 9 == 0),
                days_supply=30,
                drug_type_concept_id=PRESCRIPTION,
            )
            filled += now
        return first + filled * (30 + gap) - 1

    def _arms(self) -> tuple[NDArray[np.bool_], tuple[NDArray[np.bool_], Index]]:
        """Who starts a thiazide; who starts anything, and when."""
        draw = self.draw
        score = -0.8 + 0.8 * ~self.male - 1.1 * self.has[DIABETES]
        score = score - 0.5 * self.has[HYPERLIPIDEMIA] - 0.5 * self.has[CORONARY]
        treated = self.has[HYPERTENSION] & (draw("treated") < 0.85)
        thiazide = treated & (draw("arm") < expit(score - 0.01 * (self.age - 60)))
        index = self.start + 150 + whole(draw("ix") * 700)
        fills = 1 + whole(-np.log(1 - draw("fills")) * 9)
        clinical = np.array(
            [[CLINICAL_DRUG[drug] for drug, _ in arm] for arm in (ACE_INHIBITORS, THIAZIDES)]
        )
        arm_of, other_arm = thiazide.astype(np.int64), 1 - thiazide.astype(np.int64)
        drug = clinical[arm_of, (draw("ing") < 0.25).astype(np.int64)]
        end = self._supply(treated, drug, index, fills, gap=2)
        second = index + 20 + whole(draw("s2") * 400)
        self._supply(treated & (draw("second") < 0.08), clinical[other_arm, 0], second, 3)
        self._supply(treated & (draw("same") < 0.015), clinical[other_arm, 0], index, 2)
        self._supply(treated & (draw("restart") < 0.1), drug, end + 200, 2)
        return thiazide, (treated, index)

    # ---------------------------------------------------------------- what happens later

    def _events(
        self, thiazide: NDArray[np.bool_], index: tuple[NDArray[np.bool_], Index]
    ) -> tuple[NDArray[np.bool_], Index]:
        """Heart failure, infarction and death from exponential times; who died, and when."""
        zero = np.where(index[0], index[1], self.start + 300)
        risk = 0.5 * self.has[DIABETES] + 0.035 * (self.age - 60) + 0.7 * self.has[CORONARY]
        risk = risk + 0.2 * self.male
        failure = 4e-4 * np.exp(risk - np.where(thiazide, 0.35, 0))
        infarction = 1.5e-4 * np.exp(0.8 * risk)
        death = zero + self._wait("death", 8e-5 * np.exp(0.07 * (self.age - 60) + 0.3 * risk))
        for concept, key, rate in ((HEART_FAILURE, "hf", failure), (INFARCTION, "mi", infarction)):
            on = zero + self._wait(key, rate)
            who = on <= np.minimum(self.end, death)
            self._condition(who, concept, on, on + 4)
            self._visit(who, INPATIENT, on, on + 4)
        self._condition(self.draw("priorhf") < 0.03, HEART_FAILURE, self.start + 5)
        return death <= self.end, death

    def _wait(self, key: str, rate: Rows) -> Index:
        return 1 + whole(np.minimum(-np.log(1 - self.draw(key)) / rate, 20000))

    def _periods(self, death: Index) -> None:
        """Death ends the last one, but not before it begins."""
        twice = self.person % 25 == 0
        middle = self.start + (self.end - self.start) // 2
        last_start = np.where(twice, middle + 60, self.start)
        last_end = np.where(twice, np.maximum(self.end, middle + 61), self.end)
        last_end = np.minimum(last_end, np.maximum(last_start, death))
        for who, first, last in (
            (twice, self.start, middle),
            (self.everybody, last_start, last_end),
        ):
            self.periods.add(
                who,
                observation_period_start_date=first,
                observation_period_end_date=last,
                period_type_concept_id=EHR,
            )


def _drug_eras(exposures: Mapping[str, AnyArray]) -> ToyColumns:
    """Eras of the ingredients; the end of the supply replaces a missing end."""
    ingredients = {clinical: ingredient for ingredient, clinical in CLINICAL_DRUG.items()}
    drug = np.array([ingredients[clinical] for clinical in exposures["drug_concept_id"].tolist()])
    start, end = exposures["drug_exposure_start_date"], exposures["drug_exposure_end_date"]
    supply = start + exposures["days_supply"] - 1
    end = np.ma.masked_array(np.where(np.ma.getmaskarray(end), supply, end))
    columns = eras("drug", exposures["person_id"], drug, start, end)
    return columns | {"gap_days": np.zeros(columns["person_id"].size, np.int64)}


def _source() -> ToyColumns:
    unknown = missing(1, object)
    return {
        "cdm_source_name": np.array(["Toy CDM"]),
        "cdm_source_abbreviation": np.array(["TOY"]),
        "cdm_holder": np.array(["riskset tests"]),
        "source_description": np.array(["deterministic"]),
        "source_documentation_reference": unknown,
        "cdm_etl_reference": unknown,
        "source_release_date": RELEASED,
        "cdm_release_date": RELEASED,
        "cdm_version": np.array(["v5.4"]),
        "cdm_version_concept_id": np.array([756265]),
        "vocabulary_version": np.array(["toy"]),
    }
