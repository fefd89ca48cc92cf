"""Two words of a text change places: which heads follow the word, and which stay at the place."""

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

CELLS = 24_000_000  # weights of each run that are read, at most


@dataclass(frozen=True, eq=False)
class Follows:
    """How far each head's map on the swapped text is from two maps of the text as it was: of every layer of one kind of
    attention. A share of a row is half of Σ over keys of |difference|, the mean over the rows (measures.moved)."""

    along: Tensor  # float32 [layer, head]: from the old map with both words' rows and columns carried along
    still: Tensor  # float32 [layer, head]: from the old map as it was
    apart: Tensor  # float32 [layer]: the largest |Δ| of any weight from the map carried along, over all rows that were read
    after_both: float  # the largest of those in rows that stand after both words
    one_back: Tensor  # float32 [2, layer, head]: the mean weight on the token before, as it was and on the swapped text
    rows: int  # that `along` and `still` are means over: those after both words, or all where no row is
    read: int  # rows that were read for `apart`, evenly spaced
    of: int

    @property
    def word(self) -> Tensor:
        """[layer, head] from −1 to 1: above 0 a head follows the word, below 0 it stays at the place. A comparison of the
        two, and no proof that a head does one alone."""
        return self.still - self.along


def follows(before: Trace, after: Trace, records: Sequence[int], first: int, second: int) -> Follows:
    """Compare a run with the one on the same text in which two words have changed places (edits.SwapWords).

    `records` are the attentions of a stack to itself, by layer, and first and second the two places. In a causal stack the
    rows before both words are what they were and those of the words and between them see one word more or less, so that heads
    are told apart by the rows after both. Raises Refused for cross-attention, for places that the text does not have, and for
    runs of other tokens.
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
    read = spread(n, max(1, CELLS // (len(records) * record.n_heads * n)), (first, second))
    later = [row for row in read if row > max(first, second)]
    counted = torch.tensor([not later or row in later for row in read])
    # [layer, 5, head, row]
    found = torch.stack([_by_row(before.attention[i], after.attention[i], read, order) for i in records])
    further = torch.tensor([row > 1 for row in read])  # row 1 has one token before it, where heads rest
    shares = found[:, :2, :, counted].mean(-1)
    return Follows(
        along=shares[:, 0],
        still=shares[:, 1],
        apart=found[:, 2].amax((1, 2)),
        after_both=found[:, 2][..., counted].max().item(),
        one_back=found[:, 3:, :, further].mean(-1).transpose(0, 1),
        rows=int(counted.sum()),
        read=len(read),
        of=n,
    )


def telling_row(
    before: Trace, after: Trace, record: int, head: int, words: tuple[int, int], place: bool
) -> tuple[int, int, float]:
    """The row in which a head shows best that it follows a word, or with `place` that it stays at a place; the word or place, as it
    was; and how much it gives it there in both runs at least. The row is one after both words where there is one."""
    a, b = before.attention[record], after.attention[record]
    n = a.n_query
    rows = [row for row in spread(n, CELLS // n, words) if row > max(words)] or list(range(n))
    was, now = (x.pattern(head, rows, list(words))[0].cpu() for x in (a, b))  # [row, 2]
    both = torch.minimum(was, now if place else now.flip(-1))  # [row, 2]
    at, which = divmod(int(both.argmax()), 2)
    return rows[at], words[which], both[at, which].item()


def _by_row(before: AttentionRecord, after: AttentionRecord, rows: Sequence[int], order: Tensor) -> Tensor:
    """For every row that was read: share from carried along, share from as it was, largest |Δ| from carried along, and the
    weight on the token before, as it was and now, [5, head, row]. Row 0 has no token before it: there it is 0."""
    parts = []
    for block in row_blocks(len(rows), before.n_heads * before.n_key * 4):
        some = rows[block]
        now, was = after.pattern(queries=some).cpu(), before.pattern(queries=some).cpu()
        carried = before.pattern(queries=order[some].tolist()).cpu()[..., order]
        shares = [moved(x.unsqueeze(-2), now.unsqueeze(-2)) for x in (carried, was)]
        at = torch.arange(len(some)), (torch.tensor(some) - 1).clamp(min=0)
        back = [x[:, at[0], at[1]] * (torch.tensor(some) > 0) for x in (was, now)]
        parts.append(torch.stack([*shares, (now - carried).abs().amax(-1), *back]))
    return torch.cat(parts, -1)


def pairs_to_swap(run: Trace, tokens: Tokens, most: int = 2) -> tuple[tuple[int, int], ...]:
    """Pairs of a text's words that are worth swapping, by their places: neighbours among the words that say most.

    Those are of four letters or more and none of the model's common words, each spelled once: where the text has fewer than
    two, the long ones, then any that stand for themselves. Special tokens and padding have no place to give. () where there are
    not two.
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
        found = list(seen.values())
        if len(found) >= 2:
            return tuple(zip(found[::2], found[1::2], strict=False))[:most]
    return ()
