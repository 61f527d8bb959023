"""A planned study: events, people, power and detectable ratios from one description of it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from scipy.optimize import brentq

from riskset._keywords import takes
from riskset._settings import bad_setting, declared
from riskset._types import is_number
from riskset.cohort.planning.sample_size import (
    ConstantHazards,
    StudyDesign,
    checked_share,
    event_probability,
    mdrr,
    required_events,
)
from riskset.cohort.planning.sample_size import power as power_of

__all__ = ["StudyPlan", "plan_study", "required_people"]

DISTANCES = np.linspace(0.0, 20.0, 801)
"""Log ratios from the margin at which power is looked at, before the ratio is found between two."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """A planned study, the result of `plan_study` and `required_people`.

    Numbers that do not follow are None.

    Attributes
    ----------
    hr : float or None
        Hazard ratio that is planned for.
    share : float
    events : float or None
        Events in both arms: required, given, or expected with `hr`.
    people, target, comparator : float or None
        People in both arms and in each: required (whole numbers), or given.
    probability_target, probability_comparator : float or None
        Probabilities that the outcome of a person is observed.
    power : float or None
        Power with `hr`: the requested one, or that of the given events or people.
    detectable_above, detectable_below : float or None
        Ratios closest to `margin`, above and below it, that are detected with the requested power.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.plan_study(0.57, events=133, power=0.9)
    >>> round(found.power, 3), round(found.detectable_below, 2)
    (0.9, 0.57)
    """

    hr: float | None
    share: float
    events: float | None = None
    people: float | None = None
    target: float | None = None
    comparator: float | None = None
    probability_target: float | None = None
    probability_comparator: float | None = None
    power: float | None = None
    detectable_above: float | None = None
    detectable_below: float | None = None

    def columns(self) -> dict[str, float | None]:
        """Return everything as a row of a table."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(frozen=True)
class _FollowedArms:
    """Two arms whose people are followed."""

    share: float
    rate: float
    followup: float
    hazards: ConstantHazards

    def __post_init__(self) -> None:
        event_probability(self.rate, self.followup, self.hazards)  # refuses what is not valid
        if not self.followup + self.hazards.accrual > 0:
            raise bad_setting(
                "followup",
                "`followup` and `accrual` are 0, so nobody is followed.",
                hint="pass a positive `followup` or `accrual`.",
                value=self.followup,
            )

    def probabilities(self, hr: float) -> tuple[float, float]:
        """Probabilities that the outcome of a person in each arm is observed."""
        target, comparator = (
            event_probability(self.rate, self.followup, self.hazards, hr=ratio)
            for ratio in (hr, 1.0)
        )
        return target, comparator

    def mean(self, hr: float) -> float:
        """Expected events of a person."""
        target, comparator = self.probabilities(hr)
        return self.share * target + (1 - self.share) * comparator


@takes(StudyDesign)
def required_people(
    hr: float, share: float, rate: float, followup: float, *, settings: StudyDesign
) -> StudyPlan:
    r"""Compute the number of people with whom a test has a given power.

    It is the number of events of `required_events`, divided by the mean of `event_probability` over
    both arms, :math:`\pi P_1 + (1 - \pi) P_0`. Each arm is rounded up.

    Parameters
    ----------
    hr : float
        Hazard ratio that the test is to detect.
    share : float in (0, 1)
        Proportion :math:`\pi` of the people who are in the target arm.
    rate, followup : float
        As of `event_probability`.
    settings : StudyDesign

    Returns
    -------
    StudyPlan
        With whole numbers of people, and without detectable ratios.

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
    >>> found = rs.cohort.required_people(1.5, 0.5, rate=0.01, followup=2.0)
    >>> found.people, round(found.events, 1)
    (7740, 191.0)
    >>> rs.cohort.required_people(0.5, 0.5, rate=0.035, followup=10, accrual=20, power=0.9).people
    224
    """
    arms = _FollowedArms(checked_share(share), rate, followup, settings)
    events = required_events(hr, share, settings)
    mean = arms.mean(hr)
    if not mean > 0:  # too small for a number
        raise bad_setting(
            "rate",
            "the probability of an outcome is 0 in both arms, so no number of people is enough.",
            hint="pass a larger `rate` or `followup`.",
            value=rate,
        )
    target, comparator = (math.ceil(events / mean * part) for part in (share, 1 - share))
    probabilities = arms.probabilities(hr)
    return StudyPlan(
        hr=hr,
        share=share,
        events=events,
        people=target + comparator,
        target=target,
        comparator=comparator,
        probability_target=probabilities[0],
        probability_comparator=probabilities[1],
        power=settings.power,
    )


