"""The runs of completed data sets as one: every step pooled, under a key of its own.

Score, adjustment and effect are computed within each data set and the effects are pooled (the
"within" approach).

References
----------
Leyrat et al. (2019), Propensity score analysis with partially observed covariates: how should
multiple imputation be used?, Statistical Methods in Medical Research 28, 3-19,
doi:10.1177/0962280217713032.
"""

import dataclasses
import functools
from collections.abc import Sequence

from riskset._messages import Note, Value
from riskset._settings import as_dict
from riskset.cohort.population import Population
from riskset.study.cache import StepCache
from riskset.study.steps.adjustment_step import AdjustmentStep, BalanceStep
from riskset.study.steps.curve_test_step import CurveTestStep, pooled_curve_tests
from riskset.study.steps.description_step import DescriptionStep
from riskset.study.steps.estimate_run import AdjustedPeople, EstimateRun
from riskset.study.steps.estimate_step import EstimateStep
from riskset.study.steps.modelled_risk_step import ModelledRiskStep, pooled_modelled_risks
from riskset.study.steps.pooled_outcome import pooled_description, pooled_estimates
from riskset.study.steps.pooled_people import (
    pooled_adjustment,
    pooled_balance,
    pooled_score,
    pooled_subgroup_balance,
)
from riskset.study.steps.propensity_step import ScoreStep
from riskset.study.steps.restricted_mean_step import RestrictedMeanStep, pooled_restricted_means
from riskset.study.steps.subgroup_balance import SubgroupBalanceStep
from riskset.study.steps.treatment_weight_step import TreatmentWeightStep, mean_weights

__all__ = ["pool_estimates", "pool_people"]

STEP = "imputation"


def pool_people(
    run: AdjustedPeople,
    parts: Sequence[AdjustedPeople],
    populations: Sequence[Population],
    cache: StepCache,
) -> bool:
    """Score, adjustment and balance; whether every data set could be analysed.

    If one could not, its results stand for all.
    """
    seen: dict[tuple[str, str, tuple[str, ...]], tuple[str, Note]] = {}
    for part in parts:
        for step, note in part.notes:
            seen.setdefault((step, note.code, tuple(note.columns)), (step, note))
    run.notes += seen.values()
    failed = next((part for part in parts if part.status != "ok"), None)
    if failed is not None:
        own = {field.name for field in dataclasses.fields(run)} - {"notes", "data_set"}
        for name in own:
            setattr(run, name, getattr(failed, name))
        text = "completed data set {k:,} could not be analysed, so nothing is pooled."
        values = {"k": Value("things", 1 + (failed.data_set or 0))}
        run.notes.append((STEP, Note("data_set_failed", (), text, values)))
        return False
    text = (
        "missing values were imputed: effects are pooled over {n:,} completed data sets, and "
        "counts that differ between these are means, rounded to whole numbers."
    )
    values = {"n": Value("setting", len(parts))}
    run.notes.append((STEP, Note("pooled", (), text, values)))
    _pool_score(run, parts, cache)
    keys = [part.adjustment for part in parts]
    weights = [part.treatment_weights for part in parts if part.treatment_weights is not None]
    adjustment = cache.get_or_compute(
        AdjustmentStep,
        run.what,
        [keys, [part.ps for part in parts], weights],
        lambda: pooled_adjustment(
            [cache.load(AdjustmentStep, key) for key in keys],
            populations,
            mean_weights([cache.load(TreatmentWeightStep, k) for k in weights]).largest
            if weights
            else None,
        ),
    )
    run.adjustment, run.pairwise_max = adjustment.key, adjustment.pairwise_max
    balances = [part.balance.key for part in parts if part.balance is not None]
    if len(balances) == len(parts):
        settings = run.analysis.balance
        balance = cache.get_or_compute(
            BalanceStep,
            run.what,
            [balances, as_dict(settings)],
            lambda: pooled_balance([cache.load(BalanceStep, key) for key in balances], settings),
        )
        run.balance = dataclasses.replace(balance, columns={})
    return True


def _pool_score(run: AdjustedPeople, parts: Sequence[AdjustedPeople], cache: StepCache) -> None:
    keys = [part.ps for part in parts if part.ps is not None]
    if len(keys) < len(parts):
        return
    score = cache.get_or_compute(
        ScoreStep,
        run.what,
        keys,
        lambda: pooled_score([cache.load(ScoreStep, key) for key in keys]),
    )
    run.ps, run.equipoise = score.key, score.row.equipoise


def pool_estimates(
    run: EstimateRun,
    parts: Sequence[EstimateRun],
    populations: Sequence[Population],
    cache: StepCache,
) -> None:
    """The same, the description of what happened, and the estimates."""
    if not pool_people(run, parts, populations, cache):
        return
    described = [part.description for part in parts if part.description is not None]
    level = run.analysis.model.level
    if len(described) == len(parts):
        description = cache.get_or_compute(
            DescriptionStep,
            run.what,
            described,
            lambda: pooled_description([cache.load(DescriptionStep, k) for k in described], level),
        )
        run.description = description.key
    _pool_curve_tests(run, parts, cache)
    means = [part.restricted_means for part in parts if part.restricted_means is not None]
    if len(means) == len(parts):
        step = cache.get_or_compute(
            RestrictedMeanStep,
            run.what,
            [means, level],
            lambda: pooled_restricted_means([cache.load(RestrictedMeanStep, k) for k in means]),
        )
        run.restricted_means = step.key
    modelled = [part.modelled_risks for part in parts if part.modelled_risks is not None]
    if len(modelled) == len(parts):
        risks = cache.get_or_compute(
            ModelledRiskStep,
            run.what,
            [modelled, level],
            lambda: pooled_modelled_risks([cache.load(ModelledRiskStep, k) for k in modelled]),
        )
        run.modelled_risks = risks.key
    _pool_subgroup_balance(run, parts, cache)
    estimated = [part.estimate for part in parts if part.estimate is not None]
    tables = [part.rows for part in parts]
    estimate = cache.get_or_compute(
        EstimateStep,
        run.what,
        [estimated, [[dict(row) for row in rows] for rows in tables]],
        lambda: pooled_estimates(tables, [cache.load(EstimateStep, key) for key in estimated]),
    )
    run.estimate = estimate.key
    run.take(estimate)
    run.rows = [dataclasses.replace(row, number=k) for k, row in enumerate(estimate.rows, start=1)]


def _pool_curve_tests(run: EstimateRun, parts: Sequence[EstimateRun], cache: StepCache) -> None:
    keys = [part.curve_tests for part in parts if part.curve_tests is not None]
    if len(keys) == len(parts):
        step = cache.get_or_compute(
            CurveTestStep,
            run.what,
            keys,
            lambda: pooled_curve_tests([cache.load(CurveTestStep, key) for key in keys]),
        )
        run.curve_tests = step.key


def _pool_subgroup_balance(
    run: EstimateRun, parts: Sequence[EstimateRun], cache: StepCache
) -> None:
    for name in parts[0].subgroup_balance:
        keys = [part.subgroup_balance[name] for part in parts]
        step = cache.get_or_compute(
            SubgroupBalanceStep,
            run.what,
            keys,
            functools.partial(_loaded_subgroup_balance, keys, cache),
        )
        run.subgroup_balance[name] = step.key


def _loaded_subgroup_balance(keys: Sequence[str], cache: StepCache) -> SubgroupBalanceStep:
    return pooled_subgroup_balance([cache.load(SubgroupBalanceStep, key) for key in keys])
