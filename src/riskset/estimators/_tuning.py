"""Parameters of a penalty as those of the estimator that holds it: ``penalty__strength``."""

from copy import copy
from typing import Any, Self

from sklearn.base import BaseEstimator

from riskset._errors import InputError
from riskset.model.penalty import Penalty

__all__ = ["TunablePenalty"]

NESTED = "penalty__"


class TunablePenalty(BaseEstimator):  # type: ignore[misc]
    """The part of an estimator whose penalty can be searched, as scikit-learn names parameters."""

    penalty: Any

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
            own = {name.removeprefix(NESTED): params.pop(name) for name in nested}
            params["penalty"] = copy(penalty).set_params(**own)
        super().set_params(**params)
        return self
