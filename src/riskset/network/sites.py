"""What a site shares: likelihoods of estimates and controls, and settings of the study."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from riskset._errors import InputError
from riskset._messages import counted
from riskset.network.evidence import EstimateKey, EvidenceRow, evidence_of, name_of
from riskset.network.evidence_files import is_evidence_folder, read_evidence
from riskset.network.likelihood import SiteLikelihood
from riskset.network.likelihood_files import read_likelihoods
from riskset.results.folder import StudyResults

__all__ = ["Site", "SiteEstimate", "read_site", "read_sites"]


@dataclass(frozen=True, eq=False)
class SiteEstimate:
    """An estimate of one site.

    Attributes
    ----------
    kind : {"outcome", "negative control", "positive control"}
    status : str
        "ok", or why it is not pooled: a status of the study, "diagnostics" or "no_profile".
    likelihood : SiteLikelihood or None
    log_hr, se : float or None
        The estimate and its standard error, as the site shares them.
    target_outcomes, comparator_outcomes : int or None
        Outcomes; None if they are hidden or unknown.

    Examples
    --------
    >>> import riskset as rs
    >>> one = rs.network.SiteEstimate(likelihood=rs.network.SiteLikelihood.normal(0.3, 0.2))
    >>> one.is_usable
    True
    """

    kind: str = "outcome"
    status: str = "ok"
    likelihood: SiteLikelihood | None = None
    log_hr: float | None = None
    se: float | None = None
    target_outcomes: int | None = None
    comparator_outcomes: int | None = None

    @property
    def is_usable(self) -> bool:
        """Whether it is pooled."""
        return self.status == "ok" and self.likelihood is not None


@dataclass(frozen=True, eq=False, repr=False)
class Site:
    """The shared results of one database.

    Attributes
    ----------
    name : str
        The name of the site.
    estimates : dict of EstimateKey to SiteEstimate
        Estimates of outcomes and controls by (target, comparator, outcome, analysis).
    settings : dict
        Settings of the study; empty for files of profiles, which have none.
    labels : dict
        Labels of exposures, outcomes and analyses, by group and name.
    description : str
        What the data are.

    Examples
    --------
    >>> import riskset as rs
    >>> profile = rs.network.SiteLikelihood.normal(0.3, 0.2)
    >>> rs.network.Site.of_profile("north", profile)
    Site('north': 1 estimate)
    """

    name: str
    estimates: Mapping[EstimateKey, SiteEstimate]
    settings: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    description: str = ""

    @classmethod
    def of_profile(
        cls,
        name: str,
        profile: SiteLikelihood,
        controls: Sequence[SiteLikelihood] = (),
    ) -> Self:
        """Make a site with one estimate from its profile.

        Parameters
        ----------
        name : str
        profile : SiteLikelihood
            Of the outcome of interest.
        controls : sequence of SiteLikelihood
            Of negative controls.
        """
        found = {EstimateKey(*UNNAMED): SiteEstimate(likelihood=profile)}
        for k, one in enumerate(controls):
            key = EstimateKey(*UNNAMED)._replace(outcome=f"control {k + 1}")
            found[key] = SiteEstimate("negative control", likelihood=one)
        return cls(name, found)

    def controls(self, key: EstimateKey) -> list[SiteLikelihood]:
        """Profiles of the negative controls that belong to an estimate."""
        return [
            one.likelihood
            for other, one in self.estimates.items()
            if one.kind == "negative control"
            and other.comparison == key.comparison
            and one.is_usable
            and one.likelihood is not None
        ]

    def __repr__(self) -> str:
        return f"Site({self.name!r}: {counted(len(self.estimates), 'estimate')})"


UNNAMED = EstimateKey("target", "comparator", "outcome", "analysis")
"""Names in files that have none."""


def read_sites(given: object) -> list[Site]:
    """Sites from folders, files, results or sites, or from a mapping of names to these."""
    named: Iterable[tuple[str | None, object]]
    if isinstance(given, Mapping):
        named = [(str(name), one) for name, one in given.items()]
    elif isinstance(given, str | Path | StudyResults | Site):
        named = [(None, given)]
    elif isinstance(given, Iterable):
        named = [(None, one) for one in given]
    else:
        raise InputError(
            f"`sites` must be a sequence of folders, but it is {type(given).__name__}.",
            hint="name the folders of results of each database.",
        )
    sites = [site for name, one in named for site in read_site(one, name)]
    if len(sites) < 2:
        raise InputError(
            f"a network needs two or more sites, but there {'is' if len(sites) == 1 else 'are'} "
            f"{len(sites)}.",
            hint="name the folder of shared results of each database.",
        )
    known: set[str] = set()
    for site in sites:
        if site.name in known:
            raise InputError(
                f"two sites have the name {site.name!r}.",
                hint="give each site its own name, as `NAME=FOLDER` or in a dictionary.",
            )
        known.add(site.name)
    return sites


def read_site(given: object, name: str | None = None) -> Iterator[Site]:
    """The site of a folder, or the sites of a file, with another name if one is given."""
    if isinstance(given, Site):
        yield given if name is None else replace(given, name=name)
    elif isinstance(given, StudyResults):
        yield _of_results(given, name)
    elif isinstance(given, str | Path):
        yield from _of_path(Path(given), name)
    else:
        raise InputError(
            f"a site is a folder, a file of profiles, StudyResults or Site, but it is "
            f"{type(given).__name__}.",
            hint="name the folder that was given to `riskset study run --out`.",
        )


def _of_path(path: Path, name: str | None) -> Iterator[Site]:
    if path.is_file():
        found = read_likelihoods(path)
        several = len(found) > 1
        for label, likelihood in found:
            own = f"{name} {label}" if name and several else name or label
            yield Site.of_profile(own, likelihood)
    elif is_evidence_folder(path):
        document, rows = read_evidence(path)
        yield _site(document, rows, name or str(document["data"]["name"] or path.name))
    else:
        yield _of_results(StudyResults.open(path), name)


def _of_results(results: StudyResults, name: str | None) -> Site:
    """The site of a folder of shared results."""
    return _site(results.study, evidence_of(results), name or name_of(results))


def _site(study: Mapping[str, Any], rows: Iterable[EvidenceRow], name: str) -> Site:
    estimates = {
        row.key: SiteEstimate(
            row.kind,
            row.status,
            _likelihood(row),
            _finite(row.log_hr),
            _finite(row.se),
            row.target_outcomes,
            row.comparator_outcomes,
        )
        for row in rows
    }
    labels = {
        group: {key: one["label"] for key, one in study[group].items()}
        for group in ("targets", "comparators", "outcomes", "analyses")
    }
    return Site(name, estimates, study["settings"], labels, study["data"]["description"] or "")


def _likelihood(row: EvidenceRow) -> SiteLikelihood | None:
    if len(row.points) < 2:
        return None
    x, value, slope = (
        np.array(column, dtype=np.float64) for column in zip(*row.points, strict=True)
    )
    likelihood = SiteLikelihood(x, value, None if np.isnan(slope).any() else slope)
    if not likelihood.is_monotone or row.llr is None or not np.isfinite(row.llr):
        return likelihood
    # The estimate is infinite, and the ratio says how far above the value at 0 its limit is.
    top = float(likelihood(0.0)) + row.llr
    return replace_supremum(likelihood, max(top, float(likelihood.values.max())))


def replace_supremum(likelihood: SiteLikelihood, supremum: float) -> SiteLikelihood:
    """The same curve with a least upper bound."""
    return SiteLikelihood(likelihood.points, likelihood.values, likelihood.derivatives, supremum)


def _finite(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None
