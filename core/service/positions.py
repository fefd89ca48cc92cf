"""Questions about how a run knows the order of its tokens: its positional encoding, reordered texts, rotary pairs, longer contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..device import array
from ..errors import HeadlightError
from ..labs.positions import (
    RULES,
    Equivariance,
    PreRotary,
    Rule,
    ShiftInvariance,
    before_rotary,
    closest_rows,
    context_extensions,
    cosine_by_distance,
    end_loss,
    equivariance,
    example_row,
    gap_after,
    pairs_to_swap,
    probability_by_gap,
    score_by_distance,
    shift_invariance,
    token_vs_position,
    with_rope_scaling,
)
from ..model.positions import alibi_slopes, relative_bucket
from ..model.rules import DistanceBias
from ..model.transformer import Stack
from ..read import measures
from ..read.measures import evenly_spaced
from ..run.attention import AttentionRecord
from ..run.predictions import labels_of
from ..run.prompt import context_overflow_message
from ..run.recorder import PositionRecord, table_rows
from ..trace import Trace
from .facts import Side, Site, SiteId
from .worker import Worker, check_below

REACH = 64  # tokens to either side that a distance rule is shown for


@dataclass(frozen=True, eq=False)
class StackPositions:
    """Positional encoding of one stack of a run. Fields that do not apply to its kind are None."""

    stack: str
    kind: str  # learned, sinusoidal, rotary, alibi, relative: ModelConfig.position
    places: tuple[int, ...]  # position id of each token
    n_ctx: int  # rows of the position table; for other kinds the trained context
    d_model: int
    parameters: int  # number of learned parameters
    layout: str | None = None  # of sinusoids: interleaved or halves
    # the two closest rows of the table, and their distance
    closest: tuple[int, int, float] | None = None
    compared: int = 0  # rows that were compared
    alike: np.ndarray | None = None  # float32 [distance]: mean cosine of two rows at this distance, without row 0
    too_long: str | None = None  # error message for a text longer than the table
    frequencies: np.ndarray | None = None  # float32 [d_rotary/2]: radians per position
    slopes: np.ndarray | None = None  # float32 [head]: of ALiBi
    bias: np.ndarray | None = None  # float32 [head, 2 · REACH + 1]: bias of a distance, key − query
    buckets: np.ndarray | None = None  # int [2 · REACH + 1]: the bucket of each distance


@dataclass(frozen=True, eq=False)
class OrderEffect:
    """Effect of another order of the same tokens on the heads of a site. Rows and columns follow the words, not the positions."""

    rows: int  # evenly spaced rows that were read
    of: int
    moved: np.ndarray  # float32 [layer, head]: share of its attention that a head moved (measures.total_variation)
    reach: int
    before: (
        np.ndarray | None
    )  # float32 [layer, head, 2 · reach + 1]: mean weight by distance; NaN for distances that do not occur
    after: np.ndarray | None  # the same by the new positions of the words; None for cross-attention
    places: tuple[int, ...]  # new positions of the queries


@dataclass(frozen=True, eq=False)
class RotaryPairs:
    """One query and one key of a head before RoPE, and everything that determines their score at a distance."""

    q: np.ndarray  # float32 [d_head]
    k: np.ndarray  # float32 [d_head], of the KV head of the query's group
    frequencies: np.ndarray  # float32 [d_rotary/2]: radians per position; feature j is rotated with j + d_rotary/2
    scale: float  # of q·k
    factor: float  # scale of q and k after rotation: YaRN's attention factor, otherwise 1
    places: tuple[int, int]  # positions of the query and of the key, in this run
    score: float  # in this run
    masked: bool  # True if the query cannot attend to the key, so that the score is not used


@dataclass(frozen=True, eq=False)
class PaperRules:
    """ALiBi and T5's buckets as defined in their papers, independent of any model."""

    slopes: np.ndarray  # float32 [head]: of 8 heads
    bias: np.ndarray  # float32 [head, 2 · REACH + 1]: ALiBi's bias of a distance, key − query
    buckets: np.ndarray  # int [2 · REACH + 1]: 32 buckets, up to 128 tokens to both sides
    wide: np.ndarray  # int [2 · far + 1]: the same for larger distances
    decoder: np.ndarray  # int [far + 1]: 32 causal buckets, by the number of tokens before the query
    exact: int  # distances to either side with a bucket of their own
    far: int  # all distances from here on share one bucket


