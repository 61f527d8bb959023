"""Plots of a cohort study: what they draw is what formulas, or counts by hand, say."""

import dataclasses
from io import BytesIO

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from scipy.stats import norm

import riskset as rs
from riskset.data.design import Design
from riskset.plot._overlap import smooth_density

Z = 1.959963984540054
N = 600


@pytest.fixture(scope="module")
def people() -> rs.cohort.Population:
    rng = np.random.default_rng(2)
    x = rng.normal(size=N)
    return rs.cohort.Population(rng.random(N) < expit(x - 0.5), expit(x - 0.5))


@pytest.fixture(scope="module")
def covariates() -> rs.Design:
    rng = np.random.default_rng(2)
    columns = {f"z{k}": rng.normal(size=N) for k in range(8)}
    return rs.Design.from_columns(
        {"score": rng.normal(size=N)} | columns | {"constant": np.ones(N)}
    )


@pytest.fixture(scope="module")
def balance(people: rs.cohort.Population, covariates: rs.Design) -> rs.cohort.Balance:
    return rs.cohort.balance(covariates, rs.cohort.weight(people, "ato"))


@pytest.fixture(scope="module")
def estimate(people: rs.cohort.Population) -> rs.cohort.Estimate:
    rng = np.random.default_rng(3)
    y = rs.Surv(rng.exponential(10, N), rng.random(N) < 0.6)
    return rs.cohort.fit_outcome(y, rs.cohort.weight(people, "ato"))


def words(axes: Axes) -> list[str]:
    return [t.get_text() for t in axes.texts]


# ------------------------------------------------------------------------- balance


def test_love_plot_shows_the_largest_differences(balance: rs.cohort.Balance) -> None:
    axes = rs.plot.love_plot(balance, n_covariates=4)
    before, after = (line for line in axes.lines if line.get_marker() == "o")
    size = np.fmax(np.abs(balance.before.smd), np.abs(balance.after.smd))
    known = np.isfinite(balance.before.smd)  # a constant covariate has no difference
    largest = set(np.argsort(-np.where(known, size, -1))[:4].tolist())
    names = [label.get_text() for label in axes.get_yticklabels()]
    places = [balance.names.index(name) for name in names]
    assert set(places) == largest
    assert_array_equal(before.get_xdata(), np.abs(balance.before.smd[places]))
    assert_array_equal(after.get_xdata(), np.abs(balance.after.smd[places]))
    assert (np.diff(before.get_xdata()) <= 0).all()
    assert axes.yaxis_inverted()  # the largest on top
    assert "4 of 10 covariates" in axes.get_xlabel()


def test_love_plot_with_signs(balance: rs.cohort.Balance) -> None:
    axes = rs.plot.love_plot(balance, absolute=False)
    before = next(line for line in axes.lines if line.get_marker() == "o")
    places = [balance.names.index(label.get_text()) for label in axes.get_yticklabels()]
    assert_array_equal(before.get_xdata(), balance.before.smd[places])
    upright = {line.get_xdata()[0] for line in axes.lines if line.get_marker() != "o"}
    assert upright == {-0.1, 0.0, 0.1}


def test_scatter_has_every_known_covariate(balance: rs.cohort.Balance) -> None:
    axes = rs.plot.balance_scatter(balance, n_labels=2)
    points = axes.lines[0]
    known = np.isfinite(balance.before.smd) & np.isfinite(balance.after.smd)
    assert_array_equal(points.get_xdata(), np.abs(balance.before.smd[known]))
    assert_array_equal(points.get_ydata(), np.abs(balance.after.smd[known]))
    worst = np.argsort(-np.abs(balance.after.smd[known]))[:2]
    names = np.array(balance.names)[known][worst]
    assert {t.get_text() for t in axes.texts if isinstance(t, Annotation)} == set(names)


def test_balance_that_is_not_known(balance: rs.cohort.Balance) -> None:
    nothing = np.full(len(balance.names), np.nan)
    unknown = dataclasses.replace(balance, after=dataclasses.replace(balance.after, smd=nothing))
    assert rs.plot.love_plot(unknown).lines  # differences before are known
    with pytest.raises(rs.InputError, match="no covariate has a known difference before and after"):
        rs.plot.balance_scatter(unknown)
    with pytest.raises(rs.InputError, match=r"shows what riskset\.cohort\.balance"):
        rs.plot.love_plot([0.1, 0.2])  # type: ignore[arg-type]
    with pytest.raises(rs.InputError, match="`n_covariates` must be"):
        rs.plot.love_plot(balance, n_covariates=0)


