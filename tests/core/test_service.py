"""The Service of an engine: its answers are core's numbers as plain data, nobody waits for somebody else, and errors are sentences."""

from __future__ import annotations

import asyncio
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pytest
import torch

import core
from core import aggregate, measures
from core import heads as heads_of_a_run
from core.engine import Job
from core.errors import Busy, Refused, RunCancelled, TextError, TooLarge, Unknown
from core.rules import REASONS
from core.service import HIDDEN, Calls, Kept, LocalService, MapTransform, RunDone, Service, maps, word_groups
from core.service.answers import HeadDone, LayerDone
from core.service.heads import values_of
from core.trace import Trace
from tests.core.conftest import make_loaded
from tests.core.test_engine import WORDS, Gate, Loader, word_tokenizer

T = TypeVar("T")
TEXT = "the cat sat on a mat and the cat ran far away from all of us"
REQUEST = core.Request("one", (TEXT,))
CONFIGS: dict[str, dict[str, Any]] = {
    "encoder": {"n_encoder_layers": 2},
    "decoder": {"n_decoder_layers": 3, "window": 4, "windowed_layers": (1,)},
    "grouped": {"n_decoder_layers": 2, "n_kv_heads": 2, "position": "rotary"},
    "pair": {"n_encoder_layers": 2, "n_decoder_layers": 2, "head": "lm"},
}


def loader(name: str, **_: Any) -> core.Loaded:
    loaded = make_loaded(seed=3, **({"n_heads": 4, "n_ctx": 512} | CONFIGS.get(name, {"n_decoder_layers": 2})))
    return replace(loaded, tokenizer=word_tokenizer())


def service(load: Callable[..., core.Loaded] = loader, **options: Any) -> LocalService:
    return LocalService(core.Engine(device=torch.device("cpu"), load_model=load, **options))


