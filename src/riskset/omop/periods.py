"""Records with a first and a last day, and what is said where these contradict each other."""

from riskset._errors import counted
from riskset.omop.cdm import Cdm, Scratch

__all__ = ["last_day", "note_backward"]


def last_day(start: str, end: str) -> str:
    """SQL of the last day of a record: the first one if there is no end, or one before it."""
    return f"greatest(coalesce({end}, {start}), {start})"


def note_backward(
    cdm: Cdm,
    work: Scratch,
    rows: str,
    what: str,
    start: str,
    end: str,
    *,
    count: bool = True,
) -> None:
    """Note how many of the rows, records of `what`, end before they start.

    Parameters
    ----------
    count : bool
        Whether such a record counts, as one day.
    """
    (n,) = work.row(f"SELECT count(*) FROM {rows} WHERE {end} < {start}")
    if n:
        does = "does" if n == 1 else "do"
        lasts = "lasts" if n == 1 else "last"
        cdm.note(
            "end_before_start",
            f"{counted(n, 'record')} of {what} {'ends' if n == 1 else 'end'} before "
            f"{'it starts' if n == 1 else 'they start'}, and "
            f"{f'{lasts} one day' if count else f'{does} not count'}.",
        )
