"""Specifications of Strategus and CohortMethod as studies: every setting by hand."""

import copy
import json

import duckdb
import pytest

import riskset as rs
from gibleed import BLEEDING, CELECOXIB, DICLOFENAC, GIBLEED, needs_gibleed
from ohdsi.definitions import concept_set, definition, item
from reference import GOLDEN, read_json
from study.analysis_specifications import analysis, imported, only, specification

PUBLISHED = read_json(GOLDEN / "gibleed" / "cohortmethod.json")
CV = {"priorType": "laplace", "variance": 1, "useCrossValidation": True, "exclude": 0}
FIXED = CV | {"useCrossValidation": False, "variance": 0.02}
CONTROL = {"fold": 5, "cvRepetitions": 2, "seed": 7, "startingVariance": 0.01, "maxIterations": 9}


def test_a_crude_analysis(tmp_path):
    found, (study,) = imported(tmp_path, specification())
    assert [path.name for path in found.studies] == ["study.yaml"]
    assert study == {
        "title": "spec",
        "data": {"cohort_table": "cohort", "cdm": "cdm"},
        "exposures": {"cohort 1": {"cohort": 1}, "cohort 2": {"cohort": 2}},
        "comparisons": [{"target": "cohort 1", "comparator": "cohort 2"}],
        "outcomes": {"cohort 3": {"cohort": 3}},
        "analyses": {
            "Crude": {
                "eligibility": {
                    "remove_duplicates": "keep first",
                    "first_exposure_only": False,
                    "washout_days": 183,
                    "restrict_to_common_period": False,
                },
                "covariates": {"analyses": ["DemographicsGender"]},
                "time_at_risk": {
                    "risk_start": 0,
                    "start_anchor": "cohort start",
                    "risk_end": 30,
                    "end_anchor": "cohort end",
                    "prior_outcome_lookback": None,
                    "remove_prior_outcome": True,
                    "censor_at_new_risk_window": False,
                    "min_days_at_risk": 1,
                },
                "propensity": None,
                "balance": {"sd": "current"},
                "model": {"kind": "cox", "reading": "pooled", "interval": "profile"},
                "ohdsi_id": 1,
            }
        },
    }
    assert not found.lost
    assert json.loads((found.studies[0].parent / "not-imported.json").read_text()) == []


def test_who_enters(tmp_path):
    data = {
        "studyStartDate": "20100131",
        "studyEndDate": "20191231",
        "minAge": 18,
        "maxAge": "  65",
        "genderConceptIds": 8507,
        "nestingCohortId": 9,
        "maxCohortSize": 1000,
        "washoutPeriod": " 365 ",
    }
    section, lost = only(tmp_path, analysis(data=data))
    assert section["eligibility"] == {
        "remove_duplicates": "keep first",
        "first_exposure_only": False,
        "washout_days": 365,
        "restrict_to_common_period": False,
        "min_age": 18,
        "max_age": 65,
        "gender_concept_ids": [8507],
        "nesting_cohort": 9,
        "study_start": "2010-01-31",
        "study_end": "2019-12-31",
        "max_cohort_size": 1000,
    }
    assert lost == {"maxCohortSize"}


def test_old_versions_select_people_twice(tmp_path):
    one = analysis(data={"removeDuplicateSubjects": "keep all"})
    population = one.pop("createStudyPopulationArgs")
    one["createStudyPopArgs"] = population | {
        "firstExposureOnly": True,
        "restrictToCommonPeriod": True,
        "washoutPeriod": 400,
        "removeDuplicateSubjects": "remove all",
    }
    section, _ = only(tmp_path, one)
    assert section["eligibility"] == {
        "remove_duplicates": "remove all",
        "first_exposure_only": True,
        "washout_days": 400,
        "restrict_to_common_period": True,
    }


def test_days_at_risk(tmp_path):
    population = {
        "riskWindowStart": 1,
        "startAnchor": "cohort end",
        "riskWindowEnd": 99999,
        "endAnchor": "cohort start",
        "maxDaysAtRisk": 364,
        "minDaysAtRisk": 0,
        "priorOutcomeLookback": 365,
        "removeSubjectsWithPriorOutcome": False,
        "censorAtNewRiskWindow": True,
    }
    section, lost = only(tmp_path, analysis(population=population))
    assert section["time_at_risk"] == {
        "risk_start": 1,
        "start_anchor": "cohort end",
        "risk_end": None,
        "end_anchor": "cohort start",
        "prior_outcome_lookback": 365,
        "remove_prior_outcome": False,
        "censor_at_new_risk_window": True,
        "max_days": 365,
        "min_days_at_risk": 1,
    }
    assert lost == {"minDaysAtRisk"}


