"""Power and events for a hazard ratio, before there are data or from numbers of events."""

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from riskset._errors import InputError, counted
from riskset._keywords import takes
from riskset._settings import Settings, bad_setting, setting, settings
from riskset._types import Rows, is_number
from riskset.data.checks import Places, as_numbers

__all__ = [
    "ConstantHazards",
    "PoweredTest",
    "RatioTest",
    "StudyDesign",
    "checked_share",
    "event_probability",
    "expected_se",
    "mdrr",
    "power",
    "required_events",
]

PlannedModel = Literal["cox", "finegray"]
NODES, HALVES = 32, 60
"""Of the quadrature over time: nodes of a piece, and how often a duration is halved into pieces."""


@settings
class RatioTest(Settings):
    """A test of a hazard ratio.

    Examples
    --------
    >>> import riskset as rs
    >>> test = rs.cohort.RatioTest(alpha=0.025, two_sided=False)
    >>> round(rs.cohort.power(0.57, 133, 0.5, test), 3)
    0.9
    """

    alpha: float = setting("significance level", 0.05, above=0, below=1)
    two_sided: bool = setting(
        "whether ratios on both sides of `margin` count; if False, :math:`\\alpha / 2` becomes "
        ":math:`\\alpha`",
        True,
    )
    margin: float = setting(
        "hazard ratio m of the null hypothesis; for non-inferiority, the largest ratio that is "
        "still acceptable, with a one-sided test",
        1.0,
        above=0,
        below=math.inf,
    )
    n_outcomes: int = setting(
        "number of outcomes that share `alpha`, which is divided by it (Bonferroni)", 1, least=1
    )
    r_squared: float = setting(
        "proportion :math:`R^2` of the variance of the treatment that covariates explain",
        0.0,
        least=0,
        below=1,
    )

    @property
    def tail(self) -> float:
        """Probability of a significant result in one direction without an effect."""
        return self.alpha / self.n_outcomes / (2 if self.two_sided else 1)

    @property
    def critical(self) -> float:
        """The quantile of the normal distribution above which a result is significant."""
        return -float(ndtri(self.tail))


@settings
class PoweredTest(RatioTest):
    """A test of a hazard ratio that is to have a given power.

    Examples
    --------
    >>> import riskset as rs
    >>> test = rs.cohort.PoweredTest(power=0.9)
    >>> round(rs.cohort.required_events(0.57, 0.5, test), 1)
    133.0
    """

    power: float = setting(
        "probability of a significant result", 0.8, above=0, below=1, after="alpha"
    )

    def contradictions(self) -> Iterator[InputError]:
        """Without an effect, a result is significant with the probability `tail`."""
        if self.power <= self.tail:
            yield bad_setting(
                "power",
                f"`power` must be above {self.tail:g}, the probability of a significant result "
                f"in one direction without an effect, but it is {self.power:g}.",
                hint="alpha=0.05 and power=0.8 are usual.",
                value=self.power,
            )

    @property
    def distance(self) -> float:
        """Standard errors between the margin and a ratio that is detected with this power."""
        return self.critical + float(ndtri(self.power))


@settings
class ConstantHazards(Settings):
    """When people enter a planned study and leave it, with constant hazards.

    Examples
    --------
    >>> import riskset as rs
    >>> hazards = rs.cohort.ConstantHazards(accrual=1.0)
    >>> round(rs.cohort.event_probability(0.1, 2.0, hazards), 4)
    0.2209
    """

    accrual: float = setting(
        "duration R of accrual; 0: everybody has the same follow-up", 0.0, least=0, below=math.inf
    )
    dropout: float = setting("hazard :math:`\\eta` of dropout", 0.0, least=0, below=math.inf)
    competing: float = setting(
        "hazard :math:`\\kappa` of competing events", 0.0, least=0, below=math.inf
    )
    model: PlannedModel = setting(
        "what the ratio compares: (cause-specific) hazards, while those of competing events are "
        "equal, or subdistribution hazards, so that the risk F becomes "
        ":math:`1 - (1 - F)^h`",
        "cox",
    )


@settings
class StudyDesign(ConstantHazards, PoweredTest):
    """The test of a planned study, and when people enter it and leave it.

    Examples
    --------
    >>> import riskset as rs
    >>> design = rs.cohort.StudyDesign(accrual=20, power=0.9)
    >>> rs.cohort.required_people(0.5, 0.5, 0.035, 10, design).people
    224
    """


