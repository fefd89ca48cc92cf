"""Parts taken from another run, silenced, or set to their mean: every row is a run of its own, every estimate autograd's derivative."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor

import core
from core import device
from core.checkpoints import Loaded
from core.errors import InterventionError, RunCancelled, StaleTrace, TextError, TooLarge
from core.model.config import RotaryScaling
from core.model.hooks import ReadHook, hooked
from core.model.outputs import NextTokenRule
from core.model.text import from_ids, pad
from core.model.transformer import to_dtype
from core.patching import Component
from core.patching import component_patching as parts_module
from core.patching.component_patching import Patching, attribution_estimates, backward_bytes, gradients_of, patching_of
from core.patching.counterfactual import To, counterfactual_of, row_bytes
from core.plan.tracing import LiveBytes
from tests.core.conftest import make_loaded
from tests.core.test_records import Custom

IDS, OTHER = [3, 1, 4, 1, 5, 9, 2, 6], [3, 1, 4, 8, 5, 9, 7, 6]
LLAMA: dict[str, Any] = {"position": "rotary", "n_kv_heads": 2, "norm": "rms", "gated": True, "activation": "silu"}
EXPERTS: dict[str, Any] = {"n_experts": 4, "n_experts_per_token": 2, "d_shared": 7, "gated": True, "mlp_bias": False}
DECODERS: dict[str, dict[str, Any]] = {
    "GPT-2": {},
    "Llama": LLAMA,
    "post-norm": {"norm_order": "post"},
    "sandwich": {**LLAMA, "norm_order": "sandwich", "window": 3, "score_softcap": 5.0, "logit_softcap": 9.0},
    "norms after": {**LLAMA, "norm_order": "after", "qk_norm": True, "qk_norm_place": "full"},
    "parallel, two norms": {"parallel": True, "position": "rotary", "rotary_fraction": 0.34},
    "parallel, one norm": {"parallel": True, "shared_norm": True, "position": "rotary", "n_kv_heads": 1},
    "ALiBi": {"position": "alibi", "embed_norm": True},
    "T5's bias": {"position": "relative"},
    "sinks": {**LLAMA, **EXPERTS, "sinks": True, "window": 4, "windowed_layers": (0,)},
    "latent": {
        **LLAMA,
        "n_kv_heads": 4,
        "kv_rank": 5,
        "q_rank": 6,
        "d_v": 3,
        "rotary_fraction": 0.34,
        "qkv_bias": False,
    },
    "growing queries": {**LLAMA, "query_growth": 0.3, "query_growth_length": 2, "unturned_layers": (1,)},
}
WHOLE: dict[str, dict[str, Any]] = {
    "encoder": {"n_encoder_layers": 2, "head": "mlm"},
    "encoder-decoder": {"n_encoder_layers": 2, "n_decoder_layers": 2},
}
TOS: tuple[To, ...] = ("other", "zero", "mean")


def pair(loaded: Loaded) -> tuple[core.Trace, core.Trace]:
    two = loaded.config.kind == "encoder-decoder"
    mine, theirs = ([1, 2, 3], [1, 7, 3]) if two else (None, None)
    return core.trace(loaded, ids=IDS, target_ids=mine), core.trace(loaded, ids=OTHER, target_ids=theirs)


def every_part(run: core.Trace, words: bool = True) -> list[Component]:
    found: list[Component] = []
    for stack, n_layers in run.config.stacks:
        sites: tuple[Any, ...] = (
            ("attn", "cross_attn") if (stack, run.target is None) == ("decoder", False) else ("attn",)
        )
        tokens = run.source if stack == "encoder" or run.target is None else run.target
        for layer in range(n_layers):
            found += [
                Component("head", layer, head, stack, site) for site in sites for head in range(run.config.n_heads)
            ]
            found.append(Component("mlp", layer, stack=stack))
            found += [Component("resid", layer, token, stack) for token in range(len(tokens))] if words else []
    return found


def edit(part: Component, run: core.Trace, other: core.Trace | None, to: To) -> Custom:
    """The edit of one part, as anyone would write it: a hook of a whole run of its own."""
    point = part.point(run.config.stacks[-1][0])
    tokens = run.source if point.startswith("encoder") or run.target is None else run.target
    real = ~torch.tensor(tokens.padding)
    own = run.activation(point)
    if to == "other":
        assert other is not None
        given = other.activation(point)
    else:
        given = torch.zeros_like(own) if to == "zero" else own[real].mean(0, keepdim=True).expand_as(own)

    def change(x: Tensor) -> Tensor:
        x = x.clone()
        own_text = x[run.index]  # [pos, ...]
        at: Any = {"mlp": slice(None), "head": (slice(None), part.at), "resid": part.at}[part.kind]
        own_text[at] = given[at]
        return x

    return Custom(point, change)


def alone(run: core.Trace, change: Custom, position: int | None) -> Tensor:
    """log p of every word in a run of its own."""
    edits = cast(Any, (*run.interventions, change))
    made = core.trace_tokens(run.loaded, run.sources, run.targets, edits).text(run.index)
    return made.activation("head.hook_logits", [last(run) if position is None else position])[0].float().log_softmax(-1)


def last(run: core.Trace) -> int:
    tokens = run.source if run.target is None else run.target
    return max(i for i, padding in enumerate(tokens.padding) if not padding)


def check(
    run: core.Trace, other: core.Trace | None, to: To = "other", position: int | None = None, close: float = 1e-4
) -> Patching:
    """Every row, asked for in another order than the pass's, and in groups, is a run of its own."""
    parts = every_part(run, to == "other")
    parts = parts[::3][::-1] + [part for i, part in enumerate(parts) if i % 3]
    asked: list[Component | Sequence[Component]] = [parts[0], parts[1], tuple(parts[2:7]), *parts[7:]]
    got = list(core.patch_components(run, other, asked, (5, 7), to, position))
    assert [part for answers in got for part in answers.parts] == parts
    assert [answers.first for answers in got] == [0, 2, 7]
    log_p = np.concatenate([answers.log_p for answers in got])
    top, top_p = (np.concatenate([getattr(answers, name) for answers in got]) for name in ("top", "top_p"))
    moved = 0.0
    for row, part in list(enumerate(parts))[::2]:
        theirs = alone(run, edit(part, run, other, to), position)
        np.testing.assert_allclose(log_p[row], theirs[[5, 7]], atol=close, err_msg=str(part))
        assert theirs[top[row]].exp() == pytest.approx(theirs.max().exp().item(), abs=close)
        assert top_p[row] == pytest.approx(theirs.max().exp().item(), abs=close)
        moved = max(moved, float(np.abs(log_p[row] - got[0].before).max()))
    assert moved > 0.02, "something changes, so that a row of the plain run would not pass"
    return patching_of(counterfactual_of(run, other, to, position), (5,))


