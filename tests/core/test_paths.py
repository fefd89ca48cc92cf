"""Paths between heads: each is what single runs with hooks written out by hand give, and what SmolLM2's sentence was found to have."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import product
from typing import Any, cast

import pytest
import torch
from torch import Tensor

import core
from core import device
from core.errors import InterventionError, StaleTrace, TextError, TooLarge
from core.patching import edited_runs, path_patching
from core.patching.head_sweeps import HeadPlace, LogitDiff, logit_diff_between
from core.patching.path_patching import PathEdge, begin_paths, patch_paths
from tests.core.conftest import make_loaded
from tests.core.gguf.test_smollm2 import pytestmark as needs_smollm2
from tests.core.gguf.test_smollm2 import smollm2

IDS, OTHERS = [3, 1, 4, 1, 5, 9, 2, 6], [3, 1, 4, 8, 5, 9, 2, 6]
LLAMA = {"norm": "rms", "position": "rotary", "gated": True, "activation": "silu", "mlp_bias": False, "n_kv_heads": 2}
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_decoder_layers": 3, "position": "learned", "tied": True},
    "llama": {"n_decoder_layers": 3, **LLAMA},
    "sandwich": {"n_decoder_layers": 3, **LLAMA, "norm_order": "sandwich"},
    "post": {"n_decoder_layers": 3, "norm_order": "post", "final_norm": False},
    "parallel": {"n_decoder_layers": 3, "parallel": True},
}


def two_runs(**config: Any) -> tuple[core.Trace, core.Trace]:
    loaded = make_loaded(**config)
    targets = ([1, 2, 3, 4], [1, 2, 7, 4]) if loaded.config.kind == "encoder-decoder" else (None, None)
    return core.trace(loaded, ids=IDS, target_ids=targets[0]), core.trace(loaded, ids=OTHERS, target_ids=targets[1])


def logits(run: core.Trace, hooks: Mapping[str, Any]) -> Tensor:
    """The last logits [vocab] of a plain run of the model with hooks."""
    model, target = run.loaded.model, run.target
    ids = [torch.tensor([tokens.ids]) for tokens in (run.source, *([target] if target else []))]
    with torch.inference_mode(), core.hooked(model, hooks):
        return model(*ids)[0, -1]


def by_hand(run: core.Trace, other: core.Trace, edge: PathEdge) -> Tensor:
    """The last logits with one path patched: three runs, with every z and every MLP frozen by a hook of its own."""
    points = core.hook_points(run.loaded.model)
    frozen = [name for name in points if name.endswith((".hook_z", ".hook_mlp_out"))]
    plain, theirs = ({name: t.activation(name)[None] for name in frozen} for t in (run, other))
    hooks: dict[str, Any] = {name: lambda _, name=name: plain[name] for name in frozen}
    if edge.mlps == "free":
        hooks = {name: hook for name, hook in hooks.items() if name.endswith(".hook_z")}
    arrived: dict[str, Tensor] = {}
    if edge.sender is not None:
        s = edge.sender
        point = f"{s.stack}.blocks.{s.layer}.{s.site}.hook_z"
        sent = plain[point].clone()
        sent[0, :, s.head] = theirs[point][0, :, s.head]
        hooks[point] = lambda _: sent
    if edge.receiver is None:
        return logits(run, hooks)
    r = edge.receiver
    name = f"{r.stack}.blocks.{r.layer}.{r.site}"
    if edge.sender is None:
        arrived = {part: other.activation(f"{name}.hook_{part}") for part in "qkv"}
    else:
        for part in "qkv":
            hooks[f"{name}.hook_{part}"] = lambda x, part=part: arrived.__setitem__(part, x[0])
        logits(run, hooks)
    own = {part: run.activation(f"{name}.hook_{part}") for part in "qkv"} | {edge.input: arrived[edge.input]}
    q, k, v = (x[:, r.head * x.shape[1] // run.config.n_heads] for x in (own["q"], own["k"], own["v"]))
    scores = q @ k.T / run.config.d_head**0.5
    if r.stack == "decoder" and r.site == "attn":
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
    z = plain[f"{name}.hook_z"].clone()
    z[0, :, r.head] = scores.softmax(-1) @ v
    return logits(run, {f"{name}.hook_z": lambda _: z})


def check(run: core.Trace, other: core.Trace, found: list[PathEdge], lead: tuple[int, int]) -> None:
    before = logits(run, {})
    for edge in found:
        after = by_hand(run, other, edge)
        change = (after - before)[lead[0]] - (after - before)[lead[1]]
        assert edge.change == pytest.approx(change.item(), abs=1e-4), edge


@pytest.mark.thorough(but=3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mlps", ["held", "free"])
def test_every_path_is_what_hooks_by_hand_give(shape: str, mlps: Any) -> None:
    run, other = two_runs(**SHAPES[shape])
    heads = [(0, 1), (0, 2), (1, 0), (1, 3), (2, 2)]
    found = list(patch_paths(run, other, heads, LogitDiff(5, 7, 7), mlps=mlps))
    assert len(found) == 5 + 3 * (5 + 4 + 4)
    assert max(abs(edge.change) for edge in found) > 0.01
    check(run, other, found[::3], (5, 7))


@pytest.mark.thorough
def test_paths_of_two_stacks() -> None:
    """A head of the encoder reaches keys and values of cross-attention, one of the decoder its queries, and nothing else of it."""
    run, other = two_runs(n_encoder_layers=2, n_decoder_layers=2)
    heads = [HeadPlace(*cast(Any, place)) for place in (
        ("encoder", 0, "attn", 1), ("encoder", 1, "attn", 0), ("decoder", 0, "attn", 2), ("decoder", 0, "cross_attn", 3),
        ("decoder", 1, "attn", 1), ("decoder", 1, "cross_attn", 0),
    )]  # fmt: skip
    found = list(patch_paths(run, other, heads, logit_diff_between(run, other, 5, 7)))
    between = {
        (e.sender.stack, e.receiver.site, e.input)
        for e in found
        if e.sender and e.receiver and e.receiver.stack == "decoder"
    }
    assert between == {
        ("encoder", "cross_attn", "k"), ("encoder", "cross_attn", "v"),
        *product(["decoder"], ["attn"], "qkv"), ("decoder", "cross_attn", "q"),
    }  # fmt: skip
    assert {e.sender.stack for e in found if e.receiver is None and e.sender} == {"decoder"}
    check(run, other, found, (5, 7))


def test_a_text_too_long_for_a_trunk_and_hooks_from_outside_give_the_same(monkeypatch: Any) -> None:
    run, other = two_runs(**SHAPES["llama"])
    heads = [(0, 1), (1, 0), (2, 2)]
    with_trunk = list(patch_paths(run, other, heads, LogitDiff(5, 7, 7)))
    monkeypatch.setattr(edited_runs, "HELD_BYTES", 0)
    monkeypatch.setattr(path_patching, "MAX_ROWS", 2)
    without = list(patch_paths(run, other, heads, LogitDiff(5, 7, 7)))
    key = lambda e: (str(e.sender), str(e.receiver), e.input)  # noqa: E731
    for a, b in zip(sorted(with_trunk, key=key), sorted(without, key=key), strict=True):
        assert key(a) == key(b) and a.change == pytest.approx(b.change, abs=1e-4)


def test_edits_of_the_run_hold_in_every_path() -> None:
    loaded = make_loaded(**SHAPES["llama"])
    edits = [core.edits.Temperature(0.5), core.edits.Ablate("decoder", 1, 3)]
    run, other = (core.trace(loaded, ids=ids, interventions=edits) for ids in (IDS, OTHERS))
    found = {
        (e.sender, e.receiver, e.input): e.change
        for e in patch_paths(run, other, [(0, 1), (1, 3), (2, 0)], LogitDiff(5, 7, 7))
    }
    silent = HeadPlace("decoder", 1, "attn", 3)
    assert all(x == pytest.approx(0, abs=1e-6) for (sender, to, _), x in found.items() if silent in (sender, to))
    assert max(map(abs, found.values())) > 0.01


def test_paths_of_a_head_add_up_to_its_own_change_where_all_after_it_is_linear() -> None:
    """Without a last norm and with MLPs that say nothing, and queries that look everywhere alike, values are the only way on."""
    loaded = make_loaded(n_decoder_layers=2, norm_order="after", final_norm=False)
    for name, weight in loaded.model.named_parameters():
        if any(part in name for part in ("mlp.down", "attn.q.", "out_norm")):
            weight.zero_()
    for block in loaded.model.decoder.blocks:  # type: ignore[union-attr]
        block.attn_out_norm = torch.nn.Identity()
    run, other = core.trace(loaded, ids=IDS), core.trace(loaded, ids=OTHERS)
    sender = (0, 2)
    receivers = [(1, head) for head in range(4)]
    out = [e.change for e in patch_paths(run, other, [sender], LogitDiff(5, 7, 7)) if e.input == "out"]
    into = [e for e in patch_paths(run, other, [sender], LogitDiff(5, 7, 7), receivers=receivers) if e.sender]
    assert {e.input: 0.0 for e in into if abs(e.change) < 1e-6}.keys() == {"q", "k"}
    sweep = core.patch_heads(run, other, token=5)
    point, theirs = "decoder.blocks.0.attn.hook_z", other.activation("decoder.blocks.0.attn.hook_z")

    def take(z: Tensor) -> Tensor:
        z = z.clone()
        z[0, :, 2] = theirs[:, 2]
        return z

    change = logits(run, {point: take}) - logits(run, {})
    whole = (change[5] - change[7]).item()
    assert abs(whole) > 0.01 and sweep.after.logit is not None and sweep.before.logit is not None
    assert change[5].item() == pytest.approx(float(sweep.after.logit[2, 0] - sweep.before.logit[0, 0]), abs=1e-5)
    assert sum(out) + sum(e.change for e in into) == pytest.approx(whole, abs=1e-4)


def test_the_same_sentence_sends_nothing() -> None:
    run, _ = two_runs(**SHAPES["llama"])
    assert max(abs(e.change) for e in patch_paths(run, run, [(0, 1), (1, 0), (2, 2)])) < 1e-5


def test_what_has_no_paths_says_why(monkeypatch: Any) -> None:
    run, other = two_runs(n_decoder_layers=2)
    with pytest.raises(TextError, match="8 and 5 tokens"):
        patch_paths(run, core.trace(run.loaded, ids=IDS[:5]), [(0, 1)])
    with pytest.raises(TextError, match="same model"):
        patch_paths(run, two_runs(n_decoder_layers=3)[1], [(0, 1)])
    with pytest.raises(InterventionError, match="no attn in layer 2 of the decoder: its layers are 0 to 1"):
        patch_paths(run, other, [(2, 1)])
    with pytest.raises(InterventionError, match="There is no head 4: this model's heads are 0 to 3"):
        patch_paths(run, other, [(1, 4)])
    with pytest.raises(InterventionError, match="at least one"):
        patch_paths(run, other, [])
    with pytest.raises(InterventionError, match="held or free"):
        patch_paths(run, other, [(1, 1)], mlps="no")  # type: ignore[arg-type]
    with pytest.raises(TextError, match="no lead over itself"):
        logit_diff_between(run, other, 5, 5)
    with pytest.raises(IndexError, match="position 8 of 8"):
        logit_diff_between(run, other, position=8)
    encoder = core.trace(make_loaded(n_encoder_layers=2, head="none"), ids=IDS)
    with pytest.raises(TextError, match="answers with a vector"):
        patch_paths(encoder, encoder, [(1, 1)])
    with monkeypatch.context() as patch:
        patch.setattr(path_patching, "MAX_PATHS", 20)
        with pytest.raises(TooLarge, match="would be 80 runs, and 20 are the most"):
            patch_paths(run, other, [(layer, head) for layer in range(2) for head in range(4)])
    with monkeypatch.context() as patch:
        patch.setattr(device, "SMALL", 0)
        patch.setattr(device, "free_bytes", lambda device: 10)
        with pytest.raises(TooLarge, match="of a run of 8 tokens would need"):
            patch_paths(run, other, [(0, 1)], LogitDiff(5, 7, 7))


def test_paths_stop_when_no_more_is_taken_and_after_a_training(monkeypatch: Any) -> None:
    run, other = two_runs(**SHAPES["llama"])
    ran: list[int] = []
    grow = edited_runs.SharedForward.run_rows
    monkeypatch.setattr(
        edited_runs.SharedForward,
        "run_rows",
        lambda self, begins, *a: ran.append(len(begins)) or grow(self, begins, *a),
    )
    monkeypatch.setattr(path_patching, "MAX_ROWS", 4)
    steps = patch_paths(run, other, [(0, 1), (1, 0), (2, 2)])
    assert ran == []
    next(steps)
    assert ran == [3]
    steps.close()  # type: ignore[attr-defined]
    assert ran == [3]
    steps = patch_paths(run, other, [(0, 1), (1, 0), (2, 2)])
    next(steps)
    with torch.no_grad():
        next(run.loaded.model.parameters()).add_(1)
    with pytest.raises(StaleTrace):
        list(steps)


def test_two_threads_ask_for_paths_of_one_model() -> None:
    run, other = two_runs(**SHAPES["llama"])
    alone = [
        list(patch_paths(a, b, [(0, 1), (1, 0), (2, 2)], LogitDiff(5, 7, 7))) for a, b in ((run, other), (other, run))
    ]
    found: dict[int, list[list[PathEdge]]] = {0: [], 1: []}

    def ask(i: int) -> None:
        for _ in range(5):
            found[i].append(
                list(patch_paths(*((run, other), (other, run))[i], [(0, 1), (1, 0), (2, 2)], LogitDiff(5, 7, 7)))
            )

    threads = [threading.Thread(target=ask, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(edges == alone[i] for i in (0, 1) for edges in found[i])


@pytest.mark.thorough
@needs_smollm2
def test_the_paths_of_smollm2() -> None:
    mary, john = (
        core.trace(smollm2(), f"When Mary and John went to the store, {name} gave a drink to")
        for name in ("John", "Mary")
    )
    heads = [(23, 3), (29, 1), (29, 0), (24, 4), (20, 0), (23, 2)]
    asked = begin_paths(mary, john, heads)
    assert smollm2().tokenizer.decode([asked.lead.answer, asked.lead.alternative]) == " Mary John"  # type: ignore[union-attr]
    found = list(asked.steps())
    assert len(found) == asked.n

    def change(sender: tuple[int, int] | None, receiver: tuple[int, int] | None, part: str) -> float:
        (edge,) = (
            e
            for e in found
            if sender == (e.sender and (e.sender.layer, e.sender.head))
            and receiver == (e.receiver and (e.receiver.layer, e.receiver.head))
            and e.input == part
        )
        return edge.change

    for sender, receiver, part, expected in (
        ((23, 3), (29, 1), "v", -2.185),
        ((23, 3), (29, 0), "v", 1.828),
        ((23, 3), (29, 0), "k", 0.230),
        ((23, 3), (24, 4), "q", 1.768),
        ((24, 4), (29, 1), "v", 1.002),
        ((20, 0), (23, 2), "q", -1.228),
        ((23, 3), None, "out", -6.190),
        ((20, 0), None, "out", 0.480),
        (None, (23, 3), "v", -7.274),
        (None, (24, 4), "q", 2.234),
    ):
        assert change(sender, receiver, part) == pytest.approx(expected, abs=0.01)
    free = list(patch_paths(mary, john, [(20, 0)], receivers=[(23, 2)], mlps="free"))
    assert [e.change for e in free if e.sender and e.input == "q"] == [pytest.approx(-0.367, abs=0.01)]
