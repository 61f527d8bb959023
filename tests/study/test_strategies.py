"""Studies of strategies with a grace period: as the functions compute them, by hand, refused."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import riskset as rs
from riskset.disclosure.engine import Disclosure
from riskset.results.rows import TABLES, DeviationRow, RiskRow, RunRow
from study.strategy_study import END, GRACE, run, simulated, specification, write

PEOPLE = simulated(900)
EVERY = 20
COVARIATES = ["severity", "age"]


def cloned(people=PEOPLE, every=EVERY, **options):
    """Clones of the people in intervals, by `riskset.split` and `riskset.cohort.clone`."""
    names = {"time": "days", "event": "died"}
    cuts = range(every, END, every)
    rows = rs.split(pd.DataFrame(people), cuts, **names, id=None, episode=None)
    options = {"grace": GRACE} | options
    return rs.cohort.clone(rows, "surgery", **names, entry="entry", **options)


def weights_of(rows, **options):
    """The weights of clones."""
    return rs.cohort.censoring_weights(
        rs.Surv(rows["days"], rows["died"], entry=rows["entry"]),
        rows["arm"],
        rows[COVARIATES],
        person=rows["id"],
        deviates=rows["deviates"],
        at_risk=rows["at_risk"],
        **options,
    )


def same(row, estimate):
    """Whether an estimate of a study is that of a call."""
    assert_allclose(row["log_hr"], estimate.log_hr, rtol=1e-9)
    assert_allclose(row["se"], estimate.se, rtol=1e-9)
    for arm, counts in (("target", estimate.target), ("comparator", estimate.comparator)):
        for name in ("persons", "exposures", "days", "outcomes", "weighted_rate"):
            assert_allclose(row[f"{arm}_{name}"], getattr(counts, name), rtol=1e-9)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Results of strategies with and without a window, and of never to start."""
    exposures = specification()["exposures"]
    exposures["late"] = exposures["early"] | {"window": EVERY}
    exposures["never"] = {"treated_at": "surgery", "strategy": "do not start"}
    pairs = [("early", "not early"), ("late", "not early"), ("early", "never")]
    return run(
        tmp_path_factory.mktemp("strategies"),
        PEOPLE,
        exposures=exposures,
        comparisons=[{"target": a, "comparator": b} for a, b in pairs],
        analyses={
            "clones": {
                "per_protocol": {"every": EVERY},
                "model": {"rmst": [100, 200], "curve_tests": ["logrank"]},
            }
        },
    )


@pytest.mark.parametrize(
    ("target", "comparator", "options"),
    [
        ("early", "not early", {}),
        ("late", "not early", {"window": EVERY}),
        ("early", "never", {"comparator": "never"}),
    ],
)
def test_estimates_are_those_of_the_functions(found, target, comparator, options):
    weights = weights_of(cloned(**options))
    (main,) = found.rows("estimates", target=target, comparator=comparator, role="main")
    same(main, rs.cohort.fit_per_protocol(weights))
    assert (main["target_persons"], main["comparator_persons"]) == (900, 900)
    table = weights.summary(library="pyarrow").to_pylist()
    rows = found.rows("censoring_weights", target=target, comparator=comparator)
    for row, line in zip(rows, table, strict=True):
        for name in ("rows", "mean", "sd", "p0", "p50", "p100"):
            assert_allclose(row[name], line[name], rtol=1e-9)


def test_risks_and_means_have_the_covariance_of_both_clones(found):
    """The infinitesimal jackknife over people: the derivative of the difference in the weight."""
    rows = cloned()
    weight, person = weights_of(rows).weight, rows["id"].to_numpy()
    arm, entry, days = (rows[name].to_numpy() for name in ("arm", "entry", "days"))
    died = rows["died"].to_numpy() == 1

    def difference(w):
        out = []
        for code in (1, 0):
            survival = 1.0
            for time in np.unique(days[(arm == code) & died & (days <= 200)]):
                at_risk = w[(arm == code) & (entry < time) & (days >= time)].sum()
                survival *= 1 - w[(arm == code) & died & (days == time)].sum() / at_risk
            out.append(survival)
        return out[1] - out[0]

    where = {"target": "early", "comparator": "not early", "adjusted": True}
    (risk,) = found.rows("absolute_risks", **where)
    assert_allclose(risk["difference"], difference(weight), rtol=1e-9)
    people = rs.cohort.Population(arm, person_id=person, sampling_weight=weight)
    y = rs.Surv(days, rows["died"], entry=entry)
    whole = rs.cohort.risk_difference(y, people, 200, interval="robust")
    width = risk["difference_upper"] - risk["difference_lower"]
    assert_allclose(width, 2 * norm.ppf(0.975) * whole.se[0], rtol=1e-9)
    means = rs.restricted_mean(
        y, arm, weight, times=[100, 200], variance="robust", cluster=person
    ).difference(1, 0)
    for k, time in enumerate((100, 200)):
        (mean,) = found.rows("restricted_means", **where, measure="restricted_mean", time=time)
        assert_allclose(mean["difference"], means.estimate[k], rtol=1e-9)
        assert_allclose(mean["difference_se"], means.standard_error[k], rtol=1e-9)


