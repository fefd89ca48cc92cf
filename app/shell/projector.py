"""The keys of a projected page, as a script that stands in the page with what it imports."""

from __future__ import annotations

from pathlib import Path

from app.export import offline
from app.kit import scripts
from app.transport import modules


def script() -> str:
    """One script without imports, which leaves no name of its own to the page's other scripts."""
    scripts.add()
    modules.add("shell/scripts", Path(__file__).with_name("scripts"))
    return f"(() => {{\n{offline.bundle('shell/scripts/projector.js')}\n}})();\n"
