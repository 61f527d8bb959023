"""The demo: the right numbers, on a page of 80 columns, with a picture."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import riskset as rs
from riskset.cli.main import main
from riskset.demo import TREATMENT, choose, fit_on, fit_path

RHC = json.loads((Path(__file__).parent / "golden" / "rhc.json").read_text())


@pytest.fixture(scope="module")
def cohort() -> rs.Dataset:
    return rs.load_rhc()


def test_adjusted_for_everything_agrees_with_r(cohort: rs.Dataset) -> None:
    model = fit_on(cohort, cohort.design.names)
    golden = RHC["cox_all_covariates"]
    j = model.covariates_.index(TREATMENT)
    assert model.coef_[j] == pytest.approx(golden["coef_swang1"], rel=1e-7)
    assert model.standard_error_[j] == pytest.approx(golden["se_swang1"], rel=1e-6)
    assert model.log_likelihood_ == pytest.approx(golden["loglik"][1], rel=1e-10)


def test_adjusted_for_nothing_agrees_with_r(cohort: rs.Dataset) -> None:
    model = fit_on(cohort, (TREATMENT,))
    golden = RHC["cox_unadjusted"]["coef"]["swang1"]
    assert model.coef_[0] == pytest.approx(golden, rel=1e-7)


def test_the_choice_has_the_smallest_criterion(cohort: rs.Dataset) -> None:
    result = fit_path(cohort)
    assert set(result.statuses) == {"converged"}
    assert (result.kkt <= 1e-8).all()
    treated = result.names.index(TREATMENT)
    assert (result.coefs[:, treated] != 0).all()
    choice = choose(cohort, result)
    kept = [result.names[j] for j in np.flatnonzero(result.coefs[choice.index])]
    assert list(choice.model.covariates_) == kept
    best = 2 * (len(kept) - choice.model.log_likelihood_)
    for k in (0, 10, 20, 30, 40, len(result) - 1):
        names = tuple(result.names[j] for j in np.flatnonzero(result.coefs[k]))
        assert best <= 2 * (len(names) - fit_on(cohort, names).log_likelihood_)


def test_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["riskset", "demo", "--out", str(tmp_path / "demo")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    told = capsys.readouterr()
    assert told.err == ""
    text = re.sub(r"\s+", " ", told.out)
    assert "5,735 patients, 3,722 deaths" in text
    assert "2,184 patients" in text
    assert "everything 70 1.170 1.084 to 1.263" in text
    assert "nothing 0 1.163 1.089 to 1.242" in text
    assert "converged; relative KKT residual at most" in text
    assert max(map(len, told.out.splitlines())) <= 80
    assert (tmp_path / "demo" / "path.png").read_bytes()[:4] == b"\x89PNG"
