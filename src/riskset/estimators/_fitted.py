"""What a fit leaves behind: baseline hazard, variances and tests, each made when first asked for.

They need the training data, which stay in memory with the model so that a question asked later
costs nothing now. A pickled or saved model carries the answers and not the data.
"""

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np

from riskset._errors import InputError, NotDefinedError, RisksetWarning
from riskset._types import AnyArray, Features, Matrix, Rows
from riskset.data.design import Design
from riskset.estimators._fixed import FixedCoefficients
from riskset.infer.bootstrap_with_tuning import PenaltyTuner
from riskset.infer.hazard_influence import FittedHazard
from riskset.infer.hazard_steps import HazardSteps, covariance_root
from riskset.infer.predicted_hazard import HazardWindows, KeptWindows, TrainedWindows
from riskset.infer.variance import Covariance, model_covariance, robust_covariance
from riskset.infer.wald import ChiSquareTest, likelihood_ratio_test, score_tests, wald_test
from riskset.model.baseline import Baseline
from riskset.model.loss import Loss
from riskset.solve.result import Solution

__all__ = ["KEEP_VARIANCE", "Fitted", "ModelTests", "Training", "tests_to_array"]

INFINITE_ETA_GAP = 1e3
"""Least difference of linear predictors that is infinite in the limit: exp(-1000) is 0."""

MAX_LIMIT_ETA = 1e9
"""Largest linear predictor beside which the finite part keeps seven digits."""

EQUAL_ETA_SLACK = 1e-8
"""Values of x'd that differ by less of what they are summed from are equal but for rounding."""

STAGES_KEY = "stages"
"""Kept in place of a limit that no numbers can hold: how many stages it has."""

INTERVAL_TIMES = "interval_times"

KEEP_VARIANCE = 2000
"""A pickled or saved model holds variances of at most so many columns (32 MB)."""

SPREADS = ("variance", "robust_variance", "standard_error", "robust_standard_error")
"""What such a model holds of them: by the inverse information, and by the sandwich."""


@dataclass(frozen=True)
class ModelTests:
    """Tests that all coefficients are 0.

    Attributes
    ----------
    lr, score, wald : ChiSquareTest
        Likelihood-ratio, score and Wald tests. The Wald test uses the robust variance if the fit
        does. With infinite estimates, it is NaN.
    robust_score : ChiSquareTest or None
        Robust score test, if the fit uses the robust variance.
    """

    lr: ChiSquareTest
    score: ChiSquareTest
    wald: ChiSquareTest
    robust_score: ChiSquareTest | None


@dataclass(frozen=True, eq=False)
class Training:
    """The data of a fit and its answer.

    `loss` is of all risk sets; ``solution.loss`` is restricted if an estimate is infinite.
    `is_robust` says whether the robust variance is the one to use. `choose` chooses the penalty
    anew for other case weights, as the fit did.
    """

    design: Design
    loss: Loss
    solution: Solution
    is_penalized: bool
    is_robust: bool
    fixed: FixedCoefficients
    choose: PenaltyTuner | None = None


