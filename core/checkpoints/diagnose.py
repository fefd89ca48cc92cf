"""Explains why a folder or repository cannot be opened, and which files and tensors of an opened one are not used."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import CheckpointError
from ..model.config import ModelConfig
from .family import shown
from .files import INDEX, SHARD_OF, SINGLE, Stored, class_of, listed, quoted, read_json, unused_notice, weight_file

MAX_DEPTH = 3  # nested folders that are searched; the Hub's cache stores a model in snapshots/<commit>/
MAX_NAMES = 4000  # file names that are read, so that opening a home folder stays fast
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)

ADAPTERS = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
RESUMED = re.compile(
    r"(training_args\.bin|(optimizer|scheduler|scaler)\.(pt|bin)|rng_state.*\.pth|random_states_.*\.pkl)"
)
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# Ending of files of another program -> the program, and the option with which transformers converts them.
OTHERS = {
    ".h5": ("TensorFlow", "from_tf=True"),
    ".msgpack": ("Flax", "from_flax=True"),
    ".onnx": ("ONNX", ""),
    ".mlmodel": ("Core ML", ""),
    ".mlpackage": ("Core ML", ""),
    ".tflite": ("TensorFlow Lite", ""),
    ".keras": ("Keras", ""),
    ".nemo": ("NeMo", ""),
    ".engine": ("TensorRT", ""),
    ".npz": ("numpy or MLX", ""),
}
TOKENIZERS = {
    **dict.fromkeys(
        ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "spm.model", "source.spm", "target.spm"),
        "SentencePiece",
    ),
    "tekken.json": "Mistral",
    **dict.fromkeys(("tokenizer.tiktoken", "qwen.tiktoken"), "tiktoken"),
    **dict.fromkeys(("vocab.json", "vocab.txt", "merges.txt"), "an older tokenizer"),
}
# Adapter types of peft that can be merged -> their usual names. PROMPTS do not change the weights, so there is nothing to merge.
MERGED = {
    "LORA": "LoRA",
    "ADALORA": "AdaLoRA",
    "IA3": "IA³",
    "LOHA": "LoHa",
    "LOKR": "LoKr",
    "OFT": "OFT",
    "BOFT": "BOFT",
}
PROMPTS = ("PROMPT_TUNING", "PREFIX_TUNING", "P_TUNING", "MULTITASK_PROMPT_TUNING", "ADAPTION_PROMPT", "CPT")
TASKS = {  # peft's task_type -> transformers' class of the base model
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoModel",
}


@dataclass(frozen=True)
class Contents:
    """File names of a folder or repository, with "/" between folders, and a function that reads its JSON files."""

    title: str  # a folder's name, or owner/name on the Hub
    names: tuple[str, ...]
    read: Callable[[str], Mapping[str, Any]]
    on_hub: bool = False
    broken: tuple[str, ...] = ()  # links whose target is missing

    @property
    def name(self) -> str:
        """Name for the beginning of a sentence."""
        return f"{self.title} on the Hub" if self.on_hub else self.title

    @property
    def here(self) -> list[str]:
        """Files outside of nested folders."""
        return [name for name in self.names if "/" not in name]

    def ending(self, *ends: str) -> list[str]:
        return [name for name in self.here if name.endswith(ends)]

    def inside(self, folder: str) -> Contents:
        """Contents of a nested folder."""
        names = tuple(name.removeprefix(f"{folder}/") for name in self.names if name.startswith(f"{folder}/"))
        return Contents(f"{self.title}/{folder}", names, lambda name: self.read(f"{folder}/{name}"), self.on_hub)

    def json(self, name: str) -> Mapping[str, Any]:
        """Content of a JSON file; empty if it is missing or damaged, because only a message depends on it."""
        if name not in self.names:
            return {}
        try:
            return self.read(name)
        except (CheckpointError, OSError):
            return {}


# Files of a checkpoint; broken links to other files are ignored.
CHECKPOINT_FILE = re.compile(
    r".+\.(json|safetensors|gguf|bin|pt|pth|ckpt|h5|msgpack|onnx|model|txt|jinja)", re.IGNORECASE | re.DOTALL
)


def of_folder(folder: Path, title: str) -> Contents:
    """Contents of a local folder."""
    names: list[str] = []
    broken: list[str] = []
    for place, folders, files in os.walk(folder):
        inside = Path(place).relative_to(folder)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and len(inside.parts) < MAX_DEPTH)
        for name in sorted(name for name in files if not name.startswith(".")):
            if (Path(place) / name).exists():
                names.append((inside / name).as_posix())
            elif CHECKPOINT_FILE.fullmatch(name):
                broken.append((inside / name).as_posix())
        if len(names) >= MAX_NAMES:
            break
    return Contents(title, tuple(names), lambda name: read_json(folder / name), broken=tuple(broken))


def of_hub(title: str, names: Iterable[str], get: Callable[[str], Path]) -> Contents:
    """Contents of a repository on the Hub."""
    return Contents(title, tuple(sorted(names)), lambda name: read_json(get(name)), on_hub=True)


Explanation = Callable[[Contents], str]  # "" if it does not apply


def _first(contents: Contents, *explanations: Explanation) -> str:
    """The first explanation that applies; "" if none does."""
    return next((text for explain in explanations if (text := explain(contents))), "")


def without_config(contents: Contents) -> str:
    """Why a folder without config.json cannot be loaded."""
    return _first(
        contents,
        _broken,
        _adapter_error,
        _packed,
        _weights_only,
        _original,
        _deeper,
        _pickles,
        _safetensors,
        _parts_of_a_training,
        _others,
        _archives,
        _tokenizer_only,
        _nothing,
    )


def without_weights(contents: Contents) -> str:
    """Why a folder with config.json, but without model.safetensors and its index, cannot be loaded."""
    missing = f"There is no {SINGLE} and no {INDEX} here."
    return _first(
        contents,
        _broken,
        _adapter_error,
        _pickles,
        partial(_packed, before=missing),
        _shards_only,
        partial(_consolidated, before=missing),
        partial(_safetensors, before=missing),
        _parts_of_a_training,
        _deeper,
        partial(_others, before=missing),
    ) or (
        f"{contents.name} has a config.json, which says how large the model is, but no weights. {missing} {again(contents)}"
    )


def missing_shards(contents: Contents, missing: list[str], shards: list[str], index: str = INDEX) -> str:
    """Why an index with missing files cannot be used."""
    absent = "which the repository does not have" if contents.on_hub else "which is not there"
    named = f"{index} names the file {missing[0]}, {absent}"
    if len(missing) > 1:
        verb = "the repository does not have" if contents.on_hub else "are not there"
        named = f"{index} names {len(shards)} files. {len(missing)} of them {verb}: {listed(missing)}"
    others = [n for n in contents.ending(".safetensors") if n not in shards and not n.startswith("adapter_")]
    if len(missing) == len(shards) and len(others) == 1:
        return (
            f"{named}. There is {others[0]}, which it does not name. If that holds all of the weights, give it the name that is "
            f"read: `{_renamed(contents, others[0])}`."
        )
    part = [n for n in contents.here if n.endswith((".incomplete", ".part", ".crdownload", ".aria2", ".tmp"))]
    why = f"{part[0]} was not downloaded to its end." if part else "The download may be incomplete."
    return f"{named}. {why} {again(contents, *missing[:3])}"


def again(contents: Contents, *names: str) -> str:
    """Instruction for getting missing files."""
    if contents.on_hub:
        return "Choose a repository that has them, or ask its owner."
    command = f"hf download OWNER/NAME {''.join(f'{shlex.quote(n)} ' for n in names)}--local-dir {shlex.quote(contents.title)}"
    return f"Download what is missing, with its name on the Hub for OWNER/NAME: `{command}`."


def merge_line(contents: Contents) -> str:
    """Code that merges an adapter into the weights of its base model."""
    config = contents.json(ADAPTERS[0])
    base = str(config.get("base_model_name_or_path") or "")
    model = quoted(base if HUB_NAME.fullmatch(base) else "BASE")
    auto = TASKS.get(str(config.get("task_type")), "AutoModelForCausalLM")
    out = quoted(f"{PurePosixPath(contents.title).name}-merged")
    return (
        f"`import peft, transformers; base = transformers.{auto}.from_pretrained({model}); "
        f"peft.PeftModel.from_pretrained(base, {quoted(contents.title)}).merge_and_unload().save_pretrained({out}); "
        f"transformers.AutoTokenizer.from_pretrained({model}).save_pretrained({out})`"
    )


def _broken(contents: Contents) -> str:
    if not contents.broken:
        return ""
    return (
        f"{listed(list(contents.broken))} in {contents.name} is a link to a file that is not there. A folder of the Hub's cache was copied "
        f"without what its links point to: copy it again with `cp -rL`, or download it. {again(contents)}"
    )


def _adapter_error(contents: Contents) -> str:
    if not (files := [name for name in ADAPTERS if name in contents.names]):
        return ""
    config = contents.json(ADAPTERS[0])
    kind, base = str(config.get("peft_type") or ""), str(config.get("base_model_name_or_path") or "")
    known = HUB_NAME.fullmatch(base) is not None
    # Only the last part of a path is shown: the rest describes the machine where the adapter was trained.
    name = base if known else PurePosixPath(base.replace("\\", "/")).name
    of = f"{name}" if known else f"the model called {name}" if name else "another model"
    if kind in PROMPTS:
        how = f"headlight.load({quoted(base)})" if known else "headlight.load(BASE)"
        return (
            f"{contents.name} holds {files[0]}, which is no model: {kind.replace('_', ' ').lower()} puts learnt vectors before the text and "
            f"leaves the weights of {of} as they are, so there is nothing to merge. Open that model: `{how}`."
        )
    return (
        f"{contents.name} holds an adapter ({MERGED.get(kind, kind or 'LoRA')}) and no model: {files[-1]} has only what was added to the "
        f"weights of {of}. Merge the two{'' if known else ', with the name or the folder of that model for BASE'}, and open the folder that "
        f"this writes: {merge_line(contents)}."
    )


def without_base(contents: Contents) -> str:
    """Why an adapter is not merged: its base model is missing."""
    return f"{_adapter_error(contents)} Or lay the folder of that model beside this one, under its own name, and open this again: the two are merged then."


def _packed(contents: Contents, before: str = "") -> str:
    """GGUF files on the Hub, where one has to be chosen first, and files in llama.cpp's older format."""
    files = [n for n in contents.here if n.endswith(".gguf")]
    if files and contents.on_hub:
        local = _local(contents)
        command = f"hf download {contents.title} {shlex.quote(files[0])} --local-dir {shlex.quote(local)}"
        return (
            f"{contents.name} holds GGUF files, {listed(files)}. {before} Choose one, download it, and open it: `{command}`, and then "
            f"`headlight.load({quoted(f'{local}/{files[0]}')})`."
        ).replace("  ", " ")
    old = [n for n in contents.here if re.fullmatch(r"ggml.*\.bin|.*\.ggml(v\d)?\..*bin|.*\.ggml", n)]
    if not old:
        return ""
    text = f"{contents.name} holds {listed(old)}, a form that llama.cpp wrote before GGUF and no longer reads. {before}".strip()
    return f"{text} Open the model that it was made from, or the same one as a GGUF file."


