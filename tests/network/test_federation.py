"""One model over sites: the pooled stratified fit, and messages that are refused."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import riskset as rs
from network.simulated import of_site
from network.test_pooling import POOLED
from riskset._messages import spoken
from riskset.cli.main import app
from riskset.cli.wording import COMMAND_LINE
from riskset.network import answer_question, next_round, start_federation
from riskset.network.messages import Secret

SITES = ("a", "b", "c", "d", "e")
N = 1500


def people():
    """Columns of different size, of which one is far from 0, and competing events."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(N, 6)) * [1, 10, 0.1, 1, 1, 1] + [0, 60, 0, 0, 2000, 0]
    x[:, 3], x[:, 5] = rng.random(N) < 0.3, rng.random(N) < 0.15
    eta = (x - x.mean(axis=0)) @ [0.3, 0.02, 1.0, -0.5, 0.0, 0.4]
    t, c = rng.exponential(1 / np.exp(eta)), rng.exponential(1, N)
    event = (t <= c).astype(int)
    code = np.where((rng.random(N) < 0.3) & (event == 0), 2, event)
    return x, np.round(np.minimum(t, c), 2), event, code, rng.integers(0, len(SITES), N)


X, TIME, EVENT, CODE, SITE = people()


@pytest.fixture(autouse=True)
def secret(monkeypatch):
    monkeypatch.setenv("RISKSET_NETWORK_SECRET", "s" * 32)


def rows(k, event=EVENT):
    own = k == SITE
    return X[own], rs.Surv(TIME[own], event[own])


def answer_all(now, event=EVENT, **options):
    for k, name in enumerate(SITES):
        answer_question(now.question, *rows(k, event), site=name, **options)


def fitted(place, event=EVENT, **options):
    now = start_federation(place / "fit", SITES, **options)
    while now.question is not None:
        answer_all(now, event)
        now = next_round(place / "fit")
    return now.result


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_cox_is_the_pooled_stratified_fit(tmp_path, ties):
    found = fitted(tmp_path, ties=ties)
    pooled = rs.Cox(ties=ties).fit(X, rs.Surv(TIME, EVENT), strata=SITE)
    assert found.status == ["converged"]
    assert_allclose(found.coef[0], pooled.coef_, rtol=0, atol=1e-8)
    assert_allclose(found.standard_error, pooled.standard_error_, rtol=1e-8)
    assert_allclose(found.log_likelihood[0], pooled.log_likelihood_, rtol=1e-12)
    assert found.kkt[0] <= 1e-8
    assert (found.n_rows, found.n_events) == (N, EVENT.sum())
    assert found.n_rounds <= 8


def test_the_pooled_fit_of_r(tmp_path):
    """`coxph` stratified by site; two sites have no outcome in one arm."""
    now = start_federation(tmp_path / "fit", SITES)
    while now.question is not None:
        for k, name in enumerate(SITES, start=1):
            answer_question(now.question, *of_site(k), site=name, min_cell_count=0)
        now = next_round(tmp_path / "fit")
    assert_allclose(now.result.coef[0], POOLED[0], atol=1e-8)


def test_fine_gray_weighs_by_the_censoring_of_each_site(tmp_path):
    found = fitted(tmp_path, CODE, model="finegray")
    pooled = rs.FineGray(censoring_group=SITE).fit(X, rs.Surv(TIME, CODE), strata=SITE)
    assert_allclose(found.coef[0], pooled.coef_, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "penalty",
    [rs.L1(30.0, unpenalized=["x3"]), rs.L2(30.0), rs.ElasticNet(strength=30.0, l1_ratio=0.5)],
)
def test_the_same_path_of_penalties(tmp_path, penalty):
    strengths = [60.0, 20.0, 5.0]
    found = fitted(tmp_path, penalty=penalty, strengths=strengths)
    assert found.standard_error is None
    for coef, strength in zip(found.coef, strengths, strict=True):
        pooled = rs.Cox(penalty.with_strength(strength)).fit(X, rs.Surv(TIME, EVENT), strata=SITE)
        assert_allclose(coef, pooled.coef_, rtol=0, atol=1e-7)
        assert ((np.array(coef) == 0) == (pooled.coef_ == 0)).all()


def test_with_information_of_the_working_set_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("riskset.network.federated_problem.MAX_FULL_INFORMATION", 3)
    found = fitted(tmp_path)
    pooled = rs.Cox().fit(X, rs.Surv(TIME, EVENT), strata=SITE)
    assert_allclose(found.coef[0], pooled.coef_, rtol=0, atol=1e-8)


