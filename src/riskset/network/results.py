"""The results of a network, and the folder that holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._messages import counted
from riskset._types import AnyArray
from riskset._version import __version__
from riskset.data.documents import checksum, sealed
from riskset.data.frame import data_frame
from riskset.data.writers import check_replaceable, replacing_folder, write_json
from riskset.network.agreement import check_agreement
from riskset.network.evidence import EstimateKey
from riskset.network.random_effects import PriorSds
from riskset.network.rows import NETWORK_TABLES
from riskset.network.sites import Site, read_sites
from riskset.network.synthesis import pooled_rows
from riskset.results.columns import ResultRow
from riskset.results.folder import write_rows

__all__ = ["DOCUMENT", "NetworkResults", "meta"]

FORMAT = 1
DOCUMENT = "network.json"
MIN_LEVEL, MAX_LEVEL = 0.0, 1.0


@dataclass(frozen=True, eq=False, repr=False)
class NetworkResults:
    """Pooled estimates of a network, from `meta`.

    Attributes
    ----------
    sites : tuple of Site
    level : float
        Level of all intervals.
    prior_sd : (float, float)
        Standard deviations of the priors of the mean effect and of tau.

    Examples
    --------
    >>> import riskset as rs
    >>> profile = rs.network.SiteLikelihood.normal
    >>> network = rs.network.meta([
    ...     rs.network.Site.of_profile("north", profile(0.3, 0.2)),
    ...     rs.network.Site.of_profile("south", profile(0.1, 0.1)),
    ... ])
    >>> network
    NetworkResults(2 sites: 1 estimate)
    >>> round(network.rows("pooled", method="fixed")[0]["log_hr"], 4)
    0.14
    """

    sites: tuple[Site, ...]
    level: float
    prior_sd: PriorSds
    _tables: Mapping[str, Sequence[ResultRow]] = field(repr=False)

    def rows(self, name: str, /, **where: object) -> list[dict[str, Any]]:
        """Return rows of a table as dictionaries. Missing values are None.

        Parameters
        ----------
        name : {"sites", "pooled", "heterogeneity"}
        **where
            Required values of columns.
        """
        if name not in NETWORK_TABLES:
            raise InputError.unknown_name("table", name, NETWORK_TABLES)
        known = NETWORK_TABLES[name].columns()
        for column in where:
            if column not in known:
                raise InputError.unknown_name("column", column, known, place=name)
        return [
            dict(row)
            for row in self._tables[name]
            if all(row[column] == value for column, value in where.items())
        ]

    def label(self, group: str, name: str) -> str:
        """Return the label of a name, as the first site has it, or the name itself.

        Parameters
        ----------
        group : {"target", "comparator", "outcome", "analysis"}
        name : str
        """
        plural = {"analysis": "analyses"}.get(group, f"{group}s")
        found = (site.labels.get(plural, {}).get(name) for site in self.sites)
        return next((label for label in found if label), name)

    def to_frame(self, name: str = "pooled", library: str | None = None) -> Any:
        """Return a table as a data frame. Missing numbers are NaN."""
        rows = self.rows(name)
        types = NETWORK_TABLES[name].types()
        return data_frame({key: _array(rows, key, types[key]) for key in types}, library)

    def forest(
        self,
        outcome: str | None = None,
        analysis: str | None = None,
        target: str | None = None,
        comparator: str | None = None,
        *,
        ax: Any = None,
        title: str | None = None,
    ) -> Any:
        """Plot the ratios of all sites, and the pooled ones below.

        Parameters
        ----------
        outcome, analysis, target, comparator : str, optional
            Names that choose an estimate. They may be left out where only one is left.
        ax : matplotlib Axes, optional
            Default: new axes.
        title : str, optional

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        InputError
            If no estimate, or more than one, has these names.
        """
        # Here, because they bring matplotlib.
        from riskset.network.picture import network_forest

        given = EstimateKey(target, comparator, outcome, analysis)  # type: ignore[arg-type]
        return network_forest(self, self._chosen(given), ax=ax, title=title)

    def keys(self) -> list[EstimateKey]:
        """Return the names of the estimates that are pooled: target, comparator, ..."""
        rows = self._tables["pooled"]
        return list(dict.fromkeys(EstimateKey(*(r[n] for n in EstimateKey._fields)) for r in rows))

    def _chosen(self, given: EstimateKey) -> EstimateKey:
        keys = self.keys()
        fits = [
            key
            for key in keys
            if all(name in (None, own) for name, own in zip(given, key, strict=True))
        ]
        if len(fits) != 1:
            listed = "; ".join(map(str, (fits or keys)[:6]))
            raise InputError(
                f"{'several estimates have' if fits else 'no estimate has'} these names.",
                hint=f"choose outcome, analysis, target and comparator of one: {listed}.",
            )
        return fits[0]

    def save(self, folder: str | Path) -> Path:
        """Write all results to a folder.

        The tables are CSV and Parquet files. ``network.html`` is the report, ``figures`` has the
        forest plot of each estimate, and ``network.json`` says what was pooled.

        Parameters
        ----------
        folder : str or Path
            A new folder, or one of an earlier network, which is replaced.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InputError
            If the folder holds something else.
        """
        # Here, because they bring matplotlib.
        from riskset.network.page import network_page
        from riskset.network.picture import save_forests

        place = Path(folder)
        check_replaceable(place, "pooled results", DOCUMENT)
        with replacing_folder(place) as temporary:
            files = {}
            for name, table in NETWORK_TABLES.items():
                for suffix in (".csv", ".parquet"):
                    path = temporary / f"{name}{suffix}"
                    write_rows(path, table, self._tables[name])
                    files[path.name] = checksum(path)
            (temporary / "network.html").write_text(network_page(self), encoding="utf-8")
            save_forests(self, temporary / "figures")
            document = {
                "format": FORMAT,
                "riskset": __version__,
                "sites": {
                    site.name: {
                        "description": site.description,
                        "title": site.settings.get("title"),
                    }
                    for site in self.sites
                },
                "level": self.level,
                "prior_sd": list(self.prior_sd),
                "files": files,
            }
            write_json(temporary / DOCUMENT, sealed(document))
        return place

    def __repr__(self) -> str:
        n_estimates = counted(len(self.keys()), "estimate")
        return f"NetworkResults({counted(len(self.sites), 'site')}: {n_estimates})"


def meta(
    sites: object, *, level: float = 0.95, prior_sd: tuple[float, float] = (2.0, 0.5)
) -> NetworkResults:
    r"""Pool the estimates of several databases by their likelihood profiles.

    The fixed effect maximises :math:`\sum_j \ell_j(\beta)`, with a likelihood-ratio interval. The
    random effects have the posterior

    .. math:: p(\mu, \tau) \propto N(\mu; 0, s_\mu^2) \, N^+(\tau; 0, s_\tau^2)
        \prod_j \int e^{\ell_j(\theta)} N(\theta; \mu, \tau^2) \, d\theta

    which is integrated over a grid, without random numbers. Normal approximations (inverse
    variance, DerSimonian and Laird, REML, Hartung and Knapp) stand beside them. Where sites have
    five negative controls or more, all of it is done again for profiles without systematic error.

    Parameters
    ----------
    sites : sequence, or mapping of str to site
        A site is a folder of `riskset study run`, a folder of `write_evidence`, a file of
        likelihoods in a form of EvidenceSynthesis, a `StudyResults` or a `Site`. The keys of a
        mapping are the names of the sites; without them, it is the name of the data.
    level : float
        Level of all intervals.
    prior_sd : (float, float)
        Standard deviations of the normal prior of :math:`\mu` and the half-normal prior of
        :math:`\tau`, and those of the priors of the systematic error.

    Returns
    -------
    NetworkResults

    Raises
    ------
    InputError
        If there are fewer than two sites, if two have the same name, or if a setting of two sites
        differs: the message names the sites and the setting.

    Notes
    -----
    An estimate that fails diagnostics is not pooled, except if all that failed is the minimum
    detectable ratio. Profiles of weighted analyses are those of a weighted likelihood, whose
    intervals do not account for the weights; see docs/network.md.

    References
    ----------
    Schuemie, Chen, Madigan and Suchard (2022), Statistical Methods in Medical Research 31, 438-450,
    doi:10.1177/09622802211060518. DerSimonian and Laird (1986), Controlled Clinical Trials 7,
    177-188, doi:10.1016/0197-2456(86)90046-2. Hartung and Knapp (2001), Statistics in Medicine 20,
    3875-3889, doi:10.1002/sim.1009. Higgins, Thompson and Spiegelhalter (2009), Journal of the
    Royal Statistical Society A 172, 137-159, doi:10.1111/j.1467-985X.2008.00552.x. Bu et al.
    (2024), Statistics in Medicine 43, 379-395, doi:10.1002/sim.9968.

    Examples
    --------
    A site without an outcome in the target group has no estimate to average, but a likelihood.

    >>> import numpy as np
    >>> import riskset as rs
    >>> x = np.linspace(-2.3, 2.3, 24)
    >>> none = rs.network.SiteLikelihood(x, -4 * np.log1p(np.exp(x)), -4 / (1 + np.exp(-x)))
    >>> network = rs.network.meta({
    ...     "small": rs.network.Site.of_profile("", none),
    ...     "large": rs.network.Site.of_profile("", rs.network.SiteLikelihood.normal(-0.1, 0.3)),
    ... })
    >>> [round(network.rows("pooled", method=m)[0]["hr"], 3) for m in ("fixed", "inverse variance")]
    [0.773, 0.905]
    """
    if not MIN_LEVEL < level < MAX_LEVEL:
        raise InputError(
            f"`level` must be a number between 0 and 1, but it is {level!r}.", hint="such as 0.95."
        )
    prior = _priors(prior_sd)
    known = read_sites(sites)
    check_agreement(known)
    of_sites, pooled, heterogeneity = pooled_rows(known, prior, level)
    if not pooled:
        raise InputError(
            "no estimate can be pooled, because none has a profile at two sites or more.",
            hint="look at the runs of each site, and at the names of outcomes and analyses.",
        )
    tables: dict[str, Sequence[ResultRow]] = {
        "sites": of_sites,
        "pooled": pooled,
        "heterogeneity": heterogeneity,
    }
    return NetworkResults(tuple(known), float(level), prior, tables)


def _array(rows: Sequence[Mapping[str, Any]], name: str, kind: str) -> AnyArray:
    """A column; whole numbers of which some are missing are floating-point numbers."""
    values = [row[name] for row in rows]
    if kind == "text":
        return np.array(values, dtype=object)
    if kind == "bool" or (kind == "int" and None not in values):
        return np.array(values)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _priors(given: object) -> PriorSds:
    try:
        mu, tau = (float(one) for one in given)  # type: ignore[attr-defined]
        is_good = 0 < mu < float("inf") and 0 < tau < float("inf")
    except (TypeError, ValueError):
        is_good = False
    if not is_good:
        raise InputError(
            f"`prior_sd` must be two positive numbers, but it is {given!r}.",
            hint="those of the mean effect and of tau, such as (2.0, 0.5).",
        )
    return PriorSds(mu, tau)
