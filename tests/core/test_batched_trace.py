"""Short texts in one pass: each run is the one that its text leaves by itself, and who waits together waits once."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import core
from core import device
from core.errors import InterventionError, RunCancelled, TextError, TooLarge
from core.model.hooks import ReadHook, hooked
from core.model.text import from_ids
from core.run.request import Request
from core.run.trace import trace_batch
from core.run.trace_record import TraceRecord
from core.service import RunHandle, jobs
from core.service import engine as engine_module
from core.service.engine import Engine
from core.trace import Trace
from tests.core.conftest import make_loaded
from tests.core.test_engine import WORDS, Gate, engine, sentences
from tests.core.test_invariants import SAMPLE, name
from tests.thorough import part

IDS = ([3, 1, 4, 1, 5, 9, 2, 6], [27, 1, 8], [31, 4, 15, 9, 2, 6, 5, 3, 5, 8, 9], [7])


def check_alone(found: TraceRecord, alone: core.Trace) -> None:
    """That a run is in everything the one of its text by itself."""
    assert found.source == alone.source and found.texts == 1
    assert found.steps == alone.steps and found.predicted_bytes == alone.predicted_bytes
    assert found.nbytes == alone.nbytes
    assert found.residual_norms.keys() == alone.residual_norms.keys()
    for point, norms in found.residual_norms.items():
        torch.testing.assert_close(norms, alone.residual_norms[point], rtol=1e-4, atol=1e-4)
    for record, expected in zip(found.attention, alone.attention, strict=True):
        assert record.name == expected.name and torch.equal(record.mask(), expected.mask())
        torch.testing.assert_close(record.pattern(), expected.pattern(), rtol=0, atol=1e-5)
        torch.testing.assert_close(record.v, expected.v, rtol=1e-4, atol=1e-4)
        receipt = record.receipt()
        assert receipt.fused_error is not None and receipt.fused_error <= 1e-5 and receipt.rows == len(found.source)
    for record, expected in zip(found.positions, alone.positions, strict=True):
        assert torch.equal(record.places, expected.places)
        for mine, theirs in ((record.table(), expected.table()), (record.angles(), expected.angles())):
            assert (mine is None) == (theirs is None)
            if mine is not None and theirs is not None:
                torch.testing.assert_close(mine, theirs)
    every = torch.arange(len(found.source))
    torch.testing.assert_close(found.last_residual(every), alone.last_residual(every), rtol=1e-4, atol=1e-4)


@pytest.mark.thorough(but=7)
@pytest.mark.parametrize("hold", [True, False], ids=["held", "from another pass"])
@pytest.mark.parametrize(
    "config", part([c for c in SAMPLE if "n_decoder_layers" not in c or "n_encoder_layers" not in c], 3), ids=name
)
def test_each_run_is_that_of_its_text_alone(
    config: dict[str, Any], hold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hold:
        monkeypatch.setattr("core.run.trace.HELD_BYTES", 0)
        monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)
    loaded = make_loaded(**config)
    found = trace_batch(loaded, [from_ids(None, ids) for ids in IDS])
    assert [run.source.ids for run in found] == [tuple(ids) for ids in IDS]
    for run, ids in zip(found, IDS, strict=True):
        check_alone(run, core.trace(loaded, ids=ids))


def test_a_run_holds_nothing_of_the_others_and_asks_its_own_text_again() -> None:
    loaded = make_loaded(n_encoder_layers=2, position="relative", head="mlm")
    found = trace_batch(loaded, [from_ids(None, ids) for ids in IDS])
    for run, ids in zip(found, IDS, strict=True):
        for record in run.records:
            for kept in (record.batch_q, record.batch_k, record.values()):
                assert kept.untyped_storage().nbytes() == kept.nbytes
        alone = core.trace(loaded, ids=ids)
        point = "encoder.blocks.1.hook_mlp_out"
        assert torch.equal(run.activation(point), alone.activation(point))
        assert run.predictions(k=3).ids == alone.predictions(k=3).ids


def test_a_run_that_is_dropped_goes_although_the_others_stay() -> None:
    loaded = make_loaded()
    first, *others = trace_batch(loaded, [from_ids(None, ids) for ids in IDS])
    gone = weakref.ref(first.records[0].batch_q)
    del first
    gc.collect()
    assert gone() is None and len(others) == 3


def test_what_cannot_run_together_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = make_loaded()
    texts = [from_ids(None, ids) for ids in IDS]
    with (
        hooked(loaded.model, {"decoder.hook_final": lambda x: x * 2}),
        pytest.raises(InterventionError, match="by itself"),
    ):
        trace_batch(loaded, texts)
    seen: list[int] = []
    with hooked(loaded.model, {"decoder.hook_final": ReadHook(lambda x: seen.append(len(x)))}):
        trace_batch(loaded, texts)
    assert seen == [4], "one pass"
    with pytest.raises(TextError, match="positions for 37"):
        trace_batch(loaded, [texts[0], from_ids(None, [1] * 38)])
    monkeypatch.setattr(device, "free_bytes", lambda _: 1000)
    with pytest.raises(TooLarge, match="4 texts at once would need"):
        trace_batch(loaded, texts)


def waiting(*tickets: RunHandle[Trace]) -> None:
    while any(ticket.progress.stage != "waiting" for ticket in tickets):
        time.sleep(0.005)


def ask(shared: Engine, *texts: str, **more: Any) -> list[RunHandle[Trace]]:
    return [shared.submit(Request("one", (text,), **more)) for text in texts]


def test_short_texts_that_wait_run_in_one_pass_and_each_gets_its_own() -> None:
    gate = Gate()
    shared = engine(gate)
    ask(shared, "first")
    assert gate.begun.wait(10)
    texts = [f"{word} ran far {'away ' * i}from us" for i, word in enumerate(WORDS[:4])]
    tickets = ask(shared, *texts)
    edited = ask(shared, "the cat sat", interventions=(core.edits.Temperature(2.0),))
    waiting(*tickets, *edited)
    jobs = {job.request.texts[0]: job for job in shared._jobs.values() if not job.request.interventions}
    gate.open.set()
    for ticket, text in zip(tickets, texts, strict=True):
        run = ticket.result()
        assert run.source.text == text and shared.run(Request("one", (text,))) is run
        check_alone(run, core.trace(run.loaded, text))
        assert (jobs[text].layers_done, jobs[text].layers_total) == (2, 2)
    assert edited[0].result().interventions == (core.edits.Temperature(2.0),)
    shared._queue.submit(lambda: None).result()
    assert gate.layers == 2 + 2 + 2 + 2 * 4, "the first, four in one pass, the edited one, and four to compare"
    assert shared.status()["running_or_waiting"] == 0


def test_no_more_run_together_than_is_good_for_them() -> None:
    gate = Gate()
    shared = engine(gate)
    ask(shared, "first")
    assert gate.begun.wait(10)
    long = " ".join(WORDS * 2)  # more than twice as long as the others
    tickets = ask(shared, *(f"the {word} and {word}" for word in WORDS[:10]), long, long + " " * jobs.SHORT_TEXT_CHARS)
    waiting(*tickets)
    gate.open.set()
    runs = [ticket.result() for ticket in tickets]
    assert [len(run.source) for run in runs] == [4] * 10 + [32, 32]
    together = [run for run in runs if run.seconds == runs[0].seconds]
    assert together == runs[: engine_module.MAX_BATCH], "those that wait longest"
    assert gate.layers == 2 * (1 + 1 + 1 + 1 + 1), "the first, eight, two, and the two long ones"


def test_a_text_that_is_refused_or_left_takes_no_other_along() -> None:
    gate = Gate()
    shared = engine(gate)
    ask(shared, "first")
    assert gate.begun.wait(10)
    good, bad = ask(shared, "the cat sat", "")
    waiting(good, bad)
    gate.open.set()
    assert good.result().source.text == "the cat sat"
    with pytest.raises(TextError, match="empty"):
        bad.result()


def test_who_leaves_a_pass_that_others_wait_for_ends_alone() -> None:
    gate = Gate()
    shared = engine(gate)
    first = ask(shared, "first")[0]
    assert gate.begun.wait(10)
    stays, leaves, gone = ask(shared, "the cat sat", "on a mat", "and then")
    waiting(stays, leaves, gone)
    gone.cancel()
    first.future.add_done_callback(lambda _: gate.open.clear())  # before the next turn is taken
    gate.open.set()
    first.result()
    while leaves.progress.stage != "running":
        time.sleep(0.005)
    leaves.cancel()
    gate.open.set()
    assert stays.result().source.text == "the cat sat"
    for ticket in (leaves, gone):
        with pytest.raises(RunCancelled):
            ticket.result()
    assert shared.run(Request("one", ("on a mat",))).source.text == "on a mat"


def test_a_pass_that_nobody_waits_for_ends_at_its_next_layer() -> None:
    gate = Gate()
    shared = engine(gate)
    first = ask(shared, "first")[0]
    assert gate.begun.wait(10)
    tickets = ask(shared, "the cat sat", "on a mat")
    waiting(*tickets)
    first.future.add_done_callback(lambda _: gate.open.clear())
    gate.open.set()
    first.result()
    while tickets[1].progress.stage != "running":
        time.sleep(0.005)
    for ticket in tickets:
        ticket.cancel()
    gate.open.set()
    for ticket in tickets:
        with pytest.raises(RunCancelled):
            ticket.result()
    assert gate.layers == 2 + 1 + 2, (
        "the first, a layer of both, and one of each by itself, where it hears that it is over"
    )


def test_a_second_pass_over_one_text_does_not_ask_who_waited_for_the_others() -> None:
    gate = Gate()
    shared = engine(gate)
    ask(shared, "first")
    assert gate.begun.wait(10)
    stays, other = ask(shared, "the cat sat", "on a mat")
    waiting(stays, other)
    jobs = [shared._jobs[ticket.key] for ticket in (stays, other)]
    gate.open.set()
    run = stays.result()
    other.result()
    for job in jobs:
        job.cancelled.set()
    point = "decoder.blocks.1.hook_mlp_out"
    assert torch.equal(run.activation(point), core.trace(run.loaded, "the cat sat").activation(point))


def test_texts_that_many_threads_ask_for_at_once_are_each_their_own() -> None:
    shared = engine(workers=2)
    texts = sentences(120)

    def visit(text: str) -> bool:
        run = shared.run(Request("one", (text,)))
        return run.source.text == text and torch.equal(
            run.attention[0].mask(), core.trace(run.loaded, text).attention[0].mask()
        )

    with ThreadPoolExecutor(24) as pool:
        assert all(pool.map(visit, texts))


def test_what_is_edited_written_on_or_has_a_target_runs_by_itself() -> None:
    assert not jobs.is_short(Request("one", ("the cat",), "le chat"))
    assert not jobs.is_short(Request("one", ("the cat",), write=3))
    assert not jobs.is_short(Request("one", ("the cat", "the mat")))
    assert not jobs.is_short(Request("one", ("the cat",), None, (core.edits.Temperature(2.0),)))
    assert jobs.is_short(Request("one", ("the cat",)))
