"""The exponential for kernels, which compute their own: see `exp_block` and `TAYLOR`.

A call of the C library for each row would take most of the time of a pass over risk sets, and would
keep the compiler from vector instructions. Cody and Waite's reduction, x = k ln 2 + r with k whole
and |r| <= ln 2 / 2, leaves a polynomial in r and a power of two, which is made from its bits. ln 2
is given in two parts, the first with so few digits that k times it is exact.

References
----------
Cody & Waite (1980), Software Manual for the Elementary Functions, chapter 6.
"""

import numpy as np
from numpy.typing import NDArray

from riskset._types import Index
from riskset.kernels._jit import kernel

__all__ = ["LN2_HIGH", "LN2_LOW", "LOG2E", "TAYLOR", "exp_block"]

LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
TAYLOR = (
    1.6059043836821613e-10, 2.08767569878681e-09, 2.505210838544172e-08, 2.755731922398589e-07,
    2.7557319223985893e-06, 2.48015873015873e-05, 1.984126984126984e-04, 1.388888888888889e-03,
    8.333333333333333e-03, 4.1666666666666664e-02, 1.6666666666666666e-01, 0.5, 1.0, 1.0,
)  # fmt: skip
"""1 / k! from k = 13 down to 0: what is left out is below half a unit in the last place."""


@kernel
def exp_block(x: NDArray[np.float64], power: Index) -> None:
    """Replace x by exp(x), for -700 < x < 700; written so that it becomes vector instructions.

    x = k ln 2 + r, a polynomial in r, and 2^k from its bits: see the head of this module.
    """
    scale = power.view(np.float64)
    for i in range(x.size):
        k = np.floor(x[i] * LOG2E + 0.5)
        power[i] = (np.int64(k) + 1023) << 52
        r = (x[i] - k * LN2_HIGH) - k * LN2_LOW
        # Spelled out: a loop here would keep the outer one from becoming vector code.
        p = TAYLOR[0]
        p = p * r + TAYLOR[1]
        p = p * r + TAYLOR[2]
        p = p * r + TAYLOR[3]
        p = p * r + TAYLOR[4]
        p = p * r + TAYLOR[5]
        p = p * r + TAYLOR[6]
        p = p * r + TAYLOR[7]
        p = p * r + TAYLOR[8]
        p = p * r + TAYLOR[9]
        p = p * r + TAYLOR[10]
        p = p * r + TAYLOR[11]
        p = p * r + TAYLOR[12]
        p = p * r + TAYLOR[13]
        x[i] = p
    for i in range(x.size):
        x[i] *= scale[i]
