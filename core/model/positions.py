"""Positional encodings: added to the embeddings, applied to q and k (RoPE), or added to the scores."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from .config import ModelConfig, RotaryScaling, SinusoidLayout


def sinusoid_table(n_pos: int, d_model: int, layout: SinusoidLayout) -> Tensor:
    """[pos, d_model]: wavelengths rise geometrically from 2π to 10000·2π (Vaswani et al. 2017, §3.5).

    `interleaved` alternates sine and cosine as in the paper; `halves` has all sines first, then all cosines (Marian);
    `fairseq` is `halves` with frequencies that end at exactly 1/10000.
    """
    steps = torch.arange(0, d_model, 2, dtype=torch.float64)
    frequencies = 10_000 ** (-steps / (d_model - 2 if layout == "fairseq" else d_model))
    angles = torch.arange(n_pos, dtype=torch.float64)[:, None] * frequencies
    parts = [angles.sin(), angles.cos()]
    table = torch.stack(parts, dim=-1).flatten(1) if layout == "interleaved" else torch.cat(parts, dim=-1)
    return table.float()


def position_ids(config: ModelConfig, n: int, ids: Tensor, keep: Tensor | None) -> Tensor:
    """[batch or 1, pos]: the position of each of n tokens, by config.position_counts; ids [batch, pos] are the last ones.
    Padding at an end never moves a token.

    places       distance from the first real token, counting masked tokens in between; padding repeats the first or last
    seen         number of unmasked tokens before it; -1 for a masked token (OPT)
    not_padding  number of tokens before it other than the padding token, masked or not; -1 for that token (RoBERTa, fairseq)
    """
    if (uncounted := config.uncounted_id) is not None:  # not_padding
        return _counted(ids != uncounted)
    if keep is None:
        return torch.arange(n, device=ids.device)[None]
    if config.position_counts == "seen":
        return _counted(keep)
    places, real = torch.arange(n, device=ids.device), keep.long()
    first, last = (
        real.argmax(-1, keepdim=True),
        (real * places).amax(-1, keepdim=True),
    )  # 0 if there is no real token yet
    return places.clamp(first, last) - first


def _counted(counts: Tensor) -> Tensor:
    """counts [batch, pos] bool -> for True, the number of True before it; for False, -1."""
    return counts.long().cumsum(-1) * counts - 1


class RotaryRule(NamedTuple):
    """All parameters of the rotary frequencies. `n_pos` is None if they do not depend on the input length."""

    base: float
    d_rotary: int
    scaling: RotaryScaling | None
    n_pos: int | None


def rotary_rule(config: ModelConfig, n_pos: int, windowed: bool = False) -> RotaryRule:
    """The rule for an input of n_pos tokens, of sliding-window (`windowed`) or full-attention layers."""
    base, scaling = config.rotary_base, config.rotary_scaling
    if windowed and config.rotary_base_windowed is not None:
        base, scaling = config.rotary_base_windowed, None
    grown = scaling is not None and scaling.kind in ("dynamic", "longrope") and n_pos > scaling.n_ctx_original
    return RotaryRule(base, config.d_rotary, scaling, n_pos if grown else None)


def rotary_frequencies(config: ModelConfig, n_pos: int, windowed: bool = False) -> tuple[Tensor, float]:
    """[d_rotary/2] radians per position, and YaRN's or LongRoPE's factor on q and k (otherwise 1).

    Su et al. 2021 (arXiv:2104.09864), with the published context extensions of RotaryScaling. Only `dynamic` and
    `longrope` depend on `n_pos`, the length of the input. `windowed` selects the sliding-window layers.
    """
    base, d, scaling, length = rotary_rule(config, n_pos, windowed)
    if scaling is not None and scaling.kind == "dynamic" and length is not None and d > 2:
        base *= (scaling.factor * length / scaling.n_ctx_original - (scaling.factor - 1)) ** (d / (d - 2))
    frequencies = 1.0 / base ** (torch.arange(0, d, 2).float() / d)
    if scaling is None or scaling.kind == "dynamic":
        return frequencies, 1.0
    if scaling.kind == "linear":
        return frequencies / scaling.factor, 1.0
    if scaling.kind == "llama3":
        return _llama3(frequencies, scaling), 1.0
    if scaling.kind == "longrope":
        factors = torch.tensor(scaling.short_factors if length is None else scaling.long_factors)
        return 1.0 / (factors * base ** (torch.arange(0, d, 2).float() / d)), _longrope_factor(scaling)
    return _yarn(frequencies, base, d, scaling)


def _llama3(frequencies: Tensor, scaling: RotaryScaling) -> Tensor:
    """Long wavelengths stretched by `factor`, short ones kept, a linear blend between (Llama 3.1 reference code)."""
    rotations = scaling.n_ctx_original * frequencies / (2 * math.pi)  # within the original training context
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = ((rotations - low) / (high - low)).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)


def _longrope_factor(scaling: RotaryScaling) -> float:
    """√(1 + ln factor / ln n_ctx_original), unless configured (LongRoPE, §3.3, as published for Phi-3)."""
    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if scaling.factor <= 1:
        return 1.0
    return math.sqrt(1 + math.log(scaling.factor) / math.log(scaling.n_ctx_original))


def _yarn(frequencies: Tensor, base: float, d: int, scaling: RotaryScaling) -> tuple[Tensor, float]:
    """Kept above beta_fast rotations, stretched by `factor` below beta_slow, blended between (YaRN, §3.2 and §3.4)."""

    def dimension(rotations: float) -> float:
        return d * math.log(scaling.n_ctx_original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = dimension(scaling.beta_fast), dimension(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    if low == high:
        high += 0.001  # as published, so that the ramp has a slope
    slowed = ((torch.arange(d // 2).float() - low) / (high - low)).clamp(0, 1)
    return frequencies * (1 - slowed) + frequencies / scaling.factor * slowed, _yarn_factor(scaling)


def _yarn_factor(scaling: RotaryScaling) -> float:
    def magnitude(weight: float) -> float:
        return 0.1 * weight * math.log(scaling.factor) + 1.0 if scaling.factor > 1 else 1.0

    if scaling.attention_factor is not None:
        return scaling.attention_factor
    if scaling.mscale and scaling.mscale_all_dim:
        return magnitude(scaling.mscale) / magnitude(scaling.mscale_all_dim)
    return magnitude(1.0)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the first 2·cos.shape[-1] features of x [batch, head, pos, d_head] (RoPE).

    Feature j is paired with feature j + d_rotary/2, the half-split layout of the published checkpoints.
    """
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half : 2 * half]
    rotated = [a * cos - b * sin, b * cos + a * sin]
    return torch.cat(rotated if x.shape[-1] == 2 * half else [*rotated, x[..., 2 * half :]], dim=-1)


