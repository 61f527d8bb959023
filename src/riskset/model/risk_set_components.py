"""Who is at risk together, and which covariates vary among them."""

import numpy as np
from numpy.typing import NDArray

from riskset._runtime import Runtime
from riskset._types import Index, RiskSets
from riskset.data.column_storage import BinaryColumns, DenseColumns
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.model.risk_set_limit import ranges_after, ranges_at_risk

__all__ = ["components", "has_all_outcomes", "informative_columns", "varying"]

FEW_ROWS = 64


def informative_columns(design: Design, loss: Loss) -> NDArray[np.bool_]:
    """Columns (p,) that vary among rows ever at risk together; the others drop out.

    In a logistic regression none does if all rows have the outcome, which the intercept explains.
    """
    known = np.zeros(design.n_features, dtype=bool)
    if has_all_outcomes(loss):
        return known
    loss = _compared(loss)
    if not loss.is_limit:
        known = _varying_by_count(design, loss.risk)
    if known.all():
        return known
    return known | varying(design, *components(loss), loss.runtime)


def has_all_outcomes(loss: Loss | None) -> bool:
    """Whether it is a logistic regression of rows that all have the outcome."""
    if loss is None or not loss.has_intercept:
        return False
    return not ((loss.risk.weight > 0) & (loss.risk.event_weight <= 0)).any()


def _compared(loss: Loss) -> Loss:
    """The likelihood whose risk sets say who is compared with whom."""
    return loss if loss.has_intercept else loss.as_partial()


def _varying_by_count(design: Design, risk: RiskSets) -> NDArray[np.bool_]:
    """Binary columns (p,) with more ones, and more zeros, than there are rows never at risk.

    Those of one stratum without late entry are all at risk together.
    """
    varies = np.zeros(design.n_features, dtype=bool)
    if risk.own.size or np.count_nonzero(risk.starts_stratum) > 1:
        return varies
    n_used = int(np.count_nonzero(risk.weight > 0))
    if risk.group_events[-1] == 0:
        n_used -= int(risk.group_ptr[-1] - risk.group_ptr[-2])
    n_unused = design.n_rows - n_used
    for part in design.parts:
        if isinstance(part, BinaryColumns):
            n_ones = (part.block_ptr[:, 1:] - part.block_ptr[:, :-1]).sum(axis=0)
            varies[part.columns] = (n_ones > n_unused) & (n_ones < n_used)
    return varies


def components(loss: Loss) -> tuple[Index, Index]:
    """Rows ever at risk together, directly or through others: one code each; (rows, codes).

    A covariate that is constant within every component drops out of the likelihood. A row may be
    named more than once.
    """
    loss = _compared(loss)
    has_events = loss.risk.group_events > 0
    if not loss.risk.own.size and not loss.tails:
        return _nested_components(loss.risk, has_events)
    ranges = [(loss.risk, *ranges_at_risk(loss.risk), has_events)]
    ranges += [
        (tail.sets, *ranges_after(tail.sets), has_events & (tail.survival > 0))
        for tail in loss.tails
    ]
    n_groups = has_events.size
    # A row at risk in g and g + 1 links them: count links by a difference array.
    change = np.zeros(n_groups + 1, dtype=np.int64)
    rows, groups = [], []
    for sets, own, end, counts in ranges:
        before = np.append(0, np.cumsum(counts))
        used = (sets.weight > 0) & (before[end] > before[own])
        np.add.at(change, own[used] + 1, 1)
        np.add.at(change, end[used], -1)
        rows.append(sets.order[used])
        # Any group of the range in which the row counts: the last of them.
        last = np.searchsorted(before, before[end[used]], side="left") - 1
        groups.append(last)
    component = np.cumsum((np.cumsum(change)[:n_groups] == 0) | loss.risk.starts_stratum) - 1
    return np.concatenate(rows), component[np.concatenate(groups)]


def _nested_components(risk: RiskSets, has_events: NDArray[np.bool_]) -> tuple[Index, Index]:
    """Without late entry: rows up to the last event of their stratum are at risk with the first."""
    stratum = np.cumsum(risk.starts_stratum) - 1
    ends = np.append(risk.starts_stratum[1:], True)
    n_rows = np.diff(risk.group_ptr)
    # A group without events closes a stratum: nothing happens any more.
    used = risk.weight > 0
    for g in np.flatnonzero(ends & ~has_events):
        used[risk.group_ptr[g] : risk.group_ptr[g + 1]] = False
    if used.all():
        return risk.order, np.repeat(stratum, n_rows)
    return risk.order[used], np.repeat(stratum, n_rows)[used]


def varying(design: Design, rows: Index, component: Index, runtime: Runtime) -> NDArray[np.bool_]:
    """Columns (p,) that vary within some component, from what `components` gave."""
    informative = np.ones(design.n_features, dtype=bool)
    unknown = _same_in_some_rows(design, rows, component)
    if unknown.size == 0:
        return informative
    # A random vector that sums to 0 in every component is orthogonal to the columns that are
    # constant there, and to no others but by a coincidence that the exact look below resolves.
    probe = np.random.default_rng(0).standard_normal(rows.size)
    size = np.bincount(component)
    probe -= (np.bincount(component, probe) / np.maximum(size, 1))[component]
    vector = np.zeros(design.n_rows)
    np.add.at(vector, rows, probe)  # a row may stand in several places
    reaction = design.cross(vector, unknown, runtime=runtime)
    suspects = unknown[np.abs(reaction) < 1e-8]
    if suspects.size == 0:
        return informative
    present = np.zeros(design.n_rows)
    present[rows] = 1.0
    count = design.cross(present, suspects, runtime=runtime, power=2)
    informative[suspects[count == 0]] = False
    order = np.argsort(component, kind="stable")
    rows, component = rows[order], component[order]
    starts = np.flatnonzero(np.append(True, component[1:] != component[:-1]))
    step = max(1, (1 << 24) // max(1, rows.size))
    remaining = suspects[count != 0]
    for a in range(0, remaining.size, step):
        columns = remaining[a : a + step]
        z = design.stored(columns, rows)
        if rows.size == 0:
            informative[columns] = False
            continue
        high = np.maximum.reduceat(z, starts, axis=0)
        low = np.minimum.reduceat(z, starts, axis=0)
        informative[columns] = (high > low).any(axis=0)
    return informative


def _same_in_some_rows(design: Design, rows: Index, component: Index) -> Index:
    """Columns that a few rows of a component do not show to vary: mostly those that are sparse."""
    some = rows[:FEW_ROWS][component[:FEW_ROWS] == component[:1]]
    unknown = np.ones(design.n_features, dtype=bool)
    for part in design.parts:
        if isinstance(part, DenseColumns) and some.size:
            z = design.stored(part.columns, some)
            unknown[part.columns] = z.max(axis=0) == z.min(axis=0)
    return np.flatnonzero(unknown)
