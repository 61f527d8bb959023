"""HTML and SVG as text in which data cannot become markup: what is not markup yet is escaped."""

import re

from markupsafe import Markup, escape

__all__ = ["Markup", "escape", "join", "spans_as_code", "tag", "without_spans"]

VOID = frozenset({"br", "col", "hr", "img", "link", "meta"})
SHAPES = frozenset({"circle", "line", "path", "polygon", "rect", "use"})
# As in riskset._messages: a backtick next to a quotation mark or a letter is part of the data.
SPAN = re.compile(r"(?<![\w'\"`])`([^`\n]+)`(?![\w'\"`])")


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element.

    Parameters
    ----------
    name : str
    *children : text or Markup
        Text is escaped; None is left out.
    **attributes
        ``class_`` is ``class`` and ``aria_label`` is ``aria-label``; None and False leave one out,
        True gives it no value.

    Examples
    --------
    >>> print(tag("td", "a < b", class_="n", data_key=None))
    <td class="n">a &lt; b</td>
    """
    words = [name]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(label)
        elif value is not None and value is not False:
            words.append(f'{label}="{escape(value)}"')
    opening = " ".join(words)
    if name in VOID:
        return Markup(f"<{opening}>")
    if name in SHAPES and not children:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{join(*children)}</{name}>")


def join(*parts: object) -> Markup:
    """Parts one after the other, each escaped unless it is markup; None is left out."""
    return Markup("").join(escape(part) for part in parts if part is not None)


def spans_as_code(message: object) -> Markup:
    """A message in which the code spans in backticks are ``<code>``.

    >>> print(spans_as_code("set `folds: 5`, not <5"))
    set <code>folds: 5</code>, not &lt;5
    """
    parts = SPAN.split(str(message))
    return join(*(tag("code", part) if k % 2 else part for k, part in enumerate(parts)))


def without_spans(message: str) -> str:
    """A message for places that hold text only, such as a title: without the backticks."""
    return SPAN.sub(r"\1", message)
