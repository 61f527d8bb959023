"""Weights for censoring at deviation: by hand, against R's glm and coxph, and equivalences."""

import csv
import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from storages import each_storage

GOLDEN = Path(__file__).parents[1] / "golden" / "per_protocol"
EXPECTED = json.loads((GOLDEN / "per_protocol.json").read_text())


def read_rows():
    with (GOLDEN / "rows.csv").open() as file:
        lines = list(csv.DictReader(file))
    return {name: np.array([float(line[name]) for line in lines]) for name in lines[0]}


ROWS = read_rows()


def columns(*names, rows=ROWS):
    return rs.Design.from_columns({name: rows[name] for name in names})


def weights(x=("L", "age"), rows=ROWS, **options):
    design = columns(*x, rows=rows) if isinstance(x, tuple) else x
    return rs.cohort.censoring_weights(
        rs.Surv(rows["time"], rows["event"], entry=rows["entry"]),
        rows["arm"],
        design,
        person=rows["id"],
        deviates=rows["leaves"],
        **{"tol": 1e-11, **options},
    )


# -------------------------------------------------------------------------------- by hand

# Person, interval, sick, deviates at the end of the interval, died at the end of it; one arm.
BY_HAND = [
    *[(p, 0, 1, p <= 2, p == 3) for p in range(1, 6)],  # 5 sick: 1, 2 deviate, 3 dies
    *[(p, 0, 0, p == 6, False) for p in range(6, 11)],  # 5 healthy: 6 deviates
    (4, 1, 1, True, False),  # 2 sick remain: 4 deviates
    (5, 1, 1, False, False),
    *[(p, 1, 0, p in (7, 8, 9), False) for p in (7, 8, 9)],  # 4 healthy: 7, 8, 9 deviate
    (10, 1, 0, False, False),
    (5, 2, 0, False, True),
    (10, 2, 0, False, False),
]


def by_hand(**options):
    person, interval, sick, leaves, died = np.array(BY_HAND, dtype=float).T
    y = rs.Surv(interval + 1, died, entry=interval)
    x = np.column_stack([sick, sick * (interval == 1)])
    return rs.cohort.censoring_weights(
        y, np.ones(person.size), x, person=person, deviates=leaves, time_df=2, **options
    )


def test_weights_are_those_worked_out_by_hand():
    """Saturated in sickness and the first two intervals; in the third nobody deviates.

    Of the sick, 2 of the 4 who survive the first interval deviate, and then 1 of 2. Of the healthy,
    1 of 5, and then 3 of 4.
    """
    sick, healthy = Fraction(2, 4), Fraction(4, 5)
    expected = {4: [1, 1 / sick], 5: [1, 1 / sick, 1 / (sick * Fraction(1, 2))]}
    expected |= {p: [1, 1 / healthy] for p in (7, 8, 9)}
    expected |= {10: [1, 1 / healthy, 1 / (healthy * Fraction(1, 4))]}
    found = by_hand(stabilise=False, at_risk=[row[1] < 2 for row in BY_HAND])
    for k, (person, interval, *_) in enumerate(BY_HAND):
        exact = expected.get(person, [Fraction(1)])[interval]
        assert found.weight[k] == pytest.approx(float(exact), rel=1e-6)
        assert found.uncensored[k] == pytest.approx(1 / float(exact), rel=1e-6)


def test_stabilised_weights_by_hand():
    """By time alone 3 of 9 survivors deviate, and then 4 of 6."""
    found = by_hand(at_risk=[row[1] < 2 for row in BY_HAND])
    last = {person: k for k, (person, *_) in enumerate(BY_HAND)}
    stay = Fraction(6, 9) * Fraction(2, 6)
    assert found.weight[last[5]] == pytest.approx(float(stay * 4), rel=1e-6)
    assert found.weight[last[10]] == pytest.approx(float(stay * 5), rel=1e-6)


def test_deviation_at_start_counts_the_row_itself_and_leaves_the_last_row_out():
    """Of 4 people, 1 deviates at the start, so the 3 others stand for 4/3 from then on."""
    y = rs.Surv([1] * 4 + [2] * 3, [0, 0, 0, 0, 1, 0, 0], entry=[0] * 4 + [1] * 3)
    found = rs.cohort.censoring_weights(
        y,
        [1] * 7,
        person=[1, 2, 3, 4, 2, 3, 4],
        deviates=[1, 0, 0, 0, 0, 0, 1],
        time_df=1,
        stabilise=False,
        deviation_at="start",
    )
    np.testing.assert_allclose(found.weight, [0, 4 / 3, 4 / 3, 4 / 3, 2, 2, 0], rtol=1e-7)