# ------------------------------------------------------------------------- overlap


def heights(axes: Axes) -> list[np.ndarray]:
    return [patch.get_data().values for patch in axes.patches if hasattr(patch, "get_data")]


def test_histograms_are_shares_of_the_arms(people: rs.cohort.Population) -> None:
    adjustment = rs.cohort.weight(people, "ato")
    axes = rs.plot.propensity_overlap(adjustment, n_bars=10)
    preference = rs.cohort.preference_score(people)
    edges = np.linspace(0, 1, 11)
    drawn = heights(axes)  # per arm: all, kept, outline
    for arm, sign, found in ((people.is_target, 1, drawn[:3]), (~people.is_target, -1, drawn[3:])):
        counts, _ = np.histogram(preference[arm], edges)
        weights, _ = np.histogram(preference[arm], edges, weights=adjustment.weight[arm])
        assert_allclose(found[0], sign * counts / arm.sum())
        assert_allclose(found[1], sign * weights / adjustment.weight[arm].sum())
        assert_array_equal(found[2], found[0])
    share = ((preference >= 0.3) & (preference <= 0.7)).mean()
    assert any(text.startswith(f"{share:.0%} in equipoise") for text in words(axes))


def test_densities_are_gaussian_kernels_with_the_area_one(people: rs.cohort.Population) -> None:
    values = people.score
    points, density = smooth_density(values)
    assert_allclose(density.mean(), 1.0, rtol=1e-12)
    quartiles = np.subtract(*np.quantile(values, [0.75, 0.25]))
    width = 0.9 * min(values.std(), quartiles / 1.34) * N**-0.2
    exact = np.zeros(points.size)
    for mirrored in (values, -values, 2 - values):
        exact += norm.pdf(points[:, None], mirrored, width).mean(axis=1)
    assert_allclose(density, exact, rtol=0.01, atol=0.005)
    weight = (np.arange(N) % 2).astype(float)  # half of the values, as if the others were absent
    assert_allclose(smooth_density(values, weight)[1], smooth_density(values[1::2])[1], rtol=1e-9)


def test_density_plot(people: rs.cohort.Population) -> None:
    axes = rs.plot.propensity_overlap(people, kind="density", scale="propensity", target="new")
    target, comparator = (line.get_ydata() for line in axes.lines[:2])
    assert_array_equal(target, smooth_density(people.score[people.is_target])[1])
    assert_array_equal(comparator, -smooth_density(people.score[~people.is_target])[1])
    assert "new" in words(axes)
    assert axes.get_xlabel() == "propensity score"


def test_overlap_that_cannot_be_drawn(people: rs.cohort.Population) -> None:
    with pytest.raises(rs.InputError, match="have no propensity scores"):
        rs.plot.propensity_overlap(rs.cohort.Population([1, 0]))
    with pytest.raises(rs.InputError, match="one arm is empty"):
        rs.plot.propensity_overlap(rs.cohort.Population([1, 1], [0.2, 0.4]))
    with pytest.raises(rs.InputError, match="`kind` must be"):
        rs.plot.propensity_overlap(people, kind="bars")  # type: ignore[arg-type]


# ------------------------------------------------------------------------- forest


def test_forest_prints_what_it_draws(estimate: rs.cohort.Estimate) -> None:
    axes = rs.plot.forest({"main": estimate, "again": estimate}, target="new", comparator="old")
    text = words(axes)
    numbers = f"{estimate.hr:.2f} ({estimate.hr_lower:.2f} to {estimate.hr_upper:.2f})"
    assert text.count(numbers) == 2
    for arm in (estimate.target, estimate.comparator):
        assert text.count(f"{arm.outcomes} / {arm.exposures}") == 2
    assert "new\nevents / n" in text
    line = next(
        line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_zorder() == 3
    )
    assert_allclose(line.get_xdata(), [estimate.hr_lower, estimate.hr_upper])


