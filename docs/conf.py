"""How the documentation is built: `make docs`."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "clusterwright"
author = "The clusterwright authors"
copyright = "The clusterwright authors, Apache-2.0"  # noqa: A001 - Sphinx's name
version = release = version_of("clusterwright")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstring gives shape and unit
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "clusterwright"


def setup(app: Sphinx) -> None:
    """Fill the pages from the code."""
    from filling import fill

    app.connect("source-read", fill)
