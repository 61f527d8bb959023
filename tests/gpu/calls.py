"""Every launch that the hard problems need, recorded while the references compute them."""

import functools

import numpy as np

from emulator.backend import Recorded, Recorder
from gpu.coordinates import COORDINATES, visit
from gpu.problems import DESIGNS, LIKELIHOODS, QUADRATICS, Quadratic
from riskset.data.device import DeviceDesign
from riskset.kernels.cuda.launch import Launcher
from riskset.model.device import DeviceLoss

SWEEPS = 10_000


@functools.cache
def records(name: str) -> list[Recorded]:
    """The launches of one problem."""
    recorder = Recorder()
    if name in LIKELIHOODS:
        problem = LIKELIHOODS[name]
        loss = DeviceLoss(problem.loss, problem.parts, recorder)
        now = loss.evaluate(recorder.upload(problem.eta))
        loss.expected(now.residual)
        loss.repeated(problem.loss.offset)
    elif name in DESIGNS:
        multiply(recorder, name)
    elif name in QUADRATICS:
        minimise(recorder, QUADRATICS[name])
    elif name in COORDINATES:
        visit(recorder, COORDINATES[name])
    elif name == "steps":
        for q, n_lanes, seed in ((1, 1, 71), (40, 5, 72), (300, 2, 73)):
            take_steps(recorder, q, n_lanes, seed)
    else:
        for q, n_words, seed in ((1, 1, 81), (3, 2, 82), (16, 5, 83), (37, 40, 84)):
            count(recorder, q, n_words, seed)
        fill_bits(recorder)
    return recorder.records


NAMES = [*LIKELIHOODS, *DESIGNS, *QUADRATICS, *COORDINATES, "steps", "gram"]


def multiply(recorder: Recorder, name: str) -> None:
    problem = DESIGNS[name]
    design = DeviceDesign(problem.design, recorder)
    r, n_lanes = recorder.upload(problem.r), problem.r.shape[1]
    design.cross(r)
    for power in (1, 2):
        design.cross(r, problem.columns, power=power)
    along = design.product(recorder.upload(problem.v), design.choose(problem.columns))
    share = recorder.upload(np.linspace(0, 1, n_lanes))
    moved = recorder.empty(r.shape, r.dtype)
    Launcher(recorder)(
        "move_rows",
        eta=r,
        along=along,
        share=share,
        n_rows=r.shape[0],
        n_lanes=n_lanes,
        moved=moved,
    )


def minimise(recorder: Recorder, problem: Quadratic) -> None:
    n_lanes, q = problem.gradient.shape
    arrays = {key: recorder.upload(value) for key, value in vars(problem).items()}
    size, step, image = (recorder.empty((n_lanes, q), np.dtype(float)) for _ in range(3))
    Launcher(recorder)(
        "minimise_quadratics",
        **arrays,
        tolerance=recorder.upload(np.full(n_lanes, 1e-12)),
        n_columns=q,
        max_pairs=problem.pairs.shape[2],
        max_sweeps=SWEEPS,
        n_lanes=n_lanes,
        size=size,
        step=step,
        image=image,
    )