def several(title: str, folder: Path, names: list[str]) -> str:
    """Message about a folder with several GGUF models."""
    return (
        f"{title} holds {len(names)} models as GGUF files: {listed(names)}. Open one of them: "
        f"`headlight.load({quoted(str(folder / names[0]))})`."
    )


def _weights_only(contents: Contents) -> str:
    name = next((n for n in contents.here if n in (SINGLE, INDEX) or SHARD_OF.fullmatch(n)), None)
    if name is None:
        return ""
    return (
        f"{contents.name} has no config.json, which says what kind of model {name} belongs to and how large it is. It lies beside the "
        f"weights where they came from. {again(contents, 'config.json')}"
    )


def _original(contents: Contents) -> str:
    """Releases of Meta and Mistral in their original format."""
    files = [name for name in contents.here if name.startswith("consolidated")]
    if not files or "params.json" not in contents.here:
        return ""
    return (
        f"{contents.name} has no config.json: params.json and {files[0]} are the form in which Meta and Mistral publish their models first, with "
        f"other names for the tensors. The Hub has the same models in the form that is read. {again(contents)}"
    )


def _deeper(contents: Contents) -> str:
    """Models in nested folders."""
    if checkpoints := sorted(_checkpoints(contents.names)):
        return _of_training(contents, [name for _, name in checkpoints])
    folders = {name.rpartition("/")[0] for name in contents.names if name.endswith("/config.json")}
    weighed = {f for f in folders if any(n in contents.names for n in (f"{f}/{SINGLE}", f"{f}/{INDEX}"))}
    if inside := sorted(weighed or folders, key=lambda name: (name.count("/"), name)):
        cache = re.fullmatch(r"models--([\w.-]+?)--([\w.-]+)", PurePosixPath(contents.title).name)
        by_name = f", or ask for it by its name: `headlight.load({quoted(f'{cache[1]}/{cache[2]}')})`" if cache else ""
        return f"{contents.name} has no config.json, but {listed(inside)} in it has. Open that: {_opened(contents, inside[0])}{by_name}."
    adapters = sorted(name.rpartition("/")[0] for name in contents.names if name.endswith(f"/{ADAPTERS[0]}"))
    return f"{contents.name} is no model itself. {_adapter_error(contents.inside(adapters[0]))}" if adapters else ""


