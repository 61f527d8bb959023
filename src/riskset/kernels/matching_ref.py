"""Closest-pair-first matching on a line, by its definition: all pairs, sorted."""

import numpy as np

from riskset._types import Index

__all__ = ["match_closest"]


def match_closest(
    order: Index,
    person: Index,
    treated: Index,
    score: Index,
    block: Index,
    caliper: int,
    ratio: int,
) -> tuple[Index, Index]:
    r"""Sets of one treated person and up to `ratio` controls, the closest pairs first.

    In round r = 1, 2, ... take all pairs of a treated person with r - 1 controls and an unused
    control of the same block with :math:`d = |score_t - score_c| \le caliper`, in the order of (d,
    person_t, person_c), and accept a pair if neither was taken in this round. Stop after `ratio`
    rounds (0: no limit), or when a round adds nobody.

    `order` are the rows by (block, score, treated, person). Scores are whole numbers, so that
    distances and ties are exact, and `person` is unique. Returns the row of the treated person of
    each row's set, -1 if unmatched, and the distance of a control to that person, 0 for others.
    """
    n = person.size
    target, distance = np.full(n, -1, dtype=np.int64), np.zeros(n, dtype=np.int64)
    controls = np.zeros(n, dtype=np.int64)
    done = 0
    while ratio == 0 or done < ratio:
        pairs = []
        for t in np.flatnonzero((treated == 1) & (controls == done)).tolist():
            for c in np.flatnonzero((treated == 0) & (target < 0) & (block == block[t])).tolist():
                gap = abs(int(score[t]) - int(score[c]))
                if gap <= caliper:
                    pairs.append((gap, int(person[t]), int(person[c]), t, c))
        taken: set[int] = set()
        for gap, _, _, t, c in sorted(pairs):
            if t not in taken and target[c] < 0:
                taken.add(t)
                controls[t] += 1
                target[t] = target[c] = t
                distance[c] = gap
        done += 1
        if not taken:
            break
    return target, distance
