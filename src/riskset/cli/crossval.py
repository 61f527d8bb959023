"""The options of ``--cv``, and the estimator that they ask for."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import riskset as rs
from riskset._errors import InputError
from riskset.cli.inputs import Columns, Tables
from riskset.cli.resampling import Resampling

if TYPE_CHECKING:
    from riskset._types import AnyArray
    from riskset.model.penalty import Penalty

__all__ = ["CrossValidating", "as_typed"]

PANEL = "Cross-validation"
TRIED = re.compile(r"(?<=that was tried \()(?:L1|L2|ElasticNet)\(.*\)(?=\): )")
"""A penalty in a note, as Python shows it."""


class Search(StrEnum):
    """How penalties are chosen to be compared."""

    auto = "auto"
    grid = "grid"


class Rule(StrEnum):
    """Which penalty is chosen."""

    min = "min"
    one_se = "1se"


class Score(StrEnum):
    """What is compared."""

    held_out = "held_out"
    difference = "difference"


class Censoring(StrEnum):
    """Which rows estimate the distribution of censoring."""

    training = "training"
    full = "full"


def _option(*names: str, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=PANEL, **more)


@dataclass(frozen=True, kw_only=True)
class CrossValidating:
    """A choice of the penalty by cross-validation, if it is asked for."""

    cv: Annotated[
        bool,
        _option(
            "--cv",
            help="Choose the penalty by cross-validation; strengths or variances given, more than "
            "one, are compared instead of a search.",
        ),
    ] = False
    folds: Annotated[int | None, _option(metavar="K", help="Folds (default 10).")] = None
    repeats: Annotated[
        int | None, _option(metavar="R", help="Times the rows are divided anew (default 10).")
    ] = None
    search: Annotated[
        Search | None, _option(help="Look for the best (auto, default), or compare a grid.")
    ] = None
    n_penalties: Annotated[
        int | None, _option(metavar="K", help="Strengths of a grid (default 20).")
    ] = None
    min_ratio: Annotated[
        float | None, _option(metavar="R", help="Weakest strength over the strongest.")
    ] = None
    rule: Annotated[
        Rule | None,
        _option(help="Best mean (min, default), or strongest within one standard error (1se)."),
    ] = None
    score: Annotated[
        Score | None,
        _option(help="Likelihood of held-out rows (default), or of all minus training rows."),
    ] = None
    groups: Annotated[
        str | None, _option(metavar="COL", help="Rows with one value stay in one fold.")
    ] = None
    stratify: Annotated[
        bool, _option("--stratify", help="Spread events evenly over the folds.")
    ] = False
    fold: Annotated[
        list[str] | None,
        _option(metavar="COL", help="Fold of each row, instead; one column a repetition."),
    ] = None
    censoring: Annotated[
        Censoring | None,
        _option(help="finegray: estimate censoring from training rows (default), or all."),
    ] = None
    checkpoint: Annotated[
        Path | None,
        _option(metavar="FILE", help="Keep finished replicates, to go on after an interrupt."),
    ] = None

    def __post_init__(self) -> None:
        given = {
            f"--{name.replace('_', '-')}": value
            for name, value in vars(self).items()
            if name != "cv" and value is not False and value not in (None, [])
        }
        if not self.cv:
            for option in given:
                raise InputError(f"{option} needs --cv.", hint="add it, or leave this out.")
        if self.fold:
            for option in ("--folds", "--repeats", "--groups", "--stratify"):
                if option in given:
                    raise InputError(
                        f"{option} and --fold were given together.",
                        hint="--fold says which rows are left out; leave one of them out.",
                    )

    def without(self, columns: Columns) -> Columns:
        """The columns of folds and groups, unless they have another role, are no covariates."""
        used = {columns.time, columns.event, columns.entry, columns.weight, columns.cluster}
        used |= {columns.offset, columns.id, *(columns.strata or ()), *(columns.drop or ())}
        own = [name for name in self._names() if name not in used]
        return replace(columns, drop=[*(columns.drop or ()), *own]) if own else columns

    def _names(self) -> list[str]:
        return [*(self.fold or ()), *([self.groups] if self.groups else ())]

    def estimator(
        self,
        model: "rs.Cox | rs.FineGray",
        penalties: "Sequence[Penalty]",
        rows: Path,
        tables: Tables,
        resampling: Resampling,
    ) -> "rs.CoxCV | rs.FineGrayCV":
        """The same model, its penalty to be chosen."""
        # Here, because it brings DuckDB and pyarrow.
        from riskset.data.columns import read_labels

        options: dict[str, Any] = {
            "n_penalties": self.n_penalties,
            "min_ratio": self.min_ratio,
            "repeats": self.repeats,
            "folds": self.folds,
            "search": self.search and self.search.value,
            "rule": self.rule and self.rule.value,
            "score": self.score and self.score.value,
            "censoring": self.censoring and self.censoring.value,
            "checkpoint": self.checkpoint,
            "penalties": tuple(penalties) or None,
            "stratify": self.stratify or None,
            "seed": resampling.seed,
            "engine": resampling.engine and resampling.engine.value,
        }
        labels: list[AnyArray] = []
        if self._names():
            labels = read_labels(rows, self._names(), table=tables.table, query=tables.query)
        if self.fold:
            options["folds"] = _stacked(labels[: len(self.fold)])
        elif self.groups:
            options["groups"] = labels[-1]
        kind = rs.CoxCV if isinstance(model, rs.Cox) else rs.FineGrayCV
        chosen = {name: value for name, value in options.items() if value is not None}
        return kind(**model.get_params(deep=False), **chosen)


def as_typed(model: "rs.Cox | rs.FineGray", spelled: "Callable[[Penalty], str]") -> None:
    """Let notes call the best penalty as the caller did."""
    assert isinstance(model, (rs.CoxCV, rs.FineGrayCV))
    found = model.cross_validation_
    best = found.penalties[found.best]
    assert best is not None
    words = spelled(best)
    model.notes_ = [
        replace(note, message=TRIED.sub(lambda _: words, note.message)) for note in model.notes_
    ]


def _stacked(columns: "Sequence[AnyArray]") -> "AnyArray":
    """One row for each repetition; one alone is no stack, so that messages do not number it."""
    import numpy as np

    return columns[0] if len(columns) == 1 else np.array([c.astype(str) for c in columns])
