"""Quantized weights: each layout packed number by number as its authors publish it, read back, and damaged in one place."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from core.checkpoints import load
from core.checkpoints.files import SINGLE
from core.errors import CheckpointError
from tests.core.folders import change_config

AWQ_MAP = (0, 2, 4, 6, 1, 3, 5, 7)  # awq/modules/linear/gemm.py: the column whose number is the i-th of 32 bits
Pack = Callable[[Tensor, torch.Generator], tuple[dict[str, Tensor], Tensor]]


def signed(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word


def down(numbers: Tensor, bits: int) -> Tensor:
    """[rows, columns] -> 32 / bits rows in each word, as AutoGPTQ packs qweight."""
    n = 32 // bits
    words = [
        [signed(sum(int(numbers[r * n + i, c]) << (bits * i) for i in range(n))) for c in range(numbers.shape[1])]
        for r in range(numbers.shape[0] // n)
    ]
    return torch.tensor(words, dtype=torch.int32)


def across(numbers: Tensor, bits: int, order: tuple[int, ...] | None = None) -> Tensor:
    """[rows, columns] -> 32 / bits columns in each word."""
    n = 32 // bits
    order = order or tuple(range(n))
    words = [
        [
            signed(sum(int(numbers[r, c * n + order[i]]) << (bits * i) for i in range(n)))
            for c in range(numbers.shape[1] // n)
        ]
        for r in range(numbers.shape[0])
    ]
    return torch.tensor(words, dtype=torch.int32)


def gptq(bits: int, version: int = 1, shuffled: bool = False) -> Pack:
    def pack(weight: Tensor, draw: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
        n_out, n_in = weight.shape
        size = 16
        numbers = torch.randint(0, 2**bits, (n_in, n_out), generator=draw)
        zeros = torch.randint(1, 2**bits, (n_in // size, n_out), generator=draw)
        scales = torch.rand(n_in // size, n_out, generator=draw) * 0.1
        group = torch.arange(n_in) // size
        group = group[torch.randperm(n_in, generator=draw)] if shuffled else group
        full = torch.empty(n_in, n_out)
        for row in range(n_in):
            full[row] = (numbers[row] - zeros[group[row]]) * scales[group[row]]
        stored = {"qweight": down(numbers, bits), "qzeros": across(zeros - int(version == 1), bits), "scales": scales}
        return stored | {"g_idx": group.int()}, full.T

    return pack


def awq(weight: Tensor, draw: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
    n_out, n_in = weight.shape
    numbers = torch.randint(0, 16, (n_in, n_out), generator=draw)
    zeros, scales = (
        torch.randint(0, 16, (n_in // 16, n_out), generator=draw),
        torch.rand(n_in // 16, n_out, generator=draw) * 0.1,
    )
    full = torch.stack([(numbers[r] - zeros[r // 16]) * scales[r // 16] for r in range(n_in)])
    return {"qweight": across(numbers, 4, AWQ_MAP), "qzeros": across(zeros, 4, AWQ_MAP), "scales": scales}, full.T


def int8(weight: Tensor, draw: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
    """bitsandbytes: each row by its largest value."""
    largest = weight.abs().amax(1)
    numbers = (weight * 127 / largest[:, None]).round().to(torch.int8)
    full = torch.stack([numbers[r].float() * largest[r] / 127 for r in range(len(weight))])
    return {"weight": numbers, "SCB": largest, "weight_format": torch.tensor(0, dtype=torch.uint8)}, full


def four(table: Tensor, kind: str, nested: bool = False, block: int = 64) -> Pack:
    """bitsandbytes' 4 bits: two places of a table in each byte, the first in its upper half (functional.py, quantize_4bit); with
    `nested` the largest of each block is rounded once more, in blocks of 256 (compress_statistics)."""

    def pack(weight: Tensor, draw: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
        flat = weight.flatten()
        blocks = [flat[i : i + block] for i in range(0, len(flat), block)]
        largest = torch.stack([part.abs().max() for part in blocks])
        state: dict[str, Any] = {"quant_type": kind, "blocksize": block, "dtype": "float16", "shape": [*weight.shape]}
        stored: dict[str, Tensor] = {"weight.absmax": largest}
        if nested:
            offset = largest.mean().item()
            places = torch.linspace(-1, 1, 256)
            groups = [(largest - offset)[i : i + 256] for i in range(0, len(largest), 256)]
            most = torch.stack([group.abs().max() for group in groups])
            each = [
                int((places * most[i // 256] - (x - offset)).abs().argmin()) for i, x in enumerate(largest.tolist())
            ]
            largest = torch.tensor([places[p].item() * most[i // 256].item() + offset for i, p in enumerate(each)])
            stored = {
                "weight.absmax": torch.tensor(each, dtype=torch.uint8),
                "weight.nested_absmax": most,
                "weight.nested_quant_map": places,
            }
            state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": offset}
        numbers = [int((table * largest[i // block] - x).abs().argmin()) for i, x in enumerate(flat.tolist())]
        full = torch.tensor([table[p].item() * largest[i // block].item() for i, p in enumerate(numbers)])
        packed = [[numbers[i] << 4 | numbers[i + 1]] for i in range(0, len(numbers), 2)]
        stored |= {
            "weight": torch.tensor(packed, dtype=torch.uint8),
            "weight.quant_map": table.clone(),
            f"weight.quant_state.bitsandbytes__{kind}": torch.tensor(
                list(json.dumps(state).encode()), dtype=torch.uint8
            ),
        }
        return stored, full.reshape(weight.shape)

    return pack


# arXiv:2305.14314, appendix E
NF4 = torch.tensor([
    -1.0, -0.6961928, -0.5250731, -0.3949175, -0.2844414, -0.1847734, -0.0910500, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.3379152, 0.4407098, 0.5626170, 0.7229568, 1.0,
])  # fmt: skip
FP4 = torch.tensor([
    0.0, 0.0052083, 0.6666667, 1.0, 0.3333333, 0.5, 0.1666667, 0.25,
    -0.0, -0.0052083, -0.6666667, -1.0, -0.3333333, -0.5, -0.1666667, -0.25,
])  # fmt: skip


def fp8_blocks(weight: Tensor, draw: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
    numbers = weight.to(torch.float8_e4m3fn)
    scale = torch.rand(-(-weight.shape[0] // 24), -(-weight.shape[1] // 20), generator=draw)
    full = numbers.float().clone()
    for r in range(full.shape[0]):
        for c in range(full.shape[1]):
            full[r, c] *= scale[r // 24, c // 20]
    return {"weight": numbers, "weight_scale_inv": scale}, full


def rows(dtype: torch.dtype) -> Pack:
    """compressed-tensors: a scale for each row."""

    def pack(weight: Tensor, draw: torch.Generator) -> tuple[dict[str, Tensor], Tensor]:
        numbers = (weight * (100 if dtype == torch.int8 else 1)).to(dtype)
        scale = torch.rand(weight.shape[0], 1, generator=draw)
        return {"weight": numbers, "weight_scale": scale}, numbers.float() * scale

    return pack


GPTQ = {"quant_method": "gptq", "group_size": 16}
BNB4 = {"quant_method": "bitsandbytes", "load_in_4bit": True}
FORMS: dict[str, tuple[dict[str, Any], Pack]] = {
    "GPTQ, 4 bits": (GPTQ | {"bits": 4}, gptq(4)),
    "GPTQ, 8 bits": (GPTQ | {"bits": 8}, gptq(8)),
    "GPTQ, 2 bits": (GPTQ | {"bits": 2}, gptq(2)),
    "GPTQ, groups out of order": (GPTQ | {"bits": 4, "desc_act": True}, gptq(4, shuffled=True)),
    "GPTQ, second version": (GPTQ | {"bits": 4, "checkpoint_format": "gptq_v2"}, gptq(4, version=2)),
    "AWQ": ({"quant_method": "awq", "bits": 4, "version": "gemm"}, awq),
    "bitsandbytes": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, int8),
    "NF4": (BNB4 | {"bnb_4bit_quant_type": "nf4"}, four(NF4, "nf4")),
    "NF4, nested": (BNB4 | {"bnb_4bit_use_double_quant": True}, four(NF4, "nf4", nested=True, block=16)),
    "FP4": (BNB4 | {"bnb_4bit_quant_type": "fp4"}, four(FP4, "fp4", block=128)),
    "FP8 in blocks": ({"quant_method": "fp8", "weight_block_size": [24, 20]}, fp8_blocks),
    "FP8 by rows": ({"quant_method": "compressed-tensors", "format": "float-quantized"}, rows(torch.float8_e4m3fn)),
    "whole numbers by rows": ({"quant_method": "compressed-tensors", "format": "int-quantized"}, rows(torch.int8)),
}
N_LAYERS = 3
MADE = tempfile.TemporaryDirectory()  # it goes when the process ends


@pytest.fixture
def rounded(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A model with rounded linear layers, and the same one with these numbers in full."""
    return made(request.param, tmp_path)


