"""Headings, tables and figures of a page, accessible by construction.

A table cell carries the names of the numbers of `report.json` that it shows (`data-keys`), so that
a program can compare the two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Self

from riskset._time_units import TimeUnit
from riskset.disclosure.rows import ARMS
from riskset.report.markup import Markup, join, spans_as_code, tag, without_spans
from riskset.report.number_format import interval, p_value, percent, short, significant, whole
from riskset.report.svg import DrawnFigure, drawing
from riskset.report.translations import Translations
from riskset.results.columns import columns_of

__all__ = ["Facts", "Page", "ReportRow", "TableColumn"]

ReportRow = dict[str, Any]
"""A row of a table of `report.json`."""
Facts = Mapping[str, Any]
"""What a section has collected."""
MOST_ROWS = 200
"""Of a table; the others are in the Parquet files only."""
FORMATS: dict[str, Callable[..., str]] = {
    "text": str,
    "int": whole,
    "number": significant,
    "p": p_value,
    "share": percent,
    "days": significant,
}
"""Type or unit of a declared column -> how its values are shown."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: the values `keys` of a row, in the words that `show` makes of them.

    Numbers are right-aligned. Neighbours may share a heading, `group`.
    """

    title: str
    keys: tuple[str, ...]
    show: Callable[..., str] = str
    is_number: bool = True
    group: str | None = None

    @classmethod
    def text(cls, title: str, key: str, show: Callable[[Any], str] = str) -> Self:
        """Words."""
        return cls(title, (key,), lambda v: "" if v is None else show(v), False)

    @classmethod
    def message(cls, title: str, key: str) -> Self:
        """A message, whose code spans are code."""
        return cls.text(title, key, spans_as_code)

    @classmethod
    def number(cls, title: str, key: str, digits: int = 3, group: str | None = None) -> Self:
        """A number with so many significant digits."""
        return cls(title, (key,), lambda v: significant(v, digits), group=group)

    @classmethod
    def interval(
        cls, title: str, keys: tuple[str, str, str], show: Callable[[Any], str] = significant
    ) -> Self:
        """A number and the limits of its interval."""
        return cls(title, keys, lambda *values: interval(*map(show, values)))


@dataclass(frozen=True)
class Page:
    """Where something is written: the language, the part of the report, and the depth of headings.

    `about` has what every section of a part must know, and `path` the place of its numbers in
    `report.json`. All ids start with `prefix`; `level` is that of the next heading.
    """

    say: Translations
    about: Facts = field(default_factory=dict)
    prefix: str = ""
    level: int = 2
    path: str = ""
    min_cell_count: int = 5

    @property
    def arms(self) -> dict[str, str]:
        """The label of each arm."""
        return {arm: self.about[arm] for arm in ARMS}

    @property
    def time_unit(self) -> TimeUnit:
        """The unit of all times."""
        unit: TimeUnit = self.about.get("time_unit", "days")
        return unit

    @property
    def reason(self) -> str:
        """Why the main estimate does not exist, without a full stop."""
        words = self.about["reason"] or self.say.label("status", self.about["status"])
        return str(words).rstrip(".")

    def under(self, path: str, level: int = 0) -> "Page":
        """The same for a part of `report.json`, with headings so much deeper."""
        joined = f"{self.path}/{path}".strip("/")
        return replace(self, path=joined, level=self.level + level)

    def key(self, name: str) -> str:
        """An id."""
        return f"{self.prefix}{name}"

    def hidden(self, mask: str) -> str:
        """What stands in the place of a number that is not shown.

        "small" counts, numbers that reveal them ("hidden"), and risks at times after the end of
        follow-up ("unfollowed").
        """
        return self.say(f"cell.{mask}", n=self.min_cell_count)

    def shown(self, row: Facts, key: str, show: Callable[[Any], str] = whole) -> str:
        """A number of a row, unless it is hidden."""
        mask = (row.get("suppressed") or {}).get(key)
        return self.hidden(mask) if mask else show(row.get(key))

    def time(self, value: float | None) -> str:
        """A time without its unit."""
        return short(value, 5 if self.time_unit == "days" else 3)

    def duration(self, value: float | None) -> str:
        """A time with its unit, singular or plural."""
        shown = self.time(value)
        return self.say.with_unit(shown, self.time_unit)

    def time_column(self, title: str, key: str) -> TableColumn:
        """A column of times that need not be round; `title` is a sentence of the dictionary."""
        if self.time_unit == "days":
            return TableColumn.number(self.say(title), key, 4)
        return TableColumn(self.say(title), (key,), lambda t: short(t, 4))

    def section(self, name: str, *content: object) -> Markup:
        """A section that the table of contents can lead to."""
        key = self.key(name.replace("_", "-"))
        title = tag(f"h{min(self.level, 6)}", self.say(f"section.{name}"), id=key)
        return tag("section", title, *content, aria_labelledby=key)

    def heading(self, title: str, name: str) -> Markup:
        """A heading one level below that of the section."""
        return tag(f"h{min(self.level + 1, 6)}", title, id=self.key(name))

    def paragraph(self, key: str, /, class_: str | None = None, **values: object) -> Markup:
        """A sentence of the dictionary."""
        return tag("p", spans_as_code(self.say(key, **values)), class_=class_)

    def card(self, entries: Iterable[tuple[str, str]]) -> Markup:
        """Terms and what they are; messages among them may have code spans."""
        rows = [join(tag("dt", term), tag("dd", spans_as_code(text))) for term, text in entries]
        return tag("dl", *rows, class_="card")

    def details(self, summary: str, content: Markup) -> Markup:
        """Content behind a click."""
        return tag("details", tag("summary", summary), content)

    def figure(
        self,
        group: str,
        drawn: DrawnFigure,
        data: Markup | None = None,
        *,
        name: str | None = None,
        more: str = "",
        **values: object,
    ) -> Markup:
        """A figure with its numbers as a table behind a click.

        The dictionary has title, description and caption in a section, `group`; `more` is added to
        the caption.
        """
        title, desc, caption = (
            self.say(f"{group}.{part}", **values) for part in ("title", "desc", "caption")
        )
        key = self.key(f"figure-{(name or group).replace('_', '-')}")
        title = without_spans(title)
        return tag(
            "figure",
            _scroll(drawing(key, title, without_spans(desc), drawn), title),
            tag("figcaption", f"{caption} {more}".strip(), id=f"{key}-caption"),
            data and self.details(self.say("figure.data"), data),
            role="group",
            aria_labelledby=f"{key}-caption",
        )

    def columns(
        self, row: Any, *names: str, group: str | None = None, **titles: str
    ) -> list[TableColumn]:
        """Columns that the results declare in a row class or a group.

        Type and unit decide how a number is shown; if there are columns for the limits of its
        interval, these are shown as well. Titles are those of the section ``column`` of the
        dictionary, or the sentences named by `titles`.
        """
        declared = columns_of(row)
        out = []
        for name in names:
            one = declared[name]
            title = self.say(titles.get(name, f"column.{name}"))
            show = FORMATS[one.unit or one.type]
            limits = (f"{name}_lower", f"{name}_upper")
            if one.type == "text":
                column = TableColumn.text(title, name)
            elif declared.keys() >= set(limits):
                column = TableColumn.interval(title, (name, *limits), show)
            else:
                column = TableColumn(title, (name,), show)
            out.append(replace(column, group=group))
        return out

    def arm_column(self) -> TableColumn:
        """The column of a table with a row for each arm."""
        return TableColumn.text(self.say("column.arm"), "arm", lambda arm: self.arms[arm])

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
        most: int = MOST_ROWS,
    ) -> Markup:
        """A table whose first column names the rows.

        `name` is that of the table in `report.json`. Rows with the same value of the key `sections`
        stand together under a heading, and rows for which the key `highlight` is true are bold. A
        table that `can_sort` does so by a click on a heading, if scripts run. It shows at most
        `most` rows.
        """
        shown = records[:most]
        body, title = [], None
        for k, record in enumerate(shown):
            if sections is not None and record[sections] != title:
                title = record[sections]
                cell = tag("th", title, colspan=len(columns), scope="rowgroup")
                body.append(tag("tr", cell, class_="group"))
            class_ = "main" if highlight and record.get(highlight) else None
            cells = [self._cell(c, record, j == 0) for j, c in enumerate(columns)]
            body.append(tag("tr", *cells, class_=class_, data_row=k))
        more = len(records) - len(shown)
        note = self.paragraph("table.more", "note", shown=len(shown), more=whole(more))
        table = tag(
            "table",
            tag("caption", tag("span", caption)),
            tag("thead", _head(columns)),
            tag("tbody", *body),
            data_table=f"{self.path}/tables/{name}".strip("/"),
            data_sort=can_sort and sections is None and len(shown) > 2,
        )
        return join(_scroll(table, caption), note if more > 0 else None)

    def words(self, column: TableColumn, record: ReportRow) -> Markup | str:
        """What a cell of a table says."""
        hidden = record.get("suppressed") or {}
        masks = [hidden[key] for key in column.keys if key in hidden]
        if masks:
            is_one = len(column.keys) == 1 or set(masks) == {"unfollowed"}
            return self.hidden(masks[0] if is_one else "hidden")
        return column.show(*(record.get(key) for key in column.keys))

    def _cell(self, column: TableColumn, record: ReportRow, is_first: bool) -> Markup:
        words = self.words(column, record)
        if column.is_number:
            words = _breakable(words)
        return tag(
            "th" if is_first else "td",
            words,
            scope="row" if is_first else None,
            class_="n" if column.is_number else None,
            data_keys=" ".join(column.keys),
        )


def _scroll(content: Markup, label: str) -> Markup:
    """A box that scrolls what is wider than the page, and that the keyboard can reach."""
    return tag("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def _breakable(words: str) -> Markup | str:
    """A number with its interval, which may stand on a second line where columns are narrow."""
    number, bracket, rest = words.partition(" (")
    if not bracket:
        return words
    return join(tag("span", number), " ", tag("span", f"({rest}"))


def _head(columns: Sequence[TableColumn]) -> Markup:
    """One row of headings, or two where neighbours share one."""
    single = [tag("th", c.title, scope="col", class_="n" if c.is_number else None) for c in columns]
    upper = []
    for group, members in groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        scope = "colgroup" if width > 1 else "col"
        upper.append(
            tag("th", group, scope=scope, colspan=width) if group else tag("td", colspan=width)
        )
    has_groups = any(column.group for column in columns)
    return join(tag("tr", *upper) if has_groups else None, tag("tr", *single))
