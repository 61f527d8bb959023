"""The three forms of the experiment on fusion give the sums of the formulas, on the emulator."""

from pathlib import Path

import numpy as np
import pytest

from emulator.backend import Emulator
from emulator.build import MISSING, compiler, library_of, source_of
from gpu.registers import registers_used
from riskset.bench.fusion import FORMS, Fusion
from riskset.bench.fusion_device import SOURCE, device_forms
from riskset.bench.fusion_kernels import Vectors
from riskset.kernels.cuda import compile as nvrtc
from riskset.kernels.cuda import device

needs_compiler = pytest.mark.skipif(compiler is None, reason=MISSING)


def sums(v: Vectors) -> tuple[float, float]:
    s0, s1, s2 = np.cumsum(v.r), np.cumsum(v.xr), np.cumsum(v.xxr)
    g = s1 / s0
    return v.event @ g, v.event @ (s2 / s0 - g**2)


@pytest.fixture
def emulate(monkeypatch: pytest.MonkeyPatch) -> None:
    library = library_of(source_of("fused") + SOURCE)
    backend = Emulator(3, 4, {"fused": library, "fusion": library})
    monkeypatch.setattr(device, "open_device", lambda more: backend)


@needs_compiler
@pytest.mark.usefixtures("emulate")
@pytest.mark.parametrize("n", [1, 700, 1024, 5000])
def test_every_form(n: int) -> None:
    v = Vectors.draw(n, 8)
    forms = device_forms(v)
    assert tuple(forms) == FORMS
    for form in forms.values():
        for _ in range(2):
            assert form.result() == pytest.approx(sums(v), rel=1e-12, abs=1e-12)
    for step in forms["separate"].steps.values():
        step()
    assert forms["separate"].result() == pytest.approx(sums(v), rel=1e-12, abs=1e-12)


@needs_compiler
@pytest.mark.usefixtures("emulate")
def test_the_experiment_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("riskset.bench.measure.MIN_SECONDS_MEASURED", 1e-9)
    records = list(Fusion(rows=(300,), device="cuda", repeats=1).records(lambda *_: None))
    assert [(r.tool, r.step) for r in records if r.step == "in all"] == [
        (f"{form}, cuda", "in all") for form in FORMS
    ]
    assert len(records) == 8
    assert all(r.gap is None or r.gap < 1e-12 for r in records)


def test_every_form_fits_into_registers() -> None:
    pytest.importorskip("cuda.core", reason="the packages of the extra `cuda` are not installed")
    used = registers_used(90, SOURCE)
    assert {"scan_one", "scan_three", "transform_reduce", "finish"} <= set(used)
    assert all(u.spilled_bytes == 0 for u in used.values())


def test_machine_code_of_more_kernels_is_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cuda.core", reason="the packages of the extra `cuda` are not installed")
    monkeypatch.setattr(nvrtc, "_compile", lambda source, _: source.encode())
    for _ in range(2):
        assert nvrtc.machine_code(90, tmp_path) == nvrtc.program().encode()
        assert nvrtc.machine_code(90, tmp_path, SOURCE).endswith(SOURCE.encode())
    assert len(list(tmp_path.iterdir())) == 2