def test_answers_have_no_number_for_each_person(tmp_path):
    """Their size depends on the number of covariates alone."""
    now = start_federation(tmp_path / "fit", SITES)
    for _ in range(2):
        answer_all(now)
        body = json.loads((now.question.parent / "a.json").read_text())["body"]
        assert all(len(v) <= 6 * 7 / 2 for v in body.values() if isinstance(v, list))
        now = next_round(tmp_path / "fit")
    reach = json.loads((tmp_path / "fit/round-001/a.json").read_text())["body"]["reach"]
    assert all(float(np.log2(one)).is_integer() for one in reach)


def test_sites_that_have_not_answered_are_named(tmp_path):
    now = start_federation(tmp_path / "fit", SITES)
    answer_question(now.question, *rows(0), site="a")
    again = next_round(tmp_path / "fit")
    assert again.question == now.question
    assert again.waiting == SITES[1:]


def begun(place):
    """A fit whose first round is answered, and the question of the second."""
    answer_all(start_federation(place / "fit", SITES))
    return next_round(place / "fit").question


def test_a_changed_message_is_refused(tmp_path):
    question = begun(tmp_path)
    text = question.read_text()
    question.write_text(text.replace("0.0", "0.5", 1))
    with pytest.raises(rs.InputError, match="the signature of .* does not fit"):
        answer_question(question, *rows(0), site="a")
    question.write_text(text)
    answer = answer_question(question, *rows(0), site="a")
    answer.write_text(answer.read_text().replace('"log_likelihood": -', '"log_likelihood": -1'))
    with pytest.raises(rs.InputError, match="does not fit"):
        next_round(tmp_path / "fit")


def test_another_secret_is_refused(tmp_path):
    question = begun(tmp_path)
    (tmp_path / "key").write_text("another secret, also long")
    with pytest.raises(rs.InputError, match="another secret"):
        answer_question(question, *rows(0), site="a", secret=tmp_path / "key")


@pytest.mark.parametrize("text", ["", "short"])
def test_a_secret_must_be_long(tmp_path, monkeypatch, text):
    (tmp_path / "key").write_text(text)
    with pytest.raises(rs.InputError, match="no secret of 16 bytes"):
        Secret(tmp_path / "key")
    monkeypatch.setenv("RISKSET_NETWORK_SECRET", text)
    with pytest.raises(rs.InputError, match="the variable RISKSET_NETWORK_SECRET"):
        Secret()
    monkeypatch.setenv("RISKSET_NETWORK_SECRET", "s" * 32)
    assert "sss" not in repr(Secret())


def test_an_answer_of_an_earlier_round_is_refused(tmp_path):
    question = begun(tmp_path)
    shutil.copy(tmp_path / "fit/round-001/a.json", question.with_name("a.json"))
    with pytest.raises(rs.InputError, match="the answer of another round: 1, not 2"):
        next_round(tmp_path / "fit")


def test_an_answer_of_another_fit_or_site_is_refused(tmp_path):
    question = begun(tmp_path)
    other = begun(tmp_path / "second")
    answer_question(other, *rows(0), site="a", out=question.with_name("a.json"))
    with pytest.raises(rs.InputError, match="the answer of another fit"):
        next_round(tmp_path / "fit")
    answer_question(question, *rows(1), site="b", out=question.with_name("a.json"))
    with pytest.raises(rs.InputError, match="the answer of another site: 'b', not 'a'"):
        next_round(tmp_path / "fit")


def test_data_that_change_between_rounds_are_refused(tmp_path):
    question = begun(tmp_path)
    x, y = rows(0)
    answer_question(question, x[1:], y[1:], site="a")
    with pytest.raises(rs.InputError, match="the data of the site 'a' changed"):
        next_round(tmp_path / "fit")


def test_an_answer_is_no_question(tmp_path):
    question = begun(tmp_path)
    answer = answer_question(question, *rows(0), site="a")
    with pytest.raises(rs.InputError, match="is not a question, but 'answer'"):
        answer_question(answer, *rows(0), site="a")


