"""GGUF files that a test writes: published models as llama.cpp's conversion lays them out, and headers byte by byte."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGUFValueType as Kind
from safetensors.torch import load_file
from torch import Tensor

Arrays = dict[str, Tensor]


def interleaved(rows: Tensor, heads: int) -> Tensor:
    """Rows of queries or keys as llama.cpp turns them (LlamaModel.permute of its conversion)."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def arrays_of(folder: Path, arch: str, config: dict[str, Any]) -> Arrays:
    """The tensors of a published model's folder by the names of the gguf package's table, in its layout unless that is changed."""
    names = {named: arch for arch, named in gguf.MODEL_ARCH_NAMES.items()}
    table = gguf.get_tensor_name_map(
        names[arch], config.get("num_hidden_layers") or config.get("n_layer") or config["num_layers"]
    )
    found: Arrays = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        ours = table.get_name(name, try_suffixes=(".weight", ".bias"))
        if ours is not None:
            found[ours] = tensor.float()
    return found


def write(
    path: Path,
    arch: str,
    values: dict[str, Any],
    arrays: Arrays,
    *,
    types: Callable[[str, Tensor], gguf.GGMLQuantizationType] = lambda name, tensor: gguf.GGMLQuantizationType.F32,
    alignment: int | None = None,
) -> Path:
    """A file with these metadata (keys without the architecture where they begin with a dot) and tensors."""
    writer = gguf.GGUFWriter(path, arch)
    if alignment is not None:
        writer.add_custom_alignment(alignment)
    for key, value in values.items():
        key = f"{arch}{key}" if key.startswith(".") else key
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    for name, tensor in arrays.items():
        kind = types(name, tensor)
        writer.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(tensor.numpy()), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def llama_values(config: dict[str, Any]) -> dict[str, Any]:
    """The metadata that every architecture of the Llama line has."""
    rope = config.get("rope_parameters") or {}
    rope = rope.get("full_attention", rope)
    values = {
        ".block_count": config["num_hidden_layers"],
        ".context_length": config["max_position_embeddings"],
        ".embedding_length": config["hidden_size"],
        ".feed_forward_length": config["intermediate_size"],
        ".attention.head_count": config["num_attention_heads"],
        ".attention.head_count_kv": config["num_key_value_heads"],
        ".attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        ".rope.freq_base": float(rope["rope_theta"]),
    }
    if config.get("head_dim"):
        values |= {f".attention.{part}_length": config["head_dim"] for part in ("key", "value")}
        values[".rope.dimension_count"] = config["head_dim"]
    return values


def config_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())


