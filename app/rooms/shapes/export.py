"""Caption of an export of a diagram of shapes."""

from __future__ import annotations

from datetime import date

from app.export import about
from app.export.about import version
from app.kit import numbers
from app.sizes import export
from core.model.config import ModelConfig


def caption(title: str, config: ModelConfig, batch: int, lengths: tuple[int, int], today: date) -> str:
    """The same for a diagram of shapes, which is the same for every number format but for its bytes."""
    text = f"{batch} × {numbers.whole(lengths[0])}" + (f" + {numbers.whole(lengths[1])}" if lengths[1] else "")
    return about.line([title, export.sizes(config), f"{text} tokens", f"Headlight {version()}", today.isoformat()])
