"""What the report may know: the tables of a study's results, small counts hidden, blind if need be.

The only module that opens results. What it hands out is all that the sections collect, and what
they collect is `report.json`, from which alone the page is drawn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from riskset.disclosure.arms import WITHOUT_EVENT
from riskset.disclosure.engine import WITHHELD, Disclosure
from riskset.disclosure.people import share_data
from riskset.disclosure.rows import RUN, keys_of, names_hidden
from riskset.report.words import Words
from riskset.results.folder import StudyResults
from riskset.results.rows import TABLES

__all__ = ["Part", "Source"]

Row = dict[str, Any]
EVENTS = ("outcomes", "competing")
OF_OUTCOMES = ("arms", "estimates")
"""Tables whose events are hidden only because they are small, or few people are without any; but
those of the levels of a subgroup may protect each other."""
EMPTIED = (
    "curves",
    "likelihood_profiles",
    "effect_over_time",
    # With the means of the covariates, coefficients lead from the crude to the adjusted ratio.
    "outcome_coefficients",
    "outcome_cross_validation",
)
"""Tables that tell nothing else."""


@dataclass(frozen=True)
class Part:
    """One target, comparator and outcome: its runs, the first of which is the main analysis."""

    target: str
    comparator: str
    outcome: str
    runs: tuple[Row, ...]

    @property
    def main(self) -> Row:
        """The run of the first analysis."""
        return self.runs[0]


class Source:
    """Tables of results, as they may be shown.

    Parameters
    ----------
    results : StudyResults
    say : Words
    blind : bool
        Withhold effects of runs whose diagnostics failed, if the results have them.
    min_cell_count : int
        Hide counts below it, if the results have them; 0 hides no more than they do.
    curves : {"risk", "survival"}, optional
        What curves show; default: what the specification says.
    """

    def __init__(
        self,
        results: StudyResults,
        say: Words,
        *,
        blind: bool,
        min_cell_count: int,
        curves: str | None = None,
    ) -> None:
        self.say = say
        self.study = results.study
        self.run = results.run
        self.blind = blind
        self.options: Row = results.study["settings"].get("report") or {}
        self.curves = curves or self.options.get("curves") or "risk"
        self.min_cell_count = max(min_cell_count, int(results.study["min_cell_count"]))
        # The results of a study's own folder may be whole, whatever the specification hides.
        self._found = Disclosure(results.rows, TABLES, min_cell_count)
        self.study = self.study | {"data": share_data(self.study["data"], self._found)}
        self._withheld = {
            keys_of(row, RUN)
            for row in results.rows("runs")
            if row["blinded"] or not row["unblind"]
        }

    def is_withheld(self, run: Mapping[str, Any]) -> bool:
        """Whether the effect of a run must not be shown."""
        return bool(run["blinded"]) or (self.blind and not run["unblind"])

    def parts(self) -> list[Part]:
        """Every target, comparator and outcome, in the order of the study."""
        order = list(self.study["analyses"])
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows("runs"):
            if row["outcome_kind"] == "outcome":
                found.setdefault((row["target"], row["comparator"], row["outcome"]), []).append(row)
        return [
            Part(*names, tuple(sorted(rows, key=lambda r: order.index(r["analysis"]))))
            for names, rows in found.items()
        ]

    def rows(self, name: str, **where: object) -> list[Row]:
        """Rows of a table; ``suppressed`` maps hidden columns to "small" or "hidden"."""
        shown = [_marked(name, row) for row in self._found.shown(TABLES[name], **where)]
        if self.blind and "outcome" in (shown[0] if shown else {}):
            shown = [row for row in (self._blinded(name, row) for row in shown) if row is not None]
        return shown

    def of_run(self, name: str, run: Mapping[str, Any], **where: object) -> list[Row]:
        """Rows of a table that belong to a run."""
        keys = {key: run[key] for key in RUN}
        return self.rows(name, **keys, **where)

    def label(self, group: str, name: str) -> str:
        """What readers call a target, comparator, outcome, analysis or subgroup."""
        about = self.study[group].get(name)
        return str(about["label"]) if about and about.get("label") else name

    def _blinded(self, name: str, row: Row) -> Row | None:
        if name == "controls" or keys_of(row, RUN) not in self._withheld:
            return row
        if name in EMPTIED:
            return None
        if name in WITHHELD and row.get("adjusted", True):
            return row | dict.fromkeys(WITHHELD[name]) | {"blinded": True}
        return row


def _marked(table: str, row: Mapping[str, Any]) -> Row:
    """Names of hidden columns, which the results have as text, as a mapping."""
    if "suppressed" not in row:
        return dict(row)
    names = names_hidden(row)
    has_small = table in OF_OUTCOMES and row.get("role") != "subgroup"
    masks = {}
    for name in sorted(names & set(row)):
        arm, _, word = name.partition("_")
        is_small = has_small and word in EVENTS and f"{arm}_{WITHOUT_EVENT}" not in names
        masks[name] = "small" if is_small else "hidden"
    return dict(row) | {"suppressed": masks}
