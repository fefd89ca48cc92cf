"""Weights computed while loading: dequantized tensors, and LoRA adapters merged into their base."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor

from ..errors import CheckpointError
from .family import Family, SourceConfig, shown, without
from .files import FLOATS, Stored, header, lazy_tensor, read_json, strip_wrappers
from .metadata import ROWS, SCORE, SUFFIX

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


def method_of(source_config: SourceConfig) -> str | None:
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


def dequantize_tensors(source_config: SourceConfig, tensors: Mapping[str, Stored]) -> tuple[Mapping[str, Stored], str]:
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


def _gptq(layer: Layer, settings: SourceConfig) -> Stored:
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


def _awq(layer: Layer, settings: SourceConfig) -> Stored:
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


def _int8(layer: Layer, settings: SourceConfig) -> Stored:
    """weight [out, in] from -127 to 127, SCB [out]: the largest value of each row."""
    weight = layer.part("weight", None, None, dtype=("I8",))
    largest = layer.part("SCB", weight.shape[0], dtype=SCALE_DTYPES)

    def make() -> Tensor:
        return weight.read().float() * (largest.read().float() / 127)[:, None]

    return lazy_tensor(weight.name, weight.file, weight.shape, make)


def _four(layer: Layer, settings: SourceConfig) -> Stored:
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


def _state(stored: Stored) -> SourceConfig:
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
    return SourceConfig(values, where)


def _scaled(layer: Layer, settings: SourceConfig) -> Stored:
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


READERS: dict[str, Callable[[Layer, SourceConfig], Any]] = {
    "gptq": _gptq,
    "awq": _awq,
    "bitsandbytes": _int8,
    FOUR_BITS: _four,
    "fp8": _scaled,
    "compressed-tensors": _scaled,
}


CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
BEFORE = "base_model.model."
PART = re.compile(
    r"(?P<module>.+)\.(?P<part>lora_A|lora_B|lora_embedding_A|lora_embedding_B|lora_magnitude_vector)(\.weight)?"
)
# Initialisations that also change the base model, so that the adapter does not fit the published one.
CHANGED_BASE = re.compile(r"pissa.*|olora|corda|loftq")
# Patterns of module names. General regular expressions could take exponential time.
PATTERN = re.compile(r"[\w.^$\\-]{1,200}")


@dataclass(frozen=True)
class Adapter:
    """Config and tensors of an adapter."""

    settings: SourceConfig
    tensors: Mapping[str, Stored]

    @property
    def base(self) -> str:
        """Name of the base model in the config."""
        return self.settings.str("base_model_name_or_path", "")


def read_config(folder: Path) -> SourceConfig:
    return SourceConfig(read_json(folder / CONFIG), CONFIG)


def is_lora(settings: SourceConfig) -> bool:
    return settings.str("peft_type", "LORA") == "LORA"


def read_adapter(folder: Path) -> Adapter:
    """Read a LoRA folder. Raises CheckpointError for unsupported settings."""
    settings = read_config(folder)
    initialisation = settings.any("init_lora_weights", True)
    if isinstance(initialisation, str) and CHANGED_BASE.fullmatch(initialisation):
        raise CheckpointError(
            f"{CONFIG}: init_lora_weights is {shown(initialisation)}, which changes the weights of the base as well, so that it does not belong to the "
            "published one. Merge it in the program that trained it."
        )
    for key in ("trainable_token_indices", "layer_replication", "lora_bias", "use_qalora", "alora_invocation_tokens"):
        if settings.any(key, None):
            raise CheckpointError(f"{CONFIG}: {key} is not supported. Merge it in the program that trained it.")
    return Adapter(settings, {stored.name: stored for stored in header(folder / WEIGHTS)})


def base_beside(folder: Path, base: str) -> Path | None:
    """Folder of the base next to the adapter, or next to its training folder, by the last part of its name; None if missing."""
    name = PurePosixPath(base.replace("\\", "/")).name
    if not name or name in (".", ".."):
        return None
    places = (folder.resolve().parent, folder.resolve().parent.parent)
    return next((place / name for place in places if (place / name / "config.json").is_file()), None)


def merged(adapter: Adapter, family: Family, bare: Mapping[str, Stored]) -> tuple[dict[str, Stored], str]:
    """The base's tensors with the adapter merged into them, under the names of their files, and a notice.

    `bare` are the base's tensors by the names of its family. Raises CheckpointError naming a tensor of the adapter that does not fit
    the base.
    """
    settings, tensors = adapter.settings, {stored.name: stored for stored in bare.values()}
    layers: dict[str, dict[str, Stored]] = {}
    replaced: list[Stored] = []
    heads: list[str] = []
    for name, stored in adapter.tensors.items():
        if stored.dtype not in FLOATS:
            raise CheckpointError(f"{stored.file}: {stored.name} is stored as {stored.dtype}, which is not read.")
        if match := PART.fullmatch(name):
            layers.setdefault(match["module"], {})[match["part"]] = stored
        elif (head := head_name(name, family)) is not None and head not in bare:
            tensors[head] = _as_float(head, stored)
            heads.append(head)
        else:
            replaced.append(stored)
    tensors |= dict(_replacement(stored, family, bare) for stored in replaced)
    if not layers and not replaced and not heads:
        raise CheckpointError(f"{WEIGHTS} holds no weights of an adapter.")
    numbers: set[tuple[int, float]] = set()
    for module, parts in layers.items():
        target = _target(f"{module}.weight", family, bare, next(iter(parts.values())))
        rank, alpha = _numbers(settings, module)
        tensors[target.name] = _added(target, Update(module, parts, rank, alpha, settings))
        numbers.add((rank, alpha))
    text = _notice(adapter, layers, numbers)
    text += f" {len(replaced)} of its tensors take the place of the base's own." if replaced else ""
    classified = bool(heads) and is_classifier(settings)
    return tensors, f"{text} The head that gives a text its class is the adapter's." if classified else text


def _notice(adapter: Adapter, layers: Collection[str], numbers: Collection[tuple[int, float]]) -> str:
    kind = "DoRA" if adapter.settings.bool("use_dora", False) else "LoRA"
    rslora = ", rslora" if adapter.settings.bool("use_rslora", False) else ""
    modules = ", ".join(sorted({module.rpartition(".")[2] for module in layers}))
    text = (
        f"{kind} of rank {_listed({rank for rank, _ in numbers})} (alpha {_listed({alpha for _, alpha in numbers})}{rslora}) is merged into "
        f"{len(layers)} weight{'s' if len(layers) != 1 else ''} of {PurePosixPath(adapter.base).name or 'its base'}: {modules}."
    )
    return text


def _as_float(name: str, stored: Stored) -> Stored:
    return lazy_tensor(name, stored.file, stored.shape, lambda: stored.read().float())


def _replacement(stored: Stored, family: Family, bare: Mapping[str, Stored]) -> tuple[str, Stored]:
    """A tensor of the adapter that replaces one of the base, with the name of that one."""
    target = _target(stored.name, family, bare, stored)
    if target.shape != stored.shape:
        raise CheckpointError(
            f"{stored.file}: {stored.name} is {list(stored.shape)}, but it takes the place of {target.name}, which is {list(target.shape)}."
        )
    return target.name, _as_float(target.name, stored)


def is_classifier(settings: SourceConfig) -> bool:
    """True if the adapter was trained for sequence classification."""
    return settings.str("task_type", None) == "SEQ_CLS"


def head_name(name: str, family: Family) -> str | None:
    """Name of an adapter's tensor in the family's classification head; None if it belongs elsewhere."""
    row = ROWS.get(family.model_type, SCORE if family.head == "lm" and not family.start_token else None)
    short = _short(name)
    for each in (short.removeprefix(family.prefix), short):
        if row is not None and each.rpartition(".")[0] in (row.out, row.dense, row.norm):
            return each
    return None


def with_classes(
    source_config: SourceConfig, adapter: Adapter, family: Family, tensors: Mapping[str, Stored]
) -> SourceConfig:
    """The base's config.json, changed to that of a classifier if the adapter is one (task_type SEQ_CLS) and has a head.

    An adapter has no names of classes; those of the base are kept if their number matches.
    """
    row = ROWS.get(family.model_type, SCORE)
    out = next((tensors[name] for name in tensors if head_name(name, family) == f"{row.out}.weight"), None)
    if not is_classifier(adapter.settings) or out is None or not out.shape:
        return source_config
    values = dict(source_config.values) | {"architectures": [f"{family.title.replace(' ', '')}{SUFFIX}"]}
    if len(source_config.inside("id2label").values) != out.shape[0]:
        values = without(values, "id2label", "label2id", "num_labels")
    return SourceConfig(values, source_config.where, source_config.whole)


def _listed(numbers: set[float]) -> str:
    return " or ".join(f"{number:g}" for number in sorted(numbers))


def _target(name: str, family: Family, bare: Mapping[str, Stored], of: Stored) -> Stored:
    """The base's tensor that a tensor of the adapter changes or replaces."""
    short = _short(name)
    for each in (short.removeprefix(family.prefix), short):
        if each in bare:
            return bare[each]
    raise CheckpointError(
        f"{of.file}: {of.name} belongs to {short}, which the base does not have. It may be the adapter of another model."
    )


