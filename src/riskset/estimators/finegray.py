"""The Fine-Gray model of the subdistribution hazard, for competing risks."""

from collections.abc import Mapping
from typing import ClassVar, Literal, get_args

import numpy as np

from riskset._errors import InputError, counted
from riskset._runtime import Runtime
from riskset._types import AnyArray, Index
from riskset.data.checks import Places, as_numbers, complain_rows
from riskset.data.labels import as_codes
from riskset.data.outcome import Outcome
from riskset.data.start_stop.person_rows import (
    PersonRows,
    person_rows,
    refuse_rows_from_the_start,
    refuse_unclear_people,
)
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

__all__ = ["FineGray", "Person", "column_labels"]

Person = Literal["row", "cluster"]

LARGEST_WEIGHT = 1e120
"""Sums over risk sets for the standard errors hold weights of up to this size."""

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

    With late entry (`entry` of `riskset.Surv`), a row is at risk in (entry, time] up to its own
    time, and the weight after a competing event is :math:`G(t-) H(t-) / (G(u-) H(u-))`, which may
    exceed 1: H is the Kaplan-Meier estimate, in reversed time, of the distribution of entry. It
    makes up for people who had a competing event before they could enter. Entry must be independent
    of the events, as censoring must be.

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
        G(time-) of each row, used instead of the Kaplan-Meier estimate; with late entry, G(time-)
        times H(time-). Rows with an event at the same time must have the same value.
    person : {"row", "cluster"}, optional
        What is a person where rows enter late. "row": each row is the whole follow-up of a person.
        "cluster": the rows of a cluster are intervals of one person without gaps, as of covariates
        that change with time; the person is not censored at the end of a row that another one
        continues. Default: "row", but an error if rows of a cluster follow each other.
    fixed, reference, covariate_labels, device, n_threads, tol, max_iter, solver, progress
        As for `Cox`.

    Attributes
    ----------
    coef_ : (n_coefficients,) float64
        Log subdistribution hazard ratio per unit of each covariate as given. All other attributes
        are as for `Cox`.
    robust_variance_ : (n_coefficients, n_coefficients) float64
        As in cmprsk::crr, it accounts for the estimation of G; with late entry, of G and H.
        `summary` and the Wald test use it.

    See Also
    --------
    Cox : with ``cause=``, the cause-specific hazard.
    riskset.path : solutions for many strengths of the penalty.

    Notes
    -----
    scikit-learn cannot split an array parameter with one value per row into folds, and `save` does
    not store it. Use a name instead.

    If nobody is at risk just before some time at which rows enter, the data do not say how rows
    with a competing event before it compare with those after it, and `fit` raises an error that
    names the time. In a resample or in the training rows of a replicate, the factor of H at such a
    time is left out.

    References
    ----------
    Fine and Gray (1999), Journal of the American Statistical Association 94, 496-509,
    doi:10.1080/01621459.1999.10474144.
    Geskus (2011), Biometrics 67, 39-49, doi:10.1111/j.1541-0420.2010.01420.x.
    Zhang, Zhang and Fine (2011), Statistics in Medicine 30, 1933-1951, doi:10.1002/sim.4264.

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

    People who enter late:

    >>> late = rs.Surv(y["time"], y["event"], entry=[0, 0, 0, 1, 0, 3, 2, 1])
    >>> rs.FineGray(cause=1).fit(x, late).status_
    'converged'
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
    person: Person | None

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
        person: Person | None = None,
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
        options = {
            **super()._options(),
            "censoring_ties": get_args(CensoringTies),
            "censoring_beyond": get_args(BeyondSupport),
            "censoring_weights": get_args(CensoringWeights),
        }
        return options if self.person is None else options | {"person": get_args(Person)}

    def _loss(self, data: ModelInput, runtime: Runtime) -> FineGrayLoss:
        outcome = data.outcome
        _check_size_of_weights(outcome)
        if outcome.entry is not None and (outcome.entry < outcome.time.min()).all():
            outcome = outcome.replace(entry=None)  # everybody was there before anything happened
        return FineGrayLoss(outcome, self._censoring(data, outcome), runtime)

    def _people(self, outcome: Outcome) -> PersonRows | None:
        """Which rows continue others; None: none does."""
        if outcome.entry is None:
            if self.person == "cluster":
                refuse_rows_from_the_start(outcome)
            return None
        if self.person == "row":
            return None
        if self.person is None:
            refuse_unclear_people(outcome)
            return None
        if outcome.cluster is None:
            raise InputError(
                "`person='cluster'` needs clusters, but there are none.",
                hint="pass the person of each row as `cluster`.",
            )
        return person_rows(outcome, PLACES)

    def _block_censoring(self) -> Subdistribution:
        for name in ("censoring_group", "censoring_probability", "person"):
            if getattr(self, name) is not None:
                raise InputError(
                    f"`{name}` does not fit in blocks.",
                    hint="leave it out, or fit on one machine.",
                )
        return Subdistribution(self.censoring_ties, self.censoring_beyond, self.censoring_weights)

    def _censoring(self, data: ModelInput, outcome: Outcome) -> CensoringDistribution:
        group = self._group(data)
        if self.censoring_probability is None:
            found = CensoringDistribution.estimate(
                outcome,
                ties=self.censoring_ties,
                group=group,
                beyond=self.censoring_beyond,
                weights=self.censoring_weights,
                people=self._people(outcome),
            )
            if outcome.entry is not None:
                _refuse_unlinked(found, outcome)
            return found
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


def _check_size_of_weights(outcome: Outcome) -> None:
    """Refuse weights of a size that sums for the standard errors do not hold."""
    largest = float(outcome.weight.max())
    if not 1 / LARGEST_WEIGHT <= largest <= LARGEST_WEIGHT:
        raise InputError(
            f"the largest weight is {largest:g}, but for a Fine-Gray model it must be from "
            f"{1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}.",
            hint="multiply all weights by one number: coefficients and robust standard errors of "
            "a fit without a penalty stay the same.",
        )


def _refuse_unlinked(censoring: CensoringDistribution, outcome: Outcome) -> None:
    """Refuse rows whose weights after a competing event the entries do not determine."""
    found = censoring.unlinked(outcome)
    if found is None:
        return
    time, n_rows = found
    raise InputError(
        f"nobody is at risk just before time {time:.10g}, at which rows enter, so that "
        f"{counted(n_rows, 'row')} with a competing event by then cannot be weighted at later "
        "events.",
        hint=f"leave out the rows that end by {time:.10g}, or those that enter then or later. If "
        "rows are intervals of people, pass the people as `cluster`, with `person='cluster'`.",
    )


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
    names = data.covariates.names
    # A category has a column for each level, perhaps except one: columns determine the levels.
    own = [j for j, n in enumerate(names) if n == name or n.startswith(f"{name}=")]
    if not own:
        known = [*names, *(role for role, values in roles.items() if values is not None)]
        raise InputError.unknown_name(f"`{argument}` column", name, known)
    values = data.covariates.to_dense(columns=np.array(own))
    codes: AnyArray = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    return codes
