"""The Cox proportional hazards model."""

from collections.abc import Mapping
from typing import get_args

import numpy as np

from riskset._errors import InputError, NotDefinedError
from riskset._runtime import Runtime
from riskset._types import Features
from riskset.data.checks import are_counts
from riskset.data.design import Design
from riskset.data.outcome import Outcome
from riskset.estimators._inference import HazardModel
from riskset.estimators._input import ModelInput
from riskset.infer.explained_variation import ExplainedVariation, explained_variation
from riskset.model.cox import CoxLoss, Ties
from riskset.model.exact_ties import ExactTiesLoss
from riskset.model.loss import Loss
from riskset.model.penalty import Penalty
from riskset.solve.firth import fit_by_firth
from riskset.solve.prox_newton import ResidualReport
from riskset.solve.result import Solution

__all__ = ["Cox"]

MAX_EXACT_WORK = 1e12
"""Multiplications of a pass with exact ties: about a quarter of an hour."""
MAX_EXACT_WEIGHT = 1_000_000
"""A row of this weight takes as long as so many rows: half a minute for a fit."""


class Cox(HazardModel):
    r"""Cox proportional hazards regression with or without a penalty.

    The hazard of a row with covariates x in stratum s is
    :math:`\lambda_s(t) \, e^{x'\beta + offset}`, and the coefficients minimise

    .. math:: -\ell(\beta) + \sum_j f_j (\lambda_1 |\beta_j| + \tfrac{1}{2} \lambda_2 \beta_j^2)

    where :math:`\ell` is the log partial likelihood, summed over rows.

    Parameters
    ----------
    penalty : L1, L2, ElasticNet or None
        None: maximum partial likelihood.
    ties : {"breslow", "efron", "exact"}
        Method for tied events. Times are tied if they are exactly equal. "exact": the conditional
        likelihood of who has the events of a time, given how many there are. With `strata` in the
        fit, this is conditional logistic regression; see Notes.
    firth : bool
        Maximise Firth's penalised likelihood in place of the likelihood; see Notes. The estimate is
        finite also where that of the likelihood is infinite (separation).
    cause : int or str, optional
        Code or label of the event of interest. All other events are censored (the cause-specific
        hazard). Optional if codes are 0 and 1.
    fixed : mapping of covariate to number, optional
        Coefficients that are not estimated but have these values, for example ``{"age": 0.05}`` of
        a published model. They act as an offset, are in predictions, and have no penalty, standard
        error or interval. `kkt_` does not concern them.
    reference : dict of str to level, optional
        Reference levels of columns of text or categories in a data frame X, for example ``{"sex":
        "male"}``. Default: the first level in the order of a categorical type, or of sorted text.
        `Dataset.from_frame` has its own.
    covariate_labels : mapping, file, data frame or list of rows, optional
        Labels of covariates, with groups, units and reference levels, as of `Dataset.from_frame`.
        Summaries and plots show them. Default: those of a `Dataset`.
    device : {"auto", "cpu", "cuda"}
        Device for the passes over all rows. "cuda": an NVIDIA GPU, or an error that says what is
        missing (`riskset info` does, too). "auto": a GPU if it is available and likely to be
        faster.
    n_threads : int, optional
        Default: all cores. Results are bit-identical for any number.
    tol : float
        Upper bound of the relative KKT residual `kkt_`.
    max_iter : int
        Maximum number of Newton steps or sweeps.
    solver : {"newton", "ccd"}
        Optimisation method. Both reach the same minimum up to `tol`. "ccd" is the cyclic coordinate
        descent of the paper and of Cyclops, for comparisons. It is tens of times slower and may
        need a `max_iter` of thousands if covariates are correlated. `riskset.path` supports it;
        cross-validation and the bootstrap do not.
    progress : bool, optional
        Show a progress bar on standard error for work over two seconds. Default: only in a
        terminal.

    Attributes
    ----------
    coef_ : (n_coefficients,) float64
        Log hazard ratio per unit of each covariate as given. +inf or -inf for infinite estimates. 0
        for covariates that are constant or repeat others; `notes_` names them.
    covariates_ : tuple of str
        Names of the covariates. A category of a data frame has one coefficient per level except the
        first. With an L2 part in the penalty, it has one per level.
    status_ : {"converged", "infinite_estimate", "undecided", "max_iter", "not_estimable"}
        "converged": `kkt_` <= `tol`, and the estimate is proven to be finite. "infinite_estimate":
        the estimate is proven to be infinite. Both proofs are independent of the processor, offsets
        and weights. "undecided": `kkt_` <= `tol`, but neither can be proven, for example because
        covariates nearly repeat others. Penalised estimates are always finite.
    kkt_ : float
        Largest violation of the optimality conditions over all columns, relative to the gradient at
        0 and independent of the units of the columns.
    log_likelihood_, null_log_likelihood_, objective_ : float
        Log likelihood at the estimate (its limit if an estimate is infinite) and at 0, and the
        objective with the penalty.
    n_iter_, n_rows_, n_events_, n_strata_ : int
        Number of Newton steps or sweeps, of rows and strata as given, and of events in rows with
        positive weight.
    n_dropped_ : dict of str to int
        Counts of what was left out, by reason.
    notes_ : list of Note
        Notes on the data and the result: code, columns, message.
    seconds_ : dict of str to float
        Seconds to prepare and to fit.
    aic_, bic_ : float
        Information criteria of unpenalised fits.
    standard_error_, robust_standard_error_ : (n_coefficients,) float64
        NaN if not defined: for penalised fits, and for infinite or unidentified coefficients.
    n_features_in_, feature_names_in_
        Columns of X at the fit.

    Notes
    -----
    With ``ties="exact"``, the likelihood of the m events D among the rows R at risk at a time is

    .. math::
        \frac{\prod_{i \in D} e^{\eta_i}}
             {\sum_{S \subseteq R, |S| = m} \prod_{j \in S} e^{\eta_j}}

    as in R's ``coxph(ties="exact")``. If all rows have the same time and each matched set is a
    stratum, it is the likelihood of R's ``clogit``, with any number of cases in a set. It takes
    time like the rows at risk times the tied events. Weights are whole numbers and stand for equal
    rows. Predicted hazards are Breslow's at these coefficients, as in R. There is no robust
    variance, and there are no residuals, bootstrap, cross-validation, `Blocks` or GPU.

    With ``firth=True``, the coefficients maximise the likelihood with Jeffreys' prior,

    .. math:: \ell^*(\beta) = \ell(\beta) + \tfrac{1}{2} \log \det I(\beta)

    with the information I, as in R's ``coxphf``. Standard errors are from the inverse of I at the
    estimate, profile intervals and the likelihood-ratio test from :math:`\ell^*`, and `objective_`
    is :math:`-\ell^*(\hat\beta)`. There is no robust variance. With few events, Wald intervals of
    such fits are unreliable. "converged" means that the derivative of :math:`\ell^*` is 0, up to
    `tol`: in general it is not proven to be the highest of several maxima.

    See Also
    --------
    riskset.path : solutions for many strengths of the penalty.

    References
    ----------
    Cox (1972), Journal of the Royal Statistical Society B 34, 187-220.
    Breslow (1974), Biometrics 30, 89-99, doi:10.2307/2529620.
    Efron (1977), Journal of the American Statistical Association 72, 557-565,
    doi:10.1080/01621459.1977.10480613.
    Firth's penalty: Firth (1993), Biometrika 80, 27-38, doi:10.1093/biomet/80.1.27. Heinze and
    Schemper (2001), Biometrics 57, 114-119, doi:10.1111/j.0006-341X.2001.00114.x.
    Exact ties: Gail, Lubin and Rubinstein (1981), Biometrika 68, 703-707,
    doi:10.1093/biomet/68.3.703.
    Coordinate descent: Genkin, Lewis and Madigan (2007), Technometrics 49, 291-304,
    doi:10.1198/004017007000000245. Suchard, Simpson, Zorych, Ryan and Madigan (2013), ACM
    Transactions on Modeling and Computer Simulation 23(1), 10, doi:10.1145/2414416.2414791. Yang,
    Schuemie, Ji and Suchard (2024), Journal of Computational and Graphical Statistics 33, 289-302,
    doi:10.1080/10618600.2023.2213279.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> model = rs.Cox(rs.L1(20.0, unpenalized=["swang1"])).fit(data)
    >>> model.status_
    'converged'
    >>> int((model.coef_ != 0).sum()), len(model.covariates_)
    (40, 71)
    """

    ties: Ties
    firth: bool = False

    def __init__(
        self,
        penalty: Penalty | None = None,
        *,
        ties: Ties = "breslow",
        firth: bool = False,
        cause: int | str | None = None,
        fixed: Mapping[str, float] | None = None,
        reference: Mapping[str, object] | None = None,
        covariate_labels: object = None,
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        solver: str = "newton",
        progress: bool | None = None,
    ) -> None:
        self._set(locals())

    def _options(self) -> dict[str, tuple[str, ...]]:
        return {**super()._options(), "ties": get_args(Ties)}

    def _loss(self, data: ModelInput, runtime: Runtime) -> CoxLoss:
        for option in self._likelihood_options:
            _check_has_counts(data.outcome, f"`{option}`")
        if self.ties != "exact":
            return CoxLoss(data.outcome, self.ties, runtime)
        loss = ExactTiesLoss(data.outcome, self.ties, runtime)
        _check_affordable(loss)
        return loss

    @property
    def _likelihood_options(self) -> list[str]:
        """The options, as written, whose likelihood is not a sum over rows."""
        return ["ties='exact'"] * (self.ties == "exact") + ["firth=True"] * self.firth

    def _solve(
        self,
        design: Design,
        loss: Loss,
        l1: Features,
        l2: Features,
        start: Solution | None,
        report: ResidualReport,
    ) -> Solution:
        if not self.firth:
            return super()._solve(design, loss, l1, l2, start, report)
        return fit_by_firth(
            design, loss, tol=self.tol, max_iter=self.max_iter, start=start, report=report
        )

    @property
    def aic_(self) -> float:
        """Akaike's information criterion, twice (the number of coefficients - log likelihood)."""
        return 2.0 * (self._n_estimated - float(self.log_likelihood_))

    @property
    def bic_(self) -> float:
        """Bayesian information criterion: the log of the number of events takes the place of 2.

        Volinsky and Raftery (2000), Biometrics 56, 256-262, doi:10.1111/j.0006-341X.2000.00256.x.
        """
        n = float(np.log(self.n_events_))
        return n * self._n_estimated - 2.0 * float(self.log_likelihood_)

    @property
    def _n_estimated(self) -> int:
        """Number of coefficients that maximise the likelihood."""
        self._defined("an information criterion")
        if self.firth:
            raise NotDefinedError(
                "an information criterion is not defined for `firth=True`, whose coefficients do "
                "not maximise the likelihood.",
                hint="compare the objectives, or models without it.",
            )
        return int(np.count_nonzero(~(self._not_estimated | self._is_fixed)))

    def explained_variation(
        self,
        X: object,
        y: object = None,
        *,
        sample_weight: object = None,
        strata: object = None,
        offset: object = None,
    ) -> ExplainedVariation:
        r"""Compute how much of the variation of survival the linear predictor explains.

        The linear predictor is calibrated by a Cox model on the given data first, which changes
        nothing for the data of an unpenalised fit. With its slope b on the normal scores of the
        linear predictor, its likelihood ratio LR, n rows and d events,

        .. math::
            D = b \sqrt{8 / \pi}, \quad R^2_D = \frac{b^2}{\pi^2/6 + b^2}, \quad
            R^2_{CS} = 1 - e^{-LR/n}, \quad R^2_{O'Quigley} = 1 - e^{-LR/d}

        Parameters
        ----------
        X, y, sample_weight, strata, offset
            As for `fit`: the data of the fit, or other data. Weights are whole numbers. The offset
            is part of the linear predictor.

        Returns
        -------
        ExplainedVariation
            ``d`` (Royston and Sauerbrei's D), ``d_standard_error``, ``r2_d``,
            ``r2_kent_oquigley``, ``r2_cox_snell``, ``r2_nagelkerke`` and ``r2_oquigley``.

        Raises
        ------
        InputError
            If the data are not valid, or a weight is not a whole number.
        NotDefinedError
            If a coefficient is infinite, or the linear predictor is constant or orders all events.

        Notes
        -----
        On the data of the fit, the values are optimistic. R's ``royston`` gives the same values for
        models with Efron's ties and without strata; it leaves strata out.

        References
        ----------
        Royston and Sauerbrei (2004), Statistics in Medicine 23, 723-748, doi:10.1002/sim.1621.
        Kent and O'Quigley (1988), Biometrika 75, 525-534, doi:10.1093/biomet/75.3.525. Nagelkerke
        (1991), Biometrika 78, 691-692, doi:10.1093/biomet/78.3.691. O'Quigley, Xu and Stare (2005),
        Statistics in Medicine 24, 479-489, doi:10.1002/sim.1946.

        Examples
        --------
        >>> import riskset as rs
        >>> data = rs.load_rhc()
        >>> found = rs.Cox().fit(data).explained_variation(data)
        >>> round(found.d, 2), round(found.r2_d, 2)
        (1.15, 0.24)
        """
        loss, _, index = self._evaluated(X, y, sample_weight, strata, offset, None)
        _check_has_counts(loss.outcome, "explained variation")
        infinite = [n for n, b in zip(self.covariates_, self.coef_, strict=True) if np.isinf(b)]
        if infinite:
            raise NotDefinedError(
                "explained variation is not defined, because the coefficient of "
                f"{infinite[0]!r} is infinite.",
                hint="leave the covariate out, or fit with a penalty or `firth=True`.",
            )
        return explained_variation(loss, index)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.firth, bool):
            raise InputError(
                f"`firth` must be True or False, but it is {self.firth!r}.", hint="leave it out."
            )
        for option in self._likelihood_options:
            for name, value in (("solver", "ccd"), ("device", "cuda")):
                if getattr(self, name) == value:
                    raise InputError(
                        f"`{name}={value!r}` does not fit `{option}`.", hint=f"leave out `{name}`."
                    )
        if self.firth and self.ties == "exact":
            raise InputError(
                "`firth=True` does not fit `ties='exact'`.", hint="use `ties='efron'`."
            )
        if self.firth and self._kind is not None:
            raise InputError(
                f"`firth=True` is a penalty itself, but `penalty` is {self.penalty!r}.",
                hint="leave out one of them.",
            )

    def _check_can_repeat(self, what: str) -> None:
        super()._check_can_repeat(what)
        for option in self._likelihood_options:
            raise InputError(
                f"{what} is not available for `{option}`.",
                hint="leave it out, or use a profile interval." if self.firth
                else "use `ties='efron'`, which is close to it.",
            )  # fmt: skip

    def _check_has_robust(self, what: str) -> None:
        for option in self._likelihood_options:
            raise NotDefinedError(
                f"{what} is not defined for `{option}`.",
                hint="use `method='profile'` or `method='wald'`.",
            )

    def _check_has_profile(self, what: str) -> None:
        if self.firth:
            raise InputError(
                f"{what} is not available for `firth=True`.",
                hint="use `confidence_interval(method='profile')` of the fitted model.",
            )

    def _check_has_row_scores(self, what: str) -> None:
        if self.ties == "exact":
            raise NotDefinedError(
                f"{what} is not defined for `ties='exact'`: the likelihood of tied events is not "
                "a sum over rows.",
                hint="fit with `ties='efron'`.",
            )

    def _block_censoring(self) -> None:
        if self.firth:
            raise InputError(
                "`firth=True` does not fit in blocks.", hint="fit on one machine, or use a penalty."
            )
        if self.ties != "breslow":
            raise InputError(
                f"ties={self.ties!r} does not fit in blocks, whose borders may cut a time.",
                hint="use `ties='breslow'`, or fit on one machine.",
            )


