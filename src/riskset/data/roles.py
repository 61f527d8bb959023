"""Which column of a table is the time, which the event, and so on; all others are covariates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from riskset._errors import InputError

__all__ = ["Roles"]

SINGLE = ("time", "event", "entry", "weight", "offset", "cluster", "censoring_group", "id")
NUMERIC = ("time", "event", "entry", "weight", "offset")

# OHDSI's names for the columns of a table of patients. They count only in a table that has a
# rowId: elsewhere a column called "weights" is a covariate like any other.
OHDSI = {
    "id": ("rowid", "row_id"),
    "event": ("y",),
    "strata": ("stratumid", "stratum_id"),
    "weight": ("weights",),
}
OUTCOME = {"time": ("time",), "event": ("event",)}


@dataclass(frozen=True)
class Roles:
    """Names of the columns with a meaning of their own.

    Attributes
    ----------
    time, event, entry, weight, offset, cluster, censoring_group, id : str or None
    strata : tuple of str
        Their combinations are the strata.
    drop : tuple of str
        Columns that are not used.
    recognised : tuple of str
        Roles that were found by their OHDSI names and not named by the caller.
    """

    time: str | None = None
    event: str | None = None
    entry: str | None = None
    weight: str | None = None
    offset: str | None = None
    cluster: str | None = None
    censoring_group: str | None = None
    id: str | None = None
    strata: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    recognised: tuple[str, ...] = ()

    @classmethod
    def find(
        cls,
        columns: Sequence[str],
        place: str,
        *,
        strata: str | Sequence[str] | None = None,
        drop: str | Sequence[str] = (),
        **named: str | None,
    ) -> "Roles":
        """Check the columns named by the caller, and recognise OHDSI's names for the others.

        Raises
        ------
        InputError
            If a column named is absent or named twice, or time or event are not to be found.
        """
        strata = _listed("strata", strata)
        drop = _listed("drop", drop)
        used: dict[str, tuple[str, ...]] = {"strata": strata, "drop": drop}
        used |= {role: (name,) for role, name in named.items() if name is not None}
        used = {role: names for role, names in used.items() if names}
        for role, names in used.items():
            for name in names:
                if name not in columns:
                    raise InputError.unknown_name(f"`{role}` column", name, columns, place=place)
        _check_distinct(used)
        found = _recognised(columns, used)
        single = {role: named.get(role) or found.get(role) for role in SINGLE}
        roles = cls(
            time=single["time"],
            event=single["event"],
            entry=single["entry"],
            weight=single["weight"],
            offset=single["offset"],
            cluster=single["cluster"],
            censoring_group=single["censoring_group"],
            id=single["id"],
            strata=strata or ((found["strata"],) if "strata" in found else ()),
            drop=drop,
            recognised=tuple(role for role in found if role not in ("time", "event")),
        )
        for role, what in (("time", "the end of follow-up"), ("event", "the event")):
            if getattr(roles, role) is None:
                raise InputError(
                    f"it is not clear which column of {place} holds {what}; it has "
                    f"{', '.join(map(repr, columns[:12]))}{', ...' if columns[12:] else ''}.",
                    hint=f"name it with `{role}`.",
                )
        return roles

    @property
    def labels(self) -> tuple[str, ...]:
        """Columns of identifiers and group labels."""
        names = (self.id, self.cluster, self.censoring_group, *self.strata)
        return tuple(name for name in names if name is not None)

    def covariates(self, columns: Sequence[str]) -> tuple[str, ...]:
        """All columns without a role."""
        used = {getattr(self, role) for role in SINGLE} | {*self.strata, *self.drop}
        return tuple(name for name in columns if name not in used)

    def to_dict(self) -> dict[str, object]:
        """The roles as JSON can hold them."""
        state: dict[str, object] = {role: getattr(self, role) for role in SINGLE}
        return state | {"strata": list(self.strata), "drop": list(self.drop)}

    @classmethod
    def from_dict(cls, state: Mapping[str, object]) -> "Roles":
        """The inverse of `to_dict`."""
        roles = cls(strata=_strings(state["strata"]), drop=_strings(state["drop"]))
        return replace(roles, **{role: state.get(role) for role in SINGLE})  # type: ignore[arg-type]


def _strings(value: object) -> tuple[str, ...]:
    assert isinstance(value, Iterable)
    return tuple(map(str, value))


def _listed(role: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None or isinstance(names, str):
        return () if names is None else (names,)
    try:
        listed = tuple(names)
    except TypeError:
        raise InputError(
            f"`{role}` must be the name of a column or several of them, but it is {names!r}.",
            hint=f"for example {role}='site' or {role}=['site', 'sex'].",
        ) from None
    again = next((name for k, name in enumerate(listed) if name in listed[:k]), None)
    if role == "strata" and again is not None:
        raise InputError(f"`strata` names column {again!r} twice.", hint="name it once.")
    return listed


def _check_distinct(used: Mapping[str, tuple[str, ...]]) -> None:
    """One column may be id and cluster, or cluster and stratum, but not time and event."""
    taken: dict[str, str] = {}
    for role, names in used.items():
        if role not in (*NUMERIC, "drop"):
            continue
        for name in names:
            if name in taken:
                raise InputError(
                    f"column {name!r} is named both by `{taken[name]}` and by `{role}`.",
                    hint="name another column for one of them.",
                )
            taken[name] = role
    for name in used.get("drop", ()):
        other = [role for role, names in used.items() if role != "drop" and name in names]
        if other:
            raise InputError(
                f"column {name!r} is named both by `{other[0]}` and by `drop`.",
                hint="a column with a role is not a covariate, so it need not be dropped.",
            )


def _recognised(columns: Sequence[str], used: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    named = {name for names in used.values() for name in names}
    free = {name.lower(): name for name in reversed(columns) if name not in named}
    in_any_case = {name.lower() for name in columns}
    is_ohdsi = any(name in in_any_case for name in OHDSI["id"])
    found: dict[str, str] = {}
    for known in (OUTCOME, OHDSI if is_ohdsi else {}):
        for role, names in known.items():
            name = next((name for name in names if name in free), None)
            if name is not None and role not in used and role not in found:
                found[role] = free[name]
    return found
