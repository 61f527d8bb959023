"""Trimming of people outside the region of common support."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from riskset._keywords import takes
from riskset._settings import bad_setting
from riskset._types import Rows
from riskset.cohort.adjustments.adjustment import Adjustment, People, narrowed, start
from riskset.cohort.adjustments.adjustment_settings import Trim
from riskset.cohort.propensity.overlap import in_range, preference_score

__all__ = ["crump_limit", "trim"]

Keep = NDArray[np.bool_]


@takes(Trim)
def trim(people: People, *, settings: Trim, weights: Adjustment | None = None) -> Adjustment:
    r"""Trim people outside the region of common support by their propensity score e.

    Several rules apply in the order of the settings, each to the people left by the previous one.
    The limits of `overlap` and of the quantiles are inclusive. `overlap` is the range from the
    larger minimum to the smaller maximum of the scores of the arms, and `crump` keeps :math:`\alpha
    \le e \le 1 - \alpha` with the :math:`\alpha` of `crump_limit`.

    Parameters
    ----------
    people : Population or Adjustment
        With scores.
    settings : Trim
    weights : Adjustment, optional
        Weights for `max_weight`, from `weight`.

    Returns
    -------
    Adjustment
        Kept rows have weight 1. ``details`` has the cut-offs. Scores are not changed. For
        weighting, fit them again to the remaining people: ``propensity_score(trimmed, X).people``.

    Raises
    ------
    CohortError
        "BadSetting".

    Notes
    -----
    Quantiles are of type 7. If an arm is empty, `status` says so, and later rules do not apply.

    References
    ----------
    Stürmer et al. (2010), American Journal of Epidemiology 172, 843-854, doi:10.1093/aje/kwq198.
    Crump et al. (2009), Biometrika 96, 187-199, doi:10.1093/biomet/asn055.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 0, 0], [0.97, 0.6, 0.5, 0.2])
    >>> rs.cohort.trim(people, symmetric=0.05)
    Adjustment(trimming: 1 target, 2 comparators)
    """
    before = start(people)
    if settings.max_weight is not None:
        _check_weights(weights, before.weight.size)
    details = dict(before.details)
    result, rules = before, settings.values(Trim)
    for name, value in rules.items():
        if value is None or value is False or result.status != "ok":
            continue
        if name == "equipoise":
            low, high = value
            keep = in_range(preference_score(before.population), low, high)
            steps = [(f"preference score {low:g} to {high:g}", keep)]
        elif name == "max_weight":
            assert weights is not None
            steps = [(f"weight at most {value:g}", weights.weight <= value)]
        else:
            steps = list(_by_score(name, float(value), result, details))
        result = narrowed(result, "trimming", steps)
    return narrowed(result, "trimming", [], settings=rules, details=details)


def _by_score(
    name: str, f: float, before: Adjustment, details: dict[str, object]
) -> Iterator[tuple[str, Keep]]:
    """Steps of the rules that look at the score alone."""
    score, target, kept = before.population.score, before.population.is_target, before.kept
    if name == "symmetric":
        yield f"score above {f:g} and below {1 - f:g}", (score > f) & (score < 1 - f)
        return
    if name == "crump":
        alpha = details["crump"] = crump_limit(score[kept])
        yield f"score {alpha:.4g} to {1 - alpha:.4g}", (score >= alpha) & (score <= 1 - alpha)
        return
    ones, zeros = score[kept & target], score[kept & ~target]
    low, high = max(ones.min(), zeros.min()), min(ones.max(), zeros.max())
    common = (score >= low) & (score <= high)
    details["overlap"] = (float(low), float(high))
    yield "overlap of the scores", common
    left = kept & common
    if name == "overlap" or not (left & target).any() or not (left & ~target).any():
        return
    at = f if name == "asymmetric" else 1 - f
    cut1 = float(np.quantile(score[left & target], at))
    cut0 = float(np.quantile(score[left & ~target], 1 - at))
    details[name] = {"target": cut1, "comparator": cut0}
    if name == "asymmetric":
        yield f"asymmetric trimming of {f:g}", np.where(target, score >= cut1, score <= cut0)
    else:
        yield f"reverse trimming of {f:g}", np.where(target, score <= cut1, score >= cut0)


def crump_limit(score: Rows) -> float:
    r"""Compute the :math:`\alpha` with the smallest variance of the estimate.

    .. math:: \frac{1}{\alpha (1 - \alpha)} = 2 \, \mathrm{mean}\left[\frac{1}{e (1 - e)} \,\Big|\,
        \frac{1}{e (1 - e)} \le \frac{1}{\alpha (1 - \alpha)}\right]

    0 if no one must be trimmed. By Crump et al. (2009), Biometrika 96, 187-199.
    """
    with np.errstate(divide="ignore"):
        spread = np.sort(1.0 / (score * (1.0 - score)))
    spread = spread[np.isfinite(spread)]  # a score of 0 or 1 goes in any case
    if not spread.size:
        return 0.0
    means = np.cumsum(spread) / np.arange(1, spread.size + 1)
    if spread.size == score.size and spread[-1] <= 2 * means[-1]:
        return 0.0
    last = int(np.flatnonzero(spread <= 2 * means)[-1])
    # What solves the equation lies between this person and the next: nobody is at the limit.
    return float(0.5 - np.sqrt(0.25 - 0.5 / means[last]))


def _check_weights(weights: Adjustment | None, n_rows: int) -> None:
    """Refuse `max_weight` without the weights of the same population."""
    if weights is None:
        raise bad_setting(
            "weights",
            "`max_weight` needs `weights`, which were not given.",
            hint="make them with riskset.cohort.weight(people, ...).",
        )
    if weights.weight.size != n_rows:
        raise bad_setting(
            "weights",
            f"`weights` must be of the {n_rows:,} rows of the population, but it has "
            f"{weights.weight.size:,}.",
            hint="make both from the same Population.",
        )
