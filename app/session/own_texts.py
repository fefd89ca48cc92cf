"""Models of texts that visitors brought, each its visitor's alone. The room that trains them registers how they are found."""

from __future__ import annotations

from typing import Any, Protocol

from core.checkpoints import Loaded
from core.errors import CheckpointError


class Source(Protocol):
    """The holder of such models, by their keys."""

    def is_of(self, key: str, visitor: str) -> bool: ...
    def opened(self, key: str, **options: Any) -> Loaded: ...


_source: Source | None = None


def register(source: Source) -> None:
    """Have these models from here."""
    global _source
    _source = source


def is_of(key: str, visitor: str) -> bool:
    """Whether a model is this visitor's, who still wants it then."""
    return _source is not None and _source.is_of(key, visitor)


def opened(key: str, **options: Any) -> Loaded:
    """The model. Raises CheckpointError where it is not kept."""
    if _source is None:
        raise CheckpointError("There are no models of visitors' texts here.")
    return _source.opened(key, **options)