def test_covariates(tmp_path):
    settings = {
        "DemographicsAge": True,
        "DemographicsGender": False,
        "ConditionEraLongTerm": True,
        "longTermStartDays": -730,
        "mediumTermStartDays": -90,
        "shortTermStartDays": -7,
        "endDays": -1,
        "excludedCovariateConceptIds": [5, 4],
        "addDescendantsToExclude": False,
        "includedCovariateIds": [8532001],
        "temporal": False,
        "attr_fun": "getDbDefaultCovariateData",
    }
    other = {"attr_fun": "getDbOtherCovariates"}
    comparisons = [
        {
            "targetId": 1,
            "comparatorId": 2,
            "outcomes": [{"outcomeId": 3}],
            "excludedCovariateConceptIds": [6],
        }
    ]
    one = analysis(data={"covariateSettings": [settings, other]})
    found, (study,) = imported(tmp_path, specification(one, comparisons=comparisons))
    assert study["analyses"]["Crude"]["covariates"] == {
        "analyses": ["DemographicsAge", "ConditionEraLongTerm"],
        "long_days": -730,
        "medium_days": -90,
        "short_days": -7,
        "end_day": -1,
        "exclude": [4, 5, 6],
    }
    assert {(lost.place.split(".")[-1], str(lost.value)) for lost in found.lost} == {
        ("addDescendantsToExclude", "False"),
        ("includedCovariateIds", "[8532001]"),
        ("1", "getDbOtherCovariates"),
    }


def test_scores(tmp_path):
    scores = {
        "prior": CV,
        "control": CONTROL,
        "errorOnHighCorrelation": False,
        "stopOnError": False,
        "maxCohortSizeForFitting": 250000,
        "excludeCovariateIds": [8532001],
        "includeCovariateIds": [1],
        "estimator": "att",
    }
    found, (study,) = imported(tmp_path, specification(analysis(createPsArgs=scores)))
    assert study["seed"] == 7
    assert study["analyses"]["Crude"]["propensity"] == {
        "penalty": "l1",
        "folds": 5,
        "repeats": 2,
        "on_high_correlation": "warn",
        "max_rows": 250000,
        "exclude": ["8532001"],
    }
    assert [lost.place.split(".")[-1] for lost in found.lost] == ["includeCovariateIds"]


@pytest.mark.parametrize(
    ("prior", "expected"),
    [
        (FIXED, {"penalty": "l1", "variance": 0.02}),
        (FIXED | {"priorType": "normal"}, {"penalty": "l2", "variance": 0.02}),
        ({"priorType": "none"}, {"penalty": "none"}),
    ],
)
def test_priors_of_scores(tmp_path, prior, expected):
    scores = {"prior": prior, "maxCohortSizeForFitting": 0}
    section, lost = only(tmp_path, analysis(createPsArgs=scores))
    assert section["propensity"] == expected | {"on_high_correlation": "error"}
    assert not lost


PS = {"prior": FIXED}
ADJUSTMENTS = {
    "matched": (
        {
            "matchOnPsArgs": {
                "caliper": 0,
                "caliperScale": "propensity score",
                "maxRatio": 0,
                "allowReverseMatch": True,
                "matchCovariateIds": [8507001],
            },
            "outcome": {"stratified": True},
        },
        {
            "match": {
                "ratio": 0,
                "caliper": 0,
                "scale": "propensity score",
                "allow_reverse": True,
                "within": ["covariate 8507001"],
            }
        },
        "stratified",
    ),
    "strata": (
        {
            "stratifyByPsArgs": {"numberOfStrata": 5, "baseSelection": "target"},
            "outcome": {"stratified": True},
        },
        {"stratify": {"k": 5, "base": "target"}},
        "stratified",
    ),
    "matched, without strata": (
        {"matchOnPsArgs": {"maxRatio": 1}},
        {
            "match": {
                "ratio": 1,
                "caliper": 0.2,
                "scale": "standardized logit",
                "allow_reverse": False,
            }
        },
        "pooled",
    ),
    "weights for everybody": (
        {
            "outcome": {"inversePtWeighting": True},
            "truncateIptwArgs": {"maxWeight": 8},
            "createPsArgs": PS | {"estimator": "ate"},
        },
        {"weight": {"estimand": "ate", "stabilise": "cohortmethod", "truncate": 8}},
        "marginal",
    ),
    "overlap weights": (
        {"outcome": {"inversePtWeighting": True}, "createPsArgs": PS | {"estimator": "ato"}},
        {"weight": {"estimand": "ato"}},
        "marginal",
    ),
    "trimmed": (
        {"trimByPsArgs": {"trimFraction": 0.05, "trimMethod": "symmetric"}},
        {"trim": {"symmetric": 0.05}},
        "pooled",
    ),
    "trimmed in reverse": (
        {"trimByPsArgs": {"trimFraction": 0.05, "trimMethod": "reverse asymmetric"}},
        {"trim": {"reverse_asymmetric": 0.05}},
        "pooled",
    ),
    "in equipoise": (
        {"trimByPsArgs": {"equipoiseBounds": [0.3, 0.7], "trimMethod": "symmetric"}},
        {"trim": {"equipoise": [0.3, 0.7]}},
        "pooled",
    ),
    "in equipoise, before version 6": (
        {"trimByPsToEquipoiseArgs": {"bounds": [0.25, 0.75]}},
        {"trim": {"equipoise": [0.25, 0.75]}},
        "pooled",
    ),
}


