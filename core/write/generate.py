"""Text generation: streaming, sampling, and text written before a run."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict, Unpack, get_type_hints

import numpy as np
import torch
from torch import Tensor

from .. import device
from ..checkpoints import Loaded
from ..device import dtype_name, highest_precision
from ..edits import hooks_of
from ..errors import GenerationError, TextError
from ..model.cache import Cache
from ..model.config import ModelConfig
from ..model.hooks import hooked
from ..model.outputs import mask_disallowed
from ..model.text import Tokens, from_ids
from ..plan import kv_cache, run_bytes
from ..run.foreign import ForeignModel
from ..run.request import (
    Keep,
    Prompt,
    Request,
    masked,
    model_inputs,
    notices,
    padded,
    strip_end_tokens,
    tokenize_source,
    tokenize_target,
)

Texts = str | Sequence[str] | None
Ids = Sequence[int] | Sequence[Sequence[int]] | Sequence[np.ndarray] | Tensor | np.ndarray | None
MAX_TOKENS = 64  # default of max_tokens
FinishReason = Literal["end", "max_tokens", "positions"]


@dataclass(frozen=True)
class SampledToken:
    """The next token of one text. Probabilities are the model's own, among the allowed tokens: before temperature, top-k and top-p."""

    id: int
    prob: float
    top: tuple[tuple[int, float], ...]  # the most likely tokens with their probabilities, best first
    ends: bool  # True for a stop token


@dataclass(frozen=True, eq=False)
class GenerationStep:
    """One token for every text of the batch; None for a text that has ended."""

    index: int  # from 0
    chosen: tuple[SampledToken | None, ...]
    logits: Tensor  # [batch, vocab] float32, from which the tokens were chosen; -inf for tokens that may not follow
    cache_bytes: int  # keys and values stored before this token; 0 without a cache


@dataclass(frozen=True)
class Generation:
    """The tokens generated after one prompt, including a stop token."""

    ids: tuple[int, ...]
    text: str  # without special tokens; empty without a tokenizer
    log_prob: float  # of the whole continuation, in nats
    ending: FinishReason
    notices: tuple[str, ...] = ()  # about its prompt: padding that was read as words


@dataclass(frozen=True)
class RawPrompt:
    """The prompt, as the caller gave it."""

    text: Texts = None
    ids: Ids = None
    target: Texts = None
    target_ids: Sequence[int] | None = None
    keep: Keep | Sequence[Keep] = None  # as many rows as ids
    target_keep: Keep = None


@dataclass(frozen=True)
class Sampling:
    """How each token is chosen. Raises GenerationError for values out of range."""

    temperature: float | None = None  # None: the most likely token each time
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None  # share of the most likely token's probability below which no token is sampled
    seed: int = 0
    show: int = 1  # number of most likely tokens in each step

    @property
    def cuts(self) -> tuple[float, int | None, float | None, float | None]:
        """The arguments of candidates(), with a temperature."""
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


class WritingOptions(TypedDict, total=False):
    """Keyword arguments of stream(), generate() and beam_steps(); see stream()."""

    ids: Ids
    target: Texts
    target_ids: Sequence[int] | None
    keep: Keep | Sequence[Keep]
    target_keep: Keep
    max_tokens: int | None
    max_new_tokens: int | None  # deprecated name of max_tokens
    stop: Collection[int] | None
    cached: bool


class SamplingOptions(WritingOptions, total=False):
    """Keyword arguments of generate(): also the fields of Sampling, or `sampling` itself."""

    sampling: Sampling
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int


class StreamOptions(SamplingOptions, total=False):
    """Keyword arguments of stream()."""

    show: int


