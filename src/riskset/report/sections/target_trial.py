"""The target trial beside its emulation: what the specification says, and what was done."""

from typing import Any

from riskset.report.markup import Markup, without_spans
from riskset.report.page import Facts, Page, TableColumn
from riskset.report.source import ReportPart
from riskset.results.rows import AttritionRow

__all__ = ["PARTS", "collect", "render"]

PARTS = (
    "eligibility", "strategies", "assignment", "time_zero", "follow_up", "outcome", "estimand",
    "analysis",
)  # fmt: skip
"""Parts of the protocol of a trial, the keys of the section `target_trial` of a specification."""


def collect(part: ReportPart) -> dict[str, Any]:
    """A row for each part; what the specification does not say is null."""
    given = part.source.study["settings"].get("target_trial") or {}
    done = _emulation(part)
    return {
        "tables": {
            "target_trial": [
                {"part": name, "trial": given.get(name), "emulation": done[name]} for name in PARTS
            ]
        }
    }


def _emulation(part: ReportPart) -> dict[str, str]:
    """What was done, from the words of the analysis and the steps that left people out."""
    source, main, words = part.source, part.main, part.analysis["words"]
    say, study = source.say, source.study

    def joined(*sentences: str | None) -> str:
        known = [one.strip().rstrip(".") for one in sentences if one]
        return ". ".join(one[:1].upper() + one[1:] for one in known)

    steps = [row.step for row in part.adjusted(AttritionRow)][1:]
    exposures = []
    for role in ("target", "comparator"):
        description = study[f"{role}s"].get(main[role], {}).get("description")
        exposures.append(f"{part.label(role)} – {description}" if description else part.label(role))
    outcome = study["outcomes"].get(main.outcome, {}).get("description")
    estimand = say.label("estimand", main.estimand) if main.estimand else None
    others = [source.label("analyses", run.analysis) for run in part.runs[1:]]
    is_adjusted = words.get("adjustment") not in (None, "none")
    return {
        "eligibility": joined(
            words.get("population") or say("question.from", data=study["data"]["name"]),
            words.get("washout"),
            say("target_trial.steps", steps="; ".join(steps)) if steps else None,
        ),
        "strategies": say(
            "target_trial.strategies_of", target=exposures[0].rstrip("."), comparator=exposures[1]
        ),
        "assignment": say("target_trial.clones")
        if main.cloned
        else joined(
            say("target_trial.observed"),
            words.get("adjustment") if is_adjusted else say("target_trial.unadjusted"),
            say("target_trial.score", words=words["propensity_score"])
            if words.get("propensity_score")
            else None,
        ),
        "time_zero": _time_zero(part),
        "follow_up": joined(
            words.get("time_at_risk"),
            say("target_trial.until_deviation") if words.get("deviations") else None,
        )
        or say("target_trial.unknown"),
        "outcome": joined(
            f"{part.label('outcome')} – {outcome}" if outcome else part.label("outcome"),
            say("target_trial.competing", what=study["competing"]) if study["competing"] else None,
        ),
        "estimand": joined(words.get("contrast"), words.get("estimand") or estimand)
        or say("target_trial.no_estimand"),
        "analysis": joined(
            words.get("deviations"),
            words.get("model"),
            words.get("covariates"),
            say("methods.sensitivity", names="; ".join(others)) if others else None,
        ),
    }


def _time_zero(part: ReportPart) -> str:
    """The index date; of a table of people, the column that has it, if the study names one."""
    say, study = part.source.say, part.source.study
    if study["data"]["kind"] == "omop":
        return say("target_trial.start")
    column = study["settings"].get("data", {}).get("index_date")
    return say("target_trial.column", column=column) if column else say("target_trial.of_data")


def render(page: Page, content: Facts) -> Markup:
    """The table."""
    say, rows = page.say, content["tables"]["target_trial"]
    columns = [
        TableColumn.text(
            say("target_trial.part"), "part", lambda name: say(f"target_trial.{name}")
        ),
        TableColumn(
            say("target_trial.trial"),
            ("trial",),
            lambda words: say("target_trial.unsaid") if words is None else words,
            is_number=False,
        ),
        TableColumn.text(say("target_trial.emulation"), "emulation", without_spans),
    ]
    return page.section(
        "target_trial",
        page.paragraph("target_trial.words"),
        page.table("target_trial", say("target_trial.caption"), columns, rows),
    )