def _short(name: str) -> str:
    """A tensor's name without the parts inserted by peft."""
    return strip_wrappers(name).removeprefix(BEFORE).replace(".base_layer.", ".").replace(".modules_to_save.", ".")


def _numbers(settings: SourceConfig, module: str) -> tuple[int, float]:
    """Rank and alpha of one module: those of the first pattern that matches the end of its name, as in peft."""
    path = module.removeprefix(BEFORE)

    def matching(key: str) -> object:
        for pattern, value in settings.inside(key).values.items():
            if not PATTERN.fullmatch(pattern):
                raise CheckpointError(
                    f"{settings.where}: {key} has the pattern {shown(pattern)}, and only names of modules are read there."
                )
            try:
                if re.match(rf"(.*\.)?({pattern})$", path):
                    return value
            except re.error as error:
                raise CheckpointError(
                    f"{settings.where}: {key} has {shown(pattern)}, which is no pattern ({error})."
                ) from error
        return None

    rank, alpha = matching("rank_pattern"), matching("alpha_pattern")
    rank = settings.int("r", 8) if rank is None else rank
    alpha = settings.float("lora_alpha", 8.0) if alpha is None else alpha
    own = SourceConfig({"r": rank, "lora_alpha": alpha}, settings.where)
    if own.int("r") < 1:
        raise CheckpointError(f"{settings.where}: r is {own.int('r')}, but a rank is at least 1.")
    return own.int("r"), own.float("lora_alpha")


