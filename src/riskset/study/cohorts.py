"""The people of a comparison, their covariates, and what became of them, from a plain table."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.adjustment import Adjustment, restrict, start
from riskset.cohort.population import Population
from riskset.data.design import Design
from riskset.data.people_file import (
    ColumnKind,
    PeopleFile,
    columns_of,
    covariates_of,
    read_columns,
)
from riskset.study.specification import Comparison, Outcome, Study
from riskset.study.steps import Steps, digest, fingerprint

__all__ = ["Cohort", "Followed", "TableSource"]


@dataclass(frozen=True, eq=False)
class Cohort:
    """The people of a comparison.

    Attributes
    ----------
    key : str
        What it depends on.
    people : Adjustment
        Nobody left out yet; with the steps that made it, and scores if they were given.
    design : Design
        Covariates.
    labels : mapping of str to (n,) labels
        Columns to match or stratify within, and of subgroups.
    years : (n,) int64 or None
        Calendar year of the index date.
    analyses : mapping of covariate key to (analysis id, domain)
        How covariates were made, where that is known.
    problem : (status, reason) or None
        Why it cannot be studied.
    """

    key: str
    people: Adjustment
    design: Design
    labels: Mapping[str, AnyArray] = field(default_factory=dict)
    years: Index | None = None
    analyses: Mapping[int | str, tuple[int, str]] = field(default_factory=dict)
    problem: tuple[str, str] | None = None


@dataclass(frozen=True, eq=False)
class Followed:
    """What became of the people of a cohort, for one outcome.

    Attributes
    ----------
    key : str
        What it depends on.
    people : Adjustment
        Those who are followed.
    time : (n,) float64
        Days at risk; 1 for those who are not followed.
    status : (n,) int64
        0 = censored, 1 = outcome, 2 = competing event.
    reasons : (n,) text or None
        Why follow-up ended.
    """

    key: str
    people: Adjustment
    time: Rows
    status: Index
    reasons: AnyArray | None = None

    @property
    def people_key(self) -> str:
        """The same for outcomes that leave the same people."""
        return hashlib.sha256(self.people.kept.tobytes()).hexdigest()[:24]


class TableSource:
    """A table with one row for each exposure, and covariates in it or beside it.

    Parameters
    ----------
    study : Study
    steps : Steps
        Keeps the covariates.

    Attributes
    ----------
    sources : list of dict
        ``name``, ``fingerprint`` and ``rows`` of the files, for the results.
    notes : tuple of (code, columns, message)

    Raises
    ------
    InputError
        If a file or a column is absent, with the line of the specification; or data are bad.
    """

    def __init__(self, study: Study, steps: Steps) -> None:
        self._study, data = study, study.specification.data
        self._file = PeopleFile(study.folder / data.people, data.table, data.id)
        names = columns_of(self._file)
        wanted = self._wanted(names)
        prints = [fingerprint(self._file.path)]
        long = None if data.covariates.table is None else study.folder / data.covariates.table
        if long is not None:
            if not long.exists():
                raise study.fault(
                    "data", "covariates", "table", message=f"there is no file {str(long)!r}."
                )
            prints.append(fingerprint(long))
        self._columns = read_columns(self._file, wanted)
        covariates = self._covariates(names, set(wanted))
        self._key = digest("read", prints, study.settings["data"])
        self.design, self.notes = covariates_of(
            self._file,
            covariates,
            long,
            steps.path("covariates", f"{digest(self._key, covariates)}.rsd"),
            duplicates=data.covariates.duplicates,
            unknown_rows=data.covariates.unknown_rows,
        )
        files = [self._file.path, *([] if long is None else [long])]
        self.sources: list[dict[str, object]] = [
            {"name": path.name, "fingerprint": own, "rows": self.design.n_rows if k == 0 else None}
            for k, (path, own) in enumerate(zip(files, prints, strict=True))
        ]
        self._cohort: tuple[Comparison, Cohort] | None = None

    def cohort(self, comparison: Comparison) -> Cohort:
        """The people of a comparison; the last one is remembered."""
        if self._cohort is None or self._cohort[0] != comparison:
            self._cohort = (comparison, self._select(comparison))
        return self._cohort[1]

    def follow(self, comparison: Comparison, outcome: Outcome) -> Followed:
        """What became of them."""
        cohort, rows = self.cohort(comparison), self._rows(comparison)
        time = np.asarray(self._columns[outcome.time][rows], dtype=np.float64)
        status = np.asarray(self._columns[outcome.event][rows], dtype=np.int64)
        people = cohort.people
        if outcome.prior is not None:
            had = np.asarray(self._columns[outcome.prior][rows], dtype=np.float64) != 0
            people = restrict(people, ~had, "no prior outcome")
        reasons = None
        if outcome.end_reason is not None:
            reasons = self._columns[outcome.end_reason][rows].astype(np.str_)
        columns = (outcome.time, outcome.event, outcome.prior, outcome.end_reason)
        return Followed(digest(cohort.key, columns), people, time, status, reasons)

    def _rows(self, comparison: Comparison) -> Index:
        target, comparator = (self._is(name) for name in (comparison.target, comparison.comparator))
        return np.flatnonzero(target | comparator)

    def _is(self, exposure: str) -> AnyArray:
        values = self._columns[self._study.specification.data.treatment]
        wanted = self._study.specification.exposures[exposure].value
        if values.dtype.kind == "b":
            values = values.astype(np.int64)
            wanted = {"true": "1", "false": "0"}.get(wanted.lower(), wanted)
        codes, place = np.unique(values, return_inverse=True)
        return np.isin(place, np.flatnonzero(codes.astype(np.str_) == wanted))

    def _select(self, comparison: Comparison) -> Cohort:
        data = self._study.specification.data
        rows = self._rows(comparison)
        treatment = self._is(comparison.target)[rows].astype(np.int64)
        row_id = person = None
        if data.id is not None and self._columns[data.id].dtype.kind in "iu":
            row_id = self._columns[data.id][rows]
        if data.person is not None:
            person = np.unique(self._columns[data.person], return_inverse=True)[1][rows]
        score = None if data.score is None else self._columns[data.score][rows]
        population = Population(treatment, score, row_id=row_id, person_id=person)
        whole = rows.size == self.design.n_rows
        used = {*self._within(), *self._subgroups()}
        years = None if data.index_date is None else self._columns[data.index_date][rows]
        return Cohort(
            digest(self._key, comparison.target, comparison.comparator, self._values(comparison)),
            start(population),
            self.design if whole else self.design.take_rows(rows),
            {name: self._columns[name][rows] for name in used},
            years,
            problem=self._problem(comparison, treatment),
        )

    def _values(self, comparison: Comparison) -> list[str]:
        known = self._study.specification.exposures
        return [known[name].value for name in (comparison.target, comparison.comparator)]

    def _problem(self, comparison: Comparison, treatment: Index) -> tuple[str, str] | None:
        absent = [
            f"{name!r} ({value})"
            for name, value, there in zip(
                (comparison.target, comparison.comparator),
                self._values(comparison),
                (treatment.any(), (treatment == 0).any()),
                strict=True,
            )
            if not there
        ]
        if not absent:
            return None
        column = self._study.specification.data.treatment
        found = np.unique(self._columns[column])[:8].astype(np.str_).tolist()
        reason = (
            f"nobody in the column {column!r} has {' and '.join(absent)}; its values are "
            f"{', '.join(found)}."
        )
        return ("one_arm_empty" if len(absent) == 1 else "empty"), reason

    def _within(self) -> list[str]:
        used = []
        for analysis in self._study.specification.analyses.values():
            for way in (analysis.match, analysis.stratify):
                used += [] if way is None else list(way.within)
        return used

    def _subgroups(self) -> list[str]:
        return [own.column for own in self._study.specification.subgroups.values()]

    def _wanted(self, names: tuple[str, ...]) -> dict[str, ColumnKind]:
        """The columns with a meaning, and how each is read; complains of those that are absent."""
        own = self._study.specification
        data = own.data
        found: dict[str, ColumnKind] = {}

        def need(name: str | None, kind: ColumnKind, *path: str) -> None:
            if name is None:
                return
            if name not in names:
                raise self._unknown(*path, name=name, names=names)
            found[name] = kind

        for name, outcome in own.outcomes.items():
            path = ("outcomes", name)
            need(outcome.time, "number", *path, "time")
            need(outcome.event, "number", *path, "event")
            need(outcome.prior, "number", *path, "prior")
            need(outcome.end_reason, "label", *path, "end_reason")
        for name, analysis in own.analyses.items():
            for word, way in (("match", analysis.match), ("stratify", analysis.stratify)):
                for column in () if way is None else way.within:
                    need(column, "label", "analyses", name, word, "within")
        for name, subgroup in own.subgroups.items():
            need(subgroup.column, "label", "subgroups", name, "column")
        need(data.score, "number", "data", "score")
        need(data.index_date, "year", "data", "index_date")
        need(data.person, "key", "data", "person")
        need(data.id, "key", "data", "id")
        need(data.treatment, "label", "data", "treatment")
        return found

    def _unknown(self, *path: str, name: str, names: tuple[str, ...]) -> InputError:
        place = self._file.path.name
        return self._study.unknown(*path, what="column", name=name, known=names, place=place)

    def _covariates(self, names: tuple[str, ...], used: set[str]) -> tuple[str, ...]:
        """Columns that are covariates; those of blocks and subgroups stay so, too."""
        own = self._study.specification.data.covariates
        for word, given in (("columns", own.columns or ()), ("drop", own.drop)):
            for name in given:
                if name not in names:
                    path = ("data", "covariates", word)
                    raise self._unknown(*path, name=name, names=names)
        if own.columns is not None:
            return own.columns
        if own.table is not None:
            return ()
        roles = used - {*self._within(), *self._subgroups()}
        left = tuple(n for n in names if n not in roles and n not in own.drop)
        if not left:
            raise self._study.fault(
                "data",
                "covariates",
                message=f"{self._file.path.name} has no column left for a covariate.",
                hint="name a long table by `table`, or some columns by `columns`.",
            )
        return left
