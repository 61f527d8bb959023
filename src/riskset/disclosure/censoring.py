"""Weights for deviation, and people who deviate by time, as they may be shared."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from riskset.disclosure.known_counts import arms_of
from riskset.disclosure.people import join_bars
from riskset.disclosure.rows import RUN, Results, grouped, names_hidden, number, run_of, without
from riskset.disclosure.small_cells import is_small
from riskset.results.rows import AtRiskRow, CensoringWeightRow, DeviationRow, RiskRow

__all__ = ["OF_WEIGHTS", "share_censoring_weights", "share_deviations"]

SHARES = {f"p{p}": p / 100 for p in (0, 1, 5, 25, 50, 75, 95, 99, 100)}
OF_WEIGHTS = ("rows", "mean", "sd", *SHARES)
COUNTS = ("deviations", "others")


def share_censoring_weights(
    rows: Sequence[CensoringWeightRow], results: Results
) -> Iterator[CensoringWeightRow]:
    """Percentiles with enough people on both sides: the ends are the weights of single people.

    Everybody at risk at the start of an interval has a row, so the number of rows is the sum of
    numbers at risk, and is hidden with any of them.
    """
    for row in rows:
        n = arms_of(results, row)[f"{row.arm}_exposures"]
        if n is None or n < results.least:
            yield without(row, OF_WEIGHTS)
        else:
            few = [name for name, p in SHARES.items() if n * min(p, 1 - p) < results.least]
            at_risk = results.shown(AtRiskRow, adjusted=True, arm=row.arm, **run_of(row))
            gone = any("people" in names_hidden(one) for one in at_risk)
            yield without(row, [*few, "rows"] if gone else few)


def share_deviations(rows: Sequence[DeviationRow], results: Results) -> Iterator[DeviationRow]:
    """Intervals between times whose numbers at risk are shown, joined until no count is small.

    The counts of an interval add up to the difference of the numbers at risk at its ends. No
    interval ends at the time of a risk whose outcomes leave few of the others: these have left for
    another reason.
    """

    def reveals(row: DeviationRow) -> bool:
        return bool(is_small([row[name] or 0 for name in COUNTS], results.least).any())

    for places in grouped(rows, (*RUN, "arm")):
        first = rows[places[0]]
        at_risk = results.shown(AtRiskRow, adjusted=True, arm=first.arm, **run_of(first))
        known = {one.time for one in at_risk if one.people is not None}
        own = sorted((rows[k] for k in places), key=lambda one: one.start)
        known -= set(_revealing_ends(own, results))
        own = _between(own, known)
        yield from join_bars(own, COUNTS, "end", reveals)


def _revealing_ends(rows: Sequence[DeviationRow], results: Results) -> Iterator[float]:
    """Ends of intervals by which few have left for a reason that is no deviation or outcome."""
    others = list(accumulate(number(row.others) for row in rows))
    for row, by_end in zip(rows, others, strict=True):
        for risk in results.shown(RiskRow, adjusted=True, time=row.end, **run_of(row)):
            left = by_end - number(risk[f"{row.arm}_outcomes"])
            if row.end is not None and is_small(left, results.least):
                yield row.end


def _between(rows: Sequence[DeviationRow], known: set[float]) -> list[DeviationRow]:
    """Neighbours joined, if the number at risk between them is not known."""
    joined: list[DeviationRow] = []
    for row in rows:
        if joined and row.start not in known:
            last = joined.pop()
            gone = [name for name in COUNTS if None in (last[name], row[name])]
            sums = {name: last[name] + row[name] for name in COUNTS if name not in gone}
            row = without(last, gone).changed(sums | {"end": row.end})
        joined.append(row)
    return joined
