"""One step of a tree of sums, in vector code (see `_vector`)."""

from llvmlite import ir

from riskset._types import Matrix
from riskset.kernels._vector import LANES, VectorCode, in_vectors

__all__ = ["add_from"]

_ROW = ir.VectorType(ir.DoubleType(), LANES)
_LANE_NUMBERS = ir.Constant(_ROW, [float(k) for k in range(LANES)])
_NOTHING = ir.Constant(_ROW, [0.0] * LANES)


def _emit(e: VectorCode) -> None:
    b, tree, node = e.builder, e.data("tree"), e.values["node"]
    child = e.spread(b.sitofp(e.values["child"], ir.DoubleType()))
    is_later = b.fcmp_ordered(">=", _LANE_NUMBERS, child)
    added = b.select(is_later, e.spread(e.values["weight"]), _NOTHING)
    e.store(b.fadd(e.load(tree, node), added), tree, node)


@in_vectors(_emit)
def add_from(tree: Matrix, node: int, child: int, weight: float) -> None:
    """Add to the numbers of a node, a row of `tree` (m, 8), from the child's on."""
    tree[node, child:] += weight
