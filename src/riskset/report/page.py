"""Headings, tables and figures of a page, accessible by construction.

A table cell carries the names of the numbers of `report.json` that it shows (`data-keys`), so that
a program can compare the two.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from riskset.report.markup import Markup, join, spans_as_code, tag, without_spans
from riskset.report.number_format import interval, p_value, percent, significant, whole
from riskset.report.svg import drawing
from riskset.report.translations import Translations

__all__ = ["TableColumn", "DrawnFigure", "Page", "ReportRow"]

ReportRow = dict[str, Any]
"""A row of a table of `report.json`."""
Show = Callable[..., str]
MOST_ROWS = 200
"""Of a table; the others are in the Parquet files only."""


@dataclass(frozen=True)
class TableColumn:
    """A column of a table.

    Attributes
    ----------
    title : str
    keys : tuple of str
        The values of a record that a cell shows.
    show : callable
        Their words.
    is_number : bool
        Right-aligned.
    group : str or None
        A heading shared with the neighbours.
    """

    title: str
    keys: tuple[str, ...]
    show: Show = str
    is_number: bool = True
    group: str | None = None

    @classmethod
    def text(cls, title: str, key: str, show: Show = str, group: str | None = None) -> Self:
        """Words."""
        return cls(title, (key,), lambda v: "" if v is None else show(v), False, group)

    @classmethod
    def message(cls, title: str, key: str) -> Self:
        """A message, whose code spans are code."""
        return cls.text(title, key, spans_as_code)

    @classmethod
    def count(cls, title: str, key: str, group: str | None = None) -> Self:
        """A whole number."""
        return cls(title, (key,), whole, group=group)

    @classmethod
    def number(cls, title: str, key: str, digits: int = 3, group: str | None = None) -> Self:
        """A number with so many significant digits."""
        return cls(title, (key,), lambda v: significant(v, digits), group=group)

    @classmethod
    def percent(cls, title: str, key: str, group: str | None = None) -> Self:
        """A share of 1."""
        return cls(title, (key,), percent, group=group)

    @classmethod
    def p(cls, title: str, key: str, group: str | None = None) -> Self:
        """A p value."""
        return cls(title, (key,), p_value, group=group)

    @classmethod
    def interval(cls, title: str, keys: tuple[str, str, str], show: Show = significant) -> Self:
        """A number and the ends of its interval."""
        return cls(title, keys, lambda a, b, c: interval(show(a), show(b), show(c)))


@dataclass(frozen=True)
class DrawnFigure:
    """A figure before it has a place: its height in px, its shapes, and what it shows in words."""

    height: float
    content: Markup
    title: str
    desc: str


@dataclass(frozen=True)
class Page:
    """Where something is written: language, depth of headings, and a prefix of all ids.

    Attributes
    ----------
    say : Translations
    prefix : str
        Of ids.
    level : int
        Of the next heading.
    path : str
        In `report.json`, of the tables that follow.
    min_cell_count : int
    """

    say: Translations
    prefix: str = ""
    level: int = 2
    path: str = ""
    min_cell_count: int = 5

    def under(self, path: str, level: int = 0) -> "Page":
        """The same for a part of `report.json`, with headings so much deeper."""
        joined = f"{self.path}/{path}".strip("/")
        return replace(self, path=joined, level=self.level + level)

    def key(self, name: str) -> str:
        """An id."""
        return f"{self.prefix}{name}"

    def hidden(self, mask: str) -> str:
        """In the place of a number that is not shown.

        "small" counts, numbers that reveal them ("hidden"), and risks at times after the end of
        follow-up ("unfollowed").
        """
        return self.say(f"cell.{mask}", n=self.min_cell_count)

    def section(self, name: str, title: str, *content: object) -> Markup:
        """A section that the table of contents can lead to."""
        return tag(
            "section",
            tag(f"h{min(self.level, 6)}", title, id=self.key(name)),
            *content,
            aria_labelledby=self.key(name),
        )

    def heading(self, title: str, name: str | None = None) -> Markup:
        """A heading one level below that of the section."""
        return tag(f"h{min(self.level + 1, 6)}", title, id=name and self.key(name))

    def paragraph(self, key: str, /, class_: str | None = None, **values: object) -> Markup:
        """A sentence of the dictionary."""
        return tag("p", spans_as_code(self.say(key, **values)), class_=class_)

    def card(self, entries: Iterable[tuple[str, str]]) -> Markup:
        """Terms and what they are; messages among them may have code spans."""
        rows = [join(tag("dt", term), tag("dd", spans_as_code(text))) for term, text in entries]
        return tag("dl", *rows, class_="card")

    def figure(
        self, name: str, drawn: DrawnFigure, caption: str, data: Markup | None = None
    ) -> Markup:
        """A figure with its caption, and its data as a table behind a click."""
        key = self.key(f"figure-{name}")
        title, desc = without_spans(drawn.title), without_spans(drawn.desc)
        image = drawing(key, title, desc, drawn.height, drawn.content)
        behind = data and tag("details", tag("summary", self.say("figure.data")), data)
        return tag(
            "figure",
            _scroll(image, title),
            tag("figcaption", caption, id=f"{key}-caption"),
            behind,
            role="group",
            aria_labelledby=f"{key}-caption",
        )

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
    ) -> Markup:
        """A table whose first column names the rows.

        Parameters
        ----------
        name : str
            Of the table in `report.json`, whose rows these are.
        sections : str, optional
            The key by which rows stand together under a heading.
        can_sort : bool
            By a click on a heading, if scripts run.
        highlight : str, optional
            A key that is true for rows in bold.
        """
        shown = records[:MOST_ROWS]
        body, title = [], None
        for k, record in enumerate(shown):
            if sections is not None and record[sections] != title:
                title = record[sections]
                body.append(_group(title, len(columns)))
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

    def _cell(self, column: TableColumn, record: ReportRow, is_first: bool) -> Markup:
        hidden = record.get("suppressed") or {}
        masks = [hidden[key] for key in column.keys if key in hidden]
        if masks:
            is_one = len(column.keys) == 1 or set(masks) == {"unfollowed"}
            words = self.hidden(masks[0] if is_one else "hidden")
        else:
            words = column.show(*(record.get(key) for key in column.keys))
        attributes = {
            "class_": "n" if column.is_number else None,
            "data_keys": " ".join(column.keys),
        }
        if is_first:
            return tag("th", words, scope="row", **attributes)
        return tag("td", words, **attributes)


def _scroll(content: Markup, label: str) -> Markup:
    """A box of its own for what is wider than the page, which the keyboard can move, too."""
    return tag("div", content, class_="scroll", role="region", aria_label=label, tabindex=0)


def _group(title: object, width: int) -> Markup:
    return tag("tr", tag("th", title, colspan=width, scope="rowgroup"), class_="group")


def _head(columns: Sequence[TableColumn]) -> Markup:
    """One row of headings, or two where neighbours share one."""
    single = [tag("th", c.title, scope="col", class_="n" if c.is_number else None) for c in columns]
    if all(c.group is None for c in columns):
        return tag("tr", *single)
    upper: list[Markup] = []
    k = 0
    while k < len(columns):
        group = columns[k].group
        width = (
            next((j for j in range(k, len(columns)) if columns[j].group != group), len(columns)) - k
        )
        scope = "colgroup" if width > 1 else "col"
        upper.append(
            tag("th", group or "", scope=scope, colspan=width)
            if group
            else tag("td", colspan=width)
        )
        k += width
    return join(tag("tr", *upper), tag("tr", *single))
