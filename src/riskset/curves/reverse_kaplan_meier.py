"""Potential follow-up: how long rows would have been followed without the event."""

from riskset.curves.followup import Followup
from riskset.curves.intervals import ProbabilityIntervalType
from riskset.curves.kaplan_meier import KaplanMeier, SurvivalVariance, curves_of

__all__ = ["reverse_kaplan_meier"]


def reverse_kaplan_meier(
    y: object,
    group: object = None,
    weight: object = None,
    level: float = 0.95,
    *,
    interval: ProbabilityIntervalType = "log-log",
    variance: SurvivalVariance = "auto",
    cluster: object = None,
) -> KaplanMeier:
    """Estimate the potential follow-up by group: Kaplan-Meier with censoring as the event.

    The median of the observed times is not the median follow-up, because an event ends the time of
    a row that would have been followed longer. Here an event of any cause censors the time to the
    end of follow-up, and the quantile 0.5 of the curve is the median follow-up.

    Parameters
    ----------
    y, group, weight, level, interval, variance, cluster
        As for `kaplan_meier`.

    Returns
    -------
    KaplanMeier
        The survival of a curve is the probability of being followed for longer than a time. The
        ``n_events`` are rows whose follow-up ended without an event, the ``n_censored`` those with
        an event.

    Raises
    ------
    InputError
        As for `kaplan_meier`.

    Notes
    -----
    An event and an end of follow-up at the same time: the row with the event is at risk of both.

    References
    ----------
    Schemper & Smith (1996), Controlled Clinical Trials 17, 343-346,
    doi:10.1016/0197-2456(96)00075-X.

    Examples
    --------
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 2.0, 3.0, 5.0, 6.0], [True, False, True, False, False])
    >>> estimate, lower, upper = rs.reverse_kaplan_meier(y)["all"].quantile()
    >>> estimate
    5.0
    """
    rows = Followup.read(y, group, weight, cluster)
    rows = rows._replace(event=(rows.event == 0).astype("int64"), causes={})
    return curves_of(rows, level, interval, variance)
