"""Files of a checkpoint: strict JSON, safetensors headers, tensors read on demand, and tensor names. Never a pickle."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import CheckpointError
from ..model.config import ModelConfig
from ..model.transformer import sinusoid_rows
from .family import shown

Progress = Callable[[str, int, int], None]  # (file name, bytes so far, total bytes) over all files of a model

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
MAX_JSON = 1 << 28  # tokenizer.json of a vocabulary with 256,000 words is 33 MB
SHARD = re.compile(r"[\w-][\w.-]*\.safetensors")
POINTER, MAX_POINTER = b"version https://git-lfs.github.com/spec/", 1024
WITH_LFS = (".safetensors", ".json", ".txt", ".model", ".bin", ".gguf")
BY_COLUMNS = "by_columns"  # metadata key of files in our cache: names of the tensors stored column by column
FLOATS = {"F64", "F32", "F16", "BF16"}
BITS = re.compile(r"\d+")  # bits per number, in the name of a dtype


# Weight files in the order of preference. A variant has the same numbers, possibly rounded.
KINDS = ("", "bf16", "fp16", "fp32")
WEIGHTS = tuple(
    name
    for stem in ("model", "pytorch_model")
    for kind in KINDS
    for name in (
        f"{stem}{'.' * bool(kind)}{kind}.safetensors",
        f"{stem}.safetensors.index{'.' * bool(kind)}{kind}.json",
        f"{stem}{'.' * bool(kind)}{kind}.safetensors.index.json",
    )
)
SHARD_OF = re.compile(r".+-(\d+)-of-(\d+)(\.\w+)?\.safetensors")
# Safetensors files that are never a model's weights under another name.
NO_MODEL = re.compile(
    r"adapter_.*|consolidated.*|optimizer.*|unmasked\.safetensors|.*lora.*|.*embeddings?\.safetensors"
)


def weight_file(names: Iterable[str]) -> str | None:
    """The weight file of a folder, or the index of its shards: one of WEIGHTS, or else the only safetensors file under any name.

    None if there is no such file, or several could be meant.
    """
    here = {name for name in names if "/" not in name}
    if known := next((name for name in WEIGHTS if name in here), None):
        return known
    others = [n for n in here if n.endswith(".safetensors") and not NO_MODEL.fullmatch(n) and not SHARD_OF.fullmatch(n)]
    return others[0] if len(others) == 1 else None


def weight_file_of(folder: Path) -> str | None:
    """weight_file() of a local folder."""
    return weight_file(path.name for path in folder.iterdir() if not path.name.startswith(".") and path.is_file())


@dataclass(frozen=True, eq=False)
class Stored:
    """A tensor in a file. Its numbers are read on demand (mapped, not copied, if possible)."""

    name: str
    file: str
    shape: tuple[int, ...]
    dtype: str  # in safetensors' spelling: F32, BF16
    handle: Any
    finite: bool = False  # all numbers are known to be finite, because they were checked when the file was written
    by_columns: bool = False  # stored column by column

    @property
    def n_bytes(self) -> int:
        """Size in its file."""
        bits = BITS.search(self.dtype)
        return math.prod(self.shape) * (int(bits[0]) if bits else 8) // 8

    def read(self) -> Tensor:
        try:
            tensor = self.handle.get_tensor(self.name)
            return tensor.t() if self.by_columns else tensor
        except (SafetensorError, OSError, ValueError) as error:
            raise CheckpointError(
                f"{self.file}: the tensor {self.name} cannot be read ({error}). Download the file again."
            ) from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file. Raises CheckpointError naming the file if there is none, or if it repeats a key."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise CheckpointError(
                f"{path.name} is larger than {MAX_JSON >> 20} MB, which no published file of that name is."
            )
        values = json.loads(path.read_text("utf-8-sig"), object_pairs_hook=_no_twins)
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror or 'not a file'}.") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path.name} is not valid JSON ({error}). Download the file again.") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path.name} must hold an object in braces, but it holds a {type(values).__name__}.")
    return values


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(k for k in keys if keys.count(k) > 1)!r} is there twice")
    return values


def stored_tensors(folder: Path, *, finite: bool = False) -> dict[str, Stored]:
    """All tensors of a folder with a weight file or an index, by name. `finite` is as in Stored, for files of our own cache, which may
    store tensors by columns.

    Raises CheckpointError if a header is invalid, a shard is outside of the folder, or two shards contain the same tensor.
    """
    name = weight_file_of(folder) or INDEX
    if not name.endswith(".json"):
        return {stored.name: stored for stored in header(folder / name, finite)}
    return _sharded(folder, name)


def header(path: Path, finite: bool = False) -> list[Stored]:
    """The tensors of one file. Raises CheckpointError if it is incomplete."""
    try:
        handle = safe_open(path, framework="pt")
        names = list(handle.keys())
        slices = [handle.get_slice(name) for name in names]
        by_columns = (handle.metadata() or {}).get(BY_COLUMNS, "").split() if finite else []
        tensors = []
        for name, entry in zip(names, slices, strict=True):
            shape = tuple(entry.get_shape()[:: -1 if name in by_columns else 1])
            dtype = str(entry.get_dtype())
            tensors.append(Stored(name, path.name, shape, dtype, handle, finite, name in by_columns))
        return tensors
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{path.name} is not a whole safetensors file ({error}). Download it again.") from error


def shard_names(index: Mapping[str, Any], where: str = INDEX) -> list[str]:
    """The shards in an index, without repetitions. Raises CheckpointError unless all are plain names of safetensors files."""
    placed = index.get("weight_map")
    if not isinstance(placed, dict) or not placed or not all(isinstance(name, str) for name in placed.values()):
        raise CheckpointError(f"{where} has no weight_map, the list that gives each tensor its file.")
    for name in placed.values():
        if not SHARD.fullmatch(name):
            raise CheckpointError(
                f"{where} names the file {shown(name)}. A shard must be a .safetensors file in the same folder."
            )
    return list(dict.fromkeys(placed.values()))


def absent(folder: Path, names: Iterable[str]) -> list[str]:
    """The names that are missing in a folder."""
    return [name for name in names if not (folder / name).is_file()]


def pointers(folder: Path) -> list[str]:
    """Git LFS pointer files, which `git clone` leaves behind when Git LFS is not installed."""
    return sorted(
        path.name for path in folder.iterdir() if path.suffix in WITH_LFS and path.is_file() and is_pointer(path)
    )


def is_pointer(path: Path) -> bool:
    if path.stat().st_size >= MAX_POINTER:
        return False
    with path.open("rb") as file:
        return file.read(len(POINTER)) == POINTER


def _sharded(folder: Path, where: str) -> dict[str, Stored]:
    index = read_json(folder / where)
    shards = shard_names(index, where)
    if missing := absent(folder, shards):
        raise CheckpointError(f"{where} names the file {missing[0]}, which is not there.")
    found: dict[str, Stored] = {}
    for shard in shards:
        for stored in header(folder / shard):
            if stored.name in found:
                raise CheckpointError(f"The tensor {stored.name} is both in {found[stored.name].file} and in {shard}.")
            found[stored.name] = stored
    for name, shard in index["weight_map"].items():
        if name not in found or found[name].file != shard:
            raise CheckpointError(f"{where} says that the tensor {name} is in {shard}, but it is not.")
    return found


def listed(names: list[str]) -> str:
    """Up to three names, and the number of the others."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def quoted(text: str) -> str:
    """A string literal of Python and JSON."""
    return json.dumps(text, ensure_ascii=False)


