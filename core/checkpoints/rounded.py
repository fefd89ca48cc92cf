"""Dequantizes weights when they are read: GPTQ, AWQ, FP8, compressed-tensors and bitsandbytes' 8 and 4 bits.

Layouts as their authors publish them: GPTQ and AWQ pack whole numbers into 32 bits (AutoGPTQ and AutoAWQ, qlinear modules), FP8 keeps a
scale for each tensor, row or block (DeepSeek-V3, compressed-tensors), bitsandbytes a largest value for each row (Dettmers et al. 2022,
arXiv:2208.07339), or for each block of a tensor of indices into a table of sixteen values (NF4 and FP4, Dettmers et al. 2023,
arXiv:2305.14314, §3; QuantState.as_dict). Shapes are checked against each other before a number is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import CheckpointError
from .computed import lazy_tensor
from .family import Theirs, shown
from .files import Stored

AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)  # positions of columns 0, 1, … of eight in 32 bits of AWQ
FP8 = ("F8_E4M3", "F8_E5M2")
PACKED_BITS = (2, 4, 8)  # divisors of 32; three bits are packed across words
FOUR_BITS = "bitsandbytes to 4 bits"
STATES = tuple(f"weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
MAX_STATE = 1 << 16  # bytes of the description of 4-bit weights
MAX_NUMBERS = 1 << 34  # in a tensor; the largest published one has 1 << 31
SCALE_DTYPES = ("F16", "BF16", "F32")
# Method -> the tensor that marks a quantized layer, and the method's title.
METHODS = {
    "gptq": ("qweight", "GPTQ"),
    "awq": ("qweight", "AWQ"),
    "bitsandbytes": ("SCB", "bitsandbytes"),
    FOUR_BITS: ("weight.absmax", "bitsandbytes to NF4 or FP4"),
    "fp8": ("weight_scale_inv", "FP8"),
    "compressed-tensors": ("weight_scale", "compressed-tensors"),
}
LEAVES = (
    *("qweight", "qzeros", "scales", "g_idx"),
    *("weight", "SCB", "weight_format"),
    *("weight_scale_inv", "weight_scale", "input_scale", "activation_scale", "weight_zero_point"),
    *("weight.absmax", "weight.quant_map", "weight.nested_absmax", "weight.nested_quant_map", *STATES),
)


@dataclass(frozen=True)
class Layer:
    """Tensors of one linear layer by the ends of their names."""

    name: str  # of the layer, with a trailing dot
    parts: Mapping[str, Stored]

    def part(self, leaf: str, *axes: int | None, dtype: tuple[str, ...] = ()) -> Stored:
        """One tensor. Raises CheckpointError if it is missing or has another shape or dtype. An axis of None may have any length."""
        stored = self.parts.get(leaf)
        if stored is None:
            some = next(iter(self.parts.values()))
            raise CheckpointError(
                f"{some.file} has {some.name} and no {self.name}{leaf}, without which it cannot be read."
            )
        fits = len(stored.shape) == len(axes) and all(
            axis in (None, n) for axis, n in zip(axes, stored.shape, strict=True)
        )
        if not fits or 0 in stored.shape:
            wanted = ", ".join("?" if axis is None else str(axis) for axis in axes)
            raise CheckpointError(
                f"{stored.file}: {stored.name} is {list(stored.shape)}, but [{wanted}] belongs there."
            )
        if dtype and stored.dtype not in dtype:
            raise CheckpointError(
                f"{stored.file}: {stored.name} is stored as {stored.dtype}, but it must be {' or '.join(dtype)}."
            )
        return stored


def method_of(source_config: Theirs) -> str | None:
    """The supported method of a quantization_config; None if there is none, or an unsupported one."""
    stated = source_config.any("quantization_config", None)
    if not isinstance(stated, dict):
        return None
    four, eight = bool(stated.get("load_in_4bit")), bool(stated.get("load_in_8bit"))
    method = stated.get("quant_method") or ("bitsandbytes" if four or eight else None)
    bits = stated.get("bits", stated.get("w_bit"))
    if method == "bitsandbytes" and four:
        return FOUR_BITS
    supported = {
        "gptq": bits in PACKED_BITS and stated.get("checkpoint_format", "gptq") in ("gptq", "gptq_v2"),
        "awq": bits == 4 and str(stated.get("version", "gemm")).lower() == "gemm",
        "bitsandbytes": eight,
        "fp8": True,
        "compressed-tensors": stated.get("format") in ("float-quantized", "int-quantized", "naive-quantized"),
    }
    return method if isinstance(method, str) and supported.get(method) else None


def in_full(source_config: Theirs, tensors: Mapping[str, Stored]) -> tuple[Mapping[str, Stored], str]:
    """The tensors with quantized ones replaced by dequantized ones, and a notice; unchanged, and "", if none is quantized.

    Raises CheckpointError naming a tensor that is missing or does not fit the others.
    """
    method = method_of(source_config)
    if method is None:
        return tensors, ""
    settings = source_config.inside("quantization_config")
    (mark, title), full = METHODS[method], dict(tensors)
    if method == "fp8" and not any(name.endswith(".weight_scale_inv") for name in tensors):
        mark = "weight_scale"
    layers = [name.removesuffix(mark) for name in tensors if name.endswith(f".{mark}")]
    for name in layers:
        layer = Layer(name, {leaf: tensors[name + leaf] for leaf in LEAVES if name + leaf in tensors})
        full[f"{name}weight"] = READERS[method](layer, settings)
        for leaf in layer.parts:
            if leaf != "weight":
                del full[name + leaf]
    if not layers:
        raise CheckpointError(
            f"{settings.where} says that the weights were rounded by {method}, but no tensor is called {mark}, as they are then. They may belong to "
            'another config.json. Open the original model, which a page on the Hub names as its base: `headlight.load("OWNER/NAME")`.'
        )
    return (
        full,
        f"The weights of {len(layers)} layers were rounded by {title}; they are computed with in full, as they were rounded.",
    )


def in_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(int8 [out, in] from -127 to 127, scale [out, 1]) nearest to a weight, in the layout that _scaled() reads."""
    weight = weight.float()
    scale = weight.abs().amax(-1, keepdim=True) / 127
    numbers = weight / scale.where(scale > 0, 1)
    return numbers.round().to(torch.int8).contiguous(), scale


