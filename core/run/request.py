"""A request for a run, and the prompt that its texts become."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .. import secret
from ..checkpoints import Loaded
from ..edits import Intervention, edit_text
from ..errors import TextError
from ..model.chat import Message
from ..model.text import Tokens, from_ids, pad

Stage = Literal["loading", "waiting", "running", "done"]


@dataclass(frozen=True)
class Request:
    """Everything that determines a run: the cache key and the content of the URL.

    `write` is the number of tokens to generate before the run, after the text (sampled as in continuation.CONTINUATION) or
    after the target of an encoder-decoder (greedily). The run includes them. An encoder-decoder without a target generates
    one.
    """

    model_id: str
    texts: tuple[str, ...]
    target_text: str | None = None
    interventions: tuple[Intervention, ...] = ()
    padding_side: Literal["left", "right"] = "right"
    write: int = 0
    chat: bool = False  # each text is a user message, to be formatted by the chat template

    @cached_property
    def key(self) -> str:
        """A URL-safe name of this run that cannot be computed from its text, so that guessed texts reveal nothing."""
        return secret.digest("run", self._spelled.encode()).hex()

    @cached_property
    def nbytes(self) -> int:
        """Approximate size in memory."""
        return 450 + len(self._spelled)  # a constant overhead, plus the text

    @property
    def _spelled(self) -> str:
        edits = [edit_text(edit) for edit in self.interventions]
        chat = ("chat",) if self.chat else ()  # keys of other requests must not change
        return json.dumps((self.model_id, self.texts, self.target_text, edits, self.padding_side, self.write, *chat))


@dataclass(frozen=True)
class Progress:
    """Progress of a run. While downloading: the file and its bytes. While waiting: the number of runs ahead in the queue. While
    running: the finished layers, and for a chunked text the current part, from 0; each part passes all layers."""

    stage: Stage
    file: str = ""
    bytes_done: int = 0
    bytes_total: int = 0
    layers_done: int = 0
    layers_total: int = 0
    part: int = 0
    parts: int = 1
    ahead: int = 0  # while waiting: runs ahead in the queue
    is_shown: bool = False  # partial results are available (Service.facts_so_far, parts)


@dataclass(frozen=True)
class RunFinished:
    """Facts of a run for operators, without anything that could reveal its text."""

    model_id: str
    outcome: str  # "done", or the class name of the refusal or error
    tokens: int  # of all texts and the target; 0 without a trace
    waited: float  # seconds until its turn, including loading the model
    ran: float  # seconds of its turn
    nbytes: int  # of its trace


Side = Literal["left", "right"]
Keep = Sequence[bool] | Sequence[int] | Tensor | np.ndarray | None  # per token: True or 1 for a real one


@dataclass(frozen=True)
class Prompt:
    """Input of a model: sources, and for an encoder-decoder the decoder's input; of equal length in each."""

    sources: tuple[Tokens, ...]
    targets: tuple[Tokens, ...] | None = None

    @property
    def batch(self) -> int:
        return len(self.sources)

    @property
    def source_len(self) -> int:
        return len(self.sources[0])

    @property
    def target_len(self) -> int:
        return 0 if self.targets is None else len(self.targets[0])

    @property
    def is_padded(self) -> bool:
        return any(any(tokens.padding) for tokens in (*self.sources, *(self.targets or ())))

    @property
    def last_read(self) -> tuple[Tokens, ...]:
        """Tokens of the last stack: the targets of an encoder-decoder, otherwise the sources."""
        return self.sources if self.targets is None else self.targets

    def of(self, text: int) -> Prompt:
        """The prompt of one text of the batch, with its padding."""
        return Prompt(self.sources[text : text + 1], None if self.targets is None else self.targets[text : text + 1])


def tokenize_source(
    loaded: Loaded,
    text: str | Sequence[str] | None,
    ids: Sequence[int] | None,
    what: str,
    side: Side,
    keep: Keep = None,
) -> tuple[Tokens, ...]:
    """A text, several texts, or token ids as a batch of equal length. Raises TextError, which calls the text `what`.

    `keep` is the attention mask of `ids`; masked tokens are padding.
    """
    if (text is None) == (ids is None):
        raise TextError(
            f"Give the {what} either as text or as token ids, not {'both' if ids is not None else 'neither'}."
        )
    if keep is not None and ids is None:
        raise TextError("A mask comes with token numbers: give keep= together with ids=[...]. A text has no padding.")
    if ids is not None:
        batch = [masked(from_ids(loaded.tokenizer, ids), keep)]
    else:
        if not isinstance(text, Iterable):
            raise TextError(f"The {what} is a text, or a list of texts, not {text!r}. Token numbers go into ids=[...].")
        texts = [text] if isinstance(text, str) else list(text)
        if not texts:
            raise TextError(f"The list of {what} texts is empty. Give at least one.")
        batch = [loaded.tokens(t) for t in texts]
    return padded(loaded, batch, side)