def class_of(config: Mapping[str, Any]) -> str:
    """transformers' class in config.json, which includes the head, unlike the general AutoModel."""
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    return first if isinstance(first, str) and re.fullmatch(r"[A-Z]\w{2,60}", first, re.ASCII) else "AutoModel"


def sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror or 'not a file'}.") from error


@dataclass(frozen=True, eq=False)
class LazyTensor:
    """Handle of a computed tensor, with the method of safetensors' handles."""

    make: Callable[[], Tensor]

    def get_tensor(self, name: str) -> Tensor:
        """The tensor in float32, in the shape of its Stored."""
        return self.make()


def lazy_tensor(name: str, file: str, shape: tuple[int, ...], make: Callable[[], Tensor]) -> Stored:
    """A computed tensor in float32. `file` is the origin of its numbers, for messages."""
    return Stored(name, file, shape, "F32", LazyTensor(make))


WRAPPERS = {  # part of a tensor's name -> the wrapper that inserted it
    "_orig_mod": "torch.compile",
    "module": "DataParallel",
    "_fsdp_wrapped_module": "FSDP",
    "_checkpoint_wrapped_module": "activation checkpointing",
    "_forward_module": "Lightning",
}
# Prefixes of a text backbone, or of a model wrapped by PEFT.
BEFORE = ("model.language_model.", "language_model.", "model.text_model.", "base_model.model.", "transformer.")


def strip_wrappers(name: str, wraps: Iterable[str] = WRAPPERS) -> str:
    """A tensor's name without the parts inserted by wrappers."""
    return ".".join(part for part in name.split(".") if part not in wraps)


def strip_prefix(prefix: str, tables: Sequence[str], tensors: Mapping[str, Stored]) -> dict[str, Stored]:
    """The tensors without wrappers, without a prefix in BEFORE, and without the family's own `prefix`.

    `tables` are the family's names of the token table, which show whether another prefix comes first. Raises CheckpointError if two
    tensors end up with the same name.
    """
    named = _renamed(tensors, strip_wrappers)
    before = next((b for b in BEFORE if _tables(named, b, prefix, tables)), "")
    if before and not _tables(named, "", prefix, tables):
        named = _renamed(named, lambda name: name.removeprefix(before))
    return _renamed(named, lambda name: name.removeprefix(prefix))


def _tables(named: Mapping[str, Stored], before: str, prefix: str, tables: Sequence[str]) -> bool:
    return any(f"{before}{own}{table}" in named for table in tables for own in (prefix, ""))


def _renamed(tensors: Mapping[str, Stored], rename: Callable[[str], str]) -> dict[str, Stored]:
    found: dict[str, Stored] = {}
    for name, stored in tensors.items():
        short = rename(name)
        if short in found:
            raise CheckpointError(
                f"{stored.file} holds both {found[short].name} and {stored.name}; only one can be meant as {short}."
            )
        found[short] = stored
    return found


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


def unused_notice(unused: Iterable[str], tensors: Mapping[str, Stored], config: ModelConfig) -> str | None:
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