def llama(folder: Path, path: Path, **options: Any) -> Path:
    """A Llama as convert_hf_to_gguf.py writes it."""
    config = config_of(folder)
    values, arrays = llama_values(config), arrays_of(folder, "llama", config)
    heads, kv = config["num_attention_heads"], config["num_key_value_heads"]
    for name, tensor in arrays.items():
        if ".attn_q." in name or ".attn_k." in name:
            arrays[name] = interleaved(tensor, heads if ".attn_q." in name else kv)
    rope = config["rope_parameters"]
    if rope["rope_type"] in ("linear", "yarn"):
        values |= {".rope.scaling.type": rope["rope_type"], ".rope.scaling.factor": float(rope["factor"])}
    if rope["rope_type"] == "yarn":
        values[".rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
        values |= {f".rope.scaling.yarn_{key}": float(rope[key]) for key in ("beta_fast", "beta_slow")}
    if rope["rope_type"] == "llama3":
        arrays["rope_freqs.weight"] = llama3_factors(rope, config["head_dim"])
    return write(path, "llama", values | options.pop("values", {}), arrays, **options)


def llama3_factors(rope: dict[str, Any], width: int) -> Tensor:
    """The divisor of each rotary frequency (LlamaModel.generate_extra_tensors of the conversion)."""
    factors = []
    for frequency in (1.0 / rope["rope_theta"] ** (torch.arange(0, width, 2, dtype=torch.float32) / width)).tolist():
        length, low, high = rope["original_max_position_embeddings"], rope["low_freq_factor"], rope["high_freq_factor"]
        wave = 2 * torch.pi / frequency
        smooth = min(max((length / wave - low) / (high - low), 0.0), 1.0)
        factors.append(1 / ((1 - smooth) / rope["factor"] + smooth))
    return torch.tensor(factors)


def qwen(folder: Path, path: Path, **options: Any) -> Path:
    config = config_of(folder)
    return write(
        path, config["model_type"], llama_values(config), arrays_of(folder, config["model_type"], config), **options
    )


def gemma(folder: Path, path: Path, **options: Any) -> Path:
    config = config_of(folder)
    arch = {"gemma2": "gemma2", "gemma3_text": "gemma3"}[config["model_type"]]
    arrays = arrays_of(folder, arch, config)
    arrays = {name: tensor + 1 if name.endswith("norm.weight") else tensor for name, tensor in arrays.items()}
    values = llama_values(config) | {".attention.sliding_window": config["sliding_window"]}
    if arch == "gemma2":
        values |= {".attn_logit_softcapping": 0.0, ".final_logit_softcapping": 0.0}
    else:
        rope = config["rope_parameters"]
        values |= {".rope.scaling.type": "linear", ".rope.scaling.factor": rope["full_attention"]["factor"]}
        values |= {
            ".rope.freq_base_swa": rope["sliding_attention"]["rope_theta"],
            ".attention.sliding_window_pattern": 2,
        }
    return write(path, arch, values | options.pop("values", {}), arrays, **options)


def phi3(folder: Path, path: Path, **options: Any) -> Path:
    config = config_of(folder)
    width = config["hidden_size"] // config["num_attention_heads"]
    values = llama_values(config) | {
        ".rope.dimension_count": int(width * config["rope_parameters"]["partial_rotary_factor"])
    }
    values |= {".attention.sliding_window": config["sliding_window"] or 0}
    return write(path, "phi3", values, arrays_of(folder, "phi3", config), **options)


def gpt2(folder: Path, path: Path, **options: Any) -> Path:
    config = config_of(folder)
    arrays = arrays_of(folder, "gpt2", config)
    for name, tensor in arrays.items():
        if name.endswith(("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight")):
            arrays[name] = tensor.t().contiguous()
    values = {
        ".block_count": config["n_layer"],
        ".context_length": config["n_positions"],
        ".embedding_length": config["n_embd"],
        ".feed_forward_length": config["n_inner"],
        ".attention.head_count": config["n_head"],
        ".attention.layer_norm_epsilon": config["layer_norm_epsilon"],
    }
    return write(path, "gpt2", values, arrays, **options)


def neox(folder: Path, path: Path, **options: Any) -> Path:
    config = config_of(folder)
    arrays, heads = arrays_of(folder, "gptneox", config), config["num_attention_heads"]
    for name, tensor in arrays.items():
        if ".attn_qkv." in name:
            parts = tensor.reshape(heads, 3, -1, *tensor.shape[1:])
            arrays[name] = torch.cat([parts[:, i].reshape(-1, *tensor.shape[1:]) for i in range(3)])
    values = common(config) | {
        ".rope.dimension_count": int(
            config["hidden_size"] // heads * config["rope_parameters"]["partial_rotary_factor"]
        ),
        ".rope.freq_base": float(config["rope_parameters"]["rope_theta"]),
        ".use_parallel_residual": config["use_parallel_residual"],
    }
    return write(path, "gptneox", values, arrays, **options)


def bert(folder: Path, path: Path, **options: Any) -> Path:
    config = config_of(folder)
    values = common(config) | {".attention.causal": False, ".pooling_type": 1}
    return write(path, "bert", values | options.pop("values", {}), arrays_of(folder, "bert", config), **options)


def t5(folder: Path, path: Path, **options: Any) -> Path:
    config = config_of(folder)
    values = {
        ".block_count": config["num_layers"],
        ".decoder_block_count": config["num_decoder_layers"],
        ".context_length": 37,
        ".embedding_length": config["d_model"],
        ".feed_forward_length": config["d_ff"],
        ".attention.head_count": config["num_heads"],
        ".attention.key_length": config["d_kv"],
        ".attention.value_length": config["d_kv"],
        ".attention.layer_norm_epsilon": config["layer_norm_epsilon"],
        ".attention.layer_norm_rms_epsilon": config["layer_norm_epsilon"],
        ".attention.relative_buckets_count": config["relative_attention_num_buckets"],
        ".decoder_start_token_id": config["decoder_start_token_id"],
    }
    return write(path, "t5", values, arrays_of(folder, "t5", config), **options)


def common(config: dict[str, Any]) -> dict[str, Any]:
    return {
        ".block_count": config["num_hidden_layers"],
        ".context_length": config["max_position_embeddings"],
        ".embedding_length": config["hidden_size"],
        ".feed_forward_length": config["intermediate_size"],
        ".attention.head_count": config["num_attention_heads"],
        ".attention.layer_norm_epsilon": config["layer_norm_eps"],
    }


# Byte by byte ----------------------------------------------------------------------------------------------------------------


def text(value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, kind: Kind, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def a_list(kind: Kind, count: int, items: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + items


def tensor(name: str, dims: Iterable[int], kind: int = 0, offset: int = 0, n_dims: int | None = None) -> bytes:
    dims = list(dims)
    count = len(dims) if n_dims is None else n_dims
    return (
        text(name)
        + struct.pack("<I", count)
        + b"".join(struct.pack("<Q", d) for d in dims)
        + struct.pack("<IQ", kind, offset)
    )


def raw(
    entries: Iterable[bytes] = (),
    tensors: Iterable[bytes] = (),
    data: bytes = b"",
    *,
    version: int = 3,
    n_entries: int | None = None,
    n_tensors: int | None = None,
    magic: bytes = b"GGUF",
    alignment: int = 32,
) -> bytes:
    """The bytes of a file."""
    entries, tensors = list(entries), list(tensors)
    counts = (len(tensors) if n_tensors is None else n_tensors, len(entries) if n_entries is None else n_entries)
    head = magic + struct.pack("<IQQ", version, *counts) + b"".join(entries) + b"".join(tensors)
    return head + b"\0" * (-len(head) % alignment) + data
