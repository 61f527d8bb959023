"""The page as a whole: head, contents, parts, and what keeps it to itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from riskset.report.content import SECTIONS
from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import capital, interval, significant
from riskset.report.page import Page, TableColumn
from riskset.report.script import SORT, fingerprint
from riskset.report.sections import header, overlap, reproduction
from riskset.report.style import style
from riskset.report.translations import Translations

__all__ = ["draw"]

Content = Mapping[str, Any]
BELIEF = ("overlap", "balance", "characteristics", "controls", "follow_up")
"""Sections under one heading, which asks whether the result can be believed."""


def draw(
    content: Content, say: Translations, theme: str, written: str, links: Sequence[str] = ()
) -> str:
    """The HTML of a report.

    Parameters
    ----------
    content : mapping
        As `riskset.report.content.collect` makes it.
    theme : {"light", "dark"}
    written : str
        The date, on a line of its own.
    links : sequence of str, optional
        Files of the parts, which are then not in this one.
    """
    several = len(content["parts"]) > 1 or bool(links)
    page = Page(say, min_cell_count=content["min_cell_count"])
    parts = [_part(page, k, part, several) for k, part in enumerate(content["parts"])]
    body = tag(
        "body",
        tag("a", say("page.skip"), href="#main", class_="skip"),
        tag(
            "main",
            _top(page, content, written, several),
            _contents(page, content, several, links),
            _index(page, content) if several else None,
            *parts,
            reproduction.render(page.under("reproduction"), content["reproduction"]),
            id="main",
        ),
        tag("footer", tag("p", say("page.footer")), class_="byline"),
        tag("script", Markup(SORT)),
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        _policy(),
        tag("meta", name="generator", content="riskset"),
        tag("title", _title(say, content)),
        tag("style", Markup(style(theme))),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang=say.language)}\n"


def _policy() -> Markup:
    rules = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src '{fingerprint(SORT)}'"
    )
    return Markup('<meta http-equiv="Content-Security-Policy" content="{}">').format(Markup(rules))


def _title(say: Translations, content: Content) -> str:
    if len(content["parts"]) == 1:
        about = content["parts"][0]["about"]
        names = {key: about[key] for key in ("target", "comparator", "outcome")}
        return capital(say("page.title", **names))
    return capital(str(content["title"]))


def _top(page: Page, content: Content, written: str, several: bool) -> Markup:
    say, data = page.say, content["data"]
    dates = (
        say("page.dates", start=data["start"], end=data["end"])
        if data["start"] and data["end"]
        else None
    )
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    lines = [
        say("page.data", name=data["name"]) + (f", {dates}" if dates else ""),
        say("page.analysed", date=content["analysed"], versions=versions),
        say("page.settings", hash=content["settings_hash"][:12]),
        say("page.unreviewed"),
    ]
    return join(
        tag("h1", _title(say, content)),
        tag("p", content["title"], class_="byline") if not several else None,
        tag("p", content["description"]) if content["description"] else None,
        tag("p", *_lines(lines), class_="byline"),
        Markup("\n"),
        tag("p", say("page.written", date=written), class_="byline"),
        Markup("\n"),
    )


def _lines(lines: list[str]) -> list[object]:
    out: list[object] = []
    for k, one in enumerate(lines):
        out += [tag("br")] if k else []
        out.append(one)
    return out


def _contents(page: Page, content: Content, several: bool, files: Sequence[str]) -> Markup:
    say, items = page.say, []
    if several:
        items.append(tag("li", tag("a", say("index.title"), href="#index")))
    for k, part in enumerate(content["parts"]):
        own = _page_of(page, k, several)
        links = [
            tag("li", tag("a", title, href=f"#{own.key(name)}"))
            for name, title in _entries(own, part)
        ]
        if several:
            title = _part_title(page, part["about"])
            place = files[k] if files else f"#{own.key('part')}"
            items.append(tag("li", tag("a", title, href=place)))
        else:
            items += links
    title = say("section.reproduction")
    items.append(tag("li", tag("a", title, href=f"#{page.key('reproduction')}")))
    return tag(
        "nav",
        tag("h2", say("page.contents"), id="contents"),
        tag("ol", *items),
        aria_labelledby="contents",
    )


def _entries(page: Page, part: Content) -> list[tuple[str, str]]:
    """Ids and titles of the sections of a part; those of one heading are one."""
    out: list[tuple[str, str]] = []
    for name in _names(part):
        if name in BELIEF:
            if not any(key == "belief" for key, _ in out):
                out.append(("belief", page.say("section.belief")))
        else:
            out.append((name, page.say(f"section.{name}")))
    return out


def _names(part: Content) -> list[str]:
    order = ("question", "covariates", *(n for n in SECTIONS if n != "question"))
    return [name for name in order if name in part]


def _page_of(page: Page, k: int, several: bool) -> Page:
    if not several:
        return page.under(f"parts/{k}")
    own = page.under(f"parts/{k}", level=1)
    return replace(own, prefix=f"p{k + 1}-")


def _part_title(page: Page, about: Content) -> str:
    names = {key: about[key] for key in ("target", "comparator", "outcome")}
    return capital(page.say("page.title", **names))


def _part(page: Page, k: int, part: Content, several: bool) -> Markup:
    own = _page_of(page, k, several)
    about = part["about"]
    top = replace(own, level=own.level - 1)
    content = [header.render(top.under("header"), part["header"], about)]
    belief: list[Markup] = []
    for name in _names(part):
        if name in BELIEF:
            belief.append(SECTIONS[name].render(own.under(name, level=1), part[name], about))
            continue
        if belief:
            content.append(_belief(own, belief))
            belief = []
        if name == "covariates":
            content.append(_covariates(own, part[name], about))
        else:
            content.append(SECTIONS[name].render(own.under(name), part[name], about))
    if belief:
        content.append(_belief(own, belief))
    if not several:
        return join(*content)
    title = tag(f"h{own.level - 1}", _part_title(page, about), id=own.key("part"))
    return tag("section", title, *content, aria_labelledby=own.key("part"))


def _belief(page: Page, sections: list[Markup]) -> Markup:
    return page.section("belief", page.say("section.belief"), *sections)


def _covariates(page: Page, found: Content, about: Content) -> Markup:
    """Of a score that could not be fitted: the covariates that are to blame, and what to do."""
    say = page.say
    reason = about["reason"] or say.label("status", about["status"])
    table = overlap.render_flagged(page.under("covariates"), found["tables"]["flagged"], about)
    return page.section(
        "covariates",
        say("section.covariates"),
        page.paragraph("covariates.words", reason=str(reason).rstrip(".")),
        page.paragraph("covariates.advice"),
        table or page.paragraph("covariates.none", "note"),
    )


def _index(page: Page, content: Content) -> Markup:
    """Every estimate on a line, with the gate before it."""
    say = page.say
    rows = content["index"]["tables"]["runs"]
    columns = [
        TableColumn.text(say("index.outcome"), "outcome"),
        TableColumn.text(say("index.target"), "target"),
        TableColumn.text(say("index.comparator"), "comparator"),
        TableColumn.text(say("index.analysis"), "analysis"),
        TableColumn.text(
            say("index.gate"), "unblind", lambda v: say("index.passed" if v else "index.failed")
        ),
        TableColumn(
            say("result.hr"),
            ("status", "is_withheld", "hr", "hr_lower", "hr_upper"),
            lambda *v: _ratio(say, *v),
        ),
        TableColumn(
            say("result.calibrated_hr"),
            ("calibrated_hr", "calibrated_hr_lower", "calibrated_hr_upper"),
            lambda *v: interval(*(significant(one) for one in v)),
        ),
    ]  # fmt: skip
    # A column that says the same in every row says nothing.
    same = {key for key in ("target", "comparator", "analysis") if len({r[key] for r in rows}) == 1}
    columns = [c for c in columns if c.keys[0] not in same]
    if all(row["calibrated_hr"] is None for row in rows):
        columns.pop()
    table = page.under("index").table("runs", say("index.caption"), columns, rows, can_sort=True)
    return page.section("index", say("index.title"), table)


def _ratio(say: Translations, status: str, withheld: bool, *ends: float | None) -> str:
    if withheld:
        return say("cell.withheld")
    if status != "ok" or ends[0] is None:
        return say.label("instead", status)
    return interval(*(significant(one) for one in ends))
