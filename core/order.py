"""What positions are: queries and keys before they were turned, how alike the rows of a table are, a map in another order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention import AttentionRecord
from .errors import Refused
from .rules import row_blocks
from .trace import Trace


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
    rows = table.double()
    squares = rows.pow(2).sum(-1)
    best = (0, 1, float("inf"))
    for block in row_blocks(n, n * 8):
        apart = squares[block, None] + squares - 2 * rows[block] @ rows.T  # [row, row]
        columns = torch.arange(n, device=table.device)
        apart = apart.masked_fill(columns <= columns[block, None], float("inf"))
        least, at = apart.flatten().min(0)
        if float(least) < best[2]:
            i, j = block.start + int(at) // n, int(at) % n
            best = (i, j, float(least))
    i, j, _ = best
    return i, j, (rows[i] - rows[j]).norm().item()  # not from the squares: their difference loses digits


def reordered(pattern: Tensor, order: Tensor) -> Tensor:
    """A map [..., query, key] of words that now stand in another order: row i and column i are those of order[i].

    Attention without positions is equivariant: of the words moved, the map is the same map reordered.
    """
    return pattern[..., order, :][..., order]
