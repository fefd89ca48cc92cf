"""Step-by-step writing with what each token attended to, and direct attribution of the written tokens."""

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
from ..model.outputs import mask_disallowed
from ..model.rules import row_blocks
from ..model.text import SPACE_SIGNS, from_ids, visible
from ..read.attribution import asked, has_looks
from ..read.edge_attribution import EdgeAttribution, each_edge
from ..run.attention import AttentionRecord
from ..run.forward_pass import prepare
from ..run.predictions import head_of
from ..run.request import Prompt, tokenize_source, tokenize_target
from ..trace import Trace, trace_tokens
from .generate import (
    DecodingState,
    Sampling,
    candidates,
    check_free,
    check_generation_fits,
    check_generative,
    opened,
    sample_token,
)

LISTED = 256  # most likely next tokens in a reading
DETAILED = 96  # last tokens of a text that get a reading when it is opened
LOGIT_BYTES = 1 << 24  # bytes of logits computed at once
# Temperatures for which a reading has the total weight of the unlisted tokens.
TEMPERATURES = tuple(i / 10 for i in range(1, 31))


@dataclass(frozen=True)
class ChosenToken:
    """The next token of a text. Probability and rank are the model's own, among the allowed tokens: before temperature, top-k, top-p and
    min-p."""

    id: int
    prob: float
    rank: int  # 1 for the most likely token


@dataclass(frozen=True, eq=False, repr=False)
class TokenDistribution:
    """The state after one token has been read: the distribution of the next token, and the attention. Forbidden tokens are not listed."""

    position: int
    id: int  # the token read
    ids: np.ndarray  # int32 [listed]: the most likely next tokens, best first
    logits: np.ndarray  # float32 [listed]
    rest: np.ndarray  # float32 [temperature]: log-sum-exp of all other logits / TEMPERATURES; -inf if there are none
    rows: (
        np.ndarray
    )  # float32 [layer, head, key]: attention to the source if there is one, otherwise to the tokens read
    entropy: float  # bits, of the model's own distribution of the next token
    cache_bytes: int  # keys and values of the decoder's own tokens, including this one; 0 without a cache
    taken: ChosenToken | None = None  # None if the text ends here
    seconds: float | None = None  # to read it, including the unembedding; None if it was read together with others

    def __repr__(self) -> str:
        return f"<Reading of token {self.id} at {self.position}: the {len(self.ids)} most likely next tokens>"

    def probs(self, temperature: float = 1.0) -> np.ndarray:
        """Probabilities of the listed tokens at one of TEMPERATURES; float64 [listed]."""
        rest = self.rest[TEMPERATURES.index(temperature)].astype(np.float64)
        scaled = self.logits.astype(np.float64) / temperature
        return np.exp(scaled - np.logaddexp.reduce([*scaled, rest]))


@dataclass(frozen=True, eq=False)
class Opening:
    """An opened text: the loss of each of its tokens, and readings of the last ones."""

    losses: np.ndarray  # float32 [pos - 1]: −ln of the probability of each token but the first, in nats
    readings: tuple[TokenDistribution, ...]
    memory_bytes: int  # keys and values of the source, computed once; 0 without a source


@dataclass(frozen=True)
class LensRow:
    """Logit lens of the residual stream before the first layer (None) or after one."""

    layer: int | None
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    probs: tuple[float, ...]
    rank: int  # of the requested token


@dataclass(frozen=True)
class CacheCost:
    """Time of the next token after n others with and without a cache, measured here, and whether both give the same text."""

    n: int
    with_seconds: float  # medians
    without_seconds: float
    checked: int  # tokens predicted both ways
    same: bool  # the most likely one was the same each time
    difference: float  # largest difference of two logits


