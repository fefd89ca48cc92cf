"""Names of tensors: whose wrapper they went through, which quantizer or adapter wrote them, and which of them change nothing."""

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
from .bare_names import WRAPPERS, unwrapped
from .files import FLOATS, SINGLE, Stored
from .unopened import class_of, listed, quoted

PLACE = "FOLDER"  # in a line of code, where the folder's name is not known

ADAPTER = re.compile(
    r"\.(lora_\w+|base_layer|ia3_l|hada_w\d_\w|lokr_\w+|oft_r|boft_\w+|vera_lambda_\w|modules_to_save)(\.|$)"
)

# A quantizer's own tensors. Those of the first rows tell more, so they are looked for first.
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
QUANTIZERS = {  # quant_method -> its name, and how transformers is told to write the numbers out in full
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
    """Tensors without a place here that change no number, and why."""

    pattern: str
    reason: str
    axes: tuple[int | None, ...] | None = None  # the shape that they have; None: any. Of an axis, None: any length

    def fits(self, stored: Stored) -> bool:
        return re.search(self.pattern, stored.name) is not None and (
            self.axes is None
            or (
                len(stored.shape) == len(self.axes)
                and all(axis in (None, n) for axis, n in zip(self.axes, stored.shape, strict=True))
            )
        )


HARMLESS = (
    Harmless(
        r"(^|\.)position_ids$", "0, 1, 2, …: older versions of transformers saved the row numbers of the position table"
    ),
    Harmless(r"(^|\.)embeddings\.token_type_ids$", "zeros that older versions of transformers saved"),
    Harmless(
        r"(^|\.)rotary_emb(eddings)?\.(original_)?inv_freq$",
        "angles that config.json gives; transformers does not read them either",
    ),
    Harmless(r"(^|\.)rotary_emb\.(cos|sin)_cached$", "tables of the same angles"),
    Harmless(
        r"(^|\.)(cross)?(attn|attention)\.bias$",
        "the causal mask as ones and zeros, of GPT-2 and GPT-NeoX",
        (1, 1, None, None),
    ),
    Harmless(
        r"(^|\.)(cross)?(attn|attention)\.masked_bias$",
        "the score that a hidden place had before the softmax, of the same two",
    ),
    Harmless(r"(^|\.)(encoder|decoder)\.version$", "fairseq's number of its file format"),
    Harmless(r"(^|\.)embed_positions\._float_tensor$", "empty: fairseq kept the type of a computed table in it"),
    Harmless(
        r"EncDecAttention\.relative_attention_bias\.weight$",
        "T5's first files have it, and no code reads it: looks at the source know no distance",
    ),
    Harmless(
        r"^(\w+\.)?pooler\.", "reads the first token after the last layer, so nothing that is shown depends on it"
    ),
    Harmless(
        r"^(\w+\.)?cls\.seq_relationship\.", "BERT's guess whether two sentences follow each other, from the pooler"
    ),
    Harmless(
        r"^(pre_classifier|classifier|score|qa_outputs|classification_head|multiple_choice_head|sequence_summary|v_head)\.",
        "a head for one task: it reads the last layer and changes nothing before it",
    ),
)


def reason_harmless(stored: Stored, config: ModelConfig) -> str | None:
    """Why a tensor without a place here changes nothing; None where it may."""
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
    """A sentence about a model whose files hold more than it uses; None where all of that is harmless."""
    names = [name for name in unused if reason_harmless(tensors[name], config) is None]
    if not names:
        return None
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    shown = [group[0] + (f" and {len(group) - 1} like it" if len(group) > 1 else "") for group in alike.values()]
    one = len(names) == 1
    text = (
        f"The weight files hold {len(names)} tensor{'' if one else 's'} that config.json has no place for: {listed(shown)}. "
        f"{'It is' if one else 'They are'} not used, so a program that uses {'it' if one else 'them'} gets other numbers."
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
    """The quantizer that leaves such tensors, "" where any could have; None where none of them is a quantizer's."""
    return next((method for pattern, method in QUANTIZED if any(re.search(pattern, name) for name in names)), None)


def quantized(config: Mapping[str, Any], place: str) -> str | None:
    """Why the weights that a config.json describes are not read; None where it does not say that they are quantized."""
    said = config.get("quantization_config")
    if not said and isinstance(config.get("quantization"), dict) and "bits" in config["quantization"]:
        said = {**config["quantization"], "quant_method": "mlx"}
    if not said:
        return None
    said = said if isinstance(said, dict) else {}
    method = str(said.get("quant_method") or ("bitsandbytes" if said.keys() & {"load_in_4bit", "load_in_8bit"} else ""))
    if method == "bitsandbytes" and not (said.get("load_in_4bit") or said.get("load_in_8bit")):
        return None  # neither is asked for, and the weights are plain
    bits = 4 if said.get("load_in_4bit") else 8 if said.get("load_in_8bit") else said.get("bits")
    to = f" to {bits} bits" if isinstance(bits, int) and not isinstance(bits, bool) else ""
    return f"config.json: {rounded(method, to, place, class_of(config))}"


def rounded(method: str, to: str, place: str, model_class: str) -> str:
    """Why quantized weights are not read, and what to do."""
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


def why_missing(wanted: Sequence[str], prefix: str, tensors: Mapping[str, Stored], place: str) -> str | None:
    """Why the files have no tensor of a name that a family needs, where their other names tell. `prefix` is the family's own."""
    files = sorted({stored.file for stored in tensors.values()})
    if (method := quantizer_of(tensors.keys())) is not None:
        return f"{files[0]}: {rounded(method, '', place, 'AutoModel')}"
    if any(ADAPTER.search(name) for name in tensors):
        return (
            f"{files[0]} holds a model with an adapter in it that was not merged. In the program that saved it: "
            f"`model.merge_and_unload().save_pretrained({quoted(place)})`."
        )
    wraps = [part for part in WRAPPERS if any(part in name.split(".") for name in tensors)]
    bare = {unwrapped(name, wraps) for name in tensors}
    full = tuple(sorted({*wanted, *(prefix + name for name in wanted)}, key=len, reverse=True))
    before = next(
        (b.removesuffix(name) for name in full for b in sorted(bare) if b == name or b.endswith(f".{name}")), None
    )
    if before is None or not (wraps or before):
        return None
    renamed = "k" if not wraps else f're.sub(r"\\b({"|".join(wraps)})\\.", "", k)'
    renamed += f".removeprefix({quoted(before)})" if before else ""
    whose = " and ".join(WRAPPERS[part] for part in wraps)
    first = next(name for name in tensors if unwrapped(name, wraps).endswith(full))
    why = f"have {listed([f'{part}.' for part in wraps])} in them, from {whose}" if wraps else f"begin with {before}"
    why += f", and begin with {before}" if wraps and before else ""
    return (
        f"{files[0]}: the names of the tensors {why}, so that {first} is not found as {full[-1]}. Take that out of the names: "
        f"`import glob, re; from safetensors.torch import load_file, save_file; save_file({{{renamed}: v.clone() "
        f"for f in glob.glob({quoted(f'{place}/model*.safetensors')}) for k, v in load_file(f).items()}}, "
        f'{quoted(f"{place}/{SINGLE}")}, {{"format": "pt"}})`.'
    )


def unread_kind(stored: Stored, tensors: Mapping[str, Stored], place: str) -> CheckpointError:
    """For a tensor whose numbers are of a kind that is not read."""
    method = quantizer_of(tensors.keys()) or ("fp8" if stored.dtype.startswith("F8") else "")
    return CheckpointError(
        f"{stored.file}: the tensor {stored.name} is stored as {stored.dtype}; {rounded(method, '', place, 'AutoModel')}"
    )
