"""The record of a run is of that run: after every edit and every hook, held or not, in second passes, and after a training."""

from __future__ import annotations

import gc
import json
import random
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from torch import Tensor

import core
from core.checkpoints import Loaded
from core.edits import KINDS as KINDS_OF_EDIT
from core.errors import StaleTrace
from core.model.hooks import Hook
from core.model.rules import softmax
from core.model.text import from_ids, pad
from core.run.request import Request
from core.service.engine import Engine
from tests.core.conftest import KINDS, make_loaded
from tests.core.test_engine import word_tokenizer
from tests.core.test_invariants import SAMPLE, name
from tests.thorough import part

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]
PROPERTY = SAMPLE[::2]


@pytest.fixture(params=["held", "from another pass"])
def hold(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "held":
        monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)
    return request.param


class Custom:
    """Any edit: a hook at one point, as somebody would write it."""

    def __init__(self, point: str, hook: Hook) -> None:
        self.point, self.hook = point, hook

    def hooks(self, _: Any) -> dict[str, Hook]:
        return {self.point: self.hook}


def sharper(scores: Tensor) -> Tensor:
    return scores * 1.5 + 0.1


def blurred(pattern: Tensor) -> Tensor:
    return pattern * 0.5 + 0.5 * pattern.mean(-1, keepdim=True)


def doubled(x: Tensor) -> Tensor:
    return x * 2


def tilted(x: Tensor) -> Tensor:
    return x + torch.linspace(-1, 1, x.shape[-1])


CUSTOM: dict[str, tuple[Hook, ...]] = {
    "hook_q": (doubled, tilted),
    "hook_k": (tilted,),
    "hook_v": (doubled, tilted),
    "hook_scores": (sharper,),
    "hook_pattern": (blurred,),
    "hook_z": (doubled, tilted),
    "hook_result": (doubled, tilted),
}


def any_edits(
    loaded: Loaded, n: int, rng: random.Random, lengths: tuple[int, ...] | None
) -> tuple[list[Any], list[dict[str, Hook]]]:
    """Some edits of all kinds, and some hooks to be open around the run. `lengths` are those of a text in each stack, where
    all texts have the same."""
    config = loaded.config
    edits: list[Any] = []
    for _ in range(rng.randint(0, 5)):
        at = rng.randrange(len(config.stacks))
        stack, n_layers = config.stacks[at]
        layer, head = rng.randrange(n_layers), rng.randrange(config.n_heads)
        query, key, allowed = rng.randrange(n), rng.randrange(n), rng.random() < 0.5
        site: Any = "cross_attn" if stack == "decoder" and config.kind == "encoder-decoder" and allowed else "attn"
        kinds: list[Any] = [
            core.edits.Ablate(stack, layer, head, site, to=rng.choice(("zero", "mean"))),
            core.edits.ScaleHead(rng.choice((-1.0, 2.0)), stack, layer, head, site),
            core.edits.EditMask(stack, layer, query, key, allowed, head=rng.choice((None, head))),
            core.edits.EditMask(stack, layer, range(query + 1), [key, n - 1], allowed),
            core.edits.EditMask(stack, distances=(-2, key), allowed=allowed),
            core.edits.AsPadding(key, stack),
            core.edits.SetMask("window", rng.randint(1, n), stack, layer, rng.choice((None, head))),
            core.edits.SetMask(rng.choice(("none", "causal")), None, stack, layer),
            core.edits.Window(rng.randint(1, n), stack, layer, rng.choice((None, head))),
            core.edits.DropPadding(stack, layer),
            core.edits.MaskAfterSoftmax(stack, layer),
            core.edits.MaskFill(rng.choice((-1e9, -3.0)), stack, layer),
            core.edits.NoScale(stack, layer),
            core.edits.Temperature(rng.choice((0.5, 3.0))),
            core.edits.DropPositions(stack),
            core.edits.ShufflePositions(rng.randrange(9), stack),
            core.edits.ShiftPositions(rng.randint(0, 5), stack),
            core.edits.SwapWords(0, rng.randint(1, n - 1), stack),
        ]
        if config.kind != "encoder":
            kinds.append(core.edits.DropCausalMask(rng.choice((None, 0))))
        if lengths is not None:
            kinds.append(core.edits.SetPositions(rng.sample(range(12), lengths[at]), stack))
        edits.append(rng.choice(kinds))
    attentions = [
        point.removesuffix(".hook_z") for point in core.hook_points(loaded.model) if point.endswith(".hook_z")
    ]

    def custom() -> tuple[str, Hook]:
        kind = rng.choice(list(CUSTOM))
        return f"{rng.choice(attentions)}.{kind}", rng.choice(CUSTOM[kind])

    edits += [Custom(*custom()) for _ in range(rng.randint(0, 3))]
    rng.shuffle(edits)
    return edits, [dict([custom()]) for _ in range(rng.randint(0, 2))]


