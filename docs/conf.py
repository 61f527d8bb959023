"""Sphinx's settings for the documentation site: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

from riskset import __version__

project = "riskset"
author = "the authors of riskset"
copyright = "the authors of riskset; Apache-2.0"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",  # formulas without a network
    "code_links",
]
exclude_patterns = ["build", "templates", "extensions"]
templates_path = ["templates"]
nitpicky = True

# Pages are Markdown that GitHub shows, too.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 1200  # seconds; a busy machine is slow
nb_execution_cache_path = str(Path(__file__).parents[1] / "build" / "notebooks")

# The names that a reader writes: riskset.Cox, not riskset.estimators.cox.Cox.
default_role = "code_or_link"
add_module_names = False
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings have types in words
autodoc_member_order = "groupwise"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "riskset"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "changelog": [], "features": []}
html_theme_options = {
    "logo": {"text": "riskset"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "navbar_persistent": ["search-button"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
linkcheck_anchors = False  # pages that scripts build have none
linkcheck_timeout = 20
