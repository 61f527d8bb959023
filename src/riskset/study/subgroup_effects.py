"""The step of subgroups: the effect at each level of a variable, all levels in one model."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from riskset._errors import InputError
from riskset.cohort.adjustment import Adjustment
from riskset.cohort.estimate import Estimate
from riskset.cohort.outcomes import Outcomes, count_arms
from riskset.data.design import Design
from riskset.model.penalty import L1
from riskset.study.cohorts import Cohort, Followed
from riskset.study.effects import estimate_row, fit
from riskset.study.outcome_covariates import covariate_columns
from riskset.study.scores import status_of, tidy_covariates
from riskset.study.sections import Analysis, OutcomeModelSection
from riskset.study.steps import Result

__all__ = ["subgroup_estimates"]


def subgroup_estimates(
    cohort: Cohort,
    followed: Followed,
    made: Adjustment,
    analysis: Analysis,
    column: str,
    main: Mapping[str, Any],
    seed: int,
) -> Result:
    """The effect at each level, from the interactions of the levels and the treatment.

    People of levels in which the effect alone has no finite estimate are left out of the model;
    weights and sets stay. Covariates that the main estimate is adjusted for are in it, with the
    penalty that was chosen there; treatment, levels and interactions have none.

    Parameters
    ----------
    column : str
        Of the labels of the cohort.
    main : mapping
        The row of the main estimate.
    """
    levels = cohort.labels[column].found(made.kept)
    if len(levels) < 2 or made.status != "ok":
        return Result({"rows": [], "notes": []})
    try:
        rows = _Levels(cohort, followed, made, analysis, column, main, seed).rows(levels)
    except InputError as error:
        reason = f"no subgroups of {column!r}: {status_of(error)['reason']}"
        return Result({"rows": [], "notes": [{"code": "subgroups", "message": reason}]})
    return Result({"rows": rows, "notes": []})


@dataclasses.dataclass(frozen=True, eq=False)
class _Levels:
    cohort: Cohort
    followed: Followed
    made: Adjustment
    analysis: Analysis
    column: str
    main: Mapping[str, Any]
    seed: int

    def rows(self, levels: Sequence[object]) -> list[dict[str, Any]]:
        """A row of each level, in their order."""
        alone = {level: self._alone(level) for level in levels}
        kept = [level for level in levels if alone[level].status == "ok"]
        # Resamples of interactions would give no interval of a level.
        own = self._model("auto" if self.analysis.model.interval == "bootstrap" else None)
        extra, penalty = None, None
        if self.main.get("l1"):
            extra, penalty = self._covariates(), L1(self.main["l1"])
        people = self._inside(kept)

        def joint(first: object) -> Estimate:
            """The model in which the treatment's own coefficient is the effect at one level."""
            columns = {
                f"{self.column}={level}": (self._labels == level).astype(np.float64)
                for level in kept
                if level != first
            }
            beside = {"extra": extra, "penalty": penalty, "seed": self.seed}
            groups = Design.from_columns(columns) if columns else None
            return fit(self.followed, people, own, own.model, **beside, interactions=groups)  # type: ignore[arg-type]

        found = {level: joint(level) for level in (kept if extra is not None else kept[:1])}
        groups = {g.name: g for g in found[kept[0]].subgroups} if kept else {}
        rows = []
        for level in levels:
            group = groups.get(f"{self.column}={level}")
            if extra is not None and level in found:
                one = _of_level(found[level], alone[level])
            elif level in found:
                own_fit = found[level]
                one = _normal(_of_level(own_fit, alone[level]), own_fit.log_hr, own_fit.se)
            elif group is not None:
                first = _of_level(found[kept[0]], alone[level])
                one = _normal(first, group.log_hr, group.se_log_hr)
            else:
                one = _normal(_of_level(alone[level], alone[level]), np.nan, np.nan)
            p = group.p if group is not None else None
            if kept and level == kept[0] and len(groups) == 1:
                p = next(iter(groups.values())).p
            row = estimate_row(one, "subgroup", f"{self.column}: {level}")
            if extra is not None:
                row |= covariate_columns(one, own, self.seed)
                row["chosen_by"] = self.main.get("chosen_by")
            rows.append(row | {"level": str(level), "interaction_p": p})
        return rows

    @property
    def _labels(self) -> Any:
        return self.cohort.labels[self.column].values

    def _covariates(self) -> Design:
        """Those of the main estimate."""
        return tidy_covariates(self.cohort, self.made, self.analysis.tidy)[1]

    def _model(self, interval: str | None) -> OutcomeModelSection:
        changes: dict[str, Any] = {} if interval is None else {"interval": interval}
        return dataclasses.replace(
            self.analysis.model, reading=self.main["reading"], strength=None, **changes
        )

    def _inside(self, levels: Sequence[object]) -> Adjustment:
        inside = np.isin(self._labels, np.array(levels))
        return dataclasses.replace(self.made, weight=np.where(inside, self.made.weight, 0.0))

    def _alone(self, level: object) -> Estimate:
        """The effect in a level by itself, which tells whether there is one; and its counts."""
        own, people = self._model("wald"), self._inside([level])
        counts = count_arms(Outcomes(self.followed.time, self.followed.status), people)
        found = fit(self.followed, people, own, own.model, seed=self.seed)
        return dataclasses.replace(found, target=counts[0], comparator=counts[1])


def _of_level(found: Estimate, alone: Estimate) -> Estimate:
    """The estimate of a level, with what is of the whole model left out."""
    return dataclasses.replace(
        found,
        target=alone.target,
        comparator=alone.comparator,
        llr=float("nan"),
        proportionality_p=float("nan"),
        kkt=float("nan"),
        informative_strata=None,
        informative_people=None,
        sensitivity=None,
        notes=(),
    )


def _normal(found: Estimate, log_hr: float, se: float) -> Estimate:
    """With another effect, and a normal interval."""
    half = float(ndtri(0.5 + found.level / 2)) * se
    nothing = float("nan")
    return dataclasses.replace(
        found,
        log_hr=log_hr,
        lower=log_hr - half,
        upper=log_hr + half,
        se=se,
        p=float(2 * ndtr(-abs(log_hr / se))) if se > 0 else nothing,
        one_sided_p=float(ndtr(-log_hr / se)) if se > 0 else nothing,
        interval="wald",
    )