@pytest.mark.thorough(but=9)
@pytest.mark.parametrize("to", TOS)
@pytest.mark.parametrize("name", DECODERS)
def test_rows_that_join_halfway_are_single_runs(name: str, to: To) -> None:
    run, other = pair(make_loaded(3, **DECODERS[name], n_decoder_layers=3))
    made = check(run, other if to == "other" else None, to)
    assert made.batch is not None and made.batch.prefix.first == (3 if to == "other" else 0)


@pytest.mark.parametrize("to", TOS)
@pytest.mark.parametrize("name", WHOLE)
def test_other_models_run_the_whole_text(name: str, to: To) -> None:
    run, other = pair(make_loaded(**WHOLE[name]))
    made = check(run, other if to == "other" else None, to, 4 if name == "encoder" else None)
    assert made.batch is None


@pytest.mark.parametrize("to", TOS)
def test_an_edited_run_keeps_its_edits(to: To) -> None:
    loaded = make_loaded(**LLAMA)
    edits = (core.edits.Ablate("decoder", 0, 1), core.edits.EditMask("decoder", 1, 7, 2))
    run = core.trace(loaded, ids=IDS, interventions=edits)
    assert check(run, core.trace(loaded, ids=OTHER), to).batch is None
    with hooked(loaded.model, {"decoder.blocks.0.attn.hook_z": lambda z: z * 1.5}):
        hooked_run = core.trace(loaded, ids=IDS)
    check_hooked = patching_of(counterfactual_of(hooked_run, core.trace(loaded, ids=OTHER), to, None), (5,))
    assert (
        check_hooked.batch is None
        and check_hooked.shared_forward is not None
        and not check_hooked.shared_forward.streams
    )