def test_the_robust_error_of_clones_is_that_of_derivatives():
    """Of 60 people, with each person's weight moved by a little, in both arms."""
    rows = cloned({name: column[:60] for name, column in PEOPLE.items()})
    arm, entry, days = (rows[name].to_numpy() for name in ("arm", "entry", "days"))
    person, died = rows["id"].to_numpy(), rows["died"].to_numpy()
    y = rs.Surv(days, died, entry=entry)

    def difference(w):
        curves = rs.kaplan_meier(y, arm, w)
        return (curves[0].at([200]) - curves[1].at([200]))[0]

    step, moved = 1e-5, []
    for one in np.unique(person):
        up, down = (1 + sign * step * (person == one) for sign in (1, -1))
        moved.append((difference(up) - difference(down)) / (2 * step))
    people = rs.cohort.Population(arm, person_id=person)
    found = rs.cohort.risk_difference(y, people, 200, interval="robust")
    assert_allclose(found.se[0], np.linalg.norm(moved), rtol=1e-6)


HAND = {
    "id": np.arange(7) + 1,
    "age": np.array([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]),
    "days": np.array([100.0, 20, 60, 90, 30, 100, 50]),
    "died": np.array([0, 1, 1, 0, 1, 0, 1]),
    "surgery": np.array([10.0, np.nan, 40, 30, np.nan, 1, 25]),
}


def test_weights_by_hand(tmp_path):
    """Of 1, 3, 4, 6 and 7, who are at risk on day 30, 3 has not started: weights 5/4 after it.

    In the other arm, starts on days 1, 10, 25 and 30 leave person 3 alone, who stands for five.
    """
    exposures = specification()["exposures"]
    for one in exposures.values():
        one["grace"] = 30
    protocol = {"every": 100, "covariates": [], "stabilise": False, "time_df": 0}
    found = run(
        tmp_path,
        HAND,
        exposures=exposures,
        analyses={"clones": {"per_protocol": protocol}},
        risk_times=[95],
    )
    target, comparator = found.rows("censoring_weights")
    assert_allclose([target["p0"], target["p100"]], [1, 1.25], rtol=1e-8)
    # In one interval, 4 of 5 rows without an event end with a start.
    assert_allclose([comparator["p0"], comparator["p100"]], [1, 5], rtol=1e-8)
    (risk,) = found.rows("absolute_risks", adjusted=True)
    # Deaths on days 20 and 30 of 7 and 6 with weight 1; on day 50 one of four who have 5/4.
    assert_allclose(risk["target_risk"], 1 - (6 / 7) * (5 / 6) * (3 / 4), rtol=1e-8)
    # At risk on day 20: 2, 3, 4, 5 and 7; on day 30: 3, 4 and 5; then 3, who dies on day 60.
    assert risk["comparator_risk"] == 1
    deviations = found.rows("deviations", arm="target")
    assert sum(row["deviations"] for row in deviations) == 1


def test_the_weights_are_those_of_a_pooled_logistic_regression_of_another_program(found):
    """scikit-learn's logistic regression without a penalty, of the rows of clones."""
    from sklearn.linear_model import LogisticRegression

    rows = cloned()
    own = rows[rows["arm"] == 1].reset_index(drop=True)
    decides = own["at_risk"] == 1
    fit = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
    fit.fit(own.loc[decides, COVARIATES].to_numpy(), own.loc[decides, "deviates"])
    chance = fit.predict_proba(own[COVARIATES].to_numpy())[:, 1]
    after = (own["entry"] >= GRACE).to_numpy()
    share = own.loc[decides, "deviates"].mean()
    expected = np.where(after, (1 - share) / (1 - chance), 1.0)
    target = found.rows("censoring_weights", target="early", comparator="not early")[0]
    assert_allclose(target["mean"], expected.mean(), rtol=1e-6)
    assert_allclose(target["sd"], expected.std(), rtol=1e-5)
    assert_allclose(target["p100"], expected.max(), rtol=1e-4)