def texts(kind: str, padded: str, rng: random.Random) -> tuple[Any, Any]:
    def some(*lengths: int) -> Any:
        made = [from_ids(None, [rng.randrange(1, 61) for _ in range(n)]) for n in lengths]
        return pad(made, 0, "[PAD]", "left" if padded == "left" else "right")

    lengths = (9, 7) if padded == "none" else (9, 6)
    both = (lengths[:1] * 2, lengths[1:] * 2) if padded == "none" else (lengths, lengths[::-1])
    return some(*both[0]), some(*both[1]) if kind == "encoder-decoder" else None


def draws(config: dict[str, Any], loaded: Loaded) -> Iterator[tuple[str, Any, Any, list[Any], list[dict[str, Hook]]]]:
    """Texts with and without padding, and some edits for each."""
    rng = random.Random(name(config))
    for padded in ("none", "right", "left"):
        sources, targets = texts(loaded.config.kind, padded, rng)
        lengths = tuple(len(some[0]) for some in (sources, targets) if some is not None) if padded == "none" else None
        yield padded, sources, targets, *any_edits(loaded, 6, rng, lengths)


def test_the_edits_that_are_tried_are_of_every_kind() -> None:
    tried = {
        type(edit) for config in PROPERTY for *_, edits, _ in draws(config, make_loaded(**config)) for edit in edits
    }
    assert tried == {*KINDS_OF_EDIT.values(), Custom}


def watch(loaded: Loaded, end: str) -> tuple[dict[str, Tensor], dict[str, Hook]]:
    """What passes the points whose names end so, once a pass has run with these hooks."""
    seen: dict[str, Tensor] = {}

    def look(point: str) -> Hook:
        return lambda x: seen.update({point: x.clone()})

    return seen, {point: look(point) for point in core.hook_points(loaded.model) if point.endswith(end)}


