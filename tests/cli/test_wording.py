"""Messages of the Python interface name options when they reach the command line."""

import re
from pathlib import Path

import pytest
import typer

from cli.runs import CASES, Run
from riskset.cli.main import app
from riskset.cli.wording import OPTIONS, in_keys, in_options


@pytest.mark.parametrize(
    ("python", "option"),
    [
        ("name it with `id`.", "name it with --id."),
        ("`time_digits` must be", "--time-digits must be"),
        ("pass unknown_rows='drop' to leave", "pass --unknown-rows drop to leave"),
        ("or duplicates='max' to keep", "or --duplicates max to keep"),
        (
            "or with covariate_columns=('rowId', 'covariateId') if every",
            "or with --covariate-columns rowId,covariateId if every",
        ),
        (
            "for example strata='site' or strata=['site', 'sex'].",
            "for example --strata site or --strata site --strata sex.",
        ),
        ("use device='cpu' or 'auto'.", "use --device cpu or 'auto'."),
        ("use penalty=None for a fit", "use --penalty none for a fit"),
        ("for example penalty=riskset.L1(1.0).", "for example --penalty l1 --strength 1."),
        ("with Cox(cause=...).", "with --model cox --cause."),
        (
            "choose one with `covariates_table`, or give a `covariates_query`.",
            "choose one with --covariates-table, or give a --covariates-query.",
        ),
        # What is no argument stays: names of columns, levels and commands.
        ("column 'time='3'' of a.csv; `riskset fit --out`", None),
        ("a row is at risk on (entry, time]", None),
    ],
)
def test_arguments_become_options(python: str, option: str | None) -> None:
    assert in_options(python) == (python if option is None else option)


def test_every_option_exists() -> None:
    group = typer.main.get_command(app)
    commands = group.commands.values()  # type: ignore[attr-defined]
    known = {name for command in commands for option in command.params for name in option.opts}
    assert set(OPTIONS.values()) <= known


def test_questions_of_the_data_layer_name_options(run: Run) -> None:
    Path("o.csv").write_text("pid,days,died,x\n1,5,1,0\n2,6,0,1\n3,7,1,0\n")
    Path("l.csv").write_text("person,concept\n1,7\n4,7\n1,7\n")
    roles = ["--time", "days", "--event", "died", "--out", "f.json"]
    columns = ["--covariates", "l.csv", "--covariate-columns", "person,concept"]
    asked = [
        ([], "name it with --time"),
        (roles[:2], "name it with --event"),
        ([*roles, *columns], "name it with --id"),
        ([*roles, "--id", "pid", "--covariates", "l.csv"], "--covariate-columns ROW,COVARIATE"),
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
        ("or pass duplicates='sum' to add them up", "or pass `duplicates: sum` to add them up"),
        ("pass descendants=False; for drugs", "pass `descendants: false`; for drugs"),
        ("or use model='finegray'.", "or use `kind: finegray`."),
        ("choose one with `table`, or give a `query`.", "choose one with `table`."),
        ("age = 3, 'x=1', column 'a=b'", "age = 3, 'x=1', column 'a=b'"),
    ],
)
def test_messages_of_studies_name_keys(python: str, key: str) -> None:
    assert in_keys(python) == key
