"""Whether an estimate is finite, decided in fractions by a linear programme of its own.

Every pair of an event and a row at risk with it is a condition, ``(x_event - x_row)'d >= 0``. The
estimate is infinite if some d satisfies all and one of them strictly; by Stiemke's lemma it is
finite if some combination of all pairs, each with a positive multiplier, is 0. HiGHS proposes a d
or the multipliers, and fractions check them: what is returned has been proven.
"""

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

Row = list[Fraction]


def pairs_of_survival(
    x: np.ndarray,
    time: np.ndarray,
    event: np.ndarray,
    *,
    entry: np.ndarray | None = None,
    stratum: np.ndarray | None = None,
    stays: np.ndarray | None = None,
) -> list[Row]:
    """Differences x_event - x_row, each once; rows that `stays` are at risk for ever."""
    out: dict[tuple[Fraction, ...], None] = {}
    exact = [[Fraction(float(v)) for v in row] for row in x]
    for i in np.flatnonzero(event):
        at_risk = time >= time[i]
        if stays is not None:
            at_risk |= stays
        if entry is not None:
            at_risk &= entry < time[i]
        if stratum is not None:
            at_risk &= stratum == stratum[i]
        for j in np.flatnonzero(at_risk):
            difference = tuple(a - b for a, b in zip(exact[i], exact[j], strict=True))
            if any(difference):
                out[difference] = None
    return [list(row) for row in out]


def pairs_of_logistic(x: np.ndarray, event: np.ndarray) -> list[Row]:
    """Differences of every event and every other row."""
    exact = [[Fraction(float(v)) for v in row] for row in x]
    out = {
        tuple(a - b for a, b in zip(exact[i], exact[j], strict=True))
        for i in np.flatnonzero(event)
        for j in np.flatnonzero(~event)
    }
    return [list(row) for row in sorted(out) if any(row)]


def is_infinite(pairs: list[Row]) -> bool | None:
    """None if the programme found no proof, which its tolerance may be to blame for."""
    if not pairs:
        return False
    a = np.array([[float(v) for v in row] for row in pairs])
    size = np.abs(a).max(axis=1, keepdims=True)
    found = linprog(-(a / size).sum(axis=0), A_ub=-a / size, b_ub=np.zeros(len(a)), bounds=(-1, 1))
    if found.status != 0:
        return None
    if found.fun < -1e-9 and _is_direction(pairs, found.x):
        return True
    return False if _has_multipliers(pairs) else None


def _is_direction(pairs: list[Row], d: np.ndarray) -> bool:
    tight = [row for row in pairs if abs(float(sum(_times(row, d)))) < 1e-7]
    for candidate in (
        [Fraction(float(v)).limit_denominator(5000) for v in d],
        _solution(tight, [Fraction(0)] * len(tight), d),
    ):
        if candidate is None:
            continue
        gains = [sum(_times(row, candidate)) for row in pairs]
        if min(gains) >= 0 and max(gains) > 0:
            return True
    return False


def _times(row: Row, d: object) -> list[Fraction]:
    return [a * Fraction(v) for a, v in zip(row, d, strict=True)]  # type: ignore[call-overload]


def _has_multipliers(pairs: list[Row]) -> bool:
    """Whether sum_k (1 + y_k) pair_k = 0 for some y >= 0."""
    a = np.array([[float(v) for v in row] for row in pairs])
    found = linprog(np.ones(len(a)), A_eq=a.T, b_eq=-a.sum(axis=0), bounds=(0, None))
    if found.status != 0:
        return False
    used = np.flatnonzero(found.x > 1e-12)
    system = [[pairs[k][j] for k in used] for j in range(a.shape[1])]
    total = [-sum(row[j] for row in pairs) for j in range(a.shape[1])]
    y = _solution(system, total, found.x[used])
    if y is None:
        return False
    sums = [sum(row[k] * y[k] for k in range(used.size)) for row in system]
    return sums == total and all(v > -1 for v in y)


