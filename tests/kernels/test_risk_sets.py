"""The pass over the risk sets: digits, chunks, row order, and what its tests would notice."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernels.problems import ALL_SCENES, Scene, frozen, make, scene
from riskset._runtime import Runtime
from riskset.data.outcome import Outcome
from riskset.kernels import late_entry_cpu, risk_sets_cpu, risk_sets_ref, wide_range_cpu
from riskset.kernels.risk_sets_ref import CoxPass

RUNTIME = Runtime(1)

each_scene = pytest.mark.parametrize("s", ALL_SCENES.values(), ids=ALL_SCENES)
each_ties = pytest.mark.parametrize("efron", [False, True], ids=["breslow", "efron"])


def in_long_double(s: Scene, efron: bool) -> CoxPass:
    return risk_sets_ref.cox_pass(s.eta.astype(np.longdouble), s.risk, efron, RUNTIME)


def same(got: CoxPass, exact: CoxPass, rtol: float = 1e-12) -> None:
    for field in CoxPass._fields:
        # Likelihood and residuals cancel; all else keeps its relative digits, however small it is.
        atol = rtol if field in ("log_likelihood", "residual") else 1e-290
        expected = np.asarray(getattr(exact, field), dtype=np.float64)
        assert_allclose(getattr(got, field), expected, rtol=rtol, atol=atol, err_msg=field)


@each_ties
@each_scene
def test_every_number_has_its_digits(s: Scene, efron: bool) -> None:
    exact = in_long_double(s, efron)
    same(risk_sets_cpu.cox_pass(s.eta, s.risk, efron, RUNTIME), exact)
    same(wide_range_cpu.cox_pass_wide(s.eta, s.risk, efron), exact)


@each_ties
@each_scene
def test_residuals_sum_to_zero_in_each_stratum(s: Scene, efron: bool) -> None:
    risk = s.risk
    done = risk_sets_cpu.cox_pass(s.eta, risk, efron, RUNTIME)
    stratum = np.repeat(np.cumsum(risk.starts_stratum), np.diff(risk.group_ptr))
    sums = np.bincount(stratum, risk.event_weight - done.expected)
    assert_allclose(sums, 0.0, atol=1e-12 * risk.event_weight.sum())


@each_ties
@pytest.mark.parametrize("name", ["strata", "late_strata_weights", "extreme_eta", "pieces"])
def test_row_order_changes_no_bit(name: str, efron: bool, rng: np.random.Generator) -> None:
    s = ALL_SCENES[name]
    new_place = rng.permutation(s.eta.size)
    eta = np.empty_like(s.eta)
    eta[new_place] = s.eta
    risk = s.risk._replace(order=frozen(new_place[s.risk.order]))
    before = risk_sets_cpu.cox_pass(s.eta, s.risk, efron, RUNTIME)
    after = risk_sets_cpu.cox_pass(frozen(eta), risk, efron, RUNTIME)
    assert_array_equal(after.residual[new_place], before.residual)
    assert_array_equal(after.expected, before.expected)
    assert after.log_likelihood == before.log_likelihood


@each_ties
@pytest.mark.parametrize("name", ["tied", "strata", "strata_of_one", "empty_strata"])
def test_any_partition_into_chunks(name: str, efron: bool, rng: np.random.Generator) -> None:
    s = ALL_SCENES[name]
    exact = in_long_double(s, efron)
    for _ in range(20):
        inner = np.flatnonzero(rng.random(s.n_groups - 1) < rng.random()) + 1
        chunks = frozen(np.concatenate([[0], inner, [s.n_groups]]))
        risk = s.risk._replace(chunk_ptr=chunks)
        same(risk_sets_cpu.cox_pass(s.eta, risk, efron, RUNTIME), exact)


# ----------------------------------------------------------------------- problems of several chunks

N_ROWS = 26_001  # three chunks of 8667


def long_scene(kind: str) -> Scene:
    """More than three chunks' rows, few events; strata as `kind` says."""
    rng = np.random.default_rng(N_ROWS)
    time = rng.integers(1, 40, N_ROWS).astype(float)
    event = rng.random(N_ROWS) < 0.01
    eta = rng.normal(size=N_ROWS)
    extra: dict[str, object] = {"weight": rng.choice([0.0, 1.0, 2.0, 0.5], N_ROWS)}
    if kind == "strata on chunk borders":
        # Every row of a chunk in one stratum, with an event at the last time of it.
        stratum = np.arange(N_ROWS) // (N_ROWS // 3)
        first = np.searchsorted(stratum, [0, 1, 2])
        time[first], event[first] = 0.5, True
        extra["stratum"] = stratum
    if kind == "strata off chunk borders":
        extra["stratum"] = rng.integers(0, 7, N_ROWS)
    if kind == "late entry":
        extra["entry"] = time - rng.choice([0.5, 3.0, 30.0], N_ROWS)
    return scene(Outcome.build(time, event, **extra), eta)


