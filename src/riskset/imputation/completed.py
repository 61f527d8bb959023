"""Multiple imputation of the missing covariates of a data frame."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from riskset._errors import InputError, counted
from riskset._keywords import takes
from riskset._runtime import Runtime
from riskset._settings import same_as, setting, settings
from riskset._types import AnyArray, Matrix
from riskset.curves.followup import Followup
from riskset.data.column_roles import ColumnRoles
from riskset.data.frame import as_table, data_frame, eager_frame
from riskset.data.incomplete import IncompleteColumn, completed_frame, read_incomplete
from riskset.data.outcome import read_outcome
from riskset.data.outcome_columns import OutcomeColumns, identified, places_of
from riskset.data.table import Table
from riskset.imputation.chain import Chain, CompletedColumns, run_chains
from riskset.imputation.outcome import outcome_columns
from riskset.imputation.settings import Imputation

__all__ = ["Imputations", "impute"]


@settings
class ImputedFrame(Imputation):
    """How a frame is imputed, and which of its columns are no covariates."""

    time: str | None = same_as(ColumnRoles, "time")
    event: str | None = same_as(ColumnRoles, "event")
    entry: str | None = same_as(ColumnRoles, "entry")
    censored: str | None = same_as(ColumnRoles, "censored")
    id: str | None = same_as(ColumnRoles, "id")
    drop: str | tuple[str, ...] = setting("columns that imputation models do not use", ())
    seed: int = setting("the seed of all random numbers", 1, least=0)
    n_threads: int | None = setting(
        "number of threads, on which no number depends. Default: all cores", None, least=1
    )


class Imputations(Sequence[Any]):
    """Completed data sets, as data frames of the library of the data. Made by `impute`.

    The frames differ in the values that were missing only; each is made when it is asked for. Fit a
    model to each, and pool the fits with `riskset.pool`.

    Attributes
    ----------
    n_missing : dict of str to int
        Number of missing values of each covariate that has some.
    n_rows : int
    settings : Imputation

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> x = np.arange(40) % 7
    >>> gaps = np.arange(40) % 5 == 0
    >>> frame = pa.table({"x": pa.array(x, mask=gaps)})
    >>> imputed = rs.impute(frame, rs.Surv(1 + x, [1] * 40), datasets=3)
    >>> len(imputed), imputed.n_missing
    (3, {'x': 8})
    >>> imputed[0]["x"].null_count
    0
    """

    def __init__(
        self,
        frame: object,
        columns: Sequence[IncompleteColumn],
        completed: Sequence[CompletedColumns],
        settings: Imputation,
    ) -> None:
        self._frame, self._completed, self.settings = frame, completed, settings
        self._columns = [column for column in columns if column.n_missing]
        self.n_rows = columns[0].missing.size if columns else 0
        self.n_missing = {column.name: column.n_missing for column in self._columns}

    def __len__(self) -> int:
        return len(self._completed)

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        try:
            return completed_frame(self._frame, self._completed[index].donors)
        except IndexError:
            raise IndexError(
                f"there {'is' if len(self) == 1 else 'are'} {counted(len(self), 'data set')}, "
                f"numbered from 0 to {len(self) - 1}, but data set {index} was asked for."
            ) from None

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"Imputations({counted(len(self), 'data set')} of {counted(self.n_rows, 'row')}, "
            f"{counted(len(self._columns), 'column')} with missing values)"
        )

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame with one row for each covariate that had missing values.

        Columns: ``covariate``, ``missing`` (number of values), ``share`` of the rows, and
        ``method``: "matching" (predictive mean matching, for numbers) or "levels" (draws from a
        logistic model of the levels).
        """
        methods = ["levels" if column.n_levels else "matching" for column in self._columns]
        missing = np.array([column.n_missing for column in self._columns], dtype=np.int64)
        columns: dict[str, AnyArray] = {
            "covariate": np.array([column.name for column in self._columns], dtype=object),
            "missing": missing,
            "share": missing / max(1, self.n_rows),
            "method": np.array(methods, dtype=object),
        }
        return data_frame(columns, library)

    def trace(self, library: str | None = None) -> Any:
        """Return a data frame that shows whether the chains have forgotten where they began.

        For each data set and cycle the mean and standard deviation of the values that were drawn
        for each covariate (for levels: of their numbers 0, 1, ...). The lines of the data sets
        should mix freely and have no trend. Columns: ``data_set``, ``cycle``, ``covariate``,
        ``mean``, ``sd``.
        """
        m, n_cycles = len(self), self.settings.cycles
        names = list(self._completed[0].donors)
        shape = (m, n_cycles, len(names))

        def spread(values: AnyArray, axis: int) -> AnyArray:
            place = [1, 1, 1]
            place[axis] = values.size
            return np.broadcast_to(values.reshape(place), shape).reshape(-1)

        moments = [(one.mean, one.sd) for one in self._completed]
        mean, sd = (np.array(part).reshape(-1) for part in zip(*moments, strict=True))
        columns: dict[str, AnyArray] = {
            "data_set": spread(np.arange(1, m + 1), 0),
            "cycle": spread(np.arange(1, n_cycles + 1), 1),
            "covariate": spread(np.array(names, dtype=object), 2),
            "mean": mean,
            "sd": sd,
        }
        return data_frame(columns, library)


