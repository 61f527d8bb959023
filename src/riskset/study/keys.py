"""Messages of the Python interface in the words of a study's specification."""

from riskset._messages import Surface

__all__ = ["KEYS"]

OTHER_NAMES = {"model": "kind", "member": "concept_set_member"}
"""Parameters of the Python interface whose key has another name."""


class SpecificationKeys(Surface):
    """The specification of a study, whose keys have the names of parameters."""

    def argument(self, name: str) -> str:
        """`horizon` is `horizon`, and `model` is `kind`."""
        return f"`{OTHER_NAMES.get(name, name)}`"

    def setting(self, name: str, value: object) -> str:
        """``descendants=False`` is ``descendants: false``."""
        word = str(value).lower() if value is None or isinstance(value, bool) else value
        return f"`{OTHER_NAMES.get(name, name)}: {word}`"


KEYS = SpecificationKeys()