@dataclass(frozen=True)
class WritingRequest:
    """The options of one call, resolved."""

    prompt: RawPrompt
    sampling: Sampling
    max_tokens: int
    stop: Collection[int] | None
    cached: bool

    @classmethod
    def of(cls, text: Texts | RawPrompt, options: Mapping[str, Any], kind: type, show: int = 1) -> WritingRequest:
        """Resolve the keyword arguments of `kind`, a TypedDict. Raises TypeError for an unknown one, and GenerationError for values out of
        range."""
        if unknown := options.keys() - get_type_hints(kind):
            raise TypeError(
                f"unexpected keyword argument {min(unknown)!r}; there are: {', '.join(get_type_hints(kind))}"
            )
        prompt, sampling = (
            {field.name: options[field.name] for field in fields(record) if field.name in options}
            for record in (RawPrompt, Sampling)
        )
        if (prompt and isinstance(text, RawPrompt)) or (sampling and "sampling" in options):
            raise TypeError("give a RawPrompt or a Sampling either as one object or as keyword arguments, not both")
        return cls(
            prompt=text if isinstance(text, RawPrompt) else RawPrompt(text, **prompt),
            sampling=options.get("sampling") or Sampling(**{"show": show, **sampling}),
            max_tokens=resolve_max_tokens(options.get("max_tokens"), options.get("max_new_tokens")),
            stop=options.get("stop"),
            cached=options.get("cached", True),
        )


def stream(
    loaded: Loaded, text: Texts | RawPrompt = None, **options: Unpack[StreamOptions]
) -> Iterator[GenerationStep]:
    """Generate after a text, several texts, or token ids, and yield every step.

    An encoder–decoder reads the text and continues `target` (only its start token by default). Several texts are padded on the left and
    continued in one batch.

    temperature: None (the default) chooses the most likely token each time. A number samples from softmax(logits / temperature), after
    top_k kept the k most likely tokens (Fan et al. 2018, arXiv:1805.04833), top_p the fewest whose probabilities reach p (Holtzman et
    al. 2020, arXiv:1904.09751), and min_p those with at least that share of the most likely token's probability (Nguyen et al.
    2024, arXiv:2407.01082). Equal seeds (`seed`, 0) give equal texts, independent of other random numbers. `sampling` takes all of these
    as one Sampling.

    Tokens that generation_config.json forbids have no probability, and tokens that it forces are written (loaded.next_tokens): all other
    scores become -inf before a token is chosen. A forced end comes at `max_tokens`.

    keep and target_keep are the attention masks of ids and target_ids (1 or True for a real token), keep with as many rows as
    ids. Padding at the ends is removed, so that the text is continued at its real end.

    A text ends at a token of `stop` (None: the model's own end_ids; an empty list: never). Generation ends after max_tokens (64 by
    default; max_new_tokens is a deprecated name), or when the longest text has used up the position table. `show` (5) is the number of
    most likely tokens in each step; `cached` (True) uses a KV cache.

    Raises, before anything runs: GenerationError for settings out of range and models that cannot generate, TextError for
    prompts that cannot be read or are longer than the positions, TooLarge with the bytes needed and free.
    """
    request = WritingRequest.of(text, options, StreamOptions, show=5)
    stops, draft = begin(loaded, request)
    return _steps(draft, request.sampling, request.max_tokens, stops)


def generate(
    loaded: Loaded, text: Texts | RawPrompt = None, **options: Unpack[SamplingOptions]
) -> tuple[Generation, ...]:
    """Return the finished text of stream(), one Generation for each text. Arguments and errors are those of stream(), without `show`."""
    request = WritingRequest.of(text, options, SamplingOptions)
    stops, draft = begin(loaded, request)
    written: list[list[SampledToken]] = [[] for _ in range(draft.prompt.batch)]
    for step in _steps(draft, request.sampling, request.max_tokens, stops):
        for tokens, chosen in zip(written, step.chosen, strict=True):
            if chosen is not None:
                tokens.append(chosen)
    return tuple(
        _generation(loaded, tokens, request.max_tokens, notices(loaded, draft.prompt.of(i)))
        for i, tokens in enumerate(written)
    )


