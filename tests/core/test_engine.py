"""Engine: visitors never mix, nothing is done twice, everything is bounded, and refusals say both numbers."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

import core
from core import device
from core.checkpoints import Loaded
from core.errors import CheckpointError, GenerationError, RunCancelled, ServerBusy, TextError, TooLarge, UnknownRun
from core.run import chunks
from core.run.request import Progress, Request, RunFinished
from core.service import jobs
from core.service.engine import Engine
from core.write.generate import CONTINUATION, candidates, sample_token, with_continuation
from tests.core.conftest import make_loaded
from tests.thorough import how_many

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "then", "it", "ran", "far", "away", "from", "all", "of", "us"]


def word_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, **{w: i + 1 for i, w in enumerate(WORDS)}}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


class Loader:
    """Stands in for core.load: makes tiny models, counts, and can be slow."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self.calls = seconds, []  # type: ignore[var-annotated]

    def __call__(self, model_id: str, **_: Any) -> Loaded:
        self.calls.append(model_id)
        time.sleep(self.seconds)
        if model_id == "missing":
            raise CheckpointError("There is no model called missing.")
        loaded = make_loaded(seed=len(model_id), n_decoder_layers=2)
        return replace(loaded, tokenizer=word_tokenizer())


def engine(loader: Callable[..., Loaded] | None = None, **options: Any) -> Engine:
    return Engine(device=torch.device("cpu"), load_model=loader or Loader(), **options)


def sentences(n: int) -> list[str]:
    return [" ".join(WORDS[(i * 7 + j * (i % 5 + 1)) % len(WORDS)] for j in range(3 + i % 11)) for i in range(n)]


def test_traces_from_threads_are_those_of_a_queue() -> None:
    loaded = Loader()("one")
    edits = [
        (),
        (core.edits.Ablate("decoder", 0, 1),),
        (core.edits.Temperature(2.0),),
        (core.edits.ShufflePositions(3),),
    ]
    jobs = [(text, edits[i % 4]) for i, text in enumerate(sentences(how_many(300, 5)))]

    def run(job: tuple[str, Any]) -> list[torch.Tensor]:
        trace = core.trace(loaded, job[0], interventions=job[1])
        return [record.pattern() for record in trace.attention] + [trace.last_residual(torch.tensor([0, 1]))]

    serial = [run(job) for job in jobs]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(run, jobs))
    different = sum(
        len(a) != len(b) or any(not torch.equal(x, y) for x, y in zip(a, b, strict=True))
        for a, b in zip(serial, together, strict=True)
    )
    assert different == 0


def test_one_engine_serves_many_visitors_each_their_own() -> None:
    shared = engine(workers=2)
    texts = sentences(60)

    def visit(text: str) -> bool:
        run = shared.run(Request("one", (text,)))
        return run.source.text == text and run.attention[0].n_query == len(text.split())

    with ThreadPoolExecutor(12) as pool:
        assert all(pool.map(visit, texts * 3))


def test_the_same_request_runs_once_and_a_model_loads_once() -> None:
    loader = Loader(seconds=0.05)
    shared = engine(loader)
    request = Request("one", ("the cat sat",))
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(shared.run, [request] * 8))
    assert loader.calls == ["one"]
    assert all(run is runs[0] for run in runs)


def test_a_request_names_its_run() -> None:
    a = Request("one", ("the cat",), None, (core.edits.Ablate("decoder", 0, 1),))
    b = Request("one", ("the cat",), None, (core.edits.Ablate("decoder", 0, 2),))
    assert a.key == Request("one", ("the cat",), None, (core.edits.Ablate("decoder", 0, 1),)).key
    assert len({a.key, b.key, Request("one", ("the", "cat")).key, Request("one", ("the cat",), "").key}) == 4
    assert len(a.key) == 64 and a.key.isalnum()


