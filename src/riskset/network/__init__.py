"""Studies over several databases: pooled results, and one model without moving people.

`meta` pools the shared results of sites by their likelihood profiles.
"""

from riskset.network.evidence_files import write_evidence
from riskset.network.likelihood import SiteLikelihood
from riskset.network.results import NetworkResults, meta
from riskset.network.sites import Site, SiteEstimate

__all__ = ["NetworkResults", "Site", "SiteEstimate", "SiteLikelihood", "meta", "write_evidence"]
