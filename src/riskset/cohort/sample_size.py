"""Power and sample size for a hazard ratio, before there are data or from numbers of events."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.special import ndtr, ndtri

from riskset._errors import InputError, counted
from riskset._settings import bad_setting
from riskset._types import Rows, is_count, is_number
from riskset.data.checks import Places, as_numbers

__all__ = [
    "RequiredPeople",
    "event_probability",
    "expected_se",
    "mdrr",
    "power",
    "required_events",
    "required_people",
]

PlannedModel = Literal["cox", "finegray"]
NODES, HALVES = 32, 60
"""Of the quadrature over time: nodes of a piece, and how often a duration is halved into pieces."""


def required_events(
    hr: float,
    share: object,
    *,
    strata: object = None,
    alpha: float = 0.05,
    power: float = 0.8,
    two_sided: bool = True,
    margin: float = 1.0,
    n_outcomes: int = 1,
    r_squared: float = 0.0,
) -> float:
    r"""Compute the number of events in both arms with which a test has a given power.

    .. math:: E = \frac{(z_{power} + z_{1 - \alpha / 2})^2}
                       {(\log HR - \log m)^2 \, (1 - R^2) \sum_s f_s \, \pi_s (1 - \pi_s)}

    Parameters
    ----------
    hr : float
        Hazard ratio that the test is to detect. With competing events, a subdistribution hazard
        ratio is planned in the same way.
    share : float in (0, 1), or sequence of floats (k,)
        Proportion :math:`\pi` of the target among the people at risk; of each stratum with
        `strata`. For matched sets with r comparators, 1 / (r + 1).
    strata : sequence of floats (k,), optional
        Proportion :math:`f_s` of the events in each stratum, if the model is stratified.
    alpha, power : float
    two_sided : bool
        If False, use :math:`z_{1 - \alpha}`.
    margin : float
        Hazard ratio m of the null hypothesis. For non-inferiority, the largest ratio that is still
        acceptable; for a one-sided test, set `two_sided` to False.
    n_outcomes : int
        Number of outcomes that share `alpha`, which is divided by it (Bonferroni).
    r_squared : float in [0, 1)
        Proportion :math:`R^2` of the variance of the treatment that covariates explain.

    Returns
    -------
    float
        Not rounded.

    Raises
    ------
    CohortError
        "BadSetting".

    Notes
    -----
    In a matched set, an event counts while both arms of the set are at risk.

    References
    ----------
    Schoenfeld (1981), Biometrika 68, 316-319, doi:10.1093/biomet/68.1.316.
    Schoenfeld (1983), Biometrics 39, 499-503, doi:10.2307/2531021.
    Covariates: Hsieh and Lavori (2000), Controlled Clinical Trials 21, 552-560,
    doi:10.1016/S0197-2456(00)00104-5.
    Competing risks: Latouche, Porcher and Chevret (2004), Statistics in Medicine 23, 3263-3274,
    doi:10.1002/sim.1915.

    Examples
    --------
    >>> import riskset as rs
    >>> round(rs.cohort.required_events(0.57, 0.5, power=0.9), 1)
    133.0
    >>> round(rs.cohort.required_events(1.0, 0.5, margin=1.3, alpha=0.025, two_sided=False), 1)
    456.1
    """
    distance = abs(_log("hr", hr) - _log("margin", margin))
    if distance == 0:
        raise bad_setting(
            "hr",
            "`hr` is the ratio of the null hypothesis, which no number of events tells apart.",
            hint="pass another ratio, or another `margin`.",
            value=hr,
        )
    z = _critical(alpha, two_sided, n_outcomes) + float(ndtri(_probability("power", power)))
    shares = _shares(share)
    if strata is None:
        if shares.size > 1:
            raise bad_setting(
                "strata",
                f"`strata` is missing: there are {shares.size} shares.",
                hint="pass the proportion of the events in each stratum.",
            )
        weights = np.ones(1)
    else:
        weights = _numbers("strata", strata)
        if weights.size != shares.size or (weights < 0).any() or not weights.sum() > 0:
            raise bad_setting(
                "strata",
                f"`strata` must have a proportion for each value of `share`, but it is {strata!r}.",
                hint="pass one for each value of `share`.",
                value=strata,
            )
    information = float((weights / weights.sum()) @ (shares * (1 - shares)))
    information *= 1 - _r_squared(r_squared)
    return (max(z, 0.0) / distance) ** 2 / information if information > 0 else math.inf


def power(
    hr: float,
    events: object,
    share: object,
    *,
    alpha: float = 0.05,
    two_sided: bool = True,
    margin: float = 1.0,
    n_outcomes: int = 1,
    r_squared: float = 0.0,
) -> float:
    r"""Compute the power of a test of a hazard ratio with a number of events.

    .. math:: \Phi \left( |\log HR - \log m| \, / \, se - z_{1 - \alpha / 2} \right)

    with the standard error of `expected_se`, divided by :math:`\sqrt{1 - R^2}`.

    Parameters
    ----------
    hr : float
        True hazard ratio.
    events : number, or sequence of numbers (k,)
        Number of events in both arms; of each stratum, if the model is stratified.
    share : float, or sequence of floats (k,)
        Proportion of the target among the people at risk; of each stratum.
    alpha, two_sided, margin, n_outcomes, r_squared
        As of `required_events`.

    Returns
    -------
    float
        Probability of a significant result in the direction of the true ratio.

    Raises
    ------
    CohortError
        "BadSetting".

    References
    ----------
    Schoenfeld (1983), Biometrics 39, 499-503, doi:10.2307/2531021.

    Examples
    --------
    >>> import riskset as rs
    >>> round(rs.cohort.power(0.57, 133, 0.5), 3)
    0.9
    """
    distance = abs(_log("hr", hr) - _log("margin", margin))
    se = expected_se(events, share) / math.sqrt(1 - _r_squared(r_squared))
    return float(ndtr(distance / se - _critical(alpha, two_sided, n_outcomes)))


def mdrr(
    events: object,
    share: object,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    two_sided: bool = True,
    margin: float = 1.0,
    n_outcomes: int = 1,
    r_squared: float = 0.0,
) -> float:
    r"""Compute the minimum detectable hazard ratio above 1.

    It is the ratio of which `power` is the given one:

    .. math:: m \, \exp \sqrt{\frac{(z_{power} + z_{1 - \alpha / 2})^2}
                                   {E \, \pi (1 - \pi) (1 - R^2)}}

    Parameters
    ----------
    events : number, or sequence of numbers (k,)
        Number of events E in both arms; of each stratum, if the model is stratified.
    share : float, or sequence of floats (k,)
        Proportion :math:`\pi` of the target; of each stratum.
    alpha, power : float
    two_sided : bool
        If False, use :math:`z_{1 - \alpha}`.
    margin, n_outcomes, r_squared
        As of `required_events`. The result is above `margin`.

    Returns
    -------
    float
        Infinite without events, or if an arm is empty.

    Raises
    ------
    CohortError
        "BadSetting".

    References
    ----------
    Schoenfeld (1983), Biometrics 39, 499-503, doi:10.2307/2531021.

    Examples
    --------
    >>> import riskset as rs
    >>> round(rs.cohort.mdrr(100, 0.5), 4)
    1.7512
    """
    critical = _critical(alpha, two_sided, n_outcomes)
    z = critical + float(ndtri(_probability("power", power)))
    se = expected_se(events, share) / math.sqrt(1 - _r_squared(r_squared))
    with np.errstate(over="ignore"):
        return float(np.exp(_log("margin", margin) + max(z, 0.0) * se))


def expected_se(events: object, share: object) -> float:
    r"""Compute the expected standard error of a null effect, :math:`1 / \sqrt{E \pi (1 - \pi)}`.

    Sequences are the events and shares of strata, whose information adds up.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.cohort.expected_se(100, 0.5)
    0.2
    >>> rs.cohort.expected_se([50, 50], [0.5, 0.5])
    0.2
    """
    counts, shares = _numbers("events", events), _shares(share)
    if (counts < 0).any():
        raise bad_setting(
            "events", f"`events` must not be negative, but it is {events!r}.", value=events
        )
    if counts.size != shares.size:
        raise bad_setting(
            "share",
            f"`share` must have {counted(counts.size, 'value')}, as `events`, but it has "
            f"{shares.size}.",
            hint="pass the events and the share of each stratum.",
            value=share,
        )
    information = float(counts @ (shares * (1 - shares)))
    return 1 / math.sqrt(information) if information > 0 else math.inf


def event_probability(
    rate: float,
    followup: float,
    *,
    accrual: float = 0.0,
    dropout: float = 0.0,
    competing: float = 0.0,
    hr: float = 1.0,
    model: PlannedModel = "cox",
) -> float:
    r"""Compute the probability that the outcome of a person is observed, with constant hazards.

    With the hazards of the outcome :math:`\lambda h`, of dropout :math:`\eta` and of competing
    events :math:`\kappa`, whose sum is :math:`\Lambda`, uniform accrual over R and follow-up of
    everybody for F after its end, it is

    .. math:: \frac{\lambda h}{\Lambda}
              \left( 1 - e^{-\Lambda F} \frac{1 - e^{-\Lambda R}}{\Lambda R} \right)

    Parameters
    ----------
    rate : float
        Hazard of the outcome :math:`\lambda` of the comparator, per unit of time.
    followup : float
        Time F for which everybody is followed, at least.
    accrual : float
        Duration R of accrual. 0: everybody has the same follow-up.
    dropout, competing : float
        Hazards of dropout and of competing events.
    hr : float
        Hazard ratio h of the arm; 1 for the comparator.
    model : {"cox", "finegray"}
        What `hr` is a ratio of: the (cause-specific) hazard, while that of competing events stays
        the same, or the subdistribution hazard, so that the risk F becomes
        :math:`1 - (1 - F)^h`.

    Returns
    -------
    float

    Raises
    ------
    CohortError
        "BadSetting".

    References
    ----------
    Lachin and Foulkes (1986), Biometrics 42, 507-519, doi:10.2307/2531201.
    Latouche, Porcher and Chevret (2004), Statistics in Medicine 23, 3263-3274,
    doi:10.1002/sim.1915.

    Examples
    --------
    >>> import riskset as rs
    >>> round(rs.cohort.event_probability(0.1, followup=2.0, accrual=1.0), 4)
    0.2209
    """
    _log("hr", hr)
    for name, value in (("rate", rate), ("followup", followup)):
        _at_least_0(name, value, name == "rate")
    for name, value in (("accrual", accrual), ("dropout", dropout), ("competing", competing)):
        _at_least_0(name, value)
    if model not in get_args(PlannedModel):
        raise InputError.wrong_option("model", model, get_args(PlannedModel))
    if model == "finegray":
        return _of_subdistribution(rate, followup, accrual, dropout, competing, hr)
    total = rate * hr + dropout + competing
    observed = -math.expm1(-total * followup + _log_mean_exp(total * accrual))
    return rate * hr / total * max(observed, 0.0)


def _log_mean_exp(x: float) -> float:
    """The logarithm of (1 - exp(-x)) / x, whose limit at 0 is 0."""
    return float(np.log(-np.expm1(-x) / x)) if x > 0 else 0.0


def _of_subdistribution(
    rate: float, followup: float, accrual: float, dropout: float, competing: float, hr: float
) -> float:
    r"""The integral of e^{-dropout t} (proportion of people followed to t) dF_h(t), by quadrature.

    With :math:`F(t) = \lambda / (\lambda + \kappa) (1 - e^{-(\lambda + \kappa) t})`, the density of
    :math:`1 - (1 - F)^h` is :math:`h (1 - F)^{h - 1} \lambda e^{-(\lambda + \kappa) t}`.
    """
    node, weight = np.polynomial.legendre.leggauss(NODES)
    # Pieces of all sizes, because the hazards may be large or small beside the durations.
    edge = np.append(0.0, 0.5 ** np.arange(HALVES, -1, -1.0))
    place = ((edge[1:] + edge[:-1])[:, None] + np.diff(edge)[:, None] * node).ravel() / 2
    size = (np.diff(edge)[:, None] * weight).ravel() / 2
    both, found = rate + competing, 0.0
    with np.errstate(divide="ignore"):
        share, rest = np.log(np.array([rate, competing]) / both)
    for start, length in ((0.0, followup), (followup, accrual)):
        time = start + length * place
        free = np.logaddexp(rest, share - both * time)  # log of 1 - F
        density = hr * rate * np.exp((hr - 1) * free - both * time)
        followed = np.minimum((followup + accrual - time) / accrual, 1.0) if accrual else 1.0
        found += float(size @ (density * np.exp(-dropout * time) * followed)) * length
    return found


@dataclass(frozen=True)
class RequiredPeople:
    """People with whom a study has a given power, the result of `required_people`.

    Attributes
    ----------
    people, target, comparator : int
        Number of people in both arms and in each.
    events : float
        Expected number of events in both arms, by `required_events`.
    probability_target, probability_comparator : float
        Probability that the outcome of a person is observed, by `event_probability`.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.required_people(1.5, 0.5, rate=0.01, followup=2.0)
    >>> found.people, round(found.events, 1)
    (7740, 191.0)
    """

    people: int
    target: int
    comparator: int
    events: float
    probability_target: float
    probability_comparator: float


def required_people(
    hr: float,
    share: float,
    rate: float,
    followup: float,
    *,
    accrual: float = 0.0,
    dropout: float = 0.0,
    competing: float = 0.0,
    model: PlannedModel = "cox",
    alpha: float = 0.05,
    power: float = 0.8,
    two_sided: bool = True,
    margin: float = 1.0,
    n_outcomes: int = 1,
    r_squared: float = 0.0,
) -> RequiredPeople:
    r"""Compute the number of people with whom a test has a given power.

    It is the number of events of `required_events`, divided by the mean of `event_probability` over
    both arms, :math:`\pi P_1 + (1 - \pi) P_0`. Each arm is rounded up.

    Parameters
    ----------
    hr : float
        Hazard ratio that the test is to detect.
    share : float in (0, 1)
        Proportion :math:`\pi` of the people who are in the target arm.
    rate, followup, accrual, dropout, competing, model
        As of `event_probability`. `rate` is that of the comparator.
    alpha, power, two_sided, margin, n_outcomes, r_squared
        As of `required_events`.

    Returns
    -------
    RequiredPeople

    Raises
    ------
    CohortError
        "BadSetting".

    References
    ----------
    Lachin and Foulkes (1986), Biometrics 42, 507-519, doi:10.2307/2531201.
    Schoenfeld (1983), Biometrics 39, 499-503, doi:10.2307/2531021.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.cohort.required_people(0.5, 0.5, rate=0.035, followup=10, accrual=20, power=0.9).people
    224
    """
    target, comparator = (
        event_probability(
            rate,
            followup,
            accrual=accrual,
            dropout=dropout,
            competing=competing,
            hr=ratio,
            model=model,
        )
        for ratio in (hr, 1.0)
    )
    if not is_number(share):
        raise bad_setting(
            "share",
            f"`share` must be a number between 0 and 1, but it is {share!r}.",
            hint="pass the proportion of the target among everybody.",
            value=share,
        )
    events = required_events(
        hr,
        share,
        alpha=alpha,
        power=power,
        two_sided=two_sided,
        margin=margin,
        n_outcomes=n_outcomes,
        r_squared=r_squared,
    )
    mean = share * target + (1 - share) * comparator
    if not (mean > 0 and math.isfinite(events)):
        raise bad_setting(
            "followup",
            "no number of people is enough: an arm is empty, or nobody is followed.",
            hint="pass a `share` between 0 and 1 and a positive `followup` or `accrual`.",
        )
    arms = [math.ceil(events / mean * part) for part in (share, 1 - share)]
    return RequiredPeople(sum(arms), arms[0], arms[1], events, target, comparator)


def _critical(alpha: float, two_sided: bool, n_outcomes: int) -> float:
    """The quantile of the normal distribution above which a result is significant."""
    if not is_count(n_outcomes):
        raise bad_setting(
            "n_outcomes",
            f"`n_outcomes` must be a positive whole number, but it is {n_outcomes!r}.",
            value=n_outcomes,
        )
    if not isinstance(two_sided, bool):
        raise bad_setting(
            "two_sided",
            f"`two_sided` must be True or False, but it is {two_sided!r}.",
            value=two_sided,
        )
    tail = _probability("alpha", alpha) / n_outcomes
    return -float(ndtri(tail / 2 if two_sided else tail))


def _probability(name: str, value: float) -> float:
    if not (is_number(value) and 0 < value < 1):
        raise bad_setting(
            name,
            f"`{name}` must be between 0 and 1, but it is {value!r}.",
            hint="alpha=0.05 and power=0.8 are usual.",
            value=value,
        )
    return float(value)


def _log(name: str, ratio: float) -> float:
    """The logarithm of a ratio, which must be positive."""
    if not (is_number(ratio) and 0 < ratio < math.inf):
        raise bad_setting(
            name,
            f"`{name}` must be a positive number, but it is {ratio!r}.",
            hint="pass a ratio, not its logarithm.",
            value=ratio,
        )
    return math.log(ratio)


def _r_squared(value: float) -> float:
    if not (is_number(value) and 0 <= value < 1):
        raise bad_setting(
            "r_squared",
            f"`r_squared` must be at least 0 and below 1, but it is {value!r}.",
            value=value,
        )
    return float(value)


def _at_least_0(name: str, value: float, is_positive: bool = False) -> None:
    if not (is_number(value) and 0 <= value < math.inf and (value or not is_positive)):
        what = "a positive number" if is_positive else "a number, at least 0"
        raise bad_setting(name, f"`{name}` must be {what}, but it is {value!r}.", value=value)


def _shares(share: object) -> Rows:
    shares = _numbers("share", share)
    if ((shares < 0) | (shares > 1)).any():
        raise bad_setting(
            "share",
            f"`share` must be between 0 and 1, but it is {share!r}.",
            hint="pass the proportion of the target.",
            value=share,
        )
    return shares


def _numbers(name: str, values: object) -> Rows:
    """One number, or one for each stratum."""
    if is_number(values) and math.isfinite(values):
        return np.array([float(values)])
    if isinstance(values, str) or not hasattr(values, "__len__"):
        found = None
    else:
        found = as_numbers(values, name, None, Places())
    if found is None or not found.size:
        raise bad_setting(
            name,
            f"`{name}` must be a number, or a number for each stratum, but it is {values!r}.",
            value=values,
        )
    return found