@pytest.mark.slow
def test_risks_of_strategies_are_those_of_the_simulation(tmp_path):
    """Without an effect, both are the risk of everybody; never to start has a known risk, too."""
    for log_hr in (0.0, -0.7):
        people = simulated(20_000, 5, log_hr)
        exposures = specification()["exposures"]
        exposures["never"] = {"treated_at": "surgery", "strategy": "do not start"}
        pairs = [{"target": "early", "comparator": name} for name in ("not early", "never")]
        folder = tmp_path / str(log_hr)
        folder.mkdir()
        found = run(
            folder,
            people,
            exposures=exposures,
            comparisons=pairs,
            analyses={"clones": {"per_protocol": {"every": 5}}},
            risk_times=[100, 200],  # by 200 days, few have not started
        )
        truth = simulated(20_000, 5, 0.0)  # as if the treatment did nothing
        for time, most in ((100, 0.02), (200, 0.04)):
            dies = np.mean((truth["died"] == 1) & (truth["days"] <= time))
            (crude,) = found.rows("absolute_risks", comparator="never", adjusted=False, time=time)
            (never,) = found.rows("absolute_risks", comparator="never", adjusted=True, time=time)
            assert crude["comparator_lower"] > dies  # the sick do not start
            assert abs(never["comparator_risk"] - dies) < most
            if log_hr:
                assert never["difference_upper"] < -0.02
                continue
            for risk in found.rows("absolute_risks", adjusted=True, time=time):
                assert abs(risk["target_risk"] - dies) < 0.02
                assert risk["difference_lower"] < 0 < risk["difference_upper"]


def test_people_have_one_row_in_each_arm(found):
    (run_row, *_) = found.rows("runs")
    assert run_row["cloned"]
    attrition = found.rows("attrition")
    assert {(row["target_persons"], row["comparator_persons"]) for row in attrition} == {(900, 900)}
    (main,) = found.rows("estimates", target="early", comparator="not early", role="main")
    assert (main["contrast"], main["estimand"]) == ("per-protocol", None)


def test_balance_does_not_apply_to_people_who_are_in_both_groups(found, tmp_path):
    """It is 0 by construction, and says nothing of the weights for deviation."""
    verdicts = {row["name"]: (row["value"], row["verdict"]) for row in found.rows("diagnostics")}
    for name in ("balance", "shared_balance", "equipoise", "generalisability"):
        assert verdicts[name] == (None, "not_evaluated")
    assert verdicts["mdrr"][1] == "pass"
    text = rs.report.write(found.path, tmp_path / "report.html").read_text("utf-8")
    assert text.count("does not apply: every person is in both groups") == 3 * 4


def test_shared_numbers_of_both_arms_do_not_differ_by_few(tmp_path):
    """Before the end of the grace period, those of one arm are among those of the other."""
    write(tmp_path, PEOPLE)
    asked = specification(sharing={"blind": False, "min_cell_count": 30}, risk_times=[2, 50, 200])
    rs.study.run(rs.study.Study(asked, tmp_path), tmp_path / "out")
    shared = rs.study.StudyResults.open(tmp_path / "out")
    shown = [row["people"] for row in shared.rows("numbers_at_risk", adjusted=True)]
    known = np.array([n for n in shown if n is not None])
    apart = np.abs(known[:, None] - known)
    assert known.size > 6
    assert not ((apart > 0) & (apart < 30)).any()
    whole = rs.study.StudyResults.open(tmp_path / "out" / "private")
    (early,) = whole.rows("absolute_risks", adjusted=True, time=50)
    assert 0 < early["target_outcomes"] - early["comparator_outcomes"] < 30
    (risk,) = shared.rows("absolute_risks", adjusted=True, time=50)
    assert risk["target_outcomes"] is not None
    assert risk["comparator_outcomes"] is None
    assert "comparator_outcomes" in risk["suppressed"]


