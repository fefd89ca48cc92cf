"""The whole model at one word, the end of a pass, and the use of the residual connection: the mocks' numbers, and their laws."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import HeadlightError, TextError
from core.labs.worked_examples import ResidualPath, mean_cosine, residual_path
from core.learn.watched_training import no_residual
from core.model.hooks import hooked
from core.model.transformer import Block
from core.read.key_steps import residual_profile
from core.read.next_token_loss import ending
from core.run.request import Request
from core.service import LocalService
from core.service.engine import Engine
from tests.core.serving import assert_plain
from tests.core.test_layer_walk import IDS, LAYERS

Tiny = Callable[..., Loaded]
MARY = "When Mary and John went to the store, John gave a drink to"


@cache
def mary() -> core.Trace:
    return core.trace(core.load("smollm2"), MARY)


def test_the_strip_of_a_language_model_has_the_mock_s_numbers() -> None:
    found = residual_profile(mary(), "decoder")
    assert found.position == 13 and found.stream.shape == (31,) and list(found.lengths) == ["attention", "MLP"]
    assert found.stream[[23, 24, 30]].tolist() == pytest.approx([337.35, 408.09, 884.39], abs=0.02)
    assert found.lengths["attention"][23].item() == pytest.approx(182.96, abs=0.01)
    assert found.lengths["MLP"][[23, 29]].tolist() == pytest.approx([88.29, 494.79], abs=0.01)
    assert found.adds is not None and found.next_word is not None and found.wires is None
    assert found.adds["attention"][23].item() == pytest.approx(4.064, abs=0.005)
    assert found.adds["MLP"][[23, 29]].tolist() == pytest.approx([0.415, 5.93], abs=0.01)
    assert found.next_word[0] == "Mary" and found.next_word[1] == pytest.approx(0.923, abs=0.002)


def test_two_stacks_are_joined_by_the_weights_of_cross_attention() -> None:
    run = core.trace(core.load("translator"), "Ein Hund rennt durch den Schnee.", "A")
    written, read = residual_profile(run, "decoder"), residual_profile(run, "encoder", 1)
    assert written.lengths["cross-attention"].tolist() == pytest.approx([18.885, 31.18, 39.785], abs=0.01)
    assert written.wires is not None and written.wires.sum(-1).tolist() == pytest.approx([1, 1, 1], abs=1e-5)
    assert written.wires[:, 1].tolist() == pytest.approx([0.860, 0.805, 0.885], abs=0.002)
    assert written.next_word == ("dog", pytest.approx(0.927, abs=0.002))
    assert read.adds is read.next_word is read.wires is None and read.stream.shape == (4,)


@pytest.mark.parametrize("config", LAYERS.values(), ids=LAYERS)
def test_a_strip_adds_up_to_what_the_pass_has(tiny: Tiny, config: dict[str, Any]) -> None:
    loaded = tiny(**config)
    run = core.trace(loaded, ids=IDS, target_ids=IDS[:5] if "n_decoder_layers" in config else None)
    for stack, n_layers in run.config.stacks:
        found = residual_profile(run, stack, 2)
        for layer in range(n_layers):
            name = f"{stack}.blocks.{layer}.hook_"
            assert found.stream[layer].item() == pytest.approx(
                run.activation(f"{name}resid_pre", [2]).norm().item(), rel=1e-4
            )
            for what, part in (("attn", "attention"), ("cross", "cross-attention"), ("mlp", "MLP")):
                if part in found.lengths:
                    length = run.activation(f"{name}{what}_out", [2]).norm().item()
                    assert found.lengths[part][layer].item() == pytest.approx(length, rel=1e-4)
        if found.adds is None:
            continue
        parts = run.logit_attribution(2, found.next_id).parts
        heads = sum(part.value for part in parts if part.part in ("head", "mlp"))
        biases = sum(part.value for part in parts if part.part == "bias" and part.what in ("attn", "cross_attn"))
        assert sum(x.sum().item() for x in found.adds.values()) == pytest.approx(heads + biases, abs=1e-4)


def test_the_ending_is_the_model_s_own_with_the_mock_s_numbers() -> None:
    run, found = mary(), ending(mary())
    own = found.norm
    assert own is not None and own.shift is None and (own.centre, own.scale) == pytest.approx((0, 36.85), abs=0.01)
    assert np.linalg.norm(found.before) == pytest.approx(884.39, abs=0.02)
    assert np.allclose(found.before / own.scale * own.gain, found.after, atol=1e-4)
    assert found.labels[:2] == ("Mary", "the") and found.logits[:2] == pytest.approx([11.037, 7.282], abs=0.005)
    said = (found.log_sum_exp, found.mean, found.deviation, found.lowest)
    assert said == pytest.approx((11.117, -9.67, 3.70, -32.29), abs=0.01)
    assert np.allclose(found.probabilities, np.exp(np.array(found.logits) - found.log_sum_exp), atol=3e-5)
    assert found.probabilities == pytest.approx(run.predictions(k=10).probs[0], abs=1e-6)
    assert found.losses[[0, 9, 4]].tolist() == pytest.approx([12.963, 3.413, 0.415], abs=0.01)
    assert np.isnan(found.losses[-1])
    norm = run.loaded.model.stacks[-1].norm
    with torch.inference_mode():
        assert np.allclose(norm(torch.from_numpy(found.before)), found.after, atol=1e-4)
    told = ending(core.trace(core.load("storyteller"), "The wolf"))
    assert told.norm is not None and told.norm.shift is not None
    by_hand = (told.before - told.norm.centre) / told.norm.scale * told.norm.gain + told.norm.shift
    assert np.allclose(by_hand, told.after, atol=1e-4)
    with pytest.raises(TextError, match="has no head"):
        ending(core.trace(core.load("minilm"), "The animal"))


def test_an_edit_of_the_run_is_in_its_strip_and_its_ending() -> None:
    edits = [core.edits.Ablate("decoder", 23, 0)]
    run = core.trace(core.load("smollm2"), MARY, interventions=edits)
    found, before = residual_profile(run, "decoder"), residual_profile(mary(), "decoder")
    assert np.array_equal(found.stream[:24], before.stream[:24]) and not np.array_equal(
        found.stream[24:], before.stream[24:]
    )
    assert ending(run).probabilities[0] == pytest.approx(run.predictions(k=1).probs[0][0], abs=1e-6)


def path(norm: Any, residual: bool, seed: int = 0) -> ResidualPath:
    return residual_path(norm, residual, seed=seed)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_fade_without_norms_and_residual_and_words_become_alike_without_the_residual(seed: int) -> None:
    kept, alone = path("pre", True, seed), path("none", False, seed)
    assert alone.gradients[0] < 1e-7 * alone.gradients[-1] and kept.gradients[0] > kept.gradients[-1]
    for norm in ("pre", "post"):
        without = path(norm, False, seed)
        assert without.gradients.min() > 0.01 and without.gradients.max() < 5  # a norm keeps their size
        assert without.alike[12] > 0.999  # and what is lost is the difference between words
    assert kept.alike[24] < 0.95 < 0.99 < path("post", True, seed).alike[24]
    assert kept.gradients[0].item() == pytest.approx(0.97, rel=0.3)
    assert alone.gradients[[0, -1]].tolist() == pytest.approx([5.8e-9, 28], rel=0.3)


def test_without_the_residual_a_layer_gives_what_its_last_sublayer_wrote() -> None:
    for order in ("pre", "post"):
        config = core.ModelConfig(
            d_model=16, n_heads=2, d_ff=32, n_decoder_layers=2, vocab_size=9, n_ctx=8, norm_order=order
        )
        model = core.build(config).model
        assert model.decoder is not None
        seen: dict[str, torch.Tensor] = {}
        names = [f"decoder.blocks.1.hook_{what}" for what in ("resid_mid", "mlp_out", "resid_post")]
        hooks = no_residual(model)
        looks = {name: partial(seen.__setitem__, name) for name in names}
        with torch.inference_mode(), hooked(model, hooks), hooked(model, looks):
            model.last_residual(torch.tensor([[1, 2, 3]]))
            block = model.decoder.blocks[1]
            assert isinstance(block, Block)
            wrote = (
                block.mlp(block.mlp_norm(seen[names[0]]))
                if order == "pre"
                else block.mlp_norm(block.mlp(seen[names[0]]))
            )
        assert torch.allclose(seen[names[2]], wrote, atol=1e-6)


def test_words_that_are_one_have_a_cosine_of_1() -> None:
    x = torch.randn(3, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert mean_cosine(x[:, :1].expand(-1, 5, -1)).item() == pytest.approx(1)
    pairs = [torch.cosine_similarity(t[i], t[j], dim=0) for t in x for i in range(5) for j in range(5) if i != j]
    assert mean_cosine(x).item() == pytest.approx(torch.stack(pairs).mean().item())


def test_a_service_answers_in_plain_data() -> None:
    shared = LocalService(Engine(device=torch.device("cpu")))
    request = Request("smollm2", (MARY,))
    shared.engine.run(request)

    async def asked() -> tuple[Any, ...]:
        return (
            await shared.strip(request.key, "decoder"),
            await shared.ending(request.key, 13),
            await shared.residual_paths(),
        )

    found, end, paths = asyncio.run(asked())
    for answer in (found, end, *paths):
        assert_plain(answer)
    assert found.next_word == ("Mary", pytest.approx(0.923, abs=0.002))
    assert np.isnan(end.losses[-1]) and end.labels[0] == "Mary"
    assert [(one.norm, one.residual) for one in paths][:3] == [("pre", True), ("post", True), ("none", True)]
    with pytest.raises(HeadlightError, match="no stack called 'encoder'"):
        asyncio.run(shared.strip(request.key, "encoder"))
    with pytest.raises(HeadlightError, match="no position 14 of 14"):
        asyncio.run(shared.strip(request.key, "decoder", 14))
