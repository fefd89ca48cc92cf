"""What turns q·k into attention, kept as rules: who may look at whom, what distance adds, and the scale.

A mask or a positional bias is n×n numbers but a few words of rule. Models hand the rule to the fused kernel, traces keep
the rule, and cells are worked out only for the tile that somebody looks at. Masks are bool and True means may look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

REASONS = ("", "future", "padding", "outside the window", "edited", "masked by the caller")  # 0: it may look
BLOCK_BYTES = 1 << 26  # the most that one block of rows of a mask, bias or pattern may take: 64 MiB


@dataclass(frozen=True)
class MaskEdit:
    """One cell of a mask set by hand; head None means every head."""

    query: int
    key: int
    allowed: bool
    head: int | None = None


@dataclass(frozen=True, eq=False)
class MaskRule:
    """Who may look at whom, n_query queries at n_key keys.

    keep [batch, key] is True on real tokens and False on padding. given is a mask handed in from outside (core.capture),
    bool, broadcastable to [batch, head, query, key]. first_query is the place of query 0 among the keys: 0, unless earlier
    keys come from a cache.
    """

    n_heads: int
    n_query: int
    n_key: int
    causal: bool = False
    window: int | None = None  # |query − key| must stay below it
    keep: Tensor | None = None
    edits: tuple[MaskEdit, ...] = ()
    given: Tensor | None = None
    first_query: int = 0

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
    def _sees_all(self) -> bool:
        return not self._is_windowed and self.keep is None and self.given is None and not self.edits

    @property
    def _is_windowed(self) -> bool:
        """Whether the window hides anything at this length."""
        return self.window is not None and self.window < max(self.first_query + self.n_query, self.n_key)

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head or 1, query, key] bool for the positions asked for."""
        mask = torch.ones(1, 1, len(queries), len(keys), dtype=torch.bool, device=queries.device)
        places = queries + self.first_query if self.first_query else queries  # of the queries among the keys
        if self.causal:
            mask = mask & (keys <= places[:, None])
        if self.window is not None and self._is_windowed:
            mask = mask & ((places.int()[:, None] - keys.int()).abs() < self.window)
        if self.keep is not None:
            mask = mask & self.keep[:, None, None, keys]
        if self.given is not None:
            mask = mask & tile(self.given, queries, keys)
        if any(edit.head is not None for edit in self.edits):
            mask = mask.expand(-1, self.n_heads, -1, -1)
        if self.edits:
            mask = mask.clone()
        for edit in self.edits:
            cell = (queries == edit.query)[:, None] & (keys == edit.key)  # [query, key]
            heads = slice(None) if edit.head is None else slice(edit.head, edit.head + 1)
            mask[:, heads] = torch.where(cell, edit.allowed, mask[:, heads])
        return mask

    def reasons(self, queries: Tensor, keys: Tensor, head: int = 0, text: int = 0) -> Tensor:
        """[query, key] uint8: why each query may not look at each key, as an index into REASONS; 0 where it may.

        Where several reasons hold, the first of: edited, padding, future, outside the window, masked by the caller.
        """
        rule = self.of(text)
        block = rule.block(queries, keys)[0]
        allowed = block[head if len(block) > 1 else 0]
        places = queries + self.first_query  # of the queries among the keys
        code = torch.full_like(allowed, REASONS.index("masked by the caller"), dtype=torch.uint8)
        if rule.window is not None:
            code[(places[:, None] - keys).abs() >= rule.window] = REASONS.index("outside the window")
        if rule.causal:
            code[keys > places[:, None]] = REASONS.index("future")
        if rule.keep is not None:
            code[:, ~rule.keep[0, keys]] = REASONS.index("padding")
        for edit in rule.edits:
            if edit.head in (None, head):
                code[(queries == edit.query)[:, None] & (keys == edit.key)] = REASONS.index("edited")
        code[allowed] = 0
        return code

    def why_masked(self, query: int, key: int, head: int = 0, text: int = 0) -> str | None:
        """The reason why this query may not look at this key, in words; None where it may."""
        of = self.keep if self.keep is not None else self.given
        queries, keys = torch.tensor([[query], [key]], device=None if of is None else of.device)
        return REASONS[int(self.reasons(queries, keys, head, text))] or None

    def of(self, text: int) -> MaskRule:
        """The same rule for one text of the batch."""
        given = self.given if self.given is None or self.given.shape[0] == 1 else self.given[text : text + 1]
        return replace(self, keep=None if self.keep is None else self.keep[text : text + 1], given=given)


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """What the distance between two tokens adds to their score (ALiBi, T5).

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

    def of_last_keys(self, n: int) -> DistanceBias:
        """The same rule where only the last n keys are there to be looked at."""
        return replace(self, key_positions=self.key_positions[:, -n:])

    def of(self, text: int) -> DistanceBias:
        """The same rule for one text of the batch."""

        def row(positions: Tensor) -> Tensor:
            return positions[text : text + 1] if positions.shape[0] > 1 else positions

        return replace(self, query_positions=row(self.query_positions), key_positions=row(self.key_positions))


@dataclass(frozen=True, eq=False)
class GivenBias:
    """Numbers added to the scores that came from outside (core.capture), broadcastable to [batch, head, query, key]."""

    values: Tensor
    kind: str = "given"

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head or 1, query, key] float for the positions asked for."""
        return tile(self.values, queries, keys)

    def of(self, text: int) -> GivenBias:
        """The same numbers for one text of the batch."""
        return self if self.values.shape[0] == 1 else replace(self, values=self.values[text : text + 1])


