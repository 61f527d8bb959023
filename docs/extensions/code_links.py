"""Code such as ``rs.Cox`` links to its page in the reference, in pages and in docstrings.

GitHub shows the same Markdown without links. A docstring calls names by single backticks, which are
code here, not references: most of them are parameters and values.
"""

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

NAME = re.compile(r"(?:rs|riskset)\.(\w+(?:\.\w+)*)(?:\(.*\))?", re.DOTALL)
PACKAGE = "riskset"
OTHERS = ("sklearn.", "collections.abc", "_collections_abc")
"""Modules whose methods a class inherits, but which are documented elsewhere."""


def code_or_link(
    name: str, rawtext: str, text: str, *_: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """The role of single backticks in docstrings."""
    return [nodes.literal(rawtext, text)], []


class LinkCode(SphinxPostTransform):
    """Turns code that names a public object into a reference to it."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Wrap every such piece of code of a page in a link."""
        objects = self.env.domains.python_domain.objects
        for code in list(self.document.findall(nodes.literal)):
            if isinstance(code.parent, nodes.reference | pending_xref):
                continue
            for name in _names(code.astext()):
                if name in objects:
                    uri = self.app.builder.get_relative_uri(
                        self.env.current_document.docname, objects[name].docname
                    )
                    link = nodes.reference(
                        "", "", internal=True, refuri=f"{uri}#{objects[name].node_id}"
                    )
                    code.replace_self(link)
                    link += code
                    break


def _names(text: str) -> Iterator[str]:
    """What a piece of code may be called in the reference."""
    if found := NAME.fullmatch(text.strip()):
        yield f"{PACKAGE}.{found[1]}"
    elif text[:1].isupper() and text.replace(".", "").isidentifier():
        yield f"{PACKAGE}.{text}"


def without_members_of_others(
    _app: Sphinx, _what: str, _name: str, value: object, skip: bool, _options: object
) -> bool | None:
    """Leave out methods that scikit-learn or Python documents."""
    function = getattr(value, "fget", value)
    home = getattr(function, "__module__", None) or ""
    return True if not skip and home.startswith(OTHERS) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the role, the links, and which members are left out."""
    app.add_role("code_or_link", code_or_link)
    app.add_post_transform(LinkCode)
    app.connect("autodoc-skip-member", without_members_of_others)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
