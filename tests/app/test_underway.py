"""What there is of a run while it still runs: what is made beside the pass is what is made after it, and nobody keeps it for long."""

from __future__ import annotations

import gc
import gzip
import struct
import threading
import time
import weakref
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import Future
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from starlette.testclient import TestClient

import core
from app.attention import in_progress, picture
from app.session import service as session_service
from app.shell import routes
from app.transport import messages as transport_messages
from core.errors import RunCancelled
from core.run.request import Request
from core.service import THUMBNAIL, LocalService
from core.service.engine import Engine
from core.service.facts import facts_of
from core.service.pictures import MAX_RUNS, RunInProgress, RunsInProgress
from core.trace import Trace
from tests.app.served import ask, drawn
from tests.app.test_pack import SMALL


def local() -> LocalService:
    loaded = core.load("minilm")
    return LocalService(Engine(device=torch.device("cpu"), load_model=lambda *_, **__: loaded))


def test_a_picture_is_the_same_with_thumbnails_made_beside_the_pass():
    request, shared = Request("minilm", ("word " * 120,)), local()
    run = shared.engine.run(request)
    assert len(shared._in_progress._made[request.key]) == len(run.attention) == 6
    beside, after = ask(shared.thumbnails(request.key)), drawn(run)
    made = picture.with_small_pictures(picture.larger_picture(ask(shared.facts(request.key))), beside)
    assert made.body == after.body
    assert made.header | {"key": ""} == after.header | {"key": ""}
    assert not after.header["whole"] and len(after.body) > 0
    assert shared._in_progress.take(request.key) == []  # they were taken


def test_the_layers_of_both_stacks_stay_in_the_order_of_the_pass():
    config = core.ModelConfig(**SMALL, n_encoder_layers=2, n_decoder_layers=2)
    request = Request("pair", ("",))
    live = RunsInProgress()
    run = core.trace(
        core.build(config, seed=1),
        ids=[i % 31 for i in range(150)],
        target_ids=[i % 31 for i in range(120)],
        watch=live.watch(request, Future()),
    )
    made = [future.result() for future in live.take(request.key)]
    assert [record.site for record in run.attention] == ["attn", "attn", "attn", "cross_attn", "attn", "cross_attn"]
    for thumbnail, record in zip(made, run.attention, strict=True):
        assert np.array_equal(thumbnail.values, record.thumbnail(THUMBNAIL).values.numpy())


def test_a_small_run_has_none_since_every_weight_is_sent():
    request = Request("minilm", ("A cat.",))
    shared = local()
    run = shared.engine.run(request)
    assert shared._in_progress.take(request.key) == []
    assert drawn(run).header["whole"]


def test_runs_that_nobody_looked_at_are_forgotten():
    first, *others = [Request("minilm", (f"{i} " * 150,)) for i in range(MAX_RUNS + 1)]
    shared = local()
    for request in (first, *others):
        shared.engine.run(request)
    assert shared._in_progress.take(first.key) == []
    assert all(len(shared._in_progress.take(request.key)) == 6 for request in others)


def test_what_is_known_before_the_pass_is_the_header_of_the_picture_after_it():
    configs: tuple[dict[str, Any], ...] = (
        {"n_encoder_layers": 2, "n_decoder_layers": 3},
        {"n_decoder_layers": 4, "n_kv_heads": 2, "window": 5, "windowed_layers": (1, 3)},
        {"n_encoder_layers": 3},
    )
    for config in configs:
        shown: list[Trace] = []
        ids = [i % 31 for i in range(160)]
        loaded = core.build(core.ModelConfig(**SMALL | config), seed=1)
        target = [i % 31 for i in range(140)] if loaded.config.kind == "encoder-decoder" else None
        run = core.trace(loaded, ids=ids, target_ids=target, watch=shown.append)
        body = drawn(run)
        header = picture.outline(facts_of(shown[0], body.header["key"]))
        assert header["size"] == len(body.body)
        with_the_pass = {
            name: body.header[name] for name in ("ms", "openings", "sinks")
        }  # what it opens on follows from weights
        after = {name: value for name, value in body.header.items() if name not in with_the_pass}
        for site in (*header["sites"], *after["sites"]):
            site.pop("how")
            site.pop("has_small", None)
        assert header == after


# what the browser is sent