def ask(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


def run_of(shared: LocalService, request: core.Request = REQUEST) -> Trace:
    return shared.engine.run(request)


def assert_plain(value: object, path: str = "answer") -> None:
    """Refuses everything but frozen records of text, numbers, bytes, tuples, dicts and numpy arrays."""
    if value is None or isinstance(value, str | int | float | bool | bytes):
        return
    if isinstance(value, np.ndarray):
        assert value.dtype.kind in "fiub", f"{path}: {value.dtype}"
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            assert_plain(part, f"{path}[{i}]")
    elif isinstance(value, dict):
        for key, part in value.items():
            assert isinstance(key, str), path
            assert_plain(part, f"{path}[{key!r}]")
    else:
        assert is_dataclass(value) and type(value).__dataclass_params__.frozen, f"{path} is a {type(value)}"  # type: ignore[attr-defined]
        for field in fields(value):
            assert_plain(getattr(value, field.name), f"{path}.{field.name}")


async def everything(shared: Service, request: core.Request, site: str) -> dict[str, Any]:
    """Every answer that a service gives of one run."""
    key = await shared.submit(request)
    of = MapTransform(0, 1)
    found: dict[str, Any] = {
        "progress": tuple([now async for now in shared.follow(key)]),
        "facts": await shared.facts(key),
        "tile": await shared.tile(key, of, (0, 3), (0, 3)),
        "row": await shared.row(key, of, 2),
        "column": await shared.column(key, of, 2),
        "cells": await shared.cells(key, of, (0, 3), (1, 2)),
        "thumbnails": await shared.thumbnails(key),
        "heads": await shared.heads(key),
        "scores": await shared.scores(key, 0, 1, 2),
        "measures": await shared.measures(key, site),  # type: ignore[arg-type]
        "norms": await shared.norms(key, site),  # type: ignore[arg-type]
        "proof": await shared.proof(key, 0),
        "status": {name: part for name, part in (await shared.status()).items() if name != "models"},
        "config": await shared.model(request.model_id),
    }
    stack = found["facts"].records[0].stack
    for what in ("q", "k", "scores", "mask", "weights", "z", "position", "embed", "final", "resid_pre"):
        found[f"values of {what}"] = await shared.values(key, stack, 0, "attn", what, 1, 48)
    return found


@pytest.mark.parametrize("name", ["encoder", "decoder", "pair"])
def test_every_answer_is_plain_data_that_can_travel(name: str) -> None:
    target = "the mat" if name == "pair" else None
    answers = ask(
        everything(service(), core.Request(name, (TEXT,), target), "decoder" if name == "decoder" else "encoder")
    )
    for what, answer in answers.items():
        assert_plain(answer, what)
        again = pickle.loads(pickle.dumps(answer))
        assert type(again) is type(answer)
    with pytest.raises(AssertionError, match="Tensor"):
        assert_plain((torch.zeros(1),))
    with pytest.raises(AssertionError, match="function"):
        assert_plain({"a": lambda: 1})


@pytest.mark.parametrize(
    "error", [Refused, Busy, Unknown, RunCancelled, TooLarge, TextError], ids=lambda error: error.__name__
)
def test_every_refusal_can_travel(error: type[Refused]) -> None:
    there = pickle.loads(pickle.dumps(error("A sentence.")))
    assert type(there) is error and str(there) == "A sentence."


@pytest.mark.parametrize("name", list(CONFIGS))
def test_facts_are_those_of_the_trace(name: str) -> None:
    shared = service()
    request = core.Request(name, (TEXT,), "the mat" if name == "pair" else None)
    run, facts = run_of(shared, request), ask(shared.facts(request.key))
    assert facts.key == request.key and facts.config == run.config and facts.spec == run.spec
    assert (facts.source, facts.target, facts.steps) == (run.source, run.target, run.steps)
    assert (facts.device, facts.dtype, facts.seconds) == ("cpu", "float32", run.seconds)
    for fact, record in zip(facts.records, run.attention, strict=True):
        for field in fields(fact):
            assert getattr(fact, field.name) == getattr(record, field.name), field.name
    for i, record in enumerate(run.attention):
        assert facts.tokens_of(i) == run.tokens_of(record)
    assert facts.residual_norms is not None and run.resid.keys() == facts.residual_norms.keys()
    assert facts.weights == sum(r.n_heads * r.n_query * r.n_key for r in run.attention)


def close(found: np.ndarray, true: torch.Tensor) -> bool:
    return found.shape == tuple(true.shape) and bool(np.abs(found - true.float().numpy()).max() < 1e-6)


@pytest.mark.parametrize("name", ["encoder", "decoder", "grouped"])
def test_numbers_are_those_of_the_records(name: str) -> None:
    shared, request = service(), core.Request(name, (TEXT,))
    run, key = run_of(shared, request), request.key
    site = "encoder" if name == "encoder" else "decoder"
    record = run.attention[1]
    of = MapTransform(1, 3)
    tile = ask(shared.tile(key, of, (2, 9), (1, 12)))
    assert close(tile.values, record.pattern(3, slice(2, 9), slice(1, 12))[0]) and tile.exact
    row = ask(shared.row(key, of, 5))
    assert close(row.values, record.row(3, 5)) and row.entropy == pytest.approx(
        float(measures.entropy(record.row(3, 5)))
    )
    assert close(ask(shared.column(key, of, 2)).values, record.pattern(3)[0, :, 2])
    cells = ask(shared.cells(key, of, (1, 16), (0, 16)))
    assert close(cells.values, record.pattern(3)[0, 1:])
    scores = ask(shared.scores(key, 1, 3, 5))
    assert close(scores.raw, record.raw(3, 5)[0, 0]) and close(scores.scaled, record.scores(3, 5)[0, 0])
    heads = ask(shared.heads(key))[site]  # type: ignore[index]
    assert close(heads.weights, torch.stack([r.pattern() for r in run.attention]))
    assert close(ask(shared.norms(key, site)), torch.stack([r.value_norms() for r in run.attention]))  # type: ignore[arg-type]
    assert ask(shared.proof(key, 1)) == record.receipt()
    for small, r in zip(ask(shared.thumbnails(key)), run.attention, strict=True):
        assert close(small.values, r.thumbnail(32).values) and small.how == r.thumbnail(32).how
    assert ask(shared.roles(key)) == heads_of_a_run.roles_of(run)
    assert ask(shared.openings(key)) == heads_of_a_run.openings(run)
    assert ask(shared.opening(key, 1, 3)) == heads_of_a_run.opening_of(run, 1, 3)
    with pytest.raises(Refused, match="no head 99"):
        ask(shared.opening(key, 1, 99))
    if run.loaded.model.head is not None:
        assert ask(shared.predictions(key, [3], 4)) == run.predictions([3], 4)


@pytest.mark.parametrize("kind", ["mean", "max", "rollout", "value"])
def test_maps_of_several_heads_are_core_s(kind: str) -> None:
    shared, run = service(), None
    request = core.Request("encoder", (TEXT,))
    run = run_of(shared, request)
    members = ((0, 1), (1, 2))
    expected = {
        "mean": lambda: aggregate.mean([(run.attention[i], head) for i, head in members]),
        "max": lambda: aggregate.maximum([(run.attention[i], head) for i, head in members]),
        "rollout": lambda: aggregate.rollout(run.attention, 1),
        "value": lambda: aggregate.value_weighted(run.attention[1], 3),
    }[kind]()
    of = MapTransform(1, 3, kind, members, hidden=(0, 4))  # type: ignore[arg-type]
    expected = expected.clone()
    total = expected.sum(-1)
    expected[:, [0, 4]] = 0
    left = expected.sum(-1) / total
    if kind != "value":
        expected /= expected.sum(-1, keepdim=True)
    tile = ask(shared.tile(request.key, of, (0, 16), (0, 16)))
    assert close(tile.values, expected) and tile.left is not None and close(tile.left, left)
    assert (tile.reasons[:, [0, 4]] == HIDDEN).all() and tile.sink is not None
    row = ask(shared.row(request.key, of, 7))
    assert close(row.values, expected[7]) and (row.entropy is None) == (kind in ("max", "value"))


def test_pieces_of_words_are_put_together() -> None:
    loaded = core.load("minilm")
    shared = service(lambda *_, **__: loaded)
    request = core.Request("minilm", ("Unbelievably, the tokenization sat.",))
    run = run_of(shared, request)
    groups = word_groups(run.source)
    assert max(map(len, groups)) > 1 and sum(map(len, groups)) == len(run.source)
    pattern = run.attention[2].pattern(3)[0]
    columns = torch.stack([pattern[:, list(group)].sum(-1) for group in groups], -1)
    expected = torch.stack([columns[list(group)].mean(0) for group in groups])
    n = len(groups)
    assert close(ask(shared.tile(request.key, MapTransform(2, 3, words=True), (0, n), (0, n))).values, expected)


def test_masks_travel_once_with_their_reasons() -> None:
    shared, request = service(), core.Request("decoder", (TEXT,))
    run, heads = run_of(shared, request), ask(shared.heads(request.key))["decoder"]
    assert heads.mask_of == ((0,), (1,), (0,)) and len(heads.masks) == 2
    for record, (which,) in zip(run.attention, heads.mask_of, strict=True):
        said = [[REASONS[code] for code in row] for row in heads.masks[which]]
        assert said == [[record.why_masked(q, k) or "" for k in range(16)] for q in range(16)]


def test_values_of_grouped_heads_are_those_that_they_share() -> None:
    record = core.trace(make_loaded(n_heads=4, **CONFIGS["grouped"]), ids=list(range(9))).attention[0]
    assert close(values_of(record, "k", 3, 48).values, record.k[1])
    assert close(values_of(record, "z", 3, 48).values, record.pattern(3)[0] @ record.v[1])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s, key: s.tile(key, MapTransform(9, 0), (0, 1), (0, 1)), "no record 9 in this run: .* 0 to 1"),
        (lambda s, key: s.tile(key, MapTransform(0, 4), (0, 1), (0, 1)), "no head 4"),
        (lambda s, key: s.tile(key, MapTransform(0, 0), (0, 1), (5, 5)), r"no columns 5 to 5 .* which has 16"),
        (lambda s, key: s.row(key, MapTransform(0, 0), 16), "no row 16"),
        (lambda s, key: s.column(key, MapTransform(0, 0), -1), "no column -1"),
        (lambda s, key: s.row(key, MapTransform(0, 0, cast(Any, "median")), 0), "no kind of map called 'median'"),
        (lambda s, key: s.row(key, MapTransform(0, 0, "mean", ((0, 9),)), 0), "no head 9"),
        (lambda s, key: s.row(key, MapTransform(0, 0, hidden=(16,)), 0), "no hidden key 16"),
        (lambda s, key: s.row(key, MapTransform(0, 0, hidden=tuple(range(16))), 0), "Every key would be hidden"),
        (lambda s, key: s.measures(key, "cross"), "no attention called 'cross'. It has decoder"),
        (lambda s, key: s.norms(key, "cross"), "no attention called 'cross'"),
        (lambda s, key: s.proof(key, 7), "no record 7"),
        (lambda s, key: s.scores(key, 0, 0, 99), "no query 99"),
        (lambda s, key: s.values(key, "decoder", 8, "attn", "q", 0, 48), "no head 0 in layer 8"),
        (lambda s, key: s.values(key, "decoder", 0, "attn", "nonsense", 0, 48), "no nonsense in layer 0"),
        (lambda s, key: s.facts("0" * 64), "no longer known"),
    ],
)
def test_what_a_run_does_not_have_is_refused_in_a_sentence(call: Callable[..., Any], said: str) -> None:
    shared = service()
    run_of(shared)
    with pytest.raises(Refused, match=said):
        ask(call(shared, REQUEST.key))


