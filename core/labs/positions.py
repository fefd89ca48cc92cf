"""Labs on positions: words swapped or shuffled, and texts longer than the context."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ..checkpoints import Loaded
from ..edits import DropPositions, Edit, SetMask, SetPositions, ShiftPositions, StackName
from ..errors import HeadlightError
from ..model.config import ModelConfig, RotaryScaling
from ..model.positions import rotary_frequencies
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..read.head_roles import are_common, are_long
from ..read.measures import evenly_spaced, total_variation
from ..read.next_token_loss import given
from ..run.attention import AttentionRecord
from ..run.trace import trace
from ..run.trace_record import TraceRecord

SWAP_CELLS = 24_000_000  # weights that are read of each run, at most


@dataclass(frozen=True, eq=False)
class SwapResponse:
    """Distance of each head's map on the swapped text from two maps of the original text, for every layer of one kind of attention.

    Distances are shares of a row: half of Σ over keys of |difference|, averaged over rows (measures.total_variation).
    """

    along: Tensor  # float32 [layer, head]: from the original map with the rows and columns of both words exchanged
    still: Tensor  # float32 [layer, head]: from the original map
    apart: Tensor  # float32 [layer]: the largest |Δ| of any weight from the permuted map, over all rows that were read
    after_both: float  # the largest of those in rows after both words
    one_back: (
        Tensor  # float32 [2, layer, head]: mean weight on the previous token, in the original and the swapped text
    )
    rows: int  # rows that `along` and `still` average over: those after both words, or all if there are none
    read: int  # rows that were read for `apart`, evenly spaced
    of: int

    @property
    def word(self) -> Tensor:
        """[layer, head] from −1 to 1: above 0 a head follows the word more than the position. Most heads do both in part."""
        return self.still - self.along


def token_vs_position(
    before: TraceRecord, after: TraceRecord, records: Sequence[int], first: int, second: int
) -> SwapResponse:
    """Compare a run with the one on the same text with two words exchanged (edits.SwapWords).

    `records` are the self-attentions of a stack by layer, first and second the two positions. In a causal stack the rows before
    both words do not change, and the rows between them see one word more or less. Heads are therefore compared by the rows after
    both. Raises Refused for cross-attention, for positions outside the text, and for runs of different tokens.
    """
    record = before.attention[records[0]]
    n = record.n_query
    if record.site != "attn":
        raise HeadlightError("Words are swapped within one text: cross-attention looks from one into another.")
    if first == second or not (0 <= first < n and 0 <= second < n):
        raise HeadlightError(f"Two words of {n} tokens change places: give two different ones, from 0 to {n - 1}.")
    if before.tokens_of(record)[0].ids != after.tokens_of(after.attention[records[0]])[0].ids:
        raise HeadlightError("These two runs are of different tokens, so that no word of one is a word of the other.")
    order = torch.arange(n)
    order[[first, second]] = order[[second, first]]
    read = evenly_spaced(n, max(1, SWAP_CELLS // (len(records) * record.n_heads * n)), (first, second))
    later = [row > max(first, second) for row in read]
    counted = torch.tensor(later if any(later) else [True] * len(read))
    # [layer, 5, head, row]
    rows = torch.stack([_row_differences(before.attention[i], after.attention[i], read, order) for i in records])
    has_choice = torch.tensor([row > 1 for row in read])  # the only token before row 1 is the first, an attention sink
    shares = rows[:, :2, :, counted].mean(-1)
    return SwapResponse(
        along=shares[:, 0],
        still=shares[:, 1],
        apart=rows[:, 2].amax((1, 2)),
        after_both=rows[:, 2][..., counted].max().item(),
        one_back=rows[:, 3:, :, has_choice].mean(-1).transpose(0, 1),
        rows=int(counted.sum()),
        read=len(read),
        of=n,
    )


def example_row(
    before: TraceRecord, after: TraceRecord, record: int, head: int, words: tuple[int, int], place: bool
) -> tuple[int, int, float]:
    """The row that shows best that a head follows a word or, with `place`, a position.

    Returns the row, one after both words if there is one; the word or position in the original text; and the smaller one of the
    weights on it in the two runs.
    """
    a, b = before.attention[record], after.attention[record]
    n = a.n_query
    rows = [row for row in evenly_spaced(n, SWAP_CELLS // n, words) if row > max(words)] or list(range(n))
    was, now = (x.pattern(head, rows, list(words))[0].cpu() for x in (a, b))  # [row, 2]
    both = torch.minimum(was, now if place else now.flip(-1))  # [row, 2]
    at, which = divmod(int(both.argmax()), 2)
    return rows[at], words[which], both[at, which].item()


def _row_differences(before: AttentionRecord, after: AttentionRecord, rows: Sequence[int], order: Tensor) -> Tensor:
    """Numbers of every row that was read, [5, head, row].

    Distance from the permuted map and from the original one, largest |Δ| from the permuted map, and the weight on the previous
    token before and after, which is 0 for row 0.
    """
    parts = []
    for block in row_blocks(len(rows), before.n_heads * before.n_key * 4):
        some = rows[block]
        now, was = after.pattern(queries=some).cpu(), before.pattern(queries=some).cpu()
        permuted = before.pattern(queries=order[some].tolist()).cpu()[..., order]
        shares = [total_variation(x.unsqueeze(-2), now.unsqueeze(-2)) for x in (permuted, was)]
        at = torch.arange(len(some)), (torch.tensor(some) - 1).clamp(min=0)
        back = [x[:, at[0], at[1]] * (torch.tensor(some) > 0) for x in (was, now)]
        parts.append(torch.stack([*shares, (now - permuted).abs().amax(-1), *back]))
    return torch.cat(parts, -1)


def pairs_to_swap(run: TraceRecord, tokens: Tokens, most: int = 2) -> tuple[tuple[int, int], ...]:
    """Positions of pairs of words that are worth swapping: neighbours among the content words.

    Content words have four letters or more and are not among the model's common words. If a text has fewer than two different
    ones, long words are taken, then words, then any tokens but special ones and padding. () if there are not two.
    """
    rows = [i for i in range(len(tokens)) if not (tokens.special[i] or tokens.padding[i])]
    common, long = are_common(run.loaded, tokens), are_long(tokens)
    last = rows[-1] if rows else -1
    for fits in (
        lambda i: long[i] and not common[i] and i != last,
        lambda i: long[i],
        lambda i: any(map(str.isalnum, tokens.labels[i])),
        lambda i: True,
    ):
        seen: dict[str, int] = {}
        for i in rows:
            if fits(i):
                seen.setdefault(tokens.labels[i].casefold(), i)
        words = list(seen.values())
        if len(words) >= 2:
            return tuple(zip(words[::2], words[1::2], strict=False))[:most]
    return ()


@dataclass(frozen=True, eq=False)
class PreRotary:
    """Queries and keys of one attention before RoPE.

    Feature j rotates with feature j + d_rotary/2 by the angle that Trace.positions has for j; features from d_rotary on do not
    rotate. Rotation changes only a pair's direction. Its norm stays the same, unless the model's scaling (YaRN) changes it.
    """

    q: Tensor  # [head, query, d_head]
    k: Tensor  # [kv_head, key, d_head]
    pairs: tuple[tuple[int, int], ...]  # the two features of each pair


def before_rotary(run: TraceRecord, record: AttentionRecord) -> PreRotary:
    """q and k before RoPE, from one more pass that ends at this layer, with the run's edits.

    Raises Refused for models without rotary positions and for cross-attention, and Outdated after a training.
    """
    if run.config.position != "rotary" or record.site == "cross_attn":
        what = "Cross-attention" if record.site == "cross_attn" else run.spec.title
        raise HeadlightError(f"{what} does not rotate queries and keys. Choose a model with rotary positions.")
    points = [f"{record.name}.hook_q_pre", f"{record.name}.hook_k_pre"]
    seen = run.forward.moments(points, lambda _, x: x[record.text].transpose(0, 1))
    half = run.config.d_rotary // 2
    return PreRotary(seen[points[0]], seen[points[1]], tuple((j, j + half) for j in range(half)))


def cosine_to(table: Tensor, row: int) -> Tensor:
    """Cosine similarity of one row of a position table to every row, [pos]."""
    return F.cosine_similarity(table.float(), table[row].float(), dim=-1)


def cosine_by_distance(table: Tensor, reach: int | None = None) -> Tensor:
    """Mean cosine similarity of two rows of a table [pos, d] by the distance between them, [distance], up to `reach` (None: all).

    Sinusoids have the same cosine for every pair at one distance. A learned table may not, and its row 0 often differs from the rest.
    """
    n = len(table)
    reach = n - 1 if reach is None else min(reach, n - 1)
    unit = F.normalize(table.float(), dim=-1)
    return torch.stack([(unit[: n - distance] * unit[distance:]).sum(-1).mean() for distance in range(reach + 1)])


def closest_rows(table: Tensor) -> tuple[int, int, float]:
    """The two most similar rows of a position table, and their Euclidean distance.

    A distance above 0 proves that all positions can be told apart, although they are added to the token's vector. Works in blocks
    of rows, never [pos, pos] at once. Raises ValueError for a table of one row.
    """
    n = len(table)
    if n < 2:
        raise ValueError("a table of one row has no two rows to compare")
    rows = table.cpu().double()
    squares = rows.pow(2).sum(-1)
    best = (float("inf"), 0, 1)
    for block in row_blocks(n, n * 8):
        distances = squares[block, None] + squares - 2 * rows[block] @ rows.T  # [row, row], squared
        columns = torch.arange(n)
        distances = distances.masked_fill(columns <= columns[block, None], float("inf"))
        least, at = distances.flatten().min(0)
        if float(least) < best[0]:
            best = (float(least), block.start + int(at) // n, int(at) % n)
    _, i, j = best
    return i, j, (rows[i] - rows[j]).norm().item()  # not from the squares: their difference loses digits


def shuffled_words(tokens: Tokens, seed: int) -> tuple[int, ...]:
    """A position for every token, for SetPositions: words are shuffled, special tokens and padding stay.

    The result depends only on the seed and the number of words, and is never the original order if there are two or more words.
    """
    words = [i for i in range(len(tokens)) if not (tokens.special[i] or tokens.padding[i])]
    shuffled = words[:]
    random.Random(seed).shuffle(shuffled)
    if shuffled == words:
        shuffled = shuffled[1:] + shuffled[:1]
    positions = list(range(len(tokens)))
    for word, position in zip(words, shuffled, strict=True):
        positions[word] = position
    return tuple(positions)


@dataclass(frozen=True)
class Equivariance:
    """Effect of moving the words of a text on the maps of a stack: the largest |Δ| of any weight of any head.

    Attention without positions is equivariant to the order of its tokens, not invariant: its maps are permuted like the tokens.
    """

    without: float  # without positions and mask: the map of the permuted words minus the permuted map
    trained: float  # the same with positions and mask
    same: float  # with positions: the map of the permuted words minus that of the permuted positions
    masked: float | None = None  # without positions, with a mask that depends on order; None if there is none


def equivariance(run: TraceRecord, places: Sequence[int]) -> Equivariance:
    """Shows that order enters only through positions and the mask, with more passes over this text's tokens.

    places[i] is the new position of token i. The stack is the encoder, or the decoder of a model without one. A window depends on
    order as well, and is removed together with the positions. Raises Refused if places are not a permutation of this text.
    """
    if sorted(places) != list(range(len(run.source))):
        raise HeadlightError(f"These places are not an order of {len(run.source)} tokens: use each number from 0 once.")
    stack: StackName = "encoder" if run.config.n_encoder_layers else "decoder"
    order = torch.tensor(places).argsort()  # which token is at each position
    ids, moved_ids = list(run.source.ids), [run.source.ids[i] for i in order.tolist()]
    has_mask = run.config.window is not None or (stack == "decoder" and run.config.causal)

    def difference(*edits: Edit) -> float:
        before, after = (trace(run.loaded, ids=some, interventions=edits) for some in (ids, moved_ids))
        return _largest_difference(before, after, order, stack)

    placed = trace(run.loaded, ids=ids, interventions=[SetPositions(places, stack)])
    moved = trace(run.loaded, ids=moved_ids)
    drop, free = DropPositions(stack), SetMask("none", stack=stack)
    return Equivariance(
        without=difference(drop, free) if has_mask else difference(drop),
        trained=difference(),
        same=_largest_difference(placed, moved, order, stack),
        masked=difference(drop) if has_mask else None,
    )


def _largest_difference(before: TraceRecord, after: TraceRecord, order: Tensor, stack: StackName) -> float:
    """The largest |Δ| of any weight of a stack's self-attention, between `after` and the permuted maps of `before`."""
    largest = 0.0
    for a, b in zip(before.attention, after.attention, strict=True):
        if a.stack != stack or a.site != "attn":
            continue
        for block in row_blocks(a.n_query, a.n_heads * a.n_key * 4):
            rows = torch.arange(a.n_query)[block]
            permuted = a.pattern(queries=order[rows].tolist())[..., order.to(a.device)]  # [head, row, key]
            largest = max(largest, (b.pattern(queries=rows.tolist()) - permuted).abs().max().item())
    return largest


