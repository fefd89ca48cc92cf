"""Every family that can be loaded, by the model_type of its config.json."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..family import Family
from .decoders import DECODERS
from .encoder_decoders import ENCODER_DECODERS
from .encoders import DEBERTAS, ENCODERS
from .experts import EXPERTS
from .gpt_like import GPT_LINE
from .llama_like import LLAMA_LINE

# Defaults of the published classes for keys that a config.json may leave out. `rope_parameters` applies only to files that have
# neither rope_parameters nor rope_scaling. tests/core/test_defaults.py compares every class with transformers.
DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "apertus": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 12_000_000.0,
            "factor": 8.0,
            "original_max_position_embeddings": 8192,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
        },
        "rope_theta": 12_000_000.0,
    },
    "cohere": {"rope_theta": 500_000.0},
    "cwm": {"num_key_value_heads": 8},
    "ernie4_5": {"num_key_value_heads": 2, "rope_theta": 500_000.0},
    "gemma2": {"num_key_value_heads": 4},
    "gemma3_text": {"num_key_value_heads": 4},
    "glm": {"num_key_value_heads": 2},
    "glm4": {"num_key_value_heads": 2},
    "gpt_oss": {
        "num_key_value_heads": 8,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 150_000.0,
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
        "rope_theta": 150_000.0,
    },
    "helium": {"rope_theta": 100_000.0},
    "m2m_100": {"scale_embedding": True},
    "minicpm3": {
        "q_lora_rank": 768,
        "kv_lora_rank": 256,
        "qk_nope_head_dim": 64,
        "qk_rope_head_dim": 32,
        "v_head_dim": 64,
        "scale_emb": 12,
        "scale_depth": 1.4,
        "dim_model_base": 256,
    },
    "ministral": {"num_key_value_heads": 8},
    "ministral3": {
        "num_key_value_heads": 8,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1_000_000.0,
            "factor": 16.0,
            "original_max_position_embeddings": 16384,
            "max_position_embeddings": 262_144,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale_all_dim": 1.0,
            "mscale": 1.0,
            "llama_4_scaling_beta": 0.1,
        },
    },
    "deepseek_v3": {
        "n_shared_experts": 1,
        "q_lora_rank": 1536,
        "n_group": 8,
        "topk_group": 4,
        "first_k_dense_replace": 3,
    },
    "mistral": {"num_key_value_heads": 8},
    "mixtral": {"num_key_value_heads": 8, "rope_theta": 1_000_000.0},
    "nomic_bert": {"rope_theta": 1000.0},
    "olmo3": {"rope_theta": 500_000.0},
    "phi3": {"rms_norm_eps": 1e-5},
    "phimoe": {"num_key_value_heads": 8, "rope_theta": 1_000_000.0},
    "qwen3_moe": {"num_key_value_heads": 4},
    "seed_oss": {"num_key_value_heads": 8},
    "smollm3": {"num_key_value_heads": 4},
    "starcoder2": {"num_key_value_heads": 2},
    "vaultgemma": {"num_key_value_heads": 4},
    "xlm-roberta-xl": {"layer_norm_eps": 1e-5},
}
FAMILIES: dict[str, Family] = {
    family.model_type: replace(family, defaults=DEFAULTS.get(family.model_type, {}))
    for family in (*ENCODERS, *DEBERTAS, *DECODERS, *LLAMA_LINE, *GPT_LINE, *EXPERTS, *ENCODER_DECODERS)
}
