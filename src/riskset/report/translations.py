"""Every sentence of the report, by name, from the dictionary of a language (`en.toml`).

A translation is another such file. All words that readers see are in it.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from riskset._errors import InputError
from riskset._time_units import TimeUnit
from riskset.report.number_format import THIN, capital, whole

__all__ = ["Translations", "languages"]


def languages() -> tuple[str, ...]:
    """Languages that have a dictionary."""
    names = (place.name for place in files("riskset.report").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


class Translations:
    r"""The dictionary of one language.

    `names` fill gaps in every sentence. A language without a dictionary raises InputError.

    >>> say = Translations("en")
    >>> say("section.question"), say.count("person", 1)
    ('Research question', '1 person')
    >>> say.count("person", 2000) == "2\u202f000 people"
    True
    """

    def __init__(self, language: str = "en", names: Mapping[str, object] | None = None) -> None:
        known = languages()
        if language not in known:
            raise InputError.wrong_option("language", language, known)
        self.language = language
        self.names = names or {}
        self._text = _read(language)
        self._ratio = self.ratio("hazard")

    def about(self, names: Mapping[str, object]) -> "Translations":
        """The same for sentences that may name the target, the comparator and the outcome."""
        return Translations(self.language, names)

    def __call__(self, key: str, /, *numbered: object, **values: object) -> str:
        """The sentence `key`, with values in its gaps."""
        return self._text[key].format(*numbered, **{**self._ratio, **self.names, **values})

    def __contains__(self, key: str) -> bool:
        return key in self._text

    def label(self, group: str, code: object) -> str:
        """The words for a code of the results, or the code itself, which may be newer."""
        key = f"{group}.{code}"
        return self(key) if key in self._text else str(code).replace("_", " ")

    def count(self, noun: str, n: float | None) -> str:
        """A number of things, singular or plural."""
        one, several = self._text[f"noun.{noun}"].split("|")
        return f"{whole(n)} {one if n == 1 else several}"

    def units(self, unit: TimeUnit) -> dict[str, str]:
        """Words for a unit of time that fill gaps: `unit` is singular, `units` and `Units` plural.

        >>> Translations("en").units("years")
        {'unit': 'year', 'units': 'years', 'Units': 'Years'}
        """
        one, several = self._text[f"noun.{unit}"].split("|")
        return {"unit": one, "units": several, "Units": capital(several)}

    def ratio(self, scale: str) -> dict[str, str]:
        """Words for the effect that fill gaps; the scale is "hazard", "odds", "rate" or "mixed".

        >>> words = Translations("en").ratio("odds")
        >>> words["ratio"], words["Ratios"], words["a_ratio"], words["HR"], words["hazard"]
        ('odds ratio', 'Odds ratios', 'an odds ratio', 'OR', 'odds')
        """
        one, several, with_article, short, of = self._text[f"ratio.{scale}"].split("|")
        words = {"ratio": one, "Ratio": capital(one), "ratios": several, "Ratios": capital(several)}
        return words | {"a_ratio": with_article, "HR": short, "hazard": of}

    def with_unit(self, shown: str, unit: TimeUnit) -> str:
        """A number as it is shown, and its unit of time.

        >>> say = Translations("en")
        >>> say.with_unit("1", "years"), say.with_unit("0.5", "years")
        ('1 year', '0.5 years')
        """
        words = self.units(unit)
        return f"{shown} {words['unit' if shown == '1' else 'units']}"

    def listed(self, names: list[str]) -> str:
        """Names with commas and a last "and"."""
        if len(names) < 2:
            return "".join(names)
        return f"{', '.join(names[:-1])} {self._text['list.and']} {names[-1]}"


@cache
def _read(language: str) -> dict[str, str]:
    text = files("riskset.report").joinpath(f"{language}.toml").read_text("utf-8")
    # No line ends between a number and its sign.
    sections: dict[str, dict[str, str]] = tomllib.loads(re.sub(r"(?<=\d) %", f"{THIN}%", text))
    return {f"{a}.{b}": value for a, section in sections.items() for b, value in section.items()}