def _of_training(contents: Contents, checkpoints: list[str]) -> str:
    """A folder of checkpoints, in the order of their steps."""
    newest, n = checkpoints[-1], len(checkpoints)
    head = f"{contents.name} is no model itself. It holds {n} saved by a training, and {newest} is the newest: {listed(checkpoints[::-1])}."
    if n == 1:
        head = f"{contents.name} is no model itself. It holds one, saved by a training: {newest}."
    if "config.json" not in contents.inside(newest).here and (adapter := _adapter_error(contents.inside(newest))):
        return f"{head} {adapter}"
    return f"{head} Open {'one' if n > 1 else 'it'}: {_opened(contents, newest)}."


def _checkpoints(names: Iterable[str]) -> set[tuple[int, str]]:
    """(step, name) of the checkpoint folders of transformers' Trainer."""
    matches = (re.match(r"(checkpoint-(\d+))/", name) for name in names)
    return {(int(match[2]), match[1]) for match in matches if match}


def _opened(contents: Contents, inside: str) -> str:
    if not contents.on_hub:
        return f"`headlight.load({quoted(f'{contents.title}/{inside}')})`"
    local = _local(contents)
    command = f"hf download {contents.title} --include {shlex.quote(f'{inside}/*')} --local-dir {shlex.quote(local)}"
    return f"`{command}`, and then `headlight.load({quoted(f'{local}/{inside}')})`"


