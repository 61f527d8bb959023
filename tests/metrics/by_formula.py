"""Metrics as the papers write them, row by row and pair by pair, and problems to try them on."""

import csv
import math
from pathlib import Path

import numpy as np

from riskset.data.outcome import Surv


def draw(n, seed, *, n_times=12, n_causes=2, n_scores=6, weights=(), censored=0.4):
    """Rows with many ties; the last row in time is an event, so that G stays positive."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, n_times + 1, n).astype(float)
    event = np.where(rng.random(n) < censored, 0, rng.integers(1, n_causes + 1, n))
    event[time == n_times] = 1
    case = {"y": Surv(time, event)}
    if n_causes > 1:
        case["cause"] = 1
    if weights:
        case["sample_weight"] = rng.choice(weights, n)
    score = rng.integers(0, n_scores, n) / n_scores
    return case, score


def lung():
    """Outcomes and ages of a real data set with events and censorings at the same times.

    scikit-survival 0.28.0 reads G after a row's own time. The golden numbers are its own for the
    same rows with a quarter of a day added to the times of the censored, which separates them::

        y = sksurv.util.Surv.from_arrays(event, np.where(event, time, time + 0.25))
        brier_score(y, y, survival, times), integrated_brier_score(y, y, survival, times)
        cumulative_dynamic_auc(y, y, age, times)
        [concordance_index_ipcw(y, y, age, tau=t) for t in times]
    """
    with (Path(__file__).parents[1] / "golden" / "lung.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    y = Surv([float(row["time"]) for row in rows], [int(row["event"]) for row in rows])
    return y, np.array([float(row["age"]) for row in rows])


LUNG_TIMES = np.array([180.5, 365.5, 540.5])


def chance(y, weight, t, *, before):
    """Kaplan-Meier estimate of the chance to be uncensored up to t, events before censorings."""
    g = 1.0
    for u in np.unique(y["time"][(y["event"] == 0) & (weight > 0)]):
        if u < t or (u == t and not before):
            censored = weight[(y["time"] == u) & (y["event"] == 0)].sum()
            staying = weight[y["time"] > u].sum()
            g *= staying / (staying + censored)
    return g


def known_weight(y, weight, t, train=None, at_time="unknown"):
    """What each row stands for at t."""
    y_g, weight_g = (y, weight) if train is None else (train, np.ones(len(train)))
    v = np.zeros(len(y))
    for i, (event, time) in enumerate(zip(y["event"], y["time"], strict=True)):
        if time > t:
            v[i] = 1 / chance(y_g, weight_g, t, before=at_time == "event_free")
        elif event:
            v[i] = 1 / chance(y_g, weight_g, time, before=True)
        elif time == t and at_time == "event_free":
            v[i] = 1 / chance(y_g, weight_g, t, before=True)
    return v * weight


def brier(y, incidence, t, weight, **options):
    v = known_weight(y, weight, t, **options)
    terms = (
        v[i] * ((y["time"][i] <= t and y["event"][i] == 1) - incidence[i]) ** 2
        for i in range(len(y))
    )
    return math.fsum(terms) / weight.sum()


def area(y, score, t, weight, controls, **options):
    v = known_weight(y, weight, t, **options)
    above = total = 0.0
    for i in range(len(y)):
        if not (y["time"][i] <= t and y["event"][i] == 1):
            continue
        for j in range(len(y)):
            ended = y["time"][j] <= t
            competing = ended and y["event"][j] > 1
            if (ended and y["event"][j] == 1) or (competing and controls == "event_free"):
                continue
            total += v[i] * v[j]
            above += v[i] * v[j] * ((score[i] > score[j]) + (score[i] == score[j]) / 2)
    return above / total


def concordance(y, score, weight, *, tau=math.inf, ipcw=True, strata=None, train=None):
    y_g, weight_g = (y, weight) if train is None else (train, np.ones(len(train)))

    def g(t):
        return chance(y_g, weight_g, t, before=True) if ipcw else 1.0

    time, event = y["time"], y["event"]
    right = total = 0.0
    for i in range(len(y)):
        if event[i] != 1 or time[i] > tau:
            continue
        for j in range(len(y)):
            if strata is not None and strata[i] != strata[j]:
                continue
            if time[j] > time[i] or (time[j] == time[i] and event[j] == 0):
                pair = 1 / g(time[i]) ** 2
            elif event[j] > 1:
                pair = 1 / (g(time[i]) * g(time[j]))
            else:
                continue
            pair *= weight[i] * weight[j]
            total += pair
            right += pair * ((score[i] > score[j]) + (score[i] == score[j]) / 2)
    return right / total


def aalen_johansen(y, t, weight):
    """Cumulative incidence of cause 1."""
    free, incidence = 1.0, 0.0
    for u in np.unique(y["time"][y["event"] > 0]):
        if u <= t:
            at_risk = weight[y["time"] >= u].sum()
            here = y["time"] == u
            incidence += free * weight[here & (y["event"] == 1)].sum() / at_risk
            free *= 1 - weight[here & (y["event"] > 0)].sum() / at_risk
    return incidence


def jackknife(value, weight, cluster=None):
    """Root of the sum of squares of w_i d value / d w_i, by central differences."""
    change = np.zeros(weight.size)
    for i in np.flatnonzero(weight):
        step = 1e-5 * np.eye(weight.size)[i]
        change[i] = (value(weight + step) - value(weight - step)) / 2e-5 * weight[i]
    if cluster is not None:
        change = np.bincount(cluster, change)
    return np.sqrt(np.sum(change**2))
