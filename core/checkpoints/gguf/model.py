"""A model out of GGUF files, in the terms of its published family: config.json, tensors by name, tokenizer, chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from torch import Tensor

from ...errors import CheckpointError
from ...model.chat import ChatTemplate
from ..families import FAMILIES
from ..family import Theirs, shown
from ..files import Stored
from ..loading import MOST_LAYERS
from .architectures import ARCHITECTURES, ROPE_FREQS, Architecture, Metadata
from .header import Header, read_header
from .names import their_modules, without_layer
from .tokenizer import Vocabulary, tokenizer_of
from .weights import Packed, readers

# Tokens that end a turn of a chat; a file may name another one as its end (llama.cpp knows them by these texts as well).
TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<|end|>", "<end_of_turn>", "<|eom_id|>")


@dataclass(frozen=True)
class GgufModel:
    """The content of the files of its published family. `tensors` are unpacked one by one when they are read."""

    name: str  # of its first file
    config: dict[str, Any]
    generation: dict[str, Any]
    tensors: Mapping[str, Stored]
    tokenizer: Tokenizer | None
    no_tokenizer: str  # why there is none
    chat_template: ChatTemplate | None
    title: str = ""  # as its author calls it
    licence: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Numbers:
    """The numbers of a model and their meaning, without its vocabulary."""

    header: Header  # of the first file, which has the metadata
    config: dict[str, Any]
    tensors: Mapping[str, Stored]
    n_rows: int  # of the token table


def read_model(paths: Sequence[Path]) -> GgufModel:
    """The model in one GGUF file, or in all parts of a split one in their order. Nothing is unpacked yet.

    Raises CheckpointError with a sentence for a damaged header, an architecture or a type that is not known, and a vocabulary that
    does not fit.
    """
    numbers = numbers_of(paths)
    first, said = numbers.header, Theirs(numbers.header.values, numbers.header.name)
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
        chat_template=_chat_template(said.str("tokenizer.chat_template", ""), vocabulary),
        title=said.str("general.name", ""),
        licence=said.str("general.license", ""),
    )


def numbers_of(paths: Sequence[Path]) -> Numbers:
    """The config and the tensors of a model in one GGUF file or several. Raises as read_model(); the vocabulary is not looked at."""
    headers = [read_header(path) for path in paths]
    check_parts(headers)
    first = headers[0]
    architecture = architecture_of(first)
    packed, tensors = Packed(), {}
    shapes = {info.name: info.shape for header in headers for info in header.tensors}
    found: dict[str, tuple[str, Any]] = {}
    for header, reader in zip(headers, readers(headers), strict=True):
        for tensor in reader.tensors:
            found[tensor.name] = (header.name, tensor)
    m = Metadata(first, shapes, _factors(packed, found))
    check_layers(m)
    config = {"model_type": architecture.model_type, **architecture.config(m)}
    family = FAMILIES[architecture.model_type]
    modules = their_modules(architecture.name, family, max(m.int("block_count"), m.int("decoder_block_count", 0)))
    for name, (file, tensor) in found.items():
        module, dot, leaf = name.rpartition(".")
        theirs = f"{modules[module]}{dot}{leaf}" if module in modules else name
        tensors[theirs] = packed.add(theirs, file, tensor, _change(architecture, m, name))
    return Numbers(first, config, tensors, shapes.get("token_embd.weight", (0,))[0])


def check_parts(headers: Sequence[Header]) -> None:
    """Raises CheckpointError where files that are called parts of one model are not the parts of one: each says which it is, and
    the first how many tensors there are in all (llama.cpp's gguf-split)."""
    total, holders = len(headers), {}
    parts = Theirs(headers[0].values, headers[0].name).int("split.count", total)
    if total == 1 and parts > 1:
        raise CheckpointError(
            f"{headers[0].name} is one of {parts} parts, and was renamed, so the others are not found. Parts keep their names, such as "
            f"model-00001-of-{parts:05}.gguf."
        )
    for number, header in enumerate(headers):
        said = Theirs(header.values, header.name)
        claims = {"split.count": total, "split.no": number}
        for key, wanted in claims.items():
            if (value := said.int(key, wanted)) != wanted:
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
    wanted = Theirs(headers[0].values, headers[0].name).int("split.tensors.count", len(holders))
    if wanted != len(holders):
        raise CheckpointError(
            f"{headers[0].name} speaks of {wanted:,} tensors in {total} parts, and these hold {len(holders):,}: one of them is part of another "
            "model. Download all parts again into a folder of their own."
        )


def _chat_template(text: str, vocabulary: Vocabulary) -> ChatTemplate | None:
    """The template with the special tokens that it may name; their roles are named as tokenizer_config.json names them."""
    roles = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
    ids = {theirs: vocabulary.id(role) for role, theirs in roles.items()}
    tokens = tuple(sorted((role, vocabulary.tokens[i]) for role, i in ids.items() if i is not None))
    return ChatTemplate(text, tokens) if text else None


def architecture_of(header: Header) -> Architecture:
    """Raises CheckpointError by name for one that is not known."""
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
    """Each layer has tensors, and names are made for each."""
    n_layers = m.int("block_count") + m.int("decoder_block_count", 0)
    if n_layers > min(MOST_LAYERS, len(m.shapes)):
        raise CheckpointError(
            f"{m.where} speaks of {n_layers:,} layers, but holds only {len(m.shapes):,} tensors (and at most {MOST_LAYERS:,} layers are "
            "supported)."
        )


def _factors(packed: Packed, found: dict[str, tuple[str, Any]]) -> Tensor | None:
    """The divisors of the rotary frequencies, where a file has them. They are part of the config, and no tensor of the model."""
    if ROPE_FREQS not in found:
        return None
    file, tensor = found.pop(ROPE_FREQS)
    packed.add(ROPE_FREQS, file, tensor, None)
    return packed.get_tensor(ROPE_FREQS)


def _change(architecture: Architecture, m: Metadata, name: str) -> Any:
    make = architecture.changes.get(without_layer(name))
    if make is not None:
        return make(m)
    return architecture.every_norm if name.endswith("norm.weight") else None


def _special(vocabulary: Vocabulary) -> dict[str, Any]:
    """The ids of tokens that have a role, as config.json and generation_config.json state them."""
    ends = [vocabulary.id(role) for role in ("eos", "eot", "eom")]
    ends += [vocabulary.ids.get(text) for text in TURN_ENDS]
    whole = list(dict.fromkeys(i for i in ends if i is not None))
    ids = {
        "bos_token_id": vocabulary.id("bos"),
        "eos_token_id": whole if len(whole) > 1 else whole[0] if whole else None,
        "pad_token_id": vocabulary.id("padding"),
    }
    return {key: value for key, value in ids.items() if value is not None}
