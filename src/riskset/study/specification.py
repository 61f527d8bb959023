"""A study as one specification: what a file or a mapping may say, and what it says, checked."""

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from riskset._errors import InputError
from riskset.study.analysis_sections import Analysis
from riskset.study.document import Document, key

__all__ = ["Specification", "Study"]

OutcomeKind = Literal["outcome", "negative control", "positive control"]


@dataclass(frozen=True)
class Covariates:
    """Where the covariates of plain tables are."""

    table: str | None = key("long table (row, covariate, value), or a design (.rsd)", None)
    columns: tuple[str, ...] | None = key(
        "columns of the table of people; left out: all that have no other use, or none if there is "
        "a long table",
        None,
    )
    drop: tuple[str, ...] = key("columns that are no covariates", ())
    unknown_rows: Literal["error", "drop"] = key("entries of people who are not there", "error")
    duplicates: Literal["error", "sum", "max"] = key("covariates given twice for one row", "error")


@dataclass(frozen=True)
class Data:
    """The data: a table with one row for each exposure."""

    people: str = key("the table of people: CSV, Parquet, Arrow or DuckDB")
    treatment: str = key("its column that says who is exposed to what")
    table: str | None = key("name of the table in a DuckDB file", None)
    name: str | None = key("what readers call the data", None)
    description: str = key("of the data", "")
    id: str | None = key("column that identifies rows; needed with a long table", None)
    person: str | None = key("column that identifies people, if they may enter twice", None)
    index_date: str | None = key("column of the first day, a date", None)
    score: str | None = key("column of propensity scores, which are then not fitted", None)
    covariates: Covariates = key("where covariates are", Covariates)
    start: datetime.date | None = key("first day of the data", None)
    end: datetime.date | None = key("last day of the data", None)


@dataclass(frozen=True)
class Exposure:
    """A target or comparator."""

    value: str = key("in the column of the treatment")
    label: str | None = key("what readers call it; the name, if left out", None)
    description: str = key("of the exposure", "")


@dataclass(frozen=True)
class Comparison:
    """Who is compared with whom, by the names of exposures."""

    target: str = key("an exposure")
    comparator: str = key("an exposure")


@dataclass(frozen=True)
class Outcome:
    """An outcome or a control."""

    time: str = key("column of the days at risk, the first and the last one counted")
    event: str = key("column of what ended them: 0 = censored, 1 = outcome, 2 = competing event")
    label: str | None = key("what readers call it; the name, if left out", None)
    description: str = key("of the outcome", "")
    prior: str | None = key(
        "column that is 1 for people who had it before; they are left out", None
    )
    end_reason: str | None = key("column that says why follow-up ended", None)
    kind: OutcomeKind = key("whether it is a control", "outcome")
    true_hr: float | None = key("hazard ratio of a positive control", None, above=0)


@dataclass(frozen=True)
class Subgroup:
    """A variable in whose levels the effect is estimated, too."""

    column: str = key("of the table of people")
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
    min_equipoise: float = key("share of people in equipoise", 0.2, least=0, most=1)
    max_mdrr: float = key("smallest detectable hazard ratio", 10.0, above=1)
    max_ease: float = key("expected absolute systematic error", 0.25, above=0)
    max_generalisability: float | None = key("difference before and after", None, above=0)


@dataclass(frozen=True)
class Sharing:
    """What of the results may be shared."""

    min_cell_count: int = key("counts above 0 and below it are hidden", 5, least=0)
    blind: bool = key("withhold effects that fail diagnostics", True)


@dataclass(frozen=True)
class Specification:
    """The whole file."""

    title: str = key("of the study")
    data: Data = key("where the data are")
    exposures: dict[str, Exposure] = key("targets and comparators")
    comparisons: tuple[Comparison, ...] = key("pairs of exposures")
    outcomes: dict[str, Outcome] = key("outcomes and controls")
    analyses: dict[str, Analysis] = key("ways to answer")
    description: str = key("of the study", "")
    defaults: Analysis = key("sections that every analysis has unless it has its own", Analysis)
    competing: str | None = key("what the competing events are, for readers", None)
    subgroups: dict[str, Subgroup] = key("variables to look into", dict)
    table1: tuple[Table1Section, ...] = key("characteristics to show; left out: all covariates", ())
    risk_times: tuple[float, ...] = key("days at which to show risks", (365.0,), above=0)
    diagnostics: Limits = key("limits of the diagnostics", Limits)
    calibration: Literal["posterior", "likelihood"] = key("of p values by controls", "posterior")
    sharing: Sharing = key("what may be shared", Sharing)
    seed: int = key("of everything random", 1, least=0)


