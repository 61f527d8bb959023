"""Numbers by which OHDSI's results name comparisons, exposures, outcomes, analyses, covariates."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from riskset._errors import InputError

__all__ = ["ResultNumbers", "covariate_number", "number_of_name", "target_comparator_id"]

COHORT_BITS = 31
"""Of numbers made from names of exposures, outcomes and analyses: R's integers hold them."""
COVARIATE_BITS = 53
"""Of numbers made from names of covariates: R's floating-point numbers hold them exactly."""

NumberedEntries = Mapping[str, Mapping[str, Any]]


def target_comparator_id(target: int, comparator: int, nesting_cohort: int | None = None) -> int:
    """Number of a comparison, as CohortMethod makes it.

    The MurmurHash3 (x86, 32 bits, seed 0) of the text "target comparator nesting_cohort", with "NA"
    if there is no nesting cohort, minus 2^31.

    Examples
    --------
    >>> target_comparator_id(1, 2)
    894409308
    """
    # Here, because it takes long to import.
    from sklearn.utils import murmurhash3_32

    nesting = "NA" if nesting_cohort is None else str(nesting_cohort)
    return int(murmurhash3_32(f"{target} {comparator} {nesting}", positive=True)) - 2**31


def number_of_name(kind: str, name: str, bits: int = COHORT_BITS) -> int:
    """A number above 0 that depends on this name alone: the first `bits` bits of a SHA-256.

    `kind` and `name` are hashed with a colon between them, so that an exposure and an outcome of
    the same name have different numbers.

    Examples
    --------
    >>> number_of_name("outcome", "bleeding")
    1425978170
    """
    digest = hashlib.sha256(f"{kind}:{name}".encode()).digest()
    return (int.from_bytes(digest[:8], "big") >> (64 - bits)) or 1


def covariate_number(key: str) -> int:
    """The key of a covariate if it is a number, as in a CDM, and else a number of its name."""
    found = _whole_number(key, COVARIATE_BITS)
    return number_of_name("covariate", key, COVARIATE_BITS) if found is None else found


def _whole_number(name: str, bits: int) -> int | None:
    """The number above 0 that is written like a name; 007 is another name than 7, and no number."""
    is_number = name.isascii() and name.isdecimal() and not name.startswith("0")
    return int(name) if is_number and len(name) < 20 and int(name) < 2**bits else None


class ResultNumbers:
    """Numbers of the exposures, outcomes and analyses of a study, by their names.

    An entry has the number that the specification gives it: its ``ohdsi_id``, else its ``cohort``,
    else its name if that is a whole number. Without one, or if an earlier entry has the same
    cohort, it is `number_of_name`, which does not change when entries are added.

    Parameters
    ----------
    study : mapping
        Content of ``study.json``.

    Raises
    ------
    InputError
        If two entries of a kind have the same ``ohdsi_id``, or the number of another one.
    """

    def __init__(self, study: Mapping[str, Any]) -> None:
        settings = study["settings"]
        self.exposures = _numbers("exposure", settings["exposures"])
        self.outcomes = _numbers("outcome", settings["outcomes"])
        self.analyses = _numbers("analysis", settings["analyses"])
        self._nesting = {
            name: (analysis.get("eligibility") or {}).get("nesting_cohort")
            for name, analysis in settings["analyses"].items()
        }

    def nesting_cohort(self, analysis: str) -> int | None:
        """The cohort within whose records people of an analysis start."""
        number: int | None = self._nesting[analysis]
        return number

    def comparison(self, target: str, comparator: str, analysis: str) -> int:
        """Number of a comparison in an analysis."""
        nesting = self.nesting_cohort(analysis)
        return target_comparator_id(self.exposures[target], self.exposures[comparator], nesting)


def _numbers(kind: str, entries: NumberedEntries) -> dict[str, int]:
    """A number for each name; those that are given come first, in the order of the entries."""
    numbers: dict[str, int] = {}
    owners: dict[int, str] = {}
    for given in (_asked(entries), _cohorts(entries), _whole(entries)):
        for name, number in given:
            if name in numbers:
                continue
            if number not in owners:
                numbers[name] = number
                owners[number] = name
            elif entries[name].get("ohdsi_id") is not None:
                raise _taken(kind, name, number, owners[number])
    for name in entries:
        if name in numbers:
            continue
        number = number_of_name(kind, name)
        if number in owners:
            raise _taken(kind, name, number, owners[number])
        numbers[name] = number
        owners[number] = name
    return numbers


def _asked(entries: NumberedEntries) -> Iterable[tuple[str, int]]:
    known = ((name, entry.get("ohdsi_id")) for name, entry in entries.items())
    return ((name, number) for name, number in known if number is not None)


def _cohorts(entries: NumberedEntries) -> Iterable[tuple[str, int]]:
    known = ((name, entry.get("cohort")) for name, entry in entries.items())
    return ((name, number) for name, number in known if isinstance(number, int) and number > 0)


def _whole(entries: NumberedEntries) -> Iterable[tuple[str, int]]:
    known = ((name, _whole_number(name, COHORT_BITS)) for name in entries)
    return ((name, number) for name, number in known if number is not None)


def _taken(kind: str, name: str, number: int, owner: str) -> InputError:
    return InputError(
        f"the {kind} {name!r} has the number {number}, which is that of {owner!r}, too.",
        hint="give each of them another `ohdsi_id` in the specification, and run the study again; "
        "finished steps are reused.",
    )
