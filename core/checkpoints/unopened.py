"""Sentences about folders and repositories that are no model as they lie there: what is in them, why it cannot be opened, and
the line of code or the command that makes a model of it."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import CheckpointError
from .family import shown
from .files import INDEX, SHARD_OF, SINGLE, read_json

DEEPEST = 3  # folders inside folders that are looked into: the Hub's cache keeps a model in snapshots/<commit>/
MAX_NAMES = 4000  # files whose names are read, so that a home folder costs no time
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)

ADAPTERS = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin")
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle")
RESUMED = re.compile(
    r"(training_args\.bin|(optimizer|scheduler|scaler)\.(pt|bin)|rng_state.*\.pth|random_states_.*\.pkl)"
)
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
# Files of other programs: whose they are, and how the model is had in the form that is read.
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
    "tokenizer.model": "SentencePiece",
    "spiece.model": "SentencePiece",
    "sentencepiece.bpe.model": "SentencePiece",
    "spm.model": "SentencePiece",
    "source.spm": "SentencePiece",
    "target.spm": "SentencePiece",
    "tekken.json": "Mistral",
    "tokenizer.tiktoken": "tiktoken",
    "qwen.tiktoken": "tiktoken",
    "vocab.json": "an older tokenizer",
    "vocab.txt": "an older tokenizer",
    "merges.txt": "an older tokenizer",
}
# peft's name of an adapter -> as people call it. Those of the second row leave the weights as they are: nothing can be merged.
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
TASKS = {  # peft's task_type -> the class of transformers that has its base
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoModel",
}


@dataclass(frozen=True)
class Contents:
    """The names of the files in a folder or a repository, "/" between folders, and a way to read its JSON files."""

    title: str  # a folder's name, or owner/name on the Hub
    names: tuple[str, ...]
    read: Callable[[str], Mapping[str, Any]]
    on_hub: bool = False
    broken: tuple[str, ...] = ()  # links to files that are not there

    @property
    def name(self) -> str:
        """As a sentence begins with it."""
        return f"{self.title} on the Hub" if self.on_hub else self.title

    @property
    def here(self) -> list[str]:
        """The files that do not lie in a folder inside."""
        return [name for name in self.names if "/" not in name]

    def ending(self, *ends: str) -> list[str]:
        return [name for name in self.here if name.endswith(ends)]

    def inside(self, folder: str) -> Contents:
        """One of the folders inside."""
        names = tuple(name.removeprefix(f"{folder}/") for name in self.names if name.startswith(f"{folder}/"))
        return Contents(f"{self.title}/{folder}", names, lambda name: self.read(f"{folder}/{name}"), self.on_hub)

    def said(self, name: str) -> Mapping[str, Any]:
        """The content of one of its JSON files; nothing where it is absent or damaged, since a sentence is all that depends on it."""
        if name not in self.names:
            return {}
        try:
            return self.read(name)
        except (CheckpointError, OSError):
            return {}


# Endings of a checkpoint's files: a broken link of another kind in a folder says nothing about a model.
OF_A_MODEL = (
    ".json",
    ".safetensors",
    ".gguf",
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".h5",
    ".msgpack",
    ".onnx",
    ".model",
    ".txt",
    ".jinja",
)


def of_folder(folder: Path, title: str) -> Contents:
    """The files in a folder of this machine."""
    names: list[str] = []
    broken: list[str] = []
    for place, folders, files in os.walk(folder):
        inside = Path(place).relative_to(folder)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and len(inside.parts) < DEEPEST)
        for name in sorted(name for name in files if not name.startswith(".")):
            if (Path(place) / name).exists():
                names.append((inside / name).as_posix())
            elif name.lower().endswith(OF_A_MODEL):
                broken.append((inside / name).as_posix())
        if len(names) >= MAX_NAMES:
            break
    return Contents(title, tuple(names), lambda name: read_json(folder / name), broken=tuple(broken))


def of_hub(title: str, names: Iterable[str], get: Callable[[str], Path]) -> Contents:
    """The files of a repository on the Hub."""
    return Contents(title, tuple(sorted(names)), lambda name: read_json(get(name)), on_hub=True)


def without_config(found: Contents) -> str:
    """Why there is nothing to load where there is no config.json."""
    weights = [n for n in found.here if n in (SINGLE, INDEX) or SHARD_OF.fullmatch(n)]
    return (
        _broken(found)
        or _adapter(found)
        or _packed(found)
        or (_weights_alone(found, weights[0]) if weights else "")
        or _original(found)
        or _deeper(found)
        or _pickles(found)
        or _safetensors(found)
        or _parts_of_a_training(found)
        or _others(found)
        or _archives(found)
        or _vocabulary_alone(found)
        or _nothing(found)
    )


def without_weights(found: Contents) -> str:
    """Why there is nothing to load where there is a config.json and neither model.safetensors nor its index."""
    missing = f"There is no {SINGLE} and no {INDEX} here."
    return (
        _broken(found)
        or _adapter(found)
        or _pickles(found)
        or _packed(found, missing)
        or _shards_alone(found)
        or _consolidated(found, missing)
        or _safetensors(found, missing)
        or _parts_of_a_training(found)
        or _deeper(found)
        or _others(found, missing)
        or f"{found.name} has a config.json, which says how large the model is, but no weights. {missing} {again(found)}"
    )


def missing_shards(found: Contents, missing: list[str], shards: list[str], index: str = INDEX) -> str:
    """Why an index whose files are not all there cannot be followed."""
    absent = "which the repository does not have" if found.on_hub else "which is not there"
    named = f"{index} names the file {missing[0]}, {absent}"
    if len(missing) > 1:
        verb = "the repository does not have" if found.on_hub else "are not there"
        named = f"{index} names {len(shards)} files. {len(missing)} of them {verb}: {listed(missing)}"
    others = [n for n in found.ending(".safetensors") if n not in shards and not n.startswith("adapter_")]
    if len(missing) == len(shards) and len(others) == 1:
        return (
            f"{named}. There is {others[0]}, which it does not name. If that holds all of the weights, give it the name that is "
            f"read: `{_renamed(found, others[0])}`."
        )
    part = [n for n in found.here if n.endswith((".incomplete", ".part", ".crdownload", ".aria2", ".tmp"))]
    why = f"{part[0]} was not downloaded to its end." if part else "The download may be incomplete."
    return f"{named}. {why} {again(found, *missing[:3])}"


def again(found: Contents, *names: str) -> str:
    """How to get what is missing."""
    if found.on_hub:
        return "Choose a repository that has them, or ask its owner."
    command = (
        f"hf download OWNER/NAME {''.join(f'{shlex.quote(n)} ' for n in names)}--local-dir {shlex.quote(found.title)}"
    )
    return f"Download what is missing, with its name on the Hub for OWNER/NAME: `{command}`."


def listed(names: list[str]) -> str:
    """Up to three of them."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def merge_line(found: Contents) -> str:
    """The code that puts an adapter into the weights of the model that it was made for."""
    said = found.said(ADAPTERS[0])
    base = str(said.get("base_model_name_or_path") or "")
    model, auto = (
        quoted(base if HUB_NAME.fullmatch(base) else "BASE"),
        TASKS.get(str(said.get("task_type")), "AutoModelForCausalLM"),
    )
    out = quoted(f"{PurePosixPath(found.title).name}-merged")
    return (
        f"`import peft, transformers; base = transformers.{auto}.from_pretrained({model}); "
        f"peft.PeftModel.from_pretrained(base, {quoted(found.title)}).merge_and_unload().save_pretrained({out}); "
        f"transformers.AutoTokenizer.from_pretrained({model}).save_pretrained({out})`"
    )


