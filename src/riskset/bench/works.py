"""The works of some experiments, declared once: help, tables and documentation go by them.

A work is a kind and a size, such as ``path:300x2000x100``. Nothing heavy is imported here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from riskset._errors import InputError

__all__ = [
    "DENSE",
    "ESTIMANDS",
    "SCALING",
    "ChosenWork",
    "WorkKind",
    "default_works",
    "listed",
    "reference",
]

ROWS = ("rows",)
TABLE = ("rows", "columns")
PATH = ("rows", "columns", "strengths")


class WorkKind(NamedTuple):
    """What can be asked for.

    Attributes
    ----------
    about : str
        What is measured.
    sizes : tuple of str
        What the numbers of a size are.
    works : tuple of str
        Sizes that are measured unless others are given, of a penalised fit with ``STRENGTH@`` in
        front.
    """

    about: str
    sizes: tuple[str, ...]
    works: tuple[str, ...]


DENSE: Mapping[str, WorkKind] = {
    "fit": WorkKind("Cox without a penalty", TABLE, ("100000x20", "1000000x20")),
    "errors": WorkKind(
        "Cox without a penalty and its standard errors", TABLE, ("100000x20", "1000000x20")
    ),
    "ties": WorkKind("the same with 300 distinct times", TABLE, ("100000x20",)),
    "efron": WorkKind("the same by Efron's method", TABLE, ("100000x20",)),
    "late": WorkKind("Cox with late entry", TABLE, ("100000x20",)),
    "robust": WorkKind("Cox with robust standard errors", TABLE, ("100000x20",)),
    "path": WorkKind(
        "path of L1 strengths, Cox",
        PATH,
        ("300x2000x100", "500x10000x100", "20000x200x56", "2000x20000x100"),
    ),
    "net": WorkKind(
        "path of an elastic net, half L1, Cox",
        PATH,
        ("300x2000x100", "500x10000x100", "20000x200x56", "2000x20000x100"),
    ),
    "finegray": WorkKind(
        "path of L1 strengths, Fine-Gray",
        PATH,
        ("300x2000x100", "500x10000x100", "20000x200x56", "2000x20000x100"),
    ),
    "crossval": WorkKind(
        "`CoxCV` in 10 folds, compared with a path of so many strengths",
        PATH,
        ("500x10000x100",),
    ),
}
"""The kinds of `dense`."""

SCALING: Mapping[str, WorkKind] = {
    "fit": WorkKind("Cox, L1, columns of 5 % ones", TABLE, ("100000x1000", "10000000x100")),
    "finegray": WorkKind("Fine-Gray, L1, columns of 5 % ones", TABLE, ("100000x1000",)),
    "concordance": WorkKind("concordance of a score", ROWS, ("1000000",)),
    "survival": WorkKind("survival at five times, predicted for each row", TABLE, ("1000000x5",)),
    "kaplan-meier": WorkKind("Kaplan-Meier curve and its intervals", ROWS, ("10000000",)),
    "l1": WorkKind(
        "Cox, L1, covariates as of claims",
        TABLE,
        ("1.9@100000x10000", "6@100000x30000", "21@100000x100000"),
    ),
    "l1-growth": WorkKind(
        "the same with a strength of 30, for the picture",
        TABLE,
        ("100000x1000", "100000x3000", "100000x10000", "100000x30000", "100000x100000",
         "100000x300000"),
    ),
    "l2": WorkKind(
        "Cox, L2, covariates as of claims",
        TABLE,
        ("100000x1000", "100000x3000", "100000x10000", "100000x20000", "100000x40000",
         "100000x60000", "100000x100000"),
    ),
    "propensity": WorkKind(
        "propensity score, L1 chosen by 10-fold cross-validation", TABLE, ("200000x100000",)
    ),
    "by-threads": WorkKind("`fit` with more and more threads", TABLE, ("100000x1000",)),
    "by-rows": WorkKind("`fit` with a tenth of the rows to ten times as many", TABLE,
                        ("100000x1000",)),
    "by-columns": WorkKind("`fit` with a tenth of the columns to ten times as many", TABLE,
                           ("100000x1000",)),
    "by-density": WorkKind("`fit` with a tenth of the ones to ten times as many", TABLE,
                           ("100000x1000",)),
    "by-events": WorkKind("`fit` with 1 % to 100 % of the events", TABLE, ("100000x1000",)),
}  # fmt: skip
"""The kinds of `scaling`."""

ESTIMANDS: Mapping[str, WorkKind] = {
    name: WorkKind(about, ROWS, ("1000000",))
    for name, about in (
        (
            "cox-interval",
            "survival of ten people at five times with limits, Cox, by the inverse information",
        ),
        ("cox-interval-robust", "the same, robust"),
        (
            "finegray-interval",
            "cumulative incidence of ten people at five times with limits, "
            "Fine-Gray, by the inverse information",
        ),
        ("finegray-interval-robust", "the same, robust"),
        (
            "cause-specific-interval",
            "the same of cause-specific Cox models, by the inverse information",
        ),
        ("cause-specific-interval-robust", "the same, robust"),
        ("quantile", "median survival of ten people with limits, Cox"),
        ("predicted-mean", "restricted mean of ten people with limits, Cox"),
        ("mean", "restricted mean by two groups"),
        ("mean-weights", "the same with weights that are not counts"),
        ("mean-clusters", "the same with clusters of two rows"),
        ("mean-arms", "`cohort.restricted_mean` of two arms with weights"),
        ("doubly-robust", "`cohort.doubly_robust` of two arms with true scores, Cox models"),
        ("logrank", "log-rank test of four groups"),
        ("logrank-robust", "the same with weights that are not counts"),
        ("logrank-strata", "the same in 50 strata"),
        ("pairwise", "log-rank tests of all pairs of four groups"),
        ("max-combo", "max-combo test of two groups"),
        ("curve-clusters", "Kaplan-Meier curve with clusters of two rows"),
        ("band", "Hall and Wellner's band of a Kaplan-Meier curve"),
        ("split", "`split` at ten cuts"),
        ("merge", "`merge_histories` of three measurements a person"),
        ("landmark", "`landmark` at three times, with the last of three measurements a person"),
        ("finegray-late", "Fine-Gray with late entry"),
        (
            "exact-ties",
            "Cox with exact ties in sets of five rows (conditional logistic regression)",
        ),
        ("firth", "Cox with Firth's penalised likelihood"),
        ("frailty-gamma", "Cox with gamma frailties of clusters of ten rows"),
        ("frailty-lognormal", "Cox with log-normal frailties of clusters of ten rows"),
        ("match-replacement", "matching with replacement on the propensity score"),
        ("match-full", "full matching on the propensity score"),
        ("coarsen", "coarsened exact matching on three covariates"),
        ("entropy", "entropy balancing of ten covariates"),
    )
}
"""The kinds of `estimands`."""


@dataclass(frozen=True)
class ChosenWork:
    """One thing to measure.

    Attributes
    ----------
    kind : str
    sizes : tuple of int
    strength : float or None
        Of the penalty, if one was given.
    """

    kind: str
    sizes: tuple[int, ...]
    strength: float | None = None

    @classmethod
    def parse(cls, text: str, kinds: Mapping[str, WorkKind]) -> "Sequence[ChosenWork]":
        """From ``KIND:SIZE`` or ``KIND:STRENGTH@SIZE``; from ``KIND``, those by default."""
        kind, _, rest = text.partition(":")
        if kind in kinds and not rest:
            return [one for size in kinds[kind].works for one in cls.parse(f"{kind}:{size}", kinds)]
        found = re.fullmatch(r"(?:(\d+(?:\.\d+)?)@)?(\d+(?:x\d+)*)", rest)
        if kind in kinds and found is not None:
            strength, sizes = found.groups()
            numbers = tuple(map(int, sizes.split("x")))
            if min(numbers) > 0 and len(numbers) == len(kinds[kind].sizes):
                return [cls(kind, numbers, None if strength is None else float(strength))]
        if kind not in kinds:
            error = InputError.unknown_name("kind of work", kind, kinds)
            raise InputError(
                f"`works` has {text!r}, but no work is of the kind {kind!r}.",
                hint=f"{error.hint} The forms are {listed(kinds)}.",
            )
        one = kinds[kind]
        raise InputError(
            f"`works` has {text!r}, but its form must be {kind}:{_shape(one)}, in whole numbers "
            f"above 0 ({', '.join(one.sizes)}).",
            hint=f"for example {kind}:{one.works[0]}; {kind} alone is what is measured by default.",
        )

    def __str__(self) -> str:
        """As a reader says it."""
        return f"{self.kind}, {' x '.join(f'{size:,}' for size in self.sizes)}"


def default_works(kinds: Mapping[str, WorkKind]) -> tuple[str, ...]:
    """All that is measured unless works are given."""
    return tuple(f"{name}:{size}" for name, kind in kinds.items() for size in kind.works)


def listed(kinds: Mapping[str, WorkKind]) -> str:
    """The shapes of kinds, for the help of an option."""
    return ", ".join(f"{name}:{_shape(kind)}" for name, kind in kinds.items())


def reference(kinds: Mapping[str, WorkKind]) -> str:
    """A table of the kinds in Markdown."""
    lines = ["| `--work` | What is measured | By default |", "|---|---|---|"]
    for name, kind in kinds.items():
        sizes = "; ".join(size.replace("x", " x ") for size in map(_spaced, kind.works))
        lines.append(f"| `{name}:{_shape(kind)}` | {kind.about} | {sizes} |")
    return "\n".join(lines)


def _spaced(size: str) -> str:
    """With commas in large numbers, and without the strength."""
    return "x".join(f"{int(number):,}" for number in size.rpartition("@")[2].split("x"))


def _shape(kind: WorkKind) -> str:
    return "x".join(size.upper() for size in kind.sizes)
