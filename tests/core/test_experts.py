"""The experts that tokens take: those of transformers' routers, their load, and what says that there are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import core
from benchmarks.coverage import ROWS, VOCAB, made
from core import device
from core.checkpoints import Loaded
from core.errors import TextError, TooLarge
from core.read.layer_walk import routing

ROUTED = {
    row.name: row
    for row in ROWS
    if row.name
    in ("Mixtral", "Qwen2-MoE", "Qwen3-MoE", "OLMoE", "gpt-oss", "PhiMoE", "DeepSeek V2", "DeepSeek V3", "GLM-4.5")
}
IDS = [3, 9, 4, 7, 5, 8, 11, 30, 17]
MIXED = {
    "n_experts": 5,
    "n_experts_per_token": 2,
    "gated": True,
    "n_decoder_layers": 3,
    "dense_layers": (1,),
    "d_dense": 29,
}


@pytest.mark.parametrize("name", ROUTED)
def test_they_are_those_of_transformers_routers(name: str, tmp_path: Path) -> None:
    model = made(ROUTED[name])
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []
    for module in model.modules():
        if type(module).__name__.lower().endswith("router"):
            module.register_forward_hook(lambda _, __, out: seen.append((out[-2], out[-1])))
    ids = torch.randint(5, VOCAB, (1, 13), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        model(ids)
    model.save_pretrained(tmp_path)
    found = routing(core.trace(core.load(tmp_path), ids=ids[0].tolist()))
    assert len(found.layers) == len(seen) == len(found.chosen)
    assert found.layers == core.load(tmp_path).config.expert_layers["decoder"]
    n = model.config.num_experts_per_tok
    own = zip(torch.from_numpy(found.weights), torch.from_numpy(found.chosen).long(), strict=True)
    for (mine, experts), (weights, numbers) in zip(own, seen, strict=True):
        assert mine.shape == experts.shape == (13, n)
        # One row of all experts says both which and by how much, in whatever order they were named.
        ours, theirs = torch.zeros(2, 13, found.n_experts)
        ours.scatter_(1, experts, mine)
        theirs.scatter_(1, numbers, weights.float())
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
        assert ((ours != 0) == (theirs != 0)).all()
        assert (mine.diff(dim=-1) <= 0).all()


def test_the_load_counts_every_choice_of_the_words_and_none_of_the_padding(tiny: Callable[..., Loaded]) -> None:
    loaded = tiny(**MIXED)
    keep = [1] * 7 + [0] * 2
    found = routing(core.trace(loaded, ids=IDS, keep=keep))
    assert found.layers == (0, 2)
    for layer, load in enumerate(found.load):
        taken = found.chosen[layer, :7].flatten().tolist()
        assert load.tolist() == pytest.approx([taken.count(expert) / 14 for expert in range(5)])
    assert routing(core.trace(loaded, ids=IDS)).load[0].sum() == pytest.approx(1)


def test_the_mixture_is_the_sum_that_the_weights_say(tiny: Callable[..., Loaded]) -> None:
    loaded = tiny(**MIXED, norm_order="pre")
    run = core.trace(loaded, ids=IDS)
    found, mixture = routing(run), loaded.model.get_submodule("decoder.blocks.2.mlp")
    x = run.activation("decoder.blocks.2.hook_mlp_normed")
    with torch.inference_mode():
        each = torch.stack(
            [expert(x) for expert in mixture.get_submodule("experts").children()]
        )  # [expert, pos, d_model]
    weights = torch.from_numpy(found.weights)
    sums = sum(weights[1, :, i, None] * each[found.chosen[1, :, i], torch.arange(len(IDS))] for i in range(2))
    torch.testing.assert_close(sums, run.activation("decoder.blocks.2.hook_mlp_out"), atol=1e-5, rtol=1e-5)


def test_an_edit_changes_what_later_routers_choose(tiny: Callable[..., Loaded]) -> None:
    loaded = tiny(**MIXED)
    plain = core.trace(loaded, ids=IDS)
    edited = core.trace(loaded, ids=IDS, interventions=[core.edits.Ablate("decoder", 0, 1)])
    assert not np.array_equal(routing(plain).weights[1], routing(edited).weights[1])


def test_of_a_batch_it_is_the_text_that_is_looked_at(tiny: Callable[..., Loaded]) -> None:
    loaded = tiny(**MIXED)
    other = list(reversed(IDS))
    alone = routing(core.trace(loaded, ids=other))
    tokens = tuple(core.trace(loaded, ids=ids).source for ids in (IDS, other))
    both = routing(core.trace_tokens(loaded, tokens, None, ()).text(1))
    assert np.array_equal(both.chosen, alone.chosen)
    np.testing.assert_allclose(both.weights, alone.weights, rtol=1.3e-6, atol=1e-5)


def test_a_table_has_a_row_for_each_choice(tiny: Callable[..., Loaded]) -> None:
    found = routing(core.trace(tiny(**MIXED), ids=IDS))
    table = found.to_frame()
    assert len(table) == 2 * len(IDS) * 2
    row = table[(table.layer == 2) & (table.pos == 4)]
    assert row.expert.tolist() == found.chosen[1, 4].tolist()
    assert row.weight.tolist() == found.weights[1, 4].tolist()


def test_a_model_without_experts_says_so(tiny: Callable[..., Loaded]) -> None:
    with pytest.raises(TextError, match=r"one MLP in each layer"):
        routing(core.trace(tiny(), ids=IDS))
    with pytest.raises(TextError, match=r"no experts in a stack 'encoder'\. It has some in: decoder"):
        routing(core.trace(tiny(**MIXED), ids=IDS), "encoder")


def test_memory_is_refused_with_both_numbers(tiny: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch) -> None:
    run = core.trace(tiny(**MIXED), ids=IDS)
    monkeypatch.setattr(device, "SMALL", 0)
    monkeypatch.setattr(device, "free_bytes", lambda _: 10)
    with pytest.raises(TooLarge, match=r"^The experts of 9 tokens in 2 layers would need \d+ MiB, and 0 MiB are free"):
        routing(run)


def test_a_wrapped_model_says_that_it_is_not_known(tmp_path: Path) -> None:
    run: Any = core.trace(core.wrap(made(ROUTED["Mixtral"]), None), ids=IDS)
    with pytest.raises(core.HeadlightError, match="the choice of its routers is not known"):
        routing(run)
