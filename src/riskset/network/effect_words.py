"""What the effects of a network are ratios of, by the models of its analyses."""

from collections.abc import Iterable
from typing import Any

from riskset.network.evidence import EstimateKey

__all__ = ["models_of"]


def models_of(network: Any, keys: Iterable[EstimateKey]) -> set[str]:
    """The main models of some estimates of a `NetworkResults`, as far as its sites say.

    Files of profiles have no settings, and so no model.
    """
    names = {key.analysis for key in keys}
    return {
        analysis["model"]["kind"]
        for site in network.sites
        for name, analysis in (site.settings.get("analyses") or {}).items()
        if name in names and analysis.get("model")
    }
