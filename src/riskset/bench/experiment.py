"""What all experiments have in common, and how one is run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Protocol

from riskset.bench.measure import machine
from riskset.bench.peers import Peers
from riskset.bench.record import BenchmarkRecord, markdown, with_gaps, write_csv
from riskset.data.writers import replacing
from riskset.plot import Figure

__all__ = ["STRENGTH", "TOL", "VARIANCE", "Experiment", "ProgressCall", "run"]

VARIANCE = 1.414
"""Of the Laplace prior in the paper's scripts. Its text says gamma = sqrt(2); the scripts count."""
STRENGTH = (2 / VARIANCE) ** 0.5
TOL = 1e-8

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