def _pickles(contents: Contents) -> str:
    files = [n for n in contents.ending(*PICKLES) if not RESUMED.fullmatch(n) and n not in ADAPTERS]
    files = [n for n in files if not n.startswith("ggml")]
    if not files:
        return ""
    files.sort(key=lambda name: not name.startswith("pytorch_model"))
    return (
        f"The weights of {contents.name} are only there as {files[0]}, a Python pickle, and a pickle can run any code when it is opened. "
        f"Only safetensors are read.{_no_config(contents)} Convert them on a machine that may run it: `{_from_pickle(contents, files[0])}`."
    )


def _no_config(contents: Contents) -> str:
    if "config.json" in contents.here:
        return ""
    return " There is no config.json either; it lies beside the weights where they came from."


def _local(contents: Contents) -> str:
    """Name of the local folder for a repository on the Hub, or the folder itself."""
    return contents.title.rpartition("/")[2] if contents.on_hub else contents.title


def _from_pickle(contents: Contents, name: str) -> str:
    local = quoted(_local(contents))
    if not name.startswith("pytorch_model"):
        file = quoted(f"{contents.title}/{name}" if not contents.on_hub else name)
        return (
            "import torch; from safetensors.torch import save_file; "
            f'save_file({{k: v.clone() for k, v in torch.load({file}, map_location="cpu", weights_only=True).items()}}, '
            f"{quoted(f'{_local(contents)}/{SINGLE}')}, "
            '{"format": "pt"})'
        )
    line = f"import transformers; transformers.{class_of(contents.json('config.json'))}.from_pretrained({quoted(contents.title)}).save_pretrained({local}, safe_serialization=True)"
    if not contents.on_hub:
        return line
    return f"{line}; transformers.AutoTokenizer.from_pretrained({quoted(contents.title)}).save_pretrained({local})"


