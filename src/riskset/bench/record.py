"""One measurement, and tables of them: CSV for programs, Markdown for readers."""

import csv
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

from riskset.data.writers import replacing

__all__ = [
    "AS_GOOD",
    "BenchmarkRecord",
    "grouped",
    "line",
    "markdown",
    "read_csv",
    "with_gaps",
    "write_csv",
]

AS_GOOD = 0.01
"""Objectives further apart are not equally good: a likelihood ratio of one per cent."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRecord:
    """What one competitor did on one problem; None where it does not apply or is not known.

    Attributes
    ----------
    experiment, model : str
        Model "cox" or "finegray".
    n_rows, n_columns, n_entries, n_events : int
        The problem: rows, covariates, non-zeros, events of the cause studied.
    tool, version, threads : str, str, int
        Who did it.
    step : str
        What was done.
    l1, l2 : float
        Strengths of the penalty, given or chosen.
    tol : float
        The tolerance that was asked for, in the words of the tool.
    prepare : float
        Seconds to bring the data, sparse columns in memory, into the tool's own form.
    seconds, fastest, slowest : float
        Wall-clock time of the step: median and range of the repetitions.
    cpu : float
        CPU seconds of all threads, which other work on the machine hardly changes: median.
    passes : float
        How often the step read every non-zero.
    peak_mb : float
        Resident memory at the peak beyond that before, in MiB.
    objective : float
        Minus the log partial likelihood, plus the penalty: smaller is better.
    gap : float
        Objective above the smallest on the same problem.
    kkt : float
        Relative KKT residual; of a cross-validation the largest of all replicates.
    n_nonzero : int
        Coefficients other than 0.
    rate, ceiling, unit : float, float, str
        What was done by the unit of time, or the other way round; the most the machine can do.
    share : float
        Time that the ceiling would take, as a share of the time taken.
    note : str
        Remarks, or why there is no time.
    processor : str
    """

    experiment: str
    model: str = ""
    n_rows: int | None = None
    n_columns: int | None = None
    n_entries: int | None = None
    n_events: int | None = None
    tool: str = "riskset"
    version: str = ""
    threads: int | None = None
    step: str = "fit"
    l1: float | None = None
    l2: float | None = None
    tol: float | None = None
    prepare: float | None = None
    seconds: float | None = None
    fastest: float | None = None
    slowest: float | None = None
    cpu: float | None = None
    passes: float | None = None
    peak_mb: float | None = None
    objective: float | None = None
    gap: float | None = None
    kkt: float | None = None
    n_nonzero: int | None = None
    rate: float | None = None
    ceiling: float | None = None
    unit: str = ""
    share: float | None = None
    note: str = ""
    processor: str = ""

    @property
    def problem(self) -> tuple[object, ...]:
        """Records of one problem have objectives that can be compared."""
        size = (self.n_rows, self.n_columns, self.n_entries, self.n_events)
        return (self.model, *size, self.step, self.l1, self.l2)

    @property
    def is_as_good(self) -> bool:
        """Whether no tool reached a clearly better objective."""
        return self.gap is None or self.gap <= AS_GOOD


NAMES = tuple(field.name for field in fields(BenchmarkRecord))


def _kind(hint: object) -> type:
    """The type of a field, without None."""
    kinds = get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return next(kind for kind in kinds if isinstance(kind, type) and kind is not type(None))


KINDS: Mapping[str, type] = {
    name: _kind(hint) for name, hint in get_type_hints(BenchmarkRecord).items()
}

HEADS = {
    "n_rows": "rows",
    "n_columns": "columns",
    "n_entries": "non-zeros",
    "n_events": "events",
    "prepare": "prepare, s",
    "cpu": "CPU, s",
    "peak_mb": "peak, MiB",
    "kkt": "KKT residual",
    "gap": "above the best",
    "n_nonzero": "not 0",
    "share": "of the ceiling",
}


def with_gaps(records: Iterable[BenchmarkRecord]) -> list[BenchmarkRecord]:
    """The same records, each objective compared with the best on its problem."""
    records = list(records)
    best: dict[tuple[object, ...], float] = {}
    for record in records:
        if record.objective is not None:
            known = best.get(record.problem, record.objective)
            best[record.problem] = min(known, record.objective)
    return [
        r if r.objective is None else replace(r, gap=r.objective - best[r.problem]) for r in records
    ]


def write_csv(path: Path, records: Iterable[BenchmarkRecord]) -> None:
    """All fields of all records; numbers keep their digits, what is unknown stays empty."""
    with replacing(path) as (temporary,), temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, NAMES, lineterminator="\n")
        writer.writeheader()
        for record in records:
            writer.writerow(asdict(record))


def read_csv(path: Path) -> list[BenchmarkRecord]:
    """What `write_csv` wrote."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [
        BenchmarkRecord(**{name: _read(text, KINDS[name]) for name, text in row.items()})
        for row in rows
    ]


