"""Pool and Rows: whatever comes again is kept once, and what is read is what was handed in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from core.run.shared_rows import Pool, Rows

BATCH, HEADS, D = 2, 3, 4


def new(n: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(BATCH, HEADS, n, D, generator=torch.Generator().manual_seed(seed)).to(dtype)


def growing() -> list[Tensor]:
    """A cache that gains a key a step."""
    return [new(40, 1)[:, :, :n] for n in range(8, 40)]


def moving() -> list[Tensor]:
    """A window that lets go of the first key with each step."""
    return [new(40, 1)[:, :, n : n + 8] for n in range(32)]


def fixed() -> list[Tensor]:
    """A cache of a fixed size, written to in place."""
    steps = []
    for n in range(8, 40):
        steps.append(new(40, 1))
        steps[-1][:, :, n:] = 0
    return steps


def reordered() -> list[Tensor]:
    """Beams: texts change places, and one may be two."""
    return [new(40, 1)[[n % 2, 0], :, :n] for n in range(8, 40)]


def repeated() -> list[Tensor]:
    """Cross-attention: the same keys at each step."""
    return [new(30, 1)] * 32


def other() -> list[Tensor]:
    """Nothing in common."""
    return [new(8, n) for n in range(32)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("cache", [growing, moving, fixed, reordered, repeated, other])
def test_a_cache_is_kept_once_and_read_as_it_was(cache: Callable[[], list[Tensor]], dtype: torch.dtype) -> None:
    pool, kept = Pool(), []
    steps = [step.to(dtype) for step in cache()]
    for step in steps:
        kept.append(pool.keep(pool.seek(step), (BATCH,)))
    for step, rows in zip(steps, kept, strict=True):
        assert rows.shape == step.shape and torch.equal(rows(), step)
        assert all(torch.equal(rows[text], step[text]) for text in range(BATCH))
    distinct = torch.cat([step.permute(0, 2, 1, 3).reshape(-1, HEADS * D) for step in steps]).unique(dim=0)
    first = steps[0].numel() // (HEADS * D)
    # Rows of one call are not compared with each other: one that is twice new in it, as of two beams alike, is kept twice.
    twice = len(steps) if cache is reordered else 0
    assert len(distinct) <= pool.n <= len(distinct) + first + twice
    assert pool.buffer is not None and len(pool.buffer) <= max(first, pool.n * 3 / 2)
    where = [rows.where.nbytes for rows in kept if isinstance(rows.where, Tensor)]
    assert sum(rows.nbytes for rows in kept) == pool.rows.nbytes + sum(where)


def test_keys_that_follow_each_other_are_a_view_of_one_memory() -> None:
    pool = Pool()
    kept = [pool.keep(pool.seek(step), (BATCH,)) for step in growing()]
    assert len({rows().untyped_storage().data_ptr() for rows in kept}) == 1


def test_numbers_are_compared_by_their_bits() -> None:
    pool, step = Pool(), new(5, 1)
    step[0, 0, 1, 2] = float("nan")
    step[0, 0, 2, 2] = 0.0
    pool.keep(pool.seek(step), (BATCH,))
    assert pool.seek(step.clone()).is_known
    signed = step.clone()
    signed[0, 0, 2, 2] = -0.0
    assert len(pool.seek(signed).fresh) == 1


def test_rows_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.run.shared_rows._hashes", lambda rows: torch.zeros(len(rows), dtype=torch.int64))
    pool, steps = Pool(), [new(5, 1), new(5, 2), new(5, 1)]
    kept = [pool.keep(pool.seek(step), (BATCH,)) for step in steps]
    assert all(torch.equal(rows(), step) for rows, step in zip(kept, steps, strict=True))


@pytest.mark.parametrize(
    ("own", "leading"), [((), ()), ((1,), (3,)), ((2, 1), (2, 3)), ((1, 3), (2, 3)), ((3,), (2, 3)), ((), (2, 3))]
)
def test_leading_axes_broadcast(own: tuple[int, ...], leading: tuple[int, ...]) -> None:
    x = torch.randn(*own, HEADS, 5, D)
    pool = Pool()
    rows = pool.keep(pool.seek(x), leading)
    whole = x.expand(*leading, HEADS, 5, D).reshape(-1, HEADS, 5, D)
    assert rows.shape == whole.shape and torch.equal(rows(), whole)
    assert all(torch.equal(rows[text], whole[text]) for text in range(len(whole)))


def test_random_numbers_are_left_alone() -> None:
    before = torch.get_rng_state()
    pool = Pool()
    for seed in (1, 2):
        pool.keep(pool.seek(new(5, seed)), (BATCH,))
    assert torch.equal(torch.get_rng_state(), before)
    assert isinstance(pool.last, slice) and isinstance(pool.keep(pool.seek(new(5, 2)), (BATCH,)), Rows)
