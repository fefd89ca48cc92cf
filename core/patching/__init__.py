"""Activation patching and ablation: many edited runs of one text in a batch. Also the atlas: statistics of every head over a corpus."""

from .component_patching import (
    AttributionEstimates,
    Evidence,
    PatchResults,
    attribution_patching,
    patch_components,
    run_order,
    three_tests,
)
from .counterfactual import Component
from .edited_runs import HeadEffect, HeadEffects
from .head_sweeps import LogitDiff, Sweep, logit_diff_between, patch_heads, sweep_edges, sweep_heads
from .path_patching import PathEdge, patch_paths
from .sentence_pairs import Pair, PairShares, pairs_from, patch_pairs, read_pairs

MAX_TOKENS = 128  # default length limit of a text of a corpus; longer texts are truncated

__all__ = [
    "MAX_TOKENS",
    "AttributionEstimates",
    "Component",
    "Evidence",
    "HeadEffect",
    "HeadEffects",
    "LogitDiff",
    "Pair",
    "PairShares",
    "PatchResults",
    "PathEdge",
    "Sweep",
    "attribution_patching",
    "logit_diff_between",
    "pairs_from",
    "patch_components",
    "patch_heads",
    "patch_pairs",
    "patch_paths",
    "read_pairs",
    "run_order",
    "sweep_edges",
    "sweep_heads",
    "three_tests",
]
