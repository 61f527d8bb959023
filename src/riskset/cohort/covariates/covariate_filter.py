"""Preparation of covariates for a model: removal of uninformative ones, and scaling."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from riskset._errors import CohortError, InputError, counted
from riskset._keywords import takes
from riskset._runtime import Runtime
from riskset._types import AnyArray, Features, Index
from riskset.cohort.adjustments.adjustment import People, start
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.settings import Tidy
from riskset.data.column_statistics import (
    digests,
    divided,
    entry_counts,
    largest_values,
    select_columns,
)
from riskset.data.design import Design

__all__ = ["TidyInfo", "tidy"]

Key = int | str
Analyses = Sequence[Hashable] | Mapping[Key, Hashable] | Literal["ohdsi"]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class TidyInfo:
    """Result of `tidy`: the tidy covariates, and how to apply the same to other people.

    Attributes
    ----------
    design : Design
        The tidy covariates of all rows.
    kept : tuple
        Keys of the columns of the design.
    removed_empty, removed_redundant, removed_rare : tuple
        Keys of the removed columns, by reason.
    aliases : mapping
        Key of each removed copy -> key of the equal column.
    norm_factors : mapping
        Key -> divisor of the values. Binary columns have none.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.tidy([[1, 20.0], [0, 80.0], [1, 40.0]])
    >>> found.kept, found.norm_factors
    (('x0', 'x1'), {'x1': 80.0})
    >>> found.apply([[0, 60.0]]).to_dense()
    array([[0.  , 0.75]])
    """

    design: Design
    kept: tuple[Key, ...]
    removed_empty: tuple[Key, ...]
    removed_redundant: tuple[Key, ...]
    removed_rare: tuple[Key, ...]
    aliases: Mapping[Key, Key]
    norm_factors: Mapping[Key, float]

    def apply(self, X: object) -> Design:
        """Return the same columns of other people on the same scale, for predictions.

        Parameters
        ----------
        X : Design, Dataset, data frame, sparse matrix or array
            Covariates that include every key of `kept`, in any order. Others are ignored.

        Raises
        ------
        InputError
            If a covariate is absent.
        """
        design = as_design(X)
        place = {key: j for j, key in enumerate(design.keys)}
        absent = [key for key in self.kept if key not in place]
        if absent:
            raise InputError.unknown_name("covariate", absent[0], design.keys)
        wanted = np.array([place[key] for key in self.kept], dtype=np.int64)
        chosen = divided(select_columns(design, wanted), self._factors(self.kept))
        return replace(chosen, factors=self.design.factors)

    def original_coef(self, coef: object, keys: Sequence[Key] | None = None) -> Features:
        """Return coefficients per unit of the covariates as given (p,).

        Parameters
        ----------
        coef : (p,) numbers
        keys : (p,) keys, optional
            Keys of the covariates of a model. Default: all of `kept`.
        """
        own = self.kept if keys is None else keys
        return np.asarray(coef, dtype=np.float64) / self._factors(own)

    def _factors(self, keys: Sequence[Key]) -> Features:
        return np.array([self.norm_factors.get(key, 1.0) for key in keys])

    def __repr__(self) -> str:
        gone = {
            "empty": self.removed_empty,
            "redundant": self.removed_redundant,
            "rare": self.removed_rare,
            "copies": self.aliases,
        }
        listed = ", ".join(f"{len(keys):,} {word}" for word, keys in gone.items())
        return f"TidyInfo({counted(len(self.kept), 'covariate')} kept; removed: {listed})"


@takes(Tidy)
def tidy(
    X: object,
    people: People | None = None,
    *,
    settings: Tidy,
    analysis: Analyses | None = None,
    keep_ids: Sequence[Key] = (),
) -> TidyInfo:
    r"""Remove uninformative covariates, and divide the others by their largest absolute value.

    The steps, in this order, with counts among the kept people:

    1. Empty: remove columns without any value other than 0. 2. Redundant: remove columns that are 1
    for all rows. If every row has exactly one of the binary columns of an `analysis`, such as age
    groups, remove the most frequent column (of equally frequent ones, the smallest key). The others
    stay even if they are rare. 3. Rare: remove columns with non-zero values in fewer rows than the
    larger of :math:`\lfloor f n \rfloor`, where f is `min_fraction`, and `min_count`. 4. Copies
    (optional): of bit-identical columns, keep the smallest key. 5. Scale: divide values by the
    largest absolute value of the column.

    Levels of a category of a data frame are ordinary columns here and not redundant. Models leave
    out the first level where necessary (see `riskset.L1`), also if `tidy` has removed empty or rare
    levels. If `tidy` removes a level as redundant, models keep all others.

    Parameters
    ----------
    X : Design, Dataset, data frame, sparse matrix or array (n, p)
        Covariates of the whole population.
    people : Population or Adjustment, optional
        Default: all rows.
    settings : Tidy
    analysis : (p,) labels, mapping of key to label, or "ohdsi", optional
        Group of each covariate. "ohdsi": covariate ids modulo 1000. Without groups, only columns
        that are 1 for all rows are redundant.
    keep_ids : sequence of keys
        Covariates that are never removed as redundant, rare or copies.

    Returns
    -------
    TidyInfo
        The result, whose `design` has all rows.

    Raises
    ------
    CohortError
        "BadSetting"; "BadCovariates", also for missing or infinite values.
    InputError
        If a key of `keep_ids` does not occur.

    Notes
    -----
    O(non-zeros).

    Examples
    --------
    >>> import riskset as rs
    >>> x = [[1, 0, 20.0], [1, 0, 80.0], [0, 1, 40.0]]
    >>> found = rs.cohort.tidy(x, analysis=["sex", "sex", "age"])
    >>> found.removed_redundant, found.norm_factors
    (('x0',), {'x2': 80.0})
    >>> found.design.to_dense()
    array([[0.  , 0.25],
           [0.  , 1.  ],
           [1.  , 0.5 ]])
    """
    design = as_design(X)
    if people is not None:
        kept = start(people, allow_weights=True).kept
        design = as_design(design, kept.size)
        here = design if kept.all() else design.take_rows(np.flatnonzero(kept))
    else:
        here = design
    counts, n = entry_counts(here), here.n_rows
    protected = _protected(design, keep_ids)
    empty = counts == 0
    redundant = exempt = np.zeros_like(empty)
    if settings.remove_redundant:
        redundant, exempt = _redundant(here, counts, analysis, protected)
    least = max(int(np.floor(settings.min_fraction * n)), settings.min_count)
    rare = (counts < least) & ~empty & ~redundant & ~exempt & ~protected
    left = ~(empty | redundant | rare)
    aliases = _copies(here, np.flatnonzero(left), protected) if settings.remove_duplicates else {}
    left[list(aliases)] = False
    columns = np.flatnonzero(left)
    design = _with_fewer_levels(design, (empty | rare) & ~left, aliases)
    chosen, factors = select_columns(design, columns), np.ones(columns.size)
    if settings.normalise:
        valued = ~design.is_binary[columns]
        factors[valued] = largest_values(here)[columns[valued]]
    keys = design.keys

    def named(mask: Mask) -> tuple[Key, ...]:
        return tuple(keys[j] for j in np.flatnonzero(mask))

    return TidyInfo(
        design=divided(chosen, factors) if (factors != 1).any() else chosen,
        kept=named(left),
        removed_empty=named(empty),
        removed_redundant=named(redundant),
        removed_rare=named(rare),
        aliases={keys[a]: keys[b] for a, b in aliases.items()},
        norm_factors={
            keys[j]: float(f)
            for j, f in zip(columns, factors, strict=True)
            if settings.normalise and not design.is_binary[j]
        },
    )


def _with_fewer_levels(design: Design, absent: Mask, aliases: Mapping[int, int]) -> Design:
    """A design whose categories do not have levels that say nothing, or that others repeat."""
    if not design.factors:
        return design
    gone = {design.names[j] for j in (*np.flatnonzero(absent).tolist(), *aliases)}
    left = (tuple(name for name in factor if name not in gone) for factor in design.factors)
    return replace(design, factors=tuple(factor for factor in left if factor))


def _redundant(
    design: Design, counts: Index, analysis: Analyses | None, protected: Mask
) -> tuple[Mask, Mask]:
    """Columns that the others make up for, and those that make up a partition."""
    usable = design.is_binary & (counts > 0)
    redundant = usable & (counts == design.n_rows) & ~protected
    exempt = np.zeros_like(redundant)
    if analysis is not None:
        for group in _groups(_labels(design, analysis), usable & ~redundant):
            if _is_partition(design, counts, group):
                exempt[group] = True
                redundant[_most_frequent(design, counts, group, protected)] = True
    return redundant, exempt


def _groups(labels: AnyArray, wanted: Mask) -> list[Index]:
    """Columns of each label, of at least two."""
    at = np.flatnonzero(wanted)
    order = at[np.argsort(labels[at], kind="stable")]
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    return [group for group in np.split(order, ends) if group.size > 1]


def _is_partition(design: Design, counts: Index, group: Index) -> bool:
    """Whether every row has exactly one of some columns of zeros and ones.

    Counts that add up to the number of rows do not tell: columns may overlap.
    """
    if counts[group].sum() != design.n_rows:
        return False
    hits = design.product(np.ones(group.size), group, runtime=Runtime.select())
    return bool(hits.max(initial=0.0) == 1)


def _most_frequent(design: Design, counts: Index, group: Index, protected: Mask) -> Index:
    """The column of a partition that the others make up for; none, if all are to be kept."""
    free = group[~protected[group]]
    if not free.size:
        return free
    most = free[counts[free] == counts[free].max()]
    first = min(most.tolist(), key=lambda j: _order(design.keys[j]))
    return np.array([first], dtype=np.int64)


def _copies(design: Design, columns: Index, protected: Mask) -> dict[int, int]:
    """Column -> the one it equals and that stays."""
    found, prints = {}, digests(design)
    stays: dict[bytes, int] = {}
    # Those to be kept first, then the smallest key.
    for j in sorted(columns.tolist(), key=lambda j: (not protected[j], _order(design.keys[j]))):
        first = stays.setdefault(prints[j], j)
        if first != j and not protected[j]:
            found[j] = first
    return found


def _order(key: Key) -> tuple[bool, Key]:
    return isinstance(key, str), key


def _labels(design: Design, analysis: Analyses) -> AnyArray:
    """A number for the analysis of each column (p,)."""
    p = design.n_features
    given: Sequence[Hashable]
    if isinstance(analysis, str):
        if analysis != "ohdsi":
            raise InputError.wrong_option("analysis", analysis, ("ohdsi",))
        others = [key for key in design.keys if isinstance(key, str)]
        if others:
            raise CohortError(
                "BadSetting",
                f"`analysis='ohdsi'` needs covariate ids that are whole numbers, but there is "
                f"{others[0]!r}.",
                hint="pass the analysis of each covariate.",
            )
        given = [int(key) % 1000 for key in design.keys]
    elif isinstance(analysis, Mapping):
        absent = [key for key in design.keys if key not in analysis]
        if absent:
            raise InputError.unknown_name("covariate", absent[0], analysis)
        given = [analysis[key] for key in design.keys]
    else:
        given = list(analysis)
    if len(given) != p:
        raise CohortError(
            "BadSetting",
            f"`analysis` must have one label for each of the {p:,} covariates, but it has "
            f"{len(given):,}.",
            hint="or pass a mapping of key to label.",
        )
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in given], dtype=np.int64)


def _protected(design: Design, keep_ids: Sequence[Key]) -> Mask:
    known = set(design.keys)
    for key in keep_ids:
        if key not in known:
            raise InputError.unknown_name("covariate", key, design.keys)
    wanted = set(keep_ids)
    return np.array([key in wanted for key in design.keys], dtype=bool)
