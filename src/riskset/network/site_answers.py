"""What a site answers: sums over all its rows, and nothing where these are few.

A site keeps no state, so the same question has the same answer. Coefficients and sums are those of
the user's units, so sites need not agree on how columns are stored.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from riskset._errors import InputError
from riskset._types import Features, Index, Rows
from riskset._version import __version__
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.estimators._base import HazardModelBase
from riskset.estimators.cox import Cox
from riskset.estimators.finegray import FineGray
from riskset.model.cox import Evaluation, Prepared
from riskset.model.loss import Loss
from riskset.model.risk_set_components import components, informative_columns
from riskset.network.few_people import effective_people, near_pairs, rare_columns

__all__ = ["MODELS", "SiteData"]

MODELS: dict[str, type[HazardModelBase]] = {"cox": Cox, "finegray": FineGray}
MAX_SPAN = 30.0
"""Coefficients that spread log hazards of a site further are refused: they single out people."""
MAX_NAMES = 5
MAX_TOLERANCE = 1e-4
"""Largest tolerance of a question whether a combination of columns varies, as a share of its range.
With any tolerance, a few questions would find the range itself, whose ends are those of people."""


class SiteData(NamedTuple):
    """The rows of a site, read for one model; counts below `least` are not shared."""

    site: str
    design: Design
    loss: Loss
    least: int

    @classmethod
    def of(
        cls, site: str, settings: Mapping[str, Any], data: tuple[object, object], least: int
    ) -> "SiteData":
        """Read X and y as a fit does, and refuse what few people would be seen in."""
        model = MODELS[settings["model"]](**settings["options"])
        found = model._read(data[0], data[1], None, None, None, None, None)
        if found.outcome.offset.any():
            raise InputError(
                "a federated fit has no offset.", hint="leave the column of the offset out."
            )
        loss = model._loss(found, model._checked_runtime())
        design = found.design
        keep = [j for j, name in enumerate(design.names) if name not in settings["left_out"]]
        if len(keep) < design.n_features:
            design = select_columns(design, np.array(keep, dtype=np.int64))
        one = cls(site, design, loss, least)
        one._check_counts()
        return one

    def _check_counts(self) -> None:
        outcome = self.loss.outcome
        used = outcome.weight > 0
        counts = {"rows": int(used.sum())}
        codes, n_of_code = np.unique(outcome.event[used & (outcome.event > 0)], return_counts=True)
        counts |= {f"events of code {c}": int(n) for c, n in zip(codes, n_of_code, strict=True)}
        for what, n in counts.items():
            if 0 < n < self.least:
                raise InputError(
                    f"the site {self.site!r} has fewer than {self.least} {what}, so it answers no "
                    "question.",
                    hint="leave the site out of the fit.",
                )
        rare = [repr(self.design.names[j]) for j in rare_columns(self.design, self.least)]
        if rare:
            raise InputError(
                f"fewer than {self.least} people of the site {self.site!r} differ from the others "
                f"in {_listed(rare)}, so it answers no question about these columns.",
                hint="start the fit again, with these columns in `left_out`.",
            )
        pairs = [
            " and ".join(repr(self.design.names[j]) for j in pair)
            for pair in near_pairs(self.design, self.least)
        ]
        if pairs:
            raise InputError(
                f"at the site {self.site!r}, {_listed(pairs)} are equal or opposite except for "
                f"fewer than {self.least} people, so the difference of two "
                "sums would describe these people.",
                hint="start the fit again, with one column of each pair in `left_out`.",
            )

    # ------------------------------------------------------------------------------- answers

    def mark(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What changes with the data: what is answered to the first two questions.

        The gradient changes if times, events, strata or the order of the rows do.
        """
        nothing = np.zeros(0, dtype=np.int64)
        null = self.evaluation(np.zeros(self.design.n_features), nothing)
        return {"facts": facts, "null": null}

    def facts(self) -> dict[str, Any]:
        """The columns, their sums and squares, and the numbers of rows and events."""
        design, outcome = self.design, self.loss.outcome
        columns = np.arange(design.n_features)
        z_sums = design.moments(outcome.weight, columns, runtime=self.loss.runtime)
        total = float(outcome.weight.sum())
        first, second = self._in_user_units(total, z_sums)
        reach = [self._range(j) for j in columns.tolist()]
        return {
            "version": __version__,
            "names": list(design.names),
            "is_binary": design.is_binary.tolist(),
            "varies": informative_columns(design, self.loss).tolist(),
            "reach": reach,
            "n_rows": design.n_rows,
            "n_events": int(outcome.n_events),
            "event_weight": float(self.loss.n_events),
            "weight": total,
            "sums": first.tolist(),
            "squares": second.tolist(),
        }

    def evaluation(self, coef: Features, columns: Index) -> dict[str, Any]:
        """Log likelihood, gradient, moments of the expected events, and information of columns."""
        design, scale = self.design, self.design.scale
        eta = self.loss.offset + design.product(coef * scale, runtime=self.loss.runtime)
        if np.ptp(eta) > MAX_SPAN:
            raise InputError(
                f"the site {self.site!r} does not answer: with these coefficients the log hazards "
                f"of its people span more than {MAX_SPAN:g}, so the sums would "
                "describe single people.",
                hint="add a penalty, or leave out columns whose coefficients are large.",
            )
        now = self.loss.evaluate(eta)
        if effective_people(now.expected) < self.least:
            raise InputError(
                f"the site {self.site!r} does not answer: with these coefficients fewer than "
                f"{self.least} of its people have nearly all expected events, so the sums "
                "would describe these people.",
                hint="add a penalty, leave out columns with large values of few people, or leave "
                "the site out.",
            )
        gradient = design.cross(now.residual, runtime=self.loss.runtime) * scale
        everything = np.arange(design.n_features)
        z_sums = design.moments(now.expected, everything, runtime=self.loss.runtime)
        total = float(now.expected.sum())
        first, second = self._in_user_units(total, z_sums)
        return {
            "log_likelihood": float(now.log_likelihood),
            "gradient": gradient.tolist(),
            "expected": total,
            "expected_sums": first.tolist(),
            "expected_squares": second.tolist(),
            "information": self._information(eta, now, columns),
        }

    def _information(self, eta: Rows, now: Evaluation, columns: Index) -> list[float]:
        """The upper triangle, row by row."""
        if not columns.size:
            return []
        matrix = self.loss.information(self.design, eta, columns, Prepared(now))
        scale = self.design.scale[columns]
        matrix = matrix * np.outer(scale, scale)
        found: list[float] = matrix[np.triu_indices(columns.size)].tolist()
        return found

    def variation(self, weights: Features, tolerance: float) -> bool:
        """Whether a combination of columns varies by more among people at risk together."""
        reach = np.array([self._range(j) for j in range(self.design.n_features)])
        tolerance = min(tolerance, MAX_TOLERANCE * float(np.abs(weights) @ reach))
        x = self.design.product(weights * self.design.scale, runtime=self.loss.runtime)
        rows, component = components(self.loss)
        n = int(component.max(initial=-1)) + 1
        high, low = np.full(n, -np.inf), np.full(n, np.inf)
        np.maximum.at(high, component, x[rows])
        np.minimum.at(low, component, x[rows])
        return bool((high - low > tolerance).any())

    def _in_user_units(self, total: float, z_sums: Rows) -> tuple[Features, Features]:
        """Sums of columns and of their squares, from those of the stored columns."""
        center, scale = self.design.center, self.design.scale
        first = scale * z_sums[0] + center * total
        second = scale**2 * z_sums[1] + 2 * center * scale * z_sums[0] + center**2 * total
        return first, second

    def _range(self, j: int) -> float:
        """The range of a column, rounded up to a power of 2: the ends are those of people."""
        z = self.design.stored(np.array([j]))[:, 0]
        span = float(np.ptp(z)) * float(self.design.scale[j])
        return float(2.0 ** np.ceil(np.log2(span))) if span > 0 else 0.0


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")