def test_old_traces_are_dropped_and_come_back_by_their_key() -> None:
    shared = engine(max_traces=3)
    requests = [Request("one", (text,)) for text in sentences(10)]
    first = shared.run(requests[0])
    for request in requests[1:]:
        shared.run(request)
    assert shared.status()["traces"] == 3
    again = shared.trace(requests[0].key)
    assert again is not first and torch.equal(again.attention[0].pattern(), first.attention[0].pattern())
    with pytest.raises(UnknownRun):
        shared.trace("0" * 64)


def test_traces_are_bounded_in_bytes_as_well() -> None:
    shared = engine(max_trace_bytes=1)
    for text in sentences(5):
        shared.run(Request("one", (text,)))
    assert shared.status()["traces"] == 1  # the one somebody is looking at


def test_the_bytes_of_all_traces_are_always_those_that_are_held() -> None:
    shared = engine(max_traces=3)
    held = []
    for text in sentences(8):
        held.append(shared.run(Request("one", (text,))).nbytes)
        assert shared.status()["trace_bytes"] == sum(held[-3:])
    shared = engine(max_models=1, max_model_bytes=0)
    shared.run(Request("one", ("the cat",)))
    size = shared.run(Request("other", ("the cat",))).nbytes
    assert shared.status()["trace_bytes"] == size


def test_of_traces_that_were_let_go_only_the_newest_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.service.engine.MAX_RELEASED_TRACES", 2)
    shared = engine()
    keys = [Request("one", (text,)).key for text in sentences(6)]
    runs = [shared.run(Request("one", (text,))) for text in sentences(6)]
    for key in keys[:2]:
        shared.release(key)
    shared.release(keys[1])  # by another visitor as well
    assert shared.status()["traces"] == 6
    assert shared.trace(keys[0]) is runs[0]  # somebody still looks at this one
    for key in keys[2:4]:
        shared.release(key)
    assert shared.status()["traces"] == 5
    assert [shared.trace(key) is run for key, run in zip(keys, runs, strict=True)] == [True, False, *4 * [True]]
    shared.release("0" * 64)  # of no run
    assert shared.status()["traces"] == 6
    assert shared.status()["trace_bytes"] == sum(run.nbytes for run in runs)


def test_requests_are_remembered_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = engine()
    first, *others = (Request("one", (text,)) for text in sentences(10))
    monkeypatch.setattr("core.service.engine.MAX_REMEMBERED_BYTES", 5 * first.nbytes)
    shared.run(first)
    assert shared.trace(first.key).texts == 1
    for request in others:
        shared.run(request)
    with pytest.raises(UnknownRun):
        shared.trace(first.key)
    assert shared.trace(others[-1].key).texts == 1


def test_a_request_that_is_itself_too_large_is_refused_with_both_numbers() -> None:
    with pytest.raises(TooLarge, match="would need 9 MiB, and 8 MiB are free"):
        engine().submit(Request("one", ("a" * (9 << 20),)))


def test_a_run_that_does_not_fit_beside_old_ones_takes_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = engine()
    shared.run(Request("one", ("the cat",)))

    monkeypatch.setattr(device, "free_bytes", lambda _: 0 if shared._traces else 1 << 40)
    assert shared.run(Request("one", ("on a mat",))).source.text == "on a mat"
    monkeypatch.setattr(device, "free_bytes", lambda _: 1 << 40)
    assert shared.status()["traces"] == 1
    monkeypatch.setattr(device, "free_bytes", lambda _: 0)
    with pytest.raises(TooLarge, match="0 MiB are free"):
        shared.run(Request("one", ("and then it ran",)))


def test_an_allocator_that_fails_in_a_run_or_a_load_becomes_a_refusal() -> None:
    def fails(*_: Any, **__: Any) -> Loaded:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 2147483648 bytes.")

    with pytest.raises(TooLarge, match=r"Loading one needed 2,048 MiB more, and .* MiB are free"):
        engine(fails).run(Request("one", ("the cat",)))

    def breaks(name: str, **options: Any) -> Loaded:
        loaded = Loader()(name, **options)
        loaded.model.decoder.blocks[0].register_forward_pre_hook(fails)  # type: ignore[union-attr]
        return loaded

    with pytest.raises(TooLarge, match="This run needed 2,048 MiB more"):
        engine(breaks).run(Request("one", ("the cat",)))


