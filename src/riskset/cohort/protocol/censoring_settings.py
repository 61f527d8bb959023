"""The settings of the model of artificial censoring."""

from collections.abc import Iterator
from typing import Literal

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, setting, settings

__all__ = ["CensoringModel", "faults_of_percentiles"]


@settings
class CensoringModel(Settings):
    """The model of censoring at deviation, and its weights.

    Examples
    --------
    >>> import riskset as rs
    >>> rs.cohort.CensoringModel("cox", truncate=(1, 99)).truncate
    (1.0, 99.0)
    """

    kind: Literal["logistic", "cox"] = setting(
        "logistic: a pooled logistic regression, in which each row is a trial; cox: a Cox model of "
        "the time of deviation",
        "logistic",
    )
    time_df: int = setting(
        "the degrees of freedom of the natural cubic spline of time in the logistic model; 1: "
        "linear; 0: none",
        3,
        least=0,
        most=20,
    )
    stabilise: bool = setting(
        "multiply weights by the probability of being uncensored given time and the baseline "
        "covariates alone",
        True,
    )
    truncate: tuple[float, float] | None = setting(
        "percentiles of the weights, the lower first: smaller and larger weights are set to them; "
        "none: weights stay as they are",
        None,
        least=0,
        most=100,
    )
    deviation_at: Literal["end", "start"] = setting(
        "when a person deviates whose row says so: at its end, so that the row belongs to the "
        "follow-up; or at its start, so that it does not",
        "end",
    )
    tol: float = setting("the tolerance of the fits", 1e-8, above=0, only_python=True)

    def contradictions(self) -> Iterator[InputError]:
        """Percentiles rise; Cox models have times of deviation."""
        yield from faults_of_percentiles(self.truncate)
        if self.kind == "cox" and self.deviation_at == "start":
            yield bad_setting(
                "deviation_at",
                "`deviation_at` is 'start', but a Cox model needs the time of a deviation, which "
                "is the end of a row.",
                "use `kind='logistic'`, or end rows when people deviate.",
            )


def faults_of_percentiles(truncate: tuple[float, float] | None) -> Iterator[InputError]:
    """Weights are cut on both sides of their median; 0.01 and 0.99 are shares of 1."""
    if truncate is None or (truncate[0] <= 50 <= truncate[1] and truncate[0] < truncate[1]):
        return
    yield bad_setting(
        "truncate",
        "`truncate` must be two percentiles, the lower first, one of at most 50 and one of at "
        f"least 50, but they are {truncate[0]:g} and {truncate[1]:g}.",
        "percentiles go from 0 to 100: for example 1 and 99.",
    )
