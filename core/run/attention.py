"""largest(): adaptive max pooling along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal, overload

import torch
from torch import Tensor, nn

from ..device import check_fits_or_retry
from ..errors import StaleTrace
from ..model.rules import ScoreRule, attend, row_blocks, softmax
from .shared_rows import Rows


def largest(x: Tensor, n: int) -> Tensor:
    """[..., m] -> [..., n]: the maximum of each of n patches that cover the last axis, from ⌊i·m/n⌋ to ⌈(i + 1)·m/n⌉.

    The patches are those of torch's adaptive_max_pool1d, which is wrong on Apple's devices if n does not divide m
    (github.com/pytorch/pytorch/issues/190064), and slower on a CPU if it does.
    """
    m = x.shape[-1]
    if m % n == 0:
        return x.unflatten(-1, (n, -1)).amax(-1)
    return torch.stack([x[..., i * m // n : -(-(i + 1) * m // n)].amax(-1) for i in range(n)], dim=-1)


Index = int | slice | Sequence[int] | Tensor | None  # an int keeps its axis; None is everything
Stage = Literal["raw", "scores", "masked", "pattern"]

THUMBNAIL_BYTES = 1 << 21  # of patterns computed together: fewer cost overhead, more leave the CPU cache
EXACT_THUMBNAIL_ROWS = 256  # a thumbnail of more rows samples one row per pixel
MAX_SUM_ERROR = torch.finfo(torch.float32).max
RECEIPT_ROWS = 256  # most rows that a receipt checks, evenly spaced


@dataclass(frozen=True, eq=False)
class Thumbnail:
    """Small images of heads: values [head, row, column] in 0..1, each the largest weight of its patch."""

    values: Tensor
    exact: bool  # False: only some query rows were used
    how: str  # how it was made, in words


@dataclass(frozen=True)
class Receipt:
    """Checks of one record: largest absolute deviations over `rows` query rows of every head."""

    rows_sum_error: float  # |Σ over keys − 1| of rows that are not fully masked; a sink counts as a key
    # The largest weight on a masked cell: 0, unless a caller's mask has finite values (core.capture), which low scores and
    # fully masked rows can outweigh.
    masked_max: float
    # |pattern @ v − fused kernel|; None if a hook replaced scores or pattern. For records of core.capture, the kernel's
    # result is the one that the call returned, without dropout.
    fused_error: float | None
    rows: int
    n_rows: int
    blocked: int  # fully masked rows
    # |‖z W_O + b‖ − ‖output of the pass‖| / the largest of these norms, with the record's z; None if W_O is unknown
    # (core.capture) or has been trained since, or if an edit came after it
    added_error: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class AttentionRecord:
    """One attention of one run, seen from one text of the batch; of several texts, of() selects one.

    batch_q [batch, head, query, d_head] and batch_k [batch, kv_head, key, d_head] are after RoPE; `keys` is batch_k, or Rows
    shared with other calls (core.capture). values() returns v with the shape of k: stored, or for long runs recomputed by
    another pass. `replaced_scores` and `replaced_pattern` [batch, head, query, key] are the results of hooks, if any;
    edited_z() and edited_result() return edited values like values().
    """

    name: str  # the attention's module path
    stack: str  # encoder, decoder; module for records of core.capture
    layer: int | None  # None if unknown to core.capture
    site: Literal["attn", "cross_attn", "unknown"]  # unknown: core.capture could not identify the source of the keys
    batch_q: Tensor
    keys: Tensor | Rows
    values: Callable[[], Tensor]
    batch_rule: ScoreRule
    output: Callable[[], nn.Linear] | None = None  # W_O and its bias; raises Outdated if they have changed
    replaced_scores: Tensor | None = None
    replaced_pattern: Tensor | None = None
    edited_z: Callable[[], Tensor] | None = None  # [batch, head, query, d_head]
    edited_result: Callable[[], Tensor] | None = None  # [batch, query, head, d_model]
    lengths: Tensor | None = None  # ‖attention output‖ in the pass, [batch, query]
    chosen: int | None = None  # selected text; None if none of several is selected
    run_device: torch.device | None = None  # device of the run, if q, k and v have moved
    call: int = 0  # of core.capture: number of earlier calls of the same module, such as decoding steps
    # Of core.capture: the result of the call in the rows that a receipt checks, [batch, head, row, d_head].
    returned: Tensor | None = None

    # description

    def __repr__(self) -> str:
        n = self.batch_q.shape[0]
        texts = "" if n == 1 else f", {n} texts" if self.chosen is None else f", text {self.chosen} of {n}"
        call = f", call {self.call}" if self.call else ""
        return f"<AttentionRecord {self.name}{call}: {self.n_heads} heads, {self.n_query} queries × {self.n_key} keys{texts}>"

    @property
    def text(self) -> int:
        """The selected text. Raises ValueError if none of several is selected: use of(text)."""
        if self.chosen is None and (n := self.batch_q.shape[0]) > 1:
            raise ValueError(
                f"{self.name} saw {n} texts. Say which: record.of(0) to record.of({n - 1}), or run.text(0) to "
                f"run.text({n - 1}), or pattern(text=0); patterns() gives all."
            )
        return self.chosen or 0

    @property
    def q(self) -> Tensor:
        """[head, query, d_head]"""
        return self.batch_q[self.text]

    @property
    def k(self) -> Tensor:
        """[kv_head, key, d_head]"""
        return self.keys[self.text]

    @property
    def batch_k(self) -> Tensor:
        """[batch, kv_head, key, d_head]"""
        return self.keys if isinstance(self.keys, Tensor) else self.keys()

    @property
    def v(self) -> Tensor:
        """[kv_head, key, d_head]"""
        return self.values()[self.text]

    @property
    def rule(self) -> ScoreRule:
        """Mask, bias, scale and temperature for this text."""
        return self.batch_rule.for_text(self.text)

    @property
    def o_weight(self) -> Tensor | None:
        """W_O [d_model, head * d_head] of the model; None for records of core.capture. Raises Outdated."""
        return None if self.output is None else self.output().weight

    @property
    def device(self) -> torch.device:
        """Device of the computation; rows of q, k and v are copied there from the host on demand."""
        return self.batch_q.device if self.run_device is None else self.run_device

    @property
    def n_heads(self) -> int:
        return self.batch_q.shape[1]

    @property
    def n_kv_heads(self) -> int:
        return self.keys.shape[1]

    @property
    def n_query(self) -> int:
        return self.batch_q.shape[2]

    @property
    def n_key(self) -> int:
        return self.keys.shape[2]

    @property
    def nbytes(self) -> int:
        """Bytes of q, k and replaced scores and patterns, for all texts of the batch.

        Keys that were captured by an earlier call count there.
        """
        kept = (self.batch_q, self.keys, self.replaced_scores, self.replaced_pattern)
        return sum(t.nbytes for t in kept if t is not None)

    def of(self, text: int) -> AttentionRecord:
        """The record of another text of the batch, without copying."""
        if not 0 <= text < self.batch_q.shape[0]:
            raise IndexError(f"text {text} of a batch of {self.batch_q.shape[0]}")
        return replace(self, chosen=text)

    # results

    def pattern(
        self, heads: Index = None, queries: Index = None, keys: Index = None, *, text: int | None = None
    ) -> Tensor:
        """Attention weights [head, query, key], float32. Rows sum to 1; fully masked rows are zeros.

        `text` selects a text of a batch, unless the record already has one (run.text(1)). Raises ValueError if none of
        several is selected; patterns() returns all.
        """
        return self._seen_from(text)._stage("pattern", heads, queries, keys)

    def patterns(self, heads: Index = None, queries: Index = None, keys: Index = None) -> Tensor:
        """Attention weights of all texts of the batch, [batch, head, query, key], float32."""
        return torch.stack([self.of(i).pattern(heads, queries, keys) for i in range(self.batch_q.shape[0])])

    @overload
    def scores(
        self,
        heads: Index = None,
        queries: Index = None,
        keys: Index = None,
        masked: bool = False,
        *,
        text: int | None = None,
        terms: Literal[False] = False,
    ) -> Tensor: ...

    @overload
    def scores(
        self,
        heads: Index = None,
        queries: Index = None,
        keys: Index = None,
        *,
        text: int | None = None,
        terms: Literal[True],
    ) -> dict[str, Tensor]: ...

    def scores(
        self,
        heads: Index = None,
        queries: Index = None,
        keys: Index = None,
        masked: bool = False,
        *,
        text: int | None = None,
        terms: bool = False,
    ) -> Tensor | dict[str, Tensor]:
        """(q·k · scale + bias) / temperature, [head, query, key], float32; with `masked`, -inf where masked; with `terms`, by
        term, see terms().

        Finite values of a caller's mask (core.capture) are left out, because they would dominate a colour scale. pattern()
        includes them.
        """
        if terms:
            return self.terms(heads, queries, keys, text=text)
        return self._seen_from(text)._stage("masked" if masked else "scores", heads, queries, keys)

    def terms(
        self, heads: Index = None, queries: Index = None, keys: Index = None, *, text: int | None = None
    ) -> dict[str, Tensor]:
        """The terms of scores(), each [head, query, key], float32: "content" (q·k · scale), and "distance" (ALiBi, T5) or
        DeBERTa's "c2p" and "p2c", content to position and position to content (He et al. 2021, arXiv:2006.03654). Raises
        ValueError if an edit replaced the scores."""
        record = self._seen_from(text)
        if record.replaced_scores is not None:
            raise ValueError("an edit replaced these scores, which have no terms then")
        chosen = record._index(heads, record.n_heads)
        rows, columns = record._index(queries, record.n_query), record._index(keys, record.n_key)
        rule = record.rule
        content = rule.capped(record.raw(heads, queries, keys) * rule.scale)
        terms = {"content": content / rule.temperature}
        if rule.bias is not None:
            for name, term in rule.bias.terms(rows, columns).items():
                per_head = term[0].expand(record.n_heads, len(rows), len(columns))[chosen]
                terms[name] = per_head.float() / rule.temperature
        return terms

    def raw(self, heads: Index = None, queries: Index = None, keys: Index = None, *, text: int | None = None) -> Tensor:
        """q·k before scale, bias and mask, [head, query, key], float32."""
        return self._seen_from(text)._stage("raw", heads, queries, keys)

    def row(self, head: int, query: int) -> Tensor:
        """Attention weights of one query: [key]."""
        return self.pattern(head, query)[0, 0]

    def mask(self, queries: Index = None, keys: Index = None, head: int = 0) -> Tensor:
        """The mask, [query, key], True where visible."""
        heads = torch.tensor([head], device=self.device)
        return self.rule.mask.block(self._index(queries, self.n_query), self._index(keys, self.n_key), heads)[0, 0]

    def why_masked(self, query: int, key: int, head: int = 0) -> str | None:
        """future, padding, outside the window, edited or masked by the caller; None if visible."""
        for name, value, n in (("query", query, self.n_query), ("key", key, self.n_key), ("head", head, self.n_heads)):
            if not 0 <= value < n:
                raise IndexError(f"{name} {value} of {n}")
        return self.rule.mask.why_masked(query, key, head)

    def blocked_rows(self, head: int = 0) -> Tensor:
        """[query] bool: True for fully masked rows. Their pattern is all zeros, or with finite values of a caller's mask
        (core.capture) the softmax of these."""
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
        """Images of at most size × size pixels; a pixel is the largest weight of its patch.

        With "auto", up to 256 query rows are all used, and of more, `size` evenly spaced ones with all their keys. The result
        says which. Raises ValueError for a size below 1.
        """
        if size < 1:
            raise ValueError(f"a picture has at least one pixel along a side, not {size}")
        n_rows, n_columns = min(size, self.n_query), min(size, self.n_key)
        sampled = rows == "sampled" or (rows == "auto" and self.n_query > EXACT_THUMBNAIL_ROWS)
        sampled = sampled and self.n_query > size
        chosen = self._index(heads, self.n_heads).tolist()
        values = torch.empty(len(chosen), n_rows, n_columns, device=self.device)
        if sampled:
            middles = ((torch.arange(n_rows) + 0.5) * self.n_query / n_rows).long()
            for some in row_blocks(len(chosen), n_rows * self.n_key * 4, THUMBNAIL_BYTES):
                values[some] = largest(self._stage("pattern", chosen[some], middles, None), n_columns)
            return Thumbnail(
                values, False, f"{n_rows} of {self.n_query} query rows, evenly spaced; the largest weight per pixel"
            )
        edges = [round(i * self.n_query / n_rows) for i in range(n_rows + 1)]
        step = max(1, (1 << 24) // max(1, self.n_key * 4 * -(-self.n_query // n_rows)))  # image rows computed together
        for some in row_blocks(len(chosen), self.n_query * self.n_key * 4, THUMBNAIL_BYTES):
            for top in range(0, n_rows, step):
                bottom = min(n_rows, top + step)
                rows_of = self._stage("pattern", chosen[some], slice(edges[top], edges[bottom]), None)
                block = largest(rows_of, n_columns)  # [head, query, column]
                for r in range(top, bottom):
                    values[some, r] = block[:, edges[r] - edges[top] : edges[r + 1] - edges[top]].amax(1)
        whole = n_rows == self.n_query and n_columns == self.n_key
        return Thumbnail(values, True, "every weight" if whole else "the largest weight per pixel")

    def z(self, heads: Index = None, queries: Index = None) -> Tensor:
        """Input of W_O from each head, [head, query, d_head], float32: pattern · v, or its edited value."""
        chosen = self._index(heads, self.n_heads)
        rows = None if queries is None else self._index(queries, self.n_query)
        if self.edited_z is not None:
            z = self.edited_z()[self.text][chosen]
            return (z if rows is None else z[:, rows]).float()
        text = slice(self.text, self.text + 1)
        if not self._is_replaced and rows is None:
            q, k, v = (x[text].to(self.device) for x in (self.batch_q, self.batch_k, self.values()))
            return attend(q, k, v, self.rule)[0][chosen].float()
        rows = self._index(rows, self.n_query)
        v = self._heads_of(self.v, chosen // (self.n_heads // self.n_kv_heads)).float()  # [head, key, d_head]
        z = torch.empty(len(chosen), len(rows), v.shape[-1], device=v.device)
        for block in row_blocks(len(rows), len(chosen) * self.n_key * 4):
            z[:, block] = self._stage("pattern", chosen, rows[block], None) @ v
        return z

    def result(self, heads: Index = None, queries: Index = None) -> Tensor:
        """Output of each head, before an output norm: z W_O, [head, query, d_model], float32.

        All heads and queries at once are n_heads times as large as the stream: ask for those that you need. Raises ValueError
        for records of core.capture, whose W_O is not known, and Outdated once the model has been trained.
        """
        if self.edited_result is not None:
            result = self.edited_result()[self.text].float().transpose(0, 1)  # [head, query, d_model]
            return result[self._index(heads, self.n_heads)][:, self._index(queries, self.n_query)]
        return torch.einsum("hqd,mhd->hqm", self.z(heads, queries), self._o_weight(self._index(heads, self.n_heads)))

    def output_norms(self, heads: Index = None) -> Tensor:
        """‖z W_O‖: how much each head adds to the residual stream, [head, query], float32. Raises as result() does."""
        chosen = self._index(heads, self.n_heads)
        if self.edited_result is not None:
            return self.result(chosen).norm(dim=-1)
        z, w = self.z(chosen), self._o_weight(chosen)
        return torch.stack([(z[i] @ w[:, i].T).norm(dim=-1) for i in range(len(chosen))])

    def value_norms(self, heads: Index = None) -> Tensor:
        """‖v W_O‖ of every key as each head would write it, [head, key]: times the pattern, this is the value-weighted map.

        Kobayashi et al. 2020, arXiv:2004.10102. Raises as result() does.
        """
        chosen = self._index(heads, self.n_heads)
        w = self._o_weight(chosen)
        v = self._heads_of(self.v, chosen // (self.n_heads // self.n_kv_heads)).float()
        return torch.stack([(v[i] @ w[:, i].T).norm(dim=-1) for i in range(len(chosen))])

    def receipt(self) -> Receipt:
        """Recompute and compare: rows sum to 1, masked cells are 0, pattern @ v is what the fused kernel gives, and what
        all of it adds is as long as what the pass added. NaN counts as the largest error."""
        queries = receipt_rows(self.n_query).to(self.device)
        values = self.values()[self.text : self.text + 1].to(self.device)
        v, rule = values[0].float(), self.rule
        fused = None  # [head, row, d_head]
        if self.returned is not None:
            fused = self.returned[self.text].float()
        elif not self._is_replaced:
            fused = attend(self.q[None].to(self.device), self.k[None].to(self.device), values, rule)[
                0, :, queries
            ].float()
        group = self.n_heads // self.n_kv_heads
        sums, masked, error, blocked = 0.0, 0.0, 0.0, 0
        z = torch.empty(self.n_heads, len(queries), v.shape[-1], device=v.device)
        for head in range(self.n_heads):
            pattern = self._stage("pattern", head, queries, None)[0]  # [query, key]
            allowed = self.mask(queries, head=head)
            sees = allowed.any(-1)
            whole = pattern.sum(-1) if rule.sinks is None else pattern.sum(-1) + self._sink_weights(head, queries)
            sums = max(sums, _largest((whole - 1)[sees]))
            masked = max(masked, _largest(pattern[~allowed]))
            blocked = max(blocked, int((~sees).sum()))
            z[head] = pattern @ v[head // group]
            if fused is not None:
                error = max(error, _largest(z[head] - fused[head]))
        return Receipt(
            sums,
            masked,
            None if fused is None else error,
            len(queries),
            self.n_query,
            blocked,
            self._added_error(z, queries),
        )

    def _sink_weights(self, head: int, queries: Tensor) -> Tensor:
        """[query]: the weight of a head's sink in each row."""
        sinks = self.rule.sinks_of()
        assert sinks is not None
        of_keys = self._stage("masked", head, queries, None)[0].logsumexp(-1)  # [query]
        return 1 - torch.sigmoid(of_keys - sinks[head].flatten().to(of_keys))

    def _added_error(self, z: Tensor, queries: Tensor) -> float | None:
        """Receipt.added_error, from z [head, query, d_head] of these queries before edits."""
        if self.output is None or self.lengths is None:
            return None
        try:
            o = self.output()
        except StaleTrace:
            return None
        if self.edited_result is not None:
            added = self.result(queries=queries).sum(0)  # [query, d_model]
        else:
            z = z if self.edited_z is None else self.z(queries=queries)
            added = z.transpose(0, 1).flatten(1) @ o.weight.float().T
        added = added if o.bias is None else added + o.bias.float()
        real = self.lengths[self.text, queries]
        return _largest((added.norm(dim=-1) - real) / real.max().clamp(min=1e-30))

    # computation

    def _seen_from(self, text: int | None) -> AttentionRecord:
        """The record of this text; None: unchanged."""
        return self if text is None else self.of(text)

    @property
    def _is_replaced(self) -> bool:
        return self.replaced_scores is not None or self.replaced_pattern is not None

    def _o_weight(self, heads: Tensor) -> Tensor:
        """W_O of these heads, [d_model, head, d_head], float32."""
        if self.output is None:
            raise ValueError(f"{self.name}: the output projection of a captured or wrapped module is not known")
        return self.output().weight.unflatten(1, (self.n_heads, -1))[:, heads].float()

    def _stage(self, stage: Stage, heads: Index, queries: Index, keys: Index) -> Tensor:
        chosen, rows, columns = (
            self._index(heads, self.n_heads),
            self._index(queries, self.n_query),
            self._index(keys, self.n_key),
        )
        if stage == "pattern" and self.replaced_pattern is not None:
            return self.replaced_pattern[self.text][chosen][:, rows][:, :, columns].float()
        size = len(chosen) * len(rows) * len(columns)
        what = f"{size:,} weights at once ({len(chosen)} heads, {len(rows):,} queries, {len(columns):,} keys)"
        check_fits_or_retry(size * 4, self.device, what, "Ask for fewer heads, queries or keys.")
        # Only the softmax needs every key of a row; earlier stages are computed for the requested columns only.
        every = stage == "pattern" or keys is None
        seen = torch.arange(self.n_key, device=rows.device) if every else columns
        group = self.n_heads // self.n_kv_heads
        # Indexing is skipped for whole axes: it takes a third of the time for short texts.
        shared = None if heads is None and group == 1 else chosen // group
        k = self._heads_of(self.k, shared, None if every else seen).float().mT  # [head, d_head, key]
        out = torch.empty(len(chosen), len(rows), len(columns), device=rows.device)
        whole = stage != "pattern" or keys is None
        for block in row_blocks(len(rows), len(chosen) * len(seen) * 4):
            some = block if queries is None else rows[block]
            q = self._heads_of(self.q, None if heads is None else chosen, some).float()
            values = self._block(stage, chosen, rows[block], seen, q @ k)
            out[:, block] = values if whole else values[..., columns]
            del q, values  # before the next block is made
        return out

    def _block(self, stage: Stage, heads: Tensor, queries: Tensor, keys: Tensor, scores: Tensor) -> Tensor:
        """One block of rows, [head, query, key], from its q·k, which is modified in place."""
        rule = self.rule

        def pick(x: Tensor) -> Tensor:  # [1, head or 1, query, key] -> [head or 1, query, key]
            return x[0] if x.shape[1] == 1 else x[0, heads]

        # In place from here on: only one tensor of this size may be alive.
        if stage == "raw":
            return scores
        if self.replaced_scores is None:
            scores *= rule.scale
            scores = rule.capped(scores)
            if rule.bias is not None:
                scores += pick(rule.bias.block(queries, keys)).float()
            if rule.temperature != 1:
                scores /= rule.temperature
        else:
            scores = self.replaced_scores[self.text][heads][:, queries][:, :, keys].float()
        if stage == "scores":
            return scores
        hides, custom = not rule.mask.is_free, rule.mask.custom
        if stage == "pattern" and custom is not None and custom.is_soft:
            scores += pick(custom.hiding(queries, keys))
        elif hides and not rule.mask_after_softmax:
            scores.masked_fill_(~rule.mask.block(queries, keys, heads)[0], rule.mask_value)
        if stage == "masked":
            return scores
        sinks = rule.sinks_of(heads)
        pattern = softmax(scores, None if sinks is None else sinks.to(scores.device))
        return pattern.mul_(rule.mask.block(queries, keys, heads)[0]) if hides and rule.mask_after_softmax else pattern

    def _heads_of(self, x: Tensor, heads: Tensor | None, rows: Tensor | slice | None = None) -> Tensor:
        """These heads and rows (None: all) of q, k or v on the record's device, [head, pos, d_head]."""
        x = x if heads is None else x[heads.to(x.device)]
        if rows is not None:
            x = x[:, rows if isinstance(rows, slice) else rows.to(x.device)]
        # One memory layout for every request, so that a cell has the same bits in a row, a tile and the whole pattern.
        return x.to(self.device).contiguous()

    def _index(self, index: Index, n: int) -> Tensor:
        """Validated indices as a tensor; negative ones count from the end."""
        device = self.device
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


