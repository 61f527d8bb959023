"""The roles of the columns of a table of people: a column has one of them."""

from collections.abc import Iterator

from riskset._settings import INVALID, Fault, KeyPath, valid_members
from riskset.study.specification.data_sections import TableData
from riskset.study.specification.exposure_sections import TableStrategy
from riskset.study.specification.outcome_sections import TableOutcome
from riskset.study.specification.sections import Specification

__all__ = ["faults_of_column_roles"]

OF_DATA = ("treatment", "id", "person", "index_date", "sampling_weight", "score")
OF_OUTCOMES = ("time", "event", "prior", "entry")
NO_COVARIATES = {
    *("treatment", "id", "person", "treated_at"),
    *("time", "event", "end_reason", "deviation"),
}
"""Keys of columns that are no covariates: identifiers, treatments and what comes after them."""
IDS = {"data.id", "data.person"}
"""The id of rows may be that of people."""

Uses = dict[str, str]
"""Columns, and the keys of the specification that name them."""


def faults_of_column_roles(specification: Specification) -> Iterator[Fault]:
    """Columns that have two roles; parts that are `INVALID` are skipped."""
    data, uses = specification.data, Uses()
    if not isinstance(data, TableData):
        return
    for role in OF_DATA:
        yield from _faults_of_use(uses, getattr(data, role), ("data", role))
    of_data = dict(uses)
    for name, exposure in valid_members(specification.exposures):
        if isinstance(exposure, TableStrategy):  # several may have one column
            start = ("exposures", name, "treated_at")
            yield from _faults_of_use(dict(of_data), exposure.treated_at, start)
            uses.setdefault(exposure.treated_at, ".".join(start))
    every = dict(uses)
    for name, outcome in valid_members(specification.outcomes):
        if not isinstance(outcome, TableOutcome):
            continue
        of_outcome = dict(uses)
        for key in OF_OUTCOMES:
            yield from _faults_of_use(of_outcome, getattr(outcome, key), ("outcomes", name, key))
        every = {**of_outcome, **every}
        if outcome.end_reason is not None:
            every.setdefault(outcome.end_reason, f"outcomes.{name}.end_reason")
        for own, column in _deviations(specification):
            place = ("analyses", own, "per_protocol", "deviation")
            yield from _faults_of_use(dict(of_outcome), column, place)
    for own, column in _deviations(specification):
        every.setdefault(column, f"analyses.{own}.per_protocol.deviation")
    if data.covariates not in (None, INVALID):
        listed = ("data", "covariates", "columns")
        for column in data.covariates.columns or ():
            other = every.setdefault(column, ".".join(listed))
            if other.rsplit(".", 1)[-1] in NO_COVARIATES:
                message = f"column {column!r} is already used as {other}."
                yield Fault(listed, message, "leave it out.")
    yield from _of_clusters(specification, every)


def _of_clusters(specification: Specification, uses: Uses) -> Iterator[Fault]:
    """People of one person id may share a frailty; a variable hides a column of its name."""
    variables = specification.variables
    for name, analysis in valid_members(specification.analyses):
        if analysis.model in (None, INVALID) or variables is INVALID:
            continue
        cluster = analysis.model.cluster
        if cluster is None or cluster in variables:
            continue
        if uses.get(cluster) != "data.person":
            yield from _faults_of_use(dict(uses), cluster, ("analyses", name, "model", "cluster"))


def _faults_of_use(uses: Uses, column: str | None, path: KeyPath) -> Iterator[Fault]:
    """Enter a use; a fault if the column has another one."""
    if column is None or column is INVALID:
        return
    place = ".".join(path)
    other = uses.setdefault(column, place)
    if other != place and {other, place} != IDS:
        message = f"column {column!r} is already used as {other}."
        yield Fault(path, message, "name another column.")


def _deviations(specification: Specification) -> Iterator[tuple[str, str]]:
    """Analyses, and their columns of deviations."""
    for name, analysis in valid_members(specification.analyses):
        if analysis.protocol not in (None, INVALID) and isinstance(
            analysis.protocol.deviation, str
        ):
            yield name, analysis.protocol.deviation
