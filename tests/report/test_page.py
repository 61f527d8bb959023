"""The page is one file that anybody can read: structure, safety, size, the same bytes again."""

import base64
import hashlib
import json
import re

import pytest

import riskset as rs
from report.conftest import DATE, read
from report.made import study, tables, write_made
from riskset._messages import Sentence, Value
from riskset.results.columns import sentence_columns
from riskset.results.rows import RemarkRow

HOSTILE = "<script>alert('x')</script>\"&' </title>"


def test_headings_are_one_outline(whole):
    levels = [int(e.tag[1]) for e in whole.page if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


def test_sections_stand_in_the_order_of_a_reader(whole):
    top = whole.page.all("h2")[1:]  # without the contents
    assert [e.text for e in top] == [
        "Diagnostics",
        "All results",
        "Research question",
        "Target trial and its emulation",
        "Main result",
        "Risk over time",
        "Validity of the result",
        "Study population",
        "Models",
        "Methods",
        "Reporting checklist",
        "Reproduction, references and glossary",
    ]
    belief = next(e for e in whole.page.all("section") if e.attrs["aria-labelledby"] == "belief")
    assert [e.children[0].text for e in belief.all("section")[1:]] == [
        "Overlap of the propensity scores",
        "Covariate balance",
        "Generalisability",
        "Baseline characteristics",
        "Negative controls",
        "Unmeasured confounding",
        "Follow-up",
    ]


def test_ids_are_unique_and_every_reference_leads_somewhere(whole):
    ids = [e.attrs["id"] for e in whole.page if "id" in e.attrs]
    assert len(ids) == len(set(ids))
    wanted = [e.attrs["href"][1:] for e in whole.page.all("a") if e.attrs["href"][0] == "#"]
    for e in whole.page:
        wanted += e.attrs.get("aria-labelledby", "").split()
        wanted += e.attrs.get("aria-describedby", "").split()
        wanted += re.findall(r"url\(#(.+?)\)", e.attrs.get("fill", ""))
    assert len(wanted) > 30
    assert set(wanted) <= set(ids)


def test_every_figure_says_what_it_shows(whole):
    images = whole.page.all("svg")
    assert len(images) >= 12
    for image in images:
        assert image.attrs["role"] == "img"
        title, desc = image.one("title"), image.one("desc")
        assert len(title.text) > 5
        assert len(desc.text) > 20
        assert image.attrs["aria-labelledby"] == title.attrs["id"]
    for figure in whole.page.all("figure"):
        assert figure.attrs["role"] == "group"
        assert len(figure.one("figcaption").text) > 20


def test_tables_have_captions_and_scopes(whole):
    found = whole.page.all("table")
    assert len(found) > 15
    for table in found:
        assert table.one("caption").text
        for head in table.all("th"):
            assert head.attrs["scope"] in ("col", "row", "colgroup", "rowgroup")
        widths = set()
        for row in table.one("tbody").all("tr"):
            widths.add(sum(int(c.attrs.get("colspan", 1)) for c in row.all("th", "td")))
            assert row.all("th")
        assert len(widths) == 1


def test_what_is_wider_than_the_page_scrolls_by_the_keyboard(whole):
    boxes = [e for e in whole.page if e.attrs.get("class") == "scroll"]
    assert all(e.attrs["tabindex"] == "0" and e.attrs["aria-label"] for e in boxes)
    inside = sum(len(e.all("table", "svg")) for e in boxes)
    assert inside == len(whole.page.all("table", "svg"))


def test_language_skip_link_and_contents(whole):
    assert whole.page.one("html").attrs["lang"] == "en"
    first = whole.page.one("body").all("a")[0]
    assert first.attrs["href"] == "#main"
    assert whole.page.by_id("main").tag == "main"
    links = {e.attrs["href"] for e in whole.page.one("nav").all("a")}
    assert {"#checks", "#question", "#result", "#belief", "#reproduction"} <= links


def test_it_needs_no_network(whole):
    for e in whole.page:
        for name, value in e.attrs.items():
            assert name not in ("src", "srcset", "style", "background", "action")
            assert not name.startswith("on")
            if "http" in value:
                is_reference = e.tag == "a" and value.startswith("https://doi.org/10.")
                assert is_reference or name == "http-equiv", (e.tag, name, value)
    assert not whole.page.all("link", "img", "iframe", "object", "embed", "base", "form")
    assert "@import" not in whole.html
    assert "url(" not in whole.page.one("style").text


def test_the_policy_allows_its_own_script_alone(whole):
    script = whole.page.one("script").text
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(e.attrs["content"] for e in whole.page.all("meta") if "http-equiv" in e.attrs)
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'"
    )
    assert len(script) < 3000


