"""Names of GGUF files: the models of a folder, and the parts of split ones."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import CheckpointError

SUFFIX = ".gguf"
PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})\.gguf")
MAX_PARTS = 1000
# Files that are not models
BESIDE = re.compile(r"(mmproj|imatrix|ggml-vocab)[-_.].*|.*[-_.](mmproj|imatrix|lora)([-_.].*)?\.gguf", re.IGNORECASE)


def parts_of(path: Path) -> list[Path]:
    """All files of a model: the file itself, or the parts of a split one. Raises CheckpointError naming missing parts."""
    match = PART.fullmatch(path.name)
    if match is None:
        return [path]
    total = int(match["total"])
    if not 1 <= int(match["number"]) <= total <= MAX_PARTS:
        raise CheckpointError(
            f"{path.name} is no part of a split model: parts are numbered from 1 to at most {MAX_PARTS}."
        )
    parts = [path.with_name(f"{match['stem']}-{n:05}-of-{total:05}{SUFFIX}") for n in range(1, total + 1)]
    if missing := [part.name for part in parts if not part.is_file()]:
        more = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        are, them = ("is", "it") if len(missing) == 1 else ("are", "them")
        raise CheckpointError(
            f"{path.name} is one of {total} parts, and {', '.join(missing[:8])}{more} "
            f"{are} not beside it. Download {them} into the same folder."
        )
    return parts


def models_in(names: list[str]) -> list[str]:
    """One file name per model of a folder: the file, or the first part that is present."""
    models: dict[str, str] = {}
    for name in sorted(names):
        if name.endswith(SUFFIX) and not BESIDE.fullmatch(name):
            match = PART.fullmatch(name)
            models.setdefault(name if match is None else f"{match['stem']} of {match['total']}", name)
    return list(models.values())


def title_of(path: str) -> str:
    """File name without its ending and its part number."""
    name = Path(path).name
    match = PART.fullmatch(name)
    return name.removesuffix(SUFFIX) if match is None else match["stem"]


def is_gguf(path: str) -> bool:
    """True for a GGUF file, by its ending, or by its first bytes if it has none, as in Ollama's folder."""
    if path.endswith(SUFFIX) or Path(path).suffix:
        return path.endswith(SUFFIX)
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False
