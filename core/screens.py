"""Where the screens are: in a package that was installed, or beside core/ in a checkout. core itself does without them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from .errors import Refused
from .extras import install_line

PACKAGE = Path(__file__).resolve().parent
NEEDED = ("streamlit", "plotly", "pandas", "prometheus_client", "segno")  # what screens take beyond what core does


def screens(name: str) -> ModuleType:
    """A module of app. Raises Refused, with what to install, where it or what it needs is not here."""
    package = _package()
    missing = [needed for needed in NEEDED if find_spec(needed) is None]
    if package is None or missing:
        lacking = ", ".join(missing) or "files that this installation does not have"
        raise Refused(f"The screens need {lacking}. They come with: {install_line('app')}")
    return import_module(f"{package}.{name}")


def _package() -> str | None:
    """app as it is called here: headlight.app, or app in a checkout."""
    if (PACKAGE / "app").is_dir():
        return f"{__package__}.app"
    return "app" if (PACKAGE.parent / "app" / "start.py").is_file() else None
