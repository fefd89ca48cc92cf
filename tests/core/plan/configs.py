"""Random model configurations: every kind, position, norm and head, small enough to run."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from core.model.config import ModelConfig, NormOrder, Position
from tests.thorough import how_many


@dataclass(frozen=True)
class Case:
    """A configuration and the texts to run it on."""

    config: ModelConfig
    batch: int
    source_len: int
    target_len: int
    dtype: str

    @property
    def by(self) -> int:
        return 4 if self.dtype == "float32" else 2

    @property
    def lengths(self) -> dict[str, Any]:
        return {"batch": self.batch, "source_len": self.source_len, "target_len": self.target_len}


def cases(seed: int, n: int, share: int = 4, **lengths: Any) -> list[Case]:
    """Draw n configurations with THOROUGH=1, and otherwise the first of each `share`, at least four."""
    pick = random.Random(seed)
    return [case(pick, **lengths) for _ in range(how_many(n, share))]


def case(
    pick: random.Random,
    *,
    source: tuple[int, ...] = (1, 2, 7, 33),
    target: tuple[int, ...] = (1, 5, 40),
    vocab: tuple[int, ...] = (50, 300),
) -> Case:
    kind = pick.choice(("encoder", "decoder", "encoder-decoder"))
    heads = pick.choice((1, 2, 4, 8, 12))
    position: Position = pick.choice(("none", "learned", "sinusoidal", "rotary", "alibi", "relative"))
    depth = max(
        encoders := 0 if kind == "decoder" else pick.randint(1, 3),
        decoders := 0 if kind == "encoder" else pick.randint(1, 3),
    )
    window = pick.choice((None, None, 3, 32, 5000))
    norm_order: NormOrder = pick.choice(("pre", "pre", "post", "sandwich"))
    config = ModelConfig(
        vocab_size=pick.choice(vocab),
        d_model=heads * pick.choice((8, 16, 32)),
        n_heads=heads,
        n_kv_heads=pick.choice([n for n in range(1, heads + 1) if heads % n == 0]),
        d_head=pick.choice((0, 8, 16, 32)),
        d_ff=pick.choice((16, 48, 256)),
        n_encoder_layers=encoders,
        n_decoder_layers=decoders,
        n_ctx=max(*source, *target),
        position=position,
        position_offset=pick.choice((0, 2)),
        rotary_fraction=pick.choice((1.0, 0.5, 0.25)) if position == "rotary" else 1.0,
        rotary_base_windowed=pick.choice((None, 100.0)) if position == "rotary" else None,
        n_token_types=pick.choice((0, 2)),
        embed_norm=pick.random() < 0.3,
        norm=pick.choice(("layer", "rms")),
        norm_order=norm_order,
        parallel=kind != "encoder-decoder" and norm_order == "pre" and pick.random() < 0.3,
        final_norm=pick.random() < 0.7,
        qkv_bias=pick.random() < 0.5,
        out_bias=pick.random() < 0.5,
        qk_norm=pick.random() < 0.3,
        window=window,
        windowed_layers=None if window is None or pick.random() < 0.5 else tuple(range(0, depth, 2)),
        activation=pick.choice(("relu", "gelu", "gelu_tanh", "silu")),
        gated=pick.random() < 0.4,
        mlp_bias=pick.random() < 0.5,
        head=pick.choice(("lm", "lm", "mlm", "none")),
        tied=pick.random() < 0.5,
        head_bias=pick.random() < 0.5,
    )
    return Case(
        config,
        batch=pick.choice((1, 2, 3)),
        source_len=pick.choice(source),
        target_len=pick.choice(target) if kind == "encoder-decoder" else 0,
        dtype=pick.choice(("float32", "bfloat16", "float16")),
    )