class Fitted:
    """Answers about a fit, from its training data or from the arrays kept of them."""

    def __init__(
        self, training: Training | None, kept: Mapping[str, AnyArray] | None = None
    ) -> None:
        self._training = training
        self._kept = dict(kept or {})

    @property
    def has_training(self) -> bool:
        """Whether the data of the fit are here."""
        return self._training is not None

    @property
    def training(self) -> Training:
        """The data of the fit; NotDefinedError if the model was pickled or saved."""
        if self._training is None:
            raise NotDefinedError(
                "this needs the training data, which a model that was saved, pickled or fitted in "
                "blocks does not carry.",
                hint="ask before saving, or fit again on one machine.",
            )
        return self._training

    @functools.cached_property
    def center(self) -> Features:
        """Value of each covariate (p,) at which the baseline hazard is kept."""
        if self._training is None:
            return self._kept["center"]
        return self._training.design.center + self._training.fixed.center

    @functools.cached_property
    def limit(self) -> tuple[Features, Features] | None:
        """Finite part, and a very long step to infinity, of coefficients; None if all are finite.

        Hazards in the limit are those at the sum of both, because only their logarithms are kept:
        the step is so long that what it separates differs by a factor beyond floating point.
        """
        if self._training is None:
            if STAGES_KEY in self._kept:
                raise _too_far(int(self._kept[STAGES_KEY]))
            return (self._kept["finite"], self._kept["step"]) if "step" in self._kept else None
        solution = self._training.solution
        if not solution.directions:
            return None
        lengths = self._lengths
        step = np.asarray(
            sum(t * d.value for t, d in zip(lengths, solution.directions, strict=True)),
            dtype=np.float64,
        )
        finite = solution.finite_part + self._training.fixed.value
        return finite, step / self._training.design.scale

    @functools.cached_property
    def _lengths(self) -> list[float]:
        """How far along each direction is infinite, for all that come after it.

        The last first: the least difference that a stage makes among rows that the stages before
        left equal has to outdo all that the later stages and the finite part can make.
        """
        training, solution = self.training, self.training.solution
        design, runtime = training.design, training.loss.runtime
        level = np.zeros(design.n_rows, dtype=np.int64)
        gaps, reaches = [], []
        for direction in solution.directions:
            stored = direction.value
            z = design.product(stored, runtime=runtime)
            slack = EQUAL_ETA_SLACK * design.magnitude(stored, runtime=runtime)
            order = np.lexsort((z, level))
            rise = np.diff(z[order])
            same_level = np.diff(level[order]) == 0
            apart = rise > slack[order][1:] + slack[order][:-1]
            gaps.append(float(rise[same_level & apart].min(initial=np.inf)))
            reaches.append(float(np.ptp(z)))
            steps = np.append(0, np.cumsum(~same_level | apart))
            level[order] = steps
        far, lengths = INFINITE_ETA_GAP, []
        for gap, reach in zip(reversed(gaps), reversed(reaches), strict=True):
            lengths.append(far / gap)
            far += lengths[-1] * reach
        if far > MAX_LIMIT_ETA:
            raise _too_far(len(lengths))
        return lengths[::-1]

    def predicting(self, coef: Features) -> Features:
        """Finite coefficients that predict what `coef` does in the limit."""
        return coef if self.limit is None else self.limit[0] + self.limit[1]

    @functools.cached_property
    def baseline(self) -> Baseline:
        """Cumulative hazard of each stratum; linear predictors are relative to `center`."""
        if self._training is None:
            prefix = "baseline_"
            return Baseline.from_arrays(
                {k.removeprefix(prefix): v for k, v in self._kept.items() if k.startswith(prefix)}
            )
        design, loss, solution = self._training.design, self._training.loss, self._training.solution
        if self.limit is None:
            return Baseline.fit(loss, solution.eta)
        eta = design.product(self.predicting(solution.coef) * design.scale, runtime=loss.runtime)
        return Baseline.fit(loss, eta + loss.offset)

    @functools.cached_property
    def hazard(self) -> FittedHazard:
        """What the variance of predictions needs of an unpenalised fit with finite estimates."""
        training, eta = self.training, self.training.solution.eta
        steps = HazardSteps.of(training.loss, training.design, eta, self.baseline)
        return FittedHazard(training.loss, training.design, eta, self.covariance.inverse, steps)

    def windows(self, *, is_robust: bool) -> HazardWindows:
        """Moments of the hazard in windows of time, from the data or from what was kept."""
        if self._training is not None:
            return TrainedWindows(self.hazard, self.baseline, is_robust)
        if INTERVAL_TIMES not in self._kept:
            raise NotDefinedError(
                "the model was saved, pickled or fitted in blocks, and what intervals of "
                "predictions need was not kept.",
                hint="save it with `interval_times` (`riskset fit --interval-times`), or predict "
                "before saving.",
            )
        kept = {name: self._kept[f"interval_{name}"] for name in ("times", "mean", "end")}
        square, cross = self._kept["interval_square"], self._kept["interval_cross"]
        return KeptWindows(
            **kept,
            square=square[int(is_robust)],
            cross=cross if is_robust else np.zeros_like(cross),
        )

    def coefficient_root(self, coef: Features, *, is_robust: bool) -> Matrix:
        """Root (p, q) of the covariance of `coef`, 0 for those that are held at 0; or NaN."""
        covariance = self.spread("robust_variance" if is_robust else "variance").copy()
        held = (coef == 0) & np.isnan(self.spread("standard_error"))
        covariance[held], covariance[:, held] = 0.0, 0.0
        return covariance_root(covariance)

    @property
    def _limit_loss(self) -> Loss:
        """The likelihood that the finite coefficients maximise."""
        return self.training.solution.likelihood

    @functools.cached_property
    def covariance(self) -> Covariance:
        """Inverse information of an unpenalised fit."""
        training, solution = self.training, self.training.solution
        # A column that repeats others is out, so the others keep their errors, as in R.
        kept = np.flatnonzero(~solution.aliased)
        out = model_covariance(self._limit_loss, training.design, solution.eta, kept)
        lost = kept[~out.identified[kept]]
        if lost.size and not solution.infinite.any():
            names = ", ".join(repr(training.design.names[j]) for j in lost[:5])
            what = "covariate" if lost.size == 1 else f"{lost.size:,} covariates"
            _warn_of_rank(f"the standard errors of the {what} ({names}) are NaN")
        return out

    @functools.cached_property
    def robust_covariance(self) -> Covariance:
        """Sandwich covariance of an unpenalised fit."""
        training, solution = self.training, self.training.solution
        # No scores of rows: ties are exact, or the maximum is that of Firth's likelihood.
        is_sum = training.loss.approximation is training.loss
        if not is_sum or solution.penalized_gain is not None:
            unknown = np.full_like(self.covariance.finite, np.nan)
            return replace(self.covariance, kind="robust", finite=unknown)
        return robust_covariance(
            self._limit_loss, training.design, solution.eta, self.covariance.inverse
        )

    def spread(self, name: str) -> AnyArray:
        """One of `SPREADS`: a covariance (p, p) or standard errors (p,), NaN if undefined.

        Standard errors are the roots of the diagonal also if that is beyond floating point.
        """
        if self._training is None:
            return self._stored(name)
        covariance = self.robust_covariance if name.startswith("robust_") else self.covariance
        return covariance.matrix if name.endswith("variance") else covariance.standard_error

    def _stored(self, name: str) -> AnyArray:
        if name not in self._kept:
            raise NotDefinedError(
                f"the {name.replace('_', ' ')} was not kept with this model, which was saved or "
                f"pickled and has more than {KEEP_VARIANCE:,} covariates, or was fitted in blocks "
                "and has too many for so many rows.",
                hint="read it from the model before saving, or fit again on one machine.",
            )
        return self._kept[name]

    @functools.cached_property
    def tests(self) -> ModelTests:
        """Tests that all coefficients of an unpenalised fit are 0."""
        if self._training is None:
            return _tests_from_array(self._stored("tests"))
        training, solution = self.training, self.training.solution
        score = score_tests(training.loss, training.design, robust=training.is_robust)
        n_free = int(np.count_nonzero(~solution.aliased))
        if score.score.df < n_free:
            _warn_of_rank(f"the tests of {n_free:,} coefficients have {score.score.df:,} df")
        highest, lowest = solution.log_likelihood, solution.null_log_likelihood
        if solution.penalized_gain is not None:
            highest = lowest + solution.penalized_gain
        lr = likelihood_ratio_test(highest, lowest, score.score.df)
        if solution.infinite.any():
            wald = ChiSquareTest(float("nan"), score.score.df)
        else:
            covariance = self.robust_covariance if training.is_robust else self.covariance
            wald = wald_test(solution.coef, covariance)
        return ModelTests(lr, score.score, wald, score.robust)

    # -------------------------------------------------------------------------- keeping

    def to_arrays(
        self, *, with_variances: bool = True, interval_times: Rows | None = None
    ) -> dict[str, AnyArray]:
        """Everything that can be said without the training data.

        With `interval_times` (K,), also what intervals of predictions need at these times.
        """
        if interval_times is not None:
            _ = self.training
        if self._training is None:
            return dict(self._kept)
        training = self._training
        arrays: dict[str, AnyArray] = {"center": self.center}
        try:
            if self.limit is not None:
                arrays["finite"], arrays["step"] = self.limit
            arrays |= {f"baseline_{k}": v for k, v in self.baseline.to_arrays().items()}
        except InputError:
            arrays[STAGES_KEY] = np.array(len(training.solution.directions))
        is_small = training.design.n_features <= KEEP_VARIANCE
        if with_variances and is_small and not training.is_penalized:
            arrays |= {name: self.spread(name) for name in SPREADS}
            arrays["tests"] = tests_to_array(self.tests)
        if interval_times is not None:
            arrays |= self._interval_arrays(interval_times)
        return arrays

    def _interval_arrays(self, times: Rows) -> dict[str, AnyArray]:
        """What `windows` of a saved model needs at some times, by both variances."""
        design, n_strata = self.training.design, self.training.loss.outcome.n_strata
        size = n_strata * times.size * design.n_features
        if max(size, design.n_features**2) > KEEP_VARIANCE**2:
            raise InputError(
                f"intervals of predictions at {times.size:,} times need {size:,} numbers for "
                f"{design.n_features:,} covariates and {n_strata:,} strata, which is too many to "
                "save.",
                hint="pass fewer `interval_times`, or predict before saving.",
            )
        by_model, robust = (
            KeptWindows.of(TrainedWindows(self.hazard, self.baseline, is_robust), times)
            for is_robust in (False, True)
        )
        return {
            INTERVAL_TIMES: times,
            "interval_end": by_model.end,
            "interval_mean": by_model.mean,
            "interval_square": np.array([by_model.square, robust.square]),
            "interval_cross": robust.cross,
            **{name: self.spread(name) for name in SPREADS},
        }

    def check(self) -> None:
        """Raise KeyError if something that predictions need was not kept."""
        _ = self.center
        if STAGES_KEY not in self._kept:
            _ = self.limit, self.baseline

    def __getstate__(self) -> dict[str, AnyArray]:
        return self.to_arrays()

    def __setstate__(self, state: dict[str, AnyArray]) -> None:
        self.__init__(None, state)  # type: ignore[misc]


def _warn_of_rank(what: str) -> None:
    warnings.warn(
        f"{what}: the data hold next to no information on some combination of the covariates.\n"
        "Hint: look for covariates that nearly repeat others.",
        RisksetWarning,
        stacklevel=2,
    )


def _too_far(n_stages: int) -> InputError:
    return InputError(
        f"the estimate is infinite in {n_stages} stages, each beyond the one after, which floating "
        "point cannot hold together: this fit has no predictions or residuals.",
        hint="add a penalty, or leave out covariates; the log likelihood and the finite "
        "coefficients are right.",
    )


def tests_to_array(tests: ModelTests) -> AnyArray:
    pairs = [getattr(tests, field.name) for field in fields(ModelTests)]
    return np.array([(t.statistic, t.df) if t else (np.nan, -1) for t in pairs], dtype=np.float64)


def _tests_from_array(array: AnyArray) -> ModelTests:
    tests = [ChiSquareTest(float(s), int(df)) if df >= 0 else None for s, df in array]
    return ModelTests(*tests)  # type: ignore[arg-type]
