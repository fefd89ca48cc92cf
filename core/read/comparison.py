"""Two runs side by side: where they differ most in weights, residual stream and predictions, and how their answer changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from .. import frames, memory
from ..errors import TextError
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.predictions import Predictions, allowed_scores, checked_positions, following, head_of, labels_of
from ..run.trace import Trace
from . import measures
from .conditional_loss import given

ENTROPY_CELLS = 20_000_000  # weights, beyond which no average row is computed


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
    predictions: tuple[Predictions, Predictions] | None  # after the last token of each; None where one has no head
    kl: float | None  # of b's prediction from a's, in nats; None also for different vocabularies

    def most_different(self, n: int = 10) -> tuple[HeadDifference, ...]:
        """The n heads whose attention moved most."""
        return tuple(sorted(self.heads, key=lambda head: -head.moved)[:n])

    def to_frame(self, what: Literal["heads", "stream"] = "heads") -> frames.DataFrame:
        """A row for each head, or for each point of the residual stream. Needs pandas."""
        if what == "stream":
            return frames.of_records(self.stream, StreamDifference)
        return frames.of_records(self.heads, HeadDifference)


def compare(a: Trace, b: Trace, k: int = 10) -> Comparison:
    """The differences of b: heads of the same place, the residual stream at the same points, the k likeliest words.

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


@dataclass(frozen=True)
class WordChange:
    """The probability of one next word, or of one class, in both runs, or the number of a regression; after is None where the other
    run's vocabulary, or its classes, are not the same."""

    id: int
    label: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class AnswerChange:
    """How the answer of run b differs from that of a: of classifiers their classes, of models that write their words, of others their
    vectors. Of regressions there are numbers and vectors."""

    words: tuple[WordChange, ...] = ()  # a's likeliest in order, then those of b's that are not among them
    likeliest: tuple[WordChange, WordChange] | None = None  # a's first and b's first
    shared: bool = True  # whether their vocabularies are the same, so that probabilities of words can be held together
    kl: float | None = None  # of b's prediction from a's, in nats
    losses: tuple[float, float] | None = None  # mean over the text's own next words, in nats, of each
    distance: float | None = None  # 1 − cosine of the two texts' vectors, each the mean over its tokens
    turned: tuple[float, ...] | None = None  # 1 − cosine of each token's last vector; None for texts of other length
    entropy: tuple[float, float] | None = None  # bits of an average row of attention, of each

    def to_frame(self) -> frames.DataFrame:
        """A row for each word. Needs pandas."""
        return frames.of_records(self.words, WordChange)


def answer_change(a: Trace, b: Trace, position: int | None = None, k: int = 6) -> AnswerChange:
    """What the answer of a, after `position` (None: the last real token), has become in b.

    Of texts of other length, b's answer is the one after its last token. Two classifiers are asked for their classes, all of them where
    there are no more than k, unless one is a regression and the other is not. Raises IndexError, TooLarge, and Outdated after a
    training.
    """
    entropy = _entropy(a), _entropy(b)
    bits = None if entropy[0] is None or entropy[1] is None else (entropy[0], entropy[1])
    if (mine := a.spec.classes) is not None and (theirs := b.spec.classes) is not None and mine.kind == theirs.kind:
        return _class_change(a, b, bits, k)
    if any(run.loaded.model.head is None or not run.config.writes for run in (a, b)):
        return _vector_change(a, b, bits)
    lengths = [len(run.source if run.target is None else run.target) for run in (a, b)]
    at = position if lengths[0] == lengths[1] else None
    before, after = _chances(a, position), _chances(b, at)
    first, second = (x.topk(min(k, len(x))).indices.tolist() for x in (before, after))
    losses = _loss(a), _loss(b)
    both = None if losses[0] is None or losses[1] is None else (losses[0], losses[1])
    if not _same_words(a, b):
        names = [dict(zip(ids, labels_of(run.loaded, ids), strict=True)) for run, ids in ((a, first), (b, second))]
        words = tuple(WordChange(i, names[0][i], before[i].item(), None) for i in first)
        words += tuple(WordChange(i, names[1][i], None, after[i].item()) for i in second)
        return AnswerChange(words, (words[0], words[len(first)]), False, None, both, entropy=bits)
    ids = first + [i for i in second if i not in first]
    labels = labels_of(a.loaded, ids)
    words = tuple(WordChange(i, label, before[i].item(), after[i].item()) for i, label in zip(ids, labels, strict=True))
    kl = (before * (before.clamp(min=1e-38).log() - after.clamp(min=1e-38).log())).sum().item()
    return AnswerChange(words, (words[0], words[ids.index(second[0])]), True, kl, both, entropy=bits)


