"""Tests between groups of ``riskset curves``: their options, and what is printed of them."""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from rich.table import Table

import riskset as rs
from riskset._errors import InputError, counted
from riskset._messages import spoken
from riskset._types import AnyArray
from riskset.cli.options import RESULT, given, option, require
from riskset.cli.terminal import plain_number, plain_table, short
from riskset.cli.wording import COMMAND_LINE

__all__ = ["ComparisonOptions", "FoundTests", "group_tests", "pairs_table", "refuse_for_incidence"]

TIME_WEIGHTS = ("rho", "gamma", "weighting")
"""Options that weigh the times of log-rank tests."""


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """How groups are compared."""

    rho: float = option(
        "Weigh times in log-rank tests by this power of the survival.", 0.0, panel=RESULT
    )
    gamma: float = option(
        "Weigh times in log-rank tests by this power of 1 - survival.", 0.0, panel=RESULT
    )
    weighting: Literal["fleming-harrington", "gehan-wilcoxon", "tarone-ware"] = option(
        "Weigh times in log-rank tests by powers of the survival, the number at risk or its root.",
        "fleming-harrington",
        panel=RESULT,
    )
    trend: str | None = option(
        "Also test for a trend over groups with these scores, such as doses, in the sorted order "
        "of the groups.",
        metavar="S,S,...",
        panel=RESULT,
        of="scores",
    )
    pairwise: Literal["holm", "bonferroni", "benjamini-hochberg", "none"] | None = option(
        "Also compare the survival of all pairs of groups by log-rank tests, with p values "
        "adjusted by this method.",
        panel=RESULT,
        of="adjust",
    )
    max_combo: bool = option(
        "Also compare the survival of two groups by the max-combo test, whose p value --plot then "
        "shows.",
        False,
        panel=RESULT,
    )

    @property
    def time_weights(self) -> dict[str, Any]:
        """How log-rank tests weigh times."""
        return {name: getattr(self, name) for name in TIME_WEIGHTS}

    def check(self, group: str | None, *, is_survival: bool) -> None:
        """Refuse tests without groups, and tests of survival where incidence is estimated."""
        if group is None:
            require(given(self, *TIME_WEIGHTS, "trend", "pairwise", "max_combo"), "--group")
        if not is_survival:
            refuse_for_incidence(given(self, *TIME_WEIGHTS, "pairwise", "max_combo"))

    def scores(self, groups: tuple[Any, ...]) -> AnyArray | None:
        """Scores of the groups, if a trend is asked for."""
        if self.trend is None:
            return None
        try:
            scores = [float(part) for part in self.trend.split(",")]
        except ValueError:
            scores = [math.nan]
        if not all(map(math.isfinite, scores)):
            raise InputError(
                f"--trend must be numbers, separated by commas, but it is {self.trend!r}.",
                hint="for example --trend 0,10,50.",
            )
        if len(scores) != len(groups):
            named = ", ".join(short(str(label), 26) for label in groups[:12])
            raise InputError(
                f"--trend has {counted(len(scores), 'score')}, but there are "
                f"{counted(len(groups), 'group')}: {named}{', ...' if len(groups) > 12 else ''}.",
                hint="give one score for each group, in this order.",
            )
        return np.array(scores)


def refuse_for_incidence(options: list[str]) -> None:
    """Raise an error if options of survival curves were given, but incidence is estimated."""
    for one in options[:1]:
        raise InputError(
            f"{one} is for survival curves, but the incidence of events is estimated.",
            hint="leave it out, or keep one kind of event and leave --cause out.",
        )


class FoundTests(NamedTuple):
    """Tests between groups.

    Attributes
    ----------
    lines : list of (str, str)
        What the summary says: names and results.
    drawn : GroupTest, MaxComboTest or None
        The test whose p value a picture has.
    pairs : PairwiseTests or None
    """

    lines: list[tuple[str, str]]
    drawn: "rs.GroupTest | rs.MaxComboTest | None" = None
    pairs: "rs.PairwiseTests | None" = None