def alibi_slopes(n_heads: int) -> Tensor:
    """[head]: a geometric sequence (Press et al. 2021, arXiv:2108.12409), filled up from the next power of two if needed."""

    def power_of_two(n: int) -> list[float]:
        return [2 ** (-8 * (h + 1) / n) for h in range(n)]

    floor = 2 ** math.floor(math.log2(n_heads))
    return torch.tensor(power_of_two(floor) + power_of_two(2 * floor)[::2][: n_heads - floor])


def distance_row(distance: Tensor, span: int, n_buckets: int, max_distance: int) -> Tensor:
    """The row of each query position − key position in a table of 2 · span rows (He et al. 2021, arXiv:2111.09543).

    Each distance has a row of its own; with buckets only up to half of them, then logarithmically up to max_distance.
    """
    if n_buckets:
        half = n_buckets // 2
        far = distance.abs().clamp(min=half)
        steps = (far / half).log() / math.log((max_distance - 1) / half) * (half - 1)
        bucket = (steps.ceil().long() + half) * distance.sign()
        distance = torch.where(distance.abs() <= half, distance, bucket)
    return (distance + span).clamp(0, 2 * span - 1)


def relative_bucket(distance: Tensor, n_buckets: int, max_distance: int, bidirectional: bool) -> Tensor:
    """T5's bucket for each distance = key position − query position (Raffel et al. 2020, §2.1; mesh-tensorflow).

    Half of the buckets hold one distance each; the others grow logarithmically up to max_distance. A bidirectional
    stack uses half of the buckets for each side; a causal one has no keys to the right.
    """
    offset = torch.zeros_like(distance)
    if bidirectional:
        n_buckets //= 2
        offset = (distance > 0).long() * n_buckets
        distance = distance.abs()
    else:
        distance = -distance.clamp(max=0)
    exact = n_buckets // 2
    ratio = (distance.clamp(min=1).float() / exact).log() / math.log(max_distance / exact)
    far = exact + (ratio * (n_buckets - exact)).long()
    return offset + torch.where(distance < exact, distance, far.clamp(max=n_buckets - 1))


class RelativeBias(nn.Embedding):
    """T5's learned bias per distance bucket: a table [bucket, head]."""

    def __init__(self, config: ModelConfig, bidirectional: bool):
        super().__init__(config.n_relative_buckets, config.n_heads)
        self.bidirectional, self.max_distance = bidirectional, config.max_relative_distance

    def forward(self, input: Tensor) -> Tensor:
        """distances [..., query, key] -> bias [..., head, query, key]"""
        bucket = relative_bucket(input, self.num_embeddings, self.max_distance, self.bidirectional)
        return super().forward(bucket).movedim(-1, -3)