def test_the_report_says_who_counts_where(found, tmp_path):
    page = rs.report.write(found.path, tmp_path / "report.html")
    text = page.read_text("utf-8")
    assert "every person is in both groups, as a clone in each" in text
    assert "If all people had followed the strategy of their group (per protocol)" in text
    assert "Maringe" in text
    assert "Start of follow-up" in text
    assert "Start of treatment" not in text
    content = json.loads(page.with_suffix(".json").read_text("utf-8"))
    trial = content["parts"][0]["target_trial"]["tables"]["target_trial"]
    done = {row["part"]: row["emulation"] for row in trial}
    assert "start, as the column `surgery` says, within 60 days" in done["strategies"]
    assert ".." not in done["strategies"]
    assert ". or " not in done["strategies"]
    assert "a clone in each group" in done["assignment"]
    assert "Washout" not in text
    words = found.study["analyses"]["clones"]["words"]
    assert "a clone was censored when it deviated" in words["deviations"]
    assert "at a start within the grace period, or at any start if" in words["deviations"]
    never = found.study["comparators"]["never"]["description"]
    assert never == "Strategy: do not start, as the column `surgery` says, at any time."


def test_covariates_over_time_of_both_clones(tmp_path):
    """Measurements count for both clones, as of the start of intervals."""
    n = PEOPLE["id"].size
    rng = np.random.default_rng(4)
    times = np.array([0.0, 20.0, 40.0])
    long = {
        "id": np.repeat(PEOPLE["id"], 3),
        "time": np.tile(times, n),
        "covariate": np.repeat("lab", 3 * n),
        "value": rng.normal(size=3 * n),
    }
    pd.DataFrame(long).to_parquet(tmp_path / "labs.parquet")
    exposures = specification()["exposures"]
    exposures["early"]["window"] = EVERY
    data = specification()["data"] | {"covariates_over_time": {"table": "labs.parquet"}}
    found = run(tmp_path, PEOPLE, data=data, exposures=exposures)
    rows = cloned(window=EVERY).reset_index(drop=True)
    values = dict(zip(zip(long["id"], long["time"], strict=True), long["value"], strict=True))
    rows["lab"] = [
        values[one, min(entry, 40.0)] for one, entry in zip(rows["id"], rows["entry"], strict=True)
    ]
    weights = rs.cohort.censoring_weights(
        rs.Surv(rows["days"], rows["died"], entry=rows["entry"]),
        rows["arm"],
        rows[[*COVARIATES, "lab"]],
        person=rows["id"],
        deviates=rows["deviates"],
        at_risk=rows["at_risk"],
    )
    (main,) = found.rows("estimates", role="main")
    same(main, rs.cohort.fit_per_protocol(weights))


# ------------------------------------------------------------------------------------ faults


def refused(**changes):
    """The message of a specification with faults."""
    with pytest.raises(rs.InputError) as caught:
        rs.study.Study(specification(**changes))
    return str(caught.value)


def with_exposure(**changes):
    exposures = specification()["exposures"]
    exposures["early"] = {k: v for k, v in (exposures["early"] | changes).items() if v is not None}
    return refused(exposures=exposures)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"grace": None}, "the strategy to start needs the end of the grace period"),
        ({"window": 61}, "`window` is 61, but the grace period ends at 60"),
        ({"strategy": "begin"}, "'start' or 'do not start'"),
        ({"strategy": "do not start", "window": 5}, "`window` belongs to the strategy to start"),
        ({"strategy": "do not start"}, "both strategies are the same"),
        ({"treated_at": "other"}, "the strategies start by different columns, 'other' and"),
    ],
)
def test_contradictions_of_a_strategy(changes, words):
    assert words in with_exposure(**changes)


@pytest.mark.parametrize(
    ("analysis", "words"),
    [
        ({"estimand": None}, "everybody follows both strategies at the start"),
        ({"per_protocol": {"deviation": "stopped"}}, "people deviate as their strategy says"),
        ({"per_protocol": {"kind": "cox"}}, "a Cox model of deviation needs times that differ"),
        ({"propensity": {"penalty": "none"}}, "use `propensity: none`"),
        ({"weight": {}, "propensity": {}}, "use `weight: none`"),
        ({"match": {}, "propensity": {}}, "use `match: none`"),
    ],
)
def test_analyses_that_do_not_go_with_strategies(analysis, words):
    assert words in refused(analyses={"clones": analysis})


def test_data_that_do_not_go_with_strategies():
    data = specification()["data"]
    assert "the exposures are strategies" in refused(data=data | {"treatment": "drug"})
    assert "leave `score` out" in refused(data=data | {"score": "ps"})
    outcomes = {"death": {"concepts": [1]}}
    message = refused(data={"cdm": "here"}, outcomes=outcomes)
    assert "strategies with a grace period need a table of people" in message
    assert "an index date" in message
    values = {"drug": {"value": 1}, "none": {"value": 0}}
    pair = [{"target": "drug", "comparator": "none"}]
    message = refused(exposures=values, comparisons=pair)
    assert "the key 'treatment' is missing" in message
    mixed = specification()["exposures"] | {"drug": {"value": 1}}
    assert "some exposures are strategies" in refused(exposures=mixed)
    late = {"death": {"time": "days", "event": "died", "entry": "late"}}
    assert "has `entry`" in refused(outcomes=late)


