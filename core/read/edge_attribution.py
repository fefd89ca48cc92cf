"""Edge attribution: what single attention edges add to a logit, and the strongest of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import Tensor

from .. import device
from ..errors import InterventionError, TextError
from ..model.attention import Attention
from ..run.attention import CELLS, AttentionRecord, JointPattern, joint_patterns, patterns_of
from ..run.predictions import checked_positions, strings_of
from ..run.recorder import held_bytes
from ..run.trace_record import TraceRecord
from .attribution import Asked, Site, asked, directions, has_looks, records_of
from .measures import stack_ragged

T = TypeVar("T")

FEWER = "Ask for fewer positions, or for one layer."
SAME = 1e-3  # relative deviation up to which an edited output counts as a multiple of the original


@dataclass(frozen=True, eq=False)
class TokenAttribution:
    """The contribution of each head to the logits of the most likely tokens, in the order of their probability."""

    tokens: tuple[int, ...]
    strings: tuple[str, ...]  # as the tokenizer spells them
    values: Tensor  # [layer, head, token], in logits


@dataclass(frozen=True, eq=False)
class EdgeAttribution:
    """The edges of one attention in some rows: their weights and their contributions to each row's logit, in logits.

    additions are NaN in heads whose output an edit replaced by one that is not a sum over keys.
    """

    record: AttentionRecord
    weights: Tensor  # [head, row, key] float32
    additions: Tensor  # [head, row, key] float32


def edge_attribution(
    run: TraceRecord, position: int | None = None, token: int | None = None, site: Site | None = None
) -> Tensor:
    """The contribution of each edge from `position` (None: the last real token) to the logit of `token` (None: the most
    likely one), [layer, head, key], float32, in logits: weight · (value W_O · g), g the direction in which the logit reads it.

    The sum over keys is the head's contribution, as in Trace.logit_attribution(). Masked keys have exactly 0. site None is
    cross-attention if the model has it, otherwise self-attention of the last stack. Edges of a scaled head are scaled too.
    Raises TextError for a model whose logits are not linear in the residual stream, IndexError for a position,
    InterventionError if an edit replaced a head's output by one that is not a sum over keys, TooLarge, and Outdated after a
    training. Elhage et al. 2021.
    """
    wanted = asked(run, _one(position), _one(token), site)
    records = records_of(run, site)
    _admit(run, sum(record.n_heads * record.n_key for record in records), f"The looks of {len(records)} layers")
    return torch.stack([found[:, 0] for found in each_edge(wanted, _whole)])


def edge_attribution_in_layer(
    run: TraceRecord,
    layer: int,
    positions: Sequence[int] | None = None,
    site: Site | None = None,
    token: int | None = None,
) -> Tensor:
    """edge_attribution() of one layer from several positions (None: all), each for `token` (None: its most likely one), [head, query, key].

    Nothing larger than the result is held. Raises the errors of edge_attribution(), and IndexError for a layer.
    """
    n = len(run.forward.prompt.last_read[run.index])
    wanted = asked(run, range(n) if positions is None else positions, _one(token), site)
    record = _at(records_of(run, site), layer)
    what = f"The looks of {record.n_heads} heads at {len(wanted.positions):,} positions"
    _admit(run, 3 * record.n_heads * len(wanted.positions) * record.n_key, what)
    (found,) = each_edge(wanted, _whole, [layer])
    return found


def head_logit_attribution(
    run: TraceRecord, position: int | None = None, tokens: Sequence[int] | None = None, site: Site | None = None
) -> Tensor:
    """The contribution of each head to the logits of several tokens (None: only the most likely one) after `position`.

    [token, layer, head], float32, in logits: the heads of Trace.logit_attribution(), for all tokens at once. Raises the errors of
    edge_attribution(), except that any edit of a head is accepted.
    """
    wanted = asked(run, _one(position), tokens, site)
    records, g = records_of(run, site), directions(wanted)
    at = wanted.positions[0]

    def added(record: AttentionRecord, v: Tensor, z: Tensor | None, result: Tensor | None) -> Tensor:
        if result is None:
            z = _shared(record.pattern(queries=[at]), v) if z is None else z[:, [at]]
            weight = next(_output_weights(run, [record])).unflatten(1, (record.n_heads, -1))
            result = torch.einsum("hqd,mhd->hqm", z, weight)
        else:
            result = result[:, [at]]
        return torch.einsum("hm,tm->th", result[:, 0], g[cast(int, record.layer)])

    found = torch.stack(_outputs(run, records, added), 1)
    run.forward.weights.check()
    return found


def top_token_attribution(
    run: TraceRecord, position: int | None = None, among: int = 100, site: Site | None = None
) -> TokenAttribution:
    """The contribution of each head to the logits of the `among` most likely tokens after `position`, [layer, head, among].

    Over the whole vocabulary a head's largest contributions are to tokens that no text would have there. Raises the errors of
    head_logit_attribution(), and TextError for fewer than one token.
    """
    if among < 1:
        raise TextError(f"The likeliest words are 1 or more, not {among}. Ask for 100.")
    found = run.predictions(_one(position), min(among, run.config.vocab_size))
    ids = found.ids[0]
    return TokenAttribution(
        ids, strings_of(run.loaded, ids), head_logit_attribution(run, position, ids, site).permute(1, 2, 0)
    )


def each_edge(
    wanted: Asked,
    take: Callable[[EdgeAttribution], T],
    layers: Sequence[int] | None = None,
    maps: Sequence[Tensor] | None = None,
) -> list[T]:
    """take() of every layer's edges (None: of all layers), in forward order, for callers that keep less than everything.

    Small layers are computed together, larger ones one at a time: [head, row, key] for the weights and the additions. A
    run that does not hold its values gets them from another pass. `maps` are the complete patterns of all layers, if they
    are already available. Raises Outdated after a training, and TooLarge.
    """
    run, rows = wanted.run, torch.tensor(wanted.positions, device=wanted.run.loaded.device)
    g = directions(wanted)
    records = records_of(run, wanted.site)
    if layers is not None:
        records = tuple(_at(records, layer) for layer in layers)
        maps = None if maps is None else [maps[layer] for layer in layers]
    if _are_held(records) and all(record.edited_z is None for record in records):
        found = [take(looked) for joint in joint_patterns(records, rows, maps) for looked in _edges(run, joint, g)]
        run.forward.weights.check()
        return found
    patterns = patterns_of(records, rows) if maps is None else (pattern[:, rows] for pattern in maps)

    def look(record: AttentionRecord, v: Tensor, z: Tensor | None, result: Tensor | None) -> T:
        weight = next(_output_weights(run, [record])).unflatten(1, (record.n_heads, -1))  # [d_model, head, d_head]
        weights = next(patterns)
        added = _shared(torch.einsum("rm,mhd->hrd", g[cast(int, record.layer)], weight), v.mT) * weights
        if z is not None or result is not None:
            added *= _left(_shared(weights, v), z, result, weight, rows)[..., None]
        return take(EdgeAttribution(record, weights, added))

    found = _outputs(run, records, look)
    run.forward.weights.check()
    return found


def _edges(run: TraceRecord, joint: JointPattern, g: Sequence[Tensor]) -> Iterator[EdgeAttribution]:
    """The edges of layers whose values are held, from one product if the values are small enough to be copied."""
    values = [_own(run, record.values()) for record in joint.records]
    if len(values) > 1 and sum(v.numel() for v in values) > CELLS:
        for record, weights in zip(joint.records, joint.split(joint.weights), strict=True):
            yield from _edges(run, JointPattern((record,), weights), g)
        return
    layers_and_weights = zip(joint.records, _output_weights(run, joint.records), strict=True)
    reads = torch.stack([g[cast(int, record.layer)] @ weight for record, weight in layers_and_weights])
    reads = reads.unflatten(-1, (joint.records[0].n_heads, -1)).transpose(1, 2).flatten(0, 1)  # [head, row, d_head]
    additions = joint.split(_shared(reads, torch.cat(values).mT).mul_(joint.weights))
    for record, weights, added in zip(joint.records, joint.split(joint.weights), additions, strict=True):
        yield EdgeAttribution(record, weights, added)


def _are_held(records: Sequence[AttentionRecord]) -> bool:
    """True if nothing about the values and the outputs of these attentions needs another pass."""
    return all(
        held_bytes(r.values) and (r.edited_z is None or held_bytes(r.edited_z)) and not r.edited_result for r in records
    )


def _own(run: TraceRecord, x: Tensor) -> Tensor:
    """One text of a tensor of the batch, float32, on the device of the model."""
    return x[run.index if x.shape[0] > 1 else 0].to(run.loaded.device).float()


def _outputs(
    run: TraceRecord,
    records: Sequence[AttentionRecord],
    take: Callable[[AttentionRecord, Tensor, Tensor | None, Tensor | None], T],
) -> list[T]:
    """take(record, v, z, result) of each: values [kv_head, key, d_head], and, where an edit may have changed them, z
    [head, query, d_head] and the heads' results [head, query, d_model]. float32; held, or from one pass for all records."""
    if _are_held(records):
        return [
            take(r, _own(run, r.values()), None if r.edited_z is None else _own(run, r.edited_z()), None)
            for r in records
        ]
    ends, edited_points = ("hook_v", "hook_z", "hook_result"), run.forward.edited
    points = {
        r.name: [f"{r.name}.{end}" for end in ends if end == "hook_v" or f"{r.name}.{end}" in edited_points]
        for r in records
    }
    by_name = {record.name: record for record in records}
    seen: dict[str, Tensor] = {}  # of the attention that the pass has reached
    found: list[T] = []

    def part(point: str, x: Tensor) -> Tensor:
        name = point.rsplit(".", 1)[0]
        seen[point] = _own(run, x).transpose(0, 1)  # the head before the position
        if point == points[name][-1]:
            v, z, result = (seen.pop(f"{name}.{end}", None) for end in ends)
            assert v is not None
            found.append(take(by_name[name], v, z, result))
        return x[:0]

    run.forward.moments([point for some in points.values() for point in some], part)
    return found


