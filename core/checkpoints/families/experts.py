"""Decoders with mixtures of experts, and with multi-head latent attention."""

import math
from collections.abc import Callable, Sequence

from ...errors import CheckpointError
from ...model.config import ModelConfig
from ..family import (
    GATE_UP,
    LAYER,
    Reader,
    Row,
    Source,
    SourceConfig,
    flag,
    fused,
    nope_first,
    nope_first_in_halves,
    number,
    rope,
    rotary_fraction,
    rotary_only,
    rotary_scaling,
    shown,
    unscaled,
    whole,
    without,
)
from .decoders import (
    LLAMA_BLOCK,
    LLAMA_FIXED,
    LLAMA_WEIGHTS,
    NO_BIAS,
    QK_NORM,
    attention_biases,
    even_layers,
    llama_like,
    window_of,
)

Order = Callable[[ModelConfig], Sequence[int]] | None

_NO_MLP = without(LLAMA_WEIGHTS, *(f"{LAYER}.mlp.{part}" for part in ("gate", "up", "down")))
_FREE_BIASES = LLAMA_BLOCK | {"mlp_bias": False}
_EPS_1E5 = number("rms_norm_eps", 1e-5)


def experts(router: str, expert: str, gate: str, up: str, down: str) -> dict[str, Row]:
    """Rows of a router and of experts that are stored one by one; `expert` contains {e}."""
    names = {"gate": gate, "up": up, "down": down}
    return {f"{LAYER}.mlp.router": router} | {
        f"{LAYER}.mlp.experts.{{e}}.{ours}": f"{expert}.{theirs}" for ours, theirs in names.items()
    }


def shared(where: str) -> dict[str, Row]:
    """Rows of the expert that processes every token."""
    return {f"{LAYER}.mlp.shared.{part}": f"{where}.{part}_proj" for part in ("gate", "up", "down")}


_QWEN_EXPERTS = experts("layers.{i}.mlp.gate", "layers.{i}.mlp.experts.{e}", "gate_proj", "up_proj", "down_proj")
_SHARED_EXPERTS = shared("layers.{i}.mlp.shared_experts")
_CORRECTION = {f"{LAYER}.mlp.correction": "layers.{i}.mlp.gate.e_score_correction_bias"}


def _qwen_dense(c: SourceConfig) -> tuple[int, ...]:
    """Layers with a dense MLP: those in mlp_only_layers, and all except every decoder_sparse_step-th."""
    step, dense = c.int("decoder_sparse_step", 1), c.any("mlp_only_layers", [])
    if not isinstance(dense, list) or any(not isinstance(i, int) for i in dense):
        raise CheckpointError(f"{c.where}: mlp_only_layers is {shown(dense)}, but it must be a list of whole numbers.")
    if step < 1:
        raise CheckpointError(f"{c.where}: decoder_sparse_step is {step}, but it must be at least 1.")
    return tuple(i for i in range(c.int("num_hidden_layers")) if i in dense or (i + 1) % step)


def _first_dense(c: SourceConfig) -> tuple[int, ...]:
    """The first layers have a dense MLP."""
    return tuple(range(min(c.int("first_k_dense_replace", 0), c.int("num_hidden_layers"))))


def _routing(experts: Reader, per_token: int) -> dict[str, Reader]:
    return {"n_experts": experts, "n_experts_per_token": whole("num_experts_per_tok", per_token)}


