"""load(): a name from the catalog, a Hub repository, a folder or a GGUF file becomes a model ready to run."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from ..bars import bar
from ..device import dtype_name
from ..errors import CheckpointError, TextError
from ..model.chat import ChatTemplate, ChatText, Message, chat_text, with_answer, with_roles
from ..model.classifier import Classifier
from ..model.config import ModelConfig
from ..model.next_tokens import ANYTHING, NextTokenRule
from ..model.text import Tokens, from_ids, tokenize
from ..model.transformer import Transformer
from . import adapter, gguf
from .added_tokens import renumbered
from .catalog import CATALOG, HUB_NAMES, MODELS, POINTS, ModelSpec, curve
from .chat_template import read_chat_template
from .classifiers import classifies
from .family import Family, Theirs, shown
from .files import (
    SINGLE,
    Progress,
    Stored,
    absent,
    is_pointer,
    pointers,
    read_json,
    shard_names,
    stored_tensors,
    weight_file_of,
)
from .generation import next_token_rule
from .gguf import cache
from .loading import (
    TensorSource,
    admit_weights,
    assemble,
    assemble_classifier,
    family_of,
    plan_assembly,
    without_prefix,
)
from .notices import notices_of, without_tokenizer
from .own import MODEL_TYPE, save_model
from .rounded import in_full
from .sentencepiece_folder import marian_notices
from .text_half import text_backbone
from .trainer_state import Losses, losses_at
from .unopened import (
    HUB_NAME,
    TOKENIZERS,
    Contents,
    a_file,
    listed,
    missing_shards,
    of_folder,
    several,
    without_base,
    without_config,
    without_weights,
)
from .vocabulary import read_tokenizer

__all__ = ["CATALOG", "Loaded", "ModelSpec", "Progress", "at_point", "curve", "find", "load", "save", "save_model"]


NUMBERS = re.compile(r"\s*\d{1,9}([\s,]+\d{1,9})*\s*", re.ASCII)
DIGITS = re.compile(r"\d+", re.ASCII)
TYPED = "Type token numbers instead, with spaces between them, such as 5 17 3."
TEXT_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.txt")
TRAINER_STEP = re.compile(r"checkpoint-(0|[1-9]\d{0,9})", re.ASCII)
MAX_POINTS = 100  # checkpoints of one training
REVISION = re.compile(r"[\w][\w./-]{0,99}", re.ASCII)  # a branch, a tag or a commit


@dataclass(frozen=True, eq=False, repr=False)
class Loaded:
    """A model ready to run, with everything that came with it."""

    spec: ModelSpec
    config: ModelConfig
    model: Transformer
    tokenizer: Tokenizer | None  # None: give ids instead of text
    device: torch.device
    dtype: torch.dtype
    unused: tuple[str, ...]  # their tensors that the model has no use for
    pad_id: int
    start_id: int | None  # what a decoder begins with; None unless it is an encoder-decoder
    end_ids: tuple[int, ...] = ()  # what the model writes where its text ends; none where the files do not say
    has_pad: bool = False  # whether the files say which token is padding; if not, pad_id is any that a mask can hide
    next_tokens: NextTokenRule = ANYTHING  # the tokens that its author lets it write
    no_tokenizer: str = ""  # why it reads no text, in sentences, where its files have no tokenizer that is read
    chat_template: ChatTemplate | None = (
        None  # writes a conversation as the text that it was trained on; None: it has none
    )
    classifier: Classifier | None = None  # its head, where it sorts texts into classes

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences about what its files ask for and the model does not do, and about what lies in them and takes no part."""
        return self.spec.notices

    @property
    def headless(self) -> str:
        """The sentence that it predicts no words, for a model that has no head."""
        return f"{self.spec.title} has no head, so it predicts no words. Try a language model."

    def tokens(self, text: str) -> Tokens:
        """A text as the model reads it; without a tokenizer, token numbers with spaces between them. Raises TextError."""
        if self.tokenizer is None and NUMBERS.fullmatch(text):
            return from_ids(None, [int(number) for number in DIGITS.findall(text)])
        if self.no_tokenizer:
            raise TextError(f"{self.spec.title} cannot read a text. {TYPED} {self.no_tokenizer}")
        return tokenize(self.tokenizer, text)

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> ChatText:
        """A conversation as the text that the model reads: [{"role": "user", "content": "Hello"}]. Raises TextError.

        With `add_generation_prompt` it ends where the model's answer begins.
        """
        if self.chat_template is None:
            raise TextError(
                f"{self.spec.title} has no chat template, so it reads no messages. Give a text, or the folder of a chat model: "
                "its template is in tokenizer_config.json or chat_template.jinja."
            )
        return chat_text(self.chat_template, messages, add_generation_prompt=add_generation_prompt)

    def chat_tokens(
        self, messages: Sequence[Message], *, add_generation_prompt: bool = True, answer: str = ""
    ) -> Tokens:
        """The same as tokens, each with the role whose turn it is in. `answer` is the beginning of one. Raises TextError.

        The template writes the special tokens, so the tokenizer adds none: a text that begins with one has no second.
        """
        chat = with_answer(self.chat(messages, add_generation_prompt=add_generation_prompt), answer)
        if self.no_tokenizer:
            raise TextError(f"{self.spec.title} cannot read a text. {self.no_tokenizer}")
        return with_roles(tokenize(self.tokenizer, chat.text, add_special_tokens=False), chat)

    def __repr__(self) -> str:
        layers = " and ".join(f"{n} {stack} layers" for stack, n in self.config.stacks)
        return (
            f"<{self.spec.title}: {layers} of {self.config.n_heads} heads, {self.spec.n_params:,} parameters; "
            f"{dtype_name(self.dtype)} on {self.device}>"
            + "".join(f"\n{said}" for said in (*self.notices, self.no_tokenizer) if said)
        )


