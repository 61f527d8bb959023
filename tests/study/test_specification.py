"""What a specification may say; each fault has its line, and a remedy where there is one."""

import json

import pytest

import riskset as rs

TEXT = """\
title: Small
data:
  people: people.parquet
  treatment: drug
exposures:
  new: {value: 1}
  old: {value: 0}
comparisons:
  - {target: new, comparator: old}
outcomes:
  death: {time: days, event: died}
defaults:
  propensity: {penalty: none}
analyses:
  matched: {match: {ratio: 2}}
  crude:
"""

FAULTS = {
    "matched: {match: {ratio: 2}}": [
        ("matched: {matsch: {}}", 15, "analyses.matched: unknown key 'matsch'.", "'match'?"),
        ("matched: {match: {ratio: -1}}", 15, "a whole number of at least 0, but it is -1", ""),
        ("matched: {match: {ratio: two}}", 15, "match.ratio: expected a whole number", ""),
        ("matched: {match: {ratio: 1.5}}", 15, "a whole number of at least 0, but it is 1.5", ""),
        ("matched: {match: {scale: standard}}", 15, "expected 'standardized logit',", "mean 'stan"),
        ("matched: {match: {}, balance: {squares: 'yes'}}", 15, "expected true or false", "quotes"),
        ("matched: {match: {ratio: '2'}}", 15, "of at least 0, but it is '2'", "write 2 without"),
        ("matched: {match: {caliper: '0.1'}}", 15, "but it is '0.1'", "write 0.1 without quotes"),
        ("matched: {match: {}, weight: {}}", 15, "match and weight exclude each other", "none"),
        (
            "matched: {match: {within: sex}}",
            15,
            "expected a list of texts, but it is 'sex'",
            "[sex]",
        ),
        ("matched: {model: {reading: stratified}}", 15, "needs sets: `match`", ""),
        ("matched: {propensity: none, match: {}}", 15, "`match` needs a propensity score", ""),
        (
            "matched: {trim: {symmetric: 0.7}}",
            15,
            "a number above 0 and below 0.5, but it is 0.7",
            "",
        ),
        (
            "matched: {trim: {equipoise: [1]}}",
            15,
            "expected a list of 2 values, but it is a list of 1 value",
            "",
        ),
        (
            "matched: {model: {strength: 1}}",
            15,
            "a penalty on covariates, but the model has none",
            "covariates: all",
        ),
        ("matched: {model: {censoring_group: arm}}", 15, "which was not requested", "finegray"),
        ("matched: {time_at_risk: {}}", 15, "`time_at_risk` applies to a CDM", "table of people"),
        (
            "matched: {trim: {equipoise: [0.7, 0.3]}}",
            15,
            "trim.equipoise: `equipoise` must be",
            "0.3",
        ),
        ("matched: {trim: {refit: true}}", 15, "no trimming rule is given", "symmetric"),
        ("matched: {weight: {truncate: 99%}}", 15, "weight.truncate: `truncate` must be", "'p99'"),
        (
            "matched: {weight: {stabilise: cohort}}",
            15,
            "expected true or false or 'cohortmethod', but it is 'cohort'",
            "",
        ),
        ("matched: {weight: {truncate: -3}}", 15, "number or a percentile, but it is -3.0", "10"),
        (
            "matched: {model: {interval: bootstrap, replicates: 30}}",
            15,
            "model.replicates: an interval with level=0.95 needs at least 39 replicates, but",
            "1,000 are usual",
        ),
        (
            "matched: {model: {interval: bootstrap, level: 0.999}}",
            15,
            "with level=0.999 needs at least 1,999 replicates, but there are 200",
            "",
        ),
        (
            "matched: {model: {interval: wald, covariates: all}}",
            15,
            "model.interval: `covariates: all` adds a penalty, which excludes a wald interval",
            "bootstrap",
        ),
        ("matched: [match]", 15, "model and ohdsi_id, but it is a list", ""),
        (
            "matched: {match: {}}\n  matched: {}",
            16,
            "'matched' is given twice (first in line 15)",
            "",
        ),
    ],
    "value: 0": [
        ("value: 1", 7, "exposures.old.value: 'new' has the value '1', too", ""),
        ("valu: 0", 7, "unknown key 'valu'", "'value'?"),
        ("label: Old", 7, "the key 'value' is missing", ""),
        ("concepts: [1]", 7, "defined for a CDM, but the data are a table of people", "`value`"),
    ],
    "comparator: old": [
        ("comparator: odl", 9, "exposure 'odl' was not found", "'old'?"),
        ("comparator: new", 9, "new and new: an exposure is compared with itself", ""),
    ],
    "event: died": [
        ("event: died, kind: negative", 11, "expected 'outcome', 'negative control'", "mean"),
        (
            "event: died, true_hr: 2",
            11,
            "`true_hr` is required for a positive control",
            "always has 1",
        ),
    ],
    "penalty: none": [
        (
            "penalty: none, cross_validate: yes",
            13,
            "no strength to choose or to give",
            "leave cross_validate",
        ),
        ("penalty: none, strength: 2", 13, "no strength to choose or to give", "strength"),
        ("cross_validate: no", 13, "chosen by cross-validation or has a strength", "is fixed"),
        (
            "strength: 2, cross_validate: yes",
            13,
            "chosen by cross-validation or has a strength",
            "is fixed",
        ),
        ("cross_validate: perhaps", 13, "expected true or false, but it is 'perhaps'", ""),
        ("cross_validate: no, strength: 1, variance: 2", 13, "were both given", "one"),
    ],
    "title: Small": [
        ("titel: Small", 1, "unknown key 'titel'", "'title'?"),
        ("title: [Small", 2, "this is not valid YAML", "bracket"),
        ("title:", 1, "title: expected a text, but it is empty", ""),
        ("title: Small\nseed: one", 2, "seed: expected a whole number", ""),
        ("title: Small\nrisk_times: [30, -1]", 2, "a number above 0, but it is -1", ""),
    ],
}


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [(old, *case) for old, cases in FAULTS.items() for case in cases],
)
def test_faults_have_their_line(old, new, line, message, hint):
    text = TEXT.replace(old, new)
    assert text != TEXT
    with pytest.raises(rs.InputError) as fault:
        rs.study.Study.parse(text)
    told, _, remedy = str(fault.value).partition("\nHint: ")
    assert told.startswith(f"study.yaml, line {line}")
    assert message in told
    assert hint in remedy


