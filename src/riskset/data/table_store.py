"""Tables kept as Parquet in a folder, so that they need not be made again for some days.

A table has a key, which is made of everything that its content depends on. Its file appears whole
under that key, with a sealed document of its checksum, its rows, the time when it was made and the
days for which it is kept. A file that is damaged or too old does not count, and is deleted. Files
of other names are left alone, because a user may name any folder. The tables may hold data of
single people: only the owner of the account can read them.
"""

import datetime
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from riskset._errors import InputError
from riskset._version import __version__
from riskset.data.documents import checksum, is_sealed, parse_json, sealed
from riskset.data.writers import check_folder, replacing, write_json

__all__ = ["CACHE_DAYS", "CachedTable", "TableStore", "table_key", "user_cache"]

CACHE_DAYS = 7
"""Days for which a table is kept, unless something else was said."""

CACHE_VARIABLE = "RISKSET_CACHE"
"""The environment variable that names another folder than the user's usual one."""

CONTENT = 2
"""Version of how tables are written; one of another version is made again."""

PREFIX = "riskset-"
"""With which the names of files begin, so that no file of the user is taken for one."""

FOLDER_OF_OWNER, FILE_OF_OWNER = 0o700, 0o600
SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class CachedTable:
    """A table in a store: its file, rows, bytes and checksum, and when it was made.

    `is_reused` says whether it was there before.
    """

    path: Path
    n_rows: int
    n_bytes: int
    checksum: str
    made: datetime.datetime
    is_reused: bool


def user_cache() -> Path:
    """The folder in which programs of the user keep what they can make again.

    Raises `InputError` for an account without a home folder.
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
    try:
        return _usual_cache()
    except RuntimeError:  # HOME is not set, and the system does not know the account
        raise InputError(
            "this account has no home folder, so there is no folder for tables that are kept.",
            hint=f"name one with `cache_folder`, or set the environment variable {CACHE_VARIABLE}.",
        ) from None


def _usual_cache() -> Path:
    if sys.platform == "win32":
        home = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        home = Path.home() / "Library" / "Caches"
    else:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "riskset"


def table_key(*parts: object) -> str:
    """A short name for what a table depends on, the same in every run of this version."""
    text = json.dumps([__version__, CONTENT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class TableStore:
    """Tables in a folder, each for at most `days` days; with 0 none is found again.

    Only the owner of the account can read the files, and a folder that is made here. A table is
    deleted a day after the days for which it was kept, which may be more than `days`: another
    program may be reading it.

    Raises `InputError` if the folder cannot be written to, or `days` are none.
    """

    def __init__(self, folder: Path, days: int = CACHE_DAYS) -> None:
        if not isinstance(days, int) or days < 0:
            raise InputError(f"`cache_days` must be a whole number, 0 or more, but it is {days!r}.")
        check_folder(folder)
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=FOLDER_OF_OWNER, exist_ok=True)
        except OSError as error:  # such as a file system that is full, or takes no folders
            raise InputError(
                f"cannot write into {str(folder)!r}: {error.strerror}.",
                hint="choose another place.",
            ) from None
        self.folder, self._days = folder, days
        self._delete_old()

    def _delete_old(self) -> None:
        """Delete tables that are too old or have no whole document, and what killed runs left."""
        for document in self.folder.glob(f"{PREFIX}*.json"):
            key = document.stem.removeprefix(PREFIX)
            # Another run may have made it again, and not yet written its document.
            if self._kept(key, is_for_all=True) is None and not _is_young(self._file(key)):
                self.forget(key)
        for before in ("", ".", "tmp_."):  # those of `replacing` and of DuckDB
            for file in self.folder.glob(f"{before}{PREFIX}*.parquet"):
                # Another run may be writing it, or deleting it, too.
                if not (_is_young(file) or file.with_suffix(".json").exists()):
                    file.unlink(missing_ok=True)

    def find(self, key: str) -> CachedTable | None:
        """A table that was kept, if it is not too old and every byte of it is as it was."""
        kept = self._kept(key)
        if kept is None or not kept.path.is_file() or checksum(kept.path) != kept.checksum:
            return None
        return kept

    def keep(self, key: str, what: str, write: Callable[[Path], int]) -> CachedTable:
        """Let `write` write a table, of which it returns the number of rows, and keep it."""
        path = self._file(key)
        made = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
        with replacing(path, mode=FILE_OF_OWNER) as (temporary,):
            n_rows = write(temporary)
            size, seal = temporary.stat().st_size, checksum(temporary)
        kept = CachedTable(path, n_rows, size, seal, made, is_reused=False)
        content = {
            "table": what,
            "made": made.isoformat(),
            "days": self._days,
            "rows": kept.n_rows,
            "bytes": kept.n_bytes,
            "checksum": kept.checksum,
        }
        write_json(self._document(key), sealed(content))
        return kept

    def find_or_make(self, key: str, what: str, write: Callable[[Path], int]) -> CachedTable:
        """A table that was kept, or else one that `write` writes now."""
        return self.find(key) or self.keep(key, what, write)

    def forget(self, key: str) -> None:
        """Delete a table."""
        self._document(key).unlink(missing_ok=True)
        self._file(key).unlink(missing_ok=True)

    def _file(self, key: str) -> Path:
        return self.folder / f"{PREFIX}{key}.parquet"

    def _document(self, key: str) -> Path:
        return self.folder / f"{PREFIX}{key}.json"

    def _kept(self, key: str, *, is_for_all: bool = False) -> CachedTable | None:
        """What the document of a table says, if it is whole and not too old.

        It is too old after `days` here, or `is_for_all` a day after those for which it was kept.
        """
        try:
            document = parse_json(self._document(key).read_bytes())
            if not is_sealed(document):
                return None
            made = datetime.datetime.fromisoformat(document["made"])
            age = datetime.datetime.now(datetime.UTC) - made
            most = document["days"] + 1 if is_for_all else self._days
            is_old = age.total_seconds() >= most * SECONDS_A_DAY
            kept = CachedTable(
                self._file(key),
                document["rows"],
                document["bytes"],
                document["checksum"],
                made,
                is_reused=True,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return None if is_old else kept


def _is_young(file: Path) -> bool:
    """Whether a file was written within a day."""
    with suppress(FileNotFoundError):
        return time.time() - file.stat().st_mtime < SECONDS_A_DAY
    return False