@pytest.mark.parametrize("name", ADJUSTMENTS)
def test_adjustments(tmp_path, name):
    parts, expected, reading = ADJUSTMENTS[name]
    found, (study,) = imported(tmp_path, specification(analysis(**{"createPsArgs": PS} | parts)))
    section = study["analyses"]["Crude"]
    ways = {way: section[way] for way in ("trim", "match", "stratify", "weight") if way in section}
    assert ways == expected
    assert section["model"] == {"kind": "cox", "reading": reading, "interval": "profile"}
    assert not found.lost
    if "within" in str(expected):
        assert study["variables"] == {"covariate 8507001": {"covariate": "8507001"}}


def test_outcome_models_with_covariates(tmp_path):
    """A Laplace prior of variance v is an L1 penalty of strength sqrt(2 / v)."""
    outcome = {"useCovariates": True, "prior": FIXED | {"variance": 0.5}, "bootstrapCi": False}
    section, _ = only(tmp_path, analysis(outcome=outcome))
    assert section["model"]["covariates"] == "all"
    assert section["model"]["strength"] == pytest.approx(2.0)
    outcome = {"useCovariates": True, "prior": CV, "control": CONTROL}
    section, _ = only(tmp_path, analysis(outcome=outcome))
    assert [section["model"][name] for name in ("folds", "repeats")] == [5, 2]
    outcome = {"bootstrapCi": True, "bootstrapReplicates": 50, "profileBounds": [-4.6, 4.6]}
    outcome |= {"interactionCovariateIds": [8532001]}
    section, lost = only(tmp_path, analysis(outcome=outcome))
    assert section["model"]["interval"] == "bootstrap"
    assert section["model"]["replicates"] == 50
    assert lost == {"profileBounds", "interactionCovariateIds"}


def test_limits(tmp_path):
    thresholds = {
        "mdrrThreshold": "Inf",
        "easeThreshold": 0.3,
        "sdmThreshold": 0.2,
        "sdmAlpha": 0.05,
        "equipoiseThreshold": 0.25,
        "generalizabilitySdmThreshold": 999,
    }
    balance = {"threshold": 0.15, "alpha": 0.05, "maxCohortSize": 250000}
    one = analysis(computeSharedCovariateBalanceArgs=balance)
    content = specification(one, cmDiagnosticThresholds=thresholds, refitPsForEveryOutcome=True)
    found, (study,) = imported(tmp_path, content)
    assert study["diagnostics"] == {
        "max_mdrr": 1e9,
        "max_ease": 0.3,
        "max_smd": 0.2,
        "min_equipoise": 0.25,
        "max_generalisability": None,
    }
    assert study["analyses"]["Crude"]["balance"] == {
        "sd": "current",
        "threshold": 0.15,
        "alpha": 0.05,
    }
    assert [lost.place for lost in found.lost] == ["spec.json.refitPsForEveryOutcome"]


