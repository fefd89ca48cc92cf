"""Models downloaded by other programs on this machine: Ollama, LM Studio and the Hub's cache."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import CheckpointError, HeadlightError
from . import gguf
from .family import SourceConfig, shown, text_backbone
from .files import SINGLE, Stored, read_json, stored_tensors, weight_file
from .loading import family_of, plan_assembly
from .weight_transforms import dequantize_tensors

MAX_MODELS = 500  # per program
MAX_FILES = 20_000  # in one folder
MAX_MANIFEST = 1 << 20
MODEL_LAYER = "application/vnd.ollama.image.model"
AGAIN = "Download the model again there."
# Environment variables for the folders of the programs.
FOLDER_VARIABLES = {"Ollama": ("OLLAMA_MODELS",), "LM Studio": (), "Hub": ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")}


@dataclass(frozen=True)
class Found:
    """A model on this machine. `why_not` is the reason if it cannot be opened, and empty otherwise."""

    name: str  # in its program: llama3.2:1b, owner/name
    program: str
    path: str  # of the file or folder for core.load(); "" if it is missing
    n_bytes: int  # of its files
    why_not: str = ""
    no_text: str = ""  # the reason if it opens, but reads only token numbers
    n_params: int = 0  # 0 if not counted
    place: str = ""  # folder of its program; links out of it are ignored


def usual_folders(home: Path | None = None) -> dict[str, tuple[Path, ...]]:
    """The programs' model folders in `home`; for the current user, environment variables take precedence."""
    environment = os.environ if home is None else {}
    home = Path.home() if home is None else home
    usual = {
        "Ollama": (home / ".ollama" / "models",),
        "LM Studio": (home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"),
        "Hub": (home / ".cache" / "huggingface" / "hub",),
    }
    named = {
        program: [environment[name] for name in names if environment.get(name)]
        for program, names in FOLDER_VARIABLES.items()
    }
    return {program: tuple(map(Path, named[program][:1])) or places for program, places in usual.items()}


def local_models(folders: dict[str, tuple[Path, ...]]) -> tuple[Found, ...]:
    """The models in these folders, by program and name, each inspected. Missing and unreadable folders are skipped."""
    return tuple(inspect_file(each) for each in list_models(folders))


def list_models(folders: dict[str, tuple[Path, ...]]) -> tuple[Found, ...]:
    """The models with only their names and sizes; no model is opened. `why_not` is set for damaged entries of a program's list."""
    readers = {"Ollama": _ollama, "LM Studio": _lm_studio, "Hub": _hub}
    places = [(program, place.resolve()) for program, places in folders.items() for place in places if place.is_dir()]
    models = [each for program, place in places for each in readers[program](place)]
    return tuple(sorted(models, key=lambda each: (each.program, each.name, each.path)))


def inspect_file(found: Found) -> Found:
    """The model with its number of parameters, or the reason if core.load() would reject it. Only headers are read."""
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
            plan_assembly(SourceConfig(numbers.config, path.name), tensors, found.name)
            no_text = without_text(numbers.header, numbers.n_rows)
    except HeadlightError as error:
        # Ollama names files by their digests, which are meaningless to people.
        return replace(found, why_not=str(error).replace(path.name, found.name))
    return replace(found, no_text=no_text, n_params=sum(math.prod(stored.shape) for stored in tensors.values()))


def _files(place: Path) -> Iterator[Path]:
    """At most MAX_FILES files below a folder. Links to folders are not followed."""
    n = 0
    for folder, inside, names in os.walk(place):
        inside.sort()
        for name in sorted(names):
            n += 1
            if n > MAX_FILES:
                return
            yield Path(folder) / name


def _within(path: Path, place: Path) -> bool:
    """True for a file that is inside of the folder after links are resolved."""
    real = path.resolve()
    return real.is_relative_to(place) and real.is_file()


def _ollama(place: Path) -> list[Found]:
    """One manifest per name, manifests/<host>/<owner>/<model>/<tag>, which contains the digest of the weights."""
    models: list[Found] = []
    for manifest in _files(place / "manifests"):
        if len(models) == MAX_MODELS:
            break
        parts = manifest.relative_to(place / "manifests").parts
        if len(parts) != 4 or manifest.name.startswith(".") or not _within(manifest, place):
            continue
        _, owner, model, tag = parts
        each = Found(f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}", "Ollama", "", 0)
        try:
            blob = _blob(manifest, place)
            models.append(replace(each, path=str(blob), n_bytes=blob.stat().st_size, place=str(place)))
        except CheckpointError as error:
            models.append(replace(each, why_not=str(error)))
    return models


def _blob(manifest: Path, place: Path) -> Path:
    """Weights of an Ollama manifest. Raises CheckpointError for a damaged manifest, and for missing weights."""
    if manifest.stat().st_size > MAX_MANIFEST:
        raise CheckpointError(f"Its manifest is larger than {MAX_MANIFEST >> 20} MB, so it is none. {AGAIN}")
    try:
        layers = read_json(manifest).get("layers")
    except CheckpointError:
        raise CheckpointError(f"Its manifest is damaged: it is not valid JSON. {AGAIN}") from None
    weights = [
        str(layer.get("digest"))
        for layer in (layers if isinstance(layers, list) else [])
        if isinstance(layer, dict) and layer.get("mediaType") == MODEL_LAYER
    ]
    if not weights:
        raise CheckpointError("Its manifest names no weights: it may be a model that runs elsewhere, or be damaged.")
    digest = weights[0]
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
    by_folder: dict[Path, list[str]] = {}
    for path in _files(place):
        if path.name.endswith(gguf.SUFFIX) and _within(path, place):
            by_folder.setdefault(path.parent, []).append(path.name)
    models = [
        _file((folder / gguf.title_of(name)).relative_to(place).as_posix(), "LM Studio", folder / name, place)
        for folder, names in by_folder.items()
        for name in gguf.models_in(names)
    ]
    return models[:MAX_MODELS]


def _hub(place: Path) -> list[Found]:
    """models--<owner>--<name>/snapshots/<commit>, whose files are links to blobs."""
    models: list[Found] = []
    for repository in sorted(place.glob("models--*"))[:MAX_MODELS]:
        name = repository.name.removeprefix("models--").replace("--", "/", 1)
        snapshots = repository / "snapshots"
        commits = list(snapshots.iterdir()) if snapshots.is_dir() else []
        if commits:
            models += _snapshot(name, max(commits, key=lambda each: each.stat().st_mtime), place)
    return models[:MAX_MODELS]


def _snapshot(name: str, commit: Path, place: Path) -> list[Found]:
    """The model of a snapshot, and each of its GGUF models."""
    inside = [path for path in _files(commit) if path.parent == commit and _within(path, place)]
    weights = [path for path in inside if path.suffix == ".safetensors"]
    models = []
    if weights or (commit / "config.json") in inside:
        n_bytes = sum(path.stat().st_size for path in weights)
        models.append(Found(name, "Hub", str(commit), n_bytes, place=str(place)))
    files = gguf.models_in([path.name for path in inside if path.name.endswith(gguf.SUFFIX)])
    return models + [_file(f"{name}/{gguf.title_of(file)}", "Hub", commit / file, place) for file in files]


def _tensors_of_folder(folder: Path, found: Found) -> Mapping[str, Stored]:
    """Tensors of a folder in the Hub's cache, checked against its config.json. Raises CheckpointError if it cannot be opened."""
    inside = {path for path in _files(folder) if _within(path, Path(found.place))}
    if folder / "config.json" not in inside:
        raise CheckpointError("It has no config.json.")
    source_config = text_backbone(SourceConfig(read_json(folder / "config.json")))
    family_of(source_config, found.name)
    if weight_file(path.name for path in inside if path.parent == folder) is None:
        raise CheckpointError(f"It has no {SINGLE}.")
    tensors, _ = dequantize_tensors(source_config, stored_tensors(folder))
    plan_assembly(source_config, tensors, found.name)
    return tensors


def _file(name: str, program: str, path: Path, place: Path) -> Found:
    """A model in one GGUF file or in several parts."""
    try:
        files, why_not = gguf.parts_of(path), ""
    except CheckpointError as error:
        files, why_not = [path], str(error)
    return Found(name, program, str(path), sum(file.stat().st_size for file in files), why_not, place=str(place))
