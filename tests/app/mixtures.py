"""Folders of small mixtures of experts that a server can offer: random weights, and the storyteller's tokenizer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
import transformers as hf

import core
from core import checkpoints

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 40,
    "max_position_embeddings": 1200,
}


def mixture(folder: Path, n_experts: int, n_chosen: int, n_layers: int) -> Path:
    """Qwen3-MoE of these sizes, whose second layer has one MLP for all tokens."""
    config = hf.Qwen3MoeConfig(
        vocab_size=core.load("storyteller").config.vocab_size,
        num_hidden_layers=n_layers,
        num_experts=n_experts,
        num_experts_per_tok=n_chosen,
        moe_intermediate_size=16,
        mlp_only_layers=[1],
        norm_topk_prob=True,
        **SIZES,
    )
    return _saved(folder, hf.Qwen3MoeForCausalLM, config)


def unwalked_mixture(folder: Path) -> Path:
    """OLMoE, whose queries are normed at their full width, which no step shows."""
    config = hf.OlmoeConfig(
        vocab_size=core.load("storyteller").config.vocab_size,
        num_hidden_layers=2,
        num_experts=4,
        num_experts_per_tok=2,
        pad_token_id=0,
        **{name: size for name, size in SIZES.items() if name != "head_dim"},
    )
    return _saved(folder, hf.OlmoeForCausalLM, config)


def _saved(folder: Path, kind: Any, config: Any) -> Path:
    there = checkpoints.locate(checkpoints.find("storyteller"), None)[1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = kind(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.15 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    shutil.copy(there / "tokenizer.json", folder)
    return folder
