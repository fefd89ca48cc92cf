"""What the masks of a run do, computed: scores before any mask, what a run makes of its text, padding, leakage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ...errors import Refused
from ...learn.leakage import Leakage
from ...memory import admit_large
from ...model.text import from_ids
from ...read.conditional_loss import given, probabilities
from ...read.padding import Inertness, own_records
from ...read.unmasked import Unmasked
from ...run.attention import AttentionRecord
from ...trace import Trace
from ...write.generate import decoded
from ..answers import Site
from ..maps.compute import array, reasons
from ..maps.heads import masks_of
from .answers import LeakageFacts, Outcome, PaddingEffect, ScoresAndMasks, UnmaskedFacts

BEST = 5  # words that an outcome names
NO_LOSSES = np.zeros(0, np.float32)  # where only words are asked for
MOST_ASKED = 64  # ids whose probability may be asked for at once


def masked_of(run: Trace, site: Site, layers: Sequence[int]) -> ScoresAndMasks:
    """The scores of these layers of a site. Raises TooLarge."""
    records = [run.attention[site.records[layer]] for layer in layers]
    size = len(records) * site.n_heads * site.n_query * site.n_key * 4
    admit_large(size, torch.device("cpu"), "The scores of these layers", "Ask for fewer layers, or a shorter text.")
    scores = np.stack([array(record.scores()) for record in records])
    return ScoresAndMasks(site.id, tuple(layers), scores, *masks_of(records))


def rows_of(record: AttentionRecord, head: int, rows: range) -> tuple[np.ndarray, np.ndarray]:
    """The scores before any mask, and the reasons of masked cells, [row, key], of these rows of one head. Raises TooLarge."""
    size = len(rows) * record.n_key * 5
    admit_large(size, torch.device("cpu"), "The scores of these rows", "Ask for fewer rows, or a shorter text.")
    return array(record.scores(head, rows)[0]), reasons(record, rows, range(record.n_key), head)


def losses_of(run: Trace) -> np.ndarray:
    """The loss at each word of a model that writes, float32 [pos − 1], nats; empty of others."""
    is_writer = run.spec.classes is None and run.config.writes and run.loaded.model.head is not None
    return array(given(run).losses) if is_writer else NO_LOSSES


def outcome_of(run: Trace, ids: Sequence[int], losses: np.ndarray) -> Outcome:
    """Next words or classes, the probabilities of `ids`, losses_of(run), and a vector. Raises Refused for ids that are none."""
    if len(ids) > MOST_ASKED:
        raise Refused(f"{len(ids)} words were asked for at once, and {MOST_ASKED} is the most.")
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
        raise Refused(f"There is no {error}.") from None
    return Outcome(words, asked, losses, vector)


def classes_of(run: Trace, ids: Sequence[int], vector: np.ndarray) -> Outcome:
    """The outcome of a classifier: its likeliest classes, or the numbers of a regression. Raises Refused for ids that are no class."""
    found = run.classes()
    none, n = np.zeros(0, np.float32), len(found.names)
    if (wrong := next((i for i in ids if not 0 <= i < n), None)) is not None:
        raise Refused(f"There is no class {wrong}: they are counted from 0 to {n - 1}.")
    if found.probabilities is None:
        return Outcome((), (), none, vector, tuple(zip(found.names, found.logits, strict=True))[:BEST])
    chances = found.probabilities
    best = sorted(range(n), key=lambda i: -chances[i])[:BEST]
    return Outcome(tuple((i, found.names[i], chances[i]) for i in best), tuple(chances[i] for i in ids), none, vector)


def padded_of(
    batch: Trace, free: Trace, alone: Trace, proofs: tuple[Inertness, Inertness], layer: int | None
) -> PaddingEffect:
    """From a batch seen from one of its texts, the same with its padding seen, the text alone, and how both differ from it."""
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
    """Leakage in plain data, with what the training took."""
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
    """A text without its causal mask, in plain data."""
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
