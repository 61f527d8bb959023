r"""The partial likelihood of effects that are functions of time, without a row for each event time.

The hazard of row i is :math:`\lambda_s(t) \exp(x_i'\beta + \sum_m x_{i j_m} g_m(t) \gamma_m)`. A
sum over a risk set is a sum over few numbers for each time, because :math:`e^{u s(t)}` is a short
sum of products of a function of the covariate u and one of time: a level of u and its exponential,
or Chebyshev's polynomials and Bessel functions,

.. math:: e^{z v} = I_0(z) + 2 \sum_{k \ge 1} I_k(z) T_k(v), \qquad -1 \le v \le 1,

of which so many terms are taken that the rest is below the rounding of a number (Abramowitz &
Stegun 1964, 9.6.34). The sum loses digits where z is large, so a wide range of u is cut into pieces
with a sum each. So a pass takes O(n K p) time for K terms, however many event times there are.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ive

from riskset._errors import InputError
from riskset._types import Features, Index, Matrix, Rows
from riskset.data.outcome import Outcome
from riskset.data.start_stop.time_interactions import free_memory

__all__ = ["TimeEffectsLikelihood", "TimeEffectsPass", "TimeTerm"]

MAX_LEVELS = 24
"""A covariate with so many values or fewer has a term for each."""
MAX_PIECE = 9.0
"""Largest size of the exponent of a function of time, from the middle of a piece of the range.

The hazard ratio of the ends of a piece then is 6e7, and its sum loses half of the digits.
"""
MAX_PIECES = 32
"""Pieces of a covariate's range at most, whose ends then have hazards with the ratio exp(576)."""
LOG_REST = -38.0
"""Log of the share of the terms that are left out in the smallest sum."""
CHUNK = 1 << 19
"""Terms of rows that are held at a time (4 MB)."""
COPIES = 6
"""Arrays of the terms at all event times that are held at a time."""
MAX_LOST = 1e-6
"""Largest relative error of a sum over a risk set, by rounding."""
MAX_SUMS = 1 << 25
"""Sums over event times, terms and columns that are held at a time (256 MB)."""


class TimeTerm(NamedTuple):
    """A product of a covariate, the column `column`, and a function of time with values (D,)."""

    column: int
    values: Rows


class TimeEffectsPass(NamedTuple):
    """Log likelihood, gradient (p + q,), information, and logs of steps of the hazard (D,).

    `moments` (p + q,) are the second moments from which the diagonal of the information is left.
    """

    log_likelihood: float
    gradient: Features
    information: Matrix
    moments: Features
    log_hazard: Rows


@dataclass(frozen=True, eq=False)
class _Levels:
    """The terms of a covariate with few values."""

    values: Rows

    def of_rows(self, u: Rows) -> Matrix:
        return np.asarray((u[:, None] == self.values).astype(np.float64))

    def of_times(self, slope: Rows) -> tuple[Matrix, Rows]:
        """Terms of the times (D, K), and the logs by which they are too small."""
        exponent = slope[:, None] * self.values
        shift = exponent.max(axis=1)
        return np.exp(exponent - shift[:, None]), shift


@dataclass(frozen=True, eq=False)
class _Polynomials:
    """The terms of a covariate with many values, within `half` of one of `middles` (B,).

    A row has the `number` terms of its own piece of the range; those of the others are 0.
    """

    middles: Rows
    half: float
    number: int

    def of_rows(self, u: Rows) -> Matrix:
        piece = np.zeros(u.size, dtype=np.int64)
        if self.middles.size > 1:
            piece = np.searchsorted(self.middles + self.half, u).clip(0, self.middles.size - 1)
        v = np.clip((u - self.middles[piece]) / self.half, -1.0, 1.0)
        out = np.empty((u.size, self.number))
        out[:, 0] = 1.0
        if self.number > 1:
            out[:, 1] = v
        for k in range(2, self.number):
            out[:, k] = 2.0 * v * out[:, k - 1] - out[:, k - 2]
        if self.middles.size == 1:
            return out
        wide = np.zeros((u.size, self.middles.size, self.number))
        wide[np.arange(u.size), piece] = out
        return wide.reshape(u.size, -1)

    def of_times(self, slope: Rows) -> tuple[Matrix, Rows]:
        z = slope * self.half
        order = np.arange(self.number)
        terms = ive(order, np.abs(z)[:, None]) * np.where(order == 0, 1.0, 2.0)
        terms[z < 0, 1::2] *= -1.0
        size = np.abs(z)[:, None] + slope[:, None] * self.middles
        shift = size.max(axis=1)
        parts = np.exp(size - shift[:, None])[:, :, None] * terms[:, None, :]
        return parts.reshape(slope.size, -1), shift