def test_forest_of_a_model_has_the_intervals_of_its_summary() -> None:
    cohort = rs.simulate_cox(300, 3, 0.5, seed=1)
    y = rs.Surv(cohort.time, cohort.event)
    model = rs.Cox().fit(cohort.X, y)
    table = model.summary()
    axes = rs.plot.forest(model, emphasised=["x1"])
    lines = [line for line in axes.lines if line.get_zorder() == 3]
    drawn = np.array([line.get_xdata() for line in lines])
    assert_allclose(drawn, table[["hazard_ratio_lower", "hazard_ratio_upper"]].to_numpy())
    profile = model.confidence_interval(["x2"], method="profile", level=0.9)
    (line,) = (
        one for one in rs.plot.forest(model, interval=profile).lines if one.get_zorder() == 3
    )
    assert_allclose(line.get_xdata(), np.exp(profile["x2"]))
    with pytest.raises(rs.InputError, match="did you mean 'x1'"):
        rs.plot.forest(model, emphasised=["x11"])


def test_forest_columns_do_not_overlap(estimate: rs.cohort.Estimate) -> None:
    """Also of bold lines, long labels, and intervals without an end."""
    infinite = dataclasses.replace(
        estimate, status="events_in_one_arm", log_hr=np.inf, lower=0.3, upper=np.inf, se=np.inf
    )
    absent = dataclasses.replace(
        estimate, status="no_events", log_hr=np.nan, lower=np.nan, upper=np.nan, se=np.nan
    )
    rows = {
        "a label that is longer than most labels are": estimate,
        "infinite": infinite,
        "absent": absent,
    }
    axes = rs.plot.forest(rows, emphasised=[next(iter(rows))])
    axes.figure.savefig(BytesIO())
    boxes = [t.get_window_extent() for t in axes.texts]
    for k, one in enumerate(boxes):
        assert one.x0 >= 0
        assert one.x1 <= axes.figure.bbox.x1
        for other in boxes[k + 1 :]:
            apart = one.x1 <= other.x0 or other.x1 <= one.x0
            assert apart or one.y1 <= other.y0 + 1 or other.y1 <= one.y0 + 1
    assert {"no events", "∞ (1.35 to ∞)"} <= set(words(axes))
    arrows = [line for line in axes.lines if line.get_marker() == ">"]
    assert len(arrows) == 1


# ------------------------------------------------------------------------- controls


@pytest.fixture(scope="module")
def controls() -> rs.cohort.Controls:
    rng = np.random.default_rng(6)
    se = rng.uniform(0.05, 0.4, 30)
    return rs.cohort.Controls(rng.normal(0.1, np.hypot(0.15, se)), se)


def test_contours_of_the_likelihood_are_those_of_the_formula(controls: rs.cohort.Controls) -> None:
    found = rs.cohort.calibrate(controls, [0.3], [0.1], method="likelihood")
    axes = rs.plot.negative_controls(found)
    lower, upper = (line for line in axes.lines if len(line.get_xdata()) > 100)
    se = np.asarray(lower.get_ydata())
    half = Z * np.sqrt(found.null.sd**2 + se**2)
    assert_allclose(lower.get_xdata(), np.exp(found.null.mean - half))
    assert_allclose(upper.get_xdata(), np.exp(found.null.mean + half))
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    for line, sign in zip(dashed, (-1, 1), strict=True):
        assert_allclose(line.get_xdata(), np.exp(sign * Z * np.asarray(line.get_ydata())))
    points = next(line for line in axes.lines if line.get_marker() == "o")
    assert_allclose(points.get_xdata(), np.exp(controls.log_rr))
    assert_allclose(points.get_ydata(), controls.se)


def test_contours_of_the_posterior_have_a_calibrated_p_of_005(
    controls: rs.cohort.Controls, estimate: rs.cohort.Estimate
) -> None:
    found = rs.cohort.calibrate(controls, [0.3], [0.1])
    axes = rs.plot.negative_controls(found, estimates=estimate)
    lower, upper = (line for line in axes.lines if len(line.get_xdata()) > 100)
    for line in (lower, upper):
        at = [20, 60, 100]
        b, se = np.log(line.get_xdata())[at], np.asarray(line.get_ydata())[at]
        assert_allclose(rs.cohort.calibrate(controls, b, se).p, 0.05, rtol=1e-6)
    diamond = next(line for line in axes.lines if line.get_marker() == "D")
    assert_allclose(diamond.get_xdata(), [estimate.hr])


