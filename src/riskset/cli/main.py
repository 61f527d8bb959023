"""The entry point of ``riskset``: its commands, and how each ends.

Exit status 0: done, if need be with warnings. 2: the input or an option cannot be used, and nothing
was written. 1: a device, a disk, memory, or a fault of riskset. 143: ended by a signal (SIGTERM).
"""

import os
import signal
import sys
import traceback
from types import FrameType
from typing import Annotated

import typer

from riskset._errors import InputError, RisksetError
from riskset._messages import spoken
from riskset._version import __version__
from riskset.cli.bench import bench
from riskset.cli.bias import bias
from riskset.cli.curves import curves
from riskset.cli.demo import demo
from riskset.cli.federate import federate
from riskset.cli.fit import fit
from riskset.cli.info import info
from riskset.cli.kernel_compilation import compile_kernels
from riskset.cli.network import network
from riskset.cli.path import path
from riskset.cli.power import power
from riskset.cli.predict import predict
from riskset.cli.simulate import simulate
from riskset.cli.study import study
from riskset.cli.terminal import fail, spelled_warnings
from riskset.cli.wording import COMMAND_LINE

__all__ = ["app", "main"]

app = typer.Typer(
    help="Cox and Fine-Gray regression for massive observational data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["--help", "-h"]},
)
for command in (fit, path, predict, curves, power, bias, simulate, demo, info):
    app.command()(command)
app.command("compile")(compile_kernels)
app.add_typer(study, name="study")
app.add_typer(network, name="network")
app.add_typer(federate, name="federate")
app.add_typer(bench, name="bench")


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"riskset {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def _stop(number: int, frame: FrameType | None) -> None:
    # By default the process would end at once, and leave temporary files where results belong.
    sys.exit(128 + number)


def main() -> None:
    """Run the command line with the arguments of this process, and exit."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        with spelled_warnings():
            app()
    except InputError as error:
        fail(spoken(error, COMMAND_LINE))
        sys.exit(2)
    except (RisksetError, MemoryError) as error:
        fail(spoken(error, COMMAND_LINE) or "there is not enough memory for this.")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output, such as `head`, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        fail(f"{error.filename or 'a file'}: {error.strerror or error}.")
        # Names and permissions are for the caller to correct; a full or broken disk is not.
        is_input = isinstance(
            error, FileNotFoundError | PermissionError | IsADirectoryError | NotADirectoryError
        )
        sys.exit(2 if is_input else 1)
    except Exception as error:
        if os.environ.get("RISKSET_TRACEBACK"):
            traceback.print_exc()
        fail(
            f"this is a fault of riskset {__version__}, not of your data: "
            f"{type(error).__name__}: {error}\n"
            "Hint: run again with RISKSET_TRACEBACK=1 and report what it prints."
        )
        sys.exit(1)
