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
from ..family import shown
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


def read_model(paths: Sequence[Path]) -> GgufModel:
    """The model in one GGUF file, or in all parts of a split one in their order. Nothing is unpacked yet.

    Raises CheckpointError with a sentence for a damaged header, an architecture or a type that is not known, and a vocabulary that
    does not fit.
    """
    headers = [read_header(path) for path in paths]
    first = headers[0]
    architecture = architecture_of(first)
    packed, tensors = Packed(), {}
    shapes = {info.name: info.shape for header in headers for info in header.tensors}
    found: dict[str, tuple[str, Any]] = {}
    for header, reader in zip(headers, readers(headers), strict=True):
        for tensor in reader.tensors:
            if tensor.name in found:
                raise CheckpointError(f"{header.name} and {found[tensor.name][0]} both hold the tensor {tensor.name}.")
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
    n_rows = shapes.get("token_embd.weight", (0,))[0]
    vocabulary = Vocabulary(first, n_rows)
    tokenizer, no_tokenizer = tokenizer_of(first, n_rows)
    ids = _special(vocabulary)
    return GgufModel(
        name=first.name,
        config=config | ids,
        generation=ids,
        tensors=tensors,
        tokenizer=tokenizer,
        no_tokenizer=no_tokenizer,
        chat_template=_chat_template(m.all.str("tokenizer.chat_template", ""), vocabulary),
        title=m.all.str("general.name", ""),
        licence=m.all.str("general.license", ""),
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
