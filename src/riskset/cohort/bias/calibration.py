"""Calibration of estimates with negative and positive controls."""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from riskset._errors import CohortError, InputError, counted
from riskset._messages import Note, Value
from riskset._types import AnyArray
from riskset.cohort.bias.empirical_null.fit import Null, fit_null
from riskset.cohort.bias.empirical_null.posterior import NullPosterior, null_posterior
from riskset.cohort.bias.empirical_null.regression import ErrorModel, fit_error_model
from riskset.cohort.bias.empirical_null.regression_posterior import ErrorPosterior, error_posterior
from riskset.data.frame import data_frame
from riskset.infer.wald import check_level

__all__ = [
    "CalibratedEstimates",
    "Controls",
    "ErrorModel",
    "LeftOut",
    "Method",
    "calibrate",
    "leave_each_out",
    "leave_one_out",
]

Numbers = NDArray[np.float64]
Method = Literal["posterior", "likelihood"]

ESTIMATED = ("log_rr", "lower", "upper", "se", "p", "one_sided_p")
TOO_FEW, FEW = 5, 20
LARGEST = float(np.log(100))
"""An estimate beyond a ratio of 100 is a failed fit."""


@dataclass(frozen=True, eq=False, init=False)
class Controls:
    """Estimates of outcomes with a known effect.

    Parameters
    ----------
    log_rr, se : (n,) numbers
        Estimates of the controls. Missing or infinite estimates, and ratios above 100, are not
        used.
    true_log_rr : (n,) numbers, optional
        True log ratios. Default: 0, for negative controls.
    outcome_id : (n,) labels, optional
        Default: 0, 1, 2, ...
    usable : (n,) bool, optional
        False: the estimate fails its diagnostics and is not used.

    Attributes
    ----------
    log_rr, se, true_log_rr, outcome_id
        Values of the controls in use.
    set_aside : (k,) labels

    Examples
    --------
    >>> import riskset as rs
    >>> log_rr = [0.2, float("inf"), 0.3]
    >>> controls = rs.cohort.Controls(log_rr, [0.1, 0.1, 0.2], outcome_id=["a", "b", "c"])
    >>> controls.outcome_id, controls.set_aside
    (array(['a', 'c'], dtype='<U1'), array(['b'], dtype='<U1'))
    """

    log_rr: Numbers
    se: Numbers
    true_log_rr: Numbers
    outcome_id: AnyArray
    set_aside: AnyArray

    def __init__(
        self,
        log_rr: object,
        se: object,
        true_log_rr: object = None,
        outcome_id: object = None,
        usable: object = None,
    ) -> None:
        b = _column(log_rr, "log_rr", None)
        s = _column(se, "se", b.size)
        true = (
            np.zeros(b.size) if true_log_rr is None else _column(true_log_rr, "true_log_rr", b.size)
        )
        ids = np.arange(b.size) if outcome_id is None else np.asarray(outcome_id)
        fine = np.ones(b.size, dtype=bool) if usable is None else np.asarray(usable, dtype=bool)
        if ids.shape != b.shape or fine.shape != b.shape:
            raise CohortError(
                "BadControls",
                f"`outcome_id` and `usable` must have one value for each of the {b.size:,} "
                "controls.",
                hint="pass columns of one table.",
            )
        fine = fine & np.isfinite(b) & np.isfinite(s) & np.isfinite(true) & (np.abs(b) <= LARGEST)
        fine &= s > 0
        for name, values in (("log_rr", b), ("se", s), ("true_log_rr", true), ("outcome_id", ids)):
            object.__setattr__(self, name, values[fine])
        object.__setattr__(self, "set_aside", ids[~fine])

    @property
    def is_negative(self) -> NDArray[np.bool_]:
        """Whether each control has no effect."""
        return np.equal(self.true_log_rr, 0)

    @property
    def has_positive(self) -> bool:
        """Whether there are enough positive controls for a model of error by size of effect."""
        return int(np.count_nonzero(~self.is_negative)) >= TOO_FEW

    def without(self, k: int) -> "Controls":
        """All controls in use but one."""
        columns = (self.log_rr, self.se, self.true_log_rr, self.outcome_id)
        return Controls(*(np.delete(values, k) for values in columns))


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedEstimates:
    """Calibrated estimates.

    Attributes
    ----------
    status : {"ok", "too_few_controls"}
        Unless "ok", all calibrated numbers are NaN.
    log_rr, lower, upper, se : (m,) float64
        Calibrated estimates on the log scale. `se` is the length of the interval divided by that of
        a standard normal distribution. If positive controls do not determine a limit, it is
        infinite, or NaN with ``method="likelihood"``.
    p, one_sided_p : (m,) float64
        Two-sided p, and one-sided p for a ratio above 1.
    null : Null or None
        Null distribution by maximum likelihood.
    posterior : NullPosterior or None
        With ``method="posterior"``: mean, standard deviation and expected absolute error with their
        uncertainty, as in EmpiricalCalibration.
    error_posterior : ErrorPosterior or None
        With ``method="posterior"``: the distribution of the p values and intervals.
    error_model : ErrorModel or None
        Error model by maximum likelihood, with five positive controls or more. It gives the
        intervals with ``method="likelihood"``.
    ease : float
        Expected absolute systematic error; with a posterior, its median.
    coverage, calibrated_coverage : float
        Proportion of negative controls whose interval contains 0: uncalibrated, and calibrated with
        all other controls.
    controls : Controls
    level : float
    notes : tuple of Note

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> found = rs.cohort.calibrate(controls, [0.5], [0.1])
    >>> found.coverage, found.calibrated_coverage
    (0.5, 1.0)
    >>> found.lower.round(2), found.upper.round(2)
    (array([-0.06]), array([0.81]))
    """

    status: Literal["ok", "too_few_controls"]
    log_rr: Numbers
    lower: Numbers
    upper: Numbers
    se: Numbers
    p: Numbers
    one_sided_p: Numbers
    controls: Controls
    level: float
    null: Null | None = None
    posterior: NullPosterior | None = None
    error_posterior: ErrorPosterior | None = None
    error_model: ErrorModel | None = None
    ease: float = float("nan")
    coverage: float = float("nan")
    calibrated_coverage: float = float("nan")
    notes: tuple[Note, ...] = ()

    def unremarkable(self, se: object, level: float = 0.95) -> tuple[Numbers, Numbers]:
        r"""Return the range of estimates without an effect that calibration does not find.

        These are the log ratios whose two-sided calibrated p is at least 1 - `level`. With
        ``method="likelihood"`` they are :math:`\mu \pm z_{level} \sqrt{\sigma^2 + se^2}`. They
        are the contours of a plot of effect sizes against standard errors.

        Parameters
        ----------
        se : (k,) numbers >= 0
            Standard errors.
        level : float

        Returns
        -------
        lower, upper : (k,) float64
            NaN if there are too few controls.
        """
        check_level(level)
        s = _column(se, "se", None, code="BadEstimates")
        if self.null is None:
            return np.full(s.size, np.nan), np.full(s.size, np.nan)
        posterior = self.error_posterior
        if posterior is None:
            half = float(ndtri(0.5 + level / 2)) * np.hypot(self.null.sd, s)
            return self.null.mean - half, self.null.mean + half
        ends = np.array([posterior.unremarkable(one, level) for one in s.tolist()])
        return ends[:, 0], ends[:, 1]

    def columns(self) -> dict[str, AnyArray]:
        """Return one row per estimate."""
        return {"estimate": np.arange(self.p.size)} | {n: getattr(self, n) for n in ESTIMATED}

    def to_frame(self, library: str | None = None) -> Any:
        """Return `columns` as a data frame."""
        return data_frame(self.columns(), library)

    def __repr__(self) -> str:
        n = int(self.controls.is_negative.sum())
        if self.status != "ok":
            return f"CalibratedEstimates({counted(n, 'negative control')}: status {self.status!r})"
        return (
            f"CalibratedEstimates({counted(n, 'negative control')}: expected absolute error "
            f"{self.ease:.3f}; coverage {self.coverage:.0%}, calibrated "
            f"{self.calibrated_coverage:.0%})"
        )