class Study:
    """A study: its specification, and where its files are.

    Parameters
    ----------
    content : mapping
        What a file would say: `docs/study.md` has every key.
    folder : str or Path, optional
        Where the files are that it names; default: the working directory.

    Attributes
    ----------
    specification : Specification
    folder : Path

    Raises
    ------
    InputError
        If a key is unknown or missing, or a value is of another type or contradicts another one.
        Errors of a file name the line.
    """

    def __init__(self, content: Mapping[str, Any], folder: str | Path | None = None) -> None:
        self._set(Document.of_mapping(content), Path() if folder is None else Path(folder))

    @classmethod
    def read(cls, path: str | Path) -> "Study":
        """From a file in YAML or JSON, beside which the files are that it names."""
        return cls._from(Document.read(Path(path)), Path(path).parent)

    @classmethod
    def parse(cls, text: str, folder: str | Path = ".", name: str = "study.yaml") -> "Study":
        """From text in YAML or JSON."""
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
        _check(self)

    def __repr__(self) -> str:
        own = self.specification
        return (
            f"Study({own.title!r}: {len(own.comparisons)} comparisons x {len(own.outcomes)} "
            f"outcomes x {len(own.analyses)} analyses)"
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The specification with all defaults, as JSON has it; files without their folders."""
        found: dict[str, Any] = json.loads(
            json.dumps(dataclasses.asdict(self.specification), default=str)
        )
        del found["defaults"]
        found["data"]["people"] = Path(found["data"]["people"]).name
        covariates = found["data"]["covariates"]
        if covariates["table"] is not None:
            covariates["table"] = Path(covariates["table"]).name
        return found

    @property
    def settings_hash(self) -> str:
        """SHA-256 of the settings."""
        text = json.dumps(self.settings, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def fault(self, *path: str, message: str, hint: str | None = None) -> InputError:
        """An error that names the line of the keys `path`."""
        return self._document.fault(path, message, hint)

    def unknown(
        self, *path: str, what: str, name: str, known: Iterable[str], place: str = ""
    ) -> InputError:
        """An error about a name that does not exist, with the line and the closest ones that do."""
        error = InputError.unknown_name(what, name, known, place=place)
        message, _, hint = str(error).partition("\nHint: ")
        return self.fault(*path, message=message, hint=hint)


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


def _check(study: Study) -> None:
    """What no single value tells: names that lead nowhere, and keys that contradict each other."""
    own = study.specification
    for name in ("exposures", "comparisons", "outcomes", "analyses"):
        if not getattr(own, name):
            raise study.fault(name, message=f"there are no {name}.", hint="name at least one.")
    seen = set()
    for k, comparison in enumerate(own.comparisons):
        for role in ("target", "comparator"):
            name = getattr(comparison, role)
            if name not in own.exposures:
                place = ("comparisons", str(k), role)
                raise study.unknown(*place, what="exposure", name=name, known=own.exposures)
        pair = (comparison.target, comparison.comparator)
        if pair[0] == pair[1] or pair in seen:
            why = "is compared with itself" if pair[0] == pair[1] else "is there twice"
            raise study.fault("comparisons", str(k), message=f"{' and '.join(pair)}: it {why}.")
        seen.add(pair)
    values: dict[str, str] = {}
    for name, exposure in own.exposures.items():
        if exposure.value in values:
            message = f"it has the value {exposure.value!r} of {values[exposure.value]!r}."
            raise study.fault("exposures", name, "value", message=message)
        values[exposure.value] = name
    for name, outcome in own.outcomes.items():
        if (outcome.true_hr is not None) != (outcome.kind == "positive control"):
            raise study.fault(
                "outcomes",
                name,
                message="`true_hr` goes with a positive control, and with nothing else.",
                hint="a negative control has 1 by itself.",
            )
    for name, analysis in own.analyses.items():
        _check_analysis(study, name, analysis)


def _check_analysis(study: Study, name: str, analysis: Analysis) -> None:
    ways = [way for way in ("match", "stratify", "weight") if getattr(analysis, way) is not None]
    place = ("analyses", name)
    if len(ways) > 1:
        raise study.fault(
            *place,
            ways[1],
            message=f"{' and '.join(ways)} exclude each other.",
            hint="make an analysis of each; `match: none` puts off a default.",
        )
    score = analysis.propensity is not None or study.specification.data.score is not None
    needs = ways or (["trim"] if analysis.trim is not None else [])
    if needs and not score:
        raise study.fault(*place, needs[0], message=f"`{needs[0]}` needs a propensity score.")
    model = analysis.model
    has_sets = analysis.match is not None or analysis.stratify is not None
    if not has_sets and model.reading == "stratified":
        message = "a stratified reading needs `match` or `stratify`."
        raise study.fault(*place, "model", "reading", message=message)
    if model.censoring_group == "stratum" and not has_sets:
        message = "censoring by stratum needs `match` or `stratify`."
        raise study.fault(*place, "model", "censoring_group", message=message)
    if model.strength is not None and model.covariates == "none":
        message = "`strength` is of a penalty on covariates, but there are none in the model."
        raise study.fault(*place, "model", "strength", message=message, hint="add covariates: all.")
    fitted = analysis.propensity
    if fitted is None:
        return
    given = [k for k in ("strength", "variance") if getattr(fitted, k) is not None]
    if len(given) > 1:
        message = "`strength` and `variance` say the same in two ways."
        raise study.fault(*place, "propensity", given[1], message=message, hint="keep one of them.")
    if fitted.penalty == "none" and (given or fitted.cross_validate):
        raise study.fault(
            *place,
            "propensity",
            given[0] if given else "penalty",
            message="without a penalty there is nothing to choose or to give.",
            hint="set cross_validate: false, and leave strength and variance out.",
        )
    if fitted.penalty != "none" and bool(given) == fitted.cross_validate:
        raise study.fault(
            *place,
            "propensity",
            given[0] if given else "cross_validate",
            message="a penalty is either chosen by cross-validation or has a strength or variance.",
            hint="give one of them and cross_validate: false, or neither.",
        )
