"""Sentences with rounded numbers, because any number of people in them may reveal a small count."""

import re
from collections.abc import Iterator, Sequence

from riskset.disclosure.rows import Results
from riskset.disclosure.small_cells import is_small
from riskset.results.rows import RemarkRow, RunRow, ScoreRow

__all__ = ["SETTINGS_ONLY", "plain_sentence", "reason_of", "share_reasons", "share_remarks"]

SETTINGS_ONLY = frozenset(
    {
        "ci_open", "few_controls", "few_events", "no_curves", "no_ranges", "no_roll_up", "no_score",
        "no_score_codes", "single_stratum", "strata_merged", "too_few_controls",
        "unknown_covariate", "unknown_version", "weights_as_counts",
    }
)  # fmt: skip
"""Codes of remarks whose numbers are settings, or count strata, controls or covariates."""

IN_ATTRITION = frozenset({"death_before_index"})
"""Codes of remarks whose counts the attrition has, which hides them together with others."""

NOT_SAID = frozenset({"bad_input"})
"""Statuses whose sentences quote single rows of the data."""

WITHHELD = "The reason quotes the data and is in the private results."

PARTS = re.compile(
    r"(?<!\w)(?:'[^']*[^\W\d][^']*'|\"[^\"]*[^\W\d][^\"]*\"|`[^`]*`)(?!\w)|\d{4}-\d\d-\d\d"
    r"|(about |fewer than )?(?<!\w)(\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)"
)
"""Names in quotes and dates, which stay, and numbers, which do not.

Whoever writes a sentence puts settings and codes into backquotes, such as cohort `7`. Digits that
follow a letter belong to a name, such as ICD10CM.
"""


def plain_sentence(text: str, least: int) -> str:
    """A sentence whose numbers are rounded, and whose small ones are called small.

    Numbers are rounded to two digits, and to a power of ten that is at least twice the minimum, so
    that no difference of two of them, or to a number shown elsewhere, reveals a small count.

    Examples
    --------
    >>> plain_sentence("3 of 1,512 people have 'x 3' (0.998)", 5)
    "fewer than 5 of about 1,500 people have 'x 3' (...)"
    """

    def shown(found: "re.Match[str]") -> str:
        before, number = found.groups()
        if number is None:
            return found[0]
        end = "," if number.endswith(",") else ""
        digits = number.rstrip(",").replace(",", "")
        if not digits.isdigit():
            return f"{before or ''}...{end}"
        if before == "fewer than " and int(digits) >= least:
            return found[0]
        return _rounded(int(digits), least) + end

    return PARTS.sub(shown, text)


def _rounded(count: int, least: int) -> str:
    if count == 0:
        return "0"
    if is_small(count, least):
        return f"fewer than {least}"
    step = 1
    while step < 2 * least or count // step >= 100:
        step *= 10
    return f"about {max(step, (count + step // 2) // step * step):,}"


def share_remarks(rows: Sequence[RemarkRow], results: Results) -> Iterator[RemarkRow]:
    """Rows of the table `warnings`."""
    for row in rows:
        text = row.message
        if row.code in IN_ATTRITION:
            text = PARTS.sub(lambda found: "some" if found[2] else found[0], text)
        elif row.code not in SETTINGS_ONLY:
            text = plain_sentence(text, results.least)
        yield row.changed({"message": text})


def share_reasons(rows: Sequence[RunRow], results: Results) -> Iterator[RunRow]:
    """Rows of the table `runs`."""
    for row in rows:
        yield row.changed({"reason": reason_of(row, results.least)})


def reason_of(row: RunRow | ScoreRow, least: int) -> str | None:
    """The reason of a status as it may be shown."""
    text = row.reason
    if text is None or row.status in SETTINGS_ONLY:
        return text
    return WITHHELD if row.status in NOT_SAID else plain_sentence(text, least)
