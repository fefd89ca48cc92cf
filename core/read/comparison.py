"""Comparison of two runs: the largest differences in weights, residual stream and predictions, and the change of the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from .. import dataframes, device
from ..errors import TextError
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.predictions import Predictions, allowed_scores, checked_positions, labels_of, next_token_constraints
from ..run.trace_record import TraceRecord
from . import measures
from .next_token_loss import given, next_scores, tokens_read

ENTROPY_CELLS = 20_000_000  # weights up to which the entropy of the average row is computed

Pair = tuple[float, float]  # a number of run a, and of run b


@dataclass(frozen=True)
class HeadDifference:
    """One head in both runs: the weight that differs most, and the mean share of a query's attention that moved, 0 to 1."""

    name: str  # the attention's module path
    layer: int
    site: Literal["attn", "cross_attn"]
    head: int
    largest: float  # b's weight minus a's, where they differ most
    query: int
    key: int
    moved: float  # half of Σ over keys |b − a|, averaged over queries


@dataclass(frozen=True)
class StreamDifference:
    """The residual stream at one hook point: ‖b − a‖ / ‖a‖ of the token where it is largest, and the mean over tokens."""

    point: str
    largest: float
    position: int
    mean: float


@dataclass(frozen=True)
class Comparison:
    """Differences between runs a and b, without heads and hook points that differ in size or exist only in one of them."""

    heads: tuple[HeadDifference, ...]  # in the order of the pass
    stream: tuple[StreamDifference, ...]  # likewise; empty for streams of different width
    predictions: tuple[Predictions, Predictions] | None  # after the last token of each; None if one has no head
    kl: float | None  # of b's prediction from a's, in nats; None also for different vocabularies

    def most_different(self, n: int = 10) -> tuple[HeadDifference, ...]:
        """The n heads whose attention moved most."""
        return tuple(sorted(self.heads, key=lambda head: -head.moved)[:n])

    def to_frame(self, what: Literal["heads", "stream"] = "heads") -> dataframes.DataFrame:
        """A row for each head, or for each point of the residual stream. Needs pandas."""
        if what == "stream":
            return dataframes.of_records(self.stream, StreamDifference)
        return dataframes.of_records(self.heads, HeadDifference)


@dataclass(frozen=True)
class WordChange:
    """Probability of one next token or class in both runs, or one number of a regression.

    before is None for an answer of run b, and after for one of run a, if their vocabularies or classes differ.
    """

    id: int
    label: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class AnswerChange:
    """Difference between the answers of runs a and b: classes of classifiers, next tokens of language models, else vectors.

    Regressions have both numbers and vectors.
    """

    words: tuple[WordChange, ...] = ()  # a's most likely in order, then b's that are not among them
    likeliest: tuple[WordChange, WordChange] | None = None  # a's first and b's first
    shared: bool = True  # whether they have the same vocabulary, so that probabilities can be compared
    kl: float | None = None  # of b's prediction from a's, in nats
    losses: Pair | None = None  # mean over the text's own next tokens, in nats
    distance: float | None = None  # 1 − cosine of the two texts' vectors, each the mean over its tokens
    turned: tuple[float, ...] | None = (
        None  # 1 − cosine of each token's last vector; None for texts of different length
    )
    entropy: Pair | None = None  # bits of an average row of attention

    def to_frame(self) -> dataframes.DataFrame:
        """A row for each word. Needs pandas."""
        return dataframes.of_records(self.words, WordChange)


def compare(a: TraceRecord, b: TraceRecord, k: int = 10) -> Comparison:
    """Differences of b from a: the same heads, the residual stream at the same hook points, the k most likely tokens.

    Positions are compared one by one, so both runs need texts of equal length: two models or checkpoints on one text, one text
    with and without an edit, two sentences that differ in a word. Padding is left out. Raises TextError for other lengths,
    TooLarge with both numbers, and Outdated after a training.
    """
    _check_lengths(a.source, b.source, "source")
    if a.target is not None and b.target is not None:
        _check_lengths(a.target, b.target, "target")
    records_of_b = {record.name: record for record in b.attention}
    heads: list[HeadDifference] = []
    for mine in a.attention:
        other = records_of_b.get(mine.name)
        shape = (mine.n_heads, mine.n_query, mine.n_key)
        if other is not None and shape == (other.n_heads, other.n_query, other.n_key):
            queries = torch.tensor(_real_positions(a.tokens_of(mine)[0], b.tokens_of(other)[0]))
            heads += (_head_difference(mine, other, head, queries) for head in range(mine.n_heads))
    if not heads:
        raise TextError(
            "These two runs have no attention in common: their models have other stacks or numbers of heads."
        )
    predictions = kl = None
    if a.loaded.model.head is not None and b.loaded.model.head is not None:
        predictions = a.predictions(k=k), b.predictions(k=k)
        if a.config.vocab_size == b.config.vocab_size:
            kl = _prediction_divergence(a, b)
    return Comparison(tuple(heads), tuple(_stream_differences(a, b)), predictions, kl)


