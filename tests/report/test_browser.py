"""The report in headless Chromium: on screens of all sizes, in print, in the dark.

It needs the package playwright and a Chromium (`make browser`); without one of them these tests are
skipped.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

import riskset as rs
from parameters import rest_is_slow
from report.made import study, tables, two_outcomes, write_made

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
NAMES = ("chromium", "chromium-browser", "google-chrome")

LONG = "people with a treatment whose name is far longer than names of treatments ought to be"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
        if found is None and not Path(driver.chromium.executable_path).exists():
            pytest.skip("there is no Chromium: `make browser` installs one, or set CHROMIUM")
        # Chromium's sandbox wants privileges that containers seldom have; the page is our own.
        opened = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def long_names(tmp_path_factory):
    """A report in which everything has a long name."""
    about, found = study(), tables()
    for group, name in (("targets", "thz"), ("comparators", "ace"), ("outcomes", "hf")):
        about[group][name] = about[group][name] | {"label": f"{LONG} ({name})"}
    for name in ("balance", "ps_coefficients", "ps_flagged", "attrition", "estimates"):
        for row in found[name]:
            key = {"attrition": "step", "estimates": "label"}.get(name, "name")
            row[key] = f"{row[key]} {LONG}"
    folder = tmp_path_factory.mktemp("long")
    write_made(folder / "results", found, about)
    return rs.report.write(folder / "results", folder / "report.html")


@pytest.fixture(params=rest_is_slow(["whole", "long names"], 1))
def path(request, whole):
    if request.param == "whole":
        return whole.path
    return request.getfixturevalue("long_names")


@pytest.fixture
def visit(browser):
    """Open a page, and complain of everything that it logs, asks for, or fails at."""
    contexts, trouble = [], []

    def open_page(path, width=1000, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request",
            lambda request: trouble.append(request.url) if request.url != path.as_uri() else None,
        )
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []


def test_it_opens_without_a_request_or_a_complaint(visit, path):
    page = visit(path)
    assert page.title().endswith(page.locator("h1").inner_text()[-20:])
    assert page.locator("section").count() > 10
    for section in page.locator("section").all():
        assert section.is_visible()


def test_numbers_are_seen_as_they_are_in_the_json(visit, whole):
    page = visit(whole.path)
    lead = page.locator("p.lead").inner_text()
    assert "241 people in the target group (thiazide)" in lead
    assert "0.595 (95\u202f% CI 0.305–1.16)" in lead
    cell = page.locator("table[data-table='parts/0/result/tables/estimates'] tr.main td").nth(1)
    assert cell.inner_text() == "0.595 (0.305–1.16)"
    assert whole.part["header"]["estimate"]["hr"] == pytest.approx(0.5945, abs=1e-4)


@pytest.mark.parametrize("width", rest_is_slow([320, 640, 1400], 1))
def test_nothing_is_wider_than_the_screen(visit, path, width):
    page = visit(path, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.evaluate(
        "[...document.querySelectorAll('.scroll')].map(e => e.getBoundingClientRect().right)"
    )
    assert max(boxes) <= width


OVERFLOW = """() => {
  document.querySelectorAll('details').forEach(e => { e.open = true; });
  return [...document.querySelectorAll('.scroll')].map(e => [
    (e.querySelector('table') || e).dataset.table || 'figure', e.scrollWidth, e.clientWidth]);
}"""
CUES = """() => [...document.querySelectorAll('.scroll')].map(e => [
  e.scrollWidth > e.clientWidth + 1,
  e.previousElementSibling?.className === 'cue' && e.previousElementSibling.offsetHeight > 10])"""


@pytest.mark.parametrize("width", [900, 1000, 1400])
def test_no_table_is_cut_on_a_screen(visit, path, width):
    page = visit(path, width)
    found = page.evaluate(OVERFLOW)
    assert len(found) > 25
    assert [one for one in found if one[1] > one[2]] == []


def test_no_table_is_cut_on_paper(visit, path):
    page = visit(path, 673)  # 210 - 32 mm
    page.emulate_media(media="print")
    assert [one for one in page.evaluate(OVERFLOW) if one[1] > one[2]] == []


def test_what_is_wider_than_a_small_screen_says_so(visit, path):
    page = visit(path, 400)
    page.evaluate(OVERFLOW)
    page.wait_for_function("document.querySelectorAll('p.cue').length > 5")
    page.wait_for_timeout(200)
    found = page.evaluate(CUES)
    assert {is_cut for is_cut, _ in found} == {True, False}
    assert all(is_cut == has_cue for is_cut, has_cue in found)
    page.set_viewport_size({"width": 1400, "height": 900})
    page.wait_for_function("document.querySelectorAll('p.cue').length === 0")


TEXTS = """() => [...document.querySelectorAll('svg')].map(svg => {
  const view = svg.viewBox.baseVal;
  return [svg.querySelector('title').textContent, view.width, view.height,
    [...svg.querySelectorAll('text')].map(t => {
      const b = t.getBBox(), turned = t.hasAttribute('transform');
      const cx = b.x + b.width / 2, cy = b.y + b.height / 2;
      // A quarter turn about the anchor, which is the middle of such a text.
      return turned
        ? [t.textContent, +t.getAttribute('x') - b.height, +t.getAttribute('y') - b.width / 2,
           +t.getAttribute('x'), +t.getAttribute('y') + b.width / 2]
        : [t.textContent, b.x, b.y, b.x + b.width, b.y + b.height];
    })]
})"""


def test_no_text_of_a_figure_is_cut_off_or_overlaps_another(visit, path):
    page = visit(path)
    figures = page.evaluate(TEXTS)
    assert len(figures) >= 12
    for title, width, height, texts in figures:
        for words, left, top, right, bottom in texts:
            assert left >= -1, (title, words)
            assert top >= -1, (title, words)
            assert right <= width + 1, (title, words)
            assert bottom <= height + 1, (title, words)
        for k, (words, left, top, right, bottom) in enumerate(texts):
            for other, a, b, c, d in texts[:k]:
                # Boxes of lines may touch; glyphs keep a tenth of a line free.
                across = min(right, c) - max(left, a)
                along = min(bottom, d) - max(top, b)
                assert across <= 1 or along <= 3.5, (title, words, other)


def test_no_text_of_the_coverage_of_controls_is_cut_off(visit, report):
    page = visit(report(tables(), study(min_cell_count=0), min_cell_count=0).path)
    found = [one for one in page.evaluate(TEXTS) if one[0].startswith("Coverage of the")]
    ((_, width, _, texts),) = found
    assert all(left >= -1 and right <= width + 1 for _, left, _, right, _ in texts)


def test_it_is_dark_for_those_who_want_it(visit, whole):
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert visit(whole.path, color_scheme="dark").evaluate(ground) == "rgb(20, 23, 27)"
    assert visit(whole.path, color_scheme="light").evaluate(ground) == "rgb(255, 255, 255)"


def test_dark_on_demand_is_white_on_paper(visit, whole, tmp_path):
    made = rs.report.write(whole.path.parent / "results", tmp_path / "dark.html", theme="dark")
    page = visit(made, color_scheme="light")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(ground) == "rgb(20, 23, 27)"
    page.emulate_media(media="print")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


def test_it_prints_on_a4_without_a_cut_figure(visit, path):
    page = visit(path)
    made = page.pdf(prefer_css_page_size=True)
    sizes = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", made))
    assert len(sizes) == 1
    ((width, height),) = sizes
    assert (round(float(width)), round(float(height))) == (595, 842)
    page.emulate_media(media="print")
    rules = "e => getComputedStyle(e).breakInside"
    assert {page.eval_on_selector("figure", rules), page.eval_on_selector("tr", rules)} == {"avoid"}
    # A figure that is taller than a page (297 - 32 mm) would be cut all the same.
    page.set_viewport_size({"width": 673, "height": 1000})  # 210 - 32 mm
    heights = page.evaluate("[...document.querySelectorAll('figure')].map(e => e.offsetHeight)")
    assert max(heights) < 1000
    assert not page.locator("nav").is_visible()
    assert not any(one.is_visible() for one in page.locator("details:not([open])").all())
    heading = page.eval_on_selector("tr.group", "e => getComputedStyle(e).breakAfter")
    assert heading == "avoid"
    link = page.eval_on_selector(".refs a", "e => getComputedStyle(e, '::after').content")
    assert "attr(href)" in link or "https://doi.org" in link


def test_it_works_without_scripts(visit, whole):
    page = visit(whole.path, java_script_enabled=False)
    details = page.locator("#result ~ figure details, figure details").first
    table = details.locator("table")
    assert not table.is_visible()
    details.locator("summary").click()
    assert table.is_visible()
    assert page.locator("th button").count() == 0


def test_tables_are_sorted_by_a_click(visit, report):
    page = visit(report(tables(), study(min_cell_count=0), min_cell_count=0).path)
    table = page.locator("table[data-table='parts/0/controls/tables/controls']")
    cells = table.locator("tbody td:nth-child(2)")
    head = table.locator("thead tr").last.locator("th").nth(1)
    assert head.inner_text() == "Hazard ratio (CI)"
    for order, sign in (("ascending", 1), ("descending", -1)):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == order
        shown = [sign * float(text.split(" ")[0]) for text in cells.all_inner_texts()]
        assert len(shown) > 5
        assert shown == sorted(shown)


def test_the_overview_is_sorted_by_the_keyboard(visit, report):
    about, found = two_outcomes()
    for k, row in enumerate(found["estimates"]):
        row["p"] = (7 * k % 11) / 100
    page = visit(report(found, about).path)
    table = page.locator("table[data-table='index/tables/runs']")
    heads = table.locator("thead tr").last.locator("th")
    place = heads.all_inner_texts().index("Holm")
    heads.nth(place).locator("button").focus()
    for key, sign in (("Enter", 1), ("Space", -1)):
        page.keyboard.press(key)
        cells = table.locator(f"tbody tr > :nth-child({place + 1})").all_inner_texts()
        assert len(cells) == 4
        shown = [sign * float(text) for text in cells]
        assert shown == sorted(shown)


def test_the_keyboard_reaches_everything(visit, whole):
    page = visit(whole.path)
    page.keyboard.press("Tab")
    skip = page.locator("a.skip")
    assert skip.evaluate("e => e === document.activeElement")
    assert skip.bounding_box()["x"] >= 0
    assert skip.evaluate("e => getComputedStyle(e).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    boxes = page.locator(".scroll")
    assert boxes.first.evaluate("e => e.tabIndex") == 0


def test_a_warning_is_framed(visit, tmp_path):
    found = tables()
    found["runs"][0]["unblind"] = False
    folder = write_made(tmp_path / "results", found)
    page = visit(rs.report.write(folder, tmp_path / "report.html"))
    frame = page.eval_on_selector("p.warning", "e => getComputedStyle(e).borderTopStyle")
    assert frame == "solid"
    assert "withheld" in page.locator("p.warning").inner_text()


def test_arms_differ_without_colour(visit, whole):
    """Target: solid lines and discs; comparator: dashed lines and squares."""
    page = visit(whole.path)
    dash = "e => getComputedStyle(e).strokeDasharray"
    assert page.eval_on_selector("svg path.t:not(.thin)", dash) == "none"
    assert page.eval_on_selector("svg path.c:not(.thin)", dash) != "none"
    assert page.locator("svg circle.tmark").count() > 5
    assert page.locator("svg rect.cmark").count() > 5
    assert page.locator("svg rect.tmark, svg circle.cmark").count() == 0
