"""One token through one layer: the lessons' numbers, and every number of every kind of layer as the sum that it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import core
from core.checkpoints import Loaded
from core.errors import TextError
from core.read.layer_walk import guesses, normed, routing, strongest_neurons, terms, walk

Tiny = Callable[..., Loaded]
ANIMAL = "The animal didn't cross the street because it was too tired."
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5]
LAYERS: dict[str, dict[str, Any]] = {
    "post": {"n_encoder_layers": 2, "norm_order": "post", "position": "learned"},
    "pre, rotary, grouped, gated": {
        "position": "rotary", "n_kv_heads": 2, "gated": True, "activation": "silu", "norm": "rms"
    },
    "partial rotary, normed queries, sandwich": {
        "position": "rotary", "rotary_fraction": 0.67, "qk_norm": True, "norm": "rms", "norm_order": "sandwich"
    },
    "parallel, alibi": {"position": "alibi", "parallel": True},
    "relative, cross": {"position": "relative", "n_encoder_layers": 1, "n_decoder_layers": 2},
    "post, cross": {"norm_order": "post", "n_encoder_layers": 1, "n_decoder_layers": 2},
    "experts": {"n_experts": 5, "n_experts_per_token": 2, "gated": True, "router_normed": True, "norm": "rms"},
    "experts, one that all take by a gate, biases": {
        "n_experts": 4, "n_experts_per_token": 3, "d_shared": 7, "shared_gate": True, "mlp_bias": True, "router_bias": True
    },
    "experts by a sigmoid, sandwich": {
        "n_experts": 4, "n_experts_per_token": 2, "router": "sigmoid", "router_scale": 1.7, "d_shared": 5,
        "norm_order": "sandwich", "norm": "rms",
    },
}  # fmt: skip


@cache
def animal() -> core.Trace:
    return core.trace(core.load("minilm"), ANIMAL)


def largest(values: torch.Tensor) -> tuple[int, ...]:
    finite = values.abs().masked_fill(~values.isfinite(), -1)
    return tuple(int(i) for i in torch.unravel_index(finite.argmax(), values.shape))


def test_it_finds_its_animal() -> None:
    found = walk(animal(), "encoder", 3, 10).values
    assert found["attn.raw"][1, 2].item() == pytest.approx(21.69, abs=5e-3)
    assert found["attn.scores"][1, 2].item() == pytest.approx(3.83, abs=5e-3)
    assert found["attn.weights"][1, 2].item() == pytest.approx(0.677, abs=5e-4)
    # undivided, it would take all
    assert found["attn.raw"][1].softmax(-1)[2].item() == pytest.approx(0.99998, abs=1e-5)
    lengths = [found[step].norm().item() for step in ("x", "attn.out", "attn.add")]
    assert lengths == pytest.approx([10.89, 6.24, 13.42], abs=6e-3)
    resid = animal().residual_norms
    assert found["x"].norm().item() == pytest.approx(resid["encoder.blocks.3.hook_resid_pre"][10].item(), rel=1e-5)


def test_layer_norm_measures_rows_and_batch_norm_columns() -> None:
    found = walk(animal(), "encoder", 3, 10)
    before = found.before_norm["attn.norm"]  # [pos, d_model]
    norm = found.block.attn_norm
    assert isinstance(norm, torch.nn.LayerNorm)

    def mean_and_deviation(x: torch.Tensor) -> list[float]:
        return [x.mean().item(), x.std(correction=0).item()]

    assert mean_and_deviation(before[10]) == pytest.approx([0.02, 0.68], abs=6e-3)
    assert mean_and_deviation(normed(norm, before)[10]) == pytest.approx([0, 1], abs=1e-4)
    columns = torch.nn.BatchNorm1d(384)(before)  # by columns: a token's numbers depend on its neighbours
    assert mean_and_deviation(columns[10]) == pytest.approx([0.01, 1.01], abs=6e-3)
    assert mean_and_deviation(columns[:, 36]) == pytest.approx([0, 1], abs=1e-3)


def test_how_many_neurons_each_activation_lets_through() -> None:
    up = walk(animal(), "encoder", 3, 10).values["mlp.up"]
    assert len(up) == 1536 and int((up > 0).sum()) == 340
    least = [f(up).min().item() for f in (F.gelu, F.silu, F.relu)]
    assert least == pytest.approx([-0.17, -0.28, 0], abs=6e-3)


@pytest.mark.parametrize("config", LAYERS.values(), ids=LAYERS.keys())
def test_every_number_of_a_layer_is_the_sum_of_its_terms(tiny: Tiny, config: dict[str, Any]) -> None:
    loaded = tiny(**config)
    encoder_decoder = loaded.config.kind == "encoder-decoder"
    run = core.trace(loaded, ids=IDS, target_ids=[7, 8, 9, 10, 11] if encoder_decoder else None)
    stack = "encoder" if loaded.config.kind == "encoder" else "decoder"
    found = walk(run, stack, 1, 3)
    without = {"x", "mlp.taken"} | ({"mlp.act"} if not config.get("gated") else set())
    for step, values in found.values.items():
        places = {largest(values), tuple(0 for _ in values.shape), tuple(min(1, n - 1) for n in values.shape)}
        for place in places:
            if step in without:
                with pytest.raises(ValueError, match="not a sum"):
                    terms(found, step, place)
                continue
            if not values[place].isfinite():
                continue
            every = terms(found, step, place, k=1000)
            assert every.value == pytest.approx(values[place].item())
            assert every.n_rest == 0 and every.edited == 0
            # nothing is left over: the products and the bias are all there is
            assert abs(every.rest) < 1e-5 * max(1, abs(every.value)), (step, place)
            some = terms(found, step, place, k=3)
            assert sum(some.products) + some.rest + some.bias == pytest.approx(some.value, abs=1e-5)
            assert some.products == every.products[: len(some.products)]
            for product, (a, b) in zip(some.products, some.factors, strict=True):
                assert product == pytest.approx(a * b, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in LAYERS if name.startswith("experts")])
def test_a_walk_through_experts_has_the_run_s_numbers(tiny: Tiny, name: str) -> None:
    loaded = tiny(**LAYERS[name])
    run = core.trace(loaded, ids=IDS)
    chosen = routing(run)
    shared = loaded.config.d_shared > 0
    for layer, query in ((0, 0), (1, 5)):
        found = walk(run, "decoder", layer, query)
        values = found.values
        assert list(found.chosen) == chosen.chosen[layer, query].tolist() + [None] * shared
        torch.testing.assert_close(
            values["mlp.taken"][: len(found.chosen) - shared],
            torch.from_numpy(chosen.weights[layer, query]),
            atol=1e-6,
            rtol=0,
        )
        mixture = found.block.mlp
        with torch.inference_mode():
            expected = mixture(found.inputs["mlp"][0][None])[0]
        assert (values["mlp.out"] - expected).abs().max() <= 1e-5
        assert (values["mlp.taken"] @ values["mlp.experts"] - values["mlp.out"]).abs().max() <= 1e-5
        assert all(len(x) == 0 for x in strongest_neurons(found))


@pytest.mark.parametrize("config", LAYERS.values(), ids=LAYERS.keys())
def test_a_walk_ends_where_the_stream_does(tiny: Tiny, config: dict[str, Any]) -> None:
    loaded = tiny(**config)
    target = [7, 8, 9, 10, 11] if loaded.config.kind == "encoder-decoder" else None
    run = core.trace(loaded, ids=IDS, target_ids=target)
    stack = loaded.config.stacks[-1][0]
    first, second = walk(run, stack, 0, 2), walk(run, stack, 1, 2)
    assert torch.allclose(first.values[first.steps[-1]], second.values["x"], atol=1e-5)
    assert second.values["x"].norm().item() == pytest.approx(
        run.residual_norms[f"{stack}.blocks.1.hook_resid_pre"][2].item(), rel=1e-5
    )
    record = second.record("attn")
    assert torch.equal(second.values["attn.weights"], record.pattern(queries=[2])[:, 0])
    assert torch.equal(second.turned_keys["attn"], record.k)


def test_a_masked_score_has_no_terms(tiny: Tiny) -> None:
    found = walk(core.trace(tiny(), ids=IDS), "decoder", 0, 3)
    assert found.values["attn.scores"][0, 4].item() == float("-inf")
    nothing = terms(found, "attn.scores", (0, 4))
    assert nothing.value == float("-inf") and nothing.products == ()
    weight = terms(found, "attn.weights", (0, 4))
    assert weight.value == 0 and weight.factors[0][0] == 0


def test_what_an_edit_changed_is_named(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS, interventions=[core.edits.Ablate("decoder", 1, 2)])
    found = walk(run, "decoder", 1, 3)
    place = largest(walk(core.trace(tiny(), ids=IDS), "decoder", 1, 3).values["attn.z"][2:3])
    silent = terms(found, "attn.z", (2, place[1]))
    assert silent.value == 0 and abs(silent.edited) > 1e-3
    assert sum(silent.products) + silent.rest + silent.bias + silent.edited == pytest.approx(0, abs=1e-5)
    assert terms(found, "attn.z", (1, 0)).edited == 0


def test_what_is_not_there_is_refused(tiny: Tiny) -> None:
    run = core.trace(tiny(), ids=IDS)
    with pytest.raises(IndexError, match="layer 2 in 'decoder'"):
        walk(run, "decoder", 2, 0)
    with pytest.raises(IndexError, match="layer 0 in 'encoder'"):
        walk(run, "encoder", 0, 0)
    with pytest.raises(IndexError, match="position 9 of 9"):
        walk(run, "decoder", 0, 9)
    found = walk(run, "decoder", 0, 0)
    with pytest.raises(KeyError, match=r"no step .mlp\.gate."):
        terms(found, "mlp.gate", 0)
    with pytest.raises(IndexError, match=r"no number \[23\] in mlp\.up"):
        terms(found, "mlp.up", 23)
    with pytest.raises(IndexError, match=r"no number \[1\] in attn\.q"):
        terms(found, "attn.q", 1)


def test_the_door_is_the_best_guess_from_layer_threes_attention_on() -> None:
    run = core.trace(core.load("storyteller"), 'The wolf knocked at the door and said, "Open the')
    found = guesses(run)
    assert len(found) == 13 and found[0].sublayer == "embedding" and found[0].final_rank == 608
    end, third = found[-1], next(g for g in found if (g.layer, g.sublayer) == (3, "attention"))
    before = found[found.index(third) - 1]
    assert end.string.endswith("door") and end.probability == end.final_probability == pytest.approx(0.389, abs=1e-3)
    assert before.final_probability == pytest.approx(0.059, abs=1e-3) and before.id != end.id
    assert third.final_probability == pytest.approx(0.168, abs=1e-3) and third.id == end.id
    assert end.probability == pytest.approx(run.predictions(k=1).probs[0][0], abs=1e-5)


def test_the_guess_of_a_translator_from_token_numbers() -> None:
    run = core.trace(core.load("translator"), ids=[5, 100, 200, 42, 300, 400, 500, 600, 700, 2])
    best = run.predictions(k=1)
    assert best.probs[0][0] == pytest.approx(0.0920, abs=5e-5) and best.strings[0][0].endswith("E")
    end = guesses(run)[-1]
    assert end.id == best.ids[0][0] and end.probability == pytest.approx(best.probs[0][0], abs=1e-5)
    assert {g.sublayer for g in guesses(run)} == {"embedding", "attention", "cross-attention", "MLP"}


def test_an_encoder_guesses_nothing() -> None:
    with pytest.raises(TextError, match="has no head"):
        guesses(animal())


def test_half_precision_rounds_and_the_others_take_it(tiny: Tiny) -> None:
    exact = tiny(position="rotary", gated=True)
    half = core.build(exact.config, dtype=torch.bfloat16)
    found = walk(core.trace(half, ids=IDS), "decoder", 1, 3)
    for step, values in found.values.items():
        assert values.dtype == torch.float32, step
        if step == "x" or not values.isfinite().all():
            continue
        every = terms(found, step, largest(values), k=1000)
        assert every.edited == 0 and every.n_rest == 0
        assert abs(every.rest) < 0.02 * max(1, abs(every.value)), step
        assert sum(every.products) + every.rest + every.bias == pytest.approx(every.value, abs=1e-5)
