"""The step of the imputation: who lends a value to whom, in each completed data set."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from riskset._runtime import Runtime
from riskset._types import AnyArray, Matrix
from riskset.data.incomplete import Donors, IncompleteColumn
from riskset.imputation.chain import Chain, run_chains
from riskset.imputation.outcome import outcome_columns
from riskset.imputation.settings import Imputation
from riskset.study.cache import StepResult

__all__ = ["ImputationStep", "impute_covariates", "imputation_models"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ImputationStep(StepResult, step="imputation"):
    """The donors of missing values.

    `names` are the columns that have some. By the place of a column in them, `missing` has the rows
    without a value, and `donors` (data sets, rows) the rows that lend them theirs.
    """

    names: list[str]
    missing: dict[str, AnyArray]
    donors: dict[str, AnyArray]

    def of(self, data_set: int) -> Donors:
        """The donors of one data set."""
        return {
            name: (self.missing[str(k)], self.donors[str(k)][data_set])
            for k, name in enumerate(self.names)
        }


def imputation_models(
    columns: Sequence[IncompleteColumn],
    outcomes: Sequence[tuple[AnyArray, AnyArray, AnyArray | None]],
    settings: Imputation,
) -> Chain:
    """The models of covariates and treatment, given each other and all outcomes.

    Outcomes are time, status and, if some enter late, the entry.

    Raises `InputError` if a column has too few known values.
    """
    parts: list[AnyArray] = []
    for time, status, entry in outcomes:
        for column in outcome_columns(time, status, entry).T:
            # Outcomes may share a column, such as the competing event of all.
            if not any(np.array_equal(column, other) for other in parts):
                parts.append(column)
    outcome: Matrix = np.column_stack(parts) if parts else np.zeros((columns[0].missing.size, 0))
    return Chain(columns, outcome, settings)


def impute_covariates(chain: Chain, seed: int) -> ImputationStep:
    """Every completed data set."""
    completed = run_chains(chain, seed, Runtime.select("cpu"))
    names = list(completed[0].donors)
    return ImputationStep(
        names=names,
        missing={str(k): completed[0].donors[name][0] for k, name in enumerate(names)},
        donors={
            str(k): np.array([one.donors[name][1] for one in completed])
            for k, name in enumerate(names)
        },
    )
