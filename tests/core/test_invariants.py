"""Physics that holds for every model: sampled configs, each checked for all of it."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import torch

import core
from core.checkpoints import Loaded
from core.model.text import from_ids, pad
from core.run.recorder import TensorStep
from tests.core.conftest import KINDS, make_loaded

POSITIONS = ("none", "learned", "sinusoidal", "rotary", "alibi", "relative")
MLPS = (
    {"activation": "relu"},
    {"activation": "gelu"},
    {"activation": "silu", "gated": True},
    {"activation": "gelu_tanh", "gated": True},
)


def configs(n: int) -> list[dict[str, Any]]:
    """n of all combinations; the seed is fixed, and every value of every axis comes up."""
    rng = random.Random(7)
    axes = itertools.product(
        KINDS,
        POSITIONS,
        ("pre", "post", "sandwich"),
        ("layer", "rms"),
        (4, 2, 1),
        MLPS,
        (None, 3),
        (False, True),
        (False, True),
    )
    every = [
        {
            **KINDS[kind],
            "position": position,
            "norm_order": order,
            "norm": norm,
            "n_kv_heads": kv,
            **mlp,
            "window": window,
            "qk_norm": qk_norm,
            "parallel": parallel,
            "head": "mlm" if kind == "encoder" else "lm",
        }
        for kind, position, order, norm, kv, mlp, window, qk_norm, parallel in axes
        if not (parallel and (order != "pre" or kind == "encoder-decoder"))
    ]
    chosen = rng.sample(every, n)
    assert {c["position"] for c in chosen} == set(POSITIONS)
    return chosen


DISENTANGLED: dict[str, Any] = {
    **KINDS["encoder"],
    "position": "disentangled",
    "position_terms": ("c2p", "p2c"),
    "max_relative_distance": 12,
    "norm_order": "post",
    "distance_norm": True,
    "head": "mlm",
}
SAMPLE = [*configs(54), DISENTANGLED]


def name(config: dict[str, Any]) -> str:
    return "-".join(str(v) for v in config.values())


@pytest.mark.thorough(but=18)
@pytest.mark.parametrize("config", SAMPLE, ids=name)
def test_physics(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    rng = random.Random(0)
    source = [rng.randrange(1, 61) for _ in range(11)]
    target = [rng.randrange(1, 61) for _ in range(7)] if loaded.config.kind == "encoder-decoder" else None
    run = core.trace(loaded, ids=source, target_ids=target)
    ids = torch.tensor([source])
    target_ids = None if target is None else torch.tensor([target])
    with torch.inference_mode():
        plain = loaded.model.last_residual(ids, target_ids)

    # Looking changes nothing, to the last bit.
    last = run.last_residual(torch.arange(plain.shape[1]))
    assert torch.equal(last, plain)

    for record in run.attention:
        pattern = record.pattern()
        assert (pattern.sum(-1) - 1).abs().max() <= 1e-6
        for head in range(record.n_heads):
            hidden = ~record.mask(head=head)
            assert not hidden.any() or pattern[head][hidden].abs().max() == 0
        receipt = record.receipt()
        assert receipt.rows == record.n_query
        assert receipt.fused_error is not None and receipt.fused_error <= 2e-6

    check_direction(loaded, source, target, plain)
    check_padding(loaded, source, target)


def check_direction(loaded: Loaded, source: list[int], target: list[int] | None, plain: torch.Tensor) -> None:
    """A decoder's past ignores its future, exactly; without positions an encoder does not know an order."""
    with torch.inference_mode():
        if loaded.config.kind != "encoder":
            ids = torch.tensor([source if target is None else target])
            changed = ids.clone()
            changed[0, 4:] = (changed[0, 4:] + 7) % 61
            after = (
                loaded.model.last_residual(changed)
                if target is None
                else loaded.model.last_residual(torch.tensor([source]), changed)
            )
            assert torch.equal(after[:, :4], plain[:, :4])
            assert not torch.allclose(after[:, 4:], plain[:, 4:])
        elif loaded.config.position == "none" and loaded.config.window is None:
            order = torch.randperm(len(source), generator=torch.Generator().manual_seed(3))
            shuffled = loaded.model.last_residual(torch.tensor([source])[:, order])
            assert (shuffled - plain[:, order]).abs().max() <= 2e-5


def check_padding(loaded: Loaded, source: list[int], target: list[int] | None) -> None:
    """Padding on either side, of source and target, changes no real position."""
    short, long = from_ids(None, source), from_ids(None, [*source, 5, 9, 2, 17])
    alone = core.trace(loaded, ids=source, target_ids=target)
    for side in ("left", "right"):
        sources = pad([short, long], 0, "[PAD]", side)
        targets = None
        if target is not None:
            targets = pad([from_ids(None, target), from_ids(None, [*target, 3, 8])], 0, "[PAD]", side)
        both = core.trace_tokens(loaded, sources, targets, ())
        real = [i for i, padding in enumerate((sources if targets is None else targets)[0].padding) if not padding]
        n = len(real)
        delta = (both.last_residual(torch.tensor(real))[0] - alone.last_residual(torch.arange(n))[0]).abs().max()
        assert delta <= 5e-5, f"padding on the {side} moved the residual stream by {delta:.1e}"
        for padded, single in zip(both.text(0).attention, alone.attention, strict=True):
            queries, keys = both.tokens_of(padded)
            rows = [i for i, padding in enumerate(queries.padding) if not padding]
            columns = [i for i, padding in enumerate(keys.padding) if not padding]
            assert (padded.pattern(None, rows, columns) - single.pattern()).abs().max() <= 1e-5
            hidden = [i for i, padding in enumerate(keys.padding) if padding]
            assert padded.pattern(None, rows, hidden).abs().max() == 0
            assert padded.why_masked(rows[-1], hidden[0]) == "padding"


def test_steps_name_every_moment_in_order() -> None:
    run = core.trace(make_loaded(n_decoder_layers=2), ids=[1, 2, 3, 4, 5])
    shapes = {step.name: step for step in run.steps}
    assert [step.name.removeprefix("decoder.blocks.0.attn.hook_") for step in run.steps if ".blocks.0.attn." in step.name] == [
        "q", "k", "v", "mask", "scores", "pattern", "z",
    ]  # fmt: skip
    assert shapes["decoder.blocks.1.attn.hook_q"] == TensorStep(
        "decoder.blocks.1.attn.hook_q", ("batch", "query", "head", "d_head"), (1, 5, 4, 6), "float32", 480
    )
    scores = shapes["decoder.blocks.1.attn.hook_scores"]
    assert (scores.shape, scores.bytes, scores.materialised) == ((1, 4, 5, 5), 400, False)
    assert shapes["decoder.blocks.0.mlp.hook_post"].shape == (1, 5, 23)
    assert run.steps[-1].name == "head.hook_logits" and run.steps[-1].shape == (1, 1, 61)


def test_post_norm_stream_has_the_norms_that_the_pass_had(tiny: Any) -> None:
    loaded = tiny(n_encoder_layers=2, norm_order="post", head="none")
    run = core.trace(loaded, ids=[4, 8, 15, 16, 23])
    seen: dict[str, torch.Tensor] = {}
    with (
        torch.inference_mode(),
        core.hooked(loaded.model, {"encoder.blocks.1.hook_resid_mid": lambda x: seen.update(x=x)}),
    ):
        loaded.model(torch.tensor([[4, 8, 15, 16, 23]]))
    assert torch.allclose(run.residual_norms["encoder.blocks.1.hook_resid_mid"], seen["x"][0].norm(dim=-1))
    assert len(run.residual_norms) == 1 + 5 * 2 + 1
