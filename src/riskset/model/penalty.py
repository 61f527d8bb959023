r"""Penalties on the coefficients, on the scale of the total log likelihood.

All penalties are special cases of one objective,

.. math:: -\ell(\beta) + \sum_j f_j (\lambda_1 |\beta_j| + \tfrac{1}{2} \lambda_2 \beta_j^2),

where :math:`\ell` is the log partial likelihood summed over rows (not averaged), :math:`\beta_j`
the log hazard ratio per unit of the column as given by the user (not standardised), and :math:`f_j
\ge 0` a factor, which is 0 for an unpenalised column. Other programs use other scales for the same
problem:

=========================================== ================================ ======================
program                                     :math:`\lambda_1`                :math:`\lambda_2`
=========================================== ================================ ======================
Cyclops, Laplace prior of variance v        sqrt(2 / v)                      0
Cyclops, normal prior of variance v         0                                1 / v
glmnet(lambda, alpha, standardize=FALSE)    W lambda alpha                   W lambda (1 - alpha)
scikit-survival CoxnetSurvivalAnalysis      n alpha l1_ratio                 n alpha (1 - l1_ratio)
scikit-survival CoxPHSurvivalAnalysis       0                                alpha
=========================================== ================================ ======================

W is the sum of the case weights and n the number of rows. glmnet and Coxnet rescale penalty factors
to mean 1; `ElasticNet.from_glmnet` does the same for both.

One rule holds wherever a model takes a penalty: None is no penalty, a penalty with a strength is
used as it is, and a penalty without one, such as ``L1()``, has its strength chosen by
cross-validation. Where nothing chooses a strength (`riskset.Cox`), it has to be given; where it is
chosen (`riskset.CoxCV`), it must not be.
"""

import inspect
import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self, cast

import numpy as np

from riskset._errors import InputError
from riskset._types import Features
from riskset.model.penalty_arguments import (
    Column,
    Factor,
    as_positive,
    as_share,
    as_strength,
    checked_choice,
    checked_factor,
    columns,
    position,
)

__all__ = ["L1", "L2", "ElasticNet", "Penalty", "as_kind"]

KINDS = ("l1", "l2")
"""Penalties that text stands for; their strength is chosen."""

VARIANCE_HINT = "for no penalty use `penalty=None`."


