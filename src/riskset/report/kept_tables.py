"""The tables of a report for other files: what the page says in its cells, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from riskset.report.markup import Markup
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.tables import FormattedColumn, FormattedRow, FormattedTable

__all__ = ["KeptTable", "TableKeeper"]


SOFT_HYPHEN = "\u00ad"


@dataclass(frozen=True)
class KeptTable:
    """A table and its place in `report.json`, such as ``parts/0/result/tables/estimates``."""

    path: str
    table: FormattedTable

    @property
    def part(self) -> int | None:
        """Number of its part; None of a table that concerns the whole study."""
        first, *rest = self.path.split("/")
        return int(rest[0]) if first == "parts" else None

    @property
    def name(self) -> str:
        """Its name within its part."""
        words = self.path.split("/")
        own = [w for w in words[0 if self.part is None else 2 :] if w != "tables"]
        return "-".join(dict.fromkeys(own)).replace("_", "-")


@dataclass(frozen=True)
class TableKeeper(Page):
    """A page that also keeps its tables as formatted ones, with all their rows."""

    kept: list[KeptTable] = field(default_factory=list)

    def table(
        self,
        name: str,
        caption: str,
        columns: Sequence[TableColumn],
        records: Sequence[ReportRow],
        *,
        sections: str | None = None,
        can_sort: bool = False,
        highlight: str | None = None,
        most: int = 1,
    ) -> Markup:
        """Keep the table, and write none of it on the page."""
        rows = [
            FormattedRow(
                tuple(_plain(self.words(column, record)) for column in columns),
                section=str(record[sections]) if sections is not None else None,
                is_bold=bool(highlight and record.get(highlight)),
            )
            for record in records
        ]
        heads = [FormattedColumn(_plain(c.title), c.group, c.is_number) for c in columns]
        path = f"{self.path}/tables/{name}".strip("/")
        if rows:
            self.kept.append(KeptTable(path, FormattedTable(heads, rows, title=_plain(caption))))
        return Markup("")


def _plain(words: Markup | str) -> str:
    """Words without tags and without places at which a browser may break them."""
    plain = words.striptags() if isinstance(words, Markup) else words
    return str(plain).replace(SOFT_HYPHEN, "")
