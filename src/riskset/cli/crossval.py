"""The options of ``--cv``, and the estimator that they ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import riskset as rs
from riskset._errors import InputError, counted
from riskset.cli import options as opt
from riskset.cli.inputs import Columns, Tables, check_readable
from riskset.cli.resampling import Resampling

if TYPE_CHECKING:
    from riskset._types import AnyArray
    from riskset.model.penalty import Penalty

__all__ = ["CrossValidating", "as_typed"]

PANEL = "Cross-validation"


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
            help="Choose the penalty by cross-validation; strengths or variances that are given "
            "are compared instead of a search, and a single one is scored.",
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

    def check(self, n_given: int, model: opt.Model, *, has_idle_seed: bool) -> None:
        """Refuse what would not be looked at.

        Parameters
        ----------
        n_given : int
            Penalties that were given.
        has_idle_seed : bool
            Whether a seed was given that is for folds alone.
        """
        if n_given:
            for option, value in (
                ("--search", self.search),
                ("--n-penalties", self.n_penalties),
                ("--min-ratio", self.min_ratio),
            ):
                if value is not None:
                    raise InputError(
                        f"{option} was given beside {counted(n_given, 'penalty', 'penalties')} "
                        "to be scored.",
                        hint="it is for penalties that are looked for; leave one of them out.",
                    )
        if n_given == 1 and self.rule is not None:
            raise InputError(
                "--rule chooses among penalties, but one was given.",
                hint="give several, or none for a search; or leave it out.",
            )
        if self.n_penalties is not None and self.search is not Search.grid:
            raise InputError("--n-penalties needs --search grid.", hint="add it, or leave it out.")
        if self.censoring is not None and model is not opt.Model.finegray:
            raise InputError("--censoring needs --model finegray.", hint="leave it out.")
        if self.fold and has_idle_seed:
            raise InputError(
                "--seed and --fold were given together.",
                hint="--fold says which rows are left out; leave one of them out.",
            )

    def read(
        self, rows: Path, columns: Columns, tables: Tables, censoring_group: str | None
    ) -> "tuple[Columns, list[AnyArray]]":
        """The labels of folds and groups, and what the columns mean beside them.

        They are no covariates, but keep any role that they have otherwise.
        """
        named = [("--fold", name) for name in self.fold or ()]
        named += [("--groups", self.groups)] if self.groups else []
        if not named:
            return columns, []
        # Here, because it brings DuckDB and pyarrow.
        from riskset.data.readers import read_labels

        check_readable(rows)
        labels, known = read_labels(rows, named, table=tables.table, query=tables.query)
        roles = columns.roles(censoring_group).find(known, rows.name)
        own = {name for _, name in named} & set(roles.covariates_among(known))
        return replace(columns, drop=[*(columns.drop or ()), *sorted(own)]), labels

    def estimator(
        self,
        model: "rs.Cox | rs.FineGray",
        penalties: "Sequence[Penalty]",
        labels: "Sequence[AnyArray]",
        resampling: Resampling,
    ) -> "rs.CoxCV | rs.FineGrayCV":
        """The same model, its penalty to be chosen."""
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
        if self.fold:
            options["folds"] = _stacked(labels)
        elif self.groups:
            (options["groups"],) = labels
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
        note.with_values(penalty=words) if note.code == "edge_of_search" else note
        for note in model.notes_
    ]


def _stacked(columns: "Sequence[AnyArray]") -> "AnyArray":
    """One row for each repetition; one alone is no stack, so that messages do not number it."""
    import numpy as np

    return columns[0] if len(columns) == 1 else np.array([c.astype(str) for c in columns])