def messages(stream: bytes) -> list[tuple[dict[str, Any], bytes]]:
    found = []
    while stream:
        (length,) = struct.unpack_from("<I", stream)
        found.append(transport_messages.unpack(stream[4 : 4 + length]))
        stream = stream[4 + length :]
    return found


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> LocalService:
    shared = local()
    monkeypatch.setattr(session_service, "service", lambda: shared)
    return shared


@pytest.fixture
def browser(shared: LocalService) -> Iterator[TestClient]:
    with TestClient(Starlette(routes=routes.PAGE_ROUTES)) as client:
        yield client


def going(live: RunsInProgress, key: str) -> RunInProgress:
    """The run of this key, once its facts are there, which the pass does not wait for."""
    for _ in range(1000):
        if (run := live.run(key)) is not None:
            return run
        time.sleep(0.01)
    raise AssertionError("the run is not known")


class Gate:
    """Lets a pass go as far as one layer, and on when it is opened."""

    def __init__(self, shared: LocalService, layer: int) -> None:
        self.layer, self.reached, self.open = layer, threading.Event(), threading.Event()
        self.live, real = shared._in_progress, shared.engine.on_progress
        shared.engine.on_progress = lambda request, future, changed: self.watched(
            request.key, real(request, future, changed)
        )

    def watched(self, key: str, tell: Callable[[Trace], object]) -> Callable[[Trace], None]:
        def wait(so_far: Trace) -> None:
            tell(so_far)
            if len(so_far.records) == self.layer + 1 and len(so_far.source) > 50:
                going(self.live, key)
                self.reached.set()
                assert self.open.wait(20)

        return wait

    def opens_behind(self, n: int, act: Callable[[], object]) -> None:
        """Do this when somebody has got so many parts of the run, and waits for the next: it goes on by then, however long that took."""
        real = self.live.parts

        async def parts(key: str, record: int, head: int, query: int | None) -> AsyncGenerator[Any]:
            got = 0
            async with aclosing(real(key, record, head, query)) as coming:
                async for part in coming:
                    yield part
                    got += 1
                    if got == n:
                        act()

        self.live.parts = parts


def test_a_run_that_goes_on_is_sent_layer_by_layer_with_the_head_that_is_opened(
    shared: LocalService, browser: TestClient
):
    gate = Gate(shared, layer=2)
    request = Request("minilm", ("Some words to look at. " * 20,))
    ticket = shared.engine.submit(request)
    assert gate.reached.wait(20)
    gate.opens_behind(1, gate.open.set)
    asked = {"run": request.key, "record": 1, "head": 3, "query": 7}
    sent = messages(browser.get("/headlight/layers", params=asked).content)
    run = ticket.result()
    kinds = [next(name for name in ("layer", "path", "ms") if name in header) for header, _ in sent]
    assert kinds == ["layer", "layer", "path", "path", "layer", "layer", "layer", "layer", "ms"]
    whole = drawn(run)
    body = bytearray(len(whole.body))
    for header, part in sent:
        if "layer" in header:
            body[header["at"] : header["at"] + len(part)] = part
    assert bytes(body) == whole.body
    answers = {header["path"]: (header["params"], part) for header, part in sent if "path" in header}
    for path, (params, part) in answers.items():
        assert browser.get(f"/headlight/{path}", params={"run": request.key, **params}).content == part
    assert sent[-1][0]["ms"] == pytest.approx(run.seconds * 1000)


def test_what_is_sent_layer_by_layer_is_packed_and_each_part_can_be_read_when_it_is_there(
    shared: LocalService, browser: TestClient
):
    gate = Gate(shared, layer=2)
    request = Request("minilm", ("Some words to look at in parts. " * 20,))
    ticket = shared.engine.submit(request)
    assert gate.reached.wait(20)
    gate.opens_behind(1, gate.open.set)
    asked = {"run": request.key, "record": 1, "head": 3}
    with browser.stream("GET", "/headlight/layers", params=asked, headers={"Accept-Encoding": "gzip"}) as answer:
        assert answer.headers["content-encoding"] == "gzip"
        packed = b"".join(answer.iter_raw())
    ticket.result()
    plain = gzip.decompress(packed)
    assert len(messages(plain)) == 8 and len(packed) < 0.7 * len(plain)
    reader, (length,) = zlib.decompressobj(16 + zlib.MAX_WBITS), struct.unpack_from("<I", plain)
    read, at = b"", 0
    while len(read) < 4 + length:
        read, at = read + reader.decompress(packed[at : at + 1]), at + 1
    first = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    assert at <= len(
        first.compress(plain[: 4 + length]) + first.flush(zlib.Z_SYNC_FLUSH)
    )  # none of it waits for the second


