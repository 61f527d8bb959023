"""Formatted tables as text: CSV for programs, and aligned columns for a terminal."""

import csv
import io
import re

from riskset.tables.content import TableContent

__all__ = ["csv_names", "csv_text", "plain_text"]

MINUS = "\N{MINUS SIGN}"
NARROW = "\N{NARROW NO-BREAK SPACE}"
BETWEEN_DIGITS = re.compile(rf"(?<=\d){NARROW}(?=\d)")
GAP = "  "


def csv_text(table: TableContent) -> str:
    """The table as CSV: a line of names, a line for each row, and the section as first column.

    Numbers have a hyphen for a minus sign and no space between thousands. Title, footnotes and
    indentation have no place in a CSV file; the columns are named "spanner: title".
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(csv_names(table))
    for row in table.rows:
        section = [row.section or ""] if table.has_sections else []
        writer.writerow([_simple(cell) for cell in (*section, *row.cells)])
    return file.getvalue()


def csv_names(table: TableContent) -> list[str]:
    """Names of the columns: "spanner: title", after "Section" where rows have sections."""
    names = [f"{c.spanner}: {c.title}" if c.spanner else c.title for c in table.columns]
    return ["Section", *names] if table.has_sections else names


def _simple(cell: str) -> str:
    return BETWEEN_DIGITS.sub("", cell).replace(NARROW, " ").replace(MINUS, "-")


def plain_text(table: TableContent) -> str:
    """The table in columns of characters, for a terminal."""
    lines = [["  " * row.indent + row.cells[0], *row.cells[1:]] for row in table.rows]
    titles = [column.title for column in table.columns]
    widths = [max(map(len, column)) for column in zip(titles, *lines, strict=True)]
    for spanner, start, end in table.spans():
        between = sum(widths[start:end]) + len(GAP) * (end - start - 1)
        widths[end - 1] += max(0, len(spanner or "") - between)
    rule = "-" * (sum(widths) + len(GAP) * (len(widths) - 1))
    out = [table.title] if table.title else []
    if table.has_spanners:
        parts = []
        for spanner, start, end in table.spans():
            width = sum(widths[start:end]) + len(GAP) * (end - start - 1)
            parts.append((spanner or "").center(width))
        out.append(GAP.join(parts))
    out += [_line(table, titles, widths), rule]
    place = 0
    for section, rows in table.blocks():
        out += [section] if section else []
        out += [_line(table, line, widths) for line in lines[place : place + len(rows)]]
        place += len(rows)
    out += [rule] if table.footnotes else []
    return "\n".join(line.rstrip() for line in (*out, *table.footnotes))


def _line(table: TableContent, cells: list[str], widths: list[int]) -> str:
    return GAP.join(
        cell.rjust(width) if column.is_number else cell.ljust(width)
        for cell, width, column in zip(cells, widths, table.columns, strict=True)
    )