def test_few_people_are_not_answered_about(tmp_path):
    question = start_federation(tmp_path / "fit", SITES).question
    x, y = rows(0)
    with pytest.raises(rs.InputError, match="fewer than 5 rows"):
        answer_question(question, x[:4], y[:4], site="a")
    some = np.flatnonzero(y["event"])[:4]
    none = np.flatnonzero(y["event"] == 0)
    few = np.concatenate([some, none])
    with pytest.raises(rs.InputError, match="fewer than 5 events of code 1"):
        answer_question(question, x[few], y[few], site="a")
    rare = x.copy()
    rare[:, 3] = 0
    rare[:4, 3] = 1
    with pytest.raises(rs.InputError, match="fewer than 5 people .* differ .* in 'x3'"):
        answer_question(question, rare, y, site="a")
    assert not question.with_name("a.json").exists()
    other = start_federation(tmp_path / "without", SITES, left_out=["x3"]).question
    assert answer_question(other, rare, y, site="a").exists()


def test_coefficients_that_single_out_people_are_not_answered(tmp_path):
    question = begun(tmp_path)
    secret = Secret()
    document = json.loads(question.read_text())
    del document["signature"]
    document["body"]["coef"][0] = 100.0
    document["signature"] = secret.sign(document)
    question.write_text(json.dumps(document))
    with pytest.raises(rs.InputError, match="span more than 30"):
        answer_question(question, *rows(0), site="a")


def changed(question, **body):
    """A question of a coordinator who may ask anything, signed with the secret."""
    document = json.loads(question.read_text())
    del document["signature"]
    document["body"] = body
    document["signature"] = Secret().sign(document)
    question.write_text(json.dumps(document))


@pytest.mark.parametrize(("column", "flip"), [(0, False), (3, False), (3, True)])
def test_columns_that_differ_in_few_people_are_not_answered_about(tmp_path, column, flip):
    """The difference of their sums would be that of these people."""
    question = start_federation(tmp_path / "fit", SITES).question
    x, y = rows(0)
    other = 1 - x[:, column] if flip else x[:, column].copy()
    other[:4] = 1 - other[:4]
    near = np.column_stack([x, other])
    with pytest.raises(rs.InputError, match=f"'x{column}' and 'x6' .* fewer than 5 people"):
        answer_question(question, near, y, site="a")
    other[4] = 1 - other[4]
    assert answer_question(question, np.column_stack([x, other]), y, site="a").exists()
    same = np.column_stack([x, x[:, column]])  # an alias that tells nothing about anybody
    assert answer_question(question, same, y, site="a").exists()


def test_coefficients_that_give_one_person_all_weight_are_not_answered(tmp_path):
    """With log hazards from 0 to 20, the expected events are those of the one outlier."""
    x, y = rows(0)
    x = x.copy()
    last = np.argmax(TIME[SITE == 0])  # at risk at all event times
    x[:, 0] = np.abs(x[:, 0]) / 10
    x[last, 0] = 20.0
    question = start_federation(tmp_path / "fit", SITES).question
    coef, columns = np.zeros(6), list(range(6))
    changed(question, ask="evaluation", coef=coef.tolist(), columns=columns)
    assert answer_question(question, x, y, site="a").exists()
    coef[0] = 1.0
    changed(question, ask="evaluation", coef=coef.tolist(), columns=columns)
    with pytest.raises(rs.InputError, match="fewer than 5 of its people have nearly all expected"):
        answer_question(question, x, y, site="a")


def test_questions_about_variation_do_not_find_the_range(tmp_path):
    """With any tolerance, halving it would find the range of a covariate to the last digit."""
    question = start_federation(tmp_path / "fit", SITES).question
    x, y = rows(0)
    weights = [1.0, 0, 0, 0, 0, 0]
    for share in (0.01, 0.99, 1.01, 100.0):
        changed(question, ask="variation", weights=weights, tolerance=share * np.ptp(x[:, 0]))
        answer = json.loads(answer_question(question, x, y, site="a").read_text())
        assert answer["body"]["varies"]


@pytest.mark.parametrize("what", ["times", "order of rows"])
def test_data_with_the_same_sums_but_other_outcomes_are_refused(tmp_path, what):
    """Sums of covariates and counts of events stay, so nothing but the likelihood changes."""
    now = start_federation(tmp_path / "fit", SITES)
    answer_all(now)
    now = next_round(tmp_path / "fit")
    answer_all(now)
    x, y = rows(2)
    y = rs.Surv(y["time"] + np.arange(len(y)), y["event"]) if what == "times" else y[::-1]
    answer_question(now.question, x, y, site="c")
    with pytest.raises(rs.InputError, match="the data of the site 'c' changed"):
        next_round(tmp_path / "fit")


