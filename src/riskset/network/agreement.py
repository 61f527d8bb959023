"""Whether the sites of a network ran the same study, apart from where their data are."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from riskset._errors import InputError
from riskset.network.sites import Site

__all__ = ["check_agreement"]

WORDS = frozenset({"label", "description"})
"""For readers."""
PLACES = frozenset({"value", "time", "event", "cause", "censored", "prior", "end_reason"})
"""Columns and codes of tables of people: where a site has its exposures and outcomes."""
COMPARED: dict[str, frozenset[str]] = {
    "exposures": WORDS | PLACES,
    "outcomes": WORDS | PLACES,
    "competing_events": WORDS | PLACES,
    "analyses": WORDS,
}
"""Groups of settings that must agree where two sites have an entry of one name, and what of an
entry is a site's own. Comparisons that a site lacks are missing there."""


def check_agreement(sites: Sequence[Site]) -> None:
    """Refuse sites whose settings differ, with their names and the first setting that does."""
    known = [site for site in sites if site.settings]
    # All pairs: the first site may lack an analysis in which two others differ.
    for first, site in combinations(known, 2):
        for path, one, other in _differences(first.settings, site.settings):
            raise InputError(
                f"the sites {first.name!r} and {site.name!r} differ in the setting `{path}`: it is "
                f"{one!r} at {first.name!r} and {other!r} at {site.name!r}.",
                hint="run one specification at every site, apart from where the data are, or leave "
                "a site out.",
            )


def _differences(
    one: Mapping[str, Any], other: Mapping[str, Any]
) -> Iterator[tuple[str, object, object]]:
    for group, own in COMPARED.items():
        left, right = one.get(group) or {}, other.get(group) or {}
        for name in left:
            if name in right:
                yield from _compared(left[name], right[name], f"{group}.{name}", own)
    yield from _compared(one.get("diagnostics"), other.get("diagnostics"), "diagnostics")


def _compared(
    one: object, other: object, path: str, own: frozenset[str] = frozenset()
) -> Iterator[tuple[str, object, object]]:
    """Places where two settings differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in own:
                yield from _compared(one.get(key), other.get(key), f"{path}.{key}")
    elif one != other:
        yield path, one, other
