"""A transformer of any shape (encoder, decoder, or encoder-decoder), configured by ModelConfig.

Tensor axes, always in this order:
    batch    texts in the batch
    head     query heads; kv_head is the axis of key/value heads, which query heads share in grouped-query attention
    pos      token positions; "query" and "key" name the two position axes of attention
    d_model  width of the residual stream    d_head  width of a head    d_ff  MLP hidden width    vocab  tokens
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import (
    Attention,
    DisentangledAttention,
    DistanceTable,
    LatentAttention,
    RotaryCosSin,
    build_norm,
    norm_dtype,
)
from .cache import Cache, LayerCache
from .config import ModelConfig
from .hooks import HookPoint, between_layers
from .positions import (
    RelativeBias,
    alibi_slopes,
    position_ids,
    rotary_frequencies,
    rotary_rule,
    sinusoid_table,
)
from .rules import BiasRule, DistanceBias, MaskRule

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu_squared": lambda x: F.relu(x).square(),
}

XIELU_BETA = 0.5
XIELU_EPS = -1e-6

MAX_CACHED_FREQUENCIES = 16  # rotary rules whose frequencies a stack caches


class XIELU(nn.Module):
    """xIELU (Huang 2024, arXiv:2411.13010): α_p x² + βx for x > 0, else α_n (e^min(x, ε) − 1 − x) + βx, with learned α."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha_p, self.alpha_n = nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        above, below = F.softplus(self.alpha_p), XIELU_BETA + F.softplus(self.alpha_n)
        return torch.where(
            x > 0,
            above * x * x + XIELU_BETA * x,
            (torch.expm1(x.clamp(max=XIELU_EPS)) - x) * below + XIELU_BETA * x,
        )


def build_activation(name: str) -> Callable[[Tensor], Tensor]:
    return XIELU() if name == "xielu" else ACTIVATIONS[name]


