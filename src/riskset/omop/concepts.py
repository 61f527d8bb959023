"""Sets of concepts: drugs, diseases, or anything else that a CDM has codes for."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from riskset._errors import CohortError
from riskset.omop.cdm import Cdm, Scratch

__all__ = ["ConceptSet"]


@dataclass(frozen=True, init=False)
class ConceptSet:
    """Standard concepts of a CDM, with those that descend from them.

    Parameters
    ----------
    concepts : whole numbers > 0
        Concept 0, which stands for a code without a concept, is never one.
    descendants : bool
        Whether the descendants by ``concept_ancestor`` belong to the set.
    exclude : whole numbers
        Concepts that do not belong to it, nor, with `descendants`, their descendants.
    name : str
        For reports.

    Raises
    ------
    CohortError
        "BadConcept"; and when the set is used, "EmptyConceptAncestor", if descendants are asked for
        but the CDM does not know any.

    Examples
    --------
    >>> import riskset as rs
    >>> thiazides = rs.omop.ConceptSet([974166, 1395058], name="thiazides")
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(20)) as cdm:
    ...     thiazides.ids(cdm)
    (974166, 1395058, 2000000002, 2000000003)
    """

    concepts: tuple[int, ...]
    descendants: bool
    exclude: tuple[int, ...]
    name: str

    def __init__(
        self,
        concepts: Iterable[int],
        *,
        descendants: bool = True,
        exclude: Iterable[int] = (),
        name: str = "",
    ) -> None:
        for attribute, value in (
            ("concepts", _ids("concepts", concepts)),
            ("descendants", bool(descendants)),
            ("exclude", _ids("exclude", exclude)),
            ("name", name),
        ):
            object.__setattr__(self, attribute, value)

    def ids(self, cdm: Cdm) -> tuple[int, ...]:
        """All concepts of the set, sorted."""
        with cdm.scratch() as work:
            table = self.stage(cdm, work)
            return tuple(c for (c,) in work.rows(f"SELECT concept_id FROM {table} ORDER BY 1"))

    def stage(self, cdm: Cdm, work: Scratch) -> str:
        """The set as a temporary table with one column, ``concept_id``."""
        own = _expanded(cdm, work, self.concepts, self.descendants)
        if not self.exclude:
            return own
        out = _expanded(cdm, work, self.exclude, self.descendants)
        return work.keep(f"SELECT concept_id FROM {own} EXCEPT SELECT concept_id FROM {out}")


def _expanded(cdm: Cdm, work: Scratch, concepts: tuple[int, ...], descendants: bool) -> str:
    own = work.values("concept_id", [(c,) for c in sorted(set(concepts))], ["BIGINT"])
    if not descendants or not concepts:
        return own
    columns = ("ancestor_concept_id", "descendant_concept_id")
    ancestors = cdm.view("concept_ancestor", columns, needed=False)
    if not work.row(f"SELECT count(*) FROM (SELECT 1 FROM {ancestors} LIMIT 1)")[0]:
        raise CohortError(
            "EmptyConceptAncestor",
            f"the descendants of {', '.join(map(str, concepts[:3]))}"
            f"{', ...' if len(concepts) > 3 else ''} were asked for, but table concept_ancestor of "
            f"{cdm.source} is {'empty' if 'concept_ancestor' in cdm.tables else 'missing'}.",
            hint="list every concept that occurs in the data and pass descendants=False; for drugs "
            "the relationship 'RxNorm has ing' of concept_relationship leads to ingredients.",
            details={"concepts": concepts},
        )
    return work.keep(
        f"SELECT concept_id FROM {own} UNION SELECT a.descendant_concept_id FROM {ancestors} a "
        f"JOIN {own} o ON o.concept_id = a.ancestor_concept_id WHERE a.descendant_concept_id <> 0"
    )


def _ids(name: str, concepts: Iterable[int]) -> tuple[int, ...]:
    given = [concepts] if isinstance(concepts, int | np.integer) else list(concepts)
    for concept in given:
        whole = isinstance(concept, int | np.integer) and not isinstance(concept, bool)
        if not whole or not 0 < int(concept) < 2**63:
            raise CohortError(
                "BadConcept",
                f"`{name}` must be concept ids, whole numbers above 0, but one is {concept!r}.",
                hint="concept 0 means that a code has no concept, so nothing can be chosen by it.",
                details={"concept": concept},
            )
    return tuple(int(concept) for concept in given)