def beginning(run: Trace, opens_target: bool) -> Prompt:
    """The prompt of a run's model: the text without its end token.

    For an encoder-decoder, the source and the given target; with `opens_target` only the target's start token. Raises GenerationError for
    a model that cannot generate.
    """
    check_generative(run.loaded)
    if run.target is None:
        return Prompt((opened(run.source, run.loaded.end_ids),))
    start = from_ids(None, run.target.ids[:1]) if opens_target else opened(run.target, run.loaded.end_ids)
    return Prompt((run.source,), (start,))


def opening(loaded: Loaded, text: str, target: str | None = None, path: Sequence[int] = ()) -> Opening:
    """Read a text and the tokens of a path after it, and return the distribution after each. An encoder-decoder continues `target`.

    Raises GenerationError for a model that cannot generate and an invalid path, TextError, and TooLarge.
    """
    check_generative(loaded)
    sources = tokenize_source(loaded, text, None, "source", "right")
    if loaded.config.kind == "encoder-decoder":
        return Writer(loaded, Prompt(sources, tokenize_target(loaded, target, None, 1, "right")), path).open()
    if target is not None:
        raise TextError(f"{loaded.spec.title} takes one text, not a source and a target. Leave the target out.")
    return Writer(loaded, Prompt((opened(sources[0], loaded.end_ids),)), path).open()


