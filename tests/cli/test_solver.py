"""The option `--solver`."""

from pathlib import Path

from numpy.testing import assert_allclose

from cli.runs import LUNG, Run, fit_json

OPTIONS = ("--time", "time", "--event", "event", "--id", "id", "--out", "fit.json")


def test_coordinate_descent_finds_the_same(run: Run, lung: Path) -> None:
    ended = run("fit", lung, *OPTIONS, "--solver", "ccd", "--max-iter", 3000, "--tol", 1e-11)
    assert ended.code == 0, ended.err
    fit = fit_json()
    assert fit["status"] == "converged"
    expected = LUNG["breslow"]["coef"]
    assert_allclose([fit["coef"][name] for name in expected], list(expected.values()), rtol=1e-7)


def test_what_it_does_not_do_is_said_in_options(run: Run, lung: Path) -> None:
    ended = run("fit", lung, *OPTIONS, "--penalty", "l1", "--cv", "--solver", "ccd")
    assert ended.code == 2
    text = " ".join(ended.err.split())
    assert "--solver must be 'newton', but it is 'ccd'" in text
    assert "leave --solver out" in text
    assert "`" not in text
    assert not Path("fit.json").exists()