def quoted(text: str) -> str:
    """As Python and JSON write it."""
    return json.dumps(text, ensure_ascii=False)


def _broken(found: Contents) -> str:
    if not found.broken:
        return ""
    return (
        f"{listed(list(found.broken))} in {found.name} is a link to a file that is not there. A folder of the Hub's cache was copied "
        f"without what its links point to: copy it again with `cp -rL`, or download it. {again(found)}"
    )


def _adapter(found: Contents) -> str:
    if not (there := [name for name in ADAPTERS if name in found.names]):
        return ""
    said = found.said(ADAPTERS[0])
    kind, base = str(said.get("peft_type") or ""), str(said.get("base_model_name_or_path") or "")
    known = HUB_NAME.fullmatch(base) is not None
    # A path is that of the machine where it was trained, and says more of it than its last part should.
    name = base if known else PurePosixPath(base.replace("\\", "/")).name
    of = f"{name}" if known else f"the model called {name}" if name else "another model"
    if kind in PROMPTS:
        how = f"headlight.load({quoted(base)})" if known else "headlight.load(BASE)"
        return (
            f"{found.name} holds {there[0]}, which is no model: {kind.replace('_', ' ').lower()} puts learnt vectors before the text and "
            f"leaves the weights of {of} as they are, so there is nothing to merge. Open that model: `{how}`."
        )
    return (
        f"{found.name} holds an adapter ({MERGED.get(kind, kind or 'LoRA')}) and no model: {there[-1]} has only what was added to the "
        f"weights of {of}. Merge the two{'' if known else ', with the name or the folder of that model for BASE'}, and open the folder that "
        f"this writes: {merge_line(found)}."
    )


