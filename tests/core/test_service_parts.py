"""Parts of a run in the service: estimates, then a run for each in turns; one alone at once; refusals, sharing and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import HeadlightError
from core.patching.counterfactual import Component
from core.run.request import Request
from core.service import LocalService, PartRows, SyncCalls
from core.service.engine import Engine
from core.service.sweep_rows import MAX_WORDS, PatchRequest, begin_parts

Tiny = Callable[..., Loaded]
IDS, OTHER = [3, 1, 4, 1, 5, 2], [3, 1, 6, 1, 5, 2]


class Served:
    """A service that holds some runs of one small decoder."""

    def __init__(self, loaded: Loaded, **texts: list[int]) -> None:
        engine = Engine(load_model=lambda *_, **__: loaded)
        self.service = LocalService(engine)
        self.calls = SyncCalls(self.service)
        self.runs, self.keys = {}, {}
        for name, ids in texts.items():
            self.runs[name] = core.trace(loaded, ids=ids)
            request = Request("given", (name,))
            with engine._lock:
                engine._remember(request)
                engine._store_trace(request.key, self.runs[name], 0)
            self.keys[name] = request.key

    def rows(self, asked: PatchRequest, only: Component | None = None) -> list[PartRows]:
        async def collect() -> list[PartRows]:
            return [rows async for rows in self.service.part_rows(self.keys["a"], asked, only)]

        return self.calls.result(collect())


@pytest.fixture
def served(tiny: Tiny) -> Served:
    return Served(tiny(n_decoder_layers=3), a=IDS, b=OTHER, longer=[*OTHER, 1])


@pytest.mark.parametrize("to", ["other", "zero", "mean"])
def test_every_part_runs_once_and_gives_what_core_gives(served: Served, to: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("core.service.sweeps.FIRST_PARTS", 3)
    monkeypatch.setattr("core.service.sweeps.MIN_ROWS", 2)
    monkeypatch.setattr("core.service.sweeps.PARTS_SECONDS_ALONE", 1e-9)
    a, b = served.runs["a"], served.runs["b"]
    asked = PatchRequest(served.keys["b"], to)
    known = served.calls.result(served.service.part_estimates(served.keys["a"], asked))
    lead = core.patching.logit_diff_between(a, b)
    assert (known.answer, known.alternative) == (lead.answer, lead.alternative) == known.watched[:2]
    exact = core.attribution_patching(a, b, lead.answer, lead.alternative, to)
    np.testing.assert_allclose(known.heads, exact.heads, atol=1e-6)
    assert known.tokens == ((2, 3, 4, 5) if to == "other" else ())
    found = served.rows(asked)
    assert len(found) > 3 and [rows.first for rows in found] == [sum(r.n for r in found[:i]) for i in range(len(found))]
    parts = [part for rows in found for part in rows.parts]
    assert parts == [part for group in core.patching.run_order(exact, known.tokens) for part in group]
    assert len(set(parts)) == len(parts) == known.of == found[0].of
    log_p = np.concatenate([rows.log_p for rows in found])
    (whole,) = core.patch_components(a, b, parts, known.watched, to)
    np.testing.assert_allclose(log_p, whole.log_p, atol=2e-5)
    np.testing.assert_allclose(known.before, whole.before, atol=1e-5)
    logits = b.activation("head.hook_logits", [5]).float()
    assert known.there is not None
    np.testing.assert_allclose(known.there, torch.log_softmax(logits, -1)[0, list(known.watched)], atol=1e-5)
    # all of it at once where it is known
    (again,) = served.rows(asked)
    assert again.parts == tuple(parts) and served.service._sweep_slots.taken == 0


def test_one_part_waits_for_none_of_the_others(served: Served, monkeypatch: Any) -> None:
    part, asked = Component("mlp", 1), PatchRequest(served.keys["b"])
    begun: list[Any] = []

    def begin(*args: Any) -> Any:
        begun.append(args[-1])
        return begin_parts(*args)

    monkeypatch.setattr("core.service.sweeps.begin_parts", begin)
    (rows,) = served.rows(asked, part)
    assert rows.parts == (part,) and rows.of == 1 and begun == [((part,),)]
    whole = served.rows(asked)
    at = [part for rows in whole for part in rows.parts].index(part)
    np.testing.assert_allclose(rows.log_p[0], np.concatenate([rows.log_p for rows in whole])[at], atol=2e-5)


def test_what_cannot_be_asked_is_refused(served: Served, monkeypatch: Any) -> None:
    other = served.keys["b"]
    with pytest.raises(core.errors.TextError, match="6 and 7 tokens"):
        served.rows(PatchRequest(served.keys["longer"]))
    for asked, only in (
        (PatchRequest(None), None),
        (PatchRequest(other, position=9), None),
        (PatchRequest(other, answer=10**6), None),
        (PatchRequest(other), Component("head", 0, 99)),
        (PatchRequest(other, "zero"), Component("resid", 0, 3)),
    ):
        with pytest.raises(HeadlightError):
            served.rows(asked, only)
    monkeypatch.setattr(served.service._sweep_slots, "most", 0)
    with pytest.raises(core.errors.ServerBusy, match="sweeps are waiting"):
        served.rows(PatchRequest(other, "mean"))
    assert served.service._running_sweeps == {}


def test_whoever_leaves_ends_the_runs(served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr("core.service.sweeps.FIRST_PARTS", 1)
    monkeypatch.setattr("core.service.sweeps.MIN_ROWS", 1)
    monkeypatch.setattr("core.service.sweeps.PARTS_SECONDS_ALONE", 1e-9)
    asked = PatchRequest(served.keys["b"])

    async def first() -> PartRows:
        rows = served.service.part_rows(served.keys["a"], asked)
        found = await anext(rows)
        await rows.aclose()
        return found

    assert served.calls.result(first()).n == 1
    assert served.service._running_sweeps == {}
    assert sum(rows.n for rows in served.rows(asked)) == served.rows(asked)[0].of


def test_of_a_long_text_the_words_that_may_move_the_lead_most_have_rows(tiny: Tiny) -> None:
    loaded = tiny(n_decoder_layers=2)
    ids = [i % 7 for i in range(MAX_WORDS + 8)]
    other = [ids[0], ids[1] + 1, *ids[2:]]
    served = Served(loaded, a=ids, b=other)
    known = served.calls.result(served.service.part_estimates(served.keys["a"], PatchRequest(served.keys["b"])))
    found = core.attribution_patching(served.runs["a"], served.runs["b"], known.answer, known.alternative)
    assert found.resid is not None and known.resid is not None and len(known.tokens) == MAX_WORDS
    assert known.tokens[0] == 1 and known.tokens[-1] == len(ids) - 1
    strength = np.abs(found.resid).max(0)
    left = [i for i in range(2, len(ids) - 1) if i not in known.tokens]
    assert strength[left].max() <= strength[list(known.tokens[1:-1])].min()
    np.testing.assert_array_equal(known.resid, found.resid[:, list(known.tokens)])