def test_a_part_of_a_run_with_hooks_from_outside() -> None:
    """Every row runs them all, since a hook of a caller's may have a memory of its own."""
    loaded = make_loaded(**LLAMA)
    other = core.trace(loaded, ids=OTHER)
    louder: Any = Custom("decoder.blocks.0.attn.hook_z", lambda z: z * 1.5)
    with hooked(loaded.model, louder.hooks(None)):
        run = core.trace(loaded, ids=IDS)
    edited = core.trace(loaded, ids=IDS, interventions=(louder,))
    parts = every_part(run)
    (found,) = core.patch_components(run, other, parts, (5, 7))
    (same,) = core.patch_components(edited, other, parts, (5, 7))
    np.testing.assert_allclose(found.log_p, same.log_p, atol=1e-5)


@pytest.mark.parametrize("to", TOS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_of_a_padded_batch_the_text_that_is_meant(side: Any, to: To) -> None:
    loaded = make_loaded(**LLAMA)
    long = from_ids(None, [*IDS, 11, 12])

    def padded(ids: list[int]) -> core.Trace:
        return core.trace_tokens(loaded, pad([long, from_ids(None, ids)], 0, "[PAD]", side), None, ()).text(1)

    assert check(padded(IDS), padded(OTHER), to).batch is not None


@pytest.mark.parametrize("to", TOS)
def test_a_word_in_the_middle(to: To) -> None:
    run, other = pair(make_loaded(**LLAMA))
    assert (check(run, other, to, 5).batch is None) == (to == "mean")  # the mean is over the whole text
    scaling = RotaryScaling(kind="dynamic", factor=2.0, n_ctx_original=4)
    run, other = pair(make_loaded(**LLAMA, rotary_scaling=scaling))
    assert check(run, other, to, 5).batch is None, "the angles are those of the whole text"
    assert (check(run, other, to).batch is None) is False


def test_another_model_of_the_same_shape_shares_no_token() -> None:
    run, other = core.trace(make_loaded(0), ids=IDS), core.trace(make_loaded(1), ids=IDS)
    made = check(run, other)
    assert made.batch is not None and made.batch.prefix.first == 0


def test_the_same_text_changes_nothing() -> None:
    run = core.trace(make_loaded(**LLAMA), ids=IDS)
    (found,) = core.patch_components(run, run, every_part(run), (5, 7))
    np.testing.assert_allclose(found.log_p, np.broadcast_to(found.before, found.log_p.shape), atol=1e-5)
    assert np.abs(core.attribution_patching(run, run, 5, 7).heads).max() < 1e-5


def test_a_row_is_computed_after_its_part_and_from_the_first_other_token_on() -> None:
    loaded, seen = make_loaded(**LLAMA, n_decoder_layers=3), {}

    def look(layer: int, x: Tensor) -> None:
        seen.setdefault(layer, []).append(tuple(x.shape[:2]))

    points = {f"decoder.blocks.{i}.mlp.hook_post": ReadHook(lambda x, i=i: look(i, x)) for i in range(3)}
    with hooked(loaded.model, cast(Any, points)):
        run = core.trace(loaded, ids=IDS)
    made = patching_of(counterfactual_of(run, core.trace(loaded, ids=OTHER), "other", None), (5,))
    seen.clear()
    made.run(
        [
            Component("mlp", 1),
            Component("head", 0, 2),
            Component("head", 1, 1),
            Component("resid", 0, 4),
            Component("head", 2, 0),
        ]
    )
    assert seen == {0: [(1, 5)], 1: [(3, 5)], 2: [(5, 1)]}


@pytest.mark.thorough(but=12)
@pytest.mark.parametrize("to", TOS)
@pytest.mark.parametrize("name", [*DECODERS, *WHOLE])
def test_an_estimate_is_the_derivative_times_the_change(name: str, to: To) -> None:
    """d lead / dt of a run in which one part gives (1 − t) · its own + t · the other's, at t = 0."""
    loaded = make_loaded(5, **(DECODERS | WHOLE)[name])
    run, other = pair(loaded)
    position = 4 if name == "encoder" else None
    at = last(run) if position is None else position
    found = core.attribution_patching(run, other, 5, 7, to, position)
    largest = 0.0
    parts = [part for i, part in enumerate(every_part(run, to == "other")) if i % 3 == len(name) % 3]
    for part in parts:
        t = torch.zeros((), requires_grad=True)
        change = edit(part, run, other, to)

        def between(x: Tensor, t: Tensor = t, change: Custom = change) -> Tensor:
            return x + t * (change.hook(x.detach()) - x.detach())

        with torch.enable_grad(), hooked(loaded.model, {change.point: between}):
            ids, target = torch.tensor([IDS]), None if run.target is None else torch.tensor([run.target.ids])
            logits = loaded.model(ids, target)[0, at]
            lead = logits[5] - logits[7]
            (slope,) = torch.autograd.grad(lead, t, allow_unused=True)
        derivative = 0.0 if slope is None else slope.item()
        assert found.of(part) == pytest.approx(derivative, abs=2e-5, rel=1e-4), part
        assert found.lead == pytest.approx(lead.item(), abs=1e-5)
        largest = max(largest, abs(derivative))
    assert largest > 0.01
    assert found.heads.shape == (2, 4) and found.mlps.shape == (2,)
    assert {found.heads.dtype, found.mlps.dtype} == {np.dtype(np.float32)}
    assert (found.resid is None) == (to != "other")
    assert len(found.parts) == len(every_part(run, to == "other"))


def test_the_formula_as_transformer_lens_has_it() -> None:
    """get_act_patch of attribution patching, written out: (corrupted_cache − clean_cache) · grad_cache, at hook_z added up over
    position and d_head, and at hook_result, a head's z W_O, over position and d_model. Both are the same number."""
    loaded = make_loaded(7)  # GPT-2's shape
    run, other = pair(loaded)
    found = core.attribution_patching(run, other, 5, 7)
    clean: dict[str, Tensor] = {}
    start = {"decoder.embed.hook_embed": lambda x: x.detach().requires_grad_()}
    names = [
        f"decoder.blocks.{i}.{end}"
        for i in range(2)
        for end in ("attn.hook_z", "attn.hook_o", "hook_mlp_out", "hook_resid_post")
    ]
    keep = {name: (lambda x, name=name: clean.__setitem__(name, x)) for name in names}
    with torch.enable_grad(), hooked(loaded.model, cast(Any, start | keep)):
        logits = loaded.model(torch.tensor([IDS]))[0, -1]
        grads = dict(
            zip(names, torch.autograd.grad(logits[5] - logits[7], [clean[name] for name in names]), strict=True)
        )
    for layer in range(2):
        z, o = (f"decoder.blocks.{layer}.attn.hook_{what}" for what in "zo")
        change = other.activation(z) - clean[z].detach()[0]  # [pos, head, d_head]
        by_z = (change * grads[z][0]).sum((0, -1))
        weight = loaded.model.get_parameter(f"decoder.blocks.{layer}.attn.o.weight").unflatten(1, (4, 6))
        result = torch.einsum("phd,mhd->phm", change, weight)  # what hook_result changes by, [pos, head, d_model]
        by_result = (result * grads[o][0][:, None]).sum((0, 2))
        np.testing.assert_allclose(found.heads[layer], by_z, atol=1e-5)
        np.testing.assert_allclose(found.heads[layer], by_result, atol=1e-5)
        mlp, resid = (f"decoder.blocks.{layer}.hook_{what}" for what in ("mlp_out", "resid_post"))
        assert found.mlps[layer] == pytest.approx(
            ((other.activation(mlp) - clean[mlp].detach()[0]) * grads[mlp][0]).sum().item(), abs=1e-5
        )
        assert found.resid is not None
        by_token = ((other.activation(resid) - clean[resid].detach()[0]) * grads[resid][0]).sum(-1)
        np.testing.assert_allclose(found.resid[layer], by_token, atol=1e-5)


def test_without_a_rival_the_lead_is_log_p() -> None:
    run, other = pair(make_loaded(**LLAMA))
    found = core.attribution_patching(run, other, 5)
    (rows,) = core.patch_components(run, other, found.parts, (5,))
    assert found.alternative is None and found.lead == pytest.approx(float(rows.before[0]), abs=1e-5)
    estimates, exact = np.array([found.of(part) for part in found.parts]), rows.log_p[:, 0] - rows.before[0]
    assert np.corrcoef(estimates, exact)[0, 1] > 0.5


def test_the_slopes_pass_is_the_plain_run_of_the_rows() -> None:
    run, other = pair(make_loaded(**LLAMA))
    sides = counterfactual_of(run, other, "other", None)
    gradients = gradients_of(sides, 5, 7)
    parts = attribution_estimates(sides, gradients).parts
    shared = patching_of(sides, (5, 7), gradients.activations).run(parts)
    (found,) = core.patch_components(run, other, parts, (5, 7))
    np.testing.assert_allclose(shared.log_p, found.log_p, atol=1e-5)


def test_refusals_are_sentences(monkeypatch: Any) -> None:
    loaded = make_loaded()
    run, other = pair(loaded)
    ask = [Component("head", 0, 0)]
    with pytest.raises(TextError, match=r"8 and 5 tokens.*Write a text of 8 tokens"):
        core.patch_components(run, core.trace(loaded, ids=IDS[:5]), ask, (5,))
    with pytest.raises(TextError, match="8 and 5 tokens"):
        core.attribution_patching(run, core.trace(loaded, ids=IDS[:5]), 5)
    with pytest.raises(TextError, match="same model"):
        core.patch_components(run, core.trace(make_loaded(n_decoder_layers=3), ids=IDS), ask, (5,))
    with pytest.raises(TextError, match="another width"):
        core.patch_components(run, core.trace(make_loaded(d_model=24), ids=IDS), ask, (5,))
    with pytest.raises(TextError, match="give one as `other`"):
        core.patch_components(run, None, ask, (5,))
    with pytest.raises(InterventionError, match="to zero or to its mean, not 'one'"):
        core.patch_components(run, None, ask, (5,), cast(Any, "one"))
    with pytest.raises(InterventionError, match="no silence and no mean"):
        core.patch_components(run, None, [Component("resid", 0, 0)], (5,), "zero")
    for part, says in (
        (Component("head", 0, 4), "no head 4: they are 0 to 3"),
        (Component("mlp", 2), "no decoder layer 2: its layers are 0 to 1"),
        (Component("resid", 0, 8), "no token 8: they are 0 to 7"),
        (Component("head", 0, 0, "encoder"), "no encoder; it has: decoder"),
        (Component("head", 0, 0, None, "cross_attn"), "no cross_attn"),
        (Component(cast(Any, "neuron"), 0), "a head, an mlp or a resid, not 'neuron'"),
    ):
        with pytest.raises(InterventionError, match=says):
            core.patch_components(run, other, [part], (5,))
    with pytest.raises(TextError, match="Token number 61 is not in the vocabulary"):
        core.patch_components(run, other, ask, (61,))
    with pytest.raises(TextError, match="Token number 61 is not in the vocabulary"):
        core.attribution_patching(run, other, 5, 61)
    with pytest.raises(IndexError, match="position 8 of 8"):
        core.attribution_patching(run, other, 5, position=8)
    encoder = core.trace(make_loaded(n_encoder_layers=2, head="none"), ids=IDS)
    with pytest.raises(TextError, match=r"no answer whose score a part could change. Try a language model"):
        core.attribution_patching(encoder, encoder, 5)
    masked = core.trace(make_loaded(n_encoder_layers=2, head="mlm"), ids=IDS)
    with pytest.raises(TextError, match="name the position"):
        core.patch_components(masked, masked, ask, (5,))
    two = pad([from_ids(None, IDS), from_ids(None, [*IDS, 5])], 0, "[PAD]", "left")
    with pytest.raises(TextError, match="padded at different places"):
        core.patch_components(run, core.trace_tokens(loaded, two, None, ()).text(0), ask, (5,))
    with monkeypatch.context() as patch:
        patch.setattr(device, "SMALL", 0)
        patch.setattr(device, "free_bytes", lambda device: 10)
        with pytest.raises(
            TooLarge, match=r"Keeping every part of a text of 8 tokens would need . MiB, and 0 MiB are free"
        ):
            core.patch_components(run, other, ask, (5,))
        patch.setattr("core.patching.counterfactual.held_bytes", lambda *_, **__: 0)
        with pytest.raises(TooLarge, match="Changing a part in a run of 8 tokens would need"):
            core.patch_components(run, other, ask, (5,))
        with pytest.raises(TooLarge, match="The backward pass of a run of 8 tokens would need"):
            core.attribution_patching(run, other, 5)


def test_an_answer_that_may_not_follow() -> None:
    loaded = replace(make_loaded(), next_tokens=NextTokenRule(never=(5,)))
    run, other = pair(loaded)
    with pytest.raises(TextError, match="may not follow this text"):
        core.attribution_patching(run, other, 5, 7)
    (found,) = core.patch_components(run, other, every_part(run), (5, 7))
    assert np.isneginf(found.log_p[:, 0]).all() and not (found.top == 5).any()


def test_no_more_is_computed_than_is_taken(monkeypatch: Any) -> None:
    run, other = pair(make_loaded())
    batches: list[int] = []
    real = Patching.run

    def counted(self: Patching, parts: Sequence[Component], first: int = 0) -> core.patching.PatchResults:
        batches.append(len(parts))
        return real(self, parts, first)

    monkeypatch.setattr(Patching, "run", counted)
    monkeypatch.setattr(parts_module, "BATCH_BYTES", 1)
    rows = core.patch_components(run, other, every_part(run), (5,))
    assert batches == [] and next(rows).first == 0 and next(rows).first == 1
    rows.close()  # type: ignore[attr-defined]
    assert batches == [1, 1]


def test_a_watch_that_raises_ends_the_rows() -> None:
    loaded, stop = make_loaded(), threading.Event()

    def watch(_: Any) -> None:
        if stop.is_set():
            raise RunCancelled("the visitor has left")

    with hooked(loaded.model, {"decoder.blocks.1.hook_resid_pre": ReadHook(watch)}):
        run = core.trace(loaded, ids=IDS)
    rows = core.patch_components(
        run, core.trace(loaded, ids=OTHER), [(Component("head", 0, 0),), (Component("head", 0, 1),)], (5,)
    )
    next(rows)
    stop.set()
    with pytest.raises(RunCancelled):
        next(rows)


@pytest.mark.parametrize(("dtype", "close"), [(torch.bfloat16, 0.1), (torch.float16, 0.02)])
def test_in_half_precision(dtype: torch.dtype, close: float) -> None:
    whole = make_loaded(**LLAMA)
    exact = core.attribution_patching(*pair(whole), 5, 7)
    half = replace(whole, model=to_dtype(whole.model, dtype), dtype=dtype)
    run, other = pair(half)
    check(run, other, close=close)
    found = core.attribution_patching(run, other, 5, 7)
    assert found.heads.dtype == np.float32
    np.testing.assert_allclose(found.heads, exact.heads, atol=close)


def test_two_threads_at_once() -> None:
    loaded = make_loaded(**LLAMA)
    run, other = pair(loaded)
    parts = every_part(run)
    jobs = {"there": (run, other), "back": (other, run)}
    expected = {
        name: (next(iter(core.patch_components(*sides, parts, (5, 7)))), core.attribution_patching(*sides, 5, 7))
        for name, sides in jobs.items()
    }
    wrong: list[str] = []

    def work(name: str) -> None:
        for _ in range(8):
            rows, estimates = (
                next(iter(core.patch_components(*jobs[name], parts, (5, 7)))),
                core.attribution_patching(*jobs[name], 5, 7),
            )
            same = np.abs(rows.log_p - expected[name][0].log_p).max() < 1e-5
            if not (same and np.abs(estimates.heads - expected[name][1].heads).max() < 1e-5):
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(name,)) for name in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert np.abs(expected["there"][0].log_p - expected["back"][0].log_p).max() > 0.01


