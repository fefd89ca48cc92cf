"""Texts of visitors are learnt one a visitor, two at a time, and stay where they were stopped until they continue or are let go."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from core.errors import HeadlightError, ServerBusy
from core.learn.text_training import Text
from core.learn.watched_training import Spec
from core.service import text_training as text_trainer
from core.service.text_training import TextTrainer, TextTrainingUpdate
from core.service.training import key_of
from tests.core.test_text_training import STORY

SLEEPS = (sys.executable, "-c", "import time; time.sleep(60)")


@pytest.fixture
def trainer() -> Iterator[TextTrainer]:
    made = TextTrainer(seconds=1e6, steps=24)
    yield made
    made.close()


async def until(trainer: TextTrainer, visitor: str, n_frames: int = 1_000) -> list[TextTrainingUpdate]:
    """News until the run rests, or has so many frames."""
    found: list[TextTrainingUpdate] = []
    async for news in trainer.watch(visitor):
        found.append(news)
        if sum(len(one.frames) for one in found) >= n_frames:
            break
    return found


@pytest.mark.thorough
def test_a_text_is_learnt_stopped_and_goes_on_to_the_same_end(trainer: TextTrainer) -> None:
    """While the run rests, its visitor has its model; each start of a process takes five seconds of a core."""
    gone: list[str] = []
    trainer.on_release = gone.append
    trainer.begin("me", Text(STORY))
    with pytest.raises(HeadlightError, match="Nothing of this text is learnt yet"):
        trainer.model("me")
    first = asyncio.run(until(trainer, "me", n_frames=2))
    assert first[0].state in ("waiting", "running")
    assert not any(news.key for news in first), "there is no model while it learns"
    trainer.stop("me")
    (still,) = asyncio.run(until(trainer, "me"))
    assert still.state == "stopped" and still.begun is not None and still.begun["pairs"] < still.begun["blind"]
    last = still.frames[-1]["step"]
    assert [point[0] for point in still.points] == list(range(1, last + 1)), (
        "what was learnt after its last frame is gone"
    )
    assert still.key and trainer.is_of(still.key, "me")
    assert not trainer.is_of(still.key, "another") and not trainer.is_of("", "me")
    model = trainer.model_of(still.key)
    assert (model.state.step, model.loss) == (last, still.frames[-1]["loss"])
    trainer.resume("me")
    assert gone == [still.key]
    with pytest.raises(HeadlightError, match="not kept any more"):
        trainer.model_of(still.key)
    rest = asyncio.run(until(trainer, "me"))[-1]
    assert rest.state == "ended"
    assert rest.key not in ("", still.key) and trainer.model_of(rest.key).state.step == 24
    (whole,) = asyncio.run(until(trainer, "me"))
    assert [point[0] for point in whole.points] == list(range(1, 25))
    assert [frame["step"] for frame in whole.frames] == [0, 10, 20, 24]
    assert all("state" not in frame and len(frame["map"]) > 1_000 for frame in whole.frames)
    seconds = [point[2] for point in whole.points]
    assert seconds == sorted(seconds)
    trainer.forget("me")
    assert gone == [still.key, rest.key]


@asynccontextmanager
async def watched(trainer: TextTrainer, *visitors: str) -> AsyncIterator[None]:
    """Each of these visitors has the page of their text open."""
    async with AsyncExitStack() as pages:
        for visitor in visitors:
            page = trainer.watch(visitor)
            pages.push_async_callback(page.aclose)
            await anext(page)
        yield


def states(trainer: TextTrainer) -> dict[str, str]:
    return {visitor: run.state for visitor, run in trainer._runs.items()}


def test_two_learn_the_rest_wait_and_a_visitor_has_one(trainer: TextTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_trainer, "MAX_WAITING", 1)
    trainer.command, trainer.seconds = SLEEPS, 60
    of = Text(STORY)

    async def visit() -> None:
        async with AsyncExitStack() as pages:
            for visitor in ("a", "b", "c"):
                trainer.begin(visitor, of)
                await pages.enter_async_context(watched(trainer, visitor))
            assert states(trainer) == {"a": "running", "b": "running", "c": "waiting"}
            assert trainer._place(trainer._runs["c"]) == (1, 60.0)
            with pytest.raises(ServerBusy, match=r"1 trainings wait already"):
                trainer.begin("d", of)
            first = trainer._runs["a"].process
            trainer.begin("a", of)
            await pages.enter_async_context(watched(trainer, "a"))
            assert first is not None and first.wait(10) != 0, "the visitor's run before it has ended"
            assert states(trainer) == {"b": "running", "c": "running", "a": "waiting"}
            trainer.stop("b")
            assert trainer._runs["a"].state == "running"

    asyncio.run(visit())


def test_a_process_starts_only_for_a_visitor_who_watches(trainer: TextTrainer) -> None:
    trainer.command = SLEEPS
    for visitor in ("gone", "gone too", "never here", "me"):
        trainer.begin(visitor, Text(STORY))
    assert [run.process for run in trainer._runs.values()] == [None] * 4

    async def visit() -> None:
        async with watched(trainer, "me"):
            assert trainer._runs["me"].state == "running" and trainer._runs["me"].process is not None
        assert set(states(trainer).values()) == {"waiting", "running"}, "a run continues without its visitor"

    asyncio.run(visit())
    assert [name for name, run in trainer._runs.items() if run.process is not None] == ["me"]


def test_an_unwatched_text_leaves_the_line(trainer: TextTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_trainer, "MAX_ACTIVE", 0)
    now = [0.0]
    trainer.clock = lambda: now[0]
    trainer.begin("never here", Text(STORY))
    trainer.begin("left", Text(STORY))
    trainer.begin("here", Text(STORY))
    # Stopped once, so that something of it is learned
    trainer._runs["left"].frames.append({"step": 10, "loss": 3.0})

    async def visit() -> None:
        async with watched(trainer, "here"):
            async with watched(trainer, "left"):
                now[0] = text_trainer.NEVER_WATCHED
                trainer._sweep()
                assert list(states(trainer)) == ["never here", "left", "here"]
                now[0] += 1
                trainer._sweep()
                assert list(states(trainer)) == ["left", "here"]
            now[0] += text_trainer.LEFT
            trainer._sweep()
            assert states(trainer) == {"left": "waiting", "here": "waiting"}
            now[0] += 1
            trainer._sweep()
            assert states(trainer) == {"left": "stopped", "here": "waiting"}, "what was learned stays"

    asyncio.run(visit())


def test_unwatched_texts_fill_neither_the_line_nor_memory(
    trainer: TextTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_trainer, "MAX_KEPT", 1)
    monkeypatch.setattr(text_trainer, "MAX_WAITING", 2)
    monkeypatch.setattr(text_trainer, "MAX_ACTIVE", 0)
    trainer.begin("learned", Text(STORY))
    trainer.stop("learned")
    trainer.begin("me", Text(STORY))

    async def visit() -> None:
        async with watched(trainer, "me"):
            for i in range(10):
                trainer.begin(f"gone {i}", Text(STORY))
            assert states(trainer) == {"learned": "stopped", "me": "waiting", "gone 9": "waiting"}
            assert trainer._place(trainer._runs["gone 9"])[0] == 2
            trainer.begin("another", Text(STORY))
            async with watched(trainer, "another"):
                assert list(states(trainer)) == ["learned", "me", "another"]
                with pytest.raises(ServerBusy):
                    trainer.begin("gone again", Text(STORY))

    asyncio.run(visit())


def test_a_text_is_let_go_and_then_there_is_none(trainer: TextTrainer) -> None:
    trainer.command = SLEEPS
    now = [0.0]
    trainer.clock = lambda: now[0]
    with pytest.raises(HeadlightError, match="no text here yet"):
        trainer.stop("me")
    trainer.begin("me", Text(STORY))
    trainer.stop("me")
    now[0] = text_trainer.FORGOTTEN + 1
    trainer.begin("another", Text(STORY))
    with pytest.raises(HeadlightError):
        trainer.resume("me")


def test_a_process_that_dies_is_told(trainer: TextTrainer) -> None:
    trainer.command = (sys.executable, "-c", "raise SystemExit(1)")
    trainer.begin("me", Text(STORY))
    news = asyncio.run(until(trainer, "me"))[-1]
    assert news.state == "failed" and news.why == text_trainer.PROCESS_DIED


def test_a_text_stays_while_its_page_is_open_and_is_let_go_by_itself(
    trainer: TextTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_trainer, "SWEEP_SECONDS", 0.02)
    trainer.command = (sys.executable, "-c", "raise SystemExit(1)")
    now = [0.0]
    trainer.clock = lambda: now[0]
    trainer.begin("me", Text(STORY))
    asyncio.run(until(trainer, "me"))
    now[0] = text_trainer.FORGOTTEN - 1
    trainer.keep("me")
    now[0] = text_trainer.FORGOTTEN + 1
    time.sleep(0.2)
    trainer.keep("me")
    now[0] = 3 * text_trainer.FORGOTTEN
    patience = time.monotonic() + 10
    while trainer._runs and time.monotonic() < patience:
        time.sleep(0.02)
    assert not trainer._runs
    with pytest.raises(HeadlightError):
        trainer.keep("me")


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        (["text"], {"text": STORY, "unit": "letters", "seed": 0, "seconds": 600.0, "steps": 1 << 20}),
        pytest.param([], {"start": 0, "spec": key_of(Spec())}, marks=pytest.mark.thorough),
    ],
)
def test_a_process_ends_without_a_word_once_its_server_has_gone(arguments: list[str], first: dict[str, object]) -> None:
    command = [sys.executable, "-m", "core.service.training_process", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(json.dumps(first).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline(), "it has begun"
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
