r"""The first level of a category, which a model cannot have beside all others.

Every row has exactly one level, so the columns of all levels of a category add up to 1. Adding a
number to all their coefficients changes no partial likelihood, and no likelihood with an intercept.
Without a penalty the coefficients are then not unique, and one level is left out. A penalty with an
L2 part makes them unique, and all levels stay: which one comes first has no influence. The lasso
alone does not: with two levels, :math:`|\beta_1| + |\beta_2|` is the same for all pairs of
coefficients with one difference and different signs.

References
----------
Hastie, Tibshirani and Wainwright (2015), Statistical Learning with Sparsity, section 2.6, for the
uniqueness of the lasso.
"""

from collections.abc import Mapping

import numpy as np

from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.model.penalty import Penalty

__all__ = ["without_levels", "without_references"]


def without_references(design: Design, penalty: Penalty | None) -> Design:
    """A design without the first levels that its model cannot have.

    A category without all of its levels in the design stays as it is. Levels that the penalty, at
    any strength above 0, names as unpenalised stay, and the first of the others goes.

    Raises
    ------
    InputError
        If the penalty names a column that is absent.
    """
    there = set(design.names)
    whole = [factor for factor in design.factors if there.issuperset(factor)]
    if not whole:
        return design
    is_penalized = np.zeros(design.n_features, dtype=bool)
    if penalty is not None and not penalty.leaves_first_out:
        is_penalized = penalty.factors(design.names) > 0
    spared = _named_as_unpenalized(penalty)
    gone = {
        next((name for name in factor if name not in spared), factor[0])
        for factor in whole
        if len(factor) == 1 or not all(is_penalized[design.index_of(name)] for name in factor)
    }
    return _without(design, gone)


def _named_as_unpenalized(penalty: Penalty | None) -> set[object]:
    if penalty is None:
        return set()
    factor = penalty.factor if isinstance(penalty.factor, Mapping) else {}
    return {*penalty.unpenalized, *(name for name, value in factor.items() if value == 0)}


def without_levels(design: Design, unwanted: set[str]) -> Design:
    """A design without some columns, which also do not follow from the others.

    Of a category that loses some levels the first of the others goes, too: the levels left out
    would otherwise follow from those that stay.
    """
    gone = set(unwanted)
    there = set(design.names)
    for factor in design.factors:
        left = [name for name in factor if name in there and name not in unwanted]
        if there.issuperset(factor) and left and len(left) < len(factor):
            gone.add(left[0])
    return _without(design, gone)


def _without(design: Design, gone: set[str]) -> Design:
    if not gone:
        return design
    kept = [j for j, name in enumerate(design.names) if name not in gone]
    return select_columns(design, np.array(kept, dtype=np.int64))