@dataclass(frozen=True)
class Update:
    """The update of one weight, by the parts of its adapter."""

    module: str
    parts: Mapping[str, Stored]
    rank: int
    alpha: float
    settings: SourceConfig

    @property
    def is_table(self) -> bool:
        return "lora_embedding_A" in self.parts

    @property
    def scale(self) -> float:
        return self.alpha / (math.sqrt(self.rank) if self.settings.bool("use_rslora", False) else self.rank)

    @property
    def factors(self) -> tuple[Stored, Stored]:
        """A [rank, in] and B [out, rank]."""
        names = ("lora_embedding_A", "lora_embedding_B") if self.is_table else ("lora_A", "lora_B")
        if missing := [name for name in names if name not in self.parts]:
            some = next(iter(self.parts.values()))
            raise CheckpointError(
                f"{some.file} has {some.name} and no {self.module}.{missing[0]}: the adapter is not whole."
            )
        return self.parts[names[0]], self.parts[names[1]]

    def norms(self, file: str, n_out: int) -> Stored | None:
        """The learned row norms of DoRA; None without DoRA."""
        norms, dora = self.parts.get("lora_magnitude_vector"), self.settings.bool("use_dora", False)
        fits = norms is None or (not self.is_table and math.prod(norms.shape) == n_out)
        if dora != (norms is not None) or not fits:
            raise CheckpointError(
                f"{file}: {self.module} {'has lengths' if norms is not None else 'has no lengths'} of DoRA (lora_magnitude_vector) that fit: "
                f"use_dora is {str(dora).lower()}, and {n_out} numbers belong there. DoRA of a table is not supported."
            )
        return norms


def _added(target: Stored, update: Update) -> Stored:
    """A weight of the base with the update added to it."""
    down, up = update.factors
    transposed = update.is_table or update.settings.bool("fan_in_fan_out", False)
    n_in, n_out = (target.shape if transposed else target.shape[::-1]) if len(target.shape) == 2 else (0, 0)
    if down.shape != (update.rank, n_in) or up.shape != (n_out, update.rank):
        raise CheckpointError(
            f"{down.file}: {down.name} {list(down.shape)} and {list(up.shape)} of rank {update.rank} do not make {target.name} {list(target.shape)}"
            f"{'' if transposed else ', nor are the two turned, as fan_in_fan_out would have it'}. It may be the adapter of another model."
        )
    scale, norms = update.scale, update.norms(down.file, n_out)

    def make() -> Tensor:
        base = target.read().float()
        rows = base.t() if transposed else base  # [out, in]
        rows = rows + scale * (up.read().float() @ down.read().float())
        if norms is not None:
            rows = rows * (norms.read().float().flatten() / rows.norm(dim=1))[:, None]
        return (rows.t() if transposed else rows).contiguous()

    return lazy_tensor(target.name, target.file, target.shape, make)
