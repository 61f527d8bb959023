"""Results of a bootstrap, and their intervals."""

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from riskset._errors import InputError, RisksetWarning
from riskset._types import Features, Matrix, is_count
from riskset.data.frame import data_frame
from riskset.estimators._interval import ConfidenceInterval
from riskset.infer.bootstrap_intervals import (
    BootstrapInterval,
    BootstrapIntervalType,
    interval_ends,
    least_replicates,
)
from riskset.model.penalty import Penalty
from riskset.solve.result import UNCERTIFIED

__all__ = ["FAILED", "Bootstrap", "check_interval", "warn"]

FAILED = ("not_estimable", *UNCERTIFIED, "no_penalty")
"""Statuses of replicates without an estimate."""


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """Bootstrap estimates of selected coefficients.

    Attributes
    ----------
    names : tuple of str
        The covariates.
    coef : (q,) float64
        Estimates of the fit.
    replicates : (B, q) float64
        Estimates in each resample. They may be infinite; NaN means no estimate.
    statuses : tuple of str
        Status of each replicate: "converged", "infinite_estimate", "undecided" or "max_iter";
        "not_estimable" if a covariate does not vary in any risk set of the resample, or repeats
        others there; with `retune`, "no_penalty" if no penalty could be chosen in the resample.
    seed : int
    n_units : int
        Number of rows or clusters in each resample.
    unit : {"row", "cluster"}
    penalties : tuple of Penalty or None, or None
        Penalties chosen in each resample, with `retune`.
    reasons : tuple of str
        Reason why no penalty could be chosen in a resample; otherwise empty.
    labels : tuple of str
        What plots call the covariates: their labels, or names.

    Examples
    --------
    >>> import riskset as rs
    >>> model = rs.Cox(rs.L1(20.0, unpenalized=["swang1"])).fit(rs.load_rhc())
    >>> found = model.bootstrap(100, parameters=["swang1"], seed=1)
    >>> found.status_counts
    {'converged': 100}
    >>> float(found.interval().lower[0]) < float(found.coef[0]) < float(found.interval().upper[0])
    True
    """

    names: tuple[str, ...]
    coef: Features
    replicates: Matrix
    statuses: tuple[str, ...]
    seed: int
    n_units: int
    unit: str
    penalties: tuple[Penalty | None, ...] | None
    reasons: tuple[str, ...]
    labels: tuple[str, ...]
    _accelerate: Callable[[], Features]
    _library: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        more = f" and {len(self.names) - 1:,} more" if len(self.names) > 1 else ""
        counts = ", ".join(f"{count:,} {status}" for status, count in self.status_counts.items())
        return (
            f"Bootstrap({len(self.statuses):,} replicates of {self.names[0]!r}{more}: {counts}; "
            f"{self.n_units:,} {self.unit}s drawn, seed {self.seed})"
        )

    @functools.cached_property
    def acceleration(self) -> Features:
        """Acceleration for BCa intervals (q,); see `riskset.infer.bootstrap.acceleration`.

        Computed at the first access, because it takes time with many coefficients.
        """
        return self._accelerate()

    def __getstate__(self) -> dict[str, Any]:
        """Without the data that the acceleration is made of."""
        known = self.acceleration
        return self.__dict__ | {"_accelerate": None, "acceleration": known}

    @property
    def status_counts(self) -> Mapping[str, int]:
        """Number of replicates with each status."""
        return dict(Counter(self.statuses).most_common())

    @property
    def n_failed(self) -> int:
        """Number of replicates without an estimate of some coefficient."""
        return int(np.isnan(self.replicates).any(axis=1).sum())

    @property
    def bias(self) -> Features:
        """Mean of the replicates minus the estimate (q,). NaN if a replicate is infinite."""
        return self._finite(np.nanmean) - self.coef

    @property
    def standard_error(self) -> Features:
        """Standard deviation of the replicates (q,). NaN if a replicate is infinite."""
        return self._finite(lambda values, axis: np.nanstd(values, axis=axis, ddof=1))

    def _finite(self, of: Any) -> Features:
        out = np.full(len(self.names), np.nan)
        enough = (~np.isnan(self.replicates)).sum(axis=0) > 1
        columns = np.flatnonzero(enough & ~np.isinf(self.replicates).any(axis=0))
        columns = columns[np.isfinite(self.coef[columns])]
        out[columns] = of(self.replicates[:, columns], axis=0)
        return out

    def interval(
        self, level: float = 0.95, type: BootstrapIntervalType = "percentile"
    ) -> ConfidenceInterval:
        r"""Compute confidence intervals from the replicates.

        Let :math:`q_p` be the order statistic :math:`(B + 1) p` of the replicates, :math:`\alpha =
        (1 - level) / 2`, and :math:`\hat\beta` the estimate.

        Parameters
        ----------
        level : float
            Coverage.
        type : {"percentile", "basic", "normal", "bca"}
            :math:`(q_\alpha, q_{1 - \alpha})`;
            :math:`(2 \hat\beta - q_{1 - \alpha}, 2 \hat\beta - q_\alpha)`;
            :math:`\hat\beta - bias \pm z \, se`; percentiles at levels corrected for the bias of
            the median and for a standard error that changes with the coefficient (BCa).

        Returns
        -------
        ConfidenceInterval
            May be infinite if replicates are. NaN if not defined, with a warning that gives the
            reason.

        Raises
        ------
        InputError
            If there are too few replicates for the level: 95 % needs 39, 99 % needs 199.

        References
        ----------
        Efron and Tibshirani (1993), An Introduction to the Bootstrap, chapters 13 and 14.
        DiCiccio and Efron (1996), Statistical Science 11, 189-228, doi:10.1214/ss/1032280214.
        """
        check_interval(len(self.statuses), level, type)
        accelerations = self.acceleration if type == "bca" else np.zeros(len(self.names))
        ends = [
            interval_ends(type, estimate, values, level, acceleration=a)
            for estimate, values, a in zip(self.coef, self.replicates.T, accelerations, strict=True)
        ]
        self._tell(type, level, ends)
        details = {
            "type": type,
            "replicates": len(self.statuses),
            "seed": self.seed,
            "unit": self.unit,
            "statuses": self.status_counts,
            "retuned": self.penalties is not None,
        }
        lower, upper = (np.array([getattr(e, side) for e in ends]) for side in ("lower", "upper"))
        return ConfidenceInterval("bootstrap", level, self.names, lower, upper, details)

    def _tell(
        self, type: BootstrapIntervalType, level: float, ends: Sequence[BootstrapInterval]
    ) -> None:
        """Warn of intervals that are not what was asked for."""
        for j, found in enumerate(ends):
            name = self.names[j]
            if np.isnan(found.lower):
                why, hint = self._why_undefined(j, type, level)
                warn(f"the {type} interval of {name!r} is not defined (NaN): {why}.", hint)
            elif found.is_extreme:
                warn(
                    f"the BCa interval of {name!r} reaches beyond all {len(self.statuses):,} "
                    "replicates; the outermost stands in its place.",
                    "ask for more replicates.",
                )

    def _why_undefined(self, j: int, type: BootstrapIntervalType, level: float) -> tuple[str, str]:
        values = self.replicates[:, j]
        left, least = int((~np.isnan(values)).sum()), least_replicates(level)
        if np.isnan(self.coef[j]):
            return "it has no estimate", "leave it out, or those that it repeats."
        if left < least:
            why = f"only {left:,} replicates have an estimate, and {least:,} are needed"
            return why, "ask for more replicates."
        if not np.isfinite(self.coef[j]):
            return "its estimate is infinite", "use `type='percentile'`."
        if type == "normal":
            why = f"{int(np.isinf(values).sum()):,} replicates are infinite"
            return why, "use `type='percentile'`."
        if np.isnan(self.acceleration[j]):
            return "its acceleration is not known", "use `type='percentile'`."
        return (
            "nearly all replicates lie on one side of the estimate",
            "ask for more replicates, or use `type='percentile'`.",
        )

    def summary(self, *, level: float = 0.95, type: BootstrapIntervalType = "percentile") -> Any:
        """Return a data frame with one row per coefficient.

        Columns: ``covariate``, ``coef``, ``bias``, ``standard_error``, ``lower``, ``upper``, and
        the numbers of ``infinite`` and ``failed`` replicates.
        """
        interval = self.interval(level, type)
        columns = {
            "covariate": np.array(self.names, dtype=object),
            "coef": self.coef,
            "bias": self.bias,
            "standard_error": self.standard_error,
            "lower": interval.lower,
            "upper": interval.upper,
            "infinite": np.isinf(self.replicates).sum(axis=0),
            "failed": np.isnan(self.replicates).sum(axis=0),
        }
        return data_frame(columns, self._library)

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with the columns replicate, covariate, coef and status."""
        n, q = self.replicates.shape
        columns = {
            "replicate": np.repeat(np.arange(n), q),
            "covariate": np.tile(np.array(self.names, dtype=object), n),
            "coef": self.replicates.ravel(),
            "status": np.repeat(np.array(self.statuses, dtype=object), q),
        }
        return data_frame(columns, library or self._library)


def check_interval(replicates: object, level: float, type: object) -> None:
    """Refuse a type of interval that there is not, or that has too few replicates."""
    if type not in get_args(BootstrapIntervalType):
        raise InputError.wrong_option("type", type, get_args(BootstrapIntervalType))
    least = least_replicates(level)
    if not is_count(replicates):
        raise InputError(
            f"`replicates` must be a whole number of at least {least:,}, but it is {replicates!r}."
        )
    if replicates < least:
        raise InputError(
            f"an interval with level={level:g} needs at least {least:,} replicates, but there are "
            f"{replicates!r}.",
            hint="with fewer its ends would lie beyond all of them; 1,000 are usual.",
        )


def warn(message: str, hint: str) -> None:
    """Warn the caller of the method whose helper calls this."""
    warnings.warn(f"{message}\nHint: {hint}", RisksetWarning, stacklevel=4)
