"""Names for the arrays that travel between layers, and what counts as a number."""

from typing import Any, NamedTuple, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.float64]
"""One number for each row, shape (n_rows,)."""

Features: TypeAlias = NDArray[np.float64]
"""One number for each column of the covariate matrix, shape (n_features,)."""

Matrix: TypeAlias = NDArray[np.float64]
"""A dense two-dimensional table of numbers."""

Index: TypeAlias = NDArray[np.int64]
"""Row, column or group numbers."""

Pointer: TypeAlias = NDArray[np.int64]
"""Boundaries, shape (n_groups + 1,): group g is ptr[g] up to ptr[g + 1]."""

Factors: TypeAlias = tuple[tuple[str, ...], ...]
"""Of each category of a design the names of its columns, one for every level."""

AnyArray: TypeAlias = NDArray[Any]
"""An array of any type, before it is validated."""


def is_number(value: object) -> TypeGuard[float]:
    """A real number of Python or NumPy; booleans and durations are none."""
    kinds = (int, float, np.integer, np.floating)
    # NumPy counts durations among its integers.
    return isinstance(value, kinds) and not isinstance(value, bool | np.timedelta64)


def is_count(value: object) -> TypeGuard[int]:
    """A whole number of at least 1."""
    return is_number(value) and float(value).is_integer() and value >= 1


class RiskSets(NamedTuple):
    """Who is at risk when, as arrays: the argument of every risk-set kernel.

    The n rows stand in *risk order*: by stratum, then by decreasing time. The G groups partition
    them: a group ends with the last row of a time at which somebody has an event, or at the end of
    a stratum (then without events). Without late entry the risk set of group g is every row of its
    stratum up to the end of g; with late entry row i is at risk in groups ``own[i]`` up to
    ``end[i]`` only.

    Attributes
    ----------
    order : (n,) int64
        Risk order -> the caller's row.
    weight, event_weight : (n,) float64
        Case weight, and case weight of rows with an event (0 for the others), in risk order.
    group_ptr : (G + 1,) int64
        Rows of group g.
    group_events : (G,) float64
        Weighted number of events N_g; 0 for the group that closes a stratum.
    group_tied : (G,) int64
        Number of events with positive weight (Efron's m).
    starts_stratum : (G,) bool
        The group is the first of its stratum.
    chunk_ptr : (n_chunks + 1,) int64
        A fixed partition of the groups for parallel scans; it depends on the data alone, so that
        the sums have the same bits for any number of threads.
    own, end : (n,) int64 or (0,)
        Groups in which a row is at risk; empty without late entry.
    level_rows, level_ptr : int64
        Rows by the level at which [own, end) is cut in two (see `risk_sets_cpu`); empty without
        late entry.
    """

    order: Index
    weight: Rows
    event_weight: Rows
    group_ptr: Pointer
    group_events: NDArray[np.float64]
    group_tied: Index
    starts_stratum: NDArray[np.bool_]
    chunk_ptr: Pointer
    own: Index
    end: Index
    level_rows: Index
    level_ptr: Pointer

    @property
    def group(self) -> Index:
        """Group in which each row stands (n,)."""
        return np.repeat(np.arange(self.group_events.size), np.diff(self.group_ptr))


class NewtonQuadratic(NamedTuple):
    r"""What a Newton step on a working set of q columns minimises over the step d.

    .. math::
        \min_{|d_j| \le b_j} -g'd + \tfrac12 d'Bd
            + \sum_j \left( l_{1j} |\beta_j + d_j| + \tfrac12 l_{2j} (\beta_j + d_j)^2 \right)

    Attributes
    ----------
    curvature : (q, q) float64
        B, symmetric and positive semidefinite.
    gradient : (q,) float64
        g, that of the log likelihood at beta.
    beta, l1, l2 : (q,) float64
        Coefficients, and the strengths of their penalties.
    box : (q,) float64
        b > 0, the largest step of each coordinate.
    """

    curvature: Matrix
    gradient: Features
    beta: Features
    l1: Features
    l2: Features
    box: Features


class Tail(NamedTuple):
    r"""Rows with a competing event, which stay in the risk sets of Fine and Gray's model after it.

    One tail for each censoring curve G. Row i counts in the risk set of an event at t with weight
    :math:`w_i e^{\eta_i} G(t-) / G(time_i-)`.

    Attributes
    ----------
    sets : RiskSets
        The rows, with weight :math:`w_i / G(time_i-)` and no events. Without `own` and `end`, a row
        of group g is at risk in the groups of its stratum *before* g, whose times are later.
    survival : (G,) float64
        G(t-) at the time of each group.
    """

    sets: RiskSets
    survival: NDArray[np.float64]