def test_a_column_that_would_take_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "COLUMN_CELLS", 100)
    shared = service()
    run_of(shared)
    with pytest.raises(Refused, match="would take 256 weights, and 100 is the most"):
        ask(shared.column(REQUEST.key, MapTransform(0, 0), 1))


def test_what_is_too_large_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = service()
    request = core.Request("long", (" ".join(WORDS * 31),))
    run_of(shared, request)
    monkeypatch.setattr("core.memory.SMALL", 1 << 16)
    monkeypatch.setattr("core.memory.free_bytes", lambda device: 1 << 20)
    for call in (shared.heads(request.key), shared.cells(request.key, MapTransform(0, 0), (0, 496), (0, 496))):
        with pytest.raises(TooLarge, match=r"would need \d+ MiB, and 1 MiB are free"):
            ask(call)


def test_what_runs_again_is_core_s_and_plain() -> None:
    shared, request = service(), core.Request("decoder", (TEXT,))
    run, key = run_of(shared, request), request.key
    other = core.Request("decoder", (TEXT,), None, (core.Ablate("decoder", 0, 1),))
    run_of(shared, other)
    point = "decoder.blocks.1.hook_resid_mid"
    assert close(ask(shared.point(key, point, [2, 4])), run.value(point, [2, 4]))
    assert ask(shared.logit_lens(key, 3)) == run.logit_lens(3)
    assert ask(shared.contributions(key, 5)) == run.contributions(5)
    assert ask(shared.compare(key, other.key)) == core.compare(run, shared.engine.run(other))
    effects = ask(shared.ablate_each(key, 5))
    assert len(effects.heads) == 12
    for answer in (
        effects,
        ask(shared.compare(key, other.key)),
        ask(shared.contributions(key)),
        ask(shared.logit_lens(key)),
    ):
        assert_plain(answer)
    for call in (shared.point(key, "decoder.nowhere"), shared.point(key, point, [99]), shared.predictions(key, [99])):
        with pytest.raises(Refused, match="has no"):
            ask(call)


