"""Work is shared out: who has had less of it goes first, also in the middle of another's pass, and no visitor takes all places."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

import core
from core.errors import ServerBusy
from core.model.hooks import between_layers
from core.run.request import Request
from core.service import AnswerCache
from core.service import queue as module
from core.service.queue import BACKGROUND, TYPED, Askers, Slots, TaskQueue, Usage, asked_by, current_askers
from tests.core.serving import ask, service
from tests.core.test_engine import Gate, engine

ANN, BOB = Askers(("ann", "at school")), Askers(("bob", "at home"))


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def held(turns: TaskQueue, askers: Askers = ANN) -> threading.Event:
    """Keep the only thread busy until the event is set."""
    begun, free = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        assert free.wait(20)

    turns.add(wait, askers=askers)
    assert begun.wait(10)
    return free


def test_usage_halves_with_time_and_is_told() -> None:
    clock, told = Clock(), []
    usage = Usage(lambda *charged: told.append(charged), clock)
    usage.add(ANN, 8.0)
    assert usage.least(ANN) == 8.0 and usage.least(BOB) == 0.0
    clock.now += 2 * module.HALF_LIFE_SECONDS
    assert usage.least(ANN) == pytest.approx(2.0)
    usage.add([*ANN, *BOB], 3.0, others_wait=True)  # both waited for it
    assert usage.least(ANN) == pytest.approx(3.5) and usage.least(BOB) == pytest.approx(1.5)
    assert sorted(told) == [(("ann", "at school"), 1.5), (("bob", "at home"), 1.5)]


def test_many_names_at_one_address_are_no_way_around_one_share() -> None:
    usage = Usage(clock=Clock())
    for i in range(40 * module.VISITORS_PER_ADDRESS):
        usage.add(Askers((f"name {i}", "at one place")), 1.0)
    newest = Askers(("new name", "at one place"))
    assert usage.least(newest) == pytest.approx(40.0) and usage.least(BOB) == 0.0


def test_usage_is_remembered_of_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ACCOUNTS", 10)
    usage = Usage(clock=Clock())
    for i in range(30):
        usage.add(Askers((f"name {i}",)), 1.0)
    assert len(usage._used) == 10 and usage.least(Askers(("name 29",))) == 1.0


def test_a_sentence_goes_before_another_visitors_sixteenth_question() -> None:
    usage = Usage(clock=Clock())
    turns, done = TaskQueue("test", 1, usage), []
    usage.add(ANN, 2.0)
    free = held(turns)
    for i in range(16):
        turns.add(partial(done.append, f"ann {i}"), askers=ANN)
    last = threading.Event()
    typed = turns.add(partial(done.append, "bob"), TYPED, BOB)
    assert turns.ahead(typed) == 1  # what runs
    turns.add(last.set, BACKGROUND, ANN)
    free.set()
    assert last.wait(10)
    assert done == ["bob", *(f"ann {i}" for i in range(16))]


def test_visitors_with_the_same_share_are_served_as_they_came_and_urgent_work_first() -> None:
    turns, done = TaskQueue("test", 1, Usage(clock=Clock())), []
    free, last = held(turns), threading.Event()
    turns.add(partial(done.append, "ann aside"), BACKGROUND, ANN)
    turns.add(partial(done.append, "bob asks"), askers=BOB)
    turns.add(partial(done.append, "ann asks"), askers=ANN)
    turns.add(partial(done.append, "ann types"), TYPED, ANN)
    turns.add(last.set, BACKGROUND, BOB)
    free.set()
    assert last.wait(10)
    assert done == ["ann types", "bob asks", "ann asks", "ann aside"]


def test_a_pass_pauses_between_layers_while_a_visitor_with_less_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_INTERVAL_SECONDS", 0.0)
    usage = Usage(clock=Clock())
    usage.add(ANN, 5.0)
    gate, layers = Gate(), []
    shared = engine(gate, usage=usage)
    with asked_by(ANN):
        long = shared.submit(Request("one", ("the first",)), lambda: layers.append(len(layers)))
    assert gate.begun.wait(10)  # in its first layer
    with asked_by(BOB):
        short = shared.schedule(lambda: long.done())
    gate.open.set()
    assert short.result(10) is False and long.result() is not None
    assert shared._queue._paused == 0 and shared._queue._running in (0, 1)


@pytest.mark.parametrize(("used_by", "is_long", "order"), [
    (ANN, False, ["bob", "ann"]),  # who has had less goes first
    (BOB, False, ["ann", "bob"]),
    (ANN, True, ["ann", "bob"]),  # a long text needs much memory: it interrupts no one
])  # fmt: skip
def test_who_interrupts_a_pass_between_two_layers(
    monkeypatch: pytest.MonkeyPatch, used_by: Askers, is_long: bool, order: list[str]
) -> None:
    monkeypatch.setattr(module, "CHECK_INTERVAL_SECONDS", 0.0)
    usage, done = Usage(clock=Clock()), []
    usage.add(used_by, 5.0)
    turns, begun, free, last = TaskQueue("test", 1, usage), threading.Event(), threading.Event(), threading.Event()

    def two_layers() -> None:
        begun.set()
        assert free.wait(10)
        pause = between_layers.get()
        assert pause is not None
        pause()
        done.append("ann")

    turns.add(two_layers, askers=ANN)
    assert begun.wait(10)
    turns.add(partial(done.append, "bob"), TYPED, BOB, long=is_long)
    turns.add(last.set, BACKGROUND, BOB if used_by is BOB else ANN)
    free.set()
    assert last.wait(10) and done == order


def test_a_paused_pass_that_is_cancelled_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_INTERVAL_SECONDS", 0.0)
    usage = Usage(clock=Clock())
    usage.add(ANN, 5.0)
    gate, paused, free = Gate(), threading.Event(), threading.Event()
    shared = engine(gate, usage=usage)
    with asked_by(ANN):
        run = shared.submit(Request("one", ("the first",)))
    assert gate.begun.wait(10)

    def other() -> None:
        paused.set()
        assert free.wait(10)

    with asked_by(BOB):
        question = shared.schedule(other)
    gate.open.set()
    assert paused.wait(10) and shared._queue._paused == 1
    run.cancel()
    free.set()
    question.result(10)
    with pytest.raises(core.errors.RunCancelled):
        run.future.result(10)
    shared._queue.submit(lambda: None).result(10)
    assert (shared._queue._paused, shared.status()["running_or_waiting"]) == (0, 0)


def test_whoever_joins_a_run_or_an_answer_brings_it_forward() -> None:
    usage = Usage(clock=Clock())
    usage.add(ANN, 5.0)
    gate = Gate()
    shared = engine(gate, usage=usage)
    carol = Askers(("carol",))
    with asked_by(carol):
        shared.begin(Request("one", ("first",)))
    assert gate.begun.wait(10)
    with asked_by(ANN):
        run = shared.submit(Request("one", ("the cat",)))
        question = shared.schedule(lambda: run.done())
    while run.progress.stage != "waiting":
        pass
    usage.add(carol, 1.0)
    with asked_by(BOB):
        shared.submit(Request("one", ("the cat",)))
        between = shared.schedule(lambda: run.done())
    gate.open.set()
    assert between.result(10) is True and question.result(10) is True

    cache, seen = AnswerCache(1000, len), []

    async def make() -> bytes:
        await asyncio.sleep(0.01)
        seen.extend(current_askers())
        return b"x"

    async def get(askers: Askers) -> bytes:
        with asked_by(askers):
            return await cache.get("one", make)

    async def both() -> list[bytes]:
        return [*await asyncio.gather(get(ANN), get(BOB))]

    assert ask(both()) == [b"x", b"x"] and set(seen) == {*ANN, *BOB}


def test_a_pass_for_several_is_charged_to_each_in_parts_while_others_wait_and_to_nobody_else() -> None:
    told: dict[str, float] = {}
    usage = Usage(lambda accounts, seconds: told.update({accounts[0]: told.get(accounts[0], 0.0) + seconds}))
    turns = TaskQueue("test", 1, usage)
    free = held(turns, Askers(("carol",)))
    both = Askers(*ANN)
    both.join(BOB)
    shared, last = threading.Event(), threading.Event()
    turns.add(shared.set, TYPED, both)
    turns.add(last.set, BACKGROUND, Askers(("dora",)))
    free.set()
    assert last.wait(10) and shared.is_set()
    turns.submit(lambda: None).result(10)
    assert told["ann"] == told["bob"] > 0 and told["carol"] > 0 and "dora" not in told


def test_one_visitor_leaves_as_many_places_as_it_takes_and_everyone_has_a_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_TASKS_OF_ONE", 2)
    places = Slots(9, "{n} wait.", "{n} of yours wait.")
    leave = [places.acquire(ANN) for _ in range(5)]
    with pytest.raises(ServerBusy, match=r"^5 of yours wait\.$"):
        places.acquire(ANN)
    leave += [places.acquire(BOB) for _ in range(2)]
    with pytest.raises(ServerBusy, match=r"^2 of yours wait\.$"):
        places.acquire(BOB)
    leave += [places.acquire(Askers(("carol",))) for _ in range(2)]
    with pytest.raises(ServerBusy, match=r"^9 wait\.$"):
        places.acquire(Askers(("dora",)))
    for one in leave:
        one()
    assert places.taken == 0 and not places._by_visitor
    for _ in range(9):  # a script without visitors has all of them
        places.acquire(Askers(()))
    monkeypatch.setattr(module, "MAX_TASKS_OF_ONE", 3)
    many = Slots(1000, "{n} wait.", "{n} of yours wait.")
    for _ in range(3):
        many.acquire(ANN)
    with pytest.raises(ServerBusy, match=r"^3 of yours wait\.$"):
        many.acquire(ANN)


def test_an_answer_that_nobody_waits_for_gives_up_its_turn() -> None:
    shared = service()
    free = held(shared.engine._queue)

    async def leave() -> None:
        asking = asyncio.ensure_future(shared._pass(lambda: ran.append(1)))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    ran: list[int] = []
    ask(leave())
    assert shared.engine.status()["running_or_waiting"] == 0 and not shared.engine._queue._waiting
    free.set()
    shared.engine._queue.submit(lambda: None).result(10)
    assert not ran
