"""Parameters of estimators, and of the penalty among them."""

from collections.abc import Mapping
from copy import copy
from typing import Any, Self

from sklearn.base import BaseEstimator

from riskset._errors import InputError
from riskset.model.penalty import Penalty

__all__ = ["PenaltyParameters", "shared_parameters"]

NESTED = "penalty__"


def shared_parameters(model: BaseEstimator, kind: type[BaseEstimator]) -> dict[str, Any]:
    """The parameters of a model that estimators of another kind have, too."""
    known = set(kind._get_param_names())
    return {name: v for name, v in model.get_params(deep=False).items() if name in known}


class PenaltyParameters(BaseEstimator):  # type: ignore[misc]
    """Parameters of an estimator, and those of its penalty under names as ``penalty__strength``."""

    penalty: Any

    def _set(self, arguments: Mapping[str, object]) -> None:
        """Keep the arguments of the constructor, its ``locals()``, as scikit-learn asks for."""
        for name, value in arguments.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of the penalty, for example ``penalty__strength``.

        If several models share the penalty, the others are not changed.

        Raises
        ------
        InputError
            If a parameter of the penalty is set but the model has no penalty, or the penalty has no
            such parameter.
        """
        nested = [name for name in params if name.startswith(NESTED)]
        if nested:
            penalty = params.pop("penalty", self.penalty)
            if not isinstance(penalty, Penalty):
                what = "there is no penalty" if penalty is None else f"the penalty is {penalty!r}"
                raise InputError(
                    f"`{nested[0]}` was given, but {what}.",
                    hint="start from a penalty, such as penalty=riskset.L1(1.0), or search over "
                    "`penalty` itself.",
                )
            changes = {name.removeprefix(NESTED): params.pop(name) for name in nested}
            params["penalty"] = copy(penalty).set_params(**changes)
        super().set_params(**params)
        return self

    def _take_feature_names(self, other: BaseEstimator) -> None:
        """Have the columns of X that another estimator was fitted to."""
        self.n_features_in_ = other.n_features_in_
        if hasattr(other, "feature_names_in_"):
            self.feature_names_in_ = other.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
