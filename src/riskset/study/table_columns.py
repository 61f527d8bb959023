"""Which columns of a table of people a study uses, and for what; faults have their line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from riskset._errors import InputError
from riskset._settings import Fault
from riskset.data.cohort_table import CohortTableFile, ColumnKind, columns_of
from riskset.study.sections import YEAR, TableData, TableOutcome
from riskset.study.specification import Study
from riskset.study.validation import name_fault

__all__ = ["TableColumns"]


@dataclass(frozen=True)
class TableColumns:
    """The columns that a study uses.

    `long` is the file of the long table of covariates, or of a design. The columns in `wanted` have
    a meaning, and those in `numbers` are split by variables; these may be covariates, too.
    """

    file: CohortTableFile
    long: Path | None
    wanted: dict[str, ColumnKind]
    covariates: tuple[str, ...]
    numbers: tuple[str, ...]

    @classmethod
    def find(cls, study: Study) -> "TableColumns":
        """The columns that the specification names; raises `InputError` if one is absent."""
        data = study.specification.data
        assert isinstance(data, TableData)
        file = CohortTableFile(study.folder / data.people, data.table, data.id)
        faults = []
        if not file.path.exists():
            faults.append(study.no_file("data", "people", file=file.path))
        long = None
        if data.covariates.table is not None:
            long = study.folder / data.covariates.table
            path = ("data", "covariates", "table")
            if not long.exists():
                faults.append(study.no_file(*path, file=long))
            if data.id is None:
                message = "a long table needs the key `id`, the column that identifies rows."
                faults.append(Fault(path, message))
        study.refuse(faults)
        try:
            columns, index = columns_of(file)
        except InputError as error:
            raise study.placed(error, "data", "people") from None
        roles = _Roles(study, data, file.path.name, columns)
        wanted = roles.wanted()
        covariates = roles.covariates({*wanted, *index})
        study.refuse(roles.faults)
        return cls(file, long, wanted, covariates, tuple(roles.numbers))


class _Roles:
    """What each column is for."""

    def __init__(self, study: Study, data: TableData, place: str, names: Sequence[str]) -> None:
        self._study, self._data, self._place, self._names = study, data, place, names
        self._wanted: dict[str, ColumnKind] = {}
        self.labels: list[str] = []
        self.numbers: list[str] = []
        self.faults: list[Fault] = []

    def wanted(self) -> dict[str, ColumnKind]:
        """The columns with a meaning, and how each is read."""
        asked, data = self._study.specification, self._data
        for name, outcome in asked.outcomes.items():
            assert isinstance(outcome, TableOutcome)
            for key in ("time", "event", "prior"):
                self._need(getattr(outcome, key), "number", "outcomes", name, key)
            self._need(outcome.end_reason, "label", "outcomes", name, "end_reason")
        for name, place in asked.column_uses():
            if name not in asked.variables:
                self._label(name, *place)
        for name, variable in asked.variables.items():
            place = ("variables", name, "column")
            if variable.column is not None and not variable.borders:
                self._label(variable.column, *place)
            elif variable.column is not None and not self._is_year(variable.column):
                self._check(variable.column, *place)
                self.numbers.append(variable.column)
        self._check_uses()
        self._need(data.score, "number", "data", "score")
        self._need(data.index_date, "year", "data", "index_date")
        self._need(data.person, "key", "data", "person")
        self._need(data.id, "key", "data", "id")
        self._need(data.treatment, "label", "data", "treatment")
        return self._wanted

    def covariates(self, used: set[str]) -> tuple[str, ...]:
        """Columns that are covariates."""
        section = self._data.covariates
        for word, given in (("columns", section.columns or ()), ("drop", section.drop)):
            for name in given:
                self._check(name, "data", "covariates", word)
        if section.columns is not None:
            return section.columns
        if section.table is not None:
            return ()
        roles = used - {*self.labels, *self.numbers}
        left = tuple(n for n in self._names if n not in roles and n not in section.drop)
        if not left:
            message = f"{self._place} has no column left for a covariate."
            hint = "give the file of a long table as `table`, or list columns under `columns`."
            self.faults.append(Fault(("data", "covariates"), message, hint))
        return left

    def _check_uses(self) -> None:
        """A column has one role, except that the id of rows may be that of people."""
        data = self._data
        uses: dict[str | None, str] = {}
        for role in ("treatment", "id", "person", "index_date", "score"):
            self._check_use(uses, getattr(data, role), "data", role)
        for name, outcome in self._study.specification.outcomes.items():
            of_outcome = dict(uses)
            for key in ("time", "event", "prior"):
                self._check_use(of_outcome, getattr(outcome, key), "outcomes", name, key)

    def _check_use(self, uses: dict[str | None, str], column: str | None, *path: str) -> None:
        place = ".".join(path)
        other = uses.setdefault(column, place)
        if column is not None and other != place and {other, place} != {"data.id", "data.person"}:
            message = f"column {column!r} is already used as {other}."
            self.faults.append(Fault(path, message, "name another column."))

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
