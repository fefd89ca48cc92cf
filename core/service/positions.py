"""How a run knows the order of its tokens, in plain data: its positions, another order, one query and one key as clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..errors import Refused
from ..model.positions import alibi_slopes, relative_bucket
from ..model.rules import DistanceBias
from ..model.transformer import Stack
from ..read import measures
from ..read.long_context import RULES, Rule, chances_by_gap, end_loss, gap_after, rescaled, stretches
from ..read.spaced_rows import spread
from ..read.word_order import (
    Equivariance,
    MovedOn,
    Unturned,
    closest_rows,
    cosine_by_distance,
    equivariance,
    moved_on,
    score_by_distance,
    unturned,
)
from ..read.word_swap import follows, pairs_to_swap, telling_row
from ..run.attention import AttentionRecord
from ..run.predictions import labels_of
from ..run.prompt import too_long
from ..run.recorder import PositionRecord, table_rows
from ..run.trace import Trace
from .facts import Side, Site, SiteId, array
from .worker import Worker, check_below

REACH = 64  # tokens to either side, of a rule over distance


@dataclass(frozen=True, eq=False)
class StackPositions:
    """How one stack of a run knows the order of its tokens. What a kind does not have is None."""

    stack: str
    kind: str  # learned, sinusoidal, rotary, alibi, relative: ModelConfig.position
    places: tuple[int, ...]  # where each token was believed to be
    n_ctx: int  # rows of its table; of other kinds the length that it was made for
    d_model: int
    parameters: int  # that were learnt for it
    layout: str | None = None  # of sinusoids: interleaved or halves
    # the two rows of the table that are nearest, and how far apart they are
    closest: tuple[int, int, float] | None = None
    compared: int = 0  # of how many rows
    alike: np.ndarray | None = None  # float32 [distance]: the mean cosine of two rows so far apart, without row 0
    too_long: str | None = None  # what is said of a text longer than the table
    frequencies: np.ndarray | None = None  # float32 [d_rotary/2]: radians a position
    slopes: np.ndarray | None = None  # float32 [head]: of ALiBi
    bias: np.ndarray | None = None  # float32 [head, 2 · REACH + 1]: what a distance adds to a score, key − query
    buckets: np.ndarray | None = None  # int [2 · REACH + 1]: the bucket of each distance


@dataclass(frozen=True, eq=False)
class OrderEffect:
    """What another order of the same tokens did to the heads of a site; everything by words, not by places."""

    rows: int  # evenly spaced, that were looked at
    of: int
    moved: np.ndarray  # float32 [layer, head]: the share of its attention that a head moved (measures.moved)
    reach: int
    before: np.ndarray | None  # float32 [layer, head, 2 · reach + 1]: mean weight by distance; nan where there is none
    after: np.ndarray | None  # the same by the places that the words have now; None for cross-attention
    places: tuple[int, ...]  # of the queries, now


@dataclass(frozen=True, eq=False)
class RotaryPairs:
    """One query and one key of a head before rotary positions turned them, and all that makes their score of a distance."""

    q: np.ndarray  # float32 [d_head]
    k: np.ndarray  # float32 [d_head], of the query's group
    frequencies: np.ndarray  # float32 [d_rotary/2]: radians a position; feature j turns with j + d_rotary/2
    scale: float  # of q·k
    factor: float  # by which turning makes q and k longer, of yarn; 1 otherwise
    places: tuple[int, int]  # of the query and of the key, in this run
    score: float  # theirs, in this run
    masked: bool  # whether the query may not look at the key, so that the score counts for nothing


@dataclass(frozen=True, eq=False)
class PaperRules:
    """ALiBi and T5's buckets as their papers write them: nobody's own numbers."""

    slopes: np.ndarray  # float32 [head]: of 8 heads
    bias: np.ndarray  # float32 [head, 2 · REACH + 1]: what ALiBi adds at a distance, key − query
    buckets: np.ndarray  # int [2 · REACH + 1]: of 32, up to 128 tokens to both sides
    wide: np.ndarray  # int [2 · far + 1]: the same further out
    decoder: np.ndarray  # int [far + 1]: of 32 for keys before the query alone, by how many tokens they are before it
    exact: int  # distances to either side that have a bucket of their own
    far: int  # from here on all distances share one


@dataclass(frozen=True, eq=False)
class ContextExtensions:
    """The frequencies of a model's rotary positions under each rule for longer texts (core.read.long_context)."""

    n_ctx: int  # tokens of a text that it was trained for
    base: float
    d_head: int
    rules: tuple[str, ...]
    frequencies: np.ndarray  # float32 [rule, d_rotary/2]: radians a position, of a text `factor` times as long
    factors: tuple[float, ...]  # by which each rule makes q and k longer


