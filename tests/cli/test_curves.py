"""``riskset curves``: estimates by group in a table, a picture of them, and a test."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import riskset as rs
from cli.runs import GOLDEN, Run
from riskset.cli.terminal import plain_number

CUMINC = json.loads((GOLDEN / "cmprsk_cuminc.json").read_text())


def read(path: str) -> pd.DataFrame:
    return pd.read_csv(path) if path.endswith("csv") else pd.read_parquet(path)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_survival_by_hand(run: Run, ending: str) -> None:
    # Events at 1 and 3 in a, at 2 and 4 in b; what else is in the table does not matter.
    Path("t.csv").write_text("arm,days,died,note\na,1,1,\nb,2,1,x\na,3,1,1\nb,4,1,y\na,3,0,\n")
    options = ["--time", "days", "--event", "died", "--group", "arm"]
    out = f"k.{ending}"
    ended = run("curves", "t.csv", *options, "--out", out, "--plot", "k.png")
    assert (ended.code, ended.err) == (0, "")
    table = read(out)
    assert list(table)[:6] == ["group", "time", "at_risk", "events", "censored", "survival"]
    assert table["group"].tolist() == ["a", "a", "b", "b"]
    assert table["time"].tolist() == [1, 3, 2, 4]
    assert table["at_risk"].tolist() == [3, 2, 2, 1]
    assert table["events"].tolist() == [1, 1, 1, 1]
    assert table["censored"].tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(table["survival"], [2 / 3, 1 / 3, 1 / 2, 0], atol=1e-15)
    # Expected in a: 3/5 + 2/4 + 2/3; variance: 6/25 + 1/4 + 2/9; the last event has one at risk.
    expected, variance = 3 / 5 + 2 / 4 + 2 / 3, 6 / 25 + 1 / 4 + 2 / 9
    statistic = (2 - expected) ** 2 / variance
    assert f"chi-square {plain_number(statistic)}, df 1" in ended.out
    p = math.erfc(math.sqrt(statistic / 2))  # of a chi-square with one degree of freedom
    assert run("curves", "t.csv", *options, "--out", out, "--plot", "k.svg").code == 0
    assert f"p = {p:.2f}" in Path("k.svg").read_text("utf-8")
    assert Path("k.png").read_bytes()[:4] == b"\x89PNG"


def test_incidence_agrees_with_cmprsk(run: Run) -> None:
    keys = ["time", "event", "group"]
    pd.DataFrame({key: CUMINC[key] for key in keys}).to_parquet("t.parquet")
    common = ["curves", "t.parquet", "--times", "1,2", "--group", "group"]
    assert run(*common, "--out", "all.csv").code == 0
    table = pd.read_csv("all.csv")
    estimates = np.array(CUMINC["cuminc_by_group"]["est"])
    assert table["group"].tolist() == np.repeat([0, 1, 2], 4).tolist()
    np.testing.assert_allclose(table["incidence"], estimates.ravel(), atol=5.1e-8)
    ended = run(*common, "--cause", 2, "--out", "two.parquet", "--plot", "two.pdf")
    assert ended.code == 0
    two = pd.read_parquet("two.parquet")
    assert (two["cause"] == 2).all()
    np.testing.assert_allclose(two["incidence"], estimates[:, 1].ravel(), atol=5.1e-8)
    assert two["group"].dtype.kind == "i"
    test = rs.gray_test(rs.Surv(CUMINC["time"], CUMINC["event"]), CUMINC["group"], 2)
    assert f"chi-square {plain_number(test.statistic)}, df 2" in ended.out
    assert f"p = {plain_number(test.p_value, 3)}" in ended.out
    assert Path("two.pdf").read_bytes()[:4] == b"%PDF"


def test_times_after_the_follow_up_are_empty(run: Run) -> None:
    # The follow-up of a ends with a censoring at 3; in b nobody is left after 4.
    Path("t.csv").write_text("arm,time,event\na,1,1\na,3,0\nb,2,1\nb,4,1\n")
    ended = run("curves", "t.csv", "--group", "arm", "--times", "3,5", "--out", "k.csv")
    assert ended.code == 0
    table = pd.read_csv("k.csv")
    np.testing.assert_array_equal(table["survival"], [0.5, np.nan, 0.5, 0])
    assert table["at_risk"].tolist() == [1, 0, 1, 0]
    assert "ends before the last of the times: a at 3. Later rows are empty." in ended.out
    ended = run("curves", "t.csv", "--group", "arm", "--times", "3", "--out", "k.csv")
    assert "ends before" not in ended.out


def test_causes_that_are_text(run: Run) -> None:
    frame = pd.DataFrame({key: CUMINC[key] for key in ("time", "group")})
    frame["fate"] = np.array(["alive", "relapse", "death"])[CUMINC["event"]]
    frame.to_csv("t.csv", index=False)
    common = ["curves", "t.csv", "--event", "fate", "--group", "group", "--times", "1,2"]
    named = run(*common, "--censored", "alive", "--cause", "death", "--out", "c.csv")
    assert named.code == 0, named.err
    estimates = np.array(CUMINC["cuminc_by_group"]["est"])[:, 1].ravel()
    np.testing.assert_allclose(pd.read_csv("c.csv")["incidence"], estimates, atol=5.1e-8)
    asked = run(*common, "--cause", "death", "--out", "c.csv")
    assert asked.code == 2
    assert "name it with --censored" in asked.err
    frame.assign(x=np.arange(len(frame)) % 7).to_csv("f.csv", index=False)
    model = ["--model", "finegray", "--event", "fate", "--censored", "alive", "--cause", "death"]
    assert run("fit", "f.csv", *model, "--out", "text.json", "--quiet").code == 0
    frame["fate"] = CUMINC["event"]
    frame.assign(x=np.arange(len(frame)) % 7).to_csv("f.csv", index=False)
    model = ["--model", "finegray", "--event", "fate", "--cause", "2"]
    assert run("fit", "f.csv", *model, "--out", "code.json", "--quiet").code == 0
    text, code = (json.loads(Path(f"{name}.json").read_text()) for name in ("text", "code"))
    assert text["coef"] == code["coef"]
    assert (text["cause"], code["cause"]) == ("death", 2)
    new = ["f.csv", "--times", "1", "--quiet", "--out"]
    assert run("predict", "text.json", *new, "text.csv").code == 0
    assert run("predict", "code.json", *new, "code.csv").code == 0
    assert Path("text.csv").read_text() == Path("code.csv").read_text()


def test_weights_count_rows_and_late_entry_has_no_gray_test(run: Run) -> None:
    rows = "time,event,entry,w,g\n3,1,0,1,a\n4,2,1,1,b\n5,1,4,0,a\n6,0,1,2,b\n7,1,2,1,b\n"
    Path("t.csv").write_text(rows)
    ended = run("curves", "t.csv", "--entry", "entry", "--group", "g", "--out", "c.csv")
    assert "Gray's test is not defined for rows that enter late" in ended.out
    ended = run("curves", "t.csv", "--weight", "w", "--group", "g", "--out", "c.csv")
    expected = rs.gray_test(rs.Surv([3, 4, 6, 6, 7], [1, 2, 0, 0, 1]), list("abbbb"))
    assert f"chi-square {plain_number(expected.statistic)}, df 1" in ended.out
    assert "rows of weight 0: 1" in ended.out
    Path("t.csv").write_text(rows.replace("2,1,b", "2,0.5,b"))
    ended = run("curves", "t.csv", "--weight", "w", "--group", "g", "--out", "c.csv")
    assert (ended.code, "none: --weight must be whole" in ended.out) == (0, True)


def test_many_groups_have_a_table_and_no_picture(run: Run) -> None:
    groups = np.arange(120) % 60
    frame = pd.DataFrame({"time": np.arange(120) + 1, "event": 1, "site": groups})
    frame.to_csv("t.csv", index=False)
    common = ("curves", "t.csv", "--group", "site", "--out", "c.csv")
    ended = run(*common, "--plot", "c.png")
    assert ended.code == 2
    assert "60 groups do not fit one picture, which has room for 30" in ended.err
    assert "leave --plot out" in ended.err
    assert not Path("c.csv").exists()
    ended = run(*common)
    assert "and 10 more groups" in ended.out
    assert "df 59" in ended.out
    assert pd.read_csv("c.csv")["group"].nunique() == 60


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group", "arm"], "--group column 'arm' was not found in t.csv"),
        (["--cause", "3"], "code 3"),
        (["--cause", "death"], "--cause is 'death', but the events are whole numbers"),
        (["--plot", "c.png", "--group", "group"], "name one with --cause"),
        (["--plot", "c.gif"], "must end in .png or .pdf or .svg"),
        (["--level", "2"], "--level must be between 0 and 1"),
        (["--times", "1,x"], "--times must be numbers"),
        (["--time-digits", "-1"], "--time-digits must be between 0 and 15"),
        (["--censored", "none"], "--censored is 'none'"),
    ],
)
def test_bad_curves(run: Run, options: list[str], message: str) -> None:
    keys = ["time", "event", "group"]
    pd.DataFrame({key: CUMINC[key] for key in keys}).to_csv("t.csv", index=False)
    ended = run("curves", "t.csv", *options, "--out", "c.csv")
    assert ended.code == 2
    assert message in ended.err
    assert [path.name for path in Path().iterdir()] == ["t.csv"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_restricted_means(run: Run, ending: str) -> None:
    # In a the survival is 1, 1/2 from 1 on; in b 1, 1/2 from 2 on, 0 from 4 on.
    Path("t.csv").write_text("arm,days,died\na,1,1\nb,2,1\na,3,0\nb,4,1\n")
    options = ["--time", "days", "--event", "died", "--group", "arm", "--out", "k.csv"]
    out = f"m.{ending}"
    ended = run("curves", "t.csv", *options, "--rmst", "2.5,4", "--rmst-out", out)
    assert (ended.code, ended.err) == (0, "")
    table = read(out)
    assert table["group"].tolist() == ["a", "a", "b", "b"]
    assert table["time"].tolist() == [2.5, 4, 2.5, 4]
    np.testing.assert_allclose(table["mean"], [1.75, np.nan, 2.25, 3], rtol=1e-15)
    np.testing.assert_allclose(table["time_lost"], [0.75, np.nan, 0.25, 1], rtol=1e-15)
    assert "b - a" in ended.out
    assert "group 'a' ends at 3, so restricted means up to 4 are not known" in ended.out
    assert f"written to k.csv and {out}" in ended.out
    expected = rs.restricted_mean(
        rs.Surv([1.0, 2, 3, 4], [1, 1, 0, 1]), ["a", "b", "a", "b"], times=2.5
    ).difference("b", "a")
    assert plain_number(expected.lower[0]) in ended.out
    assert plain_number(expected.p_value[0], 3) in ended.out


def test_restricted_means_of_several_causes(run: Run) -> None:
    Path("t.csv").write_text("days,fate\n1,relapse\n2,death\n3,alive\n4,relapse\n")
    options = ["--time", "days", "--event", "fate", "--censored", "alive", "--out", "k.csv"]
    ended = run("curves", "t.csv", *options, "--rmst", "4")
    assert ended.code == 0
    for words in ("without an event", "lost to death", "lost to relapse", "2.75"):
        assert words in ended.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--rmst", "0"], "--rmst must be numbers above 0"),
        (["--rmst", "soon"], "--rmst must be numbers above 0"),
        (["--rmst-out", "m.csv"], "but there are none"),
        (["--rmst", "2", "--rmst-out", "m.txt"], "m.txt"),
    ],
)
def test_wrong_horizons(run: Run, options: list[str], words: str) -> None:
    Path("t.csv").write_text("days,died\n1,1\n2,0\n")
    ended = run("curves", "t.csv", "--time", "days", "--event", "died", "--out", "k.csv", *options)
    assert ended.code == 2
    assert words in ended.err
    assert not Path("k.csv").exists()


def test_intervals_bands_and_weights_of_time(run: Run) -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"time": rng.integers(1, 40, 80), "event": rng.integers(0, 2, 80), "arm": np.arange(80) % 2}
    )
    frame.to_csv("t.csv", index=False)
    y, common = rs.Surv(frame["time"], frame["event"]), ("curves", "t.csv", "--group", "arm")
    chosen = ("--interval", "arcsine", "--band", "hall-wellner", "--gamma", 1)
    ended = run(*common, *chosen, "--times", "5,20", "--out", "c.csv", "--plot", "c.png")
    assert (ended.code, ended.err) == (0, "")
    curves = rs.kaplan_meier(y, frame["arm"], interval="arcsine")
    table = pd.read_csv("c.csv")
    for name, expected in (("", curves), ("band_", curves.confidence_band("hall-wellner"))):
        values = expected.to_frame([5, 20], library="pandas")
        for end in ("lower", "upper"):
            np.testing.assert_allclose(table[name + end], values[end], rtol=1e-12)
    test = rs.logrank_test(y, frame["arm"], gamma=1)
    assert f"chi-square {plain_number(test.statistic)}, df 1" in ended.out
    assert test.method in ended.out
    ended = run(*common, "--weighting", "tarone-ware", "--out", "c.csv")
    assert "Tarone-Ware test" in ended.out
    frame["event"] = frame["event"] * 2 - (frame["time"] % 2)
    frame["event"] = frame["event"].clip(0)
    frame.to_csv("t.csv", index=False)
    ended = run(*common, "--cause", 1, "--band", "hall-wellner", "--out", "c.csv")
    assert (ended.code, "--band is for survival curves" in ended.err) == (2, True)


def test_weights_that_are_not_counts_have_the_robust_test(run: Run) -> None:
    rows = "time,event,w,g\n3,1,1,a\n4,1,1.5,b\n5,1,2,a\n6,0,0.5,b\n7,1,2,b\n8,1,1,a\n"
    Path("t.csv").write_text(rows)
    ended = run("curves", "t.csv", "--weight", "w", "--group", "g", "--out", "c.csv")
    y, weight = rs.Surv([3, 4, 5, 6, 7, 8], [1, 1, 1, 0, 1, 1]), [1, 1.5, 2, 0.5, 2, 1]
    expected = rs.logrank_test(y, list("ababba"), weight=weight)
    assert expected.is_robust
    assert f"chi-square {plain_number(expected.statistic)}, df 1" in ended.out


def drawn_groups(rng: np.random.Generator, n: int = 90) -> pd.DataFrame:
    frame = pd.DataFrame(
        {"time": rng.integers(1, 40, n), "event": rng.integers(0, 2, n), "dose": np.arange(n) % 3}
    )
    frame["dose"] = np.array([0, 10, 5])[frame["dose"]]
    frame["person"] = [f"p{k // 6}" for k in range(n)]
    frame.to_csv("t.csv", index=False)
    return frame


def test_trends_pairs_and_clusters(run: Run) -> None:
    frame = drawn_groups(np.random.default_rng(5))
    common = ("curves", "t.csv", "--group", "dose", "--out", "c.csv")
    ended = run(*common, "--trend", "0,5,10", "--pairwise", "holm", "--gamma", 1)
    assert (ended.code, ended.err) == (0, "")
    y, dose = rs.Surv(frame["time"], frame["event"]), frame["dose"]
    trend = rs.logrank_test(y, dose, gamma=1).trend([0, 5, 10])
    said = " ".join(ended.out.split())
    assert f"trend chi-square {plain_number(trend.statistic)}, df 1" in said
    assert "; 0 0, 5 5, 10 10" in said
    pairs = rs.pairwise_logrank_test(y, dose, gamma=1)
    lines = [line.split() for line in ended.out.splitlines() if line.startswith(("0, ", "5, "))]
    assert [line[:2] for line in lines] == [["0,", "5"], ["0,", "10"], ["5,", "10"]]
    for line, test, p in zip(lines, pairs, pairs.adjusted_p_value, strict=True):
        shown = [plain_number(test.statistic)]
        shown += [plain_number(value, 3) for value in (test.p_value, p)]
        assert line[2:] == shown

    clusters = ("--cluster", "person", "--rmst", "20", "--rmst-out", "m.csv")
    ended = run(*common, *clusters, "--pairwise", "none", "--trend", "0,5,10")
    assert (ended.code, ended.err) == (0, "")
    person = frame["person"]
    expected = rs.kaplan_meier(y, dose, cluster=person).to_frame(library="pandas")
    alone = rs.kaplan_meier(y, dose).to_frame(library="pandas")
    found = pd.read_csv("c.csv")
    np.testing.assert_allclose(found["lower"], expected["lower"], rtol=1e-12)
    assert not np.allclose(found["lower"], alone["lower"], equal_nan=True)
    means = rs.restricted_mean(y, dose, times=20, cluster=person)
    errors = np.concatenate([mean.standard_error for mean in means])
    np.testing.assert_allclose(pd.read_csv("m.csv")["standard_error"], errors, rtol=1e-12)
    test = rs.logrank_test(y, dose, cluster=person)
    for one, df in ((test, 2), (test.trend([0, 5, 10]), 1)):
        assert f"chi-square {plain_number(one.statistic)}, df {df}" in " ".join(ended.out.split())
    pair = rs.pairwise_logrank_test(y, dose, adjust="none", cluster=person)[0, 5]
    first = next(line for line in ended.out.splitlines() if line.startswith("0, 5"))
    assert first.split()[2:] == [plain_number(pair.statistic), plain_number(pair.p_value, 3)]


def test_max_combo(run: Run) -> None:
    frame = drawn_groups(np.random.default_rng(6))
    two = frame[frame["dose"] < 10]
    two.to_csv("t.csv", index=False)
    common = ("curves", "t.csv", "--group", "dose", "--out", "c.csv", "--max-combo")
    ended = run(*common, "--plot", "k.svg")
    assert (ended.code, ended.err) == (0, "")
    found = rs.max_combo_test(rs.Surv(two["time"], two["event"]), two["dose"])
    rho, gamma = found.weights[int(np.abs(found.z).argmax())]
    words = f"|z| {plain_number(found.statistic)} at rho {rho:g}, gamma {gamma:g}, p = "
    assert words + plain_number(found.p_value, 3) in " ".join(ended.out.split())
    assert "max-combo test: p" in Path("k.svg").read_text("utf-8")
    frame.to_csv("t.csv", index=False)
    ended = run(*common)
    assert ended.code == 2
    assert "compares two groups, but --group has 3" in ended.err
    assert "`riskset curves --pairwise holm`" in ended.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--trend", "1,2,3"], "--trend needs --group"),
        (["--pairwise", "holm"], "--pairwise needs --group"),
        (["--max-combo"], "--max-combo needs --group"),
        (["--rho", "1"], "--rho needs --group"),
        (["--group", "dose", "--rho", "nan"], "--rho must be a finite number, but it is nan"),
        (["--group", "dose", "--rho", "1", "--weighting", "tarone-ware"], "which has no powers"),
        (["--group", "dose", "--trend", "0,5"], "--trend has 2 scores, but there are 3 groups: 0,"),
        (["--group", "dose", "--trend", "0,5,x"], "--trend must be numbers"),
        (["--group", "dose", "--trend", "5,5,5"], "--trend are all 5"),
        (["--group", "dose", "--cause", "1", "--max-combo"], "--max-combo is for survival curves"),
        (["--group", "dose", "--cause", "1", "--pairwise", "holm"], "--pairwise is for survival"),
        (["--group", "dose", "--cause", "1", "--cluster", "person", "--trend", "0,5,10"],
         "Gray's test takes rows as independent, but --cluster was given"),
        (["--cluster", "household"], "--cluster column 'household' was not found"),
    ],
)  # fmt: skip
def test_refused_tests(run: Run, options: list[str], words: str) -> None:
    drawn_groups(np.random.default_rng(7))
    ended = run("curves", "t.csv", *options, "--out", "c.csv")
    assert ended.code == 2
    assert words in " ".join(ended.err.split())
    assert not Path("c.csv").exists()


def test_clusters_and_trends_of_incidence(run: Run) -> None:
    frame = drawn_groups(np.random.default_rng(8))
    frame["event"] += frame["time"] % 2 * frame["event"]
    frame.to_csv("t.csv", index=False)
    y, dose = rs.Surv(frame["time"], frame["event"]), frame["dose"]
    common = ("curves", "t.csv", "--group", "dose", "--cause", 1, "--out", "c.csv")
    ended = run(*common, "--trend", "0,5,10")
    assert (ended.code, ended.err) == (0, "")
    trend = rs.gray_test(y, dose, 1).trend([0, 5, 10])
    assert f"chi-square {plain_number(trend.statistic)}, df 1" in ended.out
    ended = run(*common, "--cluster", "person")
    assert (ended.code, ended.err) == (0, "")
    assert "none: Gray's test takes rows as independent" in " ".join(ended.out.split())
    expected = rs.aalen_johansen(y, dose, cluster=frame["person"]).to_frame(library="pandas")
    limits = expected.loc[expected["cause"] == 1, "lower"]
    np.testing.assert_allclose(pd.read_csv("c.csv")["lower"], limits, rtol=1e-12)
