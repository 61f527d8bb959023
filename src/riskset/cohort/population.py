"""The people of a study, without outcomes.

A `Population` contains treatments and propensity scores but no outcomes, so no choice based on it
can use the outcome.
"""

from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, InputError, counted
from riskset._types import AnyArray, Index, Rows
from riskset.data.checks import Places, as_array, as_numbers, missing_rows, refuse_name, shown
from riskset.data.labels import as_keys, combine, label_columns, typed_labels

__all__ = ["EXTREME_LOGIT", "Population", "block_codes", "check_unique", "logit"]

EXTREME_LOGIT = 34.5
"""A score of 0 or 1 counts as one of 1e-15 or 1 - 1e-15."""


SMALLEST_WEIGHT = 1e-100
"""Of a survey; squares of these, and of their inverses, are still numbers."""

UNKNOWN_ARM = "leave these rows out, or find out which treatment they had."


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Population:
    """Treatments and propensity scores, with one row per exposure.

    Parameters
    ----------
    treatment : (n,) 0 or 1
        1 = target, 0 = comparator.
    score : (n,) numbers in [0, 1], optional
        Probability of the target given the covariates. It is not rounded.
    row_id : (n,) whole numbers or text, optional
        Identifier of the row. It breaks ties, so that results do not depend on the order of rows.
        Default: 0, 1, 2, ...
    person_id : (n,) whole numbers or text, optional
        Identifier of the person. Default: the row, for people who enter once.
    share : number in (0, 1), optional
        Proportion of the target among the people for whom the scores were estimated, if these are
        not all rows. Preference scores are relative to it.
    sampling_weight : (n,) positive numbers, optional
        Weights of a survey: how many people of the population a row stands for. They weight the
        people before and after every adjustment, enter the model of the propensity score, and
        multiply the weights of the adjustment.

    Raises
    ------
    CohortError
        "BadTreatment", "BadScore", "BadId", "DuplicateId" or "BadWeight".

    References
    ----------
    DuGoff, Schuler and Stuart (2014), Health Services Research 49, 284-303,
    doi:10.1111/1475-6773.12090, for sampling weights.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.cohort.Population([1, 0, 0], score=[0.5, 0.4, 0.1])
    Population(1 target, 2 comparators, with scores)
    """

    treatment: NDArray[np.int64]
    row_id: AnyArray
    person_id: AnyArray
    _score: Rows | None
    _share: float | None
    _sampling_weight: Rows | None

    def __init__(
        self,
        treatment: object,
        score: object = None,
        *,
        row_id: object = None,
        person_id: object = None,
        share: float | None = None,
        sampling_weight: object = None,
    ) -> None:
        arms = _arms(treatment)
        n = arms.size
        ids = np.arange(n) if row_id is None else _ids(row_id, "row_id", n)
        if row_id is not None:
            check_unique(
                ids, "`row_id`", "give people who enter twice two row ids and one person_id."
            )
        persons = ids if person_id is None else _ids(person_id, "person_id", n)
        values = None if score is None else _scores(score, n)
        for name, array in (
            ("treatment", arms),
            ("row_id", ids),
            ("person_id", persons),
            ("_score", values),
            ("_share", share),
            ("_sampling_weight", _sampling_weights(sampling_weight, n)),
        ):
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        target, comparator = np.bincount(self.treatment, minlength=2)[::-1]
        scores = "without" if self._score is None else "with"
        return (
            f"Population({counted(target, 'target')}, {counted(comparator, 'comparator')}, "
            f"{scores} scores)"
        )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.treatment.size)

    @property
    def is_target(self) -> NDArray[np.bool_]:
        """Whether each row is in the target arm (n,)."""
        return np.equal(self.treatment, 1)

    @property
    def has_score(self) -> bool:
        """Whether there are propensity scores."""
        return self._score is not None

    @property
    def score(self) -> Rows:
        """Propensity scores (n,).

        Raises
        ------
        CohortError
            "NoScore" if there are no scores.
        """
        if self._score is None:
            raise CohortError(
                "NoScore",
                "this step needs propensity scores, but the population has none.",
                hint="pass `score` when the Population is made.",
            )
        return self._score

    @property
    def share(self) -> float:
        """Proportion of the target among the people for whom the scores were estimated."""
        if self._share is not None:
            return self._share
        if not self.n_rows:
            return float("nan")
        weight = self.sampling_weight
        return float(weight[self.is_target].sum() / weight.sum())

    @property
    def has_sampling_weight(self) -> bool:
        """Whether rows have sampling weights."""
        return self._sampling_weight is not None

    @property
    def sampling_weight(self) -> Rows:
        """Sampling weights (n,); 1 without any."""
        return np.ones(self.n_rows) if self._sampling_weight is None else self._sampling_weight

    def with_score(self, score: object, share: float | None = None) -> Self:
        """Return the same people with other scores or without scores."""
        return type(self)(
            self.treatment,
            score,
            row_id=self.row_id,
            person_id=self.person_id,
            share=share,
            sampling_weight=self._sampling_weight,
        )

    def take(self, rows: Index) -> Self:
        """Return some of the people, without scores."""
        return type(self)(
            self.treatment[rows],
            row_id=self.row_id[rows],
            person_id=self.person_id[rows],
            sampling_weight=None if self._sampling_weight is None else self._sampling_weight[rows],
        )