class MLP(nn.Module):
    """down(act(up(x))), or down(act(gate(x)) * up(x)) when gated (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, config: ModelConfig, d_ff: int):
        super().__init__()
        self.up = nn.Linear(config.d_model, d_ff, bias=config.mlp_bias)
        self.gate = nn.Linear(config.d_model, d_ff, bias=config.mlp_bias) if config.gated else None
        self.down = nn.Linear(d_ff, config.d_model, bias=config.mlp_bias)
        self.activation = build_activation(config.activation)
        self.hook_pre = HookPoint("batch", "pos", "d_ff", is_public=False)  # activation input
        if self.gate is not None:
            self.hook_pre_linear = HookPoint("batch", "pos", "d_ff", is_public=False)  # factor of the gate
        self.hook_post = HookPoint("batch", "pos", "d_ff")

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            post = self.activation(self.hook_pre(self.up(x)))
        else:
            post = self.activation(self.hook_pre(self.gate(x))) * self.hook_pre_linear(self.up(x))
        return self.down(self.hook_post(post))  # [batch, pos, d_ff] -> [batch, pos, d_model]


class Expert(nn.Module):
    """One expert of a mixture of experts: [token, d_model] -> [token, d_model]."""

    def __init__(self, config: ModelConfig, d_ff: int):
        super().__init__()
        self.up = nn.Linear(config.d_model, d_ff, bias=config.mlp_bias)
        self.gate = nn.Linear(config.d_model, d_ff, bias=config.mlp_bias) if config.gated else None
        self.down = nn.Linear(d_ff, config.d_model, bias=config.mlp_bias)
        self.activation, self.limit = build_activation(config.activation), config.expert_limit

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.hidden(x))

    def hidden(self, x: Tensor) -> Tensor:
        """[token, d_model] -> [token, d_ff]: the hidden activations, input of the down projection."""
        if self.gate is None:
            return self.activation(self.up(x))
        gate, up = self.gate(x), self.up(x)
        if self.limit is not None:
            gate, up = gate.clamp(max=self.limit), up.clamp(-self.limit, self.limit) + 1
        return self.activation(gate) * up


class MixtureOfExperts(nn.Module):
    """Mixture of experts (Shazeer et al. 2017, arXiv:1701.06538): Σ weight · expert(x) over the selected experts."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.top_k, self.kind = config.n_experts_per_token, config.router
        self.n_groups, self.n_chosen_groups = config.n_expert_groups, config.n_groups_per_token
        self.normalize_weights, self.scale, self.jitter = (
            config.router_normed,
            config.router_scale,
            config.router_jitter,
        )
        self.router = nn.Linear(config.d_model, config.n_experts, bias=config.router_bias)
        self.correction = nn.Parameter(torch.zeros(config.n_experts)) if config.router_correction else None
        self.experts = nn.ModuleList(Expert(config, config.d_ff) for _ in range(config.n_experts))
        self.shared = Expert(config, config.d_shared) if config.d_shared else None
        self.shared_gate = nn.Linear(config.d_model, 1, bias=False) if config.shared_gate else None
        self.hook_router = HookPoint("batch", "pos", "expert")  # scores of all experts, before selection

    def forward(self, x: Tensor) -> Tensor:
        """[batch, pos, d_model] -> [batch, pos, d_model]"""
        weights, chosen = self.route(self.hook_router(self.router(x)))
        tokens, out = x.flatten(0, -2), torch.zeros_like(x).flatten(0, -2)  # [token, d_model]
        weights, chosen = weights.flatten(0, -2), chosen.flatten(0, -2)  # [token, top_k]
        for number, expert in enumerate(self.experts):
            token, slot = (chosen == number).nonzero(as_tuple=True)
            if len(token):
                out = out.index_add(0, token, expert(tokens[token]) * weights[token, slot, None])
        if self.shared is not None:
            added = self.shared(tokens)
            out = out + (added if self.shared_gate is None else self.shared_gate(tokens).sigmoid() * added)
        return out.view_as(x)

    def route(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Scores [..., expert] -> weights and indices of the selected experts, each [..., top_k]."""
        if self.kind == "sparsemixer":
            return self.route_sparsemixer(scores)
        shares = scores.float().softmax(-1) if self.kind == "softmax" else scores.float().sigmoid()
        ranked = shares if self.correction is None else shares + self.correction
        if self.n_chosen_groups < self.n_groups:
            ranked = self.mask_weak_groups(ranked)
        chosen = ranked.topk(self.top_k, dim=-1).indices
        weights = shares.gather(-1, chosen)
        if self.normalize_weights:
            weights = weights / weights.sum(-1, keepdim=True)
        return (weights * self.scale).to(scores.dtype), chosen

    def mask_weak_groups(self, ranked: Tensor) -> Tensor:
        """`ranked` [..., expert] with −∞ outside the best groups.

        A group's rank is its best expert's; with a correction, the sum of its best two.
        """
        groups = ranked.unflatten(-1, (self.n_groups, -1))  # [..., group, expert]
        best = groups.topk(1 if self.correction is None else 2, dim=-1).values.sum(-1)
        kept = torch.zeros_like(best, dtype=torch.bool).scatter(
            -1, best.topk(self.n_chosen_groups, dim=-1).indices, True
        )
        return groups.masked_fill(~kept[..., None], float("-inf")).flatten(-2)

    def route_sparsemixer(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """SparseMixer routing: the top two experts, each weighted by a softmax over the experts with similar scores."""
        weights, chosen, left = [], [], scores
        for _ in range(2):
            best, number = left.max(-1, keepdim=True)
            far = (best - scores) / scores.abs().clamp(min=best) > 2 * self.jitter
            weights.append(left.masked_fill(far, float("-inf")).softmax(-1).gather(-1, number))
            chosen.append(number)
            left = left.scatter(-1, number, float("-inf"))
        return torch.cat(weights, -1), torch.cat(chosen, -1)


class LayerInputs(NamedTuple):
    """Inputs of one layer other than the residual stream."""

    mask: MaskRule
    bias: BiasRule | DistanceTable | None
    rotary: RotaryCosSin | None
    memory: Tensor | None  # [batch, key, d_model]: encoder output for cross-attention
    memory_mask: MaskRule | None
    cache: LayerCache | None
    query_scale: Tensor | None = None  # position-dependent scale of the queries, [batch or 1, 1, pos, 1]


def build_mlp(config: ModelConfig, layer: int) -> nn.Module:
    """The MLP of a layer: dense or a mixture of experts."""
    if config.has_experts(layer):
        return MixtureOfExperts(config)
    return MLP(config, config.d_dense if config.n_experts else config.d_ff)


class Block(nn.Module):
    """One transformer layer. Its sublayers f are attention, cross-attention (if there is an encoder) and the MLP.

    sequential  pre: x + f(norm(x))    sandwich: x + norm(f(norm(x)))    after: x + norm(f(x))    post: norm(x + f(x))
    parallel    x + attention(norm(x)) + mlp(norm(x)), with one shared norm or two
    """

    def __init__(self, config: ModelConfig, layer: int, cross: bool):
        super().__init__()
        self.norm_order, self.parallel, self.shared_norm = config.norm_order, config.parallel, config.shared_norm
        before = partial(build_norm, config, config.d_model) if config.norm_order != "after" else nn.Identity
        after = (
            partial(build_norm, config, config.d_model) if config.norm_order in ("sandwich", "after") else nn.Identity
        )
        kind = DisentangledAttention if config.position == "disentangled" else Attention
        self.attn = (LatentAttention if config.kv_rank else kind)(config, rotary=config.uses_rotary(layer))
        self.attn_norm = before() if layer or config.first_attn_norm else nn.Identity()
        self.attn_out_norm = after()
        if cross:
            self.cross_attn, self.cross_norm = Attention(config, rotary=False), before()
            self.cross_out_norm = after()
        self.mlp = build_mlp(config, layer)
        self.mlp_norm = nn.Identity() if config.shared_norm else before()
        self.mlp_out_norm = after()
        stream = ("batch", "pos", "d_model")
        # "post" norms output the residual stream, which has its own hook points; "after" sublayers read it unnormalised.
        points = config.norm_order not in ("post", "after")
        normed = partial(HookPoint, *stream, is_public=False) if points else nn.Identity
        self.hook_attn_normed, self.hook_mlp_normed = normed(), normed()
        if cross:
            self.hook_cross_normed = normed()
        self.hook_resid_pre = HookPoint(*stream)
        self.hook_attn_out = HookPoint(*stream)
        if not config.parallel:
            self.hook_resid_mid = HookPoint(*stream)
        if cross:
            self.hook_cross_out = HookPoint(*stream)
            self.hook_resid_cross = HookPoint(*stream)
        self.hook_mlp_out = HookPoint(*stream)
        self.hook_resid_post = HookPoint(*stream)

    def forward(self, x: Tensor, inputs: LayerInputs) -> Tensor:
        x = self.attention_sublayers(x, inputs)
        return self.hook_resid_post(x) if self.parallel else self.mlp_sublayer(x)

    def attention_sublayers(self, x: Tensor, inputs: LayerInputs) -> Tensor:
        """The residual stream after the attention sublayers (in parallel order: after the whole layer)."""
        mask, bias, rotary, memory, memory_mask, cache, query_scale = inputs
        own, cross = (None, None) if cache is None else (cache.attn, cache.cross)

        def attention(h: Tensor) -> Tensor:
            return self.hook_attn_out(self.attn_out_norm(self.attn(h, h, mask, bias, rotary, own, query_scale)))

        def cross_attention(h: Tensor) -> Tensor:
            return self.hook_cross_out(self.cross_out_norm(self.cross_attn(h, memory, memory_mask, None, None, cross)))

        x = self.hook_resid_pre(x)  # [batch, pos, d_model]
        if self.parallel:
            if self.shared_norm:
                normed = self.hook_attn_normed(self.attn_norm(x))
                return x + attention(normed) + self.mlp_output(self.hook_mlp_normed(normed))
            after = x + attention(self.hook_attn_normed(self.attn_norm(x)))
            return after + self.mlp_output(self.hook_mlp_normed(self.mlp_norm(x)))
        x = self.hook_resid_mid(self.residual(x, self.attn_norm, self.hook_attn_normed, attention))
        if memory is not None:
            x = self.hook_resid_cross(self.residual(x, self.cross_norm, self.hook_cross_normed, cross_attention))
        return x

    def attention_sublayers_last(self, x: Tensor, inputs: LayerInputs) -> Tensor:
        """attention_sublayers() for the last token only, [batch, 1, d_model]: one query, all keys; no cross-attention."""
        cache = None if inputs.cache is None else inputs.cache.attn

        def attention(h: Tensor) -> Tensor:
            q, k, v = self.attn.compute_qkv(h, h, inputs.rotary, cache, inputs.query_scale)
            bias = inputs.bias.last_query() if isinstance(inputs.bias, DistanceBias) else inputs.bias
            out = self.attn.attend_and_project(q[:, :, -1:], k, v, inputs.mask.last_query(), bias)
            return self.hook_attn_out(self.attn_out_norm(out))

        x = self.hook_resid_pre(x)
        last = x[:, -1:]
        if self.norm_order == "post":
            return self.hook_resid_mid(self.attn_norm(last + attention(x)))
        normed = self.hook_attn_normed(self.attn_norm(x))
        after = last + attention(normed)
        if not self.parallel:
            return self.hook_resid_mid(after)
        read = normed[:, -1:] if self.shared_norm else self.mlp_norm(last)
        return after + self.mlp_output(self.hook_mlp_normed(read))

    def mlp_sublayer(self, x: Tensor) -> Tensor:
        """The residual stream after the MLP. Tokens do not interact here, so x may contain any subset of them."""
        return self.hook_resid_post(self.residual(x, self.mlp_norm, self.hook_mlp_normed, self.mlp_output))

    def mlp_output(self, h: Tensor) -> Tensor:
        return self.hook_mlp_out(self.mlp_out_norm(self.mlp(h)))

    def residual(
        self, x: Tensor, norm: nn.Module, hook_normed: nn.Module, sublayer: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """post: norm(x + f(x)); other orders: x + f(norm(x)). In "after" order the only norm is inside f."""
        if self.norm_order == "post":
            return norm(x + sublayer(x))
        return x + sublayer(hook_normed(norm(x)))


def sinusoid_rows(config: ModelConfig) -> Tensor:
    """The sinusoidal position table, [pos, d_embed]. As for learned positions, padding may reserve the first rows."""
    table = sinusoid_table(config.n_ctx + config.position_offset, config.embed_width, config.sinusoid_layout)
    if config.zero_sinusoid is not None:
        table[config.zero_sinusoid : config.zero_sinusoid + 1] = 0
    return table[config.position_offset :].clone()  # a view would keep the padding rows alive


class Embedding(nn.Module):
    """Sum of token, position and token-type embeddings."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.kind, self.has_table = config.position, config.has_position_table
        self.scale, self.offset = config.embed_scale, config.position_offset
        self.mask_token_id = config.token_dropout_id
        width = config.embed_width
        self.token = nn.Embedding(config.vocab_size, width)
        if config.position == "learned":
            self.position = nn.Embedding(config.n_ctx + config.position_offset, width)
        if config.position == "sinusoidal":
            self.sinusoid: Tensor
            self.register_buffer("sinusoid", sinusoid_rows(config), persistent=False)
        self.token_type = nn.Embedding(config.n_token_types, width) if config.n_token_types else None
        self.norm = build_norm(config, width) if config.embed_norm else nn.Identity()
        self.project = nn.Linear(width, config.d_model) if width != config.d_model else None
        axis = "d_model" if self.project is None else "d_embed"
        self.hook_token = HookPoint("batch", "pos", axis)
        if self.has_table:
            self.hook_position = HookPoint("batch", "pos", axis)
        self.hook_embed = HookPoint("batch", "pos", "d_model")

    def forward(self, ids: Tensor, positions: Tensor, type_ids: Tensor | None, keep: Tensor | None = None) -> Tensor:
        """ids [batch, pos], positions [batch or 1, pos] -> [batch, pos, d_model]"""
        x = self.token(ids) * self.scale
        if self.mask_token_id is not None:
            x = self.zero_mask_tokens(x, ids == self.mask_token_id, keep)
        x = self.hook_token(x)
        if self.token_type is not None:
            x = x + self.token_type(torch.zeros_like(ids) if type_ids is None else type_ids)
        if self.has_table:
            x = x + self.hook_position(self.position_embeddings(positions))
        x = self.norm(x)
        return self.hook_embed(x if self.project is None else self.project(x))

    def zero_mask_tokens(self, x: Tensor, masked: Tensor, keep: Tensor | None) -> Tensor:
        """Zeros for mask tokens; the others scaled to the share that was masked in training, 12 % in the code of ESM-2."""
        n = masked.shape[1] if keep is None else keep.sum(-1)
        share = masked.sum(-1) / n  # [batch]
        return x.masked_fill(masked[..., None], 0) * ((1 - 0.15 * 0.8) / (1 - share))[:, None, None]

    def position_embeddings(self, positions: Tensor) -> Tensor:
        """[batch or 1, pos] -> position embeddings [batch or 1, pos, d_model]"""
        if self.kind == "learned":
            return self.position(positions + self.offset)
        return self.sinusoid[positions].to(self.token.weight.dtype)


class StackInputs(NamedTuple):
    """Inputs shared by all layers of a stack in one pass, other than the residual stream."""

    n: int  # tokens in this pass
    n_past: int  # earlier tokens, in the cache
    positions: Tensor  # [batch or 1, pos]
    biases: tuple[DistanceBias | DistanceTable | None, ...]  # one for all layers, or one per layer
    rotaries: tuple[RotaryCosSin | None, RotaryCosSin | None]  # full attention, sliding window
    keep: Tensor | None
    memory: Tensor | None
    memory_mask: MaskRule | None
    cache: Cache | None
    query_scale: Tensor | None  # position-dependent scale of the queries, [batch or 1, 1, pos, 1]
    masks: dict[tuple[bool, int], MaskRule]  # by (is windowed, number of keys), shared between layers


class Stack(nn.Module):
    """Embedding, layers and final norm of an encoder (bidirectional) or a decoder (causal).

    `causal` sets the mask and `decodes` the role. They can differ: a decoder without a causal mask still uses the
    decoder's relative position bias.
    """

    def __init__(self, config: ModelConfig, n_layers: int, *, decodes: bool, causal: bool, cross: bool):
        super().__init__()
        self.config, self.causal = config, causal
        self.frequency_cache: dict[Hashable, tuple[Tensor, float]] = {}
        self.embed = Embedding(config)
        self.blocks = nn.ModuleList(Block(config, layer, cross) for layer in range(n_layers))
        self.norm = build_norm(config, config.d_model, config.final_norm_eps) if config.final_norm else nn.Identity()
        self.hook_positions = HookPoint("batch", "pos")
        if config.position == "rotary":
            self.hook_angles = HookPoint("batch", "pos", "d_rotary/2")
            if config.rotary_base_windowed is not None:
                self.hook_angles_windowed = HookPoint("batch", "pos", "d_rotary/2")
        if config.position == "disentangled":
            self.distances = nn.Embedding(2 * config.distance_span, config.d_model)
            self.distance_norm = build_norm(config, config.d_model) if config.distance_norm else nn.Identity()
        if config.has_relative_bias and not config.relative_per_layer:
            self.relative_bias = RelativeBias(config, bidirectional=not decodes)
        elif config.has_relative_bias:
            self.relative_biases = nn.ModuleList(
                RelativeBias(config, bidirectional=not decodes) for _ in range(n_layers)
            )
        self.hook_final = HookPoint("batch", "pos", "d_model")

    def forward(
        self,
        ids: Tensor,
        type_ids: Tensor | None = None,
        keep: Tensor | None = None,
        memory: Tensor | None = None,
        memory_keep: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """ids [batch, pos] -> [batch, pos, d_model]. `keep` is True for real tokens and False for padding.

        With a cache, `ids` are the new tokens only, and `keep` [batch, key] covers cached and new tokens.
        """
        inputs = self.prepare_inputs(ids, keep, memory, memory_keep, cache)
        x = self.embed(ids, inputs.positions, type_ids, keep)
        for layer in range(len(self.blocks)):
            x = self.run_layer(layer, x, inputs)
        return self.hook_final(self.norm(x))

    def prepare_inputs(
        self,
        ids: Tensor,
        keep: Tensor | None = None,
        memory: Tensor | None = None,
        memory_keep: Tensor | None = None,
        cache: Cache | None = None,
    ) -> StackInputs:
        """Prepare the layer inputs for these tokens; the arguments are those of forward()."""
        n, n_past = ids.shape[1], 0 if cache is None else cache.n_past
        all_positions = self.hook_positions(position_ids(self.config, n_past + n, ids, keep))
        positions = all_positions[:, n_past:] if n_past else all_positions
        biases = self.biases(positions, all_positions)
        rotaries = self.rotary_embeddings(positions, n_past + n)
        memory_mask = None if memory is None else MaskRule(self.config.n_heads, n, memory.shape[1], keep=memory_keep)
        return StackInputs(
            n, n_past, positions, biases, rotaries, keep, memory, memory_mask, cache, self.query_scale(positions), {}
        )

    def run_layer(self, layer: int, x: Tensor, inputs: StackInputs) -> Tensor:
        """The residual stream x [batch, pos, d_model] after one layer."""
        if (pause := between_layers.get()) is not None:
            pause()
        return self.blocks[layer](x, self.layer_inputs(layer, inputs))

    def layer_inputs(self, layer: int, inputs: StackInputs) -> LayerInputs:
        """The inputs of one layer: its mask (windowed or full), rotary embedding and cache."""
        config, n = self.config, inputs.n
        windowed = config.is_windowed(layer)
        cached = None if inputs.cache is None else inputs.cache.layers[layer]
        n_key = n if cached is None else cached.attn.length + n  # windowed caches drop keys outside the window
        mask = inputs.masks.get((windowed, n_key))
        if mask is None:
            mask = inputs.masks[windowed, n_key] = MaskRule(
                config.n_heads,
                n,
                n_key,
                self.causal,
                config.window if windowed else None,
                inputs.keep if inputs.keep is None else inputs.keep[:, -n_key:],
                first_query=n_key - n,
            )
        bias = inputs.biases[layer % len(inputs.biases)]
        if isinstance(bias, DistanceBias) and n_key != inputs.n_past + n:
            bias = bias.last_keys(n_key)
        rotary = inputs.rotaries[windowed] if config.uses_rotary(layer) else None
        return LayerInputs(mask, bias, rotary, inputs.memory, inputs.memory_mask, cached, inputs.query_scale)

    def query_scale(self, positions: Tensor) -> Tensor | None:
        """Position-dependent scale of the queries; None if the model has none."""
        if not self.config.query_growth:
            return None
        steps = (positions.float() / self.config.query_growth_length).floor()
        factors = 1 + self.config.query_growth * (1 + steps).log()
        return factors.to(self.embed.token.weight.dtype)[:, None, :, None]

    def rotary_embeddings(self, positions: Tensor, n_pos: int) -> tuple[RotaryCosSin | None, RotaryCosSin | None]:
        """Rotary (cos, sin) at these positions out of n_pos, for full-attention and for sliding-window layers."""
        if self.config.position != "rotary":
            return None, None
        rotary = self.rotary_embedding(positions, n_pos, self.hook_angles, windowed=False)
        if self.config.rotary_base_windowed is None:
            return rotary, rotary
        return rotary, self.rotary_embedding(positions, n_pos, self.hook_angles_windowed, windowed=True)

    def rotary_embedding(self, positions: Tensor, n_pos: int, hook_angles: HookPoint, windowed: bool) -> RotaryCosSin:
        frequencies, factor = self.frequencies(n_pos, windowed, positions.device)
        angles = hook_angles(positions[..., None].float() * frequencies)  # [batch, pos, d_rotary/2]
        dtype = self.embed.token.weight.dtype
        return (angles.cos() * factor).to(dtype)[:, None], (angles.sin() * factor).to(dtype)[:, None]

    def frequencies(self, n_pos: int, windowed: bool, device: torch.device) -> tuple[Tensor, float]:
        """rotary_frequencies() on the device, cached between passes so that decoding does not wait for a transfer.

        The cache key is the rotary rule itself, so frequencies are never reused after the rule changes, even if
        stacks with different rules share the cache.
        """
        config = self.config  # read once: another thread may replace it
        rule = rotary_rule(config, n_pos, windowed)
        cached = self.frequency_cache.get((rule, device))
        if cached is not None:
            return cached
        with torch.inference_mode(False):  # so that training can use them too
            frequencies, factor = rotary_frequencies(config, n_pos, windowed)
            result = frequencies.to(device), factor
        if rule.n_pos is None:  # otherwise the frequencies depend on the length
            if len(self.frequency_cache) >= MAX_CACHED_FREQUENCIES:
                self.frequency_cache = {}
            self.frequency_cache[rule, device] = result
        return result

    def biases(self, positions: Tensor, key_positions: Tensor) -> tuple[DistanceBias | DistanceTable | None, ...]:
        """The distance bias on the scores, one for all layers or one per layer; None for other position encodings."""
        if self.config.position == "disentangled":
            return (DistanceTable(self.distance_norm(self.distances.weight), positions, key_positions),)
        if self.config.has_relative_bias:
            tables = self.relative_biases if self.config.relative_per_layer else [self.relative_bias]
            return tuple(DistanceBias("relative", positions, key_positions, table) for table in tables)
        if self.config.position == "alibi":
            slopes = alibi_slopes(self.config.n_heads).to(positions.device)
            rule = DistanceBias(
                "alibi", positions, key_positions, lambda distance: -slopes[:, None, None] * distance.abs()[:, None]
            )
            return (rule,)
        return (None,)


class LMHead(nn.Module):
    """Language-modelling head: from the final residual stream to logits."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.scale, self.mlm, self.softcap = config.logit_scale, config.head == "mlm", config.logit_softcap
        if self.mlm:
            self.dense = nn.Linear(config.d_model, config.unembed_width)
            self.activation = build_activation(config.head_activation or config.activation)
            self.norm = build_norm(config, config.unembed_width)
        self.unembed = nn.Linear(config.unembed_width, config.vocab_size, bias=config.head_bias)
        self.hook_logits = HookPoint("batch", "pos", "vocab")

    def forward(self, x: Tensor) -> Tensor:
        """[batch, pos, d_model] -> [batch, pos, vocab]"""
        if self.mlm:
            x = self.norm(self.activation(self.dense(x)))
        logits = self.unembed(x * self.scale)
        return self.hook_logits(logits if self.softcap is None else (logits / self.softcap).tanh() * self.softcap)


class Transformer(nn.Module):
    """The stacks and the LM head that the config specifies."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        self.encoder, self.decoder = None, None
        if n := config.n_encoder_layers:
            self.encoder = Stack(config, n, decodes=False, causal=False, cross=False)
        if n := config.n_decoder_layers:
            self.decoder = Stack(config, n, decodes=True, causal=config.causal, cross=self.encoder is not None)
        self.head = LMHead(config) if config.head != "none" else None
        self.tie()

    def tie(self) -> None:
        """Tie shared weights: both stacks' embeddings, the unembedding if `tied`, and the layers if `shared_layers`."""
        if self.config.shared_layers:
            for stack in self.stacks:
                tie_layers(stack)
        first = self.stacks[0]
        for stack in self.stacks[1:]:
            stack.embed.token = first.embed.token
        if self.config.tied and self.head is not None:
            self.head.unembed.weight = first.embed.token.weight

    @property
    def stacks(self) -> list[Stack]:
        return [stack for stack in (self.encoder, self.decoder) if stack is not None]

    def forward(
        self,
        ids: Tensor,
        target_ids: Tensor | None = None,
        keep: Tensor | None = None,
        target_keep: Tensor | None = None,
        type_ids: Tensor | None = None,
    ) -> Tensor:
        """Logits [batch, pos, vocab]: of the target for an encoder-decoder, otherwise of the text.

        Without an LM head: the final residual stream [batch, pos, d_model].
        """
        x = self.last_residual(ids, target_ids, keep, target_keep, type_ids)
        return x if self.head is None else self.head(x)

    def last_residual(
        self,
        ids: Tensor,
        target_ids: Tensor | None = None,
        keep: Tensor | None = None,
        target_keep: Tensor | None = None,
        type_ids: Tensor | None = None,
    ) -> Tensor:
        """The final residual stream [batch, pos, d_model], so that logits can be computed at selected positions only."""
        if self.encoder is None:
            assert self.decoder is not None
            return self.decoder(ids, keep=keep)
        memory = self.encoder(ids, type_ids, keep)
        if self.decoder is None:
            return memory
        if target_ids is None:
            raise ValueError(
                "an encoder-decoder needs target_ids as well: the text that the decoder has written so far"
            )
        return self.decoder(target_ids, keep=target_keep, memory=memory, memory_keep=keep)


def tie_layers(stack: Stack) -> None:
    """Make every layer of a stack share the weights of the first."""
    for block in stack.blocks[1:]:
        for name, weight in stack.blocks[0].named_parameters():
            module, _, leaf = name.rpartition(".")
            setattr(block.get_submodule(module), leaf, weight)


def to_dtype(model: Transformer, dtype: torch.dtype) -> Transformer:
    """Convert the weights and tables of a model to `dtype` in place (norms: see norm_dtype); tied weights stay tied."""
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(weight.detach().to(norm_dtype(module, dtype)), weight.requires_grad))
        for name, table in module.named_buffers(recurse=False):
            setattr(module, name, table.to(dtype))
    model.tie()
    return model
