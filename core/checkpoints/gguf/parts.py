"""GGUF files by their names: which of a folder are models, and the parts of a model that was split."""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import CheckpointError

SUFFIX = ".gguf"
PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<total>\d{5})\.gguf")
MAX_PARTS = 1000
BESIDE = re.compile(
    r"(mmproj|imatrix|ggml-vocab)[-_.].*|.*[-_.](mmproj|imatrix|lora)([-_.].*)?\.gguf", re.IGNORECASE
)  # no models


def parts_of(path: Path) -> list[Path]:
    """All files of the model that a file belongs to: itself, or the parts of a split one. Raises CheckpointError naming those missing."""
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
        raise CheckpointError(
            f"{path.name} is one of {total} parts, and {', '.join(missing[:8])}{f' and {len(missing) - 8} more' if len(missing) > 8 else ''} "
            f"{'is' if len(missing) == 1 else 'are'} not beside it. Download {'it' if len(missing) == 1 else 'them'} into the same folder."
        )
    return parts


def models_in(names: list[str]) -> list[str]:
    """Of the names in a folder, one for each model: the file, or its first part (of those that are there, where it is missing)."""
    found: dict[str, str] = {}
    for name in sorted(names):
        if name.endswith(SUFFIX) and not BESIDE.fullmatch(name):
            match = PART.fullmatch(name)
            found.setdefault(name if match is None else f"{match['stem']} of {match['total']}", name)
    return list(found.values())


def title_of(path: str) -> str:
    """The name of a file without its ending, and without the number of its part."""
    name = Path(path).name
    match = PART.fullmatch(name)
    return name.removesuffix(SUFFIX) if match is None else match["stem"]


def is_gguf(path: str) -> bool:
    """Whether a file is of this form: by its ending, or by its first bytes where it has none, as Ollama keeps them."""
    if path.endswith(SUFFIX) or Path(path).suffix:
        return path.endswith(SUFFIX)
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False
