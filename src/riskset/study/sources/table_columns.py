"""The columns of a table of people that a study uses, and what each of them is for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from riskset._errors import InputError
from riskset._settings import Fault
from riskset.data.cohort_table import CohortTableFile, ColumnKind, columns_of
from riskset.study.sources.source import label_file
from riskset.study.sources.table_histories import HistoryTable
from riskset.study.specification.data_sections import TableData
from riskset.study.specification.exposure_sections import TableStrategy
from riskset.study.specification.outcome_sections import TableOutcome
from riskset.study.specification.sections import YEAR
from riskset.study.specification.study_definition import Study
from riskset.study.specification.validation import file_fault, name_fault

__all__ = ["TableColumns"]


@dataclass(frozen=True)
class TableColumns:
    """The columns that a study uses.

    `long` is the file of the long table of covariates, or of a design, `labels` that of the labels,
    and `histories` that of the covariates over time. The columns in `wanted` have a meaning, and
    those in `numbers` are split by variables; these may be covariates, too.
    """

    file: CohortTableFile
    long: Path | None
    wanted: dict[str, ColumnKind]
    covariates: tuple[str, ...]
    numbers: tuple[str, ...]
    labels: Path | None = None
    histories: Path | None = None

    @classmethod
    def find(cls, study: Study) -> "TableColumns":
        """The columns that the specification names; raises `InputError` if one is absent."""
        data = study.specification.data
        assert isinstance(data, TableData)
        file = CohortTableFile(study.folder / data.people, data.table, data.id)
        faults = []
        if not file.path.exists():
            faults.append(file_fault(("data", "people"), file.path))
        long = None
        if data.covariates.table is None and data.covariates.covariate_columns is not None:
            message = "`covariate_columns` names the columns of a long table, but there is none."
            hint = "give its file as `table`, or leave covariate_columns out."
            faults.append(Fault(("data", "covariates", "covariate_columns"), message, hint))
        if data.covariates.table is not None:
            long = study.folder / data.covariates.table
            path = ("data", "covariates", "table")
            if not long.exists():
                faults.append(file_fault(path, long))
            if data.id is None:
                message = "a long table needs the key `id`, the column that identifies rows."
                faults.append(Fault(path, message))
        histories = None
        if data.covariates_over_time is not None:
            histories = study.folder / data.covariates_over_time.table
            if not histories.exists():
                faults.append(file_fault(("data", "covariates_over_time", "table"), histories))
        labels, more = label_file(study)
        study.refuse([*faults, *more])
        try:
            columns, index = columns_of(file)
        except InputError as error:
            raise study.error("data", "people", error=error) from None
        roles = _Roles(study, data, file.path.name, columns)
        wanted = roles.wanted()
        covariates = roles.covariates({*wanted, *index})
        study.refuse(roles.faults)
        if data.covariates_over_time is not None:
            HistoryTable.check(study, data.covariates_over_time)
        return cls(file, long, wanted, covariates, tuple(roles.numbers), labels, histories)


class _Roles:
    """What each column is for."""

    def __init__(self, study: Study, data: TableData, place: str, names: Sequence[str]) -> None:
        self._study, self._data, self._place, self._names = study, data, place, names
        self._wanted: dict[str, ColumnKind] = {}
        self.labels: list[str] = []
        self.numbers: list[str] = []
        self.clusters: set[str] = set()
        self.faults: list[Fault] = []

    def wanted(self) -> dict[str, ColumnKind]:
        """The columns with a meaning, and how each is read."""
        asked, data = self._study.specification, self._data
        for name, outcome in asked.outcomes.items():
            assert isinstance(outcome, TableOutcome)
            for key in ("time", "entry"):
                self._need(getattr(outcome, key), "time", "outcomes", name, key)
            self._need(outcome.prior, "number", "outcomes", name, "prior")
            self._need(outcome.event, "event", "outcomes", name, "event")
            self._need(outcome.end_reason, "label", "outcomes", name, "end_reason")
        for name, place in asked.column_uses():
            if name not in asked.variables:
                self._label(name, *place)
                self.clusters |= {name} if place[-1] == "cluster" else set()
        for name, variable in asked.variables.items():
            place = ("variables", name, "column")
            if variable.column is not None and not variable.borders:
                self._label(variable.column, *place)
            elif variable.column is not None and not self._is_year(variable.column):
                self._check(variable.column, *place)
                self.numbers.append(variable.column)
        for name, analysis in asked.analyses.items():
            if analysis.protocol is not None:
                place = ("analyses", name, "per_protocol", "deviation")
                self._need(analysis.protocol.deviation, "optional number", *place)
        for name, exposure in asked.exposures.items():
            if isinstance(exposure, TableStrategy):
                start = ("exposures", name, "treated_at")
                self._need(exposure.treated_at, "optional number", *start)
        self._need(data.sampling_weight, "number", "data", "sampling_weight")
        self._need(data.score, "number", "data", "score")
        self._need(data.index_date, "year", "data", "index_date")
        self._need(data.person, "key", "data", "person")
        self._need(data.id, "key", "data", "id")
        self._need(data.treatment, "label", "data", "treatment")
        return self._wanted

    def covariates(self, used: set[str]) -> tuple[str, ...]:
        """Columns that are covariates."""
        section = self._data.covariates
        lists = {
            "columns": section.columns or (),
            "drop": section.drop,
            "reference": tuple(section.reference),
        }
        for word, given in lists.items():
            for name in given:
                self._check(name, "data", "covariates", word)
        if section.columns is not None:
            return section.columns
        if section.table is not None:
            return ()
        roles = used - ({*self.labels, *self.numbers} - self.clusters)
        left = tuple(n for n in self._names if n not in roles and n not in section.drop)
        if not left:
            message = f"{self._place} has no column left for a covariate."
            hint = "give the file of a long table as `table`, or list columns under `columns`."
            self.faults.append(Fault(("data", "covariates"), message, hint))
        return left

    def _label(self, name: str, *path: str) -> None:
        if not self._is_year(name):
            self._need(name, "label", *path)
            self.labels.append(name)

    def _is_year(self, name: str) -> bool:
        """Whether it is the year of the start, and no column."""
        return name == YEAR and name not in self._names and self._data.index_date is not None

    def _need(self, name: str | None, kind: ColumnKind, *path: str) -> None:
        if name is not None:
            self._check(name, *path)
            self._wanted[name] = kind

    def _check(self, name: str, *path: str) -> None:
        if name not in self._names:
            known = self._names
            if path[0] not in ("data", "outcomes"):
                known = (*self._study.specification.variables, *known)
            self.faults.append(name_fault(path, "column", name, known, self._place))
