"""Reads a model from GGUF files, in the terms of its published family."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from ...errors import CheckpointError, missing_extra
from ...model.chat import ChatTemplate
from ..families import FAMILIES
from ..family import Family, Row, Source, SourceConfig, shown
from ..files import Stored
from ..loading import MAX_LAYERS
from . import ARRAY, Header, read_header
from .architectures import ARCHITECTURES, ROPE_FREQS, Architecture, Change, Metadata
from .tokenizer import Vocabulary, tokenizer_of

LAYER = re.compile(r"\bblk\.\d+\.")


def published_modules(arch: str, family: Family, n_layers: int) -> dict[str, str]:
    """Module names of GGUF ("blk.0.attn_q") -> the family's ("model.layers.0.self_attn.q_proj").

    The package's table has the names of all families for each tensor of an architecture; the family's rows select one.
    """
    table = get_tensor_name_map(next(each for each, name in MODEL_ARCH_NAMES.items() if name == arch), n_layers)
    modules: dict[str, str] = {}
    for row, source in family.weights.items():
        is_tensor = row.endswith((".weight", ".bias"))  # other rows name a module
        for name in _names(source, n_layers):
            module = name.rpartition(".")[0] if is_tensor and name.endswith((".weight", ".bias")) else name
            candidates = (f"{family.prefix}{module}", module)
            published = next((each for each in candidates if table.get_name(each) is not None), None)
            if published is not None:
                modules.setdefault(str(table.get_name(published)), published)
    return modules


def _names(source: Row, n_layers: int) -> Iterator[str]:
    """All names of a row, for each alternative, stack and layer."""
    module = source.module if isinstance(source, Source) else source
    for template in (module,) if isinstance(module, str) else module:
        for stack in ("encoder", "decoder") if "{stack}" in template else ("",):
            for layer in range(n_layers if "{i}" in template else 1):
                yield template.format(i=layer, stack=stack)


def without_layer(name: str) -> str:
    """ "blk.3.attn_q.weight" -> "blk.attn_q.weight"."""
    return LAYER.sub("blk.", name, count=1)


try:
    from gguf import GGUFReader, quants
    from gguf.constants import MODEL_ARCH_NAMES, GGMLQuantizationType, GGUFValueType
    from gguf.tensor_mapping import get_tensor_name_map
except ModuleNotFoundError as error:
    raise CheckpointError(missing_extra("A GGUF file", "gguf", "gguf")) from error


class Reader(GGUFReader):
    """The package's reader, for a validated header.

    It skips lists, which were read with the header: the package creates two arrays per entry, which takes seconds and hundreds of MB
    for a vocabulary.
    """

    def __init__(self, header: Header):
        self._list_ends = header.list_ends
        super().__init__(header.path)

    def _get_field_parts(self, orig_offs: int, raw_type: int) -> tuple[int, list[Any], list[int], list[GGUFValueType]]:
        if int(raw_type) == ARRAY:
            return self._list_ends[orig_offs] - orig_offs, [], [], [GGUFValueType.ARRAY]
        return super()._get_field_parts(orig_offs, raw_type)


def unpacked(kind: GGMLQuantizationType) -> bool:
    """True if the package can unpack a type."""
    plain = (GGMLQuantizationType.F32, GGMLQuantizationType.F16)
    return kind in plain or hasattr(getattr(quants, kind.name, None), "dequantize_blocks")


class Packed:
    """Tensors of GGUF files under the names of the published family, unpacked when they are read."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[str, Any, Change | None]] = {}

    def add(self, name: str, file: str, tensor: Any, change: Change | None) -> Stored:
        """Register a tensor of the package's reader. Raises CheckpointError for a type that the package cannot unpack."""
        kind = tensor.tensor_type
        if not unpacked(kind):
            known = ", ".join(each.name for each in GGMLQuantizationType if unpacked(each))
            raise CheckpointError(
                f"{file}: the tensor {shown(tensor.name)} has the type {kind.name}, which is not unpacked here. Unpacked are {known}. "
                "Choose a file of the model in one of them."
            )
        self.parts[name] = (file, tensor, change)
        shape = tuple(int(d) for d in reversed(tensor.shape.tolist()))
        if change is not None:
            try:
                shape = tuple(change(torch.empty(shape, device="meta")).shape)
            except (RuntimeError, IndexError) as error:
                raise CheckpointError(
                    f"{file}: the tensor {shown(tensor.name)} of {' × '.join(map(str, shape))} numbers does not divide into the heads that the "
                    "metadata state."
                ) from error
        return Stored(name, file, shape, "F32", self)

    def get_tensor(self, name: str) -> Tensor:
        """float32, in the family's layout."""
        _, tensor, change = self.parts[name]
        numbers = quants.dequantize(np.asarray(tensor.data), tensor.tensor_type)
        shape = tuple(int(d) for d in reversed(tensor.shape.tolist()))
        # Copy if the package returns a view of the file, which is read-only.
        own = numbers if numbers.flags.writeable and numbers.flags.owndata else numbers.copy()
        value = torch.from_numpy(own.astype(np.float32, copy=False)).reshape(shape)
        return value if change is None else change(value).contiguous()


