"""Causes of failure by the labels that users give them.

Text labels become whole numbers once, at the door: 0 for the label that was said to mean censored,
1, 2, ... for the others in sorted order. Which label that is, is never guessed.
"""

from collections.abc import Mapping

import numpy as np

from riskset._errors import InputError
from riskset._types import AnyArray, Index, Rows
from riskset.data.checks import Places, complain_rows, is_missing, listed, shown

__all__ = [
    "CauseLabels",
    "cause_code",
    "choose_cause",
    "code_labels",
    "holds_text",
    "labels_of",
    "named_causes",
]

CauseLabels = Mapping[int, str]
"""The label of each code; empty if events are numbers."""

MAX_COUNTED_CODE = 1000
"""Codes up to this are counted, which is faster than sorting them."""


def holds_text(event: AnyArray) -> bool:
    """Whether events are labels and not numbers."""
    if event.dtype == object:
        return any(isinstance(value, str | bytes) for value in event.flat)
    return event.dtype.kind in "USO"


def code_labels(
    event: AnyArray, censored: object, column: str, places: Places, *, is_new: bool = False
) -> tuple[Index, CauseLabels]:
    """Text labels as codes, and the label of each code but 0.

    `censored` is the label that means censored. If `is_new`, the rows follow a fit, so that none of
    them needs to be censored. An `InputError` says that a label is missing or not text, or that
    `censored` is not given or does not occur.
    """
    for i, value in enumerate(event.tolist()):
        if is_missing(value):
            raise InputError(
                f"{column} must not have missing values, but {places.row(i)} has {value!r}.",
                hint="drop these rows, or find out what happened to them; riskset never drops a "
                "row by itself.",
            )
        if not isinstance(value, str):
            raise InputError(
                f"{column} mixes text with other types ({places.row(i)}, value {shown(value)}).",
                hint="write all of it as text, or all as whole numbers with 0 for censored.",
            )
    distinct, place = np.unique(event.astype(np.str_), return_inverse=True)
    names = distinct.tolist()
    if censored is None:
        raise InputError(
            f"{column} holds the labels {listed(names)}, but it is not known which of them means "
            "censored.",
            hint="name it with `censored`, every other label being another cause; or write it as "
            "0 and the others as 1, 2, ...",
        )
    if censored not in names and not is_new:
        raise InputError(
            f"{column} never holds the label of censoring, {censored!r}; its labels are "
            f"{listed(names)}.",
            hint="name one of these with `censored`; if no row is censored, write the causes as "
            "1, 2, ... instead.",
        )
    causes = [name for name in names if name != censored]
    code = {name: k for k, name in enumerate(causes, start=1)}
    codes = np.array([code.get(name, 0) for name in names], dtype=np.int64)
    return codes[place.reshape(-1)], {k: name for name, k in code.items()}


def labels_of(y: object) -> CauseLabels:
    """Labels that `riskset.Surv` put into the field ``cause``; empty without this field.

    Raises `InputError` if labels and events contradict each other, as they may in an array made by
    hand.
    """
    fields = getattr(getattr(y, "dtype", None), "fields", None) or {}
    if not ({"event", "cause"} <= set(fields)) or fields["cause"][0].kind != "U":
        return {}
    assert isinstance(y, np.ndarray)
    codes, first, place = np.unique(y["event"], return_index=True, return_inverse=True)
    labels = y["cause"][first]
    odd = (y["cause"] != labels[place.reshape(-1)]) | ((y["event"] == 0) != (y["cause"] == ""))
    if odd.any() or len(set(labels.tolist())) < labels.size:
        i = int(np.argmax(odd))
        raise InputError(
            "the fields 'event' and 'cause' of `y` contradict each other "
            f"(row {i}: event {shown(y['event'][i])}, cause {shown(y['cause'][i])}).",
            hint="make `y` with riskset.Surv(time, labels, censored=...).",
        )
    return {int(k): str(label) for k, label in zip(codes, labels, strict=True) if k > 0}


def cause_code(cause: object, labels: CauseLabels) -> object:
    """The code of a cause that may be named by its label.

    Without labels this is `cause` itself, to be judged as a code. With labels None stands for the
    only one, and so does 1, the default of Fine and Gray's model, which may not have been chosen.
    Raises `InputError` if it is not a label, or if no cause is given and there are several.
    """
    known = listed(labels.values())
    if not labels:
        if isinstance(cause, str):
            raise InputError(
                f"`cause` is {cause!r}, but the events are whole numbers without labels.",
                hint="pass the number of the cause, or write the events as labels.",
            )
        return cause
    is_open = cause is None or (cause == 1 and not isinstance(cause, str | bool))
    if is_open and len(labels) > 1:
        raise InputError(
            f"the events have the causes {known}, but `cause` does not name the one to study.",
            hint="pass one of these labels as `cause`.",
        )
    if is_open:
        return next(iter(labels))
    for code, label in labels.items():
        if label == cause:
            return code
    raise InputError(
        f"`cause` must be a label of the events ({known}), but it is {cause!r}.",
        hint="pass one of these labels.",
    )


def named_causes(codes: Index, labels: CauseLabels) -> AnyArray:
    """The causes as results show them: labels if there are any, else the codes."""
    if not labels:
        return codes
    return np.array([labels[code] for code in codes.tolist()], dtype=object)


def choose_cause(
    codes: Index, weight: Rows, cause: object, labels: CauseLabels, places: Places, *, is_part: bool
) -> int:
    """The code to study; see `Outcome.build`."""
    present = _present(codes[weight > 0])
    column = places.column("event")
    if labels or codes.any():
        cause = cause_code(cause, labels)
    elif isinstance(cause, str):
        cause = 1  # no row has an event, so the labels are not known
    if cause is None:
        complain_rows(
            codes > 1,
            codes,
            column,
            "must be 0 (censored) or 1 (event)",
            places,
            hint="pass `cause` to say which code is the event, all others counting as censored, "
            "or recode the column.",
        )
        cause = 1
    elif isinstance(cause, bool) or not isinstance(cause, (int, np.integer)) or cause < 1:
        raise InputError(
            f"`cause` must be a positive whole number, but it is {cause!r}.",
            hint=f"the codes that occur are {_codes(present)}.",
        )
    if cause not in present and not is_part:
        if present.size == 0:
            raise InputError(
                "every row has weight 0, so no row is left.", hint="check the weights."
            )
        raise _no_events(int(cause), present, int(np.count_nonzero(weight > 0)), labels, column)
    return int(cause)


def _present(codes: Index) -> Index:
    """The distinct codes, in increasing order."""
    if codes.size == 0 or codes.min() < 0 or codes.max() > MAX_COUNTED_CODE:
        return np.unique(codes)
    return np.flatnonzero(np.bincount(codes))


def _no_events(cause: int, present: Index, n: int, labels: CauseLabels, column: str) -> InputError:
    occur, others = f"codes that occur: {_codes(present)}", _codes(present[present > 0])
    if labels:
        others = _codes(np.array([repr(labels[code]) for code in present.tolist() if code]))
        occur = f"labels that occur: {others or 'only that of censoring'}"
    hint = "a model needs at least one event; check the coding and the filters before it."
    if others:
        hint = f"pass the event to study as `cause` (one of {others}), or check the filters."
    what = repr(labels[cause]) if labels else f"code {cause}"
    return InputError(
        f"{column} has no events: none of the {n:,} rows with positive weight has {what} "
        f"({occur}).",
        hint=hint,
    )


def _codes(codes: AnyArray) -> str:
    return ", ".join(map(str, codes[:10])) + (", ..." if codes.size > 10 else "")
