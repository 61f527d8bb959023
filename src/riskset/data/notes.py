"""Notes on how data were read."""

from collections.abc import Iterator, Mapping

from riskset._messages import Note
from riskset.data.column_roles import ColumnRoles
from riskset.data.frame import FrameEncoder
from riskset.data.levels import MANY_LEVELS, is_missing_code
from riskset.data.table import INDEX, Table

__all__ = ["notes_on_columns", "notes_on_entries"]


def notes_on_columns(
    table: Table, asked: ColumnRoles, roles: ColumnRoles, encoder: FrameEncoder
) -> list[Note]:
    """Columns recognised by name, and categories and identifiers that may not be what was meant.

    `asked` are the roles that the caller gave, `roles` those found in the table.
    """
    return [
        *_notes_on_index(table, roles),
        *_notes_on_recognised(table, asked, roles),
        *_notes_on_levels(table, encoder),
        *(
            Note(
                "identifier",
                (name,),
                f"{table.words.column(name)} looks like an identifier, but is used as a covariate: "
                "name it with `id`, `cluster` or `strata`, or "
                "leave it out with `drop`, unless it is an amount.",
            )
            for name in encoder.identifiers
        ),
    ]


def _notes_on_recognised(table: Table, asked: ColumnRoles, roles: ColumnRoles) -> list[Note]:
    before, after = asked.columns(), roles.columns()
    found = [
        f"column {after[role][0]!r} as {role}"
        for role in ("strata", "weight")
        if role in after and role not in before
    ]
    if not found:
        return []
    place, listed = table.words.place, " and ".join(found)
    return [Note("recognised", (), f"{place} has OHDSI's names: took {listed}.")]


def _notes_on_levels(table: Table, encoder: FrameEncoder) -> Iterator[Note]:
    words = table.words
    for name in encoder.single_level:
        level = encoder.levels[name][0]
        yield Note(
            "constant",
            (name,),
            f"{words.column(name)} has the level {level!r} in every row, so no model can use it.",
        )
    for name, levels in encoder.levels.items():
        column = words.column(name)
        codes = [level for level in levels if is_missing_code(level)]
        if codes:
            shown = " and ".join(map(repr, codes))
            yield Note(
                "missing_codes",
                (name,),
                f"{column} has the level {shown}, which counts as a category like any other; if it "
                "stands for missing values, drop or impute these rows.",
            )
        if len(levels) > MANY_LEVELS:
            yield Note(
                "many_levels",
                (name,),
                f"{column} has {len(levels):,} levels, each of which is a covariate; if they are "
                "groups and not a characteristic, name it with `cluster` or `strata`, or leave it "
                "out with `drop`.",
            )


def _notes_on_index(table: Table, roles: ColumnRoles) -> list[Note]:
    """An index that somebody gave a name may have been meant for a covariate."""
    names = [name for name in roles.covariates_among(table.columns) if name in table.index]
    return [
        Note(
            "index",
            (name,),
            f"{table.words.column(name)} is the index of a pandas frame, so it is not used as a "
            "covariate; if it is one, call reset_index() before the data are written.",
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
    unseen = n_dropped.get("unseen_covariates", 0)
    sentences = {
        "unknown_rows": "entries of the long table left out because the outcomes do not have "
        "their rows: {:,}.",
        "repeated_entries": "entries of the long table merged with another one of the same row and "
        "covariate: {:,}.",
        "entries_of_unseen_covariates": "entries of the long table left out because the model was "
        f"fitted without their covariates: {{:,}} (of {unseen:,} covariates; the model knows "
        f"{n_occurring:,}).",
    }
    notes = [
        Note("dropped", (), sentence.format(n_dropped[what]))
        for what, sentence in sentences.items()
        if what in n_dropped
    ]
    if n_covariates and not n_occurring:
        message = (
            "no entry of the long table belongs to any row, so the model's "
            f"{n_covariates:,} covariates of such a table are 0 in every row."
        )
        notes.append(Note("no_entries", (), message))
    return tuple(notes)