@dataclass(frozen=True)
class ShiftInvariance:
    """Effect of shifting a whole text by `by` positions: the largest |Δ| of any score and any weight of its self-attention."""

    by: int
    scores: float
    weights: float


def shift_invariance(run: TraceRecord, by: int) -> ShiftInvariance:
    """Effect of a text's position in a longer one, from one more pass: close to 0 if only distance counts.

    Raises InterventionError if a position table is too short.
    """
    target = None if run.target is None else run.target.ids
    edits = [*run.interventions, ShiftPositions(by)]
    shifted = trace(run.loaded, ids=run.source.ids, target_ids=target, interventions=edits)
    scores = weights = 0.0
    for a, b in zip(run.attention, shifted.attention, strict=True):
        for head in range(a.n_heads) if a.site == "attn" else ():
            for block in row_blocks(a.n_query, a.n_key * 4):
                rows = torch.arange(a.n_query)[block]
                allowed = a.mask(rows, head=head)
                if allowed.any():
                    scores = max(scores, (a.scores(head, rows) - b.scores(head, rows)).abs()[0][allowed].max().item())
                weights = max(weights, (a.pattern(head, rows) - b.pattern(head, rows)).abs().max().item())
    return ShiftInvariance(by, scores, weights)


def score_by_distance(
    q: Tensor, k: Tensor, frequencies: Tensor, scale: float, distances: Iterable[float], factor: float = 1.0
) -> Tensor:
    """Score of one query and one key by the position of the query minus that of the key, [distance].

    The sum over all pairs (scores_of_pairs), plus q·k of the features without RoPE, which does not depend on distance.
    """
    half = len(frequencies)
    rest = q.cpu().double()[2 * half :] @ k.cpu().double()[2 * half :]
    return scores_of_pairs(q, k, frequencies, scale, distances, factor).sum(-1) + rest * scale


