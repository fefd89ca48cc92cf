"""Trainings in a process of their own: one run for all who watch, two at a time, a queue that says its place, and an end for what nobody watches."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from typing import Any, TypeVar

import pytest

from core import live
from core.errors import Busy, Refused
from core.live import Frame, Point, Spec
from core.service import News
from core.service.trainer import DIED, KEPT_BYTES, MOST_WAITING, Trainer, frame_from, frame_text, key_of, spec_from

T = TypeVar("T")
SHORT = Spec(steps=12)
LONG = Spec(steps=2000)


@pytest.fixture
def trainer() -> Iterator[Trainer]:
    made = Trainer()
    yield made
    made.close()


def ask(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


async def whole(trainer: Trainer, spec: Spec) -> list[News]:
    """Everything that is said of a run until it ends."""
    return [news async for news in trainer.watch(spec)]


async def until(trainer: Trainer, spec: Spec, state: str) -> News:
    """The first news of a run in this state; then nobody watches it any more."""
    async with aclosing(trainer.watch(spec)) as coming:
        async for news in coming:
            if news.state == state:
                return news
    raise AssertionError(f"never {state}")


def test_what_the_process_says_is_what_the_same_run_gives_here(trainer: Trainer) -> None:
    found = ask(whole(trainer, SHORT))
    here = list(live.run(SHORT))
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
    frame = next(x for x in live.run(Spec(steps=1)) if isinstance(x, Frame))
    back = frame_from(frame_text(frame))
    assert back.step == 0 and back.given == frame.given
    assert all(
        x.dtype == frame.weights[name].dtype and x.equal(frame.weights[name]) for name, x in back.weights.items()
    )


def test_many_who_press_the_same_button_share_one_run(trainer: Trainer) -> None:
    async def all_of_them() -> list[list[News]]:
        return await asyncio.gather(*(whole(trainer, SHORT) for _ in range(30)))

    found = ask(all_of_them())
    assert {sum(len(news.points) for news in one) for one in found} == {12}
    assert len(trainer._runs) == 1


def test_two_run_the_rest_wait_in_their_order_and_too_many_are_refused(trainer: Trainer) -> None:
    async def crowd() -> None:
        watched = [trainer.watch(Spec(seed=i, steps=2000)) for i in range(2 + MOST_WAITING)]
        first = [await anext(one) for one in watched]
        assert [news.state for news in first] == ["running"] * 2 + ["waiting"] * MOST_WAITING
        assert [news.place for news in first[2:]] == list(range(1, MOST_WAITING + 1))
        seconds = [news.seconds for news in first[2:]]
        assert seconds == sorted(seconds) and seconds[0] > 0
        with pytest.raises(Busy, match=str(MOST_WAITING)):
            await anext(trainer.watch(Spec(seed=99, steps=2000)))
        await watched[0].aclose()  # the next one has its turn
        news = await anext(watched[2])
        while news.state != "running":
            news = await anext(watched[2])
        for one in watched[1:]:
            await one.aclose()

    ask(crowd())
    assert not trainer._runs, "what nobody watches is gone"


def test_a_run_that_nobody_watches_ends_within_its_turn(trainer: Trainer) -> None:
    async def look_in() -> None:
        async with aclosing(trainer.watch(LONG)) as coming:
            async for news in coming:
                if news.points:
                    break
        assert LONG not in trainer._runs
        await asyncio.wait_for(whole(trainer, SHORT), 60)  # the process is free for others

    ask(look_in())


def test_a_process_that_dies_loses_its_runs_and_nothing_else(trainer: Trainer) -> None:
    ask(whole(trainer, SHORT))

    async def die() -> News:
        async with aclosing(trainer.watch(LONG)) as coming:
            async for news in coming:
                if news.points and trainer._process is not None:
                    trainer._process.kill()
                if news.state == "failed":
                    return news
        raise AssertionError

    assert ask(die()).why == DIED
    assert trainer.frames(SHORT), "a run that has ended stays"
    assert ask(until(trainer, Spec(seed=9, steps=3), "ended"))


def test_only_what_was_trained_can_be_looked_at(trainer: Trainer) -> None:
    with pytest.raises(Refused, match="Press Train"):
        trainer.frames(SHORT)


def test_frames_of_runs_that_have_ended_are_bounded(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert KEPT_BYTES <= 256 << 20
    monkeypatch.setattr("core.service.trainer.KEPT_BYTES", 0)
    ask(whole(trainer, SHORT))
    assert not trainer._runs


def test_a_description_is_read_back() -> None:
    spec = Spec("sort", "rate10", seed=3, steps=100, fork=20)
    assert spec_from(key_of(spec)) == spec
