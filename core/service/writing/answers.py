"""A text that is being written, in plain data: tokens as they come, each with what could have come instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...plan import KVCache
from ...write.beams import BeamStep
from ...write.writing import Opening, Reading, Taken
from ...write.wrote import LensColumn, Wrote

MOST_WRITTEN = 512  # tokens after a prompt, so that a link can name them
Over = Literal["", "end", "positions", "most"]  # why no further token can be written


@dataclass(frozen=True)
class WrittenOn:
    """Of a question for tokens after a text that the caller has already: `first` is the first of them, where it is not to be chosen."""

    first: int | None = None


@dataclass(frozen=True, eq=False)
class OpenedText:
    """A prompt and what is written after it, as they are opened. labels are those of all tokens that are named here first, glued those
    of them, and of the prompt, that bring no space with them."""

    opening: Opening
    prompt: tuple[int, ...]  # the tokens that were read before anything was written
    prompt_labels: tuple[str, ...]
    labels: dict[int, str]
    glued: tuple[int, ...]
    ends: tuple[int, ...]  # tokens that end a text
    over: Over
    per_token: KVCache  # bytes of one token's keys and values, and what they would be with other numbers of key heads


@dataclass(frozen=True, eq=False)
class WrittenToken:
    """One more token. No reading after one that ends the text."""

    taken: Taken
    reading: Reading | None
    labels: dict[int, str]
    glued: tuple[int, ...]
    over: Over


@dataclass(frozen=True, eq=False)
class BeamsGrown:
    """One more step of a beam search."""

    step: BeamStep
    labels: dict[int, str]
    glued: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class WroteWords:
    """The heads and looks that wrote the words of a text. Nothing where the model's logits are no sum over looks."""

    words: tuple[Wrote, ...]


@dataclass(frozen=True, eq=False)
class LensWords:
    """The words of each layer at many places of a text."""

    columns: tuple[LensColumn, ...]
    labels: dict[int, str]