class Writer:
    """A text that continues a prompt. `path` are the tokens after the prompt so far.

    Raises GenerationError for a model that cannot generate and an invalid path, TooLarge for a text that does not fit.
    """

    def __init__(
        self, loaded: Loaded, prompt: Prompt, path: Sequence[int] = (), room: int = 1, cached: bool = True
    ) -> None:
        check_generative(loaded)
        config = loaded.config
        self.loaded, self.prompt, self.stops = loaded, prompt, frozenset(loaded.end_ids)
        self.path = check_path(loaded, prompt, path)
        check_generation_fits(loaded, prompt, 1, len(path) + room, cached)
        self.draft = DecodingState(loaded, prompt, cached)
        self.n_prompt = self.draft.n
        self.ends = bool(path) and path[-1] in self.stops  # the last token is a stop token, which is never read
        for token in path[: len(path) - self.ends]:
            self.draft.append(torch.tensor([token]))
        self.logits: Tensor | None = None  # [vocab] float32 after the last token read
        self.site = "cross_attn" if config.kind == "encoder-decoder" else "attn"
        self.seen: dict[str, Any] = {}

    @property
    def is_over(self) -> bool:
        """True if no token can follow: the text has ended, or the position table is used up."""
        return self.ends or self.draft.is_full

    @torch.inference_mode()
    def open(self) -> Opening:
        """Read the prompt and the path, in one pass."""
        residual = self._pass()
        ids = [*self.draft.ids[0].tolist(), *(self.path[-1:] if self.ends else ())]
        n = residual.shape[0]
        head, losses, readings = head_of(self.loaded), [], []
        for rows in row_blocks(n, self.loaded.config.vocab_size * 4, LOGIT_BYTES):
            scores = head(residual[None, rows])[0].float()  # [pos, vocab]
            at = torch.arange(n)[rows].tolist()
            logits = self._allowed(scores, at)
            followed = [p for p in at if p + 1 < len(ids)]
            if followed:
                taken = torch.tensor([ids[p + 1] for p in followed], device=logits.device)[:, None]
                own = scores[: len(followed)].gather(-1, taken)
                # Among the allowed tokens and the actual one: a text may contain tokens that its model must not generate.
                among = logits[: len(followed)].scatter(-1, taken, own)
                losses.append((among.logsumexp(-1) - own[:, 0]).cpu().numpy())
            if detailed := [p for p in at if p >= n - DETAILED]:
                for p, weights in zip(detailed, self._rows(detailed), strict=True):
                    after = ids[p + 1] if p + 1 < len(ids) else None
                    readings.append(self._reading(p, ids[p], logits[p - at[0]], weights, after))
            self.logits = logits[-1]
        all_losses = np.concatenate(losses) if losses else np.zeros(0, np.float32)
        return Opening(all_losses, tuple(readings), self._memory_bytes())

    @torch.inference_mode()
    def read(self) -> None:
        """open() without readings, which take longer than the pass, for a caller that has them already."""
        scores = head_of(self.loaded)(self._pass()[None, -1:])[0].float()
        self.logits = self._allowed(scores, [self.draft.n - 1])[0]

    def turn_to(self, path: Sequence[int], room: int = 1) -> bool:
        """Switch to another path; only its different end is read again. Call read() next. Returns False if the cache does not have the
        common start. Raises as a new Writer does."""
        path = check_path(self.loaded, self.prompt, path)
        check_generation_fits(self.loaded, self.prompt, 1, len(path) + room, True)
        ends = bool(path) and path[-1] in self.stops
        tokens, own = path[: len(path) - ends], self.path[: len(self.path) - self.ends]
        shorter = min(len(tokens), len(own))
        same = next((i for i in range(shorter) if tokens[i] != own[i]), shorter)
        # At least one token is read, for the distribution after it.
        start = self.n_prompt + min(same, len(tokens) - 1)
        if not self.draft.cut(start):
            return False
        for token in (*self.prompt.last_read[0].ids, *tokens)[start:]:
            self.draft.append(torch.tensor([token]))
        self.path, self.ends, self.logits = path, ends, None
        return True

    @torch.inference_mode()
    def write(self, how: Sampling, token: int | None = None) -> tuple[ChosenToken, TokenDistribution | None]:
        """Choose the next token, unless it is given, and read it. The reading is None for a stop token, and if the position table is used
        up.

        The random number of a token depends only on the seed and its index in the path, so a resumed text continues as stream()
        would. Call open() or read() first.
        """
        if self.is_over or self.logits is None:
            raise GenerationError("The text has come to its end.")
        check_free(self.logits[None])
        token = self._draw(self.logits, how) if token is None else check_path(self.loaded, self.prompt, [token])[0]
        taken = _taken(self.logits, token)
        self.path = (*self.path, token)
        self.ends = token in self.stops
        if self.ends:
            return taken, None
        self.draft.append(torch.tensor([token]))
        start = time.perf_counter()
        residual = self._pass()
        position = self.draft.n - 1
        scores = head_of(self.loaded)(residual[None, -1:])[0].float()
        self.logits = logits = self._allowed(scores, [position])[0]
        if logits.device.type == "cuda":
            torch.cuda.synchronize(logits.device)
        seconds = time.perf_counter() - start
        (weights,) = self._rows([residual.shape[0] - 1])
        return taken, self._reading(position, token, logits, weights, None, seconds)

    def _allowed(self, logits: Tensor, positions: Sequence[int]) -> Tensor:
        """logits [pos, vocab] after these ascending positions, with -inf for tokens that may not follow (loaded.next_tokens)."""
        rule = self.loaded.next_tokens
        if rule.is_free:
            return logits
        keep = [True] * self.draft.n if self.draft.keep is None else self.draft.keep[0].tolist()
        real = [i for i in range(self.draft.n) if keep[i]]
        ids = self.draft.ids[0].tolist()
        lengths = [bisect_right(real, position) for position in positions]
        return mask_disallowed(
            logits, rule.following([ids[i] for i in real], lengths, bisect_left(real, self.n_prompt))
        )

    def _draw(self, logits: Tensor, how: Sampling) -> int:
        if how.temperature is None:
            return int(logits.argmax())
        generator = torch.Generator().manual_seed(how.seed)
        # One number for each token of the path, in the order of stream().
        draws = [torch.rand(1, 1, generator=generator, dtype=torch.float64) for _ in range(len(self.path) + 1)]
        return int(sample_token(*candidates(logits[None], *how.cuts), draws[-1]))

    def _pass(self) -> Tensor:
        """Read the new tokens, and return their last residual [pos, d_model]. `seen` then has the inputs of the attention patterns."""
        self.seen = {}
        names = [
            f"decoder.blocks.{layer}.{self.site}.{what}"
            for layer in range(self.loaded.config.n_decoder_layers)
            for what in ("hook_q", "hook_k", "hook_rule")
        ]
        hooks: dict[str, Hook] = {name: partial(self.seen.__setitem__, name) for name in names}
        with hooked(self.loaded.model, hooks):
            return self.draft.next_residual()[0]

    def _rows(self, queries: list[int]) -> np.ndarray:
        """Attention rows, float32 [query, layer, head, key], of tokens of the last pass, indexed from its first token."""
        layers = []
        n = self.draft.n
        for layer in range(self.loaded.config.n_decoder_layers):
            name = f"decoder.blocks.{layer}.{self.site}"
            q, k, rule = (self.seen[f"{name}.{what}"] for what in ("hook_q", "hook_k", "hook_rule"))
            q, k = q.transpose(1, 2), k.transpose(1, 2)  # [batch, head, pos, d_head]
            record = AttentionRecord(name, "decoder", layer, self.site, q, k, _no_values, rule)  # type: ignore[arg-type]
            rows = record.pattern(queries=queries).transpose(0, 1)  # [query, head, key]
            if self.site == "attn" and rows.shape[-1] < n:  # a window has dropped the first keys
                rows = torch.nn.functional.pad(rows, (n - rows.shape[-1], 0))
            layers.append(rows)
        return torch.stack(layers, 1).float().cpu().numpy()

    def _reading(
        self,
        position: int,
        token: int,
        logits: Tensor,
        weights: np.ndarray,
        after: int | None,
        seconds: float | None = None,
    ) -> TokenDistribution:
        """weights [layer, head, key], of which the visible keys are kept."""
        n_keys = position + 1 if self.site == "attn" else len(self.prompt.sources[0])
        n_listed = min(LISTED, max(1, int((~logits.isneginf()).sum())))  # without forbidden tokens
        best, ids = logits.topk(n_listed)
        others = logits.index_fill(0, ids, -torch.inf)
        temperatures = torch.tensor(TEMPERATURES, device=logits.device)[:, None]
        own_bytes = self._own_bytes()
        return TokenDistribution(
            position=position,
            id=token,
            ids=ids.int().cpu().numpy(),
            logits=best.cpu().numpy(),
            rest=(others[None] / temperatures).logsumexp(-1).cpu().numpy(),
            rows=weights[:, :, :n_keys],
            entropy=_entropy(logits),
            cache_bytes=own_bytes * (position + 1) // max(1, self.draft.n) if seconds is None else own_bytes,
            taken=None if after is None else _taken(logits, after),
            seconds=seconds,
        )

    def _own_bytes(self) -> int:
        return 0 if self.draft.cache is None else sum(layer.attn.nbytes for layer in self.draft.cache.layers)

    def _memory_bytes(self) -> int:
        if self.draft.cache is None:
            return 0
        return sum(layer.cross.nbytes for layer in self.draft.cache.layers if layer.cross is not None)


