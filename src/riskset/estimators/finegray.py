"""The Fine-Gray model of the subdistribution hazard, for competing risks."""

from collections.abc import Mapping
from typing import ClassVar, get_args

import numpy as np

from riskset._errors import InputError
from riskset._runtime import Runtime
from riskset._types import AnyArray, Index
from riskset.data.checks import Places, as_numbers, complain_rows
from riskset.data.labels import as_codes
from riskset.data.outcome import Outcome
from riskset.estimators._inference import HazardModel
from riskset.estimators._input import ModelInput
from riskset.estimators.predictions import PredictedKind
from riskset.model.censoring import (
    BeyondSupport,
    CensoringDistribution,
    CensoringTies,
    CensoringWeights,
)
from riskset.model.finegray import FineGrayLoss
from riskset.model.penalty import Penalty
from riskset.solve.block_join import Subdistribution

__all__ = ["FineGray", "column_labels"]

PLACES = Places(
    {
        "censoring_group": "`censoring_group`",
        "censoring_probability": "`censoring_probability`",
    }
)


class FineGray(HazardModel):
    r"""Fine-Gray regression of the subdistribution hazard with or without a penalty.

    The cumulative incidence of the cause of interest, for a row with covariates x in stratum s, is

    .. math:: F(t) = 1 - \exp\left(-H_s(t) \, e^{x'\beta + offset}\right)

    so the sign of a coefficient says whether the event becomes more frequent. A row with a
    competing event at u stays in the risk sets of events at t > u, with the weight :math:`G(t-) /
    G(u-)`, where G is the Kaplan-Meier estimate of the censoring distribution. The coefficients
    minimise

    .. math:: -\ell(\beta) + \sum_j f_j (\lambda_1 |\beta_j| + \tfrac{1}{2} \lambda_2 \beta_j^2)

    where :math:`\ell` is the log partial likelihood over these risk sets, with Breslow's method for
    tied events. Without censoring, G is 1. Without competing events, the result equals that of
    `Cox`.

    Parameters
    ----------
    penalty : L1, L2, ElasticNet or None
        None: maximum partial likelihood.
    cause : int or str
        Code or label of the event of interest; it overrides the cause of a `Dataset`. 0 is
        censored, and every other code is a competing event.
    censoring_ties : {"crr", "finegray"}
        Ties between events and censoring in G. "crr": rows with an event are still at risk of
        censoring at that time, as in cmprsk::crr and Cyclops. "finegray": they have left before, as
        in survival::finegray.
    censoring_group : str or (n,) labels, optional
        Estimate G separately in each group. A name refers to a covariate or a column of the
        `Dataset` with a role. If a `Dataset` was read with ``censoring_group``, this column is the
        default. Strata alone do not divide G.
    censoring_beyond : {"zero", "last"}
        Rows with a competing event after the last time of their group. "zero": they no longer
        count. "last": they use the last positive value of G.
    censoring_weights : {"case", "none"}
        Whether case weights count in G. Use "none" for weights that do not represent repeated rows,
        such as propensity score weights.
    censoring_probability : (n,) numbers, optional
        G(time-) of each row, used instead of the Kaplan-Meier estimate. Rows with an event at the
        same time must have the same value.
    reference, covariate_labels, device, n_threads, tol, max_iter, solver, progress
        As for `Cox`.

    Attributes
    ----------
    coef_ : (n_coefficients,) float64
        Log subdistribution hazard ratio per unit of each covariate as given. All other attributes
        are as for `Cox`.
    robust_variance_ : (n_coefficients, n_coefficients) float64
        As in cmprsk::crr, it accounts for the estimation of G. `summary` and the Wald test use it.

    See Also
    --------
    Cox : with ``cause=``, the cause-specific hazard.
    riskset.path : solutions for many strengths of the penalty.

    Notes
    -----
    scikit-learn cannot split an array parameter with one value per row into folds, and `save` does
    not store it. Use a name instead. Late entry raises an error.

    References
    ----------
    Fine and Gray (1999), Journal of the American Statistical Association 94, 496-509,
    doi:10.1080/01621459.1999.10474144.

    Examples
    --------
    >>> import numpy as np
    >>> import riskset as rs
    >>> x = np.array([[0.4], [-1.0], [0.9], [0.1], [0.7], [-0.6], [-0.3], [1.2]])
    >>> y = rs.Surv([1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 1, 1, 2, 0, 2, 1])
    >>> model = rs.FineGray(cause=1).fit(x, y)
    >>> model.status_
    'converged'
    >>> model.predict_cumulative_incidence([[0.5]], [0, 3, 8]).round(3)
    array([[0.   , 0.254, 0.546]])
    """

    robust_by_default: ClassVar[bool] = True
    competing_never_fail: ClassVar[bool] = True
    has_censoring: ClassVar[bool] = True
    default_kind: ClassVar[PredictedKind] = "cumulative_incidence"

    cause: int | str
    censoring_ties: CensoringTies
    censoring_group: object
    censoring_beyond: BeyondSupport
    censoring_weights: CensoringWeights
    censoring_probability: object

    def __init__(
        self,
        penalty: Penalty | None = None,
        *,
        cause: int | str = 1,
        censoring_ties: CensoringTies = "crr",
        censoring_group: object = None,
        censoring_beyond: BeyondSupport = "zero",
        censoring_weights: CensoringWeights = "case",
        censoring_probability: object = None,
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

    def predict_cumulative_incidence(
        self, X: object, times: object = None, *, strata: object = None, offset: object = None
    ) -> AnyArray:
        """Predict the cumulative incidence of the cause at given times.

        Parameters
        ----------
        X, times, strata, offset
            As for `predict_survival_function`.

        Returns
        -------
        (k, m) float64
            In [0, 1] and never decreasing with time, for any covariates: 0 before the first event
            time, constant after the last. The sum over separately fitted models of several causes
            may exceed 1. Without times, (k,) `riskset.StepFunction`.

        Raises
        ------
        InputError
            If a stratum was not in the fit.
        """
        return self._over_time("incidence", X, times, strata, offset)

    # --------------------------------------------------------------------------- censoring

    def _options(self) -> dict[str, tuple[str, ...]]:
        return {
            **super()._options(),
            "censoring_ties": get_args(CensoringTies),
            "censoring_beyond": get_args(BeyondSupport),
            "censoring_weights": get_args(CensoringWeights),
        }

    def _loss(self, data: ModelInput, runtime: Runtime) -> FineGrayLoss:
        outcome = data.outcome
        if outcome.entry is not None and (outcome.entry >= outcome.time.min()).any():
            raise InputError(
                "Fine and Gray's model does not take late entry: a row that enters late would need "
                "a weight for having escaped the competing events before, too.",
                hint="leave `entry` out, or fit cause-specific hazards by a Cox model with "
                "`cause`.",
            )
        if outcome.entry is not None:  # everybody was there before anything happened
            outcome = outcome.replace(entry=None)
        return FineGrayLoss(outcome, self._censoring(data, outcome), runtime)

    def _block_censoring(self) -> Subdistribution:
        for name in ("censoring_group", "censoring_probability"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"`{name}` does not fit in blocks.",
                    hint="leave it out, or fit on one machine.",
                )
        return Subdistribution(self.censoring_ties, self.censoring_beyond, self.censoring_weights)

    def _censoring(self, data: ModelInput, outcome: Outcome) -> CensoringDistribution:
        group = self._group(data)
        if self.censoring_probability is None:
            return CensoringDistribution.estimate(
                outcome,
                ties=self.censoring_ties,
                group=group,
                beyond=self.censoring_beyond,
                weights=self.censoring_weights,
            )
        if self.censoring_group is not None:
            raise InputError(
                "`censoring_group` and `censoring_probability` were given together.",
                hint="groups are for estimating what the probability already says.",
            )
        given = as_numbers(
            self.censoring_probability, "censoring_probability", outcome.n_rows, PLACES
        )
        competing = (outcome.event != 0) & ~outcome.is_event
        complain_rows(
            (given < 0) | (given > 1) | (competing & (given == 0)),
            given,
            PLACES.column("censoring_probability"),
            "must be between 0 and 1, and positive at a competing event",
            PLACES,
            hint="it is the probability of not being censored before the row's own time.",
        )
        return CensoringDistribution.given(outcome, given)

    def _group(self, data: ModelInput) -> Index | None:
        chosen = self.censoring_group
        if chosen is None and data.dataset is not None:
            chosen = data.dataset.outcome_columns.censoring_group
            named = data.dataset.schema.roles.censoring_group
            if chosen is None and named is not None:
                raise InputError(
                    f"censoring was estimated in the groups of {named!r}, which is not read from "
                    "a frame that comes with `y`.",
                    hint="pass the frame alone, with its columns of time and event.",
                )
        if chosen is None:
            return None
        labels = (
            column_labels(chosen, data, "censoring_group") if isinstance(chosen, str) else chosen
        )
        return as_codes(labels, "censoring_group", data.outcome.n_rows, PLACES)[0]


def column_labels(name: str, data: ModelInput, argument: str) -> AnyArray:
    """Labels by the name of a column: one with a role, or a covariate."""
    roles: dict[str, AnyArray | None] = {}
    if data.dataset is not None:
        columns, named = data.dataset.outcome_columns, data.dataset.schema.roles
        roles = dict(zip(named.stratum_columns, columns.strata, strict=True))
        roles |= {str(named.cluster): columns.cluster}
        roles |= {str(named.censoring_group): columns.censoring_group}
    found = roles.get(name)
    if found is not None:
        return found
    names = data.design.names
    # A category has a column for each level, perhaps except one: columns determine the levels.
    own = [j for j, n in enumerate(names) if n == name or n.startswith(f"{name}=")]
    if not own:
        known = [*names, *(role for role, values in roles.items() if values is not None)]
        raise InputError.unknown_name(f"`{argument}` column", name, known)
    values = data.design.to_dense(columns=np.array(own))
    codes: AnyArray = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    return codes
