"""Tiny models of every published architecture, made and run by transformers, as the judge of ours.

Every parameter is perturbed: fresh norms are ones and fresh biases zeros, so that a wrong table would look right. Sizes
are different primes wherever the architecture lets them be, so that no transposition fits.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from torch import Tensor

N_SOURCE, N_SHORT, N_TARGET, N_TARGET_SHORT = 13, 8, 7, 5
VOCAB = 53

_BERT: dict[str, Any] = dict(
    hidden_size=35, num_hidden_layers=3, num_attention_heads=5, intermediate_size=41, vocab_size=VOCAB
)
_BERT |= dict(max_position_embeddings=37, type_vocab_size=2)
_LLAMA: dict[str, Any] = dict(
    hidden_size=42, num_hidden_layers=3, num_attention_heads=6, intermediate_size=41, vocab_size=VOCAB
)
_LLAMA |= dict(
    max_position_embeddings=37, num_key_value_heads=3, head_dim=10, pad_token_id=0, bos_token_id=1, eos_token_id=2
)
_SEQ2SEQ: dict[str, Any] = dict(
    encoder_layers=3, decoder_layers=2, vocab_size=VOCAB, max_position_embeddings=37, pad_token_id=1
)
_SEQ2SEQ |= dict(encoder_ffn_dim=41, decoder_ffn_dim=41, eos_token_id=2, decoder_start_token_id=2)
_T5: dict[str, Any] = dict(
    d_model=29, d_kv=7, d_ff=41, num_layers=3, num_decoder_layers=2, num_heads=5, vocab_size=VOCAB
)
_T5 |= dict(relative_attention_num_buckets=8, relative_attention_max_distance=11)
_NEOX: dict[str, Any] = dict(
    hidden_size=35, num_hidden_layers=3, num_attention_heads=5, intermediate_size=41, vocab_size=VOCAB
)
_NEOX |= dict(max_position_embeddings=37, bos_token_id=1, eos_token_id=2)
_NEOX |= dict(rope_parameters=dict(rope_type="default", rope_theta=10_000.0, partial_rotary_factor=0.6))
_OPT_IDS: dict[str, Any] = dict(pad_token_id=1, bos_token_id=2, eos_token_id=2)
_GEMMA: dict[str, Any] = _LLAMA | dict(
    sliding_window=4, query_pre_attn_scalar=11, final_logit_softcapping=None, attn_logit_softcapping=None
)


def _rope(**values: Any) -> dict[str, Any]:
    return _LLAMA | dict(rope_parameters=dict(rope_theta=100.0, **values), max_position_embeddings=64)


def _gpt2(**more: Any) -> hf.PreTrainedModel:
    sizes: dict[str, Any] = dict(
        n_embd=35, n_layer=3, n_head=5, n_inner=41, vocab_size=VOCAB, n_positions=37, bos_token_id=1, eos_token_id=2
    )
    return hf.GPT2LMHeadModel(hf.GPT2Config(**(sizes | more)))


def _roberta(cls: Any = None) -> hf.PreTrainedModel:
    return (cls or hf.RobertaForMaskedLM)(hf.RobertaConfig(**_BERT, pad_token_id=1))


def _distilbert() -> hf.PreTrainedModel:
    sizes: dict[str, Any] = dict(
        dim=35, n_layers=3, n_heads=5, hidden_dim=41, vocab_size=VOCAB, max_position_embeddings=37
    )
    return hf.DistilBertForMaskedLM(hf.DistilBertConfig(**sizes))


def _opt(**more: Any) -> hf.PreTrainedModel:
    sizes: dict[str, Any] = dict(
        hidden_size=35, num_hidden_layers=3, num_attention_heads=5, ffn_dim=41, vocab_size=VOCAB, word_embed_proj_dim=35
    )
    return hf.OPTForCausalLM(hf.OPTConfig(**sizes, **_OPT_IDS, max_position_embeddings=37, **more))


def _bart(**more: Any) -> hf.PreTrainedModel:
    heads: dict[str, Any] = dict(d_model=35, encoder_attention_heads=5, decoder_attention_heads=5)
    return hf.BartForConditionalGeneration(hf.BartConfig(**(_SEQ2SEQ | heads | more)))


def _marian() -> hf.PreTrainedModel:
    heads: dict[str, Any] = dict(d_model=42, encoder_attention_heads=6, decoder_attention_heads=6, scale_embedding=True)
    return hf.MarianMTModel(hf.MarianConfig(**_SEQ2SEQ, **heads))


def _t5(untied: bool = False, **more: Any) -> hf.PreTrainedModel:
    model = hf.T5ForConditionalGeneration(hf.T5Config(**_T5, decoder_start_token_id=0, **more))
    if untied:
        model.lm_head.weight = torch.nn.Parameter(torch.randn(VOCAB, _T5["d_model"]) * 0.3)
    return model


def _old_t5(config: dict[str, Any]) -> None:
    """As files of transformers 4 state an untied T5."""
    config["tie_word_embeddings"] = False
    del config["scale_decoder_outputs"]


@dataclass(frozen=True)
class Published:
    make: Callable[[], hf.PreTrainedModel]
    edit: Callable[[dict[str, Any]], Any] = lambda config: None  # what config.json says otherwise
    grows: bool = False  # longer inputs turn by other angles, so padding is no longer free


def _gemma3(**more: Any) -> hf.PreTrainedModel:
    kinds = ["sliding_attention", "full_attention", "sliding_attention"]
    bases: dict[str, Any] = {
        "full_attention": dict(rope_type="linear", factor=3.0, rope_theta=1000.0),
        "sliding_attention": dict(rope_type="default", rope_theta=100.0),
    }
    return hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**_GEMMA, layer_types=kinds, rope_parameters=bases, **more))


def _llama(**more: Any) -> hf.PreTrainedModel:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**(_LLAMA | more)))


def _phi3(**more: Any) -> hf.PreTrainedModel:
    rope: dict[str, Any] = dict(rope_type="default", rope_theta=100.0, partial_rotary_factor=0.6)
    sizes: dict[str, Any] = {k: v for k, v in _LLAMA.items() if k != "head_dim"} | dict(
        hidden_size=60, rope_parameters=rope
    )
    return hf.Phi3ForCausalLM(hf.Phi3Config(**(sizes | more)))


def _neox(**more: Any) -> hf.PreTrainedModel:
    return hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**(_NEOX | more)))


def _qwen2(**more: Any) -> hf.PreTrainedModel:
    return hf.Qwen2ForCausalLM(
        hf.Qwen2Config(**({k: v for k, v in _LLAMA.items() if k != "head_dim"} | dict(hidden_size=60) | more))
    )


PUBLISHED: dict[str, Published] = {
    "gpt2": Published(_gpt2),
    "gpt2 untied, unscaled": Published(
        lambda: _gpt2(tie_word_embeddings=False, scale_attn_weights=False, activation_function="relu")
    ),
    "bert": Published(lambda: hf.BertForMaskedLM(hf.BertConfig(**_BERT))),
    "bert without head": Published(lambda: hf.BertModel(hf.BertConfig(**_BERT))),
    "roberta": Published(_roberta),
    "roberta without head": Published(lambda: _roberta(hf.RobertaModel)),
    "distilbert": Published(_distilbert),
    "llama mha": Published(lambda: _llama(num_key_value_heads=6)),
    "llama gqa": Published(_llama),
    "llama mqa, tied": Published(lambda: _llama(num_key_value_heads=1, tie_word_embeddings=True)),
    "llama biased": Published(lambda: _llama(attention_bias=True, mlp_bias=True)),
    "llama linear": Published(lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**_rope(rope_type="linear", factor=3.0)))),
    "llama dynamic": Published(
        lambda: hf.LlamaForCausalLM(
            hf.LlamaConfig(**(_rope(rope_type="dynamic", factor=3.0) | dict(max_position_embeddings=11)))
        ),
        grows=True,
    ),
    "llama yarn": Published(
        lambda: hf.LlamaForCausalLM(
            hf.LlamaConfig(
                **_rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=2.0, beta_slow=0.5)
            )
        )
    ),
    "llama llama3": Published(
        lambda: hf.LlamaForCausalLM(
            hf.LlamaConfig(
                **_rope(
                    rope_type="llama3",
                    factor=8.0,
                    original_max_position_embeddings=16,
                    low_freq_factor=1.0,
                    high_freq_factor=4.0,
                )
            )
        )
    ),
    "mistral": Published(lambda: hf.MistralForCausalLM(hf.MistralConfig(**_LLAMA, sliding_window=4))),
    "qwen2": Published(_qwen2),
    "qwen2 windowed above": Published(lambda: _qwen2(use_sliding_window=True, sliding_window=4, max_window_layers=2)),
    "qwen3": Published(lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**_LLAMA))),
    "gemma2": Published(lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**_GEMMA))),
    "gemma2 untied": Published(lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**_GEMMA, tie_word_embeddings=False))),
    "gemma3_text": Published(_gemma3),
    "gemma3_text untied": Published(lambda: _gemma3(tie_word_embeddings=False)),
    "phi3": Published(_phi3),
    "phi3 windowed": Published(lambda: _phi3(sliding_window=4)),
    "gpt_neox parallel": Published(_neox),
    "gpt_neox in turn, no bias": Published(lambda: _neox(use_parallel_residual=False, attention_bias=False)),
    "opt": Published(_opt),
    "opt untied": Published(lambda: _opt(tie_word_embeddings=False)),
    "bart": Published(_bart),
    "bart scaled": Published(lambda: _bart(scale_embedding=True, activation_function="relu")),
    "marian": Published(_marian),
    "t5 v1.0": Published(_t5),
    "t5 v1.1": Published(lambda: _t5(untied=True, feed_forward_proj="gated-gelu", tie_word_embeddings=False), _old_t5),
    "t5 v1.1, newer file": Published(
        lambda: _t5(untied=True, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    ),
}


@dataclass(frozen=True, eq=False)
class Run:
    """What transformers computes for one text alone: logits (or the last residual) and a pattern [head, query, key] for each map."""

    source: Tensor  # [1, pos]
    target: Tensor | None
    out: Tensor  # [pos, vocab]
    patterns: dict[str, Tensor] = field(default_factory=dict)  # by the name of our hook point


@dataclass(frozen=True, eq=False)
class Reference:
    folder: Path
    model: hf.PreTrainedModel
    runs: tuple[Run, Run]  # a long text and a short one


def perturb(model: torch.nn.Module, size: float = 0.1) -> None:
    """Move every parameter, and the biases that are kept as buffers; computed tables stay."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * size)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.add_(torch.randn_like(buffer) * size)


