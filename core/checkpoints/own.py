"""Headlight's own format: config.json holds ModelConfig's fields, and the tensors have the names of our modules.

A folder is written by save_model() and read like any other: model_type is "headlight". config.json says every field that
differs from its default, the token ids that a model needs to pad, start and stop, whether matrices are stored as int8, and
nothing else: what is not understood is refused. Tensors that the model shares are stored once.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import MISSING, asdict, fields
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from zipfile import ZipFile

import torch
from safetensors.torch import save as safetensors_bytes
from tokenizers import Tokenizer
from torch import Tensor

from ..errors import CheckpointError
from ..model.chat import ChatTemplate
from ..model.config import ModelConfig, RotaryScaling
from ..model.next_tokens import ANYTHING, NextTokenRule
from ..model.transformer import Transformer
from .added_tokens import CONFIG
from .chat_template import settings_of
from .family import Family, Reader, Theirs, shown
from .generation import generation_values
from .rounded import in_rows

MODEL_TYPE = "headlight"
TOKEN_IDS = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
QUANTIZATION = "quantization_config"
INT8 = {"quant_method": "compressed-tensors", "format": "int-quantized"}  # the layout of in_rows()

MODULES = (
    "{stack}.embed.token",
    "{stack}.embed.position",
    "{stack}.embed.token_type",
    "{stack}.embed.norm",
    "{stack}.embed.project",
    "{stack}.relative_bias",
    "{stack}.relative_biases.{i}",
    "{stack}.distances",
    "{stack}.distance_norm",
    "{stack}.blocks.{i}.attn.q_distance",
    "{stack}.blocks.{i}.attn.k_distance",
    "{stack}.norm",
    *(f"{{stack}}.blocks.{{i}}.{site}.{part}" for site in ("attn", "cross_attn") for part in "qkvo"),
    *(f"{{stack}}.blocks.{{i}}.{site}.{part}_norm" for site in ("attn", "cross_attn") for part in "qk"),
    *(f"{{stack}}.blocks.{{i}}.{part}_norm" for part in ("attn", "cross", "mlp", "attn_out", "cross_out", "mlp_out")),
    *(f"{{stack}}.blocks.{{i}}.mlp.{part}" for part in ("up", "gate", "down")),
    *(
        f"{{stack}}.blocks.{{i}}.attn.{part}"
        for part in ("q_down", "q_down_norm", "kv_down", "kv_down_norm", "k_turned")
    ),
    *(f"{{stack}}.blocks.{{i}}.mlp.{part}" for part in ("router", "shared_gate")),
    *(f"{{stack}}.blocks.{{i}}.mlp.experts.{{e}}.{part}" for part in ("up", "gate", "down")),
    *(f"{{stack}}.blocks.{{i}}.mlp.shared.{part}" for part in ("up", "gate", "down")),
    "head.dense",
    "head.norm",
    "head.unembed",
)


TENSORS = (  # that are no module's weight or bias
    "{stack}.blocks.{i}.attn.sinks",
    "{stack}.blocks.{i}.mlp.correction",
    *(
        f"{{stack}}.blocks.{{i}}.mlp.{where}activation.{alpha}"
        for where in ("", "experts.{e}.", "shared.")
        for alpha in ("alpha_p", "alpha_n")
    ),
    "head.activation.alpha_p",
    "head.activation.alpha_n",
)


def _read(where: type, name: str) -> Reader:
    """How one field of a dataclass is read: by its type, with its own default."""
    hint = get_type_hints(where)[name]
    default = next(f.default for f in fields(where) if f.name == name)
    is_union = isinstance(hint, UnionType) or get_origin(hint) is Union
    kinds = get_args(hint) if is_union else (hint,)  # `int | None`: an absent key is None
    kind = next(k for k in kinds if k is not type(None))

    def read(c: Theirs) -> Any:
        if name not in c and default is not MISSING:
            return default
        if kind is RotaryScaling:
            return read_scaling(c.inside(name))
        if get_origin(kind) is tuple and get_origin(get_args(kind)[0]) is Literal:
            return c.strings(name)
        if get_origin(kind) is tuple:
            return _numbers(c, name) if float in get_args(kind) else _whole_numbers(c, name)
        if get_origin(kind) is Literal:
            return c.str(name)
        return {int: c.int, float: c.float, bool: c.bool}[kind](name)

    return read


def _numbers(c: Theirs, name: str) -> tuple[float, ...]:
    values = c.any(name)
    known = isinstance(values, list) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if not known or not all(math.isfinite(v) for v in values):
        raise CheckpointError(f"{c.where}: {name} is {shown(values)}, but it must be a list of finite numbers.")
    return tuple(map(float, values))


def _whole_numbers(c: Theirs, name: str) -> tuple[int, ...]:
    values = c.any(name)
    if not isinstance(values, list) or not all(isinstance(v, int) and not isinstance(v, bool) for v in values):
        raise CheckpointError(f"{c.where}: {name} is {shown(values)}, but it must be a list of whole numbers.")
    return tuple(values)


def read_scaling(c: Theirs) -> RotaryScaling:
    check_known(c, {f.name for f in fields(RotaryScaling)})
    return RotaryScaling(**{f.name: _read(RotaryScaling, f.name)(c) for f in fields(RotaryScaling)})


def check_known(c: Theirs, known: set[str]) -> None:
    """Raises CheckpointError by name for a key that means nothing to us."""
    if unknown := sorted(c.values.keys() - known):
        raise CheckpointError(f"{c.where}: {shown(unknown[0])} is not a field of a Headlight model.")


HEADLIGHT = Family(
    model_type=MODEL_TYPE,
    title="Headlight",
    fields={f.name: _read(ModelConfig, f.name) for f in fields(ModelConfig)},
    weights={module: module for module in (*TENSORS, *MODULES)},
    head=None,
)
KEYS = {f.name for f in fields(ModelConfig)} | {"model_type", QUANTIZATION, *TOKEN_IDS}


def save_model(
    model: Transformer,
    folder: Path,
    *,
    tokenizer: Tokenizer | None = None,
    pad_id: int | None = 0,
    start_id: int | None = None,
    end_ids: tuple[int, ...] = (),
    next_tokens: NextTokenRule = ANYTHING,
    chat_template: ChatTemplate | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write config.json, model.safetensors and tokenizer.json, which load(folder) then reads, and generation_config.json where
    not everything may be written, and tokenizer_config.json where there is a chat template. pad_id is None for a model that has no token for padding.

    `dtype` is how the numbers are stored; float16 and bfloat16 halve the file and round them. int8 makes it a quarter: each row
    of a matrix has a scale of its own, and everything else is float16. Each file is put in place when it is whole. Raises OSError
    where the folder cannot be written, and CheckpointError for numbers float16 cannot hold.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ids = dict(zip(TOKEN_IDS, (pad_id, start_id, list(end_ids) or None), strict=True))
    values = {
        "model_type": MODEL_TYPE,
        **config_values(model.config),
        **{k: v for k, v in ids.items() if v is not None},
        **({QUANTIZATION: INT8} if dtype == torch.int8 else {}),
    }
    write_whole(folder / "model.safetensors", safetensors_bytes(stored(model, dtype), {"format": "pt"}))
    if tokenizer is not None:
        write_whole(folder / "tokenizer.json", tokenizer.to_str().encode())
    if not next_tokens.is_free:
        text = json.dumps(generation_values(next_tokens), indent=2) + "\n"
        write_whole(folder / "generation_config.json", text.encode())
    if chat_template is not None:
        write_whole(folder / CONFIG, (json.dumps(settings_of(chat_template), indent=2) + "\n").encode())
    write_whole(folder / "config.json", (json.dumps(values, indent=2) + "\n").encode())


def model_zip(model: Transformer, recipe: dict[str, Any], card: str, **saved: Any) -> bytes:
    """A zip of what save_model() writes with `saved`, of the training's recipe as JSON, and of a card: core.load reads it unpacked."""
    with TemporaryDirectory() as made:
        folder = Path(made)
        save_model(model, folder, **saved)
        (folder / "recipe.json").write_text(json.dumps(recipe, indent=2) + "\n", "utf-8")
        (folder / "card.md").write_text(card, "utf-8")
        buffer = BytesIO()
        with ZipFile(buffer, "w") as file:
            for path in sorted(folder.iterdir()):
                file.write(path, path.name)
        return buffer.getvalue()