@dataclass(frozen=True)
class EndLoss:
    """The mean loss of the last tokens of a text."""

    loss: float  # nats
    last: int  # tokens that it is a mean of
    of: int  # tokens of the text


@dataclass(frozen=True)
class PositionGap:
    """A text with places left empty in its middle: the probability of its next token, by how many there are."""

    after: int  # the last token before the gap
    word: str  # the token that is asked for: the first guess on the text as it is
    gaps: tuple[int, ...]
    chances: tuple[float, ...]


@dataclass(frozen=True)
class TokenFollower:
    """The head that follows the word, or the place, more than any other, and the row that shows it best."""

    layer: int
    head: int
    query: int
    key: int  # the word or place that it looks at there, as it was
    by: float  # points of its attention: how much nearer it is to the one map than to the other


@dataclass(frozen=True, eq=False)
class WordSwap:
    """Two words that change places, for the heads of a site (core.read.word_swap.Follows, as arrays)."""

    along: (
        np.ndarray
    )  # float32 [layer, head]: the share of its attention by which a head's map differs from one carried along
    still: np.ndarray  # float32 [layer, head]: the same from the map as it was
    apart: np.ndarray  # float32 [layer]: the largest |Δ| of any weight from the map carried along
    after_both: float  # the same in rows after both words, over all layers
    one_back: np.ndarray  # float32 [2, layer, head]: the mean weight on the token before, as it was and now
    word: TokenFollower
    place: TokenFollower
    rows: int  # that along and still are means over
    read: int  # rows that were read, evenly spaced
    of: int
    weights: int  # that apart is the largest over: of all layers and heads


@dataclass(frozen=True, eq=False)
class SwappedMaps:
    """One head before and after two words have changed places: all tokens of a short text, else those that matter here."""

    places: tuple[int, ...]  # in their order, both words among them
    before: np.ndarray  # float32 [row, key] of these places, as it was
    after: np.ndarray  # the same on the swapped text
    allowed: np.ndarray  # bool [row, key]: whether the mask lets it look, on the swapped text


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