@takes(StudyDesign)
def plan_study(
    hr: float | None = None,
    share: float = 0.5,
    *,
    events: float | None = None,
    people: float | None = None,
    rate: float | None = None,
    followup: float | None = None,
    settings: StudyDesign,
) -> StudyPlan:
    r"""Plan a study of two arms: compute its required size, or the power of a given size.

    * Without `events` and `people`: the events that `hr` requires, and with `rate` and `followup`
      the people (`required_events`, `required_people`).
    * With `events`: the power for `hr`, and the detectable ratios
      :math:`m \, e^{\pm (z_{power} + z_{1 - \alpha / 2}) \, se}`.
    * With `people`, `rate` and `followup`: the expected events, the power for `hr`, and the ratios
      whose expected events detect them with `power`.

    Parameters
    ----------
    hr : float, optional
        Hazard ratio; required without `events` and `people`.
    share : float in (0, 1)
        Proportion of the people who are in the target arm.
    events, people : float, optional
        Events in both arms that a study will have, or people; at most one of them.
    rate, followup : float, optional
        As of `event_probability`; together.
    settings : StudyDesign

    Returns
    -------
    StudyPlan

    Raises
    ------
    CohortError
        "BadSetting".

    References
    ----------
    Schoenfeld (1983), Biometrics 39, 499-503, doi:10.2307/2531021.
    Lachin and Foulkes (1986), Biometrics 42, 507-519, doi:10.2307/2531201.
    Latouche, Porcher and Chevret (2004), Statistics in Medicine 23, 3263-3274,
    doi:10.1002/sim.1915.

    Examples
    --------
    >>> import riskset as rs
    >>> found = rs.cohort.plan_study(1.5, rate=0.01, followup=2.0)
    >>> round(found.events, 1), found.people
    (191.0, 7740)
    >>> found = rs.cohort.plan_study(1.5, people=7740, rate=0.01, followup=2.0)
    >>> round(found.power, 3), round(found.detectable_above, 3)
    (0.8, 1.5)
    """
    checked_share(share)
    _check(hr, events, people, rate, followup, settings)
    arms = None
    if rate is not None and followup is not None:
        arms = _FollowedArms(share, rate, followup, settings)
    if people is not None and arms is not None:
        return _of_people(arms, settings, hr, people)
    if events is not None:
        return _of_events(share, arms, settings, hr, events)
    assert hr is not None
    if arms is None:
        needed = required_events(hr, share, settings)
        return StudyPlan(hr=hr, share=share, events=needed, power=settings.power)
    return required_people(hr, share, arms.rate, arms.followup, settings)


def _check(
    hr: float | None,
    events: float | None,
    people: float | None,
    rate: float | None,
    followup: float | None,
    design: StudyDesign,
) -> None:
    """Refuse sizes and combinations that cannot be."""
    if events is not None and people is not None:
        raise bad_setting(
            "events", "`events` and `people` were both given.", hint="leave one of them out."
        )
    if hr is None and events is None and people is None:
        raise bad_setting(
            "hr",
            "`hr` is missing: it is the ratio that the study has to detect.",
            hint="pass `hr`, or the number of `events` or `people` of the study.",
        )
    if (rate is None) != (followup is None) or (people is not None and rate is None):
        name = "rate" if rate is None else "followup"
        raise bad_setting(
            name,
            f"`{name}` is missing: numbers of people follow from `rate` and `followup` together.",
            hint="pass both.",
        )
    for name, own in declared(ConstantHazards).items():
        if rate is None and getattr(design, name) != own.default:
            raise bad_setting(
                name,
                f"`{name}` has no effect without `rate` and `followup`.",
                hint=f"pass both, or leave `{name}` out.",
                value=getattr(design, name),
            )
    if events is not None and not (is_number(events) and 0 < events < math.inf):
        message = f"`events` must be a positive number, but it is {events!r}."
        raise bad_setting("events", message, value=events)
    if people is not None and not (is_number(people) and 2 <= people < math.inf):
        message = f"`people` must be a number of at least 2, but it is {people!r}."
        raise bad_setting("people", message, value=people)


def _of_events(
    share: float,
    arms: _FollowedArms | None,
    design: StudyDesign,
    hr: float | None,
    events: float,
) -> StudyPlan:
    above = mdrr(events, share, design)
    is_known = math.isfinite(above)
    known: dict[str, float | None] = {}
    if hr is not None:
        known["power"] = power_of(hr, events, share, design)
    if hr is not None and arms is not None:
        target, comparator = arms.probabilities(hr)
        known |= {"probability_target": target, "probability_comparator": comparator}
        mean = arms.mean(hr)
        if mean > 0:
            people = events / mean
            known |= {"people": people, "target": people * share}
            known["comparator"] = people * (1 - share)
    return StudyPlan(
        hr=hr,
        share=share,
        events=events,
        detectable_above=above if is_known else None,
        detectable_below=design.margin * (design.margin / above) if is_known else None,
        **known,
    )


def _of_people(
    arms: _FollowedArms, design: StudyDesign, hr: float | None, people: float
) -> StudyPlan:
    share = arms.share
    known: dict[str, float | None] = {}
    if hr is not None:
        target, comparator = arms.probabilities(hr)
        events = people * arms.mean(hr)
        known |= {"probability_target": target, "probability_comparator": comparator}
        known |= {"events": events, "power": power_of(hr, events, share, design)}

    def lacking(distance: float, sign: float) -> float:
        """Events that a ratio at a distance from the margin lacks, as a logarithm."""
        ratio = design.margin * math.exp(sign * distance)
        expected = people * arms.mean(ratio)
        if expected == 0:
            return math.inf
        return math.log(required_events(ratio, share, design)) - math.log(expected)

    ends = []
    for sign in (1.0, -1.0):
        distance = _first_root(lambda d, s=sign: lacking(d, s))  # type: ignore[misc]
        ends.append(None if distance is None else design.margin * math.exp(sign * distance))
    return StudyPlan(
        hr=hr,
        share=share,
        people=people,
        target=people * share,
        comparator=people * (1 - share),
        detectable_above=ends[0],
        detectable_below=ends[1],
        **known,
    )


def _first_root(lacking: Callable[[float], float]) -> float | None:
    """The smallest distance at which nothing lacks; None if there is none."""
    for low, high in zip(DISTANCES[:-1], DISTANCES[1:], strict=True):
        if lacking(float(high)) <= 0:
            start = max(float(low), 1e-12)
            if lacking(start) <= 0:
                return start
            return float(brentq(lacking, start, float(high), xtol=1e-14, rtol=1e-14))
    return None
