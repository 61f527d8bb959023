"""The lines of a forest plot of a network: its sites, all of them together, a new one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from riskset.network.evidence import EstimateKey
from riskset.report.figures.forest import ForestRow
from riskset.report.translations import Translations

__all__ = ["NetworkLine", "network_lines", "status_words"]


@dataclass(frozen=True)
class NetworkLine:
    """A ratio with its interval: a site ("other"), all ("main"), or a corrected one."""

    label: str
    hr: float | None
    lower: float | None
    upper: float | None
    se: float | None
    kind: str
    instead: str

    def as_row(self) -> ForestRow:
        """For the figure of a report."""
        return ForestRow(
            self.label, self.hr, self.lower, self.upper, self.se, self.kind, self.instead
        )


def network_lines(network: Any, key: EstimateKey) -> list[NetworkLine]:
    """Every site, then the pooled estimates of a `NetworkResults`."""
    say = Translations("en")
    return [*_of_sites(network, key, say), *_of_all(network, key, say)]


def status_words(say: Translations, code: str) -> str:
    """Why an estimate is pooled or not."""
    own = f"network.{'status_ok' if code == 'ok' else f'instead_{code}'}"
    return say(own) if own in say else say.label("status", code)


def _of_sites(network: Any, key: EstimateKey, say: Translations) -> Iterator[NetworkLine]:
    for row in network.rows("sites", **key._asdict()):
        yield _line(row["site"], row, "", "other", status_words(say, row["status"]))
        if row["corrected_hr"] is not None:
            yield _line(say("network.line_corrected"), row, "corrected_", "calibrated")


def _of_all(network: Any, key: EstimateKey, say: Translations) -> Iterator[NetworkLine]:
    for method in ("fixed", "random"):
        for is_corrected in (False, True):
            where = {"method": method, "corrected": is_corrected, "left_out": None}
            for row in network.rows("pooled", **key._asdict(), **where):
                if is_corrected:
                    yield _line(say("network.line_corrected"), row, "", "calibrated")
                else:
                    yield _line(say(f"network.line_{method}"), row, "", "main")
    for row in network.rows("pooled", **key._asdict(), method="random", corrected=False,
                            left_out=None):  # fmt: skip
        ends = row["predicted_hr_lower"], row["predicted_hr_upper"]
        yield NetworkLine(say("network.line_prediction"), row["hr"], *ends, None, "other", "")


def _line(
    label: str, row: Mapping[str, Any], prefix: str, kind: str, instead: str = ""
) -> NetworkLine:
    hr, lower, upper = (row[f"{prefix}{name}"] for name in ("hr", "hr_lower", "hr_upper"))
    se = row["se"] if not prefix else None
    return NetworkLine(label, hr, lower, upper, se, kind, instead)
