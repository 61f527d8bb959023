"""A file that holds one JSON document and named arrays, without pickle.

A zip archive with ``fit.json`` and one ``.npy`` file for each array: readable by anything that
reads JSON and NumPy's format, and never able to run code. It knows nothing of models; see
`riskset.load`.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, is_count
from riskset._version import __version__
from riskset.data.documents import DAMAGED_ARCHIVE, SEAL, is_sealed, parse_json, sealed
from riskset.data.writers import check_target, replacing

__all__ = ["FORMAT_VERSION", "read_archive", "write_archive"]

FORMAT = "riskset-fit"
FORMAT_VERSION = 2
"""Version 2 has checksums of the document and of each array."""
DOCUMENT = "fit.json"
SUFFIX = ".npy"
CHECKSUMS = "arrays"
"""Key of the checksums of the arrays."""


def write_archive(
    path: str | os.PathLike[str], document: Mapping[str, object], arrays: Mapping[str, AnyArray]
) -> None:
    """Write a file, or leave what was there untouched.

    Parameters
    ----------
    path : path
    document : mapping
        What JSON can hold; infinite and missing numbers are not allowed.
    arrays : mapping of str to array
        Numbers or text, no Python objects.

    Raises
    ------
    InputError
        If the path is a folder, or in a folder that is absent or closed to writing.
    """
    path = Path(path)
    check_target(path)
    packed = {name: _packed(array) for name, array in arrays.items()}
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "riskset": __version__}
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in packed.items()}
    whole = sealed({**head, **document, CHECKSUMS: checksums})
    text = json.dumps(whole, indent=1, allow_nan=False)
    with replacing(path) as (temporary,), temporary.open("wb") as stream:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(DOCUMENT, text)
            for name, content in packed.items():
                archive.writestr(name + SUFFIX, content)
        stream.flush()
        os.fsync(stream.fileno())


def read_archive(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The document and the arrays of a file.

    Raises
    ------
    FileNotFoundError
    InputError
        If the file is not one of ours, is damaged or cut short, or comes from a later version.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder.", hint="name a file in it.")
    with path.open("rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                document = _read_document(archive, path)
                packed = {
                    name.removesuffix(SUFFIX): archive.read(name)
                    for name in archive.namelist()
                    if name.endswith(SUFFIX)
                }
                _check_arrays(document.pop(CHECKSUMS, None), packed, path)
                arrays = {name: _unpacked(content) for name, content in packed.items()}
        except InputError:
            raise
        except DAMAGED_ARCHIVE as error:
            raise _not_zip(path, error) from None
    return document, arrays


def _read_document(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    if DOCUMENT not in archive.namelist():
        raise _not_ours(path, f"it is a zip archive without {DOCUMENT}")
    document = parse_json(archive.read(DOCUMENT))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _not_ours(path, f"its {DOCUMENT} does not say {FORMAT!r}")
    version = document.get("format_version")
    if not is_count(version):
        raise _not_ours(path, f"its format version is {version!r}")
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path.name} was written by riskset {document.get('riskset')} in format {version}, "
            f"but riskset {__version__} reads formats up to {FORMAT_VERSION}.",
            hint="upgrade riskset.",
        )
    if (version > 1 or SEAL in document) and not is_sealed(document):
        raise _changed(path, f"its {DOCUMENT} does not agree with its checksum")
    document.pop(SEAL, None)
    return document


def _packed(array: AnyArray) -> bytes:
    packed = io.BytesIO()
    np.save(packed, array, allow_pickle=False)
    return packed.getvalue()


def _unpacked(content: bytes) -> AnyArray:
    array: AnyArray = np.load(io.BytesIO(content), allow_pickle=False)
    return array


def _check_arrays(
    checksums: Mapping[str, str] | None, packed: Mapping[str, bytes], path: Path
) -> None:
    """Compare the arrays with the checksums in the document; a file of version 1 has none."""
    if checksums is None:
        return
    found = {name: hashlib.sha256(content).hexdigest() for name, content in packed.items()}
    differ = sorted({name for name, _ in found.items() ^ checksums.items()})
    if differ:
        raise _changed(path, f"its array {differ[0]!r} does not agree with its checksum")


def _changed(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name} is damaged: {why}.", hint="copy the file again, or save the model again."
    )


def _not_zip(path: Path, error: Exception) -> InputError:
    with path.open("rb") as stream:
        start = stream.read(64).lstrip()
    if start.startswith(b"{"):
        return InputError(
            f"{path.name} is a JSON document, not a fit saved by riskset.",
            hint="what `riskset fit` wrote is for `riskset predict`; riskset.load reads what "
            "model.save(...) wrote.",
        )
    return _not_ours(path, f"it is some other file, or damaged or cut short ({error})")


def _not_ours(path: Path, why: str) -> InputError:
    return InputError(
        f"{path.name} is not a fit saved by riskset: {why}.",
        hint="pass a file written by model.save(...).",
    )
