"""Sweeps: every row of a batch is what a run of its own gives, for every kind of model, and the numbers of the storyteller's sentence."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch

import core
from core import device
from core.checkpoints import Loaded
from core.errors import HeadlightError, InterventionError, TextError, TooLarge
from core.model.hooks import ReadHook
from core.model.transformer import MLP
from core.patching import edited_runs
from core.patching.head_sweeps import EdgePlace, HeadPlace, begin_heads
from core.read.comparison import answer_change
from core.run.request import Request
from core.service import AblateHeads, BlockEdges, LocalService, PatchHeads, SweepPart, SyncCalls
from core.service.engine import Engine
from tests.core.conftest import KINDS, make_loaded
from tests.core.test_invariants import SAMPLE, name
from tests.core.test_records import Custom, texts
from tests.thorough import part

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]
DOROTHY = "Dorothy ran home over the prairie to Uncle Henry and Aunt"


def single(run: core.Trace, *edits: Any) -> core.Trace:
    """The same run with more edits, by itself."""
    return core.trace_tokens(run.loaded, run.sources, run.targets, (*run.interventions, *edits)).text(run.index)


def answer(run: core.Trace, position: int | None) -> torch.Tensor:
    """Probabilities of words, or the last vectors."""
    n = len(run.source if run.target is None else run.target)
    if position is None:
        return run.last_residual(torch.arange(n))[run.index].float()
    return run.activation("head.hook_logits", [position])[0].softmax(-1)


def check_row(found: core.patching.Sweep, row: int, plain: core.Trace, alone: core.Trace) -> None:
    after = found.after
    x, y = answer(plain, found.position), answer(alone, found.position)
    if found.position is None:
        assert after.token_distance is not None and after.distance is not None
        read = plain.source if plain.target is None else plain.target
        real = [i for i, padding in enumerate(read.padding) if not padding]
        turned = 1 - torch.cosine_similarity(x, y, dim=-1)
        np.testing.assert_allclose(after.token_distance[row][real], turned[real], atol=1e-4)
        whole = 1 - torch.cosine_similarity(x[real].mean(0), y[real].mean(0), dim=0)
        assert after.distance[row] == pytest.approx(whole.item(), abs=1e-4)
        return
    assert after.probability is not None and after.ids is not None and after.likeliest is not None
    for i, token in enumerate(found.watched):
        assert after.probability[row, i] == pytest.approx(y[token].item(), abs=1e-4)
    np.testing.assert_allclose(after.likeliest[row], y[torch.tensor(after.ids[row])], atol=1e-4)
    assert after.likeliest[row, 0] == pytest.approx(y.max().item(), abs=1e-4)


@pytest.mark.parametrize("config", part(SAMPLE[::7]), ids=name)
def test_rows_are_single_runs_for_every_family(config: dict[str, Any], monkeypatch: Any) -> None:
    loaded = make_loaded(**config)
    sources, targets = texts(loaded.config.kind, "right", random.Random(5))
    stack = loaded.config.stacks[0][0]
    edits: Any = (core.edits.Temperature(0.7), Custom(f"{stack}.blocks.1.attn.hook_pattern", lambda p: p.flip(-1)))
    run = core.trace_tokens(loaded, sources, targets, edits).text(1)
    heads = core.sweep_heads(run, "mean")
    assert len(heads.places) == 4 * len(run.records)
    for row in range(0, len(heads.places), 5):
        place = cast(HeadPlace, heads.places[row])
        check_row(
            heads,
            row,
            run,
            single(
                run,
                core.edits.Ablate(
                    *(cast(Any, v) for v in (place.stack, place.layer, place.head, place.site)), to="mean"
                ),
            ),
        )
    last = loaded.config.stacks[-1][0]
    for site, head in (("attn", None), ("attn", 2), *([("cross_attn", 1)] if targets else [])):
        monkeypatch.setattr(edited_runs, "BATCH_BYTES", 1 if head else 1 << 28)
        looks = core.sweep_edges(run, site=cast(Any, site), layer=None if head is None else 1, head=head)
        for row in range(1, len(looks.places), 9):
            place = cast(EdgePlace, looks.places[row])
            edit = core.edits.EditMask(
                cast(Any, last), None if head is None else 1, place.query, place.key, head=head, site=cast(Any, site)
            )
            check_row(looks, row, run, single(run, edit))


@pytest.mark.thorough(but=2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["all", "last"])
def test_a_head_taken_from_another_run(tiny: Tiny, kind: str, where: Any) -> None:
    loaded = tiny(**KINDS[kind], head="none" if kind == "encoder" else "lm")
    target, theirs = ([1, 2, 3], [1, 7, 9]) if kind == "encoder-decoder" else (None, None)
    run, other = (
        core.trace(loaded, ids=IDS, target_ids=target),
        core.trace(loaded, ids=[*IDS[:3], 8, 9, 9, 8, 7], target_ids=theirs),
    )
    found = core.patch_heads(run, other, where)
    assert len(found.watched) == (0 if kind == "encoder" else 2)
    assert not found.watched or found.watched[1] == int(answer(other, found.position).argmax())
    for row, place in enumerate(cast(tuple[HeadPlace, ...], found.places)):
        point = f"{place.stack}.blocks.{place.layer}.{place.site}.hook_z"
        taken = other.activation(point)

        def take(z: torch.Tensor, head: int = place.head, taken: torch.Tensor = taken) -> torch.Tensor:
            z = z.clone()
            places = slice(None) if where == "all" else slice(-1, None)
            z[0, places, head] = taken[places, head]
            return z

        check_row(found, row, run, single(run, Custom(point, take)))
    own = core.patch_heads(run, run, where).after
    kept = own.distance if own.kl is None else own.kl
    assert kept is not None and np.abs(kept).max() < 1e-5, "what a head gave itself changes nothing"


def test_what_cannot_be_swept_says_why(tiny: Tiny, monkeypatch: Any) -> None:
    run = core.trace(tiny(), ids=IDS)
    with pytest.raises(TextError, match="8 and 5 tokens"):
        core.patch_heads(run, core.trace(run.loaded, ids=IDS[:5]))
    assert core.patch_heads(run, core.trace(run.loaded, ids=IDS[:5]), "last").places
    with pytest.raises(TextError, match="same model"):
        core.patch_heads(run, core.trace(tiny(n_decoder_layers=3), ids=IDS))
    with pytest.raises(InterventionError, match="zero or to the mean"):
        core.sweep_heads(run, cast(Any, "one"))
    with pytest.raises(InterventionError, match="heads are 0 to 3"):
        core.sweep_edges(run, head=4)
    with pytest.raises(InterventionError, match="no such attention"):
        core.sweep_edges(run, site="cross_attn")
    with pytest.raises(InterventionError, match="one token alone"):
        core.sweep_edges(run, query=0)
    with pytest.raises(IndexError, match="position 8 of 8"):
        core.sweep_heads(run, position=8)
    with monkeypatch.context() as patch:
        patch.setattr(device, "SMALL", 0)
        patch.setattr(device, "free_bytes", lambda device: 10)
        with pytest.raises(TooLarge, match="Cutting a look in a run of 8 tokens would need"):
            core.sweep_edges(run)


def test_of_a_long_text_one_query_is_swept(tiny: Tiny) -> None:
    run = core.trace(tiny(n_ctx=60), ids=[1 + i % 50 for i in range(50)])
    found = core.sweep_edges(run)
    assert found.query == 49 and {place.query for place in cast(tuple[EdgePlace, ...], found.places)} == {49}
    assert len(found.places) == 50 and found.single == (0,)
    assert core.sweep_edges(run, query=7).query == 7


@pytest.fixture(scope="module")
def dorothy() -> core.Trace:
    return core.trace(core.load("storyteller"), DOROTHY)


def test_the_storytellers_heads(dorothy: core.Trace) -> None:
    found = core.sweep_heads(dorothy)
    assert found.before.probability is not None and found.after.probability is not None and found.after.ids is not None
    assert found.labels[found.watched[0]] == "Em" and found.before.probability[0, 0] == pytest.approx(0.894, abs=5e-4)
    after = found.after.probability[:, 0]
    assert after[5] == pytest.approx(0.0284, abs=5e-5) and found.places[5] == HeadPlace("decoder", 0, "attn", 5)
    assert found.after.likeliest is not None and found.after.likeliest[5, 0] == pytest.approx(0.0512, abs=5e-5)
    assert found.labels[int(found.after.ids[5, 0])] == "ial"
    assert int((np.abs(after - found.before.probability[0, 0]) < 0.03).sum()) == 43
    assert after[8] == pytest.approx(0.885, abs=5e-4)
    assert found.lengths is not None and int(found.lengths.argmax()) == 8
    assert found.lengths[8] == pytest.approx(8.64, abs=5e-3)


def test_the_storytellers_looks(dorothy: core.Trace) -> None:
    found = core.sweep_edges(dorothy)
    assert len(found.places) == 104 and found.single == (0,) and found.after.probability is not None
    after = dict(zip(found.places, found.after.probability[:, 0].tolist(), strict=True))
    assert after[EdgePlace(13, 13)] == pytest.approx(0.0067, abs=5e-5)
    assert after[EdgePlace(13, 9)] == pytest.approx(0.386, abs=5e-4)
    one = core.sweep_edges(dorothy, layer=0, head=5, query=13)
    assert one.after.probability is not None and one.places[-1] == EdgePlace(13, 13)
    assert one.after.probability[-1, 0] == pytest.approx(0.0376, abs=5e-5)


@pytest.mark.parametrize(
    "edit, after",
    [
        (core.edits.NoScale(), 0.745),
        (core.edits.DropPositions(), 0.0002),
        (core.edits.Temperature(4), 0.0014),
        (core.edits.DropCausalMask(), 0.890),
    ],
)
def test_the_storytellers_answer_changes(dorothy: core.Trace, edit: Any, after: float) -> None:
    found = answer_change(dorothy, single(dorothy, edit))
    assert found.words[0].label == "Em" and found.words[0].after == pytest.approx(
        after, abs=5e-4 if after > 0.1 else 5e-5
    )
    assert found.entropy is not None and found.entropy[0] == pytest.approx(1.25, abs=5e-3)
    if isinstance(edit, core.edits.NoScale):
        assert found.entropy[1] == pytest.approx(0.21, abs=5e-3)
    if isinstance(edit, core.edits.Temperature):
        assert found.likeliest is not None and found.likeliest[1].label == "Oz"
        assert found.kl is not None and found.kl / np.log(2) == pytest.approx(8.41, abs=5e-3)


def test_without_its_mask_the_storyteller_reads_the_answers(dorothy: core.Trace) -> None:
    run = core.trace(dorothy.loaded, f"{DOROTHY} Em")
    found = answer_change(run, single(run, core.edits.DropCausalMask()))
    assert found.losses == pytest.approx((4.560, 4.022), abs=5e-4)
    copied = core.trace(core.load("copy"), "iklippan=iklippan")
    ids = torch.tensor(copied.source.ids)
    n, at = len("iklippan"), copied.source.labels.index("=")

    def right(run: core.Trace) -> list[float]:
        return [answer(run, at + i)[ids[at + 1 + i]].item() for i in range(n)]

    assert right(copied) == pytest.approx([1.0] * n, abs=1e-3)
    unmasked = right(single(copied, core.edits.DropCausalMask()))
    assert min(unmasked) < 5e-4 and max(unmasked) > 0.9995


def test_an_encoders_sentence_turns() -> None:
    run = core.trace(core.load("minilm"), "The animal didn't cross the street because it was too tired.")
    found = core.sweep_heads(run)
    assert found.position is None and found.after.distance is not None and found.after.token_distance is not None
    assert found.after.distance[71] == pytest.approx(0.079, abs=5e-4)
    assert found.after.token_distance[71, run.source.labels.index("it")] == pytest.approx(0.106, abs=5e-4)
    assert found.after.distance[37] == pytest.approx(0.002, abs=5e-4)
    assert sorted(found.after.distance, reverse=True).index(found.after.distance[37]) + 1 == 31
    it, animal = map(run.source.labels.index, ("it", "animal"))
    assert run.attention[3].pattern(1)[0, it, animal] == pytest.approx(0.68, abs=5e-3)
    change = answer_change(run, single(run, core.edits.Ablate("encoder", 5, 11)))
    assert change.distance == pytest.approx(0.079, abs=5e-4) and change.words == () and change.turned is not None


def test_answers_of_other_lengths_and_vocabularies(dorothy: core.Trace) -> None:
    longer = answer_change(dorothy, core.trace(dorothy.loaded, f"{DOROTHY} Em"))
    assert longer.shared and longer.kl is not None and longer.kl > 0.1
    other = answer_change(dorothy, core.trace(core.load("copy"), "iklippan=iklippan"))
    assert not other.shared and other.kl is None and other.words[0].after is None and other.words[-1].before is None


def collected(service: LocalService, calls: SyncCalls, key: str, asked: Any) -> list[SweepPart]:
    async def collect() -> list[SweepPart]:
        return [part async for part in service.sweep(key, asked)]

    return calls.result(collect())


def test_a_service_sweeps_in_turns_and_keeps_what_it_found(tiny: Tiny, monkeypatch: Any) -> None:
    loaded = tiny(n_decoder_layers=2)
    monkeypatch.setattr("core.service.sweeps.TIME_SLICE_SECONDS", 1e-9)
    engine = Engine(load_model=lambda *_, **__: loaded)
    service = LocalService(engine)
    calls = SyncCalls(service)
    run = core.trace(loaded, ids=IDS)
    request = Request("given", ("x",))
    with engine._lock:
        engine._remember(request)
        engine._store_trace(request.key, run, 0)
    parts = collected(service, calls, request.key, AblateHeads())
    assert [part.first for part in parts] == list(range(8)) and {part.of for part in parts} == {8}
    whole = core.sweep_heads(run)
    rows = edited_runs.together([part.sweep.after for part in parts])
    assert rows.probability is not None and whole.after.probability is not None
    np.testing.assert_allclose(rows.probability, whole.after.probability, atol=1e-5)
    again = collected(service, calls, request.key, AblateHeads())
    assert [(part.first, part.sweep.after.n_rows) for part in again] == [(0, 8)]
    assert len(collected(service, calls, request.key, BlockEdges(query=3))) == 4
    assert collected(service, calls, request.key, PatchHeads(request.key))[-1].of == 8
    for asked in (AblateHeads(position=99), BlockEdges(head=9), AblateHeads(token=10**6)):
        with pytest.raises(HeadlightError):
            collected(service, calls, request.key, asked)
    monkeypatch.setattr(service._sweep_slots, "most", 0)
    with pytest.raises(core.errors.ServerBusy, match="sweeps are waiting"):
        collected(service, calls, request.key, AblateHeads("mean"))


def test_a_sweep_alone_takes_the_cores_that_are_left_and_gives_the_same(tiny: Tiny, monkeypatch: Any) -> None:
    monkeypatch.setattr("core.service.sweeps.FIRST_ROWS_PER_SLICE", 1e9)  # all rows in one batch
    monkeypatch.setattr("core.service.sweeps.cores", lambda: 2 * torch.get_num_threads())
    engine = Engine(load_model=lambda *_, **__: tiny(n_decoder_layers=3))
    service = LocalService(engine)
    calls, request = SyncCalls(service), Request("given", ("x",))
    run = core.trace(tiny(n_decoder_layers=3), ids=IDS)
    with engine._lock:
        engine._remember(request)
        engine._store_trace(request.key, run, 0)
    batches: list[tuple[int, int, str]] = []
    whole = edited_runs.Rows.run

    def noted(self: edited_runs.Rows, start: int, stop: int) -> edited_runs.RowAnswers:
        batches.append((start, stop, threading.current_thread().name))
        return whole(self, start, stop)

    monkeypatch.setattr(edited_runs.Rows, "run", noted)
    (part,) = collected(service, calls, request.key, AblateHeads())
    # 12 heads of three layers: four rows of three layers' work are about as much as the eight of two and of one.
    assert sorted(batches)[0][:2] == (0, 4) and sorted(batches)[1][:2] == (4, 12)
    assert len({thread for _, _, thread in batches}) == 2
    plain = core.sweep_heads(run)
    assert part.sweep.after.probability is not None and plain.after.probability is not None
    np.testing.assert_allclose(part.sweep.after.probability, plain.after.probability, atol=1e-5)
    service._sweep_slots.taken = 1  # somebody else sweeps: one core is left to the server
    batches.clear()
    collected(service, calls, request.key, AblateHeads("mean"))
    assert [batch[:2] for batch in batches] == [(0, 12)]


def test_a_sweep_that_nobody_waits_for_ends_and_others_run_between_its_batches(tiny: Tiny, monkeypatch: Any) -> None:
    loaded = tiny(n_decoder_layers=2)
    monkeypatch.setattr("core.service.sweeps.TIME_SLICE_SECONDS", 1e-9)
    engine = Engine(load_model=lambda *_, **__: loaded)
    service = LocalService(engine)
    calls = SyncCalls(service)
    request = Request("given", ("x",))
    with engine._lock:
        engine._remember(request)
        engine._store_trace(request.key, core.trace(loaded, ids=IDS), 0)
    batches: list[int] = []
    whole = edited_runs.Rows.run

    def run(self: edited_runs.Rows, start: int, stop: int) -> edited_runs.RowAnswers:
        batches.append(start)
        return whole(self, start, stop)

    monkeypatch.setattr(edited_runs.Rows, "run", run)

    async def leave_after(parts: int) -> tuple[int, str]:
        sweep = service.sweep(request.key, AblateHeads())
        for _ in range(parts):
            await anext(sweep)
        between = await service.predictions(request.key, None, 1)  # somebody else's turn, while rows are still to come
        reached = len(batches)
        await sweep.aclose()
        return reached, between.strings[0][0]

    reached, _ = calls.result(leave_after(2))
    assert 2 <= reached < 8
    again = collected(
        service, calls, request.key, AblateHeads("mean")
    )  # comes after what was left, in the one queue of turns
    assert again[-1].of == 8 and len(batches) <= reached + 1 + 8, "the rows that nobody waited for were never run"
    assert service._sweep_slots.taken == 0

    async def join_one_that_leaves() -> tuple[list[int], list[int]]:
        """The first rows of the parts of somebody who begins a sweep and leaves, and of somebody who joined him."""
        asked = AblateHeads(position=1)
        begun, joined = service.sweep(request.key, asked), service.sweep(request.key, asked)
        mine = [(await anext(begun)).first for _ in range(2)]
        theirs = [(await anext(joined)).first]
        await begun.aclose()
        async for more in joined:
            theirs += range(more.first, more.first + more.sweep.after.n_rows)
        return mine, theirs

    mine, theirs = calls.result(join_one_that_leaves())
    assert mine == [0, 1] and theirs == [*range(8)], "each row once, from the first on"
    assert service._running_sweeps == {}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_branch_off_are_whole_passes(tiny: Tiny, kind: str, monkeypatch: Any) -> None:
    loaded = tiny(**KINDS[kind], head="none" if kind == "encoder" else "lm")
    run = core.trace(loaded, ids=IDS, target_ids=[1, 2, 3] if kind == "encoder-decoder" else None)
    hooks = {f"{loaded.config.stacks[-1][0]}.blocks.0.attn.hook_pattern": lambda p: p.flip(-1)}

    def numbers() -> np.ndarray:
        sweep = core.sweep_heads(run)
        found = sweep.after.distance if sweep.after.logit is None else sweep.after.logit
        assert found is not None
        return found

    off = begin_heads(run, AblateHeads()).rows
    assert len(off.shared_forward.streams) == len(loaded.config.stacks)
    branched = numbers()
    monkeypatch.setattr(edited_runs, "HELD_BYTES", 0)
    assert begin_heads(run, AblateHeads()).rows.shared_forward.streams == ()
    np.testing.assert_allclose(branched, numbers(), atol=1e-5)
    monkeypatch.undo()
    with core.hooked(loaded.model, hooks):
        outside = core.trace(loaded, ids=IDS, target_ids=[1, 2, 3] if kind == "encoder-decoder" else None)
    assert begin_heads(outside, AblateHeads()).rows.shared_forward.streams == (), (
        "a hook from outside may have a memory of its own"
    )
    with core.hooked(loaded.model, dict.fromkeys(hooks, ReadHook(lambda _: None))):
        looked = core.trace(loaded, ids=IDS, target_ids=[1, 2, 3] if kind == "encoder-decoder" else None)
    assert begin_heads(looked, AblateHeads()).rows.shared_forward.streams, "an engine looks at every run"


@pytest.mark.parametrize("order", ["pre", "post", "sandwich"])
def test_the_last_layer_is_finished_for_the_position_that_is_asked_about(
    tiny: Tiny, order: str, monkeypatch: Any
) -> None:
    loaded = tiny(norm_order=order)
    lengths: list[int] = []
    whole = MLP.forward

    def forward(self: MLP, x: torch.Tensor) -> torch.Tensor:
        lengths.append(x.shape[1])
        return whole(self, x)

    monkeypatch.setattr(MLP, "forward", forward)
    last = f"decoder.blocks.{loaded.config.n_decoder_layers - 1}"
    for edits in ((), (Custom(f"{last}.hook_mlp_out", lambda x: x.flip(1)),)):
        run = core.trace(loaded, ids=IDS, interventions=cast(Any, edits))
        lengths.clear()
        found = core.sweep_heads(run, position=3)
        assert lengths[-1] == (len(IDS) if edits else 1), "an edit there may count positions"
        for row in (0, 5, len(found.places) - 1):
            place = cast(HeadPlace, found.places[row])
            check_row(found, row, run, single(run, core.edits.Ablate("decoder", place.layer, place.head)))


def test_heads_that_share_keys_and_values_are_silenced_one_by_one(tiny: Tiny) -> None:
    loaded = tiny(n_kv_heads=2)
    run = core.trace(loaded, ids=IDS)
    found = core.sweep_heads(run)
    assert len(found.places) == 4 * len(run.records) and found.after.logit is not None
    assert len({round(float(x), 6) for x in found.after.logit[:4, 0]}) == 4, "two query heads of a group are two rows"
    for row in (0, 1):
        check_row(found, row, run, single(run, core.edits.Ablate("decoder", 0, row)))


@pytest.mark.parametrize("to", ["zero", "mean"])
def test_heads_that_share_keys_and_values_can_be_silenced_together(tiny: Tiny, to: Any) -> None:
    loaded = tiny(n_kv_heads=2)
    run = core.trace(loaded, ids=IDS)
    found = core.sweep_heads(run, to, groups=True)
    places = cast(tuple[HeadPlace, ...], found.places)
    assert [(place.head, place.n) for place in places] == [(0, 2), (2, 2)] * len(run.records)
    for row, place in enumerate(places):
        pair = [core.edits.Ablate("decoder", place.layer, place.head + i, to=to) for i in range(2)]
        check_row(found, row, run, single(run, *pair))
    assert found.lengths is not None
    wrote = run.records[0].result(heads=[2, 3], queries=[len(IDS) - 1]).sum(0)[0]
    assert found.lengths[1] == pytest.approx(float(wrote.norm()), rel=1e-4)
    assert set(found.to_frame()["n"]) == {2} and "n" not in core.sweep_heads(run).to_frame()
    plain = core.trace(tiny(), ids=IDS)
    assert core.sweep_heads(plain, groups=True).places == core.sweep_heads(plain).places, "each has keys of its own"
