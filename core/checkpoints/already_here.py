"""Models that other programs of this machine have downloaded: Ollama, LM Studio and the Hub's cache, by name, size and whether they open.

For a person's own machine. Nothing outside of the folders that are given is looked at: a link that leads out of them is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import CheckpointError
from . import gguf
from .family import Theirs
from .files import INDEX, SINGLE, read_json
from .loading import family_of

MOST = 500  # models of one program that are looked at
MOST_FILES = 20_000  # names that are read in one folder
LARGEST_MANIFEST = 1 << 20
MODEL_LAYER = "application/vnd.ollama.image.model"


@dataclass(frozen=True)
class Found:
    """A model on this machine. `why_not` is the sentence that says why it does not open; empty where core.load(path) opens it."""

    name: str  # as its program calls it: llama3.2:1b, owner/name
    program: str
    path: str  # of the file or folder that core.load() takes
    n_bytes: int
    why_not: str = ""


def usual_folders(home: Path | None = None) -> dict[str, tuple[Path, ...]]:
    """Where the programs keep their models unless they are told otherwise."""
    home = Path.home() if home is None else home
    return {
        "Ollama": (home / ".ollama" / "models",),
        "LM Studio": (home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"),
        "Hub": (home / ".cache" / "huggingface" / "hub",),
    }


def already_here(folders: dict[str, tuple[Path, ...]]) -> tuple[Found, ...]:
    """The models in these folders, by program and name. A folder that is missing or cannot be read has none."""
    ways = {"Ollama": _ollama, "LM Studio": _lm_studio, "Hub": _hub}
    found: list[Found] = []
    for program, places in folders.items():
        for place in places:
            if place.is_dir():
                found += ways[program](place.resolve())
    return tuple(sorted(found, key=lambda each: (each.program, each.name)))


def _files(place: Path) -> Iterator[Path]:
    """Files below a folder, at most MOST_FILES of them. Folders that are links are not entered."""
    n = 0
    for folder, inside, names in os.walk(place):
        inside.sort()
        for name in sorted(names):
            n += 1
            if n > MOST_FILES:
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
        if len(found) == MOST:
            break
        parts = manifest.relative_to(place / "manifests").parts
        if len(parts) != 4 or not _within(manifest, place) or manifest.stat().st_size > LARGEST_MANIFEST:
            continue
        try:
            layers = read_json(manifest).get("layers")
        except CheckpointError:
            continue
        digests = [
            str(layer.get("digest"))
            for layer in (layers if isinstance(layers, list) else [])
            if isinstance(layer, dict) and layer.get("mediaType") == MODEL_LAYER
        ]
        _, owner, model, tag = parts
        name = f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}"
        for digest in digests[:1]:
            kind, _, number = digest.partition(":")
            blob = place / "blobs" / f"{kind}-{number}"
            if kind == "sha256" and number.isalnum() and _within(blob, place):
                found.append(_gguf(name, "Ollama", blob))
    return found


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
            found.append(_gguf(title, "LM Studio", folder / name))
    return found[:MOST]


def _hub(place: Path) -> list[Found]:
    """models--<owner>--<name>/snapshots/<commit>, whose files are links to blobs beside them."""
    found = []
    for repository in sorted(place.glob("models--*"))[:MOST]:
        name = repository.name.removeprefix("models--").replace("--", "/", 1)
        snapshots = repository / "snapshots"
        commits = sorted(snapshots.iterdir(), key=lambda each: each.stat().st_mtime) if snapshots.is_dir() else []
        for commit in commits[-1:]:
            inside = [path for path in _files(commit) if _within(path, place)]
            weights = [path for path in inside if path.suffix == ".safetensors" and path.parent == commit]
            if weights or (commit / "config.json") in inside:
                n_bytes = sum(path.stat().st_size for path in weights)
                found.append(Found(name, "Hub", str(commit), n_bytes, _why_no_folder(commit, inside)))
            files = [path for path in inside if path.name.endswith(gguf.SUFFIX) and path.parent == commit]
            found += [
                _gguf(f"{name}/{gguf.title_of(file)}", "Hub", commit / file)
                for file in gguf.models_in([path.name for path in files])
            ]
    return found[:MOST]


def _why_no_folder(folder: Path, inside: list[Path]) -> str:
    try:
        if (folder / "config.json") not in inside:
            return "It has no config.json."
        family_of(Theirs(read_json(folder / "config.json")), folder.name)
    except CheckpointError as error:
        return str(error)
    if not {folder / SINGLE, folder / INDEX} & {*inside}:
        return f"It has no {SINGLE}."
    return ""


def _gguf(name: str, program: str, path: Path) -> Found:
    """A model in a GGUF file. Its header is read, its numbers are not."""
    n_bytes, why_not = path.stat().st_size, ""
    try:
        from .gguf.header import read_header
        from .gguf.model import architecture_of

        files = gguf.parts_of(path)
        n_bytes = sum(file.stat().st_size for file in files)
        architecture_of(read_header(files[0]))
    except CheckpointError as error:
        why_not = str(error)
    return Found(name, program, str(path), n_bytes, why_not)
