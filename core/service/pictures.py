"""Pictures of runs: all heads of a small run, thumbnails and measures of a large one, layers of a run in progress, and OneRun for pages
without a service.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..device import array, check_fits_or_retry
from ..errors import HeadlightError
from ..read import measures
from ..read.attribution import Site as Attention
from ..read.edge_attribution import TokenAttribution, head_logit_attribution, top_token_attribution
from ..read.findings import opening_finding
from ..read.head_roles import opening_edge_of, opening_edges, run_roles
from ..read.measures import evenly_spaced, sink
from ..run.attention import AttentionRecord, Receipt, patterns_of
from ..run.from_attentions import AttentionsRecord, not_drawn
from ..run.predictions import labels_of
from ..run.recorder import HeldTensor
from ..run.request import Request
from ..run.trace_record import still
from ..trace import Trace
from .facts import Facts, Site, SiteId, Values, facts_of
from .maps import (
    FullRun,
    HeadAdditions,
    HeadDone,
    Heads,
    HeadWords,
    LayerDone,
    Map,
    MapTransform,
    Measures,
    RunDone,
    Similarity,
    Thumbnails,
    reasons,
    row,
    tile,
)
from .queue import TaskQueue, Usage
from .worker import wait_in_loop

THUMBNAIL = 32  # pixels along a side
METRICS = ("entropy", "distance", "sink", "previous", "induction", "diagonal")
METRIC_CELLS = 48_000_000  # weights that are computed for the measures of one site
METRIC_ROWS = 256  # rows of each head, at most
CANDIDATES = 5  # most likely next tokens whose logits are attributed
MOVED = 4  # tokens that are named, raised and lowered
AMONG = (
    100  # they are chosen among this many most likely tokens: over the whole vocabulary they would be implausible ones
)
AT_ONCE = 150_000  # weights; a smaller run is not shown in parts, since all its weights are sent when it has finished
MAX_RUNS = 8  # runs whose thumbnails are kept until they are requested
HEAD_TENSORS = ("q", "k", "scores", "mask", "weights", "z")


def thumbnails_of(record: AttentionRecord) -> Thumbnails:
    """Thumbnails of every head of one record."""
    small = record.thumbnail(THUMBNAIL)
    return Thumbnails(array(small.values), small.how)


def heads_of(run: Trace, site: Site) -> Heads:
    """Every weight of a site. Raises TooLarge."""
    _admit(site.weights)
    return _heads(run, site, [*patterns_of([run.attention[i] for i in site.records])])


def whole_of(run: Trace, sites: Sequence[Site], looks: bool = True) -> FullRun:
    """Heads of all sites, with the openings, roles and sinks of the run, from patterns that are computed once.

    Unless `looks` is False, also the attention edge that the picture opens on, which may take another pass. Raises TooLarge.
    """
    _admit(sum(site.weights for site in sites))
    patterns = [*patterns_of(run.attention)]  # of each: [head, query, key]
    look = opening_finding(run, patterns) if looks else None
    return FullRun(
        {site.id: _heads(run, site, [patterns[i] for i in site.records]) for site in sites},
        opening_edges(run, patterns, look),
        run_roles(run, patterns),
        {
            site.id: sink([run.attention[i] for i in site.records], [patterns[i] for i in site.records])
            for site in sites
        },
        look,
    )


def _admit(weights: int) -> None:
    check_fits_or_retry(
        weights * 8, torch.device("cpu"), "Every weight of these heads", "Ask for tiles of them instead."
    )


def _heads(run: Trace, site: Site, of_layers: Sequence[Tensor]) -> Heads:
    records = [run.attention[i] for i in site.records]
    patterns = torch.stack(list(of_layers))  # [layer, head, query, key]
    masks, mask_index = masks_of(records)
    return Heads(array(patterns), array(measures.entropy(patterns)), masks, mask_index)


def similarity_of(run: Trace, site: Site, query: int, weights: Sequence[float]) -> Similarity:
    """Rows of one query in every head, and their overlap with weights [key]."""
    rows = torch.stack([run.attention[i].pattern(queries=[query])[:, 0] for i in site.records])  # [layer, head, key]
    return Similarity(
        array(rows), array(measures.overlap(rows, torch.tensor(list(weights), dtype=rows.dtype, device=rows.device)))
    )


def looks_at(run: Trace, site: Site, query: int, key: int) -> np.ndarray:
    """Weight of one attention edge in every head of a site, float32 [layer, head]. Only one row of each head is computed."""
    return array(torch.stack([run.attention[i].pattern(queries=[query])[:, 0, key] for i in site.records]))


def correlations(run: Trace, site: Site, layer: int, head: int, without: int | None) -> np.ndarray:
    """Correlation of the map of one head with that of every head of a site, float32 [layer, head]: see measures.correlation().

    Over the cells that this head may attend to, without the column of the key `without`. Long texts are compared by evenly spaced rows.
    """
    one = run.attention[site.records[layer]]
    rows = _rows_of(one, len(site.records))
    cells = one.mask(queries=rows, head=head).clone()
    if without is not None:
        cells[:, without] = False
    pattern = one.pattern(head, rows)[0]
    each = [measures.correlation(run.attention[i].pattern(queries=rows), pattern, cells) for i in site.records]
    return array(torch.stack(each))


def masks_of(records: Sequence[AttentionRecord]) -> tuple[tuple[np.ndarray, ...], tuple[tuple[int, ...], ...]]:
    """The distinct masks, and their indices by layer: one, or one for each head if heads differ."""
    found: list[np.ndarray] = []
    number: dict[bytes, int] = {}
    mask_index: list[tuple[int, ...]] = []
    known: dict[tuple[int, int], tuple[int, ...]] = {}  # by (mask that layers share, text)
    for record in records:
        shared = id(record.batch_rule.mask), record.text
        if shared in known:
            mask_index.append(known[shared])
            continue
        queries, keys = range(record.n_query), range(record.n_key)
        row = []
        for head in range(record.n_heads if record.rule.mask.heads_differ else 1):
            codes = reasons(record, queries, keys, head)
            if not codes.any():
                row.append(-1)
                continue
            at = number.setdefault(codes.tobytes(), len(found))
            if at == len(found):
                found.append(codes)
            row.append(at)
        known[shared] = tuple(row)
        mask_index.append(known[shared])
    return tuple(found), tuple(mask_index)


def measures_of(run: Trace, site: Site) -> Measures:
    """Measures of each head, from evenly spaced rows; see core.read.measures.

    Queries and keys of cross-attention are of two texts, so only entropy and the share of the first token apply there.
    """
    first = run.attention[site.records[0]]
    queries, keys = run.tokens_of(first)
    rows = _rows_of(first, len(site.records))
    n = len(rows)
    seen: dict[int, int] = {}
    repeats = []
    for i, token in enumerate(queries.ids):
        if token in seen:
            repeats.append(i)
        seen[token] = i
    echoes = [repeats[i] for i in evenly_spaced(len(repeats), n)] if queries is keys else []
    found: dict[str, list[tuple[float | None, ...]]] = {name: [] for name in METRICS}
    for i in site.records:
        record = run.attention[i]
        each = [
            _measures_of_head(record, head, rows, echoes, queries.ids, queries is keys)
            for head in range(record.n_heads)
        ]
        for name in METRICS:
            found[name].append(tuple(numbers[name] for numbers in each))
    return Measures(len(rows), first.n_query, {name: tuple(layers) for name, layers in found.items()})


def _rows_of(record: AttentionRecord, layers: int) -> list[int]:
    """Evenly spaced rows of a map, as many as METRIC_CELLS allows for all heads of this many layers."""
    return evenly_spaced(
        record.n_query, max(1, min(METRIC_ROWS, METRIC_CELLS // (layers * record.n_heads * record.n_key)))
    )


def _measures_of_head(
    record: AttentionRecord, head: int, rows: list[int], echoes: list[int], ids: Sequence[int], within: bool
) -> dict[str, float | None]:
    pattern = record.pattern(head, rows)[0].cpu()
    of, sees = torch.tensor(rows), pattern.sum(-1) > 0
    numbers: dict[str, float | None] = dict.fromkeys(METRICS)
    numbers["entropy"] = float(measures.entropy(pattern)[sees].mean()) if sees.any() else 0.0
    numbers["sink"] = float(measures.sink_share(pattern))
    if within:
        numbers["distance"] = float(measures.distance(pattern, of)[sees].mean()) if sees.any() else 0.0
        numbers["previous"] = float(measures.previous_token(pattern, of))
        numbers["diagonal"] = float(measures.diagonal(pattern, of))
    if echoes:
        again = record.pattern(head, echoes)[0].cpu()
        numbers["induction"] = float(measures.induction(again, ids, torch.tensor(echoes)))
    return numbers


def head_values(record: AttentionRecord, what: str, head: int, most: int) -> Values:
    """The first `most` × `most` numbers of one of HEAD_TENSORS."""
    queries, keys = range(min(most, record.n_query)), range(min(most, record.n_key))
    shared = head // (record.n_heads // record.n_kv_heads)
    if what == "q":
        return first_values(record.q[head], most)
    if what == "k":
        return first_values(record.k[shared], most)
    if what == "z":
        v = record.v[shared].to(record.device).float()
        return Values(array((record.pattern(head, queries)[0] @ v)[:, :most]), record.n_query, v.shape[1])
    if what == "mask":
        found = record.mask(queries, keys, head=head)
    else:
        found = (record.scores if what == "scores" else record.pattern)(head, queries, keys)[0]
    return Values(array(found), record.n_query, record.n_key)


def first_values(tensor: Tensor, most: int) -> Values:
    """The first `most` × `most` numbers of a [row, column] tensor."""
    return Values(array(tensor[:most, :most]), *tensor.shape)


def additions_of(run: Trace, site: Attention, position: int) -> HeadAdditions:
    """Raises TextError for a model whose logits are not sums over heads, IndexError for a position outside the run."""
    found = run.predictions([position], CANDIDATES)
    ids = list(found.ids[0])
    values = head_logit_attribution(run, position, ids, site)
    return HeadAdditions(tuple(zip(labels_of(run.loaded, ids), found.probs[0], strict=True)), array(values))


def moves_of(run: Trace, site: Attention, position: int) -> TokenAttribution:
    """Contributions of each head to the logits of the most likely tokens. Raises as additions_of()."""
    return top_token_attribution(run, position, AMONG, site)


def words_of(run: Trace, moved: TokenAttribution, layer: int, head: int, additions: Tensor) -> HeadWords:
    """One head, from the moves of all heads and the additions of its attention edges, [key]."""
    values = moved.values[layer, head]
    order = values.argsort().tolist()
    labels = labels_of(run.loaded, list(moved.tokens))

    def named(which: list[int]) -> tuple[tuple[str, float], ...]:
        return tuple((labels[i], float(values[i])) for i in which)

    raised = [i for i in reversed(order) if values[i] > 0][:MOVED]
    lowered = [i for i in order if values[i] < 0][:MOVED]
    return HeadWords(array(additions), named(raised), named(lowered), len(moved.tokens))


# runs in progress


@dataclass(eq=False)
class RunInProgress:
    """A run that is large enough to be shown layer by layer."""

    end: Future[Trace]
    facts: Future[Facts]
    made: list[Future[Thumbnails]]  # of each record, in the order of the pass
    partial: Trace | None  # None once it has finished: its queries and keys must be freed


class RunsInProgress:
    """Facts and thumbnails of the runs in progress of one engine, and thumbnails of finished runs until they are requested.

    A pass leaves a core to the server, which is idle until it ends. Thumbnails that are drawn by then need not be waited for
    afterwards, and the visitor sees the layers arrive.
    """

    def __init__(self, usage: Usage | None = None) -> None:
        self._queue = TaskQueue("live", 1, usage or Usage())
        self._lock = threading.Lock()
        self._runs: dict[str, RunInProgress] = {}  # by the request's key
        self._made: OrderedDict[str, list[Future[Thumbnails]]] = OrderedDict()

    def watch(
        self, request: Request, end: Future[Trace], changed: Callable[[], object] = lambda: None
    ) -> Callable[[Trace], None]:
        """The progress callback of a run, for Engine.on_progress. `changed` is called when there is something new to show.

        Nothing is made of small runs, whose weights are all sent at the end, nor on a GPU, where it would only delay the pass.
        """
        run: RunInProgress | None = None
        started = False

        def report(partial_run: Trace) -> None:
            nonlocal run, started
            if not started:  # a text that is read in chunks has no records until the last one
                run, started = self._start(request.key, end, changed, partial_run), True
            elif run is not None and partial_run.records:
                run.partial = partial_run
                at = len(partial_run.records) - 1
                self._queue.add(partial(_fulfil, run.made[at], partial(thumbnails_of, partial_run.attention[at])))

        return report

    def _start(
        self, key: str, end: Future[Trace], changed: Callable[[], object], partial_run: Trace
    ) -> RunInProgress | None:
        if partial_run.loaded.device.type != "cpu" or partial_run.texts > 1:
            return None
        facts = facts_of(partial_run, key)
        if facts.weights <= AT_ONCE:
            return None
        made = [Future[Thumbnails]() for _ in facts.records]
        run = RunInProgress(end, Future(), made, partial_run)
        with self._lock:
            self._runs[key], self._made[key] = run, made
            self._made.move_to_end(key)
            while len(self._made) > MAX_RUNS:
                self._made.popitem(last=False)
        self._queue.add(partial(_fulfil, run.facts, partial(_with_labels, facts)))
        run.facts.add_done_callback(lambda _: changed())

        def on_end(_: Future[Trace]) -> None:
            run.partial = None
            with self._lock:
                if self._runs.get(key) is run:
                    del self._runs[key]
                if end.exception() is not None and self._made.get(key) is made:
                    del self._made[key]

        end.add_done_callback(on_end)
        return run

    def run(self, key: str) -> RunInProgress | None:
        """The run in progress with this key, if it is large enough to be shown."""
        with self._lock:
            run = self._runs.get(key)
        return run if run is not None and run.facts.done() else None

    def take(self, key: str) -> list[Future[Thumbnails]]:
        """Remove and return the thumbnails of a finished run, one for each record; empty if there are none."""
        with self._lock:
            return self._made.pop(key, [])

    async def parts(
        self, key: str, record: int, head: int, query: int | None
    ) -> AsyncGenerator[LayerDone | HeadDone | RunDone]:
        """Thumbnails of every record as the pass goes on; after `record`, the map of the head and one row of it; finally RunDone.

        Ends without RunDone if the run fails, or if there is no such run in progress.
        """
        if (run := self.run(key)) is None:
            return
        for at, made in enumerate(run.made):
            if not await _is_made(made, run.end):
                return
            yield LayerDone(at, made.result())
            if at == record:
                trace = run.partial
                if trace is None and run.end.exception() is not None:
                    return
                opened: Future[HeadDone] = Future()
                make = partial(_opened_head, trace or run.end.result(), record, head, query)
                self._queue.add(partial(_fulfil, opened, make))
                del trace, make
                if not await _is_made(opened, run.end):
                    return
                yield opened.result()
        if await _is_made(run.end, run.end):
            yield RunDone(run.end.result().seconds)


def _with_labels(facts: Facts) -> Facts:
    """Compute the labels of the tokens, which are cached on them, outside of the pass."""
    for tokens in (facts.source, facts.target):
        _ = tokens and tokens.labels
    return facts


def _opened_head(run: Trace, record: int, head: int, query: int | None) -> HeadDone:
    shown = Map(run, MapTransform(record, head))
    n_query, n_key = shown.record.n_query, shown.record.n_key
    whole = tile(shown, (0, n_query), (0, n_key))
    return HeadDone(record, head, query, (n_query, n_key), whole, None if query is None else row(shown, query))


async def _is_made(future: Future, end: Future[Trace]) -> bool:
    """Wait until the future is done; False if the run fails or is cancelled before."""
    either: Future[None] = Future()

    def notify(done: Future) -> None:
        if done is future or done.exception() is not None:
            with suppress(InvalidStateError):
                either.set_result(None)

    future.add_done_callback(notify)
    end.add_done_callback(notify)
    await wait_in_loop(either)
    return future.done() and future.exception() is None


def _fulfil(future: Future, make: Callable[[], object]) -> None:
    try:
        future.set_result(make())
    except BaseException as error:
        future.set_exception(error)


# a finished run for a page without a service


@dataclass(frozen=True, eq=False)
class OneRun:
    """A finished run in plain data, as seen from one text: everything that the picture of Explore is drawn from.

    `whole` has all its weights. For a run with too many it is None: then there are thumbnails (`small`), and head(record, head,
    query) computes one head. begin(record, head) returns the query to start reading a head at. norms are ‖value · W_O‖ by kind of
    attention, [layer, head, key], and receipts those of the records, in the order of the pass; both are optional. still(record,
    head) is a picture as HTML for readers without scripts.
    """

    facts: Facts
    whole: FullRun | None
    begin: Callable[[int, int], int]
    small: Sequence[Thumbnails] = ()
    head: Callable[[int, int, int | None], HeadDone] | None = None
    norms: Mapping[SiteId, np.ndarray] | None = None
    receipts: Sequence[Receipt] = ()
    still: Callable[[int, int], str] | None = None


def one_run(run: Trace, key: str, most: int) -> OneRun:
    """A run with all its weights if it has at most `most`, otherwise with thumbnails. `key` identifies the run on the page.

    The attention edge that the page opens on takes one more pass; without attributable logits it is the most conspicuous edge.
    """
    run = run if run.texts == 1 else run.text(run.index)
    if why := not_drawn(run):
        raise HeadlightError(why)
    facts = facts_of(run, key)
    if not facts.sites:
        raise HeadlightError(
            "This run recorded no attention, so there is nothing to show. Trace a model that has attention."
        )

    def begin(record: int, head: int) -> int:
        return opening_edge_of(run, record, head).query

    if facts.weights > most:
        small = [thumbnails_of(record) for record in run.attention]
        return OneRun(facts, None, begin, small, partial(_opened_head, run), still=partial(_still, run))
    whole = whole_of(run, facts.sites, looks=facts.non_finite is None)
    # Values that a long run does not hold would take another pass for each of its records.
    if not all(isinstance(record.values, HeldTensor) for record in run.attention):
        receipts = [record.receipt() for record in run.attention] if isinstance(run, AttentionsRecord) else []
        return OneRun(facts, whole, begin, receipts=receipts, still=partial(_still, run))
    norms: dict[SiteId, np.ndarray] = {
        site.id: np.stack([array(run.attention[i].value_norms()) for i in site.records]).astype(np.float32)
        for site in facts.sites
        if all(run.attention[i].output is not None for i in site.records)  # unknown for a wrapped model
    }
    receipts = [record.receipt() for record in run.attention]
    return OneRun(facts, whole, begin, norms=norms, receipts=receipts, still=partial(_still, run))


def _still(run: Trace, record: int, head: int) -> str:
    found = run.attention[record]
    queries, keys = run.tokens_of(found)
    return still(repr(run).strip("<>"), found, head, queries.labels, keys.labels)
