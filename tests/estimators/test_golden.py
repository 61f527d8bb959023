"""Values of R's survival, glmnet and Cyclops on real data, through the public API.

Those of Fine and Gray's model are in `test_finegray_golden`, of curves in `tests/curves`.

`golden/README.md` says how they were made. Tolerances: coefficients 1e-7, log likelihoods 1e-10,
variances and tests 1e-6, residuals and survival 1e-7; glmnet 1e-6; Cyclops, which stops early,
5e-6 absolute for coefficients and 3e-8 for log likelihoods.
"""

import functools
import re
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import riskset as rs
from estimators.test_finegray_golden import TESTED as FINEGRAY
from reference import GOLDEN, matrix, read_json, read_table
from riskset.datasets import rhc_path

pytestmark = pytest.mark.portability

TOL = 1e-11

# What belongs to features that do not exist yet, by file and key.
LATER = {
    "the propensity model": {"rhc": {"ps_lasso"}},
}


@dataclass(frozen=True)
class Block:
    """One fit of R's coxph."""

    file: str
    key: str
    ties: str = "breslow"
    weight: str | None = None
    strata: str | None = None
    cluster: str | None = None
    entry: str | None = None
    time: str = "time"
    cause: int | None = None

    def __str__(self) -> str:
        return f"{self.file}-{self.key}"

    @property
    def expected(self):
        return read_json(GOLDEN / f"{self.file}.json")[self.key]

    @property
    def table(self):
        return read_table(GOLDEN / f"{self.file}.csv")

    def column(self, name):
        return None if name is None else self.table[name]

    @property
    def y(self):
        return rs.Surv(self.table[self.time], self.table["event"], self.column(self.entry))

    @property
    def x(self):
        return matrix(self.table, self.expected["coef"])

    @property
    def arguments(self):
        return {
            "sample_weight": self.column(self.weight),
            "strata": self.column(self.strata),
            "cluster": self.column(self.cluster),
        }

    @functools.cache  # noqa: B019 - blocks live as long as the tests
    def fit(self):
        model = rs.Cox(ties=self.ties, cause=self.cause, tol=TOL)
        return model.fit(self.x, self.y, **self.arguments)


BLOCKS = [
    Block("lung", "breslow"),
    Block("lung", "efron", "efron"),
    Block("lung", "breslow_weighted", weight="weight"),
    Block("lung", "efron_weighted", "efron", weight="weight"),
    Block("lung", "breslow_strata_sex", strata="sex"),
    Block("lung", "efron_strata_sex", "efron", strata="sex"),
    Block("lung", "efron_cluster_inst", "efron", cluster="inst"),
    Block("veteran", "breslow"),
    Block("veteran", "efron", "efron"),
    Block("veteran", "breslow_strata", strata="stratum"),
    Block("veteran", "efron_strata", "efron", strata="stratum"),
    Block("heart", "breslow", entry="start", time="stop"),
    Block("heart", "efron", "efron", entry="start", time="stop"),
    Block("heart", "efron_cluster_id", "efron", entry="start", time="stop", cluster="id"),
    Block("flchain", "breslow"),
    Block("flchain", "efron", "efron"),
    Block("flchain", "efron_strata_year", "efron", strata="year"),
    Block("mgus2", "cause_specific_1", cause=1),
    Block("mgus2", "cause_specific_2", cause=2),
    Block("pbc", "efron_death", "efron", cause=2),
]


def having(*keys):
    """The blocks for which R gave a quantity."""
    blocks = [b for b in BLOCKS if all(key in b.expected for key in keys)]
    assert blocks
    return pytest.mark.parametrize("block", blocks, ids=str)


@having("coef")
def test_coefficients(block):
    model = block.fit()
    assert model.status_ == "converged"
    assert model.kkt_ <= TOL
    assert_allclose(model.coef_, list(block.expected["coef"].values()), rtol=1e-7)
    assert model.n_rows_ == block.expected["n"]
    assert model.n_events_ == block.expected["nevent"]


@having("loglik")
def test_log_likelihoods(block):
    model = block.fit()
    assert_allclose(model.log_likelihood_, block.expected["loglik"], rtol=1e-10)
    assert_allclose(model.null_log_likelihood_, block.expected["loglik_null"], rtol=1e-10)


@having("vcov_naive")
def test_variance(block):
    model, expected = block.fit(), np.array(block.expected["vcov_naive"])
    assert_allclose(model.variance_, expected, rtol=1e-6)
    assert_allclose(model.standard_error_, np.sqrt(np.diag(expected)), rtol=1e-6)


@having("vcov_robust")
def test_robust_variance(block):
    model = block.fit()
    assert model.is_robust_
    assert_allclose(model.robust_variance_, block.expected["vcov_robust"], rtol=1e-6)


