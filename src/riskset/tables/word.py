"""Formatted tables as a Word document, by python-docx: three rules, headings that repeat on pages.

The module is imported when a document is written, so that nothing else waits for python-docx.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docx import Document
from docx.enum.section import WD_ORIENT
from docx.enum.table import WD_TABLE_ALIGNMENT
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Cm, Pt

from riskset.tables.content import TableContent

__all__ = ["word_document"]

MOST_UPRIGHT = 6
"""Columns of a table on an upright page; wider ones lie across it."""
BODY, SMALL = 9, 8
"""Sizes of letters, in points."""
LETTER = 0.55 * BODY
"""Width of a letter, in points, on average."""
LONGEST = 45
"""Letters of a line of a column."""
INDENT = 0.4
"""Of a level, in centimetres."""


def word_document(tables: Sequence[TableContent], path: Path) -> None:
    """Write tables to a document, one after the other, each on a page of its own."""
    document: Any = Document()
    properties = document.core_properties
    properties.author, properties.title = "riskset", tables[0].title
    style = document.styles["Normal"]
    style.font.size = Pt(BODY)
    style.paragraph_format.space_after = Pt(0)
    section = document.sections[0]
    section.left_margin = section.right_margin = Cm(2)
    if max(len(table.columns) for table in tables) > MOST_UPRIGHT:
        section.orientation = WD_ORIENT.LANDSCAPE
        section.page_width, section.page_height = section.page_height, section.page_width
    for k, table in enumerate(tables):
        if k:
            document.add_page_break()
        _add(document, table)
    document.save(str(path))


def _add(document: Any, table: TableContent) -> None:
    if table.title:
        title = document.add_paragraph()
        title.paragraph_format.space_after = Pt(4)
        title.paragraph_format.keep_with_next = True
        title.add_run(table.title).bold = True
    n_heads = 2 if table.has_spanners else 1
    n_sections = sum(1 for section, _ in table.blocks() if section)
    n_rows = n_heads + n_sections + len(table.rows)
    grid = document.add_table(rows=n_rows, cols=len(table.columns))
    grid.alignment = WD_TABLE_ALIGNMENT.LEFT
    grid.autofit = False
    rows = [list(row.cells) for row in grid.rows]  # each look-up reads the whole grid
    section = document.sections[0]
    room = section.page_width - section.left_margin - section.right_margin
    for j, width in enumerate(_widths(table, room)):
        grid.columns[j].width = width
        for cells in rows:
            cells[j].width = width
    _head(table, rows)
    at = n_heads
    for title, members in table.blocks():
        if title:
            heading = rows[at][0].merge(rows[at][-1])
            _write(heading, title, is_bold=True)
            heading.paragraphs[0].paragraph_format.keep_with_next = True
            at += 1
        for row in members:
            for j, cell in enumerate(row.cells):
                _write(
                    rows[at][j],
                    cell,
                    is_number=table.columns[j].is_number,
                    is_bold=row.is_bold,
                    indent=0 if j else row.indent,
                )
            at += 1
    for k, row in enumerate(grid.rows):
        _mark(row, "w:cantSplit")
        if k < n_heads:
            _mark(row, "w:tblHeader")
    for cell in rows[0]:
        _rule(cell, "top", 12)
    for cell in rows[n_heads - 1]:
        _rule(cell, "bottom", 6)
    for cell in rows[-1]:
        _rule(cell, "bottom", 12)
    for note in table.footnotes:
        document.add_paragraph().add_run(note).font.size = Pt(SMALL)


def _widths(table: TableContent, room: int) -> list[int]:
    """Widths of the columns by their longest texts, at most the whole room of the page."""
    longest = []
    for j, column in enumerate(table.columns):
        texts = [column.title, *("  " * row.indent * (not j) + row.cells[j] for row in table.rows)]
        longest.append(min(max(map(len, texts)), LONGEST) + 4)
    wanted = [Pt(LETTER * n) for n in longest]
    scale = min(1.0, room / sum(wanted))
    return [int(scale * width) for width in wanted]


def _head(table: TableContent, rows: list[list[Any]]) -> None:
    if table.has_spanners:
        for spanner, start, end in table.spans():
            if spanner:
                cell = rows[0][start].merge(rows[0][end - 1])
                _write(cell, spanner, is_bold=True)
                cell.paragraphs[0].alignment = WD_ALIGN_PARAGRAPH.CENTER
                _rule(cell, "bottom", 4)
    titles = rows[1 if table.has_spanners else 0]
    for cell, column in zip(titles, table.columns, strict=True):
        _write(cell, column.title, is_number=column.is_number, is_bold=True)


def _write(
    cell: Any, text: str, *, is_number: bool = False, is_bold: bool = False, indent: int = 0
) -> None:
    paragraph = cell.paragraphs[0]
    paragraph.add_run(text).bold = is_bold
    if is_number:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT
    if indent:
        paragraph.paragraph_format.left_indent = Cm(INDENT * indent)


def _mark(row: Any, name: str) -> None:
    """Set a property of a row for which python-docx has no attribute."""
    row._tr.get_or_add_trPr().append(OxmlElement(name))


def _rule(cell: Any, side: str, eighths: int) -> None:
    """A line at one side of a cell, so many eighths of a point thick."""
    properties = cell._tc.get_or_add_tcPr()
    borders = properties.find(qn("w:tcBorders"))
    if borders is None:
        borders = OxmlElement("w:tcBorders")
        properties.append(borders)
    if borders.find(qn(f"w:{side}")) is not None:
        return  # a cell that was merged comes once for each column
    line = OxmlElement(f"w:{side}")
    for name, value in (("val", "single"), ("sz", str(eighths)), ("space", "0"), ("color", "auto")):
        line.set(qn(f"w:{name}"), value)
    # The schema wants the top before the bottom.
    borders.insert(0 if side == "top" else len(borders), line)
