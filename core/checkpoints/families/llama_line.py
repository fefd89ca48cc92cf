"""Decoders that came of Llama: rotary positions and a gated MLP, with the norms, biases, windows and multipliers of each."""

from collections.abc import Mapping

from ...errors import CheckpointError
from ..family import Family, Reader, Source, Theirs, activation, flag, in_halves, number, shown, swap_halves, whole
from ..rotary import rope, rotary_base, rotary_fraction, unscaled
from .decoders import GATE_UP, LLAMA_FIELDS, LLAMA_FIXED, LLAMA_WEIGHTS, QK_NORM, sliding, window_of

Row = str | tuple[str, ...] | Source

LAYER = "{stack}.blocks.{i}"
NEIGHBOURS = {  # pairs of neighbours turn together
    f"{LAYER}.attn.q": Source("layers.{i}.self_attn.q_proj", order=in_halves),
    f"{LAYER}.attn.k": Source("layers.{i}.self_attn.k_proj", order=in_halves),
}
AFTER = {  # norms after the sublayers alone
    f"{LAYER}.attn_out_norm": "layers.{i}.post_attention_layernorm",
    f"{LAYER}.mlp_out_norm": "layers.{i}.post_feedforward_layernorm",
}
BEFORE = (f"{LAYER}.attn_norm", f"{LAYER}.mlp_norm")
UNGATED = f"{LAYER}.mlp.gate"
FUSED_GATE_UP = {
    f"{LAYER}.mlp.{part}": Source("layers.{i}.mlp.gate_up_proj", fused=GATE_UP, part=part) for part in GATE_UP
}
FREE_BIASES = {k: v for k, v in LLAMA_FIXED.items() if not k.endswith("_bias")}


def without(rows: Mapping[str, Row], *names: str) -> dict[str, Row]:
    """The rows but these."""
    return {row: source for row, source in rows.items() if row not in names}


def biases(attention: str = "attention_bias", mlp: str = "mlp_bias", default: bool = False) -> dict[str, Reader]:
    return {
        "qkv_bias": flag(attention, default),
        "out_bias": flag(attention, default),
        "mlp_bias": flag(mlp, default),
    }


def patterned(every: int) -> Reader:
    """The layers with a window: those that `layer_types` names, else all but every so many, which the file may state."""

    def read(c: Theirs) -> tuple[int, ...] | None:
        if "sliding_window" not in c and "sliding_window" in c.values:
            return None
        if "layer_types" in c:
            return sliding(c)
        step = c.int("sliding_window_pattern", every)
        if step < 1:
            raise CheckpointError(f"{c.where}: sliding_window_pattern is {step}, but it must be at least 1.")
        return tuple(i for i in range(c.int("num_hidden_layers")) if (i + 1) % step)

    return read


def full_layers(every: int) -> Reader:
    """The layers without a window, which in some models do not turn q and k."""

    def read(c: Theirs) -> tuple[int, ...]:
        windowed = patterned(every)(c)
        return () if windowed is None else tuple(i for i in range(c.int("num_hidden_layers")) if i not in windowed)

    return read


MINISTRAL = Family(
    model_type="ministral",
    title="Ministral",
    prefix="model.",
    fields=LLAMA_FIELDS | {"window": window_of(4096), "windowed_layers": lambda c: _ministral_windowed(c)},
    fixed=LLAMA_FIXED,
    requires={"attention_bias": (False,)},
    weights=LLAMA_WEIGHTS,
)


def _ministral_windowed(c: Theirs) -> tuple[int, ...] | None:
    return sliding(c) if "layer_types" in c and window_of(4096)(c) is not None else None


MINISTRAL3 = Family(
    model_type="ministral3",
    title="Ministral 3",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "norm_eps": number("rms_norm_eps", 1e-5),
        "window": window_of(None),
        "query_growth": lambda c: rope(c).float("llama_4_scaling_beta", 0.0),
        "query_growth_length": lambda c: rope(c).int("original_max_position_embeddings", 1),
    },
    fixed=LLAMA_FIXED,
    weights=LLAMA_WEIGHTS,
)
SEED_OSS = Family(
    model_type="seed_oss",
    title="Seed-OSS",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "d_head": whole("head_dim", 128),
        "qkv_bias": flag("attention_bias", True),
        "out_bias": flag("attention_out_bias", False),
        "mlp_bias": flag("mlp_bias", False),
    },
    fixed=FREE_BIASES,
    weights=LLAMA_WEIGHTS,
)

