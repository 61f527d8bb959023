"""Formatted tables as HTML: with headings that screen readers understand, in any colour scheme."""

from collections.abc import Sequence
from html import escape

from riskset.tables.content import FormattedRow, TableContent

__all__ = ["html_page", "html_table"]

STYLE = """\
table.riskset { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1em 0;
  border-top: 2px solid; border-bottom: 2px solid; }
table.riskset caption { caption-side: top; text-align: left; font-weight: bold; padding: .4em 0; }
table.riskset th, table.riskset td { padding: .2em .7em; text-align: left; border: 0;
  background: none; vertical-align: top; white-space: pre-line; }
table.riskset th { font-weight: normal; }
table.riskset thead th { font-weight: bold; vertical-align: bottom; }
table.riskset thead th.span { text-align: center; border-bottom: 1px solid; }
table.riskset thead tr:last-child > * { border-bottom: 1px solid; }
table.riskset .n { text-align: right; }
table.riskset tbody .bold > *, table.riskset th.section { font-weight: bold; }
table.riskset th.section { padding-top: .6em; }
table.riskset tfoot td { font-size: .85em; white-space: normal; }
table.riskset tfoot tr:first-child td { border-top: 1px solid; }
"""
PAGE_STYLE = """\
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; margin: 1.5em; }
div.riskset { overflow-x: auto; }
"""


def html_table(table: TableContent) -> str:
    """The table as an element, with its style."""
    return f"<style>\n{STYLE}</style>\n{_table(table)}"


def html_page(tables: Sequence[TableContent]) -> str:
    """A page with some tables."""
    title = escape(tables[0].title or "Table")
    body = "\n".join(f'<div class="riskset" tabindex="0">\n{_table(t)}</div>' for t in tables)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _table(table: TableContent) -> str:
    lines = ['<table class="riskset">']
    if table.title:
        lines.append(f"<caption>{escape(table.title)}</caption>")
    lines += ["<thead>", *_head(table), "</thead>"]
    for section, rows in table.blocks():
        lines.append("<tbody>")
        if section:
            n = len(table.columns)
            heading = f'<th class="section" scope="rowgroup" colspan="{n}">{escape(section)}</th>'
            lines.append(f"<tr>{heading}</tr>")
        lines += [_row(table, row) for row in rows]
        lines.append("</tbody>")
    if table.footnotes:
        n = len(table.columns)
        notes = (f'<tr><td colspan="{n}">{escape(note)}</td></tr>' for note in table.footnotes)
        lines += ["<tfoot>", *notes, "</tfoot>"]
    return "\n".join([*lines, "</table>", ""])


def _head(table: TableContent) -> list[str]:
    lines = []
    if table.has_spanners:
        cells = []
        for spanner, start, end in table.spans():
            width = f' colspan="{end - start}"' if end - start > 1 else ""
            scope = "colgroup" if end - start > 1 else "col"
            heading = f'<th class="span" scope="{scope}"{width}>{escape(spanner or "")}</th>'
            cells.append(heading if spanner else f"<td{width}></td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    titles = (
        f'<th scope="col"{_class(column.is_number)}>{escape(column.title)}</th>'
        for column in table.columns
    )
    return [*lines, f"<tr>{''.join(titles)}</tr>"]


def _row(table: TableContent, row: FormattedRow) -> str:
    first, *rest = row.cells
    indent = f' style="padding-left: {0.7 + 1.2 * row.indent:g}em"' if row.indent else ""
    cells = [f'<th scope="row"{indent}>{escape(first)}</th>']
    for cell, column in zip(rest, table.columns[1:], strict=True):
        cells.append(f"<td{_class(column.is_number)}>{escape(cell)}</td>")
    opening = '<tr class="bold">' if row.is_bold else "<tr>"
    return f"{opening}{''.join(cells)}</tr>"


def _class(is_number: bool) -> str:
    return ' class="n"' if is_number else ""
