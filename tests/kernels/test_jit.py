"""How kernels are compiled."""

import numba
import pytest

from riskset.kernels._jit import kernel


def double(x: float) -> float:
    """Twice x."""
    return 2.0 * x


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there is nothing to compile")
def test_a_kernel_keeps_its_function() -> None:
    compiled = kernel(double)
    assert compiled.py_func is double
    assert compiled.__doc__ == "Twice x."
    assert compiled(1.5) == 3.0
    assert not compiled.targetoptions.get("fastmath", False)


def test_without_a_place_for_the_cache_it_still_compiles() -> None:
    """As where the package's folder and the user's cannot be written; a string has no folder."""
    scope: dict[str, object] = {}
    exec("def half(x):\n    return x / 2", scope)
    assert kernel(scope["half"])(3.0) == 1.5
