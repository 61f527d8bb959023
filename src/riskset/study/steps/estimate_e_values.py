"""E-values of estimates of a study."""

import numpy as np

from riskset.cohort.bias.e_values import of_interval
from riskset.cohort.bias.risk_ratios import is_common
from riskset.cohort.effects.effect_scale import SCALES
from riskset.disclosure.rows import known
from riskset.results.rows import EstimateRow

__all__ = ["with_e_value"]


def with_e_value(row: EstimateRow) -> EstimateRow:
    """The row with the E-values of its effect, or without any if there is no effect."""
    effect = row.effect
    columns: dict[str, object] = dict.fromkeys(("e_value", "e_value_limit", "e_value_common"))
    if effect.hr is not None:
        common = any(
            is_common(arm.outcomes or 0, arm.exposures or 0)
            for arm in (row.target_arm, row.comparator_arm)
        )
        lower, upper = (
            np.nan if end is None else end for end in (effect.hr_lower, effect.hr_upper)
        )
        found = of_interval((effect.hr, lower, upper), SCALES[row.model], common)
        columns = {
            "e_value": known(found.estimate),
            "e_value_limit": known(found.limit),
            "e_value_common": found.is_common,
        }
    return row.changed(columns)