def _shards_only(contents: Contents) -> str:
    shards = [name for name in contents.here if SHARD_OF.fullmatch(name)]
    if not shards:
        return ""
    numbers = {int(match[1]): int(match[2]) for match in map(SHARD_OF.fullmatch, shards) if match}
    total = max(numbers.values())
    if len(numbers) < total:
        absent = [n for n in range(1, total + 1) if n not in numbers]
        return (
            f"{contents.name} has {len(numbers)} of the {total} parts of its weights, and no {INDEX}: "
            f"part{'s' * (len(absent) > 1)} {listed([str(n) for n in absent])} {'are' if len(absent) > 1 else 'is'} missing. {again(contents)}"
        )
    place = contents.title
    return (
        f"{contents.name} has the {total} parts of its weights, but no {INDEX}, which says what is in each. "
        f"{again(contents, INDEX)} Or make one file of them: `from glob import glob; from safetensors.torch import load_file, save_file; "
        f"save_file({{k: v for f in glob({quoted(f'{place}/*-of-*.safetensors')}) for k, v in load_file(f).items()}}, "
        f'{quoted(f"{place}/{SINGLE}")}, {{"format": "pt"}})`.'
    )


def _consolidated(contents: Contents, before: str) -> str:
    """Weights in the original format of Meta and Mistral, next to a config.json of the Hub's format."""
    files = [n for n in contents.ending(".safetensors") if n.startswith("consolidated")]
    if not files or len(contents.ending(".safetensors")) > len(files):
        return ""
    return (
        f"{before} {contents.name} has {listed(files)}, which is not read: its tensors have the names under which Mistral and Meta publish "
        f"their models first. The Hub has the same weights as {SINGLE}, or as shards with {INDEX}. {again(contents)}"
    )


def _safetensors(contents: Contents, before: str = "") -> str:
    files = [n for n in contents.ending(".safetensors") if not n.startswith("adapter_")]
    if not files:
        return ""
    return (
        f"{before or f'{contents.name} has no {SINGLE}.'} It has {listed(files)}, and {'it is not known which of them is meant' if len(files) > 1 else 'that is not read by that name'}.{_no_config(contents)} "
        f"The one that holds all weights of this model is read by this name: `{_renamed(contents, files[0])}`."
    )


def _renamed(contents: Contents, name: str) -> str:
    local = _local(contents)
    download = f"hf download {contents.title} --local-dir {shlex.quote(local)}; " if contents.on_hub else ""
    return f"{download}mv {shlex.quote(f'{local}/{name}')} {shlex.quote(f'{local}/{SINGLE}')}"


def _parts_of_a_training(contents: Contents) -> str:
    """Sharded weights of DeepSpeed and FSDP, and files for resuming a training run."""
    place = shlex.quote(contents.title)
    if "zero_to_fp32.py" in contents.names:
        return (
            f"{contents.name} holds the pieces that DeepSpeed saves, one of each process. Its own script puts them together: "
            f"`python {place}/zero_to_fp32.py {place} {place} --safe_serialization`."
        )
    if pieces := sorted({n.split("/")[0] for n in contents.names if n.startswith("pytorch_model_fsdp_") and "/" in n}):
        return (
            f"{contents.name} holds the pieces that FSDP saves, one of each process. Put them together: "
            f"`accelerate merge-weights {place}/{pieces[0]} {place}`."
        )
    if resumed := [name for name in contents.here if RESUMED.fullmatch(name)]:
        return f"{contents.name} holds {listed(resumed)}, from which a training continues, and no weights. Open the folder in which they were saved."
    return ""