def _packed(words: Tensor, bits: int) -> Tensor:
    """Unpack 32-bit words [rows, columns] to [rows, columns, 32 / bits], lowest bits first."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    return (words.unsqueeze(-1) >> shifts) & ((1 << bits) - 1)


def _check_size(name: str, *sizes: int) -> None:
    if (total := math.prod(sizes)) > MAX_NUMBERS:
        raise CheckpointError(f"{name} would have {total:,} numbers, which no published tensor has.")


def _gptq(layer: Layer, settings: Theirs) -> Stored:
    """qweight [in / pack, out], qzeros [groups, out / pack], scales [groups, out], g_idx [in]: (number - zero) · scale. The first
    version of the format stores zeros minus one."""
    bits = settings.int("bits")
    pack = 32 // bits
    weight = layer.part("qweight", None, None, dtype=("I32",))
    n_in, n_out = weight.shape[0] * pack, weight.shape[1]
    _check_size(weight.name, n_in, n_out)
    scales = layer.part("scales", None, n_out, dtype=SCALE_DTYPES)
    n_groups = scales.shape[0]
    zeros = layer.part("qzeros", n_groups, n_out // pack, dtype=("I32",))
    size = settings.int("group_size", 0) if settings.any("group_size", -1) != -1 else n_in
    if "g_idx" not in layer.parts and (size == 0 or -(-n_in // size) != n_groups):
        raise CheckpointError(
            f"{scales.file}: {scales.name} has {n_groups} groups, but group_size {size} makes {-(-n_in // max(size, 1))} of {n_in} rows."
        )
    group = layer.part("g_idx", n_in, dtype=("I32", "I64")) if "g_idx" in layer.parts else None
    lower = int(settings.str("checkpoint_format", "gptq") == "gptq")

    def make() -> Tensor:
        numbers = _packed(weight.read(), bits).movedim(-1, 1).flatten(0, 1)
        zero = _packed(zeros.read(), bits).flatten(1) + lower
        index = torch.arange(n_in) // size if group is None else group.read().long()
        if int(index.min()) < 0 or int(index.max()) >= n_groups:
            raise CheckpointError(f"{weight.file}: {layer.name}g_idx names a group that {scales.name} does not have.")
        return ((numbers - zero[index]).float() * scales.read().float()[index]).t().contiguous()

    return lazy_tensor(f"{layer.name}weight", weight.file, (n_out, n_in), make)


def _awq(layer: Layer, settings: Theirs) -> Stored:
    """qweight [in, out / 8], qzeros [groups, out / 8], scales [groups, out], with eight columns in 32 bits, in AWQ_ORDER."""
    weight = layer.part("qweight", None, None, dtype=("I32",))
    n_in, n_out = weight.shape[0], weight.shape[1] * 8
    _check_size(weight.name, n_in, n_out)
    scales = layer.part("scales", None, n_out, dtype=SCALE_DTYPES)
    n_groups = scales.shape[0]
    zeros = layer.part("qzeros", n_groups, n_out // 8, dtype=("I32",))
    if n_in % n_groups:
        raise CheckpointError(f"{scales.file}: {scales.name} has {n_groups} groups, which do not divide {n_in} rows.")

    def columns(words: Tensor) -> Tensor:
        return _packed(words, 4)[..., list(AWQ_ORDER)].flatten(1)

    def make() -> Tensor:
        each = n_in // n_groups
        numbers = columns(weight.read()) - columns(zeros.read()).repeat_interleave(each, 0)
        return (numbers.float() * scales.read().float().repeat_interleave(each, 0)).t().contiguous()

    return lazy_tensor(f"{layer.name}weight", weight.file, (n_out, n_in), make)


def _int8(layer: Layer, settings: Theirs) -> Stored:
    """weight [out, in] from -127 to 127, SCB [out]: the largest value of each row."""
    weight = layer.part("weight", None, None, dtype=("I8",))
    largest = layer.part("SCB", weight.shape[0], dtype=SCALE_DTYPES)

    def make() -> Tensor:
        return weight.read().float() * (largest.read().float() / 127)[:, None]

    return lazy_tensor(weight.name, weight.file, weight.shape, make)


def _four(layer: Layer, settings: Theirs) -> Stored:
    """weight [numbers / 2, 1]: two indices into quant_map [16] per byte, the first in its upper half. absmax [blocks] is the largest value
    of each block, or, with nested quantisation, an index into nested_quant_map [256], times nested_absmax, plus an offset."""
    weight = layer.part("weight", None, 1, dtype=("U8",))
    leaf = next((leaf for leaf in STATES if leaf in layer.parts), STATES[0])
    state = _state(layer.part(leaf, None, dtype=("U8",)))
    sizes = state.any("shape", None)
    if not isinstance(sizes, list) or not all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in sizes):
        raise CheckpointError(f"{state.where}: shape is {shown(sizes)}, but it must be the sizes of the weight.")
    _check_size(weight.name, *sizes)
    n, block = math.prod(sizes), state.int("blocksize")
    if weight.shape[0] != -(-n // 2):
        raise CheckpointError(
            f"{weight.file}: {weight.name} has {weight.shape[0]:,} bytes, but {sizes} of 4 bits take {-(-n // 2):,}."
        )
    if block < 1:
        raise CheckpointError(f"{state.where}: blocksize is {block}, but a block has at least one number.")
    n_blocks, floats = -(-n // block), SCALE_DTYPES
    table = layer.part("weight.quant_map", 16, dtype=floats)
    nested = "weight.nested_absmax" in layer.parts
    largest = layer.part("weight.absmax", n_blocks, dtype=("U8",) if nested else floats)
    of_blocks, places, size, offset = None, None, state.int("nested_blocksize", 256), state.float("nested_offset", 0.0)
    if nested:
        if size < 1:
            raise CheckpointError(f"{state.where}: nested_blocksize is {size}, but a block has at least one number.")
        of_blocks = layer.part("weight.nested_absmax", -(-n_blocks // size), dtype=floats)
        places = layer.part("weight.nested_quant_map", 256, dtype=floats)

    def make() -> Tensor:
        packed = weight.read().flatten()
        numbers = torch.stack([packed >> 4, packed & 15], dim=-1).flatten()[:n]
        scale = largest.read()
        if of_blocks is not None and places is not None:
            wide = of_blocks.read().float().repeat_interleave(size)[:n_blocks]
            scale = places.read().float()[scale.long()] * wide + offset
        values = table.read().float()[numbers.long()]
        return (values * scale.float().repeat_interleave(block)[:n]).reshape(sizes)

    return lazy_tensor(weight.name, weight.file, tuple(sizes), make)


def _state(stored: Stored) -> Theirs:
    """Description of a 4-bit weight: a JSON object, stored as bytes."""
    where = f"{stored.file}: {stored.name}"
    if stored.shape[0] > MAX_STATE:
        raise CheckpointError(f"{where} is larger than {MAX_STATE >> 10} kB, which no published one is.")
    try:
        values = json.loads(bytes(stored.read().tolist()))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{where} is no JSON. Download the file again.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{where} must hold an object in braces, but it holds a {type(values).__name__}.")
    return Theirs(values, where)


def _scaled(layer: Layer, settings: Theirs) -> Stored:
    """weight [out, in] times a scale per tensor, row, or block of rows and columns."""
    weight = layer.part("weight", None, None, dtype=(*FP8, "I8"))
    n_out, n_in = weight.shape
    leaf = "weight_scale_inv" if "weight_scale_inv" in layer.parts else "weight_scale"
    scale = layer.parts[leaf]
    if "weight_zero_point" in layer.parts:
        raise CheckpointError(f"{weight.file}: {layer.name}weight_zero_point shifts the numbers, which is not read.")
    block = settings.any("weight_block_size", [128, 128])
    if scale.shape in ((), (1,), (1, 1), (n_out,), (n_out, 1)):
        return lazy_tensor(
            weight.name,
            weight.file,
            weight.shape,
            lambda: weight.read().float() * scale.read().float().reshape(-1, 1),
        )
    if not (isinstance(block, list) and len(block) == 2 and all(isinstance(n, int) and n > 0 for n in block)):
        raise CheckpointError(f"{settings.where}: weight_block_size is {shown(block)}, but it must be two numbers.")
    rows, columns = block
    layer.part(leaf, -(-n_out // rows), -(-n_in // columns), dtype=SCALE_DTYPES)

    def make() -> Tensor:
        wide = scale.read().float().repeat_interleave(rows, 0)[:n_out].repeat_interleave(columns, 1)[:, :n_in]
        return weight.read().float() * wide

    return lazy_tensor(weight.name, weight.file, weight.shape, make)


READERS: dict[str, Callable[[Layer, Theirs], Any]] = {
    "gptq": _gptq,
    "awq": _awq,
    "bitsandbytes": _int8,
    FOUR_BITS: _four,
    "fp8": _scaled,
    "compressed-tensors": _scaled,
}
