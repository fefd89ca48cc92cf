"""Headlight's core: runs a transformer on a text and records what attention did. It imports no screen.

`__all__` lists the names of a first notebook, in the order in which it needs them. Everything else is in a submodule: edits, errors,
patching, plan, read, labs.
"""

import sys
from importlib import import_module

from . import edits, errors, old_names, patching
from .checkpoints import load, save
from .checkpoints.from_config import build, plan, read_config
from .errors import HeadlightError
from .learn.training import train
from .model.config import ModelConfig
from .model.hooks import hook_points, hooked
from .model.text import Tokens
from .patching import (
    attribution_patching,
    patch_components,
    patch_heads,
    patch_paths,
    sweep_edges,
    sweep_heads,
)
from .read import measures, report
from .read.comparison import compare
from .read.edge_attribution import edge_attribution, strongest_edges
from .read.findings import findings, opening_finding
from .read.swaps import swaps
from .run.attention import AttentionRecord
from .run.capture import capture
from .run.wrapped import wrap
from .trace import Trace, from_attentions, from_cache, trace, trace_chat, trace_tokens
from .version import __version__
from .write.beams import beam_search
from .write.generate import generate, stream

__all__ = [  # noqa: RUF022 (in the order of a first notebook)
    "load",
    "trace",
    "trace_chat",
    "trace_tokens",
    "Trace",
    "Tokens",
    "AttentionRecord",
    "findings",
    "opening_finding",
    "compare",
    "swaps",
    "edge_attribution",
    "strongest_edges",
    "measures",
    "report",
    "generate",
    "stream",
    "beam_search",
    "edits",
    "sweep_heads",
    "sweep_edges",
    "patch_heads",
    "patch_components",
    "patch_paths",
    "attribution_patching",
    "patching",
    "hook_points",
    "hooked",
    "wrap",
    "capture",
    "from_attentions",
    "from_cache",
    "plan",
    "read_config",
    "ModelConfig",
    "build",
    "save",
    "train",
    "HeadlightError",
    "errors",
    "__version__",
]


def __getattr__(name: str) -> object:
    """A subpackage that is imported on demand, or a name that core offered until 0.2."""
    if name in ("labs", "peers", "service"):
        return import_module(f"{__name__}.{name}")
    return old_names.deprecated(__name__, name)


old_names.install(sys.modules[__name__])