@takes(ImputedFrame)
def impute(data: object, y: object = None, *, settings: ImputedFrame) -> Imputations:
    r"""Complete missing covariates several times, by chained equations that contain the outcome.

    Each column with missing values is drawn given all other covariates, the event indicator and
    the Nelson-Aalen cumulative hazard of each cause, over and over. Numbers are drawn by predictive
    mean matching, levels and binary numbers from a logistic model. Drawn values always occur in the
    data. Missing values must depend on observed values only ("missing at random").

    The treatment, and every covariate of the analysis, must be among the columns: what an
    imputation model lacks, the analysis finds too weak. Strata and clusters are not used unless
    they are covariates.

    Parameters
    ----------
    data : data frame
        pandas, polars, Arrow, a DuckDB relation, or any frame that narwhals supports. Every column
        without a role is a covariate.
    y : (n,) structured array, optional
        Outcomes made by `riskset.Surv`, if the frame has no columns of the outcome.
    settings : ImputedFrame

    Returns
    -------
    Imputations
        A sequence of `datasets` completed frames, the same for any number of threads.

    Raises
    ------
    InputError
        If there is no outcome, the outcome has missing values, a column cannot be a covariate, or
        has too few known values for the number of columns.

    References
    ----------
    White and Royston (2009), Statistics in Medicine 28, 1982-1998, doi:10.1002/sim.3618.
    van Buuren and Groothuis-Oudshoorn (2011), Journal of Statistical Software 45(3),
    doi:10.18637/jss.v045.i03.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> rng = np.random.default_rng(1)
    >>> age = rng.normal(60, 8, 200).round()
    >>> time = rng.exponential(np.exp(-(age - 60) / 20)).round(3) + 0.001
    >>> known = [None if rng.random() < 0.2 else a for a in age.tolist()]
    >>> frame = pa.table({"time": time, "event": [1] * 200, "age": known})
    >>> imputed = rs.impute(frame, datasets=10)
    >>> imputed
    Imputations(10 data sets of 200 rows, 1 column with missing values)
    >>> fits = [rs.Cox().fit(rs.Dataset.from_frame(one)) for one in imputed]
    >>> rs.pool(fits)
    PooledEstimates(10 data sets, 1 coefficient)
    """
    frame = eager_frame(data)
    table = as_table(frame)
    columns, outcome = _read(table, y, settings)
    chain = Chain(columns, outcome, settings)
    if not chain.incomplete:
        raise InputError(
            "no covariate has missing values, so there is nothing to impute.",
            hint="fit the data as they are.",
        )
    runtime = Runtime.select("cpu", settings.n_threads)
    completed = run_chains(chain, settings.seed, runtime)
    return Imputations(frame, columns, completed, settings)


def _read(table: Table, y: object, asked: ImputedFrame) -> tuple[list[IncompleteColumn], Matrix]:
    """Covariates, and the columns of the outcome."""
    names = ("time", "event", "entry", "censored", "id", "drop")
    roles = ColumnRoles(**{name: getattr(asked, name) for name in names})
    if y is None:
        roles = roles.find(table.columns, table.words.place)
        table = identified(table, roles.id, must_be_unique=False)
        read = OutcomeColumns.read(table, roles)
        places = places_of(roles, table.words)
        time, event, entry, _ = read_outcome(read.time, read.event, read.entry, None, places)
        covariates = roles.covariates_among(table.data_columns)
    else:
        _refuse_both(asked)
        for name in (*roles.drop, *([] if roles.id is None else [roles.id])):
            table.need(name)
        followed = Followup.read(y)
        time, event, entry = followed.time, followed.event, followed.entry
        if time.size != table.n_rows:
            raise InputError(
                f"`y` has {counted(time.size, 'row')}, but the data frame has {table.n_rows:,}.",
                hint="check that both come from the same table.",
            )
        covariates = roles.covariates_among(table.data_columns)
    if not covariates:
        raise InputError("there is no covariate.", hint="name fewer columns with `drop`.")
    return read_incomplete(table, covariates), outcome_columns(time, event, entry)


def _refuse_both(asked: ImputedFrame) -> None:
    for name in ("time", "event", "entry", "censored"):
        if getattr(asked, name) is not None:
            raise InputError(
                f"`{name}` was given together with `y`, which has the outcome.",
                hint=f"leave out `{name}`, or `y`.",
            )
