"""Writer: a decoder that writes on and shows, for every token that it reads, what could follow, where it looks, and what it keeps."""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from tokenizers.models import WordPiece
from torch import Tensor

from ..checkpoints import Loaded
from ..errors import GenerationError, TextError
from ..model.hooks import Hook, hooked
from ..model.next_tokens import allowed_only
from ..model.rules import row_blocks
from ..model.text import SPACE_SIGNS, Tokens, from_ids, visible
from ..run.attention import AttentionRecord
from ..run.forward_pass import prepare
from ..run.predictions import head_of
from ..run.prompt import Prompt, source_tokens, target_tokens
from ..trace import Trace
from .generate import Draft, Sampling, admit_writing, candidates, check_free, check_writes, opened, pick

LISTED = 256  # of the likeliest next tokens, which a reading names
DETAILED = 96  # tokens of a text at most, counted from its end, of which there are readings when it opens
LOGIT_BYTES = 1 << 24  # of logits at one time
# Temperatures for which a reading says what all tokens that it does not name weigh together.
TEMPERATURES = tuple(i / 10 for i in range(1, 31))


@dataclass(frozen=True)
class Taken:
    """The token that comes next in a text. Probability and rank are the model's own, among what may follow: before
    temperature, top-k, top-p and min-p."""

    id: int
    prob: float
    rank: int  # 1 for the best guess


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What there is to see once a token has been read: all that decides which comes next. Tokens that may not follow are not listed."""

    position: int
    id: int  # that was read
    ids: np.ndarray  # int32 [listed]: the likeliest next tokens, best first
    logits: np.ndarray  # float32 [listed]
    rest: (
        np.ndarray
    )  # float32 [temperature]: the log-sum-exp of all other logits / TEMPERATURES; -inf where there are none
    rows: (
        np.ndarray
    )  # float32 [layer, head, key]: where it looks, in the source where there is one, else at what was read
    entropy: float  # bits that the next token may be expected to be worth, of the model's own probabilities
    cache_bytes: int  # keys and values of the decoder's own tokens, once this one is read; 0 without a cache
    taken: Taken | None = None  # None where the text ends here
    seconds: float | None = None  # that reading it took, head included; None where it was read together with others

    def __repr__(self) -> str:
        return f"<Reading of token {self.id} at {self.position}: the {len(self.ids)} likeliest that may follow>"

    def probs(self, temperature: float = 1.0) -> np.ndarray:
        """Of the named tokens, among all, at one of TEMPERATURES; float64 [listed]."""
        rest = self.rest[TEMPERATURES.index(temperature)].astype(np.float64)
        scaled = self.logits.astype(np.float64) / temperature
        return np.exp(scaled - np.logaddexp.reduce([*scaled, rest]))


@dataclass(frozen=True, eq=False)
class Opening:
    """A text as it is opened: how well the model foresaw each of its tokens, and readings of the last ones."""

    losses: np.ndarray  # float32 [pos - 1]: −ln of the probability of each token but the first, in nats
    readings: tuple[Reading, ...]
    memory_bytes: int  # keys and values of the source, computed once; 0 where there is none


@dataclass(frozen=True)
class LensRow:
    """What the last norm and the head would make of the stream before the first layer (None) or after one."""

    layer: int | None
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    probs: tuple[float, ...]
    rank: int  # of the token that was asked about


@dataclass(frozen=True)
class CacheCost:
    """What the next token takes after n others with and without a cache, here and now; and whether both write the same."""

    n: int
    with_seconds: float  # medians
    without_seconds: float
    checked: int  # tokens that were foreseen both ways
    same: bool  # the likeliest one was the same each time
    difference: float  # the largest between two logits


def beginning(run: Trace, opens_target: bool) -> Prompt:
    """What a run's model reads before it writes: the text without the end that is still to be written.

    Of an encoder-decoder the source, and the target as far as it was given: with `opens_target` its start token alone.
    Raises GenerationError for a model that cannot write.
    """
    check_writes(run.loaded)
    if run.target is None:
        return Prompt((opened(run.source, run.loaded.end_ids),))
    return Prompt((run.source,), (_first(run.target) if opens_target else opened(run.target, run.loaded.end_ids),))


def opening(loaded: Loaded, text: str, target: str | None = None, path: Sequence[int] = ()) -> Opening:
    """Read a text with the tokens of a path after it, and say what may follow each. An encoder-decoder writes after `target`.

    Raises GenerationError for a model that cannot write and a path that it cannot read, TextError, and TooLarge.
    """
    check_writes(loaded)
    sources = source_tokens(loaded, text, None, "source", "right")
    if loaded.config.kind == "encoder-decoder":
        return Writer(loaded, Prompt(sources, target_tokens(loaded, target, None, 1, "right")), path).open()
    if target is not None:
        raise TextError(f"{loaded.spec.title} takes one text, not a source and a target. Leave the target out.")
    return Writer(loaded, Prompt((opened(sources[0], loaded.end_ids),)), path).open()


def _first(tokens: Tokens) -> Tokens:
    return from_ids(None, tokens.ids[:1])


class Writer:
    """A text that is being written after a prompt. `path` are the tokens that are after it already.

    Raises GenerationError for a model that cannot write and a path that it cannot read, TooLarge for what would not fit.
    """

    def __init__(
        self, loaded: Loaded, prompt: Prompt, path: Sequence[int] = (), room: int = 1, cached: bool = True
    ) -> None:
        check_writes(loaded)
        config = loaded.config
        self.loaded, self.prompt, self.stops = loaded, prompt, frozenset(loaded.end_ids)
        self.path = check_path(loaded, prompt, path)
        admit_writing(loaded, prompt, 1, len(path) + room, cached)
        self.draft = Draft(loaded, prompt, cached)
        self.n_prompt = self.draft.n
        self.ends = bool(path) and path[-1] in self.stops  # the last token is one that is never read
        for token in path[: len(path) - self.ends]:
            self.draft.append(torch.tensor([token]))
        self.logits: Tensor | None = None  # [vocab] float32 after the last token that was read
        self.site = "cross_attn" if config.kind == "encoder-decoder" else "attn"
        self.seen: dict[str, Any] = {}

    @property
    def is_over(self) -> bool:
        """Whether no further token can be written: the text has ended, or a table of positions is full."""
        return self.ends or self.draft.is_full

    @torch.inference_mode()
    def open(self) -> Opening:
        """Read the prompt and the path, in one pass."""
        residual = self._pass()
        ids = [*self.draft.ids[0].tolist(), *(self.path[-1:] if self.ends else ())]
        n = residual.shape[0]
        first = max(0, n - DETAILED)
        head, losses, found = head_of(self.loaded), [], []
        for rows in row_blocks(n, self.loaded.config.vocab_size * 4, LOGIT_BYTES):
            scores = head(residual[None, rows])[0].float()  # [pos, vocab]
            at = torch.arange(n)[rows].tolist()
            logits = self._allowed(scores, at)
            known = [p for p in at if p + 1 < len(ids)]
            if known:
                taken = torch.tensor([ids[p + 1] for p in known], device=logits.device)[:, None]
                own = scores[: len(known)].gather(-1, taken)
                # Among what may follow, and what does follow: a text may hold what its model may not write.
                among = logits[: len(known)].scatter(-1, taken, own)
                losses.append((among.logsumexp(-1) - own[:, 0]).cpu().numpy())
            detailed = [p for p in at if p >= first]
            if detailed:
                weights = self._rows(detailed)
                for i, p in enumerate(detailed):
                    row = logits[p - at[0]]
                    after = ids[p + 1] if p + 1 < len(ids) else None
                    found.append(self._reading(p, ids[p], row, weights[i][:, :, : self._reach(p)], after))
            self.logits = logits[-1]
        return Opening(
            np.concatenate(losses) if losses else np.zeros(0, np.float32), tuple(found), self._memory_bytes()
        )

    @torch.inference_mode()
    def read(self) -> None:
        """open() without its readings, for a caller that has them already: they take longer than the pass."""
        scores = head_of(self.loaded)(self._pass()[None, -1:])[0].float()
        self.logits = self._allowed(scores, [self.draft.n - 1])[0]

    def turn_to(self, path: Sequence[int], room: int = 1) -> bool:
        """Stand after another path: only the part in which it differs is read again. Call read() next. False where the keys and
        values are not there. Raises as a new Writer does."""
        path = check_path(self.loaded, self.prompt, path)
        admit_writing(self.loaded, self.prompt, 1, len(path) + room, True)
        ends = bool(path) and path[-1] in self.stops
        tokens, own = path[: len(path) - ends], self.path[: len(self.path) - self.ends]
        same = next(
            (i for i, (a, b) in enumerate(zip(tokens, own, strict=False)) if a != b), min(len(tokens), len(own))
        )
        start = min(
            self.n_prompt + same, self.n_prompt + len(tokens) - 1
        )  # one token at least is read: what may follow is of it
        if not self.draft.cut(start):
            return False
        for token in (*self.prompt.last_read[0].ids, *tokens)[start:]:
            self.draft.append(torch.tensor([token]))
        self.path, self.ends, self.logits = path, ends, None
        return True

    @torch.inference_mode()
    def write(self, how: Sampling, token: int | None = None) -> tuple[Taken, Reading | None]:
        """Choose the next token, unless it is given, and read it. The reading is None for one that ends the text, and where there is
        no room for another.

        The number that is drawn for a token follows from the seed and its place in the path alone, so that a text that was
        stopped goes on as stream() would have written it. Call open() or read() first.
        """
        if self.is_over or self.logits is None:
            raise GenerationError("The text has come to its end.")
        logits = self.logits
        check_free(logits[None])
        token = self._draw(logits, how) if token is None else check_path(self.loaded, self.prompt, [token])[0]
        taken = _taken(logits, token)
        self.path = (*self.path, token)
        self.ends = token in self.stops
        if self.ends:
            return taken, None
        self.draft.append(torch.tensor([token]))
        start = time.perf_counter()
        residual = self._pass()
        scores = head_of(self.loaded)(residual[None, -1:])[0].float()
        self.logits = logits = self._allowed(scores, [self.draft.n - 1])[0]
        if logits.device.type == "cuda":
            torch.cuda.synchronize(logits.device)
        seconds = time.perf_counter() - start
        position = self.draft.n - 1
        weights = self._rows([residual.shape[0] - 1])
        reading = self._reading(position, token, logits, weights[0][:, :, : self._reach(position)], None, seconds)
        return taken, reading

    def _allowed(self, logits: Tensor, positions: Sequence[int]) -> Tensor:
        """logits [pos, vocab] after these positions, which rise, with -inf for what may not follow (loaded.next_tokens)."""
        rule = self.loaded.next_tokens
        if rule.is_free:
            return logits
        keep = [True] * self.draft.n if self.draft.keep is None else self.draft.keep[0].tolist()
        real = [i for i in range(self.draft.n) if keep[i]]
        ids = self.draft.ids[0].tolist()
        lengths = [bisect_right(real, position) for position in positions]
        return allowed_only(logits, rule.following([ids[i] for i in real], lengths, bisect_left(real, self.n_prompt)))

    def _draw(self, logits: Tensor, how: Sampling) -> int:
        if how.temperature is None:
            return int(logits.argmax())
        generator = torch.Generator().manual_seed(how.seed)
        # One number for each token of the path, as stream() draws them.
        draws = [torch.rand(1, 1, generator=generator, dtype=torch.float64) for _ in range(len(self.path) + 1)]
        return int(pick(*candidates(logits[None], *how.cuts), draws[-1]))

    def _pass(self) -> Tensor:
        """The last residual [pos, d_model] of what was not read yet; `seen` then has what its attentions are computed from."""
        self.seen = {}
        hooks: dict[str, Hook] = {}
        for layer in range(self.loaded.config.n_decoder_layers):
            for what in ("hook_q", "hook_k", "hook_rule"):
                name = f"decoder.blocks.{layer}.{self.site}.{what}"
                hooks[name] = partial(self.seen.__setitem__, name)
        with hooked(self.loaded.model, hooks):
            return self.draft.next_residual()[0]

    def _rows(self, queries: list[int]) -> np.ndarray:
        """float32 [query, layer, head, key] of some of the tokens that the last pass read, counted from its first one."""
        layers = []
        n = self.draft.n
        for layer in range(self.loaded.config.n_decoder_layers):
            name = f"decoder.blocks.{layer}.{self.site}"
            q, k, rule = (self.seen[f"{name}.{what}"] for what in ("hook_q", "hook_k", "hook_rule"))
            record = AttentionRecord(name, "decoder", layer, self.site, q, k, _no_values, rule)  # type: ignore[arg-type]
            rows = record.pattern(queries=queries).transpose(0, 1)  # [query, head, key]
            if self.site == "attn" and rows.shape[-1] < n:  # a window has let go of the first keys
                rows = torch.nn.functional.pad(rows, (n - rows.shape[-1], 0))
            layers.append(rows)
        return torch.stack(layers, 1).float().cpu().numpy()

    def _reach(self, position: int) -> int:
        """How many keys a token at this position may look at."""
        return position + 1 if self.site == "attn" else len(self.prompt.sources[0])

    def _reading(
        self,
        position: int,
        token: int,
        logits: Tensor,
        rows: np.ndarray,
        after: int | None,
        seconds: float | None = None,
    ) -> Reading:
        n_listed = min(LISTED, max(1, int((~logits.isneginf()).sum())))  # tokens that may not follow are not named
        best, ids = logits.topk(n_listed)
        others = logits.index_fill(0, ids, -torch.inf)
        temperatures = torch.tensor(TEMPERATURES, device=logits.device)[:, None]
        rest = (others[None] / temperatures).logsumexp(-1)
        return Reading(
            position,
            token,
            ids.int().cpu().numpy(),
            best.cpu().numpy(),
            rest.cpu().numpy(),
            rows,
            _entropy(logits),
            self._own_bytes() * (position + 1) // max(1, self.draft.n) if seconds is None else self._own_bytes(),
            None if after is None else _taken(logits, after),
            seconds,
        )

    def _own_bytes(self) -> int:
        return 0 if self.draft.cache is None else sum(layer.attn.nbytes for layer in self.draft.cache.layers)

    def _memory_bytes(self) -> int:
        if self.draft.cache is None:
            return 0
        return sum(layer.cross.nbytes for layer in self.draft.cache.layers if layer.cross is not None)


def _entropy(logits: Tensor) -> float:
    logs = logits.log_softmax(-1)
    return -(logs.exp() * logs).nan_to_num(0.0).sum().item() / math.log(2)  # what may not follow adds nothing


def _no_values() -> Tensor:
    raise RuntimeError("the values of a reading are not kept")


def _taken(logits: Tensor, token: int) -> Taken:
    own = logits[token]
    prob, rank = (own - logits.logsumexp(-1)).exp(), 1 + (logits > own).sum()
    return Taken(token, prob.item(), int(rank))


def check_path(loaded: Loaded, prompt: Prompt, path: Sequence[int]) -> tuple[int, ...]:
    """The path. Raises GenerationError for one that cannot stand after the prompt."""
    config, n = loaded.config, len(prompt.last_read[0])
    if bad := [token for token in path if not 0 <= token < config.vocab_size]:
        raise GenerationError(
            f"Token number {bad[0]} is not in this model's vocabulary, which has 0 to {config.vocab_size - 1}."
        )
    ends = [i for i, token in enumerate(path) if token in loaded.end_ids]
    if ends and ends[0] < len(path) - 1:
        raise GenerationError(f"The text has its end at token {ends[0] + 1} of the path, and nothing can follow it.")
    if config.has_position_table and n + len(path) - len(ends) > config.n_ctx:
        raise GenerationError(
            f"{n:,} tokens and {len(path):,} after them are more than the {config.n_ctx:,} positions of {loaded.spec.title}. "
            "Take fewer."
        )
    return tuple(path)


def lens(loaded: Loaded, prompt: Prompt, path: Sequence[int], position: int, token: int, k: int = 3) -> list[LensRow]:
    """The k likeliest tokens after one position by the stream before and after every layer, and the rank of one token.

    The logit lens (nostalgebraist 2020): final norm, then the head; in post order the stream is normed as it comes. It is a
    reading of a middle layer by the last one's means. Raises IndexError for a position that was not read, and GenerationError.
    """
    check_writes(loaded)
    path = check_path(loaded, prompt, path)
    if not 0 <= token < loaded.config.vocab_size:
        raise GenerationError(f"Token number {token} is not in this model's vocabulary.")
    read = [*prompt.last_read[0].ids, *path][: position + 1]
    if not 0 <= position < len(prompt.last_read[0]) + len(path):
        raise IndexError(f"position {position} of {len(prompt.last_read[0]) + len(path)}")
    tokens = (from_ids(None, read),)
    whole = Prompt(prompt.sources, tokens) if prompt.targets is not None else Prompt(tokens)
    n, stack, head = loaded.config.n_decoder_layers, loaded.model.stacks[-1], head_of(loaded)
    points = ["decoder.blocks.0.hook_resid_pre", *(f"decoder.blocks.{i}.hook_resid_post" for i in range(n))]
    streams = prepare(loaded, whole, ()).moments(points, lambda _, x: x[0, -1])
    found = []
    last, n_prompt = whole.last_read[0], len(prompt.last_read[0])
    may_follow = loaded.next_tokens.following(last.ids, [len(last)], n_prompt)
    for i, point in enumerate(points):
        with torch.inference_mode():
            logits = allowed_only(head(stack.norm(streams[point])[None, None])[0].float(), may_follow)[0]
            listed = min(k, max(1, int((~logits.isneginf()).sum())))
            probs, ids = logits.softmax(-1).topk(listed)
        rank = 1 + int((logits > logits[token]).sum())
        named = labels(loaded, ids.tolist())
        found.append(LensRow(i - 1 if i else None, tuple(named), tuple(named.values()), tuple(probs.tolist()), rank))
    return found


@torch.inference_mode()
def cache_cost(loaded: Loaded, prompt: Prompt, path: Sequence[int], n: int = 240, rounds: int = 5) -> CacheCost:
    """How long the token after n others takes with and without a cache, and the same words by both behind prompt and path.

    The text is repeated until it has n tokens. Each time is the median of `rounds`.
    """
    check_writes(loaded)
    path = check_path(loaded, prompt, path)
    if path and path[-1] in loaded.end_ids:
        path = path[:-1]
    own = list(prompt.last_read[0].ids)
    read = [*own, *path]
    if loaded.config.has_position_table:
        n = min(n, loaded.config.n_ctx - rounds)
    if n < 2:
        raise GenerationError("This model has positions for so few tokens that there is nothing to time.")
    text = (read * (1 + (n + rounds) // len(read)))[: n + rounds]

    def draft(ids: list[int], cached: bool) -> Draft:
        tokens = (from_ids(None, ids),)
        whole = Prompt(tokens) if prompt.targets is None else Prompt(prompt.sources, tokens)
        admit_writing(loaded, whole, 1, 1, cached)
        return Draft(loaded, whole, cached)

    def timed(one: Draft) -> float:
        start = time.perf_counter()
        one.next_logits().argmax().item()
        return time.perf_counter() - start

    held = draft(text[: n - 1], True)
    held.next_logits()
    with_cache = []
    for token in text[n - 1 : n - 1 + rounds]:
        held.append(torch.tensor([token]))
        with_cache.append(timed(held))
    without = [timed(draft(text[:n], False)) for _ in range(rounds)]

    grown = draft(own, True)
    logits = [grown.next_scores()[0]]
    for token in path:
        grown.append(torch.tensor([token]))
        logits.append(grown.next_scores()[0])
    last = draft(read, False).next_residual()[:, len(own) - 1 :]
    whole = head_of(loaded)(last)[0].float()  # [written + 1, vocab]
    difference = (whole - torch.stack(logits)).abs().max().item()
    same = bool((whole.argmax(-1) == torch.stack(logits).argmax(-1)).all())
    return CacheCost(n, statistics.median(with_cache), statistics.median(without), len(logits), same, difference)


def labels(loaded: Loaded, ids: Iterable[int]) -> dict[int, str]:
    """What a person reads for tokens that stand nowhere yet; special ones by name, halves of a character as the tokenizer spells them."""
    tokenizer = loaded.tokenizer
    named = {} if tokenizer is None else tokenizer.get_added_tokens_decoder()
    found: dict[int, str] = {}
    for token in ids:
        string = None if tokenizer is None else tokenizer.id_to_token(token)
        if tokenizer is None or string is None or token in named:
            found[token] = str(token) if string is None else string
            continue
        try:
            piece = tokenizer.decode([token], skip_special_tokens=False)
        except Exception:  # a decoder that wants what came before
            piece = ""
        found[token] = visible(piece) if piece and "\ufffd" not in piece else string
    return found


def glued(loaded: Loaded, ids: Iterable[int]) -> list[int]:
    """Those of the tokens that bring no space with them: in a text they stand close to what is before them."""
    tokenizer = loaded.tokenizer
    if tokenizer is None:
        return []
    of_pieces = isinstance(tokenizer.model, WordPiece)  # where a token begins a word unless it says that it does not
    named, spaces = tokenizer.get_added_tokens_decoder(), tuple(sign for signs in SPACE_SIGNS for sign in signs)
    strings = {token: tokenizer.id_to_token(token) for token in ids if token not in named}
    return [
        token
        for token, string in strings.items()
        if string
        and (string.startswith("##") if of_pieces else not string.startswith(spaces) and not string[0].isspace())
    ]


def label(loaded: Loaded, token: int) -> str:
    """labels() of one token."""
    return labels(loaded, [token])[token]


def check_room(n: int, most: int) -> None:
    """Raise TextError where more tokens are written than can be kept."""
    if n > most:
        raise TextError(f"{n:,} tokens are written; at most {most:,} can be. Take a shorter path.")