@cache
def reference(name: str) -> Reference:
    case = PUBLISHED[name]
    torch.manual_seed(0)
    model = case.make().eval()
    model.set_attn_implementation("eager")
    perturb(model)
    folder = Path(tempfile.mkdtemp(prefix="published-"))
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    case.edit(config)
    (folder / "config.json").write_text(json.dumps(config))
    runs = tuple(run(model, n, m) for n, m in ((N_SOURCE, N_TARGET), (N_SHORT, N_TARGET_SHORT)))
    return Reference(folder, model, (runs[0], runs[1]))


def run(model: hf.PreTrainedModel, n_source: int, n_target: int) -> Run:
    source = torch.randint(3, VOCAB, (1, n_source))
    target = torch.randint(3, VOCAB, (1, n_target)) if model.config.is_encoder_decoder else None
    with torch.no_grad():
        if target is None:
            out = model(source, output_attentions=True)
            stack = "encoder" if "Bert" in type(model).__name__ or "Roberta" in type(model).__name__ else "decoder"
            maps = {(stack, "attn"): out.attentions}
        else:
            out = model(source, decoder_input_ids=target, output_attentions=True)
            maps = {("encoder", "attn"): out.encoder_attentions, ("decoder", "attn"): out.decoder_attentions}
            maps[("decoder", "cross_attn")] = out.cross_attentions
    patterns = {
        f"{stack}.blocks.{i}.{site}.hook_pattern": pattern[0]
        for (stack, site), layers in maps.items()
        for i, pattern in enumerate(layers)
    }
    logits = out.logits if "logits" in out else out.last_hidden_state
    return Run(source, target, logits[0], patterns)