def test_after_a_training_nothing_is_said_of_the_run() -> None:
    loaded = make_loaded()
    run, other = pair(loaded)
    rows = core.patch_components(run, other, [(Component("head", 0, 0),), (Component("head", 0, 1),)], (5,))
    next(rows)
    with torch.no_grad():
        loaded.model.get_parameter("decoder.blocks.0.attn.q.weight").add_(0.1)
    with pytest.raises(StaleTrace):
        next(rows)
    with pytest.raises(StaleTrace):
        core.attribution_patching(run, other, 5)


def no_grad(mode: bool = True, real: Any = torch.inference_mode) -> Any:
    return torch.no_grad() if mode else real(False)


@pytest.mark.thorough(but=4)
@pytest.mark.parametrize("name", DECODERS)
def test_what_is_predicted_is_enough(name: str, monkeypatch: Any) -> None:
    shape = {"n_ctx": 300, "vocab_size": 800, "d_model": 40, "d_ff": 90, "n_decoder_layers": 3}
    loaded = make_loaded(**(shape | DECODERS[name]))
    ids = [1 + i % 60 for i in range(200)]
    theirs = [*ids[:120], 7, *ids[121:]]
    run, other = core.trace(loaded, ids=ids), core.trace(loaded, ids=theirs)
    monkeypatch.setattr(
        torch, "inference_mode", no_grad
    )  # LiveBytes sees what a compound operation makes under this alone
    for to, first in (("other", 120), ("zero", 0)):
        sides = counterfactual_of(run, other, cast(To, to), None)
        made = patching_of(sides, (5,))
        parts = [Component("head", layer, head) for layer in range(3) for head in range(4)]
        with LiveBytes() as live:
            made.run(parts)
        assert live.peak <= len(parts) * row_bytes(run.forward, 200 - first, first)
        with LiveBytes() as live:
            gradients_of(sides, 5, 7)
        assert live.peak <= backward_bytes(run.forward, (200 - first) * (2 if to == "other" else 1), 200)


