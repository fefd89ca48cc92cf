"""The Service of an engine: runs are followed and shown while they go on, and nobody waits for somebody else."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import core
from core.errors import RunCancelled, ServerBusy, TextError, UnknownRun
from core.run.chunks import Chunks
from core.run.request import Progress, Request
from core.service import AnswerCache, MapTransform, SyncCalls, TensorPlace, into_loop
from core.service.maps import HeadDone, LayerDone, RunDone
from core.trace import Trace
from core.write.generate import Sampling
from tests.core.serving import REQUEST, TEXT, ask, assert_plain, close, run_of, service
from tests.core.test_engine import WORDS, Gate, Loader

# waiting for a run


def test_follow_tells_every_change_and_ends_with_the_run() -> None:
    gate = Gate()
    shared = service(gate)

    async def follow() -> list[Progress]:
        key = await shared.submit(REQUEST)
        found = []
        async for now in shared.follow(key):
            found.append(now)
            if now.stage == "running":
                gate.open.set()
        return found

    found = ask(follow())
    stages = [now.stage for now in found]
    assert stages[-1] == "done" and "running" in stages
    assert [now.layers_done for now in found if now.stage == "running"] == sorted(
        now.layers_done for now in found if now.stage == "running"
    )


def test_follow_raises_what_the_run_was_refused_for() -> None:
    shared = service()

    async def follow(request: Request) -> None:
        async for _ in shared.follow(await shared.submit(request)):
            pass

    with pytest.raises(TextError, match="empty"):
        ask(follow(Request("one", ("",))))
    with pytest.raises(UnknownRun):
        ask(anext(shared.follow("0" * 64)))  # type: ignore[arg-type]


def test_a_run_ends_when_the_last_who_follows_closes() -> None:
    gate = Gate()
    shared = service(gate)

    async def follow() -> None:
        key = await shared.submit(REQUEST)
        first, second = shared.follow(key), shared.follow(key)
        await anext(first)
        await anext(second)
        while not gate.begun.is_set():
            await asyncio.sleep(0.001)
        await first.aclose()
        assert shared.engine.status()["running_or_waiting"] == 1
        await second.aclose()
        gate.open.set()

    ask(follow())
    shared.engine._queue.submit(lambda: None).result()  # behind the run
    assert gate.layers == 1 and shared.engine.status()["traces"] == 0


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("steps", range(6))  # of the event loop, between a change and the end of the visit
def test_a_run_ends_when_who_follows_leaves_in_the_moment_of_a_change(steps: int) -> None:
    gate = Gate()
    shared = service(gate)

    async def follow() -> None:
        key = await shared.submit(REQUEST)
        changes = shared.follow(key)
        while not gate.begun.is_set():
            await asyncio.sleep(0.001)
        job = shared.engine._jobs[key]
        following = asyncio.ensure_future(anext(changes))
        while (await asyncio.wait([following], timeout=1))[
            0
        ]:  # until there is nothing new: it stands at its first layer
            following = asyncio.ensure_future(anext(changes))
        job.notify()  # of which nothing new is to be told
        for _ in range(steps):
            await asyncio.sleep(0)
        following.cancel()
        await asyncio.wait([following], timeout=5)
        assert following.cancelled() and job.cancelled.is_set()

    try:
        ask(follow())
    finally:
        gate.open.set()


def test_a_thread_follows_and_cancels() -> None:
    gate = Gate()
    calls = SyncCalls(service(gate))
    waiting = calls.submit(REQUEST)
    assert gate.begun.wait(10) and not waiting.done() and not waiting.wait(0.01)
    waiting.cancel()
    with pytest.raises(RunCancelled):
        waiting.result()
    gate.open.set()
    again = calls.submit(REQUEST)
    assert again.wait(20) and again.progress.stage == "done"
    again.result()
    assert calls.result(calls.service.facts(again.key)).source.text == TEXT
    with pytest.raises(TextError):
        calls.submit(Request("one", ("",))).result()


def test_a_run_that_is_not_small_is_shown_layer_by_layer() -> None:
    gate = Gate()
    loaded = core.load("minilm")
    for block in loaded.model.encoder.blocks:  # type: ignore[union-attr]
        block.register_forward_pre_hook(gate.count)
    shared = service(lambda *_, **__: loaded)
    request = Request("minilm", ("Some words to look at. " * 20,))

    async def see() -> tuple[Any, list[Any]]:
        key = await shared.submit(request)
        facts, parts = None, []
        async for now in shared.follow(key):
            if now.is_shown and facts is None:
                facts = await shared.facts_so_far(key)
                coming = shared.parts(key, 1, 3, 7)
                first = asyncio.ensure_future(anext(coming))
                await asyncio.sleep(0)  # it has been asked for: of a run that has ended there are no parts
                gate.open.set()
                parts = [await first, *[part async for part in coming]]
        return facts, parts

    facts, parts = ask(see())
    run = run_of(shared, request)
    assert facts.source == run.source and facts.steps == () and facts.records == ask(shared.facts(request.key)).records
    assert [type(part) for part in parts] == [LayerDone, LayerDone, HeadDone, *[LayerDone] * 4, RunDone]
    for part in parts:
        assert_plain(part)
        if isinstance(part, LayerDone):
            assert close(part.thumbnails.values, run.attention[part.record].thumbnail(32).values)
    opened = parts[2]
    assert close(opened.tile.values, run.attention[1].pattern(3)[0]) and close(
        opened.row.values, run.attention[1].row(3, 7)
    )
    beside = ask(shared.thumbnails(request.key))
    for small, record in zip(beside, run.attention, strict=True):
        assert close(small.values, record.thumbnail(32).values)


def test_a_run_that_is_read_in_parts_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its watcher is told of a run without records as often as a part passes an attention."""
    shared = service()
    begun: list[core.Trace] = []
    begin = shared._in_progress._start
    monkeypatch.setattr(shared._in_progress, "_start", lambda *run: (begun.append(run[-1]), begin(*run))[1])
    monkeypatch.setattr(
        sys.modules["core.run.trace"], "plan_chunks", lambda forward, hold, one_go, *_: Chunks(4, False, one_go)
    )
    run = run_of(shared)
    assert run.chunks > 1 and len(begun) == 1


