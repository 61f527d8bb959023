"""Coordinates of likelihoods that the kernels of coordinate descent have to survive."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from emulator.backend import HostMemory
from gpu.problems import cox, empty_strata, finegray
from riskset.data.design import Design
from riskset.model.loss import Loss
from riskset.solve.ccd_device import DeviceSweeps


@dataclass(frozen=True)
class Visits:
    """Columns to take a step in, one after the other, from a linear predictor."""

    design: Design
    loss: Loss
    eta: np.ndarray


def columns(n: int, rng: np.random.Generator) -> Design:
    """Zeros and ones, other values, and dense columns; one without entries, one of a single row."""
    share = np.array([0.0, 0.3, 1.0, 0.1, 0.6, 1.0])
    x = np.where(rng.random((n, 6)) < share, rng.normal(size=(n, 6)), 0.0)
    x[:, :3] = x[:, :3] != 0.0
    x[:, 0] = np.arange(n) == n - 1
    return Design.from_sparse(sp.csc_array(x))


def visits(loss: Loss) -> Visits:
    n = loss.outcome.n_rows
    rng = np.random.default_rng(n)
    return Visits(columns(n, rng), loss, rng.normal(size=n) - 300)


COORDINATES = {
    f"visit_{name}": visits(problem.loss)
    for name, problem in {
        "one_row": cox(1, n_lanes=1, seed=21),
        "all_tied": cox(90, n_times=1, ties="efron", seed=22),
        "tied": cox(131, seed=23),
        "strata_of_one": cox(40, n_strata=200, ties="efron", seed=24),
        "empty_strata": empty_strata(),
        "exactly_a_tile": cox(1024, n_times=60, seed=25),
        "tiles": cox(2900, n_times=10**6, seed=26),
        "tiles_efron": cox(3000, n_times=40, ties="efron", n_strata=2, seed=27),
        "a_group_over_tiles": cox(3100, n_times=2, ties="efron", codes=(0, 0, 0, 0, 1), seed=28),
        "tiles_of_strata": cox(2500, n_times=300, n_strata=9, seed=29),
        "finegray": finegray(140, seed=30),
        "finegray_tiles": finegray(3300, n_times=200, seed=31),
        "finegray_curves": finegray(2100, n_times=10**6, groups=3, n_strata=3, seed=32),
    }.items()
}


def visit(backend: HostMemory, problem: Visits) -> None:
    """Launch what a sweep over all columns takes."""
    coordinates = DeviceSweeps(problem.design, problem.loss, backend)
    p = problem.design.n_features
    state = (np.linspace(-0.5, 0.5, p), np.full(p, 0.3), np.zeros(p))
    penalties = (np.linspace(0, 2, p), np.linspace(0.5, 0, p))
    eta, shift = problem.eta[:, None], np.array([[problem.eta.max()]])
    coordinates.sweep(np.arange(p), backend.upload(eta), backend.upload(shift), penalties, state)
