"""The share of one look in a logit: the weight that a query gives to a key, times what the value at that key writes there.

A head's output is a sum over keys, weight · value W_O, and a logit is linear in it once every norm's scale is taken as it was
in the run. So the logit is a sum over single looks as well (Elhage et al. 2021, "A Mathematical Framework for Transformer
Circuits"; Kobayashi et al. 2020, arXiv:2004.10102, of lengths). It is the direct path alone: what a look tells later layers is in
their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import Tensor

from .. import memory
from ..errors import InterventionError, TextError
from ..model.transformer import Attention
from ..run.attention import AttentionRecord
from ..run.patterns import patterns_of
from ..run.predictions import strings_of
from ..run.recorder import held_bytes
from ..run.trace import Trace
from .directions import Asked, Site, asked, directions, records_of

T = TypeVar("T")

FEWER = "Ask for fewer positions, or for one layer."
SAME = 1e-3  # of the length of what an edit left, by which it may differ from a multiple of what was there


@dataclass(frozen=True, eq=False)
class Moves:
    """The additions of each head's output to the logits of the likeliest words, the likeliest first."""

    tokens: tuple[int, ...]
    strings: tuple[str, ...]  # as the tokenizer spells them
    values: Tensor  # [layer, head, token], in logits


@dataclass(frozen=True, eq=False)
class Looked:
    """One attention in the rows that were asked about: the weights, and what each look adds to its row's logit, in logits.

    additions are nan in heads whose output an edit replaced by one that is no sum over keys.
    """

    record: AttentionRecord
    weights: Tensor  # [head, row, key] float32
    additions: Tensor  # [head, row, key] float32


def looks(run: Trace, position: int | None = None, token: int | None = None, site: Site | None = None) -> Tensor:
    """The addition of each look from `position` (None: the last real token) to the logit of `token` (None: the likeliest there),
    [layer, head, key], float32, in logits: weight · (value W_O · g), g the direction in which the logit reads the head's output.

    Summed over keys it is what the head adds, as Trace.logit_attribution() has it. Keys that a head may not see have exactly 0.
    site None is cross-attention where the model has it, else self-attention of the last stack. A head that an edit silenced
    or made louder has that in its looks. Raises TextError for a model whose logits are not linear in its stream, IndexError for
    a position, InterventionError where an edit replaced a head's output by one that is no sum over keys, TooLarge, and Outdated
    after a training. Elhage et al. 2021.
    """
    wanted = asked(run, _one(position), _one(token), site)
    records = records_of(run, site)
    _admit(run, sum(record.n_heads * record.n_key for record in records), f"The looks of {len(records)} layers")
    return torch.stack([found[:, 0] for found in each_look(wanted, _whole)])


def looks_in(
    run: Trace, layer: int, positions: Sequence[int] | None = None, site: Site | None = None, token: int | None = None
) -> Tensor:
    """looks() of one layer from several positions (None: from all), each to `token` (None: the likeliest after it): [head, query, key].

    Nothing larger than the result is held. Raises as looks() does, and IndexError for a layer.
    """
    n = len(run.forward.prompt.last_read[run.index])
    wanted = asked(run, range(n) if positions is None else positions, _one(token), site)
    record = _at(records_of(run, site), layer)
    what = f"The looks of {record.n_heads} heads at {len(wanted.positions):,} positions"
    _admit(run, 3 * record.n_heads * len(wanted.positions) * record.n_key, what)
    (found,) = each_look(wanted, _whole, [layer])
    return found


def adds(
    run: Trace, position: int | None = None, tokens: Sequence[int] | None = None, site: Site | None = None
) -> Tensor:
    """The addition of each head to the logits of several tokens (None: of the likeliest alone) after `position`, [token, layer, head].

    The heads' parts of Trace.logit_attribution(), for all these tokens at once. float32, in logits. Raises as looks() does, but takes
    heads of any edit.
    """
    wanted = asked(run, _one(position), tokens, site)
    records, g = records_of(run, site), directions(wanted)
    at = wanted.positions[0]

    def added(record: AttentionRecord, v: Tensor, z: Tensor | None, result: Tensor | None) -> Tensor:
        if result is None:
            z = _shared(record.pattern(queries=[at]), v) if z is None else z[:, [at]]
            result = torch.einsum("hqd,mhd->hqm", z, _weight(run, record))
        else:
            result = result[:, [at]]
        return torch.einsum("hm,tm->th", result[:, 0], g[cast(int, record.layer)])

    return torch.stack(_outputs(run, records, added), 1)


def moves(run: Trace, position: int | None = None, among: int = 100, site: Site | None = None) -> Moves:
    """The addition of each head to the logits of the `among` likeliest words after `position`, Moves with [layer, head, among].

    Over a whole vocabulary a head's largest numbers are words that no text would have there. Raises as adds() does, and
    TextError for fewer than one word.
    """
    if among < 1:
        raise TextError(f"The likeliest words are 1 or more, not {among}. Ask for 100.")
    found = run.predictions(_one(position), min(among, run.config.vocab_size))
    ids = found.ids[0]
    return Moves(ids, strings_of(run.loaded, ids), adds(run, position, ids, site).permute(1, 2, 0))