def test_nobody_holds_the_queries_and_keys_of_a_run_that_has_ended() -> None:
    loaded = core.load("minilm")
    shared = service(lambda *_, **__: loaded, max_traces=1)
    request = Request("minilm", ("word " * 130,))
    seen: list[weakref.ref[Trace]] = []
    watch = shared.engine.on_progress

    def watched(*run: Any) -> Callable[[Trace], object]:
        tell = watch(*run)

        def told(so_far: Trace) -> None:
            seen.append(weakref.ref(so_far))
            tell(so_far)

        return told

    shared.engine.on_progress = watched
    seen.append(weakref.ref(run_of(shared, request)))
    ask(shared.thumbnails(request.key))
    run_of(shared, Request("minilm", ("Another.",)))
    turns = [turns._pool for turns in (shared._quick, shared._slow, shared._in_progress._queue, shared.engine._queue)]
    for pool in (*turns, shared.engine._loaders):
        pool.shutdown()  # a thread lets go of what it did last a moment after its answer is there
    gc.collect()
    assert len(seen) > 7 and not any(trace() for trace in seen[:8])


def test_what_reaches_a_loop_is_called_there_and_nowhere_once_it_is_closed() -> None:
    called: list[tuple[str, int]] = []

    async def open_for_a_moment() -> Callable[[str], None]:
        there = threading.get_ident()
        tell = into_loop(lambda said: called.append((said, threading.get_ident())))
        with ThreadPoolExecutor(1) as other:
            other.submit(tell, "said").result()
        await asyncio.sleep(0)
        assert called == [("said", there)]
        return tell

    asyncio.run(open_for_a_moment())("too late")
    assert len(called) == 1


# nobody waits for somebody else


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs whose values come from another pass."""
    monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)  # core.trace itself is the function


@pytest.mark.usefixtures("again")
def test_a_tile_waits_for_nobody_s_second_pass_and_no_second_pass_runs_outside_a_turn() -> None:
    shared = service()
    run_of(shared)
    busy, free = threading.Event(), threading.Event()

    def pass_of_somebody_else() -> None:
        busy.set()
        assert free.wait(20)

    other = shared.engine._queue.submit(pass_of_somebody_else)
    assert busy.wait(10)
    key, ran = REQUEST.key, []
    run = run_of(shared)
    run.loaded.model.decoder.blocks[0].register_forward_pre_hook(lambda *_: ran.append(1))  # type: ignore[union-attr]

    async def look() -> None:
        slow = [
            asyncio.ensure_future(call)
            for call in (
                shared.proof(key, 0),
                shared.norms(key, "decoder"),
                shared.row(key, MapTransform(0, 0, "value"), 3),
                shared.values(key, TensorPlace("decoder", 0, "attn", "z", 1), 48),
            )
        ]
        await asyncio.sleep(0)
        for _ in range(20):
            tile = await shared.tile(key, MapTransform(1, 2), (0, 16), (0, 16))
            assert close(tile.values, run.attention[1].pattern(2)[0])
        assert not ran and not any(task.done() for task in slow)
        free.set()
        await asyncio.gather(*slow)

    ask(look())
    other.result()
    assert ran


@pytest.mark.usefixtures("again")
def test_what_values_write_is_worked_out_once_for_all_who_ask() -> None:
    shared = service()
    run = run_of(shared)
    passes: list[int] = []
    run.loaded.model.decoder.blocks[0].register_forward_pre_hook(lambda *_: passes.append(1))  # type: ignore[union-attr]
    of = MapTransform(1, 3, "value")

    async def rows() -> list[Any]:
        return await asyncio.gather(*(shared.row(REQUEST.key, of, query) for query in range(10)))

    found = ask(rows())
    assert len(passes) == 1
    norms = run.attention[1].value_norms()[3]
    for query, row in enumerate(found):
        assert close(row.values, run.attention[1].pattern(3, query)[0, 0] * norms)


def test_next_words_that_a_crowd_asks_for_take_one_turn_among_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that sweeps one sentence asks for the same answer, each behind a change of their own."""
    shared = service()
    run_of(shared)
    turns: list[int] = []
    again = shared.engine.schedule
    monkeypatch.setattr(shared.engine, "schedule", lambda *args: (turns.append(1), again(*args))[1])

    async def asked() -> list[Any]:
        return await asyncio.gather(*(shared.predictions(REQUEST.key, [3], 1) for _ in range(50)))

    found = ask(asked())
    assert len(turns) == 1 and len({one.ids for one in found}) == 1
    before = shared._kept.nbytes
    ask(shared.predictions(REQUEST.key, range(16), 20))
    assert shared._kept.nbytes > before + 16 * 20 * 100, "its words are counted"