def test_a_mapping_has_keys_instead_of_lines():
    content = {"title": "x", "data": {"people": "p", "treatment": "t"}, "exposures": "new"}
    content |= {"comparisons": [], "outcomes": {}, "analyses": {"crude": {}}}
    with pytest.raises(rs.InputError, match=r"^exposures: expected .*, but it is 'new'.") as fault:
        rs.study.Study(content)
    assert "outcomes: there are no outcomes." in str(fault.value)


def test_all_faults_are_reported_in_the_order_of_their_lines():
    text = TEXT.replace("title: Small", "titel: Small").replace(
        "comparator: old", "comparator: odl"
    )
    text = text.replace("event: died", "event: died, kind: negative, prio: x")
    text = text.replace("penalty: none", "penalty: l3, folds: 1").replace(
        "{ratio: 2}", "{ratio: two, calipr: 0.1}, model: {replicates: 1, level: 2}"
    )
    text += "  more: {weight: {}, stratify: {k: 5}, trim: {equipoise: [0.7, 0.3]}}\n"
    with pytest.raises(rs.InputError) as fault:
        rs.study.Study.parse(text)
    lines = [line for line in str(fault.value).split("\n") if not line.startswith("Hint")]
    assert [line.split(": ")[0].removeprefix("study.yaml, line ") for line in lines] == [
        "1",
        "1",
        "9, comparisons.0.comparator",
        "11, outcomes.death.kind",
        "11, outcomes.death",
        "13, defaults.propensity.penalty",
        "13, defaults.propensity.folds",
        "15, analyses.matched.match.ratio",
        "15, analyses.matched.match",
        "15, analyses.matched.model.replicates",
        "15, analyses.matched.model.level",
        "17, analyses.more.trim.equipoise",
    ]
    assert str(fault.value).count("Hint: did you mean") == 5


def test_a_fault_of_one_part_does_not_hide_those_of_others():
    """What goes together is checked among the parts that are valid by themselves."""
    text = TEXT.replace("matched: {match: {ratio: 2}}", "matched: {match: {ratio: two}}")
    text += "  both: {match: {}, weight: {}}\n"
    with pytest.raises(rs.InputError) as fault:
        rs.study.Study.parse(text)
    assert "line 15, analyses.matched.match.ratio: expected a whole" in str(fault.value)
    assert "line 17, analyses.both.weight: match and weight exclude" in str(fault.value)


def test_defaults_stand_behind_what_an_analysis_says():
    text = TEXT.replace("  crude:", "  crude:\n  own: {propensity: {folds: 5}, match: none}")
    found = rs.study.Study.parse(text).specification.analyses
    assert not found["crude"].propensity.chooses_penalty
    assert found["crude"].match is None
    # A section replaces that of the defaults as a whole.
    assert found["own"].propensity.chooses_penalty
    assert found["own"].propensity.folds == 5
    text = TEXT.replace("defaults:", "defaults:\n  weight: {}").replace(
        "match: {", "stratify: {k: "
    )
    with pytest.raises(rs.InputError, match="stratify and weight exclude each other"):
        rs.study.Study.parse(text.replace("{k: ratio: 2}", "{k: 2}"))


def test_values_are_read_by_the_type_that_is_expected():
    text = TEXT.replace("value: 0", "value: no").replace("title: Small", "title: 2024")
    text = text.replace("{ratio: 2}", "{ratio: 2, caliper: 1e-1}")
    found = rs.study.Study.parse(text).specification
    assert found.exposures["old"].value == "no"
    assert found.title == "2024"
    assert found.analyses["matched"].match.caliper == 0.1


def test_anchors_merge_and_json():
    merged = TEXT.replace("matched: {match: {ratio: 2}}", "matched: &m {match: {ratio: 2}}")
    merged = merged.replace("  crude:", "  more:\n    <<: *m\n    model: {kind: finegray}")
    found = rs.study.Study.parse(merged).specification.analyses["more"]
    assert found.match.ratio == 2
    assert found.model.model == "finegray"
    one = rs.study.Study.parse(TEXT)
    settings = one.settings
    again = rs.study.Study.parse(json.dumps(settings), name="study.json")
    assert again.settings == settings
    assert again.settings_hash == one.settings_hash


def test_settings_name_files_without_their_folders():
    text = TEXT.replace("people.parquet", "/home/somebody/people.parquet")
    assert rs.study.Study.parse(text).settings == rs.study.Study.parse(TEXT).settings
