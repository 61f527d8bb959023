"""What people get wrong, and that the message sends them to the right place."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riskset as rs

N = 40
RNG = np.random.default_rng(0)
X = pd.DataFrame({"age": RNG.normal(60, 9, N).round(1), "sex": RNG.choice(["m", "f"], N)})
TIME, EVENT = RNG.integers(1, 30, N), RNG.integers(0, 2, N)
Y = rs.Surv(TIME, EVENT)
PEOPLE = rs.cohort.Population(EVENT, np.full(N, 0.5))
MODEL = rs.Cox().fit(X, Y)

MISTAKES: dict[str, tuple[Callable[[], object], str, str]] = {
    "the name of a column for groups": (
        lambda: rs.kaplan_meier(Y, "sex"),
        "`group` must be a column with a value for each of the 40 rows, but it is the text 'sex'",
        "pass the column, such as data['sex']",
    ),
    "the name of a column for strata": (
        lambda: rs.Cox().fit(X, Y, strata="sex"),
        "`strata` must be a column",
        "data['sex']",
    ),
    "the name of a column for weights": (
        lambda: rs.Cox().fit(X, Y, sample_weight="age"),
        "`sample_weight` must be a column",
        "data['age']",
    ),
    "the name of a column for blocks": (
        lambda: rs.cohort.match(PEOPLE, within="sex"),
        "`within` must be a column",
        "data['sex']",
    ),
    "the name of a column for persons": (
        lambda: rs.cohort.Population(EVENT, person_id="person"),
        "`person_id` must be a column",
        "data['person']",
    ),
    "text for a label that is a number": (
        lambda: rs.kaplan_meier(Y, EVENT)["1"],
        "group '1' was not found",
        "did you mean 1?",
    ),
    "a number that is no label": (
        lambda: rs.kaplan_meier(Y, EVENT)[7],
        "group 7 was not found",
        "choose from 0, 1.",
    ),
    "a key that no covariate has": (
        lambda: rs.cohort.match(
            PEOPLE,
            exact_covariates=["111"],
            X=rs.Design.from_dense(np.zeros((N, 2)), ["a", "b"], [11, 12]),
        ),
        "covariate '111' was not found",
        "did you mean 11?",
    ),
    "strata for a model that has none": (
        lambda: MODEL.predict_survival_function(X, [3.0], strata=X["sex"]),
        "the model was fitted without strata, but `strata` was given (row 0, value ",
        "leave it out",
    ),
    "a table without rows": (
        lambda: rs.Cox().fit(X[:0], Y[:0]),
        "the data frame has no rows",
        "filter",
    ),
    "percentages for probabilities": (
        lambda: rs.metrics.brier_score(Y, np.full((N, 1), 50.0), [5]),
        "40 of 40 rows are not (first: row 0, value 50.0)",
        "pass survival probabilities",
    ),
    "data for a picture of curves": (
        lambda: rs.plot.survival_by_group(Y),  # type: ignore[arg-type]
        "riskset.kaplan_meier or riskset.cohort.survival gives, but it was given a ndarray",
        "call riskset.kaplan_meier(y, group) first",
    ),
    "curves of another kind": (
        lambda: rs.plot.incidence_by_group(rs.kaplan_meier(Y)),  # type: ignore[arg-type]
        "riskset.aalen_johansen or riskset.cohort.incidence gives, but it was given a KaplanMeier",
        "call riskset.aalen_johansen(y, group) first",
    ),
    "one model for a list": (
        lambda: rs.fit_each(rs.Cox(), X, Y),  # type: ignore[arg-type]
        "`models` must be a list of models, but it is one Cox model",
        "pass [model]",
    ),
    "a class for a model": (
        lambda: rs.cross_validate(rs.Cox, X, Y),  # type: ignore[arg-type]
        "it was given the class Cox",
        "such as riskset.Cox()",
    ),
    "too few names": (
        lambda: rs.Design.from_dense(np.zeros((3, 2)), ["a"]),
        "there are 2 columns, but 1 name.",
        "",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_said(mistake: str) -> None:
    make, message, hint = MISTAKES[mistake]
    with pytest.raises(rs.InputError) as caught:
        make()
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("first", ["\n", "  \n\n"])
def test_a_file_that_begins_with_an_empty_line(tmp_path: Path, first: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(first + "time,event,x\n5,1,2\n8,0,1\n")
    with pytest.raises(rs.InputError, match=r"the first line of s\.csv is empty"):
        rs.read_dataset(path)


@pytest.mark.parametrize("line", ["sep=;", "SEP=,", '"sep=;"', "sep=\t"])
def test_the_line_by_which_a_spreadsheet_knows_the_separator(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(f"{line}\ntime;event;x\n5;1;2\n8;0;3\n9;1;1\n")
    with pytest.raises(rs.InputError, match="the first line of s.csv is .*only spreadsheets") as e:
        rs.read_dataset(path)
    assert "delete this line" in (e.value.hint or "")


def test_a_column_that_is_called_sep(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("sep;time;event\n1;5;1\n2;8;0\n4;9;1\n")
    assert rs.read_dataset(path).design.names == ("sep",)
