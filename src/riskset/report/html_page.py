"""The page as a whole: head, contents, parts, and what keeps it to itself."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from riskset.cohort.effects.effect_scale import scale_of
from riskset.report.content import SECTIONS
from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import capital, interval, p_value, significant
from riskset.report.page import Facts, Page, ReportRow, TableColumn
from riskset.report.script import SCRIPT, fingerprint
from riskset.report.sections import checklist, header, overlap, reproduction
from riskset.report.style import style
from riskset.report.translations import Translations
from riskset.results.rows import EstimateRow

__all__ = ["draw", "html_document", "page_of"]

BELIEF = (
    *("overlap", "balance", "characteristics", "controls", "unmeasured", "follow_up"),
    "per_protocol",
)
"""Sections under one heading, which asks whether the result can be believed."""


def draw(
    content: Facts,
    say: Translations,
    theme: str,
    written: str,
    links: Sequence[str] = (),
    page: Page | None = None,
) -> str:
    """The HTML of a report from what `riskset.report.content.collect` makes.

    `written` is a date, on a line of its own. With `links` to the files of the parts, the page is
    an index of them. Everything is written on a `page`, by default an empty one.
    """
    page = page or Page(say, min_cell_count=content["min_cell_count"])
    parts, runs = content["parts"], content["index"]["tables"]["runs"]
    several = len(parts) > 1 or bool(links)
    pages = [page_of(page, k, part["about"], several) for k, part in enumerate(parts)]
    title = capital(str(content["title"])) if several else _title(pages[0])
    body = tag(
        "body",
        tag("a", say("page.skip"), href="#main", class_="skip"),
        tag(
            "main",
            _top(page, title, content, written, several),
            _contents(page, pages, parts, several, len(runs) > 1, links),
            _index(page, runs) if several else None,
            *(_part(one, part, several, runs) for one, part in zip(pages, parts, strict=True)),
            checklist.render(page.under("checklist"), content["checklist"], pages[0], *links[:1]),
            reproduction.render(page.under("reproduction"), content["reproduction"]),
            id="main",
        ),
        tag("footer", tag("p", say("page.footer")), class_="byline"),
        tag("script", Markup(SCRIPT)),
        data_cue=say("table.cue"),
    )
    return html_document(title, body, say.language, theme)


def html_document(title: str, body: Markup, language: str, theme: str) -> str:
    """A page that needs no other file, and may load none."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _policy(),
        tag("meta", name="generator", content="riskset"),
        tag("title", title),
        tag("style", Markup(style(theme))),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang=language)}\n"


def _policy() -> Markup:
    rules = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src '{fingerprint(SCRIPT)}'"
    )
    return Markup('<meta http-equiv="Content-Security-Policy" content="{}">').format(Markup(rules))


def page_of(page: Page, k: int, about: Facts, several: bool) -> Page:
    """The page of a part."""
    page = replace(
        page.under(f"parts/{k}"),
        say=page.say.about(
            {**page.say.units(about["time_unit"]), **page.say.ratio(about["scale"]), **about}
        ),
        about=about,
    )
    return replace(page, prefix=f"p{k + 1}-", level=page.level + 1) if several else page


def _title(page: Page) -> str:
    return capital(page.say("page.title"))


def _top(page: Page, title: str, content: Facts, written: str, several: bool) -> Markup:
    say, data = page.say, content["data"]
    source = say("page.data", name=data["name"])
    if data["start"] and data["end"]:
        source = f"{source}, {say('page.dates', start=data['start'], end=data['end'])}"
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    lines = [
        source,
        say("page.analysed", date=content["analysed"], versions=versions),
        say("page.settings", hash=content["settings_hash"][:12]),
        say("page.unreviewed"),
    ]
    return join(
        tag("h1", title),
        None if several else tag("p", content["title"], class_="byline"),
        tag("p", content["description"]) if content["description"] else None,
        tag("p", tag("br").join(lines), class_="byline"),
        Markup("\n"),
        tag("p", say("page.written", date=written), class_="byline"),
        Markup("\n"),
    )


def _contents(
    page: Page,
    pages: Sequence[Page],
    parts: Sequence[Facts],
    several: bool,
    has_index: bool,
    files: Sequence[str],
) -> Markup:
    say = page.say
    if several:
        places = files or [f"#{one.key('part')}" for one in pages]
        links = [("#index", say("section.index"))]
        links += [(place, _title(one)) for place, one in zip(places, pages, strict=True)]
    else:
        links = _sections(pages[0], parts[0])
        if has_index:
            links.insert(1, ("#index", say("section.index")))
    for name in ("checklist", "reproduction"):
        links.append((f"#{page.key(name)}", say(f"section.{name}")))
    return tag(
        "nav",
        tag("h2", say("page.contents"), id="contents"),
        tag("ol", *(tag("li", tag("a", title, href=place)) for place, title in links)),
        aria_labelledby="contents",
    )