def test_a_text_that_many_open_and_beams_that_many_ask_for_are_worked_out_once() -> None:
    shared = service()
    run_of(shared)

    async def all_of(many: AsyncGenerator[Any]) -> list[Any]:
        return [one async for one in many]

    async def asked() -> list[list[Any]]:
        openings = (all_of(shared.write(REQUEST.key, [1, 2], 0, Sampling(), [3])) for _ in range(5))
        searches = (all_of(shared.beams(REQUEST.key, 2, 3)) for _ in range(5))
        return await asyncio.gather(*openings, *searches)

    found = ask(asked())
    assert len({id(opened) for (opened,) in found[:5]}) == 1
    assert len(found[5]) >= 3 and len({tuple(map(id, steps)) for steps in found[5:]}) == 1
    assert shared._prepared.nbytes > 0

    async def first_step() -> Any:
        async for step in shared.beams(REQUEST.key, 3, 3):
            return step

    assert ask(first_step()).step.index == 0, "who goes away ends the search"


def test_who_waits_goes_on_when_whoever_began_it_waits_no_longer() -> None:
    kept, begun, made = AnswerCache(1 << 20, len), [], threading.Event()

    async def make() -> bytes:
        begun.append(1)
        while not made.is_set():
            await asyncio.sleep(0.001)
        return b"answer"

    async def ask_twice() -> bytes:
        first = asyncio.ensure_future(kept.get("key", make))
        await asyncio.sleep(0.01)
        second = asyncio.ensure_future(kept.get("key", make))
        await asyncio.sleep(0.01)
        assert len(begun) == 1
        first.cancel()
        made.set()
        return await second

    assert ask(ask_twice()) == b"answer"
    assert len(begun) == 2 and kept.nbytes == 6


def test_kept_answers_are_bounded_in_bytes() -> None:
    kept = AnswerCache(1000, len)

    async def make(i: int) -> bytes:
        return bytes([i]) * 300

    for i in range(8):
        ask(kept.get(i, lambda i=i: make(i)))
        assert kept.nbytes <= 1000
    kept.put("large", b"x" * 5000)
    assert kept.nbytes == 0
    assert ask(kept.get(7, lambda: make(7))) == bytes([7]) * 300


def test_a_storm_of_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.service.worker.MAX_WAITING", 5)
    shared = service()
    run_of(shared)
    gate = threading.Event()
    blockers = [shared._quick.submit(partial(gate.wait, 20)) for _ in range(shared._quick.workers)]

    async def storm() -> list[Any]:
        calls = [shared.row(REQUEST.key, MapTransform(0, 0), 1) for _ in range(9)]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0.01)
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = ask(storm())
    assert all(blocker.result() for blocker in blockers)
    assert sum(isinstance(answer, ServerBusy) for answer in found) == 4
    assert len(ask(shared.row(REQUEST.key, MapTransform(0, 0), 1)).values) == 16  # and it is over


def test_many_threads_and_loops_ask_one_service() -> None:
    shared = service(workers=2)
    texts = [" ".join(WORDS[i % 5 : i % 5 + 4 + i % 3]) for i in range(15)]

    def visit(text: str) -> bool:
        async def look() -> bool:
            key = await shared.submit(Request("one", (text,)))
            async for _ in shared.follow(key):
                pass
            facts, row = await asyncio.gather(shared.facts(key), shared.row(key, MapTransform(0, 0), 1))
            return facts.source.text == text and len(row.values) == len(text.split())

        return asyncio.run(look())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(visit, texts * 3))


def test_core_waits_for_events_and_never_looks_again_and_again() -> None:
    root = Path(core.__file__).parent
    waiting = [str(path) for path in root.rglob("*.py") if "sleep(" in path.read_text(encoding="utf-8")]
    assert not waiting


def test_the_loader_of_the_engine_s_tests_gives_runs_that_are_not_shown() -> None:
    shared = service(Loader())
    run_of(shared)
    assert ask(shared.facts_so_far(REQUEST.key)) is None
