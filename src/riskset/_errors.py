"""Every exception and warning of the package, and how a message is worded.

::

    RisksetError
    ├── InputError (ValueError)                    what the caller gave is wrong
    │   ├── NotDefinedError (AttributeError)       a fit has no such answer
    │   ├── CohortError                            a study cannot go on; has a code and details
    │   └── ReportTooLarge                         a report would be too big a file
    ├── DeviceError (RuntimeError)                 a device or its memory
    └── MissingDependencyError (ImportError)       an optional package is absent

    RisksetWarning (UserWarning)                   the answer stands, but read this
    └── ConvergenceWarning (that of scikit-learn)  an infinite estimate, or no certified optimum;
                                                   in `riskset.estimators.convergence`

A message says what is wrong in the user's terms with the numbers, what was expected, and, on a
line of its own that starts with "Hint:", what to do. It refers to arguments by the code spans of
`riskset._messages`, so that the command line and a study's specification can name options and keys.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from riskset._messages import Sentence, Value, counted, first_argument, with_hint

__all__ = [
    "CohortError",
    "DeviceError",
    "InputError",
    "MissingDependencyError",
    "NotDefinedError",
    "ReportTooLarge",
    "RisksetError",
    "RisksetWarning",
    "check_once",
    "counted",
    "similar",
]


def similar(name: object, known: Iterable[str], n: int = 1) -> list[str]:
    """The names that are most like one, in any case.

    >>> similar("ATE", ["ate", "att", "overlap"], 2)
    ['ate', 'att']
    >>> similar("window", ["kind"])
    []
    """
    written: dict[str, list[str]] = {}
    for one in known:
        written.setdefault(one.casefold(), []).append(one)
    close = difflib.get_close_matches(str(name).casefold(), written, n, cutoff=0.61)
    return [one for folded in close for one in written[folded]][:n]


class RisksetError(Exception):
    """Base class of all errors that riskset raises.

    Attributes
    ----------
    message : str
        The problem.
    hint : str or None
        The remedy.

    Examples
    --------
    >>> import riskset as rs
    >>> try:
    ...     rs.L1(-1.0)
    ... except rs.RisksetError as error:
    ...     print(error.message)
    `strength` must be a finite number, at least 0, but it is -1.0.
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        self.message, self.hint = message, hint
        super().__init__(with_hint(message, hint))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled with all attributes, whatever the class takes to make one."""
        return _unpickled, (type(self), self.args), self.__dict__

    def on_one_line(self) -> str:
        """What is wrong and what to do, without a line break."""
        return with_hint(self.message, self.hint, " ")

    @property
    def sentence(self) -> Sentence:
        """The same with the kinds of the values in it, if the error declares them."""
        return Sentence(self.on_one_line())


def _unpickled(kind: type[RisksetError], args: tuple[object, ...]) -> RisksetError:
    return kind.__new__(kind, *args)


class InputError(RisksetError, ValueError):
    """The data or an argument are not valid. The message gives the place and the remedy.

    Attributes
    ----------
    argument : str or None
        The name of the parameter at fault; by default the one with which the message begins.
    value : object
        The value that it has, if that is known.

    Examples
    --------
    >>> import riskset as rs
    >>> try:
    ...     rs.Surv([5.0, -1.0], [True, False])
    ... except rs.InputError as error:
    ...     print(error)
    `time` must not be negative, but 1 of 2 rows is (first: row 1, value -1.0).
    Hint: check the start of follow-up, or pass `entry` if these rows enter late.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        argument: str | None = None,
        value: object = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.argument = argument or first_argument(message)
        self.value = value

    @classmethod
    def unknown_name(
        cls, what: str, name: object, known: Iterable[object], *, place: str = ""
    ) -> Self:
        """A name that does not exist, with the closest ones that do.

        Numbers are shown as numbers, so that the hint for '1' is not '1'.
        """
        names = list(known)
        by_text: dict[str, object] = {}
        for k in names:
            by_text.setdefault(str(k), k)
        levels = [text for text in by_text if text.startswith(f"{name}=")][:3]
        close = [by_text[text] for text in levels or similar(name, by_text, 3)]
        shown = close or names[:8]
        more = "" if close or len(names) <= 8 else f", and {len(names) - 8} more"
        listed = ", ".join(map(repr, shown)) + more
        where = f" in {place}" if place else ""
        others = f"it has {listed}." if place else f"choose from {listed}."
        return cls(
            f"{what} {name!r} was not found{where}.",
            hint=f"did you mean {listed}?" if close else others,
        )

    @classmethod
    def wrong_option(cls, name: str, value: object, known: Sequence[str]) -> Self:
        """A value of an option that is none of the few it has."""
        close = similar(value, known)
        *others, last = map(repr, known)
        listed = f"{', '.join(others)} or {last}" if others else last
        return cls(
            f"`{name}` must be {listed}, but it is {value!r}.",
            hint=f"did you mean {close[0]!r}?" if close else None,
            value=value,
        )