def group_tests(
    outcome: "rs.Outcome", group: AnyArray | None, causes: list[Any], options: ComparisonOptions
) -> FoundTests:
    """The test of groups for each cause, those of survival if it is None, and what else is asked.

    A test that is not defined has a line that says why, unless it was asked for by an option.
    """
    is_asked = given(options, "trend", "pairwise", "max_combo")
    if group is None or (np.unique(group[outcome.weight > 0]).size < 2 and not is_asked):
        return FoundTests([])
    found, lines = [], []
    for cause in causes:
        ending = "" if cause is None else f", cause {cause}"
        try:
            test = _compared(outcome, group, cause, options)
        except InputError as error:  # the curves stand all the same
            if given(options, *TIME_WEIGHTS, "trend"):
                raise
            name = "log-rank test" if cause is None else "Gray's test"
            reason = f"none: {spoken(error.message, COMMAND_LINE)}"
            lines.append((short(f"{name}{ending}", 40), reason))
            continue
        found.append(test)
        lines.append((short(f"{test.method}{ending}", 60), _said(test)))
        scores = options.scores(test.groups)
        if scores is not None:
            trend = test.trend(scores)
            pairs = zip(test.groups, scores.tolist(), strict=True)
            listed = ", ".join(f"{short(str(label), 20)} {score:g}" for label, score in pairs)
            lines.append((short(f"trend{ending}", 40), f"{_said(trend)}; {listed}"))
    drawn: rs.GroupTest | rs.MaxComboTest | None = found[0] if found else None
    event = outcome.labels.get(outcome.cause, outcome.cause)
    if options.max_combo:
        drawn = rs.max_combo_test(outcome, group, event, cluster=outcome.cluster)
        rho, gamma = drawn.weights[int(np.abs(drawn.z).argmax())]
        largest = f"|z| {plain_number(drawn.statistic)} at rho {rho:g}, gamma {gamma:g}"
        lines.append((drawn.method, f"{largest}, {_p_value(drawn.p_value)}"))
    pairs_found = None
    if options.pairwise is not None:
        pairs_found = rs.pairwise_logrank_test(
            outcome, group, event, adjust=options.pairwise, cluster=outcome.cluster,
            **options.time_weights,
        )  # fmt: skip
    return FoundTests(lines, drawn, pairs_found)


def _compared(
    outcome: "rs.Outcome", group: AnyArray, cause: Any, options: ComparisonOptions
) -> "rs.GroupTest":
    """A log-rank test, or Gray's test of a cause."""
    if cause is None:
        event = outcome.labels.get(outcome.cause, outcome.cause)
        return rs.logrank_test(
            outcome, group, event, cluster=outcome.cluster, **options.time_weights
        )
    if outcome.cluster is not None:
        raise InputError(
            "Gray's test takes rows as independent, but --cluster was given.",
            hint="leave the test out, or leave --cluster out if each cluster has one row.",
        )
    return rs.gray_test(outcome, group, cause)


def _said(test: "rs.GroupTest") -> str:
    statistic = f"chi-square {plain_number(test.statistic)}, df {test.df}"
    return f"{statistic}, {_p_value(test.p_value)}"


def _p_value(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {plain_number(p, 3)}"


def pairs_table(pairs: "rs.PairwiseTests", most: int) -> Table:
    """Tests of pairs of groups, with adjusted p values."""
    table = plain_table()
    table.add_column(pairs.tests[0].method, no_wrap=True)
    titles = ["chi-square", "p"]
    titles += [] if pairs.adjust == "none" else [f"p, {pairs.adjust}"]
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for test, adjusted in list(zip(pairs, pairs.adjusted_p_value, strict=True))[:most]:
        first, second = (short(str(label), 20) for label in test.groups)
        p_values = [test.p_value, float(adjusted)][: len(titles) - 1]
        shown = (
            "-" if math.isnan(p) else "< 0.0001" if p < 1e-4 else plain_number(p, 3)
            for p in p_values
        )
        table.add_row(f"{first}, {second}", plain_number(test.statistic), *shown)
    return table