def chat_sources(
    loaded: Loaded,
    chats: Sequence[Sequence[Message]],
    side: Side = "right",
    add_generation_prompt: bool = True,
    answer: str = "",
) -> tuple[Tokens, ...]:
    """Conversations as a batch of equal length, each followed by the start of an answer. Raises TextError."""
    if loaded.config.kind == "encoder-decoder":
        raise TextError(
            f"{loaded.spec.title} reads two texts, and a conversation is one. Give it the texts as they are."
        )
    batch = [loaded.chat_tokens(c, add_generation_prompt=add_generation_prompt, answer=answer) for c in chats]
    return padded(loaded, batch, side)


def user_message(text: str) -> tuple[Message, ...]:
    """A conversation of one user message."""
    return ({"role": "user", "content": text},)


def tokenize_target(
    loaded: Loaded,
    text: str | Sequence[str] | None,
    ids: Sequence[int] | None,
    n_texts: int,
    side: Side,
    keep: Keep = None,
) -> tuple[Tokens, ...]:
    """The decoder's input: its start token, then the target without the end token, which is still to be predicted.

    `keep` is the attention mask of `ids`; masked tokens are padding.
    """
    if ids is not None:
        if text is not None:
            raise TextError("Give the target either as text or as token ids, not both.")
        return padded(loaded, [masked(from_ids(loaded.tokenizer, ids), keep)] * n_texts, side)
    if keep is not None:
        raise TextError(
            "A mask comes with token numbers: give target_keep= together with target_ids=[...]. A text has no padding."
        )
    texts = [text or ""] * n_texts if text is None or isinstance(text, str) else list(text)
    if len(texts) != n_texts:
        raise TextError(f"{n_texts} source texts need as many target texts, not {len(texts)}.")
    start = start_of(loaded)
    batch = []
    for t in texts:
        if not t.strip():
            batch.append(start)
            continue
        batch.append(decoder_tokens(start, loaded.tokens(t)))
    return padded(loaded, batch, side)


def decoder_tokens(start: Tokens, tokens: Tokens) -> Tokens:
    """The decoder's input for a target: the start token, then the target without its end token."""
    stop = len(tokens) - 1 if tokens.special[-1] else len(tokens)
    names = [f.name for f in fields(Tokens) if f.name != "text"]
    return Tokens(tokens.text, **{name: getattr(start, name) + getattr(tokens, name)[:stop] for name in names})


def decoder_copies_source(loaded: Loaded) -> bool:
    """True if the decoder's input is a copy of the source, as in encoder-decoder classifiers."""
    return loaded.classifier is not None and loaded.classifier.classes.reads == "end"


def source_as_target(loaded: Loaded, sources: Sequence[Tokens]) -> tuple[Tokens, ...]:
    """The decoder's input of a classifier: the source, shifted right (shift_tokens_right of BART, T5 and mBART in transformers),
    with padding at the same positions. Raises TextError if the decoder's start token is unknown.
    """
    assert loaded.classifier is not None
    names = [f.name for f in fields(Tokens) if f.name != "text"]
    batch = []
    for source in sources:
        real = [i for i, hidden in enumerate(source.padding) if not hidden]
        first, last = real[0], real[-1]
        parts = {name: getattr(source, name) for name in names}
        start = {name: part[last : last + 1] for name, part in parts.items()}
        if loaded.classifier.shape.begins == "start":
            begin = start_of(loaded)
            start = {name: getattr(begin, name) for name in names}
        shifted = {
            name: part[:first] + start[name] + part[first:last] + part[last + 1 :] for name, part in parts.items()
        }
        batch.append(Tokens(source.text, **shifted))
    return tuple(batch)


def start_of(loaded: Loaded) -> Tokens:
    """The decoder's start token. Raises TextError if the model's files do not define it."""
    if loaded.start_id is None:
        raise TextError(
            f"{loaded.spec.title} does not say which token starts its output; give target_ids=[...] instead."
        )
    return replace(from_ids(loaded.tokenizer, [loaded.start_id]), text="", offsets=((0, 0),), special=(True,))


