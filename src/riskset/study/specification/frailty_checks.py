"""What a specification with frailties must and cannot have."""

from collections.abc import Iterator

from riskset._settings import INVALID, Fault, KeyPath
from riskset.study.specification.data_sections import CohortMethodFiles
from riskset.study.specification.sections import Analysis, Specification

__all__ = ["faults_of_frailties"]


def faults_of_frailties(specification: Specification) -> Iterator[Fault]:
    """Faults of clusters; parts that are `INVALID` are skipped."""
    if INVALID in (specification.data, specification.analyses):
        return
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
        yield from _of_sets(place, analysis, cluster)


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
