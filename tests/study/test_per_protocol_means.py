"""Restricted means of per-protocol analyses, and resamples that fit the weights again."""

import numpy as np
from numpy.testing import assert_allclose

import riskset as rs
from study.protocol_study import run, specification
from study.test_per_protocol import LONG, PEOPLE, start_stop, weights_of


def test_restricted_means_have_the_weights(tmp_path):
    """As `riskset.restricted_mean` of the weighted rows, with people as clusters."""
    analyses = {
        "pp": specification()["analyses"]["pp"]
        | {"weight": None, "propensity": None, "model": {"rmst": [100, 300]}}
    }
    found = run(tmp_path, (PEOPLE, LONG), analyses=analyses)
    rows = start_stop()
    y = rs.Surv(rows["days"], rows["died"], entry=rows["entry"])
    drug, weight = rows["drug"].to_numpy(), weights_of(rows).weight
    options = {"variance": "robust", "cluster": rows["id"]}
    means = rs.restricted_mean(y, drug, weight, times=[100, 300], **options)
    difference, ratio = means.difference(1, 0), means.ratio(1, 0)
    for k, time in enumerate((100, 300)):
        where = {"adjusted": True, "measure": "restricted_mean", "time": time}
        (row,) = found.rows("restricted_means", **where)
        assert_allclose(row["target_mean"], means[1].mean[k], rtol=1e-9)
        assert_allclose(row["comparator_se"], means[0].standard_error[k], rtol=1e-9)
        assert_allclose(row["difference_se"], difference.standard_error[k], rtol=1e-9)
        assert_allclose(row["ratio_upper"], ratio.upper[k], rtol=1e-9)
        assert row["interval"] == "robust"
        still = (rows["entry"] < time) & (rows["days"] >= time)
        assert row["target_at_risk"] == (still & (drug == 1)).sum()
    page = rs.report.write(found.path, tmp_path / "report.html").read_text("utf-8")
    assert "Restricted mean" in page


def test_a_bootstrap_of_risks_and_means_fits_the_weights_again(tmp_path):
    """By a loop over resamples of people, the models of deviation fitted to each."""
    model = {"rmst": [300], "interval": "bootstrap", "replicates": 39}
    pp = specification()["analyses"]["pp"] | {"weight": None, "propensity": None, "model": model}
    found = run(tmp_path, (PEOPLE, LONG), analyses={"pp": pp}, seed=5)
    rows = start_stop()
    weights, drug = weights_of(rows), rows["drug"].to_numpy()
    y, person = rs.Surv(rows["days"], rows["died"], entry=rows["entry"]), rows["id"].to_numpy()
    rng, code = np.random.default_rng(5), np.unique(person, return_inverse=True)[1]
    n, draws = code.max() + 1, []
    for _ in range(39):
        count = np.bincount(rng.integers(0, n, n), minlength=n)[code]
        own = weights.parts.fit(count).weight * count
        means = rs.restricted_mean(y, drug, own, times=[300])
        curves = rs.kaplan_meier(y, drug, own)
        draws.append(
            [
                means[1].mean[0] - means[0].mean[0],
                curves[0].at([180])[0] - curves[1].at([180])[0],
            ]
        )
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    (mean,) = found.rows("restricted_means", adjusted=True, measure="restricted_mean")
    (risk,) = found.rows("absolute_risks", adjusted=True)
    for row, k in ((mean, 0), (risk, 1)):
        assert row["interval"] == "bootstrap"
        ends = [row["difference_lower"], row["difference_upper"]]
        assert_allclose(ends, [low[k], high[k]], rtol=1e-8)
