"""Sums of a logistic likelihood over rows of eight numbers, in vector code (see `_vector`).

The eight are lanes, with one sign and one unit of weight for a row; or they are eight rows of one
likelihood, each with a sign and a weight of its own: then `sign` has two dimensions, and there is
no `unit`. All sums are taken by blocks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from riskset._types import AnyArray, Matrix, Rows
from riskset.kernels._vector import in_vectors
from riskset.kernels._vector_sums import _FIRST, _I64, _ONE, _ZERO, BLOCK, _all, _exp, _log, _Sums

__all__ = ["moments", "residuals", "slopes"]

MIN_EXPONENT = -700.0
"""exp of less is taken for exp of this, 1e-304."""


class _Logistic(_Sums):
    """What the loops over rows are made of."""

    def sign_of(self, i: Any) -> Any:
        sign = self.data("sign")
        return (
            self.load(sign, i)
            if self.kinds["sign"].ndim == 2
            else self.spread(self.element(sign, i))
        )

    def weight_of(self, i: Any) -> Any:
        count = self.counts(i)
        if not self.is_given("unit"):
            return count
        return self.builder.fmul(self.spread(self.element(self.data("unit"), i)), count)

    def by_blocks(self, n_totals: int, body: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """`loop` over the rows from `first` to `last`, all totals from 0 and summed by blocks."""
        first, last = self.values["first"], self.values["last"]
        b, size = self.builder, ir.Constant(_I64, BLOCK)

        def block(k: Any, current: list[Any]) -> list[Any]:
            begin = b.add(first, b.mul(k, size))
            end = b.add(begin, size)
            end = b.select(b.icmp_signed("<", end, last), end, last)
            parts = self.loop(begin, end, [_ZERO] * n_totals, body)
            return [b.fadd(total, part) for total, part in zip(current, parts, strict=True)]

        n_blocks = b.sdiv(b.add(b.sub(last, first), b.sub(size, _ONE)), size)
        return self.loop(_FIRST, n_blocks, [_ZERO] * n_totals, block)

    def miss(self, z: Any) -> tuple[Any, Any, Any]:
        """With u = exp(-|z|): u, q = 1 / (1 + u), and 1 / (1 + exp(z))."""
        b = self.builder
        is_positive = b.fcmp_ordered(">=", z, _ZERO)
        x = b.select(is_positive, b.fneg(z), z)
        u = _exp(b, b.select(b.fcmp_ordered(">", x, _all(MIN_EXPONENT)), x, _all(MIN_EXPONENT)))
        q = b.fdiv(_all(1.0), b.fadd(_all(1.0), u))
        return u, q, b.select(is_positive, b.fmul(u, q), q)

    def log_1p(self, u: Any) -> Any:
        """log(1 + u) to the last place for small u, too (Kahan's correction of 1 + u)."""
        b = self.builder
        one_u = b.fadd(_all(1.0), u)
        seen = b.fsub(one_u, _all(1.0))
        full = b.fmul(_log(b, one_u), b.fdiv(u, seen))
        return b.select(b.fcmp_ordered(">", seen, _ZERO), full, u)


def _emit_moments(e: _Logistic) -> None:
    b = e.builder
    eta, out = e.data("eta", "out")

    def row(i: Any, totals: list[Any]) -> list[Any]:
        x, w = e.load(eta, i), e.weight_of(i)
        event = b.select(b.fcmp_ordered(">", e.sign_of(i), _ZERO), w, _ZERO)
        wx = b.fmul(w, x)
        terms = (event, b.fsub(w, event), wx, b.fmul(wx, x))
        return [b.fadd(total, term) for total, term in zip(totals, terms, strict=True)]

    for k, total in enumerate(e.by_blocks(4, row)):
        e.store(total, out, ir.Constant(_I64, k))


def _emit_slopes(e: _Logistic) -> None:
    b = e.builder
    eta, intercept, out = e.data("eta"), e.load(e.data("intercept"), _FIRST), e.data("out")

    def row(i: Any, totals: list[Any]) -> list[Any]:
        s, w = e.sign_of(i), e.weight_of(i)
        u, q, miss = e.miss(b.fmul(s, b.fadd(e.load(eta, i), intercept)))
        first = b.fmul(s, b.fmul(w, miss))
        second = b.fmul(w, b.fmul(u, b.fmul(q, q)))
        bend = b.fsub(b.fmul(_all(2.0), miss), _all(1.0))
        terms = (first, second, b.fmul(s, b.fmul(second, bend)))
        return [b.fadd(total, term) for total, term in zip(totals, terms, strict=True)]

    for k, total in enumerate(e.by_blocks(3, row)):
        e.store(total, out, ir.Constant(_I64, k))


def _emit_residuals(e: _Logistic) -> None:
    b = e.builder
    eta, intercept = e.data("eta"), e.load(e.data("intercept"), _FIRST)

    def row(i: Any, totals: list[Any]) -> list[Any]:
        s, w = e.sign_of(i), e.weight_of(i)
        z = b.fmul(s, b.fadd(e.load(eta, i), intercept))
        u, q, miss = e.miss(z)
        if e.is_given("residual"):
            e.store(b.fmul(s, b.fmul(w, miss)), e.data("residual"), i)
        if e.is_given("variance"):
            e.store(b.fmul(w, b.fmul(u, b.fmul(q, q))), e.data("variance"), i)
        # A z that is not a number must show in the likelihood.
        high = b.select(b.fcmp_ordered(">=", z, _ZERO), _ZERO, b.fneg(z))
        term = b.fmul(w, b.fadd(high, e.log_1p(u)))
        # An infinite z of a row that does not count must not.
        return [b.fsub(totals[0], b.select(b.fcmp_ordered(">", w, _ZERO), term, _ZERO))]

    (total,) = e.by_blocks(1, row)
    e.store(total, e.data("value"), _FIRST)


def _rows(
    eta: Matrix, sign: AnyArray, unit: Rows | None, count: AnyArray, first: int, last: int
) -> tuple[Matrix, Matrix, Matrix]:
    w = np.asarray(count[first:last], dtype=np.float64)
    s = sign[first:last]
    return (
        eta[first:last],
        s if s.ndim == 2 else s[:, None],
        w if unit is None else unit[first:last, None] * w,
    )


def _miss(z: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    u = np.exp(np.maximum(-np.abs(z), MIN_EXPONENT))
    q = 1.0 / (1.0 + u)
    return u, q, np.where(z >= 0, u * q, q)


@in_vectors(_emit_moments, _Logistic)
def moments(
    eta: Matrix, sign: AnyArray, unit: Rows | None, count: AnyArray, first: int, last: int,
    out: Matrix,
) -> None:  # fmt: skip
    """Weights of events and of the others, and weighted sums of eta and its square (4, 8)."""
    x, s, w = _rows(eta, sign, unit, count, first, last)
    for k, term in enumerate((w * (s > 0), w * (s < 0), w * x, w * x * x)):
        out[k] = term.sum(axis=0)


@in_vectors(_emit_slopes, _Logistic)
def slopes(
    eta: Matrix, sign: AnyArray, unit: Rows | None, count: AnyArray, first: int, last: int,
    intercept: Rows, out: Matrix,
) -> None:  # fmt: skip
    """First three derivatives in the intercept, of the second and third the negative (3, 8)."""
    x, s, w = _rows(eta, sign, unit, count, first, last)
    u, q, miss = _miss(s * (x + intercept))
    v = w * u * q * q
    for k, term in enumerate((s * w * miss, v, s * v * (2.0 * miss - 1.0))):
        out[k] = term.sum(axis=0)


@in_vectors(_emit_residuals, _Logistic)
def residuals(
    eta: Matrix, sign: AnyArray, unit: Rows | None, count: AnyArray, first: int, last: int,
    intercept: Rows, residual: Matrix | None, variance: Matrix | None, value: Rows,
) -> None:  # fmt: skip
    """Residuals and variances, each if asked for, and the log likelihood (8,)."""
    x, s, w = _rows(eta, sign, unit, count, first, last)
    z = s * (x + intercept)
    u, q, miss = _miss(z)
    if residual is not None:
        residual[first:last] = s * w * miss
    if variance is not None:
        variance[first:last] = w * u * q * q
    term = np.where(z >= 0, 0.0, -z) + np.log1p(u)
    value[:] = -np.multiply(w, term, out=np.zeros_like(term), where=w > 0).sum(axis=0)
