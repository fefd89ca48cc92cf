"""Trainings in a process of their own: one run for all who watch, two at a time, a queue that says its place, and an end for what nobody watches."""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from core.errors import HeadlightError, ServerBusy
from core.learn import watched_training
from core.learn.watched_training import Frame, Point, Spec
from core.service import TrainingUpdate, training_process
from core.service.training import (
    COMMAND,
    KEPT_BYTES,
    MAX_WAITING,
    PROCESS_DIED,
    Trainer,
    Training,
    frame_from,
    frame_text,
    key_of,
    spec_from,
)

T = TypeVar("T")
SHORT = Spec(steps=12)
LONG = Spec(steps=2000)


@pytest.fixture(scope="module")
def one_process() -> Iterator[Trainer]:
    """A trainer whose process serves test after test: each start imports torch again."""
    made = Trainer()
    yield made
    made.close()


@pytest.fixture
def trainer(one_process: Trainer) -> Iterator[Trainer]:
    """A trainer without runs."""
    yield one_process
    with one_process._lock:
        for run in list(one_process._runs.values()):
            one_process._end(run)
        one_process._runs.clear()


def ask(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


async def whole(trainer: Trainer, spec: Spec) -> list[TrainingUpdate]:
    """Everything that is said of a run until it ends."""
    return [news async for news in trainer.watch(spec)]


async def until(trainer: Trainer, spec: Spec, state: str) -> TrainingUpdate:
    """The first news of a run in this state; then nobody watches it any more."""
    async with aclosing(trainer.watch(spec)) as coming:
        async for news in coming:
            if news.state == state:
                return news
    raise AssertionError(f"never {state}")


@pytest.mark.thorough
def test_what_the_process_says_is_what_the_same_run_gives_here(trainer: Trainer) -> None:
    trainer.ready()
    expected = trainer._process
    trainer.ready()
    found = ask(whole(trainer, SHORT))
    assert trainer._process is expected is not None, "nobody waits for another"
    here = list(watched_training.run(SHORT))
    points = [(x.step, x.loss, x.accuracy) for news in found for x in news.points]
    assert points == [(x.step, x.loss, x.accuracy) for x in here if isinstance(x, Point)]
    frames = [x for x in here if isinstance(x, Frame)]
    assert [said.step for news in found for said in news.frames] == [x.step for x in frames]
    assert found[-1].state == "ended"
    for ours, theirs in zip(frames, trainer.frames(SHORT), strict=True):
        assert (ours.given, ours.own, ours.whole, ours.gradients) == (
            theirs.given,
            theirs.own,
            theirs.whole,
            theirs.gradients,
        )
        assert all(ours.weights[name].equal(x) for name, x in theirs.weights.items())
    again = ask(whole(trainer, SHORT))
    assert len(again) == 1 and len(again[0].points) == 12, "a run that has ended is there at once"


def test_a_frame_travels_whole() -> None:
    frame = next(x for x in watched_training.run(Spec(steps=1)) if isinstance(x, Frame))
    back = frame_from(frame_text(frame))
    assert back.step == 0 and back.given == frame.given
    assert all(
        x.dtype == frame.weights[name].dtype and x.equal(frame.weights[name]) for name, x in back.weights.items()
    )


@pytest.mark.thorough
def test_many_who_press_the_same_button_share_one_run(trainer: Trainer) -> None:
    async def all_of_them() -> list[list[TrainingUpdate]]:
        return await asyncio.gather(*(whole(trainer, SHORT) for _ in range(30)))

    found = ask(all_of_them())
    assert {sum(len(news.points) for news in one) for one in found} == {12}
    assert len(trainer._runs) == 1


def test_two_run_the_rest_wait_in_their_order_and_too_many_are_refused(trainer: Trainer) -> None:
    async def crowd() -> None:
        watched = [trainer.watch(Spec(seed=i, steps=2000)) for i in range(2 + MAX_WAITING)]
        first = [await anext(one) for one in watched]
        assert [news.state for news in first] == ["running"] * 2 + ["waiting"] * MAX_WAITING
        assert [news.place for news in first[2:]] == list(range(1, MAX_WAITING + 1))
        seconds = [news.seconds for news in first[2:]]
        assert seconds == sorted(seconds) and seconds[0] > 0
        with pytest.raises(ServerBusy, match=str(MAX_WAITING)):
            await anext(trainer.watch(Spec(seed=99, steps=2000)))
        await watched[0].aclose()  # the next one has its turn
        news = await anext(watched[2])
        while news.state != "running":
            news = await anext(watched[2])
        for one in watched[1:]:
            await one.aclose()

    ask(crowd())
    assert not trainer._runs, "what nobody watches is gone"


@pytest.mark.thorough
def test_a_run_that_nobody_watches_ends_within_its_turn(trainer: Trainer) -> None:
    async def look_in() -> None:
        async with aclosing(trainer.watch(LONG)) as coming:
            async for news in coming:
                if news.points:
                    break
        assert LONG not in trainer._runs
        await asyncio.wait_for(whole(trainer, SHORT), 60)  # the process is free for others

    ask(look_in())


def test_a_command_is_obeyed_behind_the_step_that_is_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a run is cancelled within one step, however long its turn would be."""
    monkeypatch.setattr(training_process, "TIME_SLICE_SECONDS", 1e9)
    commands: queue.Queue[Any] = queue.Queue()
    made: list[int] = []

    def steps() -> Iterator[Point]:
        for step in range(1, 100):
            if step == 3:
                commands.put({"stop": 0})  # while it is being made
            made.append(step)
            yield Point(step, 1.0, 0.5)

    said: list[dict[str, Any]] = []
    training_process._turn(0, {0: steps()}, {0}, commands, lambda **what: said.append(what))
    assert made == [1, 2, 3]
    assert [point[0] for one in said for point in one["points"]] == made, "and what it came to is told"
    assert len(said[0]["points"]) == 1, "the first point of a run that is new at once"


def test_a_turn_is_no_longer_for_a_run_with_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its first steps every few have one, and somebody else's run waits."""
    clock = count()
    monkeypatch.setattr(training_process, "time", SimpleNamespace(monotonic=lambda: next(clock) / 10))
    frame = next(x for x in watched_training.run(Spec(steps=1)) if isinstance(x, Frame))
    made = (x for step in range(1, 100) for x in (Point(step, 1.0, 0.5), frame))
    runs: dict[int, Iterator[Point | Frame | None]] = {0: made}
    said: list[dict[str, Any]] = []
    training_process._turn(0, runs, set(), queue.Queue(), lambda **what: said.append(what))
    assert 0 < len(said) < 10


# The process of every day, but a run of 40 steps goes on from the tenth only once it was paused and is to go on.
HELD = """
import sys, threading, time
from core.service import training_process as process
run, goes_on = process.run, threading.Event()
def held(spec, states=None):
    for made in run(spec, states=states):
        yield made
        while spec.steps == 40 and getattr(made, "step", 0) == 10 and not goes_on.is_set():
            time.sleep(0.01)
            yield None
def told():
    for line in sys.stdin.buffer:
        if b'"go"' in line:
            goes_on.set()
        yield line
process.run = held
process.main(told())
"""


@pytest.fixture
def holding() -> Iterator[Trainer]:
    made = Trainer((sys.executable, "-c", HELD))
    yield made
    made.close()


@pytest.mark.thorough
def test_a_run_that_is_paused_waits_and_goes_on_to_the_same_end(holding: Trainer) -> None:
    trainer, spec = holding, Spec(steps=40, seed=4)

    async def pause_and_go_on() -> list[TrainingUpdate]:
        async with aclosing(trainer.watch(spec)) as coming:
            async for news in coming:
                if news.points:
                    trainer.pause(spec)
                    break
        assert trainer._runs[spec].state == "paused"
        await asyncio.wait_for(whole(trainer, SHORT), 60)  # others have its turn
        reached = len(trainer._runs[spec].points)
        assert 0 < reached < 40
        await asyncio.wait_for(whole(trainer, Spec(seed=5, steps=12)), 60)
        assert len(trainer._runs[spec].points) == reached, "it does not go on by itself"
        return await asyncio.wait_for(whole(trainer, spec), 60)

    news = ask(pause_and_go_on())
    points = [(x.step, x.loss) for each in news for x in each.points]
    assert (
        points == [(x.step, x.loss) for x in watched_training.run(spec) if isinstance(x, Point)]
        and news[-1].state == "ended"
    )


def test_who_only_asks_neither_begins_nor_ends_a_run(trainer: Trainer) -> None:
    with pytest.raises(HeadlightError, match="Press Train"):
        trainer.now(LONG)
    assert not trainer._runs

    async def pause() -> None:
        async with aclosing(trainer.watch(LONG)) as coming:
            async for news in coming:
                if news.frames and trainer.now(LONG).points:
                    return trainer.pause(LONG)

    ask(pause())
    now = trainer.now(LONG)
    assert now.state == trainer._runs[LONG].state == "paused" and now.points and now.frames


def test_whoever_asks_hears_of_points_before_the_first_frame(trainer: Trainer) -> None:
    run = trainer._runs[LONG] = Training(LONG, 0, "paused")
    with pytest.raises(HeadlightError, match="Press Train"):
        trainer.now(LONG)
    first = Point(1, 3.7, 0.04)
    run.points.append(first)
    now = trainer.now(LONG)
    assert (now.state, now.points, now.frames) == ("paused", (first,), ())


def test_paused_runs_are_bounded_and_die_with_their_process(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.service.training.MAX_PAUSED", 1)

    async def pause(spec: Spec) -> None:
        async with aclosing(trainer.watch(spec)) as coming:
            async for news in coming:
                if news.points:
                    return trainer.pause(spec)

    ask(pause(LONG))
    ask(pause(Spec(seed=1, steps=2000)))
    assert [run.spec.seed for run in trainer._runs.values()] == [1], "the oldest has ended"
    trainer.pause(Spec(seed=77))  # nobody began it: nothing to pause
    process = trainer._process
    assert process is not None
    process.kill()
    assert trainer._listener is not None
    trainer._listener.join()
    assert [run.state for run in trainer._runs.values()] == ["failed"]


@pytest.mark.thorough
def test_a_process_that_dies_loses_its_runs_and_nothing_else(trainer: Trainer) -> None:
    ask(whole(trainer, SHORT))

    async def die() -> TrainingUpdate:
        async with aclosing(trainer.watch(LONG)) as coming:
            async for news in coming:
                if news.points and trainer._process is not None:
                    trainer._process.kill()
                if news.state == "failed":
                    return news
        raise AssertionError

    assert ask(die()).why == PROCESS_DIED
    assert trainer.frames(SHORT), "a run that has ended stays"
    assert ask(until(trainer, Spec(seed=9, steps=3), "ended"))


def test_only_what_was_trained_can_be_looked_at(trainer: Trainer) -> None:
    with pytest.raises(HeadlightError, match="Press Train"):
        trainer.frames(SHORT)


@pytest.mark.thorough
def test_frames_of_runs_that_have_ended_are_bounded(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEPT_BYTES <= 256 << 20
    monkeypatch.setattr("core.service.training.KEPT_BYTES", 0)
    ask(whole(trainer, SHORT))
    assert not trainer._runs


def test_a_description_is_read_back() -> None:
    spec = Spec("sort", "rate10", seed=3, steps=100, fork=20)
    assert spec_from(key_of(spec)) == spec


# A process that says a late point of the first run it was told of just when the second begins, and lists what it was told.
LATE = """
import json, sys
def say(**what): print(json.dumps(what), flush=True)
begun = []
for line in sys.stdin:
    told = json.loads(line)
    if "start" in told:
        begun.append(told["start"])
        if len(begun) == 2:
            say(run=begun[0], points=[[77, 1.0, 0.0]], pace=0.1)
        say(run=begun[-1], points=[[1, 1.0, 0.0]], pace=0.1)
        if len(begun) == 2:
            say(run=begun[-1], ended=True, why="")
"""


@pytest.mark.thorough
def test_a_twin_forks_where_its_run_was_without_learning_it_again(trainer: Trainer) -> None:
    """The first news of it that says anything comes behind a few steps, and what it says is what the run alone gives."""
    spec = Spec(steps=60, twin="nomask", fork=47)
    ask(whole(trainer, spec.alone))
    found = [point for news in ask(whole(trainer, spec)) for point in news.points]
    alone = [x for x in watched_training.run(spec) if isinstance(x, Point)]
    assert [(x.step, x.loss) for x in found] == [(x.step, x.loss) for x in alone]


@pytest.mark.thorough
def test_a_process_without_work_ends_and_the_next_training_has_another() -> None:
    trainer = Trainer((*COMMAND, "0.05"))
    try:
        ask(whole(trainer, SHORT))
        first = trainer._process
        if first is not None:  # or it has ended already
            first.wait(60)
        assert trainer._listener is not None
        trainer._listener.join(60)
        assert trainer._process is None and trainer._runs[SHORT].state == "ended"
        assert ask(whole(trainer, Spec(seed=9, steps=3)))[-1].state == "ended"
    finally:
        trainer.close()


@pytest.mark.thorough
def test_what_waits_when_a_trainer_is_closed_begins_no_process() -> None:
    trainer = Trainer()
    specs = [Spec(seed=seed, steps=2000) for seed in range(1, 5)]

    async def close_it() -> list[list[TrainingUpdate]]:
        watched = [asyncio.ensure_future(whole(trainer, spec)) for spec in specs]
        while not all(spec in trainer._runs for spec in specs) or not trainer._runs[specs[0]].points:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(trainer.close)
        return await asyncio.gather(*watched)

    assert [news[-1].state for news in ask(close_it())] == ["failed"] * 4
    assert trainer._process is None


@pytest.mark.thorough
def test_a_process_in_which_a_run_waits_is_not_without_work(trainer: Trainer) -> None:
    """Neither one that is paused nor one that was begun while the process said that it had nothing to do."""

    async def pause() -> None:
        async with aclosing(trainer.watch(LONG)) as coming:
            async for news in coming:
                if news.points:
                    process = trainer._process
                    assert process is not None
                    trainer._end_idle_process(process)
                    assert trainer._process is process
                    return trainer.pause(LONG)

    ask(pause())
    process = trainer._process
    assert process is not None
    trainer._end_idle_process(process)
    assert trainer._process is process and process.poll() is None and trainer._runs[LONG].state == "paused"


def test_a_paused_run_keeps_its_process_and_an_idle_one_asks_to_be_ended() -> None:
    """Without anything to do it says so each time, until its commands are closed."""
    commands, news = os.pipe(), os.pipe()
    told, said = os.fdopen(commands[1], "wb", 0), os.fdopen(news[0], "rb", 0)
    with os.fdopen(commands[0], "rb", 0) as heard, os.fdopen(news[1], "wb", 0) as saying:
        thread = threading.Thread(target=training_process.main, args=(heard, saying, 0.01))
        thread.start()
        assert [said.readline(), said.readline()] == [b'{"idle": true}\n'] * 2
        told.close()
        thread.join(60)
        assert not thread.is_alive()
    said.close()


def test_what_a_stopped_run_had_still_to_say_is_none_of_the_next_one_s() -> None:
    trainer = Trainer((sys.executable, "-c", LATE))

    async def stop_and_start() -> list[TrainingUpdate]:
        async with aclosing(trainer.watch(SHORT)) as coming:
            async for news in coming:
                if news.points:
                    break
        return await asyncio.wait_for(whole(trainer, SHORT), 60)

    try:
        found = ask(stop_and_start())
    finally:
        trainer.close()
    assert [point.step for news in found for point in news.points] == [1]


@pytest.mark.thorough
def test_a_paused_run_that_waits_for_its_turn_again_is_stopped_where_it_is_paused(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its model would stay in the process for good."""
    told: list[dict[str, Any]] = []
    send = trainer._send
    monkeypatch.setattr(trainer, "_send", lambda command: (told.append(dict(command)), send(command))[1])

    async def pause_and_leave_while_it_waits() -> None:
        async with aclosing(trainer.watch(LONG)) as coming:
            async for news in coming:
                if news.points:
                    trainer.pause(LONG)
                    break
        others = [trainer.watch(Spec(seed=i, steps=2000)) for i in (1, 2)]
        for other in others:
            await anext(other)
        async with aclosing(trainer.watch(LONG)) as coming:
            assert (await anext(coming)).state == "waiting"
        for other in others:
            await other.aclose()

    ask(pause_and_leave_while_it_waits())
    first = next(command["start"] for command in told if "start" in command)
    assert {"pause": first} in told and {"stop": first} in told


def test_a_process_that_dies_in_the_middle_of_a_line_loses_its_runs_as_any_other() -> None:
    half = "import sys; sys.stdin.readline(); sys.stdout.write('[1, ')"
    trainer = Trainer((sys.executable, "-c", half))
    assert ask(until(trainer, SHORT, "failed")).why == PROCESS_DIED


SAYS = """
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    if "start" in said:
        print(json.dumps([1] if said["spec"] == sys.argv[1] else {"run": said["start"]}), flush=True)
"""


def test_what_is_not_understood_ends_the_process_and_the_next_training_works(caplog: pytest.LogCaptureFixture) -> None:
    """Its runs would be waited for for ever, and their places with them."""
    trainer = Trainer((sys.executable, "-c", SAYS, key_of(SHORT)))
    assert ask(until(trainer, SHORT, "failed")).why == PROCESS_DIED
    assert "is invalid; ending the process" in caplog.text
    ask(until(trainer, Spec(seed=9, steps=3), "ended"))
    trainer.close()