def without_base(found: Contents) -> str:
    """Why an adapter is not merged: its base is not here."""
    return f"{_adapter(found)} Or lay the folder of that model beside this one, under its own name, and open this again: the two are merged then."


def _packed(found: Contents, before: str = "") -> str:
    """GGUF on the Hub, where a file is chosen first; and the files that llama.cpp wrote before it."""
    files = [n for n in found.here if n.endswith(".gguf")]
    if files and found.on_hub:
        local = found.title.rpartition("/")[2]
        command = f"hf download {found.title} {shlex.quote(files[0])} --local-dir {shlex.quote(local)}"
        return (
            f"{found.name} holds GGUF files, {listed(files)}. {before} Choose one, download it, and open it: `{command}`, and then "
            f"`headlight.load({quoted(f'{local}/{files[0]}')})`."
        ).replace("  ", " ")
    old = [n for n in found.here if re.fullmatch(r"ggml.*\.bin|.*\.ggml(v\d)?\..*bin|.*\.ggml", n)]
    if not old:
        return ""
    text = f"{found.name} holds {listed(old)}, a form that llama.cpp wrote before GGUF and no longer reads. {before}".strip()
    return f"{text} Open the model that it was made from, or the same one as a GGUF file."


def several(title: str, folder: Path, names: list[str]) -> str:
    """Why a folder with several GGUF models is not one of them."""
    return (
        f"{title} holds {len(names)} models as GGUF files: {listed(names)}. Open one of them: "
        f"`headlight.load({quoted(str(folder / names[0]))})`."
    )


def _weights_alone(found: Contents, name: str) -> str:
    return (
        f"{found.name} has no config.json, which says what kind of model {name} belongs to and how large it is. It lies beside the "
        f"weights where they came from. {again(found, 'config.json')}"
    )


def _original(found: Contents) -> str:
    """Releases of Meta and Mistral as they were first published."""
    files = [name for name in found.here if name.startswith("consolidated")]
    if not files or "params.json" not in found.here:
        return ""
    return (
        f"{found.name} has no config.json: params.json and {files[0]} are the form in which Meta and Mistral publish their models first, with "
        f"other names for the tensors. The Hub has the same models in the form that is read. {again(found)}"
    )


def _deeper(found: Contents) -> str:
    """Models in folders inside."""
    if places := sorted(_checkpoints(found.names)):
        newest = places[-1][1]
        names = listed([name for _, name in reversed(places)])
        head = f"{found.name} is no model itself. It holds {len(places)} saved by a training, and {newest} is the newest: {names}."
        head = (
            head
            if len(places) > 1
            else f"{found.name} is no model itself. It holds one, saved by a training: {newest}."
        )
        if "config.json" not in found.inside(newest).here and (adapter := _adapter(found.inside(newest))):
            return f"{head} {adapter}"
        return f"{head} Open {'one' if len(places) > 1 else 'it'}: {_opened(found, newest)}."
    folders = {name.rpartition("/")[0] for name in found.names if name.endswith("/config.json")}
    weighed = {f for f in folders if any(n in found.names for n in (f"{f}/{SINGLE}", f"{f}/{INDEX}"))}
    if inside := sorted(weighed or folders, key=lambda name: (name.count("/"), name)):
        cache = re.fullmatch(r"models--([\w.-]+?)--([\w.-]+)", PurePosixPath(found.title).name)
        by_name = f", or ask for it by its name: `headlight.load({quoted(f'{cache[1]}/{cache[2]}')})`" if cache else ""
        return f"{found.name} has no config.json, but {listed(inside)} in it has. Open that: {_opened(found, inside[0])}{by_name}."
    adapters = sorted(name.rpartition("/")[0] for name in found.names if name.endswith(f"/{ADAPTERS[0]}"))
    return f"{found.name} is no model itself. {_adapter(found.inside(adapters[0]))}" if adapters else ""


def _checkpoints(names: Iterable[str]) -> set[tuple[int, str]]:
    """The folders that a training of transformers leaves, by their step."""
    matches = (re.match(r"(checkpoint-(\d+))/", name) for name in names)
    return {(int(match[2]), match[1]) for match in matches if match}