def readers(headers: Iterable[Header]) -> list[Reader]:
    """The package's reader of each file. Raises CheckpointError if the package rejects a file that passed our checks."""
    opened = []
    for header in headers:
        try:
            opened.append(Reader(header))
        except (ValueError, KeyError, IndexError, OverflowError, OSError) as error:
            raise CheckpointError(
                f"{header.name} cannot be read by the gguf package ({error}). Download it again."
            ) from error
    return opened


# Tokens that end a chat turn, recognised by their text as in llama.cpp, because a file may name another end token.
TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|eom_id|>")


@dataclass(frozen=True)
class GgufModel:
    """Content of a model. `tensors` are unpacked one by one when they are read."""

    name: str  # of its first file
    config: dict[str, Any]
    generation: dict[str, Any]
    tensors: Mapping[str, Stored]
    tokenizer: Tokenizer | None
    no_tokenizer: str  # reason if there is none
    chat_template: ChatTemplate | None
    title: str = ""  # in the metadata
    licence: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Numbers:
    """Config and tensors of a model, without its vocabulary."""

    header: Header  # of the first file, which has the metadata
    config: dict[str, Any]
    tensors: Mapping[str, Stored]
    n_rows: int  # of the token table


def read_model(paths: Sequence[Path]) -> GgufModel:
    """The model in one GGUF file, or in all parts of a split one, in order. Nothing is unpacked.

    Raises CheckpointError for a damaged header, an unknown architecture or type, and an invalid vocabulary.
    """
    numbers = numbers_of(paths)
    first, metadata = numbers.header, SourceConfig(numbers.header.values, numbers.header.name)
    vocabulary = Vocabulary(first, numbers.n_rows)
    tokenizer, no_tokenizer = tokenizer_of(first, numbers.n_rows)
    ids = _special(vocabulary)
    return GgufModel(
        name=first.name,
        config=numbers.config | ids,
        generation=ids,
        tensors=numbers.tensors,
        tokenizer=tokenizer,
        no_tokenizer=no_tokenizer,
        chat_template=_chat_template(metadata.str("tokenizer.chat_template", ""), vocabulary),
        title=metadata.str("general.name", ""),
        licence=metadata.str("general.license", ""),
    )


def numbers_of(paths: Sequence[Path]) -> Numbers:
    """Config and tensors of a model in one or several GGUF files. Raises as read_model(), but ignores the vocabulary."""
    headers = [read_header(path) for path in paths]
    check_parts(headers)
    first = headers[0]
    architecture = architecture_of(first)
    packed, tensors = Packed(), {}
    shapes = {info.name: info.shape for header in headers for info in header.tensors}
    stored = {
        tensor.name: (header.name, tensor)
        for header, reader in zip(headers, readers(headers), strict=True)
        for tensor in reader.tensors
    }
    m = Metadata(first, shapes, _factors(packed, stored))
    check_layers(m)
    config = {"model_type": architecture.model_type, **architecture.config(m)}
    family = FAMILIES[architecture.model_type]
    modules = published_modules(architecture.name, family, max(m.int("block_count"), m.int("decoder_block_count", 0)))
    for name, (file, tensor) in stored.items():
        module, dot, leaf = name.rpartition(".")
        published = f"{modules[module]}{dot}{leaf}" if module in modules else name
        tensors[published] = packed.add(published, file, tensor, _change(architecture, m, name))
    return Numbers(first, config, tensors, shapes.get("token_embd.weight", (0,))[0])