def config_values(config: ModelConfig) -> dict[str, Any]:
    """The fields that differ from their defaults, as JSON knows them."""
    values = asdict(config)
    changed = {f.name: values[f.name] for f in fields(ModelConfig) if getattr(config, f.name) != f.default}
    if config.rotary_scaling is not None:
        scaling = config.rotary_scaling
        changed["rotary_scaling"] = {
            f.name: getattr(scaling, f.name) for f in fields(scaling) if getattr(scaling, f.name) != f.default
        }
    return changed


def stored(model: Transformer, dtype: torch.dtype) -> dict[str, Tensor]:
    """Our tensors by name on the CPU, each shared one under the first of its names."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():  # names a shared parameter once
        tensors |= stored_as(dtype, name, parameter.detach().cpu())
    return tensors


def stored_as(dtype: torch.dtype, name: str, tensor: Tensor) -> dict[str, Tensor]:
    """One of our tensors as its file holds it: a matrix as int8 is two tensors, its numbers and the scales of its rows."""
    if dtype == torch.int8 and tensor.dim() == 2 and name.endswith(".weight"):
        numbers, scales = in_rows(tensor)
        return {name: numbers, f"{name}_scale": scales}
    dtype = torch.float16 if dtype == torch.int8 else dtype
    tensor = tensor.to(dtype).contiguous()
    if dtype == torch.float16 and not torch.isfinite(tensor).all():
        raise CheckpointError(f"{name} holds numbers too large for float16. Save it as bfloat16 or float32.")
    return {name: tensor}


def write_whole(path: Path, data: bytes) -> None:
    """So that a reader, or a run that was stopped, never finds half of a file."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    os.replace(part, path)