def answer_change(a: TraceRecord, b: TraceRecord, position: int | None = None, k: int = 6) -> AnswerChange:
    """Change of the answer after `position` (None: the last real token) from run a to run b.

    If the texts differ in length, b's answer is the one after its last token. Two classifiers are compared by the k most likely
    classes of each, unless only one of them is a regression. Raises IndexError, TooLarge, and Outdated after a training.
    """
    entropy = _both(_mean_entropy(a), _mean_entropy(b))
    if (mine := a.spec.classes) is not None and (other := b.spec.classes) is not None and mine.kind == other.kind:
        return _class_change(a, b, entropy, k)
    if any(run.loaded.model.head is None or not run.config.writes for run in (a, b)):
        return _vector_change(a, b, entropy)
    same_length = len(tokens_read(a)) == len(tokens_read(b))
    p, q = (
        next_scores(run, at).softmax(-1).cpu() for run, at in ((a, position), (b, position if same_length else None))
    )
    orders = [x.topk(min(k, len(x))).indices.tolist() for x in (p, q)]
    labels = [lambda i, run=run: labels_of(run.loaded, [i])[0] for run in (a, b)]
    shared = _share_vocabulary(a, b)
    words, ends = _word_changes(orders, (p.tolist(), q.tolist()), labels, shared)
    kl = (p * (p.clamp(min=1e-38).log() - q.clamp(min=1e-38).log())).sum().item() if shared else None
    return AnswerChange(words, ends, shared, kl, _both(_mean_loss(a), _mean_loss(b)), entropy=entropy)


def _class_change(a: TraceRecord, b: TraceRecord, entropy: Pair | None, k: int) -> AnswerChange:
    before, after = a.classes(), b.classes()
    numbers = [found.logits if found.probabilities is None else found.probabilities for found in (before, after)]
    shared = before.names == after.names
    orders = [sorted(range(len(p)), key=lambda i, p=p: -p[i])[:k] for p in numbers]
    words, ends = _word_changes(orders, numbers, [before.names.__getitem__, after.names.__getitem__], shared)
    if before.probabilities is None:  # a regression has no divergence; the vectors say how far the answer moved
        return replace(_vector_change(a, b, entropy), words=words, likeliest=ends, shared=shared)
    kl = None
    if shared and a.spec.classes is not None:
        logits = [torch.tensor(found.logits) for found in (before, after)]
        kl = a.spec.classes.divergence(logits[0], logits[1][None]).item()
    return AnswerChange(words, ends, shared, kl, entropy=entropy)


def _word_changes(
    orders: Sequence[Sequence[int]],
    numbers: Sequence[Sequence[float]],
    labels: Sequence[Callable[[int], str]],
    shared: bool,
) -> tuple[tuple[WordChange, ...], tuple[WordChange, WordChange]]:
    """The best answers of both runs, given by their order, all numbers and the labels of each; and the best one of each."""
    (first, second), (p, q) = orders, numbers
    if shared:
        changes = {i: WordChange(i, labels[0](i), p[i], q[i]) for i in (*first, *second)}
        return tuple(changes.values()), (changes[first[0]], changes[second[0]])
    mine = [WordChange(i, labels[0](i), p[i], None) for i in first]
    others = [WordChange(i, labels[1](i), None, q[i]) for i in second]
    return (*mine, *others), (mine[0], others[0])


def _vector_change(a: TraceRecord, b: TraceRecord, entropy: Pair | None) -> AnswerChange:
    """Change of the vectors of a text; only the entropy for streams of different width."""
    if a.config.d_model != b.config.d_model:
        return AnswerChange(entropy=entropy)
    reads = [tokens_read(run) for run in (a, b)]
    x, y = (
        run.last_residual(torch.arange(len(tokens), device=run.loaded.device))[run.index].float().cpu()
        for run, tokens in zip((a, b), reads, strict=True)
    )
    means = [v[~torch.tensor(tokens.padding)].mean(0) for v, tokens in zip((x, y), reads, strict=True)]
    distance = 1 - torch.cosine_similarity(means[0], means[1], dim=0).item()
    turned = tuple((1 - torch.cosine_similarity(x, y, dim=-1)).tolist()) if len(x) == len(y) else None
    return AnswerChange(distance=distance, turned=turned, entropy=entropy)


def _both(x: float | None, y: float | None) -> Pair | None:
    return None if x is None or y is None else (x, y)