def _check_affordable(loss: ExactTiesLoss) -> None:
    """Refuse exact ties that no machine gets through, such as of weights in the millions."""
    if loss.work > MAX_EXACT_WORK:
        raise InputError(
            f"`ties='exact'` needs about {loss.work:.0e} multiplications for each pass over these "
            "data: the rows at risk times the tied events, weights counted as rows.",
            hint="use `ties='efron'`, or finer times, of which fewer are tied.",
        )
    weight = loss.outcome.weight
    row = int(weight.argmax())
    if weight[row] > MAX_EXACT_WEIGHT:
        raise InputError(
            f"the weight of row {row:,} is {weight[row]:,.0f}, but `ties='exact'` takes as long "
            f"for it as for so many rows, so weights are at most {MAX_EXACT_WEIGHT:,}.",
            hint="use `ties='efron'`.",
        )


def _check_has_counts(outcome: Outcome, what: str) -> None:
    """Refuse what needs a robust variance: weights that are not counts, and clusters."""
    fractions = np.flatnonzero(~are_counts(outcome.weight))
    if fractions.size:
        row = int(fractions[0])
        raise InputError(
            f"the weight of row {row:,} is {outcome.weight[row]:g}, but for {what} weights must be "
            "whole numbers below 2**53.",
            hint="give each row the number of rows that it stands for, or leave the weights out.",
        )
    if outcome.cluster is not None:
        raise InputError(
            f"there is no robust variance for {what}, but `cluster` asks for one.",
            hint="leave out `cluster`.",
        )
