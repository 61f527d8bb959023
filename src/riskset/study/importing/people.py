"""Who enters a study, how long people are followed, and their covariates."""

from typing import Any

from riskset._errors import CohortError
from riskset.omop.analyses import ANALYSES
from riskset.omop.covariate_settings import CovariateSettings
from riskset.study.importing.given import Given

__all__ = ["EVER", "covariates", "eligibility", "time_at_risk", "window_of"]

EVER = 99999
"""CohortMethod's number of days for no limit."""

KEEP_ALL = "keep all"
WINDOW = ("riskWindowStart", "startAnchor", "riskWindowEnd", "endAnchor")
NAMES = {analysis.name for analysis in ANALYSES.values()}


def eligibility(data: Given, population: Given | None, nesting: int | None) -> dict[str, Any]:
    """The eligibility of people, from the settings of the data and, in old versions, of both."""
    duplicates = data.take("removeDuplicateSubjects", "keep first, truncate to second")
    found: dict[str, Any] = {
        "remove_duplicates": duplicates,
        "first_exposure_only": data.flag("firstExposureOnly", True),
        "washout_days": data.whole("washoutPeriod", 365),
        "restrict_to_common_period": data.flag("restrictToCommonPeriod", True),
    }
    if population is not None:  # applied after those of the data
        second = population.take("removeDuplicateSubjects", KEEP_ALL)
        if duplicates in (KEEP_ALL, False):
            found["remove_duplicates"] = second
        elif second not in (KEEP_ALL, duplicates, False):
            reason = f"riskset removes duplicates once; it uses {duplicates!r} of the data."
            population.note("removeDuplicateSubjects", second, reason)
        if population.flag("firstExposureOnly", False):
            found["first_exposure_only"] = True
        if population.flag("restrictToCommonPeriod", False):
            found["restrict_to_common_period"] = True
        days = population.whole("washoutPeriod", 0) or 0
        found["washout_days"] = max(found["washout_days"], days)
    if isinstance(found["remove_duplicates"], bool):  # CohortMethod before version 3
        found["remove_duplicates"] = "remove all" if found["remove_duplicates"] else KEEP_ALL
    for key, name in (("minAge", "min_age"), ("maxAge", "max_age")):
        if data.has(key):
            found[name] = data.whole(key)
    if data.has("genderConceptIds"):
        found["gender_concept_ids"] = data.wholes("genderConceptIds")
    own = data.whole("nestingCohortId")
    if nesting or own:
        found["nesting_cohort"] = nesting or own
    for key, name in (("studyStartDate", "study_start"), ("studyEndDate", "study_end")):
        if data.has(key):
            found[name] = _date(data, key)
    size = data.whole("maxCohortSize", 0)
    if size:
        found["max_cohort_size"] = size
        reason = "riskset thins an arm evenly by person and date; CohortMethod draws at random."
        data.note("maxCohortSize", size, reason)
    return found


def _date(data: Given, key: str) -> str:
    written = str(data.take(key)).strip().replace("-", "")
    if len(written) != 8 or not written.isdecimal():
        raise data.fault(key, "a date, as 20200131")
    return f"{written[:4]}-{written[4:6]}-{written[6:]}"


def window_of(settings: Given) -> dict[str, Any]:
    """The days at risk and the lookback, as far as the settings have them."""
    found: dict[str, Any] = {}
    for key in (*WINDOW, "priorOutcomeLookback"):
        if settings.has(key):
            is_text = key.endswith("Anchor")
            found[key] = settings.take(key) if is_text else settings.whole(key)
        settings.ignore(key)
    return found


def time_at_risk(given: dict[str, Any], settings: Given | None) -> dict[str, Any]:
    """The time at risk, of days as `window_of` returns them and of the other settings."""
    last = given.get("riskWindowEnd", 0)
    lookback = given.get("priorOutcomeLookback", EVER)
    found: dict[str, Any] = {
        "risk_start": given.get("riskWindowStart", 0),
        "start_anchor": given.get("startAnchor", "cohort start"),
        "risk_end": None if last >= EVER else last,
        "end_anchor": given.get("endAnchor", "cohort end"),
        "prior_outcome_lookback": None if lookback >= EVER else lookback,
    }
    if settings is None:
        return found
    found["remove_prior_outcome"] = settings.flag("removeSubjectsWithPriorOutcome", True)
    found["censor_at_new_risk_window"] = settings.flag("censorAtNewRiskWindow", False)
    most = settings.whole("maxDaysAtRisk", EVER)
    if most is not None and most < EVER:
        found["max_days"] = most + 1  # CohortMethod's limit does not count the first day
    least = settings.whole("minDaysAtRisk", 1) or 0
    found["min_days_at_risk"] = max(least, 1)
    if least < 1:
        settings.note("minDaysAtRisk", least, "riskset follows people for at least one day.")
    return found


def covariates(settings: Given | None, excluded: list[int]) -> dict[str, Any]:
    """Which covariates are made of the records before the index date."""
    if settings is None:
        return {"exclude": excluded} if excluded else {}
    names = [key for key, value in settings.content.items() if key in NAMES and value is True]
    settings.ignore(*NAMES)
    found: dict[str, Any] = {"analyses": names} if names else {}
    if not names:
        settings.note("analyses", None, "no known analysis is named; riskset takes the defaults.")
    days = {
        "longTermStartDays": "long_days",
        "mediumTermStartDays": "medium_days",
        "shortTermStartDays": "short_days",
        "endDays": "end_day",
    }
    for key, name in days.items():
        if settings.has(key):
            found[name] = settings.whole(key)
    if found.get("end_day", 0) > 0:
        reason = "covariates after the index date are not possible; riskset ends on that day."
        settings.note("endDays", found["end_day"], reason)
        found["end_day"] = 0
    listed = sorted({*settings.wholes("excludedCovariateConceptIds"), *excluded})
    if listed:
        found["exclude"] = listed
    if listed and not settings.flag("addDescendantsToExclude", True):
        settings.note("addDescendantsToExclude", False, "riskset leaves out descendants as well.")
    for key in ("includedCovariateConceptIds", "includedCovariateIds"):
        settings.lose(
            key, "riskset cannot make single covariates; it makes all of the chosen analyses."
        )
    settings.ignore("addDescendantsToExclude", "addDescendantsToInclude")
    settings.rest()
    try:
        CovariateSettings(**{k: v for k, v in found.items() if k != "exclude"})
    except CohortError as error:
        raise type(settings.fault("", ""))(f"{settings.place}: {error.message}") from None
    return found
