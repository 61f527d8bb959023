"""The pictures of ``--plot``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

import riskset as rs
from riskset._runtime import Runtime
from riskset._types import Features
from riskset.cli.terminal import warn
from riskset.data.column_statistics import standard_deviations
from riskset.data.writers import replacing
from riskset.estimators._interval import ConfidenceInterval
from riskset.plot import (
    bootstrap_distribution,
    coefficient_path,
    cross_validation,
    forest,
    predicted_curves,
    profile_likelihood,
)
from riskset.plot._canvas import Axes, save_plot

__all__ = [
    "draw_bootstrap",
    "draw_cross_validation",
    "draw_fit",
    "draw_path",
    "draw_profile",
    "save",
]

DPI = 200
MAX_CURVES = 8
MAX_RATIOS = 30
REACH = 3.0
"""A profile is drawn so many times farther from the estimate than its interval reaches."""


def draw_fit(
    folder: Path,
    model: "rs.Cox | rs.FineGray | rs.CoxFrailty",
    interval: ConfidenceInterval | None,
) -> None:
    """Curves over time, and ``hazard_ratios.png`` where there are intervals.

    The curves are ``survival.png``, or ``cumulative_incidence.png`` of a Fine-Gray fit.
    """
    is_cox = not isinstance(model, rs.FineGray)
    name = "survival.png" if is_cox else "cumulative_incidence.png"
    if model.n_strata_ > MAX_CURVES:
        warn(
            f"{name} was not drawn: the fit has {model.n_strata_:,} strata, and a picture shows at "
            f"most {MAX_CURVES} curves."
        )
    else:
        _save(folder, name, _curves(model, is_cox=is_cox))
    if interval is not None:
        shown = np.flatnonzero(np.isfinite(interval.lower) & np.isfinite(interval.upper))
        where = [model.covariates_.index(interval.names[k]) for k in shown]
        coef = model.coef_[where]
        size = np.abs(coef) / (interval.upper[shown] - interval.lower[shown])
        kept = np.sort(np.argsort(-size, kind="stable")[:MAX_RATIOS])
        if not kept.size:
            warn("hazard_ratios.png was not drawn: no interval has two finite ends.")
        elif kept.size < len(interval.names):
            warn(
                f"hazard_ratios.png shows {kept.size} of {len(interval.names):,} covariates, "
                "those with the clearest effects."
            )
        if kept.size:
            rows = shown[kept]
            names = tuple(interval.names[k] for k in rows)
            ends = (interval.lower[rows], interval.upper[rows])
            chosen = ConfidenceInterval(interval.method, interval.level, names, *ends)
            _save(folder, "hazard_ratios.png", forest(model, interval=chosen))


def _curves(model: "rs.Cox | rs.FineGray | rs.CoxFrailty", *, is_cox: bool) -> Axes:
    """Survival or incidence in each stratum of a row with the median linear predictor."""
    baseline = model._fitted.baseline
    labels = list(baseline.strata)
    eta = np.full(len(labels), baseline.center)
    kind: Literal["survival", "incidence"] = "survival" if is_cox else "incidence"
    several = len(labels) > 1
    functions = baseline.functions(kind, eta, labels if several else None)
    what = "survival" if is_cox else "cumulative incidence"
    return predicted_curves(
        list(functions),
        labels=[str(label) for label in labels] if several else [""],
        title=f"{what.capitalize()} at the median linear predictor",
        ylabel=what,
    )


def draw_bootstrap(
    folder: Path, resamples: "rs.Bootstrap", interval: ConfidenceInterval | None
) -> None:
    """``bootstrap.png``: the replicates of the first covariate that has some."""
    drawable = np.flatnonzero(np.isfinite(resamples.replicates).sum(axis=0) > 1)
    if interval is None or not drawable.size:
        warn("bootstrap.png was not drawn: no covariate has finite replicates.")
        return
    j = int(drawable[0])
    name, n = resamples.names[j], len(resamples.names)
    if n > 1:
        warn(f"bootstrap.png shows {name!r} of {n:,} covariates; name another with --parameter.")
    axes = bootstrap_distribution(resamples, name, interval=interval)
    _save(folder, "bootstrap.png", axes)


def draw_profile(
    folder: Path, data: "rs.Dataset", model: "rs.Cox | rs.FineGray", interval: ConfidenceInterval
) -> None:
    """``profile.png``: the profile likelihood of the first covariate with an interval."""
    defined = np.flatnonzero(interval.lower <= interval.upper)
    if not defined.size:
        warn("profile.png was not drawn: no interval is defined.")
        return
    name, n = interval.names[int(defined[0])], len(interval.names)
    if n > 1:
        warn(f"profile.png shows {name!r} of {n:,} covariates; name another with --parameter.")
    lower, upper = interval[name]
    j = model.covariates_.index(name)
    (spread,) = _spreads(data, [name])
    bounds = _around(float(model.coef_[j]), lower, upper, float(spread))
    profile = rs.profile(model, data, parameter=name, bounds=bounds, penalized=True)
    axes = profile_likelihood(profile, interval=(lower, upper), level=interval.level)
    _save(folder, "profile.png", axes)


def _around(
    estimate: float, lower: float, upper: float, spread: float
) -> tuple[float, float] | None:
    """Values among which a profile falls well below its interval; None if nothing bounds them."""
    ends = [end for end in (lower, upper) if np.isfinite(end)]
    if not ends:
        return None
    if np.isfinite(estimate):
        return (
            min(estimate + REACH * (end - estimate) for end in (*ends, estimate)),
            max(estimate + REACH * (end - estimate) for end in (*ends, estimate)),
        )
    return ends[0] - 4 / spread, ends[0] + 4 / spread


def draw_cross_validation(folder: Path, model: "rs.Cox | rs.FineGray") -> None:
    """``cross_validation.png``: mean scores against the strength."""
    assert isinstance(model, (rs.CoxCV, rs.FineGrayCV))
    if len(model.cross_validation_) < 2:
        warn("cross_validation.png was not drawn: there is only one penalty.")
        return
    _save(folder, "cross_validation.png", cross_validation(model))


def draw_path(folder: Path, data: "rs.Dataset", result: "rs.PathResult") -> None:
    """``path.png``: coefficients against the strength."""
    axes = coefficient_path(
        result,
        scale=_spreads(data, result.names),
        ylabel="log hazard ratio (numbers: per standard deviation)",
    )
    _save(folder, "path.png", axes)


def _spreads(data: "rs.Dataset", names: Sequence[str]) -> Features:
    """`standard_deviations` of some covariates."""
    columns = [data.design.index_of(name) for name in names]
    return standard_deviations(data.design, Runtime.select())[columns]


def _save(folder: Path, name: str, axes: Axes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save(folder / name, axes)


def save(path: Path, axes: Axes) -> None:
    """Write a picture, whole or not at all."""
    with replacing(path) as (temporary,):
        save_plot(axes, temporary, dpi=DPI)
