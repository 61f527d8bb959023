"""What the effect of each outcome model is a ratio of; all labels follow from it."""

from collections.abc import Iterable, Mapping
from typing import Literal

__all__ = [
    "COX_MODELS",
    "HAZARD_MODELS",
    "OWNERS",
    "SCALES",
    "EffectScale",
    "Model",
    "effect_name",
    "scale_of",
]

Model = Literal["cox", "cause-specific", "finegray", "logistic", "poisson"]
EffectScale = Literal["hazard", "odds", "rate"]

SCALES: Mapping[str, EffectScale] = {
    "cox": "hazard",
    "cause-specific": "hazard",
    "finegray": "hazard",
    "logistic": "odds",
    "poisson": "rate",
}
"""The scale of every model."""

COX_MODELS = ("cox", "cause-specific")

HAZARD_MODELS = tuple(model for model, scale in SCALES.items() if scale == "hazard")

OWNERS: dict[str, tuple[object, tuple[str, ...], str]] = {
    "ties": ("breslow", COX_MODELS, "the Cox model"),
    "firth": (False, COX_MODELS, "the Cox model"),
    "frailty": (None, COX_MODELS, "the Cox model"),
    "time_intervals": (0, HAZARD_MODELS, "a model of hazards"),
    "censoring_group": (None, ("finegray",), "Fine and Gray's model"),
    "censoring_weights": ("none", ("finegray",), "Fine and Gray's model"),
}
"""Settings of some outcome models: what says nothing, these models, and their name."""


def scale_of(models: Iterable[str]) -> EffectScale | Literal["mixed"]:
    """The scale of the effects of some models, or that they differ; of none, "hazard"."""
    scales = {SCALES[model] for model in models} or {"hazard"}
    return scales.pop() if len(scales) == 1 else "mixed"


def effect_name(models: Iterable[str]) -> str:
    """The name of the effects of some models.

    >>> effect_name(["cox", "finegray"]), effect_name(["logistic"]), effect_name(["cox", "poisson"])
    ('hazard ratio', 'odds ratio', 'ratio')
    """
    scale = scale_of(models)
    return "ratio" if scale == "mixed" else f"{scale} ratio"
