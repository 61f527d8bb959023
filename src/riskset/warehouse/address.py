"""Where a database is: a URL, and the credentials that must never be shown.

``${NAME}`` in a URL stands for an environment variable. What must be kept secret is known from
here on, so that every text that leaves the package can be freed of it.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, quote_plus, unquote, urlsplit

from riskset._errors import CohortError, InputError, MissingDependencyError

__all__ = ["REMEDY", "SCHEMES", "Address", "database_name", "has_secret", "scrubbed"]

SCHEMES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "redshift": "redshift",
    "snowflake": "snowflake",
    "bigquery": "bigquery",
    "sqlserver": "sqlserver",
    "mssql": "sqlserver",
    "databricks": "databricks",
}
"""Scheme of a URL -> the database."""

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

SECRET_WORDS = (
    *("password", "passwd", "pwd", "passphrase", "passcode", "token", "secret", "private_key"),
    *("privatekey", "apikey", "api_key", "accesskey", "access_key"),
)
"""A parameter of a URL holds credentials if its name has one of these, in lower case."""

LAST_PORT = 65_535

NO_SECRETS = ("true", "false")
"""Values of such parameters that only switch something."""

REMEDY = (
    "write ${NAME} in its place and set that environment variable, or leave it out and name "
    "`password_variable` or `keyring`, or use the files of the driver, such as ~/.pgpass."
)

HIDDEN = "***"
SHORTEST_SECRET = 3
"""Characters; shorter ones would be replaced all over a text."""


@dataclass(frozen=True, repr=False)
class Address:
    """A database to connect to.

    `kind` is the kind of database, `url` has the credentials, and `shown` has none. `secrets` are
    texts that must be in no message.
    """

    kind: str
    url: str
    shown: str
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @classmethod
    def of(
        cls,
        url: str,
        *,
        password_variable: str | None = None,
        keyring: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """The address of a URL; ``${NAME}`` are filled in, and the password is looked up.

        Raises `InputError` if the kind of database is unknown, or a variable or the entry of the
        keyring does not exist.
        """
        known = os.environ if environment is None else environment
        filled = {name: _variable(known, name) for name in VARIABLE.findall(url)}
        try:
            parts = urlsplit(_filled(url, filled))
            is_clear = _is_clear(parts)
        except ValueError:  # its text may hold a password
            is_clear = False
        if not is_clear:
            raise InputError(
                "`connection` cannot be split into user, password, host, port and database.",
                hint="in a user or a password, write a letter such as /, ?, # or @ by its code "
                "(%2F, %3F, %23 or %40); or name `password_variable`, which takes the password "
                "as it is.",
            )
        kind = _kind(parts.scheme)
        parts = parts._replace(netloc=_coded(parts.netloc))
        whole, password = parts.geturl(), None
        if password_variable is not None:
            password = _variable(known, password_variable)
        elif keyring is not None:
            password = _from_keyring(keyring, unquote(parts.username or ""))
        if password is not None:
            user, _, host = parts.netloc.rpartition("@")
            name = user.partition(":")[0]
            parts = parts._replace(netloc=f"{name}:{quote(password, safe='')}@{host}")
            whole = parts.geturl()
        secrets = {*filled.values(), *(() if password is None else (password,))}
        secrets |= {value for _, value in _secret_parts(whole)}
        return cls(kind, whole, shown(whole), _ways_to_write(secrets - {""}))

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters after the question mark."""
        return dict(parse_qsl(urlsplit(self.url).query))

    @property
    def identity(self) -> str:
        """What tells the rows that an account sees there from others; it holds no secret."""
        parts = urlsplit(self.url)
        user = parts.netloc.rpartition("@")[0].partition(":")[0]
        others = sorted(
            (name, value) for name, value in self.parameters.items() if not _is_secret(name, value)
        )
        return f"{self.shown} {unquote(user)} {others}"


def database_name(url: str) -> str:
    """The last part of the path of a URL: the name of the database, project or catalog.

    >>> database_name("postgresql://analyst:${PASSWORD}@db.example.org/omop?sslmode=require")
    'omop'
    """
    try:
        parts = urlsplit(url)
        is_known = parts.scheme.lower() in SCHEMES and _is_clear(parts)
    except ValueError:
        is_known = False
    # What cannot be taken apart may have a password anywhere.
    return (parts.path.strip("/").rpartition("/")[2] if is_known else "") or "database"


def has_secret(url: str) -> bool:
    """Whether a URL holds credentials as they are; ``${NAME}`` is none."""
    if VARIABLE.fullmatch(url):
        return False
    try:
        if "://" in url and not _is_clear(urlsplit(url)):
            return True  # such as a password with a slash
        return any(not VARIABLE.fullmatch(value) for _, value in _secret_parts(url))
    except ValueError:  # no URL; whoever connects will say so
        return "@" in url


