"""Single looks add up to heads, heads to logits, in every order of norms; and long texts are read without a map."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import core
from core import device
from core.checkpoints import Loaded
from core.errors import InterventionError, StaleTrace, TextError, TooLarge
from core.model.text import from_ids, pad
from core.read.edge_attribution import (
    SAME,
    edge_attribution_in_layer,
    edge_in_all_heads,
    head_logit_attribution,
    top_token_attribution,
)
from tests.core.conftest import make_loaded
from tests.core.test_invariants import SAMPLE, name
from tests.core.test_records import Custom, doubled, texts, tilted
from tests.thorough import part

Tiny = Callable[..., Loaded]
IDS = [3, 1, 4, 1, 5, 9, 2, 6]
WRITERS = [config for config in SAMPLE if config["head"] == "lm"]


class Largest(TorchDispatchMode):
    """The largest tensor that any operation makes inside, in numbers."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            if isinstance(one, torch.Tensor):
                self.size = max(self.size, one.numel())
        return made


def heads_of(run: core.Trace, position: int | None, token: int | None, site: str) -> torch.Tensor:
    """[layer, head] by Trace.logit_attribution()."""
    parts = [p for p in run.logit_attribution(position, token).parts if p.part == "head" and p.site == site]
    return torch.tensor([p.value for p in parts]).view(-1, run.config.n_heads)


@pytest.mark.parametrize("config", part(WRITERS, 3), ids=name)
def test_looks_add_up_to_heads_and_heads_to_the_logit(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config, embed_norm=config["window"] is None)
    rng = random.Random(name(config))
    sources, targets = texts(loaded.config.kind, rng.choice(("none", "left", "right")), rng)
    run = core.trace_tokens(loaded, sources, targets, ()).text(1)
    tokens = run.source if run.target is None else run.target
    last = max(i for i, padding in enumerate(tokens.padding) if not padding)
    sites: list[Any] = ["attn", "cross_attn"] if loaded.config.kind == "encoder-decoder" else ["attn"]
    for position, token in ((None, None), (last - 1, 17)):
        found = run.logit_attribution(position, token)
        heads = 0.0
        for site in sites:
            looks = core.edge_attribution(run, position, token, site)
            expected = heads_of(run, position, token, site)
            assert torch.allclose(looks.sum(-1), expected, atol=2e-4), config
            several = head_logit_attribution(run, position, [found.token, 5, 60], site)
            assert torch.allclose(several[0], expected, atol=2e-4)
            assert torch.allclose(several[1], heads_of(run, position, 5, site), atol=2e-4)
            heads += looks.sum().item()
            row = last if position is None else position
            hidden = ~run.attention.at(0, site).mask([row])[0]
            assert not hidden.any() or looks[0][:, hidden].abs().max() == 0
        others = sum(part.value for part in found.parts if part.part != "head")
        assert heads + others == pytest.approx(found.logit, abs=5e-4)


