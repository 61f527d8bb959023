"""How far each covariate spreads, to compare coefficients of covariates in different units."""

import numpy as np

from riskset._runtime import Runtime
from riskset._types import Features
from riskset.data.design import Design

__all__ = ["column_spread"]


def column_spread(design: Design, runtime: Runtime) -> Features:
    r"""Standard deviation of each column in the user's units, 1 for columns of zeros and ones.

    A coefficient times the spread is the log hazard ratio of one standard deviation, or of having
    a characteristic at all. As a penalty factor it makes an L1 penalty independent of the units.

    Returns
    -------
    (p,) float64, > 0
        1 for constant columns.
    """
    spread = np.ones(design.n_features)
    others = np.flatnonzero(~design.is_binary)
    if others.size:
        ones = np.ones(design.n_rows)
        mean = design.cross(ones, others, runtime=runtime) / design.n_rows
        square = design.cross(ones, others, runtime=runtime, power=2) / design.n_rows
        # Stored columns have a mean near 0 and a spread near 1, so that nothing cancels here.
        deviation = np.sqrt(np.maximum(square - mean**2, 0.0)) * design.scale[others]
        spread[others] = np.where(deviation > 0, deviation, 1.0)
    return spread
