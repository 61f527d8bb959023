"""What a fit with a shared frailty keeps beside its coefficients."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from riskset._errors import InputError
from riskset._types import AnyArray, Features, Index, Matrix, Rows
from riskset.data.checks import Places
from riskset.data.labels import as_labels
from riskset.model.baseline import Baseline
from riskset.model.frailty import FRAILTIES, Clusters, FrailtyDistribution, FrailtyName

__all__ = ["FRAILTY", "FrailtyVarianceTest", "KeptFrailties", "MarginalBaseline"]

FRAILTY = "frailty_"
"""Prefix of the arrays of frailties."""
NUMBERS = ("variance", "is_estimated", "integrated", "without", "df")
BY_CLUSTER = ("log", "error", "rows", "events")


@dataclass(frozen=True)
class FrailtyVarianceTest:
    r"""Likelihood-ratio test that the variance of the frailties is 0.

    Under the null hypothesis the variance is at its smallest value, so that the statistic is 0 with
    probability one half and chi-square with one degree of freedom otherwise. Self and Liang (1987),
    Journal of the American Statistical Association 82, 605-610,
    doi:10.1080/01621459.1987.10478472.

    Attributes
    ----------
    statistic : float
        Twice the difference of the integrated log likelihoods; NaN for a variance that was given.
    """

    statistic: float

    @property
    def p_value(self) -> float:
        """Tail probability of the mixture."""
        if np.isnan(self.statistic):
            return float("nan")
        return 0.5 * float(chdtrc(1, self.statistic)) if self.statistic > 0 else 1.0


@dataclass(frozen=True, eq=False)
class KeptFrailties:
    """The frailties of a fit, and its variances.

    `labels` (n_clusters,) are texts of JSON. `log`, `error`, `rows`, `events` (n_clusters,) are log
    frailties, their standard errors, numbers of rows and weighted events. `covariance`,
    `gray_covariance` (p, p) and `standard_error` (p,) are in the user's units, in which the square
    of a standard error may be beyond the largest number.
    """

    labels: AnyArray
    log: Clusters
    error: Clusters
    rows: Clusters
    events: Clusters
    variance: float
    is_estimated: bool
    integrated: float
    without: float
    df: float
    covariance: Matrix
    gray_covariance: Matrix
    standard_error: Features

    @property
    def names(self) -> list[Any]:
        """The labels as they were given; JSON has lists for tuples."""
        read = (json.loads(str(label)) for label in self.labels)
        return [tuple(label) if isinstance(label, list) else label for label in read]

    @property
    def test(self) -> FrailtyVarianceTest:
        """Of an estimated variance."""
        if not self.is_estimated:
            return FrailtyVarianceTest(float("nan"))
        return FrailtyVarianceTest(max(0.0, 2.0 * (self.integrated - self.without)))

    def codes_of(self, cluster: object, n_rows: int) -> Index:
        """The cluster of the fit of each row (n_rows,)."""
        labels = as_labels(cluster, "cluster", n_rows, Places({"cluster": "`cluster`"})).tolist()
        names = self.names
        known = {label: code for code, label in enumerate(names)}
        texts = {str(label): code for code, label in enumerate(names)}  # as read from text files
        codes = np.empty(n_rows, dtype=np.int64)
        for i, label in enumerate(labels):
            code = known.get(label, texts.get(str(label)))
            if code is None:
                raise InputError(
                    f"`cluster` has {label!r} (row {i:,}), a cluster that was not in the fit, so "
                    "its frailty is not known.",
                    hint="leave out `cluster` for predictions that are averaged over the "
                    "frailties.",
                )
            codes[i] = code
        return codes

    def to_arrays(self) -> dict[str, AnyArray]:
        """Plain arrays; see `from_arrays`."""
        arrays: dict[str, AnyArray] = {f"{FRAILTY}{n}": getattr(self, n) for n in BY_CLUSTER}
        numbers = np.array([float(getattr(self, name)) for name in NUMBERS])
        return arrays | {
            f"{FRAILTY}labels": self.labels,
            f"{FRAILTY}numbers": numbers,
            "variance": self.covariance,
            "gray_variance": self.gray_covariance,
            "standard_error": self.standard_error,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> "KeptFrailties":
        """From what `to_arrays` gave; a document alone has standard errors without covariances."""
        kept: dict[str, Any] = dict(zip(NUMBERS, arrays[f"{FRAILTY}numbers"].tolist(), strict=True))
        kept["is_estimated"] = bool(kept["is_estimated"])
        kept |= {n: np.asarray(arrays[f"{FRAILTY}{n}"], dtype=np.float64) for n in BY_CLUSTER}
        error = np.asarray(arrays["standard_error"], dtype=np.float64)
        alone = np.full((error.size, error.size), np.nan)
        with np.errstate(over="ignore"):
            np.fill_diagonal(alone, error**2)
        return cls(
            labels=np.asarray(arrays[f"{FRAILTY}labels"]),
            **kept,
            covariance=np.asarray(arrays.get("variance", alone)),
            gray_covariance=np.asarray(arrays.get("gray_variance", np.full_like(alone, np.nan))),
            standard_error=error,
        )

    def marginal(self, baseline: Baseline, kind: FrailtyName) -> Baseline:
        """The baseline, averaged over the frailties."""
        if self.variance == 0.0:
            return baseline
        given = {name: getattr(baseline, name) for name in Baseline.__dataclass_fields__}
        return MarginalBaseline(**given, distribution=FRAILTIES[kind], variance=self.variance)


@dataclass(frozen=True, eq=False)
class MarginalBaseline(Baseline):
    r"""Survival that is averaged over the frailties z.

    .. math:: S(t \mid x) = E \left[ e^{-z H(t \mid x)} \right]

    `cumulative_hazard` is :math:`-\log S`, and not a multiple of that of other covariates.
    """

    distribution: FrailtyDistribution
    variance: float

    def survival(
        self, eta: Rows, times: object, stratum: object = None, places: Places | None = None
    ) -> Matrix:
        """Probability of no event by each time, averaged over the frailties."""
        hazard = super().cumulative_hazard(eta, times, stratum, places)
        return self.distribution.survival(hazard, self.variance)

    def cumulative_hazard(
        self, eta: Rows, times: object, stratum: object = None, places: Places | None = None
    ) -> Matrix:
        """Minus the log of `survival`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.abs(np.log(self.survival(eta, times, stratum, places))))
