"""Attention weights of many records from few products: on short texts the calls cost more than the arithmetic."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import torch
from torch import Tensor

from .attention import AttentionRecord, Index

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