def masked(tokens: Tokens, keep: Keep) -> Tokens:
    """Tokens with an attention mask, 1 or True for a real token.

    Raises TextError for a mask of another length, with other values, or that masks everything.
    """
    if keep is None:
        return tokens
    flags = keep.tolist() if isinstance(keep, Tensor | np.ndarray) else list(keep)
    if any(isinstance(flag, list) for flag in flags):
        raise TextError("The mask has more than one row. Give one mark for each token of this text.")
    if len(flags) != len(tokens):
        raise TextError(f"The mask has {len(flags)} marks, and there are {len(tokens)} tokens. Give one for each.")
    if bad := [flag for flag in flags if flag not in (0, 1)]:
        raise TextError(f"The mask holds {bad[0]!r}, but each mark is 1 (a real token) or 0 (padding).")
    if not any(flags):
        raise TextError("The mask hides every token. Keep at least one.")
    return replace(tokens, padding=tuple(not flag for flag in flags))


def strip_end_tokens(tokens: Tokens) -> Tokens:
    """The tokens without padding at either end."""
    real = [i for i, padding in enumerate(tokens.padding) if not padding]
    names = [f.name for f in fields(Tokens) if f.name != "text"]
    return Tokens(tokens.text, **{name: getattr(tokens, name)[real[0] : real[-1] + 1] for name in names})


HIDE_IDS = "Give {argument}=[...] to hide them."  # for callers
HIDE_TYPED = "Take them out of the {what} to read it without them."  # for people who typed the text


def notices(loaded: Loaded, prompt: Prompt, cure: str = HIDE_IDS) -> tuple[str, ...]:
    """Warnings about a run: padding tokens at an end that are not masked, and how to mask them."""
    warnings = []
    for what, argument, batch in (("source", "keep", prompt.sources), ("target", "target_keep", prompt.targets or ())):
        for tokens in batch:
            if n := unmasked_padding(loaded, tokens):
                name = tokens.strings[tokens.ids.index(loaded.pad_id)]
                whose = f"the {what}'s" if prompt.targets is not None else "the text's"
                warnings.append(
                    f"{n} of {whose} {len(tokens)} tokens {'are' if n > 1 else 'is'} {name}, this model's padding, at an end: "
                    f"they were attended to like words, since no mask came with them. "
                    + cure.format(argument=argument, what="text" if prompt.targets is None else what)
                )
    return tuple(dict.fromkeys(warnings))


def unmasked_padding(loaded: Loaded, tokens: Tokens) -> int:
    """Number of unmasked padding tokens at the ends. A start or end token with the same id does not count."""
    if not loaded.has_pad:
        return 0
    ids, pad = [i for i, hidden in zip(tokens.ids, tokens.padding, strict=True) if not hidden], loaded.pad_id
    ids = ids[1:] if pad == loaded.start_id and ids[0] == pad else ids
    before = next((n for n, i in enumerate(ids) if i != pad), 0)
    after = next((n for n, i in enumerate(reversed(ids)) if i != pad), 0)
    single = 1 if pad in loaded.end_ids else 0  # an end token, or the start token of some decoders
    return (before if before > single else 0) + (after if after > single else 0)


def padded(loaded: Loaded, batch: Sequence[Tokens], side: Side) -> tuple[Tokens, ...]:
    """The batch padded to its longest text. Raises TextError for too many tokens and for unknown ids."""
    config = loaded.config
    for tokens in batch:
        if config.has_position_table and len(tokens) > config.n_ctx:
            raise TextError(context_overflow_message(len(tokens), loaded.spec.title, config.n_ctx))
    if (highest := max(max(tokens.ids) for tokens in batch)) >= config.vocab_size:
        raise TextError(
            f"Token number {highest} is not in this model's vocabulary, which has 0 to {config.vocab_size - 1}. "
            "Give numbers below that, or the tokenizer that belongs to this model."
        )
    pad_string = from_ids(loaded.tokenizer, [loaded.pad_id]).strings[0] if loaded.tokenizer else "[PAD]"
    return pad(batch, loaded.pad_id, pad_string, side)


def context_overflow_message(n_tokens: int, title: str, n_ctx: int) -> str:
    """Message for a text that is longer than the model's position table."""
    return (
        f"This text is {n_tokens:,} tokens long, and {title} has positions for {n_ctx:,}. "
        "Shorten the text, or choose a model with rotary or relative positions."
    )


def model_inputs(
    prompt: Prompt, device: torch.device
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor]:
    """ids, target_ids, keep, target_keep and type_ids, [batch, pos] each.

    keep is None without padding, so that the fused kernel needs no mask.
    """

    def column(batch: tuple[Tokens, ...], name: str) -> Tensor:
        return torch.tensor([getattr(tokens, name) for tokens in batch], device=device)

    def keep(batch: tuple[Tokens, ...]) -> Tensor | None:
        return ~column(batch, "padding") if any(any(tokens.padding) for tokens in batch) else None

    return (
        column(prompt.sources, "ids"),
        None if prompt.targets is None else column(prompt.targets, "ids"),
        keep(prompt.sources),
        None if prompt.targets is None else keep(prompt.targets),
        column(prompt.sources, "type_ids"),
    )
