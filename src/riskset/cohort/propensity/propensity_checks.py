"""Covariates that nearly determine the treatment, reported before a propensity score is fitted."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError
from riskset._messages import Note, Value
from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index, is_number
from riskset.cohort.population import Population
from riskset.data.column_storage import DenseColumns
from riskset.data.design import Design
from riskset.data.frame import data_frame
from riskset.model.penalty import Penalty
from riskset.model.references import without_levels, without_references

__all__ = [
    "ScoreCovariates",
    "OnHighCorrelation",
    "TreatmentCovariates",
    "correlations",
    "one_arm_only",
]

OnHighCorrelation = Literal["error", "exclude", "warn"]

LEAST_ROWS = 25
"""A rarer covariate may be found in one arm only by chance."""
ROUNDING = 1e-12
"""A variance that is less of the second moment is none."""


@dataclass(frozen=True, eq=False, repr=False)
class TreatmentCovariates:
    """Some covariates and how they differ between the arms; all (k,).

    Attributes
    ----------
    names : tuple of str
    keys : tuple
        The caller's keys.
    correlation : float64
        Pearson's, with the treatment.
    mean_target, mean_comparator : float64
        Of a covariate of zeros and ones, its prevalence.
    """

    names: tuple[str, ...]
    keys: tuple[int | str, ...]
    correlation: Features
    mean_target: Features
    mean_comparator: Features

    @classmethod
    def of(cls, design: Design, target: Population, columns: Index) -> "TreatmentCovariates":
        """Some columns of a design."""
        runtime = Runtime.select()
        means = []
        for arm in (target.is_target, ~target.is_target):
            size = max(int(np.count_nonzero(arm)), 1)
            stored = design.cross(arm.astype(np.float64), columns, runtime=runtime) / size
            means.append(stored * design.scale[columns] + design.center[columns])
        return cls(
            tuple(design.names[j] for j in columns),
            tuple(design.keys[j] for j in columns),
            correlations(design, target.is_target, columns),
            *means,
        )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        rows = [
            f"  {name!r}: correlation {r:.3f}, mean {a:.4g} in the target and {b:.4g} elsewhere"
            for name, r, a, b in zip(
                self.names[:10],
                self.correlation,
                self.mean_target,
                self.mean_comparator,
                strict=False,
            )
        ]
        more = [f"  and {len(self) - 10:,} more"] if len(self) > 10 else []
        return "\n".join([f"{type(self).__name__}({len(self):,})", *rows, *more])

    def columns(self) -> dict[str, AnyArray]:
        """Return everything as columns of a table."""
        return {
            "covariate_id": np.array(self.keys, dtype=object),
            "name": np.array(self.names, dtype=object),
            "correlation": self.correlation,
            "mean_target": self.mean_target,
            "mean_comparator": self.mean_comparator,
        }

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row per covariate; "pandas", "polars" or "pyarrow"."""
        return data_frame(self.columns(), library)


def correlations(
    design: Design, is_target: NDArray[np.bool_], columns: Index | None = None
) -> Features:
    r"""Pearson correlation of each column with the treatment, in one pass; 0 for a constant.

    .. math:: r = \frac{\sum_{target} x - n_1 \bar x}
        {\sqrt{(\sum x^2 - n \bar x^2) \, n_1 n_0 / n}}
    """
    runtime, n = Runtime.select(), is_target.size
    n1 = int(np.count_nonzero(is_target))
    one = np.ones(n)
    total = design.cross(one, columns, runtime=runtime)
    square = design.cross(one, columns, runtime=runtime, power=2)
    ours = design.cross(is_target.astype(np.float64), columns, runtime=runtime)
    spread = square - total**2 / n
    varies = (spread > ROUNDING * square) & (0 < n1 < n)
    size = np.sqrt(np.where(varies, spread, 1.0) * max(n1 * (n - n1) / n, 1e-300))
    return np.where(varies, (ours - total * (n1 / n)) / size, 0.0)


