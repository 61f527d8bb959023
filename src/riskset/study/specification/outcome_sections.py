"""The outcomes of a specification: what is counted, in a table of people and in a CDM."""

from collections.abc import Iterator
from typing import Literal

from riskset._errors import InputError
from riskset._settings import Settings, setting, settings
from riskset.ohdsi.negative_controls import CONTROL_TABLES
from riskset.omop.events import CONDITIONS
from riskset.omop.risk import TimeAtRisk
from riskset.study.specification.codes import Codes
from riskset.study.specification.exposure_sections import OHDSI_ID

__all__ = ["CdmOutcome", "OutcomeDefinition", "TableOutcome"]


@settings
class OutcomeDefinition(Settings):
    """Keys that outcomes and controls of both kinds of data have."""

    label: str | None = setting("the name for readers; left out: the key", None)
    description: str = setting("a description of the outcome", "")
    kind: Literal["outcome", "negative control", "positive control"] = setting(
        "whether it is a control", "outcome"
    )
    true_hr: float | None = setting("the true ratio of a positive control", None, above=0)
    ohdsi_id: int | None = setting(OHDSI_ID.format("the outcome", "its cohort, or "), None, least=1)

    def contradictions(self) -> Iterator[InputError]:
        """A positive control, and no other outcome, has a known ratio."""
        if (self.true_hr is not None) != (self.kind == "positive control"):
            yield InputError(
                "`true_hr` is required for a positive control, and for no other outcome.",
                hint="a negative control always has 1.",
            )


@settings
class TableOutcome(OutcomeDefinition):
    """An outcome or a control in a plain table."""

    time: str = setting(
        "the column of the time at risk, in the `time_unit` of the data; of days, the first and "
        "the last one are counted",
        kw_only=True,
    )
    event: str = setting(
        "the column of what ended them: 0 = censored, 1 = outcome, 2 = competing event; or text or "
        "other codes, see `cause` and `censored`",
        kw_only=True,
    )
    entry: str | None = setting(
        "the column of the time after which people come under observation, if they enter late "
        "(left truncation); 0: from the start",
        None,
    )
    cause: int | str | None = setting(
        "the code or label of the outcome in this column; all others but that of censoring compete "
        "with it",
        None,
    )
    censored: str | None = setting("the label of censoring, if the column holds text", None)
    prior: str | None = setting(
        "the column that is 1 for people who had it before; they are left out", None
    )
    end_reason: str | None = setting("the column that says why follow-up ended", None)


@settings
class CdmOutcome(OutcomeDefinition, Codes):
    """An outcome or a control in a CDM: the first diagnosis of some conditions."""

    inpatient: bool = setting("whether records must start within an inpatient visit", False)
    tables: tuple[str, ...] | None = setting(
        "tables to search for the concepts; left out: condition_occurrence, and for negative "
        "controls observation, too",
        None,
    )
    first: bool = setting(
        "whether only the first record of a person counts, observed or not", False
    )
    death: bool = setting("death from any cause, instead of concepts", False)
    time_at_risk: TimeAtRisk | None = setting(
        "the time at risk of this outcome, instead of that of the analyses", None
    )
    prior_outcome_lookback: int | None = setting(
        "the prior_outcome_lookback of this outcome, instead of that of the time at risk",
        None,
        least=0,
    )

    @property
    def event_tables(self) -> tuple[str, ...]:
        """The tables in which the concepts are looked for."""
        if self.tables is not None:
            return self.tables
        # As OHDSI's CohortGenerator makes the cohorts of negative controls.
        return CONTROL_TABLES if self.kind == "negative control" else CONDITIONS