def _others(contents: Contents, before: str = "") -> str:
    endings = {end: [n for n in contents.names if n.endswith(end)] for end in OTHERS}
    endings = {end: names for end, names in endings.items() if names}
    if not endings:
        old = [name for name in contents.here if re.fullmatch(r".+\.ckpt(-\d+)?\.(index|meta|data-.*)", name)]
        return (
            f"{contents.name} holds {listed(old)}, a checkpoint of TensorFlow 1. Choose the same model as the Hub has it. {again(contents)}"
            if old
            else ""
        )
    end, names = next(iter(endings.items()))
    program, option = OTHERS[end]
    text = f"{before} {contents.name} has {listed(names)}, which is not read: it is made for {program}.".strip()
    if not option:
        return f"{text} Choose the model that it was made from, with config.json and {SINGLE}. {again(contents)}"
    local = quoted(_local(contents))
    return (
        f"{text} transformers converted it before its version 5: `pip install 'transformers<5'`, and then `import transformers; "
        f"transformers.{class_of(contents.json('config.json'))}.from_pretrained({quoted(contents.title)}, {option}).save_pretrained({local})`."
    )


def _archives(contents: Contents) -> str:
    files = contents.ending(*ARCHIVES)
    if not files:
        return ""
    place, file = shlex.quote(contents.title), shlex.quote(f"{contents.title}/{files[0]}")
    command = f"python -m {'zipfile' if files[0].endswith('.zip') else 'tarfile'} -e {file} {place}"
    return f"{contents.name} holds {listed(files)}, which is still packed. Unpack it: `{command}`, and open the folder that has config.json."


def _tokenizer_only(contents: Contents) -> str:
    files = [
        name for name in contents.here if name in TOKENIZERS or name in ("tokenizer.json", "tokenizer_config.json")
    ]
    if not files:
        return ""
    return f"{contents.name} holds a tokenizer ({listed(files)}) and no model: it has no config.json and no weights. {again(contents)}"


def _nothing(contents: Contents) -> str:
    if not contents.names:
        return f"{contents.name} has no config.json: it holds no files. {again(contents)}"
    return (
        f"{contents.name} has no config.json, so it is not a model that can be loaded. It holds {listed(list(contents.names))}. Choose a folder or "
        f"repository with config.json and {SINGLE}."
    )


def explain_file(path: Path) -> str:
    """Why a file cannot be opened by core.load()."""
    name = path.name
    contents = Contents(path.resolve().parent.name, (name,), lambda _: {})
    if name.endswith((".safetensors", ".json")):
        return f"{shown(name)} is a file. Give the folder that it is in: `headlight.load({quoted(contents.title)})`."
    why = _first(contents, _packed, _pickles, _archives, _others)
    return f"{shown(name)} is a file, and a model is a folder with config.json and {SINGLE}. {why}".strip()


# Safetensors files that may be ignored: the same weights for another program or rounded, and `unmasked`, a second model that
# core.labs.masks stores next to the first.
OTHER_FORMS = re.compile(
    r"consolidated.*|(pytorch_)?model(-.*)?\.(fp16|bf16|fp32|non_ema)(-.*)?\.safetensors|adapter_.*|unmasked\.safetensors"
)

PARTS = (  # parts of a multimodal model, and patterns of their tensors
    (
        "projector",
        r"(^|\.)(multi_modal_projector|mm_projector|connector|embed_vision|aligner)\.|visual\.(deepstack_)?merger",
    ),
    ("vision tower", r"(^|\.)(visual|vision\w*|image_newline|image_encoder)(\.|$)"),
    ("audio tower", r"(^|\.)audio\w*\."),
)


