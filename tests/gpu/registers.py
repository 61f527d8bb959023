"""What the kernels take of a multiprocessor, as the compiler reports it."""

import io
import re
from typing import NamedTuple

from riskset.kernels.cuda import compile as compiler


class Used(NamedTuple):
    """What a kernel takes of a multiprocessor."""

    registers: int
    spilled_bytes: int


def registers_used(arch: int, more: str = "") -> dict[str, Used]:
    """Registers of each kernel, and what did not fit into them; `more` is a source of others."""
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(arch=f"sm_{arch}", **compiler.OPTIONS, ptxas_options=["-v"])
    logs = io.StringIO()
    Program(compiler.program() + more, "c++", options).compile("cubin", logs=logs)
    found: dict[str, Used] = {}
    name, spilled = "", 0
    for line in logs.getvalue().splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", line):
            name, spilled = entry[1], 0
        elif spills := re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line):
            spilled = int(spills[1]) + int(spills[2])
        elif used := re.search(r"Used (\d+) registers", line):
            found[name] = Used(int(used[1]), spilled)
    return found
