"""The evidence of a study as files that the R package EvidenceSynthesis reads, and back.

::

    evidence.json         settings of the study, and the data set; no counts
    estimates.csv         an estimate a row, with the number of the file of its profile
    profiles/0001.csv     the profile of an estimate: point, value, derivative
"""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from riskset._errors import InputError
from riskset._version import __version__
from riskset.data.documents import SEAL, checksum, is_sealed, parse_json, sealed
from riskset.data.writers import check_replaceable, replacing_folder, write_json
from riskset.network.evidence import EstimateKey, EvidenceRow, evidence_of, name_of
from riskset.results.folder import StudyResults

__all__ = ["is_evidence_folder", "read_evidence", "write_evidence"]

FORMAT = 1
DOCUMENT, ESTIMATES, PROFILES = "evidence.json", "estimates.csv", "profiles"
GROUPS = ("targets", "comparators", "outcomes", "analyses")
PROFILE_COLUMNS = ("point", "value", "derivative")
COLUMNS = (
    *EstimateKey._fields,
    *("kind", "trueRr", "status", "logRr", "seLogRr", "llr"),
    *("targetOutcomes", "comparatorOutcomes", "profile"),
)
AGAIN = "write it again: `riskset study export DIR --evidence FOLDER`."


def write_evidence(results: StudyResults, folder: str | Path) -> Path:
    """Write estimates and likelihood profiles for EvidenceSynthesis, and for `meta`.

    Every estimate has a row in ``estimates.csv``. Its profile is a file of its own with the columns
    ``point``, ``value`` and ``derivative``, which EvidenceSynthesis calls a grid with gradients.
    Effects that fail diagnostics have neither an estimate nor a profile, except if all that failed
    is the minimum detectable ratio.

    Parameters
    ----------
    results : StudyResults
        The shared results of a study.
    folder : str or Path
        A new folder, or one of earlier evidence, which is replaced.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InputError
        If the folder holds something else.

    References
    ----------
    Schuemie, Chen, Madigan and Suchard (2022), Statistical Methods in Medical Research 31, 438-450,
    doi:10.1177/09622802211060518.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import riskset as rs
    >>> study = rs.study.Study.parse(rs.study.example())
    >>> with tempfile.TemporaryDirectory() as place:
    ...     results = rs.study.run(study, Path(place) / "run")
    ...     folder = rs.network.write_evidence(results, Path(place) / "evidence")
    ...     text = (folder / "profiles/0001.csv").read_text()
    >>> text.splitlines()[0]
    'point,value,derivative'
    """
    place = Path(folder)
    check_replaceable(place, "an export", DOCUMENT)
    rows = evidence_of(results)
    with replacing_folder(place) as temporary:
        (temporary / PROFILES).mkdir()
        files = {}
        for number, row in enumerate(rows, start=1):
            if row.points:
                files[number] = _profile_file(temporary, number)
                _write_csv(files[number], PROFILE_COLUMNS, row.points)
        listed = [_line(row, n if n in files else None) for n, row in enumerate(rows, start=1)]
        _write_csv(temporary / ESTIMATES, COLUMNS, listed)
        study = results.study
        document = {
            "format": FORMAT,
            "riskset": __version__,
            "data": {"name": name_of(results), "description": study["data"]["description"]},
            **{group: study[group] for group in GROUPS},
            "settings": study["settings"],
            "settings_hash": study["settings_hash"],
            "files": {
                path.relative_to(temporary).as_posix(): checksum(path)
                for path in (temporary / ESTIMATES, *files.values())
            },
        }
        write_json(temporary / DOCUMENT, sealed(document))
    return place


def is_evidence_folder(folder: Path) -> bool:
    """Whether `write_evidence` wrote a folder."""
    return (folder / DOCUMENT).is_file()


def read_evidence(folder: Path) -> tuple[dict[str, Any], list[EvidenceRow]]:
    """The document and the estimates of a folder, whose checksums must fit."""
    try:
        document = parse_json((folder / DOCUMENT).read_bytes())
    except (OSError, ValueError) as error:
        raise _damaged(folder / DOCUMENT, str(error)) from error
    if not isinstance(document, dict) or not is_sealed(document):
        raise _damaged(folder / DOCUMENT, "it does not agree with its checksum")
    if document["format"] != FORMAT:
        raise InputError(
            f"{str(folder / DOCUMENT)!r} has the format {document['format']!r}, but this version "
            f"of riskset reads format {FORMAT}.",
            hint=AGAIN,
        )
    del document[SEAL]
    for name, known in document["files"].items():
        path = folder / name
        if not path.is_file():
            raise InputError(
                f"the file {name!r} of the evidence is missing in {str(folder)!r}.",
                hint="copy the whole folder, or write it again.",
            )
        if checksum(path) != known:
            raise _damaged(path, f"its checksum is not the one in {DOCUMENT}")
    return document, list(_rows(folder))


def _rows(folder: Path) -> Iterator[EvidenceRow]:
    for line in _read_csv(folder / ESTIMATES):
        points: list[tuple[float, float, float | None]] = []
        if line["profile"]:
            path = _profile_file(folder, int(line["profile"]))
            points = [
                (float(one["point"]), float(one["value"]), _number(one["derivative"]))
                for one in _read_csv(path)
            ]
        yield EvidenceRow(
            EstimateKey(*(line[name] for name in EstimateKey._fields)),
            line["kind"],
            _number(line["trueRr"]),
            line["status"],
            _number(line["logRr"]),
            _number(line["seLogRr"]),
            _number(line["llr"]),
            _count(line["targetOutcomes"]),
            _count(line["comparatorOutcomes"]),
            points,
        )


def _line(row: EvidenceRow, profile: int | None) -> tuple[object, ...]:
    values = (row.kind, row.true_hr, row.status, row.log_hr, row.se, row.llr)
    return (*row.key, *values, row.target_outcomes, row.comparator_outcomes, profile)


def _profile_file(folder: Path, number: int) -> Path:
    return folder / PROFILES / f"{number:04d}.csv"


def _write_csv(path: Path, names: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_word(value) for value in row] for row in rows)


def _word(value: object) -> str:
    """A value as R reads it: nothing for a missing one, and numbers with all digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).replace("inf", "Inf")
    return str(value)


def _read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def _number(word: str) -> float | None:
    return float(word) if word else None


def _count(word: str) -> int | None:
    return int(word) if word else None


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{str(path)!r} is damaged: {why}.", hint=AGAIN)
