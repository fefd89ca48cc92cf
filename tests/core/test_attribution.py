"""The logit lens and direct attribution: parts add up to the model's own logit, in every order of norms and after edits."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

import core
from core import device
from core.checkpoints import Loaded
from core.errors import StaleTrace, TextError, TooLarge
from tests.core.conftest import make_loaded
from tests.core.test_invariants import SAMPLE, name
from tests.core.test_records import CUSTOM, Custom, doubled, texts, tilted
from tests.thorough import part

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]
DECODERS = [config for config in SAMPLE if config["head"] == "lm"]


@pytest.mark.parametrize("config", part(DECODERS, 3), ids=name)
def test_contributions_add_up_to_the_logit(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config, embed_norm=config["window"] is None)
    rng = random.Random(name(config))
    sources, targets = texts(loaded.config.kind, rng.choice(("none", "left", "right")), rng)
    stack, n = loaded.config.stacks[-1]
    edits: list[Any] = [core.edits.Ablate(stack, n - 1, 1)] if rng.random() < 0.5 else []
    run = core.trace_tokens(loaded, sources, targets, tuple(edits)).text(1)
    tokens = run.source if run.target is None else run.target
    real = [i for i, padding in enumerate(tokens.padding) if not padding]
    for position, token in ((real[-1], None), (real[0], 17)):
        found = run.logit_attribution(position, token)
        with torch.inference_mode():
            assert loaded.model.head is not None
            scores = loaded.model.head(run.last_residual(torch.tensor([position])))[1, 0]
        assert found.token == (int(scores.argmax()) if token is None else token)
        assert found.logit == pytest.approx(scores[found.token].item(), abs=1e-5)
        total = sum(part.value for part in found.parts)
        assert total == pytest.approx(found.logit, abs=1e-4), config
        heads = [part for part in found.parts if part.part == "head"]
        sites = 2 if loaded.config.kind == "encoder-decoder" else 1
        assert len(heads) == sites * n * loaded.config.n_heads
        assert sum(part.part == "mlp" for part in found.parts) == n
        if edits:
            (cut,) = [h.value for h in heads if (h.layer, h.site, h.head) == (n - 1, "attn", 1)]
            assert cut == 0
        assert found.parts[0].part == "token" and not any(part.part == "edit" for part in found.parts)


@pytest.mark.parametrize("order", ["pre", "post", "sandwich"])
def test_what_hooks_added_to_the_stream_is_a_part_of_its_own(tiny: Tiny, order: str) -> None:
    loaded = tiny(norm_order=order, position="rotary")
    rng = random.Random(order)
    points = [
        "hook_resid_pre",
        "hook_resid_mid",
        "hook_resid_post",
        "hook_attn_out",
        "attn.hook_result",
        "attn.hook_o",
        "hook_mlp_out",
    ]
    for _ in range(6):
        chosen = rng.sample(points, 3)
        edits: Any = [
            Custom(f"decoder.blocks.{rng.randrange(2)}.{point}", rng.choice((doubled, tilted))) for point in chosen
        ]
        if rng.random() < 0.5:
            edits.append(Custom("decoder.hook_final", tilted))
        found = core.trace(loaded, ids=IDS, interventions=edits).logit_attribution()
        assert sum(part.value for part in found.parts) == pytest.approx(found.logit, abs=2e-4), chosen


def test_a_heads_part_is_what_the_logit_loses_without_it_where_nothing_follows(tiny: Tiny) -> None:
    """In the last layer of a model without norms after it and with an MLP that is silent, direct effect is total effect."""
    loaded = tiny(n_decoder_layers=1, final_norm=False)
    silent: Any = Custom("decoder.blocks.0.mlp.hook_post", torch.zeros_like)
    found = core.trace(loaded, ids=IDS, interventions=[silent]).logit_attribution(5, 11)
    for head in range(4):
        cut = core.trace(
            loaded, ids=IDS, interventions=[silent, core.edits.Ablate("decoder", 0, head)]
        ).logit_attribution(5, 11)
        (part,) = [part.value for part in found.parts if part.part == "head" and part.head == head]
        assert found.logit - cut.logit == pytest.approx(part, abs=1e-5)


def test_what_has_no_linear_head_says_so(tiny: Tiny) -> None:
    with pytest.raises(TextError, match="not defined there"):
        core.trace(tiny(n_encoder_layers=1, head="mlm"), ids=IDS).logit_attribution()
    with pytest.raises(TextError, match="no head"):
        core.trace(tiny(n_encoder_layers=1, head="none"), ids=IDS).logit_attribution()
    run = core.trace(tiny(), ids=IDS)
    with pytest.raises(TextError, match="0 to 60"):
        run.logit_attribution(token=61)
    with pytest.raises(IndexError, match="position 8 of 8"):
        run.logit_attribution(8)


@pytest.mark.parametrize("config", part(SAMPLE[::6]), ids=name)
def test_the_lens_ends_at_the_models_own_predictions(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    run = core.trace(loaded, ids=IDS, target_ids=IDS[:5] if loaded.config.kind == "encoder-decoder" else None)
    stack, n = loaded.config.stacks[-1]
    layers = run.logit_lens(4, [0, 3])
    assert [layer.layer for layer in layers] == [None, *range(n)]
    own = run.predictions([0, 3], 4)
    assert layers[-1].predictions.ids == own.ids
    assert torch.allclose(torch.tensor(layers[-1].predictions.probs), torch.tensor(own.probs), atol=1e-6)
    with torch.inference_mode():
        x = run.activation(f"{stack}.blocks.0.hook_resid_post", [3])
        assert loaded.model.head is not None
        by_hand = loaded.model.head(loaded.model.stacks[-1].norm(x)[None])[0].softmax(-1).topk(4)
    assert layers[1].predictions.ids[1] == tuple(by_hand.indices[0].tolist())
    assert run.logit_lens(1)[0].predictions.positions == run.predictions().positions


def test_attribution_is_of_the_weights_of_the_run(tiny: Tiny) -> None:
    loaded = tiny()
    run = core.trace(loaded, ids=IDS)
    with torch.no_grad():
        loaded.model.get_parameter("decoder.norm.weight").mul_(2)
    for ask in (run.logit_attribution, run.logit_lens, lambda: run.activation("decoder.blocks.0.hook_resid_mid")):
        with pytest.raises(StaleTrace):
            ask()


# any moment


@pytest.mark.parametrize("config", part(SAMPLE[::4], 3), ids=name)
def test_any_moments_value_is_what_passed_there(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    rng = random.Random(name(config))
    sources, targets = texts(loaded.config.kind, "right", rng)
    stack = loaded.config.stacks[0][0]
    edits: Any = (core.edits.Ablate(stack, 0, 2), Custom(f"{stack}.blocks.0.attn.hook_v", CUSTOM["hook_v"][0]))
    run = core.trace_tokens(loaded, sources, targets, edits)
    seen: dict[str, torch.Tensor] = {}
    points = {point: p for point, p in core.hook_points(loaded.model).items() if p.axes}

    def look(point: str) -> Callable[[Any], None]:
        return lambda x: seen.update({point: x.clone()})

    looks: Any = (
        Custom(point, look(point)) for point in points
    )  # behind the edits: hooks around a run come before them
    core.trace_tokens(loaded, sources, targets, (*edits, *looks))
    for i, (point, hook_point) in enumerate(points.items()):
        if point == "head.hook_logits":
            continue
        place = next(i for i, axis in enumerate(hook_point.axes) if axis in ("pos", "query", "key")) - 1
        # Of one text everything and of the other two positions, in turns: each question is a pass.
        for text, positions in ((i % 2, None), (1 - i % 2, [2, 0])):
            passed = seen[point][text if seen[point].shape[0] > 1 else 0]
            passed = passed if positions is None else passed.index_select(place, torch.tensor(positions))
            value, finite = run.text(text).activation(point, positions), passed.isfinite()
            assert value.shape == passed.shape, point
            assert (value[finite].float() - passed[finite].float()).abs().max() <= 2e-5, point
    for text in range(2):
        one = run.text(text)
        logits = one.activation("head.hook_logits", [1]).softmax(-1)
        assert torch.allclose(logits.topk(3).values[0], torch.tensor(one.predictions([1], 3).probs[0]), atol=1e-6)


def test_each_heads_result_adds_up_and_costs_nothing_unwatched(tiny: Tiny) -> None:
    loaded = tiny(n_kv_heads=2)
    run = core.trace(loaded, ids=IDS)
    bias = loaded.model.get_parameter("decoder.blocks.1.attn.o.bias")
    result = run.activation("decoder.blocks.1.attn.hook_result")
    assert result.shape == (8, 4, 20)
    assert (result.sum(1) + bias - run.activation("decoder.blocks.1.attn.hook_o")).abs().max() <= 1e-5
    assert (result.transpose(0, 1) - run.attention[1].result()).abs().max() <= 1e-5
    assert not any(step.name.endswith(("hook_result", "hook_o", "hook_attn_normed", "hook_pre")) for step in run.steps)
    with core.hooked(loaded.model, {"decoder.blocks.1.attn.hook_result": lambda x: None}):  # looking changes no bit
        looked = core.trace(loaded, ids=IDS)
    positions = torch.arange(8)
    assert torch.equal(looked.last_residual(positions), run.last_residual(positions))


def test_a_value_that_is_not_there_or_would_not_fit_says_so(tiny: Tiny, monkeypatch: Any) -> None:
    run = core.trace(tiny(), ids=IDS)
    with pytest.raises(KeyError, match="no such hook point"):
        run.activation("decoder.blocks.7.hook_resid_pre")
    with pytest.raises(KeyError, match="a rule"):
        run.activation("decoder.blocks.0.attn.hook_rule")
    with pytest.raises(IndexError, match="position 8 of 8"):
        run.activation("decoder.blocks.0.hook_resid_pre", [8])
    monkeypatch.setattr(device, "SMALL", 0)
    monkeypatch.setattr(device, "free_bytes", lambda device: 0)
    with pytest.raises(TooLarge, match="would need"):
        run.activation("decoder.blocks.0.attn.hook_result")
