"""Problems for Fine and Gray's model with late entry, and its weights by their definition."""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

import riskset as rs
from riskset.data.outcome import Outcome

N_LONG = 4
"""First rows of a problem: they are at risk all the time, so that no risk set is empty."""


@dataclass(frozen=True, eq=False)
class Problem:
    """One small random data set with tied times and entries."""

    x: np.ndarray
    entry: np.ndarray
    time: np.ndarray
    event: np.ndarray
    weight: np.ndarray
    stratum: np.ndarray
    group: np.ndarray
    rng: np.random.Generator = field(repr=False)

    @property
    def y(self):
        return rs.Surv(self.time, self.event, self.entry)

    def outcome(self, stratum=None):
        return Outcome.build(
            self.time,
            self.event,
            entry=self.entry,
            weight=self.weight,
            stratum=stratum,
            cause=1,
        )

    def of(self, rows):
        """Some rows, in a given order."""
        columns = (self.x, self.entry, self.time, self.event, self.weight, self.stratum, self.group)
        return Problem(*(column[rows] for column in columns), self.rng)


def problem(rng, n=60, *, n_times=12, shares=(0.3, 0.4, 0.3), is_weighted=False):
    """Entries may equal times of events and of censorings, and times of entry tie."""
    x = np.column_stack([rng.normal(size=n), rng.random(n) < 0.5])
    entry = np.floor(n_times * rng.exponential(0.5, n))
    time = entry + np.ceil(n_times * rng.exponential(np.exp(-0.5 * x[:, 0])))
    event = rng.choice(3, size=n, p=shares)
    event[N_LONG : N_LONG + 6] = [1, 2, 0, 1, 2, 1]
    entry[:N_LONG], time[:N_LONG], event[:N_LONG] = -1.0, time.max() + 1, 0
    weight = rng.integers(1, 4, n).astype(float) if is_weighted else np.ones(n)
    group = rng.integers(0, 2, n)
    group[:N_LONG] = [0, 1, 0, 1]
    return Problem(x, entry, time, event, weight, rng.integers(0, 3, n), group, rng)


@st.composite
def problems(draw, n=60, weighted=None):
    """As `problem`, of any seed."""
    return problem(
        np.random.default_rng(draw(st.integers(0, 10**6))),
        n,
        n_times=draw(st.sampled_from([4, 12, 1000])),
        shares=draw(st.sampled_from([(0.3, 0.4, 0.3), (0.6, 0.2, 0.2)])),
        is_weighted=draw(st.booleans()) if weighted is None else weighted,
    )


def observed_before(p, weight, at, ties):
    """G(t-) H(t-) at some times, by its definition: products over censorings before and entries
    from then on."""
    at = np.asarray(at)
    out = np.ones(at.shape)
    for u in np.unique(p.time[(p.event == 0) & (weight > 0)]):
        leaves_before = (p.time == u) & (p.event != 0) & (ties == "finegray")
        at_risk = weight[(p.entry < u) & (u <= p.time) & ~leaves_before].sum()
        censored = weight[(p.time == u) & (p.event == 0)].sum()
        out *= np.where(at > u, 1 - censored / at_risk, 1.0)
    for u in np.unique(p.entry[weight > 0]):
        entered = weight[(p.entry <= u) & (u < p.time)].sum()
        if u > p.entry[weight > 0].min():
            out *= np.where(at <= u, 1 - weight[p.entry == u].sum() / entered, 1.0)
    return out


def observed_in_groups(p, weight, at, group, ties):
    """As `observed_before`, of the distribution of each row's group: one time for each row."""
    out = np.empty(p.time.size)
    for k in np.unique(p.group if group is None else group):
        of = np.full(p.time.size, True) if group is None else group == k
        out[of] = observed_before(p.of(of), weight[of], np.broadcast_to(at, out.shape)[of], ties)
    return out


def expanded(p, ties, *, weight_in_g=None, group=None, stratum=None):
    """One row for each subject and time of an event at which it is at risk: row, start, stop,
    event, weight."""
    in_g = p.weight if weight_in_g is None else weight_in_g
    own = observed_in_groups(p, in_g, p.time, group, ties)
    rows = []
    for s in np.unique(np.zeros(p.time.size) if stratum is None else stratum):
        of = np.full(p.time.size, True) if stratum is None else stratum == s
        times = np.unique(p.time[of & (p.event == 1) & (p.weight > 0)])
        before = np.append(-2.0, times[:-1])[: times.size]
        for t, start in zip(times, before, strict=True):
            at = observed_in_groups(p, in_g, t, group, ties)
            now = of & (p.entry < t) & (t <= p.time)
            later = of & (p.time < t) & (p.event > 1)
            w = p.weight * np.where(now, 1.0, np.where(later, at / own, 0.0))
            rows += [
                (i, start, t, p.event[i] == 1 and p.time[i] == t, w[i])
                for i in np.flatnonzero(w > 0)
            ]
    return [np.array(column) for column in zip(*rows, strict=True)]


def split(p, rng):
    """Each row cut at some times within its follow-up: entry, time, event, and the row it is of."""
    pieces = []
    for i in range(p.time.size):
        cuts = np.arange(np.floor(p.entry[i]) + 1, np.ceil(p.time[i]))
        cuts = np.sort(rng.choice(cuts, min(cuts.size, rng.integers(0, 4)), replace=False))
        ends = [p.entry[i], *cuts, p.time[i]]
        for k in range(len(ends) - 1):
            is_last = k == len(ends) - 2
            pieces.append((ends[k], ends[k + 1], p.event[i] if is_last else 0, i))
    order = rng.permutation(len(pieces))
    return [np.array(column)[order] for column in zip(*pieces, strict=True)]
