"""Masks edited by hand: compiled regions say of every cell what painting them one by one says, at a cost that does not grow."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import core
from core.checkpoints import Loaded
from core.model import custom_mask
from core.model.custom_mask import ALLOWED, HIDDEN, Region, apply_regions
from core.model.rules import REASONS, MaskRule

N, HEADS = 23, 4


class Count(TorchDispatchMode):
    """How many operations ran on tensors, and how many elements they made."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.operations += 1
        self.elements += out.numel() if isinstance(out, torch.Tensor) else 0
        return out


def random_region(chance: random.Random, n: int = N) -> Region:
    def spans() -> tuple[range, ...]:
        edges = sorted(chance.sample(range(n + 1), 2 * chance.randint(1, 3)))
        return tuple(range(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True))

    allowed, head = chance.random() < 0.5, chance.choice([None, None, *range(HEADS)])
    match chance.randrange(4):
        case 0:
            return Region(allowed, head, spans(), spans())
        case 1:
            return chance.choice([Region(allowed, head, queries=spans()), Region(allowed, head, keys=spans())])
        case 2:
            return Region(allowed, head, cells=tuple((chance.randrange(n), span) for span in spans()))
    ends = sorted(chance.randint(-n, n) for _ in range(2))
    return Region(allowed, head, distances=chance.choice([(ends[0], ends[1]), (None, ends[0]), (ends[1], None)]))


def by_hand(rule: MaskRule, regions: Sequence[Region]) -> torch.Tensor:
    """[head, query, key]: the mask of a rule with each cell of each region painted in its turn."""
    mask = rule.block(torch.arange(N), torch.arange(N)).expand(-1, HEADS, -1, -1)[0].clone()
    for region in regions:
        for query in range(N):
            for key in range(N):
                if region.distances is not None:
                    first, last = region.distances
                    inside = (first is None or key - query >= first) and (last is None or key - query <= last)
                elif region.cells:
                    inside = any(query == of and key in keys for of, keys in region.cells)
                else:
                    inside = (region.queries is None or any(query in span for span in region.queries)) and (
                        region.keys is None or any(key in span for span in region.keys)
                    )
                if inside:
                    mask[slice(None) if region.head is None else region.head, query, key] = region.allowed
    return mask


@pytest.mark.parametrize("seed", range(40))
def test_compiled_regions_are_those_painted_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    keep = torch.tensor([[True] * (N - 4) + [False] * 4])
    rule = MaskRule(HEADS, N, N, causal=chance.random() < 0.5, keep=keep, window=chance.choice([None, 5]))
    regions = [random_region(chance) for _ in range(chance.randint(1, 12))]
    edited = MaskRule(HEADS, N, N, rule.causal, rule.window, keep, apply_regions(regions, HEADS))
    expected = by_hand(rule, regions)
    every = torch.arange(N)
    assert torch.equal(edited.block(every, every).expand(-1, HEADS, -1, -1)[0], expected)
    queries, keys = torch.tensor([3, 3, 20, 0]), torch.tensor([22, 1, 1])  # in any order, and twice
    heads = torch.tensor([2, 0])
    tile = edited.block(queries, keys, heads).expand(-1, 2, -1, -1)[0]
    assert torch.equal(tile, expected[heads][:, queries][:, :, keys])
    for head in range(HEADS):
        why = edited.reasons(every, every, head)
        assert torch.equal(why == 0, expected[head])
        plain = rule.reasons(every, every, head)
        untouched = why != REASONS.index("edited")
        assert ((why == plain) | (why == 0))[untouched].all()
    assert not edited.is_free and not edited.is_causal_only


def scattered(n_cells: int, seed: int = 0) -> list[Region]:
    chance = random.Random(seed)
    cells = [(chance.randrange(600), chance.randrange(600)) for _ in range(n_cells)]
    return [Region(False, None, cells=((query, range(key, key + 1)),)) for query, key in cells]


def test_a_thousand_edited_cells_cost_a_block_what_ten_do() -> None:
    counts = []
    for n_cells in (10, 1000):
        rule = MaskRule(HEADS, 600, 600, causal=True, edits=apply_regions(scattered(n_cells), HEADS))
        assert len(rule.edits) == 1
        with Count() as count:
            mask = rule.block(torch.arange(200), torch.arange(600))
        assert mask.shape == (1, 1, 200, 600)
        counts.append((count.operations, count.elements))
        columns = rule.edits[0].codes(torch.arange(1), torch.arange(600)).shape[-1]
    (few, small), (many, large) = counts
    assert few == many
    # What is gathered of the table before its columns are is all that may be more.
    assert large - small <= 200 * 2 * columns


def test_a_thousand_edits_cost_a_run_what_ten_do(tiny: Callable[..., Loaded]) -> None:
    loaded, chance = tiny(n_decoder_layers=2), random.Random(0)
    counts = []
    for n_edits in (10, 1000):
        edits = [core.edits.EditMask(None, None, chance.randrange(30), chance.randrange(30)) for _ in range(n_edits)]
        with Count() as count:
            run = core.trace(loaded, ids=list(range(30)), interventions=edits)
        counts.append(count.operations)
        first, second = (record.rule.mask.edits for record in run.attention)
        assert len(first) == 1 and first[0] is second[0], "compiled once for all layers that are painted alike"
    assert counts[0] == counts[1]


def test_edits_that_would_take_too_much_are_refused_before_anything_runs(
    tiny: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = tiny()
    monkeypatch.setattr(loaded.model, "last_residual", lambda *_: pytest.fail("it ran"))
    diagonal = [core.edits.EditMask(cells=[(2 * i, 2 * i) for i in range(4000)])]
    with pytest.raises(core.errors.TooLarge, match="table of 64,016,001 bytes, and 16,777,216 is the most"):
        core.trace(loaded, ids=[1, 2, 3], interventions=diagonal)
    with pytest.raises(core.errors.TooLarge, match="20,001 cells and rectangles, and 20,000 is the most"):
        core.trace(loaded, ids=[1], interventions=[core.edits.EditMask(cells=[(i, 2) for i in range(20_001)])])
    with pytest.raises(core.errors.TooLarge, match="17 bands of distances, and 16 is the most"):
        core.trace(loaded, ids=[1], interventions=[core.edits.EditMask(distances=(i, None)) for i in range(17)])


def test_regions_of_one_table_are_counted_together(tiny: Callable[..., Loaded]) -> None:
    # Each of a run's masks is within the bound, and all of them are not.
    edits = [
        core.edits.EditMask("decoder", layer, cells=[(2 * i + layer, 2 * i) for i in range(1500)]) for layer in range(2)
    ]
    with pytest.raises(core.errors.TooLarge, match="bytes"):
        core.trace(tiny(), ids=[1, 2, 3], interventions=edits)


def test_large_regions_take_next_to_nothing() -> None:
    whole = apply_regions(
        [Region(False, keys=(range(1000, 90_000),)), Region(True, queries=(range(50_000, 50_001),))], 32
    )
    assert sum(layer.nbytes for layer in whole) <= 16
    codes = whole[0].codes(torch.tensor([0, 50_000]), torch.tensor([999, 1000, 89_999, 90_000]))
    assert codes[0].tolist() == [[0, HIDDEN, HIDDEN, 0], [ALLOWED] * 4]
    assert custom_mask.TABLE_BYTES == 1 << 24
