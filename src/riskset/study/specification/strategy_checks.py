"""What a specification with strategies of a grace period must and cannot have."""

from collections.abc import Iterator

from riskset._settings import INVALID, Fault, KeyPath
from riskset._time_units import DAYS_IN
from riskset.study.specification.data_sections import TableData
from riskset.study.specification.exposure_sections import TableExposure, TableStrategy
from riskset.study.specification.per_protocol_section import INTERVAL_DAYS, PerProtocol
from riskset.study.specification.sections import ADJUSTMENTS, Analysis, Specification

__all__ = ["faults_of_strategies"]

ROUNDING = 1e-9


def faults_of_strategies(specification: Specification) -> Iterator[Fault]:
    """Faults of exposures, comparisons and analyses; parts that are `INVALID` are skipped."""
    data, exposures = specification.data, specification.exposures
    if INVALID in (data, exposures) or INVALID in exposures.values():
        return
    strategies = {n: one for n, one in exposures.items() if isinstance(one, TableStrategy)}
    if not isinstance(data, TableData):
        for name in strategies:
            message = "strategies with a grace period need a table of people."
            hint = (
                "make a table of all who could start at an index date, with their covariates and "
                "follow-up and a column of the time at which they start."
            )
            yield Fault(("exposures", name), message, hint)
        return
    values = [name for name, one in exposures.items() if isinstance(one, TableExposure)]
    if strategies and values:
        message = "some exposures are strategies, but others are values of a column."
        yield Fault(("exposures", values[0]), message, "make a study of each kind.")
    elif values and data.treatment is None:
        message = "the key 'treatment' is missing: the column of the exposure of each row."
        yield Fault(("data",), message)
    elif strategies:
        yield from _of_data(data)
        yield from _of_comparisons(specification, strategies)
        analyses = specification.analyses
        for name, analysis in {} if analyses is INVALID else analyses.items():
            if analysis is not INVALID and INVALID not in vars(analysis).values():
                yield from _of_analysis(("analyses", name), analysis)
                if data.covariates_over_time is not None:
                    yield from _of_windows(data, analysis, strategies)


def _of_data(data: TableData) -> Iterator[Fault]:
    if data.treatment is not None:
        message = "`treatment` names a column of values, but the exposures are strategies."
        hint = "leave it out; drop the column from the covariates if it is not one."
        yield Fault(("data", "treatment"), message, hint)
    if data.score is not None:
        message = "everybody is in both arms at the start, so there is no propensity score."
        yield Fault(("data", "score"), message, "leave `score` out.")


def _of_comparisons(
    specification: Specification, strategies: dict[str, TableStrategy]
) -> Iterator[Fault]:
    """Two strategies of one treatment that differ."""
    if specification.comparisons is INVALID:
        return
    for k, comparison in enumerate(specification.comparisons):
        if comparison is INVALID or comparison.target == comparison.comparator:
            continue
        one, other = (strategies.get(n) for n in (comparison.target, comparison.comparator))
        if one is None or other is None:
            continue
        place = ("comparisons", str(k))
        if one.treated_at != other.treated_at:
            message = (
                f"the strategies start by different columns, {one.treated_at!r} and "
                f"{other.treated_at!r}."
            )
            hint = "compare strategies of one treatment, with the same column `treated_at`."
            yield Fault(place, message, hint)
        elif (one.starts, one.grace) == (other.starts, other.grace):
            message = "both strategies are the same."
            yield Fault(place, message, "give one of them another `strategy` or `grace`.")


def _of_analysis(place: KeyPath, analysis: Analysis) -> Iterator[Fault]:
    """Everybody is in both arms: arms are alike at the start, and differ when people deviate."""
    if analysis.estimand != "per-protocol":
        message = "everybody follows both strategies at the start, until they deviate."
        yield Fault((*place, "estimand"), message, "add estimand: per-protocol.")
        return
    protocol = analysis.protocol or PerProtocol()
    if protocol.deviation is not None:
        message = "`deviation` names a column, but people deviate as their strategy says."
        hint = "leave it out; the column of the start is `treated_at` of the exposures."
        yield Fault((*place, "per_protocol", "deviation"), message, hint)
    if protocol.kind == "cox":
        message = (
            "a Cox model of deviation needs times that differ, but all who do not start deviate at "
            "one time, the end of the grace period."
        )
        yield Fault((*place, "per_protocol", "kind"), message, "use logistic.")
    for key in ("propensity", *ADJUSTMENTS):
        if getattr(analysis, key) is not None:
            message = "everybody is in both arms, so the arms are alike at the start."
            hint = f"use `{key}: none`; the weights for deviation adjust for covariates."
            yield Fault((*place, key), message, hint)


def _of_windows(
    data: TableData, analysis: Analysis, strategies: dict[str, TableStrategy]
) -> Iterator[Fault]:
    """Covariates of those who start late must be known before they start: one interval decides."""
    protocol = analysis.protocol
    if protocol is None or not protocol.over_time:
        return
    every = protocol.every or INTERVAL_DAYS / DAYS_IN[data.time_unit]
    for name, one in strategies.items():
        if not one.starts or one.grace is None:
            continue
        parts = one.grace / every
        is_whole = abs(parts - round(parts)) < ROUNDING * max(parts, 1.0)
        if is_whole and one.window is not None and one.window <= every * (1 + ROUNDING):
            continue
        message = (
            "covariates change over time, so those who represent others must all start in one "
            "interval, the last one of the grace period."
        )
        hint = (
            f"make `grace` a multiple of the interval (`every`: {every:g}) and `window` at most as "
            "long; or use `over_time: false`."
        )
        yield Fault(("exposures", name, "window"), message, hint)
