"""A CDM in a real PostgreSQL server: the same answers as from files, and errors that say why."""

import os
import signal
import subprocess
import sys
import threading
import traceback
from contextlib import closing

import adbc_driver_postgresql.dbapi as postgresql
import duckdb
import psycopg
import psycopg.rows
import pyarrow as pa
import pyarrow.parquet
import pytest

import postgres_server
import riskset as rs
from omop.toy import AT_RISK, COMPARATOR, COMPETING, ELIGIBILITY, OUTCOME, TARGET, toy_tables
from postgres_server import PASSWORD, VOCABULARY
from riskset.data.database import Database
from riskset.warehouse.connection import Warehouse

SCHEMAS = ["cdm", "vocabulary"]
WINDOWS = rs.omop.CovariateSettings(
    ["default", 101, 105, 301, 209, 214, 705, 809, 920, 926, 8, 9, 10, 12]
)


def answers(cdm, settings=None):
    """Everything that a study computes from a CDM."""
    episodes = rs.omop.NewUserCohort(TARGET, COMPARATOR, gap_days=30).read(cdm)
    cohort = ELIGIBILITY.select(cdm, episodes)
    covariates = rs.omop.Covariates.extract(cdm, cohort, settings)
    followed = AT_RISK.follow(cdm, cohort, OUTCOME, COMPETING)
    tables = (episodes.table, cohort.table, covariates.table, covariates.ref, followed.table)
    notes = [note.message for note in (*cohort.notes, *covariates.notes, *followed.notes)]
    return tables, episodes.early, notes


@pytest.fixture(scope="module")
def expected():
    with rs.omop.Cdm(toy_tables()) as cdm:
        return answers(cdm), answers(cdm, WINDOWS)


@pytest.fixture
def opened(postgres, tmp_path):
    """Open the CDM, and list the pulls."""

    def of(connection=None, pulls=None, **options):
        where = postgres.url() if connection is None else connection
        progress = False if pulls is None else pulls.append
        given = {"schema": SCHEMAS, "cache_folder": tmp_path / "cache", "progress": progress}
        return rs.omop.Cdm.connect(where, **(given | options))

    return of


def test_answers_are_those_of_files(opened, expected):
    with opened() as cdm:
        assert (cdm.version, cdm.n_rows("person")) == ("5.4", 2000)
        assert answers(cdm) == expected[0]
    with opened() as cdm:
        assert answers(cdm, WINDOWS) == expected[1]


def test_only_people_of_the_arms_are_pulled_and_only_days_of_windows(opened, expected):
    with opened() as cdm:
        answers(cdm)
        people = len(set(expected[0][0][0].column("person_id").to_pylist()))
        sizes = {name: kept.n_rows for name, kept in cdm.pulled.items()}
    assert sizes["person"] == people
    whole = toy_tables()
    # Records of a year before the first exposure are fewer than those of a life.
    assert 0 < sizes["measurement"] < people / 2000 * whole["measurement"].num_rows
    assert "visit_occurrence" not in sizes
    with opened() as cdm:
        answers(cdm, WINDOWS)
        assert cdm.pulled["measurement"].n_rows > sizes["measurement"]


def test_a_pull_is_not_made_again(opened, expected):
    first, again = [], []
    with opened(pulls=first) as cdm:
        answers(cdm)
    with opened(pulls=again) as cdm:
        assert answers(cdm) == expected[0]
    assert not any(pull.is_reused for pull in first if pull.table == "measurement")
    assert all(pull.is_reused for pull in again)
    # It is said how old the rows are: the server may have others by now.
    assert all(pull.words.endswith(f" MB, pulled on {pull.made.date()}") for pull in again)
    assert {p.made for p in first if p.table == "measurement" and p.is_done} == {
        p.made for p in again if p.table == "measurement"
    }


