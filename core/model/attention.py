"""Attention of every kind the models have: multi-head and grouped-query, DeBERTa's disentangled, and multi-head latent attention.

Axes as in core.model.transformer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from .cache import AttentionCache
from .config import ModelConfig
from .hooks import HeadHookPoint, HookPoint
from .positions import distance_row, rotate
from .rules import BiasRule, DisentangledBias, MaskRule, ScoreRule, attend

RotaryCosSin = tuple[Tensor, Tensor]  # cosine and sine of the rotary angles, each [batch or 1, 1, pos, d_rotary/2]


class RMSNorm(nn.Module):
    """x / √mean(x²) · weight (Zhang & Sennrich 2019), always computed in float32."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        x32 = x.float()
        return (self.weight * (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + self.eps))).to(x.dtype)


def build_norm(config: ModelConfig, width: int, eps: float | None = None) -> nn.Module:
    eps = config.norm_eps if eps is None else eps
    bias = config.norm_bias and config.norm_weight
    norm = RMSNorm(width, eps) if config.norm == "rms" else nn.LayerNorm(width, eps, bias=bias)
    if not config.norm_weight:  # a buffer of ones: not learned, not counted and not saved
        ones = norm.weight.detach()
        del norm.weight
        norm.register_buffer("weight", ones, persistent=False)
    return norm


def norm_dtype(module: nn.Module, dtype: torch.dtype) -> torch.dtype:
    """The dtype of a module's weights in a model of this `dtype`: RMSNorm weights are at least float32.

    RMSNorm is computed in float32. Gemma stores its weights as an offset from one, and 1 + w in bfloat16 would leave
    too few bits for w. LayerNorm weights keep `dtype`, because its kernels require the dtype of the residual stream.
    """
    return torch.promote_types(dtype, torch.float32) if isinstance(module, RMSNorm) else dtype


