"""Rows of per-protocol analyses: the weights for censoring at deviation, and deviations by time."""

from riskset.results.columns import column, row_class
from riskset.results.run_rows import SUPPRESSED, OfRun

__all__ = ["CensoringWeightRow", "DeviationRow"]


@row_class
class CensoringWeightRow(OfRun, table="censoring_weights"):
    """The weights of the rows with start and stop of an arm, over all rows of its follow-up."""

    arm: str = column("id", '"target" or "comparator"')
    weights: str = column("id", '"untruncated", or "truncated" at the percentiles of the analysis')
    rows: int | None = column("derived", "number of rows with start and stop")
    mean: float | None = column("derived", "mean of the weights; stabilised ones should be near 1")
    sd: float | None = column("derived", "standard deviation")
    p0: float | None = column("derived", "smallest weight")
    p1: float | None = column("derived", "1st percentile")
    p5: float | None = column("derived", "5th percentile")
    p25: float | None = column("derived", "first quartile")
    p50: float | None = column("derived", "median")
    p75: float | None = column("derived", "third quartile")
    p95: float | None = column("derived", "95th percentile")
    p99: float | None = column("derived", "99th percentile")
    p100: float | None = column("derived", "largest weight")
    suppressed: str = column("summary", SUPPRESSED, "")


@row_class
class DeviationRow(OfRun, table="deviations"):
    """People of an arm who deviate from their treatment in an interval of the follow-up.

    Those at risk at its start are in `numbers_at_risk`, with the effective sample size.
    """

    arm: str = column("id", '"target" or "comparator"')
    start: float = column(
        "id", "days since the start of the time at risk; the interval begins just then", unit="days"
    )
    end: float | None = column(
        "id", "days until the interval ends; none: until the end of follow-up", unit="days"
    )
    deviations: int | None = column("count", "people who deviate in the interval")
    others: int | None = column(
        "count",
        "people whose follow-up ends then for another reason, such as an outcome",
    )
    suppressed: str = column("summary", SUPPRESSED, "")
