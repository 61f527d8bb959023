"""Everything that a report says, as numbers and names: what `report.json` holds.

The page is drawn from this alone, so that nothing can be drawn that is not here.
"""

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from riskset.report.sections import (
    attrition,
    balance,
    characteristics,
    checklist,
    controls,
    curves,
    follow_up,
    header,
    main_result,
    methods,
    models,
    overlap,
    per_protocol,
    question,
    reproduction,
    target_trial,
    unmeasured,
)
from riskset.report.source import ReportPart, ReportSource, first, record
from riskset.results.rows import DiagnosticRow, EstimateRow, RunRow

__all__ = ["FORMAT", "SECTIONS", "collect", "plain"]

FORMAT = 1
SECTIONS: Mapping[str, ModuleType] = {
    "question": question,
    "target_trial": target_trial,
    "result": main_result,
    "curves": curves,
    "overlap": overlap,
    "balance": balance,
    "characteristics": characteristics,
    "controls": controls,
    "unmeasured": unmeasured,
    "follow_up": follow_up,
    "per_protocol": per_protocol,
    "people": attrition,
    "models": models,
    "methods": methods,
}
"""In the order of the page."""

RATIOS = [f"{of}hr{end}" for of in ("", "calibrated_") for end in ("", "_lower", "_upper")]
P_VALUES = [f"{of}{name}" for of in ("", "calibrated_") for name in ("p", "holm_p", "fdr_p")]
NOBODY = ("empty", "one_arm_empty", "no_people")
NO_SCORE = (
    "high_correlation", "no_covariates", "separated", "not_converged", "bad_covariates",
    "bad_input", "unknown_covariate",
)  # fmt: skip


def shown_sections(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Sections of a part: where something failed, those that can say why, and no others."""
    status = about["status"]
    if status in NOBODY:
        return ("question", "people")
    if about["step"] == "propensity score" or status in NO_SCORE and about["step"] != "estimate":
        return ("question", "covariates", "people")
    if status == "no_matches":
        return ("question", "overlap", "people")
    withheld = ("result", "curves", "unmeasured") if about["is_withheld"] else ()
    return tuple(name for name in SECTIONS if name not in withheld)


def collect(source: ReportSource) -> dict[str, Any]:
    """The whole content."""
    study, parts = source.study, source.parts()
    contents = [_part(part) for part in parts]
    return {
        "format": FORMAT,
        "title": study["title"],
        "description": study["description"],
        "language": source.say.language,
        "data": {key: study["data"].get(key) for key in ("name", "description", "start", "end")},
        "analysed": source.run["date"],
        "versions": study["versions"],
        "settings_hash": study["settings_hash"],
        "min_cell_count": source.min_cell_count,
        "blind": source.blind or study["blind"],
        "index": {"tables": {"runs": [_run(part, run) for part in parts for run in part.runs]}},
        "parts": contents,
        "checklist": checklist.collect(source, contents) if contents else None,
        "reproduction": reproduction.collect(source),
    }


def _part(part: ReportPart) -> dict[str, Any]:
    about = header.collect_about(part)
    sections: dict[str, Any] = {"about": about, "header": header.collect(part)}
    for name in shown_sections(about):
        module = overlap if name == "covariates" else SECTIONS[name]
        collected = module.collect(part)
        if collected is not None:  # as of a study without per-protocol analyses
            sections[name] = collected
    return sections


def _run(part: ReportPart, run: RunRow) -> dict[str, Any]:
    """A line of the index: gate and estimate of an analysis."""
    main = first(part.read(EstimateRow, run, role="main")) or EstimateRow(status="ok")
    return {
        **{name: part.label(name) for name in ("target", "comparator", "outcome")},
        "analysis": part.source.label("analyses", run.analysis),
        "status": main.status if run.status == "ok" else run.status,
        "unblind": run.unblind,
        "failed": [
            check.name for check in part.read(DiagnosticRow, run) if check.verdict == "fail"
        ],
        "is_withheld": part.source.is_withheld(run),
        "model": main.model,
        **record(main, (*RATIOS, *P_VALUES)),
    }


def plain(content: Any) -> Any:
    """What JSON can hold: infinities are the texts "inf" and "-inf", NaN is null."""
    if isinstance(content, Mapping):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None if math.isnan(content) else "inf" if content > 0 else "-inf"
    return content
