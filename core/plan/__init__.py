"""The cost of a transformer before it runs: parameters, bytes, FLOPs in closed form, and the tracer that proves them."""

from .live_memory import Fit, live_peak_bytes, longest_fit
from .operations import DEVICES, Device, Operation, decode, prefill, roofline, total_bytes, total_flops
from .parameters import Parameters, parameters, stored_weights, with_layers
from .peak import RunBytes, chunked_run_bytes, run_bytes
from .plan import Memory, Plan, Speed, memory_plan, plan, speed
from .presets import LESSON_CLASS, PRESETS, Preset
from .tracing import TracedRun, TracedStep, trace_shapes
from .training import SavedItem
from .verdict import (
    MemoryBudget,
    Offer,
    SetUp,
    Verdict,
    of_bytes,
    on_card,
    on_machine,
    split_over_gpus,
    traffic,
    verdict,
)
from .workload import KVCache, Workload, kv_cache

__all__ = [
    "DEVICES",
    "LESSON_CLASS",
    "PRESETS",
    "Device",
    "Fit",
    "KVCache",
    "Memory",
    "MemoryBudget",
    "Offer",
    "Operation",
    "Parameters",
    "Plan",
    "Preset",
    "RunBytes",
    "SavedItem",
    "SetUp",
    "Speed",
    "TracedRun",
    "TracedStep",
    "Verdict",
    "Workload",
    "chunked_run_bytes",
    "decode",
    "kv_cache",
    "live_peak_bytes",
    "longest_fit",
    "memory_plan",
    "of_bytes",
    "on_card",
    "on_machine",
    "parameters",
    "plan",
    "prefill",
    "roofline",
    "run_bytes",
    "speed",
    "split_over_gpus",
    "stored_weights",
    "total_bytes",
    "total_flops",
    "trace_shapes",
    "traffic",
    "verdict",
    "with_layers",
]
