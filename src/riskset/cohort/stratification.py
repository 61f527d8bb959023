"""Strata of people with similar propensity scores."""

from typing import Literal, get_args

import numpy as np

from riskset._errors import CohortError, InputError, counted
from riskset._messages import Note
from riskset._types import Index, Rows, is_count
from riskset.cohort.adjustment import Adjustment, Estimand, People, narrowed, start
from riskset.cohort.population import block_codes

__all__ = ["Base", "StratumWeight", "stratify"]

Base = Literal["all", "target", "comparator"]
StratumWeight = Literal["ate", "att", "atu", "equal"]

ESTIMAND: dict[str, Estimand] = {"all": "ate", "target": "att", "comparator": "atu"}


def stratify(
    people: People,
    k: int = 10,
    base: Base = "all",
    *,
    within: object = (),
    weighting: StratumWeight | None = None,
) -> Adjustment:
    r"""Strata between the quantiles 1/k, ..., (k - 1)/k of the scores.

    A row's stratum is one more than the number of quantiles below its score, so that strata are
    closed on the right; equal quantiles count once.

    Parameters
    ----------
    people : Population or Adjustment
        With scores.
    k : int
        Number of strata, of each block.
    base : {"all", "target", "comparator"}
        Whose quantiles, of type 7. It also chooses the estimand: "ate", "att", "atu".
    within : (n,) labels, or a sequence of label arrays
        Blocks with quantiles, and strata, of their own.
    weighting : {"ate", "att", "atu", "equal"}, optional
        Weights for balance, curves and the marginal model, with :math:`n_{sa}` the people of
        stratum s and arm a, :math:`n_s` of both: "ate" :math:`n_s / n_{sa}`, "att" 1 for the target
        and :math:`n_{s1} / n_{s0}` for comparators, "atu" the reverse, "equal" :math:`1 / n_{sa}`,
        with which all strata count alike (CohortMethod's balance). Default: by the base.

    Returns
    -------
    Adjustment
        Strata are `set_id` 1, 2, ... Those that lack an arm weigh 0. ``details``: ``breaks`` by
        block, ``n_target`` and ``n_comparator`` by stratum, ``uninformative_strata`` and
        ``uninformative_people``.

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
    if not is_count(k) or k < 2:
        raise CohortError(
            "BadSetting",
            f"`k` must be a whole number of at least 2, but it is {k!r}.",
            hint="5 or 10 are usual.",
        )
    if base not in get_args(Base):
        raise InputError.wrong_option("base", base, get_args(Base))
    if weighting is not None and weighting not in get_args(StratumWeight):
        raise InputError.wrong_option("weighting", weighting, get_args(StratumWeight))
    before = start(people)
    population, kept = before.population, before.kept
    block, labels = block_codes(within, population.n_rows)
    pools = {"all": kept, "target": kept & population.is_target}
    pool = pools.get(base, kept & ~population.is_target)
    set_id = np.full(population.n_rows, -1, dtype=np.int64)
    breaks, n_strata = [], 0
    for b in range(len(labels)):
        own = kept & (block == b)
        edges = _breaks(population.score[pool & (block == b)], int(k))
        set_id[own] = n_strata + 1 + np.searchsorted(edges, population.score[own], side="left")
        n_strata += edges.size + 1
        breaks.append(edges.tolist())
    kind = weighting or ESTIMAND[base]
    counts = _counts(set_id[kept], population.treatment[kept], n_strata)
    weight = np.zeros(population.n_rows)
    weight[kept] = _weights(counts, kind)[population.treatment[kept], set_id[kept] - 1]
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
        notes=_notes(int(np.count_nonzero(counts.any(axis=0))), int(k) * len(labels), left),
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


def _weights(counts: Index, kind: str) -> Rows:
    """Weight by arm and stratum (2, n_strata); 0 for strata that lack an arm."""
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
                f"many scores are equal, so there are {counted(found, 'stratum', 'strata')} "
                f"instead of {asked:,}.",
            )
        )
    if left == 1:
        notes.append(Note("single_stratum", (), "one stratum has both arms."))
    return tuple(notes)
