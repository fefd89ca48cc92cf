"""Configurations of well-known models, with the parameter counts that their authors publish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model.config import ModelConfig


@dataclass(frozen=True)
class Preset:
    """A known model. `published` is the parameter count in the words of its authors. It includes `more` parameters not in core.model."""

    id: str
    title: str
    config: ModelConfig
    published: str
    source: str
    more: int = 0  # BERT's pooler


def _vaswani(id: str, title: str, published: str, **shape: Any) -> Preset:
    config = ModelConfig(
        vocab_size=37_000,
        n_encoder_layers=6,
        n_decoder_layers=6,
        position="sinusoidal",
        norm_order="post",
        final_norm=False,
        activation="relu",
        embed_scale=shape["d_model"] ** 0.5,
        **shape,
    )
    return Preset(id, title, config, published, "Vaswani et al. 2017, table 3")


def _bert(id: str, title: str, published: str, *, vocab_size: int = 30_522, **shape: Any) -> Preset:
    config = ModelConfig(
        vocab_size=vocab_size,
        n_ctx=512,
        n_token_types=2,
        embed_norm=True,
        norm_order="post",
        final_norm=False,
        norm_eps=1e-12,
        head="none",
        **shape,
    )
    pooler = config.d_model * (config.d_model + 1)
    return Preset(id, title, config, published, "google-research/bert release list", more=pooler)


def _gpt(id: str, title: str, published: str, source: str, *, n_ctx: int = 1024, **shape: Any) -> Preset:
    config = ModelConfig(vocab_size=50_257, n_ctx=n_ctx, activation="gelu_tanh", d_ff=4 * shape["d_model"], **shape)
    return Preset(id, title, config, published, source)


def _llama(row: tuple[Any, ...]) -> Preset:
    id, title, published, source, *sizes, rest = row
    names = ("vocab_size", "n_ctx", "d_model", "n_heads", "n_kv_heads", "d_ff", "n_decoder_layers", "rotary_base")
    defaults: dict[str, Any] = {
        "position": "rotary",
        "norm": "rms",
        "gated": True,
        "activation": "silu",
        "qkv_bias": False,
        "out_bias": False,
        "mlp_bias": False,
        "tied": False,
    }
    config = ModelConfig(**(defaults | dict(zip(names, sizes, strict=True)) | rest))
    return Preset(id, title, config, published, source)


_LESSON_ENCODER = ModelConfig(
    vocab_size=32_000,
    d_model=512,
    n_heads=8,
    d_ff=2048,
    n_encoder_layers=6,
    position="sinusoidal",
    head="none",
)

# A textbook encoder class in its five sizes: sinusoids, Pre-LN, attention without biases.
LESSON_CLASS: dict[str, ModelConfig] = {
    title: ModelConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        n_heads=n_heads,
        d_ff=4 * d_model,
        n_encoder_layers=n_layers,
        position="sinusoidal",
        qkv_bias=False,
        out_bias=False,
        head="none",
    )
    for title, vocab_size, d_model, n_heads, n_layers in (
        ("Mini", 1000, 128, 4, 4),
        ("Tiny", 30_522, 128, 2, 2),
        ("Small", 30_522, 512, 8, 4),
        ("Base", 30_522, 768, 12, 12),
        ("Large", 30_522, 1024, 16, 24),
    )
}
_T5_SMALL = ModelConfig(
    vocab_size=32_128,
    d_model=512,
    n_heads=8,
    d_head=64,
    d_ff=2048,
    n_encoder_layers=6,
    n_decoder_layers=6,
    position="relative",
    norm="rms",
    norm_eps=1e-6,
    activation="relu",
    attn_scale=1.0,
    logit_scale=512**-0.5,
    qkv_bias=False,
    out_bias=False,
    mlp_bias=False,
)
# id, title, published count, source, vocab_size, n_ctx, d_model, n_heads, n_kv_heads, d_ff, n_decoder_layers, rotary_base, other fields
_LLAMAS: tuple[tuple[Any, ...], ...] = (
    ("llama-2-7b", "Llama 2 7B", "6.7 B", "Touvron et al. 2023", 32_000, 4096, 4096, 32, 32, 11_008, 32, 10_000.0, {}),
    ("llama-3-8b", "Llama 3 8B", "8 B", "model card of Llama 3", 128_256, 8192, 4096, 32, 8, 14_336, 32, 500_000.0, {}),
    ("llama-3.1-8b", "Llama 3.1 8B", "8 B", "Grattafiori et al. 2024, table 3", 128_256, 131_072, 4096, 32, 8, 14_336, 32, 500_000.0, {}),
    ("llama-3.1-70b", "Llama 3.1 70B", "70.6 B", "Grattafiori et al. 2024, table 3", 128_256, 131_072, 8192, 64, 8, 28_672, 80, 500_000.0, {}),
    ("llama-3.1-405b", "Llama 3.1 405B", "405 B", "Grattafiori et al. 2024, table 3", 128_256, 131_072, 16_384, 128, 8, 53_248, 126, 500_000.0, {}),
    ("mistral-7b", "Mistral 7B", "7.3 B", "Jiang et al. 2023, table 1", 32_000, 8192, 4096, 32, 8, 14_336, 32, 10_000.0, {"window": 4096}),
    ("smollm2-135m", "SmolLM2 135M", "135 M", "model card of SmolLM2-135M", 49_152, 8192, 576, 9, 3, 1536, 30, 100_000.0, {"tied": True}),
    ("qwen3-8b", "Qwen3 8B", "8.2 B", "model card of Qwen3-8B", 151_936, 40_960, 4096, 32, 8, 12_288, 36, 1_000_000.0, {"d_head": 128, "qk_norm": True}),
    ("qwen2.5-0.5b", "Qwen2.5 0.5B", "0.49 B", "model card of Qwen2.5-0.5B", 151_936, 32_768, 896, 14, 2, 4864, 24, 1_000_000.0, {"qkv_bias": True, "tied": True}),
)  # fmt: skip
_GPT2 = "file names of openai/gpt-2"
_GPT3 = "Brown et al. 2020, table 2.1"

PRESETS: dict[str, Preset] = {
    preset.id: preset
    for preset in (
        Preset(
            "lesson-encoder",
            "A textbook encoder",
            _LESSON_ENCODER,
            "–",
            "six layers of 512, Pre-LN, GELU, as lectures count it",
        ),
        _vaswani("transformer-base", "Transformer base", "65 M", d_model=512, n_heads=8, d_ff=2048),
        _vaswani("transformer-big", "Transformer big", "213 M", d_model=1024, n_heads=16, d_ff=4096),
        _bert("bert-tiny", "BERT tiny", "4.4 M", d_model=128, n_heads=2, d_ff=512, n_encoder_layers=2),
        _bert("bert-mini", "BERT mini", "11.3 M", d_model=256, n_heads=4, d_ff=1024, n_encoder_layers=4),
        _bert("bert-small", "BERT small", "29.1 M", d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=4),
        _bert("bert-medium", "BERT medium", "41.7 M", d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=8),
        _bert("bert-base", "BERT base", "110 M", d_model=768, n_heads=12, d_ff=3072, n_encoder_layers=12),
        _bert("bert-large", "BERT large", "340 M", d_model=1024, n_heads=16, d_ff=4096, n_encoder_layers=24),
        _bert("minilm", "MiniLM-L6", "22.7 M", d_model=384, n_heads=12, d_ff=1536, n_encoder_layers=6),
        _gpt("gpt2", "GPT-2 small", "124 M", _GPT2, d_model=768, n_heads=12, n_decoder_layers=12),
        _gpt("gpt2-medium", "GPT-2 medium", "355 M", _GPT2, d_model=1024, n_heads=16, n_decoder_layers=24),
        _gpt("gpt2-large", "GPT-2 large", "774 M", _GPT2, d_model=1280, n_heads=20, n_decoder_layers=36),
        _gpt("gpt2-xl", "GPT-2 XL", "1558 M", _GPT2, d_model=1600, n_heads=25, n_decoder_layers=48),
        _gpt("gpt3", "GPT-3", "175 B", _GPT3, n_ctx=2048, d_model=12_288, n_heads=96, n_decoder_layers=96),
        Preset("t5-small", "T5 small", _T5_SMALL, "60 M", "model card of t5-small"),
        *map(_llama, _LLAMAS),
    )
}
