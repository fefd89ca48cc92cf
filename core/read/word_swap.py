"""Two words of a text change places: which heads follow the word, and which stay at the position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import Refused
from ..model.rules import row_blocks
from ..model.text import Tokens
from ..run.attention import AttentionRecord
from ..run.trace import Trace
from .common_words import are_common, are_long
from .measures import moved
from .spaced_rows import spread

SWAP_CELLS = 24_000_000  # weights that are read of each run, at most


@dataclass(frozen=True, eq=False)
class Follows:
    """Distance of each head's map on the swapped text from two maps of the original text, for every layer of one kind of attention.

    Distances are shares of a row: half of Σ over keys of |difference|, averaged over rows (measures.moved).
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


def follows(before: Trace, after: Trace, records: Sequence[int], first: int, second: int) -> Follows:
    """Compare a run with the one on the same text with two words exchanged (edits.SwapWords).

    `records` are the self-attentions of a stack by layer, first and second the two positions. In a causal stack the rows before
    both words do not change, and the rows between them see one word more or less. Heads are therefore compared by the rows after
    both. Raises Refused for cross-attention, for positions outside the text, and for runs of different tokens.
    """
    record = before.attention[records[0]]
    n = record.n_query
    if record.site != "attn":
        raise Refused("Words are swapped within one text: cross-attention looks from one into another.")
    if first == second or not (0 <= first < n and 0 <= second < n):
        raise Refused(f"Two words of {n} tokens change places: give two different ones, from 0 to {n - 1}.")
    if before.tokens_of(record)[0].ids != after.tokens_of(after.attention[records[0]])[0].ids:
        raise Refused("These two runs are of different tokens, so that no word of one is a word of the other.")
    order = torch.arange(n)
    order[[first, second]] = order[[second, first]]
    read = spread(n, max(1, SWAP_CELLS // (len(records) * record.n_heads * n)), (first, second))
    later = [row > max(first, second) for row in read]
    counted = torch.tensor(later if any(later) else [True] * len(read))
    # [layer, 5, head, row]
    rows = torch.stack([_row_differences(before.attention[i], after.attention[i], read, order) for i in records])
    has_choice = torch.tensor([row > 1 for row in read])  # the only token before row 1 is the first, an attention sink
    shares = rows[:, :2, :, counted].mean(-1)
    return Follows(
        along=shares[:, 0],
        still=shares[:, 1],
        apart=rows[:, 2].amax((1, 2)),
        after_both=rows[:, 2][..., counted].max().item(),
        one_back=rows[:, 3:, :, has_choice].mean(-1).transpose(0, 1),
        rows=int(counted.sum()),
        read=len(read),
        of=n,
    )


def telling_row(
    before: Trace, after: Trace, record: int, head: int, words: tuple[int, int], place: bool
) -> tuple[int, int, float]:
    """The row that shows best that a head follows a word or, with `place`, a position.

    Returns the row, one after both words if there is one; the word or position in the original text; and the smaller one of the
    weights on it in the two runs.
    """
    a, b = before.attention[record], after.attention[record]
    n = a.n_query
    rows = [row for row in spread(n, SWAP_CELLS // n, words) if row > max(words)] or list(range(n))
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
        shares = [moved(x.unsqueeze(-2), now.unsqueeze(-2)) for x in (permuted, was)]
        at = torch.arange(len(some)), (torch.tensor(some) - 1).clamp(min=0)
        back = [x[:, at[0], at[1]] * (torch.tensor(some) > 0) for x in (was, now)]
        parts.append(torch.stack([*shares, (now - permuted).abs().amax(-1), *back]))
    return torch.cat(parts, -1)


def pairs_to_swap(run: Trace, tokens: Tokens, most: int = 2) -> tuple[tuple[int, int], ...]:
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
