"""Large minimum counts: the same numbers are hidden as by definition, in bounded memory."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest

from riskset.disclosure import covariates
from riskset.disclosure.covariates import CELLS
from riskset.disclosure.known_counts import events_apart
from riskset.disclosure.rows import ARMS
from riskset.disclosure.small_cells import is_near


def by_all_combinations(row, hidden, sizes, least, limit, sd):
    """What `_side_reveals` says, by trying all small counts in all places at once."""
    counts = {(s, a): row[f"{s}_count_{a}"] for s, a in CELLS}
    order, few = sorted(hidden), range(1, max(least, 2))
    near = [few if counts[c] < least else [sizes[c] - k for k in few] for c in order]

    def differences(of, side):
        share = {c: of[c] / sizes[c] for c in CELLS}
        at = side if sd == "after" else "before"
        spread = sum(
            share[at, a] * (1 - share[at, a]) * sizes[at, a] / (sizes[at, a] - 1) for a in ARMS
        )
        gap = abs(share[side, "target"] - share[side, "comparator"])
        return 0.0 if gap == 0 else gap / math.sqrt(spread / 2) if spread else math.inf

    flags = {}
    for side in ("before", "after"):
        flags[side] = row[f"{side}_balanced"]
        if flags[side] is not None and (differences(counts, side) < limit) != flags[side]:
            if side == "before":
                return True
            flags[side] = None
    fitting = [
        chosen
        for chosen in itertools.product(*near)
        if all(
            flag is None
            or (differences(counts | dict(zip(order, chosen, strict=True)), side) < limit) == flag
            for side, flag in flags.items()
        )
    ]
    return any(len({chosen[k] for chosen in fitting}) < 2 for k in range(len(order)))


@pytest.mark.parametrize("sd", ["before", "after"])
def test_sides_of_the_limit_are_tried_in_pairs_of_places(sd):
    rng, found = np.random.default_rng(4), []
    while len(found) < 400:
        least, limit = int(rng.integers(2, 6)), float(rng.choice([0.07, 0.13, 0.31]))
        sizes = {cell: float(rng.integers(8, 50)) for cell in CELLS}
        row = {f"{s}_count_{a}": float(rng.integers(0, sizes[s, a] + 1)) for s, a in CELLS}
        row |= {f"{side}_balanced": bool(rng.integers(2)) for side in ("before", "after")}
        if rng.random() < 0.2:
            row["after_balanced"] = None
        hidden = {c for c in CELLS if is_near(row[f"{c[0]}_count_{c[1]}"], sizes[c], least)}
        if hidden:
            same = (row, hidden, sizes, least, limit, sd)
            found.append(covariates._side_reveals(*same))
            assert found[-1] == by_all_combinations(*same), same
    assert 20 < sum(found) < 380


@pytest.mark.parametrize("least", [50, 500, 5000])
def test_memory_is_bounded_for_large_minimum_counts(least):
    sizes = dict.fromkeys(CELLS, 20_000.0)
    row = {f"{s}_count_{a}": float(least // 3 + k) for k, (s, a) in enumerate(CELLS)}
    row |= {"before_balanced": True, "after_balanced": True}
    tracemalloc.start()
    # A limit so small that only equal shares are below it, which leaves a count no choice alone.
    for limit in (0.1, 1e-9):
        row["before_balanced"] = row["after_balanced"] = limit > 0.01
        covariates._side_reveals(row, set(CELLS), sizes, least, limit, "before")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e8


def test_steps_of_long_curves_are_chosen_by_definition():
    rng = np.random.default_rng(2)
    for least in (0, 3, 40):
        events = np.sort(rng.integers(0, 300, 200)).astype(float)
        others = [float("nan"), 300.0, 151.0]
        shown, expected = [0.0, 300.0, 151.0], []
        for k, n in enumerate(events):
            if not any(0 < abs(n - one) < least for one in shown):
                shown.append(n)
                expected.append(k)
        assert events_apart(events, others, least) == expected