_GROUPS: dict[str, Reader] = {
    "n_expert_groups": lambda c: c.int("n_group", 1),
    "n_groups_per_token": lambda c: c.int("topk_group", c.int("n_group", 1)),
}
_MIXED: dict[str, Reader] = {
    "n_experts": lambda c: c.int("num_experts", None) or c.int("num_local_experts"),
    "n_experts_per_token": whole("num_experts_per_tok"),
    "d_ff": whole("moe_intermediate_size"),
    "d_dense": whole("intermediate_size"),
    "dense_layers": _qwen_dense,
    "router_normed": flag("norm_topk_prob", False),
}
MIXTRAL = llama_like(
    "mixtral",
    "Mixtral",
    _routing(whole("num_local_experts", 8), 2) | {"norm_eps": _EPS_1E5, "window": window_of(None)},
    weights=_NO_MLP
    | experts("layers.{i}.block_sparse_moe.gate", "layers.{i}.block_sparse_moe.experts.{e}", "w1", "w3", "w2"),
)
QWEN2_MOE = llama_like(
    "qwen2_moe",
    "Qwen2-MoE",
    _MIXED | {"qkv_bias": flag("qkv_bias", True), "d_shared": whole("shared_expert_intermediate_size")},
    fixed=_FREE_BIASES | {"out_bias": False, "shared_gate": True},
    requires={"use_sliding_window": (False,)},
    weights=LLAMA_WEIGHTS
    | _QWEN_EXPERTS
    | shared("layers.{i}.mlp.shared_expert")
    | {f"{LAYER}.mlp.shared_gate": "layers.{i}.mlp.shared_expert_gate"},
)
QWEN3_MOE = llama_like(
    "qwen3_moe",
    "Qwen3-MoE",
    _MIXED | attention_biases(),
    fixed=_FREE_BIASES | {"qk_norm": True},
    requires={"use_sliding_window": (False,)},
    weights=LLAMA_WEIGHTS | QK_NORM | _QWEN_EXPERTS,
)
OLMOE = llama_like(
    "olmoe",
    "OLMoE",
    _routing(whole("num_experts", 64), 8)
    | attention_biases()
    | {"router_normed": flag("norm_topk_prob", False), "norm_eps": _EPS_1E5},
    fixed=_FREE_BIASES | {"qk_norm": True, "qk_norm_place": "full"},
    requires={"clip_qkv": (None,)},
    weights=_NO_MLP | QK_NORM | _QWEN_EXPERTS,
)
GLM4_MOE = llama_like(
    "glm4_moe",
    "GLM-4.5",
    _MIXED
    | _GROUPS
    | {
        "n_experts": whole("n_routed_experts", 128),
        "dense_layers": _first_dense,
        "d_shared": lambda c: c.int("n_shared_experts", 1) * c.int("moe_intermediate_size"),
        "router_normed": flag("norm_topk_prob", True),
        "router_scale": number("routed_scaling_factor", 1.0),
        "norm_eps": _EPS_1E5,
        "rotary_fraction": rotary_fraction(default=0.5),
        "qkv_bias": flag("attention_bias", False),
        "qk_norm": flag("use_qk_norm", False),
    },
    fixed=_FREE_BIASES | {"out_bias": False, "router": "sigmoid", "router_correction": True},
    weights=LLAMA_WEIGHTS | QK_NORM | _QWEN_EXPERTS | _SHARED_EXPERTS | _CORRECTION,
)
PHIMOE = llama_like(
    "phimoe",
    "Phi-3.5-MoE",
    _routing(whole("num_local_experts", 16), 2)
    | attention_biases()
    | {
        "router_jitter": number("router_jitter_noise", 0.01),
        "norm_eps": _EPS_1E5,
        "window": window_of(None),
        "head_bias": flag("lm_head_bias", False),
        "rotary_scaling": unscaled,
    },
    fixed=_FREE_BIASES | {"norm": "layer", "router": "sparsemixer"},
    weights=MIXTRAL.weights,
)


def latent_rows(key_order: Order, query_order: Order) -> dict[str, Row]:
    """Rows of multi-head latent attention, with the orders of the features of keys and queries."""
    attn, ours = "layers.{i}.self_attn", f"{LAYER}.attn"
    down = fused(ours, f"{attn}.kv_a_proj_with_mqa", ("latent", "turned"))
    up = fused(ours, f"{attn}.kv_b_proj", ("still k", "wide v"), by_head=True)
    return {
        f"{ours}.q_down": f"{attn}.q_a_proj",
        f"{ours}.q_down_norm": f"{attn}.q_a_layernorm",
        f"{ours}.q": Source((f"{attn}.q_b_proj", f"{attn}.q_proj"), order=query_order),
        f"{ours}.kv_down": down[f"{ours}.latent"],
        f"{ours}.k_turned": Source(
            f"{attn}.kv_a_proj_with_mqa", fused=("latent", "turned"), part="turned", order=key_order
        ),
        f"{ours}.kv_down_norm": f"{attn}.kv_a_layernorm",
        f"{ours}.k": up[f"{ours}.still k"],
        f"{ours}.v": up[f"{ours}.wide v"],
    }


def _d_head(c: SourceConfig) -> int:
    return c.int("qk_nope_head_dim", 128) + c.int("qk_rope_head_dim", 64)


def _latent_scale(c: SourceConfig) -> float:
    """1/√d_head, multiplied by yarn's factor if mscale_all_dim is given."""
    scale, stated = _d_head(c) ** -0.5, rope(c)
    if (weight := stated.float("mscale_all_dim", None)) and rotary_scaling(c) is not None:
        factor = stated.float("factor", 1.0)
        scale *= (0.1 * weight * math.log(factor) + 1.0) ** 2 if factor > 1 else 1.0
    return scale


