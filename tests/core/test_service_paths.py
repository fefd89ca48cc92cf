"""Three tests of a part, paths between heads and what heads read, as a service gives them: core's numbers, turns, sharing, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import core
from core.checkpoints import Loaded
from core.errors import HeadlightError
from core.patching import path_patching as module
from core.read.attribution import head_pushes
from core.run.request import Request
from core.service import Component, PatchRequest, PathEdges, PathRequest
from tests.core.conftest import make_loaded
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2
from tests.core.test_service_parts import IDS, OTHER, Served

Tiny = Callable[..., Loaded]
HEADS = ((0, 0), (0, 2), (1, 1), (2, 3))
MARY = "When Mary and John went to the store, {} gave a drink to"


@pytest.fixture
def served(tiny: Tiny) -> Served:
    return Served(tiny(n_decoder_layers=3), a=IDS, b=OTHER, longer=[*OTHER, 1])


def edges(served: Served, asked: PatchRequest, paths: PathRequest) -> list[PathEdges]:
    async def collect() -> list[PathEdges]:
        return [found async for found in served.service.path_edges(served.keys["a"], asked, paths)]

    return served.calls.result(collect())


@pytest.mark.parametrize("into", [None, (2, 3)])
def test_paths_come_a_batch_at_a_time(served: Served, into: tuple[int, int] | None, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 2)
    a, b = served.runs["a"], served.runs["b"]
    found = edges(served, PatchRequest(served.keys["b"]), PathRequest(HEADS, into))
    assert len(found) > 2 and [one.first for one in found] == [sum(x.n for x in found[:i]) for i in range(len(found))]
    alone = list(core.patch_paths(a, b, HEADS, receivers=None if into is None else [into]))
    assert [edge for one in found for edge in one.edges] == alone and found[0].of == len(alone)
    assert max(abs(edge.change) for edge in alone) > 1e-3
    (again,) = edges(served, PatchRequest(served.keys["b"]), PathRequest(HEADS, into))
    assert list(again.edges) == alone and served.service._sweep_slots.taken == 0


def test_whoever_leaves_ends_the_paths(served: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 1)
    ran: list[int] = []
    batches = module.Paths.batches

    def counted(self: module.Paths) -> Any:
        for batch in batches(self):
            ran.append(len(batch))
            yield batch

    monkeypatch.setattr(module.Paths, "batches", counted)

    async def first() -> PathEdges:
        coming = served.service.path_edges(served.keys["a"], PatchRequest(served.keys["b"]), PathRequest(HEADS))
        found = await anext(coming)
        await coming.aclose()
        await asyncio.sleep(0.2)
        return found

    found = served.calls.result(first())
    assert found.n < found.of and sum(ran) < found.of
    assert served.service._running_sweeps == {} and served.service._sweep_slots.taken == 0


def test_what_cannot_be_asked_is_refused(served: Served, monkeypatch: Any) -> None:
    other = served.keys["b"]
    for asked, paths, match in (
        (PatchRequest(None), PathRequest(HEADS), "another sentence"),
        (PatchRequest(served.keys["longer"]), PathRequest(HEADS), "6 and 7 tokens"),
        (PatchRequest(other), PathRequest(((0, 99),)), "no head 99"),
        (PatchRequest(other), PathRequest(()), "at least one"),
    ):
        with pytest.raises(HeadlightError, match=match):
            edges(served, asked, paths)
    with pytest.raises(HeadlightError, match="no silence"):
        served.calls.result(served.service.part_tests(served.keys["a"], PatchRequest(other), Component("resid", 0, 3)))
    monkeypatch.setattr("core.device.SMALL", 0)
    monkeypatch.setattr("core.device.free_bytes", lambda _: 1)
    with pytest.raises(core.errors.TooLarge, match=r"needs .*iB.*free|iB .* free"):
        edges(served, PatchRequest(other, position=4), PathRequest(HEADS))


@pytest.mark.parametrize("part", [Component("head", 1, 2), Component("mlp", 1)])
@pytest.mark.parametrize("beside", ["b", None])
def test_three_tests_of_a_part(served: Served, part: Component, beside: str | None) -> None:
    a = served.runs["a"]
    b = None if beside is None else served.runs[beside]
    asked = PatchRequest(None if beside is None else served.keys[beside])
    found = served.calls.result(served.service.part_tests(served.keys["a"], asked, part))
    lead = core.patching.logit_diff_between(a, b)
    of_part = core.patching.three_tests(a, b, part, lead)
    changes = dict(zip(found.names, found.changes, strict=True))
    expected = {"zero": of_part.zero_ablation, "mean": of_part.mean_ablation} | (
        {} if b is None else {"other": of_part.patching}
    )
    assert changes == pytest.approx(expected, abs=1e-5) and found.verdict == of_part.verdict
    assert found.lead == pytest.approx(of_part.before, abs=1e-5)
    if part.kind == "head":
        alone = core.patching.three_tests(a, b, (part.layer, part.at), lead)
        assert (alone.zero_ablation, alone.mean_ablation) == pytest.approx(
            (of_part.zero_ablation, of_part.mean_ablation), abs=1e-5
        )
        assert alone.verdict == of_part.verdict
    (zero,) = core.patch_components(a, None, [part], [lead.answer], "zero")
    assert found.p[found.names.index("zero")] == pytest.approx(float(np.exp(zero.log_p[0, 0])), abs=1e-6)


def test_what_heads_read_and_push(served: Served) -> None:
    a = served.runs["a"]
    asked = PatchRequest(served.keys["b"])
    known = served.calls.result(served.service.part_estimates(served.keys["a"], asked))
    notes = served.calls.result(served.service.head_notes(served.keys["a"], asked))
    assert known.acts.shape == known.heads.shape and (known.acts >= 2).all()  # nothing differs before
    assert notes.pushes is not None
    answer = {c.head: c.value for c in a.logit_attribution(5, known.answer).parts if c.part == "head" and c.layer == 1}
    alternative = {
        c.head: c.value for c in a.logit_attribution(5, known.alternative).parts if c.part == "head" and c.layer == 1
    }
    for head in range(notes.key.shape[1]):
        row = a.attention[1].row(head, int(known.acts[1, head]))
        assert notes.first[1, head] == pytest.approx(float(row[0]), abs=1e-6)
        assert notes.key[1, head] == int(row[1 : known.acts[1, head] + 1].argmax()) + 1
        assert notes.weight[1, head] == pytest.approx(float(row[notes.key[1, head]]), abs=1e-6)
        # both are above the same mean over the vocabulary
        assert notes.pushes[1, head, 0] - notes.pushes[1, head, 1] == pytest.approx(
            answer[head] - alternative[head], abs=1e-4
        )


def test_a_push_is_above_the_mean_of_all_words() -> None:
    loaded = make_loaded(n_decoder_layers=2)
    run = core.trace(loaded, ids=IDS)
    every = head_pushes(run.forward, 0, run.source, 5, range(loaded.config.vocab_size))
    np.testing.assert_allclose(every.mean(-1), 0, atol=1e-5)
    assert np.abs(every).max() > 1e-3


@pytest.mark.thorough
@needs_smollm2
def test_the_paths_and_tests_of_smollm2() -> None:
    loaded = smollm2()
    served = Served(loaded)
    for name, text in (("a", MARY.format("John")), ("b", MARY.format("Mary"))):
        run = core.trace(loaded, text)
        request = Request("given", (name,))
        with served.service.engine._lock:
            served.service.engine._remember(request)
            served.service.engine._store_trace(request.key, run, 0)
        served.keys[name] = request.key
    asked = PatchRequest(served.keys["b"])
    ask = served.calls.result

    def of(part: Component) -> tuple[dict[str, float], str]:
        found = ask(served.service.part_tests(served.keys["a"], asked, part))
        return dict(zip(found.names, found.changes, strict=True)), found.verdict

    changes, verdict = of(Component("head", 23, 3))
    assert changes == pytest.approx({"other": -7.082, "zero": -3.044, "mean": -2.553}, abs=0.01) and verdict == "same"
    changes, verdict = of(Component("head", 1, 5))
    assert (changes["zero"], changes["mean"]) == pytest.approx((-2.182, 0.009), abs=0.01) and verdict == "silence"
    changes, _ = of(Component("mlp", 11))
    assert changes["zero"] == pytest.approx(-7.287, abs=0.01)
    heads = ((23, 3), (29, 1), (29, 0), (24, 4))
    found = [edge for one in edges(served, asked, PathRequest(heads)) for edge in one.edges]
    expected = {((29, 1), "v"): -2.185, ((29, 0), "v"): 1.828, ((24, 4), "q"): 1.768, (None, "out"): -6.190}
    for (receiver, part), change in expected.items():
        (edge,) = [
            e
            for e in found
            if e.sender
            and (e.sender.layer, e.sender.head) == (23, 3)
            and (e.receiver and (e.receiver.layer, e.receiver.head)) == receiver
            and e.input == part
        ]
        assert edge.change == pytest.approx(change, abs=0.01)
    (whole,) = [e for e in found if e.sender is None and e.receiver and e.receiver.head == 3 and e.input == "v"]
    assert whole.change == pytest.approx(-7.274, abs=0.01)
    known = ask(served.service.part_estimates(served.keys["a"], asked))
    notes = ask(served.service.head_notes(served.keys["a"], asked))
    assert known.acts[23, 3] == 13 and notes.key[23, 3] == 9 and notes.weight[23, 3] == pytest.approx(0.74, abs=0.01)
    assert notes.key[29, 1] == 13 and notes.pushes is not None
    some = notes.pushes[[23, 29, 29, 24, 20], [3, 1, 0, 4, 0]]  # of Mary and John
    expected_pushes = [[-0.08, -2.94], [1.82, 0.09], [-1.75, -0.75], [-1.40, -0.33], [-0.05, 0.21]]
    np.testing.assert_allclose(some, expected_pushes, atol=0.01)
