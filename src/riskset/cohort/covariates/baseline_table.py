"""Table 1 of an article: characteristics of both arms, before and after an adjustment."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import CohortError, InputError
from riskset._keywords import takes
from riskset._types import AnyArray
from riskset.cohort.adjustments.adjustment import Adjustment, People, start
from riskset.cohort.covariates.characteristic_values import characteristic_lines
from riskset.cohort.covariates.characteristics import (
    Characteristic,
    Statistic,
    find_characteristics,
    named_by,
)
from riskset.cohort.covariates.covariate_balance import Balance, balance
from riskset.cohort.covariates.covariate_design import as_design
from riskset.cohort.settings import BalanceOptions, Table1Options
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.dataset import Dataset
from riskset.data.design import Design
from riskset.data.frame import FrameEncoder, as_table, data_frame
from riskset.disclosure.rows import names_hidden
from riskset.results.columns import ResultRow
from riskset.results.rows import CharacteristicRow
from riskset.tables import FormattedColumn, FormattedRow, FormattedTable
from riskset.tables.cells import (
    count,
    count_with_share,
    decimals_of,
    fixed,
    mean_with_sd,
    median_with_quartiles,
)

__all__ = ["Table1", "formatted_table1", "table1"]

ARMS = ("target", "comparator")
OVERALL = "overall"
SIDES = {"before": "Before adjustment", "after": "After adjustment"}
WORDS = {
    "people": "People, n",
    "effective": "Effective sample size",
    "share": "{}, n (%)",
    "mean": "{}, mean (SD)",
    "median": "{}, median [IQR]",
    "category": "{}, n (%)",
    "level": "{}",
    "missing": "Missing, n (%)",
}
"""Kind of a line -> its first cell."""
INDENTED = ("level", "missing")
NUMBERS = ("", "_count", "_sd", "_lower", "_upper")
"""Ends of the names of the numbers of a group."""


@dataclass(frozen=True, eq=False, repr=False)
class Table1:
    """Result of `table1`.

    `print` shows the table in a terminal, and Jupyter shows it as a table.

    Attributes
    ----------
    rows : tuple of CharacteristicRow
        The numbers: a row for each line. `kind` is "people", "effective", "share", "mean",
        "median", "category" (the heading of levels), "level" or "missing"; `before` and `after`
        have `target`, `comparator` (shares, means or medians), `target_count`, `target_sd`,
        `target_lower`, `target_upper` (quartiles), the same of the comparator, and `smd`.
    balance : Balance
        Balance of all covariates.
    adjustment : Adjustment
    target, comparator : str
        Names of the arms.
    overall : bool
        Whether the columns of both arms together (`overall`, `overall_count`, ...) are shown.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 1, 0, 0, 0])
    >>> found = rs.cohort.table1(pa.table({"age": [61, 70, 55, 66, 58, 47]}), people)
    >>> [(row["label"], row["kind"]) for row in found.rows]
    [('', 'people'), ('age', 'mean')]
    """

    rows: tuple[CharacteristicRow, ...]
    balance: Balance
    adjustment: Adjustment
    target: str = "Target"
    comparator: str = "Comparator"
    overall: bool = False

    def columns(self) -> dict[str, AnyArray]:
        """Return the numbers as columns of a table; None where there is no number."""
        left_out = {"adjustment", "joined", "suppressed"}
        if not self.overall:
            left_out |= {f"{side}_{OVERALL}{end}" for side in SIDES for end in NUMBERS}
        names = [n for n in CharacteristicRow.columns() if n not in left_out]
        first = ("label", "kind", "section", "covariate_id")
        ordered = (*first, *(name for name in names if name not in first))
        return {n: np.array([row[n] for row in self.rows], dtype=object) for n in ordered}

    def to_frame(self, library: str | None = None) -> Any:
        """Return a data frame of the numbers; "pandas", "polars" or "pyarrow"."""
        return data_frame(self.columns(), library)

    def formatted(self, title: str = "Baseline characteristics") -> FormattedTable:
        """Return the table as it is printed, with a title; see `riskset.tables.FormattedTable`."""
        arms = (self.target, self.comparator)
        return formatted_table1(self.rows, arms, title, overall=self.overall)

    def to_csv(self) -> str:
        """Return the printed table as CSV."""
        return self.formatted().to_csv()

    def to_html(self) -> str:
        """Return the printed table as an HTML element."""
        return self.formatted().to_html()

    def to_latex(self, label: str | None = None) -> str:
        r"""Return the printed table as LaTeX for a document that loads ``booktabs``."""
        return self.formatted().to_latex(label)

    def save(self, path: str | PathLike[str], title: str = "Baseline characteristics") -> Path:
        """Write the printed table to a .docx, .tex, .html or .csv file."""
        return self.formatted(title).save(path)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return str(self.formatted())

    __repr__ = __str__


@takes(Table1Options)
def table1(
    X: object,
    people: People,
    *,
    settings: Table1Options,
    target: str = "Target",
    comparator: str = "Comparator",
    covariate_labels: object = None,
    n_threads: int | None = None,
) -> Table1:
    r"""Make Table 1: characteristics of both arms, before and after an adjustment.

    Zeros and ones, and each level of a category, are shown by n (%), numbers by mean (SD) or median
    [IQR]. After an adjustment by weights (or strata, or sets of several sizes), shares, means,
    standard deviations and quartiles are weighted, and there are no counts of people. With
    ``overall=True``, a column has both arms together, with the same weights.

    Parameters
    ----------
    X : Dataset, data frame, Design, sparse matrix or array (n, p)
        Covariates of the whole population, without the treatment. A data frame may have missing
        values: they have lines of their own, with percentages of everybody. Other percentages,
        means, medians and SMDs are of the known values.
    people : Population or Adjustment
        For a population there is no side after the adjustment.
    settings : Table1Options
    target, comparator : str
        Names of the arms.
    covariate_labels : file, data frame or mapping, optional
        Labels, groups, units and reference levels, as of `Dataset.from_frame`. Groups are sections,
        and the order of the rows is that of the lines. Default: those of the data set.
    n_threads : int, optional

    Returns
    -------
    Table1

    Raises
    ------
    CohortError
        "BadCovariates" if X has other rows, or infinite values.
    InputError
        If a label is for no covariate, or a name in `mean` or `median` is unknown.

    Notes
    -----
    Quartiles are those of type 2 of Hyndman and Fan (the default of SAS and Stata), which also
    exist with weights. The SMD after the adjustment is relative to the standard deviation before
    it, unless ``sd="current"``. The SMD of a category compares the shares of all levels at once:
    :math:`\sqrt{(p_1 - p_0)^T S^{-1} (p_1 - p_0)}`, with S the mean covariance of the arms.

    References
    ----------
    Yang and Dalton (2012), SAS Global Forum, paper 335, for categories. Austin (2009), Statistics
    in Medicine 28, 3083-3107, doi:10.1002/sim.3697.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import riskset as rs
    >>> people = rs.cohort.Population([1, 1, 1, 0, 0, 0])
    >>> frame = pa.table(
    ...     {"age": [61, 70, 55, 66, 58, 47], "sex": ["m", "f", "m", "f", "f", "m"]}
    ... )
    >>> labels = {"age": "Age, years", "sex": "Sex"}
    >>> found = rs.cohort.table1(frame, people, covariate_labels=labels, target="RHC")
    >>> print(found.formatted(title="").to_csv().replace("\u202f", ""))
    Characteristic,RHC,Comparator,SMD
    "People, n",3,3,
    "Age, years, mean (SD)",62.0 (7.5),57.0 (9.5),0.58
    "Sex, n (%)",,,0.58
    f,1 (33.3 %),2 (66.7 %),
    m,2 (66.7 %),1 (33.3 %),
    """
    adjustment = start(people, allow_weights=True)
    design, labels = _covariates(X, adjustment.population.n_rows, covariate_labels)
    measured = balance(
        design, adjustment, settings=BalanceOptions(sd=settings.sd), n_threads=n_threads
    )
    chosen = with_statistics(find_characteristics(design, labels), design, labels, settings)
    rows = characteristic_lines(design, adjustment, measured, chosen)
    return Table1(tuple(rows), measured, adjustment, target, comparator, settings.overall)


def with_statistics(
    found: Sequence[Characteristic],
    design: Design,
    labels: CovariateLabels,
    settings: Table1Options,
) -> list[Characteristic]:
    """Characteristics with the statistic that the settings choose for each."""
    out = [replace(one, statistic=settings.statistic) for one in found]
    chosen: tuple[tuple[Statistic, tuple[str, ...]], ...] = (
        ("mean", settings.mean),
        ("median", settings.median),
    )
    for statistic, patterns in chosen:
        for pattern in patterns:
            named = [k for k, one in enumerate(out) if named_by(design, one, [pattern], labels)]
            if not named:
                known = [one.title for one in out]
                error = InputError.unknown_name("covariate", pattern, known)
                raise InputError(
                    f"`{statistic}` names {pattern!r}, which is not a covariate.", hint=error.hint
                )
            for k in named:
                out[k] = replace(out[k], statistic=statistic)
    return out


def _covariates(X: object, n_rows: int, given: object) -> tuple[Design, CovariateLabels]:
    """The covariates with labels as names, and the labels; missing values have indicators."""
    labels = CovariateLabels.read(given)
    if isinstance(X, Dataset):
        labels = X.labels if given is None else labels
        encoder, design = X.schema.encoder, X.design
        if given is not None:
            has_long = X.schema.long is not None
            columns, texts = encoder.columns, encoder.levels.keys()
            labels.check(design, columns=columns, texts=texts, has_long=has_long)
    elif hasattr(X, "columns") or hasattr(X, "__arrow_c_stream__"):
        table = as_table(X)
        reference = labels.references(None, table, table.data_columns)
        try:
            _, design = FrameEncoder.fit(table, None, reference, "indicator")
        except InputError as error:
            raise CohortError("BadCovariates", error.message, hint=error.hint) from None
        labels.check(design, columns=table.columns, texts=table.texts)
    else:
        design = as_design(X)
        labels.check(design)
    return as_design(labels.labelled(design), n_rows), labels


# -------------------------------------------------------------------- as it is printed


def formatted_table1(
    rows: Iterable[ResultRow],
    arms: tuple[str, str],
    title: str = "Baseline characteristics",
    *,
    overall: bool = False,
) -> FormattedTable:
    """Lines of Table 1 as a table that can be printed.

    Hidden numbers, which `suppressed` names, are dashes.
    """
    lines = [row for row in rows if isinstance(row, CharacteristicRow)]
    has_after = any(row[f"after_{n}"] is not None for row in lines for n in _numbers())
    sides = ("before", "after") if has_after else ("before",)
    groups = {OVERALL: "Overall"} if overall else {}
    groups |= dict(zip(ARMS, arms, strict=True))
    columns = [FormattedColumn("Characteristic", is_number=False)]
    for side in sides:
        spanner = SIDES[side] if has_after else None
        columns += [FormattedColumn(name, spanner) for name in (*groups.values(), "SMD")]
    out = []
    for row in lines:
        cells = [WORDS[row.kind].format(row.label)]
        decimals = _decimals(row)
        for side in sides:
            cells += [_cell(row, side, group, decimals) for group in groups]
            cells.append(_difference(row, side))
        indent = int(row.kind in INDENTED)
        out.append(FormattedRow(tuple(cells), section=row.section, indent=indent))
    return FormattedTable(columns, out, title, _footnotes(lines))


def _numbers() -> tuple[str, ...]:
    return ("target", "comparator", "target_count", "comparator_count", "smd")


def _decimals(row: CharacteristicRow) -> int:
    """Decimals of all cells of a line, by the first number that is known."""
    for side in SIDES:
        for arm in ARMS:
            value, sd, low, high = (
                row[f"{side}_{arm}{end}"] for end in ("", "_sd", "_lower", "_upper")
            )
            if value is not None:
                return decimals_of(value, sd, low, high)
    return 0


def _cell(row: CharacteristicRow, side: str, group: str, decimals: int) -> str:
    value, n, sd, low, high = (row[f"{side}_{group}{end}"] for end in NUMBERS)
    show: dict[str, Callable[[], str]] = {
        "people": lambda: count(n),
        "effective": lambda: fixed(value, 0),
        "mean": lambda: mean_with_sd(value, sd, decimals),
        "median": lambda: median_with_quartiles(value, low, high, decimals),
        "category": lambda: "",
    }
    return show.get(row.kind, lambda: count_with_share(n, value))()


def _difference(row: CharacteristicRow, side: str) -> str:
    """The cell of an SMD: a dash where it is hidden, or unknown because an arm has nobody."""
    smd = row[f"{side}_smd"]
    has_difference = row.kind in ("mean", "median", "category")
    shows = has_difference or f"{side}_smd" in names_hidden(row)
    return fixed(smd, 2) if smd is not None or shows else ""


def _footnotes(rows: Sequence[CharacteristicRow]) -> list[str]:
    kinds = {row.kind for row in rows}
    words = ["SMD: standardised mean difference; of a category, of all its levels at once."]
    if "missing" in kinds:
        words.append(
            "Percentages, means, medians and SMDs are of the known values; percentages of missing "
            "values are of everybody."
        )
    if "effective" in kinds:
        words.append("Numbers after adjustment are weighted.")
    if "median" in kinds:
        words.append("IQR: first and third quartile.")
    if any(row.suppressed for row in rows):
        words.append("\N{EN DASH}: not shown, because few people have the characteristic.")
    return words