@dataclass(frozen=True, eq=False)
class ContextExtensions:
    """RoPE frequencies of a model under each context-extension rule (core.labs.positions)."""

    n_ctx: int  # trained context
    base: float
    d_head: int
    rules: tuple[str, ...]
    frequencies: np.ndarray  # float32 [rule, d_rotary/2]: radians per position, for a context `factor` times as long
    factors: tuple[float, ...]  # scale of q and k under each rule


@dataclass(frozen=True)
class EndLoss:
    """Mean loss of the last tokens of a text."""

    loss: float  # nats
    last: int  # number of these tokens
    of: int  # number of tokens of the text


@dataclass(frozen=True)
class PositionGap:
    """Probability of the next token when positions are skipped in the middle of a text, by the number of skipped positions."""

    after: int  # the last token before the gap
    word: str  # the measured token: the top prediction without a gap
    gaps: tuple[int, ...]
    chances: tuple[float, ...]


@dataclass(frozen=True)
class TokenFollower:
    """The head that follows the word, or the position, most strictly, and the row that shows it best."""

    layer: int
    head: int
    query: int
    key: int  # the word or position that it attends to in that row, before the swap
    by: float  # how much closer it is to the one map than to the other, as a share of its attention


@dataclass(frozen=True, eq=False)
class WordSwap:
    """Effect of swapping two words on the heads of a site (core.labs.positions.SwapResponse, as arrays)."""

    # float32 [layer, head]: share of its attention by which a head's map differs from the map permuted with the words
    along: np.ndarray
    still: np.ndarray  # float32 [layer, head]: the same from the unchanged map
    apart: np.ndarray  # float32 [layer]: largest |Δ| of any weight from the permuted map
    after_both: float  # the same in rows after both words, over all layers
    one_back: np.ndarray  # float32 [2, layer, head]: mean weight on the previous token, before and after the swap
    word: TokenFollower
    place: TokenFollower
    rows: int  # number of rows in the means of along and still
    read: int  # evenly spaced rows that were read
    of: int
    weights: int  # number of weights in the maximum of apart, of all layers and heads


@dataclass(frozen=True, eq=False)
class SwappedMaps:
    """One head before and after two words are swapped: all tokens of a short text, the relevant ones of a long text."""

    places: tuple[int, ...]  # ascending positions, with both words
    before: np.ndarray  # float32 [row, key] at these positions
    after: np.ndarray  # the same in the swapped text
    allowed: np.ndarray  # bool [row, key]: not masked in the swapped text


BEYOND = 90  # tokens beyond the end of a table, in the example of the error message
MAX_COMPARED = 2048  # rows of a table that are compared with each other
MAX_TABLE_ROWS = 256  # rows of a table in one answer
CELLS = 24_000_000  # weights that are computed to measure how far the heads of a site move
MAX_PLACES = 20  # tokens of a map of two swapped words; of a longer text, the relevant ones
LONG, LAST = 512, 64  # tokens of a long text, and those at its end whose loss is measured
MAX_GAP_TOKENS = 256  # tokens of a text for position_gap(): a run for each gap
FAR = 128  # tokens; all larger distances share a bucket in T5
MOVED_ROWS = 256  # rows of each head, at most


def positions_of(run: Trace) -> tuple[StackPositions, ...]:
    """Positional encoding of every stack."""
    return tuple(_positions(run, record) for record in run.positions)


