"""Which published architectures are computed here: a tiny random model of each, saved and loaded, against transformers.

    python -m benchmarks.coverage             the table of all rows
    python -m benchmarks.coverage glm cohere  the rows with these words in their names

Each model has every parameter moved by noise, so that norms and biases count. A row is at parity when every head's pattern is
within PATTERNS of transformers' eager attention, and every logit within LOGITS, in float32.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import transformers as hf
from torch import Tensor
from transformers.utils import logging

import core
from core.checkpoints import Loaded

VOCAB = 53
LENGTHS = (13, 7)  # of the source and of the target
PATTERNS, LOGITS = 1e-5, 1e-4
NOISE = 0.1

Sizes = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One architecture: its name here, the class of transformers, the sizes of its config, and what is done to the model."""

    name: str
    model: str
    sizes: Sizes
    change: Callable[[Any], None] | None = None


@dataclass(frozen=True)
class Result:
    """The outcome of a row: at parity, refused with a sentence, or computed and different."""

    row: Row
    model_type: str
    pattern: float | None = None  # the largest difference of a weight; None where it was refused
    logit: float | None = None
    sentence: str = ""  # of the refusal, or why there is nothing to compare

    @property
    def at_parity(self) -> bool:
        return self.pattern is not None and self.logit is not None and self.pattern <= PATTERNS and self.logit <= LOGITS


# Sizes are different numbers wherever an architecture lets them be, so that no transposition fits.
BERT: Sizes = {
    "hidden_size": 35,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 41,
    "max_position_embeddings": 37,
    "type_vocab_size": 2,
    "pad_token_id": 1,
}
WIDER: Sizes = BERT | {"hidden_size": 40}  # heads of an even width, which rotary positions need
GPT2: Sizes = {"n_embd": 40, "n_layer": 3, "n_head": 5, "n_positions": 37}
LLAMA: Sizes = {
    "hidden_size": 42,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 10,
    "intermediate_size": 41,
    "max_position_embeddings": 37,
    "pad_token_id": 0,
}
PLAIN: Sizes = {key: value for key, value in LLAMA.items() if key != "head_dim"} | {"hidden_size": 60}
ROPE: Sizes = {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}
WINDOW: Sizes = {"sliding_window": 4}
MIXED: Sizes = WINDOW | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}


def partial(share: float) -> Sizes:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": share}}


