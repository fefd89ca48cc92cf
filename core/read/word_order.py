"""What positions are: q and k before they were turned, how alike a table's rows are, and what order does to a run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
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
    """Queries and keys of one attention as they were before rotary positions turned them.

    Feature j turns with feature j + d_rotary/2 (`pairs` has both of each), by the angle that Trace.positions has for j;
    features from d_rotary on are not turned. Turning only changes a pair's direction, so its length is the same before and
    after, unless the model's scaling (yarn) says otherwise.
    """

    q: Tensor  # [head, query, d_head]
    k: Tensor  # [kv_head, key, d_head]
    pairs: tuple[tuple[int, int], ...]


def unturned(run: Trace, record: AttentionRecord) -> Unturned:
    """q and k before rotary, from one more pass that ends at this layer, with the run's edits.

    Raises Refused for a model without rotary positions and for cross-attention, which has none, and Outdated after a training.
    """
    if run.config.position != "rotary" or record.site == "cross_attn":
        what = "Cross-attention" if record.site == "cross_attn" else run.spec.title
        raise Refused(
            f"{what} turns no queries and keys: nothing is different before. Choose a model with rotary positions."
        )
    points = [f"{record.name}.hook_q_pre", f"{record.name}.hook_k_pre"]
    seen = run.forward.moments(points, lambda _, x: x[record.text])
    half = run.config.d_rotary // 2
    return Unturned(seen[points[0]], seen[points[1]], tuple((j, j + half) for j in range(half)))


def cosine_to(table: Tensor, row: int) -> Tensor:
    """How alike one row of a position table is to every row, [pos]: the cosine, 1 for itself."""
    return F.cosine_similarity(table.float(), table[row].float(), dim=-1)


def cosine_by_distance(table: Tensor, reach: int | None = None) -> Tensor:
    """The mean cosine of two rows of a table [pos, d] by how many places lie between them, [distance]: 1 at 0.

    Up to `reach` (None: the whole table). Sinusoids have the same cosine for every pair at one distance; a learned table
    need not, and its row 0 is often unlike the rest.
    """
    n = len(table)
    reach = n - 1 if reach is None else min(reach, n - 1)
    unit = F.normalize(table.float(), dim=-1)
    return torch.stack([(unit[: n - away] * unit[away:]).sum(-1).mean() for away in range(reach + 1)])


def closest_rows(table: Tensor) -> tuple[int, int, float]:
    """The two rows of a position table that lie closest to each other, and their Euclidean distance.

    Above 0, no two places look the same: positions can be told apart although they are added and not put beside the token.
    Works through blocks of rows, never [pos, pos] at once. Raises ValueError for a table of one row.
    """
    n = len(table)
    if n < 2:
        raise ValueError("a table of one row has no two rows to compare")
    rows = table.cpu().double()
    squares = rows.pow(2).sum(-1)
    best = (0, 1, float("inf"))
    for block in row_blocks(n, n * 8):
        apart = squares[block, None] + squares - 2 * rows[block] @ rows.T  # [row, row]
        columns = torch.arange(n)
        apart = apart.masked_fill(columns <= columns[block, None], float("inf"))
        least, at = apart.flatten().min(0)
        if float(least) < best[2]:
            i, j = block.start + int(at) // n, int(at) % n
            best = (i, j, float(least))
    i, j, _ = best
    return i, j, (rows[i] - rows[j]).norm().item()  # not from the squares: their difference loses digits


def shuffled_words(tokens: Tokens, seed: int) -> tuple[int, ...]:
    """A place for every token, for SetPositions: those of the words dealt out again, special tokens and padding where they were.

    The same for the same seed and number of words; never the order that was there, where there are two words to move.
    """
    words = [i for i in range(len(tokens)) if not (tokens.special[i] or tokens.padding[i])]
    dealt = words[:]
    random.Random(seed).shuffle(dealt)
    if dealt == words:
        dealt = dealt[1:] + dealt[:1]
    places = list(range(len(tokens)))
    for word, place in zip(words, dealt, strict=True):
        places[word] = place
    return tuple(places)


@dataclass(frozen=True)
class Equivariance:
    """The effect of moving the words of a text on the maps of a stack: largest |Δ| over all weights of all its heads.

    Attention without positions is equivariant to the order of its tokens, not invariant: the map is moved about with them.
    """

    without: float  # without positions and mask: the map of the words moved, less the same map moved
    trained: float  # the same with positions and mask
    same: float  # with positions: the map of the words moved, less that of the positions moved
    masked: float | None = None  # without positions, with the mask that tells early from late; None where there is none


def equivariance(run: Trace, places: Sequence[int]) -> Equivariance:
    """The proof that order comes in through positions and the mask alone, from more passes over this text's tokens: of the
    encoder, or of a decoder that stands alone.

    places[i] is where token i goes, each once. A mask that goes by distance tells order as well, and is taken away with the
    positions. Raises Refused for places that are no order of this text.
    """
    if sorted(places) != list(range(len(run.source))):
        raise Refused(f"These places are no order of {len(run.source)} tokens: each from 0 must come once.")
    stack: StackName = "encoder" if run.config.n_encoder_layers else "decoder"
    order = torch.tensor(places).argsort()  # which token stands at each place
    ids, moved_ids = list(run.source.ids), [run.source.ids[i] for i in order.tolist()]
    tells = run.config.window is not None or (stack == "decoder" and run.config.causal)

    def apart(*edits: Edit) -> float:
        before, after = (trace(run.loaded, ids=some, interventions=edits) for some in (ids, moved_ids))
        return _apart(before, after, order, stack)

    placed = trace(run.loaded, ids=ids, interventions=[SetPositions(places, stack)])
    moved = trace(run.loaded, ids=moved_ids)
    drop, free = DropPositions(stack), SetMask("none", stack=stack)
    return Equivariance(
        without=apart(drop, free) if tells else apart(drop),
        trained=apart(),
        same=_apart(placed, moved, order, stack),
        masked=apart(drop) if tells else None,
    )


def _apart(before: Trace, after: Trace, order: Tensor, stack: StackName) -> float:
    """The largest |Δ| of any weight of a stack's self-attention: `before` in another order, less `after`."""
    worst = 0.0
    for a, b in zip(before.attention, after.attention, strict=True):
        if a.stack == stack and a.site == "attn":
            for found in _carried(a, b, order):
                worst = max(worst, found.abs().max().item())
    return worst


