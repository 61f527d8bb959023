"""The lists of covariates in an analysis: names and keys, each with its place."""

from collections.abc import Iterator

from riskset.study.specification.sections import Analysis

__all__ = ["covariate_names"]


def covariate_names(analysis: Analysis) -> Iterator[tuple[tuple[str, ...], tuple[int | str, ...]]]:
    """Names and keys of covariates, each list with its place in the analysis."""
    if analysis.propensity is not None:
        yield ("propensity", "exclude"), analysis.propensity.exclude
    if analysis.weight_treatments is not None:
        yield ("weight_treatments", "exclude"), analysis.weight_treatments.exclude
    if analysis.match is not None:
        yield ("match", "mahalanobis"), analysis.match.mahalanobis
    if analysis.coarsen is not None:
        yield ("coarsen", "covariates"), analysis.coarsen.covariates
    if analysis.weight is not None:
        yield ("weight", "covariates"), analysis.weight.covariates
        for k, pair in enumerate(analysis.weight.interactions):
            yield ("weight", "interactions", str(k)), pair
    if analysis.protocol is not None:
        yield ("per_protocol", "covariates"), analysis.protocol.covariates or ()
        yield ("per_protocol", "baseline"), analysis.protocol.baseline
    for k, pair in enumerate(analysis.balance.interactions):
        yield ("balance", "interactions", str(k)), pair
