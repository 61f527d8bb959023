"""Populations with outcomes and covariates that R's CohortMethod has saved."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._types import AnyArray, Index
from riskset.cohort.adjustments.adjustment import Step
from riskset.cohort.adjustments.attrition_table import Attrition
from riskset.data.dataset import Dataset
from riskset.data.writers import arrow_table
from riskset.ohdsi.andromeda import AndromedaFile, FileColumn
from riskset.ohdsi.covariate_data import CovariateData
from riskset.omop.cdm import Cdm
from riskset.omop.risk import StudyPopulation, TimeAtRisk
from riskset.omop.study_cohort import StudyCohort

__all__ = ["CohortMethodData"]

COHORTS = {
    "row_id": FileColumn("rowId", "id"),
    "treatment": FileColumn("treatment", "id"),
    "index_date": FileColumn("cohortStartDate", "date"),
    "days_from_obs_start": FileColumn("daysFromObsStart", "id"),
    "days_to_cohort_end": FileColumn("daysToCohortEnd", "id"),
    "days_to_obs_end": FileColumn("daysToObsEnd", "id"),
}
OUTCOMES = {
    "row_id": FileColumn("rowId", "id"),
    "outcome_id": FileColumn("outcomeId", "id"),
    "day": FileColumn("daysToEvent", "id"),
}
PERSONS = ("personSeqId", "subjectId", "personId")
"""What identifies people, in newer and older versions."""

ATTRITION = ("targetPersons", "comparatorPersons", "targetExposures", "comparatorExposures")


class CohortMethodData(CovariateData):
    """Population, outcomes and covariates in a file of R's ``saveCohortMethodData``.

    It is a context manager.

    Parameters
    ----------
    path : path
        Zip archive with a DuckDB database, or before 2025 a SQLite one.
    memory_limit, spill_folder
        See `riskset.omop.Cdm`.

    Attributes
    ----------
    cohort : StudyCohort
        The population, with the attrition that R kept.
    covariates : Covariates
        Available while the file is open.
    outcomes : Arrow table
        ``row_id``, ``outcome_id`` and ``day`` of all outcomes, in days after the index date.
    outcome_ids : tuple of int
        Outcomes that the file was made for, or else those that occur.
    target_id, comparator_id : int or None
        Cohorts of the arms, if R kept them.
    metadata : mapping
        What R kept with the data. Empty without the package rdata
        (``pip install 'riskset[ohdsi]'``), with a note.
    notes : tuple of Note

    Raises
    ------
    CohortError
        "BadFile", "MissingTable", "MissingColumn", "BadTreatment", "BadCohort", "DuplicateId", or
        "UnknownRow" if an outcome is of a row that the population does not have.

    Examples
    --------
    >>> import riskset as rs
    >>> from riskset.datasets import cohort_method_path
    >>> with rs.ohdsi.CohortMethodData(cohort_method_path()) as data:
    ...     population = data.follow(3, rs.omop.TimeAtRisk(risk_end=None))
    ...     design = data.covariates.design(population)
    >>> data.cohort
    StudyCohort(4 targets, 4 comparators)
    >>> population.people
    Adjustment(none: 4 targets, 2 comparators)
    >>> design.names
    ('age in years', 'gender = FEMALE')
    """

    def __init__(
        self,
        path: str | Path,
        *,
        memory_limit: str | None = None,
        spill_folder: str | Path | None = None,
    ) -> None:
        super().__init__(path, memory_limit=memory_limit, spill_folder=spill_folder)

    def _rows(self, row_id: object) -> Index:
        """The rows of the population, which has people without covariates as well."""
        self.cohort = _cohort(self._file, self.metadata)
        rows: Index = self.cohort.table.column("row_id").to_numpy()
        self.outcomes = _outcomes(self._file, rows)
        return rows

    @property
    def target_id(self) -> int | None:
        """Cohort of the target, if R kept it."""
        return self._id("targetId")

    @property
    def comparator_id(self) -> int | None:
        """Cohort of the comparator, if R kept it."""
        return self._id("comparatorId")

    def _id(self, name: str) -> int | None:
        value = self.metadata.get(name)
        return value if isinstance(value, int) else None

    @property
    def outcome_ids(self) -> tuple[int, ...]:
        """Outcomes that the file was made for, or else those that occur."""
        known = self.metadata.get("outcomeIds")
        listed = known if isinstance(known, list) else [known]
        ids = {one for one in listed if isinstance(one, int)}
        return tuple(sorted(ids | set(self.outcomes.column("outcome_id").to_pylist())))

    def events(self, outcome_id: int) -> Any:
        """Return the events of an outcome for `riskset.omop.TimeAtRisk.follow`.

        Raises
        ------
        InputError
            If the file was not made for the outcome.
        """
        if outcome_id not in self.outcome_ids:
            raise InputError.unknown_name(
                "outcome", outcome_id, self.outcome_ids, place=self._file.name
            )
        columns = {n: self.outcomes.column(n).to_numpy() for n in OUTCOMES}
        chosen = columns["outcome_id"] == outcome_id
        rows = self.cohort.table.column("row_id").to_numpy()
        place = np.searchsorted(rows, columns["row_id"][chosen])
        start = _days(self.cohort, "index_date")[place]
        return arrow_table(
            {
                "person_id": self.cohort.table.column("person_id").to_numpy()[place],
                "event_date": start + columns["day"][chosen].astype("timedelta64[D]"),
            }
        )

    def follow(
        self,
        outcome_id: int,
        time_at_risk: TimeAtRisk | None = None,
        *,
        competing: Sequence[int] = (),
        strict: bool = False,
    ) -> StudyPopulation:
        """Follow the population to an outcome.

        The file has no deaths: people are followed until observation ends.

        Parameters
        ----------
        outcome_id : int
        time_at_risk : TimeAtRisk, optional
        competing : sequence of int
            Outcomes that are competing events.
        strict : bool
            Raise an error instead of returning a status other than "ok".

        Raises
        ------
        InputError
            If the file was not made for an outcome.
        CohortError
            With `strict`, a status other than "ok".
        """
        events = self.events(outcome_id)
        others = [self.events(other) for other in competing]
        with Cdm({"death": no_deaths()}) as cdm:
            at_risk = time_at_risk or TimeAtRisk()
            return at_risk.follow(cdm, self.cohort, events, others, strict=strict)

    def dataset(
        self,
        outcome_id: int,
        time_at_risk: TimeAtRisk | None = None,
        *,
        competing: Sequence[int] = (),
        covariates: bool = True,
    ) -> Dataset:
        """Return the followed population as data of a model, such as `riskset.Cox`.

        Parameters
        ----------
        outcome_id, time_at_risk, competing
            See `follow`.
        covariates : bool
            Whether the covariates are columns of the data, too. The first column is the treatment.

        Examples
        --------
        >>> import riskset as rs
        >>> from riskset.datasets import cohort_method_path
        >>> with rs.ohdsi.CohortMethodData(cohort_method_path()) as data:
        ...     frame = data.dataset(3, rs.omop.TimeAtRisk(risk_end=None))
        >>> frame.design.names
        ('treatment', '1002', '8532001')
        >>> frame.labels.text("1002")
        'age in years'
        >>> frame.outcome().n_events
        2
        """
        population = self.follow(outcome_id, time_at_risk, competing=competing)
        outcome = population.outcome
        table = arrow_table(
            {
                "rowId": population.column("row_id"),
                "time": outcome["time"],
                "event": outcome["event"].astype(np.int64),
                "treatment": population.column("treatment").astype(np.float64),
            }
        )
        if not covariates:
            return Dataset.from_frame(table, time="time", event="event", id="rowId")
        known = self.covariates
        labels = {"name": [str(one) for one in known.ids], "label": list(known.names)}
        return Dataset.from_long(
            table,
            known.table,
            time="time",
            event="event",
            id="rowId",
            covariate_columns=("row_id", "covariate_id", "value"),
            unknown_rows="drop",
            covariate_labels=arrow_table({n: np.array(v, np.str_) for n, v in labels.items()}),
        )


def no_deaths() -> Any:
    """Table death of a CDM without any."""
    return arrow_table(
        {"person_id": np.array([], np.int64), "death_date": np.array([], "datetime64[D]")}
    )


def _days(cohort: StudyCohort, name: str) -> AnyArray:
    days: AnyArray = cohort.table.column(name).to_numpy(zero_copy_only=False)
    return days.astype("datetime64[D]")


def _cohort(file: AndromedaFile, metadata: Mapping[str, Any]) -> StudyCohort:
    names = file.columns("cohorts") if "cohorts" in file.tables else ()
    person = next((name for name in PERSONS if name.lower() in names), PERSONS[0])
    table = file.table("cohorts", {"person_id": FileColumn(person, "id"), **COHORTS})
    frame = table.fetch(table.columns)
    cohort = StudyCohort.from_table(frame, keep_row_ids=True)
    steps = [*_kept_steps(metadata.get("attrition")), *cohort.attrition.steps]
    return replace(cohort, attrition=Attrition(tuple(steps)), settings={"file": file.name})


def _kept_steps(attrition: object) -> list[Step]:
    """The steps that R kept, as far as they are complete."""
    if not isinstance(attrition, Mapping):
        return []
    columns = [attrition.get(name) for name in ("description", *ATTRITION)]
    listed = [column if isinstance(column, list) else [column] for column in columns]
    steps: list[Step] = []
    for name, *counts in zip(*listed, strict=False):
        if not isinstance(name, str) or not all(isinstance(n, int) for n in counts):
            return []
        before = steps[-1] if steps else None
        arms = [] if before is None else [before.target_exposures, before.comparator_exposures]
        removed = [was - now for was, now in zip(arms, counts[2:], strict=False)]
        steps.append(Step(name, *counts, *removed))
    return steps


def _outcomes(file: AndromedaFile, rows: Index) -> Any:
    stored = file.table("outcomes", OUTCOMES)
    table = file.database.sql(f"SELECT * FROM {stored.view} ORDER BY ALL").to_arrow_table()
    found = table.column("row_id").to_numpy()
    strange = ~np.isin(found, rows)
    if strange.any():
        raise CohortError(
            "UnknownRow",
            f"table outcomes of {file.name} has the row {found[strange][0]}, which table cohorts "
            "does not have.",
            hint="save the file again.",
            details={"ids": found[strange][:3].tolist()},
        )
    return table
