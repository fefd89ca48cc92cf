"""A run in chunks is the run in one go: what is kept, shown and foretold, for every shape of decoder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch

import core
from core import device
from core.edits import KINDS, Ablate, EditMask, SetMask
from core.errors import TooLarge
from core.model.config import ModelConfig, RotaryScaling
from core.model.hooks import ReadHook, hooked
from core.model.text import Tokens, from_ids, pad
from core.plan import chunked_run_bytes
from core.run import chunks
from tests.thorough import part

tracing = sys.modules["core.run.trace"]  # core.trace is the function
N = 37
BASE = ModelConfig(vocab_size=60, d_model=32, n_heads=4, d_ff=48, n_decoder_layers=3, n_ctx=64)
SHAPES: dict[str, dict[str, Any]] = {
    "learned": {},
    "gqa, rotary, gated, rms": {
        "n_kv_heads": 2,
        "position": "rotary",
        "gated": True,
        "norm": "rms",
        "activation": "silu",
    },
    "alibi": {"position": "alibi"},
    "relative": {"position": "relative"},
    "sinusoidal, post": {"position": "sinusoidal", "norm_order": "post", "final_norm": False},
    "windows": {
        "position": "rotary",
        "window": 5,
        "windowed_layers": (0, 2),
        "rotary_base_windowed": 100.0,
        "n_kv_heads": 1,
    },
    "windows, alibi": {"position": "alibi", "window": 3},
    "sandwich, qk norm": {"position": "rotary", "norm_order": "sandwich", "qk_norm": True, "norm": "rms"},
    "parallel": {"position": "rotary", "rotary_fraction": 0.5, "parallel": True},
}


IDS = [(7 * i + 3) % 60 for i in range(N)]


def two(side: Literal["left", "right"]) -> tuple[Tokens, ...]:
    """A batch of two texts, the second of which is short."""
    return pad([from_ids(None, IDS), from_ids(None, IDS[: N // 3])], 0, "[PAD]", side)


def close(one: torch.Tensor, other: torch.Tensor) -> None:
    """To the rounding of float32: other numbers of rows are multiplied in another order."""
    torch.testing.assert_close(one, other, rtol=0, atol=2e-6 * max(1.0, float(other[other.isfinite()].abs().max())))


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Runs from here on go in chunks of so many rows, or are told that one go has room."""

    def cut(rows: int, on_host: bool = False) -> None:
        def choose(forward: Any, hold: bool, one_go: int, more: int, free: int) -> chunks.Chunks | None:
            if not chunks.can_chunk(forward):
                return None
            prompt = forward.prompt
            needed = chunked_run_bytes(
                forward.loaded.config, rows=rows, batch=prompt.batch, source_len=prompt.source_len, keep_values=hold
            )
            return chunks.Chunks(rows, on_host, needed.total)

        monkeypatch.setattr(tracing, "plan_chunks", choose)

    yield cut


def assert_same(a: Any, b: Any) -> None:
    """Two traces of the same texts."""
    assert a.steps == b.steps
    assert a.norms.keys() == b.norms.keys() and list(a.norms) == list(b.norms)
    for name in a.norms:
        close(a.norms[name], b.norms[name])
    assert [r.name for r in a.records] == [r.name for r in b.records]
    for text in range(a.texts):
        x, y = a.text(text), b.text(text)
        for one, other in zip(x.attention, y.attention, strict=True):
            close(one.q, other.q)
            close(one.k, other.k)
            close(one.v, other.v)
            close(one.pattern(), other.pattern())
            close(one.scores(), other.scores())
            close(one.thumbnail(8).values, other.thumbnail(8).values)
            close(one.z(), other.z())
            torch.testing.assert_close(one.mask(head=1), other.mask(head=1))
            for key in (0, 9, one.n_key - 1):
                assert one.why_masked(8, key) == other.why_masked(8, key)
            receipt = one.receipt()
            assert receipt.rows_sum_error < 1e-5 and receipt.masked_max == 0
            assert receipt.fused_error is not None and receipt.fused_error < 1e-5
            assert receipt.added_error is not None and receipt.added_error < 1e-5
        every = torch.arange(len(x.source))
        close(x.last_residual(every), y.last_residual(every))
        mine, theirs = x.predictions(), y.predictions()
        close(torch.as_tensor(mine.probs), torch.as_tensor(theirs.probs))
        for one, other in zip(x.positions, y.positions, strict=True):
            assert one.kind == other.kind
            torch.testing.assert_close(one.places, other.places)
            for windowed in (False, True):
                left, right = one.angles(windowed), other.angles(windowed)
                assert (left is None) == (right is None)
                if left is not None:
                    torch.testing.assert_close(left, right)
            table, its = one.table(), other.table()
            assert (table is None) == (its is None)
            if table is not None and its is not None:
                torch.testing.assert_close(table, its)
            assert (one.bias is None) == (other.bias is None)