def order_change(a: Trace, b: Trace, site: Site, reach: int) -> OrderEffect:
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
    return OrderEffect(
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


def rotary_pairs_of(
    run: Trace, record: AttentionRecord, before: Unturned, head: int, query: int, key: int
) -> RotaryPairs:
    """The clock of two words, whose query and key are in `before`, as core.read.word_order.unturned gives them."""
    shared = head // (record.n_heads // record.n_kv_heads)
    config, rule = run.config, record.rule
    places = next(found.places for found in run.positions if found.stack == record.stack)
    assert record.layer is not None  # a run's record
    windowed = config.is_windowed(record.layer)
    frequencies, factor = _stack(run, record.stack).frequencies(len(places), windowed, places.device)
    return RotaryPairs(
        q=array(before.q[head, query]),
        k=array(before.k[shared, key]),
        frequencies=array(frequencies),
        scale=rule.scale / rule.temperature,
        factor=factor,
        places=(int(places[query]), int(places[key])),
        score=float(record.scores(head, query, key)[0, 0, 0]),
        masked=not bool(record.mask(query, key, head=head)[0, 0]),
    )


def scores_of(clock: RotaryPairs, distances: Sequence[float]) -> np.ndarray:
    """The score of a clock's two words at other distances, float32 [distance]."""
    q, k, frequencies = (torch.from_numpy(x.copy()) for x in (clock.q, clock.k, clock.frequencies))
    return array(score_by_distance(q, k, frequencies, clock.scale, distances, clock.factor))


def swap_of(a: Trace, b: Trace, site: Site, words: tuple[int, int]) -> WordSwap:
    """From a run and the one in which these two words have changed places."""
    found = follows(a, b, site.records, *words)

    def follower(by: Tensor, place: bool) -> TokenFollower:
        layer, head = divmod(int(by.argmax()), site.n_heads)
        query, key, _ = telling_row(a, b, site.records[layer], head, words, place)
        return TokenFollower(layer, head, query, key, by[layer, head].item())

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


def context_extensions_of(run: Trace, factor: float) -> ContextExtensions:
    """Of a run's model. Raises Refused where its positions do not turn."""
    config = run.config
    found = stretches(config, factor)
    return ContextExtensions(
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


def position_gap_of(run: Trace, rule: Rule, factor: float, gaps: Sequence[int]) -> PositionGap:
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
    return PositionGap(after, word, tuple(gaps), tuple(chance for _, chance in found))


class LocalPositions(Worker):
    """Positions and what another order does."""

    async def positions(self, key: str) -> tuple[StackPositions, ...]:
        """How each stack of the run knows the order of its tokens."""

        async def make() -> tuple[StackPositions, ...]:
            run = await self._run(key)
            return await self._work(partial(positions_of, run), slow=True)

        return await self._kept.get(("positions", key), make)

    async def position_rows(self, key: str, stack: str, first: int, rows: int) -> np.ndarray:
        """Rows of a stack's own table of positions, as it was loaded: float32 [pos, d_model]."""
        run = await self._run(key)
        return await self._work(partial(rows_of, run, stack, first, rows))

    async def order_change(self, key: str, other: str, site: SiteId, reach: int = 8) -> OrderEffect:
        """How far each head of a site moved in another run of the same tokens, and what each gives to every distance."""

        async def make() -> OrderEffect:
            run, at = await self._site(key, site)
            changed, _ = await self._site(other, site)
            return await self._work(partial(order_change, run, changed, at, reach), slow=True)

        return await self._kept.get(("order", key, other, site, reach), make)

    async def equivariance(self, key: str, places: Sequence[int]) -> Equivariance:
        """The proof that order comes in through positions alone: the words of an encoder's text moved to other places."""
        make = partial(self._again, key, lambda run: equivariance(run, places))
        return await self._kept.get(("equivariance", key, tuple(places)), make)

    async def moved_on(self, key: str, by: int) -> MovedOn:
        """What it does to the run's scores and weights to move the whole text on by so many places."""
        return await self._kept.get(("moved on", key, by), lambda: self._again(key, lambda run: moved_on(run, by)))

    async def rotary_pairs(self, key: str, record: int, head: int, query: int, at: int) -> RotaryPairs:
        """One query and one key before rotary positions turned them, and all that makes their score of a distance."""
        found = await self._record(key, record)
        for what, value, n in (
            ("head", head, found.n_heads),
            ("query", query, found.n_query),
            ("key", at, found.n_key),
        ):
            check_below(what, value, n)

        async def make() -> Unturned:
            return await self._again(key, lambda run: unturned(run, found))

        before = await self._kept.get(("unturned", key, record), make)
        return await self._work(partial(rotary_pairs_of, await self._run(key), found, before, head, query, at))

    async def pairs_to_swap(self, key: str, side: Side) -> tuple[tuple[int, int], ...]:
        """Pairs of words of one text of the run that are worth swapping, by their places; the first of them first."""
        run = await self._run(key)
        tokens = run.source if side == "source" else run.target
        return () if tokens is None else await self._work(partial(pairs_to_swap, run, tokens))

    async def word_swap(self, key: str, other: str, site: SiteId, words: tuple[int, int]) -> WordSwap:
        """Which heads follow the word and which the place, where two words have changed places in another run
        (edits.SwapWords)."""

        async def make() -> WordSwap:
            run, at = await self._site(key, site)
            swapped, _ = await self._site(other, site)
            return await self._work(partial(swap_of, run, swapped, at, words), slow=True)

        return await self._kept.get(("swap", key, other, site, words), make)

    async def swapped_maps(
        self, key: str, other: str, record: int, head: int, query: int, words: tuple[int, int]
    ) -> SwappedMaps:
        """One head of both runs, of all places or of those that matter for one row."""
        found, changed = await self._record(key, record), await self._record(other, record)
        check_below("head", head, found.n_heads)
        for place in (query, *words):
            check_below("query", place, found.n_query)
        if found.site != "attn":
            raise Refused("Words are swapped within one text: cross-attention looks from one into another.")
        return await self._work(partial(swapped_maps, found, changed, head, query, words))

    async def context_extensions(self, key: str, factor: float) -> ContextExtensions:
        """The frequencies of the run's model under each rule for texts `factor` times as long as it was trained for."""
        return context_extensions_of(await self._run(key), factor)

    async def end_loss(self, key: str, text: str, rule: Rule, factor: float, dropped: bool = False) -> EndLoss:
        """The loss of the run's model at the end of another text, by a rule for longer texts, or without positions."""
        make = partial(self._again, key, lambda run: end_loss_of(run, text, rule, factor, dropped))
        model = (await self._run(key)).spec.id  # whatever was typed: the text is another one
        return await self._kept.get(("end loss", key, model, text, rule, factor, dropped), make)

    async def position_gap(self, key: str, rule: Rule, factor: float, gaps: Sequence[int]) -> PositionGap:
        """The probability of the run's next token where so many places are left empty in its text."""
        make = partial(self._again, key, lambda run: position_gap_of(run, rule, factor, gaps))
        return await self._kept.get(("gap", key, rule, factor, tuple(gaps)), make)
