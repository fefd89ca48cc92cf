"""Effects of position: q and k before RoPE, similarity of the rows of a position table, and the effect of order on a run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..edits import DropPositions, Edit, SetMask, SetPositions, ShiftPositions, StackName
from ..errors import Refused
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.trace import Trace, trace


@dataclass(frozen=True, eq=False)
class Unturned:
    """Queries and keys of one attention before RoPE.

    Feature j rotates with feature j + d_rotary/2 by the angle that Trace.positions has for j; features from d_rotary on do not
    rotate. Rotation changes only a pair's direction. Its norm stays the same, unless the model's scaling (YaRN) changes it.
    """

    q: Tensor  # [head, query, d_head]
    k: Tensor  # [kv_head, key, d_head]
    pairs: tuple[tuple[int, int], ...]  # the two features of each pair


def unturned(run: Trace, record: AttentionRecord) -> Unturned:
    """q and k before RoPE, from one more pass that ends at this layer, with the run's edits.

    Raises Refused for models without rotary positions and for cross-attention, and Outdated after a training.
    """
    if run.config.position != "rotary" or record.site == "cross_attn":
        what = "Cross-attention" if record.site == "cross_attn" else run.spec.title
        raise Refused(f"{what} does not rotate queries and keys. Choose a model with rotary positions.")
    points = [f"{record.name}.hook_q_pre", f"{record.name}.hook_k_pre"]
    seen = run.forward.moments(points, lambda _, x: x[record.text])
    half = run.config.d_rotary // 2
    return Unturned(seen[points[0]], seen[points[1]], tuple((j, j + half) for j in range(half)))


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


def equivariance(run: Trace, places: Sequence[int]) -> Equivariance:
    """Shows that order enters only through positions and the mask, with more passes over this text's tokens.

    places[i] is the new position of token i. The stack is the encoder, or the decoder of a model without one. A window depends on
    order as well, and is removed together with the positions. Raises Refused if places are not a permutation of this text.
    """
    if sorted(places) != list(range(len(run.source))):
        raise Refused(f"These places are not an order of {len(run.source)} tokens: use each number from 0 once.")
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


def _largest_difference(before: Trace, after: Trace, order: Tensor, stack: StackName) -> float:
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
class MovedOn:
    """Effect of shifting a whole text by `by` positions: the largest |Δ| of any score and any weight of its self-attention."""

    by: int
    scores: float
    weights: float


def moved_on(run: Trace, by: int) -> MovedOn:
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
    return MovedOn(by, scores, weights)


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
