"""Small versions of every experiment: tables and pictures are written, all competitors agree."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import riskset as rs
from riskset.bench import ceiling_kernels as loops
from riskset.bench import ceilings
from riskset.bench import rows as rows_module
from riskset.bench.bootstrap import Resample
from riskset.bench.case import Case
from riskset.bench.ceilings import Ceilings
from riskset.bench.cohort import CohortBenchmark
from riskset.bench.crossval import CrossValidate
from riskset.bench.dense import VARIANTS, Dense, DenseCase
from riskset.bench.estimands import ESTIMAND_VALUES, DrawnRows, Estimands
from riskset.bench.experiment import STRENGTH, Experiment, run
from riskset.bench.fixed import Fixed
from riskset.bench.fusion import DEVICES, FORMS, Fusion
from riskset.bench.fusion_kernels import Vectors
from riskset.bench.proximal import Accelerated
from riskset.bench.record import BenchmarkRecord, read_csv
from riskset.bench.rows import VALUES, _observed
from riskset.bench.scaling import STRENGTHS, VARIED, Scaling
from riskset.bench.solvers import METHODS, CountedDesign, Solvers
from riskset.bench.study import StudyBenchmark
from riskset.bench.works import DENSE, ESTIMANDS, SCALING, ChosenWork, default_works
from riskset.model.penalty import L1
from riskset.solve.fit import fit_by_newton


def ran(experiment: Experiment, folder: Path) -> list[BenchmarkRecord]:
    """Run it, and check what is the same for all."""
    told: list[float] = []
    seen: list[BenchmarkRecord] = []
    written = run(experiment, folder, lambda share, detail: told.append(share), seen.append)
    assert written.csv == folder / f"{experiment.name}.csv"
    assert read_csv(written.csv) == written.records
    assert len(seen) == len(written.records)
    assert written.markdown.read_text().startswith(f"# {experiment.title}")
    assert written.picture.read_bytes()[:4] == b"\x89PNG"
    assert told == sorted(told)
    assert all(0 <= share <= 1 for share in told)
    assert all(record.processor and record.version for record in written.records)
    assert all(record.seconds is None or record.seconds > 0 for record in written.records)
    return written.records


def agree(records: Iterable[BenchmarkRecord], within: float) -> None:
    """Objectives on the same problem differ by little, and are certified."""
    groups: dict[object, list[BenchmarkRecord]] = defaultdict(list)
    for record in records:
        if record.objective is not None:
            groups[record.problem].append(record)
            assert record.gap is not None
            assert record.gap <= within
    assert groups


@pytest.mark.slow
def test_fixed(tmp_path: Path) -> None:
    experiment = Fixed(
        rows=(300, 600), columns=6, density=0.2, threads=(1, 2), repeats=1,
        solvers=("newton", "ccd"),
    )  # fmt: skip
    records = ran(experiment, tmp_path)
    assert [r.step for r in records].count("X.T @ r") == 4
    fits = [r for r in records if r.step == "fit"]
    assert len(fits) == 2 * 2 * 2 * 2
    agree(fits, 1e-7)
    assert all(r.kkt is not None and r.kkt <= 1e-8 for r in fits)
    assert {r.l1 for r in fits} == {(2 / 1.414) ** 0.5}


def test_objectives_are_those_of_the_estimators() -> None:
    for model in ("cox", "finegray"):
        case = Case.draw("x", model, 400, 6, 0.2, 1)
        penalty = L1(2.0)
        fitted = case.estimator(penalty).fit(case.cohort.X, case.y)
        judged = case.judge(fitted.coef_, penalty)
        assert judged.objective == pytest.approx(fitted.objective_, rel=1e-12)
        assert judged.kkt <= 1e-8
        assert judged.n_nonzero == np.count_nonzero(fitted.coef_)
        assert case.judge(np.full(6, np.nan), penalty).objective == np.inf


def test_crossval(tmp_path: Path) -> None:
    experiment = CrossValidate(
        rows=(300,), columns=5, density=0.2, folds=3, repeats=1, threads=(1, 2),
        variances=(0.01, 0.1),
    )  # fmt: skip
    records = ran(experiment, tmp_path)
    assert [(r.model, r.threads) for r in records] == [
        ("cox", 1), ("cox", 2), ("finegray", 1), ("finegray", 2)
    ]  # fmt: skip
    agree(records, 0.0)
    assert {r.l1 for r in records} <= {np.sqrt(2 / 0.01), np.sqrt(2 / 0.1)}
    assert {r.note for r in records} == {"2 penalties"}
    assert all(r.kkt is not None and r.kkt <= 1e-5 for r in records)


def test_bootstrap(tmp_path: Path) -> None:
    records = ran(Resample(rows=(300,), columns=5, density=0.2, replicates=7), tmp_path)
    assert [(r.model, r.step) for r in records] == [
        (model, step) for model in ("cox", "finegray") for step in ("fit", "7 replicates")
    ]
    agree(records, 0.0)
    assert {r.note for r in records} == {"", "0 not converged"}
    assert all(r.kkt is not None and r.kkt <= 1e-8 for r in records)


def test_solvers(tmp_path: Path) -> None:
    records = ran(Solvers(rows=(400,), columns=8, density=0.2, tols=(1e-3, 1e-8)), tmp_path)
    assert {r.tool for r in records} == set(METHODS)
    for record in records:
        assert record.kkt is not None
        assert record.tol is not None
        assert record.kkt <= record.tol
        assert record.passes is not None
        assert record.passes > 1
    agree([r for r in records if r.tol == 1e-8], 1e-7)


@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_accelerated_gradient_reaches_the_minimum(l2: float) -> None:
    case = Case.draw("x", "cox", 500, 12, 0.2, 5)
    strength = np.full(12, 4.0)
    strength[3] = 0.0
    expected = rs.Cox(
        rs.ElasticNet(l1=4.0, l2=l2, factor={"x3": 0.0}), tol=1e-10
    ).fit(case.design, case.y)  # fmt: skip
    ridge = np.where(strength > 0, l2, 0.0)
    found = fit_by_newton(
        case.design, case.loss, strength, ridge, tol=1e-9, max_iter=5000, method=Accelerated
    )
    assert found.status == "converged"
    np.testing.assert_allclose(found.coef, expected.coef_, atol=1e-6)
    np.testing.assert_array_equal(found.coef == 0, expected.coef_ == 0)
    stopped = fit_by_newton(case.design, case.loss, strength, ridge, max_iter=2, method=Accelerated)
    assert stopped.status == "max_iter"
    assert stopped.n_iter == 2


def test_passes_are_counted() -> None:
    case = Case.draw("x", "cox", 100, 4, 0.25, 1)
    design = CountedDesign.of(case.design, np.array([25, 25, 25, 25]))
    runtime = case.loss.runtime
    design.cross(np.ones(100), runtime=runtime)
    assert design.reads == [100]
    design.cross(np.ones(100), np.array([0, 2]), runtime=runtime)
    assert design.reads == [150]
    eta = design.product(np.array([1.0, 0.0, 0.0, 2.0]), runtime=runtime)
    assert design.reads == [200]
    np.testing.assert_array_equal(eta, case.cohort.X @ [1.0, 0.0, 0.0, 2.0])


def test_fusion(tmp_path: Path) -> None:
    records = ran(Fusion(rows=(50, 500), repeats=2), tmp_path)
    whole = [r for r in records if r.step == "in all"]
    assert [r.tool for r in whole] == [f"{form}, cpu" for form in FORMS] * 2
    assert all(r.gap is not None and r.gap < 1e-12 for r in whole)


@pytest.mark.parametrize("device", ["cpu"])  # on a GPU: tests/gpu/test_fusion.py
def test_fused_sums_are_those_of_the_formulas(device: str) -> None:
    v = Vectors.draw(1000, 7)
    s0, s1, s2 = np.cumsum(v.r), np.cumsum(v.xr), np.cumsum(v.xxr)
    g = s1 / s0
    expected = (v.event @ g, v.event @ (s2 / s0 - g**2))
    forms = DEVICES[device](v)
    assert tuple(forms) == FORMS
    for form in forms.values():
        assert form.result() == pytest.approx(expected, rel=1e-10)


def test_unknown_device() -> None:
    with pytest.raises(rs.InputError, match="`device` must be .*cpu"):
        Fusion(device="tpu")


@pytest.mark.slow
def test_cohort(tmp_path: Path) -> None:
    small = CohortBenchmark(rows=1500, columns=25, folds=2, repeats=1, replicates=39)
    records = ran(small, tmp_path)
    steps = ["draw", "design", "2 folds x 1, and the fit", "profile interval"]
    steps.append("39 bootstrap replicates")
    assert [r.step for r in records] == steps * 2
    for record in records:
        assert (record.n_rows, record.n_columns) == (1500, 25)
        if record.step.endswith("the fit"):
            assert record.kkt is not None
            assert record.kkt <= 1e-5
        if "interval" in record.step or "bootstrap" in record.step:
            lower, upper = record.note.split(",")[0].split(" to ")
            assert float(lower) < float(upper)


@pytest.mark.slow
def test_study(tmp_path: Path) -> None:
    small = StudyBenchmark(rows=1500, columns=20, folds=3, people=2000, covariates=25)
    matched, balanced, score = ran(small, tmp_path)
    assert (matched.step, matched.n_rows) == ("match", 2000)
    pairs = int(matched.note.removesuffix(" pairs").replace(",", ""))
    assert 500 < pairs < 1050  # of about a thousand in each arm
    assert (balanced.step, balanced.n_rows, balanced.n_columns) == ("balance", 2000, 25)
    before, after = (float(word) for word in balanced.note.split() if word[0].isdigit())
    assert after < 0.5 * before
    assert score.step == "propensity score, 3 folds x 1"
    assert (score.n_rows, score.n_columns) == (1500, 20)
    assert score.kkt is not None
    assert score.kkt <= 1e-5
    area = float(score.note.removeprefix("AUC ").split(",")[0])
    assert 0.65 < area < 0.8  # 0.74 with the true scores


@pytest.mark.slow
def test_ceilings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "MIN_SECONDS_PER_REPETITION", 1e-9)
    monkeypatch.setattr(ceilings, "COUNTS_PER_CALL", 64)
    monkeypatch.setattr(ceilings, "TIMES", 3)
    monkeypatch.setattr(ceilings, "GATHERED", 1 << 12)
    small = Ceilings(
        rows=(3000, 9000), columns=6, density=0.2, threads=(1, 2), repeats=1, most=1 << 16
    )
    records = ran(small, tmp_path)
    for n in (3000, 9000):
        for threads in (1, 2):
            some = [r for r in records if (r.n_rows, r.threads) == (n, threads)]
            ours = {r.step: r for r in some if r.tool == "riskset"}
            machine = {r.step: r for r in some if r.tool == "machine"}
            assert len(ours) + len(machine) == len(some)
            assert all(r.rate is not None and 0 < r.rate < np.inf for r in some)
            assert all(r.share is not None and 0 < r.share < np.inf for r in ours.values())
            assert all(r.share is r.ceiling is None for r in machine.values())
            steps = {step.split(",")[0] for step in ours}
            assert steps == {"Design.cross", "Design.product", "likelihood", "lanes", "curvature"}

            gather, cross = machine["gather of numbers, 32 KiB"], ours["Design.cross"]
            least = gather.seconds / (3 * threads * 4096)
            assert gather.rate == pytest.approx(1e9 * least)
            n_entries = 6 * round(0.2 * n)
            assert cross.n_entries == n_entries
            assert cross.rate == pytest.approx(1e9 * cross.seconds / n_entries)
            assert cross.ceiling == gather.rate
            assert cross.share == pytest.approx(gather.rate / cross.rate)
            stored = ours["Design.cross, bytes"]  # two a non-zero, and 7 pointers a block
            n_bytes = 2 * n_entries + 8 * 7 * (1 if n == 3000 else 3)
            assert stored.rate == pytest.approx(1e-9 * n_bytes / stored.seconds)
            assert stored.share == pytest.approx(stored.rate / machine["read"].rate)
            lanes = ours["lanes, cross"]
            assert lanes.rate == pytest.approx(1e9 * lanes.seconds / (8 * threads * n_entries))


def test_loops_do_what_they_are_said_to_do() -> None:
    rng = np.random.default_rng(1)
    n, m = 40, 64
    index = rng.integers(0, n, (2, m)).astype(np.uint16)
    for width, gather, update in (
        (1, loops.gather, loops.update), (8, loops.gather_eight, loops.update_eight),
    ):  # fmt: skip
        table = rng.integers(0, 9, (2 * n, width)).astype(float)
        flat = table.reshape(-1) if width == 1 else table
        sums, v = np.zeros((2 * loops.RUN, 8)), rng.integers(1, 9, (2, 8)).astype(float)
        gather(0, 2, index, flat, n, sums)
        expected = [table[c * n + index[c].astype(int)].sum(axis=0) for c in (0, 1)]
        found = sums[:2, :1] if width == 1 else sums.reshape(2, loops.RUN, 8).sum(axis=1)
        np.testing.assert_array_equal(found, expected)
        after = table.copy()
        for c in (0, 1):
            np.add.at(after, c * n + index[c].astype(int), v[c, :width])
        update(0, 2, index, flat, n, v)
        np.testing.assert_array_equal(table, after)

    words = rng.integers(0, 1 << 63, (2, 5), dtype=np.uint64)
    ones, mask = np.zeros(2, np.uint64), np.uint64(0xF0F0)
    loops.popcount(0, 2, words, mask, 2, ones)
    assert ones.tolist() == [
        sum((int(word) & (0xF0F0 ^ turn)).bit_count() for word in row for turn in (0, 1))
        for row in words
    ]
    x, y, out = np.arange(7.0), np.arange(7.0)[::-1].copy(), np.zeros(7)
    loops.copy(0, 2, 2, x, out)
    np.testing.assert_array_equal(out, x)
    loops.triad(0, 2, 2, x, y, out)
    np.testing.assert_array_equal(out, x + 3 * y)
    total = np.zeros(2, np.int64)
    loops.read(0, 2, 2, np.arange(7), total)
    assert total.tolist() == [0 + 1 + 2, 3 + 4 + 5 + 6]


@pytest.mark.slow
def test_one_fit_of_growing_size(tmp_path: Path) -> None:
    small = Scaling(
        works=[f"by-{what}:300x5" for what in ("threads", "rows", "columns", "density", "events")],
        density=0.2, factors=(0.5, 1.0), shares=(0.5, 1.0), repeats=1,
    )  # fmt: skip
    varied = defaultdict(list)
    for r in ran(small, tmp_path):
        assert r.kkt is not None
        assert r.kkt <= 1e-8
        varied[r.step].append(r)
    assert [r.n_rows for r in varied["by-rows"]] == [150, 300]
    assert [r.n_columns for r in varied["by-columns"]] == [2, 5]
    assert [r.n_entries for r in varied["by-density"]] == [5 * 30, 5 * 60]
    few, all_events = (r.n_events for r in varied["by-events"])
    assert few < 0.7 * all_events
    assert len(varied["by-threads"]) >= 1


def test_scaling(tmp_path: Path) -> None:
    works = ["fit:300x5", "finegray:300x5", "l1:2@300x40", "l2:300x40", "propensity:300x20",
             "concordance:300", "survival:300x3", "kaplan-meier:300"]  # fmt: skip
    records = ran(Scaling(works=works, threads=(1,), density=0.2, repeats=1), tmp_path)
    assert [r.step for r in records] == [work.partition(":")[0] for work in works]
    of = {r.step: r for r in records}
    for step in ("fit", "finegray", "l1", "l2"):
        assert of[step].kkt is not None
        assert of[step].kkt <= 1e-8
    assert (of["l1"].l1, of["l1"].l2) == (2.0, None)
    assert (of["l2"].l1, of["l2"].l2) == (0.0, 1.0)
    assert of["propensity"].note.endswith("penalties")
    rows = _observed(300, 123)
    y = rs.Surv(rows["time"], rows["event"])
    score = float(rs.metrics.concordance(y, rows["score"]))
    assert of["concordance"].note == f"{score:.6f}"
    assert of["kaplan-meier"].note.count(", ") == of["survival"].note.count(", ") == 4


def test_dense(tmp_path: Path) -> None:
    fits = ("fit", "errors", "ties", "efron", "late", "robust")
    paths = ("path", "net", "finegray", "crossval")
    works = [*(f"{kind}:300x5" for kind in fits), *(f"{kind}:40x60x6" for kind in paths)]
    records = ran(Dense(works=works, threads=(1, 2), repeats=1), tmp_path)
    assert [(r.step, r.threads) for r in records] == [
        (kind, threads) for kind in (*fits, *paths) for threads in (1, 2)
    ]
    agree(records, 1e-7)
    assert all(r.kkt is not None and r.kkt <= 1e-8 for r in records if r.step != "crossval")
    assert [r.n_entries for r in records] == [1500] * 12 + [2400] * 8
    assert all(r.l1 == r.l2 for r in records if r.step == "net")
    assert "paths" in records[-1].note


def test_estimands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_module, "WARM_UP_ROWS", 200)
    records = ran(Estimands(rows=300, repeats=1), tmp_path)
    assert [r.step for r in records] == list(ESTIMANDS)
    assert {r.n_rows for r in records} == {300}
    notes = {r.step: [float(word) for word in r.note.split(", ")] for r in records}
    drawn = DrawnRows.of(300, 123)
    y, treatment = rs.Surv(drawn.time, drawn.event == 1), drawn.treatment
    for kind, given in (("mean", {}), ("mean-weights", {"weight": drawn.weight})):
        means = rs.restricted_mean(y, treatment, times=drawn.horizon, **given)
        expected = [value for one in means for value in (one.mean[0], one.standard_error[0])]
        assert notes[kind] == pytest.approx(expected, abs=1e-6)
    people = rs.cohort.match(drawn.people, replacement=True)
    assert notes["match-replacement"] == [pytest.approx(people.weight.sum(), abs=1e-6)]
    for model in ("cox", "finegray", "cause-specific"):
        plain, robust = (notes[f"{model}-interval{end}"] for end in ("", "-robust"))
        assert plain[0] == robust[0]
        assert plain[1] < plain[0] < plain[2]
        assert plain[1:] != robust[1:]


def test_every_kind_of_work_is_measured() -> None:
    assert list(VARIANTS) == list(DENSE)
    assert list(ESTIMAND_VALUES) == list(ESTIMANDS)
    assert {*VALUES, *VARIED, *STRENGTHS, "fit", "finegray", "propensity"} == set(SCALING)
    for kinds in (DENSE, SCALING, ESTIMANDS):
        works = [work for text in default_works(kinds) for work in ChosenWork.parse(text, kinds)]
        assert len(works) == sum(len(kind.works) for kind in kinds.values())
        assert (
            ChosenWork.parse(next(iter(kinds)), kinds)
            == works[: len(next(iter(kinds.values())).works)]
        )


def test_a_dense_case_is_judged_as_it_is_fitted() -> None:
    """Columns are stored in other units, which changes neither objective nor residual."""
    case = DenseCase.normal("x", 80, 4, 1)
    case = dataclasses.replace(case, x=case.x * [1.0, 1e3, 1e-3, 1.0])
    penalty = L1(2.0)
    fitted = case.estimator(penalty).fit(case.x, case.y)
    judged = case.judge(fitted.coef_, penalty)
    assert judged.objective == pytest.approx(fitted.objective_, rel=1e-12)
    assert judged.kkt <= 1e-8
    few = case.judge_path(np.array([np.zeros(4), fitted.coef_]), [penalty, penalty])
    assert few.objective == judged.objective
    assert few.kkt == case.judge(np.zeros(4), penalty).kkt


@pytest.mark.parametrize(
    "text", ["100x5", "fit:0x5", "fit:10x5x1", "path:10x5", "fit:axb", "x:1x1"]
)
def test_a_work_is_a_kind_and_a_size(text: str) -> None:
    forms = {"fit": "fit:ROWSxCOLUMNS", "path": "path:ROWSxCOLUMNSxSTRENGTHS"}
    kind = text.split(":")[0]
    with pytest.raises(rs.InputError, match=f"`works` has {text!r}, but ") as error:
        list(Dense(works=(text,)).records(lambda share, detail: None))
    assert forms.get(kind, "path:ROWSxCOLUMNSxSTRENGTHS") in str(error.value)


def test_the_paper_s_strength() -> None:
    assert pytest.approx(rs.L1.from_variance(1.414).strength) == STRENGTH


def test_every_experiment_says_what_a_reader_needs() -> None:
    for kind in (
        Fixed,
        CrossValidate,
        Resample,
        Solvers,
        Fusion,
        CohortBenchmark,
        Ceilings,
        Scaling,
        StudyBenchmark,
    ):
        assert dataclasses.is_dataclass(kind)
        assert len(kind.words) > 80