def each_look(wanted: Asked, take: Callable[[Looked], T], layers: Sequence[int] | None = None) -> list[T]:
    """take() of every layer's looks (None: of all layers), in the order of the pass, for callers that keep less than everything.

    One layer at a time exists, [head, row, key] for the weights and the additions. A run that does not hold its values has
    them from one more pass.
    """
    run = wanted.run
    g = directions(wanted)
    records = records_of(run, wanted.site)
    records = records if layers is None else tuple(_at(records, layer) for layer in layers)
    rows = list(wanted.positions)

    patterns = patterns_of(records, rows)

    def look(record: AttentionRecord, v: Tensor, z: Tensor | None, result: Tensor | None) -> T:
        weight = _weight(run, record)  # [d_model, head, d_head]
        reads = torch.einsum("rm,mhd->hrd", g[cast(int, record.layer)], weight)  # what a row takes from a head's z
        weights = next(patterns)
        added = _shared(reads, v.mT) * weights
        if z is not None or result is not None:
            added *= _left(_shared(weights, v), z, result, weight, rows)[..., None]
        return take(Looked(record, weights, added))

    return _outputs(run, records, look)


def _outputs(
    run: Trace,
    records: Sequence[AttentionRecord],
    take: Callable[[AttentionRecord, Tensor, Tensor | None, Tensor | None], T],
) -> list[T]:
    """take(record, v, z, result) of each: values [kv_head, key, d_head], and, where an edit may have changed them, z
    [head, query, d_head] and the heads' results [head, query, d_model]. float32; held, or from one pass for all records."""
    index, edited = run.index, run.forward.edited

    def own(x: Tensor) -> Tensor:
        return x[index if x.shape[0] > 1 else 0].to(run.loaded.device).float()

    if all(
        held_bytes(r.values) and (r.edited_z is None or held_bytes(r.edited_z)) and not r.edited_result for r in records
    ):
        return [take(r, own(r.values()), None if r.edited_z is None else own(r.edited_z()), None) for r in records]
    ends = ("hook_v", "hook_z", "hook_result")
    wanted = {r.name: [f"{r.name}.{e}" for e in ends if e == "hook_v" or f"{r.name}.{e}" in edited] for r in records}
    by_name = {record.name: record for record in records}
    seen: dict[str, Tensor] = {}  # of the attention that the pass is in
    found: list[T] = []

    def part(point: str, x: Tensor) -> Tensor:
        name = point.rsplit(".", 1)[0]
        seen[point] = own(x)
        if point == wanted[name][-1]:
            v, z, result = (seen.pop(f"{name}.{end}", None) for end in ends)
            assert v is not None
            found.append(take(by_name[name], v, z, None if result is None else result.transpose(0, 1)))
        return x[:0]

    run.forward.moments([point for points in wanted.values() for point in points], part)
    return found


def _left(own: Tensor, z: Tensor | None, result: Tensor | None, weight: Tensor, rows: Sequence[int]) -> Tensor:
    """[head, row]: the multiple of a head's own output [head, row, d_head] that edits left of it; nan where they left another."""
    factor = own.new_ones(own.shape[:2])
    if z is not None:
        z = z[:, rows]
        factor, own = factor * _multiple(z, own), z
    if result is not None:
        factor = factor * _multiple(result[:, rows], torch.einsum("hrd,mhd->hrm", own, weight))
    return factor


def _multiple(left: Tensor, own: Tensor) -> Tensor:
    """Which multiple of `own` [..., n] is left, [...]; nan where it is none."""
    times = (left * own).sum(-1) / own.pow(2).sum(-1).clamp(min=1e-30)
    off = (left - times[..., None] * own).norm(dim=-1)
    return torch.where(off <= SAME * left.norm(dim=-1) + 1e-6, times, torch.nan)


def _shared(x: Tensor, y: Tensor) -> Tensor:
    """[head, row, a] @ [kv_head, a, b] -> [head, row, b]: each group of heads with the keys or values that it shares."""
    group = x.shape[0] // y.shape[0]
    return (x.unflatten(0, (-1, group)).flatten(1, 2) @ y).unflatten(1, (group, -1)).flatten(0, 1)


def _weight(run: Trace, record: AttentionRecord) -> Tensor:
    """W_O [d_model, head, d_head], float32."""
    module = run.loaded.model.get_submodule(record.name)
    assert isinstance(module, Attention)
    return module.o.weight.detach().float().unflatten(1, (record.n_heads, -1))


def _whole(found: Looked) -> Tensor:
    """The additions. Raises InterventionError where those of some head are not defined."""
    lost = found.additions.isnan().all(-1).any(-1) & ~found.weights.isnan().any(-1).any(-1)
    if lost.any():
        head, layer = int(lost.nonzero()[0, 0]), found.record.layer
        raise InterventionError(
            f"An edit replaced the output of head {head} of layer {layer}, which is no sum over looks at keys any more. Take that "
            "edit out, or ask core.adds() what the whole head adds."
        )
    return found.additions


def _at(records: Sequence[AttentionRecord], layer: int) -> AttentionRecord:
    if not 0 <= layer < len(records):
        raise IndexError(f"layer {layer} of {len(records)}")
    return records[layer]


def _admit(run: Trace, numbers: int, what: str) -> None:
    memory.admit_large(4 * numbers, run.loaded.device, what, FEWER)


def _one(x: int | None) -> list[int] | None:
    return None if x is None else [x]
