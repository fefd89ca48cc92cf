"""Decoders whose MLPs are mixtures of experts, and those with multi-head latent attention."""

import math
from collections.abc import Callable, Sequence

from ...errors import CheckpointError
from ...model.config import ModelConfig
from ..family import (
    Family,
    Reader,
    Source,
    Theirs,
    flag,
    nope_first,
    nope_first_in_halves,
    number,
    rotary_only,
    shown,
    whole,
)
from ..rotary import rope, rotary_fraction, rotary_scaling, unscaled
from .decoders import GATE_UP, LLAMA_FIELDS, LLAMA_FIXED, LLAMA_WEIGHTS, NO_BIAS, QK_NORM, sliding, window_of

Order = Callable[[ModelConfig], Sequence[int]] | None

LAYER = "{stack}.blocks.{i}"
MLP = tuple(f"{LAYER}.mlp.{part}" for part in ("gate", "up", "down"))
_NO_MLP = {row: source for row, source in LLAMA_WEIGHTS.items() if row not in MLP}
_FREE_BIASES = {k: v for k, v in LLAMA_FIXED.items() if not k.endswith("_bias")} | {"mlp_bias": False}


def experts(router: str, one: str, gate: str, up: str, down: str) -> dict[str, str]:
    """The rows of a router and of experts that the files keep one by one, `one` with {e} for the expert."""
    names = {"gate": gate, "up": up, "down": down}
    return {f"{LAYER}.mlp.router": router} | {
        f"{LAYER}.mlp.experts.{{e}}.{ours}": f"{one}.{theirs}" for ours, theirs in names.items()
    }


def shared(where: str) -> dict[str, str]:
    """The rows of an expert that every token takes."""
    return {f"{LAYER}.mlp.shared.{part}": f"{where}.{part}_proj" for part in ("gate", "up", "down")}


_QWEN_EXPERTS = experts("layers.{i}.mlp.gate", "layers.{i}.mlp.experts.{e}", "gate_proj", "up_proj", "down_proj")


def _every(c: Theirs) -> tuple[int, ...]:
    """The layers of one MLP: those in mlp_only_layers, and all but every decoder_sparse_step-th."""
    step, alone = c.int("decoder_sparse_step", 1), c.any("mlp_only_layers", [])
    if not isinstance(alone, list) or any(not isinstance(i, int) for i in alone):
        raise CheckpointError(f"{c.where}: mlp_only_layers is {shown(alone)}, but it must be a list of whole numbers.")
    if step < 1:
        raise CheckpointError(f"{c.where}: decoder_sparse_step is {step}, but it must be at least 1.")
    return tuple(i for i in range(c.int("num_hidden_layers")) if i in alone or (i + 1) % step)


def _first(c: Theirs) -> tuple[int, ...]:
    """The first layers have one MLP."""
    return tuple(range(min(c.int("first_k_dense_replace", 0), c.int("num_hidden_layers"))))


