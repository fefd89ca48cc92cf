"""Cache of unpacked GGUF models as folders of plain numbers, memory-mapped by every process of this machine.

A folder is named by the digest of its file. It is written under a temporary name and renamed when it is complete. The least recently
used folders are removed first. If nothing can be written, models are unpacked into memory.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError, safe_open

from ...errors import CheckpointError
from ..families import FAMILIES
from ..files import BY_COLUMNS, SINGLE, Progress, Stored
from ..loading import check_numbers, head_name
from ..metadata import settings_of
from ..tokenizer_files import CONFIG

if TYPE_CHECKING:  # imports the gguf package
    from .model import GgufModel

PLACE = "HEADLIGHT_CACHE"  # environment variable: another folder, or "off"
MAX_BYTES = 20 << 30  # total size of the cache
SPARE_BYTES = 1 << 30  # free disk space to leave
FORMAT_VERSION = 3  # increase when the same file would be unpacked differently
PART = "part-"  # prefix of incomplete folders
DIGESTS = "digests"  # folder of remembered digests, by a hash of the file's path and times
MAX_DIGESTS = 1000
ABANDONED_SECONDS = 24 * 3600.0  # seconds after which an incomplete folder is considered abandoned
STABLE_SECONDS = 2.0  # coarsest resolution of modification times of any file system
NOTES = "gguf.json"
UNPACKED, READ = "{name} is unpacked, once", "{name} is read through"  # labels of progress
BLOCK_BYTES = 1 << 22  # read size for digests

log = logging.getLogger("headlight")


def place() -> Path | None:
    """The folder of the cache; None if it is switched off."""
    named = os.environ.get(PLACE, "")
    if named == "off":
        return None
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "headlight" / "gguf"


def digest_of(paths: Sequence[Path], progress: Progress = lambda *_: None) -> str:
    """SHA-256 of a file, or of the digests of all parts. An unchanged file is read only once."""
    digests = [_digest(path, progress) for path in paths]
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def find(digest: str) -> Path | None:
    """The folder of an unpacked file, marked as used now; None if there is no complete one."""
    base = place()
    if base is None:
        return None
    folder = base / f"{digest}-{FORMAT_VERSION}"
    try:
        with safe_open(folder / SINGLE, framework="pt"):  # complete according to its header
            pass
        os.utime(folder)
    except (OSError, SafetensorError):
        return None
    return folder


def keep(digest: str, model: GgufModel, progress: Progress = lambda *_: None) -> Path | None:
    """Unpack a model into the cache and return its folder; None if there is no room or nothing can be written.

    `progress` reports the unpacked bytes written. Raises CheckpointError for numbers that are not finite.
    """
    base = place()
    if base is None:
        return None
    needed = sum(stored_bytes(stored) for stored in model.tensors.values())
    part: Path | None = None
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _room(base, needed):
            log.warning(
                "%s is not kept unpacked: it takes %.1f GB, and the disk has too few.", model.name, needed / 1e9
            )
            return None
        part = Path(tempfile.mkdtemp(prefix=PART, dir=base))
        _write(part, model, progress)
        folder = base / f"{digest}-{FORMAT_VERSION}"
        try:
            os.rename(part, folder)
        except OSError:
            if find(digest) is None:  # the existing folder is incomplete
                shutil.rmtree(folder, ignore_errors=True)
                os.rename(part, folder)
        return find(digest)
    except OSError as error:
        log.warning("%s is not kept unpacked: %s.", model.name, error.strerror or error)
        return None
    finally:
        if part is not None:
            shutil.rmtree(part, ignore_errors=True)


def stored_bytes(stored: Stored) -> int:
    return 4 * math.prod(stored.shape)


def notes(folder: Path) -> dict[str, str]:
    """Our own notes on a model, such as why its vocabulary is not supported."""
    try:
        values = json.loads((folder / NOTES).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {k: v for k, v in values.items() if isinstance(v, str)} if isinstance(values, dict) else {}


def _write(folder: Path, model: GgufModel, progress: Progress) -> None:
    """Write the files of the published family, and notes."""
    texts = {
        "config.json": json.dumps(model.config, indent=1),
        "generation_config.json": json.dumps(model.generation, indent=1),
        NOTES: json.dumps({"no_tokenizer": model.no_tokenizer}, ensure_ascii=False),
    }
    if model.tokenizer is not None:
        texts["tokenizer.json"] = model.tokenizer.to_str()
    if model.chat_template is not None:
        texts[CONFIG] = json.dumps(settings_of(model.chat_template), ensure_ascii=False)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8", newline="")
    _write_tensors(folder / SINGLE, model, progress)


def _write_tensors(path: Path, model: GgufModel, progress: Progress) -> None:
    """Write a safetensors file with one tensor in memory at a time, unlike the package's own writer.

    Format: https://github.com/huggingface/safetensors#format.
    """
    # The head is stored by columns, as a CPU needs it; transposing it would take a third of each start, and memory in each process.
    head = head_name(FAMILIES[str(model.config["model_type"])], model.tensors)
    entries: dict[str, object] = {"__metadata__": {"format": "pt", BY_COLUMNS: head or ""}}
    at = 0
    for name, stored in model.tensors.items():
        n_bytes = stored_bytes(stored)
        shape = list(stored.shape[::-1] if name == head else stored.shape)
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n_bytes]}
        at += n_bytes
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for name, stored in model.tensors.items():
            tensor = stored.read()
            check_numbers(stored, tensor, torch.float32)
            tensor = tensor.t().contiguous() if name == head else tensor
            file.write(tensor.numpy().data)
            progress(UNPACKED.format(name=model.name), file.tell() - len(header) - 8, at)
        file.flush()
        os.fsync(file.fileno())


def _room(base: Path, needed: int) -> bool:
    """True if a model of this size fits. Removes the least recently used ones if necessary."""
    now = time.time()
    kept: list[tuple[float, int, Path]] = []
    for folder in base.iterdir():
        try:
            used = folder.stat().st_mtime
            size = sum(path.stat().st_size for path in folder.iterdir())
        except OSError:  # removed by another process, or not ours
            continue
        if folder.name.startswith(PART):
            if now - used > ABANDONED_SECONDS:
                shutil.rmtree(folder, ignore_errors=True)
        elif folder.name != DIGESTS:
            kept.append((used, size, folder))
    kept.sort(reverse=True)
    total = sum(size for _, size, _ in kept)
    while needed <= MAX_BYTES:
        if total + needed <= MAX_BYTES and shutil.disk_usage(base).free >= needed + SPARE_BYTES:
            return True
        if not kept:
            return False
        _, size, oldest = kept.pop()
        total -= size
        _remove(oldest)
    return False


def _remove(folder: Path) -> None:
    """Rename first, so that no process finds an incomplete folder. Existing memory maps stay valid."""
    gone = folder.with_name(f"{PART}{os.getpid()}-{folder.name}")
    try:
        os.rename(folder, gone)
    except OSError:
        return
    shutil.rmtree(gone, ignore_errors=True)


def _digest(path: Path, progress: Progress) -> str:
    """SHA-256 of a file, remembered by its path, inode, size and times."""
    try:
        stat = path.stat()
        known = _remembered(path, stat)
        if known is not None and (digest := _recall(known)) is not None:
            return digest
        digest = _sha256(path, stat.st_size, progress)
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror or 'not a file'}.") from error
    settled = time.time() - max(stat.st_mtime, stat.st_ctime) > STABLE_SECONDS
    if known is not None and settled:
        _remember(known, digest)
    return digest


def _recall(known: Path) -> str | None:
    try:
        text = known.read_text("ascii")
    except (OSError, ValueError):
        return None
    return text if len(text) == 64 and set(text) <= set("0123456789abcdef") else None


def _sha256(path: Path, size: int, progress: Progress) -> str:
    digest, part = hashlib.sha256(), memoryview(bytearray(BLOCK_BYTES))
    done = 0
    with path.open("rb", buffering=0) as file:
        while n := file.readinto(part):
            digest.update(part[:n])
            done += n
            progress(READ.format(name=path.name), done, size)
    return digest.hexdigest()


def _remembered(path: Path, stat: os.stat_result) -> Path | None:
    base = place()
    if base is None:
        return None
    facts = (str(path.resolve()), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return base / DIGESTS / hashlib.sha256(repr(facts).encode()).hexdigest()


def _remember(known: Path, digest: str) -> None:
    """Store a digest. If nothing can be written, the file is read again next time."""
    try:
        known.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        others = sorted(known.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in others[: max(0, len(others) + 1 - MAX_DIGESTS)]:
            old.unlink(missing_ok=True)
        part = known.with_name(f"{known.name}.{os.getpid()}")
        part.write_text(digest, "ascii")
        os.replace(part, known)
    except OSError:
        return
