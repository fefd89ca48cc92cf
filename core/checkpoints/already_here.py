"""Models that other programs of this machine have downloaded: Ollama, LM Studio and the Hub's cache, by name, size and whether they open.

For a person's own machine. Nothing outside of the folders that are given is looked at: a link that leads out of them is passed over.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import CheckpointError, Refused
from . import gguf
from .family import Theirs, shown
from .files import SINGLE, Stored, read_json, stored_tensors, weight_file
from .loading import family_of, plan_assembly
from .rounded import in_full
from .text_half import text_backbone

MAX_MODELS = 500  # models of one program that are looked at
MAX_FILES = 20_000  # names that are read in one folder
MAX_MANIFEST = 1 << 20
MODEL_LAYER = "application/vnd.ollama.image.model"
AGAIN = "Download the model again there."
# Variables by which the programs are told of another folder than their usual one.
FOLDER_VARIABLES = {"Ollama": ("OLLAMA_MODELS",), "LM Studio": (), "Hub": ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")}


@dataclass(frozen=True)
class Found:
    """A model on this machine. `why_not` is the sentence that says why it does not open; empty where core.load(path) opens it."""

    name: str  # as its program calls it: llama3.2:1b, owner/name
    program: str
    path: str  # of the file or folder that core.load() takes; "" where there is none
    n_bytes: int  # of its files
    why_not: str = ""
    no_text: str = ""  # the sentence that says why it reads token numbers only, where it opens and that is so
    n_params: int = 0  # numbers of all its tensors; 0 where they were not counted
    place: str = ""  # the folder of its program: what leads out of it is not looked at


def usual_folders(home: Path | None = None) -> dict[str, tuple[Path, ...]]:
    """Where the programs keep their models: their usual folders in `home`, or, of this user, those that their own variables name."""
    told = os.environ if home is None else {}
    home = Path.home() if home is None else home
    usual = {
        "Ollama": (home / ".ollama" / "models",),
        "LM Studio": (home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"),
        "Hub": (home / ".cache" / "huggingface" / "hub",),
    }
    named = {program: [told[name] for name in names if told.get(name)] for program, names in FOLDER_VARIABLES.items()}
    return {program: tuple(map(Path, named[program][:1])) or places for program, places in usual.items()}


def already_here(folders: dict[str, tuple[Path, ...]]) -> tuple[Found, ...]:
    """The models in these folders, by program and name, each looked into. A folder that is missing or cannot be read has none."""
    return tuple(looked_into(each) for each in named(folders))


def named(folders: dict[str, tuple[Path, ...]]) -> tuple[Found, ...]:
    """The same by their names and sizes alone, which is quick: no model is opened. `why_not` is of the program's own list."""
    ways = {"Ollama": _ollama, "LM Studio": _lm_studio, "Hub": _hub}
    found: list[Found] = []
    for program, places in folders.items():
        for place in places:
            if place.is_dir():
                found += ways[program](place.resolve())
    return tuple(sorted(found, key=lambda each: (each.program, each.name, each.path)))


def looked_into(found: Found) -> Found:
    """The same with the numbers that it has and, where core.load() would refuse it, the reason. Headers are read, no numbers are."""
    if found.why_not:
        return found
    path, no_text = Path(found.path), ""
    try:
        if path.is_dir():
            tensors = _tensors_of_folder(path, found)
        else:
            from .gguf.model import numbers_of
            from .gguf.tokenizer import without_text

            numbers = numbers_of(gguf.parts_of(path))
            tensors = numbers.tensors
            plan_assembly(Theirs(numbers.config, path.name), tensors, found.name)
            no_text = without_text(numbers.header, numbers.n_rows)
    except Refused as error:
        # A blob of Ollama is called by its digest, which says nothing to a person.
        return replace(found, why_not=str(error).replace(path.name, found.name))
    return replace(found, no_text=no_text, n_params=sum(math.prod(stored.shape) for stored in tensors.values()))


def _files(place: Path) -> Iterator[Path]:
    """Files below a folder, at most MAX_FILES of them. Folders that are links are not entered."""
    n = 0
    for folder, inside, names in os.walk(place):
        inside.sort()
        for name in sorted(names):
            n += 1
            if n > MAX_FILES:
                return
            yield Path(folder) / name


def _within(path: Path, place: Path) -> bool:
    """Whether it is a file, and lies in the folder when all links are followed."""
    real = path.resolve()
    return real.is_relative_to(place) and real.is_file()