LATENT: dict[str, Reader] = {
    "n_kv_heads": lambda c: 0,
    "d_head": _d_head,
    "d_v": whole("v_head_dim", 128),
    "kv_rank": whole("kv_lora_rank", 512),
    "q_rank": whole("q_lora_rank", 0),
    "rotary_fraction": lambda c: (c.int("qk_rope_head_dim", 64) + 1e-6) / max(1, _d_head(c)),
    "attn_scale": _latent_scale,
}
_NO_ATTENTION = {row: source for row, source in LLAMA_WEIGHTS.items() if ".attn." not in row or row.endswith(".attn.o")}
_DEEPSEEK: dict[str, Reader] = (
    _MIXED
    | LATENT
    | {
        "n_experts": whole("n_routed_experts"),
        "dense_layers": _first_dense,
        "d_shared": lambda c: c.int("n_shared_experts", 0) * c.int("moe_intermediate_size"),
        "router_scale": number("routed_scaling_factor", 1.0),
    }
)
_DEEPSEEK_WEIGHTS = _NO_ATTENTION | latent_rows(rotary_only, nope_first) | _QWEN_EXPERTS | _SHARED_EXPERTS
_LIMITED = "group_limited_greedy"


def _if_limited(read: Reader) -> Reader:
    """A number of groups; 1 unless the routing is limited to groups."""
    return lambda c: read(c) if c.str("topk_method", "greedy") == _LIMITED else 1


DEEPSEEK_V2 = llama_like(
    "deepseek_v2",
    "DeepSeek V2",
    without(_DEEPSEEK, "router_normed") | {name: _if_limited(read) for name, read in _GROUPS.items()},
    fixed=LLAMA_FIXED | {"router_normed": False},
    requires=NO_BIAS | {"topk_method": ("greedy", _LIMITED)},
    weights=_DEEPSEEK_WEIGHTS,
)
DEEPSEEK_V3 = llama_like(
    "deepseek_v3",
    "DeepSeek V3",
    _DEEPSEEK
    | _GROUPS
    | {"router_normed": flag("norm_topk_prob", True), "router_scale": number("routed_scaling_factor", 2.5)},
    fixed=LLAMA_FIXED | {"router": "sigmoid", "router_correction": True},
    requires={"rope_interleave": (True,), "attention_bias": (False,)},
    weights=_DEEPSEEK_WEIGHTS | _CORRECTION,
)


def _depth(c: SourceConfig) -> float:
    """Factor of every sublayer's output."""
    n = max(1, c.int("num_hidden_layers"))
    return c.float("scale_depth", math.sqrt(n)) / math.sqrt(n)


MINICPM3 = llama_like(
    "minicpm3",
    "MiniCPM3",
    LATENT
    | {
        "norm_eps": _EPS_1E5,
        "embed_scale": number("scale_emb", 1.0),
        "logit_scale": lambda c: c.int("dim_model_base", c.int("hidden_size")) / c.int("hidden_size"),
        "tied": flag("tie_word_embeddings", True),
        "rotary_scaling": unscaled,
    },
    requires=NO_BIAS,
    weights=_NO_ATTENTION
    | {f"{LAYER}.{row}": Source(str(LLAMA_WEIGHTS[f"{LAYER}.{row}"]), times=_depth) for row in ("attn.o", "mlp.down")}
    | latent_rows(None, nope_first_in_halves),
)

_GPT_OSS_EXPERTS = "layers.{i}.mlp.experts"
GPT_OSS = llama_like(
    "gpt_oss",
    "gpt-oss",
    _routing(whole("num_local_experts", 128), 4)
    | attention_biases(default=True)
    | {
        "d_head": whole("head_dim", 64),
        "norm_eps": _EPS_1E5,
        "window": window_of(128),
        "windowed_layers": even_layers,
        "expert_limit": number("swiglu_limit", 7.0),
    },
    left_out=["activation"],
    # A softmax over the chosen experts equals that over all, normalised to a sum of 1.
    fixed=LLAMA_BLOCK | {"sinks": True, "activation": "quick_gelu", "router_bias": True},
    requires={"swiglu_alpha": (1.702,)},
    weights=_NO_MLP
    | {
        f"{LAYER}.attn.sinks": "layers.{i}.self_attn.sinks",
        f"{LAYER}.mlp.router": "layers.{i}.mlp.router",
        f"{LAYER}.mlp.experts.{{e}}.down.weight": Source(f"{_GPT_OSS_EXPERTS}.down_proj", expert=0, transpose=True),
        f"{LAYER}.mlp.experts.{{e}}.down.bias": Source(f"{_GPT_OSS_EXPERTS}.down_proj_bias", expert=0),
    }
    | {
        f"{LAYER}.mlp.experts.{{e}}.{part}.{leaf}": Source(
            f"{_GPT_OSS_EXPERTS}.gate_up_proj{end}",
            expert=0,
            transpose=leaf == "weight",
            fused=GATE_UP,
            part=part,
            alternate=True,
        )
        for part in GATE_UP
        for leaf, end in (("weight", ""), ("bias", "_bias"))
    },
)
EXPERTS = (MIXTRAL, QWEN2_MOE, QWEN3_MOE, OLMOE, GLM4_MOE, PHIMOE, DEEPSEEK_V2, DEEPSEEK_V3, MINICPM3, GPT_OSS)