def test_too_few_controls_have_no_contours() -> None:
    few = rs.cohort.Controls([0.1, 0.2], [0.1, 0.1])
    found = rs.cohort.calibrate(few, [0.3], [0.1])
    lower, upper = found.unremarkable([0.1, 0.2])
    assert np.isnan([lower, upper]).all()
    axes = rs.plot.negative_controls(found)
    assert not axes.collections
    with pytest.raises(rs.InputError, match="there are no negative controls"):
        rs.plot.negative_controls(
            rs.cohort.calibrate(rs.cohort.Controls([np.nan], [0.1]), [0.3], [0.1])
        )
    with pytest.raises(rs.InputError, match="`estimates` must be an Estimate"):
        rs.plot.negative_controls(found, estimates=[0.3])  # type: ignore[arg-type]


def test_long_names_of_covariates_have_two_lines() -> None:
    long = "condition_era group during day -365 through 0 days relative to index: Osteoarthritis"
    longer = f"{long[:-14]}{'Degenerative disorder of the musculoskeletal system and skin ' * 2}"
    people = rs.cohort.Population([1, 1, 0, 0])
    values = np.array([[1.0, 3, 0, 2], [1.0, 0, 0, 0], [1.0, 2, 3, 9]])
    x = Design.from_columns(dict(zip((long, longer, "age"), values, strict=True)))
    axes = rs.plot.love_plot(rs.cohort.balance(x, people))
    names = {label.get_text() for label in axes.get_yticklabels()}
    whole = {name.replace("\n", " ") for name in names}
    assert {long, "age"} <= whole
    (cut,) = whole - {long, "age"}
    assert cut.startswith("condition_era group during day -365")
    assert cut.endswith("… of the musculoskeletal system and skin")
    assert max(name.count("\n") for name in names) == 1


# ------------------------------------------------------------------- tipping points


def test_tipping_points_of_a_normal_confounder() -> None:
    points = rs.cohort.tipping_points(0.5, 0.35, 0.8, scale="risk", difference=[0.2, 0.9])
    axes = rs.plot.tipping_points(
        points, benchmarks={"age": (0.5, 0.5), "sex": (0.4, 3.0)}, biases={"worst control": 1.5}
    )
    solid, dashed, dotted = (line for line in axes.lines if line.get_marker() == "None")
    for line, bias in ((solid, 0.8), (dashed, 0.5), (dotted, 1.5)):
        x, y = line.get_xdata(), line.get_ydata()
        assert_allclose(y[100:] ** x[100:], np.exp(abs(np.log(bias))), rtol=1e-12)
    # The one that makes the ratio smaller is filled; the other is open. Both axes are folded.
    filled, hollow = (line for line in axes.lines if line.get_marker() == "o")
    assert_allclose([filled.get_xdata()[0], filled.get_ydata()[0]], [0.5, 2.0])
    assert_allclose([hollow.get_xdata()[0], hollow.get_ydata()[0]], [0.4, 3.0])
    assert hollow.get_markerfacecolor() == "white"
    assert set(words(axes)) >= {"age", "sex"}
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[:3] == ["the interval reaches 1", "the estimate is 1", "worst control"]
    assert axes.get_xlim()[1] > 0.9


def test_names_of_covariates_cross_no_line_of_tipping_points() -> None:
    points = rs.cohort.tipping_points(0.87, 0.79, 0.96, scale="risk", difference=0.5)
    near = {f"covariate {k}": (0.46, effect) for k, effect in enumerate((1.09, 1.36, 1.2))}
    near |= {"steep": (0.03, 4.0), "flat": (0.2, 1.22)}
    axes = rs.plot.tipping_points(points, benchmarks=near)
    figure = axes.figure
    figure.canvas.draw()
    names = [text for text in axes.texts if text.get_text() in near]
    assert len(names) == len(near)
    for text in names:
        box = text.get_window_extent()
        for line in (line for line in axes.lines if line.get_marker() == "None"):
            x, y = axes.transData.transform(line.get_xydata()).T
            inside = (box.x0 <= x) & (x <= box.x1) & (box.y0 <= y) & (y <= box.y1)
            assert not inside.any(), text.get_text()


