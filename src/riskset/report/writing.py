"""Write the report and `report.json`."""

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from riskset._errors import InputError, ReportTooLarge
from riskset.data.writers import check_target, replacing, write_json
from riskset.report.content import collect, plain
from riskset.report.html_page import draw
from riskset.report.source import ReportSource
from riskset.report.translations import Translations
from riskset.results.folder import StudyResults

__all__ = ["write"]

THEMES = ("light", "dark")
CURVES = ("risk", "survival")
LIMIT = 5_000_000
"""Bytes of one file, below which any mail server and browser takes it."""


def write(
    results: str | Path | StudyResults,
    path: str | Path,
    *,
    language: str = "en",
    blind: bool | None = None,
    min_cell_count: int | None = None,
    theme: str = "light",
    curves: str | None = None,
    date: str | datetime.date | None = None,
) -> Path:
    """Write the HTML report of a study, and its numbers as JSON.

    Parameters
    ----------
    results : path or StudyResults
        The folder of results, or the opened results.
    path : path
        File name that ends in ``.html``. The numbers go to the same name with ``.json``. If several
        outcomes make the report larger than 5 MB, this file is an index, and each outcome has its
        own HTML and JSON file, ``NAME-1.html``, ``NAME-2.html``, ...
    language : str
        Language of the sentences.
    blind : bool, optional
        Withhold effects, curves and adjusted risks of estimates whose diagnostics failed. Results
        that were written blind do not contain them in either case. Default: the setting in the
        section ``sharing`` of the specification.
    min_cell_count : int, optional
        Hide counts above 0 and below this number, and numbers from which such a count follows.
        Counts that the results hide remain hidden. Default: the setting in the section ``sharing``
        of the specification.
    theme : {"light", "dark"}
        "light" follows the reader's system. Printed pages are always white.
    curves : {"risk", "survival"}, optional
        What the curves show. Default: the setting in the section ``report`` of the specification.
        With competing events, the report shows cumulative incidences and says so.
    date : date, optional
        Date of writing. Only this line differs between two reports of the same results. Default:
        today.

    Returns
    -------
    Path
        Path of the report.

    Raises
    ------
    InputError
        If there are no results, or an argument is not valid.
    ReportTooLarge

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> study = rs.study.Study.parse(rs.study.example())
    >>> with tempfile.TemporaryDirectory() as place:
    ...     results = rs.study.run(study, Path(place, "study"))
    ...     rs.report.write(results, Path(place, "report.html")).name
    ...     sorted(path.name for path in Path(place).iterdir())
    'report.html'
    ['report.html', 'report.json', 'study']
    """
    target = Path(path)
    check_target(target, suffixes=(".html", ".htm"))
    if theme not in THEMES:
        raise InputError.wrong_option("theme", theme, THEMES)
    if curves is not None and curves not in CURVES:
        raise InputError.wrong_option("curves", curves, CURVES)
    say = Translations(language)
    opened = StudyResults.open(results) if isinstance(results, str | Path) else results
    source = ReportSource(opened, say, blind=blind, min_cell_count=min_cell_count, curves=curves)
    written = str(datetime.date.today() if date is None else date)
    content = collect(source)
    if not content["parts"]:
        raise InputError(
            "the results have no outcome of interest, so there is nothing to report.",
            hint="list one in the specification that is not a control.",
        )
    for name, (text, numbers) in _files(content, say, theme, written, target).items():
        place = target.with_name(name)
        with replacing(place) as (temporary,):
            temporary.write_text(text, encoding="utf-8", newline="\n")
        write_json(place.with_suffix(".json"), plain(numbers))
    return target


Files = dict[str, tuple[str, Mapping[str, Any]]]


def _files(
    content: Mapping[str, Any], say: Translations, theme: str, written: str, target: Path
) -> Files:
    """Texts and numbers by name: one of each, or an index and those of each part."""
    text = draw(content, say, theme, written)
    if _size(text) < LIMIT:
        return {target.name: (text, content)}
    parts = content["parts"]
    if len(parts) == 1:
        raise _too_large(content, _size(text), target.name)
    out: Files = {}
    links = [f"{target.stem}-{k}{target.suffix}" for k in range(1, len(parts) + 1)]
    for name, part in zip(links, parts, strict=True):
        of_part = {**content, "parts": [part]}
        page = draw(of_part, say, theme, written)
        if _size(page) >= LIMIT:
            raise _too_large(of_part, _size(page), name)
        out[name] = (page, of_part)
    short = [{key: part[key] for key in ("about", "header")} for part in parts]
    index = {**content, "parts": short}
    out[target.name] = (draw(index, say, theme, written, links), index)
    return out


def _size(text: str) -> int:
    return len(text.encode("utf-8"))


def _too_large(content: Mapping[str, Any], size: int, name: str) -> ReportTooLarge:
    sizes = {key: len(json.dumps(plain(block))) for key, block in content["parts"][0].items()}
    biggest = sorted(sizes, key=lambda key: -sizes[key])[:3]
    listed = ", ".join(f"{key} ({sizes[key] / 1e6:.1f} MB of numbers)" for key in biggest)
    return ReportTooLarge(
        f"{name!r} would be {size / 1e6:.1f} MB, more than the {LIMIT / 1e6:g} MB that a report "
        f"may be. Its biggest blocks: {listed}.",
        hint="shorten what fills them, such as the settings or the names of covariates; the "
        "tables of the results hold all numbers.",
    )
