"""Start-stop rows of treatment strategies: censored at deviation, and cloned for grace periods."""

from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, InputError
from riskset._types import AnyArray, Index, Rows
from riskset.cohort.protocol.strategies import GraceStrategy
from riskset.data.checks import (
    Places,
    as_array,
    as_time_numbers,
    complain_rows,
    missing_rows,
)
from riskset.data.column_roles import ColumnRoles
from riskset.data.start_stop.episodes import Cuts, cut_rows
from riskset.data.start_stop.splitting import FollowUp, is_finite, refuse_taken

__all__ = ["censor_deviations", "clone"]

T = TypeVar("T")
Comparator = Literal["not within the grace period", "never"]


class FollowedPieces(NamedTuple):
    """Follow-up of rows of a table until a deviation (m,).

    `has_event` says whether a piece may have the event of its row.
    """

    row: Index
    entry: Rows
    time: Rows
    has_event: NDArray[np.bool_]
    deviates: NDArray[np.bool_]

    def until(self, at: Rows, is_event: NDArray[np.bool_]) -> "FollowedPieces":
        """The pieces up to the times (m,) at which people deviate.

        An event at the time of a deviation comes first.
        """
        kept = np.flatnonzero(self.entry < at)
        piece = FollowedPieces._make(values[kept] for values in self)
        at = at[kept]
        first = piece.has_event & is_event[piece.row] & (piece.time == at)
        time = np.minimum(piece.time, at)
        leaves = (at <= piece.time) & ~first
        stays = piece.has_event & (at >= piece.time)
        return piece._replace(time=time, has_event=stays, deviates=leaves)


def censor_deviations(
    rows: T,
    at: object,
    *,
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    censored: str | None = None,
    start: float = 0.0,
    deviates: str = "deviates",
) -> T:
    """End the follow-up of people when they deviate from their treatment strategy.

    Rows that start at the deviation or later are left out, and the row in which it happens ends
    then. An event at the time of the deviation comes first: it is kept and does not count as a
    deviation.

    Parameters
    ----------
    rows : data frame
        One row for each person, or several with start and stop, of any library.
    at : str, or (n,) numbers
        Time of the deviation, on the clock of the follow-up, such as the end of exposure plus a
        gap, or the start of the other treatment: the column, or a value for each row. Missing:
        never. All rows of a person have the same.
    time, event, entry, censored : str, optional
        Columns of the follow-up, as of `riskset.split`.
    start : float
        Start of follow-up of rows without entry.
    deviates : str
        Name of the new column.

    Returns
    -------
    data frame
        Of the same library, with 1 in `deviates` where a row ends with a deviation, and 0
        elsewhere. It is the argument `deviates` of `censoring_weights`.

    Raises
    ------
    InputError
        If a column does not exist, or times and events are not valid.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"days": [9, 12, 7], "died": [1, 0, 1], "stopped": [5, None, 7]})
    >>> rs.cohort.censor_deviations(people, "stopped", time="days", event="died").to_pandas()
       days  died  stopped  entry  deviates
    0   5.0     0      5.0    0.0         1
    1  12.0     0      NaN    0.0         0
    2   7.0     1      7.0    0.0         0
    """
    roles = ColumnRoles(time=time, event=event, entry=entry, censored=censored)
    found = FollowUp.read(rows, roles, start)
    remedy = "choose another name with `deviates`."
    refuse_taken([*found.frame.table.columns, *found.outcome_columns], [deviates], remedy)
    when = _times(found, at, "at", "leave out people who deviate before it.")
    pieces = _whole(found).until(when, found.event > 0)
    new = {deviates: pieces.deviates.astype(np.int64)}
    return _frame(found, pieces, new)  # type: ignore[no-any-return]