@dataclass(frozen=True, kw_only=True, repr=False)
class Penalty:
    """Base class of `L1`, `L2` and `ElasticNet`.

    Attributes
    ----------
    l1, l2 : float, >= 0
        Strengths on the total log likelihood; of a penalty without a strength, the shares of L1 and
        L2.
    has_strength : bool
        Whether the strength is given. If it is not, cross-validation chooses it.
    unpenalized : tuple of str or int
        Columns without a penalty, by name or position.
    factor : mapping or tuple of float, optional
        Multiplies both strengths of a column. A mapping contains some columns, and the others have
        factor 1. A sequence has one number per column.
    rescale : bool
        Rescale the factors of all columns to mean 1, as glmnet does.
    drop_first : bool, optional
        Whether to leave out the column of the first level of a penalised category. None: leave it
        out if the solution would not be unique otherwise, that is with L1 alone, or if columns are
        given by position, because positions count columns without first levels. A category with an
        unpenalised level always leaves one level out: the first penalised level, or the first of
        all.
    """

    l1: float = 0.0
    l2: float = 0.0
    unpenalized: Sequence[Column] = ()
    factor: Factor | None = None
    rescale: bool = False
    drop_first: bool | None = None
    has_strength: bool = True

    def __post_init__(self) -> None:
        _set(self, "l1", as_strength(self.l1, "strength" if isinstance(self, L1) else "l1"))
        _set(self, "l2", as_strength(self.l2, "strength" if isinstance(self, L2) else "l2"))
        _set(self, "unpenalized", columns(self.unpenalized))
        _set(self, "factor", checked_factor(self.factor))
        _set(self, "drop_first", checked_choice(self.drop_first))

    def __repr__(self) -> str:
        parts = self._repr_of_strength()
        if self.unpenalized:
            parts.append(f"unpenalized={self.unpenalized!r}")
        if self.factor is not None:
            parts.append(f"factor={self.factor!r}")
        if self.rescale:
            parts.append("rescale=True")
        if self.drop_first is not None:
            parts.append(f"drop_first={self.drop_first}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_of_strength(self) -> list[str]:
        return [repr(self.strength)] if self.has_strength else []

    @property
    def leaves_first_out(self) -> bool:
        """Whether penalised categories leave out their first level; see `drop_first`."""
        if self.drop_first is not None:
            return self.drop_first
        by_position = isinstance(self.factor, tuple) or any(
            isinstance(column, int) for column in (*self.unpenalized, *(self.factor or ()))
        )
        return self.l2 == 0 or by_position

    @property
    def strength(self) -> float:
        """The strength that a path varies: l1 + l2.

        An `InputError` if the penalty has none.
        """
        if not self.has_strength:
            raise InputError(
                f"the penalty {self!r} has no strength.",
                hint="give it one, such as L1(2.0), or let CoxCV or FineGrayCV choose one; for no "
                "penalty, use `penalty=None`.",
            )
        return self.l1 + self.l2

    @property
    def l1_ratio(self) -> float:
        """Proportion of the L1 part in the strength. 1 if both are 0."""
        total = self.l1 + self.l2
        return self.l1 / total if total > 0 else 1.0

    def with_strength(self, strength: float) -> Self:
        """Return the same penalty with another strength."""
        checked, ratio = as_strength(strength, "strength"), self.l1_ratio
        other = copy(self)
        _set(other, "l1", checked * ratio)
        _set(other, "l2", checked * (1 - ratio))
        _set(other, "has_strength", True)
        return other

    def without_strength(self) -> Self:
        """Return the same kind of penalty, its strength to be chosen by cross-validation.

        Examples
        --------
        >>> import riskset as rs
        >>> rs.L1(20.0, unpenalized=["treatment"]).without_strength()
        L1(unpenalized=('treatment',))
        """
        other, ratio = copy(self), self.l1_ratio
        for name, value in (("l1", ratio), ("l2", 1 - ratio), ("has_strength", False)):
            _set(other, name, value)
        return other

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the constructor arguments, as scikit-learn requires."""
        given = {"strength": self.l1 + self.l2 if self.has_strength else None}
        return {
            name: given[name] if name in given else getattr(self, name)
            for name in _arguments(type(self))
        }

    def set_params(self, **params: object) -> Self:
        """Set arguments of this penalty, as scikit-learn requires.

        Estimators change a copy, so ``model.set_params(penalty__strength=2.0)`` does not affect
        other models.

        Raises
        ------
        InputError
            If the argument does not exist, or a value is not valid.
        """
        known = _arguments(type(self))
        for name in params:
            if name not in known:
                kind = type(self).__name__
                raise InputError.unknown_name("parameter", name, known, place=f"riskset.{kind}")
        changed = type(self)(**(self.get_params() | params))  # type: ignore[arg-type]
        vars(self).update(vars(changed))  # frozen for everybody else
        return self

    def __sklearn_clone__(self) -> Self:
        # A clone by the constructor must be given back the very objects that it was given.
        return copy(self)

    def factors(self, names: Sequence[str]) -> Features:
        """Return the factor of every column, 0 for unpenalised columns.

        Parameters
        ----------
        names : (p,) str
            The columns of the design.

        Returns
        -------
        (p,) float64, >= 0

        Raises
        ------
        InputError
            If a column does not exist or the number of factors is wrong.
        """
        has_names = isinstance(self.factor, Mapping) or bool(self.unpenalized)
        where = {name: j for j, name in enumerate(names)} if has_names else {}
        result = np.ones(len(names))
        if isinstance(self.factor, Mapping):
            for column, value in self.factor.items():
                result[position(column, where, names, "factor")] = value
        elif self.factor is not None:
            if len(self.factor) != len(names):
                raise InputError(
                    f"`factor` must have one number for each of the {len(names):,} columns, "
                    f"but it has {len(self.factor):,}.",
                    hint="pass a mapping such as {'treatment': 0.0} to name some columns only.",
                )
            result[:] = self.factor
        for column in self.unpenalized:
            result[position(column, where, names, "unpenalized")] = 0.0
        if self.rescale and result.size:
            if not result.any():
                raise InputError(
                    "`factor` must be positive for at least one column, but all are 0, "
                    "so they cannot be rescaled to mean 1.",
                    hint="use `penalty=None` for a fit without any penalty.",
                )
            result /= result.mean()
        return result

    def arrays(self, names: Sequence[str]) -> tuple[Features, Features]:
        """Return the strengths of every column.

        Parameters
        ----------
        names : (p,) str
            The columns of the design.

        Returns
        -------
        l1, l2 : (p,) float64, >= 0
            Strengths on the total log likelihood, per unit of the columns as given by the user.

        Raises
        ------
        InputError
            As `factors`, and if the penalty has no strength.
        """
        _ = self.strength  # an error if there is none
        factors = self.factors(names)
        return self.l1 * factors, self.l2 * factors


class L1(Penalty):
    r"""Lasso penalty, :math:`\lambda_1 \sum_j f_j |\beta_j|`, on the total log likelihood.

    Parameters
    ----------
    strength : float, >= 0, optional
        :math:`\lambda_1`. A Laplace prior of variance v has strength sqrt(2 / v). Left out: to be
        chosen by cross-validation.
    unpenalized : sequence of str or int
        Columns without a penalty, by name or position, for example the treatment.
    factor : mapping or (p,) float, optional
        Relative strengths :math:`f_j`, by name or for all columns.
    drop_first : bool, optional
        Whether to leave out the first level of a penalised category of a data frame. Default: leave
        it out, because the lasso solution with all levels is not unique: with an even number of
        levels, all coefficients of a category can be shifted without a change of the penalty.

    Raises
    ------
    InputError
        If a strength or factor is negative, missing or infinite.

    References
    ----------
    Tibshirani (1997), Statistics in Medicine 16, 385-395.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.L1(2.0, unpenalized=["treatment"]).arrays(["treatment", "age"])[0]
    array([0., 2.])
    """

    def __init__(
        self,
        strength: float | None = None,
        *,
        unpenalized: Sequence[Column] = (),
        factor: Factor | None = None,
        drop_first: bool | None = None,
    ) -> None:
        super().__init__(
            l1=1.0 if strength is None else strength,
            unpenalized=unpenalized,
            factor=factor,
            drop_first=drop_first,
            has_strength=strength is not None,
        )

    @property
    def l1_ratio(self) -> float:
        """1: the whole strength is L1."""
        return 1.0

    @classmethod
    def from_variance(
        cls,
        variance: float,
        *,
        unpenalized: Sequence[Column] = (),
        factor: Factor | None = None,
        drop_first: bool | None = None,
    ) -> Self:
        """Create the penalty from the variance of a Laplace prior: strength sqrt(2 / variance).

        Examples
        --------
        >>> import riskset as rs
        >>> rs.L1.from_variance(0.5).strength
        2.0
        """
        strength = math.sqrt(2.0 / as_positive(variance, "variance", VARIANCE_HINT))
        return cls(strength, unpenalized=unpenalized, factor=factor, drop_first=drop_first)


class L2(Penalty):
    r"""Ridge penalty :math:`\frac{\lambda_2}{2} \sum_j f_j \beta_j^2`.

    Parameters
    ----------
    strength : float, >= 0, optional
        :math:`\lambda_2`. A normal prior of variance v has strength 1 / v. Left out: to be chosen
        by cross-validation.
    unpenalized, factor
        As in `L1`, as are the errors.
    drop_first : bool, optional
        Whether to leave out the first level of a penalised category of a data frame. Default: keep
        all levels, so that their order does not matter, unless columns are given by position.

    References
    ----------
    Verweij and van Houwelingen (1994), Statistics in Medicine 13, 2427-2436,
    doi:10.1002/sim.4780132307.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.L2(2.0).arrays(["age"])[1]
    array([2.])
    """

    def __init__(
        self,
        strength: float | None = None,
        *,
        unpenalized: Sequence[Column] = (),
        factor: Factor | None = None,
        drop_first: bool | None = None,
    ) -> None:
        super().__init__(
            l2=1.0 if strength is None else strength,
            unpenalized=unpenalized,
            factor=factor,
            drop_first=drop_first,
            has_strength=strength is not None,
        )

    @property
    def l1_ratio(self) -> float:
        """0: the whole strength is L2."""
        return 0.0

    @classmethod
    def from_variance(
        cls,
        variance: float,
        *,
        unpenalized: Sequence[Column] = (),
        factor: Factor | None = None,
        drop_first: bool | None = None,
    ) -> Self:
        """Create the penalty from the variance of a normal prior: strength 1 / variance.

        Examples
        --------
        >>> import riskset as rs
        >>> rs.L2.from_variance(0.5).strength
        2.0
        """
        return cls(
            1.0 / as_positive(variance, "variance", VARIANCE_HINT),
            unpenalized=unpenalized,
            factor=factor,
            drop_first=drop_first,
        )


class ElasticNet(Penalty):
    r"""Elastic net :math:`\sum_j f_j (\lambda_1 |\beta_j| + \frac{\lambda_2}{2} \beta_j^2)`.

    Parameters
    ----------
    l1, l2 : float, >= 0, optional
        Strengths on the total log likelihood.
    strength, l1_ratio : float, optional
        Instead of `l1` and `l2`, their sum and the share of L1 in it, between 0 and 1. Without a
        strength, cross-validation chooses it.
    unpenalized, factor
        As in `L1`, as are the errors.
    rescale : bool
        Rescale the factors of all columns to mean 1, as glmnet and scikit-survival do.
    drop_first : bool, optional
        As in `L2` if l2 is above 0, otherwise as in `L1`.

    References
    ----------
    Simon, Friedman, Hastie and Tibshirani (2011), Journal of Statistical Software 39(5), 1-13,
    doi:10.18637/jss.v039.i05.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.ElasticNet(l1=3.0, l2=1.0).l1_ratio
    0.75
    >>> rs.ElasticNet(strength=4.0, l1_ratio=0.75)
    ElasticNet(l1=3.0, l2=1.0)
    >>> rs.ElasticNet(l1_ratio=0.5, unpenalized=["treatment"])  # for CoxCV
    ElasticNet(l1_ratio=0.5, unpenalized=('treatment',))
    """

    def __init__(
        self,
        *,
        l1: float | None = None,
        l2: float | None = None,
        strength: float | None = None,
        l1_ratio: float | None = None,
        unpenalized: Sequence[Column] = (),
        factor: Factor | None = None,
        rescale: bool = False,
        drop_first: bool | None = None,
    ) -> None:
        l1, l2 = _parts(l1, l2, strength, l1_ratio)
        super().__init__(
            l1=l1,
            l2=l2,
            unpenalized=unpenalized,
            factor=factor,
            rescale=rescale,
            drop_first=drop_first,
            has_strength=l1_ratio is None or strength is not None,
        )
        _set(self, "_by_ratio", l1_ratio is not None)

    def _repr_of_strength(self) -> list[str]:
        if not self.has_strength:
            return [f"l1_ratio={self.l1_ratio!r}"]
        return [f"l1={self.l1!r}, l2={self.l2!r}"]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the constructor arguments, as scikit-learn requires.

        Either `l1` and `l2`, or `strength` and `l1_ratio` are None, whichever was not given.
        """
        unused = ("l1", "l2") if vars(self)["_by_ratio"] else ("strength", "l1_ratio")
        return super().get_params(deep) | dict.fromkeys(unused)

    def set_params(self, **params: object) -> Self:
        """Set arguments, as scikit-learn requires; `strength` keeps the share of L1."""
        parts: dict[str, object] = dict.fromkeys(("l1", "l2", "strength", "l1_ratio"))
        if params.keys() & {"strength", "l1_ratio"}:
            strength = self.l1 + self.l2 if self.has_strength else None
            params = parts | {"strength": strength, "l1_ratio": self.l1_ratio} | params
        elif params.keys() & {"l1", "l2"}:
            own = {"l1": self.l1, "l2": self.l2} if self.has_strength else {}
            params = parts | own | params
        return super().set_params(**params)

    @classmethod
    def from_glmnet(
        cls,
        lam: float,
        alpha: float,
        sum_of_weights: float,
        factor: Factor | None = None,
        *,
        unpenalized: Sequence[Column] = (),
        drop_first: bool | None = None,
    ) -> Self:
        """Create the penalty from glmnet's lambda and alpha.

        The equivalent call has ``family="cox"`` and ``standardize=FALSE``.

        Parameters
        ----------
        lam : float, >= 0
            glmnet's lambda, on the scale of the log likelihood divided by the sum of weights.
        alpha : float in [0, 1]
            Proportion of the L1 part.
        sum_of_weights : float, > 0
            Sum of the case weights, or the number of rows without weights.
        factor : mapping or (p,) float, optional
            glmnet's ``penalty.factor``. All p factors are rescaled to mean 1, as in glmnet,
            including those of unnamed columns (1) and unpenalised columns (0).
        unpenalized : sequence of str or int
            Columns with factor 0.
        drop_first : bool, optional
            As in `ElasticNet`.

        Returns
        -------
        ElasticNet with l1 = W lam alpha and l2 = W lam (1 - alpha), W the sum of the weights.

        Raises
        ------
        InputError
            If a number is negative, missing or infinite, or alpha is outside [0, 1].

        Notes
        -----
        With tied event times, glmnet's solution is not that of Breslow's likelihood and differs
        from riskset's.

        Examples
        --------
        >>> import riskset as rs
        >>> rs.ElasticNet.from_glmnet(0.08, 0.5, 200).l1
        8.0
        """
        lam, total = (
            as_strength(lam, "lam"),
            as_positive(
                sum_of_weights, "sum_of_weights", "without case weights it is the number of rows."
            ),
        )
        share = as_share(alpha, "alpha")
        return cls(
            l1=total * lam * share,
            l2=total * lam * (1 - share),
            unpenalized=unpenalized,
            factor=factor,
            rescale=True,
            drop_first=drop_first,
        )


def as_kind(penalty: object) -> object:
    """A penalty where its strength is chosen, for which "l1" and "l2" may stand."""
    if isinstance(penalty, str) and penalty in KINDS:
        return L1() if penalty == "l1" else L2()
    return penalty


def _parts(
    l1: float | None, l2: float | None, strength: float | None, l1_ratio: float | None
) -> tuple[float, float]:
    """Both strengths of an elastic net; their shares if it has none."""
    by_parts, by_ratio = (l1, l2) != (None, None), (strength, l1_ratio) != (None, None)
    if by_parts == by_ratio or (l1_ratio is None if by_ratio else None in (l1, l2)):
        raise InputError(
            "an elastic net needs either both of `l1` and `l2`, or `l1_ratio` with or without "
            "`strength`.",
            hint="for example ElasticNet(l1=3.0, l2=1.0), or ElasticNet(l1_ratio=0.5) where "
            "cross-validation chooses the strength.",
        )
    if by_parts:
        return cast(float, l1), cast(float, l2)
    share = as_share(l1_ratio, "l1_ratio")
    total = 1.0 if strength is None else as_strength(strength, "strength")
    return total * share, total * (1 - share)


def _arguments(kind: type[Penalty]) -> tuple[str, ...]:
    """Names of the arguments of a penalty."""
    return tuple(inspect.signature(kind).parameters)


def _set(penalty: Penalty, name: str, value: object) -> None:
    object.__setattr__(penalty, name, value)  # frozen for everybody else
