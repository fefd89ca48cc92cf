"""A file that is dropped onto the page, as one script of the page with all that it imports."""

from __future__ import annotations

from app.export import offline
from app.shell import refused

SCRIPT = "shell/browser/dropped.js"


def script() -> str:
    """One script without imports."""
    assert refused.BROWSER.name in SCRIPT  # whose browser files these are
    return f"(() => {{\n{offline.bundle(SCRIPT)}\n}})();\n"
