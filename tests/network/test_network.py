"""A network of sites: what is read, what must agree, what is written, and evidence of a study."""

import csv
import json
import shutil
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import riskset as rs
from network.simulated import PLACE, profile, profile_of_r
from report.parsed import parse
from riskset._messages import spoken
from riskset.cli.main import app
from riskset.cli.wording import COMMAND_LINE
from riskset.network import Site, SiteLikelihood
from riskset.network.evidence import EstimateKey
from study.small import people, run

SITES = ("north", "south", "west")


def study_run(folder, seed, n=300, **changes):
    """A study of one site, with six negative controls."""
    rng = np.random.default_rng(seed)
    columns = people(n, seed)
    outcomes = {"death": {"time": "days", "event": "died", "label": "Death"}}
    for k in range(6):
        columns[f"c{k}"] = rng.integers(0, 2, n)
        outcomes[f"control {k}"] = {
            "time": "days", "event": f"c{k}", "kind": "negative control",
        }  # fmt: skip
    folder.mkdir()
    data = {"people": "people.parquet", "treatment": "drug", "id": "id", "name": folder.name}
    limits = {"max_mdrr": 90.0, "max_smd": 1.0, "min_equipoise": 0.01, "max_ease": 9.0}
    run(folder, columns, **({"data": data, "outcomes": outcomes, "diagnostics": limits} | changes))
    return folder / "out"


def small_run(folder, seed, limits=None, time="days", **changes):
    """A study of one outcome without controls."""
    folder.mkdir()
    columns = people(300, seed)
    columns[time] = columns.pop("days")
    data = {"people": "people.parquet", "treatment": "drug", "id": "id", "name": folder.name}
    outcomes = {"death": {"time": time, "event": "died"}}
    loose = {"max_mdrr": 90.0, "max_smd": 1.0, "min_equipoise": 0.01, "max_ease": 9.0}
    options = {"data": data, "outcomes": outcomes, "diagnostics": limits or loose}
    run(folder, columns, **(options | changes))
    return folder / "out"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("sites")
    return {name: study_run(place / name, k) for k, name in enumerate(SITES, 3)}


@pytest.fixture(scope="module")
def network(folders):
    return rs.network.meta(list(folders.values()))


def test_names_are_those_of_the_data(network):
    assert [site.name for site in network.sites] == list(SITES)
    assert repr(network) == "NetworkResults(3 sites: 1 estimate)"


def test_only_outcomes_are_pooled_and_controls_correct(network):
    assert {row["outcome"] for row in network.rows("pooled")} == {"death"}
    for row in network.rows("sites"):
        assert row["status"] == "ok"
        assert row["n_controls"] >= 5
        assert row["bias_sd"] > 0
        width = np.log(row["hr_upper"] / row["hr_lower"])
        assert np.log(row["corrected_hr_upper"] / row["corrected_hr_lower"]) > width
    found = network.rows("pooled", corrected=True, left_out=None, method="fixed")
    assert [row["n_sites"] for row in found] == [3]


def test_the_estimate_of_a_site_is_its_own(network, folders):
    for name, folder in folders.items():
        (own,) = rs.study.StudyResults.open(folder).rows("estimates", role="main", outcome="death")
        (row,) = network.rows("sites", site=name)
        assert_allclose(row["log_hr"], own["log_hr"], atol=2e-3)
        assert row["se"] == own["se"]
        assert_allclose([row["hr_lower"], row["hr_upper"]],
                        [own["hr_lower"], own["hr_upper"]], rtol=5e-3)  # fmt: skip


def test_settings_that_differ_are_named_with_their_site(folders, tmp_path):
    other = small_run(tmp_path / "east", 9, analyses={"matched": {"match": {"caliper": 0.1}}})
    with pytest.raises(rs.InputError) as error:
        rs.network.meta([folders["north"], other])
    assert "'north' and 'east' differ in the setting `analyses.matched.match.caliper`" in str(
        error.value
    )
    assert "0.2 at 'north' and 0.1 at 'east'" in str(error.value)


