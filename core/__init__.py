"""Headlight's core: run a real transformer on a text and look at what attention did. Knows nothing of screens."""

from . import measures, report
from .ablations import HeadEffect, HeadEffects
from .attention import AttentionRecord, Receipt, Thumbnail
from .attribution import Contribution, Contributions, LensLayer
from .beams import Beam, beam_search, beam_steps
from .build import build
from .capture import capture
from .checkpoints import Loaded, ModelSpec, load, save
from .comparison import AnswerChange, Comparison, answer_change, compare
from .config import ModelConfig, RotaryScaling
from .engine import Engine
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
from .generate import Generation, GenerationStep, generate, stream
from .hooks import hook_points, hooked
from .interventions import (
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
from .planner import plan
from .predictions import Predictions
from .recorder import PositionRecord, Step
from .request import Progress, Request
from .sweeps import Sweep, patch_heads, sweep_edges, sweep_heads
from .text import Tokens
from .trace import Trace, trace, trace_tokens
from .training import Batch, Recipe, TrainStep, train
from .writing import Opening, Reading, Writer, opening

__all__ = [
    "Ablate",
    "AnswerChange",
    "AsPadding",
    "AttentionRecord",
    "Batch",
    "Beam",
    "Busy",
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
    "report",
    "save",
    "stream",
    "sweep_edges",
    "sweep_heads",
    "trace",
    "trace_tokens",
    "train",
]
