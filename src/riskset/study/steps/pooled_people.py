"""Scores, adjustments and balance of completed data sets as one: their means.

Standardised differences are the means of those of the data sets; their variances follow Rubin's
rules.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from riskset._types import AnyArray
from riskset.cohort.adjustments.adjustment import Step
from riskset.cohort.covariates.covariate_balance import difference_p_value
from riskset.cohort.population import Population
from riskset.cohort.settings import BalanceOptions
from riskset.study.steps.adjustment_step import AdjustmentStep, BalanceStep
from riskset.study.steps.data_set_means import matched_means, mean_array, mean_details, mean_row
from riskset.study.steps.propensity_step import ScoreStep
from riskset.study.steps.subgroup_balance import SubgroupBalanceStep
from riskset.study.steps.treatment_weight_step import LargestDifference

__all__ = ["pooled_adjustment", "pooled_balance", "pooled_score", "pooled_subgroup_balance"]


def pooled_score(steps: Sequence[ScoreStep]) -> ScoreStep:
    """The mean score of each person, and the means of what describes the scores.

    A covariate that a model does not use has the coefficient 0 in it. What a cross-validation tried
    is of each data set alone.
    """
    first = steps[0]
    coefficients = matched_means([step.coefficients for step in steps], ["covariate_id"], ["coef"])
    coefficients.sort(key=lambda row: -abs(row.coef or 0.0))
    scores = [step.score for step in steps if step.score is not None]
    shares = [step.share for step in steps if step.share is not None]
    return ScoreStep(
        status=next((step.status for step in steps if step.status != "ok"), "ok"),
        row=mean_row([step.row for step in steps]),
        coefficients=[
            dataclasses.replace(row, rank=rank) for rank, row in enumerate(coefficients, start=1)
        ],
        flagged=matched_means([step.flagged for step in steps], ["kind", "covariate_id"]),
        score=mean_array(scores) if len(scores) == len(steps) else None,
        share=float(np.mean(shares)) if len(shares) == len(steps) else first.share,
    )


def pooled_adjustment(
    steps: Sequence[AdjustmentStep],
    populations: Sequence[Population],
    largest: LargestDifference | None = None,
) -> AdjustmentStep:
    """The mean weight of each person, and the means of all counts.

    `largest` is the largest mean difference of weights of several treatments.
    """
    rows = [step.row(people) for step, people in zip(steps, populations, strict=True)]
    details = mean_details([row.details for row in rows])
    tables = [step.preference for step in steps]
    pairwise: dict[str, Any] = {}
    if largest is not None:
        names = ("pairwise_max", "pairwise_worst", "pairwise_between")
        pairwise = dict(zip(names, largest, strict=True))
    return dataclasses.replace(
        steps[0],
        notes=(),
        attrition=_mean_attrition([step.attrition for step in steps]),
        weight=mean_array([step.weight for step in steps]),
        set_id=None,
        preference=matched_means(tables, ["arm", "lower", "upper"]),
        pooled=dataclasses.replace(mean_row(rows), details=details).changed(pairwise),
        **pairwise,
    )


def _mean_attrition(tables: Sequence[Sequence[Step]]) -> tuple[Step, ...]:
    """The steps that all data sets have; what each removed is what is left less than before."""
    if all(tuple(table) == tuple(tables[0]) for table in tables):
        return tuple(tables[0])
    out: list[Step] = []
    for steps in zip(*tables, strict=False):
        means = {
            field.name: round(float(np.mean([getattr(step, field.name) for step in steps])))
            for field in dataclasses.fields(Step)
            if field.name != "step"
        }
        if out:
            for arm in ("target", "comparator"):
                before = getattr(out[-1], f"{arm}_exposures")
                means[f"removed_{arm}"] = before - means[f"{arm}_exposures"]
        out.append(Step(step=steps[0].step, **means))
    return tuple(out)


def pooled_balance(steps: Sequence[BalanceStep], settings: BalanceOptions) -> BalanceStep:
    """The mean differences, with the verdicts that follow from them."""
    first = steps[0]
    columns: dict[str, AnyArray] = {}
    for name, array in first.columns.items():
        is_number = array.dtype.kind == "f"
        columns[name] = mean_array([s.columns[name] for s in steps]) if is_number else array
    summary: dict[str, Any] = {}
    for side in ("before", "after"):
        summary |= _judged(columns, side, steps, settings)
    group = columns[f"generalisability_{first.row.generalisability_of}"]
    known = np.abs(group[~np.isnan(group)])
    summary["generalisability_max"] = float(known.max()) if known.size else None
    is_known = ~np.isnan(columns["after_smd"])
    return dataclasses.replace(
        first,
        notes=(),
        row=mean_row([step.row for step in steps]).changed(summary),
        is_balanced=bool(columns["after_balanced"][is_known].all()) if is_known.any() else None,
        characteristics=matched_means([step.characteristics for step in steps], ["number"]),
        columns=columns,
    )


def _judged(
    columns: dict[str, AnyArray],
    side: str,
    steps: Sequence[BalanceStep],
    settings: BalanceOptions,
) -> dict[str, Any]:
    """Set the variances, p values and verdicts of a side, and return its summary."""
    smd = columns[f"{side}_smd"]
    apart = np.array([step.columns[f"{side}_smd"] for step in steps])
    with np.errstate(invalid="ignore"):
        between = apart.var(axis=0, ddof=1)
        added = np.where((apart == apart[0]).all(axis=0), 0.0, (1 + 1 / len(steps)) * between)
        variance = columns[f"{side}_smd_variance"] + added
        p = difference_p_value(smd, variance, settings.threshold)
        size = np.abs(smd)
        fine = size < settings.threshold if settings.alpha is None else p * p.size > settings.alpha
    columns |= {f"{side}_smd_variance": variance, f"{side}_p": p, f"{side}_balanced": fine}
    if not size.size or np.isnan(size).all():
        return {}
    worst = int(np.nanargmax(size))
    known = p[~np.isnan(p)]
    summary = {
        f"{side}_max": float(size[worst]),
        f"{side}_worst": str(columns["name"][worst]),
        f"{side}_above": int(np.count_nonzero(size > settings.threshold)),
    }
    if side == "after":
        summary["after_min_p"] = float(min(1.0, known.min() * size.size)) if known.size else None
    return summary


def pooled_subgroup_balance(steps: Sequence[SubgroupBalanceStep]) -> SubgroupBalanceStep:
    """The mean differences in each level; the fewest people are those of any data set."""
    fewest: dict[tuple[str, str], int] = {}
    for step in steps:
        for row in step.rows:
            key, own = (row.level, row.covariate_id), row.fewest
            if own is not None:
                fewest[key] = min(own, fewest.get(key, own))
    rows = matched_means([step.rows for step in steps], ["level", "covariate_id"])
    return SubgroupBalanceStep(
        rows=[
            dataclasses.replace(row, fewest=fewest.get((row.level, row.covariate_id)))
            for row in rows
        ]
    )
