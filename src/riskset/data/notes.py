"""Notes on how data were read."""

from collections.abc import Iterator, Mapping

from riskset._messages import Note, Value
from riskset.data.column_roles import ColumnRoles
from riskset.data.formula import FormulaEncoder
from riskset.data.frame import FrameEncoder
from riskset.data.levels import MANY_LEVELS, is_missing_code
from riskset.data.missing_values import MISSING_LEVEL, missing_rows_of
from riskset.data.table import INDEX, Table

__all__ = ["notes_on_columns", "notes_on_entries", "notes_on_missing"]


def notes_on_columns(
    table: Table, asked: ColumnRoles, roles: ColumnRoles, encoder: FrameEncoder | FormulaEncoder
) -> list[Note]:
    """Columns recognised by name, and categories and identifiers that may not be what was meant.

    `asked` are the roles that the caller gave, `roles` those found in the table.
    """
    return [
        *_notes_on_index(table, roles),
        *_notes_on_recognised(table, asked, roles),
        *_notes_on_levels(table, encoder),
        *notes_on_missing(table, encoder),
        *(
            Note(
                "identifier",
                (name,),
                "{column} looks like an identifier, but is used as a covariate: name it with "
                "`id`, `cluster` or `strata`, or leave it out with `drop`, unless it is an amount.",
                {"column": Value("name", table.words.column(name))},
            )
            for name in encoder.identifiers
        ),
    ]


def _notes_on_recognised(table: Table, asked: ColumnRoles, roles: ColumnRoles) -> list[Note]:
    before, after = asked.columns(), roles.columns()
    recognised = [
        f"column {after[role][0]!r} as {role}"
        for role in ("strata", "weight")
        if role in after and role not in before
    ]
    if not recognised:
        return []
    values = {
        "place": Value("name", table.words.place),
        "listed": Value("name", " and ".join(recognised)),
    }
    return [Note("recognised", (), "{place} has OHDSI's names: took {listed}.", values)]


def _notes_on_levels(table: Table, encoder: FrameEncoder | FormulaEncoder) -> Iterator[Note]:
    words = table.words
    for name in encoder.single_level:
        values = {
            "column": Value("name", words.column(name)),
            "level": Value("name", repr(encoder.levels[name][0])),
        }
        yield Note(
            "constant",
            (name,),
            "{column} has the level {level} in every row, so no model can use it.",
            values,
        )
    for name, levels in encoder.levels.items():
        column = Value("name", words.column(name))
        codes = [level for level in levels if is_missing_code(level)]
        if codes:
            values = {"column": column, "codes": Value("name", " and ".join(map(repr, codes)))}
            yield Note(
                "missing_codes",
                (name,),
                "{column} has the level {codes}, which counts as a category like any other; if it "
                "stands for missing values, drop or impute these rows.",
                values,
            )
        if len(levels) > MANY_LEVELS:
            yield Note(
                "many_levels",
                (name,),
                "{column} has {n:,} levels, each of which is a covariate; if they are groups and "
                "not a characteristic, name it with `cluster` or `strata`, or leave it out with "
                "`drop`.",
                {"column": column, "n": Value("things", len(levels))},
            )


def notes_on_missing(table: Table, encoder: FrameEncoder | FormulaEncoder) -> Iterator[Note]:
    """Columns whose missing values have an indicator."""
    levels = (name for name, known in encoder.levels.items() if MISSING_LEVEL in known)
    for name in (*levels, *encoder.fills):
        n = int(missing_rows_of(table.array(name)).sum())
        yield Note(
            "missing_values",
            (name,),
            "{column} has no value in {n:row|rows}, for which {indicator} stands.",
            {
                "column": Value("name", table.words.column(name)),
                "n": Value("count", n),
                "indicator": Value("name", repr(f"{name}={MISSING_LEVEL}")),
            },
        )


def _notes_on_index(table: Table, roles: ColumnRoles) -> list[Note]:
    """An index that somebody gave a name may have been meant for a covariate."""
    names = [name for name in roles.covariates_among(table.columns) if name in table.index]
    return [
        Note(
            "index",
            (name,),
            "{column} is the index of a pandas frame, so it is not used as a covariate; if it is "
            "one, call reset_index() before the data are written.",
            {"column": Value("name", table.words.column(name))},
        )
        for name in names
        if not INDEX.fullmatch(name)
    ]


def notes_on_entries(
    n_dropped: Mapping[str, int], n_covariates: int, n_occurring: int
) -> tuple[Note, ...]:
    """Entries of a long table that were left out or merged, and whether any was left.

    The model has `n_covariates` of the long table, of which `n_occurring` have entries.
    """
    covariates = {
        "unseen": Value("things", n_dropped.get("unseen_covariates", 0)),
        "known": Value("things", n_occurring),
    }
    sentences = {
        "unknown_rows": "entries of the long table left out because the outcomes do not have "
        "their rows: {n:,}.",
        "repeated_entries": "entries of the long table merged with another one of the same row and "
        "covariate: {n:,}.",
        "entries_of_unseen_covariates": "entries of the long table left out because the model was "
        "fitted without their covariates: {n:,} (of {unseen:,} covariates; the model knows "
        "{known:,}).",
    }
    notes = [
        Note("dropped", (), text, {"n": Value("count", n_dropped[what]), **covariates})
        for what, text in sentences.items()
        if what in n_dropped
    ]
    if n_covariates and not n_occurring:
        message = (
            "no entry of the long table belongs to any row, so the model's {n:,} covariates of "
            "such a table are 0 in every row."
        )
        notes.append(Note("no_entries", (), message, {"n": Value("things", n_covariates)}))
    return tuple(notes)
