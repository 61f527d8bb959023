r"""Variances of curves by formulas, in which a weight of 2 counts as two rows.

For the incidence F of a cause, with :math:`d_u` of :math:`Y_u` at risk failing of any cause at u,
:math:`d_{ku}` of this one, and :math:`S(u-)` the survival before u.
"""

import numpy as np

from riskset.curves.life_table import LifeTable, TableSteps

__all__ = [
    "aalen_variance",
    "delta_variance",
    "distances",
    "effective_at_risk",
    "greenwood_terms",
    "survival_before",
    "xie_liu_variance",
]


def survival_before(table: LifeTable) -> tuple[TableSteps, TableSteps]:
    """Product-limit survival of all causes before and after each time."""
    survivors = table.staying + table.censored
    after = np.asarray(np.cumprod(survivors / table.at_risk))
    return np.append(1.0, after[:-1]).astype(np.float64), after.astype(np.float64)


def xie_liu_variance(table: LifeTable, survival: TableSteps) -> TableSteps:
    r"""Variance of a weighted survival curve, the weights counting by what they are worth.

    .. math:: S(t)^2 \sum_{u \le t} \frac{1 - s_u}{M_u s_u}, \qquad
        s_u = 1 - \frac{d_u}{Y_u}, \quad M_u = \frac{(\sum w)^2}{\sum w^2}

    with M over the rows at risk at u: their effective number. With equal weights it is Greenwood's.

    References
    ----------
    Xie and Liu (2005), Statistics in Medicine 24, 3089-3110, doi:10.1002/sim.2174.
    """
    terms = greenwood_terms(table) * table.at_risk / effective_at_risk(table)
    return np.asarray(survival**2 * np.cumsum(terms))


def effective_at_risk(table: LifeTable) -> TableSteps:
    r"""Effective number at risk at each time, :math:`(\sum w)^2 / \sum w^2`."""
    square = table.rows.weight**2
    return np.asarray(table.at_risk**2 / (table.sum_staying(square) + table.sum_leaving(square)))


def delta_variance(table: LifeTable, k: int, incidence: TableSteps) -> TableSteps:
    r"""Variance of the incidence of cause k by the delta method, Greenwood's with one cause.

    .. math:: \sum_{u \le t} \frac{(F(t) - F(u))^2 \, d_u}{Y_u (Y_u - d_u)}
        + \sum_{u \le t} S(u-)^2 \frac{d_{ku} (Y_u - d_{ku})}{Y_u^3}
        - 2 \sum_{u \le t} (F(t) - F(u)) \, S(u-) \frac{d_{ku}}{Y_u^2}

    Without censoring it is F (1 - F) / n.

    References
    ----------
    Dinse & Larson (1986), Biometrika 73, 379-386, doi:10.1093/biomet/73.2.379.
    """
    at_risk, before, events = table.at_risk, survival_before(table)[0], table.events[k]
    _, second = distances(incidence, greenwood_terms(table))
    first, _ = distances(incidence, before * events / at_risk**2)
    own = np.cumsum(before**2 * (events / at_risk) * ((at_risk - events) / at_risk**2))
    return np.asarray(np.maximum(second + own - 2.0 * first, 0.0))


def aalen_variance(table: LifeTable, k: int, incidence: TableSteps) -> TableSteps:
    r"""Variance of the incidence of cause k by martingales, as in cmprsk::cuminc.

    .. math:: \sum_{u \le t} S(u-)^2 \left(
        \frac{v_u d_{ku}}{Y_u^2} \left(1 - \frac{F(t) - F(u)}{S(u)}\right)^2
        + \frac{v'_u (d_u - d_{ku})}{Y_u^2} \left(\frac{F(t) - F(u)}{S(u)}\right)^2 \right)

    with :math:`v_u = 1 - (d_{ku} - 1) / (Y_u - 1)` where events of the cause are tied, :math:`v'_u`
    likewise for the other causes.

    References
    ----------
    Aalen (1978), Annals of Statistics 6, 534-545, doi:10.1214/aos/1176344198.
    """
    before, after = survival_before(table)
    at_risk, events = table.at_risk, table.events[k]
    others = np.delete(table.events, k, axis=0).sum(axis=0)
    own = before**2 * _untied(events, at_risk) * events / at_risk**2
    rest = before**2 * _untied(others, at_risk) * others / at_risk**2
    inverse = np.divide(1.0, after, out=np.zeros_like(after), where=after > 0)
    first, _ = distances(incidence, own * inverse)
    _, second = distances(incidence, (own + rest) * inverse**2)
    return np.asarray(np.maximum(np.cumsum(own) - 2.0 * first + second, 0.0))


def _untied(events: TableSteps, at_risk: TableSteps) -> TableSteps:
    """Factor for ties; events are at most all at risk."""
    tied = events > 1
    return 1.0 - np.divide(events - 1, at_risk - 1, out=np.zeros_like(events), where=tied)


def greenwood_terms(table: LifeTable) -> TableSteps:
    """D / (Y (Y - d)); 0 where everybody fails, after which nothing moves."""
    survivors = table.staying + table.censored
    product = table.at_risk * survivors
    return np.divide(table.n_events, product, out=np.zeros_like(product), where=survivors > 0)


def distances(curve: TableSteps, mass: TableSteps) -> tuple[TableSteps, TableSteps]:
    r"""Sums over u <= t of mass(u) times :math:`F(t) - F(u)` and its square.

    By what each step of F adds, rather than by expanding the square, which would cancel.
    """
    step = np.diff(curve, prepend=0.0)
    before = np.append(0.0, np.cumsum(mass)[:-1])
    first = np.cumsum(step * before)
    second = np.cumsum(step * (2.0 * np.append(0.0, first[:-1]) + step * before))
    return first, second
