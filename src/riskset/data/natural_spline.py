"""The natural cubic spline ``ns`` of R, as a function for formulas."""

from collections.abc import Callable
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Rows

__all__ = ["natural_spline", "spline_basis"]

ORDER = 4


def natural_spline() -> Callable[..., Any]:
    """``ns(x, df=None, knots=None, boundary_knots=None)`` for formulaic, which keeps its knots.

    The columns are those of ``splines::ns`` of R: cubic between the knots, linear beyond the
    boundary knots, without the constant. With `df`, there are df - 1 knots at quantiles.
    """
    from formulaic.materializers.types import FactorValues
    from formulaic.utils.stateful_transforms import stateful_transform

    @stateful_transform  # type: ignore[untyped-decorator]
    def ns(
        x: Any,
        df: int | None = None,
        knots: Any = None,
        boundary_knots: Any = None,
        _state: dict[str, Any] = {},  # noqa: B006  (formulaic passes its own)
    ) -> Any:
        values = np.asarray(x, dtype=np.float64)
        if not _state:
            inner, outer = _knots(values, df, knots, boundary_knots)
            _state |= {"knots": inner.tolist(), "boundary": outer.tolist()}
        basis = spline_basis(values, np.array(_state["knots"]), np.array(_state["boundary"]))
        columns = {j + 1: column for j, column in enumerate(basis.T)}
        return FactorValues(
            columns,
            kind="numerical",
            spans_intercept=False,
            column_names=tuple(columns),
            format="{name}[{field}]",
            encoded=False,
        )

    return ns  # type: ignore[no-any-return]


def _knots(values: Rows, df: Any, knots: Any, boundary: Any) -> tuple[Rows, Rows]:
    if df is not None and knots is not None:
        raise InputError("ns() has both `df` and `knots`.", hint="keep one of them.")
    outer = np.array([values.min(), values.max()] if boundary is None else sorted(boundary))
    if outer.size != 2 or not outer[0] < outer[1]:
        raise InputError("ns() needs two different boundary knots.", hint="the column is constant.")
    if knots is not None:
        inner = np.sort(np.atleast_1d(np.asarray(knots, dtype=np.float64)))
    else:
        n = 1 if df is None else df
        if not isinstance(n, int) or n < 1:
            raise InputError(f"`df` of ns() must be a whole number above 0, not {n!r}.")
        inside = values[(values >= outer[0]) & (values <= outer[1])]
        inner = np.quantile(inside, np.linspace(0, 1, n + 1)[1:-1])
    if inner.size and not (outer[0] < inner[0] and inner[-1] < outer[1]):
        raise InputError(
            "the knots of ns() must lie between its boundary knots.", hint="use a smaller `df`."
        )
    return inner, outer


def spline_basis(x: Rows, inner: Rows, outer: Rows) -> AnyArray:
    """The columns of the spline (n, k + 1), of k inner knots and two outer ones."""
    from scipy.interpolate import BSpline

    knots = np.concatenate([[outer[0]] * ORDER, inner, [outer[1]] * ORDER])
    splines = BSpline(knots, np.eye(knots.size - ORDER), ORDER - 1)
    clipped = np.clip(x, *outer)
    # Linear beyond the boundary knots.
    basis = splines(clipped) + (x - clipped)[:, None] * splines.derivative()(clipped)
    curvature = splines.derivative(2)(outer)[:, 1:]
    # Combinations without curvature at both boundaries, and without the constant (first column).
    rotation = np.linalg.qr(curvature.T, mode="complete")[0]
    return np.asarray(basis[:, 1:] @ rotation[:, 2:])
