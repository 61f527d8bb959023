"""What biases would do to the main estimates of a study: rows of two tables."""

from collections.abc import Iterator, Sequence

import numpy as np

from riskset._types import Rows
from riskset.cohort.bias.calibration import TOO_FEW
from riskset.cohort.bias.confounder_bias import ConfounderValues
from riskset.cohort.bias.control_bounds import bounds_of_biases
from riskset.cohort.bias.empirical_null.fit import fit_null
from riskset.cohort.bias.risk_ratios import RiskRatio, converted
from riskset.cohort.bias.unmeasured_confounder import adjusted_for, tipping_effects
from riskset.cohort.effects.effect_scale import SCALES
from riskset.disclosure.rows import known, number
from riskset.results.rows import BiasBoundRow, ConfounderRow, ControlRow, EstimateRow
from riskset.study.specification.report_sections import UnmeasuredConfounding

__all__ = ["bias_bound_rows", "confounder_rows"]


def confounder_rows(main: EstimateRow, asked: UnmeasuredConfounding) -> Iterator[ConfounderRow]:
    """Every confounder that is asked for: none, if the estimate has no ratio."""
    observed = _observed(main)
    if observed is None:
        return
    of = _confounders(asked)
    found = adjusted_for(observed, of)
    tipping, of_estimate = tipping_effects(observed, of)
    for k in range(of.effect.size):
        yield ConfounderRow(
            number=k + 1,
            kind="binary" if np.isnan(of.difference[k]) else "normal",
            **{name: known(float(values[k])) for name, values in of._asdict().items()},
            bias=float(found.bias[k]),
            ratio=known(float(found.ratio[k])),
            ratio_lower=known(float(found.lower[k])),
            ratio_upper=known(float(found.upper[k])),
            common=observed.is_common,
            tips=bool(found.tips[k]),
            n_needed=known(float(found.n_needed[k])),
            tipping_effect=known(float(tipping[k])),
            tipping_effect_of_estimate=known(float(of_estimate[k])),
        )


def _observed(main: EstimateRow) -> RiskRatio | None:
    if main.effect.hr is None:
        return None
    return converted(_ends(main), SCALES[main.model], bool(main.e_value_common))


def _ends(main: EstimateRow) -> tuple[float, float, float]:
    effect = main.effect
    return number(effect.hr), number(effect.hr_lower), number(effect.hr_upper)


def _confounders(asked: UnmeasuredConfounding) -> ConfounderValues:
    """Binary ones with each pair of prevalences, then normal ones, with each effect."""
    nan = float("nan")
    kinds = [(p1, p0, nan) for p1 in asked.prevalences for p0 in asked.prevalences if p1 != p0] + [
        (nan, nan, sign * d) for d in asked.differences for sign in (1, -1)
    ]
    values = np.array([(*kind, effect) for kind in kinds for effect in asked.effects])
    return ConfounderValues(*values.reshape(-1, 4).T)


def bias_bound_rows(
    main: EstimateRow, controls: Sequence[ControlRow], level: float
) -> Iterator[BiasBoundRow]:
    """The bounds by the negative controls of its model; none, if there are too few of them."""
    biases, errors = _negative(main, controls)
    if main.effect.hr is None or biases.size < TOO_FEW:
        return
    null, scale = fit_null(biases, errors), SCALES[main.model]
    found = bounds_of_biases(biases, null, _ends(main), scale, bool(main.e_value_common), level)
    for k, basis in enumerate(found.basis.tolist()):
        beyond = found.probability_beyond if basis == "null" else found.share_beyond
        yield BiasBoundRow(
            basis=basis,
            direction=str(found.direction[k]),
            bias_lower=float(found.bias_lower[k]),
            bias_upper=float(found.bias_upper[k]),
            ratio_lower=known(float(found.ratio_lower[k])),
            ratio_upper=known(float(found.ratio_upper[k])),
            limit_lower=known(float(found.lower[k])),
            limit_upper=known(float(found.upper[k])),
            includes_1=bool(found.includes_1[k]),
            e_value=float(found.e_value[k]),
            beyond=known(beyond),
            n_controls=found.n_controls,
            range_level=level,
        )


def _negative(main: EstimateRow, controls: Sequence[ControlRow]) -> tuple[Rows, Rows]:
    """Estimates and standard errors of the negative controls in use of the same model."""
    model = (main.model, main.reading)
    used = [c for c in controls if c.used and c.true_hr == 1 and (c.model, c.reading) == model]
    biases = np.array([number(one.log_hr) for one in used], dtype=np.float64)
    return biases, np.array([number(one.se) for one in used], dtype=np.float64)
