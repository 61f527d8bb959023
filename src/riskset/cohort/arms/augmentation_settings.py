"""The settings of doubly robust estimates."""

from collections.abc import Iterator
from typing import Literal, cast

from riskset._errors import InputError
from riskset._settings import Settings, bad_setting, same_as, setting, settings
from riskset.cohort.arms.standardization import StandardizeOptions
from riskset.cohort.settings import OutcomeModel, PropensityModel
from riskset.estimators.bootstrap import check_interval
from riskset.model.penalty import Penalty, as_kind

__all__ = ["DoublyRobustOptions"]


@settings
class DoublyRobustOptions(Settings):
    """The models of doubly robust estimates, and their intervals."""

    model: Literal["cox", "cause-specific", "finegray"] = same_as(StandardizeOptions, "model")
    censoring: Literal["cox", "kaplan-meier"] = setting(
        "the model of censoring: a Cox model with the covariates, or the curve of each arm, which "
        "assumes that censoring depends on the treatment only",
        "cox",
    )
    estimand: Literal["ate", "att", "atu"] | None = setting(
        "the population whose risks are estimated: everybody, the target, or the comparator; "
        "None: that of the adjustment, or everybody",
        None,
    )
    by_arm: bool = setting(
        "fit the Cox and Fine-Gray models to each arm; False: fit them to both arms, with the "
        "treatment as a covariate",
        True,
    )
    folds: int | None = setting(
        "the number of folds for cross-fitting: models predict people of folds that they were not "
        "fitted to",
        None,
        least=2,
    )
    penalty: Penalty | Literal["l1", "l2"] | None = setting(
        "the penalty of the covariates in the models of the outcome and of censoring; without a "
        "strength, as `L1()` or 'l1', cross-validation chooses it for each model",
        None,
    )
    score_penalty: Penalty | Literal["l1", "l2"] | None = setting(
        "the penalty of the propensity score, if it is estimated here", None
    )
    on_high_correlation: Literal["error", "exclude", "warn"] = same_as(
        PropensityModel, "on_high_correlation"
    )
    max_correlation: float = same_as(PropensityModel, "max_correlation")
    interval: Literal["robust", "bootstrap"] = setting(
        "how standard errors and intervals are computed: by the influence function, or by "
        "resamples, in which all models are fitted again",
        "robust",
    )
    level: float = same_as(OutcomeModel, "level")
    ties: Literal["breslow", "efron"] = same_as(OutcomeModel, "ties")
    replicates: int = same_as(OutcomeModel, "replicates")
    seed: int = setting("the seed of folds and resamples", 1, least=0)
    tol: float = same_as(OutcomeModel, "tol")

    @property
    def kind(self) -> Penalty | None:
        """The penalty of the outcome models, or the kind of the one that is to be chosen."""
        return cast("Penalty | None", as_kind(self.penalty))

    @property
    def score_kind(self) -> Penalty | None:
        """The penalty of the score, or the kind of the one that is to be chosen."""
        return cast("Penalty | None", as_kind(self.score_penalty))

    def contradictions(self) -> Iterator[InputError]:
        """Percentiles need enough resamples."""
        if self.interval == "bootstrap":
            try:
                check_interval(self.replicates, self.level, "percentile")
            except InputError as error:
                yield bad_setting("replicates", error.message, error.hint, value=self.replicates)
