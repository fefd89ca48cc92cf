"""Rules that turn q·k into attention weights: the mask, the distance bias and the scale.

A mask or a distance bias has n×n cells but a short rule. Models pass the rule to the fused kernel, traces store it, and
cells are computed only for the tile on screen. Masks are bool; True is visible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from .custom_mask import ALLOWED, HIDDEN, UNTOUCHED, CustomMask, Painted

REASONS = ("", "future", "padding", "outside the window", "edited", "masked by the caller")  # 0: visible
WINDOW_ROWS = 256  # with fewer rows per block, a kernel call costs more than the keys it saves
EXACT_ROWS = 1 << 16  # CUDA's efficient kernel may be wrong for longer texts (pytorch/pytorch#162588)
BLOCK_BYTES = 1 << 26  # largest block of rows of a mask, bias or pattern: 64 MiB


@dataclass(frozen=True, eq=False)
class MaskRule:
    """The mask of n_query queries over n_key keys.

    keep [batch, key] is True for real tokens and False for padding. custom is the caller's mask (core.capture). edits
    override everything else. by_head holds (causal, window) of heads that differ from the others. first_query is the
    position of query 0 among the keys: 0, unless earlier keys come from a cache.
    """

    n_heads: int
    n_query: int
    n_key: int
    causal: bool = False
    window: int | None = None  # visible if |query − key| is below it
    keep: Tensor | None = None
    edits: tuple[Painted, ...] = ()
    custom: CustomMask | None = None
    first_query: int = 0
    by_head: Mapping[int, tuple[bool, int | None]] = field(default_factory=dict)

    @property
    def is_free(self) -> bool:
        """True if every key is visible to every query."""
        has_future = self.causal and self.n_key > self.first_query + 1
        return not has_future and self._sees_all

    @property
    def is_causal_only(self) -> bool:
        """True if only the future is masked: the fused kernel then needs no mask."""
        return self.causal and self.first_query == 0 and self._sees_all

    @property
    def heads_differ(self) -> bool:
        """True if heads may have different masks."""
        custom = self.custom is not None and self.custom.heads_differ
        return custom or bool(self.by_head) or any(layer.heads_differ for layer in self.edits)

    @property
    def _sees_all(self) -> bool:
        hides_nothing = not self._is_windowed(self.window) and self.keep is None and self.custom is None
        return hides_nothing and not self.edits and not self.by_head

    def _is_windowed(self, window: int | None) -> bool:
        """True if the window masks anything at this length."""
        return window is not None and window < max(self.first_query + self.n_query, self.n_key)

    def reach(self, rows: slice) -> slice:
        """A range that contains all keys visible to these queries; with a window it is short for any text length."""
        if self.edits or self.by_head:  # may unmask cells outside the order and window
            return slice(0, self.n_key)
        start, stop = 0, self.n_key
        if self.window is not None:
            start = max(0, self.first_query + rows.start - self.window + 1)
            stop = min(stop, self.first_query + rows.stop - 1 + self.window)
        return slice(start, min(stop, self.first_query + rows.stop) if self.causal else stop)

    def block(self, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """[batch or 1, head or 1, query, key] bool for these positions and heads (None: all)."""
        places = queries + self.first_query if self.first_query else queries  # positions of the queries among the keys
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
        """[query, key] bool: visible by causal order and window."""
        mask = torch.ones(len(places), len(keys), dtype=torch.bool, device=places.device)
        if causal:
            mask = mask & (keys <= places[:, None])
        if window is not None and self._is_windowed(window):
            mask = mask & ((places.int()[:, None] - keys.int()).abs() < window)
        return mask

    def reasons(self, queries: Tensor, keys: Tensor, head: int = 0, text: int = 0) -> Tensor:
        """[query, key] uint8: why each cell is masked, as an index into REASONS; 0 if visible.

        Of several reasons, the first of: edited, padding, future, outside the window, masked by the caller.
        """
        rule = self.for_text(text)
        places = queries + self.first_query  # positions of the queries among the keys
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
        """Why this key is masked for this query, in words; None if visible."""
        custom = None if self.custom is None else self.custom.values
        stored = custom if self.keep is None else self.keep
        queries, keys = torch.tensor([[query], [key]], device=None if stored is None else stored.device)
        return REASONS[int(self.reasons(queries, keys, head, text))] or None

    def last_query(self) -> MaskRule:
        """The rule of the last query only; not with a custom mask, whose rows count from the first query."""
        return replace(self, n_query=1, first_query=self.first_query + self.n_query - 1)

    def for_text(self, text: int) -> MaskRule:
        """The rule of one text of the batch."""
        keep = None if self.keep is None else self.keep[text : text + 1]
        return replace(self, keep=keep, custom=None if self.custom is None else self.custom.of(text))


@dataclass(frozen=True, eq=False)
class DistanceBias:
    """Bias added to scores by token distance (ALiBi, T5).

    of_distance maps key position − query position, [batch, query, key], to [batch, head, query, key]. The positions
    [batch or 1, pos] are the model's own, which padding or an intervention may change.
    """

    kind: str  # alibi, relative
    query_positions: Tensor
    key_positions: Tensor
    of_distance: Callable[[Tensor], Tensor]

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head, query, key] float for these positions."""
        return self.of_distance(self.key_positions[:, None, keys] - self.query_positions[:, queries, None])

    def terms(self, queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
        """block() by term name."""
        return {"distance": self.block(queries, keys)}

    def last_keys(self, n: int) -> DistanceBias:
        """The rule for the last n keys only."""
        return replace(self, key_positions=self.key_positions[:, -n:])

    def last_query(self) -> DistanceBias:
        """The rule of the last query only."""
        return replace(self, query_positions=self.query_positions[:, -1:])

    def for_text(self, text: int) -> DistanceBias:
        """The rule of one text of the batch."""

        def row(positions: Tensor) -> Tensor:
            return positions[text : text + 1] if positions.shape[0] > 1 else positions

        return replace(self, query_positions=row(self.query_positions), key_positions=row(self.key_positions))


@dataclass(frozen=True, eq=False)
class GivenBias:
    """The caller's additive mask (core.capture), without the values that mask."""

    given: CustomMask
    kind: str = "given"

    def block(self, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch or 1, head or 1, query or 1, key or 1] float for these positions."""
        return self.given.added(queries, keys)

    def terms(self, queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
        """block() by term name."""
        return {"given": self.block(queries, keys)}

    def for_text(self, text: int) -> GivenBias:
        """The bias of one text of the batch."""
        return replace(self, given=self.given.of(text))


@dataclass(frozen=True, eq=False)
class DisentangledBias:
    """The distance terms of DeBERTa's scores (He et al. 2021, arXiv:2006.03654, §3.1), added to q·k.

    c2p  content to position: query · key row of the distance
    p2c  position to content: query row of the distance · key

    q and k are [batch, head, pos, d_head]. key_rows and query_rows are [head, row, d_head], or None without that term.
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
        """[batch, head, query, key] float for these positions."""
        terms = list(self.terms(queries, keys).values())
        return terms[0] if len(terms) == 1 else terms[0] + terms[1]

    def terms(self, queries: Tensor, keys: Tensor) -> dict[str, Tensor]:
        """block() by term: c2p and p2c."""
        device, queries, keys = queries.device, queries.to(self.q.device), keys.to(self.q.device)
        rows = self.row_of(self.query_positions[:, queries, None] - self.key_positions[:, None, keys])[:, None]
        found = {}
        if self.key_rows is not None:
            by_row = self.q[:, :, queries] @ self.key_rows.to(self.q.dtype).mT * self.scale  # [batch, head, query, row]
            found["c2p"] = by_row.gather(-1, rows.expand(*by_row.shape[:3], -1))
        if self.query_rows is not None:
            by_row = self.k[:, :, keys] @ self.query_rows.to(self.k.dtype).mT * self.scale  # [batch, head, key, row]
            found["p2c"] = by_row.gather(-1, rows.mT.expand(*by_row.shape[:3], -1)).mT
        return {name: term.to(device) for name, term in found.items()}

    def for_text(self, text: int) -> DisentangledBias:
        """The rule of one text of the batch."""

        def row(x: Tensor) -> Tensor:
            return x[text : text + 1] if x.shape[0] > 1 else x

        return self._each(row, row)

    def first(self, n: int) -> DisentangledBias:
        """The rule of the first n tokens only."""
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
    """softmax((q·k · scale + bias) / temperature) over the visible keys: all of attention except q, k and v.

    With a softcap c, q·k · scale becomes c · tanh(q·k · scale / c) (Gemma 2). `sinks` [head] are extra scores without a
    key, so a row's weights may sum to less than 1 (gpt-oss).

    Masked scores become `mask_value`. With `mask_after_softmax`, masked weights are set to 0 after the softmax instead, and
    their share is not redistributed. Finite values of a caller's mask are added to the scores.
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
        """True if the fused kernel can compute it."""
        plain = self.softcap is None and self.sinks is None
        return plain and self.mask_value == float("-inf") and not self.mask_after_softmax

    def sinks_of(self, heads: Tensor | None = None) -> Tensor | None:
        """[head, 1, 1]: the sinks' scores of these heads, divided by the temperature; None without sinks."""
        if self.sinks is None:
            return None
        of_heads = self.sinks if heads is None else self.sinks[heads.to(self.sinks.device)]
        return of_heads[:, None, None] / self.temperature

    def for_text(self, text: int) -> ScoreRule:
        """The rule of one text of the batch."""
        return replace(
            self, mask=self.mask.for_text(text), bias=None if self.bias is None else self.bias.for_text(text)
        )

    def scores(self, q: Tensor, k: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
        """[batch, head, query, key] before the mask, from q [batch, head, query, d_head] and k [batch, kv_head, key, d_head].

        q and k contain only the positions `queries` and `keys`.
        """
        scores = self.capped(q @ _repeat_kv(q, k).mT * self.scale)
        if self.bias is not None:
            scores = scores + self.bias.block(queries, keys).to(scores.dtype)
        return scores if self.temperature == 1 else scores / self.temperature

    def capped(self, scores: Tensor) -> Tensor:
        """Scores before bias and mask, with the softcap applied."""
        return scores if self.softcap is None else (scores / self.softcap).tanh() * self.softcap

    def masked(self, scores: Tensor, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """The input of the softmax, [batch, head, query, key]: `mask_value` where masked."""
        if self.mask_after_softmax:
            return scores
        value = self.mask_value
        if value != float("-inf"):
            value = max(value, torch.finfo(scores.dtype).min)  # -1e9 is beyond float16
        return scores.masked_fill(~self.mask.block(queries, keys, heads), value)

    def pattern(self, masked_scores: Tensor, queries: Tensor, keys: Tensor, heads: Tensor | None = None) -> Tensor:
        """Attention weights [batch, head, query, key] from masked() of these queries and all keys."""
        pattern = softmax(masked_scores, self.sinks_of(heads))
        return pattern * self.mask.block(queries, keys, heads) if self.mask_after_softmax else pattern


def softmax(masked_scores: Tensor, sinks: Tensor | None = None) -> Tensor:
    """Softmax over the keys and `sinks` [head, 1, 1], whose own weights are left out.

    A fully masked row (all −inf) becomes zeros, as in the fused kernel. NaN from the model stays NaN.
    """
    if sinks is not None:
        columns = sinks.to(masked_scores.dtype).expand(*masked_scores.shape[:-1], 1)
        return torch.cat([masked_scores, columns], dim=-1).softmax(-1)[..., :-1]
    pattern = masked_scores.softmax(-1)
    blocked = masked_scores.detach().amax(-1, keepdim=True) == float("-inf")
    # In place only without gradients: softmax uses its output in the backward pass.
    return pattern.masked_fill(blocked, 0.0) if pattern.requires_grad else pattern.masked_fill_(blocked, 0.0)


def row_blocks(n_rows: int, bytes_per_row: int, most: int | None = None, rows: int | None = None) -> Iterator[slice]:
    """Slices that cover n_rows, each of at least one row, at most `rows` rows and `most` bytes (default BLOCK_BYTES)."""
    step = max(1, (BLOCK_BYTES if most is None else most) // max(1, bytes_per_row))
    step = step if rows is None else min(step, rows)
    for start in range(0, n_rows, step):
        yield slice(start, min(n_rows, start + step))


def attend(q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> Tensor:
    """softmax(q kᵀ · scale + bias) v by the fused kernel: [batch, head, query, d_head].

    q is [batch, head, query, d_head]; k and v are [batch, kv_head, key, d_head]. A mask or bias tensor is made for one block
    of rows at a time, so no [head, query, key] tensor is ever materialised.
    """
    if not rule.is_fused:
        return _eager_blocks(q, k, v, rule)
    mask, scale = rule.mask, rule.scale / rule.temperature
    needs_no_tensor = rule.bias is None and not _masks_nan(q, k)
    is_causal = mask.is_causal_only and mask.n_query == mask.n_key
    if needs_no_tensor and (mask.is_free or is_causal):
        is_causal = is_causal and not mask.is_free
        if supports_gqa(q, k, v, is_causal=is_causal):
            grouped = q.shape[1] != k.shape[1]
            return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=scale, enable_gqa=grouped)
        if mask.is_free:
            return _sdpa(q, k, v, None, scale)
        if supports_is_causal(q, k, v):
            return attend_per_group(q, k, v, scale)
    # A block of rows takes only the keys visible to it, so that a window saves time.
    parts = []
    for rows in row_blocks(mask.n_query, row_bytes(q, k, rule), rows=window_rows(mask)):
        keys = mask.reach(rows)
        queries = torch.arange(rows.start, rows.stop, device=q.device)
        attn_mask = _kernel_mask(rule, queries, torch.arange(keys.start, keys.stop, device=q.device), q.dtype)
        parts.append(_sdpa(q[:, :, rows], k[:, :, keys], v[:, :, keys], attn_mask, scale))
        del attn_mask  # before the next block is made
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)


def row_bytes(q: Tensor, k: Tensor, rule: ScoreRule) -> int:
    """Bytes of one row of the kernel's mask or bias tensor."""
    masks = q.shape[1] if rule.bias is not None or rule.mask.heads_differ else 1  # per text
    if masks == 1 and not shares_keys(q, k):
        masks = q.shape[1] // k.shape[1]  # stacked as rows, see _sdpa
    return q.shape[0] * masks * rule.mask.n_key * q.element_size()


def window_rows(mask: MaskRule) -> int | None:
    """Rows per block with a sliding window: its size, and at least WINDOW_ROWS; None without a window."""
    if mask.window is None or mask.edits or mask.by_head:
        return None
    return max(mask.window, WINDOW_ROWS)


def shares_keys(q: Tensor, k: Tensor) -> bool:
    """True if every kernel takes these heads as they are; CPU kernels support grouped-query attention."""
    return q.shape[1] == k.shape[1] or q.device.type == "cpu"


def supports_gqa(q: Tensor, k: Tensor, v: Tensor, *, is_causal: bool) -> bool:
    """True if a kernel without a mask supports grouped-query attention here. Without one, torch falls back to a kernel that
    materialises [head, query, key]."""
    if shares_keys(q, k):
        return True
    if q.device.type != "cuda":
        return False
    params = torch.backends.cuda.SDPAParams(q, k, v, None, 0.0, is_causal, True)
    return torch.backends.cuda.can_use_flash_attention(params)


def supports_is_causal(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """True if a CUDA kernel can compute attend_per_group()."""
    if q.device.type != "cuda" or q.shape[2] > EXACT_ROWS:
        return False
    params = torch.backends.cuda.SDPAParams(q[:, :: q.shape[1] // k.shape[1]], k, v, None, 0.0, True, False)
    return torch.backends.cuda.can_use_efficient_attention(params)


def attend_per_group(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    """Causal attention of the first head of every group, then the second, and so on: no mask tensor, no copy of k and v."""
    heads = q.unflatten(1, (k.shape[1], -1)).unbind(2)  # each [batch, kv_head, query, d_head]
    parts = [F.scaled_dot_product_attention(queries, k, v, is_causal=True, scale=scale) for queries in heads]
    return torch.stack([z.transpose(1, 2) for z in parts], dim=3).flatten(2, 3).transpose(1, 2)


def _sdpa(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, scale: float) -> Tensor:
    """scaled_dot_product_attention with a mask or bias tensor, [batch or 1, head or 1, query, key], or without.

    CUDA kernels do not combine a mask with grouped-query attention. There, the queries of a group are stacked as rows of
    one head, so that keys and values are not copied.
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


def _eager_blocks(q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> Tensor:
    """attend() without a fused kernel: eager attention in float32, for one block of rows at a time."""
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
    """True if the CPU kernel without a mask would return zeros for NaN rows; with a mask it does not.

    Tested by one sum over q and k, which is NaN if any element is, or if infinities of both signs meet.
    """
    is_real = type(q) is Tensor and q.device.type == "cpu"  # fake tensors have no values
    return is_real and math.isnan(float(q.detach().sum() + k.detach().sum()))


def _kernel_mask(rule: ScoreRule, queries: Tensor, keys: Tensor, dtype: torch.dtype) -> Tensor:
    """attn_mask of the fused kernel for these rows: bool, or with a bias its values and -inf where masked."""
    custom = rule.mask.custom
    if custom is not None and custom.is_soft:
        values = custom.taken(queries, keys).to(dtype) / rule.temperature
        return values.expand(-1, -1, len(queries), len(keys))
    allowed = rule.mask.block(queries, keys)
    if rule.bias is None:
        return allowed
    return (rule.bias.block(queries, keys).to(dtype) / rule.temperature).masked_fill(~allowed, float("-inf"))


def _repeat_kv(q: Tensor, x: Tensor) -> Tensor:
    """[batch, kv_head, key, d_head] -> [batch, head, key, d_head]"""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)
