"""The main job on real data: a treatment effect adjusted by covariates that an L1 path chooses.

The cohort is the bundled one of right heart catheterisation. Nothing here is special to it but the
name of the treatment; each step is a few lines of the public interface.
"""

from dataclasses import dataclass

import numpy as np

from riskset._runtime import Runtime
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.outcome import Surv
from riskset.data.spread import column_spread
from riskset.estimators.cox import Cox
from riskset.estimators.path import PathResult, path
from riskset.model.penalty import L1
from riskset.plot import Figure, coefficient_path

__all__ = ["TREATMENT", "Choice", "choose", "draw", "fit_on", "fit_path"]

TREATMENT = "swang1"
N_PENALTIES = 50
MIN_RATIO = 1e-3


@dataclass(frozen=True, eq=False)
class Choice:
    """The set of covariates chosen from a path, and its maximum-likelihood fit.

    Attributes
    ----------
    index : int
        First solution of the path with this set.
    model : Cox
        Fitted without a penalty to the covariates of that solution.
    n_sets : int
        Number of different sets on the path.
    """

    index: int
    model: Cox
    n_sets: int


def fit_path(cohort: Dataset) -> PathResult:
    """An L1 path on all covariates but the treatment, which is not penalised.

    Each covariate counts by its spread: numbers are penalised per standard deviation, and columns
    of zeros and ones as they are, so that no unit of measurement decides what is kept.
    """
    spread = column_spread(cohort.design, Runtime.select())
    template = Cox(L1(1.0, unpenalized=[TREATMENT], factor=spread))
    return path(template, cohort, n_penalties=N_PENALTIES, min_ratio=MIN_RATIO)


def fit_on(cohort: Dataset, names: tuple[str, ...]) -> Cox:
    """A fit without penalty on some of the covariates."""
    outcome = cohort.outcome()
    columns = np.array([cohort.design.index_of(name) for name in names], dtype=np.int64)
    design = Design.from_dense(cohort.design.to_dense(columns), names)
    return Cox().fit(design, Surv(outcome.time, outcome.event))


def choose(cohort: Dataset, result: PathResult) -> Choice:
    r"""The set of covariates on a path whose refit has the smallest Akaike criterion.

    .. math:: -2 \ell(\hat\beta_S) + 2 |S|

    with the maximum likelihood estimate on each set S of covariates that are not 0 somewhere on
    the path. In large samples this is what leave-one-out cross-validation of the refits would
    choose. To adjust for confounding it is preferred to stricter criteria, which leave out more.

    Intervals of the refit take the choice as given: they do not know that S was chosen from the
    same data.

    References
    ----------
    Stone (1977), Journal of the Royal Statistical Society B 39, 44-47,
    doi:10.1111/j.2517-6161.1977.tb01603.x.
    """
    first: dict[tuple[str, ...], int] = {}
    for k, coef in enumerate(result.coefs):
        first.setdefault(tuple(result.names[j] for j in np.flatnonzero(coef)), k)
    refits = {k: fit_on(cohort, names) for names, k in first.items()}
    best = min(refits, key=lambda k: 2.0 * (len(refits[k].covariates_) - refits[k].log_likelihood_))
    return Choice(best, refits[best], len(refits))


def draw(cohort: Dataset, result: PathResult, choice: Choice) -> Figure:
    """The path, with the treatment in bold and the chosen solution marked."""
    return coefficient_path(
        result.strengths,
        result.coefs * column_spread(cohort.design, Runtime.select()),
        result.names,
        emphasised=[TREATMENT],
        chosen=choice.index,
        title="Death after admission to intensive care: the L1 path",
        ylabel="log hazard ratio (numbers: per standard deviation)",
    )
