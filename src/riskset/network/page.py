"""The report of a network: one page that needs no other file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from riskset._version import __version__
from riskset.cohort.effects.effect_scale import scale_of
from riskset.network.bias import MIN_CONTROLS
from riskset.network.effect_words import models_of
from riskset.network.evidence import EstimateKey
from riskset.network.lines import network_lines, status_words
from riskset.report.figures.forest import forest
from riskset.report.html_page import html_document
from riskset.report.markup import Markup, join, tag
from riskset.report.number_format import (
    interval,
    p_value,
    percent,
    short_percent,
    significant,
    whole,
)
from riskset.report.page import Page, ReportRow, TableColumn
from riskset.report.script import SCRIPT
from riskset.report.translations import Translations

__all__ = ["network_page"]

REFERENCES = (
    ("Schuemie, Chen, Madigan and Suchard (2022). Combining Cox regressions across a heterogeneous "
     "distributed research network facing small and zero counts. Statistical Methods in Medical "
     "Research 31, 438-450.", "10.1177/09622802211060518"),
    ("Bu, Schuemie, Nishimura, Smith, Kostka, Falconer, McLeggon, Ryan, Hripcsak and Suchard "
     "(2024). Bayesian safety surveillance with adaptive bias correction. Statistics in Medicine "
     "43, 379-395.", "10.1002/sim.9968"),
    ("DerSimonian and Laird (1986). Meta-analysis in clinical trials. Controlled Clinical Trials "
     "7, 177-188.", "10.1016/0197-2456(86)90046-2"),
    ("Hartung and Knapp (2001). A refined method for the meta-analysis of controlled clinical "
     "trials with binary outcome. Statistics in Medicine 20, 3875-3889.", "10.1002/sim.1009"),
    ("Higgins and Thompson (2002). Quantifying heterogeneity in a meta-analysis. Statistics in "
     "Medicine 21, 1539-1558.", "10.1002/sim.1186"),
    ("Higgins, Thompson and Spiegelhalter (2009). A re-evaluation of random-effects meta-analysis. "
     "Journal of the Royal Statistical Society A 172, 137-159.",
     "10.1111/j.1467-985X.2008.00552.x"),
)  # fmt: skip
"""What the methods are from, and its digital object identifier."""
PAIR = ("hr", "hr_lower", "hr_upper")


def network_page(network: Any, theme: str = "light") -> str:
    """The HTML of a `NetworkResults`."""
    keys = network.keys()
    say = _say(network, keys)
    page = Page(say)
    title = say("network.title", n=len(network.sites))
    anchors = {key: f"estimate-{k}" for k, key in enumerate(keys, start=1)}
    headings = {key: _heading(say, network, key) for key in keys}
    links = [("sites", say("network.sites")), ("estimates", say("network.estimates"))]
    links += [(anchors[key], headings[key]) for key in keys]
    links.append(("methods", say("network.methods")))
    body = tag(
        "body",
        tag("a", say("page.skip"), href="#main", class_="skip"),
        tag(
            "main",
            tag("h1", title),
            tag("p", *_byline(say, network), class_="byline"),
            _contents(say, links),
            _block("sites", say("network.sites"), _sites(page, network)),
            _block("estimates", say("network.estimates"), _index(page, network, headings)),
            *(
                _block(anchors[key], headings[key], _estimate(page, network, key, headings[key]))
                for key in keys
            ),
            _block("methods", say("network.methods"), _methods(say, network)),
            id="main",
        ),
        tag("footer", tag("p", say("page.footer")), class_="byline"),
        tag("script", Markup(SCRIPT)),
        data_cue=say("table.cue"),
    )
    return html_document(title, body, say.language, theme)


def _say(network: Any, keys: Sequence[EstimateKey]) -> Translations:
    """Sentences with the name of the ratio of some estimates."""
    say = Translations("en")
    return say.about(say.ratio(scale_of(models_of(network, keys))))


def _heading(say: Translations, network: Any, key: EstimateKey) -> str:
    words = {name: network.label(name, getattr(key, name)) for name in EstimateKey._fields}
    return say("network.heading", **words)


def _byline(say: Translations, network: Any) -> list[object]:
    titles = dict.fromkeys(str(one.settings["title"]) for one in network.sites if one.settings)
    lines = [*titles, say("network.made", version=__version__), say("page.unreviewed")]
    out: list[object] = []
    for line in lines:
        out += [line, tag("br")]
    return out[:-1]


def _contents(say: Translations, links: Sequence[tuple[str, str]]) -> Markup:
    items = (tag("li", tag("a", words, href=f"#{place}")) for place, words in links)
    heading = tag("h2", say("page.contents"), id="contents")
    return tag("nav", heading, tag("ol", *items), aria_labelledby="contents")


def _block(key: str, title: str, *content: object) -> Markup:
    return tag("section", tag("h2", title, id=key), *content, aria_labelledby=key)


def _sites(page: Page, network: Any) -> Markup:
    say = page.say
    rows = [
        {
            "site": site.name,
            "data": site.description,
            "n": sum(row["status"] == "ok" for row in network.rows("sites", site=site.name)),
        }
        for site in network.sites
    ]
    columns = [TableColumn.text(say("network.name"), "site")]
    if any(row["data"] for row in rows):
        columns.append(TableColumn.text(say("network.data"), "data"))
    columns.append(TableColumn(say("network.n_pooled"), ("n",), whole))
    return page.table("network", say("network.sites_caption"), columns, rows, most=len(rows))


def _index(page: Page, network: Any, headings: Mapping[EstimateKey, str]) -> Markup:
    """Every pooled estimate on a line."""
    say = page.say
    rows: list[ReportRow] = []
    for key, heading in headings.items():
        row: ReportRow = {"heading": heading}
        for prefix, is_corrected in (("", False), ("corrected_", True)):
            for method in ("fixed", "random"):
                where = {"method": method, "corrected": is_corrected, "left_out": None}
                found = network.rows("pooled", **key._asdict(), **where)
                for name in PAIR:
                    row[f"{prefix}{method}_{name}"] = found[0][name] if found else None
                row["n"] = row.get("n") or (found[0]["n_sites"] if found else None)
        rows.append(row)
    names = ["fixed", "random"]
    if any(row["corrected_fixed_hr"] is not None for row in rows):
        names += ["corrected_fixed", "corrected_random"]
    columns = [
        TableColumn.text(say("network.estimate"), "heading"),
        TableColumn(say("network.n_sites"), ("n",), whole),
        *(_ratio_column(say(f"network.{name}"), f"{name}_") for name in names),
    ]
    caption = say("network.estimates_caption")
    return page.table("index", caption, columns, rows, can_sort=True, most=len(rows))


def _ratio_column(title: str, prefix: str = "") -> TableColumn:
    low, mid, high = (f"{prefix}{name}" for name in ("hr_lower", "hr", "hr_upper"))
    return TableColumn.interval(title, (mid, low, high))


def _estimate(page: Page, network: Any, key: EstimateKey, heading: str) -> Markup:
    say = _say(network, [key])
    page = replace(page, say=say)
    lines = network_lines(network, key)
    drawn = forest(
        [line.as_row() for line in lines], say.about({**say.names, **_arms(network, key)})
    )
    level = short_percent(network.level)
    name = f"forest-{key.outcome}-{key.target}-{key.comparator}-{key.analysis}"
    figure = page.figure(
        "network_figure", drawn, name=name, heading=heading, n=len(network.sites), level=level
    )
    return join(
        figure,
        tag("h3", say("network.of_sites")),
        _site_table(page, network, key),
        tag("h3", say("network.pooled_caption")),
        _pooled_table(page, network, key),
        tag("h3", say("network.heterogeneity")),
        _heterogeneity_table(page, network, key),
        _leave_one_out(page, network, key),
    )


def _arms(network: Any, key: EstimateKey) -> dict[str, str]:
    return {name: network.label(name, getattr(key, name)) for name in ("target", "comparator")}


def _site_table(page: Page, network: Any, key: EstimateKey) -> Markup:
    say = page.say
    rows = network.rows("sites", **key._asdict())
    columns = [
        TableColumn.text(say("network.name"), "site"),
        TableColumn.text(say("network.status"), "status", lambda code: status_words(say, code)),
        TableColumn(
            say("network.events"),
            ("target_outcomes", "comparator_outcomes"),
            lambda a, b: f"{whole(a)}, {whole(b)}",
        ),
        _ratio_column(say("column.hr")),
    ]
    if any(row["n_controls"] for row in rows):
        columns += [
            TableColumn(say("network.controls"), ("n_controls",), whole),
            TableColumn(
                say("network.bias"),
                ("bias_mean", "bias_sd"),
                lambda mean, sd: f"{significant(mean)} ({significant(sd)})",
            ),
            _ratio_column(say("network.corrected"), "corrected_"),
        ]
    caption = say("network.of_sites_caption")
    return page.table("sites", caption, columns, rows, most=len(rows))


def _method(say: Translations, row: Mapping[str, Any]) -> str:
    words = say(f"network.method_{row['method'].replace(' ', '_')}")
    return say("network.with_correction", method=words) if row["corrected"] else words


def _pooled_table(page: Page, network: Any, key: EstimateKey) -> Markup:
    say = page.say
    rows = network.rows("pooled", **key._asdict(), left_out=None)
    rows = [row | {"words": _method(say, row)} for row in rows]
    columns = [
        TableColumn.text(say("network.method"), "words"),
        TableColumn(say("network.n_sites"), ("n_sites",), whole),
        _ratio_column(say("column.hr")),
        TableColumn(say("column.p"), ("p",), p_value),
        TableColumn.interval(say("network.tau"), ("tau", "tau_lower", "tau_upper")),
        TableColumn(
            say("network.prediction"),
            ("predicted_hr_lower", "predicted_hr_upper"),
            lambda low, high: interval("", significant(low), significant(high)).strip(" ()"),
        ),
    ]
    if any(row["sites_left_out"] for row in rows):
        words = say("network.missing_sites")
        columns.append(TableColumn.text(words, "sites_left_out", lambda v: v.replace(";", ", ")))
    return page.table("pooled", say("network.pooled_caption"), columns, rows, most=len(rows))


def _heterogeneity_table(page: Page, network: Any, key: EstimateKey) -> Markup:
    say = page.say
    rows = network.rows("heterogeneity", **key._asdict())
    columns = [
        TableColumn.text(
            say("network.which"),
            "corrected",
            lambda v: say(f"network.{'after_correction' if v else 'as_given'}"),
        ),
        TableColumn.number(say("network.ratio"), "ratio"),
        TableColumn(say("network.ratio_p"), ("ratio_p",), p_value),
        TableColumn.number(say("network.q"), "q"),
        TableColumn(say("network.q_df"), ("q_df",), whole),
        TableColumn(say("network.q_p"), ("q_p",), p_value),
        TableColumn.interval(say("network.i2"), ("i2", "i2_lower", "i2_upper"), percent),
    ]
    caption = say("network.heterogeneity_caption")
    return page.table("heterogeneity", caption, columns, rows, most=len(rows))


def _leave_one_out(page: Page, network: Any, key: EstimateKey) -> Markup | None:
    say = page.say
    found: dict[str, ReportRow] = {}
    for row in network.rows("pooled", **key._asdict(), corrected=False):
        if row["method"] in ("fixed", "random"):
            name = row["left_out"] or say("network.none_left_out")
            own = found.setdefault(name, {"left_out": name})
            own |= {f"{row['method']}_{part}": row[part] for part in PAIR}
    if len(found) == 1:
        return None
    columns = [
        TableColumn.text(say("network.left_out"), "left_out"),
        _ratio_column(say("network.fixed"), "fixed_"),
        _ratio_column(say("network.random"), "random_"),
    ]
    rows = list(found.values())
    caption = say("network.leave_one_out_caption")
    table = page.table("leave_one_out", caption, columns, rows, most=len(rows))
    return join(tag("h3", say("network.leave_one_out")), table)


def _methods(say: Translations, network: Any) -> Markup:
    mu, tau = network.prior_sd
    items = (
        tag("li", words, " ", tag("a", f"doi:{doi}", href=f"https://doi.org/{doi}"))
        for words, doi in REFERENCES
    )
    return join(
        tag("p", say("network.text_fixed")),
        tag("p", say("network.text_random", mu=significant(mu, 2), tau=significant(tau, 2))),
        tag("p", say("network.text_normal")),
        tag("p", say("network.text_bias", n=MIN_CONTROLS)),
        tag("p", say("network.text_diagnostics")),
        tag("h3", say("network.references")),
        tag("ul", *items, class_="refs"),
    )
