"""The drivers of databases: how each connects, and which database a connection is to.

A driver is imported when it is needed, and comes with an extra of the package.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

from riskset._errors import InputError, MissingDependencyError
from riskset.warehouse.address import Address
from riskset.warehouse.dialects import DIALECTS

__all__ = ["DRIVERS", "connect", "kind_of_connection"]


def _postgresql(address: Address) -> Any:
    url = urlsplit(address.url)._replace(scheme="postgresql").geturl()
    driver = import_module("adbc_driver_postgresql.dbapi")
    return driver.connect(url, autocommit=True)


def _snowflake(address: Address) -> Any:
    driver = import_module("adbc_driver_snowflake.dbapi")
    return driver.connect(address.url.partition("://")[2], autocommit=True)


def _bigquery(address: Address) -> Any:
    options = import_module("adbc_driver_bigquery").DatabaseOptions
    driver = import_module("adbc_driver_bigquery.dbapi")
    parts = urlsplit(address.url)
    given = {options.PROJECT_ID.value: parts.netloc}
    if parts.path.strip("/"):
        given[options.DATASET_ID.value] = parts.path.strip("/")
    return driver.connect(db_kwargs=given | address.parameters, autocommit=True)


def _sqlserver(address: Address) -> Any:
    parts = urlsplit(address.url)
    port = f",{parts.port}" if parts.port else ""
    words = {"SERVER": f"{parts.hostname}{port}", "DATABASE": parts.path.strip("/")}
    if parts.username:
        words["UID"] = unquote(parts.username)
    if parts.password:
        words["PWD"] = unquote(parts.password)
    words |= address.parameters
    text = ";".join(f"{name}={{{value.replace('}', '}}')}}}" for name, value in words.items())
    return import_module("mssql_python").connect(text, autocommit=True)


def _databricks(address: Address) -> Any:
    parts, given = urlsplit(address.url), address.parameters
    token = unquote(parts.password) if parts.password else given.pop("access_token", None)
    more = {} if token is None else {"access_token": token}
    if parts.path.strip("/"):
        more["catalog"] = parts.path.strip("/")
    driver = import_module("databricks.sql")
    return driver.connect(server_hostname=parts.hostname, **more, **given)


DRIVERS: dict[str, tuple[str, Callable[[Address], Any]]] = {
    "postgresql": ("adbc-driver-postgresql", _postgresql),
    "redshift": ("adbc-driver-postgresql", _postgresql),
    "snowflake": ("adbc-driver-snowflake", _snowflake),
    "bigquery": ("adbc-driver-bigquery", _bigquery),
    "sqlserver": ("mssql-python", _sqlserver),
    "databricks": ("databricks-sql-connector", _databricks),
}
"""Kind of database -> its driver on PyPI, and what connects."""

MODULES = {
    "psycopg": "postgresql",
    "psycopg2": "postgresql",
    "pg8000": "postgresql",
    "redshift_connector": "redshift",
    "snowflake": "snowflake",
    "google": "bigquery",
    "mssql_python": "sqlserver",
    "pyodbc": "sqlserver",
    "pymssql": "sqlserver",
    "databricks": "databricks",
    "duckdb": "duckdb",
    "_duckdb": "duckdb",
}
"""First part of the module of a connection -> the kind of database."""


def connect(address: Address) -> Any:
    """A new connection, which commits every statement by itself."""
    package, connector = DRIVERS[address.kind]
    try:
        return connector(address)
    except ModuleNotFoundError:
        raise MissingDependencyError(
            f"a CDM in {address.kind} needs the package {package}.",
            hint=f'pip install "riskset[{DIALECTS[address.kind].extra}]"',
        ) from None


def kind_of_connection(connection: Any) -> str:
    """The kind of database that an ADBC or DBAPI connection is to.

    Raises `InputError` if it cannot be known.
    """
    module = type(connection).__module__.partition(".")[0]
    if hasattr(connection, "adbc_get_info"):
        vendor = str(connection.adbc_get_info().get("vendor_name", "")).lower()
        for kind, words in (("sqlserver", "sql server"), *((k, k) for k in DIALECTS)):
            if words in vendor:
                return kind
    elif module in MODULES and hasattr(connection, "cursor"):
        return MODULES[module]
    raise InputError(
        f"`connection` must be a URL, or a connection of ADBC or DBAPI to a known database, but it "
        f"is of {type(connection).__module__}.{type(connection).__qualname__}.",
        hint=f"say which it is with `dialect`: {', '.join(DIALECTS)}.",
    )
