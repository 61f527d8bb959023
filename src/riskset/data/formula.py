"""Covariates by a formula, as in R: splines, interactions and the coding of categories.

formulaic makes the columns; what it learns at the fit (knots, levels, means) is kept as JSON can
hold it, so that new data get the same columns.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._types import Factors
from riskset.data.design import Design
from riskset.data.frame import FrameEncoder, as_table
from riskset.data.missing_values import MissingRule
from riskset.data.model_formula import (
    covariate_terms,
    formulaic_package,
    variables_of,
    wrong_formula,
)
from riskset.data.natural_spline import natural_spline
from riskset.data.table import Table

__all__ = ["FormulaEncoder", "encoder_from_dict"]

CODED = re.compile(r"C\(\s*([^,()]+?)\s*[,)]")
"""A column that a formula makes a category."""


@dataclass(frozen=True, eq=False)
class FormulaEncoder:
    """How the columns of a table become the covariates of a formula.

    `variables` reads the columns that the formula uses: levels of text and categories are those of
    the fit, in their order. `transforms` are what splines and the like learnt, `categories` the
    levels of each coded factor, and `names` the covariates.
    """

    formula: str
    variables: FrameEncoder
    transforms: Mapping[str, Any]
    categories: Mapping[str, list[Any]]
    names: tuple[str, ...]

    factors: Factors = ()  # the formula says which level has no column

    @classmethod
    def fit(
        cls,
        frame: object,
        formula: str,
        reference: Mapping[str, object] | None = None,
        missing: MissingRule = "error",
    ) -> tuple["FormulaEncoder", Design]:
        """Learn the columns of a formula from a table, and make them.

        Raises `InputError` as `FrameEncoder.fit`, and if a column or function is not known.
        """
        if missing != "error":
            raise InputError(
                f"`missing={missing!r}` does not go with a formula.",
                hint="fill or remove the rows with missing values, or leave the formula out.",
            )
        table = as_table(frame)
        terms = covariate_terms(formula)
        used = dict.fromkeys(name for term in terms for name in variables_of(term, formula))
        for name in used:
            table.need(name)
        variables, _ = FrameEncoder.fit(table, tuple(used), reference)
        spec, matrix = _made(formula, _pandas(variables, table), {}, {})
        kinds = spec.encoder_state
        encoder = cls(
            formula,
            variables,
            {name: _packed(state) for name, state in spec.transform_state.items() if state},
            {
                name: _packed(list(state["categories"]))
                for name, (_, state) in kinds.items()
                if "categories" in state
            },
            tuple(name for name in spec.column_names if name != "Intercept"),
        )
        if not encoder.names:
            raise wrong_formula(formula, "it has no covariate", "add one.")
        return encoder, encoder._design(spec, matrix, table)

    def transform(self, frame: object) -> Design:
        """The covariates of new data, by what was learnt at the fit.

        Raises `InputError` if a column is absent, a value is missing, a level was not there at the
        fit, or a value lies beyond the range of a spline.
        """
        table = as_table(frame)
        values = _pandas(self.variables, table)
        transforms = {name: _unpacked(state) for name, state in self.transforms.items()}
        spec, matrix = _made(self.formula, values, transforms, self.categories)
        return self._design(spec, matrix, table)

    def _design(self, spec: Any, matrix: Any, table: Table) -> Design:
        names = list(spec.column_names)
        kept = [j for j, name in enumerate(names) if name != "Intercept"]
        if tuple(names[j] for j in kept) != self.names:
            raise InputError(
                f"the formula {self.formula!r} gives other columns than at the fit.",
                hint="fit the model again with this version of formulaic.",
            )
        found = matrix.tocsc()[:, kept]
        bad = np.flatnonzero(~np.isfinite(found.data))
        if bad.size:
            column = int(np.searchsorted(found.indptr, bad[0], side="right")) - 1
            row = int(found.indices[bad[0]])
            raise InputError(
                f"{self.names[column]!r} of the formula is not finite in row {row}.",
                hint="check the values of its columns, such as logarithms of numbers up to 0.",
            )
        return Design.from_sparse(found, self.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that the formula uses."""
        return self.variables.columns

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """Levels of columns of text and categories."""
        return self.variables.levels

    @property
    def fills(self) -> Mapping[str, float]:
        """None: missing values are errors."""
        return {}

    @property
    def identifiers(self) -> tuple[str, ...]:
        """Columns that look like identifiers; known after `fit` only."""
        return self.variables.identifiers

    @property
    def single_level(self) -> tuple[str, ...]:
        """Columns of categories that have one level only."""
        return self.variables.single_level

    @property
    def references(self) -> dict[str, str]:
        """Of each covariate that is a level, the level of its factor that has no column."""
        found: dict[str, str] = {}
        for factor, levels in self.categories.items():
            start = f"{factor}[T."
            coded_names = [n for n in self.names if n.startswith(start) and n.endswith("]")]
            own = {name: name[len(start) : -1] for name in coded_names}
            absent = [str(level) for level in levels if str(level) not in own.values()]
            if len(absent) == 1:
                coded = CODED.match(factor)
                column = coded[1] if coded else factor
                found.update(dict.fromkeys(own, f"{column}={absent[0]}"))
        return found

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the covariates."""
        return self.names

    def to_dict(self) -> dict[str, object]:
        """The encoder as JSON can hold it."""
        return self.variables.to_dict() | {
            "formula": {
                "covariates": self.formula,
                "transforms": dict(self.transforms),
                "categories": {name: list(levels) for name, levels in self.categories.items()},
                "names": list(self.names),
            }
        }


def encoder_from_dict(state: Mapping[str, Any]) -> FrameEncoder | FormulaEncoder:
    """The inverse of `to_dict` of both kinds of encoders."""
    variables, own = FrameEncoder.from_dict(state), state.get("formula")
    if own is None:
        return variables
    return FormulaEncoder(
        own["covariates"], variables, own["transforms"], own["categories"], tuple(own["names"])
    )


# ------------------------------------------------------------------------------------ columns


def _pandas(variables: FrameEncoder, table: Table) -> Any:
    import pandas as pd

    columns: dict[str, Any] = {}
    for name, values in variables.values(table):
        levels = variables.levels.get(name)
        known = None if levels is None else pd.Index(levels)
        columns[name] = values if known is None else pd.Categorical.from_codes(values, known)
    return pd.DataFrame(columns, index=range(table.n_rows))


def _made(
    formula: str, values: Any, transforms: Mapping[str, Any], categories: Mapping[str, list[Any]]
) -> tuple[Any, Any]:
    """The specification, and the sparse matrix of its columns."""
    formulaic = formulaic_package()
    from formulaic.parser.types import Factor

    category, terms = Factor.Kind.CATEGORICAL, covariate_terms(formula)
    for term in terms:  # a formula from a file is as little trusted as any other
        list(variables_of(term, formula))
    spec = formulaic.ModelSpec(
        formula=formulaic.Formula(terms),
        output="sparse",
        na_action="ignore",  # there are none; what a logarithm makes is found later
        transform_state=dict(transforms),
        encoder_state={
            name: (category, {"categories": list(levels)}) for name, levels in categories.items()
        },
    )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", category=formulaic.errors.DataMismatchWarning)
            warnings.filterwarnings("ignore", category=RuntimeWarning)  # found as not finite
            matrix = spec.get_model_matrix(values, context={"ns": natural_spline()})
    except Exception as error:  # formulaic raises errors of many classes
        words = str(error).splitlines()[0].rstrip(".")
        hint = "check the values of the columns."
        if "beyond upper and/or lower bounds" in words:  # formulaic has no class of its own for it
            words = "a value lies beyond the range that a spline had at the fit"
            hint = (
                "`extrapolation='clip'` in the call of bs() takes the nearest limit, and "
                "`extrapolation='extend'` continues the curve, as R does; ns() is linear there."
            )
        raise wrong_formula(formula, words, hint) from None
    return matrix.model_spec, matrix


def _packed(state: Any) -> Any:
    """State of a transform as JSON can hold it; keys of mappings may be numbers."""
    if isinstance(state, Mapping):
        return {"pairs": [[_packed(key), _packed(value)] for key, value in state.items()]}
    if isinstance(state, np.ndarray):
        return {"array": state.tolist()}
    if isinstance(state, list | tuple):
        return [_packed(one) for one in state]
    if isinstance(state, np.generic):
        return state.item()
    if state is None or isinstance(state, bool | int | float | str):
        return state
    raise InputError(
        f"a term of the formula keeps an object of type {type(state).__name__}, which cannot be "
        "saved.",
        hint="make its values a column first.",
    )


def _unpacked(state: Any) -> Any:
    if isinstance(state, Mapping):
        if "array" in state:
            return np.array(state["array"])
        return {_unpacked(key): _unpacked(value) for key, value in state["pairs"]}
    return [_unpacked(one) for one in state] if isinstance(state, list) else state
