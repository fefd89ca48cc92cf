"""Headlight's core: run a real transformer on a text and look at what attention did. Knows nothing of screens."""

from importlib import import_module

from . import old_names
from .checkpoints import Loaded, ModelSpec, load, save
from .checkpoints.build import build
from .checkpoints.described import plan, read_config
from .edits import (
    Ablate,
    AsPadding,
    DropCausalMask,
    DropPadding,
    DropPositions,
    EditMask,
    Intervention,
    MaskAfterSoftmax,
    MaskFill,
    NoScale,
    ScaleHead,
    SetMask,
    SetPositions,
    ShiftPositions,
    ShufflePositions,
    Temperature,
    Window,
)
from .errors import (
    Busy,
    CheckpointError,
    ConfigError,
    GenerationError,
    InterventionError,
    Outdated,
    Refused,
    RunCancelled,
    TextError,
    TooLarge,
    Unknown,
)
from .learn.training import Batch, Recipe, TrainStep, train
from .model.chat import ChatText
from .model.config import ModelConfig, RotaryScaling
from .model.hooks import hook_points, hooked
from .model.text import Tokens
from .read import measures, report
from .read.attribution import Contribution, Contributions, LensLayer
from .read.comparison import AnswerChange, Comparison, answer_change, compare
from .run.attention import AttentionRecord, Receipt, Thumbnail
from .run.capture import capture
from .run.predictions import Predictions
from .run.recorder import PositionRecord, Step
from .run.request import Progress, Request
from .run.trace import Trace, trace, trace_chat, trace_tokens
from .service.engine import Engine
from .sweep.ablations import HeadEffect, HeadEffects
from .sweep.sweeps import Sweep, patch_heads, sweep_edges, sweep_heads
from .write.beams import Beam, beam_search, beam_steps
from .write.generate import Generation, GenerationStep, generate, stream
from .write.writing import Opening, Reading, Writer, opening

__all__ = [
    "Ablate",
    "AnswerChange",
    "AsPadding",
    "AttentionRecord",
    "Batch",
    "Beam",
    "Busy",
    "ChatText",
    "CheckpointError",
    "Comparison",
    "ConfigError",
    "Contribution",
    "Contributions",
    "DropCausalMask",
    "DropPadding",
    "DropPositions",
    "EditMask",
    "Engine",
    "Generation",
    "GenerationError",
    "GenerationStep",
    "HeadEffect",
    "HeadEffects",
    "Intervention",
    "InterventionError",
    "LensLayer",
    "Loaded",
    "MaskAfterSoftmax",
    "MaskFill",
    "ModelConfig",
    "ModelSpec",
    "NoScale",
    "Opening",
    "Outdated",
    "PositionRecord",
    "Predictions",
    "Progress",
    "Reading",
    "Receipt",
    "Recipe",
    "Refused",
    "Request",
    "RotaryScaling",
    "RunCancelled",
    "ScaleHead",
    "SetMask",
    "SetPositions",
    "ShiftPositions",
    "ShufflePositions",
    "Step",
    "Sweep",
    "Temperature",
    "TextError",
    "Thumbnail",
    "Tokens",
    "TooLarge",
    "Trace",
    "TrainStep",
    "Unknown",
    "Window",
    "Writer",
    "answer_change",
    "beam_search",
    "beam_steps",
    "build",
    "capture",
    "compare",
    "generate",
    "hook_points",
    "hooked",
    "load",
    "measures",
    "opening",
    "patch_heads",
    "plan",
    "read_config",
    "report",
    "save",
    "stream",
    "sweep_edges",
    "sweep_heads",
    "trace",
    "trace_chat",
    "trace_tokens",
    "train",
]


def __getattr__(name: str) -> object:
    """core.text and the like, as they were reached until 0.1."""
    moved = old_names.new_name(name)
    if moved is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{moved}")


old_names.install(__name__)