@each_ties
@pytest.mark.parametrize(
    "kind", ["one stratum", "strata on chunk borders", "strata off chunk borders", "late entry"]
)
def test_several_chunks(kind: str, efron: bool) -> None:
    s = long_scene(kind)
    risk = s.risk
    assert risk.chunk_ptr.size - 1 == 3
    on_border = risk.starts_stratum[risk.chunk_ptr[1:-1]]
    assert on_border.all() if kind == "strata on chunk borders" else not on_border.any()
    first = risk_sets_cpu.cox_pass(s.eta, risk, efron, RUNTIME)
    same(first, risk_sets_ref.cox_pass(s.eta, risk, efron, RUNTIME), rtol=1e-11)
    for n_threads in (2, 3, 5):
        again = risk_sets_cpu.cox_pass(s.eta, risk, efron, Runtime(n_threads))
        for a, b in zip(again, first, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


# ------------------------------------------------------------------- would these tests see a fault?


def no_carry(sums: np.ndarray, has_start: np.ndarray) -> np.ndarray:
    return np.zeros(sums.size)


def carry_across_strata(sums: np.ndarray, has_start: np.ndarray) -> np.ndarray:
    return np.append(0.0, np.cumsum(sums)[:-1])


def with_own_events(r: np.ndarray, risk: object, efron: bool, rest: np.ndarray) -> None:
    KEPT["sum_at_risk"](r, risk, False, rest)


def without_tied_share(h: np.ndarray, h_tied: np.ndarray, risk: object, seen: np.ndarray) -> None:
    KEPT["sum_seen"](h, h, risk, seen)


KEPT = {name: getattr(late_entry_cpu, name) for name in late_entry_cpu.__all__}


@pytest.mark.parametrize(
    ("module", "name", "broken", "scene_name"),
    [
        (risk_sets_cpu, "_carry", no_carry, "strata"),
        (risk_sets_cpu, "_carry", carry_across_strata, "strata"),
        (risk_sets_cpu, "has_underflow", lambda *_: False, "tiny_weights"),
        (late_entry_cpu, "sum_at_risk", with_own_events, "late"),
        (late_entry_cpu, "sum_seen", without_tied_share, "late"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of the broken numbers
def test_a_fault_is_noticed(
    module: object,
    name: str,
    broken: Callable[..., object] | float,
    scene_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s = ALL_SCENES[scene_name]
    risk = s.risk._replace(chunk_ptr=frozen(np.arange(s.n_groups + 1)))
    exact = in_long_double(s, True)
    same(risk_sets_cpu.cox_pass(s.eta, risk, True, RUNTIME), exact)
    monkeypatch.setattr(module, name, broken)
    with pytest.raises((AssertionError, ValueError)):  # as plain Python, log raises
        same(risk_sets_cpu.cox_pass(s.eta, risk, True, RUNTIME), exact)


# ------------------------------------------------------------------------------------ odd arguments


def test_writable_and_strided_inputs() -> None:
    s = make(50, seed=51, n_strata=2)
    strided = np.repeat(s.eta, 2)[::2]
    want = risk_sets_cpu.cox_pass(s.eta, s.risk, True, RUNTIME)
    for eta in (s.eta.copy(), strided, np.asfortranarray(s.eta)):
        got = risk_sets_cpu.cox_pass(eta, s.risk, True, RUNTIME)
        assert_array_equal(got.residual, want.residual)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_too_far_gives_no_likelihood(bad: float) -> None:
    """The line search sees that such a likelihood is not better."""
    s = make(30, seed=52)
    eta = s.eta.copy()
    eta[4] = bad
    assert not np.isfinite(risk_sets_cpu.cox_pass(eta, s.risk, False, RUNTIME).log_likelihood)
