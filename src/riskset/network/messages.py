"""Signed messages between the sites of a federated fit and the place that coordinates it.

A message is a JSON document of numbers and names, which people can read. Its signature is the HMAC
with SHA-256 (RFC 2104) of the document without the signature, with a secret that the sites share.
"""

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from riskset._errors import InputError
from riskset.data.documents import parse_json
from riskset.data.writers import replacing

__all__ = ["ENVIRONMENT", "Secret", "digest", "read_message", "write_message"]

Message = dict[str, Any]
ENVIRONMENT = "RISKSET_NETWORK_SECRET"
"""Variable of the environment that has the secret, if no file is named."""
SIGNATURE = "signature"
MIN_SECRET_BYTES = 16


class Secret:
    """The secret that the sites share: of a file, or of the environment."""

    def __init__(self, file: str | Path | None = None) -> None:
        if file is None:
            self._key = os.environ.get(ENVIRONMENT, "").encode().strip()
        else:
            try:
                self._key = Path(file).read_bytes().strip()
            except OSError as error:
                raise InputError(
                    f"the file {str(file)!r} of the secret cannot be read: {error.strerror}.",
                    hint="check its name and its rights.",
                ) from None
        if len(self._key) < MIN_SECRET_BYTES:
            place = f"the variable {ENVIRONMENT}" if file is None else f"the file {str(file)!r}"
            raise InputError(
                f"{place} has no secret of {MIN_SECRET_BYTES} bytes or more.",
                hint="write random text to a file that only this project can read, and give each "
                "site a copy, by another way than the messages.",
            )

    def sign(self, content: Mapping[str, Any]) -> str:
        """The signature of a document."""
        return hmac.new(self._key, _bytes(content), hashlib.sha256).hexdigest()

    def of_data(self, checksum: str) -> str:
        """A mark of data that says whether they changed, to those who know the secret."""
        return hmac.new(self._key, checksum.encode(), hashlib.sha256).hexdigest()[:32]

    def __repr__(self) -> str:
        return "Secret(...)"


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a document without its signature: what an answer says it is for."""
    return hashlib.sha256(_bytes(content)).hexdigest()


def write_message(path: Path, content: Mapping[str, Any], secret: Secret) -> int:
    """Write a signed message, whole or not at all; its size in bytes."""
    document = {**content, SIGNATURE: secret.sign(content)}
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1)
    with replacing(path) as (temporary,):
        temporary.write_text(text + "\n", encoding="utf-8")
    return path.stat().st_size


def read_message(path: Path, kind: str, secret: Secret) -> Message:
    """A message without its signature, which must fit; an `InputError` if it does not."""
    try:
        content = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise InputError(
            f"there is no message {str(path)!r}.", hint="check the name of the file."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{str(path)!r} is not a message: {error}.", hint="copy the file again."
        ) from None
    signature = content.pop(SIGNATURE, None) if isinstance(content, dict) else None
    if not isinstance(signature, str):
        raise InputError(f"{str(path)!r} has no signature.", hint="copy the file again.")
    if not _fits(signature, content, secret):
        raise InputError(
            f"the signature of {str(path)!r} does not fit: the message was changed, or it was "
            "signed with another secret.",
            hint="copy the file again, and compare the secrets.",
        )
    if content.get("kind") != kind:
        raise InputError(
            f"{str(path)!r} is not {'a question' if kind == 'question' else 'an answer'}, but "
            f"{content.get('kind')!r}.",
            hint="sites answer questions, and the coordinator reads answers.",
        )
    return dict(content)


def _fits(signature: str, content: Mapping[str, Any], secret: Secret) -> bool:
    try:
        own = secret.sign(content)
    except ValueError:  # a number as large as 1e400, which no message has
        return False
    return signature.isascii() and hmac.compare_digest(signature, own)


def _bytes(content: Mapping[str, Any]) -> bytes:
    known = {key: value for key, value in content.items() if key != SIGNATURE}
    return json.dumps(known, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
