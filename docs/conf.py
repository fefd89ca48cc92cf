"""How Sphinx makes the documentation: the pages of this folder, and the reference from the docstrings of `headlight`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from core.version import __version__  # noqa: E402

project, release, language = "Headlight", __version__, "en"
extensions = ["sphinx.ext.autodoc", "myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
html_theme, html_title = "furo", f"Headlight {__version__}"
default_role = "code"  # `x` in a docstring is code, as in Markdown
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
autodoc_use_legacy_class_based = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": True}
suppress_warnings = [
    "myst.xref_missing",  # files of the repository outside this folder: tests/test_repository.py follows every link
    "misc.highlighting_failure",  # HAProxy's settings have no colours
]