_MULTIPLIED = {
    f"{LAYER}.attn.o": Source("layers.{i}.self_attn.o_proj", times=number("residual_multiplier", 1.0)),
    f"{LAYER}.mlp.down": Source("layers.{i}.mlp.down_proj", times=number("residual_multiplier", 1.0)),
}


def _inverse(key: str) -> Reader:
    """One over a number that logits are divided by."""

    def read(c: Theirs) -> float:
        value = c.float(key, 1.0)
        if value == 0:
            raise CheckpointError(f"{c.where}: {key} is 0, but logits are divided by it.")
        return 1 / value

    return read


GRANITE = Family(
    model_type="granite",
    title="Granite",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases()
    | {
        "embed_scale": number("embedding_multiplier", 1.0),
        "attn_scale": number("attention_multiplier", 1.0),
        "logit_scale": _inverse("logits_scaling"),
    },
    fixed=FREE_BIASES,
    weights=LLAMA_WEIGHTS | _MULTIPLIED,
)


def _unturned(c: Theirs) -> tuple[int, ...]:
    """no_rope_layers has a 1 for each layer that turns and a 0 for the others; without it every so many do not."""
    n = c.int("num_hidden_layers")
    stated = c.any("no_rope_layers", None)
    if stated is None:
        every = c.int("no_rope_layer_interval", 4)
        return tuple(i for i in range(n) if every and (i + 1) % every == 0)
    if not isinstance(stated, list) or len(stated) != n or any(x not in (0, 1) for x in stated):
        raise CheckpointError(
            f"{c.where}: no_rope_layers is {shown(stated)}, but it must be a list of {n} numbers, 1 for a layer that turns."
        )
    return tuple(i for i, turns in enumerate(stated) if not turns)


SMOLLM3 = Family(
    model_type="smollm3",
    title="SmolLM3",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases()
    | {
        "unturned_layers": _unturned,
        "rotary_base": rotary_base(default=2_000_000.0),
        "tied": flag("tie_word_embeddings", True),
    },
    fixed=FREE_BIASES,
    requires={"use_sliding_window": (False,)},
    weights=LLAMA_WEIGHTS,
)
HELIUM = Family(
    model_type="helium",
    title="Helium",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "d_head": whole("head_dim", 128),
        "norm_eps": number("rms_norm_eps", 1e-8),
        "qkv_bias": flag("attention_bias", False),
        "mlp_bias": flag("mlp_bias", False),
    },
    fixed=FREE_BIASES | {"out_bias": False},
    weights=LLAMA_WEIGHTS | NEIGHBOURS,
)
ERNIE45 = Family(
    model_type="ernie4_5",
    title="ERNIE 4.5",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases("use_bias", "use_bias")
    | {
        "d_head": whole("head_dim", 128),
        "norm_eps": number("rms_norm_eps", 1e-5),
        "tied": flag("tie_word_embeddings", True),
    },
    fixed=FREE_BIASES,
    weights=LLAMA_WEIGHTS | NEIGHBOURS,
)
HUNYUAN = Family(
    model_type="hunyuan_v1_dense",
    title="HunYuan",
    prefix="model.",
    fields=LLAMA_FIELDS | biases() | {"norm_eps": number("rms_norm_eps", 1e-5), "rotary_scaling": unscaled},
    fixed=FREE_BIASES | {"qk_norm": True, "qk_norm_place": "turned"},
    requires={"mlp_bias": (False,)},
    weights=LLAMA_WEIGHTS
    | {
        f"{LAYER}.attn.q_norm": "layers.{i}.self_attn.query_layernorm",
        f"{LAYER}.attn.k_norm": "layers.{i}.self_attn.key_layernorm",
    },
)
_GLM_FIELDS = LLAMA_FIELDS | {
    "d_head": whole("head_dim", 128),
    "norm_eps": number("rms_norm_eps", 1.5625e-07),
    "rotary_fraction": rotary_fraction(default=0.5),
    "qkv_bias": flag("attention_bias", True),
}
_GLM_FIXED = FREE_BIASES | {"out_bias": False, "mlp_bias": False}
_GLM_WEIGHTS = LLAMA_WEIGHTS | NEIGHBOURS | FUSED_GATE_UP
GLM = Family(model_type="glm", title="GLM", prefix="model.", fields=_GLM_FIELDS, fixed=_GLM_FIXED, weights=_GLM_WEIGHTS)
GLM4 = Family(
    model_type="glm4",
    title="GLM-4",
    prefix="model.",
    fields=_GLM_FIELDS,
    fixed=_GLM_FIXED | {"norm_order": "sandwich"},
    weights=_GLM_WEIGHTS
    | {
        f"{LAYER}.attn_out_norm": "layers.{i}.post_self_attn_layernorm",
        f"{LAYER}.mlp_out_norm": "layers.{i}.post_mlp_layernorm",
    },
)

