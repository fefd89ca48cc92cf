"""Tiny models of every published architecture, made and run by transformers: the judge of ours.

Every parameter is perturbed, because fresh norms are ones and fresh biases zeros, so that a wrong table would look right.
Sizes are different primes wherever the architecture lets them be, so that no transposition fits.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from torch import Tensor

from benchmarks import coverage
from benchmarks.coverage import perturb

LENGTHS = ((13, 7), (8, 5))  # source and target of a long text and of a short one
VOCAB = 53

Sizes = dict[str, Any]

GPT2: Sizes = {"n_embd": 35, "n_layer": 3, "n_head": 5, "n_inner": 41, "n_positions": 37, "eos_token_id": 2}
BERT: Sizes = {
    "hidden_size": 35,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 41,
    "max_position_embeddings": 37,
    "type_vocab_size": 2,
}
DISTILBERT: Sizes = {"dim": 35, "n_layers": 3, "n_heads": 5, "hidden_dim": 41, "max_position_embeddings": 37}
LLAMA: Sizes = {
    "hidden_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 10,
    "intermediate_size": 41,
    "max_position_embeddings": 37,
    "pad_token_id": 0,
    "eos_token_id": 2,
}
NO_HEAD_DIM: Sizes = {key: value for key, value in LLAMA.items() if key != "head_dim"} | {"hidden_size": 60}
WINDOW: Sizes = {"sliding_window": 4}
GEMMA: Sizes = LLAMA | WINDOW | {"query_pre_attn_scalar": 11}
GEMMA |= {"final_logit_softcapping": None, "attn_logit_softcapping": None}
GEMMA3: Sizes = GEMMA | {
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "linear", "factor": 3.0, "rope_theta": 1000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
    },
}
PARTIAL: Sizes = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.6}}
NEOX: Sizes = BERT | PARTIAL | {"eos_token_id": 2}
OPT: Sizes = {
    "hidden_size": 35,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "ffn_dim": 41,
    "word_embed_proj_dim": 35,
    "max_position_embeddings": 37,
    "eos_token_id": 2,
}
BART: Sizes = {
    "d_model": 35,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 5,
    "decoder_attention_heads": 5,
    "encoder_ffn_dim": 41,
    "decoder_ffn_dim": 41,
    "max_position_embeddings": 37,
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
MARIAN: Sizes = BART | {
    "d_model": 42,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 6,
    "scale_embedding": True,
}
T5: Sizes = {
    "d_model": 29,
    "d_kv": 7,
    "d_ff": 41,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 5,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 11,
    "decoder_start_token_id": 0,
}
T5_GATED: Sizes = T5 | {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "initializer_factor": 0.5}


def scaled(kind: str, **numbers: float) -> Sizes:
    """A Llama whose rotary angles are stretched; the small base makes them matter within a few tokens."""
    return LLAMA | {
        "rope_parameters": {"rope_type": kind, "rope_theta": 100.0, **numbers},
        "max_position_embeddings": 64,
    }


def without_ties(model: hf.PreTrainedModel) -> None:
    """T5 v1.1 has an unembedding of its own, but a fresh one of transformers 5 is always tied."""
    model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB, T5["d_model"]) * 0.3)


def as_version_4(config: Sizes) -> None:
    """How older files state an untied T5."""
    config["tie_word_embeddings"] = False
    del config["scale_decoder_outputs"]


@dataclass(frozen=True)
class Published:
    """A model class, the sizes of its config, and what is done to the model and to its config.json."""

    model: Any
    sizes: Sizes
    change: Callable[[hf.PreTrainedModel], None] | None = None
    restate: Callable[[Sizes], None] | None = None
    grows: bool = False  # longer inputs turn by other angles, so padding is not free
    row: coverage.Row | None = None  # of the table of all architectures, which then makes the model


PUBLISHED: dict[str, Published] = {
    "gpt2": Published(hf.GPT2LMHeadModel, GPT2),
    "gpt2 untied, unscaled": Published(
        hf.GPT2LMHeadModel,
        GPT2 | {"tie_word_embeddings": False, "scale_attn_weights": False, "activation_function": "relu"},
    ),
    "bert": Published(hf.BertForMaskedLM, BERT),
    "bert without head": Published(hf.BertModel, BERT),
    "roberta": Published(hf.RobertaForMaskedLM, BERT | {"pad_token_id": 1}),
    "roberta without head": Published(hf.RobertaModel, BERT | {"pad_token_id": 1}),
    "distilbert": Published(hf.DistilBertForMaskedLM, DISTILBERT),
    "llama mha": Published(hf.LlamaForCausalLM, LLAMA | {"num_key_value_heads": 6}),
    "llama gqa": Published(hf.LlamaForCausalLM, LLAMA),
    "llama mqa, tied": Published(hf.LlamaForCausalLM, LLAMA | {"num_key_value_heads": 1, "tie_word_embeddings": True}),
    "llama biased": Published(hf.LlamaForCausalLM, LLAMA | {"attention_bias": True, "mlp_bias": True}),
    "internlm3": Published(hf.LlamaForCausalLM, LLAMA, restate=lambda config: config.update(model_type="internlm3")),
    "iquestcoder": Published(
        hf.LlamaForCausalLM, LLAMA, restate=lambda config: config.update(model_type="iquestcoder")
    ),
    "llama linear": Published(hf.LlamaForCausalLM, scaled("linear", factor=3.0)),
    "llama dynamic": Published(
        hf.LlamaForCausalLM, scaled("dynamic", factor=3.0) | {"max_position_embeddings": 11}, grows=True
    ),
    "llama yarn": Published(
        hf.LlamaForCausalLM,
        scaled("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=2.0, beta_slow=0.5),
    ),
    "llama llama3": Published(
        hf.LlamaForCausalLM,
        scaled("llama3", factor=8.0, original_max_position_embeddings=16, low_freq_factor=1.0, high_freq_factor=4.0),
    ),
    "mistral": Published(hf.MistralForCausalLM, LLAMA | WINDOW),
    "qwen2": Published(hf.Qwen2ForCausalLM, NO_HEAD_DIM),
    "qwen2 windowed above": Published(
        hf.Qwen2ForCausalLM, NO_HEAD_DIM | WINDOW | {"use_sliding_window": True, "max_window_layers": 2}
    ),
    "qwen3": Published(hf.Qwen3ForCausalLM, LLAMA),
    "gemma2": Published(hf.Gemma2ForCausalLM, GEMMA),
    "gemma2 untied": Published(hf.Gemma2ForCausalLM, GEMMA | {"tie_word_embeddings": False}),
    "gemma3_text": Published(hf.Gemma3ForCausalLM, GEMMA3),
    "gemma3_text untied": Published(hf.Gemma3ForCausalLM, GEMMA3 | {"tie_word_embeddings": False}),
    "phi3": Published(hf.Phi3ForCausalLM, NO_HEAD_DIM | PARTIAL),
    "phi3 long rope": Published(
        hf.Phi3ForCausalLM,
        NO_HEAD_DIM
        | {
            "original_max_position_embeddings": 9,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 100.0,
                "partial_rotary_factor": 0.6,
                "short_factor": [1.0, 1.1, 1.3],
                "long_factor": [1.5, 2.0, 4.0],
            },
        },
        grows=True,
    ),
    "phi3 windowed": Published(hf.Phi3ForCausalLM, NO_HEAD_DIM | PARTIAL | WINDOW),
    "gpt_neox parallel": Published(hf.GPTNeoXForCausalLM, NEOX),
    "gpt_neox in turn, no bias": Published(
        hf.GPTNeoXForCausalLM, NEOX | {"use_parallel_residual": False, "attention_bias": False}
    ),
    "opt": Published(hf.OPTForCausalLM, OPT),
    "opt untied": Published(hf.OPTForCausalLM, OPT | {"tie_word_embeddings": False}),
    "llama both ways": Published(hf.LlamaForCausalLM, LLAMA | {"is_causal": False}),
    "mistral both ways": Published(hf.MistralForCausalLM, LLAMA | WINDOW | {"is_causal": False}),
    "gemma3_text embedding": Published(
        hf.Gemma3ForCausalLM, GEMMA3 | {"use_bidirectional_attention": True, "sliding_window": 6}
    ),
    "bart": Published(hf.BartForConditionalGeneration, BART),
    "bart scaled": Published(
        hf.BartForConditionalGeneration, BART | {"scale_embedding": True, "activation_function": "relu"}
    ),
    "marian": Published(hf.MarianMTModel, MARIAN),
    "t5 v1.0": Published(hf.T5ForConditionalGeneration, T5),
    "t5 v1.1": Published(hf.T5ForConditionalGeneration, T5_GATED, without_ties, as_version_4),
    "t5 v1.1, newer file": Published(hf.T5ForConditionalGeneration, T5_GATED, without_ties),
}


# Architectures beside the table of 105, which differ in little from one of its rows.
GROUPS = {"n_routed_experts": 8, "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2}


def in_groups(name: str, **sizes: Any) -> coverage.Row:
    """A row of the table with its experts in groups."""
    row = next(row for row in coverage.ROWS if row.name == name)
    return replace(row, name=f"{name} in groups", sizes=row.sizes | GROUPS | sizes)


LEARNED = coverage.DEBERTA | {"relative_attention": False, "position_biased_input": True}
RELATIVES = (
    in_groups("DeepSeek V2", topk_method="group_limited_greedy"),
    in_groups("DeepSeek V3"),
    in_groups("GLM-4.5"),
    coverage.Row("DeBERTa with types", "DebertaForMaskedLM", coverage.DEBERTA | {"type_vocab_size": 2}),
    coverage.Row("DeBERTa of learned positions", "DebertaForMaskedLM", LEARNED),
    coverage.Row("DeBERTa v2 with types", "DebertaV2ForMaskedLM", coverage.DEBERTA | {"type_vocab_size": 2}),
    coverage.Row("DeBERTa v2 of learned positions", "DebertaV2ForMaskedLM", LEARNED),
    coverage.Row("MPT of 6 heads", "MptForCausalLM", {"d_model": 36, "n_layers": 3, "n_heads": 6, "max_seq_len": 37}),
    coverage.Row(
        "ELECTRA generator with relu",
        "ElectraForMaskedLM",
        coverage.BERT | {"embedding_size": 23, "hidden_act": "relu"},
    ),
    coverage.Row(
        "ESM-2 as published",
        "EsmForMaskedLM",
        coverage.WIDER | {"position_embedding_type": "rotary", "mask_token_id": 4, "token_dropout": True},
    ),
    coverage.Row("Arcee", "ArceeForCausalLM", coverage.LLAMA | coverage.ROPE),
    coverage.Row("Jais 2", "Jais2ForCausalLM", coverage.LLAMA | coverage.ROPE),
    coverage.Row(
        "HyperCLOVA X",
        "HyperCLOVAXForCausalLM",
        coverage.PLAIN
        | coverage.ROPE
        | {
            "embedding_multiplier": 1.7,
            "attention_multiplier": 0.21,
            "residual_multiplier": 0.6,
            "logits_scaling": 0.4,
        },
    ),
    coverage.Row("CWM", "CwmForCausalLM", coverage.LLAMA | coverage.ROPE | coverage.MIXED),
    coverage.Row(
        "VaultGemma",
        "VaultGemmaForCausalLM",
        coverage.GEMMA | {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0},
    ),
    coverage.Row("Data2VecText", "Data2VecTextForMaskedLM", coverage.BERT),
    coverage.Row("RoBERTa-PreLayerNorm", "RobertaPreLayerNormForMaskedLM", coverage.BERT),
    coverage.Row("XLM-RoBERTa-XL", "XLMRobertaXLForMaskedLM", coverage.BERT),
    coverage.Row("Megatron-BERT", "MegatronBertForMaskedLM", coverage.BERT),
    coverage.Row("PLBart", "PLBartForConditionalGeneration", BART),
    coverage.Row("MVP", "MvpForConditionalGeneration", BART),
)
COVERED = {
    f"row {row.name}": Published(getattr(hf, row.model), row.sizes, row=row)
    for row in (*coverage.ROWS, *RELATIVES)
    if row.name not in coverage.REFUSED
}
TIED = (
    "Gemma 1",
    "SmolLM3",
    "ERNIE-4.5",
    "Cohere",
    "Cohere 2",
    "StarCoder2",
    "GPT-Neo",
    "BigCode",
    "BLOOM",
    "MPT",
    "Falcon 7B",
)
TIED += ("XGLM", "BioGPT", "GPT-1", "MiniCPM3", "mT5", "UMT5")


def with_own_head(model: Any) -> None:
    """Fresh models of some classes are always tied; published ones may have an unembedding of their own."""
    head = model.get_output_embeddings()
    if head.weight is model.get_input_embeddings().weight:
        head.weight = torch.nn.Parameter(torch.randn_like(head.weight) * 0.3)


for row in coverage.ROWS:
    if row.name in TIED:
        own = replace(row, sizes=row.sizes | {"tie_word_embeddings": False}, change=with_own_head)
        COVERED[f"row {row.name} untied"] = Published(getattr(hf, row.model), own.sizes, row=own)
ENCODERS = {
    getattr(hf, row.model).config_class.model_type
    for row in (*coverage.ENCODERS, *RELATIVES)
    if "MaskedLM" in row.model or row in coverage.ENCODERS
}


@dataclass(frozen=True, eq=False)
class Run:
    """What transformers computes for one text alone."""

    source: Tensor  # [1, pos]
    target: Tensor | None  # [1, pos]
    out: Tensor  # [pos, vocab], or [pos, d_model] without a head
    patterns: dict[str, Tensor]  # [head, query, key], by the name of our hook point


@dataclass(frozen=True, eq=False)
class Reference:
    """A saved model and what it makes of a long text and a short one."""

    folder: Path
    model: hf.PreTrainedModel
    runs: tuple[Run, ...]


@cache
def reference(name: str) -> Reference:
    """Made once for all tests of a process."""
    return made((PUBLISHED | COVERED)[name])


def made(case: Published) -> Reference:
    """A model of this case, saved, with what it makes of the two texts."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if case.row is not None:
            model = coverage.made(case.row)
        else:
            model = case.model(case.model.config_class(**case.sizes, vocab_size=VOCAB, bos_token_id=2)).eval()
            model.set_attn_implementation("eager")
            if case.change is not None:
                case.change(model)
            perturb(model)
        runs = tuple(run(model, n_source, n_target) for n_source, n_target in LENGTHS)
    folder = Path(tempfile.mkdtemp(prefix="published-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    model.save_pretrained(folder)
    if case.restate is not None:
        config = json.loads((folder / "config.json").read_text())
        case.restate(config)
        (folder / "config.json").write_text(json.dumps(config))
    return Reference(folder, model, runs)


def run(model: hf.PreTrainedModel, n_source: int, n_target: int) -> Run:
    """One text of random words through transformers' eager attention."""
    source = torch.randint(3, VOCAB, (1, n_source))
    target = torch.randint(3, VOCAB, (1, n_target)) if model.config.is_encoder_decoder else None
    return judge(model, source, target)


def reads_both_ways(config: Any) -> bool:
    """Whether each token of a model with one stack sees the whole text."""
    encoder = config.model_type in ENCODERS and not getattr(config, "is_decoder", False)
    return (
        encoder or not getattr(config, "is_causal", True) or bool(getattr(config, "use_bidirectional_attention", False))
    )


def judge(model: hf.PreTrainedModel, source: Tensor, target: Tensor | None) -> Run:
    """What transformers makes of one text."""
    words = {} if target is None else {"decoder_input_ids": target}
    with torch.no_grad():
        out = model(source, output_attentions=True, **words)
    if target is None:
        stack = "encoder" if reads_both_ways(model.config) else "decoder"
        maps = {(stack, "attn"): out.attentions}
    else:
        maps = {
            ("encoder", "attn"): out.encoder_attentions,
            ("decoder", "attn"): out.decoder_attentions,
            ("decoder", "cross_attn"): out.cross_attentions,
        }
    patterns = {
        f"{stack}.blocks.{layer}.{site}.hook_pattern": pattern[0]
        for (stack, site), layers in maps.items()
        for layer, pattern in enumerate(layers)
    }
    return Run(source, target, (out.logits if "logits" in out else out.last_hidden_state)[0], patterns)
