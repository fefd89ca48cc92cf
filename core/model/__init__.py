"""The transformer: configuration, layers, positions, masks, cache, hooks, and texts as tokens."""

from importlib import import_module


def __getattr__(name: str) -> object:
    """Until 0.1 core.model was one module, which is core.model.transformer: from core.model import Transformer still works."""
    transformer = import_module(f"{__name__}.transformer")
    if name.startswith("_") or not hasattr(transformer, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(transformer, name)
