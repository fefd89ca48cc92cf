"""What turns q·k into attention, kept as rules: who may look at whom, what distance adds, and the scale.

A mask or a positional bias is n×n numbers but a few words of rule. Models hand the rule to the fused kernel, traces keep
the rule, and cells are computed only for the tile on view. Masks are bool and True means may look.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from .given import Given
from .mask_edits import ALLOWED, HIDDEN, UNTOUCHED, Painted

REASONS = ("", "future", "padding", "outside the window", "edited", "masked by the caller")  # 0: it may look
WINDOW_ROWS = 256  # fewer rows at once than this gain less by their fewer keys than a call of the kernel costs
EXACT_ROWS = 1 << 16  # the efficient kernel of a card may be wrong where a text is longer (pytorch/pytorch#162588)
BLOCK_BYTES = 1 << 26  # the most that one block of rows of a mask, bias or pattern may take: 64 MiB


@dataclass(frozen=True, eq=False)
class MaskRule:
    """The mask of n_query queries over n_key keys.

    keep [batch, key] is True on real tokens and False on padding. given is a mask handed in from outside (core.capture).
    edits lie on top of everything else. Where some heads have an order of their own, by_head holds (causal, window) of
    these. first_query is the place of query 0 among the keys: 0, unless earlier keys come from a cache.
    """

    n_heads: int
    n_query: int
    n_key: int
    causal: bool = False
    window: int | None = None  # |query − key| must stay below it
    keep: Tensor | None = None
    edits: tuple[Painted, ...] = ()
    custom: Given | None = None
    first_query: int = 0
    by_head: Mapping[int, tuple[bool, int | None]] = field(default_factory=dict)

    @property
    def is_free(self) -> bool:
        """Every query may look at every key."""
        has_future = self.causal and self.n_key > self.first_query + 1
        return not has_future and self._sees_all

    @property
    def is_causal_only(self) -> bool:
        """Nothing but the future is hidden: the fused kernel then needs no mask at all."""
        return self.causal and self.first_query == 0 and self._sees_all

    @property
    def heads_differ(self) -> bool:
        """Whether one head may have another mask than the next."""
        given = self.custom is not None and self.custom.heads_differ
        return given or bool(self.by_head) or any(layer.heads_differ for layer in self.edits)

    @property
    def _sees_all(self) -> bool:
        hides_nothing = not self._is_windowed(self.window) and self.keep is None and self.custom is None
        return hides_nothing and not self.edits and not self.by_head

    def _is_windowed(self, window: int | None) -> bool:
        """Whether a window hides anything at this length."""
        return window is not None and window < max(self.first_query + self.n_query, self.n_key)

    def reach(self, rows: slice) -> slice:
        """The keys among which is all that these queries may see: with a window few, whatever the length of the text."""
        if self.edits or self.by_head:  # these may allow what order and window hide
            return slice(0, self.n_key)
        start, stop = 0, self.n_key
        if self.window is not None:
            start = max(0, self.first_query + rows.start - self.window + 1)
            stop = min(stop, self.first_query + rows.stop - 1 + self.window)
        return slice(start, min(stop, self.first_query + rows.stop) if self.causal else stop)

    def block(self, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """[batch or 1, head or 1, query, key] bool for the positions asked for, and the heads, None for all of them."""
        places = queries + self.first_query if self.first_query else queries  # of the queries among the keys
        mask = self._order(places, keys, self.causal, self.window)
        if self.by_head:
            chosen = range(self.n_heads) if heads is None else heads.tolist()
            own = {head: self._order(places, keys, *order) for head, order in self.by_head.items()}
            mask = torch.stack([own.get(head, mask) for head in chosen])  # [head, query, key]
        mask = mask.expand(1, -1 if mask.ndim == 3 else 1, -1, -1)
        if self.keep is not None:
            mask = mask & self.keep[:, None, None, keys]
        if self.custom is not None:
            given = self.custom.allowed(queries, keys)
            mask = mask & (given if heads is None or given.shape[1] == 1 else given[:, heads])
        for layer in self.edits:
            codes = layer.codes(places, keys, heads)
            mask = torch.where(codes == UNTOUCHED, mask, codes == ALLOWED)
        return mask

    def _order(self, places: Tensor, keys: Tensor, causal: bool, window: int | None) -> Tensor:
        """[query, key] bool: what the order of the tokens lets be seen."""
        mask = torch.ones(len(places), len(keys), dtype=torch.bool, device=places.device)
        if causal:
            mask = mask & (keys <= places[:, None])
        if window is not None and self._is_windowed(window):
            mask = mask & ((places.int()[:, None] - keys.int()).abs() < window)
        return mask

    def reasons(self, queries: Tensor, keys: Tensor, head: int = 0, text: int = 0) -> Tensor:
        """[query, key] uint8: why each query may not look at each key, as an index into REASONS; 0 where it may.

        Where several reasons hold, the first of: edited, padding, future, outside the window, masked by the caller.
        """
        rule = self.for_text(text)
        places = queries + self.first_query  # of the queries among the keys
        causal, window = rule.by_head.get(head, (rule.causal, rule.window))
        code = torch.zeros(len(queries), len(keys), dtype=torch.uint8, device=queries.device)
        if rule.custom is not None:
            given = rule.custom.allowed(queries, keys)[0]
            code[~given[head if len(given) > 1 else 0].expand_as(code)] = REASONS.index("masked by the caller")
        if window is not None:
            code[(places[:, None] - keys).abs() >= window] = REASONS.index("outside the window")
        if causal:
            code[keys > places[:, None]] = REASONS.index("future")
        if rule.keep is not None:
            code[:, ~rule.keep[0, keys]] = REASONS.index("padding")
        for layer in rule.edits:
            edit = layer.codes(places, keys, torch.tensor([head], device=queries.device))[0]
            code[edit == ALLOWED] = 0
            code[edit == HIDDEN] = REASONS.index("edited")
        return code

    def why_masked(self, query: int, key: int, head: int = 0, text: int = 0) -> str | None:
        """The reason why this query may not look at this key, in words; None where it may."""
        given = None if self.custom is None else self.custom.values
        of = given if self.keep is None else self.keep
        queries, keys = torch.tensor([[query], [key]], device=None if of is None else of.device)
        return REASONS[int(self.reasons(queries, keys, head, text))] or None

    def last_query(self) -> MaskRule:
        """The same rule for the last query alone; nothing may be given from outside, which is counted from the first."""
        return replace(self, n_query=1, first_query=self.first_query + self.n_query - 1)

    def for_text(self, text: int) -> MaskRule:
        """The same rule for one text of the batch."""
        keep = None if self.keep is None else self.keep[text : text + 1]
        return replace(self, keep=keep, custom=None if self.custom is None else self.custom.of(text))


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """The bias that the distance between two tokens adds to their score (ALiBi, T5).

    of_distance maps key position − query position, [batch, query, key], to [batch, head, query, key]. The positions
    [batch or 1, pos] are where the model believes the tokens to be, which padding or an intervention may move.
    """

    kind: str  # alibi, relative
    query_positions: Tensor
    key_positions: Tensor
    of_distance: Callable[[Tensor], Tensor]

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head, query, key] float for the positions asked for."""
        return self.of_distance(self.key_positions[:, None, keys] - self.query_positions[:, queries, None])

    def terms(self, queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
        """The same, by the name of its term."""
        return {"distance": self.block(queries, keys)}

    def last_keys(self, n: int) -> DistanceBias:
        """The same rule where only the last n keys are there to be looked at."""
        return replace(self, key_positions=self.key_positions[:, -n:])

    def last_query(self) -> DistanceBias:
        """The same rule for the last query alone."""
        return replace(self, query_positions=self.query_positions[:, -1:])

    def for_text(self, text: int) -> DistanceBias:
        """The same rule for one text of the batch."""

        def row(positions: Tensor) -> Tensor:
            return positions[text : text + 1] if positions.shape[0] > 1 else positions

        return replace(self, query_positions=row(self.query_positions), key_positions=row(self.key_positions))


@dataclass(frozen=True, eq=False)
class GivenBias:
    """Numbers added to the scores that came from outside (core.capture), without those that hide."""

    given: Given
    kind: str = "given"

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head or 1, query or 1, key or 1] float for the positions asked for."""
        return self.given.added(queries, keys)

    def terms(self, queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
        """The same, by the name of its term."""
        return {"given": self.block(queries, keys)}

    def for_text(self, text: int) -> GivenBias:
        """The same numbers for one text of the batch."""
        return replace(self, given=self.given.of(text))


@dataclass(frozen=True, eq=False)
class DisentangledBias:
    """The terms of distance in DeBERTa's scores (He et al. 2021, arXiv:2006.03654, §3.1), beside q·k of content and content.

    c2p  content to position: the query with the row of the distance, as a key
    p2c  position to content: the row of the distance, as a query, with the key

    q and k [batch, head, pos, d_head] are those of content; a table [head, row, d_head] is None where its term is left out.
    row_of maps query position − key position to a row of the tables.
    """

    q: Tensor
    k: Tensor
    key_rows: Tensor | None
    query_rows: Tensor | None
    scale: float
    query_positions: Tensor  # [batch or 1, pos]
    key_positions: Tensor
    row_of: Callable[[Tensor], Tensor]
    kind: str = "disentangled"

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch, head, query, key] float for the positions asked for."""
        terms = list(self.terms(queries, keys).values())
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def terms(self, queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
        """The same, term by term: c2p and p2c."""
        asked_on, queries, keys = queries.device, queries.to(self.q.device), keys.to(self.q.device)
        rows = self.row_of(self.query_positions[:, queries, None] - self.key_positions[:, None, keys])[:, None]
        found = {}
        if self.key_rows is not None:
            by_row = self.q[:, :, queries] @ self.key_rows.to(self.q.dtype).mT * self.scale  # [batch, head, query, row]
            found["c2p"] = by_row.gather(-1, rows.expand(*by_row.shape[:3], -1))
        if self.query_rows is not None:
            by_row = self.k[:, :, keys] @ self.query_rows.to(self.k.dtype).mT * self.scale  # [batch, head, key, row]
            found["p2c"] = by_row.gather(-1, rows.mT.expand(*by_row.shape[:3], -1)).mT
        return {name: term.to(asked_on) for name, term in found.items()}

    def for_text(self, text: int) -> DisentangledBias:
        """The same rule for one text of the batch."""

        def row(x: Tensor) -> Tensor:
            return x[text : text + 1] if x.shape[0] > 1 else x

        return self._each(row, row)

    def first(self, n: int) -> DisentangledBias:
        """The same rule for only the first n tokens."""
        return self._each(lambda x: x[:, :, :n].clone(), lambda x: x[:, :n].clone())

    def _each(self, of_heads: Callable[[Tensor], Tensor], of_positions: Callable[[Tensor], Tensor]) -> DisentangledBias:
        return replace(
            self,
            q=of_heads(self.q),
            k=of_heads(self.k),
            query_positions=of_positions(self.query_positions),
            key_positions=of_positions(self.key_positions),
        )


BiasRule = DistanceBias | GivenBias | DisentangledBias


@dataclass(frozen=True, eq=False)
class ScoreRule:
    """softmax((q·k · scale + bias) / temperature) over what the mask allows: all of attention but q, k and v.

    With a softcap c, q·k · scale becomes c · tanh(q·k · scale / c) (Gemma 2). `sinks` [head] are scores of no key that take
    part in the softmax, so that a row's weights may sum to less than 1 (gpt-oss).

    A score that the mask hides becomes `mask_value`. With `mask_after_softmax`, the mask comes after the softmax instead: hidden weights become
    0, and their share is not redistributed. Where a caller's mask hides by finite numbers, the softmax takes these.
    """

    mask: MaskRule
    scale: float
    bias: BiasRule | None = None
    temperature: float = 1.0
    mask_value: float = float("-inf")
    mask_after_softmax: bool = False
    softcap: float | None = None
    sinks: Tensor | None = None

    @property
    def is_fused(self) -> bool:
        """Whether the fused kernel can do it."""
        return self._is_filled and not self.mask_after_softmax and self.softcap is None and self.sinks is None

    @property
    def _is_filled(self) -> bool:
        """A hidden score is −∞."""
        return self.mask_value == float("-inf")

    def sinks_of(self, heads: Tensor | None = None) -> Tensor | None:
        """[head, 1, 1]: the scores of the sinks as the softmax takes them, of these heads; None where there are none."""
        if self.sinks is None:
            return None
        of_heads = self.sinks if heads is None else self.sinks[heads.to(self.sinks.device)]
        return of_heads[:, None, None] / self.temperature

    def for_text(self, text: int) -> ScoreRule:
        """The same rule for one text of the batch."""
        return replace(
            self, mask=self.mask.for_text(text), bias=None if self.bias is None else self.bias.for_text(text)
        )

    def scores(self, q: Tensor, k: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch, head, query, key] before the mask, from q [batch, head, query, d_head] and k [batch, kv_head, key, d_head].

        q and k hold just the positions that `queries` and `keys` name.
        """
        scores = self.capped(q @ _repeat_kv(q, k).mT * self.scale)
        if self.bias is not None:
            scores = scores + self.bias.block(queries, keys).to(scores.dtype)
        return scores if self.temperature == 1 else scores / self.temperature

    def capped(self, scores: Tensor) -> Tensor:
        """Scores before bias and mask, kept within the softcap where there is one."""
        return scores if self.softcap is None else (scores / self.softcap).tanh() * self.softcap

    def masked(self, scores: Tensor, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """The scores [batch, head, query, key] as the softmax takes them: `mask_value` where the mask forbids to look."""
        if self.mask_after_softmax:
            return scores
        value = (
            self.mask_value if self._is_filled else max(self.mask_value, torch.finfo(scores.dtype).min)
        )  # -1e9 is beyond float16
        return scores.masked_fill(~self.mask.block(queries, keys, heads), value)

    def pattern(self, masked_scores: Tensor, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """The weights [batch, head, query, key] from what masked() gives for the same queries, and every key."""
        pattern = softmax(masked_scores, self.sinks_of(heads))
        return pattern * self.mask.block(queries, keys, heads) if self.mask_after_softmax else pattern


def softmax(masked_scores: Tensor, sinks: Tensor | None = None) -> Tensor:
    """Over keys, and `sinks` [head, 1, 1] where there are some, whose own weights are left out. A row that may look at nothing
    (all −inf) becomes zeros, as the fused kernel leaves it; any other row that is no numbers stays so, because its model has
    come to that."""
    if sinks is not None:
        columns = sinks.to(masked_scores.dtype).expand(*masked_scores.shape[:-1], 1)
        return torch.cat([masked_scores, columns], dim=-1).softmax(-1)[..., :-1]
    pattern = masked_scores.softmax(-1)
    blocked = masked_scores.detach().amax(-1, keepdim=True) == float("-inf")
    # In place only without gradients: the backward pass of softmax reads its own output.
    return pattern.masked_fill(blocked, 0.0) if pattern.requires_grad else pattern.masked_fill_(blocked, 0.0)


def row_blocks(n_rows: int, bytes_per_row: int, most: int | None = None, rows: int | None = None) -> Iterator[slice]:
    """Slices that cover n_rows, each within `most` bytes, BLOCK_BYTES unless given (and one row at least), and within `rows`."""
    step = max(1, (BLOCK_BYTES if most is None else most) // max(1, bytes_per_row))
    step = step if rows is None else min(step, rows)
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))


def attend(q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> Tensor:
    """softmax(q kᵀ · scale + bias) v by the fused kernel: [batch, head, query, d_head].

    q is [batch, head, query, d_head]; k and v are [batch, kv_head, key, d_head]. Where the rule needs a mask or a bias
    as numbers, they are made for one block of rows at a time, so that no [head, query, key] tensor ever exists.
    """
    if not rule.is_fused:
        return _in_steps(q, k, v, rule)
    mask, scale = rule.mask, rule.scale / rule.temperature
    known = rule.bias is None and not _masks_nan(q, k)  # the kernel knows the mask by itself
    is_causal = mask.is_causal_only and mask.n_query == mask.n_key
    if known and (mask.is_free or is_causal):
        is_causal = is_causal and not mask.is_free
        if supports_gqa(q, k, v, is_causal=is_causal):
            grouped = q.shape[1] != k.shape[1]
            return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=scale, enable_gqa=grouped)
        if mask.is_free:
            return _sdpa(q, k, v, None, scale)
        if supports_is_causal(q, k, v):
            return attend_per_group(q, k, v, scale)
    # A block of rows needs no more keys than its rows may see, so that a window costs what it lets through.
    parts = []
    for rows in row_blocks(mask.n_query, row_bytes(q, k, rule), rows=window_rows(mask)):
        seen = mask.reach(rows)
        queries = torch.arange(rows.start, rows.stop, device=q.device)
        allowed = _kernel_mask(rule, queries, torch.arange(seen.start, seen.stop, device=q.device), q.dtype)
        parts.append(_sdpa(q[:, :, rows], k[:, :, seen], v[:, :, seen], allowed, scale))
        del allowed  # before the next block is made
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def row_bytes(q: Tensor, k: Tensor, rule: ScoreRule) -> int:
    """The bytes of one row of what the kernel is given as a mask or a bias."""
    masks = q.shape[1] if rule.bias is not None or rule.mask.heads_differ else 1  # of each text
    if masks == 1 and not shares_keys(q, k):
        masks = q.shape[1] // k.shape[1]  # one below the other, see _sdpa
    return q.shape[0] * masks * rule.mask.n_key * q.element_size()


def window_rows(mask: MaskRule) -> int | None:
    """How many rows make a block where a window keeps all but few keys away: their own number of keys, and WINDOW_ROWS at least."""
    if mask.window is None or mask.edits or mask.by_head:
        return None
    return max(mask.window, WINDOW_ROWS)


def shares_keys(q: Tensor, k: Tensor) -> bool:
    """Whether every kernel takes these heads as they are: a CPU's share keys and values among the heads of a group."""
    return q.shape[1] == k.shape[1] or q.device.type == "cpu"


def supports_gqa(q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool) -> bool:
    """Whether a kernel without a mask shares the keys among the heads of a group. Where none does, torch's way out makes
    the whole [head, query, key] tensor."""
    if shares_keys(q, k):
        return True
    if q.device.type != "cuda":
        return False
    asked = torch.backends.cuda.SDPAParams(q, k, v, None, 0.0, is_causal, True)
    return torch.backends.cuda.can_use_flash_attention(asked)


def supports_is_causal(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether a kernel of a card takes the heads of groups in turns, as attend_per_group() gives them to it."""
    if q.device.type != "cuda" or q.shape[2] > EXACT_ROWS:
        return False
    asked = torch.backends.cuda.SDPAParams(q[:, :: q.shape[1] // k.shape[1]], k, v, None, 0.0, True, False)
    return torch.backends.cuda.can_use_efficient_attention(asked)


def attend_per_group(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Causal attention of the first head of every group, then of the second: no mask as numbers, no copy of keys and values."""
    heads = q.unflatten(1, (k.shape[1], -1)).unbind(2)  # each [batch, kv_head, query, d_head]
    parts = [F.scaled_dot_product_attention(some, k, v, is_causal=True, scale=scale) for some in heads]
    return torch.stack([z.transpose(1, 2) for z in parts], dim=3).flatten(2, 3).transpose(1, 2)


def _sdpa(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, scale: float) -> Tensor:
    """The kernel with a mask or a bias as numbers, [batch or 1, head or 1, query, key], or with none.

    Off the CPU no kernel both takes a mask and shares keys among heads. So the queries of a group are laid below each
    other there, as more rows of one head: keys and values are not copied.
    """
    group = q.shape[1] // k.shape[1]
    if shares_keys(q, k):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, scale=scale, enable_gqa=group > 1)
    if allowed is not None:
        heads = allowed.expand(-1, q.shape[1], -1, -1) if allowed.shape[1] > 1 else allowed.expand(-1, group, -1, -1)
        allowed = heads.unflatten(1, (-1, group)).flatten(2, 3)  # [batch or 1, kv_head or 1, group * query, key]
    rows = q.unflatten(1, (-1, group)).flatten(2, 3)  # [batch, kv_head, group * query, d_head]
    z = F.scaled_dot_product_attention(rows, k, v, attn_mask=allowed, scale=scale)
    return z.unflatten(2, (group, -1)).flatten(1, 2)


def _in_steps(q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> Tensor:
    """attend() without a fused kernel: the textbook's steps in float32, for one block of rows at a time."""
    keys = torch.arange(k.shape[2], device=q.device)
    parts = []
    for rows in row_blocks(q.shape[2], q.shape[0] * q.shape[1] * k.shape[2] * 4):
        queries = torch.arange(rows.start, rows.stop, device=q.device)
        scores = rule.masked(rule.scores(q[:, :, rows].float(), k.float(), queries, keys), queries, keys)
        pattern = rule.pattern(scores, queries, keys)
        parts.append((pattern @ _repeat_kv(q, v).float()).to(q.dtype))
        del scores, pattern  # before the next block is made
    return torch.cat(parts, dim=2)


def _masks_nan(q: Tensor, k: Tensor) -> bool:
    """Whether the CPU's kernel without a mask would give zeros for a row that is no numbers; with one it does not.

    One sum says so at the price of reading q and k once: it is NaN if any of them is, or if infinities meet.
    """
    is_real = type(q) is Tensor and q.device.type == "cpu"  # a tracer's tensor has no numbers
    return is_real and math.isnan(float(q.detach().sum() + k.detach().sum()))


def _kernel_mask(rule: ScoreRule, queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Tensor:
    """The fused kernel's mask argument for these rows: the mask as bool, or with a bias its numbers and -inf where it hides."""
    given = rule.mask.custom
    if given is not None and given.is_soft:
        numbers = given.taken(queries, keys).to(dtype) / rule.temperature
        return numbers.expand(-1, -1, len(queries), len(keys))
    allowed = rule.mask.block(queries, keys)
    if rule.bias is None:
        return allowed
    return (rule.bias.block(queries, keys).to(dtype) / rule.temperature).masked_fill(~allowed, float("-inf"))


def _repeat_kv(q: Tensor, x: Tensor) -> Tensor:
    """[batch, kv_head, key, d_head] -> [batch, head, key, d_head]"""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)
