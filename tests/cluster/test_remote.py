"""A Service asked over HTTP: the same numbers bit for bit, and a machine that is lost is a pause and no error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakSet

import numpy as np
import pytest
import torch
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from app.rooms.lessons.written import folder, steps
from app.rooms.lessons.written.decide import decide
from app.session import service as session
from cluster import answering, remote, wire
from core.edits import Ablate
from core.errors import HeadlightError, ServerBusy, TextError, UnknownRun
from core.learn.watched_training import Point
from core.patching.edited_runs import RowAnswers
from core.patching.head_sweeps import HeadPlace, Sweep
from core.run.request import Request
from core.service import (
    AblateHeads,
    Component,
    LocalService,
    MapTransform,
    Pair,
    PatchHeads,
    Service,
    SweepPart,
    SyncCalls,
    TensorPlace,
    TrainingUpdate,
    WalkNumber,
    WrittenToken,
)
from core.service.engine import Engine
from core.service.queue import Askers, asked_by
from core.service.sweep_rows import PatchRequest, PathRequest
from core.write.generate import Sampling
from tests.cluster.serving import Answers, answering_for, served

TEXT = Request("induction", ("nhpcgojbalim|cgoj",))
OTHER = Request("induction", ("abcdefghklmn|abcd",))
HEAD = MapTransform(1, 1)
# SyncCalls whose answers depend on nothing but the run, as tests ask them.
ASKED: list[tuple[str, tuple[Any, ...]]] = [
    ("thumbnails", ()),
    ("heads", ()),
    ("tile", (HEAD, (0, 9), (2, 11))),
    ("row", (HEAD, 4)),
    ("column", (HEAD, 4)),
    ("cells", (MapTransform(0, 0, "mean"), (0, 9), (0, 9))),
    ("scores", (0, 1, 5)),
    ("measures", ("decoder",)),
    ("norms", ("decoder",)),
    ("proof", (1,)),
    ("values", (TensorPlace("decoder", 0, "attn", "q", 0), 8)),
    ("terms", (WalkNumber("decoder", 0, 5, "attn.q", (0, 1)),)),
    ("predictions", ([3, 4], 3)),
    ("next_words", (range(2, 5),)),
    ("token_probabilities", (["a", "b", "abc"],)),
    ("roles", ()),
    ("openings", ()),
    ("opening_look", ()),
    ("findings", ()),
    ("head_additions", ("decoder", 5)),
    ("head_words", ("decoder", 1, 1, 5)),
    ("looks_at", ("decoder", 5, 2)),
    ("correlations", ("decoder", 1, 1)),
    ("opening", (0, 1)),
    ("point", ("decoder.blocks.0.hook_resid_post", [1])),
    ("logit_lens", (3, [2])),
    ("contributions", (3,)),
    ("ablate_each", ()),
    ("walk", ("decoder", 0, 5)),
    ("additions", ("decoder",)),
    ("guesses", (4,)),
    ("positions", ()),
    ("masked", ("decoder",)),
    ("outcome", ((1, 2),)),
    ("lens_at", ((), 3, 2)),
    ("lens_columns", ((4, 5), (3, 4))),
    ("wrote", ((4, 5),)),
    ("written_text", ((4, 5),)),
    ("compare", (OTHER.key,)),
    ("answer_change", (OTHER.key,)),
    ("part_estimates", (PatchRequest(OTHER.key),)),
    ("part_tests", (PatchRequest(OTHER.key), Component("mlp", 1))),
    ("head_notes", (PatchRequest(OTHER.key),)),
]
STREAMED: list[tuple[str, tuple[Any, ...]]] = [
    ("write", ((), 5, Sampling(temperature=1.0, seed=3))),
    ("beams", (3, 4)),
    ("sweep", (AblateHeads(),)),
    ("sweep", (PatchHeads(OTHER.key),)),
    ("part_rows", (PatchRequest(OTHER.key),)),
    ("path_edges", (PatchRequest(OTHER.key), PathRequest(((0, 0), (0, 1), (1, 0), (1, 1))))),
    ("pair_rows", (tuple(Pair("abcabc", f"abc{word}bc") for word in "dbc"),)),
]


def local() -> LocalService:
    return LocalService(Engine(device=torch.device("cpu"), dtype=torch.float32))


SERVICES: WeakSet[Any] = WeakSet()  # that tests ask


def asking(address: str, **options: Any) -> Service:
    found = remote.service(address, **options)
    SERVICES.add(found)
    return found


@dataclass
class Machine:
    """A replica behind a switch: `broken` is what happens to the next questions instead of an answer."""

    service: LocalService
    broken: list[str]
    sessions: list[str]

    async def answer(self, asked: HttpRequest) -> Response:
        self.sessions.append(asked.headers[remote.SESSION])
        fault = self.broken.pop(0) if self.broken else ""
        if fault == "500":
            return PlainTextResponse("Internal Server Error", 500)
        found = await answering.answer(self.service, asked)
        if not fault or not isinstance(found, StreamingResponse):
            return found
        if fault == "lost":  # it was just beginning, and so is its successor
            self.service = local()
        return StreamingResponse(first_frames(found, int(fault) if fault.isdecimal() else 0))


async def first_frames(found: StreamingResponse, n: int) -> AsyncGenerator[bytes]:
    """So many frames of an answer, which then breaks off."""
    async for part in found.body_iterator:
        if n == 0:
            return
        n -= 1
        assert isinstance(part, bytes)
        yield part


@pytest.fixture(scope="module")
def here() -> LocalService:
    return local()


@pytest.fixture(scope="module")
def machine() -> Machine:
    return Machine(local(), [], [])


@pytest.fixture(scope="module")
def address(machine: Machine) -> Iterator[str]:
    with served(machine.answer) as address:
        yield address


@pytest.fixture
def there(address: str) -> Service:
    return asking(address, patience=20)


@pytest.fixture
def serve() -> Iterator[Callable[[Answers], str]]:
    with ExitStack() as stack:
        yield lambda answers: stack.enter_context(served(answers))


def ask(call: Coroutine[Any, Any, Any]) -> Any:
    """In an event loop of its own, whose connections end with it."""

    async def closing() -> Any:
        try:
            return await call
        finally:
            for service in {*SERVICES}:
                await service.close()

    return asyncio.run(closing())


def test_a_lesson_that_a_teacher_wrote_is_decided_alike_there(here: LocalService, there: Service) -> None:
    lesson = folder.example_lessons()["agreement"]
    assert ask(steps.row(lesson, 1, there)) == 4
    for at in range(len(lesson.steps)):
        assert ask(decide(lesson, at, there)) == ask(decide(lesson, at, here))


async def all_of(stream: AsyncGenerator[Any]) -> list[Any]:
    async with aclosing(stream) as found:
        return [value async for value in found]


async def close(service: Any) -> None:
    await service.close()


async def submitted(service: Service) -> str:
    await service.submit(OTHER)
    return await service.submit(TEXT)


@pytest.mark.thorough(but=15)
@pytest.mark.parametrize(("name", "args"), ASKED, ids=[name for name, _ in ASKED])
def test_an_answer_is_the_same_bit_for_bit(name: str, args: tuple[Any, ...], here: Service, there: Service) -> None:
    async def both() -> list[bytes]:
        return [wire.packed(await getattr(of, name)(await submitted(of), *args)) for of in (here, there)]

    one, other = ask(both())
    assert one == other and len(one) > 8


def rows(parts: list[SweepPart]) -> dict[str, Any]:
    """What a sweep found: in which parts it came depends on the time that each took."""
    after = [part.sweep.after for part in parts]
    return {
        "places": [place for part in parts for place in part.sweep.places],
        "probability": np.concatenate([x.probability for x in after if x.probability is not None]).round(5).tolist(),
    }


@pytest.mark.thorough(but=7)
@pytest.mark.parametrize(
    ("name", "args"), STREAMED, ids=["write", "beams", "sweep", "patch", "parts", "paths", "pairs"]
)
@pytest.mark.parametrize("fault", ["", "500", "1", "2"])
def test_a_stream_is_the_same_also_when_it_breaks_off(
    name: str, args: tuple[Any, ...], fault: str, here: Service, machine: Machine, there: Service
) -> None:
    async def both() -> tuple[list[Any], list[Any]]:
        one = await all_of(getattr(here, name)(await submitted(here), *args))
        key = await submitted(there)
        machine.broken = [fault]
        return one, await all_of(getattr(there, name)(key, *args))

    one, other = ask(both())
    assert machine.broken == []
    if name == "sweep":
        assert rows(one) == rows(other)
    elif name == "pair_rows":
        mine, theirs = ([pair for row in found for pair in row.pairs] for found in (one, other))
        assert [pair.pair for pair in mine] == [pair.pair for pair in theirs] and len(mine) == one[0].of == 3
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(a.heads, b.heads, atol=1e-5)
    elif name == "part_rows":
        assert [part for rows in one for part in rows.parts] == [part for rows in other for part in rows.parts]
        assert len({part for rows in one for part in rows.parts}) == one[0].of
        log_p = [np.concatenate([rows.log_p for rows in found]) for found in (one, other)]
        np.testing.assert_allclose(log_p[0], log_p[1], atol=1e-5)
    elif name == "path_edges":
        assert [edge for found in one for edge in found.edges] == [edge for found in other for edge in found.edges]
        assert sum(found.n for found in one) == one[0].of
    else:
        assert [untimed(value) for value in one] == [untimed(value) for value in other] and len(one) > 2


def untimed(value: Any) -> bytes:
    """An answer by its bytes, without the time that it took."""
    if isinstance(value, WrittenToken) and value.reading is not None:
        value = replace(value, reading=replace(value.reading, seconds=None))
    return wire.packed(value)


def test_a_run_is_followed_to_its_end_and_edited(here: Service, there: Service) -> None:
    async def facts(of: Service) -> list[Any]:
        key = await submitted(of)
        stages = [now.stage for now in await all_of(of.follow(key))]
        edited = await of.edited(key, (Ablate("decoder", 1, 1),))
        found = [await of.facts(key), await of.facts(edited)]
        return [stages[-1], key, edited, *(wire.packed(replace(x, seconds=0.0, steps=())) for x in found)]

    one, other = ask(facts(here)), ask(facts(there))
    assert one == other and one[0] == "done" and one[1] != one[2]


def test_threads_ask_as_they_ask_here(there: Service) -> None:
    calls = SyncCalls(there)
    ticket = calls.submit(TEXT)
    ticket.result()
    assert calls.result(there.facts(ticket.key)).key == TEXT.key
    assert calls.result(there.model(TEXT.model_id)) is not None
    calls.result(close(there))


def test_what_is_refused_there_is_refused_here(there: Service) -> None:
    calls = SyncCalls(there)
    with pytest.raises(TextError):
        calls.submit(Request("copy", ("",))).result()
    with pytest.raises(HeadlightError, match="There is no row 99"):
        calls.submit(TEXT).result()
        calls.result(there.row(TEXT.key, HEAD, 99))
    with pytest.raises(UnknownRun):
        calls.result(there.facts("0" * 64))
    calls.result(close(there))


def test_a_machine_that_is_lost_is_a_pause(machine: Machine, there: Service) -> None:
    """Its traces are gone, and what it was asked comes from another that has never heard of the run."""

    async def see() -> list[Any]:
        key = await submitted(there)
        before = wire.packed(await there.row(key, HEAD, 3))
        machine.service = local()
        after = wire.packed(await there.row(key, HEAD, 3))
        machine.broken = ["lost", "500", "0"]
        changed = await there.compare(key, OTHER.key)
        machine.broken = ["1"]
        stages = [now.stage for now in await all_of(there.follow(key))]
        return [before == after, len(changed.heads) > 0, stages[-1], machine.broken]

    assert ask(see()) == [True, True, "done", []]


def test_nobody_there_is_a_sentence(serve: Callable[[Answers], str]) -> None:
    async def gone(_: HttpRequest) -> Response:
        return PlainTextResponse("", 503)

    nobody = asking(serve(gone), patience=0.1)
    with pytest.raises(ServerBusy, match="do not answer just now"):
        ask(nobody.submit(TEXT))
    assert ask(nobody.status())["running_or_waiting"] == 0
    closed = asking("http://127.0.0.1:1", patience=0.0)
    assert ask(closed.status())["models"] == []


def test_who_waits_for_long_hears_a_beat(
    monkeypatch: pytest.MonkeyPatch, serve: Callable[[Answers], str], here: LocalService
) -> None:
    """Without one, a machine that has gone without a word could not be told from one that works."""
    monkeypatch.setattr(answering, "BEAT_SECONDS", 0.01)

    heard = threading.Event()

    class Slow(LocalService):
        async def spreads(self) -> tuple[Any, ...]:
            while not heard.is_set():
                await asyncio.sleep(0.01)
            return ()

    address, kinds, frames = serve(answering_for(Slow(here.engine))), [], remote.Frames()
    asked = {"content": wire.packed(({}, ())), "timeout": 60}
    with remote.httpx2.stream("POST", f"{address}/spreads", **asked) as came:
        for piece in came.iter_bytes():
            kinds += [kind for kind, _ in frames.of(piece)]
            heard.set()
    assert kinds[0] == wire.BEAT and kinds[-1] == wire.VALUE
    assert ask(asking(address).spreads()) == ()


def test_who_waits_no_longer_ends_the_run(here: Service, machine: Machine, there: Service) -> None:
    async def leave() -> tuple[int, int]:
        engine = machine.service.engine
        closed = asyncio.Event()

        async def never(key: str) -> AsyncGenerator[Any]:
            try:
                while True:
                    yield (await all_of(here.follow(key)))[-1]
                    await asyncio.sleep(0.01)
            finally:
                loop.call_soon_threadsafe(closed.set)

        loop = asyncio.get_running_loop()
        key = await submitted(there)
        await submitted(here)
        machine.service.follow = never  # type: ignore[method-assign]
        try:
            async with aclosing(there.follow(key)) as now:
                await anext(now)
                waiting = (await there.status())["running_or_waiting"]
            async with asyncio.timeout(20):
                await closed.wait()
        finally:
            del machine.service.follow
        assert engine is machine.service.engine
        return waiting, (await there.status())["running_or_waiting"]

    assert ask(leave()) == (1, 0)


def test_questions_about_a_run_go_to_one_machine(machine: Machine, there: Service) -> None:
    async def sessions(request: Request) -> set[str]:
        machine.sessions.clear()
        key = await there.submit(request)
        await there.row(key, HEAD, 1)
        await all_of(there.follow(key))
        return {*machine.sessions}

    found = [ask(sessions(replace(TEXT, texts=(f"{a}bcd|{a}bcd",)))) for a in "abcdefgh"]
    assert all(len(one) == 1 for one in found)
    assert 2 < len(set.union(*found)) <= remote.SPREAD
    assert not any(TEXT.key[:16] in session for one in found for session in one)


def sweep_part(first: int, n: int, of: int = 9) -> SweepPart:
    places = tuple(HeadPlace("decoder", 0, "attn", i) for i in range(first, first + n))
    after = RowAnswers(distance=np.arange(first, first + n, dtype=np.float32))
    return SweepPart(first, of, Sweep(places, RowAnswers(distance=np.zeros(1, np.float32)), after, None))


def test_rows_of_a_sweep_come_once() -> None:
    seen = remote.Seen()
    parts = [sweep_part(0, 2), sweep_part(2, 3), sweep_part(0, 4), sweep_part(4, 3), sweep_part(7, 2)]
    new = [part for part in (seen.new("sweep", part) for part in parts) if part is not None]
    assert [(part.first, part.sweep.after.n_rows) for part in new] == [(0, 2), (2, 3), (5, 2), (7, 2)]
    assert [place.head for part in new for place in part.sweep.places if isinstance(place, HeadPlace)] == [*range(9)]


def test_steps_of_a_training_come_once() -> None:
    seen = remote.Seen()
    points = [Point(step, 1.0, 0.0) for step in range(6)]
    news = [TrainingUpdate("running", points=tuple(points[a:b])) for a, b in ((0, 2), (2, 4), (0, 3), (3, 6))]
    found = [seen.new("train", one) for one in news]
    assert [[point.step for point in one.points] for one in found if one] == [[0, 1], [2, 3], [], [4, 5]]


def test_a_stranger_gets_nothing(address: str) -> None:
    more = wire.packed(({"key": "x", "more": 1}, ()))
    with remote.httpx2.Client(headers={remote.SESSION: "x"}) as client:
        assert client.get(f"{address}/healthz").text == "ok"
        assert client.get(f"{address}/facts").status_code == 404
        assert client.post(f"{address}/engine", content=b"").status_code == 404
        assert client.post(f"{address}/facts", content=b"\x80\x04}").status_code == 400
        assert client.post(f"{address}/facts", content=more).status_code == 400


@pytest.mark.parametrize("address", ["10.0.0.5:8000", "ray://head:10001", "http://", "ftp://a"])
def test_an_address_that_is_none_is_said(address: str) -> None:
    with pytest.raises(ValueError, match="must be where the models' machines answer"):
        asking(address)


def test_a_setting_chooses_where_models_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(session.ELSEWHERE, "http://10.0.0.5:8000/")
    assert getattr(session.service.__wrapped__(), "address", "") == "http://10.0.0.5:8000"
    monkeypatch.delenv(session.ELSEWHERE)
    assert isinstance(session.service.__wrapped__(), LocalService)


def test_whose_question_it_is_travels_with_it(serve: Callable[[Answers], str]) -> None:
    service = local()
    seen: list[set[tuple[str, ...]]] = []
    service.engine.usage.add = lambda askers, *_: seen.append(set(askers))  # type: ignore[method-assign]
    there = asking(serve(answering_for(service)))

    async def facts() -> None:
        with asked_by(Askers(("ann", "at school"))):
            await there.facts(await there.submit(TEXT))

    ask(facts())
    assert {("ann", "at school")} in seen


def test_machines_with_another_secret_are_told_from_lost_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote.RemoteService, "_call", lambda *_: asyncio.sleep(0, "0" * 64))
    with pytest.raises(RuntimeError, match="have another HEADLIGHT_SECRET than this front end"):
        ask(asking("http://127.0.0.1:9").submit(TEXT))
