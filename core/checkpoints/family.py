"""Family: one published architecture as data, and SourceConfig: typed access to its config.json."""

from __future__ import annotations

import builtins
import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from ..errors import CheckpointError
from ..model.config import ModelConfig, RotaryScaling

Required: Any = object()  # marks a key without a default

MAX_WHOLE = 2**31 - 1  # far above any published value; larger numbers come from damaged files and would overflow later

LAYER = "{stack}.blocks.{i}"  # prefix of the rows of one layer
QKV, GATE_UP = ("q", "k", "v"), ("gate", "up")


class SourceConfig:
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

    def inside(self, key: builtins.str) -> SourceConfig:
        """The object under a key; empty if absent."""
        value = self.any(key, {})
        if not isinstance(value, dict):
            raise CheckpointError(f"{self.where}: {key} is {shown(value)}, but it must be an object in braces.")
        return SourceConfig(value, f"{self.where}: {key}")


def shown(value: Any) -> str:
    """repr() of a value from a file, shortened for an error message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


Reader = Callable[[SourceConfig], Any]


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

    def completed(self, source_config: SourceConfig) -> SourceConfig:
        """The config.json with the published class's defaults for absent keys. Nulls are kept."""
        more = dict(self.defaults)
        positions = more.pop("rope_parameters", None)
        layers: list[Mapping[str, Any]] = [source_config.values, more]
        if positions is not None and "rope_parameters" not in source_config and "rope_scaling" not in source_config:
            layers.insert(0, {"rope_parameters": positions})
        elif not more:
            return source_config
        return SourceConfig(overlaid(*layers), source_config.where, source_config.whole)


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


def causal(c: SourceConfig) -> bool:
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
    def read(c: SourceConfig) -> str:
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


KINDS = ("default", "linear", "dynamic", "yarn", "llama3", "longrope")
OLD_NAMES = {"su": "longrope"}  # in the first Phi-3 files


def rope(c: SourceConfig, layers: str = "full_attention") -> SourceConfig:
    """The object with the rotary settings. Models with two kinds of layers have one for each."""
    parameters, scaling = c.inside("rope_parameters"), c.inside("rope_scaling")
    if layers in parameters.values:
        return parameters.inside(layers)
    return scaling if scaling.values else parameters


def rotary_base(key: str = "rope_theta", default: float = 10_000.0) -> Reader:
    def read(c: SourceConfig) -> float:
        stated = rope(c).float("rope_theta", None)
        base = c.float(key, default) if stated is None else stated
        if base <= 1:
            raise CheckpointError(f"{c.where}: rope_theta is {base}, but the base of rotary angles must be above 1.")
        return base

    return read


def rotary_fraction(key: str = "partial_rotary_factor", default: float = 1.0) -> Reader:
    def read(c: SourceConfig) -> float:
        share = rope(c).float("partial_rotary_factor", None)
        return c.float(key, default) if share is None else share

    return read


def all_turns(c: SourceConfig) -> float:
    """1.0, for families whose published code rotates whole heads. Raises CheckpointError if a smaller share is stated.

    Published code ignores the key and other programs (vLLM) read it, so such a file is ambiguous.
    """
    stated = [
        rope(c, layers).float("partial_rotary_factor", None) for layers in ("full_attention", "sliding_attention")
    ]
    share = next((s for s in (*stated, c.float("partial_rotary_factor", None)) if s is not None and s != 1), 1.0)
    if share != 1:
        raise CheckpointError(
            f"{c.where}: partial_rotary_factor is {share:g}, but the published code of this model type never reads it and "
            "turns all of a head, while other programs do turn a part of it. Take the key out for the first, which is what "
            "transformers computes."
        )
    return share


def rotary_kind(c: SourceConfig, supported: tuple[str, ...] = KINDS) -> str:
    """The kind of scaling. Raises CheckpointError for an unsupported one."""
    r = rope(c)
    kind = r.str("rope_type", None) or r.str("type", "default")
    kind = OLD_NAMES.get(kind, kind)
    if kind not in supported:
        raise CheckpointError(
            f"{r.where}: rotary positions of type {shown(kind)} are not supported. Supported are {', '.join(supported)}."
        )
    return kind


def unscaled(c: SourceConfig) -> None:
    """For families whose published code has only a kind of scaling that is not supported here."""
    rotary_kind(c, ("default",))


def phi3_scaling(c: SourceConfig) -> RotaryScaling | None:
    """LongRoPE or none; Phi-3's first files call it "su" or "yarn"."""
    if rotary_kind(c, ("default", "longrope", "yarn")) == "yarn":
        r = rope(c)
        c = SourceConfig({**c.values, "rope_scaling": {**r.values, "rope_type": "longrope"}}, c.where, c.whole)
    return rotary_scaling(c)


