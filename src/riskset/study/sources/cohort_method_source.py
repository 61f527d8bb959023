"""The people of a study from files of R's CohortMethod."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from riskset._errors import InputError
from riskset._settings import Fault
from riskset._types import Rows
from riskset.data.covariate_labels import CovariateLabels
from riskset.data.documents import checksum
from riskset.ohdsi.cohort_method_data import CohortMethodData, no_deaths
from riskset.omop.cdm import Cdm
from riskset.omop.covariates import Covariates
from riskset.omop.study_cohort import StudyCohort
from riskset.omop.treatment_changes import days_to_change
from riskset.results.rows import ConceptRow
from riskset.study.cache import StepCache, digest
from riskset.study.sources.cdm_source import CdmSource, DeviationStep
from riskset.study.sources.source import label_file
from riskset.study.specification.codes import Codes
from riskset.study.specification.data_sections import CohortMethodFiles
from riskset.study.specification.exposure_sections import CdmExposure
from riskset.study.specification.outcome_sections import CdmOutcome
from riskset.study.specification.sections import Analysis, Comparison, CovariateSection
from riskset.study.specification.study_definition import Study
from riskset.study.specification.validation import file_fault

__all__ = ["CohortMethodSource", "open_files"]

KEY = "cohort_method_data"


class CohortMethodSource(CdmSource):
    """Files with a population each, as a `StudySource`; the steps after it are those of a CDM."""

    place = "the file of CohortMethod"

    def __init__(self, study: Study, cache: StepCache) -> None:
        self._study, self._cache = study, cache
        labels, faults = label_file(study)
        study.refuse(faults)
        self._covariate_labels = CovariateLabels.read(labels)
        self._stack = ExitStack()
        try:
            self._files = open_files(study, self._stack)
            self._cdm = self._stack.enter_context(Cdm({"death": no_deaths()}))
        except BaseException:
            self.close()
            raise
        data = study.specification.data
        assert isinstance(data, CohortMethodFiles)
        paths = [study.folder / name for name in data.names]
        paths += [] if labels is None else [labels]
        self.sources = [
            {"name": path.name, "fingerprint": checksum(path), "rows": None} for path in paths
        ]
        self.provenance = {}
        prints = [source["fingerprint"] for source in self.sources]
        self._print_of_labels = None if labels is None else prints[-1]
        self._prints = dict(zip(data.names, prints, strict=False))
        self._last, self._selected, self._over_time = None, None, None

    def close(self) -> None:
        """Close the files."""
        self._stack.close()

    def codes(self) -> list[ConceptRow]:
        """The files have no concepts of exposures and outcomes."""
        return []

    def _entry_key(self, comparison: Comparison, analysis: Analysis) -> str:
        return digest("cohort method data", self._prints[self._files[comparison.names][0]])

    def _select(self, comparison: Comparison, analysis: Analysis) -> StudyCohort:
        return self._files[comparison.names][1].cohort

    def _covariates(
        self, comparison: Comparison, cohort: StudyCohort, settings: CovariateSection
    ) -> Covariates:
        return self._files[comparison.names][1].covariates

    def _changes(self, comparison: Comparison, analysis: Analysis) -> DeviationStep:
        """The files have no episodes of the other exposure, only the end of each person's own."""
        return DeviationStep(day=days_to_change(self._cdm, self._select(comparison, analysis)))

    def _records(
        self, comparison: Comparison, analysis: Analysis, day: int, deviates: Rows
    ) -> None:
        """The files have covariates at baseline alone."""

    def _definition(self, codes: Codes) -> dict[str, object]:
        return {"cohort": codes.cohort}

    def _event(self, comparison: Comparison, outcome: CdmOutcome) -> object:
        assert outcome.cohort is not None
        return self._files[comparison.names][1].events(outcome.cohort)

    def _weeks_before(self, cohort: StudyCohort, analysis: Analysis) -> int:
        days = cohort.table.column("days_from_obs_start").to_numpy()
        return int(days.min()) // 7 if days.size else 0


def open_files(study: Study, stack: ExitStack) -> dict[str, tuple[str, CohortMethodData]]:
    """The file of each comparison, by its names; all are closed with `stack`.

    Raises `InputError`, with the line, if a file is absent or damaged, a comparison has no file, or
    a file was not made for an outcome.
    """
    asked, data = study.specification, study.specification.data
    assert isinstance(data, CohortMethodFiles)
    opened: dict[str, CohortMethodData] = {}
    for name in data.names:
        path = study.folder / name
        if not path.exists():
            study.refuse([file_fault(("data", KEY), path)])
        try:
            opened[name] = stack.enter_context(CohortMethodData(path))
        except InputError as error:
            raise study.error("data", KEY, error=error) from None
    chosen: dict[str, tuple[str, CohortMethodData]] = {}
    faults: list[Fault] = []
    for k, comparison in enumerate(asked.comparisons):
        pair = tuple(
            _number(asked.exposures[n]) for n in (comparison.target, comparison.comparator)
        )
        found = _file_of(pair, opened)
        if found is None:
            faults.append(_no_file(("comparisons", str(k)), pair, opened))
            continue
        chosen[comparison.names] = (found, opened[found])
        faults += _unknown_outcomes(study, found, opened[found])
    study.refuse(faults)
    return chosen


def _number(exposure: object) -> int | None:
    return exposure.cohort if isinstance(exposure, CdmExposure) else None


def _file_of(pair: tuple[int | None, ...], opened: Mapping[str, CohortMethodData]) -> str | None:
    """The file of two cohorts; a single file that does not say whom it has is that of any."""
    for name, data in opened.items():
        if (data.target_id, data.comparator_id) == pair:
            return name
    if len(opened) == 1:
        ((name, data),) = opened.items()
        if data.target_id is None and data.comparator_id is None:
            return name
    return None


def _no_file(
    path: tuple[str, ...], pair: tuple[int | None, ...], opened: Mapping[str, CohortMethodData]
) -> Fault:
    there = ", ".join(
        f"{data.target_id} and {data.comparator_id} ({Path(name).name})"
        if data.target_id is not None
        else f"unknown cohorts ({Path(name).name})"
        for name, data in opened.items()
    )
    message = f"no file has the cohorts {pair[0]} and {pair[1]}; there are: {there}."
    hint = "give the exposures the cohorts of a file, the target first."
    return Fault(path, message, hint)


def _unknown_outcomes(study: Study, name: str, data: CohortMethodData) -> Iterator[Fault]:
    for group in ("outcomes", "competing_events"):
        for key, outcome in getattr(study.specification, group).items():
            if outcome.cohort not in data.outcome_ids:
                error = InputError.unknown_name(
                    "outcome", outcome.cohort, data.outcome_ids, place=Path(name).name
                )
                yield Fault((group, key, "cohort"), error.message, error.hint)
