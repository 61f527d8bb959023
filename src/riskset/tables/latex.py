r"""Formatted tables as LaTeX, with the rules of the package ``booktabs``.

A table of more than `LONGEST` rows is a ``longtable``, which continues on the next page.
"""

from collections.abc import Sequence

from riskset.tables.content import FormattedRow, TableContent

__all__ = ["latex_document", "latex_table"]

LONGEST = 45
"""Rows of a table that fits on a page."""

SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",
    "]": "{]}",
    "\N{MINUS SIGN}": "$-$",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
    "\N{NO-BREAK SPACE}": "~",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{INFINITY}": r"$\infty$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{DEGREE SIGN}": r"\textdegree{}",
    "\N{MICRO SIGN}": r"\textmu{}",
    "\N{GREEK SMALL LETTER MU}": r"\textmu{}",
    "\N{DAGGER}": r"\textdagger{}",
    "\n": r"\newline ",
    **{
        raised: f"$^{{{plain}}}$"
        for raised, plain in zip(
            "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079",
            "-0123456789",
            strict=True,
        )
    },
}
ESCAPED = str.maketrans(SPECIAL)


def latex_table(table: TableContent, label: str | None = None) -> str:
    r"""The table as an environment for a document that loads ``booktabs`` (and ``longtable``)."""
    is_long = len(table.rows) > LONGEST
    needs = "booktabs and longtable" if is_long else "booktabs"
    lines = _long(table, label) if is_long else _short(table, label)
    return "\n".join([f"% Needs the LaTeX package{'s' * is_long} {needs}.", *lines, ""])


def latex_document(tables: Sequence[TableContent]) -> str:
    """A document with some tables, which compiles as it is."""
    body = "\n\n".join(latex_table(table) for table in tables)
    packages = ("[T1]{fontenc}", "[utf8]{inputenc}", "{textcomp}", "{booktabs}", "{longtable}")
    head = ["\\documentclass{article}", *(f"\\usepackage{name}" for name in packages)]
    return "\n".join([*head, "\\begin{document}", "", body, "\\end{document}", ""])


def _short(table: TableContent, label: str | None) -> list[str]:
    lines = [r"\begin{table}[htbp]", r"\centering", *_caption(table, label)]
    lines += [r"\smallskip"] if table.title else []
    lines += [f"\\begin{{tabular}}{{{_kinds(table)}}}", r"\toprule", *_head(table), r"\midrule"]
    lines += [*_body(table), r"\bottomrule", r"\end{tabular}"]
    if table.footnotes:
        notes = r"\\ ".join(map(_text, table.footnotes))
        lines += [r"\par\smallskip", f"\\parbox{{\\linewidth}}{{\\footnotesize {notes}}}"]
    return [*lines, r"\end{table}"]


def _long(table: TableContent, label: str | None) -> list[str]:
    caption = _caption(table, label)
    lines = [f"\\begin{{longtable}}{{{_kinds(table)}}}"]
    lines += [*caption[:-1], f"{caption[-1]} \\\\"] if caption else []
    head = [r"\toprule", *_head(table), r"\midrule"]
    lines += [*head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"]
    lines += _body(table)
    if table.footnotes:
        over = f"\\multicolumn{{{len(table.columns)}}}{{@{{}}p{{\\linewidth}}@{{}}}}"
        notes = (f"{over}{{\\footnotesize {_text(note)}}} \\\\" for note in table.footnotes)
        lines += [r"\midrule", *notes]
    return [*lines, r"\end{longtable}"]


def _caption(table: TableContent, label: str | None) -> list[str]:
    lines = [f"\\caption{{{_text(table.title)}}}"] if table.title else []
    return [*lines, f"\\label{{{label}}}"] if label else lines


def _kinds(table: TableContent) -> str:
    return "".join("r" if column.is_number else "l" for column in table.columns)


def _head(table: TableContent) -> list[str]:
    lines = []
    if table.has_spanners:
        cells, rules = [], []
        for spanner, start, end in table.spans():
            cells.append(f"\\multicolumn{{{end - start}}}{{c}}{{{_text(spanner or '')}}}")
            if spanner:
                rules.append(f"\\cmidrule(lr){{{start + 1}-{end}}}")
        lines = [" & ".join(cells) + r" \\", "".join(rules)]
    return [*lines, " & ".join(_text(column.title) for column in table.columns) + r" \\"]


def _body(table: TableContent) -> list[str]:
    lines: list[str] = []
    for section, rows in table.blocks():
        if section:
            n = len(table.columns)
            lines += [r"\addlinespace"] if lines else []
            lines.append(f"\\multicolumn{{{n}}}{{l}}{{\\textbf{{{_text(section)}}}}} \\\\*")
        lines += map(_row, rows)
    return lines


def _row(row: FormattedRow) -> str:
    cells = [_text(cell) for cell in row.cells]
    if row.is_bold:
        cells = [f"\\textbf{{{cell}}}" if cell else "" for cell in cells]
    indent = r"\quad " * row.indent
    return f"{indent}{' & '.join(cells)} \\\\"


def _text(text: str) -> str:
    r"""Text in which no character has a meaning to LaTeX.

    >>> print(_text("50 % & more_"))
    50 \% \& more\_
    """
    return text.translate(ESCAPED)
