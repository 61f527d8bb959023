"""Check the arguments of a kernel, find the shape of its launch, and launch it."""

from collections.abc import Callable, Mapping

from riskset.kernels.cuda.backend import Array, Backend, GridShape
from riskset.kernels.cuda.signatures import Kernel, signatures

__all__ = ["SHAPES", "TILE_ROWS", "Launcher", "shape_of"]

THREADS = 256
"""Of every block, as `prelude.cuh` has it."""
STRIDE = 64
TILE = 16
TILE_ROWS = 4 * THREADS
"""Rows of a tile of `fused.cuh`."""

Sizes = Mapping[str, int]
LaunchForm = Callable[[Sizes], tuple[GridShape, GridShape]]


def _ceil(n: int, k: int) -> int:
    return -(-n // k)


def _over(size: str, each: int = 1) -> LaunchForm:
    """One thread for each lane and for each `each` of something; x is the lane."""

    def form(n: Sizes) -> tuple[GridShape, GridShape]:
        lanes = n["n_lanes"]
        x = min(32, 1 << (lanes - 1).bit_length())
        y = THREADS // x
        return (_ceil(_ceil(n[size], each), y), _ceil(lanes, x), 1), (x, y, 1)

    return form


def _by_lane(n: Sizes) -> tuple[GridShape, GridShape]:
    """One block for each lane."""
    return (n["n_lanes"], 1, 1), (THREADS, 1, 1)


def _carry(n: Sizes) -> tuple[GridShape, GridShape]:
    return (1, _ceil(n["n_lanes"], 8), 1), (8, 32, 1)


def _cross(n: Sizes) -> tuple[GridShape, GridShape]:
    panels = _ceil(n["n_blocks"], n["panel_blocks"])
    return (_ceil(n["n_columns"], 8), _ceil(n["n_lanes"], 8), panels), (8, 4, 8)


def _by_block_of_rows(n: Sizes) -> tuple[GridShape, GridShape]:
    return (_ceil(n["n_rows"], 1 << n["shift"]), 1, 1), (THREADS, 1, 1)


def _by_column(n: Sizes) -> tuple[GridShape, GridShape]:
    return (n["n_columns"], 1, 1), (THREADS, 1, 1)


def _tiles(x: str, y: str) -> LaunchForm:
    return lambda n: ((_ceil(n[x], TILE), _ceil(n[y], TILE), 1), (THREADS, 1, 1))


def _flat(a: str, b: str) -> LaunchForm:
    return lambda n: ((_ceil(n[a] * n[b], THREADS), 1, 1), (THREADS, 1, 1))


def _blocks(size: str, each: int = 1) -> LaunchForm:
    """One block for each `each` of something."""
    return lambda n: ((_ceil(n[size], each), 1, 1), (THREADS, 1, 1))


def _one_block(n: Sizes) -> tuple[GridShape, GridShape]:
    return (1, 1, 1), (THREADS, 1, 1)


SHAPES: dict[str, LaunchForm] = {
    "risks": _over("n_places"),
    "sum_pieces": _over("n_pieces"),
    "sum_chunks": _over("n_chunks"),
    "carry": _carry,
    "add_nested": _over("n_chunks"),
    "add_tail": _over("n_chunks"),
    "sum_events": _over("n_groups"),
    "hazards": _over("n_chunks"),
    "seen_nested": _over("n_chunks"),
    "sum_tail_hazards": _over("n_chunks"),
    "seen_after": _over("n_chunks"),
    "residuals": _over("n_rows"),
    "tail_residuals": _over("n_places"),
    "sum_tied": _over("n_groups"),
    "add_level": _over("n_chunks"),
    "sum_level": _over("n_chunks"),
    "seen_level": _over("n_chunks"),
    "level_residuals": _over("n_places"),
    "add_up": _over("n_rows", STRIDE),
    "extremes": _over("n_rows", STRIDE),
    "score": _over("n_events", STRIDE),
    "move_rows": _over("n_rows"),
    "fill": _over("n_rows"),
    "repeat_rows": _over("n_rows"),
    "expected_rows": _over("n_rows"),
    "cross_binary": _cross,
    "cross_valued": _cross,
    "cross_dense": _cross,
    "combine_panels": _over("n_columns"),
    "list_rows": _by_block_of_rows,
    "product_binary": _over("n_rows"),
    "product_valued": _over("n_rows"),
    "product_dense": _over("n_rows"),
    "pick_columns": _over("n_columns"),
    "minimise_quadratics": _by_lane,
    "violations": _by_lane,
    "move_columns": _by_lane,
    "predicted_gains": _by_lane,
    "learn": _by_lane,
    "widen": _by_lane,
    "deviations": _by_lane,
    "place_columns": _by_lane,
    "fill_bits": _by_column,
    "binary_gram": _tiles("n_columns", "n_columns"),
    "bin_counts": _flat("n_bins", "n_columns"),
    "dense_gram": _tiles("n_right", "n_left"),
    "mixed_gram": _flat("n_columns", "n_dense"),
    "spread_column": _blocks("n_entries", THREADS),
    "move_column": _blocks("n_entries", THREADS),
    "take_step": _one_block,
    "cox_fused": _blocks("n_tiles"),
    "efron_fused": _blocks("n_tiles"),
    "fg_fused": _blocks("n_tiles"),
}
"""How the threads of each kernel are laid out: grid and block from the numbers it is given."""


def shape_of(name: str, sizes: Sizes) -> tuple[GridShape, GridShape]:
    """Grid and block of a launch."""
    return SHAPES[name](sizes)


class Launcher:
    """Kernels of a backend by name: ``launch("add_up", x=x, n_rows=5, n_lanes=8, sums=out)``."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    def __call__(self, name: str, /, **arguments: Array | int | float) -> None:
        """Launch a kernel, with an argument for each of its parameters."""
        kernel = signatures()[name]
        _check(kernel, arguments)
        sizes = {key: value for key, value in arguments.items() if isinstance(value, int)}
        grid, block = shape_of(name, sizes)
        if min(grid) > 0:
            passed = [arguments[parameter.name] for parameter in kernel.parameters]
            self.backend.launch(kernel, grid, block, passed)


def _check(kernel: Kernel, arguments: Mapping[str, Array | int | float]) -> None:
    """A wrong type would be read as other numbers, without a word."""
    names = [parameter.name for parameter in kernel.parameters]
    assert sorted(arguments) == sorted(names), (
        f"{kernel.name} takes {', '.join(names)}, but was given {', '.join(arguments)}"
    )
    for parameter in kernel.parameters:
        value = arguments[parameter.name]
        if parameter.is_array:
            given = value.dtype if isinstance(value, Array) else type(value)
            assert given == parameter.dtype, (
                f"{kernel.name}: `{parameter.name}` must be an array of {parameter.dtype}, "
                f"not {given}"
            )
        else:
            kind = float if parameter.dtype.kind == "f" else int
            assert isinstance(value, kind), (
                f"{kernel.name}: `{parameter.name}` must be {kind.__name__}, not {type(value)}"
            )
