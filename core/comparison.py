"""compare(): two runs side by side, and where they differ most: weights, residual stream, predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from . import memory
from .attention import AttentionRecord
from .errors import TextError
from .predictions import Predictions
from .rules import row_blocks
from .text import Tokens
from .trace import Trace


@dataclass(frozen=True)
class HeadDifference:
    """One head in both runs: the weight that differs most, and how much of a query's attention moved in the mean, 0 to 1."""

    name: str  # the attention's module path
    layer: int
    site: Literal["attn", "cross_attn"]
    head: int
    largest: float  # b's weight less a's, where they differ most
    query: int
    key: int
    moved: float  # half of Σ over keys |b − a|, the mean over queries


@dataclass(frozen=True)
class StreamDifference:
    """The residual stream at one point: ‖b − a‖ / ‖a‖ of the token where it is largest, and the mean over tokens."""

    point: str
    largest: float
    position: int
    mean: float


@dataclass(frozen=True)
class Comparison:
    """Two runs, a and b. What only one of them has, or what has another size in the other, is left out."""

    heads: tuple[HeadDifference, ...]  # in the order of the pass
    stream: tuple[StreamDifference, ...]  # likewise; empty for streams of different width
    predictions: tuple[Predictions, Predictions] | None  # behind the last token of each; None where one has no head
    kl: float | None  # of b's prediction from a's, in nats; None also for different vocabularies

    def most_different(self, n: int = 10) -> tuple[HeadDifference, ...]:
        """The n heads whose attention moved most."""
        return tuple(sorted(self.heads, key=lambda head: -head.moved)[:n])


def compare(a: Trace, b: Trace, k: int = 10) -> Comparison:
    """What is different in b: heads of the same place, the residual stream at the same points, the k likeliest words.

    Position is held against position, so both need texts of equal length: two models or checkpoints on one text, one text
    with and without an edit, two sentences that differ by a word. Padding is left out. Raises TextError for other lengths,
    TooLarge with both numbers, and Outdated after a training.
    """
    _check_lengths(a.source, b.source, "source")
    if a.target is not None and b.target is not None:
        _check_lengths(a.target, b.target, "target")
    theirs = {record.name: record for record in b.attention}
    heads: list[HeadDifference] = []
    for mine in a.attention:
        other = theirs.get(mine.name)
        shape = (mine.n_heads, mine.n_query, mine.n_key)
        if other is not None and shape == (other.n_heads, other.n_query, other.n_key):
            queries = torch.tensor(_real(a.tokens_of(mine)[0], b.tokens_of(other)[0]))
            heads += (_head_difference(mine, other, head, queries) for head in range(mine.n_heads))
    if not heads:
        raise TextError(
            "These two runs have no attention in common: their models have other stacks or numbers of heads."
        )
    predictions = kl = None
    if a.loaded.model.head is not None and b.loaded.model.head is not None:
        predictions = a.predictions(k=k), b.predictions(k=k)
        if a.config.vocab_size == b.config.vocab_size:
            kl = _divergence(a, b)
    return Comparison(tuple(heads), tuple(_stream(a, b)), predictions, kl)


def _check_lengths(a: Tokens, b: Tokens, what: str) -> None:
    if len(a) != len(b):
        raise TextError(
            f"Runs are compared position by position, and these have {what} texts of {len(a):,} and {len(b):,} tokens. "
            "Compare texts of equal length, or put both into one batch, which pads the shorter one."
        )


def _real(a: Tokens, b: Tokens) -> list[int]:
    """Positions that are padding in neither."""
    return [i for i, padding in enumerate(zip(a.padding, b.padding, strict=True)) if not any(padding)]


def _head_difference(a: AttentionRecord, b: AttentionRecord, head: int, queries: Tensor) -> HeadDifference:
    largest, query, key, moved = 0.0, 0, 0, 0.0
    for block in row_blocks(len(queries), a.n_key * 4):
        rows = queries[block]
        difference = b.pattern(head, rows)[0].cpu() - a.pattern(head, rows)[0].cpu()  # [query, key]
        at = int(difference.abs().argmax())
        found = difference.flatten()[at].item()
        if abs(found) > abs(largest):
            largest, query, key = found, int(rows[at // a.n_key]), at % a.n_key
        moved += difference.abs().sum().item() / 2
    return HeadDifference(a.name, a.layer, a.site, head, largest, query, key, moved / max(1, len(queries)))


def _stream(a: Trace, b: Trace) -> list[StreamDifference]:
    """At the embedding, behind every layer, and at the end of each stack."""
    ends = ("embed.hook_embed", ".hook_resid_post", ".hook_final")
    points = [point for point in a.resid if point.endswith(ends) and point in b.resid]
    if a.config.d_model != b.config.d_model or not points:
        return []
    needed = sum(len(a.resid[point]) for point in points) * a.config.d_model * a.loaded.dtype.itemsize
    memory.admit_large(needed, torch.device("cpu"), "The residual stream of a whole run")
    mine = a.forward.moments(points, lambda _, x: x[a.index].cpu())

    def ratio(point: str, x: Tensor) -> Tensor:
        before = mine.pop(point).float()
        return (x[b.index].cpu().float() - before).norm(dim=-1) / before.norm(dim=-1).clamp(min=1e-30)

    found = b.forward.moments(points, ratio)
    differences = []
    for point in points:
        mine_read, other_read = (
            run.source if point.startswith("encoder") or run.target is None else run.target for run in (a, b)
        )
        rows = _real(mine_read, other_read)
        ratios = found[point][rows]
        at = int(ratios.argmax())
        differences.append(StreamDifference(point, ratios[at].item(), rows[at], ratios.mean().item()))
    return differences


def _divergence(a: Trace, b: Trace) -> float:
    """KL(a ‖ b) of what follows the last token."""
    before, after = (run.value("head.hook_logits", _last(run)).float().cpu().log_softmax(-1)[0] for run in (a, b))
    return torch.nn.functional.kl_div(after, before, reduction="sum", log_target=True).item()


def _last(run: Trace) -> Sequence[int]:
    tokens = run.source if run.target is None else run.target
    return [max(i for i, padding in enumerate(tokens.padding) if not padding)]
