"""A set of pairs in the service: equal to single runs and to core's own shares; refusals that name a line; stopped between pairs."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import core
from core.errors import TextError
from core.run.request import Request
from core.service import LocalService, Pair, PairRows, SyncCalls
from core.service.engine import Engine

TEXT = "Dorothy ran home over the prairie to Uncle Henry and"
PAIRS = (
    Pair(f"{TEXT} Aunt", f"{TEXT} Uncle", line=1),
    Pair(f"{TEXT} Uncle", f"{TEXT} Aunt", "Henry", "Em", line=3),
    Pair("Once upon a", "Once before a", line=4),
)


@pytest.fixture(scope="module")
def service() -> LocalService:
    return LocalService(Engine())


async def rows(service: LocalService, pairs: tuple[Pair, ...], model: str = "storyteller") -> list[PairRows]:
    key = await service.submit(Request(model, ("Once upon a time",)))
    return [row async for row in service.pair_rows(key, pairs)]


def test_a_set_is_what_single_runs_give(service: LocalService) -> None:
    found = SyncCalls(service).result(rows(service, PAIRS))
    assert [(row.first, row.of, row.n) for row in found] == [(0, 3, 1), (1, 3, 1), (2, 3, 1)]
    loaded = core.load("storyteller")
    *_, shares = core.patching.patch_pairs(loaded, PAIRS)
    pairs = [row.pairs[0] for row in found]
    assert [pair.words for pair in pairs] == list(shares.words) and pairs[1].words == ("Henry", "Em")
    np.testing.assert_allclose([pair.leads for pair in pairs], shares.leads, atol=1e-3)
    np.testing.assert_allclose([pair.heads.ravel() for pair in pairs], shares.changes, atol=1e-3)
    run, other = core.trace(loaded, PAIRS[0].text), core.trace(loaded, PAIRS[0].other)
    lead = core.patching.logit_diff_between(run, other)
    (one,) = core.patch_components(run, other, [core.patching.Component("mlp", 1, 0)], [lead.answer, lead.alternative])
    change = float(one.log_p[0, 0] - one.log_p[0, 1] - one.before[0] + one.before[1])
    assert pairs[0].mlps[1] == pytest.approx(change, abs=1e-3) and abs(change) > 0.01
    again = SyncCalls(service).result(rows(service, PAIRS))
    assert [row.n for row in again] == [3], "all of it at once where it is known"


@pytest.mark.parametrize(
    "pairs, model, says",
    [
        ((PAIRS[0], Pair("I saw Aunt", "I saw Aunt Em", line=7)), "storyteller", "Line 7: ‘Em’ is 1 token more"),
        ((PAIRS[0], Pair("I saw", "I had", "Aunt Em", line=5)), "storyteller", "Line 5: The answer ‘Aunt Em’ is"),
        ((), "storyteller", "no pair of sentences"),
        ((PAIRS[0],) * 65, "storyteller", "65 pairs, and a set has 64 at most"),
        ((PAIRS[0],), "minilm", "language models that write"),
    ],
)
def test_a_set_that_cannot_run_says_which_line(
    service: LocalService, pairs: tuple[Pair, ...], model: str, says: str
) -> None:
    with pytest.raises(TextError, match=says):
        SyncCalls(service).result(rows(service, pairs, model))


def test_a_set_that_is_left_ends(service: LocalService) -> None:
    many = tuple(Pair(f"{TEXT} Aunt", f"{TEXT} {word}", line=1) for word in ("Dorothy", "Henry", "Oz", "Toto") * 10)

    async def leave() -> int:
        key = await service.submit(Request("storyteller", ("Once upon a time",)))
        going = service.pair_rows(key, many)
        await anext(going)
        await going.aclose()
        for _ in range(100):
            if not service._sweep_slots.taken:
                return len(service._running_sweeps)
            await asyncio.sleep(0.02)
        raise AssertionError("it has not ended")

    assert SyncCalls(service).result(leave()) == 0
