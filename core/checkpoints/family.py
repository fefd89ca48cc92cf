"""Family: one published architecture as data, and Theirs: its config.json read with types checked."""

from __future__ import annotations

import builtins
import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ..errors import CheckpointError
from ..model.config import ModelConfig

Required: Any = object()  # stands for "no default": the key must be there

# Nothing published comes near; a larger number is a damaged file, and would overflow further down.
MAX_WHOLE = 2**31 - 1


class Theirs:
    """Their config.json. Every getter raises CheckpointError naming the key when its value is missing or of the wrong type.

    A key that is null counts as absent, which is how published files mean it, but for flags.
    """

    def __init__(
        self, values: Mapping[builtins.str, Any], where: builtins.str = "config.json", whole: builtins.str = ""
    ):
        self.values, self.where = values, where
        self.whole = whole  # the title of the model whose text half this describes; "" for a model of its own

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
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or abs(value) > 1e30
        ):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be a finite number.")
        return float(value)

    def bool(self, key: builtins.str, default: Any = Required) -> Any:
        """A flag. One that is null is false, as it is in the published code."""
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
        """A list of words; empty when absent."""
        value = self.any(key, [])
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be a list of words.")
        return tuple(value)

    def inside(self, key: builtins.str) -> Theirs:
        """The object under a key; an empty one when absent."""
        value = self.any(key, {})
        if not isinstance(value, dict):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be an object in braces.")
        return Theirs(value, f"{self.where}: {key}")


def shown(value: Any) -> str:
    """A value from a file, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


Reader = Callable[[Theirs], Any]


def in_halves(config: ModelConfig) -> list[int]:
    """Features of a head whose rotary pairs are neighbours (GPT-J, GLM, Cohere), in the order in which ours turn: first the
    first ones of all pairs, then the second ones. Queries and keys change places alike, so that no score changes."""
    turned = config.d_rotary
    return [*range(0, turned, 2), *range(1, turned, 2), *range(turned, config.d_head)]


def nope_first(config: ModelConfig) -> list[int]:
    """Features of a head that keeps those which turn at its end (DeepSeek), whose pairs are neighbours: ours begin with them."""
    still = config.d_head - config.d_rotary
    return [*range(still, config.d_head, 2), *range(still + 1, config.d_head, 2), *range(still)]


def nope_first_in_halves(config: ModelConfig) -> list[int]:
    """The same where pairs are halves apart (MiniCPM3)."""
    still = config.d_head - config.d_rotary
    return [*range(still, config.d_head), *range(still)]


def rotary_only(config: ModelConfig) -> list[int]:
    """Features that all turn, whose pairs are neighbours."""
    return [*range(0, config.d_rotary, 2), *range(1, config.d_rotary, 2)]


def swap_halves(config: ModelConfig) -> list[int]:
    """Features of a head that turn the other way round (nanochat): the halves change places."""
    half = config.d_rotary // 2
    return [*range(half, config.d_rotary), *range(half), *range(config.d_rotary, config.d_head)]


@dataclass(frozen=True)
class Source:
    """Where one of our modules comes from in their files, and how to cut it out."""

    module: str | tuple[str, ...]  # a tuple: the first one present wins
    transpose: bool = False  # GPT-2's Conv1D keeps weights [in, out]
    fused: tuple[str, ...] = ()  # the projections that share one tensor, in the order of its rows
    part: str = ""  # which of them this is
    per_head: bool = False  # GPT-NeoX and Falcon interleave: [kv_head, (its queries, k, v), d_head]
    blocks: int = 1  # how many times the parts follow each other: CodeGen keeps four shares of its processors
    by_head: bool = False  # the parts follow each other once for every head
    alternate: bool = False  # gpt-oss: a row of each part in turn
    order: Callable[[ModelConfig], Sequence[int]] | None = (
        None  # of a head's features, as ours are in source_config: see `in_halves`
    )
    expert: int | None = None  # of a tensor that holds all experts: which one. Rows say 0, loading says the others
    times: Reader | None = None  # a factor that config.json states for all that this projection gives
    plus_one: bool = False  # Gemma keeps a norm's distance from one
    factor: float = 1.0  # the same as a number, which loading fills in
    zeros_if_absent: bool = False  # a bias that starts at zero and that base models leave out


@dataclass(frozen=True, kw_only=True)
class Family:
    """How one model_type's config.json and tensor names become ours.

    `fields` maps a field of ModelConfig to a reader of their config. `requires` maps one of their keys to the values that
    we can honour; the first is what an absent key means. `weights` maps our modules to source_config, `{i}` the layer, `{e}` the expert and
    `{stack}` encoder or decoder (a decoder whose config.json says `is_causal: false` is built as an encoder); weight and bias follow, and a row that names a whole tensor comes first.
    """

    model_type: str
    title: str
    fields: Mapping[str, Reader]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    requires: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    weights: Mapping[str, str | tuple[str, ...] | Source]
    prefix: str = ""  # present in some exports, absent in others
    head: Literal["lm", "mlm"] | None = "lm"  # what it has when the file holds one; None: config.json says it all
    start_token: str = ""  # the token that a decoder begins with when config.json does not say: pad or eos
    defaults: Mapping[str, Any] = field(
        default_factory=dict
    )  # values of absent keys, where the published class has its own

    def completed(self, source_config: Theirs) -> Theirs:
        """Their config.json with the defaults of the published class for absent keys. A null stays as it is."""
        more = dict(self.defaults)
        positions = more.pop("rope_parameters", None)
        if positions is None or "rope_parameters" in source_config or "rope_scaling" in source_config:
            return (
                Theirs(overlaid(source_config.values, more), source_config.where, source_config.whole)
                if more
                else source_config
            )
        return Theirs(
            overlaid({"rope_parameters": positions}, source_config.values, more),
            source_config.where,
            source_config.whole,
        )


def overlaid(*values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first value of each key. Nothing is copied, so that a mapping can note which of its keys are read."""
    return ChainMap(*cast(tuple[dict[str, Any], ...], values))


def whole(key: str, default: Any = Required) -> Reader:
    return lambda c: c.int(key, default)


def number(key: str, default: Any = Required) -> Reader:
    return lambda c: c.float(key, default)


def flag(key: str, default: Any = Required) -> Reader:
    return lambda c: c.bool(key, default)


def causal(c: Theirs) -> bool:
    """is_causal, which published code reads for every decoder: with false each token sees the whole text.

    That code asks whether the key is true where it is there, so that null means false as well.
    """
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
    """A row of GPT-2, whose linear layers are stored [in, out]."""
    return Source(module, transpose=True, fused=("q", "k", "v") if part else (), part=part)
