"""HTML and SVG as text in which data cannot become markup: what is not markup yet is escaped."""

from markupsafe import Markup, escape

__all__ = ["Markup", "escape", "join", "tag"]

VOID = frozenset({"br", "col", "hr", "img", "link", "meta"})
SHAPES = frozenset({"circle", "line", "path", "polygon", "rect", "use"})


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
