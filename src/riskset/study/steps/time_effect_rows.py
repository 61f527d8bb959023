"""The effect as a function of time: its settings in days, and its rows."""

from typing import Any

import numpy as np

from riskset._time_units import DAYS_IN, TimeUnit
from riskset._types import AnyArray
from riskset.cohort.effects.estimate import Estimate
from riskset.cohort.effects.time_effect import function_name, round_times
from riskset.disclosure.rows import known
from riskset.results.rows import EffectAtTimeRow, TimeEffectRow
from riskset.study.sources.source import AnalysedOutcome

__all__ = ["time_effect_rows", "time_effect_settings"]


def time_effect_settings(people: AnalysedOutcome, unit: TimeUnit) -> dict[str, Any]:
    """Settings of `fit_outcome` in days, with round times in a unit."""
    model, days = people.analysis.model, DAYS_IN[unit]
    if model.time_effect is None:
        return {}
    if isinstance(model.time_effect, tuple):
        return {"time_effect": tuple(time * days for time in model.time_effect)}
    times = tuple(time * days for time in model.effect_times)
    at = people.followed.time[_events(people)]
    if not times and at.size:
        function = function_name(model.time_effect)
        chosen = round_times(function, float(at.min()) / days, float(at.max()) / days)
        times = tuple(time * days for time in chosen)
    return {"time_effect": model.time_effect, "effect_times": times}


def _events(people: AnalysedOutcome) -> AnyArray:
    return np.asarray(people.people.kept & (people.followed.status == 1))


def time_effect_rows(estimate: Estimate, people: AnalysedOutcome) -> dict[str, list[Any]]:
    """The rows of the model and of its times, as fields of a step; none without that effect."""
    effect = estimate.time_effect
    if effect is None:
        return {}
    test = effect.constancy
    about = TimeEffectRow(
        function=effect.function,
        interval=effect.interval,
        df=test.df,
        statistic=known(test.statistic),
        p=known(test.p_value),
    )
    is_event, time = _events(people), people.followed.time
    is_target = people.people.population.is_target
    of_arm = {"target": is_target, "comparator": ~is_target}
    rows = []
    for k, (start, end) in enumerate(zip(effect.start, effect.time, strict=True)):
        counts: dict[str, Any] = {}
        if effect.function == "steps":
            inside = is_event & (start < time) & (time <= end)
            counts = {
                f"{arm}_outcomes": int(np.count_nonzero(inside & own))
                for arm, own in of_arm.items()
            } | {"start": float(start)}
        rows.append(
            EffectAtTimeRow(
                number=k + 1,
                time=float(end),
                hr=float(effect.hr[k]),
                hr_lower=float(effect.hr_lower[k]),
                hr_upper=float(effect.hr_upper[k]),
                log_hr=float(effect.log_hr[k]),
                se=float(effect.se[k]),
                interval_level=effect.level,
                **counts,
            )
        )
    return {"time_effect": [about], "at_times": rows}