_GROUPS: dict[str, Reader] = {
    "n_expert_groups": lambda c: c.int("n_group", 1),
    "n_groups_per_token": lambda c: c.int("topk_group", c.int("n_group", 1)),
}
_MIXED: dict[str, Reader] = LLAMA_FIELDS | {
    "n_experts": lambda c: c.int("num_experts", None) or c.int("num_local_experts"),
    "n_experts_per_token": whole("num_experts_per_tok"),
    "d_ff": whole("moe_intermediate_size"),
    "d_dense": whole("intermediate_size"),
    "dense_layers": _every,
    "router_normed": flag("norm_topk_prob", False),
}
MIXTRAL = Family(
    model_type="mixtral",
    title="Mixtral",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "n_experts": whole("num_local_experts", 8),
        "n_experts_per_token": whole("num_experts_per_tok", 2),
        "norm_eps": number("rms_norm_eps", 1e-5),
        "window": window_of(None),
    },
    fixed=LLAMA_FIXED,
    weights=_NO_MLP
    | experts("layers.{i}.block_sparse_moe.gate", "layers.{i}.block_sparse_moe.experts.{e}", "w1", "w3", "w2"),
)
QWEN2_MOE = Family(
    model_type="qwen2_moe",
    title="Qwen2-MoE",
    prefix="model.",
    fields=_MIXED | {"qkv_bias": flag("qkv_bias", True), "d_shared": whole("shared_expert_intermediate_size")},
    fixed=_FREE_BIASES | {"out_bias": False, "shared_gate": True},
    requires={"use_sliding_window": (False,)},
    weights=LLAMA_WEIGHTS
    | _QWEN_EXPERTS
    | shared("layers.{i}.mlp.shared_expert")
    | {f"{LAYER}.mlp.shared_gate": "layers.{i}.mlp.shared_expert_gate"},
)
QWEN3_MOE = Family(
    model_type="qwen3_moe",
    title="Qwen3-MoE",
    prefix="model.",
    fields=_MIXED | {"qkv_bias": flag("attention_bias", False), "out_bias": flag("attention_bias", False)},
    fixed=_FREE_BIASES | {"qk_norm": True},
    requires={"use_sliding_window": (False,)},
    weights=LLAMA_WEIGHTS | QK_NORM | _QWEN_EXPERTS,
)
OLMOE = Family(
    model_type="olmoe",
    title="OLMoE",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "n_experts": whole("num_experts", 64),
        "n_experts_per_token": whole("num_experts_per_tok", 8),
        "router_normed": flag("norm_topk_prob", False),
        "norm_eps": number("rms_norm_eps", 1e-5),
        "qkv_bias": flag("attention_bias", False),
        "out_bias": flag("attention_bias", False),
    },
    fixed=_FREE_BIASES | {"qk_norm": True, "qk_norm_place": "full"},
    requires={"clip_qkv": (None,)},
    weights=_NO_MLP | QK_NORM | _QWEN_EXPERTS,
)
GLM4_MOE = Family(
    model_type="glm4_moe",
    title="GLM-4.5",
    prefix="model.",
    fields=_MIXED
    | {
        "n_experts": whole("n_routed_experts", 128),
        "dense_layers": _first,
        "d_shared": lambda c: c.int("n_shared_experts", 1) * c.int("moe_intermediate_size"),
        "router_normed": flag("norm_topk_prob", True),
        "router_scale": number("routed_scaling_factor", 1.0),
        "norm_eps": number("rms_norm_eps", 1e-5),
        "rotary_fraction": rotary_fraction(default=0.5),
        "qkv_bias": flag("attention_bias", False),
        "qk_norm": flag("use_qk_norm", False),
    }
    | _GROUPS,
    fixed=_FREE_BIASES | {"out_bias": False, "router": "sigmoid", "router_correction": True},
    weights=LLAMA_WEIGHTS
    | QK_NORM
    | _QWEN_EXPERTS
    | shared("layers.{i}.mlp.shared_experts")
    | {f"{LAYER}.mlp.correction": "layers.{i}.mlp.gate.e_score_correction_bias"},
)


PHIMOE = Family(
    model_type="phimoe",
    title="Phi-3.5-MoE",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "n_experts": whole("num_local_experts", 16),
        "n_experts_per_token": whole("num_experts_per_tok", 2),
        "router_jitter": number("router_jitter_noise", 0.01),
        "norm_eps": number("rms_norm_eps", 1e-5),
        "window": window_of(None),
        "qkv_bias": flag("attention_bias", False),
        "out_bias": flag("attention_bias", False),
        "head_bias": flag("lm_head_bias", False),
        "rotary_scaling": unscaled,
    },
    fixed=_FREE_BIASES | {"norm": "layer", "router": "sparsemixer"},
    weights=MIXTRAL.weights,
)


def latent_rows(turn: Order, still: Order) -> dict[str, Source | str]:
    """The rows of multi-head latent attention; `turn` and `still` are the orders of a key's and of a query's features."""
    attn = "layers.{i}.self_attn"
    ours = f"{LAYER}.attn"
    return {
        f"{ours}.q_down": f"{attn}.q_a_proj",
        f"{ours}.q_down_norm": f"{attn}.q_a_layernorm",
        f"{ours}.q": Source((f"{attn}.q_b_proj", f"{attn}.q_proj"), order=still),
        f"{ours}.kv_down": Source(f"{attn}.kv_a_proj_with_mqa", fused=("latent", "turned"), part="latent"),
        f"{ours}.k_turned": Source(f"{attn}.kv_a_proj_with_mqa", fused=("latent", "turned"), part="turned", order=turn),
        f"{ours}.kv_down_norm": f"{attn}.kv_a_layernorm",
        f"{ours}.k": Source(f"{attn}.kv_b_proj", fused=("still k", "wide v"), part="still k", by_head=True),
        f"{ours}.v": Source(f"{attn}.kv_b_proj", fused=("still k", "wide v"), part="wide v", by_head=True),
    }


def _d_head(c: Theirs) -> int:
    return c.int("qk_nope_head_dim", 128) + c.int("qk_rope_head_dim", 64)


