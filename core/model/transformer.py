"""One transformer, every shape: encoder, decoder, or both, chosen by ModelConfig.

Axes, everywhere in this order:
    batch    texts run together
    head     query heads; kv_head counts the key/value heads they share (fewer than heads: grouped-query attention)
    pos      places in one text; query looks, key is looked at
    d_model  the residual stream     d_head  one head     d_ff  the hidden layer of the MLP     vocab  words
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

MAX_CACHED_FREQUENCIES = 16  # rotary rules whose frequencies a stack keeps


class XIELU(nn.Module):
    """xIELU: α_p x² + βx above zero, α_n (e^min(x, ε) − 1 − x) + βx below it, both α learned (Huang 2024, arXiv:2411.13010)."""

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
        self.hook_pre = HookPoint("batch", "pos", "d_ff", is_public=False)  # what the activation gets
        if self.gate is not None:
            self.hook_pre_linear = HookPoint(
                "batch", "pos", "d_ff", is_public=False
            )  # what the gate is multiplied with
        self.hook_post = HookPoint("batch", "pos", "d_ff")

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            post = self.activation(self.hook_pre(self.up(x)))
        else:
            post = self.activation(self.hook_pre(self.gate(x))) * self.hook_pre_linear(self.up(x))
        return self.down(self.hook_post(post))  # [batch, pos, d_ff] -> [batch, pos, d_model]


class Expert(nn.Module):
    """An MLP of a mixture of experts, which some tokens take: [token, d_model] -> [token, d_model]."""

    def __init__(self, config: ModelConfig, d_ff: int):
        super().__init__()
        self.up = nn.Linear(config.d_model, d_ff, bias=config.mlp_bias)
        self.gate = nn.Linear(config.d_model, d_ff, bias=config.mlp_bias) if config.gated else None
        self.down = nn.Linear(d_ff, config.d_model, bias=config.mlp_bias)
        self.activation, self.limit = build_activation(config.activation), config.expert_limit

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.hidden(x))

    def hidden(self, x: Tensor) -> Tensor:
        """[token, d_model] -> [token, d_ff]: what the last matrix is given."""
        if self.gate is None:
            return self.activation(self.up(x))
        gate, up = self.gate(x), self.up(x)
        if self.limit is not None:
            gate, up = gate.clamp(max=self.limit), up.clamp(-self.limit, self.limit) + 1
        return self.activation(gate) * up


class MixtureOfExperts(nn.Module):
    """Σ over the experts that the router chose of weight · expert(x), for each token (Shazeer et al. 2017, arXiv:1701.06538)."""

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
        self.hook_router = HookPoint("batch", "pos", "expert")  # the score of every expert, before any is chosen

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
        """Scores [..., expert] -> weights and numbers of the chosen experts, each [..., top_k]."""
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
        """Ranks [..., expert] with −∞ for those outside the best groups: by the best expert of each group, with a correction by the
        sum of the best two."""
        groups = ranked.unflatten(-1, (self.n_groups, -1))  # [..., group, expert]
        best = groups.topk(1 if self.correction is None else 2, dim=-1).values.sum(-1)
        kept = torch.zeros_like(best, dtype=torch.bool).scatter(
            -1, best.topk(self.n_chosen_groups, dim=-1).indices, True
        )
        return groups.masked_fill(~kept[..., None], float("-inf")).flatten(-2)

    def route_sparsemixer(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The best expert and the next, each weighed by a softmax of those that are close to it."""
        weights, chosen, left = [], [], scores
        for _ in range(2):
            best, number = left.max(-1, keepdim=True)
            far = (best - scores) / scores.abs().clamp(min=best) > 2 * self.jitter
            weights.append(left.masked_fill(far, float("-inf")).softmax(-1).gather(-1, number))
            chosen.append(number)
            left = left.scatter(-1, number, float("-inf"))
        return torch.cat(weights, -1), torch.cat(chosen, -1)


