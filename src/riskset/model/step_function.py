"""Functions of time that are constant between the event times of a fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from riskset._types import AnyArray, Rows

__all__ = ["StepFunction", "step_functions"]


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A predicted function of time: survival, cumulative hazard or cumulative incidence of a row.

    It is called with a time or an array of times, in the unit of the fit, and is constant between
    two event times, before the first and after the last. Metrics and scorers of scikit-survival
    call it, too.

    Attributes
    ----------
    x : (m,) float64
        The event times of the fit, ascending; of a stratified fit, those of the row's stratum.

    Examples
    --------
    >>> import riskset as rs
    >>> cohort = rs.simulate_cox(200, 3, 0.5, 1)
    >>> model = rs.Cox().fit(cohort.X, rs.Surv(cohort.time, cohort.event))
    >>> survival = model.predict_survival_function(cohort.X)
    >>> len(survival), float(survival[0](-1.0))
    (200, 1.0)
    >>> bool(survival[0](survival[0].x[-1]) == survival[0].y[-1])
    True
    """

    x: Rows
    _values: Callable[[AnyArray], AnyArray] = field(repr=False)

    @property
    def y(self) -> NDArray[np.float64]:
        """Values (m,) from each of the times `x` on."""
        return self(self.x)

    @property
    def domain(self) -> tuple[float, float]:
        """The times that are asked for, from 0 on; there is no last one."""
        return 0.0, np.inf

    def __call__(self, times: object) -> NDArray[np.float64]:
        """Return the values at some times, of the shape of `times`."""
        at = np.asarray(times, dtype=np.float64)
        return np.asarray(self._values(at.reshape(-1)), dtype=np.float64).reshape(at.shape)


def step_functions(
    jumps: Sequence[Rows], values: Sequence[Callable[[AnyArray], AnyArray]]
) -> NDArray[np.object_]:
    """One function for each row (k,), from its event times and what gives its values."""
    out = np.empty(len(values), dtype=object)
    out[:] = [StepFunction(x, row) for x, row in zip(jumps, values, strict=True)]
    return out