def made(form: str, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of both: to pack the weights of a form takes seconds, and is done once."""
    place = Path(MADE.name) / str([*FORMS].index(form))
    if not place.exists():
        make(form, place)
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    return tmp_path / "packed", tmp_path / "full"


def make(form: str, place: Path) -> None:
    import transformers as hf

    said, pack = FORMS[form]
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": N_LAYERS,
        "num_attention_heads": 4,
    }
    model = hf.LlamaForCausalLM(
        hf.LlamaConfig(**sizes, num_key_value_heads=2, vocab_size=53, max_position_embeddings=37)
    )
    packed, full = place / "packed", place / "full"
    for folder in (packed, full):
        model.save_pretrained(folder)
    tensors, draw = load_file(full / SINGLE), torch.Generator().manual_seed(1)
    stored = dict(tensors)
    for name in [name for name in tensors if re.search(r"(self_attn|mlp)\.\w+_proj\.weight", name)]:
        parts, tensors[name] = pack(tensors[name], draw)
        del stored[name]
        stored |= {f"{name.removesuffix('weight')}{leaf}": part.contiguous() for leaf, part in parts.items()}
    save_file(stored, packed / SINGLE)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, full / SINGLE)
    change_config(packed, quantization_config=said)


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("rounded", FORMS, indirect=True)
def test_rounded_weights_are_those_that_their_authors_compute_with(rounded: tuple[Path, Path]) -> None:
    packed, full = (load(place) for place in rounded)
    ours, theirs = dict(packed.model.named_parameters()), dict(full.model.named_parameters())
    assert ours.keys() == theirs.keys() and packed.unused == ()
    for name, parameter in theirs.items():
        assert (ours[name] - parameter).abs().max() <= 1e-6, name
    assert re.fullmatch(
        rf"The weights of {7 * N_LAYERS} layers were rounded by .+; they are computed with in full, as they were rounded\.",
        packed.notices[-1],
    )


def changed(leaf: str, change: Callable[[Tensor], Tensor | None]) -> Callable[[dict[str, Tensor]], dict[str, Tensor]]:
    def all_of(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        name = next(n for n in tensors if n.endswith(f"1.mlp.up_proj.{leaf}"))
        other = change(tensors[name])
        rest = {n: t for n, t in tensors.items() if n != name}
        return rest if other is None else rest | {name: other}

    return all_of


STATE = "weight.quant_state.bitsandbytes__nf4"


def said_so(values: dict[str, Any]) -> Tensor:
    return torch.tensor(list(json.dumps(values).encode()), dtype=torch.uint8)


DAMAGED = [
    (
        "GPTQ, 4 bits",
        changed("scales", lambda _: None),
        "no model.layers.1.mlp.up_proj.scales, without which it cannot be read",
    ),
    (
        "GPTQ, 4 bits",
        changed("scales", lambda t: t[:, :-1].contiguous()),
        "up_proj.scales is [4, 95], but [?, 96] belongs there",
    ),
    (
        "GPTQ, 4 bits",
        changed("qzeros", lambda t: t[:-1].contiguous()),
        "up_proj.qzeros is [3, 12], but [4, 12] belongs there",
    ),
    ("GPTQ, 4 bits", changed("g_idx", lambda t: t + 99), "up_proj.g_idx names a group that"),
    ("GPTQ, 4 bits", changed("g_idx", lambda t: t - 1), "up_proj.g_idx names a group that"),
    ("GPTQ, 4 bits", changed("qweight", lambda t: t.float()), "up_proj.qweight is stored as F32, but it must be I32"),
    (
        "GPTQ, 4 bits",
        changed("qweight", lambda t: t[:-1].contiguous()),
        "up_proj.g_idx is [64], but [56] belongs there",
    ),
    (
        "AWQ",
        changed("qzeros", lambda t: t[:, :-1].contiguous()),
        "up_proj.qzeros is [4, 11], but [4, 12] belongs there",
    ),
    ("AWQ", changed("scales", lambda t: t[:3].contiguous()), "qzeros is [4, 12], but [3, 12] belongs there"),
    ("bitsandbytes", changed("SCB", lambda t: t[:-1].contiguous()), "up_proj.SCB is [95], but [96] belongs there"),
    ("bitsandbytes", changed("weight", lambda t: t.float()), "up_proj.weight is stored as F32, but it must be I8"),
    ("NF4", changed("weight", lambda t: t[:-1].contiguous()), "has 3,071 bytes, but [96, 64] of 4 bits take 3,072"),
    ("NF4", changed("weight", lambda t: t.float()), "up_proj.weight is stored as F32, but it must be U8"),
    ("NF4", changed("weight.absmax", lambda t: t[:-1].contiguous()), "weight.absmax is [95], but [96] belongs there"),
    ("NF4", changed("weight.quant_map", lambda t: t[:8].contiguous()), "quant_map is [8], but [16] belongs there"),
    ("NF4", changed("weight.quant_map", lambda _: None), "up_proj.weight.quant_map, without which it cannot be read"),
    ("NF4", changed(STATE, lambda _: None), "quant_state.bitsandbytes__nf4, without which it cannot be read"),
    ("NF4", changed(STATE, lambda t: t[:-1].contiguous()), "bitsandbytes__nf4 is no JSON. Download the file again"),
    ("NF4", changed(STATE, lambda _: said_so({"shape": [96, "64"]})), "but it must be the sizes of the weight"),
    ("NF4", changed(STATE, lambda _: said_so({"shape": [96, 64]})), "blocksize"),
    ("NF4", changed(STATE, lambda _: said_so({"shape": [96, 64], "blocksize": 0})), "a block has at least one number"),
    ("NF4, nested", changed("weight.nested_absmax", lambda t: t[:1].contiguous()), "but [2] belongs there"),
    ("NF4, nested", changed("weight.nested_absmax", lambda _: None), "absmax is stored as U8, but it must be F32"),
    (
        "FP8 in blocks",
        changed("weight_scale_inv", lambda t: t[:-1].contiguous()),
        "weight_scale_inv is [3, 4], but [4, 4] belongs there",
    ),
    ("FP8 by rows", changed("weight_scale", lambda t: t * float("nan")), "holds numbers that are not finite"),
]


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize(("form", "damage", "says"), DAMAGED)
def test_damaged(form: str, damage: Any, says: str, tmp_path: Path) -> None:
    packed, _ = made(form, tmp_path)
    save_file(damage(load_file(packed / SINGLE)), packed / SINGLE)
    with pytest.raises(CheckpointError, match=re.escape(says)):
        load(packed)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (GPTQ | {"bits": 3}, "quantized with GPTQ to 3 bits"),
        (GPTQ | {"bits": 4, "checkpoint_format": "marlin"}, "quantized with GPTQ to 4 bits"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "quantized with AWQ to 4 bits"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "quantized with compressed-tensors"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "but no tensor is called weight.absmax"),
        (GPTQ | {"bits": 4, "group_size": "many"}, "group_size is 'many', but it must be a whole number"),
        ({"quant_method": "awq", "bits": 4}, "no model.layers.0"),
    ],
)
def test_refused(said: dict[str, Any], says: str, tmp_path: Path) -> None:
    packed, full = made("GPTQ, 4 bits" if said["quant_method"] == "gptq" else "bitsandbytes", tmp_path)
    if said == {"quant_method": "awq", "bits": 4}:
        says, packed = "but no tensor is called qweight", full
    with pytest.raises(CheckpointError, match=re.escape(says)):
        load(change_config(packed, quantization_config=said))