class LayerInputs(NamedTuple):
    """Inputs of one layer beside the stream."""

    mask: MaskRule
    bias: BiasRule | DistanceTable | None
    rotary: RotaryCosSin | None
    memory: Tensor | None  # [batch, key, d_model]: what cross-attention looks at
    memory_mask: MaskRule | None
    cache: LayerCache | None
    query_scale: Tensor | None = None  # factors of the queries, [batch or 1, 1, pos, 1]


def build_mlp(config: ModelConfig, layer: int) -> nn.Module:
    """The MLP of a layer, or its mixture of experts."""
    if config.has_experts(layer):
        return MixtureOfExperts(config)
    return MLP(config, config.d_dense if config.n_experts else config.d_ff)


class Block(nn.Module):
    """One layer of the residual stream. The sublayers f are attention, cross-attention where there is an encoder, and the MLP.

    in turn   pre: x + f(norm(x))    sandwich: x + norm(f(norm(x)))    after: x + norm(f(x))    post: norm(x + f(x))
    parallel  x + attention(norm(x)) + mlp(norm(x)), with two norms or with one
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
        # In post order a norm's result is the stream itself, which has its own points; in after order a sublayer reads the stream.
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
        """The stream after all in which a token reads others; in parallel order, after everything."""
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
        """attention_sublayers() for the last token alone, [batch, 1, d_model]: one query, and the keys and values of all. Without cross-attention."""
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
        """The stream after the MLP, which is computed for each token by itself, so that some alone may be asked for."""
        return self.hook_resid_post(self.residual(x, self.mlp_norm, self.hook_mlp_normed, self.mlp_output))

    def mlp_output(self, h: Tensor) -> Tensor:
        return self.hook_mlp_out(self.mlp_out_norm(self.mlp(h)))

    def residual(
        self, x: Tensor, norm: nn.Module, hook_normed: nn.Module, sublayer: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """post: norm(x + f(x))     the others: x + f(norm(x)), where after order has no norm but the one within f"""
        if self.norm_order == "post":
            return norm(x + sublayer(x))
        return x + sublayer(hook_normed(norm(x)))


def sinusoid_rows(config: ModelConfig) -> Tensor:
    """The rows of a model's table of sinusoids, [pos, d_embed]: as for learned positions, the first may belong to padding."""
    table = sinusoid_table(config.n_ctx + config.position_offset, config.embed_width, config.sinusoid_layout)
    if config.zero_sinusoid is not None:
        table[config.zero_sinusoid : config.zero_sinusoid + 1] = 0
    return table[config.position_offset :].clone()  # a view would keep the rows of the padding


class Embedding(nn.Module):
    """Token, position and token-type vectors, added."""

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
        """Zeros for masked tokens; the others scaled as if the share of training were masked, which ESM-2's code fixes at 12 %."""
        n = masked.shape[1] if keep is None else keep.sum(-1)
        share = masked.sum(-1) / n  # [batch]
        return x.masked_fill(masked[..., None], 0) * ((1 - 0.15 * 0.8) / (1 - share))[:, None, None]

    def position_embeddings(self, positions: Tensor) -> Tensor:
        """[batch or 1, pos] -> the vectors added there, [batch or 1, pos, d_model]"""
        if self.kind == "learned":
            return self.position(positions + self.offset)
        return self.sinusoid[positions].to(self.token.weight.dtype)


class StackInputs(NamedTuple):
    """Inputs of every layer of a stack in one pass, beside the stream."""

    n: int  # tokens that the pass reads
    n_past: int  # tokens before them, which a cache holds
    positions: Tensor  # [batch or 1, pos]
    biases: tuple[DistanceBias | DistanceTable | None, ...]  # one for all layers, or one for each
    rotaries: tuple[
        RotaryCosSin | None, RotaryCosSin | None
    ]  # of layers that see everything, and of those with a window
    keep: Tensor | None
    memory: Tensor | None
    memory_mask: MaskRule | None
    cache: Cache | None
    query_scale: Tensor | None  # factors of the queries, [batch or 1, 1, pos, 1]
    masks: dict[tuple[bool, int], MaskRule]  # by whether there is a window, and the number of keys: one for many layers