def test_small_pictures_come_from_the_first_record_that_is_wanted(shared: LocalService, browser: TestClient):
    run = shared.engine.run(request := Request("minilm", ("Words in a row. " * 30,)))
    whole, facts = drawn(run), ask(shared.facts(request.key))
    assert ask(in_progress.picture_of_run(request.key)).body == b""
    for start in (0, 4):
        answer = browser.get("/headlight/small", params={"run": request.key, "from": start})
        header, body = transport_messages.unpack(answer.content)
        assert [(site, layer) for site, layer, *_ in header["parts"]] == [("encoder", i) for i in range(start, 6)]
        for _, layer, at, size, how in header["parts"]:
            assert how == run.attention[layer].thumbnail(THUMBNAIL).how
            there = whole.header["sites"][0]["thumbnails_at"] + layer * size
            assert body[at : at + size] == whole.body[there : there + size]
    beyond = browser.get("/headlight/small", params={"run": request.key, "from": len(facts.records)})
    assert beyond.status_code == 400 and "from" in beyond.text


def test_what_is_sent_of_a_run_that_is_stopped_ends_without_an_end(shared: LocalService, browser: TestClient):
    gate = Gate(shared, layer=2)
    request = Request("minilm", ("Some words to look at again. " * 20,))
    ticket = shared.engine.submit(request)
    assert gate.reached.wait(20)

    def stop() -> None:
        ticket.cancel()
        gate.open.set()

    gate.opens_behind(4, stop)  # three layers, and the head in the second of them
    asked = {"run": request.key, "record": 1, "head": 0}
    sent = messages(browser.get("/headlight/layers", params=asked).content)
    assert [header.get("layer") for header, _ in sent] == [0, 1, None, 2]
    with pytest.raises(RunCancelled):
        ticket.result()


def test_a_run_with_nothing_to_come_sends_nothing_and_a_place_it_has_not_is_refused_in_words(
    shared: LocalService, browser: TestClient
):
    gate = Gate(shared, layer=0)
    small = Request("minilm", ("A cat.",))
    shared.engine.run(small)
    for key in (small.key, "unknown"):
        answer = browser.get("/headlight/layers", params={"run": key, "record": 0, "head": 0})
        assert (answer.status_code, answer.content) == (204, b"")
    large = Request("minilm", ("Other words to look at. " * 20,))
    ticket = shared.engine.submit(large)
    assert gate.reached.wait(20)
    for asked, said in (
        ({"record": 6, "head": 0}, "record"),
        ({"record": 0, "head": 12}, "head"),
        ({"record": 0, "head": 0, "query": "x"}, "query"),
        ({"record": 0}, "head"),
    ):
        answer = browser.get("/headlight/layers", params={"run": large.key, **asked})
        assert answer.status_code == 400 and said in answer.text
    gate.open.set()
    ticket.result()


@pytest.mark.thorough
@pytest.mark.parametrize("stopped", [False, True])
def test_nobody_holds_the_queries_and_keys_of_a_run_that_has_ended(stopped: bool):
    request, live = Request("minilm", ("word " * 130,)), RunsInProgress()

    def shown() -> list[weakref.ref[Trace]]:
        end: Future[Trace] = Future()
        tell, found = live.watch(request, end), []

        def watch(so_far: Trace) -> None:
            found.append(weakref.ref(so_far))
            tell(so_far)

        run = core.trace(core.load("minilm"), request.texts[0], watch=watch)
        found.append(weakref.ref(run))
        assert all(future.result() for future in going(live, request.key).made)
        end.set_exception(RunCancelled("")) if stopped else end.set_result(run)
        assert live.run(request.key) is None
        return found

    def held() -> list[Trace | None]:
        gc.collect()
        return [trace() for trace in traces]

    traces = shown()
    for _ in range(100):  # who made the last thumbnail lets go of it a moment after it is there
        if held() == [None] * 8:
            break
        time.sleep(0.02)
    assert held() == [None] * 8  # also where nobody has taken the thumbnails
    assert len(live.take(request.key)) == (0 if stopped else 6)