def _strategus(*analyses, outcomes, **settings):
    """A whole specification with definitions of the cohorts 1, 2 and 3 and a negative control."""
    first = definition({"DrugExposure": {"CodesetId": 0}}, concept_set(0, item(5)))
    definitions = [
        {"cohortId": k, "cohortName": name, "cohortDefinition": json.dumps(first)}
        for k, name in ((1, "new"), (2, "old"), (3, "bleeding"))
    ]
    controls = [{"cohortId": " 101", "cohortName": "nail", "outcomeConceptId": "  139099"}]
    comparisons = [{"targetId": 1, "comparatorId": 2, "outcomes": outcomes}]
    module = specification(*analyses, comparisons=comparisons, **settings)
    return {
        "sharedResources": [
            {"cohortDefinitions": definitions},
            {
                "negativeControlOutcomes": {
                    "negativeControlOutcomeCohortSet": controls,
                    "occurrenceType": "first",
                    "detectOnDescendants": True,
                }
            },
        ],
        "moduleSpecifications": [
            {"module": "CohortGeneratorModule", "settings": {"generateStats": True}},
            {"module": "CharacterizationModule", "settings": {}},
            {"module": "CohortMethodModule", "settings": module},
        ],
    }


def test_a_whole_specification(tmp_path):
    pytest.importorskip("duckcdm")
    outcomes = [
        {"outcomeId": 3, "outcomeOfInterest": True, "trueEffectSize": None, "riskWindowEnd": 365},
        {"outcomeId": 101, "outcomeOfInterest": False, "trueEffectSize": 1},
    ]
    content = _strategus(analysis(population={"maxDaysAtRisk": 99}), outcomes=outcomes)
    found, (study,) = imported(tmp_path, content, title="Bleeding")
    assert study["title"] == "Bleeding"
    assert study["data"] == {"cohort_definitions": "cohorts", "cdm": "cdm"}
    assert study["exposures"] == {"new": {"cohort": 1}, "old": {"cohort": 2}}
    assert study["outcomes"]["nail"] == {
        "concepts": [139099],
        "descendants": True,
        "first": True,
        "kind": "negative control",
        "ohdsi_id": 101,
    }
    window = study["outcomes"]["bleeding"]["time_at_risk"]
    assert (window["risk_end"], window["max_days"]) == (365, 100)
    definitions = rs.ohdsi.read_cohort_definitions(found.studies[0].parent / "cohorts")
    assert [(one.id, one.name) for one in definitions] == [(1, "new"), (2, "old"), (3, "bleeding")]
    assert [lost.value for lost in found.lost] == ["CharacterizationModule"]


def test_own_days_of_an_outcome_part_analyses(tmp_path):
    """One study cannot have them where the rest of the time at risk differs."""
    analyses = [analysis(1, "a"), analysis(2, "b", population={"riskWindowStart": 7})]
    comparisons = [
        {"targetId": 1, "comparatorId": 2, "outcomes": [{"outcomeId": 3, "riskWindowEnd": 60}]}
    ]
    _, studies = imported(tmp_path, specification(*analyses, comparisons=comparisons))
    found = [
        (list(study["analyses"]), study["outcomes"]["cohort 3"]["time_at_risk"]["risk_start"])
        for study in studies
    ]
    assert found == [(["a"], 0), (["b"], 7)]
    comparisons[0]["outcomes"][0] = {"outcomeId": 3, "priorOutcomeLookback": 5}
    _, (study,) = imported(tmp_path, specification(*analyses, comparisons=comparisons))
    assert study["outcomes"]["cohort 3"] == {"cohort": 3, "prior_outcome_lookback": 5}


def test_comparisons_that_differ_are_studies(tmp_path):
    outcomes = [{"outcomeId": 3}]
    comparisons = [
        {"targetId": 1, "comparatorId": 2, "outcomes": outcomes},
        {"targetId": 4, "comparatorId": 2, "outcomes": outcomes},
        {"targetId": 5, "comparatorId": 2, "outcomes": [{"outcomeId": 6}]},
        {"targetId": 7, "comparatorId": 2, "outcomes": outcomes, "nestingCohortId": 8},
    ]
    analyses = [analysis(1, "same"), analysis(2, "same")]
    excluded = [
        {"targetId": 5, "comparatorId": 2, "analysisId": 2},
        {"targetId": 5, "comparatorId": 2, "outcomeId": 6, "analysisId": 1},
    ]
    content = specification(*analyses, comparisons=comparisons, analysesToExclude=excluded)
    found, studies = imported(tmp_path, content)
    assert [path.name for path in found.studies] == ["study-1.yaml", "study-2.yaml", "study-3.yaml"]
    assert [len(study["comparisons"]) for study in studies] == [2, 1, 1]
    assert [list(study["analyses"]) for study in studies] == [
        ["same (1)", "same (2)"],
        ["same (1)"],
        ["same (1)", "same (2)"],
    ]
    entry = studies[2]["analyses"]["same (1)"]["eligibility"]
    assert entry["nesting_cohort"] == 8
    assert [lost.place.split(".")[-1] for lost in found.lost] == ["analysesToExclude"]