@pytest.mark.thorough(but=5)
@pytest.mark.parametrize("config", part(PROPERTY, 3), ids=name)
def test_what_the_record_says_was_added_is_what_the_pass_added(config: dict[str, Any], hold: str) -> None:
    """pattern @ v · W_O (with edits of z) = what each attention really handed to the residual stream, or to a norm before it."""
    loaded = make_loaded(**config)
    for padded, sources, targets, edits, outside in draws(config, loaded):
        added, watched = watch(loaded, ".hook_o")
        with ExitStack() as contexts:
            for hooks in (*outside, watched):
                contexts.enter_context(core.hooked(loaded.model, hooks))
            run = core.trace_tokens(loaded, sources, targets, tuple(edits))
        first_added = dict(added)  # second passes have hooks of their own run
        said = [str(getattr(edit, "point", edit)) for edit in edits] + [str(list(h)) for h in outside]
        for text in range(2):
            for record in run.text(text).attention:
                assert record.output is not None and record.o_weight is not None
                real = first_added[f"{record.name}.hook_o"][text]
                bias = record.output().bias
                result = record.result()
                given = result.sum(0) + (0 if bias is None else bias)
                assert (given - real).abs().max() <= 2e-5 * max(1, real.abs().max()), (record.name, text, padded, said)
                if not any(point in str(said) for point in ("hook_z", "hook_result", "Ablate", "ScaleHead")):
                    v = record.v.repeat_interleave(record.n_heads // record.n_kv_heads, 0)
                    by_hand = torch.nn.functional.linear(
                        (record.pattern() @ v).transpose(0, 1).flatten(1), record.o_weight, bias
                    )
                    assert (by_hand - real).abs().max() <= 2e-5 * max(1, real.abs().max()), (record.name, said)
                assert torch.allclose(record.output_norms(), result.norm(dim=-1), atol=1e-4, rtol=1e-4)
                z = record.z()
                assert (record.z([1, 0], [2, 0]) - z[[1, 0]][:, [2, 0]]).abs().max() <= 1e-5 * max(1, z.abs().max())
                receipt = record.receipt()
                assert receipt.rows_sum_error <= 1e-5 or any(
                    w in str(said) for w in ("hook_pattern", "MaskAfterSoftmax")
                )
                assert receipt.fused_error is None or receipt.fused_error <= 2e-5 * max(1, record.v.abs().max())
                assert receipt.added_error is None or receipt.added_error <= 1e-5, (record.name, text, padded, said)


def test_an_ablated_head_adds_nothing_by_its_record(tiny: Tiny, hold: str) -> None:
    run = core.trace(tiny(), ids=IDS, interventions=[core.edits.Ablate("decoder", 0, 2)])
    norms = run.attention[0].output_norms()
    assert norms[2].max() == 0 and norms[[0, 1, 3]].min() > 0
    assert run.attention[0].z(2).abs().max() == 0 and run.attention[0].result(2).abs().max() == 0


@pytest.mark.parametrize("kind", ["hook_scores", "hook_pattern"])
def test_a_custom_edit_of_the_map_is_in_its_record(tiny: Tiny, hold: str, kind: str) -> None:
    loaded = tiny()
    edit: Any = Custom(f"decoder.blocks.0.attn.{kind}", CUSTOM[kind][0])
    plain, edited = core.trace(loaded, ids=IDS), core.trace(loaded, ids=IDS, interventions=[edit])
    assert (plain.attention[0].pattern() - edited.attention[0].pattern()).abs().max() > 0.01
    receipt = edited.attention[0].receipt()
    assert receipt.fused_error is None and receipt.added_error is not None and receipt.added_error <= 1e-5


def test_values_from_another_pass_have_seen_the_hooks_around_the_run(tiny: Tiny, monkeypatch: Any) -> None:
    loaded = tiny()
    values, pattern = "decoder.blocks.1.attn.hook_v", "decoder.blocks.0.attn.hook_pattern"

    def run() -> core.Trace:
        with core.hooked(loaded.model, {values: doubled, pattern: blurred}):
            return core.trace(loaded, ids=IDS, interventions=[core.edits.Ablate("decoder", 0, 1)])

    held = run()
    monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)
    long = run()
    positions = torch.arange(len(IDS))
    with core.hooked(loaded.model, {"decoder.embed.hook_token": torch.zeros_like}):  # nor those that are open later
        for a, b in zip(held.attention, long.attention, strict=True):
            assert torch.equal(a.v, b.v)
        assert torch.equal(held.last_residual(positions), long.last_residual(positions))
        assert held.predictions([2]) == long.predictions([2])


def test_a_receipt_fails_where_the_record_is_not_what_the_pass_did(tiny: Tiny) -> None:
    record = core.trace(tiny(), ids=IDS).attention[0]
    good = record.receipt().added_error
    assert good is not None and good <= 1e-6
    wrong = replace(record, batch_q=record.batch_q * 1.1).receipt()
    assert wrong.fused_error is not None and wrong.fused_error <= 1e-6  # both sides of it are of the wrong q
    assert wrong.added_error is not None and wrong.added_error > 1e-4


