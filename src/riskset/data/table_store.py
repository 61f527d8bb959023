"""Tables kept as Parquet in a folder, so that they need not be made again for some days.

A table has a key, which is made of everything that its content depends on. Its file appears whole
under that key, with a sealed document of its checksum, its rows and the time when it was made. A
file that is damaged or too old does not count, and is deleted. The folder may hold data of single
people: only the owner of the account can read it.
"""

import datetime
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from riskset._version import __version__
from riskset.data.documents import checksum, is_sealed, parse_json, sealed
from riskset.data.writers import check_folder, replacing, write_json

__all__ = ["CACHE_DAYS", "CachedTable", "TableStore", "table_key", "user_cache"]

CACHE_DAYS = 7
"""Days for which a table is kept, unless something else was said."""

CACHE_VARIABLE = "RISKSET_CACHE"
"""The environment variable that names another folder than the user's usual one."""

CONTENT = 1
"""Version of how tables are written; one of another version is made again."""

OWNER_ALONE = 0o700
SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class CachedTable:
    """A table in a store: its file, rows, bytes and checksum, and whether it was there before."""

    path: Path
    n_rows: int
    n_bytes: int
    checksum: str
    is_reused: bool


def user_cache() -> Path:
    """The folder in which programs of the user keep what they can make again."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given)
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

    Raises `InputError` if the folder cannot be written to.
    """

    def __init__(self, folder: Path, days: int = CACHE_DAYS) -> None:
        check_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(OWNER_ALONE)
        self.folder, self._days = folder, days
        for document in folder.glob("*.json"):
            if self._kept(document.stem) is None:
                self.forget(document.stem)
        for file in folder.glob("*.parquet"):  # of a run that was killed, and not of another one
            is_left = not self._document(file.stem).exists()
            if is_left and time.time() - file.stat().st_mtime > SECONDS_A_DAY:
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
        with replacing(path) as (temporary,):
            n_rows = write(temporary)
            kept = CachedTable(path, n_rows, temporary.stat().st_size, checksum(temporary), False)
        content = {
            "table": what,
            "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
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
        return self.folder / f"{key}.parquet"

    def _document(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _kept(self, key: str) -> CachedTable | None:
        """What the document of a table says, if it is whole and not too old."""
        try:
            document = parse_json(self._document(key).read_bytes())
            if not is_sealed(document):
                return None
            made = datetime.datetime.fromisoformat(document["made"])
            kept = CachedTable(
                self._file(key),
                document["rows"],
                document["bytes"],
                document["checksum"],
                is_reused=True,
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        age = datetime.datetime.now(datetime.UTC) - made
        return kept if age < datetime.timedelta(days=self._days) else None