def calibrate(
    controls: Controls,
    log_rr: object,
    se: object,
    *,
    method: Method = "posterior",
    level: float = 0.95,
) -> CalibratedEstimates:
    r"""Calibrate estimates and p values with control outcomes.

    With ``method="posterior"``, the distribution of an estimate is an `ErrorPosterior`, which
    accounts for the number of controls. The interval contains the true values whose two-sided p is
    above 1 - `level`. It contains 0 if and only if ``p`` is above 1 - `level`.

    With ``method="likelihood"``, and the null distribution :math:`N(\mu, \sigma^2)` of the negative
    controls, :math:`z = (b - \mu) / \sqrt{\sigma^2 + se^2}`, p is :math:`2 \Phi(-|z|)`, and the
    interval :math:`b - \mu \pm z_{level} \sqrt{\sigma^2 + se^2}`. With five positive controls or
    more, the interval comes from an `ErrorModel`, as in EmpiricalCalibration. p still uses only the
    negative controls and may then disagree with the interval.

    Parameters
    ----------
    controls : Controls
    log_rr, se : (m,) numbers
        Estimates of interest. Calibrated numbers are NaN if an estimate is missing or infinite.
    method : {"posterior", "likelihood"}
        Whether to account for the uncertainty of the systematic error.
    level : float

    Returns
    -------
    CalibratedEstimates

    Raises
    ------
    CohortError
        "BadControls", "BadEstimates".

    Notes
    -----
    `docs/coverage.md` has the coverage of both methods. EmpiricalCalibration's p of a posterior is
    the median of p, ``result.posterior.p_values(log_rr, se)[0][0]``; it is smaller.

    References
    ----------
    Schuemie, Ryan, DuMouchel, Suchard and Madigan (2014), Statistics in Medicine 33, 209-218,
    doi:10.1002/sim.5925.
    Schuemie, Hripcsak, Ryan, Madigan and Suchard (2018), Proceedings of the National Academy of
    Sciences 115, 2571-2577, doi:10.1073/pnas.1708282114.

    Examples
    --------
    >>> import riskset as rs
    >>> controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    >>> found = rs.cohort.calibrate(controls, [0.5], [0.1], method="likelihood")
    >>> found.p.round(3)
    array([0.008])
    """
    if not isinstance(controls, Controls):
        raise CohortError(
            "BadControls",
            f"expected Controls, but got {type(controls).__name__}.",
            hint="make them with riskset.cohort.Controls(log_rr, se).",
        )
    if method not in get_args(Method):
        raise InputError.wrong_option("method", method, get_args(Method))
    check_level(level)
    b = _column(log_rr, "log_rr", None, code="BadEstimates")
    s = _column(se, "se", b.size, code="BadEstimates")
    negative = controls.is_negative
    n = int(negative.sum())
    unknown: dict[str, Any] = dict.fromkeys(ESTIMATED, np.full(b.size, np.nan))
    result = CalibratedEstimates(
        "too_few_controls", **unknown, controls=controls, level=level, notes=_notes(n)
    )
    if n < TOO_FEW:
        return result
    learned, model = _Learned.of(controls, method), None
    if controls.has_positive:
        model = fit_error_model(controls.log_rr, controls.se, controls.true_log_rr)
    known = np.isfinite(b) & np.isfinite(s)
    b, s = np.where(known, b, np.nan), np.where(known, s, np.nan)
    estimate, lower, upper, error = learned.intervals(b, s, model, level)
    p, one_sided = learned.p_values(b, s)
    z = float(ndtri(0.5 + level / 2))
    nb, ns = controls.log_rr[negative], controls.se[negative]
    posterior = null_posterior(nb, ns) if method == "posterior" else None
    return replace(
        result,
        status="ok",
        log_rr=estimate,
        lower=lower,
        upper=upper,
        se=error,
        p=p,
        one_sided_p=one_sided,
        null=learned.null,
        posterior=posterior,
        error_posterior=learned.posterior,
        error_model=model,
        ease=learned.null.ease if posterior is None else float(posterior.ease[0]),
        coverage=float(np.mean(np.abs(nb) <= z * ns)),
        calibrated_coverage=float(np.mean(leave_one_out(controls, method) >= 1 - level)),
    )


