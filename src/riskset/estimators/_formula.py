"""Fits whose covariates a formula describes."""

from collections.abc import Mapping
from typing import Any, Self

from riskset.data.dataset import Dataset

__all__ = ["FormulaFits"]


class FormulaFits:
    """`from_formula` of the estimators."""

    @classmethod
    def from_formula(
        cls,
        formula: str,
        data: object,
        *,
        reference: Mapping[str, object] | None = None,
        censored: str | None = None,
        id: str | None = None,
        weight: str | None = None,
        **parameters: Any,
    ) -> Self:
        """Fit a model whose covariates a formula describes, as in R and lifelines.

        ``Surv(time, event) ~ bs(age, df=4) + sex * treatment + strata(site)``. The left side names
        time and event, or entry, time and event; ``event == 2`` chooses a cause. On the right side,
        ``a:b`` is an interaction, ``a * b`` stands for ``a + b + a:b``, and columns of text and
        categories are compared with their first level. Functions are:

        * splines: ``bs(x, df=4)`` (B-splines), ``ns(x, df=3)`` (natural cubic splines), both with
          the columns of R, ``cr``, ``cs``, ``cc`` and ``poly(x, 2)``,
        * ``C(x)`` makes categories of numbers, ``C(x, contr.treatment("b"))`` chooses a reference
          (also ``contr.sum``, ``contr.helmert``, ``contr.poly``, ``contr.diff``),
        * ``log``, ``exp``, ``np.sqrt`` and the like, ``center``, ``scale``, ``I(x + y)``,
        * ``strata(a, b)``, ``cluster(id)`` and ``offset(x)`` name columns.

        Knots, levels, means and codings are those of the fit: new data of `predict` get the same
        columns, also after `save` and `riskset.load`. There is no intercept. Needs formulaic
        (``pip install "riskset[formula]"``).

        Parameters
        ----------
        formula : str
        data : data frame
        reference : dict of str to level, optional
            Reference levels of columns of text or categories.
        censored : str, optional
            Label of censoring, if the events are text.
        id, weight : str, optional
            Columns that identify rows, and of case weights.
        **parameters
            Parameters of the class, such as `penalty` and `ties`.

        Returns
        -------
        The fitted model.

        Raises
        ------
        InputError
            If the formula is not valid or has an unknown function, and as for
            `riskset.Dataset.from_frame`. In predictions: a level that was not in the data of the
            fit, a missing value, or a value beyond the range of a B-spline.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import riskset as rs
        >>> frame = pa.table({
        ...     "days": [5, 8, 2, 9, 4, 7], "died": [1, 0, 1, 1, 1, 0],
        ...     "age": [61, 70, 55, 48, 66, 52], "sex": ["m", "f", "m", "f", "f", "m"],
        ... })
        >>> model = rs.Cox.from_formula("Surv(days, died) ~ log(age) + sex", frame)
        >>> model.covariates_
        ('log(age)', 'sex[T.m]')
        """
        roles: dict[str, Any] = {"censored": censored, "id": id, "weight": weight}
        dataset = Dataset.from_frame(data, formula=formula, reference=reference, **roles)
        model: Self = cls(**parameters).fit(dataset)  # type: ignore[attr-defined]
        return model