def _share_vocabulary(a: TraceRecord, b: TraceRecord) -> bool:
    """True if a token id has the same meaning in both runs."""
    mine, other = a.loaded.tokenizer, b.loaded.tokenizer
    if a.config.vocab_size != b.config.vocab_size or (mine is None) != (other is None):
        return False
    return mine is other or (mine is not None and other is not None and mine.to_str() == other.to_str())


def _mean_loss(run: TraceRecord) -> float | None:
    """Mean over the text's own next tokens; None for a text of one token."""
    losses = given(run).losses
    return losses.mean().item() if len(losses) else None


def _mean_entropy(run: TraceRecord) -> float | None:
    """Mean bits of a row that has a choice of keys, over all heads. None for runs with more than ENTROPY_CELLS weights."""
    if sum(r.n_heads * r.n_query * r.n_key for r in run.records) > ENTROPY_CELLS:
        return None
    total, rows = 0.0, 0
    for record in run.records:
        mine = record.of(run.index)
        pattern = mine.pattern().cpu()
        queries, keys = (torch.arange(n, device=mine.device) for n in (mine.n_query, mine.n_key))
        allowed = mine.rule.mask.block(queries, keys)[0]  # [head or 1, query, key]
        has_choice = (allowed.sum(-1) > 1).expand(mine.n_heads, -1).cpu().clone()
        has_choice[:, torch.tensor(run.text(run.index).tokens_of(mine)[0].padding)] = False
        total += measures.entropy(pattern)[has_choice].sum().item()
        rows += int(has_choice.sum())
    return total / max(1, rows)


def _check_lengths(a: Tokens, b: Tokens, what: str) -> None:
    if len(a) != len(b):
        raise TextError(
            f"Runs are compared position by position, and these have {what} texts of {len(a):,} and {len(b):,} tokens. "
            "Compare texts of equal length, or put both into one batch, which pads the shorter one."
        )


def _real_positions(a: Tokens, b: Tokens) -> list[int]:
    """Positions that are padding in neither."""
    return [i for i, padding in enumerate(zip(a.padding, b.padding, strict=True)) if not any(padding)]


def _head_difference(a: AttentionRecord, b: AttentionRecord, head: int, queries: Tensor) -> HeadDifference:
    largest, query, key, moved = 0.0, 0, 0, 0.0
    for block in row_blocks(len(queries), a.n_key * 4):
        rows = queries[block]
        difference = b.pattern(head, rows)[0].cpu() - a.pattern(head, rows)[0].cpu()  # [query, key]
        at = int(difference.abs().argmax())
        value = difference.flatten()[at].item()
        if abs(value) > abs(largest):
            largest, query, key = value, int(rows[at // a.n_key]), at % a.n_key
        moved += difference.abs().sum().item() / 2
    assert a.layer is not None and a.site != "unknown"  # the records of a run always have both
    return HeadDifference(a.name, a.layer, a.site, head, largest, query, key, moved / max(1, len(queries)))


def _stream_differences(a: TraceRecord, b: TraceRecord) -> list[StreamDifference]:
    """At the embedding, after every layer, and at the end of each stack."""
    ends = ("embed.hook_embed", ".hook_resid_post", ".hook_final")
    points = [point for point in a.residual_norms if point.endswith(ends) and point in b.residual_norms]
    if not points or a.config.d_model != b.config.d_model:
        return []
    needed = sum(len(a.residual_norms[point]) for point in points) * a.config.d_model * a.loaded.dtype.itemsize
    device.check_fits_or_retry(needed, torch.device("cpu"), "The residual stream of a whole run")
    mine = a.forward.moments(points, lambda _, x: x[a.index].cpu())

    def ratio(point: str, x: Tensor) -> Tensor:
        before = mine.pop(point).float()
        return (x[b.index].cpu().float() - before).norm(dim=-1) / before.norm(dim=-1).clamp(min=1e-30)

    differences = []
    for point, ratios in b.forward.moments(points, ratio).items():
        stack = point.partition(".")[0]
        rows = _real_positions(tokens_read(a, stack), tokens_read(b, stack))
        chosen = ratios[rows]
        at = int(chosen.argmax())
        differences.append(StreamDifference(point, chosen[at].item(), rows[at], chosen.mean().item()))
    return differences


def _prediction_divergence(a: TraceRecord, b: TraceRecord) -> float:
    """KL(a ‖ b) of the predictions after the last token."""
    scores = []
    for run in (a, b):
        tokens = tokens_read(run)
        last = checked_positions(tokens, None)
        logits = run.activation("head.hook_logits", last).float().cpu()
        scores.append(allowed_scores(logits, next_token_constraints(run.loaded, tokens, last))[0])
    both = ~(scores[0].isneginf() | scores[1].isneginf())  # a token that may follow only one of them has no ratio
    before, after = (row[both].log_softmax(-1) for row in scores)
    return torch.nn.functional.kl_div(after, before, reduction="sum", log_target=True).item()