def find(name: str | os.PathLike[str]) -> ModelSpec:
    """The spec behind a name: a catalog id, a folder or a GGUF file that exists, or owner/name on the Hub, also as owner/name@revision,
    and names of papers such as gpt2. Nothing is read or downloaded.

    "copy@00122" is a point along the training of a catalog id: the model after 122 steps.
    """
    if isinstance(name, str):
        model, _, point = name.partition("@")
        for spec in CATALOG:
            if spec.id == name:
                return spec
            if spec.id == model and point:
                return at_point(spec, point)
    text = os.fspath(name)
    if "\0" not in text and os.path.isdir(text):
        folder = Path(text)
        return ModelSpec(id=text, title=folder.resolve().name, source="folder", location=text)
    if isinstance(name, str) and (spec := on_hub(name)) is not None:
        return spec
    if "\0" not in text and os.path.isfile(text):
        if gguf.is_gguf(text):
            return ModelSpec(id=text, title=gguf.title_of(text), source="folder", location=text)
        raise CheckpointError(a_file(Path(text)))
    offered = ", ".join(spec.id for spec in CATALOG)
    raise CheckpointError(
        f"There is no model {shown(text)}. Give one of {offered}, a Hub repository such as openai-community/gpt2, "
        "a GGUF file, or a folder that holds config.json and model.safetensors."
    )


def on_hub(name: str) -> ModelSpec | None:
    """The spec of owner/name, of a short name from papers (gpt2), or of one of them at a revision (gpt2@main); None for other names."""
    repository, at, revision = name.partition("@")
    repository = HUB_NAMES.get(repository, repository)
    if not HUB_NAME.fullmatch(repository) or ".." in name or "--" in repository:
        return None
    if at and not REVISION.fullmatch(revision):
        raise CheckpointError(
            f"{shown(name)} asks for the revision {shown(revision)}, but it must be a branch, a tag or a commit, as in {repository}@main."
        )
    return ModelSpec(
        id=name, title=repository.split("/")[1], source="hub", location=repository, revision=revision if at else None
    )


