"""Pool and Rows: keys and values of many calls of one attention, with repeated rows stored once.

In decoding, each step passes the keys of all tokens so far, so n steps would store n² rows. A cache may grow by a row,
slide (a window), be written in place (static) or be reordered (beams). Rows are matched by content, so only new rows are
stored in all these cases.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..model.custom_mask import select_text
from ..model.rules import row_blocks

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of a number


@dataclass(frozen=True, eq=False)
class PoolLookup:
    """The rows of a call, matched with its pool, before new ones are stored."""

    where: slice | Tensor  # index in the pool of each row, [key of a text]
    fresh: Tensor  # rows not in the pool yet, [row, kv_head, d_head]
    own: tuple[int, ...]  # leading axes of the tensor
    n: int  # keys

    @property
    def nbytes(self) -> int:
        return self.fresh.nbytes + (0 if isinstance(self.where, slice) else self.where.nbytes)

    @property
    def is_known(self) -> bool:
        """True if all rows are in the pool."""
        return len(self.fresh) == 0


class Pool:
    """Distinct rows [row, kv_head, d_head], one per key of a text, in order of arrival."""

    def __init__(self) -> None:
        self.buffer: Tensor | None = None
        self.n = 0
        self.hashes: Tensor | None = None  # of the first rows, computed on demand
        self.last: slice | Tensor = slice(0, 0)  # rows of the last call

    @property
    def rows(self) -> Tensor:
        assert self.buffer is not None
        return self.buffer[: self.n]

    def seek(self, x: Tensor) -> PoolLookup:
        """Match rows of keys or values [..., kv_head, key, d_head] with the pool, without storing anything."""
        own, n = x.shape[:-3], x.shape[-2]
        # Key by key, so that new rows of a cache follow its old ones.
        rows = x.reshape(own.numel(), *x.shape[-3:]).permute(2, 0, 1, 3).flatten(0, 1)
        where, fresh = self._found(rows.contiguous())
        return PoolLookup(where, fresh, tuple(own), n)

    def keep(self, sought: PoolLookup, leading: tuple[int, ...]) -> Rows:
        """Store the new rows of the last seek(). `leading` are the leading axes of the call."""
        need = self.n + len(sought.fresh)
        if self.buffer is None:
            self.buffer = sought.fresh.clone(memory_format=torch.contiguous_format)
        elif need > len(self.buffer):
            grown = sought.fresh.new_empty(max(need, self.n * 3 // 2), *self.buffer.shape[1:])
            grown[: self.n] = self.rows
            self.buffer = grown
        self.buffer[self.n : need] = sought.fresh
        self.n, self.last = need, sought.where
        return Rows(self, sought.where, sought.own, leading, sought.n, sought.nbytes)

    def _found(self, rows: Tensor) -> tuple[slice | Tensor, Tensor]:
        n = len(rows)
        if not self.n or not n:
            return slice(self.n, self.n + n), rows
        if isinstance(self.last, slice):  # usual cases, without matching each row: the same keys, or some more
            before = self.last.stop - self.last.start
            goes_on = before == n or (before < n and self.last.stop == self.n)
            if goes_on and torch.equal(_bits(rows[:before]), _bits(self.rows[self.last])):
                return slice(self.last.start, self.last.start + n), rows[before:]
        known, sums = self._hashes(), _hashes(rows)
        order = known.argsort()
        found = order[torch.searchsorted(known[order], sums).clamp_(max=self.n - 1)]
        same = known[found] == sums
        same[same.clone()] = (_bits(self.rows[found[same]]) == _bits(rows[same])).all(-1)
        fresh = rows[~same]
        where = found.masked_scatter(~same, torch.arange(self.n, self.n + len(fresh), device=rows.device))
        first = int(where[0])
        if torch.equal(where, torch.arange(first, first + n, device=where.device)):
            return slice(first, first + n), fresh
        return where.int(), fresh

    def _hashes(self) -> Tensor:
        """[row] hashes of all rows of the pool."""
        done = 0 if self.hashes is None else len(self.hashes)
        if self.hashes is None or done < self.n:
            new = _hashes(self.rows[done:])
            self.hashes = new if self.hashes is None else torch.cat([self.hashes, new])
        return self.hashes


@dataclass(frozen=True, eq=False)
class Rows:
    """Keys or values of one call, read like a tensor [batch, kv_head, key, d_head]; the rows are in a pool."""

    pool: Pool
    where: slice | Tensor
    own: tuple[int, ...]
    leading: tuple[int, ...]
    n: int
    nbytes: int  # of the rows that this call added

    @property
    def shape(self) -> torch.Size:
        n_heads, d_head = self.pool.rows.shape[1:]
        return torch.Size((torch.Size(self.leading).numel(), n_heads, self.n, d_head))

    def __call__(self) -> Tensor:
        """[batch, kv_head, key, d_head]: a view of the pool if the rows are consecutive, otherwise a copy."""
        rows = self._as_handed_in()
        return rows.expand(*self.leading, *rows.shape[-3:]).reshape(self.shape)

    def __getitem__(self, text: int) -> Tensor:
        """[kv_head, key, d_head]"""
        return select_text(self._as_handed_in(), self.leading, text)

    def _as_handed_in(self) -> Tensor:
        """[..., kv_head, key, d_head]"""
        rows = self.pool.rows[self.where]
        texts = torch.Size(self.own).numel()
        return (
            rows.view(self.n, texts, *rows.shape[1:])
            .permute(1, 2, 0, 3)
            .reshape(*self.own, rows.shape[1], self.n, rows.shape[2])
        )


def _bits(rows: Tensor) -> Tensor:
    """[row, number] as integers, so that NaN equals itself and 0 differs from −0."""
    return rows.flatten(1).view(BITS[rows.element_size()])


def _hashes(rows: Tensor) -> Tensor:
    """[row] int64: each row's bits times fixed random odd factors, modulo 2⁶⁴. Rows of equal hash are compared bit by bit."""
    bits = _bits(rows)
    generator = torch.Generator().manual_seed(0)  # its own, so as not to change the global random state
    factors = torch.randint(-(1 << 62), 1 << 62, bits.shape[1:], generator=generator).mul_(2).add_(1).to(rows.device)
    sums = torch.empty(len(bits), dtype=torch.int64, device=rows.device)
    for some in row_blocks(len(bits), bits.shape[1] * 8):
        sums[some] = (bits[some].long() * factors).sum(-1)
    return sums
