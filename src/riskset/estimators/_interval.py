"""Confidence intervals of coefficients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from riskset._types import Features
from riskset.data.frame import data_frame

__all__ = ["ConfidenceInterval"]


@dataclass(frozen=True, eq=False)
class ConfidenceInterval:
    """Confidence intervals of coefficients, as log hazard ratios.

    Attributes
    ----------
    method : str
        "wald", "robust", "profile" or "bootstrap".
    level : float
    names : tuple of str
    lower, upper : (q,) float64
        NaN if the interval is not defined, infinite if it has no limit.
    details : mapping
        Details of the method. For a bootstrap: type of interval, numbers of replicates by status,
        seed.

    Examples
    --------
    >>> interval = ConfidenceInterval("wald", 0.95, ("age",), np.array([0.1]), np.array([0.3]))
    >>> interval["age"]
    (0.1, 0.3)
    """

    method: str
    level: float
    names: tuple[str, ...]
    lower: Features
    upper: Features
    details: Mapping[str, object] = field(default_factory=dict)

    def __getitem__(self, name: str) -> tuple[float, float]:
        return self.bounds[name]

    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]:
        """Lower and upper limit by name."""
        pairs = zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        return dict(zip(self.names, pairs, strict=True))

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with the columns covariate, lower and upper."""
        columns = {
            "covariate": np.array(self.names, dtype=object),
            "lower": self.lower,
            "upper": self.upper,
        }
        return data_frame(columns, library)
