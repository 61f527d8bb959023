"""Messages of the Python interface name options when they reach the command line."""

import inspect
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

import riskset as rs
from cli.runs import CASES, Run
from riskset._messages import spoken
from riskset.cli.curves import curves
from riskset.cli.fit import fit
from riskset.cli.path import path
from riskset.cli.terminal import output, warn
from riskset.cli.wording import CommandLine
from riskset.study.specification.keys import KEYS

OPTIONS = {
    "covariate_columns": "--covariate-columns",
    "device": "--device",
    "duplicates": "--duplicates",
    "id": "--id",
    "penalty": "--penalty",
    "penalized": "--penalized",
    "strata": "--strata",
    "time_digits": "--time-digits",
}


@pytest.mark.parametrize(
    ("python", "option"),
    [
        ("name it with `id`.", "name it with --id."),
        ("`time_digits` must be", "--time-digits must be"),
        ("or `duplicates='max'` to keep", "or --duplicates max to keep"),
        (
            "or with `covariate_columns=('rowId', 'covariateId')` if every",
            "or with --covariate-columns rowId,covariateId if every",
        ),
        ("for example `strata=['site', 'sex']`.", "for example --strata site --strata sex."),
        ("use `device='cpu'` or 'auto'.", "use --device cpu or 'auto'."),
        ("use `penalty=None` for a fit", "use --penalty none for a fit"),
        ("pass `penalized=True` to", "pass --penalized to"),
        ("use `riskset.aalen_johansen`.", "use `riskset curves`."),
        ("`y` has no rows.", "the table has no rows."),
        # What is no argument stays: names of columns, levels and commands.
        ("column 'time='3'' of a.csv; `riskset fit --out`", None),
        ("a row is at risk on (entry, time]; `statuses`", None),
        ("`duplicates=max(x)`, riskset.Surv", None),
    ],
)
def test_arguments_become_options(python: str, option: str | None) -> None:
    assert spoken(python, CommandLine(OPTIONS)) == (python if option is None else option)


@pytest.mark.parametrize(
    ("command", "function"),
    [
        (fit, rs.read_dataset),
        (fit, rs.Cox.__init__),
        (fit, rs.FineGray.__init__),
        (fit, rs.CoxCV.__init__),
        (fit, rs.Cox.confidence_interval),
        (fit, rs.Cox.bootstrap),
        (path, rs.path),
        (curves, rs.kaplan_meier),
    ],
)
def test_options_have_the_choices_and_defaults_of_the_parameters(
    command: Callable[..., None], function: Callable[..., Any]
) -> None:
    options = inspect.signature(command).parameters
    names = {"n_threads": "threads", "parameters": "parameter", "method": "interval"}
    n_compared = 0
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        option = options.get(names.get(name, name))
        if option is None or name in ("penalty", "out"):
            continue
        n_compared += 1
        choices = _words(parameter.annotation)
        if choices:
            (kind, *_) = get_args(option.annotation)
            assert _words(kind) == choices, name
        if option.default not in (None, False, inspect.Parameter.empty):
            assert parameter.default in (inspect.Parameter.empty, option.default), name
    assert n_compared


def _words(kind: Any) -> list[str]:
    """The words that a type allows: those of an enumeration or of a literal."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [one.value for one in kind]
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [word for one in get_args(kind) for word in _words(one)]


def test_questions_of_the_data_layer_name_options(run: Run) -> None:
    Path("o.csv").write_text("pid,days,died,x\n1,5,1,0\n2,6,0,1\n3,7,1,0\n")
    Path("l.csv").write_text("person,concept\n1,7\n4,7\n1,7\n")
    roles = ["--time", "days", "--event", "died", "--out", "f.json"]
    columns = ["--covariates", "l.csv", "--covariate-columns", "person,concept"]
    asked = [
        ([], "name it with --time"),
        (roles[:2], "name it with --event"),
        ([*roles, *columns], "name it with --id"),
        (
            [*roles, "--id", "pid", "--covariates", "l.csv"],
            "--covariate-columns row,covariate,value",
        ),
        ([*roles, "--id", "pid", *columns], "pass --unknown-rows drop"),
        ([*roles, "--id", "pid", *columns, "--unknown-rows", "drop"], "--duplicates sum"),
        ([*roles, "--id", "pid", "--drop", "pid"], "named both by --id and by --drop"),
    ]
    for options, words in asked:
        out = [] if "--out" in options else ["--out", "f.json"]
        ended = run("fit", "o.csv", *options, *out)
        assert ended.code == 2
        assert words in ended.err
        assert not re.search(r"`(?!riskset )|\b[a-z_]+=", ended.err), ended.err


def test_warnings_name_options(run: Run) -> None:
    ended = run("path", CASES / "01-no-events-in-exposed" / "input.csv", "--max-iter", 1)
    assert "raise --max-iter" in ended.err
    assert "statuses" not in ended.err


@pytest.mark.parametrize(
    ("python", "key"),
    [
        ("or pass `duplicates='sum'` to add them up", "or pass `duplicates: sum` to add them up"),
        ("pass `descendants=False`; for drugs", "pass `descendants: false`; for drugs"),
        ("set `caliper=1` or `trim=None`.", "set `caliper: 1` or `trim: none`."),
        ("or use `model='finegray'`.", "or use `kind: finegray`."),
        ("choose one with `table`.", "choose one with `table`."),
        ("age = 3, 'x=1', column 'a=b'", "age = 3, 'x=1', column 'a=b'"),
    ],
)
def test_messages_of_studies_name_keys(python: str, key: str) -> None:
    assert spoken(python, KEYS) == key


def test_names_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """The terminal library would print an emoji for ":100:"."""
    output().print("matched 1:100: ok")
    warn("matched 1:100: few")
    written = capsys.readouterr()
    assert written.out == "matched 1:100: ok\n"
    assert written.err == "Warning: matched 1:100: few\n"