@pytest.mark.parametrize(
    "setting", [{"sites": ["a", "b"]}, {"left_out": ["x1"]}, {"options": {"ties": "efron"}}]
)
def test_settings_stay_for_all_rounds(tmp_path, setting):
    """Else answers of other sites, or about another model, would be added."""
    now = start_federation(tmp_path / "fit", SITES)
    answer_all(now)
    path = tmp_path / "fit" / "fit.json"
    document = json.loads(path.read_text()) | setting
    path.write_text(json.dumps(document))
    with pytest.raises(rs.InputError, match="a question of other sites or settings than fit.json"):
        next_round(tmp_path / "fit")
    path.write_text("{")
    with pytest.raises(rs.InputError, match="is damaged"):
        next_round(tmp_path / "fit")


@pytest.mark.parametrize("text", ['{"a": 1e400, "signature": "x"}', '{"signature": "\u00e9"}'])
def test_a_forged_message_is_refused_as_such(tmp_path, text):
    path = tmp_path / "question.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(rs.InputError, match=r"the signature of .* does not fit"):
        answer_question(path, *rows(0), site="a")


def test_a_secret_is_the_same_from_file_and_environment(tmp_path, monkeypatch):
    (tmp_path / "key").write_text("k" * 32 + "\n")
    monkeypatch.setenv("RISKSET_NETWORK_SECRET", "k" * 32 + "\n")
    assert Secret().sign({"a": 1}) == Secret(tmp_path / "key").sign({"a": 1})
    with pytest.raises(rs.InputError, match="of the secret cannot be read"):
        Secret(tmp_path / "none")


def test_events_are_counted_not_weighted(tmp_path):
    def of_site(k):
        own = k == SITE
        table = {"t": TIME[own], "e": EVENT[own], "w": np.full(own.sum(), 2.5), "x": X[own, 0]}
        return rs.Dataset.from_frame(pa.table(table), time="t", event="e", weight="w")

    now = start_federation(tmp_path / "fit", SITES)
    while now.question is not None:
        for k, name in enumerate(SITES):
            answer_question(now.question, of_site(k), site=name)
        now = next_round(tmp_path / "fit")
    assert now.result.n_events == EVENT.sum()
    pooled = rs.Cox().fit(
        X[:, :1], rs.Surv(TIME, EVENT), sample_weight=np.full(N, 2.5), strata=SITE
    )
    assert_allclose(now.result.coef[0], pooled.coef_, atol=1e-8)


def test_other_covariates_are_named(tmp_path):
    now = start_federation(tmp_path / "fit", SITES)
    answer_all(now)
    x, y = rows(1)
    answer_question(now.question, x[:, :5], y, site="b")
    with pytest.raises(rs.InputError, match="'x5' is only at 'a'"):
        next_round(tmp_path / "fit")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sites": ["a"]}, "two or more different names"),
        ({"sites": ["a", "a"]}, "two or more different names"),
        ({"sites": ["a", "../b"]}, "two or more different names"),
        ({"model": "logistic"}, "model"),
        ({"sites": ["a", "A"]}, "two or more different names"),
        ({"strengths": [1.0]}, "needs a penalty"),
        ({"penalty": rs.L1(1.0), "strengths": [-1.0]}, "`strength` must be a finite number"),
        ({"penalty": 1.0}, "`penalty` must be L1, L2, ElasticNet or None"),
        ({"tol": -1.0}, "`tol` must be between 0 and 1"),
        ({"max_iter": 0}, "`max_iter` must be a whole number"),
        ({"ties": "exakt"}, "`ties`"),
        ({"tiez": "efron"}, "option 'tiez' was not found"),
        ({"ties": "exact"}, "ties='exact'` is not available"),
        ({"firth": True}, "firth=True` is not available"),
    ],
)
def test_a_start_that_cannot_be(tmp_path, options, words):
    with pytest.raises(rs.InputError, match=words):
        start_federation(tmp_path / "fit", **({"sites": SITES} | options))


