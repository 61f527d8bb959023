"""Days at risk in bins, as rows of the results."""

import numpy as np

from riskset.cohort.adjustment import Adjustment
from riskset.study.cohorts import Followed

__all__ = ["follow_up_bins"]

WIDTHS = (1, 2, 5, 7, 10, 15, 30, 50, 100, 250, 365.25, 730.5, 1826.25, 3652.5)
MOST_BINS = 40


def follow_up_bins(followed: Followed, made: Adjustment) -> list[dict[str, object]]:
    """People of each arm, of those kept, whose days at risk are in bins of equal width.

    A bin holds its end and not its start; the last one holds the longest follow-up of both arms.
    """
    last = float(followed.time[made.kept].max(initial=0.0))
    width = next((w for w in WIDTHS if last / w <= MOST_BINS), last / MOST_BINS)
    edges = np.arange(0.0, last + width, width)
    rows: list[dict[str, object]] = []
    is_target = made.population.is_target
    for arm, is_own in (("target", is_target), ("comparator", ~is_target)):
        place = np.searchsorted(edges, followed.time[made.kept & is_own], side="left") - 1
        counts = np.bincount(np.maximum(place, 0), minlength=edges.size - 1)
        rows += [
            {"arm": arm, "start": float(a), "end": float(b), "people": int(n)}
            for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    return rows