BiasRule = DistanceBias | GivenBias


@dataclass(frozen=True, eq=False)
class ScoreRule:
    """softmax((q·k · scale + bias) / temperature) over what the mask allows: all of attention but q, k and v."""

    mask: MaskRule
    scale: float
    bias: BiasRule | None = None
    temperature: float = 1.0

    def of(self, text: int) -> ScoreRule:
        """The same rule for one text of the batch."""
        return replace(self, mask=self.mask.of(text), bias=None if self.bias is None else self.bias.of(text))

    def scores(self, q: Tensor, k: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch, head, query, key] before the mask, from q [batch, head, query, d_head] and k [batch, kv_head, key, d_head].

        q and k hold just the positions that `queries` and `keys` name.
        """
        scores = q @ _ungrouped(q, k).mT * self.scale
        if self.bias is not None:
            scores = scores + self.bias.block(queries, keys).to(scores.dtype)
        return scores if self.temperature == 1 else scores / self.temperature

    def masked(self, scores: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """The scores with -inf where the mask forbids to look."""
        return scores.masked_fill(~self.mask.block(queries, keys), float("-inf"))


def softmax(masked_scores: Tensor) -> Tensor:
    """Over keys; a row that may look at nothing becomes zeros, as the fused kernel leaves it, never NaN."""
    pattern = masked_scores.softmax(-1)
    # In place only without gradients: the backward pass of softmax reads its own output.
    return pattern.nan_to_num(nan=0.0) if pattern.requires_grad else pattern.nan_to_num_(nan=0.0)


def row_blocks(n_rows: int, bytes_per_row: int, most: int | None = None) -> Iterator[slice]:
    """Slices that cover n_rows, each within `most` bytes, BLOCK_BYTES unless given (and one row at least)."""
    step = max(1, (BLOCK_BYTES if most is None else most) // max(1, bytes_per_row))
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))


def tile(x: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """The asked-for rows and columns of x [..., query or 1, key or 1], which broadcasts."""
    x = x if x.shape[-2] == 1 else x[..., queries, :]
    return x if x.shape[-1] == 1 else x[..., keys]


def attend(q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> Tensor:
    """softmax(q kᵀ · scale + bias) v by the fused kernel: [batch, head, query, d_head].

    q is [batch, head, query, d_head]; k and v are [batch, kv_head, key, d_head]. Where the rule needs a mask or a bias
    as numbers, they are made for one block of rows at a time, so that no [head, query, key] tensor ever exists.
    """
    mask, scale = rule.mask, rule.scale / rule.temperature
    grouped = q.shape[1] != k.shape[1]
    if grouped and q.device.type != "cpu":
        # Off the CPU not every kernel knows grouped queries, and the fallback makes the whole [head, query, key] tensor.
        k, v, grouped = _ungrouped(q, k), _ungrouped(q, v), False
    if rule.bias is None and mask.is_free:
        return F.scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=grouped)
    if rule.bias is None and mask.is_causal_only and mask.n_query == mask.n_key:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=grouped)
    keys = torch.arange(mask.n_key, device=q.device)
    wide = q.shape[0] * (q.shape[1] if rule.bias is not None else 1) * mask.n_key * q.element_size()
    parts = []
    for rows in row_blocks(mask.n_query, wide):
        queries = torch.arange(rows.start, rows.stop, device=q.device)
        allowed = _kernel_mask(rule, queries, keys, q.dtype)
        parts.append(
            F.scaled_dot_product_attention(q[:, :, rows], k, v, attn_mask=allowed, scale=scale, enable_gqa=grouped)
        )
        del allowed  # before the next block is made
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def _kernel_mask(rule: ScoreRule, queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Tensor:
    """What the fused kernel takes for these rows: the mask as bool, or with a bias its numbers and -inf where it hides."""
    allowed = rule.mask.block(queries, keys)
    if rule.bias is None:
        return allowed
    return (rule.bias.block(queries, keys).to(dtype) / rule.temperature).masked_fill(~allowed, float("-inf"))


def _ungrouped(q: Tensor, x: Tensor) -> Tensor:
    """[batch, kv_head, key, d_head] -> [batch, head, key, d_head]"""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)