def _left(own: Tensor, z: Tensor | None, result: Tensor | None, weight: Tensor, rows: Tensor) -> Tensor:
    """[head, row]: factor by which edits scaled a head's own output [head, row, d_head]; NaN if they did something else."""
    factor = own.new_ones(own.shape[:2])
    if z is not None:
        z = z[:, rows]
        factor, own = factor * _multiple(z, own), z
    if result is not None:
        factor = factor * _multiple(result[:, rows], torch.einsum("hrd,mhd->hrm", own, weight))
    return factor


def _multiple(edited: Tensor, own: Tensor) -> Tensor:
    """The factor between two vectors [..., n] -> [...]; NaN if they are not parallel."""
    factor = (edited * own).sum(-1) / own.pow(2).sum(-1).clamp(min=1e-30)
    error = (edited - factor[..., None] * own).norm(dim=-1)
    return torch.where(error <= SAME * edited.norm(dim=-1) + 1e-6, factor, torch.nan)


def _shared(x: Tensor, y: Tensor) -> Tensor:
    """[head, row, a] @ [kv_head, a, b] -> [head, row, b]: grouped-query attention shares one kv_head in a group of heads."""
    group = x.shape[0] // y.shape[0]
    return (x.unflatten(0, (-1, group)).flatten(1, 2) @ y).unflatten(1, (group, -1)).flatten(0, 1)


