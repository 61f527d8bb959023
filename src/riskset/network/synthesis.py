"""The pooled estimates of a network: every method, with and without each site."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import chi2

from riskset._types import Rows
from riskset.infer.wald import exponentials
from riskset.network.bias import SiteBias, corrected, site_bias
from riskset.network.evidence import EstimateKey
from riskset.network.fixed_effect import FixedEffect, fixed_effect
from riskset.network.likelihood import SiteLikelihood
from riskset.network.normal_pooling import NormalPool, heterogeneity_of, pooled_normal
from riskset.network.random_effects import PriorSds, effect_distribution
from riskset.network.rows import HeterogeneityRow, PooledRow, SiteRow
from riskset.network.sites import Site, SiteEstimate

__all__ = ["EstimateSynthesis", "pooled_rows"]

MIN_SITES = 2
CURVATURE_STEP = 1e-3
"""Log ratios between the derivatives whose difference is the curvature of a corrected profile."""


@dataclass(frozen=True, eq=False)
class NormalApproximation:
    """Estimates and standard errors of the sites that have them, by name."""

    names: tuple[str, ...]
    log_hr: Rows
    se: Rows

    def without(self, name: str) -> "NormalApproximation":
        """All sites but one."""
        keep = np.array([one != name for one in self.names], dtype=bool)
        names = tuple(one for one in self.names if one != name)
        return NormalApproximation(names, self.log_hr[keep], self.se[keep])


@dataclass(frozen=True, eq=False)
class EstimateSynthesis:
    """One estimate of all sites; `biases` has the systematic error of each site by its name."""

    key: EstimateKey
    sites: Sequence[Site]
    biases: Mapping[str, SiteBias | None]
    prior: PriorSds
    level: float

    @cached_property
    def usable(self) -> dict[str, SiteEstimate]:
        """Estimates that are pooled, by site."""
        found = {site.name: site.estimates.get(self.key) for site in self.sites}
        return {name: one for name, one in found.items() if one is not None and one.is_usable}

    @cached_property
    def likelihoods(self) -> dict[str, SiteLikelihood]:
        """Profiles by site."""
        return {n: one.likelihood for n, one in self.usable.items() if one.likelihood is not None}

    @cached_property
    def corrected(self) -> dict[str, SiteLikelihood]:
        """Profiles without the systematic error, of the sites that have enough controls."""
        out = {}
        for name, likelihood in self.likelihoods.items():
            bias = self.biases.get(name)
            if bias is not None:
                out[name] = corrected(likelihood, bias)
        return out

    def rows(self) -> Iterator[PooledRow]:
        """All pooled estimates; leaving one site out at a time with three sites or more."""
        for is_corrected, likelihoods in ((False, self.likelihoods), (True, self.corrected)):
            if len(likelihoods) < MIN_SITES:
                continue
            normal = self.normal(is_corrected)
            yield from self._methods(likelihoods, normal, is_corrected, None)
            if len(likelihoods) > MIN_SITES:
                for name in likelihoods:
                    others = {n: one for n, one in likelihoods.items() if n != name}
                    yield from self._methods(others, normal.without(name), is_corrected, name)

    def normal(self, is_corrected: bool) -> NormalApproximation:
        """Estimates as the sites share them; of corrected profiles, at the maximum."""
        found = {}
        if not is_corrected:
            for name, one in self.usable.items():
                own = one.log_hr, one.se
                if one.likelihood is not None and None in own:
                    own = _at_maximum(one.likelihood)
                found[name] = own
        else:
            found = {name: _at_maximum(one) for name, one in self.corrected.items()}
        known = {n: (b, s) for n, (b, s) in found.items() if b is not None and s is not None}
        values = np.array(list(known.values()), dtype=np.float64).reshape(-1, 2)
        return NormalApproximation(tuple(known), values[:, 0], values[:, 1])

    def _methods(
        self,
        likelihoods: Mapping[str, SiteLikelihood],
        normal: NormalApproximation,
        is_corrected: bool,
        left_out: str | None,
    ) -> Iterator[PooledRow]:
        base = PooledRow(
            **self.key._asdict(),
            corrected=is_corrected,
            left_out=left_out,
            n_sites=len(likelihoods),
            level=self.level,
        )
        curves = list(likelihoods.values())
        yield _of_fixed(base, fixed_effect(curves, self.level))
        yield self._random(base, curves)
        if left_out is not None:
            return
        missing = ";".join(name for name in likelihoods if name not in normal.names)
        base = base.changed({"n_sites": len(normal.names), "sites_left_out": missing})
        if not normal.names:
            return
        b, se, level = normal.log_hr, normal.se, self.level
        yield _of_normal(base, "inverse variance", pooled_normal(b, se, level=level), False)
        if b.size >= MIN_SITES:
            found = heterogeneity_of(b, se)
            dl, reml = found.tau_dl, found.tau_reml
            yield _of_normal(base, "DerSimonian-Laird", pooled_normal(b, se, dl, level=level))
            yield _of_normal(base, "REML", pooled_normal(b, se, reml, level=level))
            knapp = pooled_normal(b, se, reml, hartung_knapp=True, level=level)
            yield _of_normal(base, "Hartung-Knapp", knapp)

    def _random(self, base: PooledRow, curves: Sequence[SiteLikelihood]) -> PooledRow:
        found = effect_distribution(curves, self.prior)
        tail = (1 - self.level) / 2
        low, middle, high = (found.mu_quantile(q) for q in (tail, 0.5, 1 - tail))
        new = found.predicted_quantile(tail), found.predicted_quantile(1 - tail)
        return base.changed(
            {
                "method": "random",
                **_ratios(middle, low, high),
                "se": found.sd,
                "tau": found.tau_quantile(0.5),
                "tau_lower": found.tau_quantile(tail),
                "tau_upper": found.tau_quantile(1 - tail),
                "predicted_hr_lower": float(exponentials(new[0])),
                "predicted_hr_upper": float(exponentials(new[1])),
            }
        )

    def heterogeneity(self) -> Iterator[HeterogeneityRow]:
        """How much the sites differ, before and after the correction."""
        for is_corrected, likelihoods in ((False, self.likelihoods), (True, self.corrected)):
            if len(likelihoods) < MIN_SITES:
                continue
            normal = self.normal(is_corrected)
            found = heterogeneity_of(normal.log_hr, normal.se)
            ratio = likelihood_ratio(list(likelihoods.values()))
            yield HeterogeneityRow(
                **self.key._asdict(),
                corrected=is_corrected,
                n_sites=len(likelihoods),
                ratio=ratio,
                ratio_p=float(chi2.sf(ratio, len(likelihoods) - 1)),
                n_normal=len(normal.names),
                q=_known(found.q),
                q_df=found.df,
                q_p=_known(found.p),
                i2=_known(found.i2),
                i2_lower=_known(found.i2_lower),
                i2_upper=_known(found.i2_upper),
            )

    def site_rows(self) -> Iterator[SiteRow]:
        """The estimate of every site."""
        for site in self.sites:
            one = site.estimates.get(self.key)
            bias = self.biases.get(site.name)
            row = SiteRow(
                **self.key._asdict(),
                site=site.name,
                status="absent" if one is None else one.status,
                n_controls=len(site.controls(self.key)),
                bias_mean=None if bias is None else bias.mean,
                bias_sd=None if bias is None else bias.sd,
            )
            if one is None:
                yield row
                continue
            columns: dict[str, object] = {
                "target_outcomes": one.target_outcomes,
                "comparator_outcomes": one.comparator_outcomes,
            }
            if site.name in self.likelihoods:
                found = fixed_effect([self.likelihoods[site.name]], self.level)
                columns |= _ratios(found.log_hr, found.lower, found.upper)
                columns["se"] = one.se if one.se is not None else _known(_se_of(found))
            if site.name in self.corrected:
                found = fixed_effect([self.corrected[site.name]], self.level)
                own = _ratios(found.log_hr, found.lower, found.upper)
                del own["log_hr"]
                columns |= {f"corrected_{name}": value for name, value in own.items()}
            yield row.changed(columns)


def pooled_rows(
    sites: Sequence[Site], prior: PriorSds, level: float
) -> tuple[list[SiteRow], list[PooledRow], list[HeterogeneityRow]]:
    """Every table, for all estimates of outcomes that a site has."""
    keys = dict.fromkeys(
        key for site in sites for key, one in site.estimates.items() if one.kind == "outcome"
    )
    biases: dict[tuple[str, tuple[str, str, str]], SiteBias | None] = {}
    tables: tuple[list[SiteRow], list[PooledRow], list[HeterogeneityRow]] = ([], [], [])
    for key in keys:
        for site in sites:
            place = site.name, key.comparison
            if place not in biases:
                biases[place] = site_bias(site.controls(key), prior)
        own = {site.name: biases[site.name, key.comparison] for site in sites}
        one = EstimateSynthesis(key, sites, own, prior, level)
        tables[0].extend(one.site_rows())
        tables[1].extend(one.rows())
        tables[2].extend(one.heterogeneity())
    return tables


def likelihood_ratio(likelihoods: Sequence[SiteLikelihood]) -> float:
    """Twice the sum of the maxima less the maximum of the sum; suprema where they rise."""
    own = sum(fixed_effect([one]).top for one in likelihoods)
    return max(2 * (own - fixed_effect(likelihoods).top), 0.0)


def _at_maximum(likelihood: SiteLikelihood) -> tuple[float | None, float | None]:
    """The maximum of a profile, and the standard error by its curvature there."""
    best = fixed_effect([likelihood]).log_hr
    if not np.isfinite(best):
        return None, None
    ends = best + CURVATURE_STEP * np.array([-1.0, 1.0])
    curvature = -float(np.diff(likelihood.derivative(ends))[0]) / (2 * CURVATURE_STEP)
    return (best, 1 / np.sqrt(curvature)) if curvature > 0 else (None, None)


def _se_of(found: FixedEffect) -> float:
    return found.se if np.isfinite(found.se) else float("nan")


def _of_fixed(base: PooledRow, found: FixedEffect) -> PooledRow:
    return base.changed(
        {
            "method": "fixed",
            **_ratios(found.log_hr, found.lower, found.upper),
            "se": _known(_se_of(found)),
            "p": found.p,
        }
    )


def _of_normal(base: PooledRow, method: str, found: NormalPool, has_tau: bool = True) -> PooledRow:
    columns: dict[str, object] = {
        "method": method,
        **_ratios(found.log_hr, found.lower, found.upper),
        "se": _known(found.se),
        "p": _known(found.p),
    }
    if has_tau:
        columns |= {
            "tau": found.tau,
            "predicted_hr_lower": _known(float(exponentials(found.predicted_lower))),
            "predicted_hr_upper": _known(float(exponentials(found.predicted_upper))),
        }
    return base.changed(columns)


def _ratios(log_hr: float, lower: float, upper: float) -> dict[str, object]:
    with np.errstate(over="ignore"):
        values = exponentials(np.array([log_hr, lower, upper]))
    names = ("hr", "hr_lower", "hr_upper")
    found: dict[str, object] = {"log_hr": _known(log_hr)}
    return found | {n: _known(v) for n, v in zip(names, values.tolist(), strict=True)}


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