def test_what_nobody_asks_about_is_given_back_and_runs_again_for_who_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(
        "core.service.engine.time", SimpleNamespace(monotonic=lambda: now, thread_time=time.thread_time)
    )
    shared = engine()
    away, stays = (Request("one", (text,)) for text in sentences(2))
    before = shared.run(away).attention[0].pattern()
    shared.run(stays)
    now += 50
    shared.run(stays)  # somebody looks at it
    now += 20
    shared.drop_idle(60)
    assert shared.status()["traces"] == 1
    assert torch.equal(shared.trace(away.key).attention[0].pattern(), before)
    assert shared.status()["traces"] == 2
    now += 61
    shared.drop_idle(60)
    assert (shared.status()["traces"], shared.status()["trace_bytes"]) == (0, 0)


def test_an_engine_looks_for_such_traces_by_itself_and_goes_when_it_is_let_go() -> None:
    shared = engine(idle_seconds=0.02)
    shared.run(Request("one", ("the cat sat",)))
    until = time.monotonic() + 20
    while shared.status()["traces"]:
        assert time.monotonic() < until
        time.sleep(0.005)
    known = weakref.ref(shared)
    del shared
    while known() is not None:
        assert time.monotonic() < until
        gc.collect()
        time.sleep(0.005)
    assert known() is None


def test_a_dropped_model_takes_its_traces_along() -> None:
    loader = Loader()
    shared = engine(loader, max_models=1, max_model_bytes=0)
    shared.run(Request("one", ("the cat",)))
    shared.run(Request("other", ("the cat",)))
    assert shared.status()["models"] == ["other"] and shared.status()["traces"] == 1


def test_errors_reach_everybody_who_waits_and_are_not_kept() -> None:
    loader = Loader(seconds=0.05)
    shared = engine(loader)

    def visit(_: int) -> str:
        with pytest.raises(CheckpointError) as caught:
            shared.run(Request("missing", ("the cat",)))
        return str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(visit, range(4))) == {"There is no model called missing."}
    with pytest.raises(TextError, match="empty"):
        shared.run(Request("one", ("",)))
    assert shared.status()["traces"] == 0 and shared.status()["running_or_waiting"] == 0
    assert shared.run(Request("one", ("the cat",))).texts == 1


def test_a_crowd_is_asked_to_wait() -> None:
    gate = threading.Event()

    def slow(model_id: str, **_: Any) -> Loaded:
        gate.wait(10)
        return Loader()(model_id)

    shared = engine(slow, max_waiting=2)
    texts = sentences(3)
    with ThreadPoolExecutor(3) as pool:
        visits = [pool.submit(shared.run, Request("one", (text,))) for text in texts]
        while shared.status()["running_or_waiting"] < 3:
            time.sleep(0.005)
        with pytest.raises(ServerBusy, match="3 sentences are waiting"):
            shared.run(Request("one", ("us all",)))
        gate.set()
        assert [visit.result().texts for visit in visits] == [1, 1, 1]


def test_typing_goes_before_questions_and_these_before_background_work() -> None:
    gate = Gate()
    shared = engine(gate)
    first = shared.submit(Request("one", ("first",)))
    assert gate.begun.wait(10)
    done: list[str] = []
    shared.begin(Request("one", ("aside",)), background=True)
    turns = [shared.schedule(partial(done.append, f"aside {i}"), background=True) for i in range(2)]
    turns.append(shared.schedule(partial(done.append, "question")))
    typed = shared.submit(Request("one", ("typed",)))
    typed.future.add_done_callback(lambda _: done.append("typed"))
    assert typed.progress.ahead == 1
    aside = shared.submit(Request("one", ("aside",)))  # now somebody looks at it
    aside.future.add_done_callback(lambda _: done.append("a run"))
    gate.open.set()
    for turn in turns:
        turn.result(10)
    assert done == ["a run", "typed", "question", "aside 0", "aside 1"] and first.done()
    failing = shared.schedule(partial(int, "x"), background=True)
    with pytest.raises(ValueError, match="invalid literal"):
        failing.result(10)
    assert shared.status()["running_or_waiting"] == 0


