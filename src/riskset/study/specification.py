"""The specification of a study, from a file or a mapping, validated."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from riskset._errors import InputError, counted
from riskset.study.analysis_sections import Analysis
from riskset.study.checking import check
from riskset.study.data_sections import (
    CdmData,
    CdmExposure,
    CdmOutcome,
    TableData,
    TableExposure,
    TableOutcome,
)
from riskset.study.document import Document, key

__all__ = ["Specification", "Study", "Variable"]


@dataclass(frozen=True)
class Comparison:
    """Who is compared with whom, by the names of exposures."""

    target: str = key("an exposure")
    comparator: str = key("an exposure")


@dataclass(frozen=True)
class Variable:
    """A variable of people: a column of the data, in parts if need be, or who has a covariate."""

    column: str | None = key(
        "of the table of people; of a CDM sex, age, race, ethnicity or year (of the start), which "
        "a table has by its `index_date`",
        None,
    )
    borders: tuple[float, ...] = key("of a number: where its levels part and the next begins", ())
    covariate: str | None = key("name or key of a covariate, instead of a column", None)


@dataclass(frozen=True)
class Subgroup:
    """A variable in whose levels the effect is estimated, too."""

    column: str = key("a variable, or a column as it is")
    label: str | None = key("what readers call it; the name, if left out", None)


@dataclass(frozen=True)
class Table1Section:
    """Lines of the table of characteristics."""

    section: str = key("its title")
    covariates: tuple[str, ...] = key("names or keys of covariates; * stands for any characters")


@dataclass(frozen=True)
class Limits:
    """From where on an estimate may not be looked at; see `riskset.cohort.diagnose`."""

    max_smd: float = key("largest standardised difference after adjustment", 0.1, above=0)
    max_shared_smd: float | None = key(
        "the same limit for the shared balance, which decides about controls; none: max_smd",
        None,
        above=0,
    )
    min_equipoise: float = key("share of people in equipoise", 0.2, least=0, most=1)
    max_mdrr: float = key("smallest detectable hazard ratio", 10.0, above=1)
    max_ease: float = key("expected absolute systematic error", 0.25, above=0)
    max_generalisability: float | None = key(
        "largest standardised difference before and after adjustment, in the group that the effect "
        "is about; none: no limit",
        None,
        above=0,
    )


@dataclass(frozen=True)
class Sharing:
    """What of the results may be shared."""

    min_cell_count: int = key("counts above 0 and below it are hidden", 5, least=0)
    blind: bool = key("withhold effects that fail diagnostics", True)


@dataclass(frozen=True)
class ReportOptions:
    """What the report shows."""

    curves: Literal["risk", "survival"] = key(
        "what curves show; survival only where there are no competing events", "risk"
    )
    covariates: tuple[str, ...] = key("names or keys of covariates whose balance is listed", ())


@dataclass(frozen=True)
class Specification:
    """The whole file."""

    title: str = key("of the study")
    data: TableData | CdmData = key("where the data are: a table of people, or a CDM")
    exposures: dict[str, TableExposure | CdmExposure] = key("targets and comparators")
    comparisons: tuple[Comparison, ...] = key("pairs of exposures")
    outcomes: dict[str, TableOutcome | CdmOutcome] = key("outcomes and controls")
    analyses: dict[str, Analysis] = key("ways to answer")
    description: str = key("of the study", "")
    defaults: Analysis = key("sections that every analysis has unless it has its own", Analysis)
    competing: str | None = key("what the competing events are, for readers", None)
    competing_events: dict[str, CdmOutcome] = key("competing events of a CDM", dict)
    variables: dict[str, Variable] = key("for subgroups and `within`, beside the columns", dict)
    subgroups: dict[str, Subgroup] = key("variables to look into", dict)
    table1: tuple[Table1Section, ...] = key(
        "characteristics to show; left out: all covariates, or the 100 most common", ()
    )
    risk_times: tuple[float, ...] = key("days at which to show risks", (365.0,), above=0)
    diagnostics: Limits = key("limits of the diagnostics", Limits)
    calibration: Literal["posterior", "likelihood"] = key("of estimates by controls", "posterior")
    sharing: Sharing = key("what may be shared", Sharing)
    report: ReportOptions = key("what the report shows", ReportOptions)
    seed: int = key("of everything random", 1, least=0)


class Study:
    """A study: its specification and the folder of its files.

    Parameters
    ----------
    content : mapping
        Content of a specification; `docs/study.md` explains every key.
    folder : str or Path, optional
        Folder of the files in the specification. Default: the working directory.

    Attributes
    ----------
    specification : Specification
    folder : Path

    Raises
    ------
    InputError
        If a key is unknown or missing, or a value has the wrong type or contradicts another one.
        Errors of a file give the line.
    """

    def __init__(self, content: Mapping[str, Any], folder: str | Path | None = None) -> None:
        self._set(Document.of_mapping(content), Path() if folder is None else Path(folder))

    @classmethod
    def read(cls, path: str | Path) -> "Study":
        """Read a YAML or JSON file; its paths are relative to the file."""
        return cls._from(Document.read(Path(path)), Path(path).parent)

    @classmethod
    def parse(cls, text: str, folder: str | Path = ".", name: str = "study.yaml") -> "Study":
        """Read a specification from YAML or JSON text."""
        return cls._from(Document.parse(text, name), Path(folder))

    @classmethod
    def _from(cls, document: Document, folder: Path) -> "Study":
        study = cls.__new__(cls)
        study._set(document, folder)
        return study

    def _set(self, document: Document, folder: Path) -> None:
        self._document = _with_defaults(document)
        self.folder = folder
        self.specification = self._document.build(Specification)
        check(self)

    def __repr__(self) -> str:
        own = self.specification
        return (
            f"Study({own.title!r}: {counted(len(own.comparisons), 'comparison')} x "
            f"{counted(len(own.outcomes), 'outcome')} x "
            f"{counted(len(own.analyses), 'analysis', 'analyses')})"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The specification with all defaults, as for JSON, with file names without folders.

        Settings of the computer, such as memory, are left out.
        """
        found: dict[str, Any] = json.loads(
            json.dumps(dataclasses.asdict(self.specification), default=str)
        )
        del found["defaults"]
        for name in ("memory_limit", "spill_folder"):
            found["data"].pop(name, None)
        files = [(found["data"], name) for name in ("people", "cdm", "cohort_table")]
        files.append((found["data"].get("covariates", {}), "table"))
        for group in ("exposures", "outcomes", "competing_events"):
            files += [(member, "concept_set") for member in found[group].values()]
        for place, name in files:
            if place.get(name) is not None:
                place[name] = Path(place[name]).name
        return found

    @property
    def settings_hash(self) -> str:
        """SHA-256 of the settings."""
        text = json.dumps(self.settings, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def fault(self, *path: str, message: str, hint: str | None = None) -> InputError:
        """An error that names the line of the keys `path`."""
        return self._document.fault(path, message, hint)

    def placed(self, error: InputError, *path: str) -> InputError:
        """An error of what the keys `path` name, with their line."""
        message, _, hint = str(error).partition("\nHint: ")
        return self.fault(*path, message=message, hint=hint or None)

    def no_file(self, *path: str, file: Path) -> InputError:
        """An error about a file or folder that is not there."""
        hint = "paths stand relative to the folder of the specification."
        return self.fault(*path, message=f"there is no file or folder {str(file)!r}.", hint=hint)

    def unknown(
        self, *path: str, what: str, name: str, known: Iterable[str], place: str = ""
    ) -> InputError:
        """An error about a name that does not exist, with the line and the closest ones that do."""
        return self.placed(InputError.unknown_name(what, name, known, place=place), *path)


def _with_defaults(document: Document) -> Document:
    """Every analysis stands upon the section `defaults`, as YAML's ``<<`` would have it."""
    root = document.root
    if not isinstance(root, yaml.MappingNode):
        return document
    sections = {
        name.value: value for name, value in root.value if isinstance(name, yaml.ScalarNode)
    }
    defaults, analyses = sections.get("defaults"), sections.get("analyses")
    if not isinstance(defaults, yaml.MappingNode) or not isinstance(analyses, yaml.MappingNode):
        return document
    merge = yaml.ScalarNode("tag:yaml.org,2002:merge", "<<", defaults.start_mark, defaults.end_mark)
    pairs = []
    for name, value in analyses.value:
        is_empty = isinstance(value, yaml.ScalarNode) and not value.value
        if isinstance(value, yaml.MappingNode) or is_empty:
            own = [] if is_empty else value.value
            value = yaml.MappingNode(
                "tag:yaml.org,2002:map", [(merge, defaults), *own], value.start_mark, value.end_mark
            )
        pairs.append((name, value))
    changed = yaml.MappingNode(analyses.tag, pairs, analyses.start_mark, analyses.end_mark)
    content = [(n, changed if v is analyses else v) for n, v in root.value]
    return Document(
        document.name, yaml.MappingNode(root.tag, content, root.start_mark, root.end_mark)
    )
