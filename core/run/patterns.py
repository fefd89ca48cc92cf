"""patterns_of(): the weights of all heads of many attentions, in few products where the attentions are small."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from .attention import AttentionRecord, Index

CELLS = 1 << 20  # weights of one product; of larger attentions, one is work enough


def patterns_of(records: Sequence[AttentionRecord], queries: Index = None) -> Iterator[Tensor]:
    """record.pattern(queries=queries) of each in turn, [head, query, key] float32, equal to the bit. Raises TooLarge.

    The heads of a short text are so small that a product for each layer is mostly the cost of calling it.
    """
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
    """The same value for records whose heads could belong to one record; None for a record with numbers beside q and k."""
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
