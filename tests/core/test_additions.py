"""How a token's stream begins and who adds what to it, and the same through a service: the mock's numbers, as plain data."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, TypeVar

import numpy as np
import pytest
import torch

import core
from core.checkpoints import Loaded
from core.errors import HeadlightError
from core.model.transformer import MLP
from core.read.layer_walk import additions, by_head, normed, start, strongest_neurons, walk
from core.run.request import Request
from core.service import LayerWalk, LocalService, WalkNumber
from core.service.engine import Engine
from tests.core.serving import assert_plain
from tests.core.test_layer_walk import IDS, LAYERS, animal

T = TypeVar("T")
Tiny = Callable[..., Loaded]
REQUEST = Request("minilm", ("The animal didn't cross the street because it was too tired.",))


def ask(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(call)


@cache
def service() -> LocalService:
    shared = LocalService(Engine(device=torch.device("cpu")))
    shared.engine.run(REQUEST)
    return shared


def test_a_stream_begins_as_a_sum_of_rows() -> None:
    run = animal()
    parts, begun, is_normed = start(run, "encoder", 10)
    embed = run.loaded.model.get_submodule("encoder.embed")
    assert list(parts) == ["token", "type", "position"] and is_normed
    assert torch.equal(parts["token"], embed.token.weight[2009].float())  # type: ignore[union-attr,index]
    assert torch.equal(parts["position"], embed.position.weight[10].float())  # type: ignore[union-attr,index]
    norm = embed.norm
    assert isinstance(norm, torch.nn.LayerNorm)
    summed = torch.stack([*parts.values()]).sum(0)
    assert torch.allclose(normed(norm, summed) * norm.weight + norm.bias, begun, atol=1e-5)
    assert torch.allclose(begun, walk(run, "encoder", 0, 10).values["x"], atol=1e-6)


@pytest.mark.parametrize("config", LAYERS.values(), ids=LAYERS)
def test_what_sublayers_add_is_what_a_walk_adds(tiny: Tiny, config: dict[str, Any]) -> None:
    loaded = tiny(**config)
    run = core.trace(loaded, ids=IDS, target_ids=IDS[:5] if "n_decoder_layers" in config else None)
    stack, n_layers = run.config.stacks[-1]
    found = walk(run, stack, n_layers - 1, 3)
    wrote = {"attention": "attn", "cross-attention": "cross_attn", "MLP": "mlp"}
    for one in additions(run, stack):
        if one.layer != n_layers - 1:
            continue
        part = wrote[one.sublayer]
        added = found.values.get(f"{part}.out_norm", found.values[f"{part}.out"])
        assert one.lengths[3].item() == pytest.approx(added.norm().item(), rel=1e-4)
    for site in ("attn", "cross_attn"):
        if site not in found.inputs:
            continue
        output = found.block.get_submodule(f"{site}.o")
        assert isinstance(output, torch.nn.Linear)
        together = by_head(found, site).sum(0) + (0 if output.bias is None else output.bias)
        assert torch.allclose(together, found.values[f"{site}.out"], atol=1e-5)
    parts, begun, is_normed = start(run, stack, 3)
    if not is_normed:
        assert torch.allclose(sum(parts.values()), begun, atol=1e-6)  # type: ignore[arg-type]


def test_the_loudest_neurons_are_the_largest_products() -> None:
    found = walk(animal(), "encoder", 3, 10)
    assert isinstance(found.block.mlp, MLP)
    neurons, norms = strongest_neurons(found, 3)
    lengths = found.values["mlp.act"].abs() * found.block.mlp.down.weight.norm(dim=0)
    assert neurons.tolist() == lengths.topk(3).indices.tolist()
    assert (found.values["mlp.act"][neurons].abs() * norms).tolist() == pytest.approx(lengths.topk(3).values.tolist())


def test_a_service_walks_in_plain_data_with_the_mock_s_numbers() -> None:
    shared, key = service(), REQUEST.key
    found = ask(shared.walk(key, "encoder", 3, 10))
    assert_plain(found)
    own = walk(shared.engine.run(REQUEST), "encoder", 3, 10)
    assert list(found.values) == list(own.steps)
    assert all(np.array_equal(found.values[step], own.values[step].numpy()) for step in own.steps)
    (site,) = found.sites
    assert (site.site, site.record, site.bias, site.reasons.any()) == ("attn", 3, None, False)
    scores = found.values["attn.raw"] * site.scale / site.temperature
    assert np.allclose(scores, found.values["attn.scores"], atol=1e-5)
    assert found.values["attn.raw"][1, 2] == pytest.approx(21.69, abs=5e-3)
    assert list(found.norms) == ["attn.norm", "mlp.norm"] and found.norms["attn.norm"].takes_mean
    assert found.norms["attn.norm"].before.shape == (16, 384)
    sum_of = ask(shared.terms(key, WalkNumber("encoder", 3, 10, "attn.q", (1, 5)), 4))
    assert_plain(sum_of)
    assert sum_of.value == pytest.approx(float(found.values["attn.q"][1, 5]))
    assert sum(sum_of.products) + sum_of.rest + sum_of.bias == pytest.approx(sum_of.value, abs=1e-5)
    rows = ask(shared.additions(key, "encoder"))
    assert_plain(rows)
    assert [(row.layer, row.sublayer) for row in rows[6:8]] == [(3, "attention"), (3, "MLP")]
    assert rows[6].lengths[10] == pytest.approx(6.24, abs=6e-3)


def test_what_a_layer_does_not_have_is_refused_in_a_sentence() -> None:
    shared, key = service(), REQUEST.key
    for call, said in (
        (shared.walk(key, "encoder", 6, 10), "no layer 6 in 'encoder': .* 0 to 5"),
        (shared.walk(key, "decoder", 0, 10), "no layer 0 in 'decoder'"),
        (shared.walk(key, "encoder", 0, 16), "no position 16 of 16"),
        (shared.terms(key, WalkNumber("encoder", 3, 10, "mlp.gate", (0,))), "no step 'mlp.gate'"),
        (shared.terms(key, WalkNumber("encoder", 3, 10, "attn.q", (12, 0))), r"no number \[12, 0\] in attn.q"),
        (shared.terms(key, WalkNumber("encoder", 3, 10, "x", (0,))), "is not a sum"),
        (shared.additions(key, "decoder"), "no stack called 'decoder'"),
        (shared.guesses(key), "has no head"),
    ):
        with pytest.raises(HeadlightError, match=said):
            ask(call)


def test_guesses_of_a_service_are_core_s() -> None:
    shared = service()
    request = Request("storyteller", ('The wolf knocked at the door and said, "Open the',))
    key = request.key
    shared.engine.run(request)
    found = ask(shared.guesses(key))
    assert_plain(found)
    assert (found[-1].string.strip("Ġ "), found[-1].probability) == ("door", pytest.approx(0.389, abs=5e-4))
    begun: LayerWalk = ask(shared.walk(key, "decoder", 0, 3))
    assert not begun.embed_normed and np.allclose(sum(begun.start.values()), begun.embed, atol=1e-6)