def _opened(found: Contents, inside: str) -> str:
    if not found.on_hub:
        return f"`headlight.load({quoted(f'{found.title}/{inside}')})`"
    local = found.title.rpartition("/")[2]
    command = f"hf download {found.title} --include {shlex.quote(f'{inside}/*')} --local-dir {shlex.quote(local)}"
    return f"`{command}`, and then `headlight.load({quoted(f'{local}/{inside}')})`"


def _pickles(found: Contents) -> str:
    files = [
        n for n in found.ending(*PICKLES) if not RESUMED.fullmatch(n) and n not in ADAPTERS and not n.startswith("ggml")
    ]
    if not files:
        return ""
    files.sort(key=lambda name: not name.startswith("pytorch_model"))
    no_config = (
        ""
        if "config.json" in found.here
        else " There is no config.json either; it lies beside the weights where they came from."
    )
    return (
        f"The weights of {found.name} are only there as {files[0]}, a Python pickle, and a pickle can run any code when it is opened. "
        f"Only safetensors are read.{no_config} Convert them on a machine that may run it: `{_from_pickle(found, files[0])}`."
    )


def _from_pickle(found: Contents, name: str) -> str:
    local = quoted(found.title.rpartition("/")[2] if found.on_hub else found.title)
    if not name.startswith("pytorch_model"):
        file = quoted(f"{found.title}/{name}" if not found.on_hub else name)
        return (
            "import torch; from safetensors.torch import save_file; "
            f'save_file({{k: v.clone() for k, v in torch.load({file}, map_location="cpu", weights_only=True).items()}}, '
            f"{quoted(f'{json.loads(local)}/{SINGLE}')}, "
            '{"format": "pt"})'
        )
    line = f"import transformers; transformers.{class_of(found.said('config.json'))}.from_pretrained({quoted(found.title)}).save_pretrained({local}, safe_serialization=True)"
    if not found.on_hub:
        return line
    return f"{line}; transformers.AutoTokenizer.from_pretrained({quoted(found.title)}).save_pretrained({local})"


def class_of(config: Mapping[str, Any]) -> str:
    """The class of transformers that a config.json names: a general one would leave its head out."""
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else None
    return first if isinstance(first, str) and re.fullmatch(r"[A-Z]\w{2,60}", first, re.ASCII) else "AutoModel"


def _shards_alone(found: Contents) -> str:
    shards = [name for name in found.here if SHARD_OF.fullmatch(name)]
    if not shards:
        return ""
    numbers = {int(match[1]): int(match[2]) for match in map(SHARD_OF.fullmatch, shards) if match}
    total = max(numbers.values())
    if len(numbers) < total:
        absent = [n for n in range(1, total + 1) if n not in numbers]
        return (
            f"{found.name} has {len(numbers)} of the {total} parts of its weights, and no {INDEX}: "
            f"part{'s' * (len(absent) > 1)} {listed([str(n) for n in absent])} {'are' if len(absent) > 1 else 'is'} missing. {again(found)}"
        )
    place = found.title
    return (
        f"{found.name} has the {total} parts of its weights, but no {INDEX}, which says what is in each. "
        f"{again(found, INDEX)} Or make one file of them: `from glob import glob; from safetensors.torch import load_file, save_file; "
        f"save_file({{k: v for f in glob({quoted(f'{place}/*-of-*.safetensors')}) for k, v in load_file(f).items()}}, "
        f'{quoted(f"{place}/{SINGLE}")}, {{"format": "pt"}})`.'
    )


def _consolidated(found: Contents, before: str) -> str:
    """Weights under the names of those who published them, beside a config.json of the other form."""
    files = [n for n in found.ending(".safetensors") if n.startswith("consolidated")]
    if not files or len(found.ending(".safetensors")) > len(files):
        return ""
    return (
        f"{before} {found.name} has {listed(files)}, which is not read: its tensors have the names under which Mistral and Meta publish "
        f"their models first. The Hub has the same weights as {SINGLE}, or as shards with {INDEX}. {again(found)}"
    )


def _safetensors(found: Contents, before: str = "") -> str:
    files = [n for n in found.ending(".safetensors") if not n.startswith("adapter_")]
    if not files:
        return ""
    config = (
        ""
        if "config.json" in found.here
        else " There is no config.json either; it lies beside the weights where they came from."
    )
    return (
        f"{before or f'{found.name} has no {SINGLE}.'} It has {listed(files)}, and {'it is not known which of them is meant' if len(files) > 1 else 'that is not read by that name'}.{config} "
        f"The one that holds all weights of this model is read by this name: `{_renamed(found, files[0])}`."
    )


