"""Which readings of a treatment effect an outcome model has: with sets or with weights."""

from riskset.cohort.effects.estimate import Reading
from riskset.cohort.settings import OutcomeModel

__all__ = ["is_biased", "readings_of"]


def readings_of(settings: OutcomeModel, sets: str | None, *, is_sampled: bool) -> list[Reading]:
    """The readings to fit, the main one first.

    `sets` is the kind of the adjustment if it has sets. The effect within sets and that in the
    weighted population are different estimands, so "auto" fits both. With sampling weights there is
    only the second, and a likelihood without weights has only the first.
    """
    if settings.reading != "auto":
        return [settings.reading]
    if sets is None or is_sampled or is_biased(settings, "stratified", sets):
        return ["marginal"]
    return ["stratified"] if settings.whole_likelihood is not None else ["stratified", "marginal"]


def is_biased(settings: OutcomeModel, reading: Reading, sets: str | None) -> bool:
    """Whether it is a Poisson model with an intercept for each matched set.

    Follow-up ends with the outcome, so the time at risk of a person depends on it. Within a set of
    few people this does not average out: in pairs with a rate ratio of 2, the estimate is near 2.5.
    """
    return settings.model == "poisson" and reading == "stratified" and sets == "matching"
