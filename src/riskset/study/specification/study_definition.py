"""The specification of a study, from a file or a mapping, validated."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from riskset._errors import InputError, counted
from riskset._settings import Fault, Reader, as_dict
from riskset.study.specification.control_list import with_controls
from riskset.study.specification.data_sections import CdmConnection, CohortMethodFiles
from riskset.study.specification.sections import Specification
from riskset.study.specification.validation import contradictions
from riskset.study.specification.yaml_document import YamlDocument

__all__ = ["Study"]


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
        The message lists all faults, those of a file with their lines.

    Examples
    --------
    >>> import riskset as rs
    >>> study = rs.study.Study.parse(rs.study.example())
    >>> study
    Study('Right heart catheterisation and survival': 1 comparison x 1 outcome x 5 analyses)
    >>> list(study.specification.analyses)
    ['matched', 'stratified', 'overlap', 'trimmed', 'adjusted']
    """

    def __init__(self, content: Mapping[str, Any], folder: str | Path | None = None) -> None:
        self._set(YamlDocument.of_mapping(content), Path() if folder is None else Path(folder))

    @classmethod
    def read(cls, path: str | Path) -> "Study":
        """Read a YAML or JSON file; its paths are relative to the file."""
        return cls._from(YamlDocument.read(Path(path)), Path(path).parent)

    @classmethod
    def parse(cls, text: str, folder: str | Path = ".", name: str = "study.yaml") -> "Study":
        """Read a specification from YAML or JSON text."""
        return cls._from(YamlDocument.parse(text, name), Path(folder))

    @classmethod
    def _from(cls, document: YamlDocument, folder: Path) -> "Study":
        study = cls.__new__(cls)
        study._set(document, folder)
        return study

    def _set(self, document: YamlDocument, folder: Path) -> None:
        self._document = _with_defaults(document)
        self.folder = folder
        reader = Reader()
        content = self._document.content(reader.faults)
        specification = Specification(**reader.parts(Specification, content))
        specification, faults = with_controls(specification, folder)
        found = [*reader.faults, *faults, *contradictions(specification, folder)]
        self._document.refuse(found)
        self.specification = specification

    def __repr__(self) -> str:
        asked = self.specification
        return (
            f"Study({asked.title!r}: {counted(len(asked.comparisons), 'comparison')} x "
            f"{counted(len(asked.outcomes), 'outcome')} x "
            f"{counted(len(asked.analyses), 'analysis', 'analyses')})"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The specification with all defaults, as for JSON, with file names without folders.

        Settings of the computer, such as memory, are left out, and of a connection all but the name
        of the database.
        """
        asked = self.specification
        content: dict[str, Any] = json.loads(json.dumps(as_dict(asked), default=str))
        del content["defaults"]
        source = getattr(self.specification.data, "cdm", None)
        if isinstance(source, CdmConnection):
            content["data"] |= {"cdm": source.name, "schema": content["data"]["cdm"]["schema"]}
        for name in ("memory_limit", "spill_folder"):
            content["data"].pop(name, None)
        named = ("people", "cdm", "cohort_table", "cohort_definitions")
        if "cohort_method_data" in content["data"]:
            names = asked.data.names if isinstance(asked.data, CohortMethodFiles) else ()
            content["data"]["cohort_method_data"] = [Path(name).name for name in names]
        files = [(content["data"], name) for name in named]
        files.append((content["negative_controls"] or {}, "file"))
        for name in ("covariates", "covariates_over_time"):
            files.append((content["data"].get(name) or {}, "table"))
        for group in ("exposures", "outcomes", "competing_events"):
            for member in content[group].values():
                files += [(member, name) for name in ("concept_set", "definition")]
        for place, name in files:
            if place.get(name) is not None:
                place[name] = Path(place[name]).name
        return content

    @property
    def settings_hash(self) -> str:
        """SHA-256 of the settings."""
        text = json.dumps(self.settings, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def error(self, *path: str, error: InputError) -> InputError:
        """An error of what the keys `path` name, with their line."""
        return self._document.error(Fault(path, error.message, error.hint))

    def refuse(self, faults: Iterable[Fault]) -> None:
        """Raise one error of all faults, in the order of their lines, if there are any."""
        self._document.refuse(faults)


def _with_defaults(document: YamlDocument) -> YamlDocument:
    """The document with the section `defaults` merged into every analysis, as by YAML's ``<<``."""
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
            given = [] if is_empty else value.value
            value = yaml.MappingNode(
                "tag:yaml.org,2002:map",
                [(merge, defaults), *given],
                value.start_mark,
                value.end_mark,
            )
        pairs.append((name, value))
    changed = yaml.MappingNode(analyses.tag, pairs, analyses.start_mark, analyses.end_mark)
    content = [(n, changed if v is analyses else v) for n, v in root.value]
    return YamlDocument(
        document.name, yaml.MappingNode(root.tag, content, root.start_mark, root.end_mark)
    )