def _latent_scale(c: Theirs) -> float:
    """1/√d_head, and what yarn asks of it where mscale_all_dim is given."""
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
_DEEPSEEK = (
    _MIXED
    | LATENT
    | {
        "n_experts": whole("n_routed_experts"),
        "dense_layers": _first,
        "d_shared": lambda c: c.int("n_shared_experts", 0) * c.int("moe_intermediate_size"),
        "router_scale": number("routed_scaling_factor", 1.0),
    }
)
_DEEPSEEK_WEIGHTS = (
    _NO_ATTENTION | latent_rows(rotary_only, nope_first) | _QWEN_EXPERTS | shared("layers.{i}.mlp.shared_experts")
)
_LIMITED = "group_limited_greedy"


def _if_limited(read: Reader) -> Reader:
    """A number of groups, where the choice is limited by them."""
    return lambda c: read(c) if c.str("topk_method", "greedy") == _LIMITED else 1


DEEPSEEK_V2 = Family(
    model_type="deepseek_v2",
    title="DeepSeek V2",
    prefix="model.",
    fields={name: read for name, read in _DEEPSEEK.items() if name != "router_normed"}
    | {name: _if_limited(read) for name, read in _GROUPS.items()},
    fixed=LLAMA_FIXED | {"router_normed": False},
    requires={"topk_method": ("greedy", _LIMITED), "attention_bias": (False,), "mlp_bias": (False,)},
    weights=_DEEPSEEK_WEIGHTS,
)
DEEPSEEK_V3 = Family(
    model_type="deepseek_v3",
    title="DeepSeek V3",
    prefix="model.",
    fields=_DEEPSEEK
    | _GROUPS
    | {"router_normed": flag("norm_topk_prob", True), "router_scale": number("routed_scaling_factor", 2.5)},
    fixed=LLAMA_FIXED | {"router": "sigmoid", "router_correction": True},
    requires={"rope_interleave": (True,), "attention_bias": (False,)},
    weights=_DEEPSEEK_WEIGHTS | {f"{LAYER}.mlp.correction": "layers.{i}.mlp.gate.e_score_correction_bias"},
)


def _depth(c: Theirs) -> float:
    """The factor of every sublayer's result."""
    n = max(1, c.int("num_hidden_layers"))
    return c.float("scale_depth", math.sqrt(n)) / math.sqrt(n)


MINICPM3 = Family(
    model_type="minicpm3",
    title="MiniCPM3",
    prefix="model.",
    fields=LLAMA_FIELDS
    | LATENT
    | {
        "norm_eps": number("rms_norm_eps", 1e-5),
        "embed_scale": number("scale_emb", 1.0),
        "logit_scale": lambda c: c.int("dim_model_base", c.int("hidden_size")) / c.int("hidden_size"),
        "tied": flag("tie_word_embeddings", True),
        "rotary_scaling": unscaled,
    },
    fixed=LLAMA_FIXED,
    requires=NO_BIAS,
    weights=_NO_ATTENTION
    | {row: Source(source, times=_depth) for row, source in LLAMA_WEIGHTS.items() if row.endswith((".o", ".down"))}
    | latent_rows(None, nope_first_in_halves),
)


def _windowed(c: Theirs) -> tuple[int, ...]:
    """Every other layer, from the first on, unless the file names the type of each."""
    return sliding(c) if "layer_types" in c else tuple(range(0, c.int("num_hidden_layers"), 2))


_GPT_OSS_EXPERTS = "layers.{i}.mlp.experts"
GPT_OSS = Family(
    model_type="gpt_oss",
    title="gpt-oss",
    prefix="model.",
    fields={name: read for name, read in LLAMA_FIELDS.items() if name != "activation"}
    | {
        "n_experts": whole("num_local_experts", 128),
        "n_experts_per_token": whole("num_experts_per_tok", 4),
        "d_head": whole("head_dim", 64),
        "norm_eps": number("rms_norm_eps", 1e-5),
        "window": window_of(128),
        "windowed_layers": _windowed,
        "qkv_bias": flag("attention_bias", True),
        "out_bias": flag("attention_bias", True),
        "expert_limit": number("swiglu_limit", 7.0),
    },
    # The softmax of the chosen experts alone is that of all, made to sum to 1.
    fixed={
        "position": "rotary",
        "norm": "rms",
        "gated": True,
        "sinks": True,
        "activation": "quick_gelu",
        "router_bias": True,
    },
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