def test_without_deviations_weights_are_one():
    rows = {**ROWS, "leaves": np.zeros(ROWS["id"].size)}
    found = weights(rows=rows, truncate=(1, 99))
    assert (found.weight == 1).all()
    assert (found.n_raised, found.n_lowered) == (0, 0)
    plain = rs.Cox().fit(
        columns("arm"),
        rs.Surv(ROWS["time"], ROWS["event"], entry=ROWS["entry"]),
        cluster=ROWS["id"],
    )
    estimate = rs.cohort.fit_per_protocol(found)
    assert estimate.log_hr == pytest.approx(plain.coef_[0], abs=1e-9)
    assert estimate.se == pytest.approx(plain.robust_standard_error_[0], rel=1e-7)


def test_when_in_a_row_people_deviate_does_not_matter():
    """Of six people, two deviate within the first month, and one of four within the second.

    Their rows end before those of the others, and the weights of the rest are 6/4 and 6/4 * 4/3.
    """
    entry = [0] * 6 + [30] * 4 + [60] * 3
    time = [10, 20, 30, 30, 30, 30, 45, 60, 60, 60, 90, 90, 90]
    person = [1, 2, 3, 4, 5, 6, 3, 4, 5, 6, 4, 5, 6]
    leaves = [1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    died = [0] * 10 + [1] * 3
    for time_df in (1, 3):
        found = rs.cohort.censoring_weights(
            rs.Surv(time, died, entry=entry),
            [1] * 13,
            person=person,
            deviates=leaves,
            time_df=time_df,
            stabilise=False,
        )
        assert found.weight == pytest.approx([1] * 6 + [3 / 2] * 4 + [2] * 3, rel=1e-7)


def test_clones_that_deviate_at_one_time_have_one_numerator_however_their_rows_are_cut():
    """Two of four start the treatment by day 30, one of them before the window of ten days.

    Of the three at risk on day 30, two deviate: the one who stays stands for all of them.
    """
    people = {"id": [1, 2, 3, 4], "days": [90] * 4, "died": [0] * 4}
    people["surgery"] = [5, 25, np.nan, np.nan]
    rows = pd.DataFrame(people)
    names = {"time": "days", "event": "died"}
    cut = rs.split(rows, [12, 24], **names, id=None, episode=None)
    rows = pd.concat([rows.iloc[:2].assign(entry=0), cut[cut["id"] > 2]], ignore_index=True)
    rows = rs.cohort.clone(rows, "surgery", grace=30, window=10, entry="entry", **names)
    rows = rows[rows["arm"] == 1].reset_index(drop=True)
    found = rs.cohort.censoring_weights(
        rs.Surv(rows["days"], rows["died"], entry=rows["entry"]),
        rows["arm"],
        person=rows["id"],
        deviates=rows["deviates"],
        at_risk=rows["at_risk"],
    )
    last = dict(zip(rows["id"], found.weight, strict=True))  # of the last row of each
    early, late = (last[person] for person in (1, 2))
    assert (early, late) == pytest.approx((1 / 2, 3 / 2), rel=1e-7)
    assert early + late == pytest.approx(2, rel=1e-7)


# ------------------------------------------------------------------------------- against R


def close(estimate, expected):
    assert estimate.status == "ok"
    assert estimate.log_hr == pytest.approx(expected["coef"][0], abs=1e-7)
    np.testing.assert_allclose(estimate.coef, expected["coef"][1:], atol=1e-7)
    assert estimate.se_robust == pytest.approx(expected["robust_se"][0], rel=1e-6)
    assert estimate.se_model == pytest.approx(expected["model_se"][0], rel=1e-6)


def test_pooled_logistic_weights_are_those_of_glm():
    expected = EXPECTED["end"]
    plain = weights(stabilise=False)
    np.testing.assert_allclose(plain.weight, expected["weight"], rtol=1e-7)
    for model in plain.models:
        own = expected["coef"][model.arm]
        np.testing.assert_allclose(model.coef[3:], own, atol=1e-7)
        assert model.log_likelihood == pytest.approx(expected["loglik"][model.arm], rel=1e-9)
    close(rs.cohort.fit_per_protocol(plain), expected["fit_plain"])
    marginal = weights()
    np.testing.assert_allclose(marginal.weight, expected["marginal"], rtol=1e-7)
    close(rs.cohort.fit_per_protocol(marginal), expected["fit_marginal"])


def test_stabilised_and_truncated_weights_are_those_of_glm():
    expected = EXPECTED["end"]
    found = weights(baseline=columns("age"), truncate=(1, 99))
    np.testing.assert_allclose(found.untruncated, expected["stabilised"], rtol=1e-7)
    np.testing.assert_allclose(found.limits, expected["limits"], rtol=1e-7)
    np.testing.assert_allclose(found.weight, expected["truncated"], rtol=1e-7)
    raised = np.sum(np.array(expected["stabilised"]) < expected["limits"][0] * (1 - 1e-9))
    lowered = np.sum(np.array(expected["stabilised"]) > expected["limits"][1] * (1 + 1e-9))
    assert (found.n_raised, found.n_lowered) == (raised, lowered)
    estimate = rs.cohort.fit_per_protocol(found, covariates=columns("age"))
    close(estimate, expected["fit_truncated"])
    assert [note.code for note in estimate.notes] == []
    alone = rs.cohort.fit_per_protocol(found)
    assert [note.code for note in alone.notes] == ["baseline_not_in_model"]


def test_deviations_at_the_start_are_those_of_glm():
    expected = EXPECTED["start"]
    found = weights(time_df=2, deviation_at="start")
    np.testing.assert_allclose(found.weight, expected["weight"], rtol=1e-7)
    close(rs.cohort.fit_per_protocol(found), expected["fit"])


def test_cox_weights_are_those_of_coxph():
    expected = EXPECTED["cox"]
    found = weights(kind="cox", baseline=columns("age"))
    np.testing.assert_allclose(found.weight, expected["stabilised"], rtol=1e-7)
    close(rs.cohort.fit_per_protocol(found, covariates=columns("age")), expected["fit"])
    for model in found.models[:2]:
        np.testing.assert_allclose(model.coef, expected["coef"][model.arm], atol=1e-7)
    np.testing.assert_allclose(weights(kind="cox").weight, expected["marginal"], rtol=1e-7)


# ---------------------------------------------------------------------------- equivalences


@each_storage
@pytest.mark.parametrize("kind", ["logistic", "cox"])
def test_storage_of_covariates_does_not_matter(store, kind):
    x = np.column_stack([ROWS["L"], ROWS["L"] > 0, ROWS["age"] > 1])
    found = weights(store(x), kind=kind)
    plain = weights(rs.Design.from_dense(x), kind=kind)
    np.testing.assert_allclose(found.weight, plain.weight, rtol=1e-7)


@pytest.mark.parametrize("kind", ["logistic", "cox"])
def test_order_of_rows_does_not_matter(kind):
    order = np.random.default_rng(3).permutation(ROWS["id"].size)
    shuffled = {name: values[order] for name, values in ROWS.items()}
    found, plain = weights(rows=shuffled, kind=kind), weights(kind=kind)
    np.testing.assert_allclose(found.weight, plain.weight[order], rtol=1e-7)
    a, b = (rs.cohort.fit_per_protocol(w) for w in (found, plain))
    assert a.log_hr == pytest.approx(b.log_hr, abs=1e-7)
    assert dataclasses.asdict(a.target) == pytest.approx(dataclasses.asdict(b.target), rel=1e-9)


@pytest.mark.parametrize("kind", ["logistic", "cox"])
def test_a_resample_is_its_people_again(kind):
    """Counts of a resample, and a table in which people stand as often, have the same weights."""
    rng = np.random.default_rng(4)
    count = rng.integers(0, 3, int(ROWS["id"].max()) + 1)[ROWS["id"].astype(int)]
    found = weights(kind=kind, truncate=(2, 98), time_df=1).parts.fit(count)
    copies = []
    for copy in range(2):
        rows = {name: values[count > copy] for name, values in ROWS.items()}
        copies.append({**rows, "id": rows["id"] + 1000 * copy})
    both = {name: np.concatenate([one[name] for one in copies]) for name in ROWS}
    drawn = weights(rows=both, kind=kind, truncate=(2, 98), time_df=1)
    np.testing.assert_allclose(found.limits, drawn.limits, rtol=1e-7)
    first = drawn.weight[: int((count > 0).sum())]
    np.testing.assert_allclose(found.weight[count > 0], first, rtol=1e-6)


def test_arms_have_models_of_their_own():
    """A person may be in both arms: clones have weights as separate people have."""
    own = {name: np.concatenate([values, values]) for name, values in ROWS.items()}
    own["arm"] = np.repeat([1.0, 0.0], ROWS["id"].size)
    apart = {**own, "id": np.concatenate([ROWS["id"], ROWS["id"] + 10_000])}
    clones, separate = weights(rows=own), weights(rows=apart)
    np.testing.assert_allclose(clones.weight, separate.weight, rtol=1e-12)
    assert clones.models[0].coef == pytest.approx(clones.models[1].coef)
    a, b = (rs.cohort.fit_per_protocol(w) for w in (clones, separate))
    assert a.log_hr == pytest.approx(0, abs=1e-9)
    assert a.se < 1e-6 < b.se  # clones of a person cancel out within the cluster


def test_rows_that_are_not_at_risk_have_no_part_in_the_models():
    late = ROWS["entry"] >= 5
    quiet = {**ROWS, "leaves": np.where(late, 0.0, ROWS["leaves"])}
    found = weights(rows=quiet, at_risk=~late)
    early = {name: values[~late] for name, values in quiet.items()}
    alone = weights(rows=early)
    np.testing.assert_allclose(found.weight[~late], alone.weight, rtol=1e-9)
    after = found.weight[ROWS["entry"] >= 6]
    same = dict(zip(ROWS["id"], found.weight, strict=True))
    expected = [same[p] for p in ROWS["id"][ROWS["entry"] >= 6]]
    np.testing.assert_allclose(after, expected, rtol=1e-12)


def test_sample_weights_multiply():
    own = 0.5 + (ROWS["id"] % 3)
    found = weights()
    estimate = rs.cohort.fit_per_protocol(found, sample_weight=own)
    y = rs.Surv(ROWS["time"], ROWS["event"], entry=ROWS["entry"])
    plain = rs.Cox().fit(columns("arm"), y, sample_weight=found.weight * own, cluster=ROWS["id"])
    assert estimate.log_hr == pytest.approx(plain.coef_[0], abs=1e-9)
    assert estimate.se == pytest.approx(plain.robust_standard_error_[0], rel=1e-7)


# ------------------------------------------------------------------- results and bootstrap


def test_summary_and_development_of_weights():
    found = weights(truncate=(5, 95))
    table = found.summary(library="pyarrow").to_pydict()
    assert table["arm"] == ["target", "target", "comparator", "comparator"]
    target = ROWS["arm"] == 1
    assert table["p99"][0] == pytest.approx(np.quantile(found.untruncated[target], 0.99))
    assert table["mean"][3] == pytest.approx(found.weight[~target].mean())
    times = found.by_time([0, 3.5], library="pyarrow").to_pydict()
    under = (ROWS["entry"] <= 3.5) & (ROWS["time"] > 3.5) & target
    w = found.weight[under]
    assert times["at_risk"][:2] == [int((target & (ROWS["entry"] == 0)).sum())] + [
        int((~target & (ROWS["entry"] == 0)).sum())
    ]
    assert times["at_risk"][2] == w.size
    assert times["effective_size"][2] == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert len(found.by_time(library="pyarrow")) == 20


def test_counts_of_people_and_their_follow_up():
    found = rs.cohort.fit_per_protocol(weights())
    target = ROWS["arm"] == 1
    assert found.target.persons == np.unique(ROWS["id"][target]).size == found.target.exposures
    assert found.target.days == (ROWS["time"] - ROWS["entry"])[target].sum()
    assert found.target.outcomes == ROWS["event"][target].sum()


def test_bootstrap_fits_the_weights_again():
    found = weights(truncate=(1, 99))
    drawn = rs.cohort.fit_per_protocol(found, interval="bootstrap", replicates=60, seed=3)
    robust = rs.cohort.fit_per_protocol(found)
    assert drawn.log_hr == robust.log_hr
    assert drawn.interval == "bootstrap"
    assert 0.6 < drawn.se / robust.se < 1.5
    again = rs.cohort.fit_per_protocol(found, interval="bootstrap", replicates=60, seed=3)
    assert (drawn.lower, drawn.upper) == (again.lower, again.upper)


# ------------------------------------------------------------------------------- bad input


def changed(**values):
    return {**ROWS, **values}


def at(k, value, name):
    column = ROWS[name].copy()
    column[k] = value
    return {name: column}


FIRST = int(np.flatnonzero(ROWS["id"][1:] == ROWS["id"][:-1])[0])


@pytest.mark.parametrize(
    ("rows", "code", "words"),
    [
        (changed(**at(FIRST, 1, "leaves")), "BadDeviation", "go on after it"),
        (changed(**at(FIRST, 2, "leaves")), "BadDeviation", "must be 0 or 1"),
        (changed(**at(FIRST, 1, "event")), "BadOutcome", "go on after one"),
        (changed(**at(FIRST, 9, "time")), "BadOutcome", "must not overlap"),
        (
            changed(leaves=np.maximum(ROWS["leaves"], ROWS["event"])),
            "BadDeviation",
            "with an event",
        ),
        (changed(event=ROWS["event"] * 3), "BadOutcome", "competing event"),
        (changed(arm=ROWS["arm"] + 1), "BadTreatment", "1 .target. and 0"),
    ],
)
def test_contradictions_are_refused(rows, code, words):
    with pytest.raises(rs.CohortError, match=words) as error:
        weights(rows=rows)
    assert error.value.code == code


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"truncate": (99, 1)}, "BadSetting", "the lower first"),
        ({"truncate": (1, 101)}, "BadSetting", "truncate"),
        ({"truncate": (1, 50, 99)}, "BadSetting", "`truncate` must be a list of 2 values"),
        ({"kind": "cox", "deviation_at": "start"}, "BadSetting", "needs the time"),
        ({"stabilise": False, "baseline": columns("age")}, "BadSetting", "numerator"),
        ({"at_risk": np.zeros(ROWS["id"].size)}, "BadDeviation", "not at risk"),
        ({"at_risk": ROWS["leaves"]}, "Positivity", "everybody who could deviate"),
        ({"at_risk": [1, 0]}, "BadDeviation", "one value for each"),
    ],
)
def test_bad_options_are_refused(options, code, words):
    with pytest.raises(rs.CohortError, match=words) as error:
        weights(**options)
    assert error.value.code == code