def test_who_waits_hears_how_many_are_before() -> None:
    gate = Gate()
    shared = engine(gate)
    first, second, third = (shared.submit(Request("one", (text,))) for text in sentences(3))
    assert gate.begun.wait(10)
    while (second.progress.stage, third.progress.stage) != ("waiting", "waiting"):
        time.sleep(0.005)
    assert (first.progress.ahead, second.progress.ahead, third.progress.ahead) == (0, 1, 2)
    second.cancel()
    assert third.progress.ahead == 1
    gate.open.set()
    assert third.result().texts == 1 and third.progress.ahead == 0


def test_a_long_text_lets_shorter_ones_go_first_and_its_place_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "LONG_TEXT_DELAY_SECONDS", 60.0)
    gate, done = Gate(), []
    shared = engine(gate, on_finished=lambda told: done.append(told.tokens))
    first = shared.submit(Request("one", ("first",)))
    assert gate.begun.wait(10)
    texts = ("the cat sat on" + jobs.LONG_TEXT_CHARS * " ", "a mat", "on a mat")
    waiting = [shared.submit(Request("one", (text,))) for text in texts]
    while any(ticket.progress.stage != "waiting" for ticket in waiting):
        time.sleep(0.005)
    assert [ticket.progress.ahead for ticket in waiting] == [3, 1, 2]
    gate.open.set()
    for ticket in (first, *waiting):
        ticket.result()
    assert done == [1, 2, 3, 4]


def test_an_operator_hears_of_every_run_and_of_no_text() -> None:
    heard: list[RunFinished] = []
    shared = engine(Loader(), on_finished=heard.append)
    with pytest.raises(TextError):
        shared.run(Request("one", ("",)))
    found = shared.run(Request("one", ("the cat",)))
    refused, done = heard
    assert (refused.outcome, refused.tokens, refused.nbytes) == ("TextError", 0, 0)
    assert (done.model_id, done.outcome, done.tokens, done.nbytes) == ("one", "done", len(found.source), found.nbytes)
    assert done.waited >= 0 and done.ran > 0 and "cat" not in repr(heard)
    shared.run(Request("one", ("the cat",)))
    assert len(heard) == 2  # it was there already


def test_a_mistake_beside_a_run_is_logged_and_keeps_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    class Failing(Loader):
        def __call__(self, model_id: str, **given: Any) -> Loaded:
            gate.wait(20)
            return super().__call__(model_id, **given)

    gate, told = threading.Event(), []
    shared = engine(Failing(), on_finished=fail)
    request = Request("one", ("the cat",))
    ticket = shared.submit(request, fail)  # of a page that failed,
    shared.submit(request, lambda: told.append(1))  # and of another one
    gate.set()
    assert ticket.result().source.text == "the cat" and told
    with pytest.raises(TextError):
        shared.run(Request("one", ("",)))
    assert shared.run(Request("one", ("the mat",))).source.text == "the mat"
    assert shared.status()["running_or_waiting"] == 0
    assert "A run listener failed" in caplog.text and "The on_finished callback failed" in caplog.text