def test_settings_must_agree_where_the_first_site_has_no_entry():
    def site(name, **ratios):
        one = rs.network.SiteEstimate(likelihood=SiteLikelihood.normal(0.1, 0.2))
        keys = [EstimateKey("t", "c", "o", analysis) for analysis in ratios]
        analyses = {analysis: {"match": {"ratio": r}} for analysis, r in ratios.items()}
        settings = {"title": "A study", "analyses": analyses}
        return Site(name, dict.fromkeys(keys, one), settings)

    three = [site("a", x=1), site("b", x=1, y=1), site("c", x=1, y=4)]
    with pytest.raises(rs.InputError, match="'b' and 'c' differ in the setting `analyses.y.match"):
        rs.network.meta(three)


def test_columns_may_have_other_names_at_another_site(tmp_path):
    first = small_run(tmp_path / "north", 8)
    other = small_run(tmp_path / "east", 9, time="followed")
    found = rs.network.meta([first, other])
    assert found.rows("pooled", method="fixed")[0]["n_sites"] == 2


@pytest.mark.parametrize(
    ("limits", "is_pooled"), [({"max_smd": 1e-6}, False), ({"max_mdrr": 1.01}, True)]
)
def test_failed_diagnostics_keep_an_estimate_out(limits, is_pooled, tmp_path):
    """All but the smallest detectable ratio, which only says that a site is small."""
    loose = {"max_mdrr": 90.0, "max_smd": 1.0, "min_equipoise": 0.01, "max_ease": 9.0}
    other = [small_run(tmp_path / name, k, loose | limits) for k, name in enumerate("ab")]
    if not is_pooled:
        with pytest.raises(rs.InputError, match="no estimate can be pooled"):
            rs.network.meta(other)
        return
    found = rs.network.meta(other)
    (row, _) = found.rows("sites")
    assert row["status"] == "ok"
    (own,) = rs.study.StudyResults.open(other[0] / "private").rows("estimates", role="main")
    assert_allclose(row["log_hr"], own["log_hr"], atol=2e-3)


@pytest.mark.parametrize(
    ("sites", "words"),
    [
        ([], "two or more sites"),
        ([Site.of_profile("a", SiteLikelihood.normal(0, 1))], "there is 1"),
        ([Site.of_profile("a", SiteLikelihood.normal(0, 1))] * 2, "two sites have the name 'a'"),
        ([3, 4], "a site is a folder"),
        (3, "`sites` must be a sequence"),
    ],
)
def test_what_is_no_network(sites, words):
    with pytest.raises(rs.InputError, match=words):
        rs.network.meta(sites)


@pytest.mark.parametrize("options", [{"level": 1.0}, {"prior_sd": (1.0,)}, {"prior_sd": (0, 1)}])
def test_options_that_cannot_be(options):
    sites = [Site.of_profile(name, SiteLikelihood.normal(0, 1)) for name in "ab"]
    with pytest.raises(rs.InputError, match=next(iter(options))):
        rs.network.meta(sites, **options)


def test_evidence_gives_the_results_of_the_folder(folders, network, tmp_path):
    given = {}
    for name, folder in folders.items():
        results = rs.study.StudyResults.open(folder)
        given[name] = rs.network.write_evidence(results, tmp_path / name)
    again = rs.network.meta(given)
    assert again.rows("pooled") == network.rows("pooled")
    assert again.rows("sites") == network.rows("sites")


def test_the_files_of_evidence(folders, tmp_path):
    folder = rs.network.write_evidence(rs.study.StudyResults.open(folders["north"]), tmp_path / "e")
    with (folder / "estimates.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["kind"] for row in rows].count("negative control") == 6
    first = (folder / f"profiles/{int(rows[0]['profile']):04d}.csv").read_text().splitlines()
    assert first[0] == "point,value,derivative"
    results = rs.study.StudyResults.open(folders["north"])
    points = results.rows("likelihood_profiles", outcome="death")
    expected = [[p["log_hr"], p["log_likelihood"], p["derivative"]] for p in points]
    assert [[float(word) for word in line.split(",")] for line in first[1:]] == expected
    document = json.loads((folder / "evidence.json").read_text())
    assert document["settings"] == results.study["settings"]


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R")
def test_r_reads_the_evidence(folders, tmp_path):
    """The columns by which EvidenceSynthesis knows a grid with gradients, all numeric."""
    folder = rs.network.write_evidence(rs.study.StudyResults.open(folders["north"]), tmp_path / "e")
    script = (
        f'e <- read.csv("{folder}/estimates.csv"); e <- e[!is.na(e$profile), ]; '
        f'p <- lapply(sprintf("{folder}/profiles/%04d.csv", e$profile), read.csv); '
        "stopifnot(all(sapply(p, function(d) identical(names(d), c('point', 'value', "
        "'derivative')) && all(sapply(d, is.numeric)) && !is.unsorted(d$point)))); "
        "cat(nrow(e), sum(e$logRr[1]), sep = '\\n')"
    )
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True, check=True)
    n, log_rr = done.stdout.split()
    (own,) = rs.study.StudyResults.open(folders["north"]).rows(
        "estimates", role="main", outcome="death"
    )
    assert int(n) == len(list((folder / "profiles").iterdir())) >= 6
    assert float(log_rr) == pytest.approx(own["log_hr"], rel=1e-6)