def scores_of_pairs(
    q: Tensor, k: Tensor, frequencies: Tensor, scale: float, distances: Iterable[float], factor: float = 1.0
) -> Tensor:
    """Contribution of each pair of features to the score of one query and one key, [distance, pair].

    q and k [d_head] are those before RoPE, frequencies [d_rotary/2] are in radians per position, and `factor` is YaRN's factor on q
    and k. Each pair (j, j + d_rotary/2) adds |q||k|cos(angle between q and k), which depends only on the distance (Su et al. 2021,
    arXiv:2104.09864, §3.2.2).
    """
    half = len(frequencies)
    q, k, frequencies = q.cpu().double(), k.cpu().double(), frequencies.cpu().double()
    a, b = (torch.complex(x[:half], x[half : 2 * half]) for x in (q, k))
    at = torch.tensor(list(distances), dtype=torch.float64)
    return (a * b.conj() * torch.exp(1j * at[:, None] * frequencies)).real * (factor**2 * scale)


Rule = Literal["none", "linear", "dynamic", "yarn", "llama3"]
RULES: tuple[Rule, ...] = ("none", "linear", "dynamic", "yarn", "llama3")  # none: the trained positions


def config_under_rule(config: ModelConfig, rule: Rule, factor: float) -> ModelConfig:
    """A config whose rotary positions reach `factor` times the trained context (n_ctx), by one of RULES.

    "none" or a factor of 1 returns the config itself with its own scaling, which any other rule replaces. Raises Refused for
    positions that are not rotary, for an unknown rule, and for a factor below 1.
    """
    if config.position != "rotary":
        raise HeadlightError(
            f"Only rotary positions can be slowed, and these are {config.position}. Choose a model with rotary positions."
        )
    if rule not in RULES:
        raise HeadlightError(f"There is no rule {rule!r} for longer texts. It is one of {', '.join(RULES)}.")
    if not (math.isfinite(factor) and factor >= 1):
        raise HeadlightError(f"A text is made longer by a factor of 1 or more, and not by {factor:g}.")
    if rule == "none" or factor == 1:
        return config
    return replace(config, rotary_scaling=RotaryScaling(kind=rule, factor=factor, n_ctx_original=config.n_ctx))