def test_looking_for_idle_traces_goes_on_after_a_mistake(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    again, times, drop = threading.Event(), [], Engine.drop_idle

    def fail_once(self: Engine, seconds: float) -> None:
        times.append(seconds)
        if len(times) == 1:
            raise ZeroDivisionError
        drop(self, seconds)
        again.set()

    monkeypatch.setattr(Engine, "drop_idle", fail_once)
    shared = engine(idle_seconds=0.02)
    assert again.wait(20) and shared.run(Request("one", ("the cat",)))
    assert "failed; retrying" in caplog.text


def test_what_does_not_fit_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "free_bytes", lambda device: 3 << 20)
    loaded = make_loaded(position="rotary")
    ran: list[int] = []
    with core.hooked(loaded.model, {"decoder.hook_final": lambda x: ran.append(1)}), pytest.raises(TooLarge) as caught:
        core.trace(loaded, ids=[1] * 20_000)
    assert not ran
    sentence = str(caught.value)
    assert (
        sentence.startswith("A run on 20,000 tokens would need ")
        and "3 MiB are free" in sentence
        and "shorter" in sentence
    )


# runs that are not waited for


class Gate:
    """Stops a run at its first layer until it is opened, and counts the layers that ran."""

    def __init__(self) -> None:
        self.begun, self.open, self.layers = threading.Event(), threading.Event(), 0

    def __call__(self, model_id: str, **options: Any) -> Loaded:
        loaded = Loader()(model_id, **options)
        for block in loaded.model.decoder.blocks:  # type: ignore[union-attr]
            block.register_forward_pre_hook(self.count)
        return loaded

    def count(self, *_: Any) -> None:
        self.layers += 1
        self.begun.set()
        assert self.open.wait(10)


def test_a_submitted_run_ends_as_a_run_that_is_waited_for() -> None:
    shared = engine()
    request = Request("one", ("the cat sat",))
    ticket = shared.submit(request)
    assert ticket.wait(10) and ticket.done() and ticket.progress == Progress("done")
    assert ticket.result() is shared.run(request)
    assert shared.submit(request).result() is ticket.result()
    assert shared.status()["running_or_waiting"] == 0


def test_a_run_says_how_far_it_is_and_shows_what_it_has_left() -> None:
    gate, shown = Gate(), []
    shared = engine(gate, on_progress=lambda request, end, _: lambda so_far: shown.append((request.texts, end, so_far)))
    ticket = shared.submit(Request("one", ("the cat sat",)))
    assert gate.begun.wait(10) and ticket.progress == Progress("running", layers_done=0, layers_total=2)
    [(texts, end, start)] = shown
    assert texts == ("the cat sat",) and not end.done() and start.source.text == "the cat sat" and start.attention == ()
    with pytest.raises(RuntimeError, match="not finished yet"):
        start.last_residual(torch.tensor([0]))
    job = shared._jobs[ticket.key]
    gate.open.set()
    run = ticket.result()
    assert (job.layers_done, job.layers_total) == (2, 2)
    assert [len(so_far.attention) for *_, so_far in shown] == [0, 1, 2]
    for record, kept in zip(shown[-1][2].attention, run.attention, strict=True):
        assert torch.equal(record.pattern(), kept.pattern())
    assert end.result() is run


def test_what_counts_its_layers_is_no_edit_of_a_run() -> None:
    run = engine().run(Request("one", ("the cat sat on a mat",)))
    assert run.forward.outside and run.forward.edited == frozenset()
    assert "edit" not in {part.part for part in run.logit_attribution().parts}


def test_a_text_without_room_is_read_in_parts_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request("one", (" ".join(WORDS),), interventions=(core.edits.Ablate("decoder", 0, 1),))
    whole = engine().run(request)
    monkeypatch.setattr(chunks, "SIZES", (6,))
    monkeypatch.setattr(chunks, "budget", lambda device, free: whole.predicted_bytes - 1)
    monkeypatch.setattr(jobs, "NOTIFY_INTERVAL_SECONDS", 0.0)
    seen: list[tuple[int, int, int]] = []
    begin = threading.Event()

    class Waits(Loader):
        def __call__(self, model_id: str, **given: Any) -> Loaded:
            assert begin.wait(20)
            return super().__call__(model_id, **given)

    shared = engine(Waits())

    def look() -> None:
        now = ticket.progress
        if now.layers_done:
            seen.append((now.parts, now.part, now.layers_done))

    ticket = shared.submit(request, look)
    begin.set()
    run = ticket.result()
    assert (whole.chunks, run.chunks) == (1, 3)
    steps = [step for i, step in enumerate(seen) if i == 0 or step != seen[i - 1]]
    assert steps == [(3, part, layers) for part in range(3) for layers in (1, 2)]
    for record, kept in zip(run.attention, whole.attention, strict=True):
        torch.testing.assert_close(record.pattern(), kept.pattern(), rtol=0, atol=2e-6)


