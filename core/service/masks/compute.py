"""What the masks of a run do, in plain data: scores before any mask, what a run makes of its text, padding, leakage, the scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ...errors import Refused
from ...learn.leakage import Leakage
from ...memory import admit_large
from ...model.text import from_ids
from ...read.conditional_loss import given, probabilities
from ...read.padding import Inertness, own_records
from ...read.scaling import Sharpness
from ...run.trace import Trace
from ..answers import Site, SiteId
from ..maps.compute import array
from ..maps.heads import masks_of

BEST = 5  # words that an outcome names
MOST_ASKED = 64  # ids whose probability may be asked for at once


@dataclass(frozen=True, eq=False)
class Masked:
    """The scores of some layers of a site before any mask, and the masks of the run."""

    site: SiteId
    layers: tuple[int, ...]
    scores: np.ndarray  # float32 [layer, head, query, key]: (q·k · scale + bias) / temperature
    masks: tuple[np.ndarray, ...]  # uint8 [query, key], reasons as in Tile; those that are alike are there once
    mask_of: tuple[tuple[int, ...], ...]  # of each layer: which mask, or one for every head; -1 hides nothing


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run makes of its text: the next word and the loss, or of a model that writes nothing the text's vector."""

    words: tuple[tuple[int, str, float], ...]  # the likeliest next ones: id, as a reader sees it, probability
    asked: tuple[float, ...]  # probabilities of the ids that were asked for
    losses: np.ndarray  # float32 [pos - 1], nats; empty where nothing is foretold
    vector: np.ndarray  # float32 [d_model]: the mean over real tokens of the last residual stream


@dataclass(frozen=True, eq=False)
class Padded:
    """Some texts in one batch, seen from one of them, against that text alone."""

    labels: tuple[tuple[str, ...], ...]  # of every text, padding included
    padding: tuple[tuple[bool, ...], ...]
    text: int  # which one is seen
    layer: int
    masked: np.ndarray  # float32 [head, query, key]: scores of this layer in the batch
    free: np.ndarray  # the same where padding may be looked at
    causal: bool  # of the attention: the future is hidden as well
    scale: float
    on_padding: np.ndarray  # float32 [layer, head]: mean weight on padding of the real rows, masked
    on_padding_free: np.ndarray
    weights: tuple[float, float]  # max |Δ| against the text alone, masked and not: of all weights
    output: tuple[float, float]  # of the last residual stream
    cosine: tuple[float, float]  # of the texts' vectors


@dataclass(frozen=True, eq=False)
class Leak:
    """Leakage as arrays: see core.learn.leakage."""

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


@dataclass(frozen=True)
class Unscaled:
    """The same text with the division by √d and without it, over all heads."""

    own: Sharpness
    without: Sharpness


def masked_of(run: Trace, site: Site, layers: Sequence[int]) -> Masked:
    """The scores of these layers of a site. Raises TooLarge."""
    records = [run.attention[site.records[layer]] for layer in layers]
    size = len(records) * site.n_heads * site.n_query * site.n_key * 4
    admit_large(size, torch.device("cpu"), "The scores of these layers", "Ask for fewer layers, or a shorter text.")
    scores = np.stack([array(record.scores()) for record in records])
    return Masked(site.id, tuple(layers), scores, *masks_of(records))


def outcome_of(run: Trace, ids: Sequence[int]) -> Outcome:
    """Next words, the probabilities of `ids`, losses, or a vector. Raises Refused for ids that are none."""
    if len(ids) > MOST_ASKED:
        raise Refused(f"{len(ids)} words were asked for at once, and {MOST_ASKED} is the most.")
    last = run.source if run.target is None else run.target
    real = [i for i, padding in enumerate(last.padding) if not padding]
    at = torch.tensor(real, device=run.loaded.device)
    vector = array(run.last_residual(at)[run.index].float().mean(0))
    if run.config.kind == "encoder" or run.loaded.model.head is None:
        return Outcome((), (), np.zeros(0, np.float32), vector)
    best = run.predictions(k=BEST)
    tokenizer = run.loaded.tokenizer
    shown = best.strings[0] if tokenizer is None else from_ids(tokenizer, best.ids[0]).labels
    words = tuple(zip(best.ids[0], shown, best.probs[0], strict=True))
    try:
        asked = tuple(probabilities(run, ids).tolist()) if ids else ()
    except IndexError as error:
        raise Refused(f"There is no {error}.") from None
    return Outcome(words, asked, array(given(run).losses), vector)


def padded_of(batch: Trace, free: Trace, proofs: tuple[Inertness, Inertness], layer: int | None) -> Padded:
    """From a batch seen from one of its texts, the same with its padding seen, and what both are against the text alone."""
    masked, without = proofs
    if layer is None:
        layer = int(without.on_padding.amax(-1).argmax())
    record, other = own_records(batch)[layer], own_records(free)[layer]
    return Padded(
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
    )


def leak_of(found: Leakage, known: dict[str, object]) -> Leak:
    """Leakage in plain data, with what the training took."""
    return Leak(
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
