"""Studies over several databases: pooled results, and one model without moving people.

`meta` pools the shared results of sites by their likelihood profiles. `start_federation` begins a
fit whose rows stay at the sites.
"""

from riskset.network.coordinator import FederatedFit, FederatedRound
from riskset.network.evidence_files import write_evidence
from riskset.network.federation import answer_question, next_round, start_federation
from riskset.network.likelihood import SiteLikelihood
from riskset.network.results import NetworkResults, meta
from riskset.network.sites import Site, SiteEstimate

__all__ = [
    "FederatedFit",
    "FederatedRound",
    "NetworkResults",
    "Site",
    "SiteEstimate",
    "SiteLikelihood",
    "answer_question",
    "meta",
    "next_round",
    "start_federation",
    "write_evidence",
]
