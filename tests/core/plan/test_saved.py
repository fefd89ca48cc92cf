"""What autograd keeps: closed forms against autograd itself, on core.model and on the textbook's layer."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.errors import ConfigError
from core.model.config import ModelConfig
from core.plan import PRESETS, parameters, plan, prefill, total_flops, trace_shapes
from core.plan.training import kept_activations, lesson_terms, saved_layer
from core.plan.workload import Attention, Workload
from tests.core.plan.configs import cases
from tests.thorough import how_many

MiB = 1 << 20


def test_closed_forms_are_the_tracers() -> None:
    """Parameters, FLOPs and every kept byte of core.model, spelled out."""
    for case in cases(3, 200, 16):
        traced = trace_shapes(case.config, **case.lengths, dtype=case.dtype, training=True, loss=False)
        kept = kept_activations(case.config, Workload(**case.lengths, dtype=case.dtype, attention="spelled_out"))
        assert kept.total == traced.saved_bytes, case
        assert parameters(case.config).total == traced.parameters, case
        assert total_flops(prefill(case.config, **case.lengths)) == traced.flops, case


class TextbookLayer(nn.Module):
    """One layer as the lessons write it, out of plain torch operations; nothing of core.model in it."""

    def __init__(self, config: ModelConfig, attention: Attention, dropout: bool):
        super().__init__()
        c = self.config = config
        self.attention, self.dropout = attention, dropout
        d, q, kv = c.d_model, c.n_heads * c.d_head, c.n_kv_heads * c.d_head
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = nn.Linear(d, q), nn.Linear(d, kv), nn.Linear(d, kv), nn.Linear(q, d)
        self.up, self.down = nn.Linear(d, c.d_ff), nn.Linear(c.d_ff, d)
        self.gate = nn.Linear(d, c.d_ff) if c.gated else None
        self.act = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}[c.activation]

    def drop(self, x: Tensor) -> Tensor:
        return torch.native_dropout(x, 0.1, True)[0] if self.dropout else x

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm1(x)
        x = x + self.drop(self.o(self.attend(h)))
        h = self.norm2(x)
        up = self.up(h)
        hidden = self.act(up) if self.gate is None else self.act(self.gate(h)) * up
        return x + self.drop(self.down(self.drop(hidden)))

    def attend(self, h: Tensor) -> Tensor:
        c = self.config

        def split(x: Tensor, heads: int) -> Tensor:
            return x.view(*x.shape[:2], heads, c.d_head).transpose(1, 2)

        q, k, v = split(self.q(h), c.n_heads), split(self.k(h), c.n_kv_heads), split(self.v(h), c.n_kv_heads)
        causal = c.kind == "decoder"
        if self.attention == "flash":
            z = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[0]
        else:
            if c.n_kv_heads != c.n_heads:
                k, v = (x.repeat_interleave(c.n_heads // c.n_kv_heads, 1) for x in (k, v))
            if self.attention == "efficient":
                z = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, True, 0.0, causal)[0]
            else:
                scores = q @ k.transpose(-2, -1) / c.d_head**0.5
                if causal:
                    n = h.shape[1]
                    scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool, device=h.device).triu(1), -torch.inf)
                z = self.drop(scores.softmax(-1)) @ v
        return z.transpose(1, 2).reshape(*h.shape[:2], c.n_heads * c.d_head)


def textbook_bytes(
    config: ModelConfig, batch: int, n: int, dtype: torch.dtype, attention: Attention, dropout: bool
) -> int:
    """What autograd keeps of one layer, each storage once, weights left out; on the meta device."""
    with torch.device("meta"):
        layer = TextbookLayer(config, attention, dropout).to(dtype)
        x = torch.empty(batch, n, config.d_model, dtype=dtype, requires_grad=True)
    weights = {p.untyped_storage()._cdata for p in layer.parameters()}
    found: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        # the kernels' random number state is two scalars, which are no activations
        if storage._cdata not in weights and tensor.ndim > 0 and tensor.dtype != torch.uint64:
            found[storage._cdata] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = layer(x)
    assert out.shape == x.shape
    return sum(found.values())


def textbook_config(pick: random.Random, attention: str) -> ModelConfig:
    heads = pick.choice((1, 2, 4, 8))
    decoder = pick.random() < 0.5
    gated = pick.random() < 0.4
    return ModelConfig(
        vocab_size=10,
        d_model=heads * pick.choice((8, 32)),
        n_heads=heads,
        n_kv_heads=pick.choice([n for n in range(1, heads + 1) if heads % n == 0]),
        d_head=pick.choice((8, 32, 64)),
        d_ff=pick.choice((16, 100)),
        n_encoder_layers=0 if decoder else 1,
        n_decoder_layers=1 if decoder else 0,
        gated=gated,
        activation=pick.choice(("gelu", "silu") if gated else ("relu", "gelu", "silu")),
    )


@pytest.mark.parametrize("attention", ["eager", "efficient", "flash"])
def test_textbook_layer_keeps_what_the_closed_form_says(attention: Attention) -> None:
    pick = random.Random(attention)
    for _ in range(how_many(80, 8)):
        config = textbook_config(pick, attention)
        batch, n = pick.choice((1, 2, 5)), pick.choice((1, 7, 33, 513))
        half = attention == "flash" or pick.random() < 0.5
        dropout = attention == "eager" and pick.random() < 0.4
        found = textbook_bytes(config, batch, n, torch.float16 if half else torch.float32, attention, dropout)
        dtype = "float16" if half else "float32"
        work = Workload(batch=batch, source_len=n, dtype=dtype, attention=attention, dropout=dropout)
        items = saved_layer(config, work, causal=config.kind == "decoder", n=n)
        assert sum(item.bytes for item in items) == found, (config, work)


LESSON = PRESETS["lesson-encoder"].config


def test_lesson_a4_and_a5() -> None:
    planned = plan(LESSON, batch=32, source_len=50, training=True, attention="eager")
    terms = {name: round(value / MiB, 3) for name, value in planned.lesson_terms.items()}
    assert terms == {
        "input": 3.125,
        "qkv": 9.375,
        "scores": 2.441,
        "attn_out": 3.125,
        "ffn_hidden": 12.5,
        "total": 30.566,
    }
    assert round(6 * planned.lesson_terms["total"] / MiB, 1) == 183.4
    found = textbook_bytes(LESSON, 32, 50, torch.float32, "eager", False)
    assert planned.saved_per_layer == found == 55_014_400
    assert round(found / MiB, 3) == 52.466
    assert round(6 * planned.saved_per_layer / MiB, 1) == 314.8


def test_what_the_lesson_misses() -> None:
    """Seven streams: norm 1's output, the residual after attention, norm 2's output, and the input of GELU; and statistics."""
    planned = plan(LESSON, batch=32, source_len=50, attention="eager")
    stream = 32 * 50 * 512 * 4
    statistics = 2 * (2 * 32 * 50 * 4)
    assert planned.saved_per_layer - planned.lesson_terms["total"] == 7 * stream + statistics
    named = {item.name: item.bytes for item in planned.saved_items}
    missed = named["attn input"] + named["mlp_norm input"] + named["mlp input"] + named["mlp up"]
    assert missed == 7 * stream


@pytest.mark.parametrize(
    ("dtype", "dropout", "attention", "activation", "expected"),
    [
        ("float32", False, "eager", "gelu", 52.466),
        ("float32", False, "eager", "relu", 39.966),
        ("float32", True, "eager", "gelu", 60.205),
        ("float32", True, "eager", "relu", 60.205),
        ("float32", False, "efficient", "gelu", 50.087),
        ("float16", False, "eager", "gelu", 26.245),
        ("float16", False, "eager", "relu", 19.995),
        ("float16", True, "eager", "gelu", 32.764),
        ("float16", False, "flash", "gelu", 25.073),
        ("float16", False, "flash", "relu", 18.823),
    ],
)
def test_measured_table(dtype: str, dropout: bool, attention: Attention, activation: Any, expected: float) -> None:
    config = ModelConfig(vocab_size=10, d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=1, activation=activation)
    planned = plan(config, batch=32, source_len=50, dtype=dtype, dropout=dropout, attention=attention)
    assert round(planned.saved_per_layer / MiB, 3) == expected


@pytest.mark.parametrize(
    ("s", "b", "h", "a"), [(50, 32, 512, 8), (2048, 4, 6144, 64), (2048, 1, 12288, 96), (1024, 8, 1024, 16)]
)
def test_korthikanti_is_exact_but_for_statistics(s: int, b: int, h: int, a: int) -> None:
    """sbh(34 + 5as/h) bytes a layer (arXiv:2205.05198, eq. 2), plus 16sb of means and deviations; no dropout inside the MLP."""
    config = ModelConfig(vocab_size=10, d_model=h, n_heads=a, d_ff=4 * h, n_encoder_layers=1)
    work = Workload(batch=b, source_len=s, dtype="float16", dropout=True, attention="eager")
    inside_mlp = b * s * 4 * h
    eager = sum(item.bytes for item in saved_layer(config, work, causal=False, n=s))
    # with dropout inside the MLP, its mask is one more byte for each number
    assert eager - inside_mlp == s * b * h * 34 + 5 * a * s * s * b + 16 * s * b
    kept = kept_activations(config, replace(work, recompute="full"))
    assert kept.layers[0].per_layer == 2 * s * b * h  # the cookbook's "34sbh" is another thing
    kept = kept_activations(config, replace(work, recompute="attention"))
    assert kept.layers[0].per_layer - inside_mlp == 34 * s * b * h + 16 * s * b


def test_lesson_a6_scores_against_length() -> None:
    scores = {n: lesson_terms(LESSON, Workload(batch=32, source_len=n))["scores"] for n in (50, 100, 512, 1024)}
    assert {n: round(value / MiB, 2) for n, value in scores.items()} == {
        50: 2.44,
        100: 9.77,
        512: 256,
        1024: 1024,
    }
    assert scores[50] / 1e6 == 2.56  # the lesson's "2.56 MB": the same tensor in 10⁶ bytes


def test_gpt2_medium_exercise() -> None:
    config = PRESETS["gpt2-medium"].config

    def per_layer(dropout: bool) -> float:
        return round(plan(config, source_len=1024, attention="eager", dropout=dropout).saved_per_layer / MiB, 1)

    assert (per_layer(False), per_layer(True)) == (129.0, 215.0)
    assert lesson_terms(config, Workload(source_len=1024))["total"] / MiB == 100.0


def test_unknown_attention() -> None:
    with pytest.raises(ConfigError, match="attention \\('fast'\\) must be one of 'eager'"):
        plan(LESSON, source_len=10, attention="fast")  # type: ignore[arg-type]