def test_rows_need_a_start_and_no_weights():
    rest = {"person": ROWS["id"], "deviates": ROWS["leaves"]}
    with pytest.raises(rs.CohortError, match="when each row starts"):
        rs.cohort.censoring_weights(rs.Surv(ROWS["time"], ROWS["event"]), ROWS["arm"], **rest)
    found = weights()
    with pytest.raises(rs.InputError, match="must not be negative"):
        rs.cohort.fit_per_protocol(found, sample_weight=-np.ones(ROWS["id"].size))
    with pytest.raises(rs.CohortError, match="'treatment'"):
        rs.cohort.fit_per_protocol(
            found, covariates=rs.Design.from_columns({"treatment": ROWS["L"]})
        )
    with pytest.raises(rs.InputError, match="interval"):
        rs.cohort.fit_per_protocol(found, interval="wald")
    with pytest.raises(
        rs.InputError, match="pass the result of `riskset.cohort.censoring_weights`"
    ):
        rs.cohort.fit_per_protocol(found.weight)


def test_covariates_that_determine_deviation_are_named():
    rows = changed(sure=ROWS["leaves"] * (ROWS["arm"] == 1) * (ROWS["entry"] == 0))
    found = weights(("L", "age", "sure"), rows=rows)
    assert [note.code for note in found.notes] == ["separated_deviation"]
    assert found.notes[0].columns == ("sure",)
    assert np.isfinite(found.weight).all()
    with pytest.raises(rs.CohortError, match="infinite coefficients of 'sure'"):
        weights(("L", "age", "sure"), rows=rows, kind="cox")


