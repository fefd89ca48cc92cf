"""Questions about masks, padding, leakage and the division by √d, each answered by comparing runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
import torch

from ..checkpoints import Loaded
from ..device import array, check_fits_or_retry
from ..edits import DropPadding, NoScale
from ..errors import HeadlightError
from ..labs.masks import (
    Leakage,
    PaddingInvariance,
    Unmasked,
    check_model,
    leakage,
    own_records,
    padding_invariance,
    relearnt,
    without_causal_mask,
)
from ..labs.masks import facts as leak_facts
from ..labs.sizes import WIDTHS, Sharpness, Spread, sharpness, spread
from ..labs.worked_examples import ProjectionBenchmark, benchmark_projections
from ..model.text import from_ids
from ..read.next_token_loss import given, probabilities
from ..run.attention import AttentionRecord
from ..run.request import Request
from ..trace import Trace
from ..write.generate import decoded
from .engine import Engine
from .facts import Site, SiteId
from .maps import reasons
from .pictures import masks_of
from .worker import Worker, check_below


@dataclass(frozen=True, eq=False)
class ScoresAndMasks:
    """Scores of some layers of a site before masking, and the masks of the run."""

    site: SiteId
    layers: tuple[int, ...]
    scores: np.ndarray  # float32 [layer, head, query, key]: (q·k · scale + bias) / temperature
    masks: tuple[np.ndarray, ...]  # uint8 [query, key], reasons as in Tile; equal ones are listed once
    mask_index: tuple[
        tuple[int, ...], ...
    ]  # of each layer: index of its mask, or one for every head; -1: nothing is masked


@dataclass(frozen=True, eq=False)
class Outcome:
    """Output of a run: next-token predictions and losses, the classes of a classifier, or the text vector of other models."""

    # (id, label, probability) of the most likely next tokens; for a classifier, of its classes
    words: tuple[tuple[int, str, float], ...]
    asked: tuple[float, ...]  # probabilities of the requested token or class ids
    losses: np.ndarray  # float32 [pos - 1], nats; empty for a model that does not predict tokens
    vector: np.ndarray  # float32 [d_model]: mean of the last residual stream over real tokens
    numbers: tuple[tuple[str, float], ...] = ()  # of a regression: (name, value)


@dataclass(frozen=True, eq=False)
class PaddingEffect:
    """A batch of texts, as seen from one of them, compared with that text alone."""

    labels: tuple[tuple[str, ...], ...]  # of every text, padding included
    padding: tuple[tuple[bool, ...], ...]
    text: int  # index of the compared text
    layer: int
    masked: np.ndarray  # float32 [head, query, key]: scores of this layer in the batch
    free: np.ndarray  # the same with padding visible
    causal: bool  # True if the attention masks the future too
    scale: float
    on_padding: np.ndarray  # float32 [layer, head]: mean weight on padding of the real rows, masked
    on_padding_free: np.ndarray
    weights: tuple[float, float]  # max |Δ| from the text alone, (masked, free): of all weights
    output: tuple[float, float]  # of the last residual stream
    cosine: tuple[float, float]  # of the text vectors
    # Of a model that writes: the top next token of the text alone with its probability alone, in the batch, and in the batch with
    # visible padding. Then the top token of the last.
    next_word: tuple[str, float, float, float] | None
    leads: tuple[str, float] | None


@dataclass(frozen=True, eq=False)
class LeakageFacts:
    """Leakage as arrays, with the cost of the training: see core.labs.masks."""

    layer: int
    head: int
    losses: np.ndarray
    dropped: np.ndarray
    relearnt: np.ndarray
    before: np.ndarray
    after: np.ndarray
    next_word: float
    written: str
    written_relearnt: str
    steps: int
    seconds: int


@dataclass(frozen=True, eq=False)
class UnmaskedFacts:
    """A text without its causal mask, as arrays: see core.labs.masks."""

    labels: tuple[str, ...]
    losses: np.ndarray
    without: np.ndarray
    layer: int
    head: int
    next_word: float
    before: np.ndarray
    after: np.ndarray
    written: str
    written_without: str


@dataclass(frozen=True)
class ScaleEffect:
    """The same text with and without the division by √d, over all heads."""

    own: Sharpness
    without: Sharpness


BEST = 5  # tokens that an outcome names
NO_LOSSES = np.zeros(0, np.float32)  # if only tokens are requested
MAX_REQUESTED = 64  # ids whose probabilities one call may request


def masked_of(run: Trace, site: Site, layers: Sequence[int]) -> ScoresAndMasks:
    """The scores of these layers of a site. Raises TooLarge."""
    records = [run.attention[site.records[layer]] for layer in layers]
    size = len(records) * site.n_heads * site.n_query * site.n_key * 4
    check_fits_or_retry(
        size, torch.device("cpu"), "The scores of these layers", "Ask for fewer layers, or a shorter text."
    )
    scores = np.stack([array(record.scores()) for record in records])
    return ScoresAndMasks(site.id, tuple(layers), scores, *masks_of(records))


def rows_of(record: AttentionRecord, head: int, rows: range) -> tuple[np.ndarray, np.ndarray]:
    """Scores before masking and reasons of masked cells, [row, key], of some rows of one head. Raises TooLarge."""
    size = len(rows) * record.n_key * 5
    check_fits_or_retry(size, torch.device("cpu"), "The scores of these rows", "Ask for fewer rows, or a shorter text.")
    return array(record.scores(head, rows)[0]), reasons(record, rows, range(record.n_key), head)


def losses_of(run: Trace) -> np.ndarray:
    """Loss at each token of a model that writes, float32 [pos − 1], nats; empty for other models."""
    is_writer = run.spec.classes is None and run.config.writes and run.loaded.model.head is not None
    return array(given(run).losses) if is_writer else NO_LOSSES


def outcome_of(run: Trace, ids: Sequence[int], losses: np.ndarray) -> Outcome:
    """The output of a run, with the probabilities of `ids` and its losses_of(). Raises Refused for invalid ids."""
    if len(ids) > MAX_REQUESTED:
        raise HeadlightError(f"{len(ids)} words were asked for at once, and {MAX_REQUESTED} is the most.")
    last = run.source if run.target is None else run.target
    real = [i for i, padding in enumerate(last.padding) if not padding]
    at = torch.tensor(real, device=run.loaded.device)
    vector = array(run.last_residual(at)[run.index].float().mean(0))
    if run.spec.classes is not None:
        return classes_of(run, ids, vector)
    if not run.config.writes or run.loaded.model.head is None:
        return Outcome((), (), NO_LOSSES, vector)
    best = run.predictions(k=BEST)
    tokenizer = run.loaded.tokenizer
    shown = best.strings[0] if tokenizer is None else from_ids(tokenizer, best.ids[0]).labels
    words = tuple(zip(best.ids[0], shown, best.probs[0], strict=True))
    try:
        asked = tuple(probabilities(run, ids).tolist()) if ids else ()
    except IndexError as error:
        raise HeadlightError(f"There is no {error}.") from None
    return Outcome(words, asked, losses, vector)


def classes_of(run: Trace, ids: Sequence[int], vector: np.ndarray) -> Outcome:
    """Outcome of a classifier: its most likely classes, or the numbers of a regression. Raises Refused for ids that are not classes."""
    found = run.classes()
    none, n = np.zeros(0, np.float32), len(found.names)
    if (wrong := next((i for i in ids if not 0 <= i < n), None)) is not None:
        raise HeadlightError(f"There is no class {wrong}: they are counted from 0 to {n - 1}.")
    if found.probabilities is None:
        return Outcome((), (), none, vector, tuple(zip(found.names, found.logits, strict=True))[:BEST])
    chances = found.probabilities
    best = sorted(range(n), key=lambda i: -chances[i])[:BEST]
    return Outcome(tuple((i, found.names[i], chances[i]) for i in best), tuple(chances[i] for i in ids), none, vector)


def padded_of(
    batch: Trace, free: Trace, alone: Trace, proofs: tuple[PaddingInvariance, PaddingInvariance], layer: int | None
) -> PaddingEffect:
    """From a batch as seen from one of its texts, the same batch with visible padding, the text alone, and the comparisons with it."""
    masked, without = proofs
    if layer is None:
        layer = int(without.on_padding.amax(-1).argmax())
    record, other = own_records(batch)[layer], own_records(free)[layer]
    word = leads = None
    if alone.target is None and (own := outcome_of(alone, (), NO_LOSSES).words):
        (first, name, chance), *_ = own
        together, seen = outcome_of(batch, (first,), NO_LOSSES), outcome_of(free, (first,), NO_LOSSES)
        word, leads = (name, chance, together.asked[0], seen.asked[0]), seen.words[0][1:]
    return PaddingEffect(
        tuple(tokens.labels for tokens in batch.sources),
        tuple(tokens.padding for tokens in batch.sources),
        batch.index,
        layer,
        array(record.scores()),
        array(other.scores()),
        batch.config.stacks[0][0] == "decoder",
        record.rule.scale,
        array(masked.on_padding),
        array(without.on_padding),
        (masked.weights, without.weights),
        (masked.output, without.output),
        (masked.cosine, without.cosine),
        word,
        leads,
    )


def leakage_facts(found: Leakage, known: dict[str, object]) -> LeakageFacts:
    """Leakage with the cost of the training, `known`."""
    return LeakageFacts(
        layer=found.layer,
        head=found.head,
        losses=array(found.losses),
        dropped=array(found.dropped),
        relearnt=array(found.relearnt),
        before=array(found.before),
        after=array(found.after),
        next_word=found.next_word,
        written=found.written,
        written_relearnt=found.written_relearnt,
        steps=int(str(known.get("steps", 0))),
        seconds=int(str(known.get("seconds", 0))),
    )


def unmasked_facts(run: Trace, found: Unmasked) -> UnmaskedFacts:
    """A text without its causal mask, as arrays."""
    return UnmaskedFacts(
        run.source.labels,
        array(found.losses),
        array(found.without),
        found.layer,
        found.head,
        found.next_word,
        array(found.before),
        array(found.after),
        decoded(run.loaded, found.written),
        decoded(run.loaded, found.written_without),
    )


class LocalMasks(Worker):
    def __init__(self, engine: Engine, workers: int | None = None) -> None:
        super().__init__(engine, workers)
        self._leaking = threading.Lock()
        self._leaky: tuple[Loaded, Loaded] | None = None  # (model, its copy with the last layer trained without a mask)

    async def masked(self, key: str, site: SiteId, layers: Sequence[int] | None = None) -> ScoresAndMasks:
        """Scores of some layers of a site before masking (None: of all), and the masks of the run. Raises TooLarge."""
        run, at = await self._site(key, site)
        chosen = range(len(at.records)) if layers is None else layers
        for layer in chosen:
            check_below("layer", layer, len(at.records))
        return await self._work(partial(masked_of, run, at, chosen))

    async def masked_rows(
        self, key: str, site: SiteId, layer: int, head: int, rows: tuple[int, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of one head, end excluded: scores before masking, float32 [row, key], and reasons of masked cells, as in Tile."""
        run, at = await self._site(key, site)
        check_below("layer", layer, len(at.records))
        check_below("head", head, at.n_heads)
        check_below("row", rows[0], at.n_query)
        check_below("row", rows[1] - 1, at.n_query)
        return await self._work(partial(rows_of, run.attention[at.records[layer]], head, range(*rows)))

    async def outcome(self, key: str, ids: Sequence[int] = ()) -> Outcome:
        """Next-token predictions with the probabilities of `ids`, and the losses; for an encoder the text vector."""
        losses = await self._rerun_once(("losses", key), key, losses_of)
        return await self._rerun(key, lambda run: outcome_of(run, ids, losses))

    async def padded(
        self, key: str, texts: Sequence[str], side: Literal["left", "right"], text: int, layer: int | None = None
    ) -> PaddingEffect:
        """These texts in one batch of the run's model, as seen from one of them, compared with that text alone.

        layer None: the one in which a head would give padding the most weight.
        """
        check_below("text", text, len(texts))
        run = await self._run(key)
        if layer is not None:
            check_below("layer", layer, run.config.stacks[0][1])
        model = self.engine.request_of(key).model_id
        asked = Request(model, tuple(texts), "" if run.target is not None else None, padding_side=side)
        one = replace(asked, texts=(texts[text],))
        keys = [await self.submit(each) for each in (asked, replace(asked, interventions=(DropPadding(),)), one)]
        batch, free, alone = [await self._run(each) for each in keys]

        def prove() -> PaddingEffect:
            seen, unhidden = batch.text(text), free.text(text)
            proofs = padding_invariance(seen, alone), padding_invariance(unhidden, alone)
            return padded_of(seen, unhidden, alone, proofs, layer)

        return await self._pass(prove)

    async def leakage(self, key: str) -> LeakageFacts:
        """The text in the model whose last layer was trained without its mask. Raises Refused for any other model."""

        def make(run: Trace) -> LeakageFacts:
            check_model(run.loaded)
            with self._leaking:
                if self._leaky is None or self._leaky[0] is not run.loaded:
                    self._leaky = run.loaded, relearnt(run.loaded)
                other = self._leaky[1]
            return leakage_facts(leakage(run, other), leak_facts())

        return await self._rerun_once(("leakage", key), key, make)

    async def unmasked(self, key: str) -> UnmaskedFacts:
        """The text without the causal mask, nothing trained. Raises Refused for a model without one, or that does not write."""

        return await self._rerun_once(("unmasked", key), key, lambda run: unmasked_facts(run, without_causal_mask(run)))

    async def unscaled(self, key: str) -> ScaleEffect:
        """Spread of the scores and entropy of the rows, with the division by √d and in a run without it."""
        run, other = await self._run(key), await self._run(await self.edited(key, (NoScale(),)))
        return await self._work(lambda: ScaleEffect(sharpness(run.attention), sharpness(other.attention)), slow=True)

    async def spreads(self) -> tuple[Spread, ...]:
        """Standard deviation of random q·k for several widths."""
        return await self._work_once(("spreads",), lambda: tuple(map(spread, WIDTHS)))

    async def projections(self, d_model: int, widths: tuple[int, int, int], rows: int) -> ProjectionBenchmark:
        """One product for q, k and v against three, timed on the device of the models. Raises Refused for sizes that take too long."""
        try:
            return await self._work(
                partial(benchmark_projections, d_model, widths, rows, self.engine.device), slow=True
            )
        except ValueError as error:
            raise HeadlightError(
                f"Three products of these sizes are not timed: {error} would take too long to make."
            ) from None