def _sections(page: Page, part: Facts) -> list[tuple[str, str]]:
    """Places and titles of the sections of a part; the diagnostics are the first."""
    names = dict.fromkeys("belief" if name in BELIEF else name for name in _names(part))
    links = [(name, page.say(f"section.{name}")) for name in names]
    if part["header"]["tables"]["diagnostics"]:
        links.insert(0, ("checks", page.say("header.checks")))
    return [(f"#{page.key(name.replace('_', '-'))}", title) for name, title in links]


def _names(part: Facts) -> list[str]:
    """Sections of a part, in the order of the page."""
    order = ("question", "covariates", *(n for n in SECTIONS if n != "question"))
    return [name for name in order if name in part]


def _part(page: Page, part: Facts, several: bool, runs: list[ReportRow]) -> Markup:
    content = [header.render(replace(page.under("header"), level=page.level - 1), part["header"])]
    if not several and len(runs) > 1:
        content.append(_index(replace(page, path="", prefix=""), runs))
    for is_belief, group in groupby(_names(part), key=lambda name: name in BELIEF):
        level = 1 if is_belief else 0
        sections = [_section(page.under(name, level), name, part[name]) for name in group]
        content += [page.section("belief", *sections)] if is_belief else sections
    if not several:
        return join(*content)
    title = tag(f"h{page.level - 1}", _title(page), id=page.key("part"))
    links = (tag("li", tag("a", name, href=place)) for place, name in _sections(page, part))
    own = tag("nav", tag("ul", *links), aria_label=_title(page), class_="own")
    return tag("section", title, own, *content, aria_labelledby=page.key("part"))


def _section(page: Page, name: str, content: Facts) -> Markup:
    if name == "covariates":
        return _covariates(page, content["tables"]["flagged"])
    section: Markup = SECTIONS[name].render(page, content)
    return section


def _covariates(page: Page, rows: Sequence[ReportRow]) -> Markup:
    """For a score that could not be fitted: the covariates that cause it, and what to do."""
    return page.section(
        "covariates",
        page.paragraph("covariates.words", reason=page.reason),
        page.paragraph("covariates.advice"),
        overlap.render_flagged(page, rows) or page.paragraph("covariates.none", "note"),
    )


def _index(page: Page, rows: list[ReportRow]) -> Markup:
    """Every estimate on a line, after its diagnostics."""
    words = page.say.ratio(scale_of(row["model"] for row in rows if row["model"]))
    page = replace(page, say=page.say.about({**page.say.names, **words}))
    say = page.say
    # A column that says the same in every row says nothing.
    columns = [
        TableColumn.text(say(f"index.{key}"), key)
        for key in ("outcome", "target", "comparator", "analysis")
        if key == "outcome" or len({row[key] for row in rows}) > 1
    ]
    columns += [
        TableColumn(
            say("index.gate"),
            ("unblind", "failed"),
            lambda passed, failed: _gate(say, passed, failed),
            is_number=False,
        ),
        TableColumn(
            say("column.hr"),
            ("status", "is_withheld", "hr", "hr_lower", "hr_upper"),
            lambda *values: _ratio(say, *values),
        ),
        *_p_columns(page, rows, ""),
    ]
    if any(row["calibrated_hr"] is not None for row in rows):
        group, title = say("column.calibrated"), {"calibrated_hr": "column.of_calibrated_hr"}
        columns += page.columns(EstimateRow, "calibrated_hr", group=group, **title)
        columns += _p_columns(page, rows, "calibrated_", group)
    page = page.under("index")
    table = page.table("runs", say("index.caption"), columns, rows, can_sort=True, most=len(rows))
    is_adjusted = any(_is_adjusted(row, of) for row in rows for of in ("", "calibrated_"))
    note = page.paragraph("index.multiplicity", "note") if is_adjusted else None
    return page.section("index", table, note)


def _p_columns(
    page: Page, rows: list[ReportRow], of: str, group: str | None = None
) -> list[TableColumn]:
    """p, and adjusted p unless all families have one estimate."""
    names = ["p", "holm_p", "fdr_p"] if any(_is_adjusted(row, of) for row in rows) else ["p"]
    return [
        TableColumn(page.say(f"column.{name}"), (f"{of}{name}",), p_value, group=group)
        for name in names
    ]


def _is_adjusted(row: ReportRow, of: str) -> bool:
    return row[f"{of}holm_p"] is not None and row[f"{of}holm_p"] != row[f"{of}p"]


def _gate(say: Translations, passed: bool, failed: list[str]) -> str:
    """Whether the diagnostics passed, and which did not."""
    if passed:
        return say("index.passed")
    names = ", ".join(say.label("gate", name) for name in failed)
    return f"{say('index.failed')}: {names}" if names else say("index.failed")


def _ratio(say: Translations, status: str, withheld: bool, *ends: float | None) -> str:
    if withheld:
        return say("cell.withheld")
    if status != "ok" or ends[0] is None:
        return say.label("instead", status)
    return interval(*(significant(one) for one in ends))
