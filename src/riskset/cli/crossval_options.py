"""The options of ``--cv``, and the estimator that they ask for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import riskset as rs
from riskset._errors import InputError, counted
from riskset._types import AnyArray
from riskset.cli.input_options import ColumnOptions, TableOptions, check_readable
from riskset.cli.interval_options import BootstrapOptions
from riskset.cli.options import chosen, given, option, require

if TYPE_CHECKING:
    from riskset.model.penalty import Penalty

__all__ = ["CrossValidationOptions", "as_typed"]

PANEL = "Cross-validation"
APART = "--fold says which rows are left out; leave one of them out."


@dataclass(frozen=True, kw_only=True)
class CrossValidationOptions:
    """A choice of the penalty by cross-validation, if it is asked for."""

    cv: bool = option(
        "Choose the penalty by cross-validation: among the strengths or variances given, or by a "
        "search. A single one is scored.",
        False,
        panel=PANEL,
    )
    folds: int | None = option(
        "Divide the rows into this number of folds (default 10).", metavar="K", panel=PANEL
    )
    repeats: int | None = option(
        "Divide the rows into folds this number of times (default 10).",
        metavar="R",
        panel=PANEL,
    )
    search: Literal["auto", "grid"] | None = option(
        "Look for the best penalty by an adaptive search (auto, default) or on a grid.",
        panel=PANEL,
    )
    n_penalties: int | None = option(
        "Try this number of strengths on the grid (default 20).", metavar="K", panel=PANEL
    )
    min_ratio: float | None = option(
        "Set the ratio of the weakest strength to the strongest.", metavar="R", panel=PANEL
    )
    rule: Literal["min", "1se"] | None = option(
        "Choose the penalty with the best mean score (min, default), or the strongest within one "
        "standard error of it (1se).",
        panel=PANEL,
    )
    score: Literal["held_out", "difference"] | None = option(
        "Score by the likelihood of the held-out rows (default), or by that of all rows minus that "
        "of the training rows (difference).",
        panel=PANEL,
    )
    groups: str | None = option(
        "Keep the rows of a group in this column in one fold.", metavar="COL", panel=PANEL
    )
    stratify: bool = option("Spread events evenly over the folds.", False, panel=PANEL)
    fold: list[str] | None = option(
        "Read the fold of each row from this column, in place of --folds. Give one column for each "
        "repetition.",
        metavar="COL",
        panel=PANEL,
    )
    censoring: Literal["training", "full"] | None = option(
        "finegray: estimate the censoring distribution from the training rows (default) or from "
        "all rows.",
        panel=PANEL,
    )
    checkpoint: Path | None = option(
        "Save finished replicates to this file, so that an interrupted run can be resumed.",
        metavar="FILE",
        panel=PANEL,
    )

    def __post_init__(self) -> None:
        if not self.cv:
            require(given(self), "--cv")
        if self.fold:
            for one in given(self, "folds", "repeats", "groups", "stratify"):
                raise InputError(f"{one} and --fold were given together.", hint=APART)

    def check(self, n_given: int, model: str, *, has_idle_seed: bool) -> None:
        """Refuse options without effect, such as a seed for given folds (`has_idle_seed`).

        `n_given` is the number of penalties that were given.
        """
        if n_given:
            for one in given(self, "search", "n_penalties", "min_ratio"):
                raise InputError(
                    f"{one} and {counted(n_given, 'penalty', 'penalties')} to score were given "
                    "together.",
                    hint="it is for a search; leave one of them out.",
                )
        if n_given == 1 and self.rule is not None:
            raise InputError(
                "--rule chooses among penalties, but one was given.",
                hint="give several, or none for a search; or leave it out.",
            )
        if self.search != "grid":
            require(given(self, "n_penalties"), "--search grid")
        if model != "finegray":
            require(given(self, "censoring"), "--model finegray", "leave it out.")
        if self.fold and has_idle_seed:
            raise InputError("--seed and --fold were given together.", hint=APART)

    def read(
        self,
        rows: Path,
        columns: ColumnOptions,
        tables: TableOptions,
        censoring_group: str | None,
    ) -> "tuple[ColumnOptions, list[AnyArray]]":
        """The labels of folds and groups, and the columns without them.

        They are not covariates, but keep any role that they have otherwise.
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
        if columns.formula is not None:  # which names all covariates
            return columns, labels
        unused = {name for _, name in named} & set(roles.covariates_among(known))
        return replace(columns, drop=[*(columns.drop or ()), *sorted(unused)]), labels

    def estimator(
        self,
        model: "rs.Cox | rs.FineGray",
        penalties: "Sequence[Penalty]",
        labels: "Sequence[AnyArray]",
        bootstrap: BootstrapOptions,
    ) -> "rs.CoxCV | rs.FineGrayCV":
        """The same model, its penalty to be chosen."""
        from riskset.estimators._parameters import shared_parameters

        kind = rs.CoxCV if isinstance(model, rs.Cox) else rs.FineGrayCV
        options = chosen(self) | shared_parameters(model, kind)
        options |= {k: v for k, v in chosen(bootstrap).items() if k in ("seed", "engine")}
        for name in ("cv", "fold", "groups"):
            options.pop(name, None)
        if penalties:
            options["penalties"] = tuple(penalties)
        if self.fold:
            options["folds"] = _stacked(labels)
        elif self.groups:
            (options["groups"],) = labels
        return kind(**options)


def as_typed(model: "rs.Cox | rs.FineGray", spelled: "Callable[[Penalty], str]") -> None:
    """Let notes call the best penalty as the caller did."""
    assert isinstance(model, (rs.CoxCV, rs.FineGrayCV))
    validation = model.cross_validation_
    best = validation.penalties[validation.best]
    assert best is not None
    words = spelled(best)
    model.notes_ = [
        note.with_values(penalty=words) if note.code == "edge_of_search" else note
        for note in model.notes_
    ]


def _stacked(columns: "Sequence[AnyArray]") -> AnyArray:
    """One row for each repetition; one alone is no stack, so that messages do not number it."""
    import numpy as np

    return columns[0] if len(columns) == 1 else np.array([c.astype(str) for c in columns])