def receipt_rows(n_query: int) -> Tensor:
    """The query rows that a receipt checks."""
    return torch.arange(0, n_query, max(1, -(-n_query // RECEIPT_ROWS)))


def _largest(deviations: Tensor) -> float:
    """The largest absolute deviation, 0 if there are none. NaN and infinity become float32's maximum, which fails every
    comparison and is valid JSON."""
    return (
        deviations.abs().nan_to_num(nan=MAX_SUM_ERROR, posinf=MAX_SUM_ERROR).max().item() if deviations.numel() else 0.0
    )


CELLS = 1 << 20  # weights of one product; larger attentions are computed one by one


@dataclass(frozen=True, eq=False)
class JointPattern:
    """Attention weights of several records that have the same mask, [head, row, key], the heads of one record after the other."""

    records: tuple[AttentionRecord, ...]
    weights: Tensor

    def split(self, of_heads: Tensor) -> tuple[Tensor, ...]:
        """[head, ...] of all records -> [head, ...] of each."""
        return of_heads.split([record.n_heads for record in self.records])


def joint_patterns(
    records: Sequence[AttentionRecord], queries: Tensor | None = None, maps: Sequence[Tensor] | None = None
) -> Iterator[JointPattern]:
    """The weights of consecutive records together, up to CELLS of them, where masks and numbers of heads are the same.

    `maps` are the complete patterns [head, query, key] of the records, if they are already available. Raises TooLarge.
    """
    n_rows = records[0].n_query if queries is None else len(queries)
    if queries is not None and torch.equal(queries, torch.arange(records[0].n_query, device=queries.device)):
        queries = None  # selecting every row would copy them
    each = patterns_of(records, queries) if maps is None else iter(maps)
    kinds = [(id(record.batch_rule.mask), record.n_heads, record.n_kv_heads) for record in records]
    start = 0
    for (_, n_heads, _), alike in groupby(kinds):
        end = start + len([*alike])
        step = max(1, CELLS // max(1, n_heads * n_rows * records[start].n_key))
        for at in range(start, end, step):
            group = tuple(records[at : min(end, at + step)])
            some = [next(each) for _ in group]
            weights = some[0] if len(some) == 1 else torch.cat(some)
            yield JointPattern(group, weights if maps is None or queries is None else weights[:, queries])
        start = end


def patterns_of(records: Sequence[AttentionRecord], queries: Index = None) -> Iterator[Tensor]:
    """record.pattern(queries=queries) of each record, [head, query, key] float32, equal to the bit. Raises TooLarge."""
    group_of = {i: group for group in _groups(records) for i in group}
    computed: dict[int, Tensor] = {}
    for i, record in enumerate(records):
        group = group_of[i]
        if len(group) == 1:
            yield record.pattern(queries=queries)
            continue
        if i not in computed:
            joined = _joined([records[at] for at in group])
            computed |= zip(group, joined.pattern(queries=queries).split(record.n_heads), strict=True)
        yield computed.pop(i)


def _groups(records: Sequence[AttentionRecord]) -> Iterator[list[int]]:
    """Indices of the records that share a product."""
    alike: dict[Hashable, list[int]] = {}
    for i, record in enumerate(records):
        kind = _kind(record)
        alike.setdefault(i if kind is None else kind, []).append(i)
    for group in alike.values():
        first = records[group[0]]
        step = max(1, CELLS // max(1, first.n_heads * first.n_query * first.n_key))
        yield from (group[start : start + step] for start in range(0, len(group), step))


def _kind(record: AttentionRecord) -> Hashable:
    """Equal for records whose heads could belong to one record; None if a record has terms or edits in addition to q and k."""
    rule = record.batch_rule
    mask = rule.mask
    own = (record.replaced_scores, record.replaced_pattern, rule.bias, rule.sinks, mask.custom)
    if type(record) is not AttentionRecord or any(x is not None for x in own) or mask.edits or mask.by_head:
        return None
    scores = (rule.scale, rule.temperature, rule.mask_value, rule.mask_after_softmax, rule.softcap)
    sees = (mask.causal, mask.window, mask.first_query, id(mask.keep), record.text)
    return (*scores, *sees, record.q.shape, record.k.shape, record.q.dtype, record.q.device, record.device)


def _joined(records: Sequence[AttentionRecord]) -> AttentionRecord:
    """One record with the heads of all of these."""
    q, k = torch.cat([record.q for record in records]), torch.cat([record.k for record in records])
    rule = records[0].rule
    rule = replace(rule, mask=replace(rule.mask, n_heads=len(q)))
    return replace(records[0], batch_q=q[None], keys=k[None], batch_rule=rule, chosen=None)
