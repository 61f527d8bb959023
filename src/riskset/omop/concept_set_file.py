"""Files of concept sets, in the forms in which OHDSI's programs write them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeGuard

from riskset._errors import CohortError, similar
from riskset.data.documents import parse_json

__all__ = ["HINT", "WrittenSet", "chosen_set", "written_sets"]

HINT = (
    "ATLAS and WebAPI export such files: `items`, alone or as the `expression` of a named set, a "
    "list of named sets, or a cohort definition with its `ConceptSets`."
)


class WrittenSet(NamedTuple):
    """A concept set as a file has it; `place` says where, for messages."""

    id: object
    name: str
    items: Sequence[object]
    place: str


def chosen_set(source: object, member: int | str | None) -> WrittenSet:
    """The set of a file, or if it has several, the one with this id or name."""
    found, place = written_sets(source)
    if member is None:
        if len(found) == 1:
            return found[0]
        raise CohortError(
            "BadConceptSet",
            f"{place} has {len(found)} concept sets: {_listed(found)}.",
            hint="name one of them with `member`, by its id or name.",
        )
    for one in found:
        if str(member) in (str(one.id), one.name):
            return one
    close = similar(member, [one.name for one in found])
    raise CohortError(
        "BadConceptSet",
        f"{place} has no concept set {member!r}; it has {_listed(found)}.",
        hint=f"did you mean {close[0]!r}?" if close else "give the id or the name of one of them.",
    )


def written_sets(source: object) -> tuple[list[WrittenSet], str]:
    """All sets of a file or of what JSON holds, and what messages call it."""
    place = "the concept set"
    if isinstance(source, str | Path):
        place, source = Path(source).name, _read(Path(source))
    found = list(_sets(source, place, "", None))
    if not found:
        raise CohortError(
            "BadConceptSet", f"{place} is not a concept set: it has no `items`.", hint=HINT
        )
    return found, place


def _sets(source: object, place: str, name: str, id_: object) -> Iterator[WrittenSet]:
    source = _unwrapped(source, place)
    if isinstance(source, Mapping):
        name, id_ = str(source.get("name") or name), source.get("id", id_)
        for key in ("ConceptSets", "conceptSets", "conceptsets"):
            if key in source:
                yield from _each(source[key], f"{place}, {key}")
                return
        if "expression" in source:
            yield from _sets(source["expression"], place, name, id_)
        elif _is_list(source.get("items")):
            yield WrittenSet(id_, name, source["items"], place)
    elif _is_list(source):
        if source and all(isinstance(one, Mapping) and "concept" in one for one in source):
            yield WrittenSet(id_, name, source, place)
        elif any(isinstance(one, Mapping | str) for one in source):
            yield from _each(source, place)


def _each(sources: object, place: str) -> Iterator[WrittenSet]:
    if not _is_list(sources):
        raise CohortError("BadConceptSet", f"{place} must be a list.", hint=HINT)
    for k, one in enumerate(sources, 1):
        found = list(_sets(one, f"{place}, set {k}", "", None))
        if not found:
            raise CohortError("BadConceptSet", f"{place}, set {k}: it has no `items`.", hint=HINT)
        yield from found


def _unwrapped(source: object, place: str) -> object:
    """WebAPI keeps an expression as the text of its JSON."""
    if not isinstance(source, str):
        return source
    try:
        return parse_json(source)
    except ValueError as error:
        raise CohortError(
            "BadConceptSet",
            f"{place}: its `expression` is a text that is not valid JSON: {error}.",
            hint=HINT,
        ) from None


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _listed(found: Sequence[WrittenSet]) -> str:
    shown = [one.name or f"id {one.id}" for one in found[:6]]
    return ", ".join(map(repr, shown)) + (", ..." if len(found) > 6 else "")


def _read(path: Path) -> object:
    try:
        return parse_json(path.read_bytes())
    except OSError as error:
        raise CohortError(
            "BadConceptSet", f"the concept set {str(path)!r} cannot be read: {error.strerror}."
        ) from None
    except ValueError as error:
        raise CohortError(
            "BadConceptSet", f"{path.name} is not valid JSON: {error}.", hint=HINT
        ) from None
