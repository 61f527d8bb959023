"""What OHDSI's files may know of a study: its tables with small counts hidden, and its numbers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from riskset.disclosure.engine import Disclosure
from riskset.disclosure.rows import Named, RowT, names_hidden
from riskset.ohdsi.results_ids import ResultNumbers
from riskset.results.columns import ResultRow
from riskset.results.folder import StudyResults
from riskset.results.rows import TABLES, OfRun, RunRow

__all__ = ["SharedStudy"]


class SharedStudy:
    """Tables of results after disclosure control, and how OHDSI's files name what is in them.

    Every file is made from these rows alone, so that no number in it reveals more than they do.
    `database` is the name of the database, and `facts` has more of it by columns of cdm_source.
    `mark` is written, with a minus, for a hidden count. `date` is that of the run.
    """

    def __init__(
        self,
        results: StudyResults,
        database: str | None = None,
        facts: Mapping[str, str] | None = None,
        min_cell_count: int | None = None,
    ) -> None:
        self.study: dict[str, Any] = results.study
        self.date: str = results.run["date"]
        self.facts = _facts(results.study["data"]) | dict(facts or {})
        short_name = self.facts.get("cdm_source_abbreviation") or results.study["data"]["name"]
        self.database = database or _plain(short_name)
        self.numbers = ResultNumbers(results.study)
        asked = int(results.study["min_cell_count"])
        self.mark = max(asked, min_cell_count or 0)
        least = 0 if min_cell_count == 0 else self.mark
        self._disclosure = Disclosure(results.rows, TABLES, least)

    def rows(self, kind: type[RowT], **where: object) -> Sequence[RowT]:
        """Rows of a table as they may be shared."""
        return self._disclosure.shown(kind, **where)

    def runs(self, *, of_interest: bool = False) -> Iterator[RunRow]:
        """Requested estimates; with `of_interest`, without those of controls."""
        for run in self.rows(RunRow):
            if run.outcome_kind == "outcome" or not of_interest:
                yield run

    def count(self, row: ResultRow, name: str) -> int | None:
        """A count of a row, minus the mark if it is hidden, None if it is not known."""
        value: float | None = row[name]
        if value is None:
            return -self.mark if self.mark and name in names_hidden(row) else None
        return round(value)

    def of_comparison(self, row: Named) -> dict[str, Any]:
        """Columns that name the comparison, the analysis and the database of a row."""
        target, comparator, analysis = (row[n] for n in ("target", "comparator", "analysis"))
        return {
            "target_comparator_id": self.numbers.comparison(target, comparator, analysis),
            "analysis_id": self.numbers.analyses[analysis],
            "database_id": self.database,
        }

    def of_run(self, row: OfRun) -> dict[str, Any]:
        """Columns that name the run of a row."""
        return self.of_comparison(row) | {"outcome_id": self.numbers.outcomes[row.outcome]}


def _facts(data: Mapping[str, Any]) -> dict[str, str]:
    """What the database says of itself, and else what the specification says of it."""
    asked = {"source_description": data["description"], "max_obs_period_end_date": data["end"]}
    known = {name: value for name, value in asked.items() if value}
    return known | dict(data.get("cdm_source") or {})


def _plain(name: str) -> str:
    """A name that can be part of the name of a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "database"
