"""New parts of a model, each alone: what it computes, and what says that it does not show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from core import trace
from core.checkpoints import Loaded
from core.errors import ConfigError, TextError
from core.model.config import ModelConfig
from core.plan import plan, trace_shapes
from core.read.layer_walk import walk

IDS = [3, 9, 4, 7, 5, 8]
EXPERTS = {"n_experts": 3, "n_experts_per_token": 2, "gated": True}


def test_a_soft_cap_keeps_scores_within_it(tiny: Callable[..., Loaded]) -> None:
    free, capped = (trace(tiny(score_softcap=cap, attn_scale=9.0), ids=IDS).attention[0] for cap in (None, 0.5))
    assert capped.scores().abs().max() <= 0.5 < free.scores().abs().max()
    torch.testing.assert_close(capped.scores(), (free.scores() / 0.5).tanh() * 0.5)


def test_a_sink_takes_weight_from_the_keys(tiny: Callable[..., Loaded]) -> None:
    loaded = tiny(sinks=True)
    record = trace(loaded, ids=IDS).attention[0]
    sink = loaded.model.stacks[-1].blocks[0].get_submodule("attn").get_parameter("sinks")
    masked = record.scores(masked=True)
    whole = masked.exp().sum(-1) + sink.exp()[:, None]
    torch.testing.assert_close(record.pattern(), masked.exp() / whole[..., None])
    assert (record.pattern().sum(-1) < 1).all()
    assert record.receipt().rows_sum_error < 1e-6


def test_a_token_takes_the_experts_that_its_router_scores_highest(tiny: Callable[..., Loaded]) -> None:
    decoder: Any = tiny(**EXPERTS).model.decoder
    mixture = decoder.blocks[0].mlp
    x = torch.randn(1, 5, mixture.router.in_features)
    with torch.inference_mode():
        shares = mixture.router(x).softmax(-1)
        weights, chosen = shares.topk(2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        each = torch.stack([expert(x) for expert in mixture.experts], dim=-2)  # [1, token, expert, d_model]
        expected = sum(
            weights[..., i, None]
            * each.gather(-2, chosen[..., i, None, None].expand(-1, -1, 1, each.shape[-1])).squeeze(-2)
            for i in range(2)
        )
        torch.testing.assert_close(mixture(x), expected)


def test_shared_layers_are_one(tiny: Callable[..., Loaded]) -> None:
    blocks = tiny(n_encoder_layers=3, shared_layers=True).model.encoder.blocks  # type: ignore[union-attr]
    assert all(a is b for a, b in zip(blocks[0].parameters(), blocks[2].parameters(), strict=True))


def test_a_layer_that_does_not_turn_knows_no_order(tiny: Callable[..., Loaded]) -> None:
    loaded = tiny(n_encoder_layers=1, position="rotary", unturned_layers=(0,))
    one, other = (trace(loaded, ids=ids).attention[0].pattern() for ids in (IDS, IDS[::-1]))
    torch.testing.assert_close(one, other.flip(1, 2))


@pytest.mark.parametrize(
    ("config", "part"),
    [
        (EXPERTS, "mixture of experts"),
        ({"score_softcap": 2.0}, "soft-cap on scores"),
        ({"sinks": True}, "sinks"),
        ({"norm_order": "after"}, "norms after"),
        ({"position": "rotary", "parallel": True, "shared_norm": True}, "one norm"),
        ({"position": "rotary", "kv_rank": 5, "rotary_fraction": 0.34}, "latent attention"),
    ],
)
def test_refused_where_it_is_not_shown(tiny: Callable[..., Loaded], config: dict[str, Any], part: str) -> None:
    loaded = tiny(**config)
    if part != "mixture of experts":  # which the walk has steps for
        with pytest.raises(TextError, match=part):
            walk(trace(loaded, ids=IDS), "decoder", 0, 2)
    with pytest.raises(ConfigError, match=f"training is not counted.*{part}"):
        plan(loaded.config, source_len=6, training=True)
    assert plan(loaded.config, source_len=6).memory.total > 0


def test_contributions_need_logits_that_are_sums(tiny: Callable[..., Loaded]) -> None:
    with pytest.raises(TextError, match="tanh"):
        trace(tiny(logit_softcap=3.0), ids=IDS).logit_attribution()


def test_experts_are_not_traced_on_nothing(tiny: Callable[..., Loaded]) -> None:
    with pytest.raises(ConfigError, match="router"):
        trace_shapes(tiny(**EXPERTS).config, source_len=4)


@pytest.mark.parametrize(
    "config",
    [
        {"n_experts": 3},
        {"n_experts": 3, "n_experts_per_token": 4},
        {"score_softcap": 0.0},
        {"shared_norm": True},
        {"d_embed": 7},
        {"d_v": 7},
        {"dense_layers": (2,)},
        {"router": "sparsemixer", "n_experts": 3, "n_experts_per_token": 1},
    ],
)
def test_what_cannot_be_built_says_why(config: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="sparsemixer" if "router" in config else next(iter(config)).split("_")[0]):
        ModelConfig(vocab_size=9, d_model=8, n_heads=2, d_ff=8, n_decoder_layers=2, **config)