def test_the_robust_variance_is_used_where_r_uses_it():
    for block in BLOCKS:
        assert block.fit().is_robust_ == ("vcov_robust" in block.expected)


@having("score_test", "wald_test")
def test_tests(block):
    model, expected = block.fit(), block.expected
    tests = model.tests_
    lr = 2 * (expected["loglik"] - expected["loglik_null"])
    assert_allclose(tests.lr.statistic, lr, rtol=1e-6)
    assert_allclose(tests.score.statistic, expected["score_test"], rtol=1e-6)
    assert_allclose(tests.wald.statistic, expected["wald_test"], rtol=1e-6)
    assert tests.lr.df == tests.score.df == tests.wald.df == model.coef_.size


@having("concordance")
def test_concordance(block):
    model, expected = block.fit(), block.expected
    arguments = {k: block.arguments[k] for k in ("sample_weight", "strata")}
    y = rs.Surv(block.y["time"], block.y["event"] == (block.cause or 1), block.column(block.entry))
    assert_allclose(model.score(block.x, block.y, **arguments), expected["concordance"], rtol=1e-10)
    result = rs.metrics.concordance(
        y, model.predict(block.x), **arguments, cluster=block.column(block.cluster)
    )
    assert_allclose(result.concordance, expected["concordance"], rtol=1e-10)
    assert_allclose(result.standard_error, expected["concordance_se"], rtol=1e-6)


@having("martingale_head", "deviance_head")
@pytest.mark.parametrize("kind", ["martingale", "deviance"])
def test_residuals(block, kind):
    residual = block.fit().residuals(block.x, block.y, kind, **block.arguments)
    expected = block.expected[f"{kind}_head"]
    assert_allclose(residual[: len(expected)], expected, rtol=1e-7, atol=1e-9)


@having("predict")
def test_survival(block):
    expected = block.expected["predict"]
    new = matrix({k: [row[k] for row in expected["newdata"]] for k in expected["newdata"][0]},
                 block.expected["coef"])  # fmt: skip
    survival = block.fit().predict_survival_function(new, expected["times"])
    assert_allclose(survival.T, expected["survival"], rtol=1e-7)
    hazard = block.fit().predict_cumulative_hazard_function(new, expected["times"])
    assert_allclose(np.exp(-hazard), survival, rtol=1e-14)


@having("zph_km")
def test_proportional_hazards(block):
    expected = block.expected["zph_km"]
    result = block.fit().test_proportionality(block.x, block.y, **block.arguments)
    assert expected["terms"][-1] == "GLOBAL"
    assert_allclose([*result.statistic, result.global_statistic], expected["chisq"], rtol=1e-6)
    assert_allclose([*result.p_value, result.global_p_value], expected["p"], rtol=1e-6)


# ------------------------------------------------------------------------------- penalised, R


LUNG = BLOCKS[0]


@pytest.mark.parametrize("key", ["l1", "l1_weighted", "enet", "ridge", "factor"])
def test_glmnet(key):
    file = read_json(GOLDEN / "lung.json")
    expected = file[f"glmnet_{key}"]
    weight = LUNG.table["weight"] if key == "l1_weighted" else None
    x = matrix(LUNG.table, file["columns"])
    penalty = rs.ElasticNet.from_glmnet(
        expected["lambda_per_row"],
        expected["alpha_l1_ratio"],
        x.shape[0] if weight is None else weight.sum(),
        expected["penalty_factor"],
    )
    y = rs.Surv(file["time_untied"], LUNG.table["event"])
    model = rs.Cox(penalty, tol=TOL).fit(x, y, sample_weight=weight)
    assert model.status_ == "converged"
    assert_allclose(model.coef_, list(expected["coef"].values()), rtol=1e-6)


def check_cyclops(model, expected):
    assert model.status_ == "converged"
    assert_allclose(model.coef_, list(expected["coef"].values()), rtol=0, atol=5e-6)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=3e-8)


def cyclops_penalty(expected, unpenalized):
    kind = {"laplace": rs.L1, "normal": rs.L2}[expected["prior"]]
    penalty = kind.from_variance(expected["variance"], unpenalized=unpenalized)
    if expected["prior"] == "laplace":
        assert_allclose(penalty.strength, expected["lambda"], rtol=1e-12)
    return penalty


@pytest.mark.parametrize("key", ["cyclops_l1", "cyclops_l2"])
def test_cyclops_dense(key):
    expected = LUNG_FILE[key]
    unpenalized = [k - 1 for k in expected["exclude"]]
    x = matrix(LUNG.table, LUNG_FILE["columns"])
    model = rs.Cox(cyclops_penalty(expected, unpenalized), tol=TOL).fit(x, LUNG.y)
    check_cyclops(model, expected)