def with_rope_scaling(loaded: Loaded, rule: Rule, factor: float) -> Loaded:
    """The model with another RoPE scaling (config_under_rule()); it shares all weights and hook points with `loaded`.

    Neither is changed, so threads may run both at once. Cached angles are stored by their rule.
    """
    config = config_under_rule(loaded.config, rule, factor)
    if config is loaded.config:
        return loaded
    model = copy.copy(loaded.model)
    model._modules = dict(model._modules)
    model.config = config
    for name, _ in config.stacks:
        stack: Any = copy.copy(loaded.model.get_submodule(name))
        stack.config = config
        model._modules[name] = stack
    return replace(loaded, model=model, config=config)


@dataclass(frozen=True, eq=False)
class ContextExtension:
    """Frequencies under one rule, for a text of `factor` times the trained length."""

    rule: Rule
    frequencies: torch.Tensor  # float32 [d_rotary/2]: radians per position
    factor: float  # YaRN's factor on q and k; 1 otherwise


def context_extensions(config: ModelConfig, factor: float) -> tuple[ContextExtension, ...]:
    """Every rule's frequencies for a text of factor · n_ctx tokens."""
    n = round(config.n_ctx * factor)
    return tuple(
        ContextExtension(rule, *rotary_frequencies(config_under_rule(config, rule, factor), n)) for rule in RULES
    )


