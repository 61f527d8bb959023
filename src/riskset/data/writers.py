"""Writing results: whole files or none.

A file appears under its name only when it is complete; an interrupted or failed run leaves what was
there before.
"""

import errno
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow
import pyarrow.csv
import pyarrow.parquet

from riskset._errors import InputError
from riskset._types import AnyArray

__all__ = [
    "arrow_table",
    "check_folder",
    "check_replaceable",
    "check_target",
    "lock",
    "replacing",
    "replacing_folder",
    "write_json",
    "write_pairs",
    "write_table",
]

TABLE_SUFFIXES = (".csv", ".parquet")
ROW_GROUP = 1 << 20


def check_target(
    path: Path, *, suffixes: tuple[str, ...] = (), inputs: Iterable[Path] = ()
) -> None:
    """Complain now, not after an hour of work, if `path` cannot be written, or is an input."""
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder.", hint="name a file in it.")
    if suffixes and path.suffix.lower() not in suffixes:
        raise InputError(
            f"cannot write {str(path)!r}: its name must end in {' or '.join(suffixes)}.",
            hint="the ending says what the file holds.",
        )
    if path.exists():
        if not path.is_file():
            raise InputError(
                f"cannot write {str(path)!r}: it is a device or a pipe, not a file.",
                hint="name a file.",
            )
        for source in inputs:
            if source.exists() and path.samefile(source):
                raise InputError(
                    f"cannot write {str(path)!r}: it is the file {str(source)!r} that is read.",
                    hint="choose another name; riskset never replaces what it reads.",
                )
    folder = _target(path).parent
    if not folder.is_dir():
        raise InputError(
            f"cannot write {str(path)!r}: the folder {str(folder)!r} does not exist.",
            hint="create it first, or correct the path.",
        )
    if not os.access(folder, os.W_OK):
        raise InputError(
            f"cannot write {str(path)!r}: no permission to write in {str(folder)!r}.",
            hint="choose another place.",
        )


def check_folder(path: Path | None) -> None:
    """Complain now if `path` cannot be a folder to write to; None: no folder is wanted."""
    if path is None:
        return
    whole = path.absolute()
    # What is missing will be created in the innermost folder that exists.
    place = next(place for place in (whole, *whole.parents) if os.path.lexists(place))
    if not place.is_dir():
        raise InputError(
            f"cannot write into {str(path)!r}: {'it' if place == whole else repr(str(place))} is "
            "a file.",
            hint="name a folder instead.",
        )
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(
            f"cannot write into {str(path)!r}: no permission to write in {str(place)!r}.",
            hint="choose another place.",
        )


def check_replaceable(folder: Path, by: str, document: str | None = None) -> None:
    """Complain now if a folder cannot be written whole.

    It is new or empty, or has the `document` of what would be replaced. `by` says in messages what
    is to be written, such as "an export".
    """
    check_folder(folder)
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if document is None or not (folder / document).is_file():
        raise InputError(
            f"the folder {str(folder)!r} has files, which {by} would replace.",
            hint="name a new folder.",
        )


def lock(stream: IO[Any], busy: InputError) -> None:
    """Raise `busy` if another run has the file; the system lets go of it when a run is killed."""
    if sys.platform == "win32":  # has no fcntl
        return
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise busy from None
    except OSError:  # a file system without locks
        return


def _target(path: Path) -> Path:
    """The file that `path` stands for: where a symbolic link leads, there or not yet."""
    return Path(os.path.realpath(path))


@contextmanager
def replacing(*paths: Path, mode: int = 0o666) -> Iterator[tuple[Path, ...]]:
    """Temporary names next to `paths`, renamed if the block succeeds and otherwise removed.

    In the same folder, because a rename is atomic only within one file system. A symbolic link
    stays, and the file where it leads is replaced. Errors name the path that was asked for. The
    files have the permissions `mode`, less those that the umask takes away.
    """
    temporary = []
    try:
        for path in map(_target, paths):
            handle, name = tempfile.mkstemp(
                prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent
            )
            os.close(handle)
            temporary.append(Path(name))
        yield tuple(temporary)
        mask = os.umask(0)
        os.umask(mask)
        for source, path in zip(temporary, map(_target, paths), strict=True):
            # mkstemp makes files for their owner alone; results get the usual permissions.
            source.chmod(mode & ~mask)
            source.replace(path)
    except OSError as error:
        # A full disk is reported without a name, or with that of a temporary file.
        place = paths[0] if len(paths) == 1 else paths[0].parent
        code = error.errno or errno.EIO
        reason = os.strerror(code) if error.errno else str(error)
        raise OSError(code, f"cannot be written: {reason}", str(place)) from error
    finally:
        for source in temporary:
            source.unlink(missing_ok=True)


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """A new folder next to `folder`, which replaces it when the block succeeds."""
    folder = folder.absolute()
    new, old = (folder.with_name(f".{folder.name}-{what}") for what in ("unfinished", "old"))
    for left in (new, old):  # by a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write `content` as JSON; refuses NaN and infinities, which JSON lacks."""
    with replacing(path) as (temporary,):
        temporary.write_text(_json(content, "") + "\n", encoding="utf-8")


def _json(content: object, margin: str) -> str:
    """One key or record a line, for people; lists of numbers, which can be long, on one line."""
    inner = margin + "  "
    if isinstance(content, list) and content and isinstance(content[0], Mapping):
        items = [inner + json.dumps(item, allow_nan=False, ensure_ascii=False) for item in content]
        return "[\n" + ",\n".join(items) + "\n" + margin + "]"
    if not isinstance(content, Mapping) or not content:
        return json.dumps(content, allow_nan=False, ensure_ascii=False)
    lines = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_json(value, inner)}"
        for key, value in content.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n" + margin + "}"


def arrow_table(columns: Mapping[str, AnyArray]) -> pyarrow.Table:
    """Columns of equal length as an Arrow table; masked values are missing."""
    return pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})


def write_table(path: Path, columns: Mapping[str, AnyArray]) -> None:
    """Write columns of equal length as CSV or Parquet, by the ending of the name."""
    table = arrow_table(columns)
    with replacing(path) as (temporary,):
        if path.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, temporary)
        else:
            pyarrow.parquet.write_table(table, temporary, compression="zstd")


def write_pairs(
    path: Path,
    names: tuple[str, str],
    blocks: Iterator[tuple[AnyArray, AnyArray]],
) -> None:
    """Write blocks of two whole-number columns to one Parquet file, a block at a time.

    Sorted runs of numbers, as rows within a covariate are, take about a byte each.
    """
    schema = pyarrow.schema([(name, pyarrow.int64()) for name in names])
    with pyarrow.parquet.ParquetWriter(
        path,
        schema,
        compression="zstd",
        use_dictionary=False,
        column_encoding=dict.fromkeys(names, "DELTA_BINARY_PACKED"),
    ) as writer:
        for first, second in blocks:
            table = pyarrow.table(
                [pyarrow.array(first, pyarrow.int64()), pyarrow.array(second, pyarrow.int64())],
                schema=schema,
            )
            writer.write_table(table, row_group_size=ROW_GROUP)
