"""Closest-pair-first matching among listed pairs, by its definition."""

import numpy as np

from riskset._types import Index

__all__ = ["match_pairs"]


def match_pairs(order: Index, first: Index, partner: Index, n_rows: int, ratio: int) -> Index:
    """The first row of each partner (n_rows,), -1 without one.

    `order` are the pairs, the closest first. Round r = 1, 2, ... accepts, in this order, a pair of
    a first row with r - 1 partners and a partner without one, if neither was matched in this round.
    It stops after `ratio` rounds (0: no limit), or when a round adds nobody.
    """
    of = np.full(n_rows, -1, dtype=np.int64)
    done = 0
    while ratio == 0 or done < ratio:
        number = np.bincount(of[of >= 0], minlength=n_rows)
        added = False
        for k in order.tolist():
            i, j = int(first[k]), int(partner[k])
            if of[j] < 0 and number[i] == done:
                of[j] = i
                number[i] = done + 1
                added = True
        done += 1
        if not added:
            break
    return of