# Edits of every kind: those that a text can be read in chunks with, and those that let a token know of later ones.
PLACES = [5, 3, *range(2, 2 + N - 2)]
IN_CHUNKS = {
    "heads": [Ablate("decoder", 1, 2), core.edits.ScaleHead(-2.0, "decoder", 0, 1)],
    "scores": [core.edits.NoScale(layer=1), core.edits.Temperature(3.0)],
    "cells": [EditMask(cells=[(20, 3), (36, range(0, 36))]), EditMask("decoder", 1, range(4, 30), range(2, 6), head=1)],
    "keys and bands": [
        core.edits.AsPadding(4),
        EditMask(distances=(None, -7)),
        EditMask(distances=(-3, 0), allowed=True),
    ],
    "beyond the window": [EditMask("decoder", 0, range(12, N), range(0, 3), allowed=True, head=1)],
    "orders": [SetMask("window", 4, layer=1), core.edits.Window(6, head=2), SetMask("causal", layer=0)],
    "padding": [core.edits.DropPadding()],
    "no positions": [core.edits.DropPositions(), Ablate("decoder", 0, 0)],
    "shuffled": [core.edits.ShufflePositions(3)],
    "moved": [core.edits.ShiftPositions(4)],
    "set": [core.edits.SetPositions(PLACES)],
}
IN_ONE_GO = [
    Ablate("decoder", 0, 1, to="mean"),
    EditMask(cells=[(4, 3), (3, 4)], allowed=True),
    EditMask(queries=range(4, 9), keys=range(2, 6), allowed=True),
    EditMask(queries=3, allowed=True),
    EditMask(keys=1, allowed=True),
    EditMask(distances=(-1, 1), allowed=True),
    EditMask(distances=(-1, None), allowed=True),
    SetMask("none", layer=1),
    core.edits.DropCausalMask(),
    core.edits.MaskAfterSoftmax(),
    core.edits.MaskFill(-3.0),
    core.edits.SwapWords(2, N - 1),
]


def test_every_kind_of_edit_is_tried() -> None:
    tried = [*IN_ONE_GO, *(edit for edits in IN_CHUNKS.values() for edit in edits)]
    assert {edit.word for edit in tried} == KINDS.keys()


EDITED = ("windows", "windows, alibi", "relative", "windows, let go")  # each edit meets one of them in a usual run


