"""Strata of people with similar propensity scores."""

import numpy as np

from riskset._keywords import takes
from riskset._messages import Note, Value
from riskset._types import Index, Rows
from riskset.cohort.adjustments.adjustment import Adjustment, Estimand, People, narrowed, start
from riskset.cohort.adjustments.adjustment_settings import Stratify
from riskset.cohort.population import block_codes

__all__ = ["arm_sums", "arm_weights", "stratify"]

ESTIMAND: dict[str, Estimand] = {"all": "ate", "target": "att", "comparator": "atu"}


@takes(Stratify, positional=2)
def stratify(people: People, settings: Stratify, *, within: object = ()) -> Adjustment:
    r"""Stratify people at the quantiles 1/k, ..., (k - 1)/k of the scores.

    The stratum of a row is 1 plus the number of quantiles below its score, so strata are closed on
    the right. Equal quantiles count once. Quantiles are of type 7. `base` also sets the estimand:
    "ate", "att" or "atu".

    Let :math:`n_{sa}` be the number of people in stratum s and arm a, and :math:`n_s` that of both
    arms. The weights are: "ate" :math:`n_s / n_{sa}`, "att" 1 for the target and :math:`n_{s1} /
    n_{s0}` for comparators, "atu" the reverse, "equal" :math:`1 / n_{sa}`, so that all strata have
    equal weight (CohortMethod's balance).

    Parameters
    ----------
    people : Population or Adjustment
        With scores.
    settings : Stratify
    within : (n,) labels, or a sequence of label arrays
        Blocks with separate quantiles and strata.

    Returns
    -------
    Adjustment
        Strata are `set_id` 1, 2, ... Strata with an empty arm have weight 0. ``details``:
        ``breaks`` by block, ``n_target`` and ``n_comparator`` by stratum, ``uninformative_strata``
        and ``uninformative_people``.

    Raises
    ------
    CohortError
        "BadSetting" or "BadBlock".

    References
    ----------
    Rosenbaum and Rubin (1984), Journal of the American Statistical Association 79, 516-524,
    doi:10.1080/01621459.1984.10478078.

    Examples
    --------
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 0, 1, 0], [0.2, 0.3, 0.6, 0.7])
    >>> rs.cohort.stratify(people, k=2).set_id
    array([1, 1, 2, 2])
    """
    k, base = settings.k, settings.base
    before = start(people)
    population, kept = before.population, before.kept
    block, labels = block_codes(within, population.n_rows)
    pools = {"all": kept, "target": kept & population.is_target}
    pool = pools.get(base, kept & ~population.is_target)
    set_id = np.full(population.n_rows, -1, dtype=np.int64)
    breaks, n_strata = [], 0
    for b in range(len(labels)):
        own = kept & (block == b)
        edges = _breaks(population.score[pool & (block == b)], k)
        set_id[own] = n_strata + 1 + np.searchsorted(edges, population.score[own], side="left")
        n_strata += edges.size + 1
        breaks.append(edges.tolist())
    kind = settings.weighting or ESTIMAND[base]
    arm, sampled = population.treatment[kept], population.sampling_weight[kept]
    counts = _counts(set_id[kept], arm, n_strata)
    sums = arm_sums(arm, set_id[kept] - 1, sampled, n_strata)
    weight = np.zeros(population.n_rows)
    weight[kept] = sampled * arm_weights(sums, kind)[arm, set_id[kept] - 1]
    set_id[weight == 0] = -1
    lacking = (counts == 0).any(axis=0) & (counts.sum(axis=0) > 0)
    left = int(np.count_nonzero((counts > 0).all(axis=0)))
    return narrowed(
        before,
        "stratification",
        [("strata with both arms", weight > 0)],
        weight=weight,
        set_id=set_id,
        estimand=ESTIMAND[base] if kind == "equal" else kind,
        notes=_notes(int(np.count_nonzero(counts.any(axis=0))), k * len(labels), left),
        settings={"k": k, "base": base, "weighting": kind},
        details={
            **before.details,
            "breaks": breaks,
            "n_target": counts[1].tolist(),
            "n_comparator": counts[0].tolist(),
            "uninformative_strata": int(np.count_nonzero(lacking)),
            "uninformative_people": int(counts[:, lacking].sum()),
        },
    )


def _breaks(score: Rows, k: int) -> Rows:
    if not score.size:
        return np.zeros(0)
    return np.unique(np.quantile(score, np.arange(1, k) / k))


def _counts(set_id: Index, treatment: Index, n_strata: int) -> Index:
    """People by arm and stratum (2, n_strata)."""
    flat = np.bincount(treatment * n_strata + set_id - 1, minlength=2 * n_strata)
    return flat.reshape(2, n_strata).astype(np.int64)


def arm_sums(arm: Index, stratum: Index, weight: Rows, n_strata: int) -> Rows:
    """Sums of weights by arm and stratum 0, 1, ... (2, n_strata)."""
    flat = np.bincount(arm * n_strata + stratum, weight, minlength=2 * n_strata)
    return flat.reshape(2, n_strata).astype(np.float64)


def arm_weights(counts: Index | Rows, kind: str) -> Rows:
    """Weight by arm and stratum (2, n_strata); 0 for strata that lack an arm.

    `counts` are numbers, or sums of weights, of comparators, then of targets.
    """
    wanted = {"ate": counts.sum(axis=0), "att": counts[1], "atu": counts[0], "equal": 1}[kind]
    out = np.zeros(counts.shape)
    np.divide(wanted, counts, out=out, where=(counts > 0).all(axis=0))
    return out


def _notes(found: int, asked: int, left: int) -> tuple[Note, ...]:
    notes = []
    if found < asked:
        notes.append(
            Note(
                "strata_merged",
                (),
                "many scores are equal, so there {found:?is|are} {found:stratum|strata} instead of "
                "{asked:,}.",
                {"found": Value("things", found), "asked": Value("setting", asked)},
            )
        )
    if left == 1:
        notes.append(Note("single_stratum", (), "one stratum has both arms."))
    return tuple(notes)