def logit(score: Rows) -> Rows:
    """Log odds, at most `EXTREME_LOGIT` in size."""
    with np.errstate(divide="ignore"):
        odds = np.log(score) - np.log1p(-score)
    return np.asarray(np.clip(odds, -EXTREME_LOGIT, EXTREME_LOGIT))


def block_codes(within: object, n_rows: int) -> tuple[Index, tuple[tuple[object, ...], ...]]:
    """Codes (n,) of the combinations of labels, and the combination of each code.

    Missing values form their own label; an empty sequence of labels makes one block.
    """
    columns = [] if isinstance(within, (list, tuple)) and not within else label_columns(within)
    coded = [_block_column(column, n_rows) for column in columns]
    codes, labels = combine(coded, n_rows)
    return codes, tuple(labels)


def _block_column(column: object, n_rows: int) -> tuple[Index, list[object]]:
    """Codes in sorted order, the missing last."""
    try:
        refuse_name(column, "`within`", n_rows)
        values, missing = typed_labels(column, "`within`", Places())
    except InputError as error:
        raise CohortError("BadBlock", error.message, hint=error.hint) from None
    if values.shape != (n_rows,):
        raise CohortError(
            "BadBlock",
            f"`within` must have one label for each of the {n_rows:,} rows, but its shape is "
            f"{values.shape}.",
            hint="pass labels of the rows of the population, a list of such arrays, or a data "
            "frame.",
        )
    names, own = np.unique(values[~missing], return_inverse=True)
    codes = np.full(n_rows, names.size, dtype=np.int64)
    codes[~missing] = own.reshape(-1)
    return codes, [*names.tolist(), *(["missing"] if missing.any() else [])]


def _arms(treatment: object) -> NDArray[np.int64]:
    array = as_array(treatment, "`treatment`", Places())
    must = "`treatment` must be one column of 1 (target) and 0 (comparator)"
    hint = "code the arms, for example (drug == 'target').astype(int)."
    if array.ndim != 1:
        raise CohortError("BadTreatment", f"{must}, but its shape is {array.shape}.", hint=hint)
    missing = missing_rows(array)
    if missing.any():
        text = f"`treatment` must not be missing, but {_first(missing, array, is_bad=True)}."
        raise CohortError("BadTreatment", text, hint=UNKNOWN_ARM)
    if array.dtype == object:
        arms = [isinstance(v, (Real, Decimal)) and v in (0, 1) for v in array.tolist()]
        bad = ~np.array(arms, dtype=bool)
    elif array.dtype.kind in "buif":
        bad = ~((array == 0) | (array == 1))
    else:
        bad = np.ones(array.size, dtype=bool)
    if bad.any():
        raise CohortError("BadTreatment", f"{must}, but {_first(bad, array)}.", hint=hint)
    return array.astype(np.int64)


def _scores(score: object, n: int) -> Rows:
    array = as_array(score, "`score`", Places())
    if array.shape == (n,) and array.dtype.kind in "iuf":
        bad = ~((array >= 0) & (array <= 1))
        if bad.any():
            raise CohortError(
                "BadScore",
                f"`score` must be a probability of each row, but {_first(bad, array)}.",
                hint="leave rows without a score out, and check the model that made it.",
                details={"rows": np.flatnonzero(bad)[:3].tolist(), "count": int(bad.sum())},
            )
    return as_numbers(score, "score", n, Places())


def _sampling_weights(weight: object, n: int) -> Rows | None:
    if weight is None:
        return None
    try:
        array = as_numbers(weight, "sampling_weight", n, Places())
    except InputError as error:
        raise CohortError("BadWeight", error.message, hint=error.hint) from None
    bad = ~(array > 0)
    if bad.any():
        raise CohortError(
            "BadWeight",
            f"`sampling_weight` must be above 0, but {_first(bad, array)}.",
            hint="leave rows without a weight out.",
        )
    bad = (array < SMALLEST_WEIGHT) | (array > 1 / SMALLEST_WEIGHT)
    if bad.any():
        raise CohortError(
            "BadWeight",
            f"`sampling_weight` must be from {SMALLEST_WEIGHT:g} to {1 / SMALLEST_WEIGHT:g}, but "
            f"{_first(bad, array)}.",
            hint="a weight is the number of people for whom a row stands, or proportional to it.",
        )
    return array


def _ids(values: object, name: str, n: int) -> AnyArray:
    try:
        return as_keys(values, name, n, Places())
    except InputError as error:
        raise CohortError("BadId", error.message, hint=error.hint) from None


def check_unique(ids: AnyArray, what: str, hint: str) -> None:
    """Refuse identifiers that occur more than once, with the code "DuplicateId"."""
    names, times = np.unique(ids, return_counts=True)
    again = names[times > 1]
    if again.size:
        listed = ", ".join(map(str, again[:3].tolist()))
        raise CohortError(
            "DuplicateId",
            f"{what} must be unique, but {counted(again.size, 'id')} "
            f"{'occurs' if again.size == 1 else 'occur'} more than once (first: {listed}).",
            hint=hint,
            details={"ids": again[:3].tolist(), "count": int(again.size)},
        )


def _first(bad: NDArray[np.bool_], values: AnyArray, *, is_bad: bool = False) -> str:
    """How many rows are not as they must be (or are as they must not be), and the first."""
    k, n = int(np.argmax(bad)), int(bad.sum())
    are = ("is" if n == 1 else "are") + ("" if is_bad else " not")
    return f"{n:,} of {bad.size:,} rows {are} (first: row {k}, value {shown(values[k])})"