def check_parts(headers: Sequence[Header]) -> None:
    """Raises CheckpointError if files are not the parts of one model. Each part states its number, and the first the total number of
    tensors (llama.cpp's gguf-split)."""
    total, holders = len(headers), {}
    parts = SourceConfig(headers[0].values, headers[0].name).int("split.count", total)
    if total == 1 and parts > 1:
        raise CheckpointError(
            f"{headers[0].name} is one of {parts} parts, and was renamed, so the others are not found. Parts keep their names, such as "
            f"model-00001-of-{parts:05}.gguf."
        )
    for number, header in enumerate(headers):
        for key, wanted in {"split.count": total, "split.no": number}.items():
            if (value := SourceConfig(header.values, header.name).int(key, wanted)) != wanted:
                raise CheckpointError(
                    f"{header.name} is called part {number + 1} of {total}, but its {key} is {value}, where {wanted} belongs: it is part of "
                    "another model, or was renamed. Download all parts again into a folder of their own."
                )
        for tensor in header.tensors:
            if tensor.name in holders:
                raise CheckpointError(f"{header.name} and {holders[tensor.name]} both hold the tensor {tensor.name}.")
            holders[tensor.name] = header.name
        for key in ("general.architecture", "general.name"):
            whole, part = headers[0].values.get(key), header.values.get(key)
            if part not in (None, whole):
                raise CheckpointError(
                    f"{header.name} says of itself that its {key} is {shown(part)}, and {headers[0].name} that it is {shown(whole)}: they are "
                    "parts of different models. Download all parts again into a folder of their own."
                )
    wanted = SourceConfig(headers[0].values, headers[0].name).int("split.tensors.count", len(holders))
    if wanted != len(holders):
        raise CheckpointError(
            f"{headers[0].name} speaks of {wanted:,} tensors in {total} parts, and these hold {len(holders):,}: one of them is part of another "
            "model. Download all parts again into a folder of their own."
        )


def _chat_template(text: str, vocabulary: Vocabulary) -> ChatTemplate | None:
    """The template with the special tokens that it may use, under the keys of tokenizer_config.json."""
    roles = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
    ids = {key: vocabulary.id(role) for role, key in roles.items()}
    tokens = tuple(sorted((key, vocabulary.tokens[i]) for key, i in ids.items() if i is not None))
    return ChatTemplate(text, tokens) if text else None


def architecture_of(header: Header) -> Architecture:
    """Raises CheckpointError for an unknown architecture."""
    name = header.values.get("general.architecture")
    if not isinstance(name, str):
        raise CheckpointError(f"{header.name} does not say which architecture it holds (general.architecture).")
    if name not in ARCHITECTURES:
        more = " It reads pictures or sound for another model." if name in ("clip", "mmproj") else ""
        more = " A mixture of experts has no single MLP to show." if "moe" in name else more
        raise CheckpointError(
            f"{header.name}: the architecture {shown(name)} is not supported.{more} Supported in GGUF files are "
            f"{', '.join(sorted(ARCHITECTURES))}."
        )
    return ARCHITECTURES[name]


def check_layers(m: Metadata) -> None:
    """Raises CheckpointError for more layers than tensors, before names are created for each layer."""
    n_layers = m.int("block_count") + m.int("decoder_block_count", 0)
    if n_layers > min(MAX_LAYERS, len(m.shapes)):
        raise CheckpointError(
            f"{m.where} speaks of {n_layers:,} layers, but holds only {len(m.shapes):,} tensors (and at most {MAX_LAYERS:,} layers are "
            "supported)."
        )


def _factors(packed: Packed, stored: dict[str, tuple[str, Any]]) -> Tensor | None:
    """Remove and read the divisors of the rotary frequencies, which become part of the config; None if there are none."""
    if ROPE_FREQS not in stored:
        return None
    file, tensor = stored.pop(ROPE_FREQS)
    packed.add(ROPE_FREQS, file, tensor, None)
    return packed.get_tensor(ROPE_FREQS)


def _change(architecture: Architecture, m: Metadata, name: str) -> Any:
    make = architecture.changes.get(without_layer(name))
    if make is not None:
        return make(m)
    return architecture.every_norm if name.endswith("norm.weight") else None


def _special(vocabulary: Vocabulary) -> dict[str, Any]:
    """Ids of special tokens, under the keys of config.json and generation_config.json."""
    ends = [vocabulary.id(role) for role in ("eos", "eot", "eom")]
    ends += [vocabulary.ids.get(text) for text in TURN_ENDS]
    whole = list(dict.fromkeys(i for i in ends if i is not None))
    ids = {
        "bos_token_id": vocabulary.id("bos"),
        "eos_token_id": whole if len(whole) > 1 else whole[0] if whole else None,
        "pad_token_id": vocabulary.id("padding"),
    }
    return {key: value for key, value in ids.items() if value is not None}
