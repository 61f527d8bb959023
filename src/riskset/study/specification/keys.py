"""Messages of the Python interface in the words of a study's specification."""

from collections.abc import Mapping

from riskset._messages import Surface

__all__ = ["KEYS", "KEYS_OF_RISKS", "KEYS_OF_STANDARDIZED", "SpecificationKeys"]

OTHER_NAMES = {"model": "kind", "member": "concept_set_member"}
"""Parameters of the Python interface whose key has another name."""
OF_RISKS = {
    "censoring": "risk_censoring",
    "folds": "risk_folds",
    "penalty": "risk_penalty",
    "score_penalty": "risk_penalty",
}
"""The same of doubly robust estimates, which share a section with other estimates."""


class SpecificationKeys(Surface):
    """The specification of a study, whose keys have the names of parameters, or `other_names`."""

    def __init__(self, other_names: Mapping[str, str]) -> None:
        self._other_names = other_names

    def argument(self, name: str) -> str:
        """`horizon` is `horizon`, and `model` is `kind`."""
        return f"`{self._other_names.get(name, name)}`"

    def setting(self, name: str, value: object) -> str:
        """``descendants=False`` is ``descendants: false``."""
        word = str(value).lower() if value is None or isinstance(value, bool) else value
        return f"`{self._other_names.get(name, name)}: {word}`"


KEYS = SpecificationKeys(OTHER_NAMES)
KEYS_OF_STANDARDIZED = SpecificationKeys(
    OTHER_NAMES | {"penalty": "risk_penalty` of `doubly_robust"}  # standardised risks have none
)
KEYS_OF_RISKS = SpecificationKeys(OTHER_NAMES | OF_RISKS)