def clone(
    rows: T,
    treated_at: object,
    *,
    grace: float,
    window: float | None = None,
    comparator: Comparator = "not within the grace period",
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    censored: str | None = None,
    start: float = 0.0,
    arm: str = "arm",
) -> T:
    r"""Clone people into two strategies: to start a treatment within a grace period, or not to.

    At the start of follow-up nobody has deviated from "start within the grace period", so that
    everybody is in both arms until they deviate from one of them. People who have events before
    they could start thus count in both arms, and there is no immortal time. With treatment at time
    s and the grace period g:

    ============================= =========================== ================================
    arm                           deviates                    can deviate (``at_risk``)
    ============================= =========================== ================================
    1: starts within g            at g, if s > g              at g, if s > g - `window`
    0: not within g               at s, if :math:`s \le g`    until s or g
    0: "never"                    at s                        until s
    ============================= =========================== ================================

    In arm 1 nobody can deviate before g. Those who start within the `window` before g then stand
    for those who do not start, and those who started earlier keep their weight. The covariates of
    the row that ends at g should be those before treatment.

    Parameters
    ----------
    rows : data frame
        One row for each person, or several with start and stop, of any library.
    treated_at : str, or (n,) numbers
        Time at which treatment starts: the column, or a value for each row. Missing: never. People
        who start at the start of follow-up are in arm 1 alone.
    grace : number
        End of the grace period, on the clock of the follow-up.
    window : number, optional
        Length of the last part of the grace period, in which those who start stand for those who
        have not started. Default: the whole period, as in Maringe et al. (2020). It must then be
        enough to adjust for covariates at baseline.
    comparator : {"not within the grace period", "never"}
        Strategy of arm 0.
    time, event, entry, censored : str, optional
        Columns of the follow-up, as of `riskset.split`.
    start : float
        Start of follow-up of rows without entry.
    arm : str
        Name of the new column for the arm.

    Returns
    -------
    data frame
        Of the same library: the rows of arm 1, then those of arm 0, cut at the grace period and at
        the start of its window, with the new columns `arm`, ``deviates`` and ``at_risk``, which are
        arguments of `censoring_weights`.

    Raises
    ------
    InputError
        If a column does not exist, or times and events are not valid.
    CohortError
        "BadSetting".

    Notes
    -----
    Outcome models need people as clusters, as in `fit_per_protocol`, because the clones of a person
    are not independent. Use pooled logistic models: in arm 1 all deviations are at one time.

    References
    ----------
    Hernan and Robins (2016), American Journal of Epidemiology 183, 758-764,
    doi:10.1093/aje/kwv254.
    Maringe, Benitez Majano, Exarchakou, Smith, Rachet, Belot and Leyrat (2020), International
    Journal of Epidemiology 49, 1719-1729, doi:10.1093/ije/dyaa057.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"id": [1, 2], "days": [90, 20], "died": [0, 1], "surgery": [12, None]})
    >>> found = rs.cohort.clone(people, "surgery", grace=30, time="days", event="died")
    >>> found.to_pandas().drop(columns="surgery")
       id  days  died  entry  arm  deviates  at_risk
    0   1  30.0     0    0.0    1         0        1
    1   1  90.0     0   30.0    1         0        0
    2   2  20.0     1    0.0    1         0        0
    3   1  12.0     0    0.0    0         1        1
    4   2  20.0     1    0.0    0         0        1
    """
    roles = ColumnRoles(time=time, event=event, entry=entry, censored=censored)
    found = FollowUp.read(rows, roles, start)
    names = [*found.frame.table.columns, *found.outcome_columns]
    refuse_taken(names, [arm], "choose another name with `arm`.")
    refuse_taken(names, ["deviates", "at_risk"], "rename the column.")
    if comparator not in get_args(Comparator):
        raise InputError.wrong_option("comparator", comparator, get_args(Comparator))
    opens = _opening(grace, window, float(found.entry.min()))
    starts = _times(found, treated_at, "treated_at", "leave out people who are treated before it.")
    strategies = (
        GraceStrategy(True, float(grace), opens),
        GraceStrategy(False, np.inf if comparator == "never" else float(grace)),
    )
    cuts = Cuts.common(np.array([opens, float(grace)]))
    cut = cut_rows(found.entry, found.time, cuts, np.zeros(found.time.size, dtype=np.int64))
    none = np.zeros(cut.row.size, dtype=bool)
    pieces = FollowedPieces(cut.row, cut.entry, cut.time, cut.is_last, none)
    is_event, began = found.event > 0, starts[pieces.row]
    treated, others = (pieces.until(one.deviation(began), is_event) for one in strategies)
    at_risk = [
        strategy.can_deviate(
            own.entry, own.time, own.has_event & is_event[own.row], starts[own.row]
        )
        for strategy, own in zip(strategies, (treated, others), strict=True)
    ]
    both = FollowedPieces._make(np.concatenate(pair) for pair in zip(treated, others, strict=True))
    new = {
        arm: np.repeat([1, 0], [treated.row.size, others.row.size]),
        "deviates": both.deviates.astype(np.int64),
        "at_risk": np.concatenate(at_risk).astype(np.int64),
    }
    return _frame(found, both, new)  # type: ignore[no-any-return]


def _whole(found: FollowUp) -> FollowedPieces:
    n = found.time.size
    every = np.ones(n, dtype=bool)
    return FollowedPieces(np.arange(n), found.entry, found.time, every, ~every)


def _frame(found: FollowUp, pieces: FollowedPieces, new: dict[str, AnyArray]) -> Any:
    return found.outcome_rows(pieces.row, pieces.entry, pieces.time, pieces.has_event, new)


def _times(found: FollowUp, at: object, name: str, remedy: str) -> Rows:
    """A time for each row, not before all starts of follow-up; infinite where it is missing."""
    n = found.time.size
    if isinstance(at, str):
        table = found.frame.table
        column, values = table.words.column(at), np.asarray(table.array(at).to_numpy())
    else:
        column, values = f"`{name}`", as_array(at, f"`{name}`", Places())
        if values.shape != (n,):
            raise InputError(
                f"{column} must have one time for each of the {n:,} rows, but its shape is "
                f"{values.shape}.",
                hint="pass a column, or its name.",
            )
    missing = missing_rows(values)
    out = np.full(n, np.inf)
    out[~missing] = as_time_numbers(values[~missing], name, None, Places({name: column}))
    start = float(found.entry.min(initial=np.inf))
    must = f"must not be before the start of follow-up, {start:g}"
    complain_rows(out < start, out, column, must, Places(), hint=remedy)
    return out


def _opening(grace: object, window: object, start: float) -> float:
    """The start of the window."""
    if not is_finite(grace) or not float(grace) > start:  # type: ignore[arg-type]
        raise CohortError(
            "BadSetting",
            f"`grace` must be a time after the start of follow-up, {start:g}, but it is {grace!r}.",
            hint="it is the end of the grace period, on the clock of the follow-up.",
        )
    if window is None:
        return start
    if is_finite(window) and float(window) > 0:  # type: ignore[arg-type]
        opens = GraceStrategy.opening(float(grace), float(window))  # type: ignore[arg-type]
        if opens >= start:
            return opens
    whole = GraceStrategy.opening(float(grace), start)  # type: ignore[arg-type]
    raise CohortError(
        "BadSetting",
        f"`window` must be a length of time up to that of the grace period, {whole:g}, but it is "
        f"{window!r}.",
        hint="it is the last part of the grace period; leave it out for all of it.",
    )
