"""The Cox proportional hazards model."""

from typing import get_args

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset.estimators._base import HazardModel
from riskset.estimators._input import Data
from riskset.model.cox import CoxLoss, Ties
from riskset.model.penalty import Penalty

__all__ = ["Cox"]


class Cox(HazardModel):
    r"""Cox proportional hazards regression, penalised or not, on dense or sparse covariates.

    The hazard of a row with covariates x in stratum s is
    :math:`\lambda_s(t) \, e^{x'\beta + offset}`, and the coefficients minimise

    .. math:: -\ell(\beta) + \sum_j f_j (\lambda_1 |\beta_j| + \tfrac{1}{2} \lambda_2 \beta_j^2)

    with :math:`\ell` the log partial likelihood, summed over rows.

    Parameters
    ----------
    penalty : L1, L2, ElasticNet or None
        None: maximum partial likelihood.
    ties : {"breslow", "efron"}
        Approximation for events at one time. Times are tied if they are equal as numbers.
    cause : int or str, optional
        The event code to study or its label, all others counting as censored (the cause-specific
        hazard). May be left out when codes are 0 and 1.
    device : {"auto", "cpu", "cuda"}
        Where passes over all rows are made. "cuda": on an NVIDIA GPU, or an error says what is
        missing (`riskset info` does, too); "auto": there if that is possible and likely to gain.
    n_threads : int, optional
        Default: all cores. The answer has the same bits for any number.
    tol : float
        Bound on the relative KKT residual `kkt_`.
    max_iter : int
        Largest number of Newton steps, or of sweeps.
    solver : {"newton", "ccd"}
        How the minimum is found, which is the same to `tol`. "ccd" is the cyclic coordinate descent
        of the paper and of Cyclops, for comparisons: tens of times slower, and where covariates are
        correlated it may need a `max_iter` of thousands. `riskset.path` takes it, too;
        cross-validation and the bootstrap refuse it.
    progress : bool, optional
        A progress bar on standard error for work over two seconds. Default: if it is a terminal.

    Attributes
    ----------
    coef_ : (n_coefficients,) float64
        Log hazard ratio per unit of each covariate as given; +inf or -inf where the likelihood
        keeps rising, 0 for covariates that are constant or repeat others (`notes_` names them).
    covariates_ : tuple of str
        Their names. Categories of a data frame have one coefficient for each level but the first,
        and with a penalty that has an L2 part one for each level.
    status_ : {"converged", "infinite_estimate", "undecided", "max_iter", "not_estimable"}
        "converged" means `kkt_` <= `tol` and a proof that the estimate is finite;
        "infinite_estimate" a proof that it is not. Neither depends on how a processor rounds:
        offsets and weights play no part in it. "undecided": `kkt_` <= `tol`, but there is a proof
        of neither, as where covariates nearly repeat others. A penalised estimate is always finite.
    kkt_ : float
        Largest violation of the optimality conditions over all columns, relative to the gradient at
        0 and free of the columns' units: the certificate of the answer.
    log_likelihood_, null_log_likelihood_, objective_ : float
        At the estimate (its limit where an estimate is infinite), at 0, and with the penalty.
    n_iter_, n_rows_, n_events_, n_strata_ : int
        Newton steps or sweeps; rows and strata as given; events of rows with positive weight.
    n_dropped_ : dict of str to int
        What was left out, by reason.
    notes_ : list of Note
        What there is to know about the data and the answer: code, columns, message.
    seconds_ : dict of str to float
        Time to prepare and to fit.
    standard_error_, robust_standard_error_ : (n_coefficients,) float64
        NaN where not defined: penalised fits, infinite or unidentified coefficients.
    n_features_in_, feature_names_in_
        Columns of X at the fit.

    See Also
    --------
    riskset.path : solutions for many strengths of the penalty.

    References
    ----------
    Cox (1972), Journal of the Royal Statistical Society B 34, 187-220.
    Breslow (1974), Biometrics 30, 89-99, doi:10.2307/2529620.
    Efron (1977), Journal of the American Statistical Association 72, 557-565,
    doi:10.1080/01621459.1977.10480613.
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

    def __init__(
        self,
        penalty: Penalty | None = None,
        *,
        ties: Ties = "breslow",
        cause: int | str | None = None,
        device: str = "auto",
        n_threads: int | None = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        solver: str = "newton",
        progress: bool | None = None,
    ) -> None:
        self.penalty = penalty
        self.ties = ties
        self.cause = cause
        self.device = device
        self.n_threads = n_threads
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.progress = progress

    def _options(self) -> dict[str, tuple[str, ...]]:
        return {**super()._options(), "ties": get_args(Ties)}

    def _loss(self, data: Data, runtime: Runtime) -> CoxLoss:
        return CoxLoss(data.outcome, self.ties, runtime)

    def _block_censoring(self) -> None:
        if self.ties != "breslow":
            raise InputError(
                f"ties={self.ties!r} does not fit in blocks, whose borders may cut a time.",
                hint="use ties='breslow', or fit on one machine.",
            )
