"""JSON documents that riskset wrote: parsed strictly, checked against a form, and sealed.

A *form* is a pydantic model: it declares the type, range and length of every value that riskset
reads. A document that does not fit is refused with the path of the value inside the file. A *seal*
is a checksum of the document, stored inside it, so that a single changed digit is found.
"""

import hashlib
import json
import math
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from riskset._errors import InputError

__all__ = [
    "DAMAGED_ARCHIVE",
    "SEAL",
    "Finite",
    "Form",
    "GroupLabel",
    "Numeral",
    "check_ascending",
    "check_form",
    "check_label",
    "checksum",
    "content_checksum",
    "is_sealed",
    "parse_json",
    "sealed",
    "unsealed",
]

SEAL = "sha256"
"""Key of the seal, the last key of a sealed document."""

DAMAGED_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    ValueError,
    EOFError,
    KeyError,
    OSError,
)
"""What zipfile and NumPy raise on damaged bytes: a changed flag reads as an unknown method of
compression (NotImplementedError) or as encryption (RuntimeError)."""

MAX_CHARACTERS_SHOWN = 60
"""Characters of a wrong value that a message shows."""


def check_label(value: object) -> object:
    """Raise ValueError if a value is not a label."""
    if not isinstance(value, str | bool | int | float) or value != value:
        raise ValueError(f"a label must be text or a number, but it is {_shown(value)}")
    return value


def _as_number(value: object) -> object:
    return float(value) if value in ("inf", "-inf") else value


Finite = Annotated[float, Field(allow_inf_nan=False)]
"""A finite number."""

Numeral = Annotated[float, BeforeValidator(_as_number)]
"""A number; infinity is written as the text "inf" or "-inf"."""

GroupLabel = Annotated[Any, AfterValidator(check_label)]
"""A label of a group, a stratum or a level: text, a number or a truth value."""


class Form(BaseModel):
    """Base of all forms: types are not converted, and keys that riskset does not read may exist."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


F = TypeVar("F", bound=Form)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; NaN and infinities, which JSON does not have, are errors.

    Raises ValueError if the text is not valid JSON, not UTF-8, or nested too deeply.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def check_form(form: type[F], content: object, *, file: str, hint: str) -> F:
    """Check what `parse_json` returned against its form.

    An `InputError` gives the path inside the file of a value that is missing, or has another type,
    length or range.

    Examples
    --------
    >>> class Point(Form):
    ...     x: Finite
    >>> check_form(Point, {"x": 1.5}, file="point.json", hint="write it again.")
    Point(x=1.5)
    >>> check_form(Point, {"x": "1.5"}, file="point.json", hint="write it again.")
    Traceback (most recent call last):
    riskset._errors.InputError: point.json is damaged: `x`: input should be a valid number, but it
    is '1.5'.
    Hint: write it again.
    """
    try:
        return form.model_validate(content)
    except ValidationError as error:
        wrong = error.errors(include_url=False)
        raise InputError(f"{file} is damaged: {_said(wrong[0])}.", hint=hint) from None


def _said(wrong: Mapping[str, Any]) -> str:
    """One fault of a document in words: the path of the value, what it must be, what it is."""
    path = "/".join(str(step) for step in wrong["loc"])
    reason = wrong["ctx"]["error"] if wrong["type"] == "value_error" else None
    message = str(reason) if reason is not None else wrong["msg"][0].lower() + wrong["msg"][1:]
    place = f"`{path}`: " if path else ""
    if wrong["type"] == "missing":
        return f"{place}this key is missing"
    if reason is not None:
        return f"{place}{message}"
    return f"{place}{message}, but it is {_shown(wrong['input'])}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_CHARACTERS_SHOWN else f"{text[:MAX_CHARACTERS_SHOWN]}..."


def check_ascending(values: list[float], *, strictly: bool, what: str) -> None:
    """Raise ValueError if values are NaN or do not rise."""
    for k, (before, after) in enumerate(zip(values[:-1], values[1:], strict=True), start=1):
        if after < before or (strictly and after == before):
            raise ValueError(
                f"{what} must rise, but number {k} is {before!r} and the next {after!r}"
            )
    if any(math.isnan(value) for value in values):
        raise ValueError(f"{what} must be numbers, but one is NaN")


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with its checksum under the key "sha256"."""
    content = {key: value for key, value in document.items() if key != SEAL}
    return {**content, SEAL: content_checksum(content)}


def unsealed(document: Any) -> dict[str, Any]:
    """A sealed document without its seal; raises ValueError if its checksum does not fit."""
    if not isinstance(document, dict) or not is_sealed(document):
        raise ValueError("the document does not agree with its checksum")
    return {key: value for key, value in document.items() if key != SEAL}


def is_sealed(document: Mapping[str, Any]) -> bool:
    """Whether the checksum of a document fits its content.

    >>> document = sealed({"rows": 3})
    >>> is_sealed(document), is_sealed({**document, "rows": 4}), is_sealed({"rows": 3})
    (True, False, False)
    """
    content = {key: value for key, value in document.items() if key != SEAL}
    return bool(document.get(SEAL) == content_checksum(content))


def checksum(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_checksum(content: Mapping[str, Any]) -> str:
    """SHA-256 of a document, the same before it is written and after it is read."""
    # As it is parsed again: keys become text, tuples lists.
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()