def _entropy(logits: Tensor) -> float:
    logs = logits.log_softmax(-1)
    return -(logs.exp() * logs).nan_to_num(0.0).sum().item() / math.log(2)  # forbidden tokens add nothing


def _no_values() -> Tensor:
    raise RuntimeError("the values of a reading are not kept")


def _taken(logits: Tensor, token: int) -> ChosenToken:
    own = logits[token]
    prob, rank = (own - logits.logsumexp(-1)).exp(), 1 + (logits > own).sum()
    return ChosenToken(token, prob.item(), int(rank))


def check_path(loaded: Loaded, prompt: Prompt, path: Sequence[int]) -> tuple[int, ...]:
    """Return the path. Raises GenerationError if it cannot follow the prompt."""
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
    """The logit lens (nostalgebraist 2020) at one position: the k most likely next tokens from the residual stream before and after every
    layer, and the rank of one token.

    Final norm, then the unembedding; with post-norm the stream is normed already. Raises IndexError for a position that was not read, and
    GenerationError.
    """
    check_generative(loaded)
    ids, n_prompt = whole_path(loaded, prompt, path)
    if not 0 <= token < loaded.config.vocab_size:
        raise GenerationError(f"Token number {token} is not in this model's vocabulary.")
    if not 0 <= position < len(ids):
        raise IndexError(f"position {position} of {len(ids)}")
    ids = ids[: position + 1]
    may_follow = loaded.next_tokens.following(ids, [len(ids)], n_prompt)
    stack, head, rows = loaded.model.stacks[-1], head_of(loaded), []
    for i, stream in enumerate(layer_streams(loaded, prompt, ids, [position])):
        with torch.inference_mode():
            logits = mask_disallowed(head(stack.norm(stream)[None])[0].float(), may_follow)[0]
            n_listed = min(k, max(1, int((~logits.isneginf()).sum())))
            probs, best = logits.softmax(-1).topk(n_listed)
        rank = 1 + int((logits > logits[token]).sum())
        named = labels(loaded, best.tolist())
        rows.append(LensRow(i - 1 if i else None, tuple(named), tuple(named.values()), tuple(probs.tolist()), rank))
    return rows