def _positions(run: Trace, record: PositionRecord) -> StackPositions:
    config = run.config
    known = StackPositions(
        record.stack, record.kind, tuple(record.places.tolist()), config.n_ctx, config.d_model, parameters=0
    )
    facts: dict[str, object] = {}
    if config.has_position_table:
        n = min(config.n_ctx, MAX_COMPARED)
        table = _rows(run, record.stack, range(n)).float().cpu()
        facts = {
            "parameters": config.n_ctx * config.d_model if record.kind == "learned" else 0,
            "layout": config.sinusoid_layout if record.kind == "sinusoidal" else None,
            "closest": closest_rows(table) if n > 1 else None,
            "compared": n,
            "alike": array(cosine_by_distance(table[1:], REACH)) if n > 2 else None,
            "too_long": context_overflow_message(config.n_ctx + BEYOND, run.spec.title, config.n_ctx),
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
    learned = config.n_relative_buckets * config.n_heads
    return {"bias": array(added), "buckets": buckets.cpu().numpy(), "parameters": learned}


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
    """Rows of a stack's position table, float32 [pos, d_model]. Raises Refused if it has none."""
    config = run.config
    names = [name for name, _ in config.stacks]
    if stack not in names:
        raise HeadlightError(f"{run.spec.title} has no {stack}. It has {' and '.join(names)}.")
    if not config.has_position_table:
        raise HeadlightError(f"{run.spec.title} adds no table of positions: its positions are {config.position}.")
    if not (0 <= first < config.n_ctx and 1 <= n <= MAX_TABLE_ROWS):
        raise HeadlightError(f"This table has rows 0 to {config.n_ctx - 1}. Ask for at most {MAX_TABLE_ROWS} of them.")
    return array(_rows(run, stack, range(first, min(first + n, config.n_ctx))))


def _rows(run: Trace, stack: str, rows: range) -> Tensor:
    places = torch.arange(rows.start, rows.stop, device=run.loaded.device)
    return table_rows(run.forward, stack, places[None])[0]


def _stack(run: Trace, name: str) -> Stack:
    found = run.loaded.model.get_submodule(name)
    assert isinstance(found, Stack)
    return found


def order_change(a: Trace, b: Trace, site: Site, reach: int) -> OrderEffect:
    """How far every head of a site moves between two runs of the same tokens. Raises Refused for different tokens."""
    first = a.attention[site.records[0]]
    mine, theirs = a.tokens_of(first), b.tokens_of(b.attention[site.records[0]])
    if len(a.attention) != len(b.attention) or any(x.ids != y.ids for x, y in zip(mine, theirs, strict=True)):
        raise HeadlightError("These two runs are of different tokens, so that no word of one is a word of the other.")
    n = max(1, min(MOVED_ROWS, CELLS // (2 * len(site.records) * first.n_heads * first.n_key)))
    rows = evenly_spaced(first.n_query, n)
    within = site.id != "cross"
    before, after = (_line(a, first.stack), _line(b, first.stack, a)) if within else (None, None)
    moved: list[Tensor] = []
    found: tuple[list[Tensor], list[Tensor]] = ([], [])  # before and after, by layer
    for i in site.records:
        patterns = [run.attention[i].pattern(queries=rows).cpu() for run in (a, b)]
        moved.append(measures.total_variation(patterns[0], patterns[1]))
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
    """Positions of the words of a stack, [pos]; those of the run `without` if this run has no positions."""
    places = next(record.places for record in run.positions if record.stack == stack).cpu()
    if without is not None and len(places) > 1 and len(places.unique()) == 1:
        return _line(without, stack)
    return places


def rotary_pairs_of(
    run: Trace, record: AttentionRecord, before: PreRotary, head: int, query: int, key: int
) -> RotaryPairs:
    """The rotary pairs of two words, whose query and key before RoPE are in `before`."""
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


def scores_of(pairs: RotaryPairs, distances: Sequence[float]) -> np.ndarray:
    """The score of two words at other distances, float32 [distance]."""
    q, k, frequencies = (torch.from_numpy(x.copy()) for x in (pairs.q, pairs.k, pairs.frequencies))
    return array(score_by_distance(q, k, frequencies, pairs.scale, distances, pairs.factor))


def swap_of(a: Trace, b: Trace, site: Site, words: tuple[int, int]) -> WordSwap:
    """From a run, and the run in which these two words are swapped."""
    found = token_vs_position(a, b, site.records, *words)

    def follower(by: Tensor, place: bool) -> TokenFollower:
        layer, head = divmod(int(by.argmax()), site.n_heads)
        query, key, _ = example_row(a, b, site.records[layer], head, words, place)
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
    """The maps at all positions, or at MOST_PLACES of a longer text.

    These are the first token, the row, both words, the keys that the row attends to most in either run, and the rows that have changed
    most at the two words.
    """
    n = a.n_query
    places = list(range(n))
    if n > MAX_PLACES:
        first, second = words
        other = {first: second, second: first}
        rows = [x.pattern(head, query)[0, 0].cpu() for x in (a, b)]
        attended = torch.maximum(*rows).argsort(descending=True, stable=True).tolist()
        columns = [x.pattern(head, keys=[first, second])[0].cpu() for x in (a, b)]  # [query, 2]
        change = (columns[1] - columns[0]).abs().sum(-1).argsort(descending=True, stable=True).tolist()
        chosen = {0, query, first, second}
        for some, most in ((attended, 2 * MAX_PLACES // 3), (change, MAX_PLACES)):
            for place in map(int, some):
                if len(chosen) >= most:
                    break
                chosen.add(other.get(place, place))
        places = sorted(chosen)
    before, after = (array(x.pattern(head, places, places)[0]) for x in (a, b))
    return SwappedMaps(tuple(places), before, after, b.mask(places, places, head=head).cpu().numpy())


def context_extensions_of(run: Trace, factor: float) -> ContextExtensions:
    """Context extensions of a run's model. Raises Refused for a model without RoPE."""
    config = run.config
    found = context_extensions(config, factor)
    return ContextExtensions(
        config.n_ctx,
        config.rotary_base,
        config.d_head,
        RULES,
        array(torch.stack([one.frequencies for one in found])),
        tuple(one.factor for one in found),
    )


def end_loss_of(run: Trace, text: str, rule: Rule, factor: float, dropped: bool) -> EndLoss:
    """Loss at the end of the first LONG tokens of a text, or of as many as the model takes."""
    if run.config.kind != "decoder" or run.config.head == "none":
        raise HeadlightError(f"{run.spec.title} does not write on: there is no loss of a next word. Choose a decoder.")
    loaded = with_rope_scaling(run.loaded, rule, factor) if rule != "none" else run.loaded
    ids = list(loaded.tokens(text).ids)[: min(LONG, run.config.n_ctx)]
    last = min(LAST, len(ids) - 1)
    return EndLoss(end_loss(loaded, ids, last, dropped), last, len(ids))


def position_gap_of(run: Trace, rule: Rule, factor: float, gaps: Sequence[int]) -> PositionGap:
    """Probability of the top prediction with `gaps` positions skipped after the last comma."""
    if run.config.kind != "decoder" or run.config.head == "none":
        raise HeadlightError(f"{run.spec.title} does not write on: there is no next word. Choose a decoder.")
    if len(run.source) > MAX_GAP_TOKENS:
        raise HeadlightError(
            f"A text of {len(run.source)} tokens is too long to pull apart: type one of {MAX_GAP_TOKENS} at most."
        )
    after = gap_after(run.source)
    found = list(probability_by_gap(run, rule, factor, gaps, after))
    word = labels_of(run.loaded, [found[0][0]])[0]
    return PositionGap(after, word, tuple(gaps), tuple(chance for _, chance in found))


class LocalPositions(Worker):
    async def positions(self, key: str) -> tuple[StackPositions, ...]:
        """Positional encoding of each stack of the run."""

        async def make() -> tuple[StackPositions, ...]:
            run = await self._run(key)
            return await self._work(partial(positions_of, run), slow=True)

        return await self._kept.get(("positions", key), make)

    async def position_rows(self, key: str, stack: str, first: int, rows: int) -> np.ndarray:
        """Rows of a stack's position table as loaded, float32 [pos, d_model]."""
        run = await self._run(key)
        return await self._work(partial(rows_of, run, stack, first, rows))

    async def order_change(self, key: str, other: str, site: SiteId, reach: int = 8) -> OrderEffect:
        """How far each head of a site moved in another run of the same tokens, and its mean weight by distance."""

        async def make() -> OrderEffect:
            run, at = await self._site(key, site)
            changed, _ = await self._site(other, site)
            return await self._work(partial(order_change, run, changed, at, reach), slow=True)

        return await self._kept.get(("order", key, other, site, reach), make)

    async def equivariance(self, key: str, places: Sequence[int]) -> Equivariance:
        """Verifies that order enters only through positions: an encoder's words are moved to other positions."""
        return await self._rerun_once(("equivariance", key, tuple(places)), key, lambda run: equivariance(run, places))

    async def moved_on(self, key: str, by: int) -> ShiftInvariance:
        """Effect of shifting the whole text by this many positions on the scores and weights."""
        return await self._rerun_once(("moved on", key, by), key, lambda run: shift_invariance(run, by))

    async def rotary_pairs(self, key: str, record: int, head: int, query: int, at: int) -> RotaryPairs:
        """One query and one key, `at`, before RoPE, and everything that determines their score at a distance."""
        found = await self._record(key, record)
        for what, value, n in (
            ("head", head, found.n_heads),
            ("query", query, found.n_query),
            ("key", at, found.n_key),
        ):
            check_below(what, value, n)
        before = await self._rerun_once(("unturned", key, record), key, lambda run: before_rotary(run, found))
        return await self._work(partial(rotary_pairs_of, await self._run(key), found, before, head, query, at))

    async def pairs_to_swap(self, key: str, side: Side) -> tuple[tuple[int, int], ...]:
        """Pairs of words of one text that are worth swapping, as positions; the best pair first."""
        run = await self._run(key)
        tokens = run.source if side == "source" else run.target
        return () if tokens is None else await self._work(partial(pairs_to_swap, run, tokens))

    async def word_swap(self, key: str, other: str, site: SiteId, words: tuple[int, int]) -> WordSwap:
        """Which heads follow the word and which the position, from another run with two words swapped (edits.SwapWords)."""

        async def make() -> WordSwap:
            run, at = await self._site(key, site)
            swapped, _ = await self._site(other, site)
            return await self._work(partial(swap_of, run, swapped, at, words), slow=True)

        return await self._kept.get(("swap", key, other, site, words), make)

    async def swapped_maps(
        self, key: str, other: str, record: int, head: int, query: int, words: tuple[int, int]
    ) -> SwappedMaps:
        """One head in both runs, at all positions or at those that are relevant for one row."""
        found, changed = await self._record(key, record), await self._record(other, record)
        check_below("head", head, found.n_heads)
        for place in (query, *words):
            check_below("query", place, found.n_query)
        if found.site != "attn":
            raise HeadlightError("Words are swapped within one text: cross-attention looks from one into another.")
        return await self._work(partial(swapped_maps, found, changed, head, query, words))

    async def context_extensions(self, key: str, factor: float) -> ContextExtensions:
        """RoPE frequencies of the run's model under each rule for contexts `factor` times as long as the trained one."""
        return context_extensions_of(await self._run(key), factor)

    async def end_loss(self, key: str, text: str, rule: Rule, factor: float, dropped: bool = False) -> EndLoss:
        """Loss of the run's model at the end of another text, under a context-extension rule, or without positions."""
        model = (await self._run(key)).spec.id  # the result depends on the model, not on the text of the run
        name = ("end loss", key, model, text, rule, factor, dropped)
        return await self._rerun_once(name, key, lambda run: end_loss_of(run, text, rule, factor, dropped))

    async def position_gap(self, key: str, rule: Rule, factor: float, gaps: Sequence[int]) -> PositionGap:
        """Probability of the run's next token when positions are skipped in its text, by the number of skipped positions."""
        name = ("gap", key, rule, factor, tuple(gaps))
        return await self._rerun_once(name, key, lambda run: position_gap_of(run, rule, factor, gaps))
