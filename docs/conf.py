"""The site of the documentation: `make docs` writes it to build/docs."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import generate  # noqa: E402

import asterism  # noqa: E402

project = "Asterism"
copyright = "the developers of Asterism"
release = asterism.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "Asterism"
exclude_patterns = ["**/__pycache__"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
default_role = "py:obj"
suppress_warnings = ["ref.python"]  # "shape" in types is the word, not one of the attributes of that name


def setup(app):
    app.connect("builder-inited", lambda _: generate.pages(HERE / "reference" / "generated"))