def candidates(
    logits: Tensor,
    temperature: float,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the candidates for sampling: tokens [batch, candidate], and their probabilities [batch, candidate], which sum to 1.

    logits [batch, vocab] are divided by the temperature, restricted to top_k, then to top_p and then to min_p, in that order.
    """
    if top_k is None and top_p is None and min_p is None:
        tokens = torch.arange(logits.shape[-1], device=logits.device).expand_as(logits)
        return tokens, (logits / temperature).softmax(-1)
    n = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
    likeliest, tokens = logits.topk(n)
    probs = (likeliest / temperature).softmax(-1)
    if top_p is not None:
        before = probs.cumsum(-1) - probs  # 0 for the most likely token, which is therefore always kept
        probs = probs.masked_fill(before >= top_p, 0.0)
    if min_p is not None:
        probs = probs.masked_fill(probs < min_p * probs[:, :1], 0.0)
    return tokens, probs / probs.sum(-1, keepdim=True)


class DecodingState:
    """Texts being generated, [batch, pos], with their KV cache. Row i of every tensor is one text or beam.

    `most` is the maximum number of new tokens, at which an end may be forced; None if it is not known.
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
        # The cache has its final size from the start, so that it is never copied. With a window it stays small instead.
        config, longest = loaded.config, self.n + (most or 0)
        longest = min(longest, config.n_ctx) if config.has_position_table else longest
        self.cache = Cache(config, longest if most and config.window is None else 0) if cached else None

    @property
    def n(self) -> int:
        """Number of tokens of the longest text."""
        return self.ids.shape[1]

    @property
    def is_full(self) -> bool:
        """True if the position table is used up."""
        return self.config.has_position_table and self.n >= self.config.n_ctx

    def next_logits(self) -> Tensor:
        """next_scores(), with -inf for tokens that may not follow."""
        return self.allowed(self.next_scores())

    @torch.inference_mode()
    def next_scores(self) -> Tensor:
        """Logits of the next token, [batch, vocab] float32. Reads the tokens that are not in the cache."""
        head = self.loaded.model.head
        assert head is not None
        return head(self.next_residual()[:, -1:])[:, 0].float()

    @torch.inference_mode()
    def allowed(self, logits: Tensor) -> Tensor:
        """Logits [batch, vocab] of the next token, with -inf for tokens that may not follow (loaded.next_tokens)."""
        rule = self.loaded.next_tokens
        if rule.is_free:
            return logits
        allowed, n_new = [], self.n - self.n_prompt
        for text in self.texts():
            n_prompt = len(text) - n_new
            most = None if self.most is None else n_prompt + self.most
            allowed += rule.following(text, [len(text)], n_prompt, most)
        return mask_disallowed(logits, allowed)

    def texts(self) -> list[list[int]]:
        """The real tokens of each row."""
        rows = self.ids.tolist()
        if self.keep is None:
            return rows
        return [
            [i for i, real in zip(row, keep, strict=True) if real]
            for row, keep in zip(rows, self.keep.tolist(), strict=True)
        ]

    @torch.inference_mode()
    def next_residual(self) -> Tensor:
        """Read the tokens that are not in the cache, and return their last residual [batch, pos, d_model]."""
        model = self.loaded.model
        assert model.decoder is not None
        if self.cache is not None and exceeds_context(self.config, self.n):
            self.cache = None
        new = self.ids if self.cache is None else self.ids[:, self.cache.n_past :]
        return model.decoder(new, keep=self.keep, memory=self.memory, memory_keep=self.memory_keep, cache=self.cache)

    def append(self, ids: Tensor) -> None:
        """Append one token to every row, [batch]."""
        self.ids = torch.cat([self.ids, ids.to(self.ids.device)[:, None]], dim=1)
        if self.keep is not None:
            self.keep = torch.cat([self.keep, self.keep.new_ones(len(ids), 1)], dim=1)

    def cut(self, n: int) -> bool:
        """Remove all but the first n tokens, and crop the cache to them. Returns False if the cache does not have them."""
        if self.cache is None or not self.cache.crop(n):
            return False
        self.ids = self.ids[:, :n]
        self.keep = None if self.keep is None else self.keep[:, :n]
        return True

    @torch.inference_mode()
    def select(self, rows: Tensor) -> None:
        """Replace row i by row rows[i]; `rows` [batch] may repeat some and drop others."""
        self.ids = self.ids[rows]
        self.keep = None if self.keep is None else self.keep[rows]
        self.memory = None if self.memory is None else self.memory[rows]
        self.memory_keep = None if self.memory_keep is None else self.memory_keep[rows]
        if self.cache is not None:
            self.cache.reorder(rows)


def exceeds_context(config: ModelConfig, n: int) -> bool:
    """True if the rotary angles depend on the length n of the text (rotary scaling `dynamic`), so that no cache is valid."""
    scaling = config.rotary_scaling
    return scaling is not None and scaling.kind == "dynamic" and n > scaling.n_ctx_original


def _steps(
    draft: DecodingState, sampling: Sampling, max_tokens: int, stops: frozenset[int]
) -> Iterator[GenerationStep]:
    generator = torch.Generator().manual_seed(sampling.seed)
    over = [False] * draft.ids.shape[0]
    is_free = draft.loaded.next_tokens.is_free  # then the checks need no transfer from the device
    for index in range(max_tokens):
        logits = draft.next_logits()
        if not is_free:
            check_free(logits, over)
        if sampling.temperature is None:
            tokens = logits.argmax(-1)
        else:
            # One number for each text and step, also for ended texts, so that the length of one does not affect the others.
            draws = torch.rand(len(over), 1, generator=generator, dtype=torch.float64)
            tokens = sample_token(*candidates(logits, *sampling.cuts), draws)
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
    """Raise GenerationError if no token may follow a text that has not ended. logits [row, vocab]."""
    stuck = logits.isneginf().all(-1).tolist()
    if any(is_stuck and not (over and over[i]) for i, is_stuck in enumerate(stuck)):
        raise GenerationError(
            "Nothing may follow this text: its model's generation_config.json forbids every token here. Try another text."
        )


def sample_token(tokens: Tensor, probs: Tensor, draws: Tensor) -> Tensor:
    """Return the candidates [batch] whose shares of [0, 1) contain the random values `draws` [batch, 1]."""
    edges = probs.to(highest_precision(probs.device)).cumsum(-1)
    places = torch.searchsorted(edges, draws.to(edges) * edges[:, -1:], right=True)
    last = (probs > 0).long().cumsum(-1).argmax(-1, keepdim=True)  # candidate with a probability above 0
    return tokens.gather(-1, places.minimum(last))[:, 0]


def _chosen(logits: Tensor, tokens: Tensor, stops: frozenset[int], show: int, is_free: bool) -> list[SampledToken]:
    """The next token of every text. All numbers are transferred from the device at once, because each transfer waits for the pass."""
    best, likeliest = logits.topk(min(show, logits.shape[-1]))
    scores = torch.cat([logits.gather(-1, tokens[:, None]), best], dim=1)
    probs = (scores - logits.logsumexp(-1, keepdim=True)).exp()  # [batch, 1 + show] float32
    ids = torch.cat([tokens[:, None], likeliest], dim=1).int()
    n_listed = [show] * len(ids) if is_free else (~best.isneginf()).sum(-1).tolist()  # without forbidden tokens
    both = torch.cat([ids, probs.view(torch.int32)], dim=1).cpu().numpy()
    n = ids.shape[1]
    return [
        SampledToken(token, prob, tuple(zip(others, shares, strict=True))[:count], token in stops)
        for (token, *others), (prob, *shares), count in zip(
            both[:, :n].tolist(), both[:, n:].view(np.float32).tolist(), n_listed, strict=True
        )
    ]


def _generation(loaded: Loaded, tokens: list[SampledToken], max_tokens: int, notices: tuple[str, ...]) -> Generation:
    ids = tuple(chosen.id for chosen in tokens)
    log_prob = sum(math.log(chosen.prob) if chosen.prob > 0 else -math.inf for chosen in tokens)
    ending: FinishReason = "end" if tokens[-1].ends else "max_tokens" if len(tokens) == max_tokens else "positions"
    return Generation(ids, decoded(loaded, ids), log_prob, ending, notices)


def decoded(loaded: Loaded, ids: Sequence[int]) -> str:
    return "" if loaded.tokenizer is None else loaded.tokenizer.decode(list(ids), skip_special_tokens=True)


def begin(loaded: Loaded, request: WritingRequest, n_beams: int = 1) -> tuple[frozenset[int], DecodingState]:
    """Check a request, and return the stop tokens and the prompts."""
    check_counts(max_tokens=request.max_tokens)
    stops = _stop_tokens(loaded, request.stop)
    check_generative(loaded)
    raw, targets = request.prompt, None
    if loaded.config.kind == "encoder-decoder":
        sources = _prompts(loaded, raw, "right")
        targets = tokenize_target(loaded, raw.target, raw.target_ids, len(sources), "left", raw.target_keep)
        targets = padded(loaded, [strip_end_tokens(tokens) for tokens in targets], "left")
    elif raw.target is not None or raw.target_ids is not None or raw.target_keep is not None:
        raise TextError(f"{loaded.spec.title} takes one text, not a source and a target. Leave the target out.")
    else:
        sources = _prompts(loaded, raw, "left")
    prompt = Prompt(sources, targets)
    check_generation_fits(loaded, prompt, n_beams, request.max_tokens, request.cached)
    return stops, DecodingState(loaded, prompt, request.cached, request.max_tokens)


def check_generative(loaded: Loaded) -> None:
    """Raise GenerationError for a model that cannot generate, and Refused for a wrapped one, which generates by its own method."""
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


def _prompts(loaded: Loaded, raw: RawPrompt, side: Literal["left", "right"]) -> tuple[Tokens, ...]:
    text, ids, keep = raw.text, raw.ids, raw.keep
    if text is None and ids is not None and _is_batch(ids):
        masks = [None] * len(ids) if keep is None else list(keep)
        if len(masks) != len(ids):
            raise TextError(f"The mask has {len(masks)} rows, and there are {len(ids)} texts. Give a row for each.")
        batch = [masked(from_ids(loaded.tokenizer, row), mask) for row, mask in zip(ids, masks, strict=True)]  # type: ignore[arg-type]
    elif keep is not None:
        batch = tokenize_source(loaded, text, ids, "source", side, keep)  # type: ignore[arg-type]
    elif text is None or loaded.config.kind != "decoder" or not loaded.end_ids:
        return tokenize_source(loaded, text, ids, "source", side)  # type: ignore[arg-type]
    else:
        return padded(loaded, [opened(tokens, loaded.end_ids) for tokens in _texts_read(loaded, text, ids)], side)
    return padded(loaded, [strip_end_tokens(tokens) for tokens in batch], side)


def _is_batch(ids: Sequence[Any] | Tensor | np.ndarray) -> bool:
    return len(ids) > 0 and hasattr(ids[0], "__len__") and getattr(ids[0], "ndim", 1) > 0


def _texts_read(loaded: Loaded, text: str | Sequence[str], ids: Ids) -> list[Tokens]:
    if ids is not None:
        raise TextError("Give the source either as text or as token ids, not both.")
    texts = [text] if isinstance(text, str) else list(text)
    if not texts:
        raise TextError("The list of source texts is empty. Give at least one.")
    return [loaded.tokens(each) for each in texts]


def opened(tokens: Tokens, end_ids: tuple[int, ...]) -> Tokens:
    """The text without the end token that a tokenizer appends, so that the text can be continued."""
    start, stop = tokens.offsets[-1]
    if tokens.ids[-1] not in end_ids or start < stop or len(tokens) == 1:
        return tokens
    columns = {f.name: getattr(tokens, f.name)[:-1] for f in fields(Tokens) if f.name != "text"}
    return Tokens(text=tokens.text, **columns)


def check_generation_fits(loaded: Loaded, prompt: Prompt, n_beams: int, max_tokens: int, cached: bool) -> None:
    """Raise TooLarge if the longest pass, the growing cache and the logits do not fit into memory."""
    config, dtype = loaded.config, dtype_name(loaded.dtype)
    source_len, target_len = prompt.source_len, prompt.target_len
    rows = prompt.batch * n_beams
    n = (target_len or source_len) + max_tokens
    if config.has_position_table:
        n = min(n, config.n_ctx)
    reread = not cached or exceeds_context(config, n)
    run = run_bytes(
        config,
        batch=rows if reread else prompt.batch,
        source_len=n if reread and not target_len else source_len,
        target_len=0 if not target_len else n if reread else target_len,
        dtype=dtype,
        keep_values=False,
    )
    held = kv_cache(config, batch=rows, n=n, memory_len=source_len if target_len else 0, dtype=dtype)
    # A full cache is copied into one of twice its size: 1 + 2 times its bytes.
    needed = run.total - run.weights + (3 * held.total if cached else 0) + 4 * rows * config.vocab_size * 4
    device.check_fits(needed, device.free_bytes(loaded.device), f"Writing {max_tokens:,} tokens after {source_len:,}")


def _stop_tokens(loaded: Loaded, stop: Collection[int] | None) -> frozenset[int]:
    if stop is None:
        return frozenset(loaded.end_ids)
    if bad := [token for token in stop if not 0 <= token < loaded.config.vocab_size]:
        raise GenerationError(
            f"The stop token {bad[0]} is not in this model's vocabulary, which has 0 to {loaded.config.vocab_size - 1}."
        )
    return frozenset(stop)


def resolve_max_tokens(max_tokens: int | None, max_new_tokens: int | None) -> int:
    """The maximum number of new tokens, by either name. Raises GenerationError if they differ, or for less than 1."""
    check_counts(max_tokens=max_tokens, max_new_tokens=max_new_tokens)
    if max_new_tokens is not None:
        warnings.warn("max_new_tokens is deprecated; use max_tokens", DeprecationWarning, stacklevel=4)
    if None not in (max_tokens, max_new_tokens) and max_tokens != max_new_tokens:
        raise GenerationError(
            f"max_tokens is {max_tokens} and max_new_tokens {max_new_tokens}, but they are two names of one number. Give one of them."
        )
    return max_tokens or max_new_tokens or MAX_TOKENS


def check_counts(**counts: int | None) -> None:
    for name, value in counts.items():
        if value is not None and value < 1:
            raise GenerationError(f"{name} is {value}, but it must be at least 1.")


# Options for a decoder: the most likely token each time soon repeats itself. Equal texts get equal continuations.
CONTINUATION: dict[str, Any] = {"temperature": 0.7, "top_k": 40, "seed": 1}
LONGEST_TARGET = 128  # tokens of a generated target


def with_continuation(
    loaded: Loaded, request: Request, each_token: Callable[[], object] = lambda: None
) -> tuple[list[str], str | None]:
    """Return the texts and the target of a request, with generated text appended. `each_token` is called before every token.

    A requested continuation is generated by the edited model, token by token without a cache, since an edit applies to a whole text. A
    target that was not given is generated by the unedited model, so that edits can be compared.

    Raises GenerationError if text is requested of a model that cannot generate, or for more than one text.
    """
    texts, target = list(request.texts), request.target_text
    is_pair = loaded.config.kind == "encoder-decoder"
    n = request.write or (LONGEST_TARGET if target is None and _can_translate(loaded) else 0)
    if not n:
        return texts, target
    if len(texts) != 1:
        raise GenerationError(f"One text can be continued at a time, not {len(texts)}.")
    before = tokenize_target(loaded, target, None, 1, "right")[0].ids if is_pair else loaded.tokens(texts[0]).ids
    if loaded.config.has_position_table:
        n = min(n, loaded.config.n_ctx - len(before))
    new = _written(loaded, request, n, each_token) if n > 0 else []
    if is_pair:
        return texts, append_tokens(loaded, target or "", before, new)
    return [append_tokens(loaded, texts[0], before, new)], None


def _can_translate(loaded: Loaded) -> bool:
    """True for an encoder-decoder that can write its target."""
    config, parts = loaded.config, (loaded.model.head, loaded.tokenizer, loaded.start_id)
    return config.kind == "encoder-decoder" and config.writes and all(part is not None for part in parts)


def _written(loaded: Loaded, request: Request, n: int, each_token: Callable[[], object]) -> list[int]:
    new: list[int] = []
    edits = hooks_of(loaded.model, request.interventions) if request.write else {}
    options: dict[str, Any] = {"target": request.target_text, "max_tokens": n, "show": 1, "cached": not edits}
    if loaded.config.kind != "encoder-decoder":
        options |= CONTINUATION
    with hooked(loaded.model, edits):
        for step in stream(loaded, request.texts[0], **options):
            each_token()
            if (chosen := step.chosen[0]) is not None and not chosen.ends:
                new.append(chosen.id)
    return new


def append_tokens(loaded: Loaded, text: str, before: tuple[int, ...], new: list[int]) -> str:
    """The text with the decoded new tokens. An incomplete character at the end is dropped."""
    assert loaded.tokenizer is not None
    own, joined = (loaded.tokenizer.decode([*ids], skip_special_tokens=True) for ids in (before, [*before, *new]))
    added = joined.removeprefix(own) if joined.startswith(own) else loaded.tokenizer.decode(new)
    return text + added.rstrip("\ufffd")