def test_large_weights_are_noted():
    """49 of 50 people deviate, and the last one stands for all of them."""
    y = rs.Surv([1] * 50 + [2], [0] * 50 + [1], entry=[0] * 50 + [1])
    found = rs.cohort.censoring_weights(
        y,
        [1] * 51,
        person=[*range(50), 49],
        deviates=[1] * 49 + [0, 0],
        at_risk=[1] * 50 + [0],
        stabilise=False,
    )
    assert found.weight[-1] == pytest.approx(50, rel=1e-6)
    assert [note.code for note in found.notes] == ["large_weight"]


def test_statuses():
    none = weights(rows=changed(event=np.zeros(ROWS["id"].size)))
    assert rs.cohort.fit_per_protocol(none).status == "no_events"
    one = {name: values[ROWS["arm"] == 1] for name, values in ROWS.items()}
    assert rs.cohort.fit_per_protocol(weights(rows=one)).status == "one_arm_empty"


def test_the_numerator_counts_everybody_while_somebody_can_deviate():
    """Of four people, one started early and stays; one of the other three deviates.

    The numerator is 3/4 for all, so that the early one and those who stay for others keep the
    shares 1 and 3 of the four.
    """
    y = rs.Surv([1] * 4 + [2] * 3, [0] * 7, entry=[0] * 4 + [1] * 3)
    person = [1, 2, 3, 4, 1, 2, 3]
    options = {"person": person, "deviates": [0, 0, 0, 1, 0, 0, 0], "time_df": 0}
    at_risk = [0, 1, 1, 1, 0, 0, 0]
    found = rs.cohort.censoring_weights(y, [1] * 7, at_risk=at_risk, **options)
    expected = [1, 1, 1, 1, 3 / 4, 9 / 8, 9 / 8]
    assert found.weight == pytest.approx(expected, rel=1e-8)
    plain = rs.cohort.censoring_weights(y, [1] * 7, at_risk=at_risk, stabilise=False, **options)
    assert plain.weight == pytest.approx([1, 1, 1, 1, 1, 3 / 2, 3 / 2], rel=1e-8)