_OLMO_FIELDS = LLAMA_FIELDS | {"qkv_bias": flag("attention_bias", False), "out_bias": flag("attention_bias", False)}
_OLMO_FIXED = FREE_BIASES | {"mlp_bias": False}
OLMO = Family(
    model_type="olmo",
    title="OLMo",
    prefix="model.",
    fields={k: v for k, v in _OLMO_FIELDS.items() if k != "norm_eps"},
    fixed=_OLMO_FIXED | {"norm": "layer", "norm_weight": False, "norm_eps": 1e-5},
    requires={"clip_qkv": (None,)},
    weights=without(LLAMA_WEIGHTS, *BEFORE, "{stack}.norm"),
)
_OLMO2_FIXED = _OLMO_FIXED | {"norm_order": "after", "qk_norm": True, "qk_norm_place": "full"}
_AFTER_WEIGHTS = without(LLAMA_WEIGHTS, *BEFORE) | QK_NORM | AFTER
OLMO2 = Family(
    model_type="olmo2",
    title="OLMo 2",
    prefix="model.",
    fields=_OLMO_FIELDS | {"norm_eps": number("rms_norm_eps", 1e-5)},
    fixed=_OLMO2_FIXED,
    weights=_AFTER_WEIGHTS,
)
OLMO3 = Family(
    model_type="olmo3",
    title="OLMo 3",
    prefix="model.",
    fields=_OLMO_FIELDS
    | {
        "norm_eps": number("rms_norm_eps", 1e-5),
        "window": window_of(4096),
        "windowed_layers": patterned(4),
        "rotary_scaling": unscaled,
    },
    fixed=_OLMO2_FIXED,
    weights=_AFTER_WEIGHTS,
)
EXAONE4 = Family(
    model_type="exaone4",
    title="EXAONE 4",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "norm_eps": number("rms_norm_eps", 1e-5),
        "window": window_of(4096),
        "windowed_layers": patterned(4),
        "unturned_layers": full_layers(4),
    },
    fixed=LLAMA_FIXED | {"norm_order": "after", "qk_norm": True},
    weights=_AFTER_WEIGHTS,
)

_COHERE_FIELDS = LLAMA_FIELDS | {
    "norm_eps": number("layer_norm_eps", 1e-5),
    "logit_scale": number("logit_scale", 0.0625),
    "tied": flag("tie_word_embeddings", True),
    "qkv_bias": flag("attention_bias", False),
    "out_bias": flag("attention_bias", False),
}
_COHERE_FIXED = FREE_BIASES | {
    "norm": "layer",
    "norm_bias": False,
    "mlp_bias": False,
    "parallel": True,
    "shared_norm": True,
}
_COHERE_WEIGHTS = without(LLAMA_WEIGHTS, f"{LAYER}.mlp_norm") | NEIGHBOURS
COHERE = Family(
    model_type="cohere",
    title="Cohere Command",
    prefix="model.",
    fields=_COHERE_FIELDS,
    fixed=_COHERE_FIXED,
    requires={"use_qk_norm": (False,)},
    weights=_COHERE_WEIGHTS,
)
COHERE2 = Family(
    model_type="cohere2",
    title="Cohere Command 2",
    prefix="model.",
    fields=_COHERE_FIELDS
    | {"window": window_of(4096), "windowed_layers": patterned(4), "unturned_layers": full_layers(4)},
    fixed=_COHERE_FIXED,
    weights=_COHERE_WEIGHTS,
)