def test_the_order_of_the_runs() -> None:
    loaded = make_loaded(n_decoder_layers=9)
    run, other = pair(loaded)
    found = core.attribution_patching(run, other, 5, 7)
    groups = core.patching.run_order(found, tokens=(3, 6))
    assert len(groups[0]) == 10
    strongest = [abs(found.of(part)) for part in groups[0]]
    assert strongest == sorted(strongest, reverse=True) and {part.kind for part in groups[0]} == {"head"}
    rest = [abs(found.of(part)) for group in groups[1:] for part in group if part.kind == "head"]
    assert max(rest) <= strongest[-1]
    assert [sorted({part.layer for part in group}) for group in groups[1:]] == [
        [6, 7, 8],
        [*range(9)],
        [3, 4, 5],
        [0, 1, 2],
    ]
    assert [part.layer for part in groups[1]] == sorted((part.layer for part in groups[1]), reverse=True)
    assert {part.kind for part in groups[2]} == {"resid"} and {part.at for part in groups[2]} == {3, 6}
    everything = [part for group in groups for part in group]
    assert len(everything) == len({*everything}) == 9 * 4 + 9 + 2 * 9
    silent = core.patching.run_order(core.attribution_patching(run, None, 5, 7, "zero"))
    assert {part.layer for part in silent[1]} == {0, 1} and {part.layer for part in silent[2]} == {6, 7, 8}
    got = [part for answers in core.patch_components(run, other, groups, (5, 7)) for part in answers.parts]
    assert got == everything


def test_tables() -> None:
    run, other = pair(make_loaded())
    found = core.attribution_patching(run, other, 5, 7)
    (rows,) = core.patch_components(run, other, found.parts, (5, 7))
    table, estimates = rows.to_frame(), found.to_frame()
    assert list(table.columns) == ["kind", "layer", "at", "stack", "site", "log_p_0", "log_p_1", "top", "top_p"]
    assert list(estimates.columns)[-1] == "estimate" and len(table) == len(estimates) == len(found.parts)