def end_loss(loaded: Loaded, ids: Sequence[int], last: int = 64, dropped: bool = False) -> float:
    """Mean loss, in nats, of the last `last` predictions in a text.

    With `dropped`, positions are removed. Raises TextError for a model that does not predict the next token.
    """
    run = trace(loaded, ids=ids, interventions=[DropPositions()] if dropped else [])
    n = len(run.source)
    return given(run, range(max(0, n - 1 - last), n - 1)).losses.mean().item()


def gap_after(tokens: Tokens) -> int:
    """The token after which a gap is inserted: the last comma before two or more tokens, else the middle one.

    Raises Refused for a text of fewer than two tokens.
    """
    n = len(tokens)
    if n < 2:
        raise HeadlightError("A text of one token has no room for a gap. Type two words or more.")
    commas = [i for i in range(1, n - 2) if tokens.labels[i].strip() in {",", ";", ":", "，", "、"}]
    return commas[-1] if commas else (n - 1) // 2


def probability_by_gap(
    run: TraceRecord, rule: Rule, factor: float, gaps: Sequence[int], after: int, token: int | None = None
) -> Iterator[tuple[int, float]]:
    """Id and probability of one next token after the whole text, for each gap: the positions that are skipped after token `after`.

    `token` None is the model's prediction on the text without a gap. One run of the text for each gap.
    """
    ids = list(run.source.ids)
    loaded = with_rope_scaling(run.loaded, rule, factor)
    if (head := loaded.model.head) is None:
        raise HeadlightError(f"{loaded.spec.title} writes no next word. Choose a model that does.")
    if token is None:
        token = trace(run.loaded, ids=ids).predictions([len(ids) - 1], k=1).ids[0][0]
    for gap in gaps:
        places = [i if i <= after else i + gap for i in range(len(ids))]
        apart = trace(loaded, ids=ids, interventions=[SetPositions(places)])
        last = torch.tensor([len(ids) - 1], device=apart.device)
        with torch.inference_mode():
            yield token, head(apart.final_residual(last)[None])[0, 0].float().softmax(-1)[token].item()
