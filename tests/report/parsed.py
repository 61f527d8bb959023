"""A page as a tree of elements, by the parser of the standard library."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"br", "col", "hr", "img", "input", "link", "meta"}
SELF_CLOSED = {"circle", "line", "path", "polygon", "rect"}


@dataclass
class Element:
    tag: str
    attrs: dict[str, str]
    children: list["Element | str"] = field(default_factory=list)

    def __iter__(self) -> Iterator["Element"]:
        """Itself and everything in it, in the order of the page."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child

    def all(self, *tags: str) -> list["Element"]:
        return [e for e in self if e.tag in tags]

    def one(self, tag: str) -> "Element":
        (found,) = self.all(tag)
        return found

    def by_id(self, name: str) -> "Element":
        (found,) = (e for e in self if e.attrs.get("id") == name)
        return found

    @property
    def text(self) -> str:
        parts = [c if isinstance(c, str) else c.text for c in self.children]
        return "".join(parts)


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        assert len(attrs) == len({name for name, _ in attrs}), (tag, attrs)
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attrs):
        assert tag in SELF_CLOSED
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def parse(path: Path) -> Element:
    builder = _Builder()
    builder.feed(path.read_text("utf-8"))
    assert builder.open == [builder.root], "an element is not closed"
    return builder.root


NUMBER = re.compile(r"(−?)(∞|\d+(?:\.\d+)?)(?:×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?(%?)")
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def numbers(text: str) -> list[tuple[float, float]]:
    """Every number that a text shows, and by how much rounding may have moved it.

    The ends of an interval in brackets are in per cent if the number before them is.
    """
    found = []
    before, bracket, _ = (plain := text.replace("\u202f", "")).partition(" (")
    for sign, digits, power, own in NUMBER.findall(plain):
        percent = own or (bracket and before.endswith("%"))
        value = float("inf") if digits == "∞" else float(digits)
        slack = 0.5 * 10.0 ** -len(digits.partition(".")[2])
        scale = (10.0 ** int(power.translate(RAISED)) if power else 1.0) * (0.01 if percent else 1)
        found.append(((-value if sign else value) * scale, slack * scale * 1.0001))
    return found
