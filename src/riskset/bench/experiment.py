"""What all experiments have in common, and how one is run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from riskset._runtime import available_threads
from riskset.bench.case import Case
from riskset.bench.measure import machine
from riskset.bench.peers import Peers
from riskset.bench.record import BenchmarkRecord, markdown, with_gaps, write_csv
from riskset.bench.works import ChosenWork, WorkKind, default_works
from riskset.data.writers import replacing
from riskset.plot.timings import Figure, time_dots

__all__ = [
    "STRENGTH",
    "TOL",
    "VARIANCE",
    "Experiment",
    "ProgressCall",
    "WorkExperiment",
    "dots",
    "run",
]

VARIANCE = 1.414
"""Of the Laplace prior in the paper's scripts. Its text says gamma = sqrt(2); the scripts count."""
STRENGTH = (2 / VARIANCE) ** 0.5
TOL = 1e-8
ENOUGH_SECONDS = 15.0
"""What took as long in all is not repeated any more."""

ProgressCall = Callable[[float, str], None]
"""Called with the share of the work that is done, and what comes next."""


class Experiment(Protocol):
    """One experiment with its options."""

    name: ClassVar[str]
    title: ClassVar[str]
    words: ClassVar[str]
    """What a reader of the table has to know."""

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """Measure, one competitor after the other."""

    def picture(self, records: Sequence[BenchmarkRecord]) -> Figure:
        """Draw what was measured."""

    @property
    def peers(self) -> Peers | None:
        """Other programs that take part."""


@dataclass(frozen=True)
class WorkExperiment:
    """The options of an experiment with several kinds of work; none given: all by default."""

    name: ClassVar[str]
    kinds: ClassVar[Mapping[str, WorkKind]]

    works: Sequence[str] = ()
    threads: Sequence[int] = ()
    repeats: int = 3
    seed: int = 123
    tight: bool = False
    peers: Peers | None = None

    def records(self, progress: ProgressCall) -> Iterator[BenchmarkRecord]:
        """One work after the other."""
        works = [work for text in self.texts for work in ChosenWork.parse(text, self.kinds)]
        self.warm_up()
        for k, work in enumerate(works):
            progress(k / len(works), str(work))
            yield from self.measured(work)

    @property
    def texts(self) -> Sequence[str]:
        """What is measured, each a kind with or without a size."""
        return tuple(self.works) or default_works(self.kinds)

    def warm_up(self) -> None:
        """Have all kernels compiled, or loaded, by work that is not measured."""
        raise NotImplementedError

    def measured(self, work: ChosenWork) -> Iterator[BenchmarkRecord]:
        """Ours, then those of the peers."""
        raise NotImplementedError

    @property
    def counts(self) -> Sequence[int]:
        """Numbers of threads."""
        every = available_threads()
        return tuple(self.threads) or tuple(sorted({1, min(2, every), every}))

    @property
    def timing(self) -> Mapping[str, Any]:
        """How often something is measured: what takes long is not repeated."""
        return {"repeats": self.repeats, "enough": ENOUGH_SECONDS}

    def beside(self, case: Case, l1: float, **asked: Any) -> Iterator[BenchmarkRecord]:
        """The peers on the same problem, at their own tolerances and, if asked for, at tight ones.

        `asked`: see `Peers.records`.
        """
        if self.peers is None:
            return
        for is_tight in (False, True)[: 1 + self.tight]:
            options = asked if is_tight else asked | {"has_default_tolerance": 1}
            yield from self.peers.records(case, l1, threads=self.counts, **options)


def dots(records: Sequence[BenchmarkRecord]) -> Figure:
    """Seconds of each program on works of different kinds; open where it stopped early."""
    works: dict[str, dict[str, float]] = {}
    unfinished = []
    for r in records:
        if r.seconds is None:
            continue
        sizes = (size for size in (r.n_rows, r.n_columns) if size is not None)
        work = f"{r.step}, {' x '.join(f'{size:,}' for size in sizes)}"
        threads = f", {r.threads} threads" if r.threads not in (None, 1) else ""
        tool = r.tool + threads + (", tight" if r.tool != "riskset" and r.tol is not None else "")
        works.setdefault(work, {})[tool] = r.seconds
        if not r.is_as_good:
            unfinished.append((work, tool))
    return time_dots(works, unfinished=unfinished)


@dataclass(frozen=True)
class Written:
    """The files of an experiment."""

    csv: Path
    markdown: Path
    picture: Path
    records: list[BenchmarkRecord] = field(repr=False)


def run(
    experiment: Experiment,
    folder: Path,
    progress: ProgressCall = lambda share, detail: None,
    seen: Callable[[BenchmarkRecord], None] = lambda record: None,
) -> Written:
    """Run an experiment into ``NAME.csv``, ``NAME.md`` and ``NAME.png``.

    The tables are written anew after every measurement, so that one that is ended early keeps what
    it has.
    """
    table, page, picture = (folder / f"{experiment.name}.{kind}" for kind in ("csv", "md", "png"))
    preface = [experiment.words, *machine()]
    if experiment.peers is not None:
        preface += experiment.peers.preface
    records: list[BenchmarkRecord] = []
    for record in experiment.records(progress):
        records = with_gaps([*records, record])
        seen(records[-1])
        folder.mkdir(parents=True, exist_ok=True)  # not before the options have proved right
        write_csv(table, records)
        with replacing(page) as (temporary,):
            temporary.write_text(markdown(experiment.title, records, preface), "utf-8")
    with replacing(picture) as (temporary,):
        experiment.picture(records).savefig(temporary, dpi=200)
    return Written(table, page, picture, records)
