"""Parameters: the closed form against the model itself, the lessons' numbers and the published ones."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from core.model.config import ModelConfig
from core.model.transformer import Transformer
from core.plan import PRESETS, parameters, with_layers
from tests.core.plan.configs import cases


def count(config: ModelConfig) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in Transformer(config).parameters())


def test_closed_form_is_the_model() -> None:
    for case in cases(1, 250):
        assert parameters(case.config).total == count(case.config), case.config


def test_components_are_the_models_parts() -> None:
    for case in cases(2, 60):
        config, counted = case.config, parameters(case.config)
        with torch.device("meta"):
            model = Transformer(config)
        for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
            found = getattr(counted, name)
            if stack is None:
                assert found.total == 0
                continue
            block: Any = stack.blocks[0]
            inside = sum(p.numel() for p in block.attn.parameters())
            assert found.layer.attn == inside
            assert found.layer.mlp == sum(p.numel() for p in block.mlp.parameters())
            assert found.layer.total == sum(p.numel() for p in block.parameters())
            outside = sum(p.numel() for p in stack.parameters()) - sum(p.numel() for p in stack.embed.parameters())
            assert found.total == outside


EXACT = {  # research: closed form == model on meta == Hugging Face's model on meta
    "transformer-base": 63_082_496,
    "transformer-big": 214_245_376,
    "bert-tiny": 4_385_920,
    "bert-mini": 11_170_560,
    "bert-small": 28_763_648,
    "bert-medium": 41_373_184,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "minilm": 22_713_216,
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "gpt3": 174_604_259_328,
    "t5-small": 60_506_624,
    "llama-2-7b": 6_738_415_616,
    "llama-3-8b": 8_030_261_248,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "smollm2-135m": 134_515_008,
    "qwen3-8b": 8_190_735_360,
    "llama-3.1-405b": 405_853_388_800,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-0.5b": 494_032_768,
}


@pytest.mark.parametrize("name", PRESETS)
def test_known_models(name: str) -> None:
    preset = PRESETS[name]
    if name == "lesson-encoder":
        assert parameters(preset.config).encoder.layer.total == 3_152_384
    else:
        assert parameters(preset.config).total + preset.more == EXACT[name]


@pytest.mark.parametrize("name", ["bert-base", "gpt2", "t5-small", "transformer-base", "qwen2.5-0.5b", "gpt3"])
def test_known_models_are_what_is_built(name: str) -> None:
    config = PRESETS[name].config
    assert parameters(config).total == count(config)


def test_published_counts_are_near() -> None:
    units = {"M": 1e6, "B": 1e9}
    for preset in PRESETS.values():
        if preset.published == "–":
            continue
        number, unit = preset.published.split()
        total = parameters(preset.config).total + preset.more
        assert total == pytest.approx(float(number) * units[unit], rel=0.035), preset.id


def test_qwen_without_embeddings() -> None:
    counted = parameters(PRESETS["qwen2.5-0.5b"].config)
    assert round((counted.total - counted.embedding) / 1e6, 1) == 357.9


def lesson_translator(
    vocab: int = 32_000, d: int = 512, heads: int = 8, d_ff: int = 2048, layers: int = 6
) -> nn.ModuleList:
    """Lesson B's class in parts: two token tables, six layers each way, an output projection of its own."""
    shape: dict[str, Any] = {"d_model": d, "nhead": heads, "dim_feedforward": d_ff}
    return nn.ModuleList(
        [
            *(nn.Embedding(vocab, d) for _ in ("source", "target")),
            *(nn.TransformerEncoderLayer(**shape) for _ in range(layers)),
            *(nn.TransformerDecoderLayer(**shape) for _ in range(layers)),
            *(nn.LayerNorm(d) for _ in ("encoder", "decoder")),
            nn.Linear(d, vocab),
        ]
    )


LESSON_B = ModelConfig(
    vocab_size=32_000,
    d_model=512,
    n_heads=8,
    d_ff=2048,
    n_encoder_layers=6,
    n_decoder_layers=6,
    position="sinusoidal",
    tied=False,
    head_bias=True,
)


def test_lesson_b5() -> None:
    counted = parameters(LESSON_B, two_vocabularies=True)
    with torch.device("meta"):
        built = sum(p.numel() for p in lesson_translator().parameters())
    assert counted.total == built == 93_324_544  # not "about 65 M": nothing is tied
    d, d_ff = 512, 2048
    without_biases, biases = 4 * d * d + 2 * d * d_ff + 4 * d, 4 * d + d_ff + d
    assert without_biases == 3_147_776  # the lesson's formula
    assert counted.encoder.layer.total == without_biases + biases == 3_152_384
    assert round(100 * counted.mlp_share, 1) == 66.6
    assert counted.source.token == counted.target.token == counted.unembed == 16_384_000
    tied = parameters(replace(LESSON_B, tied=True, head_bias=False))
    assert round(tied.total / 1e6, 1) == 60.5


def test_lesson_d5_layers_are_a_line() -> None:
    encoder = replace(LESSON_B, n_decoder_layers=0)
    totals = [parameters(with_layers(encoder, n)).total for n in range(2, 13)]
    steps = {after - before for before, after in itertools.pairwise(totals)}
    assert steps == {3_152_384}


def test_a_tied_table_counts_once() -> None:
    """torchinfo 1.8 says 163,037,184 for GPT-2 small: the tied table twice."""
    counted = parameters(PRESETS["gpt2"].config)
    assert counted.unembed == 0
    assert counted.total + counted.source.token == 163_037_184


def test_to_dict_adds_up() -> None:
    plain = parameters(LESSON_B).to_dict()
    parts = ("embedding", "encoder_total", "decoder_total", "unembed", "head")
    assert sum(plain[part] for part in parts) == plain["total"]