def test_logistic_and_poisson_models(tmp_path):
    kinds = ("poisson", "logistic")
    analyses = [analysis(k, kind, outcome={"modelType": kind}) for k, kind in enumerate(kinds, 1)]
    found, (study,) = imported(tmp_path, specification(*analyses))
    assert [one["model"]["kind"] for one in study["analyses"].values()] == list(kinds)
    assert not found.lost


@pytest.fixture(scope="module")
def gibleed(tmp_path_factory):
    """A study of a specification as CohortMethod's own test has it, on a table of cohorts."""
    folder = tmp_path_factory.mktemp("gibleed")
    with duckdb.connect(str(GIBLEED), read_only=True) as connection:
        eras = "drug_era_start_date AS s, drug_era_end_date AS e FROM drug_era"
        connection.execute(
            "COPY (SELECT CASE k WHEN {} THEN 1 WHEN {} THEN 2 ELSE 3 END AS cohort_definition_id, "
            "p AS subject_id, s AS cohort_start_date, e AS cohort_end_date FROM "
            f"(SELECT drug_concept_id AS k, person_id AS p, {eras} UNION ALL "
            "SELECT condition_concept_id, person_id, condition_start_date, condition_start_date "
            "FROM condition_occurrence) WHERE k IN ({}, {}, {})) TO '{}'".format(
                *(CELECOXIB, DICLOFENAC, CELECOXIB, DICLOFENAC, BLEEDING, folder / "cohorts.csv")
            )
        )
    data = {"removeDuplicateSubjects": "remove all", "firstExposureOnly": True}
    data |= {"restrictToCommonPeriod": True}
    crude = analysis(1, "crude", data=data, population={"censorAtNewRiskWindow": True})
    weighted = copy.deepcopy(crude) | {"analysisId": 2, "description": "weighted"}
    names = [rs.omop.ANALYSES[k].name for k in rs.omop.DEFAULT_ANALYSES]
    weighted["getDbCohortMethodDataArgs"]["covariateSettings"] = {
        **dict.fromkeys(names, True),
        "excludedCovariateConceptIds": [CELECOXIB, DICLOFENAC],
    }
    weighted["createPsArgs"] = {"prior": FIXED | {"variance": 0.01}, "estimator": "att"}
    weighted["truncateIptwArgs"] = {"maxWeight": 10}
    weighted["fitOutcomeModelArgs"] |= {"inversePtWeighting": True}
    found, (study,) = imported(folder, specification(crude, weighted), cdm=GIBLEED)
    study["data"]["cohort_table"] = str(folder / "cohorts.csv")
    rs.study.check_data(rs.study.Study(study, found.studies[0].parent))
    rs.study.run(rs.study.Study(study, found.studies[0].parent), folder / "results")
    return rs.study.StudyResults.open(folder / "results" / "private")


@needs_gibleed
def test_published_numbers_of_gibleed(gibleed):
    (row,) = gibleed.rows("estimates", role="main", analysis="crude")
    assert {name: row[name] for name in PUBLISHED["counts"]} == PUBLISHED["counts"]
    for name in ("crude", "weighted"):
        (row,) = gibleed.rows("estimates", role="main", analysis=name)
        assert row["hr"] == pytest.approx(PUBLISHED[name]["hr"], rel=1e-7)
        for end in ("hr_lower", "hr_upper"):
            assert row[end] == pytest.approx(PUBLISHED[name][end], rel=2e-4)


def test_numbers_as_text_and_blanks(tmp_path):
    """R's Strategus pads numbers, and a vector of one may be a list."""
    one = analysis(data={"studyStartDate": " "}, population={"censorAtNewRiskWindow": [True]})
    out = [{"targetId": " 1", "analysisId": " 2"}]
    found, (study,) = imported(
        tmp_path, specification(one, analysis(2, "Other"), analysesToExclude=out)
    )
    assert list(study["analyses"]) == ["Crude"]
    assert study["analyses"]["Crude"]["time_at_risk"]["censor_at_new_risk_window"]
    assert not found.lost


def test_matches_and_strata(tmp_path):
    both = analysis(matchOnPsArgs={"maxRatio": 1}, stratifyByPsArgs={"numberOfStrata": 5})
    section, lost = only(tmp_path, both | {"createPsArgs": {"maxCohortSizeForFitting": 0}})
    assert "stratify" not in section
    assert section["match"]["ratio"] == 1
    assert lost == {"stratifyByPsArgs"}
