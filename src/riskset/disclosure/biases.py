"""What biases would do to an estimate: it reveals what the estimate and its controls reveal."""

from collections.abc import Iterator, Sequence

from riskset.disclosure.rows import Results, run_of
from riskset.results.rows import BiasBoundRow, ConfounderRow, ControlRow, EstimateRow

__all__ = ["OF_BOUND", "OF_CONFOUNDER", "share_bias_bounds", "share_confounders"]

OF_CONFOUNDER = (
    "ratio", "ratio_lower", "ratio_upper", "common", "tips", "n_needed", "tipping_effect",
    "tipping_effect_of_estimate",
)  # fmt: skip
OF_BOUND = (
    "bias_lower", "bias_upper", "ratio_lower", "ratio_upper", "limit_lower", "limit_upper",
    "includes_1", "e_value", "beyond",
)  # fmt: skip


def share_confounders(rows: Sequence[ConfounderRow], results: Results) -> Iterator[ConfounderRow]:
    """Rows of estimates that are shown with their E-value, which depends on the same numbers.

    Ratios of common outcomes are converted, and whether the outcome is common bounds its number.
    """
    for row in rows:
        main = _main(row, results)
        if main is not None and main.e_value is not None:
            yield row


def share_bias_bounds(rows: Sequence[BiasBoundRow], results: Results) -> Iterator[BiasBoundRow]:
    """Rows of estimates that are shown; the range of the controls, if all of these are, too."""
    for row in rows:
        main = _main(row, results)
        if main is None or main.effect.hr is None:
            continue
        if row.basis == "largest" and _hides_a_control(row, main, results):
            continue
        yield row if main.e_value is not None else row.changed({"e_value": None})


def _main(row: ConfounderRow | BiasBoundRow, results: Results) -> EstimateRow | None:
    found = results.shown(EstimateRow, role="main", **run_of(row))
    return found[0] if found else None


def _hides_a_control(row: BiasBoundRow, main: EstimateRow, results: Results) -> bool:
    keys = run_of(row) | {"model": main.model, "reading": main.reading}
    del keys["outcome"]
    return any(one.used and one.hr is None for one in results.shown(ControlRow, **keys))