def test_size(whole):
    assert whole.path.stat().st_size < 800_000


def test_the_same_results_are_the_same_bytes_but_for_the_date(whole, tmp_path):
    folder = whole.path.parent / "results"
    again = read(rs.report.write(folder, tmp_path / "again.html", date=DATE))
    assert again.html == whole.html
    assert again.path.with_suffix(".json").read_bytes() == (
        whole.path.with_suffix(".json").read_bytes()
    )
    later = read(rs.report.write(folder, tmp_path / "later.html", date="2031-12-24"))
    differ = [
        (a, b)
        for a, b in zip(whole.html.split("\n"), later.html.split("\n"), strict=True)
        if a != b
    ]
    assert len(differ) == 1
    assert differ[0][0].replace(DATE, "2031-12-24") == differ[0][1]


def test_no_path_of_the_machine(whole):
    folder = str(whole.path.parent)
    for text in (whole.html, whole.path.with_suffix(".json").read_text("utf-8")):
        assert folder not in text
        assert "/tmp" not in text


def test_text_of_the_data_is_no_markup(report, whole):
    about, found = study(), tables()
    about["targets"]["thz"] = {"label": HOSTILE, "description": HOSTILE}
    about |= {"title": HOSTILE, "description": HOSTILE, "competing": HOSTILE}
    about["settings"] = {"name": HOSTILE}
    for rows in found.values():
        for row in rows:
            for key in ("name", "step", "message", "label", "reason"):
                if isinstance(row.get(key), str):
                    row[key] = HOSTILE + row[key]
    made = report(found, about)
    for tag in ("script", "title", "table", "svg", "section", "details", "tr", "td"):
        assert len(made.page.all(tag)) == len(whole.page.all(tag))
    assert made.page.one("h1").text.startswith(HOSTILE)
    assert HOSTILE in made.page.one("pre").text.replace('\\"', '"')


def test_code_spans_of_messages_are_code(report):
    """In sentences, cards and tables; where there is text only, they have no backticks."""
    about, found = study(), tables()
    span, words = "`folds: <a>`", "set `folds: <a>` higher"
    for analysis in about["analyses"].values():
        analysis["words"] |= dict.fromkeys(analysis["words"], words)
    for rows, key in (("warnings", "message"), ("attrition", "step"), ("ps", "reason")):
        for row in found[rows]:
            row[key] = words
    for row in found["ps"]:
        row |= {"status": "separated"}
    found["controls"][0] |= {"used": False, "reason": words}
    made = report(found, about)
    assert span not in made.html
    assert "`" not in made.text
    texts = [e.text for e in made.page.all("title", "desc", "text")]
    assert any("folds: <a>" in text for text in texts)
    places = {e.tag for e in made.page if any(child in e.children for child in e.all("code"))}
    assert places == {"p", "dd", "td", "th"}
    assert all(e.text == "folds: <a>" for e in made.page.all("code"))
    assert made.content["reproduction"]["tables"]["warnings"][0]["message"] == words

    failed = tables()
    failed["runs"][0] |= {"status": "not_converged", "step": "estimate", "reason": words + "."}
    for row in failed["estimates"]:
        row |= {"status": "not_converged", "hr": None}
    lead = next(e for e in report(failed).page.all("p") if "lead" in e.attrs.get("class", ""))
    assert lead.one("code").text == "folds: <a>"