def leave_one_out(controls: Controls, method: Method = "posterior") -> Numbers:
    """Two-sided p of each negative control, calibrated by all others (n_negative,)."""
    found = []
    for k in np.flatnonzero(controls.is_negative):
        learned = _Learned.of(controls.without(int(k)), method)
        found.append(learned.p_values(controls.log_rr[k : k + 1], controls.se[k : k + 1])[0][0])
    return np.array(found)


class LeftOut(NamedTuple):
    """Each negative control by what all others say (n_negative,).

    Calibrated log ratios with their limits, two-sided p, and mean and standard deviation of the
    systematic error of the others by maximum likelihood.
    """

    log_rr: Numbers
    lower: Numbers
    upper: Numbers
    p: Numbers
    null_mean: Numbers
    null_sd: Numbers


def leave_each_out(
    controls: Controls, method: Method = "posterior", level: float = 0.95
) -> LeftOut:
    """Calibrate each negative control by all others; at least 3 of these are needed."""
    found = []
    for k in np.flatnonzero(controls.is_negative).tolist():
        others = controls.without(k)
        learned, model = _Learned.of(others, method), None
        if others.has_positive:
            model = fit_error_model(others.log_rr, others.se, others.true_log_rr)
        b, s = controls.log_rr[k : k + 1], controls.se[k : k + 1]
        estimate, lower, upper, _ = learned.intervals(b, s, model, level)
        p, _ = learned.p_values(b, s)
        null = learned.null
        found.append([estimate[0], lower[0], upper[0], p[0], null.mean, null.sd])
    return LeftOut(*np.array(found, dtype=np.float64).reshape(-1, len(LeftOut._fields)).T)


