"""The tests marked `portability`, and the answers of one set of problems, as on other processors.

    python tests/portability.py            # every target
    python tests/portability.py generic    # one of them

The native target answers the problems alone: its tests are among those of `make test-all`.
A target says for which processor numba compiles (``NUMBA_CPU_NAME``) and which kernels OpenBLAS
takes (``OPENBLAS_CORETYPE``). Those that this machine cannot run are left out, and it says so. Bits
may differ between targets; statuses may not, nor coefficients by more than 1e-9 of their size where
the problem is well conditioned.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
CLOSE = 1e-9
LEAST_EIGENVALUE = 1e-3
MOST_ERROR = 3.0
"""Of the correlations of the coefficients, and standard error, where one is well conditioned."""


class Target(NamedTuple):
    """Variables that choose instructions, and what the processor must have for them."""

    variables: dict[str, str]
    needs: tuple[str, ...] = ()


TARGETS = {
    "native": Target({}),
    "generic": Target({"NUMBA_CPU_NAME": "generic", "OPENBLAS_CORETYPE": "Prescott"}),
    "avx2": Target(
        {"NUMBA_CPU_NAME": "x86-64-v3", "OPENBLAS_CORETYPE": "Haswell"}, ("avx2", "fma", "bmi2")
    ),
    "avx512": Target({"OPENBLAS_CORETYPE": "SkylakeX"}, ("avx512f", "avx512vl", "avx512dq")),
}


def features() -> set[str]:
    """What the processor can do, as Linux names it; nothing elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return set()
    flags = next((line for line in lines if line.startswith("flags")), ":")
    return set(flags.split(":")[1].split())


def environment(target: Target, *, writes_bytecode: bool) -> dict[str, str]:
    """This environment with the variables of a target and no others of their kind."""
    kinds = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "OPENBLAS_CORETYPE", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if name not in kinds}
    bytecode = {} if writes_bytecode else {"PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **target.variables, **bytecode}


def answers() -> dict[str, object]:
    """Status and coefficients of problems of every kind; None where they are ill conditioned."""
    import numpy as np

    import riskset as rs
    from reference import GOLDEN, matrix, read_table
    from solve.verdict import hard_problem

    def told(model: rs.Cox | rs.FineGray) -> dict[str, object]:
        errors = np.asarray(model.standard_error_)
        finite = np.isfinite(model.coef_) & np.isfinite(errors)
        covariance = np.asarray(model.variance_)[np.ix_(finite, finite)]
        size = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(size, size)
        least = np.linalg.eigvalsh(correlation).min(initial=1.0) if finite.any() else 1.0
        is_well = least > LEAST_EIGENVALUE and bool((size < MOST_ERROR).all())
        if np.isfinite(model.coef_).all() and not finite.any():  # penalised
            finite, is_well = ~finite, True
        coef = [float(b) if f else 0.0 for b, f in zip(model.coef_, finite, strict=True)]
        return {"status": model.status_, "coef": coef if is_well else None}

    out: dict[str, object] = {}
    for seed in range(150):
        h = hard_problem(seed)
        if not h["event"].any():
            continue
        extra = {"strata": h["stratum"]} if "stratum" in h else {}
        y = rs.Surv(h["time"], h["event"], h.get("entry"))
        for name, model in {"cox": rs.Cox(tol=1e-11), "finegray": rs.FineGray(tol=1e-11)}.items():
            if name == "finegray" and "entry" in h:
                continue
            for offset in ("offset", None):
                shift = {} if offset is None else {"offset": h["offset"]}
                out[f"{name} {seed} {offset}"] = told(model.fit(h["x"], y, **extra, **shift))
    table = read_table(GOLDEN / "lung.csv")
    x = matrix(table, ["age", "sex", "ph.ecog", "wt.loss"])
    y = rs.Surv(table["time"], table["event"])
    for penalty in (None, rs.L2(1.0), rs.L1(2.0)):
        out[f"lung {penalty}"] = told(rs.Cox(penalty, tol=1e-11).fit(x, y))
    return out


def marked_files() -> list[str]:
    """Files with tests that are marked: collecting all others takes longer than running these."""
    files = sorted(HERE.rglob("test_*.py"))
    return [str(path) for path in files if "mark.portability" in path.read_text("utf-8")]


def compare(
    first: str, mine: dict[str, object], other: str, theirs: dict[str, object]
) -> list[str]:
    """Where the answers of two targets differ."""
    out = []
    for name, one in mine.items():
        two = theirs[name]
        assert isinstance(one, dict)
        assert isinstance(two, dict)
        a, b = one["coef"], two["coef"]
        if one["status"] != two["status"]:
            out.append(f"{name}: {one['status']} on {first}, {two['status']} on {other}")
        elif a is not None and b is not None:
            off = max((abs(u - v) / max(abs(u), 1.0) for u, v in zip(a, b, strict=True)), default=0)
            if off > CLOSE:
                out.append(f"{name}: coefficients on {first} and {other} differ by {off:.1e}")
    return out


def main(names: list[str]) -> int:
    """Run the targets one after the other, and compare what they answer."""
    known, failed = features(), []
    found: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(names or TARGETS):
            target = TARGETS[name]
            missing = [need for need in target.needs if need not in known]
            if missing:
                print(f"{name}: left out, this processor has no {', '.join(missing)}", flush=True)
                continue
            print(f"{name}: {target.variables or 'as it is'}", flush=True)
            file = Path(folder) / f"{name}.json"
            own = environment(target, writes_bytecode=number % 2 == 0)
            ask = [sys.executable, __file__, "--answers", str(file)]
            test = [sys.executable, "-m", "pytest", "-q", "-m", "portability", *marked_files()]
            test += ["--numprocesses", "auto", "--dist", "loadfile"]
            # `make test-all` runs the tests as it is.
            for command in (ask, test) if target.variables else (ask,):
                if subprocess.run(command, env=own, cwd=HERE.parent, check=False).returncode:
                    failed.append(f"{name}: {' '.join(command[1:4])} failed")
            if file.exists():
                found[name] = json.loads(file.read_text("utf-8"))
    first = next(iter(found), "")
    for other in list(found)[1:]:
        failed += compare(first, found[first], other, found[other])
    print("\n".join(failed) or f"{', '.join(found)} give the same answers", flush=True)
    return bool(failed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answers"]:
        sys.path.insert(0, str(HERE))
        warnings.simplefilter("ignore")
        Path(sys.argv[2]).write_text(json.dumps(answers()), "utf-8")
    else:
        sys.exit(main(sys.argv[1:]))