def test_a_record_of_no_numbers_passes_no_receipt(tiny: Tiny) -> None:
    edit: Any = Custom("decoder.blocks.0.attn.hook_q", lambda q: q * float("nan"))
    receipt = core.trace(tiny(), ids=IDS, interventions=[edit]).attention[0].receipt()
    assert receipt.rows_sum_error == receipt.fused_error == receipt.added_error == torch.finfo(torch.float32).max
    assert json.loads(json.dumps(asdict(receipt), allow_nan=False)) == asdict(receipt)


def test_a_trace_that_nobody_holds_is_gone_at_once(tiny: Tiny) -> None:
    loaded = tiny()
    gc.collect()
    gc.disable()
    try:
        run = core.trace(loaded, ids=IDS, interventions=[core.edits.Ablate("decoder", 0, 2)], watch=lambda so_far: None)
        held = weakref.ref(run.records[0].batch_q)
        del run
        assert held() is None, "a cycle of references keeps the queries of a dropped trace"
    finally:
        gc.enable()


# a trace is a snapshot


@pytest.fixture
def trained(tiny: Tiny) -> Iterator[tuple[core.Trace, Callable[[], None]]]:
    """A run, and a step of training that changes the model behind its back."""
    loaded = tiny()
    run = core.trace(loaded, ids=IDS)

    def step(**how: Any) -> None:
        loaded.model.requires_grad_(True)
        optimiser = torch.optim.AdamW(loaded.model.parameters(), lr=0.1, **how)
        loaded.model(torch.tensor([IDS])).logsumexp(-1).sum().backward()
        optimiser.step()
        loaded.model.requires_grad_(False)

    yield run, step


@pytest.mark.parametrize("how", [{}, {"foreach": True}, {"fused": True}])
def test_after_a_step_of_training_a_run_keeps_what_it_holds_and_refuses_the_rest(trained: Any, how: Any) -> None:
    run, step = trained
    record = run.attention[1]
    before = record.pattern(), record.v, record.z()
    assert record.receipt().added_error is not None and run.positions[0].table() is not None
    step(**how)
    assert all(torch.equal(a, b) for a, b in zip(before, (record.pattern(), record.v, record.z()), strict=True))
    assert record.receipt().added_error is None and record.receipt().fused_error is not None
    for ask in (
        run.predictions,
        record.output_norms,
        record.value_norms,
        record.result,
        run.positions[0].table,
        lambda: record.o_weight,
    ):
        with pytest.raises(StaleTrace, match="The model has been trained since this run"):
            ask()
    assert run.residual_norms and run.attention[0].thumbnail().values.isfinite().all()


def test_a_long_run_refuses_its_values_once_the_model_was_trained(tiny: Tiny, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys.modules["core.run.trace"], "HELD_BYTES", 0)
    loaded = tiny(n_encoder_layers=1)
    run = core.trace(loaded, ids=IDS)
    run.attention[0].v.sum()
    with torch.no_grad():
        loaded.model.get_parameter("encoder.blocks.0.mlp.up.bias").add_(1)
    with pytest.raises(StaleTrace, match="run the text again"):
        run.attention[0].v.sum()
    with pytest.raises(StaleTrace):
        run.last_residual(torch.tensor([0, 1]))
    assert core.trace(loaded, ids=IDS).attention[0].v.shape == (4, 8, 6)  # a new run is of the new weights


def test_weights_that_are_inference_tensors_have_no_version_and_count_as_unchanged() -> None:
    with torch.inference_mode():
        loaded = core.build(make_loaded().config)
    assert next(loaded.model.parameters()).is_inference()
    assert core.trace(loaded, ids=IDS).predictions().positions == (7,)