def test_a_folder_that_is_not_empty(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(rs.InputError, match="has files, which a fit would replace"):
        start_federation(tmp_path, SITES)
    with pytest.raises(rs.InputError, match="has no federated fit"):
        next_round(tmp_path)


def test_an_infinite_estimate_is_refused_or_not_called_converged(tmp_path):
    """All events have x = 1, at every site: the likelihood rises without end."""
    time, event = np.arange(1.0, 41.0), np.tile([1, 0], 20)
    x = event[:, None].astype(float)
    now, refused = start_federation(tmp_path / "fit", ["a", "b"]), None
    while now.question is not None and refused is None:
        try:
            for name in ("a", "b"):
                answer_question(now.question, x, rs.Surv(time, event), site=name)
            now = next_round(tmp_path / "fit")
        except rs.InputError as error:
            refused = str(error)
    assert "span more than 30" in refused if refused else now.result.status != ["converged"]


def test_command_line(tmp_path):
    call = CliRunner().invoke
    for k, name in enumerate(("a", "b")):
        x, y = rows(k)
        lines = ["days,died,p,q"] + [
            f"{t!r},{int(e)},{float(r[0])!r},{float(r[3])!r}"
            for t, e, r in zip(y["time"].tolist(), y["event"], x, strict=True)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    fit = tmp_path / "fit"
    done = call(app, ["federate", "start", str(fit), "--sites", "a,b"])
    assert done.exit_code == 0, done.output
    for number in range(1, 9):
        question = fit / f"round-{number:03d}/question.json"
        if not question.exists():
            break
        for name in ("a", "b"):
            done = call(app, [
                "federate", "answer", str(question), str(tmp_path / f"{name}.csv"),
                "--time", "days", "--event", "died", "--site", name,
            ])  # fmt: skip
            assert done.exit_code == 0, done.output
        done = call(app, ["federate", "next", str(fit)])
        assert done.exit_code == 0, done.output
    assert "converged" in done.output
    found = json.loads((fit / "result.json").read_text())
    own = SITE < 2
    pooled = rs.Cox().fit(X[own][:, [0, 3]], rs.Surv(TIME[own], EVENT[own]), strata=SITE[own])
    assert_allclose(found["coef"][0], pooled.coef_, atol=1e-8)
    assert found["covariates"] == ["p", "q"]


def test_the_command_line_has_ties_causes_and_elastic_nets(tmp_path):
    call = CliRunner().invoke
    options = ["--ties", "efron", "--cause", "1", "--penalty", "elasticnet", "--l1-ratio", "0.5"]
    more = ["--strengths", "60,5", "--unpenalized", "q", "--tol", "1e-9", "--max-iter", "50"]
    done = call(
        app, ["federate", "start", str(tmp_path / "fit"), "--sites", "a,b", *options, *more]
    )
    assert done.exit_code == 0, done.output
    settings = json.loads((tmp_path / "fit" / "fit.json").read_text())
    assert settings["options"] == {"ties": "efron", "cause": 1}
    assert (settings["tol"], settings["max_iter"]) == (1e-9, 50)
    assert settings["strengths"] == [60.0, 5.0]
    penalty = {name: value for name, value in settings["penalty"].items() if value is not None}
    kind = rs.ElasticNet(strength=60.0, l1_ratio=0.5, unpenalized=["q"]).get_params(deep=False)
    wanted = {name: value for name, value in kind.items() if value is not None}
    assert penalty == json.loads(json.dumps({"kind": "ElasticNet", **wanted}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "finegray", "--ties", "efron"], "--ties needs --model cox"),
        (["--penalty", "l1", "--strengths", "3", "--l1-ratio", "1"], "--l1-ratio needs --penalty"),
        (["--penalty", "elasticnet", "--strengths", "3"], "elasticnet needs --l1-ratio"),
        (["--unpenalized", "x"], "--unpenalized needs a penalty"),
        (["--strengths", "3"], "--strengths"),
        (["--penalty", "l2", "--strengths", "x"], "--strengths must be finite numbers"),
        (["--penalty", "l2", "--strengths=-1"], "--strengths must be finite numbers"),
        (["--sites", "a"], "--sites must be two or more"),
        (["--tol", "0"], "--tol must be"),
        (["--max-iter", "0"], "--max-iter must be"),
        (["--secret-file", "none.key"], "none.key"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, options, message):
    words = ["federate", "start", str(tmp_path / "fit"), "--sites", "a,b", *options]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, rs.InputError)
    assert message in spoken(done.exception, COMMAND_LINE)
    assert not (tmp_path / "fit").exists()


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_elastic_nets_with_unpenalised_columns_are_those_of_pooled_rows(tmp_path, ties):
    penalty = rs.ElasticNet(strength=30.0, l1_ratio=0.5, unpenalized=["x1", "x4"])
    found = fitted(tmp_path, penalty=penalty, strengths=[60.0, 10.0], ties=ties)
    assert found.status == ["converged"] * 2
    for coef, strength in zip(found.coef, [60.0, 10.0], strict=True):
        model = rs.Cox(penalty.with_strength(strength), ties=ties)
        pooled = model.fit(X, rs.Surv(TIME, EVENT), strata=SITE)
        assert_allclose(coef, pooled.coef_, rtol=0, atol=1e-7)
        assert coef[1] != 0
        assert coef[4] != 0
