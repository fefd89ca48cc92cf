"""Import of the app, from the installed package or from a checkout. Core does not depend on it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from .errors import HeadlightError, install_line

PACKAGE = Path(__file__).resolve().parent
NEEDED = (
    "streamlit",
    "plotly",
    "pandas",
    "prometheus_client",
    "segno",
)  # dependencies of the app that core does not have


def screens(name: str) -> ModuleType:
    """A module of app. Raises Refused, naming the extra to install, if the app or a dependency is missing."""
    package = _package()
    missing = [needed for needed in NEEDED if find_spec(needed) is None]
    if package is None or missing:
        lacking = ", ".join(missing) or "files that this installation does not have"
        raise HeadlightError(f"The screens need {lacking}. They come with: {install_line('app')}")
    return import_module(f"{package}.{name}")


def _package() -> str | None:
    """Name of the app's package: headlight.app, or app in a checkout."""
    if (PACKAGE / "app").is_dir():
        return f"{__package__}.app"
    return "app" if (PACKAGE.parent / "app" / "start.py").is_file() else None
