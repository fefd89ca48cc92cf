"""stream() and generate(): a decoder writes on, one token at a time, keeping keys and values as it goes.

With and without the cache the same tokens come out. A model with rotary positions of the `dynamic` kind turns every token
again once a text outgrows its training length, so from there on a cache would hold the wrong vectors: it is let go, and
each step reads the whole text again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from .. import memory
from ..checkpoints import Loaded
from ..device import dtype_name, finest_dtype
from ..errors import GenerationError, TextError
from ..model.cache import Cache
from ..model.config import ModelConfig
from ..model.next_tokens import allowed_only
from ..model.text import Tokens, from_ids
from ..plan import kv_cache, run_bytes
from ..run.foreign import ForeignModel
from ..run.prompt import (
    Keep,
    Prompt,
    masked,
    model_inputs,
    notices,
    padded,
    source_tokens,
    target_tokens,
    without_ends,
)

Texts = str | Sequence[str] | None
Ids = Sequence[int] | Sequence[Sequence[int]] | Sequence[np.ndarray] | Tensor | np.ndarray | None
MAX_TOKENS = 64  # that are written unless a number is given
Ending = Literal["end", "max_tokens", "positions"]


@dataclass(frozen=True)
class Chosen:
    """One text's next token. Probabilities are the model's own, among what may follow: before temperature, top-k and top-p."""

    id: int
    prob: float
    top: tuple[tuple[int, float], ...]  # the likeliest tokens with their probabilities, best first
    ends: bool  # a stop token: the text is over


@dataclass(frozen=True, eq=False)
class GenerationStep:
    """One token for every text of the batch; None for a text that is over."""

    index: int  # from 0
    chosen: tuple[Chosen | None, ...]
    logits: Tensor  # [batch, vocab] float32, what the tokens were chosen from; -inf for what may not follow
    cache_bytes: int  # keys and values held after the tokens before this one were read; 0 without a cache


@dataclass(frozen=True)
class Generation:
    """The tokens written after one prompt, a stop token included."""

    ids: tuple[int, ...]
    text: str  # without special tokens; empty where there is no tokenizer
    log_prob: float  # of the whole continuation, in nats
    ending: Ending
    notices: tuple[str, ...] = ()  # sentences about its prompt: padding that was read like words


@dataclass(frozen=True)
class RawPrompt:
    """What is read before anything is written, as the caller gave it."""

    text: Texts
    ids: Ids
    target: Texts
    target_ids: Sequence[int] | None
    keep: Keep | Sequence[Keep] = None  # as many rows as ids
    target_keep: Keep = None


@dataclass(frozen=True)
class Sampling:
    """How each token is chosen, within the limits that make sense."""

    temperature: float | None = None  # None: the likeliest token each time
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None  # of the likeliest token's probability, below which none is drawn
    seed: int = 0
    show: int = 1  # how many of the likeliest tokens each step names

    @property
    def cuts(self) -> tuple[float, int | None, float | None, float | None]:
        """The arguments of candidates(). Of a Sampling that has a temperature."""
        assert self.temperature is not None
        return self.temperature, self.top_k, self.top_p, self.min_p

    def __post_init__(self) -> None:
        check_counts(show=self.show, top_k=self.top_k)
        if self.temperature is not None and not (self.temperature > 0 and math.isfinite(self.temperature)):
            raise GenerationError(
                f"The temperature is {self.temperature}, but it must be above 0. "
                "For the likeliest token each time, leave it out."
            )
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise GenerationError(f"top_p is {self.top_p}, but it must be above 0 and at most 1 (1 keeps every token).")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise GenerationError(f"min_p is {self.min_p}, but it must be from 0 (which keeps every token) to 1.")
        if self.temperature is None and any(x is not None for x in (self.top_k, self.top_p, self.min_p)):
            raise GenerationError(
                "top_k, top_p and min_p narrow down what is sampled, but without a temperature the likeliest token is taken "
                "each time. Give temperature=1.0 as well, or leave them out."
            )


def stream(
    loaded: Loaded,
    text: Texts = None,
    *,
    ids: Ids = None,
    target: Texts = None,
    target_ids: Sequence[int] | None = None,
    max_tokens: int | None = None,
    max_new_tokens: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int = 0,
    stop: Collection[int] | None = None,
    show: int = 5,
    cached: bool = True,
    keep: Keep | Sequence[Keep] = None,
    target_keep: Keep = None,
) -> Iterator[GenerationStep]:
    """Write after a text, several texts, or token ids, and yield every step as it is taken.

    An encoder–decoder reads the text and writes after `target` (nothing but its start token if none is given). Several
    texts are padded on the left and written side by side.

    temperature None takes the likeliest token each time. A number samples from softmax(logits / temperature), after
    top_k kept the k likeliest tokens (Fan et al. 2018, arXiv:1805.04833) and top_p the fewest whose probabilities reach p
    (Holtzman et al. 2020, arXiv:1904.09751), and min_p of these the ones that have at least that share of the likeliest one's
    probability (Nguyen et al. 2024, arXiv:2407.01082). Equal seeds give equal texts, whatever other random numbers are drawn.

    What generation_config.json forbids has no probability, and what it forces is written (loaded.next_tokens): scores of all
    else become -inf before anything is chosen. `max_tokens` is where a forced end comes.

    keep and target_keep are the masks that came with ids and target_ids (an attention mask: 1 or True for a real token), keep
    with as many rows. Padding at the ends is taken away, so that writing continues at the real end of the text.

    A text is over at a token of `stop` (None: the model's own end_ids, an empty list: never); all are over after
    max_tokens (64 unless given; transformers' name for it, max_new_tokens, is the same), or when the longest has used up a
    table of positions. `show` is how many of the likeliest tokens each
    step names.

    Raises, before anything runs: GenerationError for settings out of range and models that cannot write, TextError for
    prompts that cannot be read or are longer than the positions, TooLarge with the bytes needed and free.
    """
    prompt = RawPrompt(text, ids, target, target_ids, keep, target_keep)
    sampling = Sampling(temperature, top_k, top_p, min_p, seed, show)
    return _stream(loaded, prompt, sampling, most_written(max_tokens, max_new_tokens), stop, cached)


def generate(
    loaded: Loaded,
    text: Texts = None,
    *,
    ids: Ids = None,
    target: Texts = None,
    target_ids: Sequence[int] | None = None,
    max_tokens: int | None = None,
    max_new_tokens: int | None = None,
    temperature: float | None = None,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int = 0,
    stop: Collection[int] | None = None,
    cached: bool = True,
    keep: Keep | Sequence[Keep] = None,
    target_keep: Keep = None,
) -> tuple[Generation, ...]:
    """What stream() writes, once it is all there: one Generation for each text. Arguments and errors are stream's."""
    prompt = RawPrompt(text, ids, target, target_ids, keep, target_keep)
    sampling = Sampling(temperature, top_k, top_p, min_p, seed, show=1)
    written: list[list[Chosen]] = []
    most = most_written(max_tokens, max_new_tokens)
    stops, draft = begin(loaded, prompt, most, stop, cached, n_beams=1)
    for step in _steps(draft, sampling, most, stops):
        written = written or [[] for _ in step.chosen]
        for tokens, chosen in zip(written, step.chosen, strict=True):
            if chosen is not None:
                tokens.append(chosen)
    told = [notices(loaded, draft.prompt.of(i)) for i in range(draft.prompt.batch)]
    return tuple(_generation(loaded, tokens, most, said) for tokens, said in zip(written, told, strict=True))


def candidates(
    logits: Tensor,
    temperature: float,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Candidates of the sampling: tokens [batch, candidate], and their probabilities [batch, candidate], which sum to 1.

    logits [batch, vocab] are divided by the temperature, cut down to top_k, then to top_p and then to min_p, in that order.
    """
    if top_k is None and top_p is None and min_p is None:
        return torch.arange(logits.shape[-1], device=logits.device).expand_as(logits), (logits / temperature).softmax(
            -1
        )
    n = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
    likeliest, tokens = logits.topk(n)
    probs = (likeliest / temperature).softmax(-1)
    if top_p is not None:
        before = probs.cumsum(-1) - probs  # the likeliest token always stays: nothing is before it
        probs = probs.masked_fill(before >= top_p, 0.0)
    if min_p is not None:
        probs = probs.masked_fill(probs < min_p * probs[:, :1], 0.0)
    return tokens, probs / probs.sum(-1, keepdim=True)


class Draft:
    """Texts being written, [batch, pos], with what the model keeps of them. Row i of everything is one text or beam.

    `most` is how many tokens will be written at most, None where that is not settled: where an end may be forced.
    """

    def __init__(self, loaded: Loaded, prompt: Prompt, cached: bool, most: int | None = None):
        ids, target_ids, keep, target_keep, type_ids = model_inputs(prompt, loaded.device)
        self.loaded, self.config, self.prompt, self.most = loaded, loaded.config, prompt, most
        self.memory: Tensor | None = None
        self.memory_keep: Tensor | None = None
        self.ids, self.keep = ids, keep
        if target_ids is not None:
            self.ids, self.keep, self.memory_keep = target_ids, target_keep, keep
            with torch.inference_mode():
                assert loaded.model.encoder is not None
                self.memory = loaded.model.encoder(ids, type_ids, keep)
        self.n_prompt = self.n
        # Room for all that may come, so that nothing is copied or made larger on the way; a window forgets instead.
        config = loaded.config
        longest = min(self.n + (most or 0), config.n_ctx) if config.has_position_table else self.n + (most or 0)
        room = longest if most and config.window is None else 0
        self.cache = Cache(loaded.config, room) if cached else None

    @property
    def n(self) -> int:
        """Tokens of the longest text."""
        return self.ids.shape[1]

    @property
    def is_full(self) -> bool:
        """Whether a table of positions has no place for one more token."""
        return self.config.has_position_table and self.n >= self.config.n_ctx

    def next_logits(self) -> Tensor:
        """next_scores(), and -inf for what may not follow."""
        return self.allowed(self.next_scores())

    @torch.inference_mode()
    def next_scores(self) -> Tensor:
        """[batch, vocab] float32: how well each token would go on. Reads what the cache has not seen."""
        head = self.loaded.model.head
        assert head is not None
        return head(self.next_residual()[:, -1:])[:, 0].float()

    @torch.inference_mode()
    def allowed(self, logits: Tensor) -> Tensor:
        """Scores [batch, vocab] of what comes after these texts, with -inf for what may not follow (loaded.next_tokens)."""
        rule = self.loaded.next_tokens
        if rule.is_free:
            return logits
        found, n_new = [], self.n - self.n_prompt
        for text in self.texts():
            n_prompt = len(text) - n_new
            most = None if self.most is None else n_prompt + self.most
            found += rule.following(text, [len(text)], n_prompt, most)
        return allowed_only(logits, found)

    def texts(self) -> list[list[int]]:
        """The real tokens of each row so far."""
        rows = self.ids.tolist()
        if self.keep is None:
            return rows
        return [
            [i for i, real in zip(row, keep, strict=True) if real]
            for row, keep in zip(rows, self.keep.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def next_residual(self) -> Tensor:
        """[batch, pos, d_model]: the last residual stream of what the cache has not seen, which is read now."""
        model = self.loaded.model
        assert model.decoder is not None
        if self.cache is not None and outgrown(self.config, self.n):
            self.cache = None
        new = self.ids if self.cache is None else self.ids[:, self.cache.n_seen :]
        return model.decoder(new, keep=self.keep, memory=self.memory, memory_keep=self.memory_keep, cache=self.cache)

    def append(self, ids: Tensor) -> None:
        """One more token for every row, [batch]."""
        self.ids = torch.cat([self.ids, ids.to(self.ids.device)[:, None]], dim=1)
        if self.keep is not None:
            self.keep = torch.cat([self.keep, self.keep.new_ones(len(ids), 1)], dim=1)

    def cut(self, n: int) -> bool:
        """Take back all but the first n tokens, with the keys and values of these kept. False where none are held, or not those."""
        if self.cache is None or not self.cache.keep(n):
            return False
        self.ids = self.ids[:, :n]
        self.keep = None if self.keep is None else self.keep[:, :n]
        return True

    @torch.inference_mode()
    def select(self, rows: Tensor) -> None:
        """Row i goes on from what row rows[i] is now; rows [batch] may repeat some and leave others out."""
        self.ids = self.ids[rows]
        self.keep = None if self.keep is None else self.keep[rows]
        self.memory = None if self.memory is None else self.memory[rows]
        self.memory_keep = None if self.memory_keep is None else self.memory_keep[rows]
        if self.cache is not None:
            self.cache.select(rows)


def outgrown(config: ModelConfig, n: int) -> bool:
    """Whether a text of n tokens turns by angles of its own (rotary scaling `dynamic`), so that no cache can hold."""
    scaling = config.rotary_scaling
    return scaling is not None and scaling.kind == "dynamic" and n > scaling.n_ctx_original


def _stream(
    loaded: Loaded,
    prompt: RawPrompt,
    sampling: Sampling,
    max_tokens: int,
    stop: Collection[int] | None,
    cached: bool,
) -> Iterator[GenerationStep]:
    """The steps of a prompt that is found good, or refused, before the first of them."""
    stops, draft = begin(loaded, prompt, max_tokens, stop, cached, n_beams=1)
    return _steps(draft, sampling, max_tokens, stops)


def _steps(draft: Draft, sampling: Sampling, max_tokens: int, stops: frozenset[int]) -> Iterator[GenerationStep]:
    generator = torch.Generator().manual_seed(sampling.seed)
    over = [False] * draft.ids.shape[0]
    is_free = draft.loaded.next_tokens.is_free  # then nothing of it need be asked of the device
    for index in range(max_tokens):
        logits = draft.next_logits()
        if not is_free:
            check_free(logits, over)
        if sampling.temperature is None:
            tokens = logits.argmax(-1)
        else:
            # One number a text and step, also for texts that are over: how long one is changes nothing for the others.
            draws = torch.rand(len(over), 1, generator=generator, dtype=torch.float64)
            tokens = pick(*candidates(logits, *sampling.cuts), draws)
        chosen = _chosen(logits, tokens, stops, sampling.show, is_free)
        yield GenerationStep(
            index,
            tuple(None if o else c for o, c in zip(over, chosen, strict=True)),
            logits,
            0 if draft.cache is None else draft.cache.nbytes,
        )
        over = [o or c.ends for o, c in zip(over, chosen, strict=True)]
        if all(over) or draft.is_full:
            return
        draft.append(tokens)


def check_free(logits: Tensor, over: Sequence[bool] = ()) -> None:
    """Raise GenerationError where nothing may follow a text that is not over. logits [row, vocab]."""
    stuck = logits.isneginf().all(-1).tolist()
    if any(one and not (over and over[i]) for i, one in enumerate(stuck)):
        raise GenerationError(
            "Nothing may follow this text: its model's generation_config.json forbids every token here. Try another text."
        )


def pick(tokens: Tensor, probs: Tensor, draws: Tensor) -> Tensor:
    """[batch]: the candidate in whose share of [0, 1) the draw [batch, 1] falls."""
    edges = probs.to(finest_dtype(probs.device)).cumsum(-1)
    places = torch.searchsorted(edges, draws.to(edges) * edges[:, -1:], right=True)
    last = (probs > 0).long().cumsum(-1).argmax(-1, keepdim=True)  # of those that can be drawn at all
    return tokens.gather(-1, places.minimum(last))[:, 0]


def _chosen(logits: Tensor, tokens: Tensor, stops: frozenset[int], show: int, is_free: bool) -> list[Chosen]:
    """What every text goes on with. Everything comes from the device at once: each transfer would wait for all of the pass."""
    best, words = logits.topk(min(show, logits.shape[-1]))
    scores = torch.cat([logits.gather(-1, tokens[:, None]), best], dim=1)
    probs = (scores - logits.logsumexp(-1, keepdim=True)).exp()  # [batch, 1 + show] float32
    ids = torch.cat([tokens[:, None], words], dim=1).int()
    listed = [show] * len(ids) if is_free else (~best.isneginf()).sum(-1).tolist()  # few may follow: fewer to show
    both = torch.cat([ids, probs.view(torch.int32)], dim=1).cpu().numpy()
    n = ids.shape[1]
    return [
        Chosen(token, prob, tuple(zip(others, shares, strict=True))[:count], token in stops)
        for (token, *others), (prob, *shares), count in zip(
            both[:, :n].tolist(), both[:, n:].view(np.float32).tolist(), listed, strict=True
        )
    ]


def _generation(loaded: Loaded, tokens: list[Chosen], max_tokens: int, said: tuple[str, ...]) -> Generation:
    ids = tuple(chosen.id for chosen in tokens)
    log_prob = sum(math.log(chosen.prob) if chosen.prob > 0 else -math.inf for chosen in tokens)
    ending: Ending = "end" if tokens[-1].ends else "max_tokens" if len(tokens) == max_tokens else "positions"
    return Generation(ids, decoded(loaded, ids), log_prob, ending, said)


def decoded(loaded: Loaded, ids: Sequence[int]) -> str:
    return "" if loaded.tokenizer is None else loaded.tokenizer.decode(list(ids), skip_special_tokens=True)


# what is read, and what is refused


def begin(
    loaded: Loaded, asked: RawPrompt, max_tokens: int, stop: Collection[int] | None, cached: bool, n_beams: int
) -> tuple[frozenset[int], Draft]:
    """The tokens that end a text, and the texts so far."""
    check_counts(max_tokens=max_tokens)
    stops = _stops(loaded, stop)
    config = loaded.config
    check_writes(loaded)
    targets = None
    if config.kind == "encoder-decoder":
        sources = _prompts(loaded, asked, "right")
        targets = target_tokens(loaded, asked.target, asked.target_ids, len(sources), "left", asked.target_keep)
        targets = padded(loaded, [without_ends(tokens) for tokens in targets], "left")
    elif asked.target is not None or asked.target_ids is not None or asked.target_keep is not None:
        raise TextError(f"{loaded.spec.title} takes one text, not a source and a target. Leave the target out.")
    else:
        sources = _prompts(loaded, asked, "left")
    prompt = Prompt(sources, targets)
    admit_writing(loaded, prompt, n_beams, max_tokens, cached)
    return stops, Draft(loaded, prompt, cached, max_tokens)


def check_writes(loaded: Loaded) -> None:
    """Raise GenerationError for a model that cannot write, and Refused for one that writes by itself (core.wrap)."""
    if isinstance(loaded, ForeignModel):
        loaded.refuse("writing token by token")
    if not loaded.config.causal:
        raise GenerationError(
            f"{loaded.spec.title} reads both ways and does not write: its config.json says is_causal: false, so that each "
            "token has seen what comes after it. Choose a decoder or an encoder–decoder."
        )
    if loaded.config.kind == "encoder":
        raise GenerationError(
            f"{loaded.spec.title} is an encoder: it reads a text from both sides and cannot continue it. "
            "Choose a decoder or an encoder–decoder."
        )
    if loaded.model.head is None:
        raise GenerationError(
            f"{loaded.spec.title} has no head that turns vectors into words, so it cannot write. Choose a model with one."
        )


def _prompts(loaded: Loaded, asked: RawPrompt, side: Literal["left", "right"]) -> tuple[Tokens, ...]:
    text, ids, keep = asked.text, asked.ids, asked.keep
    if text is None and ids is not None and len(ids) and hasattr(ids[0], "__len__") and getattr(ids[0], "ndim", 1):
        keeps = [None] * len(ids) if keep is None else list(keep)
        if len(keeps) != len(ids):
            raise TextError(f"The mask has {len(keeps)} rows, and there are {len(ids)} texts. Give a row for each.")
        batch = [masked(from_ids(loaded.tokenizer, row), k) for row, k in zip(ids, keeps, strict=True)]  # type: ignore[arg-type]
        return padded(loaded, [without_ends(tokens) for tokens in batch], side)
    if keep is not None:
        batch = source_tokens(loaded, text, ids, "source", side, keep)  # type: ignore[arg-type]
        return padded(loaded, [without_ends(tokens) for tokens in batch], side)
    if text is None or loaded.config.kind != "decoder" or not loaded.end_ids:
        return source_tokens(loaded, text, ids, "source", side)  # type: ignore[arg-type]
    if ids is not None:
        raise TextError("Give the source either as text or as token ids, not both.")
    texts = [text] if isinstance(text, str) else list(text)
    if not texts:
        raise TextError("The list of source texts is empty. Give at least one.")
    return padded(loaded, [opened(loaded.tokens(t), loaded.end_ids) for t in texts], side)


def opened(tokens: Tokens, end_ids: tuple[int, ...]) -> Tokens:
    """The text without the end that a tokenizer puts after every text: here it is still to be written."""
    start, stop = tokens.offsets[-1]
    if tokens.ids[-1] not in end_ids or start < stop or len(tokens) == 1:
        return tokens
    columns = {f.name: getattr(tokens, f.name)[:-1] for f in fields(Tokens) if f.name != "text"}
    return Tokens(text=tokens.text, **columns)


def admit_writing(
    loaded: Loaded,
    prompt: Prompt,
    n_beams: int,
    max_tokens: int,
    cached: bool,
) -> None:
    """Raise TooLarge for what would not fit: the longest pass, the cache with its room to grow, the logits."""
    config, dtype = loaded.config, dtype_name(loaded.dtype)
    source_len, target_len = prompt.source_len, prompt.target_len
    rows = prompt.batch * n_beams
    n = (target_len or source_len) + max_tokens
    if config.has_position_table:
        n = min(n, config.n_ctx)
    reread = not cached or outgrown(config, n)
    run = run_bytes(
        config,
        batch=rows if reread else prompt.batch,
        source_len=n if reread and not target_len else source_len,
        target_len=0 if not target_len else n if reread else target_len,
        dtype=dtype,
        keep_values=False,
    )
    held = kv_cache(config, batch=rows, n=n, memory_len=source_len if target_len else 0, dtype=dtype)
    # A full cache moves into one with room for as much again: 1 + 2 times what it holds.
    needed = run.total - run.weights + (3 * held.total if cached else 0) + 4 * rows * config.vocab_size * 4
    memory.admit(needed, memory.free_bytes(loaded.device), f"Writing {max_tokens:,} tokens after {source_len:,}")


def _stops(loaded: Loaded, stop: Collection[int] | None) -> frozenset[int]:
    if stop is None:
        return frozenset(loaded.end_ids)
    if bad := [token for token in stop if not 0 <= token < loaded.config.vocab_size]:
        raise GenerationError(
            f"The stop token {bad[0]} is not in this model's vocabulary, which has 0 to {loaded.config.vocab_size - 1}."
        )
    return frozenset(stop)


def most_written(max_tokens: int | None, max_new_tokens: int | None) -> int:
    """How many tokens are written at most, by either name. Raises GenerationError where they differ, or for less than 1."""
    check_counts(max_tokens=max_tokens, max_new_tokens=max_new_tokens)
    if None not in (max_tokens, max_new_tokens) and max_tokens != max_new_tokens:
        raise GenerationError(
            f"max_tokens is {max_tokens} and max_new_tokens {max_new_tokens}, but they are two names of one number. Give one of them."
        )
    return max_tokens or max_new_tokens or MAX_TOKENS


def check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise GenerationError(f"{name} is {value}, but it must be at least 1.")
