"""Decoders whose MLPs are mixtures of experts."""

from ...errors import CheckpointError
from ..family import Family, Reader, Source, Theirs, flag, number, shown, whole
from ..rotary import rotary_fraction
from .decoders import GATE_UP, LLAMA_FIELDS, LLAMA_FIXED, LLAMA_WEIGHTS, QK_NORM, sliding, window_of

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


_MIXED: dict[str, Reader] = LLAMA_FIELDS | {
    "n_experts": whole("num_experts"),
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
    },
    fixed=_FREE_BIASES | {"out_bias": False, "router": "sigmoid", "router_correction": True},
    requires={"n_group": (1,), "topk_group": (1,)},  # groups of experts of which only some are looked at
    weights=LLAMA_WEIGHTS
    | QK_NORM
    | _QWEN_EXPERTS
    | shared("layers.{i}.mlp.shared_experts")
    | {f"{LAYER}.mlp.correction": "layers.{i}.mlp.gate.e_score_correction_bias"},
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
EXPERTS = (MIXTRAL, QWEN2_MOE, QWEN3_MOE, OLMOE, GLM4_MOE, GPT_OSS)
