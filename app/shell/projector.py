"""The keys of a projected page and what a framed page tells, as scripts that stand in the page with what they import."""

from __future__ import annotations

from pathlib import Path

from app.export import offline
from app.kit import scripts
from app.kit import words as kit_words
from app.shell import words
from app.transport import modules


def script() -> str:
    """One script without imports, which leaves no name of its own to the page's other scripts."""
    return _alone("projector")


def framed() -> str:
    """The same of a page that another one shows in a frame."""
    return _alone("framed")


def _alone(name: str) -> str:
    scripts.add()
    modules.add("shell/scripts", Path(__file__).with_name("scripts"))
    framed = {"open": words.OPEN_FULL, "help": words.OPEN_FULL_HELP, "empty": words.EMPTY_FRAME}
    modules.add_constants("shell/scripts/constants.js", FRAMED=framed, PROJECTED=kit_words.PROJECTED)
    return f"(() => {{\n{offline.bundle(f'shell/scripts/{name}.js')}\n}})();\n"