def _terms_of(values: Rows, slope: Rows) -> _Levels | _Polynomials:
    """The terms that a covariate with some distinct values needs for slopes in time (D,).

    OverflowError if they would be too many.
    """
    if values.size <= MAX_LEVELS:
        return _Levels(values)
    low, high = float(values[0]), float(values[-1])
    size = float(np.abs(slope).max(initial=0.0)) * (high - low) / 2
    if not size <= MAX_PIECE * MAX_PIECES:
        raise OverflowError
    n = max(1, int(np.ceil(size / MAX_PIECE)))
    half = (high - low) / (2 * n)
    order = np.arange(1, 400)
    # I_k(z) <= (z/2)^k / k! e^z, and the smallest exponential is e^-z.
    z = size / n
    rest = order * np.log(max(z, 1e-300) / 2) - gammaln(order + 1.0) + 2 * z
    middles: Rows = low + half * (2.0 * np.arange(n, dtype=np.float64) + 1.0)
    return _Polynomials(middles, half, int(order[rest < LOG_REST][0]))


class _GroupSums:
    """Sums of rows by a number (n,) of each, in whose order the rows are."""

    def __init__(self, group: Index, n_groups: int) -> None:
        self.group, self.n_groups = group, n_groups

    def add(self, rows: slice, values: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Add the rows of a chunk (c, ...) to `out` (D, ...)."""
        own = self.group[rows]
        starts = np.flatnonzero(np.append(True, own[1:] != own[:-1]))
        out[own[starts]] += np.add.reduceat(values, starts, axis=0)


class _RunningSums:
    """Sums along the event times of each stratum, whose entries are between pointers (S + 1,).

    They only add, within a stratum. Strata with equally many event times are summed together:
    matched sets are many, and have few event times each.
    """

    def __init__(self, ptr: Index) -> None:
        self.n_strata, size = ptr.size - 1, np.diff(ptr)
        self._parts: list[tuple[slice | Index, slice | Index]] = []
        for n in np.unique(size[size > 0]).tolist():
            strata = np.flatnonzero(size == n)
            if strata.size == 1:
                begin = int(ptr[strata[0]])
                moved = begin + int(strata[0]) + 1
                self._parts.append((slice(begin, begin + n), slice(moved, moved + n)))
            else:
                places = ptr[strata, None] + np.arange(n)
                self._parts.append((places, places + strata[:, None] + 1))

    def later(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Sums (D, K) of each event time of a stratum and all later ones."""
        out = np.empty_like(values)
        for places, _ in self._parts:
            backwards = values[places][..., ::-1, :]
            out[places] = np.cumsum(backwards, axis=-2)[..., ::-1, :]
        return out

    def earlier(self, values: Matrix) -> Matrix:
        """Sums before each event time of its stratum, with a row for the end (D + S, K)."""
        out = np.zeros((values.shape[0] + self.n_strata, values.shape[1]))
        for places, moved in self._parts:
            out[moved] = np.cumsum(values[places], axis=-2)
        return out


class TimeEffectsLikelihood:
    """The likelihood of covariates (n, p) and q terms of time.

    Rows are in the caller's order, as those of `outcome`. `x` should have means near 0. Times of
    events, by stratum, are `time` (D,) with the pointers `stratum_ptr`.
    """

    def __init__(self, outcome: Outcome, x: Matrix, *, efron: bool) -> None:
        self.efron = efron
        live = np.flatnonzero(outcome.weight > 0)
        stratum, time = outcome.stratum[live], outcome.time[live]
        event = outcome.is_event[live]
        if not event.any():
            raise InputError(
                "no row has the event, so nothing can be estimated.",
                hint="check the coding of events.",
            )
        order = np.lexsort((time[event], stratum[event]))
        own, at = stratum[event][order], time[event][order]
        is_new = np.append(True, (own[1:] != own[:-1]) | (at[1:] != at[:-1]))
        self.time, of_group = at[is_new], own[is_new]
        self.stratum_ptr = np.searchsorted(of_group, np.arange(outcome.n_strata + 1))
        self._running = _RunningSums(self.stratum_ptr)
        entry = None if outcome.entry is None else outcome.entry[live]
        first, last = self._places(of_group, stratum, time, entry)
        kept = np.flatnonzero(last > first)
        order = kept[np.argsort(last[kept], kind="stable")]
        self.rows = rows = live[order]
        self.x, self.offset = np.ascontiguousarray(x[rows]), outcome.offset[rows]
        self.weight, self.event = outcome.weight[rows], event[order]
        self.first, self.last, self.stratum = first[order], last[order], stratum[order]
        n_groups = self.time.size
        self._ends = _GroupSums(self.last - 1, n_groups)
        begins = self.stratum_ptr[self.stratum]
        late = np.flatnonzero(self.first > begins)
        self._late = late[np.argsort(self.first[late], kind="stable")]
        self._begins = _GroupSums(self.first[self._late] - 1, n_groups)
        self.failed = np.flatnonzero(self.event)
        self.failed_group = self.last[self.failed] - 1
        n_failed = np.bincount(self.failed_group, minlength=n_groups)
        self.n_steps = n_failed if efron else np.ones_like(n_failed)
        self.failed_weight = np.bincount(
            self.failed_group, self.weight[self.failed], minlength=n_groups
        )

    def _places(
        self, of_group: Index, stratum: Index, time: Rows, entry: Rows | None
    ) -> tuple[Index, Index]:
        """The first event time at which each row is at risk, and the first at which no more."""
        known = np.unique(self.time)

        def place(strata: Index, times: Rows) -> Index:
            """A whole number that orders by stratum, then by the event times of all strata."""
            return strata * (known.size + 1) + np.searchsorted(known, times, side="right")

        groups = place(of_group, self.time)
        last = np.searchsorted(groups, place(stratum, time), side="right")
        if entry is None:
            return self.stratum_ptr[stratum], last
        return np.searchsorted(groups, place(stratum, entry), side="right"), last

    # ------------------------------------------------------------------------ a pass

    def evaluate(
        self, beta: Features, gamma: Features, terms: Sequence[TimeTerm]
    ) -> TimeEffectsPass:
        """Everything at coefficients (p,) and (q,); OverflowError if exponents are too large."""
        at = self._at(beta, gamma, terms)
        groups = self._ties(at, terms)
        weight = self.weight[self.failed]
        log_likelihood = float(weight @ at.exponent) - groups.log_denominator
        gradient, information = self._slopes(at, groups, terms)
        log_hazard = np.log(groups.alpha) - at.scale
        moments = information.diagonal() - groups.information.diagonal()
        return TimeEffectsPass(log_likelihood, gradient, information, moments, log_hazard)

    def scores(
        self, beta: Features, gamma: Features, terms: Sequence[TimeTerm]
    ) -> tuple[Index, Matrix]:
        """The part of rows in the gradient (n', p + q), and which rows of the outcome they are.

        Rows that are in no risk set have none.
        """
        at = self._at(beta, gamma, terms)
        groups, p = self._ties(at, terms), self.x.shape[1]
        whole, tied = self._extended(at.sums, terms), self._extended(groups.x_events, terms)
        center, of_all, of_tied = np.zeros((3, *whole.shape))
        for now, weight, share, rest in self._steps(at.at_risk, groups.of_events):
            mean = (whole[now] - share[:, None] * tied[now]) / rest[:, None]
            center[now] += mean / self.n_steps[now, None]
            of_all[now] += (weight / rest)[:, None] * mean
            of_tied[now] += (share * weight / rest)[:, None] * mean
        out = np.empty((at.v.size, whole.shape[1]))
        out[:, :p] = -self.x * self._expected(at, groups, groups.alpha, groups.beta)[:, None]
        for m, term in enumerate(terms):
            g = term.values
            moved = self._expected(at, groups, groups.alpha * g, groups.beta * g)
            out[:, p + m] = -self.x[:, term.column] * moved
        for j in range(whole.shape[1]):
            out[:, j] += self._expected(at, groups, of_all[:, j], of_tied[:, j])
        own, x = self.failed_group, self.x[self.failed]
        of_terms = [x[:, term.column] * term.values[own] for term in terms]
        seen = np.column_stack([x, *of_terms]) - center[own]
        out[self.failed] += self.weight[self.failed, None] * seen
        return self.rows, out

    def _at(self, beta: Features, gamma: Features, terms: Sequence[TimeTerm]) -> "_RiskSums":
        """Sums over the risk sets at some coefficients."""
        eta = self.x @ beta + self.offset
        top = np.full(self.stratum_ptr.size - 1, -np.inf)
        np.maximum.at(top, self.stratum, eta)
        v = self.weight * np.exp(eta - top[self.stratum])
        bases, of_times, shift = self._bases(gamma, terms)
        at_risk, sums = self._risk_sums(v, bases, of_times)
        exponent = eta[self.failed].copy()
        for g, term in zip(gamma, terms, strict=True):
            exponent += g * term.values[self.failed_group] * self.x[self.failed, term.column]
        scale = self._of_groups(top) + shift
        return _RiskSums(v, bases, of_times, scale, at_risk, sums, exponent)

    def _steps(self, at_risk: Rows, of_events: Rows) -> Iterator[tuple[Index, Rows, Rows, Rows]]:
        """The denominators of tied events: event times, weights, shares taken off, and the rest.

        By Breslow's method there is one for each event time.
        """
        for r in range(int(self.n_steps.max())):
            now = np.flatnonzero(self.n_steps > r)
            count = self.n_steps[now]
            share = r / count
            yield now, self.failed_weight[now] / count, share, at_risk[now] - share * of_events[now]

    def _of_groups(self, of_strata: Rows) -> Rows:
        return np.repeat(of_strata, np.diff(self.stratum_ptr))

    def _bases(
        self, gamma: Features, terms: Sequence[TimeTerm]
    ) -> tuple[list[tuple[int, _Levels | _Polynomials]], Matrix, Rows]:
        """The terms of each covariate, their products over times (D, K), and the logs left out."""
        slopes: dict[int, Rows] = {}
        for g, term in zip(gamma, terms, strict=True):
            slopes[term.column] = slopes.get(term.column, 0.0) + g * term.values
        bases, parts, shift = [], [], np.zeros(self.time.size)
        for column, slope in slopes.items():
            basis = _terms_of(self._values(column), slope)
            own, log = basis.of_times(slope)
            bases.append((column, basis))
            parts.append(own)
            shift += log
        self._check_memory([basis for _, basis in bases], [part.shape[1] for part in parts])
        of_times = np.ones((self.time.size, 1))
        for part in parts:
            of_times = (of_times[:, :, None] * part[:, None, :]).reshape(self.time.size, -1)
        return bases, of_times, shift

    def _check_memory(
        self, bases: Sequence[_Levels | _Polynomials], numbers: Sequence[int]
    ) -> None:
        """Refuse terms that would not fit; OverflowError if a smaller step may do with fewer."""
        n_terms = math.prod(numbers)
        need, free = self.time.size * n_terms * 8 * COPIES, free_memory()
        if free is not None and need > free:
            if any(isinstance(basis, _Polynomials) and basis.middles.size > 1 for basis in bases):
                raise OverflowError
            raise InputError(
                f"effects of {len(bases):,} covariates that are functions of time need "
                f"{n_terms:,} sums at each of {self.time.size:,} times of events, about "
                f"{need / 1e9:,.0f} GB of memory, but {free / 1e9:,.0f} GB are free.",
                hint="let fewer effects depend on time, round times or covariates, or fit "
                "`riskset.Cox` to rows of `riskset.time_interactions` with `at=50`.",
                argument="effects",
            )

    def _values(self, column: int) -> Rows:
        """Distinct values of a column; of many, the least and the largest and more than enough."""
        known = self.__dict__.setdefault("_known_values", {})
        if column not in known:
            known[column] = np.unique(self.x[:, column])
        return np.asarray(known[column])

    def _of_rows(
        self, rows: slice | Index, bases: Sequence[tuple[int, _Levels | _Polynomials]]
    ) -> Matrix:
        """Products of the terms of some rows (c, K)."""
        n = self.x[rows].shape[0]
        out = np.ones((n, 1))
        for column, basis in bases:
            own = basis.of_rows(self.x[rows, column])
            out = (out[:, :, None] * own[:, None, :]).reshape(n, -1)
        return out

    def _chunks(self, n_terms: int, n_rows: int) -> Iterator[slice]:
        size = max(1, CHUNK // max(1, n_terms))
        return (slice(a, min(a + size, n_rows)) for a in range(0, n_rows, size))

    def _risk_sums(
        self, v: Rows, bases: Sequence[tuple[int, _Levels | _Polynomials]], of_times: Matrix
    ) -> tuple[Rows, Matrix]:
        """Sums over the risk set of each event time of v (D,) and of v x (D, p).

        OverflowError if rounding is a large share of one.
        """
        n_groups, n_terms = of_times.shape
        factors = np.column_stack([np.ones(v.size), self.x]) * v[:, None]
        found = np.empty((n_groups, factors.shape[1]))
        size = np.zeros(n_groups)
        width = max(1, MAX_SUMS // of_times.size)
        for a in range(0, factors.shape[1], width):
            some = factors[:, a : a + width]
            sums = np.zeros((some.shape[1], n_groups, n_terms))
            for rows in self._chunks(n_terms, v.size):
                self._add(self._ends, rows, rows, some, bases, sums)
            away = np.zeros_like(sums) if self._late.size else None
            for rows in self._chunks(n_terms, self._late.size):
                self._add(self._begins, rows, self._late[rows], some, bases, away)
            for k, own in enumerate(sums):
                whole = self._later(own)
                if a + k == 0:  # of the sizes of what is added
                    for some_times in self._chunks(n_terms, n_groups):
                        parts = np.abs(whole[some_times] * of_times[some_times])
                        size[some_times] = parts.sum(axis=1)
                if away is not None:
                    whole = whole - self._later(away[k])
                found[:, a + k] = np.einsum("dk,dk->d", whole, of_times)
        at_risk = found[:, 0]
        is_exact = (at_risk > 0) & (np.finfo(np.float64).eps * size <= MAX_LOST * at_risk)
        if not is_exact.all():
            raise OverflowError
        return at_risk, np.ascontiguousarray(found[:, 1:])

    def _add(
        self,
        places: _GroupSums,
        chunk: slice,
        rows: slice | Index,
        factors: Matrix,
        bases: Sequence[tuple[int, _Levels | _Polynomials]],
        sums: NDArray[np.float64] | None,
    ) -> None:
        """Add the terms of a chunk of rows, times each of their factors (n, w), to (w, D, K)."""
        assert sums is not None
        terms, own = self._of_rows(rows, bases), factors[rows]
        for k in range(own.shape[1]):
            places.add(chunk, terms * own[:, k, None], sums[k])

    def _later(self, sums: Matrix) -> NDArray[np.floating]:
        """Sums of each event time of a stratum and all later ones.

        They have more digits if entries are taken off them.
        """
        wide = sums.astype(np.longdouble) if self._late.size else sums
        return self._running.later(wide)

    def _ties(self, at: "_RiskSums", terms: Sequence[TimeTerm]) -> "_TiedGroups":
        """What the denominators of the event times add, by either method for ties."""
        own, n_groups = self.failed_group, self.time.size
        risk = self.weight[self.failed] * np.exp(at.exponent - at.scale[own])
        of_events = np.bincount(own, risk, minlength=n_groups).astype(np.float64)
        x_events = np.zeros_like(at.sums)
        for j in range(at.sums.shape[1]):
            x_events[:, j] = np.bincount(own, risk * self.x[self.failed, j], minlength=n_groups)
        alpha, beta, square, cross, last = np.zeros((5, n_groups))
        total = float(self.failed_weight @ at.scale)
        for now, weight, share, rest in self._steps(at.at_risk, of_events):
            total += float(weight @ np.log(rest))
            alpha[now] += weight / rest
            beta[now] += share * weight / rest
            square[now] += weight / rest**2
            cross[now] += share * weight / rest**2
            last[now] += share**2 * weight / rest**2
        whole, tied = self._extended(at.sums, terms), self._extended(x_events, terms)
        information = -(whole.T * square) @ whole
        if self.efron:
            mixed = (whole.T * cross) @ tied
            information += mixed + mixed.T - (tied.T * last) @ tied
        return _TiedGroups(total, alpha, beta, risk, information, of_events, x_events)

    @staticmethod
    def _extended(sums: Matrix, terms: Sequence[TimeTerm]) -> Matrix:
        """Sums of covariates (D, p) with those of the terms of time beside them (D, p + q)."""
        more = [sums[:, term.column] * term.values for term in terms]
        return np.column_stack([sums, *more])

    def _slopes(
        self, at: "_RiskSums", groups: "_TiedGroups", terms: Sequence[TimeTerm]
    ) -> tuple[Features, Matrix]:
        """Gradient and information."""
        p, q = self.x.shape[1], len(terms)
        functions = [np.ones(self.time.size), *(term.values for term in terms)]
        expected = {}
        for a, b in combinations_with_replacement(range(q + 1), 2):
            of_time = functions[a] * functions[b]
            expected[a, b] = self._expected(
                at, groups, groups.alpha * of_time, groups.beta * of_time
            )
        columns = [term.column for term in terms]
        weight, own = self.weight[self.failed], self.failed_group
        gradient = np.empty(p + q)
        gradient[:p] = weight @ self.x[self.failed] - expected[0, 0] @ self.x
        for m, term in enumerate(terms):
            u = self.x[:, term.column]
            seen = float((weight * term.values[own]) @ u[self.failed])
            gradient[p + m] = seen - float(expected[0, m + 1] @ u)
        information = groups.information.copy()
        information[:p, :p] += (self.x.T * expected[0, 0]) @ self.x
        for m, j in enumerate(columns):
            block = (expected[0, m + 1] * self.x[:, j]) @ self.x
            information[:p, p + m] += block
            information[p + m, :p] += block
            for k in range(m, q):
                value = float((expected[m + 1, k + 1] * self.x[:, j]) @ self.x[:, columns[k]])
                information[p + m, p + k] += value
                if k > m:
                    information[p + k, p + m] += value
        return gradient, information

    def _expected(
        self, at: "_RiskSums", groups: "_TiedGroups", of_all: Rows, of_tied: Rows
    ) -> Rows:
        """Sums of numbers of the event times (D,) at which each row is at risk, by its risk (n,).

        At its own event, a row gets less by `of_tied`, which is 0 by Breslow's method.
        """
        before = self._running.earlier(at.of_times * of_all[:, None])
        out = np.empty(at.v.size)
        for rows in self._chunks(at.of_times.shape[1], at.v.size):
            s = self.stratum[rows]
            span = before[self.last[rows] + s] - before[self.first[rows] + s]
            out[rows] = at.v[rows] * np.einsum("ck,ck->c", span, self._of_rows(rows, at.bases))
        if self.efron:
            out[self.failed] -= groups.risk * of_tied[self.failed_group]
        return out


class _RiskSums(NamedTuple):
    """Sums over the risk set of each event time.

    Of the rows the risk `v` (n,) without functions of time, which `bases` and `of_times` (D, K)
    have, `at_risk` (D,) is the sum with them and `sums` (D, p) that with the covariates, both too
    small by the factor whose logs are `scale` (D,). `exponent` are those of the events.
    """

    v: Rows
    bases: Sequence[tuple[int, _Levels | _Polynomials]]
    of_times: Matrix
    scale: Rows
    at_risk: Rows
    sums: Matrix
    exponent: Rows


class _TiedGroups(NamedTuple):
    """What event times add, by either method for ties.

    The sum of the logs of all denominators; of each event time the hazard and, by Efron's method,
    what its events get less; the risk of each event; what means take off the information; and sums
    over the events of each time.
    """

    log_denominator: float
    alpha: Rows
    beta: Rows
    risk: Rows
    information: Matrix
    of_events: Rows
    x_events: Matrix
