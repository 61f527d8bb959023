"""The evidence of a study: estimates and likelihood profiles, as its shared results have them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from riskset.results.folder import StudyResults
from riskset.results.rows import EstimateRow, ProfilePointRow, RunRow

__all__ = ["EstimateKey", "EvidenceRow", "evidence_of", "name_of"]


class EstimateKey(NamedTuple):
    """Names that identify an estimate."""

    target: str
    comparator: str
    outcome: str
    analysis: str

    @property
    def comparison(self) -> tuple[str, str, str]:
        """What an estimate shares with its negative controls."""
        return self.target, self.comparator, self.analysis

    def __str__(self) -> str:
        return f"{self.target} / {self.comparator}, {self.outcome}, {self.analysis}"


@dataclass(frozen=True, eq=False)
class EvidenceRow:
    """An estimate as it is shared for evidence synthesis, with the points of its profile."""

    key: EstimateKey
    kind: str
    true_hr: float | None
    status: str
    log_hr: float | None
    se: float | None
    llr: float | None
    target_outcomes: int | None
    comparator_outcomes: int | None
    points: Sequence[tuple[float, float, float | None]]


def evidence_of(results: StudyResults) -> list[EvidenceRow]:
    """Every run of a study with its profile; blinded effects are left out, their profiles too."""
    profiles: dict[EstimateKey, list[tuple[float, float, float | None]]] = {}
    for point in results.read(ProfilePointRow):
        one = (point.log_hr, point.log_likelihood, point.derivative)
        profiles.setdefault(_key(point), []).append(one)
    mains = {_key(row): row for row in results.read(EstimateRow) if row.role == "main"}
    out = []
    for run in results.read(RunRow):
        key = _key(run)
        row = mains.get(key, EstimateRow())
        points = sorted(profiles.get(key, ()))
        status = run.status
        if status == "ok" and not run.unblind_for_evidence_synthesis:
            status = "diagnostics"
        elif status == "ok" and not points:
            status = "no_profile"
        is_open = status == "ok"
        out.append(
            EvidenceRow(
                key,
                run.outcome_kind,
                run.true_hr,
                status,
                row.effect.log_hr if is_open else None,
                row.effect.se if is_open else None,
                row.llr if is_open else None,
                row.target_arm.outcomes,
                row.comparator_arm.outcomes,
                points if is_open else (),
            )
        )
    return out


def _key(row: Any) -> EstimateKey:
    return EstimateKey(row.target, row.comparator, row.outcome, row.analysis)


def name_of(results: StudyResults) -> str:
    """The name of the data, or that of the folder of the run."""
    place = results.path.absolute()
    folder = place.parent if place.name == "results" else place
    return str(results.study["data"]["name"] or folder.name)