@pytest.mark.parametrize("name", ["decoder", "pair"])
def test_an_edited_run_reads_the_same_tokens_with_other_interventions(name: str) -> None:
    """What a model wrote is given to it: an edit changes what it does with the text, and not the text."""
    shared = service()
    request = core.Request(name, (TEXT,), write=0 if name == "pair" else 3)
    plain = run_of(shared, request)

    async def both() -> tuple[str, str]:
        await shared.submit(request)
        edits = (core.Ablate("decoder", 0, 1),)
        return await shared.edited(request.key, edits), await shared.edited(request.key, ())

    keys = ask(both())
    changed, same = (shared.engine.run(shared.engine.request_of(key)) for key in keys)
    for run in (changed, same):
        assert run.source.ids == plain.source.ids
        assert (run.target and run.target.ids) == (plain.target and plain.target.ids)
    end = "decoder.hook_final"
    torch.testing.assert_close(same.resid[end], plain.resid[end])
    assert not torch.equal(changed.resid[end], plain.resid[end]) and changed.interventions == (
        core.Ablate("decoder", 0, 1),
    )


def test_a_run_says_where_its_first_number_came_up_that_is_none() -> None:
    loaded = loader("decoder")
    with torch.no_grad():
        loaded.model.get_parameter("decoder.blocks.1.mlp.down.weight").fill_(float("nan"))
    shared = service(lambda *_, **__: loaded)
    run_of(shared)
    found = ask(shared.facts(REQUEST.key)).non_finite
    assert found is not None and (found.layer, found.kind) == (1, "nan")
    assert_plain(found)


# following a run


def test_follow_tells_every_change_and_ends_with_the_run() -> None:
    gate = Gate()
    shared = service(gate)

    async def follow() -> list[core.Progress]:
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

    async def follow(request: core.Request) -> None:
        async for _ in shared.follow(await shared.submit(request)):
            pass

    with pytest.raises(TextError, match="empty"):
        ask(follow(core.Request("one", ("",))))
    with pytest.raises(Unknown):
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
    shared.engine._pool.submit(lambda: None).result()  # behind the run
    assert gate.layers == 1 and shared.engine.status()["traces"] == 0


