"""Run every launch under the address sanitizer: ``python -m gpu.watched``, with it preloaded.

With ``--fault``, those of one source with a loop that goes one too far.
"""

import ctypes
import sys

from emulator.backend import Emulator
from emulator.build import Library, compiled, source_of
from gpu.calls import NAMES, records
from riskset.data import device as data
from riskset.kernels.cuda import scan_plan
from riskset.kernels.cuda.compile import program
from riskset.kernels.cuda.signatures import topics

FAULT = ("i < n_rows && i < (chunk + 1) * STRIDE; ++i)\n    sum", "i <= n_rows; ++i)\n    sum")


def main(*, is_faulty: bool) -> None:
    scan_plan.PIECE, scan_plan.CHUNK = 3, 4
    data.PANEL_ROWS, data.PARTIAL_NUMBERS = 32, 1000
    chosen = ["sums"] if is_faulty else topics()
    path = compiled(source_of("sums", FAULT) if is_faulty else program(), watched=True)
    sources = dict.fromkeys(chosen, Library(path, ctypes.CDLL(str(path))))
    backend = Emulator(seed=9, resident=2, sources=sources)
    for name in NAMES:
        for record in records(name):
            if record.kernel.topic in chosen:
                record.again(backend)
    print("clean")


if __name__ == "__main__":
    main(is_faulty="--fault" in sys.argv)
