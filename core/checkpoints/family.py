"""Family: one published architecture as data, and Theirs: typed access to its config.json."""

from __future__ import annotations

import builtins
import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ..errors import CheckpointError
from ..model.config import ModelConfig

Required: Any = object()  # marks a key without a default

MAX_WHOLE = 2**31 - 1  # far above any published value; larger numbers come from damaged files and would overflow later

LAYER = "{stack}.blocks.{i}"  # prefix of the rows of one layer
QKV, GATE_UP = ("q", "k", "v"), ("gate", "up")


class Theirs:
    """The config.json of a published model. Getters raise CheckpointError naming the key if its value is missing or of the wrong type.

    A null counts as an absent key, except for flags: published code reads a null flag as false.
    """

    def __init__(
        self, values: Mapping[builtins.str, Any], where: builtins.str = "config.json", whole: builtins.str = ""
    ):
        self.values, self.where = values, where
        self.whole = whole  # title of the multimodal model whose text backbone this describes; "" for other models

    def __contains__(self, key: builtins.str) -> builtins.bool:
        return self.values.get(key) is not None

    def any(self, key: builtins.str, default: Any = Required) -> Any:
        value = self.values.get(key)
        if value is None:
            if default is Required:
                raise CheckpointError(
                    f"{self.where} has no {key}, which this model's family needs. The file may be incomplete."
                )
            return default
        return value

    def int(self, key: builtins.str, default: Any = Required) -> Any:
        value = self.any(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_WHOLE:
            raise CheckpointError(
                f"{self.where}: {key} is {shown(value)}, but it must be a whole number from 0 to {MAX_WHOLE}."
            )
        return value

    def float(self, key: builtins.str, default: Any = Required) -> Any:
        value = self.any(key, default)
        if value is default:
            return value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or abs(value) > 1e30:
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be a finite number.")
        return float(value)

    def bool(self, key: builtins.str, default: Any = Required) -> Any:
        """A flag; null is false, as in published code."""
        if key in self.values and self.values[key] is None:
            return False
        value = self.any(key, default)
        if value is not default and not isinstance(value, bool):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be true or false.")
        return value

    def str(self, key: builtins.str, default: Any = Required) -> Any:
        value = self.any(key, default)
        if value is not default and not isinstance(value, str):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be a word in quotes.")
        return value

    def strings(self, key: builtins.str) -> tuple[Any, ...]:
        """A list of strings; empty if absent."""
        value = self.any(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be a list of words.")
        return tuple(value)

    def inside(self, key: builtins.str) -> Theirs:
        """The object under a key; empty if absent."""
        value = self.any(key, {})
        if not isinstance(value, dict):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be an object in braces.")
        return Theirs(value, f"{self.where}: {key}")


def shown(value: Any) -> str:
    """repr() of a value from a file, shortened for an error message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


Reader = Callable[[Theirs], Any]


# Orders of a head's features: position in our layout -> index in theirs. Queries and keys are permuted alike, so scores do not change.


def in_halves(config: ModelConfig) -> list[int]:
    """From rotary pairs of neighbouring features (GPT-J, GLM, Cohere) to pairs half a head apart."""
    rotary = config.d_rotary
    return [*range(0, rotary, 2), *range(1, rotary, 2), *range(rotary, config.d_head)]


def nope_first(config: ModelConfig) -> list[int]:
    """From NoPE features first, and rotary pairs of neighbours (DeepSeek), to rotary features first."""
    d_nope = config.d_head - config.d_rotary
    return [*range(d_nope, config.d_head, 2), *range(d_nope + 1, config.d_head, 2), *range(d_nope)]


def nope_first_in_halves(config: ModelConfig) -> list[int]:
    """From NoPE features first, and rotary pairs half a head apart (MiniCPM3), to rotary features first."""
    d_nope = config.d_head - config.d_rotary
    return [*range(d_nope, config.d_head), *range(d_nope)]


def rotary_only(config: ModelConfig) -> list[int]:
    """From rotary features only, in pairs of neighbours, to pairs half the features apart."""
    return [*range(0, config.d_rotary, 2), *range(1, config.d_rotary, 2)]


def swap_halves(config: ModelConfig) -> list[int]:
    """From features that rotate in the opposite direction (nanochat): the two halves are exchanged."""
    half = config.d_rotary // 2
    return [*range(half, config.d_rotary), *range(half), *range(config.d_rotary, config.d_head)]


@dataclass(frozen=True)
class Source:
    """Module of a published checkpoint that one of our modules is loaded from, and how to extract it."""

    module: str | tuple[str, ...]  # alternatives: the first one present is used
    transpose: bool = False  # GPT-2's Conv1D stores weights as [in, out]
    fused: tuple[str, ...] = ()  # projections that share one tensor, in the order of its rows
    part: str = ""  # the projection to extract
    per_head: bool = False  # GPT-NeoX and Falcon interleave: [kv_head, (its queries, k, v), d_head]
    blocks: int = 1  # repetitions of the projections: CodeGen stores four shards
    by_head: bool = False  # the projections repeat for every head
    alternate: bool = False  # gpt-oss alternates between the projections row by row
    order: Callable[[ModelConfig], Sequence[int]] | None = None  # permutation of a head's features, such as in_halves
    expert: int | None = None  # index in a tensor that holds all experts. Rows say 0; loading fills in the others
    times: Reader | None = None  # reads a factor of the projection's output from config.json
    plus_one: bool = False  # Gemma stores norm weights as an offset from one
    factor: float = 1.0  # value of `times`, filled in by loading
    zeros_if_absent: bool = False  # for biases that start at zero and that base models leave out


Row = str | tuple[str, ...] | Source


@dataclass(frozen=True, kw_only=True)
class Family:
    """Maps the config.json and the tensor names of one model_type to ours; see docs/adding-a-family.md.

    `fields` maps a field of ModelConfig to the reader of its value, and `fixed` to a constant. `requires` maps a key of config.json to
    the values that are supported; an absent key means the first. `weights` maps our modules to theirs: {i} is the layer, {e} the expert
    and {stack} encoder or decoder (a decoder with `is_causal: false` is built as an encoder). Weight and bias follow from a row; a row
    that names a whole tensor takes precedence.
    """

    model_type: str
    title: str
    fields: Mapping[str, Reader]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    requires: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    weights: Mapping[str, Row]
    prefix: str = ""  # present in some exports, absent in others
    head: Literal["lm", "mlm"] | None = "lm"  # head of files that contain one; None: config.json is complete
    start_token: str = ""  # first decoder token if config.json does not name it: pad or eos
    defaults: Mapping[str, Any] = field(default_factory=dict)  # of absent keys, where the published class has its own

    def completed(self, source_config: Theirs) -> Theirs:
        """The config.json with the published class's defaults for absent keys. Nulls are kept."""
        more = dict(self.defaults)
        positions = more.pop("rope_parameters", None)
        layers: list[Mapping[str, Any]] = [source_config.values, more]
        if positions is not None and "rope_parameters" not in source_config and "rope_scaling" not in source_config:
            layers.insert(0, {"rope_parameters": positions})
        elif not more:
            return source_config
        return Theirs(overlaid(*layers), source_config.where, source_config.whole)


def overlaid(*values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A view of mappings in which earlier ones win. Nothing is copied, so that a mapping can record which of its keys are read."""
    return ChainMap(*cast(tuple[dict[str, Any], ...], values))


def whole(key: str, default: Any = Required) -> Reader:
    return lambda c: c.int(key, default)


def wholes(**keys: str) -> dict[str, Reader]:
    """Readers of required whole numbers: field=key of config.json."""
    return {ours: whole(key) for ours, key in keys.items()}


def number(key: str, default: Any = Required) -> Reader:
    return lambda c: c.float(key, default)


def flag(key: str, default: Any = Required) -> Reader:
    return lambda c: c.bool(key, default)


def causal(c: Theirs) -> bool:
    """is_causal, which published code reads for every decoder. A present null is false, as in that code."""
    return c.bool("is_causal", "is_causal" not in c.values)


ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "quick_gelu": "quick_gelu",
    "relu2": "relu_squared",
    "xielu": "xielu",
    "swish": "silu",
}


def activation(key: str, default: Any = Required) -> Reader:
    def read(c: Theirs) -> str:
        name = c.str(key, default)
        if name not in ACTIVATIONS:
            raise CheckpointError(
                f"{c.where}: the activation {key}={shown(name)} is not supported. Supported are {', '.join(ACTIVATIONS)}."
            )
        return ACTIVATIONS[name]

    return read


def conv1d(module: str, part: str = "") -> Source:
    """A row of GPT-2, which stores linear layers as [in, out]."""
    return Source(module, transpose=True, fused=QKV if part else (), part=part)


def fused(row: str, module: str, parts: tuple[str, ...] = QKV, **options: Any) -> dict[str, Row]:
    """Rows of projections that share one tensor: `row`.q, `row`.k and `row`.v from `module`. `options` are fields of Source."""
    return {f"{row}.{part}": Source(module, fused=parts, part=part, **options) for part in parts}


def without(rows: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """All rows except the named ones."""
    return {row: value for row, value in rows.items() if row not in names}