def at_point(spec: ModelSpec, point: str) -> ModelSpec:
    """A model as it was at one of its points. Raises CheckpointError for any other: what is asked for is never a path."""
    digests = dict(spec.points)
    if point not in digests:
        known = f"It has {', '.join(digests)}." if digests else "No points were kept of it."
        raise CheckpointError(f"{spec.title} has no point {shown(point)} of its training. {known}")
    # The last point is the model itself, which is stored once
    inside = spec.location if digests[point] == spec.sha256 else f"{spec.location}/{POINTS}/{point}"
    if spec.source == "folder":  # of a Trainer: see training_in()
        inside = str(Path(spec.location).parent / f"checkpoint-{point}")
    return replace(
        spec,
        id=f"{spec.id}@{point}",
        title=f"{spec.title} at step {int(point):,}",
        location=inside,
        sha256=digests[point],
        points=(),
    )


def training_in(spec: ModelSpec) -> ModelSpec | None:
    """The training that transformers' Trainer left in a folder: its last checkpoint, with every one (checkpoint-500, checkpoint-1000, …) as
    a point along it, by their numbers. Of more than MAX_POINTS the last are there. None for a folder without any that opens."""
    folder = Path(spec.location)
    if spec.source != "folder" or not folder.is_dir():
        return None
    inside = [path for path in folder.iterdir() if TRAINER_STEP.fullmatch(path.name) and path.is_dir()]
    whole = [path for path in inside if weight_file_of(path) is not None or is_adapter(path)]
    steps = sorted(whole, key=lambda path: int(path.name.rpartition("-")[2]))[-MAX_POINTS:]
    if not steps:
        return None
    points = tuple((path.name.rpartition("-")[2], "") for path in steps)
    return replace(spec, location=str(steps[-1]), points=points)


def trainer_losses(spec: ModelSpec) -> dict[int, Losses]:
    """The losses at the points of a training that training_in() found; none for another model, or where its files tell of none.

    Raises CheckpointError where its trainer_state.json is damaged.
    """
    if spec.source != "folder" or not spec.points:
        return {}
    return losses_at(Path(spec.location), (int(point) for point, _ in spec.points))


def opens(spec: ModelSpec) -> bool:
    """Whether a folder holds a model or an adapter itself, and not only in folders inside of it."""
    folder = Path(spec.location)
    return not folder.is_dir() or weight_file_of(folder) is not None or is_adapter(folder) or bool(gguf_names(folder))


def reads_numbers(spec: ModelSpec) -> bool:
    """Whether a folder with a model has no file of a tokenizer, so that it reads token numbers alone. Files are not opened for it."""
    folder = Path(spec.location)
    if spec.source != "folder" or not folder.is_dir() or not opens(spec) or gguf_names(folder):
        return False
    names = [path.name for path in folder.iterdir()]
    if any(name in (*TEXT_FILES, *TOKENIZERS) or name.endswith((".tiktoken", ".spm")) for name in names):
        return False
    base = base_of(spec) if is_adapter(folder) else None
    return base is None or reads_numbers(base)