BART: Sizes = {
    "d_model": 40,
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
GEMMA: Sizes = LLAMA | WINDOW | {"query_pre_attn_scalar": 11}
MOE: Sizes = {"num_experts_per_tok": 2, "moe_intermediate_size": 23}
MLA: Sizes = {
    "q_lora_rank": 17,
    "kv_lora_rank": 18,
    "qk_nope_head_dim": 6,
    "qk_rope_head_dim": 4,
    "v_head_dim": 7,
    "num_key_value_heads": 6,
}
T5GEMMA: Sizes = GEMMA | {
    "vocab_size": VOCAB,
    "num_hidden_layers": 2,
    "layer_types": ["sliding_attention", "full_attention"],
}
DEBERTA: Sizes = BERT | {
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "max_relative_positions": 16,
    "position_biased_input": False,
    "type_vocab_size": 0,
    "pad_token_id": 0,
}
SPARSE: Sizes = {"num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1, "num_experts": 4}

ENCODERS = (
    Row("BERT", "BertForMaskedLM", BERT),
    Row("RoBERTa", "RobertaForMaskedLM", BERT),
    Row("DistilBERT", "DistilBertForMaskedLM", {"dim": 35, "n_layers": 3, "n_heads": 5, "hidden_dim": 41}),
    Row("XLM-R", "XLMRobertaForMaskedLM", BERT),
    Row("CamemBERT", "CamembertForMaskedLM", BERT),
    Row("ALBERT", "AlbertForMaskedLM", BERT | {"embedding_size": 23}),
    Row("ELECTRA generator", "ElectraForMaskedLM", BERT | {"embedding_size": 23}),
    Row("ELECTRA discriminator", "ElectraModel", BERT | {"embedding_size": 35}),
    Row("DeBERTa", "DebertaForMaskedLM", DEBERTA),
    Row(
        "DeBERTa v2 and v3",
        "DebertaV2ForMaskedLM",
        DEBERTA | {"share_att_key": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm"},
    ),
    Row("MPNet", "MPNetForMaskedLM", BERT),
    Row(
        "ModernBERT",
        "ModernBertForMaskedLM",
        WIDER | {"local_attention": 6, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]},
    ),
    Row("NomicBERT", "NomicBertModel", WIDER | ROPE),
    Row("EuroBERT", "EuroBertForMaskedLM", LLAMA | ROPE),
    Row("ESM-2", "EsmForMaskedLM", WIDER | {"position_embedding_type": "rotary", "mask_token_id": 4}),
    Row("RemBERT", "RemBertForMaskedLM", BERT | {"input_embedding_size": 23, "output_embedding_size": 29}),
    Row("Longformer", "LongformerForMaskedLM", BERT | {"attention_window": 4}),
    Row(
        "MobileBERT",
        "MobileBertForMaskedLM",
        BERT | {"embedding_size": 20, "intra_bottleneck_size": 20, "true_hidden_size": 20, "num_attention_heads": 5},
    ),
    Row("LayoutLM", "LayoutLMForMaskedLM", BERT),
    Row("XLNet", "XLNetLMHeadModel", {"d_model": 40, "n_layer": 3, "n_head": 5, "d_inner": 41}),
)
DECODERS = (
    Row("GPT-2", "GPT2LMHeadModel", GPT2),
    Row("GPT-NeoX", "GPTNeoXForCausalLM", WIDER | partial(0.5)),
    Row(
        "OPT",
        "OPTForCausalLM",
        {
            "hidden_size": 35,
            "num_hidden_layers": 3,
            "num_attention_heads": 5,
            "ffn_dim": 41,
            "word_embed_proj_dim": 35,
            "max_position_embeddings": 37,
        },
    ),
    Row("Phi-3 and Phi-4", "Phi3ForCausalLM", PLAIN | partial(0.6)),
    Row("Llama", "LlamaForCausalLM", LLAMA | ROPE),
    Row("Mistral", "MistralForCausalLM", LLAMA | ROPE | WINDOW),
    Row("Qwen2", "Qwen2ForCausalLM", PLAIN | ROPE),
    Row("Qwen3", "Qwen3ForCausalLM", LLAMA | ROPE),
    Row(
        "Gemma 2 without soft-cap",
        "Gemma2ForCausalLM",
        GEMMA | {"final_logit_softcapping": None, "attn_logit_softcapping": None},
    ),
    Row("Gemma 3 (text)", "Gemma3ForCausalLM", GEMMA | MIXED),
    Row(
        "GPT-Neo",
        "GPTNeoForCausalLM",
        {
            "hidden_size": 35,
            "num_layers": 3,
            "num_heads": 5,
            "intermediate_size": 41,
            "max_position_embeddings": 37,
            "window_size": 4,
            "attention_types": [[["global", "local", "local"], 1]],
        },
    ),
    Row("GPT-J", "GPTJForCausalLM", GPT2 | {"rotary_dim": 4}),
    Row("BLOOM", "BloomForCausalLM", {"hidden_size": 35, "n_layer": 3, "n_head": 5}),
    Row("MPT", "MptForCausalLM", {"d_model": 36, "n_layers": 3, "n_heads": 4, "max_seq_len": 37}),
    Row("Falcon 7B", "FalconForCausalLM", {"hidden_size": 40, "num_hidden_layers": 3, "num_attention_heads": 5}),
    Row(
        "Falcon 40B",
        "FalconForCausalLM",
        {
            "hidden_size": 60,
            "num_hidden_layers": 3,
            "num_attention_heads": 6,
            "num_kv_heads": 3,
            "new_decoder_architecture": True,
        },
    ),
    Row("CodeGen", "CodeGenForCausalLM", GPT2 | {"n_embd": 64, "n_head": 8, "rotary_dim": 4}),
    Row("BigCode", "GPTBigCodeForCausalLM", GPT2),
    Row("StarCoder2", "Starcoder2ForCausalLM", PLAIN | ROPE | WINDOW),
    Row("Phi-1 and Phi-2", "PhiForCausalLM", PLAIN | partial(0.4)),
    Row("PhiMoE", "PhimoeForCausalLM", LLAMA | ROPE | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    Row("Ministral", "MinistralForCausalLM", LLAMA | ROPE | MIXED),
    Row(
        "Ministral 3",
        "Ministral3ForCausalLM",
        LLAMA
        | {
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 100.0,
                "llama_4_scaling_beta": 0.1,
                "original_max_position_embeddings": 5,
            }
        },
    ),
    Row("Mixtral", "MixtralForCausalLM", LLAMA | ROPE | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    Row(
        "Qwen2-MoE",
        "Qwen2MoeForCausalLM",
        PLAIN | ROPE | MOE | {"mlp_only_layers": [1], "num_experts": 5, "shared_expert_intermediate_size": 29},
    ),
    Row("Qwen3-MoE", "Qwen3MoeForCausalLM", LLAMA | ROPE | MOE | {"mlp_only_layers": [1], "num_experts": 5}),
    Row(
        "Qwen3-Next",
        "Qwen3NextForCausalLM",
        LLAMA
        | MOE
        | {
            "num_hidden_layers": 4,
            "num_experts": 5,
            "shared_expert_intermediate_size": 29,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
        },
    ),
    Row(
        "Qwen3.5",
        "Qwen3_5ForCausalLM",
        LLAMA
        | {
            "num_hidden_layers": 4,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
        },
    ),
    Row("Gemma 1", "GemmaForCausalLM", LLAMA | ROPE),
    Row("Gemma 2", "Gemma2ForCausalLM", GEMMA | {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0}),
    Row(
        "Gemma 3n (text)",
        "Gemma3nForCausalLM",
        LLAMA
        | {
            "num_hidden_layers": 5,
            "vocab_size_per_layer_input": 53,
            "hidden_size_per_layer_input": 8,
            "laurel_rank": 4,
            "num_kv_shared_layers": 0,
            "activation_sparsity_pattern": [0.0] * 5,
        },
    ),
    Row("OLMo 1", "OlmoForCausalLM", PLAIN | ROPE),
    Row("OLMo 2", "Olmo2ForCausalLM", PLAIN | ROPE),
    Row("OLMo 3", "Olmo3ForCausalLM", PLAIN | ROPE | MIXED),
    Row("OLMoE", "OlmoeForCausalLM", PLAIN | ROPE | {"num_experts": 5, "num_experts_per_tok": 2}),
    Row(
        "Granite",
        "GraniteForCausalLM",
        PLAIN
        | ROPE
        | {"embedding_multiplier": 1.7, "logits_scaling": 1.3, "residual_multiplier": 0.6, "attention_multiplier": 0.4},
    ),
    Row("SmolLM3", "SmolLM3ForCausalLM", PLAIN | ROPE | {"no_rope_layers": [1, 0, 1]}),
    Row("StableLM", "StableLmForCausalLM", PLAIN | partial(0.4) | {"use_qkv_bias": True}),
    Row("Cohere", "CohereForCausalLM", PLAIN | ROPE | {"logit_scale": 0.3}),
    Row("Cohere 2", "Cohere2ForCausalLM", PLAIN | ROPE | MIXED | {"logit_scale": 0.3}),
    Row(
        "DeepSeek V2",
        "DeepseekV2ForCausalLM",
        PLAIN | MLA | MOE | {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1},
    ),
    Row(
        "DeepSeek V3",
        "DeepseekV3ForCausalLM",
        PLAIN
        | MLA
        | MOE
        | {"n_routed_experts": 4, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1},
    ),
    Row("gpt-oss", "GptOssForCausalLM", LLAMA | MIXED | ROPE | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    Row(
        "Llama 4 (text)",
        "Llama4ForCausalLM",
        LLAMA
        | ROPE
        | {
            "intermediate_size_mlp": 37,
            "num_local_experts": 4,
            "no_rope_layers": [1, 1, 0],
            "attention_chunk_size": 64,
        },
    ),
    Row("GLM", "GlmForCausalLM", LLAMA | partial(0.4)),
    Row("GLM-4", "Glm4ForCausalLM", LLAMA | partial(0.4)),
    Row(
        "GLM-4.5",
        "Glm4MoeForCausalLM",
        LLAMA
        | partial(0.4)
        | MOE
        | {
            "n_routed_experts": 4,
            "n_shared_experts": 1,
            "first_k_dense_replace": 1,
            "use_qk_norm": True,
            "routed_scaling_factor": 1.3,
        },
    ),
    Row(
        "MiniCPM3",
        "MiniCPM3ForCausalLM",
        PLAIN | MLA | ROPE | {"scale_emb": 3, "scale_depth": 1.1, "dim_model_base": 30},
    ),
    Row("EXAONE-4", "Exaone4ForCausalLM", PLAIN | ROPE | MIXED),
    Row("Nemotron", "NemotronForCausalLM", LLAMA | partial(0.4)),
    Row("Helium", "HeliumForCausalLM", PLAIN | ROPE | {"head_dim": 10}),
    Row("Seed-OSS", "SeedOssForCausalLM", LLAMA | ROPE),
    Row("ERNIE-4.5", "Ernie4_5ForCausalLM", LLAMA | ROPE),
    Row("HunYuan", "HunYuanDenseV1ForCausalLM", LLAMA | ROPE),
    Row("Apertus", "ApertusForCausalLM", PLAIN | ROPE),
    Row("nanochat", "NanoChatForCausalLM", PLAIN | ROPE),
    Row("LFM2", "Lfm2ForCausalLM", PLAIN | {"layer_types": ["full_attention", "conv", "full_attention"]}),
    Row(
        "ModernBERT decoder",
        "ModernBertDecoderForCausalLM",
        WIDER | {"local_attention": 6, "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]},
    ),
    Row(
        "XGLM",
        "XGLMForCausalLM",
        {"d_model": 40, "num_layers": 3, "attention_heads": 5, "ffn_dim": 41, "max_position_embeddings": 37},
    ),
    Row("BioGPT", "BioGptForCausalLM", BERT),
    Row("GPT-1", "OpenAIGPTLMHeadModel", GPT2),
    Row("CTRL", "CTRLLMHeadModel", GPT2 | {"dff": 41}),
    Row("Mamba 1", "MambaForCausalLM", {"hidden_size": 40, "num_hidden_layers": 2}),
    Row(
        "Mamba 2",
        "Mamba2ForCausalLM",
        {"hidden_size": 40, "num_hidden_layers": 2, "num_heads": 10, "head_dim": 8, "n_groups": 1},
    ),
    Row(
        "Jamba",
        "JambaForCausalLM",
        PLAIN
        | {
            "num_hidden_layers": 4,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "num_experts": 2,
            "use_mamba_kernels": False,
        },
    ),
    Row(
        "Falcon-H1",
        "FalconH1ForCausalLM",
        PLAIN | {"mamba_d_ssm": 40, "mamba_n_heads": 10, "mamba_d_head": 4, "mamba_n_groups": 1, "mamba_d_state": 8},
    ),
    Row(
        "RWKV",
        "RwkvForCausalLM",
        {"hidden_size": 40, "num_hidden_layers": 2, "context_length": 37, "attention_hidden_size": 40},
    ),
    Row("BERT as decoder", "BertLMHeadModel", BERT | {"is_decoder": True}),
    Row("DiffLlama", "DiffLlamaForCausalLM", PLAIN | ROPE | {"num_key_value_heads": 6}),
)
ENCODER_DECODERS = (
    Row("T5", "T5ForConditionalGeneration", T5),
    Row("FLAN-T5", "T5ForConditionalGeneration", T5 | {"feed_forward_proj": "gated-gelu"}),
    Row("BART", "BartForConditionalGeneration", BART),
    Row("Marian", "MarianMTModel", BART),
    Row("mT5", "MT5ForConditionalGeneration", T5),
    Row("UMT5", "UMT5ForConditionalGeneration", T5),
    Row("LongT5", "LongT5ForConditionalGeneration", T5 | {"local_radius": 4}),
    Row("Switch", "SwitchTransformersForConditionalGeneration", T5 | SPARSE),
    Row("mBART", "MBartForConditionalGeneration", BART),
    Row("Pegasus", "PegasusForConditionalGeneration", BART),
    Row("M2M100 and NLLB", "M2M100ForConditionalGeneration", BART),
    Row(
        "LED",
        "LEDForConditionalGeneration",
        BART | {"max_encoder_position_embeddings": 37, "max_decoder_position_embeddings": 37, "attention_window": 4},
    ),
    Row(
        "ProphetNet",
        "ProphetNetForConditionalGeneration",
        {
            "hidden_size": 40,
            "num_encoder_layers": 3,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": 5,
            "num_decoder_attention_heads": 5,
            "encoder_ffn_dim": 41,
            "decoder_ffn_dim": 41,
            "max_position_embeddings": 37,
            "pad_token_id": 0,
            "decoder_start_token_id": 2,
        },
    ),
    Row("Blenderbot", "BlenderbotForConditionalGeneration", BART),
    Row("FSMT", "FSMTForConditionalGeneration", BART | {"src_vocab_size": VOCAB, "tgt_vocab_size": VOCAB}),
    Row("T5Gemma", "T5GemmaForConditionalGeneration", {"encoder": T5GEMMA, "decoder": T5GEMMA}),
)
ROWS = (*ENCODERS, *DECODERS, *ENCODER_DECODERS)

# The rows that are refused by name; tests hold the table to this.
REFUSED = frozenset(
    (
        "Longformer",
        "MobileBERT",
        "LayoutLM",
        "XLNet",
        "Qwen3-Next",
        "Qwen3.5",
        "Gemma 3n (text)",
        "Llama 4 (text)",
        "LFM2",
        "Mamba 1",
        "Mamba 2",
        "Jamba",
        "Falcon-H1",
        "RWKV",
        "DiffLlama",
        "LongT5",
        "Switch",
        "LED",
        "ProphetNet",
        "FSMT",
        "T5Gemma",
    )
)


def perturb(model: torch.nn.Module, size: float = NOISE) -> None:
    """Move every parameter, and the bias that BART keeps as a buffer. Tables that are computed stay."""
    with torch.no_grad():
        kept = [
            buffer
            for name, buffer in model.named_buffers()
            if name.endswith(("final_logits_bias", "e_score_correction_bias"))
        ]
        for tensor in [*(p for p in model.parameters() if p.requires_grad), *kept]:
            if tensor.is_floating_point():
                tensor.add_(torch.randn_like(tensor) * size)


def made(row: Row) -> Any:
    """The model of a row, in eager attention, with every parameter moved. Raises what transformers raises."""
    kind = getattr(hf, row.model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = kind(config_of(row, kind)).eval()
        if row.change is not None:
            row.change(model)
        perturb(model)
    return model


def config_of(row: Row, kind: Any) -> Any:
    """The config of a row, with its vocabulary."""
    # Configs change what they are given, so that each gets its own.
    sizes = copy.deepcopy({"vocab_size": VOCAB, "bos_token_id": 2, "eos_token_id": 2} | row.sizes)
    if row.name == "FSMT":
        sizes.pop("vocab_size")
    config = kind.config_class(**sizes)
    config._attn_implementation = config._experts_implementation = (
        "eager"  # at birth: some classes do not change it later
    )
    return config


def theirs(model: Any, ids: Tensor, target: Tensor | None) -> tuple[list[Tensor], Tensor]:
    """Patterns [head, query, key] in the order of our records, and what the head says of every position, by transformers."""
    words = {} if target is None else {"decoder_input_ids": target}
    with torch.no_grad():
        out = model(ids, output_attentions=True, **words)
    if target is None:
        maps = [x for x in (out.attentions or ()) if x is not None]
    else:
        maps = list(out.encoder_attentions)
        for own, cross in zip(out.decoder_attentions, out.cross_attentions, strict=True):
            maps += [own, cross]
    scores = out.logits if "logits" in out else out.last_hidden_state
    return [x[0] for x in maps], scores[0]


def ours(loaded: Loaded, ids: Tensor, target: Tensor | None) -> tuple[list[Tensor], Tensor]:
    """The same of a model that was loaded."""
    run = core.trace(loaded, ids=ids[0].tolist(), target_ids=None if target is None else target[0].tolist())
    n = (ids if target is None else target).shape[1]
    last = run.last_residual(torch.arange(n))[0]
    with torch.inference_mode():
        scores = last if loaded.model.head is None else loaded.model.head(last)
    return [record.pattern() for record in run.attention], scores


def difference(mine: list[Tensor], other: list[Tensor]) -> float:
    """The largest; infinite where there are not as many maps, or of other shapes."""
    if [x.shape for x in mine] != [x.shape for x in other]:
        return float("inf")
    return max((a.float() - b.float()).abs().max().item() for a, b in zip(mine, other, strict=True))


def tried(row: Row) -> Result:
    """The outcome of one row."""
    model = made(row)
    model_type = model.config.model_type
    ids = torch.randint(5, VOCAB, (1, LENGTHS[0]), generator=torch.Generator().manual_seed(1))
    other = torch.randint(5, VOCAB, (1, LENGTHS[1]), generator=torch.Generator().manual_seed(2))
    target = other if model.config.is_encoder_decoder else None
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        try:
            loaded = core.load(folder)
        except core.HeadlightError as refusal:
            return Result(row, model_type, sentence=str(refusal).replace(folder, "…"))
        maps, scores = theirs(model, ids, target)
        mine, our_scores = ours(loaded, ids, target)
    return Result(row, model_type, difference(mine, maps), difference([our_scores], [scores]))


def main(words: list[str]) -> None:
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    rows = [row for row in ROWS if not words or any(word.lower() in row.name.lower() for word in words)]
    print(f"{'':26} {'model_type':22} {'pattern':>9} {'logit':>9}")
    found = []
    for row in rows:
        try:
            result = tried(row)
        except Exception as error:  # transformers may lack the class, or not build it at this size
            print(f"{row.name:26} {'':22} not tried: {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        found.append(result)
        if result.pattern is None:
            print(f"{row.name:26} {result.model_type:22} refused: {result.sentence}", flush=True)
        else:
            verdict = "" if result.at_parity else "  differs"
            print(
                f"{row.name:26} {result.model_type:22} {result.pattern:9.1e} {result.logit:9.1e}{verdict}", flush=True
            )
    at_parity = sum(result.at_parity for result in found)
    refused = sum(result.pattern is None for result in found)
    print(f"{at_parity} of {len(rows)} at parity, {refused} refused, {len(rows) - at_parity - refused} neither")


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    main(sys.argv[1:])
