"""AttentionRecord: the queries and keys of one attention, from which any head, row or tile is worked out when somebody looks.

A map is n×n numbers per head, its queries and keys n×d_head. So a trace keeps q, k and the rule, and the pattern of any
slice is recomputed in float32, exactly as an eager softmax of the same q and k would give it. No more than the tile that
was asked for plus one block of rows (rules.BLOCK_BYTES) is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from .rules import ScoreRule, attend, row_blocks, softmax

Index = int | slice | Sequence[int] | Tensor | None  # an int keeps its axis; None is everything
Stage = Literal["raw", "scores", "masked", "pattern"]

THUMBNAIL_BYTES = 1 << 21  # of heads' maps worked out together: short texts are all overhead, long ones leave the cache
EXACT_THUMBNAIL_ROWS = 256  # up to here a thumbnail looks at every row; above, at as many rows as it has pixels
RECEIPT_ROWS = 256  # a receipt on a longer record checks this many rows, evenly spaced


@dataclass(frozen=True, eq=False)
class Thumbnail:
    """Small pictures of heads: values [head, row, column] in 0..1, each the largest weight in its patch."""

    values: Tensor
    exact: bool  # False: only some query rows were looked at
    how: str  # the same in words


@dataclass(frozen=True)
class Receipt:
    """Proofs on one record, each a largest absolute deviation, over `rows` query rows of every head."""

    rows_sum_error: float  # |Σ over keys − 1|, on rows that may see something
    masked_max: float  # the largest weight on a masked cell
    fused_error: float | None  # |pattern @ v − fused kernel|; None where a hook replaced scores or pattern
    rows: int
    n_rows: int
    blocked: int  # rows that may see nothing


@dataclass(frozen=True, eq=False)
class AttentionRecord:
    """One attention of one run, seen from one text of the batch (`text`).

    batch_q [batch, head, query, d_head] and batch_k [batch, kv_head, key, d_head] are after rotary. values() gives v of the
    same shape as k: it is held, or for long runs comes from running the pass once more. Where a hook replaced the scores
    or the pattern, what it left is kept in `replaced_scores` or `replaced_pattern`, [batch, head, query, key].
    """

    name: str  # the attention's module path
    stack: str  # encoder, decoder; module for records of core.capture
    layer: int
    site: Literal["attn", "cross_attn"]
    batch_q: Tensor
    batch_k: Tensor
    values: Callable[[], Tensor]
    batch_rule: ScoreRule
    o_weight: Tensor | None = None  # [d_model, head * d_head], shared with the model
    replaced_scores: Tensor | None = None
    replaced_pattern: Tensor | None = None
    text: int = 0

    # what it is

    @property
    def q(self) -> Tensor:
        """[head, query, d_head]"""
        return self.batch_q[self.text]

    @property
    def k(self) -> Tensor:
        """[kv_head, key, d_head]"""
        return self.batch_k[self.text]

    @property
    def v(self) -> Tensor:
        """[kv_head, key, d_head]"""
        return self.values()[self.text]

    @property
    def rule(self) -> ScoreRule:
        """Mask, bias, scale and temperature for this text."""
        return self.batch_rule.of(self.text)

    @property
    def n_heads(self) -> int:
        return self.batch_q.shape[1]

    @property
    def n_kv_heads(self) -> int:
        return self.batch_k.shape[1]

    @property
    def n_query(self) -> int:
        return self.batch_q.shape[2]

    @property
    def n_key(self) -> int:
        return self.batch_k.shape[2]

    @property
    def bytes(self) -> int:
        """Bytes of q and k that this record holds, for all texts of the batch."""
        kept = (self.batch_q, self.batch_k, self.replaced_scores, self.replaced_pattern)
        return sum(t.numel() * t.element_size() for t in kept if t is not None)

    def of(self, text: int) -> AttentionRecord:
        """The same attention seen from another text of the batch. Nothing is copied."""
        if not 0 <= text < self.batch_q.shape[0]:
            raise IndexError(f"text {text} of a batch of {self.batch_q.shape[0]}")
        return replace(self, text=text)

    # what it shows

    def pattern(self, heads: Index = None, queries: Index = None, keys: Index = None) -> Tensor:
        """The attention weights [head, query, key], float32. Rows sum to 1, or are zeros where nothing may be seen."""
        return self._stage("pattern", heads, queries, keys)

    def scores(self, heads: Index = None, queries: Index = None, keys: Index = None, masked: bool = False) -> Tensor:
        """(q·k · scale + bias) / temperature, [head, query, key], float32; with `masked`, -inf where it may not look."""
        return self._stage("masked" if masked else "scores", heads, queries, keys)

    def raw(self, heads: Index = None, queries: Index = None, keys: Index = None) -> Tensor:
        """q·k before scale, bias and mask, [head, query, key], float32."""
        return self._stage("raw", heads, queries, keys)

    def row(self, head: int, query: int) -> Tensor:
        """Where one query looks: [key]."""
        return self.pattern(head, query)[0, 0]

    def mask(self, queries: Index = None, keys: Index = None, head: int = 0) -> Tensor:
        """Who may look at whom: [query, key], True where it may."""
        block = self.rule.mask.block(self._index(queries, self.n_query), self._index(keys, self.n_key))[0]
        return block[head if block.shape[0] > 1 else 0]

    def why_masked(self, query: int, key: int, head: int = 0) -> str | None:
        """future, padding, outside the window, edited or masked by the caller; None where the query may look."""
        for name, value, n in (("query", query, self.n_query), ("key", key, self.n_key), ("head", head, self.n_heads)):
            if not 0 <= value < n:
                raise IndexError(f"{name} {value} of {n}")
        return self.rule.mask.why_masked(query, key, head)

    def blocked_rows(self, head: int = 0) -> Tensor:
        """[query] bool: True for rows that may see nothing, whose pattern is all zeros."""
        parts = [
            ~self.mask(range(rows.start, rows.stop), head=head).any(-1) for rows in row_blocks(self.n_query, self.n_key)
        ]
        return torch.cat(parts)

    def thumbnail(
        self,
        size: int = 64,
        heads: Index = None,
        rows: Literal["auto", "all", "sampled"] = "auto",
    ) -> Thumbnail:
        """Pictures of at most size × size pixels, each pixel the largest weight of its patch.

        Up to 256 query rows every one is looked at; above, `size` evenly spaced ones (their keys still all of them),
        unless `rows` says otherwise. The result says which.
        """
        n_rows, n_columns = min(size, self.n_query), min(size, self.n_key)
        sampled = rows == "sampled" or (rows == "auto" and self.n_query > EXACT_THUMBNAIL_ROWS)
        sampled = sampled and self.n_query > size
        chosen = self._index(heads, self.n_heads).tolist()
        values = torch.empty(len(chosen), n_rows, n_columns, device=self.batch_q.device)
        if sampled:
            middles = ((torch.arange(n_rows) + 0.5) * self.n_query / n_rows).long()
            for some in row_blocks(len(chosen), n_rows * self.n_key * 4, THUMBNAIL_BYTES):
                values[some] = F.adaptive_max_pool1d(self.pattern(chosen[some], middles), n_columns)
            return Thumbnail(
                values, False, f"{n_rows} of {self.n_query} query rows, evenly spaced; the largest weight per pixel"
            )
        edges = [round(i * self.n_query / n_rows) for i in range(n_rows + 1)]
        step = max(
            1, (1 << 24) // max(1, self.n_key * 4 * -(-self.n_query // n_rows))
        )  # picture rows worked out together
        for some in row_blocks(len(chosen), self.n_query * self.n_key * 4, THUMBNAIL_BYTES):
            for top in range(0, n_rows, step):
                bottom = min(n_rows, top + step)
                rows_of = self.pattern(chosen[some], slice(edges[top], edges[bottom]))
                block = F.adaptive_max_pool1d(rows_of, n_columns)  # [head, query, column]
                for r in range(top, bottom):
                    values[some, r] = block[:, edges[r] - edges[top] : edges[r + 1] - edges[top]].amax(1)
        whole = n_rows == self.n_query and n_columns == self.n_key
        return Thumbnail(values, True, "every weight" if whole else "the largest weight per pixel")

    def written(self, heads: Index = None) -> Tensor:
        """‖z W_O‖: how much each head writes into the residual stream, [head, query], float32.

        Raises ValueError for records of core.capture, whose output projection is not known.
        """
        if self.o_weight is None:
            raise ValueError(f"{self.name}: the output projection of a captured module is not known")
        chosen = self._index(heads, self.n_heads)
        z = self._head_output()[chosen]  # [head, query, d_head]
        w = self.o_weight.float().unflatten(1, (self.n_heads, -1))[:, chosen]  # [d_model, head, d_head]
        return torch.stack([(z[i] @ w[:, i].T).norm(dim=-1) for i in range(len(chosen))])

    def value_norms(self, heads: Index = None) -> Tensor:
        """‖v W_O‖ of every key as each head would write it, [head, key]: times the pattern, this is the value-weighted map.

        Kobayashi et al. 2020, arXiv:2004.10102. Raises ValueError for records of core.capture.
        """
        if self.o_weight is None:
            raise ValueError(f"{self.name}: the output projection of a captured module is not known")
        chosen = self._index(heads, self.n_heads)
        v = self.v.float()[chosen // (self.n_heads // self.n_kv_heads)]
        w = self.o_weight.float().unflatten(1, (self.n_heads, -1))[:, chosen]
        return torch.stack([(v[i] @ w[:, i].T).norm(dim=-1) for i in range(len(chosen))])

    def receipt(self) -> Receipt:
        """Recompute and compare: rows sum to 1, masked cells are 0, pattern @ v is what the fused kernel gives."""
        every = max(1, -(-self.n_query // RECEIPT_ROWS))
        queries = torch.arange(0, self.n_query, every, device=self.batch_q.device)
        values = self.values()[self.text : self.text + 1]
        v, rule = values[0].float(), self.rule
        fused = None  # [head, query, d_head]
        if not self._is_replaced:
            fused = attend(self.q[None], self.k[None], values, rule)[0].float()
        group = self.n_heads // self.n_kv_heads
        sums, masked, error, blocked = 0.0, 0.0, 0.0, 0
        for head in range(self.n_heads):
            pattern = self.pattern(head, queries)[0]  # [query, key]
            allowed = self.mask(queries, head=head)
            sees = allowed.any(-1)
            if sees.any():
                sums = max(sums, (pattern.sum(-1) - 1)[sees].abs().max().item())
            if not allowed.all():
                masked = max(masked, pattern[~allowed].abs().max().item())
            blocked = max(blocked, int((~sees).sum()))
            if fused is not None:
                error = max(error, (pattern @ v[head // group] - fused[head, queries]).abs().max().item())
        return Receipt(sums, masked, None if fused is None else error, len(queries), self.n_query, blocked)

    # how it is worked out

    @property
    def _is_replaced(self) -> bool:
        return self.replaced_scores is not None or self.replaced_pattern is not None

    def _head_output(self) -> Tensor:
        """z [head, query, d_head], float32: by the kernel the run used, or from the pattern where a hook replaced it."""
        text = slice(self.text, self.text + 1)
        if not self._is_replaced:
            return attend(self.batch_q[text], self.batch_k[text], self.values()[text], self.rule)[0].float()
        v = self.v.float().repeat_interleave(self.n_heads // self.n_kv_heads, dim=0)
        return self.pattern() @ v

    def _stage(self, stage: Stage, heads: Index, queries: Index, keys: Index) -> Tensor:
        chosen, rows, columns = (
            self._index(heads, self.n_heads),
            self._index(queries, self.n_query),
            self._index(keys, self.n_key),
        )
        if stage == "pattern" and self.replaced_pattern is not None:
            return self.replaced_pattern[self.text][chosen][:, rows][:, :, columns].float()
        # Only the softmax needs every key of a row; anything before it is worked out for the asked-for columns alone.
        seen = torch.arange(self.n_key, device=rows.device) if stage == "pattern" else columns
        k = self.k[chosen // (self.n_heads // self.n_kv_heads)][:, seen].float().mT  # [head, d_head, key]
        out = torch.empty(len(chosen), len(rows), len(columns), device=rows.device)
        whole = stage != "pattern" or keys is None
        for block in row_blocks(len(rows), len(chosen) * len(seen) * 4):
            values = self._block(stage, chosen, rows[block], seen, k)
            out[:, block] = values if whole else values[..., columns]
            del values  # before the next block is made
        return out

    def _block(self, stage: Stage, heads: Tensor, queries: Tensor, keys: Tensor, k: Tensor) -> Tensor:
        """One block of rows, [head, query, key], with k [head, d_head, key] of just these heads and keys."""
        rule = self.rule

        def pick(x: Tensor) -> Tensor:  # [1, head or 1, query, key] -> [head or 1, query, key]
            return x[0] if x.shape[1] == 1 else x[0, heads]

        # In place from here on: this block is the only thing of its size that is alive.
        scores = self.q[heads][:, queries].float() @ k
        if stage == "raw":
            return scores
        if self.replaced_scores is None:
            scores *= rule.scale
            if rule.bias is not None:
                scores += pick(rule.bias.block(queries, keys)).float()
            if rule.temperature != 1:
                scores /= rule.temperature
        else:
            scores = self.replaced_scores[self.text][heads][:, queries][:, :, keys].float()
        if stage == "scores":
            return scores
        if not rule.mask.is_free:
            scores.masked_fill_(~pick(rule.mask.block(queries, keys)), float("-inf"))
        return scores if stage == "masked" else softmax(scores)

    def _index(self, index: Index, n: int) -> Tensor:
        """Positions as a tensor, checked: negative ones count from the end, as in Python."""
        device = self.batch_q.device
        if index is None:
            return torch.arange(n, device=device)
        if isinstance(index, slice):
            return torch.arange(*index.indices(n), device=device)
        chosen = torch.as_tensor([index] if isinstance(index, int) else index, dtype=torch.long, device=device)
        if chosen.ndim != 1:
            raise IndexError("an index is an int, a slice or a flat sequence of ints")
        if len(chosen) and not (-n <= int(chosen.min()) and int(chosen.max()) < n):
            raise IndexError(f"index {int(chosen.min())}..{int(chosen.max())} of {n}")
        return torch.where(chosen < 0, chosen + n, chosen)