def _class_change(a: Trace, b: Trace, entropy: tuple[float, float] | None, k: int) -> AnswerChange:
    """Of two classifiers that answer in the same way."""
    before, after = a.classes(), b.classes()
    x, y = (found.logits if found.probabilities is None else found.probabilities for found in (before, after))
    shared = before.names == after.names
    orders = [sorted(range(len(p)), key=lambda i, p=p: -p[i])[:k] for p in (x, y)]
    if shared:
        ids = orders[0] + [i for i in orders[1] if i not in orders[0]]
        words = tuple(WordChange(i, before.names[i], x[i], y[i]) for i in ids)
        ends = words[0], words[ids.index(orders[1][0])]
    else:
        words = tuple(WordChange(i, before.names[i], x[i], None) for i in orders[0])
        words += tuple(WordChange(i, after.names[i], None, y[i]) for i in orders[1])
        ends = words[0], words[len(orders[0])]
    if before.probabilities is None:  # a number has no divergence: how far the text's vector turned is said beside it
        return replace(_vector_change(a, b, entropy), words=words, likeliest=ends, shared=shared)
    kl = None
    if shared and a.spec.classes is not None:
        logits = [torch.tensor(found.logits) for found in (before, after)]
        kl = a.spec.classes.divergence(logits[0], logits[1][None]).item()
    return AnswerChange(words, ends, shared, kl, entropy=entropy)


def _vector_change(a: Trace, b: Trace, entropy: tuple[float, float] | None) -> AnswerChange:
    """Of models that answer with vectors; nothing but the entropy for streams of different width."""
    if a.config.d_model != b.config.d_model:
        return AnswerChange(entropy=entropy)
    reads = [run.source if run.target is None else run.target for run in (a, b)]
    x, y = (
        run.last_residual(torch.arange(len(tokens), device=run.loaded.device))[run.index].float().cpu()
        for run, tokens in zip((a, b), reads, strict=True)
    )
    means = [v[~torch.tensor(tokens.padding)].mean(0) for v, tokens in zip((x, y), reads, strict=True)]
    distance = 1 - torch.cosine_similarity(means[0], means[1], dim=0).item()
    turned = tuple((1 - torch.cosine_similarity(x, y, dim=-1)).tolist()) if len(x) == len(y) else None
    return AnswerChange(distance=distance, turned=turned, entropy=entropy)


def _chances(run: Trace, position: int | None) -> Tensor:
    """The probability of every word after a position (None: the last real token), [vocab] in float32."""
    tokens = run.source if run.target is None else run.target
    at = checked_positions(tokens, None if position is None else [position])
    run.forward.weights.check()
    with torch.inference_mode():
        x = run.final_residual(at)
        scores = head_of(run.loaded)(x[None])[0].float()
        found = allowed_scores(scores, following(run.loaded, tokens, at))[0].softmax(-1).cpu()
    run.forward.weights.check()  # a training may go on beside this
    return found


def _same_words(a: Trace, b: Trace) -> bool:
    """Whether two runs mean the same by a token number."""
    mine, theirs = a.loaded.tokenizer, b.loaded.tokenizer
    if a.config.vocab_size != b.config.vocab_size or (mine is None) != (theirs is None):
        return False
    return mine is theirs or (mine is not None and theirs is not None and mine.to_str() == theirs.to_str())


def _loss(run: Trace) -> float | None:
    """Mean over the text's own next words; None for a text of one token."""
    found = given(run).losses
    return found.mean().item() if len(found) else None


def _entropy(run: Trace) -> float | None:
    """Bits of an average row that has a choice of keys, over all heads. None where it is too much to compute."""
    if sum(r.n_heads * r.n_query * r.n_key for r in run.records) > ENTROPY_CELLS:
        return None
    total, rows = 0.0, 0
    for record in run.records:
        mine = record.of(run.index)
        pattern = mine.pattern().cpu()
        queries, keys = (torch.arange(n, device=mine.device) for n in (mine.n_query, mine.n_key))
        allowed = mine.rule.mask.block(queries, keys)[0]  # [head or 1, query, key]
        sees = (allowed.sum(-1) > 1).expand(mine.n_heads, -1).cpu().clone()
        sees[:, torch.tensor(run.text(run.index).tokens_of(mine)[0].padding)] = False
        total += measures.entropy(pattern)[sees].sum().item()
        rows += int(sees.sum())
    return total / max(1, rows)


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
    assert a.layer is not None and a.site != "unknown"  # a run's records know their place
    return HeadDifference(a.name, a.layer, a.site, head, largest, query, key, moved / max(1, len(queries)))


def _stream(a: Trace, b: Trace) -> list[StreamDifference]:
    """At the embedding, after every layer, and at the end of each stack."""
    ends = ("embed.hook_embed", ".hook_resid_post", ".hook_final")
    points = [point for point in a.residual_norms if point.endswith(ends) and point in b.residual_norms]
    if not points or a.config.d_model != b.config.d_model:
        return []
    needed = sum(len(a.residual_norms[point]) for point in points) * a.config.d_model * a.loaded.dtype.itemsize
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
    scores = [run.activation("head.hook_logits", _last(run)).float().cpu() for run in (a, b)]
    reads = [run.source if run.target is None else run.target for run in (a, b)]
    left = [
        allowed_scores(logits, following(run.loaded, tokens, _last(run)))[0]
        for logits, run, tokens in zip(scores, (a, b), reads, strict=True)
    ]
    both = ~(left[0].isneginf() | left[1].isneginf())  # a token that may follow only one of them has no ratio
    before, after = (logits[both].log_softmax(-1) for logits in left)
    return torch.nn.functional.kl_div(after, before, reduction="sum", log_target=True).item()


def _last(run: Trace) -> Sequence[int]:
    tokens = run.source if run.target is None else run.target
    return [max(i for i, padding in enumerate(tokens.padding) if not padding)]
