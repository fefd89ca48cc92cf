"""Files of a checkpoint: strict JSON, and tensors listed from safetensors headers and read on demand. Never a pickle."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from ..errors import CheckpointError
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