def test_a_fault_of_a_strategy_is_alone():
    """Analyses need no times of deviation, although it is not known whether exposures have them."""
    message = with_exposure(grace=0)
    assert "exposures.early.grace" in message
    assert "needs the times at which people deviate" not in message


def test_a_grace_period_after_the_follow_up_is_noted(tmp_path):
    exposures = specification()["exposures"]
    for one in exposures.values():
        one["grace"] = END + 1
    found = run(tmp_path, PEOPLE, exposures=exposures)
    said = [row["message"] for row in found.rows("warnings", step="censoring weights")]
    assert "nobody deviates in the target, so its people need no weights for deviation." in said


def test_covariates_over_time_need_a_window_of_one_interval():
    data = specification()["data"] | {"covariates_over_time": {"table": "labs.parquet"}}
    words = "those who represent others must all start in one interval"
    assert words in refused(data=data)
    exposures = specification()["exposures"]
    exposures["early"]["window"] = 30
    assert words in refused(data=data, exposures=exposures)
    exposures["early"] |= {"window": 20, "grace": 50}
    assert words in refused(data=data, exposures=exposures)
    exposures["early"]["grace"] = 60
    rs.study.Study(specification(data=data, exposures=exposures))
    fixed = {"clones": {"per_protocol": {"over_time": False}}}
    rs.study.Study(specification(data=data, analyses=fixed))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (
            {"surgery": np.where(np.arange(900) == 3, 0.0, PEOPLE["surgery"])},
            "days above 0, but 1 row does not",
        ),
        ({"operated": PEOPLE["surgery"]}, "'surgery'"),
    ],
)
def test_check_finds_columns_and_times_that_are_not_valid(tmp_path, column, words):
    people = {name: values for name, values in PEOPLE.items() if name != "surgery"} | column
    write(tmp_path, people)
    with pytest.raises(rs.InputError, match=words):
        rs.study.check_data(rs.study.Study(specification(), tmp_path))


def test_a_column_has_one_role(tmp_path):
    write(tmp_path, PEOPLE)
    exposures = specification()["exposures"]
    for one in exposures.values():
        one["treated_at"] = "days"
    with pytest.raises(rs.InputError, match="'days' is already used as"):
        rs.study.check_data(rs.study.Study(specification(exposures=exposures), tmp_path))


def test_numbers_of_different_people_may_differ_by_few():
    """After the end of the grace period, the people of the arms are not the same."""
    run_columns = {"target": "a", "comparator": "b", "outcome": "o", "analysis": "x"}
    run_row = RunRow(
        **run_columns, outcome_kind="outcome", true_hr=None, status="ok", step=None, reason=None,
        reason_values=None, estimand=None, adjustment_kind="none", ps=None, adjustment=1,
        shared_adjustment=1, unblind=True, unblind_for_evidence_synthesis=True, cloned=True,
    )  # fmt: skip
    deviations = [
        DeviationRow(**run_columns, arm=arm, start=start, end=start + 50.0, deviations=n, others=0)
        for arm, start, n in (("target", 0.0, 0), ("target", 50.0, 90), ("comparator", 0.0, 80))
    ]
    risks = [
        RiskRow.of(
            run_columns
            | {"adjusted": True, "time": time, "interval": "normal", "interval_level": 0.95}
            | {"target_risk": 0.1, "comparator_risk": 0.1, "difference": 0.0}
            | {"target_at_risk": n, "target_outcomes": a}
            | {"comparator_at_risk": m, "comparator_outcomes": b}
        )
        for time, n, a, m, b in ((40.0, 800, 103, 700, 100), (200.0, 400, 252, 300, 250))
    ]
    tables = {RunRow: [run_row], DeviationRow: deviations, RiskRow: risks}
    shown = Disclosure(
        lambda name: next((rows for kind, rows in tables.items() if kind.table == name), []),
        TABLES,
        5,
    ).shown(RiskRow)
    assert [row.comparator_outcomes for row in shown] == [None, 250]
    assert [row.target_outcomes for row in shown] == [103, 252]