class Attention(nn.Module):
    """Multi-head attention, softmax(q kᵀ / √d_head) v (Vaswani et al. 2017, §3.2), with grouped-query attention."""

    def __init__(self, config: ModelConfig, rotary: bool):
        super().__init__()
        self.d_head, self.d_v = config.d_head, config.value_width
        self.scale = 1 / math.sqrt(config.d_head) if config.attn_scale is None else config.attn_scale
        self.build_projections(config)
        self.o = nn.Linear(config.n_heads * config.value_width, config.d_model, bias=config.out_bias)
        self.norm_place = config.qk_norm_place
        n_q, n_k = (config.n_heads, config.n_kv_heads) if self.norm_place == "full" else (1, 1)  # heads per norm
        self.q_norm = build_norm(config, config.d_head * n_q) if config.qk_norm else nn.Identity()
        self.k_norm = build_norm(config, config.d_head * n_k) if config.qk_norm else nn.Identity()
        self.softcap = config.score_softcap
        self.sinks = nn.Parameter(torch.zeros(config.n_heads)) if config.sinks else None

        if rotary:  # queries and keys before RoPE
            self.hook_q_pre = HeadHookPoint("batch", "query", "head", "d_head", is_public=False)
            self.hook_k_pre = HeadHookPoint("batch", "key", "kv_head", "d_head", is_public=False)
        self.hook_q = HeadHookPoint("batch", "query", "head", "d_head")
        self.hook_k = HeadHookPoint("batch", "key", "kv_head", "d_head")
        self.hook_v = HeadHookPoint("batch", "key", "kv_head", "d_head")
        self.hook_rule = HookPoint()  # receives a ScoreRule instead of a tensor
        self.hook_scores = HookPoint("batch", "head", "query", "key")
        self.hook_pattern = HookPoint("batch", "head", "query", "key")
        self.hook_z = HeadHookPoint("batch", "query", "head", "d_head")
        self.hook_result = HookPoint("batch", "pos", "head", "d_model", is_public=False)
        self.hook_o = HookPoint("batch", "pos", "d_model", is_public=False)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: MaskRule,
        bias: BiasRule | DistanceTable | None,
        rotary: RotaryCosSin | None,
        cache: AttentionCache | None = None,
        query_scale: Tensor | None = None,
    ) -> Tensor:
        """Attention from x [batch, query, d_model] to memory [batch, key, d_model], which is x in self-attention.

        With a cache, the keys and values are those of earlier calls followed by those of `memory`.
        """
        return self.attend_and_project(*self.compute_qkv(x, memory, rotary, cache, query_scale), mask, bias)

    def compute_qkv(
        self,
        x: Tensor,
        memory: Tensor,
        rotary: RotaryCosSin | None,
        cache: AttentionCache | None,
        query_scale: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of x [batch, head, query, d_head]; keys and values, cached ones first, each [batch, kv_head, key, d_head]."""
        q = self.project_queries(x)
        cached = None if cache is None else cache.cached
        if cached is None:
            k, v = self.project_keys_values(memory)
            if rotary is not None:
                q, k = rotate(self.hook_q_pre(q), *rotary), rotate(self.hook_k_pre(k), *rotary)
            if self.norm_place == "turned":
                q, k = self.q_norm(q), self.k_norm(k)
            if query_scale is not None:
                q = q * query_scale
            cached = (k, v) if cache is None else cache.add(k, v)
        k, v = cached
        return self.hook_q(q), self.hook_k(k), self.hook_v(v)

    def attend_and_project(
        self, q: Tensor, k: Tensor, v: Tensor, mask: MaskRule, bias: BiasRule | DistanceTable | None
    ) -> Tensor:
        """Attention followed by the output projection: [batch, query, d_model]."""
        assert not isinstance(bias, DistanceTable)
        rule = self.hook_rule(ScoreRule(mask, self.scale, bias, softcap=self.softcap, sinks=self.sinks))
        is_eager = self.hook_scores.has_hooks or self.hook_pattern.has_hooks
        z = self.hook_z(self.eager_attention(q, k, v, rule) if is_eager else attend(q, k, v, rule))
        return self.hook_o(self.project_output(z))

    def build_projections(self, config: ModelConfig) -> None:
        self.q = nn.Linear(config.d_model, config.n_heads * config.d_head, bias=config.qkv_bias)
        self.k = nn.Linear(config.d_model, config.n_kv_heads * config.d_head, bias=config.qkv_bias)
        self.v = nn.Linear(config.d_model, config.n_kv_heads * config.d_head, bias=config.qkv_bias)

    def project_queries(self, x: Tensor) -> Tensor:
        """[batch, query, d_model] -> [batch, head, query, d_head], before RoPE."""
        return self.split_heads_normed(self.q(x), self.q_norm)

    def project_keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """[batch, key, d_model] -> k and v, each [batch, kv_head, key, d_head]; k is before RoPE."""
        return self.split_heads_normed(self.k(memory), self.k_norm), self.split_heads(self.v(memory))

    def project_output(self, z: Tensor) -> Tensor:
        """z W_O: [batch, head, query, d_head] -> [batch, query, d_model]; computed per head if hook_result has hooks."""
        out = self.o(z.transpose(1, 2).flatten(2))
        if not self.hook_result.has_hooks:
            return out
        weight = self.o.weight.unflatten(1, (-1, self.d_v))  # [d_model, head, d_head]
        result = torch.einsum("bhqd,mhd->bqhm", z, weight)
        edited = self.hook_result(result)
        if edited is result:  # hooks only read it: return the bit-identical product
            return out
        return edited.sum(2) if self.o.bias is None else edited.sum(2) + self.o.bias

    def eager_attention(self, q: Tensor, k: Tensor, v: Tensor, rule: ScoreRule) -> Tensor:
        """attend() with materialised scores and pattern, so that hooks can read or edit them."""
        queries = torch.arange(q.shape[2], device=q.device)
        keys = torch.arange(k.shape[2], device=q.device)
        scores = self.hook_scores(rule.scores(q, k, queries, keys))  # [batch, head, query, key]
        pattern = self.hook_pattern(rule.pattern(rule.masked(scores, queries, keys), queries, keys))
        return pattern @ v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)

    def split_heads_normed(self, x: Tensor, norm: nn.Module) -> Tensor:
        """Queries or keys [batch, pos, head * d_head] -> [batch, head, pos, d_head], with the norms that come before RoPE."""
        if self.norm_place == "full":
            return self.split_heads(norm(x))
        return self.split_heads(x) if self.norm_place == "turned" else norm(self.split_heads(x))

    def split_heads(self, x: Tensor) -> Tensor:
        """[batch, pos, head * d_head] -> [batch, head, pos, d_head]"""
        return x.unflatten(-1, (-1, self.d_head)).transpose(1, 2)


@dataclass(frozen=True, eq=False)
class DistanceTable:
    """Inputs of disentangled attention: distance embeddings [row, d_model] and token positions."""

    rows: Tensor
    query_positions: Tensor
    key_positions: Tensor


class DisentangledAttention(Attention):
    """DeBERTa's scores (He et al. 2021, arXiv:2006.03654, §3.1): q·k, q · key of the distance, query of the distance · k."""

    def __init__(self, config: ModelConfig, rotary: bool):
        super().__init__(config, rotary)
        self.row_of = partial(
            distance_row,
            span=config.distance_span,
            n_buckets=config.n_position_buckets,
            max_distance=config.max_relative_distance,
        )

    def build_projections(self, config: ModelConfig) -> None:
        super().build_projections(config)
        self.terms = config.position_terms
        own = {"c2p": "k_distance", "p2c": "q_distance"} if config.own_distance_projections else {}
        for term, name in own.items():
            if term in self.terms:
                setattr(self, name, nn.Linear(config.d_model, config.n_heads * config.d_head, bias=True))
        self.projection_names = {"c2p": own.get("c2p", "k"), "p2c": own.get("p2c", "q")}

    def attend_and_project(
        self, q: Tensor, k: Tensor, v: Tensor, mask: MaskRule, bias: BiasRule | DistanceTable | None
    ) -> Tensor:
        if isinstance(bias, DistanceTable):
            table = {term: self.project_rows(term, bias.rows) for term in self.terms}
            bias = DisentangledBias(
                q,
                k,
                table.get("c2p"),
                table.get("p2c"),
                self.scale,
                bias.query_positions,
                bias.key_positions,
                self.row_of,
            )
        return super().attend_and_project(q, k, v, mask, bias)

    def project_rows(self, term: str, rows: Tensor) -> Tensor:
        """[row, d_model] -> keys or queries of the distances, [head, row, d_head]"""
        return self.split_heads(self.get_submodule(self.projection_names[term])(rows)[None])[0]


class LatentAttention(Attention):
    """Multi-head latent attention (DeepSeek-AI 2024, arXiv:2405.04434, §2.1): keys and values from a low-rank latent.

    The first d_rotary features of a head are rotated; for keys, all heads share them. The cache holds the keys and
    values of every head, not the latent.
    """

    def build_projections(self, config: ModelConfig) -> None:
        d_nope = config.d_head - config.d_rotary  # features without RoPE
        self.n_heads = config.n_heads
        if config.q_rank:
            self.q_down = nn.Linear(config.d_model, config.q_rank, bias=False)
            self.q_down_norm = build_norm(config, config.q_rank, config.latent_norm_eps)
        self.q = nn.Linear(config.q_rank or config.d_model, config.n_heads * config.d_head, bias=False)
        self.kv_down = nn.Linear(config.d_model, config.kv_rank, bias=False)
        self.kv_down_norm = build_norm(config, config.kv_rank, config.latent_norm_eps)
        self.k_turned = nn.Linear(config.d_model, config.d_rotary, bias=False)
        self.k = nn.Linear(config.kv_rank, config.n_heads * d_nope, bias=False)
        self.v = nn.Linear(config.kv_rank, config.n_heads * config.value_width, bias=False)
        self.has_q_rank = config.q_rank > 0

    def project_queries(self, x: Tensor) -> Tensor:
        return self.split_heads(self.q(self.q_down_norm(self.q_down(x)) if self.has_q_rank else x))

    def project_keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        latent = self.kv_down_norm(self.kv_down(memory))  # [batch, key, kv_rank]
        k_rope = self.k_turned(memory)[:, None].expand(-1, self.n_heads, -1, -1)
        k = torch.cat([k_rope, self.k(latent).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)], dim=-1)
        return k, self.v(latent).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
