"""Caption and code of an export of training curves."""

from __future__ import annotations

from datetime import date

from app.export import about
from app.export.about import version


def caption(shown: list[str], today: date) -> str:
    """The curves, and their models."""
    return about.line([*shown, f"Headlight {version()}", today.isoformat()])


def snippet(models: list[str], measure: str) -> str:
    """Python that prints the last value of each curve."""
    lines = ["from headlight.checkpoints import curve", "", f"for name in {models!r}:"]
    return "\n".join([*lines, f'    print(name, curve(name)["{measure}"][-1])', ""])
