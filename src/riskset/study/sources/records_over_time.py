"""Covariates of a CDM as of days of the follow-up, extracted from the records again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from riskset._types import Index, Rows
from riskset.data.column_statistics import select_columns
from riskset.data.design import Design
from riskset.omop.analyses import ANALYSES
from riskset.omop.cdm import Cdm
from riskset.omop.covariates import Covariates
from riskset.omop.study_cohort import StudyCohort
from riskset.omop.treatment_changes import as_of_days
from riskset.study.specification.sections import CovariateSection

__all__ = ["RecordsOverTime"]


@dataclass(frozen=True, eq=False)
class _Extracted:
    """Covariates of pairs of a row and a day, whose numbers ascend."""

    keys: tuple[int | str, ...]
    pairs: Index
    design: Design


@dataclass(eq=False)
class RecordsOverTime:
    """Covariates of a cohort from records; time 0 of the follow-up ends on `day` after index.

    `deviates` (n,) are the days on which people leave their treatment. The last extraction is
    remembered, because outcomes have nearly the same rows.
    """

    cdm: Cdm
    cohort: Callable[[], StudyCohort]
    settings: CovariateSection
    day: int
    deviates: Rows
    _last: _Extracted | None = field(default=None, init=False)

    def changes(self, key: int | str) -> bool:
        """Whether a covariate changes with records; what a person is stays as it was at index."""
        analysis = ANALYSES.get(int(key) % 1000)
        return analysis is not None and analysis.kind != "person"

    def design(self, rows: Index, time: Rows, keys: Sequence[int | str]) -> Design:
        """The covariates `keys` of rows of the cohort (m,) as they are known at times (m,).

        The pairs of rows and times differ. Those that nobody has at any of them are left out.
        """
        days = np.maximum(np.floor(time).astype(np.int64) + self.day, 0)
        wanted = days * self.deviates.size + rows
        last = self._last
        if last is None or last.keys != tuple(keys) or not np.isin(wanted, last.pairs).all():
            last = self._last = self._extracted(np.unique(days), tuple(keys), wanted)
        return last.design.take_rows(np.searchsorted(last.pairs, wanted))

    def _extracted(self, days: Index, keys: tuple[int | str, ...], wanted: Index) -> _Extracted:
        """Covariates of everybody whom some outcome may follow at these days."""
        n, cohort = self.deviates.size, self.cohort()
        last = cohort.table.column("days_to_obs_end").to_numpy()
        until = np.minimum(self.deviates, last)
        followed = [day * n + np.flatnonzero(day < until) for day in days.tolist()]
        pairs = np.union1d(np.concatenate(followed), wanted)
        day, row = np.divmod(pairs, n)
        moved = as_of_days(self.cdm, cohort, row, day)
        numbers = tuple(dict.fromkeys(int(key) % 1000 for key in keys))
        settings = replace(self.settings.extraction, analyses=numbers)
        found = Covariates.extract(self.cdm, moved, settings).design()
        place = {key: j for j, key in enumerate(found.keys)}
        own = [place[key] for key in keys if key in place]
        return _Extracted(keys, pairs, select_columns(found, np.array(own, dtype=np.int64)))
