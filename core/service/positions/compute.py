"""The order of a run's tokens, computed: its positions, what another order does to it, one query and one key as clocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ...errors import Refused
from ...model.positions import alibi_slopes, relative_bucket
from ...model.rules import DistanceBias
from ...model.transformer import Stack
from ...read import measures
from ...read.long_context import RULES, Rule, chances_by_gap, end_loss, gap_after, rescaled, stretches
from ...read.spaced_rows import spread
from ...read.word_order import Unturned, closest_rows, cosine_by_distance, score_by_distance
from ...read.word_swap import follows, telling_row
from ...run.attention import AttentionRecord
from ...run.predictions import labels_of
from ...run.prompt import too_long
from ...run.recorder import PositionRecord, table_rows
from ...trace import Trace
from ..answers import Site
from ..maps.compute import array
from .answers import (
    REACH,
    Clock,
    EndLoss,
    Follower,
    OrderChange,
    PaperRules,
    PulledApart,
    StackPositions,
    Stretches,
    SwappedMaps,
    WordSwap,
)

BEYOND = 90  # tokens beyond the end of a table, in the sentence that says what happens there
MOST_COMPARED = 2048  # rows of a table that are held against each other
MOST_ROWS = 256  # of a table, in one answer
CELLS = 24_000_000  # weights that are computed to say how far the heads of a site move
MOST_PLACES = 20  # tokens of a map of two words that change places; of a longer text, those that matter
LONG, LAST = 512, 64  # tokens of a long text, and those at its end whose loss is told
MOST_APART = 256  # tokens of a text that is pulled apart: a run for each gap
FAR = 128  # tokens, from which on all distances share a bucket in T5
MOVED_ROWS = 256  # of each head, at most


def positions_of(run: Trace) -> tuple[StackPositions, ...]:
    """Of every stack of a run."""
    return tuple(_positions(run, record) for record in run.positions)


def _positions(run: Trace, record: PositionRecord) -> StackPositions:
    config = run.config
    known = StackPositions(
        record.stack, record.kind, tuple(record.places.tolist()), config.n_ctx, config.d_model, parameters=0
    )
    facts: dict[str, object] = {}
    if config.has_position_table:
        n = min(config.n_ctx, MOST_COMPARED)
        table = _rows(run, record.stack, range(n)).float().cpu()
        facts = {
            "parameters": config.n_ctx * config.d_model if record.kind == "learned" else 0,
            "layout": config.sinusoid_layout if record.kind == "sinusoidal" else None,
            "closest": closest_rows(table) if n > 1 else None,
            "compared": n,
            "alike": array(cosine_by_distance(table[1:], REACH)) if n > 2 else None,
            "too_long": too_long(config.n_ctx + BEYOND, run.spec.title, config.n_ctx),
        }
    elif record.kind == "rotary":
        frequencies, _ = _stack(run, record.stack).frequencies(len(record.places), False, torch.device("cpu"))
        facts = {"frequencies": array(frequencies)}
    elif record.bias is not None:
        facts = _rule(run, record, record.bias)
    return StackPositions(**{**known.__dict__, **facts})  # type: ignore[arg-type]


def _rule(run: Trace, record: PositionRecord, bias: DistanceBias) -> dict[str, object]:
    config = run.config
    distances = torch.arange(-REACH, REACH + 1, device=record.places.device)
    with torch.inference_mode():
        run.forward.weights.check()
        added = bias.of_distance(distances[None, None])[0, :, 0]  # [head, distance]
    if record.kind == "alibi":
        return {"slopes": array(alibi_slopes(config.n_heads)), "bias": array(added)}
    buckets = relative_bucket(
        distances, config.n_relative_buckets, config.max_relative_distance, record.stack == "encoder"
    )
    learnt = config.n_relative_buckets * config.n_heads
    return {"bias": array(added), "buckets": buckets.cpu().numpy(), "parameters": learnt}


def paper_rules() -> PaperRules:
    """Press et al. 2021, arXiv:2108.12409, §3; Raffel et al. 2020, §2.1."""
    slopes = alibi_slopes(8)
    distances = torch.arange(-REACH, REACH + 1)
    buckets = relative_bucket(distances, 32, FAR, bidirectional=True)
    wide = relative_bucket(torch.arange(-FAR, FAR + 1), 32, FAR, bidirectional=True)
    decoder = relative_bucket(-torch.arange(FAR + 1), 32, FAR, bidirectional=False)
    bias = array(-slopes[:, None] * distances.abs())
    return PaperRules(array(slopes), bias, buckets.numpy(), wide.numpy(), decoder.numpy(), exact=8, far=FAR)


def rows_of(run: Trace, stack: str, first: int, n: int) -> np.ndarray:
    """Rows of a stack's own table of positions as it was loaded, float32 [pos, d_model]. Raises Refused where it has none."""
    config = run.config
    names = [name for name, _ in config.stacks]
    if stack not in names:
        raise Refused(f"{run.spec.title} has no {stack}. It has {' and '.join(names)}.")
    if not config.has_position_table:
        raise Refused(f"{run.spec.title} adds no table of positions: its positions are {config.position}.")
    if not (0 <= first < config.n_ctx and 1 <= n <= MOST_ROWS):
        raise Refused(f"This table has rows 0 to {config.n_ctx - 1}. Ask for at most {MOST_ROWS} of them.")
    return array(_rows(run, stack, range(first, min(first + n, config.n_ctx))))