def _read(text: str, kind: type) -> Any:
    return None if text == "" and kind is not str else kind(text)


def markdown(title: str, records: Sequence[BenchmarkRecord], preface: Sequence[str] = ()) -> str:
    """A table for readers: what is the same in all rows, or empty, stands before it or nowhere.

    Times of competitors whose objective is not `AS_GOOD` as the best stand in brackets.
    """
    values = {name: [getattr(record, name) for record in records] for name in NAMES}
    varying = [
        name
        for name, column in values.items()
        if name not in ("experiment", "fastest", "slowest", "processor")
        and any(value not in (None, "") for value in column)
        and (len(set(column)) > 1 or KINDS[name] is float or name == "tool")
    ]
    same = [
        f"{HEADS.get(name, name)} {_word(name, column[0])}"
        for name, column in values.items()
        if name in ("n_rows", "n_columns", "n_entries", "n_events", "threads", "model", "l1", "tol")
        and name not in varying
        and records
        and column[0] not in (None, "")
    ]
    lines = [f"# {title}", ""]
    for line in preface:
        lines += [line, ""]
    if same:
        lines += [f"All rows: {', '.join(same)}.", ""]
    lines += ["| " + " | ".join(HEADS.get(name, name) for name in varying) + " |"]
    lines.append("|" + "|".join("---" if KINDS[name] is str else "---:" for name in varying) + "|")
    lines += [
        "| " + " | ".join(_cell(record, name) for name in varying) + " |" for record in records
    ]
    if any(not record.is_as_good for record in records):
        lines += ["", f"In brackets: times to an objective more than {AS_GOOD} above the best."]
    return "\n".join(lines) + "\n"


def _cell(record: BenchmarkRecord, name: str) -> str:
    word = _word(name, getattr(record, name))
    if name == "seconds" and word:
        if record.fastest is not None and record.fastest != record.slowest:
            word += f" ({_word(name, record.fastest)} to {_word(name, record.slowest)})"
        return word if record.is_as_good else f"[{word}]"
    return word.replace("|", "\\|")


def _word(name: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    assert isinstance(value, float)
    if name in ("kkt", "gap", "tol"):
        return f"{value:.1e}"
    if name == "objective":
        return f"{value:.6f}"
    if name == "passes":
        return f"{value:,.1f}"
    if name == "peak_mb":
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def grouped(
    records: Iterable[BenchmarkRecord], *names: str
) -> list[tuple[tuple[object, ...], list[BenchmarkRecord]]]:
    """Records with the same values of some fields together, in the order of their first."""
    found: dict[tuple[object, ...], list[BenchmarkRecord]] = {}
    for record in records:
        found.setdefault(tuple(getattr(record, name) for name in names), []).append(record)
    return list(found.items())


def line(
    records: Iterable[BenchmarkRecord], x: str, y: str = "seconds"
) -> tuple[list[float], list[float]]:
    """Two fields of some records, as a line of a picture; None counts as 0."""
    pairs = [(float(getattr(r, x) or 0), float(getattr(r, y) or 0)) for r in records]
    return [a for a, _ in pairs], [b for _, b in pairs]