def whole_path(loaded: Loaded, prompt: Prompt, path: Sequence[int]) -> tuple[list[int], int]:
    """All tokens of a prompt and a path, and the number of those before the path. Raises GenerationError for an invalid path."""
    own = prompt.last_read[0].ids
    return [*own, *check_path(loaded, prompt, path)], len(own)


def layer_streams(loaded: Loaded, prompt: Prompt, ids: Sequence[int], positions: Sequence[int]) -> list[Tensor]:
    """The residual stream [position, d_model] before the first layer and after each, in a pass over `ids` after the prompt's source."""
    tokens = (from_ids(None, ids),)
    whole = Prompt(tokens) if prompt.targets is None else Prompt(prompt.sources, tokens)
    layers = range(loaded.config.n_decoder_layers)
    points = ["decoder.blocks.0.hook_resid_pre", *(f"decoder.blocks.{i}.hook_resid_post" for i in layers)]
    at = torch.tensor(positions, device=loaded.device)
    streams = prepare(loaded, whole, ()).moments(points, lambda _, x: x[0, at])
    return [streams[point] for point in points]


@torch.inference_mode()
def cache_cost(loaded: Loaded, prompt: Prompt, path: Sequence[int], n: int = 240, rounds: int = 5) -> CacheCost:
    """Measure the token after n others with and without a cache, and compare the predictions of both after the prompt and the path.

    The text is repeated until it has n tokens. Each time is the median of `rounds`.
    """
    check_generative(loaded)
    ids, n_prompt = whole_path(loaded, prompt, path)
    if path and path[-1] in loaded.end_ids:
        ids.pop()
    if loaded.config.has_position_table:
        n = min(n, loaded.config.n_ctx - rounds)
    if n < 2:
        raise GenerationError("This model has positions for so few tokens that there is nothing to time.")
    text = (ids * (1 + (n + rounds) // len(ids)))[: n + rounds]

    def draft(ids: list[int], cached: bool) -> DecodingState:
        tokens = (from_ids(None, ids),)
        whole = Prompt(tokens) if prompt.targets is None else Prompt(prompt.sources, tokens)
        check_generation_fits(loaded, whole, 1, 1, cached)
        return DecodingState(loaded, whole, cached)

    def seconds(draft: DecodingState) -> float:
        start = time.perf_counter()
        draft.next_logits().argmax().item()
        return time.perf_counter() - start

    cached = draft(text[: n - 1], True)
    cached.next_logits()
    with_cache = []
    for token in text[n - 1 : n - 1 + rounds]:
        cached.append(torch.tensor([token]))
        with_cache.append(seconds(cached))
    without = [seconds(draft(text[:n], False)) for _ in range(rounds)]

    stepped = draft(ids[:n_prompt], True)
    scores = [stepped.next_scores()[0]]
    for token in ids[n_prompt:]:
        stepped.append(torch.tensor([token]))
        scores.append(stepped.next_scores()[0])
    in_steps = torch.stack(scores)
    residual = draft(ids, False).next_residual()[:, n_prompt - 1 :]
    at_once = head_of(loaded)(residual)[0].float()  # [written + 1, vocab]
    difference = (at_once - in_steps).abs().max().item()
    same = bool((at_once.argmax(-1) == in_steps.argmax(-1)).all())
    return CacheCost(n, statistics.median(with_cache), statistics.median(without), len(scores), same, difference)


def labels(loaded: Loaded, ids: Iterable[int]) -> dict[int, str]:
    """Display strings of tokens outside any text: special ones by name, incomplete characters in the tokenizer's spelling."""
    tokenizer = loaded.tokenizer
    special = {} if tokenizer is None else tokenizer.get_added_tokens_decoder()
    found: dict[int, str] = {}
    for token in ids:
        string = None if tokenizer is None else tokenizer.id_to_token(token)
        if tokenizer is None or string is None or token in special:
            found[token] = str(token) if string is None else string
            continue
        try:
            piece = tokenizer.decode([token], skip_special_tokens=False)
        except Exception:  # a decoder that needs the previous token
            piece = ""
        found[token] = visible(piece) if piece and "\ufffd" not in piece else string
    return found


def glued(loaded: Loaded, ids: Iterable[int]) -> list[int]:
    """The tokens without a space before them, which join the previous token."""
    tokenizer = loaded.tokenizer
    if tokenizer is None:
        return []
    is_word_piece = isinstance(tokenizer.model, WordPiece)  # there a token begins a word unless it is marked
    special, spaces = tokenizer.get_added_tokens_decoder(), tuple(sign for signs in SPACE_SIGNS for sign in signs)

    def joins(string: str) -> bool:
        return string.startswith("##") if is_word_piece else not (string.startswith(spaces) or string[0].isspace())

    strings = ((token, tokenizer.id_to_token(token)) for token in dict.fromkeys(ids) if token not in special)
    return [token for token, string in strings if string and joins(string)]


def label(loaded: Loaded, token: int) -> str:
    """labels() of one token."""
    return labels(loaded, [token])[token]


def check_room(n: int, most: int) -> None:
    """Raise TextError if a path is longer than can be kept."""
    if n > most:
        raise TextError(f"{n:,} tokens are written; at most {most:,} can be. Take a shorter path.")


HEADS = 6  # of each token: the heads that add most to its logit
LOOKS = 6  # of each token: the attention edges that add most to its logit


@dataclass(frozen=True)
class AttentionEdge:
    """An attention edge of one head. `adds` is its direct contribution to the logit of the next token."""

    layer: int
    head: int
    key: int
    weight: float
    adds: float


@dataclass(frozen=True)
class HeadAttribution:
    """One head: the direct contribution of all its edges to a logit, and the edge that contributes most."""

    adds: float
    most: AttentionEdge


@dataclass(frozen=True)
class WordAttribution:
    """Attribution of the token after `position`: the heads and edges that add most to its logit, largest first."""

    position: int
    token: int
    heads: tuple[HeadAttribution, ...]
    looks: tuple[AttentionEdge, ...]


@dataclass(frozen=True)
class LensColumn:
    """Logit lens after `position`, from the embedding on: the most likely token of each layer, and the actual next token."""

    position: int
    token: int  # the actual next token
    ids: tuple[int, ...]
    probs: tuple[float, ...]
    own: tuple[float, ...]  # probability of the actual token
    ranks: tuple[int, ...]  # rank of the actual token


def attribute_tokens(loaded: Loaded, prompt: Prompt, path: Sequence[int]) -> tuple[WordAttribution, ...]:
    """Attribute each token of the path, and the prompt's last one before it, in one pass over the whole text.

    Only direct contributions are counted (Elhage et al. 2021); effects through later layers belong to those. Empty for a model whose logits
    are not a sum over edges. Raises GenerationError, and TooLarge.
    """
    check_generative(loaded)
    ids, n_prompt = whole_path(loaded, prompt, path)
    rows = range(max(0, min(n_prompt - 1, len(ids) - 1 - DETAILED)), len(ids) - 1)
    if not rows:
        return ()
    read = (from_ids(None, ids[:-1]),)
    run = trace_tokens(loaded, *((read, None) if prompt.targets is None else (prompt.sources, read)), ()).text(0)
    if not has_looks(run):
        return ()

    def best(edges: EdgeAttribution) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """[row, head] of the sums, the keys that add most, their weights, and their contributions."""
        adds, keys = edges.additions.max(-1)
        weights = edges.weights.gather(-1, keys[..., None])[..., 0]
        return edges.additions.sum(-1).T, keys.T, weights.T, adds.T

    layers = each_edge(asked(run, list(rows), [ids[position + 1] for position in rows], None), best)
    # [row, layer · head]
    sums, keys, weights, adds = (torch.stack(part, 1).flatten(1).cpu() for part in zip(*layers, strict=True))
    n_heads = loaded.config.n_heads

    def look(row: int, at: int) -> AttentionEdge:
        return AttentionEdge(
            at // n_heads, at % n_heads, int(keys[row, at]), weights[row, at].item(), adds[row, at].item()
        )

    def top(contributions: Tensor, k: int) -> list[int]:
        return contributions.topk(min(k, len(contributions))).indices.tolist()

    return tuple(
        WordAttribution(
            position,
            ids[position + 1],
            tuple(HeadAttribution(sums[row, at].item(), look(row, at)) for at in top(sums[row], HEADS)),
            tuple(look(row, at) for at in top(adds[row], LOOKS)),
        )
        for row, position in enumerate(rows)
    )


def lens_columns(
    loaded: Loaded, prompt: Prompt, path: Sequence[int], positions: Sequence[int]
) -> tuple[LensColumn, ...]:
    """lens() at many ascending positions of one text in one pass: the most likely token of each layer, and the rank of the actual one.

    Raises IndexError for a position without a next token, and GenerationError.
    """
    check_generative(loaded)
    ids, n_prompt = whole_path(loaded, prompt, path)
    if bad := [position for position in positions if not 0 <= position < len(ids) - 1]:
        raise IndexError(f"position {bad[0]} of {len(ids) - 1} that are followed by a token")
    positions = sorted(set(positions))
    if not positions:
        return ()
    stack, head = loaded.model.stacks[-1], head_of(loaded)
    actual = torch.tensor([ids[position + 1] for position in positions], device=loaded.device)[:, None]
    may_follow = loaded.next_tokens.following(ids[:-1], [position + 1 for position in positions], n_prompt)
    layers: list[Tensor] = []  # [row, 4]
    for stream in layer_streams(loaded, prompt, ids[:-1], positions):
        blocks = []
        with torch.inference_mode():
            for rows in row_blocks(len(positions), loaded.config.vocab_size * 4, LOGIT_BYTES):
                logits = mask_disallowed(head(stack.norm(stream[rows])[None])[0].float(), may_follow[rows])
                probs = logits.softmax(-1)
                best, tokens = probs.max(-1)
                ranks = 1 + (logits > logits.gather(-1, actual[rows])).sum(-1)
                own = probs.gather(-1, actual[rows])[:, 0]
                blocks.append(torch.stack([x.cpu().double() for x in (tokens, best, own, ranks)], 1))
        layers.append(torch.cat(blocks))
    columns = []
    for position, numbers in zip(positions, torch.stack(layers, 1), strict=True):
        tokens, best, own, ranks = numbers.T.tolist()
        words, ranks = tuple(map(int, tokens)), tuple(map(int, ranks))
        columns.append(LensColumn(position, ids[position + 1], words, tuple(best), tuple(own), ranks))
    return tuple(columns)
