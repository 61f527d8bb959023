"""What the values of a column tell of people, which decides how much of it is shared."""

from typing import Literal

__all__ = ["GUARDED", "KINDS", "Kind"]

Kind = Literal["id", "setting", "summary", "count", "derived", "effect", "text", "private"]

KINDS: dict[Kind, str] = {
    "id": "a name, or a number that leads to a row",
    "setting": "what was asked for",
    "summary": "a result from which no count of people follows",
    "count": "a number of people, of rows, or of what happened to them",
    "derived": "a number from which such a count may follow",
    "effect": "an effect, or a number from which one follows",
    "text": "a sentence or a document that may hold numbers",
    "private": "a number that helps to decide what is shared and is never shared itself",
}
"""Every kind -> what it is."""

GUARDED: frozenset[Kind] = frozenset({"count", "derived", "effect", "text", "private"})
"""Kinds whose columns need a rule."""
