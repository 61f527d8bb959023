"""Covariates of a study cohort, from records before the index date.

Entries stay in the database, which sorts and spills as needed; only numbers of covariates, never of
entries, pass through Python.
"""

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from riskset._errors import CohortError, counted
from riskset._messages import Note
from riskset._types import AnyArray, Index
from riskset.cohort.adjustments.adjustment import Adjustment
from riskset.cohort.population import Population, check_unique
from riskset.data.database import Database, StoredTable
from riskset.data.design import Design
from riskset.data.long_query import LongColumns
from riskset.data.long_table import long_design
from riskset.omop.cdm import Cdm, check_open
from riskset.omop.covariate_entries import extract
from riskset.omop.covariate_ref import reference
from riskset.omop.covariate_settings import CovariateSettings
from riskset.omop.risk import StudyPopulation
from riskset.omop.settings import plain
from riskset.omop.study_cohort import StudyCohort

__all__ = ["Covariates"]

KEEP_ONCE = "keep each once."

LONG = LongColumns("row_id", "covariate_id", "value")
CovariateRows = StudyCohort | StudyPopulation | Adjustment | Population | object
"""What has row ids, or the row ids themselves."""


@dataclass(frozen=True, eq=False, repr=False)
class Covariates:
    """Covariates of a study cohort in a long table.

    Extracted covariates are in the database of the `Cdm` and available while it is open.

    Attributes
    ----------
    ref : Arrow table
        One row per covariate, sorted by id: ``covariate_id``, ``name``, ``analysis_id``,
        ``concept_id``, ``domain``, ``start_day``, ``end_day``, ``is_binary``,
        ``missing_means_zero``, ``column`` (its position in a design), and for values that are
        concepts ``value_as_concept_id`` and ``collisions`` (the number of pairs with the same id
        that were left out).
    row_id : (n,) int64
        Row ids of the whole cohort.
    notes : tuple of Note
    settings : mapping

    Examples
    --------
    >>> import riskset as rs
    >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
    >>> settings = rs.omop.CovariateSettings(["DemographicsGender"])
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
    ...     cohort = rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
    ...     covariates = rs.omop.Covariates.extract(cdm, cohort, settings)
    ...     design = covariates.design()
    >>> covariates.ref.column("name").to_pylist()
    ['gender = MALE', 'gender = FEMALE']
    >>> design.n_rows == cohort.table.num_rows
    True
    """

    ref: Any
    row_id: Index
    entries: StoredTable | Any = field(repr=False)
    notes: tuple[Note, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    @classmethod
    def extract(
        cls, cdm: Cdm, cohort: StudyCohort, settings: CovariateSettings | None = None
    ) -> "Covariates":
        """Extract the covariates of a study cohort; see `CovariateSettings`.

        Raises
        ------
        CohortError
            "CovariateIdCollision" (two covariates with one id, such as a measurement in two units
            whose numbers differ by 1000), "BadBirthDate", "BadId" (the number of a care site is too
            large), "BadCustomCovariates", and errors of reading tables.

        Examples
        --------
        >>> import riskset as rs
        >>> arms = [rs.omop.ConceptSet(ids) for ids in ([974166, 1395058], [1308216, 1341927])]
        >>> with rs.omop.Cdm(rs.simulate.toy_tables(500)) as cdm:
        ...     cohort = rs.omop.Eligibility().select(cdm, rs.omop.NewUserCohort(*arms).read(cdm))
        ...     covariates = rs.omop.Covariates.extract(cdm, cohort)
        ...     design = covariates.design()
        >>> design.n_rows == cohort.table.num_rows
        True
        >>> [name for name in design.names if name.startswith("gender")]
        ['gender = MALE', 'gender = FEMALE']
        """
        settings = settings or CovariateSettings()
        with cdm.noting() as notes:
            entries = extract(cdm, cohort, settings)
            ref = reference(cdm, entries, settings)
        return cls(
            ref,
            cohort.table.column("row_id").to_numpy(),
            cdm.database.stored(entries.name, ""),
            (*notes.values(), *entries.notes),
            {**cohort.settings, "covariates": plain(settings)},
        )

    @classmethod
    def from_tables(cls, entries: object, ref: object, row_id: object) -> "Covariates":
        """Create covariates from a long table (``row_id, covariate_id, value``) and its `ref`.

        Raises
        ------
        CohortError
            "DuplicateId" if a row or a covariate is repeated.
        """
        with Database() as database:
            view = database.add(ref).view
            known = database.sql(f"SELECT * FROM {view} ORDER BY covariate_id").to_arrow_table()
        rows = np.asarray(row_id, dtype=np.int64)
        check_unique(rows, "`row_id`", KEEP_ONCE)
        check_unique(
            known.column("covariate_id").to_numpy(), "column covariate_id of `ref`", KEEP_ONCE
        )
        return cls(known, rows, entries)

    @contextmanager
    def _stored(self) -> Iterator[StoredTable]:
        if isinstance(self.entries, StoredTable):
            check_open(self.entries.database, "these covariates")
            yield self.entries
        else:
            with Database() as database:
                yield database.add(self.entries)

    @property
    def n_entries(self) -> int:
        """Number of entries of the long table."""
        with self._stored() as stored:
            return stored.n_rows

    @property
    def table(self) -> Any:
        """Return the long table ``row_id, covariate_id, value``, sorted by covariate and row."""
        with self._stored() as stored:
            return stored.database.sql(
                f"SELECT row_id, covariate_id, value FROM {stored.view} "
                "ORDER BY covariate_id, row_id"
            ).to_arrow_table()

    @functools.cached_property
    def ids(self) -> tuple[int, ...]:
        """Ids of the covariates, sorted."""
        return tuple(self.ref.column("covariate_id").to_pylist())

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the covariates, in the order of `ids`."""
        return tuple(self.ref.column("name").to_pylist())

    def design(self, rows: CovariateRows = None) -> Design:
        """Return the covariates as a `Design` with one column per covariate of `ref`.

        Parameters
        ----------
        rows : StudyPopulation, StudyCohort, Adjustment, Population or (n,) row ids, optional
            Rows of the design, in their order. Default: the whole cohort.

        Raises
        ------
        CohortError
            "UnknownRow" if a row is not in this cohort; "DuplicateId" if a row is repeated.
        """
        wanted = self.row_id if rows is None else _row_ids(rows)
        check_unique(wanted, "`rows`", KEEP_ONCE)
        strange = ~np.isin(wanted, self.row_id)
        if strange.any():
            raise CohortError(
                "UnknownRow",
                f"{counted(int(strange.sum()), 'row')} of the population "
                f"{'is' if strange.sum() == 1 else 'are'} not of the cohort of these covariates "
                f"(such as row_id {wanted[strange][0]}).",
                hint="extract covariates from the study cohort that the population comes from.",
                details={"ids": wanted[strange][:3].tolist()},
            )
        with self._stored() as stored:
            long = long_design(stored, LONG, wanted, keys=self.ids, unknown_rows="drop")
        return replace(long.design, names=self.names)

    def __repr__(self) -> str:
        return (
            f"Covariates({counted(len(self.ids), 'covariate')}, "
            f"{counted(self.n_entries, 'entry', 'entries')} of {counted(self.row_id.size, 'row')})"
        )


def _row_ids(rows: object) -> Index:
    if isinstance(rows, StudyCohort | StudyPopulation):
        ids: AnyArray = rows.table.column("row_id").to_numpy()
        return ids.astype(np.int64)
    if isinstance(rows, Adjustment):
        rows = rows.population
    if isinstance(rows, Population):
        return rows.row_id
    return np.asarray(rows, dtype=np.int64)
