"""Tensor names: traces of wrappers, quantizers and adapters, and tensors that may be ignored."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import torch

from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..model.transformer import sinusoid_rows
from .bare_names import WRAPPERS, strip_wrappers
from .files import FLOATS, SINGLE, Stored, class_of, listed, quoted

PLACE = "FOLDER"  # stands for the folder in a line of code if its name is unknown

ADAPTER = re.compile(
    r"\.(lora_\w+|base_layer|ia3_l|hada_w\d_\w|lokr_\w+|oft_r|boft_\w+|vera_lambda_\w|modules_to_save)(\.|$)"
)

# Patterns of tensors that quantizers add; more specific ones come first.
QUANTIZED: tuple[tuple[str, str], ...] = (
    (r"\.g_idx$", "gptq"),
    (r"\.qzeros$", "awq"),
    (r"\.qweight$", "gptq"),
    (r"\.weight\.(absmax|quant_map|quant_state\..+|nested_absmax)$", "bitsandbytes"),
    (r"\.(SCB|weight_format)$", "bitsandbytes"),
    (r"\.weight_packed$", "compressed-tensors"),
    (r"_blocks$", "mxfp4"),
    (r"\.W_q$", "hqq"),
    (r"\.(codes|codebooks)$", "aqlm"),
    (r"\.biases$", "mlx"),
    (r"\.weight\._(data|scale)$", "quanto"),
    (r"\.weight_scale(_inv|_2)?$|\.input_scale$|\.activation_scale$", "fp8"),
    (r"\.scales?$", ""),
)
QUANTIZERS = {  # quant_method -> (title, how transformers dequantizes it; "" if it cannot)
    "gptq": ("GPTQ", ""),
    "awq": ("AWQ", ""),
    "bitsandbytes": ("bitsandbytes", "dequantize()"),
    "mxfp4": ("MXFP4", "quantization_config=transformers.Mxfp4Config(dequantize=True)"),
    "fp8": ("FP8", "quantization_config=transformers.FineGrainedFP8Config(dequantize=True)"),
    "compressed-tensors": (
        "compressed-tensors",
        "quantization_config=transformers.CompressedTensorsConfig(run_compressed=False)",
    ),
    "higgs": ("HIGGS", "dequantize()"),
    "aqlm": ("AQLM", ""),
    "hqq": ("HQQ", ""),
    "mlx": ("MLX", ""),
    "quanto": ("Quanto", ""),
}


@dataclass(frozen=True)
class Harmless:
    """Unused tensors that change no number, and the reason."""

    pattern: str
    reason: str
    axes: tuple[int | None, ...] | None = None  # required shape; None: any shape, or any length of an axis

    def fits(self, stored: Stored) -> bool:
        if re.search(self.pattern, stored.name) is None or self.axes is None:
            return re.search(self.pattern, stored.name) is not None
        same_rank = len(stored.shape) == len(self.axes)
        return same_rank and all(axis in (None, n) for axis, n in zip(self.axes, stored.shape, strict=True))


HARMLESS = (
    Harmless(r"(^|\.)position_ids$", "row numbers of the position table, saved by older versions of transformers"),
    Harmless(r"(^|\.)embeddings\.token_type_ids$", "zeros that older versions of transformers saved"),
    Harmless(
        r"(^|\.)rotary_emb(eddings)?\.(original_)?inv_freq$",
        "angles that follow from config.json; transformers ignores them as well",
    ),
    Harmless(r"(^|\.)rotary_emb\.(cos|sin)_cached$", "tables of the same angles"),
    Harmless(
        r"(^|\.)(cross)?(attn|attention)\.bias$",
        "the causal mask of GPT-2 and GPT-NeoX as ones and zeros",
        (1, 1, None, None),
    ),
    Harmless(r"(^|\.)(cross)?(attn|attention)\.masked_bias$", "the score of masked positions before the softmax"),
    Harmless(r"(^|\.)(encoder|decoder)\.version$", "the version number of fairseq's file format"),
    Harmless(r"(^|\.)embed_positions\._float_tensor$", "empty: carries the dtype of a computed table in fairseq"),
    Harmless(
        r"EncDecAttention\.relative_attention_bias\.weight$",
        "in T5's first files; no code reads it, since cross-attention has no distances",
    ),
    Harmless(
        r"^(\w+\.)?pooler\.", "reads the first token after the last layer, so nothing that is shown depends on it"
    ),
    Harmless(r"^(\w+\.)?cls\.seq_relationship\.", "BERT's next-sentence prediction, computed from the pooler"),
    Harmless(
        r"^(pre_classifier|classifier|score|qa_outputs|classification_head|multiple_choice_head|sequence_summary|v_head)\.",
        "a head for one task: it reads the last layer and changes nothing before it",
    ),
)


def reason_harmless(stored: Stored, config: ModelConfig) -> str | None:
    """Reason why an unused tensor changes nothing; None if it may change something."""
    for row in HARMLESS:
        if row.fits(stored):
            return row.reason
    if config.position == "sinusoidal" and re.search(r"(^|\.)embed_positions\.weight$", stored.name):
        table = sinusoid_rows(config)
        like = stored.shape == tuple(table.shape) and stored.dtype in FLOATS
        if like and torch.allclose(stored.read().float(), table, atol=0.01):  # it may be stored in half precision
            return "the sinusoids, which are computed"
    return None


def of_unused(unused: Iterable[str], tensors: Mapping[str, Stored], config: ModelConfig) -> str | None:
    """Notice about tensors that are not used; None if all of them are harmless."""
    names = [name for name in unused if reason_harmless(tensors[name], config) is None]
    if not names:
        return None
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    groups = [group[0] + (f" and {len(group) - 1} like it" if len(group) > 1 else "") for group in alike.values()]
    noun, they_are, them = ("tensor", "It is", "it") if len(names) == 1 else ("tensors", "They are", "them")
    text = (
        f"The weight files hold {len(names)} {noun} that config.json has no place for: {listed(groups)}. "
        f"{they_are} not used, so a program that uses {them} gets other numbers."
    )
    if any(ADAPTER.search(name) for name in names):
        text += (
            " They belong to an adapter that was not merged. In the program that saved it: "
            f"`model.merge_and_unload().save_pretrained({quoted(PLACE)})`."
        )
    elif (method := quantizer_of(names)) is not None:
        title = QUANTIZERS[method][0] if method else "a quantizer"
        text += f" They are what {title} keeps beside rounded weights, which are other numbers without them. Open the model that was rounded."
    return text


def quantizer_of(names: Collection[str]) -> str | None:
    """quant_method of the tensors' quantizer, "" if several are possible, and None if no tensor is a quantizer's."""
    return next((method for pattern, method in QUANTIZED if any(re.search(pattern, name) for name in names)), None)


def quantized(config: Mapping[str, Any], place: str) -> str | None:
    """Why the quantized weights of a config.json are not read; None if it describes plain weights."""
    stated = config.get("quantization_config")
    if not stated and isinstance(config.get("quantization"), dict) and "bits" in config["quantization"]:
        stated = {**config["quantization"], "quant_method": "mlx"}
    if not stated:
        return None
    stated = stated if isinstance(stated, dict) else {}
    four, eight = bool(stated.get("load_in_4bit")), bool(stated.get("load_in_8bit"))
    default = "bitsandbytes" if stated.keys() & {"load_in_4bit", "load_in_8bit"} else ""
    method = str(stated.get("quant_method") or default)
    if method == "bitsandbytes" and not four and not eight:
        return None  # the weights are plain
    bits = 4 if four else 8 if eight else stated.get("bits")
    to = f" to {bits} bits" if isinstance(bits, int) and not isinstance(bits, bool) else ""
    return f"config.json: {rounded(method, to, place, class_of(config))}"


def rounded(method: str, to: str, place: str, model_class: str) -> str:
    """Why quantized weights are not read, and how to convert them."""
    title, how = QUANTIZERS.get(method, (method[:40], ""))
    text = (
        f"the weights are quantized{f' with {title}' if title else ''}{to}, which is not supported: only {', '.join(sorted(FLOATS))} are read. "
        'Open the original model, which a page on the Hub names as its base: `headlight.load("OWNER/NAME")`.'
    )
    if not how:
        return text
    model_class = "AutoModelForCausalLM" if model_class == "AutoModel" else model_class
    out = quoted(f"{PurePosixPath(place).name}-full")
    loaded = (
        f"from_pretrained({quoted(place)}).{how}"
        if how == "dequantize()"
        else f"from_pretrained({quoted(place)}, {how})"
    )
    return (
        f"{text} Or have transformers write the rounded numbers in full, where {title} is installed: "
        f"`import transformers; transformers.{model_class}.{loaded}.save_pretrained({out}); "
        f"transformers.AutoTokenizer.from_pretrained({quoted(place)}).save_pretrained({out})`."
    )


def explain_missing_names(wanted: Sequence[str], prefix: str, tensors: Mapping[str, Stored], place: str) -> str | None:
    """Why a required tensor is missing, if the names of the others show it. `prefix` is that of the family."""
    file = min(stored.file for stored in tensors.values()) if tensors else ""
    if (method := quantizer_of(tensors.keys())) is not None:
        return f"{file}: {rounded(method, '', place, 'AutoModel')}"
    if any(ADAPTER.search(name) for name in tensors):
        return (
            f"{file} holds a model with an adapter in it that was not merged. In the program that saved it: "
            f"`model.merge_and_unload().save_pretrained({quoted(place)})`."
        )
    full = tuple(sorted({*wanted, *(prefix + name for name in wanted)}, key=len, reverse=True))
    wraps = [part for part in WRAPPERS if any(part in name.split(".") for name in tensors)]
    before = _before(full, {strip_wrappers(name, wraps) for name in tensors})
    return (
        None if before is None or not (wraps or before) else f"{file}: {_renaming(full, wraps, before, tensors, place)}"
    )


def _before(full: Sequence[str], names: Collection[str]) -> str | None:
    """Prefix of one of the names `full` in the files; None if no name ends with one of them."""
    matches = (b.removesuffix(name) for name in full for b in sorted(names) if b == name or b.endswith(f".{name}"))
    return next(matches, None)


def _renaming(full: tuple[str, ...], wraps: list[str], before: str, tensors: Iterable[str], place: str) -> str:
    """The wrappers and the prefix in the names of tensors, and code that removes them."""
    renamed = f're.sub(r"\\b({"|".join(wraps)})\\.", "", k)' if wraps else "k"
    renamed += f".removeprefix({quoted(before)})" if before else ""
    whose = " and ".join(WRAPPERS[part] for part in wraps)
    first = next(name for name in tensors if strip_wrappers(name, wraps).endswith(full))
    why = [f"have {listed([f'{part}.' for part in wraps])} in them, from {whose}"] if wraps else []
    why += [f"begin with {before}"] if before else []
    return (
        f"the names of the tensors {', and '.join(why)}, so that {first} is not found as {full[-1]}. Take that out of the names: "
        f"`import glob, re; from safetensors.torch import load_file, save_file; save_file({{{renamed}: v.clone() "
        f"for f in glob.glob({quoted(f'{place}/model*.safetensors')}) for k, v in load_file(f).items()}}, "
        f'{quoted(f"{place}/{SINGLE}")}, {{"format": "pt"}})`.'
    )


def unread_kind(stored: Stored, tensors: Mapping[str, Stored], place: str) -> CheckpointError:
    """Error for a tensor of an unsupported dtype."""
    method = quantizer_of(tensors.keys()) or ("fp8" if stored.dtype.startswith("F8") else "")
    return CheckpointError(
        f"{stored.file}: the tensor {stored.name} is stored as {stored.dtype}; {rounded(method, '', place, 'AutoModel')}"
    )