@pytest.mark.thorough(but=6)
@pytest.mark.parametrize(
    ("shape", "edits"),
    [
        *(("learned", edits) for edits in IN_CHUNKS),
        *((shape, edits) for i, edits in enumerate(IN_CHUNKS) for shape in part(EDITED, 4, i)),
    ],
)
def test_edited_chunks_are_the_edited_run_in_one_go(
    shape: str, edits: str, cut: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = core.build(replace(BASE, **SHAPES[shape.removesuffix(", let go")]), seed=7)
    if shape.endswith("let go"):
        monkeypatch.setattr(tracing, "HELD_BYTES", 0)
    texts = two("left")[:1] if edits == "set" else two("left")  # "set" gives a place to every token of one text
    every = torch.arange(N)
    plain, whole = (core.trace_tokens(loaded, texts, None, tuple(some)) for some in ((), IN_CHUNKS[edits]))
    cut(9)
    run = core.trace_tokens(loaded, texts, None, tuple(IN_CHUNKS[edits]))
    assert (whole.chunks, run.chunks) == (1, 5)
    assert_same(run, whole)
    if shape == "learned":
        assert not torch.equal(plain.last_residual(every), whole.last_residual(every))


@pytest.mark.parametrize("edit", IN_ONE_GO, ids=repr)
def test_what_sees_ahead_goes_whole_or_not_at_all(edit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could not be exact: what it does to the first token depends on the last one."""
    loaded = core.build(BASE, seed=8)
    before, after = (core.trace(loaded, ids=[*IDS[:-1], last], interventions=[edit]) for last in (1, 2))
    early = torch.arange(N - 1)
    monkeypatch.setattr(chunks, "SIZES", (16, 8, 4))
    monkeypatch.setattr(chunks, "budget", lambda device, free: before.predicted_bytes - 1)
    run = core.trace(loaded, ids=IDS, interventions=[edit])
    assert run.chunks == 1
    if not isinstance(edit, EditMask):  # of cells, it depends on which
        assert not torch.equal(before.last_residual(early), after.last_residual(early))
    monkeypatch.setattr(device, "free_bytes", lambda device: run.predicted_bytes - 1)
    with pytest.raises(TooLarge, match=f"would need .* MiB, and .* are free. {type(edit).__name__} lets a token know"):
        core.trace(loaded, ids=IDS, interventions=[edit])


@pytest.mark.parametrize(
    ("shape", "rows"), [(shape, rows) for i, shape in enumerate(SHAPES) for rows in part((1, 8, 36), 3, i)]
)
def test_chunks_are_one_go(shape: str, rows: int, cut: Any) -> None:
    loaded = core.build(replace(BASE, **SHAPES[shape]), seed=3)
    whole = core.trace(loaded, ids=IDS)
    cut(rows)
    assert_same(core.trace(loaded, ids=IDS), whole)


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize(
    ("shape", "side"), [(shape, side) for i, shape in enumerate(SHAPES) for side in part(("left", "right"), 2, i)]
)
def test_padded_texts_side_by_side(shape: str, side: Literal["left", "right"], cut: Any) -> None:
    loaded = core.build(replace(BASE, **SHAPES[shape]), seed=4)
    whole = core.trace_tokens(loaded, two(side), None, ())
    cut(10)
    assert_same(core.trace_tokens(loaded, two(side), None, ()), whole)


@pytest.mark.parametrize("on_host", [False, True])
def test_values_that_are_not_held_come_from_another_pass(on_host: bool, cut: Any, monkeypatch: Any) -> None:
    loaded = core.build(replace(BASE, **SHAPES["windows"]), seed=5)
    whole = core.trace(loaded, ids=IDS)
    monkeypatch.setattr(tracing, "HELD_BYTES", 0)
    cut(9, on_host)
    run = core.trace(loaded, ids=IDS)
    assert run.nbytes < whole.nbytes
    assert_same(run, whole)


def test_what_is_kept_is_no_larger_than_in_one_go(cut: Any) -> None:
    for shape in SHAPES.values():
        loaded = core.build(replace(BASE, **shape))
        whole = core.trace(loaded, ids=IDS)
        cut(7)
        run = core.trace(loaded, ids=IDS)
        assert run.nbytes == whole.nbytes
        for record in run.records:
            for kept in (record.batch_q, record.batch_k, record.values()):
                assert kept.untyped_storage().nbytes() == kept.nbytes  # no view of something larger


def test_lens_contributions_and_values_are_the_same(cut: Any) -> None:
    loaded = core.build(replace(BASE, **SHAPES["gqa, rotary, gated, rms"]), seed=6)
    whole = core.trace(loaded, ids=IDS)
    cut(8)
    run = core.trace(loaded, ids=IDS)
    for one, other in zip(run.logit_lens(3), whole.logit_lens(3), strict=True):
        close(torch.tensor(one.predictions.probs), torch.tensor(other.predictions.probs))
    assert run.logit_attribution().logit == pytest.approx(whole.logit_attribution().logit, abs=1e-5)
    for point in ("hook_q", "hook_k_pre", "hook_k", "hook_v", "hook_pattern", "hook_z"):
        name = f"decoder.blocks.1.attn.{point}"
        close(run.activation(name, [3, 30]), whole.activation(name, [3, 30]))


def test_a_watcher_may_end_it_between_chunks(cut: Any) -> None:
    loaded, seen = core.build(BASE), []

    def watch(run: Any) -> None:
        seen.append(len(run.records))
        if len(seen) == 5:
            raise KeyboardInterrupt

    cut(10)
    with pytest.raises(KeyboardInterrupt):
        core.trace(loaded, ids=IDS, watch=watch)
    assert seen == [0] * 5
    seen.clear()
    seen.extend(range(10))
    core.trace(loaded, ids=IDS, watch=watch)
    assert seen[-3:] == [1, 2, 3]


def goes_in_chunks(loaded: Any, monkeypatch: Any, **options: Any) -> bool:
    """Whether a run does that has no room for one go."""
    seen: list[Any] = []

    def spy(forward: Any, recorder: Any, cut: Any) -> Any:
        seen.append(cut)
        return chunks.run_in_chunks(forward, recorder, cut)

    with monkeypatch.context() as patch:
        patch.setattr(tracing, "run_in_chunks", spy)
        core.trace(loaded, ids=IDS, **options)
    return bool(seen)


def test_who_must_go_in_one_go(monkeypatch: Any) -> None:
    monkeypatch.setattr(chunks, "SIZES", (16, 8, 4))
    loaded = core.build(BASE)
    rotary = replace(BASE, position="rotary")
    dynamic = core.build(replace(rotary, rotary_scaling=RotaryScaling(kind="dynamic", factor=2.0, n_ctx_original=16)))
    encoder = core.build(replace(BASE, n_decoder_layers=0, n_encoder_layers=2, head="none"))
    assert not goes_in_chunks(loaded, monkeypatch)  # there is room
    one_go = core.trace(loaded, ids=IDS).predicted_bytes
    monkeypatch.setattr(chunks, "budget", lambda device, free: one_go - 1)
    assert goes_in_chunks(loaded, monkeypatch)
    assert core.trace(loaded, ids=IDS).predicted_bytes < one_go
    assert goes_in_chunks(core.build(rotary), monkeypatch)
    assert not goes_in_chunks(loaded, monkeypatch, interventions=[Ablate("decoder", 0, 1, to="mean")])
    assert goes_in_chunks(loaded, monkeypatch, interventions=[Ablate("decoder", 0, 1)])
    with hooked(loaded.model, {"decoder.hook_final": lambda x: None}):  # who knows what it will return
        assert not goes_in_chunks(loaded, monkeypatch)
    seen: list[int] = []
    with hooked(loaded.model, {"decoder.hook_final": ReadHook(lambda x: seen.append(x.shape[1]))}):
        assert goes_in_chunks(loaded, monkeypatch)
    assert sum(seen) == N and len(seen) > 1
    assert not goes_in_chunks(dynamic, monkeypatch)
    assert not goes_in_chunks(encoder, monkeypatch)


def test_what_fits_in_no_chunks_is_refused_with_the_numbers_of_one_go(monkeypatch: Any) -> None:
    loaded = core.build(BASE)
    needed = core.trace(loaded, ids=IDS).predicted_bytes
    monkeypatch.setattr(device, "free_bytes", lambda device: 3 << 10)
    with pytest.raises(TooLarge, match=rf"would need {needed / (1 << 20):,.0f} MiB, and 0 MiB are free"):
        core.trace(loaded, ids=IDS)


def test_a_second_pass_without_room_is_refused(monkeypatch: Any, cut: Any) -> None:
    loaded = core.build(BASE)
    cut(8)
    run = core.trace(loaded, ids=IDS)
    monkeypatch.setattr(device, "SMALL", 0)
    monkeypatch.setattr(device, "free_bytes", lambda device: 1000)
    with pytest.raises(TooLarge, match="Another pass over this text would need"):
        run.forward.again("decoder.hook_final")