def take_steps(recorder: Recorder, q: int, n_lanes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    launch, sizes = Launcher(recorder), {"n_columns": q, "n_lanes": n_lanes}

    def numbers(*shape: int) -> np.ndarray:
        return rng.normal(size=shape)

    gradient = numbers(n_lanes, q)
    gradient[-1, -1] = np.nan if seed == 72 else 1.0
    beta = numbers(n_lanes, q) * rng.integers(0, 2, (n_lanes, q))
    penalties = {"l1": np.abs(numbers(q)), "l2": np.abs(numbers(q))}
    flags = rng.integers(0, 2, (n_lanes, q)).astype(np.uint8)
    flags[-1, -1] = 1
    up = recorder.upload
    column = up(np.sort(rng.permutation(1000)[:q]).astype(np.int32))
    l1, l2 = up(penalties["l1"]), up(penalties["l2"])
    table, by_lane = (recorder.empty(s, np.dtype(float)) for s in ((n_lanes, q), (n_lanes,)))
    launch(
        "violations", gradient=up(gradient), beta=up(beta), l1=l1, l2=l2,
        spread=up(np.abs(numbers(n_lanes, q)) + 0.1), counts=up(flags),
        unit=up(np.linspace(1, 2, n_lanes)), violation=table, largest=by_lane, **sizes,
    )  # fmt: skip
    step, share = up(numbers(n_lanes, q)), up(np.linspace(1, 0.25, n_lanes))
    launch(
        "move_columns", column=column, beta=up(beta), step=step, share=share, l1=l1, l2=l2,
        moved=table, penalties=by_lane, **sizes,
    )  # fmt: skip
    gradient = np.nan_to_num(gradient)
    launch(
        "predicted_gains", column=column, gradient=up(gradient), beta=up(beta), step=step, l1=l1,
        l2=l2, gains=by_lane, **sizes,
    )  # fmt: skip
    is_live = up((rng.random(n_lanes) < 0.8).astype(np.uint8))
    n_pairs, pairs = up(np.zeros(n_lanes, dtype=np.int32)), up(np.zeros((n_lanes, q, 4)))
    for _ in range(6):
        moved = numbers(n_lanes, q)
        image = moved * rng.choice([0.5, -1.0], (n_lanes, 1), p=[0.8, 0.2])
        launch(
            "learn", column=column, step=up(moved), image=up(image), before=up(gradient),
            gradient=up(gradient - 0.7 * moved), mine=up(flags), share=share, is_live=is_live,
            max_pairs=4, n_pairs=n_pairs, pairs=pairs, **sizes,
        )  # fmt: skip
    launch(
        "widen", step=step, share=share, is_live=is_live, least=up(np.full((n_lanes, q), 0.3)),
        box=up(np.abs(numbers(n_lanes, q))), **sizes,
    )  # fmt: skip
    launch(
        "deviations", first=up(numbers(n_lanes, q)), second=up(np.abs(numbers(n_lanes, q))),
        total=up(np.linspace(1, 2, n_lanes)), deviation=table, **sizes,
    )  # fmt: skip
    wide = recorder.empty((n_lanes, 2 * q), np.dtype(float))
    to = up(rng.permutation(2 * q)[:q].astype(np.int32))
    launch("place_columns", x=step, to=to, width=2 * q, out=wide, **sizes)


def count(recorder: Recorder, q: int, n_words: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    launch, up = Launcher(recorder), recorder.upload
    bits = up(rng.integers(0, 2**64, (q, n_words), dtype=np.uint64))
    sizes = {"n_columns": q, "n_words": n_words}
    float_ = np.dtype(float)
    launch("binary_gram", bits=bits, out=recorder.empty((q, q), float_), **sizes)
    borders = np.unique(np.append(rng.integers(0, n_words, 3), [0, n_words])).astype(np.int32)
    n_bins = borders.size - 1
    out = recorder.empty((n_bins, q), float_)
    launch("bin_counts", bits=bits, bin_word=up(borders), n_bins=n_bins, out=out, **sizes)
    z, n_dense = rng.normal(size=(64 * n_words, 3)), 3
    out = recorder.empty((q, n_dense), float_)
    launch("mixed_gram", bits=bits, z=up(z), n_dense=n_dense, out=out, **sizes)
    a, b = rng.normal(size=(17 * n_words, q)), rng.normal(size=(17 * n_words, 5))
    out = recorder.empty((q, 5), float_)
    launch("dense_gram", a=up(a), b=up(b), n_rows=a.shape[0], n_left=q, n_right=5, out=out)


def fill_bits(recorder: Recorder) -> None:
    for problem in DESIGNS.values():
        part = problem.design.parts[0]
        rng = np.random.default_rng(part.row.size)
        n_rows = part.block_ptr.shape[0] << part.shift
        drawn = rng.integers(0, problem.design.n_rows, 70)
        copies = np.bincount(drawn, minlength=n_rows)
        slots = rng.permutation(part.columns.size).astype(np.int32)
        Launcher(recorder)(
            "fill_bits",
            block_ptr=recorder.upload(part.block_ptr),
            row=recorder.upload(part.row),
            slots=recorder.upload(slots),
            is_drawn=recorder.upload((copies > 0).astype(np.uint8)),
            start=recorder.upload(np.append(0, np.cumsum(copies)).astype(np.int32)),
            place=recorder.upload(np.argsort(drawn, kind="stable").astype(np.int32)),
            n_slots=part.columns.size,
            n_columns=slots.size,
            shift=part.shift,
            n_blocks=part.block_ptr.shape[0],
            n_words=2,
            bits=recorder.upload(np.full((slots.size, 2), 7, dtype=np.uint64)),
        )