def _renamed(found: Contents, name: str) -> str:
    if found.on_hub:
        local = found.title.rpartition("/")[2]
        return f"hf download {found.title} --local-dir {shlex.quote(local)}; mv {shlex.quote(f'{local}/{name}')} {shlex.quote(f'{local}/{SINGLE}')}"
    return f"mv {shlex.quote(f'{found.title}/{name}')} {shlex.quote(f'{found.title}/{SINGLE}')}"


def _parts_of_a_training(found: Contents) -> str:
    """Weights in the pieces that DeepSpeed and FSDP save, and files from which a training continues."""
    place = shlex.quote(found.title)
    if "zero_to_fp32.py" in found.names:
        return (
            f"{found.name} holds the pieces that DeepSpeed saves, one of each process. Its own script puts them together: "
            f"`python {place}/zero_to_fp32.py {place} {place} --safe_serialization`."
        )
    if pieces := sorted({n.split("/")[0] for n in found.names if n.startswith("pytorch_model_fsdp_") and "/" in n}):
        return (
            f"{found.name} holds the pieces that FSDP saves, one of each process. Put them together: "
            f"`accelerate merge-weights {place}/{pieces[0]} {place}`."
        )
    if resumed := [name for name in found.here if RESUMED.fullmatch(name)]:
        return f"{found.name} holds {listed(resumed)}, from which a training continues, and no weights. Open the folder in which they were saved."
    return ""


def _others(found: Contents, before: str = "") -> str:
    endings = {end: [n for n in found.names if n.endswith(end)] for end in OTHERS}
    endings = {end: names for end, names in endings.items() if names}
    if not endings:
        old = [name for name in found.here if re.fullmatch(r".+\.ckpt(-\d+)?\.(index|meta|data-.*)", name)]
        return (
            f"{found.name} holds {listed(old)}, a checkpoint of TensorFlow 1. Choose the same model as the Hub has it. {again(found)}"
            if old
            else ""
        )
    end, names = next(iter(endings.items()))
    program, option = OTHERS[end]
    text = f"{before} {found.name} has {listed(names)}, which is not read: it is made for {program}.".strip()
    if not option:
        return f"{text} Choose the model that it was made from, with config.json and {SINGLE}. {again(found)}"
    local = quoted(found.title.rpartition("/")[2] if found.on_hub else found.title)
    return (
        f"{text} transformers converted it before its version 5: `pip install 'transformers<5'`, and then `import transformers; "
        f"transformers.{class_of(found.said('config.json'))}.from_pretrained({quoted(found.title)}, {option}).save_pretrained({local})`."
    )


def _archives(found: Contents) -> str:
    files = found.ending(*ARCHIVES)
    if not files:
        return ""
    place, file = shlex.quote(found.title), shlex.quote(f"{found.title}/{files[0]}")
    command = f"python -m {'zipfile' if files[0].endswith('.zip') else 'tarfile'} -e {file} {place}"
    return f"{found.name} holds {listed(files)}, which is still packed. Unpack it: `{command}`, and open the folder that has config.json."


def _vocabulary_alone(found: Contents) -> str:
    files = [name for name in found.here if name in TOKENIZERS or name in ("tokenizer.json", "tokenizer_config.json")]
    if not files:
        return ""
    return f"{found.name} holds a tokenizer ({listed(files)}) and no model: it has no config.json and no weights. {again(found)}"


def _nothing(found: Contents) -> str:
    if not found.names:
        return f"{found.name} has no config.json: it holds no files. {again(found)}"
    return (
        f"{found.name} has no config.json, so it is not a model that can be loaded. It holds {listed(list(found.names))}. Choose a folder or "
        f"repository with config.json and {SINGLE}."
    )


def a_file(path: Path) -> str:
    """Why a file is not what core.load opens."""
    name = path.name
    found = Contents(path.resolve().parent.name, (name,), lambda _: {})
    if name.endswith((".safetensors", ".json")):
        return f"{shown(name)} is a file. Give the folder that it is in: `headlight.load({quoted(found.title)})`."
    why = _packed(found) or _pickles(found) or _archives(found) or _others(found)
    return f"{shown(name)} is a file, and a model is a folder with config.json and {SINGLE}. {why}".strip()