def test_a_submitted_run_that_is_refused_says_why_to_everybody() -> None:
    shared = engine()
    for ticket in [shared.submit(Request("missing", ("the cat",))) for _ in range(2)]:
        with pytest.raises(CheckpointError, match="missing"):
            ticket.result()


def test_cancelling_a_run_that_has_begun_ends_it_at_the_next_layer() -> None:
    gate = Gate()
    shared = engine(gate)
    request = Request("one", ("the cat sat",))
    ticket = shared.submit(request)
    assert gate.begun.wait(10) and ticket.progress.stage == "running"
    ticket.cancel()
    ticket.cancel()  # twice is once
    gate.open.set()
    with pytest.raises(RunCancelled):
        ticket.result()
    assert gate.layers == 1
    assert shared.run(request).source.text == "the cat sat"  # whoever asks again gets it


def test_cancelling_a_run_that_waits_means_that_it_never_begins() -> None:
    gate = Gate()
    shared = engine(gate)
    first = shared.submit(Request("one", ("the cat sat",)))
    assert gate.begun.wait(10)
    second = shared.submit(Request("one", ("on a mat",)))
    second.cancel()
    gate.open.set()
    assert first.result().source.text == "the cat sat"
    with pytest.raises(RunCancelled):
        second.result()
    assert gate.layers == 2  # both of the first run


def test_a_run_that_somebody_else_waits_for_goes_on() -> None:
    gate = Gate()
    shared = engine(gate)
    request = Request("one", ("the cat sat",))
    mine, theirs = shared.submit(request), shared.submit(request)
    with ThreadPoolExecutor(1) as pool:
        assert gate.begun.wait(10)
        blocked = pool.submit(shared.run, request)
        mine.cancel()
        gate.open.set()
        assert theirs.result() is blocked.result()


def test_one_who_waits_no_longer_is_counted_once_however_often_that_is_said() -> None:
    """A page that closes, its Cancel and its next request may say so at once, each in a thread of its own."""
    gate = Gate()
    shared = engine(gate)
    request = Request("one", ("the cat sat",))
    mine, theirs = shared.submit(request), shared.submit(request)
    together = threading.Barrier(4)

    def cancel() -> None:
        together.wait(10)
        mine.cancel()

    with ThreadPoolExecutor(4) as pool:
        assert gate.begun.wait(10)
        for done in [pool.submit(cancel) for _ in range(4)]:
            done.result()
    assert mine.cancelled and not theirs.cancelled and shared._jobs[request.key].n_waiters == 1
    gate.open.set()
    assert theirs.result().source.text == "the cat sat"


def test_a_download_shows_its_bytes_and_keeps_no_other_run_waiting() -> None:
    told, arrive = threading.Event(), threading.Event()

    def loader(model_id: str, *, progress: core.checkpoints.Progress, **options: Any) -> Loaded:
        if model_id == "far":
            progress("model.safetensors", 3, 7)
            told.set()
            assert arrive.wait(10)
        return Loader()(model_id, **options)

    shared = engine(loader)
    ticket = shared.submit(Request("far", ("the cat sat",)))
    assert shared.run(Request("near", ("on a mat",))).source.text == "on a mat"
    assert told.wait(10)
    assert ticket.progress == Progress("loading", "model.safetensors", 3, 7)
    assert shared.loaded_model("far") is None and shared.loaded_model("near") is not None
    arrive.set()
    assert ticket.result().source.text == "the cat sat"
    assert shared.loaded_model("far") is not None