LUNG_FILE = read_json(GOLDEN / "lung.json")
SPARSE_FILE = read_json(GOLDEN / "sparse.json")
SPARSE = [*SPARSE_FILE["cox"], SPARSE_FILE["cox_l2"], SPARSE_FILE["cox_exclude"]]


@functools.cache
def sparse_data():
    return rs.read_dataset(
        GOLDEN / "sparse_outcomes.csv",
        covariates=GOLDEN / "sparse_covariates.csv",
        drop="y_competing",
    )


@pytest.mark.parametrize("expected", SPARSE, ids=lambda e: f"{e['prior']}-{e['variance']}")
def test_cyclops_long_table(expected):
    data = sparse_data()
    assert list(data.design.names) == list(expected["coef"])
    penalty = cyclops_penalty(expected, [str(k) for k in expected["exclude"]])
    check_cyclops(rs.Cox(penalty, tol=TOL).fit(data), expected)


# -------------------------------------------------------- right heart catheterisation, R


@pytest.fixture(scope="module")
def rhc():
    """The bundled cohort, and its propensity score by R's coefficients."""
    file = read_json(GOLDEN / "rhc.json")
    data = rs.load_rhc()
    names = data.design.names
    x = data.design.to_dense()
    treated = x[:, names.index("swang1")]
    others = [name for name in names if name != "swang1"]
    # R writes a dot for every character that a name of its own may not have.
    assert [re.sub(r"[^\w.]", ".", name) for name in others] == file["columns"]
    intercept, *coef = file["ps_logistic_mle"].values()
    logit = intercept + x[:, [names.index(n) for n in others]] @ np.array(coef)
    outcome = data.outcome()
    y = rs.Surv(outcome.time, outcome.is_event)
    assert_allclose(1 / (1 + np.exp(-logit[:10])), file["ps_head"], rtol=1e-7)
    return file, data, treated, logit, y


def test_rhc_unadjusted(rhc):
    file, _, treated, _, y = rhc
    check_rhc_block(file["cox_unadjusted"], treated[:, None], y)


def test_rhc_stratified(rhc):
    file, _, treated, logit, y = rhc
    score = 1 / (1 + np.exp(-logit))
    quintile = np.searchsorted(np.quantile(score, [0.2, 0.4, 0.6, 0.8]), score)
    check_rhc_block(file["cox_stratified_by_ps_quintile"], treated[:, None], y, quintile)


def check_rhc_block(expected, x, y, strata=None):
    model = rs.Cox(tol=TOL).fit(x, y, strata=strata)
    assert (model.n_rows_, model.n_events_) == (expected["n"], expected["nevent"])
    assert_allclose(model.coef_, list(expected["coef"].values()), rtol=1e-7)
    assert_allclose(model.log_likelihood_, expected["loglik"], rtol=1e-10)
    assert_allclose(model.null_log_likelihood_, expected["loglik_null"], rtol=1e-10)
    assert_allclose(model.variance_, expected["vcov_naive"], rtol=1e-6)
    assert_allclose(model.tests_.score.statistic, expected["score_test"], rtol=1e-6)
    assert_allclose(model.tests_.wald.statistic, expected["wald_test"], rtol=1e-6)
    assert_allclose(model.score(x, y, strata=strata), expected["concordance"], rtol=1e-10)
    concordance = rs.metrics.concordance(y, model.predict(x), strata=strata)
    assert_allclose(concordance.standard_error, expected["concordance_se"], rtol=1e-6)
    for kind in ("martingale", "deviance"):
        residual = model.residuals(x, y, kind, strata=strata)
        assert_allclose(residual[:12], expected[f"{kind}_head"], rtol=1e-7, atol=1e-9)


def test_rhc_weighted(rhc):
    file, _, treated, logit, y = rhc
    expected = file["iptw_stabilised"]
    score = 1 / (1 + np.exp(-logit))
    share = treated.mean()
    weight = np.where(treated == 1, share / score, (1 - share) / (1 - score))
    assert_allclose(weight[:10], expected["head"], rtol=1e-7)
    model = rs.Cox(tol=TOL).fit(treated[:, None], y, sample_weight=weight)
    # R's coefficients of the propensity score were printed with 15 digits.
    assert_allclose(model.coef_[0], expected["coef"], rtol=1e-7)
    assert_allclose(model.robust_variance_[0, 0], expected["robust_var"], rtol=1e-6)


def test_rhc_all_covariates(rhc):
    file, data, *_ = rhc
    expected = file["cox_all_covariates"]
    model = rs.Cox(tol=TOL).fit(data)
    j = model.covariates_.index("swang1")
    assert model.status_ == "converged"
    assert_allclose(model.coef_[j], expected["coef_swang1"], rtol=1e-7)
    assert_allclose(model.standard_error_[j], expected["se_swang1"], rtol=1e-6)
    loglik = [model.null_log_likelihood_, model.log_likelihood_]
    assert_allclose(loglik, expected["loglik"], rtol=1e-10)