@pytest.mark.parametrize(("ratio", "rarer"), [(2.0, "comparator"), (0.5, "target")])
def test_tipping_points_of_a_binary_confounder(ratio: float, rarer: str) -> None:
    ends = (1.5, 3.0) if ratio > 1 else (0.3, 1 / 1.5)
    shares = {f"{rarer}_prevalence": [0.1, 0.3]}
    other = "target" if rarer == "comparator" else "comparator"
    points = rs.cohort.tipping_points(
        ratio, *ends, scale="risk", **shares, **{f"{other}_prevalence": 0.6}
    )
    axes = rs.plot.tipping_points(points)
    assert other in axes.get_xlabel()
    assert len(axes.lines) == 4
    for line, level in zip(axes.lines[::2], (0.1, 0.3), strict=True):
        p, effect = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        known = np.isfinite(effect)
        assert known.any()
        bias = (1 + (effect - 1) * p) / (1 + (effect - 1) * level)
        assert_allclose(bias[known], 1.5, rtol=1e-10)


def test_tipping_points_that_cannot_be_drawn() -> None:
    inside = rs.cohort.tipping_points(1.2, 0.9, 1.5, scale="risk", difference=0.5)
    with pytest.raises(rs.InputError, match="contains 1"):
        rs.plot.tipping_points(inside)
    binary = rs.cohort.tipping_points(
        1.5, 1.2, 1.8, scale="risk", target_prevalence=0.5, comparator_prevalence=0.1
    )
    with pytest.raises(rs.InputError, match="`benchmarks` are for a normal confounder"):
        rs.plot.tipping_points(binary, benchmarks={"age": (0.1, 2.0)})
    with pytest.raises(rs.InputError, match="tipping_points gives"):
        rs.plot.tipping_points(1.5)  # type: ignore[arg-type]


def test_the_axis_of_controls_has_the_name_of_the_effect() -> None:
    controls = rs.cohort.Controls([0.2, -0.1, 0.3, 0.1, 0.0, 0.25], [0.1] * 6)
    found = rs.cohort.calibrate(controls, [0.5], [0.1], method="likelihood")
    people = rs.cohort.Population([1, 0] * 20)
    y = rs.Surv(range(1, 41), [1, 0, 0, 1] * 10)
    odds = rs.cohort.fit_outcome(y, people, model="logistic")
    assert rs.plot.negative_controls(found, estimates=odds).get_xlabel() == "odds ratio"
    assert rs.plot.negative_controls(found).get_xlabel() == "hazard ratio"
    assert rs.plot.negative_controls(found, xlabel="rate ratio").get_xlabel() == "rate ratio"


def test_estimates_of_both_arms() -> None:
    people = rs.cohort.Population([1, 0] * 20)
    y, x = rs.Surv(range(1, 41), [1] * 40), [[k % 3] for k in range(40)]
    found = rs.cohort.standardize(y, people, x, [30, 10, 20])
    axes = rs.plot.arm_estimates(found, labels=("new", "old"))
    target, comparator = axes.lines
    np.testing.assert_array_equal(target.get_xdata(), [0, 10, 20, 30])
    np.testing.assert_array_equal(target.get_ydata(), np.append(0, found.target[0, [1, 2, 0]]))
    np.testing.assert_array_equal(
        comparator.get_ydata(), np.append(0, found.comparator[0, [1, 2, 0]])
    )
    first = axes.collections[0].get_segments()[0]
    np.testing.assert_allclose(first[:, 1], [found.target_lower[0, 1], found.target_upper[0, 1]])
    assert {t.get_text() for t in axes.texts} == {"new", "old"}
    means = rs.plot.arm_estimates(rs.cohort.restricted_mean(y, people, [10, 20]), "time_lost")
    assert means.get_ylabel() == "time lost"
    with pytest.raises(rs.InputError, match="measure"):
        rs.plot.arm_estimates(found, "risky")
    with pytest.raises(rs.InputError, match="riskset.cohort.standardize"):
        rs.plot.arm_estimates(y)  # type: ignore[arg-type]
