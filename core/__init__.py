"""Headlight's core: run a real transformer on a text and look at what attention did. Knows nothing of screens."""

from importlib import import_module

from . import old_names
from .checkpoints import Loaded, ModelSpec, load, save
from .checkpoints.from_config import build, plan, read_config
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
    SwapWords,
    Temperature,
    Window,
)
from .errors import (
    CheckpointError,
    ConfigError,
    GenerationError,
    HeadlightError,
    InterventionError,
    RunCancelled,
    ServerBusy,
    StaleTrace,
    TextError,
    TooLarge,
    UnknownRun,
)
from .learn.training import Batch, Recipe, TrainStep, train
from .model.chat import ChatText
from .model.config import ModelConfig, RotaryScaling
from .model.hooks import hook_points, hooked
from .model.text import Tokens
from .patching.component_patching import (
    AttributionEstimates,
    Evidence,
    PatchResults,
    attribution_patching,
    patch_components,
    run_order,
    three_tests,
)
from .patching.counterfactual import Component
from .patching.edited_runs import HeadEffect, HeadEffects
from .patching.head_sweeps import LogitDiff, Sweep, logit_diff_between, patch_heads, sweep_edges, sweep_heads
from .patching.path_patching import PathEdge, patch_paths
from .patching.sentence_pairs import Pair, PairShares, pairs_from, patch_pairs, read_pairs
from .read import measures, report
from .read.attribution import Contribution, Contributions, LensLayer
from .read.comparison import AnswerChange, Comparison, answer_change, compare
from .read.edge_attribution import (
    EdgeWeights,
    Strongest,
    TokenAttribution,
    edge_attribution,
    edge_attribution_in_layer,
    edge_in_all_heads,
    head_logit_attribution,
    strongest_edges,
    top_token_attribution,
)
from .read.findings import Finding, findings, opening_finding
from .read.swaps import Swap, Swaps, same_length, swaps
from .run.attention import AttentionRecord, Receipt, Thumbnail
from .run.capture import capture
from .run.predictions import Classes, Predictions
from .run.recorder import PositionRecord, TensorStep
from .run.request import Progress, Request
from .run.wrapped import wrap
from .run.wrapped_trace import Wrapped
from .service.engine import Engine
from .trace import AttentionsTrace, Trace, from_attentions, from_cache, trace, trace_chat, trace_tokens
from .version import __version__
from .write.beams import Beam, beam_search, beam_steps
from .write.generate import Generation, GenerationStep, generate, stream
from .write.writer import Opening, TokenDistribution, Writer, opening

__all__ = [
    "Ablate",
    "AnswerChange",
    "AsPadding",
    "AttentionRecord",
    "AttributionEstimates",
    "Batch",
    "Beam",
    "ServerBusy",
    "ChatText",
    "CheckpointError",
    "Classes",
    "Comparison",
    "Component",
    "ConfigError",
    "Contribution",
    "Contributions",
    "DropCausalMask",
    "DropPadding",
    "DropPositions",
    "EditMask",
    "Engine",
    "Evidence",
    "Finding",
    "Generation",
    "GenerationError",
    "GenerationStep",
    "HeadEffect",
    "HeadEffects",
    "Intervention",
    "InterventionError",
    "LensLayer",
    "EdgeWeights",
    "Loaded",
    "LogitDiff",
    "MaskAfterSoftmax",
    "MaskFill",
    "ModelConfig",
    "ModelSpec",
    "TokenAttribution",
    "NoScale",
    "Opening",
    "StaleTrace",
    "Pair",
    "PairShares",
    "PatchResults",
    "PathEdge",
    "PositionRecord",
    "Predictions",
    "Progress",
    "TokenDistribution",
    "Receipt",
    "Recipe",
    "HeadlightError",
    "Request",
    "RotaryScaling",
    "RunCancelled",
    "ScaleHead",
    "SetMask",
    "SetPositions",
    "ShiftPositions",
    "ShufflePositions",
    "TensorStep",
    "Strongest",
    "Swap",
    "SwapWords",
    "Swaps",
    "Sweep",
    "Temperature",
    "TextError",
    "Thumbnail",
    "Tokens",
    "TooLarge",
    "Trace",
    "TrainStep",
    "UnknownRun",
    "AttentionsTrace",
    "Window",
    "Wrapped",
    "Writer",
    "__version__",
    "head_logit_attribution",
    "answer_change",
    "attribution_patching",
    "beam_search",
    "beam_steps",
    "build",
    "capture",
    "compare",
    "findings",
    "from_attentions",
    "from_cache",
    "generate",
    "hook_points",
    "hooked",
    "edge_in_all_heads",
    "load",
    "logit_diff_between",
    "edge_attribution",
    "edge_attribution_in_layer",
    "measures",
    "top_token_attribution",
    "opening",
    "opening_finding",
    "pairs_from",
    "patch_components",
    "patch_heads",
    "patch_pairs",
    "patch_paths",
    "plan",
    "read_config",
    "read_pairs",
    "report",
    "run_order",
    "same_length",
    "save",
    "stream",
    "strongest_edges",
    "swaps",
    "sweep_edges",
    "sweep_heads",
    "three_tests",
    "trace",
    "trace_chat",
    "trace_tokens",
    "train",
    "wrap",
]


def __getattr__(name: str) -> object:
    """core.text and the like, as they were reached until 0.1."""
    moved = old_names.new_name(name)
    if moved is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{moved}")


old_names.install(__name__)
