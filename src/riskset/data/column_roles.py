"""Which column of a table is the time, which the event, and so on; all others are covariates.

`ColumnRoles` is the only declaration of the roles: readers take its fields as keywords, a `Schema`
keeps it, and the command line makes its options from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, get_args

import numpy as np

from riskset._errors import InputError
from riskset._settings import setting
from riskset.data.checks import first_repeated
from riskset.data.levels import check_references
from riskset.data.missing_values import MissingRule
from riskset.data.model_formula import ModelFormula

__all__ = ["LABELS", "NUMBERS", "ColumnRoles"]

# OHDSI's names for the columns of a table of patients. They count only in a table that has a
# rowId: elsewhere a column called "weights" is a covariate like any other.
OHDSI = {
    "id": ("rowid", "row_id"),
    "event": ("y",),
    "strata": ("stratumid", "stratum_id"),
    "weight": ("weights",),
}
OUTCOME = {"time": ("time",), "event": ("event",)}
REQUIRED = {"time": "the end of follow-up", "event": "the event"}


def _number(about: str, role: str = "number") -> Any:
    """The role of one column of numbers."""
    return field(default=None, metadata={**setting(about, None).metadata, "role": role})


def _label(about: str) -> Any:
    """The role of one column of labels."""
    return _number(about, "label")


@dataclass(frozen=True, kw_only=True)
class ColumnRoles:
    """What the columns of a table mean, and how times and events are read.

    Before `find` these are the columns that the caller names; after it all that have a role.
    """

    time: str | None = _number(
        "column of the end of follow-up. Optional if the column is called ``time``"
    )
    event: str | None = _number(
        "column of the event: 0 or False = censored, 1 or True = event, further codes = competing "
        "causes; or text, see `censored`. Optional if the column is called ``event``"
    )
    entry: str | None = _number("column of late entry: a row is at risk on (entry, time]")
    strata: str | Sequence[str] | None = setting(
        "columns of strata; of several columns, their combinations are the strata", None
    )
    weight: str | None = _number("column of case weights")
    cluster: str | None = _label("column of clusters: rows of one person or site")
    offset: str | None = _number("column of offsets, which are added to the linear predictor")
    censoring_group: str | None = _label(
        "column of groups with separate censoring distributions, for `FineGray`"
    )
    id: str | None = _label("column that identifies rows, for messages and predictions")
    drop: str | Sequence[str] = setting("columns not to use", ())
    reference: Mapping[str, object] | None = setting(
        "reference levels of columns of text or categories, by column. Default: the first level",
        None,
    )
    missing: MissingRule = setting(
        "what to do with missing values of covariates: refuse them (``error``), or give a column "
        "with missing values an ``indicator``: one more level of text and categories, and one more "
        "covariate beside numbers, whose missing values become the mean",
        "error",
    )
    covariate_labels: Any = setting(
        "labels, groups, units and reference levels of covariates: a file or a data frame with the "
        "columns ``name``, ``label``, ``group``, ``unit`` and ``reference``, or a mapping of names "
        "to labels",
        None,
    )
    formula: str | None = setting(
        "a formula of the covariates as in R, with or without the outcome: ``Surv(time, event) ~ "
        "bs(age, df=4) + sex * treatment + strata(site)``; see `Cox.from_formula`. Other columns "
        "are not used",
        None,
    )
    cause: int | str | None = setting("code or label of the event of interest", None)
    censored: str | None = setting(
        "label of censoring, if the events are text. Every other label is a cause", None
    )
    time_digits: int | None = setting(
        "round time and entry to this number of decimals, so that equal times with different "
        "rounding errors are tied",
        None,
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "strata", _listed("strata", self.strata))
        if self.formula is not None:
            self._take_roles_of_formula()
        object.__setattr__(self, "drop", _listed("drop", self.drop))
        check_references(self.reference)
        if self.missing not in get_args(MissingRule):
            raise InputError.wrong_option("missing", self.missing, get_args(MissingRule))
        digits = self.time_digits
        if digits is not None and (digits is True or not isinstance(digits, (int, np.integer))):
            raise InputError(
                f"`time_digits` must be a whole number, but it is {digits!r}.",
                hint="it is the number of decimals to which times are rounded.",
            )

    def _take_roles_of_formula(self) -> None:
        """Roles that the formula names, such as those in ``Surv(time, event)``."""
        if self.drop:
            raise InputError(
                "`drop` was given together with `formula`, which names all covariates.",
                hint="leave `drop` out.",
            )
        for role, found in ModelFormula.parse(self.formula).roles.items():
            given = getattr(self, role)
            if given not in (None, (), found):
                raise InputError(
                    f"`{role}` is {given!r}, but the formula says {found!r}.",
                    hint="name it in one place.",
                )
            object.__setattr__(self, role, found)

    @property
    def stratum_columns(self) -> tuple[str, ...]:
        """Columns whose combinations are the strata."""
        return tuple(self.strata or ())

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Columns of identifiers and group labels."""
        names = (self.id, self.cluster, self.censoring_group, *self.stratum_columns)
        return tuple(name for name in names if name is not None)

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Columns of each role that has any."""
        names = {role: getattr(self, role) for role in (*NUMBERS, *LABELS)}
        single = {role: (name,) for role, name in names.items() if name is not None}
        several = {"strata": self.stratum_columns, "drop": tuple(self.drop)}
        return {role: listed for role, listed in (several | single).items() if listed}

    def find(self, columns: Sequence[str], place: str) -> "ColumnRoles":
        """Check the columns that the caller names, and recognise OHDSI's names for the others.

        Raises `InputError` if a column is absent or named twice, or there is no column for time or
        event.
        """
        named = self.columns()
        for role, names in named.items():
            for name in names:
                if name not in columns:
                    raise InputError.unknown_name(f"`{role}` column", name, columns, place=place)
        _check_distinct(named)
        # Not a copy of itself: a class of keywords may have more fields than these.
        known = {one.name: getattr(self, one.name) for one in fields(ColumnRoles)}
        roles = ColumnRoles(**(known | _recognised(columns, named)))
        for role, what in REQUIRED.items():
            if getattr(roles, role) is None:
                raise InputError(
                    f"it is not clear which column of {place} holds {what}; it has "
                    f"{', '.join(map(repr, columns[:12]))}{', ...' if columns[12:] else ''}.",
                    hint=f"name it with `{role}`.",
                )
        return roles

    def covariates_among(self, columns: Sequence[str]) -> tuple[str, ...]:
        """All columns without a role."""
        used = {name for names in self.columns().values() for name in names}
        return tuple(name for name in columns if name not in used)

    def to_dict(self) -> dict[str, object]:
        """The columns as JSON can hold them."""
        state: dict[str, object] = {role: getattr(self, role) for role in (*NUMBERS, *LABELS)}
        return state | {"strata": list(self.stratum_columns), "drop": list(self.drop)}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], **settings: Any) -> "ColumnRoles":
        """The inverse of `to_dict`, with the fields that are not columns."""
        columns: dict[str, Any] = {role: state.get(role) for role in (*NUMBERS, *LABELS)}
        return cls(**columns, strata=state["strata"], drop=state["drop"], **settings)


NUMBERS = tuple(f.name for f in fields(ColumnRoles) if f.metadata.get("role") == "number")
"""Roles of one column of numbers."""

LABELS = tuple(f.name for f in fields(ColumnRoles) if f.metadata.get("role") == "label")
"""Roles of one column of labels."""


def _listed(role: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    if names is None or isinstance(names, str):
        return () if names is None else (names,)
    try:
        listed = tuple(names)
    except TypeError:
        raise InputError(
            f"`{role}` must be the name of a column or several of them, but it is {names!r}.",
            hint=f"for example `{role}='site'` or `{role}=['site', 'sex']`.",
        ) from None
    again = first_repeated(listed)
    if role == "strata" and again is not None:
        raise InputError(f"`strata` names column {again!r} twice.", hint="name it once.")
    return listed


def _check_distinct(named: Mapping[str, tuple[str, ...]]) -> None:
    """One column may be id and cluster, or cluster and stratum, but not time and event."""
    taken: dict[str, str] = {}
    for role in ("drop", *NUMBERS):
        for name in named.get(role, ()):
            if name in taken:
                raise InputError(
                    f"column {name!r} is named both by `{taken[name]}` and by `{role}`.",
                    hint="name another column for one of them.",
                )
            taken[name] = role
    for name in named.get("drop", ()):
        other = [role for role, names in named.items() if role != "drop" and name in names]
        if other:
            raise InputError(
                f"column {name!r} is named both by `{other[0]}` and by `drop`.",
                hint="a column with a role is not a covariate, so it need not be dropped.",
            )


def _recognised(columns: Sequence[str], named: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Roles that the caller left open -> a column with a known name for it."""
    taken = {name for names in named.values() for name in names}
    free = {name.lower(): name for name in reversed(columns) if name not in taken}
    in_any_case = {name.lower() for name in columns}
    is_ohdsi = any(name in in_any_case for name in OHDSI["id"])
    roles: dict[str, str] = {}
    for known in (OUTCOME, OHDSI if is_ohdsi else {}):
        for role, names in known.items():
            name = next((name for name in names if name in free), None)
            if name is not None and role not in named and role not in roles:
                roles[role] = free[name]
    return roles
