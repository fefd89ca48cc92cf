"""Models from a config alone: random weights, or a description for a plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from ..device import dtype_name
from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..model.transformer import Transformer, to_dtype
from ..plan import PRESETS, Plan, Workload
from ..plan.plan import plan as plan_of
from ..plan.workload import BYTES
from . import Loaded, ModelSpec, find, gguf, gguf_files, locate
from .family import SourceConfig, overlaid, rope, text_backbone
from .files import read_json
from .loading import MAX_LAYERS, config_from, family_of, with_head
from .native_format import MODEL_TYPE


def build(
    config: ModelConfig, seed: int = 0, *, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32
) -> Loaded:
    """An untrained model, reproducible by its seed. It has no tokenizer: trace it with ids=[...]."""
    with SeededInit(seed):
        model = initialise(Transformer(config))
    model = to_dtype(model, dtype).to(device).eval().requires_grad_(False)
    spec = ModelSpec(
        id="built",
        title=f"random {config.kind}",
        source="built",
        location="",
        n_params=sum(p.numel() for p in model.parameters()),
        note=f"random weights, seed {seed}",
    )
    return Loaded(
        spec=spec,
        config=config,
        model=model,
        tokenizer=None,
        device=torch.device(device),
        dtype=dtype,
        unused=(),
        pad_id=0,
        start_id=0 if config.kind == "encoder-decoder" else None,
    )


# Functions that draw random numbers: of torch.nn.init, as modules call them, and those that the others call.
RANDOM_INITIALISERS = (
    nn.init.uniform_,
    nn.init.normal_,
    nn.init.kaiming_uniform_,
    Tensor.uniform_,
    Tensor.normal_,
)


class SeededInit(TorchFunctionMode):
    """Initialises weights from its own generator, so that the global one, which other threads use, plays no part."""

    def __init__(self, seed: int):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in RANDOM_INITIALISERS:
            kwargs = kwargs | {"generator": self.generator}
        return func(*args, **kwargs)


def initialise(model: Transformer) -> Transformer:
    """Initialise weights as in Vaswani et al. 2017 and Glorot & Bengio 2010, so that scores and logits are of the order of 1."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for module in model.modules():  # after the linear layers, because a tied table is initialised as an embedding
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
    return model


# (quant_method, bits) of a quantization_config -> the format in which such weights are counted
QUANTIZED: dict[tuple[Any, int | None], str] = {
    ("gptq", 4): "int4",
    ("awq", 4): "int4",
    ("gptq", 8): "int8",
    ("fp8", None): "float8",
}
# Keys that change the results of a model, but neither memory nor FLOPs. A plan ignores them.
UNCOUNTED = (
    *("alibi", "clip_qkv", "rope_interleave", "scale_attn_by_inverse_layer_idx", "swiglu_alpha", "topk_method"),
    "use_bidirectional_attention",
)


@dataclass(frozen=True)
class ParsedConfig:
    """A model described by a config.json. `dtype` and `weight_dtype` are None if they are absent or unsupported by plans."""

    config: ModelConfig
    dtype: str | None = None  # of the published weights
    weight_dtype: str | None = None  # of quantized weights


def parse_config(values: Mapping[str, Any]) -> ParsedConfig:
    """Describe the model of a parsed config.json.

    Unlike load(), accepts quantized weights, unsupported values of UNCOUNTED, and unsupported scaling of positions, because they do not
    change memory or FLOPs. Raises CheckpointError like load() otherwise.
    """
    is_own = values.get("model_type") == MODEL_TYPE
    source_config = text_backbone(SourceConfig(values if is_own else overlaid(dict.fromkeys(UNCOUNTED), values)))
    family = family_of(source_config, stored=False)
    try:
        config = config_from(family, source_config)
    except CheckpointError as refusal:
        source_config = _unscaled(source_config)
        try:
            config = config_from(family, source_config)
        except CheckpointError:  # the scaling is not the cause
            raise refusal from None
    is_named = "architectures" in source_config or not config.writes  # a decoder without a named class has a head
    if family.head is not None and is_named:
        config = with_head(config, family, source_config, {})
    n_layers = max(config.n_encoder_layers, config.n_decoder_layers)
    if n_layers > MAX_LAYERS:
        raise CheckpointError(f"config.json speaks of {n_layers:,} layers, and at most {MAX_LAYERS:,} are counted.")
    stated = source_config.any("dtype", source_config.any("torch_dtype", None))
    dtype = dtype_name(stated) if isinstance(stated, str) else None
    return ParsedConfig(
        config, dtype if dtype in BYTES else None, _quantized(source_config.any("quantization_config", None))
    )


def _unscaled(source_config: SourceConfig) -> SourceConfig:
    """The config.json with its rotary base, but without scaling."""
    base = rope(source_config).any("rope_theta", None)
    without: dict[str, Any] = {"rope_scaling": None, "rope_parameters": None}
    return SourceConfig(
        overlaid(without if base is None else without | {"rope_theta": base}, source_config.values),
        source_config.where,
        source_config.whole,
    )


def describe(model: str | os.PathLike[str], *, revision: str | None = None) -> ParsedConfig:
    """Describe a preset of core.plan, a catalog id, owner/name on the Hub, a folder, or the path of a config.json or a GGUF file.

    From a repository only config.json is downloaded. Raises CheckpointError.
    """
    if not isinstance(model, str | os.PathLike):
        raise CheckpointError(
            f"A plan is of a ModelConfig, a config as a mapping, or a name or path of a model, not of {type(model).__name__}."
        )
    text = os.fspath(model)
    if isinstance(model, str) and model in PRESETS:
        return ParsedConfig(PRESETS[model].config)
    if "\0" not in text and os.path.isfile(text) and not gguf.is_gguf(text):
        return parse_config(read_json(Path(text)))
    spec = find(model)
    spec = spec if revision is None else replace(spec, revision=revision)
    if spec.source == "hub":
        from .hub import fetch_config

        return parse_config(read_json(fetch_config(spec)))
    folder = locate(spec, None)[1]
    if files := gguf_files(folder, spec.title):
        from .gguf.model import read_model

        return parse_config(read_model(files).config)
    if not (folder / "config.json").is_file():
        raise CheckpointError(f"{spec.title} has no config.json, from which a model could be planned.")
    return parse_config(read_json(folder / "config.json"))


def read_config(model: str | os.PathLike[str] | Mapping[str, Any], *, revision: str | None = None) -> ModelConfig:
    """The ModelConfig of a model, as in describe(), or of a config.json as a dict. Raises CheckpointError."""
    return (parse_config(model) if isinstance(model, Mapping) else describe(model, revision=revision)).config


def plan(
    model: ModelConfig | str | os.PathLike[str] | Mapping[str, Any], workload: Workload | None = None, **options: Any
) -> Plan:
    """Parameters, bytes, FLOPs and memory traffic of a model for a workload, given as a record or as `options`, its fields:

    plan("meta-llama/Meta-Llama-3-70B", source_len=8192, dtype="float16"). The model is a ModelConfig or an argument of read_config(),
    which reads only its config.json. Raises ConfigError like core.plan.plan, and CheckpointError like read_config().
    """
    return plan_of(model if isinstance(model, ModelConfig) else read_config(model), workload, **options)


def _quantized(stated: Any) -> str | None:
    if not isinstance(stated, dict):
        return None
    method, bits = stated.get("quant_method"), stated.get("bits")
    if method == "bitsandbytes":
        return "nf4" if stated.get("load_in_4bit") else "int8" if stated.get("load_in_8bit") else None
    return QUANTIZED.get((method, bits if isinstance(bits, int) else None))