def shown(url: str) -> str:
    """A URL without user, password and parameters."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def scrubbed(words: object, secrets: Iterable[str]) -> str:
    """A text on one line, in which every secret is replaced."""
    text = " ".join(str(words).split())
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _filled(url: str, values: Mapping[str, str]) -> str:
    """A URL with the values of variables, written as its parts have them."""

    def plain(part: str) -> str:
        return VARIABLE.sub(lambda found: values[found[1]], part)

    def escaped(part: str) -> str:
        return VARIABLE.sub(lambda found: quote(values[found[1]], safe=""), part)

    if "://" not in url:  # a variable has all of it
        return plain(url)
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    place = f"{escaped(user)}{at}{plain(host)}"
    return parts._replace(netloc=place, path=plain(parts.path), query=escaped(parts.query)).geturl()


def _kind(scheme: str) -> str:
    if scheme.lower() not in SCHEMES:
        raise InputError(
            "`connection` must be the URL of a database, but it does not begin with a known "
            "scheme.",
            hint=f"known are {', '.join(f'{name}://' for name in SCHEMES)}.",
        )
    return SCHEMES[scheme.lower()]


def _is_clear(parts: SplitResult) -> bool:
    """Whether a URL was taken apart as it was meant.

    A letter in a password that is not written by its code ends what is taken for the host.
    """
    user, _, hosts = parts.netloc.rpartition("@")
    rest = parts.path + (parts.query if ":" in hosts and not user else "")
    # PostgreSQL may have several hosts.
    return "@" not in rest and not parts.fragment and all(map(_has_port, hosts.split(",")))


def _has_port(host: str) -> bool:
    """Whether what follows a host is a port, if there is anything."""
    port = host.rpartition("]")[2].partition(":")[2]
    is_number = port.isascii() and port.isdigit()
    return not port or bool(VARIABLE.fullmatch(port)) or (is_number and int(port) <= LAST_PORT)


def _coded(netloc: str) -> str:
    """User, password and host of a URL; letters in the first two are written by their codes."""
    user, at, host = netloc.rpartition("@")
    coded = (quote(unquote(part), safe="") for part in user.split(":", 1))
    return f"{':'.join(coded)}{at}{host}"


def _is_secret(name: str, value: str) -> bool:
    """Whether a parameter of a URL holds credentials."""
    is_named = any(word in name.lower() for word in SECRET_WORDS)
    is_key = "private_key" in value  # the content of a key file of Google
    return is_key or (is_named and value.lower() not in NO_SECRETS)


def _secret_parts(url: str) -> Iterable[tuple[str, str]]:
    """Name and value of the parts of a URL that hold credentials."""
    parts = urlsplit(url)
    password = parts.netloc.rpartition("@")[0].partition(":")[2]
    found = [("password", password)] if password else []
    found += [
        (name, value) for name, value in parse_qsl(parts.query) if value and _is_secret(name, value)
    ]
    return found


def _ways_to_write(secrets: Iterable[str]) -> tuple[str, ...]:
    """Secrets as they are, and as URLs write them."""
    ways = set()
    for secret in secrets:
        plain = unquote(secret)
        ways |= {secret, plain, quote(plain, safe=""), quote(plain), quote_plus(plain)}
    return tuple(sorted(way for way in ways if len(way) >= SHORTEST_SECRET))


def _variable(known: Mapping[str, str], name: str) -> str:
    if not known.get(name):
        raise CohortError(
            "NoCredentials",
            f"the environment variable {name}, which the connection names, is not set.",
            hint=f"set it before you start riskset, for example in the shell: export {name}=...",
            details={"variable": name},
        )
    return known[name]


def _from_keyring(service: str, user: str) -> str:
    try:
        import keyring
        import keyring.errors
    except ImportError:
        raise MissingDependencyError(
            "a password from a keyring needs the package keyring.",
            hint='pip install "riskset[keyring]"',
        ) from None
    try:
        password = keyring.get_password(service, user)
    except keyring.errors.KeyringError as error:  # such as a server without a keyring
        reason = scrubbed(error, ())
        raise CohortError(
            "NoCredentials",
            f"the keyring of this system gave no password: {reason}",
            hint="unlock it, or name `password_variable` in place of `keyring`.",
            details={"service": service, "user": user},
        ) from None
    if not password:
        raise CohortError(
            "NoCredentials",
            f"the keyring has no password for the user {user!r} of the service {service!r}.",
            hint=f"store it once: keyring set {service} {user or 'USER'}",
            details={"service": service, "user": user},
        )
    return password