class Stack(nn.Module):
    """Embedding, blocks, final norm: an encoder, which looks both ways, or a decoder, which looks back.

    `causal` says where it looks, `decodes` which of the two it is: the decoder of an encoder-decoder may look both ways,
    and a bias of distance is then a decoder's still.
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
        """ids [batch, pos] -> [batch, pos, d_model]. keep is True where there is a real token, False on padding.

        With a cache, ids are the tokens after those it has seen, and keep [batch, key] speaks of all of them.
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
        """Inputs of the layers beside the stream of these tokens, by the arguments of forward()."""
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
        """The stream x [batch, pos, d_model] after one layer."""
        if (pause := between_layers.get()) is not None:
            pause()
        return self.blocks[layer](x, self.layer_inputs(layer, inputs))

    def layer_inputs(self, layer: int, inputs: StackInputs) -> LayerInputs:
        """The same for one layer: its own mask where it has a window, its own rotary angles and its part of the cache."""
        config, n = self.config, inputs.n
        windowed = config.is_windowed(layer)
        cached = None if inputs.cache is None else inputs.cache.layers[layer]
        n_key = n if cached is None else cached.attn.length + n  # what a window hides for good is not even kept
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
        """By how much queries at these positions are multiplied; None where they are not."""
        if not self.config.query_growth:
            return None
        steps = (positions.float() / self.config.query_growth_length).floor()
        factors = 1 + self.config.query_growth * (1 + steps).log()
        return factors.to(self.embed.token.weight.dtype)[:, None, :, None]

    def rotary_embeddings(self, positions: Tensor, n_pos: int) -> tuple[RotaryCosSin | None, RotaryCosSin | None]:
        """Cosine and sine at these positions of n_pos, for the layers that see everything and for those with a window."""
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
        """rotary_frequencies on the device, where they lie from one pass to the next: a token's pass need not wait for them.

        They are kept by the very rule that they come from, so that a stack that is given another one, or that shares this
        memory with a stack of another one, never turns by what an earlier run left here.
        """
        config = self.config  # read once: another thread may put another one in its place
        rule = rotary_rule(config, n_pos, windowed)
        cached = self.frequency_cache.get((rule, device))
        if cached is not None:
            return cached
        with torch.inference_mode(False):  # so that a training may use them too
            frequencies, factor = rotary_frequencies(config, n_pos, windowed)
            result = frequencies.to(device), factor
        if rule.n_pos is None:  # else the next token turns by others
            if len(self.frequency_cache) >= MAX_CACHED_FREQUENCIES:
                self.frequency_cache = {}
            self.frequency_cache[rule, device] = result
        return result

    def biases(self, positions: Tensor, key_positions: Tensor) -> tuple[DistanceBias | DistanceTable | None, ...]:
        """The bias of distance on the scores of every layer, or of each; None where position enters elsewhere alone."""
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
    """From the last residual to a score for every word."""

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
    """The stacks that the config asks for, and a head unless it asks for none."""

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
        """Share what the config shares: one token table for both stacks, and with the head where `tied`; one layer's weights."""
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
        """Logits [batch, pos, vocab] of the target for encoder-decoders, of the only text otherwise.

        Without a head: the last residual [batch, pos, d_model].
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
        """[batch, pos, d_model]: all of the pass but the head, which may then be asked about a few positions only."""
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
    """Give every layer of a stack the weights of its first."""
    for block in stack.blocks[1:]:
        for name, weight in stack.blocks[0].named_parameters():
            module, _, leaf = name.rpartition(".")
            setattr(block.get_submodule(module), leaf, weight)


def to_dtype(model: Transformer, dtype: torch.dtype) -> Transformer:
    """The same model, its weights and tables in another format, those of norms as norm_dtype says; what is shared stays shared."""
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            setattr(module, name, nn.Parameter(weight.detach().to(norm_dtype(module, dtype)), weight.requires_grad))
        for name, table in module.named_buffers(recurse=False):
            setattr(module, name, table.to(dtype))
    model.tie()
    return model