def _ollama(place: Path) -> list[Found]:
    """A manifest for each name, manifests/<host>/<owner>/<model>/<tag>; the weights are a blob that it names by its digest."""
    found = []
    for manifest in _files(place / "manifests"):
        if len(found) == MAX_MODELS:
            break
        parts = manifest.relative_to(place / "manifests").parts
        if len(parts) != 4 or manifest.name.startswith(".") or not _within(manifest, place):
            continue
        _, owner, model, tag = parts
        each = Found(f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}", "Ollama", "", 0)
        try:
            blob = _blob(manifest, place)
            found.append(replace(each, path=str(blob), n_bytes=blob.stat().st_size, place=str(place)))
        except CheckpointError as error:
            found.append(replace(each, why_not=str(error)))
    return found


def _blob(manifest: Path, place: Path) -> Path:
    """The weights that a manifest of Ollama names. Raises CheckpointError for one that is damaged or names none that are here."""
    if manifest.stat().st_size > MAX_MANIFEST:
        raise CheckpointError(f"Its manifest is larger than {MAX_MANIFEST >> 20} MB, so it is none. {AGAIN}")
    try:
        layers = read_json(manifest).get("layers")
    except CheckpointError:
        raise CheckpointError(f"Its manifest is damaged: it is not valid JSON. {AGAIN}") from None
    layers = layers if isinstance(layers, list) else []
    kinds = [(layer.get("mediaType"), layer.get("digest")) for layer in layers if isinstance(layer, dict)]
    digest = next((str(digest) for kind, digest in kinds if kind == MODEL_LAYER), None)
    if digest is None:
        raise CheckpointError("Its manifest names no weights: it may be a model that runs elsewhere, or be damaged.")
    kind, _, number = digest.partition(":")
    blob = place / "blobs" / f"{kind}-{number}"
    if kind != "sha256" or not number.isalnum():
        raise CheckpointError(
            f"Its manifest is damaged: it names its weights by {shown(digest)}, not by a SHA-256. {AGAIN}"
        )
    if not _within(blob, place):
        raise CheckpointError(f"Its weights are not in Ollama's folder: blobs/{blob.name[:19]}… is missing. {AGAIN}")
    return blob


def _lm_studio(place: Path) -> list[Found]:
    """<publisher>/<repository>/<file>.gguf."""
    found = []
    by_folder: dict[Path, list[str]] = {}
    for path in _files(place):
        if path.name.endswith(gguf.SUFFIX) and _within(path, place):
            by_folder.setdefault(path.parent, []).append(path.name)
    for folder, names in by_folder.items():
        for name in gguf.models_in(names):
            title = (folder / gguf.title_of(name)).relative_to(place).as_posix()
            found.append(_file(title, "LM Studio", folder / name, place))
    return found[:MAX_MODELS]


def _hub(place: Path) -> list[Found]:
    """models--<owner>--<name>/snapshots/<commit>, whose files are links to blobs beside them."""
    found = []
    for repository in sorted(place.glob("models--*"))[:MAX_MODELS]:
        name = repository.name.removeprefix("models--").replace("--", "/", 1)
        snapshots = repository / "snapshots"
        commits = sorted(snapshots.iterdir(), key=lambda each: each.stat().st_mtime) if snapshots.is_dir() else []
        for commit in commits[-1:]:
            inside = [path for path in _files(commit) if path.parent == commit and _within(path, place)]
            weights = [path for path in inside if path.suffix == ".safetensors"]
            if weights or (commit / "config.json") in inside:
                n_bytes = sum(path.stat().st_size for path in weights)
                found.append(Found(name, "Hub", str(commit), n_bytes, place=str(place)))
            files = [path.name for path in inside if path.name.endswith(gguf.SUFFIX)]
            found += [
                _file(f"{name}/{gguf.title_of(file)}", "Hub", commit / file, place) for file in gguf.models_in(files)
            ]
    return found[:MAX_MODELS]


def _tensors_of_folder(folder: Path, found: Found) -> Mapping[str, Stored]:
    """The tensors of a folder of the Hub's cache, held against its config.json. Raises CheckpointError where it does not open."""
    inside = {path for path in _files(folder) if _within(path, Path(found.place))}
    if folder / "config.json" not in inside:
        raise CheckpointError("It has no config.json.")
    source_config = text_backbone(Theirs(read_json(folder / "config.json")))
    family_of(source_config, found.name)
    if weight_file(path.name for path in inside if path.parent == folder) is None:
        raise CheckpointError(f"It has no {SINGLE}.")
    tensors, _ = in_full(source_config, stored_tensors(folder))
    plan_assembly(source_config, tensors, found.name)
    return tensors


def _file(name: str, program: str, path: Path, place: Path) -> Found:
    """A model in a GGUF file, or in all parts of a split one."""
    try:
        files, why_not = gguf.parts_of(path), ""
    except CheckpointError as error:
        files, why_not = [path], str(error)
    return Found(name, program, str(path), sum(file.stat().st_size for file in files), why_not, place=str(place))
