"""A PostgreSQL server of the tests' own, in a temporary folder, with the toy CDM."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import adbc_driver_postgresql.dbapi as postgresql

import riskset as rs

PASSWORD = "s3cret: a/b@c%"
"""With letters that URLs write otherwise."""

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/*/bin", "/opt/homebrew/opt/postgresql*/bin")
VOCABULARY = ("concept", "concept_ancestor", "concept_relationship")
ACCOUNTS = ("analyst", "reader", "limited")
"""May read all and make temporary tables; may read all; may not read measurements."""


def binaries() -> Path | None:
    """The folder of the programs of a server, if there is one."""
    found = [path for pattern in PLACES for path in Path("/").glob(f"{pattern[1:]}/initdb")]
    on_path = shutil.which("initdb")
    folders = [Path(on_path).parent] if on_path else [path.parent for path in sorted(found)]
    return folders[-1] if folders else None


def account() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


@dataclass
class Server:
    """A running server."""

    folder: Path
    port: int

    def url(self, user: str = "analyst", password: str | None = PASSWORD) -> str:
        """Where it is."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/postgres"

    def connect(self, user: str = "postgres"):
        """A connection."""
        return postgresql.connect(self.url(user), autocommit=True)

    def run(self, *statements: str) -> list[tuple]:
        """Run statements as the owner; the rows of the last one."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def load(self, schema: str, tables, *, upper: bool = False) -> None:
        """Load tables into a schema, under names in upper case if wanted."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
            for name, table in tables.items():
                if upper:
                    name = name.upper()
                    table = table.rename_columns([column.upper() for column in table.column_names])
                cursor.adbc_ingest(name, table, mode="create", db_schema_name=schema)
        grants = [f'GRANT USAGE ON SCHEMA "{schema}" TO {", ".join(ACCOUNTS)}']
        grants += [f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO {", ".join(ACCOUNTS)}']
        self.run(*grants)

    def restart(self) -> None:
        """End all its connections, and start again."""
        _call("pg_ctl", "restart", "-w", "-D", str(self.folder / "data"), "-m", "immediate")

    def stop(self) -> None:
        """Stop it and remove its folder."""
        _call("pg_ctl", "stop", "-D", str(self.folder / "data"), "-m", "immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def start() -> Server:
    """Start a server with accounts, and the toy CDM in the schemas cdm, vocabulary and results."""
    folder = Path(tempfile.mkdtemp(prefix="riskset-postgres-"))
    (folder / "password").write_text(PASSWORD)
    user = account()
    for path in (folder, folder / "password"):
        if user is not None:
            shutil.chown(path, user)
    data = ["-D", str(folder / "data")]
    secret = ["-U", "postgres", f"--pwfile={folder / 'password'}", "-A", "scram-sha-256"]
    _call("initdb", *data, *secret, "--no-sync", "-E", "UTF8", "--locale=C")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c fsync=off "
    options += f"-c unix_socket_directories={folder}"
    _call("pg_ctl", "start", "-w", *data, "-l", str(folder / "log"), "-o", options)
    server = Server(folder, port)
    literal = PASSWORD.replace("'", "''")
    server.run(
        *(f"CREATE ROLE {name} LOGIN PASSWORD '{literal}'" for name in ACCOUNTS),
        "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC",
        "GRANT TEMPORARY ON DATABASE postgres TO analyst, limited",
    )
    tables = rs.simulate.toy_tables(2000)
    server.load("cdm", {n: t for n, t in tables.items() if n not in VOCABULARY})
    server.load("vocabulary", {n: t for n, t in tables.items() if n in VOCABULARY})
    server.run("REVOKE SELECT ON cdm.measurement FROM limited")
    return server


def _call(program: str, *arguments: str) -> None:
    folder = binaries()
    assert folder is not None
    command = [str(folder / program), *arguments]
    user = account()
    who = {} if user is None else {"user": user, "group": pwd.getpwnam(user).pw_gid}
    # pg_ctl leaves the server behind with these streams, so they must not be pipes.
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **who
    )
