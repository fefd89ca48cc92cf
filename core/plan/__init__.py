"""The cost of a transformer before it runs: parameters, bytes, FLOPs in closed form, and the tracer that proves them."""

from .alive import alive_bytes
from .cache import KVCache, kv_cache
from .cards import on_cards, traffic
from .chunks import chunked_run_bytes
from .depth import with_layers
from .devices import DEVICES, Device, roofline
from .fit import Fit, longest_fit
from .operations import Operation, decode, prefill, total_bytes, total_flops
from .parameters import Parameters, parameters
from .place import Place, of_bytes, on_card, on_machine
from .plan import Memory, Plan, memory_plan, plan
from .presets import LESSON_CLASS, PRESETS, Preset
from .runs import RunBytes, run_bytes
from .saved import SavedItem
from .speed import Speed, speed
from .tracing import TracedRun, TracedStep, trace_shapes
from .verdict import Offer, SetUp, Verdict, verdict
from .weights import stored_weights
from .workload import Workload

__all__ = [
    "DEVICES",
    "LESSON_CLASS",
    "PRESETS",
    "Device",
    "Fit",
    "KVCache",
    "Memory",
    "Offer",
    "Operation",
    "Parameters",
    "Place",
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
    "alive_bytes",
    "chunked_run_bytes",
    "decode",
    "kv_cache",
    "longest_fit",
    "memory_plan",
    "of_bytes",
    "on_card",
    "on_cards",
    "on_machine",
    "parameters",
    "plan",
    "prefill",
    "roofline",
    "run_bytes",
    "speed",
    "stored_weights",
    "total_bytes",
    "total_flops",
    "trace_shapes",
    "traffic",
    "verdict",
    "with_layers",
]