def load(
    name: str | os.PathLike[str],
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    revision: str | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """A catalog id, "owner/name" on the Hub, a folder with config.json and model.safetensors, or a GGUF file or a folder with one.

    `progress` is told of the bytes of a download, and of a GGUF file that is unpacked; without it a bar shows them at a terminal and in
    a notebook (core.bars). Raises CheckpointError with a sentence that names the file and the tensor if it cannot be loaded.
    """
    if progress is None:
        with bar(unit="B", unit_scale=True) as tell:
            return load(
                name,
                device=device,
                dtype=dtype,
                revision=revision,
                progress=lambda what, done, of: tell(done, of, what),
            )
    spec = find(name)
    if revision is not None:
        if spec.source != "hub":
            raise CheckpointError(f"{spec.id} has no revisions; only Hub repositories have. Leave the revision out.")
        spec = replace(spec, revision=revision)
    spec, folder = locate(spec, progress)
    if files := gguf_files(folder, spec.title):
        return load_gguf(files, spec, torch.device(device), dtype, progress)
    if spec.sha256:
        check_published(spec, folder / SINGLE, sha256(folder / SINGLE))
    return load_folder(folder, spec, torch.device(device), dtype)


def check_published(spec: ModelSpec, path: Path, digest: str) -> None:
    """Raises CheckpointError for weights that are not those that the catalog knows."""
    if digest != spec.sha256:
        again = "Get it from the repository again" if spec.source == "shipped" else "Install or download it again"
        raise CheckpointError(
            f"{path.name} of {spec.id} is not the published file: its SHA-256 is {digest[:12]}…, not {spec.sha256[:12]}…. "
            f"{again}."
        )


def save(loaded: Loaded, folder: str | os.PathLike[str], *, dtype: torch.dtype | None = None) -> None:
    """Write config.json, model.safetensors, tokenizer.json, generation_config.json and, of a chat model, tokenizer_config.json, which
    load(folder) reads as the same model.

    The folder is made where there is none. Numbers are stored as they are, or as `dtype`: float16 and bfloat16 halve the file
    and round them. Raises OSError where the folder cannot be written, and CheckpointError for numbers float16 cannot hold, and
    for a classifier, whose head the files have no place for.
    """
    if loaded.classifier is not None:
        raise CheckpointError(
            f"{loaded.spec.title} is a classifier, and save() writes no classification heads. Copy the folder or file that it was loaded "
            "from."
        )
    save_model(
        loaded.model,
        Path(folder),
        tokenizer=loaded.tokenizer,
        pad_id=loaded.pad_id if loaded.has_pad else None,
        start_id=loaded.start_id,
        end_ids=loaded.end_ids,
        next_tokens=loaded.next_tokens,
        chat_template=loaded.chat_template,
        dtype=loaded.dtype if dtype is None else dtype,
    )


def locate(spec: ModelSpec, progress: Progress | None) -> tuple[ModelSpec, Path]:
    """The folder that holds the files, after a download if need be, and the spec as it really is."""
    if spec.source == "folder":
        return spec, Path(spec.location)
    if spec.source == "shipped":
        folder = MODELS / spec.location
        if not (folder / "model.safetensors").is_file():
            raise CheckpointError(f"{spec.title} is not in models/. `make models` trains it again.")
        return spec, folder
    if spec.source == "package":
        module, inside = spec.location.split("/", 1)
        package = importlib.util.find_spec(module)  # finds a top-level package without running it
        if package is not None and package.origin is not None:
            return spec, Path(package.origin).parent / inside
        if not spec.hub:
            raise CheckpointError(f"{spec.title} is not installed. `make run` installs it.")
        try:
            # The Hub has the files of the family; the digest of a GGUF file says nothing about them.
            digest = "" if inside.endswith(gguf.SUFFIX) else spec.sha256
            return downloaded(replace(spec, source="hub", location=spec.hub, sha256=digest), progress)
        except CheckpointError as error:
            raise CheckpointError(
                f"{spec.title} is not installed; `make run` installs it. Nor could it be downloaded: {error}"
            ) from error
    return downloaded(spec, progress)


def downloaded(spec: ModelSpec, progress: Progress | None) -> tuple[ModelSpec, Path]:
    """From the Hub; the spec then names the very commit."""
    from .fetching import fetch

    folder = fetch(spec, progress)
    return replace(spec, revision=folder.name), folder


@dataclass(frozen=True)
class Parts:
    """The content of a model's files, wherever they are."""

    source_config: Theirs
    generation: Theirs | None
    tensors: Mapping[str, Stored]
    tokenizer: Tokenizer | None
    found: Contents
    renumbered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    no_tokenizer: str = ""
    chat_template: ChatTemplate | None = None
    unread: tuple[
        str, ...
    ] = ()  # sentences about a template that cannot be used, and about a text that is read otherwise


def load_folder(
    folder: Path, spec: ModelSpec, device: torch.device, dtype: torch.dtype, *, finite: bool = False
) -> Loaded:
    """`finite`: the numbers of its files were looked through when they were written."""
    place = spec.location if spec.source == "hub" else spec.title
    if is_adapter(folder):
        return load_adapter(folder, spec, device, dtype)
    check_files_exist(folder, place)
    source_config = text_backbone(Theirs(read_json(folder / "config.json")))
    stated = folder / "generation_config.json"
    generation = Theirs(read_json(stated), "generation_config.json") if stated.is_file() else None
    family = family_of(source_config, place)  # an unknown model is refused before its weights are looked at
    check_weights(folder, place)
    tensors, rounded = in_full(source_config, stored_tensors(folder, finite=finite))
    tokenizer = read_tokenizer(folder, family.model_type)
    found = of_folder(folder, place)
    no_tokenizer = cache.notes(folder).get("no_tokenizer") or without_tokenizer(found)
    gaps, (template, unread) = renumbered(folder, tokenizer), read_chat_template(folder)
    rounded = "" if family.model_type == MODEL_TYPE else rounded  # there it is the format and no other model
    unread += (*marian_notices(folder, family.model_type), *filter(None, [rounded]))
    parts = Parts(source_config, generation, tensors, tokenizer, found, gaps, no_tokenizer, template, unread)
    return assembled(parts, spec, device, dtype)


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and no model."""
    there = [(folder / name).is_file() for name in (adapter.CONFIG, adapter.WEIGHTS)]
    return all(there) and weight_file_of(folder) is None


def base_here(folder: Path, name: str) -> Path | None:
    """The folder of the model that an adapter was made for, as far as it is here: beside it, or among the Hub's downloads."""
    base = adapter.base_beside(folder, name)
    return cached(name) if base is None and HUB_NAME.fullmatch(name) else base


def cached(repository: str) -> Path | None:
    """The folder of an earlier download of a whole model of the Hub; None where there is none. Nothing is asked of the Hub."""
    try:
        from . import fetching
    except CheckpointError:  # who has no client of the Hub has nothing downloaded
        return None
    return fetching.cached(repository)


def base_of(spec: ModelSpec) -> ModelSpec | None:
    """The model that the adapter in a folder was made for, as a folder of its own; None for what is no adapter, and where it is not here."""
    folder = Path(spec.location)
    if spec.source != "folder" or not folder.is_dir() or not is_adapter(folder):
        return None
    try:
        name = adapter.read_config(folder).str("base_model_name_or_path", "")
    except CheckpointError:
        return None
    if (base := base_here(folder, name)) is None:
        return None
    title = base.name if adapter.base_beside(folder, name) is not None else name
    return ModelSpec(id=str(base), title=title, source="folder", location=str(base))


def load_adapter(folder: Path, spec: ModelSpec, device: torch.device, dtype: torch.dtype) -> Loaded:
    """The model that an adapter was made for, with its weights merged. Nothing is downloaded for it.

    Raises CheckpointError where that model is not here, naming it.
    """
    found = of_folder(folder, spec.title)
    try:
        config = adapter.read_config(folder)
        name, is_lora = config.str("base_model_name_or_path", ""), adapter.is_lora(config)
    except CheckpointError as error:
        raise CheckpointError(f"{error} {without_config(found)}") from error
    base = base_here(folder, name)
    if base is None or not is_lora:
        raise CheckpointError(without_base(found) if is_lora else without_config(found))
    read = adapter.read_adapter(folder)
    source_config = text_backbone(Theirs(read_json(base / "config.json")))
    family = family_of(source_config, base.name)
    check_weights(base, base.name)
    whole, rounded = in_full(source_config, stored_tensors(base))
    tensors, said = adapter.merged(read, family, without_prefix(family, whole))
    source_config = adapter.with_classes(source_config, read, family, tensors)
    text = folder if any((folder / name).is_file() for name in TEXT_FILES) else base
    stated = base / "generation_config.json"
    template, unread = read_chat_template(text)
    tokenizer = read_tokenizer(text, family.model_type)
    parts = Parts(
        source_config,
        Theirs(read_json(stated), "generation_config.json") if stated.is_file() else None,
        tensors,
        tokenizer,
        Contents(spec.title, (), lambda _: {}),
        renumbered(text, tokenizer),
        without_tokenizer(of_folder(text, spec.title)),
        template,
        (said, *unread, *filter(None, [rounded])),
    )
    return assembled(parts, spec, device, dtype)


def load_gguf(
    files: Sequence[Path],
    spec: ModelSpec,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress = lambda *_: None,
) -> Loaded:
    """From the cache, where it lies unpacked; the first time it is unpacked into it. Without a cache it is unpacked into memory."""
    digest = cache.digest_of(files, progress)
    if spec.sha256:
        check_published(spec, files[0], digest)
    if (folder := cache.find(digest)) is not None:
        return load_folder(folder, spec, device, dtype, finite=True)
    from .gguf.model import read_model

    read = read_model(files)
    source_config = Theirs(read.config, read.name)
    # Weights that do not fit together, or not into memory, are refused before anything is written.
    admit_weights(plan_assembly(source_config, read.tensors, spec.title), device, dtype)
    if (folder := cache.keep(digest, read, progress)) is not None:
        return load_folder(folder, spec, device, dtype, finite=True)
    parts = Parts(
        source_config,
        Theirs(read.generation, read.name),
        read.tensors,
        read.tokenizer,
        Contents(spec.title, (), lambda _: {}),
        no_tokenizer=read.no_tokenizer,
        chat_template=read.chat_template,
    )
    return assembled(parts, spec, device, dtype)


def assembled(parts: Parts, spec: ModelSpec, device: torch.device, dtype: torch.dtype) -> Loaded:
    source_config, tokenizer = parts.source_config, parts.tokenizer
    model, family, unused = assemble(source_config, parts.tensors, device, dtype, parts.found.title)
    held = TensorSource(parts.tensors, parts.found.title, source_config)
    head = assemble_classifier(family, model.config, held, device, dtype)
    classifier, used = head or (None, frozenset())
    unused = tuple(name for name in unused if name not in used)
    special = special_ids(source_config, parts.generation, family, model.config, tokenizer)
    # Without a file of its own, what may be written is where it was before there was one.
    rule, told = next_token_rule(parts.generation or source_config, model.config, special["end_ids"])
    unused_parts = notices_of(parts.found, unused, parts.tensors, model.config, parts.renumbered, source_config.whole)
    notices = (*custom_code_notices(source_config, family), *told, *unused_parts, *parts.unread)
    if classifier is None and classifies(source_config):
        notices += (
            f"Its classes are not computed: config.json names {shown(classifies(source_config))}, whose head is of a kind that is not supported.",
        )
    weights = [*model.parameters(), *(() if classifier is None else classifier.parameters())]
    n_params = sum(parameter.numel() for parameter in weights)
    classes = None if classifier is None else classifier.classes
    return Loaded(
        spec=replace(spec, family=family.model_type, n_params=n_params, notices=notices, classes=classes),
        config=model.config,
        model=model,
        tokenizer=tokenizer,
        device=device,
        dtype=dtype,
        unused=unused,
        **special,
        next_tokens=rule,
        no_tokenizer="" if tokenizer is not None else parts.no_tokenizer,
        chat_template=parts.chat_template,
        classifier=classifier,
    )


def custom_code_notices(source_config: Theirs, family: Family) -> tuple[str, ...]:
    """A sentence for a repository that brings classes of its own (auto_map), which are never run."""
    classes = source_config.inside("auto_map").values
    names = sorted(
        {str(name) for value in classes.values() for name in (value if isinstance(value, list) else [value])}
    )
    if not names:
        return ()
    return (
        f"The repository brings code of its own ({shown(', '.join(names))}, in auto_map of config.json). It is not run: this is "
        f"{family.title} as published, and where that code does otherwise its numbers are others.",
    )


def gguf_files(place: Path, title: str) -> list[Path]:
    """The files of a GGUF model: of a file itself, or of a folder with one and no weights of another form; none for other folders.

    Raises CheckpointError for a folder with several, naming them, and where parts of a split one are missing.
    """
    if place.is_file():
        files = gguf.parts_of(place)
    elif weight_file_of(place) is not None:
        return []
    else:
        names = gguf_names(place)
        if len(names) > 1:
            raise CheckpointError(several(title, place, names))
        files = gguf.parts_of(place / names[0]) if names else []
    if empty := [file.name for file in files if is_pointer(file)]:
        raise CheckpointError(addresses(empty, title, files[0].parent))
    return files


def gguf_names(folder: Path) -> list[str]:
    """The GGUF models in a folder, by their files."""
    return gguf.models_in([path.name for path in folder.iterdir() if path.is_file()])


def check_files_exist(folder: Path, place: str) -> None:
    """Raises CheckpointError for a folder that has no config.json, or files that are not the ones that they are called."""
    if empty := pointers(folder):
        raise CheckpointError(addresses(empty, place, Path(place)))
    if not (folder / "config.json").is_file():
        raise CheckpointError(without_config(of_folder(folder, place)))


def addresses(empty: list[str], place: str, folder: Path) -> str:
    """The sentence about files that Git LFS has not filled."""
    return (
        f"{listed(empty)} in {place} hold{'s' * (len(empty) == 1)} only the address of the file that belongs there: the repository was cloned "
        f"without its large files. Get them: `git lfs install; git -C {shlex.quote(str(folder))} lfs pull`."
    )


def check_weights(folder: Path, place: str) -> None:
    """Raises CheckpointError for a folder whose weights are not there, not all there, or in another form."""
    name = weight_file_of(folder)
    if name is None:
        raise CheckpointError(without_weights(of_folder(folder, place)))
    if name.endswith(".json"):
        shards = shard_names(read_json(folder / name), name)
        if missing := absent(folder, shards):
            raise CheckpointError(missing_shards(of_folder(folder, place), missing, shards, name))


def special_ids(
    source_config: Theirs, generation: Theirs | None, family: Family, config: ModelConfig, tokenizer: Tokenizer | None
) -> dict[str, Any]:
    """pad_id, has_pad, start_id and end_ids of a model. Padding is masked, so where a model has no token for it any other will
    do: its last one, or 0."""

    def all_stated(place: Theirs | None, key: str) -> list[int]:
        value = None if place is None else place.any(key, None)
        values = value if isinstance(value, list) else [value]  # Llama 3 ends with any of several tokens
        whole = [v for v in values if isinstance(v, int) and not isinstance(v, bool)]
        return [v for v in whole if 0 <= v < config.vocab_size]

    def stated(key: str) -> int | None:
        return next(iter(all_stated(source_config, key) + all_stated(generation, key)), None)

    named = [tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>")] if tokenizer is not None else []
    end = stated("eos_token_id")
    # Where both files name ends, those of the file about writing are meant.
    ends = all_stated(generation, "eos_token_id") or all_stated(source_config, "eos_token_id")
    # Positions that count what is not padding have a row of their table for it: nothing else may fill a batch up.
    own = [config.uncounted_id, stated("pad_token_id"), *named]
    pad_id = next(i for i in (*own, end, 0) if i is not None and i < config.vocab_size)
    start = None
    if config.kind == "encoder-decoder":
        start = stated("decoder_start_token_id")
        start = end if start is None and family.start_token == "eos" else start
        start = pad_id if start is None else start
    return {
        "pad_id": pad_id,
        "has_pad": pad_id in own,
        "start_id": start,
        "end_ids": tuple(dict.fromkeys(ends)),
    }


def sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror or 'not a file'}.") from error
