"""Formatted tables: what writers make of spanners, sections, indentation and odd characters."""

import csv
import io
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from docx import Document
from docx.oxml.ns import qn

from riskset import InputError
from riskset.tables import FormattedColumn, FormattedRow, FormattedTable, write_tables

ODD = 'a_b & 50% <c> #1 $x$ {y} ~ ^ \\ | "q" [z] \N{MICRO SIGN}g/m\N{SUPERSCRIPT TWO}'


def made(n_levels: int = 2) -> FormattedTable:
    before, after = "Before", "After"
    return FormattedTable(
        [
            FormattedColumn("Characteristic", is_number=False),
            FormattedColumn("Drug", before),
            FormattedColumn("No drug", before),
            FormattedColumn("SMD", after),
        ],
        [
            FormattedRow(("n", "1\N{NARROW NO-BREAK SPACE}204", "90", ""), is_bold=True),
            FormattedRow(("Sex", "", "", "\N{MINUS SIGN}0.12"), section="People"),
            *(
                FormattedRow((f"level {k}", "1", "2", ""), section="People", indent=1)
                for k in range(n_levels)
            ),
            FormattedRow((ODD, "3", "4", "\N{INFINITY}"), section="History"),
        ],
        title="Baseline & more",
        footnotes=["n (%).", "SMD: standardised mean difference."],
    )


def test_csv_has_a_name_for_each_column_and_numbers_that_programs_read() -> None:
    header, *rows = csv.reader(io.StringIO(made().to_csv()))
    assert header == ["Section", "Characteristic", "Before: Drug", "Before: No drug", "After: SMD"]
    assert rows[0] == ["", "n", "1204", "90", ""]
    assert rows[1] == ["People", "Sex", "", "", "-0.12"]
    assert rows[-1] == ["History", ODD, "3", "4", "\N{INFINITY}"]


def test_a_table_without_sections_has_no_column_for_them() -> None:
    table = FormattedTable([FormattedColumn("a")], [FormattedRow(("1",))])
    assert table.to_csv() == "a\n1\n"


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.cells: list[tuple[str, dict[str, str | None], str]] = []
        self._open: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag in ("th", "td", "caption"):
            self.cells.append((tag, dict(attrs), ""))
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag in ("th", "td", "caption"):
            self._open.pop()

    def handle_data(self, data):
        if self._open:
            tag, attrs, text = self.cells[-1]
            self.cells[-1] = tag, attrs, text + data


def test_html_has_headings_with_scopes_and_escapes_text() -> None:
    reader = _Reader()
    reader.feed(made().to_html())
    by_text = {text: (tag, attrs) for tag, attrs, text in reader.cells}
    assert by_text["Baseline & more"][0] == "caption"
    assert by_text["Before"] == ("th", {"class": "span", "scope": "colgroup", "colspan": "2"})
    assert by_text["People"][1]["scope"] == "rowgroup"
    assert by_text["level 0"][1]["scope"] == "row"
    assert by_text["level 0"][1]["style"] == "padding-left: 1.9em"
    assert by_text[ODD][0] == "th"
    assert by_text["SMD: standardised mean difference."] == ("td", {"colspan": "4"})


def test_word_merges_spanners_repeats_headings_and_keeps_rows_whole(tmp_path) -> None:
    document = Document(str(made().save(tmp_path / "table.docx")))
    (table,) = document.tables
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    assert rows[0] == ["", "Before", "Before", "After"]
    assert rows[1] == ["Characteristic", "Drug", "No drug", "SMD"]
    assert rows[3] == ["People"] * 4
    assert [row[0] for row in rows[4:7]] == ["Sex", "level 0", "level 1"]
    assert rows[-1][0] == ODD
    repeated = [row._tr.trPr.find(qn("w:tblHeader")) is not None for row in table.rows]
    assert repeated == [True, True] + [False] * 7
    indents = [row.cells[0].paragraphs[0].paragraph_format.left_indent for row in table.rows]
    assert [k for k, indent in enumerate(indents) if indent] == [5, 6]
    texts = [paragraph.text for paragraph in document.paragraphs]
    assert texts[0] == "Baseline & more"
    assert texts[-2:] == ["n (%).", "SMD: standardised mean difference."]


def test_a_wide_table_lies_across_the_page(tmp_path) -> None:
    columns = [FormattedColumn(str(k)) for k in range(7)]
    wide = FormattedTable(columns, [FormattedRow(("",) * 7)])
    section = Document(str(wide.save(tmp_path / "wide.docx"))).sections[0]
    assert section.page_width > section.page_height


def test_latex_escapes_all_that_has_a_meaning() -> None:
    lines = made().to_latex("tab:one").splitlines()
    assert r"\caption{Baseline \& more}" in lines
    assert r"\label{tab:one}" in lines
    assert (
        r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{Before} & \multicolumn{1}{c}{After} \\" in lines
    )
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}" in lines
    assert r"\quad level 0 & 1 & 2 &  \\" in lines
    (odd,) = [line for line in lines if line.startswith("a")]
    assert odd.startswith(
        r"a\_b \& 50\% \textless{}c\textgreater{} \#1 \$x\$ \{y\} \textasciitilde{} "
        r"\textasciicircum{} \textbackslash{} \textbar{} \textquotedbl{}q\textquotedbl{} {[}z{]} "
        r"\textmu{}g/m$^{2}$ & 3 & 4 & $\infty$ "
    )


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(tmp_path) -> None:
    path = write_tables([made(), made(80)], tmp_path / "tables.tex")
    done = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", path.name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]


def test_text_is_aligned_below_wide_spanners() -> None:
    table = FormattedTable(
        [FormattedColumn("x", is_number=False), FormattedColumn("y", "a long spanner")],
        [FormattedRow(("r", "1"))],
    )
    assert (
        str(table) == "   a long spanner\nx               y\n-----------------\nr               1"
    )


def test_frame_has_the_cells() -> None:
    frame = made().to_frame("pyarrow")
    assert frame.column_names[0] == "Section"
    assert frame.column("Before: Drug")[0].as_py() == "1\N{NARROW NO-BREAK SPACE}204"


def test_mistakes(tmp_path) -> None:
    with pytest.raises(InputError, match="row 0 of the table has 2 cells, but the table has 1"):
        FormattedTable([FormattedColumn("a")], [FormattedRow(("1", "2"))])
    with pytest.raises(InputError, match="needs a column"):
        FormattedTable([], [])
    with pytest.raises(InputError, match="one table, but there are 2"):
        write_tables([made(), made()], tmp_path / "a.csv")
    with pytest.raises(InputError, match=r"must end in .csv or .docx or .html or .tex"):
        made().save(tmp_path / "a.pdf")
    with pytest.raises(InputError, match="no table"):
        write_tables([], tmp_path / "a.html")
