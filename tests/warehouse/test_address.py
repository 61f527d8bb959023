"""URLs of databases: what is secret in them, and what is shown."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

import riskset as rs
from riskset.warehouse.address import Address, database_name, has_secret, scrubbed
from riskset.warehouse.connection import Warehouse
from riskset.warehouse.drivers import DRIVERS, kind_of_connection


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://host/db", False),
        ("postgresql://analyst@host/db", False),
        ("postgresql://analyst:${PASSWORD}@host/db", False),
        ("postgresql://analyst:secret@host/db", True),
        ("postgresql://analyst:a${PASSWORD}@host/db", True),
        ("postgresql://host/db?user=analyst&sslmode=require", False),
        ("postgresql://host/db?password=secret", True),
        ("snowflake://u@account/db/cdm?warehouse=w&PASSWORD=secret", True),
        ("databricks://host/main?http_path=%2Fsql%2F1&access_token=${TOKEN}", False),
        ("databricks://host/main?http_path=%2Fsql%2F1&access_token=dapi1", True),
        ("${CDM_URL}", False),
        ("postgresql://[host/db", False),
        # A letter of the password that is not written by its code.
        ("postgresql://u:pa/ss@host/db", True),
        ("postgresql://u:p1/ss@host:5432/db", True),
        ("postgresql://u:pa#ss@host/db", True),
        ("postgresql://u:1?ss@host/db", True),
        ("postgresql://u:pa[ss@host/db", True),
        ("postgresql://u@one:5432,two:5433/db", False),
        ("postgresql://u@[::1]:5432/db", False),
        ("postgresql://u:${P}@${HOST}:${PORT}/db", False),
        ("bigquery://p/d?adbc.bigquery.sql.auth.refresh_token=abc", True),
        ("snowflake://u@a/db?oauthClientSecret=abc", True),
        ("snowflake://u@a/db?passcode=123456", True),
        ("snowflake://u@a/db?clientRequestMfaToken=true", False),
    ],
)
def test_secrets_in_a_url(url, expected):
    assert has_secret(url) == expected


def test_variables_are_filled_in_and_hidden():
    known = {"PASSWORD": "p a@ss/1", "HOST": "db.example.org"}
    address = Address.of("redshift://me:${PASSWORD}@${HOST}:5439/omop?x=1", environment=known)
    assert (address.kind, address.shown) == ("redshift", "redshift://db.example.org:5439/omop")
    assert address.url == "redshift://me:p%20a%40ss%2F1@db.example.org:5439/omop?x=1"
    for way in ("p a@ss/1", "p%20a%40ss%2F1", "p+a%40ss%2F1"):
        assert way not in scrubbed(f"FATAL:  for {way}\n failed", address.secrets)
    assert "me" in address.identity
    assert "ss/1" not in address.identity + repr(address)
    with pytest.raises(rs.CohortError, match="variable OTHER, which") as caught:
        Address.of("postgresql://${OTHER}/db", environment=known)
    assert caught.value.code == "NoCredentials"


def test_a_password_beside_the_url_is_written_as_urls_have_it():
    address = Address.of(
        "postgresql://me@host:5432/db", password_variable="P", environment={"P": "a:b@c/d%"}
    )
    assert address.url == "postgresql://me:a%3Ab%40c%2Fd%25@host:5432/db"
    assert scrubbed("is a:b@c/d% or a%3Ab%40c%2Fd%25", address.secrets) == "is *** or ***"


def test_addresses_that_are_none():
    with pytest.raises(rs.InputError, match="known scheme") as caught:
        Address.of("oracle://me:secret@host/db")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:gehe/heim@host:5432/db",
        "postgresql://u:1/heim@host:5432/db",
        "postgresql://u:x@gehe/heim@host:5432/db",
        "postgresql://u:ge#heim@host/db",
        "postgresql://u:1?heim@host/db",
        "postgresql://u:ge[heim@host/db",
        "sqlserver://u:geheim@host:99999/db",
        "sqlserver://u:geheim@host:heim/db",
        "host=localhost password=geheim",
    ],
)
def test_an_address_that_is_not_clear_is_refused_without_a_part_of_it(url):
    for given, known in ((url, {}), ("${CDM_URL}", {"CDM_URL": url})):
        with pytest.raises(rs.InputError) as caught:
            Address.of(given, environment=known)
        assert "heim" not in str(caught.value)
        assert caught.value.__cause__ is None
    assert database_name(url) in ("database", "db")


def test_letters_of_a_password_that_need_no_code():
    """A driver ends the password at the first @, and we at the last one."""
    address = Address.of("postgresql://u:p@ss%é@host/db")
    assert address.url == "postgresql://u:p%40ss%25%C3%A9@host/db"
    assert scrubbed("p@ss%é", address.secrets) == "***"
    known = Address.of("bigquery://p/d?adbc.bigquery.sql.auth.refresh_token=abcd&x=1")
    assert known.secrets == ("abcd",)
    assert "abcd" not in known.identity


def test_a_system_without_a_keyring(monkeypatch):
    import keyring.errors

    def fail(*_):
        raise keyring.errors.NoKeyringError("there is no backend")

    monkeypatch.setattr("keyring.get_password", fail)
    with pytest.raises(rs.CohortError, match="gave no password: .*there is no backend") as caught:
        Address.of("postgresql://me@host/db", keyring="cdm")
    assert caught.value.code == "NoCredentials"
    assert "password_variable" in caught.value.hint


class Recorder(ModuleType):
    """A driver that keeps what it was asked for."""

    def connect(self, *arguments, **options):
        self.asked = arguments, options
        return SimpleNamespace()


OPTIONS = SimpleNamespace(
    PROJECT_ID=SimpleNamespace(value="project"), DATASET_ID=SimpleNamespace(value="dataset")
)


@pytest.mark.parametrize(
    ("url", "module", "expected"),
    [
        (
            "redshift://me:a%40b@host:5439/db",
            "adbc_driver_postgresql.dbapi",
            (("postgresql://me:a%40b@host:5439/db",), {"autocommit": True}),
        ),
        (
            "snowflake://me:a%40b@account/db/cdm?warehouse=w",
            "adbc_driver_snowflake.dbapi",
            (("me:a%40b@account/db/cdm?warehouse=w",), {"autocommit": True}),
        ),
        (
            "bigquery://project-1/cdm",
            "adbc_driver_bigquery.dbapi",
            ((), {"db_kwargs": {"project": "project-1", "dataset": "cdm"}, "autocommit": True}),
        ),
        (
            "mssql://me:a%40b;}@host:1433/omop?Encrypt=yes",
            "mssql_python",
            (
                ("SERVER={host,1433};DATABASE={omop};UID={me};PWD={a@b;}}};Encrypt={yes}",),
                {"autocommit": True},
            ),
        ),
        (
            "databricks://token:dapi@host/main?http_path=%2Fsql%2F1",
            "databricks.sql",
            (
                (),
                {
                    "server_hostname": "host",
                    "access_token": "dapi",
                    "catalog": "main",
                    "http_path": "/sql/1",
                },
            ),
        ),
    ],
)
def test_what_drivers_are_asked_for(url, module, expected, monkeypatch):
    """Of databases that no test can run: the arguments that their drivers document."""
    driver = Recorder(module)
    package = ModuleType(module.partition(".")[0])
    package.DatabaseOptions = OPTIONS
    if "." in module:
        monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, module, driver)
    Warehouse.of(url)
    assert driver.asked == expected


def test_a_driver_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "mssql_python", None)
    with pytest.raises(rs.MissingDependencyError, match="needs the package mssql-python") as caught:
        Warehouse.of("sqlserver://host/db")
    assert caught.value.hint == 'pip install "riskset[sqlserver]"'
    assert {package for package, _ in DRIVERS.values()} >= {"databricks-sql-connector"}


def test_the_kind_of_a_connection():
    class Connection:
        def cursor(self):
            return None

    for module, kind in (
        ("psycopg", "postgresql"),
        ("snowflake.connector.connection", "snowflake"),
        ("google.cloud.bigquery.dbapi.connection", "bigquery"),
        ("pyodbc", "sqlserver"),
        ("databricks.sql.client", "databricks"),
    ):
        made = type("Connection", (Connection,), {"__module__": module})()
        assert kind_of_connection(made) == kind
    for vendor, kind in (("Microsoft SQL Server", "sqlserver"), ("Snowflake", "snowflake")):
        made = SimpleNamespace(adbc_get_info=lambda vendor=vendor: {"vendor_name": vendor})
        assert kind_of_connection(made) == kind
    with pytest.raises(rs.InputError, match="say which it is with `dialect`"):
        kind_of_connection(Connection())
    with pytest.raises(rs.InputError, match="`dialect` must be"):
        Warehouse.of(Connection(), dialect="oracle")
