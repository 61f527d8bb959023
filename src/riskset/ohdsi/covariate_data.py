"""Covariates that R's FeatureExtraction has saved."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from riskset._errors import CohortError, MissingDependencyError
from riskset._messages import Note, Value
from riskset._types import Index
from riskset.ohdsi.andromeda import AndromedaFile, FileColumn
from riskset.omop.covariates import Covariates

__all__ = ["CovariateData", "covariates_of"]

ENTRIES = {
    "row_id": FileColumn("rowId", "id"),
    "covariate_id": FileColumn("covariateId", "id"),
    "value": FileColumn("covariateValue", "number"),
}
REF = {
    "covariate_id": FileColumn("covariateId", "id"),
    "name": FileColumn("covariateName", "text", is_optional=True, may_be_null=True),
    "analysis_id": FileColumn("analysisId", "id", is_optional=True, may_be_null=True),
    "concept_id": FileColumn("conceptId", "id", is_optional=True, may_be_null=True),
    "value_as_concept_id": FileColumn("valueAsConceptId", "id", is_optional=True, may_be_null=True),
    "collisions": FileColumn("collisions", "id", is_optional=True, may_be_null=True),
}
ANALYSES = {
    "analysis_id": FileColumn("analysisId", "id"),
    "domain": FileColumn("domainId", "text", is_optional=True, may_be_null=True),
    "start_day": FileColumn("startDay", "id", is_optional=True, may_be_null=True),
    "end_day": FileColumn("endDay", "id", is_optional=True, may_be_null=True),
    "is_binary": FileColumn("isBinary", "text", is_optional=True, may_be_null=True),
    "missing_means_zero": FileColumn(
        "missingMeansZero", "text", is_optional=True, may_be_null=True
    ),
}


class CovariateData:
    """Covariates of people in a file of R's ``saveCovariateData``. It is a context manager.

    Parameters
    ----------
    path : path
        Zip archive with a DuckDB database, or before 2025 a SQLite one.
    row_id : (n,) whole numbers, optional
        Rows of the covariates. Default: the rows with an entry. People without any entry are only
        known by this list, because the file contains entries that are not 0.
    memory_limit, spill_folder
        See `riskset.omop.Cdm`.

    Attributes
    ----------
    covariates : Covariates
        Available while the file is open.
    metadata : mapping
        What R kept with the data, such as ``populationSize``. Empty without the package rdata
        (``pip install 'riskset[ohdsi]'``), with a note.
    notes : tuple of Note

    Raises
    ------
    CohortError
        "BadFile", "MissingTable", "MissingColumn", "DuplicateId", or "AggregatedCovariates" for
        means of groups instead of values of people.

    Examples
    --------
    >>> import riskset as rs
    >>> from riskset.datasets import cohort_method_path
    >>> with rs.ohdsi.CovariateData(cohort_method_path()) as data:
    ...     design = data.covariates.design()
    >>> design.names
    ('age in years', 'gender = FEMALE')
    """

    def __init__(
        self,
        path: str | Path,
        *,
        row_id: object = None,
        memory_limit: str | None = None,
        spill_folder: str | Path | None = None,
    ) -> None:
        self._file = AndromedaFile(path, memory_limit, spill_folder)
        try:
            self.metadata, self.notes = metadata_of(self._file)
            self.covariates = covariates_of(self._file, self._rows(row_id), self.notes)
        except BaseException:
            self.close()
            raise

    def _rows(self, row_id: object) -> Index | None:
        return None if row_id is None else np.asarray(row_id, dtype=np.int64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._file.name}: {self.covariates!r})"


def metadata_of(file: AndromedaFile) -> tuple[Mapping[str, Any], tuple[Note, ...]]:
    """What R kept with the data, and a note if it cannot be read."""
    try:
        found = file.attributes().get("metaData")
    except MissingDependencyError:
        text = (
            "the attributes of {file} were not read, because the package rdata is not installed; "
            "the data do not need them."
        )
        return {}, (Note("no_metadata", (), text, {"file": Value("name", file.name)}),)
    return (found if isinstance(found, Mapping) else {}), ()


def covariates_of(file: AndromedaFile, rows: Index | None, notes: tuple[Note, ...]) -> Covariates:
    """The covariates of a file, for some rows or for all that have an entry."""
    if "covariates" in file.tables and "rowid" not in file.columns("covariates"):
        raise CohortError(
            "AggregatedCovariates",
            f"{file.name} has means of groups instead of the covariates of people.",
            hint="run FeatureExtraction with aggregated = FALSE.",
        )
    entries = file.table("covariates", ENTRIES)
    _check_once(file, entries.view)
    if rows is None:
        found = file.database.sql(f"SELECT DISTINCT row_id FROM {entries.view} ORDER BY 1")
        rows = found.to_arrow_table().column("row_id").to_numpy()
    known = Covariates.from_tables(entries, _reference(file, entries.view), rows)
    settings = {"file": file.name}
    return Covariates(known.ref, known.row_id, entries, notes, settings)


def _check_once(file: AndromedaFile, entries: str) -> None:
    again = f"SELECT row_id, covariate_id FROM {entries} GROUP BY ALL HAVING count(*) > 1"
    n, row, covariate = file.database.row(
        f"SELECT count(*), min(row_id), arg_min(covariate_id, row_id) FROM ({again})"
    )
    if n:
        raise CohortError(
            "DuplicateId",
            f"table covariates of {file.name} has {n:,} values more than once (such as covariate "
            f"{covariate} of row {row}).",
            hint="keep one of them.",
            details={"file": file.name, "count": n},
        )


def _reference(file: AndromedaFile, entries: str) -> Any:
    """A row for each covariate, as `Covariates` has it; those without a name are named by id."""
    ref = file.table("covariateRef", REF).view
    analyses = "(SELECT NULL::BIGINT AS analysis_id, NULL AS domain, NULL AS start_day, "
    analyses += "NULL AS end_day, NULL AS is_binary, NULL AS missing_means_zero WHERE false)"
    if "analysisref" in file.tables:
        analyses = file.table("analysisRef", ANALYSES).view
    return file.database.sql(
        "SELECT covariate_id, CASE WHEN count(*) OVER (PARTITION BY name) > 1 "
        "THEN name || ' [' || covariate_id || ']' ELSE name END AS name, "
        "CAST(analysis_id AS INTEGER) AS analysis_id, concept_id, domain, start_day, end_day, "
        "is_binary, missing_means_zero, "
        "CAST(row_number() OVER (ORDER BY covariate_id) - 1 AS INTEGER) AS column, "
        "value_as_concept_id, collisions FROM (SELECT k.covariate_id, "
        "coalesce(r.name, CAST(k.covariate_id AS VARCHAR)) AS name, "
        "coalesce(r.analysis_id, k.covariate_id % 1000) AS analysis_id, "
        "coalesce(r.concept_id, 0) AS concept_id, lower(coalesce(a.domain, '')) AS domain, "
        "CAST(a.start_day AS INTEGER) AS start_day, CAST(a.end_day AS INTEGER) AS end_day, "
        "coalesce(a.is_binary = 'Y', false) AS is_binary, "
        "coalesce(a.missing_means_zero <> 'N', true) AS missing_means_zero, "
        "coalesce(r.value_as_concept_id, 0) AS value_as_concept_id, "
        "coalesce(r.collisions, 0) AS collisions FROM (SELECT DISTINCT covariate_id FROM "
        f"{entries}) k LEFT JOIN {ref} r USING (covariate_id) LEFT JOIN {analyses} a "
        "ON a.analysis_id = r.analysis_id) ORDER BY covariate_id"
    ).to_arrow_table()