def test_small_models_stay_however_many_there_are() -> None:
    shared = engine(Loader())
    for name in ("one", "other", "third"):
        shared.run(Request(name, ("the cat",)))
    assert shared.max_models == 2 and shared.status()["models"] == ["one", "other", "third"]


# what a model writes before it runs


def test_a_decoder_writes_behind_the_text_and_the_run_is_of_both() -> None:
    shared = Engine(device=torch.device("cpu"))
    asked = Request("copy", ("dabbi=",), write=20)
    run = shared.run(asked)
    assert run.source.text == "dabbi=dabbi"
    plain = shared.run(Request("copy", ("dabbi=dabbi",)))
    assert torch.equal(run.attention[1].pattern(), plain.attention[1].pattern())
    assert len({asked.key, Request("copy", ("dabbi=",)).key, Request("copy", ("dabbi=",), write=2).key}) == 3
    assert shared.run(Request("copy", ("dabbi=",), write=2)).source.text == "dabbi=da"


def test_a_decoder_draws_what_it_writes_and_the_same_each_time() -> None:
    story = "Once upon a time there was a"
    loaded = core.load("storyteller")
    drawn = core.generate(loaded, story, max_tokens=12, temperature=0.7, top_k=40, seed=1)[0].text
    assert drawn != core.generate(loaded, story, max_tokens=12)[0].text
    for _ in range(2):
        shared = Engine(device=torch.device("cpu"))
        assert shared.run(Request("storyteller", (story,), write=12)).source.text == story + drawn


def test_writing_ends_where_the_positions_do() -> None:
    shared = Engine(device=torch.device("cpu"))
    n_ctx = core.load("copy").config.n_ctx
    assert len(shared.run(Request("copy", ("abcd",), write=1000)).source) == n_ctx
    full = "a" * (n_ctx - 1)  # and <s>
    assert shared.run(Request("copy", (full,), write=5)).source.text == full


def test_what_cannot_write_says_so() -> None:
    shared = Engine(device=torch.device("cpu"))
    with pytest.raises(GenerationError, match="cannot continue it"):
        shared.run(Request("minilm", ("A cat.",), write=5))
    with pytest.raises(GenerationError, match="One text"):
        shared.run(Request("copy", ("ab=", "cd="), write=5))


def test_writing_can_be_stopped() -> None:
    seen: list[int] = []

    def look() -> None:
        seen.append(1)
        if len(seen) == 3:
            raise RunCancelled("This run was cancelled.")

    with pytest.raises(RunCancelled):
        with_continuation(core.load("copy"), Request("copy", ("dabbi=",), write=20), look)
    assert len(seen) == 3


def test_an_edited_run_is_continued_by_the_edited_model():
    """Every token is drawn from what a trace of all before it, with the same edits, gives; and others come than without them."""
    loaded, text, edits = (
        core.load("storyteller"),
        "Once upon a time there was a",
        (core.edits.Ablate("decoder", 1, 0),),
    )
    asked = Request("storyteller", (text,), interventions=edits, write=8)
    (written,), _ = with_continuation(loaded, asked)
    assert loaded.model.head is not None
    ids = list(core.trace(loaded, text).source.ids)
    generator = torch.Generator().manual_seed(CONTINUATION["seed"])
    for _ in range(8):
        run = core.trace(loaded, ids=ids, interventions=edits)
        logits = loaded.model.head(run.last_residual(torch.tensor([len(ids) - 1])))[:, 0].float()
        draw = torch.rand(1, 1, generator=generator, dtype=torch.float64)
        ids.append(int(sample_token(*candidates(logits, CONTINUATION["temperature"], CONTINUATION["top_k"]), draw)))
    assert core.trace(loaded, written).source.ids == tuple(ids)
    (plain,), _ = with_continuation(loaded, Request("storyteller", (text,), write=8))
    assert plain != written