def _solution(system: list[Row], right: Row, near: np.ndarray) -> Row | None:
    """A solution of linear equations near a vector; None if they contradict each other."""
    rows = [[*row, b] for row, b in zip(system, right, strict=True)]
    pivots: list[tuple[int, Row]] = []
    for row in rows:
        for j, known in pivots:
            row = [u - row[j] * v for u, v in zip(row, known, strict=True)]
        j = max(range(near.size), key=lambda k: abs(row[k]), default=0)
        if not row[j]:
            if row[-1]:
                return None
            continue
        row = [u / row[j] for u in row]
        pivots = [
            (k, [u - known[j] * v for u, v in zip(known, row, strict=True)]) for k, known in pivots
        ]
        pivots.append((j, row))
    out = [Fraction(float(v)) for v in near]
    for j, _ in pivots:
        out[j] = Fraction(0)
    values = {j: row[-1] - sum(_times(row[:-1], out)) for j, row in pivots}
    for j, value in values.items():
        out[j] = value
    return out


def hard_problem(seed: int) -> dict[str, np.ndarray]:
    """Columns, survival and offsets of tens to hundreds; a third of them with many columns."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(6, 40)), int(rng.integers(1, 6))
    if rng.random() < 0.3:
        n, p = int(rng.integers(30, 90)), int(rng.integers(6, 16))
    kind = rng.choice(["binary", "whole", "normal", "mixed", "rare"])
    x = {
        "binary": rng.random((n, p)) < 0.3,
        "whole": rng.integers(-3, 4, (n, p)),
        "normal": rng.normal(size=(n, p)),
        "mixed": np.where(rng.random(p) < 0.5, rng.random((n, p)) < 0.4, rng.normal(size=(n, p))),
        "rare": rng.random((n, p)) < 2.5 / n,
    }[str(kind)] * 1.0
    time = rng.integers(1, rng.choice([3, 8, 50]), n) * 1.0
    if rng.random() < 0.4:  # nearly, or wholly, in the order of a combination of columns
        score = x @ rng.integers(-2, 3, p)
        time = 1 + np.round(score.max() - score + rng.choice([0, 0, 0.3]) * rng.normal(size=n), 1)
    out = {"x": x, "time": time, "event": rng.random(n) < rng.choice([0.3, 0.7, 1.0])}
    size = rng.choice([0, 10, 30, 100, 200])
    out["offset"] = np.round(rng.normal(size=n) * size, rng.choice([0, 3]))
    if rng.random() < 0.25:
        out["weight"] = 10.0 ** rng.integers(-4, 5, n)
    if rng.random() < 0.25:
        out["entry"] = time - rng.choice([0.5, 2.0, 20.0], n)
    if rng.random() < 0.25:
        out["stratum"] = rng.integers(0, 3, n)
    return out


def stratified_problem(seed: int) -> dict[str, np.ndarray]:
    """Strata of few rows; some have no weight, lie far from all others, or are never at risk."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(8, 40)), int(rng.integers(2, 5))
    x = np.round(rng.normal(size=(n, p)), 2)
    x[:, 0] = rng.random(n) < 0.4
    x[:, -1] *= rng.random(n) < rng.choice([0.1, 0.3])
    if rng.random() < 0.2:
        x[rng.integers(n), 1] *= 10.0 ** rng.integers(2, 9)
    time = rng.exponential(np.exp(-0.7 * x[:, 0] + 0.5 * np.clip(x[:, 1], -3, 3))) + 0.01
    if rng.random() < 0.5:
        time = np.ceil(5 * time)
    event = rng.random(n) < 0.4
    out = {"x": x, "time": time, "event": event, "stratum": rng.integers(0, rng.integers(2, 5), n)}
    weight = rng.integers(0, 4, n) * 1.0 if rng.random() < 0.5 else np.ones(n)
    event[:3], weight[:3] = True, 1.0
    out["weight"] = weight
    out["offset"] = np.round(rng.normal(size=n) * rng.choice([0, 1, 30]), 2)
    if rng.random() < 0.4:
        out["entry"] = np.floor(time * rng.random(n) * 0.8 * 16) / 16
    return out
