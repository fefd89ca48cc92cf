"""attend(): the kernel's answer is the textbook's, whatever part of the keys a block of rows is given, and however heads share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from core.model import rules
from core.model.rules import DistanceBias, MaskRule, ScoreRule, attend, softmax


def inputs(
    n_query: int, n_key: int, heads: int = 4, kv_heads: int = 2, batch: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n_query + n_key)
    shapes = ((batch, heads, n_query, 8), (batch, kv_heads, n_key, 8), (batch, kv_heads, n_key, 8))
    q, k, v = (torch.randn(shape, generator=generator) for shape in shapes)
    return q, k, v


def textbook(q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> Tensor:
    queries, keys = torch.arange(q.shape[2]), torch.arange(k.shape[2])
    pattern = softmax(rule.masked(rule.scores(q, k, queries, keys), queries, keys))
    return pattern @ v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def cases() -> Iterator[tuple[MaskRule, DistanceBias | None]]:
    for n, first in ((400, 0), (30, 0), (1, 40), (100, 300)):
        n_key = first + n
        keep = torch.ones(2, n_key, dtype=torch.bool)
        keep[1, : n_key // 3] = False
        places = torch.arange(n_key)[None]
        bias = DistanceBias("alibi", places[:, first:], places, lambda d: -d.abs()[:, None].expand(-1, 4, -1, -1) * 0.1)
        for causal in (True, False):
            for window in (None, 1, 7, 260):
                for padding in (None, keep):
                    for added in (None, bias):
                        yield MaskRule(4, n, n_key, causal, window, padding, first_query=first), added


def folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has attend() take the way of a device whose kernels do not share keys among heads."""
    monkeypatch.setattr(rules, "shares_keys", lambda q, k: q.shape[1] == k.shape[1])


def in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has attend() take the way of a card for float32, where a kernel knows the mask and does not share keys."""
    folded(monkeypatch)
    monkeypatch.setattr(rules, "supports_is_causal", lambda q, k, v: True)


@pytest.mark.parametrize("way", ["shared", "folded", "in turns"])
def test_the_kernel_gives_what_the_textbook_gives(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "folded":
        folded(monkeypatch)
    if way == "in turns":
        in_turns(monkeypatch)
    for mask, bias in cases():
        q, k, v = inputs(mask.n_query, mask.n_key)
        rule = ScoreRule(mask, 0.4, bias)
        assert (attend(q, k, v, rule) - textbook(q, k, v, rule)).abs().max() <= 5e-6, (mask.window, mask.causal)


def test_what_a_block_is_given_is_all_that_it_may_see() -> None:
    for mask, _ in cases():
        keys = torch.arange(mask.n_key)
        for rows in (slice(0, 1), slice(mask.n_query // 2, mask.n_query), slice(0, mask.n_query)):
            seen = mask.reach(rows)
            block = mask.block(torch.arange(rows.start, rows.stop), keys)
            assert not block[..., : seen.start].any() and not block[..., seen.stop :].any()


class Calls:
    """What the fused kernel is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[int] = []
        self.shared: list[bool] = []
        self.cells = 0
        kernel = F.scaled_dot_product_attention

        def watched(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
            self.keys.append(k.shape[2])
            self.cells += q.shape[2] * k.shape[2]
            self.shared.append(k.untyped_storage().data_ptr() in self.storages)
            return kernel(q, k, v, **options)

        self.storages: set[int] = set()
        monkeypatch.setattr(F, "scaled_dot_product_attention", watched)


@pytest.mark.parametrize("causal", [True, False])
def test_a_window_costs_what_it_lets_through(causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells worked out grow with n · w: twice the text, twice the cells, and no block sees more than its window."""
    cells = []
    for n in (4096, 8192):
        calls = Calls(monkeypatch)
        q, k, v = inputs(n, n, 1, 1, 1)
        attend(q, k, v, ScoreRule(MaskRule(1, n, n, causal, window=64), 0.4))
        assert max(calls.keys) <= 256 + 2 * 63
        cells.append(calls.cells)
    assert cells[0] < 4096 * (256 + 2 * 63)
    assert cells[1] / cells[0] == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize("way", [folded, in_turns])
def test_keys_that_heads_share_are_not_copied(
    way: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    way(monkeypatch)
    for window in (None, 7):
        calls = Calls(monkeypatch)
        q, k, v = inputs(300, 300)
        calls.storages = {k.untyped_storage().data_ptr()}
        attend(q, k, v, ScoreRule(MaskRule(4, 300, 300, True, window), 0.4))
        assert calls.shared and all(calls.shared)