class _Learned(NamedTuple):
    """Systematic error as controls show it; the posterior only with ``method="posterior"``."""

    null: Null
    posterior: ErrorPosterior | None

    @classmethod
    def of(cls, controls: Controls, method: Method) -> "_Learned":
        negative = controls.is_negative
        nb, ns = controls.log_rr[negative], controls.se[negative]
        known: tuple[Numbers, ...] = (nb, ns)
        if controls.has_positive:
            known = (controls.log_rr, controls.se, controls.true_log_rr)
        return cls(fit_null(nb, ns), error_posterior(*known) if method == "posterior" else None)

    def p_values(self, b: Numbers, s: Numbers) -> tuple[Numbers, Numbers]:
        """Two-sided and upper one-sided p."""
        if self.posterior is None:
            z = (b - self.null.mean) / np.hypot(self.null.sd, s)
            return np.asarray(2 * ndtr(-np.abs(z))), np.asarray(ndtr(-z))
        found = np.full((2, b.size), np.nan)
        for k in np.flatnonzero(np.isfinite(b)):
            found[:, k] = self.posterior.p_values(float(b[k]), float(s[k]))
        return found[0], found[1]

    def intervals(
        self, b: Numbers, s: Numbers, model: ErrorModel | None, level: float
    ) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Log ratios, lower and upper ends, and standard errors."""
        z = float(ndtri(0.5 + level / 2))
        source = self.posterior or model
        if source is None:
            error = np.hypot(self.null.sd, s)
            estimate = b - self.null.mean
            return estimate, estimate - z * error, estimate + z * error, error
        found = np.full((3, b.size), np.nan)
        for k in np.flatnonzero(np.isfinite(b)):
            found[:, k] = source.interval(float(b[k]), float(s[k]), level)
        return found[0], found[1], found[2], (found[2] - found[1]) / (2 * z)


def _notes(n: int) -> tuple[Note, ...]:
    have = "there {n:?is|are} only {n:usable negative control|usable negative controls}"
    values = {"n": Value("things", n)}
    if n < TOO_FEW:
        values["needed"] = Value("setting", TOO_FEW)
        return (Note("too_few_controls", (), f"{have}; {{needed}} are needed.", values),)
    return (Note("few_controls", (), f"{have}.", values),) if n < FEW else ()


def _column(values: object, name: str, n: int | None, code: str = "BadControls") -> Numbers:
    """Numbers, where NaN and infinities are allowed and None is NaN."""
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.ndim != 1 or (n is not None and array.size != n):
        length = "" if n is None else f" of length {n:,}"
        found = f"its shape is {array.shape}" if array.size else "it is not"
        raise CohortError(
            code,
            f"`{name}` must be one column of numbers{length}, but {found}.",
            hint="pass columns of one table.",
        )
    return array
