"""What the report may know: the tables of a study's results, small counts hidden, blind if need be.

The only module that opens results. What it hands out is all that the sections collect, and what
they collect is `report.json`, from which alone the page is drawn.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from riskset._time_units import DAYS_IN, TimeUnit
from riskset.disclosure.arms import WITHOUT_EVENT
from riskset.disclosure.engine import WITHHELD, Disclosure
from riskset.disclosure.multiplicity import ADJUSTED_P, with_adjusted_p
from riskset.disclosure.people import share_data
from riskset.disclosure.rows import RUN, RowT, keys_of, names_hidden, run_of
from riskset.report.page import ReportRow
from riskset.report.translations import Translations
from riskset.results.columns import ResultRow
from riskset.results.folder import StudyResults
from riskset.results.rows import TABLES, AdjustmentRow, EstimateRow, OfRun, RunRow, ScoreRow

__all__ = ["ReportPart", "ReportSource", "first", "masks", "record"]

EVENTS = ("outcomes", "competing")
OF_OUTCOMES = ("arms", "estimates")
"""Tables whose events are hidden only because they are small, or few people are without any; but
those of the levels of a subgroup may protect each other."""
EMPTIED = (
    "curves",
    "likelihood_profiles",
    "effect_over_time",
    "time_effects",
    "effect_at_times",
    # With the means of the covariates, coefficients lead from the crude to the adjusted ratio.
    "outcome_coefficients",
    "outcome_cross_validation",
    "unmeasured_confounding",
    "bias_bounds",
)
"""Tables of a blinded run that have no columns to show."""
DECIMALS = 9
"""Of times in another unit than days: enough for any number, and round times stay round."""


class ReportSource:
    """Tables of results, as they may be shown.

    With `blind`, effects of runs whose diagnostics failed are withheld, if the results have them.
    Counts below `min_cell_count` are hidden; 0 hides no more than the results do. Of both, None is
    what the study says. Times are in the unit that the study has for its report, `time_unit`.
    """

    def __init__(
        self,
        results: StudyResults,
        say: Translations,
        *,
        blind: bool | None,
        min_cell_count: int | None,
        curves: str | None = None,
    ) -> None:
        self.say = say
        self.study = results.study
        self.run = results.run
        self.blind = results.study["blind"] if blind is None else blind
        self.options: dict[str, Any] = results.study["settings"].get("report") or {}
        self.curves = curves or self.options.get("curves") or "risk"
        settings = results.study["settings"]
        of_data = settings.get("data", {}).get("time_unit")
        self.time_unit: TimeUnit = self.options.get("time_unit") or of_data or "days"
        least = int(results.study["min_cell_count"])
        min_cell_count = least if min_cell_count is None else min_cell_count
        self.min_cell_count = max(min_cell_count, least)
        # The results of a study's own folder may be whole, whatever the specification hides.
        self._disclosure = Disclosure(results.rows, TABLES, min_cell_count)
        self.study = self.study | {"data": share_data(self.study["data"], self._disclosure)}
        self._estimates: dict[tuple[Any, int], EstimateRow] | None = None
        self._withheld = {
            keys_of(row, RUN) for row in results.read(RunRow) if row.blinded or not row.unblind
        }

    def is_withheld(self, run: RunRow) -> bool:
        """Whether the effect of a run must not be shown."""
        return run.blinded or (self.blind and not run.unblind)

    def parts(self) -> list["ReportPart"]:
        """Every target, comparator and outcome, in the order of the study."""
        order = list(self.study["analyses"])
        runs: dict[tuple[str, str, str], list[RunRow]] = {}
        for row in self.read(RunRow):
            if row.outcome_kind == "outcome":
                runs.setdefault((row.target, row.comparator, row.outcome), []).append(row)
        return [
            ReportPart(self, sorted(rows, key=lambda run: order.index(run.analysis)))
            for rows in runs.values()
        ]

    def read(self, kind: type[RowT], **where: object) -> list[RowT]:
        """Rows of a table."""
        rows = [self._in_unit(row) for row in self._disclosure.shown(kind, **where)]
        if self.blind and issubclass(kind, OfRun):
            rows = [shown for row in rows for shown in self._blinded(row)]
        if self.blind and kind is EstimateRow:
            return [self._adjusted(row) for row in rows]
        return rows

    def label(self, group: str, name: str) -> str:
        """What readers call a target, comparator, outcome, analysis or subgroup."""
        about = self.study[group].get(name) or {}
        return str(about.get("label") or name)

    def _in_unit(self, row: RowT) -> RowT:
        """Its days in the unit of the report."""
        if self.time_unit == "days":
            return row
        days = DAYS_IN[self.time_unit]
        return row.changed(
            {
                name: None if row[name] is None else round(row[name] / days, DECIMALS)
                for name, column in row.columns().items()
                if column.unit == "days"
            }
        )

    def _adjusted(self, row: RowT) -> RowT:
        """An estimate whose adjusted p does not depend on estimates that are withheld here."""
        if self._estimates is None:
            shown = self._disclosure.shown(EstimateRow)
            rows = [own for one in shown for own in self._blinded(one)]
            runs = self._disclosure.raw(RunRow)
            self._estimates = {
                (keys_of(one, RUN), one.number): one for one in with_adjusted_p(rows, runs)
            }
        own = self._estimates[keys_of(row, RUN), row["number"]]
        return row.changed({name: own[name] for name in ADJUSTED_P})

    def _blinded(self, row: RowT) -> Iterable[RowT]:
        if keys_of(row, RUN) not in self._withheld:
            yield row
        elif row.table in WITHHELD and row.get("adjusted", True):
            withheld: dict[str, object] = dict.fromkeys(WITHHELD[row.table])
            yield row.changed(withheld | ({"blinded": True} if "blinded" in row else {}))
        elif row.table not in EMPTIED:
            yield row


@dataclass(frozen=True)
class ReportPart:
    """One target, comparator and outcome: its runs, the first of which is the main analysis."""

    source: ReportSource
    runs: list[RunRow]

    @property
    def main(self) -> RunRow:
        """The run of the main analysis."""
        return self.runs[0]

    @property
    def analysis(self) -> dict[str, Any]:
        """The main analysis in the description of the study."""
        described: dict[str, Any] = self.source.study["analyses"][self.main.analysis]
        return described

    @property
    def estimate(self) -> EstimateRow | None:
        """The answer of the main analysis."""
        return first(self.read(EstimateRow, role="main"))

    @property
    def adjustment(self) -> AdjustmentRow | None:
        """The adjustment of the main analysis."""
        return first(self.adjusted(AdjustmentRow))

    @property
    def score(self) -> ScoreRow | None:
        """The propensity score of the main analysis."""
        return first(self.scored(ScoreRow))

    def read(self, kind: type[RowT], run: RunRow | None = None, **where: object) -> list[RowT]:
        """Rows of a table that belong to a run, by default that of the main analysis."""
        return self.source.read(kind, **run_of(run or self.main), **where)

    def adjusted(self, kind: type[RowT], number: int | None = None) -> list[RowT]:
        """Rows of a table that belong to an adjustment, by default that of the main analysis."""
        number = self.main.adjustment if number is None else number
        return [] if number is None else self.source.read(kind, adjustment=number)

    def scored(self, kind: type[RowT]) -> list[RowT]:
        """Rows of a table that belong to the propensity score of the main analysis."""
        return [] if self.main.ps is None else self.source.read(kind, ps=self.main.ps)

    def label(self, group: str) -> str:
        """What readers call the target, comparator, outcome or analysis."""
        return self.source.label(f"{group}s", self.main[group])


def first(rows: Sequence[RowT]) -> RowT | None:
    """The first row of a table, if it has any."""
    return rows[0] if rows else None


def masks(row: ResultRow) -> dict[str, str]:
    """Names of hidden columns, which the results have as text -> "small" or "hidden"."""
    names = names_hidden(row)
    has_small = row.table in OF_OUTCOMES and row.get("role") != "subgroup"
    hidden = {}
    for name in sorted(names & set(row)):
        arm, _, word = name.partition("_")
        is_small = has_small and word in EVENTS and f"{arm}_{WITHOUT_EVENT}" not in names
        hidden[name] = "small" if is_small else "hidden"
    return hidden


def record(row: ResultRow, names: Iterable[str] = ()) -> ReportRow:
    """Columns of a row for `report.json`, all of them or those named, and the masks of these."""
    shown: ReportRow = {name: row[name] for name in names or row}
    if "suppressed" in row:
        shown["suppressed"] = {name: mask for name, mask in masks(row).items() if name in shown}
    return shown