# no numbers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spelled_out", [False, True])
@pytest.mark.parametrize("n", [1, 2, 9, 30])
def test_a_row_of_no_numbers_stays_so(tiny: Tiny, kind: str, spelled_out: bool, n: int) -> None:
    loaded = tiny(**KINDS[kind], vocab_size=61)
    stack = loaded.config.stacks[0][0]
    ids = [1 + i % 60 for i in range(n)]

    def spoil(q: Tensor) -> Tensor:
        q = q.clone()
        q[:, n // 2, 2] = float("nan")
        return q

    edits: list[Any] = [Custom(f"{stack}.blocks.0.attn.hook_q", spoil)]
    if spelled_out:
        edits.append(Custom(f"{stack}.blocks.0.attn.hook_pattern", lambda pattern: None))
    zs: list[Tensor] = []
    with core.hooked(loaded.model, {f"{stack}.blocks.0.attn.hook_z": zs.append}):
        run = core.trace(loaded, ids=ids, interventions=edits)
    record = run.attention[0]
    row = record.pattern(2, n // 2)[0, 0]
    assert row.isnan().all() and zs[0][0, n // 2, 2].isnan().all()
    others = [i for i in range(n) if i != n // 2]
    assert record.pattern([0, 1, 3]).isfinite().all() and record.pattern(2, others).isfinite().all()
    found = run.non_finite
    assert found is not None
    assert (found.stack, found.layer, found.point, found.what, found.kind, found.position) == (
        stack, 0, f"{stack}.blocks.0.hook_attn_out", "attention", "nan", n // 2,
    )  # fmt: skip


def test_a_run_says_where_its_numbers_ended(tiny: Tiny) -> None:
    loaded = tiny(n_encoder_layers=3)
    assert core.trace(loaded, ids=IDS).non_finite is None

    def overflow(x: Tensor) -> Tensor:
        x = x.clone()
        x[:, 5] *= 1e30
        return x * 1e30

    edit: Any = Custom("encoder.blocks.1.mlp.hook_post", overflow)
    found = core.trace(loaded, ids=IDS, interventions=[edit]).non_finite
    assert found is not None
    assert (found.layer, found.what, found.kind, found.position) == (1, "the MLP", "inf", 0)
    everywhere: Any = Custom("encoder.embed.hook_token", lambda x: x * float("nan"))
    found = core.trace(loaded, ids=IDS, interventions=[everywhere]).non_finite
    assert found is not None and (found.layer, found.what, found.kind) == (None, "the embedding", "nan")


def test_padding_of_no_numbers_is_no_matter(tiny: Tiny) -> None:
    sources = pad([from_ids(None, IDS), from_ids(None, IDS[:3])], 0, "[PAD]", "right")

    def spoil(x: Tensor) -> Tensor:
        x = x.clone()
        x[1, 5:] = float("inf")
        return x

    edit: Any = Custom("encoder.blocks.1.hook_mlp_out", spoil)
    run = core.trace_tokens(tiny(n_encoder_layers=2), sources, None, (edit,))
    assert run.non_finite is None and run.text(1).non_finite is None
    assert not run.text(1).residual_norms["encoder.blocks.1.hook_mlp_out"].isfinite().all()


def test_softmax_gives_zeros_for_a_row_that_is_hidden_and_for_no_other() -> None:
    inf, nan = float("inf"), float("nan")
    scores = torch.tensor([[-inf, -inf], [nan, nan], [nan, 0.0], [inf, 0.0], [-inf, 1.0]])
    for requires_grad in (False, True):
        pattern = softmax(scores.clone().requires_grad_(requires_grad)).detach()
        assert pattern[0].tolist() == [0, 0] and pattern[4].tolist() == [0, 1]
        assert pattern[1:4].isnan().all()


def test_an_engines_trace_that_is_dropped_is_gone_at_once(tiny: Tiny) -> None:
    loaded = tiny()
    engine = Engine(load_model=lambda *_, **__: replace(loaded, tokenizer=word_tokenizer()))
    engine.run(Request("any", ("the cat sat",)))
    gc.collect()
    gc.disable()
    try:
        run = engine.run(Request("any", ("it ran far",)))
        held = weakref.ref(run.records[0].batch_q)
        engine.max_traces = 0
        del run
        engine.run(Request("any", ("far away from us",)))
        assert held() is None
    finally:
        gc.enable()
