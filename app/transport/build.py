"""Which build this server is: the version and the commit that /healthz names."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

from core.version import __version__

SETTING = "HEADLIGHT_COMMIT"  # set by the image's build
HASH = re.compile(r"[0-9a-f]{7,64}")
ROOT = Path(__file__).resolve().parents[2]


@cache
def build() -> dict[str, str]:
    """Version, and commit if it is known. Cached, since it may ask git."""
    found = commit(os.environ.get(SETTING, ""))
    return {"version": __version__, **({"commit": found} if found else {})}


def commit(given: str, root: Path = ROOT) -> str:
    """The commit that the image was built from, else the one that is checked out; "" if neither is known."""
    if HASH.fullmatch(given):
        return given
    if not (root / ".git").exists():  # git would look in the folders above, which are of another project
        return ""
    try:
        asked = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = asked.stdout.strip()
    return found if HASH.fullmatch(found) else ""