def _output_weights(run: TraceRecord, records: Sequence[AttentionRecord]) -> Iterator[Tensor]:
    """W_O [d_model, head · d_head], float32, of attentions of the last stack."""
    blocks = list(run.loaded.model.stacks[-1].blocks)  # indexing a ModuleList is slow
    for record in records:
        module = getattr(blocks[cast(int, record.layer)], record.site)
        assert isinstance(module, Attention)
        yield module.o.weight.detach().float()


def _whole(found: EdgeAttribution) -> Tensor:
    """The additions. Raises InterventionError if those of some head are not defined."""
    lost = found.additions.isnan().all(-1).any(-1) & ~found.weights.isnan().any(-1).any(-1)
    if lost.any():
        head, layer = int(lost.nonzero()[0, 0]), found.record.layer
        raise InterventionError(
            f"An edit replaced the output of head {head} of layer {layer}, which is no sum over looks at keys any more. Take that "
            "edit out, or ask core.read.edge_attribution.head_logit_attribution() what the whole head adds."
        )
    return found.additions


def _at(records: Sequence[AttentionRecord], layer: int) -> AttentionRecord:
    if not 0 <= layer < len(records):
        raise IndexError(f"layer {layer} of {len(records)}")
    return records[layer]


def _admit(run: TraceRecord, numbers: int, what: str) -> None:
    device.check_fits_or_retry(4 * numbers, run.loaded.device, what, FEWER)


