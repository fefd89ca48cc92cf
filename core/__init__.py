"""Headlight's core: run a real transformer on a text and look at what attention did. Knows nothing of screens."""

from .attention import AttentionRecord, Receipt, Thumbnail
from .build import build
from .capture import capture
from .checkpoints import Loaded, ModelSpec, load, save
from .config import ModelConfig, RotaryScaling
from .engine import Engine, Request
from .errors import CheckpointError, ConfigError, GenerationError, Refused, TextError, TooLarge
from .generate import Beam, Generation, GenerationStep, beam_search, generate, stream
from .hooks import hook_points, hooked
from .interventions import Ablate, DropCausalMask, DropPositions, EditMask, NoScale, ShufflePositions, Temperature
from .planner import plan
from .recorder import PositionRecord, Step
from .text import Tokens
from .trace import Predictions, Trace, trace, trace_tokens

__all__ = [
    "Ablate",
    "AttentionRecord",
    "Beam",
    "CheckpointError",
    "ConfigError",
    "DropCausalMask",
    "DropPositions",
    "EditMask",
    "Engine",
    "Generation",
    "GenerationError",
    "GenerationStep",
    "Loaded",
    "ModelConfig",
    "ModelSpec",
    "NoScale",
    "PositionRecord",
    "Predictions",
    "Receipt",
    "Refused",
    "Request",
    "RotaryScaling",
    "ShufflePositions",
    "Step",
    "Temperature",
    "TextError",
    "Thumbnail",
    "Tokens",
    "TooLarge",
    "Trace",
    "beam_search",
    "build",
    "capture",
    "generate",
    "hook_points",
    "hooked",
    "load",
    "plan",
    "save",
    "stream",
    "trace",
    "trace_tokens",
]
