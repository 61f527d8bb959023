"""Covariates times functions of time, for effects that change: `tt` of R's `coxph`."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows, is_count
from riskset.data.causes import cause_code
from riskset.data.checks import Places, as_time_numbers
from riskset.data.column_roles import ColumnRoles
from riskset.data.labels import code_columns
from riskset.data.start_stop.episodes import Cuts, cut_rows, search_groups
from riskset.data.start_stop.splitting import FollowUp, refuse_taken
from riskset.data.table import labels, numbers

__all__ = ["TimeFunction", "settled", "time_functions", "time_interactions"]

T = TypeVar("T")
TimeFunction: TypeAlias = str | Sequence[float] | Callable[[Rows], AnyArray]

NEW_NAMES = "choose another name with `id`, or rename the column."
"""What to do if a new column has the name of another one."""

COPIES = 3
"""Times that a result is in memory while it is made."""


def time_interactions(
    data: T,
    effects: Mapping[str, TimeFunction],
    *,
    time: str | None = None,
    event: str | None = None,
    entry: str | None = None,
    censored: str | None = None,
    cause: int | str | None = None,
    strata: str | Sequence[str] | None = None,
    at: int | Sequence[float] | None = None,
    id: str | None = "row",
    start: float = 0.0,
) -> T:
    r"""Add products of covariates and functions of time, as `tt` of R's `coxph`.

    In the model :math:`\lambda(t \mid x) = \lambda_0(t) \, e^{x \beta + x g(t) \gamma}` the effect
    of x at time t is :math:`\beta + g(t) \gamma`. The partial likelihood needs x g(t) at the times
    of events only, so rows that are split there, with

    .. math:: x_i \, g(t_k) \quad \text{in} \quad (t_{k-1}, t_k],

    give the exact estimate of any Cox fit with late entry.

    Parameters
    ----------
    data : data frame
        pandas, polars, Arrow, or any that narwhals reads.
    effects : mapping of str to function
        Columns of numbers, and their functions of time: ``"log"``, ``"identity"``, a callable that
        takes an array of times and returns one of the same shape, or a sequence of times
        :math:`c_1 < \dots < c_k`, which gives a step function: the effect is another one in
        :math:`(c_1, c_2], \dots, (c_k, \infty)`.
    time, event, entry, censored, id, start
        As of `split`.
    cause : int or str, optional
        Code or label of the event of interest. Default: the times of all events count.
    strata : str or sequence of str, optional
        Columns of the strata of the model. For exact smooth functions, rows are then split at the
        times of events of their own stratum only, which saves many rows.
    at : int or sequence of numbers, optional
        Approximate smooth functions on a grid instead: on this number of intervals with about as
        many events each, or on the intervals between these times. In an interval, g is its mean
        over the events in it. Default: exact.

    Returns
    -------
    data frame of the library of `data`
        Rows as of `split`, with columns such as ``age:log(t)``, ``age:t``, ``age:(365,730]`` and
        ``age:(730,inf)``; for a callable its name stands for g. After the last event, where it has
        no effect on a fit, g keeps its last value.

    Raises
    ------
    InputError
        If a column or a time is not valid, a function gives other values than finite numbers, or
        the rows would need more memory than there is.

    Notes
    -----
    Step functions need a row for each step. Smooth functions need a row for each person and event
    time at risk, for n people and m distinct times of events up to n m rows, in general about half
    of it. That is possible for thousands of people, or in many strata. A grid of K intervals has at
    most n K rows; its error vanishes as the intervals narrow, and more of them show how large it
    is.

    References
    ----------
    Therneau, Crowson and Atkinson, Using Time Dependent Covariates and Time Dependent Coefficients
    in the Cox Model, vignette of R's survival. Cox (1972), Journal of the Royal Statistical Society
    B 34, 187-220.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = pa.table({"time": [4, 9, 6], "event": [1, 1, 0], "age": [60, 70, 50]})
    >>> rows = rs.time_interactions(people, {"age": [5]})
    >>> rows.select(["row", "entry", "time", "event", "age", "age:(5,inf)"]).to_pandas()
       row  entry  time  event  age  age:(5,inf)
    0    0    0.0   4.0      1   60          0.0
    1    1    0.0   5.0      0   70          0.0
    2    1    5.0   9.0      1   70         70.0
    3    2    0.0   5.0      0   50          0.0
    4    2    5.0   6.0      0   50         50.0
    >>> rs.time_interactions(people, {"age": "identity"}).column("age:t").to_pylist()
    [240.0, 280.0, 630.0, 200.0, 450.0]
    """
    roles = ColumnRoles(time=time, event=event, entry=entry, censored=censored)
    if not isinstance(effects, Mapping):
        raise InputError(
            "`effects` must be a mapping of columns to functions of time, but it is of type "
            f"{type(effects).__name__}.",
            hint="for example {'age': 'log'} or {'age': [365, 730]}.",
        )
    known = FollowUp.read(data, roles, start)
    steps = {name: _read_steps(name, g) for name, g in effects.items() if _is_steps(g)}
    smooth = {name: _read_function(name, g) for name, g in effects.items() if name not in steps}
    is_event = _events(known, cause)
    cuts, group = _read_cuts(known, is_event, steps, bool(smooth), strata, at)
    columns = {name: _covariate(known, name) for name in effects}
    n_new = len(smooth) + sum(map(len, steps.values()))
    _check_memory(known, cuts, group, len(known.frame.table.columns) + n_new + 3)
    pieces = cut_rows(known.entry, known.time, cuts, group)
    interval = (cuts.ptr[group] + group)[pieces.row] + pieces.episode - 1
    n_intervals = cuts.time.size + cuts.ptr.size - 1
    has_event = pieces.is_last & is_event[pieces.row]
    new: dict[str, AnyArray] = {} if id is None else {id: pieces.row}
    for name, x in columns.items():
        own = x[pieces.row]
        made = {}
        for limits, label in _labelled(steps.get(name, np.empty(0))):
            made[f"{name}:{label}"] = own * (
                (pieces.entry >= limits[0]) & (pieces.time <= limits[1])
            )
        if name in smooth:
            label, g = smooth[name]
            value = _means(g, known.time, pieces.row, interval, has_event, n_intervals)
            made[f"{name}:{label}"] = own * value[interval]
        refuse_taken(list(new), made, NEW_NAMES)
        new |= made
    rows: T = known.pieces(pieces, new, NEW_NAMES)
    return rows


# ------------------------------------------------------------------------- functions of time


def time_functions(name: str, function: TimeFunction) -> list[tuple[str, Callable[[Rows], Rows]]]:
    """Functions of time of a covariate, as `time_interactions` has them, with what they are called.

    Steps give one for each interval.
    """
    if not _is_steps(function):
        return [_read_function(name, function)]
    return [
        (label, partial(_inside, limits=limits))
        for limits, label in _labelled(_read_steps(name, function))
    ]


def settled(name: str, function: TimeFunction) -> TimeFunction:
    """The same function of a covariate, with a copy of its steps."""
    return tuple(_read_steps(name, function).tolist()) if _is_steps(function) else function


def _inside(times: Rows, limits: tuple[float, float]) -> Rows:
    return np.asarray(((times > limits[0]) & (times <= limits[1])).astype(np.float64))


def _is_steps(function: object) -> bool:
    return not isinstance(function, str) and not callable(function)


def _read_steps(name: str, steps: object) -> Rows:
    places = Places({"steps": f"the steps of {name!r} in `effects`"})
    if not isinstance(steps, Iterable):
        raise _not_a_function(name, steps)
    if isinstance(steps, Set | Iterator):
        steps = list(steps)
    given = as_time_numbers(steps, "steps", None, places, missing_hint="leave missing times out.")
    times = np.unique(given)
    if not times.size:
        raise InputError(
            f"the steps of {name!r} in `effects` are empty.",
            hint="give the times at which the effect changes, or leave the covariate out.",
        )
    return times


def _not_a_function(name: str, given: object) -> InputError:
    return InputError(
        f"the function of {name!r} in `effects` must be 'log', 'identity', a sequence of times or "
        f"a callable, but it is {given!r}.",
        hint="for example {'age': 'log'} or {'age': [365, 730]}.",
    )


def _labelled(steps: Rows) -> list[tuple[tuple[float, float], str]]:
    """The intervals from each step on, and what they are called."""
    ends = [*steps[1:].tolist(), np.inf]
    return [
        ((low, high), f"({_exact(low)},{_exact(high)}" + ("]" if high < np.inf else ")"))
        for low, high in zip(steps.tolist(), ends, strict=False)
    ]


def _exact(time: float) -> str:
    """A number without a loss of digits, so that two steps never have the same name."""
    return repr(time).removesuffix(".0")


def _read_function(name: str, function: object) -> tuple[str, Callable[[Rows], Rows]]:
    """What a function of time is called, and a version that is checked."""
    known: dict[str, tuple[str, Callable[[Rows], AnyArray]]] = {
        "log": ("log(t)", np.log),
        "identity": ("t", np.asarray),
    }
    if isinstance(function, str):
        if function not in known:
            raise _not_a_function(name, function)
        label, g = known[function]
    else:
        assert callable(function)
        given = str(getattr(function, "__name__", "g"))
        label, g = "g(t)" if given == "<lambda>" else f"{given}(t)", function

    def checked(times: Rows) -> Rows:
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(g(times.copy()))  # it may write into its argument
        except Exception as error:
            raise InputError(
                f"the function of {name!r} in `effects` failed for an array of {times.size} times: "
                f"{type(error).__name__}: {error}.",
                hint="write it for arrays, for example with functions of NumPy.",
            ) from error
        if value.shape != times.shape or value.dtype.kind not in "buif":
            raise InputError(
                f"the function of {name!r} in `effects` must return a number for each time, but "
                f"for {times.size} times it returned an array of shape {value.shape} and type "
                f"{value.dtype}.",
                hint="write it for arrays, for example with functions of NumPy.",
            )
        bad = ~np.isfinite(value)
        if bad.any():
            raise InputError(
                f"the function of {name!r} in `effects` is not finite at the time "
                f"{times[bad][0]:g}.",
                hint="choose a function that is finite at all times of events, such as "
                "lambda t: numpy.log(t + 1), and ask for its effect where it is finite.",
            )
        return value.astype(np.float64)

    return label, checked


def _means(
    g: Callable[[Rows], Rows],
    time: Rows,
    row: Index,
    interval: Index,
    has_event: AnyArray,
    n_intervals: int,
) -> Rows:
    """Mean of g over the events of each interval; without events, that of the one before."""
    times, place = np.unique(time[row[has_event]], return_inverse=True)
    own = interval[has_event]
    n = np.bincount(own, minlength=n_intervals)
    total = np.bincount(own, g(times)[place.reshape(-1)], minlength=n_intervals)
    mean = total / np.maximum(n, 1)
    last = np.maximum.accumulate(np.where(n > 0, np.arange(n_intervals), -1))
    return np.where(last >= 0, mean[last], mean[np.argmax(n > 0)])


# ------------------------------------------------------------------------------------- rows


def _events(known: FollowUp, cause: int | str | None) -> AnyArray:
    chosen = None if cause is None else cause_code(cause, known.labels)
    is_event = np.asarray(known.event > 0 if chosen is None else known.event == chosen)
    if not is_event.any():
        raise InputError(
            "no row has an event" + ("." if cause is None else f" of the cause {cause!r}."),
            hint="check the coding, and the filters before it.",
        )
    return is_event


def _covariate(known: FollowUp, name: str) -> Rows:
    table = known.frame.table
    if name in known.outcome_columns:
        raise InputError(
            f"{table.words.column(name)} is part of the outcome, so it cannot be in `effects`.",
            hint="name covariates in `effects`.",
        )
    return numbers(table, name, table.array(name)).astype(np.float64)


def _read_cuts(
    known: FollowUp,
    is_event: AnyArray,
    steps: Mapping[str, Rows],
    is_smooth: bool,
    strata: str | Sequence[str] | None,
    at: object,
) -> tuple[Cuts, Index]:
    """Where rows are cut, and the group of each row."""
    n_rows = known.time.size
    table, names = known.frame.table, [strata] if isinstance(strata, str) else list(strata or ())
    for name in names:
        table.need(name)
    every_step = np.concatenate([np.empty(0), *steps.values()])
    times, one = known.time[is_event], np.zeros(n_rows, dtype=np.int64)
    if not is_smooth:
        if at is not None:
            raise InputError(
                "`at` is for smooth functions, but all `effects` are steps, which are exact.",
                hint="leave `at` out.",
            )
        return Cuts.common(every_step), one
    if at is not None:
        return Cuts.common(np.concatenate([every_step, _grid(times, at)])), one
    if not names:
        return Cuts.common(np.concatenate([every_step, times])), one
    read = [labels(table, name, table.array(name)) for name in names]
    group, found = code_columns(read, "strata", n_rows, Places())
    n = len(found)
    own = np.concatenate([group[is_event], np.repeat(np.arange(n), every_step.size)])
    return Cuts.by_group(own, np.concatenate([times, np.tile(every_step, n)]), n), group


def _grid(times: Rows, at: object) -> Rows:
    """Times given, or those between intervals with about as many events each."""
    if is_count(at):
        shares = np.arange(1, int(at)) / int(at)
        return np.asarray(np.quantile(times, shares, method="inverted_cdf"))
    if isinstance(at, str) or not isinstance(at, Iterable):
        raise InputError(
            f"`at` must be a number of intervals, or the times between them, but it is {at!r}.",
            hint="for example at=50 or at=[30, 90, 365].",
        )
    return as_time_numbers(at, "at", None, Places(), missing_hint="leave missing times out.")


def _check_memory(known: FollowUp, cuts: Cuts, group: Index, n_columns: int) -> None:
    """Refuse rows that would not fit."""
    first = search_groups(cuts.time, cuts.ptr, group, known.entry, after_equal=True)
    last = search_groups(cuts.time, cuts.ptr, group, known.time, after_equal=False)
    n_rows = int((last - first).clip(0).sum()) + known.time.size
    need, free = n_rows * n_columns * 8 * COPIES, free_memory()
    if free is not None and need > free:
        raise InputError(
            f"split at {cuts.time.size:,} times, {known.time.size:,} rows would become {n_rows:,}, "
            f"which need about {need / 1e9:,.0f} GB of memory, but {free / 1e9:,.0f} GB are free.",
            hint="pass `at=50` for a grid of 50 intervals, in which functions of time have their "
            "mean over the events, name the `strata` of the model, or leave columns out.",
            argument="at",
        )


def free_memory() -> int | None:
    """Bytes of memory that can be used without swapping; None if that is not known."""
    known = Path("/proc/meminfo")
    if known.exists():
        for line in known.read_text("utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