def rotary_scaling(c: SourceConfig) -> RotaryScaling | None:
    """The scaling; None if there is none. Raises CheckpointError for an unsupported kind or missing settings."""
    r, kind = rope(c), rotary_kind(c)
    if kind == "default":
        return None
    n_ctx = c.int("max_position_embeddings")
    original = (
        c.int("original_max_position_embeddings", None) or r.int("original_max_position_embeddings", None) or n_ctx
    )
    # Published code scales `dynamic` from max_position_embeddings and ignores the original length.
    settings: dict[str, Any] = dict(kind=kind, n_ctx_original=n_ctx if kind == "dynamic" else original)
    settings["factor"] = r.float("factor", n_ctx / original) if kind in ("yarn", "longrope") else r.float("factor")
    if kind == "llama3":
        settings |= dict(low_freq_factor=r.float("low_freq_factor"), high_freq_factor=r.float("high_freq_factor"))
    if kind == "yarn":
        settings |= dict(beta_fast=r.float("beta_fast", None) or 32.0, beta_slow=r.float("beta_slow", None) or 1.0)
        settings |= dict(truncate=r.bool("truncate", True), attention_factor=r.float("attention_factor", None))
        settings |= dict(mscale=r.float("mscale", None), mscale_all_dim=r.float("mscale_all_dim", None))
    if kind == "longrope":
        settings["factor"] = max(settings["factor"], 1.0)  # only for the attention factor, which is at least 1
        settings |= dict(short_factors=_factors(r, "short_factor"), long_factors=_factors(r, "long_factor"))
        settings |= dict(attention_factor=r.float("attention_factor", None))
    return RotaryScaling(**settings)


def _factors(r: SourceConfig, key: str) -> tuple[float, ...]:
    """One divisor per frequency."""
    value = r.any(key)
    numbers = isinstance(value, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
    if not numbers or not all(0 < x < 1e6 for x in value):
        raise CheckpointError(f"{r.where}: {key} is {shown(value)}, but it must be a list of positive numbers.")
    return tuple(map(float, value))


# model_type of the whole model -> its title, and the default model_type of its text backbone. Listed are models whose backbone is
# shown to compute the same as the whole model on a text without pictures.
WHOLES: dict[str, tuple[str, str]] = {
    "gemma3": ("Gemma 3", "gemma3_text"),
    "got_ocr2": ("GOT-OCR 2", "qwen2"),
    "idefics3": ("Idefics 3", "llama"),
    "internvl": ("InternVL", "qwen2"),
    "llava": ("LLaVA", "llama"),
    "llava_next": ("LLaVA-NeXT", "llama"),
    "llava_onevision": ("LLaVA-OneVision", "qwen2"),
    "mistral3": ("Mistral 3", "mistral"),
    "qwen2_5_vl": ("Qwen2.5-VL", "qwen2_5_vl_text"),
    "qwen2_audio": ("Qwen2-Audio", "qwen2"),
    "qwen2_vl": ("Qwen2-VL", "qwen2_vl_text"),
    "qwen3_vl": ("Qwen3-VL", "qwen3_vl_text"),
    "smolvlm": ("SmolVLM", "llama"),
    "vipllava": ("ViP-LLaVA", "llama"),
    "voxtral": ("Voxtral", "llama"),
}
# In a text the three positions of a token are equal, so these rotate like the family that they are based on.
SAME_AS = {"qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2", "qwen3_vl_text": "qwen3"}

_LLAMA = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 2048,
}
_QWEN_VL = {
    "vocab_size": 152064,
    "hidden_size": 8192,
    "intermediate_size": 29568,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1_000_000.0,
}
_QWEN = _LLAMA | {"vocab_size": 151936, "intermediate_size": 22016, "max_position_embeddings": 32768}
# Defaults of the classes in transformers for keys that a text_config leaves out.
LEFT_OUT: Mapping[str, Mapping[str, Any]] = {
    "llama": _LLAMA,
    "mistral": _LLAMA
    | {
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
    "qwen2": _QWEN,
    "qwen3": _QWEN | {"head_dim": 128},
    "qwen2_vl_text": _QWEN_VL,
    "qwen2_5_vl_text": _QWEN_VL,
    "qwen3_vl_text": _QWEN | {"head_dim": 128, "max_position_embeddings": 128000, "rope_theta": 500_000.0},
    "gemma3_text": {
        "vocab_size": 262208,
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
}
# Keys of the whole model that also apply to its backbone: the first override the backbone's, the others fill gaps.
OF_BOTH = ("architectures", "quantization_config", "tie_word_embeddings")
IF_ABSENT = ("eos_token_id", "bos_token_id", "pad_token_id", "auto_map", "torch_dtype", "dtype")


def text_backbone(source_config: SourceConfig) -> SourceConfig:
    """The config.json of the text backbone of a multimodal model; the config.json of any other model is returned unchanged.

    Absent keys get the defaults of the backbone's class. Raises CheckpointError if text_config is not an object.
    """
    outer = source_config.any("model_type", None)
    if not isinstance(outer, str) or outer not in WHOLES:
        return source_config
    title, usual = WHOLES[outer]
    inner = source_config.inside("text_config")
    if not inner.values:  # Qwen2-VL's first files have the backbone's keys at the top level
        inner = SourceConfig(without(source_config.values, "model_type"), source_config.where)
    kind = inner.str("model_type", usual)
    # Whether the head is tied follows from the files unless the whole model states it; the backbone's own key is ignored.
    values = without(inner.values, "model_type", "tie_word_embeddings")
    scalings = ("rope_parameters", "rope_scaling")
    if any(inner.inside(key).values for key in scalings):
        values |= {key: _one_position(values[key]) for key in scalings if key in inner}
    inherited = {key: source_config.values[key] for key in IF_ABSENT if key in source_config and key not in inner}
    inherited |= {key: source_config.values[key] for key in OF_BOTH if key in source_config}
    defaults = without(LEFT_OUT.get(kind, {}), *values)
    return SourceConfig({**defaults, **values, **inherited, "model_type": SAME_AS.get(kind, kind)}, inner.where, title)


def _one_position(rope: Any) -> Any:
    """Rotary settings without the shares of a head that encode rows and columns of a picture."""
    kinds = {key: "default" for key in ("type", "rope_type") if isinstance(rope, dict) and rope.get(key) == "mrope"}
    return {**rope, **kinds} if kinds else rope