@pytest.mark.parametrize("config", part(WRITERS[::3], 3), ids=name)
def test_a_layer_from_all_positions_is_each_position_s(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    run = core.trace(loaded, ids=IDS, target_ids=IDS[:5] if loaded.config.kind == "encoder-decoder" else None)
    layer = len(core.edge_attribution(run)) - 1
    whole = edge_attribution_in_layer(run, layer)
    for position in range(whole.shape[1]):
        assert torch.allclose(whole[:, position], core.edge_attribution(run, position)[layer], atol=1e-5)
    some = edge_attribution_in_layer(run, layer, [3, 1])
    assert torch.allclose(some, whole[:, [3, 1]], atol=1e-5)
    moved = top_token_attribution(run, among=7)
    likeliest = run.predictions(k=7)
    assert (moved.tokens, moved.strings) == (likeliest.ids[0], likeliest.strings[0])
    assert torch.allclose(moved.values, head_logit_attribution(run, None, likeliest.ids[0]).permute(1, 2, 0))
    assert torch.allclose(moved.values[..., 0], core.edge_attribution(run).sum(-1), atol=1e-4)


@pytest.mark.parametrize("config", part(WRITERS[1::4]), ids=name)
def test_no_look_depends_on_the_other_texts_of_a_batch(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    target = IDS[2:6] if loaded.config.kind == "encoder-decoder" else None
    alone = core.edge_attribution(core.trace(loaded, ids=IDS, target_ids=target))
    for side in ("left", "right"):
        sources = pad([from_ids(None, IDS), from_ids(None, [*IDS, 7, 8, 9])], 0, "[PAD]", side)
        targets = None
        if target is not None:
            targets = pad([from_ids(None, target), from_ids(None, [*target, 7])], 0, "[PAD]", side)
        both = core.trace_tokens(loaded, sources, targets, ()).text(0)
        found = core.edge_attribution(both)
        real = [i for i, padding in enumerate(sources[0].padding) if not padding]
        assert torch.allclose(found[..., real], alone, atol=1e-4)
        rest = [i for i in range(found.shape[-1]) if i not in real]
        assert found[..., rest].abs().max() == 0


@pytest.mark.parametrize("hold", [True, False])
def test_looks_are_of_the_head_as_edits_left_it(tiny: Tiny, hold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.run.trace.HELD_BYTES", 1 << 25 if hold else 0)
    loaded = tiny(n_kv_heads=2, norm_order="sandwich")
    edits: list[Any] = [
        core.edits.Ablate("decoder", 0, 1),
        core.edits.ScaleHead(-2.0, "decoder", 1, 2),
        Custom("decoder.blocks.1.attn.hook_v", tilted),
    ]
    run = core.trace(loaded, ids=IDS, interventions=edits)
    looks = core.edge_attribution(run)
    assert looks[0, 1].abs().max() == 0 and looks[1, 2].abs().max() > 0
    assert torch.allclose(looks.sum(-1), heads_of(run, None, None, "attn"), atol=2e-4)
    doubling: Any = [Custom("decoder.blocks.0.attn.hook_result", doubled)]
    louder = core.trace(loaded, ids=IDS, interventions=doubling)
    assert torch.allclose(core.edge_attribution(louder).sum(-1), heads_of(louder, None, None, "attn"), atol=2e-4)
    assert torch.allclose(head_logit_attribution(louder)[0], heads_of(louder, None, None, "attn"), atol=2e-4)


def test_a_head_that_is_no_sum_over_keys_any_more_is_refused(tiny: Tiny) -> None:
    loaded = tiny()
    run = core.trace(loaded, ids=IDS, interventions=[core.edits.Ablate("decoder", 1, 3, to="mean")])
    with pytest.raises(InterventionError, match="head 3 of layer 1"):
        core.edge_attribution(run)
    assert torch.allclose(head_logit_attribution(run)[0], heads_of(run, None, None, "attn"), atol=2e-4)
    shown = core.findings(run)
    assert any(one.kind == "rests" for one in shown) and SAME < 0.01
    assert not any((one.layer, one.head) == (1, 3) and one.addition for one in shown)


def test_what_has_no_looks_says_so(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TextError, match="not defined there"):
        core.edge_attribution(core.trace(tiny(n_encoder_layers=1, head="mlm"), ids=IDS))
    with pytest.raises(TextError, match="no head"):
        head_logit_attribution(core.trace(tiny(n_encoder_layers=1, head="none"), ids=IDS))
    run = core.trace(tiny(), ids=IDS)
    with pytest.raises(TextError, match="no cross-attention"):
        core.edge_attribution(run, site="cross_attn")
    with pytest.raises(TextError, match="0 to 60"):
        core.edge_attribution(run, token=61)
    with pytest.raises(IndexError, match="position 8 of 8"):
        core.edge_attribution(run, 8)
    with pytest.raises(IndexError, match="layer 2 of 2"):
        edge_attribution_in_layer(run, 2)
    with pytest.raises(TextError, match="Ask for 100"):
        top_token_attribution(run, among=0)
    with pytest.raises(TextError, match="Ask for 9"):
        core.strongest_edges(run, k=0)
    with pytest.raises(IndexError, match="key 8 of 8"):
        edge_in_all_heads(run, 3, 8)
    with pytest.raises(IndexError, match="query -1 of 8"):
        edge_in_all_heads(run, -1, 0)
    monkeypatch.setattr(device, "SMALL", 0)
    monkeypatch.setattr(device, "free_bytes", lambda device: 0)
    with pytest.raises(TooLarge, match="one layer"):
        edge_attribution_in_layer(run, 0)


def test_looks_are_of_the_weights_of_the_run(tiny: Tiny) -> None:
    loaded = tiny()
    run = core.trace(loaded, ids=IDS)
    with torch.no_grad():
        loaded.model.get_parameter("decoder.norm.weight").mul_(2)
    for ask in (
        core.edge_attribution,
        head_logit_attribution,
        top_token_attribution,
        core.findings,
        core.strongest_edges,
    ):
        with pytest.raises(StaleTrace):
            ask(run)


@pytest.mark.parametrize("config", part(SAMPLE[::5]), ids=name)
def test_the_strongest_keys_and_one_link_are_cells_of_the_maps(config: dict[str, Any]) -> None:
    loaded = make_loaded(**config)
    run = core.trace(loaded, ids=IDS, target_ids=IDS[:5] if loaded.config.kind == "encoder-decoder" else None)
    found, one = core.strongest_edges(run, [4, 2], k=3), edge_in_all_heads(run, 4, 1)
    site = "cross_attn" if loaded.config.kind == "encoder-decoder" else "attn"
    for layer in range(2):
        pattern = run.attention.at(layer, site).pattern()
        expected = pattern[:, [4, 2]].topk(3).values
        assert torch.allclose(found.weights[layer], expected, atol=1e-6)
        assert torch.allclose(pattern[:, [4, 2]].gather(-1, found.keys[layer]), expected, atol=1e-6)
        assert torch.allclose(one.weights[layer], pattern[:, 4, 1], atol=1e-6)
        if loaded.config.kind == "encoder":
            assert found.additions is None and one.additions is None
            continue
        assert found.additions is not None and one.additions is not None
        looks = edge_attribution_in_layer(run, layer)
        assert torch.allclose(found.additions[layer], looks[:, [4, 2]].gather(-1, found.keys[layer]), atol=1e-5)
        assert torch.allclose(one.additions[layer], looks[:, 4, 1], atol=1e-5)


@pytest.mark.thorough(but=1)
@pytest.mark.parametrize("hold", [True, False])
def test_a_long_text_is_read_without_a_map(tiny: Tiny, hold: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.run.trace.HELD_BYTES", 1 << 25 if hold else 0)
    n = 4096
    run = core.trace(tiny(n_ctx=n, position="rotary", norm="rms"), ids=[i * i % 61 for i in range(n)])
    with Largest() as largest:
        core.opening_finding(run)
        core.findings(run)
        found = core.strongest_edges(run, range(n - 9, n))
        edge_in_all_heads(run, n - 1, 7)
        core.edge_attribution(run)
    assert found.keys.shape == (2, 4, 9, 9)
    assert largest.size < n * n / 8


def test_five_thousand_heads_are_one_tensor(tiny: Tiny) -> None:
    run = core.trace(tiny(n_decoder_layers=80, n_heads=64, d_head=2), ids=IDS)
    looks = core.edge_attribution(run)
    assert looks.shape == (80, 64, 8)
    assert torch.allclose(looks.sum(-1), heads_of(run, None, None, "attn"), atol=1e-3)
    assert top_token_attribution(run, among=20).values.shape == (80, 64, 20)
    assert edge_in_all_heads(run, 7, 2).weights.shape == (80, 64)
    assert len({(one.layer, one.head) for one in core.findings(run)}) == len(core.findings(run))
