"""The kept rows of an adjustment by arm and stratum, and how much each stratum counts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from riskset._messages import Note, Value
from riskset._types import Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, are_of_one
from riskset.curves.followup import split

__all__ = ["ArmStrata"]


@dataclass(frozen=True, eq=False)
class ArmStrata:
    """Rows that count (n,), their arms (0 = target), strata (0, ..., S - 1) and clusters.

    The shares of the strata are those of the `reference` people (n,) of the adjustment; without
    these, all strata have equal shares. A `cluster` of None means that no rows belong together.
    """

    adjustment: Adjustment
    rows: Index
    arm: Index
    stratum: Index
    cluster: Index | None
    reference: NDArray[np.bool_] | None
    n_strata: int
    n_left_out: int

    @classmethod
    def of(cls, adjustment: Adjustment, reading: str) -> "ArmStrata":
        """One stratum of everybody who is kept, or with "standardized" those of the adjustment.

        Strata without people in one of the arms are left out.
        """
        rows = np.flatnonzero(adjustment.kept)
        arm = np.where(adjustment.population.is_target[rows], 0, 1)
        if reading == "marginal" or adjustment.set_id is None:
            stratum, reference = np.zeros(rows.size, dtype=np.int64), None
            n_left_out = 0
        else:
            _, stratum = np.unique(adjustment.set_id[rows], return_inverse=True)
            n_strata = int(stratum.max(initial=-1)) + 1
            counts = np.bincount(arm * n_strata + stratum, minlength=2 * n_strata)
            has_both = np.asarray((counts.reshape(2, -1) > 0).all(axis=0))
            kept = has_both[stratum]
            rows, arm = rows[kept], arm[kept]
            stratum = (np.cumsum(has_both) - 1)[stratum[kept]]
            n_left_out = int(np.count_nonzero(~has_both))
            reference = _reference(adjustment, arm)
        codes, cluster = np.unique(adjustment.cluster[rows], return_inverse=True)
        return cls(
            adjustment,
            rows,
            arm,
            stratum.astype(np.int64),
            cluster if codes.size < rows.size else None,
            reference,
            int(stratum.max(initial=-1)) + 1,
            n_left_out,
        )

    def cells(self) -> Iterator[tuple[int, int, Index]]:
        """Each arm and stratum, with the places of its rows in `rows`."""
        parts = split(self.arm * self.n_strata + self.stratum, 2 * self.n_strata)
        for code, place in enumerate(parts):
            if place.size:
                yield code // self.n_strata, code % self.n_strata, place

    def shares(self, counts: Index | None = None) -> Rows:
        """Share of each stratum (S,); `counts` (n,) say how often a resample has each row."""
        if self.reference is None:
            return np.full(self.n_strata, 1.0 / max(self.n_strata, 1))
        people = self.reference if counts is None else self.reference * counts
        found = np.bincount(self.stratum, people, minlength=self.n_strata)
        total = found.sum()
        return np.asarray(found / total) if total > 0 else np.full(self.n_strata, np.nan)

    def share_influence(self, deviation: Rows) -> Rows:
        """How the shares move a mean (n,), from the deviations (S,) of the strata from it."""
        if self.reference is None:
            return np.zeros(self.rows.size)
        n = np.count_nonzero(self.reference)
        return np.asarray(self.reference * deviation[self.stratum] / n)

    def cluster_sums(self, influence: Rows) -> Rows:
        """The influence of each cluster, from that of each row (n,)."""
        if self.cluster is None:
            return influence
        if are_of_one(self.cluster):
            return np.full(1, np.nan)
        return np.bincount(self.cluster, influence).astype(np.float64, copy=False)

    def ends(self, of_cell: Mapping[tuple[int, int], float]) -> Rows:
        """The largest horizon of each arm (2,): the earliest end of its strata."""
        found = np.full(2, np.inf)
        for (arm, _), end in of_cell.items():
            found[arm] = min(found[arm], end)
        return found

    def notes(self) -> tuple[Note, ...]:
        """That strata are left out."""
        if not self.n_left_out:
            return ()
        text = "{n:stratum has|strata have} people of one arm alone, and {n:?is|are} left out."
        return (Note("strata_left_out", (), text, {"n": Value("things", self.n_left_out)}),)


def _reference(adjustment: Adjustment, arm: Index) -> NDArray[np.bool_] | None:
    """The people whom the effect is about, unless all strata have equal weight."""
    if adjustment.settings.get("weighting") == "equal":
        return None
    if adjustment.estimand in ("att", "atu"):
        return np.asarray(arm == (0 if adjustment.estimand == "att" else 1))
    return np.ones(arm.size, dtype=bool)
