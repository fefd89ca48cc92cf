"""Headlight's own format: config.json has ModelConfig's fields, and tensors have the names of its modules."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
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
from ..model.outputs import ANYTHING, NextTokenRule
from ..model.transformer import Transformer
from .family import Family, Reader, SourceConfig, shown
from .metadata import generation_values, settings_of
from .tokenizer_files import CONFIG
from .weight_transforms import in_rows

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


TENSORS = (  # other than weights and biases of modules
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
    """Reader of a dataclass field, by its type and default."""
    hint = get_type_hints(where)[name]
    default = next(f.default for f in fields(where) if f.name == name)
    is_union = isinstance(hint, UnionType) or get_origin(hint) is Union
    kinds = get_args(hint) if is_union else (hint,)  # for `int | None` an absent key is None
    kind = next(k for k in kinds if k is not type(None))

    def read(c: SourceConfig) -> Any:
        if name not in c and default is not MISSING:
            return default
        if kind is RotaryScaling:
            return read_scaling(c.inside(name))
        if get_origin(kind) is tuple:
            item = get_args(kind)[0]
            return c.strings(name) if get_origin(item) is Literal else _numbers(c, name, item)
        if get_origin(kind) is Literal:
            return c.str(name)
        return {int: c.int, float: c.float, bool: c.bool}[kind](name)

    return read


def _numbers(c: SourceConfig, name: str, kind: type) -> tuple[Any, ...]:
    """A list of finite numbers (`kind` float) or whole numbers (int)."""
    values = c.any(name)
    types = (int, float) if kind is float else (int,)
    is_list = isinstance(values, list) and all(isinstance(v, types) and not isinstance(v, bool) for v in values)
    if is_list and all(math.isfinite(v) for v in values):
        return tuple(map(kind, values))
    if kind is float:
        raise CheckpointError(f"{c.where}: {name} is {shown(values)}, but it must be a list of finite numbers.")
    raise CheckpointError(f"{c.where}: {name} is {shown(values)}, but it must be a list of whole numbers.")


def read_scaling(c: SourceConfig) -> RotaryScaling:
    check_known(c, {f.name for f in fields(RotaryScaling)})
    return RotaryScaling(**{f.name: _read(RotaryScaling, f.name)(c) for f in fields(RotaryScaling)})


def check_known(c: SourceConfig, known: set[str]) -> None:
    """Raises CheckpointError naming an unknown key."""
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


@dataclass(frozen=True, kw_only=True)
class TokenIds:
    """Ids of the tokens that pad, start and end a text; None or () for a model without them."""

    pad: int | None = 0
    start: int | None = None
    end: tuple[int, ...] = ()


def save_model(
    model: Transformer,
    folder: Path,
    *,
    tokenizer: Tokenizer | None = None,
    ids: TokenIds = TokenIds(),
    next_tokens: NextTokenRule = ANYTHING,
    chat_template: ChatTemplate | None = None,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write a folder that load() reads: config.json, model.safetensors, tokenizer.json, and, if they are needed, generation_config.json
    for restricted tokens and tokenizer_config.json for the chat template.

    float16 and bfloat16 halve the file and round the numbers. int8 quarters it: each row of a matrix has its own scale, and everything
    else is float16. Each file is written atomically. Raises OSError if the folder cannot be written, and CheckpointError for numbers
    too large for float16.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stated = dict(zip(TOKEN_IDS, (ids.pad, ids.start, list(ids.end) or None), strict=True))
    values = {
        "model_type": MODEL_TYPE,
        **config_values(model.config),
        **{k: v for k, v in stated.items() if v is not None},
        **({QUANTIZATION: INT8} if dtype == torch.int8 else {}),
    }
    write_whole(folder / "model.safetensors", safetensors_bytes(stored(model, dtype), {"format": "pt"}))
    if tokenizer is not None:
        write_whole(folder / "tokenizer.json", tokenizer.to_str().encode())
    if not next_tokens.is_free:
        write_whole(folder / "generation_config.json", _json(generation_values(next_tokens)))
    if chat_template is not None:
        write_whole(folder / CONFIG, _json(settings_of(chat_template)))
    write_whole(folder / "config.json", _json(values))


def _json(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, indent=2) + "\n").encode()


def model_zip(model: Transformer, recipe: dict[str, Any], card: str, **saved: Any) -> bytes:
    """A zip of the files of save_model(), the training's recipe as JSON, and a model card. `saved` are arguments of save_model()."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        save_model(model, folder, **saved)
        (folder / "recipe.json").write_bytes(_json(recipe))
        (folder / "card.md").write_text(card, "utf-8")
        buffer = BytesIO()
        with ZipFile(buffer, "w") as file:
            for path in sorted(folder.iterdir()):
                file.write(path, path.name)
        return buffer.getvalue()


def config_values(config: ModelConfig) -> dict[str, Any]:
    """The fields that differ from their defaults, as JSON values."""
    values = asdict(config)
    changed = {f.name: values[f.name] for f in fields(ModelConfig) if getattr(config, f.name) != f.default}
    if (scaling := config.rotary_scaling) is not None:
        of_scaling = {f.name: getattr(scaling, f.name) for f in fields(scaling)}
        changed["rotary_scaling"] = {
            f.name: of_scaling[f.name] for f in fields(scaling) if of_scaling[f.name] != f.default
        }
    return changed


def stored(model: Transformer, dtype: torch.dtype) -> dict[str, Tensor]:
    """Our tensors by name, on the CPU; a shared one has only its first name."""
    tensors: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():  # lists a shared parameter once
        tensors |= stored_as(dtype, name, parameter.detach().cpu())
    return tensors


def stored_as(dtype: torch.dtype, name: str, tensor: Tensor) -> dict[str, Tensor]:
    """One of our tensors in the file's dtype; an int8 matrix becomes two tensors, its numbers and the scales of its rows."""
    if dtype == torch.int8 and tensor.dim() == 2 and name.endswith(".weight"):
        numbers, scales = in_rows(tensor)
        return {name: numbers, f"{name}_scale": scales}
    dtype = torch.float16 if dtype == torch.int8 else dtype
    tensor = tensor.to(dtype).contiguous()
    if dtype == torch.float16 and not torch.isfinite(tensor).all():
        raise CheckpointError(f"{name} holds numbers too large for float16. Save it as bfloat16 or float32.")
    return {name: tensor}


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    os.replace(part, path)