class NotDefinedError(InputError, AttributeError):
    """A fit does not define this attribute. For `hasattr` it does not exist."""


class CohortError(InputError):
    """The data or settings of a cohort study are not valid.

    Attributes
    ----------
    code : str
        Short name of the error for programs, such as "DuplicateId".
    details : dict
        Numbers and ids of the message.
    values : dict
        What fields of the message such as ``{n:row|rows}`` stand for, as in a note.

    Examples
    --------
    >>> import riskset as rs
    >>> try:
    ...     rs.cohort.Population([1, 0], [0.5, 1.5])
    ... except rs.CohortError as error:
    ...     print(error.code)
    BadScore
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        details: Mapping[str, object] | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> None:
        problem = str(Sentence(message, values or {}))
        remedy = None if hint is None else str(Sentence(hint, values or {}))
        super().__init__(problem, hint=remedy)
        self.code = code
        self.details = dict(details or {})
        self._sentence = Sentence(with_hint(message, hint, " "), values or {})

    @property
    def sentence(self) -> Sentence:
        """What is wrong and what to do, with the kinds of the values."""
        return self._sentence


class ReportTooLarge(InputError):  # noqa: N818 - it is not an error of the user
    """The report would be larger than 5 MB. The message gives its largest blocks."""


class DeviceError(RisksetError, RuntimeError):
    """A device does not exist, does not respond, or has too little memory.

    Examples
    --------
    >>> import riskset as rs
    >>> data = rs.load_rhc()
    >>> try:
    ...     model = rs.Cox(device="cuda").fit(data)
    ... except (rs.DeviceError, rs.MissingDependencyError):
    ...     model = rs.Cox(device="cpu").fit(data)
    >>> model.status_
    'converged'
    """


class MissingDependencyError(RisksetError, ImportError):
    """An optional package is required but not installed.

    Examples
    --------
    >>> import riskset as rs
    >>> issubclass(rs.MissingDependencyError, ImportError)
    True
    >>> print(rs.MissingDependencyError("Ray is not installed.", hint="pip install riskset[ray]"))
    Ray is not installed.
    Hint: pip install riskset[ray]
    """


class RisksetWarning(UserWarning):
    """The result is valid, but the data or the result need attention.

    Examples
    --------
    >>> import warnings
    >>> import riskset as rs
    >>> y = rs.Surv([1.0, 3.0], [True, True], entry=[0.0, 2.0])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", rs.RisksetWarning)
    ...     curve = rs.kaplan_meier(y)["all"]  # survival is 0 before the second row enters
    >>> [warning.category.__name__ for warning in caught], curve.survival
    (['RisksetWarning'], array([0., 0.]))
    """


def check_once(what: str, names: Sequence[str]) -> None:
    """Complain about a name that is given more than once."""
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"{what} {name!r} is named {names.count(name)} times.", hint="name it once."
        )