def test_backticks_of_the_data_stay(report):
    found = tables()
    found["balance"][0]["name"] = found["balance"][0]["covariate_id"] = "a `quoted` name"
    assert "a `quoted` name" in report(found).html


def test_a_diagnostic_that_is_only_reported_has_no_verdict(whole):
    table = next(
        e for e in whole.page.all("table") if e.attrs["data-table"].endswith("tables/diagnostics")
    )
    rows = [[cell.text for cell in row.all("th", "td")] for row in table.one("tbody").all("tr")]
    records = whole.part["header"]["tables"]["diagnostics"]
    reported = [row for row, record in zip(rows, records, strict=True) if record["limit"] is None]
    assert reported
    assert all(row[2:] == ["reported only", "–"] for row in reported)
    assert all(row[3][0] in "✓✕" for row in rows if row not in reported)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out_from_the_page(theme):
    from riskset.report.style import style

    blocks = re.findall(r":root\{(.*?)\}", style(theme))
    for block in blocks:
        for declaration in block.strip(";").split(";"):
            assert re.fullmatch(r"--\w+:#[0-9a-f]{3,6}|color-scheme:[a-z ]+", declaration)
    colours = dict(re.findall(r"--(\w+):(#\w+)", blocks[0]))
    assert set(re.findall(r"var\(--(\w+)\)", style(theme))) <= set(colours)

    def luminance(colour):
        code = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
        parts = [int(code[k : k + 2], 16) / 255 for k in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(a, b):
        low, high = sorted((luminance(a), luminance(b)))
        return (high + 0.05) / (low + 0.05)

    for name in ("ink", "soft", "target", "comparator", "link", "good", "bad", "focus", "grey"):
        for ground in ("page", "card"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def test_arguments_that_cannot_be_used(tmp_path):
    folder = write_made(tmp_path / "results")
    for options, words in (
        ({"language": "tlh"}, r"`language` must be 'en', but it is 'tlh'"),
        ({"theme": "blue"}, r"`theme` must be 'light' or 'dark', but it is 'blue'"),
    ):
        with pytest.raises(rs.InputError, match=words):
            rs.report.write(folder, tmp_path / "report.html", **options)
    with pytest.raises(rs.InputError, match=r"must end in \.html"):
        rs.report.write(folder, tmp_path / "report.pdf")
    with pytest.raises(rs.InputError, match="there is no folder"):
        rs.report.write(tmp_path / "nowhere", tmp_path / "report.html")
    assert not list(tmp_path.glob("*.html"))


def test_it_is_a_step_of_a_study_too(tmp_path, whole):
    made = rs.cohort.report(whole.path.parent / "results", tmp_path / "report.html", date=DATE)
    assert made.read_bytes() == whole.path.read_bytes()


def test_competing_events_without_a_name(report):
    """Where the data have some, and the study does not say what they are."""
    made = report(about=study() | {"competing": None})
    words = "events coded as competing in the data"
    assert f"Competing events{words}" in made.text
    assert f"Competing events were: {words}. They end" in made.text
    assert "Competing events:" not in made.html
    assert "Competing events</text>" in made.html


REFUSED, INDICATED = "No covariate had missing values.", "were represented by an indicator."
ABSENT, BLIND = "without a record was treated as absent.", "that failed a diagnostic were withheld."


@pytest.mark.parametrize(
    ("kind", "covariates", "said"),
    [
        ("omop", {}, {ABSENT}),
        ("tables", {}, {REFUSED}),
        ("tables", {"missing": "indicator"}, {INDICATED}),
        ("tables", {"table": "long.parquet"}, {ABSENT}),
        ("tables", {"table": "long.parquet", "columns": ["age"]}, {ABSENT, REFUSED}),
    ],
)
@pytest.mark.parametrize("blind", [True, False])
def test_methods_say_only_what_was_done(report, kind, covariates, said, blind):
    about = study(blind=blind, settings={"data": {"covariates": covariates}})
    about["data"]["kind"] = kind
    text = " ".join(report(about=about).text.split())
    expected = said | ({BLIND} if blind else set())
    assert {words for words in (REFUSED, INDICATED, ABSENT, BLIND) if words in text} == expected


def test_methods_name_the_rule_of_balance_that_was_used(report):
    assert "no absolute standardised difference exceeded 0.1." in report().text
    about = study()
    about["analyses"]["matched"]["settings"] = {"balance": {"alpha": 0.05}}
    words = "was significantly above 0.1 (level 0.05, corrected for the number of covariates)."
    assert words in report(about=about).text
    found = tables()
    found["adjustments"][0] |= {"n_covariates": None, "has_balance": False}
    assert "Groups were considered balanced" not in report(found).text


def test_limits_of_diagnostics_are_not_said_to_unblind_where_nothing_is_withheld(report):
    title = "Diagnostics required before unblinding"
    assert title in report().text
    made = report(about=study(blind=False), blind=False)
    assert title not in made.text
    assert "Diagnostics and their limits" in made.text


def test_a_table_of_people_has_no_washout_that_the_report_knows(report):
    about = study()
    for analysis in about["analyses"].values():
        analysis["words"] = analysis["words"] | {"washout": None}
    assert "none required" in report(about=about).html
    about["data"]["kind"] = "tables"
    made = report(about=about)
    assert "none required" not in made.html
    assert "Covariates are measured before" not in made.text


def remark(n, *outcomes):
    sentence = Sentence("{n:event|events} outside observation.", {"n": Value("count", n)})
    return RemarkRow(
        step="time at risk",
        code="events_outside_observation",
        count=len(outcomes),
        where=f"thz, ace, {outcomes[0]}, matched",
        outcomes=json.dumps(outcomes),
    ).changed(sentence_columns("message", sentence))


def test_a_note_stands_once_with_the_number_of_each_outcome(report):
    found = tables()
    found["warnings"] = [remark(75, "hf"), remark(12, "nc1"), remark(12, "nc2"), remark(0, "nc3")]
    options = {"min_cell_count": 0, "about": study(min_cell_count=0)}
    made = report(found, **options)
    (row,) = made.content["reproduction"]["tables"]["warnings"]
    assert row["message"] == "some events outside observation."
    assert row["count"] == 4
    words = "heart failure (75); control outcome 1 (12); control outcome 2 (12); "
    assert f"{words}control outcome 3 (0)" in made.text
    found["warnings"] = [remark(75, "hf", "nc1")]
    made = report(found, **options)
    (row,) = made.content["reproduction"]["tables"]["warnings"]
    assert row["message"] == "75 events outside observation."
    assert "heart failure; control outcome 1" in made.text


def test_notes_about_different_things_stand_apart(report):
    """Names are words of the note; with a text no format of numbers is tried."""
    found, rows = tables(), []
    for name, outcome in (("age", "hf"), ("sex", "hf"), ("sex", "nc1")):
        values = {
            "name": Value("name", name),
            "of": Value("sentence", Sentence("in all")),
            "n": Value("count", 40),
        }
        sentence = Sentence("{name} is constant {of} {n:row|rows}.", values)
        rows.append(remark(9, outcome).changed(sentence_columns("message", sentence)))
    found["warnings"] = rows
    made = report(found, min_cell_count=0, about=study(min_cell_count=0))
    shown = made.content["reproduction"]["tables"]["warnings"]
    assert [row["message"] for row in shown] == [
        "age is constant in all 40 rows.",
        "sex is constant in all 40 rows.",
    ]
    assert [row["count"] for row in shown] == [1, 2]


def test_small_numbers_of_a_note_stay_hidden_with_its_outcome(report):
    found = tables()
    found["warnings"] = [remark(75, "hf"), remark(3, "nc1")]
    text = report(found).text
    assert "heart failure (about 80); control outcome 1 (fewer than 5)" in text


def test_notes_of_results_without_names_of_outcomes(report):
    found = tables()
    assert found["warnings"][0].get("outcomes") is None
    assert report(found).content["reproduction"]["tables"]["warnings"][0]["applies_to"] == [
        {"outcomes": [], "values": ""}
    ]