def _one(x: int | None) -> list[int] | None:
    return None if x is None else [x]


BLOCK_BYTES = 1 << 25  # of the weights of one layer that are held together


@dataclass(frozen=True, eq=False)
class Strongest:
    """The k keys with the largest weights of each head and row, the strongest first; fewer if a text has fewer keys.

    additions are the contributions of these edges to the logit of the most likely token after their row, in logits; None if
    logits are not sums over edges. If a layer has fewer heads than another, keys are −1 and weights NaN for the missing ones.
    """

    positions: tuple[int, ...]
    keys: Tensor  # [layer, head, row, k] int64
    weights: Tensor  # [layer, head, row, k] float32
    additions: Tensor | None  # [layer, head, row, k] float32


@dataclass(frozen=True, eq=False)
class EdgeWeights:
    """One edge, from a query to a key, in every head of every layer."""

    query: int
    key: int
    weights: Tensor  # [layer, head] float32
    additions: Tensor | None  # [layer, head] float32, in logits; see Strongest


def strongest_edges(
    run: TraceRecord, positions: Sequence[int] | None = None, k: int = 9, site: Site | None = None
) -> Strongest:
    """The k keys with the largest weights in every head, for the rows `positions` (None: the last real token).

    site None is cross-attention if the model has it, otherwise self-attention of the last stack. Only some rows of a layer
    are held at a time. Raises IndexError for a position, TextError for fewer than one key, and the errors of core.edge_attribution() for
    memory and weights.
    """
    if k < 1:
        raise TextError(f"The strongest keys are 1 or more, not {k}. Ask for 9.")
    record = records_of(run, site)[0]
    _, real_keys = run.tokens_of(record)
    n = min(k, sum(not padding for padding in real_keys.padding))
    queries = run.forward.prompt.last_read[run.index]  # of the last stack
    rows = checked_positions(queries, positions)
    step = max(1, BLOCK_BYTES // (4 * record.n_heads * record.n_key))

    def strongest(weights: Tensor, additions: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        best, keys = weights.topk(n)  # [head, row, k]
        return keys.cpu(), best.cpu(), None if additions is None else additions.gather(-1, keys).cpu()

    blocks = [_in_layers(run, rows[i : i + step], site, strongest) for i in range(0, len(rows), step)]
    layers = [
        [torch.cat(parts, 1) for parts in zip(*layer, strict=True) if parts[0] is not None]
        for layer in zip(*blocks, strict=True)
    ]
    keys, weights, *additions = (
        stack_ragged(parts, math.nan if parts[0].is_floating_point() else -1) for parts in zip(*layers, strict=True)
    )
    return Strongest(tuple(rows), keys, weights, additions[0] if additions else None)


def edge_in_all_heads(run: TraceRecord, query: int, key: int, site: Site | None = None) -> EdgeWeights:
    """The weight from `query` to `key` in every head, and the edge's contribution to the most likely token after the query.

    `site` is that of strongest_edges(). Raises IndexError for a query or a key that the run does not have.
    """
    record = records_of(run, site)[0]
    if not 0 <= key < record.n_key:
        raise IndexError(f"key {key} of {record.n_key}")
    if not 0 <= query < record.n_query:
        raise IndexError(f"query {query} of {record.n_query}")

    def one(weights: Tensor, additions: Tensor | None) -> tuple[Tensor, Tensor | None]:
        return weights[:, 0, key].cpu(), None if additions is None else additions[:, 0, key].cpu()

    layers = _in_layers(run, [query], site, one)
    added = [found for _, found in layers if found is not None]
    return EdgeWeights(
        query, key, stack_ragged([weights for weights, _ in layers], math.nan), torch.stack(added) if added else None
    )


def _in_layers(
    run: TraceRecord, rows: Sequence[int], site: Site | None, take: Callable[[Tensor, Tensor | None], T]
) -> list[T]:
    """take(weights, additions) of every layer, [head, row, key] each; additions are None if the model has none."""
    if has_looks(run):
        return each_edge(asked(run, rows, None, site), lambda found: take(found.weights, found.additions))
    return [take(record.pattern(queries=list(rows)), None) for record in records_of(run, site)]