def one_arm_only(design: Design, is_target: NDArray[np.bool_]) -> Index:
    """Columns that are other than 0 in at least 25 rows, all of them in one arm.

    Correlations do not see a rare covariate that is a perfect predictor. Columns that are stored
    dense, as measurements of everybody, are not looked at.
    """
    runtime = Runtime.select()
    counts = [
        design.cross(arm.astype(np.float64), runtime=runtime, power=0)
        for arm in (is_target, ~is_target)
    ]
    found = (counts[0] + counts[1] >= LEAST_ROWS) & (np.minimum(*counts) == 0)
    for part in design.parts:
        if isinstance(part, DenseColumns):
            found[part.columns] = False
    return np.flatnonzero(found)


@dataclass(frozen=True)
class ScoreCovariates:
    """The covariates of the model, and those that nearly determine the treatment."""

    design: Design
    high_correlation: TreatmentCovariates
    one_arm_only: TreatmentCovariates
    excluded: tuple[str, ...]
    notes: tuple[Note, ...]

    @classmethod
    def check(
        cls,
        design: Design,
        people: Population,
        action: OnHighCorrelation,
        limit: float,
        penalty: Penalty | None,
    ) -> "ScoreCovariates":
        """Look for covariates that determine the treatment, among all levels of categories.

        The model has all but those excluded and the first levels that `penalty` leaves no room
        for.
        """
        if not (is_number(limit) and 0 < limit <= 1):
            raise CohortError(
                "BadSetting",
                f"`max_correlation` must be above 0 and at most 1, but it is {limit!r}.",
                hint="0.5 is usual.",
            )
        target = people.is_target
        at = np.flatnonzero(np.abs(correlations(design, target)) >= limit)
        has_both = bool(target.any() and not target.all())
        high = TreatmentCovariates.of(design, people, at)
        alone = one_arm_only(design, target) if has_both else at[:0]
        rare = TreatmentCovariates.of(design, people, alone)
        notes = [*_notes_on_high(high, action, limit), *_notes_on_rare(rare)]
        if action == "exclude" and at.size:
            design = without_levels(design, set(high.names))
        design = without_references(design, penalty)
        return cls(design, high, rare, high.names if action == "exclude" else (), tuple(notes))


def _notes_on_high(
    found: TreatmentCovariates, action: OnHighCorrelation, limit: float
) -> list[Note]:
    if not len(found):
        return []
    listed, values = _named(found)
    what = (
        "{n:covariate has|covariates have} a correlation of at least {limit:g} with the treatment: "
        + listed
    )
    values["limit"] = Value("setting", limit)
    if action == "error":
        raise CohortError(
            "HighCorrelation",
            f"{what}.",
            hint="leave out what is the treatment by another name, such as the drug itself, or "
            "all of them by `on_high_correlation='exclude'`; 'warn' keeps them.",
            details={name: column.tolist() for name, column in found.columns().items()},
            values=values,
        )
    ending = "left out." if action == "exclude" else "kept in the model."
    return [Note("high_correlation", found.names, f"{what}; {ending}", values)]


def _notes_on_rare(found: TreatmentCovariates) -> list[Note]:
    if not len(found):
        return []
    listed, values = _named(found)
    text = (
        "{n:covariate|covariates} of at least {least} people {n:?occurs|occur} in one arm only: "
        f"{listed}."
    )
    values["least"] = Value("setting", LEAST_ROWS)
    return [Note("one_arm_only", found.names, text, values)]


def _named(found: TreatmentCovariates) -> tuple[str, dict[str, Value]]:
    """Part of a template that lists covariates with their correlations, and its values."""
    values = {"n": Value("things", len(found)), "more": Value("things", len(found) - 5)}
    parts = []
    for name, r, letter in zip(found.names, found.correlation, "abcde", strict=False):
        values |= {letter: Value("name", repr(name)), f"r_{letter}": Value("measure", r)}
        parts.append(f"{{{letter}}} ({{r_{letter}:.2f}})")
    return ", ".join(parts) + (" and {more:,} more" if len(found) > 5 else ""), values