@takes(PoweredTest)
def required_events(
    hr: float, share: object, *, strata: object = None, settings: PoweredTest
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
    settings : PoweredTest

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
    distance = abs(_log("hr", hr) - math.log(settings.margin))
    if distance == 0:
        raise bad_setting(
            "hr",
            "`hr` equals `margin`, the ratio of the null hypothesis, so no study can detect it.",
            hint="pass another `hr` or another `margin`.",
            value=hr,
        )
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
    information *= 1 - settings.r_squared
    _refuse_empty_arms(information, share)
    return (settings.distance / distance) ** 2 / information


@takes(RatioTest)
def power(hr: float, events: object, share: object, *, settings: RatioTest) -> float:
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
    settings : RatioTest

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
    distance = abs(_log("hr", hr) - math.log(settings.margin))
    se = expected_se(events, share)
    if not np.any(np.asarray(events, dtype=np.float64)):
        raise bad_setting(
            "events",
            "`events` is 0, and without events there is no test.",
            hint="pass the number of events of both arms.",
            value=events,
        )
    _refuse_empty_arms(1 / se, share)
    se /= math.sqrt(1 - settings.r_squared)
    return float(ndtr(distance / se - settings.critical))


@takes(PoweredTest)
def mdrr(events: object, share: object, *, settings: PoweredTest) -> float:
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
    settings : PoweredTest

    Returns
    -------
    float
        Above `margin`. Infinite without events, or if an arm is empty.

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
    se = expected_se(events, share) / math.sqrt(1 - settings.r_squared)
    with np.errstate(over="ignore"):
        return settings.margin * float(np.exp(settings.distance * se))


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


@takes(ConstantHazards)
def event_probability(
    rate: float, followup: float, *, hr: float = 1.0, settings: ConstantHazards
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
    hr : float
        Hazard ratio h of the arm; 1 for the comparator.
    settings : ConstantHazards

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
    if settings.model == "finegray":
        return _of_subdistribution(rate, followup, hr, settings)
    total = rate * hr + settings.dropout + settings.competing
    observed = -math.expm1(-total * followup + _log_mean_exp(total * settings.accrual))
    return rate * hr / total * observed if observed > 0 else 0.0


def _log_mean_exp(x: float) -> float:
    """The logarithm of (1 - exp(-x)) / x, whose limit at 0 is 0."""
    return float(np.log(-np.expm1(-x) / x)) if x > 0 else 0.0


def _of_subdistribution(rate: float, followup: float, hr: float, hazards: ConstantHazards) -> float:
    r"""The integral of e^{-dropout t} (proportion of people followed to t) dF_h(t), by quadrature.

    With :math:`F(t) = \lambda / (\lambda + \kappa) (1 - e^{-(\lambda + \kappa) t})`, the density of
    :math:`1 - (1 - F)^h` is :math:`h (1 - F)^{h - 1} \lambda e^{-(\lambda + \kappa) t}`.
    """
    node, weight = np.polynomial.legendre.leggauss(NODES)
    # Pieces of all sizes, because the hazards may be large or small beside the durations.
    edge = np.append(0.0, 0.5 ** np.arange(HALVES, -1, -1.0))
    place = ((edge[1:] + edge[:-1])[:, None] + np.diff(edge)[:, None] * node).ravel() / 2
    size = (np.diff(edge)[:, None] * weight).ravel() / 2
    accrual, competing = hazards.accrual, hazards.competing
    both, found = rate + competing, 0.0
    with np.errstate(divide="ignore"):
        share, rest = np.log(np.array([rate, competing]) / both)
    for start, length in ((0.0, followup), (followup, accrual)):
        time = start + length * place
        free = np.logaddexp(rest, share - both * time)  # log of 1 - F
        density = hr * rate * np.exp((hr - 1) * free - both * time)
        followed = np.minimum((followup + accrual - time) / accrual, 1.0) if accrual else 1.0
        found += float(size @ (density * np.exp(-hazards.dropout * time) * followed)) * length
    return min(found, 1.0)  # rounding


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


def _at_least_0(name: str, value: float, is_positive: bool = False) -> None:
    if not (is_number(value) and 0 <= value < math.inf and (value or not is_positive)):
        what = "a positive number" if is_positive else "a number, at least 0"
        raise bad_setting(name, f"`{name}` must be {what}, but it is {value!r}.", value=value)


def _refuse_empty_arms(information: float, share: object) -> None:
    """Refuse shares of 0 and 1 only, with which there is nobody to compare with."""
    if not information > 0:
        raise bad_setting(
            "share",
            f"`share` must be above 0 and below 1, but it is {share!r}, so that an arm is empty.",
            hint="pass the proportion of the target.",
            value=share,
        )


def checked_share(share: object) -> float:
    """The proportion of the target among all people, both of whose arms have some."""
    if not (is_number(share) and 0 < share < 1):
        raise bad_setting(
            "share",
            f"`share` must be a number between 0 and 1, but it is {share!r}.",
            hint="pass the proportion of the target among everybody.",
            value=share,
        )
    return float(share)


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
