"""The options of ``--interval bootstrap``, and the bootstrap that they ask for."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from riskset._errors import InputError
from riskset.cli import options as opt

if TYPE_CHECKING:
    from collections.abc import Sequence

    import riskset as rs
    from riskset.infer.bootstrap_intervals import IntervalType as Kind

__all__ = ["Resampling"]


class IntervalType(StrEnum):
    """How an interval is made of replicates."""

    percentile = "percentile"
    basic = "basic"
    bca = "bca"
    normal = "normal"


class Engine(StrEnum):
    """Whose processes fit replicates."""

    joblib = "joblib"
    dask = "dask"
    ray = "ray"


Replicates = Annotated[
    int | None,
    typer.Option(
        metavar="B",
        help="bootstrap: number of resamples of rows, or of clusters (default 200).",
        rich_help_panel=opt.RESULT,
    ),
]
TypeOfInterval = Annotated[
    IntervalType | None,
    typer.Option(
        "--interval-type",
        help="bootstrap: how the interval is made (default percentile).",
        rich_help_panel=opt.RESULT,
    ),
]
Retune = Annotated[
    bool,
    typer.Option(
        "--retune",
        help="bootstrap, with --cv: choose the penalty anew in each resample.",
        rich_help_panel=opt.RESULT,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(help="The same seed, the same resamples (default 1).", rich_help_panel=opt.RUN),
]
EngineName = Annotated[
    Engine | None,
    typer.Option(
        help="--cv, bootstrap: fit in processes of joblib, Dask or Ray, not in threads. "
        "DASK_SCHEDULER_ADDRESS and RAY_ADDRESS name a cluster.",
        rich_help_panel=opt.RUN,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Resampling:
    """A bootstrap, if it is asked for."""

    replicates: Replicates = None
    interval_type: TypeOfInterval = None
    retune: Retune = False
    seed: Seed = None
    engine: EngineName = None

    @property
    def type(self) -> "Kind":
        """The kind of interval."""
        return (self.interval_type or IntervalType.percentile).value

    @property
    def n_replicates(self) -> int:
        """How many resamples."""
        return 200 if self.replicates is None else self.replicates

    def check(
        self, interval: opt.Interval | None, level: float, *, is_cross_validated: bool = False
    ) -> None:
        """Refuse options of a bootstrap without one, and one that is too small, before reading."""
        if interval is not opt.Interval.bootstrap:
            given = {
                "--replicates": self.replicates,
                "--interval-type": self.interval_type,
                "--retune": self.retune or None,
                "--seed": None if is_cross_validated else self.seed,
                "--engine": None if is_cross_validated else self.engine,
            }
            for option, value in given.items():
                if value is not None:
                    raise InputError(
                        f"{option} needs --interval bootstrap"
                        f"{' or --cv' if option in ('--seed', '--engine') else ''}.",
                        hint="add it, or leave this out.",
                    )
            return
        if self.retune and not is_cross_validated:
            raise InputError(
                "--retune needs --cv: it repeats how the penalty was chosen.",
                hint="add it, or leave this out.",
            )
        # Here, because it brings scikit-learn.
        from riskset.estimators.bootstrap import check_interval

        check_interval(self.n_replicates, level, self.type)

    def of(
        self, model: "rs.Cox | rs.FineGray", parameters: "Sequence[str] | None"
    ) -> "rs.Bootstrap":
        """The bootstrap of a fitted model."""
        seed = 1 if self.seed is None else self.seed
        return model.bootstrap(
            self.n_replicates,
            seed,
            retune=self.retune,
            parameters=parameters,
            engine=self.engine and self.engine.value,
        )