def notices_of(
    contents: Contents,
    unused: tuple[str, ...],
    tensors: Mapping[str, Stored],
    config: ModelConfig,
    renumbered: Mapping[str, tuple[int, int]],
    whole: str = "",
) -> tuple[str, ...]:
    """Notices about a model loaded from a folder. `whole` is the title of the multimodal model that it is the text backbone of."""
    backbone, unused = left_out(whole, unused, tensors) if whole else (None, unused)
    notices = (
        backbone,
        unused_notice(unused, tensors, config),
        _adapter_notice(contents),
        _unread(contents, tensors),
        _renumbered(renumbered),
    )
    return tuple(filter(None, notices))


def _adapter_notice(contents: Contents) -> str | None:
    """An adapter in the folder or in a nested one."""
    files = [name for name in contents.names if PurePosixPath(name).name in ADAPTERS]
    if not files:
        return None
    inside = files[0].rpartition("/")[0]
    adapter = contents.inside(inside) if inside else contents
    return (
        f"{files[-1]} lies beside the model and is not used: the numbers are those of the model without this adapter. "
        f"To see it, merge the two, and open the folder that this writes: {merge_line(adapter)}."
    )


def _unread(contents: Contents, tensors: Mapping[str, Stored]) -> str | None:
    """Other safetensors files in the folder."""
    read = {stored.file for stored in tensors.values()}
    others = [n for n in contents.ending(".safetensors") if n not in read and not OTHER_FORMS.fullmatch(n)]
    chosen = weight_file(contents.names)
    if not others or chosen is None:
        return None
    was, them = ("was", "it") if len(others) == 1 else ("were", "them")
    reason = f"{chosen} does not name {them}" if chosen.endswith(".json") else f"{chosen} holds the model"
    return f"{listed(others)} {was} not read: {reason}."


def without_tokenizer(contents: Contents) -> str:
    """Why a model cannot read text, and how to add a tokenizer."""
    files = [name for name in contents.here if name in TOKENIZERS or name.endswith((".tiktoken", ".spm"))]
    place = quoted(contents.title)
    if not files:
        return (
            "There is no tokenizer among its files, so it reads token numbers only: ids=[...]. If you have the tokenizer's name on the Hub: "
            f'`import transformers; transformers.AutoTokenizer.from_pretrained("OWNER/NAME").save_pretrained({place})`.'
        )
    kind = TOKENIZERS.get(files[0], "tiktoken")
    return (
        f"Its tokenizer is only there as {listed(files)} ({kind}), which is not read, so it reads token numbers only: ids=[...]. Write it as "
        "tokenizer.json, where transformers and sentencepiece are installed: "
        f"`import transformers; transformers.AutoTokenizer.from_pretrained({place}).save_pretrained({place})`."
    )


def _renumbered(tokens: Mapping[str, tuple[int, int]]) -> str | None:
    if not tokens:
        return None
    text, (stated, given) = next(iter(tokens.items()))
    return (
        f"The files number {len(tokens)} added token{'s' * (len(tokens) > 1)} with a gap, which is closed as in transformers: "
        f"{text} is {given} and not {stated}."
    )


def left_out(whole: str, unused: Iterable[str], tensors: Mapping[str, Stored]) -> tuple[str | None, tuple[str, ...]]:
    """Notice about the parts of a multimodal model that were not opened, and the unused tensors that belong to none of them."""
    by_part: dict[str, list[Stored]] = {}
    others = []
    for name in unused:
        part = next((part for part, pattern in PARTS if re.search(pattern, name)), None)
        if part is None:
            others.append(name)
        else:
            by_part.setdefault(part, []).append(tensors[name])
    parts = [
        f"its {part} ({len(group)} tensor{'s' * (len(group) > 1)}, {_size(sum(s.n_bytes for s in group))}: {group[0].name}{' …' * (len(group) > 1)})"
        for part, group in sorted(by_part.items(), reverse=True)
    ]
    left = f" Left out: {' and '.join(parts)}." if parts else ""
    return f"This is the text half of {whole}: it reads texts alone.{left}", tuple(others)


def _size(n_bytes: int) -> str:
    return (
        f"{n_bytes / 1e9:.1f} GB"
        if n_bytes >= 1e9
        else f"{n_bytes / 1e6:.1f} MB"
        if n_bytes >= 1e5
        else f"{n_bytes / 1e3:.1f} kB"
    )