def test_what_is_kept_is_pulled_again_if_it_is_old_or_damaged(opened, tmp_path, expected):
    with opened() as cdm:
        answers(cdm)
        place = cdm.pulled["measurement"].path
        checksum = cdm.pulled["measurement"].checksum
    damaged = bytearray(place.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    place.write_bytes(damaged)
    pulls = []
    with opened(pulls=pulls) as cdm:
        assert answers(cdm) == expected[0]
        assert cdm.pulled["measurement"].checksum == checksum  # the same rows, the same bytes
    assert {pull.table for pull in pulls if not pull.is_reused} == {"measurement"}
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    with opened(cache_days=0) as cdm:
        answers(cdm)
        kept = cdm.pulled["person"].path
        assert kept.exists()
    assert not kept.exists()


def test_an_account_without_temporary_tables(opened, postgres, expected, monkeypatch):
    monkeypatch.setattr("riskset.warehouse.statements.MOST_IDS", 100)
    with opened(postgres.url("reader")) as cdm:
        assert answers(cdm, WINDOWS) == expected[1]
        assert cdm._found._keys.has_temporary is False
    with opened() as cdm:
        answers(cdm)
        assert cdm._found._keys.has_temporary is True


def test_connections_of_your_own(opened, postgres, expected):
    with postgresql.connect(postgres.url()) as own, opened(own) as cdm:  # without autocommit
        assert answers(cdm) == expected[0]
    rows = psycopg.rows.dict_row  # as many programs have it
    with psycopg.connect(postgres.url(), row_factory=rows) as own, opened(own) as cdm:
        assert answers(cdm) == expected[0]
    with psycopg.connect(postgres.url()) as own:
        with opened(own) as cdm:
            assert answers(cdm) == expected[0]
        assert not own.closed
        with own.cursor() as cursor:
            cursor.execute("SELECT to_regclass('pg_temp.riskset_people')")
            assert cursor.fetchone() == (None,)  # nothing is left behind


def test_names_in_upper_case_and_with_blanks(opened, postgres, expected):
    if not postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = 'Big Names'"):
        postgres.load("Big Names", toy_tables(), upper=True)
    with opened(schema="big names") as cdm:
        assert answers(cdm) == expected[0]


def test_types_that_a_database_may_have(opened, postgres, expected):
    """Numeric identifiers and values, points in time, text in fixed lengths."""
    if not postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = 'loose'"):
        postgres.load("loose", toy_tables())
        postgres.run(
            "ALTER TABLE loose.person ALTER person_id TYPE numeric(20)",
            "ALTER TABLE loose.measurement ALTER value_as_number TYPE numeric(18, 3), "
            "ALTER measurement_date TYPE timestamp",
            "ALTER TABLE loose.drug_exposure ALTER drug_exposure_start_date TYPE timestamp",
            "ALTER TABLE loose.concept ALTER concept_name TYPE varchar(255)",
        )
    for connect in (postgresql.connect, psycopg.connect):
        with connect(postgres.url()) as own, opened(own, schema="loose", cache_days=0) as cdm:
            assert answers(cdm, WINDOWS) == expected[1]


def test_cohorts_of_a_table_a_frame_and_a_file(opened, postgres, tmp_path):
    rows = [(k, person, 2 * person % 700) for k in (1, 2) for person in range(k, 600, 3)]
    table = pa.table(
        {
            "cohort_definition_id": [k for k, _, _ in rows],
            "subject_id": [person for _, person, _ in rows],
            "cohort_start_date": pa.array([15000 + day for _, _, day in rows], pa.date32()),
            "cohort_end_date": pa.array([15100 + day for _, _, day in rows], pa.date32()),
        }
    )
    if not postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = 'results'"):
        postgres.load("results", {"my_cohorts": table})
    file = tmp_path / "cohorts.parquet"
    pa.parquet.write_table(table, file)

    def found(cdm, source):
        episodes = rs.omop.CohortTable(1, 2, source).read(cdm)
        cohort = rs.omop.Eligibility(washout_days=0).select(cdm, episodes)
        settings = rs.omop.CovariateSettings([1, 3, 202])
        return cohort.table, rs.omop.Covariates.extract(cdm, cohort, settings).table

    with rs.omop.Cdm(toy_tables()) as cdm:
        of_files = found(cdm, table)
    assert of_files[0].num_rows > 100
    for source in ("my_cohorts", table, str(file)):
        with opened(schema=[*SCHEMAS, "results"]) as cdm:
            assert found(cdm, source) == of_files


def test_a_table_of_cohorts_in_a_schema_that_was_named(opened, postgres):
    """As `results.cohort`: also where another schema has a table of the same name first."""
    rows = pa.table(
        {
            "cohort_definition_id": [1, 2, 2],
            "subject_id": [3, 4, 5],
            "cohort_start_date": pa.array([15000, 15000, 15001], pa.date32()),
            "cohort_end_date": pa.array([15100, 15100, 15100], pa.date32()),
        }
    )
    if not postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = 'Made'"):
        postgres.load("Made", {"Cohort": rows})
        postgres.load("first", {"cohort": rows.slice(0, 0)})
    with opened(schema=["first", "made", *SCHEMAS]) as cdm:
        found = rs.omop.CohortTable(1, 2, "made.cohort").read(cdm).table
        assert sorted(found.column("person_id").to_pylist()) == [3, 4, 5]
        assert rs.omop.CohortTable(1, 2, "cohort").read(cdm).table.num_rows == 0
        with pytest.raises(rs.CohortError, match="no table other.cohort"):
            rs.omop.CohortTable(1, 2, "other.cohort").read(cdm)


def test_two_databases_by_connections_of_your_own_are_not_taken_for_one(tmp_path):
    """They have the same people, and a folder for both; only years of birth differ."""
    born = {}
    for years in (0, 40):
        with duckdb.connect() as own:
            for name, table in toy_tables().items():
                own.register("given", table)
                own.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            own.execute(f"UPDATE person SET year_of_birth = year_of_birth - {years}")
            place = tmp_path / "cache"
            with rs.omop.Cdm.connect(own, schema="main", cache_folder=place) as cdm:
                rs.omop.NewUserCohort(TARGET, COMPARATOR).read(cdm)
                born[years] = cdm.arrow("person").sort_by("person_id").column("year_of_birth")
    assert [y - 40 for y in born[0].to_pylist()] == born[40].to_pylist()


def test_a_cohort_that_was_selected_before(opened, expected):
    with rs.omop.Cdm(toy_tables()) as cdm:
        episodes = rs.omop.NewUserCohort(TARGET, COMPARATOR, gap_days=30).read(cdm)
        cohort = ELIGIBILITY.select(cdm, episodes)
    with opened() as cdm:
        assert rs.omop.Covariates.extract(cdm, cohort).table == expected[0][0][2]
        assert AT_RISK.follow(cdm, cohort, OUTCOME, COMPETING).table == expected[0][0][4]


# -------------------------------------------------------------------- what goes wrong


def complaint(action):
    """The error, of which no part holds a password."""
    with pytest.raises(rs.CohortError) as caught:
        action()
    error, texts = caught.value, [repr(caught.value.details)]
    while error is not None:
        texts.append("".join(traceback.format_exception(error, chain=False)).split("\n", 1)[1])
        texts += [str(error), repr(error.args)]
        error = error.__cause__ or error.__context__
    shown = "\n".join(text for text in texts if "postgres_server" not in text)
    for secret in (PASSWORD, "s3cret", "s3cret%3A"):
        assert secret not in shown
    return caught.value


def test_an_interrupted_pull_goes_on_where_it_stopped(opened, postgres, expected, monkeypatch):
    """The server ends the session while measurements are read; tables before them are kept."""
    before, after = [], []

    def pull():
        with opened(pulls=before) as cdm:
            real = Warehouse._explained

            def cut(self, stream, what):
                if what == "cdm.measurement":
                    postgres.run(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE usename = 'analyst'"
                    )
                return real(self, stream, what)

            monkeypatch.setattr(Warehouse, "_explained", cut)
            # More rows than fit into the buffers of the connection, so that some are missing.
            answers(cdm)

    postgres.run(
        "INSERT INTO cdm.measurement SELECT m.* FROM cdm.measurement m, generate_series(1, 40)"
    )
    try:
        error = complaint(pull)
    finally:
        monkeypatch.undo()
        postgres.run(
            "CREATE TABLE cdm.once AS SELECT DISTINCT * FROM cdm.measurement",
            "TRUNCATE cdm.measurement",
            "INSERT INTO cdm.measurement SELECT * FROM cdm.once",
            "DROP TABLE cdm.once",
        )
    assert error.code == "LostConnection"
    assert "the connection to postgresql://127.0.0.1" in error.message
    assert "goes on" in error.hint or "start again" in error.hint
    with opened(pulls=after) as cdm:
        assert answers(cdm) == expected[0]
    done = {pull.table for pull in before if pull.is_done}
    assert "condition_era" in done
    assert "measurement" not in done
    assert {pull.table for pull in after if pull.is_reused} >= done - {
        "concept",
        "concept_ancestor",
    }
    assert not next(pull for pull in after if pull.table == "measurement").is_reused


def test_a_missing_right(opened, postgres):
    def pull():
        with opened(postgres.url("limited")) as cdm:
            answers(cdm)

    error = complaint(pull)
    assert (error.code, error.details["what"]) == ("MissingRight", "cdm.measurement")
    assert "GRANT SELECT ON cdm.measurement" in error.hint
    with opened(postgres.url("limited"), ignore="measurement") as cdm:
        answers(cdm)


def test_a_table_that_is_missing_or_goes(opened, postgres):
    def without_drugs():
        with opened(ignore="drug_exposure") as cdm:
            answers(cdm)

    assert complaint(without_drugs).code == "MissingTable"

    def dropped():
        postgres.load("fleeting", {n: t for n, t in toy_tables().items() if n not in VOCABULARY})
        with opened(schema=["fleeting", "vocabulary"]) as cdm:
            postgres.run("DROP SCHEMA fleeting CASCADE")
            answers(cdm)

    error = complaint(dropped)
    assert error.code == "MissingTable"
    assert error.message.startswith("postgresql://127.0.0.1")
    with pytest.raises(rs.InputError, match="no schema 'nowhere' with tables"):
        opened(schema=["cdm", "nowhere"])


def test_connections_that_do_not_answer(opened, postgres):
    for connect in (postgresql.connect, psycopg.connect):
        own = connect(postgres.url())
        own.close()
        error = complaint(lambda own=own: opened(own))
        assert error.code == "NotConnected"
        assert "open it anew" in error.hint
        with connect(postgres.url()) as own:
            with own.cursor() as cursor, pytest.raises(Exception, match="nowhere"):
                cursor.execute("SELECT * FROM nowhere")
            error = complaint(lambda own=own: opened(own))
            assert "`rollback`" in error.hint
            own.rollback()
            with opened(own) as cdm:
                assert cdm.version == "5.4"


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_a_date_that_is_infinite(opened, postgres, kind):
    """Drivers differ in what they make of it; nobody is left out without a word."""

    def ask(own=None):
        with opened(own, schema="endless", cache_days=0) as cdm:
            answers(cdm)

    if not postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = 'endless'"):
        postgres.load("endless", toy_tables())
    for table, column in (
        ("observation_period", "observation_period_end_date"),
        ("drug_exposure", "drug_exposure_start_date"),
    ):
        postgres.run(
            f"ALTER TABLE endless.{table} ALTER {column} TYPE {kind}",
            f"CREATE TABLE endless.once AS SELECT * FROM endless.{table}",
            f"UPDATE endless.{table} SET {column} = 'infinity' WHERE person_id % 5 = 0",
        )
        try:
            with pytest.raises(rs.InputError, match="is not a day of the calendar"):
                ask()
            with psycopg.connect(postgres.url()) as own:
                assert "infinity" in complaint(lambda own=own: ask(own)).message
        finally:
            postgres.run(
                f"TRUNCATE endless.{table}",
                f"INSERT INTO endless.{table} SELECT * FROM endless.once",
                "DROP TABLE endless.once",
            )


def test_schemas_that_are_none(opened):
    for schema in ([], "", None, 5, ["cdm", 5]):
        with pytest.raises(rs.InputError, match="`schema`"):
            opened(schema=schema)


def test_questions_before_there_is_a_cohort_and_tables_of_nobody(opened, postgres):
    with opened() as cdm, pytest.raises(rs.CohortError, match="no cohort was read yet") as caught:
        cdm.arrow("death")
    assert caught.value.code == "NoPeople"
    postgres.run("CREATE TABLE IF NOT EXISTS cdm.location (location_id bigint)")
    with opened() as cdm, pytest.raises(rs.CohortError, match="says whose its rows") as caught:
        cdm.arrow("location")
    assert caught.value.code == "NotPulled"


def test_no_password_is_shown(opened, postgres):
    wrong = postgres.url("analyst", "s3cret")
    assert complaint(lambda: opened(wrong)).code == "NotConnected"
    nowhere = postgres.url().replace(str(postgres.port), "1")
    error = complaint(lambda: opened(nowhere))
    assert error.message.startswith("no connection to postgresql://127.0.0.1:1/postgres: ")
    with opened() as cdm:
        assert cdm.source == f"postgresql://127.0.0.1:{postgres.port}/postgres"


def test_passwords_from_the_environment_and_a_keyring(opened, postgres, monkeypatch):
    import keyring

    plain = postgres.url("analyst", None)
    monkeypatch.setenv("CDM_PASSWORD", PASSWORD)
    with opened(plain, password_variable="CDM_PASSWORD") as cdm:
        assert cdm.version == "5.4"
    monkeypatch.setenv("CDM_URL", postgres.url())
    with opened("${CDM_URL}") as cdm:
        assert cdm.version == "5.4"
    error = complaint(lambda: opened(plain, password_variable="NOT_SET"))
    assert (error.code, error.details) == ("NoCredentials", {"variable": "NOT_SET"})
    known = {("our cdm", "analyst"): PASSWORD}
    monkeypatch.setattr(keyring, "get_password", lambda *entry: known.get(entry))
    with opened(plain, keyring="our cdm") as cdm:
        assert cdm.version == "5.4"
    assert complaint(lambda: opened(plain, keyring="another")).code == "NoCredentials"


def test_a_file_of_the_driver_has_the_password(opened, postgres, tmp_path, monkeypatch):
    file = tmp_path / "pgpass"
    escaped = PASSWORD.replace(":", r"\:")
    file.write_text(f"127.0.0.1:{postgres.port}:*:analyst:{escaped}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    with opened(postgres.url("analyst", None)) as cdm:
        assert cdm.version == "5.4"


def test_a_statement_that_takes_too_long_has_the_limit_in_its_error(postgres):
    limit = "?options=-c%20statement_timeout%3D200"
    with closing(Warehouse.of(postgres.url() + limit)) as warehouse:
        with pytest.raises(rs.CohortError, match="ended the statement that read people") as caught:
            warehouse.rows("SELECT COUNT(*) FROM PG_SLEEP(60)", "people")
        assert caught.value.code == "QueryFailed"
        assert "statement_timeout" in caught.value.hint
        assert warehouse.rows("SELECT 1", "one") == [(1,)]


def test_a_limit_that_ends_the_first_statement_is_no_lack_of_a_connection(postgres, monkeypatch):
    class Error(Exception):  # as the errors of drivers are called
        sqlstate = "57014"

    def connect(address):
        raise Error("canceling statement due to statement timeout")

    monkeypatch.setattr("riskset.warehouse.connection.connect", connect)
    with pytest.raises(rs.CohortError, match="statement timeout") as caught:
        Warehouse.of(postgres.url())
    assert caught.value.code == "QueryFailed"
    assert "statement_timeout" in caught.value.hint


@pytest.fixture
def interruptible():
    """Ctrl-C raises `KeyboardInterrupt`, also where a program in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_statement_as_keyboard_interrupt(postgres):
    with closing(Warehouse.of(postgres.url())) as warehouse:
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            warehouse.rows("SELECT COUNT(*) FROM PG_SLEEP(60)", "people")
        assert warehouse.rows("SELECT 1", "one") == [(1,)]


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_pull_as_keyboard_interrupt(postgres, tmp_path):
    rows = 'SELECT n AS "n" FROM GENERATE_SERIES(1, 3000000) AS t(n)'
    path, told = tmp_path / "pulled.parquet", []

    def once(*_):
        if not told:
            told.append(True)
            os.kill(os.getpid(), signal.SIGINT)

    with closing(Warehouse.of(postgres.url())) as warehouse, Database() as database:
        with (
            pytest.raises(KeyboardInterrupt),
            warehouse.stream(rows, "numbers", {"n": "int64"}) as stream,
        ):
            database.write_stream(stream, path, once)
        assert warehouse.rows("SELECT 1", "one") == [(1,)]
        assert database.row("SELECT 1") == (1,)


PULL = """
import sys
from warehouse.test_postgresql import SCHEMAS, answers
import riskset as rs
url, place = sys.argv[1:]
with rs.omop.Cdm.connect(url, schema=SCHEMAS, cache_folder=place, progress=False) as cdm:
    answers(cdm)
    print([(name, kept.checksum) for name, kept in sorted(cdm.pulled.items())])
"""


def test_two_programs_may_pull_into_one_folder_at_the_same_time(postgres, tmp_path, opened):
    command = [sys.executable, "-c", PULL, postgres.url(), str(tmp_path / "cache")]
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own) for _ in range(2)]
    told = [one.communicate()[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert told[0] == told[1] != ""
    pulls = []
    with opened(pulls=pulls) as cdm:
        answers(cdm)
    assert all(pull.is_reused for pull in pulls)


def test_a_server_that_restarts_during_a_pull(tmp_path):
    """A server of its own: the others of this file need theirs."""
    server = postgres_server.start()
    place = tmp_path / "cache"
    try:
        pulls = []

        def restart(progress):
            pulls.append(progress)
            if progress.table == "person" and progress.is_done:
                server.restart()

        options = {"schema": SCHEMAS, "cache_folder": place}
        with (
            pytest.raises(rs.CohortError) as caught,
            rs.omop.Cdm.connect(server.url(), progress=restart, **options) as cdm,
        ):
            answers(cdm)
        assert caught.value.code == "LostConnection"
        assert PASSWORD not in str(caught.value)
        again = []
        with rs.omop.Cdm.connect(server.url(), progress=again.append, **options) as cdm:
            found = answers(cdm)
        with rs.omop.Cdm(toy_tables()) as cdm:
            assert found == answers(cdm)
        assert any(one.is_reused and one.table == "person" for one in again)
    finally:
        server.stop()