def test_people_who_are_not_followed_from_the_start_are_noted():
    """One starts at 1, and one has no row from 1 to 2; the two rows of another one go on."""
    y = rs.Surv([2, 1, 3, 1, 2], [0] * 5, entry=[1, 0, 2, 0, 1])
    found = rs.cohort.censoring_weights(y, [1] * 5, person=[1, 2, 2, 3, 3], deviates=[0] * 5)
    (note,) = found.notes
    assert note.code == "not_followed_from_start"
    assert note.message.startswith("2 people start later than others or have gaps")


def test_people_who_certainly_stay_are_no_reason_for_a_note():
    """Those with a low value never deviate: they stand for themselves, as nobody like them left."""
    low = (ROWS["L"] < 0) * 1.0
    rows = changed(leaves=ROWS["leaves"] * (1 - low), low=low)
    found = weights(("low",), rows=rows, stabilise=False)
    assert found.notes == ()
    first = (ROWS["entry"] == 0) & (low == 1)
    after = np.isin(ROWS["id"], ROWS["id"][first]) & (ROWS["entry"] == 1)
    assert after.any()
    assert found.weight[after] == pytest.approx(1, rel=1e-12)


def test_many_deviations_at_one_time_of_a_cox_model_are_noted():
    """Of four, two leave at 1: each of the others stands for two, and exp(-H) says 1.65."""
    y = rs.Surv([1] * 4 + [2] * 2, [0] * 4 + [1, 0], entry=[0] * 4 + [1] * 2)
    options = {"person": [1, 2, 3, 4, 3, 4], "deviates": [1, 1, 0, 0, 0, 0], "stabilise": False}
    found = rs.cohort.censoring_weights(y, [1] * 6, kind="cox", **options)
    assert found.weight[-1] == pytest.approx(np.exp(1 / 2), rel=1e-7)
    (note,) = found.notes
    assert note.code == "tied_deviations"
    assert note.message.startswith("50% of the people at risk in the target deviate at the time 1.")
    assert rs.cohort.censoring_weights(y, [1] * 6, **options).weight[-1] == pytest.approx(2)


def test_one_row_for_each_person_has_no_weights_and_says_so():
    y = rs.Surv([2, 3, 4, 5], [0] * 4, entry=[0] * 4)
    found = rs.cohort.censoring_weights(y, [1] * 4, person=[1, 2, 3, 4], deviates=[1, 0, 0, 0])
    assert found.weight == pytest.approx(np.ones(4))
    assert [note.code for note in found.notes] == ["one_interval"]


def test_a_gap_of_a_last_digit_is_none():
    y = rs.Surv([0.1 + 0.2, 1, 0.3], [0] * 3, entry=[0, 0.3, 0])
    y["entry"][1], y["time"][0] = 0.1 + 0.2, 0.3
    found = rs.cohort.censoring_weights(y, [1] * 3, person=[1, 1, 2], deviates=[0] * 3)
    assert not found.notes