_STABLE_PARALLEL = flag("use_parallel_residual", False)
STABLELM = Family(
    model_type="stablelm",
    title="StableLM",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "norm_eps": number("layer_norm_eps", 1e-5),
        "rotary_fraction": rotary_fraction(default=0.25),
        "qkv_bias": flag("use_qkv_bias", False),
        "parallel": _STABLE_PARALLEL,
        "shared_norm": _STABLE_PARALLEL,
    },
    fixed=FREE_BIASES | {"norm": "layer", "out_bias": False, "mlp_bias": False},
    requires={"qk_layernorm": (False,)},
    weights=LLAMA_WEIGHTS,
)
NEMOTRON = Family(
    model_type="nemotron",
    title="Nemotron",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases()
    | {
        "norm_eps": number("norm_eps", 1e-5),
        "activation": activation("hidden_act", "relu2"),
        "rotary_fraction": rotary_fraction(default=0.5),
    },
    fixed={"position": "rotary", "norm": "layer"},
    weights=without(LLAMA_WEIGHTS, UNGATED)
    | {
        f"{ours}.weight": Source(f"{theirs}.weight", plus_one=True)
        for ours, theirs in (
            (f"{LAYER}.attn_norm", "layers.{i}.input_layernorm"),
            (f"{LAYER}.mlp_norm", "layers.{i}.post_attention_layernorm"),
            ("{stack}.norm", "norm"),
        )
    },
)
NANOCHAT = Family(
    model_type="nanochat",
    title="nanochat",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "activation": activation("hidden_act", "relu2"),
        "qkv_bias": flag("attention_bias", False),
        "out_bias": flag("attention_bias", False),
        "logit_softcap": lambda c: c.float(
            "final_logit_softcapping", None if "final_logit_softcapping" in c.values else 15.0
        ),
    },
    fixed={
        "position": "rotary",
        "norm": "rms",
        "norm_weight": False,
        "embed_norm": True,
        "mlp_bias": False,
        "qk_norm": True,
        "qk_norm_place": "turned",
    },
    weights=without(LLAMA_WEIGHTS, *BEFORE, "{stack}.norm", UNGATED)
    | {f"{LAYER}.attn.{part}": Source(f"layers.{{i}}.self_attn.{part}_proj", order=swap_halves) for part in ("q", "k")}
    | {f"{LAYER}.mlp.up": "layers.{i}.mlp.fc1", f"{LAYER}.mlp.down": "layers.{i}.mlp.fc2"},
)
APERTUS = Family(
    model_type="apertus",
    title="Apertus",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "norm_eps": number("rms_norm_eps", 1e-5),
        "activation": activation("hidden_act", "xielu"),
        "qkv_bias": flag("attention_bias", False),
        "out_bias": flag("attention_bias", False),
    },
    fixed={"position": "rotary", "norm": "rms", "mlp_bias": False, "qk_norm": True},
    requires={"hidden_act": ("xielu",)},
    weights=without(LLAMA_WEIGHTS, UNGATED)
    | QK_NORM
    | {
        f"{LAYER}.attn_norm": "layers.{i}.attention_layernorm",
        f"{LAYER}.mlp_norm": "layers.{i}.feedforward_layernorm",
        f"{LAYER}.mlp.activation.alpha_p": "layers.{i}.mlp.act_fn.alpha_p",
        f"{LAYER}.mlp.activation.alpha_n": "layers.{i}.mlp.act_fn.alpha_n",
    },
)
STARCODER2 = Family(
    model_type="starcoder2",
    title="StarCoder2",
    prefix="model.",
    fields=LLAMA_FIELDS
    | biases("use_bias", "use_bias", True)
    | {
        "norm_eps": number("norm_epsilon", 1e-5),
        "activation": activation("hidden_act", "gelu_pytorch_tanh"),
        "window": window_of(None),
        "tied": flag("tie_word_embeddings", True),
    },
    fixed={"position": "rotary", "norm": "layer"},
    weights=without(LLAMA_WEIGHTS, UNGATED)
    | {f"{LAYER}.mlp.up": "layers.{i}.mlp.c_fc", f"{LAYER}.mlp.down": "layers.{i}.mlp.c_proj"},
)
PHI = Family(
    model_type="phi",
    title="Phi-1 and Phi-2",
    prefix="model.",
    fields=LLAMA_FIELDS
    | {
        "norm_eps": number("layer_norm_eps", 1e-5),
        "activation": activation("hidden_act", "gelu_new"),
        "rotary_fraction": rotary_fraction(default=0.5),
    },
    fixed={"position": "rotary", "norm": "layer", "parallel": True, "shared_norm": True, "head_bias": True},
    requires={"qk_layernorm": (False,)},
    weights=without(LLAMA_WEIGHTS, UNGATED, f"{LAYER}.mlp_norm")
    | {
        f"{LAYER}.attn.o": "layers.{i}.self_attn.dense",
        f"{LAYER}.mlp.up": "layers.{i}.mlp.fc1",
        f"{LAYER}.mlp.down": "layers.{i}.mlp.fc2",
        "{stack}.norm": "final_layernorm",
    },
)

LLAMA_LINE = (
    MINISTRAL,
    MINISTRAL3,
    APERTUS,
    SEED_OSS,
    GRANITE,
    SMOLLM3,
    HELIUM,
    ERNIE45,
    HUNYUAN,
    GLM,
    GLM4,
    OLMO,
    OLMO2,
    OLMO3,
    EXAONE4,
    COHERE,
    COHERE2,
    STABLELM,
    NEMOTRON,
    NANOCHAT,
    STARCODER2,
    PHI,
)
