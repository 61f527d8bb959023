"""Covariates over time of a table of people: the long table of measurements, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from riskset._errors import InputError, counted
from riskset._time_units import DAYS_IN, TimeUnit
from riskset._types import AnyArray, Index, Rows
from riskset.data.cohort_table import CohortTableFile, columns_of, read_columns
from riskset.data.design import Design
from riskset.study.sources.source import Measurements
from riskset.study.specification.data_sections import CovariatesOverTime
from riskset.study.specification.study_definition import Study
from riskset.study.specification.validation import file_fault, name_fault

__all__ = ["HistoryTable"]

PLACE = ("data", "covariates_over_time")


@dataclass(frozen=True, eq=False)
class HistoryTable:
    """Measurements of rows of the table of people, at days of the follow-up (k,)."""

    names: tuple[str, ...]
    name: Index
    row: Index
    time: Rows
    value: Rows
    _study: Study

    @classmethod
    def check(cls, study: Study, section: CovariatesOverTime) -> None:
        """Refuse a file that does not exist, or has not the columns."""
        path = study.folder / section.table
        if not path.exists():
            study.refuse([file_fault((*PLACE, "table"), path)])
        known = columns_of(CohortTableFile(path))[0]
        study.refuse(
            name_fault((*PLACE, "columns", str(k)), "column", name, known, path.name)
            for k, name in enumerate(section.columns)
            if name not in known
        )

    @classmethod
    def read(
        cls, study: Study, section: CovariatesOverTime, ids: AnyArray, unit: TimeUnit
    ) -> "HistoryTable":
        """The measurements of people with given ids; raises `InputError` if some are not valid."""
        cls.check(study, section)
        path = study.folder / section.table
        id_, time, covariate, value = section.columns
        kinds = {id_: "key", time: "time", covariate: "label", value: "number"}
        columns = read_columns(CohortTableFile(path), kinds)  # type: ignore[arg-type]
        row = _places(study, columns[id_], ids, id_, path.name)
        names, code = np.unique(columns[covariate].astype(np.str_), return_inverse=True)
        found = cls(
            tuple(names.tolist()),
            code.reshape(-1),
            row,
            columns[time].astype(np.float64) * DAYS_IN[unit],
            columns[value].astype(np.float64),
            study,
        )
        found._refuse_contradictions(path.name, ids)
        return found

    def of_rows(self, rows: Index, baseline: Design) -> Mapping[str, Measurements]:
        """Measurements of some rows of the table of people, numbered 0, 1, ... in their order.

        People without a measurement at the start have a covariate of the same name at baseline.
        """
        order = np.argsort(rows, kind="stable")
        first, last = (np.searchsorted(rows[order], self.row, side) for side in ("left", "right"))
        found = {}
        for k, name in enumerate(self.names):
            own = np.flatnonzero((self.name == k) & (first < last))
            times = last[own] - first[own]  # a row of the table may be listed several times
            own = np.repeat(own, times)
            turn = np.arange(own.size) - np.repeat(np.cumsum(times) - times, times)
            row = order[first[own] + turn]
            found[name] = Measurements(row, self.time[own], self.value[own])
            if name not in baseline.names:
                self._refuse_gaps(name, found[name], rows)
        return found

    def _refuse_gaps(self, name: str, found: Measurements, rows: Index) -> None:
        has_first = np.zeros(rows.size, dtype=bool)
        has_first[found.row[found.time <= 0]] = True
        n = np.unique(rows[~has_first]).size
        if n:
            error = InputError(
                f"{counted(n, 'person has', 'people have')} no value of {name!r} at the start of "
                "the follow-up (time 0 or before).",
                hint=f"add measurements, or a covariate {name!r} to the table of people, whose "
                "values count until the first measurement.",
            )
            raise self._study.error(*PLACE, error=error)

    def _refuse_contradictions(self, file: str, ids: AnyArray) -> None:
        """Two values of one covariate of a person at one time."""
        order = np.lexsort((self.value, self.time, self.row, self.name))
        columns = (self.name, self.row, self.time)
        same = np.logical_and.reduce([c[order][1:] == c[order][:-1] for c in columns])
        bad = np.flatnonzero(same & (self.value[order][1:] != self.value[order][:-1]))
        if bad.size:
            k = order[bad[0]]
            error = InputError(
                f"{file} has different values of one covariate at the same time "
                f"({counted(bad.size, 'pair')}; first: {self.names[self.name[k]]!r} of "
                f"{ids[self.row[k]]}).",
                hint="keep one of them.",
            )
            raise self._study.error(*PLACE, error=error)


def _places(study: Study, given: AnyArray, ids: AnyArray, column: str, file: str) -> Index:
    """Rows of the table of people to which ids lead."""
    is_text = given.dtype.kind not in "iu"
    if is_text != (ids.dtype.kind not in "iu"):
        given, ids = given.astype(np.str_), ids.astype(np.str_)
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], given), max(ids.size - 1, 0))
    row: Index = order[at]
    unknown = ids[row] != given
    if unknown.any():
        k = int(np.argmax(unknown))
        error = InputError(
            f"column {column!r} of {file} has {counted(int(unknown.sum()), 'row')} whose id is not "
            f"in the table of people (first: data row {k + 1:,}, {given[k]}).",
            hint="leave these rows out, or correct the ids.",
        )
        raise study.error(*PLACE, error=error)
    return row
