"""Concept sets: drugs, diseases, or anything else that has codes in a CDM."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._settings import setting, settings
from riskset.omop.cdm import Cdm
from riskset.omop.concept_set_file import HINT, chosen_set
from riskset.omop.scratch import Scratch

__all__ = ["ConceptItem", "ConceptSet"]

VALID = "upper(trim({}.invalid_reason)) NOT IN ('D', 'U')"
"""D: deleted, U: replaced by another one. Valid rows have no reason, or a blank."""


@settings
class ConceptItem:
    """A concept of a concept set, with its own flags.

    Examples
    --------
    >>> import riskset as rs
    >>> item = rs.omop.ConceptItem(1395058, descendants=False)
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(20)) as cdm:
    ...     rs.omop.ConceptSet([item]).ids(cdm)
    (1395058,)
    """

    concept: int = setting("the id of the concept")
    descendants: bool = setting("whether to include valid descendants of the concept", True)
    exclude: bool = setting(
        "whether to exclude the concepts from the set, in any order of items", False
    )
    mapped: bool = setting(
        "whether to include codes of other vocabularies that are mapped to the concepts", False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "concept", _id("concept", self.concept))


@dataclass(frozen=True, init=False)
class ConceptSet:
    r"""A set of concepts, by default with their descendants.

    Parameters
    ----------
    concepts : whole numbers > 0, or ConceptItem
        Concept 0, a code without a concept, is not valid. A `ConceptItem` has its own flags, which
        `descendants` does not change.
    descendants : bool
        Whether to include the descendants from ``concept_ancestor``.
    exclude : whole numbers
        Concepts to exclude; with `descendants`, including their descendants.
    name : str
        Name for reports.

    Attributes
    ----------
    items : tuple of ConceptItem
    name : str

    Raises
    ------
    CohortError
        "BadConcept". When the set is used: "EmptyConceptAncestor" if descendants are requested but
        ``concept_ancestor`` is empty, or "MissingTable" if mapped codes are requested without
        ``concept_relationship``.

    Notes
    -----
    Let I be the items that include concepts, and E the items that exclude concepts. The set is

    .. math:: \bigcup_{i \in I} S(i) \setminus \bigcup_{i \in E} S(i),

    where S(i) contains the concept and, by the flags of the item, its valid descendants and the
    codes mapped to them. This is the rule of OHDSI's concept sets.

    Examples
    --------
    >>> import riskset as rs
    >>> thiazides = rs.omop.ConceptSet([974166, 1395058], name="thiazides")
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(20)) as cdm:
    ...     thiazides.ids(cdm)
    (974166, 1395058, 2000000002, 2000000003)
    >>> item = rs.omop.ConceptItem(1395058, descendants=False)
    >>> with rs.omop.Cdm(rs.simulate.toy_tables(20)) as cdm:
    ...     rs.omop.ConceptSet([974166, item]).ids(cdm)
    (974166, 1395058, 2000000002)
    """

    items: tuple[ConceptItem, ...]
    name: str

    def __init__(
        self,
        concepts: Iterable[int | ConceptItem],
        *,
        descendants: bool = True,
        exclude: Iterable[int] = (),
        name: str = "",
    ) -> None:
        given = [
            one
            if isinstance(one, ConceptItem)
            else ConceptItem(_id("concepts", one), bool(descendants))
            for one in _listed(concepts)
        ]
        given += [
            ConceptItem(_id("exclude", one), bool(descendants), exclude=True)
            for one in _listed(exclude)
        ]
        object.__setattr__(self, "items", tuple(given))
        object.__setattr__(self, "name", name)

    @classmethod
    def from_json(
        cls, source: str | Path | object, *, name: str = "", member: int | str | None = None
    ) -> "ConceptSet":
        """Read a concept set from a file of ATLAS, WebAPI or another program of OHDSI.

        Parameters
        ----------
        source : path, or what JSON holds
            ``{"items": [{"concept": {"CONCEPT_ID": ...}, "isExcluded": ..., "includeDescendants":
            ..., "includeMapped": ...}]}``, alone, as the ``expression`` of a named set, in a list
            of named sets, or in the ``ConceptSets`` of a cohort definition. A missing flag is
            false.
        name : str
            Name for reports. Default: the name in the file.
        member : int or str, optional
            Id or name of the set, if the file has several.

        Raises
        ------
        CohortError
            "BadConceptSet".

        Examples
        --------
        >>> import riskset as rs
        >>> item = {"concept": {"CONCEPT_ID": 192671}, "includeDescendants": True}
        >>> rs.omop.ConceptSet.from_json({"items": [item]}).items
        (ConceptItem(concept=192671, descendants=True, exclude=False, mapped=False),)
        >>> several = [{"id": 0, "name": "bleeding", "expression": {"items": [item]}}]
        >>> rs.omop.ConceptSet.from_json(several, member="bleeding").name
        'bleeding'
        """
        written = chosen_set(source, member)
        items = [_item(one, f"{written.place}, item {k}") for k, one in enumerate(written.items, 1)]
        return cls(items, name=name or written.name)

    @property
    def concepts(self) -> tuple[int, ...]:
        """Ids of the included items."""
        return tuple(item.concept for item in self.items if not item.exclude)

    @property
    def exclude(self) -> tuple[int, ...]:
        """Ids of the excluded items."""
        return tuple(item.concept for item in self.items if item.exclude)

    def ids(self, cdm: Cdm) -> tuple[int, ...]:
        """Return all concepts of the set, sorted."""
        with cdm.scratch() as work:
            table = self.stage(cdm, work)
            return tuple(c for (c,) in work.rows(f"SELECT concept_id FROM {table} ORDER BY 1"))

    def announce(self, cdm: Cdm) -> None:
        """Say that questions are about these concepts."""
        for flag in (False, True):
            listed = [item.concept for item in self.items if item.descendants == flag]
            cdm.about_concepts(listed, descendants=flag)

    def stage(self, cdm: Cdm, work: Scratch) -> str:
        """The set as a temporary table with one column, ``concept_id``."""
        self.announce(cdm)
        kept = _expanded(cdm, work, [item for item in self.items if not item.exclude])
        out = [item for item in self.items if item.exclude]
        if not out:
            return kept
        excluded = _expanded(cdm, work, out)
        return work.keep(f"SELECT concept_id FROM {kept} EXCEPT SELECT concept_id FROM {excluded}")


def _expanded(cdm: Cdm, work: Scratch, items: Sequence[ConceptItem]) -> str:
    """Concepts that items stand for, whether they include or exclude."""
    rows = sorted({(i.concept, i.descendants, i.mapped) for i in items})
    columns = "concept_id, descendants, mapped"
    listed = work.values(columns, rows, ["BIGINT", "BOOLEAN", "BOOLEAN"])
    chosen = f"SELECT concept_id, mapped FROM {listed}"
    if any(item.descendants for item in items):
        chosen += f" UNION {_descendants(cdm, work, listed, items)}"
    expanded = work.keep(chosen)
    query = f"SELECT DISTINCT concept_id FROM {expanded}"
    if any(item.mapped for item in items):
        relations = cdm.view(
            "concept_relationship",
            ("concept_id_1", "concept_id_2", "relationship_id"),
            ("invalid_reason",),
        )
        query += (
            f" UNION SELECT r.concept_id_1 FROM {relations} r JOIN {expanded} o "
            "ON o.concept_id = r.concept_id_2 WHERE o.mapped AND r.relationship_id = 'Maps to' "
            f"AND r.concept_id_1 <> 0 AND coalesce({VALID.format('r')}, true)"
        )
    return work.keep(query)


def _descendants(cdm: Cdm, work: Scratch, listed: str, items: Sequence[ConceptItem]) -> str:
    """Query of the valid descendants of some items, and whether codes mapped to them count."""
    ancestors = cdm.view(
        "concept_ancestor", ("ancestor_concept_id", "descendant_concept_id"), needed=False
    )
    if not cdm.has_rows("concept_ancestor"):
        asked = [item.concept for item in items if item.descendants]
        raise CohortError(
            "EmptyConceptAncestor",
            f"the descendants of {', '.join(map(str, asked[:3]))}"
            f"{', ...' if len(asked) > 3 else ''} were asked for, but table concept_ancestor of "
            f"{cdm.source} is {'empty' if 'concept_ancestor' in cdm.tables else 'missing'}.",
            hint="list every concept that occurs in the data and pass `descendants=False`; for "
            "drugs the relationship 'RxNorm has ing' of concept_relationship leads to "
            "ingredients.",
            details={"concepts": tuple(asked)},
        )
    query = (
        f"SELECT a.descendant_concept_id AS concept_id, o.mapped FROM {ancestors} a JOIN {listed} "
        "o ON o.concept_id = a.ancestor_concept_id WHERE o.descendants "
        "AND a.descendant_concept_id <> 0"
    )
    if "concept" not in cdm.tables:
        return query
    known = cdm.view("concept", ("concept_id",), ("invalid_reason",))
    return (
        f"SELECT d.* FROM ({query}) d ANTI JOIN (SELECT concept_id FROM {known} k "
        f"WHERE NOT {VALID.format('k')}) invalid USING (concept_id)"
    )


def _item(given: object, place: str) -> ConceptItem:
    """An item of a concept set of ATLAS."""
    concept = given.get("concept") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(concept, Mapping):
        raise CohortError("BadConceptSet", f"{place}: it has no `concept`.", hint=HINT)
    # Programs write CONCEPT_ID, conceptId or concept_id, and large numbers as text.
    known = {str(key).replace("_", "").upper(): value for key, value in concept.items()}
    if "CONCEPTID" not in known:
        raise CohortError("BadConceptSet", f"{place}: its concept has no CONCEPT_ID.", hint=HINT)
    flags = {}
    for key in ("includeDescendants", "isExcluded", "includeMapped"):
        flags[key] = given.get(key) or False
        if not isinstance(flags[key], bool):
            raise CohortError(
                "BadConceptSet",
                f"{place}: {key} must be true or false, but it is {flags[key]!r}.",
                hint=HINT,
            )
    number = known["CONCEPTID"]
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number)
    return ConceptItem(
        _id(f"{place}, CONCEPT_ID", number),
        descendants=flags["includeDescendants"],
        exclude=flags["isExcluded"],
        mapped=flags["includeMapped"],
    )


def _listed(concepts: object) -> Sequence[object]:
    if isinstance(concepts, int | np.integer | ConceptItem):
        return [concepts]
    if isinstance(concepts, str) or not isinstance(concepts, Iterable):
        raise InputError(
            f"concepts must be a list of concept ids, but this is {concepts!r}.",
            hint="for example [974166, 1395058].",
        )
    return list(concepts)


def _id(name: str, concept: object) -> int:
    whole = isinstance(concept, int | np.integer) and not isinstance(concept, bool)
    if not whole or not 0 < int(concept) < 2**63:  # type: ignore[call-overload]
        raise CohortError(
            "BadConcept",
            f"`{name}` must be concept ids, whole numbers above 0, but one is {concept!r}.",
            hint="concept 0 means that a code has no concept, so nothing can be chosen by it.",
            details={"concept": concept},
        )
    return int(concept)  # type: ignore[call-overload,no-any-return]