def test_a_thread_follows_and_cancels() -> None:
    gate = Gate()
    calls = Calls(service(gate))
    following = calls.submit(REQUEST)
    assert gate.begun.wait(10) and not following.done() and not following.wait(0.01)
    following.cancel()
    with pytest.raises(RunCancelled):
        following.check()
    gate.open.set()
    again = calls.submit(REQUEST)
    assert again.wait(20) and again.progress.stage == "done"
    again.check()
    assert calls.result(calls.service.facts(again.key)).source.text == TEXT
    with pytest.raises(TextError):
        calls.submit(core.Request("one", ("",))).check()


def test_a_run_that_is_not_small_is_shown_layer_by_layer() -> None:
    gate = Gate()
    loaded = core.load("minilm")
    for block in loaded.model.encoder.blocks:  # type: ignore[union-attr]
        block.register_forward_pre_hook(gate.count)
    shared = service(lambda *_, **__: loaded)
    request = core.Request("minilm", ("Some words to look at. " * 20,))

    async def see() -> tuple[Any, list[Any]]:
        key = await shared.submit(request)
        facts, parts = None, []
        async for now in shared.follow(key):
            if now.is_shown and facts is None:
                facts = await shared.facts_so_far(key)
                gate.open.set()
                parts = [part async for part in shared.parts(key, 1, 3, 7)]
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


def test_nobody_holds_the_queries_and_keys_of_a_run_that_has_ended() -> None:
    loaded = core.load("minilm")
    shared = service(lambda *_, **__: loaded, max_traces=1)
    request = core.Request("minilm", ("word " * 130,))
    seen: list[weakref.ref[Trace]] = []
    watch = shared.engine.watch

    def watched(job: Job) -> Callable[[Trace], object]:
        tell = watch(job)

        def told(so_far: Trace) -> None:
            seen.append(weakref.ref(so_far))
            tell(so_far)

        return told

    shared.engine.watch = watched
    seen.append(weakref.ref(run_of(shared, request)))
    ask(shared.thumbnails(request.key))
    run_of(shared, core.Request("minilm", ("Another.",)))
    shared._live._pool.submit(lambda: None).result()
    gc.collect()
    assert len(seen) > 7 and not any(trace() for trace in seen[:8])


# nobody waits for somebody else


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs whose values come from another pass."""
    monkeypatch.setattr(sys.modules["core.trace"], "HELD_BYTES", 0)  # core.trace itself is the function


@pytest.mark.usefixtures("again")
def test_a_tile_waits_for_nobody_s_second_pass_and_no_second_pass_runs_outside_a_turn() -> None:
    shared = service()
    run_of(shared)
    busy, free = threading.Event(), threading.Event()

    def pass_of_somebody_else() -> None:
        busy.set()
        assert free.wait(20)

    other = shared.engine._pool.submit(pass_of_somebody_else)
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
                shared.values(key, "decoder", 0, "attn", "z", 1, 48),
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


def test_who_waits_goes_on_when_whoever_began_it_waits_no_longer() -> None:
    kept, begun, made = Kept(1 << 20, len), [], threading.Event()

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
    kept = Kept(1000, len)

    async def make(i: int) -> bytes:
        return bytes([i]) * 300

    for i in range(8):
        ask(kept.get(i, lambda i=i: make(i)))
        assert kept.nbytes <= 1000
    kept.put("large", b"x" * 5000)
    assert kept.nbytes == 0
    assert ask(kept.get(7, lambda: make(7))) == bytes([7]) * 300


def test_a_storm_of_answers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.service.local.MOST_WAITING", 5)
    shared = service()
    run_of(shared)
    gate = threading.Event()
    blocker = shared._quick.submit(gate.wait, 20)

    async def storm() -> list[Any]:
        calls = [shared.row(REQUEST.key, MapTransform(0, 0), 1) for _ in range(9)]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0.01)
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = ask(storm())
    blocker.result()
    assert sum(isinstance(answer, Busy) for answer in found) == 4
    assert len(ask(shared.row(REQUEST.key, MapTransform(0, 0), 1)).values) == 16  # and it is over


def test_many_threads_and_loops_ask_one_service() -> None:
    shared = service(workers=2)
    texts = [" ".join(WORDS[i % 5 : i % 5 + 4 + i % 3]) for i in range(15)]

    def visit(text: str) -> bool:
        async def look() -> bool:
            key = await shared.submit(core.Request("one", (text,)))
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