def test_rhc_matched(rhc):
    file, _, treated, logit, y = rhc
    expected = file["match_1to1_closest_pair_first"]
    caliper = 0.2 * logit.std(ddof=1)
    assert_allclose(caliper, expected["caliper"], rtol=1e-9)
    rows, partners = match_closest_first(treated, logit, caliper)
    assert rows.size == expected["pairs"]
    chosen, pair = np.concatenate([rows, partners]), np.tile(np.arange(rows.size), 2)
    x, y = treated[chosen, None], y[chosen]
    model = rs.Cox(tol=TOL).fit(x, y)
    assert_allclose(model.coef_[0], expected["coef_swang1"], rtol=1e-7)
    assert_allclose(model.standard_error_[0], expected["se"], rtol=1e-6)
    stratified = rs.Cox(tol=TOL).fit(x, y, strata=pair)
    assert_allclose(stratified.coef_[0], expected["coef_swang1_stratified_by_pair"], rtol=1e-7)


def match_closest_first(treated, logit, caliper):
    """Pairs within the caliper, closest first; rows stand by id, which breaks ties."""
    ones, zeros = np.flatnonzero(treated == 1), np.flatnonzero(treated == 0)
    distance = np.abs(logit[ones, None] - logit[zeros])
    i, j = np.nonzero(distance <= caliper)
    order = np.lexsort((j, i, distance[i, j]))
    used_i, used_j, pairs = set(), set(), []
    for a, b in zip(i[order].tolist(), j[order].tolist(), strict=True):
        if a not in used_i and b not in used_j:
            used_i.add(a)
            used_j.add(b)
            pairs.append((a, b))
    a, b = np.array(pairs).T
    return ones[a], zeros[b]


# ------------------------------------------------------------------------------ completeness

ABOUT = {"source", "versions", "columns", "note", "time_untied", "n", "treated", "smd_note"}
TESTED = {
    "mgus2": {"aalen_johansen"},  # in tests/curves
    "cmprsk_cuminc": {  # in tests/curves
        "time",
        "group",
        "event",
        "stratum",
        "cuminc",
        "cuminc_by_group",
        "gray_stratified",
        "gray_stratified_subset",
    },
    "lung": {f"glmnet_{k}" for k in ("l1", "l1_weighted", "enet", "ridge", "factor")}
    | {"cyclops_l1", "cyclops_l2"},
    "sparse": {"cox", "cox_l2", "cox_exclude"},
    "zph": {"lung", "lung_log", "lung_strata", "heart"},  # in tests/infer
    "rhc": {
        "ps_logistic_mle",
        "cox_unadjusted",
        "cox_stratified_by_ps_quintile",
        "iptw_stabilised",
        "cox_all_covariates",
        "match_1to1_closest_pair_first",
    }
    | {"ps_auc", "ps_head", "smd_before"},  # in cohort/
}


OF_ONE_TOPIC = {
    "confounders": "cohort/test_tipping_points.py",
    "curves": "curves/test_weighted_logrank.py",
    "doubly_robust": "cohort/test_doubly_robust.py",
    "e_values": "cohort/test_e_values.py",
    "exact_ties": "estimators/test_exact_ties.py",
    "fixed": "estimators/test_fixed.py",
    "outcome_models": "cohort/test_outcome_scales.py",
    "predictions": "estimators/test_prediction_intervals.py",
    "residuals": "estimators/test_residuals.py",
    "restricted_mean": "curves/test_restricted_mean.py",
    "standardized": "cohort/test_standardization.py",
    "study_time_effects": "study/test_time_effect.py",
    "time_effects": "estimators/test_time_effects.py",
}
"""Files of values of one topic, and the tests that read them."""


@pytest.mark.parametrize("topic", OF_ONE_TOPIC)
def test_files_of_one_topic_are_read_by_their_tests(topic):
    assert (GOLDEN / f"{topic}.json").exists()
    assert f"{topic}.json" in (GOLDEN.parent / OF_ONE_TOPIC[topic]).read_text()


@pytest.mark.parametrize(
    "path",
    sorted(path for path in GOLDEN.glob("*.json") if path.stem not in OF_ONE_TOPIC),
    ids=lambda p: p.stem,
)
def test_every_value_is_tested_or_named_for_later(path):
    tested = {b.key for b in BLOCKS if b.file == path.stem}
    tested |= TESTED.get(path.stem, set()) | FINEGRAY.get(path.stem, set())
    later = set().union(*(files.get(path.stem, set()) for files in LATER.values()))
    assert set(read_json(path)) - ABOUT == tested | later
    assert not tested & later


def test_the_bundled_cohort_is_there():
    assert rhc_path().exists()