def test_damaged_evidence_is_refused(folders, tmp_path):
    folder = rs.network.write_evidence(rs.study.StudyResults.open(folders["north"]), tmp_path / "e")
    path = folder / "profiles/0001.csv"
    path.write_text(path.read_text().replace("-", "+", 1))
    with pytest.raises(rs.InputError, match=r"0001\.csv' is damaged"):
        rs.network.meta([folders["south"], folder])
    path.unlink()
    with pytest.raises(rs.InputError, match="is missing"):
        rs.network.meta([folders["south"], folder])
    (folder / "evidence.json").write_text("{}")
    with pytest.raises(rs.InputError, match="does not agree with its checksum"):
        rs.network.meta([folders["south"], folder])


def test_a_folder_of_something_else_is_not_replaced(folders, network, tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(rs.InputError, match="has files, which an export would replace"):
        rs.network.write_evidence(rs.study.StudyResults.open(folders["north"]), tmp_path)
    with pytest.raises(rs.InputError, match="has files, which pooled results would replace"):
        network.save(tmp_path)
    with pytest.raises(rs.InputError, match="it is a file"):
        network.save(tmp_path / "note.txt")
    assert (tmp_path / "note.txt").read_text() == "mine"


def test_files_of_profiles_in_every_form(tmp_path):
    shutil.copy(PLACE / "profile-2.csv", tmp_path / "two.csv")
    (tmp_path / "normal.csv").write_text("site,logRr,seLogRr\n001,0.1,0.2\nb,-0.3,0.1\n")
    (tmp_path / "custom.csv").write_text("mu,sigma,gamma\n0.1,0.5,0.2\n")
    (tmp_path / "skew.csv").write_text("mu,sigma,alpha\n0.1,0.5,0.2\n")
    x = np.linspace(-np.log(10), np.log(10), 1000)
    grid = {repr(float(one)): [float(-(one**2))] for one in x}
    pq.write_table(pa.table(grid), tmp_path / "grid.parquet")
    names = ("two.csv", "normal.csv", "custom.csv", "skew.csv", "grid.parquet")
    found = rs.network.meta([tmp_path / name for name in names])
    assert [s.name for s in found.sites] == ["two", "001", "b", "custom", "skew", "grid"]
    log_hr = {row["site"]: row["log_hr"] for row in found.rows("sites")}
    assert_allclose([log_hr["001"], log_hr["b"], log_hr["custom"]], [0.1, -0.3, 0.1], atol=1e-6)
    assert_allclose(log_hr["two"], -0.093534358, atol=1e-3)
    assert_allclose(log_hr["grid"], 0.0, atol=3e-3)


def test_columns_of_no_likelihood(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(rs.InputError, match=r"the columns of a\.csv do not describe a likelihood"):
        rs.network.meta([tmp_path / "a.csv", tmp_path / "a.csv"])


def test_the_folder_of_a_network(network, tmp_path):
    folder = network.save(tmp_path / "network")
    for name in ("sites", "pooled", "heterogeneity"):
        table = pq.read_table(folder / f"{name}.parquet")
        assert table.to_pylist() == network.rows(name)
        with (folder / f"{name}.csv").open() as stream:
            assert len(list(csv.DictReader(stream))) == table.num_rows
    assert (folder / "figures/forest-1.png").read_bytes()[:4] == b"\x89PNG"
    document = json.loads((folder / "network.json").read_text())
    assert list(document["sites"]) == list(SITES)
    first = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    network.save(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("*.*")} == first


def test_the_report(network, tmp_path):
    path = network.save(tmp_path / "network") / "network.html"
    page = parse(path)
    assert page.one("h1").text == "Pooled results of 3 sites"
    text = page.one("body").text.replace("\u202f", " ")
    for words in (*SITES, "Death: new versus old, matched", "Leave one out", "Hartung and Knapp"):
        assert words in text
    ids = [element.attrs["id"] for element in page.all("*") if "id" in element.attrs]
    assert len(ids) == len(set(ids))
    (row,) = network.rows("pooled", method="fixed", corrected=False, left_out=None)
    assert f"{row['hr']:.2f}"[:4] in text
    assert "src=" not in path.read_text("utf-8")


def test_forest_plot(network):
    ax = network.forest("death")
    words = [text.get_text() for text in ax.texts]
    for name in (*SITES, "All sites, fixed effect", "Prediction for a new site"):
        assert name in words
    with pytest.raises(rs.InputError, match="no estimate has these names"):
        network.forest("stroke")


def test_odds_ratios_have_their_name(tmp_path):
    analyses = {"a": {"match": {}, "model": {"kind": "logistic"}}}
    places = [small_run(tmp_path / name, k, analyses=analyses) for k, name in enumerate(SITES[:2])]
    found = rs.network.meta(places)
    assert found.forest("death").get_xlabel() == "odds ratio"
    found.save(tmp_path / "network")
    text = parse(tmp_path / "network/network.html").text
    assert "Odds ratios, pooled by likelihood profiles" in text
    assert "the odds ratio at which the sum of the log likelihood profiles" in text
    assert "hazard" not in text.lower()
    arguments = ["network", "meta", *map(str, places), "--out", str(tmp_path / "again")]
    told = CliRunner().invoke(app, arguments)
    assert "odds ratio" in told.stdout


def test_a_frame(network):
    frame = network.to_frame("sites", library="polars")
    assert frame.height == 3
    with pytest.raises(rs.InputError, match="'site'"):
        network.rows("site")
    with pytest.raises(rs.InputError, match="outcom"):
        network.rows("sites", outcom="death")


def test_without_outcomes_in_an_arm_the_shared_ratio_is_the_limit():
    """The supremum is what the estimate's log likelihood ratio says, not the end of the profile."""
    site = profile_of_r(1)
    assert site.is_monotone
    top = float(site(0.0)) + 5.0
    found = rs.network.meta({
        "a": Site.of_profile("", SiteLikelihood(site.points, site.values, site.derivatives, top)),
        "b": Site.of_profile("", profile(4)),
    })  # fmt: skip
    (row,) = found.rows("sites", site="a")
    assert row["hr"] == 0.0
    assert_allclose(site(np.log(row["hr_upper"])), top - 3.841458820694124 / 2, atol=1e-6)


def test_command_line(folders, tmp_path):
    call = CliRunner().invoke
    evidence = tmp_path / "evidence"
    done = call(app, ["study", "export", str(folders["north"]), "--evidence", str(evidence)])
    assert done.exit_code == 0, done.output
    out = tmp_path / "network"
    sites = [f"n={evidence}", str(folders["south"])]
    done = call(app, ["network", "meta", *sites, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "fixed effect" in done.output
    assert json.loads((out / "network.json").read_text())["sites"].keys() == {"n", "south"}


def test_nothing_to_export(folders):
    done = CliRunner().invoke(app, ["study", "export", str(folders["north"])])
    assert done.exit_code == 2
    assert "there is nothing to write" in done.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--level", "2"], "--level must"),
        (["--prior-sd", "2"], "--prior-sd must"),
        (["--prior-sd", "0,1"], "--prior-sd must"),
        (["--prior-sd", "a,1"], "--prior-sd must"),
    ],
)
def test_wrong_options_are_named_as_they_are_written(folders, tmp_path, options, message):
    sites = [str(folders["north"]), str(folders["south"])]
    words = ["network", "meta", *sites, "--out", str(tmp_path / "out"), *options]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, rs.InputError)
    assert message in spoken(done.exception, COMMAND_LINE)