def _carried(before: AttentionRecord, after: AttentionRecord, order: Tensor) -> Iterator[Tensor]:
    """`after` less `before` with its rows and columns carried along, [head, row, key] for some rows at a time."""
    for block in row_blocks(before.n_query, before.n_heads * before.n_key * 4):
        rows = torch.arange(before.n_query)[block]
        moved = before.pattern(queries=order[rows].tolist())[..., order.to(before.device)]
        yield after.pattern(queries=rows.tolist()) - moved


@dataclass(frozen=True)
class MovedOn:
    """A whole text moved on by `by` places: the largest |Δ| of any score and of any weight of its self-attention."""

    by: int
    scores: float
    weights: float


def moved_on(run: Trace, by: int) -> MovedOn:
    """What a text's place in a longer one does to it, by one more pass: next to nothing where only distance counts.

    Raises InterventionError where a table of positions does not reach so far.
    """
    target = None if run.target is None else run.target.ids
    there = trace(
        run.loaded, ids=run.source.ids, target_ids=target, interventions=[*run.interventions, ShiftPositions(by)]
    )
    scores = weights = 0.0
    for a, b in zip(run.attention, there.attention, strict=True):
        for head in range(a.n_heads) if a.site == "attn" else ():
            for block in row_blocks(a.n_query, a.n_key * 4):
                rows = torch.arange(a.n_query)[block]
                apart = [
                    (x(head, rows) - y(head, rows)).abs() for x, y in ((a.scores, b.scores), (a.pattern, b.pattern))
                ]
                allowed = a.mask(rows, head=head)
                scores = max(scores, apart[0][0][allowed].max().item() if allowed.any() else 0.0)
                weights = max(weights, apart[1].max().item())
    return MovedOn(by, scores, weights)


def score_by_distance(
    q: Tensor, k: Tensor, frequencies: Tensor, scale: float, distances: Iterable[float], factor: float = 1.0
) -> Tensor:
    """The score of one query and one key by the distance between them, [distance]: the query's place less the key's.

    The sum over all pairs (scores_of_pairs), and q·k of what is not turned, which is the same at any distance.
    """
    half = len(frequencies)
    rest = q.cpu().double()[2 * half :] @ k.cpu().double()[2 * half :]
    return scores_of_pairs(q, k, frequencies, scale, distances, factor).sum(-1) + rest * scale


def scores_of_pairs(
    q: Tensor, k: Tensor, frequencies: Tensor, scale: float, distances: Iterable[float], factor: float = 1.0
) -> Tensor:
    """The addition of each pair of features to the score of one query and one key, [distance, pair].

    q and k [d_head] as they were before they were turned, frequencies [d_rotary/2] in radians a position, `factor` what yarn
    makes q and k longer by. Each pair (j, j + d_rotary/2) adds |q||k|cos(angle between the two hands), which the distance alone
    turns (Su et al. 2021, arXiv:2104.09864, §3.2.2).
    """
    half = len(frequencies)
    q, k, frequencies = q.cpu().double(), k.cpu().double(), frequencies.cpu().double()
    a, b = (torch.complex(x[:half], x[half : 2 * half]) for x in (q, k))
    away = torch.tensor(list(distances), dtype=torch.float64)
    return (a * b.conj() * torch.exp(1j * away[:, None] * frequencies)).real * (factor**2 * scale)
