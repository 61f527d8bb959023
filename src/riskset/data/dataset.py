"""Outcomes and covariates of one table, or of a table and a long table.

A `Dataset` stores where every column came from, so that new data are read in the same way: with the
same roles, levels of categories and covariate keys. It counts everything that it leaves out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from riskset._errors import InputError
from riskset._keywords import keywords
from riskset._messages import Note
from riskset._types import AnyArray
from riskset.data.checks import Places
from riskset.data.column_roles import ColumnRoles
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.database import Database
from riskset.data.design import Design
from riskset.data.formula import FormulaEncoder
from riskset.data.frame import FrameEncoder, as_table
from riskset.data.long_covariates import LongInput, with_covariates
from riskset.data.model_formula import ModelFormula, covariate_terms, variables_of
from riskset.data.notes import notes_on_columns
from riskset.data.outcome import Outcome
from riskset.data.outcome_columns import OutcomeColumns, identified, places_of
from riskset.data.schema import LongOptions, Schema
from riskset.data.table import Table, TableWords
from riskset.data.table_files import Duplicates, LongTableFormat, UnknownRows

__all__ = ["Dataset", "assemble", "assemble_new"]


@dataclass(frozen=True, kw_only=True)
class LongTableRoles(LongTableFormat, ColumnRoles):
    """The columns of a table of outcomes, and how the long table of covariates is read."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Covariates and outcome columns of a data set, as they were read.

    Attributes
    ----------
    design : Design
        Covariates of the wide table, including all levels of categories, then covariates of the
        long table. Models leave out the first level of a category, the reference, where necessary.
    schema : Schema
        How to read new data in the same way.
    words : Words
        How messages call columns and rows.
    outcome_columns : OutcomeColumns
        Time, event, entry, weight, offset, cluster and strata, as they were read.
    cause : int, str or None
        Code or label of the event of interest, if it was chosen when the data were read.
    n_dropped : dict of str to int
        Counts of what was left out: ``unknown_rows`` (entries of the long table without a row in
        the outcomes), ``repeated_entries``, ``zero_entries``, ``unseen_covariates`` and
        ``entries_of_unseen_covariates`` (new data only). Zeros are not listed.
    notes : tuple of (code, columns, message)
        Information about how the data were read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame = pa.table(
    ...     {"days": [5, 8, 2], "died": [1, 0, 1], "age": [61, 70, 55], "sex": ["m", "f", "m"]}
    ... )
    >>> data = Dataset.from_frame(frame, time="days", event="died")
    >>> data.design.names
    ('age', 'sex=f', 'sex=m')
    >>> data.outcome().n_events
    2
    """

    design: Design
    schema: Schema
    words: TableWords
    outcome_columns: OutcomeColumns
    cause: int | str | None = None
    n_dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        return f"<Dataset: {self.design!r}>"

    @classmethod
    @keywords(ColumnRoles)
    def from_frame(cls, frame: object, columns: ColumnRoles) -> "Dataset":
        """Create a data set from a data frame with one row per subject or interval.

        Parameters
        ----------
        frame : data frame
            pandas, polars, Arrow, a DuckDB relation, or any frame that narwhals supports. Every
            column without a role is a covariate; see `FrameEncoder`.
        **keywords : the fields of `ColumnRoles`

        Returns
        -------
        Dataset
            In a table with a column ``rowId``, OHDSI's names ``rowId``, ``time``, ``y``,
            ``stratumId`` and ``weights`` (in any case, or with underscores) are recognised.

        Raises
        ------
        InputError
            If a column does not exist, a value is missing or infinite, or a type is not supported.
        """
        return assemble(as_table(frame), columns, None)

    @classmethod
    @keywords(LongTableRoles)
    def from_long(cls, outcomes: object, covariates: object, columns: LongTableRoles) -> "Dataset":
        """Create a data set from outcomes and a long table of covariates.

        Parameters
        ----------
        outcomes : data frame
            One row per subject; `id` is its key column. Further columns are covariates, too.
        covariates : data frame
            One row per non-zero value of a subject: a row key, a covariate key (64-bit integer or
            text, kept exactly, which becomes the name of the covariate) and a value (1 without a
            value column).
        **keywords : the fields of `ColumnRoles` and `LongTableFormat`

        Raises
        ------
        InputError
            As for `from_frame`, and if a row key repeats in `outcomes`, a key or value is missing
            or infinite, a row is unknown, or an entry is repeated.

        Examples
        --------
        >>> import pyarrow as pa
        >>> outcomes = pa.table({"rowId": [7, 8, 9], "time": [5, 8, 2], "y": [1, 0, 1]})
        >>> covariates = pa.table({"rowId": [7, 9, 9], "covariateId": [2**53, 2**53, 2**53 + 1]})
        >>> data = Dataset.from_long(outcomes, covariates)
        >>> data.design.names
        ('9007199254740992', '9007199254740993')
        >>> data.design.to_dense()
        array([[1., 0.],
               [0., 0.],
               [1., 1.]])
        """
        table = as_table(outcomes)
        roles = columns.find(table.columns, table.words.place)
        with Database() as database:
            stored = database.add(covariates)
            options = LongOptions.find(columns, stored.data_columns, stored.place, roles.id)
            return assemble(table, columns, (stored, options))

    @classmethod
    def from_schema(
        cls,
        schema: Schema,
        frame: object,
        covariates: object = None,
        *,
        outcome: bool = False,
        covariate_columns: Sequence[str] | None = None,
        duplicates: Duplicates | None = None,
        unknown_rows: UnknownRows | None = None,
    ) -> "Dataset":
        """Create a data set from new data, read like the data of a fit.

        The covariates are those of the fit. Other columns and keys are ignored, a key without
        entries is a column of zeros, and `n_dropped` counts entries of unseen keys. A long table
        without entries adds a note; a long table with only unseen keys raises an error.

        Parameters
        ----------
        schema : Schema
            Schema of the data of the fit.
        frame : data frame
            Columns have the names used at the fit, in any order.
        covariates : data frame, optional
            The long table, if the model was fitted with one.
        outcome : bool
            Also read time, event, entry, weight and cluster, for scores. Predictions do not need
            them.
        covariate_columns, duplicates, unknown_rows
            Default: as at the fit.

        Raises
        ------
        InputError
            If a column of the fit is absent or has another type, a value is missing, or a category
            has a level that did not occur at the fit.
        """
        table = as_table(frame)
        if covariates is None:
            return assemble_new(schema, table, None, outcome=outcome)
        with Database() as database:
            stored = database.add(covariates)
            asked = LongTableFormat(
                covariate_columns=covariate_columns,
                duplicates=duplicates,
                unknown_rows=unknown_rows,
            )
            options = schema.long_options(stored.data_columns, stored.place, asked)
            return assemble_new(schema, table, (stored, options), outcome=outcome)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.design.n_rows

    @property
    def labels(self) -> CovariateLabels:
        """What readers call the covariates, if the data were read with `covariate_labels`."""
        return self.schema.labels

    @property
    def row_keys(self) -> AnyArray | None:
        """Exact identifiers of the rows: int64 or text."""
        return self.words.row_keys

    @property
    def places(self) -> Places:
        """What messages call the columns that have a role, and the rows."""
        return places_of(self.schema.roles, self.words)

    def outcome(self, cause: int | str | None = None) -> Outcome:
        """Return validated times, events, weights and strata.

        Parameters
        ----------
        cause : int or str, optional
            Code or label of the event of interest. Default: the cause chosen when the data were
            read.

        Raises
        ------
        InputError
            If a time is negative, entry >= time, a weight is negative, an event code is not valid,
            or there are no events. The message gives the file, column, row and value.
        """
        return self.outcome_columns.outcome(
            self.schema.roles, self.words, cause=self.cause if cause is None else cause
        )


# -------------------------------------------------------------------- reading the columns


def assemble(
    table: Table, asked: ColumnRoles, long: LongInput | None, design_file: Path | None = None
) -> Dataset:
    """The data of a fit, from tables that are open; see `with_covariates`."""
    roles = asked.find(table.columns, table.words.place)
    table = identified(table, roles.id, must_be_unique=long is not None)
    columns = OutcomeColumns.read(table, roles)
    labels = CovariateLabels.read(roles.covariate_labels)
    encoder, wide = _wide_covariates(table, roles, labels)
    design, options, n_dropped, notes = with_covariates(wide, table, long, design_file)
    unknown = labels.check(
        design,
        columns=table.columns,
        texts=table.texts,
        has_long=long is not None,
        place=table.words.place,
    )
    asked_once = replace(roles, cause=None, reference=None, covariate_labels=None, formula=None)
    return Dataset(
        design,
        Schema(asked_once, encoder, options, labels),
        table.words,
        columns,
        cause=asked.cause,
        n_dropped=n_dropped,
        notes=(*notes_on_columns(table, asked, roles, encoder), *notes, *unknown),
    )


def _wide_covariates(
    table: Table, roles: ColumnRoles, labels: CovariateLabels
) -> tuple[FrameEncoder | FormulaEncoder, Design]:
    """Covariates of the table: by the formula, or all columns that have no role."""
    if roles.formula is not None:
        text = ModelFormula.parse(roles.formula).covariates
        used = {name for term in covariate_terms(text) for name in variables_of(term, text)}
        names = tuple(name for name in table.columns if name in used)
        reference = labels.references(roles.reference, table, names)
        return FormulaEncoder.fit(table, text, reference, roles.missing)
    names = roles.covariates_among(table.data_columns)
    reference = labels.references(roles.reference, table, names)
    return FrameEncoder.fit(table, names, reference, roles.missing)


def assemble_new(
    schema: Schema, table: Table, long: LongInput | None, *, outcome: bool = False
) -> Dataset:
    """New data for the model of a fit, from tables that are open."""
    if schema.long is not None and long is None:
        raise InputError(
            f"the model was fitted with {len(schema.long.keys or ()):,} covariates of a long "
            "table, but none was given.",
            hint="pass `covariates`.",
        )
    roles = schema.roles
    has_id = roles.id in table.columns or long is not None
    table = identified(table, roles.id if has_id else None, must_be_unique=long is not None)
    columns = (
        OutcomeColumns.read(table, roles, is_new=True)
        if outcome
        else OutcomeColumns.read_for_prediction(table, roles)
    )
    design, _, n_dropped, notes = with_covariates(schema.encoder.transform(table), table, long)
    return Dataset(design, schema, table.words, columns, n_dropped=n_dropped, notes=notes)
