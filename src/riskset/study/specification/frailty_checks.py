"""What a specification with frailties must and cannot have."""

from collections.abc import Iterator

from riskset._settings import INVALID, Fault, KeyPath
from riskset.study.specification.data_sections import CohortMethodFiles, TableData
from riskset.study.specification.outcome_sections import TableOutcome
from riskset.study.specification.sections import Analysis, Specification

__all__ = ["faults_of_frailties"]

ROLES = ("treatment", "id", "index_date", "sampling_weight", "score")
ROLES_OF_OUTCOMES = ("time", "event", "prior", "entry", "end_reason")


def faults_of_frailties(specification: Specification) -> Iterator[Fault]:
    """Faults of clusters; parts that are `INVALID` are skipped."""
    if INVALID in (specification.data, specification.analyses, specification.variables):
        return
    uses = dict(_uses(specification))
    for name, analysis in specification.analyses.items():
        if analysis is INVALID or analysis.model in (None, INVALID):
            continue
        cluster, place = analysis.model.cluster, ("analyses", name, "model", "cluster")
        if cluster is None:
            continue
        if isinstance(specification.data, CohortMethodFiles):
            message = "files of CohortMethod do not say which people belong together."
            hint = "leave `frailty` and `cluster` out, or use a table of people or a CDM."
            yield Fault(place, message, hint)
        elif cluster in uses and cluster not in specification.variables:
            message = f"column {cluster!r} is already used as {uses[cluster]}."
            yield Fault(place, message, "name another column.")
        yield from _of_sets(place, analysis, cluster)


def _uses(specification: Specification) -> Iterator[tuple[str, str]]:
    """Columns of a table that cannot be clusters, and their uses."""
    data, outcomes = specification.data, specification.outcomes
    if not isinstance(data, TableData):
        return
    for role in ROLES:
        if getattr(data, role) is not None:
            yield getattr(data, role), f"data.{role}"
    if data.covariates not in (None, INVALID):
        for column in data.covariates.columns or ():
            yield column, "data.covariates.columns"
    for name, outcome in {} if outcomes is INVALID else outcomes.items():
        if isinstance(outcome, TableOutcome):
            for role in ROLES_OF_OUTCOMES:
                if getattr(outcome, role) is not None:
                    yield getattr(outcome, role), f"outcomes.{name}.{role}"


def _of_sets(place: KeyPath, analysis: Analysis, cluster: str) -> Iterator[Fault]:
    """The people of a set must not all be of one cluster."""
    if analysis.model.reading not in ("auto", "stratified"):
        return
    for way in ("match", "coarsen", "stratify"):
        section = getattr(analysis, way)
        if section not in (None, INVALID) and cluster in section.within:
            message = (
                f"`{way}` makes sets within {cluster!r}, so the frailty of a cluster is part of "
                "the baseline hazards of its sets."
            )
            hint = f"leave `frailty` and `cluster` out, or do not {way} within {cluster!r}."
            yield Fault(place, message, hint)