def _rows(run: Trace, stack: str, rows: range) -> Tensor:
    places = torch.arange(rows.start, rows.stop, device=run.loaded.device)
    return table_rows(run.forward, stack, places[None])[0]


def _stack(run: Trace, name: str) -> Stack:
    found = run.loaded.model.get_submodule(name)
    assert isinstance(found, Stack)
    return found


def order_change(a: Trace, b: Trace, site: Site, reach: int) -> OrderChange:
    """How far every head of a site moves from one run to another of the same tokens. Raises Refused for other tokens."""
    first = a.attention[site.records[0]]
    mine, theirs = a.tokens_of(first), b.tokens_of(b.attention[site.records[0]])
    if len(a.attention) != len(b.attention) or any(x.ids != y.ids for x, y in zip(mine, theirs, strict=True)):
        raise Refused("These two runs are of different tokens, so that no word of one is a word of the other.")
    n = max(1, min(MOVED_ROWS, CELLS // (2 * len(site.records) * first.n_heads * first.n_key)))
    rows = spread(first.n_query, n)
    within = site.id != "cross"
    before, after = (_line(a, first.stack), _line(b, first.stack, a)) if within else (None, None)
    moved: list[Tensor] = []
    found: tuple[list[Tensor], list[Tensor]] = ([], [])  # before and after, by layer
    for i in site.records:
        patterns = [run.attention[i].pattern(queries=rows).cpu() for run in (a, b)]
        moved.append(measures.moved(patterns[0], patterns[1]))
        for layers, pattern, line in zip(found, patterns, (before, after), strict=True):
            if line is not None:
                layers.append(measures.by_distance(pattern, line[rows], reach, line))
    stacked = [array(torch.stack(layers)) if layers else None for layers in found]
    return OrderChange(
        rows=len(rows),
        of=first.n_query,
        moved=array(torch.stack(moved)),
        reach=reach,
        before=stacked[0],
        after=stacked[1],
        places=tuple(_line(b, first.stack, a).tolist()),
    )


def _line(run: Trace, stack: str, without: Trace | None = None) -> Tensor:
    """Where the words of a stack stand, [pos]; of a run whose positions were all taken away, where they stood in `without`."""
    places = next(record.places for record in run.positions if record.stack == stack).cpu()
    if without is not None and len(places) > 1 and len(places.unique()) == 1:
        return _line(without, stack)
    return places


def clock_of(run: Trace, record: AttentionRecord, before: Unturned, head: int, query: int, key: int) -> Clock:
    """The clock of two words, whose query and key are in `before`, as core.read.word_order.unturned gives them."""
    shared = head // (record.n_heads // record.n_kv_heads)
    config, rule = run.config, record.rule
    places = next(found.places for found in run.positions if found.stack == record.stack)
    assert record.layer is not None  # a run's record
    windowed = config.is_windowed(record.layer)
    frequencies, factor = _stack(run, record.stack).frequencies(len(places), windowed, places.device)
    return Clock(
        q=array(before.q[head, query]),
        k=array(before.k[shared, key]),
        frequencies=array(frequencies),
        scale=rule.scale / rule.temperature,
        factor=factor,
        places=(int(places[query]), int(places[key])),
        score=float(record.scores(head, query, key)[0, 0, 0]),
        masked=not bool(record.mask(query, key, head=head)[0, 0]),
    )


def scores_of(clock: Clock, distances: Sequence[float]) -> np.ndarray:
    """The score of a clock's two words at other distances, float32 [distance]."""
    q, k, frequencies = (torch.from_numpy(x.copy()) for x in (clock.q, clock.k, clock.frequencies))
    return array(score_by_distance(q, k, frequencies, clock.scale, distances, clock.factor))


def swap_of(a: Trace, b: Trace, site: Site, words: tuple[int, int]) -> WordSwap:
    """From a run and the one in which these two words have changed places."""
    found = follows(a, b, site.records, *words)

    def follower(by: Tensor, place: bool) -> Follower:
        layer, head = divmod(int(by.argmax()), site.n_heads)
        query, key, _ = telling_row(a, b, site.records[layer], head, words, place)
        return Follower(layer, head, query, key, by[layer, head].item())

    return WordSwap(
        along=array(found.along),
        still=array(found.still),
        apart=array(found.apart),
        after_both=found.after_both,
        one_back=array(found.one_back),
        word=follower(found.word, place=False),
        place=follower(-found.word, place=True),
        rows=found.rows,
        read=found.read,
        of=found.of,
        weights=len(site.records) * site.n_heads * found.read * site.n_key,
    )


def swapped_maps(a: AttentionRecord, b: AttentionRecord, head: int, query: int, words: tuple[int, int]) -> SwappedMaps:
    """Of a text of more than MOST_PLACES tokens: the first, the row, both words, and the keys that the row looks at most in
    either run; then the rows that have changed most at the two words."""
    n = a.n_query
    places = list(range(n))
    if n > MOST_PLACES:
        first, second = words
        other = {first: second, second: first}
        rows = [x.pattern(head, query)[0, 0].cpu() for x in (a, b)]
        looks = torch.maximum(*rows).argsort(descending=True, stable=True).tolist()
        columns = [x.pattern(head, keys=[first, second])[0].cpu() for x in (a, b)]  # [query, 2]
        change = (columns[1] - columns[0]).abs().sum(-1).argsort(descending=True, stable=True).tolist()
        chosen = {0, query, first, second}
        for some, most in ((looks, 2 * MOST_PLACES // 3), (change, MOST_PLACES)):
            for place in map(int, some):
                if len(chosen) >= most:
                    break
                chosen.add(other.get(place, place))
        places = sorted(chosen)
    before, after = (array(x.pattern(head, places, places)[0]) for x in (a, b))
    return SwappedMaps(tuple(places), before, after, b.mask(places, places, head=head).cpu().numpy())


def stretches_of(run: Trace, factor: float) -> Stretches:
    """Of a run's model. Raises Refused where its positions do not turn."""
    config = run.config
    found = stretches(config, factor)
    return Stretches(
        config.n_ctx,
        config.rotary_base,
        config.d_head,
        RULES,
        array(torch.stack([one.frequencies for one in found])),
        tuple(one.factor for one in found),
    )


def end_loss_of(run: Trace, text: str, rule: Rule, factor: float, dropped: bool) -> EndLoss:
    """Of the first LONG tokens of a text, or as many as the model takes."""
    if run.config.kind != "decoder" or run.config.head == "none":
        raise Refused(f"{run.spec.title} does not write on: there is no loss of a next word. Choose a decoder.")
    loaded = rescaled(run.loaded, rule, factor) if rule != "none" else run.loaded
    ids = list(loaded.tokens(text).ids)[: min(LONG, run.config.n_ctx)]
    last = min(LAST, len(ids) - 1)
    return EndLoss(end_loss(loaded, ids, last, dropped), last, len(ids))


def pulled_apart_of(run: Trace, rule: Rule, factor: float, gaps: Sequence[int]) -> PulledApart:
    """The first guess on the run's text, with `gaps` places left empty after its last comma."""
    if run.config.kind != "decoder" or run.config.head == "none":
        raise Refused(f"{run.spec.title} does not write on: there is no next word. Choose a decoder.")
    if len(run.source) > MOST_APART:
        raise Refused(
            f"A text of {len(run.source)} tokens is too long to pull apart: type one of {MOST_APART} at most."
        )
    after = gap_after(run.source)
    found = list(chances_by_gap(run, rule, factor, gaps, after))
    word = labels_of(run.loaded, [found[0][0]])[0]
    return PulledApart(after, word, tuple(gaps), tuple(chance for _, chance in found))
